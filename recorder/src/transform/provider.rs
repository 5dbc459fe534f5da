//! Served version and cost.

use super::log::{SessionLog, Usage};
use std::fmt;

/// What the provider metadata of a run says, and what is to be said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The version that served the session; the name that was asked for where none is exposed. Several are joined by
    /// a comma and a blank, in order of first appearance.
    pub served_version: String,
    /// The cost in whole cents, rounded up, or none where no result line states one. Rounded up, because ceilings add
    /// it up: rounded to the nearest, a batch of cheap sessions would be free.
    pub cost_cents: Option<u64>,
    /// The cost that the harness reports, in US dollars, as its number is written.
    pub reported_usd: Option<String>,
    /// The cost of the tokens at list prices, or none where a model or a token count is not known.
    pub recomputed: Option<Recomputed>,
    /// Sentences for the transcript about what is not as asked for, in a fixed order.
    pub remarks: Vec<String>,
}

/// An amount in hundred-millionths of a US dollar. Its text is the decimal number of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recomputed(pub u128);

/// A list price is a whole number of these for each token.
const PER_USD: u128 = 100_000_000;
/// The power of ten of [`PER_USD`].
const SCALE: i32 = 8;

/// The list prices: the model without its date, US dollars for a million input tokens, and for a million output tokens.
const PRICES: [(&str, u128, u128); 8] = [
    ("claude-haiku-4-5", 1, 5),
    ("claude-sonnet-4", 3, 15),
    ("claude-sonnet-4-5", 3, 15),
    ("claude-sonnet-4-6", 3, 15),
    ("claude-opus-4", 15, 75),
    ("claude-opus-4-1", 15, 75),
    ("claude-opus-4-5", 5, 25),
    ("claude-opus-4-6", 5, 25),
];

/// What the metadata of `log` says about a session that asked for the model `asked`.
#[must_use]
pub fn provider(log: &SessionLog, asked: &str) -> Provider {
    let mut remarks = Vec::new();
    let served_version = served(log, asked, &mut remarks);
    let reported_usd = log.result.as_ref().and_then(|result| result.cost_usd.clone());
    let reported = reported_usd.as_deref().and_then(Decimal::parse);
    let cost_cents = reported.and_then(Decimal::cents_rounded_up);
    if reported_usd.is_some() && cost_cents.is_none() {
        remarks.push("The harness reported a cost that is no amount of money, so none is recorded.".into());
    }
    let usage = log.result.as_ref().map(|result| result.usage.as_slice()).unwrap_or_default();
    let recomputed = recompute(usage, &mut remarks);
    for Usage { model, .. } in usage.iter().filter(|usage| usage.cost_basis.as_deref() == Some("unknown")) {
        remarks.push(format!("The harness has no list price for {model}: its cost is a guess of the harness."));
    }
    if let (Some(reported), Some(Recomputed(ours))) = (reported, recomputed) {
        let theirs = reported.scaled(SCALE).map_or(u128::MAX, |(units, _)| units);
        if theirs.abs_diff(ours).saturating_mul(10) > theirs {
            remarks.push(format!(
                "The harness reported {} USD, the tokens at list prices come to {} USD: they differ by more than 10%.",
                reported_usd.as_deref().unwrap_or_default(),
                Recomputed(ours),
            ));
        }
    }
    Provider { served_version, cost_cents, reported_usd, recomputed, remarks }
}

fn served(log: &SessionLog, asked: &str, remarks: &mut Vec<String>) -> String {
    let models = &log.models.first;
    if models.is_empty() {
        remarks.push(format!("No served version is exposed: {asked} is the name that was asked for."));
        return asked.into();
    }
    let all = models.join(", ");
    if models.len() > 1 {
        remarks.push(format!("The served version changed within the session: {all}."));
    }
    let others: Vec<_> = models.iter().filter(|model| !is_served_as(asked, model)).map(String::as_str).collect();
    if !others.is_empty() {
        remarks.push(format!("The session asked for {asked} and was served by {}.", others.join(", ")));
    }
    all
}

/// Whether `served` is a version of the model asked for. A date counts only where both names carry one; an alias of
/// one word (`haiku`) asks for its family.
fn is_served_as(asked: &str, served: &str) -> bool {
    let ((asked, asked_date), (served, served_date)) = (undated(asked), undated(served));
    let same = asked == served || (!asked.contains('-') && served.split('-').any(|part| part == asked));
    same && (asked_date.is_none() || served_date.is_none() || asked_date == served_date)
}

/// A model's name without its date and without what says how it is used (`[1m]`, `-latest`), and the date.
fn undated(model: &str) -> (&str, Option<&str>) {
    let model = model.split_once('[').map_or(model, |(name, _)| name);
    let model = model.strip_suffix("-latest").unwrap_or(model);
    match model.rsplit_once('-') {
        Some((name, date)) if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) => (name, Some(date)),
        _ => (model, None),
    }
}

/// The cost of `usage` at list prices: cache reads at a tenth of the input price, cache writes for five minutes at 1.25
/// of it and for an hour at twice. None where there is no usage, or a part of it cannot be priced, which is remarked.
fn recompute(usage: &[Usage], remarks: &mut Vec<String>) -> Option<Recomputed> {
    let mut sum = Some(0u128);
    for usage in usage {
        let cost = price(usage);
        if cost.is_none() {
            remarks.push(format!("The cost is not recomputed: no list price or no token count of {}.", usage.model));
        }
        sum = sum.and_then(|sum| sum.checked_add(cost?));
    }
    sum.filter(|_| !usage.is_empty()).map(Recomputed)
}

fn price(usage: &Usage) -> Option<u128> {
    let (_, input, output) = PRICES.iter().find(|(model, ..)| *model == undated(&usage.model).0)?;
    // US dollars for a million tokens, in PER_USD parts for one token.
    let (input, output) = (input * PER_USD / 1_000_000, output * PER_USD / 1_000_000);
    let write_1h = u128::from(usage.cache_write_1h.unwrap_or(0));
    let write_5m = u128::from(usage.cache_write?).saturating_sub(write_1h);
    let parts = [
        u128::from(usage.input?) * input,
        u128::from(usage.output?) * output,
        u128::from(usage.cache_read?) * input / 10,
        write_5m * input * 5 / 4,
        write_1h * input * 2,
    ];
    Some(parts.into_iter().sum())
}

impl fmt::Display for Recomputed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{}.{:08}", self.0 / PER_USD, self.0 % PER_USD);
        f.write_str(digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A decimal number as it is written: `digits` times ten to the power of `exponent`. A cost is no binary fraction, and
/// one that is read as one can cross a cent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// A JSON number that is not negative, or none: another value, or more digits than money has.
    fn parse(text: &str) -> Option<Self> {
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse().ok()?),
            None => (text, 0i32),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{fraction}");
        if digits.bytes().any(|b| !b.is_ascii_digit()) {
            return None;
        }
        let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        Some(Self { digits: digits.parse().ok()?, exponent })
    }

    /// The whole part of the number times ten to the power of `power`, and whether something is left. None where that
    /// is too large.
    fn scaled(self, power: i32) -> Option<(u128, bool)> {
        if self.digits == 0 {
            return Some((0, false));
        }
        let power = self.exponent.checked_add(power)?;
        let Some(factor) = 10u128.checked_pow(power.unsigned_abs()) else {
            return (power < 0).then_some((0, true));
        };
        if power < 0 {
            Some((self.digits / factor, !self.digits.is_multiple_of(factor)))
        } else {
            Some((self.digits.checked_mul(factor)?, false))
        }
    }

    fn cents_rounded_up(self) -> Option<u64> {
        let (cents, more) = self.scaled(2)?;
        u64::try_from(cents).ok()?.checked_add(u64::from(more))
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::ResultLine;
    use super::super::stream;
    use super::*;
    use proptest::prelude::*;

    fn harness_log(name: &str) -> SessionLog {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/harness-logs").join(name);
        stream::read(std::fs::read(path).unwrap().as_slice()).unwrap()
    }

    fn models(names: &[&str]) -> SessionLog {
        let line =
            |name: &&str| format!("{{\"type\":\"assistant\",\"message\":{{\"model\":\"{name}\",\"content\":[]}}}}\n");
        stream::read(names.iter().map(line).collect::<String>().as_bytes()).unwrap()
    }

    fn cost(usd: &str, usage: Vec<Usage>) -> SessionLog {
        let result = ResultLine { cost_usd: Some(usd.into()), usage, ..ResultLine::default() };
        SessionLog { result: Some(result), ..models(&["claude-haiku-4-5-20251001"]) }
    }

    fn usage(model: &str, input: u64, output: u64) -> Usage {
        Usage {
            model: model.into(),
            input: Some(input),
            output: Some(output),
            cache_read: Some(0),
            cache_write: Some(0),
            cache_write_1h: None,
            cost_basis: Some("list".into()),
        }
    }

    fn cents(usd: &str) -> Option<u64> {
        provider(&cost(usd, vec![]), "haiku").cost_cents
    }

    #[test]
    fn a_clean_session_has_a_version_with_its_date_a_cost_and_no_remark() {
        let read = provider(&harness_log("26_recommended_clean.jsonl"), "claude-haiku-4-5");
        let expected = Provider {
            served_version: "claude-haiku-4-5-20251001".into(),
            cost_cents: Some(4),
            reported_usd: Some("0.037334".into()),
            recomputed: Some(Recomputed(3_733_400)),
            remarks: vec![],
        };
        assert_eq!(read, expected);
        assert_eq!(Recomputed(3_733_400).to_string(), "0.037334");
    }

    #[test]
    fn the_served_version_is_that_of_the_driven_conversation() {
        let line =
            r#"{"type":"assistant","message":{"model":"claude-opus-4-6","content":[]},"parent_tool_use_id":"t"}"#;
        let read = provider(&stream::read(line.as_bytes()).unwrap(), "sonnet");
        assert_eq!(read.served_version, "sonnet");
        assert_eq!(read.remarks, ["No served version is exposed: sonnet is the name that was asked for."]);
    }

    #[test]
    fn a_version_that_changes_and_another_model_than_asked_for_are_stated() {
        let read = provider(&models(&["claude-haiku-4-5-20251001", "claude-haiku-4-5-20260101"]), "haiku");
        assert_eq!(read.served_version, "claude-haiku-4-5-20251001, claude-haiku-4-5-20260101");
        assert_eq!(read.remarks.len(), 1);
        let read = provider(&models(&["claude-sonnet-4-5-20250929"]), "claude-haiku-4-5");
        assert_eq!(
            read.remarks,
            ["The session asked for claude-haiku-4-5 and was served by claude-sonnet-4-5-20250929."]
        );
    }

    #[test]
    fn a_date_and_an_alias_are_the_model_that_was_asked_for() {
        for (asked, served, same) in [
            ("claude-haiku-4-5", "claude-haiku-4-5-20251001", true),
            ("claude-haiku-4-5-20251001", "claude-haiku-4-5-20251001", true),
            ("claude-haiku-4-5-20251001", "claude-haiku-4-5", true),
            ("claude-haiku-4-5-20250101", "claude-haiku-4-5-20251001", false),
            ("haiku", "claude-haiku-4-5-20251001", true),
            ("sonnet[1m]", "claude-sonnet-4-6", true),
            ("claude-sonnet-4-6[1m]", "claude-sonnet-4-6", true),
            ("claude-haiku-latest", "claude-haiku-20251001", true),
            ("opus", "claude-haiku-4-5-20251001", false),
            ("claude-opus-4", "claude-opus-4-5", false),
            ("claude-opus-4-5", "claude-opus-4", false),
            ("", "claude-opus-4", false),
        ] {
            assert_eq!(is_served_as(asked, served), same, "{asked} {served}");
        }
    }

    #[test]
    fn a_cost_is_whole_cents_rounded_up_from_the_number_as_it_is_written() {
        for (usd, expected) in [
            ("0", Some(0)),
            ("0.0", Some(0)),
            ("0e9", Some(0)),
            ("0.01", Some(1)),
            ("0.02296", Some(3)),
            ("0.29", Some(29)),
            ("1.1", Some(110)),
            ("0.010000000000000000001", Some(2)),
            ("5e-7", Some(1)),
            ("1E-999999", Some(1)),
            ("1.25e2", Some(12500)),
            ("12", Some(1200)),
            ("184467440737095516.15", Some(u64::MAX)),
            ("184467440737095516.16", None),
            ("184467440737095516.151", None),
            ("1e999999999", None),
            ("1e99999999999", None),
            ("-0.01", None),
            ("\"0.01\"", None),
            ("true", None),
            ("", None),
            ("99999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(cents(usd), expected, "{usd}");
        }
    }

    #[test]
    fn a_run_that_states_no_cost_has_none_and_never_zero() {
        let read = provider(&models(&["claude-haiku-4-5"]), "haiku");
        assert_eq!((read.cost_cents, read.reported_usd, read.recomputed), (None, None, None));
        let read = provider(&cost("-1", vec![]), "haiku");
        assert_eq!(read.cost_cents, None);
        assert_eq!(read.remarks.len(), 1);
        assert_eq!(provider(&harness_log("17_sigterm_no_result.jsonl"), "haiku").cost_cents, None);
        assert_eq!(provider(&harness_log("10_provider_529.jsonl"), "haiku").cost_cents, Some(0));
    }

    #[test]
    fn the_cost_recomputed_from_tokens_agrees_with_every_real_log() {
        for entry in
            std::fs::read_dir(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/harness-logs")).unwrap()
        {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".jsonl") {
                let read = provider(&harness_log(&name), "haiku");
                assert!(!read.remarks.iter().any(|remark| remark.contains("10%")), "{name}: {:?}", read.remarks);
            }
        }
    }

    #[test]
    fn cached_tokens_have_their_own_prices() {
        let tokens = Usage {
            cache_read: Some(1_000_000),
            cache_write: Some(3_000_000),
            cache_write_1h: Some(2_000_000),
            ..usage("claude-sonnet-4-5-20250929", 1_000_000, 1_000_000)
        };
        // 3 + 15 + 0.30 + 3.75 + 2 * 6
        assert_eq!(provider(&cost("34.05", vec![tokens]), "haiku").recomputed.unwrap().to_string(), "34.05");
    }

    #[test]
    fn a_difference_over_a_tenth_is_stated_with_both_costs() {
        let tokens = || vec![usage("claude-haiku-4-5", 1_000_000, 0)];
        for (usd, stated) in
            [("1", false), ("0.91", false), ("0.9", true), ("1.11", false), ("1.12", true), ("0", true)]
        {
            let remarks = provider(&cost(usd, tokens()), "haiku").remarks;
            assert_eq!(!remarks.is_empty(), stated, "{usd}: {remarks:?}");
        }
        let remarks = provider(&cost("0.5", tokens()), "haiku").remarks;
        assert!(remarks[0].contains("0.5 USD") && remarks[0].contains(" 1 USD"), "{remarks:?}");
    }

    #[test]
    fn a_model_without_a_price_and_a_cost_without_a_basis_are_stated() {
        let unknown = Usage { cost_basis: Some("unknown".into()), ..usage("some-model", 1, 1) };
        let read = provider(&cost("0.01", vec![unknown]), "haiku");
        assert_eq!(read.recomputed, None);
        assert_eq!(read.remarks.len(), 2, "{:?}", read.remarks);
        let beyond = Usage { input: None, ..usage("claude-haiku-4-5", 1, 1) };
        assert_eq!(provider(&cost("0.01", vec![beyond]), "haiku").recomputed, None);
        let most = usage("claude-opus-4-1", u64::MAX, u64::MAX);
        assert!(provider(&cost("0.01", vec![most]), "haiku").recomputed.is_some());
    }

    proptest! {
        #[test]
        fn cents_are_less_than_one_above_the_amount_and_never_below(
            whole in 0u64..1_000_000,
            fraction in "[0-9]{1,12}",
        ) {
            let exact = u128::from(whole) * 10u128.pow(12) + format!("{fraction:0<12}").parse::<u128>().unwrap();
            let cent = 10u128.pow(10);
            let cents = u128::from(cents(&format!("{whole}.{fraction}")).unwrap());
            prop_assert!(cents * cent >= exact && cents * cent < exact + cent);
        }

        #[test]
        fn no_text_of_a_cost_panics(text in "[0-9eE.+-]{0,30}") {
            if let Some(cents) = cents(&text) {
                prop_assert!(text.parse::<f64>().unwrap() <= cents as f64 * 0.01 * (1.0 + 1e-9));
            }
        }
    }
}
