//! Trees for the tests of this room.

use super::names::{Declared, DeclaredProbe};
use crate::engine::Engine;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

/// A directory with these files.
pub fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    dir
}

/// A copy of a tree of files, links and directories.
pub fn copy(from: &TempDir) -> TempDir {
    let to = tempfile::tempdir().unwrap();
    copy_into(from.path(), to.path());
    to
}

fn copy_into(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            fs::create_dir(&to).unwrap();
            copy_into(&entry.path(), &to);
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), to).unwrap();
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// One probe, `docs/probes/where-is-it.md`, with its shelf as the instrument and one fold.
pub fn declared(id: &str, keys: &[&str]) -> Declared {
    let answer_keys = keys.iter().map(|key| (*key).to_owned()).collect();
    Declared {
        instrument: vec!["docs/probes".to_owned()],
        folds: vec!["tools/owners.txt".to_owned()],
        probes: vec![DeclaredProbe { id: id.to_owned(), path: "docs/probes/where-is-it.md".to_owned(), answer_keys }],
    }
}

/// A repository with these files committed.
pub fn committed(files: &[(&str, &str)]) -> TempDir {
    let dir = tree(files);
    in_git(dir.path(), &["init", "-q"]);
    commit(dir.path());
    dir
}

/// Commits everything.
pub fn commit(repository: &Path) {
    in_git(repository, &["add", "-A"]);
    in_git(repository, &["commit", "-q", "-m", "A state of the corpus"]);
}

/// Runs git in `directory`, under a name and configuration of its own.
pub fn in_git(directory: &Path, arguments: &[&str]) {
    let ended = std::process::Command::new("git")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=corpus", "-c", "user.email=corpus@invalid", "-c", "core.hooksPath=/dev/null", "-C"])
        .arg(directory)
        .args(arguments)
        .output()
        .unwrap();
    assert!(ended.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// An engine of one rule: a file under `docs/` that holds the word MARKED has findings, by two rules and one of them
/// twice. It needs a taxonomy, as the real one does, and fails where a file `fails` is.
pub struct Marked(TempDir);

impl Marked {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let body = r#"#!/bin/sh
test "$1 $2 $4 $5" = "check --root --format json" || exit 2
cd "$3" && test "$(cat .headwater/taxonomy.yml)" = "kinds: {}" && test ! -e fails || exit 3
printf '{"findings": ['
comma=
grep -rl MARKED docs | while read -r path; do
  for rule in b.rule a.rule a.rule; do
    printf '%s{"rule": "%s", "path": "%s", "line": 1, "severity": "error", "message": "m"}' "$comma" "$rule" "$path"
    comma=,
  done
done
printf ']}'
"#;
        // Written by another process: see the engine's own tests.
        let write = r#"printf '%s' "$1" > "$2" && chmod 755 "$2""#;
        let to = dir.path().join("headwater");
        let written = std::process::Command::new("/bin/sh").args(["-c", write, "sh", body]).arg(to).status();
        assert!(written.unwrap().success());
        Self(dir)
    }

    pub fn engine(&self) -> Engine {
        Engine::find(Some(&self.0.path().join("headwater"))).unwrap()
    }
}
