//! The shapes of the stream's lines, member by member and in the order of the real ones.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use headwater_contract::digest::Digest;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;

use super::flags::Flags;
use super::tools::Outcome;
use super::{Surroundings, permission, skills};

/// The version of the harness whose lines these are.
pub const VERSION: &str = "2.1.332";

/// The skills that are built into the harness.
const BUILT_IN_SKILLS: &[&str] = &[
    "deep-research",
    "dataviz",
    "update-config",
    "verify",
    "debug",
    "code-review",
    "simplify",
    "batch",
    "fewer-permission-prompts",
    "doctor",
    "loop",
    "claude-api",
    "workflow-authoring",
    "run",
    "run-skill-generator",
    "plugin-authoring",
];

/// The slash commands that are built into the harness and are no skills.
pub const BUILT_IN_COMMANDS: &[&str] =
    &["agents", "clear", "compact", "config", "context", "cost", "effort", "help", "mcp", "model", "usage"];

/// A JSON object whose members keep their order.
#[derive(Debug, Clone, Default)]
pub struct Object(Vec<(String, Member)>);

/// The value of a member, or its text where no value may stand for it.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(untagged)]
enum Member {
    Value(Value),
    Text(Box<RawValue>),
}

impl Object {
    /// Sets a member, in its place where it is there already.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.put(key, Member::Value(value.into()));
    }

    /// Sets several members.
    pub fn set_all<'a>(&mut self, members: impl IntoIterator<Item = (&'a str, Value)>) {
        for (key, value) in members {
            self.set(key, value);
        }
    }

    /// Appends to an array member, which is made where there is none.
    pub fn append(&mut self, key: &str, values: Vec<Value>) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, Member::Value(Value::Array(items)))) => items.extend(values),
            _ => self.set(key, values),
        }
    }

    fn put(&mut self, key: &str, member: Member) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = member,
            None => self.0.push((key.to_owned(), member)),
        }
    }
}

impl<const N: usize> From<[(&str, Value); N]> for Object {
    fn from(members: [(&str, Value); N]) -> Self {
        let mut object = Self::default();
        object.set_all(members);
        object
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// A number of `digits` hexadecimal digits that no other of this process or the next one is.
#[must_use]
pub fn unique_hex(digits: usize) -> String {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    let drawn = DRAWN.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = format!("{}.{}.{drawn}", since.as_nanos(), std::process::id());
    let digest = Digest::of(seed.as_bytes()).to_string();
    digest.rsplit(':').next().unwrap_or_default().chars().take(digits).collect()
}

/// A fresh UUID of version 4.
#[must_use]
pub fn uuid() -> String {
    let hex = unique_hex(30);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    format!("{}-{}-4{}-a{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

fn timestamp() -> String {
    let now = OffsetDateTime::now_utc();
    format!("{}T{:02}:{:02}:{:02}.{:03}Z", now.date(), now.hour(), now.minute(), now.second(), now.millisecond())
}

/// Which conversation a line belongs to.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// How deep: 0 for the session itself.
    pub depth: usize,
    /// The call that started the sub-agent.
    pub parent: Option<String>,
    /// The sub-agent's identifier.
    pub agent: String,
    /// The kind of the sub-agent.
    pub subagent_type: String,
    /// What the call said it is for.
    pub description: String,
}

impl Scope {
    /// The members of a line that name the conversation.
    fn names(&self) -> Vec<(&'static str, Value)> {
        let parent = ("parent_tool_use_id", self.parent.clone().map_or(Value::Null, Value::String));
        if self.depth == 0 { vec![parent] } else { vec![parent, ("agent_id", self.agent.clone().into())] }
    }

    /// The members of a sub-agent's line that describe it.
    fn description(&self) -> Vec<(&'static str, Value)> {
        if self.depth == 0 {
            return Vec::new();
        }
        vec![
            ("subagent_type", self.subagent_type.clone().into()),
            ("task_description", self.description.clone().into()),
        ]
    }
}

/// Token counts of a session.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tokens {
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
}

/// The init line.
#[must_use]
pub fn init(session: &str, model: &str, flags: &Flags, around: &Surroundings) -> Object {
    let own_skills =
        if flags.loads_project() && !flags.no_commands { skills::names(&around.workspace) } else { Vec::new() };
    let skills: Vec<&str> = BUILT_IN_SKILLS.iter().copied().chain(own_skills.iter().map(String::as_str)).collect();
    let commands: Vec<&str> = skills.iter().chain(BUILT_IN_COMMANDS).copied().collect();
    let workspace = around.workspace.display().to_string();
    let plugins: Vec<Value> = ["cc-plugin-agents-md", "cc-plugin-privacy", "cc-plugin-plugin-authoring"]
        .map(|name| json!({"name": name, "path": "builtin", "source": format!("{name}@builtin")}))
        .to_vec();
    let mut line = Object::from([
        ("type", "system".into()),
        ("subtype", "init".into()),
        ("cwd", workspace.clone().into()),
        ("session_id", session.into()),
        ("tools", permission::tools(flags).into()),
        ("mcp_servers", mcp_servers(flags, around).into()),
        ("model", model.into()),
        ("permissionMode", flags.permission_mode.clone().into()),
        ("slash_commands", commands.into()),
        ("terminal_slash_commands", json!(["doctor", "color", "focus", "reload-plugins"])),
        ("apiKeySource", around.api_key_source().into()),
        ("claude_code_version", VERSION.into()),
        ("output_style", "default".into()),
        ("agents", json!(["claude", "Explore", "general-purpose", "Plan", "statusline-setup"])),
        ("skills", skills.into()),
        ("plugins", plugins.into()),
        ("capabilities", json!(["interrupt_receipt_v1", "msg_lifecycle_v1"])),
        ("analytics_disabled", true.into()),
        ("product_feedback_disabled", true.into()),
        ("served_by_anthropic", false.into()),
        ("uuid", uuid().into()),
        ("sandbox_enabled", false.into()),
    ]);
    if around.auto_memory {
        let slug = workspace.replace(['/', '.', '_'], "-");
        let memory = around.config.join("projects").join(slug).join("memory");
        line.set("memory_paths", json!({"auto": format!("{}/", memory.display())}));
    }
    line.set_all([
        ("original_cwd", workspace.into()),
        ("additional_directories", json!([])),
        ("fast_mode_state", "off".into()),
        ("fast_mode_disabled_reason", "sdk_opt_in_required".into()),
        ("per_turn_effort_active", false.into()),
        ("ultrathink_available", false.into()),
        ("ultrathink_typed_raises", false.into()),
        ("view_mode", "default".into()),
    ]);
    line
}

/// The MCP servers that the options and the workspace declare. None of them is started, and each says so.
fn mcp_servers(flags: &Flags, around: &Surroundings) -> Vec<Value> {
    let declared = flags.mcp_config.iter().map(|config| {
        let path = around.workspace.join(config);
        (if config.trim_start().starts_with('{') { Some(config.clone()) } else { read(&path) }, "dynamic")
    });
    let own = (!flags.strict_mcp).then(|| (read(&around.workspace.join(".mcp.json")), "project"));
    let mut servers = Vec::new();
    for (text, source) in declared.chain(own) {
        let parsed: Value = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        for name in parsed["mcpServers"].as_object().into_iter().flat_map(Map::keys) {
            servers.push(json!({"name": name, "status": "failed", "source": source}));
        }
    }
    servers
}

fn read(path: &std::path::Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// An assistant line: one block of a message.
#[must_use]
pub fn assistant(session: &str, scope: &Scope, message: &str, model: &str, block: Value) -> Object {
    let is_thinking = block["type"] == "thinking";
    let body = json!({
        "id": message, "type": "message", "role": "assistant", "model": model, "content": [block],
        "stop_reason": null, "stop_sequence": null,
        "usage": {
            "input_tokens": 1000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1,
            "service_tier": "standard",
        },
        "context_management": null,
    });
    let mut line = message_line("assistant", session, scope, body);
    line.set("request_id", "req_scripted");
    line.set_all(scope.description());
    if is_thinking {
        line.set("thinking_duration_ms", 1);
        line.set("thinking_display", "updates");
    }
    line
}

/// The assistant line that stands for a provider error.
#[must_use]
pub fn synthetic(session: &str, scope: &Scope, error: &ProviderError) -> Object {
    let body = json!({
        "diagnostics": null, "id": uuid(), "container": null, "model": "<synthetic>", "role": "assistant",
        "stop_details": null, "stop_reason": "stop_sequence", "stop_sequence": "", "type": "message",
        "usage": {
            "output_tokens_details": null, "input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": null,
            "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
            "inference_geo": null, "iterations": null, "speed": null, "fallback_credit": null,
        },
        "content": [{"type": "text", "text": error.text}], "context_management": null,
    });
    let mut line = message_line("assistant", session, scope, body);
    line.set("error", error.name);
    line.set("request_id", "req_scripted");
    line.set("is_api_error_message", true);
    line.set("api_error_status", error.status);
    line.set("api_error_type", error.api_type);
    line.set_all(scope.description());
    line
}

/// The user line of a tool result.
#[must_use]
pub fn tool_result(session: &str, scope: &Scope, call: &str, outcome: &Outcome, decision: Value) -> Object {
    let mut block = json!({"tool_use_id": call, "type": "tool_result", "content": outcome.content});
    if let Some(is_error) = outcome.is_error {
        block["is_error"] = is_error.into();
    }
    let mut line = message_line("user", session, scope, json!({"role": "user", "content": [block]}));
    // A sub-agent's lines carry the structured result of a failure only.
    if scope.depth == 0 || outcome.is_error == Some(true) {
        line.set("tool_use_result", outcome.result.clone());
    }
    if !decision.is_null() {
        line.set("tool_result_meta", json!([merged(json!({"id": call}), decision)]));
    }
    line.set_all(scope.description());
    line
}

/// The user line of a text that no person typed.
#[must_use]
pub fn user_text(session: &str, scope: &Scope, text: &str) -> Object {
    let body = json!({"role": "user", "content": [{"type": "text", "text": text}]});
    let mut line = message_line("user", session, scope, body);
    if scope.depth == 0 {
        line.set("isSynthetic", true);
    }
    line.set_all(scope.description());
    line
}

fn message_line(kind: &str, session: &str, scope: &Scope, body: Value) -> Object {
    let mut line = Object::from([("type", kind.into()), ("message", body)]);
    line.set_all(scope.names());
    line.set("session_id", session);
    line.set("uuid", uuid());
    line.set("timestamp", timestamp());
    line
}

/// A system line.
#[must_use]
pub fn system<const N: usize>(session: &str, subtype: &str, members: [(&str, Value); N]) -> Object {
    let mut line = Object::from([("type", "system".into()), ("subtype", subtype.into())]);
    line.set_all(members);
    line.set("uuid", uuid());
    line.set("session_id", session);
    line
}

/// How a session ended.
#[derive(Debug)]
pub enum Ending {
    /// With a final message.
    Answered(String),
    /// At the turn cap.
    TurnCap(u64),
    /// With a provider error.
    ProviderError(ProviderError),
    /// A slash command of the harness took the prompt, and no model saw it.
    LocalCommand(String),
}

/// What a result line counts.
#[derive(Debug)]
pub struct Account<'a> {
    /// The session.
    pub session: &'a str,
    /// The requested model.
    pub model: &'a str,
    /// Messages of the session's own conversation, plus one.
    pub turns: u64,
    /// Its tokens.
    pub tokens: Tokens,
    /// Members that replace those of `usage`.
    pub usage: &'a Map<String, Value>,
    /// The text of `total_cost_usd`.
    pub cost: &'a RawValue,
    /// Calls that were denied.
    pub denials: &'a [Value],
    /// Sub-agents started.
    pub agents: u64,
    /// How many result lines came before.
    pub index: u64,
    /// Milliseconds since the start.
    pub duration: u64,
}

/// The result line.
#[must_use]
pub fn result(ending: &Ending, account: &Account) -> Object {
    let usage = usage(account);
    let model_usage = model_usage(account, &usage);
    let (stop_reason, terminal_reason, is_error, subtype) = match ending {
        Ending::Answered(_) => (json!("end_turn"), Some("completed"), false, "success"),
        Ending::TurnCap(_) => (json!("tool_use"), Some("max_turns"), true, "error_max_turns"),
        Ending::ProviderError(_) => (json!("stop_sequence"), Some("api_error"), true, "success"),
        Ending::LocalCommand(_) => (Value::Null, None, false, "success"),
    };
    let mut line = Object::from([
        ("duration_api_ms", account.duration.into()),
        ("stop_reason", stop_reason),
        ("session_id", account.session.into()),
    ]);
    line.put("total_cost_usd", Member::Text(account.cost.to_owned()));
    line.set_all([
        ("usage", usage),
        ("modelUsage", model_usage.clone()),
        ("permission_denials", account.denials.into()),
    ]);
    line.set_all(terminal_reason.map(|reason| ("terminal_reason", reason.into())));
    line.set_all([
        ("fast_mode_state", "off".into()),
        ("fast_mode_disabled_reason", "sdk_opt_in_required".into()),
        ("subagent_stats", subagent_stats(account.agents)),
        ("safety_stops", 0.into()),
        ("is_error", is_error.into()),
        ("num_turns", account.turns.into()),
        ("subtype", subtype.into()),
    ]);
    line.set_all(ending_members(ending));
    line.set_all([("type", "result".into()), ("duration_ms", account.duration.into()), ("uuid", uuid().into())]);
    if matches!(ending, Ending::Answered(_)) {
        line.set_all(["ttft_stream_ms", "time_to_request_ms", "first_content_frame_ms"].map(|key| (key, 1.into())));
    }
    line.set_all([
        ("queued_turn_count", 0.into()),
        ("result_index", account.index.into()),
        ("model_usage_since_last_result", model_usage),
    ]);
    line
}

fn usage(account: &Account) -> Value {
    let computed = json!({
        "input_tokens": account.tokens.input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": account.tokens.output, "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard",
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        "inference_geo": "", "iterations": [], "speed": "standard", "fallback_credit": null,
    });
    merged(computed, Value::Object(account.usage.clone()))
}

fn model_usage(account: &Account, usage: &Value) -> Value {
    let cost: Value = serde_json::from_str(account.cost.get()).unwrap_or_default();
    json!({account.model: {
        "inputTokens": usage["input_tokens"], "outputTokens": usage["output_tokens"],
        "cacheReadInputTokens": usage["cache_read_input_tokens"],
        "cacheCreationInputTokens": usage["cache_creation_input_tokens"], "webSearchRequests": 0, "costUSD": cost,
        "contextWindow": 200_000, "maxOutputTokens": 32000, "thinkingTokens": 0,
        "cacheCreationEphemeral5mInputTokens": 0, "cacheCreationEphemeral1hInputTokens": 0,
        "canonicalModel": canonical_model(account.model), "provider": "firstParty", "costBasis": "list",
    }})
}

/// The members that only one kind of ending has.
fn ending_members(ending: &Ending) -> Vec<(&'static str, Value)> {
    match ending {
        Ending::Answered(text) => {
            vec![("api_error_status", Value::Null), ("result", text.clone().into()), ("ttft_ms", 1.into())]
        }
        Ending::TurnCap(cap) => vec![("errors", json!([format!("Reached maximum number of turns ({cap})")]))],
        Ending::ProviderError(error) => vec![
            ("api_error_status", error.status.into()),
            ("api_error_type", error.api_type.into()),
            ("result", error.text.clone().into()),
        ],
        Ending::LocalCommand(name) => vec![("result", "".into()), ("local_command", name.clone().into())],
    }
}

fn subagent_stats(agents: u64) -> Value {
    json!({
        "spawned": agents, "requested": {"background": 0, "foreground": 0, "unset": agents},
        "started_in_background": 0, "max_depth": 0, "spawned_by_subagents": 0, "completed": agents, "failed": 0,
        "killed": {"parent": 0, "user": 0, "system": 0},
        "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0}, "by_type": {},
    })
}

/// A model's name without its date.
fn canonical_model(model: &str) -> &str {
    match model.rsplit_once('-') {
        Some((name, date)) if date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => model,
    }
}

fn merged(into: Value, members: Value) -> Value {
    match (into, members) {
        (Value::Object(mut into), Value::Object(members)) => {
            into.extend(members);
            Value::Object(into)
        }
        (into, _) => into,
    }
}

/// A provider error, as the lines tell it.
#[derive(Debug, Clone)]
pub struct ProviderError {
    /// The HTTP status.
    pub status: u16,
    /// The `error` member of an `api_retry` line.
    pub retry_name: &'static str,
    /// The `error` member of the synthetic line.
    pub name: &'static str,
    /// The provider's own type.
    pub api_type: &'static str,
    /// What the person is told.
    pub text: String,
}

impl ProviderError {
    /// The error that a status stands for.
    #[must_use]
    pub fn of(status: u16) -> Self {
        let (retry_name, name, api_type, text) = match status {
            401 => ("authentication_failed", "authentication_failed", "authentication_error", "Invalid API key"),
            429 => ("rate_limit", "rate_limit", "rate_limit_error", "Request rejected (429)"),
            529 => ("overloaded", "server_error", "overloaded_error", "API Error: 529 Overloaded."),
            _ => ("server_error", "server_error", "api_error", ""),
        };
        let text = if text.is_empty() { format!("API Error: {status}") } else { text.to_owned() };
        Self { status, retry_name, name, api_type, text }
    }
}
