//! A transcript as a file. Whoever names it may not have written it.

use crate::corpus::census::bounded_text;
use crate::probe::declared::one_line;
use crate::status::{Failure, Outcome};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The bytes of a transcript above which it is not read.
pub const LARGEST: usize = 1 << 30;

/// The text of the file at `path`. The file is not reached through a link, and a FIFO or a device blocks nobody.
///
/// # Errors
/// Where it cannot be opened, is no regular file, is above [`LARGEST`] bytes, or is no UTF-8.
pub fn read(path: &Path) -> Outcome<String> {
    open(path).and_then(|file| bounded_text(file, LARGEST)).map_err(|error| {
        let is_link = error.raw_os_error() == Some(Errno::ELOOP as i32);
        let reason = if is_link { "a link, and links are not followed".to_owned() } else { error.to_string() };
        Failure::unreadable(format!("{}: {reason}", shown(path)))
            .remedy("name a transcript: a regular file in UTF-8 that this user may read")
    })
}

/// A path as it stands in output: on one line.
#[must_use]
pub fn shown(path: &Path) -> String {
    one_line(&path.to_string_lossy()).into_owned()
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    // A sparse file has more bytes than anybody wrote: its length is held before any of it is read.
    if metadata.len() > LARGEST as u64 {
        return Err(io::Error::other(format!("larger than {LARGEST} bytes")));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Status;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_no_file_of_text_is_status_3_and_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("text.md"), "t\u{e9}xt").unwrap();
        assert_eq!(read(&at("text.md")).unwrap(), "t\u{e9}xt");
        symlink("text.md", at("link.md")).unwrap();
        nix::unistd::mkfifo(&at("fifo.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(at("bytes.md"), b"\xff").unwrap();
        File::create(at("sparse.md")).unwrap().set_len(1 << 40).unwrap();
        for (path, reason) in [
            (at("link.md"), "a link, and links are not followed"),
            (at("fifo.md"), "not a regular file"),
            (at("bytes.md"), "not UTF-8"),
            (at("sparse.md"), "larger than 1073741824 bytes"),
            (at("none.md"), "No such file"),
            (at("text.md/x"), "Not a directory"),
            (at("a\nb.md"), "No such file"),
            (dir.path().to_path_buf(), "not a regular file"),
            ("/dev/zero".into(), "not a regular file"),
        ] {
            let failure = read(&path).unwrap_err();
            assert_eq!(failure.status, Status::Unreadable);
            assert!(failure.message.contains(reason), "{}", failure.message);
            assert!(failure.message.starts_with(&shown(&path)) && !failure.message.contains('\n'));
            assert!(failure.remedy.is_some());
        }
    }
}
