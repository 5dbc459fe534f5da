//! A grade as text and as JSON.

use super::verdict::{Answered, Artifact, NamingCall, Searched};
use super::{Counts, GRADER_VERSION, Grade, Graded, Miss, Reason, Verdict, Whose, Witness};
use crate::probe::declared::one_line;
use crate::probe::intake::text::{count, dropped, pretty};
use crate::probe::intake::{Dropped, ReadSet, Scope};
use crate::probe::interval::Rate;
use headwater_contract::transcript::RunIdentity;
use serde::Serialize;
use std::fmt::Write as _;

/// The version of the JSON.
pub const FORMAT: u32 = 1;

/// A grade as text, under `name`: one line for each verdict, the counts, the rate.
#[must_use]
pub fn render(grade: &Grade<'_>, name: &str) -> String {
    let mut out = format!("# Grade of {name}\n\nGrader {GRADER_VERSION}. ");
    line(&mut out, &run(&grade.record.identity));
    if let Some(mark) = grade.record.mark() {
        line(&mut out, &format!("\n{mark}"));
    }
    out.push_str("\n## The verdicts\n\n");
    for graded in &grade.verdicts {
        line(&mut out, &format!("- {}", verdict_line(graded)));
    }
    if grade.verdicts.is_empty() {
        out.push_str("No session and no probe that was not run.\n");
    }
    if grade.record.selection.scope == Scope::Neither {
        out.push_str("\nThis tree does not have the selection, so probes that were not run are not known.\n");
    }
    counts(&mut out, &grade.counts);
    rate(&mut out, grade);
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn run(identity: &RunIdentity) -> String {
    let RunIdentity { model, served_version, tier, arm, at, cost_cents, .. } = identity;
    let [model, served, at] = [model, served_version, at].map(|text| one_line(text));
    format!("Tier {tier}, arm {arm}, model {model} served as {served}, at {at}, {cost_cents} cents.")
}

fn counts(out: &mut String, counts: &Counts) {
    let Counts { satisfied, not_satisfied, refused_by_session, refused_by_defect, not_run } = counts;
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "\n## The counts\n\n- satisfied: {satisfied}\n- not satisfied: {not_satisfied}\n- refused, the session's own: \
         {refused_by_session}\n- refused, a defect of the recorder or the declaration: {refused_by_defect}, of which \
         {not_run} not run"
    );
}

fn rate(out: &mut String, grade: &Grade<'_>) {
    let (satisfied, graded) = (grade.counts.satisfied, grade.counts.graded());
    let rate = match grade.rate {
        Some(Rate { percent, low, high }) => {
            format!("{percent}: {satisfied} of {graded} graded, 95% interval {low} to {high} (Wilson score)")
        }
        None => "No rate: nothing was graded.".to_owned(),
    };
    line(out, &format!("\n## The rate\n\n{rate}"));
    if !grade.record.dropped.is_empty() {
        let events = count(grade.record.dropped.len(), "event");
        line(out, &format!("\nDropped, and in no verdict: {events}\n\n{}", dropped(&grade.record.dropped)));
    }
}

/// One verdict on one line.
fn verdict_line(graded: &Graded<'_>) -> String {
    let mut text = one_line(graded.probe).into_owned();
    if let Some(session) = graded.session {
        let _ = write!(text, ", session {}", one_line(session));
    }
    if let Some(expects) = graded.expects {
        let _ = write!(text, ", expects {expects}");
    }
    text + ": " + &verdict(&graded.verdict)
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Satisfied { witness } => format!("satisfied: {}", self::witness(witness)),
        Verdict::NotSatisfied { miss } => format!("not satisfied: {}", self::miss(miss)),
        Verdict::Refused { whose, reason } => format!("refused ({}): {}", self::whose(*whose), self::reason(reason)),
    }
}

const fn whose(whose: Whose) -> &'static str {
    match whose {
        Whose::Session => "session",
        Whose::Recorder => "recorder",
        Whose::Declaration => "declaration",
    }
}

fn witness(witness: &Witness) -> String {
    match witness {
        Witness::Call(call) => naming(call),
        Witness::NoCall { searched, documents } => no_call(*searched, documents),
        Witness::Cites { artifact, identifier } => {
            format!("{} cites {}", self::artifact(artifact), one_line(identifier))
        }
        Witness::Answer(answer) => answered(answer),
        Witness::Free { artifact, oracle } => {
            format!("{} does not have the finding {}", self::artifact(artifact), one_line(oracle))
        }
    }
}

fn miss(miss: &Miss) -> String {
    match miss {
        Miss::NoCall { searched, documents } => no_call(*searched, documents),
        Miss::Call { call, searched } => format!("{}, of {}", naming(call), amount(*searched, "call")),
        Miss::NoCitation { searched, identifiers } => {
            format!("none of {} cites {}", amount(*searched, "artifact"), any(identifiers))
        }
        Miss::NoAnswer(answer) => answered(answer),
        Miss::OutsideTheSet(answer) => answered(answer) + ", which is not in the closed set",
        Miss::NotExpected(answer) => answered(answer) + ", which is in the closed set and not expected",
        Miss::NothingProduced { searched } => format!("nothing was produced in {}", count(searched.events, "event")),
        Miss::AllReported { searched, oracle } => {
            format!("each of {} has the finding {}", amount(*searched, "artifact"), one_line(oracle))
        }
    }
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::NotRun => "not run: no event names the probe, which is in the selection".into(),
        Reason::CallsNotWatched => "no event has `calls`: nothing watched the session".into(),
        Reason::NoCallAtAll => "the session made no call at all, so it avoided nothing".into(),
        Reason::ProducedNotLookedAt => "no event has `produced`: nothing looked at what the session left".into(),
        Reason::AnswerNotLookedAt => "no event has `answer`: nothing looked at the final message".into(),
        Reason::NotChecked(artifact) => format!("{} has no `findings`: nothing checked it", self::artifact(artifact)),
        Reason::NoForm => "the probe declares no form of expectation that is known".into(),
        Reason::NoTarget => "the probe examines nothing".into(),
        Reason::NoIdentifier => "nothing that the probe examines has an identifier".into(),
        Reason::NoClosedSet => "the probe declares no closed set of answers with a proper expected part".into(),
        Reason::NoOracle => "the probe names no rule as its oracle".into(),
    }
}

fn naming(call: &NamingCall) -> String {
    let NamingCall { event, call, tool, document } = call;
    format!("event {event}, call {call} ({}) names {}", one_line(tool), one_line(document))
}

fn artifact(artifact: &Artifact) -> String {
    let Artifact { event, artifact, path } = artifact;
    format!("event {event}, artifact {artifact} ({})", one_line(path))
}

fn answered(answered: &Answered) -> String {
    let Answered { event, answer, value } = answered;
    let says = match value {
        Some(value) => format!("is `{}`", one_line(value)),
        None => "records that there was none".to_owned(),
    };
    format!("event {event}, answer {answer} of {answer}, {says}")
}

fn no_call(searched: Searched, documents: &[String]) -> String {
    format!("none of {} names {}", amount(searched, "call"), any(documents))
}

/// `3 calls in 2 events`.
fn amount(searched: Searched, what: &str) -> String {
    format!("{} in {}", count(searched.items, what), count(searched.events, "event"))
}

fn any(names: &[String]) -> String {
    names.iter().map(|n| one_line(n)).collect::<Vec<_>>().join(" or ")
}

#[derive(Serialize)]
struct GradeJson<'a> {
    format: u32,
    grader_version: &'static str,
    identity: &'a RunIdentity,
    selection: Scope,
    read_set: ReadSet,
    mark: Option<&'static str>,
    verdicts: Vec<GradedJson<'a>>,
    counts: Counts,
    graded: u64,
    rate: Option<Rate>,
    dropped: &'a [Dropped],
}

#[derive(Serialize)]
struct GradedJson<'a> {
    #[serde(flatten)]
    graded: &'a Graded<'a>,
    text: String,
}

/// A grade as JSON, with a line feed at the end. Each verdict carries its text too.
///
/// # Errors
/// Only what the encoder gives, which for a grade is nothing.
pub fn json(grade: &Grade<'_>) -> serde_json::Result<String> {
    let verdicts = grade.verdicts.iter().map(|graded| GradedJson { graded, text: verdict(&graded.verdict) });
    pretty(&GradeJson {
        format: FORMAT,
        grader_version: GRADER_VERSION,
        identity: &grade.record.identity,
        selection: grade.record.selection.scope,
        read_set: grade.record.read_set,
        mark: grade.record.mark(),
        verdicts: verdicts.collect(),
        counts: grade.counts,
        graded: grade.counts.graded(),
        rate: grade.rate,
        dropped: &grade.record.dropped,
    })
}
