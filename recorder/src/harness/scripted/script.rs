//! The script: read, checked and filled in before the first line is written.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// What fills the placeholders `{workspace}`, `{prompt}` and `{config}` in every string of a script.
#[derive(Debug, Clone, Default)]
pub struct Placeholders {
    /// The working directory.
    pub workspace: String,
    /// The prompt as it would reach the model.
    pub prompt: String,
    /// The configuration directory.
    pub config: String,
}

/// A script, with its placeholders filled in.
#[derive(Debug, Default)]
pub struct Script {
    /// The served model; the requested one where it is absent.
    pub model: Option<String>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// What is written as `total_cost_usd`: any JSON text, so that a wrong one can be played too.
    pub cost_usd: Option<Box<RawValue>>,
    /// Members that replace those of the computed `usage`.
    pub usage: Map<String, Value>,
    /// What goes wrong.
    pub misbehave: Misbehave,
}

/// One step of a session or of a sub-agent.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// A text block.
    Text { text: String, model: Option<String> },
    /// A thinking block.
    Thinking { text: String, model: Option<String> },
    /// Calls of one message, which end it.
    Calls { calls: Vec<Call>, model: Option<String>, reverse_results: bool },
    /// Bytes written as they are.
    Raw(Vec<u8>),
    /// A pause, in milliseconds.
    Sleep(u64),
    /// A provider error after which the same request succeeded.
    Retry(u16),
    /// A provider error that the harness gave up on.
    Failure(ProviderFailure),
}

/// One tool call.
#[derive(Debug, PartialEq)]
pub struct Call {
    /// The tool's name, as the wire has it.
    pub tool: String,
    /// Its input.
    pub input: Value,
    /// What the sub-agent does, for `Agent` and `Task`.
    pub agent: Vec<Step>,
}

/// A provider error that the harness gave up on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderFailure {
    /// The HTTP status.
    pub status: u16,
    /// How many `api_retry` lines come before it.
    #[serde(default)]
    pub retries: u32,
    /// Whether the session ends with it. Where it does not, the run goes on and may end well.
    #[serde(default = "yes")]
    pub ends: bool,
}

/// What goes wrong, all absent by default.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Misbehave {
    /// End before anything is read or written.
    pub exit_at_once: bool,
    /// Write no init line.
    pub no_init: bool,
    /// Members of the init line that are replaced.
    pub init_set: BTreeMap<String, Value>,
    /// Elements appended to arrays of the init line.
    pub init_add: BTreeMap<String, Vec<Value>>,
    /// Lines written before the init line: a string is written as it is, anything else as JSON.
    pub before_init: Vec<Value>,
    /// Text written to standard error.
    pub stderr: Option<Noise>,
    /// Write so many bytes of meaningless lines after the init line.
    pub flood_bytes: u64,
    /// A shell command started in a session of its own, holding the stream, that nobody waits for.
    pub leave_child: Option<String>,
    /// End after so many bytes of the stream.
    pub cut_after_bytes: Option<u64>,
    /// End inside a line.
    pub cut_in_line: Option<CutInLine>,
    /// Write nothing after so many lines, and stay.
    pub silent_after_lines: Option<u64>,
    /// Write no result line.
    pub no_result: bool,
    /// Write the result line so many times more.
    pub extra_results: u32,
    /// Stay so many milliseconds after the result line.
    pub stay_ms: u64,
    /// How the process ends, instead of as its result says.
    pub end: Option<End>,
}

/// Text for standard error.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// The text; a line feed follows it.
    pub text: String,
    /// How often.
    #[serde(default = "one")]
    pub repeat: u64,
}

/// Where a line is cut.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutInLine {
    /// One-based.
    pub line: u64,
    /// How many bytes of it are written.
    pub bytes: u64,
}

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// With this exit status.
    Exit(u8),
    /// By this signal.
    Signal(i32),
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    #[serde(default)]
    model: Option<String>,
    turns: Vec<Value>,
    #[serde(default)]
    cost_usd: Option<Value>,
    #[serde(default)]
    usage: Map<String, Value>,
    #[serde(default)]
    misbehave: Misbehave,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    text: Option<String>,
    thinking: Option<String>,
    calls: Option<Vec<RawCall>>,
    raw: Option<String>,
    raw_hex: Option<String>,
    sleep_ms: Option<u64>,
    retry: Option<u16>,
    failure: Option<ProviderFailure>,
    // What follows changes one of the above.
    model: Option<String>,
    repeat: Option<usize>,
    newline: Option<bool>,
    reverse_results: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCall {
    tool: String,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    agent: Vec<Value>,
}

/// The longest text a `repeat` may make, in bytes.
const LONGEST_TEXT: usize = 1 << 30;

/// How deep sub-agents may be nested in a script.
const DEEPEST_AGENT: usize = 16;

impl Script {
    /// Reads a script and fills its placeholders in.
    ///
    /// # Errors
    /// What is wrong with it, with the place: the step, the call, the key.
    pub fn parse(text: &[u8], placeholders: &Placeholders) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(text).map_err(|e| format!("it is not JSON: {e}"))?;
        let raw: RawScript =
            serde_json::from_value(placeholders.fill(value)).map_err(|e| format!("it is not a script: {e}"))?;
        let cost_usd = raw.cost_usd.map(cost_text).transpose()?;
        Ok(Self {
            model: raw.model,
            steps: steps(raw.turns, "turn", 0)?,
            cost_usd,
            usage: raw.usage,
            misbehave: raw.misbehave,
        })
    }
}

/// The text of a cost: a number as it is, a string as the JSON text it holds.
fn cost_text(cost: Value) -> Result<Box<RawValue>, String> {
    let text = match cost {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text,
        other => return Err(format!("cost_usd: `{other}` is neither a number nor a string")),
    };
    RawValue::from_string(text.clone()).map_err(|_| format!("cost_usd: `{text}` is not the text of a JSON value"))
}

fn steps(values: Vec<Value>, place: &str, depth: usize) -> Result<Vec<Step>, String> {
    if depth > DEEPEST_AGENT {
        return Err(format!("{place}: sub-agents are nested deeper than {DEEPEST_AGENT}"));
    }
    let mut steps = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        let place = format!("{place} {}", index + 1);
        let raw: RawStep = serde_json::from_value(value).map_err(|e| format!("{place}: {e}"))?;
        steps.push(step(raw, &place, depth)?);
    }
    Ok(steps)
}

fn step(raw: RawStep, place: &str, depth: usize) -> Result<Step, String> {
    let RawStep { text, thinking, calls, raw: raw_text, raw_hex, sleep_ms, retry, failure, model, .. } = raw;
    let (repeat, newline) = (raw.repeat.unwrap_or(1), raw.newline.unwrap_or(true));
    let mut found = Vec::new();
    if let Some(text) = text {
        found.push(Step::Text { text: repeated(text, repeat, place)?, model: model.clone() });
    }
    if let Some(text) = thinking {
        found.push(Step::Thinking { text: repeated(text, repeat, place)?, model: model.clone() });
    }
    if let Some(raw_calls) = calls {
        let calls = raw_calls
            .into_iter()
            .enumerate()
            .map(|(index, raw)| call(raw, &format!("{place}, call {}", index + 1), depth))
            .collect::<Result<Vec<_>, _>>()?;
        if calls.is_empty() {
            return Err(format!("{place}: `calls` is empty"));
        }
        found.push(Step::Calls { calls, model, reverse_results: raw.reverse_results.unwrap_or(false) });
    }
    let raw_bytes = match (raw_text, raw_hex) {
        (Some(_), Some(_)) => return Err(format!("{place}: `raw` and `raw_hex` exclude each other")),
        (Some(text), None) => Some(text.into_bytes()),
        (None, Some(hex)) => Some(bytes_of_hex(&hex).ok_or_else(|| format!("{place}: `raw_hex` is no hexadecimal"))?),
        (None, None) => None,
    };
    if let Some(mut bytes) = raw_bytes {
        if newline {
            bytes.push(b'\n');
        }
        found.push(Step::Raw(bytes));
    }
    found.extend(sleep_ms.map(Step::Sleep));
    found.extend(retry.map(Step::Retry));
    found.extend(failure.map(Step::Failure));
    match (found.pop(), found.is_empty()) {
        (Some(step), true) => Ok(step),
        (Some(_), false) => Err(format!("{place}: it does more than one thing")),
        (None, _) => Err(format!(
            "{place}: it has none of `text`, `thinking`, `calls`, `raw`, `raw_hex`, `sleep_ms`, `retry`, `failure`"
        )),
    }
}

fn call(raw: RawCall, place: &str, depth: usize) -> Result<Call, String> {
    let input = match raw.input {
        Value::Null => Value::Object(Map::new()),
        object @ Value::Object(_) => object,
        other => return Err(format!("{place}: the input of {} is `{other}` and no object", raw.tool)),
    };
    let is_agent = matches!(raw.tool.as_str(), "Agent" | "Task");
    if !is_agent && !raw.agent.is_empty() {
        return Err(format!("{place}: {} is no sub-agent and takes no `agent`", raw.tool));
    }
    Ok(Call { tool: raw.tool, input, agent: steps(raw.agent, &format!("{place}, agent turn"), depth + 1)? })
}

fn repeated(text: String, times: usize, place: &str) -> Result<String, String> {
    match text.len().checked_mul(times) {
        Some(length) if length <= LONGEST_TEXT => Ok(text.repeat(times)),
        _ => Err(format!("{place}: the repeated text would be longer than {LONGEST_TEXT} bytes")),
    }
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().map(|b| char::from(b).to_digit(16)).collect::<Option<Vec<_>>>()?;
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high * 16 + low).ok(),
        _ => None,
    });
    pairs.collect()
}

impl Placeholders {
    fn fill(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill_text(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.fill(item)).collect()),
            Value::Object(map) => Value::Object(map.into_iter().map(|(k, v)| (k, self.fill(v))).collect()),
            other => other,
        }
    }

    /// One pass from left to right, so that a prompt which holds a placeholder stays as it is.
    fn fill_text(&self, text: &str) -> String {
        let names = [("{workspace}", &self.workspace), ("{prompt}", &self.prompt), ("{config}", &self.config)];
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            match names.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    filled.push_str(value);
                    rest = &rest[name.len()..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Script, String> {
        let placeholders =
            Placeholders { workspace: "/ws".into(), prompt: "say {config}".into(), config: "/cfg".into() };
        Script::parse(text.as_bytes(), &placeholders)
    }

    fn refusal(text: &str) -> String {
        parse(text).expect_err("the script is bad")
    }

    #[test]
    fn placeholders_are_filled_in_everywhere_and_only_once() {
        let script = parse(
            r#"{"turns": [{"calls": [{"tool": "Read", "input": {"file_path": "{workspace}/a", "n": ["{config}"]}}]},
                          {"text": "{prompt} {other} {"}]}"#,
        )
        .unwrap();
        let Step::Calls { calls, .. } = &script.steps[0] else { panic!("calls") };
        assert_eq!(calls[0].input, serde_json::json!({"file_path": "/ws/a", "n": ["/cfg"]}));
        assert_eq!(script.steps[1], Step::Text { text: "say {config} {other} {".into(), model: None });
    }

    #[test]
    fn a_bad_script_is_refused_with_the_place_of_its_fault() {
        assert!(refusal("{").contains("it is not JSON"));
        assert!(refusal(r#"{"turns": [], "extra": 1}"#).contains("unknown field `extra`"));
        assert!(refusal(r#"{"turns": [{"text": "a"}, {"txt": "b"}]}"#).contains("turn 2: unknown field `txt`"));
        assert!(refusal(r#"{"turns": [{}]}"#).contains("turn 1: it has none of"));
        assert!(refusal(r#"{"turns": [{"text": "a", "retry": 500}]}"#).contains("turn 1: it does more than one"));
        assert!(refusal(r#"{"turns": [{"calls": []}]}"#).contains("turn 1: `calls` is empty"));
        assert!(refusal(r#"{"turns": [{"calls": [{"tool": "Read", "input": 3}]}]}"#).contains("turn 1, call 1"));
        assert!(
            refusal(r#"{"turns": [{"calls": [{"tool": "Read", "agent": [{"text": "x"}]}]}]}"#)
                .contains("takes no `agent`")
        );
        assert!(refusal(r#"{"turns": [{"text": "aa", "repeat": 999999999999}]}"#).contains("longer than"));
        assert!(refusal(r#"{"turns": [{"raw_hex": "f"}]}"#).contains("no hexadecimal"));
        assert!(refusal(r#"{"turns": [], "cost_usd": "1,5"}"#).contains("cost_usd"));
        assert!(refusal(r#"{"turns": [], "misbehave": {"no_int": true}}"#).contains("no_int"));
        let mut nested = r#"{"text": "x"}"#.to_owned();
        for _ in 0..=DEEPEST_AGENT {
            nested = format!(r#"{{"calls": [{{"tool": "Agent", "agent": [{nested}]}}]}}"#);
        }
        assert!(refusal(&format!(r#"{{"turns": [{nested}]}}"#)).contains("nested deeper"));
    }

    #[test]
    fn raw_lines_may_hold_what_json_text_cannot() {
        let script = parse(
            r#"{"turns": [{"raw_hex": "ff00", "newline": false}, {"raw": "{\"a\":\"\\ud800\"}"}], "cost_usd": "1e999"}"#,
        )
        .unwrap();
        assert_eq!(script.steps[0], Step::Raw(vec![0xff, 0x00]));
        assert_eq!(script.steps[1], Step::Raw(b"{\"a\":\"\\ud800\"}\n".to_vec()));
        assert_eq!(script.cost_usd.unwrap().get(), "1e999");
    }

    proptest! {
        #[test]
        fn no_script_makes_the_reader_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }

        #[test]
        fn text_without_a_brace_is_kept(text in "[^{]{0,80}") {
            let filled = Placeholders::default().fill_text(&text);
            prop_assert_eq!(filled, text);
        }
    }
}
