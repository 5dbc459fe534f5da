//! What intake says about a transcript, as text and as JSON.

use super::{Dropped, Lock, ReadSet, Record, Refusal, Scope, Selection};
use crate::probe::declared::one_line;
use headwater_contract::transcript::RunIdentity;
use serde::Serialize;
use std::fmt::Write as _;

/// The version of the JSON.
pub const FORMAT: u32 = 1;

/// A record as text, under `name`.
#[must_use]
pub fn render(record: &Record, name: &str) -> String {
    let mut out = format!("# Record of {name}\n\n## Confirmed\n\n");
    for (confirmation, states) in confirmed(record) {
        line(&mut out, format_args!("- {confirmation}: {states}"));
    }
    let RunIdentity { seed, harness, tree, .. } = &record.identity;
    out.push_str("\n## Recorded and compared with nothing\n\n");
    for (key, value) in [("seed", seed), ("harness", harness), ("tree", tree)] {
        line(&mut out, format_args!("- {key}: {}", one_line(value)));
    }
    line(&mut out, format_args!("\n## The selection\n\n{}", selection(record)));
    line(&mut out, format_args!("\n## The read set\n\n{}", read_set(record)));
    if !record.dropped.is_empty() {
        line(&mut out, format_args!("\n## Dropped events\n\n{}", dropped(&record.dropped)));
    }
    out
}

/// A refusal as text, under `name`.
#[must_use]
pub fn render_refusal(refusal: &Refusal, name: &str) -> String {
    let Refusal { reason, message } = refusal;
    let confirmation = reason.confirmation.as_str();
    format!(
        "# Record of {name}\n\n## This transcript is refused\n\n{confirmation} ({}): {}\n",
        reason.id,
        one_line(message)
    )
}

/// One line for each dropped event.
#[must_use]
pub fn dropped(dropped: &[Dropped]) -> String {
    let lines: Vec<_> = dropped
        .iter()
        .map(|d| format!("- event {} names `{}`: {}", d.event, one_line(&d.probe), one_line(&d.reason)))
        .collect();
    lines.join("\n")
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}

/// The five confirmations and what each of them found, in their order.
fn confirmed(record: &Record) -> [(&'static str, String); 5] {
    use headwater_contract::transcript::Confirmation as C;
    let (kept, dropped) = (record.events.len(), record.dropped.len());
    let lock = match record.lock {
        Lock::Same => "the lock is the lock of this tree",
        Lock::Moved => {
            "the lock is another than that of this tree, which has the selection and so reads the transcript"
        }
    };
    let membership = match dropped {
        0 => format!("each of {} names a probe of this corpus", count(kept, "event")),
        _ => format!("{kept} of {} name a probe of this corpus, {dropped} dropped", count(kept + dropped, "event")),
    };
    [
        (C::Taxonomy.as_str(), lock.to_owned()),
        (C::Identity.as_str(), "all twelve members are there".to_owned()),
        (C::Membership.as_str(), membership),
        (C::NoProse.as_str(), "every key is of its closed set".to_owned()),
        (C::Cost.as_str(), count_u64(record.identity.cost_cents, "cent")),
    ]
}

fn selection(record: &Record) -> String {
    let Selection { scope, probes, this_tree } = &record.selection;
    let probes = count(probes.len(), "probe");
    let recorded = one_line(&record.identity.selection);
    match scope {
        Scope::Whole => format!("Planned over the whole selection of this tree, {probes}: {recorded}"),
        Scope::Part => format!(
            "Planned over a part of the selection of this tree, {probes} that its events name: {recorded}\nThe whole \
             selection of this tree is {this_tree}"
        ),
        Scope::Neither => format!(
            "Planned over neither the whole selection of this tree nor the probes that its events name: {recorded}\nThe \
             whole selection of this tree is {this_tree}"
        ),
    }
}

fn read_set(record: &Record) -> String {
    let recorded = one_line(&record.identity.read_set);
    match record.read_set {
        ReadSet::Same => format!("As this tree composes it: {recorded}"),
        ReadSet::Moved => format!("{}\nRecorded: {recorded}", super::MARK),
        ReadSet::NotComposed => {
            format!("Not composed, since this tree does not have the selection. Recorded: {recorded}")
        }
    }
}

/// `1 event`, `2 events`.
pub(crate) fn count(n: usize, what: &str) -> String {
    count_u64(n as u64, what)
}

fn count_u64(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[derive(Serialize)]
struct ConfirmedJson<'a> {
    format: u32,
    confirmed: bool,
    confirmations: Vec<ConfirmationJson>,
    identity: &'a RunIdentity,
    lock: Lock,
    selection: &'a Selection,
    read_set: ReadSet,
    mark: Option<&'static str>,
    events: usize,
    dropped: &'a [Dropped],
}

#[derive(Serialize)]
struct ConfirmationJson {
    name: &'static str,
    states: String,
}

#[derive(Serialize)]
struct RefusedJson<'a> {
    format: u32,
    confirmed: bool,
    refusal: RefusalJson<'a>,
}

#[derive(Serialize)]
struct RefusalJson<'a> {
    confirmation: &'static str,
    id: &'static str,
    message: &'a str,
}

/// A record as JSON, with a line feed at the end.
///
/// # Errors
/// Only what the encoder gives, which for a record is nothing.
pub fn json(record: &Record) -> serde_json::Result<String> {
    let confirmations = confirmed(record).map(|(name, states)| ConfirmationJson { name, states }).into();
    pretty(&ConfirmedJson {
        format: FORMAT,
        confirmed: true,
        confirmations,
        identity: &record.identity,
        lock: record.lock,
        selection: &record.selection,
        read_set: record.read_set,
        mark: record.mark(),
        events: record.events.len(),
        dropped: &record.dropped,
    })
}

/// A refusal as JSON, with a line feed at the end.
///
/// # Errors
/// As [`json`].
pub fn json_refusal(refusal: &Refusal) -> serde_json::Result<String> {
    let Refusal { reason, message } = refusal;
    let refusal = RefusalJson { confirmation: reason.confirmation.as_str(), id: reason.id, message };
    pretty(&RefusedJson { format: FORMAT, confirmed: false, refusal })
}

/// A value as indented JSON with a line feed at the end.
pub(crate) fn pretty(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}
