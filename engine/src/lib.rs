//! The engine: reads a corpus and its transcripts, plans runs, confirms transcripts and grades them.
//!
//! It reaches no network, starts no session and writes no transcript. Every verb is a function of the files it is
//! given: the order of directory entries, the locale, the time zone and the number of threads change no byte.
//!
//! - [`corpus`]: documents, taxonomy, lock, census, links, rules.
//! - [`probe`]: plan, intake, grade.
//! - [`cli`]: the verbs; nothing is decided there. [`status`]: their exit statuses.

#![forbid(unsafe_code)]

pub mod cli;
pub mod corpus;
pub mod probe;
pub mod status;
