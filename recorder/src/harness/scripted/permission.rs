//! Whether a call may run: the tools a session has, and what its permission mode decides.

use std::path::Path;

use serde_json::Value;

use super::flags::Flags;

/// The tools of a session with no option, as the init line names them.
const TOOLS: &[&str] = &[
    "Task",
    "Bash",
    "CronCreate",
    "CronDelete",
    "CronList",
    "Edit",
    "EnterWorktree",
    "ExitWorktree",
    "Glob",
    "Grep",
    "ListAgents",
    "Monitor",
    "NotebookEdit",
    "Read",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskStop",
    "TaskUpdate",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
    "Workflow",
    "Write",
];

/// Tools that exist only where an option names them.
const ON_REQUEST: &[&str] = &["Glob", "Grep"];

/// Tools that no permission mode asks about.
const ALWAYS_ALLOWED: &[&str] = &["Task", "Skill", "ToolSearch"];

/// Commands that only read, as far as this harness knows.
const READ_ONLY_COMMANDS: &[&str] = &["ls", "cat", "pwd", "head", "tail", "wc", "grep"];

/// What becomes of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allowed,
    /// The session has no such tool.
    NoSuchTool(String),
    /// The permission mode denies it.
    Denied(String),
}

/// The tools of the session, as the init line names them.
#[must_use]
pub fn tools(flags: &Flags) -> Vec<&'static str> {
    TOOLS.iter().copied().filter(|tool| absence(flags, tool).is_none()).collect()
}

/// Decides over one call.
#[must_use]
pub fn decide(flags: &Flags, workspace: &Path, tool: &str, input: &Value) -> Verdict {
    let tool = canonical(tool);
    if let Some(why) = absence(flags, tool) {
        return Verdict::NoSuchTool(why);
    }
    let allowed = match flags.permission_mode.as_str() {
        "bypassPermissions" => true,
        "acceptEdits" if matches!(tool, "Edit" | "Write" | "NotebookEdit") => true,
        _ => {
            ALWAYS_ALLOWED.contains(&tool)
                || names(&flags.allowed, tool)
                || tool == "Read" && input["file_path"].as_str().is_some_and(|path| is_inside(workspace, path))
                || tool == "Bash" && input["command"].as_str().is_some_and(only_reads)
        }
    };
    if allowed {
        return Verdict::Allowed;
    }
    Verdict::Denied(format!(
        "Permission to use {tool} has been denied because the permission mode is {}.",
        flags.permission_mode
    ))
}

/// `Agent` and `Task` are two names of one tool.
fn canonical(tool: &str) -> &str {
    if tool == "Agent" { "Task" } else { tool }
}

/// Why the session has no such tool, where it has none.
fn absence(flags: &Flags, tool: &str) -> Option<String> {
    let named = names(&flags.allowed, tool) || flags.tools.as_ref().is_some_and(|tools| names(tools, tool));
    if names(&flags.disallowed, tool) {
        return Some(format!("{tool} is disabled for this session, in subagents as well as here."));
    }
    if flags.tools.as_ref().is_some_and(|tools| !names(tools, tool)) {
        return Some(format!("{tool} is not among the tools available here."));
    }
    if ON_REQUEST.contains(&tool) && !named {
        return Some(format!("{tool} is not available in this session."));
    }
    (!TOOLS.contains(&tool)).then(String::new)
}

/// Whether a list of rules names the whole tool. A rule with a pattern, as `Bash(git *)`, is not interpreted: it
/// permits and denies nothing here.
fn names(rules: &[String], tool: &str) -> bool {
    rules.iter().any(|rule| canonical(rule) == tool)
}

fn is_inside(workspace: &Path, path: &str) -> bool {
    let path = workspace.join(path);
    path.starts_with(workspace) && !path.components().any(|c| c == std::path::Component::ParentDir)
}

fn only_reads(command: &str) -> bool {
    !command.contains([';', '&', '<', '>', '`', '$', '\n', '(', ')'])
        && command
            .split('|')
            .all(|part| part.split_whitespace().next().is_some_and(|word| READ_ONLY_COMMANDS.contains(&word)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use serde_json::json;

    use super::*;

    fn flags(args: &[&str]) -> Flags {
        let all = ["-p", "--output-format", "stream-json", "--verbose", "--permission-mode", "dontAsk"];
        Flags::parse(&all.iter().chain(args).map(OsString::from).collect::<Vec<_>>()).unwrap()
    }

    fn verdict(args: &[&str], tool: &str, input: Value) -> Verdict {
        decide(&flags(args), Path::new("/ws"), tool, &input)
    }

    #[test]
    fn the_search_tools_exist_only_where_they_are_named() {
        assert!(!tools(&flags(&[])).contains(&"Grep"));
        assert!(tools(&flags(&["--allowedTools", "Grep"])).contains(&"Grep"));
        assert_eq!(tools(&flags(&["--tools", "Glob,Read"])), ["Glob", "Read"]);
        assert!(matches!(verdict(&[], "Glob", json!({})), Verdict::NoSuchTool(_)));
    }

    #[test]
    fn a_disallowed_tool_is_gone_under_both_of_its_names() {
        let args = ["--disallowedTools", "WebSearch,Task"];
        assert!(!tools(&flags(&args)).iter().any(|tool| ["WebSearch", "Task"].contains(tool)));
        assert!(matches!(verdict(&args, "Agent", json!({})), Verdict::NoSuchTool(why) if why.contains("disabled")));
        assert_eq!(verdict(&[], "MultiEdit", json!({})), Verdict::NoSuchTool(String::new()));
    }

    #[test]
    fn dont_ask_denies_what_no_rule_allows_and_nothing_that_only_reads() {
        assert_eq!(verdict(&["--allowedTools", "Write"], "Write", json!({"file_path": "x"})), Verdict::Allowed);
        assert!(matches!(verdict(&[], "Write", json!({"file_path": "x"})), Verdict::Denied(_)));
        assert_eq!(verdict(&[], "Agent", json!({})), Verdict::Allowed);
        assert_eq!(verdict(&[], "Read", json!({"file_path": "docs/a.md"})), Verdict::Allowed);
        assert!(matches!(verdict(&[], "Read", json!({"file_path": "/etc/passwd"})), Verdict::Denied(_)));
        assert!(matches!(verdict(&[], "Read", json!({"file_path": "../x"})), Verdict::Denied(_)));
        assert_eq!(verdict(&[], "Bash", json!({"command": "cat a | wc -l"})), Verdict::Allowed);
        assert!(matches!(verdict(&[], "Bash", json!({"command": "ls; rm a"})), Verdict::Denied(_)));
        assert!(matches!(verdict(&[], "WebFetch", json!({})), Verdict::Denied(_)));
        assert!(matches!(
            verdict(&["--allowedTools", "Bash(git *)"], "Bash", json!({"command": "git x"})),
            Verdict::Denied(_)
        ));
    }

    #[test]
    fn bypass_permissions_allows_everything_that_exists() {
        let args = ["--permission-mode", "bypassPermissions"];
        assert_eq!(verdict(&args, "Write", json!({})), Verdict::Allowed);
        assert!(matches!(verdict(&args, "Nope", json!({})), Verdict::NoSuchTool(_)));
    }
}
