//! Small corpora for tests: a valid one to start from, and what to put into it.

use super::{Corpus, LOCK, TAXONOMY, Taxonomy, lock};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// A taxonomy with a decision, an abstract note and its memo, and the three kinds of the measurement layer.
pub(crate) const SMALL: &str = "\
facets:
  title: {role: scent, required: true}
  status:
    role: state
    values:
      - {value: draft, role: initial}
      - {value: current, role: live}
      - {value: superseded, role: terminal-superseded}
  status_date: {role: state_entered}
  summary: {role: scent}
  probe_category: {values: [discovery, sufficiency, navigability, consistency]}
  expectation: {values: [opened, not_opened, cited, answered, patched]}
  oracle: {}
  tier: {values: [regression, campaign, documentation]}
  arm: {}
  warrant: {values: [recorded, written]}
identifier_schemes:
  decision: {pattern: '{namespace}-DR-{number}', namespace: WM, allocation: sequential}
  probe: {pattern: '{namespace}-PR-{number}', namespace: WM, allocation: sequential}
  run: {pattern: '{namespace}-RUN-{slug}', namespace: WM, allocation: slug}
  result: {pattern: '{namespace}-RES-{slug}', namespace: WM, allocation: slug}
kinds:
  governed:
    abstract: true
    facets: {require: [status, status_date]}
  decision:
    is_a: governed
    identifier: {scheme: decision}
    sections: {require: [Context, Decision]}
  note: {abstract: true}
  memo: {is_a: note}
  probe:
    is_a: governed
    identifier: {scheme: probe}
    facets: {require: [probe_category, expectation, oracle]}
    sections: {require: [Task, Expectation]}
  probe_transcript:
    is_a: governed
    identifier: {scheme: run}
    facets: {require: [tier, arm]}
    sections: {require: [Run identity, Events]}
  probe_result: {is_a: governed, identifier: {scheme: result}}
relations:
  supersedes: {family: governance, from: [decision], to: [decision]}
  examines: {family: measurement, from: [probe], to: [governed]}
shelves:
  decisions: {path: 'docs/decisions/**/*.md', homogeneous: true, kind: decision}
  notes: {path: docs/notes/*.md, homogeneous: false, kind: note}
  probes: {path: docs/probes/*.md, homogeneous: true, kind: probe}
  runs: {path: docs/probe-runs/*.md, homogeneous: true, kind: probe_transcript}
  results: {path: docs/probe-results/*.md, homogeneous: true, kind: probe_result}
";

/// A valid decision with `body` behind its sections.
pub(crate) fn decision(id: &str, body: &str) -> String {
    format!(
        "---\nid: {id}\ntitle: A decision\nstatus: current\nstatus_date: 2026-01-02\n---\n\n# A decision\n\n## Context\n\nWhy.\n\n## Decision\n\nWhat.\n\n{body}"
    )
}

/// A valid probe that expects `examines` (one target, by identifier or path) to be opened.
pub(crate) fn probe(id: &str, examines: &str) -> String {
    format!(
        "---\nid: {id}\ntitle: A probe\nstatus: current\nstatus_date: 2026-01-02\nprobe_category: discovery\nexpectation: opened\noracle: none\nrelations:\n  examines: [{examines}]\n---\n\n# A probe\n\n## Task\n\nFind it.\n\n## Expectation\n\nIt is opened.\n"
    )
}

/// A corpus in a directory of its own, removed with it.
pub(crate) struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    /// [`SMALL`], its lock, the decision `WM-DR-0001` (`docs/decisions/one.md`) and the probe `WM-PR-0001`
    /// (`docs/probes/find-one.md`) that examines it.
    pub(crate) fn minimal() -> Self {
        let site = Self { dir: tempfile::tempdir().unwrap() };
        site.write(TAXONOMY, SMALL);
        site.lock();
        site.write("docs/decisions/one.md", &decision("WM-DR-0001", ""));
        site.write("docs/probes/find-one.md", &probe("WM-PR-0001", "WM-DR-0001"));
        site
    }

    /// The absolute form of a path relative to the root.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() { self.dir.path().to_path_buf() } else { self.dir.path().join(path) }
    }

    /// Writes a file and the directories above it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Adds to a file.
    pub(crate) fn append(&self, path: &str, text: &str) {
        let mut file = fs::OpenOptions::new().append(true).open(self.path(path)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Writes the lock of the taxonomy as it stands.
    pub(crate) fn lock(&self) {
        let taxonomy = fs::read_to_string(self.path(TAXONOMY)).unwrap();
        self.write(LOCK, &lock::render(&Taxonomy::parse(&taxonomy).unwrap()));
    }

    /// The corpus as it stands.
    pub(crate) fn read(&self) -> Corpus {
        Corpus::read(self.dir.path()).unwrap()
    }
}
