//! Verdicts: a pure function of a confirmed transcript, the expectations that probes declare, and the version of the
//! grader.
//!
//! - [`grade`]: the sessions of a record, each held to the expectation of its probe.
//! - [`verdict`]: the five forms.
//! - [`text`]: the grade as text and as JSON; [`command`]: the verb.

pub mod command;
pub mod text;
pub mod verdict;

pub use command::{Args, run};
pub use verdict::{Miss, Reason, Verdict, Whose, Witness};

use super::declared::Declared;
use super::intake::{Record, Recorded};
use super::interval::Rate;
use headwater_contract::keys::Expectation;
use serde::Serialize;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The version of the grader. It moves when a verdict or a byte of a rendered grade changes, and with nothing else:
/// two results of two versions are results of two instruments.
pub const GRADER_VERSION: &str = "0.1.0";

/// The grade of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grade<'a> {
    /// What was graded.
    pub record: &'a Record,
    /// One for each session, in order of first appearance; then one for each probe of the selection that no session
    /// ran, in byte order.
    pub verdicts: Vec<Graded<'a>>,
    /// How many there are of each.
    pub counts: Counts,
    /// Satisfied over graded, where anything was graded.
    pub rate: Option<Rate>,
}

/// The verdict over one session, or over a probe that no session ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Graded<'a> {
    /// The identifier of the probe.
    pub probe: &'a str,
    /// The name of the session, nothing where none ran.
    pub session: Option<&'a str>,
    /// The form of the probe's expectation, where it declares one.
    pub expects: Option<Expectation>,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// How many verdicts there are of each kind. Refusals are in no rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Satisfied.
    pub satisfied: u64,
    /// Not satisfied.
    pub not_satisfied: u64,
    /// Refused for what the session did.
    pub refused_by_session: u64,
    /// Refused for a defect of the recorder or of the declaration, probes that were not run among them.
    pub refused_by_defect: u64,
    /// Probes that were not run.
    pub not_run: u64,
}

impl Counts {
    fn of(verdicts: &[Graded<'_>]) -> Self {
        let mut counts = Self::default();
        for graded in verdicts {
            *match &graded.verdict {
                Verdict::Satisfied { .. } => &mut counts.satisfied,
                Verdict::NotSatisfied { .. } => &mut counts.not_satisfied,
                Verdict::Refused { whose: Whose::Session, .. } => &mut counts.refused_by_session,
                Verdict::Refused { .. } => &mut counts.refused_by_defect,
            } += 1;
            counts.not_run += u64::from(graded.session.is_none());
        }
        counts
    }

    /// The sessions that the rate is over.
    #[must_use]
    pub const fn graded(&self) -> u64 {
        self.satisfied + self.not_satisfied
    }
}

/// One session: the events that name it, in recorded order.
struct Session<'a> {
    probe: &'a str,
    name: &'a str,
    events: Vec<&'a Recorded>,
}

/// Grades a record. `probes` are those of the corpus that the record was confirmed over; where two have one
/// identifier, the first is taken.
#[must_use]
pub fn grade<'a>(record: &'a Record, probes: &'a [Declared]) -> Grade<'a> {
    let mut expectations = BTreeMap::new();
    for probe in probes {
        if let Some(id) = &probe.id {
            expectations.entry(id.as_str()).or_insert(probe);
        }
    }
    let sessions = sessions(&record.events);
    let run: BTreeSet<_> = sessions.iter().map(|s| s.probe).collect();
    let not_run = record.selection.probes.iter().map(String::as_str).filter(|id| !run.contains(id));
    let graded = |probe, session, verdict| {
        let expects = expectations.get(probe).and_then(|p: &&Declared| p.expectation);
        Graded { probe, session, expects, verdict }
    };
    let verdicts: Vec<_> = sessions
        .iter()
        .map(|s| graded(s.probe, Some(s.name), verdict::of(&s.events, expectations.get(s.probe).copied())))
        .chain(not_run.map(|id| graded(id, None, Reason::NotRun.refused())))
        .collect();
    let counts = Counts::of(&verdicts);
    Grade { record, verdicts, counts, rate: Rate::of(counts.satisfied, counts.graded()) }
}

/// The sessions of a record, each (probe, session) once over all of its events, in order of first appearance.
fn sessions(events: &[Recorded]) -> Vec<Session<'_>> {
    let mut sessions: Vec<Session<'_>> = Vec::new();
    let mut index: HashMap<_, usize> = HashMap::new();
    for recorded in events {
        let (probe, name) = (recorded.event.probe.as_str(), recorded.event.session.as_str());
        match index.entry((probe, name)) {
            Entry::Occupied(at) => sessions[*at.get()].events.push(recorded),
            Entry::Vacant(free) => {
                free.insert(sessions.len());
                sessions.push(Session { probe, name, events: vec![recorded] });
            }
        }
    }
    sessions
}

#[cfg(test)]
pub(crate) mod tests;
