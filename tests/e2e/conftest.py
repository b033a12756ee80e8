# SPDX-License-Identifier: Apache-2.0
"""Runs the built program as a user does. The binary is EPOCHMETER_BIN or build/release/epochmeter."""
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("EPOCHMETER_BIN", str(ROOT / "build" / "release" / "epochmeter"))
BUILD = pathlib.Path(os.environ.get("EPOCHMETER_BUILD_DIR", str(ROOT / "build" / "dev")))
SHARED = pathlib.Path(os.environ.get("EPOCHMETER_SHARED", str(ROOT.parent / "shared")))
PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"


def clean_env(tmp_path, **extra):
    """The environment without anything of ours, with private folders for sockets and state."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("EPOCHMETER") and k != "PYTHONPATH"}
    sockets = tmp_path / "sockets"
    sockets.mkdir(exist_ok=True)
    env["XDG_RUNTIME_DIR"] = str(sockets)
    env["XDG_CONFIG_HOME"] = str(tmp_path / "no-config")
    env.update(extra)
    return env


class Tool:
    """`epochmeter` in a folder of its own."""

    def __init__(self, tmp_path):
        self.tmp = tmp_path
        self.run_file = tmp_path / "run.emr"

    def env(self, **extra):
        return clean_env(self.tmp, **extra)

    def call(self, *words, env=None, **options):
        options.setdefault("capture_output", True)
        options.setdefault("timeout", 120)
        return subprocess.run([BINARY, *map(str, words)], env=env or self.env(), cwd=self.tmp, **options)

    def record(self, *command, flags=(), env=None, **options):
        return self.call("run", "-o", self.run_file, *flags, "--", *command, env=env, **options)

    def start(self, *command, flags=(), env=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([BINARY, "run", "-o", str(self.run_file), *flags, "--", *map(str, command)],
                                env=env or self.env(), cwd=self.tmp, **options)

    def report(self, path=None):
        done = self.call("report", path or self.run_file, "-f", "json")
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)["data"]

    def export_jsonl(self, path=None):
        done = self.call("export", path or self.run_file, "-f", "jsonl")
        assert done.returncode == 0, done.stderr.decode()
        return [json.loads(line) for line in done.stdout.decode().splitlines()]


@pytest.fixture
def tool(tmp_path):
    if not os.access(BINARY, os.X_OK):
        pytest.fail(f"{BINARY} is not built: run make")
    return Tool(tmp_path)


@pytest.fixture
def recordings():
    folder = SHARED / "recordings"
    if not folder.is_dir():
        pytest.skip(f"no recordings at {folder}")
    return folder


@pytest.fixture
def replay_library():
    library = BUILD / "nvml-replay" / "libnvidia-ml.so.1"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    return library


def children(pid):
    """Pids of the direct children with their names."""
    found = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        listed = [pathlib.Path(f"/proc/{pid}/task/{thread}/children").read_text().split() for thread in threads]
        for child in (word for words in listed for word in words):
            found.append((int(child), pathlib.Path(f"/proc/{child}/comm").read_text().rstrip("\n")))
        return found
    except OSError:
        found.clear()  # one has just ended, or the kernel has no such lists
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = pathlib.Path("/proc", entry, "stat").read_text()
        except OSError:
            continue
        name = stat[stat.index("(") + 1: stat.rindex(")")]
        if int(stat[stat.rindex(")") + 2:].split()[1]) == pid:
            found.append((int(entry), name))
    return found


def find_helper(launcher_pid, name, timeout_s=5.0):
    """The pid of our process `name` below the launcher, as soon as it is there."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        level = children(launcher_pid)
        for pid, _ in list(level):
            level += children(pid)
        for pid, found in level:
            if found == name:
                return pid
        time.sleep(0.005)
    raise AssertionError(f"no process {name} below {launcher_pid}")


# On a machine that runs many tests at once: how long a program that keeps a timetable has to come up,
# and how late a tick may be.
LEAD_S = float(os.environ.get("EPOCHMETER_TEST_LEAD_S", "5"))
SLACK_S = LEAD_S / 4


def seconds(timestamp):
    """The Unix time of a time stamp of ours."""
    return datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


def python():
    return sys.executable
