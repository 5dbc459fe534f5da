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

/// The ABI of the running kernel's Landlock.
///
/// # Errors
/// `EOPNOTSUPP` where it is built in and not enabled, `ENOSYS` where it is not built in.
pub(super) fn landlock_abi() -> io::Result<i32> {
    const VERSION: libc::c_uint = 1;
    let no_attributes = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel reads no memory and makes no descriptor.
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, no_attributes, 0_usize, VERSION) };
    if abi < 1 { Err(io::Error::last_os_error()) } else { Ok(i32::try_from(abi).unwrap_or(i32::MAX)) }
}

/// Puts this process under a filter of its system calls.
pub(super) fn install_filter(lines: &[libc::sock_filter]) -> io::Result<()> {
    let len = u16::try_from(lines.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let program = libc::sock_fprog { len, filter: lines.as_ptr().cast_mut() };
    let no_flags = 0_usize;
    // SAFETY: the kernel copies `len` lines from the pointer during the call and writes nothing.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, no_flags, &raw const program) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Closes every descriptor of this process but the standard three. For a process of one thread that holds no other in
/// a value which will be used, or dropped, afterwards.
pub(super) fn close_all_but_standard() -> io::Result<()> {
    // SAFETY: the call takes integers. A descriptor that a value still holds is the caller's to exclude.
    check(unsafe { libc::close_range(3, libc::c_uint::MAX, 0) })
}

/// Makes a system call that is meant to be refused, and gives what it answered.
///
/// For the attackers of the self-test alone: processes that do nothing else and end afterwards. Of the arguments none
/// may be an address, so that a call which is let through has no memory to write to.
pub(super) fn attempt(call: libc::c_long, arguments: [usize; 5]) -> io::Result<libc::c_long> {
    let [a, b, c, d, e] = arguments;
    // SAFETY: the kernel checks every argument, and there is no address among them. A call that makes a second process
    // is told apart below, before that process returns into this one's program.
    let result = unsafe { libc::syscall(call, a, b, c, d, e) };
    if result == 0 && (call == libc::SYS_clone || call == libc::SYS_clone3) {
        // SAFETY: ends the second process at once.
        unsafe { libc::_exit(0) };
    }
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Reads or writes one byte of another process at the address that `here` has in this one.
pub(super) fn other_memory(pid: i32, here: &mut u8, write: bool) -> io::Result<()> {
    let there = libc::iovec { iov_base: std::ptr::from_mut(here).cast(), iov_len: 1 };
    let mut spare = 0_u8;
    let own = libc::iovec { iov_base: (&raw mut spare).cast(), iov_len: 1 };
    let call = if write { libc::SYS_process_vm_writev } else { libc::SYS_process_vm_readv };
    // SAFETY: of this process one byte of a live local is read or written; the other process's memory is not ours.
    let result = unsafe { libc::syscall(call, pid, &raw const own, 1_usize, &raw const there, 1_usize, 0_usize) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
