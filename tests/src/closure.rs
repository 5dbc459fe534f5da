//! Closures of the programs of this host, whatever it is: each with what it is linked with, by the names that `ldd`
//! prints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::user::User;

/// What a session needs to work: a shell, what scripts run, git.
const NEEDED: [&str; 25] = [
    "sh", "env", "bash", "cat", "chmod", "cp", "date", "echo", "find", "git", "grep", "head", "id", "ln", "ls",
    "mkdir", "mv", "printf", "readlink", "rm", "sed", "sleep", "sort", "true", "uniq",
];
/// What it is shown where the host has it.
const WANTED: [&str; 4] = ["awk", "rg", "touch", "wc"];

/// The lines of a closure of a shell, core tools, git, ripgrep where it is there, and of what `programs` are linked
/// with.
///
/// # Errors
/// Where the host lacks one of them, or `ldd` does not run.
pub fn closure(user: &User, programs: &[&Path]) -> Result<Vec<PathBuf>> {
    let mut shown: BTreeSet<PathBuf> = BTreeSet::new();
    for name in NEEDED {
        shown.insert(found(name).with_context(|| format!("there is no {name} in PATH"))?);
    }
    shown.extend(WANTED.iter().filter_map(|name| found(name)));
    let mut all = shown.clone();
    for program in shown.iter().map(PathBuf::as_path).chain(programs.iter().copied()) {
        all.extend(linked(user, program)?);
    }
    // The commands of git that are programs of their own.
    let output = user.command("git").arg("--exec-path").output()?;
    all.insert(PathBuf::from(String::from_utf8(output.stdout)?.trim()));
    Ok(all.into_iter().collect())
}

/// What a program is linked with. A script, or a program that is linked statically, with nothing.
///
/// # Errors
/// Where `ldd` does not run.
pub fn linked(user: &User, program: &Path) -> Result<Vec<PathBuf>> {
    let output = user.command("ldd").arg(program).output().context("ldd")?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect())
}

/// The file of a closure: one path a line.
///
/// # Errors
/// Where it cannot be written.
pub fn file(user: &User, name: &str, paths: &[PathBuf]) -> Result<PathBuf> {
    let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
    user.file(name, lines)
}

/// A program of the `PATH`.
#[must_use]
pub fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let directories = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|path| path.is_file())
}
