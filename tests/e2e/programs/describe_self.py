# SPDX-License-Identifier: Apache-2.0
"""Prints what a process can see of itself, as JSON, into the file that argv[1] names."""
import fcntl
import json
import os
import resource
import signal
import stat
import struct
import sys


def text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError as error:
        return f"errno {error.errno}"


def status_lines():
    wanted = ("Umask", "Uid", "Gid", "Groups", "SigQ", "ShdPnd", "SigPnd", "SigBlk", "SigIgn", "SigCgt", "CapInh", "CapPrm",
              "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters", "Speculation_Store_Bypass",
              "Cpus_allowed", "Mems_allowed", "CoreDumping", "THP_enabled")
    lines = dict(line.split(":", 1) for line in text("/proc/self/status").splitlines() if ":" in line)
    found = {name: lines[name].strip() for name in wanted if name in lines}
    found.pop("SigQ", None)
    return found


def kind(fd):
    mode = os.fstat(fd).st_mode
    return stat.filemode(mode)[0] + (" tty" if os.isatty(fd) else "")


def descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
        if fd > 2 and not target.endswith("/fd"):
            found[name] = [target, fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD)]
    return found


def window():
    try:
        return struct.unpack("HHHH", fcntl.ioctl(1, 0x5413, b"\0" * 8))
    except OSError as error:
        return f"errno {error.errno}"


def terminal():
    try:
        fd = os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        return f"errno {error.errno}"
    in_front = os.tcgetpgrp(fd) == os.getpgrp()
    os.close(fd)
    return {"in the foreground": in_front, "fields": text("/proc/self/stat").rsplit(")", 1)[1].split()[4]}


def main():
    stdin = os.fstat(0) if os.path.exists("/proc/self/fd/0") else None
    facts = {
        "argv": sys.argv[2:],
        "folder": os.getcwd(),
        "status": status_lines(),
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT")},
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "cpus": sorted(os.sched_getaffinity(0)),
        "policy": [os.sched_getscheduler(0), os.sched_getparam(0).sched_priority],
        "environment": dict(os.environ),
        "dispositions": {n: str(signal.getsignal(n)) for n in sorted(signal.valid_signals())},
        "mask": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        "descriptors": descriptors(),
        "session": os.getsid(0),
        "group is the session's": os.getpgrp() == os.getsid(0),
        "group": os.getpgrp(),
        "terminal": terminal(),
        "window": window(),
        "stdin": [kind(0), stdin.st_ino, stdin.st_dev, sys.stdin.buffer.read().decode()] if stdin else None,
        "stdout": kind(1),
        "stderr": kind(2),
        "oom_score_adj": text("/proc/self/oom_score_adj"),
        "timer slack": text("/proc/self/timerslack_ns"),
        "personality": text("/proc/self/personality"),
        "core filter": text("/proc/self/coredump_filter"),
        "cgroup": text("/proc/self/cgroup"),
        "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in sorted(os.listdir("/proc/self/ns"))},
        "name": text("/proc/self/comm"),
        "loginuid": text("/proc/self/loginuid"),
        "children": text(f"/proc/self/task/{os.getpid()}/children"),
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(facts, file)


if __name__ == "__main__":
    main()
