//! The exit statuses, in one table, and the failure that carries one.

use crate::corpus::CorpusError;
use std::fmt;
use std::process::ExitCode;

/// Why a command ended as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// What was asked is done or printed.
    Done = 0,
    /// The answer is no: the lock differs, a strict check found an error, a transcript is refused.
    No = 1,
    /// The command line is wrong.
    Usage = 2,
    /// A corpus, a lock, a policy or a transcript cannot be read, or what was asked cannot be written.
    Unreadable = 3,
}

impl Status {
    /// The number a shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status.code())
    }
}

/// A failure: its status, what happened, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The status.
    pub status: Status,
    /// What happened, with the path, probe or number it is about.
    pub message: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl Failure {
    /// A failure with a status.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), remedy: None }
    }

    /// Something that cannot be read: status 3.
    pub fn unreadable(message: impl Into<String>) -> Self {
        Self::new(Status::Unreadable, message)
    }

    /// An error of input and output on `what` (a path or a step): status 3.
    pub fn io(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::unreadable(format!("{what}: {error}"))
    }

    /// The same, with a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl From<CorpusError> for Failure {
    fn from(error: CorpusError) -> Self {
        Self { status: Status::Unreadable, message: error.message, remedy: error.remedy }
    }
}

/// What a step gives.
pub type Outcome<T> = Result<T, Failure>;
