//! The five forms, sentence by sentence, over records made by hand.

use super::verdict::{Answered, Artifact, NamingCall, Searched};
use super::*;
use crate::corpus::testing::{Site, probe as probe_document};
use crate::probe::intake::tests::{Draft, event as read_event};
use crate::probe::intake::{Dropped, Lock, ReadSet, Scope, Selection};
use crate::status::Status;
use clap::Parser;
use headwater_contract::digest::Digest;
use headwater_contract::keys::{Arm, Tier};
use headwater_contract::plan::Target;
use headwater_contract::transcript::{Answer, Call, Event, Produced, RunIdentity};
use proptest::prelude::*;
use std::time::{Duration, Instant};

const DOC: &str = "docs/a.md";
const RULE: &str = "section.required.missing";

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|i| (*i).to_owned()).collect()
}

fn probe(form: Expectation) -> Declared {
    Declared {
        id: Some("P-1".into()),
        path: "docs/probes/p.md".into(),
        category: None,
        expectation: Some(form),
        oracle: Some(RULE.into()),
        examines: vec![
            Target { path: "src/anchor.txt".into(), id: None },
            Target { path: DOC.into(), id: Some("D-1".into()) },
        ],
        answers: texts(&["current", "retired", "no"]),
        expected: texts(&["current"]),
        task: String::new(),
        defects: Vec::new(),
    }
}

fn call(tool: &str, argument: &str) -> Call {
    Call { tool: tool.into(), argument: argument.into(), result: String::new() }
}

fn event() -> Event {
    Event { probe: "P-1".into(), session: "s".into(), calls: None, produced: None, answer: Answer::NotObserved }
}

fn calls(arguments: &[&str]) -> Event {
    Event { calls: Some(arguments.iter().map(|a| call("Read", a)).collect()), ..event() }
}

fn artifact(path: &str, cites: &[&str], findings: Option<&[&str]>) -> Produced {
    Produced { path: path.into(), result: String::new(), cites: texts(cites), findings: findings.map(texts) }
}

fn produced(artifacts: Vec<Produced>) -> Event {
    Event { produced: Some(artifacts), ..event() }
}

fn answer(value: &str) -> Event {
    Event { answer: Answer::Value(value.into()), ..event() }
}

fn record(events: Vec<Event>, selection: &[&str]) -> Record {
    let events = (1..).zip(events).map(|(position, event)| Recorded { position, event }).collect();
    let identity = RunIdentity {
        model: "m".into(),
        served_version: "m-1".into(),
        tree: "t".into(),
        lock: "l".into(),
        selection: "s".into(),
        read_set: "r".into(),
        seed: "7".into(),
        harness: "headwater 0.1.0".into(),
        tier: Tier::Campaign,
        arm: Arm::Absent,
        at: "2026-08-14T09:30:00Z".into(),
        cost_cents: 57,
    };
    let selection = Selection { scope: Scope::Whole, probes: texts(selection), this_tree: Digest::of(b"") };
    Record { identity, events, dropped: Vec::new(), lock: Lock::Same, selection, read_set: ReadSet::Same }
}

/// The verdict over the one session that these events are.
fn verdict(events: Vec<Event>, probe: Declared) -> Verdict {
    let record = record(events, &["P-1"]);
    let probes = [probe];
    let mut verdicts = grade(&record, &probes).verdicts;
    assert_eq!(verdicts.len(), 1);
    verdicts.remove(0).verdict
}

fn satisfied(witness: Witness) -> Verdict {
    Verdict::Satisfied { witness }
}

fn missed(miss: Miss) -> Verdict {
    Verdict::NotSatisfied { miss }
}

fn refused(whose: Whose, reason: Reason) -> Verdict {
    Verdict::Refused { whose, reason }
}

fn naming(event: usize, call: usize, tool: &str) -> NamingCall {
    NamingCall { event, call, tool: tool.into(), document: DOC.into() }
}

fn searched(items: usize, events: usize) -> Searched {
    Searched { events, items }
}

fn examined() -> Vec<String> {
    texts(&["src/anchor.txt", DOC])
}

#[test]
fn opened_is_satisfied_by_the_first_call_that_names_a_document() {
    let of = |events| verdict(events, probe(Expectation::Opened));
    let no_call = |items, events| missed(Miss::NoCall { searched: searched(items, events), documents: examined() });
    assert_eq!(of(vec![calls(&["x", "/ws/docs/a.md", DOC])]), satisfied(Witness::Call(naming(1, 2, "Read"))));
    assert_eq!(of(vec![calls(&["x", "docs/a.md.bak"])]), no_call(2, 1));
    assert_eq!(of(vec![calls(&["x"]), event(), calls(&["y", DOC])]), satisfied(Witness::Call(naming(3, 2, "Read"))));
    assert_eq!(of(vec![calls(&["x"]), event(), calls(&["y", "z"])]), no_call(3, 2));
    let anchor = NamingCall { document: "src/anchor.txt".into(), ..naming(1, 1, "Read") };
    assert_eq!(of(vec![calls(&["./src/anchor.txt"])]), satisfied(Witness::Call(anchor)));
}

#[test]
fn a_call_of_the_shell_opens_what_its_command_reads() {
    let shell = |command: &str| {
        let argument = serde_json::json!({ "command": command }).to_string();
        let event = Event { calls: Some(vec![call("Bash", &argument)]), ..event() };
        verdict(vec![event], probe(Expectation::Opened))
    };
    let opened = satisfied(Witness::Call(naming(1, 1, "Bash")));
    let not = missed(Miss::NoCall { searched: searched(1, 1), documents: examined() });
    for command in ["cat docs/a.md", "rm docs/a.md", "x <docs/a.md", "grep --file=docs/a.md x", "a; tee b < docs/a.md"]
    {
        assert_eq!(shell(command), opened, "{command}");
    }
    for command in ["echo > docs/a.md", "x | tee docs/a.md", "cat <<E\ncat docs/a.md\nE", "# cat docs/a.md", "cat $D"] {
        assert_eq!(shell(command), not, "{command}");
    }
}

#[test]
fn opened_is_refused_only_where_no_event_has_calls() {
    let of = |events| verdict(events, probe(Expectation::Opened));
    let refused = refused(Whose::Recorder, Reason::CallsNotWatched);
    assert_eq!(of(vec![event(), answer("current"), produced(vec![])]), refused);
    let none = missed(Miss::NoCall { searched: searched(0, 1), documents: examined() });
    assert_eq!(of(vec![event(), calls(&[])]), none, "a session that was watched and made no call opened nothing");
}

#[test]
fn not_opened_is_satisfied_where_no_call_names_a_document() {
    let of = |events| verdict(events, probe(Expectation::NotOpened));
    let witness =
        |items, events| satisfied(Witness::NoCall { searched: searched(items, events), documents: examined() });
    assert_eq!(of(vec![calls(&["x", "mydocs/a.md"])]), witness(2, 1));
    assert_eq!(of(vec![calls(&["x"]), event(), calls(&["y"])]), witness(2, 2));
    let call = missed(Miss::Call { call: naming(2, 1, "Read"), searched: searched(3, 2) });
    assert_eq!(of(vec![calls(&["x"]), calls(&[DOC, DOC])]), call);
}

#[test]
fn not_opened_is_refused_where_nothing_watched_and_where_there_was_no_call() {
    let of = |events| verdict(events, probe(Expectation::NotOpened));
    assert_eq!(of(vec![event()]), refused(Whose::Recorder, Reason::CallsNotWatched));
    assert_eq!(of(vec![calls(&[]), event(), calls(&[])]), refused(Whose::Session, Reason::NoCallAtAll));
    let one = satisfied(Witness::NoCall { searched: searched(1, 2), documents: examined() });
    assert_eq!(of(vec![calls(&[]), calls(&["x"])]), one);
}

#[test]
fn a_probe_that_examines_nothing_can_neither_be_opened_nor_not() {
    for form in [Expectation::Opened, Expectation::NotOpened] {
        let nothing = Declared { examines: Vec::new(), ..probe(form) };
        assert_eq!(verdict(vec![calls(&["x"])], nothing), refused(Whose::Declaration, Reason::NoTarget));
    }
}

#[test]
fn cited_is_satisfied_by_the_first_artifact_that_cites_a_document() {
    let of = |events| verdict(events, probe(Expectation::Cited));
    let cites = |event, artifact, path: &str| {
        let artifact = Artifact { event, artifact, path: path.into() };
        satisfied(Witness::Cites { artifact, identifier: "D-1".into() })
    };
    let [one, two] = [artifact("o.md", &["D-2"], None), artifact("t.md", &["D-2", "D-1"], None)];
    assert_eq!(of(vec![produced(vec![one.clone(), two.clone()])]), cites(1, 2, "t.md"));
    assert_eq!(of(vec![produced(vec![one.clone()]), event(), produced(vec![two])]), cites(3, 1, "t.md"));
    let none =
        |items, events| missed(Miss::NoCitation { searched: searched(items, events), identifiers: texts(&["D-1"]) });
    assert_eq!(of(vec![produced(vec![one.clone()]), produced(vec![one])]), none(2, 2));
    assert_eq!(of(vec![produced(vec![artifact("o.md", &["D-10", "d-1"], None)])]), none(1, 1));
    assert_eq!(of(vec![produced(vec![])]), none(0, 1));
}

#[test]
fn cited_is_refused_where_nothing_has_an_identifier_or_nothing_looked() {
    let of = |events, examines| verdict(events, Declared { examines, ..probe(Expectation::Cited) });
    let anchor = Target { path: "src/anchor.txt".into(), id: None };
    let document = Target { path: DOC.into(), id: Some("D-1".into()) };
    let citing = produced(vec![artifact("o.md", &["D-1"], None)]);
    let no_identifier = refused(Whose::Declaration, Reason::NoIdentifier);
    assert_eq!(of(vec![citing.clone()], vec![anchor.clone()]), no_identifier);
    assert_eq!(of(vec![citing.clone()], vec![]), no_identifier);
    assert!(matches!(of(vec![citing], vec![anchor, document.clone()]), Verdict::Satisfied { .. }));
    let not_looked = refused(Whose::Recorder, Reason::ProducedNotLookedAt);
    assert_eq!(of(vec![calls(&["x"]), event()], vec![document]), not_looked);
}

fn answered(event: usize, answer: usize, value: Option<&str>) -> Answered {
    Answered { event, answer, value: value.map(str::to_owned) }
}

#[test]
fn the_last_recorded_answer_decides() {
    let of = |events| verdict(events, probe(Expectation::Answered));
    let null = || Event { answer: Answer::None, ..event() };
    assert_eq!(of(vec![answer("current")]), satisfied(Witness::Answer(answered(1, 1, Some("current")))));
    assert_eq!(
        of(vec![answer("retired"), event(), answer("current"), event()]),
        satisfied(Witness::Answer(answered(3, 2, Some("current"))))
    );
    assert_eq!(of(vec![answer("current"), null()]), missed(Miss::NoAnswer(answered(2, 2, None))));
    assert_eq!(of(vec![answer("current"), answer("no")]), missed(Miss::NotExpected(answered(2, 2, Some("no")))));
    assert_eq!(of(vec![answer("Current")]), missed(Miss::OutsideTheSet(answered(1, 1, Some("Current")))));
    assert_eq!(of(vec![answer("null")]), missed(Miss::OutsideTheSet(answered(1, 1, Some("null")))));
}

#[test]
fn answered_is_refused_where_nothing_looked_or_no_closed_set_is_declared() {
    let of = |events, answers: &[&str], expected: &[&str]| {
        let set = Declared { answers: texts(answers), expected: texts(expected), ..probe(Expectation::Answered) };
        verdict(events, set)
    };
    let not_looked = refused(Whose::Recorder, Reason::AnswerNotLookedAt);
    assert_eq!(of(vec![event(), calls(&["x"])], &["current", "no"], &["current"]), not_looked);
    for (answers, expected) in
        [(&[][..], &[][..]), (&["current"], &["current"]), (&["current", "no"], &[]), (&["current", "no"], &["yes"])]
    {
        let refused = refused(Whose::Declaration, Reason::NoClosedSet);
        assert_eq!(of(vec![answer("current")], answers, expected), refused, "{answers:?} {expected:?}");
    }
    assert!(matches!(of(vec![answer("current")], &["current", "no"], &["current"]), Verdict::Satisfied { .. }));
}

#[test]
fn patched_is_decided_artifact_by_artifact_in_recorded_order() {
    let of = |artifacts: &[&Produced]| {
        let artifacts = artifacts.iter().map(|a| (*a).clone()).collect();
        verdict(vec![produced(artifacts)], probe(Expectation::Patched))
    };
    let bad = artifact("bad.md", &[], Some(&["link.target.missing", RULE]));
    let free = artifact("free.md", &[], Some(&["link.target.missing"]));
    let unchecked = artifact("unchecked.md", &[], None);
    let at = |artifact, path: &str| Artifact { event: 1, artifact, path: path.into() };
    let is_free = |artifact| satisfied(Witness::Free { artifact, oracle: RULE.into() });
    let not_checked = |artifact| refused(Whose::Recorder, Reason::NotChecked(artifact));
    assert_eq!(of(&[&bad, &free]), is_free(at(2, "free.md")));
    assert_eq!(of(&[&artifact("none.md", &[], Some(&[]))]), is_free(at(1, "none.md")), "checked, and nothing reported");
    assert_eq!(of(&[&bad, &bad]), missed(Miss::AllReported { searched: searched(2, 1), oracle: RULE.into() }));
    assert_eq!(of(&[&bad, &unchecked, &free]), not_checked(at(2, "unchecked.md")));
    assert_eq!(of(&[&bad, &free, &unchecked]), is_free(at(2, "free.md")), "what comes behind the witness is not asked");
}

#[test]
fn patched_is_refused_without_an_oracle_or_without_a_look_and_missed_where_nothing_was_produced() {
    let patched = probe(Expectation::Patched);
    let free = || produced(vec![artifact("free.md", &[], Some(&[]))]);
    let no_oracle = Declared { oracle: None, ..patched.clone() };
    assert_eq!(verdict(vec![free()], no_oracle), refused(Whose::Declaration, Reason::NoOracle));
    assert_eq!(verdict(vec![event()], patched.clone()), refused(Whose::Recorder, Reason::ProducedNotLookedAt));
    let nothing = missed(Miss::NothingProduced { searched: searched(0, 2) });
    assert_eq!(verdict(vec![produced(vec![]), event(), produced(vec![])], patched.clone()), nothing);
    assert!(matches!(verdict(vec![produced(vec![]), free()], patched), Verdict::Satisfied { .. }));
}

#[test]
fn a_probe_without_a_form_refuses_its_sessions() {
    let no_form = Declared { expectation: None, ..probe(Expectation::Opened) };
    assert_eq!(verdict(vec![calls(&[DOC])], no_form), refused(Whose::Declaration, Reason::NoForm));
}

fn of_session(probe: &str, session: &str, event: Event) -> Event {
    Event { probe: probe.into(), session: session.into(), ..event }
}

fn names<'a>(grade: &Grade<'a>) -> Vec<(&'a str, Option<&'a str>)> {
    grade.verdicts.iter().map(|g| (g.probe, g.session)).collect()
}

#[test]
fn a_session_is_all_events_of_its_probe_and_name_in_order_of_first_appearance() {
    let probes = [probe(Expectation::Opened), Declared { id: Some("P-2".into()), ..probe(Expectation::Opened) }];
    let record = record(
        vec![
            of_session("P-2", "b", calls(&["x"])),
            of_session("P-1", "a", calls(&["x"])),
            of_session("P-1", "b", calls(&[DOC])),
            of_session("P-1", "a", calls(&["x", DOC])),
            of_session("P-2", "a", calls(&["x"])),
        ],
        &["P-1", "P-2"],
    );
    let grade = grade(&record, &probes);
    let sessions = [("P-2", Some("b")), ("P-1", Some("a")), ("P-1", Some("b")), ("P-2", Some("a"))];
    assert_eq!(names(&grade), sessions);
    assert_eq!(grade.verdicts[1].verdict, satisfied(Witness::Call(naming(4, 2, "Read"))));
    assert!(matches!(grade.verdicts[0].verdict, Verdict::NotSatisfied { .. }));
}

#[test]
fn a_probe_of_the_selection_with_no_event_is_refused_as_not_run() {
    let two = [probe(Expectation::Opened), Declared { id: Some("P-0".into()), ..probe(Expectation::Cited) }];
    let whole = record(vec![calls(&[DOC])], &["P-0", "P-1"]);
    let graded = grade(&whole, &two);
    assert_eq!(names(&graded), [("P-1", Some("s")), ("P-0", None)]);
    assert_eq!(graded.verdicts[1].verdict, refused(Whose::Recorder, Reason::NotRun));
    assert_eq!(graded.verdicts[1].expects, Some(Expectation::Cited));
    assert_eq!((graded.counts.refused_by_defect, graded.counts.not_run, graded.counts.graded()), (1, 1, 1));
    let part = record(vec![calls(&[DOC])], &["P-1"]);
    assert_eq!(names(&grade(&part, &two)), [("P-1", Some("s"))], "a probe outside the selection was not to be run");
}

#[test]
fn a_refused_session_is_in_no_rate_and_the_two_kinds_are_counted_apart() {
    let mut events: Vec<_> = ["a", "b", "c"].iter().map(|s| of_session("P-1", s, calls(&["x"]))).collect();
    events.push(of_session("P-1", "d", calls(&[DOC])));
    events.push(of_session("P-1", "e", calls(&[])));
    events.push(of_session("P-1", "f", event()));
    let record = record(events, &["P-1", "P-9"]);
    let probes = [probe(Expectation::NotOpened)];
    let grade = grade(&record, &probes);
    let counts = Counts { satisfied: 3, not_satisfied: 1, refused_by_session: 1, refused_by_defect: 2, not_run: 1 };
    assert_eq!(grade.counts, counts);
    assert_eq!(grade.rate, Rate::of(3, 4));
    let nothing = self::record(vec![event()], &[]);
    assert_eq!(super::grade(&nothing, &probes).rate, None);
    assert!(text::render(&super::grade(&nothing, &probes), "a.md").contains("\nNo rate: nothing was graded.\n"));
}

#[test]
fn where_two_probes_have_one_identifier_the_first_is_taken() {
    let record = record(vec![answer("current")], &[]);
    let probes = [probe(Expectation::Answered), probe(Expectation::Opened)];
    assert!(matches!(grade(&record, &probes).verdicts[0].verdict, Verdict::Satisfied { .. }));
}

#[test]
fn a_verdict_is_one_line_with_its_witness_its_search_or_its_reason() {
    let line = |probe: Declared, events: Vec<Event>| {
        let (record, probes) = (record(events, &["P-1"]), [probe]);
        let text = text::render(&grade(&record, &probes), "a.md");
        text.lines().find(|l| l.starts_with("- P-1")).unwrap().to_owned()
    };
    let two = |cites: &[&str], findings: Option<&[&str]>| {
        produced(vec![artifact("o.md", &[], Some(&[RULE])), artifact("t.md", cites, findings)])
    };
    use Expectation::{Answered, Cited, NotOpened, Opened, Patched};
    for (form, events, expected) in [
        (Opened, vec![calls(&["x", DOC])], "opened: satisfied: event 1, call 2 (Read) names docs/a.md"),
        (
            Opened,
            vec![calls(&["x"])],
            "opened: not satisfied: none of 1 call in 1 event names src/anchor.txt or docs/a.md",
        ),
        (Opened, vec![event()], "opened: refused (recorder): no event has `calls`: nothing watched the session"),
        (
            NotOpened,
            vec![calls(&["x", "y"]), calls(&[])],
            "not_opened: satisfied: none of 2 calls in 2 events names src/anchor.txt or docs/a.md",
        ),
        (
            NotOpened,
            vec![calls(&["x", DOC, "y"])],
            "not_opened: not satisfied: event 1, call 2 (Read) names docs/a.md, of 3 calls in 1 event",
        ),
        (
            NotOpened,
            vec![calls(&[])],
            "not_opened: refused (session): the session made no call at all, so it avoided nothing",
        ),
        (Cited, vec![two(&["D-1"], None)], "cited: satisfied: event 1, artifact 2 (t.md) cites D-1"),
        (Cited, vec![two(&[], None)], "cited: not satisfied: none of 2 artifacts in 1 event cites D-1"),
        (
            Cited,
            vec![event()],
            "cited: refused (recorder): no event has `produced`: nothing looked at what the session left",
        ),
        (Answered, vec![answer("current")], "answered: satisfied: event 1, answer 1 of 1, is `current`"),
        (
            Answered,
            vec![answer("no"), answer("x")],
            "answered: not satisfied: event 2, answer 2 of 2, is `x`, which is not in the closed set",
        ),
        (
            Answered,
            vec![answer("no")],
            "answered: not satisfied: event 1, answer 1 of 1, is `no`, which is in the closed set and not expected",
        ),
        (
            Answered,
            vec![Event { answer: Answer::None, ..event() }],
            "answered: not satisfied: event 1, answer 1 of 1, records that there was none",
        ),
        (
            Answered,
            vec![event()],
            "answered: refused (recorder): no event has `answer`: nothing looked at the final message",
        ),
        (
            Patched,
            vec![two(&[], Some(&[]))],
            "patched: satisfied: event 1, artifact 2 (t.md) does not have the finding section.required.missing",
        ),
        (
            Patched,
            vec![two(&[], Some(&[RULE]))],
            "patched: not satisfied: each of 2 artifacts in 1 event has the finding section.required.missing",
        ),
        (Patched, vec![produced(vec![])], "patched: not satisfied: nothing was produced in 1 event"),
        (
            Patched,
            vec![two(&[], None)],
            "patched: refused (recorder): event 1, artifact 2 (t.md) has no `findings`: nothing checked it",
        ),
    ] {
        assert_eq!(line(probe(form), events), format!("- P-1, session s, expects {expected}"));
    }
    for (probe, expected) in [
        (
            Declared { expectation: None, ..probe(Opened) },
            ": refused (declaration): the probe declares no form of expectation that is known",
        ),
        (
            Declared { examines: vec![], ..probe(Opened) },
            ", expects opened: refused (declaration): the probe examines nothing",
        ),
        (
            Declared { examines: vec![], ..probe(Cited) },
            ", expects cited: refused (declaration): nothing that the probe examines has an identifier",
        ),
        (
            Declared { answers: vec![], ..probe(Answered) },
            ", expects answered: refused (declaration): the probe declares no closed set of answers with a proper expected part",
        ),
        (
            Declared { oracle: None, ..probe(Patched) },
            ", expects patched: refused (declaration): the probe names no rule as its oracle",
        ),
    ] {
        assert_eq!(line(probe, vec![event()]), format!("- P-1, session s{expected}"));
    }
    assert_eq!(
        line(probe(Opened), vec![]),
        "- P-1, expects opened: refused (recorder): not run: no event names the probe, which is in the selection"
    );
}

#[test]
fn a_grade_prints_the_run_the_verdicts_the_counts_and_the_rate() {
    let mut record = record(vec![calls(&["x", DOC])], &["P-1"]);
    record.dropped.push(Dropped { event: 2, probe: "P-9".into(), reason: "no document has it".into() });
    record.read_set = ReadSet::Moved;
    let probes = [probe(Expectation::Opened)];
    let mark = crate::probe::intake::MARK;
    assert_eq!(
        text::render(&grade(&record, &probes), "a.md"),
        format!(
            "# Grade of a.md\n\nGrader {GRADER_VERSION}. Tier campaign, arm absent, model m served as m-1, at \
             2026-08-14T09:30:00Z, 57 cents.\n\n{mark}\n\n## The verdicts\n\n- P-1, session s, expects opened: satisfied: \
             event 1, call 2 (Read) names docs/a.md\n\n## The counts\n\n- satisfied: 1\n- not satisfied: 0\n- refused, the \
             session's own: 0\n- refused, a defect of the recorder or the declaration: 0, of which 0 not run\n\n## The \
             rate\n\n100.0%: 1 of 1 graded, 95% interval 20.7% to 100.0% (Wilson score)\n\nDropped, and in no verdict: 1 \
             event\n\n- event 2 names `P-9`: no document has it\n"
        )
    );
}

#[test]
fn where_the_selection_is_not_known_the_grade_says_that_what_was_not_run_is_not_known() {
    let mut record = record(vec![calls(&[DOC])], &[]);
    let probes = [probe(Expectation::Opened)];
    let sentence = "probes that were not run are not known";
    assert!(!text::render(&grade(&record, &probes), "a.md").contains(sentence));
    record.selection.scope = Scope::Neither;
    assert!(text::render(&grade(&record, &probes), "a.md").contains(sentence));
}

#[test]
fn the_json_is_typed() {
    let record = record(
        vec![calls(&["x", DOC]), of_session("P-1", "t", calls(&["x"])), of_session("P-1", "u", event())],
        &["P-1", "P-2"],
    );
    let probes = [probe(Expectation::Opened)];
    let json: serde_json::Value = serde_json::from_str(&text::json(&grade(&record, &probes)).unwrap()).unwrap();
    assert_eq!((&json["format"], &json["grader_version"]), (&1.into(), &GRADER_VERSION.into()));
    assert_eq!((&json["identity"]["tier"], &json["identity"]["cost_cents"]), (&"campaign".into(), &57.into()));
    assert_eq!(
        json["verdicts"][0],
        serde_json::json!({
            "probe": "P-1", "session": "s", "expects": "opened", "verdict": "satisfied",
            "witness": {"kind": "call", "event": 1, "call": 2, "tool": "Read", "document": DOC},
            "text": "satisfied: event 1, call 2 (Read) names docs/a.md",
        })
    );
    assert_eq!(json["verdicts"][1]["miss"]["searched"], serde_json::json!({"events": 1, "items": 1}));
    assert_eq!(json["verdicts"][2]["reason"], serde_json::json!({"id": "calls_not_watched"}));
    assert_eq!(
        (&json["verdicts"][3]["session"], &json["verdicts"][3]["whose"]),
        (&serde_json::Value::Null, &"recorder".into())
    );
    assert_eq!(json["counts"]["not_satisfied"], 1);
    assert_eq!(
        (&json["graded"], &json["rate"]["percent"], &json["rate"]["low"]),
        (&2.into(), &50.0.into(), &9.5.into())
    );
}

#[test]
fn no_value_of_a_transcript_makes_a_line_of_the_output() {
    let forged = "x\n- P-1, session z: satisfied";
    let mut event = of_session("P-1", forged, Event { calls: Some(vec![call(forged, DOC)]), ..answer(forged) });
    event.produced = Some(vec![artifact(forged, &["D-1"], Some(&[]))]);
    for form in Expectation::ALL {
        let mut record = record(vec![event.clone()], &["P-1"]);
        record.identity.model = forged.into();
        record.dropped.push(Dropped { event: 2, probe: forged.into(), reason: "none".into() });
        let probes = [probe(*form)];
        let text = text::render(&grade(&record, &probes), "a.md");
        assert!(!text.lines().any(|l| l.starts_with("- P-1, session z")), "{text}");
    }
}

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

#[test]
fn a_graded_transcript_is_status_0_a_refused_one_1_and_an_unreadable_one_3() {
    let site = Site::minimal();
    site.write("docs/probes/find-two.md", &probe_document("WM-PR-0002", "docs/decisions/one.md"));
    let mut draft = Draft::of(&site.read(), None);
    draft.events.push(read_event("WM-PR-0404", "s1"));
    site.write("run.md", &draft.document());
    draft.identity.lock = "another".into();
    draft.identity.selection = "another".into();
    site.write("refused.md", &draft.document());
    let output = |file: &str, format: &str| {
        let path = site.path(file).display().to_string();
        let root = site.path("").display().to_string();
        let line = Line::try_parse_from(["grade", &path, "--root", &root, "--format", format]).unwrap();
        command::output(&line.args)
    };
    let (text, status) = output("run.md", "text").unwrap();
    assert_eq!(status, Status::Done);
    assert!(text.contains("\n100.0%: 2 of 2 graded, 95% interval 34.2% to 100.0% (Wilson score)\n"), "{text}");
    assert!(text.contains("\n- event 3 names `WM-PR-0404`: no document"), "{text}");
    let (json, status) = output("run.md", "json").unwrap();
    assert_eq!(status, Status::Done);
    assert!(json.contains("\"grader_version\""));
    for format in ["text", "json"] {
        let (text, status) = output("refused.md", format).unwrap();
        assert!(status == Status::No && text.contains("lock-moved"), "{text}");
        assert_eq!(output("none.md", format).unwrap_err().status, Status::Unreadable);
    }
}

/// So many sessions of 50 calls each, a third of them of the shell.
fn large(sessions: usize) -> Record {
    let calls: Vec<_> = (0..50)
        .map(|i| match i % 3 {
            0 => call("Bash", &format!("{{\"command\":\"grep -rn x src/{i} | tee out-{i} && cat docs/b{i}.md\"}}")),
            _ => call("Read", &format!("/ws/docs/b{i}.md")),
        })
        .collect();
    let event = |i: usize| of_session("P-1", &format!("s{i}"), Event { calls: Some(calls.clone()), ..event() });
    record((0..sessions).map(event).collect(), &["P-1"])
}

#[test]
fn ten_thousand_sessions_take_ten_times_a_thousand_and_not_a_hundred_times() {
    let probes = [probe(Expectation::Opened)];
    let seconds = |sessions: usize| {
        let record = large(sessions);
        let took = |_| {
            let start = Instant::now();
            let grade = grade(&record, &probes);
            let text = text::render(&grade, "a.md");
            assert_eq!((grade.verdicts.len(), text.lines().count()), (sessions, sessions + 17));
            start.elapsed()
        };
        (0..3).map(took).min().unwrap_or_default()
    };
    let (small, large) = (seconds(1_000), seconds(10_000));
    assert!(large < small * 40 + Duration::from_millis(50), "{small:?} and {large:?}");
}

fn any_event() -> impl Strategy<Value = Event> {
    let call = (prop_oneof!["Read", "Bash"], ".{0,20}").prop_map(|(tool, argument)| call(&tool, &argument));
    let strings = || prop::collection::vec(prop_oneof!["D-1", "D-2", RULE], 0..3);
    let artifact = (".{0,5}", strings(), prop::option::of(strings())).prop_map(|(path, cites, findings)| Produced {
        path,
        result: String::new(),
        cites,
        findings,
    });
    let answer = prop_oneof![
        Just(Answer::NotObserved),
        Just(Answer::None),
        prop_oneof!["current", "no", "x"].prop_map(Answer::Value)
    ];
    let lists =
        (prop::option::of(prop::collection::vec(call, 0..4)), prop::option::of(prop::collection::vec(artifact, 0..4)));
    ("P-[1-6]", "[ab]", lists, answer).prop_map(|(probe, session, (calls, produced), answer)| Event {
        probe,
        session,
        calls,
        produced,
        answer,
    })
}

proptest! {
    #[test]
    fn every_session_has_one_verdict_and_the_order_of_the_probes_changes_none(
        events in prop::collection::vec(any_event(), 0..12)
    ) {
        let mut probes: Vec<_> = (1..).zip(Expectation::ALL).map(|(i, form)| Declared { id: Some(format!("P-{i}")), ..probe(*form) }).collect();
        let record = record(events, &["P-1", "P-2", "P-3", "P-4", "P-5"]);
        let text = text::render(&grade(&record, &probes), "a.md");
        let grade = grade(&record, &probes);
        let sessions: BTreeSet<_> = record.events.iter().map(|r| (&r.event.probe, &r.event.session)).collect();
        prop_assert_eq!(grade.verdicts.iter().filter(|g| g.session.is_some()).count(), sessions.len());
        let Counts { satisfied, not_satisfied, refused_by_session, refused_by_defect, .. } = grade.counts;
        prop_assert_eq!(satisfied + not_satisfied + refused_by_session + refused_by_defect, grade.verdicts.len() as u64);
        probes.reverse();
        prop_assert_eq!(text::render(&super::grade(&record, &probes), "a.md"), text);
    }
}
