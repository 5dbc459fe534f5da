//! What tests of the confinement share: an ordinary user to run as, and a place for a session.

use crate::confine::bwrap::{Bwrap, Plan};
use crate::confine::cancel::Cancel;
use crate::confine::memory::sealed;
use crate::confine::sandbox::{Sandbox, Step};
use crate::confine::view::{HARNESS, HARNESS_DIRECTORY, Request, View};
use nix::unistd::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The user that tests started by root run as: nobody.
const ORDINARY: u32 = 65534;

/// Makes the rest of a test run in a process of its own and as an ordinary user: the test is started once more, alone,
/// and as nobody where root runs the suite, and this call of it ends.
macro_rules! as_ordinary_user {
    () => {
        fn here() {}
        if !crate::confine::testing::runs_here(std::any::type_name_of_val(&here)) {
            return;
        }
    };
}
pub(crate) use as_ordinary_user;

/// Set in the process that a test has for itself.
const ALONE: &str = "HEADWATER_TEST_ALONE";

/// Whether the test goes on here. `here` is the path of a function inside the test.
pub(crate) fn runs_here(here: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut program = std::env::current_exe().unwrap();
    // Below a directory that is closed to others, as root's own is, nobody runs a copy.
    let copied = TempDir::new().unwrap();
    if geteuid().is_root() && !is_open(&program) {
        fs::set_permissions(copied.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let copy = copied.path().join("test");
        fs::copy(&program, &copy).unwrap();
        program = copy;
    }
    let mut test = test_of(&program, here);
    test.env(ALONE, "1");
    if geteuid().is_root() {
        test.uid(ORDINARY).gid(ORDINARY);
    }
    let output = test.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // A name that matches no test would pass: so the count is looked at too.
    assert!(output.status.success() && said.contains("1 passed"), "as an ordinary user: {said}");
    false
}

/// The test around `here`, as a command that runs it alone.
pub(crate) fn this_test(here: &str) -> Command {
    test_of(&std::env::current_exe().unwrap(), here)
}

/// Whether everybody may run `program`.
fn is_open(program: &Path) -> bool {
    program.ancestors().all(|path| fs::metadata(path).unwrap().permissions().mode() & 0o001 != 0)
}

fn test_of(program: &Path, here: &str) -> Command {
    let path = here.split_once("::").unwrap().1.strip_suffix("::here").unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", path, "--nocapture", "--test-threads=1"]);
    command
}

/// A place for one session: a workspace, a log directory, and a shell script as the harness.
pub(crate) struct Place {
    pub directory: TempDir,
    pub workspace: PathBuf,
    pub logs: PathBuf,
    pub script: PathBuf,
}

impl Place {
    pub fn new(script: &str) -> Self {
        Self::named("workspace", script)
    }

    /// With this name, or path of names, for the workspace.
    pub fn named(workspace: impl AsRef<OsStr>, script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let place = Self {
            workspace: root.join(Path::new(workspace.as_ref())),
            logs: root.join("logs"),
            script: root.join("script"),
            directory,
        };
        fs::create_dir_all(&place.workspace).unwrap();
        fs::create_dir(&place.logs).unwrap();
        fs::write(&place.script, script).unwrap();
        place
    }

    pub fn view(&self) -> View {
        View::new(&self.request(&[("script", &self.script)])).unwrap()
    }

    pub fn request<'a>(&'a self, beside_harness: &'a [(&'a str, &'a Path)]) -> Request<'a> {
        Request {
            workspace: &self.workspace,
            logs: &self.logs,
            harness: Path::new("/bin/sh"),
            beside_harness,
            engine: Path::new("/usr/bin/true"),
            closure: None,
            host_network: true,
        }
    }

    pub fn plan(&self) -> Plan {
        self.plan_of(self.view())
    }

    pub fn plan_of(&self, view: View) -> Plan {
        let script = Path::new(HARNESS_DIRECTORY).join("script");
        Plan {
            bwrap: Bwrap::find(None, Some(OsStr::new("/usr/local/bin:/usr/bin:/bin"))).unwrap(),
            view,
            files: Vec::new(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            command: vec![HARNESS.into(), script.into()],
        }
    }
}

/// Makes this test binary what the recorder is: the launcher of its sessions, where it is started inside as that.
#[used]
#[allow(unsafe_code)]
// SAFETY: the loader calls each function of this list once, before `main` and with one thread; what the standard
// library needs to know of the arguments it has by then, by an earlier entry of the same list.
#[unsafe(link_section = ".init_array")]
static LAUNCHER_OF_TESTS: extern "C" fn() = launcher_of_tests;

extern "C" fn launcher_of_tests() {
    if let Some(code) = crate::confine::launcher::entered() {
        std::process::exit(code.into());
    }
}

/// What a shell script prints in a session of `plan`.
pub(crate) fn printed(plan: &Plan, script: &str) -> String {
    printed_by(plan, &["/bin/sh", "-c", script])
}

/// What a command prints in a session of `plan`, on both of its outputs.
pub(crate) fn printed_by(plan: &Plan, command: &[&str]) -> String {
    let command: Vec<_> = command.iter().map(OsString::from).collect();
    let cancel = Cancel::never().unwrap();
    let mut sandbox = Sandbox::start(plan, &command, sealed("stdin", b"").unwrap(), &cancel).unwrap();
    sandbox.release(&cancel).unwrap();
    let mut out = Vec::new();
    loop {
        match sandbox.step(Instant::now() + Duration::from_secs(30), None).unwrap() {
            Step::Bytes(bytes) => out.extend_from_slice(bytes),
            Step::Ended => return String::from_utf8(out).unwrap() + &sandbox.errors(),
            other => panic!("{other:?}"),
        }
    }
}

/// A program that stands in for the bwrap of another host. A shell writes it: a file that this process held open
/// for writing could not be executed while another thread starts something.
pub(crate) fn other_bwrap(place: &Place, script: &str) -> PathBuf {
    let path = place.directory.path().join("bwrap");
    let text = format!("#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 9 && exit\n{script}\n");
    let write = "printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"";
    let written = Command::new("/bin/sh").args(["-c", write, "sh", &text]).arg(&path).status().unwrap();
    assert!(written.success());
    path
}

/// How many processes have `mark` among their arguments, as a word or as the name of a path.
pub(crate) fn processes_with(mark: &str) -> usize {
    let has_mark = |path: PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word.rsplit(|byte| *byte == b'/').next() == Some(mark.as_bytes()))
    };
    fs::read_dir("/proc").unwrap().flatten().filter(|entry| has_mark(entry.path())).count()
}
