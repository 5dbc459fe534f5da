//! A directory tree held by descriptor.
//!
//! Whatever a session, a committed link or a hostile name does, nothing in here leaves the tree: each path is resolved
//! beneath the root's descriptor and through no link, a file is opened only where it is a regular one, and the numbers
//! of entries, levels and bytes have limits that are stated where they are met.

use crate::status::{Failure, Outcome, Status};
use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, OpenHow, ResolveFlag, openat2, readlinkat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Entries of a tree.
pub const ENTRY_LIMIT: usize = 2_000_000;
/// Levels of directories.
pub const DEPTH_LIMIT: usize = 128;
/// Bytes of a path relative to the root: what one call to the kernel takes.
pub const PATH_LIMIT: usize = 4000;

/// A tree. Paths are bytes, relative to the root, components joined by `/`.
#[derive(Debug)]
pub struct Tree {
    path: PathBuf,
    root: OwnedFd,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File {
        /// In bytes.
        size: u64,
        /// Its permission bits.
        mode: u32,
    },
    /// A symbolic link, never followed.
    Link {
        /// Its text.
        target: Vec<u8>,
    },
    /// A directory.
    Directory,
    /// Neither of these, never opened.
    Special(Special),
    /// A directory that could not be listed, or something that could not be looked at.
    Unlisted(Unread),
}

/// A file that is no regular file, directory or link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A FIFO.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fifo => "a FIFO",
            Self::Socket => "a socket",
            Self::CharacterDevice => "a character device",
            Self::BlockDevice => "a block device",
        })
    }
}

/// Why something was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// A file over a limit.
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
    /// A file behind which the limit on all files together stands.
    #[error("the files of the tree are larger than {0} bytes together")]
    TooMuch(u64),
    /// A directory at the last level that is listed.
    #[error("it is more than {DEPTH_LIMIT} directories deep, and what is in it is not listed")]
    TooDeep,
    /// A directory whose entries would have too long a path.
    #[error("the paths in it are longer than {PATH_LIMIT} bytes, and are not listed")]
    PathTooLong,
    /// A path that a link is on.
    #[error("a symbolic link is on its path")]
    Link,
    /// Something else than was expected.
    #[error("it is no regular file")]
    NotRegular,
    /// It changed under the reader.
    #[error("it changed while it was read")]
    Changed,
    /// A path that is no safe one, or the answer of the system.
    #[error("{}", .0.desc())]
    System(Errno),
}

impl Unread {
    fn remedy(self) -> &'static str {
        match self {
            Self::TooLarge(_) | Self::TooMuch(_) | Self::TooDeep | Self::PathTooLong => {
                "keep what is that large or that deep out of the tree"
            }
            Self::Link | Self::NotRegular => "put a plain file there, or take it away",
            Self::Changed => "run it again while nobody changes the tree",
            Self::System(Errno::ENOSPC | Errno::EDQUOT) => "make room there; TMPDIR says where workspaces are built",
            Self::System(Errno::EACCES | Errno::EPERM) => "let this user read and write it",
            Self::System(_) => "see what stands there, and run it again",
        }
    }

    /// Whether it says that nothing stands there.
    #[must_use]
    pub fn is_absent(self) -> bool {
        matches!(self, Self::System(Errno::ENOENT | Errno::ENOTDIR))
    }
}

impl From<Errno> for Unread {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ELOOP => Self::Link,
            other => Self::System(other),
        }
    }
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::System(Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32)))
    }
}

/// A path as a message shows it: bytes that are no text and control characters escaped, so that no name can break a
/// line or a terminal.
#[must_use]
pub fn shown(path: &[u8]) -> String {
    let mut text = String::new();
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// The last component of a path.
#[must_use]
pub fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Whether `declared` covers `path`: it is that path, or a directory above it.
#[must_use]
pub fn covers(declared: &[u8], path: &[u8]) -> bool {
    path.strip_prefix(declared).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

impl Tree {
    /// The tree at `path`, which is a directory and no link.
    ///
    /// # Errors
    /// [`Status::Internal`].
    pub fn open(path: &Path) -> Outcome<Self> {
        let root =
            nix::fcntl::open(path, DIRECTORY, Mode::empty()).map_err(|e| Failure::io(path.display(), e.desc()))?;
        Ok(Self { path: path.to_path_buf(), root })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tree at the directory `path` of this one.
    ///
    /// # Errors
    /// [`Status::Internal`], also where a link is on the way to it.
    pub fn below(&self, path: &[u8]) -> Outcome<Self> {
        let root = self.directory(path).map_err(|why| self.failure(path, why))?;
        Ok(Self { path: self.path.join(OsStr::from_bytes(path)), root })
    }

    /// Every entry below the root. A name for which `passed_over` holds is neither listed nor entered.
    ///
    /// # Errors
    /// [`Status::Limit`] over [`ENTRY_LIMIT`]; [`Status::Internal`] where the root itself cannot be listed.
    pub fn walk(&self, passed_over: impl Fn(&[u8]) -> bool) -> Outcome<BTreeMap<Vec<u8>, Node>> {
        self.walk_within(ENTRY_LIMIT, passed_over)
    }

    fn walk_within(&self, limit: usize, passed_over: impl Fn(&[u8]) -> bool) -> Outcome<BTreeMap<Vec<u8>, Node>> {
        let mut found = BTreeMap::new();
        let mut pending = vec![Vec::new()];
        while let Some(directory) = pending.pop() {
            let visit = |name: &[u8], node: Node| {
                if passed_over(name) {
                    return true;
                }
                let path = joined(&directory, name);
                if node == Node::Directory {
                    pending.push(path.clone());
                }
                found.insert(path, node);
                found.len() <= limit
            };
            match self.list(&directory, visit) {
                Ok(()) if found.len() > limit => return Err(self.too_many(limit)),
                Ok(()) => {}
                Err(why) if directory.is_empty() => return Err(self.failure(&directory, why)),
                // What is in it is unknown. What is beside it is not.
                Err(why) => drop(found.insert(directory, Node::Unlisted(why))),
            }
        }
        Ok(found)
    }

    /// What stands at `path`.
    ///
    /// # Errors
    /// Where nothing does (`ENOENT`, `ENOTDIR`), or a link is on the way to it.
    pub fn node(&self, path: &[u8]) -> Result<Node, Unread> {
        let (parent, name) = self.parent(path)?;
        node(&parent, name)
    }

    /// The regular file at `path`, open for reading, and its size.
    ///
    /// # Errors
    /// Where it is none or cannot be opened.
    pub fn open_file(&self, path: &[u8]) -> Result<(File, u64), Unread> {
        let file = self.resolve(path, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)?;
        let stat = fstat(&file)?;
        match kind(&stat) {
            SFlag::S_IFREG => Ok((File::from(file), size(&stat))),
            _ => Err(Unread::NotRegular),
        }
    }

    /// The bytes of the regular file at `path`, at most `limit` of them.
    ///
    /// # Errors
    /// Where it is none, cannot be read, or is larger.
    pub fn read(&self, path: &[u8], limit: u64) -> Result<Vec<u8>, Unread> {
        let (file, size) = self.open_file(path)?;
        if size > limit {
            return Err(Unread::TooLarge(limit));
        }
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit { Err(Unread::Changed) } else { Ok(bytes) }
    }

    /// Makes the directory at `path` and those above it, as far as they are not there.
    ///
    /// # Errors
    /// [`Status::Internal`], also where something else than a directory is on the path.
    pub fn make_directories(&self, path: &[u8]) -> Outcome<()> {
        let mut at = 0;
        while at < path.len() {
            at = path[at + 1..].iter().position(|byte| *byte == b'/').map_or(path.len(), |found| at + 1 + found);
            let made = self.parent(&path[..at]).and_then(|(parent, name)| {
                match mkdirat(&parent, OsStr::from_bytes(name), Mode::from_bits_truncate(0o755)) {
                    Ok(()) => Ok(()),
                    Err(Errno::EEXIST) if node(&parent, name)? == Node::Directory => Ok(()),
                    Err(e) => Err(e.into()),
                }
            });
            made.map_err(|why| self.failure(&path[..at], why))?;
        }
        Ok(())
    }

    /// Writes `content` to a new file at `path`, with the directories above it; `executable` for everybody or nobody.
    ///
    /// # Errors
    /// [`Status::Internal`], also where something stands there already.
    pub fn create(&self, path: &[u8], executable: bool, content: &mut dyn io::Read) -> Outcome<()> {
        self.make_directories(directory(path))?;
        self.create_with(path, if executable { 0o755 } else { 0o644 }, content).map_err(|why| self.failure(path, why))
    }

    fn create_with(&self, path: &[u8], mode: u32, content: &mut dyn io::Read) -> Result<(), Unread> {
        let (parent, name) = self.parent(path)?;
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = nix::fcntl::openat(&parent, OsStr::from_bytes(name), flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let mut file = File::from(file);
        io::copy(content, &mut file)?;
        // After the content, and past the umask: what a tree looks like is no matter of who builds it.
        fchmod(&file, Mode::from_bits_truncate(mode))?;
        Ok(())
    }

    /// Makes a symbolic link with the text `target` at `path`, with the directories above it.
    ///
    /// # Errors
    /// [`Status::Internal`], also where something stands there already.
    pub fn link(&self, path: &[u8], target: &[u8]) -> Outcome<()> {
        self.make_directories(directory(path))?;
        let made = self.parent(path).and_then(|(parent, name)| {
            symlinkat(OsStr::from_bytes(target), &parent, OsStr::from_bytes(name)).map_err(Unread::from)
        });
        made.map_err(|why| self.failure(path, why))
    }

    /// Puts `content` in the place of the regular file at `path`, under its mode. Another name of the same file keeps
    /// the old content.
    ///
    /// # Errors
    /// [`Status::Internal`].
    pub fn replace(&self, path: &[u8], content: &[u8]) -> Outcome<()> {
        let beside = [path, b".headwater-new"].concat();
        let replaced = self.node(path).and_then(|found| {
            let Node::File { mode, .. } = found else { return Err(Unread::NotRegular) };
            let (parent, name) = self.parent(path)?;
            let renamed = self.create_with(&beside, mode, &mut &*content).and_then(|()| {
                let from = OsStr::from_bytes(file_name(&beside));
                renameat(&parent, from, &parent, OsStr::from_bytes(name)).map_err(Unread::from)
            });
            if renamed.is_err() {
                let _ = unlinkat(&parent, OsStr::from_bytes(file_name(&beside)), UnlinkatFlags::NoRemoveDir);
            }
            renamed
        });
        replaced.map_err(|why| self.failure(path, why))
    }

    /// Removes what stands at `path`, with everything in it, and says whether anything did.
    ///
    /// # Errors
    /// [`Status::Internal`], also where a link is on the way to it.
    pub fn remove(&self, path: &[u8]) -> Outcome<bool> {
        match self.remove_node(path) {
            Ok(()) => Ok(true),
            Err(why) if why.is_absent() => Ok(false),
            Err(why) => Err(self.failure(path, why)),
        }
    }

    fn remove_node(&self, path: &[u8]) -> Result<(), Unread> {
        let (parent, name) = self.parent(path)?;
        let how = match node(&parent, name)? {
            Node::Directory => {
                self.empty(path)?;
                UnlinkatFlags::RemoveDir
            }
            _ => UnlinkatFlags::NoRemoveDir,
        };
        Ok(unlinkat(&parent, OsStr::from_bytes(name), how)?)
    }

    fn empty(&self, directory: &[u8]) -> Result<(), Unread> {
        let mut children = Vec::new();
        self.list(directory, |name, _| {
            children.push(joined(directory, name));
            true
        })?;
        children.iter().try_for_each(|child| self.remove_node(child))
    }

    /// Removes everything in the tree.
    ///
    /// # Errors
    /// [`Status::Internal`].
    pub fn clear(&self) -> Outcome<()> {
        self.empty(b"").map_err(|why| self.failure(b"", why))
    }

    /// Whether nothing is in the tree.
    ///
    /// # Errors
    /// [`Status::Internal`].
    pub fn is_empty(&self) -> Outcome<bool> {
        let mut empty = true;
        let seen = self.list(b"", |_, _| {
            empty = false;
            false
        });
        seen.map(|()| empty).map_err(|why| self.failure(b"", why))
    }

    /// The failure that `why` is at `path`.
    #[must_use]
    pub fn failure(&self, path: &[u8], why: Unread) -> Failure {
        let root = shown(self.path.as_os_str().as_bytes());
        let failure = match path {
            b"" => Failure::io(root, why),
            _ => Failure::io(format!("{root}/{}", shown(path)), why),
        };
        failure.remedy(why.remedy())
    }

    fn too_many(&self, limit: usize) -> Failure {
        let message = format!("{}: more than {limit} files and directories", self.path.display());
        Failure::new(Status::Limit, message).remedy("a workspace holds a corpus: leave build products out of it")
    }

    /// Gives the name and the node of each entry of a directory to `visit`, until it says that it has enough.
    fn list(&self, path: &[u8], mut visit: impl FnMut(&[u8], Node) -> bool) -> Result<(), Unread> {
        if !path.is_empty() && path.split(|byte| *byte == b'/').count() >= DEPTH_LIMIT {
            return Err(Unread::TooDeep);
        }
        let directory = self.directory(path)?;
        for entry in Dir::from_fd(directory.try_clone()?)?.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if path.len() + 1 + name.len() > PATH_LIMIT {
                return Err(Unread::PathTooLong);
            }
            let node = match node(&directory, name) {
                // Gone between the listing and the look.
                Err(why) if why.is_absent() => continue,
                Err(why) => Node::Unlisted(why),
                Ok(node) => node,
            };
            if !visit(name, node) {
                break;
            }
        }
        Ok(())
    }

    fn directory(&self, path: &[u8]) -> Result<OwnedFd, Unread> {
        match path {
            b"" => Ok(nix::fcntl::openat(&self.root, ".", DIRECTORY, Mode::empty())?),
            _ => self.resolve(path, DIRECTORY),
        }
    }

    fn parent<'p>(&self, path: &'p [u8]) -> Result<(OwnedFd, &'p [u8]), Unread> {
        safe(path)?;
        Ok((self.directory(directory(path))?, file_name(path)))
    }

    fn resolve(&self, path: &[u8], flags: OFlag) -> Result<OwnedFd, Unread> {
        safe(path)?;
        // Without O_NOFOLLOW: that would make a link at the end of a directory's path look like a file.
        let how = OpenHow::new()
            .flags(flags.difference(OFlag::O_NOFOLLOW) | OFlag::O_CLOEXEC)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
        Ok(openat2(&self.root, OsStr::from_bytes(path), how)?)
    }
}

const DIRECTORY: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

/// Refuses a path that is no path below a root, before the system is asked about it.
fn safe(path: &[u8]) -> Result<(), Unread> {
    let component = |c: &[u8]| !matches!(c, b"" | b"." | b"..") && !c.contains(&0);
    if path.split(|byte| *byte == b'/').all(component) { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

/// The directory that a path is in, empty for the root.
fn directory(path: &[u8]) -> &[u8] {
    path[..path.len() - file_name(path).len()].strip_suffix(b"/").unwrap_or_default()
}

fn joined(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match directory {
        b"" => name.to_vec(),
        _ => [directory, b"/", name].concat(),
    }
}

fn node(parent: impl AsFd, name: &[u8]) -> Result<Node, Unread> {
    let stat = fstatat(&parent, OsStr::from_bytes(name), AtFlags::AT_SYMLINK_NOFOLLOW)?;
    Ok(match kind(&stat) {
        SFlag::S_IFREG => Node::File { size: size(&stat), mode: stat.st_mode & 0o7777 },
        SFlag::S_IFDIR => Node::Directory,
        SFlag::S_IFLNK => Node::Link { target: readlinkat(&parent, OsStr::from_bytes(name))?.into_vec() },
        SFlag::S_IFIFO => Node::Special(Special::Fifo),
        SFlag::S_IFSOCK => Node::Special(Special::Socket),
        SFlag::S_IFBLK => Node::Special(Special::BlockDevice),
        _ => Node::Special(Special::CharacterDevice),
    })
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

fn size(stat: &FileStat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::mkfifo;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;
    use tempfile::TempDir;

    fn tree() -> (TempDir, Tree) {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        (dir, tree)
    }

    fn paths(tree: &Tree) -> Vec<Vec<u8>> {
        tree.walk(|_| false).unwrap().into_keys().collect()
    }

    #[test]
    fn a_walk_names_what_is_there_and_opens_and_follows_nothing() {
        let (dir, tree) = tree();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/file"), "four").unwrap();
        symlink("/", dir.path().join("out")).unwrap();
        symlink("..", dir.path().join("a/up")).unwrap();
        mkfifo(&dir.path().join("fifo"), Mode::S_IRUSR).unwrap();
        let _socket = UnixListener::bind(dir.path().join("socket")).unwrap();
        let name = OsStr::from_bytes(b"line\nfeed\xff");
        fs::write(dir.path().join(name), "").unwrap();
        let found = tree.walk(|_| false).unwrap();
        let kinds: Vec<_> = found.iter().map(|(path, node)| (shown(path), node.clone())).collect();
        let at = |path: &str| kinds.iter().find(|(p, _)| p == path).map(|(_, n)| n.clone()).unwrap();
        assert_eq!(found.len(), 8);
        assert!(matches!(at("a/b/file"), Node::File { size: 4, .. }));
        assert_eq!(at("out"), Node::Link { target: b"/".to_vec() });
        assert_eq!(at("a/up"), Node::Link { target: b"..".to_vec() });
        assert_eq!(at("fifo"), Node::Special(Special::Fifo));
        assert_eq!(at("socket"), Node::Special(Special::Socket));
        assert!(matches!(at("line\\nfeed\\xff"), Node::File { .. }));
    }

    #[test]
    fn a_walk_passes_over_the_names_it_is_told_to() {
        let (dir, tree) = tree();
        fs::create_dir_all(dir.path().join(".git/objects")).unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        let found: Vec<_> = tree.walk(|name| name == b".git").unwrap().into_keys().collect();
        assert_eq!(found, [b"a".to_vec()]);
    }

    #[test]
    fn a_tree_of_two_thousand_levels_is_listed_to_the_limit_and_says_so() {
        let (dir, tree) = tree();
        let mut at = nix::fcntl::open(dir.path(), DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..2000 {
            mkdirat(&at, "d", Mode::S_IRWXU).unwrap();
            at = nix::fcntl::openat(&at, "d", DIRECTORY, Mode::empty()).unwrap();
        }
        let found = tree.walk(|_| false).unwrap();
        assert_eq!(found.len(), DEPTH_LIMIT);
        assert_eq!(found.values().filter(|node| **node == Node::Unlisted(Unread::TooDeep)).count(), 1);
        let removed = std::process::Command::new("rm").arg("-rf").arg(dir.path().join("d")).status().unwrap();
        assert!(removed.success());
    }

    #[test]
    fn paths_beyond_what_the_system_takes_are_stated_and_not_listed() {
        let (dir, tree) = tree();
        let mut at = nix::fcntl::open(dir.path(), DIRECTORY, Mode::empty()).unwrap();
        let name = "n".repeat(250);
        for _ in 0..20 {
            mkdirat(&at, &*name, Mode::S_IRWXU).unwrap();
            at = nix::fcntl::openat(&at, &*name, DIRECTORY, Mode::empty()).unwrap();
        }
        let found = tree.walk(|_| false).unwrap();
        assert_eq!(found.values().last(), Some(&Node::Unlisted(Unread::PathTooLong)));
        assert!(found.len() < 20);
    }

    #[test]
    fn a_tree_of_too_many_entries_is_refused_with_the_number() {
        let (dir, tree) = tree();
        for n in 0..10 {
            fs::write(dir.path().join(n.to_string()), "").unwrap();
        }
        assert_eq!(tree.walk_within(10, |_| false).unwrap().len(), 10);
        let failure = tree.walk_within(9, |_| false).unwrap_err();
        assert_eq!(failure.status, Status::Limit);
        assert!(failure.message.contains("more than 9 files"), "{}", failure.message);
    }

    #[test]
    fn a_file_is_opened_beneath_the_root_and_through_no_link() {
        let (dir, tree) = tree();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        fs::write(dir.path().join("file"), "inside").unwrap();
        symlink(outside.path(), dir.path().join("dir")).unwrap();
        symlink("file", dir.path().join("link")).unwrap();
        mkfifo(&dir.path().join("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        assert_eq!(tree.read(b"file", 6).unwrap(), b"inside");
        assert_eq!(tree.read(b"file", 5).unwrap_err(), Unread::TooLarge(5));
        assert_eq!(tree.read(b"dir/secret", 10).unwrap_err(), Unread::Link);
        assert_eq!(tree.read(b"link", 10).unwrap_err(), Unread::Link);
        assert_eq!(tree.read(b"fifo", 10).unwrap_err(), Unread::NotRegular);
        for path in [&b"../file"[..], b"/file", b"", b"./file", b"a//b", b"file\0"] {
            assert_eq!(tree.read(path, 10).unwrap_err(), Unread::System(Errno::EINVAL), "{path:?}");
        }
    }

    #[test]
    fn a_file_is_made_under_the_mode_that_is_asked_for_and_over_nothing() {
        let (dir, tree) = tree();
        tree.create(b"a/b/run", true, &mut &b"x"[..]).unwrap();
        tree.create(b"a/b/text", false, &mut &b"y"[..]).unwrap();
        let mode = |path: &str| fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!((mode("a/b/run"), mode("a/b/text")), (0o755, 0o644));
        assert!(tree.create(b"a/b/text", false, &mut &b"z"[..]).is_err());
        assert!(tree.create(b"a/b/text/below", false, &mut &b"z"[..]).is_err());
        assert_eq!(fs::read(dir.path().join("a/b/text")).unwrap(), b"y");
    }

    #[test]
    fn nothing_is_made_or_removed_through_a_link() {
        let (dir, tree) = tree();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "k").unwrap();
        tree.link(b"dir", outside.path().as_os_str().as_bytes()).unwrap();
        assert!(tree.create(b"dir/new", false, &mut &b""[..]).is_err());
        assert!(tree.link(b"dir/new", b"x").is_err());
        assert!(tree.remove(b"dir/kept").is_err());
        assert_eq!(tree.node(b"dir/kept").unwrap_err(), Unread::Link);
        assert!(tree.replace(b"dir/kept", b"").is_err());
        assert!(tree.remove(b"dir").unwrap(), "the link itself may go");
        tree.link(b"below/dir", outside.path().as_os_str().as_bytes()).unwrap();
        assert!(tree.remove(b"below").unwrap());
        assert!(!tree.remove(b"below").unwrap());
        assert!(!tree.remove(b"below/dir").unwrap());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
        assert!(paths(&tree).is_empty());
        drop(dir);
    }

    #[test]
    fn replacing_a_file_leaves_its_other_names_alone() {
        let (dir, tree) = tree();
        let outside = tempfile::tempdir().unwrap();
        let other = outside.path().join("other");
        fs::write(&other, "old").unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o750)).unwrap();
        fs::hard_link(&other, dir.path().join("file")).unwrap();
        tree.replace(b"file", b"new").unwrap();
        assert_eq!(fs::read(dir.path().join("file")).unwrap(), b"new");
        assert_eq!(fs::metadata(dir.path().join("file")).unwrap().permissions().mode() & 0o7777, 0o750);
        assert_eq!(fs::read(&other).unwrap(), b"old");
        assert_eq!(paths(&tree), [b"file".to_vec()]);
    }

    #[test]
    fn a_root_that_is_a_link_or_a_file_is_no_tree() {
        let (dir, _tree) = tree();
        symlink(dir.path(), dir.path().join("link")).unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(Tree::open(&dir.path().join("link")).is_err());
        assert!(Tree::open(&dir.path().join("file")).is_err());
        assert!(Tree::open(&dir.path().join("absent")).is_err());
    }
}
