//! A network namespace with loopback only, and the scripted provider in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::user::User;

/// Where the scripted provider listens, inside the namespace.
pub const PROVIDER: &str = "http://127.0.0.1:8080";

/// A place from which commands run without a network. Each command gets a namespace, and a provider, of its own.
#[derive(Debug)]
pub struct Offline<'a> {
    user: &'a User,
    directory: tempfile::TempDir,
    has_provider: bool,
}

impl<'a> Offline<'a> {
    /// A namespace with nothing in it.
    ///
    /// # Errors
    /// Where its directory cannot be made.
    pub fn new(user: &'a User) -> Result<Self> {
        Self::make(user, None)
    }

    /// A namespace in which the provider plays a script (its format is told in `tests/provider/provider.py`).
    ///
    /// # Errors
    /// Where its directory cannot be made.
    pub fn with_provider(user: &'a User, script: &Value) -> Result<Self> {
        Self::make(user, Some(script))
    }

    fn make(user: &'a User, script: Option<&Value>) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("headwater-offline-").tempdir()?;
        let path = directory.path();
        fs::write(path.join("inside.py"), include_str!("../provider/inside.py"))?;
        fs::write(path.join("provider.py"), include_str!("../provider/provider.py"))?;
        fs::create_dir(path.join("bodies"))?;
        if let Some(script) = script {
            fs::write(path.join("script.json"), script.to_string())?;
        }
        user.give(path)?;
        Ok(Self { user, directory, has_provider: script.is_some() })
    }

    /// `command` run in a new user and network namespace, with loopback up and no capability.
    ///
    /// Its program, arguments, environment and working directory are taken over; its standard streams are those of the
    /// command that is returned.
    #[must_use]
    pub fn command(&self, command: &Command) -> Command {
        let mut inside = self.user.command("unshare");
        inside.args(["--user", "--map-current-user", "--keep-caps", "--net", "--", "python3"]);
        inside.arg(self.directory.path().join("inside.py"));
        if self.has_provider {
            inside.arg("--provider").arg(self.directory.path());
        }
        inside.arg("--").arg(command.get_program()).args(command.get_args());
        inside.env_clear();
        for (key, value) in command.get_envs() {
            if let Some(value) = value {
                inside.env(key, value);
            }
        }
        if let Some(directory) = command.get_current_dir() {
            inside.current_dir(directory);
        }
        inside
    }

    /// What the provider was asked, one record a request.
    ///
    /// # Errors
    /// Where the record cannot be read.
    pub fn requests(&self) -> Result<Vec<Value>> {
        let path = self.directory.path().join("record.jsonl");
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read_to_string(&path)?;
        text.lines().map(|line| serde_json::from_str(line).context("a record of the provider")).collect()
    }

    /// The bodies of the requests, in order.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub fn bodies(&self) -> Result<Vec<Value>> {
        let mut paths = files(&self.directory.path().join("bodies"))?;
        paths.sort();
        paths.iter().map(|path| Ok(serde_json::from_slice(&fs::read(path)?)?)).collect()
    }
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

/// Why no such namespace can be made here, where that is so.
#[must_use]
pub fn obstacle(user: &User) -> Option<String> {
    let tried = Offline::new(user).and_then(|offline| Ok(offline.command(&user.command("true")).output()?));
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(format!("no network namespace: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Some(format!("no network namespace: {error:#}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: &str = r#"
import urllib.request
body = b'{"model": "m", "tools": [{"name": "Read"}], "messages": [{"role": "user", "content": "hello"}]}'
request = urllib.request.Request("http://127.0.0.1:8080/v1/messages", body, {"content-type": "application/json"})
print(urllib.request.urlopen(request).read().decode())
"#;

    #[test]
    fn the_provider_answers_inside_and_nothing_else_does() {
        let user = User::new().unwrap();
        let script = serde_json::json!({"main": [{"blocks": [{"text": "yes"}]}]});
        let offline = Offline::with_provider(&user, &script).unwrap();
        let output = offline.command(user.command("python3").args(["-c", ASK])).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("yes"));
        assert_eq!(offline.requests().unwrap().len(), 1);
        assert_eq!(offline.bodies().unwrap()[0]["messages"][0]["content"], "hello");

        let script = "cat /proc/net/dev /proc/net/route; id -u; grep CapEff /proc/self/status; exit 7";
        let output = offline.command(user.command("sh").args(["-c", script])).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(7));
        let interfaces = text.lines().filter(|line| line.contains(": ")).collect::<Vec<_>>();
        assert_eq!(interfaces.len(), 1, "{text}");
        assert!(interfaces[0].trim_start().starts_with("lo:"));
        assert!(text.lines().any(|line| line == "CapEff:\t0000000000000000"), "{text}");
        assert!(!text.lines().any(|line| line == "0"), "{text}");
    }

    #[test]
    fn a_confined_process_can_be_made_inside() {
        let user = User::new().unwrap();
        let offline = Offline::new(&user).unwrap();
        let mut bwrap = user.command("bwrap");
        bwrap.args(["--unshare-user", "--unshare-all", "--share-net", "--cap-drop", "ALL", "--die-with-parent"]);
        bwrap.args(["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"]);
        let output = offline.command(&bwrap).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
