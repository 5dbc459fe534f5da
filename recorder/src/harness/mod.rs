//! The harness as a process.
//!
//! - [`choice`]: which harness.
//! - [`command`]: its command line and its environment.
//! - [`configuration`]: what the files of a host or a workspace would make it load.
//! - [`credentials`]: what of the host's credentials a session may hold.
//! - [`drive`]: started, read to the end of its stream, ended; every byte kept and digested as it arrives.
//! - [`prompt`]: the task as it is put on its standard input.
//! - [`scripted`]: a program that speaks the same stream and really performs its calls.

pub mod choice;
pub mod command;
pub mod configuration;
pub mod credentials;
pub mod drive;
pub mod prompt;
pub mod scripted;
