//! What makes a workspace pass the guard: everything goes that gives a probe of the batch away.
//!
//! The instrument goes, and the answer keys, and every file that names a probe and is no fold. For each document that
//! went, its claim goes and every line of another file that names it. A second seal finds nothing left to do.

use super::json;
use super::names::{Document, Mention, Names, Subject, identifier, is_document};
use super::tree::{Node, Tree, file_name, shown};
use crate::status::{Failure, Outcome, Status};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// Bytes of a file that lines are cut from. The guard searches larger ones too.
const CUT_LIMIT: u64 = 256 << 20;

/// What a seal did, in the order in which it did it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sealed {
    /// What it removed.
    pub removed: Vec<Removed>,
    /// What it cut.
    pub cut: Vec<Cut>,
    /// The slugs that it did not look for by themselves, and why.
    pub passed_over: Vec<String>,
}

/// Something that was removed, with everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Its path.
    pub path: Vec<u8>,
    /// Why.
    pub why: Why,
}

/// Why something was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It is of the instrument.
    Instrument,
    /// It is a declared answer key of the probe.
    AnswerKey(String),
    /// It names the probe.
    NamesProbe(String),
    /// It is the claim of a document that went.
    Claim(String),
    /// It is a link, or a file without lines, and names a document that went.
    NamesDocument(String),
}

/// A file that lost lines, or array elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Its path.
    pub path: Vec<u8>,
    /// How many it lost.
    pub count: usize,
    /// Whether they are array elements, else lines.
    pub elements: bool,
    /// The documents that they named.
    pub documents: Vec<String>,
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "removed {}: ", shown(&self.path))?;
        match &self.why {
            Why::Instrument => f.write_str("the instrument"),
            Why::AnswerKey(probe) => write!(f, "an answer key of {probe}"),
            Why::NamesProbe(probe) => write!(f, "it names {probe}"),
            Why::Claim(document) => write!(f, "the claim of {document}, which went"),
            Why::NamesDocument(document) => write!(f, "it names {document}, which went, and has no lines to cut"),
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.elements, self.count) {
            (true, 1) => "array element",
            (true, _) => "array elements",
            (false, 1) => "line",
            (false, _) => "lines",
        };
        let documents = self.documents.join(", ");
        write!(f, "cut {} {what} of {}: naming {documents}, which went", self.count, shown(&self.path))
    }
}

impl fmt::Display for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.removed.iter().try_for_each(|removed| writeln!(f, "{removed}"))?;
        self.cut.iter().try_for_each(|cut| writeln!(f, "{cut}"))?;
        self.passed_over.iter().try_for_each(|slug| writeln!(f, "passed over: {slug}"))
    }
}

/// Seals the tree at `workspace` for the probes of `names`.
///
/// # Errors
/// [`Status::AnswerKey`] where something cannot be searched, or a JSON file cannot lose what names a document;
/// [`Status::Internal`] where something cannot be removed or written. What was done until then stays done.
pub fn seal(workspace: &Path, names: &Names) -> Outcome<Sealed> {
    let mut sealing = Sealing { tree: Tree::open(workspace)?, sealed: Sealed::default() };
    for path in &names.declared.instrument {
        sealing.remove(path.as_bytes(), Why::Instrument)?;
    }
    for document in names.documents() {
        let probe = document.probe.clone();
        let why = if document.is_key { Why::AnswerKey(probe) } else { Why::NamesProbe(probe) };
        sealing.remove(&document.path, why)?;
    }
    let mut left = sealing.tree.walk(|_| false)?;
    let names = names.with(sealing.remove_what_names_a_probe(&mut left, names)?)?;
    sealing.remove_claims(&mut left, &names)?;
    sealing.cut_what_names_a_document(&mut left, &names)?;
    sealing.remove_empty_directories(&mut left, &names)?;
    sealing.sealed.passed_over = names.ambiguous().map(ToString::to_string).collect();
    Ok(sealing.sealed)
}

type Nodes = BTreeMap<Vec<u8>, Node>;

struct Sealing {
    tree: Tree,
    sealed: Sealed,
}

impl Sealing {
    fn remove(&mut self, path: &[u8], why: Why) -> Outcome<()> {
        if self.tree.remove(path)? {
            self.sealed.removed.push(Removed { path: path.to_vec(), why });
        }
        Ok(())
    }

    /// Gives the documents that went and that the corpus does not have.
    fn remove_what_names_a_probe(&mut self, left: &mut Nodes, names: &Names) -> Outcome<Vec<Document>> {
        let naming: Vec<(Vec<u8>, String)> = left
            .par_iter()
            .filter(|(path, node)| **node != Node::Directory && !names.declared.is_fold(path))
            .filter_map(|(path, node)| {
                let probe = names.probe_named(&self.tree, path, node);
                probe.map(|probe| probe.map(|probe| (path.clone(), probe))).transpose()
            })
            .collect::<Outcome<_>>()?;
        let mut found_here = Vec::new();
        for (path, probe) in naming {
            if is_document(&path) {
                let id = identifier(&self.tree, &path);
                found_here.push(Document { path: path.clone(), id, probe: probe.clone(), is_key: false });
            }
            self.remove(&path, Why::NamesProbe(probe))?;
            left.remove(&path);
        }
        Ok(found_here)
    }

    /// Removes the directories that name a probe and that nothing is left in.
    fn remove_empty_directories(&mut self, left: &mut Nodes, names: &Names) -> Outcome<()> {
        let naming: Vec<(Vec<u8>, String)> = left
            .iter()
            .filter(|(_, node)| **node == Node::Directory)
            .filter_map(|(path, _)| {
                names.in_path(path, |_| true).map(|mention| (path.clone(), names.label(mention.subject)))
            })
            .collect();
        // Backwards, so that a directory comes after those in it.
        for (path, probe) in naming.into_iter().rev() {
            let below = [path.as_slice(), b"/"].concat();
            let is_used = left.range(below.clone()..).next().is_some_and(|(next, _)| next.starts_with(&below));
            if !is_used {
                self.remove(&path, Why::NamesProbe(probe))?;
                left.remove(&path);
            }
        }
        Ok(())
    }

    fn remove_claims(&mut self, left: &mut Nodes, names: &Names) -> Outcome<()> {
        let claim = |path: &Vec<u8>| names.claimed_by(path).map(|document| (path.clone(), document.label()));
        let files = left.iter().filter(|(_, node)| **node != Node::Directory);
        let claims: Vec<_> = files.filter_map(|(path, _)| claim(path)).collect();
        for (path, document) in claims {
            self.remove(&path, Why::Claim(document))?;
            left.remove(&path);
        }
        Ok(())
    }

    fn cut_what_names_a_document(&mut self, left: &mut Nodes, names: &Names) -> Outcome<()> {
        let naming: Vec<(Vec<u8>, Node)> = left
            .par_iter()
            .filter_map(|(path, node)| {
                let mut named = false;
                let searched = names.search(&self.tree, path, node, |mention| named |= is_of_document(&mention));
                searched.map(|()| named.then(|| (path.clone(), node.clone()))).transpose()
            })
            .collect::<Outcome<_>>()?;
        for (path, node) in naming {
            if !self.cut(&path, &node, names)? {
                left.remove(&path);
            }
        }
        Ok(())
    }

    /// Says whether what names a document is still there, shorter.
    fn cut(&mut self, path: &[u8], node: &Node, names: &Names) -> Outcome<bool> {
        let whole = match node {
            Node::Link { target } => target.clone(),
            _ => self.tree.read(path, CUT_LIMIT).map_err(|why| self.tree.failure(path, why))?,
        };
        let mut documents = BTreeSet::new();
        let places = |bytes: &[u8], documents: &mut BTreeSet<String>| places(bytes, names, documents);
        let mut found = places(&whole, &mut documents);
        if matches!(node, Node::Link { .. }) || whole.contains(&0) {
            let documents = documents.into_iter().collect::<Vec<_>>().join(", ");
            self.remove(path, Why::NamesDocument(documents))?;
            return Ok(false);
        }
        let elements = is_json(path);
        let (mut rest, mut count) = (whole, 0);
        // Once, but for a name that was put together by the cut.
        while !found.is_empty() {
            let (shorter, cut) = match elements {
                true => json::without_elements(&rest, &found).map_err(|why| uncut(path, why))?,
                false => without_lines(&rest, &found),
            };
            (rest, count) = (shorter, count + cut);
            found = places(&rest, &mut documents);
        }
        self.tree.replace(path, &rest)?;
        let documents = documents.into_iter().collect();
        self.sealed.cut.push(Cut { path: path.to_vec(), count, elements, documents });
        Ok(true)
    }
}

fn is_of_document(mention: &Mention) -> bool {
    matches!(mention.subject, Subject::Document(_))
}

fn is_json(path: &[u8]) -> bool {
    file_name(path).to_ascii_lowercase().ends_with(b".json")
}

/// The offsets at which documents are named, ascending; their labels go to `documents`.
fn places(bytes: &[u8], names: &Names, documents: &mut BTreeSet<String>) -> Vec<usize> {
    let mut places = BTreeSet::new();
    names.in_bytes(bytes, |mention| {
        if is_of_document(&mention) {
            places.insert(usize::try_from(mention.start).unwrap_or(usize::MAX));
            documents.insert(names.label(mention.subject));
        }
    });
    places.into_iter().collect()
}

/// `bytes` without the lines in which `places` are, and how many those were. A line takes its line feed with it.
fn without_lines(bytes: &[u8], places: &[usize]) -> (Vec<u8>, usize) {
    let mut kept = Vec::with_capacity(bytes.len());
    let (mut at, mut count) = (0, 0);
    for place in places.iter().copied() {
        // On a line that went already.
        if place < at {
            continue;
        }
        let start = memchr::memrchr(b'\n', &bytes[..place]).map_or(0, |feed| feed + 1);
        let end = memchr::memchr(b'\n', &bytes[place..]).map_or(bytes.len(), |feed| place + feed + 1);
        kept.extend_from_slice(&bytes[at..start]);
        (at, count) = (end, count + 1);
    }
    kept.extend_from_slice(&bytes[at..]);
    (kept, count)
}

fn uncut(path: &[u8], why: json::Uncut) -> Failure {
    let message = format!("{}: it names a document that the seal removes, and {why}", shown(path));
    Failure::new(Status::AnswerKey, message)
        .remedy("make it JSON that names documents in elements of arrays, or take it out of the arm")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fixture::{self, declared};
    use crate::workspace::guard;
    use crate::workspace::manifest::{Entry, Manifest};
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    const PROBE: (&str, &str) = ("docs/probes/where-is-it.md", "---\nid: WM-PR-0001\n---\n");
    const KEY: (&str, &str) = ("docs/notes/survey-of-it.md", "---\nid: WM-NT-0001\n---\nfourteen months\n");

    fn names(corpus: &TempDir) -> Names {
        Names::gather(corpus.path(), declared("WM-PR-0001", &[KEY.0])).unwrap()
    }

    fn sealed(files: &[(&str, &str)]) -> (TempDir, Sealed) {
        let corpus = fixture::tree(&[&[PROBE, KEY], files].concat());
        let workspace = fixture::copy(&corpus);
        let names = names(&corpus);
        let sealed = seal(workspace.path(), &names).unwrap();
        guard::hold(corpus.path(), workspace.path(), &names).unwrap();
        (workspace, sealed)
    }

    fn removed(sealed: &Sealed) -> Vec<String> {
        sealed.removed.iter().map(|removed| shown(&removed.path)).collect()
    }

    #[test]
    fn the_instrument_the_answer_keys_and_what_names_the_probe_go() {
        let (workspace, sealed) = sealed(&[
            ("docs/decisions/a-ruling.md", "see where-is-it"),
            ("docs/decisions/another.md", "stays"),
            (".headwater/probe.yml", "leaks: {WM-PR-0001: [x]}"),
            ("bin/blob", "\0\u{1}WM-PR-0001\0"),
            ("src/where-is-it.rs", "fn f() {}"),
            ("tools/owners.txt", "WM-PR-0001 billing"),
            ("docs/tools/owners.txt", "WM-PR-0001 billing"),
        ]);
        assert_eq!(
            removed(&sealed),
            [
                "docs/probes",
                "docs/notes/survey-of-it.md",
                "docs/decisions/a-ruling.md",
                "docs/tools/owners.txt",
                ".headwater/probe.yml",
                "bin/blob",
                "src/where-is-it.rs",
            ]
        );
        assert!(workspace.path().join("docs/decisions/another.md").exists());
        assert!(workspace.path().join("tools/owners.txt").exists(), "a fold stays");
        assert_eq!(sealed.removed[1].to_string(), "removed docs/notes/survey-of-it.md: an answer key of WM-PR-0001");
        assert_eq!(sealed.removed[5].to_string(), "removed bin/blob: it names WM-PR-0001");
    }

    #[test]
    fn the_lines_that_name_a_document_that_went_go_and_no_others() {
        let index = "# Notes\r\n- [Survey](survey-of-it.md)\r\n- [Other](my-survey-of-it.md)\nWM-NT-0001: x\nWM-NT-00010\n\u{ff}";
        let (workspace, sealed) = sealed(&[("docs/notes/README.md", index), (".headwater/ids/WM-NT-0001", "claimed")]);
        let kept = fs::read_to_string(workspace.path().join("docs/notes/README.md")).unwrap();
        assert_eq!(kept, "# Notes\r\n- [Other](my-survey-of-it.md)\nWM-NT-00010\n\u{ff}");
        assert_eq!(sealed.cut.len(), 1);
        assert_eq!(sealed.cut[0].to_string(), "cut 2 lines of docs/notes/README.md: naming WM-NT-0001, which went");
        assert!(!workspace.path().join(".headwater/ids/WM-NT-0001").exists());
        assert!(
            sealed.to_string().contains("removed .headwater/ids/WM-NT-0001: the claim of WM-NT-0001, which went\n")
        );
    }

    #[test]
    fn a_json_file_loses_the_element_and_still_parses_or_the_seal_stops() {
        let list = "{\n  \"read\": [\n    {\"id\": \"WM-NT-0001\"},\n    {\"id\": \"WM-DR-0001\"}\n  ]\n}\n";
        let (workspace, sealed) = sealed(&[("config/list.json", list)]);
        let kept = fs::read_to_string(workspace.path().join("config/list.json")).unwrap();
        assert_eq!(kept, "{\n  \"read\": [\n    {\"id\": \"WM-DR-0001\"}\n  ]\n}\n");
        assert!(sealed.cut[0].elements && sealed.cut[0].count == 1);
        for text in ["{\"latest\": \"WM-NT-0001\"}", "[\"WM-NT-0001\",]"] {
            let corpus = fixture::tree(&[PROBE, KEY, ("config/list.json", text)]);
            let failure = seal(fixture::copy(&corpus).path(), &names(&corpus)).unwrap_err();
            assert_eq!(failure.status, Status::AnswerKey);
            assert!(failure.message.starts_with("config/list.json: ") && failure.remedy.is_some());
        }
    }

    #[test]
    fn a_link_or_a_file_without_lines_that_names_a_document_goes() {
        let corpus = fixture::tree(&[PROBE, KEY, ("data/index.bin", "\0survey-of-it.md\0"), ("kept", "")]);
        symlink("../docs/notes/survey-of-it.md", corpus.path().join("data/latest")).unwrap();
        symlink("docs/probes/where-is-it.md", corpus.path().join("probe")).unwrap();
        symlink("kept", corpus.path().join("link")).unwrap();
        let workspace = fixture::copy(&corpus);
        let sealed = seal(workspace.path(), &names(&corpus)).unwrap();
        assert_eq!(removed(&sealed), ["docs/probes", KEY.0, "probe", "data/index.bin", "data/latest"]);
        assert!(workspace.path().join("link").symlink_metadata().is_ok());
    }

    #[test]
    fn nothing_outside_the_workspace_is_touched_through_a_link() {
        let corpus = fixture::tree(&[PROBE, KEY]);
        let outside = fixture::tree(&[("survey-of-it.md", "WM-PR-0001"), ("list.md", "WM-NT-0001\n")]);
        let before = Manifest::take(outside.path()).unwrap();
        let workspace = fixture::tree(&[("a", "WM-NT-0001\n")]);
        symlink(outside.path(), workspace.path().join("out")).unwrap();
        symlink(outside.path().join("list.md"), workspace.path().join("list.md")).unwrap();
        fs::hard_link(outside.path().join("list.md"), workspace.path().join("hard")).unwrap();
        seal(workspace.path(), &names(&corpus)).unwrap();
        assert_eq!(fs::read(workspace.path().join("hard")).unwrap(), b"");
        assert_eq!(Manifest::take(outside.path()).unwrap(), before);
        let through = fixture::tree(&[]);
        symlink(outside.path(), through.path().join("docs")).unwrap();
        assert!(seal(through.path(), &names(&corpus)).is_err(), "docs/probes would be looked for behind a link");
        assert_eq!(Manifest::take(outside.path()).unwrap(), before);
    }

    #[test]
    fn what_cannot_be_searched_stops_the_seal() {
        let corpus = fixture::tree(&[PROBE, KEY]);
        let workspace = fixture::copy(&corpus);
        nix::unistd::mkfifo(&workspace.path().join("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let failure = seal(workspace.path(), &names(&corpus)).unwrap_err();
        assert_eq!(failure.status, Status::AnswerKey);
        assert!(failure.message.contains("has not finished"), "{}", failure.message);
    }

    #[test]
    fn documents_that_only_the_workspace_has_go_with_their_lines() {
        let corpus = fixture::tree(&[PROBE, KEY]);
        let workspace = fixture::tree(&[
            ("docs/new-finding.md", "---\nid: WM-NT-0009\n---\nWM-PR-0001"),
            ("README.md", "one\nWM-NT-0009\n"),
        ]);
        seal(workspace.path(), &names(&corpus)).unwrap();
        assert_eq!(fs::read(workspace.path().join("README.md")).unwrap(), b"one\n");
        assert!(!workspace.path().join("docs/new-finding.md").exists());
    }

    #[test]
    fn a_slug_that_is_not_looked_for_is_stated() {
        let (_workspace, sealed) =
            sealed(&[("docs/specs/survey-of-it.md", "another"), ("README.md", "survey-of-it.md")]);
        assert!(sealed.cut.is_empty());
        assert_eq!(sealed.passed_over.len(), 1);
        assert!(sealed.to_string().starts_with("removed docs/probes: the instrument\n"));
        assert!(
            sealed.to_string().contains("passed over: the slug `survey-of-it` of docs/notes/survey-of-it.md is also")
        );
    }

    const PATHS: [&str; 16] = [
        "docs/decisions/one.md",
        "docs/decisions/two-words.md",
        "docs/where-is-it/plan.md",
        "docs/specs/where-is-it.md",
        "docs/notes/other/survey-of-it.md",
        "README.md",
        "CLAUDE.md",
        "WM-PR-0001",
        "bin/blob",
        "config/list.json",
        "config/where-is-it/list.JSON",
        "tools/owners.txt",
        "tools/where-is-it/fold.txt",
        "tools/where-is-it/other.txt",
        ".headwater/ids/WM-NT-0001",
        ".headwater/ids/WM-DR-0001",
    ];

    const FRAGMENTS: [&str; 24] = [
        "WM-PR-0001",
        "WM-PR-00012",
        "xWM-PR-0001",
        "where-is-it",
        "probes/where-is-it.md",
        "WM-NT-0001",
        "WM-NT-00011",
        "survey-of-it.md",
        "survey-of-it",
        "one.md",
        "WM-DR-0001",
        "WM-DR-0002",
        "two-words.md",
        "\n",
        "\n",
        "\r\n",
        "\0",
        " ",
        "---\nid: WM-DR-0001\n---\n",
        "---\nid: WM-DR-0002\n---\n",
        "plain",
        "\"",
        ", ",
        "-",
    ];

    fn content() -> impl Strategy<Value = Vec<u8>> {
        let fragment = prop_oneof![
            9 => proptest::sample::select(&FRAGMENTS[..]).prop_map(|text| text.as_bytes().to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..3),
        ];
        proptest::collection::vec(fragment, 0..8).prop_map(|parts| parts.concat())
    }

    fn json() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(proptest::sample::select(&FRAGMENTS[..]), 0..6)
            .prop_map(|items| serde_json::to_vec_pretty(&serde_json::json!({ "list": [items, "WM-DR-0001"] })).unwrap())
    }

    #[derive(Debug, Clone)]
    enum Thing {
        File(Vec<u8>),
        Link(&'static str),
    }

    fn tree() -> impl Strategy<Value = BTreeMap<&'static str, Thing>> {
        let thing = proptest::sample::select(&PATHS[..]).prop_flat_map(|path| {
            let file = if is_json(path.as_bytes()) { json().boxed() } else { content().boxed() };
            let link = proptest::sample::select(&FRAGMENTS[..12]).prop_map(Thing::Link);
            (Just(path), prop_oneof![5 => file.prop_map(Thing::File), 1 => link])
        });
        proptest::collection::vec(thing, 0..10).prop_map(|things| things.into_iter().collect())
    }

    fn place(tree: &BTreeMap<&'static str, Thing>, at: &Path) {
        for (path, thing) in tree {
            let path = at.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match thing {
                Thing::File(content) => fs::write(path, content).unwrap(),
                Thing::Link(target) => symlink(std::ffi::OsStr::from_bytes(target.as_bytes()), path).unwrap(),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn a_sealed_tree_passes_the_guard_and_a_second_seal_does_nothing(in_corpus in tree(), only_here in tree()) {
            let corpus = fixture::tree(&[PROBE, KEY]);
            place(&in_corpus, corpus.path());
            let workspace = fixture::copy(&corpus);
            let only_here = only_here.into_iter().filter(|(path, _)| !in_corpus.contains_key(path)).collect();
            place(&only_here, workspace.path());
            let mut declared = declared("WM-PR-0001", &[KEY.0]);
            declared.folds.push("tools/where-is-it/fold.txt".to_owned());
            let names = Names::gather(corpus.path(), declared).unwrap();
            let before = Manifest::take(workspace.path()).unwrap();
            seal(workspace.path(), &names).unwrap();
            let after = Manifest::take(workspace.path()).unwrap();
            guard::hold(corpus.path(), workspace.path(), &names).unwrap();
            let again = seal(workspace.path(), &names).unwrap();
            prop_assert!(again.removed.is_empty() && again.cut.is_empty(), "{}", again);
            prop_assert_eq!(Manifest::take(workspace.path()).unwrap(), after.clone());
            // What names nothing is left as it was, and so are the folds but for lines that name a document.
            for (path, entry) in before.entries().filter(|(_, entry)| matches!(entry, Entry::File { .. })) {
                let text = fs::read(workspace.path().join(std::ffi::OsStr::from_bytes(path)));
                if names.declared.is_fold(path) && !text.as_ref().is_ok_and(|text| text.contains(&0)) {
                    let was = in_corpus.get(std::str::from_utf8(path).unwrap());
                    let binary = matches!(was, Some(Thing::File(content)) if content.contains(&0));
                    prop_assert!(text.is_ok() || binary || was.is_none(), "the fold {} went", shown(path));
                }
                let plain = matches!(path, b"docs/decisions/one.md" | b"README.md");
                let same = after.get(path) == Some(entry);
                let content = in_corpus.get(std::str::from_utf8(path).unwrap());
                if let (true, Some(Thing::File(content))) = (plain, content) {
                    let mut mentioned = false;
                    names.in_bytes(content, |_| mentioned = true);
                    let of_workspace = only_here.keys().any(|other: &&str| other.starts_with("docs/"));
                    prop_assert!(mentioned || same || of_workspace, "{} changed", shown(path));
                }
            }
        }
    }
}
