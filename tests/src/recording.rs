//! Recordings of the scripted harness: a user with a corpus, and one `record` command at a time.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};
use headwater_contract::transcript::{self, Transcript};
use serde_json::{Value, json};

use crate::bins::bin;
use crate::corpus;
use crate::user::User;

/// What a recording says before it starts its harness.
const STARTS: &str = "session, at most";

/// An ordinary user with the sample corpus, committed, and both programs.
#[derive(Debug)]
pub struct Studio {
    /// The user.
    pub user: User,
    /// The root of the corpus.
    pub corpus: PathBuf,
    /// `headwater-recorder`.
    pub recorder: PathBuf,
    /// `headwater`.
    pub engine: PathBuf,
}

impl Studio {
    /// A studio over the sample corpus.
    ///
    /// # Errors
    /// Where a program does not build or the corpus cannot be committed.
    pub fn new() -> Result<Self> {
        let user = User::new()?;
        let corpus = corpus::corpus(&user, "corpus")?;
        let (recorder, engine) = (bin(&user, "headwater-recorder")?, bin(&user, "headwater")?);
        Ok(Self { user, corpus, recorder, engine })
    }

    /// A recording of WM-PR-0001 with a session that reads a document and says a word. It has directories of its own:
    /// one for what it writes, one for its temporary files.
    ///
    /// # Errors
    /// Where a directory cannot be made, as for a name that is taken.
    pub fn take(&self, name: &str) -> Result<Take<'_>> {
        let home = self.user.directory(name)?;
        let directory = |part: &str| self.user.directory(&format!("{name}/{part}"));
        let (out, temporary) = (directory("out")?, directory("tmp")?);
        let options = BTreeMap::from([
            ("--corpus", self.corpus.clone().into()),
            ("--engine", self.engine.clone().into()),
            ("--out", out.join(format!("{name}.md")).into()),
            ("--probe", "WM-PR-0001".into()),
            ("--session", "one".into()),
        ]);
        let environment = vec![("TMPDIR", temporary.clone().into())];
        let take = Take { studio: self, home, out, temporary, options, more: Vec::new(), environment };
        take.script(&json!({"turns": [
            {"calls": [{"tool": "Read", "input": {"file_path": "{workspace}/docs/specs/retention-classes.md"}}]},
            {"text": "Done."}
        ]}))
    }

    /// A recording that plays a script of `tests/scripts/`.
    ///
    /// # Errors
    /// As [`Studio::take`], and where there is no such script.
    pub fn take_of(&self, script: &str, probe: &str) -> Result<Take<'_>> {
        let text = fs::read(crate::workspace_root().join("tests/scripts").join(format!("{script}.json")))?;
        Ok(self.take(script)?.script(&serde_json::from_slice(&text)?)?.set("--probe", probe))
    }

    /// What a program prints; it has to succeed.
    ///
    /// # Errors
    /// Where it does not.
    pub fn printed(&self, program: &Path, arguments: &[&str], input: &[u8]) -> Result<String> {
        let file = self.user.file("input", input)?;
        let mut command = self.user.command(program);
        let output = command.args(arguments).stdin(Stdio::from(fs::File::open(file)?)).output()?;
        if !output.status.success() {
            bail!("{} {}: {}", program.display(), arguments.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// What the engine prints about the corpus.
    ///
    /// # Errors
    /// Where it does not succeed.
    pub fn ask(&self, arguments: &[&str]) -> Result<String> {
        let root = self.corpus.to_str().context("a root in UTF-8")?;
        self.printed(&self.engine, &[arguments, &["--root", root]].concat(), b"")
    }

    /// The verdict over one probe of a transcript, as the engine states it.
    ///
    /// # Errors
    /// Where the engine does not grade it, or gives no verdict over the probe.
    pub fn verdict(&self, transcript: &Path, probe: &str) -> Result<Value> {
        let path = transcript.to_str().context("a path in UTF-8")?;
        let grade: Value = serde_json::from_str(&self.ask(&["probe", "grade", path, "--format", "json"])?)?;
        let verdicts = grade["verdicts"].as_array().context("the verdicts")?;
        verdicts.iter().find(|verdict| verdict["probe"] == probe).cloned().context("a verdict over the probe")
    }

    /// Writes a file of the corpus and commits.
    ///
    /// # Errors
    /// Where it cannot be.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        let file = self.corpus.join(path);
        fs::write(&file, content)?;
        self.user.give(&file)?;
        corpus::commit(&self.user, &self.corpus)
    }

    /// Changes a file of the corpus and commits.
    ///
    /// # Errors
    /// Where it cannot be, or `change` changes nothing.
    pub fn rewrite(&self, path: &str, change: impl FnOnce(&str) -> String) -> Result<()> {
        let before = fs::read_to_string(self.corpus.join(path))?;
        let after = change(&before);
        if before == after {
            bail!("{path} is as it was");
        }
        self.write(path, after)
    }

    /// A directory that passes every guard: the corpus as its files stand, without the instrument.
    ///
    /// # Errors
    /// Where it cannot be copied.
    pub fn workspace(&self, name: &str) -> Result<PathBuf> {
        let root = self.user.directory(name)?;
        corpus::copy(&crate::workspace_root().join("tests/corpus"), &root)?;
        for path in self.ask(&["probe", "plan", "--tier", "regression", "--instrument"])?.lines() {
            let path = root.join(path);
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        self.user.give(&root)?;
        Ok(root)
    }
}

/// One `record` command.
#[derive(Debug)]
pub struct Take<'a> {
    studio: &'a Studio,
    home: PathBuf,
    /// The directory of the transcript and the raw log.
    pub out: PathBuf,
    /// Its `TMPDIR`.
    pub temporary: PathBuf,
    options: BTreeMap<&'static str, OsString>,
    more: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
}

impl Take<'_> {
    /// Sets an option, in place of what it was.
    #[must_use]
    pub fn set(mut self, option: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.options.insert(option, value.as_ref().to_owned());
        self
    }

    /// What an option is set to.
    #[must_use]
    pub fn option(&self, option: &str) -> Option<&OsStr> {
        self.options.get(option).map(OsString::as_os_str)
    }

    /// Leaves an option out.
    #[must_use]
    pub fn without(mut self, option: &str) -> Self {
        self.options.remove(option);
        self
    }

    /// Adds arguments as they are.
    #[must_use]
    pub fn with(mut self, arguments: &[&str]) -> Self {
        self.more.extend(arguments.iter().map(OsString::from));
        self
    }

    /// Sets a variable of the recorder's environment.
    #[must_use]
    pub fn environment(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name, value.as_ref().to_owned()));
        self
    }

    /// Plays a script.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn script(self, script: &Value) -> Result<Self> {
        let path = self.home.join("script.json");
        fs::write(&path, script.to_string())?;
        self.studio.user.give(&path)?;
        let mut named = OsString::from("scripted:");
        named.push(path);
        Ok(self.set("--harness", named))
    }

    /// A program of the take as its harness: a shell script that everybody may run.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn program(self, text: &str) -> Result<Self> {
        let path = self.home.join("program");
        fs::write(&path, text)?;
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        self.studio.user.give(&path)?;
        Ok(self.set("--harness", path))
    }

    /// What every process of the recording, and of its session, holds in its command line or its environment.
    #[must_use]
    pub fn marker(&self) -> String {
        format!("{}/", self.home.display())
    }

    /// The command.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = self.studio.user.command(&self.studio.recorder);
        command.arg("record");
        for (option, value) in &self.options {
            command.arg(option).arg(value);
        }
        command.args(&self.more).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    /// Where it cannot be started, or what it left cannot be read.
    pub fn run(&self) -> Result<Taken> {
        let output = self.command().output()?;
        self.taken(&output)
    }

    /// What a run of the command left.
    ///
    /// # Errors
    /// Where that cannot be read.
    pub fn taken(&self, output: &Output) -> Result<Taken> {
        let path = self.options.get("--out").map(PathBuf::from).unwrap_or_default();
        let raw = self.options.get("--raw").map_or_else(|| path.with_extension("raw.jsonl"), PathBuf::from);
        let own = [path.clone(), raw.clone()];
        let mut left = Vec::new();
        for directory in [&self.out, &self.temporary] {
            let found = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
            left.extend(found.into_iter().filter(|found| !own.contains(found)));
        }
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        // What is kept for a person is said to be kept.
        let kept: Vec<_> = stderr.lines().filter_map(|line| line.strip_prefix("  kept: ")).collect();
        left.retain(|left| !kept.iter().any(|kept| Path::new(kept).starts_with(left)));
        Ok(Taken {
            status: output.status.code(),
            signal: output.status.signal(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr,
            document: fs::read_to_string(&path).ok(),
            raw: fs::read(&raw).ok(),
            path,
            left,
            running: processes(&self.marker())?,
        })
    }
}

/// What a `record` command printed and left.
#[derive(Debug)]
pub struct Taken {
    /// Its exit status, where it exited.
    pub status: Option<i32>,
    /// The signal that ended it, where one did.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Where the transcript was to be.
    pub path: PathBuf,
    /// The transcript, where it is there.
    pub document: Option<String>,
    /// The raw log, where it is there.
    pub raw: Option<Vec<u8>>,
    /// What else is in the take's directories, and not said to be kept.
    pub left: Vec<PathBuf>,
    /// Processes that are still there.
    pub running: Vec<String>,
}

impl Taken {
    /// Holds a recording to its success and gives the transcript's two blocks.
    ///
    /// # Errors
    /// Where there is no transcript, or it cannot be read.
    #[track_caller]
    pub fn recorded(&self) -> Result<Transcript> {
        assert_eq!(self.status, Some(0), "{}", self.stderr);
        self.left_nothing();
        assert!(self.raw.as_ref().is_some_and(|raw| !raw.is_empty()), "no raw log");
        self.read()
    }

    /// The transcript's two blocks.
    ///
    /// # Errors
    /// Where there is no transcript, or it cannot be read.
    pub fn read(&self) -> Result<Transcript> {
        let document = self.document.as_ref().context("no transcript")?;
        Ok(transcript::read(document)?.whole()?)
    }

    /// The statement of a topic in the transcript's prose.
    ///
    /// # Errors
    /// Where there is none.
    pub fn statement(&self, topic: &str) -> Result<&str> {
        let document = self.document.as_deref().context("no transcript")?;
        let start = format!("**{topic}.** ");
        document.lines().find_map(|line| line.strip_prefix(&start)).with_context(|| format!("no statement {topic}"))
    }

    /// Holds a refusal to what each has: its status, a message with `words` and a remedy, that nothing was spent, and
    /// that nothing is left.
    #[track_caller]
    pub fn refused(&self, status: i32, words: &[&str]) {
        self.says(status, words);
        assert!(self.stderr.ends_with("  nothing was spent\n"), "{}", self.stderr);
        assert!(!self.stderr.contains(STARTS), "{}", self.stderr);
        assert!(self.raw.is_none(), "a harness was started: {:?}", self.raw.as_ref().map(Vec::len));
    }

    /// The same for a session that ran: that it may have spent, and that its raw log is kept.
    #[track_caller]
    pub fn failed(&self, status: i32, words: &[&str]) {
        self.says(status, words);
        assert!(self.stderr.ends_with("  the session has run and may have spent\n"), "{}", self.stderr);
        assert!(self.stderr.contains(STARTS), "{}", self.stderr);
        let kept = self.raw.as_ref().is_some_and(|raw| !raw.is_empty());
        assert!(kept, "no raw log: {}", self.stderr);
    }

    #[track_caller]
    fn says(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status, Some(status), "{}", self.stderr);
        assert!(self.stderr.contains("\nheadwater-recorder: ") || self.stderr.starts_with("headwater-recorder: "));
        assert!(self.stderr.lines().any(|line| line.starts_with("  remedy: ")), "no remedy: {}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not in: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        assert!(self.document.is_none(), "a transcript is there");
        assert_eq!(self.stdout, "");
        self.left_nothing();
    }

    /// Holds a run to leaving no file besides its own two, and no process.
    #[track_caller]
    pub fn left_nothing(&self) {
        assert!(self.left.is_empty(), "left behind: {:?}\n{}", self.left, self.stderr);
        assert!(self.running.is_empty(), "still there: {:?}\n{}", self.running, self.stderr);
    }
}

/// The command lines of all processes that hold `marker` in their command line or environment.
///
/// # Errors
/// Where `/proc` cannot be listed.
pub fn processes(marker: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let directory = entry?.path();
        // What is gone by now, or somebody else's, is none of the recording's.
        let read =
            |name: &str| String::from_utf8_lossy(&fs::read(directory.join(name)).unwrap_or_default()).into_owned();
        let line = read("cmdline");
        if line.contains(marker) || read("environ").contains(marker) {
            found.push(format!("{}: {}", directory.display(), line.replace('\0', " ")));
        }
    }
    Ok(found)
}
