//! The pages that list what the engine can say are held to what it can say, both ways.

#![allow(clippy::expect_used, reason = "a helper of tests")]

use headwater::corpus::rules::RULES;
use headwater::probe::{intake, refusals};

/// The rows of the table behind a heading of `docs/refusals.md`.
fn rows(heading: &str) -> Vec<String> {
    let page = include_str!("../../docs/refusals.md");
    let section = page.split(&format!("\n## {heading}\n")).nth(1).expect(heading);
    let table = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    table.skip(2).map(str::to_owned).collect()
}

#[test]
fn every_reason_for_which_a_run_does_not_start_is_documented_and_no_other() {
    let code: Vec<_> = refusals::REFUSALS.iter().map(|r| format!("| `{}` | {} |", r.id(), r.summary())).collect();
    assert_eq!(rows("A run that does not start"), code);
}

#[test]
fn every_reason_for_which_a_transcript_is_refused_is_documented_and_no_other() {
    let row = |r: &intake::Reason| format!("| `{}` | {} | {} |", r.id, r.confirmation.as_str(), r.summary);
    assert_eq!(rows("A transcript that is refused"), intake::REFUSALS.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn every_rule_is_documented_and_no_other() {
    let code: Vec<_> =
        RULES.iter().map(|r| format!("| `{}` | {} | {} |", r.id, r.severity.as_str(), r.about)).collect();
    assert_eq!(rows("A finding"), code);
}
