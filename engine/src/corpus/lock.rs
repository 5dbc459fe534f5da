//! The lock: the canonical resolved taxonomy, one text for every taxonomy that means the same.
//!
//! Names stand in byte order, inheritance is resolved, and every scalar goes through the one encoder. The order in
//! which values and sections are declared is kept, because a reader of the taxonomy gives it a meaning.

use super::census::bounded_text;
use super::scheme::Scheme;
use super::shelf::Shelf;
use super::taxonomy::{Facet, Kind, Relation, Taxonomy};
use super::tree::Tree;
use super::{Corpus, CorpusError, LOCK, TAXONOMY};
use crate::cli::{self, Root};
use crate::status::{Failure, Outcome, Status};
use headwater_contract::digest::Digest;
use headwater_contract::yaml::{flow, scalar};
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};

/// A lock of more bytes than this is none.
const LARGEST: usize = 64 << 20;
const REMEDY: &str = "run `headwater lock`";

/// The arguments of `headwater lock`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  headwater lock\n  headwater lock --check --root corpus")]
pub struct Args {
    #[command(flatten)]
    root: Root,
    /// Write nothing; exit 1 and name the first line that differs where the lock is not the taxonomy's
    #[arg(long)]
    check: bool,
}

/// Runs `headwater lock`.
///
/// # Errors
/// Where the taxonomy cannot be read, or the lock cannot be read or written.
pub fn run(args: &Args) -> Outcome<Status> {
    let root = args.root.find()?;
    let (tree, taxonomy) = Taxonomy::read(&root)?;
    let wanted = render(&taxonomy);
    let found = read(&tree).map_err(|e| unreadable(&e))?;
    let difference = difference(found.as_deref(), &wanted);
    let digest = Digest::of(wanted.as_bytes());
    match (difference, args.check) {
        (None, _) => cli::print(&format!("{LOCK} is the lock of {TAXONOMY}: {digest}\n"))?,
        (Some(difference), true) => {
            cli::print(&format!("{difference}\n"))?;
            return Ok(Status::No);
        }
        (Some(_), false) => {
            write(&tree, &wanted).map_err(|e| {
                Failure::io(root.join(LOCK).display(), e).remedy("make room, or make .headwater a writable directory")
            })?;
            cli::print(&format!("{LOCK} is written: {digest}\n"))?;
        }
    }
    Ok(Status::Done)
}

/// The digest of the lock of a corpus, held to the taxonomy beside it.
pub(super) fn hold(corpus: &Corpus) -> Result<Digest, CorpusError> {
    let wanted = render(&corpus.taxonomy);
    let found = read(corpus.files()).map_err(|e| unreadable(&e))?;
    match difference(found.as_deref(), &wanted) {
        None => Ok(Digest::of(wanted.as_bytes())),
        Some(difference) => Err(CorpusError::new(difference).remedy(REMEDY)),
    }
}

fn unreadable(error: &io::Error) -> CorpusError {
    CorpusError::new(format!("{LOCK}: {error}")).remedy(format!("remove it and {REMEDY}"))
}

/// The text of the lock, nothing where there is none.
fn read(tree: &Tree) -> io::Result<Option<String>> {
    match tree.file(LOCK) {
        Ok(file) => bounded_text(file, LARGEST).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// What keeps `found` from being the lock that is `wanted`.
fn difference(found: Option<&str>, wanted: &str) -> Option<String> {
    let Some(found) = found else {
        return Some(format!("{LOCK} is not there"));
    };
    if found == wanted {
        return None;
    }
    let (mut left, mut right) = (found.split_inclusive('\n'), wanted.split_inclusive('\n'));
    let mut line = 0;
    loop {
        line += 1;
        let (left, right) = (left.next(), right.next());
        if left != right || left.is_none() {
            let show = |text: Option<&str>| match text {
                Some(text) => text.trim().escape_debug().take(200).collect(),
                None => "(the end)".to_owned(),
            };
            return Some(format!(
                "{LOCK} is not the lock of {TAXONOMY}: line {line} differs\n  lock:     {}\n  taxonomy: {}",
                show(left),
                show(right)
            ));
        }
    }
}

/// Puts the lock in its place, whole or not at all.
fn write(tree: &Tree, text: &str) -> io::Result<()> {
    let (parent, name) = LOCK.rsplit_once('/').unwrap_or((".", LOCK));
    let directory = tree.directory(parent)?;
    let temporary = format!(".{name}.{}", std::process::id());
    let written = write_as(directory.as_fd(), &temporary, text)
        .and_then(|()| Ok(renameat(&directory, temporary.as_str(), &directory, name)?));
    if written.is_err() {
        // What failed is reported; that the rest of it cannot be removed either adds nothing.
        let _ = unlinkat(&directory, temporary.as_str(), UnlinkatFlags::NoRemoveDir);
    }
    written?;
    File::from(directory).sync_all()
}

fn write_as(directory: BorrowedFd<'_>, name: &str, text: &str) -> io::Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file = File::from(openat(directory, name, flags, Mode::from_bits_truncate(0o666))?);
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The lock of a taxonomy.
#[must_use]
pub fn render(taxonomy: &Taxonomy) -> String {
    let mut out =
        String::from("# The resolved form of taxonomy.yml. Written by `headwater lock`; not edited by hand.\n");
    named(&mut out, "facets", &taxonomy.facets, facet);
    named(&mut out, "identifier_schemes", &taxonomy.schemes, scheme);
    named(&mut out, "kinds", &taxonomy.kinds, kind);
    named(&mut out, "relations", &taxonomy.relations, relation);
    named(&mut out, "shelves", taxonomy.shelves.iter(), shelf);
    out
}

fn named<'a, N, T: 'a>(
    out: &mut String,
    section: &str,
    members: impl IntoIterator<Item = (N, &'a T)>,
    render: impl Fn(&mut Fields<'_>, &T),
) where
    N: AsRef<str>,
{
    let mut members = members.into_iter().peekable();
    let none = if members.peek().is_none() { " {}" } else { "" };
    let _ = writeln!(out, "{section}:{none}");
    for (name, member) in members {
        let _ = writeln!(out, "  {}:", scalar(name.as_ref()));
        render(&mut Fields(out), member);
    }
}

/// The fields of one member. They are written in byte order of the key by whoever calls.
struct Fields<'a>(&'a mut String);

impl Fields<'_> {
    fn raw(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.0, "    {key}: {value}");
    }

    fn text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.raw(key, &scalar(text));
        }
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.raw(key, if value { "true" } else { "false" });
    }

    fn list<S: AsRef<str>>(&mut self, key: &str, items: impl IntoIterator<Item = S>) {
        self.raw(key, &flow(items));
    }
}

fn facet(out: &mut Fields<'_>, facet: &Facet) {
    out.flag("required", facet.required);
    out.text("role", facet.role.map(super::taxonomy::FacetRole::as_str));
    if !facet.values.is_empty() {
        let _ = writeln!(out.0, "    values:");
        for value in &facet.values {
            let role = value.role.as_ref().map(|role| format!("role: {}, ", scalar(role))).unwrap_or_default();
            let _ = writeln!(out.0, "      - {{{role}value: {}}}", scalar(&value.value));
        }
    }
    out.text("volatility", facet.volatility.as_deref());
}

fn scheme(out: &mut Fields<'_>, scheme: &Scheme) {
    out.text("allocation", Some(scheme.allocation.as_str()));
    out.text("namespace", Some(&scheme.namespace));
    out.text("pattern", Some(&scheme.pattern));
}

fn kind(out: &mut Fields<'_>, kind: &Kind) {
    out.flag("abstract", kind.is_abstract);
    out.list("facets", &kind.facets);
    out.text("identifier", kind.scheme.as_deref());
    out.list("is_a", &kind.ancestors);
    out.list("sections", &kind.sections);
}

fn relation(out: &mut Fields<'_>, relation: &Relation) {
    out.text("family", Some(&relation.family));
    out.list("from", &relation.from);
    out.list("to", &relation.to);
}

fn shelf(out: &mut Fields<'_>, shelf: &Shelf) {
    out.flag("homogeneous", shelf.homogeneous);
    out.text("kind", shelf.kind.as_deref());
    out.text("path", Some(&shelf.path));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::declared;
    use crate::corpus::taxonomy::FacetValue;
    use crate::corpus::testing::{SMALL, Site};
    use std::fs;

    fn rendered(text: &str) -> String {
        render(&Taxonomy::parse(text).unwrap())
    }

    fn lock(site: &Site, check: bool) -> Outcome<Status> {
        run(&Args { root: Root { root: Some(site.path("")) }, check })
    }

    #[test]
    fn a_lock_is_sorted_resolved_yaml() {
        let text = "
kinds:
  b: {is_a: a, facets: {require: [z, y]}, sections: {require: [Z, Y]}}
  a: {abstract: true, identifier: {scheme: s}, sections: {require: [X]}}
facets: {z: {role: state, values: [{value: no, role: live}, b]}, y: {required: true}}
identifier_schemes: {s: {pattern: '{namespace}-{slug}', namespace: W, allocation: slug}}
relations: {r: {family: f, to: [b, a], from: []}}
shelves: {s: {kind: b, path: docs/*.md, homogeneous: true}}
";
        let expected = "\
# The resolved form of taxonomy.yml. Written by `headwater lock`; not edited by hand.
facets:
  \"y\":
    required: true
  z:
    required: false
    role: state
    values:
      - {role: live, value: \"no\"}
      - {value: b}
identifier_schemes:
  s:
    allocation: slug
    namespace: W
    pattern: \"{namespace}-{slug}\"
kinds:
  a:
    abstract: true
    facets: [\"y\"]
    identifier: s
    is_a: []
    sections: [X]
  b:
    abstract: false
    facets: [\"y\", z]
    identifier: s
    is_a: [a]
    sections: [X, Z, \"Y\"]
relations:
  r:
    family: f
    from: []
    to: [a, b]
shelves:
  s:
    homogeneous: true
    kind: b
    path: \"docs/*.md\"
";
        assert_eq!(rendered(text), expected);
        assert!(rendered("").ends_with("kinds: {}\nrelations: {}\nshelves: {}\n"));
    }

    #[test]
    fn what_means_the_same_has_one_lock_and_what_does_not_has_another() {
        let reordered = "kinds: {b: {}, a: {}}\n# a comment\nfacets: {}\n";
        assert_eq!(rendered("facets:\nkinds:\n  a:\n  b:\n"), rendered(reordered));
        assert_ne!(rendered("facets: {a: {values: [x, y]}}\n"), rendered("facets: {a: {values: [y, x]}}\n"));
    }

    proptest::proptest! {
        #[test]
        fn a_lock_is_yaml_whatever_the_names_are(name in "\\PC{1,12}", value in "[^\0]{1,12}", role in ".{1,8}") {
            let facet = Facet {
                values: vec![FacetValue { value: value.clone(), role: Some(role.clone()) }],
                volatility: Some(value.clone()),
                ..Facet::default()
            };
            let taxonomy = Taxonomy { facets: [(name.clone(), facet)].into(), ..Taxonomy::default() };
            let node = declared::read("lock", &render(&taxonomy)).unwrap();
            let facet = node.get("facets").and_then(|f| f.get(&name)).unwrap();
            let first = &facet.get("values").and_then(|v| v.sequence()).unwrap()[0];
            proptest::prop_assert_eq!(first.get("value").and_then(|v| v.text()), Some(value.as_str()));
            proptest::prop_assert_eq!(first.get("role").and_then(|v| v.text()), Some(role.as_str()));
            proptest::prop_assert_eq!(facet.get("volatility").and_then(|v| v.text()), Some(value.as_str()));
        }
    }

    #[test]
    fn the_lock_of_a_corpus_is_the_digest_of_its_bytes() {
        let site = Site::minimal();
        assert_eq!(site.read().lock().unwrap(), Digest::of(&fs::read(site.path(LOCK)).unwrap()));
    }

    #[test]
    fn a_lock_that_is_absent_or_not_the_taxonomys_is_an_error_that_says_where() {
        let site = Site::minimal();
        site.write(TAXONOMY, &SMALL.replace("arm: {}", "arm: {required: true}"));
        let error = site.read().lock().unwrap_err();
        assert!(error.message.contains("line 4 differs"), "{error}");
        assert!(error.message.ends_with("\n  lock:     required: false\n  taxonomy: required: true"), "{error}");
        assert_eq!(error.remedy.as_deref(), Some("run `headwater lock`"));
        fs::remove_file(site.path(LOCK)).unwrap();
        assert_eq!(site.read().lock().unwrap_err().message, ".headwater/taxonomy.lock is not there");
        std::os::unix::fs::symlink("taxonomy.yml", site.path(LOCK)).unwrap();
        assert!(site.read().lock().unwrap_err().message.contains("not a regular file"));
        fs::remove_file(site.path(LOCK)).unwrap();
        fs::write(site.path(LOCK), b"\xff").unwrap();
        assert!(site.read().lock().unwrap_err().message.contains("not UTF-8"));
    }

    #[test]
    fn a_check_writes_nothing_and_says_no_and_a_lock_is_written_whole() {
        let site = Site::minimal();
        assert_eq!(lock(&site, true), Ok(Status::Done));
        site.append(LOCK, "# more\n");
        let before = fs::read(site.path(LOCK)).unwrap();
        assert_eq!(lock(&site, true), Ok(Status::No));
        assert_eq!(fs::read(site.path(LOCK)).unwrap(), before);
        assert_eq!(lock(&site, false), Ok(Status::Done));
        assert_eq!(lock(&site, true), Ok(Status::Done));
        let left: Vec<_> = fs::read_dir(site.path(".headwater")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn a_lock_that_cannot_be_written_leaves_the_old_one_and_nothing_else() {
        let site = Site::minimal();
        fs::remove_file(site.path(LOCK)).unwrap();
        fs::create_dir(site.path(LOCK)).unwrap();
        let tree = Tree::open(&site.path("")).unwrap();
        assert!(write(&tree, "x").is_err());
        assert_eq!(fs::read_dir(site.path(".headwater")).unwrap().count(), 2);
        assert_eq!(lock(&site, false).unwrap_err().status, Status::Unreadable);
    }

    #[test]
    fn the_first_line_that_differs_is_named_at_the_end_too() {
        assert_eq!(difference(Some("a\n"), "a\n"), None);
        assert!(
            difference(Some("a\nb\n"), "a\n").unwrap().contains("line 2 differs\n  lock:     b\n  taxonomy: (the end)")
        );
        assert!(difference(Some("a"), "a\n").unwrap().contains("line 1 differs"));
        assert!(difference(Some(""), "a\n").unwrap().contains("lock:     (the end)"));
    }
}
