#!/usr/bin/env python3
"""The first process of a fresh network namespace: runs one command in it, beside the scripted provider.

Usage:  inside.py [--provider DIR] -- COMMAND...

It brings loopback up, and with --provider starts provider.py of DIR (script.json, record.jsonl, bodies/) on
127.0.0.1:8080 and waits until that listens. Then it runs COMMAND with its own standard streams and without the
capabilities that it holds itself, and ends as COMMAND ended. The provider ends with it, however it ends.
"""
import fcntl, os, socket, struct, subprocess, sys, time

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
CAPABILITIES_DROPPED = ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--"]


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(s, SIOCGIFFLAGS, request))
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def start_provider(directory):
    """The provider's process, which ends when this one does: it reads the other end of a pipe held here."""
    at = lambda name: os.path.join(directory, name)
    arguments = ["--script", at("script.json"), "--record", at("record.jsonl"), "--bodies", at("bodies"),
                 "--ready", at("ready"), "--until-eof"]
    provider = subprocess.Popen(CAPABILITIES_DROPPED + [sys.executable, at("provider.py")] + arguments,
                                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not os.path.exists(at("ready")):
        if provider.poll() is not None or time.monotonic() > deadline:
            sys.exit("inside.py: the provider did not start")
        time.sleep(0.01)
    os.remove(at("ready"))
    return provider


def main():
    arguments = sys.argv[1:]
    separator = arguments.index("--")
    loopback_up()
    provider = start_provider(arguments[1]) if arguments[:1] == ["--provider"] else None
    status = subprocess.run(CAPABILITIES_DROPPED + arguments[separator + 1:]).returncode
    if provider:
        provider.stdin.close()
        provider.wait()
    sys.exit(status if status >= 0 else 128 - status)


main()
