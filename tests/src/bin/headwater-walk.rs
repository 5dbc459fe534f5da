//! Walks the whole file system of the session it runs in and holds it to a list, as `headwater-recorder view --print`
//! prints it: `headwater-walk LIST OUT`. Writes as JSON what does not agree.
//!
//! Nothing that was there is changed: a file is opened for writing and not written, and in a directory a file is made
//! and removed.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs::{self, DirEntry, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The name of the file that is made in each directory.
const MADE: &str = ".headwater-walk";
/// How many paths of a kind are told.
const TOLD: usize = 50;

struct Item {
    path: PathBuf,
    kind: String,
    writes: String,
    target: Option<PathBuf>,
}

#[derive(Default)]
struct Found {
    walked: usize,
    strays: Vec<String>,
    unreached: Vec<String>,
    written: Vec<String>,
    refused: Vec<String>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let list = arguments.next().context("a list")?;
    let out = arguments.next().context("where to write")?;
    let items = items(&serde_json::from_slice(&fs::read(list)?)?)?;
    let mut found = Found::default();
    for item in &items {
        if let Err(why) = reach(item) {
            found.unreached.push(format!("{}: {why}", item.path.display()));
        }
    }
    let mut left = vec![PathBuf::from("/")];
    while let Some(directory) = left.pop() {
        found.directory(&directory, &items);
        // What cannot be listed is not reached.
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            found.walked += 1;
            let path = entry.path();
            let in_list = items.iter().any(|item| path.starts_with(&item.path) || item.path.starts_with(&path));
            if !in_list {
                found.strays.push(path.display().to_string());
            }
            // Not of the entry, which tells of what lies under a mount.
            match fs::symlink_metadata(&path).map(|found| found.file_type()) {
                // The processes of the session come and go.
                Ok(kind) if kind.is_dir() && !is_process(&entry) => left.push(path),
                Ok(kind) if kind.is_file() || kind.is_char_device() => found.file(&path, kind.is_file(), &items),
                _ => {}
            }
        }
    }
    let Found { walked, mut strays, unreached, mut written, mut refused } = found;
    for told in [&mut strays, &mut written, &mut refused] {
        told.sort();
        told.truncate(TOLD);
    }
    let report = json!({
        "items": items.len(), "walked": walked, "strays": strays, "unreached": unreached,
        "written": written, "refused": refused,
    });
    fs::write(out, report.to_string())?;
    Ok(())
}

fn items(list: &Value) -> Result<Vec<Item>> {
    let logs = std::env::var("HEADWATER_SHADOW_LOG_DIR").unwrap_or_default();
    let rows = list["items"].as_array().context("items")?;
    let text = |row: &Value, key: &str| row[key].as_str().map(str::to_owned).with_context(|| format!("{key}: {row}"));
    rows.iter()
        .map(|row| {
            let path = text(row, "path")?;
            let path = if path == "LOGS" { logs.clone() } else { path };
            let target = row["target"].as_str().map(PathBuf::from);
            Ok(Item { path: path.into(), kind: text(row, "kind")?, writes: text(row, "writes")?, target })
        })
        .collect()
}

/// Whether an item is there, as what it is said to be.
fn reach(item: &Item) -> Result<(), String> {
    let failed = |e: io::Error| e.to_string();
    let kind = fs::symlink_metadata(&item.path).map_err(failed)?.file_type();
    match item.kind.as_str() {
        "file" if kind.is_file() => fs::File::open(&item.path).map(drop).map_err(failed),
        "directory" | "processes" | "devices" if kind.is_dir() => fs::read_dir(&item.path).map(drop).map_err(failed),
        "link" if kind.is_symlink() => match fs::read_link(&item.path) {
            Ok(target) if Some(&target) == item.target.as_ref() => Ok(()),
            other => Err(format!("it leads to {other:?}")),
        },
        listed => Err(format!("it is no {listed}")),
    }
}

fn is_process(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    entry.path().parent() == Some(Path::new("/proc")) && name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
}

/// What the list says of writing at `path`: of the item that it is or lies in most closely.
fn writes<'a>(path: &Path, items: &'a [Item]) -> &'a str {
    let holding = items.iter().filter(|item| path.starts_with(&item.path));
    holding.max_by_key(|item| item.path.components().count()).map_or("no", |item| &item.writes)
}

impl Found {
    fn directory(&mut self, path: &Path, items: &[Item]) {
        let made = path.join(MADE);
        let opened = OpenOptions::new().write(true).create_new(true).open(&made);
        if opened.is_ok() {
            // One that stays is met again as a file of its directory.
            let _ = fs::remove_file(&made);
        }
        self.hold(path, opened.map(drop), writes(path, items) == "yes");
    }

    fn file(&mut self, path: &Path, is_file: bool, items: &[Item]) {
        const FLAGS: i32 = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
        let opened = OpenOptions::new().write(true).custom_flags(FLAGS).open(path);
        let may = match writes(path, items) {
            "yes" => true,
            "present" => !is_file,
            _ => false,
        };
        self.hold(path, opened.map(drop), may);
    }

    /// Notes where writing and the list do not agree.
    fn hold(&mut self, path: &Path, opened: io::Result<()>, may: bool) {
        match opened {
            Ok(()) if !may => self.written.push(path.display().to_string()),
            // What runs is not written, and a terminal that this session does not have is not opened.
            Err(e) if may && !matches!(e.raw_os_error(), Some(nix::libc::ETXTBSY | nix::libc::ENXIO)) => {
                self.refused.push(format!("{}: {e}", path.display()));
            }
            _ => {}
        }
    }
}
