//! The skills a workspace declares.

use std::path::{Path, PathBuf};

/// Where a workspace keeps its skills.
#[must_use]
pub fn directory(workspace: &Path) -> PathBuf {
    workspace.join(".claude/skills")
}

/// Their names, in byte order.
#[must_use]
pub fn names(workspace: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory(workspace)) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("SKILL.md").is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The text of a skill below its front matter.
#[must_use]
pub fn body(workspace: &Path, name: &str) -> Option<String> {
    if !names(workspace).iter().any(|known| known == name) {
        return None;
    }
    let text = std::fs::read_to_string(directory(workspace).join(name).join("SKILL.md")).ok()?;
    let rest = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    Some(rest.map_or(text.as_str(), |(_, body)| body).to_owned())
}
