//! A program run to its end, bounded: no input, an empty environment but for `PATH` and the locale, a time-out, and a
//! limit on what it may print. Nothing goes through a shell.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How much of standard error is kept for a message, in bytes.
const STDERR_KEPT: usize = 64 << 10;
/// How often a program that has closed its output is asked whether it has ended.
const ENDED_POLL: Duration = Duration::from_millis(2);

/// What a program may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Until it has ended.
    pub time: Duration,
    /// Bytes of standard output.
    pub output: usize,
}

/// Why a program gave nothing that can be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It did not start.
    #[error("{program} could not be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Reading its output failed, its time-out and its output limit among the causes.
    #[error("{program}: {source}")]
    Output {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
}

/// How a program ended and what it printed.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// Standard output, whole; empty where it was read as a stream.
    pub stdout: Vec<u8>,
    /// The first part of standard error, as text without control characters other than the line feed.
    pub stderr: String,
}

/// A command of `program` under the conditions of this module.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", search_path())
        .env("LANG", "C")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The directories in which programs are looked for.
#[must_use]
pub fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"))
}

/// Runs `command` and keeps its standard output.
///
/// # Errors
/// [`Error`]; an exit status other than zero is none.
pub fn run(command: &mut Command, limits: Limits) -> Result<Ended, Error> {
    let mut stdout = Vec::new();
    let ended = stream(command, limits, |out| out.read_to_end(&mut stdout).map(drop))?;
    Ok(Ended { stdout, ..ended })
}

/// Runs `command` and gives its standard output to `read` as it comes. What `read` leaves is passed over.
///
/// # Errors
/// [`Error`], with what `read` gives as [`Error::Output`] where the program itself ended well.
pub fn stream(
    command: &mut Command,
    limits: Limits,
    read: impl FnOnce(&mut dyn Read) -> io::Result<()>,
) -> Result<Ended, Error> {
    let program = PathBuf::from(command.get_program()).display().to_string();
    let start = |source| Error::Start { program: program.clone(), source };
    let output = |source| Error::Output { program: program.clone(), source };
    let mut running = Running::start(command, limits).map_err(start)?;
    let done = read(&mut running).and_then(|()| io::copy(&mut running, &mut io::sink()).map(drop));
    let limit =
        done.as_ref().err().is_some_and(|e| matches!(e.kind(), io::ErrorKind::TimedOut | io::ErrorKind::FileTooLarge));
    if limit {
        return Err(output(done.err().unwrap_or_else(|| io::ErrorKind::Other.into())));
    }
    let failed = done.err();
    if failed.is_some() {
        // The reader gave up: let the program end by itself, so that its own message is there to be told.
        io::copy(&mut running, &mut io::sink()).map_err(output)?;
    }
    let status = running.wait().map_err(output)?;
    match failed {
        Some(source) if status.success() => Err(output(source)),
        _ => Ok(Ended { status, stdout: Vec::new(), stderr: readable(&running.kept) }),
    }
}

impl Ended {
    /// What a message says of it: how it ended, and what it said.
    #[must_use]
    pub fn cause(&self) -> String {
        match self.stderr.trim_end() {
            "" => format!("{}, and nothing on standard error", How(self.status)),
            said => format!("{}: {said}", How(self.status)),
        }
    }
}

struct How(ExitStatus);

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::os::unix::process::ExitStatusExt as _;
        match (self.0.code(), self.0.signal()) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, Some(signal)) => write!(f, "ended by signal {signal}"),
            (None, None) => f.write_str("ended"),
        }
    }
}

fn readable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|c| *c == '\n' || !c.is_control()).collect()
}

struct Running {
    child: Child,
    stdout: ChildStdout,
    stderr: Option<ChildStderr>,
    kept: Vec<u8>,
    deadline: Instant,
    left: usize,
    limits: Limits,
}

impl Running {
    fn start(command: &mut Command, limits: Limits) -> io::Result<Self> {
        let mut child = command.spawn()?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("its output is no pipe"));
        };
        let running = Self {
            child,
            stdout,
            stderr: Some(stderr),
            kept: Vec::new(),
            deadline: Instant::now() + limits.time,
            left: limits.output,
            limits,
        };
        not_blocking(&running.stdout)?;
        running.stderr.as_ref().map_or(Ok(()), not_blocking)?;
        Ok(running)
    }

    fn remaining(&self) -> io::Result<Duration> {
        match self.deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("it had not ended after {} s and was stopped", self.limits.time.as_secs_f32()),
            )),
            left => Ok(left),
        }
    }

    /// Waits until one of the two has something to be read. Standard error is read here: a program that fills it while
    /// nobody reads would never get on with its output.
    fn wait_for_output(&mut self) -> io::Result<()> {
        let left = self.remaining()?;
        let mut fds = vec![PollFd::new(self.stdout.as_fd(), PollFlags::POLLIN)];
        if let Some(stderr) = &self.stderr {
            fds.push(PollFd::new(stderr.as_fd(), PollFlags::POLLIN));
        }
        match poll(&mut fds, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
        self.drain_stderr();
        Ok(())
    }

    fn drain_stderr(&mut self) {
        let mut piece = [0; 4096];
        while let Some(stderr) = &mut self.stderr {
            match stderr.read(&mut piece) {
                Ok(0) => self.stderr = None,
                Ok(n) => {
                    let room = STDERR_KEPT.saturating_sub(self.kept.len());
                    self.kept.extend_from_slice(&piece[..n.min(room)]);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.stderr = None,
            }
            if self.remaining().is_err() {
                return;
            }
        }
    }

    /// The exit status. Whoever else holds the output open is not waited for.
    fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.drain_stderr();
                return Ok(status);
            }
            self.drain_stderr();
            std::thread::sleep(self.remaining()?.min(ENDED_POLL));
        }
    }
}

impl Read for Running {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stdout.read(buffer) {
                Ok(n) if n > self.left => {
                    let limit = self.limits.output;
                    let message = format!("it printed more than {limit} bytes and was stopped");
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
                }
                Ok(n) => {
                    self.left -= n;
                    return Ok(n);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.wait_for_output()?,
                Err(e) => return Err(e),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error says that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn not_blocking(fd: &impl AsFd) -> io::Result<()> {
    let flags = OFlag::from_bits_truncate(fcntl(fd, FcntlArg::F_GETFL)?);
    fcntl(fd, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { time: Duration::from_secs(20), output: 1 << 20 };

    fn sh(script: &str, limits: Limits) -> Result<Ended, Error> {
        run(command("/bin/sh").args(["-c", script]), limits)
    }

    #[test]
    fn a_program_gets_path_and_locale_and_nothing_else() {
        let ended = sh("env; cat", LIMITS).unwrap();
        let out = String::from_utf8(ended.stdout).unwrap();
        let mut names: Vec<_> = out.lines().map(|l| l.split('=').next().unwrap()).collect();
        names.retain(|n| !matches!(*n, "PWD" | "SHLVL" | "_" | "OLDPWD"));
        names.sort_unstable();
        assert_eq!(names, ["LANG", "LC_ALL", "PATH"]);
    }

    #[test]
    fn output_and_status_and_the_words_on_standard_error_are_kept() {
        let ended = sh("printf out; printf 'no\\033[2J\\nway' >&2; exit 3", LIMITS).unwrap();
        assert_eq!(ended.stdout, b"out");
        assert_eq!(ended.cause(), "exit status 3: no[2J\nway");
        assert_eq!(sh("kill -9 $$", LIMITS).unwrap().cause(), "ended by signal 9, and nothing on standard error");
    }

    #[test]
    fn a_program_that_fills_standard_error_first_does_not_hang() {
        let ended = sh("head -c 3000000 /dev/zero >&2; head -c 1000000 /dev/zero", LIMITS).unwrap();
        assert_eq!(ended.stdout.len(), 1_000_000);
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped() {
        let limits = Limits { time: Duration::from_millis(150), ..LIMITS };
        for script in ["sleep 60", "exec >&- 2>&-; sleep 60", "while :; do echo x >&2; done"] {
            let started = Instant::now();
            let error = sh(script, limits).unwrap_err().to_string();
            assert!(error.contains("had not ended after 0.15 s"), "{script}: {error}");
            assert!(started.elapsed() < Duration::from_secs(10), "{script}");
        }
    }

    #[test]
    fn a_child_that_holds_the_output_open_is_not_waited_for_beyond_the_limit() {
        let limits = Limits { time: Duration::from_millis(300), ..LIMITS };
        let started = Instant::now();
        assert!(sh("sleep 3 & echo done", limits).is_err());
        assert!(started.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn a_program_that_prints_without_end_is_stopped() {
        let error = sh("yes", LIMITS).unwrap_err().to_string();
        assert!(error.contains("more than 1048576 bytes"), "{error}");
    }

    #[test]
    fn the_failure_of_a_program_comes_before_that_of_its_reader() {
        let broken = |_: &mut dyn Read| Err(io::Error::other("broken"));
        let ended = stream(command("/bin/sh").args(["-c", "echo why >&2; exit 4"]), LIMITS, broken).unwrap();
        assert_eq!(ended.cause(), "exit status 4: why");
        assert!(stream(command("/bin/sh").args(["-c", "exit 0"]), LIMITS, broken).is_err());
    }

    #[test]
    fn an_absent_program_is_an_error_that_names_it() {
        let error = run(&mut command("/nonexistent/prog"), LIMITS).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/prog could not be started"), "{error}");
    }
}
