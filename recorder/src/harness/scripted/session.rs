//! One session: the steps of the script, performed and told.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Surroundings;
use super::flags::Flags;
use super::hooks::{self, Hooks};
use super::lines::{self, Account, Ending, ProviderError, Scope, Tokens};
use super::permission::{self, Verdict};
use super::script::{Call, Misbehave, ProviderFailure, Script, Step};
use super::stream::{Stop, Stream};
use super::tools::{Bench, Outcome};

/// Tokens that one message is said to take.
const PER_MESSAGE: Tokens = Tokens { input: 1000, output: 100 };

/// A session under way.
pub struct Session<'a, W> {
    script: &'a Script,
    flags: &'a Flags,
    around: &'a Surroundings,
    stream: Stream<W>,
    hooks: Hooks,
    id: String,
    /// The requested model.
    model: String,
    started: Instant,
    messages: u64,
    /// Messages of the session's own conversation that called a tool.
    capped_turns: u64,
    /// User lines of the session's own conversation.
    replies: u64,
    agents: u64,
    denials: Vec<Value>,
    results: u64,
}

/// How a conversation ended: its last text, or what stopped it.
enum Said {
    Text(String),
    Stopped(Ending),
}

impl<'a, W: Write> Session<'a, W> {
    /// A session that has not begun.
    pub fn new(script: &'a Script, flags: &'a Flags, around: &'a Surroundings, out: W) -> Self {
        let requested = flags.model.clone().or_else(|| script.model.clone());
        Self {
            script,
            flags,
            around,
            stream: Stream::new(out, &script.misbehave),
            hooks: if flags.loads_project() { Hooks::of(&around.workspace) } else { Hooks::default() },
            id: lines::uuid(),
            model: requested.unwrap_or_else(|| "claude-haiku-4-5".into()),
            started: Instant::now(),
            messages: 0,
            capped_turns: 0,
            replies: 0,
            agents: 0,
            denials: Vec::new(),
            results: 0,
        }
    }

    /// Plays the session to its end and gives the exit status.
    ///
    /// `command` names a slash command of the harness that takes the prompt away from the model.
    ///
    /// # Errors
    /// Where the stream ends first.
    pub fn play(&mut self, command: Option<&str>) -> Result<u8, Stop> {
        self.open()?;
        let ending = match command {
            Some(name) => Ending::LocalCommand(name.to_owned()),
            None => {
                let bench = Bench::new(self.around.workspace.clone(), self.around.config.join("tool-results"));
                let script = self.script;
                match self.converse(&script.steps, &Scope::default(), bench)? {
                    Said::Text(text) => Ending::Answered(text),
                    Said::Stopped(ending) => ending,
                }
            }
        };
        if matches!(ending, Ending::Answered(_)) {
            self.run_hooks("Stop", None, &json!({}))?;
        }
        self.close(&ending)?;
        Ok(u8::from(!matches!(ending, Ending::Answered(_) | Ending::LocalCommand(_))))
    }

    /// The lines up to the init line, and what is to go wrong right after it.
    fn open(&mut self) -> Result<(), Stop> {
        self.run_hooks("SessionStart", None, &json!({"source": "startup"}))?;
        let Misbehave { no_init, init_set, init_add, before_init, flood_bytes, .. } = &self.script.misbehave;
        for line in before_init {
            match line {
                Value::String(text) => self.stream.write(format!("{text}\n").as_bytes())?,
                value => self.stream.line(value)?,
            }
        }
        if !no_init {
            let mut init = lines::init(&self.id, &self.model, self.flags, self.around);
            for (key, value) in init_set {
                init.set(key, value.clone());
            }
            for (key, values) in init_add {
                init.append(key, values.clone());
            }
            self.stream.line(&init)?;
        }
        let mut flooded = 0;
        while flooded < *flood_bytes {
            let noise = lines::system(&self.id, "status", [("status", "x".repeat(64 << 10).into())]);
            self.stream.line(&noise)?;
            flooded += 64 << 10;
        }
        Ok(())
    }

    fn close(&mut self, ending: &Ending) -> Result<(), Stop> {
        let Misbehave { no_result, extra_results, stay_ms, .. } = self.script.misbehave;
        let cost = match &self.script.cost_usd {
            Some(cost) => cost.clone(),
            None => self.list_price().map_err(std::io::Error::from)?,
        };
        let repeats = if no_result { 0 } else { 1 + extra_results };
        for _ in 0..repeats {
            let account = Account {
                session: &self.id,
                model: &self.model,
                turns: if matches!(ending, Ending::LocalCommand(_)) { 0 } else { 1 + self.replies },
                tokens: self.tokens(),
                usage: &self.script.usage,
                cost: &cost,
                denials: &self.denials,
                agents: self.agents,
                index: self.results,
                duration: millis(self.started.elapsed()),
            };
            let line = lines::result(ending, &account);
            self.stream.line(&line)?;
            self.results += 1;
        }
        std::thread::sleep(Duration::from_millis(stay_ms));
        Ok(())
    }

    fn tokens(&self) -> Tokens {
        Tokens { input: PER_MESSAGE.input * self.messages, output: PER_MESSAGE.output * self.messages }
    }

    /// What the tokens cost at 1 USD the million of input and 5 USD the million of output.
    fn list_price(&self) -> Result<Box<RawValue>, serde_json::Error> {
        let Tokens { input, output } = self.tokens();
        let micros = input + 5 * output;
        RawValue::from_string(format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000))
    }

    /// Plays one conversation: the session's own, or a sub-agent's.
    fn converse(&mut self, steps: &[Step], scope: &Scope, mut bench: Bench) -> Result<Said, Stop> {
        let mut last_text = String::new();
        // The message under way: its blocks share an identifier, and calls end it.
        let mut message: Option<Message> = None;
        for step in steps {
            match step {
                Step::Text { text, model } => {
                    last_text.clone_from(text);
                    let block = json!({"type": "text", "text": text});
                    self.block(scope, &mut message, model.as_deref(), block)?;
                }
                Step::Thinking { text, model } => {
                    let block = json!({"type": "thinking", "thinking": text, "signature": "c2NyaXB0ZWQ="});
                    self.block(scope, &mut message, model.as_deref(), block)?;
                }
                Step::Calls { calls, model, reverse_results } => {
                    last_text.clear();
                    let ids = self.announce(scope, &mut message, model.as_deref(), calls)?;
                    let mut pairs: Vec<_> = calls.iter().zip(&ids).collect();
                    if *reverse_results {
                        pairs.reverse();
                    }
                    for (call, id) in pairs {
                        self.answer(scope, call, id, &mut bench)?;
                    }
                    message = None;
                    if scope.depth == 0 {
                        self.capped_turns += 1;
                        if self.capped_turns == self.flags.max_turns {
                            return Ok(Said::Stopped(Ending::TurnCap(self.flags.max_turns)));
                        }
                    }
                }
                Step::Raw(bytes) => self.stream.write(bytes)?,
                Step::Sleep(milliseconds) => std::thread::sleep(Duration::from_millis(*milliseconds)),
                Step::Retry(status) => self.retry(&ProviderError::of(*status), 1)?,
                Step::Failure(failure) => {
                    let error = self.provider_failure(scope, failure)?;
                    if failure.ends {
                        return Ok(Said::Stopped(Ending::ProviderError(error)));
                    }
                }
            }
        }
        if message.is_none() {
            // The message that answers the last results, with nothing in it.
            self.messages += 1;
        }
        Ok(Said::Text(last_text))
    }

    /// Tells one block of the message under way, which begins with it where there is none.
    fn block(
        &mut self,
        scope: &Scope,
        message: &mut Option<Message>,
        model: Option<&str>,
        block: Value,
    ) -> Result<(), Stop> {
        let message = match message {
            Some(message) => message,
            None => {
                self.messages += 1;
                message.insert(Message { id: format!("msg_scripted{:02}", self.messages), blocks: 0 })
            }
        };
        message.blocks += 1;
        let is_call = block["type"] == "tool_use";
        let shown = match scope.depth {
            0 => true,
            // Without the option the real harness shows the calls of the first level only, and no text below it.
            1 => is_call || self.flags.forward_subagents,
            _ => self.flags.forward_subagents,
        };
        if !shown {
            return Ok(());
        }
        let served = model.or(self.script.model.as_deref()).unwrap_or(&self.model);
        let line = lines::assistant(&self.id, scope, &message.id, served, block);
        self.stream.line(&line)
    }

    /// Tells the calls of a message and gives their identifiers.
    fn announce(
        &mut self,
        scope: &Scope,
        message: &mut Option<Message>,
        model: Option<&str>,
        calls: &[Call],
    ) -> Result<Vec<String>, Stop> {
        let mut ids = Vec::with_capacity(calls.len());
        for call in calls {
            let (number, blocks) = match message {
                Some(Message { blocks, .. }) => (self.messages, *blocks),
                None => (self.messages + 1, 0),
            };
            let id = format!("toolu_scripted{number:02}_{blocks}");
            let mut input = call.input.clone();
            if call.tool == "Edit" && input.get("replace_all").is_none() {
                input["replace_all"] = false.into();
            }
            let block = json!({"type": "tool_use", "id": id, "name": call.tool, "input": input});
            self.block(scope, message, model, block)?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Performs one call and tells its result.
    fn answer(&mut self, scope: &Scope, call: &Call, id: &str, bench: &mut Bench) -> Result<(), Stop> {
        let (outcome, decision) = match permission::decide(self.flags, &self.around.workspace, &call.tool, &call.input)
        {
            Verdict::NoSuchTool(why) => {
                let why = if why.is_empty() { why } else { format!(". {why}") };
                let message = format!("Error: No such tool available: {}{why}", call.tool);
                (Outcome::invalid(&message), Value::Null)
            }
            verdict => self.try_call(scope, call, id, bench, verdict)?,
        };
        if self.shows_results(scope) {
            let line = lines::tool_result(&self.id, scope, id, &outcome, decision);
            self.stream.line(&line)?;
            if let Some(text) = &outcome.afterwards {
                self.stream.line(&lines::user_text(&self.id, scope, text))?;
            }
        }
        if scope.depth == 0 {
            self.replies += 1 + u64::from(outcome.afterwards.is_some());
        }
        Ok(())
    }

    /// A call of a tool that the session has: its hooks, then what the permission mode decided.
    fn try_call(
        &mut self,
        scope: &Scope,
        call: &Call,
        id: &str,
        bench: &mut Bench,
        verdict: Verdict,
    ) -> Result<(Outcome, Value), Stop> {
        let about = json!({"tool_name": call.tool, "tool_input": call.input, "tool_use_id": id});
        if let Some(why) = self.run_hooks("PreToolUse", Some(&call.tool), &about)? {
            self.denials.push(denial(call, id));
            return Ok((Outcome::failed(&why), rejected("hook", "hook")));
        }
        if let Verdict::Denied(why) = verdict {
            self.deny(scope, call, id, &why)?;
            return Ok((Outcome::failed(&why), rejected("config", "mode")));
        }
        let outcome = match call.tool.as_str() {
            "Agent" | "Task" => self.sub_agent(scope, call, id, bench)?,
            tool => bench.perform(tool, &call.input),
        };
        if outcome.is_error != Some(true) {
            self.run_hooks("PostToolUse", Some(&call.tool), &about)?;
        }
        let accepted = json!({
            "permission_decision": {"decision": "accept", "source": "config", "reason_type": "rule"},
        });
        let decision = if outcome.permitted { accepted } else { Value::Null };
        Ok((outcome, decision))
    }

    /// Runs the hooks of an event. A `PreToolUse` hook that ends with 2 stops the call, and why is returned.
    fn run_hooks(&mut self, event: &str, tool: Option<&str>, about: &Value) -> Result<Option<String>, Stop> {
        let commands: Vec<String> = self.hooks.commands(event, tool).into_iter().map(str::to_owned).collect();
        let name = match (event, tool) {
            ("SessionStart", _) => "SessionStart:startup".to_owned(),
            (_, Some(tool)) => format!("{event}:{tool}"),
            (_, None) => event.to_owned(),
        };
        let is_told = event == "SessionStart" || self.flags.include_hooks;
        for command in commands {
            let hook: [(&str, Value); 3] =
                [("hook_id", lines::uuid().into()), ("hook_name", name.clone().into()), ("hook_event", event.into())];
            if is_told {
                self.stream.line(&lines::system(&self.id, "hook_started", hook.clone()))?;
            }
            let mut input = json!({
                "session_id": self.id, "cwd": self.around.workspace, "hook_event_name": event,
                "permission_mode": self.flags.permission_mode,
            });
            if let (Some(input), Some(about)) = (input.as_object_mut(), about.as_object()) {
                input.extend(about.clone());
            }
            let ran = hooks::run(&command, &self.around.workspace, &input)?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (stdout, stderr) = (text(&ran.stdout), text(&ran.stderr));
            let code = ran.status.and_then(|status| status.code()).unwrap_or(1);
            if is_told {
                let mut line = lines::system(&self.id, "hook_response", hook);
                line.set_all([
                    ("output", format!("{stdout}{stderr}").into()),
                    ("stdout", stdout.into()),
                    ("stderr", stderr.clone().into()),
                    ("exit_code", code.into()),
                    ("outcome", if code == 0 { "success" } else { "error" }.into()),
                ]);
                self.stream.line(&line)?;
            }
            if event == "PreToolUse" && code == 2 {
                return Ok(Some(format!("{name} hook error: [{command}]: {stderr}")));
            }
        }
        Ok(None)
    }

    fn shows_results(&self, scope: &Scope) -> bool {
        scope.depth < 2 || self.flags.forward_subagents
    }

    fn deny(&mut self, scope: &Scope, call: &Call, id: &str, why: &str) -> Result<(), Stop> {
        self.denials.push(denial(call, id));
        let mut line = lines::system(
            &self.id,
            "permission_denied",
            [
                ("tool_name", call.tool.clone().into()),
                ("tool_use_id", id.into()),
                ("decision_reason_type", "mode".into()),
                ("message", why.into()),
            ],
        );
        if scope.depth > 0 {
            line.set("agent_id", scope.agent.clone());
        }
        self.stream.line(&line)
    }

    /// Runs a sub-agent to its end, as the harness does where background tasks are off.
    fn sub_agent(&mut self, parent: &Scope, call: &Call, id: &str, bench: &Bench) -> Result<Outcome, Stop> {
        let text = |key: &str| call.input[key].as_str().map(str::to_owned);
        let Some(prompt) = text("prompt") else {
            return Ok(Outcome::invalid("InputValidationError: the required parameter `prompt` is missing"));
        };
        self.agents += 1;
        let scope = Scope {
            depth: parent.depth + 1,
            parent: Some(id.to_owned()),
            agent: format!("a{}", lines::unique_hex(16)),
            subagent_type: text("subagent_type").unwrap_or_else(|| "general-purpose".into()),
            description: text("description").unwrap_or_default(),
        };
        let mut started = self.task_line("task_started", &scope, id);
        started.set_all([
            ("description", scope.description.clone().into()),
            ("subagent_type", scope.subagent_type.clone().into()),
            ("is_backgrounded", false.into()),
            ("spawn_depth", scope.depth.into()),
            ("task_type", "local_agent".into()),
            ("prompt", prompt.clone().into()),
        ]);
        if parent.depth > 0 {
            started.set("parent_task_id", parent.agent.clone());
        }
        self.stream.line(&started)?;
        if self.shows_results(&scope) {
            self.stream.line(&lines::user_text(&self.id, &scope, &prompt))?;
        }
        let said = match self.converse(&call.agent, &scope, bench.for_agent())? {
            Said::Text(text) => text,
            Said::Stopped(Ending::ProviderError(error)) => error.text,
            Said::Stopped(_) => String::new(),
        };
        let mut updated = self.task_line("task_updated", &scope, id);
        updated.set("patch", json!({"status": "completed"}));
        self.stream.line(&updated)?;
        let mut notified = self.task_line("task_notification", &scope, id);
        notified.set_all([("status", "completed".into()), ("summary", said.clone().into())]);
        self.stream.line(&notified)?;
        Ok(self.hand_back(&scope, call, &prompt, &said))
    }

    fn task_line(&self, subtype: &str, scope: &Scope, id: &str) -> lines::Object {
        let members = [
            ("task_id", scope.agent.clone().into()),
            ("run_id", format!("run-{}", scope.agent).into()),
            ("tool_use_id", id.into()),
        ];
        lines::system(&self.id, subtype, members)
    }

    fn hand_back(&self, scope: &Scope, call: &Call, prompt: &str, said: &str) -> Outcome {
        let used: BTreeSet<&str> = tools_of(&call.agent).collect();
        let content = json!([{"type": "text", "text": said}]);
        let result = json!({
            "status": "completed", "prompt": prompt, "agentId": scope.agent, "agentType": scope.subagent_type,
            "toolsUsed": used, "content": content, "resolvedModel": self.model, "totalDurationMs": 1,
            "totalTokens": PER_MESSAGE.input, "totalToolUseCount": tools_of(&call.agent).count(),
            "canContinueAgent": true,
        });
        Outcome { content, is_error: None, result, permitted: true, afterwards: None }
    }

    fn retry(&mut self, error: &ProviderError, times: u32) -> Result<(), Stop> {
        for attempt in 1..=times {
            let members = [
                ("attempt", attempt.into()),
                ("max_retries", 10.into()),
                ("retry_delay_ms", 500.into()),
                ("error_status", error.status.into()),
                ("error", error.retry_name.into()),
            ];
            self.stream.line(&lines::system(&self.id, "api_retry", members))?;
        }
        Ok(())
    }

    fn provider_failure(&mut self, scope: &Scope, failure: &ProviderFailure) -> Result<ProviderError, Stop> {
        let error = ProviderError::of(failure.status);
        self.retry(&error, failure.retries)?;
        if self.shows_results(scope) {
            self.stream.line(&lines::synthetic(&self.id, scope, &error))?;
        }
        Ok(error)
    }
}

/// A message under way.
struct Message {
    id: String,
    blocks: u64,
}

fn denial(call: &Call, id: &str) -> Value {
    json!({"tool_name": call.tool, "tool_use_id": id, "tool_input": call.input})
}

fn rejected(source: &str, reason: &str) -> Value {
    json!({
        "non_execution_kind": "permission-rule",
        "permission_decision": {"decision": "reject", "source": source, "reason_type": reason},
    })
}

/// The tools that the steps of a sub-agent call.
fn tools_of(steps: &[Step]) -> impl Iterator<Item = &str> {
    let calls = steps.iter().filter_map(|step| match step {
        Step::Calls { calls, .. } => Some(calls),
        _ => None,
    });
    calls.flatten().map(|call| call.tool.as_str())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
