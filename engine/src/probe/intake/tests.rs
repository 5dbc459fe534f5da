//! The five confirmations over small corpora on disk.

use super::*;
use crate::corpus::LOCK;
use crate::corpus::testing::{Site, decision, probe};
use crate::status::Status;
use clap::Parser;
use headwater_contract::keys::{Arm, Tier};
use headwater_contract::transcript::{Answer, Call, events_to_yaml};
use proptest::prop_assert;
use proptest::test_runner::TestRunner;

/// A transcript to be.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) identity: RunIdentity,
    pub(crate) events: Vec<Event>,
}

/// An event in which one call was seen.
pub(crate) fn event(probe: &str, session: &str) -> Event {
    let call = Call { tool: "Read".into(), argument: "docs/decisions/one.md".into(), result: String::new() };
    let answer = Answer::NotObserved;
    Event { probe: probe.into(), session: session.into(), calls: Some(vec![call]), produced: None, answer }
}

impl Draft {
    /// A transcript planned over the probes among `only`, or over all of a corpus, with one event for each.
    pub(crate) fn of(corpus: &Corpus, only: Option<&[&str]>) -> Self {
        let only = only.map(|ids| ids.iter().copied().collect());
        let selected = plan::select(corpus, only.as_ref()).unwrap();
        let identity = RunIdentity {
            model: "m".into(),
            served_version: "m-20260801".into(),
            tree: corpus.tree().to_string(),
            lock: corpus.lock().unwrap().to_string(),
            selection: plan::selection_digest(&selected).to_string(),
            read_set: plan::read_set_digest(&plan::read_set(corpus, &selected)).to_string(),
            seed: "340282366920938463463374607431768211456".into(),
            harness: "headwater 0.1.0".into(),
            tier: Tier::Regression,
            arm: Arm::Present,
            at: "2026-08-14T09:30:00Z".into(),
            cost_cents: 57,
        };
        let events = selected.iter().map(|p| event(p.id.as_ref().unwrap(), "s1")).collect();
        Self { identity, events }
    }

    pub(crate) fn document(&self) -> String {
        let (identity, events) = (self.identity.to_yaml(), events_to_yaml(&self.events));
        format!(
            "---\nid: WM-RUN-a\n---\n\n# Run\n\nProse.\n\n## Run identity\n\n```yaml\n{identity}```\n\n## Events\n\n\
             ```yaml\n{events}```\n"
        )
    }

    fn with(&self, change: impl FnOnce(&mut RunIdentity)) -> Self {
        let mut draft = self.clone();
        change(&mut draft.identity);
        draft
    }
}

/// Two decisions, the probes `WM-PR-0001` and `WM-PR-0002` that examine one each, and a file in a place that is none.
fn site() -> Site {
    let site = Site::minimal();
    site.write("docs/decisions/two.md", &decision("WM-DR-0002", ""));
    site.write("docs/probes/find-two.md", &probe("WM-PR-0002", "WM-DR-0002"));
    site
}

fn confirm(corpus: &Corpus, document: &str) -> Result<Record, Refusal> {
    Basis::of(corpus).unwrap().confirm(document)
}

const OTHER: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn a_transcript_that_was_planned_over_this_tree_is_confirmed() {
    let site = site();
    let corpus = site.read();
    let draft = Draft::of(&corpus, None);
    let record = confirm(&corpus, &draft.document()).unwrap();
    assert_eq!(record.identity, draft.identity);
    assert_eq!(record.events.iter().map(|r| &r.event).collect::<Vec<_>>(), draft.events.iter().collect::<Vec<_>>());
    assert_eq!((record.lock, record.read_set, record.selection.scope), (Lock::Same, ReadSet::Same, Scope::Whole));
    assert_eq!((record.dropped.len(), record.mark()), (0, None));
}

#[test]
fn the_selection_is_the_whole_of_the_tree_or_the_part_that_the_events_name_or_neither() {
    let site = site();
    let corpus = site.read();
    let (whole, part) = (Draft::of(&corpus, None), Draft::of(&corpus, Some(&["WM-PR-0002"])));
    let mut part_with_another = part.clone();
    part_with_another.events.push(event("WM-PR-0001", "s1"));
    let mut part_with_dropped = part.clone();
    part_with_dropped.events.push(event("WM-PR-0404", "s1"));
    let mut whole_half_run = whole.clone();
    whole_half_run.events.truncate(1);
    let mut part_not_run = part.clone();
    part_not_run.events.clear();
    for (draft, scope, probes) in [
        (&whole, Scope::Whole, &["WM-PR-0001", "WM-PR-0002"][..]),
        (&whole_half_run, Scope::Whole, &["WM-PR-0001", "WM-PR-0002"]),
        (&part, Scope::Part, &["WM-PR-0002"]),
        (&part_with_dropped, Scope::Part, &["WM-PR-0002"]),
        (&part_with_another, Scope::Neither, &[]),
        (&part_not_run, Scope::Neither, &[]),
        (&whole.with(|i| i.selection = OTHER.into()), Scope::Neither, &[]),
    ] {
        let record = confirm(&corpus, &draft.document()).unwrap();
        assert_eq!(
            (record.selection.scope, &record.selection.probes[..]),
            (scope, &probes.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>()[..])
        );
        assert_eq!(record.selection.this_tree.to_string(), whole.identity.selection);
        assert_eq!(record.read_set == ReadSet::NotComposed, scope == Scope::Neither);
    }
}

#[test]
fn a_moved_lock_is_refused_only_where_this_tree_composes_no_read_set() {
    let site = site();
    let corpus = site.read();
    let (whole, part) = (Draft::of(&corpus, None), Draft::of(&corpus, Some(&["WM-PR-0002"])));
    let neither = whole.with(|i| i.selection = OTHER.into());
    for (draft, refused) in [(&whole, false), (&part, false), (&neither, true)] {
        let same = confirm(&corpus, &draft.document()).unwrap();
        assert_eq!(same.lock, Lock::Same);
        match confirm(&corpus, &draft.with(|i| i.lock = OTHER.into()).document()) {
            Ok(record) => assert!(!refused && record.lock == Lock::Moved && record.mark().is_none()),
            Err(refusal) => {
                assert!(refused && refusal.reason == LOCK_MOVED);
                let this_tree = corpus.lock().unwrap().to_string();
                assert!(refusal.message.contains(OTHER) && refusal.message.contains(&this_tree), "{}", refusal.message);
            }
        }
    }
}

#[test]
fn a_moved_read_set_marks_the_record_and_keeps_it_whether_or_not_the_lock_moved() {
    let site = site();
    let draft = Draft::of(&site.read(), None);
    let moved_lock = draft.with(|i| i.lock = OTHER.into());
    site.write("docs/decisions/three.md", &decision("WM-DR-0003", ""));
    let unread = site.read();
    assert_eq!(confirm(&unread, &draft.document()).unwrap().mark(), None, "no probe reads that document");
    site.append("docs/decisions/two.md", "\nMore.\n");
    let corpus = site.read();
    for draft in [&draft, &moved_lock] {
        let record = confirm(&corpus, &draft.document()).unwrap();
        assert_eq!((record.read_set, record.mark()), (ReadSet::Moved, Some(MARK)));
        assert_eq!(record.events.len(), 2);
        assert!(text::render(&record, "a.md").contains(MARK));
    }
    let part = Draft::of(&corpus, Some(&["WM-PR-0001"]));
    site.append("docs/decisions/two.md", "\nMore.\n");
    assert_eq!(confirm(&site.read(), &part.document()).unwrap().mark(), None, "the part does not read that document");
}

#[test]
fn the_mark_names_no_digest() {
    assert!(!MARK.contains("sha256"));
}

#[test]
fn an_empty_selection_is_nothing_to_read_a_transcript_over() {
    let site = Site::minimal();
    std::fs::remove_file(site.path("docs/probes/find-one.md")).unwrap();
    let corpus = site.read();
    let mut draft = Draft::of(&corpus, None);
    draft.events.clear();
    assert_eq!(confirm(&corpus, &draft.document()).unwrap().selection.scope, Scope::Neither);
    let moved = draft.with(|i| i.lock = OTHER.into());
    assert_eq!(confirm(&corpus, &moved.document()).unwrap_err().reason, LOCK_MOVED);
}

#[test]
fn an_event_over_no_probe_of_the_corpus_is_dropped_with_its_position_and_the_reason() {
    let site = site();
    site.write("docs/probes/generated.md", "---\nid: WM-PR-0008\nheadwater:generated: true\n---\n");
    site.write("notes/loose.md", "---\nid: WM-PR-0009\n---\n");
    let corpus = site.read();
    let mut draft = Draft::of(&corpus, None);
    for id in ["WM-DR-0001", "WM-PR-0008", "WM-PR-0009", "WM-PR-0404"] {
        draft.events.insert(draft.events.len() - 1, event(id, "s1"));
    }
    let record = confirm(&corpus, &draft.document()).unwrap();
    let positions: Vec<_> = record.events.iter().map(|r| (r.position, r.event.probe.as_str())).collect();
    assert_eq!(positions, [(1, "WM-PR-0001"), (6, "WM-PR-0002")]);
    let dropped: Vec<_> = record.dropped.iter().map(|d| (d.event, d.probe.as_str(), d.reason.as_str())).collect();
    assert_eq!(
        dropped,
        [
            (2, "WM-DR-0001", "docs/decisions/one.md has the identifier and is a `decision`, not a `probe`"),
            (3, "WM-PR-0008", "docs/probes/generated.md has the identifier and is generated"),
            (4, "WM-PR-0009", "notes/loose.md has the identifier and stands on no shelf that admits it"),
            (5, "WM-PR-0404", "no document of this corpus has the identifier"),
        ]
    );
    let text = text::render(&record, "a.md");
    assert!(text.contains("- membership: 2 of 6 events name a probe of this corpus, 4 dropped\n"), "{text}");
    assert!(text.contains("\n- event 5 names `WM-PR-0404`: no document of this corpus has the identifier\n"), "{text}");
}

/// A change of a text that has to be there.
fn edit(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{text} holds no {from}");
    text.replacen(from, to, 1)
}

#[test]
fn every_refusal_has_a_transcript_that_meets_it_and_one_that_nearly_does() {
    let site = site();
    let corpus = site.read();
    let draft = Draft::of(&corpus, None);
    let good = draft.document();
    let bad_lock = draft.with(|i| i.lock = OTHER.into());
    let edited = |from: &str, to: &str| edit(&good, from, to);
    let deep = |n: usize| edited("  calls:\n", &format!("  calls: {}{}\n  produced:\n", "[".repeat(n), "]".repeat(n)));
    let cases: Vec<(Reason, &str, String, String)> = vec![
        (
            LOCK_MOVED,
            "record again",
            bad_lock.with(|i| i.selection = OTHER.into()).document(),
            draft.with(|i| i.selection = OTHER.into()).document(),
        ),
        (
            FRONT_MATTER_OPEN,
            "never closed",
            edited("\n---\n\n# Run", "\n\n# Run"),
            edited("---\nid: WM-RUN-a\n---\n", ""),
        ),
        (SECTION_MISSING, "## Events", edited("## Events", "## Event"), edited("## Events", "## Events ##")),
        (
            SECTION_MISSING,
            "## Run identity",
            edited("## Run id", "### Run id"),
            edited("## Run identity\n", "## Run identity\n\nProse.\n"),
        ),
        (
            BLOCK_MISSING,
            "`Events`",
            edited("## Events\n\n```yaml", "## Events\n\n```yml"),
            edited("## Events\n\n```yaml", "## Events\n\n```text\nx\n```\n\n```yaml"),
        ),
        (BLOCK_OPEN, "`Events`", good[..good.len() - 4].to_owned(), good[..good.len() - 1].to_owned()),
        (BLOCK_MALFORMED, "stands twice", edited("seed:", "seed: 1\nseed:"), edited("model: m\n", "model: seed\n")),
        (BLOCK_MALFORMED, "anchors", edited("model: m", "model: &a m"), edited("model: m", "model: '&a m'")),
        (BLOCK_MALFORMED, "tags", edited("model: m", "model: !!str m"), edited("model: m", "model: '!!str m'")),
        (
            BLOCK_MALFORMED,
            "inside one another",
            deep(40),
            edited("  calls:\n", "  calls: []\n  produced: []\n- probe: WM-PR-0001\n  session: x\n  calls:\n"),
        ),
        (MEMBER_MISSING, "`arm`", edited("arm: present\n", ""), edited("arm: present\n", "arm: no-hook\n")),
        (MEMBER_MISSING, "`at`", edited("at: ", "at: ~ # "), edited("at: ", "at: '~' # ")),
        (
            MEMBER_MISSING,
            "`smoke` is no tier",
            edited("tier: regression", "tier: smoke"),
            edited("tier: regression", "tier: campaign"),
        ),
        (
            MEMBER_MISSING,
            "`control` is no arm",
            edited("arm: present", "arm: control"),
            edited("arm: present", "arm: mcp"),
        ),
        (MEMBER_MISSING, "lacks `session`", edited("  session: s1\n", ""), edited("session: s1", "session: 1.0")),
        (
            MEMBER_MISSING,
            "calls: []",
            edited("  calls:\n", "  calls:\n  produced:\n"),
            edited("  calls:\n", "  answer: null\n  calls:\n"),
        ),
        (
            KEY_UNKNOWN,
            "`reasoning` is no key",
            edited("  calls:\n", "  reasoning: r\n  calls:\n"),
            edited("  calls:\n", "  answer: r\n  calls:\n"),
        ),
        (
            KEY_UNKNOWN,
            "`notes` is no key",
            edited("seed:", "notes: n\nseed:"),
            edited("# Run\n", "# Run\n\nnotes: n\n"),
        ),
        (
            COST_NOT_WHOLE,
            "`5.7`",
            edited("cost_cents: 57", "cost_cents: 5.7"),
            edited("cost_cents: 57", "cost_cents: '57'"),
        ),
        (COST_NOT_WHOLE, "`-1`", edited("cost_cents: 57", "cost_cents: -1"), edited("cost_cents: 57", "cost_cents: 0")),
    ];
    for (reason, part, bad, near) in &cases {
        let refusal = confirm(&corpus, bad).expect_err(part);
        assert_eq!((refusal.reason.id, refusal.message.contains(part)), (reason.id, true), "{}", refusal.message);
        confirm(&corpus, near).unwrap_or_else(|r| panic!("{}: {}", reason.id, r.message));
    }
    for reason in REFUSALS {
        assert!(cases.iter().any(|(r, ..)| r == reason), "{}", reason.id);
    }
}

#[test]
fn the_refusals_are_in_the_order_of_the_confirmations_with_an_id_and_a_line_each() {
    let ids: BTreeSet<_> = REFUSALS.iter().map(|r| r.id).collect();
    assert_eq!(ids.len(), REFUSALS.len());
    assert!(REFUSALS.is_sorted_by_key(|r| r.confirmation));
    for reason in REFUSALS {
        assert!(reason.id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{}", reason.id);
        assert!(!reason.summary.is_empty() && !reason.summary.contains('\n'));
    }
}

#[test]
fn the_first_confirmation_that_fails_is_the_one_that_is_named() {
    let site = site();
    let corpus = site.read();
    let draft = Draft::of(&corpus, None);
    let mut document = draft.with(|i| (i.lock, i.selection) = (OTHER.into(), OTHER.into())).document();
    document = edit(&document, "cost_cents: 57", "cost_cents: 5.7");
    document = edit(&document, "  calls:\n", "  reasoning: r\n  calls:\n");
    document = edit(&document, "arm: present", "arm: control");
    for (confirmation, from, to) in [
        (Confirmation::Taxonomy, OTHER, draft.identity.lock.as_str()),
        (Confirmation::Identity, "arm: control", "arm: present"),
        (Confirmation::NoProse, "  reasoning: r\n", ""),
        (Confirmation::Cost, "cost_cents: 5.7", "cost_cents: 57"),
    ] {
        assert_eq!(confirm(&corpus, &document).unwrap_err().reason.confirmation, confirmation);
        document = edit(&document, from, to);
    }
    confirm(&corpus, &document).unwrap();
}

#[test]
fn seed_harness_and_tree_are_recorded_and_compared_with_nothing() {
    let site = site();
    let corpus = site.read();
    let odd = Draft::of(&corpus, None).with(|i| {
        (i.seed, i.harness, i.tree) = ("-1".into(), "headwater 9.9.9".into(), "none".into());
    });
    let record = confirm(&corpus, &odd.document()).unwrap();
    let text = text::render(&record, "a.md");
    assert!(text.contains("with nothing\n\n- seed: -1\n- harness: headwater 9.9.9\n- tree: none\n"), "{text}");
}

#[test]
fn a_record_states_each_confirmation_the_selection_and_the_read_set() {
    let site = site();
    let corpus = site.read();
    let draft = Draft::of(&corpus, None);
    let record = confirm(&corpus, &draft.document()).unwrap();
    let RunIdentity { tree, selection, read_set, .. } = &draft.identity;
    assert_eq!(
        text::render(&record, "a.md"),
        format!(
            "# Record of a.md\n\n## Confirmed\n\n- taxonomy: the lock is the lock of this tree\n- identity: all twelve \
             members are there\n- membership: each of 2 events names a probe of this corpus\n- no-prose: every key is of \
             its closed set\n- cost: 57 cents\n\n## Recorded and compared with nothing\n\n- seed: \
             340282366920938463463374607431768211456\n- harness: headwater 0.1.0\n- tree: {tree}\n\n## The \
             selection\n\nPlanned over the whole selection of this tree, 2 probes: {selection}\n\n## The read set\n\nAs \
             this tree composes it: {read_set}\n"
        )
    );
    let part = Draft::of(&corpus, Some(&["WM-PR-0002"])).with(|i| (i.lock, i.read_set) = (OTHER.into(), OTHER.into()));
    let text = text::render(&confirm(&corpus, &part.document()).unwrap(), "a.md");
    for line in [
        "- taxonomy: the lock is another than that of this tree, which has the selection and so reads the transcript\n",
        &format!("a part of the selection of this tree, 1 probe that its events name: {}\n", part.identity.selection),
        &format!("The whole selection of this tree is {selection}\n"),
        &format!("Recorded: {OTHER}\n"),
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let neither = draft.with(|i| i.selection = OTHER.into());
    let text = text::render(&confirm(&corpus, &neither.document()).unwrap(), "a.md");
    assert!(text.contains("Planned over neither") && text.contains("Not composed"), "{text}");
}

#[test]
fn the_json_is_typed() {
    let site = site();
    let corpus = site.read();
    let draft = Draft::of(&corpus, None);
    let json = |text: String| serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let record = json(text::json(&confirm(&corpus, &draft.document()).unwrap()).unwrap());
    assert_eq!(record["confirmed"], true);
    assert_eq!(record["identity"]["cost_cents"], 57);
    assert_eq!(record["identity"]["seed"], draft.identity.seed);
    assert_eq!((&record["lock"], &record["read_set"]), (&"same".into(), &"same".into()));
    assert_eq!(record["selection"]["scope"], "whole");
    assert_eq!(record["selection"]["probes"][1], "WM-PR-0002");
    assert_eq!((record["events"].as_u64(), record["mark"].is_null()), (Some(2), true));
    assert_eq!(record["confirmations"].as_array().map(Vec::len), Some(5));
    let refusal = confirm(&corpus, "# nothing\n").unwrap_err();
    let refused = json(text::json_refusal(&refusal).unwrap());
    assert_eq!(refused["confirmed"], false);
    assert_eq!(
        (&refused["refusal"]["id"], &refused["refusal"]["confirmation"]),
        (&"section-missing".into(), &"identity".into())
    );
}

#[test]
fn no_value_of_a_transcript_makes_a_line_of_the_output() {
    let site = site();
    let corpus = site.read();
    let mut draft = Draft::of(&corpus, None).with(|i| i.harness = "h\n- tree: forged".into());
    draft.events.push(event("X\n- event 9 names `forged`", "s\n1"));
    let text = text::render(&confirm(&corpus, &draft.document()).unwrap(), "a.md");
    assert!(!text.contains("\n- tree: forged") && !text.contains("\n- event 9"), "{text}");
    let forged = edit(&draft.document(), "seed:", "\"x\\n\\n## Confirmed\": 1\nseed:");
    let refusal = confirm(&corpus, &forged).unwrap_err();
    let text = text::render_refusal(&refusal, "a.md");
    assert_eq!(refusal.reason, KEY_UNKNOWN);
    assert!(!text.contains("\n## Confirmed"), "{text}");
}

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

#[test]
fn a_confirmed_transcript_is_status_0_a_refused_one_1_and_an_unreadable_one_3() {
    let site = site();
    let draft = Draft::of(&site.read(), None);
    site.write("run.md", &draft.document());
    site.write("refused.md", &draft.with(|i| (i.lock, i.selection) = (OTHER.into(), OTHER.into())).document());
    let output = |file: &str, format: &str| {
        let path = site.path(file).display().to_string();
        let root = site.path("").display().to_string();
        let line = Line::try_parse_from(["record", &path, "--root", &root, "--format", format]).unwrap();
        command::output(&line.args)
    };
    for (format, start) in [("text", "# Record of /"), ("json", "{\n")] {
        for (file, status) in [("run.md", Status::Done), ("refused.md", Status::No)] {
            let (text, found) = output(file, format).unwrap();
            assert!(found == status && text.starts_with(start) && text.ends_with('\n'), "{text}");
        }
        assert_eq!(output("none.md", format).unwrap_err().status, Status::Unreadable);
    }
    std::fs::remove_file(site.path(LOCK)).unwrap();
    assert_eq!(output("run.md", "text").unwrap_err().status, Status::Unreadable);
    assert!(Line::try_parse_from(["record"]).is_err());
    assert!(Line::try_parse_from(["record", "a.md", "--format", "xml"]).is_err());
}

#[test]
fn no_cut_and_no_edit_of_a_transcript_is_a_crash() {
    let site = site();
    let corpus = site.read();
    let basis = Basis::of(&corpus).unwrap();
    let good = Draft::of(&corpus, None).document();
    let edits = (0..good.len(), 0..good.len(), ".{0,8}");
    TestRunner::default()
        .run(&edits, |(a, b, put)| {
            let edited = format!("{}{put}{}", &good[..a.min(b)], &good[a.max(b)..]);
            if let Err(refusal) = basis.confirm(&edited) {
                prop_assert!(REFUSALS.contains(&refusal.reason) && !refusal.message.is_empty());
            }
            Ok(())
        })
        .unwrap();
}
