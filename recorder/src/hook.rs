//! The intent hook of a corpus: how many lines it wrote for this session in the log directory of the run.
//!
//! The session can write there too, so what is found is counted and nothing of it is believed: links are not followed,
//! what is no regular file is not opened, and the reading is bounded.

use nix::fcntl::OFlag;
use serde::Deserialize;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The most that is read of all files together, in bytes.
const READ: u64 = 64 << 20;
/// The most files that are looked at.
const FILES: usize = 256;

#[derive(Deserialize)]
struct Line {
    probe_session: String,
}

/// How many lines of the files in `logs` are JSON objects with `"probe_session"` set to `session`. Zero says that the
/// hook was not live.
#[must_use]
pub fn lines(logs: &Path, session: &str) -> u64 {
    let mut room = READ;
    let mut count = 0;
    let Ok(entries) = fs::read_dir(logs) else { return 0 };
    let mut names: Vec<_> = entries.take(FILES).filter_map(|entry| Some(entry.ok()?.path())).collect();
    names.sort();
    for path in names {
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let Ok(file) = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) else { continue };
        if !file.metadata().is_ok_and(|m| m.is_file()) {
            continue;
        }
        let mut reader = BufReader::new(file.take(room));
        let mut line = Vec::new();
        while let Ok(read @ 1..) = reader.read_until(b'\n', &mut line) {
            room = room.saturating_sub(read as u64);
            count += u64::from(serde_json::from_slice::<Line>(&line).is_ok_and(|l| l.probe_session == session));
            line.clear();
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::lines;
    use std::fs;

    #[test]
    fn only_lines_of_this_session_count_and_only_in_regular_files() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(lines(dir.path(), "s"), 0);
        let log = "{\"probe_session\":\"s\",\"x\":1}\n{\"probe_session\":\"t\"}\nno json\n{\"probe_session\":\"s\"}";
        fs::write(dir.path().join("intent.jsonl"), log).unwrap();
        std::os::unix::fs::symlink(dir.path().join("intent.jsonl"), dir.path().join("link")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::create_dir(dir.path().join("directory")).unwrap();
        assert_eq!(lines(dir.path(), "s"), 2);
    }
}
