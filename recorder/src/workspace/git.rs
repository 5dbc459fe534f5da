//! The committed tree of a corpus, through git's own binary: as a list, and as an archive.
//!
//! Git runs with an empty environment and without the configuration of the user or the system, so that what is built
//! depends on the repository alone; it asks nothing, fetches nothing and runs no hook.

use super::tree::{covers, shown};
use crate::confine::memory::sealed;
use crate::engine::child::{self, Ended, Limits};
use crate::status::{Failure, Outcome, Status};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a list may take.
const LIST: Limits = Limits { time: Duration::from_secs(120), output: 1 << 30 };
/// What an archive may take, in bytes of tar.
const ARCHIVE: Limits = Limits { time: Duration::from_secs(600), output: 32 << 30 };
/// How many changes a message lists.
const LISTED: usize = 10;
/// The mode of a submodule in a tree.
const SUBMODULE: &str = "160000";

/// The commit that the head of a corpus names, its working tree being the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The corpus, as an absolute path.
    pub corpus: PathBuf,
    /// Its name in full.
    pub id: String,
}

/// What a commit holds below the corpus, as paths relative to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listing {
    /// Files and links.
    pub files: Vec<Vec<u8>>,
    /// Submodules, which an archive leaves empty.
    pub submodules: Vec<Vec<u8>>,
}

impl Commit {
    /// The commit of the corpus at `corpus`. Below `shelf`, where recordings land, the working tree may differ from it: no
    /// session sees them, and one recording should not have to be committed before the next.
    ///
    /// # Errors
    /// [`Status::Usage`] where the corpus is in no repository, has no commit, or differs from it: what is planned would
    /// not be what a session gets. [`Status::Missing`] where git is.
    pub fn of(corpus: &Path, shelf: Option<&str>) -> Outcome<Self> {
        let remedy = "commit the corpus, or name a workspace that is built already with --workspace";
        let usage = |message: String| Failure::new(Status::Usage, message).remedy(remedy);
        let corpus = std::path::absolute(corpus).map_err(|e| Failure::io(corpus.display(), e))?;
        let named = corpus.display().to_string();
        let found = git(&corpus, &["rev-parse", "--is-inside-work-tree", "--show-prefix", "HEAD^{commit}"])?;
        let mut lines = found.stdout.split(|byte| *byte == b'\n');
        if lines.next() != Some(b"true") {
            let cause = if found.stdout.is_empty() { found.cause() } else { "it is no working tree".to_owned() };
            let message = format!("no workspace can be built of {named}, which is in no git repository of this user");
            return Err(usage(format!("{message}: {cause}")));
        }
        if !found.status.success() {
            return Err(usage(format!("no workspace can be built of {named}: nothing is committed")));
        }
        let prefix = lines.next().unwrap_or_default();
        let id = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
        let commit = Self { corpus, id };
        let shelf = shelf.map(|shelf| [prefix, shelf.as_bytes()].concat());
        let changes = commit.changes(shelf.as_deref())?;
        if !changes.is_empty() {
            let head: String = changes.iter().take(LISTED).map(|change| format!("\n  {change}")).collect();
            let more = changes.len().saturating_sub(LISTED);
            let more = if more == 0 { String::new() } else { format!("\n  and {more} more") };
            return Err(usage(format!(
                "{named} differs from its commit, so the plan and the workspace would be two trees:{head}{more}"
            )));
        }
        Ok(commit)
    }

    /// What differs from the commit below the corpus and not below `shelf`, a path of the repository.
    fn changes(&self, shelf: Option<&[u8]>) -> Outcome<Vec<String>> {
        let mut asked = vec!["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=none"];
        // A new directory is listed by its files, so that those of the shelf can be told from others.
        asked.extend(["--untracked-files=all", "--", "."]);
        let printed = succeeded("git status", git(&self.corpus, &asked)?)?;
        let on_shelf = |change: &[u8]| shelf.is_some_and(|shelf| covers(shelf, change.get(3..).unwrap_or_default()));
        Ok(fields(&printed).filter(|change| !on_shelf(change)).map(shown).collect())
    }

    /// What the commit holds below the corpus.
    ///
    /// # Errors
    /// [`Status::Internal`].
    pub fn list(&self) -> Outcome<Listing> {
        let printed = succeeded("git ls-tree", git(&self.corpus, &["ls-tree", "-r", "-z", &self.id])?)?;
        let mut listing = Listing::default();
        for entry in fields(&printed) {
            let unclear = || Failure::new(Status::Internal, format!("git ls-tree: `{}`", shown(entry)));
            let tab = entry.iter().position(|byte| *byte == b'\t').ok_or_else(unclear)?;
            let is_submodule = entry.starts_with(SUBMODULE.as_bytes());
            let list = if is_submodule { &mut listing.submodules } else { &mut listing.files };
            list.push(entry[tab + 1..].to_vec());
        }
        Ok(listing)
    }

    /// Gives the tree below the corpus to `unpack`, as tar.
    ///
    /// # Errors
    /// [`Status::Internal`]: what git says, or what `unpack` gives.
    pub fn archive(&self, unpack: impl FnOnce(&mut dyn Read) -> Outcome<()>) -> Outcome<()> {
        let mut command = command(&self.corpus);
        let mut failed = None;
        let ended = child::stream(command.args(["archive", "--format=tar", &self.id]), ARCHIVE, |tar| {
            unpack(tar).map_err(|failure| {
                failed = Some(failure);
                io::Error::other("it was not unpacked")
            })
        });
        match (ended, failed) {
            (Ok(ended), failed) => {
                succeeded("git archive", ended)?;
                failed.map_or(Ok(()), Err)
            }
            (Err(child::Error::Output { source, .. }), Some(failure)) if source.kind() == io::ErrorKind::Other => {
                Err(failure)
            }
            (Err(e), _) => Err(started(e)),
        }
    }
}

/// Those of `paths`, relative to the corpus, that the corpus keeps out of its commits. What counts is the corpus's own
/// list and not the workspace's, so no session changes it. A corpus in no repository keeps nothing out.
#[must_use]
pub fn ignored(corpus: &Path, paths: &[&[u8]]) -> BTreeSet<Vec<u8>> {
    if paths.is_empty() {
        return BTreeSet::new();
    }
    let asked = || {
        let stdin = sealed("paths", &paths.join(&0)).ok()?;
        let mut command = command(corpus);
        // It reads paths and no patterns, and refuses to be told so.
        command.env_remove("GIT_LITERAL_PATHSPECS");
        command.args(["check-ignore", "-z", "--stdin"]).stdin(Stdio::from(stdin));
        let ended = child::run(&mut command, LIST).ok()?;
        // 1 says that none is; anything else that one of them cannot be asked about, and then none has been.
        matches!(ended.status.code(), Some(0 | 1)).then_some(ended.stdout)
    };
    match asked() {
        Some(printed) => fields(&printed).map(<[u8]>::to_vec).collect(),
        None if paths.len() == 1 => BTreeSet::new(),
        None => {
            let (one, other) = paths.split_at(paths.len() / 2);
            ignored(corpus, one).into_iter().chain(ignored(corpus, other)).collect()
        }
    }
}

fn command(corpus: &Path) -> Command {
    let mut command = child::command("git");
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .args(["--no-pager", "--no-replace-objects"])
        .env("GIT_LITERAL_PATHSPECS", "1")
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .arg("-C")
        .arg(corpus);
    command
}

fn git(corpus: &Path, arguments: &[&str]) -> Outcome<Ended> {
    child::run(command(corpus).args(arguments), LIST).map_err(started)
}

fn started(error: child::Error) -> Failure {
    match error {
        child::Error::Start { ref source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Failure::new(Status::Missing, "no `git` on PATH, and a workspace is built by it")
                .remedy("install git, or name a workspace that is built already with --workspace")
        }
        other => Failure::new(Status::Internal, other.to_string()),
    }
}

fn succeeded(what: &str, ended: Ended) -> Outcome<Vec<u8>> {
    if ended.status.success() { Ok(ended.stdout) } else { Err(Failure::io(what, ended.cause())) }
}

fn fields(printed: &[u8]) -> impl Iterator<Item = &[u8]> {
    printed.split(|byte| *byte == 0).filter(|field| !field.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fixture::{self, committed, in_git};
    use std::fs;

    fn refused(corpus: &Path) -> Failure {
        let failure = Commit::of(corpus, None).unwrap_err();
        assert_eq!(failure.status, Status::Usage, "{}", failure.message);
        assert!(failure.remedy.as_ref().unwrap().contains("--workspace"));
        failure
    }

    #[test]
    fn a_corpus_in_no_repository_or_without_a_commit_is_refused() {
        let corpus = fixture::tree(&[("a", "")]);
        assert!(refused(corpus.path()).message.contains("no git repository"));
        in_git(corpus.path(), &["init", "-q"]);
        assert!(refused(corpus.path()).message.contains("nothing is committed"));
        in_git(corpus.path(), &["config", "core.bare", "true"]);
        assert!(refused(corpus.path()).message.contains("no git repository"));
    }

    #[test]
    fn a_corpus_that_differs_from_its_commit_is_refused_with_what_differs() {
        for change in ["changed", "new\nline"] {
            let corpus = committed(&[("changed", "1"), ("same", "")]);
            fs::write(corpus.path().join(change), "2").unwrap();
            let failure = refused(corpus.path());
            let line = failure.message.lines().last().unwrap();
            assert!(line.ends_with(&change.replace('\n', "\\n")), "{}", failure.message);
        }
        let corpus = committed(&[("a", "")]);
        (0..13).for_each(|n| fs::write(corpus.path().join(n.to_string()), "").unwrap());
        assert!(refused(corpus.path()).message.ends_with("\n  and 3 more"));
        let corpus = committed(&[("staged", "1")]);
        fs::write(corpus.path().join("staged"), "2").unwrap();
        in_git(corpus.path(), &["add", "-A"]);
        refused(corpus.path());
    }

    #[test]
    fn what_differs_outside_of_the_corpus_is_no_matter() {
        let repository = committed(&[("corpus/a", "1"), ("beside", "1")]);
        fs::write(repository.path().join("beside"), "2").unwrap();
        let commit = Commit::of(&repository.path().join("corpus"), None).unwrap();
        assert_eq!(commit.id.len(), 40);
        assert_eq!(commit.list().unwrap().files, [b"a".to_vec()]);
        refused(repository.path());
    }

    #[test]
    fn git_runs_nothing_that_the_repository_configures() {
        let corpus = committed(&[("a", "1")]);
        let ran = corpus.path().join(".git/ran");
        let command = format!("touch {}", ran.display());
        in_git(corpus.path(), &["config", "core.fsmonitor", &command]);
        let hook = corpus.path().join(".git/hooks/post-index-change");
        fs::write(&hook, format!("#!/bin/sh\n{command}\n")).unwrap();
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let commit = Commit::of(corpus.path(), None).unwrap();
        commit.archive(|tar| io::copy(tar, &mut io::sink()).map(drop).map_err(|e| Failure::io("tar", e))).unwrap();
        assert!(!ran.exists());
    }

    #[test]
    fn a_failure_of_the_unpacking_is_the_failure() {
        let corpus = committed(&[("a", &"x".repeat(200_000))]);
        let commit = Commit::of(corpus.path(), None).unwrap();
        let failure = commit.archive(|_| Err(Failure::new(Status::Place, "here"))).unwrap_err();
        assert_eq!((failure.status, failure.message.as_str()), (Status::Place, "here"));
        let gone = Commit { id: "0".repeat(40), ..commit };
        let failure = gone.archive(|_| Ok(())).unwrap_err();
        assert!(failure.message.starts_with("git archive: exit status 128: fatal"), "{}", failure.message);
    }

    #[test]
    fn what_the_corpus_keeps_out_of_its_commits_is_asked_of_the_corpus() {
        let corpus = committed(&[(".gitignore", "*.pyc\n/out/\n"), ("kept.pyc", "x"), ("a.md", "a")]);
        in_git(corpus.path(), &["add", "-f", "kept.pyc"]);
        std::os::unix::fs::symlink("/", corpus.path().join("link")).unwrap();
        let paths: [&[u8]; 6] = [b"a.md", b"src/b.pyc", b"kept.pyc", b"out/x", b"line\nfeed.pyc", b"link/etc/c.pyc"];
        let found = ignored(corpus.path(), &paths);
        let expected: [&[u8]; 3] = [b"line\nfeed.pyc", b"out/x", b"src/b.pyc"];
        assert_eq!(found.iter().map(Vec::as_slice).collect::<Vec<_>>(), expected);
        assert!(ignored(tempfile::tempdir().unwrap().path(), &paths).is_empty());
    }

    #[test]
    fn a_recording_on_its_shelf_need_not_be_committed_before_the_next() {
        let repository = committed(&[("corpus/a.md", "a"), ("corpus/docs/runs/old.md", "o")]);
        let corpus = repository.path().join("corpus");
        for path in ["docs/runs/new.md", "docs/runs/new.raw.jsonl", "docs/runs/old.md"] {
            fs::write(corpus.join(path), "x").unwrap();
        }
        assert_eq!(Commit::of(&corpus, None).unwrap_err().status, Status::Usage);
        Commit::of(&corpus, Some("docs/runs")).unwrap();
        fs::write(corpus.join("docs/runs-of-others.md"), "x").unwrap();
        let failure = Commit::of(&corpus, Some("docs/runs")).unwrap_err();
        assert!(failure.message.contains("docs/runs-of-others.md") && !failure.message.contains("new.md"));
    }
}
