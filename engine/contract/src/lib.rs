//! The transcript contract and nothing else.
//!
//! Both programs depend on this crate and it depends on neither, so a rule of the contract that both of them need
//! stands here once.
//!
//! - [`digest`]: the one digest form and the texts that are digested.
//! - [`keys`]: the four closed key sets, the tiers and the arms.
//! - [`yaml`]: YAML read as a bounded tree that keeps source text, and the one scalar encoder.
//! - [`markdown`]: front matter, sections and fenced blocks of a document.
//! - [`transcript`]: a run identity and its events, read from a document and written to one.
//! - [`plan`]: what the engine tells a recorder before a session starts.
//! - [`instant`]: the one form of a point in time.
//!
//! Nothing in here opens a file, starts a process or knows a corpus.

#![forbid(unsafe_code)]

pub mod digest;
pub mod instant;
pub mod keys;
pub mod markdown;
pub mod plan;
pub mod transcript;
pub mod yaml;
