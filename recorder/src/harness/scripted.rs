#![doc = include_str!("../../../docs/scripted-harness.md")]

mod flags;
mod hooks;
mod lines;
mod permission;
mod process;
mod script;
mod session;
mod skills;
mod stream;
mod tools;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use serde_json::Value;

use flags::Flags;
use script::{End, Misbehave, Placeholders, Script};
use session::Session;
use stream::Stop;

/// The command line of `scripted-harness`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The script, a JSON file.
    script: PathBuf,
    /// The harness's own arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "HARNESS_ARGUMENT")]
    harness: Vec<OsString>,
}

/// The exit status of a bad script.
const BAD_SCRIPT: u8 = 64;

/// The longest prompt, in bytes.
const LONGEST_PROMPT: u64 = 64 << 20;

/// What of its surroundings the harness depends on.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The working directory.
    workspace: PathBuf,
    /// The configuration directory.
    config: PathBuf,
    /// Whether a memory is kept between sessions.
    auto_memory: bool,
    /// Whether the environment holds a key.
    has_api_key: bool,
}

impl Surroundings {
    fn of_process() -> io::Result<Self> {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        Ok(Self {
            workspace: std::env::current_dir()?,
            config: std::env::var_os("CLAUDE_CONFIG_DIR").map_or_else(|| home.join(".claude"), PathBuf::from),
            auto_memory: std::env::var_os("CLAUDE_CODE_DISABLE_AUTO_MEMORY").is_none_or(|value| value != "1"),
            has_api_key: std::env::var_os("ANTHROPIC_API_KEY").is_some(),
        })
    }

    fn api_key_source(&self) -> &'static str {
        if self.has_api_key { "ANTHROPIC_API_KEY" } else { "none" }
    }
}

/// Why nothing was played: the exit status and what standard error is told.
struct Refusal(u8, String);

/// Runs the scripted harness.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    match play(args) {
        Ok(end) => finish(end),
        Err(Refusal(status, message)) => {
            // Standard error may be closed; the status still tells.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::from(status)
        }
    }
}

fn play(args: &Args) -> Result<End, Refusal> {
    let refuse = |what: &str| Refusal(1, format!("scripted harness: {what}"));
    let bad = |what: String| {
        let remedy = "correct the script; docs/scripted-harness.md describes its format";
        Refusal(BAD_SCRIPT, format!("scripted harness: {}: {what}\n  remedy: {remedy}", args.script.display()))
    };
    let text = std::fs::read(&args.script).map_err(|error| bad(error.to_string()))?;
    // Read once without the prompt, since a script may want to end before there is one.
    let early = Script::parse(&text, &Placeholders::default()).map_err(bad)?;
    if early.misbehave.exit_at_once {
        return Ok(early.misbehave.end.unwrap_or(End::Exit(0)));
    }
    let flags = Flags::parse(&args.harness).map_err(|message| Refusal(1, message))?;
    let around = Surroundings::of_process().map_err(|error| refuse(&format!("working directory: {error}")))?;
    let prompt = Prompt::read(&flags).map_err(|message| refuse(&message))?;
    let placeholders = Placeholders {
        workspace: around.workspace.display().to_string(),
        prompt: prompt.as_the_model_sees_it(&flags, &around),
        config: around.config.display().to_string(),
    };
    let script = Script::parse(&text, &placeholders).map_err(bad)?;
    make_noise(&script.misbehave).map_err(|error| refuse(&error.to_string()))?;
    let stdout = io::stdout().as_fd().try_clone_to_owned().map_err(|error| refuse(&format!("output: {error}")))?;
    let played = Session::new(&script, &flags, &around, File::from(stdout)).play(prompt.local_command(&flags));
    let end = script.misbehave.end;
    match played {
        Ok(status) => Ok(end.unwrap_or(End::Exit(status))),
        Err(Stop::Cut) => Ok(end.unwrap_or(End::Exit(0))),
        Err(Stop::Io(error)) => Err(refuse(&format!("output: {error}"))),
    }
}

/// What misbehaves beside the stream: standard error, and a child that stays.
fn make_noise(misbehave: &Misbehave) -> io::Result<()> {
    if let Some(noise) = &misbehave.stderr {
        let mut stderr = io::stderr().lock();
        for _ in 0..noise.repeat {
            writeln!(stderr, "{}", noise.text)?;
        }
    }
    if let Some(command) = &misbehave.leave_child {
        // It inherits standard output, and so holds the stream open.
        let mut child = Command::new("setsid");
        child.args(["bash", "-c", command]).stdin(Stdio::null()).stderr(Stdio::null());
        child.spawn().map_err(|error| io::Error::new(error.kind(), format!("setsid: {error}")))?;
    }
    Ok(())
}

fn finish(end: End) -> ExitCode {
    match end {
        End::Exit(status) => ExitCode::from(status),
        End::Signal(number) => {
            if let Ok(signal) = nix::sys::signal::Signal::try_from(number) {
                // Where this returns, the signal is ignored or blocked, as for the first process of a namespace.
                let _ = nix::sys::signal::raise(signal);
            }
            ExitCode::from(128_u8.saturating_add(u8::try_from(number).unwrap_or(0)))
        }
    }
}

/// The prompt as it arrived.
struct Prompt {
    text: String,
    /// Whether a person typed it, so that slash commands in it are carried out.
    typed: bool,
}

impl Prompt {
    fn read(flags: &Flags) -> Result<Self, String> {
        let mut text = String::new();
        let stdin = io::stdin().lock();
        let read = stdin.take(LONGEST_PROMPT).read_to_string(&mut text);
        read.map_err(|error| format!("standard input: {error}"))?;
        let prompt = if flags.json_input { Self::of_message(&text)? } else { Self { text, typed: true } };
        if prompt.text.is_empty() {
            return Err("Error: Input must be provided either through stdin or as a prompt argument".into());
        }
        Ok(prompt)
    }

    /// The first user message of a JSON input.
    fn of_message(input: &str) -> Result<Self, String> {
        for line in input.lines().filter(|line| !line.trim().is_empty()) {
            let message: Value =
                serde_json::from_str(line).map_err(|error| format!("standard input: a line is not JSON: {error}"))?;
            if message["type"] != "user" {
                continue;
            }
            let text = match &message["message"]["content"] {
                Value::String(text) => text.clone(),
                Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
                _ => return Err("standard input: the user message has no content".into()),
            };
            return Ok(Self { text, typed: message["text_not_typed"] != true });
        }
        Err("standard input: no user message".into())
    }

    /// The word after a leading `/`, where the harness looks for a command there.
    fn command<'a>(&'a self, flags: &Flags) -> Option<&'a str> {
        if !self.typed || flags.no_commands {
            return None;
        }
        self.text.strip_prefix('/')?.split_whitespace().next()
    }

    /// The command of the harness that takes the prompt away from the model, where it names one.
    fn local_command<'a>(&'a self, flags: &Flags) -> Option<&'a str> {
        self.command(flags).filter(|name| lines::BUILT_IN_COMMANDS.contains(name))
    }

    /// The prompt, with a skill that it names put in its place.
    fn as_the_model_sees_it(&self, flags: &Flags, around: &Surroundings) -> String {
        let skill = self.command(flags).and_then(|name| skills::body(&around.workspace, name));
        skill.unwrap_or_else(|| self.text.clone())
    }
}

#[cfg(test)]
mod tests;
