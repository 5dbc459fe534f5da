//! The links of a document and what they can point at: where a link leads, and the fragments that a page has.

use headwater_contract::markdown::Piece;
use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use regex::Regex;
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

/// A link or an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The one-based line of the document on which it starts.
    pub line: usize,
    /// As written, without the escapes of Markdown.
    pub destination: String,
}

/// What a body holds that links need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Its links and images in order, email addresses aside.
    pub links: Vec<Link>,
    /// The fragments that lead into it: heading slugs, and the names of HTML anchors.
    pub fragments: BTreeSet<String>,
}

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lead {
    /// Out of the corpus by its own word: it has a scheme or a host.
    External,
    /// Above the root.
    Outside,
    /// Nowhere: it does not decode to a path.
    Undecodable,
    /// Below the root.
    Within {
        /// The path relative to the root, empty for the root itself.
        path: String,
        /// Whether it ends in a `/`, so that only a directory can be meant.
        directory: bool,
        /// What stands behind the `#`, decoded; nothing where that is empty.
        fragment: Option<String>,
    },
}

/// Links of a page, and fragments of it. Each link costs a look at the file system, and each fragment is kept.
const MOST: usize = 100_000;

/// Reads the body of a document.
///
/// # Errors
/// Where the Markdown parser gives up on it, or it has more than 100,000 links or fragments; never a panic, whatever
/// the text.
pub fn page(body: Piece<'_>) -> Result<Page, &'static str> {
    // The parser is a library and the text is hostile: a bug in it is a finding, not the end of the process.
    let page = catch_unwind(AssertUnwindSafe(|| read(body))).map_err(|_| "the Markdown parser gave up on it")?;
    page.ok_or("it has more than 100,000 links or headings; split it")
}

fn read(body: Piece<'_>) -> Option<Page> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    let mut page = Page::default();
    let mut lines = LineCounter { text: body.text, at: 0, line: body.line };
    let (mut heading, mut slugs): (Option<String>, _) = (None, Slugs::default());
    for (event, range) in Parser::new_ext(body.text, options).into_offset_iter() {
        if page.links.len().max(page.fragments.len()) > MOST {
            return None;
        }
        match event {
            Event::Start(Tag::Link { link_type, dest_url, .. }) if link_type != LinkType::Email => {
                page.links.push(Link { line: lines.line_of(range.start), destination: dest_url.into_string() });
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                page.links.push(Link { line: lines.line_of(range.start), destination: dest_url.into_string() });
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                if let Some(text) = heading.take() {
                    slugs.add(&mut page.fragments, &text);
                }
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::SoftBreak | Event::HardBreak => {
                if let Some(heading) = &mut heading {
                    heading.push(' ');
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                page.fragments.extend(HTML_ANCHOR.captures_iter(&html).map(|c| c[1].to_owned()));
            }
            _ => {}
        }
    }
    Some(page)
}

/// Lines of offsets that are asked for in nearly ascending order.
struct LineCounter<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl LineCounter<'_> {
    fn line_of(&mut self, offset: usize) -> usize {
        let count = |from, to| self.text.as_bytes()[from..to].iter().filter(|b| **b == b'\n').count();
        if offset >= self.at {
            self.line += count(self.at, offset);
        } else {
            self.line -= count(offset, self.at);
        }
        self.at = offset;
        self.line
    }
}

static HTML_ANCHOR: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"<[A-Za-z][^<>]*?\s(?:[iI][dD]|[nN][aA][mM][eE])\s*=\s*["']?([^"'\s<>]+)"#));
static NO_WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"[^\w\- ]"));

#[expect(clippy::expect_used, reason = "two literals, and a page with a heading and an anchor compiles both")]
fn pattern(expression: &str) -> Regex {
    Regex::new(expression).expect("a literal pattern")
}

/// The slugs that GitHub gives the headings of a page: lower case, no punctuation, `-` for a space, and `-1`, `-2` and
/// so on where the page has the slug already.
#[derive(Default)]
struct Slugs {
    /// The number that a slug which stands again tries first, so that a page of equal headings is read in one pass.
    next: HashMap<String, usize>,
}

impl Slugs {
    fn add(&mut self, fragments: &mut BTreeSet<String>, heading: &str) {
        let slug = NO_WORD.replace_all(&heading.trim().to_lowercase(), "").replace(' ', "-");
        if fragments.insert(slug.clone()) {
            return;
        }
        let next = self.next.entry(slug.clone()).or_insert(1);
        while !fragments.insert(format!("{slug}-{next}")) {
            *next += 1;
        }
    }
}

/// Where a link of the document at `from` (relative to the root) leads.
#[must_use]
pub fn lead(from: &str, destination: &str) -> Lead {
    if is_external(destination) {
        return Lead::External;
    }
    let (path, fragment) = match destination.split_once('#') {
        Some((path, fragment)) => (path, Some(fragment)),
        None => (destination, None),
    };
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let (Some(path), Some(fragment)) = (decoded(path), fragment.map_or(Some(None), |f| decoded(f).map(Some))) else {
        return Lead::Undecodable;
    };
    let fragment = fragment.filter(|f| !f.is_empty());
    if path.is_empty() {
        return Lead::Within { path: from.to_owned(), directory: false, fragment };
    }
    // As GitHub does, a path that starts with a slash starts at the root of the tree.
    let mut parts: Vec<&str> = if path.starts_with('/') { Vec::new() } else { from.split('/').collect() };
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return Lead::Outside,
            ".." => {}
            part => parts.push(part),
        }
    }
    Lead::Within { path: parts.join("/"), directory: path.ends_with('/'), fragment }
}

/// Whether a destination starts with a scheme (RFC 3986, section 3.1) or a host.
fn is_external(destination: &str) -> bool {
    let scheme = destination.split_once(':').map(|(scheme, _)| scheme).is_some_and(|scheme| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    });
    scheme || destination.starts_with("//")
}

/// A text with its percent escapes decoded; nothing where that is no UTF-8 or holds a NUL.
fn decoded(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16)).map(|d| d as u8);
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high << 4 | low);
                at += 3;
            }
            (byte, _, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok().filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Page {
        page(Piece { text, line: 10 }).unwrap()
    }

    fn within(path: &str, directory: bool, fragment: Option<&str>) -> Lead {
        Lead::Within { path: path.into(), directory, fragment: fragment.map(Into::into) }
    }

    #[test]
    fn links_images_and_references_are_found_with_their_line() {
        let page = of(
            "[a](a.md) and\n![b](b.png)\n\n- [c][r]\n- [r][]\n- [r]\n\n<me@x.example> <https://x.example>\n\n\
            `[no](no.md)` \\[no](no.md)\n\n```\n[no](no.md)\n```\n\n[r]: r.md#x \"t\"\n\n[d](<d e.md>)[^1]\n\n[^1]: [f](f.md)\n",
        );
        let links: Vec<_> = page.links.iter().map(|l| (l.line, l.destination.as_str())).collect();
        assert_eq!(
            links,
            [
                (10, "a.md"),
                (11, "b.png"),
                (13, "r.md#x"),
                (14, "r.md#x"),
                (15, "r.md#x"),
                (17, "https://x.example"),
                (27, "d e.md"),
                (29, "f.md"),
            ]
        );
    }

    #[test]
    fn a_fragment_is_a_slug_as_github_makes_it_or_an_html_anchor() {
        let page = of(
            "# What's *new* in `v1.0`?\n\nSet\next\n---\n\n## A_b - c\n\n## Über Größe 3\n\n## a & b\n## [L](x.md) ![i](i.png)\n\n\
            <a id=\"x1\"></a> <A class=y NAME='x2'>\n\n<div id=x3>\n\n```\n# no\n```\n",
        );
        for fragment in ["whats-new-in-v10", "set-ext", "a_b---c", "über-größe-3", "a--b", "x1", "x2", "x3"] {
            assert!(page.fragments.contains(fragment), "{fragment}: {:?}", page.fragments);
        }
        assert!(!page.fragments.contains("no"));
    }

    #[test]
    fn a_heading_that_stands_again_is_numbered() {
        let fragments: Vec<_> = of("# a\n# a\n# a\n# a-1\n# !\n# ?\n").fragments.into_iter().collect();
        assert_eq!(fragments, ["", "-1", "a", "a-1", "a-1-1", "a-2"]);
    }

    #[test]
    fn a_link_leads_from_its_document_and_never_above_the_root() {
        let lead = |destination: &str| lead("docs/a/b.md", destination);
        assert_eq!(lead("c.md"), within("docs/a/c.md", false, None));
        assert_eq!(lead("./../c.md#x%20y"), within("docs/c.md", false, Some("x y")));
        assert_eq!(lead("../../"), within("", true, None));
        assert_eq!(lead("/README.md?plain=1#"), within("README.md", false, None));
        assert_eq!(lead("#top"), within("docs/a/b.md", false, Some("top")));
        assert_eq!(lead(""), within("docs/a/b.md", false, None));
        assert_eq!(lead("x%2Fy%20z.md"), within("docs/a/x/y z.md", false, None));
        assert_eq!(lead("100%.md"), within("docs/a/100%.md", false, None));
        assert_eq!(lead("1:2.md"), within("docs/a/1:2.md", false, None));
        for outside in ["../../../x", "/..", "%2e%2e/../../x", "../../../root/docs/a/b.md"] {
            assert_eq!(lead(outside), Lead::Outside, "{outside}");
        }
        for external in ["https://x.example/a", "mailto:a@x.example", "//x.example/a", "vscode+x.y-z:a"] {
            assert_eq!(lead(external), Lead::External, "{external}");
        }
        for bad in ["%ff.md", "a%00.md", "#%ff"] {
            assert_eq!(lead(bad), Lead::Undecodable, "{bad}");
        }
    }

    #[test]
    fn a_page_of_equal_headings_is_read_in_one_pass() {
        let page = of(&"# a\n".repeat(MOST));
        assert!(page.fragments.len() == MOST && page.fragments.contains("a-99999"));
    }

    #[test]
    fn a_page_of_more_links_or_headings_than_anybody_writes_is_refused() {
        for text in ["# a\n", "[a](b) ", "<a id=x>\n"] {
            let text = format!("{}\nend\n", text.repeat(MOST + 1));
            let refused = page(Piece { text: &text, line: 1 }).is_err();
            assert_eq!(refused, !text.contains("id=x"), "one name is one fragment");
        }
    }

    proptest! {
        #[test]
        fn no_body_is_a_crash_and_every_line_is_of_it(text in "[ -~\n\t\\[\\]()#*`<>!_|éß^:-]{0,300}") {
            let lines = text.lines().count().max(1);
            for link in of(&text).links {
                prop_assert!((10..10 + lines).contains(&link.line));
            }
        }

        #[test]
        fn no_destination_leaves_the_root(destination in "[a-c./%2eE#?]{0,40}") {
            if let Lead::Within { path, .. } = lead("docs/a.md", &destination) {
                prop_assert!(path.is_empty() || path.split('/').all(|p| !matches!(p, "" | "." | "..")));
            }
        }
    }
}
