//! Files that are written whole or not at all.

use crate::status::{Failure, Outcome, Status};
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempDir};

/// A file that is not yet at its place: it is written beside it, under a name of its own, and goes away unless it is
/// put in place.
#[derive(Debug)]
pub struct Draft {
    file: NamedTempFile,
    place: PathBuf,
}

impl Draft {
    /// A draft for `place`. It is made before anything is spent, so that a directory that cannot be written is known
    /// in time.
    ///
    /// # Errors
    /// [`Status::Usage`] where `place` exists or its directory does not; [`Status::Internal`] where the directory
    /// cannot be written.
    pub fn new(place: &Path) -> Outcome<Self> {
        let place = std::path::absolute(place).map_err(|e| Failure::io(place.display(), e))?;
        refuse_existing(&place)?;
        let directory = directory_for(&place)?;
        let file = tempfile::Builder::new().prefix(".headwater-").suffix(".part").tempfile_in(directory);
        let file = file.map_err(|e| unwritable(directory, &e))?;
        Ok(Self { file, place })
    }

    /// Where it will be.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Where it is now.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Writes its whole content, to the disk.
    ///
    /// # Errors
    /// [`Status::Internal`], with the path.
    pub fn write(&self, text: &[u8]) -> Outcome<()> {
        let mut file = self.file.as_file();
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text))
            .and_then(|()| file.sync_all())
            .map_err(|e| unwritable(&self.place, &e))
    }

    /// Puts it in place, unless something is there by now.
    ///
    /// # Errors
    /// [`Status::Internal`], with the path.
    pub fn put(self) -> Outcome<PathBuf> {
        let mode = PermissionsExt::from_mode(0o644);
        self.file.as_file().set_permissions(mode).map_err(|e| unwritable(&self.place, &e))?;
        self.file.persist_noclobber(&self.place).map_err(|e| {
            // What it holds was paid for: it stays where it is.
            let kept = e.file.keep().map(|(_, path)| format!("; it is kept as {}", path.display())).unwrap_or_default();
            Failure::io(self.place.display(), format!("{}{kept}", e.error)).remedy("move it to a name that is free")
        })?;
        // The name is durable once its directory is.
        let directory = self.place.parent().map(File::open);
        if let Some(Ok(directory)) = directory {
            directory.sync_all().map_err(|e| unwritable(&self.place, &e))?;
        }
        Ok(self.place)
    }
}

/// A directory of our own that goes away with everything in it, also where a session closed a directory to its owner.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// A new directory among the temporary ones, with a name that begins with `prefix`.
    ///
    /// # Errors
    /// [`Status::Internal`], with the directory that it should be in.
    pub fn new(prefix: &str) -> Outcome<Self> {
        let parent = std::env::temp_dir();
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(&parent);
        made.map(Self).map_err(|e| {
            Failure::io(parent.display(), e).remedy("make room there, or name another directory with TMPDIR")
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Leaves it where it is.
    pub fn keep(mut self) {
        self.0.disable_cleanup(true);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be listed cannot be removed. Nothing else works in it any more, so no path changes its meaning.
        let mut left = vec![self.path().to_path_buf()];
        while let Some(directory) = left.pop() {
            let _ = fs::set_permissions(&directory, PermissionsExt::from_mode(0o700));
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            left.extend(entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path()));
        }
    }
}

/// A new file that only this user can read, written as the session goes.
///
/// # Errors
/// [`Status::Usage`] where it exists or its directory does not; [`Status::Internal`] where it cannot be made.
pub fn create_log(path: &Path) -> Outcome<File> {
    let path = &std::path::absolute(path).map_err(|e| Failure::io(path.display(), e))?;
    refuse_existing(path)?;
    directory_for(path)?;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(|e| unwritable(path, &e))
}

fn directory_for(path: &Path) -> Outcome<&Path> {
    path.parent().filter(|directory| directory.is_dir()).ok_or_else(|| {
        Failure::new(Status::Usage, format!("there is no directory for {}", path.display())).remedy("make it first")
    })
}

fn refuse_existing(path: &Path) -> Outcome<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(Failure::new(Status::Usage, format!("{} exists, and nothing is overwritten", path.display()))
            .remedy("name another file, or move this one away"));
    }
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::io(path.display(), error).remedy("make room there, or write somewhere else")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_at_its_place_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("t.md");
        let draft = Draft::new(&place).unwrap();
        draft.write(b"half").unwrap();
        drop(draft);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let draft = Draft::new(&place).unwrap();
        draft.write(b"a long first try").unwrap();
        draft.write(b"whole").unwrap();
        draft.put().unwrap();
        assert_eq!(fs::read(&place).unwrap(), b"whole");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_scratch_directory_goes_away_whatever_was_closed_in_it_unless_it_is_kept() {
        crate::confine::testing::as_ordinary_user!();
        let outside = tempfile::tempdir().unwrap();
        fs::set_permissions(outside.path(), PermissionsExt::from_mode(0o500)).unwrap();
        let fill = |scratch: &Scratch| {
            let closed = scratch.path().join("a/closed/b");
            fs::create_dir_all(&closed).unwrap();
            fs::write(closed.join("file"), "").unwrap();
            std::os::unix::fs::symlink(outside.path(), scratch.path().join("a/link")).unwrap();
            for directory in ["a/closed/b", "a/closed", "a"] {
                fs::set_permissions(scratch.path().join(directory), PermissionsExt::from_mode(0o0)).unwrap();
            }
            scratch.path().to_path_buf()
        };
        let scratch = Scratch::new("headwater-").unwrap();
        let path = fill(&scratch);
        drop(scratch);
        assert!(!path.exists());
        let mode = fs::metadata(outside.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o500, "a link is not followed");

        let scratch = Scratch::new("headwater-").unwrap();
        let path = scratch.path().to_path_buf();
        scratch.keep();
        assert!(path.is_dir());
        fs::remove_dir(path).unwrap();
    }

    #[test]
    fn nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("t.md");
        let draft = Draft::new(&place).unwrap();
        fs::write(&place, "mine").unwrap();
        assert_eq!(Draft::new(&place).unwrap_err().status, Status::Usage);
        assert_eq!(create_log(&place).unwrap_err().status, Status::Usage);
        draft.write(b"ours").unwrap();
        assert!(draft.put().unwrap_err().message.contains("it is kept as"));
        assert_eq!(fs::read(&place).unwrap(), b"mine");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
        assert_eq!(Draft::new(&dir.path().join("no/t.md")).unwrap_err().status, Status::Usage);
    }
}
