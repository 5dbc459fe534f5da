//! The workspace's binaries, built once for the process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

use crate::user::User;

/// The binary of a name, where an ordinary user can run it.
///
/// # Errors
/// Where the workspace does not build, or has no such binary.
pub fn bin(user: &User, name: &str) -> Result<PathBuf> {
    static BUILT: OnceLock<Result<BTreeMap<String, PathBuf>, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    let paths = built.as_ref().map_err(|error| anyhow!("{error}"))?;
    let path = paths.get(name).with_context(|| format!("the workspace has no binary {name}"))?;
    user.reachable(path)
}

/// Builds every binary as the tests themselves are built, and asks Cargo where each one is.
fn build() -> Result<BTreeMap<String, PathBuf>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--workspace", "--bins", "--message-format", "json-render-diagnostics"]);
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.current_dir(crate::workspace_root()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        bail!("the binaries do not build: {}", output.status);
    }
    let mut paths = BTreeMap::new();
    for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line)?;
        if let (Some(path), Some(name)) = (message["executable"].as_str(), message["target"]["name"].as_str()) {
            paths.insert(name.to_owned(), PathBuf::from(path));
        }
    }
    Ok(paths)
}
