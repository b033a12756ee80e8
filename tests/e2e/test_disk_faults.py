# SPDX-License-Identifier: Apache-2.0
"""A full disk, short writes, EIO and EINTR at each of the first calls of the recorder: the training
never notices, sampling goes on, and everything is in the file once the disk takes it again.

EPOCHMETER_SOAK=2 or more: all of the first 200 calls of each kind; else a handful.
"""
import os
import random
import signal
import time

import pytest
from conftest import find_helper
from disk_faults import (LONG, FaultyTool, expected_output, in_parallel, longest_gap_s, longest_loss_s,
                         ours, recorded_steps, values, wait_until, without_ours)

pytestmark = pytest.mark.timeout(3600 if LONG else 120)
STEPS, STEP_S = 5, 0.02
CALLS = range(200) if LONG else [0, 3, 7, 12]
FAULTS = {"ENOSPC": "700ms ENOSPC", "EIO": "700ms EIO", "EINTR": "1 EINTR", "short": "1 short"}


def check_training(tool, process, epochs):
    out, err = expected_output(STEPS, epochs)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 9
    assert stdout == out
    assert without_ours(stderr) == err
    return stderr


def check_round(folder, call, fault):
    """One run whose recorder's `call`-th change of the disk fails."""
    epochs = 12 + call // 2  # each end of an epoch is written out
    tool = FaultyTool(folder, f"change * {call} {FAULTS[fault]}")
    process = tool.start(*tool.steps(STEPS, STEP_S, epochs))
    stderr = check_training(tool, process, epochs)
    calls = tool.calls()
    failed = [c.t_ns for c in calls if c.hit]
    assert failed, "the fault came to pass"
    rows = tool.export_jsonl()
    assert recorded_steps(rows) == set(tool.sent()) == set(range(1, STEPS * epochs + 1)), ours(stderr)
    gap_s = longest_gap_s([t for t, _ in values(rows, "host_memory_available_bytes")])
    assert gap_s < 1.9, "sampling went on: no tick was left out"
    resumed_s = (min(c.t_ns for c in calls if c.wrote_all() and c.t_ns > failed[-1]) - failed[-1]) / 1e9
    assert resumed_s < 2 + 2 * max(0, gap_s - 1.1), "recording resumed; a machine late by itself is late here too"
    data = tool.report()
    assert data["run"]["exit"]["exit_code"] == 9
    assert [p.name for p in folder.glob("run.emr*")] == ["run.emr"]
    return resumed_s


def test_a_fault_at_each_call_costs_nothing(tmp_path):
    rounds = [(fault, call) for fault in FAULTS for call in CALLS]
    folders = [tmp_path / str(i) for i in range(len(rounds))]  # short: a socket is in there
    resumed_s = in_parallel(lambda each: check_round(each[0], each[1][1], each[1][0]), zip(folders, rounds),
                            at_once=16 if LONG else 8)
    for fault in FAULTS:
        of_fault = [seconds for (name, _), seconds in zip(rounds, resumed_s) if name == fault]
        print(f"{len(of_fault)} runs with {fault}: recording resumed after {max(of_fault):.2f} s at most")


def kill_recorder(process, after_s):
    recorder = find_helper(process.pid, "epm-recorder")
    time.sleep(after_s)
    os.kill(recorder, signal.SIGKILL)


def check_unsynced_loss(item):
    """Writes reach the file with its next sync only, and the recorder is killed: a power failure for it alone."""
    folder, after_s = item
    tool = FaultyTool(folder, "hold * 0 * hold")
    process = tool.start(*tool.steps(STEPS, STEP_S, 30))
    kill_recorder(process, after_s)
    check_training(tool, process, 30)
    recorded, sent = recorded_steps(tool.export_jsonl()), tool.sent()
    lost_s = longest_loss_s(sent, recorded)
    assert lost_s < 1.0, "all that was synced is there, and it is synced each half second"
    assert max(recorded) == max(sent) == 30 * STEPS
    losses = [loss["kind"] for loss in tool.report()["losses"] if loss["severity"] != "info"]
    assert set(losses) <= {"recorder.restarted", "recorder.events_lost"}, losses
    return lost_s


def test_a_killed_recorder_loses_no_synced_byte(tmp_path):
    moments = random.Random(3)
    rounds = [(tmp_path / str(i), moments.uniform(0.05, 1.5)) for i in range(200 if LONG else 4)]
    lost_s = in_parallel(check_unsynced_loss, rounds)
    print(f"{len(lost_s)} recorders killed with what they had not synced: {max(lost_s):.2f} s lost at most")


def test_a_recorder_that_restarts_on_a_full_disk_goes_on_in_memory(tmp_path):
    tool = FaultyTool(tmp_path)
    process = tool.start(*tool.steps(STEPS, STEP_S, 30))
    wait_until(lambda: any(c.wrote_all() and c.path.endswith(".tail") for c in tool.calls()))
    tool.set("write * 0 * ENOSPC")
    kill_recorder(process, 0.3)
    killed_ns = time.monotonic_ns()
    wait_until(lambda: any(c.hit and c.t_ns > killed_ns + 3e8 for c in tool.calls()))
    tool.set()
    check_training(tool, process, 30)
    recorded, sent = recorded_steps(tool.export_jsonl()), tool.sent()
    restarted_ns = killed_ns + 1.5e9
    assert {n for n, t_ns in sent.items() if t_ns > restarted_ns} <= recorded
    assert tool.report()["run"]["exit"]["exit_code"] == 9
