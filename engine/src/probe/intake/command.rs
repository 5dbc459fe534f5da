//! `headwater probe record`.

use super::{Basis, Record, Refusal, file, text};
use crate::cli::{self, Format, Root};
use crate::probe::declared::Declared;
use crate::status::{Failure, Outcome, Status};
use std::path::PathBuf;

/// The arguments of `headwater probe record`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  headwater probe record docs/probe-runs/a.md\n  headwater probe record \
                        docs/probe-runs/a.md --root corpus --format json\n\nThe status is 0 where the transcript is \
                        confirmed and 1 where it is refused.")]
pub struct Args {
    #[command(flatten)]
    input: Input,
}

/// A transcript, the corpus that it is read over, and the form of the output.
#[derive(Debug, clap::Args)]
pub struct Input {
    /// The transcript
    #[arg(value_name = "PATH")]
    path: PathBuf,
    #[command(flatten)]
    root: Root,
    /// The form of the output
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Input {
    /// Reads the transcript and the corpus, confirms the one over the other, and gives what `of` makes of the record
    /// and of the probes of the corpus; or the refusal, and status 1.
    ///
    /// # Errors
    /// Where the transcript or the corpus cannot be read.
    pub fn confirmed(
        &self,
        of: impl FnOnce(&Record, &[Declared], Format, &str) -> serde_json::Result<String>,
    ) -> Outcome<(String, Status)> {
        let document = file::read(&self.path)?;
        let corpus = self.root.open()?;
        let basis = Basis::of(&corpus)?;
        let name = file::shown(&self.path);
        let (text, status) = match basis.confirm(&document) {
            Ok(record) => (of(&record, basis.probes(), self.format, &name), Status::Done),
            Err(refusal) => (self.refused(&refusal, &name), Status::No),
        };
        Ok((text.map_err(|e| Failure::io("the output as JSON", e))?, status))
    }

    fn refused(&self, refusal: &Refusal, name: &str) -> serde_json::Result<String> {
        match self.format {
            Format::Text => Ok(text::render_refusal(refusal, name)),
            Format::Json => text::json_refusal(refusal),
        }
    }
}

/// Runs `headwater probe record`.
///
/// # Errors
/// Where the transcript or the corpus cannot be read.
pub fn run(args: &Args) -> Outcome<Status> {
    let (text, status) = output(args)?;
    cli::print(&text)?;
    Ok(status)
}

pub(super) fn output(args: &Args) -> Outcome<(String, Status)> {
    args.input.confirmed(|record, _, format, name| match format {
        Format::Text => Ok(text::render(record, name)),
        Format::Json => text::json(record),
    })
}
