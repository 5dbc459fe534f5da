# Looks for anything of the host that is not in the view: files, sockets, other sessions, the answer keys.
import os, socket

host = "{host}"
got, tried = [], 0
own = (os.getcwd(), os.environ.get("HEADWATER_SHADOW_LOG_DIR", "/none"))
home = os.path.dirname(host.rstrip("/"))
places = [host, home, "/root", "/home", "/run", "/var", "/var/run/docker.sock", "/run/docker.sock", "/run/dbus",
          "/run/user", "/mnt", "/srv", "/boot", "/sys", "/media", "/tmp/headwater-tests-root", "/proc/1/root" + host,
          "/proc/self/root" + host, "/proc/self/cwd/../../../../../.." + host, host + "/corpus", host + "/corpus/.git",
          host + "/corpus/docs/probes", host + "/canary", host + "/.claude", host + "/.ssh", "/etc/claude-code"]
for place in places:
    tried += 1
    try:
        if os.path.isdir(place):
            for directory, subdirectories, files in os.walk(place):
                subdirectories[:] = [s for s in subdirectories if os.path.realpath(os.path.join(directory, s)) not in own]
                for name in files:
                    try:
                        with open(os.path.join(directory, name), "rb") as file:
                            print(file.read(1 << 16))
                            got.append(os.path.join(directory, name))
                    except OSError:
                        pass
        else:
            print(open(place, "rb").read(1 << 16))
            got.append(place)
    except OSError:
        pass
# Whatever names a probe anywhere is an answer key.
for directory, subdirectories, files in os.walk("/", followlinks=False):
    subdirectories[:] = [s for s in subdirectories if os.path.join(directory, s) not in ("/proc", "/usr", "/sys", "/etc", *own)]
    # A view holds few files outside of these; where nothing confines this program, it need not read the whole disk.
    if tried > 20000:
        break
    for name in files:
        tried += 1
        path = os.path.join(directory, name)
        try:
            if os.path.isfile(path) and os.path.getsize(path) < 1 << 20:
                data = open(path, "rb").read()
                if b"WM-" b"PR-0001" in data and b"answers:" in data:
                    got.append(f"answer key {path}")
                if b"canary-of-" b"the-host" in data:
                    print(data)
        except OSError:
            pass
for path in (host + "/socket", "/run/dbus/system_bus_socket", "/run/docker.sock", "\0headwater-test-host", "/tmp/.X11-unix/X0"):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        tried += 1
        try:
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.connect(path)
                got.append(f"socket {path!r}")
                print(s.recv(100))
        except OSError:
            pass
for name, value in os.environ.items():
    tried += 1
    if "canary" in value or name in ("ANTHROPIC_API_KEY", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY"):
        got.append(f"variable {name}")
        print(value)
for path in ("/usr/planted", "/etc/planted", "/planted", "/opt/planted", "/opt/headwater/planted", "/opt/headwater/bin/planted",
             "/etc/ld.so.preload", "/opt/headwater/guard.so", "/opt/headwater/launcher", "/opt/headwater/bin/headwater"):
    tried += 1
    try:
        open(path, "ab").close()
        got.append(f"write {path}")
    except OSError:
        pass
print(f"tried: {tried} got: {got}")
