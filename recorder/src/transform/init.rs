//! The check of what the session loaded: the init line is the check.
//!
//! It reads what the harness states about itself after it has started. What the line cannot show (a `CLAUDE.md` or a
//! memory of the host) is kept out by the confinement and not by this check.

use super::event::normal;
use super::log::{Init, Plugin, Server, SessionLog};
use crate::status::{Failure, Status};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// The permission mode of every session.
const PERMISSION_MODE: &str = "dontAsk";
/// The path of a plugin that comes with the harness.
const BUILTIN: &str = "builtin";
/// A plugin that the harness loads by itself under managed security settings.
const MANAGED_PLUGIN: &str = "cc-plugin-sec-default";
/// The output style of a session that sets none.
const OUTPUT_STYLE: &str = "default";
/// The sources of an MCP server that the workspace or the command line declared.
const MCP_SOURCES: [&str; 2] = ["project", "dynamic"];

/// What a session may have loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The configuration directory, as the session sees it.
    pub config_dir: String,
    /// The workspace, as the session sees it.
    pub workspace: String,
    /// The MCP servers that the `.mcp.json` of the workspace declares.
    pub mcp_servers: BTreeSet<String>,
    /// What the host's own configuration would load.
    pub host: Names,
    /// What the workspace declares.
    pub declared: Names,
    /// Whether the workspace declares a `SessionStart` hook.
    pub session_start_hook: bool,
}

/// Names of what a configuration loads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Skill directories.
    pub skills: BTreeSet<String>,
    /// Agents.
    pub agents: BTreeSet<String>,
    /// Slash commands.
    pub commands: BTreeSet<String>,
}

/// What the session loaded, where that is what it may.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The version of the harness.
    pub version: Option<String>,
    /// The model, aliases resolved.
    pub model: Option<String>,
    /// How many tools it lists.
    pub tools: usize,
    /// The skills of the workspace.
    pub skills: BTreeSet<String>,
    /// The agents of the workspace.
    pub agents: BTreeSet<String>,
    /// The slash commands of the workspace.
    pub commands: BTreeSet<String>,
    /// The MCP servers.
    pub mcp_servers: BTreeSet<String>,
    /// Where the credential comes from.
    pub api_key_source: Option<String>,
}

/// A kind of named thing that a configuration loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A skill.
    Skill,
    /// An agent.
    Agent,
    /// A slash command.
    Command,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Skill => "skill",
            Self::Agent => "agent",
            Self::Command => "slash command",
        })
    }
}

/// Something a session loaded that it may not have, or something it does not say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Leak {
    /// No init line.
    #[error("the log has no init line, so it does not state what the session loaded")]
    NoInit,
    /// Init lines that disagree.
    #[error("the log has {0} init lines that state different things")]
    Disagree(u64),
    /// A member that the check reads is missing.
    #[error("the init line does not state `{0}`")]
    Unstated(&'static str),
    /// The permission mode.
    #[error("the session ran in the permission mode `{0}`, not `{PERMISSION_MODE}`")]
    PermissionMode(String),
    /// A plugin of a path.
    #[error("the plugin `{name}` was loaded from `{path}`, not built in")]
    Plugin {
        /// Its name.
        name: String,
        /// Its path.
        path: String,
    },
    /// The plugin of managed security settings.
    #[error("the plugin `{MANAGED_PLUGIN}` was loaded, which managed settings of the host bring")]
    ManagedPlugin,
    /// An MCP server that is not declared.
    #[error("the MCP server `{0}` is not declared by the workspace's .mcp.json")]
    McpServer(String),
    /// An MCP server from elsewhere.
    #[error("the MCP server `{name}` comes from the source `{origin}`, not from the workspace")]
    McpSource {
        /// Its name.
        name: String,
        /// Where it comes from.
        origin: String,
    },
    /// Something that the host has too.
    #[error("the {kind} `{name}` has the name of one of the host's")]
    OfTheHost {
        /// What it is.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// Something of a plugin.
    #[error("the {kind} `{name}` carries the namespace of a plugin")]
    Namespaced {
        /// What it is.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// The output style.
    #[error("the session ran in the output style `{0}`, not `{OUTPUT_STYLE}`")]
    OutputStyle(String),
    /// Directories beside the workspace.
    #[error("the session had the additional directory `{0}`")]
    AdditionalDirectory(String),
    /// A memory that is not the session's own.
    #[error("the memory path `{0}` is outside the configuration directory")]
    MemoryPath(String),
    /// Another place.
    #[error("the session ran in `{0}`, not in the workspace")]
    Directory(String),
    /// A hook that the workspace does not declare.
    #[error("{0} hook lines came before the init line and the workspace declares no SessionStart hook")]
    Hook(u64),
}

impl Leak {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NoInit | Self::Unstated(_) | Self::Disagree(_) => {
                "use the pinned version of the harness; another one may state less about itself"
            }
            Self::PermissionMode(_) | Self::AdditionalDirectory(_) | Self::Directory(_) => {
                "look for what sets it in the workspace's .claude/settings.json, or for a wrapper around the harness"
            }
            Self::OfTheHost { .. } => {
                "rename one of the two, or record as a user that has none of that name: the init line cannot tell them \
                 apart"
            }
            Self::Plugin { .. } | Self::Namespaced { .. } => {
                "look for the plugin in the workspace's .claude/settings.json and for a wrapper around the harness"
            }
            Self::McpServer(_) => "declare it in the workspace's .mcp.json, or take it out of where it comes from",
            Self::ManagedPlugin | Self::McpSource { .. } => {
                "look for managed settings or a user configuration that the view of the session shows"
            }
            Self::OutputStyle(_) => "take the output style out of the workspace's .claude/settings.json",
            Self::MemoryPath(_) => "start the session with an empty configuration directory and auto memory off",
            Self::Hook(_) => "declare the hook in the workspace's .claude/settings.json, or take it out of the view",
        }
    }
}

/// The failure that `leaks` are, after a session that has spent: status 12, the first leak's remedy.
#[must_use]
pub fn failure(leaks: &[Leak]) -> Failure {
    let all: Vec<_> = leaks.iter().map(ToString::to_string).collect();
    let failure = Failure::new(
        Status::Unconfined,
        format!("the session loaded what its workspace does not give it: {}", all.join("; ")),
    );
    match leaks.first() {
        Some(leak) => failure.remedy(leak.remedy()),
        None => failure,
    }
    .after_spending()
}

/// Checks every init line of `log` against what the session may have loaded.
///
/// # Errors
/// Every leak, in the order of the lines and of the checks.
pub fn check(log: &SessionLog, expected: &Expected) -> Result<Loaded, Vec<Leak>> {
    let Some(first) = log.inits.first.first() else {
        return Err(vec![Leak::NoInit]);
    };
    let mut leaks = Vec::new();
    if log.inits.count > 1 {
        leaks.push(Leak::Disagree(log.inits.count));
    }
    if log.hook_lines_before_init > 0 && !expected.session_start_hook {
        leaks.push(Leak::Hook(log.hook_lines_before_init));
    }
    for init in &log.inits.first {
        for leak in leaks_of(init, expected) {
            if !leaks.contains(&leak) {
                leaks.push(leak);
            }
        }
    }
    if leaks.is_empty() { Ok(loaded(log, first, expected)) } else { Err(leaks) }
}

fn leaks_of(init: &Init, expected: &Expected) -> Vec<Leak> {
    let mut leaks = Vec::new();
    match init.permission_mode.as_deref() {
        None => leaks.push(Leak::Unstated("permissionMode")),
        Some(PERMISSION_MODE) => {}
        Some(mode) => leaks.push(Leak::PermissionMode(mode.into())),
    }
    match &init.plugins {
        None => leaks.push(Leak::Unstated("plugins")),
        Some(plugins) => leaks.extend(plugins.iter().filter_map(plugin)),
    }
    match &init.mcp_servers {
        None => leaks.push(Leak::Unstated("mcp_servers")),
        Some(servers) => leaks.extend(servers.iter().filter_map(|server| mcp_server(server, expected))),
    }
    let (host, declared) = (&expected.host, &expected.declared);
    let nothing = BTreeSet::new();
    // No skill of a workspace carries a namespace. Its agents and commands may: a directory makes one.
    for (member, kind, names, of_host, may) in [
        ("skills", Kind::Skill, &init.skills, &host.skills, &nothing),
        ("agents", Kind::Agent, &init.agents, &host.agents, &declared.agents),
        ("slash_commands", Kind::Command, &init.commands, &host.commands, &declared.commands),
    ] {
        let Some(names) = names else {
            leaks.push(Leak::Unstated(member));
            continue;
        };
        for name in names {
            if of_host.contains(name) {
                leaks.push(Leak::OfTheHost { kind, name: name.clone() });
            } else if name.contains(':') && !may.contains(name) {
                leaks.push(Leak::Namespaced { kind, name: name.clone() });
            }
        }
    }
    match init.output_style.as_deref() {
        None => leaks.push(Leak::Unstated("output_style")),
        Some(OUTPUT_STYLE) => {}
        Some(style) => leaks.push(Leak::OutputStyle(style.into())),
    }
    leaks.extend(init.additional_directories.iter().cloned().map(Leak::AdditionalDirectory));
    let outside = |path: &&String| !inside(&expected.config_dir, path);
    leaks.extend(init.memory_paths.iter().filter(outside).cloned().map(Leak::MemoryPath));
    if init.cwd.is_none() {
        leaks.push(Leak::Unstated("cwd"));
    }
    let elsewhere = |path: &&String| normal(path) != normal(&expected.workspace);
    leaks.extend(init.cwd.iter().chain(&init.original_cwd).filter(elsewhere).cloned().map(Leak::Directory));
    leaks
}

fn plugin(plugin: &Plugin) -> Option<Leak> {
    match plugin.path.as_deref() {
        _ if plugin.name == MANAGED_PLUGIN => Some(Leak::ManagedPlugin),
        Some(BUILTIN) => None,
        path => Some(Leak::Plugin { name: plugin.name.clone(), path: path.unwrap_or("an unstated path").into() }),
    }
}

fn mcp_server(server: &Server, expected: &Expected) -> Option<Leak> {
    let name = server.name.clone();
    match &server.source {
        _ if !expected.mcp_servers.contains(&name) => Some(Leak::McpServer(name)),
        Some(origin) if !MCP_SOURCES.contains(&origin.as_str()) => {
            Some(Leak::McpSource { name, origin: origin.clone() })
        }
        _ => None,
    }
}

/// Whether `path` is `directory` or below it, by its text alone. A path that is not absolute is not.
fn inside(directory: &str, path: &str) -> bool {
    path.starts_with('/') && Path::new(&normal(path)).starts_with(normal(directory))
}

fn loaded(log: &SessionLog, init: &Init, expected: &Expected) -> Loaded {
    let of = |names: &Option<Vec<String>>, declared: &BTreeSet<String>| -> BTreeSet<String> {
        names.iter().flatten().filter(|name| declared.contains(*name)).cloned().collect()
    };
    Loaded {
        version: init.version.clone(),
        model: init.model.clone(),
        tools: log.tools,
        skills: of(&init.skills, &expected.declared.skills),
        agents: of(&init.agents, &expected.declared.agents),
        commands: of(&init.commands, &expected.declared.commands),
        mcp_servers: init.mcp_servers.iter().flatten().map(|server| server.name.clone()).collect(),
        api_key_source: init.api_key_source.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream;
    use super::*;
    use serde_json::{Value, json};

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn expected() -> Expected {
        Expected {
            config_dir: "/cfg".into(),
            workspace: "/ws".into(),
            mcp_servers: names(&["glossary"]),
            host: Names { skills: names(&["usk"]), agents: names(&["uag"]), commands: names(&["ucmd"]) },
            declared: Names {
                skills: names(&["wsk"]),
                agents: names(&["wag"]),
                commands: names(&["wcmd", "dir:wcmd"]),
            },
            session_start_hook: false,
        }
    }

    fn clean() -> Value {
        json!({
            "type": "system", "subtype": "init", "cwd": "/ws", "original_cwd": "/ws/",
            "tools": ["Read", "Bash"], "model": "claude-haiku-4-5", "permissionMode": "dontAsk",
            "mcp_servers": [{"name": "glossary", "status": "connected", "source": "project"}],
            "plugins": [{"name": "cc-plugin-agents-md", "path": "builtin"}],
            "skills": ["verify", "wsk"], "agents": ["Explore", "wag"], "slash_commands": ["verify", "dir:wcmd"],
            "output_style": "default", "additional_directories": [], "memory_paths": {"auto": "/cfg/projects/x/"},
            "claude_code_version": "2.1.332", "apiKeySource": "none",
        })
    }

    fn log(lines: &[Value]) -> SessionLog {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        stream::read(text.as_bytes()).unwrap()
    }

    fn leaks(lines: &[Value]) -> Vec<Leak> {
        check(&log(lines), &expected()).err().unwrap_or_default()
    }

    #[test]
    fn a_session_that_loaded_what_its_workspace_gives_it_is_stated() {
        let loaded = check(&log(&[clean()]), &expected()).unwrap();
        let stated = Loaded {
            version: Some("2.1.332".into()),
            model: Some("claude-haiku-4-5".into()),
            tools: 2,
            skills: names(&["wsk"]),
            agents: names(&["wag"]),
            commands: names(&["dir:wcmd"]),
            mcp_servers: names(&["glossary"]),
            api_key_source: Some("none".into()),
        };
        assert_eq!(loaded, stated);
    }

    #[test]
    fn a_log_with_no_init_line_does_not_state_what_loaded() {
        assert_eq!(leaks(&[]), [Leak::NoInit]);
        assert_eq!(leaks(&[json!({"type": "system", "subtype": "other"})]), [Leak::NoInit]);
    }

    #[test]
    fn each_thing_that_init_shows_and_the_workspace_does_not_give_is_a_leak() {
        let of_the_host = |kind, name: &str| Leak::OfTheHost { kind, name: name.into() };
        let namespaced = |kind, name: &str| Leak::Namespaced { kind, name: name.into() };
        for (member, value, leak) in [
            ("permissionMode", json!("bypassPermissions"), Leak::PermissionMode("bypassPermissions".into())),
            ("permissionMode", json!("acceptEdits"), Leak::PermissionMode("acceptEdits".into())),
            (
                "plugins",
                json!([{"name": "p", "path": "/home/u/pl"}]),
                Leak::Plugin { name: "p".into(), path: "/home/u/pl".into() },
            ),
            ("plugins", json!([{"name": "p"}]), Leak::Plugin { name: "p".into(), path: "an unstated path".into() }),
            ("plugins", json!([{"name": "cc-plugin-sec-default", "path": "builtin"}]), Leak::ManagedPlugin),
            ("mcp_servers", json!([{"name": "umcp", "source": "project"}]), Leak::McpServer("umcp".into())),
            (
                "mcp_servers",
                json!([{"name": "glossary", "source": "enterprise"}]),
                Leak::McpSource { name: "glossary".into(), origin: "enterprise".into() },
            ),
            (
                "mcp_servers",
                json!([{"name": "glossary", "source": "user"}]),
                Leak::McpSource { name: "glossary".into(), origin: "user".into() },
            ),
            ("skills", json!(["usk"]), of_the_host(Kind::Skill, "usk")),
            ("skills", json!(["plugin:skill"]), namespaced(Kind::Skill, "plugin:skill")),
            ("agents", json!(["uag"]), of_the_host(Kind::Agent, "uag")),
            ("agents", json!(["plugin:agent"]), namespaced(Kind::Agent, "plugin:agent")),
            ("slash_commands", json!(["ucmd"]), of_the_host(Kind::Command, "ucmd")),
            ("slash_commands", json!(["plugin:cmd"]), namespaced(Kind::Command, "plugin:cmd")),
            ("output_style", json!("Explanatory"), Leak::OutputStyle("Explanatory".into())),
            ("additional_directories", json!(["/srv"]), Leak::AdditionalDirectory("/srv".into())),
            ("memory_paths", json!({"auto": "/home/u/m/"}), Leak::MemoryPath("/home/u/m/".into())),
            ("memory_paths", json!({"a": ["/cfg/../home"]}), Leak::MemoryPath("/cfg/../home".into())),
            ("memory_paths", json!({"auto": "/cfgx"}), Leak::MemoryPath("/cfgx".into())),
            ("memory_paths", json!({"auto": "cfg/m"}), Leak::MemoryPath("cfg/m".into())),
            ("cwd", json!("/home/u"), Leak::Directory("/home/u".into())),
            ("original_cwd", json!("/ws/docs"), Leak::Directory("/ws/docs".into())),
        ] {
            let mut init = clean();
            init[member] = value;
            assert_eq!(leaks(&[init]), [leak], "{member}");
        }
    }

    #[test]
    fn a_name_that_the_host_and_the_workspace_both_have_is_refused() {
        let mut both = expected();
        both.declared.skills.insert("usk".into());
        let mut init = clean();
        init["skills"] = json!(["usk"]);
        assert!(check(&log(&[init]), &both).is_err());
    }

    #[test]
    fn a_member_that_the_check_reads_must_be_stated() {
        for member in
            ["permissionMode", "plugins", "mcp_servers", "skills", "agents", "slash_commands", "output_style", "cwd"]
        {
            let mut init = clean();
            init.as_object_mut().unwrap().remove(member);
            assert_eq!(leaks(&[init]), [Leak::Unstated(member)]);
        }
        for member in ["memory_paths", "additional_directories", "original_cwd", "tools"] {
            let mut init = clean();
            init.as_object_mut().unwrap().remove(member);
            assert_eq!(leaks(&[init]), [], "{member}");
        }
    }

    #[test]
    fn two_init_lines_that_agree_are_one_statement_and_others_disagree() {
        let mut later = clean();
        later["tools"] = json!(["Read", "Bash", "mcp__glossary__lookup"]);
        later["mcp_servers"][0]["status"] = json!("pending");
        assert_eq!(leaks(&[clean(), later.clone()]), []);
        later["skills"] = json!(["usk"]);
        let found = leaks(&[clean(), clean(), later]);
        assert_eq!(found, [Leak::Disagree(2), Leak::OfTheHost { kind: Kind::Skill, name: "usk".into() }]);
    }

    #[test]
    fn a_hook_line_before_init_needs_a_session_start_hook_of_the_workspace() {
        let hook = json!({"type": "system", "subtype": "hook_started", "hook_event": "SessionStart"});
        assert_eq!(leaks(&[hook.clone(), clean()]), [Leak::Hook(1)]);
        assert_eq!(leaks(&[clean(), hook.clone()]), []);
        let declared = Expected { session_start_hook: true, ..expected() };
        assert!(check(&log(&[hook, clean()]), &declared).is_ok());
    }

    #[test]
    fn a_refusal_names_every_leak_and_gives_a_remedy_under_its_status() {
        let failure = failure(&[Leak::PermissionMode("plan".into()), Leak::ManagedPlugin]);
        assert_eq!(failure.status, Status::Unconfined);
        assert!(failure.spent && failure.remedy.is_some());
        assert!(failure.message.contains("`plan`") && failure.message.contains(MANAGED_PLUGIN), "{failure}");
    }
}
