# SPDX-License-Identifier: Apache-2.0
"""A recording replayed live through the NVML library under `run` gives what importing it gives.

EPOCHMETER_REPLAY_NAMES (comma separated, or "all") and EPOCHMETER_REPLAY_SPEED choose more than the short form.
"""
import os
import time

import pytest
from conftest import PROGRAMS, SHARED, python

CHOSEN = os.environ.get("EPOCHMETER_REPLAY_NAMES", "checkpoint,spike")
SPEED = float(os.environ.get("EPOCHMETER_REPLAY_SPEED", "2"))


def names():
    folder = SHARED / "recordings"
    there = sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
    return there if CHOSEN == "all" else [n for n in CHOSEN.split(",") if n in there]


def gpu_of(row, index):
    return next(g for g in row["gpus"] if g["gpu"] == index)


@pytest.mark.parametrize("name", names())
def test_replayed_live_equals_imported(tool, recordings, replay_library, name):
    imported_file = tool.tmp / "imported.emr"
    assert tool.call("import", "recording", recordings / name, "-o", imported_file).returncode == 0
    t0_ns = time.monotonic_ns() + int(2.0e9)
    env = tool.env(EPOCHMETER_NVML_LIBRARY=str(replay_library), EPOCHMETER_REPLAY=str(recordings / name),
                   EPOCHMETER_REPLAY_SPEED=str(SPEED), EPOCHMETER_REPLAY_T0_NS=str(t0_ns))
    done = tool.record(python(), PROGRAMS / "replay_events.py", recordings / name, t0_ns, SPEED,
                       flags=["-i", "100ms"], env=env)
    assert done.returncode == 0, done.stderr.decode()
    live, imported = tool.report(), tool.report(imported_file)
    assert len(live["epochs"]) == len(imported["epochs"]) > 0
    wanted = {(e["rank"], e["epoch"]): e for e in imported["epochs"]}
    for row in live["epochs"]:
        other = wanted[(row["rank"], row["epoch"])]
        check_epoch(row, other)


def check_epoch(live, imported):
    where = (live["rank"], live["epoch"])
    assert live["duration_s"] * SPEED == pytest.approx(imported["duration_s"], abs=0.002), where
    assert live["steps"] == imported["steps"], where
    assert live["step_s"]["p50"] * SPEED == pytest.approx(imported["step_s"]["p50"], rel=1e-6)
    for field in ("allocated_bytes", "reserved_bytes", "max_allocated_bytes"):
        assert live["framework"][field]["last"] == imported["framework"][field]["last"], (where, field)
    for gpu in imported["gpus"]:
        mine = gpu_of(live, gpu["gpu"])
        samples = max(1, mine["utilization_ratio"]["count"])
        # Two samplings of one curve differ by what an edge sample weighs.
        edge = max(0.02, 1.5 / samples)
        assert mine["utilization_ratio"]["mean"] == pytest.approx(gpu["utilization_ratio"]["mean"], abs=edge), where
        swing = gpu["power_w"]["max"] / gpu["power_w"]["mean"]
        assert mine["power_w"]["mean"] == pytest.approx(gpu["power_w"]["mean"], rel=max(0.03, edge * swing)), where
        assert mine["sm_active_ratio"]["mean"] == pytest.approx(gpu["sm_active_ratio"]["mean"], abs=max(0.04, edge)), where
        assert abs(mine["temperature_c"]["max"] - gpu["temperature_c"]["max"]) <= 1, where
        assert mine["memory_used_bytes"]["max"] == pytest.approx(gpu["memory_used_bytes"]["max"], rel=0.02), where
        assert mine["energy_j"] == pytest.approx(gpu["energy_j"], rel=max(0.08, 2 * edge)), where
