//! The few system calls that have no safe wrapper in the crates used here. Each block says why it is sound.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets the child of `command` inherit `keep` and the standard three descriptors alone, whatever the recorder itself
/// was started with. The child holds back no signal, dumps no core (which would put the session's credentials on a
/// disk) and makes files that others may read.
pub(super) fn prepare(command: &mut Command, keep: &[BorrowedFd<'_>]) {
    let keep: Vec<RawFd> = keep.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: between fork and exec only `in_child` runs, which makes system calls on plain integers, takes no lock
    // and allocates nothing.
    unsafe { command.pre_exec(move || in_child(&keep)) };
}

fn in_child(keep: &[RawFd]) -> io::Result<()> {
    // SAFETY: every pointer is to a live local of the right type; the calls touch the child process alone.
    unsafe {
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        check(libc::sigemptyset(&raw mut none))?;
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()))?;
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        check(libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core))?;
        libc::umask(0o022);
        check(libc::close_range(3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int))?;
        for fd in keep {
            check(libc::fcntl(*fd, libc::F_SETFD, 0))?;
        }
    }
    Ok(())
}

/// A descriptor of the process `pid`, readable once the process has ended.
pub(super) fn pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers and gives a new descriptor, which nothing else owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        match RawFd::try_from(fd) {
            Ok(fd) if fd >= 0 => Ok(OwnedFd::from_raw_fd(fd)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Sends `signal` to the process of a descriptor from [`pidfd`]; never to another that took its number.
pub(super) fn signal(process: BorrowedFd<'_>, signal: i32) -> io::Result<()> {
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: the descriptor is open for the length of the call, and the null pointer asks for the default message.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, no_info, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
