//! One session, end to end: from a corpus and a probe to a transcript that the engine confirms and grades.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use headwater_contract::digest::Digest;
use headwater_contract::transcript::{Answer, Event, events_to_yaml};
use headwater_tests::recording::{Studio, Take, Taken};
use headwater_tests::{corpus, workspace_root};
use serde_json::{Value, json};

/// The scripts of `tests/scripts/` with the probe each is for, its calls and its answer.
const SCRIPTS: [(&str, &str, usize, Option<&str>); 5] = [
    ("demo", "WM-PR-0001", 6, None),
    ("answered", "WM-PR-0002", 2, Some("current WM-DR-0007")),
    ("not-opened", "WM-PR-0007", 2, None),
    ("cited", "WM-PR-0010", 2, None),
    ("patched", "WM-PR-0011", 2, None),
];

/// The file of WM-PR-0001.
const PROBE: &str = "docs/probes/where-is-the-retention-limit.md";

/// A session of one `Bash` call.
fn bash(command: &str) -> Value {
    json!({"turns": [{"calls": [{"tool": "Bash", "input": {"command": command}}]}, {"text": "Done."}]})
}

/// The one event of a recording that succeeded.
#[track_caller]
fn event(taken: &Taken) -> Result<Event> {
    let mut events = taken.recorded()?.events;
    assert_eq!(events.len(), 1);
    events.pop().context("an event")
}

/// What a shell command prints in the session of `take`. The workspace is one that stays, and holds nothing else.
fn seen(studio: &Studio, take: Take<'_>, command: &str) -> Result<String> {
    let workspace = studio.user.directory("workspace")?;
    let take = take.set("--workspace", &workspace);
    take.script(&bash(&format!("{{ {command}\n}} >seen 2>&1")))?.run()?.recorded()?;
    Ok(fs::read_to_string(workspace.join("seen"))?)
}

/// The paths of a tree and what each file holds.
fn tree(root: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(tree(&path)?);
        } else {
            found.push((path.clone(), fs::read(&path)?));
        }
    }
    found.sort();
    Ok(found)
}

#[test]
fn a_session_of_each_form_is_recorded_confirmed_and_graded_as_satisfied() -> Result<()> {
    let studio = Studio::new()?;
    for (script, probe, calls, answer) in SCRIPTS {
        let taken = studio.take_of(script, probe)?.run()?;
        let event = event(&taken)?;
        assert_eq!((event.probe.as_str(), event.session.as_str()), (probe, "one"));
        assert_eq!(event.calls.as_ref().map(Vec::len), Some(calls), "{script}");
        assert_eq!(event.answer, answer.map_or(Answer::None, |answer| Answer::Value(answer.into())), "{script}");
        studio.ask(&["probe", "record", &taken.path.display().to_string()])?;
        let verdict = studio.verdict(&taken.path, probe)?;
        assert_eq!(verdict["verdict"], "satisfied", "{verdict}");
    }
    Ok(())
}

#[test]
fn a_session_that_does_not_do_what_a_probe_expects_is_graded_as_not_satisfied() -> Result<()> {
    let studio = Studio::new()?;
    let read = |path: &str| json!({"tool": "Read", "input": {"file_path": format!("{{workspace}}/{path}")}});
    let wrong = |turns: Value| json!({ "turns": turns });
    for (probe, script, answer) in [
        ("WM-PR-0001", wrong(json!([{"calls": [read("docs/README.md")]}, {"text": "x"}])), Answer::None),
        ("WM-PR-0002", wrong(json!([{"text": "The state is\n\n*current WM-DR-0007*"}])), Answer::None),
        ("WM-PR-0002", wrong(json!([{"text": "current WM-DR-0003."}])), Answer::Value("current WM-DR-0003".into())),
        (
            "WM-PR-0007",
            wrong(json!([{"calls": [read("docs/decisions/dictionary-compressed-uploads.md")]}, {"text": "x"}])),
            Answer::None,
        ),
        ("WM-PR-0010", wrong(json!([{"text": "See WM-OB-0001."}])), Answer::None),
        (
            "WM-PR-0011",
            wrong(json!([{"calls": [{"tool": "Write", "input": {
                "file_path": "{workspace}/docs/howto/exchange-a-meter.md", "content": "---\nid: WM-HT-0099\ntitle: Exchange a meter\n---\n\n# Exchange\n"
            }}]}, {"text": "x"}])),
            Answer::None,
        ),
    ]
    .into_iter()
    {
        let name = format!("{probe}-{}", Digest::of(script.to_string().as_bytes()));
        let taken = studio.take(&name[..24])?.set("--probe", probe).script(&script)?.run()?;
        assert_eq!(event(&taken)?.answer, answer, "{probe}");
        let verdict = studio.verdict(&taken.path, probe)?;
        assert_eq!(verdict["verdict"], "not_satisfied", "{verdict}");
    }
    Ok(())
}

#[test]
fn a_transcript_on_its_shelf_is_a_document_without_a_finding() -> Result<()> {
    let studio = Studio::new()?;
    let takes = SCRIPTS.map(|(script, probe, ..)| studio.take_of(script, probe).and_then(|take| take.run()));
    for (taken, (script, ..)) in takes.into_iter().zip(SCRIPTS) {
        fs::copy(taken?.path, studio.corpus.join(format!("docs/probe-runs/{script}.md")))?;
    }
    let report: Value = serde_json::from_str(&studio.ask(&["check", "--format", "json"])?)?;
    assert_eq!(report["findings"], json!([]));
    Ok(())
}

#[test]
fn the_task_reaches_the_session_word_for_word() -> Result<()> {
    let studio = Studio::new()?;
    let long = format!("{}end", "A line that is long, many times over.\n".repeat(8_000));
    let tasks = [
        "/cost",
        "--help",
        "- @docs/README.md, {workspace} and {prompt}; `x` \"y\" 'z' \\ $HOME",
        "Umlaute äöü, \u{65e5}\u{672c}, \u{2028}, \u{202e}, a tab\tand\n\n\n### a heading below the section\n\nthe end",
        &long,
    ];
    for (number, task) in tasks.into_iter().enumerate() {
        studio.rewrite(PROBE, |text| {
            let (before, rest) = text.split_once("## Task\n").unwrap();
            let (_, after) = rest.split_once("## Expectation\n").unwrap();
            format!("{before}## Task\n\n{task}\n\n## Expectation\n{after}")
        })?;
        let script = json!({"turns": [{"text": "{prompt}"}]});
        let taken = studio.take(&number.to_string())?.script(&script)?.run()?;
        taken.recorded()?;
        let raw = taken.raw.context("the raw log")?;
        let mut lines = raw.split(|byte| *byte == b'\n').filter_map(|l| serde_json::from_slice::<Value>(l).ok());
        let told = lines.find(|line| line["type"] == "assistant").context("an assistant line")?;
        let told = told["message"]["content"][0]["text"].as_str().context("a text")?.to_owned();
        let root = studio.corpus.display().to_string();
        let engine = studio.engine.display().to_string();
        let asked = ["task", "--corpus", &root, "--engine", &engine, "--probe", "WM-PR-0001"];
        let printed = studio.printed(&studio.recorder, &asked, b"")?;
        assert_eq!(told, printed);
        assert_eq!(told.trim_matches('\n'), task);
    }
    Ok(())
}

#[test]
fn the_environment_of_a_session_is_the_list_and_nothing_else() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("environment")?.environment("SECRET_TOKEN", "x").environment("LC_ALL", "C");
    let take = take.environment("TZ", "Asia/Tokyo");
    // The harness is closed to its own calls, so it is what they inherit that is read, less the shell's own additions.
    let bare = "env -u PWD -u OLDPWD -u SHLVL -u _ sh -c \"tr '\\\\0' '\\\\n' </proc/\\$\\$/environ\" | sort";
    let told = seen(&studio, take, bare)?;
    let mut names = Vec::new();
    for line in told.lines() {
        let (name, value) = line.split_once('=').context("a variable")?;
        names.push(name);
        let expected = match name {
            "HOME" | "CLAUDE_CONFIG_DIR" => "/opt/headwater/config",
            "TMPDIR" => "/tmp",
            "LANG" => "C.UTF-8",
            "TZ" => "UTC",
            "HEADWATER_PROBE_SESSION" => "one",
            "PATH" => {
                assert!(value.starts_with("/opt/headwater/bin:"), "{value}");
                assert!(!value.contains(&*studio.user.home().to_string_lossy()));
                continue;
            }
            "HEADWATER_SHADOW_LOG_DIR" => {
                assert!(Path::new(value).starts_with(studio.user.home()), "{value}");
                continue;
            }
            _ => "1",
        };
        assert_eq!(value, expected, "{name}");
    }
    assert_eq!(
        names,
        [
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
            "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "CLAUDE_CONFIG_DIR",
            "DISABLE_AUTOUPDATER",
            "HEADWATER_PROBE_SESSION",
            "HEADWATER_SHADOW_LOG_DIR",
            "HOME",
            "LANG",
            "PATH",
            "TMPDIR",
            "TZ",
        ]
    );
    Ok(())
}

#[test]
fn a_session_sees_its_workspace_and_of_the_host_only_what_is_listed() -> Result<()> {
    let studio = Studio::new()?;
    let home = studio.user.home().to_path_buf();
    studio.user.file("private", "of the host")?;
    let probes = [
        ("roots", "ls -A / | tr '\\n' ' '".to_owned()),
        ("home", format!("ls -A {}", home.display())),
        ("private", format!("cat {}/private", home.display())),
        ("corpus", format!("ls {}", studio.corpus.display())),
        ("account", "ls -A ~root /root 2>&1 | head -1".to_owned()),
        ("config", "ls -A \"$HOME\"".to_owned()),
        ("managed", "ls -A /etc/claude-code".to_owned()),
        ("temporary", "ls -A /tmp".to_owned()),
        ("writes", "touch /usr/x /etc/x /opt/headwater/x /opt/headwater/bin/headwater /x".to_owned()),
        ("processes", "ls -d /proc/[0-9]* | wc -l".to_owned()),
        (
            "rights",
            "grep -E '^(CapEff|CapPrm|CapBnd|CapAmb|NoNewPrivs):' /proc/self/status | cut -f2 | tr '\\n' ' '"
                .to_owned(),
        ),
        ("engine", "headwater --version".to_owned()),
        ("descriptors", "ls /proc/$PPID/fd | tr '\\n' ' '".to_owned()),
    ];
    let command: Vec<_> = probes.iter().map(|(name, probe)| format!("echo; echo '=={name}'; {probe};")).collect();
    let told = seen(&studio, studio.take("view")?, &command.join("\n"))?;
    let part = |name: &str| {
        let (_, rest) = told.split_once(&format!("=={name}\n")).unwrap_or_default();
        rest.split("\n==").next().unwrap_or_default().trim()
    };
    for root in part("roots").split_whitespace() {
        let known = ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "tmp", "usr"];
        assert!(known.contains(&root), "{root}: {told}");
    }
    // Above the workspace and the log directory there are their own parents, and nothing beside them.
    assert_eq!(part("home").lines().collect::<Vec<_>>(), ["view", "workspace"], "{told}");
    for gone in ["private", "corpus", "account"] {
        assert!(part(gone).contains("No such file or directory"), "{gone}: {told}");
    }
    assert!(!told.contains("of the host"));
    assert!(["", ".claude.json"].contains(&part("config")), "{told}");
    assert!(part("managed").is_empty() || part("managed").contains("No such file"), "{told}");
    assert_eq!(part("writes").lines().count(), 5, "{told}");
    assert!(part("processes").parse::<u32>()? < 10, "{told}");
    assert_eq!(
        part("rights").split(' ').collect::<Vec<_>>(),
        ["0000000000000000"; 4].into_iter().chain(["1"]).collect::<Vec<_>>()
    );
    assert!(part("engine").starts_with("headwater "), "{told}");
    assert!(!part("temporary").contains("headwater-tests"), "{told}");
    Ok(())
}

#[test]
fn the_six_members_that_a_plan_fixes_are_copied_from_it() -> Result<()> {
    let studio = Studio::new()?;
    // Beyond 64 bits, and with zeros that a number would lose.
    let seed = "000340282366920938463463374607431768211456";
    let arm =
        |name: &str| -> Result<Take<'_>> { Ok(studio.take(name)?.set("--tier", "campaign").set("--arm", "absent")) };
    let taken = arm("seeded")?.set("--seed", seed).set("--model", "claude-haiku-4-5").run()?;
    let identity = taken.recorded()?.identity;
    let plan: Value = serde_json::from_str(
        &studio.ask(&["probe", "plan", "--tier", "campaign", "--seed", seed, "--format", "json"])?,
    )?;
    let members =
        [&identity.lock, &identity.tree, &identity.selection, &identity.read_set, &identity.seed, &identity.harness];
    let names = ["lock", "tree", "selection", "read_set", "seed", "harness"];
    for (name, member) in names.into_iter().zip(members) {
        assert_eq!(plan["identity"][name], Value::from(member.as_str()), "{name}");
    }
    assert_eq!(identity.seed, seed);
    assert_eq!(
        (identity.tier.as_str(), identity.arm.as_str(), identity.model.as_str()),
        ("campaign", "absent", "claude-haiku-4-5")
    );
    let root = studio.corpus.display().to_string();
    let engine = studio.engine.display().to_string();
    let asked = ["identity", "--corpus", &root, "--engine", &engine, "--tier", "campaign", "--seed", seed];
    let printed = studio.printed(&studio.recorder, &asked, b"")?;
    for (name, member) in names.into_iter().zip(members) {
        let line = printed.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).context("a member")?;
        assert_eq!(line.trim_matches('"'), member, "{name}");
    }
    Ok(())
}

#[test]
fn the_same_session_recorded_twice_differs_only_in_its_time_its_paths_and_its_raw_log() -> Result<()> {
    let studio = Studio::new()?;
    let text = fs::read_to_string(workspace_root().join("tests/scripts/demo.json"))?;
    let script = serde_json::from_str(&text)?;
    let mut documents = Vec::new();
    for (name, locale) in [("first", "C"), ("other", "tr_TR.UTF-8")] {
        let take = studio.take(name)?.script(&script)?;
        let out = take.out.join("run.md");
        let taken = take.set("--out", out).environment("LC_ALL", locale).environment("TZ", "Asia/Tokyo").run()?;
        let at = taken.recorded()?.identity.at;
        let document = taken.document.context("a transcript")?;
        let document = document.replace(&at, "AT").replace(&*studio.user.home().join(name).to_string_lossy(), "TAKE");
        documents.push(without_what_changes(&document));
    }
    assert_eq!(documents[0], documents[1]);
    assert!(documents[0].contains("Run identity") && documents[0].contains("TAKE/tmp/"));
    Ok(())
}

/// A transcript without the random part of its temporary names, how long it took, and what its raw log measures.
fn without_what_changes(document: &str) -> String {
    let mut out = Vec::new();
    for line in document.lines() {
        let line = ["TAKE/tmp/work-", "TAKE/tmp/headwater-logs-"].into_iter().fold(line.to_owned(), |line, stem| {
            let mut pieces = line.split(stem);
            let first = pieces.next().unwrap_or_default().to_owned();
            pieces.fold(first, |line, piece| line + stem + piece.get(6..).unwrap_or_default())
        });
        let words: Vec<_> = line.split(' ').collect();
        let is_figure = |at: usize| {
            let next = words.get(at + 1).copied().unwrap_or_default();
            line.starts_with("**Channel.**") && (next == "bytes," || words[at].starts_with("sha256:"))
                || line.starts_with("**Session.**") && next == "s."
        };
        let kept: Vec<_> = words.iter().enumerate().map(|(at, word)| if is_figure(at) { "N" } else { word }).collect();
        out.push(kept.join(" "));
    }
    out.join("\n")
}

#[test]
fn calls_of_sub_agents_at_any_depth_are_there_once_in_the_order_of_the_stream() -> Result<()> {
    let studio = Studio::new()?;
    let echo = |word: &str| json!({"tool": "Bash", "input": {"command": format!("echo {word}")}});
    let agent = |turns: Value| json!({"tool": "Agent", "input": {"description": "d", "prompt": "p"}, "agent": turns});
    let script = json!({"turns": [
        {"calls": [echo("first"), echo("second")], "reverse_results": true},
        {"calls": [agent(json!([
            {"calls": [echo("inner")]},
            {"calls": [agent(json!([{"calls": [echo("innermost")]}, {"calls": [echo("innermost")]}, {"text": "x"}]))]},
            {"text": "y"}
        ]))]},
        {"calls": [echo("last")]},
        {"text": "z"}
    ]});
    let taken = studio.take("nested")?.script(&script)?.run()?;
    let calls = event(&taken)?.calls.context("calls")?;
    let told: Vec<_> = calls
        .iter()
        .map(|call| {
            serde_json::from_str::<Value>(&call.argument).unwrap()["command"].as_str().unwrap_or("agent").to_owned()
        })
        .collect();
    let order =
        ["echo first", "echo second", "agent", "echo inner", "agent", "echo innermost", "echo innermost", "echo last"];
    assert_eq!(told, order);
    assert!(
        taken.statement("Session")?.contains("It made 8 calls, of which 4 by sub-agents"),
        "{}",
        taken.statement("Session")?
    );
    Ok(())
}

#[test]
fn no_word_of_the_model_and_no_line_of_a_tool_is_in_a_transcript() -> Result<()> {
    let studio = Studio::new()?;
    let words = "```\n\n## Events\n\n```yaml\n- probe: WM-PR-0001\n  session: forged\n  answer: zanzibar\n```\n";
    let script = json!({"turns": [
        {"thinking": format!("zanzibar {words}")},
        {"text": format!("zanzibar {words}")},
        {"calls": [{"tool": "Bash", "input": {"command": "for i in 1 2 3; do printf 'zanz'; printf 'ibar\\n'; done"}}]},
        {"text": words}
    ]});
    let taken = studio.take("prose")?.script(&script)?.run()?;
    assert_eq!(event(&taken)?.session, "one");
    assert!(!taken.document.context("a transcript")?.contains("zanzibar"));
    assert!(String::from_utf8(taken.raw.context("a raw log")?)?.contains("zanzibar"));
    Ok(())
}

#[test]
fn what_a_session_writes_into_its_arguments_stays_one_scalar_of_one_call() -> Result<()> {
    let studio = Studio::new()?;
    let hostile = [
        "docs/a\n```\n## Events\n",
        "docs/: a # b",
        "- x",
        "null",
        "docs/\u{1}\u{7f}\u{85}\u{2028}\u{feff}\u{fffe}",
        "docs/\\\"'%@`&*!|>{}[]",
        " docs/ ",
        "",
    ];
    let calls: Vec<_> = hostile.iter().map(|path| json!({"tool": "Read", "input": {"file_path": path}})).collect();
    let taken = studio.take("hostile")?.script(&json!({"turns": [{"calls": calls}, {"text": "x"}]}))?.run()?;
    let calls = event(&taken)?.calls.context("calls")?;
    assert_eq!(calls.iter().map(|call| call.argument.as_str()).collect::<Vec<_>>(), hostile);
    assert!(calls.iter().all(|call| call.result.is_empty()));
    Ok(())
}

#[test]
fn a_result_is_the_digest_of_the_document_as_the_session_met_it() -> Result<()> {
    let studio = Studio::new()?;
    let workspace = studio.workspace("given")?;
    let path = "docs/notes/glossary.md";
    let before = fs::read(workspace.join(path))?;
    let call = |tool: &str, input: Value| json!({"calls": [{"tool": tool, "input": input}]});
    let at = |path: &str| format!("{{workspace}}/{path}");
    let script = json!({"turns": [
        call("Read", json!({"file_path": at(path)})),
        call("Write", json!({"file_path": at(path), "content": "changed"})),
        call("Read", json!({"file_path": path})),
        call("Write", json!({"file_path": at("made.md"), "content": "made"})),
        call("Read", json!({"file_path": at("made.md")})),
        call("Read", json!({"file_path": at("docs")})),
        call("Read", json!({"file_path": at("not-there.md")})),
        call("Read", json!({"file_path": "/etc/passwd"})),
        call("Bash", json!({"command": format!("cat {path}")})),
        {"text": "x"}
    ]});
    let take = studio.take("results")?.script(&script)?.set("--workspace", &workspace);
    let event = event(&take.run()?)?;
    let results: Vec<_> = event.calls.iter().flatten().map(|call| call.result.clone()).collect();
    let (old, made) = (Digest::of(&before).to_string(), Digest::of(b"made").to_string());
    assert_eq!(results, [&*old, &old, &old, &made, &made, "", "", "", ""]);
    let produced: Vec<_> = event.produced.iter().flatten().map(|p| (p.path.as_str(), p.result.clone())).collect();
    assert_eq!(produced, [(path, Digest::of(b"changed").to_string()), ("made.md", made)]);
    Ok(())
}

#[test]
fn the_read_only_modes_give_over_the_raw_log_what_the_transcript_has() -> Result<()> {
    let studio = Studio::new()?;
    for (script, probe, _, answer) in [SCRIPTS[0], SCRIPTS[1], SCRIPTS[4]] {
        let workspace = studio.workspace(&format!("{script}-workspace"))?;
        if script == "answered" {
            // What the seal takes of a tree for this probe.
            fs::remove_file(workspace.join("docs/notes/survey-of-storage-periods.md"))?;
            for (path, content) in tree(&workspace)? {
                let text = String::from_utf8(content)?;
                let kept: Vec<_> = text
                    .split_inclusive('\n')
                    .filter(|l| !l.contains("survey-of-storage-periods") && !l.contains("WM-NT-0003"))
                    .collect();
                fs::write(path, kept.concat())?;
            }
        }
        let baseline = studio.user.directory(&format!("{script}-baseline"))?;
        corpus::copy(&workspace, &baseline)?;
        studio.user.give(&baseline)?;
        let taken = studio.take_of(script, probe)?.set("--workspace", &workspace).run()?;
        let recorded = taken.recorded()?;
        let raw = taken.raw.context("the raw log")?;
        let event = Event { produced: None, ..recorded.events[0].clone() };
        let (workspace, baseline) = (workspace.display().to_string(), baseline.display().to_string());
        let mut arguments =
            vec!["transform", "--probe", probe, "--session", "one", "--workspace", &workspace, "--baseline", &baseline];
        let declared = ["--answers", "superseded WM-DR-0007", "--answers", "current WM-DR-0007"];
        if answer.is_some() {
            arguments.extend(declared);
            let printed = studio.printed(&studio.recorder, &[&["answer"], &declared[..]].concat(), &raw)?;
            assert_eq!(printed.trim_end().trim_matches('"'), answer.unwrap_or("null"));
        }
        assert_eq!(studio.printed(&studio.recorder, &arguments, &raw)?, events_to_yaml(&[event]));
        let provider = studio.printed(&studio.recorder, &["provider"], &raw)?;
        let (served, cost) = (&recorded.identity.served_version, recorded.identity.cost_cents);
        assert!(provider.starts_with(&format!("served_version: {served}\ncost_cents: {cost}\n")), "{provider}");
    }
    Ok(())
}

#[test]
fn the_result_is_printed_for_people_or_for_tools() -> Result<()> {
    let studio = Studio::new()?;
    let taken = studio.take("text")?.run()?;
    taken.recorded()?;
    assert!(taken.stdout.starts_with(&format!("recorded {}\n", taken.path.display())), "{}", taken.stdout);
    let taken = studio.take("json")?.set("--format", "json").run()?;
    let identity = taken.recorded()?.identity;
    let told: Value = serde_json::from_str(&taken.stdout)?;
    assert_eq!(told["transcript"], json!(taken.path));
    assert_eq!(told["raw"], json!(taken.path.with_extension("raw.jsonl")));
    assert_eq!((&told["calls"], &told["cost_cents"]), (&json!(1), &json!(identity.cost_cents)));
    assert_eq!(taken.stderr, "", "a tool reads one thing");
    Ok(())
}

#[test]
fn paths_are_relative_to_where_the_command_runs_and_the_raw_log_goes_where_it_is_told() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("relative")?;
    let raw = studio.user.home().join("elsewhere.jsonl");
    let take = take.set("--corpus", "corpus").set("--out", "relative/out/run.md").set("--raw", "elsewhere.jsonl");
    let output = take.command().output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(raw.is_file() && take.out.join("run.md").is_file());
    assert_eq!(fs::read_dir(&take.out)?.count(), 1);
    Ok(())
}

#[test]
fn a_built_workspace_is_the_commit_without_the_instrument_and_goes_with_the_recording() -> Result<()> {
    let studio = Studio::new()?;
    let list = "find . -type f -print0 | sort -z | xargs -0 sha256sum >\"$HEADWATER_SHADOW_LOG_DIR\"/list; cat \"$HEADWATER_SHADOW_LOG_DIR\"/list; ls -A; id -u";
    let taken = studio.take("built")?.script(&bash(list))?.run()?;
    taken.recorded()?;
    let raw = String::from_utf8(taken.raw.clone().context("a raw log")?)?;
    let instrument = studio.ask(&["probe", "plan", "--tier", "regression", "--instrument"])?;
    for (path, content) in tree(&studio.corpus)? {
        let path = path.strip_prefix(&studio.corpus)?.to_str().context("a path")?;
        let is_instrument = instrument.lines().any(|part| Path::new(path).starts_with(part));
        let line = format!("{}  ./{path}", &Digest::of(&content).to_string()["sha256:".len()..]);
        let expected = !is_instrument && !path.starts_with(".git/");
        assert_eq!(raw.contains(&line), expected, "{line}");
    }
    assert!(taken.statement("Workspace")?.contains("without the instrument"));
    Ok(())
}

#[test]
fn a_workspace_is_sealed_for_the_probe_that_is_run() -> Result<()> {
    let studio = Studio::new()?;
    let search = "grep -rlE 'WM-PR-0002|which-storage-ruling-still-holds|survey-of-storage-periods' . ; ls docs/notes; echo searched";
    let taken = studio.take("sealed")?.set("--probe", "WM-PR-0002").script(&bash(search))?.run()?;
    taken.recorded()?;
    let raw = String::from_utf8(taken.raw.clone().context("a raw log")?)?;
    let result = raw.lines().find(|line| line.contains("tool_result")).context("a result")?;
    assert!(result.contains("searched") && result.contains("glossary.md"), "{result}");
    // A fold names a probe and states no answer.
    let paths: Vec<_> = result.match_indices("./").map(|(at, _)| &result[at..at + 24]).collect();
    assert!(!result.contains("survey-of") && paths.iter().all(|path| *path == "./tools/probe-owners.txt"), "{result}");
    let told = taken.statement("Workspace")?;
    assert!(told.contains("The seal removed ") && !told.contains("The seal removed 0"), "{told}");
    assert!(!told.contains("survey-of-storage-periods"), "{told}");
    Ok(())
}

#[test]
fn each_arm_has_the_tree_that_the_policy_declares_for_it() -> Result<()> {
    let studio = Studio::new()?;
    let list = "for p in .headwater .claude CLAUDE.md docs/README.md .claude/settings.json .claude/hooks .claude/skills; do [ -e $p ] && echo has=$p=; done; echo end";
    for (tier, arm, lost, hook) in [
        ("campaign", "present", vec![], true),
        (
            "campaign",
            "absent",
            vec![
                ".headwater",
                ".claude",
                "CLAUDE.md",
                "docs/README.md",
                ".claude/settings.json",
                ".claude/hooks",
                ".claude/skills",
            ],
            false,
        ),
        ("campaign", "no-hook", vec![".claude/settings.json", ".claude/hooks"], false),
        ("documentation", "no-skills", vec![".claude/skills"], true),
        ("documentation", "no-claude-md", vec!["CLAUDE.md"], true),
    ] {
        let taken =
            studio.take(&format!("{tier}-{arm}"))?.set("--tier", tier).set("--arm", arm).script(&bash(list))?.run()?;
        assert_eq!(taken.recorded()?.identity.arm.as_str(), arm);
        let raw = String::from_utf8(taken.raw.clone().context("a raw log")?)?;
        for path in [
            ".headwater",
            ".claude",
            "CLAUDE.md",
            "docs/README.md",
            ".claude/settings.json",
            ".claude/hooks",
            ".claude/skills",
        ] {
            assert_eq!(raw.contains(&format!("has={path}=\\n")), !lost.contains(&path), "{arm}: {path}");
        }
        let told = taken.statement("Workspace")?;
        assert!(told.contains(&format!("The {arm} arm.")), "{told}");
        let live = if hook { "The intent hook wrote 2 lines." } else { "The intent hook was not live." };
        assert!(told.contains(live), "{arm}: {told}");
    }
    Ok(())
}

#[test]
fn a_given_workspace_stays_and_the_corpus_is_never_changed() -> Result<()> {
    let studio = Studio::new()?;
    let before = tree(&studio.corpus)?;
    let workspace = studio.workspace("mine")?;
    let script = bash("echo more >>README.md; rm CLAUDE.md; mkdir -p new; echo x >new/file");
    let taken = studio.take("given")?.set("--workspace", &workspace).script(&script)?.run()?;
    let event = event(&taken)?;
    assert!(!workspace.join("CLAUDE.md").exists() && workspace.join("new/file").is_file());
    let produced: Vec<_> = event.produced.iter().flatten().map(|p| p.path.as_str()).collect();
    assert_eq!(produced, ["README.md", "new/file"]);
    assert_eq!(tree(&studio.corpus)?, before);
    Ok(())
}

#[test]
fn what_a_driver_names_as_produced_is_there_once() -> Result<()> {
    let studio = Studio::new()?;
    let script = json!({"turns": [
        {"calls": [{"tool": "Write", "input": {"file_path": "{workspace}/a.md", "content": "WM-DR-0007"}}]},
        {"text": "x"}
    ]});
    let taken = studio.take("produced")?.script(&script)?.with(&["--produced", "a.md", "--produced", "b.md"]).run()?;
    let produced = event(&taken)?.produced.context("produced")?;
    let told: Vec<_> = produced.iter().map(|p| (p.path.as_str(), p.cites.join(" "), p.result.is_empty())).collect();
    assert_eq!(told, [("a.md", "WM-DR-0007".to_owned(), false), ("b.md", String::new(), true)]);
    Ok(())
}

#[test]
fn the_served_version_and_both_costs_are_stated() -> Result<()> {
    let studio = Studio::new()?;
    let turns = json!([{"text": "a", "model": "claude-haiku-4-5-20251001"}, {"calls": [{"tool": "Bash", "input": {"command": ":"}}], "model": "claude-haiku-4-5-20251001"}, {"text": "b", "model": "claude-sonnet-4-5-20250929"}]);
    let script = json!({"turns": turns, "cost_usd": "0.99"});
    let taken = studio.take("served")?.set("--model", "claude-haiku-4-5").script(&script)?.run()?;
    let identity = taken.recorded()?.identity;
    assert_eq!((identity.model.as_str(), identity.cost_cents), ("claude-haiku-4-5", 99));
    assert_eq!(identity.served_version, "claude-haiku-4-5-20251001, claude-sonnet-4-5-20250929");
    let told = taken.statement("Provider")?;
    assert!(told.contains("`0.99` USD") && told.contains("claude-sonnet-4-5-20250929"), "{told}");
    Ok(())
}

#[test]
fn help_manual_pages_and_completions_are_printed() -> Result<()> {
    let studio = Studio::new()?;
    for program in [&studio.recorder, &studio.engine] {
        let name = program.file_name().and_then(|name| name.to_str()).context("a name")?;
        let print = |arguments: &[&str]| studio.printed(program, arguments, b"");
        assert!(print(&["--version"])?.starts_with(&format!("{name} ")));
        let help = print(&["--help"])?;
        assert!(help.contains("Exit statuses:"), "{help}");
        let commands =
            help.split("Commands:\n").nth(1).and_then(|part| part.split("\n\n").next()).context("commands")?;
        let commands: Vec<_> = commands
            .lines()
            .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
            .filter(|c| !["", "help"].contains(c))
            .collect();
        assert!(commands.len() > 3, "{help}");
        for command in commands {
            let help = print(&[command, "--help"])?;
            assert!(help.contains("Usage: ") && (help.contains("Examples:") || help.contains("Commands:")), "{help}");
            assert!(print(&["man", command])?.contains(".SH NAME"));
        }
        assert!(print(&["man"])?.contains(".SH NAME"));
        for shell in ["bash", "fish", "zsh"] {
            assert!(print(&["completions", shell])?.contains(name));
        }
    }
    Ok(())
}
