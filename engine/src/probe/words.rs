//! Which documents a tool call names, and for that: the words that a shell command reads.
//!
//! A command is split as a shell splits it and nothing in it is expanded. What a variable, a glob, a tilde, a brace or
//! a command substitution inside double quotes stands for is therefore not seen; `$'…'` keeps its `$`. Three more
//! things differ from a shell because the rule is one of words: a run of operator characters is one operator (the word
//! behind `>(` is taken for a target, and `;>` starts no command), `<<` is a heredoc inside `$(( ))` too, and a
//! comment in backticks runs to the end of its line.

use headwater_contract::transcript::Call;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

/// The tool whose argument is a shell command.
pub const SHELL: &str = "Bash";

/// What of a call can name a document: its argument and, for the shell, every word that its command reads.
#[must_use]
pub fn candidates(call: &Call) -> Vec<Cow<'_, str>> {
    let mut texts = vec![Cow::Borrowed(call.argument.as_str())];
    if call.tool == SHELL
        && let Some(command) = command(&call.argument)
    {
        texts.extend(reads(&command).into_iter().map(Cow::Owned));
    }
    texts
}

/// Whether `text` names the document at `path`: it is the path, or ends with `/` and the path. A `\` counts as a `/`.
#[must_use]
pub fn names(text: &str, path: &str) -> bool {
    let slash = |b: u8| if b == b'\\' { b'/' } else { b };
    let (text, path) = (text.as_bytes(), path.as_bytes());
    if path.is_empty() || text.len() < path.len() {
        return false;
    }
    let (before, tail) = text.split_at(text.len() - path.len());
    before.last().is_none_or(|b| slash(*b) == b'/') && tail.iter().zip(path).all(|(a, b)| slash(*a) == slash(*b))
}

/// The words of a command that count as reads, in order: every word but the targets of output redirections, the
/// delimiters and bodies of heredocs, and what stands in a command whose first word is `tee`. A word `-o=value` or
/// `--option=value` gives its value too. A redirection is no part of the command around it: `<` is read even in a
/// command that is `tee`, and the first word of `<in tee out` is `tee`.
///
/// Takes time linear in the length of the command, and takes any text.
#[must_use]
pub fn reads(command: &str) -> Vec<String> {
    let mut lexer = Lexer { text: command, at: 0, pending: VecDeque::new() };
    let mut words = Vec::new();
    let mut part = Part::Start;
    let mut role = Role::Argument;
    while let Some(token) = lexer.next() {
        match token {
            Token::Operator(run) => {
                role = Role::behind(run);
                if role == Role::Argument {
                    part = Part::Start;
                }
            }
            Token::Word(word) => match std::mem::replace(&mut role, Role::Argument) {
                Role::Written => {}
                Role::Read => read(word.text, &mut words),
                Role::Delimiter { strips } => lexer.pending.push_back(Heredoc { strips, delimiter: word }),
                Role::Argument => {
                    if part == Part::Start {
                        part = if word.text == "tee" { Part::Tee } else { Part::Rest };
                    }
                    if part == Part::Rest {
                        read(word.text, &mut words);
                    }
                }
            },
        }
    }
    words
}

fn read(word: String, words: &mut Vec<String>) {
    let value = word.split_once('=').filter(|_| word.starts_with('-')).map(|(_, value)| value.to_owned());
    words.push(word);
    words.extend(value);
}

/// Where in a command the next argument stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    Rest,
    Tee,
}

/// What the next word is to the operator before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Argument,
    Written,
    Read,
    Delimiter { strips: bool },
}

impl Role {
    fn behind(run: &str) -> Self {
        match run {
            _ if run.contains('>') => Self::Written,
            _ if run.ends_with("<<-") => Self::Delimiter { strips: true },
            _ if opens_heredoc(run) => Self::Delimiter { strips: false },
            _ if run.contains('<') => Self::Read,
            _ => Self::Argument,
        }
    }
}

fn opens_heredoc(run: &str) -> bool {
    run.ends_with("<<") && !run.ends_with("<<<")
}

enum Token<'a> {
    Word(Word),
    /// A run of operator characters, with the `-` of `<<-`.
    Operator(&'a str),
}

/// A word without its quotes.
struct Word {
    text: String,
    quoted: bool,
}

struct Heredoc {
    delimiter: Word,
    strips: bool,
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Heredocs whose delimiter is read and whose body starts behind the next newline.
    pending: VecDeque<Heredoc>,
}

const fn is_operator(b: u8) -> bool {
    matches!(b, b'|' | b'&' | b';' | b'<' | b'>' | b'(' | b')' | b'`' | b'\n')
}

const fn ends_plain_text(b: u8) -> bool {
    is_operator(b) || matches!(b, b' ' | b'\t' | b'\'' | b'"' | b'\\')
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        self.pass_blanks();
        match self.byte()? {
            b if is_operator(b) => Some(Token::Operator(self.operator())),
            _ => Some(self.word()),
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Takes everything before the first byte for which `ends` holds.
    fn take_until(&mut self, ends: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().position(ends).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn pass_blanks(&mut self) {
        loop {
            match self.byte() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.rest().starts_with("\\\n") => self.at += 2,
                Some(b'#') => {
                    self.take_until(|b| b == b'\n');
                }
                _ => return,
            }
        }
    }

    fn operator(&mut self) -> &'a str {
        let start = self.at;
        while let Some(b) = self.byte().filter(|b| is_operator(*b)) {
            self.at += 1;
            if b == b'\n' && !self.pending.is_empty() {
                let run = &self.text[start..self.at];
                self.pass_bodies();
                return run;
            }
        }
        if opens_heredoc(&self.text[start..self.at]) && self.byte() == Some(b'-') {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    fn pass_bodies(&mut self) {
        while let Some(heredoc) = self.pending.pop_front() {
            self.pass_body(&heredoc);
        }
    }

    fn pass_body(&mut self, heredoc: &Heredoc) {
        let mut continued = false;
        while self.byte().is_some() {
            let line = self.take_until(|b| b == b'\n');
            self.at = self.text.len().min(self.at + 1);
            let shown = if heredoc.strips { line.trim_start_matches('\t') } else { line };
            if !continued && shown == heredoc.delimiter.text {
                return;
            }
            // A backslash joins two lines of a body, unless the delimiter is quoted.
            let backslashes = line.bytes().rev().take_while(|b| *b == b'\\').count();
            continued = !heredoc.delimiter.quoted && backslashes % 2 == 1;
        }
    }

    /// A word, or nothing but the operator where it is the number of the descriptor that is redirected.
    fn word(&mut self) -> Token<'a> {
        let mut word = Word { text: String::new(), quoted: false };
        while let Some(b) = self.byte() {
            match b {
                b' ' | b'\t' => break,
                b'<' | b'>' if !word.quoted && is_number(&word.text) => return Token::Operator(self.operator()),
                b if is_operator(b) => break,
                b'\'' => self.single_quoted(&mut word),
                b'"' => self.double_quoted(&mut word),
                b'\\' => self.escaped(&mut word),
                _ => word.text.push_str(self.take_until(ends_plain_text)),
            }
        }
        Token::Word(word)
    }

    fn single_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        word.quoted = true;
        word.text.push_str(self.take_until(|b| b == b'\''));
        self.pass_closing_quote();
    }

    fn double_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        word.quoted = true;
        loop {
            word.text.push_str(self.take_until(|b| matches!(b, b'"' | b'\\')));
            if self.byte() != Some(b'\\') {
                break;
            }
            match self.text.as_bytes().get(self.at + 1) {
                Some(b'\n') => self.at += 2,
                Some(b @ (b'$' | b'`' | b'"' | b'\\')) => {
                    word.text.push(char::from(*b));
                    self.at += 2;
                }
                _ => {
                    word.text.push('\\');
                    self.at += 1;
                }
            }
        }
        self.pass_closing_quote();
    }

    fn pass_closing_quote(&mut self) {
        self.at = self.text.len().min(self.at + 1);
    }

    fn escaped(&mut self, word: &mut Word) {
        self.at += 1;
        match self.rest().chars().next() {
            Some('\n') => self.at += 1,
            Some(c) => {
                word.quoted = true;
                word.text.push(c);
                self.at += c.len_utf8();
            }
            None => word.text.push('\\'),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// The `command` of a shell call's input, the last one where there are several. Other members may be anything at any
/// depth: they hide no command. A lone surrogate becomes U+FFFD.
fn command(input: &str) -> Option<String> {
    let mut json = serde_json::Deserializer::from_str(input);
    json.deserialize_map(InputVisitor).ok().flatten()
}

struct InputVisitor;

impl<'de> Visitor<'de> for InputVisitor {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the input of a shell call")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut command = None;
        while let Some(Text(key)) = members.next_key()? {
            if key == "command" {
                command = Some(members.next_value::<Text>()?.0);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(command)
    }
}

/// A JSON string taken as bytes, since a string of JSON may hold half of a surrogate pair.
struct Text(String);

impl<'de> serde::Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text, E> {
                Ok(Text(String::from_utf8_lossy(bytes).into_owned()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// Commands and the words of them that are reads.
    const TABLE: &[(&str, &[&str])] = &[
        // Plain words.
        ("", &[]),
        ("   \t ", &[]),
        ("\n\n", &[]),
        ("cat docs/a.md", &["cat", "docs/a.md"]),
        ("  cat\tdocs/a.md  ", &["cat", "docs/a.md"]),
        ("ls docs/a.md", &["ls", "docs/a.md"]),
        ("rm -f docs/a.md", &["rm", "-f", "docs/a.md"]),
        ("docs/a.md", &["docs/a.md"]),
        ("./docs/a.md x", &["./docs/a.md", "x"]),
        ("A=docs/a.md cat", &["A=docs/a.md", "cat"]),
        ("cat [a]* ?b {c,d} ~/e", &["cat", "[a]*", "?b", "{c,d}", "~/e"]),
        ("! cat a", &["!", "cat", "a"]),
        ("if cat a\nthen b\nfi", &["if", "cat", "a", "then", "b", "fi"]),
        ("cat $DOCS/a.md ${X}", &["cat", "$DOCS/a.md", "${X}"]),
        ("cat \u{e9}t\u{e9}.md \u{1f600}", &["cat", "\u{e9}t\u{e9}.md", "\u{1f600}"]),
        // What a shell takes for a part of a word although it looks like a blank.
        ("cat a\u{a0}b", &["cat", "a\u{a0}b"]),
        ("cat a\u{2028}b\u{2029}c", &["cat", "a\u{2028}b\u{2029}c"]),
        ("cat a\u{b}b\u{c}c\u{85}d", &["cat", "a\u{b}b\u{c}c\u{85}d"]),
        ("cat a\0b", &["cat", "a\0b"]),
        ("cat docs/a.md\r\ncat b\r\n", &["cat", "docs/a.md\r", "cat", "b\r"]),
        ("cat \r a", &["cat", "\r", "a"]),
        // Single quotes.
        ("cat 'docs/a b.md'", &["cat", "docs/a b.md"]),
        ("cat 'a'b'c'", &["cat", "abc"]),
        ("cat ''", &["cat", ""]),
        ("cat 'a\\' b", &["cat", "a\\", "b"]),
        ("cat 'a\nb'", &["cat", "a\nb"]),
        ("cat 'a;b|c>d<e&f(g)h`i`#j'", &["cat", "a;b|c>d<e&f(g)h`i`#j"]),
        ("cat '\"$x\"'", &["cat", "\"$x\""]),
        ("cat 'docs/a.md", &["cat", "docs/a.md"]),
        ("cat '", &["cat", ""]),
        ("c'a't a", &["cat", "a"]),
        // Double quotes.
        ("cat \"docs/a b.md\"", &["cat", "docs/a b.md"]),
        ("cat \"a\"b\"c\"", &["cat", "abc"]),
        ("cat \"\"", &["cat", ""]),
        (r#"cat "a\"b""#, &["cat", "a\"b"]),
        (r#"cat "a\\b""#, &["cat", r"a\b"]),
        (r#"cat "a\$b\`c""#, &["cat", "a$b`c"]),
        (r#"cat "a\nb\'c""#, &["cat", r"a\nb\'c"]),
        ("cat \"a\\\nb\"", &["cat", "ab"]),
        ("cat \"a\nb\"", &["cat", "a\nb"]),
        ("cat \"a\\\u{e9}\"", &["cat", "a\\\u{e9}"]),
        ("cat \"it's\"", &["cat", "it's"]),
        ("cat \"a;b|c>d<e&f(g)h`i`#j\"", &["cat", "a;b|c>d<e&f(g)h`i`#j"]),
        ("cat \"docs/a.md", &["cat", "docs/a.md"]),
        ("cat \"a\\", &["cat", "a\\"]),
        ("cat \"", &["cat", ""]),
        ("cat \"$(cat docs/a.md)\"", &["cat", "$(cat docs/a.md)"]),
        ("cat \"`cat docs/a.md`\"", &["cat", "`cat docs/a.md`"]),
        ("cat \"$D/docs/a.md\"", &["cat", "$D/docs/a.md"]),
        ("cat \"a\"'b'c\\d", &["cat", "abcd"]),
        // Quotes that another shell has and this rule has not.
        ("cat $'a\\tb'", &["cat", "$a\\tb"]),
        ("cat $\"a\"", &["cat", "$a"]),
        // Backslashes.
        ("cat a\\ b", &["cat", "a b"]),
        ("cat a\\\\b", &["cat", "a\\b"]),
        ("cat \\\"a\\'", &["cat", "\"a'"]),
        ("cat a\\;b\\|c\\>d", &["cat", "a;b|c>d"]),
        ("cat docs\\/a.md", &["cat", "docs/a.md"]),
        ("cat do\\\ncs/a.md", &["cat", "docs/a.md"]),
        ("cat \\\n  docs/a.md", &["cat", "docs/a.md"]),
        ("cat \\\\\ndocs/a.md", &["cat", "\\", "docs/a.md"]),
        ("cat \\#a", &["cat", "#a"]),
        ("cat \\\u{e9}", &["cat", "\u{e9}"]),
        ("cat a\\\tb", &["cat", "a\tb"]),
        ("cat a\\", &["cat", "a\\"]),
        ("\\", &["\\"]),
        ("cat a\\\r\nb", &["cat", "a\r", "b"]),
        // Comments.
        ("# docs/a.md", &[]),
        ("cat a # docs/b.md", &["cat", "a"]),
        ("cat a # 'b\ncat c", &["cat", "a", "cat", "c"]),
        ("cat a #", &["cat", "a"]),
        ("cat a#b", &["cat", "a#b"]),
        ("cat ''#b", &["cat", "#b"]),
        ("cat a;#b\ncat c", &["cat", "a", "cat", "c"]),
        ("cat (#b\nc)", &["cat", "c"]),
        ("cat a|#b\nwc", &["cat", "a", "wc"]),
        ("cat \\\n# a", &["cat"]),
        ("cat a\\\n#b", &["cat", "a#b"]),
        ("cat # a \\\ncat b", &["cat", "cat", "b"]),
        ("cat '# a'", &["cat", "# a"]),
        ("cat $# a", &["cat", "$#", "a"]),
        ("cat \u{a0}#a", &["cat", "\u{a0}#a"]),
        // Operators.
        ("cat a|wc", &["cat", "a", "wc"]),
        ("cat a||cat b", &["cat", "a", "cat", "b"]),
        ("cat a&&cat b&", &["cat", "a", "cat", "b"]),
        ("cat a;cat b;", &["cat", "a", "cat", "b"]),
        ("cat a |& cat b", &["cat", "a", "cat", "b"]),
        ("(cat a)", &["cat", "a"]),
        ("((cat a);(cat b))", &["cat", "a", "cat", "b"]),
        ("{ cat a; }", &["{", "cat", "a", "}"]),
        ("case x in a) cat b;; esac", &["case", "x", "in", "a", "cat", "b", "esac"]),
        ("f() { cat a; }", &["f", "{", "cat", "a", "}"]),
        ("|;&", &[]),
        ("cat a\ncat b\n", &["cat", "a", "cat", "b"]),
        ("cat a | # b\n wc", &["cat", "a", "wc"]),
        ("cat a'|'b", &["cat", "a|b"]),
        // Command substitution.
        ("echo $(cat docs/a.md)", &["echo", "$", "cat", "docs/a.md"]),
        ("echo `cat docs/a.md`", &["echo", "cat", "docs/a.md"]),
        ("echo a$(cat b)c", &["echo", "a$", "cat", "b", "c"]),
        ("echo $(<docs/a.md)", &["echo", "$", "docs/a.md"]),
        ("x=$(cat a) cat b", &["x=$", "cat", "a", "cat", "b"]),
        ("echo $((1+2))", &["echo", "$", "1+2"]),
        ("echo '$(cat a)'", &["echo", "$(cat a)"]),
        ("echo $(echo $(cat a))", &["echo", "$", "echo", "$", "cat", "a"]),
        ("diff <(cat a) <(cat b)", &["diff", "cat", "a", "cat", "b"]),
        // Output redirections.
        ("cat a > docs/b.md", &["cat", "a"]),
        ("cat a>docs/b.md", &["cat", "a"]),
        ("cat a >> docs/b.md", &["cat", "a"]),
        ("cat a >| docs/b.md", &["cat", "a"]),
        ("cat a &> docs/b.md", &["cat", "a"]),
        ("cat a &>> docs/b.md c", &["cat", "a", "c"]),
        ("cat a >& docs/b.md", &["cat", "a"]),
        ("cat a 2> docs/b.md", &["cat", "a"]),
        ("cat a 2>docs/b.md 1>>c d", &["cat", "a", "d"]),
        ("cat a > b c", &["cat", "a", "c"]),
        ("> docs/b.md cat a", &["cat", "a"]),
        (">docs/b.md", &[]),
        ("cat a 2>&1", &["cat", "a"]),
        ("cat a 2>&1 b", &["cat", "a", "b"]),
        ("cat a 2>&1|wc b", &["cat", "a", "wc", "b"]),
        ("cat a >&2;cat b", &["cat", "a", "cat", "b"]),
        ("cat a 2>&- b", &["cat", "a", "b"]),
        ("cat a <> docs/b.md", &["cat", "a"]),
        ("cat a > 'docs/b c.md' d", &["cat", "a", "d"]),
        ("cat a > \"docs/\"b.md d", &["cat", "a", "d"]),
        ("cat a > \\\ndocs/b.md c", &["cat", "a", "c"]),
        ("cat a > --x=docs/b.md", &["cat", "a"]),
        ("cat a > # b\ncat c", &["cat", "a", "cat", "c"]),
        ("cat a > ; cat b", &["cat", "a", "cat", "b"]),
        ("cat a >", &["cat", "a"]),
        ("(cat a)>b c", &["cat", "a", "c"]),
        ("cat a2>b", &["cat", "a2"]),
        ("cat 2 >b", &["cat", "2"]),
        ("cat '2'>b", &["cat", "2"]),
        ("cat \\2>b", &["cat", "2"]),
        ("cat 12>b c", &["cat", "c"]),
        ("cat a >$OUT b", &["cat", "a", "b"]),
        ("cat a > >(wc b)", &["cat", "a", "b"]),
        // Input redirections.
        ("cat < docs/a.md", &["cat", "docs/a.md"]),
        ("cat <docs/a.md b", &["cat", "docs/a.md", "b"]),
        ("cat 0<docs/a.md", &["cat", "docs/a.md"]),
        ("cat 3< docs/a.md <&3", &["cat", "docs/a.md", "3"]),
        ("<docs/a.md cat", &["docs/a.md", "cat"]),
        ("while read x; do :; done <docs/a.md", &["while", "read", "x", "do", ":", "done", "docs/a.md"]),
        ("cat <a >b", &["cat", "a"]),
        ("cat <a>b c", &["cat", "a", "c"]),
        ("cat <", &["cat"]),
        // Here-strings.
        ("cat <<< docs/a.md", &["cat", "docs/a.md"]),
        ("cat <<<docs/a.md b", &["cat", "docs/a.md", "b"]),
        ("cat <<<'a b'\ncat c", &["cat", "a b", "cat", "c"]),
        ("cat 0<<<a", &["cat", "a"]),
        // Heredocs.
        ("cat <<EOF\ndocs/a.md\nEOF\n", &["cat"]),
        ("cat <<EOF\ndocs/a.md\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat << EOF\ncat a\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<EOF b\ncat a\nEOF", &["cat", "b"]),
        ("cat <<EOF >docs/b.md\ncat a\nEOF\ncat c", &["cat", "cat", "c"]),
        ("cat >docs/b.md <<EOF\ncat a\nEOF\ncat c", &["cat", "cat", "c"]),
        ("cat <<EOF|wc b\ncat a\nEOF\ncat c", &["cat", "wc", "b", "cat", "c"]),
        ("cat <<EOF && cat b\ncat a\nEOF\ncat c", &["cat", "cat", "b", "cat", "c"]),
        ("cat <<EOF &&\ncat a\nEOF\ncat c", &["cat", "cat", "c"]),
        ("cat <<'EOF'\ncat a\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<\"E F\"\ncat a\nE F\ncat b", &["cat", "cat", "b"]),
        ("cat <<\\EOF\ncat a\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<E'O'F\ncat a\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<''\ncat a\n\ncat b", &["cat", "cat", "b"]),
        ("cat <<EOF\n EOF\nEOF \ncat a\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<EOF\n\tEOF\ncat a\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<-EOF\n\tcat a\n\t\tEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<- 'EOF'\n\tcat a\n\tEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<-EOF\n EOF\ncat a\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat << -EOF\ncat a\n-EOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<A <<B\ncat a\nA\ncat b\nB\ncat c", &["cat", "cat", "c"]),
        ("cat <<A; cat <<-B d\ncat a\nB\nA\n\tA\n\tB\ncat c", &["cat", "cat", "d", "cat", "c"]),
        ("cat <<EOF\ncat a\ncat b", &["cat"]),
        ("cat <<EOF", &["cat"]),
        ("cat <<EOF\n", &["cat"]),
        ("cat <<EOF\ncat a\nEOF", &["cat"]),
        ("cat <<A <<B\ncat a\nA\ncat b", &["cat"]),
        ("cat <<EOF\n'\"`$(\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<EOF\nx\\\nEOF\ncat a\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<EOF\nx\\\\\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<'EOF'\nx\\\nEOF\ncat b", &["cat", "cat", "b"]),
        ("cat <<EOF # b\ncat a\nEOF\ncat c", &["cat", "cat", "c"]),
        ("cat <<EOF 'b\nc'\ncat a\nEOF\ncat d", &["cat", "b\nc", "cat", "d"]),
        ("x=$(cat <<EOF\ncat a\nEOF\n)\ncat b", &["x=$", "cat", "cat", "b"]),
        ("cat 3<<EOF b\ncat a\nEOF\ncat c", &["cat", "b", "cat", "c"]),
        ("cat <<EOF\r\ncat a\r\nEOF\r\ncat b", &["cat", "cat", "b"]),
        ("cat << # a\ncat b", &["cat", "cat", "b"]),
        ("cat <<<a <<EOF\ncat b\nEOF\ncat c", &["cat", "a", "cat", "c"]),
        ("echo $((1<<4))\ncat a\n4\ncat b", &["echo", "$", "cat", "b"]),
        // tee.
        ("tee docs/a.md", &[]),
        ("tee -a docs/a.md docs/b.md", &[]),
        ("tee --output-error=warn docs/a.md", &[]),
        ("cat a | tee docs/b.md", &["cat", "a"]),
        ("cat a | tee docs/b.md | wc c", &["cat", "a", "wc", "c"]),
        ("cat a|tee -a docs/b.md&&cat docs/b.md", &["cat", "a", "cat", "docs/b.md"]),
        ("tee docs/a.md\ncat b", &["cat", "b"]),
        ("'tee' docs/a.md", &[]),
        ("t\\ee docs/a.md", &[]),
        ("(tee docs/a.md)", &[]),
        ("echo $(tee docs/a.md)", &["echo", "$"]),
        ("echo `tee docs/a.md` b", &["echo", "b"]),
        ("tee docs/a.md < docs/b.md", &["docs/b.md"]),
        ("< docs/b.md tee docs/a.md", &["docs/b.md"]),
        ("2>/dev/null tee docs/a.md", &[]),
        ("tee docs/a.md > docs/b.md docs/c.md", &[]),
        ("tee docs/a.md <<EOF\ndocs/b.md\nEOF\ncat c", &["cat", "c"]),
        ("tee docs/a.md <<< docs/b.md", &["docs/b.md"]),
        ("cat tee docs/a.md", &["cat", "tee", "docs/a.md"]),
        ("man tee; cat a", &["man", "tee", "cat", "a"]),
        ("sudo tee docs/a.md", &["sudo", "tee", "docs/a.md"]),
        ("/usr/bin/tee docs/a.md", &["/usr/bin/tee", "docs/a.md"]),
        ("A=1 tee docs/a.md", &["A=1", "tee", "docs/a.md"]),
        ("tee1 docs/a.md", &["tee1", "docs/a.md"]),
        ("tees docs/a.md | tee b", &["tees", "docs/a.md"]),
        ("tee a;>b cat c", &[]),
        ("tee a; >b cat c", &["cat", "c"]),
        // Values of options.
        ("grep -f=docs/a.md", &["grep", "-f=docs/a.md", "docs/a.md"]),
        ("grep --file=docs/a.md", &["grep", "--file=docs/a.md", "docs/a.md"]),
        ("grep --file='docs/a b.md'", &["grep", "--file=docs/a b.md", "docs/a b.md"]),
        ("grep '--file=docs/a.md'", &["grep", "--file=docs/a.md", "docs/a.md"]),
        ("x --a=b=c", &["x", "--a=b=c", "b=c"]),
        ("x --a=", &["x", "--a=", ""]),
        ("x --file docs/a.md", &["x", "--file", "docs/a.md"]),
        ("dd if=docs/a.md", &["dd", "if=docs/a.md"]),
    ];

    #[test]
    fn a_command_gives_the_words_that_it_reads() {
        assert!(TABLE.len() >= 150, "{}", TABLE.len());
        for (command, words) in TABLE {
            assert_eq!(reads(command), *words, "{command:?}");
        }
    }

    fn call(tool: &str, argument: &str) -> Call {
        Call { tool: tool.into(), argument: argument.into(), result: String::new() }
    }

    fn named(tool: &str, argument: &str, path: &str) -> bool {
        candidates(&call(tool, argument)).iter().any(|text| names(text, path))
    }

    #[test]
    fn a_text_names_the_path_it_is_or_ends_with_behind_a_slash() {
        for text in ["docs/a.md", "/ws/docs/a.md", "./docs/a.md", "docs\\a.md", "C:\\ws\\docs\\a.md", "x//docs/a.md"] {
            assert!(names(text, "docs/a.md"), "{text}");
        }
        for text in ["docs/a.md.bak", "docs/a.md/", "mydocs/a.md", "a.md", "docs/a.m", "docs//a.md", "DOCS/a.md", ""] {
            assert!(!names(text, "docs/a.md"), "{text}");
        }
        assert!(!names("x.md.bak", "x.md"));
        assert!(!names("anything/", ""), "no path is named by everything");
        assert!(names("\u{e9}/x.md", "x.md") && !names("\u{e9}x.md", "x.md"));
    }

    #[test]
    fn a_call_of_the_shell_names_what_its_command_reads() {
        for command in [r#"{"command":"cat docs/a.md"}"#, r#"{"command":"ls","timeout":1,"command":"cat docs/a.md"}"#] {
            assert!(named("Bash", command, "docs/a.md"), "{command}");
            assert!(!named("Grep", command, "docs/a.md"), "{command}");
        }
        let split = "{\"command\":\"cat \\\"docs/a.md\\\" \\u00e9\\n\"}";
        assert!(named("Bash", split, "docs/a.md"));
        for other in [
            r#"{"command":"echo > docs/a.md"}"#,
            r#"{"description":"cat docs/a.md","command":"ls"}"#,
            r#"{"command":["cat","docs/a.md"]}"#,
            r#"["cat docs/a.md"]"#,
            "cat docs/a.md \"",
            "",
        ] {
            assert!(!named("Bash", other, "docs/a.md"), "{other}");
        }
        assert!(named("Bash", "docs/a.md", "docs/a.md"), "an argument names a document whatever the tool");
    }

    #[test]
    fn no_member_of_an_input_hides_its_command() {
        let deep = format!("{{\"x\":{}{},\"command\":\"cat docs/a.md\"}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(named("Bash", &deep, "docs/a.md"));
        let lone = r#"{"\udc00":1e999,"command":"cat docs/a.md '\ud800'","y":"\ud800"}"#;
        assert!(named("Bash", lone, "docs/a.md"));
    }

    /// The words of a script as the real shell sees them, in order, or nothing where it finds an error. Every command
    /// is a function that reports its arguments, so nothing else of the machine runs.
    fn bash(script: &str) -> Option<Vec<String>> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("in"), "").unwrap();
        let tracing = "exec 9>&1; w() { [ $# = 0 ] || printf '%s\\0' \"$@\" >&9; }; tee() { :; }; set -ef\n";
        let output = Command::new("bash")
            .args(["--norc", "--noprofile", "-c", &format!("{tracing}{script}")])
            .current_dir(dir.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .output()
            .expect("this test asks the real bash, which has to be in PATH");
        if !output.status.success() || !output.stderr.is_empty() {
            return None;
        }
        let text = String::from_utf8(output.stdout).unwrap();
        Some(text.split_terminator('\0').filter(|w| is_argument(w)).map(str::to_owned).collect())
    }

    /// The arguments that this rule sees in a script whose commands are `w` and `tee`: its reads without the names of
    /// the commands, the values of options, and the sources of redirections (`in`, `text`), none of which a shell
    /// passes as arguments.
    fn arguments(script: &str) -> Vec<String> {
        reads(script).into_iter().filter(|w| is_argument(w)).collect()
    }

    fn is_argument(word: &str) -> bool {
        !matches!(word, "w" | "in" | "text")
    }

    #[test]
    fn a_shell_splits_these_commands_into_the_same_words() {
        for script in [
            "w docs/a.md 'b c' \"d e\" f\\ g ''",
            "w 'a'b\"c\"\\d",
            "w \"a\\\"b\\\\c\\$d\\`e\\f\\\ng\"",
            "w a\\\nb \\\n c",
            "w a # b 'c\nw d#e ''#f \\#g",
            "w a;w b\nw c&& w d",
            "w a;#b\nw c",
            "(w a; (w b))",
            "w a >o b 2>&1 c >>o d >|o e &>o f 2>o 1>o g",
            ">o w a; w b <in c <<<text d 0<in e",
            "w 2 >o; w a2>o; w '2'>o; w \\2>o; w 2>o b",
            "w <<EOF a\nw no\n\tEOF\nEOF \nEOF\nw b",
            "w <<-EOF a\n\tw no\n\t\tEOF\nw b",
            "w <<'E F' a\nw no\nE F\nw b",
            "w <<\\EOF a\nw no\nEOF\nw b",
            "w <<A <<-B a\nw no\nA\nw no\n\tB\nw b",
            "w <<A a; w <<B b\nB\nA\nA\nB\nw c",
            "w <<EOF a\nw no\\\nEOF\nw no\nEOF\nw b",
            "w <<'EOF' a\nw no\\\nEOF\nw b",
            "w <<EOF a\nw no\\\\\nEOF\nw b",
            "w <<EOF 'a\nb'\nw no\nEOF\nw c",
            "w <<EOF > o a &&\nw no\nEOF\nw b",
            "w <<EOF # w\nw no\nEOF\nw a",
            "tee a b; w c; tee <in; <in tee d; 2>o tee e",
            "w tee a; 'tee' b; t\\ee c",
            "w a\r b\u{a0}c d\u{2028}e f\u{b}g\r",
            "w \u{e9}\\\u{e9}\"\u{e9}\"'\u{1f600}'",
            "w <<EOF\r a\nw no\nEOF\r\nw b",
        ] {
            let expected = bash(script).unwrap_or_else(|| panic!("bash refuses {script:?}"));
            assert_eq!(arguments(script), expected, "{script:?}");
        }
    }

    #[test]
    fn a_shell_splits_made_up_commands_into_the_same_words() {
        const PIECES: &str = "a@b@a@ @ @\t@'@'@\"@\"@\\@\\@#@ #@\nw @;w @\u{e9}@\r@\u{2028}@2>o @ >o @ 2>&1@ <in @ <<<text @ <<E\nw @\nE\nw @ <<-'E' @\n\tE\nw ";
        let piece = prop::sample::select(PIECES.split('@').collect::<Vec<_>>());
        let mut compared = 0;
        let runner = &mut TestRunner::deterministic();
        let scripts = prop::collection::vec(piece, 1..14);
        for _ in 0..600 {
            // A newline ends each script: what becomes of a backslash at the very end differs between versions of bash.
            let script = format!("w {}\n", scripts.new_tree(runner).unwrap().current().concat());
            if let Some(expected) = bash(&script) {
                assert_eq!(arguments(&script), expected, "{script:?}");
                compared += 1;
            }
        }
        assert!(compared >= 150, "{compared}");
    }

    #[test]
    fn a_shell_differs_on_these_and_the_rule_is_kept() {
        for (script, ours, theirs) in [
            ("w $'a\\x62'", vec!["$a\\x62"], vec!["ab"]),
            ("w $\"a\"", vec!["$a"], vec!["a"]),
            ("w \"$((1+1))\" $((1+1))", vec!["$((1+1))", "$", "1+1"], vec!["2", "2"]),
            ("w {a,b}", vec!["{a,b}"], vec!["a", "b"]),
            ("w $(tee a) b", vec!["$", "b"], vec!["b"]),
            ("w a;>o w b", vec!["a", "b"], vec!["a", "b"]),
            ("tee a;>o w b", vec![], vec!["b"]),
            ("w $((1<<4))\nw a", vec!["$"], vec!["16", "a"]),
            ("A=1 tee b", vec!["A=1", "tee", "b"], vec![]),
            ("w --a=b", vec!["--a=b", "b"], vec!["--a=b"]),
        ] {
            assert_eq!(arguments(script), ours, "{script:?}");
            assert_eq!(bash(script).unwrap_or_else(|| panic!("bash refuses {script:?}")), theirs, "{script:?}");
        }
    }

    #[test]
    fn the_time_grows_with_the_length_and_not_with_its_square() {
        for unit in ["a ", "'", "\"", "\\", "\n", "<<E\n", "<<E ", "<<E;", "#", "1>", "`", "$(", "a=", "\"\\", "\t"] {
            let command = unit.repeat(2_000_000 / unit.len());
            let start = Instant::now();
            let words = reads(&command);
            let took = start.elapsed();
            assert!(words.len() <= command.len());
            assert!(took < Duration::from_secs(5), "{unit:?} takes {took:?}");
        }
    }

    proptest! {
        #[test]
        fn no_command_is_a_crash(command in any::<String>()) {
            let _ = reads(&command);
        }

        #[test]
        fn no_mixture_of_marks_is_a_crash(command in "[ab \t\n'\"\\\\|&;<>()`#=\\-2\u{e9}E]{0,300}") {
            for word in reads(&command) {
                prop_assert!(word.len() <= command.len());
            }
        }

        #[test]
        fn a_quoted_word_is_read_as_itself(word in any::<String>()) {
            let quoted = format!("cat '{}'", word.replace('\'', "'\\''"));
            prop_assert_eq!(&reads(&quoted)[1], &word);
        }

        #[test]
        fn no_input_is_a_crash(input in any::<String>()) {
            let _ = candidates(&call(SHELL, &input));
        }
    }
}
