//! The request to stop, by a signal to the recorder or by its caller.

use crate::status::{Failure, Outcome, Status};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The signals that ask the recorder to stop.
const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// A request to stop that any number of threads can wait for. Once made it stays made.
#[derive(Debug)]
pub struct Cancel(Source);

#[derive(Debug)]
enum Source {
    /// A pending signal is never taken, so the descriptor stays readable for everyone who asks.
    Signals(SignalFd),
    /// Readable once the other end is gone.
    Handle(OwnedFd),
    /// Both ends are held, so it never is.
    Never(OwnedFd, #[expect(dead_code, reason = "held open, so that the read end never sees an end")] OwnedFd),
}

/// What makes the request of [`Cancel::with_handle`]: when it is dropped, the request is made.
#[derive(Debug)]
pub struct Handle(#[expect(dead_code, reason = "its end is the message")] OwnedFd);

impl Cancel {
    /// The request is SIGINT, SIGTERM or SIGHUP to this process, but for one that whoever started it had it ignore, as
    /// `nohup` does. The three are held back in the calling thread and in
    /// every thread it starts afterwards, so call it first in `main`.
    ///
    /// # Errors
    /// [`Status::Internal`] where the kernel gives no descriptor for them.
    pub fn on_signals() -> Outcome<Self> {
        let ignored = ignored();
        let set = SigSet::from_iter(SIGNALS.into_iter().filter(|signal| ignored & mask(*signal) == 0));
        let failed = |e: nix::Error| Failure::io("signals", e.desc());
        set.thread_block().map_err(failed)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self(Source::Signals(SignalFd::with_flags(&set, flags).map_err(failed)?)))
    }

    /// The request is made by the handle.
    ///
    /// # Errors
    /// [`Status::Internal`] where no pipe can be made.
    pub fn with_handle() -> Outcome<(Self, Handle)> {
        let (read, write) = std::io::pipe().map_err(|e| Failure::io("pipe", e))?;
        Ok((Self(Source::Handle(read.into())), Handle(write.into())))
    }

    /// No request is ever made.
    ///
    /// # Errors
    /// [`Status::Internal`] where no pipe can be made.
    pub fn never() -> Outcome<Self> {
        let (read, write) = std::io::pipe().map_err(|e| Failure::io("pipe", e))?;
        Ok(Self(Source::Never(read.into(), write.into())))
    }

    /// Whether the request has been made.
    #[must_use]
    pub fn requested(&self) -> bool {
        let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut fds, PollTimeout::ZERO), Ok(n) if n > 0)
    }

    /// Refuses to go on where the request has been made.
    ///
    /// # Errors
    /// [`Status::Internal`].
    pub fn check(&self) -> Outcome<()> {
        if self.requested() { Err(Self::failure()) } else { Ok(()) }
    }

    /// What a step that stopped because of the request reports.
    #[must_use]
    pub fn failure() -> Failure {
        Failure::new(Status::Internal, "stopped by a signal before the recording was complete")
            .remedy("run the same command again")
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Source::Signals(fd) => fd.as_fd(),
            Source::Handle(fd) | Source::Never(fd, _) => fd.as_fd(),
        }
    }
}

/// The bit of a signal in the masks of `/proc/self/status`.
fn mask(signal: Signal) -> u64 {
    1 << (signal as u32 - 1)
}

/// The signals that this process ignores; none where the kernel does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::raise;

    #[test]
    fn a_request_is_made_once_and_stays() {
        let (cancel, handle) = Cancel::with_handle().unwrap();
        assert!(cancel.check().is_ok());
        drop(handle);
        assert!(cancel.requested() && cancel.requested());
        assert_eq!(cancel.check().unwrap_err().status, Status::Internal);
        assert!(!Cancel::never().unwrap().requested());
    }

    #[test]
    fn a_signal_to_the_recorder_is_a_request() {
        // In a thread of its own: the signals stay held back in it, and `raise` is directed at the thread.
        std::thread::spawn(|| {
            let cancel = Cancel::on_signals().unwrap();
            assert!(!cancel.requested());
            raise(Signal::SIGTERM).unwrap();
            assert!(cancel.requested() && cancel.requested());
        })
        .join()
        .unwrap();
    }
}
