# SPDX-License-Identifier: Apache-2.0
"""All of ours together keeps within its part of a core, and says what is read less often for that."""
import pathlib
import time

import pytest
from conftest import ROOT, Tool, find_helper

GPUS = 8


def cpu_s(pid):
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def core_ratio(pid):
    before, begin = cpu_s(pid), time.monotonic()
    time.sleep(1.5)
    return (cpu_s(pid) - before) / (time.monotonic() - begin)


def changed_periods(records):
    return {r["name"]: r["fields"] for r in records
            if r.get("event") == "source" and r["fields"].get("state") in ("slowed", "restored", "off")}


@pytest.fixture
def eight_gpus(tool, replay_library):
    return tool.env(EPOCHMETER_NVML_LIBRARY=str(replay_library), EPOCHMETER_REPLAY=str(ROOT / "bench" / "h200x8.json"),
                    EPOCHMETER_REPLAY_LATENCY="1")


def test_eight_gpus_are_read_within_the_budget_and_without_one_as_often_as_can_be(tool, eight_gpus):
    (tool.tmp / "free").mkdir()
    free = Tool(tool.tmp / "free")
    runs = [tool.start("sleep", "60", env=eight_gpus),
            free.start("sleep", "60", flags=["--cpu-budget", "off"], env=eight_gpus)]
    try:
        sampler = find_helper(runs[0].pid, "epm-sampler")
        # Without a budget it is 5 % of a core. The first plan is made after three seconds, of which a busy machine
        # makes more; a debug build is dearer than 0.5 %.
        # A starved machine takes little CPU before there is a plan, too.
        begun = time.monotonic()
        while (ratio := core_ratio(sampler)) > 0.02 or time.monotonic() < begun + 6:
            assert time.monotonic() < begun + 30, ratio
    finally:
        for run in runs:
            run.terminate()
            run.communicate(timeout=30)
    slowed = changed_periods(tool.export_jsonl())
    assert slowed["gpu.activity"]["state"] == "slowed"
    assert slowed["gpu.activity"]["period_s"] > slowed["gpu.activity"]["usual_period_s"]
    assert "gpu.utilization" not in slowed
    report = tool.report()
    lines = [n for n in report["not_measured"] if "--cpu-budget" in n["reason"]]
    assert len(lines) == 1 and "gpu.activity each" in lines[0]["subject"]
    assert len(report["gpus"]) == GPUS
    assert changed_periods(free.export_jsonl()) == {}


def test_a_budget_that_is_none_is_refused_before_anything_starts(tool):
    for word in ("0", "-1", "101", "fast", "0.5%%"):
        done = tool.record("touch", tool.tmp / "started", flags=[f"--cpu-budget={word}"])
        assert done.returncode == 125
        assert "such as 0.5%, or off" in done.stderr.decode()
    assert not (tool.tmp / "started").exists()
