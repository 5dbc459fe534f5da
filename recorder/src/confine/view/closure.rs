//! The closure view: the paths of a list, each by itself and at its own place, and nothing else of the host.
//!
//! What is shown is a part of the host's own tree: a path is followed one name at a time, each link on its way is made
//! again as it is, and what it leads to in the end is shown where it really is. So every listed path works inside, and
//! no two items stand in each other's way.

use super::etc;
use super::{Item, MANAGED, OPT, Shown, View, private};
use crate::status::{Failure, Outcome, Status};
use headwater_contract::digest::Digest;
use nix::unistd::{AccessFlags, User, access, geteuid};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The most paths of a closure. bwrap takes some 9,000 words, and three make a path.
const PATHS: usize = 2_500;
/// As many links as the kernel follows.
const LINKS: usize = 40;
/// How many names lead to a directory that is no whole tree of the host, as `/nix/store/NAME`.
const DEPTH: usize = 3;
/// Where nothing of the host is shown and no link leads through: the session has its own, or it is the host running.
const KEPT: [&str; 5] = ["/proc", "/dev", "/sys", "/run", OPT];
/// What the closure has to hold: the programs that scripts name by a path, and that path.
const NAMED: [(&str, &str); 2] = [("/bin/sh", "sh"), ("/usr/bin/env", "env")];
/// What a path of the closure is, in words.
const PATH: &str = "of the closure";
/// What a link that leads to one is, in words.
const LINK: &str = "a link of the closure";
/// What is of the list, and not of the session.
pub(super) const LISTED: [&str; 2] = [PATH, LINK];

/// A list of paths, read and held to what a session may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closure {
    /// Where the list is.
    file: PathBuf,
    /// What is shown: really at its place, none inside another, in byte order.
    paths: Vec<PathBuf>,
    /// The links that lead to them, outside of them.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Where programs are found.
    programs: Vec<PathBuf>,
    /// Where scripts find the two programs that they name by a path, where that is no listed path.
    named: Vec<(PathBuf, PathBuf)>,
}

impl Closure {
    /// The closure that `file` lists: absolute paths, one a line, of files and directories.
    ///
    /// Empty lines say nothing. A path that is listed twice, or lies in another one, is shown once.
    ///
    /// # Errors
    /// [`Status::Usage`] for a file or a line that is no list of paths, a path that is not there, and a list without
    /// `sh` or `env`; [`Status::Unconfined`] for a path that shows more than a part of a tool: a whole tree of the
    /// host, a store, a home, a corpus, what every session has for itself.
    pub fn read(file: &Path) -> Outcome<Self> {
        let failed = |e: io::Error| {
            Failure::new(Status::Usage, format!("the closure {}: {e}", file.display()))
                .remedy("name a file that lists paths, one a line: nix-store --query --requisites PATH prints one")
        };
        let text = fs::read(file).map_err(failed)?;
        let mut closure = Self { file: file.to_owned(), ..Self::default() };
        let mut found = BTreeSet::new();
        for (number, line) in text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
            let named = listed(line).map_err(|why| closure.line(number, line, Status::Usage, &why))?;
            let traced = trace(&named).map_err(|e| closure.line(number, line, Status::Usage, &e.to_string()))?;
            refuse(&traced).map_err(|(status, why)| closure.line(number, line, status, &why))?;
            closure.links.extend(traced.links);
            closure.programs.extend(programs_of(&named, &traced.end));
            found.insert(traced.end);
        }
        // In byte order of their components a directory comes before everything in it.
        for path in found {
            if closure.paths.last().is_none_or(|outer| !path.starts_with(outer)) {
                closure.paths.push(path);
            }
        }
        closure.links.retain(|link, _| !closure.paths.iter().any(|path| link.starts_with(path)));
        let mut seen = BTreeSet::new();
        closure.programs.retain(|directory| seen.insert(directory.clone()));
        if closure.paths.len() + closure.links.len() > PATHS {
            let count = closure.paths.len() + closure.links.len();
            let message = format!("the closure {} comes to {count} paths and links", file.display());
            return Err(Failure::new(Status::Usage, message)
                .remedy(format!("list directories in place of what is in them: at most {PATHS} can be shown")));
        }
        for (place, program) in NAMED {
            closure.name(Path::new(place), program)?;
        }
        Ok(closure)
    }

    /// What is shown, each at its own place, in byte order.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// The directories in which a session finds programs, in the order of the list.
    #[must_use]
    pub fn programs(&self) -> &[PathBuf] {
        &self.programs
    }

    /// Refuses a closure that shows `path`, something in it, or something that it is in.
    ///
    /// # Errors
    /// `status`, with the line's path.
    pub fn refuse_overlap(&self, path: &Path, what: &str, status: Status) -> Outcome<()> {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match self.paths.iter().find(|shown| shown.starts_with(&path) || path.starts_with(shown)) {
            None => Ok(()),
            Some(shown) => {
                let why = format!("it would show {what} {}", path.display());
                Err(self.refusal(shown.as_os_str().as_bytes(), status, &why))
            }
        }
    }

    /// The items of the view, before those of the session itself.
    pub(super) fn items(&self, host_network: bool) -> Outcome<Vec<Item>> {
        self.refuse_account()?;
        let mut items = Vec::from(private());
        let links = self.links.iter().map(|(path, target)| (path, target, LINK));
        let named = self.named.iter().map(|(path, target)| (path, target, "for scripts"));
        for (path, target, what) in links.chain(named) {
            items.push(Item { path: path.clone(), shown: Shown::Link(target.clone()), what });
        }
        for path in &self.paths {
            items.push(Item { path: path.clone(), shown: Shown::ReadOnly(path.clone()), what: PATH });
        }
        items.extend(etc::items(self, host_network));
        Ok(items)
    }

    /// Whether `path` leads somewhere inside, through links and paths of the closure alone.
    pub(super) fn reaches(&self, path: &Path) -> bool {
        let shown = |path: &Path| self.paths.iter().any(|shown| path.starts_with(shown));
        trace(path).is_ok_and(|traced| {
            shown(&traced.end) && traced.links.keys().all(|link| self.links.contains_key(link) || shown(link))
        })
    }

    /// Whether something of the closure stands at `path`, or holds it.
    pub(super) fn occupies(&self, path: &Path) -> bool {
        self.links.contains_key(path) || self.paths.iter().any(|shown| path.starts_with(shown))
    }

    /// Makes `program` to be found at `place`, where the closure itself does not.
    fn name(&mut self, place: &Path, program: &str) -> Outcome<()> {
        if self.reaches(place) {
            return Ok(());
        }
        let found = self.programs.iter().map(|directory| directory.join(program)).find(|path| self.reaches(path));
        let Some(found) = found else {
            let message = format!("the closure {} holds no program `{program}`", self.file.display());
            return Err(Failure::new(Status::Usage, message)
                .remedy(format!("add the path of one that has bin/{program}, or the program itself")));
        };
        let place = self.place(place);
        if self.occupies(&place) {
            let why = format!("it takes the place of {} without being one", place.display());
            return Err(self.refusal(place.as_os_str().as_bytes(), Status::Usage, &why));
        }
        self.named.push((place, found));
        Ok(())
    }

    /// Where `path` is inside, with the links of the closure above it followed.
    fn place(&self, path: &Path) -> PathBuf {
        let mut out = PathBuf::new();
        let mut names = path.components().peekable();
        let mut links = 0;
        while let Some(name) = names.next() {
            out.push(name);
            while names.peek().is_some()
                && links < LINKS
                && let Some(target) = self.links.get(&out)
            {
                links += 1;
                out = joined(out.parent().unwrap_or(Path::new("/")), target);
            }
        }
        out
    }

    /// Refuses a closure that shows what is this account's: its home, and the harness's configuration.
    fn refuse_account(&self) -> Outcome<()> {
        let of_system = User::from_uid(geteuid()).ok().flatten().map(|user| user.dir);
        let homes = std::env::var_os("HOME").map(PathBuf::from).into_iter().chain(of_system);
        for home in homes.filter(|home| home.parent().is_some()) {
            let home = fs::canonicalize(&home).unwrap_or(home);
            if let Some(shown) = self.paths.iter().find(|shown| home.starts_with(shown)) {
                let why = format!("it would show the home {}", home.display());
                return Err(self.refusal(shown.as_os_str().as_bytes(), Status::Unconfined, &why));
            }
        }
        match crate::harness::configuration::host_directory() {
            Some(directory) => {
                self.refuse_overlap(&directory, "the harness's own configuration at", Status::Unconfined)
            }
            None => Ok(()),
        }
    }

    fn line(&self, number: usize, line: &[u8], status: Status, why: &str) -> Failure {
        let failure = self.refusal(line, status, why);
        Failure { message: format!("line {} of {}", number + 1, failure.message), ..failure }
    }

    fn refusal(&self, line: &[u8], status: Status, why: &str) -> Failure {
        let line = super::on_one_line(Path::new(OsStr::from_bytes(line)));
        let remedy = if status == Status::Usage {
            "list absolute paths of files and directories that are there, one a line"
        } else {
            "list the files, store paths or directories of the tools themselves, and take this one out"
        };
        Failure::new(status, format!("the closure {}: {line}: {why}", self.file.display())).remedy(remedy)
    }
}

#[cfg(test)]
impl Closure {
    /// A closure of one tree and no program, to see what is made of it.
    pub(super) fn of_tree(path: &Path) -> Self {
        Self { paths: vec![path.canonicalize().unwrap_or_else(|_| path.to_owned())], ..Self::default() }
    }
}

/// The path that a line lists.
fn listed(line: &[u8]) -> Result<PathBuf, String> {
    let text = str::from_utf8(line).map_err(|_| "it is not UTF-8")?;
    let path = Path::new(text);
    if text.contains('\0') {
        return Err("it holds a NUL".into());
    }
    if !path.is_absolute() {
        return Err("it is not absolute".into());
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err("it leads through `..`".into());
    }
    Ok(path.components().collect())
}

/// A path, followed to its end.
struct Traced {
    /// The links on its way, each with its target, really at their places.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Where it leads.
    end: PathBuf,
}

/// Follows an absolute path one name at a time, as the kernel does.
fn trace(path: &Path) -> io::Result<Traced> {
    let names =
        |path: &Path| path.components().rev().map(|part| part.as_os_str().to_owned()).collect::<Vec<OsString>>();
    let mut links = BTreeMap::new();
    let mut left = names(path);
    let mut end = PathBuf::from("/");
    let mut followed = 0;
    while let Some(name) = left.pop() {
        match name.as_bytes() {
            b"/" => end = "/".into(),
            b"." => {}
            b".." => drop(end.pop()),
            _ => {
                end.push(&name);
                if !fs::symlink_metadata(&end)?.is_symlink() {
                    continue;
                }
                followed += 1;
                if followed > LINKS {
                    return Err(io::Error::other("it leads through too many links"));
                }
                let target = fs::read_link(&end)?;
                left.extend(names(&target));
                links.insert(end.clone(), target);
                end.pop();
            }
        }
    }
    Ok(Traced { links, end })
}

/// `target` as a link in `directory` has it, by its text.
fn joined(directory: &Path, target: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in directory.join(target).components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// Why a path is not shown, where it is not.
fn refuse(traced: &Traced) -> Result<(), (Status, String)> {
    let end = &traced.end;
    let unconfined = |why: String| Err((Status::Unconfined, why));
    let own = || etc::MADE.into_iter().chain([MANAGED]);
    for path in traced.links.keys().chain([end]) {
        // A profile of a Nix host is a link in /run: it is made again, and leads to what is shown elsewhere.
        let kept = KEPT.into_iter().filter(|kept| *kept != "/run" || path == end);
        if let Some(kept) = kept.chain(own()).find(|kept| path.starts_with(kept)) {
            return unconfined(format!("{} is in {kept}, which is the session's own or the host's", path.display()));
        }
    }
    for link in traced.links.keys() {
        if let Some(place) = KEPT.into_iter().chain(own()).chain(["/tmp"]).find(|own| Path::new(own).starts_with(link))
        {
            return unconfined(format!("the link {} takes the place of {place}, the session's own", link.display()));
        }
    }
    let found = fs::metadata(end).map_err(|e| (Status::Usage, e.to_string()))?;
    if !found.is_dir() {
        return match (found.is_file(), access(end, AccessFlags::R_OK)) {
            (false, _) => unconfined("it is neither a file nor a directory".into()),
            (true, Err(e)) => Err((Status::Usage, e.desc().to_owned())),
            (true, Ok(())) => Ok(()),
        };
    }
    access(end, AccessFlags::R_OK | AccessFlags::X_OK).map_err(|e| (Status::Usage, e.desc().to_owned()))?;
    if end.components().count() <= DEPTH {
        return unconfined(format!("{} is a whole tree of the host", end.display()));
    }
    let is_store = |path: &Path| path.ends_with("nix/store") || path.ends_with("gnu/store");
    if is_store(end) || std::env::var_os("NIX_STORE_DIR").is_some_and(|store| end == Path::new(&store)) {
        return unconfined("it is a whole store".into());
    }
    if end.join(".headwater").exists() {
        return unconfined("it is a corpus".into());
    }
    Ok(())
}

/// Where a listed path has programs: its `bin`, or, where it is a program, its directory.
fn programs_of(named: &Path, end: &Path) -> Vec<PathBuf> {
    if end.is_dir() {
        let at = |name: &str| Some(end.join(name)).filter(|directory| directory.is_dir());
        let is_one = ["bin", "sbin"].into_iter().any(|name| end.ends_with(name));
        let own = is_one.then(|| end.to_path_buf());
        return own.into_iter().chain(["bin", "sbin"].into_iter().filter_map(at)).collect();
    }
    let is_library = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
    let is_program = access(end, AccessFlags::X_OK).is_ok() && !is_library(named) && !is_library(end);
    let directory = named.parent().filter(|_| is_program).and_then(|directory| fs::canonicalize(directory).ok());
    directory.into_iter().collect()
}

/// Refuses a view that lacks a library, or the loader, of this program: it is the launcher of each session.
pub(super) fn refuse_missing_libraries(view: &View) -> Outcome<()> {
    let maps = fs::read_to_string("/proc/self/maps").map_err(|e| Failure::io("/proc/self/maps", e))?;
    let this = std::env::current_exe().map_err(|e| Failure::io("this program cannot be found", e))?;
    let missing: BTreeSet<_> = mapped(&maps).filter(|path| **path != this && !view.shows(path)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    let message = format!("the closure lacks what the launcher of each session is linked with: {list}");
    Err(Failure::new(Status::Usage, message).remedy(format!("add to it what this prints: ldd {}", this.display())))
}

/// The libraries among the mapped files that `maps` tells, the text of `/proc/PID/maps`.
fn mapped(maps: &str) -> impl Iterator<Item = &Path> {
    let path = |line: &'_ str| line.find('/').map(|at| at..);
    maps.lines().filter_map(move |line| {
        // A library has a part that is executed; what is mapped as data alone is found by its own path.
        let executed = line.split_whitespace().nth(1).is_some_and(|mode| mode.contains('x'));
        path(line).filter(|_| executed).map(|range| Path::new(&line[range]))
    })
}

/// A closure as a transcript states it: how many paths, and the digest of their list.
pub(super) fn summary(items: &[Item]) -> Option<String> {
    let shown: Vec<_> = items.iter().filter(|item| item.what == PATH).map(|item| &item.path).collect();
    if shown.is_empty() {
        return None;
    }
    let mut list = Vec::new();
    for path in &shown {
        list.extend_from_slice(path.as_os_str().as_bytes());
        list.push(b'\n');
    }
    Some(format!("{} paths of a closure, read-only, whose list is {}", shown.len(), Digest::of(&list)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::testing::{Place, as_ordinary_user, printed};
    use crate::confine::view::Request;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;
    use tempfile::TempDir;

    /// A store with the paths of a shell and of `env`, and a place for lists.
    struct Store {
        root: TempDir,
    }

    impl Store {
        fn new() -> Self {
            let store = Self { root: tempfile::tempdir().unwrap() };
            fs::set_permissions(store.root.path(), PermissionsExt::from_mode(0o755)).unwrap();
            for program in ["sh", "env"] {
                store.path(&format!("tools/bin/{program}"));
            }
            store
        }

        fn root(&self) -> PathBuf {
            self.root.path().canonicalize().unwrap()
        }

        /// A file, and the directories above it.
        fn path(&self, name: &str) -> PathBuf {
            let path = self.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        }

        fn tools(&self) -> PathBuf {
            self.root().join("tools")
        }

        /// The closure of the tools and of `lines`.
        fn read(&self, lines: &[&dyn AsRef<OsStr>]) -> Outcome<Closure> {
            self.read_only(&[&[&self.tools() as &dyn AsRef<OsStr>], lines].concat())
        }

        fn read_only(&self, lines: &[&dyn AsRef<OsStr>]) -> Outcome<Closure> {
            let list = self.root().join("list");
            fs::write(&list, lines.iter().map(|line| line.as_ref().as_bytes()).collect::<Vec<_>>().join(&b'\n'))
                .unwrap();
            Closure::read(&list)
        }

        #[track_caller]
        fn refused(&self, line: &dyn AsRef<OsStr>, status: Status, why: &str) {
            let failure = self.read(&[line]).unwrap_err();
            assert_eq!((failure.status, failure.spent), (status, false), "{failure}");
            assert!(failure.message.contains(why) && failure.remedy.is_some(), "{failure}");
            assert!(failure.message.starts_with("line 2 of the closure /"), "{failure}");
        }
    }

    #[test]
    fn a_path_is_shown_once_however_often_and_by_whatever_way_it_is_listed() {
        let store = Store::new();
        let (inner, tools) = (store.root().join("tools/bin/sh"), store.tools());
        let slash = format!("{}/", tools.display());
        let dotted = format!("{}/./bin/", tools.display());
        let closure = store.read(&[&inner, &slash, &"", &dotted, &tools]).unwrap();
        assert_eq!(closure.paths(), [tools.as_path()]);
        assert_eq!(closure.programs(), [tools.join("bin")]);
        assert_eq!(store.read(&[]).unwrap().paths(), closure.paths());
    }

    #[test]
    fn a_neighbour_whose_name_begins_alike_is_another_path() {
        let store = Store::new();
        store.path("tools-2/bin/x");
        store.path("tools/a");
        let (other, inner) = (store.root().join("tools-2"), store.root().join("tools/a"));
        assert_eq!(store.read(&[&other, &inner]).unwrap().paths(), [store.tools(), other]);
    }

    #[test]
    fn a_link_is_made_again_and_what_it_leads_to_is_shown_where_it_is() {
        let store = Store::new();
        let end = store.path("really/here/lib.so.1.2");
        symlink("here", store.root().join("really/there")).unwrap();
        symlink("lib.so.1.2", store.root().join("really/here/lib.so.1")).unwrap();
        let listed = store.root().join("really/there/lib.so.1");
        let closure = store.read(&[&listed]).unwrap();
        assert_eq!(closure.paths(), [end, store.tools()]);
        let links: Vec<_> = closure.links.iter().map(|(link, to)| (link.clone(), to.clone())).collect();
        let link = |name: &str, to: &str| (store.root().join(name), PathBuf::from(to));
        assert_eq!(links, [link("really/here/lib.so.1", "lib.so.1.2"), link("really/there", "here")]);
        assert!(closure.reaches(&listed) && !closure.reaches(&store.root().join("list")));
        // A link in a path that is shown is there by itself.
        symlink("bin/sh", store.root().join("tools/shell")).unwrap();
        assert!(store.read(&[&store.root().join("tools/shell")]).unwrap().links.is_empty());
    }

    #[test]
    fn a_line_that_is_no_path_of_something_there_is_refused_by_its_number() {
        let store = Store::new();
        let there = store.path("a/b");
        let usage = |line: &dyn AsRef<OsStr>, why: &str| store.refused(line, Status::Usage, why);
        usage(&"nix/store/x", "not absolute");
        usage(&"# a comment", "not absolute");
        usage(&store.root().join("none"), "No such file");
        usage(&there.join("c"), "Not a directory");
        usage(&store.root().join("a/../a/b"), "`..`");
        usage(&OsStr::from_bytes(b"/a/\xff"), "not UTF-8");
        usage(&"/a/\0b", "a NUL");
        usage(&format!("{}\r", there.display()), "No such file");
        let round = store.root().join("round");
        symlink("round", &round).unwrap();
        usage(&round, "too many links");
        let missing = Closure::read(&store.root().join("none")).unwrap_err();
        assert_eq!((missing.status, missing.remedy.is_some()), (Status::Usage, true));
    }

    #[test]
    fn what_shows_more_than_a_tool_is_refused() {
        let store = Store::new();
        let unconfined = |line: &dyn AsRef<OsStr>, why: &str| store.refused(line, Status::Unconfined, why);
        for whole in ["/", "/usr", "/usr/bin", "/etc", "/tmp", "/var/lib"] {
            unconfined(&whole, "a whole tree of the host");
        }
        unconfined(&"/proc/self/status", "/proc");
        unconfined(&"/dev/null", "/dev");
        unconfined(&"/etc/passwd", "/etc/passwd");
        for name in ["data/nix/store", "data/gnu/store"] {
            store.path(&format!("{name}/x/bin/y"));
            unconfined(&store.root().join(name), "a whole store");
        }
        store.path("source/.headwater/taxonomy.yml");
        unconfined(&store.root().join("source"), "a corpus");
        let fifo = store.root().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        unconfined(&fifo, "neither a file nor a directory");
        // By a link as well.
        let link = store.root().join("link");
        symlink("/usr", &link).unwrap();
        unconfined(&link, "a whole tree of the host");
    }

    #[test]
    fn a_home_a_configuration_and_what_a_recording_is_made_from_are_not_shown() {
        let store = Store::new();
        let secret = store.path("tools/secret/file");
        let closure = store.read(&[]).unwrap();
        for path in [secret.as_path(), secret.parent().unwrap(), &store.tools(), &store.root()] {
            let failure = closure.refuse_overlap(path, "the corpus", Status::Place).unwrap_err();
            assert_eq!((failure.status, failure.spent), (Status::Place, false));
            assert!(failure.message.contains("show the corpus /") && failure.remedy.is_some(), "{failure}");
        }
        closure.refuse_overlap(&store.root().join("other"), "the corpus", Status::Place).unwrap();
        let place = Place::named("tools/x/workspace", "");
        let tools = place.workspace.parent().unwrap();
        let shown = Closure { paths: vec![tools.to_owned()], ..closure };
        let request = Request { closure: Some(&shown), ..place.request(&[]) };
        let failure = View::new(&request).unwrap_err();
        assert!(failure.message.contains("which every session sees"), "{failure}");
    }

    #[test]
    fn a_closure_has_a_shell_and_env_and_they_are_found_where_scripts_look_for_them() {
        let store = Store::new();
        let closure = store.read(&[]).unwrap();
        let at = |place: &str, program: &str| (PathBuf::from(place), store.root().join("tools/bin").join(program));
        assert_eq!(closure.named, [at("/bin/sh", "sh"), at("/usr/bin/env", "env")]);
        for (left, lacks) in [("sh", "`env`"), ("env", "`sh`")] {
            let program = store.root().join("tools/bin").join(left);
            let failure = store.read_only(&[&program]).unwrap_err();
            assert_eq!(failure.status, Status::Usage);
            assert!(failure.message.contains(lacks) && failure.remedy.is_some(), "{failure}");
        }
        assert_eq!(store.read_only(&[&"", &""]).unwrap_err().status, Status::Usage);
        // Where the host's own is listed, it is there by itself.
        let closure = store.read_only(&[&"/bin/sh", &"/usr/bin/env"]).unwrap();
        assert!(closure.named.is_empty() && closure.reaches(Path::new("/bin/sh")), "{closure:?}");
    }

    #[test]
    fn more_paths_than_bwrap_takes_are_refused_before_it_does() {
        let store = Store::new();
        let paths: Vec<_> = (0..=PATHS).map(|n| store.path(&format!("many/{n}"))).collect();
        let lines: Vec<&dyn AsRef<OsStr>> = paths.iter().map(|path| path as &dyn AsRef<OsStr>).collect();
        let failure = store.read(&lines).unwrap_err();
        assert!(failure.status == Status::Usage && failure.message.contains("2502 paths"), "{failure}");
        store.read(&[&store.root().join("many")]).unwrap();
    }

    #[test]
    fn a_library_of_the_launcher_that_is_not_shown_is_named() {
        let store = Store::new();
        let place = Place::new("");
        let closure = store.read(&[]).unwrap();
        let failure = View::new(&Request { closure: Some(&closure), ..place.request(&[]) }).unwrap_err();
        assert_eq!((failure.status, failure.spent), (Status::Usage, false));
        assert!(failure.message.contains("libc.so") && failure.remedy.unwrap().contains("ldd"), "{}", failure.message);
    }

    #[test]
    fn of_a_map_of_memory_the_files_that_are_executed_are_told() {
        let maps = "7f0-7f1 r--p 00000000 fe:00 1   /lib/a.so\n7f1-7f2 r-xp 00001000 fe:00 1   /lib/a b.so\n\
                    7f3-7f4 rw-p 00000000 00:00 0 \n7ff-800 r-xp 00000000 00:00 0   [vdso]\n";
        assert_eq!(mapped(maps).collect::<Vec<_>>(), [Path::new("/lib/a b.so")]);
    }

    /// What a program and its loader are linked with, by the names that `ldd` prints.
    fn linked(program: &Path) -> Vec<PathBuf> {
        let output = Command::new("ldd").arg(program).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
    }

    #[test]
    fn a_session_sees_the_closure_and_nothing_else() {
        as_ordinary_user!();
        let store = Store::new();
        let this = std::env::current_exe().unwrap();
        let mut lines: Vec<PathBuf> =
            ["/bin/sh", "/usr/bin/env", "/bin/ls", "/bin/cat", "/usr/bin/id"].map(PathBuf::from).into();
        lines.extend(lines.clone().iter().chain([&this]).flat_map(|program| linked(program)));
        let lines: Vec<&dyn AsRef<OsStr>> = lines.iter().map(|line| line as &dyn AsRef<OsStr>).collect();
        let closure = store.read_only(&lines).unwrap();
        let place = Place::new("");
        let mut plan = place.plan_of(View::new(&Request { closure: Some(&closure), ..place.request(&[]) }).unwrap());
        let path = std::env::join_paths(plan.view.programs()).unwrap();
        plan.environment = vec![("PATH".into(), path)];
        let seen = printed(&plan, "ls / /etc /usr/bin; cat /etc/shadow /usr/share/dict/words; env true; id -un");
        let expected = ["session", "bin", "etc", "passwd", "cat", "env", "id", "ls"];
        assert!(expected.iter().all(|name| seen.lines().any(|line| line == *name)), "{seen}");
        for absent in ["home", "root", "var", "run", "shadow", "bash", "perl"] {
            assert!(!seen.lines().any(|line| line == absent), "{absent}: {seen}");
        }
        assert_eq!(seen.matches("No such file or directory").count(), 3, "{seen}");
    }
}
