//! `headwater probe plan`: the arguments, the plan itself, and the lines of the policy that other tools ask for.

use super::{Request, compose, hold, sorted, text};
use crate::cli::{self, Format, Root};
use crate::corpus::Corpus;
use crate::probe::policy::{self, Policy};
use crate::status::{Failure, Outcome, Status};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use headwater_contract::keys::{Arm, Category, NotAMember, Tier};
use headwater_contract::plan::{Plan, Refusal};
use std::str::FromStr;

/// The arguments of `headwater probe plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  headwater probe plan --tier regression\n  headwater probe plan --tier campaign \
                  --category discovery --exclude WM-PR-0004 --format json\n  headwater probe plan --instrument\n  \
                  headwater probe plan --tier campaign --arm absent --delta\n\nThe status is 0 whether or not the run \
                  may start: a refusal is part of the plan.")]
#[command(group = clap::ArgGroup::new("lines").args(["instrument", "folds", "answer_keys", "delta"]))]
pub struct Args {
    #[command(flatten)]
    root: Root,
    /// The tier of the run
    #[arg(long, value_name = "TIER", value_parser = one_of(Tier::ALL, Tier::as_str))]
    tier: Option<Tier>,
    /// Only the probes of this category
    #[arg(long, value_name = "CATEGORY", value_parser = one_of(Category::ALL, Category::as_str))]
    category: Option<Category>,
    /// Leave a probe out; may be given several times
    #[arg(long, value_name = "PROBE")]
    exclude: Vec<String>,
    /// Only this arm of the tier
    #[arg(long, value_name = "ARM", value_parser = one_of(Arm::ALL, Arm::as_str))]
    arm: Option<Arm>,
    /// Repetitions of each probe in each arm, at most what the tier declares [default: what it declares]
    #[arg(long, value_name = "N")]
    repetitions: Option<u64>,
    /// The rotation seed: decimal digits, any number of them
    #[arg(long, value_name = "N", default_value = "0", value_parser = seed)]
    seed: String,
    /// The form of the output
    #[arg(long, value_enum, default_value_t, conflicts_with = "lines")]
    format: Format,
    /// Print the paths that no arm has, one a line
    #[arg(long)]
    instrument: bool,
    /// Print the files outside docs/ that may name a probe, one a line
    #[arg(long)]
    folds: bool,
    /// Print the answer keys that are declared for a probe, one a line
    #[arg(long, value_name = "PROBE")]
    answer_keys: Option<String>,
    /// Print what the arm of --arm loses (`- PATH`) or gains (`+ PATH`) against the present arm, one a line
    #[arg(long, requires = "arm")]
    delta: bool,
}

fn one_of<T>(all: &'static [T], name: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err = NotAMember> + Copy + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.iter().map(|member| name(*member))).try_map(|text| text.parse())
}

fn seed(text: &str) -> Result<String, &'static str> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits { Ok(text.to_owned()) } else { Err("a seed is decimal digits and nothing else") }
}

/// Runs `headwater probe plan`.
///
/// # Errors
/// Where the corpus, its lock or its probe policy cannot be read; where no tier is named, or a delta is asked for that
/// the policy does not declare.
pub fn run(args: &Args) -> Outcome<Status> {
    cli::print(&output(args)?)?;
    Ok(Status::Done)
}

/// What a command line asks for.
enum Asked<'a> {
    Instrument,
    Folds,
    AnswerKeys(&'a str),
    Delta(Tier, Arm),
    Plan(Request, Format),
}

impl Args {
    fn asked(&self) -> Outcome<Asked<'_>> {
        if self.instrument {
            return Ok(Asked::Instrument);
        }
        if self.folds {
            return Ok(Asked::Folds);
        }
        if let Some(probe) = &self.answer_keys {
            return Ok(Asked::AnswerKeys(probe));
        }
        let no_tier = || Failure::new(Status::Usage, "a plan is of one tier").remedy("name the tier with --tier");
        let tier = self.tier.ok_or_else(no_tier)?;
        Ok(match self.arm {
            Some(arm) if self.delta => Asked::Delta(tier, arm),
            arm => {
                let Self { category, repetitions, format, .. } = *self;
                let (exclude, seed) = (self.exclude.clone(), self.seed.clone());
                Asked::Plan(Request { tier, category, exclude, arm, repetitions, seed }, format)
            }
        })
    }
}

fn output(args: &Args) -> Outcome<String> {
    let asked = args.asked()?;
    let root = args.root.find()?;
    let policy = || policy::read(&root);
    match asked {
        Asked::Instrument => Ok(lines("", &sorted(&policy()?.instrument))),
        Asked::Folds => Ok(lines("", &sorted(&policy()?.folds))),
        Asked::AnswerKeys(probe) => {
            Ok(lines("", &policy()?.answer_keys.get(probe).map(|keys| sorted(keys)).unwrap_or_default()))
        }
        Asked::Delta(tier, arm) => delta(&policy()?, tier, arm),
        Asked::Plan(request, format) => {
            let plan = compose(&Corpus::read(&root)?, &policy()?, &request)?;
            match format {
                Format::Text => Ok(text::render(&plan)),
                Format::Json => json(&plan).map_err(|e| Failure::io("the plan as JSON", e)),
            }
        }
    }
}

/// The plan as JSON, indented, with a line feed at the end.
///
/// # Errors
/// Only what the encoder gives, which for a plan is nothing.
pub fn json(plan: &Plan) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(plan)? + "\n")
}

fn lines(mark: &str, paths: &[String]) -> String {
    paths.iter().map(|path| format!("{mark}{path}\n")).collect()
}

fn delta(policy: &Policy, tier: Tier, arm: Arm) -> Outcome<String> {
    let usage = |refusal: Refusal| Failure::new(Status::Usage, refusal.message);
    let envelope = hold::envelope(policy, tier).map_err(usage)?;
    hold::runs(envelope, tier, arm).map_err(usage)?;
    let delta = super::delta(envelope, arm);
    Ok(lines("- ", &delta.loses) + &lines("+ ", &delta.gains))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::LOCK;
    use crate::corpus::testing::Site;
    use crate::probe::plan::tests::case;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(line: &str) -> Result<Args, clap::error::ErrorKind> {
        let words = std::iter::once("plan").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|l| l.args).map_err(|e| e.kind())
    }

    fn over(site: &Site, line: &str) -> Outcome<String> {
        output(&parsed(&format!("{line} --root {}", site.path("").display())).unwrap())
    }

    /// What a command line prints over the corpus of the plan's tests.
    fn printed(line: &str) -> Outcome<String> {
        over(&case().on_disk(), line)
    }

    #[test]
    fn the_lines_of_the_policy_are_printed_plain_sorted_and_once_each() {
        let is = |line: &str, text: &str| assert_eq!(printed(line).unwrap(), text, "{line}");
        is("--instrument", "docs/probes\n");
        is("--folds", "tools/a.txt\ntools/z.txt\n");
        is("--answer-keys WM-PR-0002", "docs/decisions/a.md\ndocs/decisions/b.md\n");
        is("--answer-keys WM-PR-0001", "");
        is("--tier regression --arm present --delta", "");
        is("--tier regression --arm no-hook --delta", "- .hooks/a\n- .hooks/z\n");
        is("--tier regression --arm mcp --delta", "+ .mcp.json\n");
        is("--tier campaign --arm absent --delta", "- .headwater\n- docs/decisions/index\n");
    }

    #[test]
    fn the_plan_as_json_carries_the_same_lines() {
        let plan: Plan = serde_json::from_str(&printed("--tier regression --format json").unwrap()).unwrap();
        let declared = &plan.workspace;
        assert_eq!(lines("", &declared.instrument), printed("--instrument").unwrap());
        assert_eq!(lines("", &declared.folds), printed("--folds").unwrap());
        assert_eq!(lines("", &declared.answer_keys["WM-PR-0002"]), printed("--answer-keys WM-PR-0002").unwrap());
        for (arm, delta) in &declared.arms {
            let text = lines("- ", &delta.loses) + &lines("+ ", &delta.gains);
            assert_eq!(text, printed(&format!("--tier regression --arm {arm} --delta")).unwrap());
        }
        assert!(declared.arms.len() > 2);
    }

    #[test]
    fn a_plan_of_no_tier_is_a_wrong_command_line_wherever_it_is_asked_for() {
        let failure = output(&parsed("--root /nowhere").unwrap()).unwrap_err();
        assert_eq!(failure.status, Status::Usage);
    }

    #[test]
    fn a_delta_that_is_not_declared_is_a_wrong_command_line() {
        for (line, part) in [
            ("--tier regression --arm absent --delta", "does not run the arm `absent`"),
            ("--tier documentation --arm absent --delta", "no envelope for the tier `documentation`"),
            ("--arm absent --delta", "a plan is of one tier"),
            ("", "a plan is of one tier"),
        ] {
            let failure = printed(line).unwrap_err();
            assert_eq!(failure.status, Status::Usage, "{line}");
            assert!(failure.message.contains(part), "{line}: {}", failure.message);
        }
    }

    #[test]
    fn the_options_reach_the_plan() {
        let line = "--tier campaign --category discovery --exclude WM-PR-0001 --exclude WM-PR-0002 --repetitions 3 --seed \
                    0018446744073709551617 --format json";
        let plan: Plan = serde_json::from_str(&printed(line).unwrap()).unwrap();
        assert_eq!(plan.identity.seed, "0018446744073709551617");
        let ids: Vec<_> = plan.selection.iter().map(|p| p.id.as_str()).collect();
        assert_eq!((ids, plan.cost.unwrap().sessions), (vec!["WM-PR-0003"], 9));
        let text = printed("--tier regression").unwrap();
        assert!(text.contains("\nseed: 0\n") && text.contains("## The read set"));
    }

    #[test]
    fn a_refusal_is_part_of_the_plan_and_no_failure() {
        let text = printed("--tier regression --repetitions 9").unwrap();
        assert!(text.contains("## This run does not start\n\n9 repetitions"), "{text}");
    }

    #[test]
    fn a_command_line_that_means_nothing_is_refused() {
        for line in [
            "--tier smoke",
            "--tier regression --category any",
            "--tier regression --arm control",
            "--tier regression --seed -1",
            "--tier regression --seed 1e3",
            "--tier regression --seed=",
            "--tier regression --repetitions -1",
            "--tier regression --repetitions 18446744073709551616",
            "--tier regression --delta",
            "--instrument --folds",
            "--instrument --format json",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_status_3() {
        let site = case().on_disk();
        let status = |line: &str| over(&site, line).unwrap_err();
        std::fs::remove_file(site.path(LOCK)).unwrap();
        let failure = status("--tier regression");
        assert_eq!(failure.status, Status::Unreadable, "{failure}");
        site.write(policy::PATH, "tiers: 1\n");
        for line in ["--tier regression", "--instrument", "--folds", "--answer-keys X"] {
            let failure = status(line);
            assert_eq!(failure.status, Status::Unreadable);
            assert_eq!(failure.message, ".headwater/probe.yml:1: tiers: expected a mapping, found `1`");
        }
        std::fs::remove_file(site.path(policy::PATH)).unwrap();
        let failure = status("--instrument");
        assert_eq!(failure.status, Status::Unreadable);
        assert!(failure.message.contains(policy::PATH) && failure.remedy.is_some(), "{failure:?}");
        nix::unistd::mkfifo(&site.path(policy::PATH), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(status("--instrument").status, Status::Unreadable);
    }
}
