//! The verdict over one session: the five forms, with every witness, miss and refusal.

use crate::probe::declared::Declared;
use crate::probe::intake::Recorded;
use crate::probe::words;
use headwater_contract::keys::Expectation;
use headwater_contract::plan::Target;
use headwater_contract::transcript::{Answer, Call, Event, Produced};
use serde::Serialize;

/// What a session shows about the expectation of its probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The expectation is met.
    Satisfied {
        /// What shows it.
        witness: Witness,
    },
    /// It is not.
    NotSatisfied {
        /// What was searched and found instead.
        miss: Miss,
    },
    /// Nothing can be said; the session is in no rate.
    Refused {
        /// What caused it.
        whose: Whose,
        /// Why.
        reason: Reason,
    },
}

/// What causes a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// What the session did.
    Session,
    /// A recorder that did not look, or a run that did not happen.
    Recorder,
    /// What the probe declares.
    Declaration,
}

/// A call that names a document that is examined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamingCall {
    /// The event, one-based in the transcript.
    pub event: usize,
    /// The call, one-based in the event.
    pub call: usize,
    /// The tool.
    pub tool: String,
    /// The document.
    pub document: String,
}

/// An artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// The event, one-based in the transcript.
    pub event: usize,
    /// The artifact, one-based in the event.
    pub artifact: usize,
    /// Where it landed.
    pub path: String,
}

/// A recorded answer: the last one of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answered {
    /// The event, one-based in the transcript.
    pub event: usize,
    /// Which of the recorded answers it is, one-based; it is the last, so this is also their number.
    pub answer: usize,
    /// What it is, nothing for a recorded `null`.
    pub value: Option<String>,
}

/// How much was searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Searched {
    /// The events that recorded what was looked for.
    pub events: usize,
    /// The calls or artifacts in them.
    pub items: usize,
}

/// What shows that an expectation is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Witness {
    /// `opened`: the first call that names a document.
    Call(NamingCall),
    /// `not_opened`: no call names one.
    NoCall {
        /// What was searched.
        searched: Searched,
        /// The documents.
        documents: Vec<String>,
    },
    /// `cited`: the first artifact that cites a document.
    Cites {
        /// The artifact.
        #[serde(flatten)]
        artifact: Artifact,
        /// The identifier.
        identifier: String,
    },
    /// `answered`: the last answer is an expected one.
    Answer(Answered),
    /// `patched`: the first artifact over which the oracle does not report.
    Free {
        /// The artifact.
        #[serde(flatten)]
        artifact: Artifact,
        /// The oracle.
        oracle: String,
    },
}

/// What was found where an expectation is not met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Miss {
    /// `opened`: no call names a document.
    NoCall {
        /// What was searched.
        searched: Searched,
        /// The documents.
        documents: Vec<String>,
    },
    /// `not_opened`: a call names one, out of so many.
    Call {
        /// The first such call.
        #[serde(flatten)]
        call: NamingCall,
        /// What was searched.
        searched: Searched,
    },
    /// `cited`: no artifact cites a document.
    NoCitation {
        /// What was searched.
        searched: Searched,
        /// The identifiers.
        identifiers: Vec<String>,
    },
    /// `answered`: the last answer is a recorded `null`.
    NoAnswer(Answered),
    /// `answered`: the last answer is not in the closed set.
    OutsideTheSet(Answered),
    /// `answered`: the last answer is in the set and not expected.
    NotExpected(Answered),
    /// `patched`: nothing was produced.
    NothingProduced {
        /// What was searched.
        searched: Searched,
    },
    /// `patched`: the oracle reports over every artifact.
    AllReported {
        /// What was searched.
        searched: Searched,
        /// The oracle.
        oracle: String,
    },
}

/// Why nothing can be said about a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "id", rename_all = "snake_case")]
pub enum Reason {
    /// No event names the probe, which the selection has.
    NotRun,
    /// No event has `calls`.
    CallsNotWatched,
    /// `not_opened`: the session made no call at all, so it avoided nothing.
    NoCallAtAll,
    /// No event has `produced`.
    ProducedNotLookedAt,
    /// No event has `answer`.
    AnswerNotLookedAt,
    /// An artifact has no `findings`.
    NotChecked(Artifact),
    /// The probe declares no form that is known.
    NoForm,
    /// `opened`, `not_opened`: the probe examines nothing.
    NoTarget,
    /// `cited`: nothing that the probe examines has an identifier.
    NoIdentifier,
    /// `answered`: the probe declares no closed set with a proper expected part.
    NoClosedSet,
    /// `patched`: the probe names no oracle.
    NoOracle,
}

impl Reason {
    /// What causes it.
    #[must_use]
    pub const fn whose(&self) -> Whose {
        match self {
            Self::NoCallAtAll => Whose::Session,
            Self::NotRun
            | Self::CallsNotWatched
            | Self::ProducedNotLookedAt
            | Self::AnswerNotLookedAt
            | Self::NotChecked(_) => Whose::Recorder,
            Self::NoForm | Self::NoTarget | Self::NoIdentifier | Self::NoClosedSet | Self::NoOracle => {
                Whose::Declaration
            }
        }
    }

    /// The verdict with this reason.
    #[must_use]
    pub const fn refused(self) -> Verdict {
        Verdict::Refused { whose: self.whose(), reason: self }
    }
}

/// Either what shows that the expectation is met or what was found instead; or why neither can be said.
type Held = Result<Result<Witness, Miss>, Reason>;

/// The verdict over the events of one session, held to what its probe declares.
#[must_use]
pub fn of(events: &[&Recorded], probe: Option<&Declared>) -> Verdict {
    match probe.map_or(Err(Reason::NoForm), |probe| hold(events, probe)) {
        Ok(Ok(witness)) => Verdict::Satisfied { witness },
        Ok(Err(miss)) => Verdict::NotSatisfied { miss },
        Err(reason) => reason.refused(),
    }
}

fn hold(events: &[&Recorded], probe: &Declared) -> Held {
    match probe.expectation.ok_or(Reason::NoForm)? {
        Expectation::Opened => opened(events, probe),
        Expectation::NotOpened => not_opened(events, probe),
        Expectation::Cited => cited(events, probe),
        Expectation::Answered => answered(events, probe),
        Expectation::Patched => patched(events, probe),
    }
}

/// What the events of a session recorded under one key, in recorded order.
struct Seen<'a, T> {
    searched: Searched,
    /// The event and the place within it, both one-based.
    items: Vec<(usize, usize, &'a T)>,
}

/// Everything under the key that `list` reads; nothing where no event has the key.
fn seen<'a, T>(events: &[&'a Recorded], list: impl Fn(&'a Event) -> Option<&'a [T]>) -> Option<Seen<'a, T>> {
    let mut items = Vec::new();
    let mut with = 0;
    for recorded in events {
        if let Some(list) = list(&recorded.event) {
            with += 1;
            items.extend((1..).zip(list).map(|(place, item)| (recorded.position, place, item)));
        }
    }
    (with > 0).then_some(Seen { searched: Searched { events: with, items: items.len() }, items })
}

fn calls<'a>(events: &[&'a Recorded]) -> Result<Seen<'a, Call>, Reason> {
    seen(events, |e| e.calls.as_deref()).ok_or(Reason::CallsNotWatched)
}

fn artifacts<'a>(events: &[&'a Recorded]) -> Result<Seen<'a, Produced>, Reason> {
    seen(events, |e| e.produced.as_deref()).ok_or(Reason::ProducedNotLookedAt)
}

impl Seen<'_, Call> {
    /// The first call that names one of the documents.
    fn naming(&self, targets: &[Target]) -> Option<NamingCall> {
        self.items.iter().find_map(|&(event, call, made)| {
            let texts = words::candidates(made);
            let named = targets.iter().find(|t| texts.iter().any(|text| words::names(text, &t.path)))?;
            Some(NamingCall { event, call, tool: made.tool.clone(), document: named.path.clone() })
        })
    }
}

fn examined(probe: &Declared) -> Result<Vec<String>, Reason> {
    let paths: Vec<_> = probe.examines.iter().map(|t| t.path.clone()).collect();
    if paths.is_empty() { Err(Reason::NoTarget) } else { Ok(paths) }
}

fn opened(events: &[&Recorded], probe: &Declared) -> Held {
    let documents = examined(probe)?;
    let calls = calls(events)?;
    Ok(match calls.naming(&probe.examines) {
        Some(call) => Ok(Witness::Call(call)),
        None => Err(Miss::NoCall { searched: calls.searched, documents }),
    })
}

fn not_opened(events: &[&Recorded], probe: &Declared) -> Held {
    let documents = examined(probe)?;
    let calls = calls(events)?;
    let searched = calls.searched;
    if searched.items == 0 {
        return Err(Reason::NoCallAtAll);
    }
    Ok(match calls.naming(&probe.examines) {
        Some(call) => Err(Miss::Call { call, searched }),
        None => Ok(Witness::NoCall { searched, documents }),
    })
}

fn artifact(event: usize, place: usize, produced: &Produced) -> Artifact {
    Artifact { event, artifact: place, path: produced.path.clone() }
}

fn cited(events: &[&Recorded], probe: &Declared) -> Held {
    let identifiers: Vec<_> = probe.examines.iter().filter_map(|t| t.id.clone()).collect();
    if identifiers.is_empty() {
        return Err(Reason::NoIdentifier);
    }
    let artifacts = artifacts(events)?;
    let citing = artifacts.items.iter().find_map(|&(event, place, produced)| {
        let identifier = identifiers.iter().find(|id| produced.cites.contains(id))?.clone();
        Some(Witness::Cites { artifact: artifact(event, place, produced), identifier })
    });
    Ok(citing.ok_or(Miss::NoCitation { searched: artifacts.searched, identifiers }))
}

fn answered(events: &[&Recorded], probe: &Declared) -> Held {
    let (answers, expected) = probe.closed_set().ok_or(Reason::NoClosedSet)?;
    let recorded = events.iter().filter_map(|r| match &r.event.answer {
        Answer::NotObserved => None,
        Answer::None => Some((r.position, None)),
        Answer::Value(value) => Some((r.position, Some(value))),
    });
    let (answer, (event, value)) = (1..).zip(recorded).last().ok_or(Reason::AnswerNotLookedAt)?;
    let last = Answered { event, answer, value: value.cloned() };
    Ok(match value {
        None => Err(Miss::NoAnswer(last)),
        Some(value) if !answers.contains(value) => Err(Miss::OutsideTheSet(last)),
        Some(value) if !expected.contains(value) => Err(Miss::NotExpected(last)),
        Some(_) => Ok(Witness::Answer(last)),
    })
}

fn patched(events: &[&Recorded], probe: &Declared) -> Held {
    let oracle = probe.oracle.as_ref().ok_or(Reason::NoOracle)?;
    let artifacts = artifacts(events)?;
    let searched = artifacts.searched;
    for (event, place, produced) in artifacts.items {
        let artifact = || artifact(event, place, produced);
        match &produced.findings {
            None => return Err(Reason::NotChecked(artifact())),
            Some(findings) if !findings.contains(oracle) => {
                return Ok(Ok(Witness::Free { artifact: artifact(), oracle: oracle.clone() }));
            }
            Some(_) => {}
        }
    }
    Ok(Err(match searched.items {
        0 => Miss::NothingProduced { searched },
        _ => Miss::AllReported { searched, oracle: oracle.clone() },
    }))
}
