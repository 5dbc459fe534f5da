//! Reading a declaration: a YAML file whose every key is from a closed set.
//!
//! A place knows the file, the line and the name of what it reads, so that every refusal says where it stands and what
//! would be accepted there.

use super::CorpusError;
use headwater_contract::markdown::Piece;
use headwater_contract::yaml::{self, Limits, Node};

/// A place in a declaration file.
#[derive(Debug, Clone)]
pub struct At<'a> {
    file: &'a str,
    name: String,
    line: usize,
    node: &'a Node,
}

const CORRECT: &str =
    "correct it there: plain YAML, each key once, no tags, anchors or aliases, at most 1 MiB and 32 deep";

/// Reads the text of a declaration file, within the limits of what a person writes.
///
/// # Errors
/// Where it is no YAML, or YAML that could mean two things; the message has `file` and the line.
pub fn read(file: &str, text: &str) -> Result<Node, CorpusError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    yaml::read(Piece { text, line: 1 }, Limits::DOCUMENT)
        .map_err(|e| CorpusError::new(format!("{file}:{}: {}", e.line, e.kind)).remedy(CORRECT))
}

impl<'a> At<'a> {
    /// The top of a file.
    #[must_use]
    pub fn top(file: &'a str, node: &'a Node) -> Self {
        Self { file, name: String::new(), line: node.line, node }
    }

    /// What this place is called in a message: the keys that lead to it.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.name.is_empty() { "the file" } else { &self.name }
    }

    /// The value that stands here.
    #[must_use]
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// An error about this place.
    #[must_use]
    pub fn error(&self, message: impl std::fmt::Display) -> CorpusError {
        CorpusError::new(format!("{}:{}: {}: {message}", self.file, self.line, self.name()))
    }

    fn below(&self, key: &str, line: usize, node: &'a Node) -> Self {
        let name = if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) };
        Self { file: self.file, name, line, node }
    }

    /// The entries of a mapping with names of the writer's choice. Nothing at all is an empty mapping.
    ///
    /// # Errors
    /// Where it is no mapping, or where a name is empty.
    pub fn entries(&self) -> Result<Vec<(&'a str, Self)>, CorpusError> {
        if self.node.is_null() {
            return Ok(Vec::new());
        }
        let entries = self.node.mapping().ok_or_else(|| self.expected("a mapping"))?;
        let named: Vec<_> = entries.iter().map(|e| (e.key.as_str(), self.below(&e.key, e.line, &e.value))).collect();
        match named.iter().find(|(key, _)| key.is_empty()) {
            Some((_, at)) => Err(at.error("an empty name").remedy("give it a name")),
            None => Ok(named),
        }
    }

    /// The fields of a mapping whose keys are a closed set.
    ///
    /// # Errors
    /// Where it is no mapping, or has a key outside of the set.
    pub fn fields(&self, keys: &'static [&'static str]) -> Result<Fields<'a>, CorpusError> {
        let entries = self.entries()?;
        if let Some((key, at)) = entries.iter().find(|(key, _)| !keys.contains(key)) {
            let unknown = Self { name: self.name.clone(), ..at.clone() };
            return Err(unknown
                .error(format!("unknown key `{key}`"))
                .remedy(format!("it takes {}; rename or remove the key", keys.join(", "))));
        }
        Ok(Fields { at: self.clone(), entries })
    }

    /// The text of a scalar that is not null.
    ///
    /// # Errors
    /// Where it is anything else.
    pub fn text(&self) -> Result<&'a str, CorpusError> {
        match self.node.text() {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(self.expected("a text")),
        }
    }

    /// A plain `true` or `false`.
    ///
    /// # Errors
    /// Where it is anything else.
    pub fn boolean(&self) -> Result<bool, CorpusError> {
        match self.node.scalar() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(self.expected("true or false")),
        }
    }

    /// The items of a list. Nothing at all is an empty list.
    ///
    /// # Errors
    /// Where it is no list.
    pub fn items(&self) -> Result<Vec<Self>, CorpusError> {
        if self.node.is_null() {
            return Ok(Vec::new());
        }
        let items = self.node.sequence().ok_or_else(|| self.expected("a list"))?;
        Ok(items.iter().map(|node| Self { file: self.file, name: self.name.clone(), line: node.line, node }).collect())
    }

    /// The texts of a list of scalars, each once.
    ///
    /// # Errors
    /// Where it is no list of scalars, or has one twice.
    pub fn texts(&self) -> Result<Vec<&'a str>, CorpusError> {
        let mut texts = Vec::new();
        for item in self.items()? {
            let text = item.text()?;
            if texts.contains(&text) {
                return Err(item.error(format!("`{text}` stands twice")).remedy("keep one"));
            }
            texts.push(text);
        }
        Ok(texts)
    }

    /// An error that says what was expected here and what stands here.
    #[must_use]
    pub fn expected(&self, what: &str) -> CorpusError {
        let found = match self.node.text() {
            Some(text) => format!("`{}`", text.chars().take(80).collect::<String>()),
            None => self.node.what().to_owned(),
        };
        self.error(format!("expected {what}, found {found}"))
    }
}

/// The fields of a mapping whose keys have been held to a closed set.
#[derive(Debug)]
pub struct Fields<'a> {
    at: At<'a>,
    entries: Vec<(&'a str, At<'a>)>,
}

impl<'a> Fields<'a> {
    /// A field, where the mapping has it with a value that is not null.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&At<'a>> {
        self.entries.iter().find(|(k, at)| *k == key && !at.node.is_null()).map(|(_, at)| at)
    }

    /// A field that has to be there.
    ///
    /// # Errors
    /// Where it is not.
    pub fn require(&self, key: &str) -> Result<&At<'a>, CorpusError> {
        self.get(key)
            .ok_or_else(|| self.at.error(format!("`{key}` is missing")).remedy(format!("add `{key}:` with its value")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: std::fmt::Debug>(text: &str, read: impl Fn(At) -> Result<T, CorpusError>) -> String {
        let node = super::read("f.yml", text).unwrap();
        read(At::top("f.yml", &node)).unwrap_err().message
    }

    #[test]
    fn a_refusal_names_file_line_and_place() {
        let a = |at: At| at.fields(&["a"]).and_then(|f| f.require("a").and_then(At::boolean));
        assert_eq!(refused("\nb: 1\n", a), "f.yml:2: the file: unknown key `b`");
        assert_eq!(refused("a: maybe\n", a), "f.yml:1: a: expected true or false, found `maybe`");
        assert_eq!(refused("a:\n", a), "f.yml:1: the file: `a` is missing");
        assert_eq!(refused("[a]\n", a), "f.yml:1: the file: expected a mapping, found a list");
        assert_eq!(refused("'': 1\n", |at| at.entries().map(|e| e.len())), "f.yml:1: the file: an empty name");
        let list = |at: At| at.entries()?[0].1.texts().map(|t| t.len());
        assert_eq!(refused("a:\n  - x\n  - x\n", list), "f.yml:3: a: `x` stands twice");
        assert_eq!(refused("a: x\n", list), "f.yml:1: a: expected a list, found `x`");
        assert_eq!(refused("a: [[]]\n", list), "f.yml:1: a: expected a text, found a list");
        assert_eq!(
            super::read("f.yml", "a: 1\na: 2\n").unwrap_err().message,
            "f.yml:2: the key `a` stands twice; keep one"
        );
    }
}
