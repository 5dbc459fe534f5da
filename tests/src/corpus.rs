//! The sample corpus as a repository of its own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::user::User;

/// Copies the sample corpus into a directory of the user's home and commits it there.
///
/// # Errors
/// Where it cannot be copied or committed.
pub fn corpus(user: &User, name: &str) -> Result<PathBuf> {
    repository(user, &crate::workspace_root().join("tests/corpus"), name)
}

/// Copies any tree into a directory of the user's home and commits it there, with an invented author and date, so that
/// the commit is the same wherever it is made.
///
/// # Errors
/// Where it cannot be copied or committed.
pub fn repository(user: &User, tree: &Path, name: &str) -> Result<PathBuf> {
    let root = user.directory(name)?;
    copy(tree, &root).with_context(|| format!("copying {}", tree.display()))?;
    user.give(&root)?;
    git(user, &root, &["init", "-q", "-b", "main"])?;
    commit(user, &root)?;
    Ok(root)
}

/// Commits everything in a repository.
///
/// # Errors
/// Where git fails.
pub fn commit(user: &User, root: &Path) -> Result<()> {
    git(user, root, &["add", "-A", "-f"])?;
    git(user, root, &["commit", "-q", "--allow-empty", "-m", "State of the corpus"])
}

/// Runs git in a repository, without the configuration of the machine or of a person.
///
/// # Errors
/// Where git fails.
pub fn git(user: &User, root: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = user.command("git");
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Test")
            .env(format!("GIT_{role}_EMAIL"), "test@localhost")
            .env(format!("GIT_{role}_DATE"), "2026-01-01T00:00:00Z");
    }
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.args(arguments).current_dir(root).output().context("git")?;
    if !output.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Copies a tree, links as links.
///
/// # Errors
/// Where something in it cannot be copied.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&to)?;
            copy(&from, &to)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&from)?, &to)?;
        } else {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_becomes_the_same_commit_wherever_it_is_copied() {
        let user = User::new().unwrap();
        let heads = ["one", "two"].map(|name| {
            let root = repository(&user, &crate::workspace_root().join("tests/src"), name).unwrap();
            let head = user.command("git").args(["rev-parse", "HEAD"]).current_dir(&root).output().unwrap();
            assert!(head.status.success());
            head.stdout
        });
        assert_eq!(heads[0], heads[1]);
    }
}
