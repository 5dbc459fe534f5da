//! A rate and its Wilson score interval at 95 %.

use serde::{Serialize, Serializer};
use std::fmt;

/// The two-sided 95 % point of the normal distribution.
const Z: f64 = 1.959_964;

/// A share of a whole, in percent with one decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent {
    tenths: u16,
}

impl Percent {
    /// A share from 0 to 1, rounded to the nearest tenth of a percent, a half up.
    #[must_use]
    fn of(share: f64) -> Self {
        Self { tenths: (share.clamp(0.0, 1.0) * 1000.0).round() as u16 }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}%", self.tenths / 10, self.tenths % 10)
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(f64::from(self.tenths) / 10.0)
    }
}

/// A rate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// The rate.
    pub percent: Percent,
    /// The lower end of the interval.
    pub low: Percent,
    /// The upper end of the interval.
    pub high: Percent,
}

impl Rate {
    /// The rate of `hits` in `of`, of which it is a part. None in none is no rate.
    #[must_use]
    pub fn of(hits: u64, of: u64) -> Option<Self> {
        let (low, high) = wilson(hits, of)?;
        Some(Self { percent: Percent::of(hits as f64 / of as f64), low: Percent::of(low), high: Percent::of(high) })
    }
}

/// The Wilson score interval of `hits` in `of` at 95 %, as shares from 0 to 1; nothing for none in none.
#[must_use]
pub fn wilson(hits: u64, of: u64) -> Option<(f64, f64)> {
    if of == 0 {
        return None;
    }
    let n = of as f64;
    let p = hits as f64 / n;
    let z2 = Z * Z;
    let middle = p + z2 / (2.0 * n);
    let half = Z * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    Some((((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(hits: u64, of: u64) -> String {
        let rate = Rate::of(hits, of).unwrap();
        format!("{} {} {}", rate.percent, rate.low, rate.high)
    }

    /// The four examples of Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    #[test]
    fn an_interval_is_the_published_one() {
        for (hits, of, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let (l, h) = wilson(hits, of).unwrap();
            assert!((l - low).abs() < 0.00005 && (h - high).abs() < 0.00005, "{hits} in {of}: {l} {h}");
        }
    }

    #[test]
    fn a_rate_is_in_percent_with_one_decimal() {
        assert_eq!(shown(3, 7), "42.9% 15.8% 75.0%");
        assert_eq!(shown(0, 4), "0.0% 0.0% 49.0%");
        assert_eq!(shown(4, 4), "100.0% 51.0% 100.0%");
        assert_eq!(shown(1, 16), "6.3% 1.1% 28.3%", "a half is rounded up");
        assert_eq!(serde_json::to_string(&Rate::of(3, 7)).unwrap(), r#"{"percent":42.9,"low":15.8,"high":75.0}"#);
    }

    #[test]
    fn none_in_none_is_no_rate() {
        assert_eq!(Rate::of(0, 0), None);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_rate_and_stays_within_the_whole(of in 1u64.., share in 0.0f64..=1.0) {
            let hits = ((of as f64 * share) as u64).min(of);
            let rate = Rate::of(hits, of).unwrap();
            prop_assert!(rate.low <= rate.percent && rate.percent <= rate.high);
            let (low, high) = wilson(hits, of).unwrap();
            prop_assert!(0.0 <= low && low <= high && high <= 1.0);
        }

        #[test]
        fn every_tenth_is_written_as_itself(tenths in 0u16..=1000) {
            let json = serde_json::to_string(&Percent { tenths }).unwrap();
            prop_assert_eq!(format!("{json}%"), Percent { tenths }.to_string());
        }
    }
}
