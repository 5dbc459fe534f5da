//! The plan over small corpora on disk: every refusal, the forms of the output, and what changes no byte of it.

use super::*;
use crate::corpus::testing::{Site, decision};
use crate::corpus::{LOCK, TAXONOMY};
use crate::probe::policy;
use crate::probe::refusals::{REFUSALS, Reason};
use headwater_contract::keys::Expectation;
use std::fs;

const POLICY: &str = "instrument: [docs/probes]
folds: [tools/z.txt, tools/a.txt]
answer_keys: {WM-PR-0002: [docs/decisions/b.md, docs/decisions/a.md]}
tiers:
  regression:
    budget_cents: 200
    session_cost_cents: 10
    repetitions: 2
    arms: [present, no-hook, mcp]
    components: {no-hook: [.hooks/z, .hooks/a], mcp: [.mcp.json]}
    max_turns: 40
  campaign:
    budget_cents: 18446744073709551615
    session_cost_cents: 10
    repetitions: 20
    arms: [present, absent, no-skills]
    ablation: [.headwater, docs/decisions/index]
    components: {no-skills: [.skills]}
";

fn probe(id: &str, category: &str, form: &str, examines: &str, expectation: &str) -> String {
    format!(
        "---\nid: {id}\nprobe_category: {category}\nexpectation: {form}\noracle: none\nrelations:\n  examines: \
         {examines}\n---\n# {id}\n\n## Task\n\nDo it.\n\n## Expectation\n\n{expectation}\n"
    )
}

const ANSWERS: &str = "```yaml\nanswers: [current, 'retired, late', \"no\"]\nexpected: [current]\n```";

const OPENED: &str = "docs/probes/opened.md";
const ANSWERED: &str = "docs/probes/answered.md";
const CITED: &str = "docs/probes/cited.md";

/// A corpus as files, what is asked of it, and what it is declared to cost.
#[derive(Clone)]
pub(super) struct Case {
    files: BTreeMap<&'static str, String>,
    policy: String,
    request: Request,
}

pub(super) fn case() -> Case {
    let files = BTreeMap::from([
        ("docs/decisions/a.md", decision("WM-DR-0001", "")),
        ("docs/decisions/b.md", decision("WM-DR-0002", "")),
        ("tools/meter.toml", "rate = 1\n".to_owned()),
        (OPENED, probe("WM-PR-0001", "discovery", "opened", "[WM-DR-0001, tools/meter.toml]", "It is opened.")),
        (ANSWERED, probe("WM-PR-0002", "sufficiency", "answered", "[WM-DR-0002]", ANSWERS)),
        (CITED, probe("WM-PR-0003", "discovery", "cited", "[docs/decisions/a.md]", "It is cited.")),
    ]);
    let request = Request {
        tier: Tier::Regression,
        category: None,
        exclude: Vec::new(),
        arm: None,
        repetitions: None,
        seed: "0".into(),
    };
    Case { files, policy: POLICY.into(), request }
}

impl Case {
    /// Replaces a part of a file that has to be there.
    fn edit(mut self, path: &'static str, from: &str, to: &str) -> Self {
        let text = self.files.get_mut(path).unwrap();
        assert!(text.contains(from), "{path} holds no {from}");
        *text = text.replacen(from, to, 1);
        self
    }

    fn edit_policy(mut self, from: &str, to: &str) -> Self {
        assert!(self.policy.contains(from), "the policy holds no {from}");
        self.policy = self.policy.replacen(from, to, 1);
        self
    }

    fn file(mut self, path: &'static str, text: impl Into<String>) -> Self {
        self.files.insert(path, text.into());
        self
    }

    fn without(mut self, paths: &[&str]) -> Self {
        self.files.retain(|path, _| !paths.contains(path));
        self
    }

    fn ask(mut self, change: impl FnOnce(&mut Request)) -> Self {
        change(&mut self.request);
        self
    }

    fn exclude(self, id: &str) -> Self {
        self.ask(|r| r.exclude.push(id.into()))
    }

    fn site(&self, paths: impl Iterator<Item = &'static str>) -> Site {
        let site = Site::minimal();
        for path in ["docs/decisions/one.md", "docs/probes/find-one.md"] {
            fs::remove_file(site.path(path)).unwrap();
        }
        paths.for_each(|path| site.write(path, &self.files[path]));
        site.write(policy::PATH, &self.policy);
        site
    }

    pub(super) fn on_disk(&self) -> Site {
        self.site(self.files.keys().copied())
    }

    fn plan_of(&self, site: &Site) -> Plan {
        compose(&site.read(), &policy::read(&site.path("")).unwrap(), &self.request).unwrap()
    }

    fn plan(&self) -> Plan {
        self.plan_of(&self.on_disk())
    }

    fn refused(&self, reason: Reason, part: &str) {
        let plan = self.plan();
        let refusal = plan.refusal.as_ref().unwrap_or_else(|| panic!("`{}` was planned", reason.id()));
        assert_eq!(refusal.id, reason.id(), "{}", refusal.message);
        assert!(refusal.message.contains(part), "`{}` names no `{part}`: {}", refusal.id, refusal.message);
        assert!(plan.selection.is_empty() && plan.read_set.is_empty() && plan.identifiers.is_empty(), "{}", refusal.id);
        assert!(text::render(&plan).ends_with(&format!("\n## This run does not start\n\n{}\n", refusal.message)));
    }

    fn starts(&self, what: &str) -> Plan {
        let plan = self.plan();
        assert_eq!(plan.refusal, None, "{what}");
        assert!(!plan.selection.is_empty());
        plan
    }
}

type Change = fn(Case) -> Case;

/// Each refusal: a corpus that gives it, what its message names, and a corpus that nearly does.
const CASES: &[(Reason, Change, &str, Change)] = &[
    (
        Reason::TierUndeclared,
        |c| c.ask(|r| r.tier = Tier::Documentation),
        "`documentation`",
        |c| c.ask(|r| r.tier = Tier::Campaign),
    ),
    (Reason::NoProbe, |c| c.without(&[OPENED, ANSWERED, CITED]), "`probe`", |c| c.without(&[OPENED, ANSWERED])),
    (
        Reason::ProbeNoIdentifier,
        |c| c.edit(OPENED, "id: WM-PR-0001\n", ""),
        OPENED,
        |c| c.edit(OPENED, "id: WM-PR-0001\n", "id: \"WM-PR-0001\"\n"),
    ),
    (Reason::ProbeNoIdentifier, |c| c.edit(OPENED, "id: WM-PR-0001\n", "id: \"WM\\nPR\"\n"), OPENED, |c| c),
    (
        Reason::IdentifierShared,
        |c| c.edit(CITED, "id: WM-PR-0003", "id: WM-PR-0002"),
        "`WM-PR-0002`",
        |c| c.edit(CITED, "id: WM-PR-0003", "id: WM-PR-0004"),
    ),
    (Reason::ExcludedUnknown, |c| c.exclude("WM-PR-0099"), "`WM-PR-0099`", |c| c.exclude("WM-PR-0002")),
    (Reason::ExcludedUnknown, |c| c.exclude("WM-DR-0001"), "`WM-DR-0001`", |c| c.exclude("WM-PR-0001")),
    (
        Reason::CategoryMissing,
        |c| c.edit(CITED, "probe_category: discovery\n", ""),
        "`WM-PR-0003`",
        |c| c.edit(CITED, "probe_category: discovery\n", "").exclude("WM-PR-0003"),
    ),
    (
        Reason::CategoryUnknown,
        |c| c.edit(CITED, "discovery", "Discovery").ask(|r| r.category = Some(Category::Sufficiency)),
        "`Discovery`",
        |c| c.edit(CITED, "discovery", "Discovery").exclude("WM-PR-0003"),
    ),
    (
        Reason::EmptySelection,
        |c| c.ask(|r| r.category = Some(Category::Navigability)),
        "`navigability`",
        |c| c.ask(|r| r.category = Some(Category::Sufficiency)),
    ),
    (
        Reason::EmptySelection,
        |c| c.exclude("WM-PR-0001").exclude("WM-PR-0002").exclude("WM-PR-0003"),
        "3 exclusions",
        |c| c.exclude("WM-PR-0001").exclude("WM-PR-0002"),
    ),
    (
        Reason::RepetitionsZero,
        |c| c.ask(|r| r.repetitions = Some(0)),
        "0 repetitions",
        |c| c.ask(|r| r.repetitions = Some(1)),
    ),
    (Reason::RepetitionsZero, |c| c.edit_policy("repetitions: 2\n", "repetitions: 0\n"), "declare", |c| c),
    (
        Reason::RepetitionsAbove,
        |c| c.ask(|r| r.repetitions = Some(3)),
        "3 repetitions",
        |c| c.ask(|r| r.repetitions = Some(2)),
    ),
    (
        Reason::ArmNotRun,
        |c| c.ask(|r| r.arm = Some(Arm::Absent)),
        "`absent`; it runs present, no-hook, mcp",
        |c| c.ask(|r| r.arm = Some(Arm::Mcp)),
    ),
    (
        Reason::ArmUnpaired,
        |c| c.ask(|r| (r.tier, r.arm) = (Tier::Campaign, Some(Arm::Present))),
        "`present` alone",
        |c| c.ask(|r| r.arm = Some(Arm::Present)),
    ),
    (
        // Three probes times three arms times this is one above 64 bits.
        Reason::CountOverflow,
        |c| c.edit_policy("cents: 10\n    repetitions: 2\n", "cents: 0\n    repetitions: 2049638230412172402\n"),
        "2049638230412172402 repetitions",
        |c| c.edit_policy("cents: 10\n    repetitions: 2\n", "cents: 0\n    repetitions: 2049638230412172401\n"),
    ),
    (
        // 180 sessions times this is one step above 64 bits.
        Reason::CountOverflow,
        |c| {
            c.ask(|r| r.tier = Tier::Campaign)
                .edit_policy("cents: 10\n    repetitions: 20", "cents: 102481911520608621\n    repetitions: 20")
        },
        "at 102481911520608621 cents",
        |c| {
            c.ask(|r| r.tier = Tier::Campaign)
                .edit_policy("cents: 10\n    repetitions: 20", "cents: 102481911520608620\n    repetitions: 20")
        },
    ),
    (
        Reason::ExpectationMissing,
        |c| c.edit(OPENED, "expectation: opened\n", ""),
        "`WM-PR-0001`",
        |c| c.edit(OPENED, "expectation: opened\n", "").exclude("WM-PR-0001"),
    ),
    (
        Reason::ExpectationUnknown,
        |c| c.edit(OPENED, "expectation: opened", "expectation: read"),
        "`read`",
        |c| {
            c.edit(OPENED, "expectation: opened", "expectation: read").ask(|r| r.category = Some(Category::Sufficiency))
        },
    ),
    (
        Reason::TaskMissing,
        |c| c.edit(OPENED, "Do it.\n", "  \n"),
        "`WM-PR-0001`",
        |c| c.edit(OPENED, "Do it.\n", ".\n"),
    ),
    (
        Reason::TaskMissing,
        |c| c.edit(OPENED, "## Task\n", "### Task\n"),
        OPENED,
        |c| c.edit(OPENED, "## Task\n", "## Task ##\n"),
    ),
    (
        Reason::OracleMissing,
        |c| c.edit(OPENED, "expectation: opened", "expectation: patched"),
        "`WM-PR-0001`",
        |c| {
            c.edit(OPENED, "expectation: opened", "expectation: patched").edit(
                OPENED,
                "oracle: none",
                "oracle: link.target.missing",
            )
        },
    ),
    (
        Reason::OracleUnknown,
        |c| c.edit(OPENED, "opened\noracle: none", "patched\noracle: link.target.mising"),
        "`link.target.mising`",
        |c| c.edit(OPENED, "oracle: none", "oracle: link.target.mising"),
    ),
    (Reason::NoClosedSet, |c| c.edit(ANSWERED, ANSWERS, "current"), "no fenced `yaml` block", |c| c),
    (
        Reason::NoClosedSet,
        |c| c.edit(ANSWERED, "## Expectation", "## Expected"),
        "no section `## Expectation`",
        |c| c.edit(ANSWERED, "answers: [current", "answers: [Current, current"),
    ),
    (Reason::NoClosedSet, |c| c.edit(ANSWERED, "answers:", "answer:"), "`answer` is no key", |c| c),
    (
        Reason::NoClosedSet,
        |c| c.edit(ANSWERED, "[current, 'retired, late', \"no\"]", "[]"),
        "`answers` is empty",
        |c| c,
    ),
    (
        Reason::NoClosedSet,
        |c| c.edit(ANSWERED, "answers: [current", "answers: [current, current"),
        "stands twice",
        |c| c,
    ),
    (
        Reason::NoClosedSet,
        |c| c.edit(ANSWERED, "expected: [current]\n```", "expected: [current]"),
        "never closed",
        |c| c,
    ),
    (
        Reason::ExpectedNotProper,
        |c| c.edit(ANSWERED, "expected: [current]", "expected: [Current]"),
        "`Current` is expected",
        |c| c.edit(ANSWERED, "expected: [current]", "expected: [\"no\"]"),
    ),
    (
        Reason::ExpectedNotProper,
        |c| c.edit(ANSWERED, "expected: [current]", "expected: [\"no\", current, 'retired, late']"),
        "every answer is expected",
        |c| c.edit(ANSWERED, "expected: [current]", "expected: [\"no\", 'retired, late']"),
    ),
    (Reason::ExpectedNotProper, |c| c.edit(ANSWERED, "expected: [current]\n", ""), "no `expected`", |c| c),
    (Reason::ExpectedNotProper, |c| c.edit(ANSWERED, "expected: [current]", "expected: []"), "is empty", |c| c),
    (
        Reason::AnswersUnused,
        |c| c.edit(OPENED, "It is opened.", ANSWERS),
        "`opened`",
        |c| c.edit(OPENED, "It is opened.", "```yaml\nresults: [current]\n```\n\n```\nanswers: [a, b]\n```"),
    ),
    (
        Reason::TargetUnsafe,
        |c| c.edit(ANSWERED, "[WM-DR-0002]", "[../b.md]"),
        "`../b.md`",
        |c| c.edit(ANSWERED, "[WM-DR-0002]", "[docs/gone..md]"),
    ),
    (
        Reason::TargetUnsafe,
        |c| c.edit(ANSWERED, "[WM-DR-0002]", "[\"a.md\\tb\\nc.md\"]"),
        "a.md\\tb\\nc.md",
        |c| c.edit(ANSWERED, "[WM-DR-0002]", "[WM-DR-0099]"),
    ),
    (
        Reason::NoDocument,
        |c| c.edit(OPENED, "WM-DR-0001, ", "WM-DR-0099, "),
        "`WM-DR-0099`",
        |c| c.edit(OPENED, "WM-DR-0001, ", ""),
    ),
    (
        Reason::NoDocument,
        |c| c.edit(OPENED, "[WM-DR-0001, tools/meter.toml]", "[]").edit(OPENED, "opened", "not_opened"),
        "`not_opened`",
        |c| c.edit(OPENED, "opened", "not_opened"),
    ),
    (
        Reason::NoDocument,
        |c| c.edit(CITED, "docs/decisions/a.md", "tools/meter.toml"),
        "no typed document with an identifier",
        |c| c.edit(CITED, "docs/decisions/a.md", "tools/meter.toml, WM-DR-0002"),
    ),
    (
        Reason::ExaminesInstrument,
        |c| c.edit(ANSWERED, "WM-DR-0002", "WM-PR-0001"),
        OPENED,
        |c| c.edit(ANSWERED, "WM-DR-0002", "docs/probes-of-old/a.md"),
    ),
    (
        Reason::ExaminesAblation,
        |c| c.ask(|r| r.tier = Tier::Campaign).edit(ANSWERED, "WM-DR-0002", ".headwater/taxonomy.yml"),
        "`.headwater`",
        |c| c.edit(ANSWERED, "WM-DR-0002", ".headwater/taxonomy.yml"),
    ),
    (
        Reason::CostAboveCeiling,
        |c| c.edit_policy("budget_cents: 200", "budget_cents: 179"),
        "180 cents is above the ceiling of 179 cents",
        |c| c.edit_policy("budget_cents: 200", "budget_cents: 180"),
    ),
];

#[test]
fn every_refusal_is_given_by_a_corpus_and_not_by_one_that_nearly_gives_it() {
    case().starts("the corpus that each case changes");
    for (reason, gives, part, nearly) in CASES {
        gives(case()).refused(*reason, part);
        nearly(case()).starts(reason.id());
    }
    let given: BTreeSet<_> = CASES.iter().map(|(reason, ..)| *reason).collect();
    assert_eq!(given, REFUSALS.iter().copied().collect(), "each refusal of the table has a case");
}

#[test]
fn of_several_refusals_the_first_of_the_table_is_given_and_probes_go_by_identifier() {
    let all_wrong = |c: Case| {
        c.edit_policy("budget_cents: 200", "budget_cents: 1")
            .edit(CITED, "Do it.\n", "\n")
            .edit(ANSWERED, "expected: [current]\n", "")
            .ask(|r| r.repetitions = Some(0))
    };
    all_wrong(case()).refused(Reason::RepetitionsZero, "");
    all_wrong(case()).ask(|r| r.repetitions = None).refused(Reason::ExpectedNotProper, "WM-PR-0002");
    all_wrong(case()).ask(|r| r.repetitions = None).exclude("WM-PR-0002").refused(Reason::TaskMissing, "WM-PR-0003");
    let late = all_wrong(case()).ask(|r| r.repetitions = None).exclude("WM-PR-0002").exclude("WM-PR-0003");
    late.refused(Reason::CostAboveCeiling, "60 cents");
}

#[test]
fn a_plan_that_refuses_before_the_count_prints_no_product() {
    let before = case().ask(|r| r.tier = Tier::Documentation).plan();
    assert_eq!(before.cost, None);
    assert!(!text::render(&before).contains("## The cost"));
    let json = command::json(&before).unwrap();
    assert!(!json.contains("\"cost\""));
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), before);
    let after = case().edit(OPENED, "Do it.\n", "\n").plan();
    assert_eq!(after.cost.as_ref().map(|c| c.sessions), Some(18));
    assert!(text::render(&after).contains("3 probes x 3 arms x 2 repetitions = 18 sessions"));
}

#[test]
fn a_refused_plan_still_has_the_identity_of_what_was_selected() {
    let starts = case().plan();
    let refused = case().edit_policy("budget_cents: 200", "budget_cents: 1").plan();
    assert_eq!(refused.identity, starts.identity);
}

#[test]
fn the_text_has_the_form_that_other_tools_read() {
    let plan = case().ask(|r| r.seed = "00340282366920938463463374607431768211456".into()).plan();
    let identity = &plan.identity;
    let digest = |path: &str| Digest::of(case().files[path].as_bytes());
    let expected = format!(
        "# Plan of a probe run

## The run identity this plan fixes

```yaml
lock: {}
tree: {}
selection: {}
read_set: {}
seed: 00340282366920938463463374607431768211456
harness: headwater {}
tier: regression
arms: [present, no-hook, mcp]
```

## The cost

3 probes x 3 arms x 2 repetitions = 18 sessions, each declared at 10 cents.
The projection is 180 cents and the ceiling 200 cents.
A session stops at a turn cap of 40.

## The selection

- WM-PR-0001 (docs/probes/opened.md)
    category: discovery
    expects: opened
    examines: WM-DR-0001 (docs/decisions/a.md), tools/meter.toml
- WM-PR-0002 (docs/probes/answered.md)
    category: sufficiency
    expects: answered
    examines: WM-DR-0002 (docs/decisions/b.md)
    answers: current, retired, late, no
    expected: current
- WM-PR-0003 (docs/probes/cited.md)
    category: discovery
    expects: cited
    examines: WM-DR-0001 (docs/decisions/a.md)

## The read set

- docs/decisions/a.md (examined) {}
- docs/decisions/b.md (examined) {}
- docs/probes/answered.md (probe) {}
- docs/probes/cited.md (probe) {}
- docs/probes/opened.md (probe) {}
- tools/meter.toml (examined) {}
",
        identity.lock,
        identity.tree,
        identity.selection,
        identity.read_set,
        env!("CARGO_PKG_VERSION"),
        digest("docs/decisions/a.md"),
        digest("docs/decisions/b.md"),
        digest(ANSWERED),
        digest(CITED),
        digest(OPENED),
        digest("tools/meter.toml"),
    );
    assert_eq!(text::render(&plan), expected);
}

#[test]
fn the_digests_are_those_of_the_texts_that_the_formats_name() {
    let site = case().on_disk();
    let plan = case().plan_of(&site);
    let line = |path: &str| format!("{path}\t{}\n", Digest::of(&fs::read(site.path(path)).unwrap()));
    let typed = ["docs/decisions/a.md", "docs/decisions/b.md", ANSWERED, CITED, OPENED];
    let tree: String = typed.iter().map(|path| line(path)).collect();
    let read_set = tree.clone() + &line("tools/meter.toml");
    assert_eq!(plan.identity.tree, Digest::of(tree.as_bytes()));
    assert_eq!(plan.identity.read_set, Digest::of(read_set.as_bytes()));
    assert_eq!(plan.identity.selection, Digest::of(b"WM-PR-0001\nWM-PR-0002\nWM-PR-0003"));
    assert_eq!(plan.identity.lock, Digest::of(&fs::read(site.path(LOCK)).unwrap()));
}

#[test]
fn the_json_is_the_plan_and_holds_every_task_word_for_word() {
    let task = "\n\n  Start here:\n\n\t## not a heading `x`  \r\nthe end  \n \n\n";
    let plan = case().edit(OPENED, "\n\nDo it.\n\n", task).starts("a task of several lines");
    let json = command::json(&plan).unwrap();
    assert!(json.ends_with("}\n"));
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    assert_eq!(plan.selection[0].task, "  Start here:\n\n\t## not a heading `x`  \r\nthe end  ");
    assert_eq!(plan.selection[1].expects, Expectation::Answered);
    assert_eq!(plan.selection[1].answers, ["current", "retired, late", "no"]);
    assert_eq!(plan.identifiers, ["WM-DR-0001", "WM-DR-0002", "WM-PR-0001", "WM-PR-0002", "WM-PR-0003"]);
}

#[test]
fn the_order_in_which_files_were_made_and_where_they_stand_change_no_byte() {
    let case = case();
    let sites = [case.on_disk(), case.site(case.files.keys().rev().copied())];
    let [a, b] = sites.map(|site| command::json(&case.plan_of(&site)).unwrap());
    assert_eq!(a, b);
}

#[test]
fn a_probe_that_is_examined_too_stands_in_the_read_set_once_as_a_probe() {
    let case = case().edit_policy("instrument: [docs/probes]", "instrument: [exports]");
    let plan = case.edit(ANSWERED, "[WM-DR-0002]", "[WM-PR-0001]").starts("outside of the instrument");
    let roles: Vec<_> = plan.read_set.iter().map(|m| (m.path.as_str(), m.role)).collect();
    let probe = |path| (path, Role::Probe);
    let examined = |path| (path, Role::Examined);
    let expected =
        [examined("docs/decisions/a.md"), probe(ANSWERED), probe(CITED), probe(OPENED), examined("tools/meter.toml")];
    assert_eq!(roles, expected);
}

#[test]
fn a_target_that_is_not_there_is_in_the_read_set_as_written_without_a_digest() {
    let case = case().edit(ANSWERED, "[WM-DR-0002]", "[WM-DR-0099, docs/gone.md]");
    let plan = case.starts("an answer needs no document");
    let none: Vec<_> = plan.read_set.iter().filter(|m| m.digest.is_none()).map(|m| m.path.as_str()).collect();
    assert_eq!(none, ["WM-DR-0099", "docs/gone.md"]);
    assert!(text::render(&plan).contains("- WM-DR-0099 (examined) -\n"));
}

#[test]
fn an_edit_outside_of_the_read_set_moves_the_tree_alone() {
    let case = case().file("docs/decisions/c.md", decision("WM-DR-0003", ""));
    let edited = case.clone().edit("docs/decisions/c.md", "# A decision", "# Another");
    let (before, after) = (case.plan().identity, edited.plan().identity);
    assert_ne!(before.tree, after.tree);
    assert_eq!((before.read_set, before.selection), (after.read_set, after.selection));
}

#[test]
fn a_part_of_a_selection_is_composed_over_this_tree() {
    let site = case().edit(CITED, "id: WM-PR-0003\n", "").on_disk();
    let corpus = site.read();
    let ids = |probes: &[Declared]| probes.iter().filter_map(|p| p.id.clone()).collect::<Vec<_>>();
    let all = select(&corpus, None).unwrap();
    assert_eq!(ids(&all), ["WM-PR-0001", "WM-PR-0002"]);
    let part = select(&corpus, Some(&BTreeSet::from(["WM-PR-0002", "WM-PR-0099"]))).unwrap();
    assert_eq!(ids(&part), ["WM-PR-0002"]);
    assert_eq!(selection_digest(&part), Digest::of(b"WM-PR-0002"));
    let paths: Vec<_> = read_set(&corpus, &part).into_iter().map(|m| m.path).collect();
    assert_eq!(paths, ["docs/decisions/b.md", ANSWERED]);
}

#[test]
fn a_narrowed_run_states_the_arms_that_it_runs() {
    let plan = case().ask(|r| r.arm = Some(Arm::NoHook)).starts("one arm of an unpaired tier");
    assert_eq!(plan.identity.arms, [Arm::NoHook]);
    assert_eq!(plan.cost.unwrap().sessions, 6);
}

#[test]
fn a_transcript_learns_what_makes_it_a_document_of_the_corpus() {
    let form = case().plan().transcript.unwrap();
    assert_eq!((form.shelf.as_str(), form.identifier.as_str()), ("docs/probe-runs", "WM-RUN-{slug}"));
    assert_eq!(form.facets, BTreeMap::from([("status".to_owned(), "draft".to_owned())]));
    assert_eq!(form.entered.as_deref(), Some("status_date"));
    assert_eq!(form.required, ["arm", "status", "status_date", "tier", "title"]);
    assert!(!form.names_kind);
}

#[test]
fn a_lock_that_is_not_the_taxonomys_is_no_plan() {
    let case = case();
    let site = case.on_disk();
    site.append(TAXONOMY, "  more: {path: docs/more/*.md, homogeneous: true, kind: decision}\n");
    let error = compose(&site.read(), &policy::read(&site.path("")).unwrap(), &case.request).unwrap_err();
    assert_eq!(error.remedy.as_deref(), Some("run `headwater lock`"), "{error}");
}
