//! The rules about what a document refers to: relations and links.

use super::Report;
use super::view::{View, joined};
use crate::corpus::links::Lead;
use crate::corpus::tree::What;
use crate::corpus::{Corpus, Target};
use headwater_contract::yaml::Node;
use std::collections::BTreeSet;

pub(super) fn relation_target_unknown(view: &View<'_>, report: &mut Report<'_>) {
    for (entry, target, line) in view.relations() {
        if view.corpus.target(target).is_none() {
            let message = "is neither an identifier of a document nor a path of a file below the root";
            report.add(line, format!("`{target}` of `{}` {message}", entry.key));
        }
    }
}

pub(super) fn relation_kind_not_permitted(view: &View<'_>, report: &mut Report<'_>) {
    let taxonomy = &view.corpus.taxonomy;
    let admits = |kinds: &BTreeSet<String>, kind| kinds.iter().any(|above| taxonomy.is_a(kind, above));
    let (Some(_), Some(own)) = (view.kind(), view.document.kind()) else { return };
    let entries = view.document.front.get("relations").and_then(Node::mapping).unwrap_or_default();
    for entry in entries {
        match taxonomy.relation(&entry.key) {
            None => {
                let declared = joined(taxonomy.relations.keys());
                report.add(entry.line, format!("`{}` is no relation; declared: {declared}", entry.key));
            }
            Some(relation) if !admits(&relation.from, own) => {
                let from = joined(&relation.from);
                report.add(entry.line, format!("`{}` cannot stand in a `{own}`; it is from: {from}", entry.key));
            }
            Some(_) => {}
        }
    }
    for (entry, target, line) in view.relations() {
        if let Some(relation) = taxonomy.relation(&entry.key)
            && let Some(Target::Document(document)) = view.corpus.target(target)
            && let Some(kind) = document.kind().filter(|kind| !admits(&relation.to, kind))
        {
            let to = joined(&relation.to);
            report.add(line, format!("`{target}` of `{}` is a `{kind}`; it names: {to}", entry.key));
        }
    }
}

pub(super) fn link_target_missing(view: &View<'_>, report: &mut Report<'_>) {
    for (link, lead) in view.links() {
        let reason = match lead {
            Lead::External => continue,
            Lead::Outside => "leads out of the corpus; link what is below its root, or by a URL".to_owned(),
            Lead::Undecodable => "is no path: its percent escapes do not decode to text".to_owned(),
            Lead::Within { path, directory, .. } => match found(view.corpus, &path) {
                Some(What::File) if directory => format!("ends in `/`, and `{path}` is a file"),
                Some(What::Special) => format!("leads to `{path}`, which is no file and no directory"),
                Some(_) => continue,
                None => format!("leads to `{path}`, and nothing stands there"),
            },
        };
        report.add(link.line, format!("`{}` {reason}", link.destination));
    }
}

/// What stands at a path. A link on the way is not followed, so what is behind it does not stand there.
fn found(corpus: &Corpus, path: &str) -> Option<What> {
    if corpus.by_path(path).is_some() {
        return Some(What::File);
    }
    corpus.files().what(path).ok()
}

pub(super) fn link_fragment_missing(view: &View<'_>, report: &mut Report<'_>) {
    for (link, lead) in view.links() {
        if let Lead::Within { path, fragment: Some(fragment), .. } = lead
            && let Some(fragments) = view.pages.of(&path)
            && !fragments.contains(&fragment)
        {
            report.add(link.line, format!("`{}`: `{path}` has no heading or anchor `{fragment}`", link.destination));
        }
    }
}
