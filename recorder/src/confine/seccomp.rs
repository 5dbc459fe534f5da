//! The system calls that a session has no use for, and the filter that refuses them.
//!
//! [`RULES`] is the whole policy, each rule with its reason. A call that no rule names is let through: what it can
//! reach is bounded by the view, the namespaces and Landlock.

use crate::confine::sys;
use headwater_contract::digest::Digest;
use libc::c_long;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// A system call: its name and its number on this architecture.
pub type Call = (&'static str, c_long);

/// What a call is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// `EPERM`: programs know that they may not.
    NotPermitted,
    /// `ENOSYS`: programs fall back to an older call.
    NotThere,
    /// `EAFNOSUPPORT`: programs know hosts without the family.
    NoFamily,
    /// `EPROTONOSUPPORT`: programs know hosts without the protocol.
    NoProtocol,
}

impl Answer {
    /// The number of the error.
    #[must_use]
    pub const fn errno(self) -> i32 {
        match self {
            Self::NotPermitted => libc::EPERM,
            Self::NotThere => libc::ENOSYS,
            Self::NoFamily => libc::EAFNOSUPPORT,
            Self::NoProtocol => libc::EPROTONOSUPPORT,
        }
    }

    /// The name of the error.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotPermitted => "EPERM",
            Self::NotThere => "ENOSYS",
            Self::NoFamily => "EAFNOSUPPORT",
            Self::NoProtocol => "EPROTONOSUPPORT",
        }
    }
}

/// Which uses of a call are refused. Of an argument the low 32 bits are looked at: of the calls named here, the kernel
/// looks at no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Every one.
    Always,
    /// The argument, less the bits outside of the mask, is one of the values.
    Is { argument: u8, mask: u32, values: &'static [u32] },
    /// The argument is none of the values.
    IsNot { argument: u8, values: &'static [u32] },
    /// The argument has one of the bits set.
    HasAny { argument: u8, bits: u32 },
}

/// On which kernels a rule stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    Everywhere,
    /// Where Landlock does not hold connections to unix sockets by path to the view, up to its ABI 8.
    WithoutUnixPaths,
    /// Where it does.
    WithUnixPaths,
}

/// One line of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The calls.
    pub calls: &'static [Call],
    /// Which uses of them are refused.
    pub when: When,
    /// What they are answered with.
    pub answer: Answer,
    /// Why.
    pub why: &'static str,
    on: Where,
}

impl Rule {
    /// Which uses of its calls are refused, in words. Arguments are counted from 0.
    #[must_use]
    pub fn uses(&self) -> String {
        let listed = |values: &[u32]| values.iter().map(|v| format!("{v:#x}")).collect::<Vec<_>>().join(", ");
        match self.when {
            When::Always => "always".into(),
            When::Is { argument, mask: u32::MAX, values } => format!("argument {argument} is {}", listed(values)),
            When::Is { argument, mask, values } => format!("argument {argument} & {mask:#x} is {}", listed(values)),
            When::IsNot { argument, values } => format!("argument {argument} is not {}", listed(values)),
            When::HasAny { argument, bits } => format!("argument {argument} has a bit of {bits:#x}"),
        }
    }

    /// On which kernels it stands, in words.
    #[must_use]
    pub const fn kernels(&self) -> &'static str {
        match self.on {
            Where::Everywhere => "all",
            Where::WithoutUnixPaths => "Landlock ABI 8 and older",
            Where::WithUnixPaths => "Landlock ABI 9 and newer",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.calls.iter().map(|(name, _)| *name).collect();
        write!(f, "{:15} {} ({})", self.answer.name(), names.join(" "), self.uses())?;
        write!(f, ": {}", self.why)
    }
}

macro_rules! calls {
    ($($name:literal $number:ident),+ $(,)?) => { &[$(($name, libc::$number)),+] };
}

const fn rule(calls: &'static [Call], answer: Answer, why: &'static str) -> Rule {
    Rule { calls, when: When::Always, answer, why, on: Where::Everywhere }
}

const fn rule_when(calls: &'static [Call], when: When, answer: Answer, why: &'static str) -> Rule {
    Rule { calls, when, answer, why, on: Where::Everywhere }
}

const INET: u32 = libc::AF_INET as u32;
const INET6: u32 = libc::AF_INET6 as u32;
const UNIX: u32 = libc::AF_UNIX as u32;
/// The bits of a socket's type that name it, without those that set flags.
const SOCKET_TYPE: u32 = 0xf;
/// Protocols of the internet families that carry TCP's service past what Landlock knows as TCP.
const BESIDE_TCP: [u32; 3] = [libc::IPPROTO_MPTCP as u32, libc::IPPROTO_SCTP as u32, 256];
const NEW_NAMESPACES: u32 = (libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS) as u32;
/// `CLONE_NEWTIME`, which `clone` reads as a part of a signal.
const NEW_TIME: u32 = 0x80;
const TIOCLINUX: u32 = 0x541c;

/// The policy.
pub const RULES: &[Rule] = &[
    rule(
        calls!["ptrace" SYS_ptrace, "process_vm_readv" SYS_process_vm_readv, "process_vm_writev" SYS_process_vm_writev,
               "pidfd_getfd" SYS_pidfd_getfd, "kcmp" SYS_kcmp],
        Answer::NotPermitted,
        "reads, changes or takes from another process, the harness among them",
    ),
    rule(
        calls!["perf_event_open" SYS_perf_event_open, "bpf" SYS_bpf, "userfaultfd" SYS_userfaultfd],
        Answer::NotPermitted,
        "watches other processes or the kernel, or helps to attack it",
    ),
    rule(
        calls!["io_uring_setup" SYS_io_uring_setup, "io_uring_enter" SYS_io_uring_enter,
               "io_uring_register" SYS_io_uring_register],
        Answer::NotThere,
        "makes calls that no filter sees",
    ),
    rule(
        calls!["add_key" SYS_add_key, "request_key" SYS_request_key, "keyctl" SYS_keyctl],
        Answer::NotPermitted,
        "the keys of the host's user are in no namespace",
    ),
    rule(
        calls!["mount" SYS_mount, "umount2" SYS_umount2, "pivot_root" SYS_pivot_root, "chroot" SYS_chroot,
               "open_tree" SYS_open_tree, "move_mount" SYS_move_mount, "fsopen" SYS_fsopen, "fsconfig" SYS_fsconfig,
               "fsmount" SYS_fsmount, "fspick" SYS_fspick, "mount_setattr" SYS_mount_setattr,
               "open_by_handle_at" SYS_open_by_handle_at],
        Answer::NotPermitted,
        "changes or leaves the view",
    ),
    rule(calls!["setns" SYS_setns], Answer::NotPermitted, "enters namespaces of others"),
    rule_when(
        calls!["unshare" SYS_unshare],
        When::HasAny { argument: 0, bits: NEW_NAMESPACES | NEW_TIME },
        Answer::NotPermitted,
        "a user namespace of its own gives every capability in it",
    ),
    rule_when(
        calls!["clone" SYS_clone],
        When::HasAny { argument: 0, bits: NEW_NAMESPACES },
        Answer::NotPermitted,
        "a user namespace of its own gives every capability in it",
    ),
    rule(calls!["clone3" SYS_clone3], Answer::NotThere, "its flags are in memory, where no filter sees them"),
    rule_when(
        calls!["ioctl" SYS_ioctl],
        When::Is { argument: 1, mask: u32::MAX, values: &[libc::TIOCSTI as u32, TIOCLINUX] },
        Answer::NotPermitted,
        "types into a terminal",
    ),
    Rule {
        calls: calls!["socket" SYS_socket],
        when: When::IsNot { argument: 0, values: &[INET, INET6] },
        answer: Answer::NoFamily,
        why: "no other family has a use here, and some reach past namespaces; unix sockets by path are held by nothing \
              else on this kernel",
        on: Where::WithoutUnixPaths,
    },
    Rule {
        calls: calls!["socketpair" SYS_socketpair],
        when: When::Is { argument: 1, mask: SOCKET_TYPE, values: &[libc::SOCK_DGRAM as u32] },
        answer: Answer::NoProtocol,
        why: "one of a datagram pair can be connected to a path",
        on: Where::WithoutUnixPaths,
    },
    Rule {
        calls: calls!["socket" SYS_socket],
        when: When::IsNot { argument: 0, values: &[INET, INET6, UNIX] },
        answer: Answer::NoFamily,
        why: "no other family has a use here, and some reach past namespaces",
        on: Where::WithUnixPaths,
    },
    rule_when(
        calls!["socket" SYS_socket],
        When::Is { argument: 2, mask: u32::MAX, values: &BESIDE_TCP },
        Answer::NoProtocol,
        "connects past what Landlock knows as TCP",
    ),
    rule_when(
        calls!["socketpair" SYS_socketpair],
        When::IsNot { argument: 0, values: &[UNIX] },
        Answer::NoFamily,
        "no other family has a use here",
    ),
    rule(
        calls!["init_module" SYS_init_module, "finit_module" SYS_finit_module, "delete_module" SYS_delete_module,
               "kexec_load" SYS_kexec_load, "reboot" SYS_reboot, "swapon" SYS_swapon, "swapoff" SYS_swapoff,
               "quotactl" SYS_quotactl, "quotactl_fd" SYS_quotactl_fd, "acct" SYS_acct, "syslog" SYS_syslog,
               "vhangup" SYS_vhangup, "settimeofday" SYS_settimeofday, "clock_settime" SYS_clock_settime,
               "sethostname" SYS_sethostname, "setdomainname" SYS_setdomainname],
        Answer::NotPermitted,
        "administers the host, or reads its kernel's log",
    ),
    #[cfg(target_arch = "x86_64")]
    rule(
        calls!["kexec_file_load" SYS_kexec_file_load, "iopl" SYS_iopl, "ioperm" SYS_ioperm],
        Answer::NotPermitted,
        "administers the host, or reaches its devices",
    ),
    #[cfg(target_arch = "x86_64")]
    rule(calls!["modify_ldt" SYS_modify_ldt], Answer::NotThere, "of use to very old programs and to attacks alone"),
];

/// The rules that stand where the kernel has Landlock's `abi`.
pub fn rules(abi: i32) -> impl Iterator<Item = &'static Rule> {
    let unix_paths = abi >= 9;
    RULES.iter().filter(move |rule| match rule.on {
        Where::Everywhere => true,
        Where::WithoutUnixPaths => !unix_paths,
        Where::WithUnixPaths => unix_paths,
    })
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;
/// Set in the numbers of the x32 calls, which are those of x86-64 by other numbers.
const X32: u32 = 0x4000_0000;

const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
/// Where the low half of an argument is.
const fn argument_at(argument: u8) -> u32 {
    const { assert!(cfg!(target_endian = "little")) };
    16 + 8 * argument as u32
}

/// A compiled filter: the instructions of the kernel's packet filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program(Vec<(u16, u8, u8, u32)>);

impl Program {
    /// The filter of the rules that stand where the kernel has Landlock's `abi`.
    ///
    /// The uses of a call that depend on its arguments come first. A call that is let through whatever its arguments
    /// costs nothing: the kernel finds that out once, and asks the filter no more.
    #[must_use]
    pub fn compile(abi: i32) -> Self {
        let (mut of_arguments, mut always) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        for rule in rules(abi) {
            for (_, number) in rule.calls {
                let number = u32::try_from(*number).unwrap_or(u32::MAX);
                match rule.when {
                    When::Always => drop(always.insert(number, rule.answer)),
                    when => of_arguments.entry(number).or_default().push((when, rule.answer)),
                }
            }
        }
        let mut out = Assembler::default();
        out.load(ARCHITECTURE_AT);
        // A call by another architecture's numbers is no call that any rule could name.
        out.unless(Test::Equal, ARCHITECTURE, Return::Kill);
        out.load(NUMBER_AT);
        out.when(Test::AtLeast, X32, Return::Refuse(Answer::NotThere));
        for (number, uses) in of_arguments {
            let mut inner = Assembler::default();
            for (when, answer) in uses {
                inner.refuse(when, answer);
            }
            inner.give(Return::Allow);
            out.block(number, inner);
        }
        for (number, answer) in always {
            out.when(Test::Equal, number, Return::Refuse(answer));
        }
        out.give(Return::Allow);
        Self(out.0)
    }

    /// The program as the kernel gets it: eight bytes a line.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let lines = self.0.iter().flat_map(|(code, yes, no, k)| {
            let mut bytes = [0; 8];
            bytes[..2].copy_from_slice(&code.to_le_bytes());
            bytes[2..4].copy_from_slice(&[*yes, *no]);
            bytes[4..].copy_from_slice(&k.to_le_bytes());
            bytes
        });
        lines.collect()
    }

    /// The digest of [`bytes`](Self::bytes).
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.bytes())
    }

    /// Puts this process and all that it becomes and starts under the filter, for good.
    ///
    /// # Errors
    /// What the kernel says: it has no such filters, or `no_new_privs` is not set.
    pub fn install(&self) -> io::Result<()> {
        let lines = self.0.iter().map(|&(code, jt, jf, k)| libc::sock_filter { code, jt, jf, k });
        sys::install_filter(&lines.collect::<Vec<_>>())
    }
}

#[derive(Clone, Copy)]
enum Test {
    Equal,
    AtLeast,
    AnyBit,
}

#[derive(Clone, Copy)]
enum Return {
    Allow,
    Refuse(Answer),
    Kill,
}

#[derive(Default)]
struct Assembler(Vec<(u16, u8, u8, u32)>);

impl Assembler {
    fn line(&mut self, code: u32, yes: usize, no: usize, k: u32) {
        // Every jump is over one block, and no block is as long as 255 lines.
        let short = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
        self.0.push((u16::try_from(code).unwrap_or(u16::MAX), short(yes), short(no), k));
    }

    fn load(&mut self, at: u32) {
        self.line(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    }

    fn test(&mut self, test: Test, k: u32, yes: usize, no: usize) {
        let test = match test {
            Test::Equal => libc::BPF_JEQ,
            Test::AtLeast => libc::BPF_JGE,
            Test::AnyBit => libc::BPF_JSET,
        };
        self.line(libc::BPF_JMP | test | libc::BPF_K, yes, no, k);
    }

    fn give(&mut self, what: Return) {
        let k = match what {
            Return::Allow => libc::SECCOMP_RET_ALLOW,
            Return::Refuse(answer) => libc::SECCOMP_RET_ERRNO | answer.errno().unsigned_abs(),
            Return::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        };
        self.line(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    }

    fn when(&mut self, test: Test, k: u32, what: Return) {
        self.test(test, k, 0, 1);
        self.give(what);
    }

    fn unless(&mut self, test: Test, k: u32, what: Return) {
        self.test(test, k, 1, 0);
        self.give(what);
    }

    /// `inner` for the call `number` alone; it must end by giving something.
    fn block(&mut self, number: u32, inner: Self) {
        self.test(Test::Equal, number, 0, inner.0.len());
        self.0.extend(inner.0);
    }

    fn refuse(&mut self, when: When, answer: Answer) {
        let refused = Return::Refuse(answer);
        match when {
            When::Always => self.give(refused),
            When::Is { argument, mask, values } => {
                self.load(argument_at(argument));
                if mask != u32::MAX {
                    self.line(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, mask);
                }
                for value in values {
                    self.when(Test::Equal, *value, refused);
                }
            }
            When::IsNot { argument, values } => {
                self.load(argument_at(argument));
                for (n, value) in values.iter().enumerate() {
                    self.test(Test::Equal, *value, values.len() - n, 0);
                }
                self.give(refused);
            }
            When::HasAny { argument, bits } => {
                self.load(argument_at(argument));
                self.when(Test::AnyBit, bits, refused);
            }
        }
    }
}
