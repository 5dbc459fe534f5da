//! The figures of `./run bench`, as ratios, in one run.
//!
//! Each measurement alternates what is measured with what a user would use instead, and prints the medians of both, so
//! that the state of the machine falls on both alike.

use anyhow::{Context as _, Result, bail, ensure};
use headwater_tests::user::User;
use headwater_tests::{bins, corpus};
use nix::sys::resource::{UsageWho, getrusage};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Documents of the generated corpus.
const DOCUMENTS: usize = 10_000;
/// Bytes of the long stream.
const STREAM: u64 = 100 << 20;
/// The first word of the arguments that make this program run a command and print its peak memory.
const PEAK: &str = "--peak-memory-of";
/// What a recorder without the transform would do: the block filter alone.
const FILTER: &str = r#"select(.type=="assistant" or .type=="user") | .message.content | arrays | .[]
    | select(.type=="tool_use" or .type=="tool_result")"#;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == PEAK) {
        let program = arguments.next().context("a program")?;
        return peak(Command::new(program).args(arguments));
    }
    let user = User::new()?;
    println!("ratios of medians, measured in turns; smaller is better unless said otherwise");
    session(&user)?;
    transform(&user)?;
    plan(&user)
}

/// The whole `record` with a scripted session of one call, against bare bwrap.
fn session(user: &User) -> Result<()> {
    let root = corpus::corpus(user, "corpus")?;
    let script = user.file(
        "one-call.json",
        r#"{"turns":[{"calls":[{"tool":"Read","input":{"file_path":"{workspace}/README.md"}}]},{"text":"done"}],"cost_usd":0}"#,
    )?;
    let (recorder, engine) = (bins::bin(user, "headwater-recorder")?, bins::bin(user, "headwater")?);
    let out = user.directory("out")?;
    let mut n = 0;
    let mut record = || {
        n += 1;
        let mut command = user.command(&recorder);
        command.arg("record").arg("--corpus").arg(&root).args(["--probe", "WM-PR-0001", "--session", "bench"]);
        command.arg("--engine").arg(&engine).arg("--out").arg(out.join(format!("{n}.md")));
        command.arg("--harness").arg(format!("scripted:{}", script.display()));
        command
    };
    let bare = || {
        let mut command = user.command("bwrap");
        command.args(["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--cap-drop", "ALL"]);
        command.args(["--die-with-parent", "--new-session", "--clearenv", "--ro-bind", "/", "/", "--proc", "/proc"]);
        command.args(["--dev", "/dev", "--tmpfs", "/tmp", "true"]);
        command
    };
    let [ours, theirs] = in_turns(30, [&mut record, &mut { bare }])?;
    println!(
        "record of one scripted call  {:>8.1} ms   bwrap … true  {:>8.1} ms   {:+.1} ms (aim: at most +60 ms)",
        ms(ours),
        ms(theirs),
        ms(ours) - ms(theirs)
    );
    Ok(())
}

/// The transform of a long stream, against jq doing the block filter alone.
fn transform(user: &User) -> Result<()> {
    let recorder = bins::bin(user, "headwater-recorder")?;
    let long = stream(user, "long.jsonl", STREAM)?;
    let short = stream(user, "short.jsonl", STREAM / 10)?;
    let reading = |mut command: Command, path: &Path| -> Command {
        command.stdin(File::open(path).map_or_else(|_| Stdio::null(), Stdio::from));
        command
    };
    let transform = |path: &Path| {
        let mut command = user.command(&recorder);
        command.args(["transform", "--probe", "WM-PR-0001", "--session", "bench"]);
        reading(command, path)
    };
    let jq = || {
        let mut command = user.command("jq");
        command.args(["-c", FILTER]);
        reading(command, &long)
    };
    let [ours, theirs] = in_turns(5, [&mut || transform(&long), &mut { jq }])?;
    println!(
        "transform of {} MB           {:>8.1} ms   jq -c filter  {:>8.1} ms   {:.1} times jq's speed (aim: at least 10)",
        STREAM >> 20,
        ms(ours),
        ms(theirs),
        ours_over(theirs, ours)
    );
    let peak = |path: &Path| -> Result<u64> {
        let mut command = user.command(std::env::current_exe()?);
        command.arg(PEAK).arg(&recorder).args(["transform", "--probe", "WM-PR-0001", "--session", "bench"]);
        let output = reading(command, path).stderr(Stdio::inherit()).output()?;
        let printed = String::from_utf8(output.stdout)?;
        printed.trim().parse().context("the peak memory")
    };
    println!(
        "peak memory of transform     {:>8} kB   over {} MB, {} kB over {} MB (aim: flat in the stream's length)",
        peak(&long)?,
        STREAM >> 20,
        peak(&short)?,
        (STREAM / 10) >> 20
    );
    Ok(())
}

/// The plan over a generated corpus, against sha256sum of the same files.
fn plan(user: &User) -> Result<()> {
    let root = corpus::corpus(user, "large")?;
    let notes = root.join("docs/notes/generated");
    fs::create_dir(&notes)?;
    for n in 0..DOCUMENTS {
        fs::write(notes.join(format!("generated-note-{n}.md")), note(n))?;
    }
    user.give(&notes)?;
    let engine = bins::bin(user, "headwater")?;
    let list = user.file("list", files(&root.join("docs"))?.join("\0"))?;
    let mut plan = || {
        let mut command = user.command(&engine);
        command.args(["probe", "plan", "--tier", "regression", "--root"]).arg(&root);
        command
    };
    let mut sums = || {
        let mut command = user.command("xargs");
        command.arg("-0").arg("-a").arg(&list).arg("sha256sum");
        command
    };
    let [ours, theirs] = in_turns(10, [&mut plan, &mut sums])?;
    println!(
        "plan over {DOCUMENTS} documents   {:>8.1} ms   sha256sum     {:>8.1} ms   {:.2} of sha256sum's time (aim: at most 2)",
        ms(ours),
        ms(theirs),
        ours_over(ours, theirs)
    );
    Ok(())
}

/// Runs both commands `rounds` times in turns and gives the median of each.
fn in_turns(rounds: usize, mut commands: [&mut dyn FnMut() -> Command; 2]) -> Result<[Duration; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    // One round more than is counted: the first fills the caches.
    for round in 0..=rounds {
        for (command, times) in commands.iter_mut().zip(&mut times) {
            let mut command = command();
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            let started = Instant::now();
            let output = command.output()?;
            let took = started.elapsed();
            ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            if round > 0 {
                times.push(took);
            }
        }
    }
    Ok(times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    }))
}

/// Runs a command and prints the peak of its resident memory in kilobytes.
fn peak(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).status()?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss());
    Ok(())
}

/// A stream like that of a long session: text and thinking, partial messages, calls, results with the bytes that a
/// tool returned. The number of calls is the same at any length.
fn stream(user: &User, name: &str, bytes: u64) -> Result<std::path::PathBuf> {
    const CALLS: u64 = 1000;
    let path = user.file(name, "")?;
    let mut out = BufWriter::new(File::create(&path)?);
    let init = include_str!("../../harness-logs/26_recommended_clean.jsonl").lines().next().unwrap_or_default();
    let result = include_str!("../../harness-logs/26_recommended_clean.jsonl").lines().last().unwrap_or_default();
    writeln!(out, "{init}")?;
    let words = "The ruling says that a reading is kept for four hundred days, and the specification agrees.\\n";
    let each = usize::try_from(bytes / CALLS / 3)?;
    let filler = words.repeat(each.div_ceil(words.len()));
    for n in 0..CALLS {
        writeln!(
            out,
            r#"{{"type":"assistant","message":{{"id":"msg_{n}","type":"message","role":"assistant","model":"claude-haiku-4-5-20251001","content":[{{"type":"text","text":"{filler}"}}]}},"parent_tool_use_id":null}}"#
        )?;
        writeln!(
            out,
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{filler}"}}}},"parent_tool_use_id":null}}"#
        )?;
        writeln!(
            out,
            r#"{{"type":"assistant","message":{{"id":"msg_{n}","type":"message","role":"assistant","model":"claude-haiku-4-5-20251001","content":[{{"type":"tool_use","id":"toolu_{n}","name":"Read","input":{{"file_path":"/ws/docs/{n}.md"}}}}]}},"parent_tool_use_id":null}}"#
        )?;
        writeln!(
            out,
            r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_{n}","type":"tool_result","content":"{filler}"}}]}},"parent_tool_use_id":null}}"#
        )?;
    }
    writeln!(out, "{result}")?;
    out.flush()?;
    Ok(path)
}

/// A note of about two kilobytes.
fn note(n: usize) -> String {
    let mut text = format!(
        "---\nid: WM-NT-{:04}\nkind: note\nstatus: current\nstatus_date: 2026-01-01\ntitle: Generated note {n}\nsummary: A note that was generated for a measurement.\n---\n\n# Generated note {n}\n",
        5000 + n
    );
    for paragraph in 0..16 {
        let _ = write!(
            text,
            "\nParagraph {paragraph} of note {n} says what the one before it said, in other words and at the same length as it.\n"
        );
    }
    text
}

fn files(directory: &Path) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            out.extend(files(&path)?);
        } else if path.extension().is_some_and(|e| e == "md") {
            out.push(path.to_string_lossy().into_owned());
        }
    }
    out.sort();
    Ok(out)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn ours_over(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
