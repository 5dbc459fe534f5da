//! What a person sees while a recording is under way: one plain line a step on standard error, and, on a terminal, how
//! long the session runs and how much it has said.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the line of a running session is drawn again on a terminal.
const REDRAWN: Duration = Duration::from_millis(500);
/// How often a running session is reported where there is no terminal.
const REPORTED: Duration = Duration::from_secs(60);

/// Where progress goes.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    quiet: bool,
}

impl Progress {
    /// Progress on standard error, or none.
    #[must_use]
    pub const fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// A step begins.
    pub fn step(self, text: &str) {
        if !self.quiet {
            // A standard error that is gone stops no recording.
            let _ = writeln!(std::io::stderr(), "headwater-recorder: {text}");
        }
    }

    /// A session runs, and its stream grows at `raw`. It is reported until what is returned goes away.
    #[must_use]
    pub fn session(self, raw: PathBuf) -> Option<Running> {
        if self.quiet {
            return None;
        }
        let terminal = std::io::stderr().is_terminal();
        let (done, wait) = channel::<()>();
        let started = Instant::now();
        let reporter = thread::Builder::new().name("progress".into()).spawn(move || {
            let every = if terminal { REDRAWN } else { REPORTED };
            while wait.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let bytes = std::fs::metadata(&raw).map_or(0, |m| m.len());
                let line = format!("session: {} s, {} kB of stream", started.elapsed().as_secs(), bytes / 1000);
                let mut out = std::io::stderr().lock();
                let _ = if terminal {
                    write!(out, "\r{line}\x1b[K").and_then(|()| out.flush())
                } else {
                    writeln!(out, "headwater-recorder: {line}")
                };
            }
            if terminal {
                let _ = write!(std::io::stderr(), "\r\x1b[K");
            }
        });
        // No thread to report with is no reason not to record.
        reporter.ok().map(|reporter| Running { done: Some(done), reporter: Some(reporter) })
    }
}

/// A session that is being reported.
#[derive(Debug)]
pub struct Running {
    done: Option<Sender<()>>,
    reporter: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(reporter) = self.reporter.take() {
            let _ = reporter.join();
        }
    }
}
