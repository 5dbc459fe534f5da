//! The exit statuses, in one table. Every status is one kind of path and no other.

use std::fmt;
use std::process::ExitCode;

/// Why a command ended as it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// The transcript is written, or a read-only mode printed what was asked.
    Done = 0,
    /// An internal error, or one of input and output.
    Internal = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The engine, the harness or its credentials are missing.
    Missing = 3,
    /// The workspace carries `.git`.
    GitPointer = 4,
    /// The plan failed.
    PlanFailed = 5,
    /// The workspace is inside the corpus, or the corpus inside the workspace.
    Place = 6,
    /// The session could not enter the workspace.
    NotEntered = 7,
    /// The instrument is still in the workspace, or could not be read.
    Instrument = 8,
    /// A file of the workspace names the probe, an answer key, or a document that names the probe.
    AnswerKey = 9,
    /// The harness failed.
    HarnessFailed = 10,
    /// The plan refuses the run or does not select the probe.
    PlanRefuses = 11,
    /// The session cannot be confined, or it loaded the host's configuration.
    Unconfined = 12,
    /// The channel or a secret is at risk.
    ChannelAtRisk = 13,
    /// A limit stopped the session before it could be recorded.
    Limit = 14,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 15] = [
        Self::Done,
        Self::Internal,
        Self::Usage,
        Self::Missing,
        Self::GitPointer,
        Self::PlanFailed,
        Self::Place,
        Self::NotEntered,
        Self::Instrument,
        Self::AnswerKey,
        Self::HarnessFailed,
        Self::PlanRefuses,
        Self::Unconfined,
        Self::ChannelAtRisk,
        Self::Limit,
    ];

    /// What it says, word for word as the table in `docs/statuses.md`.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "the transcript is written, or a read-only mode printed what was asked",
            Self::Internal => "an internal error, or one of input and output",
            Self::Usage => "the command line is wrong, or asks for what the corpus or a file system does not allow",
            Self::Missing => "the engine, the harness or its credentials are missing, or may not be used",
            Self::GitPointer => "the workspace carries `.git`",
            Self::PlanFailed => "the plan failed",
            Self::Place => "the workspace is inside the corpus, or the corpus inside the workspace",
            Self::NotEntered => "the session could not enter the workspace",
            Self::Instrument => "the instrument is still in the workspace, or could not be read",
            Self::AnswerKey => {
                "a file of the workspace names the probe, an answer key, or a document that names the probe"
            }
            Self::HarnessFailed => "the harness failed; its own status stands on standard error",
            Self::PlanRefuses => "the plan refuses the run, or does not select the probe",
            Self::Unconfined => "the session cannot be confined, or it loaded configuration of the host",
            Self::ChannelAtRisk => {
                "the channel or a secret is at risk: a forged or torn log, a credential in the transcript"
            }
            Self::Limit => "a limit stopped the session before it could be recorded",
        }
    }

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
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The status.
    pub status: Status,
    /// What happened, with the path or name it is about.
    pub message: String,
    /// What to do about it.
    pub remedy: Option<String>,
    /// Whether a session has run (and so has spent) when this is reported.
    pub spent: bool,
}

impl Failure {
    /// A failure before any harness call.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), remedy: None, spent: false }
    }

    /// An error of input and output on `what` (a path or a step).
    pub fn io(what: impl fmt::Display, error: impl fmt::Display) -> Self {
        Self::new(Status::Internal, format!("{what}: {error}"))
    }

    /// The same, with a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// The same, after a session has run.
    #[must_use]
    pub fn after_spending(mut self) -> Self {
        self.spent = true;
        self
    }
}

/// What a step gives.
pub type Outcome<T> = Result<T, Failure>;

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn the_table_in_the_docs_is_the_table_in_the_code() {
        let page = include_str!("../../docs/statuses.md");
        let section = page.split("## The recorder").nth(1).and_then(|s| s.split("\n## ").next()).unwrap();
        let rows: Vec<_> = section
            .lines()
            .filter(|l| l.starts_with("| ") && !l.starts_with("| status") && !l.starts_with("| ---"))
            .collect();
        let code: Vec<_> = Status::ALL.iter().map(|s| format!("| {} | {} |", s.code(), s.meaning())).collect();
        assert_eq!(rows, code);
    }
}
