//! What a configuration would make the harness load: the names of its skills, agents, commands and MCP servers, its
//! session-start hooks, the settings it makes.
//!
//! The init line names what was loaded and not where from, so the check of that line needs the names of both sides:
//! of the host, which no session may load, and of the workspace, which a campaign measures.

use crate::status::{Failure, Outcome, Status};
use crate::transform::init::Names;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The most of a settings file that is read, in bytes.
const SETTINGS_LIMIT: u64 = 1 << 20;

/// The settings files of a workspace that `--setting-sources project,local` loads.
const SETTINGS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// The harness's configuration directory of this account: `$CLAUDE_CONFIG_DIR`, else `~/.claude`.
#[must_use]
pub fn host_directory() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("CLAUDE_CONFIG_DIR").or_else(|| set("HOME").map(|home| home.join(".claude")))
}

/// The names that a configuration directory declares: the host's own, or the `.claude` of a workspace. One that is
/// not there declares none.
///
/// # Errors
/// [`Status::Internal`] for a directory that is there and cannot be read: what it would load is then unknown.
pub fn names(directory: &Path) -> Outcome<Names> {
    Ok(Names {
        skills: entries(&directory.join("skills"))?.into_iter().map(|(name, _)| name).collect(),
        agents: markdown(&directory.join("agents"))?,
        commands: markdown(&directory.join("commands"))?,
    })
}

/// What the files of a workspace make the harness do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workspace {
    /// Its skills, agents and commands.
    pub names: Names,
    /// The MCP servers of its `.mcp.json`, or none where it has no such file.
    pub mcp_servers: Option<BTreeSet<String>>,
    /// Whether it declares a hook that runs before the init line.
    pub session_start_hook: bool,
    /// The settings it makes, by name: top-level keys, and each variable of `env` as `env.NAME`.
    pub settings: BTreeSet<String>,
}

/// Reads them.
///
/// # Errors
/// [`Status::Unconfined`] for a file that is no JSON object: what the harness would make of it is unknown.
pub fn of_workspace(workspace: &Path) -> Outcome<Workspace> {
    let mut found = Workspace { names: names(&workspace.join(".claude"))?, ..Workspace::default() };
    if let Some(file) = object(&workspace.join(".mcp.json"))? {
        let servers = file.get("mcpServers").and_then(Value::as_object);
        found.mcp_servers = Some(servers.map(|s| s.keys().cloned().collect()).unwrap_or_default());
    }
    for name in SETTINGS {
        let Some(file) = object(&workspace.join(name))? else { continue };
        for (key, value) in file.as_object().into_iter().flatten() {
            match (key.as_str(), value.as_object()) {
                ("env", Some(variables)) => found.settings.extend(variables.keys().map(|v| format!("env.{v}"))),
                _ => drop(found.settings.insert(key.clone())),
            }
        }
        let hooks = file.pointer("/hooks/SessionStart").and_then(Value::as_array);
        found.session_start_hook |= hooks.is_some_and(|hooks| !hooks.is_empty());
    }
    Ok(found)
}

/// The names of a directory's entries, and whether each is a directory. Links count by what they are called.
fn entries(directory: &Path) -> Outcome<Vec<(String, bool)>> {
    let failed = |e: io::Error| Failure::io(directory.display(), e);
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut entries = Vec::new();
    for entry in listing {
        let entry = entry.map_err(failed)?;
        let directory = entry.file_type().map_err(failed)?.is_dir();
        entries.push((entry.file_name().to_string_lossy().into_owned(), directory));
    }
    Ok(entries)
}

/// The stems of the Markdown files of a directory. Those of a directory inside it have its name in front, as the
/// harness shows them.
fn markdown(directory: &Path) -> Outcome<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for (name, is_directory) in entries(directory)? {
        if is_directory {
            let below = entries(&directory.join(&name))?;
            let stems = below.iter().filter_map(|(file, _)| file.strip_suffix(".md"));
            names.extend(stems.flat_map(|stem| [stem.to_owned(), format!("{name}:{stem}")]));
        } else if let Some(stem) = name.strip_suffix(".md") {
            names.insert(stem.to_owned());
        }
    }
    Ok(names)
}

/// A JSON object of the workspace, or none where the file is not there.
fn object(path: &Path) -> Outcome<Option<Value>> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::new(Status::Unconfined, format!("{}: {why}", path.display()))
            .remedy("the harness loads this file, so it has to be a JSON object of less than 1 MiB")
    };
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(refused(&e)),
    };
    if !metadata.is_file() {
        return Err(refused(&"not a regular file"));
    }
    let mut text = Vec::new();
    let file = fs::File::open(path).map_err(|e| refused(&e))?;
    file.take(SETTINGS_LIMIT + 1).read_to_end(&mut text).map_err(|e| refused(&e))?;
    if text.len() as u64 > SETTINGS_LIMIT {
        return Err(refused(&"too long"));
    }
    match serde_json::from_slice::<Value>(&text) {
        Ok(value) if value.is_object() => Ok(Some(value)),
        Ok(_) => Err(refused(&"not a JSON object")),
        Err(e) => Err(refused(&e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_declares_what_its_files_name() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(of_workspace(dir.path()).unwrap(), Workspace::default());
        write(".claude/skills/find/SKILL.md", "");
        write(".claude/agents/scout.md", "");
        write(".claude/commands/ops/close.md", "");
        write(".mcp.json", r#"{"mcpServers":{"glossary":{}}}"#);
        write(".claude/settings.json", r#"{"hooks":{"SessionStart":[{}]},"env":{"ANTHROPIC_BASE_URL":"x"}}"#);
        let found = of_workspace(dir.path()).unwrap();
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(found.names.skills, set(&["find"]));
        assert_eq!(found.names.agents, set(&["scout"]));
        assert_eq!(found.names.commands, set(&["close", "ops:close"]));
        assert_eq!(found.mcp_servers, Some(set(&["glossary"])));
        assert_eq!(found.settings, set(&["env.ANTHROPIC_BASE_URL", "hooks"]));
        assert!(found.session_start_hook);
    }

    #[test]
    fn a_file_that_the_harness_would_load_and_nobody_can_read_refuses_before_the_session() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".mcp.json");
        for text in ["", "[]", "{", "{\"a\":"] {
            fs::write(&path, text).unwrap();
            assert_eq!(of_workspace(dir.path()).unwrap_err().status, Status::Unconfined, "{text}");
        }
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(of_workspace(dir.path()).unwrap_err().status, Status::Unconfined);
    }
}
