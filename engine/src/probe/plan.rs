//! The plan of a run: everything that is fixed before a session starts, or the reason for which none starts.
//!
//! - [`compose`]: the plan as a function of the corpus, the policy and what was asked.
//! - [`select`], [`selection_digest`], [`read_set`], [`read_set_digest`]: its parts, for whoever has to compose them
//!   again over another tree.
//! - [`hold`]: the conditions under which a run starts.
//! - [`form`]: what a transcript needs to be a document of the corpus.
//! - [`text`]: the plan as text, in the form that other tools read.
//! - [`command`]: the verb.

pub mod command;
pub mod form;
mod hold;
pub mod text;

pub use command::{Args, run};

use super::declared::{self, Declared};
use super::policy::{Envelope, Policy};
use crate::corpus::{Corpus, CorpusError};
use headwater_contract::digest::{self, Digest};
use headwater_contract::keys::{Arm, Category, Tier};
use headwater_contract::plan::{
    Cost, Delta, FORMAT, Member, Plan, PlanIdentity, PlannedProbe, Refusal, Role, Workspace,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a plan is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The tier.
    pub tier: Tier,
    /// Only the probes of this category.
    pub category: Option<Category>,
    /// Identifiers of probes that are left out.
    pub exclude: Vec<String>,
    /// Only this arm of the tier.
    pub arm: Option<Arm>,
    /// Repetitions of each probe in each arm; what the tier declares where this is nothing.
    pub repetitions: Option<u64>,
    /// The rotation seed, decimal digits.
    pub seed: String,
}

/// Composes a plan. A run that may not start is a plan with a refusal, the first one in the order of
/// [`super::refusals::REFUSALS`] (probe by probe for what a probe declares). Its identity then covers what had been
/// selected up to there.
///
/// # Errors
/// Where a probe or the lock cannot be read.
pub fn compose(corpus: &Corpus, policy: &Policy, request: &Request) -> Result<Plan, CorpusError> {
    let lock = corpus.lock()?;
    let probes = declared::all(corpus)?;
    let mut draft = Draft::default();
    let refusal = draft.fill(corpus, policy, request, probes).err();
    let identity = PlanIdentity {
        lock,
        tree: corpus.tree(),
        selection: selection_digest(&draft.selection),
        read_set: read_set_digest(&draft.read_set),
        seed: request.seed.clone(),
        harness: concat!("headwater ", env!("CARGO_PKG_VERSION")).to_owned(),
        tier: request.tier,
        arms: draft.arms,
    };
    let mut plan = Plan {
        format: FORMAT,
        identity,
        cost: draft.cost,
        refusal,
        selection: Vec::new(),
        read_set: Vec::new(),
        identifiers: Vec::new(),
        workspace: workspace(policy, request.tier),
        transcript: form::of(corpus),
    };
    if plan.refusal.is_none() {
        plan.selection = draft.selection.into_iter().filter_map(planned_probe).collect();
        plan.read_set = draft.read_set;
        plan.identifiers = identifiers(corpus);
    }
    Ok(plan)
}

/// A plan as far as it has been composed.
#[derive(Default)]
struct Draft {
    arms: Vec<Arm>,
    selection: Vec<Declared>,
    read_set: Vec<Member>,
    cost: Option<Cost>,
}

impl Draft {
    fn fill(
        &mut self,
        corpus: &Corpus,
        policy: &Policy,
        request: &Request,
        probes: Vec<Declared>,
    ) -> Result<(), Refusal> {
        let envelope = hold::envelope(policy, request.tier)?;
        self.arms.clone_from(&envelope.arms);
        self.selection = hold::selected(probes, request)?;
        self.read_set = read_set(corpus, &self.selection);
        let repetitions = hold::repetitions(envelope, request)?;
        self.arms = hold::arms(envelope, request)?;
        let cost = hold::cost(envelope, self.selection.len(), self.arms.len(), repetitions)?;
        self.cost = Some(cost.clone());
        for probe in &self.selection {
            hold::declaration(probe)?;
            hold::targets(probe, policy, envelope, request.tier)?;
        }
        hold::ceiling(&cost, request.tier)
    }
}

fn planned_probe(probe: Declared) -> Option<PlannedProbe> {
    Some(PlannedProbe {
        id: probe.id?,
        path: probe.path,
        category: probe.category?,
        expects: probe.expectation?,
        examines: probe.examines,
        oracle: probe.oracle,
        answers: probe.answers,
        expected: probe.expected,
        task: probe.task,
    })
}

/// What the policy declares about workspaces; the arms are those of the tier, where it has an envelope.
fn workspace(policy: &Policy, tier: Tier) -> Workspace {
    let envelope = hold::envelope(policy, tier).ok();
    let arms = envelope.iter().flat_map(|envelope| envelope.arms.iter().map(|arm| (*arm, delta(envelope, *arm))));
    Workspace {
        instrument: sorted(&policy.instrument),
        folds: sorted(&policy.folds),
        answer_keys: policy.answer_keys.iter().map(|(probe, keys)| (probe.clone(), sorted(keys))).collect(),
        arms: arms.collect(),
    }
}

/// What an arm of a tier loses and gains.
fn delta(envelope: &Envelope, arm: Arm) -> Delta {
    let components = || envelope.components.get(&arm).map(|paths| sorted(paths)).unwrap_or_default();
    match arm {
        Arm::Present => Delta::default(),
        Arm::Absent => Delta { loses: sorted(&envelope.ablation), gains: Vec::new() },
        Arm::Mcp => Delta { loses: Vec::new(), gains: components() },
        Arm::NoHook | Arm::NoSkills | Arm::NoClaudeMd => Delta { loses: components(), gains: Vec::new() },
    }
}

/// Paths in byte order, each once.
fn sorted(paths: &[String]) -> Vec<String> {
    paths.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

fn identifiers(corpus: &Corpus) -> Vec<String> {
    corpus.typed().filter_map(|d| d.id.clone()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Probes of the corpus in byte order of the identifier: all that have one, or those among `only`. An identifier that
/// no probe has is passed over.
///
/// # Errors
/// Where a probe cannot be read.
pub fn select(corpus: &Corpus, only: Option<&BTreeSet<&str>>) -> Result<Vec<Declared>, CorpusError> {
    let mut probes = declared::all(corpus)?;
    probes.retain(|p| p.id.as_deref().is_some_and(|id| only.is_none_or(|only| only.contains(id))));
    Ok(probes)
}

/// The digest of a selection: over its identifiers and nothing else.
#[must_use]
pub fn selection_digest(selection: &[Declared]) -> Digest {
    digest::of_selection(selection.iter().filter_map(|p| p.id.as_deref()))
}

/// Every probe of a selection and everything one of them examines, in byte order of the path, each path once. A probe
/// that is examined too is there as a probe. A target that is no file of the corpus is there as it was written, without
/// a digest: the read set moves when the file appears.
#[must_use]
pub fn read_set(corpus: &Corpus, selection: &[Declared]) -> Vec<Member> {
    let examined = selection.iter().flat_map(|p| &p.examines).map(|t| (t.path.as_str(), Role::Examined));
    let probes = selection.iter().map(|p| (p.path.as_str(), Role::Probe));
    let roles: BTreeMap<_, _> = examined.chain(probes).collect();
    let member = |(path, role): (&str, Role)| Member { path: path.to_owned(), role, digest: corpus.content(path) };
    roles.into_iter().map(member).collect()
}

/// The digest of a read set: over its paths and their content.
#[must_use]
pub fn read_set_digest(members: &[Member]) -> Digest {
    digest::of_paths(members.iter().map(|m| (m.path.as_str(), m.digest)))
}

#[cfg(test)]
mod tests;
