//! Identifier schemes: what an identifier of a kind looks like, and which one is free.

use super::CorpusError;
use super::declared::At;
use regex::Regex;

/// Where the varying part of a new identifier comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// The next free number, at least four digits.
    Sequential,
    /// The file name of the document.
    Slug,
}

impl Allocation {
    /// As the taxonomy writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Slug => "slug",
        }
    }

    const fn placeholder(self) -> &'static str {
        match self {
            Self::Sequential => "{number}",
            Self::Slug => "{slug}",
        }
    }
}

/// An identifier scheme.
#[derive(Debug, Clone)]
pub struct Scheme {
    /// As declared, with `{namespace}`, `{number}` and `{slug}`.
    pub pattern: String,
    /// What `{namespace}` stands for.
    pub namespace: String,
    /// Where a new identifier comes from.
    pub allocation: Allocation,
    matcher: Regex,
}

/// Digits of a number that has fewer of its own.
const DIGITS: usize = 4;
const NUMBER: &str = "(?P<number>[0-9]{4,})";
const SLUG: &str = "[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*";

impl Scheme {
    /// Reads one scheme.
    pub(super) fn read(at: &At<'_>) -> Result<Self, CorpusError> {
        let fields = at.fields(&["pattern", "namespace", "allocation"])?;
        let (pattern_at, namespace_at) = (fields.require("pattern")?, fields.require("namespace")?);
        let allocation_at = fields.require("allocation")?;
        let (pattern, namespace) = (pattern_at.text()?, namespace_at.text()?);
        let allocation = match allocation_at.text()? {
            "sequential" => Allocation::Sequential,
            "slug" => Allocation::Slug,
            _ => return Err(allocation_at.expected("`sequential` or `slug`")),
        };
        if !namespace.chars().all(|c| is_literal(c) && c != '/') {
            return Err(namespace_at.error("a namespace has no space, slash or brace"));
        }
        let expression = expression(pattern, namespace).map_err(|reason| pattern_at.error(reason))?;
        let needed = allocation.placeholder();
        if !pattern.contains(needed) || (allocation == Allocation::Slug && pattern.contains("{number}")) {
            return Err(pattern_at
                .error(format!("the allocation `{}` does not fit the pattern `{pattern}`", allocation.as_str()))
                .remedy("`sequential` takes a pattern with `{number}`; `slug` one with `{slug}` and no `{number}`"));
        }
        let matcher = Regex::new(&expression).map_err(|e| pattern_at.error(e))?;
        Ok(Self { pattern: pattern.into(), namespace: namespace.into(), allocation, matcher })
    }

    /// The pattern with the namespace put in: `{number}` and `{slug}` still stand in it.
    #[must_use]
    pub fn template(&self) -> String {
        self.pattern.replace("{namespace}", &self.namespace)
    }

    /// Whether the whole of `id` is an identifier of this scheme.
    #[must_use]
    pub fn matches(&self, id: &str) -> bool {
        self.matcher.is_match(id)
    }

    /// The next free number, zero-padded: one above the highest that `identifiers` use under this scheme.
    #[must_use]
    pub fn next_number<'a>(&self, identifiers: impl IntoIterator<Item = &'a str>) -> String {
        let number = |id| self.matcher.captures(id)?.name("number")?.as_str().parse::<u64>().ok();
        let highest = identifiers.into_iter().filter_map(number).max().unwrap_or(0);
        format!("{:0DIGITS$}", highest.saturating_add(1))
    }
}

/// The anchored expression of a pattern, or why it is none.
fn expression(pattern: &str, namespace: &str) -> Result<String, String> {
    let mut out = String::from("^");
    let mut rest = pattern;
    let mut seen = Vec::new();
    while let Some(c) = rest.chars().next() {
        if c == '{' {
            let end = rest.find('}').ok_or("a `{` without its `}`")?;
            let name = &rest[..=end];
            out.push_str(&match name {
                "{namespace}" => regex::escape(namespace),
                "{number}" => NUMBER.to_owned(),
                "{slug}" => SLUG.to_owned(),
                _ => return Err(format!("unknown `{name}`; a pattern takes {{namespace}}, {{number}} and {{slug}}")),
            });
            if seen.contains(&name) {
                return Err(format!("`{name}` stands twice"));
            }
            seen.push(name);
            rest = &rest[end + 1..];
        } else if is_literal(c) {
            out.push_str(&regex::escape(&c.to_string()));
            rest = &rest[c.len_utf8()..];
        } else {
            return Err(format!("{c:?} cannot stand in an identifier"));
        }
    }
    out.push('$');
    Ok(out)
}

fn is_literal(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !matches!(c, '{' | '}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::declared;

    fn scheme(pattern: &str, allocation: &str) -> Result<Scheme, CorpusError> {
        let text = format!("pattern: '{pattern}'\nnamespace: W.M\nallocation: {allocation}\n");
        let node = declared::read("f", &text).unwrap();
        Scheme::read(&At::top("f", &node))
    }

    #[test]
    fn an_identifier_is_matched_whole_and_its_namespace_to_the_letter() {
        let numbers = scheme("{namespace}-DR-{number}", "sequential").unwrap();
        assert_eq!(numbers.template(), "W.M-DR-{number}");
        for good in ["W.M-DR-0001", "W.M-DR-12345"] {
            assert!(numbers.matches(good), "{good}");
        }
        for bad in ["WxM-DR-0001", "W.M-DR-001", "W.M-DR-0001x", "xW.M-DR-0001", "W.M-DR-0001\n", "W.M-DR-", ""] {
            assert!(!numbers.matches(bad), "{bad}");
        }
        let slugs = scheme("{namespace}-RUN-{slug}", "slug").unwrap();
        for good in ["W.M-RUN-a", "W.M-RUN-2026-09-28-pilot_v1.0", "W.M-RUN-a--b"] {
            assert!(slugs.matches(good), "{good}");
        }
        for bad in ["W.M-RUN--a", "W.M-RUN-a-", "W.M-RUN-a b", "W.M-RUN-é"] {
            assert!(!slugs.matches(bad), "{bad}");
        }
    }

    #[test]
    fn the_next_number_is_one_above_the_highest_of_its_own_scheme() {
        let scheme = scheme("{namespace}-DR-{number}", "sequential").unwrap();
        assert_eq!(scheme.next_number([]), "0001");
        assert_eq!(scheme.next_number(["W.M-DR-0003", "W.M-DR-0009", "W.M-OB-0044", "W.M-DR-9x"]), "0010");
        assert_eq!(scheme.next_number(["W.M-DR-9999", "W.M-DR-99999999999999999999999"]), "10000");
    }

    #[test]
    fn a_pattern_that_cannot_be_allocated_is_refused() {
        for (pattern, allocation, part) in [
            ("{namespace}-DR", "sequential", "does not fit"),
            ("{namespace}-{slug}", "sequential", "does not fit"),
            ("{namespace}-{number}", "slug", "does not fit"),
            ("{number}-{number}", "sequential", "stands twice"),
            ("{nr}", "sequential", "unknown `{nr}`"),
            ("{number", "sequential", "without its"),
            ("a b{number}", "sequential", "cannot stand in an identifier"),
            ("{number}", "random", "expected `sequential` or `slug`"),
        ] {
            let message = scheme(pattern, allocation).unwrap_err().message;
            assert!(message.contains(part), "{pattern}: {message}");
        }
    }
}
