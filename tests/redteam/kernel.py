# Reaches for kernel interfaces that lead out of the confinement or around the filter.
import ctypes, fcntl, os, socket

libc = ctypes.CDLL(None, use_errno=True)
got, tried = [], 0


def attempt(what, call):
    global tried
    tried += 1
    try:
        value = call()
        if value is not None and value != -1:
            got.append(f"{what}: {value}")
    except OSError:
        pass


for family, kind in ((1, 1), (1, 2), (16, 3), (17, 3), (40, 1), (2, 3), (10, 3), (38, 5), (44, 3), (31, 1), (43, 1)):
    attempt(f"socket {family} {kind}", lambda: socket.socket(family, kind) and "made")
for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80):
    attempt(f"unshare {flag:x}", lambda: libc.unshare(flag))
calls = {"io_uring_setup": (425, 8), "bpf": (321, 0), "perf_event_open": (298, 0), "userfaultfd": (323, 0),
         "keyctl": (250, 0), "add_key": (248, 0), "request_key": (249, 0), "mount": (165, 0), "umount2": (166, 0),
         "pivot_root": (155, 0), "chroot": (161, 0), "setns": (308, 1), "open_tree": (428, 0), "move_mount": (429, 0),
         "fsopen": (430, 0), "fsmount": (432, 0), "mount_setattr": (442, 0), "init_module": (175, 0),
         "finit_module": (313, 0), "kexec_load": (246, 0), "swapon": (167, 0), "reboot": (169, 0), "acct": (163, 0),
         "name_to_handle_at": (303, 0), "open_by_handle_at": (304, 0), "clone3 newuser": (435, 0),
         "quotactl": (179, 0), "sethostname": (170, 0), "settimeofday": (164, 0), "iopl": (172, 3)}
for name, (number, argument) in calls.items():
    tried += 1
    buffer = ctypes.create_string_buffer(256)
    answer = libc.syscall(number, argument or buffer, buffer, 0, 0, 0)
    if answer >= 0:
        got.append(f"{name}: {answer}")
# The numbers of another architecture.
for number in (39 | 0x40000000, 101 | 0x40000000):
    tried += 1
    if libc.syscall(number, 0, 0, 0, 0) >= 0:
        got.append(f"x32 {number:x}")
for terminal in ("/dev/tty", "/dev/console", "/dev/tty0", "/dev/pts/0", "/dev/ptmx"):
    tried += 1
    try:
        file = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
        if terminal != "/dev/ptmx":
            got.append(f"open {terminal}")
        for request in (0x5412, 0x5412 | 1 << 32, 0x541C):
            try:
                libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]
                if libc.ioctl(file, request, b"x") == 0:
                    got.append(f"ioctl {request:x} of {terminal}")
            except OSError:
                pass
    except OSError:
        pass
for device in ("/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/loop-control"):
    attempt(f"open {device}", lambda: os.open(device, os.O_RDWR))
attempt("mknod", lambda: os.mknod("device", 0o600 | 0o020000, os.makedev(1, 1)) or "made")
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/self/uid_map", "/proc/self/gid_map",
             "/proc/self/setgroups", "/sys/kernel/uevent_helper", "/proc/sys/kernel/hostname"):
    attempt(f"write {path}", lambda: os.open(path, os.O_WRONLY) and os.write(os.open(path, os.O_WRONLY), b"0"))
status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    tried += 1
    if int(status[field], 16):
        got.append(f"{field} {status[field]}")
for field, value in (("NoNewPrivs", "1"), ("Seccomp", "2")):
    tried += 1
    if status[field].strip() != value:
        got.append(f"{field} {status[field]}")
print(f"tried: {tried} got: {got}")
