//! Bytes to lines of any length, in memory that is bounded by the longest line.

use std::io::{self, BufRead};

/// Above this many bytes the buffer of a long line is given back, so that one long line does not set the memory of
/// everything after it.
const KEEP: usize = 1 << 20;

/// One line, without its line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It is longer than the limit, and its bytes were passed over.
    TooLong,
}

/// Gives each line of `input` to `visit`, and whether a line feed ended it. Nothing after the last line feed is no
/// line. A line over `limit` bytes is visited as [`Line::TooLong`].
///
/// # Errors
/// Whatever reading gives; an interrupted read is tried again.
pub(super) fn each(mut input: impl BufRead, limit: usize, mut visit: impl FnMut(Line<'_>, bool)) -> io::Result<()> {
    let mut carried = Carried { bytes: Vec::new(), over: false, limit };
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        if buffer.is_empty() {
            break;
        }
        let read = buffer.len();
        let mut rest = buffer;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            visit(carried.complete(&rest[..end]), true);
            carried.clear();
            rest = &rest[end + 1..];
        }
        carried.add(rest);
        input.consume(read);
    }
    if carried.over || !carried.bytes.is_empty() {
        visit(carried.complete(b""), false);
    }
    Ok(())
}

/// The beginning of a line whose end is not read yet.
struct Carried {
    bytes: Vec<u8>,
    over: bool,
    limit: usize,
}

impl Carried {
    fn add(&mut self, piece: &[u8]) {
        if self.over || piece.len() > self.limit - self.bytes.len() {
            self.over = true;
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(piece);
        }
    }

    /// The line that ends with `end`: in place where all of it is in one buffer.
    fn complete<'a>(&'a mut self, end: &'a [u8]) -> Line<'a> {
        if self.bytes.is_empty() && !self.over && end.len() <= self.limit {
            return Line::Whole(end);
        }
        self.add(end);
        if self.over { Line::TooLong } else { Line::Whole(&self.bytes) }
    }

    fn clear(&mut self) {
        self.over = false;
        if self.bytes.capacity() > KEEP {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::BufReader;

    fn lines(bytes: &[u8], buffer: usize, limit: usize) -> Vec<(Option<Vec<u8>>, bool)> {
        let mut out = Vec::new();
        each(BufReader::with_capacity(buffer, bytes), limit, |line, ended| {
            out.push((if let Line::Whole(bytes) = line { Some(bytes.to_vec()) } else { None }, ended));
        })
        .unwrap();
        out
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over_and_the_next_one_is_read() {
        for buffer in [1, 3, 4, 5, 64] {
            let read = lines(b"abcd\nabcde\nab\nabcdef", buffer, 4);
            assert_eq!(
                read,
                [(Some(b"abcd".to_vec()), true), (None, true), (Some(b"ab".to_vec()), true), (None, false)],
                "{buffer}"
            );
        }
    }

    #[test]
    fn what_follows_the_last_line_feed_is_a_line_only_where_it_holds_a_byte() {
        assert_eq!(lines(b"a\n", 8, 8), [(Some(b"a".to_vec()), true)]);
        assert_eq!(lines(b"a\nb", 8, 8), [(Some(b"a".to_vec()), true), (Some(b"b".to_vec()), false)]);
        assert_eq!(lines(b"", 8, 8), []);
        assert_eq!(lines(b"\n\n", 8, 8), [(Some(vec![]), true), (Some(vec![]), true)]);
    }

    proptest! {
        #[test]
        fn lines_joined_are_the_bytes_whatever_the_buffer(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200),
            buffer in 1usize..50,
        ) {
            let mut joined = Vec::new();
            for (line, ended) in lines(&bytes, buffer, 1000) {
                joined.extend(line.unwrap());
                if ended {
                    joined.push(b'\n');
                }
            }
            prop_assert_eq!(joined, bytes);
        }
    }
}
