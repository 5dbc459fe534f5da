//! A child process run to its end, with a limit on its time.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How much output is kept, in bytes.
const MOST_OUTPUT: u64 = 64 << 20;

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    /// How it ended; nothing where its time was up first.
    pub status: Option<ExitStatus>,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, where that was kept apart.
    pub stderr: Vec<u8>,
}

/// Runs a command in a process group of its own, which ends with its time.
///
/// Its output goes to unnamed files and not to pipes, so that a process it leaves behind delays nothing.
///
/// # Errors
/// Where it cannot be started or watched.
pub fn run(mut command: Command, timeout: Duration, merge_output: bool) -> io::Result<Ran> {
    let (stdout, stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let errors_to = if merge_output { &stdout } else { &stderr };
    command.stdout(stdout.try_clone()?).stderr(errors_to.try_clone()?).process_group(0);
    let mut child = command.spawn()?;
    let status = wait(&mut child, timeout)?;
    if status.is_none() {
        end_group(&mut child)?;
    }
    Ok(Ran { status, stdout: content(stdout)?, stderr: content(stderr)? })
}

fn content(mut file: File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.rewind()?;
    file.take(MOST_OUTPUT).read_to_end(&mut content)?;
    Ok(content)
}

fn wait(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let deadline = Instant::now().checked_add(timeout);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn end_group(child: &mut Child) -> io::Result<()> {
    if let Ok(id) = i32::try_from(child.id()) {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            // A group that is gone already is what is wanted.
            let _ = killpg(Pid::from_raw(id), signal);
            if wait(child, Duration::from_millis(500))?.is_some() {
                return Ok(());
            }
        }
    }
    child.wait().map(drop)
}
