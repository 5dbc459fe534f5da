//! The pinned harness itself, in a namespace with loopback only, against the scripted provider.
//!
//! These are the facts about it that the recorder relies on. A move of the pin moves only with them.

use std::fs::File;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use headwater_tests::offline::{Offline, PROVIDER};
use headwater_tests::real::{self, Pin};
use headwater_tests::user::User;
use serde_json::{Value, json};

const ARGUMENTS: &[&str] = &[
    "-p",
    "--output-format",
    "stream-json",
    "--verbose",
    "--model",
    "claude-haiku-4-5",
    "--max-turns",
    "30",
    "--permission-mode",
    "dontAsk",
    "--setting-sources",
    "project,local",
    "--strict-mcp-config",
    "--forward-subagent-text",
    "--include-hook-events",
    "--no-session-persistence",
    "--allowedTools",
    "Agent,Bash,Edit,Glob,Grep,NotebookEdit,Read,Skill,Task,Write",
    "--disallowedTools",
    "WebSearch,WebFetch",
];

/// A prompt that is carried as data: no slash command in it runs and no file that it mentions is read.
fn message(prompt: &str) -> String {
    format!("{}\n", json!({"type": "user", "message": {"role": "user", "content": prompt}, "text_not_typed": true}))
}

struct Ran {
    lines: Vec<Value>,
    status: Option<i32>,
    requests: Vec<Value>,
    bodies: Vec<Value>,
}

impl Ran {
    fn of(&self, kind: &str) -> Vec<&Value> {
        self.lines.iter().filter(|line| line["type"] == kind).collect()
    }

    fn inits(&self) -> Vec<&Value> {
        self.of("system").into_iter().filter(|line| line["subtype"] == "init").collect()
    }
}

/// Runs the harness once; `None` where it cannot be had.
fn ran(script: &Value, prompt: &str, token_in_a_file: bool) -> Result<Option<Ran>> {
    let user = User::new()?;
    let Some(harness) = real::harness(&user)? else { return Ok(None) };
    let workspace = user.directory("ws")?;
    let config = user.directory("config")?;
    user.file("ws/a.md", "# Alpha\nThe pump runs at 40 Hz.\n")?;
    let input = user.file("prompt", message(prompt))?;
    let offline = Offline::with_provider(&user, script)?;
    let mut command = user.command(harness);
    command.args(ARGUMENTS).args(["--input-format", "stream-json"]).current_dir(workspace);
    command.env("HOME", &config).env("CLAUDE_CONFIG_DIR", &config).env("ANTHROPIC_BASE_URL", PROVIDER);
    // Its scratch directory goes with the home; in a recording `/tmp` is private anyway.
    command.env("CLAUDE_CODE_TMPDIR", &config);
    for name in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
        "DISABLE_AUTOUPDATER",
    ] {
        command.env(name, "1");
    }
    if token_in_a_file {
        let credentials = json!({"claudeAiOauth": {
            "accessToken": "invented-in-a-file", "expiresAt": 4_102_444_800_000_u64, "scopes": ["user:inference"],
        }});
        user.file("config/.credentials.json", credentials.to_string())?;
    } else {
        command.env("CLAUDE_CODE_OAUTH_TOKEN", "invented-token");
    }
    let mut command = offline.command(&command);
    let output = command.stdin(Stdio::from(File::open(input)?)).output()?;
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines =
        lines.map(|line| serde_json::from_slice(line).context("a line of the harness")).collect::<Result<_>>()?;
    Ok(Some(Ran { lines, status: output.status.code(), requests: offline.requests()?, bodies: offline.bodies()? }))
}

/// The text blocks of the user's messages in the first request.
fn texts(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages
        .flat_map(|message| message["content"].as_array().into_iter().flatten())
        .filter_map(|b| b["text"].as_str())
        .collect()
}

#[test]
fn the_init_line_names_the_pinned_version() {
    let script = json!({"main": [
        {"blocks": [{"tool": "Read", "input": {"file_path": "a.md"}}]},
        {"blocks": [{"text": "It is 40 Hz.\nyes"}]},
    ]});
    let Some(ran) = ran(&script, "How fast is the pump?", false).unwrap() else { return };
    assert_eq!(ran.status, Some(0));
    assert_eq!(ran.inits()[0]["claude_code_version"], Pin::read().unwrap().version.as_str());
    assert_eq!(ran.inits()[0]["permissionMode"], "dontAsk");
    assert_eq!(ran.of("result")[0]["result"], "It is 40 Hz.\nyes");
    assert_eq!(ran.of("user")[0]["message"]["content"][0]["content"], "1\t# Alpha\n2\tThe pump runs at 40 Hz.\n3\t");
    assert!(ran.requests.iter().all(|request| request["auth"] == "Bearer invented-tok"), "{:?}", ran.requests);
}

#[test]
fn a_prompt_that_looks_like_a_command_reaches_the_model_unchanged() {
    let script = json!({"main": [{"blocks": [{"text": "yes"}]}]});
    for prompt in ["/compact the log", "/init", "- see @a.md\n\n", "--help"] {
        let Some(ran) = ran(&script, prompt, false).unwrap() else { return };
        assert_eq!(ran.of("result")[0]["num_turns"], 1, "{prompt}");
        let sent = texts(&ran.bodies[0]);
        assert_eq!(sent.last(), Some(&prompt));
        assert!(!sent.iter().any(|text| text.contains("40 Hz")), "{prompt}: a file was read behind the stream's back");
    }
}

#[test]
fn a_credentials_file_without_a_refresh_token_is_enough() {
    let script = json!({"main": [{"blocks": [{"text": "yes"}]}]});
    let Some(ran) = ran(&script, "Is it?", true).unwrap() else { return };
    assert_eq!(ran.status, Some(0));
    assert_eq!(ran.requests[0]["auth"], "Bearer invented-in-");
}

#[test]
fn with_background_tasks_off_a_sub_agent_gives_one_init_line_one_result_and_all_its_calls() {
    let agent = |prompt: &str| json!({"tool": "Agent", "input": {"description": "d", "prompt": prompt}});
    let script = json!({
        "main": [{"blocks": [agent("OUTER")]}, {"blocks": [{"text": "yes"}]}],
        "agents": [
            {"match": "INNER", "turns": [
                {"blocks": [{"tool": "Read", "input": {"file_path": "a.md"}}]}, {"blocks": [{"text": "inner"}]}]},
            {"match": "OUTER", "turns": [{"blocks": [agent("INNER")]}, {"blocks": [{"text": "outer"}]}]},
        ],
    });
    let Some(ran) = ran(&script, "Ask somebody.", false).unwrap() else { return };
    assert_eq!((ran.inits().len(), ran.of("result").len()), (1, 1));
    let blocks = ran.of("assistant").into_iter().map(|line| &line["message"]["content"][0]);
    let names: Vec<&str> = blocks.filter_map(|block| block["name"].as_str()).collect();
    assert_eq!(names, ["Agent", "Agent", "Read"]);
}

#[test]
fn a_denied_web_tool_is_an_error_result_and_the_session_goes_on() {
    let script = json!({"main": [
        {"blocks": [{"tool": "WebSearch", "input": {"query": "pump"}}]}, {"blocks": [{"text": "yes"}]},
    ]});
    let Some(ran) = ran(&script, "Look it up.", false).unwrap() else { return };
    let block = &ran.of("user")[0]["message"]["content"][0];
    assert_eq!(block["is_error"], true);
    assert!(block["content"].as_str().unwrap().contains("No such tool available: WebSearch"));
    assert_eq!(ran.of("result")[0]["subtype"], "success");
}
