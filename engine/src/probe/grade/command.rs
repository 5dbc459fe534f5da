//! `headwater probe grade`.

use super::{grade, text};
use crate::cli::{self, Format};
use crate::probe::intake::command::Input;
use crate::status::{Outcome, Status};

/// The arguments of `headwater probe grade`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  headwater probe grade docs/probe-runs/a.md\n  headwater probe grade \
                        docs/probe-runs/a.md --root corpus --format json\n\nThe status is 0 where the transcript is \
                        graded, whatever the verdicts, and 1 where it is refused.")]
pub struct Args {
    #[command(flatten)]
    input: Input,
}

/// Runs `headwater probe grade`.
///
/// # Errors
/// Where the transcript or the corpus cannot be read.
pub fn run(args: &Args) -> Outcome<Status> {
    let (text, status) = output(args)?;
    cli::print(&text)?;
    Ok(status)
}

pub(super) fn output(args: &Args) -> Outcome<(String, Status)> {
    args.input.confirmed(|record, probes, format, name| {
        let grade = grade(record, probes);
        match format {
            Format::Text => Ok(text::render(&grade, name)),
            Format::Json => text::json(&grade),
        }
    })
}
