//! The `headwater` binary as a process: the plan, the policy's lines, the rules over a tree, the confirmation of a
//! transcript.
//!
//! The recorder computes none of this again. It runs the binary it is given, so that an old engine stays usable.

pub mod child;

use crate::status::{Failure, Outcome, Status};
use child::{Ended, Limits};
use headwater_contract::keys::Tier;
use headwater_contract::plan::{self, Plan};
use nix::unistd::{AccessFlags, access};
use serde::Deserialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the binary.
const NAME: &str = "headwater";
/// What to do where an engine itself fails.
const ANOTHER: &str = "run this engine by itself, or name another with --engine";
/// For every verb: a corpus of a hundred thousand documents is planned well within it.
const LIMITS: Limits = Limits { time: Duration::from_secs(300), output: 256 << 20 };

/// An engine: the path of a binary that may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Its absolute path.
    pub path: PathBuf,
}

/// What one rule reported over one place.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// The document, relative to the root.
    pub path: String,
    /// Its one-based line, where the rule names one.
    #[serde(default)]
    pub line: Option<u64>,
    /// `error` or `warning`, as the engine writes it.
    #[serde(default)]
    pub severity: String,
    /// What it says.
    #[serde(default)]
    pub message: String,
}

impl Engine {
    /// The engine: `explicit` where the command line names one, else the one beside this program, else the first on
    /// `PATH`.
    ///
    /// # Errors
    /// [`Status::Missing`] where none is found or the one that is named may not be executed.
    pub fn find(explicit: Option<&Path>) -> Outcome<Self> {
        let own = std::env::current_exe().ok();
        let beside = own.as_deref().and_then(Path::parent);
        Self::find_in(explicit, beside, &child::search_path())
    }

    fn find_in(explicit: Option<&Path>, beside: Option<&Path>, search: &OsStr) -> Outcome<Self> {
        if let Some(path) = explicit {
            let path = absolute(path)?;
            return match not_executable(&path) {
                None => Ok(Self { path }),
                Some(why) => Err(missing(format!("the engine {} {why}", path.display()))),
            };
        }
        let directories = beside.map(Path::to_path_buf).into_iter().chain(std::env::split_paths(search));
        let found = directories
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(NAME))
            .find(|path| not_executable(path).is_none());
        found.map(|path| Self { path }).ok_or_else(|| {
            missing(format!("no `{NAME}` was found beside the recorder nor on PATH ({})", search.to_string_lossy()))
        })
    }

    /// Its version as it prints it: `headwater X.Y.Z`.
    ///
    /// # Errors
    /// [`Status::Missing`]: what does not tell its version is no engine.
    pub fn version(&self) -> Outcome<String> {
        let ended = self.run(Status::Missing, "its version", &[OsStr::new("--version")])?;
        let said = self.succeeded(Status::Missing, "its version", ended)?;
        let line = String::from_utf8_lossy(&said).trim().to_owned();
        match line.strip_prefix("headwater ") {
            Some(version) if !version.is_empty() && !version.contains(char::is_whitespace) => Ok(line),
            _ => Err(missing(format!("{} --version does not print `{NAME} X.Y.Z`", self.path.display()))),
        }
    }

    /// The plan of a run of `tier` over the corpus at `root`. Whether it may start is the caller's to read.
    ///
    /// # Errors
    /// [`Status::PlanFailed`], with the words of the engine.
    pub fn plan(&self, root: &Path, tier: Tier, seed: &str) -> Outcome<Plan> {
        let root = absolute(root)?;
        let seed = format!("--seed={seed}");
        let mut arguments: Vec<&OsStr> =
            ["probe", "plan", "--tier", tier.as_str(), &seed, "--format", "json", "--root"].map(OsStr::new).into();
        arguments.push(root.as_os_str());
        let ended = self.run(Status::PlanFailed, "the plan", &arguments)?;
        let printed = self.succeeded(Status::PlanFailed, "the plan", ended)?;
        self.read_plan(&printed)
    }

    /// Every finding of every rule over the tree at `root`.
    ///
    /// # Errors
    /// [`Status::Internal`], with the words of the engine.
    pub fn check(&self, root: &Path) -> Outcome<Vec<Finding>> {
        #[derive(Deserialize)]
        struct Report {
            findings: Vec<Finding>,
        }
        let root = absolute(root)?;
        let arguments = ["check".as_ref(), "--root".as_ref(), root.as_os_str(), "--format".as_ref(), "json".as_ref()];
        let ended = self.run(Status::Internal, "the check", &arguments)?;
        let printed = self.succeeded(Status::Internal, "the check", ended)?;
        serde_json::from_slice::<Report>(&printed)
            .map(|report| report.findings)
            .map_err(|e| self.not_understood(Status::Internal, "the check", &e.to_string()))
    }

    /// Has the engine confirm the transcript at `transcript` over the corpus at `root`; gives what it printed.
    ///
    /// # Errors
    /// [`Status::Internal`], with the confirmation that failed.
    pub fn confirm(&self, root: &Path, transcript: &Path) -> Outcome<String> {
        let (root, transcript) = (absolute(root)?, absolute(transcript)?);
        let arguments =
            ["probe".as_ref(), "record".as_ref(), transcript.as_os_str(), "--root".as_ref(), root.as_os_str()];
        let ended = self.run(Status::Internal, "the confirmation", &arguments)?;
        if !ended.status.success() {
            let printed = String::from_utf8_lossy(&ended.stdout);
            let said = format!("{}\n{}", ended.cause(), printed.trim_end());
            let message = format!("the engine does not confirm {}: {}", transcript.display(), said.trim_end());
            return Err(Failure::new(Status::Internal, message)
                .remedy("use an engine and a recorder of one version, and a corpus that nobody changes meanwhile"));
        }
        String::from_utf8(ended.stdout)
            .map_err(|e| self.not_understood(Status::Internal, "the confirmation", &e.to_string()))
    }

    fn run(&self, status: Status, what: &str, arguments: &[&OsStr]) -> Outcome<Ended> {
        child::run(child::command(&self.path).args(arguments), LIMITS)
            .map_err(|e| Failure::new(status, format!("{what}: {e}")).remedy(ANOTHER))
    }

    fn succeeded(&self, status: Status, what: &str, ended: Ended) -> Outcome<Vec<u8>> {
        if ended.status.success() {
            return Ok(ended.stdout);
        }
        let failure = Failure::new(status, format!("{what}: {} ended with {}", self.path.display(), ended.cause()));
        // What the engine says has its own remedy, where it has one.
        let has_remedy = ended.stderr.contains("\n  remedy: ");
        Err(if has_remedy { failure } else { failure.remedy(ANOTHER) })
    }

    fn read_plan(&self, printed: &[u8]) -> Outcome<Plan> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let not_understood = |e: serde_json::Error| self.not_understood(Status::PlanFailed, "the plan", &e.to_string());
        let Version { format } = serde_json::from_slice(printed).map_err(not_understood)?;
        if format != plan::FORMAT {
            let message = format!(
                "the plan: {} writes plans of format {format}, and this recorder reads format {}",
                self.path.display(),
                plan::FORMAT
            );
            return Err(Failure::new(Status::PlanFailed, message)
                .remedy("name an engine of the recorder's own version with --engine"));
        }
        serde_json::from_slice(printed).map_err(not_understood)
    }

    fn not_understood(&self, status: Status, what: &str, why: &str) -> Failure {
        let why: String = why.chars().filter(|c| !c.is_control()).take(200).collect();
        Failure::new(status, format!("{what}: what {} printed is not understood: {why}", self.path.display()))
            .remedy("name an engine of the recorder's own version with --engine")
    }
}

fn absolute(path: &Path) -> Outcome<PathBuf> {
    std::path::absolute(path).map_err(|e| Failure::io(path.display(), e))
}

fn missing(message: String) -> Failure {
    Failure::new(Status::Missing, message).remedy("build or install the engine, or name it with --engine PATH")
}

/// Why a path is no program that may be executed; nothing for one that is.
fn not_executable(path: &Path) -> Option<String> {
    match path.metadata() {
        Err(e) => Some(format!("cannot be read: {e}")),
        Ok(metadata) if !metadata.is_file() => Some("is no regular file".to_owned()),
        // Root may execute what carries no execute bit at all in the eyes of access(2) alone, and fails to.
        Ok(metadata) if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 == 0 => {
            Some("is not executable".to_owned())
        }
        Ok(_) => access(path, AccessFlags::X_OK).err().map(|_| "is not executable for this user".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use tempfile::TempDir;

    /// An engine that is a script: what it does wrong is the point of each test. Another process writes it, because a
    /// descriptor that is open for writing in this one may be inherited by a child of another test, and a file that
    /// anybody has open for writing cannot be executed.
    fn script(body: &str) -> (TempDir, Engine) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod 755 "$2""#;
        let written = std::process::Command::new("/bin/sh").args(["-c", write, "sh", body]).arg(&path).status();
        assert!(written.unwrap().success());
        (dir, Engine { path })
    }

    fn root() -> &'static Path {
        Path::new("/nonexistent/corpus")
    }

    const PLAN: &str = r#"{"format":1,"identity":{"lock":"D","tree":"D","selection":"D","read_set":"D","seed":"7",
      "harness":"headwater 0.1.0","tier":"regression","arms":["present"]},"cost":{"probes":0,"arms":1,"repetitions":1,
      "sessions":0,"session_cost_cents":1,"projection_cents":0,"ceiling_cents":0},"refusal":{"id":"no-probe",
      "message":"no probe"},"selection":[],"read_set":[],"identifiers":["WM-DR-0001"],
      "workspace":{"instrument":["docs/probes"],"folds":[],"answer_keys":{},"arms":{"present":{"loses":[],"gains":[]}}}}"#;

    fn plan_text() -> String {
        PLAN.replace("\"D\"", &format!("\"{}\"", headwater_contract::digest::Digest::of(b"")))
    }

    #[test]
    fn an_engine_that_is_named_is_the_one_that_is_taken_or_the_run_ends() {
        let (dir, engine) = script("exit 0");
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(Engine::find_in(Some(&engine.path), None, OsStr::new("")).unwrap(), engine);
        let absent = elsewhere.path().join("absent");
        let failure = Engine::find_in(Some(&absent), Some(dir.path()), OsStr::new("")).unwrap_err();
        assert_eq!(failure.status, Status::Missing);
        assert!(failure.message.contains("absent") && failure.remedy.is_some());
        fs::set_permissions(&engine.path, fs::Permissions::from_mode(0o644)).unwrap();
        let failure = Engine::find_in(Some(&engine.path), None, OsStr::new("")).unwrap_err();
        assert!(failure.message.ends_with("is not executable"), "{}", failure.message);
        assert_eq!(Engine::find_in(Some(dir.path()), None, OsStr::new("")).unwrap_err().status, Status::Missing);
    }

    #[test]
    fn an_engine_that_is_not_named_is_looked_for_beside_the_recorder_and_then_on_the_path() {
        let (beside, near) = script("exit 0");
        let (on_path, far) = script("exit 0");
        let search = std::env::join_paths([Path::new("relative"), on_path.path()]).unwrap();
        assert_eq!(Engine::find_in(None, Some(beside.path()), &search).unwrap(), near);
        assert_eq!(Engine::find_in(None, Some(Path::new("/nonexistent")), &search).unwrap(), far);
        assert_eq!(Engine::find_in(None, None, OsStr::new("")).unwrap_err().status, Status::Missing);
    }

    #[test]
    fn a_plan_is_asked_for_in_json_and_a_refusal_is_left_to_the_caller() {
        let (dir, engine) = script("printf '%s\\n' \"$@\" > \"${0%/*}/arguments\"; cat \"${0%/*}/plan\"");
        fs::write(dir.path().join("plan"), plan_text()).unwrap();
        let plan = engine.plan(root(), Tier::Regression, "7").unwrap();
        assert_eq!(plan.refusal.unwrap().id, "no-probe");
        let arguments = fs::read_to_string(dir.path().join("arguments")).unwrap();
        let expected =
            ["probe", "plan", "--tier", "regression", "--seed=7", "--format", "json", "--root", "/nonexistent/corpus"];
        assert_eq!(arguments.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_plan_that_fails_says_what_the_engine_said() {
        let (_dir, engine) = script("echo 'headwater: taxonomy.yml line 3: no' >&2; exit 3");
        let failure = engine.plan(root(), Tier::Regression, "0").unwrap_err();
        assert_eq!(failure.status, Status::PlanFailed);
        assert!(failure.message.contains("exit status 3: headwater: taxonomy.yml line 3: no"), "{}", failure.message);
    }

    #[test]
    fn a_plan_of_another_format_or_of_no_format_is_refused() {
        let other = plan_text().replace("\"format\":1", "\"format\":2");
        let cut = &plan_text()[..200];
        for (text, word) in
            [(&*other, "format 2"), (cut, "not understood"), ("", "not understood"), ("[]", "not understood")]
        {
            let (dir, engine) = script("cat \"${0%/*}/plan\"");
            fs::write(dir.path().join("plan"), text).unwrap();
            let failure = engine.plan(root(), Tier::Regression, "0").unwrap_err();
            assert_eq!(failure.status, Status::PlanFailed);
            assert!(failure.message.contains(word) && failure.remedy.is_some(), "{}", failure.message);
        }
    }

    #[test]
    fn findings_are_read_and_anything_else_is_an_error() {
        let (_dir, engine) =
            script(r#"echo '{"findings":[{"rule":"link.target.missing","path":"docs/a.md","line":3}]}'"#);
        let findings = engine.check(root()).unwrap();
        assert_eq!((findings[0].rule.as_str(), findings[0].line), ("link.target.missing", Some(3)));
        for body in ["echo '{}'", "echo no", "exit 3"] {
            assert_eq!(script(body).1.check(root()).unwrap_err().status, Status::Internal, "{body}");
        }
    }

    #[test]
    fn a_transcript_that_is_not_confirmed_is_a_failure_with_the_words_of_the_engine() {
        let (_dir, engine) = script("echo confirmed");
        assert_eq!(engine.confirm(root(), Path::new("run.md")).unwrap(), "confirmed\n");
        let (_dir, engine) = script("echo 'confirmation 4 (no-prose)'; echo 'headwater: a key' >&2; exit 1");
        let failure = engine.confirm(root(), Path::new("run.md")).unwrap_err();
        assert!(failure.message.contains("no-prose") && failure.message.contains("a key"), "{}", failure.message);
    }

    #[test]
    fn what_does_not_tell_a_version_is_no_engine() {
        assert_eq!(script("echo 'headwater 0.1.0'").1.version().unwrap(), "headwater 0.1.0");
        for body in ["echo 'other 0.1.0'", "echo headwater", "exit 1", "echo 'headwater 1 2'"] {
            assert_eq!(script(body).1.version().unwrap_err().status, Status::Missing, "{body}");
        }
    }
}
