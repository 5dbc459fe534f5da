//! How a session ends, and what becomes of it: which are recorded, and which are refused after they have spent.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use headwater_contract::transcript::Answer;
use headwater_tests::corpus;
use headwater_tests::recording::{Studio, Taken};
use serde_json::{Value, json};

/// A session of one call and a word that goes wrong in one way.
fn with(misbehave: Value) -> Value {
    json!({"turns": [
        {"calls": [{"tool": "Read", "input": {"file_path": "{workspace}/docs/README.md"}}]},
        {"text": "Done."}
    ], "misbehave": misbehave})
}

/// A session with something between its call and its last word.
fn between(turn: Value) -> Value {
    let mut script = with(json!({}));
    if let Some(turns) = script["turns"].as_array_mut() {
        turns.insert(1, turn);
    }
    script
}

/// Plays each script as a session of its own and gives what it left to `hold`.
fn each<'a>(scripts: impl IntoIterator<Item = (Value, &'a [&'a str])>, hold: impl Fn(&Taken, &[&str])) -> Result<()> {
    let studio = Studio::new()?;
    for (number, (script, words)) in scripts.into_iter().enumerate() {
        hold(&studio.take(&number.to_string())?.script(&script)?.run()?, words);
    }
    Ok(())
}

#[test]
fn a_session_that_does_not_state_what_it_loaded_is_not_recorded() -> Result<()> {
    let cases: [(Value, &[&str]); 4] = [
        (with(json!({"no_init": true})), &["no init line"]),
        (with(json!({"init_set": {"permissionMode": null}})), &["permissionMode"]),
        (with(json!({"init_set": {"plugins": null}})), &["plugins"]),
        (with(json!({"init_set": {"cwd": null}})), &["cwd"]),
    ];
    each(cases, |taken, words| taken.failed(12, words))
}

#[test]
fn a_session_that_loaded_what_its_workspace_does_not_give_it_is_not_recorded() -> Result<()> {
    let set = |key: &str, value: Value| with(json!({"init_set": {key: value}}));
    let add = |key: &str, value: Value| with(json!({"init_add": {key: [value]}}));
    let cases: [(Value, &[&str]); 12] = [
        (set("permissionMode", json!("bypassPermissions")), &["bypassPermissions", "dontAsk"]),
        (set("permissionMode", json!("acceptEdits")), &["acceptEdits"]),
        (add("skills", json!("plugin:foreign")), &["plugin:foreign"]),
        (add("agents", json!("plugin:foreign")), &["plugin:foreign"]),
        (add("plugins", json!({"name": "foreign", "path": "/home/u/.claude/plugins/foreign"})), &["plugins/foreign"]),
        (add("plugins", json!({"name": "foreign"})), &["foreign"]),
        (add("mcp_servers", json!({"name": "foreign", "status": "connected"})), &["foreign", ".mcp.json"]),
        (set("memory_paths", json!({"auto": "/home/u/.claude/projects/x/memory/"})), &["/home/u/.claude"]),
        (set("memory_paths", json!({"auto": "/opt/headwater/config/../../../home/u"})), &["memory path"]),
        (set("output_style", json!("Explanatory")), &["Explanatory"]),
        (set("cwd", json!("/home/u")), &["/home/u"]),
        (
            with(
                json!({"before_init": [{"type": "system", "subtype": "init", "permissionMode": "bypassPermissions"}]}),
            ),
            &["init lines"],
        ),
    ];
    each(cases, |taken, words| taken.failed(12, words))
}

#[test]
fn a_skill_with_the_name_of_one_of_the_host_s_is_not_recorded() -> Result<()> {
    let studio = Studio::new()?;
    let skill = studio.user.home().join(".claude/skills/private-notes");
    fs::create_dir_all(&skill)?;
    fs::write(skill.join("SKILL.md"), "---\nname: private-notes\ndescription: x\n---\n")?;
    studio.user.give(&studio.user.home().join(".claude"))?;
    let script = with(json!({"init_add": {"skills": ["private-notes"]}}));
    studio.take("leaked")?.script(&script)?.run()?.failed(12, &["private-notes"]);
    // One that the workspace has too is known before anything is spent.
    let own = studio.user.home().join(".claude/skills/find-governing");
    fs::rename(&skill, &own)?;
    studio.take("shared")?.run()?.refused(12, &["find-governing"]);
    Ok(())
}

#[test]
fn a_hook_before_the_init_line_is_refused_where_the_workspace_declares_none() -> Result<()> {
    let studio = Studio::new()?;
    let hook = json!({"type": "system", "subtype": "hook_started", "hook_name": "SessionStart:startup"});
    let script = with(json!({"before_init": [hook]}));
    // The sample corpus declares such a hook.
    studio.take("declared")?.script(&script)?.run()?.recorded()?;
    let workspace = studio.user.directory("bare")?;
    studio.take("foreign")?.set("--workspace", &workspace).script(&script)?.run()?.failed(12, &["hook"]);
    Ok(())
}

#[test]
fn a_stream_that_is_cut_or_torn_is_not_recorded() -> Result<()> {
    let cases: [(Value, &[&str]); 9] = [
        (with(json!({"cut_after_bytes": 4_000})), &["torn"]),
        (with(json!({"cut_in_line": {"line": 6, "bytes": 9}})), &["line 6"]),
        (with(json!({"no_result": true})), &["no result line"]),
        (between(json!({"raw": "a line of something else"})), &["not JSON"]),
        (between(json!({"raw": "{\"type\": \"assistant\", "})), &["torn"]),
        (between(json!({"raw_hex": "7b2274797065223a22ff227d"})), &["torn"]),
        (between(json!({"raw": "[]"})), &["torn"]),
        (
            between(
                json!({"raw": "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\",\"id\":\"x\"}]}}"}),
            ),
            &["torn"],
        ),
        (
            between(
                json!({"raw": "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false}", "newline": false}),
            ),
            &["torn"],
        ),
    ];
    each(cases, |taken, words| taken.failed(13, words))
}

#[test]
fn a_call_that_is_told_twice_in_different_words_is_a_forgery() -> Result<()> {
    let studio = Studio::new()?;
    // What the harness itself writes for a call, with another input: the identifiers of a script are always the same.
    let taken = studio.take("honest")?.script(&with(json!({})))?.run()?;
    taken.recorded()?;
    let raw = String::from_utf8(taken.raw.context("a raw log")?)?;
    let call = raw.lines().find(|line| line.contains("\"tool_use\"")).context("a call")?;
    let forged = call.replace("docs/README.md", "docs/decisions/README.md");
    assert_ne!(call, forged);
    studio.take("forged")?.script(&between(json!({"raw": forged})))?.run()?.failed(13, &["forged"]);
    // The same line once more says nothing new.
    let taken = studio.take("repeated")?.script(&with(json!({})))?.run()?;
    assert_eq!(taken.recorded()?.events[0].calls.as_ref().map(Vec::len), Some(1));
    let result = "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"none\"}]}}";
    studio.take("result")?.script(&between(json!({"raw": result})))?.run()?.failed(13, &["forged"]);
    Ok(())
}

#[test]
fn what_is_left_of_a_torn_session_is_kept_with_its_workspace() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("torn")?.script(&with(json!({"cut_after_bytes": 4_000})))?;
    let taken = take.run()?;
    assert_eq!(taken.status, Some(13), "{}", taken.stderr);
    let kept: Vec<_> = taken.stderr.lines().filter_map(|line| line.strip_prefix("  kept: ")).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    taken.left_nothing();
    for (path, what) in kept.iter().filter_map(|line| line.rsplit_once(" (")) {
        assert!(std::path::Path::new(path).exists(), "{path} ({what}");
    }
    assert_eq!(taken.raw.map(|raw| raw.len()), Some(4_000));
    Ok(())
}

#[test]
fn a_harness_that_fails_is_no_session() -> Result<()> {
    let cases: [(Value, &[&str]); 8] = [
        (with(json!({"end": {"exit": 3}})), &["exited 3"]),
        (with(json!({"end": {"exit": 1}})), &["exited 1"]),
        (with(json!({"end": {"signal": 9}})), &["signal 9"]),
        (with(json!({"end": {"signal": 15}})), &["signal 15"]),
        (with(json!({"cut_after_bytes": 4_000, "end": {"signal": 11}})), &["signal 11"]),
        (with(json!({"no_result": true, "end": {"exit": 2}})), &["exited 2"]),
        (
            with(json!({"end": {"exit": 7}, "stderr": {"text": "it broke\u{1b}[31m"}})),
            &["exited 7", "it said: it broke"],
        ),
        (with(json!({"end": {"exit": 7}, "stderr": {"text": "noise", "repeat": 200_000}})), &["exited 7", "noise"]),
    ];
    each(cases, |taken, words| {
        taken.failed(10, words);
        assert!(!taken.stderr.contains('\u{1b}') && taken.stderr.len() < 20_000, "{}", taken.stderr.len());
    })
}

#[test]
fn a_provider_s_failure_is_never_a_session_s_behaviour() -> Result<()> {
    let failure = |ends: bool| between(json!({"failure": {"status": 529, "retries": 2, "ends": ends}}));
    let cases: [(Value, &[&str]); 3] = [
        (failure(true), &["529"]),
        (failure(false), &["529"]),
        (between(json!({"failure": {"status": 401}})), &["401"]),
    ];
    each(cases, |taken, words| taken.failed(10, words))?;
    each([(between(json!({"retry": 529})), &[][..])], |taken, _| {
        taken.recorded().unwrap();
        assert!(taken.statement("Provider").unwrap().contains("Requests tried again: 1."));
    })
}

#[test]
fn a_session_without_a_cost_is_not_recorded_as_one_that_cost_nothing() -> Result<()> {
    let costing = |text: &str| json!({"turns": [{"text": "Done."}], "cost_usd": text});
    let cases: [(Value, &[&str]); 3] =
        [(costing("null"), &["cost"]), (costing("\"much\""), &["cost"]), (costing("-1"), &["cost"])];
    each(cases, |taken, words| taken.failed(10, words))?;
    let studio = Studio::new()?;
    for (name, usd, cents) in
        [("nothing", "0", 0), ("half", "0.005", 1), ("little", "1e-9", 1), ("much", "12345.678", 1_234_568)]
    {
        let taken = studio.take(name)?.script(&costing(usd))?.run()?;
        assert_eq!(taken.recorded()?.identity.cost_cents, cents, "{usd}");
    }
    Ok(())
}

#[test]
fn a_session_that_used_up_its_turns_is_recorded() -> Result<()> {
    let studio = Studio::new()?;
    let call = json!({"calls": [{"tool": "Bash", "input": {"command": "true"}}]});
    let script = json!({"turns": [call, call, call, call, {"text": "current WM-DR-0007"}]});
    let taken = studio.take("capped")?.set("--probe", "WM-PR-0002").set("--max-turns", "2").script(&script)?.run()?;
    let transcript = taken.recorded()?;
    assert_eq!(transcript.events[0].answer, Answer::None);
    assert!(transcript.events[0].calls.as_ref().is_some_and(|calls| calls.len() < 4));
    assert!(taken.stdout.contains("the turn cap stopped the session"), "{}", taken.stdout);
    assert!(taken.statement("Session")?.starts_with("The turn cap stopped the session"));
    // The cap of the tier holds where none is named.
    studio.rewrite(".headwater/probe.yml", |text| text.replacen("max_turns: 30", "max_turns: 1", 1))?;
    let taken = studio.take("tier")?.script(&script)?.run()?;
    taken.recorded()?;
    assert!(taken.statement("Session")?.contains("a turn cap of 1"), "{}", taken.statement("Session")?);
    Ok(())
}

#[test]
fn a_child_that_outlives_its_harness_is_ended_with_the_session() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("child")?;
    let script = with(json!({"leave_child": "sleep 300"}));
    let start = Instant::now();
    let taken = take.script(&script)?.run()?;
    taken.recorded()?;
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    // Neither does one that says more, whatever it says.
    let late = "(sleep 0.2; echo '{\"type\":\"assistant\"}') & sleep 300";
    let taken = studio.take("late")?.script(&with(json!({"leave_child": late})))?.run()?;
    taken.left_nothing();
    Ok(())
}

#[test]
fn a_background_command_of_the_session_is_ended_with_it() -> Result<()> {
    let studio = Studio::new()?;
    let command = "setsid sleep 300 >/dev/null 2>&1 & nohup sleep 300 >/dev/null 2>&1 & (trap '' TERM INT HUP; sleep 300 >/dev/null 2>&1) &";
    let script = json!({"turns": [{"calls": [{"tool": "Bash", "input": {"command": command}}]}, {"text": "Done."}]});
    studio.take("background")?.script(&script)?.run()?.recorded()?;
    Ok(())
}

#[test]
fn a_harness_that_stays_after_its_result_is_ended_and_that_is_stated() -> Result<()> {
    let studio = Studio::new()?;
    let script = with(json!({"stay_ms": 300_000}));
    let taken = studio.take("stays")?.set("--max-idle-seconds", "1").script(&script)?.run()?;
    taken.recorded()?;
    let told = taken.statement("Session")?;
    assert!(told.contains("The harness stayed after its result line and was ended."), "{told}");
    Ok(())
}

#[test]
fn a_session_that_says_nothing_or_takes_too_long_is_stopped() -> Result<()> {
    let studio = Studio::new()?;
    let silent = with(json!({"silent_after_lines": 3}));
    let take = studio.take("silent")?.set("--max-idle-seconds", "1").script(&silent)?;
    take.run()?.failed(14, &["1 s without output"]);
    let slow = between(json!({"sleep_ms": 300_000}));
    studio.take("slow")?.set("--max-seconds", "1").script(&slow)?.run()?.failed(14, &["limit of 1 s"]);
    // One that never says a word leaves no log.
    let mute = with(json!({"silent_after_lines": 0}));
    let taken = studio.take("mute")?.set("--max-idle-seconds", "1").script(&mute)?.run()?;
    assert_eq!((taken.status, taken.document.is_none(), taken.raw), (Some(14), true, None), "{}", taken.stderr);
    assert!(taken.stderr.ends_with("may have spent\n"), "{}", taken.stderr);
    Ok(())
}

#[test]
fn a_harness_that_ends_before_it_says_anything_has_failed() -> Result<()> {
    let studio = Studio::new()?;
    for (name, misbehave, words) in [
        ("status", json!({"exit_at_once": true, "end": {"exit": 5}}), "exited 5"),
        ("signal", json!({"exit_at_once": true, "end": {"signal": 6}}), "exited 134"),
        ("quiet", json!({"exit_at_once": true}), "exited 0"),
    ] {
        let taken = studio.take(name)?.script(&with(misbehave))?.run()?;
        assert_eq!((taken.status, taken.document.is_none()), (Some(10), true), "{}", taken.stderr);
        assert!(taken.stderr.contains(words) && taken.stderr.contains("  remedy: "), "{}", taken.stderr);
        taken.left_nothing();
    }
    let bad = json!({"turns": [{"text": 1}]});
    let taken = studio.take("bad-script")?.script(&bad)?.run()?;
    assert_eq!(taken.status, Some(10), "{}", taken.stderr);
    assert!(taken.stderr.contains("exited 64") && taken.stderr.contains("turn 1"), "{}", taken.stderr);
    Ok(())
}

#[test]
fn a_harness_that_cannot_be_executed_inside_has_failed() -> Result<()> {
    let studio = Studio::new()?;
    let token =
        json!({"claudeAiOauth": {"accessToken": "sk-invented-0123456789", "expiresAt": 32_503_680_000_000_u64}});
    let credentials = studio.user.file("credentials.json", token.to_string())?;
    for (name, text) in [("interpreter", "#!/nowhere/sh\n"), ("format", "\x7fELF of a kind")] {
        let taken = studio.take(name)?.program(text)?.set("--credentials", &credentials).run()?;
        assert_eq!((taken.status, taken.document.is_none()), (Some(10), true), "{}", taken.stderr);
        assert!(taken.stderr.contains("  remedy: "), "{}", taken.stderr);
        taken.left_nothing();
    }
    Ok(())
}

#[test]
fn everything_that_a_stream_may_hold_is_recorded() -> Result<()> {
    let studio = Studio::new()?;
    let deep = format!("{{\"type\":\"system\",\"subtype\":\"x\",\"deep\":{}{}}}", "[".repeat(3_000), "]".repeat(3_000));
    let scripts = [
        between(json!({"raw": "{\"type\":\"system\",\"subtype\":\"new\",\"text\":\"\\ud800\"}"})),
        between(json!({"raw": deep})),
        between(
            json!({"raw": "{\"type\":\"system\",\"subtype\":\"a\",\"n\":\"b\",\"n\":123456789012345678901234567890}"}),
        ),
        between(json!({"raw": "\n \t\n\r\n"})),
        between(json!({"raw": "{\"type\":\"of_a_new_kind\",\"x\":1}"})),
        between(json!({"text": "x\u{2028}\u{2029}\u{85}\u{0}", "repeat": 100_000})),
        json!({"turns": [
            {"calls": [{"tool": "Bash", "input": {"command": format!(": {}", "long ".repeat(100_000))}}]},
            {"text": "Done."}
        ]}),
    ];
    for (number, script) in scripts.into_iter().enumerate() {
        let taken = studio.take(&number.to_string())?.script(&script)?.run()?;
        assert_eq!(taken.recorded()?.events[0].calls.as_ref().map(Vec::len), Some(1), "{number}");
    }
    Ok(())
}

#[test]
fn a_lone_surrogate_in_a_call_is_recorded_and_confirmed() -> Result<()> {
    let studio = Studio::new()?;
    let call = r#"{"type":"assistant","message":{"model":"claude-haiku-4-5-20251001","role":"assistant","content":[{"type":"tool_use","id":"toolu_lone","name":"Read","input":{"file_path":"/a\ud800b"}}]},"parent_tool_use_id":null}"#;
    let taken = studio.take("lone")?.script(&between(json!({"raw": call})))?.run()?;
    let transcript = taken.recorded()?;
    assert_eq!(transcript.events[0].calls.as_ref().map(Vec::len), Some(2));
    studio.ask(&["probe", "record", &taken.path.display().to_string()])?;
    Ok(())
}

#[test]
fn a_flood_of_lines_is_read_with_the_rest() -> Result<()> {
    let studio = Studio::new()?;
    let taken = studio.take("flood")?.script(&with(json!({"flood_bytes": 20_000_000})))?.run()?;
    taken.recorded()?;
    assert!(taken.raw.is_some_and(|raw| raw.len() > 20_000_000));
    Ok(())
}

#[test]
fn a_tree_that_a_session_leaves_behind_is_hostile_and_hurts_nobody() -> Result<()> {
    let studio = Studio::new()?;
    let workspace = studio.workspace("workspace")?;
    let outside = studio.user.file("outside", "untouched")?;
    let command = format!(
        "mkfifo docs/fifo; ln -s {} docs/link.md; ln -s / root; ln -s loop loop; printf x >\"$(printf 'a\\nb.md')\"; \
         printf x >\"$(printf 'a\\377.md')\"; d=deep; mkdir -p $d; \
         for i in $(seq 60); do d=$d/deeper; done; mkdir -p $d; echo x >$d/file; \
         truncate -s 3G sparse; chmod 000 docs/notes/glossary.md; rm -rf .headwater; ln -s /etc .headwater; \
         mkfifo \"$HEADWATER_SHADOW_LOG_DIR/fifo\"; ln -s /etc/passwd \"$HEADWATER_SHADOW_LOG_DIR/link\"",
        outside.display()
    );
    let script = json!({"turns": [{"calls": [{"tool": "Bash", "input": {"command": command}}]}, {"text": "Done."}]});
    let taken = studio.take("hostile")?.set("--workspace", &workspace).script(&script)?.run()?;
    taken.recorded()?;
    let document = taken.document.context("a transcript")?;
    assert!(!document.contains("untouched") && fs::read_to_string(outside)? == "untouched");
    Ok(())
}

#[test]
fn an_engine_that_changes_its_mind_after_the_session_costs_no_raw_log() -> Result<()> {
    let studio = Studio::new()?;
    let engine = studio.user.file(
        "engine",
        format!(
            "#!/bin/sh\n[ \"$2\" = record ] && {{ echo 'headwater: no' >&2; exit 1; }}\nexec {} \"$@\"\n",
            studio.engine.display()
        ),
    )?;
    fs::set_permissions(&engine, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let workspace = studio.workspace("workspace")?;
    let take = studio.take("unconfirmed")?.set("--engine", &engine).set("--workspace", &workspace);
    take.run()?.failed(1, &["does not confirm", "kept"]);
    Ok(())
}

#[test]
fn a_corpus_that_changes_while_a_session_runs_is_noticed_or_does_not_matter() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("moved")?.script(&between(json!({"sleep_ms": 700})))?;
    let mut command = take.command();
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let running = command.spawn()?;
    // The session has started once something is in its log.
    let raw = take.out.join("moved.raw.jsonl");
    let start = Instant::now();
    while fs::metadata(&raw).map_or(0, |m| m.len()) == 0 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::remove_file(studio.corpus.join("docs/probes/where-is-the-retention-limit.md"))?;
    corpus::commit(&studio.user, &studio.corpus)?;
    let taken = take.taken(&running.wait_with_output()?)?;
    assert!([Some(0), Some(1)].contains(&taken.status), "{}", taken.stderr);
    assert!(taken.running.is_empty());
    assert_eq!(taken.status == Some(0), taken.document.is_some());
    Ok(())
}

#[test]
fn a_session_that_closes_its_workspace_is_recorded_all_the_same() -> Result<()> {
    let studio = Studio::new()?;
    let script = json!({"turns": [
        {"calls": [{"tool": "Bash", "input": {"command": "echo x > new.txt; chmod 0 ."}}]}, {"text": "Done."}
    ]});
    let transcript = studio.take("closed")?.script(&script)?.run()?.recorded()?;
    let produced = transcript.events[0].produced.as_deref().context("produced")?;
    assert_eq!(produced.iter().map(|p| p.path.as_str()).collect::<Vec<_>>(), ["new.txt"]);
    Ok(())
}

#[test]
fn a_standard_error_that_holds_a_secret_is_withheld() -> Result<()> {
    const SECRET: &str = "sk-invented-for-standard-error-0123456789";
    let studio = Studio::new()?;
    let login = json!({"claudeAiOauth": {"accessToken": SECRET, "scopes": ["user:inference"]}}).to_string();
    let credentials = studio.user.file("credentials.json", login)?;
    let program = "#!/bin/sh\necho '{}'\ncat \"$CLAUDE_CONFIG_DIR/.credentials.json\" >&2\nexit 3\n";
    let taken = studio.take("said")?.program(program)?.set("--credentials", &credentials).run()?;
    assert_ne!(taken.status, Some(0));
    assert!(!taken.stderr.contains(SECRET) && taken.stderr.contains("withheld"), "{}", taken.stderr);
    Ok(())
}
