//! A view as a list: what `view --print` prints, and what a test holds a session to.

use super::{Item, Kind, Shown, View, on_one_line};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// What may be written at an item and below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Writes {
    /// Nothing.
    No,
    /// What is there, and no new name.
    Present,
    /// Everything that this user's permissions let it.
    Yes,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Where the session sees it, or the name that stands for a place which is not yet known.
    pub path: String,
    /// `file`, `directory`, `link`, `processes` or `devices`.
    pub kind: &'static str,
    /// `ro`, `rw`, `private`, `link`, `hidden` or `memory`.
    pub mode: &'static str,
    /// What may be written there.
    pub writes: Writes,
    /// Where it is on the host.
    pub source: Option<PathBuf>,
    /// Where it leads, for a link.
    pub target: Option<PathBuf>,
    /// What it is.
    pub what: &'static str,
}

/// A whole view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct List {
    /// `host` or `closure`.
    pub view: String,
    /// Where programs are found, after the engine's directory.
    pub programs: Vec<PathBuf>,
    /// The items, in the order in which they are put in place.
    pub items: Vec<Row>,
}

impl List {
    /// The list of `view`. Each of `unknown` is a path whose item is named by the word beside it, with no source.
    #[must_use]
    pub fn of(view: &View, unknown: &[(&Path, &str)]) -> Self {
        let mut items = Vec::new();
        for item in view.items() {
            let mut row = Row::of(item);
            if let Some((_, word)) = unknown.iter().find(|(path, _)| *path == item.path) {
                // Below its directory, where it has one that every session knows.
                row.source = None;
                if item.path.starts_with(super::OPT) {
                    row.what = "not found here"
                } else {
                    row.path = (*word).to_owned()
                }
            }
            items.push(row);
            if item.shown == Shown::Devices {
                items.push(Row { path: format!("{}/shm", item.path.display()), ..Row::of(&shared_memory()) });
            }
        }
        Self { view: view.kind().to_string(), programs: view.programs().to_vec(), items }
    }

    /// The list as lines: mode, kind, path, what it is, and the source where it is another path.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text =
            format!("The {} view, {} items. Nothing else of the host is there.\n\n", self.view, self.items.len());
        for row in &self.items {
            text.push_str(&format!("{:8} {:10} {}", row.mode, row.kind, on_one_line(Path::new(&row.path))));
            if let Some(target) = &row.target {
                text.push_str(&format!(" -> {}", on_one_line(target)));
            }
            text.push_str(&format!("  ({}", row.what));
            if let Some(source) = row.source.as_ref().filter(|source| **source != Path::new(&row.path)) {
                text.push_str(&format!(": {}", on_one_line(source)));
            }
            text.push_str(")\n");
        }
        let programs: Vec<_> = self.programs.iter().map(|path| on_one_line(path)).collect();
        text.push_str(&format!("\nPrograms are found in {}, after the engine.\n", programs.join(", ")));
        if self.view == Kind::Host.to_string() {
            text.push_str("Of a tree that is shown, the session sees what this user can read.\n");
        }
        text
    }
}

impl Row {
    fn of(item: &Item) -> Self {
        let of_source =
            |source: &Path| if fs::metadata(source).is_ok_and(|found| found.is_dir()) { "directory" } else { "file" };
        let (kind, mode, writes) = match &item.shown {
            Shown::ReadOnly(source) => (of_source(source), "ro", Writes::No),
            Shown::ReadWrite(_) => ("directory", "rw", Writes::Yes),
            Shown::Given(_) => ("file", "memory", Writes::No),
            Shown::Link(_) => ("link", "link", Writes::No),
            Shown::Processes => ("processes", "private", Writes::No),
            Shown::Devices => ("devices", "private", Writes::Present),
            Shown::Memory { .. } => ("directory", "private", Writes::Yes),
            Shown::Hidden => ("directory", "hidden", Writes::No),
        };
        let source = match &item.shown {
            Shown::ReadOnly(source) | Shown::ReadWrite(source) => Some(source.clone()),
            _ => None,
        };
        let target = match &item.shown {
            Shown::Link(target) => Some(target.clone()),
            _ => None,
        };
        Self { path: item.path.to_string_lossy().into_owned(), kind, mode, writes, source, target, what: item.what }
    }
}

/// The one directory of the devices in which files can be made.
fn shared_memory() -> Item {
    let shown = Shown::Memory { mode: 0o1777, bytes: 0 };
    Item { path: PathBuf::new(), shown, what: "shared memory of the session" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::testing::Place;

    #[test]
    fn a_list_has_every_item_with_what_may_be_written_there() {
        let place = Place::new("");
        let view = place.view();
        let list = List::of(&view, &[(place.workspace.as_path(), "WORKSPACE")]);
        assert_eq!(list.items.len(), view.items().len() + 1);
        let row = |path: &str| list.items.iter().find(|row| row.path == path).unwrap();
        assert_eq!((row("/usr").mode, row("/usr").writes, row("/usr").kind), ("ro", Writes::No, "directory"));
        assert_eq!((row("/dev").writes, row("/dev/shm").writes), (Writes::Present, Writes::Yes));
        assert_eq!((row("/opt/headwater/guard.so").mode, row("/tmp").mode), ("memory", "private"));
        assert_eq!((row("WORKSPACE").mode, &row("WORKSPACE").source), ("rw", &None));
        let text = list.text();
        assert!(text.contains("rw       directory  WORKSPACE  (the workspace)\n"), "{text}");
        assert!(text.contains("/opt/headwater/bin/headwater  (the engine: /usr/bin/true)\n"), "{text}");
        assert!(!text.contains(place.workspace.to_str().unwrap()), "{text}");
    }
}
