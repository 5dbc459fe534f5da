//! The output stream: whole lines, until the script wants it cut or silent.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::script::Misbehave;

/// Why a session stops before its end.
#[derive(Debug)]
pub enum Stop {
    /// The script cuts the stream here, and the process ends.
    Cut,
    /// The stream cannot be written.
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Where the lines go.
pub struct Stream<W> {
    out: W,
    lines: u64,
    bytes: u64,
    cut_after_bytes: Option<u64>,
    cut_in_line: Option<(u64, u64)>,
    silent_after_lines: Option<u64>,
}

impl<W: Write> Stream<W> {
    /// A stream that goes wrong as `misbehave` says.
    pub fn new(out: W, misbehave: &Misbehave) -> Self {
        Self {
            out,
            lines: 0,
            bytes: 0,
            cut_after_bytes: misbehave.cut_after_bytes,
            cut_in_line: misbehave.cut_in_line.map(|cut| (cut.line, cut.bytes)),
            silent_after_lines: misbehave.silent_after_lines,
        }
    }

    /// Writes one line from its value.
    ///
    /// # Errors
    /// Where the stream ends here.
    pub fn line(&mut self, value: &impl Serialize) -> Result<(), Stop> {
        let mut text = serde_json::to_vec(value).map_err(io::Error::from)?;
        text.push(b'\n');
        self.write(&text)
    }

    /// Writes bytes, which count as one line.
    ///
    /// # Errors
    /// Where the stream ends here.
    pub fn write(&mut self, text: &[u8]) -> Result<(), Stop> {
        if self.silent_after_lines.is_some_and(|last| self.lines >= last) {
            stay_for_ever();
        }
        self.lines += 1;
        let left = self.cut_after_bytes.map(|limit| limit.saturating_sub(self.bytes));
        let in_line = self.cut_in_line.filter(|(line, _)| *line == self.lines).map(|(_, bytes)| bytes);
        let keep = [left, in_line]
            .into_iter()
            .flatten()
            .min()
            .map_or(text.len(), |keep| usize::try_from(keep).unwrap_or(usize::MAX).min(text.len()));
        self.bytes += keep as u64;
        self.out.write_all(&text[..keep])?;
        self.out.flush()?;
        if keep < text.len() { Err(Stop::Cut) } else { Ok(()) }
    }
}

/// Stays alive and does nothing, until somebody ends the process.
pub fn stay_for_ever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(misbehave: &str, lines: &[&str]) -> (String, bool) {
        let mut out = Vec::new();
        let mut stream = Stream::new(&mut out, &serde_json::from_str(misbehave).unwrap());
        let cut = lines.iter().any(|line| matches!(stream.write(line.as_bytes()), Err(Stop::Cut)));
        (String::from_utf8(out).unwrap(), cut)
    }

    #[test]
    fn lines_are_written_as_they_are() {
        assert_eq!(written("{}", &["a\n", "b\n"]), ("a\nb\n".into(), false));
    }

    #[test]
    fn the_stream_is_cut_after_so_many_bytes_and_not_before() {
        assert_eq!(written(r#"{"cut_after_bytes": 3}"#, &["aa\n", "bb\n"]), ("aa\n".into(), true));
        assert_eq!(written(r#"{"cut_after_bytes": 4}"#, &["aa\n", "bb\n"]), ("aa\nb".into(), true));
        assert_eq!(written(r#"{"cut_after_bytes": 6}"#, &["aa\n", "bb\n"]), ("aa\nbb\n".into(), false));
    }

    #[test]
    fn the_stream_is_cut_in_the_line_that_is_named() {
        let cut = r#"{"cut_in_line": {"line": 2, "bytes": 1}}"#;
        assert_eq!(written(cut, &["aa\n", "bb\n", "cc\n"]), ("aa\nb".into(), true));
    }
}
