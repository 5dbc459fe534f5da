//! Every rule of `headwater check`: one table, and one function for each.
//!
//! A requirement is held against typed documents, a link against every document. What a rule needs of a body is read
//! once for all rules, and no body is kept.
//!
//! - [`view`]: what a rule sees. [`documents`], [`references`]: the rules. [`output`]: the verb and its forms.

mod documents;
mod output;
mod references;
mod view;

use super::{Corpus, Document};
use documents::*;
use rayon::prelude::*;
use references::*;
use serde::Serialize;
use view::{Body, Pages, Read, View};

pub use output::{Args, run};

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A strict check fails on it.
    Error,
    /// A strict check passes.
    Warning,
}

impl Severity {
    /// As it is printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// What a rule reports about one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: &'static str,
    /// The path of the document, relative to the root.
    pub path: String,
    /// The one-based line.
    pub line: usize,
    /// The severity of the rule.
    pub severity: Severity,
    /// What is wrong and what to do about it.
    pub message: String,
}

/// One rule.
pub struct Rule {
    /// Its name.
    pub id: &'static str,
    /// How much its findings weigh.
    pub severity: Severity,
    /// What it holds, in one line.
    pub about: &'static str,
    check: fn(&View<'_>, &mut Report<'_>),
}

impl Rule {
    const fn error(id: &'static str, about: &'static str, check: fn(&View<'_>, &mut Report<'_>)) -> Self {
        Self { id, severity: Severity::Error, about, check }
    }

    const fn warning(id: &'static str, about: &'static str, check: fn(&View<'_>, &mut Report<'_>)) -> Self {
        Self { id, severity: Severity::Warning, about, check }
    }
}

const PLACEMENT: Rule = Rule::warning(
    "placement.unclassified",
    "a document stands on a shelf, and on one that admits its kind",
    placement_unclassified,
);

/// Every rule, in byte order of its name.
pub const RULES: &[Rule] = &[
    Rule::error("facet.required.missing", "a document has every facet that its kind requires", facet_required_missing),
    Rule::error("facet.value.not_permitted", "a facet with a closed set has a value of it", facet_value_not_permitted),
    Rule::error(
        "frontmatter.malformed",
        "front matter is YAML that means one thing, and its keys have their form",
        frontmatter_malformed,
    ),
    Rule::error("identifier.duplicate", "an identifier names one document", identifier_duplicate),
    Rule::error("identifier.missing", "a document of a kind with an identifier scheme has an `id`", identifier_missing),
    Rule::error("identifier.pattern", "an `id` has the form of its kind's scheme", identifier_pattern),
    Rule::error("link.fragment.missing", "the fragment of a link is a heading or an anchor", link_fragment_missing),
    Rule::error("link.target.missing", "a link leads to a file or directory below the root", link_target_missing),
    PLACEMENT,
    Rule::error(
        "relation.kind.not_permitted",
        "a relation is declared, and between kinds that it permits",
        relation_kind_not_permitted,
    ),
    Rule::error("relation.target.unknown", "a relation names a document or a file", relation_target_unknown),
    Rule::error("section.required.missing", "a document has every section of its kind", section_required_missing),
    Rule::error("state.unknown", "a state is one that the taxonomy declares", state_unknown),
    Rule::error(
        "warrant.value.not_permitted",
        "`provenance.warrant` has a value of the facet `warrant`",
        warrant_value_not_permitted,
    ),
];

/// Whether a name is that of a rule.
#[must_use]
pub fn is_rule(id: &str) -> bool {
    RULES.iter().any(|rule| rule.id == id)
}

/// Findings of one rule in one document that are listed; more of them are counted.
const LISTED: usize = 100;

/// Characters of a message.
const LONGEST: usize = 500;

/// Every finding of every rule, sorted by path, line and rule.
#[must_use]
pub fn check(corpus: &Corpus) -> Vec<Finding> {
    let bodies: Vec<Read> = corpus.documents.par_iter().map(|d| Body::read(corpus, d)).collect();
    let pages = Pages::gather(corpus, &bodies);
    let of_document = |(document, body): (&Document, &Read)| findings(&View { corpus, document, body, pages: &pages });
    let documents = corpus.documents.par_iter().zip(&bodies).flat_map_iter(of_document);
    let mut findings: Vec<Finding> = documents.collect();
    findings.extend(corpus.passed_over.iter().map(|passed| Finding {
        rule: PLACEMENT.id,
        path: passed.path.clone(),
        line: 1,
        severity: PLACEMENT.severity,
        message: format!("passed over: {}", passed.reason),
    }));
    findings.sort_by(|a, b| (&a.path, a.line, a.rule, &a.message).cmp(&(&b.path, b.line, b.rule, &b.message)));
    findings
}

/// Where a rule puts what it finds.
struct Report<'a> {
    rule: &'a Rule,
    path: &'a str,
    findings: &'a mut Vec<Finding>,
    count: usize,
}

impl Report<'_> {
    fn add(&mut self, line: usize, message: String) {
        self.count += 1;
        if self.count <= LISTED {
            self.push(line, message);
        }
    }

    fn push(&mut self, line: usize, mut message: String) {
        // A message quotes what the document says, and that may be all of it.
        if let Some((cut, _)) = message.char_indices().nth(LONGEST) {
            message.truncate(cut);
            message.push_str("...");
        }
        let Rule { id, severity, .. } = *self.rule;
        self.findings.push(Finding { rule: id, path: self.path.to_owned(), line, severity, message });
    }
}

fn findings(view: &View<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in RULES {
        let mut report = Report { rule, path: &view.document.path, findings: &mut findings, count: 0 };
        (rule.check)(view, &mut report);
        if report.count > LISTED {
            let more = report.count - LISTED;
            report.push(1, format!("{more} more findings of this rule in this document are not listed"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::output::{json, list, text};
    use super::*;
    use crate::cli::Format;
    use crate::cli::Root;
    use crate::corpus::testing::{Site, decision, probe};
    use crate::status::Status;
    use std::os::unix::fs::symlink;

    /// What a corpus with `text` at `path` reports, beside nothing else.
    fn report(path: &str, text: &str) -> Vec<String> {
        let site = Site::minimal();
        site.write(path, text);
        found(&site)
    }

    fn found(site: &Site) -> Vec<String> {
        check(&site.read()).iter().map(|f| text(f).trim_end().to_owned()).collect()
    }

    /// A decision with a change made to its text.
    fn changed(from: &str, to: &str) -> Vec<String> {
        let text = decision("WM-DR-0002", "");
        assert!(text.contains(from));
        report("docs/decisions/two.md", &text.replace(from, to))
    }

    fn one(findings: &[String], starts: &str, holds: &str) {
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].starts_with(&format!("docs/decisions/two.md:{starts}: ")), "{}", findings[0]);
        assert!(findings[0].contains(holds), "{}", findings[0]);
    }

    fn linking(body: &str) -> Vec<String> {
        report("docs/decisions/two.md", &decision("WM-DR-0002", body))
    }

    #[test]
    fn a_valid_corpus_reports_nothing() {
        assert_eq!(found(&Site::minimal()), Vec::<String>::new());
        assert_eq!(changed("status:", "provenance: {warrant: recorded}\nstatus:"), Vec::<String>::new());
    }

    #[test]
    fn front_matter_that_is_not_read_is_one_finding_at_its_line() {
        one(
            &changed("id: WM-DR-0002\n", "id: WM-DR-0002\nid: x\n"),
            "3: error[frontmatter.malformed]",
            "`id` stands twice",
        );
        one(&changed("---\n\n# A", "\n# A"), "1: error[frontmatter.malformed]", "never closed");
        one(
            &changed("---\nid: WM-DR-0002\n", "id: WM-DR-0002\n"),
            "1: error[frontmatter.malformed]",
            "no front matter",
        );
        one(&changed("id: WM-DR-0002", "id: !x y"), "2: error[frontmatter.malformed]", "tags (`!`) are not read");
        let shapes = changed("status:", "relations: {supersedes: WM-DR-0001}\nstatus:");
        one(&shapes, "4: error[frontmatter.malformed]", "`relations.supersedes` is a scalar; it has to be a list");
        one(&changed("status:", "relations: x\nstatus:"), "4: error[frontmatter.malformed]", "`relations` is a scalar");
        let item = changed("status:", "relations: {supersedes: [[a]]}\nstatus:");
        one(&item, "4: error[frontmatter.malformed]", "a target of `supersedes` is a list");
        let id = changed("id: WM-DR-0002", "id: [x]");
        assert!(
            id[0].contains("identifier.missing") && id[1].contains("2: error[frontmatter.malformed]: `id` is a list")
        );
    }

    #[test]
    fn an_identifier_is_there_once_and_has_the_form_of_its_scheme() {
        one(&changed("id: WM-DR-0002\n", ""), "1: error[identifier.missing]", "WM-DR-{number}");
        one(&changed("WM-DR-0002", "WM-DR-2"), "2: error[identifier.pattern]", "`WM-DR-2`");
        let twice = changed("WM-DR-0002", "WM-DR-0001");
        one(&twice, "2: error[identifier.duplicate]", "docs/decisions/one.md");
        let generated = report("docs/x.md", "---\nheadwater:generated: true\nid: WM-DR-0001\n---\n");
        assert!(generated[0].starts_with("docs/x.md:3: error[identifier.duplicate]"), "{generated:?}");
    }

    #[test]
    fn a_facet_that_is_required_is_there_and_a_closed_one_has_a_value_of_its_set() {
        one(&changed("title: A decision\n", ""), "1: error[facet.required.missing]", "`title`");
        one(&changed("title: A decision\n", "title: ''\n"), "1: error[facet.required.missing]", "`title`");
        one(&changed("title:", "tier: nightly\ntitle:"), "3: error[facet.value.not_permitted]", "regression, campaign");
        let list = changed("title:", "tier: [campaign, {a: b}]\ntitle:");
        one(&list, "3: error[facet.value.not_permitted]", "is a mapping");
        one(
            &changed("title:", "kind: memo\ntitle:"),
            "3: error[facet.value.not_permitted]",
            "on a shelf of `decision`",
        );
        one(&changed("status: current", "status: done"), "4: error[state.unknown]", "draft, current, superseded");
        one(&changed("status: current\n", ""), "1: error[facet.required.missing]", "`status`");
        let warrant = changed("title:", "provenance: {warrant: guessed}\ntitle:");
        one(&warrant, "3: error[warrant.value.not_permitted]", "recorded, written");
        one(&changed("## Decision", "### Decision"), "1: error[section.required.missing]", "## Decision");
        one(&changed("## Decision", "```\n## Decision\n```"), "1: error[section.required.missing]", "## Decision");
    }

    #[test]
    fn a_warrant_that_is_required_is_looked_for_under_provenance() {
        let site = Site::minimal();
        let taxonomy = crate::corpus::testing::SMALL.replace("warrant: {", "warrant: {required: true, ");
        site.write(crate::corpus::TAXONOMY, &taxonomy);
        assert_eq!(found(&site).len(), 2);
        assert!(found(&site)[0].contains("`provenance.warrant` is missing"));
    }

    #[test]
    fn a_relation_is_declared_and_names_what_it_permits() {
        let relation = |text: &str| changed("title:", &format!("relations: {{{text}}}\ntitle:"));
        assert_eq!(relation("supersedes: [WM-DR-0001]"), Vec::<String>::new());
        assert_eq!(relation("supersedes: [docs/decisions/one.md]"), Vec::<String>::new());
        one(&relation("supersedes: [WM-DR-0009]"), "3: error[relation.target.unknown]", "`WM-DR-0009` of `supersedes`");
        one(&relation("supersedes: [../x.md]"), "3: error[relation.target.unknown]", "`../x.md`");
        one(&relation("supersedes: [docs]"), "3: error[relation.target.unknown]", "`docs`");
        one(&relation("supersedes: [WM-PR-0001]"), "3: error[relation.kind.not_permitted]", "is a `probe`");
        one(
            &relation("supersede: [WM-DR-0001]"),
            "3: error[relation.kind.not_permitted]",
            "declared: examines, supersedes",
        );
        one(
            &relation("examines: [WM-DR-0001]"),
            "3: error[relation.kind.not_permitted]",
            "cannot stand in a `decision`",
        );
        assert_eq!(report("docs/probes/a.md", &probe("WM-PR-0002", "docs/probes/a.md")), Vec::<String>::new());
        assert_eq!(report("docs/probes/a.md", &probe("WM-PR-0002", ".headwater/taxonomy.yml")), Vec::<String>::new());
    }

    #[test]
    fn a_link_leads_to_what_stands_below_the_root() {
        let good = "[a](one.md) [b](/docs/probes/find-one.md#task) [c](../) [d](#context) [e](https://x.example/no)\n\
            ![f](../../docs/decisions/one.md) [g](one%2emd) [h](../../) [i][r]\n\n[r]: <one.md>\n";
        assert_eq!(linking(good), Vec::<String>::new());
        for (link, reason) in [
            ("nothing.md", "`docs/decisions/nothing.md`, and nothing stands there"),
            ("../../../etc/passwd", "leads out of the corpus"),
            ("one.md/", "ends in `/`"),
            ("%ff", "do not decode"),
            ("../../docs/decisions/one.md/x", "nothing stands there"),
        ] {
            one(&linking(&format!("[a]({link})\n")), "18: error[link.target.missing]", reason);
            one(&linking(&format!("![a][b]\n\n[b]: {link}\n")), "18: error[link.target.missing]", reason);
        }
    }

    #[test]
    fn a_link_is_not_followed_through_links_of_the_file_system() {
        let site = Site::minimal();
        symlink("/etc", site.path("docs/etc")).unwrap();
        symlink("one.md", site.path("docs/decisions/alias.md")).unwrap();
        symlink("/nowhere", site.path("docs/decisions/dangling.md")).unwrap();
        nix::unistd::mkfifo(&site.path("docs/fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let body = "[a](../etc/passwd)\n[b](alias.md)\n[c](dangling.md#x)\n[d](../fifo)\n";
        site.write("docs/decisions/two.md", &decision("WM-DR-0002", body));
        let findings = found(&site);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].contains(":18: ") && findings[0].contains("nothing stands there"));
        assert!(findings[1].contains(":21: ") && findings[1].contains("no file and no directory"));
    }

    #[test]
    fn a_fragment_is_held_against_pages_alone() {
        let site = Site::minimal();
        site.write("README.md", "# Read me\n\n<a id=\"here\"></a>\n");
        site.write("src/a.rs", "fn a() {}\n");
        site.write("docs/decisions/cut.md", "---\nid: x\n");
        let body = "[a](../../README.md#read-me) [b](../../README.md#here) [c](../../src/a.rs#L1) [d](one.md#)\n\
            [e](cut.md#x)\n[f](../../README.md#readme)\n[g](#Context)\n[h](one.md#decision-1)\n";
        site.write("docs/decisions/two.md", &decision("WM-DR-0002", body));
        let findings = found(&site);
        let fragments: Vec<_> = findings.iter().filter(|f| f.contains("link.fragment.missing")).collect();
        assert_eq!((findings.len(), fragments.len()), (4, 3), "{findings:?}");
        assert!(
            fragments[0].contains("two.md:20: ")
                && fragments[0].contains("`README.md` has no heading or anchor `readme`")
        );
        assert!(fragments[1].contains("two.md:21: ") && fragments[2].contains("two.md:22: "));
    }

    #[test]
    fn a_generated_document_has_its_links_checked_and_no_requirement() {
        let findings = report("docs/decisions/g.md", "---\nheadwater:generated: true\nstatus: x\n---\n[a](no.md)\n");
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("docs/decisions/g.md:5: error[link.target.missing]"));
    }

    #[test]
    fn what_stands_nowhere_is_a_warning_and_what_tools_put_there_is_nothing() {
        let at = |path: &str, text: &str| report(path, text);
        let note = "---\ntitle: x\n---\n";
        assert!(
            at("notes/a.md", note)[0].starts_with("notes/a.md:1: warning[placement.unclassified]: it has front matter")
        );
        assert!(at("notes/a.md", "---\nnot closed\n")[0].contains("warning[placement.unclassified]"));
        for (path, text) in
            [("README.md", note), ("CLAUDE.md", note), ("a/README.md", "---\nx\n"), ("notes/b.md", "# x\n")]
        {
            assert_eq!(at(path, text), Vec::<String>::new(), "{path}");
        }
        assert_eq!(at("README.md", "---\nid: x\n---\n").len(), 1);
        let kindless = at("docs/notes/a.md", "---\ntitle: x\nkind: decision\n---\n");
        assert!(
            kindless[0].starts_with("docs/notes/a.md:3: warning[placement.unclassified]: the shelf `notes` takes a"),
            "{kindless:?}"
        );
        let newline = at("docs/decisions/a\nb.md", &decision("WM-DR-0002", ""));
        assert!(
            newline[0]
                .starts_with("docs/decisions/a\\nb.md:1: warning[placement.unclassified]: its path has a control")
        );
    }

    #[test]
    fn what_the_walk_passed_over_is_reported() {
        let site = Site::minimal();
        let huge = std::fs::File::create(site.path("docs/decisions/huge.md")).unwrap();
        huge.set_len(1 << 40).unwrap();
        assert!(
            found(&site)[0]
                .starts_with("docs/decisions/huge.md:1: warning[placement.unclassified]: passed over: larger")
        );
    }

    #[test]
    fn findings_are_sorted_by_path_line_and_rule_whatever_the_threads() {
        let site = Site::minimal();
        for name in ["b", "a", "c"] {
            let text =
                decision("WM-DR-1", "[x](no.md)\n[x](one.md#no) [x](no.md)\n").replace("title: A decision\n", "");
            site.write(&format!("docs/decisions/{name}.md"), &text);
        }
        let with =
            |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(|| found(&site));
        let findings = with(1);
        assert_eq!(findings, with(4));
        let places: Vec<_> = findings[..6].iter().map(|f| f.split("]: ").next().unwrap()).collect();
        assert_eq!(
            places,
            [
                "docs/decisions/a.md:1: error[facet.required.missing",
                "docs/decisions/a.md:2: error[identifier.pattern",
                "docs/decisions/a.md:17: error[link.target.missing",
                "docs/decisions/a.md:18: error[link.fragment.missing",
                "docs/decisions/a.md:18: error[link.target.missing",
                "docs/decisions/b.md:1: error[facet.required.missing",
            ]
        );
    }

    #[test]
    fn a_document_of_a_million_defects_has_a_bounded_report() {
        let findings = linking(&"[x](no.md)\n".repeat(500));
        assert_eq!(findings.len(), LISTED + 1);
        assert!(findings[0].contains("two.md:1: error[link.target.missing]: 400 more findings"));
        let long = linking(&format!("[x]({})\n", "é".repeat(100_000)));
        assert!(long[0].chars().count() < LONGEST + 100 && long[0].ends_with("é..."));
    }

    #[test]
    fn a_message_cannot_forge_a_line() {
        let findings = linking("[x](<no\u{1b}[2Jmd>)\n");
        assert!(findings[0].contains("no\\u{1b}[2Jmd"), "{findings:?}");
    }

    #[test]
    fn the_json_form_has_the_keys_of_a_finding_in_their_order() {
        let finding = Finding {
            rule: "a.b",
            path: "x.md".into(),
            line: 3,
            severity: Severity::Warning,
            message: "m \"q\"".into(),
        };
        assert_eq!(
            json("findings", &[finding]).unwrap(),
            "{\"findings\":[{\"rule\":\"a.b\",\"path\":\"x.md\",\"line\":3,\"severity\":\"warning\",\"message\":\"m \\\"q\\\"\"}]}\n"
        );
        assert_eq!(json::<Finding>("findings", &[]).unwrap(), "{\"findings\":[]}\n");
    }

    #[test]
    fn every_rule_is_listed_once_and_in_order() {
        assert!(RULES.windows(2).all(|pair| pair[0].id < pair[1].id));
        for id in [
            "frontmatter.malformed",
            "identifier.missing",
            "identifier.duplicate",
            "identifier.pattern",
            "facet.required.missing",
            "facet.value.not_permitted",
            "section.required.missing",
            "relation.target.unknown",
            "relation.kind.not_permitted",
            "link.target.missing",
            "link.fragment.missing",
            "state.unknown",
            "warrant.value.not_permitted",
            "placement.unclassified",
        ] {
            assert!(is_rule(id), "{id}");
        }
        assert_eq!(list(Format::Text).unwrap().lines().count(), RULES.len());
        assert!(list(Format::Json).unwrap().starts_with("{\"rules\":[{\"rule\":\"facet.required.missing\""));
    }

    #[test]
    fn only_a_strict_check_says_no_and_only_to_an_error() {
        let site = Site::minimal();
        let status = |strict| {
            let root = Root { root: Some(site.path("")) };
            run(&Args { root, format: Format::Json, strict, rules: false }).unwrap()
        };
        site.write("notes/a.md", "---\ntitle: x\n---\n");
        assert_eq!((status(false), status(true)), (Status::Done, Status::Done));
        site.write("docs/decisions/two.md", "no front matter");
        assert_eq!((status(false), status(true)), (Status::Done, Status::No));
    }
}
