//! The items of the host that a session sees.
//!
//! The contract's list, typed: whatever is no [`Item`] does not exist inside. The directories above an item are made
//! empty in memory and are read-only, but for those below `/tmp`, which is the session's own.
//!
//! - `host`: what every session on a host shares: its `/usr` and `/etc`.
//! - [`closure`]: in place of that, the paths of a list, each by itself, and an `/etc` in memory (`etc`).
//! - [`list`]: a view as a list for people and tools.

pub mod closure;
mod etc;
mod host;
pub mod list;

use self::closure::Closure;
use crate::status::{Failure, Outcome, Status};
use nix::unistd::{AccessFlags, access};
use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The directory of everything the recorder adds to the view.
pub const OPT: &str = "/opt/headwater";
/// The directory of the engine, first in the session's `PATH`.
pub const ENGINE_DIRECTORY: &str = "/opt/headwater/bin";
/// The engine inside.
pub const ENGINE: &str = "/opt/headwater/bin/headwater";
/// The directory of the harness and of the files given to it.
pub const HARNESS_DIRECTORY: &str = "/opt/headwater/harness";
/// The harness inside.
pub const HARNESS: &str = "/opt/headwater/harness/claude";
/// The launcher inside: this program, which holds a session to its view and becomes the harness.
pub const LAUNCHER: &str = "/opt/headwater/launcher";
/// The guard inside: the library that closes the harness to its tools.
pub const GUARD: &str = "/opt/headwater/guard.so";
/// The configuration directory of the session, in memory: `HOME` and `CLAUDE_CONFIG_DIR`.
pub const CONFIGURATION: &str = "/opt/headwater/config";

/// The guard, as `build.rs` has built it.
const GUARD_BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guard.so"));

/// The most that the session may write to its `/tmp`, in bytes: a runaway command must not fill the host's memory.
pub const TMP_BYTES: u64 = 4 << 30;
/// The most that the session may write to its configuration directory, in bytes.
pub const CONFIGURATION_BYTES: u64 = 1 << 30;

/// Managed settings, which the harness always reads where they exist.
const MANAGED: &str = "/etc/claude-code";
/// What no workspace and no log directory may be, hold or lie in.
const RESERVED: [&str; 4] = ["/proc", "/dev", "/sys", OPT];

/// How an item is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A file or tree of the host, which cannot be written. The path is the one on the host.
    ReadOnly(PathBuf),
    /// A tree of the host, which can be written. The path is the one on the host.
    ReadWrite(PathBuf),
    /// A file of the recorder's own, in memory, which cannot be written.
    Given(Cow<'static, [u8]>),
    /// A link with this target.
    Link(PathBuf),
    /// A process file system of the session's own.
    Processes,
    /// A device file system of the session's own.
    Devices,
    /// A directory in memory that ends with the session: its mode and the most it holds in bytes.
    Memory { mode: u32, bytes: u64 },
    /// An empty directory over one of the host, which cannot be written.
    Hidden,
}

/// One item of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Where the session sees it.
    pub path: PathBuf,
    /// How.
    pub shown: Shown,
    /// What it is, in words for a transcript.
    pub what: &'static str,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match &self.shown {
            Shown::ReadOnly(_) | Shown::Given(_) => "read-only",
            Shown::ReadWrite(_) => "read-write",
            Shown::Link(target) => return write!(f, "{} (link to {})", on_one_line(&self.path), on_one_line(target)),
            Shown::Processes | Shown::Devices | Shown::Memory { .. } => "private",
            Shown::Hidden => "hidden",
        };
        write!(f, "{} ({}, {how})", on_one_line(&self.path), self.what)
    }
}

/// A path as text of one line, with its control characters escaped.
fn on_one_line(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if c.is_control() {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    })
}

/// What a view is made for. All paths are of the host.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The workspace: a directory, shown at its own path.
    pub workspace: &'a Path,
    /// The log directory of the run: a directory, shown at its own path. It may be inside the workspace.
    pub logs: &'a Path,
    /// The harness binary.
    pub harness: &'a Path,
    /// Files the harness is given, each by the name it has in [`HARNESS_DIRECTORY`].
    pub beside_harness: &'a [(&'a str, &'a Path)],
    /// The engine binary.
    pub engine: &'a Path,
    /// What is shown in place of the host's trees, for the closure view.
    pub closure: Option<&'a Closure>,
    /// Whether the session shares the network of the host, and so needs to know its resolvers.
    pub host_network: bool,
}

/// What a session sees besides its own items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// `/usr` and `/etc` of the host.
    Host,
    /// The paths of a closure, and nothing else of the host.
    Closure,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Host => "host",
            Self::Closure => "closure",
        })
    }
}

/// What one session sees.
#[derive(Debug, Clone)]
pub struct View {
    kind: Kind,
    programs: Vec<PathBuf>,
    workspace: PathBuf,
    logs: PathBuf,
    items: Vec<Item>,
}

impl View {
    /// The view of this host for `request`. Nothing is created or changed on the host.
    ///
    /// # Errors
    /// [`Status::Missing`] for no harness or engine that may be executed,
    /// [`Status::NotEntered`] for a workspace or log directory that is none, [`Status::Unconfined`] for a place at
    /// which the view would show more than the contract's list.
    pub fn new(request: &Request<'_>) -> Outcome<Self> {
        Self::of_root(Path::new("/"), request)
    }

    /// The same, with the trees of the host view looked up below `root`: the tests' hosts are directories.
    pub(super) fn of_root(root: &Path, request: &Request<'_>) -> Outcome<Self> {
        let workspace = directory(request.workspace, "the workspace")?;
        let logs = directory(request.logs, "the log directory")?;
        let harness = program(request.harness, "the harness")?;
        let engine = program(request.engine, "the engine")?;

        let (kind, mut items, programs) = match request.closure {
            None => (Kind::Host, host::items(root)?, host::PROGRAMS.map(PathBuf::from).to_vec()),
            Some(closure) => (Kind::Closure, closure.items(request.host_network)?, closure.programs().to_vec()),
        };
        let read_only = |path: PathBuf, source, what| Item { path, shown: Shown::ReadOnly(source), what };
        items.push(read_only(ENGINE.into(), engine, "the engine"));
        items.push(read_only(HARNESS.into(), harness, "the harness"));
        for (name, source) in request.beside_harness {
            let path = Path::new(HARNESS_DIRECTORY).join(file_name(name)?);
            items.push(read_only(path, file(source)?, "a file of the harness"));
        }
        let launcher = std::env::current_exe().map_err(|e| Failure::io("this program cannot be found", e))?;
        items.push(read_only(LAUNCHER.into(), launcher, "the launcher"));
        items.push(Item {
            path: GUARD.into(),
            shown: Shown::Given(Cow::Borrowed(GUARD_BYTES)),
            what: "the guard of the harness",
        });
        items.push(Item {
            path: CONFIGURATION.into(),
            shown: Shown::Memory { mode: 0o700, bytes: CONFIGURATION_BYTES },
            what: "the configuration directory",
        });

        for (path, what) in [(&workspace, "the workspace"), (&logs, "the log directory")] {
            refuse_place(path, what, &items)?;
        }
        if workspace != logs && workspace.starts_with(&logs) {
            return Err(place(&workspace, "the workspace", "is inside the log directory, which other sessions write"));
        }
        let read_write =
            |path: &PathBuf, what| Item { path: path.clone(), shown: Shown::ReadWrite(path.clone()), what };
        items.push(read_write(&workspace, "the workspace"));
        if !logs.starts_with(&workspace) {
            items.push(read_write(&logs, "the log directory"));
        }
        let view = Self { kind, programs, workspace, logs, items };
        if kind == Kind::Closure {
            closure::refuse_missing_libraries(&view)?;
        }
        Ok(view)
    }

    /// Which of the views it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The directories in which a session finds programs, after the engine's.
    #[must_use]
    pub fn programs(&self) -> &[PathBuf] {
        &self.programs
    }

    /// The items, in the order in which they are put in place.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The items that are stated one by one, for a reader: all but the workspace and what a closure lists.
    pub fn stated(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.path != self.workspace && !closure::LISTED.contains(&item.what))
    }

    /// What stands for what a closure lists: how much it is, and the digest of its list.
    #[must_use]
    pub fn closure_summary(&self) -> Option<String> {
        closure::summary(&self.items)
    }

    /// The workspace, at its own path with every link of it resolved.
    #[must_use]
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The log directory of the run, resolved in the same way.
    #[must_use]
    pub fn logs(&self) -> &Path {
        &self.logs
    }

    /// The paths outside the workspace that the view holds. A session that names one has not left the view.
    #[must_use]
    pub fn outside_allowed(&self) -> Vec<&Path> {
        let held = self.items.iter().filter(|item| item.shown != Shown::Hidden && item.path != self.workspace);
        held.map(|item| item.path.as_path()).collect()
    }

    /// Whether the session can read what is at `path` of the host, links resolved: so a corpus or a home directory
    /// that lies in a shown tree is found before the session is.
    #[must_use]
    pub fn shows(&self, path: &Path) -> bool {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        self.items.iter().any(|item| match &item.shown {
            Shown::ReadOnly(source) | Shown::ReadWrite(source) => path.starts_with(source),
            _ => false,
        })
    }
}

#[cfg(test)]
impl View {
    /// Takes the masks out, to show that their absence is seen.
    pub(super) fn unmask(&mut self) {
        self.items.retain(|item| item.shown != Shown::Hidden);
    }
}

/// What every session has for itself.
fn private() -> [Item; 3] {
    let item = |path: &str, shown, what| Item { path: path.into(), shown, what };
    let memory = Shown::Memory { mode: 0o1777, bytes: TMP_BYTES };
    [
        item("/proc", Shown::Processes, "processes of the session"),
        item("/dev", Shown::Devices, "devices of the session"),
        item("/tmp", memory, "temporary files of the session"),
    ]
}

/// Refuses a writable tree that would show, or be written by, another item: a mount point below it would be created
/// on the host, and a shown tree above it would show its neighbours.
fn refuse_place(path: &Path, what: &str, items: &[Item]) -> Outcome<()> {
    for reserved in RESERVED {
        if path.starts_with(reserved) || Path::new(reserved).starts_with(path) {
            return Err(place(path, what, &format!("overlaps {reserved}, which is the session's own")));
        }
    }
    for item in items {
        let source = match &item.shown {
            Shown::ReadOnly(source) | Shown::ReadWrite(source) => source,
            Shown::Link(_) | Shown::Given(_) | Shown::Hidden => &item.path,
            Shown::Processes | Shown::Devices | Shown::Memory { .. } if item.path.starts_with(path) => &item.path,
            _ => continue,
        };
        if item.path.starts_with(path) || source.starts_with(path) {
            return Err(place(path, what, &format!("holds {} ({})", source.display(), item.what)));
        }
        if path.starts_with(&item.path) {
            return Err(place(path, what, &format!("is inside {}, which every session sees", item.path.display())));
        }
    }
    Ok(())
}

fn place(path: &Path, what: &str, why: &str) -> Failure {
    unconfined(format!("{what} {} {why}", path.display()))
        .remedy("put it in a directory of its own, such as below /tmp, /var/tmp or /srv")
}

fn unconfined(message: String) -> Failure {
    Failure::new(Status::Unconfined, message)
}

fn directory(path: &Path, what: &str) -> Outcome<PathBuf> {
    let refuse = |why: String| {
        Failure::new(Status::NotEntered, format!("{what} {}: {why}", path.display()))
            .remedy("name a directory that this user can enter and write")
    };
    let real = fs::canonicalize(path).map_err(|e| refuse(e.to_string()))?;
    let found = fs::symlink_metadata(&real).map_err(|e| refuse(e.to_string()))?;
    if !found.is_dir() {
        return Err(refuse("it is no directory".into()));
    }
    Ok(real)
}

fn program(path: &Path, what: &str) -> Outcome<PathBuf> {
    let missing = |why: String| {
        Failure::new(Status::Missing, format!("{what} {}: {why}", path.display()))
            .remedy("name an executable file that this user can read")
    };
    let real = fs::canonicalize(path).map_err(|e| missing(e.to_string()))?;
    let found = fs::metadata(&real).map_err(|e| missing(e.to_string()))?;
    if !found.is_file() {
        return Err(missing("it is no regular file".into()));
    }
    if let Err(e) = access(&real, AccessFlags::X_OK) {
        let message = format!("{what} {} cannot be executed: {}", path.display(), e.desc());
        return Err(Failure::new(Status::Missing, message).remedy(format!("chmod a+rx {}", real.display())));
    }
    Ok(real)
}

fn file(path: &Path) -> Outcome<PathBuf> {
    let missing = |why: &dyn fmt::Display| Failure::new(Status::Missing, format!("{}: {why}", path.display()));
    let real = fs::canonicalize(path).map_err(|e| missing(&e))?;
    if !fs::metadata(&real).map_err(|e| missing(&e))?.is_file() {
        return Err(missing(&"it is no regular file"));
    }
    Ok(real)
}

fn file_name(name: &str) -> Outcome<&str> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(only)), None) if only == name && name != "claude" => Ok(name),
        _ => Err(Failure::new(Status::Internal, format!("`{name}` is no name for a file beside the harness"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::testing::Place;
    use crate::confine::view::host::testing::{BARE, host, lines};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_session_s_own_items_are_named_one_by_one() {
        let place = Place::new("");
        let root = host(&[]);
        let view = View::of_root(root.path(), &place.request(&[("script", &place.script)])).unwrap();
        let (workspace, logs) = (place.workspace.display(), place.logs.display());
        let own = lines(root.path(), &view.items()[BARE.len()..]);
        let sh = Path::new("/bin/sh").canonicalize().unwrap();
        let this = std::env::current_exe().unwrap();
        assert_eq!(
            own,
            [
                format!("/opt/headwater/bin/headwater (the engine, read-only) {}", "/usr/bin/true"),
                format!("/opt/headwater/harness/claude (the harness, read-only) {}", sh.display()),
                format!("/opt/headwater/harness/script (a file of the harness, read-only) {}", place.script.display()),
                format!("/opt/headwater/launcher (the launcher, read-only) {}", this.display()),
                "/opt/headwater/guard.so (the guard of the harness, read-only)".to_owned(),
                "/opt/headwater/config (the configuration directory, private)".to_owned(),
                format!("{workspace} (the workspace, read-write) {workspace}"),
                format!("{logs} (the log directory, read-write) {logs}"),
            ]
        );
        let allowed = view.outside_allowed();
        assert!(allowed.contains(&Path::new("/usr")) && allowed.contains(&place.logs.as_path()));
        assert!(!allowed.contains(&place.workspace.as_path()));
    }

    #[test]
    fn an_item_is_one_line_whatever_its_path_is() {
        let place = Place::named("a\nb\u{1b}[1m", "");
        let shown = place.view().items().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(shown.iter().all(|line| line.chars().all(|c| !c.is_control())));
        assert!(shown.iter().any(|line| line.contains("a\\nb\\u{1b}[1m (the workspace, read-write)")));
    }

    #[test]
    fn a_log_directory_in_the_workspace_is_seen_through_it() {
        let mut place = Place::new("");
        place.logs = place.workspace.join("logs");
        fs::create_dir(&place.logs).unwrap();
        let items = place.view().items().to_vec();
        assert!(items.iter().all(|item| item.path != place.logs));
        place.logs.clone_from(&place.workspace);
        let of_workspace = place.view().items().iter().filter(|item| item.path == place.workspace).count();
        assert_eq!(of_workspace, 1);
    }

    #[test]
    fn a_path_of_the_host_is_shown_where_the_session_could_read_it() {
        let place = Place::new("");
        let view = place.view();
        for shown in ["/usr/share", "/etc/passwd", "/bin/sh"] {
            assert!(view.shows(Path::new(shown)), "{shown}");
        }
        assert!(view.shows(&place.workspace.join("not yet there")));
        for hidden in ["/", "/root", "/home/user", "/usr2"] {
            assert!(!view.shows(Path::new(hidden)), "{hidden}");
        }
        assert!(!view.shows(place.directory.path()));
        let link = place.directory.path().join("corpus");
        symlink("/usr/share", &link).unwrap();
        assert!(view.shows(&link));
    }

    fn refused(place: &Place) -> Failure {
        View::new(&place.request(&[])).unwrap_err()
    }

    #[test]
    fn a_workspace_where_the_view_would_show_more_than_it_is_refused() {
        for path in ["/", "/usr", "/usr/share", "/etc", "/bin", "/proc/self", "/dev", "/sys", "/opt", "/tmp"] {
            let mut place = Place::new("");
            place.workspace = path.into();
            let failure = refused(&place);
            assert_eq!((failure.status, failure.spent), (Status::Unconfined, false), "{path}");
            assert!(failure.message.contains("the workspace /") && failure.remedy.is_some(), "{failure}");
            let mut place = Place::new("");
            place.logs = path.into();
            assert_eq!(refused(&place).status, Status::Unconfined, "{path}");
        }
    }

    #[test]
    fn a_workspace_inside_the_log_directory_is_refused() {
        let mut place = Place::named("logs2/workspace", "");
        place.logs = place.workspace.parent().unwrap().to_owned();
        assert!(refused(&place).message.contains("inside the log directory"));
    }

    #[test]
    fn a_harness_that_the_session_could_write_is_refused() {
        let place = Place::new("");
        let harness = place.workspace.join("claude");
        fs::copy("/bin/true", &harness).unwrap();
        let request = Request { harness: &harness, ..place.request(&[]) };
        let failure = View::new(&request).unwrap_err();
        assert_eq!(failure.status, Status::Unconfined);
        assert!(failure.message.contains("(the harness)"), "{failure}");
    }

    #[test]
    fn a_link_to_a_workspace_is_its_target() {
        let mut place = Place::new("");
        let real = place.workspace.clone();
        place.workspace = place.directory.path().join("link");
        symlink(&real, &place.workspace).unwrap();
        assert_eq!(place.view().workspace(), real);
        fs::remove_file(&place.workspace).unwrap();
        symlink("/usr/share", &place.workspace).unwrap();
        assert_eq!(refused(&place).status, Status::Unconfined);
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let place = Place::new("");
        let none = place.directory.path().join("none");
        let not_executable = &place.script;
        fs::set_permissions(not_executable, fs::Permissions::from_mode(0o644)).unwrap();
        let request = || place.request(&[]);
        let beside = [("script", none.as_path())];
        for (request, status) in [
            (Request { workspace: &none, ..request() }, Status::NotEntered),
            (Request { workspace: not_executable, ..request() }, Status::NotEntered),
            (Request { logs: &none, ..request() }, Status::NotEntered),
            (Request { harness: &none, ..request() }, Status::Missing),
            (Request { harness: place.directory.path(), ..request() }, Status::Missing),
            (Request { harness: not_executable, ..request() }, Status::Missing),
            (Request { engine: &none, ..request() }, Status::Missing),
            (Request { engine: not_executable, ..request() }, Status::Missing),
            (place.request(&beside), Status::Missing),
        ] {
            let failure = View::new(&request).unwrap_err();
            assert_eq!((failure.status, failure.spent), (status, false), "{failure}");
            assert!(failure.message.contains(place.directory.path().to_str().unwrap()), "{failure}");
        }
        for name in ["", ".", "..", "a/b", "/a", "claude", "a/"] {
            let beside = [(name, place.script.as_path())];
            assert!(View::new(&place.request(&beside)).is_err(), "{name}");
        }
    }
}
