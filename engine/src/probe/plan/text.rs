//! A plan as text. Other tools read it, so the headings, the identity block, the lines of the selection and those of the
//! read set keep this form exactly; the prose around them does not.

use crate::probe::declared::one_line;
use headwater_contract::plan::{Cost, Member, Plan, PlanIdentity, PlannedProbe, Target};
use std::fmt::{Display, Write as _};

/// Renders a plan. A refusal is the last thing in it.
#[must_use]
pub fn render(plan: &Plan) -> String {
    let mut out = String::from("# Plan of a probe run\n");
    identity(&mut out, &plan.identity);
    if let Some(cost) = &plan.cost {
        self::cost(&mut out, cost);
    }
    if let Some(refusal) = &plan.refusal {
        push(&mut out, format_args!("\n## This run does not start\n\n{}", one_line(&refusal.message)));
        return out;
    }
    out.push_str("\n## The selection\n\n");
    plan.selection.iter().for_each(|probe| self::probe(&mut out, probe));
    out.push_str("\n## The read set\n\n");
    plan.read_set.iter().for_each(|member| self::member(&mut out, member));
    out
}

/// Members of a list as one line: `a, b`.
pub(super) fn joined(items: &[impl Display]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn push(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{line}");
}

fn identity(out: &mut String, identity: &PlanIdentity) {
    let PlanIdentity { lock, tree, selection, read_set, seed, harness, tier, arms } = identity;
    out.push_str("\n## The run identity this plan fixes\n\n```yaml\n");
    let members: [(&str, &dyn Display); 7] = [
        ("lock", lock),
        ("tree", tree),
        ("selection", selection),
        ("read_set", read_set),
        ("seed", seed),
        ("harness", harness),
        ("tier", tier),
    ];
    for (key, value) in members {
        push(out, format_args!("{key}: {value}"));
    }
    push(out, format_args!("arms: [{}]\n```", joined(arms)));
}

fn cost(out: &mut String, cost: &Cost) {
    let Cost { probes, arms, repetitions, sessions, session_cost_cents, projection_cents, ceiling_cents, max_turns } =
        cost;
    push(
        out,
        format_args!(
            "\n## The cost\n\n{probes} probes x {arms} arms x {repetitions} repetitions = {sessions} sessions, each \
             declared at {session_cost_cents} cents.\nThe projection is {projection_cents} cents and the ceiling \
             {ceiling_cents} cents."
        ),
    );
    if let Some(turns) = max_turns {
        push(out, format_args!("A session stops at a turn cap of {turns}."));
    }
}

fn probe(out: &mut String, probe: &PlannedProbe) {
    push(out, format_args!("- {} ({})", probe.id, one_line(&probe.path)));
    let examines: Vec<_> = probe.examines.iter().map(target).collect();
    let [answers, expected] =
        [&probe.answers, &probe.expected].map(|list| list.iter().map(|a| one_line(a)).collect::<Vec<_>>());
    let lines = [
        ("category", probe.category.to_string()),
        ("expects", probe.expects.to_string()),
        ("examines", joined(&examines)),
        ("oracle", one_line(probe.oracle.as_deref().unwrap_or_default()).into_owned()),
        ("answers", joined(&answers)),
        ("expected", joined(&expected)),
    ];
    for (key, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        push(out, format_args!("    {key}: {value}"));
    }
}

fn target(target: &Target) -> String {
    let path = one_line(&target.path);
    match &target.id {
        Some(id) => format!("{} ({path})", one_line(id)),
        None => path.into_owned(),
    }
}

fn member(out: &mut String, member: &Member) {
    let digest = member.digest.map_or_else(|| "-".to_owned(), |d| d.to_string());
    push(out, format_args!("- {} ({}) {digest}", one_line(&member.path), member.role.as_str()));
}
