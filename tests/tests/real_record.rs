//! Whole recordings with the pinned harness itself: `headwater-recorder record` as an ordinary user, in a network
//! namespace with loopback only, against the scripted provider and with invented credentials.
//!
//! Every transcript that comes of it is confirmed by intake and put on its shelf, where no rule reports anything.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use headwater_contract::digest::Digest;
use headwater_contract::transcript::{self, Answer, Call, Event, Transcript};
use headwater_tests::bins::bin;
use headwater_tests::closure;
use headwater_tests::corpus::{commit, corpus};
use headwater_tests::offline::{Offline, PROVIDER};
use headwater_tests::real;
use headwater_tests::user::User;
use serde_json::{Value, json};

const MODEL: &str = "claude-haiku-4-5";
const SERVED: &str = "claude-haiku-4-5-20251001";

/// An account on a host: its home with a corpus, credentials, and a directory for temporary files.
struct Host {
    user: User,
    harness: PathBuf,
    corpus: PathBuf,
    /// The access token, which nothing else on this machine holds.
    token: String,
}

/// What a recording left.
struct Ran {
    output: Output,
    /// Where the transcript is, or would be.
    out: PathBuf,
    raw: PathBuf,
    requests: Vec<Value>,
    bodies: Vec<Value>,
}

impl Host {
    /// A host with the sample corpus; `None` where the harness cannot be had.
    fn new() -> Result<Option<Self>> {
        let user = User::new()?;
        let Some(harness) = real::harness(&user)? else { return Ok(None) };
        let corpus = corpus(&user, "watermeter")?;
        user.directory("tmp")?;
        let name = user.home().file_name().unwrap_or_default().to_string_lossy().replace("headwater-test-", "");
        let host = Self { harness, corpus, token: format!("sk-ant-oat01-invented-{name}-0123456789"), user };
        host.credentials(SystemTime::now() + Duration::from_secs(8 * 3600))?;
        Ok(Some(host))
    }

    /// Writes the account's credentials, whose access token expires at a time.
    fn credentials(&self, expires: SystemTime) -> Result<PathBuf> {
        let expires = u64::try_from(expires.duration_since(UNIX_EPOCH)?.as_millis())?;
        let login = json!({
            "accessToken": self.token, "refreshToken": self.refresh_token(), "expiresAt": expires,
            "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
        });
        self.user.file("login.json", json!({"claudeAiOauth": login}).to_string())
    }

    fn refresh_token(&self) -> String {
        self.token.replace("oat01", "ort01")
    }

    /// Changes one file of the corpus and commits it.
    fn change(&self, path: &str, text: &str) -> Result<()> {
        let path = self.corpus.join(path);
        fs::create_dir_all(path.parent().context("a parent")?)?;
        fs::write(&path, text)?;
        self.user.give(&self.corpus)?;
        commit(&self.user, &self.corpus)
    }

    /// Puts another task into the document of a probe, and commits it.
    fn change_task(&self, document: &str, task: &str) -> Result<()> {
        let text = fs::read_to_string(self.corpus.join(document))?;
        let (head, rest) = text.split_once("## Task\n").context("a task")?;
        let (_, tail) = rest.split_once("## Expectation\n").context("an expectation")?;
        self.change(document, &format!("{head}## Task\n\n{task}\n\n## Expectation\n{tail}"))
    }

    /// Records one session of `probe` in which the provider plays `script`.
    fn record(&self, probe: &str, script: &Value, more: &[&str]) -> Result<Ran> {
        let offline = Offline::with_provider(&self.user, script)?;
        let directory = self.user.home().join("runs");
        if !directory.exists() {
            self.user.directory("runs")?;
        }
        let out = directory.join(format!("run-{}.md", fs::read_dir(&directory)?.count()));
        let mut command = self.user.command(bin(&self.user, "headwater-recorder")?);
        command.arg("record").arg("--corpus").arg(&self.corpus);
        command.args(["--probe", probe, "--session", "s-1", "--model", MODEL, "--base-url", PROVIDER]);
        command.arg("--harness").arg(&self.harness).arg("--engine").arg(bin(&self.user, "headwater")?);
        command.arg("--credentials").arg(self.user.home().join("login.json")).arg("--out").arg(&out).args(more);
        command.env("TMPDIR", self.user.home().join("tmp"));
        let output = offline.command(&command).output()?;
        let (requests, bodies) = (offline.requests()?, offline.bodies()?);
        Ok(Ran { output, raw: out.with_extension("raw.jsonl"), out, requests, bodies })
    }

    /// The engine's JSON, and its exit status.
    fn engine(&self, arguments: &[&str], path: Option<&Path>) -> Result<(Value, Option<i32>)> {
        let mut command = self.user.command(bin(&self.user, "headwater")?);
        command.args(arguments).args(path).arg("--root").arg(&self.corpus).args(["--format", "json"]);
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let json =
            serde_json::from_slice(&output.stdout).with_context(|| format!("headwater {arguments:?}: {text}"))?;
        Ok((json, output.status.code()))
    }

    /// A recording that went well: its transcript on its shelf, confirmed, and reported by no rule.
    fn recorded(&self, probe: &str, script: &Value, more: &[&str]) -> Result<Recorded> {
        let ran = self.record(probe, script, more)?;
        ensure!(ran.status() == Some(0), "status {:?}: {}", ran.status(), ran.said());
        let shelf = self.corpus.join("docs/probe-runs").join(ran.out.file_name().context("a name")?);
        fs::copy(&ran.out, &shelf)?;
        self.user.give(&shelf)?;
        let (confirmed, status) = self.engine(&["probe", "record"], Some(&shelf))?;
        ensure!(status == Some(0), "the transcript is not confirmed: {confirmed}");
        let (checked, status) = self.engine(&["check", "--strict"], None)?;
        ensure!(status == Some(0) && checked["findings"] == json!([]), "{checked}");
        let (grade, status) = self.engine(&["probe", "grade"], Some(&shelf))?;
        ensure!(status == Some(0), "the transcript is not graded: {grade}");
        fs::remove_file(shelf)?;
        let text = fs::read_to_string(&ran.out)?;
        let read = transcript::read(&text)?.whole().map_err(|defect| anyhow::anyhow!("{defect:?}"))?;
        Ok(Recorded { ran, text, transcript: read, grade })
    }
}

impl Ran {
    fn status(&self) -> Option<i32> {
        self.output.status.code()
    }

    fn said(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The user's text of the first request, which the harness puts after its own.
    fn task(&self) -> Option<&str> {
        texts(self.bodies.first()?).last().copied()
    }

    /// What the calls of the main conversation returned, as the model was told, in the order of the calls.
    fn results(&self) -> Vec<String> {
        let last = self.bodies.last().and_then(|body| body["messages"].as_array()).into_iter().flatten();
        let blocks = last.flat_map(|message| message["content"].as_array().into_iter().flatten());
        let results = blocks.filter(|block| block["type"] == "tool_result");
        results
            .map(|block| block["content"].as_str().map_or_else(|| block["content"].to_string(), str::to_owned))
            .collect()
    }

    /// Everything the provider was sent.
    fn sent(&self) -> String {
        self.bodies.iter().map(Value::to_string).collect()
    }
}

/// The text blocks of the user's messages in a request.
fn texts(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "user");
    let blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

/// A transcript that is confirmed.
struct Recorded {
    ran: Ran,
    text: String,
    transcript: Transcript,
    grade: Value,
}

impl Recorded {
    fn event(&self) -> &Event {
        &self.transcript.events[0]
    }

    fn calls(&self) -> &[Call] {
        self.event().calls.as_deref().unwrap_or_default()
    }

    fn tools(&self) -> Vec<&str> {
        self.calls().iter().map(|call| call.tool.as_str()).collect()
    }

    /// The verdict over the one session.
    fn verdict(&self) -> &str {
        let verdicts = self.grade["verdicts"].as_array().into_iter().flatten();
        let own = verdicts.filter(|verdict| verdict["session"] == "s-1").collect::<Vec<_>>();
        assert_eq!(own.len(), 1, "{}", self.grade);
        own[0]["verdict"].as_str().unwrap_or_default()
    }
}

fn tool(name: &str, input: Value) -> Value {
    json!({"tool": name, "input": input})
}

fn bash(command: &str) -> Value {
    tool("Bash", json!({"command": command}))
}

fn read(path: &str) -> Value {
    tool("Read", json!({"file_path": format!("{{workspace}}/{path}")}))
}

/// A session of one call a turn, and its last message.
fn session(calls: &[Value], last: &str) -> Value {
    let mut turns: Vec<Value> = calls.iter().map(|call| json!({"blocks": [call]})).collect();
    turns.push(json!({"blocks": [{"text": last}]}));
    json!({"model": SERVED, "main": turns})
}

/// The host, or the end of the test where the harness cannot be had, which the helper says in one line.
macro_rules! host {
    () => {
        match Host::new().unwrap() {
            Some(host) => host,
            None => return,
        }
    };
}

#[test]
fn a_document_that_a_session_reads_is_opened_and_its_digest_is_witnessed() {
    let host = host!();
    let script = session(&[read("docs/specs/retention-classes.md")], "For 400 days.");
    let recorded = host.recorded("WM-PR-0001", &script, &[]).unwrap();
    let [call] = recorded.calls() else { panic!("{}", recorded.text) };
    let document = fs::read(host.corpus.join("docs/specs/retention-classes.md")).unwrap();
    assert!(call.argument.ends_with("/watermeter/docs/specs/retention-classes.md"), "{}", call.argument);
    assert_eq!(call.result, Digest::of(&document).to_string());
    assert_eq!(recorded.verdict(), "satisfied");
    assert_eq!(recorded.event().produced.as_deref(), Some(&[][..]));
    let identity = &recorded.transcript.identity;
    assert_eq!((identity.model.as_str(), identity.served_version.as_str()), (MODEL, SERVED));
    assert!(identity.cost_cents > 0);
    assert!(recorded.text.contains("The intent hook wrote 2 lines."), "{}", recorded.text);
}

#[test]
fn a_command_names_the_documents_among_its_words_and_witnesses_none() {
    let host = host!();
    let script = session(&[bash("head -n 40 schemas/reading.schema.json | grep -n enum")], "Three words.");
    let recorded = host.recorded("WM-PR-0008", &script, &[]).unwrap();
    let [call] = recorded.calls() else { panic!("{}", recorded.text) };
    assert_eq!((call.tool.as_str(), call.result.as_str()), ("Bash", ""));
    assert_eq!(recorded.verdict(), "satisfied");
}

#[test]
fn what_a_session_writes_and_edits_is_produced_once_with_what_it_cites() {
    let host = host!();
    let path = "{workspace}/work/alarm-proposal.md";
    let script = session(
        &[
            tool("Write", json!({"file_path": path, "content": "# Against it\n\nSee TODO.\n"})),
            tool("Edit", json!({"file_path": path, "old_string": "TODO", "new_string": "WM-DR-0006 and WM-SP-0005"})),
        ],
        "It is written.",
    );
    let recorded = host.recorded("WM-PR-0005", &script, &[]).unwrap();
    let produced = recorded.event().produced.clone().unwrap();
    assert_eq!(produced.len(), 1, "{}", recorded.text);
    assert_eq!(produced[0].path, "work/alarm-proposal.md");
    assert_eq!(produced[0].result, Digest::of(b"# Against it\n\nSee WM-DR-0006 and WM-SP-0005.\n").to_string());
    assert_eq!(produced[0].cites, ["WM-DR-0006", "WM-SP-0005"]);
    assert_eq!(produced[0].findings.as_deref(), Some(&[][..]));
    assert_eq!(recorded.verdict(), "satisfied");
}

/// A how-to without the facets that `missing` names.
fn how_to(missing: &str) -> String {
    let facets = [
        "id: WM-HT-0009",
        "title: Exchange a meter",
        "summary: What is entered before a new meter sends.",
        "status: draft",
        "status_date: 2026-10-20",
        "area: ingest",
    ];
    let facets: Vec<&str> = facets.into_iter().filter(|line| !line.starts_with(&format!("{missing}:"))).collect();
    let body = "# Exchange a meter\n\n## Before you start\n\nEnter its serial number.\n\n## Steps\n\n1. Let it send.\n";
    format!("---\n{}\n---\n\n{body}", facets.join("\n"))
}

#[test]
fn a_new_document_is_patched_where_the_oracle_reports_nothing_over_it_in_every_arm() {
    let host = host!();
    for (arm, missing, verdict) in [
        (&[][..], "", "satisfied"),
        (&[], "area", "not_satisfied"),
        (&["--tier", "campaign", "--arm", "absent"], "", "satisfied"),
        (&["--tier", "campaign", "--arm", "absent"], "area", "not_satisfied"),
    ] {
        let write = json!({"file_path": "{workspace}/docs/howto/exchange-a-meter.md", "content": how_to(missing)});
        let script = session(&[read("docs/howto/add-an-alarm-rule.md"), tool("Write", write)], "It is written.");
        let recorded = host.recorded("WM-PR-0011", &script, arm).unwrap();
        let produced = recorded.event().produced.clone().unwrap();
        assert_eq!(produced.len(), 1, "{}", recorded.text);
        let findings = produced[0].findings.as_deref().unwrap();
        let oracle = findings.iter().any(|rule| rule == "facet.required.missing");
        assert_eq!(oracle, !missing.is_empty(), "{arm:?}: {findings:?}");
        assert_eq!(recorded.verdict(), verdict, "{arm:?} without {missing:?}");
    }
}

#[test]
fn what_running_the_tests_leaves_behind_patches_nothing() {
    let host = host!();
    let write = json!({"file_path": "{workspace}/docs/howto/exchange-a-meter.md", "content": how_to("area")});
    let script = session(
        &[tool("Write", write), bash("git init -q; python3 -m unittest discover -s src -t src")],
        "It is written.",
    );
    let recorded = host.recorded("WM-PR-0011", &script, &[]).unwrap();
    assert_eq!(recorded.verdict(), "not_satisfied");
}

#[test]
fn the_absent_arm_meets_no_guidance_and_the_present_arm_does() {
    let host = host!();
    let script = session(&[], "Nothing found.");
    let guidance = "The documents are the source of truth.";
    let present = host.recorded("WM-PR-0001", &script, &["--tier", "campaign"]).unwrap();
    assert!(present.ran.sent().contains(guidance) && present.ran.sent().contains("find-governing"));
    assert_eq!((present.calls().len(), present.verdict()), (0, "not_satisfied"));
    let absent = host.recorded("WM-PR-0001", &script, &["--tier", "campaign", "--arm", "absent"]).unwrap();
    assert!(!absent.ran.sent().contains(guidance) && !absent.ran.sent().contains("find-governing"));
    assert!(absent.text.contains("The intent hook was not live."), "{}", absent.text);
}

#[test]
fn the_calls_of_sub_agents_are_in_the_event_however_deep() {
    let host = host!();
    let agent =
        |prompt: &str| tool("Agent", json!({"description": "d", "prompt": prompt, "subagent_type": "general-purpose"}));
    let script = json!({
        "model": SERVED,
        "main": [{"blocks": [agent("OUTER")]}, {"blocks": [{"text": "For 400 days."}]}],
        "agents": [
            {"match": "INNER", "turns": [
                {"blocks": [read("docs/decisions/raw-readings-four-hundred-days.md")]},
                {"blocks": [{"text": "inner"}]}]},
            {"match": "OUTER", "turns": [
                {"blocks": [bash("ls docs"), agent("INNER")]}, {"blocks": [{"text": "outer"}]}]},
        ],
    });
    let recorded = host.recorded("WM-PR-0001", &script, &[]).unwrap();
    assert_eq!(recorded.tools(), ["Agent", "Bash", "Agent", "Read"]);
    assert_eq!(recorded.verdict(), "satisfied");
    assert!(recorded.text.contains("3 by sub-agents"), "{}", recorded.text);
}

#[test]
fn a_session_stopped_by_its_turn_cap_is_recorded_and_has_no_answer() {
    let host = host!();
    let script = session(&vec![bash("ls docs/decisions"); 4], "current WM-DR-0007");
    let recorded = host.recorded("WM-PR-0002", &script, &["--max-turns", "2"]).unwrap();
    assert_eq!(recorded.event().answer, Answer::None);
    assert!(recorded.text.contains("answer: null"));
    assert_eq!((recorded.calls().len(), recorded.verdict()), (2, "not_satisfied"));
    assert!(String::from_utf8_lossy(&recorded.ran.output.stdout).contains("the turn cap stopped the session"));
}

#[test]
fn a_web_tool_is_denied_and_the_session_goes_on() {
    let host = host!();
    let calls = [
        tool("WebSearch", json!({"query": "storage of raw readings"})),
        tool("WebFetch", json!({"url": "http://127.0.0.1:8080/", "prompt": "read"})),
    ];
    let recorded = host.recorded("WM-PR-0001", &session(&calls, "Nothing found."), &[]).unwrap();
    assert_eq!(recorded.tools(), ["WebSearch", "WebFetch"]);
    assert!(recorded.calls().iter().all(|call| call.result.is_empty()));
    assert_eq!(recorded.verdict(), "not_satisfied");
    assert!(recorded.ran.requests.iter().all(|request| request["method"] == "POST"), "{:?}", recorded.ran.requests);
    let tools = recorded.ran.bodies[0]["tools"].as_array().unwrap();
    assert!(!tools.iter().any(|tool| tool["name"] == "WebSearch" || tool["name"] == "WebFetch"));
}

#[test]
fn the_words_of_the_final_line_are_the_answer_in_its_declared_form() {
    let host = host!();
    let script = session(&[], "The later decision replaced the other one.\n\nWM-DR-0007 current.\n");
    let recorded = host.recorded("WM-PR-0002", &script, &[]).unwrap();
    assert_eq!(recorded.event().answer, Answer::Value("current WM-DR-0007".into()));
    assert_eq!(recorded.verdict(), "satisfied");
    assert!(!recorded.text.contains("replaced the other one"));
}

#[test]
fn every_task_reaches_the_model_word_for_word() {
    let host = host!();
    let document = "docs/probes/where-is-the-retention-limit.md";
    for task in [
        "- Find the period.\n- Then explain it, in \"two\" words\\lines.",
        "--help me with the period",
        "@docs/specs/retention-classes.md and @CLAUDE.md say how long; for how long?",
        "/find-governing config/retention.toml",
        "/compact",
        "!`cat README.md` — Zeiträume: 4 × 100 Tage? 🙂",
    ] {
        host.change_task(document, task).unwrap();
        let recorded = host.recorded("WM-PR-0001", &session(&[], "For 400 days."), &[]).unwrap();
        assert_eq!(recorded.ran.task(), Some(task));
        assert_eq!(recorded.ran.requests.len(), 1, "{task}");
        let body = &recorded.ran.bodies[0];
        // Beside it stands what the harness says itself, and nothing that the task would make it read or run.
        let others = texts(body).into_iter().filter(|text| !text.starts_with("<system-reminder>")).count();
        assert_eq!(others, 1, "{task}: {:?}", texts(body));
        for content in ["WM-SP-0004", "Find what governs a file", "Water meter"] {
            assert!(!body.to_string().contains(content), "{task}: {content}");
        }
    }
}

#[test]
fn a_provider_that_refuses_is_a_failed_harness_and_never_a_transcript() {
    let host = host!();
    let script =
        json!({"main": [{"status": 403, "etype": "permission_error", "message": "this organization may not"}]});
    let ran = host.record("WM-PR-0002", &script, &[]).unwrap();
    assert_eq!(ran.status(), Some(10), "{}", ran.said());
    assert!(!ran.out.exists());
    assert!(ran.said().contains("status 403") && ran.said().contains("exited 1"), "{}", ran.said());
    assert!(ran.said().contains("may have spent") && ran.said().contains(ran.raw.to_str().unwrap()));
    assert!(fs::read_to_string(&ran.raw).unwrap().contains("\"api_error_status\":403"));
    assert_eq!(fs::read_dir(host.user.home().join("tmp")).unwrap().count(), 0);
}

#[test]
fn a_provider_that_fails_after_a_tool_block_is_no_behaviour_of_the_model() {
    let host = host!();
    let broken = json!({
        "blocks": [read("docs/specs/retention-classes.md"), {"text": "and then"}],
        "sse_error": {"type": "overloaded_error", "message": "Overloaded"}, "after": 6,
    });
    let script = json!({"model": SERVED, "main": [broken, {"blocks": [{"text": "For 400 days."}]}]});
    let ran = host.record("WM-PR-0001", &script, &[]).unwrap();
    assert_eq!(ran.status(), Some(10), "{}", ran.said());
    assert!(ran.said().contains("the provider failed"), "{}", ran.said());
    assert!(!ran.out.exists());
    let raw = fs::read_to_string(&ran.raw).unwrap();
    assert!(raw.contains("\"name\":\"Read\"") && raw.contains("<synthetic>"), "{raw}");
}

#[test]
fn a_request_that_succeeds_when_it_is_tried_again_is_stated_and_recorded() {
    let host = host!();
    let mut script = session(&[], "current WM-DR-0007");
    script["main"].as_array_mut().unwrap().insert(0, json!({"status": 529, "times": 1, "etype": "overloaded_error"}));
    let recorded = host.recorded("WM-PR-0002", &script, &[]).unwrap();
    assert_eq!(recorded.verdict(), "satisfied");
    assert_eq!(recorded.ran.requests.len(), 2);
    assert!(recorded.text.contains("Requests tried again: 1."), "{}", recorded.text);
}

#[test]
fn a_silent_provider_is_stopped_by_the_limit_and_what_arrived_is_kept() {
    let host = host!();
    let script = json!({"model": SERVED, "main": [{"blocks": [{"text": "For"}], "hang": 60, "after": 2}]});
    let ran = host.record("WM-PR-0001", &script, &["--max-idle-seconds", "2"]).unwrap();
    assert_eq!(ran.status(), Some(14), "{}", ran.said());
    assert!(!ran.out.exists() && ran.said().contains("2 s without output"), "{}", ran.said());
    assert!(fs::read_to_string(&ran.raw).unwrap().contains("\"subtype\":\"init\""));
}

/// Regular files below `directory`, of at most 64 MiB, changed since a time and readable.
fn files_since(directory: &Path, since: SystemTime) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(directory) = left.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                left.push(entry.path());
            } else if metadata.is_file()
                && metadata.len() < 64 << 20
                && metadata.modified().is_ok_and(|time| time >= since)
            {
                found.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn the_session_has_the_access_token_and_no_disk_has_it_afterwards() {
    let host = host!();
    let began = SystemTime::now() - Duration::from_secs(1);
    let script = session(&[bash("ls -la $CLAUDE_CONFIG_DIR/.credentials.json; df $CLAUDE_CONFIG_DIR")], "Here.");
    let recorded = host.recorded("WM-PR-0001", &script, &[]).unwrap();
    assert!(recorded.ran.requests.iter().all(|request| request["auth"] == "Bearer sk-ant-oat01"));
    assert!(recorded.ran.sent().contains("-rw-------") && recorded.ran.sent().contains("tmpfs"));
    let credentials = host.user.home().join("login.json");
    let mut searched = BTreeSet::new();
    for directory in [host.user.home(), Path::new("/tmp"), Path::new("/var/tmp"), Path::new("/dev/shm")] {
        searched.extend(files_since(directory, began));
    }
    assert!(searched.contains(&recorded.ran.raw) && searched.contains(&recorded.ran.out));
    for path in searched.iter().filter(|path| **path != credentials) {
        // A file of somebody else that is gone by now holds nothing of ours.
        let Ok(text) = fs::read(path) else { continue };
        for secret in [&host.token, &host.refresh_token()] {
            let found = text.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds a token", path.display());
        }
    }
    assert_eq!(fs::read_dir(host.user.home().join("tmp")).unwrap().count(), 0);
}

#[test]
fn a_session_never_has_the_refresh_token() {
    let host = host!();
    let script = session(&[bash("cat $CLAUDE_CONFIG_DIR/.credentials.json; env")], "Here.");
    let recorded = host.recorded("WM-PR-0001", &script, &[]).unwrap();
    let sent = recorded.ran.sent();
    assert!(sent.contains(&host.token) && !sent.contains("refreshToken") && !sent.contains(&host.refresh_token()));
    assert!(!recorded.text.contains(&host.token));
}

#[test]
fn a_token_that_could_expire_in_the_session_is_refused_before_anything_runs() {
    let host = host!();
    let script = session(&[], "current WM-DR-0007");
    let now = SystemTime::now();
    let hour_ago = now.checked_sub(Duration::from_secs(3600)).unwrap();
    for expires in [hour_ago, now + Duration::from_secs(600)] {
        host.credentials(expires).unwrap();
        let ran = host.record("WM-PR-0002", &script, &[]).unwrap();
        assert_eq!(ran.status(), Some(3), "{}", ran.said());
        assert!(ran.said().contains("expire") && ran.said().contains("nothing was spent"), "{}", ran.said());
        assert!(!ran.said().contains(&host.token));
        assert_eq!((ran.requests.len(), ran.out.exists(), ran.raw.exists()), (0, false, false));
    }
    // The second lasts for a session of a minute.
    host.recorded("WM-PR-0002", &script, &["--max-seconds", "60"]).unwrap();
    fs::remove_file(host.user.home().join("login.json")).unwrap();
    let ran = host.record("WM-PR-0002", &script, &[]).unwrap();
    assert_eq!((ran.status(), ran.requests.len()), (Some(3), 0), "{}", ran.said());
}

#[test]
fn a_secret_in_a_call_refuses_the_transcript_and_is_named_by_the_call_alone() {
    let host = host!();
    let hex: String = host.token.bytes().map(|byte| format!("{byte:02x}")).collect();
    let token = host.token.as_str();
    for command in [format!("grep -rn {token} ."), format!("echo {hex} | xxd -r -p")] {
        let print = bash("cat $CLAUDE_CONFIG_DIR/.credentials.json");
        let ran = host.record("WM-PR-0001", &session(&[print, bash(&command)], "Here."), &[]).unwrap();
        assert_eq!(ran.status(), Some(13), "{command}: {}", ran.said());
        assert!(ran.said().contains("in call 2") && ran.said().contains("accessToken"), "{}", ran.said());
        assert!(!ran.said().contains(token) && !ran.said().contains(&hex));
        assert!(!ran.out.exists() && ran.raw.exists());
    }
}

#[test]
fn a_session_reads_neither_the_corpus_nor_the_home_nor_what_else_the_host_has() {
    let host = host!();
    let secret = host.user.file("secret", "of-the-home\n").unwrap();
    fs::write(host.corpus.join(".git/secret"), "of-the-corpus\n").unwrap();
    host.user.give(&host.corpus.join(".git/secret")).unwrap();
    let home = host.user.home().display();
    let calls = [
        bash(&format!("cat {}; cat {}/.git/secret; ls -a {home}", secret.display(), host.corpus.display())),
        bash("ls -a .. ; ls -a /home /root /work /var /srv; ls docs/probes docs/probe-runs .headwater; git log"),
        tool("Read", json!({"file_path": secret})),
        tool("Glob", json!({"pattern": "**/secret", "path": host.user.home()})),
        tool("Write", json!({"file_path": host.user.home().join("planted"), "content": "x"})),
        bash(&format!("touch {home}/planted-too {home}/tmp/planted /etc/planted; echo end")),
    ];
    let recorded = host.recorded("WM-PR-0001", &session(&calls, "Nothing."), &[]).unwrap();
    let sent = recorded.ran.sent();
    for hidden in ["of-the-home", "of-the-corpus", "login.json", "WM-PR-0", "where-is-the-retention-limit"] {
        assert!(!sent.contains(hidden), "{hidden}");
    }
    assert!(sent.contains("No such file or directory"));
    for planted in ["planted", "planted-too", "tmp/planted"] {
        assert!(!host.user.home().join(planted).exists(), "{planted}");
    }
    assert!(!Path::new("/etc/planted").exists());
    assert_eq!(recorded.verdict(), "not_satisfied");
}

#[test]
fn nothing_of_the_host_s_own_configuration_is_loaded() {
    let host = host!();
    let home = host.user.home();
    let marked = "MARK-OF-THE-HOST";
    for (path, text) in [
        (".claude/skills/shibboleth/SKILL.md", format!("---\nname: shibboleth\ndescription: {marked}\n---\n")),
        (".claude/agents/shibboleth.md", format!("---\nname: shibboleth\ndescription: {marked}\n---\n{marked}")),
        (".claude/commands/shibboleth.md", marked.to_owned()),
        (".claude/CLAUDE.md", marked.to_owned()),
        (".claude/settings.json", json!({"env": {"MARKED": marked}, "outputStyle": marked}).to_string()),
        (".claude.json", json!({"mcpServers": {"shibboleth": {"command": "false"}}}).to_string()),
        ("CLAUDE.md", marked.to_owned()),
        ("tmp/CLAUDE.md", marked.to_owned()),
    ] {
        fs::create_dir_all(home.join(path).parent().unwrap()).unwrap();
        fs::write(home.join(path), text).unwrap();
    }
    host.user.give(home).unwrap();
    let calls = [bash("env; ls -A ~"), tool("Skill", json!({"skill": "shibboleth"}))];
    let recorded = host.recorded("WM-PR-0001", &session(&calls, "Nothing."), &[]).unwrap();
    let raw = fs::read_to_string(&recorded.ran.raw).unwrap();
    assert!(!recorded.ran.sent().contains(marked) && !raw.contains(marked));
    assert!(!raw.lines().any(|line| line.contains("\"subtype\":\"init\"") && line.contains("shibboleth")));

    // A name that both have would not be told apart, so nothing runs.
    fs::create_dir(home.join(".claude/skills/find-governing")).unwrap();
    let ran = host.record("WM-PR-0001", &session(&[], "Nothing."), &[]).unwrap();
    assert_eq!((ran.status(), ran.requests.len()), (Some(12), 0), "{}", ran.said());
    assert!(ran.said().contains("find-governing") && ran.said().contains("nothing was spent"), "{}", ran.said());
}

#[test]
fn the_settings_of_a_workspace_raise_no_permission_and_are_stated() {
    let host = host!();
    let settings = json!({
        "permissions": {"defaultMode": "bypassPermissions", "allow": ["WebFetch", "WebSearch"]},
        "env": {"SAMPLE": "1"},
    });
    host.change(".claude/settings.json", &settings.to_string()).unwrap();
    let calls = [tool("WebFetch", json!({"url": "http://127.0.0.1:8080/", "prompt": "read"}))];
    let recorded = host.recorded("WM-PR-0001", &session(&calls, "Nothing."), &[]).unwrap();
    assert!(recorded.text.contains("`env.SAMPLE`, `permissions`"), "{}", recorded.text);
    assert!(recorded.ran.requests.iter().all(|request| request["method"] == "POST"));
}

#[test]
fn a_server_that_the_workspace_declares_is_the_session_s_to_call() {
    let host = host!();
    let server = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "glossary", "version": "1"}},
        "tools/list": {"tools": [{"name": "define", "description": "Defines a term.",
                                  "inputSchema": {"type": "object", "properties": {"term": {"type": "string"}}}}]},
        "tools/call": {"content": [{"type": "text", "text": "a reading is what a meter sends"}]},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}), flush=True)
"#;
    host.change("tools/glossary.py", server).unwrap();
    let declared = json!({"mcpServers": {"glossary": {"command": "python3", "args": ["tools/glossary.py"]}}});
    host.change(".mcp.json", &declared.to_string()).unwrap();
    let calls = [tool("mcp__glossary__define", json!({"term": "reading"}))];
    let recorded = host.recorded("WM-PR-0001", &session(&calls, "Nothing."), &[]).unwrap();
    assert_eq!(recorded.tools(), ["mcp__glossary__define"]);
    assert!(recorded.ran.sent().contains("a reading is what a meter sends"), "{}", recorded.text);
    assert!(recorded.text.contains("1 MCP server") && recorded.text.contains("1 of MCP tools"), "{}", recorded.text);
}

#[test]
fn every_tool_of_the_list_is_there_and_may_be_used() {
    let host = host!();
    let notebook = json!({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).to_string();
    let path = "{workspace}/work/a.ipynb";
    let calls = [
        tool("Write", json!({"file_path": path, "content": notebook})),
        tool("Read", json!({"file_path": path})),
        tool(
            "NotebookEdit",
            json!({"notebook_path": path, "new_source": "1", "edit_mode": "insert", "cell_type": "code"}),
        ),
        tool("Glob", json!({"pattern": "docs/specs/*.md"})),
        tool("Grep", json!({"pattern": "400 days", "path": "{workspace}/docs"})),
        tool("Skill", json!({"skill": "find-governing", "args": "config/retention.toml"})),
        bash("headwater --version && headwater check --strict"),
    ];
    let recorded = host.recorded("WM-PR-0001", &session(&calls, "Nothing."), &[]).unwrap();
    assert_eq!(recorded.tools(), ["Write", "Read", "NotebookEdit", "Glob", "Grep", "Skill", "Bash"]);
    let results = recorded.ran.results();
    let begins = ["File created", "", "Inserted cell", "docs/specs/", "Found 3 files", "Launching skill", "headwater "];
    for (result, begin) in results.iter().zip(begins) {
        assert!(result.starts_with(begin) && !result.contains("error"), "{begin}: {result}");
    }
    assert_eq!(results.len(), begins.len());
    let produced = recorded.event().produced.clone().unwrap();
    assert_eq!(produced.iter().map(|artifact| artifact.path.as_str()).collect::<Vec<_>>(), ["work/a.ipynb"]);
}

#[test]
fn the_calls_of_one_message_stand_in_its_order_and_one_that_cannot_be_read_is_a_call_too() {
    let host = host!();
    let blocks = [
        bash("sleep 1; cat docs/README.md"),
        read("docs/specs/ingest-api.md"),
        json!({"tool": "Read", "raw": "{\"file_path\": \"docs/specs/rete", "input": {}}),
        tool("Read", json!({"file_path": "no/such.md"})),
        tool("Teleport", json!({"to": "docs"})),
    ];
    let script = json!({"model": SERVED, "main": [{"blocks": blocks}, {"blocks": [{"text": "Nothing."}]}]});
    let recorded = host.recorded("WM-PR-0001", &script, &[]).unwrap();
    assert_eq!(recorded.tools(), ["Bash", "Read", "Read", "Read", "Teleport"]);
    let witnessed: Vec<bool> = recorded.calls().iter().map(|call| !call.result.is_empty()).collect();
    assert_eq!(witnessed, [false, true, false, false, false]);
    assert!(recorded.calls()[2].argument.contains("__unparsedToolInput"), "{}", recorded.calls()[2].argument);
}

#[test]
fn no_command_opens_the_harness_s_end_of_the_channel() {
    let host = host!();
    let forge = r#"for p in /proc/[0-9]*; do for fd in $p/fd/*; do
        case $(readlink $fd) in socket:*) echo "socket in $p"; echo '{"type":"forged"}' > $fd;; esac
    done 2>/dev/null; done; readlink /proc/$PPID/fd/1"#;
    let recorded = host.recorded("WM-PR-0001", &session(&[bash(forge)], "Nothing."), &[]).unwrap();
    let result = &recorded.ran.results()[0];
    // Its own, and nothing that it could learn of the harness's.
    assert!(result.contains("socket in") && !result.contains("socket:["), "{result}");
    let raw = fs::read_to_string(&recorded.ran.raw).unwrap();
    assert!(!raw.lines().any(|line| line.contains("forged") && !line.contains("for p in")), "{raw}");
}

#[test]
fn whatever_a_session_leaves_in_its_workspace_is_recorded_and_goes_away() {
    let host = host!();
    let make = [
        r"printf x > $'work/a\xff.md'",
        "mkfifo work/fifo; ln -s /etc/passwd work/link.md; ln -s .. work/up",
        "truncate -s 20G work/sparse.md; ln work/sparse.md work/again.md",
        "mkdir -p work/$(printf 'd/%.0s' $(seq 300))",
        "echo broken > docs/notes/broken.md; rm -r docs/decisions",
        "echo WM-OB-0001 > 'work/a name: with - # marks.md'",
    ];
    let commands = |make: &[&str]| make.iter().map(|c| bash(&format!("mkdir -p work; {c}"))).collect::<Vec<_>>();
    let recorded = host.recorded("WM-PR-0010", &session(&commands(&make), "Nothing."), &[]).unwrap();
    let produced = recorded.event().produced.clone().unwrap();
    let paths: Vec<&str> = produced.iter().map(|artifact| artifact.path.as_str()).collect();
    let left = ["docs/notes/broken.md", "work/a name: with - # marks.md", r"work/a\xff.md"];
    assert!(left.iter().all(|path| paths.contains(path)), "{paths:?}");
    assert!(!paths.iter().any(|path| ["work/fifo", "work/link.md", "work/up"].contains(path)), "{paths:?}");
    assert_eq!(recorded.verdict(), "satisfied");

    // What is closed to its owner is not read, and is no obstacle.
    let make =
        ["echo x > work/x.md; chmod 0 work/x.md; mkdir work/closed; echo x > work/closed/x.md; chmod 0 work/closed"];
    let recorded = host.recorded("WM-PR-0010", &session(&commands(&make), "Nothing."), &[]).unwrap();
    assert_eq!(recorded.verdict(), "not_satisfied");
    let left: Vec<_> = fs::read_dir(host.user.home().join("tmp")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_harness_that_its_own_session_ends_is_a_failed_harness() {
    let host = host!();
    let ran = host.record("WM-PR-0001", &session(&[bash("kill -9 $PPID; sleep 5")], "For 400 days."), &[]).unwrap();
    assert_eq!(ran.status(), Some(10), "{}", ran.said());
    assert!(ran.said().contains("signal 9") && !ran.out.exists() && ran.raw.exists(), "{}", ran.said());
}

#[test]
fn the_harness_works_in_a_closure_and_its_commands_see_nothing_else() {
    let host = host!();
    let (recorder, engine) = (bin(&host.user, "headwater-recorder").unwrap(), bin(&host.user, "headwater").unwrap());
    let paths = closure::closure(&host.user, &[&recorder, &engine, &host.harness]).unwrap();
    let file = closure::file(&host.user, "tools.paths", &paths).unwrap();
    let look = "ls /; cat /usr/share/doc/* /etc/shadow; git log --oneline; id -un; headwater --version; echo all-well";
    let calls = [read("docs/specs/retention-classes.md"), bash(look), tool("Grep", json!({"pattern": "retention"}))];
    let more = ["--view", "closure", "--closure", file.to_str().unwrap()];
    let recorded = host.recorded("WM-PR-0001", &session(&calls, "For 400 days."), &more).unwrap();
    assert_eq!((recorded.tools(), recorded.verdict()), (vec!["Read", "Bash", "Grep"], "satisfied"));
    let result = &recorded.ran.results()[1];
    let shown: Vec<_> =
        ["home", "root", "var", "srv", "run"].into_iter().filter(|n| result.lines().any(|l| l == *n)).collect();
    assert!(result.contains("all-well") && result.contains("session") && shown.is_empty(), "{shown:?}: {result}");
    assert!(recorded.text.contains(", closure view,"), "{}", recorded.text);
}

#[test]
fn no_process_outlives_its_session() {
    let host = host!();
    let mark = format!("31{:07}", std::process::id());
    let calls = [bash(&format!("setsid nohup sleep {mark} >/dev/null 2>&1 & echo started"))];
    let recorded = host.recorded("WM-PR-0001", &session(&calls, "Nothing."), &[]).unwrap();
    assert!(recorded.ran.sent().contains("started"));
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.windows(mark.len()).any(|w| w == mark.as_bytes()))
    });
    assert_eq!(left.count(), 0);
}
