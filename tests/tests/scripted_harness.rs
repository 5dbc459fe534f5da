//! The scripted harness as a process: how it ends, and what it leaves behind.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use headwater_tests::bins::bin;
use headwater_tests::user::User;
use serde_json::{Value, json};

const ARGUMENTS: &[&str] = &["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "dontAsk"];

fn harness(user: &User, script: &str) -> Result<Command> {
    let script = user.file("script.json", script)?;
    let mut command = user.command(bin(user, "headwater-recorder")?);
    command.arg("scripted-harness").arg(script).args(ARGUMENTS);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

fn started(user: &User, script: &str, prompt: &str) -> Result<Child> {
    let mut child = harness(user, script)?.spawn()?;
    let mut input = child.stdin.take().context("standard input")?;
    // A harness that ends at once reads nothing, and the write may fail.
    let _ = input.write_all(prompt.as_bytes());
    Ok(child)
}

fn ended(script: &Value) -> Result<Output> {
    ended_with(&script.to_string(), "What is it?")
}

fn ended_with(script: &str, prompt: &str) -> Result<Output> {
    let user = User::new()?;
    Ok(started(&user, script, prompt)?.wait_with_output()?)
}

fn with(misbehave: Value) -> Value {
    json!({"turns": [{"text": "{prompt}"}], "misbehave": misbehave})
}

fn lines(output: &Output) -> Vec<Value> {
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap_or(Value::Null)).collect()
}

#[test]
fn a_session_ends_with_its_result_and_0() {
    let output = ended(&with(json!({}))).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = lines(&output);
    assert_eq!(lines[0]["subtype"], "init");
    assert_eq!(lines[2]["result"], "What is it?");
}

#[test]
fn a_prompt_that_starts_with_a_dash_arrives_and_an_empty_one_is_refused() {
    let script = with(json!({})).to_string();
    let output = ended_with(&script, "--help\n- and more\n").unwrap();
    assert_eq!(lines(&output)[2]["result"], "--help\n- and more\n");
    let output = ended_with(&script, "").unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
}

#[test]
fn a_bad_script_is_64_and_says_where_it_is_bad() {
    let output = ended_with(r#"{"turns": [{"text": 1}]}"#, "q").unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(64), 0));
    assert!(errors.contains("script.json: turn 1: ") && errors.contains("remedy: "), "{errors}");
}

#[test]
fn it_ends_as_the_script_says() {
    assert_eq!(ended(&with(json!({"end": {"exit": 3}}))).unwrap().status.code(), Some(3));
    assert_eq!(ended(&with(json!({"end": {"signal": 9}}))).unwrap().status.signal(), Some(9));
    assert_eq!(ended(&with(json!({"end": {"signal": 15}}))).unwrap().status.signal(), Some(15));
    let output = ended(&with(json!({"exit_at_once": true, "end": {"exit": 5}}))).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(5), 0));
    let output = ended(&with(json!({"cut_after_bytes": 40, "end": {"signal": 6}}))).unwrap();
    assert_eq!((output.status.signal(), output.stdout.len()), (Some(6), 40));
}

#[test]
fn standard_error_is_noisy_on_request() {
    let output = ended(&with(json!({"stderr": {"text": "noise", "repeat": 1000}}))).unwrap();
    assert_eq!(output.stderr, "noise\n".repeat(1000).into_bytes());
    assert_eq!(lines(&output).len(), 3);
}

#[test]
fn a_child_stays_and_holds_the_stream() {
    let user = User::new().unwrap();
    let script = with(json!({"leave_child": "sleep 2; echo late"})).to_string();
    let mut child = started(&user, &script, "q").unwrap();
    let mut stream = child.stdout.take().unwrap();
    let start = Instant::now();
    assert!(child.wait().unwrap().success());
    assert!(start.elapsed() < Duration::from_secs(1), "the harness itself does not wait for it");
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(start.elapsed() > Duration::from_secs(1));
    assert!(text.ends_with("late\n"));
}

#[test]
fn it_falls_silent_or_stays_after_its_result_and_is_still_there() {
    for (misbehave, last) in [(json!({"silent_after_lines": 1}), "system"), (json!({"stay_ms": 60_000}), "result")] {
        let user = User::new().unwrap();
        let mut child = started(&user, &with(misbehave).to_string(), "q").unwrap();
        let stream = BufReader::new(child.stdout.take().unwrap());
        let kinds = stream.lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["type"].clone());
        assert!(kinds.take_while(|kind| kind != last).count() < 3);
        std::thread::sleep(Duration::from_millis(200));
        assert!(child.try_wait().unwrap().is_none(), "{last}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
