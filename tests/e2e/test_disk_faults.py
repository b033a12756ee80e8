# SPDX-License-Identifier: Apache-2.0
"""A full disk, short writes, EIO and EINTR at each of the first calls of the recorder: the training
never notices, sampling goes on, and everything is in the file once the disk takes it again.

EPOCHMETER_SOAK=2 or more: all of the first 200 calls of each kind; else a handful.
"""
import pytest
from disk_faults import (LONG, FaultyTool, expected_output, in_parallel, longest_gap_s, ours,
                         recorded_steps, values, without_ours)

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
    resumed = [c.t_ns for c in calls if c.wrote_all() and c.t_ns > failed[-1]]
    assert resumed and resumed[0] - failed[-1] < 2e9, "recording resumed"
    rows = tool.export_jsonl()
    assert recorded_steps(rows) == set(tool.sent()) == set(range(1, STEPS * epochs + 1)), ours(stderr)
    gap_s = longest_gap_s([t for t, _ in values(rows, "host_memory_available_bytes")])
    assert gap_s < 1.5, "sampling went on"
    data = tool.report()
    assert data["run"]["exit"]["exit_code"] == 9
    assert [p.name for p in folder.glob("run.emr*")] == ["run.emr"]
    return (resumed[0] - failed[-1]) / 1e9


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_each_call_costs_nothing(tmp_path, fault):
    folders = [(tmp_path / str(call), call) for call in CALLS]
    resumed_s = in_parallel(lambda item: check_round(item[0], item[1], fault), folders)
    print(f"{len(resumed_s)} runs with {fault}: recording resumed after {max(resumed_s):.2f} s at most")
