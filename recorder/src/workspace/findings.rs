//! What the rules report over the artifacts of a session. The rules run once, over a tree that holds the artifacts and
//! the declarations of the corpus: the workspace, or where the arm took the declarations away or the session touched
//! them, the present tree with the artifacts put in their place. So one oracle grades every arm.

use super::build::present;
use super::git::Commit;
use super::manifest::{Entry, Manifest};
use super::tree::{Node, Tree};
use crate::engine::Engine;
use crate::status::{Failure, Outcome};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What the rules are read from.
const DECLARATIONS: [&[u8]; 2] = [b".headwater/taxonomy.yml", b".headwater/taxonomy.lock"];

/// What checks, and the corpus that a tree is built of where one is needed.
#[derive(Debug, Clone, Copy)]
pub struct Checker<'a> {
    /// The engine.
    pub engine: &'a Engine,
    /// The corpus.
    pub corpus: &'a Path,
    /// The commit that the workspace was built of; nothing for a workspace that was given.
    pub commit: Option<&'a str>,
    /// The paths that no arm has.
    pub instrument: &'a [String],
}

/// The tree that the rules ran over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// The workspace.
    Workspace,
    /// The present tree with the artifacts in their place.
    OracleTree,
    /// None, and why.
    Nothing(String),
}

/// What the rules reported, by path: each rule once, in byte order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Over which tree.
    pub over: Checked,
    rules: BTreeMap<String, BTreeSet<String>>,
}

impl Findings {
    /// The rules that reported over `path`, relative to the root; nothing where nothing was checked.
    #[must_use]
    pub fn of(&self, path: &str) -> Option<Vec<String>> {
        match self.over {
            Checked::Nothing(_) => None,
            _ => Some(self.rules.get(path).into_iter().flatten().cloned().collect()),
        }
    }
}

impl Checker<'_> {
    /// Checks the artifacts at `artifacts`, regular files of the workspace. A check that fails is no failure of the
    /// recording: it leaves the artifacts unchecked, and says why.
    #[must_use]
    pub fn check(&self, before: &Manifest, after: &Manifest, artifacts: &[&[u8]]) -> Findings {
        let kept = |path: &&[u8]| before.get(path) == after.get(path);
        let declared = matches!(before.get(DECLARATIONS[0]), Some(Entry::File { .. }));
        let (over, reported) = if declared && DECLARATIONS.iter().all(kept) {
            (Checked::Workspace, self.engine.check(after.root()))
        } else {
            (Checked::OracleTree, self.check_oracle_tree(after.root(), artifacts))
        };
        match reported {
            Err(failure) => Findings { over: Checked::Nothing(failure.message), rules: BTreeMap::new() },
            Ok(reported) => {
                let mut rules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
                for finding in reported {
                    rules.entry(finding.path).or_default().insert(finding.rule);
                }
                Findings { over, rules }
            }
        }
    }

    fn check_oracle_tree(&self, workspace: &Path, artifacts: &[&[u8]]) -> Outcome<Vec<crate::engine::Finding>> {
        let commit = match self.commit {
            Some(id) => Commit { corpus: self.corpus.to_path_buf(), id: id.to_owned() },
            None => Commit::of(self.corpus, None)?,
        };
        let directory = tempfile::tempdir().map_err(|e| Failure::io("a temporary directory", e))?;
        let oracle = Tree::open(directory.path())?;
        present(&commit, &oracle, self.instrument)?;
        let workspace = Tree::open(workspace)?;
        artifacts.iter().try_for_each(|path| put(&workspace, &oracle, path))?;
        self.engine.check(directory.path())
    }
}

/// Puts a file of `from` into `to`, in the place of whatever is there or on the way.
fn put(from: &Tree, to: &Tree, path: &[u8]) -> Outcome<()> {
    let (mut file, size) = from.open_file(path).map_err(|why| from.failure(path, why))?;
    let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
    for directory in above {
        match to.node(directory) {
            Ok(Node::Directory) => {}
            Ok(_) => drop(to.remove(directory)?),
            Err(why) if why.is_absent() => break,
            Err(why) => return Err(to.failure(directory, why)),
        }
    }
    to.remove(path)?;
    to.create(path, false, &mut std::io::Read::take(&mut file, size))
}
