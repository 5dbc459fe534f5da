//! The command line of `headwater-recorder`. Nothing is decided here but how a result is printed.

use crate::confine::cancel::Cancel;
use crate::harness::scripted;
use crate::modes;
use crate::options::{Format, Record};
use crate::progress::Progress;
use crate::record::{self, Done, Recorded};
use crate::status::{Failure, Outcome, Status};
use clap::{CommandFactory, Parser, Subcommand};
use nix::sys::signal::{SigSet, Signal};
use std::io::{self, Write};
use std::process::ExitCode;

/// Drives one agent session in a sealed workspace, watches it from outside and writes its transcript.
#[derive(Debug, Parser)]
#[command(name = "headwater-recorder", version, propagate_version = true, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = statuses())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Record one session of a probe, and have the engine confirm its transcript
    #[command(after_help = RECORD_EXAMPLES)]
    Record(Box<Record>),
    /// Print what a session would see of this host, and start none
    #[command(
        after_help = "Examples:\n  headwater-recorder view --print\n  headwater-recorder view --print --closure tools.paths \
                      --workspace DIR --format json\n\nIt needs no corpus and no credentials. What is not named stands as \
                      a word: WORKSPACE, LOGS."
    )]
    View(modes::View),
    /// Read a session's stream from standard input and print its event
    #[command(
        after_help = "Examples:\n  headwater-recorder transform --probe WM-PR-0001 --session a < run.raw.jsonl\n  \
                            headwater-recorder transform --probe WM-PR-0001 --session a --workspace DIR --baseline DIR \
                            --answers yes --answers no < run.raw.jsonl"
    )]
    Transform(modes::Transform),
    /// Read a session's stream from standard input and print what served it and what it cost
    #[command(after_help = "Examples:\n  headwater-recorder provider --model claude-haiku-4-5 < run.raw.jsonl")]
    Provider(modes::Provider),
    /// Read a session's stream from standard input and print its answer
    #[command(after_help = "Examples:\n  headwater-recorder answer --answers yes --answers no < run.raw.jsonl")]
    Answer(modes::Answer),
    /// Print the members of the run identity that a plan fixes
    #[command(after_help = "Examples:\n  headwater-recorder identity --corpus . --tier campaign")]
    Identity(modes::Identity),
    /// Print the prompt of a probe, word for word
    #[command(after_help = "Examples:\n  headwater-recorder task --corpus . --probe WM-PR-0001 | wc -c")]
    Task(modes::Task),
    /// Play a script as the harness would: for trying things, and for tests
    #[command(after_help = "Examples:\n  echo task | headwater-recorder scripted-harness script.json -p --max-turns 3")]
    ScriptedHarness(scripted::Args),
    /// Print the completions of a shell
    #[command(after_help = "Examples:\n  headwater-recorder completions fish > headwater-recorder.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of headwater-recorder, or of one command
    #[command(after_help = "Examples:\n  headwater-recorder man record | man -l -")]
    Man {
        /// The command; none for headwater-recorder itself
        command: Option<String>,
    },
}

const RECORD_EXAMPLES: &str = "Examples:
  headwater-recorder record --corpus . --probe WM-PR-0001 --session first --out first.md
  headwater-recorder record --corpus . --probe WM-PR-0004 --session a --model claude-haiku-4-5 --max-turns 20 --out a.md
  headwater-recorder record --corpus . --probe WM-PR-0001 --session dry --harness scripted:script.json --out dry.md
  headwater-recorder record --corpus . --probe WM-PR-0001 --session a --closure tools.paths --out a.md --explain

A session works in a fresh copy of the commit, without the instrument, sealed for the probe; --workspace names another
tree. Everything that can be refused is refused before the harness starts.";

fn statuses() -> String {
    let rows = Status::ALL.map(|s| format!("  {:>2}  {}", s.code(), s.meaning()));
    format!("Exit statuses:\n{}", rows.join("\n"))
}

/// Runs the command that the command line names.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Cli::try_parse() {
        Ok(Cli { command: Command::ScriptedHarness(args) }) => return scripted::run(&args),
        Ok(cli) => run(&cli.command),
        Err(e) => not_parsed(&e),
    };
    match outcome {
        Ok(()) => Status::Done,
        Err(failure) => {
            print_failure(&failure);
            failure.status
        }
    }
    .into()
}

fn run(command: &Command) -> Outcome<()> {
    match command {
        Command::Record(options) => record(options),
        Command::View(args) => args.run(),
        Command::Transform(args) => args.run(),
        Command::Provider(args) => args.run(),
        Command::Answer(args) => args.run(),
        Command::Identity(args) => args.run(),
        Command::Task(args) => args.run(),
        // Taken in `main`: it ends with the statuses of the harness.
        Command::ScriptedHarness(_) => Ok(()),
        Command::Completions { shell } => completions(*shell),
        Command::Man { command } => man(command.as_deref()),
    }
}

fn record(options: &Record) -> Outcome<()> {
    let cancel = Cancel::on_signals()?;
    let outcome = record::record(options, &cancel, Progress::new(options.format == Format::Json));
    if let Err(failure) = &outcome
        && cancel.requested()
    {
        print_failure(failure);
        pass_on();
    }
    match outcome? {
        Done::Recorded(done) => print(&recorded(&done, options.format)?).map_err(Failure::after_spending),
        Done::Explained(explanation) => print(&match options.format {
            Format::Text => explanation.text(),
            Format::Json => explanation.json()?,
        }),
    }
}

fn recorded(recorded: &Recorded, format: Format) -> Outcome<String> {
    match format {
        Format::Text => Ok(format!(
            "recorded {}\n  ended: {}\n  calls: {}\n  cost: {} cents\n  raw log: {}\n  next: headwater probe grade {}\n",
            recorded.transcript.display(),
            recorded.ending,
            recorded.calls,
            recorded.cost_cents,
            recorded.raw.display(),
            recorded.transcript.display(),
        )),
        Format::Json => {
            let value = serde_json::json!({
                "transcript": recorded.transcript,
                "raw": recorded.raw,
                "ended": recorded.ending.to_string(),
                "calls": recorded.calls,
                "cost_cents": recorded.cost_cents,
            });
            serde_json::to_string_pretty(&value).map(|text| text + "\n").map_err(|e| Failure::io("the result", e))
        }
    }
}

/// Ends this process by the signal that was sent to it, so that whoever started it sees why. Everything that has to be
/// undone is undone by then. Returns where no signal is held back.
fn pass_on() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // Where it is pending its action is the default one: what was ignored at the start is not held back.
        let _ = SigSet::from(signal).thread_unblock();
    }
}

/// Help and version go to standard output with status 0, everything else is a wrong command line.
fn not_parsed(error: &clap::Error) -> Outcome<()> {
    let printed = error.print();
    if error.use_stderr() {
        // What clap has printed is the message.
        std::process::exit(Status::Usage.code().into());
    }
    written(printed)
}

/// Prints a failure to standard error: what happened, what to do, and whether anything was spent.
fn print_failure(failure: &Failure) {
    let mut text = format!("headwater-recorder: {}\n", failure.message.trim_end());
    if let Some(remedy) = &failure.remedy {
        text.push_str(&format!("  remedy: {remedy}\n"));
    }
    text.push_str(if failure.spent { "  the session has run and may have spent\n" } else { "  nothing was spent\n" });
    // Where standard error is closed there is nobody left to tell; the exit status still says it.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints `text` to standard output, whole. A reader that has gone away is no failure: it has what it wanted.
///
/// # Errors
/// Where standard output cannot be written, as on a full disk.
pub fn print(text: &str) -> Outcome<()> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

fn written(result: io::Result<()>) -> Outcome<()> {
    match result {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::io("standard output", e)),
        _ => Ok(()),
    }
}

fn completions(shell: clap_complete::Shell) -> Outcome<()> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "headwater-recorder", &mut out);
    print(&String::from_utf8_lossy(&out))
}

fn man(name: Option<&str>) -> Outcome<()> {
    let mut command = Cli::command();
    command.build();
    let command = match name {
        None => &command,
        Some(name) => command
            .find_subcommand(name)
            .ok_or_else(|| Failure::new(Status::Usage, format!("there is no command `{name}`")))?,
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(|e| Failure::io("the manual page", e))?;
    print(&String::from_utf8_lossy(&page))
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent_and_every_command_has_an_example() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        command.build();
        for sub in command.get_subcommands().filter(|c| c.get_name() != "help") {
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{}", sub.get_name());
        }
    }
}
