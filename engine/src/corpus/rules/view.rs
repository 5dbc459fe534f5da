//! What a rule sees: a document, its body as far as a rule needs it, and the pages that links lead to.

use super::Report;
use crate::corpus::census::{LARGEST, bounded_text};
use crate::corpus::document::Document;
use crate::corpus::links::{self, Lead, Link, Page};
use crate::corpus::shelf::Shelf;
use crate::corpus::taxonomy::{Kind, WARRANT};
use crate::corpus::{Corpus, CorpusError};
use headwater_contract::markdown;
use headwater_contract::yaml::{Entry, Node};
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// What rules need of a body.
pub(super) struct Body {
    /// The headings of the second rank, as a section is looked up.
    pub(super) sections: BTreeSet<String>,
    pub(super) page: Page,
}

impl Body {
    /// Reads the body of a document.
    ///
    /// # Errors
    /// With the reason, or with nothing where the front matter that is malformed is the reason.
    pub(super) fn read(corpus: &Corpus, document: &Document) -> Result<Self, Option<String>> {
        let text = match corpus.text(document) {
            Ok(text) => text,
            Err(_) if document.malformed.is_some() => return Err(None),
            Err(CorpusError { message, .. }) => return Err(Some(message)),
        };
        let body = markdown::split(&text).map_err(|_| None)?.body;
        let second = markdown::headings(body).filter(|h| h.level == 2);
        let sections = second.map(|h| h.text.to_owned()).collect();
        let page = links::page(body).map_err(|reason| Some(reason.to_owned()))?;
        Ok(Self { sections, page })
    }
}

pub(super) type Read = Result<Body, Option<String>>;

/// The fragments of every page that a link with a fragment may lead to, by path.
pub(super) struct Pages<'a> {
    documents: HashMap<&'a str, &'a BTreeSet<String>>,
    others: HashMap<String, BTreeSet<String>>,
}

impl<'a> Pages<'a> {
    pub(super) fn gather(corpus: &'a Corpus, bodies: &'a [Read]) -> Self {
        let read = || corpus.documents.iter().zip(bodies).filter_map(|(d, body)| Some((d, body.as_ref().ok()?)));
        let documents: HashMap<_, _> = read().map(|(d, body)| (d.path.as_str(), &body.page.fragments)).collect();
        let mut others = BTreeSet::new();
        for (document, body) in read() {
            for link in &body.page.links {
                if let Lead::Within { path, fragment: Some(_), .. } = links::lead(&document.path, &link.destination)
                    && path.ends_with(".md")
                    && corpus.by_path(&path).is_none()
                {
                    others.insert(path);
                }
            }
        }
        let read = |path: String| fragments(corpus, &path).map(|fragments| (path, fragments));
        Self { documents, others: others.into_par_iter().filter_map(read).collect() }
    }

    /// The fragments of a page, nothing where it is none or cannot be read.
    pub(super) fn of(&self, path: &str) -> Option<&BTreeSet<String>> {
        self.documents.get(path).copied().or_else(|| self.others.get(path))
    }
}

/// The fragments of a page that is no document.
fn fragments(corpus: &Corpus, path: &str) -> Option<BTreeSet<String>> {
    let file = corpus.files().file(path).ok()?;
    let text = bounded_text(file, LARGEST).ok()?;
    let body = markdown::split(&text).ok()?.body;
    Some(links::page(body).ok()?.fragments)
}

/// One document as the rules see it.
pub(super) struct View<'a> {
    pub(super) corpus: &'a Corpus,
    pub(super) document: &'a Document,
    pub(super) body: &'a Read,
    pub(super) pages: &'a Pages<'a>,
}

impl<'a> View<'a> {
    /// The kind that requirements are held against: of a typed document whose front matter is read.
    pub(super) fn kind(&self) -> Option<&'a Kind> {
        if self.document.malformed.is_some() {
            return None;
        }
        self.corpus.taxonomy.kind(self.document.kind()?)
    }

    pub(super) fn shelf(&self) -> Option<(&'a str, &'a Shelf)> {
        self.corpus.taxonomy.shelf_of(&self.document.path)
    }

    /// The value of a facet, where it is there and not null. The warrant stands under `provenance`.
    pub(super) fn facet(&self, name: &str) -> Option<&'a Node> {
        let front = &self.document.front;
        let holder = if name == WARRANT { front.get("provenance")? } else { front };
        holder.get(name).filter(|node| !node.is_null())
    }

    /// The relations of a typed document: name, line and targets with their lines.
    pub(super) fn relations(&self) -> impl Iterator<Item = (&'a Entry, &'a str, usize)> + use<'a> {
        let relations = self.kind().and_then(|_| self.document.front.get("relations")?.mapping()).unwrap_or_default();
        relations.iter().flat_map(|entry| {
            let targets = entry.value.sequence().unwrap_or_default();
            targets.iter().filter_map(move |node| Some((entry, node.text()?, node.line)))
        })
    }

    pub(super) fn line_of(&self, key: &str) -> usize {
        let entries = self.document.front.mapping().unwrap_or_default();
        entries.iter().find(|entry| entry.key == key).map_or(1, |entry| entry.line)
    }

    /// The links that lead below the root.
    pub(super) fn links(&self) -> impl Iterator<Item = (&'a Link, Lead)> + use<'a> {
        let from = &self.document.path;
        let links = self.body.as_ref().map_or(&[][..], |body| &body.page.links);
        links.iter().map(move |link| (link, links::lead(from, &link.destination)))
    }

    /// Reports what a facet holds that its closed set does not.
    pub(super) fn hold_values(&self, name: &str, report: &mut Report<'_>) {
        let values = self.corpus.taxonomy.facet(name).map_or(&[][..], |facet| &facet.values);
        let Some(node) = self.facet(name).filter(|_| !values.is_empty()) else { return };
        for node in node.sequence().unwrap_or(std::slice::from_ref(node)) {
            let found = match node.text() {
                Some(text) if values.iter().any(|v| v.value == text) => continue,
                Some(text) => format!("`{text}`"),
                None => node.what().to_owned(),
            };
            report
                .add(node.line, format!("`{name}` is {found}; permitted: {}", joined(values.iter().map(|v| &v.value))));
        }
    }
}

/// Names for a message.
pub(super) fn joined<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let names: Vec<_> = names.into_iter().map(String::as_str).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
