//! An ordinary user: the one who runs the tests, or, where that is root, the user 65534.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use headwater_contract::digest::Digest;
use nix::unistd::{Gid, Uid, chown, geteuid};

/// The user and group that stand for "somebody else" everywhere.
const NOBODY: u32 = 65534;

/// An ordinary user with a fresh home directory, which goes when this does.
#[derive(Debug)]
pub struct User {
    home: tempfile::TempDir,
}

impl User {
    /// A user with an empty home.
    ///
    /// # Errors
    /// Where the home cannot be made.
    pub fn new() -> Result<Self> {
        let home = tempfile::Builder::new().prefix("headwater-test-").tempdir().context("a home directory")?;
        let user = Self { home };
        user.give(user.home.path())?;
        Ok(user)
    }

    /// Its home directory.
    #[must_use]
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A command run as this user, in its home, with a cleared environment: `PATH`, `HOME`, `LANG` and `TMPDIR`.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", path())
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("TMPDIR", "/tmp")
            .current_dir(self.home());
        if is_root() {
            // Setting the user also drops the supplementary groups.
            command.gid(NOBODY).uid(NOBODY);
        }
        command
    }

    /// A fresh directory in the home.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.home().join(name);
        fs::create_dir(&path).with_context(|| format!("{}", path.display()))?;
        self.give(&path)?;
        Ok(path)
    }

    /// A file in the home.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.home().join(name);
        fs::write(&path, content).with_context(|| format!("{}", path.display()))?;
        self.give(&path)?;
        Ok(path)
    }

    /// Makes this user the owner of a tree. Links are given, not followed.
    ///
    /// # Errors
    /// Where an owner cannot be changed.
    pub fn give(&self, path: &Path) -> Result<()> {
        if !is_root() {
            return Ok(());
        }
        let kind = fs::symlink_metadata(path)?.file_type();
        if kind.is_symlink() {
            std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY))?;
            return Ok(());
        }
        chown(path, Some(Uid::from_raw(NOBODY)), Some(Gid::from_raw(NOBODY)))
            .with_context(|| format!("{}", path.display()))?;
        if kind.is_dir() {
            for entry in fs::read_dir(path)? {
                self.give(&entry?.path())?;
            }
        }
        Ok(())
    }

    /// `file` where this user can run it: where it is, or, below a directory that is closed to others, a copy in the
    /// temporary directory that stays there for the next run.
    ///
    /// # Errors
    /// Where it cannot be copied.
    pub fn reachable(&self, file: &Path) -> Result<PathBuf> {
        if !is_root() || is_open(file) {
            return Ok(file.to_path_buf());
        }
        let Some(name) = file.file_name() else { bail!("{} names no file", file.display()) };
        let digest = Digest::of_reader(File::open(file)?)?.to_string();
        let shared = std::env::temp_dir().join("headwater-tests-root");
        let directory = shared.join(digest.trim_start_matches("sha256:"));
        let copy = directory.join(name);
        if is_ours(&copy) && Digest::of_reader(File::open(&copy)?)?.to_string() == digest {
            return Ok(copy);
        }
        fs::create_dir_all(&directory)?;
        for directory in [&shared, &directory] {
            if !is_ours(directory) {
                bail!("{} belongs to somebody else", directory.display());
            }
            fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
        }
        let temporary = tempfile::NamedTempFile::new_in(&directory)?;
        fs::copy(file, temporary.path())?;
        fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o755))?;
        temporary.persist(&copy)?;
        Ok(copy)
    }
}

/// Whether the tests run as root.
#[must_use]
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Whether everybody can reach and run a file.
fn is_open(file: &Path) -> bool {
    let Ok(path) = file.canonicalize() else { return false };
    path.ancestors().all(|part| part.metadata().is_ok_and(|found| found.mode() & 0o001 != 0))
}

/// Whether root owns a path, and it is no link.
fn is_ours(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.uid() == 0 && !found.file_type().is_symlink())
}

/// The search path, less what only root can enter.
fn path() -> std::ffi::OsString {
    let all = std::env::var_os("PATH").unwrap_or_default();
    let open = std::env::split_paths(&all).filter(|directory| !is_root() || is_open(directory));
    std::env::join_paths(open).unwrap_or(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_runs_as_somebody_who_is_not_root_with_nothing_of_the_environment() {
        let user = User::new().unwrap();
        let script = "id -u; id -G; env | cut -d= -f1 | sort | tr '\\n' ' '; touch \"$HOME/x\"";
        let output = user.command("sh").args(["-c", script]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_ne!(lines[0], "0");
        assert!(!lines[1].split(' ').any(|group| group == "0"), "{text}");
        assert_eq!(lines[2].trim_end(), "HOME LANG PATH PWD TMPDIR");
        assert!(user.home().join("x").is_file());
    }

    #[test]
    fn a_program_in_a_closed_directory_is_made_reachable() {
        let user = User::new().unwrap();
        let closed = tempfile::tempdir().unwrap();
        let program = closed.path().join("program");
        fs::copy("/bin/true", &program).unwrap();
        let reachable = user.reachable(&program).unwrap();
        assert!(user.command(&reachable).status().unwrap().success());
        assert_eq!(user.reachable(&program).unwrap(), reachable);
    }
}
