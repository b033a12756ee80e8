# SPDX-License-Identifier: Apache-2.0
"""Starts `epochmeter attach PID` for a training that was not started by `epochmeter run`."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import stat
import subprocess
import tempfile
import time
from typing import Optional

from epochmeter import _quiet, _ranks

# How long start() waits for the recorder's socket. Events before that are lost, and counted.
PATIENCE_S = 0.5

# What the ranks of one job on one node have in common, by launcher.
_JOB_NAMES = (
    "PADDLE_JOB_ID",
    "PADDLE_MASTER",
    "TORCHELASTIC_RUN_ID",
    "SLURM_JOB_ID",
    "LSB_JOBID",
    "MASTER_ADDR",
    "MASTER_PORT",
)


def _binary() -> Optional[str]:
    named = os.environ.get("EPOCHMETER_BINARY")
    if named:
        return named if os.access(named, os.X_OK) and os.path.isfile(named) else None
    return shutil.which("epochmeter")


def _folder() -> str:
    """A folder of our own, mode 0700. Raises OSError where it cannot be had."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    if base and os.path.isdir(base) and os.access(base, os.W_OK):
        folder = os.path.join(base, "epochmeter")
    else:
        folder = os.path.join(tempfile.gettempdir(), f"epochmeter-{os.getuid()}")
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not a folder of mode 0700 that belongs to this user")
    return folder


def _socket_path() -> str:
    """The same for all ranks of a job on this node, different for everything else."""
    key = f"pid {os.getpid()}"
    if _ranks.find(os.environ).rank is not None:
        job = [f"{name}={os.environ[name]}" for name in _JOB_NAMES if name in os.environ]
        key = f"parent {os.getppid()} " + " ".join(job)
    return os.path.join(_folder(), hashlib.sha256(key.encode()).hexdigest()[:16] + ".sock")


def _first(path: str) -> bool:
    """True for the one rank that is to start the recorder: who makes the file beside the socket."""
    claim = path + ".pid"
    for _ in range(2):
        try:
            handle = os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            try:
                with open(claim, encoding="ascii") as file:
                    text = file.read()
                if not text:
                    return False
                os.kill(int(text), 0)
                return False
            except (ProcessLookupError, ValueError):
                if _listens(path):
                    return False
                # Maker and recorder are gone: a new job that happens to have the same key.
                _remove(claim)
                _remove(path)
            continue
        with os.fdopen(handle, "w") as file:
            file.write(str(os.getpid()))
        return True
    return False


def _listens(path: str) -> bool:
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        probe.connect(path)
        return True
    except OSError:
        return False
    finally:
        probe.close()


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def launch() -> Optional[str]:
    """Starts the recorder, or finds the one that another rank started; its socket path, or None."""
    binary = _binary()
    if binary is None:
        _quiet.say_once(
            "binary",
            "nothing is recorded: no `epochmeter` program on PATH or in EPOCHMETER_BINARY. "
            "Install it, or start the training with `epochmeter run -- ...`.",
        )
        return None
    path = _socket_path()
    if _first(path):
        # Through a shell that leaves at once, so that the training gets no child it did not make.
        subprocess.run(
            ["/bin/sh", "-c", '"$@" &', "sh", binary, "attach", "--socket", path, str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # A pipe that the recorder held open would keep its reader waiting after the training.
            stderr=None if os.isatty(2) else subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )
    deadline = time.monotonic() + PATIENCE_S
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.01)
    return path
