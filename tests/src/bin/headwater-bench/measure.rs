//! How things are measured: in turns, by the median.

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first word of the arguments that make this program run a command and print its peak memory.
pub const PEAK: &str = "--peak-memory-of";

/// Runs both commands `rounds` times in turns and gives the median of each.
pub fn in_turns(rounds: usize, mut commands: [&mut dyn FnMut() -> Command; 2]) -> Result<[Duration; 2]> {
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
    Ok(times.map(median))
}

/// The median. There must be one time at least.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Runs the command of these arguments and prints the peak of its resident memory in kilobytes.
pub fn print_peak(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> Result<()> {
    let mut command = Command::new(arguments.next().context("a program")?);
    peak(command.args(arguments))
}

fn peak(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).status()?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    println!("{}", getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss());
    Ok(())
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub fn ours_over(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}
