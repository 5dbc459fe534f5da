//! The harness started, read and ended.
//!
//! Its standard output is one end of a socket pair of which the recorder holds the other: the channel that nothing in
//! the session has a handle on. Every byte of it is written to the raw log and digested as it arrives.

use crate::confine::bwrap::Plan;
use crate::confine::cancel::Cancel;
use crate::confine::memory::sealed;
use crate::confine::sandbox::{Sandbox, Step};
use crate::status::{Failure, Outcome, Status};
use headwater_contract::digest::{Digest, Hasher};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long a harness that was asked to end may take to do so.
const GRACE: Duration = Duration::from_secs(3);
/// How long the kernel may take to end what was killed.
const END_LIMIT: Duration = Duration::from_secs(10);
/// The longest line that is looked at for the end of the session, in bytes.
const LINE_LOOKED_AT: usize = 64 << 20;

/// What bounds a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From the start of the harness to its end.
    pub wall: Duration,
    /// Without a byte of output. A tool call may run for ten minutes and write nothing.
    pub idle: Duration,
    /// Of output, in bytes.
    pub raw_bytes: u64,
    /// From the result line to the harness's end, while nothing more is written and no sub-agent runs.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(2 * 60 * 60),
            idle: Duration::from_secs(20 * 60),
            raw_bytes: 1 << 30,
            linger: Duration::from_secs(10),
        }
    }
}

/// Where the output of the session is kept.
#[derive(Debug)]
pub struct RawLog {
    /// Open for writing, at the place where the output is to begin.
    pub file: File,
    /// Its path, for messages.
    pub path: PathBuf,
}

/// Why the recorder ended a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// [`Limits::wall`].
    Wall(Duration),
    /// [`Limits::idle`].
    Idle(Duration),
    /// [`Limits::raw_bytes`].
    RawBytes(u64),
    /// The request to stop.
    Cancelled,
}

/// A session that has ended, with everything it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit code of the harness; 128 and the number of the signal where one ended it.
    pub code: Option<i32>,
    /// The signal that ended bwrap itself, where there is no code.
    pub signal: Option<i32>,
    /// How many bytes the raw log holds.
    pub bytes: u64,
    /// The digest of the raw log.
    pub digest: Digest,
    /// How long the harness ran.
    pub wall: Duration,
    /// The end of its standard error, fit for a terminal.
    pub stderr_tail: String,
    /// Why the recorder ended it, where it did before the session was over.
    pub stopped_by: Option<Stop>,
    /// The session was over by its result line and the harness stayed, so the recorder ended it: the exit code says
    /// nothing about the session.
    pub lingered: bool,
}

impl Ended {
    /// The refusal of a session that the recorder stopped.
    ///
    /// # Errors
    /// [`Status::Limit`] for a limit, [`Status::Internal`] for a request to stop.
    pub fn check(&self) -> Outcome<()> {
        let limit = |what: String, remedy: &str| {
            let kept = format!("{what}; {} bytes of its output are kept", self.bytes);
            Err(Failure::new(Status::Limit, kept).remedy(remedy).after_spending())
        };
        match self.stopped_by {
            None => Ok(()),
            Some(Stop::Cancelled) => Err(Cancel::failure().after_spending()),
            Some(Stop::Wall(d)) => {
                let remedy = "allow it more time, or lower the turn cap";
                limit(format!("the session was stopped at its limit of {} s", d.as_secs_f64()), remedy)
            }
            Some(Stop::Idle(d)) => {
                let remedy = "see whether the provider answers, and run it again";
                limit(format!("the session was stopped after {} s without output", d.as_secs_f64()), remedy)
            }
            Some(Stop::RawBytes(n)) => {
                limit(format!("the session was stopped at {n} bytes of output"), "see what filled the raw log")
            }
        }
    }
}

/// Runs the harness of `plan` with `prompt` on its standard input, to its end or to the first of `limits`. On return
/// no process of the session is left, whatever is returned.
///
/// # Errors
/// As [`Sandbox::start`] before anything is spent; [`Status::HarnessFailed`] where the harness could not be executed;
/// [`Status::Internal`] where the raw log cannot be written, with its path. A session that was stopped is no error
/// here: what was observed is kept, and [`Ended::check`] refuses it.
pub fn drive(plan: &Plan, prompt: &[u8], raw: RawLog, limits: &Limits, cancel: &Cancel) -> Outcome<Ended> {
    let stdin = sealed("prompt", prompt)?;
    cancel.check()?;
    let mut sandbox = Sandbox::start(plan, &plan.command, stdin, cancel)?;
    sandbox.release(cancel)?;
    let now = Instant::now();
    let record = Record::new(raw, limits.raw_bytes);
    let session = Session { sandbox, record, limits: *limits, started: now, heard: now, phase: Phase::Running };
    session.run(cancel).map_err(Failure::after_spending)
}

/// How far the end of a session is.
#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    /// Asked to end, and to be killed at this time.
    Asked(Instant),
    /// Killed, and to be gone at this time.
    Killed(Instant),
}

struct Session {
    sandbox: Sandbox,
    record: Record,
    limits: Limits,
    started: Instant,
    heard: Instant,
    phase: Phase,
}

impl Session {
    fn run(mut self, cancel: &Cancel) -> Outcome<Ended> {
        let (mut stopped_by, mut lingered) = (None, false);
        loop {
            let listening = matches!(self.phase, Phase::Running).then_some(cancel);
            let step = self.sandbox.step(self.deadline(), listening)?;
            let ended = matches!(step, Step::Ended);
            let cancelled = matches!(step, Step::Cancelled);
            if let Step::Bytes(bytes) = step {
                let is_first = self.record.bytes == 0;
                self.record.take(bytes)?;
                self.heard = Instant::now();
                if is_first {
                    self.sandbox.check_guarded()?;
                }
            }
            if ended {
                break;
            }
            match self.phase {
                Phase::Running if cancelled => {
                    stopped_by = Some(Stop::Cancelled);
                    self.ask_to_end();
                }
                Phase::Running => match self.reached_limit() {
                    Some(stop) => {
                        stopped_by = Some(stop);
                        self.kill();
                    }
                    None if self.lingers() => {
                        lingered = true;
                        self.ask_to_end();
                    }
                    None => {}
                },
                Phase::Asked(until) if until <= Instant::now() => self.kill(),
                Phase::Killed(until) if until <= Instant::now() => {
                    return Err(Failure::new(Status::Internal, "the processes of the session cannot be ended")
                        .remedy("see what the kernel says of them: a file system that hangs keeps its processes"));
                }
                Phase::Asked(_) | Phase::Killed(_) => {}
            }
        }
        let exit = self.sandbox.exit();
        Ok(Ended {
            code: exit.and_then(|exit| exit.code()),
            signal: exit.and_then(|exit| exit.signal()),
            bytes: self.record.bytes,
            digest: self.record.hasher.finish(),
            wall: self.started.elapsed(),
            stderr_tail: self.sandbox.errors(),
            stopped_by,
            lingered,
        })
    }

    /// When there is something to do though nothing happens.
    fn deadline(&self) -> Instant {
        match self.phase {
            Phase::Asked(until) | Phase::Killed(until) => until,
            Phase::Running => {
                let silent = if self.record.progress.is_over() {
                    self.limits.linger.min(self.limits.idle)
                } else {
                    self.limits.idle
                };
                let at = |from: Instant, limit| from.checked_add(limit);
                let first = at(self.heard, silent).into_iter().chain(at(self.started, self.limits.wall)).min();
                // A limit beyond the end of time is none; the loop looks again in an hour.
                first.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600))
            }
        }
    }

    fn reached_limit(&self) -> Option<Stop> {
        if self.record.cut {
            Some(Stop::RawBytes(self.limits.raw_bytes))
        } else if self.started.elapsed() >= self.limits.wall {
            Some(Stop::Wall(self.limits.wall))
        } else if self.heard.elapsed() >= self.limits.idle && !self.lingers() {
            Some(Stop::Idle(self.limits.idle))
        } else {
            None
        }
    }

    fn lingers(&self) -> bool {
        self.record.progress.is_over() && self.heard.elapsed() >= self.limits.linger.min(self.limits.idle)
    }

    fn ask_to_end(&mut self) {
        if self.sandbox.ask_to_end() {
            self.phase = Phase::Asked(Instant::now() + GRACE);
        } else {
            self.kill();
        }
    }

    fn kill(&mut self) {
        self.sandbox.kill();
        self.phase = Phase::Killed(Instant::now() + END_LIMIT);
    }
}

/// The output of a session as it is kept.
struct Record {
    raw: RawLog,
    limit: u64,
    bytes: u64,
    /// More came than the limit lets in.
    cut: bool,
    hasher: Hasher,
    progress: Progress,
}

impl Record {
    fn new(raw: RawLog, limit: u64) -> Self {
        Self { raw, limit, bytes: 0, cut: false, hasher: Hasher::default(), progress: Progress::default() }
    }

    /// Keeps `bytes`, as far as the limit lets them in.
    fn take(&mut self, bytes: &[u8]) -> Outcome<()> {
        let room = usize::try_from(self.limit - self.bytes).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        self.cut |= kept.len() < bytes.len();
        self.raw.file.write_all(kept).map_err(|e| {
            Failure::io(self.raw.path.display(), e).remedy("make room for the raw log, or put it elsewhere")
        })?;
        self.hasher.update(kept);
        self.bytes += kept.len() as u64;
        self.progress.see(kept);
        Ok(())
    }
}

/// What the lines so far say about the end of the session. It decides how long a silent harness is waited for, and
/// nothing else.
#[derive(Default)]
struct Progress {
    line: Vec<u8>,
    overlong: bool,
    result_is_last: bool,
    agents: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    subtype: Cow<'a, str>,
    #[serde(borrow, default)]
    task_type: Cow<'a, str>,
    #[serde(borrow, default)]
    task_id: Cow<'a, str>,
}

impl Progress {
    /// A result line was the last word, and no sub-agent is at work that would bring another.
    fn is_over(&self) -> bool {
        self.result_is_last && self.agents.is_empty()
    }

    fn see(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let ends = piece.last() == Some(&b'\n');
            self.overlong |= self.line.len() + piece.len() > LINE_LOOKED_AT;
            if !self.overlong {
                self.line.extend_from_slice(piece);
            }
            if ends {
                let line = std::mem::take(&mut self.line);
                if !std::mem::take(&mut self.overlong) {
                    self.see_line(&line);
                }
                self.line = line;
                self.line.clear();
            }
        }
    }

    fn see_line(&mut self, line: &[u8]) {
        let Ok(head) = serde_json::from_slice::<Head<'_>>(line) else { return };
        match (&*head.kind, &*head.subtype) {
            ("result", _) => self.result_is_last = true,
            ("assistant" | "user", _) | ("system", "init") => self.result_is_last = false,
            ("system", "task_started") if head.task_type == "local_agent" => {
                self.agents.insert(head.task_id.into_owned());
            }
            ("system", "task_notification") => {
                self.agents.remove(&*head.task_id);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::bwrap::MemoryFile;
    use crate::confine::testing::{Place, as_ordinary_user, processes_with, this_test};
    use crate::confine::view::CONFIGURATION;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::process::Stdio;

    fn raw_log(place: &Place) -> RawLog {
        let path = place.directory.path().join("raw.jsonl");
        RawLog { file: File::create(&path).unwrap(), path }
    }

    fn drive_plan(place: &Place, plan: &Plan, limits: &Limits) -> (Ended, String) {
        let ended = drive(plan, b"prompt", raw_log(place), limits, &Cancel::never().unwrap()).unwrap();
        let raw = fs::read(place.directory.path().join("raw.jsonl")).unwrap();
        assert_eq!((ended.bytes, ended.digest), (raw.len() as u64, Digest::of(&raw)));
        (ended, String::from_utf8_lossy(&raw).into_owned())
    }

    fn session(script: &str) -> (Ended, String) {
        let place = Place::new(script);
        drive_plan(&place, &place.plan(), &Limits::default())
    }

    /// A number of seconds that no other process sleeps for.
    fn mark(seed: u32) -> String {
        format!("{}.{seed:02}", 100_000 + std::process::id())
    }

    #[test]
    fn every_byte_of_the_stream_is_kept_and_digested_and_the_exit_code_is_the_harness_s() {
        as_ordinary_user!();
        let (ended, raw) = session("printf 'a\\0b\\n\\n{'; echo said >&2; exit 3");
        assert_eq!(raw, "a\0b\n\n{");
        assert_eq!((ended.code, ended.signal, ended.stderr_tail.as_str()), (Some(3), None, "said"));
        assert_eq!((ended.stopped_by, ended.lingered), (None, false));
        ended.check().unwrap();
        let (ended, raw) = session("kill -9 $$");
        assert_eq!((ended.code, raw.as_str()), (Some(137), ""));
        let (_, raw) = session("i=0; while [ $i -lt 3000 ]; do i=$((i+1)); printf '%0999d\\n' $i; done");
        assert_eq!(raw.len(), 3_000_000);
    }

    #[test]
    fn a_prompt_of_any_length_and_beginning_is_the_whole_standard_input() {
        as_ordinary_user!();
        let place = Place::new("sha256sum; cat; echo x >>/proc/self/fd/0");
        let mut prompt = b"--help /clear \0\xff\n".repeat(190_000);
        prompt.push(b'-');
        assert!(prompt.len() > 3_000_000);
        let ended =
            drive(&place.plan(), &prompt, raw_log(&place), &Limits::default(), &Cancel::never().unwrap()).unwrap();
        let raw = fs::read_to_string(place.directory.path().join("raw.jsonl")).unwrap();
        assert_eq!(format!("sha256:{}", &raw[..64]), Digest::of(&prompt).to_string());
        assert_eq!(raw.lines().count(), 1);
        assert!(ended.code != Some(0) && !ended.stderr_tail.is_empty(), "{ended:?}");
    }

    #[test]
    fn the_channel_is_a_socket_that_no_process_can_open_again() {
        as_ordinary_user!();
        let forge = "for fd in /proc/self/fd/1 /proc/$$/fd/1; do sh -c \"echo forged >$fd\"; done; \
                     readlink /proc/self/fd/1; readlink /proc/$$/fd/1; exit 0";
        let (ended, raw) = session(forge);
        assert!(raw.starts_with("socket:[") && raw.lines().count() == 1, "{raw}");
        // A socket is opened by nobody, and the harness is closed besides.
        assert_eq!(ended.stderr_tail.matches("No such device or address").count(), 1, "{}", ended.stderr_tail);
        assert_eq!(ended.stderr_tail.matches("Permission denied").count(), 1, "{}", ended.stderr_tail);
    }

    #[test]
    fn the_session_has_the_standard_three_descriptors_and_no_other() {
        as_ordinary_user!();
        let place =
            Place::new("sh -c 'n=0; while [ $n -lt 256 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n+1)); done'");
        // As a shell would leave one open for the recorder: without the mark that closes it on exec.
        let _open = nix::unistd::dup(File::open(&place.script).unwrap()).unwrap();
        let mut plan = place.plan();
        let path = Path::new(CONFIGURATION).join("file");
        plan.files.push(MemoryFile { path, mode: 0o600, bytes: vec![1] });
        let (_, raw) = drive_plan(&place, &plan, &Limits::default());
        assert_eq!(raw, "0\n1\n2\n");
    }

    #[test]
    fn the_environment_is_exactly_the_plan_s() {
        as_ordinary_user!();
        let place = Place::new("env -u PWD -u OLDPWD -u SHLVL -u _ cat /proc/self/environ | tr '\\0' '\\n'");
        let mut plan = place.plan();
        plan.environment.push(("ODD".into(), "a=b c --bind".into()));
        let (_, raw) = drive_plan(&place, &plan, &Limits::default());
        let mut lines: Vec<_> = raw.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["ODD=a=b c --bind", "PATH=/usr/bin:/bin"]);
    }

    #[test]
    fn the_credentials_are_a_file_in_memory_that_its_owner_alone_reads_and_are_on_no_disk() {
        as_ordinary_user!();
        const TOKEN: &str = "sk-test-invented-token-of-this-test";
        let script = "cd $HOME; ls -A; stat -c %a .credentials.json; cat .credentials.json; stat -f -c %T .; \
                      echo more >.claude.json && echo written; sleep 1";
        let place = Place::new(script);
        let mut plan = place.plan();
        plan.environment.push(("HOME".into(), CONFIGURATION.into()));
        plan.files.push(MemoryFile {
            path: Path::new(CONFIGURATION).join(".credentials.json"),
            mode: 0o600,
            bytes: format!("{TOKEN}\n").into_bytes(),
        });
        assert!(!format!("{plan:?}").contains(TOKEN));
        let raw = std::thread::scope(|scope| {
            let session = scope.spawn(|| drive_plan(&place, &plan, &Limits::default()).1);
            while !session.is_finished() {
                let held = std::process::Command::new("grep")
                    .arg("-rlF")
                    .arg(TOKEN)
                    .arg("--exclude=raw.jsonl")
                    .arg(place.directory.path())
                    .output()
                    .unwrap();
                assert_eq!(String::from_utf8_lossy(&held.stdout), "");
                assert!(!Path::new(CONFIGURATION).exists());
                std::thread::sleep(Duration::from_millis(50));
            }
            session.join().unwrap()
        });
        assert_eq!(raw, format!(".credentials.json\n600\n{TOKEN}\ntmpfs\nwritten\n"));
    }

    #[test]
    fn nothing_of_the_host_but_the_view_is_there() {
        as_ordinary_user!();
        let script = "here=$PWD; while [ \"$here\" != / ]; do up=${here%/*}; up=${up:-/}; \
                      echo \"$up: $(ls -A $up | tr '\\n' ' ')\"; here=$up; done; \
                      cat ../home/secret; echo $?; ls /root /home; echo $?; \
                      touch /new /usr/new /etc/new /opt/headwater/bin/headwater; echo $?; \
                      ls -d /proc/[0-9]* | wc -l; hostname";
        let place = Place::new(script);
        let home = place.directory.path().join("home");
        fs::create_dir(&home).unwrap();
        fs::write(home.join("secret"), "of the host").unwrap();
        let (_, raw) = drive_plan(&place, &place.plan(), &Limits::default());
        let name = place.directory.path().file_name().unwrap().to_str().unwrap();
        let lines: Vec<_> = raw.lines().collect();
        assert_eq!(lines[0], format!("/tmp/{name}: logs workspace "));
        assert_eq!(lines[1], format!("/tmp: {name} "));
        let of_root: Vec<_> = lines[2].strip_prefix("/: ").unwrap().split_whitespace().collect();
        let expected = ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "tmp", "usr"];
        assert!(of_root.iter().all(|name| expected.contains(name)), "{of_root:?}");
        assert_eq!(lines[3..6], ["1", "2", "1"]);
        assert!(lines[6].parse::<u32>().unwrap() < 10, "{raw}");
        assert_eq!(lines[7], "headwater");
    }

    #[test]
    fn the_workspace_is_written_at_its_own_path_whatever_its_name() {
        as_ordinary_user!();
        let names: [&[u8]; 4] = [b"a b/c  d", b"line\nfeed", b"\xff\xfe not utf-8", b"--bind \\ ' \" $HOME"];
        for name in names {
            let place = Place::named(OsStr::from_bytes(name), "pwd -P; echo new >file; echo log >>../logs/l || exit 9");
            let in_depth = place.workspace.parent() != place.logs.parent();
            let (ended, _) = drive_plan(&place, &place.plan(), &Limits::default());
            assert_eq!(ended.code, Some(if in_depth { 9 } else { 0 }), "{name:?}: {}", ended.stderr_tail);
            let raw = fs::read(place.directory.path().join("raw.jsonl")).unwrap();
            assert_eq!(raw, [place.workspace.as_os_str().as_bytes(), b"\n"].concat());
            assert_eq!(fs::read(place.workspace.join("file")).unwrap(), b"new\n");
            assert_eq!(place.logs.join("l").exists(), !in_depth);
        }
    }

    #[test]
    fn a_session_is_stopped_at_its_time_limits_and_what_it_wrote_is_kept() {
        as_ordinary_user!();
        let mark = mark(1);
        let place =
            Place::new(&format!("trap '' TERM; echo begun; sleep {mark} & while :; do sleep 0.1; echo on; done"));
        let limits = Limits { wall: Duration::from_millis(700), ..Limits::default() };
        let (ended, raw) = drive_plan(&place, &place.plan(), &limits);
        assert_eq!(ended.stopped_by, Some(Stop::Wall(limits.wall)));
        assert!(raw.starts_with("begun\non\n") && ended.wall < Duration::from_secs(3), "{ended:?}");
        let refused = ended.check().unwrap_err();
        assert_eq!((refused.status, refused.spent), (Status::Limit, true));
        assert_eq!(processes_with(&mark), 0);

        let place = Place::new(&format!("echo begun; sleep {mark}"));
        let limits = Limits { idle: Duration::from_millis(500), ..Limits::default() };
        let (ended, raw) = drive_plan(&place, &place.plan(), &limits);
        assert_eq!((ended.stopped_by, raw.as_str()), (Some(Stop::Idle(limits.idle)), "begun\n"));
        assert_eq!(ended.check().unwrap_err().status, Status::Limit);
        assert_eq!(processes_with(&mark), 0);
    }

    #[test]
    fn a_session_is_stopped_at_its_limit_of_output_and_no_more_is_kept() {
        as_ordinary_user!();
        let place = Place::new("yes | tr -d '\\n'");
        let limits = Limits { raw_bytes: 1_000_001, ..Limits::default() };
        let (ended, raw) = drive_plan(&place, &place.plan(), &limits);
        assert_eq!((ended.stopped_by, raw.len()), (Some(Stop::RawBytes(1_000_001)), 1_000_001));
        let place = Place::new("printf 12345");
        let limits = Limits { raw_bytes: 5, ..Limits::default() };
        let (ended, raw) = drive_plan(&place, &place.plan(), &limits);
        assert_eq!((ended.stopped_by, raw.as_str()), (None, "12345"));
    }

    #[test]
    fn a_child_that_left_its_session_and_holds_the_output_delays_nothing_and_is_gone() {
        as_ordinary_user!();
        let mark = mark(2);
        let (ended, raw) = session(&format!("setsid sleep {mark} & setsid sh -c 'sleep 1; echo late' & echo done"));
        assert_eq!((ended.code, raw.as_str()), (Some(0), "done\n"));
        assert!(ended.wall < Duration::from_secs(1), "{:?}", ended.wall);
        assert_eq!(processes_with(&mark), 0);
    }

    #[test]
    fn a_session_cannot_end_the_processes_above_it() {
        as_ordinary_user!();
        let (ended, raw) = session("for n in TERM KILL STOP; do kill -$n 1 -1 2>/dev/null; done; echo there");
        // `kill -1` ends the session's own processes, and the exit code says so.
        assert!(raw == "there\n" || ended.code.is_some_and(|code| code > 128), "{ended:?}");
        assert_eq!(ended.stopped_by, None);
    }

    #[test]
    fn a_request_to_stop_lets_the_harness_end_by_itself() {
        as_ordinary_user!();
        let mark = mark(3);
        let place = Place::new(&format!("trap 'echo ended; exit 143' TERM; echo begun; sleep {mark} & wait"));
        let (ended, raw) = stopped_when_begun(&place);
        assert_eq!((ended.stopped_by, ended.code), (Some(Stop::Cancelled), Some(143)));
        assert_eq!(raw, "begun\nended\n");
        let refused = ended.check().unwrap_err();
        assert_eq!((refused.status, refused.spent), (Status::Internal, true));
        assert_eq!(processes_with(&mark), 0);
    }

    #[test]
    fn a_harness_that_does_not_end_when_asked_is_killed() {
        as_ordinary_user!();
        let mark = mark(4);
        let place = Place::new(&format!("trap '' TERM; echo begun; sleep {mark}; sleep {mark}"));
        let (ended, _) = stopped_when_begun(&place);
        assert_eq!((ended.stopped_by, ended.code), (Some(Stop::Cancelled), Some(137)));
        assert!(ended.wall >= GRACE && ended.wall < GRACE + Duration::from_secs(3), "{:?}", ended.wall);
        assert_eq!(processes_with(&mark), 0);
    }

    fn stopped_when_begun(place: &Place) -> (Ended, String) {
        let (cancel, handle) = Cancel::with_handle().unwrap();
        let raw = place.directory.path().join("raw.jsonl");
        let log = raw_log(place);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !fs::read_to_string(&raw).unwrap().contains("begun\n") {
                    std::thread::sleep(Duration::from_millis(5));
                }
                drop(handle);
            });
            let ended = drive(&place.plan(), b"", log, &Limits::default(), &cancel).unwrap();
            (ended, fs::read_to_string(&raw).unwrap())
        })
    }

    #[test]
    fn a_request_made_before_the_session_starts_spends_nothing() {
        as_ordinary_user!();
        let place = Place::new("echo begun");
        let (cancel, handle) = Cancel::with_handle().unwrap();
        drop(handle);
        let refused = drive(&place.plan(), b"", raw_log(&place), &Limits::default(), &cancel).unwrap_err();
        assert_eq!((refused.status, refused.spent), (Status::Internal, false));
    }

    #[test]
    fn a_recorder_that_is_killed_at_any_time_leaves_no_process() {
        as_ordinary_user!();
        const MARK: &str = "HEADWATER_TEST_MARK";
        if let Ok(mark) = std::env::var(MARK) {
            let place = Place::new("sleep $1 & setsid sleep $1 & sleep $1");
            let mut plan = place.plan();
            // Among the arguments of every process of the session, from bwrap on.
            let bwrap = place.directory.path().join(&mark);
            std::os::unix::fs::symlink(&plan.bwrap.path, &bwrap).unwrap();
            plan.bwrap.path = bwrap;
            plan.command.push(mark.into());
            drive_plan(&place, &plan, &Limits::default());
            return;
        }
        // A recorder that is killed leaves its directory behind.
        let directory = tempfile::tempdir().unwrap();
        // Through the start of the recorder, of bwrap, of the view and of the harness, and into the session.
        for n in 0..150 {
            let mark = mark(10 + n);
            let mut recorder = this_test(std::any::type_name_of_val(&here));
            recorder.env(MARK, &mark).env("TMPDIR", directory.path()).stdout(Stdio::null());
            let mut recorder = recorder.spawn().unwrap();
            std::thread::sleep(Duration::from_micros(u64::from(n) * 97));
            let deadline = Instant::now() + Duration::from_secs(20);
            while n == 149 && processes_with(&mark) < 6 {
                assert!(Instant::now() < deadline, "the session never began");
            }
            recorder.kill().unwrap();
            recorder.wait().unwrap();
            let deadline = Instant::now() + Duration::from_secs(5);
            while processes_with(&mark) > 0 {
                assert!(Instant::now() < deadline, "processes are left of recorder {n}");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // One that was killed between fork and exec of bwrap shows late.
        assert_eq!((0..150).map(|n| processes_with(&mark(10 + n))).sum::<usize>(), 0);
    }

    #[test]
    fn a_harness_that_stays_after_its_result_line_is_ended_and_the_session_is_over() {
        as_ordinary_user!();
        let mark = mark(5);
        let limits = Limits { linger: Duration::from_millis(400), ..Limits::default() };
        let result = r#"echo '{"is_error":false,"type":"result"}'"#;
        let place = Place::new(&format!("{result}; sleep {mark}; exit"));
        let (ended, _) = drive_plan(&place, &place.plan(), &limits);
        assert_eq!((ended.lingered, ended.stopped_by, ended.code), (true, None, Some(143)));
        ended.check().unwrap();
        assert_eq!(processes_with(&mark), 0);

        // A sub-agent at work, and words after the result, are work.
        let agent = r#"echo '{"type":"system","subtype":"task_started","task_id":"a","task_type":"local_agent"}'"#;
        let done = r#"echo '{"type":"system","subtype":"task_notification","task_id":"a"}'"#;
        let more = r#"echo '{"type":"assistant"}'"#;
        for script in [
            format!("{agent}; {result}; sleep 1.2; {done}; {result}"),
            format!("{result}; {more}; sleep 1.2; {result}"),
        ] {
            let place = Place::new(&script);
            let (ended, raw) = drive_plan(&place, &place.plan(), &limits);
            assert_eq!((ended.lingered, ended.code), (false, Some(0)));
            assert_eq!(raw.matches("result").count(), 2);
        }
    }

    #[test]
    fn a_full_disk_ends_the_session_with_the_path_of_the_log() {
        as_ordinary_user!();
        let mark = mark(6);
        let place = Place::new(&format!("echo begun; sleep {mark}"));
        let path = PathBuf::from("/dev/full");
        let raw = RawLog { file: File::options().write(true).open(&path).unwrap(), path };
        let refused = drive(&place.plan(), b"", raw, &Limits::default(), &Cancel::never().unwrap()).unwrap_err();
        assert_eq!((refused.status, refused.spent), (Status::Internal, true));
        assert!(refused.message.contains("/dev/full") && refused.remedy.is_some(), "{refused}");
        assert_eq!(processes_with(&mark), 0);
    }

    #[test]
    fn a_harness_that_cannot_be_executed_has_failed_and_nothing_is_spent() {
        as_ordinary_user!();
        let place = Place::new("");
        let mut plan = place.plan();
        for program in [place.logs.as_path(), Path::new("/opt/headwater/harness/script"), Path::new("/none")] {
            plan.command = vec![program.into()];
            let refused =
                drive(&plan, b"", raw_log(&place), &Limits::default(), &Cancel::never().unwrap()).unwrap_err();
            assert_eq!((refused.status, refused.spent), (Status::HarnessFailed, false), "{refused}");
            assert!(refused.message.contains(program.to_str().unwrap()), "{refused}");
        }
    }

    #[test]
    fn what_a_session_writes_to_its_standard_error_is_bounded_and_cannot_steer_a_terminal() {
        as_ordinary_user!();
        let (ended, _) = session("yes | head -c 3000000 >&2; printf '\\033]0;title\\007\\377end' >&2");
        assert!(ended.stderr_tail.len() < 20_000 && ended.stderr_tail.ends_with("end"));
        assert!(!ended.stderr_tail.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    }

    #[test]
    fn a_harness_that_closes_its_output_is_waited_for() {
        as_ordinary_user!();
        let (ended, raw) = session("echo a; exec >&-; sleep 0.5; exit 4");
        assert_eq!((ended.code, raw.as_str()), (Some(4), "a\n"));
    }

    #[test]
    fn a_session_that_stops_itself_is_stopped_by_the_idle_limit() {
        as_ordinary_user!();
        let place = Place::new("kill -STOP $$");
        let limits = Limits { idle: Duration::from_millis(300), ..Limits::default() };
        let (ended, _) = drive_plan(&place, &place.plan(), &limits);
        assert_eq!(ended.stopped_by, Some(Stop::Idle(limits.idle)));
    }

    #[test]
    fn the_recorder_holds_nothing_of_a_session_that_has_ended() {
        as_ordinary_user!();
        let open = || fs::read_dir("/proc/self/fd").unwrap().count();
        session("echo a");
        let before = open();
        for _ in 0..5 {
            session("echo a");
        }
        assert_eq!(open(), before);
    }

    #[test]
    fn progress_is_read_from_whole_lines_whatever_pieces_they_come_in() {
        let log = b"{\"type\":\"system\",\"subtype\":\"init\"}\n\nnot json\n{\"x\":1,\"type\":\"result\"}\n";
        for size in 1..log.len() {
            let mut progress = Progress::default();
            log.chunks(size).for_each(|piece| progress.see(piece));
            assert!(progress.is_over(), "{size}");
        }
        let mut progress = Progress::default();
        progress.see(b"{\"type\":\"result\"}");
        assert!(!progress.is_over());
    }
}
