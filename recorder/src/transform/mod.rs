//! The stream of a session to one event: a pure function of the stream and the trees it is given.
//!
//! - [`stream`]: bytes to a session log: blocks admitted by tag, never by position.
//! - [`log`]: what is kept of a stream.
//! - [`init`]: the check of what the session loaded.
//! - [`ending`]: how the session ended, from exit status, result line and synthetic lines together.
//! - [`provider`]: served version and cost.
//! - [`answer`]: the final line against the closed set.
//! - [`event`]: the session log to an event of the contract.
//!
//! `lines` and `wire` serve [`stream`] alone: bytes to lines, and lines to the few members that are read.

pub mod answer;
pub mod ending;
pub mod event;
pub mod init;
mod lines;
pub mod log;
pub mod provider;
pub mod stream;
mod wire;
