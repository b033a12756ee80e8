# SPDX-License-Identifier: Apache-2.0
"""Recordings of growing memory, cut short: the step at which it ends is forecast from what is left."""

import gzip
import json

import pytest
from conftest import SHARED

RECORDINGS = SHARED / "recordings"
WITHIN = 0.10


def _lines(path):
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file if line.strip()]


def _steps(name):
    if not (RECORDINGS / name).is_dir():
        pytest.skip(f"no recording {RECORDINGS / name}")
    events = _lines(RECORDINGS / name / "events.rank0.jsonl.gz")
    return [event for event in events if event["event"] == "step"]


def _cut(name, part, folder):
    """A copy that ends with this part of the steps; nothing later is in any of its files."""
    steps = _steps(name)
    last_ns = steps[int(len(steps) * part) - 1]["mono_ns"]
    for path in sorted((RECORDINGS / name).glob("*.jsonl.gz")):
        kept = [line for line in _lines(path) if line.get("mono_ns", 0) <= last_ns]
        with gzip.open(folder / path.name, "wt") as file:
            file.writelines(json.dumps(line) + "\n" for line in kept)
    return folder


def _forecast(tool, folder):
    done = tool.call("import", "recording", folder, "-o", tool.run_file)
    assert done.returncode == 0, done.stderr.decode()
    data = tool.report()
    found = [one for one in data["findings"] if one["rule"] == "oom_forecast"]
    assert found and found[0]["evidence"], [one["rule"] for one in data["findings"]]
    return found[0]


def _death_step(name):
    """The step that did not fit: the one after the last that ended."""
    return _steps(name)[-1]["step"] + 1


def _limit_step_by_growth(name):
    """Where the whole recording's own growth meets the device, allowing for what a step needs."""
    steps = _steps(name)
    first, last = steps[len(steps) // 2], steps[-1]
    slope = (last["alloc"] - first["alloc"]) / (last["step"] - first["step"])
    need = last["max_alloc"] - last["alloc"] + slope
    samples = _lines(RECORDINGS / name / "samples.jsonl.gz")
    gpu = [one for one in samples if one.get("kind") == "gpu" and one.get("gpu") == 0][-1]
    room = gpu["mem_used"] + gpu["mem_free"] - (gpu["mem_used"] - last["reserved"])
    return last["step"] + (room - need - last["alloc"]) / slope


@pytest.mark.parametrize("part", [0.5, 0.75])
@pytest.mark.parametrize("name, truth", [("oom", _death_step), ("leak", _limit_step_by_growth)])
def test_the_step_of_the_limit_is_forecast_from_a_part(tool, tmp_path, name, truth, part):
    folder = tmp_path / name
    folder.mkdir()
    finding = _forecast(tool, _cut(name, part, folder))
    values = finding["evidence"][0]["values"]
    wanted = truth(name)
    assert abs(values["limit_step"] - wanted) <= WITHIN * wanted, (values, wanted)
    assert values["limit_step_low"] <= values["limit_step"] <= values["limit_step_high"]
    assert values["limit_bytes"] > values["held_bytes"]
    assert finding["rank"] == 0 and finding["gpu"] == 0
