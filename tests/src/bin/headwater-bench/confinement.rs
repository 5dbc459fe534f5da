//! What the confinement costs: the start of a session, and what a tool call does in it.

use crate::measure::{median, ms};
use anyhow::{Context as _, Result, bail, ensure};
use headwater_recorder::confine::bwrap::{Bwrap, Plan};
use headwater_recorder::confine::cancel::Cancel;
use headwater_recorder::confine::memory::sealed;
use headwater_recorder::confine::proof;
use headwater_recorder::confine::sandbox::{Sandbox, Step};
use headwater_recorder::confine::view::{Request, Shown, View};
use headwater_tests::user::User;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The first word of the arguments of the part that runs as an ordinary user.
pub const AS_USER: &str = "--confinement-in";
/// Starts that are counted, of each kind.
const STARTS: usize = 40;
/// Sessions in which a command is timed, of each kind.
const SESSIONS: usize = 15;
/// Files in the workspace.
const FILES: usize = 10_000;

/// As an ordinary user, because root is refused.
pub fn confinement(user: &User) -> Result<()> {
    let workspace = user.directory("workspace")?;
    for directory in 0..FILES / 100 {
        let directory = workspace.join(format!("d{directory:03}"));
        fs::create_dir(&directory)?;
        for n in 0..100 {
            let line = format!("line of file {n}\n");
            fs::write(directory.join(format!("f{n:02}.txt")), line.repeat(40))?;
        }
    }
    user.give(&workspace)?;
    let git = |arguments: &[&str]| -> Result<()> {
        let mut command = user.command("git");
        command.current_dir(&workspace).args(["-c", "user.name=bench", "-c", "user.email=bench@example.invalid"]);
        let output = command.args(arguments).output()?;
        ensure!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    };
    git(&["init", "-q"])?;
    git(&["add", "-A"])?;
    git(&["commit", "-q", "-m", "files"])?;
    let this = user.reachable(&std::env::current_exe()?)?;
    let status = user.command(this).arg(AS_USER).arg(&workspace).arg(user.directory("logs")?).status()?;
    ensure!(status.success(), "the measurement as an ordinary user: {status}");
    Ok(())
}

/// The measurements; `arguments` are a workspace and a log directory.
pub fn as_user(mut arguments: impl Iterator<Item = OsString>) -> Result<()> {
    let workspace = PathBuf::from(arguments.next().context("a workspace")?);
    let logs = PathBuf::from(arguments.next().context("a log directory")?);
    let request = Request {
        workspace: &workspace,
        logs: &logs,
        harness: Path::new("/bin/sh"),
        beside_harness: &[],
        engine: Path::new("/usr/bin/true"),
        closure: None,
        host_network: true,
    };
    let plan = Plan {
        bwrap: Bwrap::find(None, std::env::var_os("PATH").as_deref())?,
        view: View::new(&request)?,
        files: Vec::new(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into()), ("LANG".into(), "C.UTF-8".into())],
        command: Vec::new(),
    };
    start(&plan)?;
    for (name, command) in [("git status", "git status --porcelain"), ("grep -r", "grep -r 'no such line' . ; true")] {
        calls(&plan, name, command)?;
    }
    Ok(())
}

/// The self-test and the start of a session that does nothing, against bwrap with the same mounts.
fn start(plan: &Plan) -> Result<()> {
    let (mut whole, mut session, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=STARTS {
        let begun = Instant::now();
        proof::prove(plan, &Cancel::never()?)?;
        let proven = begun.elapsed();
        confined(plan, &["/usr/bin/true"])?;
        let both = begun.elapsed();
        let begun = Instant::now();
        ensure!(same_mounts(plan)?.arg("/usr/bin/true").status()?.success(), "bwrap failed");
        let alone = begun.elapsed();
        if round > 0 {
            whole.push(both);
            session.push(both - proven);
            bare.push(alone);
        }
    }
    let [whole, session, bare] = [whole, session, bare].map(median);
    println!(
        "start of a session           {:>8.1} ms   bwrap, same mounts {:>5.1} ms   {:+.1} ms, {:+.1} without the self-test \
         (aim: at most +25 ms)",
        ms(whole),
        ms(bare),
        ms(whole) - ms(bare),
        ms(session) - ms(bare)
    );
    Ok(())
}

/// A command over the files of the workspace, timed by a shell beside it: in a session, under bwrap with the filter of
/// system calls, under bwrap alone, and outside.
fn calls(plan: &Plan, name: &str, command: &str) -> Result<()> {
    let script =
        format!("{{ {command}; }} >/dev/null; s=$EPOCHREALTIME; {{ {command}; }} >/dev/null; echo $s $EPOCHREALTIME");
    let words = ["/bin/bash", "-c", &script];
    let filter = plan.view.logs().join("filter");
    fs::write(&filter, plan.restrictions()?.filter.bytes())?;
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..SESSIONS {
        times[0].push(took(&confined(plan, &words)?)?);
        let mut filtered = Command::new("/bin/sh");
        filtered.args(["-c", "filter=$1; shift; exec \"$@\" 9<\"$filter\"", "sh"]).arg(&filter);
        let alone = same_mounts(plan)?;
        filtered.arg(alone.get_program()).args(["--seccomp", "9"]).args(alone.get_args());
        times[1].push(took(&printed(filtered.args(words))?)?);
        times[2].push(took(&printed(same_mounts(plan)?.args(words))?)?);
        let mut outside = Command::new(words[0]);
        outside.args(&words[1..]).env_clear().envs(plan.environment.iter().map(|(name, value)| (name, value)));
        times[3].push(took(&printed(outside.current_dir(plan.view.workspace()))?)?);
    }
    let [inside, filtered, alone, outside] = times.map(median);
    let more = |a: Duration, b: Duration| (a.as_secs_f64() / b.as_secs_f64() - 1.0) * 100.0;
    println!(
        "{name:<10} of {FILES} files    {:>8.1} ms   outside       {:>8.1} ms   {:+.1} %, of which the filter {:+.1} % \
         (over bwrap alone; aim: within 5 %)",
        ms(inside),
        ms(outside),
        more(inside, outside),
        more(filtered, alone),
    );
    Ok(())
}

fn took(printed: &str) -> Result<Duration> {
    let mut times = printed.split_whitespace().map(|time| time.parse::<f64>());
    let (Some(Ok(from)), Some(Ok(to))) = (times.next(), times.next()) else { bail!("no times: {printed}") };
    Ok(Duration::try_from_secs_f64(to - from)?)
}

fn printed(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// What a command prints in a session with all that confines it.
fn confined(plan: &Plan, command: &[&str]) -> Result<String> {
    let command: Vec<_> = command.iter().map(OsString::from).collect();
    let cancel = Cancel::never()?;
    let mut sandbox = Sandbox::start(plan, &command, sealed("stdin", b"")?, &cancel)?;
    sandbox.release(&cancel)?;
    let mut out = Vec::new();
    loop {
        match sandbox.step(Instant::now() + Duration::from_secs(60), None)? {
            Step::Bytes(bytes) => out.extend_from_slice(bytes),
            Step::Ended => break,
            other => bail!("{other:?}"),
        }
    }
    ensure!(sandbox.exit().is_some_and(|exit| exit.success()), "{}", sandbox.errors());
    Ok(String::from_utf8(out)?)
}

/// bwrap with the mounts and the environment of the plan and nothing else. Where a session has a file in memory, it binds
/// one of the host.
fn same_mounts(plan: &Plan) -> Result<Command> {
    let mut command = Command::new(&plan.bwrap.path);
    command.env_clear().current_dir("/");
    let numbers: Vec<_> =
        plan.view.items().iter().filter(|item| matches!(item.shown, Shown::Given(_))).map(|_| 10).collect();
    for line in plan.option_lines(&numbers) {
        match line.iter().position(|word| word == "--file") {
            Some(at) => drop(command.args([OsStr::new("--ro-bind"), OsStr::new("/usr/bin/true"), &line[at + 2]])),
            None => drop(command.args(line)),
        }
    }
    for (name, value) in &plan.environment {
        command.args([OsStr::new("--setenv"), name, value]);
    }
    command.arg("--");
    Ok(command)
}
