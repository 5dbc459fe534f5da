//! What the transcript says besides its blocks: one short paragraph a topic, made from typed values.
//!
//! Counts and digests are ours. A name that the session or its provider could choose is put into code marks.

use crate::confine::proof::Proof;
use crate::confine::view::View;
use crate::document::{Statement, code};
use crate::harness::drive::{Ended, Limits};
use crate::transform::ending::Ending;
use crate::transform::init::Loaded;
use crate::transform::log::SessionLog;
use crate::transform::provider::Provider;
use crate::workspace::build::Built;
use crate::workspace::findings::Checked;
use crate::workspace::produced::Artifacts;
use crate::workspace::tree::shown;
use headwater_contract::digest::Digest;
use headwater_contract::keys::Arm;
use headwater_contract::plan::Delta;
use std::collections::BTreeSet;

/// Everything the paragraphs are made from.
pub struct Facts<'a> {
    /// What the no-op showed.
    pub proof: &'a Proof,
    /// The view.
    pub view: &'a View,
    /// The kernel's release.
    pub kernel: &'a str,
    /// Where the harness finds its provider, where that is not the first party's address.
    pub base_url: Option<&'a str>,
    /// Whether the harness drives a model.
    pub spends: bool,
    /// The digest of the harness binary.
    pub harness: Digest,
    /// What the session loaded.
    pub loaded: &'a Loaded,
    /// The settings the workspace makes, by name.
    pub settings: &'a BTreeSet<String>,
    /// The arm.
    pub arm: Arm,
    /// What was done to the workspace, where it was built for the session.
    pub built: Option<(&'a Built, &'a Delta)>,
    /// What it left.
    pub artifacts: &'a Artifacts,
    /// What bounded the session.
    pub limits: &'a Limits,
    /// The turn cap.
    pub max_turns: Option<u64>,
    /// The log.
    pub log: &'a SessionLog,
    /// How the session ended.
    pub ending: &'a Ending,
    /// How its process ended.
    pub ended: &'a Ended,
    /// Served version and cost.
    pub provider: &'a Provider,
    /// Paths outside the workspace and the view that the session named.
    pub outside: usize,
    /// Lines that the intent hook wrote.
    pub hook: u64,
}

/// The paragraphs, in a fixed order.
#[must_use]
pub fn statements(facts: &Facts<'_>) -> Vec<Statement> {
    vec![
        Statement { topic: "Confinement", text: confinement(facts) },
        Statement { topic: "Harness", text: harness(facts) },
        Statement { topic: "Workspace", text: workspace(facts) },
        Statement { topic: "Session", text: session(facts) },
        Statement { topic: "Provider", text: provider(facts) },
        Statement { topic: "Channel", text: channel(facts) },
    ]
}

fn confinement(facts: &Facts<'_>) -> String {
    let items: Vec<_> = facts.view.stated().map(|i| code(&i.to_string())).chain(facts.view.closure_summary()).collect();
    let shares_network = facts.proof.shared_namespaces.iter().any(|n| n == "net");
    let network =
        if shares_network { "The network is the host's: this channel is open." } else { "The network is its own." };
    let proof = facts.proof;
    let left_out = match &proof.landlock.left_out[..] {
        [] => String::new(),
        parts => format!(" (not held by it: {})", parts.join("; ")),
    };
    let held = format!(
        "Landlock of ABI {} holds the session to that view{left_out}, and a filter of system calls, {}. The harness is \
         closed to every other process; {} attacks on it were tried here before the session, and none succeeded.",
        proof.landlock.abi, proof.filter, proof.attacks
    );
    format!(
        "{} on Linux {}, {} view, namespaces of its own: {}. No capability in any set, no new privileges, an \
         environment of a fixed list. Besides its workspace the session saw {}. {held} {network}",
        code(&facts.proof.bwrap),
        code(facts.kernel),
        facts.view.kind(),
        facts.proof.own_namespaces.join(", "),
        items.join(", "),
    )
}

fn harness(facts: &Facts<'_>) -> String {
    let mut text = String::new();
    if !facts.spends {
        text.push_str("The scripted harness played this session: it measures no model. ");
    }
    let version = facts
        .loaded
        .version
        .as_deref()
        .map_or_else(|| "of an unstated version".into(), |v| format!("version {}", code(v)));
    text.push_str(&format!("The harness is {version}, {}. ", facts.harness));
    let named = |what: &str, names: &BTreeSet<String>| match names.len() {
        0 => format!("no {what}s"),
        n => format!("{} ({})", counted(n as u64, what), names.iter().map(|n| code(n)).collect::<Vec<_>>().join(", ")),
    };
    text.push_str(&format!(
        "It loaded {} and, of the workspace, {}, {}, {}, {}.",
        counted(facts.loaded.tools as u64, "tool"),
        named("skill", &facts.loaded.skills),
        named("agent", &facts.loaded.agents),
        named("command", &facts.loaded.commands),
        named("MCP server", &facts.loaded.mcp_servers),
    ));
    match facts.settings.len() {
        0 => text.push_str(" The workspace makes no settings."),
        _ => {
            let names: Vec<_> = facts.settings.iter().map(|s| code(s)).collect();
            text.push_str(&format!(" The workspace's own settings set {}.", names.join(", ")));
        }
    }
    text
}

fn workspace(facts: &Facts<'_>) -> String {
    let mut text = format!("The {} arm. ", facts.arm);
    match facts.built {
        Some((built, delta)) => text.push_str(&tree(built, delta)),
        None => text.push_str("The tree was given to the recorder, which searched it and changed nothing in it."),
    }
    let hook = match facts.hook {
        0 => "The intent hook was not live.".into(),
        n => format!("The intent hook wrote {}.", counted(n, "line")),
    };
    let outside = match facts.outside {
        0 => "The session named no path outside its workspace and view.".into(),
        n => format!("The session named {} outside its workspace and view.", counted(n as u64, "path")),
    };
    format!("{text} {} {hook} {outside}", artifacts(facts.artifacts))
}

/// What became of the files that the session left.
fn artifacts(artifacts: &Artifacts) -> String {
    let mut text = format!("The session left {}", counted(artifacts.produced.len() as u64, "artifact"));
    text.push_str(match &artifacts.checked {
        None => ".",
        Some(Checked::Workspace) => ", checked in the workspace.",
        Some(Checked::OracleTree) => ", checked in the present tree with them put in their place.",
        // The reason may name paths of the host; it goes to standard error.
        Some(Checked::Nothing(_)) => ", and nothing checked them, because the check did not end well.",
    });
    let passed_over = artifacts.passed_over.len() as u64 + artifacts.passed_over_unnamed as u64;
    for (n, what) in [
        (passed_over, "passed over as declarations, logs, repositories, builds, or generated or ignored files"),
        (artifacts.unread.len() as u64, "of its artifacts not read"),
        (artifacts.changes.removed.len() as u64, "of its baseline removed"),
        (artifacts.changes.odd.len() as u64, "links and special files that were not there before"),
        (artifacts.changes.unknown.len() as u64, "files and directories of which it is unknown whether they changed"),
    ] {
        if n > 0 {
            text.push_str(&format!(" {}: {n}.", capitalised(what)));
        }
    }
    text
}

/// Where the tree is from, what the arm took and gave, and what the seal did. The files it cut are listed, because
/// their digests are not the corpus's.
fn tree(built: &Built, delta: &Delta) -> String {
    let listed = |paths: &[String]| paths.iter().map(|path| code(path)).collect::<Vec<_>>().join(", ");
    let mut text = format!("The tree is that of commit {} without the instrument.", code(&built.source.commit));
    for (verb, paths) in [("loses", &delta.loses), ("gains", &delta.gains)] {
        if !paths.is_empty() {
            text.push_str(&format!(" The arm {verb} {}.", listed(paths)));
        }
    }
    for (what, paths) in [
        ("Submodules are empty", &built.source.submodules),
        ("Pointers to content kept elsewhere are as they are", &built.source.pointers),
        ("The attributes of the repository leave out", &built.source.left_out),
        ("The arm should lose what is not there", &built.not_there),
    ] {
        if !paths.is_empty() {
            text.push_str(&format!(" {what}: {}.", listed(paths)));
        }
    }
    let sealed = &built.sealed;
    text.push_str(&format!(" The seal removed {}", counted(sealed.removed.len() as u64, "path")));
    if sealed.cut.is_empty() {
        text.push_str(" and cut nothing.");
    } else {
        let cut: Vec<_> = sealed.cut.iter().map(|cut| code(&shown(&cut.path))).collect();
        text.push_str(&format!(" and cut {}.", cut.join(", ")));
    }
    text
}

fn session(facts: &Facts<'_>) -> String {
    let log = facts.log;
    let turns =
        log.result.as_ref().and_then(|r| r.turns).map_or_else(String::new, |t| format!(", {}", counted(t, "turn")));
    let cap = facts.max_turns.map_or_else(|| "no turn cap".into(), |n| format!("a turn cap of {n}"));
    let mut text = format!(
        "{}{turns}, {:.1} s. It made {}, of which {} by sub-agents, {} of web tools, {} of MCP tools, {} denied. \
         Its limits were {cap}, {} s of wall time, {} s of silence, {} bytes of stream.",
        capitalised(&facts.ending.to_string()),
        facts.ended.wall.as_secs_f64(),
        counted(log.calls.len() as u64, "call"),
        log.subagent_calls(),
        log.web_calls(),
        log.mcp_calls(),
        log.calls.iter().filter(|c| c.denied).count() as u64 + log.denials_without_call,
        facts.limits.wall.as_secs(),
        facts.limits.idle.as_secs(),
        facts.limits.raw_bytes,
    );
    if facts.ended.lingered {
        text.push_str(" The harness stayed after its result line and was ended.");
    }
    text
}

fn provider(facts: &Facts<'_>) -> String {
    let provider = facts.provider;
    let mut text = match facts.base_url {
        Some(url) => format!("Requests went to {}. ", code(url)),
        None => String::new(),
    };
    let reported =
        provider.reported_usd.as_deref().map_or_else(|| "no cost".into(), |usd| format!("{} USD", code(usd)));
    text.push_str(&format!("The harness reported {reported}"));
    match provider.recomputed {
        Some(ours) => text.push_str(&format!("; the tokens at list prices come to {ours} USD.")),
        None => text.push('.'),
    }
    text.push_str(&format!(
        " Requests tried again: {}. Rate-limit events: {}.",
        facts.log.api_retries, facts.log.rate_limits
    ));
    for remark in &provider.remarks {
        text.push(' ');
        text.push_str(remark);
    }
    text
}

fn channel(facts: &Facts<'_>) -> String {
    let log = facts.log;
    let unknown: u64 = log.unknown.values().sum();
    format!(
        "Standard output of the harness, a socket held by the recorder: {} lines, {} bytes, {}. Blank lines: {}. Lines or \
         blocks of an unknown type: {unknown}. Hook lines: {}.",
        log.lines, facts.ended.bytes, facts.ended.digest, log.blank, log.hook_lines,
    )
}

/// A number and its noun.
fn counted(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
