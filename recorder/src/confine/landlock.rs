//! The view as rules of Landlock: what every process of a session may do with which path, whatever is mounted.
//!
//! bwrap decides what is there; these rules hold the session to it a second time, from inside, and keep it from the
//! processes, signals and abstract sockets outside. Every right that the running kernel knows is handled, and with it
//! refused wherever no rule gives it.

use crate::confine::sys;
use crate::confine::view::{Item, Shown, View};
use crate::status::{Failure, Outcome, Status};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The newest ABI of which every right is known here.
pub const NEWEST: i32 = ABI::V10 as i32;

/// What a session may do with a path and with everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Use {
    /// List directories.
    List,
    /// List, read and execute.
    Read,
    /// List, read and write what is there, and send commands to devices.
    Devices,
    /// List, read, execute, write, truncate, make and remove; but no device and no socket.
    Write,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl Use {
    /// Every use.
    pub const ALL: [Self; 4] = [Self::List, Self::Read, Self::Devices, Self::Write];

    fn rights(self, abi: ABI) -> BitFlags<AccessFs> {
        let rights = match self {
            Self::List => AccessFs::ReadDir.into(),
            Self::Read => AccessFs::from_read(abi),
            Self::Devices => {
                AccessFs::ReadDir | AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
            }
            Self::Write => {
                let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock | AccessFs::IoctlDev;
                AccessFs::from_all(abi) & !never & !BitFlags::from(AccessFs::ResolveUnix)
            }
        };
        rights & AccessFs::from_all(abi)
    }

    /// The rights of a directory where the kernel has Landlock's `abi`, by their names.
    #[must_use]
    pub fn names(self, abi: i32) -> Vec<String> {
        self.rights(ABI::from(abi)).iter().map(|right| format!("{right:?}")).collect()
    }

    const fn words(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Read => "list, read, execute",
            Self::Devices => "list, read, write, device commands",
            Self::Write => "list, read, execute, write, truncate, make, remove",
        }
    }
}

/// What a session may do with the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// What the host's network lets it: no rule.
    Host,
    /// Connect by TCP to this port, of whatever address its namespace reaches, and listen on none.
    OnePort(u16),
}

/// One rule: a path inside, and what may be done with it and below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    path: OsString,
    /// What may be done.
    pub may: Use,
}

impl Rule {
    /// The path, inside.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", Path::new(&self.path).display(), self.may)
    }
}

/// The whole policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    abi: i32,
    /// The rules of the file system.
    pub files: Vec<Rule>,
    /// The rule of the network.
    pub network: Network,
}

impl Rules {
    /// The rules that hold a session to `view` on this kernel.
    ///
    /// # Errors
    /// [`Status::Unconfined`] where the kernel has no Landlock.
    pub fn of(view: &View, network: Network) -> Outcome<Self> {
        let abi = sys::landlock_abi().map_err(|e| no_landlock(&e))?;
        let mut files = vec![Rule { path: "/".into(), may: Use::List }];
        for item in view.items() {
            let mut add = |path: PathBuf, may| files.push(Rule { path: path.into(), may });
            match use_of(item) {
                Some(Use::Devices) => {
                    add(item.path.clone(), Use::Devices);
                    add(item.path.join("shm"), Use::Write);
                }
                Some(may) => add(item.path.clone(), may),
                None => {}
            }
        }
        let rules = Self { abi, files, network };
        if matches!(network, Network::OnePort(_)) && rules.abi() < ABI::V4 {
            let message = format!("Landlock of this kernel (ABI {abi}) does not know TCP");
            return Err(Failure::new(Status::Unconfined, message).remedy("run Linux 6.7 or later"));
        }
        Ok(rules)
    }

    /// The ABI whose rights are handled: the kernel's, or the newest known here where the kernel's is newer.
    fn abi(&self) -> ABI {
        ABI::from(self.abi)
    }

    /// What is enforced, and what is not.
    #[must_use]
    pub fn enforced(&self) -> Enforced {
        let mut left_out: Vec<_> =
            LEFT_OUT.iter().filter(|(since, _)| self.abi < *since).map(|(_, what)| *what).collect();
        if self.network == Network::Host {
            left_out.retain(|what| *what != TCP && *what != UDP);
            left_out.push("the network, which is the host's");
        }
        if self.abi > NEWEST {
            left_out.push("rights that this kernel has and the recorder does not know");
        }
        Enforced { abi: self.abi, left_out }
    }

    /// Holds this process, and all that it becomes and starts, to the rules, for good. It must have one thread and
    /// `no_new_privs`.
    ///
    /// # Errors
    /// What could not be enforced. Nothing is enforced by half.
    pub fn restrict(&self) -> Result<(), String> {
        let abi = self.abi();
        let failed = |e: &dyn fmt::Display| format!("Landlock: {e}");
        let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        ruleset = ruleset.handle_access(AccessFs::from_all(abi)).map_err(|e| failed(&e))?;
        if self.network != Network::Host {
            ruleset = ruleset.handle_access(AccessNet::from_all(abi)).map_err(|e| failed(&e))?;
        }
        let scopes = Scope::from_all(abi);
        if !scopes.is_empty() {
            ruleset = ruleset.scope(scopes).map_err(|e| failed(&e))?;
        }
        let mut created = ruleset.create().map_err(|e| failed(&e))?;
        for rule in &self.files {
            let fd = PathFd::new(&rule.path).map_err(|e| format!("Landlock: {e}"))?;
            let is_directory = fs::metadata(&rule.path).map_err(|e| failed(&e))?.is_dir();
            // The kernel refuses a rule that gives a file the rights of a directory.
            let mask = if is_directory { AccessFs::from_all(abi) } else { AccessFs::from_file(abi) };
            created = created.add_rule(PathBeneath::new(fd, rule.may.rights(abi) & mask)).map_err(|e| failed(&e))?;
        }
        if let Network::OnePort(port) = self.network {
            created = created.add_rule(NetPort::new(port, AccessNet::ConnectTcp)).map_err(|e| failed(&e))?;
        }
        let status = created.restrict_self().map_err(|e| failed(&e))?;
        if status.ruleset == RulesetStatus::FullyEnforced && status.no_new_privs {
            Ok(())
        } else {
            Err(format!("Landlock is not fully enforced: {:?}", status.ruleset))
        }
    }
}

/// What the session may do with an item; nothing of its own for a link, whose target is an item or nothing.
fn use_of(item: &Item) -> Option<Use> {
    match item.shown {
        Shown::ReadOnly(_) | Shown::Given(_) | Shown::Processes => Some(Use::Read),
        Shown::ReadWrite(_) | Shown::Memory { .. } => Some(Use::Write),
        Shown::Devices => Some(Use::Devices),
        // What is hidden lies in a shown tree, is empty and cannot be written.
        Shown::Link(_) | Shown::Hidden => None,
    }
}

const TCP: &str = "TCP";
const UDP: &str = "UDP";
/// What an older Landlock leaves out: the ABI that brought it, and what it is.
const LEFT_OUT: [(i32, &str); 7] = [
    (3, "truncation"),
    (4, TCP),
    (5, "commands to devices"),
    (6, "abstract sockets"),
    (6, "signals"),
    (9, "unix sockets by path"),
    (10, UDP),
];

/// What of Landlock holds a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enforced {
    /// The ABI of the kernel.
    pub abi: i32,
    /// What it leaves to the other parts of the confinement.
    pub left_out: Vec<&'static str>,
}

fn no_landlock(error: &std::io::Error) -> Failure {
    let lists = fs::read_to_string("/sys/kernel/security/lsm").unwrap_or_default();
    let remedy = if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
        let others = if lists.is_empty() { "…".to_owned() } else { lists.trim().to_owned() };
        format!("start the kernel with Landlock among its security modules: lsm=landlock,{others}")
    } else {
        "run Linux 5.13 or later, built with CONFIG_SECURITY_LANDLOCK".into()
    };
    Failure::new(Status::Unconfined, format!("no Landlock to confine a session with: {error}")).remedy(remedy)
}
