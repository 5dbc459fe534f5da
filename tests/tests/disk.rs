//! A full disk at each write of a recording: what is said, and that nothing half-written stays.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use headwater_tests::recording::{Studio, Take, processes};
use headwater_tests::user::User;
use serde_json::json;

/// Mounts a file system in memory at `$1` with the options `$2`, fills it where `$3` says so, runs the rest without any
/// capability, and says how that ended and what the file system then holds.
const INSIDE: &str = r#"
at=$1; options=$2; fill=$3; shift 3
mount -t tmpfs -o "$options" tmpfs "$at" || exit 99
case $fill in
    full) dd if=/dev/zero of="$at/fill" bs=4k 2>/dev/null ;;
    room) ;;
    *) exit 98 ;;
esac
cd "$at" || exit 97
setpriv --ambient-caps=-all --inh-caps=-all -- "$@"
echo "status $?"
find . -mindepth 1 ! -name fill -printf '%P %s\n' | sort
"#;

/// What a command left on a file system of its own.
#[derive(Debug)]
struct Ran {
    status: i32,
    stderr: String,
    /// Path and size of everything on the file system.
    held: Vec<(String, u64)>,
}

impl Ran {
    #[track_caller]
    fn said(&self, status: i32, words: &[&str], spent: bool) {
        assert_eq!(self.status, status, "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in: {}", self.stderr);
        }
        assert!(self.stderr.contains("\n  remedy: "), "{}", self.stderr);
        let end = if spent { "  the session has run and may have spent\n" } else { "  nothing was spent\n" };
        assert!(self.stderr.ends_with(end), "{}", self.stderr);
    }
}

/// Runs a command of the user where a file system of a few pages is mounted at `at`.
fn on_small_disk(user: &User, at: &Path, options: &str, fill: &str, command: &Command) -> Result<Ran> {
    let mut inside = user.command("unshare");
    inside.args(["--user", "--map-current-user", "--keep-caps", "--mount", "--", "sh", "-c", INSIDE, "sh"]);
    inside.arg(at).arg(format!("{options},mode=0755")).arg(fill).arg(command.get_program()).args(command.get_args());
    inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = inside.output()?;
    let stdout = String::from_utf8(output.stdout)?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, end) = stdout.split_once("status ").with_context(|| format!("no namespace: {stderr}"))?;
    let mut lines = end.lines();
    let status = lines.next().context("a status")?.parse()?;
    let held = lines.filter_map(|line| line.rsplit_once(' ')).map(|(path, size)| Ok((path.to_owned(), size.parse()?)));
    Ok(Ran { status, stderr, held: held.collect::<Result<_>>()? })
}

/// A recording whose transcript, raw log or temporary files are on the small disk.
fn recorded(studio: &Studio, take: &Take<'_>, at: &Path, options: &str, fill: &str) -> Result<Ran> {
    let ran = on_small_disk(&studio.user, at, options, fill, &take.command())?;
    let left = processes(&take.marker())?;
    assert!(left.is_empty(), "{left:?}");
    Ok(ran)
}

/// A place for the small disk.
fn place(studio: &Studio, name: &str) -> Result<PathBuf> {
    studio.user.directory(&format!("{name}-disk"))
}

#[test]
fn a_disk_with_room_is_no_obstacle() -> Result<()> {
    let studio = Studio::new()?;
    let at = place(&studio, "room")?;
    let take = studio.take("room")?.set("--out", at.join("run.md")).environment("TMPDIR", &at);
    let ran = recorded(&studio, &take, &at, "size=8m", "room")?;
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let names: Vec<_> = ran.held.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(names, ["run.md", "run.raw.jsonl"]);
    Ok(())
}

#[test]
fn where_the_transcript_has_no_room_none_is_there_and_the_raw_log_is_kept() -> Result<()> {
    let studio = Studio::new()?;
    let at = place(&studio, "out")?;
    let take = studio.take("out")?;
    let raw = take.out.join("kept.jsonl");
    let take = take.set("--out", at.join("run.md")).set("--raw", &raw);
    let ran = recorded(&studio, &take, &at, "size=64k", "full")?;
    ran.said(1, &["run.md", "No space left on device", "kept.jsonl"], true);
    assert_eq!(ran.held, []);
    assert!(raw.metadata()?.len() > 1_000);
    Ok(())
}

#[test]
fn where_not_even_a_name_can_be_made_nothing_is_spent() -> Result<()> {
    let studio = Studio::new()?;
    let at = place(&studio, "names")?;
    let take = studio.take("names")?.set("--out", at.join("run.md"));
    let ran = recorded(&studio, &take, &at, "size=64k,nr_inodes=1", "room")?;
    ran.said(1, &["names-disk", "No space left on device"], false);
    assert_eq!(ran.held, []);
    let raw = studio.take("raw-name")?.set("--raw", at.join("run.jsonl"));
    let ran = recorded(&studio, &raw, &at, "size=64k,nr_inodes=1", "room")?;
    ran.said(1, &["run.jsonl", "No space left on device"], false);
    assert_eq!(std::fs::read_dir(&raw.out)?.count(), 0);
    Ok(())
}

#[test]
fn where_the_raw_log_has_no_room_the_session_is_ended_and_no_transcript_is_written() -> Result<()> {
    let studio = Studio::new()?;
    let at = place(&studio, "raw")?;
    // With no room at all, and with room for a part of it.
    for (name, options, fill, kept) in [("none", "size=64k", "full", 0), ("part", "size=4k", "room", 4_096)] {
        let script = json!({"turns": [
            {"calls": [{"tool": "Bash", "input": {"command": "setsid sleep 300 >/dev/null 2>&1 &"}}]},
            {"text": "A long word. ", "repeat": 10_000},
            {"sleep_ms": 60_000},
            {"text": "x"}
        ]});
        let take = studio.take(name)?.script(&script)?.set("--raw", at.join("run.jsonl"));
        let ran = recorded(&studio, &take, &at, options, fill)?;
        ran.said(1, &["run.jsonl", "No space left on device"], true);
        assert_eq!(ran.held.iter().map(|(_, size)| size).sum::<u64>(), kept, "{:?}", ran.held);
        assert_eq!(std::fs::read_dir(&take.out)?.count(), 0);
        // What the session did is kept, since nothing else tells of it.
        assert!(ran.stderr.contains(" (the workspace)"), "{}", ran.stderr);
        assert_eq!(std::fs::read_dir(&take.temporary)?.count(), 1);
    }
    Ok(())
}

#[test]
fn where_a_workspace_has_no_room_none_is_left_and_nothing_is_spent() -> Result<()> {
    let studio = Studio::new()?;
    let at = place(&studio, "temporary")?;
    // From not even a directory to nearly all of the tree.
    for (number, options) in
        ["size=64k,nr_inodes=1", "size=64k,nr_inodes=20", "size=4k", "size=32k", "size=128k", "size=200k"]
            .iter()
            .enumerate()
    {
        let take = studio.take(&format!("part-{number}"))?.environment("TMPDIR", &at);
        let ran = recorded(&studio, &take, &at, options, "room")?;
        ran.said(1, &["temporary-disk", "No space left on device"], false);
        assert_eq!(ran.held, [], "{options}");
        assert_eq!(std::fs::read_dir(&take.out)?.count(), 0);
    }
    Ok(())
}

#[test]
fn a_session_that_fills_the_disk_of_its_workspace_is_recorded_and_leaves_nothing() -> Result<()> {
    let studio = Studio::new()?;
    let at = place(&studio, "filled")?;
    let script = json!({"turns": [
        {"calls": [{"tool": "Bash", "input": {"command": "cat /dev/zero >fill; cat /dev/zero >\"$HEADWATER_SHADOW_LOG_DIR\"/fill"}}]},
        {"text": "Done."}
    ]});
    let take = studio.take("filled")?.script(&script)?.environment("TMPDIR", &at);
    let ran = recorded(&studio, &take, &at, "size=2m", "room")?;
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(ran.held, []);
    assert!(take.out.join("filled.md").is_file());
    Ok(())
}

#[test]
fn a_result_that_cannot_be_printed_is_an_error_and_the_transcript_is_there() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("printed")?;
    let output = take.command().stdout(File::options().write(true).open("/dev/full")?).output()?;
    let errors = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.contains("standard output: No space left on device") && errors.ends_with("may have spent\n"),
        "{errors}"
    );
    assert!(take.out.join("printed.md").is_file());
    // Standard error is for people: where nobody can be told anything, a recording goes on.
    let take = studio.take("untold")?;
    let mut command = take.command();
    let status = command.stdout(Stdio::null()).stderr(File::options().write(true).open("/dev/full")?).status()?;
    assert!(status.success() && take.out.join("untold.md").is_file());
    Ok(())
}

#[test]
fn the_engine_leaves_a_lock_as_it_was_where_a_new_one_has_no_room() -> Result<()> {
    let studio = Studio::new()?;
    let at = place(&studio, "lock")?;
    let script = format!(
        "cp -R {}/.headwater . && echo '# changed' >>.headwater/taxonomy.yml && sed -i 's/superseded/replaced/' .headwater/taxonomy.yml && \
         cp .headwater/taxonomy.lock {home}/before && dd if=/dev/zero of=fill bs=4k 2>/dev/null; \
         {} lock --root . ; status=$?; cmp .headwater/taxonomy.lock {home}/before && exit $status",
        studio.corpus.display(),
        studio.engine.display(),
        home = studio.user.home().display(),
    );
    let mut command = studio.user.command("sh");
    command.args(["-c", &script]);
    let ran = on_small_disk(&studio.user, &at, "size=128k", "room", &command)?;
    assert_eq!(ran.status, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("No space left on device") && ran.stderr.contains("taxonomy.lock"), "{}", ran.stderr);
    assert!(ran.stderr.contains("  remedy: "), "{}", ran.stderr);
    let names: Vec<_> = ran.held.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(names, [".headwater", ".headwater/probe.yml", ".headwater/taxonomy.lock", ".headwater/taxonomy.yml"]);
    Ok(())
}

#[test]
fn a_read_only_mode_says_that_its_output_could_not_be_written() -> Result<()> {
    let studio = Studio::new()?;
    let root = studio.corpus.display().to_string();
    let engine = studio.engine.display().to_string();
    for (program, arguments, status) in [
        (&studio.recorder, &["identity", "--corpus", &root, "--engine", &engine][..], 1),
        (&studio.recorder, &["task", "--corpus", &root, "--engine", &engine, "--probe", "WM-PR-0001"], 1),
        (&studio.recorder, &["man"], 1),
        (&studio.engine, &["probe", "plan", "--root", &root, "--tier", "regression"], 3),
        (&studio.engine, &["check", "--root", &root, "--format", "json"], 3),
    ] {
        let mut command = studio.user.command(program);
        let output = command.args(arguments).stdout(File::options().write(true).open("/dev/full")?).output()?;
        let errors = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {errors}");
        assert!(errors.contains("No space left on device"), "{arguments:?}: {errors}");
    }
    Ok(())
}
