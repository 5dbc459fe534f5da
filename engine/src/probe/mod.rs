//! The measurement layer: what a run would be, whether a transcript is one, and what it shows.

pub mod declared;
pub mod grade;
pub mod intake;
pub mod interval;
pub mod plan;
pub mod policy;
pub mod refusals;
pub mod words;
