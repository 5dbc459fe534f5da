//! The transform of a long stream.

use crate::measure::{PEAK, in_turns, ms, ours_over};
use anyhow::{Context as _, Result};
use headwater_tests::bins;
use headwater_tests::user::User;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Bytes of the long stream.
const STREAM: u64 = 100 << 20;
/// What a recorder without the transform would do: the block filter alone.
const FILTER: &str = r#"select(.type=="assistant" or .type=="user") | .message.content | arrays | .[]
    | select(.type=="tool_use" or .type=="tool_result")"#;

/// The transform of a long stream, against jq doing the block filter alone.
pub fn transform(user: &User) -> Result<()> {
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

/// A stream like that of a long session: text and thinking, partial messages, calls, results with the bytes that a
/// tool returned. The number of calls is the same at any length.
fn stream(user: &User, name: &str, bytes: u64) -> Result<std::path::PathBuf> {
    const CALLS: u64 = 1000;
    let path = user.file(name, "")?;
    let mut out = BufWriter::new(File::create(&path)?);
    let init = include_str!("../../../harness-logs/26_recommended_clean.jsonl").lines().next().unwrap_or_default();
    let result = include_str!("../../../harness-logs/26_recommended_clean.jsonl").lines().last().unwrap_or_default();
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
