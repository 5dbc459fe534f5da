//! A probe document read into what it declares.
//!
//! A declaration that cannot be run is not an error here: what could be read is kept, and each thing that is wrong is
//! one of the refusals of a plan.

mod answers;

use super::policy;
use super::refusals::Reason;
use crate::corpus::census::Target as Found;
use crate::corpus::{Corpus, CorpusError, Document, rules};
use headwater_contract::keys::{Category, Expectation};
use headwater_contract::markdown::{self, Piece};
use headwater_contract::plan::{Refusal, Target};
use headwater_contract::yaml;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The kind of a probe document.
pub const KIND: &str = "probe";

/// What a probe declares, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The identifier, where there is one and it is one line of text.
    pub id: Option<String>,
    /// The path, relative to the root.
    pub path: String,
    /// What the probe is about.
    pub category: Option<Category>,
    /// The form of its expectation.
    pub expectation: Option<Expectation>,
    /// The rule the probe names; `none` counts as no rule.
    pub oracle: Option<String>,
    /// What it examines, in the order of the document, each path once. A target that is neither an identifier nor a
    /// file of the corpus stands here as it was written, without an identifier.
    pub examines: Vec<Target>,
    /// The closed set of answers of a probe that expects `answered`, in the order of the document; empty where it
    /// could not be read.
    pub answers: Vec<String>,
    /// The expected part of the closed set.
    pub expected: Vec<String>,
    /// The prompt: the body of the section `Task`, word for word, without the blank lines before and after.
    pub task: String,
    /// What keeps the probe from being run, in the order of [`super::refusals::REFUSALS`]. What only a policy can
    /// tell is not here.
    pub defects: Vec<Refusal>,
}

impl Declared {
    /// The closed set of answers and the expected part of it, where both are as `answered` needs them.
    #[must_use]
    pub fn closed_set(&self) -> Option<(&[String], &[String])> {
        let proper = answers::is_proper(&self.answers, &self.expected);
        (self.expectation == Some(Expectation::Answered) && proper).then_some((&self.answers, &self.expected))
    }
}

/// Every probe of a corpus, in byte order of the identifier and then of the path; those without an identifier first.
///
/// # Errors
/// Where the text of a probe cannot be read.
pub fn all(corpus: &Corpus) -> Result<Vec<Declared>, CorpusError> {
    let mut probes = corpus.of_kind(KIND).map(|document| read(corpus, document)).collect::<Result<Vec<_>, _>>()?;
    probes.sort_by(|a, b| (&a.id, &a.path).cmp(&(&b.id, &b.path)));
    Ok(probes)
}

/// Reads a probe document.
///
/// # Errors
/// Where the text of the document cannot be read.
pub fn read(corpus: &Corpus, document: &Document) -> Result<Declared, CorpusError> {
    let text = corpus.text(document)?;
    let body = markdown::split(&text).map_or(Piece { text: "", line: 1 }, |split| split.body);
    let mut probe = Declared {
        id: document.id.clone().filter(|id| is_one_line(id)),
        path: document.path.clone(),
        category: None,
        expectation: None,
        oracle: document.facet("oracle").filter(|o| *o != "none").map(str::to_owned),
        examines: Vec::new(),
        answers: Vec::new(),
        expected: Vec::new(),
        task: markdown::section(body, 2, "Task").map_or("", |section| trimmed(section.text)).to_owned(),
        defects: Vec::new(),
    };
    probe.read_identity(document);
    probe.read_form(document);
    probe.read_oracle();
    probe.read_answers(markdown::section(body, 2, "Expectation"));
    probe.read_targets(corpus, document);
    Ok(probe)
}

impl Declared {
    /// The probe in a message: by identifier and path, or by path alone.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.id {
            Some(id) => format!("the probe `{id}` ({})", one_line(&self.path)),
            None => format!("the probe at {}", one_line(&self.path)),
        }
    }

    fn defect(&mut self, reason: Reason, what: impl AsRef<str>) {
        let message = format!("{} {}", self.name(), what.as_ref());
        self.defects.push(reason.refusal(message));
    }

    fn read_identity(&mut self, document: &Document) {
        if self.id.is_none() {
            let what = match (&document.malformed, &document.id) {
                (Some((line, why)), _) => {
                    &format!("has front matter that is not read: line {line}: {why}; correct it there")
                }
                (_, None) => "has no identifier; give its front matter an `id`",
                _ => "has an identifier that is empty or holds a control character; write one line of text",
            };
            self.defect(Reason::ProbeNoIdentifier, what);
        }
        match document.facet("probe_category").map(str::parse) {
            None => self.defect(
                Reason::CategoryMissing,
                format!("has no category; give it a `probe_category`, one of {}", members(Category::ALL)),
            ),
            Some(Err(e)) => self.defect(Reason::CategoryUnknown, format!("names a `probe_category`: {e}")),
            Some(Ok(category)) => self.category = Some(category),
        }
    }

    fn read_form(&mut self, document: &Document) {
        match document.facet("expectation").map(str::parse) {
            None => self.defect(
                Reason::ExpectationMissing,
                format!("has no expectation; give it an `expectation`, one of {}", members(Expectation::ALL)),
            ),
            Some(Err(e)) => self.defect(Reason::ExpectationUnknown, format!("names an `expectation`: {e}")),
            Some(Ok(form)) => self.expectation = Some(form),
        }
        if self.task.is_empty() {
            self.defect(Reason::TaskMissing, "has no task; write the prompt under `## Task`");
        }
    }

    fn read_oracle(&mut self) {
        if self.expectation != Some(Expectation::Patched) {
            return;
        }
        match self.oracle.clone() {
            None => self.defect(
                Reason::OracleMissing,
                "expects `patched` and names no rule to hold the artifact to; name one as its `oracle`",
            ),
            Some(oracle) if !rules::is_rule(&oracle) => self.defect(
                Reason::OracleUnknown,
                format!(
                    "names the oracle `{}`, which is no rule of this engine; `headwater check --rules` lists them",
                    one_line(&oracle)
                ),
            ),
            Some(_) => {}
        }
    }

    fn read_answers(&mut self, section: Option<Piece<'_>>) {
        match self.expectation {
            None => {}
            Some(Expectation::Answered) => match answers::read(section) {
                Ok((answers, expected)) => (self.answers, self.expected) = (answers, expected),
                Err(answers::Defect::NoSet(why)) => self.defect(
                    Reason::NoClosedSet,
                    format!(
                        "expects `answered` and declares no closed set: {why}; write one `yaml` block with `answers` \
                         and `expected` under `## Expectation`"
                    ),
                ),
                Err(answers::Defect::NotProper(answers, why)) => {
                    self.answers = answers;
                    let remedy = "list some of the `answers` under `expected`, and not all of them";
                    self.defect(
                        Reason::ExpectedNotProper,
                        format!("expects no proper part of its answers: {why}; {remedy}"),
                    );
                }
            },
            Some(form) => {
                if let Some(line) = section.and_then(answers::line) {
                    let what = format!("expects `{form}` and declares answers on line {line}");
                    self.defect(Reason::AnswersUnused, format!("{what}; remove them, or expect `answered`"));
                }
            }
        }
    }

    fn read_targets(&mut self, corpus: &Corpus, document: &Document) {
        let mut targets = Vec::new();
        for written in document.relation("examines") {
            let (target, found) = resolve(corpus, written);
            if found || policy::unsafe_path(written).is_none() {
                targets.push((target, found));
            } else {
                let what = "is neither an identifier nor a path inside the corpus; write one of them";
                self.defect(Reason::TargetUnsafe, format!("examines `{}`, which {what}", one_line(written)));
            }
        }
        if let Some(form @ (Expectation::Opened | Expectation::NotOpened | Expectation::Cited)) = self.expectation {
            self.hold_documents(corpus, form, &targets);
        }
        let mut seen = BTreeSet::new();
        self.examines = targets.into_iter().map(|(t, _)| t).filter(|t| seen.insert(t.path.clone())).collect();
    }

    /// An expectation about documents that are not there is one about nothing: it would be missed, or met, always.
    fn hold_documents(&mut self, corpus: &Corpus, form: Expectation, targets: &[(Target, bool)]) {
        for (target, _) in targets.iter().filter(|(_, found)| !found) {
            let what =
                format!("examines `{}`, which is no document and no file of this corpus", one_line(&target.path));
            self.defect(Reason::NoDocument, format!("expects `{form}` and {what}; correct the target"));
        }
        // What a recorder looks for in an artifact are the identifiers of typed documents.
        let citable = |t: &Target| t.id.as_ref().is_some_and(|id| corpus.by_identifier(id).is_some());
        let lacks = match form {
            Expectation::Cited if !targets.iter().any(|(t, _)| citable(t)) => "no typed document with an identifier",
            _ if targets.is_empty() => "no document",
            _ => return,
        };
        let remedy = "name one under `relations`, `examines`";
        self.defect(Reason::NoDocument, format!("expects `{form}` and examines {lacks}; {remedy}"));
    }
}

/// A target as written, resolved, and whether there is anything that it stands for.
fn resolve(corpus: &Corpus, written: &str) -> (Target, bool) {
    match corpus.target(written) {
        Some(Found::Document(document)) => (Target { path: document.path.clone(), id: document.id.clone() }, true),
        found => (Target { path: written.to_owned(), id: None }, found.is_some()),
    }
}

fn members<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn is_one_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.chars().any(char::is_control)
}

/// A text as it is shown within one line: as it is, or quoted and escaped where it holds a control character.
pub(super) fn one_line(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) { yaml::scalar(text) } else { Cow::Borrowed(text) }
}

/// A section's text without the blank lines before and after; the lines between keep every byte.
fn trimmed(text: &str) -> &str {
    let Some(first) = text.find(|c: char| !c.is_whitespace()) else {
        return "";
    };
    let start = text[..first].rfind('\n').map_or(0, |i| i + 1);
    let last = text.trim_end().len();
    let end = text[last..].find('\n').map_or(text.len(), |i| last + i);
    text[start..end].trim_end_matches('\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::testing::{Site, probe};
    use proptest::prelude::*;

    const PATH: &str = "docs/probes/find-one.md";

    /// The probe of the smallest corpus, with a part of its text replaced.
    fn declared(from: &str, to: &str) -> Declared {
        let site = Site::minimal();
        let text = probe("WM-PR-0001", "WM-DR-0001");
        assert!(text.contains(from), "{from}");
        site.write(PATH, &text.replacen(from, to, 1));
        let corpus = site.read();
        read(&corpus, corpus.by_path(PATH).unwrap()).unwrap()
    }

    fn ids(probe: &Declared) -> Vec<&str> {
        probe.defects.iter().map(|d| d.id.as_str()).collect()
    }

    #[test]
    fn a_probe_is_read_into_what_it_declares() {
        let probe = declared("", "");
        assert_eq!((probe.id.as_deref(), probe.path.as_str()), (Some("WM-PR-0001"), PATH));
        assert_eq!((probe.category, probe.expectation), (Some(Category::Discovery), Some(Expectation::Opened)));
        let one = Target { path: "docs/decisions/one.md".into(), id: Some("WM-DR-0001".into()) };
        assert_eq!((probe.examines, probe.oracle), (vec![one], None));
        assert_eq!((probe.task.as_str(), &probe.defects[..]), ("Find it.", &[][..]));
    }

    #[test]
    fn a_document_that_is_named_twice_is_examined_once() {
        let probe = declared("[WM-DR-0001]", "[docs/decisions/one.md, WM-DR-0001, docs/decisions/one.md]");
        assert_eq!(probe.examines.len(), 1);
        assert_eq!(probe.examines[0].id.as_deref(), Some("WM-DR-0001"));
    }

    #[test]
    fn what_could_be_read_stands_beside_what_is_wrong() {
        let broken = "expectation: answered\noracle: link.target.missing";
        let probe = declared("expectation: opened\noracle: none", broken);
        assert_eq!((ids(&probe), probe.closed_set()), (vec!["no-closed-set"], None));
        assert_eq!((probe.examines.len(), probe.oracle.as_deref()), (1, Some("link.target.missing")));
        let block = "answered\n---\n## Expectation\n```yaml\nanswers: [a, b]\nexpected: [a, b]\n```\n";
        let probe = declared("opened\n", block);
        assert_eq!(ids(&probe), ["expected-not-proper"]);
        assert_eq!((probe.answers, probe.expected), (vec!["a".to_owned(), "b".to_owned()], Vec::new()));
    }

    #[test]
    fn a_probe_whose_front_matter_is_not_read_declares_nothing() {
        for malformed in ["id: WM-PR-0001\nid: WM-PR-0002\n", "id: [WM-PR-0001\n"] {
            let probe = declared("id: WM-PR-0001\n", malformed);
            assert_eq!(ids(&probe), ["probe-no-identifier", "category-missing", "expectation-missing"], "{malformed}");
            assert!(probe.defects[0].message.contains("front matter that is not read: line "), "{malformed}");
        }
    }

    #[test]
    fn a_task_loses_the_blank_lines_around_it_and_nothing_else() {
        for (section, task) in [
            ("\nDo it.\n\n", "Do it."),
            ("\n \t\n    indented\n\n  last  \n \n", "    indented\n\n  last  "),
            ("\r\nDo it.\r\n\r\n", "Do it."),
            ("no line feed at the end", "no line feed at the end"),
            (" \n\t\n", ""),
            ("", ""),
        ] {
            assert_eq!(trimmed(section), task, "{section:?}");
        }
    }

    proptest! {
        #[test]
        fn the_lines_of_a_task_are_whole_lines_of_its_section(section in "[a \t\r\n]{0,40}") {
            let task = trimmed(&section);
            prop_assert_eq!(trimmed(task), task);
            prop_assert_eq!(task.is_empty(), section.trim().is_empty());
            let lines = |text: &str| text.split('\n').map(|l| l.trim_end_matches('\r').to_owned()).collect::<Vec<_>>();
            let (section, task) = (lines(&section), lines(task));
            let is_part = section.windows(task.len()).any(|w| w == task.as_slice());
            prop_assert!(is_part || task == [""]);
        }
    }
}
