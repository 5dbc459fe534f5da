//! Many names looked for in bytes at once, with the line of each place and whether the name stands there whole.

use crate::status::{Failure, Outcome, Status};
use aho_corasick::AhoCorasick;
use std::io::{self, Read};

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

/// Names that are looked for. Bytes are compared as they are: no encoding, no case.
#[derive(Debug)]
pub struct Finder {
    automaton: Option<AhoCorasick>,
    longest: usize,
}

/// A place at which a name stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The position of the name in the list that the finder was made of.
    pub name: usize,
    /// The offset of its first byte.
    pub start: u64,
    /// The one-based line on which it starts. Lines end at LF.
    pub line: u64,
    /// Whether it stands there as a whole name, and not inside a longer one.
    pub whole: bool,
}

/// Whether a byte beside a name leaves it a whole name: anything but a letter, a digit, `-` and `_`. Names are of ASCII,
/// so a letter outside of it cannot make a longer name of one.
const fn is_edge(byte: u8) -> bool {
    !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

impl Finder {
    /// A finder of `names`, none of which is empty. No names is a finder that finds nothing.
    ///
    /// # Errors
    /// [`Status::Internal`] where the names are too many for one search.
    pub fn new<N: AsRef<[u8]>>(names: &[N]) -> Outcome<Self> {
        let longest = names.iter().map(|name| name.as_ref().len()).max().unwrap_or(0);
        if names.iter().any(|name| name.as_ref().is_empty()) {
            return Err(Failure::new(Status::Internal, "a name to be looked for is empty"));
        }
        let automaton = match names {
            [] => None,
            _ => Some(AhoCorasick::new(names.iter().map(AsRef::as_ref)).map_err(|e| Failure::io("a search", e))?),
        };
        Ok(Self { automaton, longest })
    }

    /// Gives every place in `bytes` to `visit`, in order of the last byte; places may overlap.
    pub fn in_bytes(&self, bytes: &[u8], visit: impl FnMut(Found)) {
        // A slice is read to its end and gives no error.
        let _ = self.in_reader(bytes, visit);
    }

    /// The same over everything that `reader` gives, whatever its length, in bounded memory.
    ///
    /// # Errors
    /// Whatever reading gives.
    pub fn in_reader(&self, mut reader: impl Read, mut visit: impl FnMut(Found)) -> io::Result<()> {
        let mut window = Window::default();
        loop {
            let read = (&mut reader).take(PIECE as u64).read_to_end(&mut window.bytes)?;
            self.search(&mut window, read == 0, &mut visit);
            if read == 0 {
                return Ok(());
            }
            // What may still be the start of a name, and the byte before it.
            window.keep_last(self.longest + 1);
        }
    }

    /// Reports the places that end in the window and were not reported before. One that ends with the window waits for
    /// the byte behind it, unless there is none.
    fn search(&self, window: &mut Window, last: bool, mut visit: impl FnMut(Found)) {
        let Some(automaton) = &self.automaton else { return };
        let decided = if last { window.bytes.len() } else { window.bytes.len().saturating_sub(1) };
        let mut cursor = Cursor { at: 0, line: window.line };
        for place in automaton.find_overlapping_iter(&window.bytes) {
            if place.end() <= window.reported || place.end() > decided {
                continue;
            }
            let before = place.start().checked_sub(1).map(|at| window.bytes[at]);
            let behind = window.bytes.get(place.end()).copied();
            visit(Found {
                name: place.pattern().as_usize(),
                start: window.offset + place.start() as u64,
                line: cursor.line_of(&window.bytes, place.start()),
                whole: before.is_none_or(is_edge) && behind.is_none_or(is_edge),
            });
        }
        window.reported = decided;
    }
}

/// A part of what is searched.
struct Window {
    bytes: Vec<u8>,
    /// The offset of its first byte.
    offset: u64,
    /// The line of its first byte.
    line: u64,
    /// Places that end here or before have been reported.
    reported: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self { bytes: Vec::new(), offset: 0, line: 1, reported: 0 }
    }
}

impl Window {
    fn keep_last(&mut self, count: usize) {
        let gone = self.bytes.len().saturating_sub(count);
        self.line += line_feeds(&self.bytes[..gone]);
        self.offset += gone as u64;
        self.reported = self.reported.saturating_sub(gone);
        self.bytes.drain(..gone);
    }
}

/// The line of places that come nearly in order, each byte counted about once.
struct Cursor {
    at: usize,
    line: u64,
}

impl Cursor {
    fn line_of(&mut self, bytes: &[u8], place: usize) -> u64 {
        if place < self.at {
            return self.line - line_feeds(&bytes[place..self.at]);
        }
        self.line += line_feeds(&bytes[self.at..place]);
        self.at = place;
        self.line
    }
}

fn line_feeds(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(names: &[&str], bytes: &[u8]) -> Vec<(usize, u64, u64, bool)> {
        let mut found = Vec::new();
        Finder::new(names).unwrap().in_bytes(bytes, |f| found.push((f.name, f.start, f.line, f.whole)));
        found
    }

    #[test]
    fn a_name_is_whole_where_no_letter_digit_dash_or_underscore_is_beside_it() {
        let whole = |text: &str| all(&["WM-DR-1"], text.as_bytes())[0].3;
        for text in ["WM-DR-1", "(WM-DR-1)", "WM-DR-1.md", "\u{201c}WM-DR-1\u{201d}", "x/WM-DR-1,", "\nWM-DR-1\r"] {
            assert!(whole(text), "{text}");
        }
        for text in ["WM-DR-10", "XWM-DR-1", "WM-DR-1-a", "_WM-DR-1", "-WM-DR-1"] {
            assert!(!whole(text), "{text}");
        }
    }

    #[test]
    fn names_within_names_are_all_found_with_their_lines() {
        let found = all(&["a-b", "b", "a-b-c"], b"x\na-b-c\n\nb\n");
        assert_eq!(found, [(0, 2, 2, false), (1, 4, 2, false), (2, 2, 2, true), (1, 9, 4, true)]);
    }

    #[test]
    fn bytes_that_are_no_text_are_searched_too() {
        assert_eq!(all(&["key"], b"\xff\0key\xfe"), [(0, 2, 1, true)]);
    }

    #[test]
    fn no_name_finds_nothing_and_an_empty_name_is_refused() {
        assert!(all(&[], b"anything").is_empty());
        assert!(Finder::new(&["a", ""]).is_err());
    }

    /// Gives a few bytes at a time.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len()).min(buffer.len());
            buffer[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    proptest! {
        #[test]
        fn a_search_in_pieces_finds_what_a_search_at_once_finds(
            text in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'b'), Just(b'-'), Just(b'\n'), Just(b' ')], 0..200),
            cuts in proptest::collection::vec(0usize..60, 0..8),
        ) {
            let names = ["a", "ab", "b-a", "aab", "a\nb"];
            let finder = Finder::new(&names).unwrap();
            let mut at_once = Vec::new();
            finder.in_bytes(&text, |found| at_once.push(found));
            let mut in_pieces = Vec::new();
            let mut window = Window::default();
            let mut rest = &text[..];
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                rest = behind;
                window.bytes.extend_from_slice(piece);
                finder.search(&mut window, false, |found| in_pieces.push(found));
                window.keep_last(finder.longest + 1);
            }
            window.bytes.extend_from_slice(rest);
            finder.search(&mut window, true, |found| in_pieces.push(found));
            prop_assert_eq!(&in_pieces, &at_once);
            let mut read = Vec::new();
            finder.in_reader(Slowly(&text, 3), |found| read.push(found)).unwrap();
            prop_assert_eq!(&read, &at_once);
            let places: usize = names.iter().map(|name| text.windows(name.len()).filter(|w| *w == name.as_bytes()).count()).sum();
            prop_assert_eq!(read.len(), places);
        }
    }
}
