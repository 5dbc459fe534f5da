//! A fresh tree from the committed corpus: the archive of its commit, less the instrument, with what the arm changes,
//! sealed for the probes of the batch. It carries no `.git`.

use super::git::{Commit, Listing};
use super::guard;
use super::names::Names;
use super::seal::{self, Sealed};
use super::tree::{Node, Tree, shown};
use crate::status::{Failure, Outcome, Status};
use headwater_contract::plan::Delta;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tar::EntryType;

/// How a file begins whose content is kept elsewhere (git LFS).
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1\n";

/// What is to be built.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The corpus, whose working tree is its commit.
    pub corpus: &'a Path,
    /// Where: a directory that is not there or empty, apart from the corpus.
    pub to: &'a Path,
    /// Where recordings land in the corpus, which need not be committed.
    pub shelf: Option<&'a str>,
    /// What the arm loses and gains.
    pub delta: &'a Delta,
    /// The instrument, and what gives the probes of the batch away.
    pub names: &'a Names,
}

/// What was built. Paths are relative to the corpus, in byte order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// Where.
    pub root: PathBuf,
    /// Of which tree.
    pub source: Source,
    /// What the arm should lose and the present tree does not have.
    pub not_there: Vec<String>,
    /// What the seal did.
    pub sealed: Sealed,
}

/// A committed tree, and what of it a workspace does not hold as the corpus does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// The name of the commit.
    pub commit: String,
    /// Submodules: empty directories in the workspace.
    pub submodules: Vec<String>,
    /// Files that are pointers to content kept elsewhere (git LFS).
    pub pointers: Vec<String>,
    /// Files that the attributes of the repository leave out of an archive.
    pub left_out: Vec<String>,
}

/// Builds a workspace. Where that fails, nothing of it is left.
///
/// # Errors
/// [`Status::Place`] inside the corpus; [`Status::Usage`] where something is at the place already, or the corpus is not
/// committed; what the seal gives; [`Status::Internal`].
pub fn build(order: &Order<'_>) -> Outcome<Built> {
    let commit = Commit::of(order.corpus, order.shelf)?;
    guard::apart(order.corpus, order.to)?;
    let place = Place::take(order.to)?;
    let built = fill(order, &commit, &place.tree);
    if built.is_err() {
        place.give_back();
    }
    built
}

fn fill(order: &Order<'_>, commit: &Commit, tree: &Tree) -> Outcome<Built> {
    let instrument = &order.names.declared.instrument;
    let source = present(commit, tree, instrument)?;
    let is_there = |path: &&String| tree.node(path.as_bytes()).is_ok();
    let is_instrument = |path: &&String| order.names.declared.is_instrument(path.as_bytes());
    let not_there = order.delta.loses.iter().filter(|path| !is_there(path) && !is_instrument(path)).cloned().collect();
    for path in &order.delta.loses {
        tree.remove(path.as_bytes())?;
    }
    let corpus = Tree::open(&commit.corpus)?;
    for path in &order.delta.gains {
        gain(&corpus, tree, path.as_bytes())?;
    }
    let sealed = seal::seal(order.to, order.names)?;
    Ok(Built { root: order.to.to_path_buf(), source, not_there, sealed })
}

/// The present tree: puts the archive of `commit`, less `instrument`, into the empty `tree`.
///
/// # Errors
/// [`Status::Usage`] where nothing below the corpus is committed; [`Status::Internal`].
pub fn present(commit: &Commit, tree: &Tree, instrument: &[String]) -> Outcome<Source> {
    let mut pointers = Vec::new();
    let (listing, unpacked) = rayon::join(|| commit.list(), || commit.archive(|tar| unpack(tar, tree, &mut pointers)));
    let Listing { files, submodules } = listing?;
    if files.is_empty() {
        let message = format!("nothing of {} is committed", commit.corpus.display());
        return Err(Failure::new(Status::Usage, message).remedy("commit the corpus"));
    }
    unpacked?;
    let left_out = files.iter().filter(|path| tree.node(path).is_err()).map(|path| shown(path)).collect();
    for path in instrument {
        tree.remove(path.as_bytes())?;
    }
    Ok(Source {
        commit: commit.id.clone(),
        submodules: submodules.iter().map(|path| shown(path)).collect(),
        pointers,
        left_out,
    })
}

/// Unpacks files, directories and links, each beneath `tree` and through no link, each path once. Anything else in the
/// archive, or a path that is none below a root, ends it.
fn unpack(tar: &mut dyn Read, tree: &Tree, pointers: &mut Vec<String>) -> Outcome<()> {
    let broken = |e: io::Error| Failure::io("the archive of the corpus", e);
    for entry in tar::Archive::new(tar).entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path_bytes().into_owned();
        let path = path.strip_suffix(b"/").unwrap_or(&path);
        match entry.header().entry_type() {
            // The name of the commit, as a comment.
            EntryType::XGlobalHeader => {}
            EntryType::Directory => tree.make_directories(path)?,
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default().into_owned();
                tree.link(path, &target)?;
            }
            EntryType::Regular => {
                let executable = entry.header().mode().map_err(broken)? & 0o100 != 0;
                let mut start = Vec::new();
                (&mut entry).take(POINTER.len() as u64).read_to_end(&mut start).map_err(broken)?;
                if start == POINTER {
                    pointers.push(shown(path));
                }
                tree.create(path, executable, &mut start.chain(&mut entry))?;
            }
            other => {
                let message = format!("the archive of the corpus: {} is a {other:?}", shown(path));
                return Err(Failure::new(Status::Internal, message));
            }
        }
    }
    Ok(())
}

/// Puts what the corpus has at `path` into `tree`, in the place of what is there.
fn gain(corpus: &Tree, tree: &Tree, path: &[u8]) -> Outcome<()> {
    let absent = |why| {
        let failure = corpus.failure(path, why);
        let message = format!("the arm gains what the corpus does not have: {}", failure.message);
        Failure::new(Status::Usage, message).remedy("add it to the corpus, or correct `components` of the probe policy")
    };
    let node = corpus.node(path).map_err(absent)?;
    tree.remove(path)?;
    if node != Node::Directory {
        return copy(corpus, tree, path, path, &node);
    }
    tree.make_directories(path)?;
    let from = corpus.below(path)?;
    for (inner, node) in from.walk(|name| name == b".git")? {
        copy(&from, tree, &inner, &[path, b"/", &inner].concat(), &node)?;
    }
    Ok(())
}

fn copy(from: &Tree, to: &Tree, source: &[u8], target: &[u8], node: &Node) -> Outcome<()> {
    match node {
        Node::Directory => to.make_directories(target),
        Node::Link { target: text } => to.link(target, text),
        Node::File { mode, .. } => {
            let (mut file, _) = from.open_file(source).map_err(|why| from.failure(source, why))?;
            to.create(target, mode & 0o100 != 0, &mut file)
        }
        Node::Special(kind) => Err(Failure::io(shown(target), format!("the arm gains {kind}"))),
        Node::Unlisted(why) => Err(from.failure(source, *why)),
    }
}

/// An empty directory that only its owner may enter.
struct Place {
    tree: Tree,
    made: bool,
}

impl Place {
    fn take(path: &Path) -> Outcome<Self> {
        let io = |e: io::Error| Failure::io(path.display(), e);
        let usage = |why: &str| {
            Failure::new(Status::Usage, format!("no workspace can be built at {}: {why}", path.display()))
                .remedy("name a directory that is not there yet, or an empty one")
        };
        let made = match fs::DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => true,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(usage("the directory above it is not there")),
            Err(e) => return Err(io(e)),
        };
        if !made && !path.symlink_metadata().map_err(io)?.is_dir() {
            return Err(usage("something else than a directory is there"));
        }
        let tree = Tree::open(path)?;
        if !tree.is_empty()? {
            return Err(usage("it is not empty"));
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(io)?;
        Ok(Self { tree, made })
    }

    fn give_back(self) {
        // The failure that led here is the one to report.
        let _ = self.tree.clear();
        if self.made {
            let _ = fs::remove_dir(self.tree.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fixture::{self, commit, committed, declared, in_git};
    use crate::workspace::manifest::{Entry, Manifest};
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    const FILES: [(&str, &str); 8] = [
        (".headwater/taxonomy.yml", "kinds: {}"),
        ("docs/probes/where-is-it.md", "---\nid: WM-PR-0001\n---\n"),
        ("docs/notes/survey-of-it.md", "---\nid: WM-NT-0001\n---\n"),
        ("docs/README.md", "- survey-of-it.md\n- other.md\n"),
        ("docs/other.md", "text"),
        (".claude/settings.json", "{}"),
        (".claude/hooks/run.sh", "#!/bin/sh"),
        ("CLAUDE.md", "guidance"),
    ];

    fn names(corpus: &Path) -> Names {
        Names::gather(corpus, declared("WM-PR-0001", &["docs/notes/survey-of-it.md"])).unwrap()
    }

    fn built(corpus: &Path, delta: &Delta) -> (TempDir, Outcome<Built>) {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("workspace");
        let built = build(&Order { corpus, shelf: None, to: &to, delta, names: &names(corpus) });
        (dir, built)
    }

    fn files(root: &Path) -> Vec<String> {
        let manifest = Manifest::take(root).unwrap();
        manifest.entries().filter(|(_, e)| !matches!(e, Entry::Directory)).map(|(path, _)| shown(path)).collect()
    }

    #[test]
    fn a_workspace_is_the_committed_tree_less_the_instrument_sealed_and_without_git() {
        let corpus = committed(&FILES);
        let (_dir, workspace) = built(corpus.path(), &Delta::default());
        let workspace = workspace.unwrap();
        assert_eq!(
            files(&workspace.root),
            [
                ".claude/hooks/run.sh",
                ".claude/settings.json",
                ".headwater/taxonomy.yml",
                "CLAUDE.md",
                "docs/README.md",
                "docs/other.md"
            ]
        );
        assert_eq!(fs::read_to_string(workspace.root.join("docs/README.md")).unwrap(), "- other.md\n");
        assert_eq!(fs::metadata(&workspace.root).unwrap().permissions().mode() & 0o7777, 0o700);
        assert_eq!(workspace.sealed.cut.len(), 1);
        guard::hold(corpus.path(), &workspace.root, &names(corpus.path())).unwrap();
    }

    #[test]
    fn a_corpus_below_the_top_of_its_repository_is_built_as_that_directory() {
        let inner: Vec<_> = FILES.iter().map(|(path, content)| (format!("team/corpus/{path}"), *content)).collect();
        let inner: Vec<_> = inner.iter().map(|(path, content)| (path.as_str(), *content)).collect();
        let repository = committed(&[&inner[..], &[("team/beside.md", "x")]].concat());
        let (_dir, workspace) = built(&repository.path().join("team/corpus"), &Delta::default());
        let files = files(&workspace.unwrap().root);
        assert!(files.contains(&"docs/other.md".to_owned()) && !files.iter().any(|path| path.contains("beside")));
    }

    #[test]
    fn modes_links_and_long_and_strange_names_are_kept() {
        let corpus = committed(&FILES);
        let long = format!("docs/{}/{}.md", "d".repeat(120), "n".repeat(200));
        fs::create_dir_all(corpus.path().join(&long).parent().unwrap()).unwrap();
        fs::write(corpus.path().join(&long), "long").unwrap();
        let strange = std::ffi::OsStr::new("docs/line\nfeed \u{e9}.md");
        fs::write(corpus.path().join(strange), "strange").unwrap();
        fs::write(corpus.path().join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"docs/\xff")), "")
            .unwrap();
        let script = corpus.path().join(".claude/hooks/run.sh");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
        symlink("/etc/passwd", corpus.path().join("docs/out")).unwrap();
        symlink("x/".repeat(100), corpus.path().join("docs/far")).unwrap();
        commit(corpus.path());
        let (_dir, workspace) = built(corpus.path(), &Delta::default());
        let root = workspace.unwrap().root;
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode(".claude/hooks/run.sh"), mode("CLAUDE.md"), mode("docs")), (0o755, 0o644, 0o755));
        assert_eq!(fs::read_link(root.join("docs/out")).unwrap(), Path::new("/etc/passwd"));
        assert_eq!(fs::read_link(root.join("docs/far")).unwrap().to_str().unwrap(), "x/".repeat(100));
        assert_eq!(fs::read(root.join(&long)).unwrap(), b"long");
        assert_eq!(fs::read(root.join(strange)).unwrap(), b"strange");
        assert!(files(&root).contains(&"docs/\\xff".to_owned()));
    }

    #[test]
    fn an_arm_loses_and_gains_what_is_declared_and_says_what_was_not_there() {
        let corpus = committed(&FILES);
        let loses = [".claude", ".claude/hooks", "docs/probes", "docs/absent.md"].map(str::to_owned).to_vec();
        let (_dir, workspace) = built(corpus.path(), &Delta { loses, gains: Vec::new() });
        let workspace = workspace.unwrap();
        assert!(!workspace.root.join(".claude").exists());
        assert_eq!(workspace.not_there, ["docs/absent.md"]);

        fs::write(corpus.path().join(".gitignore"), "local/\n.mcp.json\n").unwrap();
        commit(corpus.path());
        fs::write(corpus.path().join(".mcp.json"), "{}").unwrap();
        fs::create_dir_all(corpus.path().join("local/servers")).unwrap();
        fs::write(corpus.path().join("local/servers/run"), "x").unwrap();
        symlink("run", corpus.path().join("local/servers/link")).unwrap();
        let gains = [".mcp.json", "local/servers", "docs/other.md"].map(str::to_owned).to_vec();
        let (_dir, workspace) = built(corpus.path(), &Delta { loses: Vec::new(), gains });
        let root = workspace.unwrap().root;
        assert!(root.join(".mcp.json").exists() && root.join("local/servers/run").exists());
        assert_eq!(fs::read_link(root.join("local/servers/link")).unwrap(), Path::new("run"));
        let (dir, refused) = built(corpus.path(), &Delta { loses: Vec::new(), gains: vec!["absent".to_owned()] });
        assert_eq!(refused.unwrap_err().status, Status::Usage);
        assert!(!dir.path().join("workspace").exists(), "nothing of a failed build is left");
    }

    #[test]
    fn what_an_archive_does_not_hold_as_the_corpus_does_is_stated() {
        let corpus = committed(&FILES);
        let root = corpus.path();
        let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
        fs::write(root.join("docs/picture.png"), pointer).unwrap();
        fs::write(root.join("docs/kept-out.md"), "x").unwrap();
        fs::write(root.join(".gitattributes"), "docs/kept-out.md export-ignore\n").unwrap();
        in_git(root, &["add", "-A"]);
        fs::create_dir_all(root.join("vendor/lib")).unwrap();
        in_git(root, &["update-index", "--add", "--cacheinfo", &format!("160000,{},vendor/lib", "1".repeat(40))]);
        in_git(root, &["commit", "-q", "-m", "More"]);
        let (_dir, workspace) = built(root, &Delta::default());
        let source = workspace.unwrap().source;
        assert_eq!(source.submodules, ["vendor/lib"]);
        assert_eq!(source.pointers, ["docs/picture.png"]);
        assert_eq!(source.left_out, ["docs/kept-out.md"]);
    }

    #[test]
    fn a_corpus_of_which_nothing_is_committed_is_refused() {
        let repository = committed(&[(".gitignore", "corpus\n")]);
        let corpus = repository.path().join("corpus");
        fs::create_dir_all(corpus.join("docs")).unwrap();
        fs::write(corpus.join("docs/a.md"), "x").unwrap();
        let failure = built(&corpus, &Delta::default()).1.unwrap_err();
        assert_eq!(failure.status, Status::Usage);
        assert!(failure.message.contains("nothing of") && failure.remedy.is_some(), "{}", failure.message);
    }

    #[test]
    fn a_place_inside_the_corpus_or_taken_already_is_refused_and_left_alone() {
        let corpus = committed(&FILES);
        let names = names(corpus.path());
        let at = |to: &Path| {
            build(&Order { corpus: corpus.path(), shelf: None, to, delta: &Delta::default(), names: &names })
                .unwrap_err()
                .status
        };
        assert_eq!(at(&corpus.path().join("workspace")), Status::Place);
        assert!(!corpus.path().join("workspace").exists());
        let taken = fixture::tree(&[("file", "x"), ("dir/file", "x")]);
        symlink("empty", taken.path().join("link")).unwrap();
        for name in ["file", "dir", "link", "not/there"] {
            assert_eq!(at(&taken.path().join(name)), Status::Usage, "{name}");
        }
        fs::create_dir(taken.path().join("empty")).unwrap();
        assert_eq!(at(&taken.path().join("link")), Status::Usage);
        assert_eq!(fs::read(taken.path().join("dir/file")).unwrap(), b"x");
        assert_eq!(fs::read_dir(taken.path().join("empty")).unwrap().count(), 0);
    }

    #[test]
    fn an_empty_directory_that_is_there_becomes_the_workspace_and_is_emptied_again_on_a_failure() {
        let corpus = committed(&[&FILES[..], &[("config.json", "{\"a\": \"survey-of-it.md\"}")]].concat());
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let names = names(corpus.path());
        let order =
            Order { corpus: corpus.path(), shelf: None, to: dir.path(), delta: &Delta::default(), names: &names };
        assert_eq!(build(&order).unwrap_err().status, Status::AnswerKey);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let loses = vec!["config.json".to_owned()];
        build(&Order { delta: &Delta { loses, gains: Vec::new() }, ..order }).unwrap();
        assert_eq!(fs::metadata(dir.path()).unwrap().permissions().mode() & 0o7777, 0o700);
    }

    /// A path, a kind, and the content of a file or the text of a link.
    type Member = (&'static [u8], EntryType, &'static [u8]);

    fn archive(entries: &[Member]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, kind, content) in entries {
            let mut header = tar::Header::new_ustar();
            // As bytes: the crate itself would refuse to write what a hostile archive holds.
            header.as_mut_bytes()[..path.len()].copy_from_slice(path);
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            if *kind == EntryType::Regular {
                header.set_size(content.len() as u64);
            } else {
                header.set_size(0);
                header.as_mut_bytes()[157..157 + content.len()].copy_from_slice(content);
            }
            header.set_cksum();
            tar.append(&header, if *kind == EntryType::Regular { *content } else { &[][..] }).unwrap();
        }
        tar.into_inner().unwrap()
    }

    #[test]
    fn nothing_is_unpacked_outside_of_the_tree_or_through_a_link_or_twice() {
        let link = b"/proc/self/cwd";
        let hostile: [&[Member]; 8] = [
            &[(b"../evil", EntryType::Regular, b"x")],
            &[(b"/tmp/headwater-evil", EntryType::Regular, b"x")],
            &[(b"a/../../evil", EntryType::Regular, b"x")],
            &[(b"link", EntryType::Symlink, link), (b"link/evil", EntryType::Regular, b"x")],
            &[(b"link", EntryType::Symlink, link), (b"link/evil", EntryType::Directory, b"")],
            &[(b"a", EntryType::Regular, b"x"), (b"a", EntryType::Regular, b"y")],
            &[(b"a", EntryType::Link, b"/etc/passwd")],
            &[(b"a", EntryType::Fifo, b"")],
        ];
        for entries in hostile {
            let dir = tempfile::tempdir().unwrap();
            let tree = Tree::open(dir.path()).unwrap();
            let bytes = archive(entries);
            assert!(unpack(&mut &bytes[..], &tree, &mut Vec::new()).is_err(), "{:?}", shown(entries[0].0));
        }
        assert!(!Path::new("/tmp/headwater-evil").exists() && !Path::new("evil").exists());
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = archive(&[(b"a", EntryType::Regular, &[b'x'; 2000])]);
        bytes.truncate(1000);
        assert!(unpack(&mut &bytes[..], &Tree::open(dir.path()).unwrap(), &mut Vec::new()).is_err(), "cut off");
    }
}
