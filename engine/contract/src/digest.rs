//! Digests: `sha256:` and 64 lower-case hexadecimal digits, over bytes or over a text made of lines.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

const PREFIX: &str = "sha256:";

/// A SHA-256 digest. Its text form is `sha256:` followed by 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`: the *content* digest where the bytes are a file's.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of everything `reader` gives, read in pieces so that a file's size bounds no memory.
    ///
    /// # Errors
    /// Whatever reading gives.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = Hasher::default();
        let mut piece = [0u8; 64 * 1024];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(n) => hasher.update(&piece[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// A digest under way.
#[derive(Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all that was added.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is no digest: wrong prefix, length or digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no digest: expected `sha256:` and 64 lower-case hex digits")]
pub struct NotADigest(String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || NotADigest(text.chars().take(80).collect());
        let hex = text.strip_prefix(PREFIX).ok_or_else(bad)?.as_bytes();
        if hex.len() != 64 {
            return Err(bad());
        }
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let mut out = [0u8; 32];
        for (byte, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0]).ok_or_else(bad)? << 4 | digit(pair[1]).ok_or_else(bad)?;
        }
        Ok(Self(out))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The digest of `PATH<TAB>DIGEST<LF>` lines in byte order of the path, each path once: the form of the *tree* and
/// *`read_set`* digests. A path without a content digest writes `-`. The order in which `entries` come changes nothing.
#[must_use]
pub fn of_paths<'a>(entries: impl IntoIterator<Item = (&'a str, Option<Digest>)>) -> Digest {
    let mut lines: Vec<_> = entries.into_iter().collect();
    lines.sort_unstable();
    lines.dedup_by(|b, a| a.0 == b.0);
    let mut hasher = Hasher::default();
    for (path, digest) in lines {
        hasher.update(path.as_bytes());
        hasher.update(b"\t");
        match digest {
            Some(d) => hasher.update(d.to_string().as_bytes()),
            None => hasher.update(b"-"),
        }
        hasher.update(b"\n");
    }
    hasher.finish()
}

/// The *selection* digest: the identifiers in byte order, each once, joined by one LF, no LF at the end.
#[must_use]
pub fn of_selection<'a>(identifiers: impl IntoIterator<Item = &'a str>) -> Digest {
    let mut ids: Vec<_> = identifiers.into_iter().collect();
    ids.sort_unstable();
    ids.dedup();
    Digest::of(ids.join("\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_its_prefix_and_64_lower_case_hex_digits() {
        let text = Digest::of(b"abc").to_string();
        assert_eq!(text, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(text.parse::<Digest>().unwrap(), Digest::of(b"abc"));
        for bad in [&text[1..], &text.to_uppercase(), &text[..70], "", "sha256:"] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_digest_is_over_lines_in_byte_order_each_path_once() {
        let d = Digest::of(b"x");
        let expected = Digest::of(format!("a.md\t{d}\nb.md\t-\n").as_bytes());
        assert_eq!(of_paths([("b.md", None), ("a.md", Some(d)), ("b.md", None)]), expected);
    }

    #[test]
    fn a_selection_digest_has_no_line_feed_at_the_end() {
        assert_eq!(of_selection(["P-2", "P-1", "P-2"]), Digest::of(b"P-1\nP-2"));
    }

    #[test]
    fn a_reader_and_its_bytes_have_one_digest() {
        let bytes = vec![7u8; 200_001];
        assert_eq!(Digest::of_reader(&bytes[..]).unwrap(), Digest::of(&bytes));
    }
}
