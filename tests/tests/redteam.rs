//! Attacks from inside a tool call: what is recorded is what a quiet session records, or the recording is refused.
//!
//! The cases are the files of `tests/redteam/`; its README says how they are read.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use headwater_contract::digest::Digest;
use headwater_tests::recording::{Studio, Taken, processes};
use headwater_tests::workspace_root;
use serde_json::{Value, json};

/// What the files of the host hold that no session may see.
const CANARY: &str = "canary-of-the-host-4f1e77";
/// What stands in `tests/redteam/` for a directory of the host, and for a number that finds a process again.
const HOST: &str = "{host}";
const NONCE: &str = "{nonce}";

/// One file of `tests/redteam/`.
struct Case {
    name: String,
    script: Value,
    options: Vec<(String, String)>,
    status: Vec<i32>,
    says: Vec<String>,
}

impl Case {
    /// The case of a file, with the host's directory in place.
    fn read(path: &Path, host: &str, nonce: &str) -> Result<Option<Self>> {
        let name = path.file_stem().and_then(|name| name.to_str()).context("a name")?.to_owned();
        let in_place = |text: String| text.replace(HOST, host).replace(NONCE, nonce);
        let case = match path.extension().and_then(|e| e.to_str()) {
            Some("py") => {
                let program = in_place(fs::read_to_string(path)?);
                let run = "python3 attack.py > got.txt 2>&1; tail -c 20000 got.txt";
                json!({"script": {"turns": [
                    {"calls": [{"tool": "Write", "input": {"file_path": "{workspace}/attack.py", "content": program}}]},
                    {"calls": [{"tool": "Bash", "input": {"command": run}}]},
                    {"text": "Done."}
                ]}, "says": []})
            }
            Some("json") => serde_json::from_str(&in_place(fs::read_to_string(path)?)).with_context(|| name.clone())?,
            _ => return Ok(None),
        };
        let words = |key: &str| {
            let words = case[key].as_array().into_iter().flatten();
            words.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let status: Vec<i32> =
            case["status"].as_array().into_iter().flatten().filter_map(Value::as_i64).map(|n| n as i32).collect();
        let options = case["options"].as_object().into_iter().flatten();
        Ok(Some(Self {
            script: case["script"].clone(),
            options: options.map(|(name, value)| (name.clone(), value.as_str().unwrap_or("").to_owned())).collect(),
            status: if status.is_empty() { vec![0] } else { status },
            says: words("says"),
            name,
        }))
    }

    /// The calls of the script, each with the members of its input as they were given.
    fn calls(&self) -> Vec<(String, Value)> {
        let turns = self.script["turns"].as_array().into_iter().flatten();
        let calls = turns.flat_map(|turn| turn["calls"].as_array().into_iter().flatten());
        calls.map(|call| (call["tool"].as_str().unwrap_or("").to_owned(), call["input"].clone())).collect()
    }

    /// Whether the session runs a program that counts what it tried.
    fn counts(&self) -> bool {
        self.script.to_string().contains("python3 attack.py")
    }
}

/// What came of the attacks.
#[derive(Default)]
struct Tally {
    cases: usize,
    tried: u64,
    succeeded: Vec<String>,
    forged: Vec<String>,
    foreign: Vec<String>,
    survivors: Vec<String>,
    other: Vec<String>,
}

impl Tally {
    fn hold(&self) {
        let found = [&self.succeeded, &self.forged, &self.foreign, &self.survivors, &self.other];
        let found: Vec<_> = found.into_iter().flatten().cloned().collect();
        assert!(found.is_empty(), "{self}\n{}", found.join("\n"));
    }

    fn case(&mut self, case: &Case, taken: &Taken, workspace: &str, nonce: &str) -> Result<()> {
        self.cases += 1;
        let name = &case.name;
        let status = taken.status.unwrap_or(-1);
        if !case.status.contains(&status) || taken.stderr.contains("panicked") {
            self.other.push(format!("{name}: status {status}: {}", taken.stderr));
        }
        for word in case.says.iter().filter(|word| !taken.stderr.contains(*word)) {
            self.other.push(format!("{name}: `{word}` is not in: {}", taken.stderr));
        }
        if taken.stderr.contains(['\u{1b}', '\u{7}', '\u{9b}', '\r']) {
            self.foreign.push(format!("{name}: control characters on the terminal: {:?}", taken.stderr));
        }
        let raw = String::from_utf8_lossy(taken.raw.as_deref().unwrap_or_default()).into_owned();
        self.attacks(case, &raw);

        // The record is that of the script, call by call, or there is none.
        match &taken.document {
            Some(document) => {
                let events = taken.read()?.events;
                ensure!(events.len() == 1, "{name}: {} events", events.len());
                let told: Vec<_> =
                    events[0].calls.iter().flatten().map(|c| (c.tool.clone(), c.argument.clone())).collect();
                let made = case.calls();
                let same = told.len() == made.len()
                    && told.iter().zip(&made).all(|(told, made)| is_that(told, made, workspace));
                if !same {
                    self.forged.push(format!("{name}: recorded {told:?}\n  made {made:?}"));
                }
                if document.contains(CANARY) || document.contains(&Digest::of(CANARY.as_bytes()).to_string()) {
                    self.foreign.push(format!("{name}: a canary in the transcript"));
                }
            }
            None if status == 0 => self.other.push(format!("{name}: no transcript")),
            None => {}
        }
        if raw.contains(CANARY) || taken.stderr.contains(CANARY) {
            self.foreign.push(format!("{name}: a canary in the raw log"));
        }
        let left = taken.left.iter().map(|path| format!("{name}: {}", path.display()));
        self.survivors.extend(left);
        let running = taken.running.iter().cloned().chain(lasting(nonce)?);
        self.survivors.extend(running.map(|process| format!("{name}: {process}")));
        Ok(())
    }

    /// What the attacking program counted.
    fn attacks(&mut self, case: &Case, raw: &str) {
        let Some((_, rest)) = raw.rsplit_once("tried: ").filter(|_| case.counts()) else {
            self.tried += 1;
            if case.counts() {
                self.other.push(format!("{}: its attack did not end: {raw}", case.name));
            }
            return;
        };
        let (number, got) = rest.split_once(" got: ").unwrap_or(("0", rest));
        self.tried += number.parse::<u64>().unwrap_or(0);
        if !got.starts_with("[]") {
            self.succeeded.push(format!("{}: {}", case.name, got.chars().take(2000).collect::<String>()));
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "red team: {} cases, {} attacks tried, {} succeeded, {} forged lines accepted, {} foreign bytes read, {} \
             survivors",
            self.cases,
            self.tried,
            self.succeeded.len(),
            self.forged.len(),
            self.foreign.len(),
            self.survivors.len()
        )
    }
}

/// Whether a recorded call is a call of the script. Paths in the workspace are recorded relative to it.
fn is_that((tool, argument): &(String, String), (made, input): &(String, Value), workspace: &str) -> bool {
    let in_place = |text: &str| text.replace("{workspace}", workspace);
    let key = ["file_path", "notebook_path", "path", "command"].into_iter().find(|key| input[key].is_string());
    let Some(value) = key.and_then(|key| input[key].as_str()) else { return tool == made };
    let told = match serde_json::from_str::<Value>(argument) {
        Ok(told) if tool == "Bash" => told["command"].as_str().unwrap_or("").to_owned(),
        _ => argument.clone(),
    };
    let made_as = in_place(value);
    tool == made
        && (told == made_as
            || Some(told.as_str()) == made_as.strip_prefix(workspace).map(|p| p.trim_start_matches('/')))
}

/// The processes with a nonce, once the kernel has had the time to end them.
fn lasting(nonce: &str) -> Result<Vec<String>> {
    let start = Instant::now();
    loop {
        let found = processes(nonce)?;
        if found.is_empty() || start.elapsed() > Duration::from_secs(3) {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a host has that a session must not reach, in the home of the studio's user.
struct Host {
    _listeners: Vec<UnixListener>,
}

impl Host {
    fn new(studio: &Studio) -> Result<Self> {
        studio.user.file("canary", CANARY)?;
        studio.user.directory(".ssh")?;
        studio.user.file(".ssh/id_ed25519", CANARY)?;
        let path = studio.user.home().join("socket");
        let listener = UnixListener::bind(&path)?;
        studio.user.give(&path)?;
        let mut listeners = vec![listener];
        // Where another run of these tests holds the name, the session cannot reach that one either.
        listeners
            .extend(SocketAddr::from_abstract_name("headwater-test-host").and_then(|a| UnixListener::bind_addr(&a)));
        Ok(Self { _listeners: listeners })
    }
}

/// The workspace of a session, as its own init line names it.
fn workspace(taken: &Taken) -> String {
    let raw = String::from_utf8_lossy(taken.raw.as_deref().unwrap_or_default()).into_owned();
    let init = raw.lines().find_map(|line| {
        serde_json::from_str::<Value>(line).ok().filter(|line| line["type"] == "system" && line["subtype"] == "init")
    });
    init.and_then(|init| init["cwd"].as_str().map(str::to_owned)).unwrap_or_default()
}

#[test]
fn no_attack_changes_the_record() -> Result<()> {
    let studio = Studio::new()?;
    let _host = Host::new(&studio)?;
    let host = studio.user.home().to_str().context("a home in UTF-8")?.to_owned();
    let mut files: Vec<_> =
        fs::read_dir(workspace_root().join("tests/redteam"))?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut tally = Tally::default();
    // A bwrap besides the one in `PATH`, for `./run redteam`.
    let bwrap = std::env::var_os("HEADWATER_TEST_BWRAP");
    for (number, file) in files.iter().enumerate() {
        let nonce = format!("{}{number:03}", std::process::id());
        let Some(case) = Case::read(file, &host, &nonce)? else { continue };
        let mut take = studio.take(&case.name)?.script(&case.script)?.environment("SECRET_OF_THE_HOST", CANARY);
        for (option, value) in &case.options {
            take = take.with(&[option, value]);
        }
        if let Some(bwrap) = &bwrap {
            take = take.set("--bwrap", bwrap);
        }
        let start = Instant::now();
        let taken = take.run()?;
        eprintln!("{:7.2} s  {}", start.elapsed().as_secs_f64(), case.name);
        tally.case(&case, &taken, &workspace(&taken), &nonce)?;
    }
    eprintln!("{tally}");
    tally.hold();
    Ok(())
}

#[test]
fn a_session_reaches_no_other_session_of_the_batch() -> Result<()> {
    let studio = Studio::new()?;
    // The victim waits; the attacker looks for it by every name that the two share.
    let victim = json!({"turns": [
        {"calls": [{"tool": "Bash", "input": {"command": format!("echo {CANARY} | tee here.md /tmp/here $HEADWATER_SHADOW_LOG_DIR/here; sleep 3")}}]},
        {"text": "Done."}
    ]});
    let attacker = json!({"turns": [
        {"calls": [{"tool": "Bash", "input": {"command":
            "ls -a ../.. ../../.. /tmp; cat ../../*/*/here.md /tmp/here \"$HEADWATER_SHADOW_LOG_DIR\"/here ../../headwater-logs-*/here; \
             for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; done; true"}}]},
        {"text": "Done."}
    ]});
    let one = studio.take("victim")?.script(&victim)?;
    let shared = one.temporary.clone();
    let two = studio.take("attacker")?.script(&attacker)?.environment("TMPDIR", &shared);
    let running = one.command().stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn()?;
    let raw = one.out.join("victim.raw.jsonl");
    let start = Instant::now();
    while !fs::read_to_string(&raw).is_ok_and(|raw| raw.contains("tool_use")) {
        ensure!(start.elapsed() < Duration::from_secs(20), "the victim does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    let attacked = two.run()?;
    let output = running.wait_with_output()?;
    let victim = one.taken(&output)?;
    victim.recorded()?;
    attacked.recorded()?;
    let seen = String::from_utf8(attacked.raw.context("the raw log")?)?;
    assert!(!seen.contains(CANARY) && !seen.contains("sleep 3"), "{seen}");
    Ok(())
}

#[test]
fn what_a_session_needs_works_in_the_confinement() -> Result<()> {
    let studio = Studio::new()?;
    let work = "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log --oneline \
                && python3 -c 'import subprocess, socket; socket.socketpair(); print(subprocess.check_output([\"echo\", \"py\"]))' \
                && mkdir d && echo a > d/f && mv d/f g && ln g h && ln -s g i && rm -r d && cat i && : > g && ls | sort | uniq -c \
                && echo all-well";
    let script = json!({"turns": [{"calls": [{"tool": "Bash", "input": {"command": work}}]}, {"text": "Done."}]});
    let taken = studio.take("work")?.script(&script)?.run()?;
    taken.recorded()?;
    let raw = String::from_utf8(taken.raw.context("the raw log")?)?;
    assert!(raw.contains("all-well\""), "{raw}");
    Ok(())
}

#[test]
fn the_programs_of_the_red_team_get_something_where_nothing_confines_them() -> Result<()> {
    // An attack that cannot succeed anywhere shows nothing.
    let studio = Studio::new()?;
    let _host = Host::new(&studio)?;
    let host = studio.user.home().to_str().context("a home in UTF-8")?.to_owned();
    let mut open = BTreeMap::new();
    for name in ["processes", "kernel", "outside", "network"] {
        let program =
            fs::read_to_string(workspace_root().join(format!("tests/redteam/{name}.py")))?.replace(HOST, &host);
        let path = studio.user.file(&format!("{name}.py"), program)?;
        let mut command = studio.user.command("timeout");
        // In namespaces of its own: it looks at nothing of this machine but this test's own files.
        let namespaces = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--net", "--ipc"];
        command.args(["-s", "KILL", "20", "unshare", "--kill-child"]).args(namespaces);
        command.args(["sh", "-c", "sleep 5 & python3 \"$1\"; kill $!", "sh"]).arg(&path);
        let output = command.env("SECRET_OF_THE_HOST", CANARY).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let got = said.rsplit_once("got: ").map(|(_, got)| got.trim().to_owned());
        open.insert(name, got.with_context(|| format!("{name}: {said}{}", String::from_utf8_lossy(&output.stderr)))?);
    }
    assert!(open.values().all(|got| got != "[]"), "{open:?}");
    Ok(())
}
