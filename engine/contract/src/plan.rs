//! What `headwater probe plan --format json` prints and a recorder reads: everything that is fixed before a session
//! starts. The engine writes it, a recorder believes it and recomputes none of it.

use crate::digest::Digest;
use crate::keys::{Arm, Category, Expectation, Tier};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of this format. A reader refuses another one.
pub const FORMAT: u32 = 1;

/// A plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`FORMAT`].
    pub format: u32,
    /// The members of the run identity that exist before a session.
    pub identity: PlanIdentity,
    /// What the run is projected to cost, where its sessions could be counted: a plan that refuses before the count
    /// prints no product.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost: Option<Cost>,
    /// Why the run does not start. Where this is set, the lists below are empty.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub refusal: Option<Refusal>,
    /// The probes of the run, in byte order of the identifier.
    pub selection: Vec<PlannedProbe>,
    /// What the read-set digest covers, in byte order of the path.
    pub read_set: Vec<Member>,
    /// Every identifier of the corpus, in byte order: what `cites` is looked up in.
    pub identifiers: Vec<String>,
    /// What the policy declares about workspaces.
    pub workspace: Workspace,
    /// What a transcript needs to be a document of this corpus, where its taxonomy has the kind.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub transcript: Option<TranscriptForm>,
}

/// The members of the run identity that a plan fixes, and the tier and its arms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanIdentity {
    /// The digest of the lock's bytes.
    pub lock: Digest,
    /// The digest over every typed document.
    pub tree: Digest,
    /// The digest of the selected identifiers.
    pub selection: Digest,
    /// The digest over the probes of the selection and what they examine.
    pub read_set: Digest,
    /// The rotation seed as the caller wrote it: decimal digits, any number of them.
    pub seed: String,
    /// The version of the engine that planned the run.
    pub harness: String,
    /// The tier.
    pub tier: Tier,
    /// The arms that run, in the order of the policy.
    pub arms: Vec<Arm>,
}

/// Probes times arms times repetitions, and the money.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Probes selected.
    pub probes: u64,
    /// Arms run.
    pub arms: u64,
    /// Repetitions of each.
    pub repetitions: u64,
    /// The product of the three.
    pub sessions: u64,
    /// The declared cost of one session, in cents.
    pub session_cost_cents: u64,
    /// Sessions times that, in cents.
    pub projection_cents: u64,
    /// The ceiling of the tier, in cents.
    pub ceiling_cents: u64,
    /// The turn cap of the tier, where it declares one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_turns: Option<u64>,
}

/// Why a run does not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// A stable name of the refusal, as `docs/` lists it.
    pub id: String,
    /// The message, with the probe, path or number it is about.
    pub message: String,
}

/// One probe of the selection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedProbe {
    /// Its identifier.
    pub id: String,
    /// Its path, relative to the root.
    pub path: String,
    /// What it is about.
    pub category: Category,
    /// The form of its expectation.
    pub expects: Expectation,
    /// What it examines.
    pub examines: Vec<Target>,
    /// The rule it names, where it names one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub oracle: Option<String>,
    /// The closed set of answers, empty where the form declares none.
    pub answers: Vec<String>,
    /// The expected part of the set.
    pub expected: Vec<String>,
    /// The prompt: the body of the probe's `Task` section, word for word.
    pub task: String,
}

/// What a probe examines: a document, by identifier and path, or an anchor, by path alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The path relative to the root.
    pub path: String,
    /// The identifier, where the target is a document that has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
}

/// One line of the read set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The path relative to the root.
    pub path: String,
    /// Why it is there.
    pub role: Role,
    /// The content digest, nothing for a path that has none.
    pub digest: Option<Digest>,
}

/// Why a path is in the read set. A probe that another probe examines is there as a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A probe of the selection.
    Probe,
    /// A path that a probe examines.
    Examined,
}

impl Role {
    /// As the plan prints it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Examined => "examined",
        }
    }
}

/// What the taxonomy asks of a document of the kind `probe_transcript`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptForm {
    /// The directory of the shelf, relative to the root.
    pub shelf: String,
    /// The identifier with `{slug}` or `{number}` still in it, the namespace put in (`WM-RUN-{slug}`).
    pub identifier: String,
    /// The next free number of the scheme, zero-padded, for an identifier with `{number}`.
    pub number: String,
    /// Front-matter keys and values that every new transcript has: the state facet with its `initial` value, and so on.
    pub facets: BTreeMap<String, String>,
    /// The facet with the role `state_entered`, where there is one: a recorder puts the date there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub entered: Option<String>,
    /// Every facet the kind requires.
    pub required: Vec<String>,
    /// A `kind:` line is needed, because the shelf is not homogeneous.
    pub names_kind: bool,
}

/// What the probe policy declares about the trees that sessions work in. Paths are relative to the root, in byte order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Workspace {
    /// What no arm has.
    pub instrument: Vec<String>,
    /// Files outside `docs/` that may name a probe.
    pub folds: Vec<String>,
    /// For each probe that has some, what an earlier session wrote in answer to it.
    pub answer_keys: BTreeMap<String, Vec<String>>,
    /// What each arm of the tier changes.
    pub arms: BTreeMap<Arm, Delta>,
}

/// What an arm loses and gains against the present tree.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delta {
    /// What it loses.
    pub loses: Vec<String>,
    /// What it gains.
    pub gains: Vec<String>,
}
