//! A recorder that is interrupted or killed, at whatever time: nothing of its session stays.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use headwater_tests::recording::{Studio, Take, processes};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// What the credentials hold, and nothing else on this machine does.
const SECRET: &str = "sk-invented-for-this-test-0123456789";

/// A session that takes about 300 ms and starts processes that would outlive it.
fn script() -> Value {
    json!({"turns": [
        {"calls": [{"tool": "Bash", "input": {"command": "setsid sleep 300 >/dev/null 2>&1 & nohup sleep 300 >/dev/null 2>&1 &"}}]},
        {"sleep_ms": 250},
        {"text": "Done."}
    ]})
}

fn started(take: &Take<'_>) -> Result<Child> {
    Ok(take.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

fn send(child: &Child, signal: Signal) -> Result<()> {
    match kill(Pid::from_raw(child.id().try_into()?), signal) {
        Err(nix::errno::Errno::ESRCH) | Ok(()) => Ok(()),
        Err(e) => bail!(e),
    }
}

/// Waits until no process of the take is left. The kernel ends what a killed recorder leaves without anybody's help.
#[track_caller]
fn gone(take: &Take<'_>) -> Result<()> {
    let start = Instant::now();
    loop {
        let left = processes(&take.marker())?;
        if left.is_empty() {
            return Ok(());
        }
        assert!(start.elapsed() < Duration::from_secs(5), "still there: {left:?}");
        sleep(Duration::from_millis(10));
    }
}

/// Waits until the session of a take has written something.
fn in_session(take: &Take<'_>, name: &str) -> Result<()> {
    let raw = take.out.join(format!("{name}.raw.jsonl"));
    let start = Instant::now();
    while fs::metadata(&raw).map_or(0, |found| found.len()) == 0 {
        if start.elapsed() > Duration::from_secs(20) {
            bail!("the session does not start");
        }
        sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Whether a file below `directory` holds the secret.
fn holds_secret(directory: &Path) -> Result<bool> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let found = if fs::symlink_metadata(&path)?.is_dir() {
            holds_secret(&path)?
        } else {
            fs::read(&path).unwrap_or_default().windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

#[test]
fn the_processes_of_a_session_are_seen_by_these_tests() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("seen")?.script(&script())?;
    let child = started(&take)?;
    in_session(&take, "seen")?;
    let running = processes(&take.marker())?;
    assert!(running.iter().any(|line| line.contains("headwater-recorder")), "{running:?}");
    assert!(running.iter().any(|line| line.contains("scripted-harness")), "{running:?}");
    let output = child.wait_with_output()?;
    take.taken(&output)?.recorded()?;
    Ok(())
}

/// Interrupts a recording after each of `delays` and holds what is left to the contract.
fn interrupted(signal: Signal, delays: impl Iterator<Item = u64>) -> Result<()> {
    let studio = Studio::new()?;
    let (mut finished, mut stopped) = (0, 0);
    for delay in delays {
        let name = format!("after-{delay}");
        let take = studio.take(&name)?.script(&script())?;
        let mut child = started(&take)?;
        let due = Instant::now() + Duration::from_millis(delay);
        while Instant::now() < due && child.try_wait()?.is_none() {
            sleep(Duration::from_millis(1));
        }
        send(&child, signal)?;
        let start = Instant::now();
        let output = child.wait_with_output()?;
        assert!(start.elapsed() < Duration::from_secs(8), "{delay} ms: {:?}", start.elapsed());
        let is_by_signal = output.status.signal() == Some(signal as i32);
        assert!(
            is_by_signal || output.status.success(),
            "{delay} ms: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        let taken = take.taken(&output)?;
        if is_by_signal {
            stopped += 1;
        } else {
            finished += 1;
        }
        if signal == Signal::SIGKILL {
            gone(&take)?;
        } else {
            taken.left_nothing();
            assert!(taken.raw.as_ref().is_none_or(|raw| !raw.is_empty()), "{delay} ms: an empty raw log");
            let is_told = taken.stderr.contains("stopped by a signal") || taken.stderr.is_empty();
            assert!(!is_by_signal || is_told || taken.document.is_some(), "{delay} ms: {}", taken.stderr);
        }
        if taken.document.is_some() {
            taken.read()?;
            studio.ask(&["probe", "record", &taken.path.display().to_string()])?;
        }
        // A transcript is all that a success means.
        assert!(!output.status.success() || taken.document.is_some());
    }
    assert!(stopped > 2 && finished > 0, "{stopped} stopped, {finished} finished");
    Ok(())
}

/// Closely over the time before a session, then over a session and its end; the last one comes too late.
fn delays() -> impl Iterator<Item = u64> {
    (0..100).step_by(9).chain((100..500).step_by(45)).chain([60_000])
}

#[test]
fn ctrl_c_at_any_time_ends_the_session_and_leaves_nothing_half_written() -> Result<()> {
    interrupted(Signal::SIGINT, delays())
}

#[test]
fn sigterm_at_any_time_ends_the_session_and_leaves_nothing_half_written() -> Result<()> {
    interrupted(Signal::SIGTERM, delays())
}

#[test]
fn a_recorder_that_is_killed_at_any_time_takes_its_session_with_it() -> Result<()> {
    interrupted(Signal::SIGKILL, delays())
}

#[test]
fn a_signal_to_the_whole_group_as_from_a_terminal_is_the_same() -> Result<()> {
    use std::os::unix::process::CommandExt as _;
    let studio = Studio::new()?;
    for delay in [5, 40, 80, 120, 200, 300] {
        let take = studio.take(&format!("after-{delay}"))?.script(&script())?;
        let child = take.command().stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn()?;
        sleep(Duration::from_millis(delay));
        kill(Pid::from_raw(-i32::try_from(child.id())?), Signal::SIGINT)?;
        let output = child.wait_with_output()?;
        assert!(
            output.status.signal() == Some(2) || output.status.success(),
            "{delay} ms: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        take.taken(&output)?.left_nothing();
    }
    Ok(())
}

#[test]
fn a_session_that_is_interrupted_leaves_its_raw_log_and_says_that_it_may_have_spent() -> Result<()> {
    let studio = Studio::new()?;
    for (name, signal) in [("int", Signal::SIGINT), ("term", Signal::SIGTERM), ("hup", Signal::SIGHUP)] {
        let take = studio.take(name)?.script(&script())?;
        let child = started(&take)?;
        in_session(&take, name)?;
        send(&child, signal)?;
        let taken = take.taken(&child.wait_with_output()?)?;
        assert_eq!(taken.signal, Some(signal as i32), "{}", taken.stderr);
        taken.left_nothing();
        assert!(taken.document.is_none() && taken.raw.is_some_and(|raw| !raw.is_empty()));
        assert!(taken.stderr.ends_with("may have spent\n") && taken.stderr.contains(".raw.jsonl"), "{}", taken.stderr);
    }
    Ok(())
}

#[test]
fn a_harness_that_ignores_every_signal_is_ended_all_the_same() -> Result<()> {
    let studio = Studio::new()?;
    let program = "#!/bin/bash\ntrap '' INT TERM HUP QUIT\necho '{\"type\":\"system\",\"subtype\":\"init\"}'\nwhile :; do sleep 1; done\n";
    let credentials = credentials(&studio)?;
    let take = studio.take("deaf")?.program(program)?.set("--credentials", &credentials);
    let child = started(&take)?;
    in_session(&take, "deaf")?;
    send(&child, Signal::SIGINT)?;
    let start = Instant::now();
    let taken = take.taken(&child.wait_with_output()?)?;
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_eq!(taken.signal, Some(Signal::SIGINT as i32), "{}", taken.stderr);
    taken.left_nothing();
    Ok(())
}

fn credentials(studio: &Studio) -> Result<std::path::PathBuf> {
    let directory = studio.user.directory("private")?;
    let token =
        json!({"claudeAiOauth": {"accessToken": SECRET, "refreshToken": SECRET, "expiresAt": 32_503_680_000_000_u64}});
    studio.user.file("private/credentials.json", token.to_string())?;
    Ok(directory.join("credentials.json"))
}

#[test]
fn no_credential_is_on_the_disk_whenever_the_recorder_is_killed() -> Result<()> {
    let studio = Studio::new()?;
    let credentials = credentials(&studio)?;
    // The session has it: what is looked for below is what it could have left.
    let program = "#!/bin/bash\nfor i in 1 2 3; do [ -s \"$HOME/.credentials.json\" ] && echo '{\"type\":\"system\"}'; sleep 0.1; done\n";
    for (number, delay) in (0..400).step_by(40).enumerate() {
        let take = studio.take(&number.to_string())?.program(program)?.set("--credentials", &credentials);
        let child = started(&take)?;
        sleep(Duration::from_millis(delay));
        assert!(
            !holds_secret(&take.temporary).unwrap_or(false) && !holds_secret(&take.out).unwrap_or(false),
            "{delay} ms"
        );
        send(&child, Signal::SIGKILL)?;
        child.wait_with_output()?;
        gone(&take)?;
        assert!(!holds_secret(&take.temporary)? && !holds_secret(&take.out)?, "{delay} ms");
    }
    let take = studio.take("whole")?.program(program)?.set("--credentials", &credentials);
    let taken = take.run()?;
    assert_eq!(taken.raw.map(|raw| raw.len()), Some(3 * "{\"type\":\"system\"}\n".len()), "{}", taken.stderr);
    Ok(())
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stops_no_recording() -> Result<()> {
    let studio = Studio::new()?;
    let take = studio.take("nohup")?.script(&script())?;
    let recorder = take.command();
    let mut command = studio.user.command("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(recorder.get_program()).args(recorder.get_args());
    for (name, value) in recorder.get_envs() {
        value.map(|value| command.env(name, value));
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    in_session(&take, "nohup")?;
    send(&child, Signal::SIGHUP)?;
    take.taken(&child.wait_with_output()?)?.recorded()?;
    Ok(())
}
