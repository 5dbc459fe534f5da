//! The launcher: what bwrap starts inside the view, and what becomes the harness.
//!
//! It is this program under another name. It closes what it inherited, looks at its own privileges, holds itself to
//! the rules of [`landlock`](super::landlock) and [`seccomp`](super::seccomp), says `ready` on the channel, waits for
//! a byte back and executes the command with the guard. A session whose recorder is gone ends here.

use crate::confine::landlock::Rules;
use crate::confine::seccomp::Program;
use crate::confine::selftest;
use crate::confine::sys;
use crate::confine::view::{GUARD, LAUNCHER};
use nix::unistd::{read, write};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// What the launcher says when nothing but the command is left to do.
pub(super) const READY: &[u8] = b"ready\n";
/// What begins a message of the launcher on standard error.
pub(super) const SAYS: &str = "headwater launcher: ";
/// The exit code of a session that is not confined as ordered; the guard has it too.
pub(super) const REFUSED: u8 = 125;
/// The exit codes of a command that cannot be executed, as shells give them.
pub(super) const NOT_EXECUTED: [u8; 2] = [126, 127];

pub(super) const LAUNCH: &str = "launch";

/// What a launcher is told, in memory that nobody can change.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    pub rules: Rules,
    pub filter: Program,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
}

/// Runs what this program does inside a view, where it was started there; by the name it was started with, so that no
/// option of the command line leads here. Gives its exit code.
#[must_use]
pub fn entered() -> Option<u8> {
    let mut arguments = std::env::args_os();
    if arguments.next()? != LAUNCHER {
        return None;
    }
    let mode = arguments.next()?;
    let rest: Vec<_> = arguments.collect();
    Some(if mode == LAUNCH { launch(rest.first()?) } else { selftest::entered(&mode, &rest) })
}

fn launch(orders: &OsStr) -> u8 {
    let confined = read_orders(orders).and_then(|orders| confine(&orders).map(|()| orders));
    match confined.and_then(|orders| at_the_gate().map(|open| open.then_some(orders))) {
        Ok(Some(orders)) => execute(&orders),
        // The recorder is gone, or has stopped the session before its start.
        Ok(None) => 0,
        Err(why) => {
            eprintln!("{SAYS}{why}");
            REFUSED
        }
    }
}

fn read_orders(fd: &OsStr) -> Result<Orders, String> {
    let failed = |e: &dyn std::fmt::Display| format!("its orders: {e}");
    // Opened anew, so that the descriptor is not held in a value here.
    let text = fs::read(format!("/proc/self/fd/{}", fd.display())).map_err(|e| failed(&e))?;
    serde_json::from_slice(&text).map_err(|e| failed(&e))
}

fn confine(orders: &Orders) -> Result<(), String> {
    sys::close_all_but_standard().map_err(|e| format!("descriptors: {e}"))?;
    let status = fs::read_to_string("/proc/self/status").map_err(|e| format!("/proc/self/status: {e}"))?;
    privileges(&status)?;
    orders.rules.restrict()?;
    orders.filter.install().map_err(|e| format!("seccomp: {e}"))
}

/// Refuses a process that has, or could get, a privilege. `status` is the text of `/proc/PID/status`.
pub(super) fn privileges(status: &str) -> Result<(), String> {
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map_or("", str::trim);
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        let held = value(set);
        if held.is_empty() || held.bytes().any(|digit| digit != b'0') {
            return Err(format!("the session would keep capabilities ({set} {held})"));
        }
    }
    if value("NoNewPrivs:") != "1" {
        return Err("the session could gain privileges (no_new_privs is not set)".into());
    }
    Ok(())
}

/// Whether the recorder has opened the gate. Without a byte from it nothing is executed.
fn at_the_gate() -> Result<bool, String> {
    let failed = |e: nix::Error| format!("the channel: {}", e.desc());
    let channel = io::stdout();
    write(&channel, READY).map_err(failed)?;
    let mut byte = [0];
    loop {
        match read(&channel, &mut byte) {
            Ok(n) => return Ok(n == 1),
            Err(nix::Error::EINTR) => {}
            Err(nix::Error::ECONNRESET) => return Ok(false),
            Err(e) => return Err(failed(e)),
        }
    }
}

/// Becomes the command; where it cannot, says why.
fn execute(orders: &Orders) -> u8 {
    let Some((program, arguments)) = orders.command.split_first() else {
        eprintln!("{SAYS}no command");
        return REFUSED;
    };
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(orders.environment.iter().map(|(name, value)| (name, value)));
    // For this execution alone: the guard takes it out again.
    let error = command.env("LD_PRELOAD", GUARD).exec();
    eprintln!("{SAYS}{}: {error}", program.display());
    NOT_EXECUTED[usize::from(error.kind() == ErrorKind::NotFound)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_capabilities_is_looked_at() {
        let none = "Name:\tx\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n\
                    CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\n";
        privileges(none).unwrap();
        for line in none.lines().skip(1) {
            let (name, value) = line.split_once('\t').unwrap();
            let other = if value == "1" { "0" } else { "0000000000000400" };
            for changed in [none.replace(line, &format!("{name}\t{other}")), none.replace(line, "")] {
                let refused = privileges(&changed).unwrap_err();
                assert!(refused.contains(name.trim_end_matches(':')) || refused.contains("no_new_privs"), "{refused}");
            }
        }
    }
}
