# SPDX-License-Identifier: Apache-2.0
"""The training's output arrives byte for byte, whatever becomes of recorder, sampler and relay.

EPOCHMETER_OUTPUT_MB sets the output of each stream (4 here, 100 in the long form),
EPOCHMETER_OUTPUT_ROUNDS how often each case runs.
"""
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import BINARY, PROGRAMS, Tool, find_helper, python
from unharmed import HELPERS, Destination, Faults, each_at_once, gone, state, wait_until

sys.path.insert(0, str(PROGRAMS))
import loud  # noqa: E402

MEGABYTES = int(os.environ.get("EPOCHMETER_OUTPUT_MB", "4"))
ROUNDS = int(os.environ.get("EPOCHMETER_OUTPUT_ROUNDS", "1"))
BYTES = MEGABYTES << 20
DESTINATIONS = ("pipe", "file", "append", "pty", "socket")


def folder_of(tool, name):
    path = tool.tmp / name
    path.mkdir()
    return Tool(path)


def run_loud(tool, kind, faults=None, slow=False, size=BYTES, seconds=2.0, env=None):
    """One training with output to both streams, and a fault; how often the fault came."""
    out, err = Destination(kind, tool.tmp, slow), Destination(kind if kind != "pty" else "pipe",
                                                             pathlib.Path(tool.tmp, "."), slow)
    err.path = tool.tmp / "error.output"
    if err.reader is None:
        os.close(err.fd)
        flags = os.O_APPEND if kind == "append" else os.O_TRUNC
        err.fd = os.open(err.path, os.O_WRONLY | os.O_CREAT | flags, 0o600)
    process = tool.start(python(), PROGRAMS / "loud.py", size, "both", seconds, flags=["-q"], stdout=out.fd,
                         stderr=err.fd, env=env)
    out.started()
    err.started()
    threads = [Faults(process.pid, *fault) for fault in faults or []]
    for thread in threads:
        thread.start()
    code = process.wait(timeout=900)
    for thread in threads:
        thread.stop()
    expected = loud.content(size)
    assert code == 9, (kind, code)
    assert out.arrived() == expected, difference(out.arrived(), expected, kind)
    told = re.sub(rb"epochmeter: [^\n]*\n", b"", err.arrived())  # of helpers that were killed at the end
    assert told == expected, difference(told, expected, kind)
    return sum(thread.count for thread in threads)


def difference(arrived, expected, kind):
    first = next((i for i, (a, b) in enumerate(zip(arrived, expected)) if a != b), min(len(arrived), len(expected)))
    return f"{kind}: {len(arrived)} bytes of {len(expected)}, the first wrong one at {first}"


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_helpers_killed_again_and_again(tool, round_number):
    def work(kind):
        return run_loud(folder_of(tool, kind), kind, [(HELPERS, signal.SIGKILL, (0.005, 0.1), round_number)])
    counts = each_at_once(work, DESTINATIONS)
    assert all(count > 3 for count in counts), counts


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_a_relay_that_is_stopped_for_ever_is_replaced_and_the_run_says_so(tool, round_number):
    def work(kind):
        sub = folder_of(tool, kind)
        count = run_loud(sub, kind, [(("epm-relay",), signal.SIGSTOP, (0.2, 0.4), round_number)], seconds=3.0)
        return count, [e for e in sub.export_jsonl() if e.get("event") == "source" and e.get("name") == "relay"]
    for count, events in each_at_once(work, DESTINATIONS):
        assert count >= 1 and events
        fields = events[0]["fields"]
        assert fields["state"] == "replaced" and "stood still" in fields["detail"]
        assert 0.5 < fields["away_s"] < 10


def test_all_helpers_stopped_for_ever(tool):
    faults = [((name,), signal.SIGSTOP, (0.3, 0.5), 1) for name in HELPERS]
    assert run_loud(tool, "pipe", faults, seconds=3.0) >= 3


def test_a_slow_reader_gets_all_of_it(tool):
    faults = [(HELPERS, signal.SIGKILL, (0.05, 0.2), 3)]
    each_at_once(lambda kind: run_loud(folder_of(tool, kind), kind, faults, slow=True, size=2 << 20),
                 ("pipe", "pty", "socket"))


def test_a_reader_that_takes_nothing_for_a_while_does_not_cost_the_relay_its_life(tool):
    process = tool.start(python(), PROGRAMS / "loud.py", 1 << 20, "out", flags=["-q"])
    relay = find_helper(process.pid, "epm-relay")
    time.sleep(2.5)
    assert not gone(relay) and process.poll() is None
    out, _ = process.communicate(timeout=60)
    assert out == loud.content(1 << 20) and process.returncode == 9
    assert not any(e.get("name") == "relay" for e in tool.export_jsonl())


def test_a_writer_that_a_slow_reader_holds_can_be_ended(tool):
    """Into a socket the kernel would hold the pipe's lock while we wait, and the training unkillable."""
    destination = Destination("socket", tool.tmp)
    process = tool.start("sh", "-c", "exec yes", flags=["-q"], stdout=destination.fd, stderr=subprocess.DEVNULL)
    training = find_helper(process.pid, "yes")
    time.sleep(0.7)
    assert state(training) == "S", "it waits as it would without us"
    os.kill(training, signal.SIGTERM)
    assert process.wait(timeout=10) == -signal.SIGTERM
    os.close(destination.from_fd)
    os.close(destination.fd)


def test_switched_off_and_uncaptured_output_are_the_trainings_own(tool):
    for env, flags in ((tool.env(EPOCHMETER="0"), []), (tool.env(), ["--no-capture", "-q"])):
        with open(tool.tmp / "plain", "wb") as out:
            done = tool.record(python(), PROGRAMS / "loud.py", 1 << 20, "both", flags=[*flags, "--force"], env=env,
                               capture_output=False, stdout=out, stderr=subprocess.PIPE)
        assert done.returncode == 9 and done.stderr == loud.content(1 << 20)
        assert (tool.tmp / "plain").read_bytes() == loud.content(1 << 20)


def test_no_helper_can_be_had_for_want_of_processes(tool):
    """As a user without processes of its own, who may have few: each number from one on."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become a user that runs nothing else")
    binary = shutil.copy(BINARY, "/tmp/" + f"epochmeter-{os.getpid()}")
    os.chmod(binary, 0o755)
    try:
        for most in range(1, 14):
            sub = tool.tmp / f"with-{most}"
            sub.mkdir()
            uid = 71000 + most
            os.chown(sub, uid, uid)
            for parent in sub.parents:
                if parent != pathlib.Path("/") and not os.stat(parent).st_mode & 1:
                    os.chmod(parent, os.stat(parent).st_mode | 0o011)

            def poor(uid=uid, most=most):
                resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
                os.setgid(uid)
                os.setuid(uid)
            done = subprocess.run([binary, "run", "-q", "-o", "run.emr", "--", "sh", "-c",
                                   "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo end >&2; exit 3"],
                                  cwd=sub, env={"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(sub)},
                                  preexec_fn=poor, capture_output=True, timeout=60)
            lines = b"".join(b"line %d\n" % i for i in range(3000))
            assert (done.returncode, done.stdout) == (3, lines), (most, done.returncode, done.stderr[-300:])
            assert done.stderr.endswith(b"end\n") or b"end\n" in done.stderr, (most, done.stderr[-300:])
    finally:
        os.unlink(binary)


def test_no_helper_can_be_had_for_want_of_descriptors(tool):
    def work(most):
        sub = folder_of(tool, f"with-{most}")

        def poor():
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        words = ["sh", "-c", "echo out; echo err >&2; exit 3"]
        plain = subprocess.run(words, preexec_fn=poor, capture_output=True, timeout=60)  # the shell wants some too
        done = sub.record(*words, preexec_fn=poor, flags=["-q"])
        assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), (most, done)
        assert plain.stderr in done.stderr, (most, done)
    each_at_once(work, range(4, 40, 1 if ROUNDS > 1 else 2))


def test_no_helper_can_be_had_for_want_of_memory(tool):
    script = "echo out; echo err >&2; exit 3"

    def work(megabytes):
        def poor():
            resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        # Below this not even the loader gets our program into memory.
        if subprocess.run([BINARY, "--version"], capture_output=True, preexec_fn=poor).returncode != 0:
            return 0
        sub = folder_of(tool, f"with-{megabytes}")
        done = sub.record("sh", "-c", script, preexec_fn=poor, flags=["-q"])
        assert (done.returncode, done.stdout) == (3, b"out\n"), (megabytes, done)
        assert b"err\n" in done.stderr, (megabytes, done)
        assert [p.name for p in sub.tmp.glob("core*")] == []
        return 1
    assert sum(each_at_once(work, range(6, 120, 1 if ROUNDS > 1 else 6))) > 3


def test_a_suspended_job_goes_on_with_the_same_helpers(tool):
    """SIGSTOP to all of the job, launcher included, as a job manager suspends; then SIGCONT."""
    process = tool.start(python(), PROGRAMS / "loud.py", 1 << 20, "out", 3.0, flags=["-q"], start_new_session=True)
    helpers = [find_helper(process.pid, name) for name in HELPERS]
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGSTOP)
    wait_until(lambda: state(process.pid) == "T" and all(state(pid) == "T" for pid in helpers))
    time.sleep(2.5)
    os.killpg(process.pid, signal.SIGCONT)
    time.sleep(1.5)
    assert not any(gone(pid) for pid in helpers)
    out, _ = process.communicate(timeout=60)
    assert out == loud.content(1 << 20) and process.returncode == 9
    assert not any(e.get("name") in ("relay", "recorder") for e in tool.export_jsonl() if e.get("event") == "source")
