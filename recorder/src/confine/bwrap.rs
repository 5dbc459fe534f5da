//! bwrap found, the view as its arguments, tried with a no-op before anything is spent.

use crate::confine::cancel::Cancel;
use crate::confine::memory::sealed;
use crate::confine::sandbox::{Sandbox, Step};
use crate::confine::view::{ENGINE, HARNESS, HostView, Item, Shown};
use crate::status::{Failure, Outcome, Status};
use nix::unistd::{AccessFlags, access, geteuid};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The name of the session's host.
const HOSTNAME: &str = "headwater";
/// How long the no-op may take.
const PROOF_LIMIT: Duration = Duration::from_secs(30);
/// The most that the no-op may print, in bytes.
const PROOF_BYTES: usize = 64 * 1024;
/// The namespaces a session must have for itself.
const OWN_NAMESPACES: [&str; 5] = ["ipc", "mnt", "pid", "user", "uts"];

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
    pub view: HostView,
    /// Files that are put into the view's memory, each below a [`Shown::Memory`] item.
    pub files: Vec<MemoryFile>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The program and its arguments, as paths inside.
    pub command: Vec<OsString>,
}

impl Plan {
    /// The options of bwrap, in full and without the command. `files` are the descriptors of [`Plan::files`], in order.
    #[must_use]
    pub fn options(&self, files: &[RawFd]) -> Vec<OsString> {
        let mut out = Options::default();
        for flag in ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"] {
            out.add(&[&flag]);
        }
        out.add(&[&"--cap-drop", &"ALL"]);
        out.add(&[&"--die-with-parent"]);
        out.add(&[&"--new-session"]);
        out.add(&[&"--hostname", &HOSTNAME]);
        out.add(&[&"--clearenv"]);
        for (name, value) in &self.environment {
            out.add(&[&"--setenv", name, value]);
        }
        for item in self.view.items() {
            out.item(item);
        }
        for (file, fd) in self.files.iter().zip(files) {
            out.add(&[&"--perms", &format!("{:04o}", file.mode), &"--file", &fd.to_string(), &file.path]);
        }
        // Last, because it is on this directory that every mount point above was made.
        out.add(&[&"--remount-ro", &"/"]);
        out.add(&[&"--chdir", &self.view.workspace()]);
        out.0
    }
}

#[derive(Default)]
struct Options(Vec<OsString>);

impl Options {
    fn add(&mut self, words: &[&dyn AsRef<OsStr>]) {
        self.0.extend(words.iter().map(|word| word.as_ref().to_owned()));
    }

    fn item(&mut self, item: &Item) {
        let path = &item.path;
        match &item.shown {
            Shown::ReadOnly(source) => self.add(&[&"--ro-bind", source, path]),
            Shown::ReadWrite(source) => self.add(&[&"--bind", source, path]),
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

/// What the no-op has shown about this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// What bwrap calls itself.
    pub bwrap: String,
    /// The namespaces that a session has for itself, by their kernel names, in byte order.
    pub own_namespaces: Vec<String>,
    /// The namespaces that a session shares with the host.
    pub shared_namespaces: Vec<String>,
}

/// Prints one fact a line: a name, a blank, a value; or a namespace as the kernel writes it. It is the whole no-op, and
/// every session waits for it, so it starts two programs and no more.
const FACTS: &str = r#"
fact() { name=$1; shift; if "$@"; then echo "$name yes"; else echo "$name no"; fi; }
fact workspace test -w .
fact logs test -w "$1"
fact harness test -x "$2"
fact engine test -x "$3"
fact managed test -n "$(ls -A /etc/claude-code 2>/dev/null)"
while read -r name value; do
    case $name in Cap*|NoNewPrivs:) echo "$name $value";; esac
done </proc/self/status
cd /proc/self/ns && readlink cgroup ipc mnt net pid user uts && echo end of-facts
"#;

/// Starts a no-op with the arguments the session will have, and checks from inside what the session will meet: that
/// the workspace can be entered and written, that no managed setting is seen, that no capability is left and that the
/// namespaces are its own. Nothing is spent, and nothing is written.
///
/// # Errors
/// [`Status::NotEntered`] for the workspace or the log directory, [`Status::Unconfined`] for everything else, each
/// with the remedy; [`Status::Internal`] where the request to stop was made.
pub fn prove(plan: &Plan, cancel: &Cancel) -> Outcome<Proof> {
    let words = ["/bin/sh", "-c", FACTS, "facts"].map(OsString::from).into_iter();
    let command: Vec<_> = words.chain([plan.view.logs().into(), HARNESS.into(), ENGINE.into()]).collect();
    let mut sandbox = Sandbox::start(plan, &command, sealed("stdin", b"")?, cancel)?;
    sandbox.release()?;
    let deadline = Instant::now() + PROOF_LIMIT;
    let mut printed = Vec::new();
    loop {
        match sandbox.step(deadline, Some(cancel))? {
            Step::Bytes(bytes) if printed.len() + bytes.len() <= PROOF_BYTES => printed.extend_from_slice(bytes),
            Step::Cancelled => return Err(Cancel::failure()),
            Step::Ended => break,
            Step::Bytes(_) | Step::Deadline => return Err(unproven("the no-op did not end", sandbox.errors())),
        }
    }
    let host = host_namespaces()?;
    judge(plan, &String::from_utf8_lossy(&printed), sandbox.errors(), &host)
}

fn unproven(what: &str, errors: String) -> Failure {
    let message = format!("the confinement cannot be tried: {what}; {}", if errors.is_empty() { "-" } else { &errors });
    Failure::new(Status::Unconfined, message).remedy("the view needs /bin/sh, env, ls and readlink in /usr of the host")
}

fn host_namespaces() -> Outcome<BTreeMap<String, String>> {
    let names = OWN_NAMESPACES.into_iter().chain(["cgroup", "net"]);
    names
        .map(|name| {
            let path = format!("/proc/self/ns/{name}");
            let link = fs::read_link(&path).map_err(|e| Failure::io(&path, e))?;
            Ok((name.to_owned(), link.to_string_lossy().into_owned()))
        })
        .collect()
}

/// What the facts of the no-op say, against the namespaces of the host.
fn judge(plan: &Plan, printed: &str, errors: String, host: &BTreeMap<String, String>) -> Outcome<Proof> {
    let parted =
        |line| str::split_once(line, ' ').or_else(|| str::split_once(line, ":[").map(|(name, _)| (name, line)));
    let facts: BTreeMap<&str, &str> = printed.lines().filter_map(parted).collect();
    let fact = |name: &str| facts.get(name).copied().unwrap_or_default();
    if fact("end") != "of-facts" {
        return Err(unproven("the no-op ended early", errors));
    }
    for (name, path) in [("workspace", plan.view.workspace()), ("logs", plan.view.logs())] {
        if fact(name) != "yes" {
            let message = format!("the session could not write in {}", path.display());
            let remedy = "give this user the right to write there, on a file system that is not read-only";
            return Err(Failure::new(Status::NotEntered, message).remedy(remedy));
        }
    }
    let unconfined = |message: String| Err(Failure::new(Status::Unconfined, message));
    for (name, path) in [("harness", HARNESS), ("engine", ENGINE)] {
        if fact(name) != "yes" {
            return unconfined(format!("the session could not execute {path}"));
        }
    }
    if fact("managed") != "no" {
        return unconfined("managed settings of the host show through at /etc/claude-code".into());
    }
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        if fact(set).is_empty() || fact(set).bytes().any(|digit| digit != b'0') {
            return unconfined(format!("the session would keep capabilities ({set} {})", fact(set)));
        }
    }
    if fact("NoNewPrivs:") != "1" {
        return unconfined("the session could gain privileges (no_new_privs is not set)".into());
    }
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    for (name, of_host) in host {
        let inside = fact(name);
        let is_own = !inside.is_empty() && inside != of_host;
        if !is_own && OWN_NAMESPACES.contains(&name.as_str()) {
            return unconfined(format!("the session would share the {name} namespace of the host"));
        }
        if is_own { own.push(name.clone()) } else { shared.push(name.clone()) }
    }
    Ok(Proof { bwrap: plan.bwrap.version.clone(), own_namespaces: own, shared_namespaces: shared })
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

fn diagnose_on(errors: &str, apparmor: bool) -> Failure {
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
        let remedy = "the host view needs a shell in /usr or /bin; a host that keeps its programs elsewhere needs \
             another view";
        return unconfined("the view holds no shell", remedy);
    }
    if holds(&["Can't find source path", "Can't get type of source", "Can't bind mount", "Can't create"]) {
        return unconfined("an item of the view cannot be put in place", "check that this user can read it");
    }
    unconfined("the session cannot be confined", "run `headwater-recorder doctor`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::testing::{Place, as_ordinary_user};
    use crate::confine::view::CONFIGURATION;
    use std::os::unix::fs::PermissionsExt;

    fn proved(plan: &Plan) -> Outcome<Proof> {
        prove(plan, &Cancel::never().unwrap())
    }

    #[test]
    fn the_no_op_shows_that_a_session_is_confined() {
        as_ordinary_user!();
        let place = Place::new("");
        let proof = proved(&place.plan()).unwrap();
        assert!(proof.bwrap.starts_with("bubblewrap "));
        assert!(OWN_NAMESPACES.iter().all(|name| proof.own_namespaces.iter().any(|own| own == name)), "{proof:?}");
        assert!(proof.shared_namespaces.contains(&"net".to_owned()));
        assert_eq!(fs::read_dir(&place.workspace).unwrap().count() + fs::read_dir(&place.logs).unwrap().count(), 0);
    }

    #[test]
    fn a_workspace_that_cannot_be_entered_or_written_is_found_before_anything_is_spent() {
        as_ordinary_user!();
        for (mode, what) in [(0o000, "could not enter"), (0o555, "could not write")] {
            let place = Place::new("");
            let plan = place.plan();
            fs::set_permissions(&place.workspace, fs::Permissions::from_mode(mode)).unwrap();
            let refused = proved(&plan).unwrap_err();
            fs::set_permissions(&place.workspace, fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!((refused.status, refused.spent), (Status::NotEntered, false), "{refused}");
            assert!(refused.message.contains(what) && refused.remedy.is_some(), "{refused}");
            assert!(refused.message.contains(place.workspace.to_str().unwrap()), "{refused}");
        }
        let place = Place::new("");
        let plan = place.plan();
        fs::remove_dir(&place.workspace).unwrap();
        assert_eq!(proved(&plan).unwrap_err().status, Status::Unconfined);
    }

    #[test]
    fn managed_settings_are_hidden_and_the_host_is_left_as_it_was() {
        as_ordinary_user!();
        let place = Place::new("");
        let root = place.directory.path().join("host");
        fs::create_dir_all(root.join("etc/claude-code")).unwrap();
        fs::create_dir_all(root.join("run/resolve")).unwrap();
        fs::write(root.join("etc/claude-code/managed-settings.json"), "{}").unwrap();
        fs::write(root.join("run/resolve/stub.conf"), "nameserver 192.0.2.1\n").unwrap();
        for (target, link) in [
            ("/usr", "usr"),
            ("usr/bin", "bin"),
            ("usr/lib", "lib"),
            ("usr/lib64", "lib64"),
            ("../run/resolve/stub.conf", "etc/resolv.conf"),
        ] {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        let tree = || {
            let output = Command::new("find").arg(&root).args(["-printf", "%p %m %T@\\n"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let before = tree();
        let of_host = |view: HostView| place.plan_of(view);
        let plan = of_host(HostView::of_root(&root, &place.request(&[])).unwrap());
        proved(&plan).unwrap();
        let script = "ls -A /etc/claude-code; cat /etc/resolv.conf; ls -A /run /run/resolve; \
                      touch /etc/claude-code/managed-settings.json 2>/dev/null; echo $?";
        assert_eq!(printed(&plan, script), "nameserver 192.0.2.1\n/run:\nresolve\n\n/run/resolve:\nstub.conf\n1\n");
        assert_eq!(tree(), before);

        // Where the mask is not in the view, the no-op sees it.
        let mut bare = HostView::of_root(&root, &place.request(&[])).unwrap();
        bare.unmask();
        let refused = proved(&of_host(bare)).unwrap_err();
        assert!(refused.status == Status::Unconfined && refused.message.contains("/etc/claude-code"), "{refused}");
    }

    fn printed(plan: &Plan, script: &str) -> String {
        let command = ["/bin/sh", "-c", script].map(OsString::from);
        let cancel = Cancel::never().unwrap();
        let mut sandbox = Sandbox::start(plan, &command, sealed("stdin", b"").unwrap(), &cancel).unwrap();
        sandbox.release().unwrap();
        let mut out = Vec::new();
        loop {
            match sandbox.step(Instant::now() + PROOF_LIMIT, None).unwrap() {
                Step::Bytes(bytes) => out.extend_from_slice(bytes),
                Step::Ended => return String::from_utf8(out).unwrap(),
                other => panic!("{other:?}"),
            }
        }
    }

    /// A program that stands in for the bwrap of another host. A shell writes it: a file that this process held open
    /// for writing could not be executed while another thread starts something.
    fn other_bwrap(place: &Place, script: &str) -> PathBuf {
        let path = place.directory.path().join("bwrap");
        let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 9 && exit\n{script}\n");
        let write = "printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"";
        let written = Command::new("/bin/sh").args(["-c", write, "sh", &text]).arg(&path).status().unwrap();
        assert!(written.success());
        path
    }

    #[test]
    fn a_bwrap_that_cannot_confine_refuses_with_its_own_words() {
        as_ordinary_user!();
        let place = Place::new("");
        let mut plan = place.plan();
        for (script, said) in [
            ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "uid map: Permission denied"),
            ("exit 1", "it printed nothing"),
            ("echo hello; sleep 1", "\"hello\\n\""),
            // Confines nothing, and runs the command: no capability set, no namespace of its own.
            ("while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"", "hidepid"),
        ] {
            plan.bwrap.path = other_bwrap(&place, script);
            let refused = proved(&plan).unwrap_err();
            assert_eq!((refused.status, refused.spent), (Status::Unconfined, false), "{refused}");
            let whole = format!("{refused}: {}", refused.remedy.as_deref().unwrap());
            assert!(whole.contains(said), "{whole}");
        }
    }

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
            ("execvp /bin/sh: No such file or directory", false, Status::Unconfined, "no shell", "/usr"),
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
    fn each_fact_of_the_no_op_is_looked_at() {
        let place = Place::new("");
        let plan = place.plan();
        let names = OWN_NAMESPACES.into_iter().chain(["cgroup", "net"]);
        let host = names.map(|name| (name.to_owned(), format!("{name}:[1]"))).collect::<BTreeMap<_, _>>();
        let good = "workspace yes\nlogs yes\nharness yes\nengine yes\nmanaged no\nCapInh: 00\nCapPrm: 00\nCapEff: 00\n\
                    CapBnd: 00\nCapAmb: 00\nNoNewPrivs: 1\ncgroup:[1]\nipc:[2]\nmnt:[2]\nnet:[1]\npid:[2]\nuser:[2]\nuts:[2]\n\
                    end of-facts\n";
        let judged = |text: &str| judge(&plan, text, String::new(), &host);
        assert_eq!(judged(good).unwrap().shared_namespaces, ["cgroup", "net"]);
        for line in good.lines().filter(|line| !["cgroup:[1]", "net:[1]"].contains(line)) {
            let (name, value) = line.split_once([' ', ':']).unwrap();
            let bad = match value.trim() {
                "yes" => format!("{name} no"),
                "no" => format!("{name} yes"),
                "00" => format!("{name}: 01"),
                "1" => format!("{name}: 0"),
                _ => format!("{name}:[1]"),
            };
            for text in [good.replace(line, &bad), good.replace(&format!("{line}\n"), "")] {
                let refused = judged(&text).unwrap_err();
                let writes = ["workspace", "logs"].contains(&name);
                assert_eq!(refused.status, if writes { Status::NotEntered } else { Status::Unconfined }, "{line}");
            }
        }
    }

    #[test]
    fn the_options_are_these_and_in_this_order() {
        let place = Place::new("");
        let mut plan = place.plan();
        let path = Path::new(CONFIGURATION).join("file");
        plan.files.push(MemoryFile { path, mode: 0o600, bytes: b"secret".to_vec() });
        let line = plan.options(&[7]).join(OsStr::new(" ")).into_string().unwrap();
        assert!(
            line.starts_with(
                "--unshare-user --unshare-ipc --unshare-pid --unshare-uts --unshare-cgroup-try --cap-drop ALL \
                 --die-with-parent --new-session --hostname headwater --clearenv --setenv PATH /usr/bin:/bin \
                 --ro-bind /usr /usr --ro-bind /etc /etc "
            ),
            "{line}"
        );
        let (workspace, logs) = (place.workspace.display(), place.logs.display());
        assert!(
            line.ends_with(&format!(
                " --perms 0700 --size 1073741824 --tmpfs /opt/headwater/config --bind {workspace} {workspace} \
                 --bind {logs} {logs} --perms 0600 --file 7 /opt/headwater/config/file --remount-ro / \
                 --chdir {workspace}"
            )),
            "{line}"
        );
        assert!(line.contains(" --proc /proc --dev /dev --perms 1777 --size 4294967296 --tmpfs /tmp "), "{line}");
        assert!(!format!("{plan:?}").contains("115, 101, 99"), "the bytes of a file are printed");
    }
}
