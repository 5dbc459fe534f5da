//! The items of the host that a session sees.
//!
//! The contract's list, typed: whatever is no [`Item`] does not exist inside. The directories above an item are made
//! empty in memory and are read-only, but for those below `/tmp`, which is the session's own.

use crate::status::{Failure, Outcome, Status};
use nix::unistd::{AccessFlags, access};
use std::fmt;
use std::fs;
use std::io;
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
/// The two trees of the host that are shown.
const SHOWN: [&str; 2] = ["/usr", "/etc"];
/// Their siblings in the root directory, shown as the host has them.
const SIBLINGS: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// What no workspace and no log directory may be, hold or lie in.
const RESERVED: [&str; 4] = ["/proc", "/dev", "/sys", OPT];
/// Files of `/etc` that hosts keep as links out of it, and that name resolution needs.
const LINKED_FILES: [&str; 3] = ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"];

/// How an item is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// A file or tree of the host, which cannot be written. The path is the one on the host.
    ReadOnly(PathBuf),
    /// A tree of the host, which can be written. The path is the one on the host.
    ReadWrite(PathBuf),
    /// A file of the recorder's own, in memory, which cannot be written.
    Given(&'static [u8]),
    /// A link with this target, as the host has it.
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
    /// More of the host to read: files or trees, each shown read-only at its own path.
    pub more: &'a [PathBuf],
}

/// The host view: `/usr` and `/etc` of the host, and the items of one session.
#[derive(Debug, Clone)]
pub struct HostView {
    workspace: PathBuf,
    logs: PathBuf,
    items: Vec<Item>,
}

impl HostView {
    /// The view of this host for `request`. Nothing is created or changed on the host.
    ///
    /// # Errors
    /// [`Status::Missing`] for no harness or engine that may be executed,
    /// [`Status::NotEntered`] for a workspace or log directory that is none, [`Status::Unconfined`] for a place at
    /// which the view would show more than the contract's list.
    pub fn new(request: &Request<'_>) -> Outcome<Self> {
        Self::of_root(Path::new("/"), request)
    }

    /// The same, with the shared trees looked up below `root`: the tests' hosts are directories.
    pub(super) fn of_root(root: &Path, request: &Request<'_>) -> Outcome<Self> {
        let workspace = directory(request.workspace, "the workspace")?;
        let logs = directory(request.logs, "the log directory")?;
        let harness = program(request.harness, "the harness")?;
        let engine = program(request.engine, "the engine")?;

        let mut items = shared(root)?;
        let read_only = |path: PathBuf, source, what| Item { path, shown: Shown::ReadOnly(source), what };
        for path in request.more {
            let path = more(path)?;
            items.push(read_only(path.clone(), path, "of the closure"));
        }
        items.push(read_only(ENGINE.into(), engine, "the engine"));
        items.push(read_only(HARNESS.into(), harness, "the harness"));
        for (name, source) in request.beside_harness {
            let path = Path::new(HARNESS_DIRECTORY).join(file_name(name)?);
            items.push(read_only(path, file(source)?, "a file of the harness"));
        }
        let launcher = std::env::current_exe().map_err(|e| Failure::io("this program cannot be found", e))?;
        items.push(read_only(LAUNCHER.into(), launcher, "the launcher"));
        items.push(Item { path: GUARD.into(), shown: Shown::Given(GUARD_BYTES), what: "the guard of the harness" });
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
        Ok(Self { workspace, logs, items })
    }

    /// The items, in the order in which they are put in place.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
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
impl HostView {
    /// Takes the masks out, to show that their absence is seen.
    pub(super) fn unmask(&mut self) {
        self.items.retain(|item| item.shown != Shown::Hidden);
    }
}

/// The items that every session on a host shares.
fn shared(root: &Path) -> Outcome<Vec<Item>> {
    let on_host = |path: &str| root.join(path.trim_start_matches('/'));
    let mut items = Vec::new();
    for path in SHOWN {
        items.push(Item { path: path.into(), shown: Shown::ReadOnly(on_host(path)), what: "of the host" });
    }
    for path in SIBLINGS {
        let source = on_host(path);
        let shown = match fs::symlink_metadata(&source) {
            Ok(found) if found.is_symlink() => {
                Shown::Link(fs::read_link(&source).map_err(|e| Failure::io(source.display(), e))?)
            }
            Ok(found) if found.is_dir() => Shown::ReadOnly(source),
            _ => continue,
        };
        items.push(Item { path: path.into(), shown, what: "of the host" });
    }
    let private = |path: &str, shown, what| Item { path: path.into(), shown, what };
    items.push(private("/proc", Shown::Processes, "processes of the session"));
    items.push(private("/dev", Shown::Devices, "devices of the session"));
    items.push(private("/tmp", Shown::Memory { mode: 0o1777, bytes: TMP_BYTES }, "temporary files of the session"));
    items.extend(hidden(root)?);
    for path in LINKED_FILES {
        items.extend(linked_file(root, path)?);
    }
    Ok(items)
}

/// The mask over the managed settings: over the directory itself where it is one, over the directory a link leads to
/// where the view shows that. A link that leads out of the view leads nowhere inside.
fn hidden(root: &Path) -> Outcome<Option<Item>> {
    let mask = |path: PathBuf| Item { path, shown: Shown::Hidden, what: "managed settings" };
    let on_host = root.join(MANAGED.trim_start_matches('/'));
    match fs::symlink_metadata(&on_host) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(unconfined(format!("{MANAGED}: {e}"))),
        Ok(found) if found.is_dir() => Ok(Some(mask(MANAGED.into()))),
        Ok(found) if found.is_symlink() => {
            let Some(target) = fs::canonicalize(&on_host).ok().filter(|target| target.is_dir()) else {
                return Ok(None);
            };
            let target = Path::new("/").join(target.strip_prefix(root).unwrap_or(&target));
            let inside = SHOWN.iter().chain(&SIBLINGS).any(|shown| target.starts_with(shown));
            Ok(inside.then(|| mask(target)))
        }
        Ok(_) => Ok(None),
    }
}

/// The file that a link of `/etc` reaches outside the shown trees, read-only at the place the link names, so that the
/// link holds inside. A link that reaches no regular file is left as it is: it dangles inside as it does outside.
fn linked_file(root: &Path, link: &str) -> Outcome<Option<Item>> {
    let on_host = root.join(link.trim_start_matches('/'));
    let Ok(target) = fs::read_link(&on_host) else { return Ok(None) };
    let place = normal(&Path::new(link).parent().unwrap_or(Path::new("/")).join(target));
    if SHOWN.iter().chain(&SIBLINGS).chain(&RESERVED).any(|shown| place.starts_with(shown)) {
        return Ok(None);
    }
    let Ok(source) = fs::canonicalize(root.join(place.strip_prefix("/").unwrap_or(&place))) else { return Ok(None) };
    if !fs::metadata(&source).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    Ok(Some(Item { path: place, shown: Shown::ReadOnly(source), what: "of the host, for name resolution" }))
}

/// `path` without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
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

/// A path of a closure: deep enough to be one store path and not a store, and no link, so that what is shown is what is
/// named.
fn more(path: &Path) -> Outcome<PathBuf> {
    let refuse = |why: String| {
        Failure::new(Status::Unconfined, format!("{} cannot be shown to the session: {why}", path.display()))
            .remedy("list store paths, or other paths of at least three names, one a line")
    };
    let real = fs::canonicalize(path).map_err(|e| refuse(e.to_string()))?;
    if real != path {
        return Err(refuse(format!("it is not absolute, or leads through a link to {}", real.display())));
    }
    if real.components().count() < 4 {
        return Err(refuse("it is a whole tree of the host".into()));
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
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    /// A host with the directories and links given: `a/` is a directory, `a -> b` a link, `a` a file.
    fn host(entries: &[&str]) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        for entry in ["usr/bin/", "etc/", "bin -> usr/bin", "lib64/"].iter().chain(entries) {
            let (name, target) = entry.split_once(" -> ").map_or((*entry, None), |(name, to)| (name, Some(to)));
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match target {
                Some(target) => symlink(target, path).unwrap(),
                None if name.ends_with('/') => fs::create_dir_all(path).unwrap(),
                None => fs::write(path, "text").unwrap(),
            }
        }
        root
    }

    fn lines(root: &Path, items: &[Item]) -> Vec<String> {
        let root = root.canonicalize().unwrap();
        items
            .iter()
            .map(|item| {
                let source = match &item.shown {
                    Shown::ReadOnly(source) | Shown::ReadWrite(source) => source.strip_prefix(&root).unwrap_or(source),
                    _ => Path::new(""),
                };
                format!("{item} {}", source.display()).trim_end().to_owned()
            })
            .collect()
    }

    fn shared_lines(entries: &[&str]) -> Vec<String> {
        let root = host(entries);
        lines(root.path(), &shared(&root.path().canonicalize().unwrap()).unwrap())
    }

    const BARE: [&str; 7] = [
        "/usr (of the host, read-only) usr",
        "/etc (of the host, read-only) etc",
        "/bin (link to usr/bin)",
        "/lib64 (of the host, read-only) lib64",
        "/proc (processes of the session, private)",
        "/dev (devices of the session, private)",
        "/tmp (temporary files of the session, private)",
    ];

    #[test]
    fn the_trees_of_the_host_are_shown_as_the_host_has_them() {
        assert_eq!(shared_lines(&[]), BARE);
        assert_eq!(shared_lines(&["home/user/", "root/", "run/docker.sock", "lib32", "lib.usr-is-merged/"]), BARE);
    }

    #[test]
    fn managed_settings_are_hidden_where_the_host_has_them_and_nowhere_else() {
        let hidden = |path: &str| vec![format!("{path} (managed settings, hidden)")];
        for (entries, expected) in [
            (&["etc/claude-code/managed-settings.json"][..], hidden("/etc/claude-code")),
            (&["etc/claude-code -> ../usr/managed", "usr/managed/managed-settings.json"], hidden("/usr/managed")),
            (&["etc/claude-code -> ../opt/managed", "opt/managed/managed-settings.json"], vec![]),
            (&["etc/claude-code -> ../nowhere"], vec![]),
            (&["etc/claude-code -> claude-code"], vec![]),
            (&["etc/claude-code"], vec![]),
        ] {
            assert_eq!(shared_lines(entries)[BARE.len()..], expected, "{entries:?}");
        }
    }

    #[test]
    fn a_link_of_etc_that_name_resolution_needs_holds_inside() {
        let place = "of the host, for name resolution, read-only";
        for (entries, expected) in [
            (
                &["etc/resolv.conf -> ../run/systemd/resolve/stub.conf", "run/systemd/resolve/stub.conf"][..],
                vec![format!("/run/systemd/resolve/stub.conf ({place}) run/systemd/resolve/stub.conf")],
            ),
            // A link to a link: the first is followed inside, the second is followed here.
            (
                &["etc/resolv.conf -> ../run/a.conf", "run/a.conf -> b/c.conf", "run/b/c.conf"],
                vec![format!("/run/a.conf ({place}) run/b/c.conf")],
            ),
            (&["etc/resolv.conf -> ../run/nowhere.conf"], vec![]),
            (&["etc/resolv.conf -> ../run/directory", "run/directory/file"], vec![]),
            (&["etc/resolv.conf -> ../usr/x.conf", "usr/x.conf"], vec![]),
            (&["etc/resolv.conf -> ../proc/x", "proc/x"], vec![]),
            (&["etc/resolv.conf -> resolv.conf"], vec![]),
            (&["etc/resolv.conf"], vec![]),
        ] {
            assert_eq!(shared_lines(entries)[BARE.len()..], expected, "{entries:?}");
        }
    }

    #[test]
    fn a_session_s_own_items_are_named_one_by_one() {
        let place = Place::new("");
        let root = host(&[]);
        let view = HostView::of_root(root.path(), &place.request(&[("script", &place.script)])).unwrap();
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
        HostView::new(&place.request(&[])).unwrap_err()
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
        let failure = HostView::new(&request).unwrap_err();
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
            let failure = HostView::new(&request).unwrap_err();
            assert_eq!((failure.status, failure.spent), (status, false), "{failure}");
            assert!(failure.message.contains(place.directory.path().to_str().unwrap()), "{failure}");
        }
        for name in ["", ".", "..", "a/b", "/a", "claude", "a/"] {
            let beside = [(name, place.script.as_path())];
            assert!(HostView::new(&place.request(&beside)).is_err(), "{name}");
        }
    }

    #[test]
    fn a_closure_is_paths_that_are_shown_and_never_a_whole_tree_or_a_link() {
        let place = Place::new("");
        let deep = place.directory.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        let deep = deep.canonicalize().unwrap();
        let link = deep.join("link");
        std::os::unix::fs::symlink("/usr/bin", &link).unwrap();
        let shown = |more: &[PathBuf]| HostView::new(&Request { more, ..place.request(&[]) });
        let view = shown(std::slice::from_ref(&deep)).unwrap();
        assert!(view.items().iter().any(|item| item.path == deep && item.shown == Shown::ReadOnly(deep.clone())));
        for refused in [Path::new("/"), Path::new("/usr/share"), &link, &deep.join("none"), Path::new("relative")] {
            assert_eq!(shown(&[refused.to_owned()]).unwrap_err().status, Status::Unconfined, "{}", refused.display());
        }
    }
}
