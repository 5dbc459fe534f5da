//! The recorder: drives one agent session in a sealed workspace, watches it from outside, writes its transcript.
//!
//! It grades nothing and never links the engine: it runs the `headwater` binary it is given.
//!
//! - [`record`]: one session as a list of steps, in the order in which they happen.
//! - [`engine`]: the `headwater` binary as a process: plan, check, intake.
//! - [`workspace`]: the tree a session works in: built, guarded, sealed, compared with its baseline.
//! - [`confine`]: what a session may see and do: the view, the bwrap arguments, the launcher.
//! - [`harness`]: the harness as a process, its command line and its stream; the scripted harness.
//! - [`transform`]: stream to event. No process, no network, no file system beyond the trees it is given.
//! - [`document`], [`statements`]: the transcript as a document, and what its prose says.
//! - [`modes`]: the read-only modes.
//! - [`files`], [`hook`], [`progress`], [`options`]: drafts, the hook's log, what a person sees, what is asked for.
//! - [`status`]: the exit statuses, in one table.
//! - [`cli`]: the command line.

pub mod cli;
pub mod confine;
pub mod document;
pub mod engine;
pub mod files;
pub mod harness;
pub mod hook;
pub mod modes;
pub mod options;
pub mod progress;
pub mod record;
pub mod statements;
pub mod status;
pub mod transform;
pub mod workspace;
