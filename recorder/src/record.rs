//! One session as a list of steps, in the order in which they happen.
//!
//! Everything before [`drive`] spends nothing. Everything after it keeps the raw log and the
//! workspace, whatever goes wrong, and says that the session has spent.

use crate::confine::bwrap::{self, Bwrap};
use crate::confine::cancel::Cancel;
use crate::confine::explain::Explanation;
use crate::confine::proof::{self, Proof};
use crate::confine::view::{CONFIGURATION, HARNESS_DIRECTORY, Kind, Request, View};
use crate::document::{self, Front};
use crate::engine::Engine;
use crate::files::{self, Draft, Scratch};
use crate::harness::choice::Harness;
use crate::harness::command::{self, Surroundings};
use crate::harness::configuration;
use crate::harness::credentials::{self, Credentials};
use crate::harness::drive::{self, Ended, Limits, RawLog};
use crate::harness::prompt;
use crate::hook;
use crate::options::Record;
use crate::progress::Progress;
use crate::statements::{Facts, statements};
use crate::status::{Failure, Outcome, Status};
use crate::transform::ending::{Ending, ending};
use crate::transform::event::{self, Trees};
use crate::transform::init::{self, Expected};
use crate::transform::log::SessionLog;
use crate::transform::provider::{Provider, provider};
use crate::transform::{answer::answer, stream};
use crate::workspace::build::{self, Built, Order};
use crate::workspace::findings::{Checked, Checker};
use crate::workspace::guard;
use crate::workspace::manifest::Manifest;
use crate::workspace::names::{self, Declared};
use crate::workspace::produced::{self, Artifacts, Sources};
use crate::workspace::tree::covers;
use headwater_contract::digest::Digest;
use headwater_contract::instant;
use headwater_contract::keys::Arm;
use headwater_contract::plan::{Delta, Member, Plan, PlannedProbe};
use headwater_contract::transcript::{Event, RunIdentity};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;

/// The model that a session without `--model` is recorded as having asked for, where its own first line names none.
const UNNAMED_MODEL: &str = "default";

/// What a recording left.
#[derive(Debug)]
pub struct Recorded {
    /// The transcript.
    pub transcript: PathBuf,
    /// The raw log.
    pub raw: PathBuf,
    /// How the session ended.
    pub ending: Ending,
    /// Calls.
    pub calls: usize,
    /// The realized cost, in whole cents.
    pub cost_cents: u64,
}

/// A session whose transcript is written and confirmed, and not yet in place.
struct Finished {
    ending: Ending,
    calls: usize,
    cost_cents: u64,
}

/// What came of the options.
#[derive(Debug)]
pub enum Done {
    /// A recording.
    Recorded(Recorded),
    /// How one would be confined. Nothing was started.
    Explained(Box<Explanation>),
}

/// Records one session, or explains how it would be confined, where the options ask for that.
///
/// # Errors
/// Each step's own, as `docs/statuses.md` lists them.
pub fn record(options: &Record, cancel: &Cancel, progress: Progress) -> Outcome<Done> {
    let prepared = match prepare(options, cancel, progress)? {
        Ready::Prepared(prepared) => *prepared,
        Ready::Explained(explanation) => return Ok(Done::Explained(explanation)),
    };
    cancel.check()?;
    let finished = run(&prepared, cancel, progress)
        .and_then(|ended| finish(&prepared, &ended, progress).map_err(Failure::after_spending));
    match finished {
        Ok(finished) => {
            let transcript = prepared.out.put().map_err(Failure::after_spending)?;
            let Finished { ending, calls, cost_cents } = finished;
            Ok(Done::Recorded(Recorded { transcript, raw: prepared.raw, ending, calls, cost_cents }))
        }
        // Whatever goes wrong after a session has spent, what it left is kept.
        Err(failure) if failure.spent => Err(keep(prepared, failure, cancel.requested())),
        Err(failure) => Err(failure),
    }
}

/// What the steps before a session lead to.
enum Ready<'a> {
    /// A session.
    Prepared(Box<Prepared<'a>>),
    /// In place of one, how it would be confined.
    Explained(Box<Explanation>),
}

/// A session that is ready to start: every guard has passed and nothing is spent.
struct Prepared<'a> {
    options: &'a Record,
    corpus: PathBuf,
    engine: Engine,
    harness: Harness,
    harness_digest: Digest,
    plan: Plan,
    probe: PlannedProbe,
    front: Front,
    place: Place,
    baseline: Manifest,
    expected: Expected,
    settings: BTreeSet<String>,
    confined: bwrap::Plan,
    proof: Proof,
    credentials: Option<Credentials>,
    logs: Scratch,
    limits: Limits,
    max_turns: Option<u64>,
    out: Draft,
    raw: PathBuf,
    at: OffsetDateTime,
}

/// The tree a session works in.
enum Place {
    /// One that the caller gave. It is the caller's, before and after.
    Given(PathBuf),
    /// One that was built for this session, in a directory that goes away with it.
    Built {
        /// The directory.
        directory: Scratch,
        /// The tree in it, and what was done to it.
        built: Box<Built>,
        /// What the arm changed.
        delta: Delta,
    },
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::Given(path) => path,
            Self::Built { built, .. } => &built.root,
        }
    }

    fn built(&self) -> Option<(&Built, &Delta)> {
        match self {
            Self::Given(_) => None,
            Self::Built { built, delta, .. } => Some((built, delta)),
        }
    }
}

/// Everything up to the start of the harness, in the order of `docs/architecture.md`.
fn prepare<'a>(options: &'a Record, cancel: &Cancel, progress: Progress) -> Outcome<Ready<'a>> {
    let at = OffsetDateTime::now_utc();
    bwrap::refuse_root()?;
    let limits = limits(options);
    let corpus = corpus(&options.corpus)?;

    // 1. What a recording needs of this host.
    let search = std::env::var_os("PATH");
    let engine = Engine::find(options.engine.as_deref())?;
    let harness = Harness::find(options.harness.as_deref().map(OsStr::new), search.as_deref())?;
    let credentials = credentials(options, &harness, limits.wall)?;

    // 2. The plan, while bwrap is asked for its version.
    progress.step("plan");
    let (bwrap, plan) = rayon::join(
        || Bwrap::find(options.bwrap.as_deref(), search.as_deref()),
        || engine.plan(&corpus, options.tier, &options.seed),
    );
    let (bwrap, plan) = (bwrap?, plan?);
    let probe = selected(&plan, &options.probe, Some(options.arm))?.clone();
    let form = plan.transcript.as_ref().ok_or_else(|| {
        Failure::new(Status::PlanFailed, "the taxonomy of the corpus has no shelf of the kind `probe_transcript`")
            .remedy("declare the kind and its shelf in .headwater/taxonomy.yml, then run: headwater lock")
    })?;
    let stem = options.out.file_stem().map(OsStr::to_string_lossy).unwrap_or_default();
    let named = (probe.id.as_str(), options.session.as_str());
    let front = Front::new(form, &plan.identifiers, &stem, named, (options.tier, options.arm), &instant::date(at))?;
    cancel.check()?;

    // 3 and 4. The workspace and its guards.
    progress.step("workspace");
    let place = workspace(options, &corpus, &plan, &probe)?;
    cancel.check()?;

    // 5. The baseline.
    progress.step("baseline");
    let baseline = options.baseline.as_deref().map_or_else(|| Manifest::take(place.path()), Manifest::take)?;
    if let Some((built, delta)) = place.built() {
        refuse_two_trees(&plan, built, delta, &baseline)?;
    }
    let declared = configuration::of_workspace(place.path())?;
    let host = match configuration::host_directory() {
        Some(directory) => configuration::names(&directory)?,
        None => init::Names::default(),
    };
    refuse_shared_names(&host, &declared.names)?;
    cancel.check()?;

    // 6. The confinement, and whether it holds here.
    progress.step("confinement");
    let logs = Scratch::new("headwater-logs-")?;
    let beside = harness.beside();
    let closure = options.seen.closure()?;
    if let Some(closure) = &closure {
        closure.refuse_overlap(&corpus, "the corpus", Status::Place)?;
    }
    let view = View::new(&Request {
        workspace: place.path(),
        logs: logs.path(),
        harness: harness.program(),
        beside_harness: &beside,
        engine: &engine.path,
        closure: closure.as_ref(),
        host_network: true,
    })?;
    if view.workspace().to_str().is_none() {
        let message =
            format!("the path of the workspace {} is not UTF-8, as its stream has to be", place.path().display());
        return Err(Failure::new(Status::NotEntered, message).remedy("use a path, and a TMPDIR, of UTF-8 names"));
    }
    if view.shows(&corpus) {
        let message = format!("the corpus {} lies in a part of the host that every session sees", corpus.display());
        return Err(Failure::new(Status::Place, message).remedy(outside_of_the_view(&view, "the corpus")));
    }
    if let Some(found) = credentials.as_ref().filter(|found| view.shows(&found.source)) {
        let message = format!("the session could read the credentials themselves at {}", found.source.display());
        return Err(Failure::new(Status::Unconfined, message).remedy(outside_of_the_view(&view, "them")));
    }
    // What the session could replace, the host would run afterwards.
    for program in [&engine.path, &bwrap.path, harness.program()] {
        refuse_in_workspace(&view, program, Status::Unconfined)?;
    }
    let max_turns = options.max_turns.or(plan.cost.as_ref().and_then(|cost| cost.max_turns));
    let servers: Vec<_> = declared.mcp_servers.iter().flatten().cloned().collect();
    let command = command::command(&command::Options {
        leading: &harness.leading(HARNESS_DIRECTORY),
        model: options.model.as_deref(),
        max_turns: max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)),
        mcp_file: declared.mcp_servers.is_some(),
        mcp_servers: &servers,
    })?;
    let environment = command::environment(&Surroundings {
        session: &options.session,
        logs: view.logs(),
        base_url: options.base_url.as_deref(),
        programs: view.programs(),
    });
    let expected = Expected {
        config_dir: CONFIGURATION.into(),
        workspace: view.workspace().to_string_lossy().into_owned(),
        mcp_servers: declared.mcp_servers.unwrap_or_default(),
        host,
        declared: declared.names,
        session_start_hook: declared.session_start_hook,
    };
    let confined =
        bwrap::Plan { bwrap, view, files: credentials.iter().map(|c| c.file.clone()).collect(), environment, command };
    if options.explain {
        return Explanation::of(&confined, &limits).map(|explanation| Ready::Explained(Box::new(explanation)));
    }
    let (proof, harness_digest) =
        rayon::join(|| proof::prove(&confined, cancel), || File::open(harness.program()).and_then(Digest::of_reader));
    let proof = proof?;
    let harness_digest = harness_digest.map_err(|e| Failure::io(harness.program().display(), e))?;

    // 7. The files that the session will fill, so that a place that cannot be written is known before it spends.
    refuse_in_workspace(&confined.view, &options.out, Status::Usage)?;
    let out = Draft::new(&options.out)?;
    let raw = options.raw.clone().unwrap_or_else(|| out.place().with_extension("raw.jsonl"));
    if std::path::absolute(&raw).is_ok_and(|raw| raw == out.place()) {
        return Err(Failure::new(Status::Usage, format!("{} cannot be transcript and raw log", raw.display()))
            .remedy("give --out and --raw two names"));
    }
    refuse_in_workspace(&confined.view, &raw, Status::Usage)?;
    for place in [out.place(), &raw] {
        refuse_shown(&confined.view, place)?;
    }
    Ok(Ready::Prepared(Box::new(Prepared {
        options,
        corpus,
        engine,
        harness,
        harness_digest,
        plan,
        probe,
        front,
        place,
        baseline,
        expected,
        settings: declared.settings,
        confined,
        proof,
        credentials,
        logs,
        limits,
        max_turns,
        out,
        raw,
        at,
    })))
}

/// The harness, from its start to the end of everything it started.
fn run(prepared: &Prepared<'_>, cancel: &Cancel, progress: Progress) -> Outcome<Ended> {
    let raw = RawLog { file: files::create_log(&prepared.raw)?, path: prepared.raw.clone() };
    progress.step(&format!("session, at most {} s", prepared.limits.wall.as_secs()));
    let reported = progress.session(prepared.raw.clone());
    let prompt = prompt::line(&prepared.probe.task).map_err(|e| Failure::io("the prompt", e))?;
    let ended = drive::drive(&prepared.confined, &prompt, raw, &prepared.limits, cancel);
    drop(reported);
    if ended.is_err() {
        remove_empty(&prepared.raw);
    }
    ended
}

/// Removes a log in which nothing was written. One that cannot be removed does no harm.
fn remove_empty(log: &Path) {
    if log.metadata().is_ok_and(|m| m.len() == 0) {
        let _ = std::fs::remove_file(log);
    }
}

/// What the session left, to a transcript that intake confirms.
fn finish(prepared: &Prepared<'_>, ended: &Ended, progress: Progress) -> Outcome<Finished> {
    let options = prepared.options;
    ended.check()?;
    progress.step("transcript");
    let log = read_stream(prepared, ended)?;
    if raw_holds_a_secret(prepared)? {
        progress.step(&format!("{} holds a credential of this host: keep it to yourself", prepared.raw.display()));
    }

    let (code, signal) = if ended.lingered { (None, None) } else { (ended.code, ended.signal) };
    let ending = ending(&log, code, signal);
    if log.lines == 0 {
        let message = "the harness ended before it wrote a line".to_owned();
        let failure = Failure::new(Status::HarnessFailed, message).remedy("run it by itself with --version");
        return Err(with_standard_error(failure, prepared, ended));
    }

    // What is torn or forged says nothing reliable of what was loaded.
    let failed = ending.failure().map(|failure| with_standard_error(failure, prepared, ended));
    if log.could_hide_a_call().is_some()
        && let Some(failure) = failed
    {
        return Err(failure);
    }

    // 9. The init line is the check.
    let loaded = init::check(&log, &prepared.expected).map_err(|leaks| init::failure(&leaks))?;

    // 10. How it ended, and what it said and cost.
    if let Some(failure) = failed {
        return Err(failure);
    }
    refuse_hidden_calls(&log)?;
    let model = options.model.clone().or_else(|| loaded.model.clone()).unwrap_or_else(|| UNNAMED_MODEL.into());
    let provider = provider(&log, &model);
    let cost_cents = provider.cost_cents.ok_or_else(|| {
        Failure::new(Status::HarnessFailed, "the harness reported no cost, and none is ever written as zero")
            .remedy("see what the result line of the raw log says")
    })?;
    let last = log.result.as_ref().and_then(|result| result.final_line.as_deref());
    let answer = answer(last, &prepared.probe.answers);

    // 11. What it produced.
    let workspace = prepared.confined.view.workspace();
    open_again(&prepared.place);
    let after = Manifest::take(workspace)?;
    let artifacts = artifacts(prepared, &log, &after)?;
    if let Some(Checked::Nothing(why)) = &artifacts.checked {
        progress.step(&format!("nothing checked the artifacts: {why}"));
    }
    let digest = |path: &str| prepared.baseline.digest_of(path).or_else(|| after.digest_of(path));
    let trees = Trees { workspace, digest: &digest };
    let produced = Some(artifacts.produced.clone());
    let event = event::event(&log, &prepared.probe.id, &options.session, &trees, produced, answer);

    // 12. The transcript.
    let identity = identity(prepared, model, &provider, cost_cents);
    let bound: Vec<_> = prepared.confined.view.outside_allowed().into_iter().map(Path::to_path_buf).collect();
    let facts = Facts {
        proof: &prepared.proof,
        view: &prepared.confined.view,
        kernel: &kernel(),
        base_url: options.base_url.as_deref(),
        spends: prepared.harness.spends(),
        harness: prepared.harness_digest,
        loaded: &loaded,
        settings: &prepared.settings,
        arm: options.arm,
        built: prepared.place.built(),
        artifacts: &artifacts,
        limits: &prepared.limits,
        max_turns: prepared.max_turns,
        log: &log,
        ending: &ending,
        ended,
        provider: &provider,
        outside: event::outside_paths(&log, workspace, &bound).len(),
        hook: hook::lines(prepared.logs.path(), &options.session),
    };
    let text = document::render(&prepared.front, &statements(&facts), &identity, &event);
    refuse_secrets(prepared, &text, &event)?;
    prepared.out.write(text.as_bytes())?;
    prepared.engine.confirm(&prepared.corpus, prepared.out.path())?;
    Ok(Finished { ending, calls: event.calls.as_ref().map_or(0, Vec::len), cost_cents })
}

fn limits(options: &Record) -> Limits {
    Limits {
        wall: Duration::from_secs(options.max_seconds),
        idle: Duration::from_secs(options.max_idle_seconds),
        ..Limits::default()
    }
}

/// The root of a corpus, with every link of it resolved.
///
/// # Errors
/// [`Status::PlanFailed`] where it is no directory or declares no corpus.
pub fn corpus(path: &Path) -> Outcome<PathBuf> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(Status::PlanFailed, format!("the corpus {}: {why}", path.display()))
            .remedy("name the directory that holds .headwater/ with --corpus")
    };
    let root = path.canonicalize().map_err(|e| failed(&e))?;
    match root.join(".headwater/taxonomy.yml").metadata() {
        Ok(found) if found.is_file() => Ok(root),
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(failed(&format_args!(".headwater/taxonomy.yml: {e}")))
        }
        _ => Err(failed(&"it holds no file .headwater/taxonomy.yml")),
    }
}

/// The probe of the plan, where the plan starts and runs it in `arm`.
///
/// # Errors
/// [`Status::PlanRefuses`], with the plan's own reason.
pub fn selected<'a>(plan: &'a Plan, probe: &str, arm: Option<Arm>) -> Outcome<&'a PlannedProbe> {
    let refused = |message: String| Failure::new(Status::PlanRefuses, message);
    if let Some(refusal) = &plan.refusal {
        return Err(refused(format!("the plan refuses the run ({}): {}", refusal.id, refusal.message))
            .remedy("correct that in the corpus; headwater probe plan says whether the run starts then"));
    }
    let tier = plan.identity.tier;
    if let Some(arm) = arm.filter(|arm| !plan.identity.arms.contains(arm)) {
        let arms = plan.identity.arms.iter().map(|a| a.as_str()).collect::<Vec<_>>().join(", ");
        return Err(refused(format!("the tier {tier} does not run the arm {arm}: it runs {arms}"))
            .remedy("name one of these with --arm, or another tier with --tier"));
    }
    plan.selection.iter().find(|p| p.id == probe).ok_or_else(|| {
        refused(format!("the plan of the tier {tier} does not select the probe `{probe}`"))
            .remedy("headwater probe plan lists the probes it selects")
    })
}

/// The tree the session works in, past every guard.
fn workspace(options: &Record, corpus: &Path, plan: &Plan, probe: &PlannedProbe) -> Outcome<Place> {
    let names = names::Names::gather(corpus, Declared::of(&plan.workspace, &[probe]))?;
    let place = match &options.workspace {
        Some(path) => Place::Given(path.clone()),
        None => {
            let shelf = plan.transcript.as_ref().map(|form| form.shelf.as_str());
            let delta = plan.workspace.arms.get(&options.arm).cloned().unwrap_or_default();
            // What a session sees of its place is a plain path: the name of the corpus in a directory without one.
            let directory = Scratch::new("work-")?;
            let name = corpus.file_name().unwrap_or(OsStr::new("corpus"));
            let to = directory.path().join(name);
            let built = build::build(&Order { corpus, to: &to, shelf, delta: &delta, names: &names })?;
            Place::Built { directory, built: Box::new(built), delta }
        }
    };
    guard::hold(corpus, place.path(), &names)?;
    Ok(place)
}

/// Refuses a tree in which what a probe examines is not what the plan was made over. Git calls the corpus committed
/// where a document is ignored, where a change is hidden from it, or where an attribute changes bytes on the way.
fn refuse_two_trees(plan: &Plan, built: &Built, delta: &Delta, baseline: &Manifest) -> Outcome<()> {
    let sealed = &built.sealed;
    let of_seal = sealed.removed.iter().map(|removed| &removed.path).chain(sealed.cut.iter().map(|cut| &cut.path));
    let of_policy = plan.workspace.instrument.iter().chain(&delta.loses).chain(&delta.gains).map(String::as_bytes);
    let changed: Vec<&[u8]> = of_seal.map(Vec::as_slice).chain(of_policy).collect();
    for Member { path, digest, .. } in &plan.read_set {
        let meant = digest.is_none() || changed.iter().any(|changed| covers(changed, path.as_bytes()));
        if !meant && baseline.digest_of(path) != *digest {
            let message = format!("{path} of the commit is not the {path} that the plan was made over");
            return Err(Failure::new(Status::Usage, message)
                .remedy("commit it as it is: see .gitignore, .gitattributes and git ls-files -v"));
        }
    }
    Ok(())
}

/// Where `what` belongs, which the view shows and may not.
fn outside_of_the_view(view: &View, what: &str) -> String {
    match view.kind() {
        Kind::Host => format!("keep {what} outside of the workspace, /usr and /etc"),
        Kind::Closure => format!("keep {what} outside of the workspace and of the closure's paths"),
    }
}

/// What the session may hold of the host's credentials: nothing for a harness that drives no model.
fn credentials(options: &Record, harness: &Harness, wall: Duration) -> Outcome<Option<Credentials>> {
    if !harness.spends() {
        return Ok(None);
    }
    let variable = |name: &str| std::env::var_os(name);
    let (config, home) = (variable("CLAUDE_CONFIG_DIR"), variable("HOME"));
    let path = credentials::place(options.credentials.as_deref(), config.as_deref(), home.as_deref())?;
    Credentials::read(&path, SystemTime::now() + wall).map(Some)
}

/// Refuses names that both sides have. The init line tells them apart no more than a reader does, so the session would
/// be refused after it has spent.
fn refuse_shared_names(host: &init::Names, workspace: &init::Names) -> Outcome<()> {
    for (what, ours, theirs) in [
        ("skill", &host.skills, &workspace.skills),
        ("agent", &host.agents, &workspace.agents),
        ("command", &host.commands, &workspace.commands),
    ] {
        if let Some(name) = ours.intersection(theirs).next() {
            let message = format!(
                "the {what} `{name}` is the workspace's and this account's: the init line would not tell them apart"
            );
            return Err(Failure::new(Status::Unconfined, message)
                .remedy("record as a user whose harness configuration has none of that name"));
        }
    }
    Ok(())
}

/// Refuses a path of the recorder's own that lies where the session can write.
fn refuse_in_workspace(view: &View, path: &Path, status: Status) -> Outcome<()> {
    // What is not there yet is where its directory is.
    let there = path.canonicalize().or_else(|_| {
        let path = std::path::absolute(path)?;
        path.parent().unwrap_or(&path).canonicalize()
    });
    if there.is_ok_and(|there| there.starts_with(view.workspace())) {
        let message = format!("{} lies in the workspace, where the session can write it", path.display());
        return Err(Failure::new(status, message).remedy("keep it outside of the workspace"));
    }
    Ok(())
}

/// Refuses a place for what a recording writes that the session would see: what others have left there, it would too.
fn refuse_shown(view: &View, path: &Path) -> Outcome<()> {
    let directory = path.parent().unwrap_or(path);
    if view.shows(directory) {
        let message = format!("{} lies in what the session sees of the host", path.display());
        return Err(Failure::new(Status::Usage, message).remedy(outside_of_the_view(view, "it")));
    }
    Ok(())
}

/// The raw log, read back, where it is still what arrived.
fn read_stream(prepared: &Prepared<'_>, ended: &Ended) -> Outcome<SessionLog> {
    let open = || File::open(&prepared.raw).map_err(|e| Failure::io(prepared.raw.display(), e));
    let digest = Digest::of_reader(open()?).map_err(|e| Failure::io(prepared.raw.display(), e))?;
    if digest != ended.digest {
        let message = format!("{} is no longer what arrived from the harness", prepared.raw.display());
        return Err(Failure::new(Status::ChannelAtRisk, message).remedy("see who else can write it, and record again"));
    }
    stream::read(BufReader::with_capacity(1 << 16, open()?)).map_err(|e| Failure::io(prepared.raw.display(), e))
}

/// Whether a secret of the host stands in the raw log, as it does where a session has printed its credentials.
fn raw_holds_a_secret(prepared: &Prepared<'_>) -> Outcome<bool> {
    const PIECE: u64 = 1 << 20;
    // No secret is longer than what two pieces share.
    const SHARED: usize = 1 << 16;
    let Some(credentials) = &prepared.credentials else { return Ok(false) };
    let failed = |e| Failure::io(prepared.raw.display(), e);
    let mut raw = File::open(&prepared.raw).map_err(failed)?;
    let mut piece = Vec::new();
    loop {
        let read = (&mut raw).take(PIECE).read_to_end(&mut piece).map_err(failed)?;
        if credentials.secrets.leaks_in(&piece).is_some() {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        piece.drain(..piece.len().saturating_sub(SHARED));
    }
}

/// Lets this user into a workspace of its own again, where the session has closed its root.
fn open_again(place: &Place) {
    if let Place::Built { built, .. } = place {
        // Where it is no directory any more, the manifest says so.
        let _ = std::fs::set_permissions(&built.root, PermissionsExt::from_mode(0o700));
    }
}

/// Refuses a session of which a sub-agent made calls that no line shows.
fn refuse_hidden_calls(log: &SessionLog) -> Outcome<()> {
    if log.hidden_calls == 0 {
        return Ok(());
    }
    let message = format!("the harness counts {} calls of sub-agents that the stream does not show", log.hidden_calls);
    Err(Failure::new(Status::ChannelAtRisk, message).remedy("use the pinned harness: it can forward every call"))
}

/// The failure with the end of the harness's standard error, which a session can write to as well.
fn with_standard_error(failure: Failure, prepared: &Prepared<'_>, ended: &Ended) -> Failure {
    const LINES: usize = 20;
    let secrets = prepared.credentials.as_ref().map(|credentials| &credentials.secrets);
    if secrets.is_some_and(|secrets| secrets.leaks_in(ended.stderr_tail.as_bytes()).is_some()) {
        let message = format!("{}; its standard error is withheld, because it holds a credential", failure.message);
        return Failure { message, ..failure };
    }
    let status = ended.code.map(|code| format!("; the harness exited {code}")).unwrap_or_default();
    let lines: Vec<_> = ended.stderr_tail.trim().lines().collect();
    let said = match lines.split_at_checked(lines.len().saturating_sub(LINES)) {
        Some((_, tail @ [_, ..])) => format!("\n  it said: {}", tail.join("\n           ")),
        _ => String::new(),
    };
    Failure { message: format!("{}{status}{said}", failure.message), ..failure }
}

/// The artifacts of the session, with what the rules of the corpus say of each.
fn artifacts(prepared: &Prepared<'_>, log: &SessionLog, after: &Manifest) -> Outcome<Artifacts> {
    let workspace = prepared.confined.view.workspace();
    let written = event::written_paths(log, workspace);
    let commit = prepared.place.built().map(|(built, _)| built.source.commit.as_str());
    let sources = Sources {
        before: &prepared.baseline,
        after,
        written: &written,
        named: &prepared.options.produced,
        log_directory: prepared.logs.path(),
    };
    let checker = Checker {
        engine: &prepared.engine,
        corpus: &prepared.corpus,
        commit,
        instrument: &prepared.plan.workspace.instrument,
    };
    produced::collect(&sources, &prepared.plan.identifiers, &checker)
}

fn identity(prepared: &Prepared<'_>, model: String, provider: &Provider, cost_cents: u64) -> RunIdentity {
    let planned = &prepared.plan.identity;
    RunIdentity {
        model,
        served_version: provider.served_version.clone(),
        tree: planned.tree.to_string(),
        lock: planned.lock.to_string(),
        selection: planned.selection.to_string(),
        read_set: planned.read_set.to_string(),
        seed: planned.seed.clone(),
        harness: planned.harness.clone(),
        tier: planned.tier,
        arm: prepared.options.arm,
        at: instant::rfc3339(prepared.at),
        cost_cents,
    }
}

/// The release of the running kernel.
fn kernel() -> String {
    nix::sys::utsname::uname().map_or_else(|_| "unknown".into(), |name| name.release().to_string_lossy().into_owned())
}

/// Refuses a transcript in which a secret of the host stands, in any form; names the call and not the secret.
fn refuse_secrets(prepared: &Prepared<'_>, text: &str, event: &Event) -> Outcome<()> {
    let Some(credentials) = &prepared.credentials else { return Ok(()) };
    let Some(leak) = credentials.secrets.leaks_in(text.as_bytes()) else { return Ok(()) };
    let leaks = |text: &str| credentials.secrets.leaks_in(text.as_bytes()).is_some();
    let call = event.calls.iter().flatten().position(|call| leaks(&call.argument));
    let place = call.map_or_else(|| "outside of its calls".into(), |n| format!("in call {}", n + 1));
    Err(Failure::new(Status::ChannelAtRisk, format!("the transcript would hold {leak}, {place}"))
        .remedy("treat the credential as known: log out and in again, and look at what the session did"))
}

/// Keeps what a session left when its recording failed, and says where.
fn keep(prepared: Prepared<'_>, failure: Failure, interrupted: bool) -> Failure {
    let mut message = failure.message.clone();
    remove_empty(&prepared.raw);
    if prepared.raw.exists() {
        message.push_str(&format!("\n  kept: {} (the raw log)", prepared.raw.display()));
    }
    // Where the session itself failed, its tree is of no use. Where we failed, it is what the record is made from.
    if !interrupted
        && matches!(failure.status, Status::Internal | Status::ChannelAtRisk)
        && let Place::Built { directory, built, .. } = prepared.place
    {
        directory.keep();
        message.push_str(&format!("\n  kept: {} (the workspace)", built.root.display()));
    }
    Failure { message, ..failure }
}
