//! The conditions under which a run starts. Each gives what the plan goes on with, or the refusal.

use super::{Request, text};
use crate::probe::declared::{Declared, one_line};
use crate::probe::policy::{self, Envelope, Policy};
use crate::probe::refusals::Reason;
use headwater_contract::keys::{Arm, Tier};
use headwater_contract::plan::{Cost, Refusal};
use std::borrow::Cow;
use std::collections::BTreeSet;

pub(super) fn envelope(policy: &Policy, tier: Tier) -> Result<&Envelope, Refusal> {
    policy.tiers.get(&tier).ok_or_else(|| {
        let what = format!("{} declares no envelope for the tier `{tier}`; declare it under `tiers`", policy::PATH);
        Reason::TierUndeclared.refusal(what)
    })
}

pub(super) fn selected(probes: Vec<Declared>, request: &Request) -> Result<Vec<Declared>, Refusal> {
    if probes.is_empty() {
        let what = "the corpus has no document of the kind `probe`; write one on the shelf of that kind";
        return Err(Reason::NoProbe.refusal(what));
    }
    // A probe without an identifier, and below one without a category, could belong to any selection.
    probes.iter().filter(|p| p.id.is_none()).try_for_each(declaration)?;
    probes.windows(2).try_for_each(apart)?;
    let ids: BTreeSet<_> = probes.iter().filter_map(|p| p.id.as_deref()).collect();
    if let Some(unknown) = request.exclude.iter().find(|id| !ids.contains(id.as_str())) {
        let what =
            format!("`{}` is excluded and is no probe of this corpus; correct the identifier", one_line(unknown));
        return Err(Reason::ExcludedUnknown.refusal(what));
    }
    let excluded: BTreeSet<_> = request.exclude.iter().map(String::as_str).collect();
    let kept = |probe: &Declared| probe.id.as_deref().is_none_or(|id| !excluded.contains(id));
    let mut selection: Vec<_> = probes.into_iter().filter(kept).collect();
    selection.iter().filter(|p| p.category.is_none()).try_for_each(declaration)?;
    selection.retain(|probe| request.category.is_none() || probe.category == request.category);
    if selection.is_empty() {
        let category = request.category.map_or("any category".to_owned(), |c| format!("the category `{c}`"));
        let excluded = excluded.len();
        let what = format!("no probe of {category} is left of the corpus after {excluded} exclusions; select wider");
        return Err(Reason::EmptySelection.refusal(what));
    }
    Ok(selection)
}

pub(super) fn declaration(probe: &Declared) -> Result<(), Refusal> {
    probe.defects.first().map_or(Ok(()), |defect| Err(defect.clone()))
}

fn apart(neighbours: &[Declared]) -> Result<(), Refusal> {
    match neighbours {
        [a, b] if a.id == b.id => {
            let what = format!(
                "{} shares its identifier with the one at {}; give one of them another",
                a.name(),
                one_line(&b.path)
            );
            Err(Reason::IdentifierShared.refusal(what))
        }
        _ => Ok(()),
    }
}

pub(super) fn repetitions(envelope: &Envelope, request: &Request) -> Result<u64, Refusal> {
    let (tier, declared) = (request.tier, envelope.repetitions);
    match request.repetitions.unwrap_or(declared) {
        0 => Err(Reason::RepetitionsZero.refusal("0 repetitions are no run; ask for, or declare, one at least")),
        asked if asked > declared => {
            let what =
                format!("{asked} repetitions are asked for and the tier `{tier}` declares {declared}; ask for fewer");
            Err(Reason::RepetitionsAbove.refusal(what))
        }
        asked => Ok(asked),
    }
}

pub(super) fn arms(envelope: &Envelope, request: &Request) -> Result<Vec<Arm>, Refusal> {
    let Some(arm) = request.arm else {
        return Ok(envelope.arms.clone());
    };
    let tier = request.tier;
    runs(envelope, tier, arm)?;
    if policy::is_paired(tier) {
        let what =
            format!("the tier `{tier}` compares `present` with `absent` and cannot run `{arm}` alone; leave --arm out");
        return Err(Reason::ArmUnpaired.refusal(what));
    }
    Ok(vec![arm])
}

pub(super) fn runs(envelope: &Envelope, tier: Tier, arm: Arm) -> Result<(), Refusal> {
    if envelope.arms.contains(&arm) {
        return Ok(());
    }
    let arms = text::joined(&envelope.arms);
    Err(Reason::ArmNotRun.refusal(format!("the tier `{tier}` does not run the arm `{arm}`; it runs {arms}")))
}

pub(super) fn cost(envelope: &Envelope, probes: usize, arms: usize, repetitions: u64) -> Result<Cost, Refusal> {
    let each = envelope.session_cost_cents;
    let overflow = || {
        let what = format!("{probes} probes x {arms} arms x {repetitions} repetitions at {each} cents");
        Reason::CountOverflow.refusal(format!("{what} are beyond 64 bits; declare fewer repetitions or a lower cost"))
    };
    let count = |n: usize| u64::try_from(n).map_err(|_| overflow());
    let (probes, arms) = (count(probes)?, count(arms)?);
    let sessions = probes.checked_mul(arms).and_then(|n| n.checked_mul(repetitions)).ok_or_else(overflow)?;
    Ok(Cost {
        probes,
        arms,
        repetitions,
        sessions,
        session_cost_cents: each,
        projection_cents: sessions.checked_mul(each).ok_or_else(overflow)?,
        ceiling_cents: envelope.budget_cents,
        max_turns: envelope.max_turns,
    })
}

pub(super) fn ceiling(cost: &Cost, tier: Tier) -> Result<(), Refusal> {
    let Cost { projection_cents: projection, ceiling_cents: ceiling, .. } = *cost;
    if projection <= ceiling {
        return Ok(());
    }
    let what = format!(
        "the projected cost of {projection} cents is above the ceiling of {ceiling} cents of the tier `{tier}`; run \
         fewer probes or repetitions, or raise `budget_cents`"
    );
    Err(Reason::CostAboveCeiling.refusal(what))
}

/// A probe whose target an arm does not have measures the arm and not the corpus.
pub(super) fn targets(probe: &Declared, policy: &Policy, envelope: &Envelope, tier: Tier) -> Result<(), Refusal> {
    if let Some((target, part)) = covered(probe, &policy.instrument) {
        let what = format!("which no arm has: `{part}` is part of the instrument; examine another document");
        let what = format!("{} examines {target}, {what}", probe.name());
        return Err(Reason::ExaminesInstrument.refusal(what));
    }
    if let Some((target, part)) = covered(probe, &envelope.ablation) {
        let what = format!("which the absent arm of the tier `{tier}` lacks: `{part}` is part of its ablation");
        let what = format!("{} examines {target}, {what}; exclude the probe, or examine another", probe.name());
        return Err(Reason::ExaminesAblation.refusal(what));
    }
    Ok(())
}

/// The first target of a probe that a declared path covers, and that path.
fn covered<'a>(probe: &'a Declared, declared: &'a [String]) -> Option<(Cow<'a, str>, &'a str)> {
    let covers = |target: &'a str| {
        let part = declared.iter().find(|part| policy::covers(part, target))?;
        Some((one_line(target), part.as_str()))
    };
    probe.examines.iter().find_map(|target| covers(&target.path))
}
