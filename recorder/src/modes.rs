//! The read-only modes: parts of a recording that can be had by themselves, over a raw log or a corpus. None of them
//! starts a harness.

use crate::cli::print;
use crate::confine::view::list::List;
use crate::confine::view::{self, ENGINE, HARNESS};
use crate::engine::Engine;
use crate::files::Scratch;
use crate::harness::choice::Harness;
use crate::options::{Format, Seen};
use crate::record::{corpus, selected};
use crate::status::{Failure, Outcome, Status};
use crate::transform::event::{self, Trees};
use crate::transform::log::SessionLog;
use crate::transform::{answer, ending, provider, stream};
use crate::workspace::manifest::Manifest;
use clap::Args;
use headwater_contract::keys::Tier;
use headwater_contract::transcript;
use headwater_contract::yaml;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// `transform < LOG`
#[derive(Debug, Args)]
pub struct Transform {
    /// The identifier of the probe that was run
    #[arg(long, value_name = "ID")]
    probe: String,
    /// The name of the session
    #[arg(long, value_name = "NAME")]
    session: String,
    /// The tree the session left; without it, calls have no results and nothing is said about artifacts
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// The tree the session started from
    #[arg(long, value_name = "DIR", requires = "workspace")]
    baseline: Option<PathBuf>,
    /// A declared answer of the probe (repeatable)
    #[arg(long = "answers", value_name = "ANSWER")]
    answers: Vec<String>,
}

impl Transform {
    /// Prints one event, as it stands under `Events` of a transcript. What it produced is left out: that is read off
    /// the files by the rules of the corpus, which are the engine's.
    ///
    /// # Errors
    /// [`Status::ChannelAtRisk`] for a log that could hide a call, and the status of a session that ended badly.
    pub fn run(&self) -> Outcome<()> {
        let log = log()?;
        ended_well(&log)?;
        let after = self.workspace.as_deref().map(Manifest::take).transpose()?;
        let before = self.baseline.as_deref().map(Manifest::take).transpose()?;
        let digest = |path: &str| {
            before.as_ref().and_then(|m| m.digest_of(path)).or_else(|| after.as_ref().and_then(|m| m.digest_of(path)))
        };
        // Where the session saw its workspace, by its own first line.
        let seen = log.inits.first.first().and_then(|init| init.cwd.as_deref()).unwrap_or("/");
        let trees = Trees { workspace: Path::new(seen), digest: &digest };
        let answer = answer::answer(final_line(&log), &self.answers);
        let event = event::event(&log, &self.probe, &self.session, &trees, None, answer);
        print(&transcript::events_to_yaml(&[event]))
    }
}

/// `provider < LOG`
#[derive(Debug, Args)]
pub struct Provider {
    /// The model that was asked for; without it, the one of the log's first line
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

impl Provider {
    /// Prints the served version, the cost in cents, what the tokens come to, and every remark.
    ///
    /// # Errors
    /// [`Status::ChannelAtRisk`] for a log that could hide a call.
    pub fn run(&self) -> Outcome<()> {
        let log = log()?;
        believable(&log)?;
        let named = log.inits.first.first().and_then(|init| init.model.clone());
        let asked = self.model.clone().or(named).unwrap_or_default();
        let found = provider::provider(&log, &asked);
        let cost = found.cost_cents.map_or_else(|| "null".into(), |cents| cents.to_string());
        let recomputed = found.recomputed.map_or_else(|| "null".into(), |usd| format!("\"{usd}\""));
        print(&format!(
            "served_version: {}\ncost_cents: {cost}\nrecomputed_usd: {recomputed}\nremarks: {}\n",
            yaml::scalar(&found.served_version),
            yaml::flow(&found.remarks),
        ))
    }
}

/// `answer < LOG`
#[derive(Debug, Args)]
pub struct Answer {
    /// A declared answer of the probe (repeatable)
    #[arg(long = "answers", value_name = "ANSWER", required = true)]
    answers: Vec<String>,
}

impl Answer {
    /// Prints the answer in its declared form, or `null`.
    ///
    /// # Errors
    /// [`Status::ChannelAtRisk`] for a log that could hide a call.
    pub fn run(&self) -> Outcome<()> {
        let log = log()?;
        believable(&log)?;
        let text = match answer::answer(final_line(&log), &self.answers) {
            transcript::Answer::Value(value) => yaml::scalar(&value).into_owned(),
            transcript::Answer::None | transcript::Answer::NotObserved => "null".into(),
        };
        print(&format!("{text}\n"))
    }
}

/// `view --print`
#[derive(Debug, Args)]
pub struct View {
    /// Print the list: path, kind, mode, source and what it is. It is all that this command does
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    seen: Seen,
    /// The tree a session works in; without it, the list says WORKSPACE
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// The log directory of the run; without it, the list says LOGS
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    /// The harness: a program, or `scripted:FILE` for the scripted harness; without it, `claude` of the PATH
    #[arg(long, value_name = "PATH")]
    harness: Option<String>,
    /// The engine; without it, `headwater` beside this program, then of the PATH
    #[arg(long, value_name = "PATH")]
    engine: Option<PathBuf>,
    /// How the list is printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

impl View {
    /// Prints the view of a session with these options. What is not named, and not found, has a stand-in while the view
    /// is made: a directory that goes away, or this program.
    ///
    /// # Errors
    /// Those of the view; [`Status::Missing`] for a harness or an engine that is named and is none.
    pub fn run(&self) -> Outcome<()> {
        let (workspace, logs) = (Scratch::new("work-")?, Scratch::new("headwater-logs-")?);
        let this = std::env::current_exe().map_err(|e| Failure::io("this program cannot be found", e))?;
        let search = std::env::var_os("PATH");
        let mut unknown = Vec::new();
        let harness = match Harness::find(self.harness.as_deref().map(OsStr::new), search.as_deref()) {
            Err(_) if self.harness.is_none() => {
                unknown.push((PathBuf::from(HARNESS), ""));
                Harness::Program(this.clone())
            }
            found => found?,
        };
        let engine = match Engine::find(self.engine.as_deref()) {
            Err(_) if self.engine.is_none() => {
                unknown.push((PathBuf::from(ENGINE), ""));
                this
            }
            found => found?.path,
        };
        let closure = self.seen.closure()?;
        let view = view::View::new(&view::Request {
            workspace: self.workspace.as_deref().unwrap_or(workspace.path()),
            logs: self.logs.as_deref().unwrap_or(logs.path()),
            harness: harness.program(),
            beside_harness: &harness.beside(),
            engine: &engine,
            closure: closure.as_ref(),
            host_network: true,
        })?;
        for (given, path, word) in [(&self.workspace, view.workspace(), "WORKSPACE"), (&self.logs, view.logs(), "LOGS")]
        {
            if given.is_none() {
                unknown.push((path.to_path_buf(), word));
            }
        }
        let unknown: Vec<_> = unknown.iter().map(|(path, word)| (path.as_path(), *word)).collect();
        let list = List::of(&view, &unknown);
        print(&match self.format {
            Format::Text => list.text(),
            Format::Json => {
                serde_json::to_string_pretty(&list).map(|text| text + "\n").map_err(|e| Failure::io("the list", e))?
            }
        })
    }
}

/// What a plan is asked with.
#[derive(Debug, Args)]
struct Planned {
    /// The corpus: the directory that holds `.headwater/`
    #[arg(long, value_name = "DIR")]
    corpus: PathBuf,
    /// The tier of the run
    #[arg(long, value_name = "TIER", default_value_t = Tier::Regression)]
    tier: Tier,
    /// The engine; without it, `headwater` beside this program, then of the PATH
    #[arg(long, value_name = "PATH")]
    engine: Option<PathBuf>,
}

/// `identity`
#[derive(Debug, Args)]
pub struct Identity {
    #[command(flatten)]
    planned: Planned,
    /// The rotation seed, decimal digits
    #[arg(long, value_name = "N", default_value = "0", value_parser = crate::options::seed)]
    seed: String,
}

impl Identity {
    /// Prints the six members that a plan fixes, one a line, in the order of the plan.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn run(&self) -> Outcome<()> {
        let corpus = corpus(&self.planned.corpus)?;
        let engine = Engine::find(self.planned.engine.as_deref())?;
        let identity = engine.plan(&corpus, self.planned.tier, &self.seed)?.identity;
        print(&format!(
            "lock: {}\ntree: {}\nselection: {}\nread_set: {}\nseed: {}\nharness: {}\n",
            identity.lock,
            identity.tree,
            identity.selection,
            identity.read_set,
            identity.seed,
            yaml::scalar(&identity.harness),
        ))
    }
}

/// `task`
#[derive(Debug, Args)]
pub struct Task {
    #[command(flatten)]
    planned: Planned,
    /// The identifier of the probe
    #[arg(long, value_name = "ID")]
    probe: String,
}

impl Task {
    /// Prints the prompt word for word, and nothing more: no line feed is added at its end.
    ///
    /// # Errors
    /// Those of the plan; [`Status::PlanRefuses`] where it does not select the probe.
    pub fn run(&self) -> Outcome<()> {
        let corpus = corpus(&self.planned.corpus)?;
        let engine = Engine::find(self.planned.engine.as_deref())?;
        let plan = engine.plan(&corpus, self.planned.tier, "0")?;
        print(&selected(&plan, &self.probe, None)?.task)
    }
}

fn log() -> Outcome<SessionLog> {
    stream::read(io::stdin().lock()).map_err(|e| Failure::io("standard input", e))
}

fn final_line(log: &SessionLog) -> Option<&str> {
    log.result.as_ref().and_then(|result| result.final_line.as_deref())
}

/// Refuses a log whose calls cannot be believed to be all of the session's.
fn believable(log: &SessionLog) -> Outcome<()> {
    if log.lines == 0 {
        return Err(Failure::new(Status::ChannelAtRisk, "the log is empty")
            .remedy("give the raw log of a session on standard input"));
    }
    match log.could_hide_a_call() {
        Some(why) => Err(Failure::new(Status::ChannelAtRisk, format!("the log is torn or forged: {why}"))
            .remedy("give it the raw log of one session, whole and unchanged")),
        None => Ok(()),
    }
}

/// Refuses a log of a session that `record` would not have recorded, as far as the log alone tells.
fn ended_well(log: &SessionLog) -> Outcome<()> {
    let failure = ending::ending(log, None, None).failure();
    // A log costs nothing to read again, whatever it cost to make.
    failure.map_or(Ok(()), |failure| Err(Failure { spent: false, ..failure }))
}
