//! What is kept of a stream: calls, small counters, and the little that the checks read.
//!
//! Everything in here is bounded by the calls of the session. Of the model's words only the last line of the final
//! message is kept, to be compared with the closed set of a probe.

use super::wire::{self, Object};
use headwater_contract::digest::Digest;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// How many of a kind are kept for a message; the rest is counted.
pub(super) const KEPT: usize = 16;
/// How many bytes of a name from the stream are kept.
pub(super) const NAME_LIMIT: usize = 128;
/// How many bytes of the final line are kept. No declared answer is as long.
const FINAL_LINE_LIMIT: usize = 64 << 10;

/// What the stream of one session showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionLog {
    /// Lines, blank and malformed ones too.
    pub lines: u64,
    /// Lines of white space.
    pub blank: u64,
    /// Lines that are neither blank nor read whole. Each could hide a call.
    pub malformed: Noted<Malformed>,
    /// Lines that cannot all be true.
    pub contradictions: Noted<Contradiction>,
    /// The calls of the session and of its sub-agents at any depth, in stream order, each once.
    pub calls: Vec<Call>,
    /// What the init lines state, each different statement once.
    pub inits: Noted<Init>,
    /// How many tools the first init line lists. No part of what two init lines are compared by, because tools appear
    /// as MCP servers connect.
    pub tools: usize,
    /// Hook lines.
    pub hook_lines: u64,
    /// Hook lines before the first init line.
    pub hook_lines_before_init: u64,
    /// Requests to the provider that were tried again.
    pub api_retries: u64,
    /// Rate-limit events.
    pub rate_limits: u64,
    /// Assistant lines that the harness wrote in the place of the model.
    pub synthetic: Noted<Synthetic>,
    /// The models that assistant lines of the driven conversation name, in order of first appearance.
    pub models: Noted<String>,
    /// Result lines.
    pub results: u64,
    /// The result line that counts: the one with the highest `result_index`, or the last.
    pub result: Option<ResultLine>,
    /// Assistant and user lines after the last result line.
    pub talk_after_result: u64,
    /// Denials of a call that no line shows.
    pub denials_without_call: u64,
    /// Calls that the harness counts for a sub-agent and that no line shows.
    pub hidden_calls: u64,
    /// Lines and blocks of a type that is not known, by type. The names come from the stream: count them, never
    /// print them into a transcript.
    pub unknown: BTreeMap<String, u64>,
}

/// The first few of a kind, and how many there were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted<T> {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: Vec<T>,
}

impl<T> Default for Noted<T> {
    fn default() -> Self {
        Self { count: 0, first: Vec::new() }
    }
}

impl<T> Noted<T> {
    pub(super) fn note(&mut self, item: T) {
        self.count += 1;
        if self.first.len() < KEPT {
            self.first.push(item);
        }
    }

    /// Notes what `item` becomes, unless it is noted already.
    pub(super) fn note_once<Q: Into<T>>(&mut self, item: Q)
    where
        T: PartialEq<Q>,
    {
        if !self.first.iter().any(|known| *known == item) {
            self.note(item.into());
        }
    }
}

/// A line that was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed {
    /// One-based.
    pub line: u64,
    /// Why.
    pub why: Why,
    /// Whether it is the last line and no line feed ends it.
    pub unterminated: bool,
}

/// Why a line was not read. It holds no word of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// Over [`super::stream::LINE_LIMIT`].
    #[error("it is longer than a line may be")]
    TooLong,
    /// Not UTF-8.
    #[error("it is not UTF-8")]
    NotUtf8,
    /// Not JSON.
    #[error("it is not JSON")]
    NotJson,
    /// It ends inside a value.
    #[error("it ends inside a JSON value")]
    CutOff,
    /// JSON of another shape.
    #[error("it is JSON that no line of the harness is, or a key stands in it twice")]
    Shape,
}

/// Two lines that cannot both be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// One call identifier, two calls.
    #[error("line {line} makes another call under the identifier of an earlier one")]
    CallTwice {
        /// One-based.
        line: u64,
    },
    /// A result and no call before it.
    #[error("line {line} is the result of a call that no line before it makes")]
    ResultWithoutCall {
        /// One-based.
        line: u64,
    },
    /// One call that failed and did not.
    #[error("line {line} is a second result of a call and says the opposite")]
    ResultTwice {
        /// One-based.
        line: u64,
    },
    /// Two result lines under one index.
    #[error("line {line} is a result line under the index of another one")]
    ResultIndexTwice {
        /// One-based.
        line: u64,
    },
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The identifier the provider gave it.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The call of the agent that made it, where a sub-agent did.
    pub parent: Option<String>,
    /// The path, for a tool that takes one, else the JSON of the input as the stream carries it.
    pub argument: String,
    /// Whether [`Call::argument`] is the path.
    pub names_path: bool,
    /// Paths under a path key of the input that is not the tool's own.
    pub other_paths: Vec<String>,
    /// The digest of the input's JSON, by which a call that is shown twice is known again.
    pub input: Digest,
    /// What came back.
    pub returned: Returned,
    /// Whether it was denied.
    pub denied: bool,
}

/// What came back from a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Returned {
    /// Nothing.
    Nothing,
    /// A result.
    Result,
    /// A result that is an error.
    Error,
}

impl Call {
    /// The structured path.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.names_path.then_some(self.argument.as_str())
    }

    /// Every structured path: the tool's own and those under the other path keys.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.path().into_iter().chain(self.other_paths.iter().map(String::as_str))
    }

    /// The command of a `Bash` call.
    #[must_use]
    pub fn command(&self) -> Option<String> {
        if self.tool != "Bash" {
            return None;
        }
        let Object(input) = serde_json::from_str::<Object<wire::Input<'_>>>(&self.argument).ok()?;
        input.command.0.map(Cow::into_owned)
    }

    /// Whether it is known to have failed: denied, or its result is an error.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.denied || self.returned == Returned::Error
    }
}

/// What an init line states about what the session loaded. A list that the line does not hold is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Init {
    /// The working directory.
    pub cwd: Option<String>,
    /// The working directory at the start.
    pub original_cwd: Option<String>,
    /// The permission mode.
    pub permission_mode: Option<String>,
    /// The output style.
    pub output_style: Option<String>,
    /// The model asked for, aliases resolved.
    pub model: Option<String>,
    /// The version of the harness.
    pub version: Option<String>,
    /// Where the credential comes from.
    pub api_key_source: Option<String>,
    /// MCP servers.
    pub mcp_servers: Option<Vec<Server>>,
    /// Plugins.
    pub plugins: Option<Vec<Plugin>>,
    /// Skills.
    pub skills: Option<Vec<String>>,
    /// Agents.
    pub agents: Option<Vec<String>>,
    /// Slash commands.
    pub commands: Option<Vec<String>>,
    /// Additional directories.
    pub additional_directories: Vec<String>,
    /// Memory paths.
    pub memory_paths: Vec<String>,
}

/// An MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Where it was declared.
    pub source: Option<String>,
}

/// A plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// Its name.
    pub name: String,
    /// Its path, or `builtin`.
    pub path: Option<String>,
}

/// A line that the harness wrote in the place of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synthetic {
    /// One-based.
    pub line: u64,
    /// The HTTP status of the provider.
    pub status: Option<u64>,
    /// The harness's or the provider's name for the failure.
    pub error: Option<String>,
    /// Whether the provider refused.
    pub refusal: bool,
}

/// A result line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultLine {
    /// One-based.
    pub line: u64,
    /// Its index among the results of the session.
    pub index: Option<u64>,
    /// `success` or an error's name.
    pub subtype: Option<String>,
    /// Whether the harness calls it an error.
    pub is_error: Option<bool>,
    /// Why the session ended.
    pub terminal_reason: Option<String>,
    /// Why the last message ended.
    pub stop_reason: Option<String>,
    /// The last HTTP status of a failing provider.
    pub api_error_status: Option<u64>,
    /// Turns.
    pub turns: Option<u64>,
    /// The cost in US dollars, as the text of the number; empty where that is longer than a cost can be.
    pub cost_usd: Option<String>,
    /// Tokens by requested model.
    pub usage: Vec<Usage>,
    /// The last line of the final message that is not empty, or none where there is no message or nothing in it.
    /// A line that is too long to be an answer is kept as an empty one.
    pub final_line: Option<String>,
}

/// The tokens of one model. `None` where the line states none, or no number of 64 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// The model: without its date where the harness states that form, else as requested.
    pub model: String,
    /// Input, not cached.
    pub input: Option<u64>,
    /// Output.
    pub output: Option<u64>,
    /// Input read from the cache.
    pub cache_read: Option<u64>,
    /// Input written to the cache, for both lifetimes.
    pub cache_write: Option<u64>,
    /// Of these, written for one hour.
    pub cache_write_1h: Option<u64>,
    /// Where the harness has its price from.
    pub cost_basis: Option<String>,
}

impl SessionLog {
    /// Why the calls of this log cannot be believed to be all of the session's, with the line, or none.
    #[must_use]
    pub fn could_hide_a_call(&self) -> Option<String> {
        if let Some(Malformed { line, why, .. }) = self.malformed.first.first() {
            let more = match self.malformed.count - 1 {
                0 => String::new(),
                others => format!(" (and {others} more)"),
            };
            return Some(format!("line {line} was not read: {why}{more}"));
        }
        self.contradictions.first.first().map(ToString::to_string)
    }

    /// Calls of the web tools.
    #[must_use]
    pub fn web_calls(&self) -> usize {
        self.calls.iter().filter(|call| matches!(call.tool.as_str(), "WebFetch" | "WebSearch")).count()
    }

    /// Calls of the tools of MCP servers.
    #[must_use]
    pub fn mcp_calls(&self) -> usize {
        self.calls.iter().filter(|call| call.tool.starts_with("mcp__")).count()
    }

    /// Calls that sub-agents made.
    #[must_use]
    pub fn subagent_calls(&self) -> usize {
        self.calls.iter().filter(|call| call.parent.is_some()).count()
    }
}

/// A name from the stream, cut to [`NAME_LIMIT`].
pub(super) fn short(name: &str) -> &str {
    let end = (0..=NAME_LIMIT.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
    &name[..end.unwrap_or(0)]
}

/// The last line that is not empty, where it is short enough to be an answer.
fn final_line(message: &str) -> Option<String> {
    let line = message.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(if line.len() > FINAL_LINE_LIMIT { String::new() } else { line.to_owned() })
}

impl From<wire::ResultLine<'_>> for ResultLine {
    fn from(read: wire::ResultLine<'_>) -> Self {
        let usage = read.model_usage.map(|pairs| pairs.0).unwrap_or_default();
        Self {
            line: 0,
            index: read.result_index.0,
            subtype: read.subtype.map(|name| short(&name.0).to_owned()),
            is_error: read.is_error,
            terminal_reason: read.terminal_reason.map(|name| short(&name.0).to_owned()),
            stop_reason: read.stop_reason.map(|name| short(&name.0).to_owned()),
            api_error_status: read.api_error_status.0,
            turns: read.num_turns.0,
            cost_usd: read
                .total_cost_usd
                .map(|raw| if raw.get().len() > NAME_LIMIT { "" } else { raw.get() }.to_owned()),
            usage: usage.into_iter().map(|(model, Object(usage))| usage.under(model)).collect(),
            final_line: read.result.and_then(|message| final_line(&message.0)),
        }
    }
}

impl wire::ModelUsage<'_> {
    fn under(self, model: String) -> Usage {
        Usage {
            model: self.canonical_model.map_or_else(|| short(&model).to_owned(), |name| short(&name.0).to_owned()),
            input: self.input_tokens.0,
            output: self.output_tokens.0,
            cache_read: self.cache_read_input_tokens.0,
            cache_write: self.cache_creation_input_tokens.0,
            cache_write_1h: self.cache_creation_1h.0,
            cost_basis: self.cost_basis.map(|name| short(&name.0).to_owned()),
        }
    }
}

impl From<wire::Init<'_>> for Init {
    fn from(read: wire::Init<'_>) -> Self {
        let text = |text: Option<wire::Text<'_>>| text.map(wire::Text::into_string);
        let list = |list: Option<Vec<wire::Text<'_>>>| -> Option<Vec<String>> {
            list.map(|list| list.into_iter().map(wire::Text::into_string).collect())
        };
        let mut memory_paths = Vec::new();
        if let Some(value) = &read.memory_paths {
            strings(value, &mut memory_paths);
        }
        Self {
            cwd: text(read.cwd),
            original_cwd: text(read.original_cwd),
            permission_mode: text(read.permission_mode),
            output_style: text(read.output_style),
            model: text(read.model),
            version: text(read.claude_code_version),
            api_key_source: text(read.api_key_source),
            mcp_servers: read.mcp_servers.map(|servers| {
                let server = |server: wire::Server<'_>| Server {
                    name: server.name.into_string(),
                    source: server.source.map(wire::Text::into_string),
                };
                servers.into_iter().map(|Object(read)| server(read)).collect()
            }),
            plugins: read.plugins.map(|plugins| {
                let plugin = |plugin: wire::Plugin<'_>| Plugin {
                    name: plugin.name.into_string(),
                    path: plugin.path.map(wire::Text::into_string),
                };
                plugins.into_iter().map(|Object(read)| plugin(read)).collect()
            }),
            skills: list(read.skills),
            agents: list(read.agents),
            commands: list(read.slash_commands),
            additional_directories: list(read.additional_directories).unwrap_or_default(),
            memory_paths,
        }
    }
}

/// Every string in `value`, at any depth.
fn strings(value: &serde_json::Value, out: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => out.push(text.clone()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, out)),
        serde_json::Value::Object(members) => members.values().for_each(|member| strings(member, out)),
        _ => {}
    }
}
