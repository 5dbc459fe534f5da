//! The verbs of `headwater`. Nothing is decided here: each verb's arguments and its `run` stand where the work is.

use crate::corpus::{self, Corpus};
use crate::probe;
use crate::status::{Failure, Outcome, Status};
use clap::{CommandFactory, Parser, Subcommand};
use rayon::ThreadPoolBuilder;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Reads a corpus and its transcripts, plans probe runs, confirms transcripts and grades them. Reaches no network.
#[derive(Debug, Parser)]
#[command(name = "headwater", version, after_help = STATUSES, max_term_width = 100)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const STATUSES: &str = "Exit statuses:
  0  done
  1  the answer is no: the lock differs, a strict check found an error, a transcript is refused
  2  the command line is wrong
  3  a corpus, lock, policy or transcript cannot be read, or the output cannot be written";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Write the lock of the taxonomy, or check that it is up to date
    Lock(corpus::lock::Args),
    /// Report every rule over every document
    Check(corpus::rules::Args),
    /// Plan probe runs, confirm and grade their transcripts
    #[command(subcommand)]
    Probe(ProbeVerb),
    /// Print the completions of a shell
    #[command(after_help = "Examples:\n  headwater completions bash > /etc/bash_completion.d/headwater")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of headwater, or of one verb
    #[command(
        after_help = "Examples:\n  headwater man | man -l -\n  headwater man probe plan > headwater-probe-plan.1"
    )]
    Man {
        /// The verb, one word after another; none for headwater itself
        verb: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
enum ProbeVerb {
    /// Print what a run would be and cost, or the reason for which it does not start
    Plan(probe::plan::Args),
    /// Confirm a transcript
    Record(probe::intake::Args),
    /// Grade a transcript
    Grade(probe::grade::Args),
}

/// The option `--root`, for every verb that reads a corpus: `#[command(flatten)] root: Root`.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct Root {
    /// The root of the corpus [default: the nearest directory upward that holds .headwater/taxonomy.yml]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

impl Root {
    /// The root that was named, or the nearest directory upward from the current one that declares a corpus.
    ///
    /// # Errors
    /// Where none was named and none is found.
    pub fn find(&self) -> Outcome<PathBuf> {
        match &self.root {
            Some(root) => Ok(root.clone()),
            None => {
                let here = std::env::current_dir().map_err(|e| Failure::io("the current directory", e))?;
                nearest(&here)
            }
        }
    }

    /// The corpus at [`Root::find`].
    ///
    /// # Errors
    /// Where it is not found or not read.
    pub fn open(&self) -> Outcome<Corpus> {
        Ok(Corpus::read(&self.find()?)?)
    }
}

fn nearest(from: &Path) -> Outcome<PathBuf> {
    let declares = |d: &&Path| d.join(corpus::TAXONOMY).symlink_metadata().is_ok_and(|m| m.is_file());
    from.ancestors().find(declares).map(Path::to_path_buf).ok_or_else(|| {
        Failure::unreadable(format!("neither {} nor a directory above it holds {}", from.display(), corpus::TAXONOMY))
            .remedy("name the root of the corpus with --root")
    })
}

/// The form of an output, for every verb that has two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For a person, and for tools that read its fixed parts
    #[default]
    Text,
    /// Everything, typed
    Json,
}

/// Runs the verb that the command line names.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = match Cli::try_parse() {
        Ok(cli) => in_parallel(|| run(&cli.verb)),
        Err(e) => not_parsed(&e),
    };
    outcome
        .unwrap_or_else(|failure| {
            print_error(&failure);
            failure.status
        })
        .into()
}

/// Runs `work` on as many threads as the machine has, or on this one alone where no other can be started: a session's
/// limit on processes is no reason to end in a panic.
fn in_parallel<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let pool = ThreadPoolBuilder::new().build();
    match pool.or_else(|_| ThreadPoolBuilder::new().num_threads(1).use_current_thread().build()) {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}

fn run(verb: &Verb) -> Outcome<Status> {
    match verb {
        Verb::Lock(args) => corpus::lock::run(args),
        Verb::Check(args) => corpus::rules::run(args),
        Verb::Probe(ProbeVerb::Plan(args)) => probe::plan::run(args),
        Verb::Probe(ProbeVerb::Record(args)) => probe::intake::run(args),
        Verb::Probe(ProbeVerb::Grade(args)) => probe::grade::run(args),
        Verb::Completions { shell } => completions(*shell),
        Verb::Man { verb } => man(verb),
    }
}

/// Help and version go to standard output with status 0, everything else is a wrong command line.
fn not_parsed(error: &clap::Error) -> Outcome<Status> {
    let printed = error.print();
    if error.use_stderr() {
        return Ok(Status::Usage);
    }
    written(printed).map(|()| Status::Done)
}

/// Prints a failure to standard error: `headwater: MESSAGE`, and a line with the remedy where there is one.
pub fn print_error(failure: &Failure) {
    let message: Vec<_> = failure.message.lines().map(shown).collect();
    let remedy = failure.remedy.as_ref().map(|r| format!("  remedy: {}\n", shown(r))).unwrap_or_default();
    let text = format!("headwater: {}\n{remedy}", message.join("\n"));
    // Where standard error is closed there is nobody left to tell; the exit status still says it.
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A text on one line of a terminal: what would move the cursor, end the line or turn the direction is escaped.
#[must_use]
pub fn shown(text: &str) -> String {
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || turns(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
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

fn completions(shell: clap_complete::Shell) -> Outcome<Status> {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "headwater", &mut out);
    print(&String::from_utf8_lossy(&out))?;
    Ok(Status::Done)
}

fn man(verb: &[String]) -> Outcome<Status> {
    let mut command = Cli::command();
    command.build();
    let mut command = &command;
    for word in verb {
        command = command.find_subcommand(word).ok_or_else(|| {
            Failure::new(Status::Usage, format!("`{}` is no verb of headwater", verb.join(" ")))
                .remedy("headwater --help lists the verbs")
        })?;
    }
    let mut out = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut out).map_err(|e| Failure::io("the manual page", e))?;
    print(&String::from_utf8_lossy(&out))?;
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(command: &clap::Command, path: &str, visit: &mut dyn FnMut(&str, &clap::Command)) {
        let path = format!("{path} {}", command.get_name());
        if command.has_subcommands() {
            for sub in command.get_subcommands().filter(|c| c.get_name() != "help") {
                leaves(sub, &path, visit);
            }
        } else {
            visit(&path, command);
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_verb_has_examples() {
        let mut seen = 0;
        leaves(&Cli::command(), "", &mut |path, command| {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:\n  headwater "), "{path}");
            seen += 1;
        });
        assert!(seen >= 7, "{seen}");
    }

    #[test]
    fn a_shown_text_cannot_move_a_terminal() {
        assert_eq!(shown("a\u{1b}[2J\nb\u{202e}é"), "a\\u{1b}[2J\\nb\\u{202e}é");
    }

    #[test]
    fn the_root_is_the_nearest_directory_upward_that_declares_a_corpus() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(dir.path().join(".headwater")).unwrap();
        std::fs::write(dir.path().join(corpus::TAXONOMY), "").unwrap();
        assert_eq!(nearest(&inner).unwrap(), dir.path());
        std::fs::create_dir(inner.join(".headwater")).unwrap();
        std::os::unix::fs::symlink(dir.path().join(corpus::TAXONOMY), inner.join(corpus::TAXONOMY)).unwrap();
        assert_eq!(nearest(&inner).unwrap(), dir.path(), "a link declares nothing");
    }
}
