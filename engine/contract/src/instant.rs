//! A point in time is written as RFC 3339 in UTC, to the second.

use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// `at` as RFC 3339 in UTC, to the second (`2026-08-14T09:30:00Z`).
#[must_use]
pub fn rfc3339(at: OffsetDateTime) -> String {
    let utc = at.to_offset(UtcOffset::UTC);
    let seconds = utc.replace_nanosecond(0).unwrap_or(utc);
    // Only a year beyond 9999 cannot be written; a clock that says so is shown as it is.
    seconds.format(&Rfc3339).unwrap_or_else(|_| seconds.to_string())
}

/// The date of `at` in UTC (`2026-08-14`).
#[must_use]
pub fn date(at: OffsetDateTime) -> String {
    let utc = at.to_offset(UtcOffset::UTC);
    format!("{:04}-{:02}-{:02}", utc.year(), u8::from(utc.month()), utc.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_written_in_utc_to_the_second() {
        let at = OffsetDateTime::parse("2026-08-14T11:30:05.75+02:00", &Rfc3339).unwrap();
        assert_eq!(rfc3339(at), "2026-08-14T09:30:05Z");
        assert_eq!(date(at), "2026-08-14");
    }
}
