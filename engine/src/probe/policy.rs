//! The probe policy, `.headwater/probe.yml`: what the instrument is, what an arm loses or gains, and what a tier may
//! spend.
//!
//! Nothing has a default that spends: what a tier costs, how often it repeats and which arms it runs is declared or the
//! file is refused. Every key is of a closed set, at every level.

use super::declared::one_line;
use crate::corpus::CorpusError;
use crate::corpus::census::bounded_text;
use crate::corpus::declared::{self, At};
use crate::corpus::tree::Tree;
use headwater_contract::keys::{Arm, Category, Tier};
use headwater_contract::yaml::Limits;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;

/// Where the policy stands, relative to the root.
pub const PATH: &str = ".headwater/probe.yml";

/// One byte above the limit of YAML, so that the message about size is the one of the YAML reader.
const LARGEST: usize = Limits::DOCUMENT.bytes + 1;

/// A probe policy. Lists are in the order of the file; a list that is not declared is empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Policy {
    /// The paths that no arm has: the probe shelves and what is derived from them.
    pub instrument: Vec<String>,
    /// Files outside `docs/` that may name a probe.
    pub folds: Vec<String>,
    /// Probe to the documents that an earlier session wrote in answer to it.
    pub answer_keys: BTreeMap<String, Vec<String>>,
    /// Probe to the strings that give its answer away.
    pub leaks: BTreeMap<String, Vec<String>>,
    /// The probes that keep their leaks on purpose.
    pub leaks_kept: Vec<String>,
    /// What a campaign is sized for.
    pub power: Option<Power>,
    /// How long results stay regradable.
    pub retention: Option<Retention>,
    /// What each declared tier may do.
    pub tiers: BTreeMap<Tier, Envelope>,
}

/// What a campaign is sized for: two rates from 0 to 1, and the risk and the power of the test between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Power {
    /// The rate expected with the corpus.
    pub present: f64,
    /// The rate expected without it.
    pub absent: f64,
    /// The two-sided risk.
    pub alpha: f64,
    /// The power.
    pub power: f64,
    /// The categories that are pooled into one rate.
    pub pooled: Vec<Category>,
}

/// How long results stay regradable, and where the graders are registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// In days.
    pub keep_results_regradable_for_days: u64,
    /// The path of the registry.
    pub graders: String,
}

/// What a tier may spend and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The ceiling of a run, in cents.
    pub budget_cents: u64,
    /// The declared cost of one session, in cents.
    pub session_cost_cents: u64,
    /// Repetitions of each probe in each arm.
    pub repetitions: u64,
    /// The arms, each once.
    pub arms: Vec<Arm>,
    /// The turn cap of a session.
    pub max_turns: Option<u64>,
    /// What the absent arm lacks; empty exactly where the tier runs no absent arm.
    pub ablation: Vec<String>,
    /// The paths of each component arm that the tier runs.
    pub components: BTreeMap<Arm, Vec<String>>,
}

/// A tier that compares the present arm with the absent one.
#[must_use]
pub const fn is_paired(tier: Tier) -> bool {
    matches!(tier, Tier::Campaign | Tier::Documentation)
}

/// Whether a declared path covers `path`: it is that path, or a directory above it.
#[must_use]
pub fn covers(declared: &str, path: &str) -> bool {
    path.strip_prefix(declared).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Why a path may not stand in a declaration; nothing for a safe one.
#[must_use]
pub fn unsafe_path(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        Some("is empty")
    } else if path.starts_with('/') {
        Some("is absolute")
    } else if path.chars().any(char::is_control) {
        Some("holds a control character")
    } else if path.split('/').any(str::is_empty) {
        Some("has an empty component")
    } else if path.split('/').any(|c| matches!(c, "." | "..")) {
        Some("has a component `.` or `..`")
    } else {
        None
    }
}

/// Reads the policy of the corpus at `root`.
///
/// # Errors
/// Where there is none, where it is no regular file, or as [`parse`] gives.
pub fn read(root: &Path) -> Result<Policy, CorpusError> {
    let text = Tree::open(root).and_then(|tree| bounded_text(tree.file(PATH)?, LARGEST)).map_err(|e| {
        let error = CorpusError::new(format!("{}: {e}", root.join(PATH).display()));
        error.remedy(format!("declare what a run may spend in {PATH}, a regular file of UTF-8 text"))
    })?;
    parse(&text)
}

/// Reads a policy.
///
/// # Errors
/// The first thing that is wrong with it, with its line and the remedy.
pub fn parse(text: &str) -> Result<Policy, CorpusError> {
    let node = declared::read(PATH, text)?;
    let fields = At::top(PATH, &node).fields(&[
        "instrument",
        "folds",
        "answer_keys",
        "leaks",
        "leaks_kept",
        "power",
        "retention",
        "tiers",
    ])?;
    Ok(Policy {
        instrument: list(fields.get("instrument"), path)?,
        folds: list(fields.get("folds"), path)?,
        answer_keys: by_probe(fields.get("answer_keys"), path)?,
        leaks: by_probe(fields.get("leaks"), string)?,
        leaks_kept: list(fields.get("leaks_kept"), string)?,
        power: fields.get("power").map(read_power).transpose()?,
        retention: fields.get("retention").map(read_retention).transpose()?,
        tiers: fields.get("tiers").map(read_tiers).transpose()?.unwrap_or_default(),
    })
}

fn read_power(at: &At<'_>) -> Result<Power, CorpusError> {
    let fields = at.fields(&["present", "absent", "alpha", "power", "pooled"])?;
    Ok(Power {
        present: rate(fields.require("present")?)?,
        absent: rate(fields.require("absent")?)?,
        alpha: risk(fields.require("alpha")?)?,
        power: risk(fields.require("power")?)?,
        pooled: list(fields.get("pooled"), member)?,
    })
}

fn read_retention(at: &At<'_>) -> Result<Retention, CorpusError> {
    let fields = at.fields(&["keep_results_regradable_for_days", "graders"])?;
    Ok(Retention {
        keep_results_regradable_for_days: whole(fields.require("keep_results_regradable_for_days")?)?,
        graders: path(fields.require("graders")?)?,
    })
}

fn read_tiers(at: &At<'_>) -> Result<BTreeMap<Tier, Envelope>, CorpusError> {
    let tier = |(key, at): (&str, At<'_>)| {
        let tier = named(&at, key)?;
        Ok((tier, read_envelope(tier, &at)?))
    };
    at.entries()?.into_iter().map(tier).collect()
}

fn read_envelope(tier: Tier, at: &At<'_>) -> Result<Envelope, CorpusError> {
    let fields = at.fields(&[
        "budget_cents",
        "session_cost_cents",
        "repetitions",
        "arms",
        "max_turns",
        "ablation",
        "components",
    ])?;
    let envelope = Envelope {
        budget_cents: whole(fields.require("budget_cents")?)?,
        session_cost_cents: whole(fields.require("session_cost_cents")?)?,
        repetitions: whole(fields.require("repetitions")?)?,
        arms: read_arms(fields.require("arms")?)?,
        max_turns: fields.get("max_turns").map(turn_cap).transpose()?,
        ablation: list(fields.get("ablation"), path)?,
        components: fields.get("components").map(read_components).transpose()?.unwrap_or_default(),
    };
    hold_arms(tier, at, &envelope)?;
    Ok(envelope)
}

fn read_arms(at: &At<'_>) -> Result<Vec<Arm>, CorpusError> {
    let arms = list(Some(at), member)?;
    // Refuses an arm that stands twice.
    at.texts()?;
    if arms.is_empty() { Err(at.error("no arm").remedy("list the arms that the tier runs")) } else { Ok(arms) }
}

fn read_components(at: &At<'_>) -> Result<BTreeMap<Arm, Vec<String>>, CorpusError> {
    let component = |(key, at): (&str, At<'_>)| match named::<Arm>(&at, key)? {
        arm if arm.is_component() => Ok((arm, list(Some(&at), path)?)),
        arm => Err(at
            .error(format!("`{arm}` is no component arm"))
            .remedy("what the absent arm lacks is the `ablation` of its tier")),
    };
    at.entries()?.into_iter().map(component).collect()
}

/// The rules that bind the arms of a tier to one another and to what is declared for them.
fn hold_arms(tier: Tier, at: &At<'_>, envelope: &Envelope) -> Result<(), CorpusError> {
    let runs = |arm: Arm| envelope.arms.contains(&arm);
    let paths = |arm: &Arm| envelope.components.get(arm).is_some_and(|paths| !paths.is_empty());
    if is_paired(tier) && !(runs(Arm::Present) && runs(Arm::Absent)) {
        let cause = "the tier compares `present` with `absent` and does not run both";
        return Err(at.error(cause).remedy("list both under `arms`"));
    }
    if runs(Arm::Absent) && envelope.ablation.is_empty() {
        return Err(at.error("the arm `absent` has no ablation").remedy("list what it lacks under `ablation`"));
    }
    if !runs(Arm::Absent) && !envelope.ablation.is_empty() {
        let remedy = "list `absent` under `arms`, or remove `ablation`";
        return Err(at.error("there is an ablation and no arm `absent`").remedy(remedy));
    }
    if let Some(arm) = envelope.arms.iter().find(|arm| arm.is_component() && !paths(arm)) {
        return Err(at.error(format!("the arm `{arm}` has no paths")).remedy("list them under `components`"));
    }
    if let Some(arm) = envelope.components.keys().find(|arm| !runs(**arm)) {
        let cause = format!("there are components for the arm `{arm}`, which the tier does not run");
        return Err(at.error(cause).remedy("list the arm under `arms`, or remove its components"));
    }
    Ok(())
}

fn list<T>(at: Option<&At<'_>>, read: fn(&At<'_>) -> Result<T, CorpusError>) -> Result<Vec<T>, CorpusError> {
    at.map(At::items).transpose()?.unwrap_or_default().iter().map(read).collect()
}

fn by_probe(
    at: Option<&At<'_>>,
    read: fn(&At<'_>) -> Result<String, CorpusError>,
) -> Result<BTreeMap<String, Vec<String>>, CorpusError> {
    let entries = at.map(At::entries).transpose()?.unwrap_or_default();
    entries.into_iter().map(|(probe, at)| Ok((probe.to_owned(), list(Some(&at), read)?))).collect()
}

/// A key as a member of a closed set.
fn named<T: FromStr<Err: Display>>(at: &At<'_>, key: &str) -> Result<T, CorpusError> {
    key.parse().map_err(|e| at.error(e).remedy("correct or remove the key"))
}

/// A text as a member of a closed set.
fn member<T: FromStr<Err: Display>>(at: &At<'_>) -> Result<T, CorpusError> {
    at.text()?.parse().map_err(|e| at.error(e).remedy("correct or remove it"))
}

fn string(at: &At<'_>) -> Result<String, CorpusError> {
    match at.text()? {
        // It would be found in every text that it is looked for in.
        blank if blank.trim().is_empty() => Err(at.error("a blank text").remedy("write the text, or remove it")),
        text => Ok(text.to_owned()),
    }
}

fn path(at: &At<'_>) -> Result<String, CorpusError> {
    let path = at.node().text().ok_or_else(|| at.expected("a path"))?;
    match unsafe_path(path) {
        Some(why) => Err(at
            .error(format!("the path `{}` {why}", one_line(path)))
            .remedy("write it relative to the root of the corpus, as docs/probes")),
        None => Ok(path.to_owned()),
    }
}

fn whole(at: &At<'_>) -> Result<u64, CorpusError> {
    let text = at.text()?;
    let digits = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let number = if digits { text.parse().ok() } else { None };
    number.ok_or_else(|| {
        at.expected("a whole number").remedy(format!("write digits without leading zeros, at most {}", u64::MAX))
    })
}

fn turn_cap(at: &At<'_>) -> Result<u64, CorpusError> {
    match whole(at)? {
        0 => Err(at.expected("a cap of one turn at least").remedy("raise or remove it")),
        turns => Ok(turns),
    }
}

fn rate(at: &At<'_>) -> Result<f64, CorpusError> {
    let text = at.text()?;
    let decimal = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number = if decimal { text.parse().ok() } else { None };
    number.filter(|n| (0.0..=1.0).contains(n)).ok_or_else(|| at.expected("a number from 0 to 1, as 0.15"))
}

fn risk(at: &At<'_>) -> Result<f64, CorpusError> {
    let risk = rate(at)?;
    if risk > 0.0 && risk < 1.0 { Ok(risk) } else { Err(at.expected("a number above 0 and below 1, as 0.05")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHOLE: &str = "instrument: [docs/probes, exports/probes.json]
folds: [CODEOWNERS]
answer_keys: {WM-PR-0001: [docs/decisions/a.md]}
leaks: {WM-PR-0001: ['kept for ten years', ten]}
leaks_kept: [WM-PR-0001]
power: {present: 0.15, absent: 0.08, alpha: 0.05, power: .8, pooled: [discovery, consistency]}
retention: {keep_results_regradable_for_days: 730, graders: engine/graders.json}
tiers:
  regression:
    budget_cents: 0
    session_cost_cents: 12
    repetitions: 1
    arms: [present]
  campaign:
    budget_cents: 18446744073709551615
    session_cost_cents: 12
    repetitions: 30
    arms: [absent, present, no-hook, mcp]
    ablation: [.headwater, docs]
    components: {no-hook: [.hooks/intent.sh], mcp: [tools/mcp]}
    max_turns: 40
";

    #[test]
    fn a_policy_is_read_whole() {
        let policy = parse(WHOLE).unwrap();
        assert_eq!(policy.instrument, ["docs/probes", "exports/probes.json"]);
        assert_eq!(policy.folds, ["CODEOWNERS"]);
        assert_eq!(policy.answer_keys["WM-PR-0001"], ["docs/decisions/a.md"]);
        assert_eq!(policy.leaks["WM-PR-0001"], ["kept for ten years", "ten"]);
        assert_eq!(policy.leaks_kept, ["WM-PR-0001"]);
        let power = policy.power.unwrap();
        assert_eq!((power.present, power.absent, power.alpha, power.power), (0.15, 0.08, 0.05, 0.8));
        assert_eq!(power.pooled, [Category::Discovery, Category::Consistency]);
        let graders = "engine/graders.json".to_owned();
        assert_eq!(policy.retention, Some(Retention { keep_results_regradable_for_days: 730, graders }));
        let regression = &policy.tiers[&Tier::Regression];
        assert_eq!((regression.budget_cents, regression.session_cost_cents, regression.repetitions), (0, 12, 1));
        assert_eq!((&regression.arms[..], regression.max_turns), (&[Arm::Present][..], None));
        let campaign = &policy.tiers[&Tier::Campaign];
        assert_eq!(campaign.arms, [Arm::Absent, Arm::Present, Arm::NoHook, Arm::Mcp]);
        assert_eq!((campaign.budget_cents, campaign.max_turns), (u64::MAX, Some(40)));
        assert_eq!(campaign.ablation, [".headwater", "docs"]);
        assert_eq!(campaign.components[&Arm::Mcp], ["tools/mcp"]);
    }

    #[test]
    fn what_is_not_declared_is_empty_and_allows_nothing() {
        for nothing in ["", "{}", "tiers:\n", "tiers: {}\nfolds: []\n"] {
            assert_eq!(parse(nothing).unwrap(), Policy::default());
        }
    }

    /// A change of the whole policy, and what the refusal of the changed one says.
    const REFUSED: &[(&str, &str, &str)] = &[
        ("folds:", "fold:", "2: the file: unknown key `fold`"),
        ("alpha: 0.05, ", "alpha: 0.05, beta: 1, ", "6: power: unknown key `beta`"),
        (", graders: engine/graders.json", ", grader: x", "7: retention: unknown key `grader`"),
        ("    max_turns: 40", "    turns: 40", "21: tiers.campaign: unknown key `turns`"),
        ("  regression:", "  smoke:", "`smoke` is no tier"),
        ("no-hook: [", "no-hooks: [", "`no-hooks` is no arm"),
        ("alpha: 0.05, ", "", "`alpha` is missing"),
        (", graders: engine/graders.json", "", "`graders` is missing"),
        ("    budget_cents: 0\n", "", "9: tiers.regression: `budget_cents` is missing"),
        ("    session_cost_cents: 12\n", "", "`session_cost_cents` is missing"),
        ("    repetitions: 1\n", "    repetitions:\n", "`repetitions` is missing"),
        ("    arms: [present]\n", "", "`arms` is missing"),
        ("docs/probes,", "/docs/probes,", "`/docs/probes` is absolute"),
        ("docs/probes,", "'',", "`` is empty"),
        ("docs/probes,", "docs/probes/,", "has an empty component"),
        ("docs/probes,", "docs//probes,", "has an empty component"),
        ("docs/probes,", "./docs,", "has a component `.` or `..`"),
        ("docs/probes,", "docs/..,", "has a component `.` or `..`"),
        ("docs/probes,", "\"a\\nb\",", "`\"a\\nb\"` holds a control character"),
        ("[docs/decisions/a.md]", "[../a.md]", "3: answer_keys.WM-PR-0001: the path"),
        ("engine/graders.json", "/graders.json", "is absolute"),
        ("[.headwater, docs]", "[.headwater/]", "has an empty component"),
        ("[tools/mcp]", "[tools/../mcp]", "has a component"),
        ("[CODEOWNERS]", "CODEOWNERS", "2: folds: expected a list, found `CODEOWNERS`"),
        ("[CODEOWNERS]", "[[CODEOWNERS]]", "expected a path, found a list"),
        ("ten]", "' ']", "4: leaks.WM-PR-0001: a blank text"),
        ("ten]", "'']", "expected a text"),
        ("[discovery,", "[discoveries,", "`discoveries` is no probe category"),
        ("present: 0.15", "present: 15", "from 0 to 1"),
        ("present: 0.15", "present: nan", "from 0 to 1"),
        ("present: 0.15", "present: 1e-1", "from 0 to 1"),
        ("present: 0.15", "present: -0.1", "from 0 to 1"),
        ("alpha: 0.05", "alpha: 0", "above 0 and below 1"),
        ("power: .8", "power: 1.0", "above 0 and below 1"),
        ("budget_cents: 0", "budget_cents: 1.5", "expected a whole number, found `1.5`"),
        ("budget_cents: 0", "budget_cents: -1", "expected a whole number"),
        ("budget_cents: 0", "budget_cents: +1", "expected a whole number"),
        ("budget_cents: 0", "budget_cents: 010", "expected a whole number"),
        ("budget_cents: 0", "budget_cents: 18446744073709551616", "expected a whole number"),
        ("max_turns: 40", "max_turns: 0", "21: tiers.campaign.max_turns: expected a cap"),
        ("arms: [present]", "arms: []", "13: tiers.regression.arms: no arm"),
        ("arms: [present]", "arms: [present, present]", "`present` stands twice"),
        ("arms: [present]", "arms: [control]", "`control` is no arm"),
        ("arms: [present]", "arms: [present, absent]", "`absent` has no ablation"),
        ("arms: [present]", "arms: [present]\n    ablation: [docs]", "no arm `absent`"),
        ("arms: [present]", "arms: [present, no-skills]", "`no-skills` has no paths"),
        ("arms: [present]", "arms: [present]\n    components: {mcp: [a]}", "`mcp`, which the tier does not run"),
        ("no-hook: [.hooks/intent.sh]", "no-hook: []", "`no-hook` has no paths"),
        ("no-hook: [", "absent: [", "`absent` is no component arm"),
        ("ablation: [.headwater, docs]", "ablation: []", "`absent` has no ablation"),
        ("arms: [absent, present,", "arms: [present,", "does not run both"),
        ("arms: [absent, present,", "arms: [absent,", "does not run both"),
        ("leaks_kept: [WM-PR-0001]", "leaks_kept: &a [x]", "anchors"),
        ("leaks_kept: [WM-PR-0001]", "folds: [x]", "the key `folds` stands twice"),
        ("leaks_kept: [WM-PR-0001]", "leaks_kept: [x", "not YAML"),
    ];

    #[test]
    fn what_is_wrong_refuses_the_whole_file_with_its_line() {
        for (from, to, part) in REFUSED {
            assert!(WHOLE.contains(from), "{from}");
            let error = parse(&WHOLE.replacen(from, to, 1)).unwrap_err();
            assert!(error.message.starts_with(".headwater/probe.yml:"), "{}", error.message);
            assert!(error.message.contains(part), "{to}: `{}` holds no `{part}`", error.message);
        }
    }

    #[test]
    fn a_documentation_tier_is_paired_too_and_a_regression_tier_is_not() {
        let only = |tier: &str| {
            parse(&format!(
                "tiers: {{{tier}: {{budget_cents: 1, session_cost_cents: 1, repetitions: 1, arms: [present]}}}}"
            ))
        };
        assert!(only("regression").is_ok());
        assert!(only("documentation").unwrap_err().message.contains("does not run both"));
    }

    #[test]
    fn a_declared_path_covers_itself_and_what_is_below_it() {
        for path in ["docs/probes", "docs/probes/a.md", "docs/probes/old/a.md"] {
            assert!(covers("docs/probes", path), "{path}");
        }
        for path in ["docs", "docs/probes.md", "docs/probes-old/a.md", "a/docs/probes", ""] {
            assert!(!covers("docs/probes", path), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_policy_is_a_crash(text in "([a-z_]{1,12}: ?(\\[[a-z/., ]{0,12}\\]|[0-9]{0,24}|\\{[a-z]{0,4}: [a-z]{0,4}\\})?\n( {2})?){0,8}") {
            let _ = parse(&text);
        }

        #[test]
        fn a_safe_path_stays_below_where_it_is_joined(path in "[a./\n]{0,12}") {
            if unsafe_path(&path).is_none() {
                let inside = Path::new(&path).components().all(|c| matches!(c, std::path::Component::Normal(_)));
                prop_assert!(inside && Path::new(&path).to_str() == Some(&path));
            }
        }
    }
}
