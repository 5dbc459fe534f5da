//! The hooks that a workspace declares, run as the harness runs them.
//!
//! Command hooks of four events are run. What a hook writes to standard output is told and not interpreted: only exit
//! status 2 of a `PreToolUse` hook has an effect, and that is to stop the call.

use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::process::{self, Ran};

/// How long a hook may run.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What a settings file says about hooks.
#[derive(Debug, Default)]
pub struct Hooks(Value);

impl Hooks {
    /// The hooks of a workspace; none where its settings cannot be read, as in the harness.
    #[must_use]
    pub fn of(workspace: &Path) -> Self {
        let text = std::fs::read(workspace.join(".claude/settings.json")).unwrap_or_default();
        let settings: Value = serde_json::from_slice(&text).unwrap_or_default();
        Self(settings["hooks"].clone())
    }

    /// The commands of an event, for a tool where the event is about one.
    #[must_use]
    pub fn commands(&self, event: &str, tool: Option<&str>) -> Vec<&str> {
        let groups = self.0[event].as_array().into_iter().flatten();
        let fitting = groups.filter(|group| fits(group["matcher"].as_str().unwrap_or_default(), tool));
        let hooks = fitting.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
        hooks.filter(|hook| hook["type"] == "command").filter_map(|hook| hook["command"].as_str()).collect()
    }
}

fn fits(matcher: &str, tool: Option<&str>) -> bool {
    let Some(tool) = tool else { return true };
    matches!(matcher, "" | "*") || Regex::new(&format!("^(?:{matcher})$")).is_ok_and(|found| found.is_match(tool))
}

/// Runs one hook with its input on standard input.
///
/// # Errors
/// Where it cannot be started.
pub fn run(command: &str, workspace: &Path, input: &Value) -> io::Result<Ran> {
    let mut file = tempfile::tempfile()?;
    writeln!(file, "{input}")?;
    file.rewind()?;
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(workspace).env("CLAUDE_PROJECT_DIR", workspace).stdin(Stdio::from(file));
    process::run(shell, TIMEOUT, false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_matcher_is_held_to_the_whole_name_of_the_tool() {
        let group = |matcher: &str, command: &str| json!({"matcher": matcher, "hooks": [{"type": "command", "command": command}, {"type": "prompt"}]});
        let hooks = Hooks(json!({"PreToolUse": [group("Read|Bash", "a"), group("", "b"), group("Re", "c")],
            "SessionStart": [group("startup", "d")]}));
        assert_eq!(hooks.commands("PreToolUse", Some("Read")), ["a", "b"]);
        assert_eq!(hooks.commands("PreToolUse", Some("Write")), ["b"]);
        assert_eq!(hooks.commands("SessionStart", None), ["d"]);
        assert!(hooks.commands("Stop", None).is_empty());
        assert!(Hooks::of(Path::new("/nowhere")).commands("Stop", None).is_empty());
    }

    #[test]
    fn a_hook_gets_its_input_and_the_place_of_the_project() {
        let directory = tempfile::tempdir().unwrap();
        let ran = run("cat; echo \"$CLAUDE_PROJECT_DIR\" >&2; exit 2", directory.path(), &json!({"a": 1})).unwrap();
        assert_eq!(ran.stdout, b"{\"a\":1}\n");
        assert_eq!(ran.stderr, format!("{}\n", directory.path().display()).into_bytes());
        assert_eq!(ran.status.unwrap().code(), Some(2));
    }
}
