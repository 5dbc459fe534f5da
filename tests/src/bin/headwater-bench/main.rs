//! The figures of `./run bench`, as ratios, in one run.
//!
//! Each measurement alternates what is measured with what a user would use instead, and prints the medians of both, so
//! that the state of the machine falls on both alike.

mod confinement;
mod measure;
mod plan;
mod record;
mod transform;

use anyhow::{Result, bail};
use headwater_tests::user::User;
use std::process::ExitCode;

/// Measures and prints.
type Part = fn(&User) -> Result<()>;

/// What is measured: each part by its name.
const PARTS: [(&str, Part); 4] = [
    ("record", record::record),
    ("confinement", confinement::confinement),
    ("transform", transform::transform),
    ("plan", plan::plan),
];

fn main() -> Result<ExitCode> {
    // Inside a session this program is its launcher.
    if let Some(code) = headwater_recorder::confine::launcher::entered() {
        return Ok(code.into());
    }
    let mut arguments = std::env::args_os().skip(1).peekable();
    match arguments.peek().and_then(|first| first.to_str()) {
        Some(measure::PEAK) => measure::print_peak(arguments.skip(1))?,
        Some(confinement::AS_USER) => confinement::as_user(arguments.skip(1))?,
        _ => {
            let named: Vec<_> = arguments.map(|name| name.to_string_lossy().into_owned()).collect();
            let names = PARTS.map(|(name, _)| name);
            if let Some(unknown) = named.iter().find(|name| !names.contains(&name.as_str())) {
                bail!("there is no part `{unknown}`: name some of {}, or none for all", names.join(", "));
            }
            let user = User::new()?;
            println!("ratios of medians, measured in turns; smaller is better unless said otherwise");
            for (name, part) in PARTS {
                if named.is_empty() || named.iter().any(|n| n == name) {
                    part(&user)?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
