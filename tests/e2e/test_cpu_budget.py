# SPDX-License-Identifier: Apache-2.0
"""All of ours together keeps within its part of a core, and says what is read less often for that."""
import pathlib
import time

import pytest
from conftest import ROOT, find_helper

GPUS = 8
SECONDS = 7  # the first plan is made after three


def cpu_s(pid):
    return sum(int((task / "schedstat").read_text().split()[0]) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()) / 1e9


def gpu_events(records):
    return [r for r in records if r.get("kind") == "source" and r.get("state") in ("slowed", "restored", "off")]


@pytest.fixture
def eight_gpus(tool, replay_library):
    return tool.env(EPOCHMETER_NVML_LIBRARY=str(replay_library), EPOCHMETER_REPLAY=str(ROOT / "bench" / "h200x8.json"),
                    EPOCHMETER_REPLAY_LATENCY="1")


def test_eight_gpus_are_read_within_the_budget(tool, eight_gpus):
    run = tool.start("sleep", str(SECONDS), env=eight_gpus)
    sampler = find_helper(run.pid, "epm-sampler")
    time.sleep(4.2)
    before, begin = cpu_s(sampler), time.monotonic()
    time.sleep(2.0)
    ratio = (cpu_s(sampler) - before) / (time.monotonic() - begin)
    assert run.wait(timeout=20) == 0
    # Without the budget it is 5 % and more; a debug build and its first readings are dearer than 0.5 %.
    assert ratio < 0.02
    slowed = {e["name"]: e for e in gpu_events(tool.export_jsonl())}
    assert slowed["gpu.activity"]["state"] == "slowed"
    assert slowed["gpu.activity"]["period_s"] >= 5
    assert "gpu.utilization" not in slowed
    report = tool.report()
    lines = [n for n in report["not_measured"] if "--cpu-budget" in n["reason"]]
    assert len(lines) == 1 and "gpu.activity each" in lines[0]["subject"]
    for gpu in report["total"]["gpus"] if "total" in report else report["gpus"]:
        assert gpu["utilization_ratio"]["count"] >= SECONDS - 2
        assert gpu["energy_j"] == pytest.approx(600.0 * SECONDS, rel=0.25)


def test_without_a_budget_nothing_is_read_less(tool, eight_gpus):
    assert tool.record("sleep", "4.5", flags=["--cpu-budget", "off"], env=eight_gpus).returncode == 0
    assert gpu_events(tool.export_jsonl()) == []


@pytest.mark.parametrize("word", ["0", "-1", "101", "fast", "0.5%%"])
def test_a_budget_that_is_none_is_refused_before_anything_starts(tool, word):
    done = tool.record("touch", tool.tmp / "started", flags=[f"--cpu-budget={word}"])
    assert done.returncode == 2
    assert "such as 0.5%, or off" in done.stderr.decode()
    assert not (tool.tmp / "started").exists()
