//! The rules about one document: front matter, identifier, facets, sections, place.

use super::Report;
use super::view::View;
use crate::corpus::Class;
use crate::corpus::document::Document;
use crate::corpus::taxonomy::{FacetRole, WARRANT};
use headwater_contract::yaml::{Entry, Node};

pub(super) fn frontmatter_malformed(view: &View<'_>, report: &mut Report<'_>) {
    // Off every shelf, a line `---` at the top may as well be a rule across the page.
    if let (Some((line, reason)), Some(_)) = (&view.document.malformed, view.shelf()) {
        report.add(*line, reason.clone());
    }
    if let Err(Some(reason)) = view.body {
        report.add(1, format!("the document is not read: {reason}"));
    }
    let expected = |node: &Node, what: &str, expected: &str| {
        (node.line, format!("{what} is {}; it has to be {expected}", node.what()))
    };
    let mut add = |(line, message)| report.add(line, message);
    if let Some(id) = view.document.front.get("id").filter(|id| id.scalar().is_none()) {
        add(expected(id, "`id`", "a text"));
    }
    let Some(relations) = view.document.front.get("relations").filter(|r| !r.is_null()) else { return };
    let Some(entries) = relations.mapping() else {
        return add(expected(relations, "`relations`", "a mapping of relations to lists"));
    };
    for Entry { key, value, .. } in entries {
        match value.sequence() {
            None if value.is_null() => {}
            None => add(expected(value, &format!("`relations.{key}`"), "a list of identifiers or paths")),
            Some(items) => {
                for item in items.iter().filter(|item| item.text().is_none()) {
                    add(expected(item, &format!("a target of `{key}`"), "an identifier or a path"));
                }
            }
        }
    }
}

pub(super) fn identifier_missing(view: &View<'_>, report: &mut Report<'_>) {
    let Some(scheme) = view.kind().and_then(|_| view.corpus.taxonomy.scheme_of(view.document.kind()?)) else { return };
    if view.document.id.is_none() {
        report.add(1, format!("no `id`; give it one of the form {}", scheme.template()));
    }
}

pub(super) fn identifier_pattern(view: &View<'_>, report: &mut Report<'_>) {
    let scheme = view.kind().and_then(|_| view.corpus.taxonomy.scheme_of(view.document.kind()?));
    if let (Some(scheme), Some(id)) = (scheme, &view.document.id)
        && !scheme.matches(id)
    {
        report.add(view.line_of("id"), format!("`{id}` does not have the form {}", scheme.template()));
    }
}

pub(super) fn identifier_duplicate(view: &View<'_>, report: &mut Report<'_>) {
    if let Some(id) = view.document.id.as_deref().filter(|_| view.document.class != Class::Unclassified)
        && let Some(first) = view.corpus.holder(id).filter(|first| first.path != view.document.path)
    {
        report.add(view.line_of("id"), format!("`{id}` names {} already; take the next free one", first.path));
    }
}

pub(super) fn facet_required_missing(view: &View<'_>, report: &mut Report<'_>) {
    for name in view.kind().map(|kind| &kind.facets).into_iter().flatten() {
        if view.facet(name).is_none_or(|node| node.text() == Some("")) {
            let place = if name == WARRANT { "provenance.warrant" } else { name };
            report.add(1, format!("`{place}` is missing; its kind requires it"));
        }
    }
}

pub(super) fn facet_value_not_permitted(view: &View<'_>, report: &mut Report<'_>) {
    if view.kind().is_none() {
        return;
    }
    for (name, facet) in &view.corpus.taxonomy.facets {
        if facet.role != Some(FacetRole::State) && name != WARRANT {
            view.hold_values(name, report);
        }
    }
    if let Some(kind) = view.document.kind()
        && let Some(own) = view.document.facet("kind").filter(|own| *own != kind)
    {
        let line = view.line_of("kind");
        report.add(line, format!("`kind` is `{own}` on a shelf of `{kind}`; remove the key or move the document"));
    }
}

pub(super) fn state_unknown(view: &View<'_>, report: &mut Report<'_>) {
    if let (Some(_), Some((name, _))) = (view.kind(), view.corpus.taxonomy.state()) {
        view.hold_values(name, report);
    }
}

pub(super) fn warrant_value_not_permitted(view: &View<'_>, report: &mut Report<'_>) {
    if view.kind().is_some() {
        view.hold_values(WARRANT, report);
    }
}

pub(super) fn section_required_missing(view: &View<'_>, report: &mut Report<'_>) {
    let Ok(body) = view.body else { return };
    for name in view.kind().map(|kind| &kind.sections).into_iter().flatten() {
        if !body.sections.contains(name) {
            report.add(1, format!("the section `## {name}` is missing; its kind requires it"));
        }
    }
}

pub(super) fn placement_unclassified(view: &View<'_>, report: &mut Report<'_>) {
    let Document { path, class: Class::Unclassified, malformed, front, .. } = view.document else { return };
    if path.contains(char::is_control) {
        return report.add(1, "its path has a control character in it; rename it".to_owned());
    }
    let Some((name, shelf)) = view.shelf() else {
        return report.add(1, "it has front matter and stands on no shelf; move it to one, or declare one".to_owned());
    };
    if malformed.is_some() {
        return;
    }
    let below = shelf.kind.as_ref().map(|kind| format!(" that is a `{kind}`")).unwrap_or_default();
    let found = match front.get("kind").and_then(Node::text) {
        Some(kind) => format!("`{kind}` is none"),
        None => "it names none".to_owned(),
    };
    report.add(view.line_of("kind"), format!("the shelf `{name}` takes a `kind:`{below} and not abstract; {found}"));
}
