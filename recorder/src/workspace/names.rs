//! What gives a probe away in a tree: its own names, the documents that name it, the answer keys. Read from the corpus,
//! never from the workspace, and looked for by the seal and by the guard in the same way.
//!
//! A probe is named by its identifier or its slug, which is the stem of its file. A document that goes with it is named
//! by its identifier or its file name, as a whole name; but not by its file name where the slug is one word, or where a
//! file that stays carries it too. A slug of one word is a word of the language, so a probe is named by it only with its
//! directory (`probes/retention`).

use super::find::Finder;
use super::manifest::FILE_LIMIT;
use super::tree::{Node, Tree, Unread, covers, file_name, shown};
use crate::status::{Failure, Outcome, Status};
use headwater_contract::markdown;
use headwater_contract::plan::{PlannedProbe, Workspace};
use headwater_contract::yaml::{self, Limits};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;

/// Where the documents of a corpus are.
const DOCUMENTS: &[u8] = b"docs";
/// Where claims to identifiers are.
const CLAIMS: &[u8] = b".headwater/ids";
/// Bytes of a document whose identifier is read.
const DOCUMENT_LIMIT: u64 = 16 << 20;

/// What the policy of a corpus declares for the probes of a batch. Paths are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Declared {
    /// What no arm has.
    pub instrument: Vec<String>,
    /// Files outside `docs/` that may name a probe.
    pub folds: Vec<String>,
    /// The probes of the batch.
    pub probes: Vec<DeclaredProbe>,
}

/// One probe of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredProbe {
    /// Its identifier.
    pub id: String,
    /// Its path.
    pub path: String,
    /// What an earlier session wrote in answer to it.
    pub answer_keys: Vec<String>,
}

impl Declared {
    /// What the policy of a plan declares for `probes`.
    #[must_use]
    pub fn of(policy: &Workspace, probes: &[&PlannedProbe]) -> Self {
        let declared = |probe: &&PlannedProbe| DeclaredProbe {
            id: probe.id.clone(),
            path: probe.path.clone(),
            answer_keys: policy.answer_keys.get(&probe.id).cloned().unwrap_or_default(),
        };
        Self {
            instrument: policy.instrument.clone(),
            folds: policy.folds.clone(),
            probes: probes.iter().map(declared).collect(),
        }
    }

    /// Whether `path` is of the instrument.
    #[must_use]
    pub fn is_instrument(&self, path: &[u8]) -> bool {
        self.instrument.iter().any(|declared| covers(declared.as_bytes(), path))
    }

    /// Whether `path` may name a probe: a declared fold, and not under `docs/`.
    #[must_use]
    pub fn is_fold(&self, path: &[u8]) -> bool {
        !is_document(path) && self.folds.iter().any(|fold| fold.as_bytes() == path)
    }

    /// Whether a fold is below the directory `path`.
    #[must_use]
    pub fn has_fold_below(&self, path: &[u8]) -> bool {
        !is_document(path) && self.folds.iter().any(|fold| covers(path, fold.as_bytes()))
    }

    fn is_key(&self, path: &[u8]) -> bool {
        self.probes.iter().flat_map(|probe| &probe.answer_keys).any(|key| covers(key.as_bytes(), path))
    }
}

/// Whether a path is under `docs/`.
#[must_use]
pub fn is_document(path: &[u8]) -> bool {
    covers(DOCUMENTS, path)
}

/// A document that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its path.
    pub path: Vec<u8>,
    /// Its identifier, where one could be read.
    pub id: Option<String>,
    /// The probe for which it goes.
    pub probe: String,
    /// Whether it is declared as an answer key; else it names the probe.
    pub is_key: bool,
}

impl Document {
    /// What a message calls it.
    #[must_use]
    pub fn label(&self) -> String {
        self.id.clone().unwrap_or_else(|| shown(&self.path))
    }
}

/// A slug that is not looked for by itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ambiguous {
    /// The path of the probe or document.
    pub path: String,
    /// Its slug.
    pub slug: String,
    /// Another path with that slug; nothing where it is one word.
    pub shared_with: Option<String>,
}

impl fmt::Display for Ambiguous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the slug `{}` of {} ", self.slug, self.path)?;
        match &self.shared_with {
            None => f.write_str("is one word")?,
            Some(other) => write!(f, "is also that of {other}")?,
        }
        f.write_str(", so it is not looked for by itself")
    }
}

/// What is looked for, and what it is a name of.
#[derive(Debug)]
pub struct Names {
    /// What the policy declares.
    pub declared: Declared,
    documents: Vec<Document>,
    ambiguous: BTreeSet<Ambiguous>,
    patterns: Vec<Pattern>,
    finder: Finder,
    /// Each slug of the corpus with the paths that carry it, the instrument left out.
    slugs: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    text: Vec<u8>,
    subject: Subject,
    rule: Rule,
}

/// What a name is the name of: a position among the probes of the batch, or among the documents that go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A probe.
    Probe(usize),
    /// A document.
    Document(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Contained for the seal, a whole name for the guard.
    Contained,
    /// Anywhere.
    Anywhere,
    /// A whole name.
    Whole,
}

/// A place at which something is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mention {
    /// What is named.
    pub subject: Subject,
    /// The offset of the name.
    pub start: u64,
    /// Its one-based line.
    pub line: u64,
    /// Whether it is named, and not only contained in a longer name.
    pub named: bool,
    pattern: usize,
}

impl Names {
    /// Reads from the corpus at `root` what gives the probes of `declared` away.
    ///
    /// # Errors
    /// [`Status::AnswerKey`] where something under `docs/` cannot be searched.
    pub fn gather(root: &Path, declared: Declared) -> Outcome<Self> {
        let tree = Tree::open(root)?;
        let nodes = tree.walk(|name| name == b".git")?;
        let slugs = slugs(&nodes, &declared);
        let mut ambiguous = BTreeSet::new();
        let patterns = patterns_of_probes(&declared, &mut ambiguous);
        let mut documents = keys(&tree, &nodes, &declared);
        let names = Self::made(declared, Vec::new(), ambiguous, patterns, slugs)?;
        let searched = nodes.par_iter().filter(|(path, node)| {
            let declared = &names.declared;
            is_document(path) && **node != Node::Directory && !declared.is_instrument(path) && !declared.is_key(path)
        });
        let naming: Vec<Document> = searched
            .filter_map(|(path, node)| {
                let document =
                    |probe| Document { path: path.clone(), id: identifier(&tree, path), probe, is_key: false };
                names.probe_named(&tree, path, node).map(|probe| probe.map(document)).transpose()
            })
            .collect::<Outcome<_>>()?;
        documents.extend(naming);
        names.with(documents)
    }

    /// The same names, and those of `more` documents that go too.
    ///
    /// # Errors
    /// Where the names are too many for one search.
    pub fn with(&self, more: Vec<Document>) -> Outcome<Self> {
        let documents = self.documents.iter().cloned().chain(more).collect();
        let probes = self.patterns.iter().filter(|p| matches!(p.subject, Subject::Probe(_))).cloned().collect();
        Self::made(self.declared.clone(), documents, self.ambiguous.clone(), probes, self.slugs.clone())
    }

    fn made(
        declared: Declared,
        documents: Vec<Document>,
        mut ambiguous: BTreeSet<Ambiguous>,
        mut patterns: Vec<Pattern>,
        slugs: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    ) -> Outcome<Self> {
        let gone: BTreeSet<&Vec<u8>> = documents.iter().map(|document| &document.path).collect();
        let staying = staying(&slugs, |path| gone.contains(path));
        for (at, document) in documents.iter().enumerate() {
            let subject = Subject::Document(at);
            if let Some(id) = document.id.as_ref().filter(|id| !id.is_empty()) {
                patterns.push(Pattern { text: id.clone().into_bytes(), subject, rule: Rule::Whole });
            }
            match ambiguity(&document.path, &staying) {
                None => patterns.push(Pattern { text: file_name(&document.path).to_vec(), subject, rule: Rule::Whole }),
                Some(why) => drop(ambiguous.insert(why)),
            }
        }
        let finder = Finder::new(&patterns.iter().map(|pattern| &pattern.text).collect::<Vec<_>>())?;
        Ok(Self { declared, documents, ambiguous, patterns, finder, slugs })
    }

    /// The documents that go: the answer keys, and what names a probe.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The slugs that are not looked for by themselves.
    pub fn ambiguous(&self) -> impl Iterator<Item = &Ambiguous> {
        self.ambiguous.iter()
    }

    /// The identifier of a probe, or the label of a document.
    #[must_use]
    pub fn label(&self, subject: Subject) -> String {
        match subject {
            Subject::Probe(at) => self.declared.probes[at].id.clone(),
            Subject::Document(at) => self.documents[at].label(),
        }
    }

    /// The name that stands at a mention.
    #[must_use]
    pub fn text(&self, mention: &Mention) -> &[u8] {
        &self.patterns[mention.pattern].text
    }

    /// The first mention of a probe in a path, where `accept` holds for it. A file name is as good a place as a line.
    pub fn in_path(&self, path: &[u8], accept: impl Fn(&Mention) -> bool) -> Option<Mention> {
        let mut first = None;
        self.in_bytes(path, |mention| {
            if matches!(mention.subject, Subject::Probe(_)) && accept(&mention) {
                first.get_or_insert(mention);
            }
        });
        first
    }

    /// The document whose claim to its identifier `path` is.
    #[must_use]
    pub fn claimed_by(&self, path: &[u8]) -> Option<&Document> {
        let mut claimed = None;
        if path != CLAIMS && covers(CLAIMS, path) {
            self.in_bytes(&path[CLAIMS.len()..], |mention| {
                if let Subject::Document(at) = mention.subject {
                    claimed.get_or_insert(&self.documents[at]);
                }
            });
        }
        claimed
    }

    /// Gives every mention in `bytes` to `visit`.
    pub fn in_bytes(&self, bytes: &[u8], mut visit: impl FnMut(Mention)) {
        // A slice is read to its end and gives no error.
        let _ = self.in_reader(bytes, &mut visit);
    }

    fn in_reader(&self, reader: impl io::Read, visit: &mut impl FnMut(Mention)) -> io::Result<()> {
        self.finder.in_reader(reader, |found| {
            let Pattern { subject, rule, .. } = self.patterns[found.name];
            if found.whole || rule != Rule::Whole {
                let named = found.whole || rule == Rule::Anywhere;
                visit(Mention { subject, start: found.start, line: found.line, named, pattern: found.name });
            }
        })
    }

    /// Gives every mention in the content of a file or the text of a link to `visit`.
    ///
    /// # Errors
    /// [`Status::AnswerKey`] where it cannot be searched: such a search has not finished.
    pub fn search(&self, tree: &Tree, path: &[u8], node: &Node, mut visit: impl FnMut(Mention)) -> Outcome<()> {
        let searched = match node {
            Node::Directory => Ok(()),
            Node::Link { target } => {
                self.in_bytes(target, visit);
                Ok(())
            }
            Node::File { size, .. } if *size > FILE_LIMIT => Err(Unread::TooLarge(FILE_LIMIT)),
            Node::File { .. } => tree
                .open_file(path)
                .and_then(|(file, size)| self.in_reader(io::Read::take(file, size), &mut visit).map_err(Unread::from)),
            Node::Special(kind) => return Err(unsearched(tree, path, format!("it is {kind}"))),
            Node::Unlisted(why) => Err(*why),
        };
        searched.map_err(|why| unsearched(tree, path, why))
    }

    /// The probe that something names, or contains the identifier of, in its path, its content or its text.
    ///
    /// # Errors
    /// As [`Names::search`].
    pub fn probe_named(&self, tree: &Tree, path: &[u8], node: &Node) -> Outcome<Option<String>> {
        let mut first = self.in_path(path, |_| true);
        if first.is_none() {
            self.search(tree, path, node, |mention| {
                if matches!(mention.subject, Subject::Probe(_)) {
                    first.get_or_insert(mention);
                }
            })?;
        }
        Ok(first.map(|mention| self.label(mention.subject)))
    }
}

fn unsearched(tree: &Tree, path: &[u8], why: impl fmt::Display) -> Failure {
    let path = shown(path);
    Failure::new(
        Status::AnswerKey,
        format!("{}/{path} could not be searched, so the search has not finished: {why}", tree.path().display()),
    )
    .remedy("make it a file that can be read, or remove it")
}

fn patterns_of_probes(declared: &Declared, ambiguous: &mut BTreeSet<Ambiguous>) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for (at, probe) in declared.probes.iter().enumerate() {
        let path = probe.path.as_bytes();
        let mut push = |text: &[u8], rule| {
            if !text.is_empty() {
                patterns.push(Pattern { text: text.to_vec(), subject: Subject::Probe(at), rule });
            }
        };
        push(probe.id.as_bytes(), Rule::Contained);
        // A slug that a file shares is looked for all the same: that file may be what gives the probe away.
        match ambiguity(path, &BTreeMap::new()) {
            None => push(stem(path), Rule::Anywhere),
            Some(why) => {
                push(place(path), Rule::Whole);
                ambiguous.insert(why);
            }
        }
    }
    patterns
}

/// Why the slug of `path` does not name it by itself.
fn ambiguity(path: &[u8], staying: &BTreeMap<&[u8], &[u8]>) -> Option<Ambiguous> {
    let slug = stem(path);
    let one_word = String::from_utf8_lossy(slug).chars().all(char::is_alphanumeric);
    let other = staying.get(slug).copied().filter(|other| *other != path);
    (one_word || other.is_some()).then(|| Ambiguous {
        path: shown(path),
        slug: shown(slug),
        shared_with: other.filter(|_| !one_word).map(shown),
    })
}

/// The file name of a path without its extension.
fn stem(path: &[u8]) -> &[u8] {
    let name = file_name(path);
    match name.iter().rposition(|byte| *byte == b'.') {
        Some(dot) if dot > 0 => &name[..dot],
        _ => name,
    }
}

/// The last directory and the slug of a path, empty where it has no directory.
fn place(path: &[u8]) -> &[u8] {
    let slug = path.len() - file_name(path).len();
    let above = path[..slug.saturating_sub(1)].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    if slug == 0 { b"" } else { &path[above..slug + stem(path).len()] }
}

fn slugs(nodes: &BTreeMap<Vec<u8>, Node>, declared: &Declared) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut slugs: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (path, node) in nodes {
        if *node != Node::Directory && !declared.is_instrument(path) {
            slugs.entry(stem(path).to_vec()).or_default().push(path.clone());
        }
    }
    slugs
}

/// Each slug with the first path that carries it and does not go.
fn staying<'s>(
    slugs: &'s BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    goes: impl Fn(&Vec<u8>) -> bool,
) -> BTreeMap<&'s [u8], &'s [u8]> {
    let first = |paths: &'s Vec<Vec<u8>>| paths.iter().find(|path| !goes(path)).map(Vec::as_slice);
    slugs.iter().filter_map(|(slug, paths)| Some((slug.as_slice(), first(paths)?))).collect()
}

/// The declared answer keys as documents, those that are directories with everything in them.
fn keys(tree: &Tree, nodes: &BTreeMap<Vec<u8>, Node>, declared: &Declared) -> Vec<Document> {
    let mut keys: BTreeMap<Vec<u8>, Document> = BTreeMap::new();
    let mut add = |path: &[u8], probe: &DeclaredProbe| {
        let document =
            Document { path: path.to_vec(), id: identifier(tree, path), probe: probe.id.clone(), is_key: true };
        keys.entry(path.to_vec()).or_insert(document);
    };
    for probe in &declared.probes {
        for key in probe.answer_keys.iter().map(String::as_bytes) {
            let inside = nodes.range(key.to_vec()..).take_while(|(path, _)| path.starts_with(key));
            let inside = inside.filter(|(path, node)| covers(key, path) && **node != Node::Directory);
            inside.for_each(|(path, _)| add(path, probe));
            if nodes.get(key) != Some(&Node::Directory) {
                add(key, probe);
            }
        }
    }
    keys.into_values().collect()
}

/// The identifier that the front matter of a document states.
pub(super) fn identifier(tree: &Tree, path: &[u8]) -> Option<String> {
    let text = String::from_utf8(tree.read(path, DOCUMENT_LIMIT).ok()?).ok()?;
    let front_matter = markdown::split(&text).ok()?.front_matter?;
    let node = yaml::read(front_matter, Limits::DOCUMENT).ok()?;
    node.get("id")?.text().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fixture::{self, declared};
    use std::os::unix::fs::symlink;

    fn documents(names: &Names) -> Vec<(String, Option<&str>, bool)> {
        names.documents().iter().map(|d| (shown(&d.path), d.id.as_deref(), d.is_key)).collect()
    }

    fn mentions(names: &Names, text: &str) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        names.in_bytes(text.as_bytes(), |mention| found.push((names.label(mention.subject), mention.named)));
        found
    }

    #[test]
    fn the_documents_that_go_are_the_answer_keys_and_what_names_the_probe() {
        let corpus = fixture::tree(&[
            ("docs/probes/where-is-it.md", "---\nid: WM-PR-0001\n---\n"),
            ("docs/probes/other-probe.md", "---\nid: WM-PR-0002\n---\nlike WM-PR-0001"),
            ("docs/notes/survey-of-it.md", "---\nid: WM-NT-0001\n---\n"),
            ("docs/decisions/by-id.md", "---\nid: WM-DR-0001\n---\nsee WM-PR-0001."),
            ("docs/decisions/by-slug.md", "---\nid: WM-DR-0002\n---\n(../probes/where-is-it.md)"),
            ("docs/decisions/where-is-it-not.md", "---\nid: WM-DR-0003\n---\n"),
            ("docs/decisions/stays-here.md", "---\nid: WM-DR-0004\n---\nWM-PR-0002"),
            ("README.md", "WM-PR-0001"),
            (".git/x", "WM-PR-0001"),
        ]);
        let names = Names::gather(corpus.path(), declared("WM-PR-0001", &["docs/notes/survey-of-it.md"])).unwrap();
        assert_eq!(
            documents(&names),
            [
                ("docs/notes/survey-of-it.md".into(), Some("WM-NT-0001"), true),
                ("docs/decisions/by-id.md".into(), Some("WM-DR-0001"), false),
                ("docs/decisions/by-slug.md".into(), Some("WM-DR-0002"), false),
                ("docs/decisions/where-is-it-not.md".into(), Some("WM-DR-0003"), false),
            ]
        );
    }

    #[test]
    fn a_document_is_named_by_identifier_or_file_name_and_only_whole() {
        let corpus = fixture::tree(&[("docs/notes/survey-of-it.md", "---\nid: WM-NT-0001\n---\n")]);
        let names = Names::gather(corpus.path(), declared("WM-PR-0001", &["docs/notes/survey-of-it.md"])).unwrap();
        for text in ["WM-NT-0001", "[x](../notes/survey-of-it.md#a)", "survey-of-it.md"] {
            assert_eq!(mentions(&names, text), [("WM-NT-0001".to_owned(), true)], "{text}");
        }
        for text in ["WM-NT-00012", "survey-of-it", "my-survey-of-it.md", "survey-of-it.mdx"] {
            assert!(mentions(&names, text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_slug_of_one_word_names_a_probe_only_with_its_directory() {
        let corpus = fixture::tree(&[("docs/a.md", "retention"), ("docs/b.md", "../probes/retention.md")]);
        let mut declared = declared("WM-PR-0001", &[]);
        declared.probes[0].path = "docs/probes/retention.md".to_owned();
        let names = Names::gather(corpus.path(), declared).unwrap();
        assert_eq!(documents(&names), [("docs/b.md".into(), None, false)]);
        let said: Vec<_> = names.ambiguous().map(ToString::to_string).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[1].contains("`retention`") && said[1].contains("is one word"), "{said:?}");
    }

    #[test]
    fn a_slug_that_a_file_shares_is_a_name_of_neither_unless_that_file_goes() {
        let shared = [("docs/notes/survey-of-it.md", ""), ("docs/specs/survey-of-it.md", "")];
        let corpus = fixture::tree(&shared);
        let key = declared("WM-PR-0001", &["docs/notes/survey-of-it.md"]);
        let names = Names::gather(corpus.path(), key.clone()).unwrap();
        assert!(mentions(&names, "survey-of-it.md").is_empty());
        assert_eq!(
            names.ambiguous().next().unwrap().to_string(),
            "the slug `survey-of-it` of docs/notes/survey-of-it.md is also that of docs/specs/survey-of-it.md, so it is not \
             looked for by itself"
        );
        let corpus = fixture::tree(&[shared[0], ("docs/specs/survey-of-it.md", "WM-PR-0001")]);
        let names = Names::gather(corpus.path(), key).unwrap();
        assert_eq!(mentions(&names, "survey-of-it.md").len(), 2);
    }

    #[test]
    fn a_slug_of_a_probe_that_a_file_shares_is_looked_for_all_the_same() {
        let corpus = fixture::tree(&[("docs/specs/where-is-it.md", "a spec"), ("docs/a.md", "where-is-it")]);
        let names = Names::gather(corpus.path(), declared("WM-PR-0001", &[])).unwrap();
        assert_eq!(names.documents().len(), 2);
    }

    #[test]
    fn an_identifier_inside_a_longer_one_is_contained_and_not_named() {
        let corpus = fixture::tree(&[]);
        let names = Names::gather(corpus.path(), declared("WM-PR-0001", &[])).unwrap();
        assert_eq!(mentions(&names, "WM-PR-00012"), [("WM-PR-0001".to_owned(), false)]);
        assert_eq!(mentions(&names, "WM-PR-0001"), [("WM-PR-0001".to_owned(), true)]);
        let path = b"WM-PR-00012/WM-PR-0001";
        assert_eq!(names.in_path(path, |mention| mention.named).unwrap().start, 12);
    }

    #[test]
    fn a_claim_is_a_file_under_the_claims_that_carries_the_identifier_of_a_document_that_goes() {
        let corpus = fixture::tree(&[("docs/notes/survey-of-it.md", "---\nid: WM-NT-0001\n---\n")]);
        let names = Names::gather(corpus.path(), declared("WM-PR-0001", &["docs/notes/survey-of-it.md"])).unwrap();
        for path in [".headwater/ids/WM-NT-0001", ".headwater/ids/NT/WM-NT-0001.yml"] {
            assert_eq!(names.claimed_by(path.as_bytes()).unwrap().path, b"docs/notes/survey-of-it.md");
        }
        for path in [".headwater/ids/WM-NT-00011", ".headwater/ids", "ids/WM-NT-0001"] {
            assert!(names.claimed_by(path.as_bytes()).is_none(), "{path}");
        }
    }

    #[test]
    fn an_answer_key_that_is_a_directory_is_every_file_in_it() {
        let corpus =
            fixture::tree(&[("docs/keys/one-key.md", ""), ("docs/keys/x/two-keys.md", ""), ("docs/keys-not.md", "")]);
        let names = Names::gather(corpus.path(), declared("WM-PR-0001", &["docs/keys", "docs/absent-key.md"])).unwrap();
        let paths: Vec<_> = documents(&names).into_iter().map(|(path, ..)| path).collect();
        assert_eq!(paths, ["docs/absent-key.md", "docs/keys/one-key.md", "docs/keys/x/two-keys.md"]);
    }

    #[test]
    fn a_corpus_whose_documents_cannot_be_searched_is_refused() {
        let corpus = fixture::tree(&[("docs/a.md", "")]);
        symlink("/etc/passwd", corpus.path().join("docs/link")).unwrap();
        assert!(Names::gather(corpus.path(), declared("WM-PR-0001", &[])).is_ok(), "a link is its text");
        nix::unistd::mkfifo(&corpus.path().join("docs/fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let failure = Names::gather(corpus.path(), declared("WM-PR-0001", &[])).unwrap_err();
        assert_eq!(failure.status, Status::AnswerKey);
        assert!(failure.message.contains("docs/fifo") && failure.message.contains("a FIFO"), "{}", failure.message);
    }
}
