//! The command line and the environment of the harness: pure functions, the same for every arm.

use crate::confine::view::{CONFIGURATION, ENGINE_DIRECTORY, HARNESS};
use crate::status::{Failure, Outcome, Status};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The tools that every arm has, and may use: the same list says which exist in a session, because the permission mode
/// `dontAsk` lets through some that are only not denied (a cron job among them keeps a session alive), and which are
/// allowed. `Task` is the older name of `Agent`; both are accepted.
pub const TOOLS: [&str; 10] =
    ["Agent", "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "Task", "Write"];
/// The tools that no arm has.
pub const DENIED_TOOLS: [&str; 2] = ["WebFetch", "WebSearch"];
/// The file in which a workspace declares its MCP servers.
pub const MCP_FILE: &str = ".mcp.json";

/// What of a command line differs from session to session.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// What stands before the harness's own options: for a harness that is one mode of a program.
    pub leading: &'a [OsString],
    /// The model to drive, where one is named.
    pub model: Option<&'a str>,
    /// The most turns of the session, where there is a cap. Zero is no cap to the harness, and is refused.
    pub max_turns: Option<u32>,
    /// Whether the workspace holds [`MCP_FILE`].
    pub mcp_file: bool,
    /// The MCP servers whose tools are allowed, in the order given. They are the corpus's, for every arm alike: a name
    /// with no server behind it allows nothing.
    pub mcp_servers: &'a [String],
}

/// The harness and its arguments, as bwrap starts it. The task is not among them: it goes in by standard input, as
/// [`prompt`](super::prompt) writes it.
///
/// # Errors
/// [`Status::Usage`] for a value that the harness would read as something else.
pub fn command(options: &Options<'_>) -> Outcome<Vec<OsString>> {
    let usage = |message: String| Failure::new(Status::Usage, message);
    let mut out = vec![OsString::from(HARNESS)];
    out.extend_from_slice(options.leading);
    out.extend(
        ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"].map(OsString::from),
    );
    // What makes every call of the session visible in the stream.
    out.extend(["--forward-subagent-text", "--include-hook-events", "--no-session-persistence"].map(OsString::from));
    out.extend(["--setting-sources", "project,local", "--permission-mode", "dontAsk"].map(OsString::from));
    // Options that take several values are joined to theirs, so that none swallows what comes after it.
    let tools = TOOLS.join(",");
    out.push(format!("--tools={tools}").into());
    let mut allowed = tools;
    for server in options.mcp_servers {
        if server.is_empty() || server.bytes().any(|c| !c.is_ascii_alphanumeric() && !b"_-".contains(&c)) {
            let message = format!("`{server}` is no name for an MCP server: letters, digits, `_` and `-` alone");
            return Err(usage(message).remedy(format!("rename it in {MCP_FILE}")));
        }
        allowed.push_str(",mcp__");
        allowed.push_str(server);
    }
    out.push(format!("--allowedTools={allowed}").into());
    out.push(format!("--disallowedTools={}", DENIED_TOOLS.join(",")).into());
    out.push("--strict-mcp-config".into());
    if options.mcp_file {
        out.push(format!("--mcp-config={MCP_FILE}").into());
    }
    if let Some(model) = options.model {
        if model.is_empty() || model.starts_with('-') || model.chars().any(|c| c.is_control() || c.is_whitespace()) {
            let message = format!("`{}` is no name of a model", model.escape_debug());
            return Err(usage(message).remedy("name one with --model as the harness takes it, or none"));
        }
        out.extend(["--model", model].map(OsString::from));
    }
    match options.max_turns {
        Some(0) => {
            let message = "a turn cap of 0 is no cap to the harness".to_owned();
            return Err(usage(message).remedy("name a cap of at least 1, or none"));
        }
        Some(turns) => out.extend(["--max-turns".to_owned(), turns.to_string()].map(OsString::from)),
        None => {}
    }
    Ok(out)
}

/// What of an environment differs from session to session.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// The session's name.
    pub session: &'a str,
    /// The log directory of the run, as the session sees it.
    pub logs: &'a Path,
    /// The base URL of the provider, where it is not the harness's own.
    pub base_url: Option<&'a str>,
    /// Where programs are found inside, after the engine.
    pub programs: &'a [PathBuf],
}

/// The whole environment of the session, in byte order of the names.
#[must_use]
pub fn environment(surroundings: &Surroundings<'_>) -> Vec<(OsString, OsString)> {
    let mut path = OsString::from(ENGINE_DIRECTORY);
    for directory in surroundings.programs {
        path.push(":");
        path.push(directory);
    }
    let mut out: Vec<(OsString, OsString)> = [
        ("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1"),
        // A sub-agent in the background ends after the session's first result line, and not all of it is shown.
        ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("CLAUDE_CONFIG_DIR", CONFIGURATION),
        ("DISABLE_AUTOUPDATER", "1"),
        ("HEADWATER_PROBE_SESSION", surroundings.session),
        ("HOME", CONFIGURATION),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
        ("TZ", "UTC"),
    ]
    .map(|(name, value)| (name.into(), value.into()))
    .into();
    out.push(("HEADWATER_SHADOW_LOG_DIR".into(), surroundings.logs.into()));
    out.push(("PATH".into(), path));
    if let Some(url) = surroundings.base_url {
        out.push(("ANTHROPIC_BASE_URL".into(), url.into()));
        // A proxy variable set by a workspace must not stand between the session and its base URL.
        out.push(("NO_PROXY".into(), "127.0.0.1".into()));
    }
    out.sort();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(options: &Options<'_>) -> Vec<String> {
        command(options).unwrap().into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_command_line_is_the_same_for_every_arm_but_for_what_the_session_names() {
        let plain = words(&Options::default());
        assert_eq!(
            plain,
            [
                "/opt/headwater/harness/claude",
                "-p",
                "--input-format",
                "stream-json",
                "--output-format",
                "stream-json",
                "--verbose",
                "--forward-subagent-text",
                "--include-hook-events",
                "--no-session-persistence",
                "--setting-sources",
                "project,local",
                "--permission-mode",
                "dontAsk",
                "--tools=Agent,Bash,Edit,Glob,Grep,NotebookEdit,Read,Skill,Task,Write",
                "--allowedTools=Agent,Bash,Edit,Glob,Grep,NotebookEdit,Read,Skill,Task,Write",
                "--disallowedTools=WebFetch,WebSearch",
                "--strict-mcp-config",
            ]
        );
        let named = words(&Options {
            model: Some("claude-haiku-4-5"),
            max_turns: Some(7),
            mcp_file: true,
            ..Options::default()
        });
        let added = ["--mcp-config=.mcp.json", "--model", "claude-haiku-4-5", "--max-turns", "7"];
        assert_eq!(named[..plain.len()], plain);
        assert_eq!(named[plain.len()..], added);
    }

    #[test]
    fn no_option_that_takes_several_values_is_followed_by_a_word_of_its_own() {
        let options = Options { model: Some("m"), max_turns: Some(1), mcp_file: true, ..Options::default() };
        for word in words(&options) {
            let several = ["--allowedTools", "--disallowedTools", "--mcp-config", "--tools", "--add-dir"];
            assert!(!several.contains(&word.as_str()), "{word}");
        }
    }

    #[test]
    fn the_web_tools_are_denied_and_never_allowed() {
        assert!(DENIED_TOOLS.iter().all(|tool| !TOOLS.contains(tool)));
    }

    #[test]
    fn a_harness_that_is_one_mode_of_a_program_has_that_mode_first() {
        let leading = ["scripted-harness".into(), "/opt/headwater/harness/script".into()];
        let line = words(&Options { leading: &leading, ..Options::default() });
        assert_eq!(line[1..4], ["scripted-harness", "/opt/headwater/harness/script", "-p"]);
    }

    #[test]
    fn the_tools_of_the_corpus_s_servers_are_allowed_by_the_server_s_name() {
        let servers = ["glossary".to_owned(), "my-map".to_owned()];
        let line = words(&Options { mcp_servers: &servers, ..Options::default() });
        assert!(line.iter().any(|word| word.ends_with(",Write,mcp__glossary,mcp__my-map")));
        for bad in ["", "a,Bash", "a b", "*"] {
            let servers = [bad.to_owned()];
            let refused = command(&Options { mcp_servers: &servers, ..Options::default() }).unwrap_err();
            assert_eq!(refused.status, Status::Usage);
        }
    }

    #[test]
    fn a_value_that_the_harness_would_read_as_something_else_is_refused() {
        for bad in ["", "--dangerously-skip-permissions", "a b", "a\n"] {
            let refused = command(&Options { model: Some(bad), ..Options::default() }).unwrap_err();
            assert_eq!(refused.status, Status::Usage);
        }
        let refused = command(&Options { max_turns: Some(0), ..Options::default() }).unwrap_err();
        assert_eq!(refused.status, Status::Usage);
    }

    #[test]
    fn the_environment_is_its_list_and_no_more() {
        let programs = ["/store/a/bin", "/usr/bin"].map(PathBuf::from);
        let surroundings =
            Surroundings { session: "s 1", logs: Path::new("/batch/logs"), base_url: None, programs: &programs };
        let lines: Vec<String> = environment(&surroundings)
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.into_string().unwrap(), value.into_string().unwrap()))
            .collect();
        assert_eq!(
            lines,
            [
                "CLAUDE_CODE_DISABLE_AUTO_MEMORY=1",
                "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
                "CLAUDE_CONFIG_DIR=/opt/headwater/config",
                "DISABLE_AUTOUPDATER=1",
                "HEADWATER_PROBE_SESSION=s 1",
                "HEADWATER_SHADOW_LOG_DIR=/batch/logs",
                "HOME=/opt/headwater/config",
                "LANG=C.UTF-8",
                "PATH=/opt/headwater/bin:/store/a/bin:/usr/bin",
                "TMPDIR=/tmp",
                "TZ=UTC",
            ]
        );
        let with_url = environment(&Surroundings { base_url: Some("http://127.0.0.1:9"), ..surroundings });
        assert_eq!(with_url.len(), lines.len() + 2);
        assert!(with_url.contains(&("NO_PROXY".into(), "127.0.0.1".into())));
        assert!(with_url.contains(&("ANTHROPIC_BASE_URL".into(), "http://127.0.0.1:9".into())));
    }
}
