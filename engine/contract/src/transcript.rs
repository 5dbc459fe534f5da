//! A transcript: a run identity and its events, in two fenced blocks under two headings.
//!
//! Reading keeps every defect with the confirmation it belongs to, because intake reports the first one in the order
//! of the contract. Writing puts the keys in the order of the contract's tables and every scalar through one encoder.

use crate::keys::{self, Arm, Key, Tier};
use crate::markdown::{self, Piece};
use crate::yaml::{self, Limits, Node};
use std::fmt::Write as _;

/// The heading over the run identity.
pub const IDENTITY_HEADING: &str = "Run identity";
/// The heading over the events.
pub const EVENTS_HEADING: &str = "Events";

/// A transcript that is whole: every key known, every required one present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// What was run.
    pub identity: RunIdentity,
    /// What was seen, in recorded order.
    pub events: Vec<Event>,
}

/// The twelve members of the run identity, scalars as their source text.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RunIdentity {
    /// The model that was asked for.
    pub model: String,
    /// The version that served it.
    pub served_version: String,
    /// The corpus tree digest. Kept as text: it is compared, never computed with.
    pub tree: String,
    /// The lock digest.
    pub lock: String,
    /// The selection digest.
    pub selection: String,
    /// The read-set digest.
    pub read_set: String,
    /// Decimal digits; may exceed 64 bits.
    pub seed: String,
    /// The harness version of the plan.
    pub harness: String,
    /// The tier.
    pub tier: Tier,
    /// The arm.
    pub arm: Arm,
    /// RFC 3339 in UTC.
    pub at: String,
    /// Whole cents.
    pub cost_cents: u64,
}

/// One session over one probe, or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The identifier of the probe.
    pub probe: String,
    /// The name of the session within the probe.
    pub session: String,
    /// `None`: nothing watched. Empty: the recorder watched and saw no call.
    pub calls: Option<Vec<Call>>,
    /// `None`: nothing looked. Empty: nothing was produced.
    pub produced: Option<Vec<Produced>>,
    /// The three states of an answer.
    pub answer: Answer,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// The path of a read, else the JSON of the call's input.
    pub argument: String,
    /// A content digest, or empty.
    pub result: String,
}

/// One produced artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Produced {
    /// Where it landed, relative to the workspace where it is inside.
    pub path: String,
    /// Its content digest, empty for what has none (a file that is gone).
    pub result: String,
    /// Identifiers of the corpus in it.
    pub cites: Vec<String>,
    /// `None`: nothing checked. Empty: checked, and no rule reported.
    pub findings: Option<Vec<String>>,
}

/// A final answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Answer {
    /// No key: nothing looked.
    #[default]
    NotObserved,
    /// `null`: looked, and there was none.
    None,
    /// A declared answer.
    Value(String),
}

/// The five confirmations of intake, in the contract's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confirmation {
    /// 1: the lock.
    Taxonomy,
    /// 2: twelve members, each readable.
    Identity,
    /// 3: every event names a probe of the corpus.
    Membership,
    /// 4: no key outside the four sets.
    NoProse,
    /// 5: a whole number of cents.
    Cost,
}

impl Confirmation {
    /// Its name in output.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Taxonomy => "taxonomy",
            Self::Identity => "identity",
            Self::Membership => "membership",
            Self::NoProse => "no-prose",
            Self::Cost => "cost",
        }
    }
}

/// One thing that keeps a transcript from being read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct Defect {
    /// The confirmation that fails on it.
    pub confirmation: Confirmation,
    /// The one-based line of the document.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

/// A transcript as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The scalars of the identity block by their key, known keys only, null ones left out.
    pub identity: Vec<(&'static str, String)>,
    /// The events that could be read.
    pub events: Vec<Event>,
    /// Everything that is wrong, in document order.
    pub defects: Vec<Defect>,
}

impl Reading {
    /// A member of the identity, where the block holds it.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<&str> {
        self.identity.iter().find(|(k, _)| *k == key).map(|(_, v)| v.as_str())
    }

    /// The whole transcript, or the defect that comes first in the contract's order of confirmations.
    ///
    /// # Errors
    /// The first defect.
    pub fn whole(&self) -> Result<Transcript, Defect> {
        if let Some(first) = self.defects.iter().min_by_key(|d| d.confirmation) {
            return Err(first.clone());
        }
        let lost = |key: &str| Defect {
            confirmation: Confirmation::Identity,
            line: 1,
            message: format!("the run identity lacks `{key}`"),
        };
        let take = |key: &'static str| self.member(key).map(str::to_owned).ok_or_else(|| lost(key));
        let identity = RunIdentity {
            model: take("model")?,
            served_version: take("served_version")?,
            tree: take("tree")?,
            lock: take("lock")?,
            selection: take("selection")?,
            read_set: take("read_set")?,
            seed: take("seed")?,
            harness: take("harness")?,
            tier: take("tier")?.parse().map_err(|_| lost("tier"))?,
            arm: take("arm")?.parse().map_err(|_| lost("arm"))?,
            at: take("at")?,
            cost_cents: take("cost_cents")?.parse().map_err(|_| lost("cost_cents"))?,
        };
        Ok(Transcript { identity, events: self.events.clone() })
    }
}

/// Why no block could be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The document's front matter has no end.
    #[error(transparent)]
    FrontMatter(#[from] markdown::Unclosed),
    /// A heading is missing.
    #[error("there is no section `## {0}`; a transcript has one")]
    NoSection(&'static str),
    /// A section has no block.
    #[error("line {line}: the section `{heading}` holds no fenced `yaml` block")]
    NoBlock {
        /// The section.
        heading: &'static str,
        /// Where it starts.
        line: usize,
    },
    /// A block has no end.
    #[error("line {line}: the `yaml` block of `{heading}` is never closed; the file is cut off")]
    Unclosed {
        /// The section.
        heading: &'static str,
        /// Where the block starts.
        line: usize,
    },
    /// A block is no YAML of the form that is read.
    #[error("the `yaml` block of `{heading}`: {error}")]
    Yaml {
        /// The section.
        heading: &'static str,
        /// What is wrong with it.
        error: yaml::Error,
    },
}

/// Reads the two blocks of a transcript document. Prose around them is not read.
///
/// # Errors
/// [`Unreadable`] where a block cannot be had; everything else is a [`Defect`] of the reading.
pub fn read(document: &str) -> Result<Reading, Unreadable> {
    let body = markdown::split(document)?.body;
    let identity = block(body, IDENTITY_HEADING)?;
    let events = block(body, EVENTS_HEADING)?;
    let mut reader = Reader::default();
    let identity = reader.identity(&identity);
    let events = reader.events(&events);
    Ok(Reading { identity, events, defects: reader.defects })
}

fn block(body: Piece<'_>, heading: &'static str) -> Result<Node, Unreadable> {
    let section = markdown::section(body, 2, heading).ok_or(Unreadable::NoSection(heading))?;
    let fence = markdown::fenced(section, "yaml").ok_or(Unreadable::NoBlock { heading, line: section.line })?;
    if !fence.closed {
        return Err(Unreadable::Unclosed { heading, line: fence.content.line });
    }
    yaml::read(fence.content, Limits::TRANSCRIPT).map_err(|error| Unreadable::Yaml { heading, error })
}

#[derive(Default)]
struct Reader {
    defects: Vec<Defect>,
}

impl Reader {
    fn defect(&mut self, confirmation: Confirmation, line: usize, message: impl Into<String>) {
        self.defects.push(Defect { confirmation, line, message: message.into() });
    }

    /// The entries of a mapping whose keys are all of `set`; each other one is a defect of the fourth confirmation.
    fn known<'a>(&mut self, node: &'a Node, set: &'static [Key], what: &str) -> Vec<(&'static str, &'a Node)> {
        let Some(entries) = node.mapping() else {
            self.defect(
                Confirmation::Identity,
                node.line,
                format!("{what} is {} and has to be a mapping", node.what()),
            );
            return Vec::new();
        };
        let mut known = Vec::with_capacity(entries.len());
        for entry in entries {
            match set.iter().find(|k| k.name == entry.key) {
                Some(key) => known.push((key.name, &entry.value)),
                None => {
                    let key: String = entry.key.chars().take(80).collect();
                    let names = set.iter().map(|k| k.name).collect::<Vec<_>>().join(", ");
                    let message =
                        format!("`{key}` is no key of {what}: a transcript holds {names} there and nothing else");
                    self.defect(Confirmation::NoProse, entry.line, message);
                }
            }
        }
        known
    }

    fn identity(&mut self, node: &Node) -> Vec<(&'static str, String)> {
        let mut members = Vec::with_capacity(keys::IDENTITY.len());
        for (key, value) in self.known(node, &keys::IDENTITY, "the run identity") {
            match value.text() {
                Some(text) if !text.is_empty() => {
                    self.member(key, text, value.line);
                    members.push((key, text.to_owned()));
                }
                _ if value.scalar().is_some() => {}
                _ => self.defect(
                    Confirmation::Identity,
                    value.line,
                    format!("`{key}` is {} and has to be a scalar", value.what()),
                ),
            }
        }
        let missing: Vec<_> = keys::IDENTITY
            .iter()
            .filter(|k| !members.iter().any(|(m, _)| *m == k.name))
            .map(|k| format!("`{}`", k.name))
            .collect();
        if !missing.is_empty() && node.mapping().is_some() {
            let message = format!("the run identity lacks {}; all twelve members are required", missing.join(", "));
            self.defect(Confirmation::Identity, node.line, message);
        }
        members
    }

    fn member(&mut self, key: &str, text: &str, line: usize) {
        let member = match key {
            "tier" => text.parse::<Tier>().err(),
            "arm" => text.parse::<Arm>().err(),
            _ => None,
        };
        if let Some(error) = member {
            self.defect(Confirmation::Identity, line, error.to_string());
        }
        if key == "cost_cents" && !is_whole(text) {
            let shown: String = text.chars().take(40).collect();
            let message = format!("`cost_cents` is `{shown}` and has to be a whole number of cents");
            self.defect(Confirmation::Cost, line, message);
        }
    }

    fn events(&mut self, node: &Node) -> Vec<Event> {
        let Some(items) = node.sequence() else {
            if node.is_null() {
                return Vec::new();
            }
            self.defect(
                Confirmation::Identity,
                node.line,
                format!("the events are {} and have to be a list", node.what()),
            );
            return Vec::new();
        };
        items.iter().filter_map(|item| self.event(item)).collect()
    }

    fn event(&mut self, node: &Node) -> Option<Event> {
        let mut probe = None;
        let mut session = None;
        let mut event = Event {
            probe: String::new(),
            session: String::new(),
            calls: None,
            produced: None,
            answer: Answer::NotObserved,
        };
        for (key, value) in self.known(node, &keys::EVENT, "an event") {
            match key {
                "probe" => probe = self.string(key, value),
                "session" => session = self.string(key, value),
                "calls" => event.calls = self.list(key, value, Self::call),
                "produced" => event.produced = self.list(key, value, Self::produced),
                _ if value.is_null() => event.answer = Answer::None,
                _ => event.answer = self.string(key, value).map_or(Answer::NotObserved, Answer::Value),
            }
        }
        for (key, found) in [("probe", &mut probe), ("session", &mut session)] {
            if found.as_ref().is_none_or(String::is_empty) {
                self.defect(
                    Confirmation::Identity,
                    node.line,
                    format!("an event lacks `{key}`, which every event has"),
                );
                return None;
            }
        }
        event.probe = probe?;
        event.session = session?;
        Some(event)
    }

    fn call(&mut self, node: &Node) -> Option<Call> {
        let [mut tool, mut argument, mut result] = [None, None, None];
        for (key, value) in self.known(node, &keys::CALL, "a call") {
            let text = self.string(key, value);
            match key {
                "tool" => tool = text,
                "argument" => argument = text,
                _ => result = text,
            }
        }
        let call = tool.zip(argument).zip(result).map(|((tool, argument), result)| Call { tool, argument, result });
        if call.is_none() {
            self.defect(Confirmation::Identity, node.line, "a call lacks one of `tool`, `argument`, `result`");
        }
        call
    }

    fn produced(&mut self, node: &Node) -> Option<Produced> {
        let [mut path, mut result] = [None, None];
        let [mut cites, mut findings] = [None, None];
        for (key, value) in self.known(node, &keys::PRODUCED, "a produced artifact") {
            match key {
                "path" => path = self.string(key, value),
                "result" => result = self.string(key, value),
                "cites" => cites = self.list(key, value, |r, n| r.string("cites", n)),
                _ => findings = self.list(key, value, |r, n| r.string("findings", n)),
            }
        }
        let whole =
            path.zip(result).zip(cites).map(|((path, result), cites)| Produced { path, result, cites, findings });
        if whole.is_none() {
            self.defect(
                Confirmation::Identity,
                node.line,
                "a produced artifact lacks one of `path`, `result`, `cites`",
            );
        }
        whole
    }

    fn string(&mut self, key: &str, node: &Node) -> Option<String> {
        let text = node.scalar().map(str::to_owned);
        if text.is_none() {
            self.defect(
                Confirmation::Identity,
                node.line,
                format!("`{key}` is {} and has to be a scalar", node.what()),
            );
        }
        text
    }

    fn list<T>(
        &mut self,
        key: &str,
        node: &Node,
        mut item: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(nodes) = node.sequence() else {
            let message =
                format!("`{key}` is {}; write `{key}: []` for none, and no key where nothing looked", node.what());
            self.defect(Confirmation::Identity, node.line, message);
            return None;
        };
        Some(nodes.iter().filter_map(|n| item(self, n)).collect())
    }
}

/// A whole number of cents: decimal digits that fit 64 bits.
fn is_whole(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u64>().is_ok()
}

impl RunIdentity {
    /// The block under `Run identity`, without its fences: one `key: value` line each, in the order of the table.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let cost = self.cost_cents.to_string();
        let values: [(&str, &str); 12] = [
            ("model", &self.model),
            ("served_version", &self.served_version),
            ("tree", &self.tree),
            ("lock", &self.lock),
            ("selection", &self.selection),
            ("read_set", &self.read_set),
            ("seed", &self.seed),
            ("harness", &self.harness),
            ("tier", self.tier.as_str()),
            ("arm", self.arm.as_str()),
            ("at", &self.at),
            ("cost_cents", &cost),
        ];
        let mut out = String::new();
        for (key, value) in values {
            let number =
                matches!(key, "seed" | "cost_cents") && value.bytes().all(|b| b.is_ascii_digit()) && !value.is_empty();
            let text = if number { value.into() } else { yaml::scalar(value) };
            let _ = writeln!(out, "{key}: {text}");
        }
        out
    }
}

/// The block under `Events`, without its fences. No event at all is `[]`.
#[must_use]
pub fn events_to_yaml(events: &[Event]) -> String {
    let mut out = String::new();
    if events.is_empty() {
        out.push_str("[]\n");
    }
    for event in events {
        let _ = writeln!(out, "- probe: {}", yaml::scalar(&event.probe));
        let _ = writeln!(out, "  session: {}", yaml::scalar(&event.session));
        if let Some(calls) = &event.calls {
            out.push_str(if calls.is_empty() { "  calls: []\n" } else { "  calls:\n" });
            for call in calls {
                let _ = writeln!(out, "    - tool: {}", yaml::scalar(&call.tool));
                let _ = writeln!(out, "      argument: {}", yaml::scalar(&call.argument));
                let _ = writeln!(out, "      result: {}", yaml::scalar(&call.result));
            }
        }
        if let Some(produced) = &event.produced {
            out.push_str(if produced.is_empty() { "  produced: []\n" } else { "  produced:\n" });
            for artifact in produced {
                let _ = writeln!(out, "    - path: {}", yaml::scalar(&artifact.path));
                let _ = writeln!(out, "      result: {}", yaml::scalar(&artifact.result));
                let _ = writeln!(out, "      cites: {}", yaml::flow(&artifact.cites));
                if let Some(findings) = &artifact.findings {
                    let _ = writeln!(out, "      findings: {}", yaml::flow(findings));
                }
            }
        }
        match &event.answer {
            Answer::NotObserved => {}
            Answer::None => out.push_str("  answer: null\n"),
            Answer::Value(value) => {
                let _ = writeln!(out, "  answer: {}", yaml::scalar(value));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn document(identity: &str, events: &str) -> String {
        format!(
            "---\nid: X-1\n---\n\n# Run\n\n## Run identity\n\n```yaml\n{identity}```\n\n## Events\n\n```yaml\n{events}```\n"
        )
    }

    fn identity() -> RunIdentity {
        RunIdentity {
            model: "m".into(),
            served_version: "m-1".into(),
            tree: "sha256:1".into(),
            lock: "sha256:2".into(),
            selection: "sha256:3".into(),
            read_set: "sha256:4".into(),
            seed: "340282366920938463463374607431768211456".into(),
            harness: "headwater 0.1.0".into(),
            tier: Tier::Regression,
            arm: Arm::NoClaudeMd,
            at: "2026-08-14T09:30:00Z".into(),
            cost_cents: 4,
        }
    }

    fn defects(identity: &str, events: &str) -> Vec<(Confirmation, String)> {
        let reading = read(&document(identity, events)).unwrap();
        reading.defects.into_iter().map(|d| (d.confirmation, d.message)).collect()
    }

    #[test]
    fn an_identity_is_written_in_the_order_of_the_table() {
        let text = identity().to_yaml();
        let written: Vec<_> = text.lines().filter_map(|l| l.split(':').next()).collect();
        assert_eq!(written, keys::IDENTITY.map(|k| k.name));
    }

    #[test]
    fn every_one_of_the_twelve_is_required() {
        let whole = identity().to_yaml();
        for key in keys::IDENTITY {
            let without: String =
                whole.lines().filter(|l| !l.starts_with(&format!("{}:", key.name))).map(|l| format!("{l}\n")).collect();
            let found = defects(&without, "[]\n");
            assert_eq!(found.len(), 1, "{}", key.name);
            assert_eq!(found[0].0, Confirmation::Identity);
            assert!(found[0].1.contains(&format!("`{}`", key.name)), "{}", found[0].1);
        }
    }

    #[test]
    fn a_key_outside_a_set_refuses_the_whole_file() {
        let whole = identity().to_yaml();
        for (i, events) in [
            (format!("{whole}notes: hello\n"), "[]\n"),
            (whole.clone(), "- probe: P-1\n  session: s\n  reasoning: I think\n"),
            (
                whole.clone(),
                "- probe: P-1\n  session: s\n  calls:\n    - {tool: Read, argument: a, result: b, text: c}\n",
            ),
            (whole.clone(), "- probe: P-1\n  session: s\n  produced:\n    - {path: a, result: b, cites: [], why: c}\n"),
        ] {
            assert_eq!(defects(&i, events)[0].0, Confirmation::NoProse);
        }
    }

    #[test]
    fn cents_are_whole() {
        for cost in ["4.0", "-1", "4c", "1e3", "99999999999999999999999", "0x4"] {
            let text = identity().to_yaml().replace("cost_cents: 4", &format!("cost_cents: {cost}"));
            assert_eq!(defects(&text, "[]\n")[0].0, Confirmation::Cost, "{cost}");
        }
    }

    #[test]
    fn an_empty_list_and_an_absent_key_are_two_facts() {
        let events = "- probe: P\n  session: a\n  calls: []\n  produced: []\n  answer: null\n- probe: P\n  session: b\n- probe: P\n  session: c\n  answer: \"null\"\n";
        let read = read(&document(&identity().to_yaml(), events)).unwrap().whole().unwrap();
        assert_eq!(read.events[0].calls, Some(vec![]));
        assert_eq!(read.events[0].produced, Some(vec![]));
        assert_eq!(read.events[0].answer, Answer::None);
        assert_eq!(read.events[1].calls, None);
        assert_eq!(read.events[1].produced, None);
        assert_eq!(read.events[1].answer, Answer::NotObserved);
        assert_eq!(read.events[2].answer, Answer::Value("null".into()));
    }

    #[test]
    fn a_null_list_is_neither_and_refuses() {
        assert_eq!(defects(&identity().to_yaml(), "- probe: P\n  session: a\n  calls:\n")[0].0, Confirmation::Identity);
    }

    #[test]
    fn a_cut_file_is_unreadable_and_says_where() {
        let whole = document(&identity().to_yaml(), "- probe: P\n  session: a\n");
        let cut = &whole[..whole.len() - 4];
        assert!(matches!(read(cut), Err(Unreadable::Unclosed { heading: "Events", .. })));
        assert!(matches!(read("# x\n"), Err(Unreadable::NoSection("Run identity"))));
    }

    fn event() -> impl Strategy<Value = Event> {
        let call = (any::<String>(), any::<String>(), any::<String>()).prop_map(|(tool, argument, result)| Call {
            tool,
            argument,
            result,
        });
        let strings = || prop::collection::vec(any::<String>(), 0..3);
        let produced = (any::<String>(), any::<String>(), strings(), prop::option::of(strings()))
            .prop_map(|(path, result, cites, findings)| Produced { path, result, cites, findings });
        let answer =
            prop_oneof![Just(Answer::NotObserved), Just(Answer::None), any::<String>().prop_map(Answer::Value)];
        let lists = (
            prop::option::of(prop::collection::vec(call, 0..4)),
            prop::option::of(prop::collection::vec(produced, 0..4)),
        );
        (".{1,20}", ".{1,20}", lists, answer).prop_map(|(probe, session, (calls, produced), answer)| Event {
            probe,
            session,
            calls,
            produced,
            answer,
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(events in prop::collection::vec(event(), 0..5)) {
            let text = document(&identity().to_yaml(), &events_to_yaml(&events));
            let read = read(&text).unwrap().whole().unwrap();
            prop_assert_eq!(read.identity, identity());
            prop_assert_eq!(read.events, events);
        }
    }
}
