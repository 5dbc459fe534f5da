//! One document.

use super::shelf::Shelf;
use super::taxonomy::Taxonomy;
use headwater_contract::digest::Digest;
use headwater_contract::markdown;
use headwater_contract::yaml::{self, Limits, Node, Value};

/// The front-matter key of a generated document. Any value but `false` marks one.
pub const GENERATED: &str = "headwater:generated";

/// What a document is to its corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class {
    /// On a shelf: it has this kind and enters the tree digest.
    Typed {
        /// The kind: the shelf's, or its own on a shelf that is not homogeneous.
        kind: String,
        /// The shelf.
        shelf: String,
    },
    /// Its front matter carries the marker `headwater:generated`.
    Generated,
    /// Anything else.
    Unclassified,
}

/// A Markdown file with what its front matter says.
#[derive(Debug, Clone)]
pub struct Document {
    /// Relative to the root, with `/`.
    pub path: String,
    /// The content digest.
    pub digest: Digest,
    /// The value of `id`, where there is one.
    pub id: Option<String>,
    /// What it is.
    pub class: Class,
    /// The front matter as read, a null node where there is none or where it is malformed.
    pub front: Node,
    /// Why the front matter is not read, and on which line.
    pub malformed: Option<(usize, String)>,
}

/// The front matter of a file.
#[derive(Debug)]
pub(super) struct Front {
    present: bool,
    node: Node,
    malformed: Option<(usize, String)>,
}

impl Front {
    /// Whether a file starts with front matter, by its first bytes. What is no UTF-8 can start with it too.
    pub(super) fn starts(bytes: &[u8]) -> bool {
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
        line.trim_ascii_end() == b"---"
    }

    /// Reads the front matter of a file, and holds the file to UTF-8.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let (node, malformed) = match front_node(bytes) {
            Ok(node) => (node, None),
            Err(malformed) => (nothing(), Some(malformed)),
        };
        Self { present: Self::starts(bytes), node, malformed }
    }
}

fn nothing() -> Node {
    Node { line: 1, value: Value::Scalar { text: String::new(), plain: true } }
}

fn front_node(bytes: &[u8]) -> Result<Node, (usize, String)> {
    let text = str::from_utf8(bytes).map_err(|e| {
        let line = 1 + bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count();
        (line, "not UTF-8; write the document in UTF-8".to_owned())
    })?;
    let split = markdown::split(text).map_err(|e| (1, format!("{e}; add that line")))?;
    let Some(front) = split.front_matter else {
        return Ok(nothing());
    };
    let node = yaml::read(front, Limits::DOCUMENT).map_err(|e| (e.line, e.kind.to_string()))?;
    if node.is_null() || node.mapping().is_some() {
        Ok(node)
    } else {
        Err((node.line, format!("front matter is a mapping of keys to values, and this is {}", node.what())))
    }
}

fn is_false(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar { text, plain: true } if matches!(text.as_str(), "false" | "False" | "FALSE"))
}

/// A name that is a document only where it says so: tools put files of this name everywhere.
fn is_plain(name: &str, on_shelf: bool) -> bool {
    name == "README.md" || (name == "CLAUDE.md" && !on_shelf)
}

fn class_of(path: &str, front: &Front, shelf: Option<(&str, &Shelf)>, taxonomy: &Taxonomy) -> Class {
    if front.node.get(GENERATED).is_some_and(|marker| !is_false(marker)) {
        return Class::Generated;
    }
    // A line break in a path would make two lines of it in the text that the tree digest is over.
    let (Some((name, shelf)), true, false) = (shelf, front.present, path.contains(char::is_control)) else {
        return Class::Unclassified;
    };
    let own = if shelf.homogeneous { None } else { front.node.get("kind").and_then(Node::text) };
    let above = shelf.kind.as_deref();
    let admitted = |kind: &&str| {
        taxonomy.kind(kind).is_some_and(|k| !k.is_abstract) && above.is_none_or(|above| taxonomy.is_a(kind, above))
    };
    match own.or(above).filter(admitted) {
        Some(kind) => Class::Typed { kind: kind.to_owned(), shelf: name.to_owned() },
        None => Class::Unclassified,
    }
}

impl Document {
    /// The document in a file, or nothing where the file is none: it has no front matter and stands on no shelf, or
    /// its name is one that tools use and it has neither an `id` nor the generated marker.
    pub(super) fn place(
        path: &str,
        digest: Digest,
        front: Front,
        shelf: Option<(&str, &Shelf)>,
        taxonomy: &Taxonomy,
    ) -> Option<Self> {
        let class = class_of(path, &front, shelf, taxonomy);
        let id = front.node.get("id").and_then(Node::text).filter(|id| !id.is_empty()).map(str::to_owned);
        let name = path.rsplit('/').next().unwrap_or(path);
        let unsure = front.malformed.is_some() && shelf.is_some();
        let says_so = id.is_some() || class == Class::Generated || unsure;
        if !says_so && is_plain(name, shelf.is_some()) || shelf.is_none() && !front.present {
            return None;
        }
        let without = || (1, "no front matter; start with a line `---`, the facets, and a line `---`".to_owned());
        let malformed = front.malformed.or_else(|| (!front.present).then(without));
        Some(Self { path: path.to_owned(), digest, id, class, front: front.node, malformed })
    }

    /// Whether it is typed.
    #[must_use]
    pub fn is_typed(&self) -> bool {
        matches!(self.class, Class::Typed { .. })
    }

    /// Whether it is generated.
    #[must_use]
    pub fn is_generated(&self) -> bool {
        self.class == Class::Generated
    }

    /// Its kind, where it is typed.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        match &self.class {
            Class::Typed { kind, .. } => Some(kind),
            _ => None,
        }
    }

    /// The text of a facet, where the front matter has it as a scalar that is not null.
    #[must_use]
    pub fn facet(&self, name: &str) -> Option<&str> {
        self.front.get(name)?.text()
    }

    /// The targets of a relation as written: identifiers, or paths relative to the root.
    pub fn relation<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let node = self.front.get("relations").and_then(|r| r.get(name));
        node.and_then(Node::sequence).unwrap_or_default().iter().filter_map(Node::text)
    }

    /// The file name without `.md`: the slug a document has on its shelf.
    #[must_use]
    pub fn slug(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(&self.path);
        name.strip_suffix(".md").unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_anything_but_false() {
        let generated = |value: &str| {
            let front = Front::read(format!("---\n\"headwater:generated\": {value}\n---\n").as_bytes());
            class_of("a.md", &front, None, &Taxonomy::default()) == Class::Generated
        };
        for value in ["true", "by headwater", "", "{a: b}", "\"false\"", "0"] {
            assert!(generated(value), "{value}");
        }
        for value in ["false", "False", "FALSE"] {
            assert!(!generated(value), "{value}");
        }
    }

    #[test]
    fn what_starts_front_matter_is_what_the_reader_splits_at() {
        for text in ["---\n", "---", "\u{feff}---\r\n", "--- \t\nid: x\n---\n"] {
            assert!(Front::starts(text.as_bytes()), "{text:?}");
        }
        for text in ["", " ---\n", "----\n", "--- x\n", "a\n---\n"] {
            assert!(!Front::starts(text.as_bytes()), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_file_is_a_crash(bytes: Vec<u8>, text in "(---\n)?[ -~\n]{0,80}(---\n)?.{0,20}") {
            let _ = Front::read(&bytes);
            let front = Front::read(text.as_bytes());
            let split = markdown::split(&text);
            proptest::prop_assert!(front.present || split.is_ok_and(|s| s.front_matter.is_none()));
        }
    }
}
