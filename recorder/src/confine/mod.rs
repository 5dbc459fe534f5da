//! What a session may see and do.
//!
//! - [`view`]: the items of the host that a session sees.
//! - [`bwrap`]: bwrap found, the view as its arguments, tried with a no-op before anything is spent.
//! - [`sandbox`]: one process tree inside the view: started, released, signalled, ended whole.
//! - [`cancel`]: the request to stop, by a signal to the recorder or by its caller.
//! - [`memory`]: bytes handed over in sealed memory, so that they touch no disk.
//! - `sys`: the few system calls that have no safe wrapper.

pub mod bwrap;
pub mod cancel;
pub mod memory;
pub mod sandbox;
mod sys;
#[cfg(test)]
pub(crate) mod testing;
pub mod view;
