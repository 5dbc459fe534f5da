//! The artifacts a session left: the paths that its writing calls name, those that the driver names, and what is new or
//! changed against the baseline, each once and in this order. All but the path is read off the file itself, in the same
//! way for every probe.

use super::find::Finder;
use super::findings::{Checked, Checker};
use super::git;
use super::manifest::{Changes, Entry, FILE_LIMIT, Manifest};
use super::marker;
use super::tree::{Tree, Unread, covers, shown};
use crate::status::{Failure, Outcome, Status};
use headwater_contract::digest::Digest;
use headwater_contract::transcript::Produced;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::fmt;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// How many artifacts a session may leave.
const LIMIT: usize = 20_000;
/// What belongs to the corpus's own machinery.
const DECLARATIONS: &[u8] = b".headwater";
/// Where a build of an engine that is kept beside its corpus leaves what it makes.
const BUILD_DIRECTORIES: [&[u8]; 2] = [b"target", b"engine/target"];

/// What a session may have produced.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The workspace before the session.
    pub before: &'a Manifest,
    /// The workspace after it; its root is where the artifacts are read.
    pub after: &'a Manifest,
    /// The paths of the calls that write, in the order of the log; relative to the workspace or absolute.
    pub written: &'a [String],
    /// The paths that the driver names.
    pub named: &'a [String],
    /// The log directory of the run.
    pub log_directory: &'a Path,
}

/// What a session produced, and what there is to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifacts {
    /// The artifacts, in order.
    pub produced: Vec<Produced>,
    /// The tree that the rules ran over; nothing where there was nothing to check.
    pub checked: Option<Checked>,
    /// Named paths that are no artifacts, and why. Of the paths that nobody named only the number is kept.
    pub passed_over: Vec<(String, PassedOver)>,
    /// How many changed files that nobody named are no artifacts.
    pub passed_over_unnamed: usize,
    /// Artifacts that could not be read, and why. Their `result` is empty and they cite nothing.
    pub unread: Vec<(String, Unread)>,
    /// How the workspace differs from its baseline.
    pub changes: Changes,
}

/// Why a path is no artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassedOver {
    /// It is under `.headwater/`.
    Declarations,
    /// It is in a build directory of an engine.
    Build,
    /// It is in the log directory.
    Log,
    /// It carries the marker of a generated file.
    Generated,
    /// It is part of a repository.
    Repository,
    /// Nobody named it, and the corpus keeps it out of its commits.
    Ignored,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Declarations => "it is under .headwater/",
            Self::Build => "it is in a build directory",
            Self::Log => "it is in the log directory",
            Self::Generated => "it is a generated file",
            Self::Repository => "it is in a .git directory",
            Self::Ignored => "the corpus keeps it out of its commits",
        })
    }
}

/// Collects what a session produced. `identifiers` are those of the corpus, from the plan.
///
/// # Errors
/// [`Status::Limit`] where the artifacts are too many for one record.
pub fn collect(sources: &Sources<'_>, identifiers: &[String], checker: &Checker<'_>) -> Outcome<Artifacts> {
    let changes = sources.after.changed(sources.before);
    let root = sources.after.root().as_os_str().as_bytes();
    let mut seen = BTreeSet::new();
    let mut candidates = Vec::new();
    let written = sources.written.iter().map(|path| (Place::of(root, path.as_bytes()), Some(path)));
    let named = sources.named.iter().map(|path| (Place::of(root, path.as_bytes()), Some(path)));
    let changed = changes.written.iter().map(|path| (Place::Inside(path.clone()), None));
    for (place, named) in written.chain(named).chain(changed) {
        if seen.insert(place.clone()) {
            candidates.push((place, named));
        }
    }
    let reader = Reader::new(sources, identifiers)?;
    let unnamed = candidates.iter().filter_map(|(place, named)| match place {
        Place::Inside(path) if named.is_none() => Some(path.as_slice()),
        _ => None,
    });
    // What running the workspace's own programs leaves behind is no work of the session.
    let ignored = git::ignored(checker.corpus, &unnamed.collect::<Vec<_>>());
    let look = |(place, named): &(Place, Option<&String>)| match place {
        Place::Inside(path) if named.is_none() && ignored.contains(path) => Look::PassedOver(PassedOver::Ignored),
        _ => reader.look(place),
    };
    let looked: Vec<Look> = candidates.par_iter().map(look).collect();

    let mut artifacts = Artifacts {
        produced: Vec::new(),
        checked: None,
        passed_over: Vec::new(),
        passed_over_unnamed: 0,
        unread: Vec::new(),
        changes: Changes::default(),
    };
    let files: Vec<&[u8]> = looked.iter().filter_map(Look::file).collect();
    let findings = (!files.is_empty()).then(|| checker.check(sources.before, sources.after, &files));
    for ((place, named), look) in candidates.iter().zip(&looked) {
        let path = place.text();
        match look {
            Look::PassedOver(why) if named.is_some() => artifacts.passed_over.push((path, *why)),
            Look::PassedOver(_) => artifacts.passed_over_unnamed += 1,
            Look::Gone => artifacts.produced.push(bare(path)),
            Look::Unread(why) => {
                artifacts.unread.push((path.clone(), *why));
                artifacts.produced.push(bare(path));
            }
            Look::File { at, digest, cites } => {
                // A path that is no text is in no finding that could be compared with it.
                let at = at.as_deref().and_then(|at| std::str::from_utf8(at).ok());
                let findings = findings.as_ref().zip(at).and_then(|(findings, at)| findings.of(at));
                artifacts.produced.push(Produced { path, result: digest.to_string(), cites: cites.clone(), findings });
            }
        }
    }
    if artifacts.produced.len() > LIMIT {
        let message = format!("the session left {} artifacts, and a record holds {LIMIT}", artifacts.produced.len());
        let remedy = "have what a session installs or builds go to a directory outside of the workspace";
        return Err(Failure::new(Status::Limit, message).remedy(remedy).after_spending());
    }
    artifacts.checked = findings.map(|findings| findings.over);
    artifacts.changes = changes;
    Ok(artifacts)
}

/// An artifact of which nothing but the path is known. No check read it, so it has no `findings`.
fn bare(path: String) -> Produced {
    Produced { path, result: String::new(), cites: Vec::new(), findings: None }
}

/// A path as it was named, without what changes nothing about it. Links are left as they are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// In the workspace, relative to it.
    Inside(Vec<u8>),
    /// Anywhere else, absolute.
    Outside(Vec<u8>),
}

impl Place {
    fn of(root: &[u8], path: &[u8]) -> Self {
        let absolute = if path.starts_with(b"/") { path.to_vec() } else { [root, b"/", path].concat() };
        let (root, absolute) = (plain(root), plain(&absolute));
        match absolute.strip_prefix(root.as_slice()) {
            Some(rest) if rest.starts_with(b"/") => Self::Inside(rest[1..].to_vec()),
            _ => Self::Outside(absolute),
        }
    }

    /// As it is recorded: bytes that are no text are escaped.
    fn text(&self) -> String {
        let (Self::Inside(path) | Self::Outside(path)) = self;
        String::from_utf8(path.clone()).unwrap_or_else(|_| shown(path))
    }
}

/// An absolute path without `.`, `..` and empty components.
fn plain(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => drop(kept.pop()),
            _ => kept.push(component),
        }
    }
    kept.iter().flat_map(|component| [b"/", *component].concat()).collect()
}

/// What a look at a candidate gave.
enum Look {
    PassedOver(PassedOver),
    /// Nothing of the workspace is there.
    Gone,
    Unread(Unread),
    File {
        /// Where in the workspace the file itself is: the path, or where a link leads.
        at: Option<Vec<u8>>,
        digest: Digest,
        cites: Vec<String>,
    },
}

impl Look {
    fn file(&self) -> Option<&[u8]> {
        match self {
            Self::File { at, .. } => at.as_deref(),
            _ => None,
        }
    }
}

struct Reader<'a> {
    after: &'a Manifest,
    tree: Tree,
    host: Tree,
    log: Place,
    by_driver: BTreeSet<Place>,
    finder: Finder,
    identifiers: Vec<&'a String>,
}

impl<'a> Reader<'a> {
    fn new(sources: &Sources<'a>, identifiers: &'a [String]) -> Outcome<Self> {
        let root = sources.after.root();
        let place = |path: &[u8]| Place::of(root.as_os_str().as_bytes(), path);
        let identifiers: Vec<_> = identifiers.iter().filter(|identifier| !identifier.is_empty()).collect();
        Ok(Self {
            after: sources.after,
            tree: Tree::open(root)?,
            host: Tree::open(Path::new("/"))?,
            log: place(sources.log_directory.as_os_str().as_bytes()),
            by_driver: sources.named.iter().map(|path| place(path.as_bytes())).collect(),
            finder: Finder::new(&identifiers)?,
            identifiers,
        })
    }

    fn look(&self, place: &Place) -> Look {
        if let Some(why) = self.passed_over(place) {
            return Look::PassedOver(why);
        }
        let path = match place {
            Place::Inside(path) => path,
            Place::Outside(path) if self.by_driver.contains(place) => return self.look_outside(path),
            // The session's own `/tmp` and the like: it is gone, and what the host has under that path is another file.
            Place::Outside(_) => return Look::Gone,
        };
        let Some(at) = self.after.resolve(path) else { return Look::Gone };
        match self.after.get(&at) {
            Some(Entry::File { digest, .. }) => self.read(at, *digest),
            Some(Entry::Unreadable { why } | Entry::Unlisted { why }) => Look::Unread(*why),
            Some(Entry::Special { .. }) => Look::Unread(Unread::NotRegular),
            Some(Entry::Directory | Entry::Link { .. }) | None => Look::Gone,
        }
    }

    /// A file that the driver vouches for, reached through no link, because a session may have made one.
    fn look_outside(&self, path: &[u8]) -> Look {
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let digest = self.host.open_file(path).and_then(|(file, size)| match size {
            0..=FILE_LIMIT => Ok(Digest::of_reader(file.take(size))?),
            _ => Err(Unread::TooLarge(FILE_LIMIT)),
        });
        match digest.and_then(|digest| Ok((digest, self.cites(&self.host, path)?))) {
            Ok((digest, Some(cites))) => Look::File { at: None, digest, cites },
            Ok((_, None)) => Look::PassedOver(PassedOver::Generated),
            Err(why) if why.is_absent() => Look::Gone,
            Err(why) => Look::Unread(why),
        }
    }

    fn passed_over(&self, place: &Place) -> Option<PassedOver> {
        match (place, &self.log) {
            (Place::Inside(path), _) if covers(DECLARATIONS, path) => Some(PassedOver::Declarations),
            (Place::Inside(path), _) if path.split(|b| *b == b'/').any(|name| name == b".git") => {
                Some(PassedOver::Repository)
            }
            (Place::Inside(path), _) if BUILD_DIRECTORIES.iter().any(|directory| covers(directory, path)) => {
                Some(PassedOver::Build)
            }
            (Place::Inside(path), Place::Inside(log)) | (Place::Outside(path), Place::Outside(log))
                if covers(log, path) =>
            {
                Some(PassedOver::Log)
            }
            _ => None,
        }
    }

    fn read(&self, at: Vec<u8>, digest: Digest) -> Look {
        match self.cites(&self.tree, &at) {
            Ok(None) => Look::PassedOver(PassedOver::Generated),
            Ok(Some(cites)) => Look::File { at: Some(at), digest, cites },
            Err(why) => Look::Unread(why),
        }
    }

    /// The identifiers that stand in a file as whole names, each once, in byte order; nothing for a generated file.
    fn cites(&self, tree: &Tree, path: &[u8]) -> Result<Option<Vec<String>>, Unread> {
        let (file, size) = tree.open_file(path)?;
        let mut start = Vec::new();
        let mut file = file.take(size);
        (&mut file).take(marker::LIMIT).read_to_end(&mut start)?;
        if marker::is_generated(path, &start) {
            return Ok(None);
        }
        let mut cited = BTreeSet::new();
        self.finder.in_reader(start.chain(file), |found| {
            if found.whole {
                cited.insert(self.identifiers[found.name]);
            }
        })?;
        Ok(Some(cited.into_iter().cloned().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::fixture::{self, Marked, committed};
    use std::fs;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    const FILES: [(&str, &str); 5] = [
        (".headwater/taxonomy.yml", "kinds: {}"),
        (".headwater/taxonomy.lock", "locked"),
        ("docs/probes/where-is-it.md", "MARKED"),
        ("docs/a.md", "see WM-DR-0001"),
        ("docs/b.md", "b"),
    ];

    struct Run {
        corpus: TempDir,
        workspace: TempDir,
        log: TempDir,
        engine: Marked,
        before: Manifest,
    }

    impl Run {
        /// A session over `arm`, the files of the corpus that it has.
        fn over(arm: &[(&str, &str)]) -> Self {
            let workspace = fixture::tree(arm);
            let before = Manifest::take(workspace.path()).unwrap();
            let (corpus, log) = (committed(&FILES), tempfile::tempdir().unwrap());
            Self { corpus, workspace, log, engine: Marked::new(), before }
        }

        fn write(&self, path: &str, content: &str) {
            let path = self.workspace.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn collect(&self, written: &[&str], named: &[&str]) -> Artifacts {
            let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
            let after = Manifest::take(self.workspace.path()).unwrap();
            let (written, named) = (owned(written), owned(named));
            let sources = Sources {
                before: &self.before,
                after: &after,
                written: &written,
                named: &named,
                log_directory: self.log.path(),
            };
            let identifiers = owned(&["WM-DR-0001", "WM-DR-00010", "WM-SP-0002"]);
            let instrument = owned(&["docs/probes"]);
            let engine = self.engine.engine();
            let checker =
                Checker { engine: &engine, corpus: self.corpus.path(), commit: None, instrument: &instrument };
            collect(&sources, &identifiers, &checker).unwrap()
        }

        fn absolute(&self, path: &str) -> String {
            self.workspace.path().join(path).to_str().unwrap().to_owned()
        }
    }

    fn paths(artifacts: &Artifacts) -> Vec<&str> {
        artifacts.produced.iter().map(|produced| produced.path.as_str()).collect()
    }

    #[test]
    fn paths_come_from_the_log_then_the_driver_then_the_difference_each_once() {
        let run = Run::over(&FILES);
        for path in ["z.md", "new/y.md", "m.md", "k.md"] {
            run.write(path, "x");
        }
        let artifacts =
            run.collect(&[&run.absolute("z.md"), "./new//y.md", "z.md", "docs/b.md"], &["m.md", "new/../z.md"]);
        assert_eq!(paths(&artifacts), ["z.md", "new/y.md", "docs/b.md", "m.md", "k.md"]);
        assert_eq!(artifacts.checked, Some(Checked::Workspace));
        assert!(Run::over(&FILES).collect(&[], &[]).produced.is_empty());
    }

    #[test]
    fn result_cites_and_findings_are_read_off_the_file() {
        let run = Run::over(&FILES);
        run.write("docs/a.md", "MARKED WM-SP-0002 (WM-DR-0001) WM-DR-0001 WM-DR-00010x xWM-DR-0001");
        run.write("docs/c.md", "clean");
        let artifacts = run.collect(&[], &[]);
        let [a, c] = &artifacts.produced[..] else { panic!("{artifacts:?}") };
        assert_eq!(a.result, Digest::of(&fs::read(run.workspace.path().join("docs/a.md")).unwrap()).to_string());
        assert_eq!(a.cites, ["WM-DR-0001", "WM-SP-0002"]);
        assert_eq!(a.findings.as_ref().unwrap(), &["a.rule", "b.rule"], "each rule once, in order");
        assert_eq!((c.cites.len(), c.findings.as_deref()), (0, Some(&[][..])), "checked, and nothing reported");
    }

    #[test]
    fn a_path_outside_of_the_workspace_has_no_findings_and_is_not_read_for_the_session() {
        let run = Run::over(&FILES);
        let host = fixture::tree(&[("file", "WM-DR-0001"), ("dir/file", "x")]);
        symlink("dir", host.path().join("link")).unwrap();
        let at = |name: &str| host.path().join(name).to_str().unwrap().to_owned();
        let artifacts = run.collect(&[&at("file"), "../../../../../../../etc/passwd"], &[]);
        assert_eq!(paths(&artifacts), [&at("file"), "/etc/passwd"]);
        assert!(artifacts.produced.iter().all(|p| p.result.is_empty() && p.cites.is_empty() && p.findings.is_none()));
        let artifacts = run.collect(&[&at("file")], &[&at("file"), &at("link/file"), &at("absent")]);
        assert_eq!(artifacts.produced[0].result, Digest::of(b"WM-DR-0001").to_string());
        assert_eq!((artifacts.produced[0].cites.len(), &artifacts.produced[0].findings), (1, &None));
        assert_eq!(artifacts.unread, [(at("link/file"), Unread::Link)]);
        assert_eq!(artifacts.produced[2].result, "");
        assert_eq!(artifacts.checked, None, "nothing to check");
    }

    #[test]
    fn what_is_gone_or_replaced_by_what_leads_nowhere_has_no_digest_and_was_not_checked() {
        let run = Run::over(&FILES);
        fs::remove_file(run.workspace.path().join("docs/a.md")).unwrap();
        fs::remove_file(run.workspace.path().join("docs/b.md")).unwrap();
        symlink("/etc/passwd", run.workspace.path().join("docs/b.md")).unwrap();
        nix::unistd::mkfifo(&run.workspace.path().join("fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let artifacts = run.collect(&["docs/a.md", "docs/b.md", "never/was.md", "fifo"], &[]);
        assert_eq!(artifacts.produced.len(), 4);
        assert!(artifacts.produced.iter().all(|p| p.result.is_empty() && p.findings.is_none()));
        assert_eq!(artifacts.unread, [("fifo".to_owned(), Unread::NotRegular)]);
        assert_eq!(artifacts.changes.removed, [b"docs/a.md".to_vec()]);
        assert_eq!(artifacts.changes.odd, [b"docs/b.md".to_vec(), b"fifo".to_vec()]);
    }

    #[test]
    fn a_path_that_is_a_link_is_the_file_it_leads_to() {
        let run = Run::over(&FILES);
        symlink("docs", run.workspace.path().join("d")).unwrap();
        run.write("docs/b.md", "MARKED");
        let artifacts = run.collect(&["d/b.md"], &[]);
        assert_eq!(paths(&artifacts), ["d/b.md", "docs/b.md"]);
        assert_eq!(artifacts.produced[0].result, artifacts.produced[1].result);
        assert_eq!(artifacts.produced[0].findings, artifacts.produced[1].findings);
    }

    #[test]
    fn declarations_builds_logs_and_generated_files_are_passed_over() {
        let run = Run::over(&FILES);
        let log = run.log.path().join("calls.jsonl").to_str().unwrap().to_owned();
        for path in [".headwater/ids/WM-DR-0002", "target/debug/x", "engine/target/x", "docs/targets.md"] {
            run.write(path, "x");
        }
        run.write("docs/index.md", "---\n\"headwater:generated\": true\n---\n");
        run.write("docs/other.md", "---\n\"headwater:generated\": true\n---\n");
        let artifacts = run.collect(&[".headwater/ids/WM-DR-0002", &log, "docs/index.md"], &["target/debug/x"]);
        assert_eq!(paths(&artifacts), ["docs/targets.md"]);
        let why: Vec<_> = artifacts.passed_over.iter().map(|(_, why)| *why).collect();
        assert_eq!(why, [PassedOver::Declarations, PassedOver::Log, PassedOver::Generated, PassedOver::Build]);
        assert_eq!(artifacts.passed_over_unnamed, 2);
    }

    #[test]
    fn an_arm_without_declarations_is_checked_over_the_oracle_tree() {
        let run = Run::over(&FILES[3..]);
        run.write("docs/a.md", "MARKED");
        run.write("docs/b.md", "clean");
        run.write("docs/a.md.d/new.md", "MARKED");
        let artifacts = run.collect(&[], &[]);
        assert_eq!(artifacts.checked, Some(Checked::OracleTree));
        let found: Vec<_> =
            artifacts.produced.iter().map(|p| (p.path.as_str(), p.findings.clone().unwrap().len())).collect();
        assert_eq!(found, [("docs/a.md", 2), ("docs/a.md.d/new.md", 2), ("docs/b.md", 0)]);
        assert!(!run.workspace.path().join(".headwater").exists());
    }

    #[test]
    fn a_session_that_touches_the_declarations_is_checked_by_those_of_the_corpus() {
        for change in [".headwater/taxonomy.yml", ".headwater/taxonomy.lock"] {
            let run = Run::over(&FILES);
            run.write(change, "no rules");
            run.write("docs/a.md", "MARKED");
            let artifacts = run.collect(&[], &[]);
            assert_eq!(artifacts.checked, Some(Checked::OracleTree), "{change}");
            assert_eq!(artifacts.produced[0].findings.as_ref().unwrap().len(), 2);
        }
    }

    #[test]
    fn an_artifact_in_the_place_of_a_directory_or_below_a_file_is_put_there() {
        let run = Run::over(&[]);
        run.write("docs", "MARKED");
        let artifacts = run.collect(&[], &[]);
        assert_eq!(artifacts.produced[0].findings.as_ref().unwrap().len(), 2);
        let run = Run::over(&[]);
        run.write("docs/a.md/below.md", "MARKED");
        let artifacts = run.collect(&[], &[]);
        assert_eq!(artifacts.produced[0].findings.as_ref().unwrap().len(), 2);
    }

    #[test]
    fn a_check_that_fails_leaves_the_artifacts_unchecked_and_says_why() {
        let run = Run::over(&FILES);
        run.write("docs/a.md", "MARKED");
        run.write("fails", "");
        let artifacts = run.collect(&[], &[]);
        assert!(matches!(&artifacts.checked, Some(Checked::Nothing(why)) if why.contains("exit status 3")));
        assert!(artifacts.produced.iter().all(|p| p.findings.is_none() && !p.result.is_empty()));
        let run = Run::over(&[]);
        fs::write(run.corpus.path().join("dirty"), "").unwrap();
        run.write("docs/a.md", "MARKED");
        assert!(matches!(run.collect(&[], &[]).checked, Some(Checked::Nothing(why)) if why.contains("differs")));
    }

    #[test]
    fn names_that_are_no_text_are_recorded_escaped() {
        let run = Run::over(&FILES);
        let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"docs/\xff\n.md");
        fs::write(run.workspace.path().join(name), "WM-DR-0001").unwrap();
        run.write("docs/line\nfeed.md", "x");
        let artifacts = run.collect(&[], &[]);
        assert_eq!(paths(&artifacts), ["docs/line\nfeed.md", "docs/\\xff\\n.md"]);
        assert_eq!((artifacts.produced[1].cites.len(), &artifacts.produced[1].findings), (1, &None));
    }

    #[test]
    fn a_huge_file_is_stated_and_not_read() {
        let run = Run::over(&FILES);
        fs::File::create(run.workspace.path().join("sparse")).unwrap().set_len(4 << 30).unwrap();
        let artifacts = run.collect(&[], &[]);
        assert_eq!(artifacts.unread, [("sparse".to_owned(), Unread::TooLarge(FILE_LIMIT))]);
        assert_eq!(artifacts.produced[0].result, "");
    }
}
