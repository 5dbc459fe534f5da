//! The tools, performed for real in the working directory.
//!
//! They stand where the real harness's tools stand, inside the session: they follow links and obey the confinement
//! around them, and add no protection of their own.

mod files;
mod notebook;
mod search;
mod shell;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::skills;

/// Where the tools work, and what one conversation (the session's or a sub-agent's) has read so far.
#[derive(Debug, Clone)]
pub struct Bench {
    /// The working directory.
    pub workspace: PathBuf,
    /// Where output goes that is too long for the stream.
    pub overflow: PathBuf,
    /// Files that may be written over, because they were read or made.
    known: BTreeSet<PathBuf>,
}

/// What a call gave.
#[derive(Debug)]
pub struct Outcome {
    /// What the model is told.
    pub content: Value,
    /// The `is_error` member of the tool_result block, where it has one.
    pub is_error: Option<bool>,
    /// The line's `tool_use_result`.
    pub result: Value,
    /// Whether the call got as far as to be permitted.
    pub permitted: bool,
    /// Text that the harness adds to the conversation after the result.
    pub afterwards: Option<String>,
}

/// Why a call failed.
#[derive(Debug)]
enum Fault {
    /// Before it was tried: its input is wrong.
    Invalid(String),
    /// While it was tried.
    Failed(String),
}

type Performed = Result<Outcome, Fault>;

impl Outcome {
    fn text(content: impl Into<String>, result: Value) -> Self {
        Self { content: Value::String(content.into()), is_error: None, result, permitted: true, afterwards: None }
    }

    /// The outcome of a call that was not tried.
    #[must_use]
    pub fn invalid(message: &str) -> Self {
        Self {
            content: format!("<tool_use_error>{message}</tool_use_error>").into(),
            is_error: Some(true),
            result: format!("Error: {message}").into(),
            permitted: false,
            afterwards: None,
        }
    }

    /// The outcome of a call that failed.
    #[must_use]
    pub fn failed(message: &str) -> Self {
        Self { content: message.into(), permitted: true, ..Self::invalid(message) }
    }
}

impl Bench {
    /// A bench on which nothing has been read.
    #[must_use]
    pub fn new(workspace: PathBuf, overflow: PathBuf) -> Self {
        Self { workspace, overflow, known: BTreeSet::new() }
    }

    /// The bench of a sub-agent: the same place, and nothing read yet.
    #[must_use]
    pub fn for_agent(&self) -> Self {
        Self::new(self.workspace.clone(), self.overflow.clone())
    }

    /// Performs a call of any tool but a sub-agent.
    pub fn perform(&mut self, tool: &str, input: &Value) -> Outcome {
        let performed = match tool {
            "Read" => files::read(self, input),
            "Write" => files::write(self, input),
            "Edit" => files::edit(self, input),
            "NotebookEdit" => notebook::edit(self, input),
            "Bash" => shell::bash(self, input),
            "Glob" => search::glob(self, input),
            "Grep" => search::grep(self, input),
            "Skill" => skill(self, input),
            other => Err(Fault::Failed(format!("the scripted harness does not perform {other}"))),
        };
        match performed {
            Ok(outcome) => outcome,
            Err(Fault::Invalid(message)) => Outcome::invalid(&message),
            Err(Fault::Failed(message)) => Outcome::failed(&message),
        }
    }

    fn path(&self, text: &str) -> PathBuf {
        self.workspace.join(text)
    }

    /// `path` as results name it: relative to the working directory where it is inside.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.workspace).unwrap_or(path).display().to_string()
    }

    fn learn(&mut self, path: &Path) {
        self.known.insert(path.to_path_buf());
    }

    fn must_know(&self, path: &Path) -> Result<(), Fault> {
        if self.known.contains(path) || !path.exists() {
            return Ok(());
        }
        Err(Fault::Invalid("File has not been read yet. Read it first before writing to it.".into()))
    }
}

/// A required text member of an input.
fn required<'a>(tool: &str, input: &'a Value, key: &str) -> Result<&'a str, Fault> {
    input[key].as_str().ok_or_else(|| {
        Fault::Invalid(format!("InputValidationError: {tool} failed: the required parameter `{key}` is missing"))
    })
}

fn failed(path: &Path, error: &std::io::Error) -> Fault {
    Fault::Failed(format!("{error}, '{}'", path.display()))
}

fn skill(bench: &Bench, input: &Value) -> Performed {
    let name = required("Skill", input, "skill")?;
    let Some(body) = skills::body(&bench.workspace, name) else {
        return Err(Fault::Invalid(format!("Unknown skill: {name}")));
    };
    let base = skills::directory(&bench.workspace).join(name);
    let body = body.replace("$ARGUMENTS", input["args"].as_str().unwrap_or_default());
    let outcome = Outcome::text(format!("Launching skill: {name}"), json!({"success": true, "commandName": name}));
    Ok(Outcome { afterwards: Some(format!("Base directory for this skill: {}\n\n{body}", base.display())), ..outcome })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bench over a fresh directory with the files given.
    pub(super) fn bench(files: &[(&str, &str)]) -> (tempfile::TempDir, Bench) {
        let directory = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let bench = Bench::new(directory.path().to_path_buf(), directory.path().join("overflow"));
        (directory, bench)
    }

    #[test]
    fn a_skill_of_the_workspace_adds_its_text_to_the_conversation() {
        let (_directory, mut bench) =
            bench(&[(".claude/skills/dig/SKILL.md", "---\nname: dig\n---\nDig for $ARGUMENTS.\n")]);
        let outcome = bench.perform("Skill", &json!({"skill": "dig", "args": "pumps"}));
        assert_eq!(outcome.content, "Launching skill: dig");
        assert!(outcome.afterwards.unwrap().ends_with("Dig for pumps.\n"));
        let unknown = bench.perform("Skill", &json!({"skill": "../dig"}));
        assert_eq!((unknown.is_error, unknown.permitted), (Some(true), false));
    }

    #[test]
    fn a_missing_parameter_and_an_unknown_tool_are_error_results() {
        let (_directory, mut bench) = bench(&[]);
        for tool in ["Read", "Write", "Edit", "NotebookEdit", "Bash", "Glob", "Grep", "Skill"] {
            let outcome = bench.perform(tool, &json!({}));
            assert_eq!(outcome.is_error, Some(true), "{tool}");
            assert!(outcome.content.as_str().unwrap().contains("is missing"), "{tool}");
        }
        assert_eq!(bench.perform("Workflow", &json!({})).is_error, Some(true));
    }
}
