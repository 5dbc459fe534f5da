//! Bad input: what is refused before a harness starts. Every refusal has its status of the table, a message that names
//! the cause and a remedy, costs nothing and leaves nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use headwater_tests::corpus;
use headwater_tests::recording::{Studio, Take};
use headwater_tests::user::is_root;
use serde_json::json;

const TAXONOMY: &str = ".headwater/taxonomy.yml";
const LOCK: &str = ".headwater/taxonomy.lock";
const POLICY: &str = ".headwater/probe.yml";
const PROBE: &str = "docs/probes/where-is-the-retention-limit.md";

fn mode(path: &Path, mode: u32) -> Result<()> {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

/// Changes a file of the corpus, holds the recording over it to its refusal, and puts the file back. What is refused by
/// then is the plan, which reads the files as they stand.
#[track_caller]
fn changed(
    studio: &Studio,
    path: &str,
    change: impl FnOnce(&str) -> String,
    status: i32,
    words: &[&str],
) -> Result<()> {
    let file = studio.corpus.join(path);
    let before = fs::read_to_string(&file)?;
    let after = change(&before);
    assert_ne!(before, after, "{path}");
    fs::write(&file, after)?;
    let number = fs::read_dir(studio.user.home())?.count();
    studio.take(&format!("take-{number}"))?.run()?.refused(status, words);
    Ok(fs::write(&file, before)?)
}

/// A path that holds every program of the system but those named.
fn search_without(studio: &Studio, programs: &[&str]) -> Result<PathBuf> {
    let directory = studio.user.directory("programs")?;
    for entry in fs::read_dir("/usr/bin")? {
        let entry = entry?;
        let name = entry.file_name();
        if !programs.iter().any(|program| name == *program) {
            symlink(entry.path(), directory.join(name))?;
        }
    }
    Ok(directory)
}

#[test]
fn a_corpus_that_is_missing_or_cannot_be_read_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    let home = studio.user.home();
    let empty = studio.user.directory("empty")?;
    studio.take("missing")?.set("--corpus", home.join("nowhere")).run()?.refused(5, &["nowhere"]);
    studio.take("empty-corpus")?.set("--corpus", &empty).run()?.refused(5, &["empty", "taxonomy.yml"]);
    let file = studio.user.file("file", "x")?;
    studio.take("file-corpus")?.set("--corpus", &file).run()?.refused(5, &["file"]);
    for (path, status) in [(TAXONOMY, 5), (LOCK, 5), (POLICY, 5), (PROBE, 5), (".headwater", 5), ("docs/specs", 5)] {
        let studio = Studio::new()?;
        let path = studio.corpus.join(path);
        mode(&path, 0)?;
        let taken = studio.take("closed")?.run()?;
        mode(&path, 0o755)?;
        taken.refused(status, &["ermission denied"]);
    }
    Ok(())
}

#[test]
fn a_corpus_without_one_of_its_declarations_is_refused_by_name() -> Result<()> {
    for path in [TAXONOMY, LOCK, POLICY] {
        let studio = Studio::new()?;
        fs::remove_file(studio.corpus.join(path))?;
        corpus::commit(&studio.user, &studio.corpus)?;
        studio.take("take")?.run()?.refused(5, &[path]);
    }
    Ok(())
}

#[test]
fn a_declaration_that_is_no_regular_file_is_refused_and_nobody_waits_for_it() -> Result<()> {
    for path in [TAXONOMY, LOCK, POLICY] {
        let studio = Studio::new()?;
        let file = studio.corpus.join(path);
        fs::remove_file(&file)?;
        nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU)?;
        studio.user.give(&file)?;
        studio.take("take")?.run()?.refused(5, &[path]);
    }
    Ok(())
}

#[test]
fn a_lock_that_is_not_the_taxonomy_s_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    changed(&studio, TAXONOMY, |text| text.replace("superseded", "replaced"), 5, &["taxonomy.lock", "headwater lock"])?;
    changed(&studio, LOCK, |text| text[..text.len() / 2].to_owned(), 5, &["taxonomy.lock", "headwater lock"])?;
    changed(&studio, LOCK, |text| format!("{text}\n"), 5, &["taxonomy.lock", "headwater lock"])?;
    changed(&studio, LOCK, |_| String::new(), 5, &["taxonomy.lock", "headwater lock"])
}

#[test]
fn yaml_that_is_cut_huge_deep_or_has_a_duplicate_or_unknown_key_is_refused_by_file_and_line() -> Result<()> {
    let studio = Studio::new()?;
    let deep = |text: &str| format!("{text}\nx: {}{}\n", "[".repeat(5_000), "]".repeat(5_000));
    let huge = |text: &str| format!("{text}\n{}", "# a long comment, many times over\n".repeat(40_000));
    for path in [TAXONOMY, POLICY] {
        changed(&studio, path, |text| format!("{text}\nx: [1, 2"), 5, &[path])?;
        changed(&studio, path, |text| format!("{text}\nx: \"open"), 5, &[path])?;
        changed(&studio, path, deep, 5, &[path])?;
        changed(&studio, path, huge, 5, &[path])?;
        changed(&studio, path, |text| format!("{text}\nunheard_of: 1\n"), 5, &[path, "unheard_of"])?;
        changed(&studio, path, |text| text.replace('\n', "\n\t"), 5, &[path])?;
        changed(&studio, path, |_| "\u{feff}\u{0}".into(), 5, &[path])?;
    }
    changed(&studio, TAXONOMY, |_| String::new(), 5, &["taxonomy.lock"])?;
    changed(&studio, POLICY, |_| String::new(), 11, &[POLICY, "regression"])?;
    changed(&studio, TAXONOMY, |text| format!("{text}\nkinds: {{}}\n"), 5, &[TAXONOMY, "kinds"])?;
    changed(&studio, POLICY, |text| format!("{text}\ntiers: {{}}\n"), 5, &[POLICY, "tiers"])?;
    changed(&studio, POLICY, |text| text.replace("- docs/probes\n", "- ../probes\n"), 5, &[POLICY, "../probes"])?;
    changed(&studio, POLICY, |text| text.replace("    budget_cents: 500\n", ""), 5, &[POLICY, "budget_cents"])
}

#[test]
fn a_probe_whose_front_matter_cannot_be_read_is_refused_with_its_path() -> Result<()> {
    let studio = Studio::new()?;
    let front = |line: &str| {
        let line = line.to_owned();
        move |text: &str| text.replacen("oracle: none\n", &format!("oracle: none\n{line}\n"), 1)
    };
    for line in [
        "x: [1, 2".to_owned(),
        format!("x: {}{}", "[".repeat(5_000), "]".repeat(5_000)),
        format!("x: {}", "long ".repeat(300_000)),
        "oracle: none".to_owned(),
        "x: &anchor y".to_owned(),
    ] {
        changed(&studio, PROBE, front(&line), 11, &[PROBE, "front matter that is not read: line "])?;
    }
    changed(&studio, PROBE, |text| text.replacen("\n---\n\n#", "\n\n#", 1), 11, &[PROBE])
}

#[test]
fn a_probe_that_declares_too_little_is_refused_with_its_name() -> Result<()> {
    let studio = Studio::new()?;
    changed(&studio, PROBE, |text| text.replace("## Task", "## Job"), 11, &["WM-PR-0001", "task"])?;
    changed(&studio, PROBE, |text| text.replace("## Task\n", "## Task\n\n## Notes\n"), 11, &["WM-PR-0001", "task"])?;
    changed(
        &studio,
        PROBE,
        |text| text.replace("expectation: opened", "expectation: admired"),
        11,
        &["WM-PR-0001", "admired"],
    )?;
    changed(&studio, PROBE, |text| text.replace("id: WM-PR-0001\n", ""), 11, &[PROBE])?;
    changed(
        &studio,
        PROBE,
        |text| text.replace("    - WM-DR-0007\n    - WM-SP-0004\n", "    - docs/probes\n"),
        11,
        &["WM-PR-0001"],
    )
}

#[test]
fn a_run_that_the_plan_refuses_or_a_probe_it_does_not_select_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    studio.take("unknown")?.set("--probe", "WM-PR-9999").run()?.refused(11, &["WM-PR-9999", "probe plan"]);
    studio.take("empty")?.set("--probe", "").run()?.refused(11, &[]);
    studio.take("arm")?.set("--arm", "absent").run()?.refused(11, &["regression", "absent"]);
    changed(&studio, POLICY, |text| text.replace("budget_cents: 500", "budget_cents: 299"), 11, &["299", "300"])?;
    changed(
        &studio,
        POLICY,
        |text| {
            format!(
                "{}  documentation:\n{}",
                text.split("  regression:").next().unwrap_or_default(),
                text.split("  documentation:\n").nth(1).unwrap_or_default()
            )
        },
        11,
        &["regression"],
    )
}

#[test]
fn an_option_that_is_not_understood_is_refused_before_anything_is_looked_at() -> Result<()> {
    let studio = Studio::new()?;
    for (number, (option, value)) in [
        ("--seed", "-1"),
        ("--seed", "1.5"),
        ("--seed", ""),
        ("--tier", "nightly"),
        ("--arm", "both"),
        ("--max-turns", "0"),
        ("--max-seconds", "0"),
        ("--max-idle-seconds", "x"),
        ("--format", "yaml"),
        ("--session", ""),
        ("--session", "a\nb"),
        ("--session", "\u{1b}[2J"),
    ]
    .into_iter()
    .enumerate()
    {
        let take = studio.take(&number.to_string())?.without(option).with(&[&format!("{option}={value}")]);
        let taken = take.run()?;
        assert_eq!(taken.status, Some(2), "{option} {value}: {}", taken.stderr);
        assert!(taken.stderr.contains("invalid value") && taken.stderr.contains(option), "{}", taken.stderr);
        assert!(taken.raw.is_none() && taken.document.is_none());
        taken.left_nothing();
    }
    let taken = studio.take("baseline")?.with(&["--baseline", "x"]).run()?;
    assert_eq!(taken.status, Some(2), "{}", taken.stderr);
    for option in ["--corpus", "--probe", "--session", "--out"] {
        let taken = studio.take(&format!("without{option}"))?.without(option).run()?;
        assert_eq!(taken.status, Some(2), "{option}: {}", taken.stderr);
    }
    studio.take("model")?.with(&["--model=--help"]).run()?.refused(2, &["model"]);
    studio.take("spaces")?.set("--model", "a b").run()?.refused(2, &["model"]);
    Ok(())
}

#[test]
fn a_workspace_that_is_missing_or_cannot_be_read_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    let at = |name: &str, path: &Path| studio.take(name).map(|take| take.set("--workspace", path));
    at("missing", &studio.user.home().join("nowhere"))?.run()?.refused(2, &["nowhere"]);
    at("file", &studio.user.file("file.md", "x")?)?.run()?.refused(2, &["file.md"]);
    let workspace = studio.workspace("closed-workspace")?;
    mode(&workspace, 0)?;
    let taken = at("closed", &workspace)?.run()?;
    mode(&workspace, 0o755)?;
    taken.refused(7, &["closed-workspace", "ermission denied"]);
    for (name, path) in [("closed-file", "docs/notes/glossary.md"), ("closed-directory", "docs/notes")] {
        let workspace = studio.workspace(&format!("{name}-workspace"))?;
        mode(&workspace.join(path), 0)?;
        let taken = at(name, &workspace)?.run()?;
        mode(&workspace.join(path), 0o755)?;
        taken.refused(9, &[path, "ermission denied"]);
    }
    Ok(())
}

#[test]
fn a_workspace_that_leads_into_the_corpus_or_holds_it_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    let home = studio.user.home().to_path_buf();
    let link = home.join("link");
    symlink(&studio.corpus, &link)?;
    symlink(studio.corpus.join("docs"), home.join("deep-link"))?;
    let elsewhere = studio.workspace("elsewhere")?;
    symlink(&elsewhere, home.join("plain-link"))?;
    let at = |name: &str, path: &Path| studio.take(name).map(|take| take.set("--workspace", path));
    at("corpus-itself", &studio.corpus)?.run()?.refused(6, &["inside the corpus"]);
    at("to-the-root", &link)?.run()?.refused(6, &["corpus"]);
    at("below", &studio.corpus.join("docs"))?.run()?.refused(6, &["inside the corpus"]);
    at("to-below", &home.join("deep-link"))?.run()?.refused(6, &["corpus"]);
    at("by-a-link", &link.join("docs"))?.run()?.refused(6, &["inside the corpus"]);
    at("above", &home)?.run()?.refused(6, &["inside the workspace"]);
    at("to-elsewhere", &home.join("plain-link"))?.run()?.refused(2, &["symbolic link"]);
    Ok(())
}

#[test]
fn a_workspace_with_a_way_into_the_history_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    for (name, make) in [
        ("directory", (|path| fs::create_dir(path)) as fn(PathBuf) -> std::io::Result<()>),
        ("file", |path| fs::write(path, "gitdir: /nowhere\n")),
        ("dangling", |path| symlink("/nowhere", path)),
    ] {
        for place in ["", "src/"] {
            let at = format!("{name}{}", place.len());
            let workspace = studio.workspace(&format!("{at}-workspace"))?;
            make(workspace.join(format!("{place}.git")))?;
            studio.take(&at)?.set("--workspace", &workspace).run()?.refused(4, &[".git"]);
        }
    }
    Ok(())
}

#[test]
fn a_workspace_that_still_holds_the_instrument_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    for (number, path) in ["docs/probes", "docs/probe-runs", POLICY].into_iter().enumerate() {
        let workspace = studio.workspace(&format!("workspace{number}"))?;
        let place = workspace.join(path);
        if path == POLICY {
            fs::write(&place, "")?
        } else {
            fs::create_dir(&place)?
        }
        studio.take(&number.to_string())?.set("--workspace", &workspace).run()?.refused(8, &[path]);
    }
    Ok(())
}

#[test]
fn a_workspace_with_a_file_that_names_the_probe_or_its_answer_key_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    for (number, (path, content)) in [
        ("docs/notes/of-the-probe.md", "See WM-PR-0001 for this.".as_bytes()),
        ("src/by-slug.txt", b"where-is-the-retention-limit.md"),
        ("data.bin", b"\0\xff\xfeWM-PR-0001\0"),
        ("docs/WM-PR-0001.md", b"x"),
    ]
    .into_iter()
    .enumerate()
    {
        let workspace = studio.workspace(&format!("workspace{number}"))?;
        fs::write(workspace.join(path), content)?;
        studio.take(&number.to_string())?.set("--workspace", &workspace).run()?.refused(9, &[path]);
    }
    let workspace = studio.workspace("keyed")?;
    let take = studio.take("key")?.set("--workspace", &workspace).set("--probe", "WM-PR-0002");
    take.run()?.refused(9, &["docs/notes/survey-of-storage-periods.md"]);
    Ok(())
}

#[test]
fn a_corpus_that_is_not_what_is_committed_builds_no_workspace() -> Result<()> {
    let studio = Studio::new()?;
    fs::write(studio.corpus.join("CLAUDE.md"), "changed")?;
    studio.take("changed")?.run()?.refused(2, &["CLAUDE.md", "commit"]);
    corpus::git(&studio.user, &studio.corpus, &["checkout", "-q", "."])?;
    fs::remove_dir_all(studio.corpus.join(".git"))?;
    studio.take("no-repository")?.run()?.refused(2, &["git", "commit"]);
    corpus::git(&studio.user, &studio.corpus, &["init", "-q"])?;
    studio.take("no-commit")?.run()?.refused(2, &["nothing is committed"]);
    Ok(())
}

#[test]
fn a_program_that_is_missing_is_named() -> Result<()> {
    let studio = Studio::new()?;
    let programs = search_without(&studio, &["bwrap", "claude", "headwater"])?;
    let take = |name: &str| studio.take(name).map(|take| take.environment("PATH", &programs));
    take("bwrap")?.run()?.refused(12, &["bwrap", "install"]);
    take("harness")?.without("--harness").run()?.refused(3, &["claude", "--harness"]);
    fs::remove_file(programs.join("git"))?;
    symlink("/usr/bin/bwrap", programs.join("bwrap"))?;
    take("git")?.run()?.refused(3, &["git"]);
    // The recorder where no engine is beside it.
    let alone = studio.user.directory("alone")?.join("headwater-recorder");
    fs::copy(&studio.recorder, &alone)?;
    mode(&alone, 0o755)?;
    studio.user.give(&alone)?;
    let take = take("engine")?.without("--engine");
    let mut command: Command = studio.user.command(&alone);
    command.args(take.command().get_args()).env("PATH", &programs).env("TMPDIR", &take.temporary);
    take.taken(&command.output()?)?.refused(3, &["headwater", "--engine"]);
    Ok(())
}

#[test]
fn an_engine_that_is_none_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    let engine = |name: &str, path: &Path| studio.take(name).map(|take| take.set("--engine", path));
    engine("nowhere", &studio.user.home().join("nowhere"))?.run()?.refused(3, &["nowhere"]);
    engine("directory", studio.user.home())?.run()?.refused(3, &["regular file"]);
    let plain = studio.user.file("plain", "x")?;
    engine("not-executable", &plain)?.run()?.refused(3, &["plain"]);
    for (name, text, words) in [
        ("silent", "#!/bin/sh\n", "not understood"),
        ("failing", "#!/bin/sh\necho 'it is broken' >&2; exit 9\n", "it is broken"),
        ("other", "#!/bin/sh\necho '{\"format\": 99}'\n", "format 99"),
        ("prose", "#!/bin/sh\necho 'a plan, I think'\n", "not understood"),
        ("no-interpreter", "#!/nowhere/sh\n", "No such file"),
    ] {
        let path = studio.user.file(&format!("{name}-engine"), text)?;
        mode(&path, 0o755)?;
        engine(name, &path)?.run()?.refused(5, &[words]);
    }
    Ok(())
}

#[test]
fn a_bwrap_that_does_not_confine_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    for (name, text) in [
        ("fails", "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2; exit 1\n"),
        ("lies", "#!/bin/sh\nexit 0\n"),
        // Everything but the namespaces.
        ("runs", "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"\n"),
    ] {
        let path = studio.user.file(&format!("{name}-bwrap"), text)?;
        mode(&path, 0o755)?;
        studio.take(name)?.set("--bwrap", &path).run()?.refused(12, &["bwrap"]);
    }
    let taken = studio.take("nowhere")?.set("--bwrap", studio.user.home().join("nowhere")).run()?;
    taken.refused(12, &["nowhere"]);
    Ok(())
}

#[test]
fn a_harness_that_is_none_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    let harness = |name: &str, path: &Path| studio.take(name).map(|take| take.set("--harness", path));
    harness("nowhere", &studio.user.home().join("nowhere"))?.run()?.refused(3, &["nowhere"]);
    harness("directory", studio.user.home())?.run()?.refused(3, &["no file"]);
    harness("plain", &studio.user.file("plain-harness", "x")?)?.run()?.refused(3, &["plain-harness", "chmod"]);
    harness("script", Path::new("scripted:/nowhere/script.json"))?.run()?.refused(3, &["/nowhere/script.json"]);
    Ok(())
}

#[test]
fn a_harness_that_drives_a_model_needs_credentials() -> Result<()> {
    let studio = Studio::new()?;
    let harness = "#!/bin/sh\necho started\n";
    let secret = "sk-invented-0123456789";
    let soon = 1_000_000_u64;
    for (name, text, words) in [
        ("absent", None, "No such file"),
        ("empty", Some(String::new()), "no JSON object"),
        ("malformed", Some(format!("{{\"claudeAiOauth\": {{\"accessToken\": \"{secret}\"")), "no JSON object"),
        ("no-login", Some(json!({"other": secret}).to_string()), "no login"),
        ("no-token", Some(json!({"claudeAiOauth": {"refreshToken": secret}}).to_string()), "no access token"),
        ("expired", Some(json!({"claudeAiOauth": {"accessToken": secret, "expiresAt": soon}}).to_string()), "expired"),
        ("huge", Some(" ".repeat(2 << 20)), "longer than"),
    ] {
        let path = studio.user.home().join(format!("{name}.json"));
        if let Some(text) = text {
            studio.user.file(&format!("{name}.json"), text)?;
        }
        let taken = studio.take(name)?.program(harness)?.set("--credentials", &path).run()?;
        taken.refused(3, &[words, &path.display().to_string()]);
        assert!(!taken.stderr.contains(secret), "{}", taken.stderr);
    }
    studio.take("none")?.program(harness)?.run()?.refused(3, &[".claude/.credentials.json"]);
    let taken = studio.take("directory")?.program(harness)?.set("--credentials", studio.user.home()).run()?;
    taken.refused(3, &["no regular file"]);
    Ok(())
}

#[test]
fn credentials_that_the_session_could_read_in_full_are_refused() -> Result<()> {
    let studio = Studio::new()?;
    let workspace = studio.workspace("workspace")?;
    let path = workspace.join("credentials.json");
    let login = json!({"accessToken": "sk-invented-0123456789", "refreshToken": "sk-invented-9876543210"});
    fs::write(&path, json!({"claudeAiOauth": login}).to_string())?;
    studio.user.give(&path)?;
    let take = studio.take("take")?.program("#!/bin/sh\necho started\n")?.set("--credentials", &path);
    take.set("--workspace", &workspace).run()?.refused(12, &["credentials.json"]);
    Ok(())
}

#[test]
fn nothing_is_overwritten_and_a_place_that_cannot_be_written_is_known_before_anything_is_spent() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("exists")?;
    let mine = take.out.join("exists.md");
    fs::write(&mine, "mine")?;
    let output = take.command().output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), fs::read_to_string(&mine)?.as_str()), (Some(2), "mine"), "{errors}");
    assert!(errors.contains("exists.md exists") && errors.ends_with("nothing was spent\n"), "{errors}");

    let take = studio.take("dangling")?;
    symlink("/nowhere/x", take.out.join("dangling.md"))?;
    let output = take.command().output()?;
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));

    let take = studio.take("raw-exists")?;
    fs::write(take.out.join("raw-exists.raw.jsonl"), "mine")?;
    let output = take.command().output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("raw-exists.raw.jsonl exists") && errors.ends_with("nothing was spent\n"), "{errors}");
    assert_eq!(fs::read_dir(&take.out)?.count(), 1, "{errors}");

    studio
        .take("no-directory")?
        .set("--out", studio.user.home().join("nowhere/run.md"))
        .run()?
        .refused(2, &["nowhere"]);
    for (name, option) in [("closed-out", "--out"), ("closed-raw", "--raw")] {
        let closed = studio.user.directory(&format!("{name}-directory"))?;
        mode(&closed, 0o555)?;
        studio.take(name)?.set(option, closed.join("run")).run()?.refused(1, &[&*closed.to_string_lossy()]);
    }
    let taken = studio.take("no-raw-directory")?.set("--raw", studio.user.home().join("nowhere/raw")).run()?;
    taken.refused(2, &["nowhere"]);
    let taken = studio.take("no-temporary")?.environment("TMPDIR", "/nowhere/tmp").run()?;
    taken.refused(1, &["/nowhere/tmp"]);
    Ok(())
}

#[test]
fn a_transcript_and_its_raw_log_are_never_put_where_the_session_can_write() -> Result<()> {
    let studio = Studio::new()?;
    let workspace = studio.workspace("workspace")?;
    for (name, option) in [("out", "--out"), ("raw", "--raw")] {
        let taken = studio.take(name)?.set("--workspace", &workspace).set(option, workspace.join("run.md")).run()?;
        taken.refused(2, &["workspace"]);
    }
    Ok(())
}

#[test]
fn a_program_that_the_session_could_replace_is_refused() -> Result<()> {
    let studio = Studio::new()?;
    let workspace = studio.workspace("workspace")?;
    let copy = |program: &Path, name: &str| -> Result<PathBuf> {
        let to = workspace.join(name);
        fs::copy(program, &to)?;
        studio.user.give(&to)?;
        Ok(to)
    };
    for (name, option, path) in [
        ("engine", "--engine", copy(&studio.engine, "headwater")?),
        ("bwrap", "--bwrap", copy(Path::new("/usr/bin/bwrap"), "bwrap")?),
    ] {
        let take = studio.take(name)?.set("--workspace", &workspace).set(option, &path);
        take.run()?.refused(12, &[&path.to_string_lossy(), "workspace"]);
        fs::remove_file(path)?;
    }
    Ok(())
}

#[test]
fn the_recorder_does_not_run_as_root() -> Result<()> {
    if !is_root() {
        // Only root can become root; for everybody else the rule has nothing to say.
        return Ok(());
    }
    let studio = Studio::new()?;
    let take: Take<'_> = studio.take("root")?;
    let ordinary = take.command();
    let mut command = Command::new(ordinary.get_program());
    command.args(ordinary.get_args()).env_clear();
    command.envs(ordinary.get_envs().filter_map(|(name, value)| Some((name, value?))));
    take.taken(&command.output()?)?.refused(12, &["root", "ordinary user"]);
    Ok(())
}

#[test]
fn the_read_only_modes_refuse_what_they_cannot_read() -> Result<()> {
    let studio = Studio::new()?;
    let root = studio.corpus.display().to_string();
    let engine = studio.engine.display().to_string();
    let cases: [(&[&str], &[u8], i32, &str); 8] = [
        (&["provider"], b"", 13, "empty"),
        (&["answer", "--answers", "yes"], b"", 13, "empty"),
        (&["transform", "--probe", "p", "--session", "s"], b"", 13, "no result line"),
        (&["transform", "--probe", "p", "--session", "s"], b"{\"type\":\"assistant\"", 13, "torn"),
        (&["provider"], b"no JSON\n", 13, "torn"),
        (&["answer", "--answers", "yes"], b"\xff\xfe\n", 13, "torn"),
        (&["task", "--probe", "WM-PR-9999", "--corpus", &root, "--engine", &engine], b"", 11, "WM-PR-9999"),
        (&["identity", "--corpus", "/nowhere"], b"", 5, "/nowhere"),
    ];
    for (arguments, input, status, words) in cases {
        let file = studio.user.file("input", input)?;
        let output = studio.user.command(&studio.recorder).args(arguments).stdin(fs::File::open(file)?).output()?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), output.stdout.len()), (Some(status), 0), "{arguments:?}: {errors}");
        assert!(errors.contains(words) && errors.contains("  remedy: "), "{arguments:?}: {errors}");
        assert!(errors.ends_with("nothing was spent\n"), "{errors}");
    }
    Ok(())
}

#[test]
fn a_document_that_git_hides_a_change_of_is_refused_where_a_probe_examines_it() -> Result<()> {
    const EXAMINED: &str = "docs/specs/retention-classes.md";
    type Hide = fn(&Studio) -> Result<()>;
    let hidden: [(&str, Hide); 3] = [
        ("ignored", |studio| {
            studio.write(".gitignore", EXAMINED)?;
            corpus::git(&studio.user, &studio.corpus, &["rm", "-q", "--cached", EXAMINED])?;
            corpus::git(&studio.user, &studio.corpus, &["add", ".gitignore"])?;
            corpus::git(&studio.user, &studio.corpus, &["commit", "-q", "-m", "Ignored"])
        }),
        ("assumed", |studio| {
            corpus::git(&studio.user, &studio.corpus, &["update-index", "--assume-unchanged", EXAMINED])?;
            studio.rewrite(EXAMINED, |text| format!("{text}\nMore.\n"))
        }),
        ("converted", |studio| {
            studio.write(".gitattributes", "docs/specs/*.md text eol=crlf\n")?;
            corpus::commit(&studio.user, &studio.corpus)
        }),
    ];
    for (name, hide) in hidden {
        let studio = Studio::new()?;
        hide(&studio)?;
        studio.take(name)?.run()?.refused(2, &["docs/specs/", "the plan was made over"]);
    }
    Ok(())
}

#[test]
fn a_transcript_and_a_raw_log_have_two_names() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("take")?;
    let out = take.out.join("take.md");
    take.set("--raw", out).run()?.refused(2, &["transcript and raw log"]);
    Ok(())
}

#[test]
fn a_workspace_path_that_no_stream_can_name_is_refused_before_the_session() -> Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let studio = Studio::new()?;
    let temporary = studio.user.home().join(std::ffi::OsStr::from_bytes(b"tm\xffp"));
    fs::create_dir(&temporary)?;
    studio.user.give(&temporary)?;
    studio.take("take")?.environment("TMPDIR", &temporary).run()?.refused(7, &["UTF-8"]);
    assert_eq!(fs::read_dir(temporary)?.count(), 0);
    Ok(())
}
