//! The harness's own command line, as far as a session depends on it.

use std::ffi::OsString;

/// Options that take one value.
const ONE_VALUE: &[&str] = &[
    "--agent",
    "--agents",
    "--append-system-prompt",
    "--autocompact",
    "--debug-file",
    "--effort",
    "--environment",
    "--fallback-model",
    "--input-format",
    "--json-schema",
    "--max-budget-usd",
    "--max-turns",
    "--model",
    "--name",
    "--output-format",
    "--permission-mode",
    "--permission-prompts",
    "--plugin-dir",
    "--plugin-url",
    "--session-id",
    "--setting-sources",
    "--settings",
    "--system-prompt",
    "--system-prompt-snapshot",
];

/// Options that take every value up to the next option.
const MANY_VALUES: &[&str] = &[
    "--add-dir",
    "--allowed-tools",
    "--allowedTools",
    "--betas",
    "--disallowed-tools",
    "--disallowedTools",
    "--file",
    "--mcp-config",
    "--tools",
];

/// Options that take no value.
const NO_VALUE: &[&str] = &[
    "--allow-dangerously-skip-permissions",
    "--bare",
    "--brief",
    "--dangerously-skip-permissions",
    "--disable-slash-commands",
    "--exclude-dynamic-system-prompt-sections",
    "--forward-subagent-text",
    "--include-hook-events",
    "--include-partial-messages",
    "--no-chrome",
    "--no-session-persistence",
    "--print",
    "--replay-user-messages",
    "--restricted",
    "--safe-mode",
    "--strict-mcp-config",
    "--verbose",
];

const PERMISSION_MODES: &[&str] = &["acceptEdits", "auto", "bypassPermissions", "manual", "dontAsk", "plan"];

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags {
    /// The requested model, where one is named.
    pub model: Option<String>,
    /// The turn cap; 0 is none.
    pub max_turns: u64,
    /// The permission mode.
    pub permission_mode: String,
    /// The rules of `--allowedTools`.
    pub allowed: Vec<String>,
    /// The rules of `--disallowedTools`.
    pub disallowed: Vec<String>,
    /// The tools of `--tools`, where it is given.
    pub tools: Option<Vec<String>>,
    /// Files or JSON texts that declare MCP servers.
    pub mcp_config: Vec<String>,
    /// Whether the workspace's own `.mcp.json` is left out.
    pub strict_mcp: bool,
    /// Where settings and skills are taken from: `user`, `project`, `local`.
    pub setting_sources: Vec<String>,
    /// Whether every block of every sub-agent is shown.
    pub forward_subagents: bool,
    /// Whether every hook is told, and not only those of the start.
    pub include_hooks: bool,
    /// Whether the prompt comes as a JSON message.
    pub json_input: bool,
    /// Whether slash commands and skills are off.
    pub no_commands: bool,
}

impl Flags {
    /// Whether what the workspace itself declares is loaded.
    #[must_use]
    pub fn loads_project(&self) -> bool {
        self.setting_sources.iter().any(|source| source == "project")
    }

    /// Reads the arguments after the script.
    ///
    /// # Errors
    /// The message the harness itself prints before it exits with 1.
    pub fn parse(args: &[OsString]) -> Result<Self, String> {
        let given = Given::read(args)?;
        if !given.has("--print") {
            return Err("this harness has no terminal interface; pass -p".into());
        }
        match given.last("--output-format") {
            Some("stream-json") if given.has("--verbose") => {}
            Some("stream-json") => {
                return Err("Error: When using --print, --output-format=stream-json requires --verbose".into());
            }
            _ => return Err("this harness writes --output-format stream-json only".into()),
        }
        let json_input = match given.last("--input-format") {
            None | Some("text") => false,
            Some("stream-json") => true,
            Some(other) => return Err(format!("error: option '--input-format' argument '{other}' is invalid")),
        };
        Ok(Self {
            model: given.last("--model").map(str::to_owned),
            max_turns: match given.last("--max-turns") {
                None => 0,
                Some(text) => text.parse().map_err(|_| format!("error: --max-turns '{text}' is no number"))?,
            },
            permission_mode: permission_mode(&given)?,
            allowed: given.rules(&["--allowedTools", "--allowed-tools"]),
            disallowed: given.rules(&["--disallowedTools", "--disallowed-tools"]),
            tools: given.has("--tools").then(|| given.rules(&["--tools"])),
            mcp_config: given.values(&["--mcp-config"]).map(str::to_owned).collect(),
            strict_mcp: given.has("--strict-mcp-config"),
            setting_sources: match given.last("--setting-sources") {
                None => ["user", "project", "local"].map(str::to_owned).to_vec(),
                Some(text) => text.split(',').filter(|s| !s.is_empty()).map(str::to_owned).collect(),
            },
            forward_subagents: given.has("--forward-subagent-text"),
            include_hooks: given.has("--include-hook-events"),
            json_input,
            no_commands: given.has("--disable-slash-commands"),
        })
    }
}

fn permission_mode(given: &Given) -> Result<String, String> {
    if given.has("--dangerously-skip-permissions") {
        return Ok("bypassPermissions".into());
    }
    match given.last("--permission-mode") {
        None | Some("manual") => Ok("default".into()),
        Some(mode) if PERMISSION_MODES.contains(&mode) => Ok(mode.to_owned()),
        Some(other) => Err(format!(
            "error: option '--permission-mode <mode>' argument '{other}' is invalid. Allowed choices are {}.",
            PERMISSION_MODES.join(", ")
        )),
    }
}

/// The options in the order given, each with its values.
struct Given(Vec<(String, Vec<String>)>);

impl Given {
    fn read(args: &[OsString]) -> Result<Self, String> {
        let mut given: Vec<(String, Vec<String>)> = Vec::new();
        // How many values the last option may still take.
        let mut takes = 0;
        for arg in args {
            let Some(text) = arg.to_str() else { return Err(format!("error: {} is not UTF-8", arg.display())) };
            if takes == 1 || (takes > 1 && !text.starts_with('-')) {
                takes = if takes == 1 { 0 } else { takes };
                if let Some((_, values)) = given.last_mut() {
                    values.push(text.to_owned());
                }
                continue;
            }
            if !text.starts_with('-') {
                return Err(format!("`{text}`: this harness takes its prompt from standard input only"));
            }
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text, None),
            };
            let name = if name == "-p" { "--print" } else { name };
            takes = match (ONE_VALUE.contains(&name), MANY_VALUES.contains(&name), NO_VALUE.contains(&name)) {
                (true, ..) => 1,
                (_, true, _) => usize::MAX,
                (.., true) => 0,
                _ => return Err(format!("error: unknown option '{name}'")),
            };
            given.push((name.to_owned(), value.map(str::to_owned).into_iter().collect()));
            if value.is_some() {
                takes = 0;
            }
        }
        match given.last() {
            Some((name, _)) if takes == 1 => Err(format!("error: option '{name}' argument missing")),
            _ => Ok(Self(given)),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| given == name)
    }

    fn values<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(|(given, _)| names.contains(&given.as_str())).flat_map(|(_, v)| v).map(String::as_str)
    }

    fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(given, _)| given == name)?.1.last().map(String::as_str)
    }

    /// Tool rules: separated by commas or blanks, but not within parentheses.
    fn rules(&self, names: &[&str]) -> Vec<String> {
        let mut rules = Vec::new();
        for text in self.values(names) {
            let mut depth = 0_usize;
            let parts = text.split(|c: char| {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && (c == ',' || c.is_whitespace())
            });
            rules.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Flags, String> {
        let all = ["-p", "--output-format", "stream-json", "--verbose"].iter().chain(args);
        Flags::parse(&all.map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_options_a_recorder_passes_are_understood() {
        let flags = parse(&[
            "--model",
            "m",
            "--max-turns=7",
            "--permission-mode",
            "dontAsk",
            "--allowedTools",
            "Read,Bash(git *:x, y)",
            "Edit Write",
            "--disallowedTools",
            "WebSearch,WebFetch",
            "--mcp-config",
            ".mcp.json",
            "--strict-mcp-config",
            "--setting-sources",
            "project,local",
            "--forward-subagent-text",
            "--include-hook-events",
            "--no-session-persistence",
            "--input-format",
            "stream-json",
        ])
        .unwrap();
        assert_eq!(flags.model.as_deref(), Some("m"));
        assert_eq!(flags.max_turns, 7);
        assert_eq!(flags.permission_mode, "dontAsk");
        assert_eq!(flags.allowed, ["Read", "Bash(git *:x, y)", "Edit", "Write"]);
        assert_eq!(flags.disallowed, ["WebSearch", "WebFetch"]);
        assert_eq!(flags.mcp_config, [".mcp.json"]);
        assert!(flags.strict_mcp && flags.forward_subagents && flags.json_input);
        assert_eq!(flags.setting_sources, ["project", "local"]);
    }

    #[test]
    fn what_the_harness_refuses_is_refused() {
        assert!(parse(&["--nope", "x"]).unwrap_err().contains("unknown option '--nope'"));
        assert!(parse(&["--permission-mode", "yolo"]).unwrap_err().contains("'yolo' is invalid"));
        assert!(parse(&["--max-turns", "many"]).unwrap_err().contains("no number"));
        assert!(parse(&["--model"]).unwrap_err().contains("argument missing"));
        assert!(parse(&["do it"]).unwrap_err().contains("standard input"));
        let quiet = ["-p", "--output-format", "stream-json"].map(OsString::from);
        assert!(Flags::parse(&quiet).unwrap_err().contains("requires --verbose"));
        assert!(Flags::parse(&[]).is_err());
    }

    #[test]
    fn an_option_of_many_values_swallows_a_prompt() {
        assert_eq!(parse(&["--allowedTools", "Read", "the prompt"]).unwrap().allowed, ["Read", "the", "prompt"]);
    }
}
