//! `headwater check`: findings as text and as JSON, and the list of the rules.

use super::{Finding, RULES, Severity, check};
use crate::cli::{self, Format, Root};
use crate::status::{Failure, Outcome, Status};
use serde::Serialize;

/// The arguments of `headwater check`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  headwater check\n  headwater check --strict --format json\n  headwater check --rules"
)]
pub struct Args {
    #[command(flatten)]
    pub(super) root: Root,
    /// The form of the output
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// Exit 1 where a finding is an error
    #[arg(long)]
    pub(super) strict: bool,
    /// List the rules and read no corpus
    #[arg(long)]
    pub(super) rules: bool,
}

/// Runs `headwater check`.
///
/// # Errors
/// Where the corpus cannot be read.
pub fn run(args: &Args) -> Outcome<Status> {
    if args.rules {
        cli::print(&list(args.format)?)?;
        return Ok(Status::Done);
    }
    let findings = check(&args.root.open()?);
    cli::print(&match args.format {
        Format::Text => findings.iter().map(text).collect(),
        Format::Json => json("findings", &findings)?,
    })?;
    let failed = args.strict && findings.iter().any(|f| f.severity == Severity::Error);
    Ok(if failed { Status::No } else { Status::Done })
}

pub(super) fn text(finding: &Finding) -> String {
    let Finding { rule, path, line, severity, message } = finding;
    format!("{}:{line}: {}[{rule}]: {}\n", cli::shown(path), severity.as_str(), cli::shown(message))
}

pub(super) fn json<T: Serialize>(name: &str, items: &[T]) -> Outcome<String> {
    let items = serde_json::to_string(items).map_err(|e| Failure::io("the findings as JSON", e))?;
    Ok(format!("{{\"{name}\":{items}}}\n"))
}

/// A rule as it is listed.
#[derive(Serialize)]
struct Listed {
    rule: &'static str,
    severity: Severity,
    about: &'static str,
}

pub(super) fn list(format: Format) -> Outcome<String> {
    let rules = RULES.iter().map(|r| Listed { rule: r.id, severity: r.severity, about: r.about });
    match format {
        Format::Text => {
            let line = |r: Listed| format!("{:<28} {:<8} {}\n", r.rule, r.severity.as_str(), r.about);
            Ok(rules.map(line).collect())
        }
        Format::Json => json("rules", &rules.collect::<Vec<_>>()),
    }
}
