//! The search that refuses a workspace which gives a probe away, or which is not apart from the corpus. It runs before
//! anything is spent, and it reads every file: a search that could not read one has not finished, and refuses.

use super::names::{Mention, Names, Subject};
use super::tree::{Node, Tree, file_name, shown};
use crate::status::{Failure, Outcome, Status};
use nix::unistd::{AccessFlags, access};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How many places a message lists.
const LISTED: usize = 20;
/// How many places of one file are kept for it.
const LISTED_OF_FILE: usize = LISTED;

/// Every guard, in the order of the recorder: that the workspace is a directory and no link, carries no `.git`, is apart
/// from the corpus, holds nothing of the instrument, and names neither a probe of `names` nor a document that goes.
///
/// # Errors
/// [`Status::Usage`], [`Status::NotEntered`], [`Status::GitPointer`], [`Status::Place`], [`Status::Instrument`] or
/// [`Status::AnswerKey`], the first that applies.
pub fn hold(corpus: &Path, workspace: &Path, names: &Names) -> Outcome<()> {
    is_a_directory(corpus, workspace)?;
    // The corpus itself carries `.git` too, and is not to lose it.
    apart(corpus, workspace)?;
    // Before the tree is walked, and again below the top once it is known to be none that is far too large.
    no_git_at_top(workspace)?;
    let tree = Tree::open(workspace)?;
    let nodes = tree.walk(|_| false).map_err(|failure| Failure { status: Status::AnswerKey, ..failure })?;
    no_git_anywhere(&tree, &nodes)?;
    no_instrument(&tree, &names.declared.instrument)?;
    names_nothing(&tree, &nodes, names)
}

fn is_a_directory(corpus: &Path, workspace: &Path) -> Outcome<()> {
    let cannot = |e: std::io::Error| {
        Failure::new(Status::Usage, format!("the workspace {}: {e}", workspace.display()))
            .remedy("name a directory that is there with --workspace, or leave the option out to have one built")
    };
    let metadata = workspace.symlink_metadata().map_err(cannot)?;
    if metadata.is_symlink() {
        // Where it leads into the corpus, that is the worse of the two.
        apart(corpus, workspace)?;
        let message = format!("the workspace {} is a symbolic link", workspace.display());
        return Err(Failure::new(Status::Usage, message).remedy("name the directory itself with --workspace"));
    }
    if !metadata.is_dir() {
        let message = format!("the workspace {} is no directory", workspace.display());
        return Err(Failure::new(Status::Usage, message).remedy("name a directory with --workspace"));
    }
    access(workspace, AccessFlags::R_OK | AccessFlags::W_OK | AccessFlags::X_OK).map_err(|e| {
        let message = format!("the workspace {} cannot be entered and written: {}", workspace.display(), e.desc());
        Failure::new(Status::NotEntered, message)
            .remedy("name a directory that this user can enter and write, or leave --workspace out")
    })
}

/// That `workspace` is neither in the corpus, nor the corpus in it, nor the two one: by name and by device and inode, so
/// that neither a link nor a bind mount hides it. `workspace` itself need not be there yet.
///
/// # Errors
/// [`Status::Place`].
pub fn apart(corpus: &Path, workspace: &Path) -> Outcome<()> {
    let corpus = canonical(corpus)?;
    let workspace = canonical(workspace)?;
    let within = |inner: &Path, outer: &Path| -> Outcome<bool> {
        let Some(outer_identity) = identity(outer)? else { return Ok(inner.starts_with(outer)) };
        for above in inner.ancestors() {
            if above == outer || identity(above)?.is_some_and(|found| found == outer_identity) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let message = if within(&workspace, &corpus)? {
        format!("the workspace {} is inside the corpus {}", workspace.display(), corpus.display())
    } else if within(&corpus, &workspace)? {
        format!("the corpus {} is inside the workspace {}", corpus.display(), workspace.display())
    } else {
        return Ok(());
    };
    Err(Failure::new(Status::Place, message).remedy("name a directory apart from the corpus"))
}

/// Without links; of a path that is not there, as much as is.
fn canonical(path: &Path) -> Outcome<PathBuf> {
    let mut there = std::path::absolute(path).map_err(|e| Failure::io(path.display(), e))?;
    let mut behind = Vec::new();
    loop {
        match there.canonicalize() {
            Ok(found) => return Ok(behind.into_iter().rev().fold(found, |path, name| path.join(name))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let Some(name) = there.file_name().map(ToOwned::to_owned) else {
                    return Err(Failure::io(path.display(), e));
                };
                behind.push(name);
                there.pop();
            }
            Err(e) => return Err(Failure::io(path.display(), e)),
        }
    }
}

fn identity(path: &Path) -> Outcome<Option<(u64, u64)>> {
    let of = |metadata: Metadata| (metadata.dev(), metadata.ino());
    match path.metadata() {
        Ok(metadata) => Ok(Some(of(metadata))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Failure::io(path.display(), e)),
    }
}

fn no_git_at_top(workspace: &Path) -> Outcome<()> {
    match workspace.join(".git").symlink_metadata() {
        Ok(_) => Err(git(workspace, b".git")),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Failure::io(workspace.join(".git").display(), e)),
    }
}

fn no_git_anywhere(tree: &Tree, nodes: &BTreeMap<Vec<u8>, Node>) -> Outcome<()> {
    nodes.keys().find(|path| file_name(path) == b".git").map_or(Ok(()), |path| Err(git(tree.path(), path)))
}

fn git(workspace: &Path, path: &[u8]) -> Failure {
    let message = format!("the workspace carries {}/{}: a way into the history", workspace.display(), shown(path));
    Failure::new(Status::GitPointer, message).remedy(REBUILD)
}

const REBUILD: &str = "leave --workspace out to have a sealed one built, or remove it by hand";

fn no_instrument(tree: &Tree, instrument: &[String]) -> Outcome<()> {
    for path in instrument {
        let message = match tree.node(path.as_bytes()) {
            Err(why) if why.is_absent() => continue,
            Ok(_) => format!("the instrument is still in the workspace: {}/{path}", tree.path().display()),
            Err(why) => format!("the instrument could not be looked for at {}/{path}: {why}", tree.path().display()),
        };
        return Err(Failure::new(Status::Instrument, message).remedy(REBUILD));
    }
    Ok(())
}

/// A place that gives something away.
#[derive(Debug, PartialEq, Eq)]
struct Hit {
    path: Vec<u8>,
    /// Nothing where it is the path itself, or the text of a link.
    line: Option<u64>,
    what: String,
}

fn names_nothing(tree: &Tree, nodes: &BTreeMap<Vec<u8>, Node>, names: &Names) -> Outcome<()> {
    let found: Vec<(Vec<Hit>, u64)> =
        nodes.par_iter().map(|(path, node)| hits(tree, path, node, names)).collect::<Outcome<_>>()?;
    let count: u64 = found.iter().map(|(_, count)| count).sum();
    if count == 0 {
        return Ok(());
    }
    let mut message = format!("the workspace {} gives the probe away", tree.path().display());
    for hit in found.iter().flat_map(|(hits, _)| hits).take(LISTED) {
        let line = hit.line.map(|line| format!(":{line}")).unwrap_or_default();
        // Writing to a string gives no error.
        let _ = write!(message, "\n  {}{line}: {}", shown(&hit.path), hit.what);
    }
    if count > LISTED as u64 {
        let _ = write!(message, "\n  and {} places more", count - LISTED as u64);
    }
    Err(Failure::new(Status::AnswerKey, message).remedy(REBUILD))
}

/// The first hits of one entry, and how many there are.
fn hits(tree: &Tree, path: &[u8], node: &Node, names: &Names) -> Outcome<(Vec<Hit>, u64)> {
    let mut found = Vec::new();
    let mut count = 0;
    let mut hit = |line: Option<u64>, what: String| {
        count += 1;
        if found.len() < LISTED_OF_FILE {
            found.push(Hit { path: path.to_vec(), line, what });
        }
    };
    let declared = &names.declared;
    let own = names.documents().iter().position(|document| document.path == path);
    if let Some(document) = own.map(|at| &names.documents()[at]).filter(|document| document.is_key) {
        hit(None, format!("is an answer key of {}", document.probe));
    }
    if let Some(document) = names.claimed_by(path).filter(|_| *node != Node::Directory) {
        hit(None, format!("is the claim of {}, which gives {} away", document.label(), document.probe));
    }
    let may_name = declared.is_fold(path) || (*node == Node::Directory && declared.has_fold_below(path));
    if let Some(mention) = names.in_path(path, |mention| mention.named && !may_name) {
        hit(None, what(names, &mention));
    }
    let is_file = matches!(node, Node::File { .. });
    names.search(tree, path, node, |mention| {
        let excepted = match mention.subject {
            Subject::Probe(_) => may_name || !mention.named,
            Subject::Document(at) => own == Some(at),
        };
        if !excepted {
            hit(is_file.then_some(mention.line), what(names, &mention));
        }
    })?;
    Ok((found, count))
}

fn what(names: &Names, mention: &Mention) -> String {
    let (label, name) = (names.label(mention.subject), shown(names.text(mention)));
    match mention.subject {
        Subject::Probe(_) if name == label => format!("names the probe {label}"),
        Subject::Probe(_) => format!("names the probe {label}, as `{name}`"),
        Subject::Document(at) => {
            let document = &names.documents()[at];
            let kind = if document.is_key { "an answer key of" } else { "a document that names" };
            format!("names {label}, {kind} {}", document.probe)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fixture::{self, declared};
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    const KEY: &str = "docs/notes/survey-of-it.md";

    fn corpus() -> TempDir {
        fixture::tree(&[
            ("docs/probes/where-is-it.md", "---\nid: WM-PR-0001\n---\n"),
            (KEY, "---\nid: WM-NT-0001\n---\n"),
            ("docs/decisions/by-name.md", "---\nid: WM-DR-0009\n---\nWM-PR-0001"),
        ])
    }

    fn held(workspace: &Path) -> Outcome<()> {
        let corpus = corpus();
        let names = Names::gather(corpus.path(), declared("WM-PR-0001", &[KEY])).unwrap();
        hold(corpus.path(), workspace, &names)
    }

    fn refused(files: &[(&str, &str)]) -> Failure {
        held(fixture::tree(files).path()).unwrap_err()
    }

    #[test]
    fn a_workspace_is_a_directory_that_is_there_and_no_link() {
        let dir = fixture::tree(&[("file", ""), ("dir/file", "")]);
        symlink("dir", dir.path().join("link")).unwrap();
        for name in ["absent", "file", "link"] {
            let failure = held(&dir.path().join(name)).unwrap_err();
            assert_eq!(failure.status, Status::Usage, "{name}");
            assert!(failure.message.contains(name) && failure.remedy.is_some(), "{}", failure.message);
        }
        held(&dir.path().join("dir")).unwrap();
    }

    #[test]
    fn a_git_directory_or_pointer_at_any_level_is_refused() {
        for files in [[(".git/HEAD", "")], [(".git", "gitdir: /elsewhere")], [("vendor/lib/.git", "gitdir: ../..")]] {
            let failure = refused(&files);
            assert_eq!(failure.status, Status::GitPointer);
            assert!(failure.message.contains(files[0].0.trim_end_matches("/HEAD")), "{}", failure.message);
        }
        held(fixture::tree(&[(".gitignore", ""), ("a.git/x", "")]).path()).unwrap();
    }

    #[test]
    fn a_workspace_and_its_corpus_are_apart() {
        let corpus = corpus();
        let names = Names::gather(corpus.path(), declared("WM-PR-0001", &[])).unwrap();
        fs::create_dir(corpus.path().join("inside")).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(corpus.path(), elsewhere.path().join("way")).unwrap();
        symlink(corpus.path().join("inside"), elsewhere.path().join("link")).unwrap();
        let way = elsewhere.path().join("way");
        for workspace in [
            &corpus.path().join("inside"),
            corpus.path(),
            corpus.path().parent().unwrap(),
            &way.join("inside"),
            &elsewhere.path().join("link"),
        ] {
            let failure = hold(corpus.path(), workspace, &names).unwrap_err();
            assert_eq!(failure.status, Status::Place, "{}", workspace.display());
        }
        assert_eq!(apart(corpus.path(), &way.join("inside/not/there/yet")).unwrap_err().status, Status::Place);
        apart(corpus.path(), &elsewhere.path().join("not/there/yet")).unwrap();
        let beside = corpus.path().with_file_name(format!("{}x", corpus.path().file_name().unwrap().to_str().unwrap()));
        apart(corpus.path(), &beside).unwrap();
    }

    #[test]
    fn an_instrument_that_is_there_or_cannot_be_looked_for_is_refused() {
        let failure = refused(&[("docs/probes/other.md", "")]);
        assert_eq!(failure.status, Status::Instrument);
        assert!(failure.message.contains("docs/probes"), "{}", failure.message);
        let hidden = fixture::tree(&[("elsewhere/probes/p.md", "")]);
        symlink("elsewhere", hidden.path().join("docs")).unwrap();
        let failure = held(hidden.path()).unwrap_err();
        assert_eq!(failure.status, Status::Instrument);
        assert!(failure.message.contains("could not be looked for"), "{}", failure.message);
    }

    #[test]
    fn every_way_to_name_the_probe_is_refused_with_its_place() {
        for (path, content, place) in [
            ("docs/a.md", "x\nsee WM-PR-0001.", "docs/a.md:2: names the probe WM-PR-0001"),
            ("a", "(where-is-it-not)", "a:1: names the probe WM-PR-0001, as `where-is-it`"),
            ("bin", "\0\u{fffd}WM-PR-0001\0", "bin:1: names"),
            ("src/where-is-it.rs", "", "src/where-is-it.rs: names"),
            (KEY, "", "docs/notes/survey-of-it.md: is an answer key of WM-PR-0001"),
            ("a", "\n\nWM-NT-0001", "a:3: names WM-NT-0001, an answer key of WM-PR-0001"),
            ("a", "by-name.md", "a:1: names WM-DR-0009, a document that names WM-PR-0001"),
            (".headwater/ids/WM-DR-0009", "", ".headwater/ids/WM-DR-0009: is the claim of WM-DR-0009"),
        ] {
            let failure = refused(&[(path, content)]);
            assert_eq!(failure.status, Status::AnswerKey, "{place}");
            assert!(failure.message.contains(&format!("\n  {place}")), "{place}: {}", failure.message);
            assert!(failure.remedy.unwrap().contains("--workspace"));
        }
        let linked = fixture::tree(&[]);
        symlink("../probes/where-is-it.md", linked.path().join("l")).unwrap();
        assert!(held(linked.path()).unwrap_err().message.contains("\n  l: names"));
    }

    #[test]
    fn what_names_neither_probe_nor_document_passes() {
        let files = [("a", "WM-PR-00012 WM-NT-00011 survey-of-it is-it"), ("tools/owners.txt", "WM-PR-0001")];
        held(fixture::tree(&files).path()).unwrap();
        assert!(
            held(fixture::tree(&[("tools/owners.txt", "WM-NT-0001")]).path()).is_err(),
            "a fold names no answer key"
        );
        assert!(held(fixture::tree(&[("docs/tools/owners.txt", "WM-PR-0001")]).path()).is_err());
    }

    #[test]
    fn a_search_that_could_not_read_something_has_not_finished() {
        let workspace = fixture::tree(&[("a", "")]);
        nix::unistd::mkfifo(&workspace.path().join("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let failure = held(workspace.path()).unwrap_err();
        assert_eq!(failure.status, Status::AnswerKey);
        assert!(failure.message.contains("fifo could not be searched"), "{}", failure.message);
        let workspace = fixture::tree(&[(&format!("{}x", "d/".repeat(200)), "")]);
        assert_eq!(held(workspace.path()).unwrap_err().status, Status::AnswerKey);
        let workspace = fixture::tree(&[]);
        fs::File::create(workspace.path().join("sparse")).unwrap().set_len(4 << 30).unwrap();
        assert_eq!(held(workspace.path()).unwrap_err().status, Status::AnswerKey);
    }

    #[test]
    fn a_message_lists_twenty_places_and_counts_the_rest() {
        let failure = refused(&[("a", &"WM-PR-0001\n".repeat(30)), ("b\nc", "WM-PR-0001")]);
        assert_eq!(failure.message.lines().count(), 1 + 20 + 1);
        assert!(failure.message.ends_with("and 11 places more"), "{}", failure.message);
        let failure = refused(&[("b\nc", "WM-PR-0001")]);
        assert!(failure.message.contains("b\\nc:1"), "{}", failure.message);
    }
}
