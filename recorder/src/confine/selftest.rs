//! The self-test, as far as it runs inside: a stand-in for the harness, and a sibling of every tool call that attacks
//! it in every way that is known here.
//!
//! An attack is told from its answer, and only the answers that say "refused" are refusals. An attack that fails for
//! another reason has shown nothing, and counts as one that succeeded.

use crate::confine::bwrap::{OWN_NAMESPACES, SHARED_NAMESPACES};
use crate::confine::seccomp::{self, Rule, When};
use crate::confine::sys;
use crate::confine::view::{ENGINE, GUARD, HARNESS, LAUNCHER};
use nix::unistd::{AccessFlags, Pid, access, getppid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) const STAND_IN: &str = "stand-in";
const ATTACK: &str = "attack";

/// What the stand-in found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    /// What it must be able to do and could, by a word each.
    pub can: Vec<String>,
    /// Whether managed settings of the host are to be seen.
    pub managed_settings: bool,
    /// The text of its own `/proc/self/status`.
    pub status: String,
    /// Its namespaces, by their kernel names.
    pub namespaces: BTreeMap<String, String>,
    /// Its open descriptors, with where each leads.
    pub descriptors: BTreeMap<String, String>,
    /// Whether one of the standard three is a terminal.
    pub terminal: bool,
    /// Whether its environment still names the guard.
    pub names_guard: bool,
    /// What the attacker found.
    pub attacks: Attacks,
}

/// What came of the attacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Attacks {
    /// How many were tried.
    pub tried: usize,
    /// Those that were not refused: what was tried, and what was answered.
    pub not_refused: Vec<(String, String)>,
}

/// The command of the stand-in for a session in this view. `socket` is the name of an abstract socket of the host.
pub(super) fn command(workspace: &Path, logs: &Path, socket: &str, abi: i32) -> Vec<OsString> {
    let words: [&OsStr; 6] = [
        LAUNCHER.as_ref(),
        STAND_IN.as_ref(),
        workspace.as_os_str(),
        logs.as_os_str(),
        socket.as_ref(),
        OsStr::new(""),
    ];
    let mut words = words.map(OsStr::to_owned).to_vec();
    words[5] = abi.to_string().into();
    words
}

/// The part that `mode` names, with what it is given.
pub(super) fn entered(mode: &OsStr, rest: &[OsString]) -> u8 {
    let report = match (mode.to_str(), rest) {
        (Some(STAND_IN), [workspace, logs, socket, abi]) => {
            stand_in(workspace, logs, socket, abi).and_then(|report| printed(&report))
        }
        (Some(ATTACK), [socket, abi]) => attack(socket, abi).and_then(|attacks| printed(&attacks)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    match report {
        Ok(()) => 0,
        Err(e) => {
            eprintln!("the self-test: {e}");
            1
        }
    }
}

fn printed(report: &impl Serialize) -> io::Result<()> {
    io::stdout().write_all(&serde_json::to_vec(report)?)
}

fn stand_in(workspace: &OsStr, logs: &OsStr, socket: &OsStr, abi: &OsStr) -> io::Result<Report> {
    let attacker =
        Command::new(LAUNCHER).arg(ATTACK).args([socket, abi]).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let can = [
        ("workspace", workspace, AccessFlags::W_OK | AccessFlags::X_OK),
        ("logs", logs, AccessFlags::W_OK | AccessFlags::X_OK),
        ("harness", HARNESS.as_ref(), AccessFlags::X_OK),
        ("engine", ENGINE.as_ref(), AccessFlags::X_OK),
    ];
    let can = can.into_iter().filter(|(_, path, how)| access(*path, *how).is_ok());
    let names_guard = std::env::var_os("LD_PRELOAD").is_some();
    let managed = fs::read_dir("/etc/claude-code").is_ok_and(|mut entries| entries.next().is_some());
    let terminal = io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal();
    let can = can.map(|(name, _, _)| name.to_owned()).collect();
    let (status, namespaces) = (fs::read_to_string("/proc/self/status")?, namespaces()?);
    let output = attacker.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("the attacker ended with {}", output.status)));
    }
    let attacks = serde_json::from_slice(&output.stdout)?;
    let descriptors = descriptors()?;
    Ok(Report { can, managed_settings: managed, status, namespaces, descriptors, terminal, names_guard, attacks })
}

/// The namespaces of this process. Named one by one: a process that is closed cannot list their directory either.
fn namespaces() -> io::Result<BTreeMap<String, String>> {
    let link = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).map(|to| to.to_string_lossy().into_owned());
    let names = OWN_NAMESPACES.into_iter().chain(SHARED_NAMESPACES);
    names.map(|name| link(name).map(|to| (name.to_owned(), to))).collect()
}

/// The open descriptors of this process, without the one that is used to list them.
fn descriptors() -> io::Result<BTreeMap<String, String>> {
    let mut open = BTreeMap::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        let to = fs::read_link(entry.path())?.to_string_lossy().into_owned();
        if !to.starts_with("/proc/") {
            open.insert(entry.file_name().to_string_lossy().into_owned(), to);
        }
    }
    Ok(open)
}

fn attack(socket: &OsStr, abi: &OsStr) -> io::Result<Attacks> {
    let abi = abi.to_str().and_then(|text| text.parse().ok()).ok_or(io::ErrorKind::InvalidInput)?;
    let mut attacks = Attacks::default();
    for (who, pid) in [("the harness", getppid()), ("the first process", Pid::from_raw(1))] {
        attacks.on_process(who, pid);
    }
    attacks.on_socket(socket, abi);
    attacks.on_view();
    seccomp::rules(abi).for_each(|rule| attacks.on_rule(rule));
    #[cfg(target_arch = "x86_64")]
    attacks.call("make an x32 call", libc::SYS_getpid | 0x4000_0000, [0; 5], libc::ENOSYS);
    if abi >= 6 {
        let answer = nix::sys::signal::kill(Pid::from_raw(1), None).map_err(io::Error::from);
        attacks.note("signal a process outside".into(), answer, &[libc::EPERM]);
    }
    Ok(attacks)
}

/// What is answered where a process is closed to another.
const CLOSED: [i32; 2] = [libc::EACCES, libc::EPERM];

impl Attacks {
    /// Notes what came of one attack: refused, where its answer is one of `refusals`.
    fn note<T>(&mut self, what: String, answer: io::Result<T>, refusals: &[i32]) {
        self.tried += 1;
        match answer {
            Err(e) if e.raw_os_error().is_some_and(|errno| refusals.contains(&errno)) => {}
            Err(e) => self.not_refused.push((what, e.to_string())),
            Ok(_) => self.not_refused.push((what, "it was done".into())),
        }
    }

    fn call(&mut self, what: &str, number: libc::c_long, arguments: [usize; 5], errno: i32) {
        self.note(what.into(), sys::attempt(number, arguments), &[errno]);
    }

    fn on_process(&mut self, who: &str, pid: Pid) {
        let mut open = |name: &str, write: bool| {
            let path = format!("/proc/{pid}/{name}");
            // Without waiting for another end, and without becoming the process of a terminal.
            let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
            let answer = OpenOptions::new().read(!write || name == "mem").write(write).custom_flags(flags).open(&path);
            let how = if write { "write" } else { "read" };
            self.note(format!("open {name} of {who} to {how}"), answer, &CLOSED);
        };
        for name in ["fd/0", "fd/1", "fd/2", "mem"] {
            open(name, true);
        }
        for name in ["fd/0", "mem", "environ", "maps", "root", "cwd", "exe"] {
            open(name, false);
        }
        let number = usize::try_from(pid.as_raw()).unwrap_or(0);
        for (what, request) in [("attach to", libc::PTRACE_ATTACH), ("seize", libc::PTRACE_SEIZE)] {
            let what = format!("{what} {who}");
            self.call(&what, libc::SYS_ptrace, [request as usize, number, 0, 0, 0], libc::EPERM);
        }
        let mut byte = 0;
        for write in [false, true] {
            let what = format!("{} the memory of {who}", if write { "write" } else { "read" });
            self.note(what, sys::other_memory(pid.as_raw(), &mut byte, write), &[libc::EPERM]);
        }
        let pidfd = sys::attempt(libc::SYS_pidfd_open, [number, 0, 0, 0, 0]).unwrap_or(-1);
        let pidfd = usize::try_from(pidfd).unwrap_or(usize::MAX);
        for fd in 0..3 {
            let what = format!("take descriptor {fd} of {who}");
            self.call(&what, libc::SYS_pidfd_getfd, [pidfd, fd, 0, 0, 0], libc::EPERM);
        }
    }

    /// Reaches for an abstract socket of the host, by each kind of unix socket.
    fn on_socket(&mut self, name: &OsStr, abi: i32) {
        let refused = if abi >= 9 { libc::EPERM } else { libc::EAFNOSUPPORT };
        let refused_pair = if abi >= 9 { libc::EPERM } else { libc::EPROTONOSUPPORT };
        let address = || SocketAddr::from_abstract_name(name.as_bytes());
        let stream = address().and_then(|address| UnixStream::connect_addr(&address));
        self.note("connect to an abstract socket of the host".into(), stream, &[refused]);
        let datagram = UnixDatagram::pair().and_then(|(one, _)| one.connect_addr(&address()?));
        self.note("connect a datagram socket to one of the host".into(), datagram, &[refused_pair]);
    }

    /// Reaches for what the view shows and nobody inside may change.
    fn on_view(&mut self) {
        for path in [LAUNCHER, GUARD, HARNESS, ENGINE] {
            let refusals = [libc::EACCES, libc::EPERM, libc::EROFS, libc::ETXTBSY];
            self.note(format!("write {path}"), OpenOptions::new().write(true).open(path), &refusals);
        }
    }

    /// Makes every call of a rule, in uses that the rule refuses.
    fn on_rule(&mut self, rule: &Rule) {
        let errno = rule.answer.errno();
        for (name, number) in rule.calls {
            for arguments in uses(*number, rule.when) {
                self.call(&format!("call {name} with {arguments:x?}"), *number, arguments, errno);
            }
        }
    }
}

/// Arguments that a rule refuses, none of them an address.
fn uses(number: libc::c_long, when: When) -> Vec<[usize; 5]> {
    let mut usual = [0; 5];
    if number == libc::SYS_socket || number == libc::SYS_socketpair {
        let family = if number == libc::SYS_socket { libc::AF_INET } else { libc::AF_UNIX };
        usual[..2].copy_from_slice(&[family as usize, libc::SOCK_STREAM as usize]);
    }
    let with = |argument: u8, value: usize| {
        let mut arguments = usual;
        arguments[usize::from(argument)] = value;
        arguments
    };
    // A kernel that looks at the low half of an argument is not to be passed by the high one.
    let high = 1_usize << 32;
    match when {
        When::Always => vec![usual],
        When::Is { argument, values, mask } => values
            .iter()
            .flat_map(|value| [*value as usize, *value as usize | high, *value as usize | (!mask as usize & 0x80800)])
            .map(|value| with(argument, value))
            .collect(),
        When::IsNot { argument, values } => [libc::AF_UNIX, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_VSOCK, 45]
            .into_iter()
            .filter(|value| !values.contains(&value.unsigned_abs()))
            .map(|value| with(argument, value as usize))
            .collect(),
        When::HasAny { argument, bits } => {
            (0..32).filter(|n| bits & (1 << n) != 0).map(|n| with(argument, 1 << n)).collect()
        }
    }
}
