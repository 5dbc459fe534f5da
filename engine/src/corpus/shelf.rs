//! Shelves: where the documents of a kind stand.
//!
//! `*` and `?` do not cross a `/`, `**` does. Where several shelves match a path, one without a wildcard beats the
//! others, then the longer literal prefix, then the byte order of the name.

use super::CorpusError;
use super::declared::At;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelf {
    /// The glob, relative to the root.
    pub path: String,
    /// Whether every document has the shelf's kind; otherwise a document names its own.
    pub homogeneous: bool,
    /// The kind of its documents, or what their kinds inherit from.
    pub kind: Option<String>,
}

impl Shelf {
    /// What stands before the first wildcard.
    fn literal(&self) -> &str {
        self.path.split(['*', '?', '[', '{', '\\']).next().unwrap_or_default()
    }

    /// The directory that the glob names before its first wildcard, empty for the root.
    #[must_use]
    pub fn directory(&self) -> &str {
        self.literal().rsplit_once('/').map_or("", |(directory, _)| directory)
    }

    /// Whether the glob spells out `path`, a directory or a file: hidden ones are read only where a shelf does so.
    #[must_use]
    pub fn spells_out(&self, path: &str) -> bool {
        let whole = self.literal() == self.path && self.path == path;
        whole || self.directory().strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    pub(super) fn read(at: &At<'_>) -> Result<Self, CorpusError> {
        let fields = at.fields(&["path", "homogeneous", "kind"])?;
        let path = fields.require("path")?;
        let homogeneous = fields.require("homogeneous")?.boolean()?;
        let kind = if homogeneous { Some(fields.require("kind")?) } else { fields.get("kind") };
        let kind = kind.map(At::text).transpose()?.map(str::to_owned);
        let glob = path.text()?;
        if glob.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(path
                .error(format!("`{glob}` matches no document"))
                .remedy("write a glob relative to the root, without `.`, `..` or an empty part: docs/decisions/*.md"));
        }
        Ok(Self { path: glob.to_owned(), homogeneous, kind })
    }
}

/// Every shelf, matched at once.
#[derive(Debug, Clone, Default)]
pub struct Shelves {
    by_name: BTreeMap<String, Shelf>,
    /// Names in the order of precedence: the order of the globs in `set`.
    order: Vec<String>,
    set: GlobSet,
}

impl Shelves {
    pub(super) fn read(at: &At<'_>) -> Result<Self, CorpusError> {
        let mut by_name = BTreeMap::new();
        let mut globs = Vec::new();
        for (name, at) in at.entries()? {
            let shelf = Shelf::read(&at)?;
            let glob = GlobBuilder::new(&shelf.path)
                .literal_separator(true)
                .build()
                .map_err(|e| at.error(format!("`{}` is no glob: {}", shelf.path, e.kind())))?;
            globs.push((shelf.literal() != shelf.path, Reverse(shelf.literal().len()), name, glob));
            by_name.insert(name.to_owned(), shelf);
        }
        globs.sort_by(|a, b| (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)));
        let mut set = GlobSetBuilder::new();
        let mut order = Vec::new();
        for (_, _, name, glob) in globs {
            order.push(name.to_owned());
            set.add(glob);
        }
        let set = set.build().map_err(|e| at.error(e))?;
        Ok(Self { by_name, order, set })
    }

    /// The shelf that a path stands on.
    #[must_use]
    pub fn of(&self, path: &str) -> Option<(&str, &Shelf)> {
        let best = self.set.matches(path).into_iter().min()?;
        let name = self.order.get(best)?;
        Some((name, self.by_name.get(name)?))
    }

    /// Every shelf, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Shelf)> {
        self.by_name.iter().map(|(name, shelf)| (name.as_str(), shelf))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::declared;

    fn shelves(text: &str) -> Result<Shelves, CorpusError> {
        let node = declared::read("f", text).unwrap();
        Shelves::read(&At::top("f", &node))
    }

    fn shelf(path: &str) -> String {
        format!("{{path: '{path}', homogeneous: true, kind: k}}\n")
    }

    #[test]
    fn a_star_stops_at_a_slash_and_two_stars_do_not() {
        let text = format!("one: {}two: {}", shelf("docs/a/*.md"), shelf("docs/b/**/*.md"));
        let shelves = shelves(&text).unwrap();
        let of = |path| shelves.of(path).map(|(name, _)| name);
        assert_eq!(of("docs/a/x.md"), Some("one"));
        assert_eq!(of("docs/a/c/x.md"), None);
        assert_eq!(of("docs/b/x.md"), Some("two"));
        assert_eq!(of("docs/b/c/d/x.md"), Some("two"));
        assert_eq!(of("x/docs/a/x.md"), None);
    }

    #[test]
    fn an_exact_path_beats_a_wildcard_then_the_longer_prefix_then_the_name() {
        let text = [
            ("z_exact", "docs/a.md"),
            ("wide", "docs/**"),
            ("deep", "docs/deep/*.md"),
            ("m", "docs/same/*.md"),
            ("b", "docs/same/?.md"),
        ]
        .map(|(name, path)| format!("{name}: {}", shelf(path)))
        .concat();
        let shelves = shelves(&text).unwrap();
        let of = |path| shelves.of(path).map(|(name, _)| name);
        assert_eq!(of("docs/a.md"), Some("z_exact"));
        assert_eq!(of("docs/deep/x.md"), Some("deep"));
        assert_eq!(of("docs/other/x.md"), Some("wide"));
        assert_eq!(of("docs/same/x.md"), Some("b"));
        assert_eq!(of("docs/same/xy.md"), Some("m"));
    }

    #[test]
    fn a_shelf_spells_out_the_directories_before_its_first_wildcard() {
        let shelf = |path: &str| Shelf { path: path.into(), homogeneous: true, kind: None };
        assert_eq!(shelf("docs/a/*.md").directory(), "docs/a");
        assert_eq!(shelf("docs/a/x-*.md").directory(), "docs/a");
        assert_eq!(shelf("*.md").directory(), "");
        let notes = shelf(".notes/in/*.md");
        assert!(notes.spells_out(".notes") && notes.spells_out(".notes/in"));
        assert!(!notes.spells_out(".note") && !notes.spells_out(".notes/in/.x.md"));
        assert!(shelf("docs/.x.md").spells_out("docs/.x.md"));
        assert!(!shelf("**/*.md").spells_out(".git"));
    }

    #[test]
    fn a_glob_that_can_match_nothing_is_refused() {
        for bad in ["/docs/*.md", "docs/", "./docs/*.md", "docs/../x.md", "docs//x.md"] {
            assert!(
                shelves(&format!("a: {}", shelf(bad))).unwrap_err().message.contains("matches no document"),
                "{bad}"
            );
        }
        assert!(shelves(&format!("a: {}", shelf("docs/[.md"))).unwrap_err().message.contains("is no glob"));
        assert!(shelves("a: {path: x.md, homogeneous: true}\n").unwrap_err().message.contains("`kind` is missing"));
        assert!(shelves("a: {path: x.md, homogeneous: false}\n").is_ok());
    }
}
