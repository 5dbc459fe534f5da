//! Whole sessions, in this process: what they write, held to the real logs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::*;

/// A command line as a recorder passes it.
const ARGUMENTS: &[&str] = &[
    "-p",
    "--output-format",
    "stream-json",
    "--verbose",
    "--model",
    "claude-haiku-4-5",
    "--permission-mode",
    "dontAsk",
    "--allowedTools",
    "Bash,Edit,Glob,Grep,NotebookEdit,Read,Write",
    "--disallowedTools",
    "WebSearch,WebFetch",
];

struct Played {
    lines: Vec<Value>,
    status: Option<u8>,
    directory: tempfile::TempDir,
}

impl Played {
    fn of_type(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == kind).collect()
    }

    fn result(&self) -> &Value {
        self.of_type("result").pop().expect("a result line")
    }

    /// Every tool_use block: its name, its depth-first position and its parent.
    fn calls(&self) -> Vec<(String, bool)> {
        let blocks = self.of_type("assistant").into_iter().map(|line| (&line["message"]["content"][0], line));
        blocks
            .filter(|(block, _)| block["type"] == "tool_use")
            .map(|(block, line)| (block["name"].as_str().unwrap().to_owned(), line["parent_tool_use_id"].is_string()))
            .collect()
    }
}

fn played(script: Value, more: &[&str]) -> Played {
    played_with(script, more, Prompt { text: "What is it?".into(), typed: true })
}

fn played_with(script: Value, more: &[&str], prompt: Prompt) -> Played {
    played_over(&[], script, more, prompt)
}

fn played_over(files: &[(&str, &str)], script: Value, more: &[&str], prompt: Prompt) -> Played {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().join("ws");
    std::fs::create_dir_all(workspace.join("docs")).unwrap();
    std::fs::write(workspace.join("docs/a.md"), "# Alpha\nThe pump runs at 40 Hz.\n").unwrap();
    for (path, text) in files {
        let path = workspace.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let around =
        Surroundings { workspace, config: directory.path().join("cfg"), auto_memory: true, has_api_key: false };
    let flags = Flags::parse(&ARGUMENTS.iter().chain(more).map(OsString::from).collect::<Vec<_>>()).unwrap();
    let placeholders = Placeholders { prompt: prompt.as_the_model_sees_it(&flags, &around), ..Default::default() };
    let script = Script::parse(script.to_string().as_bytes(), &placeholders).unwrap();
    let mut out = Vec::new();
    let status = Session::new(&script, &flags, &around, &mut out).play(prompt.local_command(&flags)).ok();
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_slice(line).unwrap_or(Value::Null)).collect();
    Played { lines, status, directory }
}

/// The members of an object and of those in it, as paths. Arrays are entered; what a tool answers is left alone.
fn members(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{path}.{key}");
                into.insert(path.clone());
                if !["input", "modelUsage", "model_usage_since_last_result", "structuredPatch"].contains(&key.as_str())
                {
                    members(value, &path, into);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| members(item, path, into)),
        _ => {}
    }
}

fn shape(line: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    members(line, "", &mut found);
    found
}

/// The shapes of a log's assistant, user and result lines, by what each is about.
fn shapes(lines: &[Value]) -> BTreeMap<String, BTreeSet<String>> {
    let mut tools = BTreeMap::new();
    let mut shapes = BTreeMap::new();
    for line in lines {
        let block = &line["message"]["content"][0];
        let about = match (line["type"].as_str(), block["type"].as_str()) {
            (Some("assistant"), Some("tool_use")) => {
                tools.insert(block["id"].to_string(), block["name"].as_str().unwrap().to_owned());
                "assistant tool_use".to_owned()
            }
            (Some("assistant"), Some(kind)) => format!("assistant {kind}"),
            (Some("user"), Some("tool_result")) => {
                let is_error = block["is_error"] == true;
                let is_tried = line.get("tool_result_meta").is_some();
                let kind = if is_error { "error" } else { &tools[&block["tool_use_id"].to_string()] };
                format!("user {kind} {is_tried}")
            }
            (Some("result"), _) => format!("result {}", line["subtype"]),
            _ => continue,
        };
        shapes.insert(about, shape(line));
    }
    shapes
}

fn real_log(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/harness-logs").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn calls(tool: &str, input: Value) -> Value {
    json!({"calls": [{"tool": tool, "input": input}]})
}

#[test]
fn every_line_has_the_members_of_the_real_one() {
    let script = json!({"model": "claude-haiku-4-5-20251001", "turns": [
        {"text": "Let me look."},
        calls("Glob", json!({"pattern": "**/*.md"})),
        calls("Grep", json!({"pattern": "pump"})),
        calls("Read", json!({"file_path": "docs/a.md"})),
        calls("Read", json!({"file_path": "missing.md"})),
        calls("Edit", json!({"file_path": "docs/a.md", "old_string": "40", "new_string": "41"})),
        calls("Edit", json!({"file_path": "docs/a.md", "old_string": "none", "new_string": "41"})),
        calls("Write", json!({"file_path": "new.md", "content": "new"})),
        calls("Bash", json!({"command": "echo out"})),
        {"text": "yes"},
    ]});
    let ours = shapes(&played(script, &[]).lines);
    let mut real = BTreeMap::new();
    for log in ["02_multi_tool_read.jsonl", "03_edits.jsonl", "04_bash.jsonl"] {
        // A long or a background command adds members of its own.
        real.extend(shapes(&real_log(log).into_iter().filter(is_plain).collect::<Vec<_>>()));
    }
    for about in ours.keys() {
        assert_eq!(ours[about], real[about], "{about}");
    }
    let expected = [
        "assistant text",
        "assistant tool_use",
        "result \"success\"",
        "user Bash true",
        "user Edit true",
        "user Glob true",
        "user Grep true",
        "user Read true",
        "user Write true",
        "user error false",
        "user error true",
    ];
    assert_eq!(ours.keys().map(String::as_str).collect::<Vec<_>>(), expected);
}

fn is_plain(line: &Value) -> bool {
    let result = &line["tool_use_result"];
    let is_other_mode = result["mode"].is_string() && result["mode"] != "files_with_matches";
    let is_special = ["persistedOutputPath", "backgroundTaskId"].iter().any(|key| result.get(key).is_some());
    let is_notebook = result["type"] == "notebook";
    // The patch of a change to a file is not made up here.
    !is_other_mode && !is_special && !is_notebook
}

#[test]
fn the_init_line_states_what_the_options_ask_for() {
    let played = played(json!({"turns": [{"text": "yes"}]}), &["--setting-sources", "project,local"]);
    let init = &played.lines[0];
    let real = &real_log("01_plain_answer.jsonl")[0];
    let (ours, theirs) = (shape(init), shape(real));
    let missing: Vec<_> = theirs.difference(&ours).collect();
    assert_eq!(missing, [".messaging_socket_path"], "there is no such socket");
    assert_eq!(ours.difference(&theirs).count(), 0);
    assert_eq!((&init["subtype"], &init["permissionMode"]), (&json!("init"), &json!("dontAsk")));
    assert_eq!(init["model"], "claude-haiku-4-5");
    assert!(init["tools"].as_array().unwrap().contains(&json!("Grep")));
    assert!(!init["tools"].as_array().unwrap().contains(&json!("WebFetch")));
    assert!(init["memory_paths"]["auto"].as_str().unwrap().ends_with("/memory/"));
}

#[test]
fn calls_are_performed_and_their_results_told() {
    let played = played(
        json!({"turns": [calls("Write", json!({"file_path": "x.md", "content": "{prompt}"})), {"text": "done\nyes"}]}),
        &[],
    );
    assert_eq!(std::fs::read_to_string(played.directory.path().join("ws/x.md")).unwrap(), "What is it?");
    assert_eq!(played.calls(), [("Write".to_owned(), false)]);
    let result = played.result();
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("done\nyes"), &json!(2)));
    assert_eq!((&result["is_error"], played.status), (&json!(false), Some(0)));
    assert_eq!(result["total_cost_usd"], 0.003);
}

#[test]
fn the_turn_cap_ends_a_session_as_the_real_one_does() {
    let read = calls("Read", json!({"file_path": "docs/a.md"}));
    let script = json!({"turns": [read, read, read, {"text": "end"}]});
    let capped = played(script.clone(), &["--max-turns", "2"]);
    let real = real_log("08_max_turns.jsonl");
    assert_eq!(shape(capped.result()), shape(real.last().unwrap()));
    for key in ["subtype", "is_error", "num_turns", "stop_reason", "terminal_reason", "errors"] {
        assert_eq!(capped.result()[key], real.last().unwrap()[key], "{key}");
    }
    assert_eq!((capped.calls().len(), capped.status), (2, Some(1)));
    let free = played(script, &["--max-turns", "0"]);
    assert_eq!((free.calls().len(), free.status), (3, Some(0)), "0 is no limit");
}

#[test]
fn a_denied_web_tool_is_told_as_the_real_one_tells_it() {
    let script = json!({"turns": [calls("WebSearch", json!({"query": "pump"})), {"text": "yes"}]});
    let gone = played(script.clone(), &[]);
    let text = gone.of_type("user")[0]["message"]["content"][0]["content"].as_str().unwrap();
    assert_eq!(
        text,
        "<tool_use_error>Error: No such tool available: WebSearch. WebSearch is disabled for this session, in \
         subagents as well as here.</tool_use_error>"
    );
    assert_eq!(gone.result()["permission_denials"], json!([]));

    let denied = played(json!({"turns": [calls("SendMessage", json!({"to": "x"})), {"text": "yes"}]}), &[]);
    let line = denied.of_type("system")[1];
    let real = real_log("09_denied.jsonl");
    let real = real.iter().find(|line| line["subtype"] == "permission_denied").unwrap();
    assert_eq!(shape(line), shape(real));
    assert_eq!(denied.result()["permission_denials"][0]["tool_name"], "SendMessage");
    assert_eq!(denied.status, Some(0));
}

#[test]
fn the_calls_of_every_sub_agent_are_told_where_the_option_asks_for_them() {
    let read = calls("Read", json!({"file_path": "docs/a.md"}));
    let inner = json!({"calls": [{"tool": "Agent", "input": {"prompt": "inner"}, "agent": [{"text": "t"}, read]}]});
    let script = json!({"turns": [
        {"calls": [{"tool": "Agent", "input": {"prompt": "outer", "description": "d"}, "agent": [inner, {"text": "o"}]}]},
        {"text": "yes"},
    ]});
    let forwarded = played(script.clone(), &["--forward-subagent-text"]);
    let named = |played: &Played| played.calls().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(named(&forwarded), ["Agent", "Agent", "Read"]);
    let hidden = played(script, &[]);
    assert_eq!(named(&hidden), ["Agent", "Agent"], "without it the calls of the second level are not in the stream");
    let lines = forwarded.of_type("assistant");
    let own = lines.iter().find(|line| line["message"]["content"][0]["name"] == "Read").unwrap();
    let parent = lines.iter().filter(|line| line["message"]["content"][0]["name"] == "Agent").nth(1).unwrap();
    assert_eq!(own["parent_tool_use_id"], parent["message"]["content"][0]["id"]);
    let real = real_log("06e_nested_subagent_forward.jsonl");
    let real = real.iter().find(|line| line["message"]["content"][0]["name"] == "Read").unwrap();
    assert_eq!(shape(own), shape(real));
}

#[test]
fn a_provider_failure_has_the_shape_of_the_real_one() {
    let ended = played(json!({"turns": [{"failure": {"status": 529, "retries": 2}}, {"text": "never"}]}), &[]);
    let real = real_log("10_provider_529.jsonl");
    let shapes = |lines: &[Value]| -> Vec<BTreeSet<String>> { lines.iter().skip(1).map(shape).collect() };
    assert_eq!(shapes(&ended.lines), shapes(&real));
    assert_eq!(ended.status, Some(1));
    for key in ["subtype", "is_error", "terminal_reason", "stop_reason", "api_error_status"] {
        assert_eq!(ended.result()[key], real.last().unwrap()[key], "{key}");
    }
    let survived = played(json!({"turns": [{"failure": {"status": 529, "ends": false}}, {"text": "yes"}]}), &[]);
    assert_eq!((survived.status, &survived.result()["is_error"]), (Some(0), &json!(false)));
    assert_eq!(survived.of_type("assistant")[0]["message"]["model"], "<synthetic>");
    let retried = played(json!({"turns": [{"retry": 500}, {"text": "yes"}]}), &[]);
    assert_eq!(retried.of_type("system")[1]["subtype"], "api_retry");
}

#[test]
fn the_init_line_lies_only_where_the_script_says_so() {
    let script = |misbehave: Value| json!({"turns": [{"text": "yes"}], "misbehave": misbehave});
    let forged = played(
        script(json!({
            "init_set": {"permissionMode": "bypassPermissions", "memory_paths": {"auto": "/home/u/memory/"}},
            "init_add": {"skills": ["plug:skill"], "plugins": [{"name": "p", "path": "/home/u/p"}], "extra": [1]},
            "before_init": [{"type": "system", "subtype": "hook_started"}, "no json"],
        })),
        &[],
    );
    assert_eq!(forged.lines[0]["subtype"], "hook_started");
    assert_eq!(forged.lines[1], Value::Null);
    let init = &forged.lines[2];
    assert_eq!(init["permissionMode"], "bypassPermissions");
    assert_eq!(init["memory_paths"]["auto"], "/home/u/memory/");
    assert!(init["skills"].as_array().unwrap().contains(&json!("plug:skill")));
    assert_eq!(init["plugins"][3]["path"], "/home/u/p");
    let silent = played(script(json!({"no_init": true})), &[]);
    assert_eq!(silent.lines[0]["type"], "assistant");
}

#[test]
fn the_stream_ends_where_the_script_cuts_it() {
    let script = |misbehave: Value| json!({"turns": [{"text": "yes"}], "misbehave": misbehave});
    let cut = played(script(json!({"cut_in_line": {"line": 2, "bytes": 10}})), &[]);
    assert_eq!((cut.lines.len(), &cut.lines[1], cut.status), (2, &Value::Null, None));
    let endless = played(script(json!({"no_result": true})), &[]);
    assert!(endless.of_type("result").is_empty());
    let twice = played(script(json!({"extra_results": 1})), &[]);
    assert_eq!(twice.of_type("result")[1]["result_index"], 1);
    let flooded = played(script(json!({"flood_bytes": 200_000})), &[]);
    assert_eq!(flooded.of_type("system").len(), 5);
}

#[test]
fn a_message_may_hold_several_blocks_and_results_may_come_in_reverse() {
    let script = json!({"turns": [
        {"thinking": "hm"}, {"text": "a", "repeat": 3},
        {"calls": [{"tool": "Bash", "input": {"command": "echo 1"}}, {"tool": "Bash", "input": {"command": "echo 2"}}],
         "reverse_results": true},
        {"text": "b", "model": "other-20260101"}, {"text": "c"},
    ]});
    let played = played(script, &[]);
    let messages: BTreeSet<_> = played.of_type("assistant").iter().map(|l| l["message"]["id"].to_string()).collect();
    assert_eq!((played.of_type("assistant").len(), messages.len()), (6, 2));
    let told: Vec<_> = played.of_type("user").iter().map(|l| l["message"]["content"][0]["content"].clone()).collect();
    assert_eq!(told, ["2", "1"]);
    assert_eq!(played.of_type("assistant")[4]["message"]["model"], "other-20260101");
    assert_eq!(played.result()["result"], "c");
}

#[test]
fn a_typed_slash_command_never_reaches_the_model_and_a_composed_one_does() {
    let script = json!({"turns": [{"text": "{prompt}"}]});
    let typed = |text: &str| Prompt { text: text.into(), typed: true };
    let taken = played_with(script.clone(), &[], typed("/compact now"));
    assert!(taken.of_type("assistant").is_empty());
    assert_eq!((&taken.result()["num_turns"], &taken.result()["local_command"]), (&json!(0), &json!("compact")));
    let message = json!({"type": "user", "message": {"role": "user", "content": "/compact now"},
        "text_not_typed": true});
    let composed = Prompt::of_message(&format!("\n{message}\n")).unwrap();
    assert_eq!(played_with(script.clone(), &[], composed).result()["result"], "/compact now");
    assert_eq!(played_with(script, &[], typed("/etc is a directory")).result()["result"], "/etc is a directory");
    assert!(Prompt::of_message("no json").is_err());
    assert!(Prompt::of_message("").is_err());
}

#[test]
fn the_cost_is_written_as_the_script_has_it() {
    let mut out = Vec::new();
    let script = br#"{"turns": [{"text": "yes"}], "cost_usd": "0.10000000000000000001", "usage": {"input_tokens": 7}}"#;
    let script = Script::parse(script, &Placeholders::default()).unwrap();
    let flags = Flags::parse(&ARGUMENTS.iter().map(OsString::from).collect::<Vec<_>>()).unwrap();
    Session::new(&script, &flags, &Surroundings::default(), &mut out).play(None).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains(r#""total_cost_usd":0.10000000000000000001,"#));
    assert!(text.contains(r#""input_tokens":7"#));
}

#[test]
fn the_command_line_takes_the_script_and_then_whatever_the_harness_is_given() {
    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }
    let cli = <Cli as clap::Parser>::try_parse_from(["x", "s.json", "-p", "--model", "m", "--allowedTools", "Read"]);
    let args = cli.unwrap().args;
    assert_eq!(args.script, Path::new("s.json"));
    assert_eq!(args.harness, ["-p", "--model", "m", "--allowedTools", "Read"]);
}

#[test]
fn the_hooks_of_the_workspace_run_and_are_told_as_the_real_ones_are() {
    let settings = json!({"hooks": {
        "SessionStart": [{"hooks": [{"type": "command", "command": "echo start"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo blocked >&2; exit 2"}]}],
        "PostToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "echo post"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "true"}]}],
    }});
    let script = json!({"turns": [
        calls("Bash", json!({"command": "touch x"})), calls("Read", json!({"file_path": "docs/a.md"})), {"text": "ok"},
    ]});
    let files = [(".claude/settings.json", &*settings.to_string())];
    let prompt = || Prompt { text: "q".into(), typed: true };
    let kinds = |lines: &[Value]| -> Vec<String> {
        lines.iter().map(|line| format!("{} {} {}", line["type"], line["subtype"], line["hook_name"])).collect()
    };
    for (option, log) in [(Some("--include-hook-events"), "15_hooks.jsonl"), (None, "15b_hooks_default.jsonl")] {
        let options: Vec<&str> = option.into_iter().collect();
        let ours = played_over(&files, script.clone(), &options, prompt());
        let real = real_log(log);
        assert_eq!(kinds(&ours.lines), kinds(&real), "{log}");
        for (ours, real) in ours.lines.iter().zip(&real).filter(|(_, real)| real["hook_name"].is_string()) {
            assert_eq!(shape(ours), shape(real));
        }
        assert_eq!(ours.result()["permission_denials"][0]["tool_name"], "Bash");
        assert!(!ours.directory.path().join("ws/x").exists(), "a call that a hook stops is not performed");
    }
    let without = played_over(&files, script, &["--setting-sources", "user"], prompt());
    assert_eq!(without.lines[0]["subtype"], "init");
}

#[test]
fn the_documented_ways_to_misbehave_are_those_that_exist() {
    let bad = Script::parse(br#"{"turns": [], "misbehave": {"?": 1}}"#, &Placeholders::default()).unwrap_err();
    let existing: BTreeSet<&str> = bad.split('`').skip(3).step_by(2).collect();
    let page = include_str!("../../../../docs/scripted-harness.md");
    let table = page.split("## What can go wrong").nth(1).unwrap().split("\n## ").next().unwrap();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let documented: BTreeSet<&str> =
        cells.flat_map(|cell| cell.split("`, `")).map(|key| key.trim_matches('`')).collect();
    assert_eq!(documented, existing);
}

#[test]
fn the_scripts_of_the_repository_are_scripts() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/scripts");
    let paths: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    let scripts: Vec<_> = paths.iter().filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    assert!(scripts.len() >= 5);
    for path in scripts {
        Script::parse(&std::fs::read(path).unwrap(), &Placeholders::default()).unwrap();
    }
}
