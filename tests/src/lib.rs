//! What the end-to-end tests share.
//!
//! - [`bins`]: the workspace's binaries, built once.
//! - [`user`]: an ordinary user to run them as, whoever runs the tests.
//! - [`closure`]: the paths of this host's tools, for the closure view.
//! - [`corpus`]: the sample corpus as a repository of that user.
//! - [`offline`]: a network namespace with loopback only, with the scripted provider in it.
//! - [`real`]: the real harness at its pinned version.
//! - [`recording`]: recordings of the scripted harness over that corpus.
//!
//! Nothing here skips a test. Where the real harness cannot be had, its tests say so in one line.

pub mod bins;
pub mod closure;
pub mod corpus;
pub mod offline;
pub mod real;
pub mod recording;
pub mod user;

use std::path::{Path, PathBuf};

/// The root of the workspace.
#[must_use]
pub fn workspace_root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where Cargo puts what it builds.
#[must_use]
pub fn target_directory() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace_root().join("target"), PathBuf::from)
}
