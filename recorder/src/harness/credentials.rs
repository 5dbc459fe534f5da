//! What of the host's credentials a session may hold, and what must never leave it.
//!
//! A session gets the access token and what belongs to it, as a file in memory. The refresh token stays on the host:
//! a copy that is used rotates it and logs the host out. Everything secret in the host's file, handed on or not, is
//! searched for in what the recorder writes.

use crate::confine::bwrap::MemoryFile;
use crate::confine::view::CONFIGURATION;
use crate::status::{Failure, Outcome, Status};
use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use nix::fcntl::OFlag;
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the file, on the host and inside.
pub const FILE: &str = ".credentials.json";
/// The longest such file that is read, in bytes.
const FILE_BYTES: u64 = 1 << 20;
/// The member of the file that the harness logs in with.
const LOGIN: &str = "claudeAiOauth";
/// The members of the login that a session may hold.
const HANDED_ON: [&str; 5] = ["accessToken", "expiresAt", "scopes", "subscriptionType", "rateLimitTier"];
/// A shorter secret would be found by chance, in bytes.
const SECRET_BYTES: usize = 8;
const LOG_IN: &str = "log in on this host as the user that records: start `claude` once, or `claude auth login`";

/// Where the host keeps its credentials: `explicit`, else in its harness configuration (`config_dir`, the value of
/// `CLAUDE_CONFIG_DIR`), else below `home`.
///
/// # Errors
/// [`Status::Missing`] where none of them names a place.
pub fn place(explicit: Option<&Path>, config_dir: Option<&OsStr>, home: Option<&OsStr>) -> Outcome<PathBuf> {
    let named = |value: Option<&OsStr>| value.filter(|value| !value.is_empty()).map(PathBuf::from);
    explicit
        .map(Path::to_owned)
        .or_else(|| named(config_dir).map(|directory| directory.join(FILE)))
        .or_else(|| named(home).map(|home| home.join(".claude").join(FILE)))
        .ok_or_else(|| {
            Failure::new(Status::Missing, "no place to look for the harness's credentials: HOME is not set")
                .remedy("set HOME, or name the file")
        })
}

/// What a session may hold of the host's credentials.
#[derive(Debug)]
pub struct Credentials {
    /// The host's file.
    pub source: PathBuf,
    /// The file of the session, at its place in the configuration directory inside.
    pub file: MemoryFile,
    /// When the access token expires, in milliseconds since 1970, where the file says so.
    pub expires_at: Option<u64>,
    /// Everything secret in the host's file.
    pub secrets: Secrets,
}

impl Credentials {
    /// Reads the host's file at `path`. A token that has expired at `needed_until` is refused, because the session
    /// cannot renew it.
    ///
    /// # Errors
    /// [`Status::Missing`] for no file, one that is no credentials file, and an expired token. No message quotes the
    /// file.
    pub fn read(path: &Path, needed_until: SystemTime) -> Outcome<Self> {
        let text = read_bounded(path)?;
        let unreadable = |why: &str| Failure::new(Status::Missing, format!("{}: {why}", path.display())).remedy(LOG_IN);
        // The parser's own message may quote the text, so only the place is kept.
        let whole: Map<String, Value> = serde_json::from_slice(&text)
            .map_err(|e| unreadable(&format!("no JSON object (line {}, column {})", e.line(), e.column())))?;
        let login = whole.get(LOGIN).and_then(Value::as_object).ok_or_else(|| unreadable("it holds no login"))?;
        let token = login.get("accessToken").and_then(Value::as_str).unwrap_or_default();
        if token.len() < SECRET_BYTES || !token.bytes().all(|c| c.is_ascii_graphic()) {
            return Err(unreadable("its login has no access token"));
        }
        let expires_at = match login.get("expiresAt") {
            None | Some(Value::Null) => None,
            Some(value) => Some(whole_number(value).ok_or_else(|| unreadable("its expiry is no whole number"))?),
        };
        let needed_until = needed_until.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
        if expires_at.is_some_and(|at| u128::from(at) <= needed_until) {
            return Err(unreadable("its access token has expired, or does before a session could end"));
        }

        let handed_on: Map<String, Value> =
            HANDED_ON.iter().filter_map(|key| Some(((*key).to_owned(), login.get(*key)?.clone()))).collect();
        let inside = Value::Object(Map::from_iter([(LOGIN.to_owned(), Value::Object(handed_on))]));
        let file = MemoryFile {
            path: Path::new(CONFIGURATION).join(FILE),
            mode: 0o600,
            bytes: inside.to_string().into_bytes(),
        };
        let mut found = Vec::new();
        collect(&Value::Object(whole), "", &mut found);
        Ok(Self { source: path.to_owned(), file, expires_at, secrets: Secrets::new(found)? })
    }
}

fn read_bounded(path: &Path) -> Outcome<Vec<u8>> {
    let refuse = |why: &dyn fmt::Display| {
        Failure::new(Status::Missing, format!("the harness's credentials {}: {why}", path.display())).remedy(LOG_IN)
    };
    let flags = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|e| refuse(&e))?;
    if !file.metadata().map_err(|e| refuse(&e))?.is_file() {
        return Err(refuse(&"it is no regular file"));
    }
    let mut text = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut text).map_err(|e| refuse(&e))?;
    if text.len() as u64 > FILE_BYTES {
        return Err(refuse(&format_args!("it is longer than {FILE_BYTES} bytes")));
    }
    Ok(text)
}

/// A number of JSON as a whole one. Some writers give a time in milliseconds a fraction.
fn whole_number(value: &Value) -> Option<u64> {
    let real = || value.as_f64().filter(|real| (0.0..9e15).contains(real));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    value.as_u64().or_else(|| real().map(|real| real as u64))
}

/// Every string under a key whose last word is that of a secret, at any depth, with what to call it.
fn collect(value: &Value, key: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| collect(value, key, found)),
        Value::Array(values) => values.iter().for_each(|value| collect(value, key, found)),
        Value::String(text) => {
            let name = key.to_ascii_lowercase();
            if ["token", "secret", "key", "password"].iter().any(|word| name.trim_end_matches('s').ends_with(word)) {
                found.push((key.to_owned(), text.clone()));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// How a secret stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is, perhaps with escapes, percent signs or white space in between.
    Plain,
    /// Backwards.
    Reversed,
    /// In base64, of either alphabet and at any alignment.
    Base64,
    /// In hexadecimal digits.
    Hex,
}

/// A secret that stands in a text: what the credentials file calls it, and its form. Never the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The key of the secret.
    pub secret: String,
    /// How it stands there.
    pub form: Form,
}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            Form::Plain => "as it is",
            Form::Reversed => "backwards",
            Form::Base64 => "in base64",
            Form::Hex => "in hexadecimal",
        };
        write!(f, "the `{}` of the host's credentials, {form}", self.secret)
    }
}

/// Strings that must not stand in anything the recorder writes.
pub struct Secrets {
    leaks: Vec<Leak>,
    exact: AhoCorasick,
    /// Hexadecimal digits, in either case: the last entries of `leaks`.
    hex: AhoCorasick,
    hex_from: usize,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").field("forms", &self.leaks.len()).finish_non_exhaustive()
    }
}

impl Secrets {
    /// The strings, each with what to call it. One of fewer than 8 bytes is passed over: it would be found by chance.
    ///
    /// # Errors
    /// [`Status::Internal`] where they are too many or too long to search for.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Outcome<Self> {
        let (mut exact, mut hex) = (Vec::new(), Vec::new());
        for (name, secret) in secrets {
            let bytes = secret.as_bytes();
            if bytes.len() < SECRET_BYTES {
                continue;
            }
            let backwards: Vec<u8> = bytes.iter().rev().copied().collect();
            let leak = |form| Leak { secret: name.clone(), form };
            for source in [bytes, &backwards] {
                for alphabet in [STANDARD, URL_SAFE] {
                    exact.extend((0..3).map(|offset| (leak(Form::Base64), base64_of(source, offset, alphabet))));
                }
                hex.push((leak(Form::Hex), hex_of(source)));
            }
            exact.push((leak(Form::Plain), bytes.to_vec()));
            exact.push((leak(Form::Reversed), backwards));
        }
        let failed = |e| Failure::io("the search for secrets", e);
        Ok(Self {
            exact: AhoCorasick::new(exact.iter().map(|(_, needle)| needle)).map_err(failed)?,
            hex: AhoCorasickBuilder::new()
                .ascii_case_insensitive(true)
                .build(hex.iter().map(|(_, needle)| needle))
                .map_err(failed)?,
            hex_from: exact.len(),
            leaks: exact.into_iter().chain(hex).map(|(leak, _)| leak).collect(),
        })
    }

    /// The first secret that stands in `text`, or in what `text` is once its white space and quotes are gone and its escapes
    /// (`%XX`, `\xXX`, `\u00XX`, `\n` and the like) are undone, three times over: a string of JSON within YAML is
    /// escaped twice, and base64 is broken into lines.
    #[must_use]
    pub fn leaks_in(&self, text: &[u8]) -> Option<&Leak> {
        let mut loosened = Vec::new();
        for round in 0..=3 {
            let searched = if round == 0 { text } else { &loosened };
            let found = self.exact.find(searched).map(|found| found.pattern().as_usize());
            let found = found.or_else(|| self.hex.find(searched).map(|at| self.hex_from + at.pattern().as_usize()));
            if let Some(leak) = found.and_then(|at| self.leaks.get(at)) {
                return Some(leak);
            }
            let next = loosen(searched);
            if round > 0 && next == loosened {
                return None;
            }
            loosened = next;
        }
        None
    }
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The base64 digits that `bytes` have whatever stands around them, where `offset` bytes (0 to 2) of a group of three
/// come before them.
fn base64_of(bytes: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let bit = |at: usize| {
        let byte = if at / 8 < offset { 0 } else { bytes.get(at / 8 - offset).copied().unwrap_or(0) };
        usize::from(byte >> (7 - at % 8) & 1)
    };
    // Digits of six bits that hold no bit of what stands before or after.
    let first = (offset * 8).div_ceil(6);
    let end = (offset + bytes.len()) * 8 / 6;
    let digit = |at: usize| (0..6).fold(0, |value, n| value << 1 | bit(at * 6 + n));
    (first..end).map(|at| alphabet[digit(at)]).collect()
}

fn hex_of(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect()
}

/// `text` without white space and quotes, and with one level of escapes undone.
fn loosen(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let (byte, length) = match (first, tail) {
            (b'%', [a, b, ..]) if hex_pair(*a, *b).is_some() => (hex_pair(*a, *b), 3),
            (b'\\', [b'x', a, b, ..]) if hex_pair(*a, *b).is_some() => (hex_pair(*a, *b), 4),
            (b'\\', [b'u', b'0', b'0', a, b, ..]) if hex_pair(*a, *b).is_some() => (hex_pair(*a, *b), 6),
            (b'\\', [b'n' | b'r' | b't', ..]) => (None, 2),
            (b'\\', [escaped, ..]) => (Some(*escaped), 2),
            // A shell joins what stands in quotes of its own with what stands beside them.
            (b'"' | b'\'', _) => (None, 1),
            (space, _) if space.is_ascii_whitespace() => (None, 1),
            (other, _) => (Some(*other), 1),
        };
        out.extend(byte);
        rest = &rest[length..];
    }
    out
}

fn hex_pair(high: u8, low: u8) -> Option<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(high)? << 4 | digit(low)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const ACCESS: &str = "sk-test-oat01-Invented_Access/Token+0123";
    const REFRESH: &str = "sk-test-ort01-InventedRefreshToken";

    fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        std::fs::write(&path, text).unwrap();
        (directory, path)
    }

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn host_file() -> String {
        format!(
            r#"{{"claudeAiOauth":{{"accessToken":"{ACCESS}","refreshToken":"{REFRESH}","expiresAt":2000,
            "scopes":["user:inference"],"subscriptionType":"max","unknown":"kept-out"}},
            "mcpOAuth":{{"server":{{"clientSecret":"another-secret-of-the-host",
            "tokenEndpoint":"https://login.invalid/token"}}}},"apiKey":"sk-test-api-key"}}"#
        )
    }

    #[test]
    fn the_session_gets_the_access_token_and_never_the_refresh_token() {
        let (_directory, path) = written(&host_file());
        let credentials = Credentials::read(&path, at(1000)).unwrap();
        let inside: Value = serde_json::from_slice(&credentials.file.bytes).unwrap();
        assert_eq!(
            inside,
            serde_json::json!({"claudeAiOauth": {"accessToken": ACCESS, "expiresAt": 2000,
                "scopes": ["user:inference"], "subscriptionType": "max"}})
        );
        assert_eq!(credentials.file.path, Path::new("/opt/headwater/config/.credentials.json"));
        assert_eq!((credentials.file.mode, credentials.expires_at), (0o600, Some(2000)));
    }

    #[test]
    fn every_secret_of_the_host_s_file_is_searched_for_and_none_is_printed() {
        let (_directory, path) = written(&host_file());
        let credentials = Credentials::read(&path, at(1000)).unwrap();
        let printed = format!("{credentials:?}");
        let secrets = [
            ("accessToken", ACCESS),
            ("refreshToken", REFRESH),
            ("clientSecret", "another-secret-of-the-host"),
            ("apiKey", "sk-test-api-key"),
        ];
        for (name, secret) in secrets {
            let leak = credentials.secrets.leaks_in(format!("argument: \"{secret}\"").as_bytes()).unwrap();
            assert_eq!((leak.secret.as_str(), leak.form), (name, Form::Plain));
            assert!(!printed.contains(secret) && !leak.to_string().contains(secret));
        }
        assert_eq!(credentials.secrets.leaks_in(b"user:inference kept-out https://login.invalid/token"), None);
    }

    #[test]
    fn an_expired_token_is_refused_before_anything_is_spent() {
        let (_directory, path) = written(&host_file());
        for needed in [2000, 2001] {
            let refused = Credentials::read(&path, at(needed)).unwrap_err();
            assert_eq!((refused.status, refused.spent), (Status::Missing, false));
            assert!(refused.message.contains("expired") && refused.remedy.is_some());
        }
    }

    #[test]
    fn a_file_that_is_no_credentials_file_is_refused_without_quoting_it() {
        let expiry = format!(r#"{{"claudeAiOauth":{{"accessToken":"{ACCESS}","expiresAt":"soon"}}}}"#);
        let long = " ".repeat(1 << 20) + "{}";
        let texts = ["", "{", "[]", "{}", "{\"claudeAiOauth\":3}", r#"{"claudeAiOauth":{"accessToken":"x"}}"#, ACCESS];
        for text in texts.into_iter().chain([expiry.as_str(), &long]) {
            let (_directory, path) = written(text);
            let refused = Credentials::read(&path, at(0)).unwrap_err();
            assert_eq!(refused.status, Status::Missing, "{text}");
            assert!(!refused.message.contains(ACCESS) && refused.message.contains(FILE));
        }
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join(FILE);
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [&fifo, &directory.path().join("none"), directory.path()] {
            assert_eq!(Credentials::read(path, at(0)).unwrap_err().status, Status::Missing);
        }
    }

    #[test]
    fn the_place_is_the_named_one_else_the_configuration_s_else_the_home_s() {
        let (config, home) = (Some(OsStr::new("/c")), Some(OsStr::new("/h")));
        assert_eq!(place(Some(Path::new("/x/f")), config, home).unwrap(), Path::new("/x/f"));
        assert_eq!(place(None, config, home).unwrap(), Path::new("/c/.credentials.json"));
        assert_eq!(place(None, Some(OsStr::new("")), home).unwrap(), Path::new("/h/.claude/.credentials.json"));
        assert_eq!(place(None, None, None).unwrap_err().status, Status::Missing);
    }

    fn secrets() -> Secrets {
        Secrets::new([("token".to_owned(), ACCESS.to_owned())]).unwrap()
    }

    fn form_in(text: impl AsRef<[u8]>) -> Option<Form> {
        secrets().leaks_in(text.as_ref()).map(|leak| leak.form)
    }

    /// What `program` of the host makes of `input`.
    fn made_by(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let mut child =
            Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap().stdout
    }

    #[test]
    fn a_secret_is_found_in_base64_at_every_alignment_and_broken_into_lines() {
        for before in 0..7 {
            let text = "x".repeat(before) + ACCESS + "and more";
            for wrap in ["0", "76", "19"] {
                let standard = made_by("base64", &["-w", wrap], text.as_bytes());
                assert_eq!(form_in(&standard), Some(Form::Base64), "{before} {wrap}");
                let url_safe: Vec<u8> = standard
                    .iter()
                    .map(|c| {
                        if *c == b'+' {
                            b'-'
                        } else if *c == b'/' {
                            b'_'
                        } else {
                            *c
                        }
                    })
                    .collect();
                assert_eq!(form_in(&url_safe), Some(Form::Base64), "{before} {wrap}");
                let in_json = String::from_utf8(standard).unwrap().replace('\n', "\\n");
                assert_eq!(form_in(in_json.replace('\\', "\\\\")), Some(Form::Base64), "{before} {wrap}");
            }
        }
    }

    #[test]
    fn a_secret_is_found_in_hexadecimal_of_either_case_and_with_gaps() {
        let hex = String::from_utf8(hex_of(ACCESS.as_bytes())).unwrap();
        assert_eq!(form_in(&hex), Some(Form::Hex));
        assert_eq!(form_in(hex.to_uppercase()), Some(Form::Hex));
        let dump = made_by("od", &["-An", "-tx1", "-v"], ACCESS.as_bytes());
        assert_eq!(form_in(dump), Some(Form::Hex));
    }

    #[test]
    fn a_secret_is_found_behind_escapes_and_backwards() {
        let every = |prefix: &str| -> String { ACCESS.bytes().map(|byte| format!("{prefix}{byte:02X}")).collect() };
        for prefix in ["%", "\\x", "\\u00", "%25", "\\\\u00"] {
            assert_eq!(form_in(every(prefix)), Some(Form::Plain), "{prefix}");
        }
        assert_eq!(form_in(ACCESS.replace('/', "%2F").replace('+', "%2b")), Some(Form::Plain));
        assert_eq!(form_in(ACCESS.replace('/', "\\/")), Some(Form::Plain));
        assert_eq!(form_in(ACCESS.chars().rev().collect::<String>()), Some(Form::Reversed));
        let backwards: Vec<u8> = ACCESS.bytes().rev().collect();
        assert_eq!(form_in(made_by("base64", &[], &backwards)), Some(Form::Base64));
    }

    #[test]
    fn a_secret_is_found_where_the_quotes_of_a_shell_divide_it() {
        let secrets = Secrets::new([("accessToken".to_owned(), ACCESS.to_owned())]).unwrap();
        let (one, other) = ACCESS.split_at(9);
        for divided in [format!("{one}\"\"{other}"), format!("'{one}'\"{other}\""), format!("{one}\\\"\\\"{other}")] {
            assert!(secrets.leaks_in(format!("echo {divided}").as_bytes()).is_some(), "{divided}");
        }
    }

    #[test]
    fn a_secret_of_fewer_than_eight_characters_is_not_searched_for() {
        let secrets = Secrets::new([("key".to_owned(), "1234567".to_owned())]).unwrap();
        assert_eq!(secrets.leaks_in(b"1234567"), None);
        let secrets = Secrets::new([("key".to_owned(), "12345678".to_owned())]).unwrap();
        assert!(secrets.leaks_in(b"12345678").is_some());
        assert_eq!(Secrets::new([]).unwrap().leaks_in(b"anything"), None);
    }

    proptest! {
        #[test]
        fn base64_digits_do_not_depend_on_what_stands_around(
            before in proptest::collection::vec(any::<u8>(), 0..9),
            secret in proptest::collection::vec(any::<u8>(), 1..40),
            after in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let whole = [&before[..], &secret, &after].concat();
            let digits = base64_of(&whole, 0, STANDARD);
            let inner = base64_of(&secret, before.len() % 3, STANDARD);
            prop_assert!(digits.windows(inner.len().max(1)).any(|window| window == inner) || inner.is_empty());
            prop_assert!(inner.len() * 6 + 10 >= secret.len() * 8);
        }

        #[test]
        fn no_text_breaks_the_search(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = secrets().leaks_in(&text);
            prop_assert!(loosen(&text).len() <= text.len());
        }

        #[test]
        fn escaped_bytes_are_found_among_plain_ones(escape in proptest::collection::vec(any::<bool>(), ACCESS.len())) {
            let text: String = ACCESS.bytes().zip(escape)
                .map(|(byte, escape)| if escape { format!("%{byte:02x}") } else { char::from(byte).to_string() })
                .collect();
            prop_assert_eq!(form_in(text), Some(Form::Plain));
        }
    }
}
