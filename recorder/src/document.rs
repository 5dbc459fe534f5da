//! The transcript as a document of the corpus: front matter, what held while the session ran, and the two blocks.
//!
//! The prose is made of typed values and of nothing a session wrote: a sentence here is a template of ours with numbers,
//! names from closed sets, digests and versions in it. What a session could choose (a path, a model's name) stands in
//! the blocks, or is put into code marks by [`code`].

use crate::status::{Failure, Outcome, Status};
use headwater_contract::keys::{Arm, Tier};
use headwater_contract::plan::TranscriptForm;
use headwater_contract::transcript::{EVENTS_HEADING, Event, IDENTITY_HEADING, RunIdentity, events_to_yaml};
use headwater_contract::yaml;
use std::fmt::Write as _;

/// The facets a recorder can fill in besides those that the plan gives.
const FILLED: [&str; 5] = ["id", "title", "summary", "tier", "arm"];

/// The front matter of a transcript, fixed before anything is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Front {
    entries: Vec<(String, String)>,
    title: String,
}

impl Front {
    /// The front matter for a transcript in a file called `stem` (its name without `.md`).
    ///
    /// # Errors
    /// [`Status::PlanFailed`] where the kind requires a facet that no recorder can fill; [`Status::Usage`] where the
    /// identifier that the file name gives is taken, or the name gives none.
    pub fn new(
        form: &TranscriptForm,
        taken: &[String],
        stem: &str,
        (probe, session): (&str, &str),
        (tier, arm): (Tier, Arm),
        today: &str,
    ) -> Outcome<Self> {
        let known = |facet: &str| {
            FILLED.contains(&facet) || form.facets.contains_key(facet) || form.entered.as_deref() == Some(facet)
        };
        if let Some(facet) = form.required.iter().find(|f| !known(f)) {
            let message =
                format!("the kind probe_transcript requires the facet `{facet}`, which no recorder can fill in");
            return Err(Failure::new(Status::PlanFailed, message).remedy(
                "take it out of `require` of the kind, or give it to the kind's documents by hand after recording",
            ));
        }
        let slug = slug(stem);
        let id = form.identifier.replace("{slug}", &slug).replace("{number}", &form.number);
        if form.identifier.contains("{slug}") && slug.is_empty() {
            let message = format!("the file name `{stem}` has no letter or digit to make an identifier of");
            return Err(Failure::new(Status::Usage, message).remedy("give --out another file name"));
        }
        if taken.binary_search(&id).is_ok() {
            return Err(Failure::new(
                Status::Usage,
                format!("the identifier {id} is taken by a document of the corpus"),
            )
            .remedy("give --out another file name"));
        }
        let title = format!("Recording of {probe}, session {session}");
        let mut entries = vec![("id".to_owned(), id)];
        if form.names_kind {
            entries.push(("kind".into(), "probe_transcript".into()));
        }
        entries.extend(form.facets.iter().map(|(k, v)| (k.clone(), v.clone())));
        entries.extend(form.entered.iter().map(|facet| (facet.clone(), today.to_owned())));
        entries.push(("title".into(), title.clone()));
        entries.push((
            "summary".into(),
            format!("One session of the {arm} arm in the {tier} tier, recorded from outside."),
        ));
        entries.push(("tier".into(), tier.to_string()));
        entries.push(("arm".into(), arm.to_string()));
        Ok(Self { entries, title })
    }
}

/// One short paragraph of what held: a topic and its sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The topic, two words at most.
    pub topic: &'static str,
    /// Whole sentences.
    pub text: String,
}

/// The whole document.
#[must_use]
pub fn render(front: &Front, statements: &[Statement], identity: &RunIdentity, event: &Event) -> String {
    let mut out = String::from("---\n");
    for (key, value) in &front.entries {
        let _ = writeln!(out, "{}: {}", yaml::scalar(key), yaml::scalar(value));
    }
    let _ = write!(out, "---\n\n# {}\n", front.title);
    for Statement { topic, text } in statements {
        let _ = write!(out, "\n**{topic}.** {text}\n");
    }
    let _ = write!(out, "\n## {IDENTITY_HEADING}\n\n```yaml\n{}```\n", identity.to_yaml());
    let _ = write!(out, "\n## {EVENTS_HEADING}\n\n```yaml\n{}```\n", events_to_yaml(std::slice::from_ref(event)));
    out
}

/// A value that somebody else chose, as inline code on one line, bounded, with nothing in it that ends the code or is
/// read as a link.
#[must_use]
pub fn code(text: &str) -> String {
    const SHOWN: usize = 120;
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .map(|c| {
            if c == '`' || c.is_control() || matches!(u32::from(c), 0x2028..=0x202e | 0x2066..=0x2069) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    if shown.trim().is_empty() { "(empty)".into() } else { format!("`{shown}`") }
}

/// Lower-case letters, digits and single hyphens.
fn slug(stem: &str) -> String {
    let mut out = String::new();
    for c in stem.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => out.push(c),
            _ if !out.is_empty() && !out.ends_with('-') => out.push('-'),
            _ => {}
        }
    }
    out.truncate(out.trim_end_matches('-').len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_contract::transcript::{self, Answer, Call};
    use std::collections::BTreeMap;

    fn form() -> TranscriptForm {
        TranscriptForm {
            shelf: "docs/probe-runs".into(),
            identifier: "WM-RUN-{slug}".into(),
            number: "0001".into(),
            facets: BTreeMap::from([("status".into(), "draft".into())]),
            entered: Some("status_date".into()),
            required: ["status", "status_date", "title", "summary", "tier", "arm"].map(str::to_owned).into(),
            names_kind: false,
        }
    }

    fn front(form: &TranscriptForm, taken: &[String], stem: &str) -> Outcome<Front> {
        Front::new(form, taken, stem, ("WM-PR-0001", "s"), (Tier::Regression, Arm::Present), "2026-08-14")
    }

    #[test]
    fn a_transcript_is_a_whole_document_that_reads_back() {
        let identity = RunIdentity {
            model: "m".into(),
            served_version: "m".into(),
            tree: "t".into(),
            lock: "l".into(),
            selection: "s".into(),
            read_set: "r".into(),
            seed: "0".into(),
            harness: "headwater 0.1.0".into(),
            tier: Tier::Regression,
            arm: Arm::Present,
            at: "2026-08-14T00:00:00Z".into(),
            cost_cents: 0,
        };
        let argument = "```\n## Events\n---\n".to_owned();
        let event = Event {
            probe: "WM-PR-0001".into(),
            session: "s".into(),
            calls: Some(vec![Call { tool: "Bash".into(), argument, result: String::new() }]),
            produced: Some(vec![]),
            answer: Answer::None,
        };
        let front = front(&form(), &[], "2026-08-14 First run").unwrap();
        let statements = [Statement { topic: "Confinement", text: format!("{}.", code("a`b\n## Events")) }];
        let text = render(&front, &statements, &identity, &event);
        assert!(
            text.starts_with("---\nid: WM-RUN-2026-08-14-first-run\nstatus: draft\nstatus_date: \"2026-08-14\"\n"),
            "{text}"
        );
        let read = transcript::read(&text).unwrap().whole().unwrap();
        assert_eq!(read.identity, identity);
        assert_eq!(read.events, [event]);
    }

    #[test]
    fn an_identifier_that_is_taken_or_cannot_be_made_is_refused_before_anything_is_spent() {
        assert_eq!(front(&form(), &["WM-RUN-a".into()], "a").unwrap_err().status, Status::Usage);
        assert_eq!(front(&form(), &[], "---").unwrap_err().status, Status::Usage);
        let mut form = form();
        form.required.push("owner".into());
        assert_eq!(front(&form, &[], "a").unwrap_err().status, Status::PlanFailed);
    }
}
