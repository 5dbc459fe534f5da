//! The real harness at its pinned version, fetched by its package name and checked before it is unpacked.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, bail};
use serde_json::Value;

use crate::offline;
use crate::user::User;

/// The variable that makes the absence of the harness a failure.
pub const REQUIRE: &str = "HEADWATER_REQUIRE_HARNESS";

/// What `recorder/harness.json` pins for this machine.
#[derive(Debug, Clone)]
pub struct Pin {
    /// The version.
    pub version: String,
    /// The name of the package that holds the binary.
    pub package: String,
    /// The package's digest: `sha512-` and base64.
    pub integrity: String,
}

impl Pin {
    /// Reads the pin.
    ///
    /// # Errors
    /// Where it cannot be read, or pins nothing for this architecture.
    pub fn read() -> Result<Self> {
        let path = crate::workspace_root().join("recorder/harness.json");
        let file: Value = serde_json::from_slice(&fs::read(&path)?).context("recorder/harness.json")?;
        let system = format!("{}-linux", std::env::consts::ARCH);
        let package = &file["packages"][&system];
        let text = |value: &Value, what: &str| -> Result<String> {
            let found = value.as_str().map(str::to_owned);
            found.with_context(|| format!("recorder/harness.json states no {what} for {system}"))
        };
        Ok(Self {
            version: text(&file["version"], "version")?,
            package: text(&package["name"], "package")?,
            integrity: text(&package["integrity"], "integrity")?,
        })
    }

    /// A name for the cache: the digest, with what a path does not take replaced.
    fn key(&self) -> String {
        self.integrity.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
    }
}

/// The real harness where an ordinary user can run it. Where it cannot be had, nothing, after one line that says why;
/// with `HEADWATER_REQUIRE_HARNESS=1` an error.
///
/// # Errors
/// Where the harness is required and absent, or is not what the pin says.
pub fn harness(user: &User) -> Result<Option<PathBuf>> {
    static FOUND: OnceLock<Result<Result<PathBuf, String>, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let found = find(user).map_err(|error| format!("{error:#}"));
        if let Ok(Err(why)) = &found {
            // Not by a macro: the test runner would keep the line to itself.
            let _ = writeln!(std::io::stderr(), "real harness: not run: {why}");
        }
        found
    });
    match found {
        Err(error) => Err(anyhow!("{error}")),
        Ok(Ok(path)) => Ok(Some(path.clone())),
        Ok(Err(why)) if std::env::var_os(REQUIRE).is_some_and(|value| value == "1") => {
            bail!("the real harness is required here and cannot be run: {why}")
        }
        Ok(Err(_)) => Ok(None),
    }
}

/// The harness, or why it cannot be run here.
fn find(user: &User) -> Result<Result<PathBuf, String>> {
    if let Some(why) = offline::obstacle(user) {
        return Ok(Err(why));
    }
    let path = match fetch(&Pin::read()?, &crate::target_directory().join("harness"))? {
        Ok(path) => path,
        Err(why) => return Ok(Err(why)),
    };
    Ok(Ok(user.reachable(&path)?))
}

/// The binary in the cache, fetched where it is not there yet; or why it could not be fetched.
fn fetch(pin: &Pin, cache: &Path) -> Result<Result<PathBuf, String>> {
    let directory = cache.join(pin.key());
    let binary = directory.join("claude");
    fs::create_dir_all(cache)?;
    let lock = File::create(cache.join("lock"))?;
    // Tests of several processes want the same file; one fetches it.
    lock.lock()?;
    if binary.is_file() {
        return Ok(Ok(binary));
    }
    // Everything happens in a directory of its own, which takes its name when the binary in it is whole.
    let work = tempfile::Builder::new().prefix("part-").tempdir_in(cache)?;
    let archive = match pack(pin, work.path())? {
        Ok(archive) => archive,
        Err(why) => return Ok(Err(why)),
    };
    unpack(pin, &archive, work.path(), &directory)?;
    Ok(Ok(binary))
}

/// Checks an archive against the pin, and only then unpacks the binary, by way of `work`, into `directory`.
fn unpack(pin: &Pin, archive: &Path, work: &Path, directory: &Path) -> Result<()> {
    let digest = sha512(archive)?;
    if pin.integrity.strip_prefix("sha512-").and_then(bytes_of_base64).as_deref() != Some(digest.as_slice()) {
        bail!("{}@{} does not have the digest that recorder/harness.json pins", pin.package, pin.version);
    }
    let unpacked = work.join("unpacked");
    fs::create_dir(&unpacked)?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(&unpacked);
    tar.args(["--no-same-owner", "--strip-components=1", "package/claude"]);
    if !tar.status().context("tar")?.success() || !unpacked.join("claude").is_file() {
        bail!("{}@{} holds no claude", pin.package, pin.version);
    }
    fs::rename(&unpacked, directory)?;
    Ok(())
}

/// The package's archive, or why the client did not give it.
fn pack(pin: &Pin, into: &Path) -> Result<Result<PathBuf, String>> {
    let what = format!("{}@{}", pin.package, pin.version);
    let mut npm = Command::new("npm");
    npm.args([
        "pack",
        &what,
        "--loglevel=error",
        "--ignore-scripts",
        "--fetch-retries=1",
        "--fetch-retry-mintimeout=1000",
        "--pack-destination",
    ])
    .arg(into);
    let output = match npm.current_dir(into).output() {
        Ok(output) => output,
        Err(error) => return Ok(Err(format!("npm: {error}"))),
    };
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let first = errors.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        return Ok(Err(format!("npm pack {what}: {}: {first}", output.status)));
    }
    let archives: Vec<PathBuf> = fs::read_dir(into)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let archive = archives.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "tgz"));
    Ok(Ok(archive.with_context(|| format!("npm pack {what} left no archive"))?))
}

fn sha512(file: &Path) -> Result<Vec<u8>> {
    let output = Command::new("sha512sum").arg("-b").arg(file).output().context("sha512sum")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let digits = text.split_whitespace().next().unwrap_or_default();
    let bytes = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        u8::from_str_radix(pair, 16)
    });
    bytes.collect::<Result<_, _>>().context("sha512sum gave no digest")
}

fn bytes_of_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for character in text.trim_end_matches('=').bytes() {
        let value = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_names_a_package_and_a_whole_digest_for_both_architectures() {
        let file: Value =
            serde_json::from_slice(&fs::read(crate::workspace_root().join("recorder/harness.json")).unwrap()).unwrap();
        for system in ["x86_64-linux", "aarch64-linux"] {
            let package = &file["packages"][system];
            let integrity = package["integrity"].as_str().unwrap().strip_prefix("sha512-").unwrap();
            assert_eq!(bytes_of_base64(integrity).unwrap().len(), 64);
            assert!(package["name"].as_str().unwrap().ends_with(if system == "x86_64-linux" {
                "-x64"
            } else {
                "-arm64"
            }));
        }
    }

    #[test]
    fn base64_is_read_as_it_is_written() {
        assert_eq!(bytes_of_base64("aGVsbG8=").unwrap(), b"hello");
        assert_eq!(bytes_of_base64("//79").unwrap(), [0xff, 0xfe, 0xfd]);
        assert_eq!(bytes_of_base64("a b"), None);
    }

    #[test]
    fn an_archive_that_is_not_the_pinned_one_is_never_unpacked() {
        let work = tempfile::tempdir().unwrap();
        let at = |name: &str| work.path().join(name);
        fs::create_dir(at("package")).unwrap();
        fs::write(at("package/claude"), "a binary").unwrap();
        let mut tar = Command::new("tar");
        tar.args(["-czf", "a.tgz", "package"]).current_dir(work.path());
        assert!(tar.status().unwrap().success());
        let other = Pin { version: "1".into(), package: "p".into(), integrity: format!("sha512-{}==", "A".repeat(86)) };
        let refusal = unpack(&other, &at("a.tgz"), work.path(), &at("cache")).unwrap_err();
        assert!(refusal.to_string().contains("does not have the digest"), "{refusal}");
        assert!(!at("cache").exists() && !at("unpacked").exists());
        let own = Pin { integrity: format!("sha512-{}", base64(&sha512(&at("a.tgz")).unwrap())), ..other };
        unpack(&own, &at("a.tgz"), work.path(), &at("cache")).unwrap();
        assert_eq!(fs::read(at("cache/claude")).unwrap(), b"a binary");
    }

    fn base64(bytes: &[u8]) -> String {
        const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let groups = bytes.chunks(3).map(|group| {
            let bits = group.iter().fold(0_u32, |bits, byte| (bits << 8) | u32::from(*byte)) << (8 * (3 - group.len()));
            let digits = (0..=group.len()).map(|i| ALPHABET[(bits >> (18 - 6 * i) & 63) as usize]);
            String::from_utf8(digits.collect()).unwrap()
        });
        groups.collect()
    }
}
