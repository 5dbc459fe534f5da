//! One process tree inside the view: started, released, signalled, ended whole.
//!
//! Three processes stand between the recorder and the harness: bwrap itself, the first process of the session's own
//! process namespace, and the [`launcher`](super::launcher), which says `ready` on the channel and waits for a byte back
//! before it becomes the command. So the recorder knows when the session is confined and that nothing has been spent
//! until then, it can take hold of the whole tree before the command runs, and a session whose recorder died while
//! bwrap was at work ends at that gate. The guard speaks next, from inside the command and before its first
//! instruction: what does not begin with its word is no session.

use crate::confine::bwrap::{Plan, diagnose, refuse_root};
use crate::confine::cancel::Cancel;
use crate::confine::launcher::{LAUNCH, NOT_EXECUTED, Orders, READY, SAYS};
use crate::confine::memory::sealed;
use crate::confine::sys;
use crate::confine::view::LAUNCHER;
use crate::status::{Failure, Outcome, Status};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What the guard says; the same as in `recorder/preload/src/lib.rs`.
const GUARDED: &[u8] = b"guarded\n";

/// How long bwrap may take to set the view up.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long a tree that was killed may take to be gone, in the kernel.
const END_LIMIT: Duration = Duration::from_secs(10);
/// How much of the standard error is kept, in bytes: its end.
const ERRORS_KEPT: usize = 16 * 1024;
const PIECE: usize = 64 * 1024;

/// What happened in a [`Sandbox`].
#[derive(Debug)]
pub enum Step<'a> {
    /// The command wrote to its standard output.
    Bytes(&'a [u8]),
    /// The request to stop has been made.
    Cancelled,
    /// The deadline has passed.
    Deadline,
    /// Every process has ended and everything written has been read.
    Ended,
}

/// What came in place of a word.
enum Heard {
    Word,
    Other(String),
    End,
}

/// A process tree inside a view. Dropped, it is killed whole.
#[derive(Debug)]
pub struct Sandbox {
    bwrap: Child,
    bwrap_ended: OwnedFd,
    /// The first of the session's process namespace: the kernel ends all others before it is gone.
    first: Option<Process>,
    /// What the command looked like from here when the guard had spoken.
    guarded: Option<Looks>,
    channel: Option<UnixStream>,
    errors: Option<PipeReader>,
    errors_kept: Vec<u8>,
    exit: Option<ExitStatus>,
    piece: Vec<u8>,
}

/// A process that is signalled and waited for by its descriptor, never by its number alone.
#[derive(Debug)]
struct Process {
    pid: u32,
    fd: OwnedFd,
}

impl Sandbox {
    /// Starts bwrap with the view, the files and the environment of `plan`, up to the gate before `command`, and
    /// returns when the view stands. The thread that calls this must live as long as the session: the session ends
    /// with it.
    ///
    /// # Errors
    /// [`Status::Unconfined`] and [`Status::NotEntered`] as bwrap's own message says, [`Status::Internal`] otherwise.
    pub fn start(plan: &Plan, command: &[OsString], stdin: OwnedFd, cancel: &Cancel) -> Outcome<Self> {
        refuse_root()?;
        let restrictions = plan.restrictions()?;
        refuse_nul(command.iter().chain(plan.environment.iter().flat_map(|(name, value)| [name, value])))?;
        let orders = Orders {
            rules: restrictions.rules,
            filter: restrictions.filter,
            command: command.to_vec(),
            environment: plan.environment.clone(),
        };
        let orders = serde_json::to_vec(&orders).map_err(|e| Failure::io("the launcher's orders", e))?;
        let orders = sealed("orders", &orders)?;
        let files = plan.in_memory().map(|(_, _, bytes)| sealed("file", bytes)).collect::<Outcome<Vec<_>>>()?;
        let numbers: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
        // In memory rather than on the command line, which the session can read and which has a limit.
        let options = sealed("options", &joined(&plan.options(&numbers))?)?;
        let keep: Vec<BorrowedFd<'_>> = files.iter().chain([&options, &orders]).map(AsFd::as_fd).collect();

        let mut bwrap = Command::new(&plan.bwrap.path);
        bwrap.arg("--args").arg(options.as_raw_fd().to_string());
        bwrap.args(["--", LAUNCHER, LAUNCH]).arg(orders.as_raw_fd().to_string());
        let mut sandbox = Self::spawn(bwrap, &keep, stdin)?;
        drop((files, options, orders));

        sandbox.wait_for_gate(cancel)?;
        // Looked up rather than reported by bwrap's `--info-fd`: bwrap writes that report after it has tied its life to
        // the recorder's and before it lets its child go on, and a recorder killed in between leaves the child waiting.
        sandbox.first = Some(child_of(sandbox.bwrap.id(), "1").ok_or_else(|| {
            let message = "the first process of the session is not to be found in /proc";
            Failure::new(Status::Unconfined, message).remedy("mount /proc without hidepid, or with this user's group")
        })?);
        Ok(sandbox)
    }

    fn spawn(mut bwrap: Command, keep: &[BorrowedFd<'_>], stdin: OwnedFd) -> Outcome<Self> {
        // A socket: unlike a pipe, nobody can open it again through /proc.
        let (channel, channel_inside) = UnixStream::pair().map_err(|e| Failure::io("socket pair", e))?;
        let (errors, errors_inside) = std::io::pipe().map_err(|e| Failure::io("pipe", e))?;
        channel.set_nonblocking(true).map_err(|e| Failure::io("socket pair", e))?;
        fcntl(&errors, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|e| Failure::io("pipe", e.desc()))?;
        bwrap.env_clear().current_dir("/").process_group(0);
        bwrap.stdin(Stdio::from(stdin)).stdout(OwnedFd::from(channel_inside)).stderr(errors_inside);
        sys::prepare(&mut bwrap, keep);
        let program = bwrap.get_program().to_owned();
        let mut child = bwrap
            .spawn()
            .map_err(|e| Failure::new(Status::Unconfined, format!("{} cannot be started: {e}", program.display())))?;
        // The ends inside are held by the child alone, so that its end is an end here.
        drop(bwrap);
        let bwrap_ended = match sys::pidfd(child.id()) {
            Ok(fd) => fd,
            Err(e) => {
                // The gate ends when the channel does.
                drop(channel);
                let _ = child.wait();
                return Err(Failure::io("a descriptor of bwrap's process", e));
            }
        };
        Ok(Self {
            bwrap: child,
            bwrap_ended,
            first: None,
            guarded: None,
            channel: Some(channel),
            errors: Some(errors),
            errors_kept: Vec::new(),
            exit: None,
            piece: vec![0; PIECE],
        })
    }

    fn wait_for_gate(&mut self, cancel: &Cancel) -> Outcome<()> {
        match self.expect(READY, cancel)? {
            Heard::Word => Ok(()),
            Heard::Other(text) => {
                let message = format!("bwrap printed {text:?} in place of a session");
                Err(Failure::new(Status::Unconfined, message).remedy("use the bubblewrap of the distribution"))
            }
            Heard::End => Err(diagnose(&self.errors())),
        }
    }

    /// Opens the gate, and returns when the command is loaded and guarded: it runs from here on.
    ///
    /// # Errors
    /// [`Status::HarnessFailed`] where the command cannot be executed; [`Status::Unconfined`] where it does not load
    /// the guard; [`Status::Internal`] where the gate is gone. Nothing has been spent then.
    pub fn release(&mut self, cancel: &Cancel) -> Outcome<()> {
        let failed = |e| Failure::io("the session ended before its command", e);
        match &mut self.channel {
            Some(channel) => channel.write_all(b"\n").map_err(failed)?,
            None => return Err(failed(ErrorKind::UnexpectedEof.into())),
        }
        match self.expect(GUARDED, cancel)? {
            Heard::Word => {
                self.guarded = self.command().and_then(|command| looks(command.pid));
                Ok(())
            }
            Heard::Other(_) => Err(unguarded("it does not load the guard")),
            Heard::End => {
                let code = self.exit.and_then(|exit| exit.code()).and_then(|code| u8::try_from(code).ok());
                let errors = self.errors();
                match errors.lines().find_map(|line| line.strip_prefix(SAYS)) {
                    Some(why) if code.is_some_and(|code| NOT_EXECUTED.contains(&code)) => {
                        let message = format!("the harness could not be executed: {why}");
                        let remedy = "name a harness whose interpreter or loader is in the view, and that this user may \
                                      execute";
                        Err(Failure::new(Status::HarnessFailed, message).remedy(remedy))
                    }
                    _ => Err(unguarded(&format!("it ended first; {errors}"))),
                }
            }
        }
    }

    /// Refuses a command that has executed another program since the guard has spoken: the guard is gone then.
    ///
    /// # Errors
    /// [`Status::Unconfined`].
    pub fn check_guarded(&self) -> Outcome<()> {
        let now = self.command().and_then(|command| looks(command.pid));
        // What has ended is not replaced, and holds nothing any more.
        match (&self.guarded, now) {
            (Some(then), Some(now)) if *then != now => Err(unguarded("it executed another program")),
            _ => Ok(()),
        }
    }

    /// Waits for `word` on the channel, and takes nothing that comes after it.
    fn expect(&mut self, word: &[u8], cancel: &Cancel) -> Outcome<Heard> {
        let deadline = Instant::now() + START_LIMIT;
        let mut heard = Vec::new();
        while heard != word {
            match self.step_within(word.len() - heard.len(), deadline, Some(cancel))? {
                Step::Bytes(bytes) => heard.extend_from_slice(bytes),
                Step::Cancelled => return Err(Cancel::failure()),
                Step::Deadline => {
                    let message = format!("the session was not set up in {} s", START_LIMIT.as_secs());
                    return Err(Failure::new(Status::Unconfined, message).remedy("check the file systems it binds"));
                }
                Step::Ended => return Ok(Heard::End),
            }
            if !word.starts_with(&heard) {
                return Ok(Heard::Other(String::from_utf8_lossy(&heard).into_owned()));
            }
        }
        Ok(Heard::Word)
    }

    /// Waits for the next thing to happen. Bytes come first, so that a command which never stops writing is seen to
    /// the end of what it wrote; without `cancel` a request to stop is not looked at.
    ///
    /// # Errors
    /// [`Status::Internal`] where the descriptors cannot be waited for or read.
    pub fn step(&mut self, deadline: Instant, cancel: Option<&Cancel>) -> Outcome<Step<'_>> {
        self.step_within(PIECE, deadline, cancel)
    }

    /// The same, with at most `most` bytes.
    fn step_within(&mut self, most: usize, deadline: Instant, cancel: Option<&Cancel>) -> Outcome<Step<'_>> {
        loop {
            self.read_errors()?;
            if cancel.is_some_and(Cancel::requested) {
                return Ok(Step::Cancelled);
            }
            let all_ended = self.all_ended()?;
            match self.read_channel(most)? {
                Some(n) if n > 0 => return Ok(Step::Bytes(&self.piece[..n])),
                Some(_) => self.channel = None,
                None => {}
            }
            if all_ended {
                self.read_errors()?;
                return Ok(Step::Ended);
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                return Ok(Step::Deadline);
            };
            self.wait(left, cancel)?;
        }
    }

    /// Waits until a descriptor has something to say, or `limit` has passed.
    fn wait(&self, limit: Duration, cancel: Option<&Cancel>) -> Outcome<()> {
        let mut fds = Vec::with_capacity(5);
        let mut add = |fd| fds.push(PollFd::new(fd, PollFlags::POLLIN));
        self.channel.as_ref().map(AsFd::as_fd).map(&mut add);
        self.errors.as_ref().map(AsFd::as_fd).map(&mut add);
        cancel.map(AsFd::as_fd).map(&mut add);
        // One process at a time, so that one which has ended does not keep the wait from waiting for the other.
        if self.exit.is_none() {
            add(self.bwrap_ended.as_fd());
        } else if let Some(first) = &self.first {
            add(first.fd.as_fd());
        }
        let millis = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        match poll(&mut fds, PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(e) => Err(Failure::io("waiting for the session", e.desc())),
        }
    }

    /// Whether bwrap and every process of the session have ended. Where bwrap has, the rest is killed: a process that
    /// outlives the command has nothing more to say.
    fn all_ended(&mut self) -> Outcome<bool> {
        if self.exit.is_none() {
            self.exit = self.bwrap.try_wait().map_err(|e| Failure::io("bwrap", e))?;
            if self.exit.is_none() {
                return Ok(false);
            }
            self.kill();
        }
        match &self.first {
            Some(first) => Ok(readable(first.fd.as_fd())),
            // Before the gate: whatever bwrap had started holds the channel until it ends.
            None => Ok(self.channel.as_ref().is_none_or(|channel| hung_up(channel.as_fd()))),
        }
    }

    /// Bytes read into the piece; `Some(0)` at the end; `None` where there is nothing now.
    fn read_channel(&mut self, most: usize) -> Outcome<Option<usize>> {
        let piece = &mut self.piece[..most.min(PIECE)];
        match &mut self.channel {
            Some(channel) => read_some(channel, piece).map_err(|e| Failure::io("the session's output", e)),
            None => Ok(None),
        }
    }

    fn read_errors(&mut self) -> Outcome<()> {
        let mut piece = [0; 4096];
        // Bounded, so that a command which floods its standard error does not keep the rest waiting.
        for _ in 0..64 {
            let Some(errors) = &mut self.errors else { return Ok(()) };
            match read_some(errors, &mut piece).map_err(|e| Failure::io("the session's standard error", e))? {
                Some(0) => self.errors = None,
                Some(n) => {
                    self.errors_kept.extend_from_slice(&piece[..n]);
                    let over = self.errors_kept.len().saturating_sub(ERRORS_KEPT);
                    self.errors_kept.drain(..over);
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// The end of what was written to the standard error, made fit for a terminal: the session may have written it.
    #[must_use]
    pub fn errors(&self) -> String {
        let text = String::from_utf8_lossy(&self.errors_kept);
        let shown = text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c });
        shown.collect::<String>().trim_end().to_owned()
    }

    /// How bwrap ended, once it has: with the command's own code, or 128 and the number of the signal that ended it.
    #[must_use]
    pub fn exit(&self) -> Option<ExitStatus> {
        self.exit
    }

    /// Asks the command to end, by SIGTERM to it alone. False where it is not there any more.
    pub fn ask_to_end(&self) -> bool {
        self.command().is_some_and(|command| sys::signal(command.fd.as_fd(), libc::SIGTERM).is_ok())
    }

    fn command(&self) -> Option<Process> {
        self.first.as_ref().and_then(|first| child_of(first.pid, "2"))
    }

    /// Ends every process of the session. They are gone when [`Sandbox::step`] gives [`Step::Ended`].
    pub fn kill(&mut self) {
        if let Some(first) = &self.first {
            // bwrap ends by itself, with the exit status of what it waits for.
            let _ = sys::signal(first.fd.as_fd(), libc::SIGKILL);
        } else if let Some(channel) = &self.channel {
            // The gate ends when nothing more can come. bwrap is not killed before: its child would wait for it.
            let _ = channel.shutdown(std::net::Shutdown::Write);
        }
    }
}

impl Drop for Sandbox {
    /// Everything is gone on return. What the kernel cannot end in ten seconds (a file system that hangs) is not
    /// waited for.
    fn drop(&mut self) {
        self.kill();
        let deadline = Instant::now() + END_LIMIT;
        while matches!(self.step(deadline, None), Ok(Step::Bytes(_))) {}
        if self.exit.is_none() {
            let _ = self.bwrap.kill();
            let _ = self.bwrap.wait();
        }
    }
}

/// The words as bwrap reads them from a descriptor: each ended by NUL.
fn joined(words: &[OsString]) -> Outcome<Vec<u8>> {
    refuse_nul(words)?;
    Ok(words.iter().flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect())
}

/// Refuses a word that would be two.
fn refuse_nul<'a>(words: impl IntoIterator<Item = &'a OsString>) -> Outcome<()> {
    match words.into_iter().find(|word| word.as_bytes().contains(&0)) {
        Some(word) => {
            Err(Failure::new(Status::Usage, format!("{word:?} holds a NUL, which no path and no variable may")))
        }
        None => Ok(()),
    }
}

fn read_some(from: &mut impl Read, into: &mut [u8]) -> std::io::Result<Option<usize>> {
    loop {
        match from.read(into) {
            Ok(n) => return Ok(Some(n)),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
            // The other end closed with something of ours unread.
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(Some(0)),
            Err(e) => return Err(e),
        }
    }
}

/// What is seen of a process from outside and changes where it executes another program: the file that it executes, and
/// who owns its entries in `/proc`, which is not its user while it is closed.
#[derive(Debug, PartialEq, Eq)]
struct Looks {
    program: (u64, u64),
    owner: u32,
}

fn looks(pid: u32) -> Option<Looks> {
    let program = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    let owner = fs::metadata(format!("/proc/{pid}/environ")).ok()?.uid();
    Some(Looks { program: (program.dev(), program.ino()), owner })
}

fn unguarded(what: &str) -> Failure {
    let message = format!("the harness cannot be closed to its tools: {what}");
    let remedy = "use a harness that is linked dynamically, as the pinned one is, and no script that starts it";
    Failure::new(Status::Unconfined, message).remedy(remedy)
}

fn polled(fd: BorrowedFd<'_>) -> PollFlags {
    let mut fds = [PollFd::new(fd, PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::ZERO) {
        Ok(_) => fds[0].revents().unwrap_or(PollFlags::empty()),
        Err(_) => PollFlags::empty(),
    }
}

fn readable(fd: BorrowedFd<'_>) -> bool {
    polled(fd).contains(PollFlags::POLLIN)
}

fn hung_up(fd: BorrowedFd<'_>) -> bool {
    polled(fd).contains(PollFlags::POLLHUP)
}

/// The child of the process `parent` that has the number `inside` in the innermost of its process namespaces. Of bwrap
/// that is the session's first process, as `1`; of that, the command, as `2`, since bwrap starts nothing else there.
fn child_of(parent: u32, inside: &str) -> Option<Process> {
    let pid = number_of_child(parent, inside)?;
    let fd = sys::pidfd(pid).ok()?;
    // Looked up anew with the descriptor in hand: the number may have passed to another process before.
    (number_of_child(parent, inside) == Some(pid)).then_some(Process { pid, fd })
}

fn number_of_child(parent: u32, inside: &str) -> Option<u32> {
    let found = |pids: Vec<u32>| pids.into_iter().find(|pid| is_child(*pid, parent, inside));
    found(children_of_first_thread(parent)).or_else(|| found(processes()))
}

/// The quick way: bwrap and the first process of a session have one thread. Not every kernel is built with this list.
fn children_of_first_thread(parent: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn is_child(pid: u32, parent: u32, inside: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    value("PPid:").is_some_and(|ppid| ppid.parse() == Ok(parent))
        && value("NSpid:").is_some_and(|numbers| numbers.split_whitespace().next_back() == Some(inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::testing::{Place, as_ordinary_user, processes_with};

    #[test]
    fn a_request_to_stop_while_bwrap_is_at_work_leaves_no_process() {
        as_ordinary_user!();
        let place = Place::new("");
        let plan = place.plan();
        for n in 0..40 {
            let mark = format!("{}-stopped-{n}", std::process::id());
            let (cancel, handle) = Cancel::with_handle().unwrap();
            let stopper = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_micros(n * 200));
                drop(handle);
            });
            let begun = Instant::now();
            let command = ["/bin/sh".into(), mark.clone().into()];
            let started = Sandbox::start(&plan, &command, sealed("stdin", b"").unwrap(), &cancel);
            match started {
                Ok(sandbox) => drop(sandbox),
                Err(failure) => assert_eq!((failure.status, failure.spent), (Status::Internal, false), "{failure}"),
            }
            assert_eq!(processes_with(&mark), 0, "stopped after {n}");
            assert!(begun.elapsed() < Duration::from_secs(5));
            stopper.join().unwrap();
        }
    }

    #[test]
    fn the_command_does_not_run_before_the_gate_is_open() {
        as_ordinary_user!();
        let place = Place::new("");
        let command = ["/usr/bin/touch".into(), place.workspace.join("ran").into()];
        let start =
            || Sandbox::start(&place.plan(), &command, sealed("stdin", b"").unwrap(), &Cancel::never().unwrap());
        drop(start().unwrap());
        assert!(!place.workspace.join("ran").exists());
        let mut sandbox = start().unwrap();
        sandbox.release(&Cancel::never().unwrap()).unwrap();
        assert!(matches!(sandbox.step(Instant::now() + Duration::from_secs(10), None).unwrap(), Step::Ended));
        assert!(place.workspace.join("ran").exists());
    }

    #[test]
    fn a_child_is_found_by_its_parent_and_its_number() {
        let mut child = Command::new("sleep").arg("10").spawn().unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap();
        let inside = numbers.split_whitespace().next_back().unwrap();
        let parent = std::process::id();
        let found = child_of(parent, inside).map(|process| process.pid);
        let others = (child_of(parent, "0").is_none(), child_of(child.id(), inside).is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((found, others), (Some(child.id()), (true, true)));
        assert!(child_of(parent, inside).is_none());
    }

    #[test]
    fn root_is_refused_before_anything_is_started() {
        if !nix::unistd::geteuid().is_root() {
            // Only root can try this, and the other tests show that an ordinary user is not refused.
            assert!(refuse_root().is_ok());
            return;
        }
        let place = Place::new("");
        let refused = Sandbox::start(&place.plan(), &[], sealed("stdin", b"").unwrap(), &Cancel::never().unwrap());
        let refused = refused.map(drop).unwrap_err();
        assert_eq!((refused.status, refused.spent), (Status::Unconfined, false));
        assert_eq!(refused.remedy.unwrap(), "run it as an ordinary user");
    }

    #[test]
    fn a_word_that_holds_a_nul_is_refused_and_not_read_as_two_options() {
        as_ordinary_user!();
        let place = Place::new("");
        let mut plan = place.plan();
        plan.environment.push(("A".into(), "x\0--bind\0/\0/host".into()));
        let start = Sandbox::start(&plan, &[], sealed("stdin", b"").unwrap(), &Cancel::never().unwrap());
        assert_eq!(start.map(drop).unwrap_err().status, Status::Usage);
    }
}
