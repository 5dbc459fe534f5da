//! Bytes to a session log.
//!
//! The stream is read as lines of JSON. What a line is, and what each block in it is, the harness states by a tag;
//! nothing is admitted by its position. A call is a `tool_use` block of an assistant line, its result a
//! `tool_result` block of a user line. Text, thinking and hook output are passed over.
//!
//! Memory is bounded by the longest line and by the calls, not by the length of the stream.

use super::lines::{self, Line};
pub use super::log::SessionLog;
use super::log::{self, Call, Contradiction, Malformed, ResultLine, Returned, Synthetic, Why, short};
use super::wire::{self, Object};
use headwater_contract::digest::Digest;
use serde_json::error::Category;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead};

/// A longer line, in bytes, is not read, and counts as one that could hide a call.
pub const LINE_LIMIT: usize = 256 << 20;
/// The model that the harness writes where it speaks in the place of the model.
const SYNTHETIC: &str = "<synthetic>";

/// Reads the stream of one session to its end.
///
/// A line that is not read is counted and never an error: what it means is for [`super::ending`] to say.
///
/// # Errors
/// Whatever reading gives.
pub fn read(input: impl BufRead) -> io::Result<SessionLog> {
    read_with(input, LINE_LIMIT)
}

fn read_with(input: impl BufRead, limit: usize) -> io::Result<SessionLog> {
    let mut reader = Reader::default();
    lines::each(input, limit, |line, ended| reader.line(line, ended))?;
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    log: SessionLog,
    /// Where a call stands, by its identifier.
    by_id: HashMap<String, usize>,
    /// How many calls the harness counts for the sub-agent that a call started.
    counted: HashMap<String, u64>,
}

impl Reader {
    fn line(&mut self, line: Line<'_>, ended: bool) {
        self.log.lines += 1;
        let read = match line {
            Line::TooLong => Err(Why::TooLong),
            Line::Whole(bytes) => match std::str::from_utf8(bytes) {
                Err(_) => Err(Why::NotUtf8),
                Ok(text) if text.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\r')) => {
                    self.log.blank += 1;
                    Ok(())
                }
                Ok(text) => self.json(text).map_err(|e| match e.classify() {
                    Category::Eof => Why::CutOff,
                    Category::Data => Why::Shape,
                    Category::Syntax | Category::Io => Why::NotJson,
                }),
            },
        };
        if let Err(why) = read {
            self.log.malformed.note(Malformed { line: self.log.lines, why, unterminated: !ended });
        }
    }

    fn json(&mut self, text: &str) -> serde_json::Result<()> {
        // Nearly every byte of a stream is in lines that begin like this; they are parsed once. Any other line is
        // first asked for its type, so that a line means the same however its keys are ordered or written.
        if !text.starts_with(r#"{"type":"assistant""#) && !text.starts_with(r#"{"type":"user""#) {
            let Object(head) = serde_json::from_str::<Object<wire::Head<'_>>>(text)?;
            let subtype = head.subtype.0.as_deref().unwrap_or_default();
            match (head.kind.0.as_ref(), subtype) {
                ("assistant" | "user", _) => {}
                ("system", subtype) => return self.system(text, subtype),
                ("result", _) => return self.result(text),
                ("stream_event", _) => return Ok(()),
                ("rate_limit_event", _) => {
                    self.log.rate_limits += 1;
                    return Ok(());
                }
                (kind, _) => {
                    self.unknown(kind);
                    return Ok(());
                }
            }
        }
        let Object(talk) = serde_json::from_str::<Object<wire::Talk<'_>>>(text)?;
        self.talk(talk)
    }

    fn system(&mut self, text: &str, subtype: &str) -> serde_json::Result<()> {
        match subtype {
            "init" => {
                let Object(init) = serde_json::from_str::<Object<wire::Init<'_>>>(text)?;
                if self.log.inits.count == 0 {
                    self.log.tools = init.tools.as_ref().map_or(0, Vec::len);
                }
                self.log.inits.note_once(log::Init::from(init));
            }
            "api_retry" => self.log.api_retries += 1,
            "permission_denied" => {
                let Object(about) = serde_json::from_str::<Object<wire::About<'_>>>(text)?;
                self.deny(about.tool_use_id);
            }
            "task_notification" => {
                let Object(about) = serde_json::from_str::<Object<wire::About<'_>>>(text)?;
                let counted = about.usage.and_then(|Object(usage)| usage.tool_uses.0);
                if let (Some(id), Some(counted)) = (about.tool_use_id.0, counted) {
                    // Only for a call that is known, so that the memory stays that of the calls.
                    if self.by_id.contains_key(id.as_ref()) {
                        let most = self.counted.entry(id.into_owned()).or_default();
                        *most = counted.max(*most);
                    }
                }
            }
            hook if hook.starts_with("hook_") => {
                self.log.hook_lines += 1;
                if self.log.inits.count == 0 {
                    self.log.hook_lines_before_init += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn talk(&mut self, talk: wire::Talk<'_>) -> serde_json::Result<()> {
        let Object(message) = talk.message;
        let assistant = talk.kind.0 == "assistant";
        self.log.talk_after_result += u64::from(self.log.results > 0);
        if assistant {
            match message.model.0.as_deref() {
                Some(SYNTHETIC) => self.log.synthetic.note(Synthetic {
                    line: self.log.lines,
                    status: talk.api_error_status.0,
                    error: talk.api_error_type.0.or(talk.error.0).map(|name| short(&name).to_owned()),
                    refusal: message.stop_reason.0.as_deref() == Some("refusal"),
                }),
                Some(model) if talk.parent_tool_use_id.is_none() => self.log.models.note_once(short(model)),
                _ => {}
            }
        }
        let parent = talk.parent_tool_use_id.map(wire::Text::into_string);
        for block in message.content.0 {
            match (assistant, block.kind.0.as_ref()) {
                (true, "tool_use") => self.call(block, parent.clone())?,
                (false, "tool_result") => self.returned(block)?,
                (true, "text" | "thinking" | "redacted_thinking") | (false, "text" | "image" | "document") => {}
                (_, kind) => {
                    let side = if assistant { "assistant" } else { "user" };
                    self.unknown(&format!("{side}/{}", short(kind)));
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, block: wire::Block<'_>, parent: Option<String>) -> serde_json::Result<()> {
        let (Some(id), Some(tool), Some(input)) = (block.id, block.name, block.input) else {
            return Err(shape("a call without an identifier, a name or an input"));
        };
        let (id, tool, raw) = (id.into_string(), tool.into_string(), input.get());
        let input = Digest::of(raw.as_bytes());
        if let Some(known) = self.by_id.get(&id).and_then(|at| self.log.calls.get(*at)) {
            if known.tool != tool || known.parent != parent || known.input != input {
                self.log.contradictions.note(Contradiction::CallTwice { line: self.log.lines });
            }
            return Ok(());
        }
        let (own, other_paths) = paths(&tool, raw)?;
        self.by_id.insert(id.clone(), self.log.calls.len());
        self.log.calls.push(Call {
            id,
            tool,
            parent,
            names_path: own.is_some(),
            argument: own.unwrap_or_else(|| raw.to_owned()),
            other_paths,
            input,
            returned: Returned::Nothing,
            denied: false,
        });
        Ok(())
    }

    fn returned(&mut self, block: wire::Block<'_>) -> serde_json::Result<()> {
        let Some(id) = block.tool_use_id else {
            return Err(shape("a result without the identifier of its call"));
        };
        let returned = if block.is_error == Some(true) { Returned::Error } else { Returned::Result };
        let line = self.log.lines;
        match self.by_id.get(id.0.as_ref()).and_then(|at| self.log.calls.get_mut(*at)) {
            None => self.log.contradictions.note(Contradiction::ResultWithoutCall { line }),
            Some(call) if call.returned == Returned::Nothing => call.returned = returned,
            Some(call) if call.returned == returned => {}
            Some(_) => self.log.contradictions.note(Contradiction::ResultTwice { line }),
        }
        Ok(())
    }

    fn deny(&mut self, id: wire::Loose<'_>) {
        let known = id.0.and_then(|id| self.by_id.get(id.as_ref()));
        match known.and_then(|at| self.log.calls.get_mut(*at)) {
            Some(call) => call.denied = true,
            None => self.log.denials_without_call += 1,
        }
    }

    fn result(&mut self, text: &str) -> serde_json::Result<()> {
        let Object(mut read) = serde_json::from_str::<Object<wire::ResultLine<'_>>>(text)?;
        for Object(denial) in read.permission_denials.take().unwrap_or_default() {
            self.deny(denial.tool_use_id);
        }
        let line = self.log.lines;
        let result = ResultLine { line, ..read.into() };
        self.log.results += 1;
        self.log.talk_after_result = 0;
        let known = self.log.result.as_ref().map(|known| known.index);
        match (known, result.index) {
            (Some(Some(known)), Some(index)) if known == index => {
                self.log.contradictions.note(Contradiction::ResultIndexTwice { line });
            }
            (Some(Some(known)), Some(index)) if known > index => {}
            _ => self.log.result = Some(result),
        }
        Ok(())
    }

    fn unknown(&mut self, name: &str) {
        let unknown = &mut self.log.unknown;
        let name = if unknown.len() < log::KEPT || unknown.contains_key(short(name)) { short(name) } else { "other" };
        *unknown.entry(name.to_owned()).or_default() += 1;
    }

    fn finish(mut self) -> SessionLog {
        for call in &self.log.calls {
            if let Some(left) = call.parent.as_ref().and_then(|parent| self.counted.get_mut(parent)) {
                *left = left.saturating_sub(1);
            }
        }
        self.log.hidden_calls = self.counted.values().fold(0, |sum: u64, left| sum.saturating_add(*left));
        self.log
    }
}

fn shape(message: &str) -> serde_json::Error {
    serde::de::Error::custom(message)
}

/// The tool's own path, and the paths under the other path keys of its input.
fn paths(tool: &str, raw: &str) -> serde_json::Result<(Option<String>, Vec<String>)> {
    if !raw.starts_with('{') {
        return Ok((None, Vec::new()));
    }
    let Object(input) = serde_json::from_str::<Object<wire::Input<'_>>>(raw)?;
    let [mut file, mut notebook, mut path] =
        [input.file_path, input.notebook_path, input.path].map(|loose| loose.0.map(Cow::into_owned));
    let own = match tool {
        "Read" | "Edit" | "Write" | "MultiEdit" => file.take(),
        "NotebookEdit" => notebook.take(),
        "Glob" | "Grep" => path.take(),
        _ => None,
    };
    Ok((own, [file, notebook, path].into_iter().flatten().collect()))
}

#[cfg(test)]
mod tests {
    use super::super::log::{KEPT, NAME_LIMIT};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::io::BufReader;

    fn log(text: impl AsRef<[u8]>) -> SessionLog {
        read(text.as_ref()).unwrap()
    }

    fn assistant(blocks: &str) -> String {
        format!(r#"{{"type":"assistant","message":{{"model":"m-1","content":[{blocks}]}},"parent_tool_use_id":null}}"#)
    }

    fn user(blocks: &str) -> String {
        format!(r#"{{"type":"user","message":{{"role":"user","content":[{blocks}]}},"parent_tool_use_id":null}}"#)
    }

    fn call(id: &str, tool: &str, input: &str) -> String {
        assistant(&format!(r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{input}}}"#))
    }

    fn result(id: &str, error: bool) -> String {
        user(&format!(r#"{{"tool_use_id":"{id}","type":"tool_result","content":"c","is_error":{error}}}"#))
    }

    fn arguments(log: &SessionLog) -> Vec<(&str, &str)> {
        log.calls.iter().map(|call| (call.tool.as_str(), call.argument.as_str())).collect()
    }

    /// The first malformed line and why.
    fn malformed(log: &SessionLog) -> Option<(u64, Why)> {
        log.malformed.first.first().map(|m| (m.line, m.why))
    }

    fn harness_log(name: &str) -> SessionLog {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/harness-logs").join(name);
        log(std::fs::read(path).unwrap())
    }

    #[test]
    fn a_call_is_a_tool_use_of_the_assistant_and_its_result_a_tool_result_of_the_user() {
        let block = r#"{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/ws/a.md"}}"#;
        let text = r#"{"type":"text","text":"{\"type\":\"tool_use\",\"id\":\"t9\",\"name\":\"Read\",\"input\":{}}"}"#;
        let read = log([assistant(text), user(block), assistant(block), user(text), result("t1", true)].join("\n"));
        assert_eq!(arguments(&read), [("Read", "/ws/a.md")]);
        assert_eq!(read.calls[0].returned, Returned::Error);
        assert_eq!(read.unknown, BTreeMap::from([("user/tool_use".to_owned(), 1)]));
        assert_eq!(read.could_hide_a_call(), None);
    }

    #[test]
    fn blocks_are_admitted_by_tag_however_the_keys_are_ordered_or_written() {
        let plain = call("t1", "Read", r#"{"file_path":"/ws/a.md"}"#);
        let reordered = r#" {"message": {"content": [{"input": {"file_path": "/ws/a.md"}, "name": "Read", "id": "t1",
            "type": "tool_use"}], "model": "m-1"}, "\u0074ype": "assist\u0061nt"}"#
            .replace('\n', " ");
        let mut read = log(&reordered);
        read.calls[0].input = log(&plain).calls[0].input;
        assert_eq!(read, log(&plain));
    }

    #[test]
    fn an_argument_is_the_path_of_a_path_tool_and_else_the_json_as_the_stream_carries_it() {
        let read = log([
            call("1", "Read", r#"{"file_path":"docs/a.md","limit":3}"#),
            call("2", "NotebookEdit", r#"{"notebook_path":"/ws/n.ipynb"}"#),
            call("3", "Grep", r#"{"pattern":"x","path":"/ws/docs"}"#),
            call("4", "Grep", r#"{ "pattern":"x" }"#),
            call("5", "Glob", r#"{"pattern":"x","path":["a"]}"#),
            call("6", "Bash", r#"{"command":"cat \u0061.md",  "x":1.0}"#),
            call("7", "Edit", r#"{"__unparsedToolInput":"{"}"#),
            call("8", "mcp__s__t", r#"{"path":"/etc","file_path":"b"}"#),
            call("9", "Skill", "\"x\""),
        ]
        .join("\n"));
        assert_eq!(
            arguments(&read),
            [
                ("Read", "docs/a.md"),
                ("NotebookEdit", "/ws/n.ipynb"),
                ("Grep", "/ws/docs"),
                ("Grep", r#"{ "pattern":"x" }"#),
                ("Glob", r#"{"pattern":"x","path":["a"]}"#),
                ("Bash", r#"{"command":"cat \u0061.md",  "x":1.0}"#),
                ("Edit", r#"{"__unparsedToolInput":"{"}"#),
                ("mcp__s__t", r#"{"path":"/etc","file_path":"b"}"#),
                ("Skill", "\"x\""),
            ]
        );
        assert_eq!(read.calls[5].command().unwrap(), "cat a.md");
        assert_eq!(read.calls[7].paths().collect::<Vec<_>>(), ["b", "/etc"]);
        assert_eq!(read.calls[7].path(), None);
        assert_eq!((read.mcp_calls(), read.web_calls()), (1, 0));
    }

    #[test]
    fn a_call_that_is_shown_twice_is_one_call_and_another_under_its_identifier_a_contradiction() {
        let first = call("t1", "Read", r#"{"file_path":"a"}"#);
        let read = log([first.clone(), first.clone()].join("\n"));
        assert_eq!((read.calls.len(), read.could_hide_a_call()), (1, None));
        for other in [call("t1", "Read", r#"{"file_path":"a","limit":1}"#), call("t1", "Edit", r#"{"file_path":"a"}"#)]
        {
            let read = log([first.clone(), other].join("\n"));
            assert_eq!(read.contradictions.first, [Contradiction::CallTwice { line: 2 }]);
            assert_eq!(read.calls.len(), 1);
        }
    }

    #[test]
    fn a_result_of_a_call_that_no_line_before_it_makes_is_a_contradiction() {
        let read = log([result("t1", false), call("t1", "Bash", "{}")].join("\n"));
        assert_eq!(read.contradictions.first, [Contradiction::ResultWithoutCall { line: 1 }]);
        let read = log([call("t1", "Bash", "{}"), result("t1", false), result("t1", true)].join("\n"));
        assert_eq!(read.contradictions.first, [Contradiction::ResultTwice { line: 3 }]);
    }

    #[test]
    fn calls_of_sub_agents_at_any_depth_are_calls_in_stream_order() {
        let read = harness_log("06e_nested_subagent_forward.jsonl");
        let tools: Vec<_> = read.calls.iter().map(|call| (call.tool.as_str(), call.parent.as_deref())).collect();
        assert_eq!(
            tools,
            [
                ("Agent", None),
                ("Agent", Some("toolu_main02_0")),
                ("Bash", Some("toolu_agentSUB04_0")),
                ("Read", Some("toolu_agentSUB04_0")),
            ]
        );
        assert_eq!((read.subagent_calls(), read.hidden_calls), (3, 0));
        assert!(read.calls.iter().all(|call| call.returned == Returned::Result));
    }

    #[test]
    fn calls_that_the_harness_counts_and_does_not_show_are_counted() {
        let read = harness_log("06d_nested_subagent.jsonl");
        assert_eq!((read.calls.len(), read.hidden_calls), (2, 2));
    }

    #[test]
    fn a_denied_call_is_a_call_that_was_denied() {
        let read = harness_log("09_denied.jsonl");
        let denied: Vec<_> = read.calls.iter().filter(|call| call.denied).map(|call| call.tool.as_str()).collect();
        assert_eq!(denied, ["Bash", "Write", "WebFetch", "WebSearch", "Write"]);
        assert_eq!((read.denials_without_call, read.web_calls()), (0, 2));
        assert!(read.calls.iter().filter(|call| call.denied).all(|call| call.failed()));
        let line = r#"{"type":"system","subtype":"permission_denied","tool_use_id":"t1","message":"\ud800"}"#;
        assert!(log(format!("{}\n{line}", call("t1", "Bash", "{}"))).calls[0].denied);
        assert_eq!(log(line).denials_without_call, 1);
    }

    #[test]
    fn a_lone_surrogate_in_text_hides_nothing_and_in_an_argument_stays_as_it_is() {
        let read = log([
            assistant(r#"{"type":"text","text":"a\ud800b"}"#),
            r#"{"type":"user","message":{"content":"a\udfffb"}}"#.to_owned(),
            r#"{"type":"system","subtype":"x","message":"\ud800"}"#.to_owned(),
            call("1", "Bash", r#"{"command":"echo \ud800"}"#),
            call("2", "Read", r#"{"file_path":"/ws/\ud800.md"}"#),
            r#"{"type":"result","result":"\udc00\nyes\ud800"}"#.to_owned(),
        ]
        .join("\n"));
        assert_eq!(read.malformed.count, 0);
        assert_eq!(arguments(&read), [("Bash", r#"{"command":"echo \ud800"}"#), ("Read", "/ws/\u{fffd}.md")]);
        assert_eq!(read.calls[0].command().unwrap(), "echo \u{fffd}");
        assert_eq!(read.result.unwrap().final_line.unwrap(), "yes\u{fffd}");
    }

    #[test]
    fn a_depth_of_100_000_ends_in_a_counted_line_or_a_whole_argument_and_never_in_a_crash() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let objects = format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        for value in [&deep, &objects] {
            let read = log([
                (*value).clone(),
                format!(r#"{{"type":"x","a":{value}}}"#),
                format!(r#"{{"type":"assistant","message":{{"content":{value}}}}}"#),
                format!(r#"{{"type":"system","subtype":"init","memory_paths":{value}}}"#),
                call("1", "Bash", &format!(r#"{{"command":"ls","x":{value}}}"#)),
            ]
            .join("\n"));
            let lines: Vec<_> = read.malformed.first.iter().map(|m| m.line).collect();
            assert_eq!(lines, [1, 3, 4]);
            assert_eq!(read.calls[0].command().unwrap(), "ls");
        }
    }

    #[test]
    fn a_key_that_is_read_and_stands_twice_makes_the_line_malformed() {
        for line in [
            r#"{"type":"assistant","type":"user","message":{"content":[]}}"#,
            r#"{"type":"system","type":"assistant","message":{"content":[]}}"#,
            r#"{"type":"assistant","message":{"content":[]},"message":{"content":[]}}"#,
            r#"{"type":"assistant","message":{"content":[],"content":[]}}"#,
            r#"{"type":"system","subtype":"init","subtype":"x"}"#,
            r#"{"type":"system","subtype":"init","skills":[],"skills":["a"]}"#,
            r#"{"type":"result","is_error":true,"is_error":false}"#,
            &assistant(r#"{"type":"text","type":"tool_use","id":"1","name":"Read","input":{}}"#),
            &assistant(r#"{"type":"tool_use","id":"1","name":"Read","name":"Edit","input":{}}"#),
            &call("1", "Read", r#"{"file_path":"a","\u0066ile_path":"b"}"#),
            &call("1", "Bash", r#"{"command":"a","command":"b"}"#),
        ] {
            let read = log(line);
            assert_eq!(malformed(&read), Some((1, Why::Shape)), "{line}");
            assert!(read.calls.is_empty() && read.could_hide_a_call().is_some(), "{line}");
        }
        assert_eq!(log(r#"{"type":"user","message":{"content":""},"x":1,"x":2}"#).malformed.count, 0);
    }

    #[test]
    fn a_number_beyond_64_bits_hides_nothing() {
        let long = "9".repeat(400);
        let read = log([
            call("1", "Bash", &format!(r#"{{"command":"ls","timeout":{long}}}"#)),
            format!(r#"{{"type":"assistant","message":{{"content":[],"usage":{{"input_tokens":{long}}}}}}}"#),
            format!(r#"{{"type":"result","num_turns":{long},"result_index":1e999,"total_cost_usd":{long}}}"#),
        ]
        .join("\n"));
        assert_eq!(read.malformed.count, 0);
        assert!(read.calls[0].argument.contains(&long));
        let result = read.result.unwrap();
        assert_eq!((result.turns, result.index, result.cost_usd), (None, None, Some(String::new())));
    }

    #[test]
    fn a_last_line_that_is_cut_off_is_counted_with_its_number() {
        let read = harness_log("11_truncated_last_line.jsonl");
        assert_eq!(read.malformed.first, [Malformed { line: 24, why: Why::CutOff, unterminated: true }]);
        let read = harness_log("11b_truncated_midway.jsonl");
        assert_eq!((malformed(&read), read.calls.len()), (Some((4, Why::CutOff)), 1));
        assert!(read.could_hide_a_call().unwrap().starts_with("line 4 "));
    }

    #[test]
    fn a_whole_last_line_needs_no_line_feed() {
        let line = call("1", "Bash", "{}");
        assert_eq!(log(&line), log(format!("{line}\n")));
    }

    #[test]
    fn a_blank_line_is_counted_and_any_other_that_is_no_json_could_hide_a_call() {
        let read = log(" \n\n\t\r\n");
        assert_eq!((read.lines, read.blank, read.could_hide_a_call()), (3, 3, None));
        let line = call("1", "Bash", "{}");
        for (bytes, why) in [
            (b"hello".as_slice(), Why::NotJson),
            (b"\0", Why::NotJson),
            (b"{\"type\":\"x\0\"}", Why::NotJson),
            (b"\xef\xbb\xbf{\"type\":\"x\"}", Why::NotJson),
            (b"{\"type\":\"x\",\"a\":\"\xff\"}", Why::NotUtf8),
            (b"{\"type\":\"x\"} {\"type\":\"y\"}", Why::NotJson),
            (b"{\"type\":\"x\"", Why::CutOff),
            (b"[\"assistant\",{}]", Why::Shape),
            (b"1", Why::Shape),
            (b"{}", Why::Shape),
            (b"{\"type\":1}", Why::Shape),
            (b"{\"type\":\"assistant\"}", Why::Shape),
            (b"{\"type\":\"assistant\",\"message\":[[],[]]}", Why::Shape),
            (b"{\"type\":\"user\",\"message\":{\"content\":{}}}", Why::Shape),
            (b"{\"type\":\"user\",\"message\":{\"content\":[[\"text\"]]}}", Why::Shape),
        ] {
            let mut stream = format!("{line}\n").into_bytes();
            stream.extend(bytes);
            stream.extend(b"\n");
            let read = log(stream);
            assert_eq!(malformed(&read), Some((2, why)), "{}", String::from_utf8_lossy(bytes));
            assert_eq!(read.calls.len(), 1);
        }
    }

    #[test]
    fn a_carriage_return_before_the_line_feed_changes_nothing() {
        let lines = [call("1", "Bash", "{}"), result("1", false)];
        assert_eq!(log(lines.join("\r\n")), log(lines.join("\n")));
    }

    #[test]
    fn a_line_over_the_limit_could_hide_a_call_and_the_next_is_read() {
        let text = format!("{}\n{}", "x".repeat(300), call("1", "Bash", "{}"));
        let read = read_with(text.as_bytes(), 200).unwrap();
        assert_eq!((malformed(&read), read.calls.len()), (Some((1, Why::TooLong)), 1));
    }

    #[test]
    fn a_call_without_identifier_name_or_input_is_malformed() {
        for block in [
            r#"{"type":"tool_use","name":"Read","input":{}}"#,
            r#"{"type":"tool_use","id":"1","input":{}}"#,
            r#"{"type":"tool_use","id":"1","name":"Read"}"#,
        ] {
            assert_eq!(malformed(&log(assistant(block))), Some((1, Why::Shape)), "{block}");
        }
        assert_eq!(malformed(&log(user(r#"{"type":"tool_result"}"#))), Some((1, Why::Shape)));
    }

    #[test]
    fn unknown_types_are_counted_by_type_and_their_names_are_bounded() {
        let read = log("{\"type\":\"a\"}\n{\"type\":\"a\"}\n{\"type\":\"b\"}");
        assert_eq!(read.unknown, BTreeMap::from([("a".to_owned(), 2), ("b".to_owned(), 1)]));
        let many = (0..100).map(|n| format!("{{\"type\":\"{n}{}\"}}", "é".repeat(200)));
        let many: Vec<_> = many.clone().chain(many.take(1)).collect();
        let read = log(many.join("\n"));
        assert_eq!((read.unknown.len(), read.unknown["other"]), (KEPT + 1, 84));
        assert_eq!(read.unknown.values().filter(|n| **n == 2).count(), 1);
        assert!(read.unknown.keys().all(|name| name.len() <= NAME_LIMIT));
    }

    #[test]
    fn partial_messages_make_no_call() {
        let event = r#"{"type":"stream_event","event":{"type":"content_block_start","content_block":{"type":"tool_use",
            "id":"t1","name":"Read","input":{}}}}"#
            .replace('\n', "");
        let read = log(event);
        assert_eq!((read.calls.len(), read.malformed.count, read.unknown.len()), (0, 0, 0));
    }

    #[test]
    fn the_result_that_counts_has_the_highest_index_or_is_the_last() {
        let line = |members: &str| format!(r#"{{"type":"result"{members}}}"#);
        let count = |lines: &[String]| log(lines.join("\n")).result.unwrap().line;
        assert_eq!(count(&[line(""), line("")]), 2);
        assert_eq!(count(&[line(r#","result_index":1"#), line(r#","result_index":0"#)]), 1);
        assert_eq!(count(&[line(r#","result_index":0"#), line(r#","result_index":1"#)]), 2);
        assert_eq!(count(&[line(r#","result_index":9"#), line("")]), 2);
        let read = log([line(r#","result_index":0"#), line(r#","result_index":0"#)].join("\n"));
        assert_eq!(read.contradictions.first, [Contradiction::ResultIndexTwice { line: 2 }]);
    }

    #[test]
    fn of_the_final_message_only_the_last_line_that_is_not_empty_is_kept() {
        let final_line =
            |text: &str| log(format!(r#"{{"type":"result","result":"{text}"}}"#)).result.unwrap().final_line;
        assert_eq!(final_line(r"I looked.\nyes \n\n \t\n").unwrap(), "yes");
        assert_eq!(final_line(r"a\r\nb\r\n").unwrap(), "b");
        assert_eq!(final_line(r" \n"), None);
        assert_eq!(final_line(&"yes ".repeat(20_000)).unwrap(), "");
        assert_eq!(log(r#"{"type":"result"}"#).result.unwrap().final_line, None);
    }

    #[test]
    fn hook_lines_are_counted_and_those_before_init_apart() {
        let read = harness_log("15_hooks.jsonl");
        assert_eq!((read.hook_lines, read.hook_lines_before_init), (8, 2));
        let read = harness_log("26_recommended_clean.jsonl");
        assert_eq!((read.hook_lines, read.hook_lines_before_init, read.tools), (0, 0, 8));
    }

    #[test]
    fn models_are_those_of_the_driven_conversation_in_order() {
        let line = |model: &str, parent: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"model":"{model}","content":[]}},"parent_tool_use_id":{parent}}}"#
            )
        };
        let read = log([
            line("b", "null"),
            line("c", r#""t1""#),
            line("<synthetic>", "null"),
            line("a", "null"),
            line("b", "null"),
        ]
        .join("\n"));
        assert_eq!(read.models.first, ["b", "a"]);
        assert_eq!(read.synthetic.count, 1);
    }

    #[test]
    fn a_provider_failure_is_noted_with_its_status_and_name() {
        let read = harness_log("10_provider_529.jsonl");
        let noted = Synthetic { line: 4, status: Some(529), error: Some("overloaded_error".into()), refusal: false };
        assert_eq!((read.synthetic.first, read.api_retries), (vec![noted], 2));
        assert!(harness_log("10c_refusal.jsonl").synthetic.first[0].refusal);
    }

    #[test]
    fn every_real_log_that_was_not_cut_is_read_whole() {
        let logs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/harness-logs");
        let mut seen = 0;
        for entry in std::fs::read_dir(logs).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.ends_with(".jsonl") || name.starts_with("11") {
                continue;
            }
            let read = log(std::fs::read(&path).unwrap());
            assert_eq!(read.could_hide_a_call(), None, "{name}");
            assert!(read.unknown.is_empty(), "{name}: {:?}", read.unknown);
            assert_eq!(read.denials_without_call, 0, "{name}");
            assert_eq!(read.hidden_calls > 0, name.starts_with("06d"), "{name}");
            seen += 1;
        }
        assert_eq!(seen, 33);
    }

    /// Lines that make no call and end nothing.
    fn noise() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(String::new()),
            Just(" \t\r".to_owned()),
            Just(r#"{"type":"keep_alive"}"#.to_owned()),
            Just(r#"{"type":"stream_event","event":{"content":[{"type":"tool_use","id":"0"}]}}"#.to_owned()),
            Just(r#"{"type":"system","subtype":"hook_started"}"#.to_owned()),
            Just(r#"{"type":"rate_limit_event"}"#.to_owned()),
            any::<String>().prop_map(|text| {
                assistant(&format!(r#"{{"type":"text","text":{}}}"#, serde_json::to_string(&text).unwrap()))
            }),
            any::<String>().prop_map(|text| {
                assistant(&format!(r#"{{"type":"thinking","thinking":{}}}"#, serde_json::to_string(&text).unwrap()))
            }),
        ]
    }

    /// A call and its result, the arguments any text.
    fn calls() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec((any::<String>(), any::<bool>()), 0..8).prop_map(|calls| {
            let one = |(n, (text, error)): (usize, (String, bool))| {
                let text = serde_json::to_string(&text).unwrap();
                let id = n.to_string();
                let (tool, key) = if n % 2 == 0 { ("Read", "file_path") } else { ("Bash", "command") };
                [call(&id, tool, &format!(r#"{{"{key}":{text}}}"#)), result(&id, error)]
            };
            calls.into_iter().enumerate().flat_map(one).collect()
        })
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let read = log(&bytes);
            prop_assert!(read.calls.is_empty());
            prop_assert_eq!(read.malformed.count > 0, read.could_hide_a_call().is_some());
        }

        #[test]
        fn a_line_with_any_byte_changed_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut line = call("1", "Read", r#"{"file_path":"a\ud83d\ude00"}"#).into_bytes();
            let at = at.index(line.len());
            line[at] = byte;
            let read = log(&line);
            prop_assert!(read.calls.len() <= 1);
        }

        #[test]
        fn any_json_on_any_line_never_panics(text in r#"[{}\[\]",:a-e0-9\\ ]{0,60}"#) {
            log(format!("{{\"type\":\"assistant\",\"message\":{text}}}\n{{\"type\":\"result\",\"result\":{text}}}"));
        }

        #[test]
        fn the_size_of_the_pieces_that_are_read_changes_nothing(lines in calls(), buffer in 1usize..100) {
            let text = lines.join("\n");
            let pieces = read(BufReader::with_capacity(buffer, text.as_bytes())).unwrap();
            prop_assert_eq!(pieces, log(&text));
        }

        #[test]
        fn noise_between_the_lines_changes_no_call(
            lines in calls(),
            noise in prop::collection::vec((any::<prop::sample::Index>(), noise()), 0..8),
        ) {
            let quiet = log(lines.join("\n"));
            prop_assert_eq!(quiet.calls.len(), lines.len() / 2);
            let mut loud = lines;
            for (at, line) in noise {
                loud.insert(at.index(loud.len() + 1), line);
            }
            let loud = log(loud.join("\n"));
            prop_assert_eq!(loud.could_hide_a_call(), None);
            prop_assert_eq!(loud.calls, quiet.calls);
        }

        #[test]
        fn a_path_is_read_back_as_it_was_written(path in any::<String>()) {
            let input = format!(r#"{{"file_path":{}}}"#, serde_json::to_string(&path).unwrap());
            let read = log(call("1", "Read", &input));
            prop_assert_eq!(read.calls[0].path(), Some(path.as_str()));
        }
    }
}
