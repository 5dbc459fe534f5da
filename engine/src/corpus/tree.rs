//! A directory tree that is read without leaving it.
//!
//! Whatever stands in a tree may have been put there by somebody hostile. Every path is therefore opened one component
//! after another, relative to the root, and no component may be a link.

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// A tree below a root.
#[derive(Debug)]
pub struct Tree {
    root: OwnedFd,
}

/// What stands at a path, itself and not what it links to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl What {
    fn of(stat: &FileStat) -> Self {
        match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => Self::File,
            SFlag::S_IFDIR => Self::Directory,
            SFlag::S_IFLNK => Self::Link,
            _ => Self::Special,
        }
    }
}

impl Tree {
    /// The tree below `root`, which itself may be reached through links.
    ///
    /// # Errors
    /// Where it is no directory that can be opened.
    pub fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Self { root: nix::fcntl::open(root, flags, Mode::empty())? })
    }

    /// The root as a directory of its own.
    pub(super) fn top(&self) -> io::Result<OwnedFd> {
        Ok(openat(&self.root, c".", OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?)
    }

    /// What stands at `path`, relative to the root. The empty path is the root.
    ///
    /// # Errors
    /// Where nothing stands there, where a directory on the way is a link, or where `path` is not plainly below the
    /// root.
    pub fn what(&self, path: &str) -> io::Result<What> {
        if path.is_empty() {
            return Ok(What::Directory);
        }
        self.beside(path, |directory, name| Ok(what_at(directory, name)?))
    }

    /// The regular file at `path`, relative to the root, opened to be read.
    ///
    /// # Errors
    /// As [`Tree::what`], and where it is anything but a regular file.
    pub fn file(&self, path: &str) -> io::Result<File> {
        self.beside(path, |directory, name| match what_at(directory, name)? {
            What::File => regular(directory, name),
            _ => Err(not_a_file()),
        })
    }

    /// The directory at `path`, relative to the root.
    ///
    /// # Errors
    /// As [`Tree::what`], and where it is no directory.
    pub fn directory(&self, path: &str) -> io::Result<OwnedFd> {
        self.beside(path, |parent, name| Ok(directory(parent, name)?))
    }

    /// Calls `with` with the directory that holds `path` and the last component.
    fn beside<T>(&self, path: &str, with: impl FnOnce(BorrowedFd<'_>, &str) -> io::Result<T>) -> io::Result<T> {
        if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a path below the root"));
        }
        let Some((parents, name)) = path.rsplit_once('/') else {
            return with(self.root.as_fd(), path);
        };
        let mut at = None;
        for part in parents.split('/') {
            let here = at.as_ref().unwrap_or(&self.root);
            at = Some(directory(here.as_fd(), part)?);
        }
        with(at.as_ref().unwrap_or(&self.root).as_fd(), name)
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

fn what_at(directory: BorrowedFd<'_>, name: &str) -> Result<What, Errno> {
    fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).map(|stat| What::of(&stat))
}

/// A directory in a directory, not through a link.
pub(super) fn directory(parent: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// A regular file in a directory, not through a link; a FIFO or a device put in its place blocks nobody.
pub(super) fn regular(directory: BorrowedFd<'_>, name: &str) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let fd = openat(directory, name, flags, Mode::empty())?;
    match What::of(&fstat(&fd)?) {
        What::File => Ok(File::from(fd)),
        _ => Err(not_a_file()),
    }
}

/// What an entry of a directory is, where the directory itself does not say.
pub(super) fn entry_what(directory: BorrowedFd<'_>, entry: &nix::dir::Entry) -> Result<What, Errno> {
    use nix::dir::Type;
    Ok(match entry.file_type() {
        Some(Type::File) => What::File,
        Some(Type::Directory) => What::Directory,
        Some(Type::Symlink) => What::Link,
        Some(_) => What::Special,
        None => What::of(&fstatat(directory, entry.file_name(), AtFlags::AT_SYMLINK_NOFOLLOW)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn nothing_is_reached_through_a_link_or_outside_of_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/f.md"), "x").unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("a", root.join("in")).unwrap();
        symlink("..", root.join("up")).unwrap();
        let tree = Tree::open(&root).unwrap();
        let mut text = String::new();
        tree.file("a/b/f.md").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
        assert_eq!(tree.what("").unwrap(), What::Directory);
        assert_eq!(tree.what("a/b").unwrap(), What::Directory);
        assert_eq!(tree.what("out").unwrap(), What::Link);
        for path in ["out", "in/b/f.md", "up/secret", "../secret", "a/../a/b/f.md", "/a/b/f.md", "a//b/f.md", "", "a/b"]
        {
            assert!(tree.file(path).is_err(), "{path}");
        }
        assert!(tree.what("in/b").is_err() && tree.what("a/b/g.md").is_err() && tree.what("a/\0").is_err());
        assert!(tree.directory("in").is_err() && tree.directory("a/b").is_ok());
    }

    #[test]
    fn a_fifo_blocks_nobody() {
        let dir = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&dir.path().join("f.md"), Mode::S_IRWXU).unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        assert_eq!(tree.what("f.md").unwrap(), What::Special);
        assert!(tree.file("f.md").is_err());
        assert!(regular(tree.root.as_fd(), "f.md").is_err());
    }
}
