# SPDX-License-Identifier: Apache-2.0
"""What the tests of an unharmed training share: destinations of output, and faults of our helpers."""
import os
import pathlib
import pty
import random
import socket
import threading
import time
import tty

HELPERS = ("epm-relay", "epm-recorder", "epm-sampler")


def below(pid):
    """All processes below `pid`: (pid, name)."""
    found = []
    try:
        tasks = [pathlib.Path("/proc", str(pid), "task", task, "children").read_text() for task in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return found
    for child in " ".join(tasks).split():
        try:
            found += [(int(child), pathlib.Path("/proc", child, "comm").read_text().strip()), *below(child)]
        except OSError:
            pass
    return found


def state(pid):
    """The letter of /proc/PID/stat; None when there is no such process."""
    try:
        stat = pathlib.Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return None
    return stat[stat.rindex(")") + 2]


def gone(pid):
    return state(pid) in (None, "Z", "X")


def wait_until(condition, timeout_s=10.0, what=""):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"in vain waited {timeout_s} s for {what or condition}"
        time.sleep(0.01)


class Destination:
    """Where output goes, and what has arrived there; `slow`: the reader takes its time."""

    def __init__(self, kind, folder, slow=False):
        self.kind, self.path, self.slow = kind, folder / f"output.{kind}", slow
        self.taken, self.reader, self.from_fd = bytearray(), None, -1
        if kind == "pipe":
            self.from_fd, self.fd = os.pipe()
        elif kind == "pty":
            self.from_fd, self.fd = pty.openpty()
            tty.setraw(self.fd)
        elif kind == "socket":
            ours, theirs = socket.socketpair()
            self.from_fd, self.fd = ours.detach(), theirs.detach()
        else:
            flags = os.O_APPEND if kind == "append" else os.O_TRUNC
            self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
        if self.from_fd >= 0:
            self.reader = threading.Thread(target=self._read, daemon=True)

    def started(self):
        """The command has its own copy now."""
        os.close(self.fd)
        if self.reader:
            self.reader.start()

    def _read(self):
        while True:
            try:
                piece = os.read(self.from_fd, 65536)
            except OSError:  # a terminal without a writer
                piece = b""
            if not piece:
                return
            self.taken += piece
            if self.slow:
                time.sleep(0.002)

    def arrived(self):
        if not self.reader:
            return self.path.read_bytes()
        self.reader.join(60)
        assert not self.reader.is_alive(), "somebody keeps the output open"
        return bytes(self.taken)


class Faults(threading.Thread):
    """Does `number` (a signal) to one of our helpers below `launcher` again and again."""

    def __init__(self, launcher, names, number, pause_s, seed):
        super().__init__(daemon=True)
        self.launcher, self.names, self.number = launcher, names, number
        self.pause_s, self.random, self.count, self.over = pause_s, random.Random(seed), 0, False

    def run(self):
        while not self.over:
            time.sleep(self.random.uniform(*self.pause_s))
            victims = [pid for pid, name in below(self.launcher) if name in self.names]
            if victims and not self.over:
                try:
                    os.kill(self.random.choice(victims), self.number)
                    self.count += 1
                except OSError:
                    pass

    def stop(self):
        self.over = True
        self.join()


def each_at_once(work, items, most=6):
    """work(item) for each on threads; the first failure is raised."""
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(most) as pool:
        return list(pool.map(work, items))


