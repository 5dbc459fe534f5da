//! The tree a session works in.
//!
//! - [`manifest`]: a tree as paths and digests, taken by descriptor, never through a link.
//! - [`build`]: a fresh tree from the committed corpus.
//! - [`guard`]: the search that refuses a workspace which gives the probe away.
//! - [`seal`]: what makes a workspace pass that search.
//! - [`produced`]: the artifacts a session left, with `cites` and `findings` read off the files.

pub mod build;
pub mod find;
pub mod findings;
#[cfg(test)]
mod fixture;
pub mod git;
pub mod guard;
pub mod json;
pub mod manifest;
pub mod marker;
pub mod names;
pub mod produced;
pub mod seal;
pub mod tree;
