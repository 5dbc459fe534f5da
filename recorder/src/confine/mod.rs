//! What a session may see and do.
//!
//! - [`view`]: the items of the host that a session sees.
//! - [`bwrap`]: bwrap found, and the view as its arguments.
//! - [`landlock`]: the view as rules that hold a session from inside.
//! - [`seccomp`]: the system calls that a session has no use for, and the filter that refuses them.
//! - [`launcher`]: what applies the two inside, and becomes the harness.
//! - [`proof`]: all of this tried on this host, and attacked, before anything is spent; `selftest` is its part inside.
//! - [`explain`]: the whole confinement in words, for a session that is not started.
//! - [`sandbox`]: one process tree inside the view: started, released, signalled, ended whole.
//! - [`cancel`]: the request to stop, by a signal to the recorder or by its caller.
//! - [`memory`]: bytes handed over in sealed memory, so that they touch no disk.
//! - `sys`: the few system calls that have no safe wrapper.

pub mod bwrap;
pub mod cancel;
pub mod explain;
pub mod landlock;
pub mod launcher;
pub mod memory;
pub mod proof;
pub mod sandbox;
pub mod seccomp;
mod selftest;
mod sys;
#[cfg(test)]
pub(crate) mod testing;
pub mod view;
