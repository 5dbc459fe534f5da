//! A tree as paths and digests, taken by descriptor, never through a link.
//!
//! Taken twice, before and after a session, it says what the session left. What could not be read is an entry too: a
//! manifest has no silent holes.

use super::tree::{Node, Special, Tree, Unread};
use crate::status::Outcome;
use headwater_contract::digest::Digest;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Bytes of a file that is digested. A sparse file of any size costs nothing to make and this much to read.
pub const FILE_LIMIT: u64 = 1 << 30;
/// Bytes of all files that are digested, the smaller files first.
pub const TOTAL_LIMIT: u64 = 16 << 30;
/// Links on the way to one file, as the kernel counts them.
const LINK_LIMIT: usize = 40;

/// What stands at a path of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File {
        /// Its content digest.
        digest: Digest,
        /// In bytes.
        size: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// Its text.
        target: Vec<u8>,
    },
    /// A directory.
    Directory,
    /// Neither of these, never opened.
    Special {
        /// What it is.
        kind: Special,
    },
    /// A file that was not digested.
    Unreadable {
        /// Why.
        why: Unread,
    },
    /// A directory that was not listed.
    Unlisted {
        /// Why.
        why: Unread,
    },
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    file: u64,
    total: u64,
}

/// A tree as it was at one time. Paths are bytes relative to the root, in byte order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    root: PathBuf,
    entries: BTreeMap<Vec<u8>, Entry>,
}

/// How a tree differs from what it was. Each list is in byte order of the path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Regular files that are new or have another digest, those that could not be digested among them.
    pub written: Vec<Vec<u8>>,
    /// Regular files and links that are gone, with nothing in their place.
    pub removed: Vec<Vec<u8>>,
    /// Links, FIFOs, sockets and devices that were not there as they are, new or in the place of something else.
    pub odd: Vec<Vec<u8>>,
    /// Directories that could not be listed, and files that could be digested neither time: whether something changed
    /// in them is unknown.
    pub unknown: Vec<Vec<u8>>,
}

impl Manifest {
    /// Takes the manifest of the tree at `root`.
    ///
    /// # Errors
    /// [`crate::status::Status::Limit`] where it has too many entries, [`crate::status::Status::Internal`] where its
    /// root cannot be listed.
    pub fn take(root: &Path) -> Outcome<Self> {
        Self::take_within(root, Limits { file: FILE_LIMIT, total: TOTAL_LIMIT })
    }

    fn take_within(root: &Path, limits: Limits) -> Outcome<Self> {
        let tree = Tree::open(root)?;
        let nodes = tree.walk(|_| false)?;
        let within = within_total(&nodes, limits);
        let entries = nodes
            .into_par_iter()
            .map(|(path, node)| {
                let entry = match node {
                    Node::File { size, .. } if size > limits.file => {
                        Entry::Unreadable { why: Unread::TooLarge(limits.file) }
                    }
                    Node::File { size, .. } if !within(size, &path) => {
                        Entry::Unreadable { why: Unread::TooMuch(limits.total) }
                    }
                    Node::File { size, mode } => match digest(&tree, &path, size) {
                        Ok(digest) => Entry::File { digest, size, mode },
                        Err(why) => Entry::Unreadable { why },
                    },
                    Node::Link { target } => Entry::Link { target },
                    Node::Directory => Entry::Directory,
                    Node::Special(kind) => Entry::Special { kind },
                    Node::Unlisted(why) => Entry::Unlisted { why },
                };
                (path, entry)
            })
            .collect();
        Ok(Self { root: std::path::absolute(root).unwrap_or_else(|_| root.to_path_buf()), entries })
    }

    /// The root, as an absolute path.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Every entry, in byte order of the path.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_slice(), entry))
    }

    /// What stands at exactly `path`, relative to the root.
    #[must_use]
    pub fn get(&self, path: &[u8]) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// The content digest of the file that `path` leads to, relative to the root or absolute. Links are resolved within
    /// the manifest only: one that leads out of the tree, or round in circles, leads to nothing.
    #[must_use]
    pub fn digest_of(&self, path: impl AsRef<[u8]>) -> Option<Digest> {
        match self.entries.get(&self.resolve(path)?) {
            Some(Entry::File { digest, .. }) => Some(*digest),
            _ => None,
        }
    }

    /// The path, relative to the root and free of links, of what `path` leads to; nothing where nothing of this tree
    /// is there. The root itself is the empty path.
    #[must_use]
    pub fn resolve(&self, path: impl AsRef<[u8]>) -> Option<Vec<u8>> {
        let mut at: Vec<Vec<u8>> = Vec::new();
        let mut pending = components(self.beneath(path.as_ref())?);
        let mut links = 0;
        while let Some(component) = pending.pop() {
            match component.as_slice() {
                b"" | b"." => {}
                b".." => drop(at.pop()?),
                _ => {
                    at.push(component);
                    match self.entries.get(&at.join(&b'/'))? {
                        Entry::Link { target } if links < LINK_LIMIT => {
                            links += 1;
                            at.pop();
                            if target.starts_with(b"/") {
                                at.clear();
                            }
                            pending.extend(components(self.beneath(target)?));
                        }
                        Entry::Link { .. } => return None,
                        Entry::Directory => {}
                        _ if pending.is_empty() => {}
                        _ => return None,
                    }
                }
            }
        }
        Some(at.join(&b'/'))
    }

    /// `path` below the root: a relative path as it is, an absolute one without the root before it.
    fn beneath<'p>(&self, path: &'p [u8]) -> Option<&'p [u8]> {
        if !path.starts_with(b"/") {
            return Some(path);
        }
        let rest = path.strip_prefix(self.root.as_os_str().as_bytes())?;
        (rest.is_empty() || rest.starts_with(b"/")).then_some(rest)
    }

    /// How this tree differs from what it was at the time of `before`.
    #[must_use]
    pub fn changed(&self, before: &Self) -> Changes {
        let mut changes = Changes::default();
        for (path, now) in &self.entries {
            let list = match (now, before.entries.get(path)) {
                (Entry::Directory, _) => continue,
                (Entry::File { digest, .. }, Some(Entry::File { digest: old, .. })) if digest == old => continue,
                (Entry::Unlisted { .. }, _) | (Entry::Unreadable { .. }, Some(Entry::Unreadable { .. })) => {
                    &mut changes.unknown
                }
                (Entry::File { .. } | Entry::Unreadable { .. }, _) => &mut changes.written,
                (Entry::Link { .. } | Entry::Special { .. }, was) if was == Some(now) => continue,
                (Entry::Link { .. } | Entry::Special { .. }, _) => &mut changes.odd,
            };
            list.push(path.clone());
        }
        let was_there = before.entries.iter().filter(|(_, was)| !matches!(was, Entry::Directory));
        changes.removed = was_there.map(|(path, _)| path).filter(|path| self.lacks(path)).cloned().collect();
        changes
    }

    /// Whether nothing, or a directory, is at `path`, as far as the directories above it could be listed.
    fn lacks(&self, path: &[u8]) -> bool {
        let above = |at: usize| matches!(self.entries.get(&path[..at]), Some(Entry::Unlisted { .. }));
        let hidden = path.iter().enumerate().any(|(at, byte)| *byte == b'/' && above(at));
        !hidden && matches!(self.entries.get(path), None | Some(Entry::Directory))
    }
}

/// The components of a path, the last one first.
fn components(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/').rev().map(<[u8]>::to_vec).collect()
}

/// Whether a file is within the limit on all of them. The smaller ones are taken first, so that a few that are made to
/// exhaust it keep no others out.
fn within_total(nodes: &BTreeMap<Vec<u8>, Node>, limits: Limits) -> impl Fn(u64, &[u8]) -> bool + Sync + use<> {
    let mut sizes: Vec<_> = nodes
        .iter()
        .filter_map(|(path, node)| match node {
            Node::File { size, .. } if *size <= limits.file => Some((*size, path)),
            _ => None,
        })
        .collect();
    sizes.sort_unstable();
    let mut total = 0u64;
    let first_out = sizes.into_iter().find(|(size, _)| {
        total = total.saturating_add(*size);
        total > limits.total
    });
    let first_out = first_out.map(|(size, path)| (size, path.clone()));
    move |size, path| first_out.as_ref().is_none_or(|(limit, first)| (size, path) < (*limit, first.as_slice()))
}

fn digest(tree: &Tree, path: &[u8], expected: u64) -> Result<Digest, Unread> {
    let (file, size) = tree.open_file(path)?;
    // One byte more than there should be: a file that grows under the reader bounds nothing by itself.
    let mut bounded = file.take(expected + 1);
    let digest = Digest::of_reader(&mut bounded)?;
    if size == expected && bounded.limit() == 1 { Ok(digest) } else { Err(Unread::Changed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use proptest::prelude::*;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn dir(files: &[(&str, &str)]) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        dir
    }

    fn take(dir: &TempDir) -> Manifest {
        Manifest::take(dir.path()).unwrap()
    }

    fn text(paths: &[Vec<u8>]) -> Vec<&str> {
        paths.iter().map(|path| std::str::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn every_file_has_the_digest_of_its_bytes() {
        let dir = dir(&[("a", "one"), ("b/c", "two")]);
        let manifest = take(&dir);
        assert_eq!(manifest.digest_of("a"), Some(Digest::of(b"one")));
        assert_eq!(manifest.digest_of("./b//c"), Some(Digest::of(b"two")));
        assert_eq!(manifest.digest_of(dir.path().join("b/../a").to_str().unwrap()), Some(Digest::of(b"one")));
        for none in ["b", "", "absent", "a/below", "../a", "/a", "/etc/passwd", "b/../../a"] {
            assert_eq!(manifest.digest_of(none), None, "{none}");
        }
    }

    #[test]
    fn links_are_resolved_within_the_tree_and_not_for_ever() {
        let dir = dir(&[("docs/a.md", "a")]);
        let link = |target: &str, at: &str| symlink(target, dir.path().join(at)).unwrap();
        link("docs", "d");
        link("../d/a.md", "docs/again");
        link("docs/../docs/again", "deep");
        link(dir.path().join("docs/a.md").to_str().unwrap(), "absolute");
        link("/etc/passwd", "out");
        link("../../../etc/passwd", "up");
        link("round", "circle");
        link("circle", "round");
        link("grow/x", "grow");
        let manifest = take(&dir);
        for found in ["d/a.md", "docs/again", "deep", "absolute"] {
            assert_eq!(manifest.digest_of(found), Some(Digest::of(b"a")), "{found}");
            assert_eq!(manifest.resolve(found).unwrap(), b"docs/a.md");
        }
        for none in ["out", "up", "circle", "round", "grow", "d"] {
            assert_eq!(manifest.digest_of(none), None, "{none}");
        }
    }

    #[test]
    fn a_huge_sparse_file_is_stated_and_not_read() {
        let dir = dir(&[("a", "a")]);
        File::create(dir.path().join("sparse")).unwrap().set_len(4 << 30).unwrap();
        let manifest = take(&dir);
        assert_eq!(manifest.get(b"sparse"), Some(&Entry::Unreadable { why: Unread::TooLarge(FILE_LIMIT) }));
        assert_eq!(manifest.digest_of("sparse"), None);
    }

    #[test]
    fn files_made_to_exhaust_the_total_keep_no_smaller_file_out() {
        let dir = dir(&[("a-large", "123456789"), ("b-large", "12345678"), ("z", "12")]);
        let manifest = Manifest::take_within(dir.path(), Limits { file: 9, total: 11 }).unwrap();
        assert!(manifest.digest_of("z").is_some() && manifest.digest_of("b-large").is_some());
        assert_eq!(manifest.get(b"a-large"), Some(&Entry::Unreadable { why: Unread::TooMuch(11) }));
    }

    #[test]
    fn a_fifo_and_a_device_are_stated_and_never_opened() {
        let dir = dir(&[]);
        mkfifo(&dir.path().join("fifo"), Mode::S_IRUSR).unwrap();
        let manifest = take(&dir);
        assert_eq!(manifest.get(b"fifo"), Some(&Entry::Special { kind: Special::Fifo }));
        let tree = Tree::open(Path::new("/dev")).unwrap();
        assert_eq!(tree.node(b"null").unwrap(), Node::Special(Special::CharacterDevice));
        assert_eq!(tree.open_file(b"null").unwrap_err(), Unread::NotRegular);
    }

    #[test]
    fn what_is_new_and_what_is_changed_was_written_and_what_is_gone_stands_apart() {
        let dir = dir(&[("same", "s"), ("changed", "1"), ("gone", "g"), ("touched", "t")]);
        let before = take(&dir);
        fs::write(dir.path().join("changed"), "2").unwrap();
        fs::write(dir.path().join("new"), "n").unwrap();
        fs::remove_file(dir.path().join("gone")).unwrap();
        fs::write(dir.path().join("touched"), "t").unwrap();
        let changes = take(&dir).changed(&before);
        assert_eq!(text(&changes.written), ["changed", "new"]);
        assert_eq!(text(&changes.removed), ["gone"]);
        assert!(changes.odd.is_empty() && changes.unknown.is_empty());
    }

    #[test]
    fn a_file_replaced_by_a_link_or_a_fifo_or_a_directory_is_stated() {
        let dir = dir(&[("link", "1"), ("fifo", "2"), ("directory", "3"), ("kept", "4")]);
        symlink("kept", dir.path().join("old")).unwrap();
        let before = take(&dir);
        for name in ["link", "fifo", "directory"] {
            fs::remove_file(dir.path().join(name)).unwrap();
        }
        symlink("/etc/passwd", dir.path().join("link")).unwrap();
        mkfifo(&dir.path().join("fifo"), Mode::S_IRUSR).unwrap();
        fs::create_dir(dir.path().join("directory")).unwrap();
        let changes = take(&dir).changed(&before);
        assert_eq!(text(&changes.odd), ["fifo", "link"]);
        assert_eq!(text(&changes.removed), ["directory"]);
        assert!(changes.written.is_empty());
    }

    #[test]
    fn what_cannot_be_listed_or_digested_is_not_called_gone_or_unchanged() {
        let deep = "d/".repeat(super::super::tree::DEPTH_LIMIT - 1);
        let dir = dir(&[(&format!("{deep}x"), "x")]);
        let before = take(&dir);
        fs::create_dir_all(dir.path().join(&deep).join("e/f")).unwrap();
        let after = take(&dir);
        assert_eq!(after.changed(&before).unknown, [format!("{deep}e").into_bytes()]);
        let mut hidden = after.clone();
        hidden.entries.remove(format!("{deep}x").as_bytes());
        hidden.entries.insert(b"d".to_vec(), Entry::Unlisted { why: Unread::TooDeep });
        assert!(hidden.changed(&before).removed.is_empty());
        let large = |name: &str| File::create(dir.path().join(name)).unwrap().set_len(FILE_LIMIT + 1).unwrap();
        large("a");
        let before = take(&dir);
        large("b");
        let changes = take(&dir).changed(&before);
        assert_eq!(text(&changes.written), ["b"]);
        assert_eq!(text(&changes.unknown[..1]), ["a"]);
    }

    proptest! {
        #[test]
        fn a_path_never_resolves_to_what_is_not_in_the_tree(path in "[a-c./]{0,12}", target in "[a-c./]{1,8}") {
            let dir = dir(&[("a/b", "1"), ("b/a/c", "2")]);
            symlink(&target, dir.path().join("c")).unwrap();
            let manifest = take(&dir);
            if let Some(found) = manifest.resolve(&path) {
                prop_assert!(found.is_empty() || manifest.get(&found).is_some());
                // The system agrees, where the path stays inside.
                let real = fs::canonicalize(dir.path().join(path.trim_start_matches('/')));
                if !path.starts_with('/') {
                    prop_assert_eq!(real.unwrap(), fs::canonicalize(dir.path()).unwrap().join(
                        std::str::from_utf8(&found).unwrap()));
                }
            }
        }
    }
}
