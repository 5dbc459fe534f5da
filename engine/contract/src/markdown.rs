//! The parts of a Markdown document that the contract reads: front matter, sections under headings, fenced blocks.
//!
//! Line numbers are one-based and count from the first line of the whole document.

/// A piece of a document and the line its first byte stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The text.
    pub text: &'a str,
    /// The one-based line of the document on which it starts.
    pub line: usize,
}

/// A document split at its front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split<'a> {
    /// What stands between the two `---` lines, or nothing where the document does not start with one.
    pub front_matter: Option<Piece<'a>>,
    /// Everything behind it.
    pub body: Piece<'a>,
}

/// Front matter that is opened and never closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the front matter opened on line 1 is never closed by a line `---`")]
pub struct Unclosed;

/// Splits a document at its front matter: a first line that is exactly `---`, up to the next such line. A byte order
/// mark before it is passed over; lines may end in CRLF.
///
/// # Errors
/// [`Unclosed`] where the front matter has no end.
pub fn split(document: &str) -> Result<Split<'_>, Unclosed> {
    let text = document.strip_prefix('\u{feff}').unwrap_or(document);
    let mut lines = Lines::new(Piece { text, line: 1 });
    let whole = Split { front_matter: None, body: Piece { text, line: 1 } };
    match lines.next() {
        Some(first) if first.trimmed() == "---" => {
            let start = first.end;
            for line in lines {
                if line.trimmed() == "---" {
                    return Ok(Split {
                        front_matter: Some(Piece { text: &text[start..line.start], line: 2 }),
                        body: Piece { text: &text[line.end..], line: line.number + 1 },
                    });
                }
            }
            Err(Unclosed)
        }
        _ => Ok(whole),
    }
}

/// A heading in ATX form outside of any fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heading<'a> {
    /// 1 to 6.
    pub level: u8,
    /// Its text, without the marks and the space around it.
    pub text: &'a str,
    /// Its line.
    pub line: usize,
}

/// The body of the first section whose heading has `level` and `title`: from the line behind the heading to the next
/// heading of the same or a higher rank, word for word.
#[must_use]
pub fn section<'a>(body: Piece<'a>, level: u8, title: &str) -> Option<Piece<'a>> {
    let mut found: Option<(usize, usize)> = None;
    for (heading, start, end) in headings_at(body) {
        match found {
            None if heading.level == level && heading.text == title => found = Some((end, heading.line + 1)),
            Some((from, line)) if heading.level <= level => {
                return Some(Piece { text: &body.text[from..start], line });
            }
            _ => {}
        }
    }
    found.map(|(from, line)| Piece { text: &body.text[from..], line })
}

/// Every heading of a body, in order.
pub fn headings(body: Piece<'_>) -> impl Iterator<Item = Heading<'_>> {
    headings_at(body).map(|(heading, _, _)| heading)
}

/// A fenced block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence<'a> {
    /// The first word of the info string, empty where there is none.
    pub info: &'a str,
    /// What stands between the fences.
    pub content: Piece<'a>,
    /// Whether a closing fence was found before the piece ended.
    pub closed: bool,
}

/// The first fenced block of a piece whose info string starts with the word `info`.
#[must_use]
pub fn fenced<'a>(piece: Piece<'a>, info: &str) -> Option<Fence<'a>> {
    fences(piece).find(|f| f.info == info)
}

/// Every fenced block of a piece, in order.
pub fn fences(piece: Piece<'_>) -> impl Iterator<Item = Fence<'_>> {
    let mut lines = Lines::new(piece);
    std::iter::from_fn(move || {
        loop {
            let opening = lines.next()?;
            let Some(mark) = FenceMark::opening(opening.text) else {
                continue;
            };
            let (start, number) = (opening.end, opening.number + 1);
            let info = mark.info(opening.text);
            let mut end = piece.text.len();
            let mut closed = false;
            for line in lines.by_ref() {
                if mark.closed_by(line.text) {
                    (end, closed) = (line.start, true);
                    break;
                }
            }
            let content = Piece { text: &piece.text[start.min(end)..end], line: number };
            return Some(Fence { info, content, closed });
        }
    })
}

fn headings_at<'a>(body: Piece<'a>) -> impl Iterator<Item = (Heading<'a>, usize, usize)> {
    let mut fence: Option<FenceMark> = None;
    Lines::new(body).filter_map(move |line| {
        if let Some(open) = fence {
            if open.closed_by(line.text) {
                fence = None;
            }
            return None;
        }
        fence = FenceMark::opening(line.text);
        if fence.is_some() {
            return None;
        }
        atx(line.text).map(|(level, text)| (Heading { level, text, line: line.number }, line.start, line.end))
    })
}

fn atx(line: &str) -> Option<(u8, &str)> {
    let text = unindented(line)?.trim_end();
    let level = text.bytes().take_while(|b| *b == b'#').count();
    let rest = &text[level..];
    if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    let rest = rest.trim();
    // A closing run of marks belongs to the heading only behind a space (CommonMark, ATX headings).
    let closed = rest.trim_end_matches('#');
    let rest = if closed.is_empty() || closed.ends_with([' ', '\t']) { closed.trim_end() } else { rest };
    Some((level as u8, rest))
}

fn unindented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= 3).then_some(text)
}

#[derive(Clone, Copy)]
struct FenceMark {
    mark: u8,
    length: usize,
}

impl FenceMark {
    fn opening(line: &str) -> Option<Self> {
        let text = unindented(line)?;
        let mark = *text.as_bytes().first()?;
        let length = text.bytes().take_while(|b| *b == mark).count();
        let fence = matches!(mark, b'`' | b'~') && length >= 3;
        // A backtick in the info string makes it inline code (CommonMark, fenced code blocks).
        (fence && !(mark == b'`' && text[length..].contains('`'))).then_some(Self { mark, length })
    }

    fn info(self, line: &str) -> &str {
        line.trim_start_matches(' ')[self.length..].split_whitespace().next().unwrap_or("")
    }

    fn closed_by(self, line: &str) -> bool {
        unindented(line)
            .map(str::trim_end)
            .is_some_and(|text| text.len() >= self.length && text.bytes().all(|b| b == self.mark))
    }
}

struct Line<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    number: usize,
}

impl Line<'_> {
    fn trimmed(&self) -> &str {
        self.text.trim_end()
    }
}

struct Lines<'a> {
    piece: Piece<'a>,
    at: usize,
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(piece: Piece<'a>) -> Self {
        Self { piece, at: 0, number: piece.line }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let rest = &self.piece.text[self.at..];
        if rest.is_empty() {
            return None;
        }
        let length = rest.find('\n').map_or(rest.len(), |i| i + 1);
        let line = Line {
            text: rest[..length].trim_end_matches(['\n', '\r']),
            start: self.at,
            end: self.at + length,
            number: self.number,
        };
        self.at += length;
        self.number += 1;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: &str = "---\nid: A-1\n---\n# T\n\n## Task\n\nDo it.\n\n```sh\n## Task\n```\n\n### Sub\nmore\n## Expectation ##\n\n```yaml\na: 1\n```\n";

    fn body(text: &str) -> Piece<'_> {
        split(text).unwrap().body
    }

    #[test]
    fn front_matter_is_what_stands_between_the_first_two_rules() {
        let split = split(DOC).unwrap();
        assert_eq!(split.front_matter, Some(Piece { text: "id: A-1\n", line: 2 }));
        assert_eq!(split.body.line, 4);
        assert!(super::split("---\nid: x\n").is_err());
        assert_eq!(super::split("text\n---\n").unwrap().front_matter, None);
        assert_eq!(super::split("\u{feff}---\r\nid: x\r\n---\r\nb").unwrap().body.text, "b");
    }

    #[test]
    fn a_section_ends_at_the_next_heading_of_its_rank_and_a_heading_in_a_fence_is_none() {
        let task = section(body(DOC), 2, "Task").unwrap();
        assert_eq!(task.text, "\nDo it.\n\n```sh\n## Task\n```\n\n### Sub\nmore\n");
        assert_eq!(task.line, 7);
        assert_eq!(section(body(DOC), 2, "Nothing"), None);
        assert_eq!(section(body(DOC), 2, "Expectation").unwrap().line, 17);
    }

    #[test]
    fn the_first_yaml_fence_of_a_section_is_its_block() {
        let fence = fenced(section(body(DOC), 2, "Expectation").unwrap(), "yaml").unwrap();
        assert_eq!((fence.content.text, fence.content.line, fence.closed), ("a: 1\n", 19, true));
        let open = fenced(Piece { text: "~~~yaml x\na\n```\n", line: 1 }, "yaml").unwrap();
        assert!(!open.closed);
        assert_eq!(open.content.text, "a\n```\n");
    }
}
