# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of each process at random moments: at most one second is lost, the training never notices.

EPOCHMETER_CRASH_ROUNDS sets the rounds of each kind (3 here, 100 in the long form).
"""
import datetime
import os
import pathlib
import random
import signal
import time

import pytest
from conftest import PROGRAMS, find_helper, python

ROUNDS = int(os.environ.get("EPOCHMETER_CRASH_ROUNDS", "3"))
STEPS, STEP_S, EPOCHS = 60, 0.02, 2
EXPECTED_OUT = b"".join(f"epoch {e} step {e * STEPS + s + 1}\n".encode() for e in range(EPOCHS) for s in range(STEPS))
EXPECTED_ERR = b"".join(f"warning {n + 1}\n".encode() for n in range(EPOCHS * STEPS))
ONE_SECOND_NS = 1_000_000_000


def run_with_kill(tool, victim, moment_s, env=None, flags=(), quiet=True):
    """Starts the steps program, kills `victim` after `moment_s`; the process, output, time of the kill."""
    log = tool.tmp / "steps.log"
    env = dict(env or tool.env(), STEPS_LOG=str(log))
    words = ["-q"] if quiet else []
    process = tool.start(python(), PROGRAMS / "steps.py", STEPS, STEP_S, EPOCHS, 9, env=env, flags=[*words, *flags])
    pid = find_helper(process.pid, victim)
    time.sleep(moment_s)
    os.kill(pid, signal.SIGKILL)
    killed_ns = time.monotonic_ns()
    out, err = process.communicate(timeout=60)
    sent = dict(map(int, line.split()) for line in log.read_text().splitlines())
    return process, out, err, killed_ns, sent


def seconds(timestamp):
    return datetime.datetime.fromisoformat(timestamp.replace("Z", "+00:00")).timestamp()


def alive(pid):
    """Neither gone nor a zombie that nobody has waited for yet."""
    try:
        stat = pathlib.Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] != "Z"


def recorded_steps(tool):
    """Step number -> time in ns, as the file has them."""
    return {e["step"]: e for e in tool.export_jsonl() if e.get("event") == "step"}


def lost_span_ns(sent, recorded):
    """The longest stretch of time whose steps are missing in a row, in ns."""
    longest = first = 0
    for number in sorted(sent):
        if number in recorded:
            first = 0
            continue
        first = first or sent[number] - int(STEP_S * 1e9)
        longest = max(longest, sent[number] - first)
    return longest


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_recorder_killed(tool, round_number):
    moment = random.Random(round_number).uniform(0.05, 2.0)
    process, out, err, _, sent = run_with_kill(tool, "epm-recorder", moment)
    assert process.returncode == 9
    assert out == EXPECTED_OUT
    assert b"".join(l for l in err.splitlines(True) if not l.startswith(b"epochmeter:")) == EXPECTED_ERR
    recorded = recorded_steps(tool)
    assert lost_span_ns(sent, recorded) <= ONE_SECOND_NS
    assert max(recorded) == EPOCHS * STEPS, "recording went on after the restart"
    data = tool.report()
    assert data["run"]["exit"]["exit_code"] == 9
    assert any(loss["kind"] == "recorder.restarted" for loss in data["losses"])


def test_the_last_line_counts_the_epochs_of_the_recorder_before(tool):
    process, _, err, _, _ = run_with_kill(tool, "epm-recorder", 1.5, quiet=False)
    assert process.returncode == 9
    last = [line for line in err.decode().splitlines() if "epochmeter: recorded " in line]
    assert len(last) == 1 and f", {EPOCHS} epochs" in last[0], err


def test_a_recorder_that_stands_still_is_ended_and_said_to_have(tool):
    process = tool.start("sleep", 1)
    recorder = find_helper(process.pid, "epm-recorder")
    time.sleep(0.5)
    os.kill(recorder, signal.SIGSTOP)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"the recorder did not answer for 2" in err and b"disk was too slow" not in err, err
    deadline = time.monotonic() + 2  # the kernel may take a moment over a killed process
    while alive(recorder) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive(recorder)


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_sampler_killed(tool, recordings, replay_library, round_number):
    moment = random.Random(100 + round_number).uniform(0.05, 2.0)
    env = tool.env(EPOCHMETER_NVML_LIBRARY=str(replay_library), EPOCHMETER_REPLAY=str(recordings / "healthy"))
    process, out, err, killed_ns, sent = run_with_kill(tool, "epm-sampler", moment, env=env, flags=["-i", "100ms"])
    assert process.returncode == 9 and out == EXPECTED_OUT and err == EXPECTED_ERR
    assert len(recorded_steps(tool)) == len(sent)
    times = sorted({seconds(row["@timestamp"]) for row in tool.export_jsonl() if "gpu_utilization_ratio" in str(row.get("metric"))})
    assert times, "GPU samples are there"
    gaps = [b - a for a, b in zip(times, times[1:])]
    assert max(gaps) <= 1.0


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_training_killed(tool, round_number):
    moment = random.Random(200 + round_number).uniform(0.3, 2.0)
    process = tool.start(python(), PROGRAMS / "steps.py", STEPS, STEP_S, EPOCHS, 9, flags=["-q"],
                         env=tool.env(STEPS_LOG=str(tool.tmp / "steps.log")))
    pid = find_helper(process.pid, os.path.basename(python()))
    time.sleep(moment)
    os.kill(pid, signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert EXPECTED_OUT.startswith(out)
    sent = dict(map(int, line.split()) for line in (tool.tmp / "steps.log").read_text().splitlines())
    recorded = recorded_steps(tool) if sent else {}
    assert lost_span_ns(sent, recorded) <= ONE_SECOND_NS
    assert len(recorded) >= len(sent) - 1
    data = tool.report()
    assert data["run"]["exit"]["signal"] == signal.SIGKILL


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_relay_killed_the_training_goes_on(tool, round_number):
    moment = random.Random(300 + round_number).uniform(0.05, 2.0)
    process, out, err, _, _ = run_with_kill(tool, "epm-relay", moment)
    assert process.returncode == 9
    assert out == EXPECTED_OUT and err == EXPECTED_ERR


def test_launcher_killed_ends_the_training_as_without_us_and_the_file_in_order(tool):
    process = tool.start(python(), PROGRAMS / "steps.py", 500, 0.02, 1, 0, flags=["-q"])
    find_helper(process.pid, "epm-recorder")
    training = find_helper(process.pid, os.path.basename(python()))
    time.sleep(1.0)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 10
    while (tool.tmp / "run.emr.tail").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(training)
    data = tool.report()
    assert data["run"]["exit"]["reason"] == "lost"
    assert 10 <= sum(e["steps"] for e in data["epochs"]) < 500
    assert list((tool.tmp / "sockets").rglob("*.sock")) == []


def test_file_of_a_killed_run_is_readable_and_recoverable(tool):
    """Everything of ours is killed at once: the tail still has all but the last second."""
    process = tool.start(python(), PROGRAMS / "steps.py", 100, 0.02, 1, 0, flags=["-q"], env=tool.env(STEPS_LOG=str(tool.tmp / "steps.log")))
    recorder = find_helper(process.pid, "epm-recorder")
    time.sleep(1.5)
    process.kill()
    os.kill(recorder, signal.SIGKILL)
    process.communicate(timeout=60)
    before = tool.report()
    steps = sum(e["steps"] for e in before["epochs"])
    assert steps >= 20
    done = tool.call("recover", tool.run_file)
    assert done.returncode == 0, done.stderr
    assert not (tool.tmp / "run.emr.tail").exists()
    after = tool.report()
    assert sum(e["steps"] for e in after["epochs"]) == steps
