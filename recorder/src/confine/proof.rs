//! The confinement tried on this host before anything is spent.
//!
//! A stand-in for the harness is started exactly as the harness will be, with the same arguments of bwrap, the same
//! launcher, rules, filter and guard, and is attacked by a child of its own. What it reports is held against what a
//! session must be.

use crate::confine::bwrap::{OWN_NAMESPACES, Plan, SHARED_NAMESPACES};
use crate::confine::cancel::Cancel;
use crate::confine::landlock::Enforced;
use crate::confine::launcher::privileges;
use crate::confine::memory::sealed;
use crate::confine::sandbox::{Sandbox, Step};
use crate::confine::selftest::{self, Report};
use crate::confine::view::{ENGINE, HARNESS};
use crate::status::{Failure, Outcome, Status};
use headwater_contract::digest::Digest;
use std::collections::BTreeMap;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::{Duration, Instant};

/// How long the stand-in may take.
const LIMIT: Duration = Duration::from_secs(30);
/// The most that it may print, in bytes.
const BYTES: usize = 256 * 1024;

/// What has been shown about a session on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// What bwrap calls itself.
    pub bwrap: String,
    /// The namespaces that a session has for itself, by their kernel names, in byte order.
    pub own_namespaces: Vec<String>,
    /// The namespaces that a session shares with the host.
    pub shared_namespaces: Vec<String>,
    /// What Landlock enforces.
    pub landlock: Enforced,
    /// The digest of the filter of system calls, as the kernel got it.
    pub filter: Digest,
    /// How many attacks were tried. None succeeded.
    pub attacks: usize,
}

/// Starts the stand-in with the arguments the session will have, and checks what it reports: that the workspace can be
/// entered and written, that no managed setting is seen, that no capability is left, that the namespaces are its own,
/// that it holds three descriptors and no terminal, and that every attack on it was refused. Nothing is spent, and
/// nothing is written.
///
/// # Errors
/// [`Status::NotEntered`] for the workspace or the log directory, [`Status::Unconfined`] for everything else, each
/// with the remedy; [`Status::Internal`] where the request to stop was made.
pub fn prove(plan: &Plan, cancel: &Cancel) -> Outcome<Proof> {
    let restrictions = plan.restrictions()?;
    let (name, socket) = abstract_socket()?;
    let command = selftest::command(plan.view.workspace(), plan.view.logs(), &name, restrictions.rules.enforced().abi);
    let mut sandbox = Sandbox::start(plan, &command, sealed("stdin", b"")?, cancel)?;
    sandbox.release(cancel)?;
    let deadline = Instant::now() + LIMIT;
    let mut printed = Vec::new();
    loop {
        match sandbox.step(deadline, Some(cancel))? {
            Step::Bytes(bytes) if printed.len() + bytes.len() <= BYTES => printed.extend_from_slice(bytes),
            Step::Cancelled => return Err(Cancel::failure()),
            Step::Ended => break,
            Step::Bytes(_) | Step::Deadline => return Err(unproven("the stand-in did not end", &sandbox.errors())),
        }
    }
    let report = serde_json::from_slice(&printed)
        .map_err(|e| unproven(&format!("the stand-in reported no result ({e})"), &sandbox.errors()))?;
    if socket.accept().is_ok() {
        return Err(unconfined("the session could reach an abstract socket of the host".into()));
    }
    let (own_namespaces, shared_namespaces) = judge(plan, &report, &host_namespaces()?)?;
    Ok(Proof {
        bwrap: plan.bwrap.version.clone(),
        own_namespaces,
        shared_namespaces,
        landlock: restrictions.rules.enforced(),
        filter: restrictions.filter.digest(),
        attacks: report.attacks.tried,
    })
}

/// An abstract socket of the host for the stand-in to reach for, by a name that no other has.
fn abstract_socket() -> Outcome<(String, UnixListener)> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let name = format!("headwater-self-test-{}-{}", std::process::id(), now.as_nanos());
    let failed = |e: std::io::Error| Failure::io("a socket for the self-test", e);
    let address = SocketAddr::from_abstract_name(&name).map_err(failed)?;
    let listener = UnixListener::bind_addr(&address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok((name, listener))
}

fn unproven(what: &str, errors: &str) -> Failure {
    let said = if errors.is_empty() { "it said nothing" } else { errors };
    Failure::new(Status::Unconfined, format!("the confinement cannot be tried: {what}; {said}"))
        .remedy("run `headwater-recorder doctor`")
}

fn unconfined(message: String) -> Failure {
    Failure::new(Status::Unconfined, message)
        .remedy("run `headwater-recorder doctor`, and record on a host that passes")
}

fn host_namespaces() -> Outcome<BTreeMap<String, String>> {
    let names = OWN_NAMESPACES.into_iter().chain(SHARED_NAMESPACES);
    names
        .map(|name| {
            let path = format!("/proc/self/ns/{name}");
            let link = fs::read_link(&path).map_err(|e| Failure::io(&path, e))?;
            Ok((name.to_owned(), link.to_string_lossy().into_owned()))
        })
        .collect()
}

/// What the report says, against the namespaces of the host: those of its own and those that are shared.
fn judge(plan: &Plan, report: &Report, host: &BTreeMap<String, String>) -> Outcome<(Vec<String>, Vec<String>)> {
    let can = |name: &str| report.can.iter().any(|can| can == name);
    for (name, path) in [("workspace", plan.view.workspace()), ("logs", plan.view.logs())] {
        if !can(name) {
            let message = format!("the session could not write in {}", path.display());
            let remedy = "give this user the right to write there, on a file system that is not read-only";
            return Err(Failure::new(Status::NotEntered, message).remedy(remedy));
        }
    }
    for (name, path) in [("harness", HARNESS), ("engine", ENGINE)] {
        if !can(name) {
            return Err(unconfined(format!("the session could not execute {path}")));
        }
    }
    if report.managed_settings {
        return Err(unconfined("managed settings of the host show through at /etc/claude-code".into()));
    }
    privileges(&report.status).map_err(unconfined)?;
    if !report.status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"])) {
        return Err(unconfined("no filter holds the system calls of the session".into()));
    }
    if report.names_guard {
        return Err(unconfined("the guard stays in the environment of the harness".into()));
    }
    if report.terminal {
        return Err(unconfined("the session would hold a terminal".into()));
    }
    if !report.descriptors.keys().eq(["0", "1", "2"]) {
        let more = report.descriptors.iter().filter(|(fd, _)| !["0", "1", "2"].contains(&fd.as_str()));
        let more: Vec<_> = more.map(|(fd, target)| format!("{fd} ({target})")).collect();
        return Err(unconfined(format!(
            "the session would not hold its standard three descriptors alone: {}",
            more.join(", ")
        )));
    }
    let not_refused = &report.attacks.not_refused;
    if !not_refused.is_empty() {
        let all: Vec<_> = not_refused.iter().map(|(what, answer)| format!("{what} ({answer})")).collect();
        let of = format!("{} of {} attacks were not refused", not_refused.len(), report.attacks.tried);
        return Err(unconfined(format!("{of}: a tool call could {}", all.join("; "))));
    }
    if report.attacks.tried == 0 {
        return Err(unproven("no attack was tried", ""));
    }
    let (mut own, mut shared) = (Vec::new(), Vec::new());
    for (name, of_host) in host {
        let is_own = report.namespaces.get(name).is_some_and(|inside| inside != of_host);
        if !is_own && OWN_NAMESPACES.contains(&name.as_str()) {
            return Err(unconfined(format!("the session would share the {name} namespace of the host")));
        }
        if is_own { own.push(name.clone()) } else { shared.push(name.clone()) }
    }
    Ok((own, shared))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confine::selftest::Attacks;
    use crate::confine::testing::{Place, as_ordinary_user, other_bwrap, printed};
    use crate::confine::view::View;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    fn proved(plan: &Plan) -> Outcome<Proof> {
        prove(plan, &Cancel::never().unwrap())
    }

    #[test]
    fn a_stand_in_shows_that_a_session_is_confined() {
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
        let of_host = |view: View| place.plan_of(view);
        let plan = of_host(View::of_root(&root, &place.request(&[])).unwrap());
        proved(&plan).unwrap();
        let script = "ls -A /etc/claude-code; cat /etc/resolv.conf; ls -A /run /run/resolve; \
                      touch /etc/claude-code/managed-settings.json 2>/dev/null; echo $?";
        assert_eq!(printed(&plan, script), "nameserver 192.0.2.1\n/run:\nresolve\n\n/run/resolve:\nstub.conf\n1\n");
        assert_eq!(tree(), before);

        // Where the mask is not in the view, the stand-in sees it.
        let mut bare = View::of_root(&root, &place.request(&[])).unwrap();
        bare.unmask();
        let refused = proved(&of_host(bare)).unwrap_err();
        assert!(refused.status == Status::Unconfined && refused.message.contains("/etc/claude-code"), "{refused}");
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
            ("while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"", "launcher: not found"),
        ] {
            plan.bwrap.path = other_bwrap(&place, script);
            let refused = proved(&plan).unwrap_err();
            assert_eq!((refused.status, refused.spent), (Status::Unconfined, false), "{refused}");
            let whole = format!("{refused}: {}", refused.remedy.as_deref().unwrap());
            assert!(whole.contains(said), "{whole}");
        }
    }

    #[test]
    fn each_line_of_the_report_is_looked_at() {
        let place = Place::new("");
        let plan = place.plan();
        let names = OWN_NAMESPACES.into_iter().chain(SHARED_NAMESPACES);
        let host = names.map(|name| (name.to_owned(), format!("{name}:[1]"))).collect::<BTreeMap<_, _>>();
        let of_kernel = |name: &str| if SHARED_NAMESPACES.contains(&name) { 1 } else { 2 };
        let good = Report {
            can: ["workspace", "logs", "harness", "engine"].map(str::to_owned).into(),
            managed_settings: false,
            status: "CapInh: 00\nCapPrm: 00\nCapEff: 00\nCapBnd: 00\nCapAmb: 00\nNoNewPrivs: 1\nSeccomp: 2\n".into(),
            namespaces: host.keys().map(|name| (name.clone(), format!("{name}:[{}]", of_kernel(name)))).collect(),
            descriptors: ["0", "1", "2"].map(|fd| (fd.to_owned(), "socket:[1]".to_owned())).into(),
            terminal: false,
            names_guard: false,
            attacks: Attacks { tried: 9, not_refused: vec![] },
        };
        assert_eq!(judge(&plan, &good, &host).unwrap().1, ["cgroup", "net"]);
        let refused = |change: &dyn Fn(&mut Report), said: &str| {
            let mut report = good.clone();
            change(&mut report);
            let failure = judge(&plan, &report, &host).unwrap_err();
            assert!(failure.message.contains(said) && failure.remedy.is_some(), "{failure}");
            failure.status
        };
        for (index, path) in [place.workspace.to_str().unwrap(), place.logs.to_str().unwrap()].into_iter().enumerate() {
            assert_eq!(refused(&|report| drop(report.can.remove(index)), path), Status::NotEntered);
        }
        type Change<'a> = &'a dyn Fn(&mut Report);
        let unconfined: [(Change<'_>, &str); 10] = [
            (&|report| drop(report.can.remove(2)), HARNESS),
            (&|report| drop(report.can.remove(3)), ENGINE),
            (&|report| report.managed_settings = true, "/etc/claude-code"),
            (&|report| report.status = report.status.replace("CapBnd: 00", "CapBnd: 01"), "CapBnd"),
            (&|report| report.status = report.status.replace("Seccomp: 2", "Seccomp: 0"), "filter"),
            (&|report| report.names_guard = true, "guard"),
            (&|report| report.terminal = true, "terminal"),
            (&|report| drop(report.descriptors.insert("7".into(), "/x".into())), "7 (/x)"),
            (&|report| report.attacks.not_refused = vec![("write it".into(), "it was done".into())], "could write it"),
            (&|report| report.attacks.tried = 0, "no attack"),
        ];
        for (change, said) in unconfined {
            assert_eq!(refused(change, said), Status::Unconfined, "{said}");
        }
        for name in OWN_NAMESPACES {
            let change = |report: &mut Report| drop(report.namespaces.insert(name.into(), format!("{name}:[1]")));
            assert_eq!(refused(&change, name), Status::Unconfined);
        }
    }
}
