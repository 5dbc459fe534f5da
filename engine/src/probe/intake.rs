//! Intake: whether a transcript is one, and over which probes of this corpus it was taken. No expectation is read.
//!
//! - [`Basis`]: what a transcript is confirmed against; [`Basis::confirm`]: the five confirmations, in their order.
//! - [`REFUSALS`]: every reason for which a transcript is refused.
//! - [`text`]: what is printed; [`mod@file`]: the transcript as a file; [`command`]: the verb.

pub mod command;
pub mod file;
pub mod text;

pub use command::{Args, run};

use super::declared::{self, Declared, one_line};
use super::plan;
use crate::corpus::{Class, Corpus, CorpusError, Document};
use headwater_contract::digest::Digest;
use headwater_contract::transcript::{self, Confirmation, Defect, Event, RunIdentity, Unreadable};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A reason for which a transcript is refused whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reason {
    /// The stable id.
    pub id: &'static str,
    /// The confirmation that fails.
    pub confirmation: Confirmation,
    /// The reason in one line.
    pub summary: &'static str,
}

const fn reason(id: &'static str, confirmation: Confirmation, summary: &'static str) -> Reason {
    Reason { id, confirmation, summary }
}

/// The lock moved and nothing says over which probes the transcript was taken.
pub const LOCK_MOVED: Reason = reason(
    "lock-moved",
    Confirmation::Taxonomy,
    "the lock is not that of this tree, and neither the probes of this tree nor those of the events are the selection",
);
/// The front matter has no end.
pub const FRONT_MATTER_OPEN: Reason =
    reason("front-matter-open", Confirmation::Identity, "the front matter is opened and never closed");
/// A heading is missing.
pub const SECTION_MISSING: Reason =
    reason("section-missing", Confirmation::Identity, "there is no section `Run identity` or no section `Events`");
/// A section without a block.
pub const BLOCK_MISSING: Reason =
    reason("block-missing", Confirmation::Identity, "a section holds no fenced `yaml` block");
/// A block without an end.
pub const BLOCK_OPEN: Reason = reason("block-open", Confirmation::Identity, "a `yaml` block is never closed");
/// A block that is not read.
pub const BLOCK_MALFORMED: Reason = reason(
    "block-malformed",
    Confirmation::Identity,
    "a block is no YAML of the form that is read, or is over its limit of size or depth",
);
/// A member that is missing or of another form.
pub const MEMBER_MISSING: Reason = reason(
    "member-missing",
    Confirmation::Identity,
    "a required member is missing, or is not what it has to be: an unknown tier or arm, a list that is no list",
);
/// A key outside the four sets.
pub const KEY_UNKNOWN: Reason =
    reason("key-unknown", Confirmation::NoProse, "a key is in none of the four closed sets");
/// A cost that is no number of cents.
pub const COST_NOT_WHOLE: Reason =
    reason("cost-not-whole", Confirmation::Cost, "`cost_cents` is not a whole number of cents");

/// Every reason, in the order of the confirmations. Membership refuses no transcript: it drops events.
pub const REFUSALS: &[Reason] = &[
    LOCK_MOVED,
    FRONT_MATTER_OPEN,
    SECTION_MISSING,
    BLOCK_MISSING,
    BLOCK_OPEN,
    BLOCK_MALFORMED,
    MEMBER_MISSING,
    KEY_UNKNOWN,
    COST_NOT_WHOLE,
];

/// Why a transcript is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// What is wrong, where, and what to do.
    pub message: String,
}

impl From<Unreadable> for Refusal {
    fn from(unreadable: Unreadable) -> Self {
        let reason = match unreadable {
            Unreadable::FrontMatter(_) => FRONT_MATTER_OPEN,
            Unreadable::NoSection(_) => SECTION_MISSING,
            Unreadable::NoBlock { .. } => BLOCK_MISSING,
            Unreadable::Unclosed { .. } => BLOCK_OPEN,
            Unreadable::Yaml { .. } => BLOCK_MALFORMED,
        };
        Self { reason, message: unreadable.to_string() }
    }
}

impl From<Defect> for Refusal {
    fn from(defect: Defect) -> Self {
        let reason = match defect.confirmation {
            Confirmation::NoProse => KEY_UNKNOWN,
            Confirmation::Cost => COST_NOT_WHOLE,
            _ => MEMBER_MISSING,
        };
        Self { reason, message: defect.to_string() }
    }
}

/// A confirmed transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The run identity.
    pub identity: RunIdentity,
    /// The events over probes of this corpus, in recorded order.
    pub events: Vec<Recorded>,
    /// The events over anything else.
    pub dropped: Vec<Dropped>,
    /// Whether the lock is still the recorded one.
    pub lock: Lock,
    /// What the transcript was planned over.
    pub selection: Selection,
    /// Whether the read set of that selection is still the recorded one.
    pub read_set: ReadSet,
}

/// An event and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// One-based, among all events of the transcript.
    pub position: usize,
    /// The event.
    pub event: Event,
}

/// An event that is not graded, since it names no probe of this corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// One-based, among all events of the transcript.
    pub event: usize,
    /// What it names.
    pub probe: String,
    /// Why that is no probe.
    pub reason: String,
}

/// The lock of a transcript against that of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lock {
    /// They are one.
    Same,
    /// They are two.
    Moved,
}

/// Which probes of the tree are the selection of a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// All of them.
    Whole,
    /// Those that its events name.
    Part,
    /// Neither the ones nor the others.
    Neither,
}

/// The selection of a transcript, recovered from its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// Which probes it is.
    pub scope: Scope,
    /// Their identifiers, in byte order; none where it is neither.
    pub probes: Vec<String>,
    /// The digest over all probes of the tree.
    pub this_tree: Digest,
}

/// The read set of a transcript against the one that this tree composes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadSet {
    /// They are one.
    Same,
    /// They are two, which marks the verdicts.
    Moved,
    /// This tree composes none, since it does not have the selection.
    NotComposed,
}

/// The mark of a record whose read set moved. It names no digest of the tree, so that a result that carries it changes
/// with the first edit and with no later one.
pub const MARK: &str = "The read set moved: a probe of the selection or a file that one examines is not what it was \
                        when the run was planned. Each verdict grades what the session did against the expectations \
                        that this tree declares now; where a probe changed, the session ran under others.";

impl Record {
    /// [`MARK`], where the read set moved.
    #[must_use]
    pub fn mark(&self) -> Option<&'static str> {
        (self.read_set == ReadSet::Moved).then_some(MARK)
    }
}

/// What transcripts are confirmed against: the lock and the probes of a corpus.
#[derive(Debug)]
pub struct Basis<'a> {
    corpus: &'a Corpus,
    lock: Digest,
    probes: Vec<Declared>,
    untyped: BTreeMap<&'a str, &'a Document>,
}

impl<'a> Basis<'a> {
    /// Reads the lock and the probes.
    ///
    /// # Errors
    /// Where one of them cannot be read.
    pub fn of(corpus: &'a Corpus) -> Result<Self, CorpusError> {
        let untyped = corpus.documents.iter().filter(|d| !d.is_typed());
        let untyped = untyped.filter_map(|d| Some((d.id.as_deref()?, d))).collect();
        Ok(Self { corpus, lock: corpus.lock()?, probes: plan::select(corpus, None)?, untyped })
    }

    /// The probes of the corpus that have an identifier, in byte order of it.
    #[must_use]
    pub fn probes(&self) -> &[Declared] {
        &self.probes
    }

    /// Confirms a transcript, given as the text of its document.
    ///
    /// # Errors
    /// The first confirmation that fails, in the order of the contract.
    pub fn confirm(&self, document: &str) -> Result<Record, Refusal> {
        let mut reading = transcript::read(document)?;
        let events = std::mem::take(&mut reading.events);
        let (selection, selected) = self.recover(reading.member("selection"), &events);
        let lock = match reading.member("lock") {
            Some(lock) if lock != self.lock.to_string() => Lock::Moved,
            // One that is missing is the second confirmation's.
            _ => Lock::Same,
        };
        if lock == Lock::Moved && selection.scope == Scope::Neither {
            return Err(self.lock_moved(reading.member("lock"), reading.member("selection")));
        }
        let identity = reading.whole()?.identity;
        let read_set = self.compare_read_set(&identity, &selection, &selected);
        let (events, dropped) = self.membership(events);
        Ok(Record { identity, events, dropped, lock, selection, read_set })
    }

    /// The probes whose selection has the recorded digest. An empty selection is none: nothing is in hand to read a
    /// transcript over.
    fn recover(&self, recorded: Option<&str>, events: &[Event]) -> (Selection, Vec<Declared>) {
        let this_tree = plan::selection_digest(&self.probes);
        let is_recorded = |probes: &[Declared]| {
            !probes.is_empty() && recorded.is_some_and(|r| r == plan::selection_digest(probes).to_string())
        };
        let (scope, selected) = if is_recorded(&self.probes) {
            (Scope::Whole, self.probes.clone())
        } else {
            let named: BTreeSet<_> = events.iter().map(|e| e.probe.as_str()).collect();
            let is_named = |p: &&Declared| p.id.as_deref().is_some_and(|id| named.contains(id));
            let part: Vec<_> = self.probes.iter().filter(is_named).cloned().collect();
            if is_recorded(&part) { (Scope::Part, part) } else { (Scope::Neither, Vec::new()) }
        };
        let probes: BTreeSet<_> = selected.iter().filter_map(|p| p.id.clone()).collect();
        (Selection { scope, probes: probes.into_iter().collect(), this_tree }, selected)
    }

    fn lock_moved(&self, lock: Option<&str>, selection: Option<&str>) -> Refusal {
        let shown = |digest: Option<&str>| one_line(digest.unwrap_or("none")).chars().take(80).collect::<String>();
        let message = format!(
            "the transcript names the lock {} and this tree has {}; its selection {} is neither that of all probes of \
             this tree nor that of the probes that its events name, so there is nothing to read it over; record again \
             over this tree, or confirm it over the tree it was taken over",
            shown(lock),
            self.lock,
            shown(selection),
        );
        Refusal { reason: LOCK_MOVED, message }
    }

    fn compare_read_set(&self, identity: &RunIdentity, selection: &Selection, selected: &[Declared]) -> ReadSet {
        if selection.scope == Scope::Neither {
            return ReadSet::NotComposed;
        }
        let composed = plan::read_set_digest(&plan::read_set(self.corpus, selected));
        if composed.to_string() == identity.read_set { ReadSet::Same } else { ReadSet::Moved }
    }

    fn membership(&self, events: Vec<Event>) -> (Vec<Recorded>, Vec<Dropped>) {
        let known: BTreeSet<_> = self.probes.iter().filter_map(|p| p.id.as_deref()).collect();
        let (mut recorded, mut dropped) = (Vec::with_capacity(events.len()), Vec::new());
        for (position, event) in (1..).zip(events) {
            if known.contains(event.probe.as_str()) {
                recorded.push(Recorded { position, event });
            } else {
                let reason = self.no_probe(&event.probe);
                dropped.push(Dropped { event: position, probe: event.probe, reason });
            }
        }
        (recorded, dropped)
    }

    /// What the identifier of something that is no probe is.
    fn no_probe(&self, id: &str) -> String {
        if let Some(document) = self.corpus.by_identifier(id) {
            let kind = document.kind().unwrap_or_default();
            return format!("{} has the identifier and is a `{kind}`, not a `{}`", document.path, declared::KIND);
        }
        match self.untyped.get(id) {
            Some(document) if document.class == Class::Generated => {
                format!("{} has the identifier and is generated", document.path)
            }
            Some(document) => format!("{} has the identifier and stands on no shelf that admits it", document.path),
            None => "no document of this corpus has the identifier".to_owned(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
