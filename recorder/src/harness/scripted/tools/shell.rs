//! Bash.

use std::fs;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::process;
use super::{Bench, Fault, Outcome, Performed, required};

/// How long a command may run where its call says nothing.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Output longer than this goes to a file, in bytes.
const LONGEST_OUTPUT: usize = 30_000;

/// How much of such output the model is shown, in characters.
const PREVIEW: usize = 2_000;

pub(super) fn bash(bench: &mut Bench, input: &Value) -> Performed {
    let text = required("Bash", input, "command")?;
    let mut command = Command::new("bash");
    command.arg("-c").arg(text).current_dir(&bench.workspace).stdin(Stdio::null());
    if input["run_in_background"].as_bool().unwrap_or(false) {
        return in_background(command);
    }
    let timeout = input["timeout"].as_u64().map_or(DEFAULT_TIMEOUT, Duration::from_millis);
    let ran = process::run(command, timeout, true).map_err(|error| Fault::Failed(format!("bash: {error}")))?;
    let output = String::from_utf8_lossy(&ran.stdout).trim_end_matches('\n').to_owned();
    match ran.status {
        None => Err(Fault::Failed(join(
            &format!("Exit code 143\nCommand timed out after {}s", timeout.as_secs_f64()),
            &output,
        ))),
        Some(status) if status.success() => succeeded(bench, &output),
        Some(status) => {
            let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            Err(Fault::Failed(join(&format!("Exit code {code}"), &output)))
        }
    }
}

fn join(first: &str, rest: &str) -> String {
    if rest.is_empty() { first.to_owned() } else { format!("{first}\n{rest}") }
}

fn succeeded(bench: &Bench, output: &str) -> Performed {
    let mut result = json!({
        "stdout": output, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
    });
    let told = match output {
        "" => "(Bash completed with no output)".into(),
        short if short.len() <= LONGEST_OUTPUT => short.to_owned(),
        long => {
            let path = bench.overflow.join(format!("{}.txt", super::super::lines::unique_hex(8)));
            fs::create_dir_all(&bench.overflow)
                .and_then(|()| fs::write(&path, long))
                .map_err(|error| super::failed(&path, &error))?;
            result["persistedOutputPath"] = path.display().to_string().into();
            result["persistedOutputSize"] = long.len().into();
            format!(
                "<persisted-output>\nOutput too large. Full output saved to: {}\n\nPreview:\n{}\n</persisted-output>",
                path.display(),
                long.chars().take(PREVIEW).collect::<String>()
            )
        }
    };
    let outcome = Outcome::text(told, result);
    Ok(Outcome { is_error: Some(false), ..outcome })
}

/// Starts a command that nobody waits for.
fn in_background(mut command: Command) -> Performed {
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let child = command.spawn().map_err(|error| Fault::Failed(format!("bash: {error}")))?;
    let task = format!("b{}", child.id());
    let outcome = Outcome::text(
        format!("Command running in background with ID: {task}."),
        json!({
            "stdout": "", "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
            "backgroundTaskId": task,
        }),
    );
    Ok(Outcome { is_error: Some(false), ..outcome })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::tests::bench;
    use super::*;

    fn run(input: Value) -> (Outcome, Duration) {
        let (_directory, mut bench) = bench(&[("a.md", "a")]);
        let start = Instant::now();
        (bench.perform("Bash", &input), start.elapsed())
    }

    #[test]
    fn a_command_gives_its_output_and_its_status() {
        let (outcome, _) = run(json!({"command": "ls; echo err >&2"}));
        assert_eq!((outcome.content.as_str().unwrap(), outcome.is_error), ("a.md\nerr", Some(false)));
        let (outcome, _) = run(json!({"command": "echo out; exit 3"}));
        assert_eq!((outcome.content.as_str().unwrap(), outcome.is_error), ("Exit code 3\nout", Some(true)));
        let (outcome, _) = run(json!({"command": "kill -9 $$"}));
        assert_eq!(outcome.content, "Exit code 137");
        let (outcome, _) = run(json!({"command": "true"}));
        assert_eq!(outcome.content, "(Bash completed with no output)");
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_what_it_started() {
        let (outcome, took) = run(json!({"command": "sleep 60 & sleep 60", "timeout": 100}));
        assert_eq!(outcome.content, "Exit code 143\nCommand timed out after 0.1s");
        assert!(took < Duration::from_secs(5));
    }

    #[test]
    fn a_process_left_behind_delays_nothing() {
        let (outcome, took) = run(json!({"command": "sleep 5 & echo done"}));
        assert_eq!(outcome.content, "done");
        assert!(took < Duration::from_secs(4));
        let (outcome, took) = run(json!({"command": "sleep 5", "run_in_background": true}));
        assert_eq!(outcome.is_error, Some(false));
        assert!(took < Duration::from_secs(4));
    }

    #[test]
    fn long_output_goes_to_a_file() {
        let (_directory, mut bench) = bench(&[]);
        let outcome = bench.perform("Bash", &json!({"command": "seq 1 20000"}));
        assert!(outcome.content.as_str().unwrap().starts_with("<persisted-output>"));
        let path = outcome.result["persistedOutputPath"].as_str().unwrap();
        assert!(fs::read_to_string(path).unwrap().ends_with("20000"));
    }
}
