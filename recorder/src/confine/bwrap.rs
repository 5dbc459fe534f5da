//! bwrap found, and the view as its arguments.

use crate::confine::landlock::{Network, Rules};
use crate::confine::launcher::SAYS;
use crate::confine::seccomp::Program;
use crate::confine::view::{Item, Shown, View};
use crate::status::{Failure, Outcome, Status};
use nix::unistd::{AccessFlags, access, geteuid};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name of the session's host.
const HOSTNAME: &str = "headwater";
/// The namespaces a session must have for itself.
pub(super) const OWN_NAMESPACES: [&str; 5] = ["ipc", "mnt", "pid", "user", "uts"];
/// The namespaces that it may share with the host.
pub(super) const SHARED_NAMESPACES: [&str; 2] = ["cgroup", "net"];

/// The bwrap of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bwrap {
    /// The program.
    pub path: PathBuf,
    /// What it calls itself, such as `bubblewrap 0.8.0`.
    pub version: String,
}

impl Bwrap {
    /// The bwrap at `explicit`, else the first one in the absolute directories of `search` (a `PATH`).
    ///
    /// # Errors
    /// [`Status::Unconfined`], with how to install it here.
    pub fn find(explicit: Option<&Path>, search: Option<&OsStr>) -> Outcome<Self> {
        let executable = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
        let path = match explicit {
            Some(path) if executable(path) => path.to_owned(),
            Some(path) => return Err(no_bwrap(format!("{} is no executable file", path.display()))),
            None => std::env::split_paths(search.unwrap_or_default())
                .filter(|directory| directory.is_absolute())
                .map(|directory| directory.join("bwrap"))
                .find(|path| executable(path))
                .ok_or_else(|| no_bwrap("bwrap is not in PATH".into()))?,
        };
        let path = std::path::absolute(&path).map_err(|e| Failure::io(path.display(), e))?;
        let output = Command::new(&path).arg("--version").env_clear().output();
        let output = output.map_err(|e| no_bwrap(format!("{}: {e}", path.display())))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if !output.status.success() || !version.starts_with("bubblewrap ") {
            return Err(no_bwrap(format!("{} is not bubblewrap", path.display())));
        }
        Ok(Self { path, version })
    }
}

fn no_bwrap(why: String) -> Failure {
    let os_release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    Failure::new(Status::Unconfined, format!("no bwrap to confine a session with: {why}"))
        .remedy(install_remedy(&os_release))
}

/// How bubblewrap is installed on the distribution that `os_release` (the text of `/etc/os-release`) names.
#[must_use]
pub fn install_remedy(os_release: &str) -> String {
    let ways = [
        (&["debian", "ubuntu"][..], "apt install bubblewrap"),
        (&["fedora", "rhel", "centos"], "dnf install bubblewrap"),
        (&["arch"], "pacman -S bubblewrap"),
        (&["nixos"], "nix profile install nixpkgs#bubblewrap"),
    ];
    let value = |key: &str| os_release.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    let names = [value("ID="), value("ID_LIKE=")].join(" ").replace(['"', '\''], "");
    let here = names.split_whitespace().find_map(|name| ways.iter().find(|(ids, _)| ids.contains(&name)));
    match here {
        Some((_, way)) => (*way).to_owned(),
        None => format!("install bubblewrap: {}", ways.map(|(_, way)| way).join(", or ")),
    }
}

/// Refuses the superuser: the files that only root can read would be readable in the view.
///
/// # Errors
/// [`Status::Unconfined`].
pub fn refuse_root() -> Outcome<()> {
    if geteuid().is_root() {
        let message =
            "the recorder runs as root, so root's own files of /usr and /etc would be readable to the session";
        return Err(Failure::new(Status::Unconfined, message).remedy("run it as an ordinary user"));
    }
    Ok(())
}

/// A file that exists inside only, in memory.
#[derive(Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// Where the session sees it.
    pub path: PathBuf,
    /// Its permissions.
    pub mode: u32,
    /// What it holds.
    pub bytes: Vec<u8>,
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFile").field("path", &self.path).field("mode", &self.mode).finish_non_exhaustive()
    }
}

/// One session as bwrap starts it.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The bwrap that starts it.
    pub bwrap: Bwrap,
    /// What it sees.
    pub view: View,
    /// Files that are put into the view's memory, each below a [`Shown::Memory`] item.
    pub files: Vec<MemoryFile>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The program and its arguments, as paths inside.
    pub command: Vec<OsString>,
}

/// What holds a session besides bwrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restrictions {
    /// The rules of Landlock.
    pub rules: Rules,
    /// The filter of its system calls.
    pub filter: Program,
}

impl Plan {
    /// What holds the session besides bwrap, on this kernel.
    ///
    /// # Errors
    /// [`Status::Unconfined`] where the kernel has no Landlock.
    pub fn restrictions(&self) -> Outcome<Restrictions> {
        let rules = Rules::of(&self.view, Network::Host)?;
        let filter = Program::compile(rules.enforced().abi);
        Ok(Restrictions { rules, filter })
    }

    /// The files that exist inside only: where, with which permissions, and what they hold.
    pub(super) fn in_memory(&self) -> impl Iterator<Item = (&Path, u32, &[u8])> {
        let given = self.view.items().iter().filter_map(|item| match &item.shown {
            Shown::Given(bytes) => Some((item.path.as_path(), 0o444, bytes.as_ref())),
            _ => None,
        });
        given.chain(self.files.iter().map(|file| (file.path.as_path(), file.mode, file.bytes.as_slice())))
    }

    /// The options of bwrap, in full and without the command. `files` are descriptors of the files in memory, in order.
    #[must_use]
    pub fn options(&self, files: &[RawFd]) -> Vec<OsString> {
        self.option_lines(files).concat()
    }

    /// The same, each option with its values, and with what has to stand before it.
    #[must_use]
    pub fn option_lines(&self, files: &[RawFd]) -> Vec<Vec<OsString>> {
        let mut out = Options::default();
        for flag in ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"] {
            out.add(&[&flag]);
        }
        out.add(&[&"--cap-drop", &"ALL"]);
        out.add(&[&"--die-with-parent"]);
        out.add(&[&"--new-session"]);
        out.add(&[&"--hostname", &HOSTNAME]);
        out.add(&[&"--clearenv"]);
        for item in self.view.items() {
            out.item(item);
        }
        for ((path, mode, _), fd) in self.in_memory().zip(files) {
            out.add(&[&"--perms", &format!("{mode:04o}"), &"--file", &fd.to_string(), &path]);
        }
        // Last, because it is on this directory that every mount point above was made.
        out.add(&[&"--remount-ro", &"/"]);
        out.add(&[&"--chdir", &self.view.workspace()]);
        out.0
    }
}

#[derive(Default)]
struct Options(Vec<Vec<OsString>>);

impl Options {
    fn add(&mut self, words: &[&dyn AsRef<OsStr>]) {
        self.0.push(words.iter().map(|word| word.as_ref().to_owned()).collect());
    }

    fn item(&mut self, item: &Item) {
        let path = &item.path;
        match &item.shown {
            Shown::ReadOnly(source) => self.add(&[&"--ro-bind", source, path]),
            Shown::ReadWrite(source) => self.add(&[&"--bind", source, path]),
            // Put in place with the other files in memory.
            Shown::Given(_) => {}
            Shown::Link(target) => self.add(&[&"--symlink", target, path]),
            Shown::Processes => self.add(&[&"--proc", path]),
            Shown::Devices => self.add(&[&"--dev", path]),
            Shown::Memory { mode, bytes } => {
                let (mode, bytes) = (format!("{mode:04o}"), bytes.to_string());
                self.add(&[&"--perms", &mode, &"--size", &bytes, &"--tmpfs", path]);
            }
            Shown::Hidden => self.add(&[&"--tmpfs", path, &"--remount-ro", path]),
        }
    }
}

/// Why bwrap did not get as far as the command, from what it printed. `errors` is its standard error.
pub(super) fn diagnose(errors: &str) -> Failure {
    let apparmor = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    diagnose_on(errors, apparmor.is_ok_and(|text| text.trim() == "1"))
}

const NO_USER_NAMESPACES: &str = "let ordinary users create user namespaces: sysctl kernel.unprivileged_userns_clone=1 \
     where that key exists, and sysctl user.max_user_namespaces=15000";
const APPARMOR: &str = "AppArmor keeps user namespaces from programs without a profile: add one for bwrap \
     (apparmor-profiles has bwrap-userns-restrict), or sysctl kernel.apparmor_restrict_unprivileged_userns=0";
const NESTED: &str = "record on the host itself, or give the container an unmasked /proc \
     (docker and podman: --security-opt systempaths=unconfined --security-opt seccomp=unconfined)";

const LAUNCHER_NEEDS: &str = "the view needs the loader and the libraries that this program is linked with, by the \
     names that ldd prints of it: list them, or their store paths, in the file of --closure";

fn diagnose_on(errors: &str, apparmor: bool) -> Failure {
    if let Some(said) = errors.lines().find_map(|line| line.strip_prefix(SAYS)) {
        return Failure::new(Status::Unconfined, format!("the session cannot be confined: {said}"))
            .remedy("run `headwater-recorder doctor`");
    }
    // The loader's own words, GNU's and musl's.
    let loader = ["error while loading shared libraries: ", "Error loading shared library "];
    if let Some(said) = errors.lines().find_map(|line| loader.iter().find_map(|words| line.split_once(words))) {
        let message = format!("the view lacks a library that the launcher is linked with: {}", said.1);
        return Failure::new(Status::Unconfined, message).remedy(LAUNCHER_NEEDS);
    }
    let said = errors.lines().rev().find_map(|line| line.strip_prefix("bwrap: ")).unwrap_or(errors).trim();
    let holds = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    let refuse = |status, cause: &str, remedy: &str| {
        let said = if said.is_empty() { "it printed nothing" } else { said };
        Failure::new(status, format!("{cause}: bwrap: {said}")).remedy(remedy)
    };
    let unconfined = |cause, remedy| refuse(Status::Unconfined, cause, remedy);
    if holds(&["Can't chdir to"]) {
        return refuse(
            Status::NotEntered,
            "the session could not enter the workspace",
            "give this user the right to enter the directory and every one above it",
        );
    }
    let namespaces =
        ["new namespace", "uid map", "gid map", "setgroups", "RTM_NEWADDR", "user namespace", "max_*_names"];
    if holds(&namespaces) {
        let remedy = if apparmor { APPARMOR } else { NO_USER_NAMESPACES };
        return unconfined("no user namespace can be created here", remedy);
    }
    if holds(&["mount proc", "mount devpts"]) {
        return unconfined("no private /proc can be mounted here", NESTED);
    }
    if holds(&["Failed to make / slave", "pivot_root"]) {
        return unconfined(
            "nothing can be mounted here",
            "start the recorder outside of a sandbox (Landlock, seccomp)",
        );
    }
    if holds(&["Unknown option"]) {
        return unconfined("this bwrap is too old", "install bubblewrap 0.8 or later");
    }
    if holds(&["execvp"]) {
        return unconfined("the launcher cannot be executed in the view", LAUNCHER_NEEDS);
    }
    if holds(&["Can't find source path", "Can't get type of source", "Can't bind mount", "Can't create"]) {
        return unconfined("an item of the view cannot be put in place", "check that this user can read it");
    }
    unconfined("the session cannot be confined", "run `headwater-recorder doctor`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::testing::{Place, other_bwrap};
    use crate::confine::view::CONFIGURATION;

    #[test]
    fn bwrap_is_the_named_one_else_the_first_in_an_absolute_directory_of_the_path() {
        let place = Place::new("");
        let path = other_bwrap(&place, "");
        let search = |text: String| Bwrap::find(None, Some(OsStr::new(&text)));
        let directory = place.directory.path().display();
        let found = Bwrap { path: path.clone(), version: "bubblewrap 9".into() };
        assert_eq!(search(format!("::relative:/none:{directory}:/usr/bin")).unwrap(), found);
        assert_eq!(Bwrap::find(Some(&path), None).unwrap(), found);
        for refused in [search("/none".into()), Bwrap::find(None, None), Bwrap::find(Some(Path::new("/none")), None)] {
            let failure = refused.unwrap_err();
            assert_eq!((failure.status, failure.spent), (Status::Unconfined, false));
            assert!(failure.remedy.unwrap().contains("bubblewrap"));
        }
        let failure = Bwrap::find(Some(Path::new("/bin/true")), None).unwrap_err();
        assert!(failure.message.contains("not bubblewrap"), "{failure}");
    }

    #[test]
    fn the_remedy_is_that_of_the_distribution() {
        for (text, way) in [
            ("NAME=x\nID=debian\n", "apt install bubblewrap"),
            ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "apt install bubblewrap"),
            ("ID=fedora\n", "dnf install bubblewrap"),
            ("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install bubblewrap"),
            ("ID=arch", "pacman -S bubblewrap"),
            ("ID=nixos\n", "nix profile install nixpkgs#bubblewrap"),
        ] {
            assert_eq!(install_remedy(text), way);
        }
        for unknown in ["", "ID=\n", "ID=other\n"] {
            assert!(["apt", "dnf", "pacman", "nix"].iter().all(|tool| install_remedy(unknown).contains(tool)));
        }
    }

    #[test]
    fn what_bwrap_says_is_told_as_cause_and_remedy() {
        for (said, apparmor, status, cause, remedy) in [
            (
                "No permissions to create a new namespace, likely because the kernel does not allow non-privileged user \
                 namespaces.",
                false,
                Status::Unconfined,
                "user namespace",
                "sysctl",
            ),
            ("setting up uid map: Permission denied", true, Status::Unconfined, "user namespace", "AppArmor"),
            ("loopback: Failed RTM_NEWADDR: Operation not permitted", true, Status::Unconfined, "user", "AppArmor"),
            (
                "Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
                false,
                Status::Unconfined,
                "user namespace",
                "max_user_namespaces",
            ),
            (
                "Can't mount proc on /newroot/proc: Operation not permitted",
                false,
                Status::Unconfined,
                "/proc",
                "systempaths=unconfined",
            ),
            ("Failed to make / slave: Operation not permitted", false, Status::Unconfined, "mounted", "Landlock"),
            ("Unknown option --size", false, Status::Unconfined, "too old", "0.8"),
            ("execvp /opt/x: No such file or directory", false, Status::Unconfined, "launcher", "--closure"),
            ("Can't find source path /x: No such file or directory", false, Status::Unconfined, "item", "read"),
            ("Can't chdir to /ws: Permission denied", false, Status::NotEntered, "enter the workspace", "enter"),
            ("something new", false, Status::Unconfined, "cannot be confined", "doctor"),
        ] {
            let failure = diagnose_on(&format!("a warning\nbwrap: {said}\n"), apparmor);
            assert_eq!((failure.status, failure.spent), (status, false), "{said}");
            assert!(failure.message.contains(cause) && failure.message.ends_with(said), "{failure}");
            assert!(failure.remedy.as_ref().unwrap().contains(remedy), "{:?}", failure.remedy);
        }
    }

    #[test]
    fn a_library_that_the_launcher_lacks_is_named() {
        for said in [
            "/opt/headwater/launcher: error while loading shared libraries: libgcc_s.so.1: cannot open shared object \
             file: No such file or directory",
            "Error loading shared library libgcc_s.so.1: No such file or directory (needed by /opt/headwater/launcher)",
        ] {
            let failure = diagnose_on(&format!("{said}\n"), false);
            assert_eq!((failure.status, failure.spent), (Status::Unconfined, false));
            assert!(failure.message.contains("linked with: libgcc_s.so.1"), "{failure}");
            assert!(failure.remedy.unwrap().contains("--closure"));
        }
    }

    #[test]
    fn the_options_are_these_and_in_this_order() {
        let place = Place::new("");
        let mut plan = place.plan();
        let path = Path::new(CONFIGURATION).join("file");
        plan.files.push(MemoryFile { path, mode: 0o600, bytes: b"secret".to_vec() });
        let line = plan.options(&[6, 7]).join(OsStr::new(" ")).into_string().unwrap();
        assert!(
            line.starts_with(
                "--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --cap-drop ALL \
                 --die-with-parent --new-session --hostname headwater --clearenv --ro-bind /usr /usr --ro-bind /etc /etc "
            ),
            "{line}"
        );
        let (workspace, logs) = (place.workspace.display(), place.logs.display());
        assert!(
            line.ends_with(&format!(
                " --perms 0700 --size 1073741824 --tmpfs /opt/headwater/config --bind {workspace} {workspace} \
                 --bind {logs} {logs} --perms 0444 --file 6 /opt/headwater/guard.so --perms 0600 --file 7 \
                 /opt/headwater/config/file --remount-ro / --chdir {workspace}"
            )),
            "{line}"
        );
        assert!(line.contains(" --proc /proc --dev /dev --perms 1777 --size 4294967296 --tmpfs /tmp "), "{line}");
        assert!(!format!("{plan:?}").contains("115, 101, 99"), "the bytes of a file are printed");
    }
}
