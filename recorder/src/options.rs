//! What a recording is asked for.

use crate::confine::view::Kind;
use crate::confine::view::closure::Closure;
use crate::status::{Failure, Outcome, Status};
use clap::Args;
use headwater_contract::keys::{Arm, Tier};
use std::path::PathBuf;

/// The options of `record`.
#[derive(Debug, Clone, Args)]
pub struct Record {
    /// The corpus: the directory that holds `.headwater/`
    #[arg(long, value_name = "DIR")]
    pub corpus: PathBuf,

    /// The identifier of the probe to run
    #[arg(long, value_name = "ID")]
    pub probe: String,

    /// A name for the session, distinct within the probe
    #[arg(long, value_name = "NAME", value_parser = session)]
    pub session: String,

    /// The tree the session works in; without it one is built from the commit, without the instrument, and sealed
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,

    /// The tree to compare the workspace with afterwards, if not the workspace as it is before the session
    #[arg(long, value_name = "DIR", requires = "workspace")]
    pub baseline: Option<PathBuf>,

    /// The model to ask for; without it, the harness's own default
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// The tier of the run
    #[arg(long, value_name = "TIER", default_value_t = Tier::Regression)]
    pub tier: Tier,

    /// The arm of the run
    #[arg(long, value_name = "ARM", default_value_t = Arm::Present)]
    pub arm: Arm,

    /// The rotation seed, decimal digits
    #[arg(long, value_name = "N", default_value = "0", value_parser = seed)]
    pub seed: String,

    /// The harness: a program, or `scripted:FILE` for the scripted harness; without it, `claude` of the PATH
    #[arg(long, value_name = "PATH")]
    pub harness: Option<String>,

    /// The engine; without it, `headwater` beside this program, then of the PATH
    #[arg(long, value_name = "PATH")]
    pub engine: Option<PathBuf>,

    /// bubblewrap; without it, `bwrap` of the PATH
    #[arg(long, value_name = "PATH")]
    pub bwrap: Option<PathBuf>,

    /// The harness's credentials file; without it, the one of this account's harness configuration
    #[arg(long, value_name = "FILE")]
    pub credentials: Option<PathBuf>,

    /// Where the harness finds its provider, if not at the first party's address
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// A path the session is known to produce (repeatable)
    #[arg(long = "produced", value_name = "PATH")]
    pub produced: Vec<String>,

    /// The turn cap; without it, the one of the tier
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_turns: Option<u64>,

    /// The longest a session may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_seconds: u64,

    /// The longest a session may be silent, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 900, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_idle_seconds: u64,

    /// Where the stream goes as it arrives; without it, beside the transcript as `NAME.raw.jsonl`
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,

    /// The transcript to write; it must not exist
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    #[command(flatten)]
    pub seen: Seen,

    /// Print how the session would be confined, and how its harness would be started, and start nothing
    #[arg(long)]
    pub explain: bool,

    /// How the result is printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
}

/// What a session sees of the host.
#[derive(Debug, Clone, Args)]
pub struct Seen {
    /// What the session sees of the host; without it `closure` where --closure is given, else `host`
    #[arg(long, value_name = "VIEW")]
    pub view: Option<Kind>,

    /// What the closure view shows: a file that lists paths, one a line (store paths where Nix is)
    #[arg(long, value_name = "FILE")]
    pub closure: Option<PathBuf>,
}

impl Seen {
    /// The closure, for the closure view; none for the host view.
    ///
    /// # Errors
    /// [`Status::Usage`] where the two options do not go together, and those of [`Closure::read`].
    pub fn closure(&self) -> Outcome<Option<Closure>> {
        let usage = |message: &str, remedy: &str| Err(Failure::new(Status::Usage, message).remedy(remedy));
        match (self.view, &self.closure) {
            (Some(Kind::Host) | None, None) => Ok(None),
            (Some(Kind::Closure) | None, Some(file)) => Closure::read(file).map(Some),
            (Some(Kind::Closure), None) => usage("the closure view needs a closure", "name its list with --closure"),
            (Some(Kind::Host), Some(_)) => {
                usage("the host view shows no closure", "leave out --closure, or name --view closure")
            }
        }
    }
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For tools.
    Json,
}

/// A session's name: one line of text that a transcript, a title and an environment can hold.
fn session(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        Err("a session's name is one line of text, and not empty".into())
    } else {
        Ok(text.to_owned())
    }
}

/// A rotation seed: decimal digits, any number of them.
pub(crate) fn seed(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err("a seed is decimal digits".into())
    }
}
