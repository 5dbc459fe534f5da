//! How the session ended: exit status, last result line and synthetic lines read together, because none of them says
//! it alone. A result line calls a provider's failure a `success`, an interrupted harness exits 0, and a failure in the
//! middle can leave both clean.

use super::log::{Malformed, ResultLine, SessionLog, Synthetic};
use crate::status::{Failure, Status};

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// The model said its last word.
    #[error("the session ended by itself")]
    Completed,
    /// It used up its turns.
    #[error("the turn cap stopped the session")]
    TurnCap,
    /// It used up its money.
    #[error("the cost cap stopped the session")]
    CostCap,
    /// A signal or an interruption stopped it.
    #[error("the session was stopped from outside: {how}")]
    Aborted {
        /// By what.
        how: String,
    },
    /// The provider failed, at the end or in between.
    #[error("the provider failed: {what}")]
    ProviderFailed {
        /// Its status and name for it.
        what: String,
    },
    /// The provider's safeguards ended a message.
    #[error("the provider refused to go on")]
    Refused,
    /// The log is not all that the harness wrote, or not only that.
    #[error("the log is torn or forged: {why}")]
    Torn {
        /// Where that shows.
        why: String,
    },
    /// The harness itself failed.
    #[error("the harness failed: {what}")]
    HarnessFailed {
        /// Its exit status, where it had one.
        exit: Option<i32>,
        /// What it says.
        what: String,
    },
}

impl Ending {
    /// Whether a session that ended like this is one that can be recorded.
    #[must_use]
    pub const fn recordable(&self) -> bool {
        matches!(self, Self::Completed | Self::TurnCap)
    }

    /// The exit status of the recorder.
    #[must_use]
    pub const fn status(&self) -> Status {
        match self {
            Self::Completed | Self::TurnCap => Status::Done,
            Self::CostCap => Status::Limit,
            Self::Torn { .. } => Status::ChannelAtRisk,
            Self::Aborted { .. } | Self::ProviderFailed { .. } | Self::Refused | Self::HarnessFailed { .. } => {
                Status::HarnessFailed
            }
        }
    }

    /// The failure that it is, after a session that has spent, or none where the session can be recorded.
    #[must_use]
    pub fn failure(&self) -> Option<Failure> {
        let remedy = match self {
            Self::Completed | Self::TurnCap => return None,
            Self::CostCap => "raise the cost cap of the session, or give the probe a smaller task",
            Self::Aborted { .. } => "record the session again, and let it end by itself",
            Self::ProviderFailed { .. } => "look at the provider's status and the credential, then record it again",
            Self::Refused => "read the task of the probe for what the provider's safeguards may stop at",
            Self::Torn { .. } => "keep the raw log, find what wrote to the channel or cut it, and record it again",
            Self::HarnessFailed { .. } => "read what the harness wrote to its standard error",
        };
        Some(Failure::new(self.status(), self.to_string()).remedy(remedy).after_spending())
    }
}

/// How the session of `log` ended. `exit` is the exit status of the harness and `signal` the number of the signal that
/// killed it; where both are `None`, nothing is known of the process and the log alone is read.
///
/// In this order: a log that cannot be believed is [`Ending::Torn`], whatever else it says. A log without a result line
/// is that of a harness that was stopped or failed; where the harness says that all went well, its end is missing. Of
/// what is left the last result line decides, but a session in which the harness ever spoke in the model's place did
/// not complete: the provider failed in it, and what the model did after that is no observation of the model.
#[must_use]
pub fn ending(log: &SessionLog, exit: Option<i32>, signal: Option<i32>) -> Ending {
    let stopped = stopped_by(exit, signal);
    if let Some(why) = log.could_hide_a_call() {
        // A harness that is killed while it writes leaves half a line. That is no forgery.
        let cut = log.malformed.count == 1
            && log.contradictions.count == 0
            && matches!(log.malformed.first[..], [Malformed { unterminated: true, .. }]);
        return match stopped {
            Some(how) if cut => Ending::Aborted { how },
            _ => Ending::Torn { why },
        };
    }
    if let Some(how) = stopped {
        return Ending::Aborted { how };
    }
    let Some(result) = &log.result else {
        return match exit {
            Some(0) | None => Ending::Torn {
                why: "it has no result line: the harness was interrupted while it waited for the provider, or the end \
                      of the log is lost"
                    .into(),
            },
            Some(code) => failed(exit, format!("it exited {code} without a result line")),
        };
    };
    if log.talk_after_result > 0 {
        return Ending::Torn { why: format!("messages follow the last result line, {}", result.line) };
    }
    let ending = by_lines(log, result);
    match (&ending, exit) {
        (Ending::Completed, Some(code)) if code != 0 => failed(exit, format!("it exited {code} after a clean result")),
        (Ending::TurnCap, Some(code)) if code != 1 => failed(exit, format!("it exited {code} after its turn cap")),
        _ => ending,
    }
}

/// What the lines say by themselves.
fn by_lines(log: &SessionLog, result: &ResultLine) -> Ending {
    let subtype = result.subtype.as_deref().unwrap_or("no subtype");
    let reason = result.terminal_reason.as_deref();
    if subtype == "error_max_budget_usd" {
        return Ending::CostCap;
    }
    if let Some(reason) = reason.filter(|reason| reason.starts_with("aborted")) {
        return Ending::Aborted { how: format!("the result line states {reason}") };
    }
    if result.stop_reason.as_deref() == Some("refusal") || log.synthetic.first.iter().any(|line| line.refusal) {
        return Ending::Refused;
    }
    if log.synthetic.count > 0 || reason == Some("api_error") || result.api_error_status.is_some() {
        return Ending::ProviderFailed { what: provider_failure(log.synthetic.first.first(), result) };
    }
    match (subtype, reason, result.is_error) {
        ("success", None | Some("completed"), Some(false)) => Ending::Completed,
        ("error_max_turns", None | Some("max_turns"), Some(true)) => Ending::TurnCap,
        _ => failed(None, format!("its result line states {subtype} and {}", reason.unwrap_or("no terminal reason"))),
    }
}

fn provider_failure(line: Option<&Synthetic>, result: &ResultLine) -> String {
    let status = line.and_then(|line| line.status).or(result.api_error_status);
    let status = status.map_or_else(|| "no status".to_owned(), |status| format!("status {status}"));
    let name = line.and_then(|line| line.error.as_deref()).unwrap_or("no name for the failure");
    format!("{status}, {name}")
}

fn failed(exit: Option<i32>, what: String) -> Ending {
    Ending::HarnessFailed { exit, what }
}

/// The signal that stopped the harness, which a process also states as 128 and its number.
fn stopped_by(exit: Option<i32>, signal: Option<i32>) -> Option<String> {
    let number = signal.or_else(|| exit.filter(|code| (129..=192).contains(code)).map(|code| code - 128))?;
    Some(format!("signal {number}"))
}

#[cfg(test)]
mod tests {
    use super::super::init::{self, Expected, Leak, Names};
    use super::super::stream;
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    fn logs() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/harness-logs")
    }

    fn log(text: &str) -> SessionLog {
        stream::read(text.as_bytes()).unwrap()
    }

    /// Its name without what it carries.
    fn name(ending: &Ending) -> &'static str {
        match ending {
            Ending::Completed => "completed",
            Ending::TurnCap => "turn cap",
            Ending::CostCap => "cost cap",
            Ending::Aborted { .. } => "aborted",
            Ending::ProviderFailed { .. } => "provider failed",
            Ending::Refused => "refused",
            Ending::Torn { .. } => "torn",
            Ending::HarnessFailed { .. } => "harness failed",
        }
    }

    /// Every log: the exit status of the harness, how the session ended, and whether the init line is accepted.
    const LOGS: [(&str, i32, &str, bool); 35] = [
        ("01_plain_answer", 0, "completed", true),
        ("02_multi_tool_read", 0, "completed", true),
        ("03_edits", 0, "completed", true),
        ("04_bash", 0, "completed", true),
        ("06_subagent", 0, "completed", true),
        ("06b_subagent_explore_fwd", 0, "completed", true),
        ("06d_nested_subagent", 0, "completed", true),
        ("06e_nested_subagent_forward", 0, "completed", true),
        ("07_thinking_yaml_unicode", 0, "completed", true),
        ("08_max_turns", 1, "turn cap", true),
        ("09_denied", 0, "completed", true),
        ("09b_disallowed", 0, "completed", true),
        ("10_provider_529", 1, "provider failed", true),
        ("10b_provider_401", 1, "provider failed", true),
        ("10c_refusal", 1, "refused", true),
        ("10e_ratelimit_429", 1, "provider failed", true),
        ("11_truncated_last_line", 0, "torn", true),
        ("11b_truncated_midway", 0, "torn", true),
        ("12_mcp_workspace", 0, "completed", true),
        ("13_skill", 0, "completed", true),
        ("13b_skill_slash_prompt", 0, "completed", true),
        ("14_leaked_host_config", 0, "completed", false),
        ("14b_leaked_user_skill_dontask", 0, "completed", false),
        ("14c_leaked_user_plugin_dontask", 0, "completed", false),
        ("14f_leaked_user_hook", 0, "completed", false),
        ("15_hooks", 0, "completed", true),
        ("15b_hooks_default", 0, "completed", true),
        ("16_sigint_tool", 0, "aborted", true),
        ("17_sigterm_no_result", 143, "aborted", true),
        ("18_tasks_todo", 0, "completed", true),
        ("22_websearch_side_call", 0, "completed", true),
        ("23_at_mention_hidden_read", 0, "completed", true),
        ("24_api_retry_recovered", 0, "completed", true),
        ("25_bare", 0, "completed", true),
        ("26_recommended_clean", 0, "completed", true),
    ];

    /// The exit status that the README of the logs states, by log.
    fn stated_exits() -> BTreeMap<String, Option<i32>> {
        let readme = std::fs::read_to_string(logs().join("README.md")).unwrap();
        let line = |line: &str| {
            let name = line.strip_prefix("- `")?.split_once(".jsonl`")?.0.to_owned();
            let after = line.rsplit_once("rc ").map(|(_, after)| after);
            let digits = after.and_then(|after| after.split(|c: char| !c.is_ascii_digit()).next());
            Some((name, digits.and_then(|digits| digits.parse().ok())))
        };
        readme.lines().filter_map(line).collect()
    }

    #[test]
    fn every_log_of_the_harness_has_its_stated_outcome() {
        let present: BTreeSet<_> = std::fs::read_dir(logs())
            .unwrap()
            .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".jsonl")?.to_owned()))
            .collect();
        assert_eq!(present, LOGS.iter().map(|(name, ..)| (*name).to_owned()).collect());
        let exits = stated_exits();
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        for (file, exit, outcome, accepted) in LOGS {
            // The two that were cut by hand have no status of their own.
            assert!(exits[file].is_none_or(|stated| stated == exit) && exits[file].is_some() != (outcome == "torn"));
            let log = stream::read(std::fs::read(logs().join(format!("{file}.jsonl"))).unwrap().as_slice()).unwrap();
            let ended = ending(&log, Some(exit), None);
            assert_eq!(name(&ended), outcome, "{file}: {ended}");
            assert_eq!(ended.recordable(), matches!(outcome, "completed" | "turn cap"), "{file}");
            let expected = Expected {
                config_dir: "/cfg".into(),
                workspace: "/ws".into(),
                mcp_servers: set(&["glossary"]),
                host: Names { skills: set(&["usk"]), agents: set(&["uag"]), commands: BTreeSet::new() },
                declared: Names { skills: set(&["wsk"]), ..Names::default() },
                session_start_hook: file.starts_with("15"),
            };
            let checked = init::check(&log, &expected);
            assert_eq!(checked.is_ok(), accepted, "{file}: {checked:?}");
        }
    }

    #[test]
    fn a_leaked_log_shows_each_of_its_leaks() {
        let log = stream::read(std::fs::read(logs().join("14_leaked_host_config.jsonl")).unwrap().as_slice()).unwrap();
        let expected = Expected { config_dir: "/cfg".into(), workspace: "/ws".into(), ..Expected::default() };
        let leaks = init::check(&log, &expected).unwrap_err();
        assert!(leaks.contains(&Leak::Hook(2)));
        assert!(leaks.contains(&Leak::PermissionMode("bypassPermissions".into())));
        assert!(leaks.contains(&Leak::Plugin { name: "hostplug".into(), path: "/home/u/pl".into() }));
        assert!(leaks.contains(&Leak::McpServer("umcp".into())));
        assert!(leaks.contains(&Leak::Namespaced { kind: init::Kind::Skill, name: "hostplug:psk".into() }));
        assert!(leaks.contains(&Leak::OutputStyle("Explanatory".into())));
    }

    fn result(members: &str) -> String {
        format!("{{\"type\":\"result\"{members}}}\n")
    }

    const CLEAN: &str = r#","subtype":"success","is_error":false,"terminal_reason":"completed","result":"yes""#;
    const SYNTHETIC: &str = concat!(
        r#"{"type":"assistant","message":{"model":"<synthetic>","content":[]},"is_api_error_message":true,"#,
        r#""error":"server_error","api_error_status":500}"#,
        "\n"
    );

    #[test]
    fn a_provider_failure_in_the_middle_is_never_the_behaviour_of_a_session() {
        let ended = ending(&log(&format!("{SYNTHETIC}{}", result(CLEAN))), Some(0), None);
        assert_eq!(ended, Ending::ProviderFailed { what: "status 500, server_error".into() });
        let capped = result(r#","subtype":"error_max_turns","is_error":true,"terminal_reason":"max_turns""#);
        assert_eq!(name(&ending(&log(&format!("{SYNTHETIC}{capped}")), Some(1), None)), "provider failed");
        assert_eq!(ending(&log(&capped), Some(1), None), Ending::TurnCap);
    }

    #[test]
    fn a_success_that_the_exit_status_or_another_member_denies_is_none() {
        for (members, exit, outcome) in [
            (CLEAN, Some(0), "completed"),
            (CLEAN, None, "completed"),
            (CLEAN, Some(1), "harness failed"),
            (r#","subtype":"success","is_error":true,"terminal_reason":"completed""#, Some(1), "harness failed"),
            (r#","subtype":"success","is_error":true,"terminal_reason":"api_error""#, Some(1), "provider failed"),
            (r#","subtype":"success","is_error":false,"api_error_status":529"#, Some(0), "provider failed"),
            (r#","subtype":"success","is_error":false,"stop_reason":"refusal""#, Some(0), "refused"),
            (r#","subtype":"success","is_error":false,"terminal_reason":"aborted_streaming""#, Some(0), "aborted"),
            (r#","subtype":"success","is_error":false,"terminal_reason":"max_turns""#, Some(0), "harness failed"),
            (r#","subtype":"success""#, Some(0), "harness failed"),
            (r#","is_error":false"#, Some(0), "harness failed"),
            (r#","subtype":"error_max_turns","is_error":true"#, Some(0), "harness failed"),
            (r#","subtype":"error_max_budget_usd","is_error":true"#, Some(1), "cost cap"),
            (r#","subtype":"error_during_execution","is_error":true"#, Some(1), "harness failed"),
        ] {
            let ended = ending(&log(&result(members)), exit, None);
            assert_eq!(name(&ended), outcome, "{members}: {ended}");
        }
    }

    #[test]
    fn a_log_without_a_result_line_is_torn_where_the_harness_says_that_all_went_well() {
        let text = r#"{"type":"system","subtype":"init"}"#;
        for (exit, signal, outcome) in [
            (Some(0), None, "torn"),
            (None, None, "torn"),
            (Some(1), None, "harness failed"),
            (Some(143), None, "aborted"),
            (Some(129), None, "aborted"),
            (Some(255), None, "harness failed"),
            (None, Some(9), "aborted"),
        ] {
            assert_eq!(name(&ending(&log(text), exit, signal)), outcome, "{exit:?} {signal:?}");
        }
    }

    #[test]
    fn half_a_line_of_a_harness_that_was_killed_is_no_forgery_and_any_other_bad_line_may_be() {
        let cut = "{\"type\":\"system\"}\n{\"type\":\"ass";
        assert_eq!(name(&ending(&log(cut), None, Some(9))), "aborted");
        assert_eq!(name(&ending(&log(cut), Some(1), None)), "torn");
        assert_eq!(name(&ending(&log(&format!("{cut}\n")), None, Some(9))), "torn");
        assert_eq!(name(&ending(&log(&format!("x\n{cut}")), None, Some(9))), "torn");
        assert_eq!(name(&ending(&log(&format!("x\n{}", result(CLEAN))), Some(0), None)), "torn");
    }

    #[test]
    fn a_message_after_the_last_result_line_is_not_all_of_the_log() {
        let message = "{\"type\":\"assistant\",\"message\":{\"model\":\"m\",\"content\":[]}}\n";
        assert_eq!(name(&ending(&log(&format!("{}{message}", result(CLEAN))), Some(0), None)), "torn");
        let twice = format!("{}{message}{}", result(CLEAN), result(CLEAN));
        assert_eq!(name(&ending(&log(&twice), Some(0), None)), "completed");
    }

    #[test]
    fn a_session_that_cannot_be_recorded_has_a_status_a_cause_and_a_remedy() {
        let what = || "x".to_owned();
        for (ending, status) in [
            (Ending::CostCap, Status::Limit),
            (Ending::Aborted { how: what() }, Status::HarnessFailed),
            (Ending::ProviderFailed { what: what() }, Status::HarnessFailed),
            (Ending::Refused, Status::HarnessFailed),
            (Ending::Torn { why: what() }, Status::ChannelAtRisk),
            (Ending::HarnessFailed { exit: None, what: what() }, Status::HarnessFailed),
        ] {
            let failure = ending.failure().unwrap();
            assert_eq!((failure.status, failure.spent, failure.remedy.is_some()), (status, true, true));
        }
        assert!(Ending::Completed.failure().is_none() && Ending::TurnCap.failure().is_none());
    }
}
