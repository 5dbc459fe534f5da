//! The walk over a corpus: every directory once, every document read once, in parallel, no body kept.

use super::document::{Document, Front};
use super::taxonomy::Taxonomy;
use super::tree::{self, Tree, What};
use super::{Class, lock};
use headwater_contract::digest::Digest;
use rayon::Scope;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A document of more bytes than this is passed over: a sparse file has more of them than anybody can read.
pub const LARGEST: usize = 16 << 20;
/// Directories inside one another, below the root. What is deeper is passed over.
pub const DEEPEST: usize = 64;
/// Documents that one task reads with one buffer.
const TASK: usize = 64;

/// A corpus as it stands on disk.
#[derive(Debug)]
pub struct Corpus {
    /// The root, absolute.
    pub root: PathBuf,
    /// The resolved taxonomy.
    pub taxonomy: Taxonomy,
    /// Every Markdown file below the root that has front matter or stands on a shelf, in byte order of the path. A
    /// `README.md` or, on no shelf, a `CLAUDE.md` that has no `id` and is not generated is none of them.
    pub documents: Vec<Document>,
    /// What the walk could not enter or name, in byte order of the path.
    pub passed_over: Vec<PassedOver>,
    tree: Tree,
    /// The identifiers of typed documents, and those of generated ones that no typed document has.
    identifiers: HashMap<String, usize>,
}

/// Something that the walk passed over.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassedOver {
    /// Its path relative to the root; what is no UTF-8 in it is replaced.
    pub path: String,
    /// Why, and what to do about it.
    pub reason: String,
}

/// Why a corpus cannot be read. Each message names the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CorpusError {
    /// What happened, with the path it is about.
    pub message: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl CorpusError {
    /// An error without a remedy.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), remedy: None }
    }

    /// The same, with a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// What the target of a relation stands for.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A document, typed or generated, named by its identifier or by its path.
    Document(&'a Document),
    /// A regular file that is no document, by its path relative to the root.
    Anchor(&'a str),
}

impl Corpus {
    /// Reads the taxonomy and every document below `root`. Links are not followed, and hidden files and directories
    /// are passed over where no shelf spells them out.
    ///
    /// # Errors
    /// Where the root, the taxonomy, a directory of the tree or a document cannot be read.
    pub fn read(root: &Path) -> Result<Self, CorpusError> {
        let absolute = Taxonomy::root(root)?;
        let (tree, taxonomy) = Taxonomy::read(&absolute)?;
        let (documents, passed_over) = Walk::over(&tree, &taxonomy)?;
        let mut identifiers = HashMap::new();
        for class in [Document::is_typed, Document::is_generated] {
            for (index, document) in documents.iter().enumerate().filter(|(_, d)| class(d)) {
                if let Some(id) = &document.id {
                    identifiers.entry(id.clone()).or_insert(index);
                }
            }
        }
        Ok(Self { root: absolute, taxonomy, documents, passed_over, tree, identifiers })
    }

    /// The typed documents, in byte order of the path.
    pub fn typed(&self) -> impl Iterator<Item = &Document> {
        self.documents.iter().filter(|d| d.is_typed())
    }

    /// The typed documents of a kind or of a kind below it.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Document> {
        self.typed().filter(move |d| d.kind().is_some_and(|k| self.taxonomy.is_a(k, kind)))
    }

    /// The typed document with this identifier, the first by path where several have it.
    #[must_use]
    pub fn by_identifier(&self, id: &str) -> Option<&Document> {
        self.holder(id).filter(|d| d.is_typed())
    }

    /// The document that an identifier names: the first typed one by path, or else the first generated one.
    #[must_use]
    pub fn holder(&self, id: &str) -> Option<&Document> {
        self.identifiers.get(id).map(|i| &self.documents[*i])
    }

    /// The document at this path, typed or not.
    #[must_use]
    pub fn by_path(&self, path: &str) -> Option<&Document> {
        self.documents.binary_search_by(|d| d.path.as_str().cmp(path)).ok().map(|i| &self.documents[i])
    }

    /// The identifiers of every typed and every generated document, each once, in byte order.
    #[must_use]
    pub fn identifiers(&self) -> BTreeSet<&str> {
        self.identifiers.keys().map(String::as_str).collect()
    }

    /// What the target of a relation stands for: a document by identifier, a document by path, or another file.
    #[must_use]
    pub fn target<'a>(&'a self, target: &'a str) -> Option<Target<'a>> {
        let by_path = || self.by_path(target).filter(|d| d.class != Class::Unclassified);
        if let Some(document) = self.holder(target).or_else(by_path) {
            return Some(Target::Document(document));
        }
        (self.tree.what(target).ok()? == What::File).then_some(Target::Anchor(target))
    }

    /// The tree digest: over every typed document.
    #[must_use]
    pub fn tree(&self) -> Digest {
        headwater_contract::digest::of_paths(self.typed().map(|d| (d.path.as_str(), Some(d.digest))))
    }

    /// The files below the root.
    #[must_use]
    pub fn files(&self) -> &Tree {
        &self.tree
    }

    /// The content digest of a regular file below the root, be it a document or an anchor; nothing for a directory, a
    /// link, a path that leaves the root, or what cannot be read.
    #[must_use]
    pub fn content(&self, path: &str) -> Option<Digest> {
        match self.by_path(path) {
            Some(document) => Some(document.digest),
            None => Digest::of_reader(self.tree.file(path).ok()?).ok(),
        }
    }

    /// The text of a document.
    ///
    /// # Errors
    /// Where it cannot be read, is no UTF-8, is above [`LARGEST`], or is no longer what the census digested.
    pub fn text(&self, document: &Document) -> Result<String, CorpusError> {
        let fail = |reason: &dyn std::fmt::Display| CorpusError::new(format!("{}: {reason}", document.path));
        let file = self.tree.file(&document.path).map_err(|e| fail(&e))?;
        let text = bounded_text(file, LARGEST).map_err(|e| fail(&e))?;
        if Digest::of(text.as_bytes()) != document.digest {
            return Err(fail(&"changed while the corpus was read").remedy("run the command again"));
        }
        Ok(text)
    }

    /// The digest of `.headwater/taxonomy.lock`.
    ///
    /// # Errors
    /// Where there is none, or where it is not the lock of the taxonomy beside it.
    pub fn lock(&self) -> Result<Digest, CorpusError> {
        lock::hold(self)
    }
}

/// The text of a file of at most `limit` bytes.
pub(crate) fn bounded_text(file: File, limit: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(io::Error::other(format!("larger than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8"))
}

type Failed = (String, String);

/// One walk. Tasks add to the lists in any order, and the lists are sorted at the end.
struct Walk<'a> {
    taxonomy: &'a Taxonomy,
    documents: Mutex<Vec<Document>>,
    passed_over: Mutex<Vec<PassedOver>>,
    failed: Mutex<Vec<Failed>>,
}

/// An open directory, its path and how deep it is.
struct Directory {
    fd: OwnedFd,
    path: String,
    depth: usize,
}

impl Directory {
    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }
}

fn open<T>(list: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    // A list whose holder panicked is still a list: the panic itself ends the walk.
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

fn taken<T>(list: Mutex<Vec<T>>) -> Vec<T> {
    list.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Walk<'a> {
    fn over(tree: &Tree, taxonomy: &'a Taxonomy) -> Result<(Vec<Document>, Vec<PassedOver>), CorpusError> {
        let walk =
            Self { taxonomy, documents: Mutex::default(), passed_over: Mutex::default(), failed: Mutex::default() };
        let top = tree.top().map_err(|e| CorpusError::new(format!("the root of the corpus: {e}")))?;
        rayon::scope(|scope| walk.enter(scope, Directory { fd: top, path: String::new(), depth: 0 }));
        if let Some((path, error)) = taken(walk.failed).into_iter().min() {
            let remedy = "make it readable, or take it out of the corpus";
            return Err(CorpusError::new(format!("{path}: {error}")).remedy(remedy));
        }
        let mut documents = taken(walk.documents);
        documents.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut passed_over = taken(walk.passed_over);
        passed_over.sort_unstable();
        Ok((documents, passed_over))
    }

    fn enter<'s>(&'s self, scope: &Scope<'s>, directory: Directory) {
        let (directories, files) = match self.list(&directory) {
            Ok(entries) => entries,
            Err(e) => return open(&self.failed).push((directory.path, e.to_string())),
        };
        let directory = Arc::new(directory);
        for name in directories {
            let parent = Arc::clone(&directory);
            scope.spawn(move |scope| {
                let path = parent.path_of(&name);
                match tree::directory(parent.fd.as_fd(), &name) {
                    Ok(fd) => {
                        let depth = parent.depth + 1;
                        drop(parent);
                        self.enter(scope, Directory { fd, path, depth });
                    }
                    Err(e) => open(&self.failed).push((path, e.to_string())),
                }
            });
        }
        // Behind the directories: a worker takes its newest task first, so files are read and their directory closed
        // before the next one is opened.
        for names in files.chunks(TASK).map(<[String]>::to_vec) {
            let directory = Arc::clone(&directory);
            scope.spawn(move |_| self.read(&directory, &names));
        }
    }

    /// The names of the directories to enter and of the Markdown files.
    fn list(&self, directory: &Directory) -> io::Result<(Vec<String>, Vec<String>)> {
        let (mut directories, mut files) = (Vec::new(), Vec::new());
        let mut open = nix::dir::Dir::from_fd(directory.fd.try_clone()?)?;
        for entry in open.iter() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let what = tree::entry_what(directory.fd.as_fd(), &entry)?;
            let wanted = match what {
                What::Directory => true,
                What::File => name.ends_with(b".md"),
                What::Link | What::Special => false,
            };
            if !wanted {
                continue;
            }
            match self.name(directory, name, what) {
                Some(name) if what == What::Directory => directories.push(name),
                Some(name) => files.push(name),
                None => {}
            }
        }
        Ok((directories, files))
    }

    /// The name of an entry that belongs to the corpus, or nothing where it is hidden or passed over.
    fn name(&self, directory: &Directory, name: &[u8], what: What) -> Option<String> {
        let pass_over = |reason: String| {
            let path = directory.path_of(&String::from_utf8_lossy(name));
            open(&self.passed_over).push(PassedOver { path, reason });
            None
        };
        let Ok(text) = str::from_utf8(name) else {
            let hidden = name.starts_with(b".");
            return if hidden { None } else { pass_over("its name is not UTF-8; rename it".into()) };
        };
        if text.starts_with('.') {
            let path = directory.path_of(text);
            if !self.taxonomy.shelves.iter().any(|(_, shelf)| shelf.spells_out(&path)) {
                return None;
            }
        }
        if what == What::Directory && directory.depth >= DEEPEST {
            return pass_over(format!("more than {DEEPEST} directories inside one another; move it up"));
        }
        Some(text.to_owned())
    }

    fn read(&self, directory: &Directory, names: &[String]) {
        let mut buffer = Vec::new();
        let mut documents = Vec::new();
        for name in names {
            let path = directory.path_of(name);
            let file = tree::regular(directory.fd.as_fd(), name);
            match file.and_then(|file| self.document(&path, file, &mut buffer)) {
                Ok(document) => documents.extend(document),
                Err(e) => open(&self.failed).push((path, e.to_string())),
            }
        }
        open(&self.documents).append(&mut documents);
    }

    /// The document in a file, or nothing where the file is none.
    fn document(&self, path: &str, mut file: File, buffer: &mut Vec<u8>) -> io::Result<Option<Document>> {
        let shelf = self.taxonomy.shelf_of(path);
        buffer.clear();
        if shelf.is_none() {
            // Front matter is what would make it a document, and its first bytes tell.
            (&mut file).take(64).read_to_end(buffer)?;
            if !Front::starts(buffer) {
                return Ok(None);
            }
        }
        (&mut file).take((LARGEST + 1 - buffer.len()) as u64).read_to_end(buffer)?;
        if buffer.len() > LARGEST {
            let reason = format!("larger than {LARGEST} bytes; split it");
            open(&self.passed_over).push(PassedOver { path: path.to_owned(), reason });
            return Ok(None);
        }
        Ok(Document::place(path, Digest::of(buffer), Front::read(buffer), shelf, self.taxonomy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::testing::{Site, decision};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    fn paths(corpus: &Corpus) -> Vec<&str> {
        corpus.documents.iter().map(|d| d.path.as_str()).collect()
    }

    fn class<'a>(corpus: &'a Corpus, path: &str) -> &'a Class {
        &corpus.by_path(path).unwrap().class
    }

    fn kind<'a>(corpus: &'a Corpus, path: &str) -> Option<&'a str> {
        corpus.by_path(path).unwrap().kind()
    }

    #[test]
    fn a_document_is_typed_generated_or_unclassified() {
        let site = Site::minimal();
        site.write("docs/decisions/index.md", "---\n\"headwater:generated\": by hand\nid: X-1\n---\n");
        site.write(
            "docs/decisions/not.md",
            &decision("WM-DR-0009", "").replace("id:", "headwater:generated: false\nid:"),
        );
        site.write("docs/decisions/bare.md", "# No front matter\n");
        site.write("notes/a.md", "---\nid: WM-DR-0044\n---\n");
        site.write("notes/plain.md", "# Nothing\n");
        let corpus = site.read();
        assert_eq!(kind(&corpus, "docs/decisions/one.md"), Some("decision"));
        assert_eq!(kind(&corpus, "docs/decisions/not.md"), Some("decision"));
        assert_eq!(class(&corpus, "docs/decisions/index.md"), &Class::Generated);
        assert_eq!(class(&corpus, "docs/decisions/bare.md"), &Class::Unclassified);
        assert_eq!(class(&corpus, "notes/a.md"), &Class::Unclassified);
        assert!(corpus.by_path("notes/plain.md").is_none());
        assert!(corpus.by_identifier("WM-DR-0044").is_none(), "an unclassified document has no place in the graph");
        assert!(corpus.by_identifier("X-1").is_none() && corpus.identifiers().contains("X-1"));
    }

    #[test]
    fn a_document_names_its_kind_only_on_a_shelf_that_is_not_homogeneous() {
        let site = Site::minimal();
        let note = |kind: &str| format!("---\nid: x\n{kind}---\n");
        site.write("docs/notes/own.md", &note("kind: memo\n"));
        site.write("docs/notes/none.md", &note(""));
        site.write("docs/notes/unknown.md", &note("kind: nothing\n"));
        site.write("docs/notes/foreign.md", &note("kind: decision\n"));
        site.write("docs/notes/abstract.md", &note("kind: note\n"));
        site.write("docs/decisions/other.md", &decision("WM-DR-0009", "").replace("id:", "kind: memo\nid:"));
        let corpus = site.read();
        assert_eq!(kind(&corpus, "docs/notes/own.md"), Some("memo"));
        for path in ["none", "unknown", "foreign", "abstract"] {
            assert_eq!(class(&corpus, &format!("docs/notes/{path}.md")), &Class::Unclassified, "{path}");
        }
        assert_eq!(kind(&corpus, "docs/decisions/other.md"), Some("decision"));
    }

    #[test]
    fn a_readme_is_a_document_only_with_an_id() {
        let site = Site::minimal();
        site.write("README.md", "# R\n");
        site.write("docs/decisions/README.md", "---\ntitle: x\n---\n");
        site.write("docs/probes/README.md", "# R\n");
        site.write("CLAUDE.md", "---\ntitle: x\n---\n");
        let before = paths(&site.read()).len();
        site.write("docs/decisions/README.md", &decision("WM-DR-0009", ""));
        site.write("docs/probes/README.md", "---\nheadwater:generated: true\n---\n");
        let corpus = site.read();
        assert_eq!(paths(&corpus).len(), before + 2);
        assert_eq!(kind(&corpus, "docs/decisions/README.md"), Some("decision"));
        assert_eq!(class(&corpus, "docs/probes/README.md"), &Class::Generated);
    }

    #[test]
    fn links_hidden_and_special_files_are_no_documents() {
        let site = Site::minimal();
        let before = paths(&site.read()).iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        symlink("one.md", site.path("docs/decisions/link.md")).unwrap();
        symlink("decisions", site.path("docs/linked")).unwrap();
        symlink("..", site.path("docs/loop")).unwrap();
        site.write(".git/a.md", &decision("WM-DR-0009", ""));
        site.write("docs/.cache/a.md", &decision("WM-DR-0009", ""));
        site.write("docs/decisions/.draft.md", &decision("WM-DR-0009", ""));
        nix::unistd::mkfifo(&site.path("docs/decisions/fifo.md"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::create_dir(site.path("docs/decisions/dir.md")).unwrap();
        let corpus = site.read();
        assert_eq!(paths(&corpus), before);
        assert_eq!(corpus.passed_over, []);
    }

    #[test]
    fn a_hidden_directory_is_read_where_a_shelf_spells_it_out() {
        let site = Site::minimal();
        site.append(TAXONOMY, "  hidden: {path: .log/in/*.md, homogeneous: true, kind: memo}\n");
        site.write(".log/in/a.md", "---\nid: x\n---\n");
        site.write(".log/.out/b.md", "---\nid: y\n---\n");
        let corpus = site.read();
        assert_eq!(kind(&corpus, ".log/in/a.md"), Some("memo"));
        assert!(corpus.by_path(".log/.out/b.md").is_none());
    }

    #[test]
    fn what_cannot_be_named_or_held_is_passed_over_with_a_reason() {
        let site = Site::minimal();
        let decisions = site.path("docs/decisions");
        std::fs::write(decisions.join(std::ffi::OsStr::from_bytes(b"\xff.md")), "---\n---\n").unwrap();
        let huge = File::create(decisions.join("huge.md")).unwrap();
        huge.set_len(1 << 40).unwrap();
        site.write("docs/decisions/a\nb.md", &decision("WM-DR-0009", ""));
        let deep = "d/".repeat(DEEPEST + 3);
        site.write(&format!("{deep}x.md"), &decision("WM-DR-0010", ""));
        let corpus = site.read();
        let reasons: Vec<_> = corpus.passed_over.iter().map(|p| (p.path.as_str(), &p.reason[..11])).collect();
        let last = "d/".repeat(DEEPEST + 1);
        assert_eq!(
            reasons,
            [
                (last.trim_end_matches('/'), "more than 6"),
                ("docs/decisions/huge.md", "larger than"),
                ("docs/decisions/\u{fffd}.md", "its name is"),
            ]
        );
        assert_eq!(class(&corpus, "docs/decisions/a\nb.md"), &Class::Unclassified, "it would forge a line of the tree");
    }

    #[test]
    fn front_matter_that_cannot_be_read_keeps_its_place_and_its_digest() {
        let site = Site::minimal();
        for (name, bytes, line) in [
            ("cut", &b"---\nid: x\n"[..], 1),
            ("twice", b"---\nid: x\nid: y\n---\n", 3),
            ("list", b"---\n- x\n---\n", 2),
            ("bytes", b"---\nid: x\n---\na\n\xff\n", 5),
        ] {
            let path = format!("docs/decisions/{name}.md");
            std::fs::write(site.path(&path), bytes).unwrap();
            let corpus = site.read();
            let document = corpus.by_path(&path).unwrap();
            assert_eq!(document.kind(), Some("decision"), "{name}");
            assert_eq!(document.malformed.as_ref().unwrap().0, line, "{name}");
            assert_eq!((document.digest, &document.id), (Digest::of(bytes), &None), "{name}");
        }
    }

    #[test]
    fn the_tree_digest_is_over_the_typed_documents_and_their_bytes() {
        let site = Site::minimal();
        let corpus = site.read();
        let lines: String = corpus.typed().map(|d| format!("{}\t{}\n", d.path, d.digest)).collect();
        assert_eq!(corpus.tree(), Digest::of(lines.as_bytes()));
        assert!(lines.lines().count() >= 2);
        site.write("notes/a.md", "---\nid: a\n---\n");
        site.write("docs/decisions/g.md", "---\nheadwater:generated: true\n---\n");
        assert_eq!(site.read().tree(), corpus.tree());
        site.append("docs/decisions/one.md", " ");
        assert_ne!(site.read().tree(), corpus.tree());
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let site = Site::minimal();
        for i in 0..300 {
            site.write(&format!("docs/decisions/{}/x{i}.md", i % 7), &decision(&format!("WM-DR-{i:04}"), ""));
            site.write(&format!("docs/decisions/x{i}.md"), &decision(&format!("WM-DR-{i:04}"), ""));
        }
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let corpus = site.read();
                (format!("{:?}", corpus.documents), corpus.tree())
            })
        };
        assert_eq!(with(1), with(4));
    }

    #[test]
    fn content_is_of_regular_files_below_the_root_alone() {
        let site = Site::minimal();
        site.write("src/a.rs", "fn a() {}\n");
        symlink("a.rs", site.path("src/b.rs")).unwrap();
        let corpus = site.read();
        assert_eq!(corpus.content("src/a.rs"), Some(Digest::of(b"fn a() {}\n")));
        let one = corpus.by_path("docs/decisions/one.md").unwrap();
        assert_eq!(corpus.content("docs/decisions/one.md"), Some(one.digest));
        for none in ["src/b.rs", "src", "../x", "/etc/passwd", "", "nothing"] {
            assert_eq!(corpus.content(none), None, "{none}");
        }
        assert!(matches!(corpus.target("src/a.rs"), Some(Target::Anchor("src/a.rs"))));
        assert!(matches!(corpus.target("WM-DR-0001"), Some(Target::Document(d)) if d.path == one.path));
        assert!(matches!(corpus.target(&one.path), Some(Target::Document(_))));
        assert!(corpus.target("src").is_none() && corpus.target("../x").is_none());
    }

    #[test]
    fn a_text_that_moved_under_the_census_is_an_error() {
        let site = Site::minimal();
        let corpus = site.read();
        let document = corpus.by_identifier("WM-DR-0001").unwrap();
        assert!(corpus.text(document).unwrap().starts_with("---\n"));
        site.append("docs/decisions/one.md", "more");
        assert!(corpus.text(document).unwrap_err().message.contains("changed while"));
    }

    #[test]
    fn a_corpus_that_cannot_be_read_says_what_and_what_to_do() {
        let site = Site::minimal();
        let error = |root: &Path| Corpus::read(root).unwrap_err();
        for root in [site.path("nothing"), site.path("docs"), site.path("docs/decisions/one.md")] {
            let error = error(&root);
            assert!(error.message.contains(root.to_str().unwrap()), "{error}");
            assert!(error.remedy.unwrap().contains("--root"));
        }
        site.write(TAXONOMY, "kind: {}\n");
        assert!(error(&site.path("")).message.starts_with(".headwater/taxonomy.yml:1:"));
        std::fs::remove_file(site.path(TAXONOMY)).unwrap();
        symlink("/dev/zero", site.path(TAXONOMY)).unwrap();
        assert!(error(&site.path("")).message.contains("not a regular file"));
    }

    const TAXONOMY: &str = crate::corpus::TAXONOMY;
}
