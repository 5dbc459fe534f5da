//! YAML in and out.
//!
//! *In*: a bounded tree of scalars, sequences and mappings that keeps each scalar's source text and whether it was
//! quoted, and the line of everything. What could mean two things refuses: a duplicate key, an anchor, an alias, a tag,
//! a second document, a key that is no scalar.
//!
//! *Out*: one encoder for every scalar. Whatever another reader could take for anything but this string is quoted.

use crate::markdown::Piece;
use saphyr_parser::{Event, Parser, ScalarStyle};
use std::borrow::Cow;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How large a block may be before it is refused.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of source.
    pub bytes: usize,
    /// Collections inside one another.
    pub depth: usize,
}

impl Limits {
    /// For what a person writes: front matter, a taxonomy, a policy, an expectation.
    pub const DOCUMENT: Self = Self { bytes: 1 << 20, depth: 32 };
    /// For the blocks of a transcript, whose length is the behaviour of a model.
    pub const TRANSCRIPT: Self = Self { bytes: 512 << 20, depth: 16 };
}

/// A value and where it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The one-based line of the document.
    pub line: usize,
    /// What stands there.
    pub value: Value,
}

/// The three kinds of value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A scalar: its text after unquoting, and whether it stood without quotes.
    Scalar {
        /// The text.
        text: String,
        /// Whether it was plain. A plain `null` is nothing; a quoted one is a string.
        plain: bool,
    },
    /// A sequence.
    Sequence(Vec<Node>),
    /// A mapping, in source order, each key once.
    Mapping(Vec<Entry>),
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// The key's line.
    pub line: usize,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The text of a scalar, null or not.
    #[must_use]
    pub fn scalar(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar that is not null.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        if self.is_null() { None } else { self.scalar() }
    }

    /// Whether this is a YAML null: a plain `null`, `~` or nothing at all.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if is_null(text))
    }

    /// Whether this is the plain scalar `true`.
    #[must_use]
    pub fn is_true(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, plain: true } if matches!(text.as_str(), "true" | "True" | "TRUE"))
    }

    /// The items of a sequence.
    #[must_use]
    pub fn sequence(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The entries of a mapping.
    #[must_use]
    pub fn mapping(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Mapping(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value under `key` of a mapping.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.mapping()?.iter().find(|e| e.key == key).map(|e| &e.value)
    }

    /// What this is, for a message.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar { .. } => "a scalar",
            Value::Sequence(_) => "a list",
            Value::Mapping(_) => "a mapping",
        }
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Why a text is not read as YAML. The line is of the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct Error {
    /// One-based.
    pub line: usize,
    /// The reason.
    pub kind: ErrorKind,
}

/// The reasons for which YAML is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// It does not parse.
    #[error("not YAML: {0}")]
    Syntax(String),
    /// It is longer than the limit.
    #[error("{0} bytes of YAML are above the limit of {1}; split or shorten it")]
    TooLong(usize, usize),
    /// It nests deeper than the limit.
    #[error("more than {0} lists and mappings inside one another; flatten it")]
    TooDeep(usize),
    /// A key stands twice in one mapping.
    #[error("the key `{0}` stands twice; keep one")]
    DuplicateKey(String),
    /// A key is a list or a mapping.
    #[error("a key has to be a scalar")]
    CompositeKey,
    /// An anchor or an alias.
    #[error("anchors (`&`) and aliases (`*`) are not read; write the value out, or quote it")]
    Alias,
    /// A tag.
    #[error("tags (`!`) are not read; quote the value to make it a string")]
    Tag,
    /// A second document in one stream.
    #[error("one YAML document is expected, and a second one starts here")]
    SecondDocument,
}

/// Reads one YAML document. An empty one is a null.
///
/// # Errors
/// As [`ErrorKind`] lists; never a panic, whatever the text.
pub fn read(piece: Piece<'_>, limits: Limits) -> Result<Node, Error> {
    let at = |line: usize, kind| Error { line: piece.line + line.max(1) - 1, kind };
    if piece.text.len() > limits.bytes {
        return Err(at(1, ErrorKind::TooLong(piece.text.len(), limits.bytes)));
    }
    // The parser is a library and the text is hostile: a bug in it is a refusal here, not the end of the process.
    match catch_unwind(AssertUnwindSafe(|| Builder::new(limits).build(piece.text))) {
        Ok(Ok(mut node)) => {
            shift(&mut node, piece.line - 1);
            Ok(node)
        }
        Ok(Err((line, kind))) => Err(at(line, kind)),
        Err(_) => Err(at(1, ErrorKind::Syntax("the parser gave up".into()))),
    }
}

fn shift(node: &mut Node, by: usize) {
    if by == 0 {
        return;
    }
    node.line += by;
    match &mut node.value {
        Value::Scalar { .. } => {}
        Value::Sequence(items) => items.iter_mut().for_each(|n| shift(n, by)),
        Value::Mapping(entries) => entries.iter_mut().for_each(|e| {
            e.line += by;
            shift(&mut e.value, by);
        }),
    }
}

enum Open {
    Sequence { line: usize, items: Vec<Node> },
    Mapping { line: usize, entries: Vec<Entry>, key: Option<(String, usize)>, seen: HashSet<String> },
}

/// Below this many entries a mapping is searched; above, its keys are kept in a set.
const SEARCHED: usize = 16;

struct Builder {
    limits: Limits,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
}

type Refused = (usize, ErrorKind);

impl Builder {
    fn new(limits: Limits) -> Self {
        Self { limits, open: Vec::new(), root: None, documents: 0 }
    }

    fn build(mut self, text: &str) -> Result<Node, Refused> {
        let mut parser = Parser::new_from_str(text);
        while let Some(next) = parser.next_event() {
            let (event, span) = next.map_err(|e| {
                // The scanner runs ahead of its events, and has a limit of its own on nesting.
                let kind = match e.info() {
                    "recursion limit exceeded" => ErrorKind::TooDeep(self.limits.depth),
                    info => ErrorKind::Syntax(info.to_owned()),
                };
                (e.marker().line(), kind)
            })?;
            let line = span.start.line();
            match event {
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                Event::DocumentStart(_) => {
                    self.documents += 1;
                    if self.documents > 1 {
                        return Err((line, ErrorKind::SecondDocument));
                    }
                }
                Event::Alias(_) => return Err((line, ErrorKind::Alias)),
                Event::Scalar(text, style, anchor, tag) => {
                    plainly(line, anchor, tag.is_some())?;
                    self.scalar(line, text, style == ScalarStyle::Plain)?;
                }
                Event::SequenceStart(anchor, tag) => {
                    plainly(line, anchor, tag.is_some())?;
                    self.enter(line, Open::Sequence { line, items: Vec::new() })?;
                }
                Event::MappingStart(anchor, tag) => {
                    plainly(line, anchor, tag.is_some())?;
                    let open = Open::Mapping { line, entries: Vec::new(), key: None, seen: HashSet::new() };
                    self.enter(line, open)?;
                }
                Event::SequenceEnd | Event::MappingEnd => self.leave()?,
            }
        }
        Ok(self.root.unwrap_or(Node { line: 1, value: Value::Scalar { text: String::new(), plain: true } }))
    }

    fn enter(&mut self, line: usize, open: Open) -> Result<(), Refused> {
        if self.open.len() >= self.limits.depth {
            return Err((line, ErrorKind::TooDeep(self.limits.depth)));
        }
        if let Some(Open::Mapping { key: None, .. }) = self.open.last() {
            return Err((line, ErrorKind::CompositeKey));
        }
        self.open.push(open);
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Refused> {
        let node = match self.open.pop() {
            Some(Open::Sequence { line, items }) => Node { line, value: Value::Sequence(items) },
            Some(Open::Mapping { line, entries, .. }) => Node { line, value: Value::Mapping(entries) },
            None => {
                return Err((1, ErrorKind::Syntax("a collection ends that never started".into())));
            }
        };
        self.place(node);
        Ok(())
    }

    fn scalar(&mut self, line: usize, text: Cow<'_, str>, plain: bool) -> Result<(), Refused> {
        if let Some(Open::Mapping { entries, key: key @ None, seen, .. }) = self.open.last_mut() {
            let twice = if entries.len() < SEARCHED {
                entries.iter().any(|e| e.key == text)
            } else {
                if seen.is_empty() {
                    seen.extend(entries.iter().map(|e| e.key.clone()));
                }
                !seen.insert(text.clone().into_owned())
            };
            if twice {
                return Err((line, ErrorKind::DuplicateKey(text.chars().take(80).collect())));
            }
            *key = Some((text.into_owned(), line));
        } else {
            self.place(Node { line, value: Value::Scalar { text: text.into_owned(), plain } });
        }
        Ok(())
    }

    fn place(&mut self, node: Node) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::Sequence { items, .. }) => items.push(node),
            Some(Open::Mapping { entries, key, .. }) => {
                if let Some((key, line)) = key.take() {
                    entries.push(Entry { key, line, value: node });
                }
            }
        }
    }
}

fn plainly(line: usize, anchor: usize, tagged: bool) -> Result<(), Refused> {
    if anchor != 0 {
        Err((line, ErrorKind::Alias))
    } else if tagged {
        Err((line, ErrorKind::Tag))
    } else {
        Ok(())
    }
}

/// A string as one YAML scalar on one line, quoted wherever it could be read as anything but itself.
#[must_use]
pub fn scalar(text: &str) -> Cow<'_, str> {
    if is_safely_plain(text) { Cow::Borrowed(text) } else { Cow::Owned(quoted(text)) }
}

/// Strings as one flow sequence on one line.
#[must_use]
pub fn flow<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> String {
    let inner: Vec<_> = items.into_iter().map(|s| scalar(s.as_ref()).into_owned()).collect();
    format!("[{}]", inner.join(", "))
}

fn is_safely_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let starts = bytes.first().is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'/' | b'_'));
    let inside = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b':' | b'+');
    // Words that some reader, of YAML 1.1 or 1.2, takes for a null, a boolean or a number.
    const WORDS: [&str; 11] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan"];
    starts && bytes.iter().all(inside) && !bytes.ends_with(b":") && !WORDS.iter().any(|w| w.eq_ignore_ascii_case(text))
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_hidden(c) => {
                let n = u32::from(c);
                let escape = match n {
                    0..=0xff => format!("\\x{n:02X}"),
                    0x100..=0xffff => format!("\\u{n:04X}"),
                    _ => format!("\\U{n:08X}"),
                };
                out.push_str(&escape);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Characters that a reader of the file would not see as themselves: controls, line and paragraph separators, byte
/// order marks, marks that turn the direction of the text, and what is no character at all.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c), 0x85 | 0xa0 | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x2069 | 0xfeff | 0xfff0..=0xffff)
        || matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff)
        || u32::from(c) >= 0xe_0000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn doc(text: &str) -> Result<Node, Error> {
        read(Piece { text, line: 1 }, Limits::DOCUMENT)
    }

    #[test]
    fn a_scalar_keeps_its_source_text() {
        let node =
            doc("session: 1.0\nat: 2026-08-14\nseed: 340282366920938463463374607431768211456\nyes: no\n").unwrap();
        for (key, text) in [
            ("session", "1.0"),
            ("at", "2026-08-14"),
            ("seed", "340282366920938463463374607431768211456"),
            ("yes", "no"),
        ] {
            assert_eq!(node.get(key).and_then(Node::text), Some(text));
        }
    }

    #[test]
    fn any_null_is_nothing_and_a_quoted_one_is_a_value() {
        for null in ["null", "Null", "NULL", "~", ""] {
            assert!(doc(&format!("a: {null}\n")).unwrap().get("a").unwrap().is_null(), "{null}");
        }
        for value in ["\"null\"", "'~'", "\"\"", "nulL"] {
            assert!(!doc(&format!("a: {value}\n")).unwrap().get("a").unwrap().is_null(), "{value}");
        }
    }

    #[test]
    fn what_could_mean_two_things_refuses() {
        let kind = |text: &str| doc(text).unwrap_err().kind;
        assert_eq!(kind("a: 1\nb: 2\na: 3\n"), ErrorKind::DuplicateKey("a".into()));
        assert_eq!(kind("a: &x 1\nb: *x\n"), ErrorKind::Alias);
        assert_eq!(kind("a: !!str 1\n"), ErrorKind::Tag);
        assert_eq!(kind("a: 1\n---\nb: 2\n"), ErrorKind::SecondDocument);
        assert_eq!(kind("? [a]\n: 1\n"), ErrorKind::CompositeKey);
        assert!(matches!(kind("a: [1"), ErrorKind::Syntax(_)));
        let many: String = (0..40).map(|i| format!("k{i}: 1\n")).collect();
        assert_eq!(kind(&format!("{many}k3: 2\n")), ErrorKind::DuplicateKey("k3".into()));
    }

    #[test]
    fn size_and_depth_refuse_with_a_message() {
        let deep = "[".repeat(10_000);
        assert_eq!(doc(&deep).unwrap_err().kind, ErrorKind::TooDeep(32));
        let long = "a".repeat((1 << 20) + 1);
        assert!(matches!(doc(&long).unwrap_err().kind, ErrorKind::TooLong(_, _)));
    }

    #[test]
    fn an_error_names_the_line_of_the_document() {
        let error = read(Piece { text: "a: 1\na: 2\n", line: 10 }, Limits::DOCUMENT).unwrap_err();
        assert_eq!(error.line, 11);
    }

    #[test]
    fn a_string_that_could_be_read_as_another_thing_is_quoted() {
        for text in [
            "1.0",
            "null",
            "~",
            "",
            "yes",
            "No",
            "2026-08-14",
            "a b",
            "a: b",
            "#x",
            "- x",
            "x:",
            "0x1f",
            "<<",
            "=",
            ".5",
        ] {
            assert!(scalar(text).starts_with('"'), "{text}");
        }
        for text in ["HW-DR-0052", "docs/a.md", "/ws/docs/a.md", "sha256:00ff", "Read", "no-hook"] {
            assert_eq!(scalar(text), text);
        }
        assert_eq!(scalar("a\u{2028}\u{202e}\u{1}b\u{1f600}"), "\"a\\u2028\\u202E\\x01b\u{1f600}\"");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_itself(text in any::<String>()) {
            let node = doc(&format!("a: {}\n", scalar(&text))).unwrap();
            prop_assert_eq!(node.get("a").and_then(Node::text), Some(text.as_str()));
        }

        #[test]
        fn a_flow_of_strings_is_read_as_itself(items in prop::collection::vec(any::<String>(), 0..8)) {
            let node = doc(&format!("a: {}\n", flow(&items))).unwrap();
            let read: Vec<_> = node.get("a").unwrap().sequence().unwrap().iter().filter_map(Node::text).collect();
            prop_assert_eq!(read, items);
        }

        #[test]
        fn no_text_is_a_crash(text in "[ -~\n\t{}\\[\\]:,&*!|>'\"%@`#?-]{0,200}") {
            let _ = doc(&text);
        }
    }
}
