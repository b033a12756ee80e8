# SPDX-License-Identifier: Apache-2.0
"""Clocks that are set, smeared and put to sleep under a run: nothing is lost, nothing measured wrong.

A preloaded library shows recorder, sampler and training clocks that the test moves at the moment it
chooses (tests/faults/clock_faults.cc); CLOCK_MONOTONIC stays true, as in the kernel.
EPOCHMETER_CLOCK_FAULTS=long smears over three minutes instead of three seconds.
"""
import concurrent.futures
import json
import os
import struct
import time

import pytest
from conftest import BUILD, LEAD_S, PROGRAMS, SLACK_S, Tool, python, seconds

LONG = os.environ.get("EPOCHMETER_CLOCK_FAULTS") == "long"
EPOCHS, EPOCH_S = 5, 0.8
HOUR = 3600.0
MOVE_AT_S = 1.7  # of play time: in the epoch 2
GPUS = {"devices": {"count": 2, "values": {"util_gpu": 40, "util_mem": 5, "power_mw": 300000, "memory_total": 1 << 33, "mem_used": 1 << 30}}}


@pytest.fixture
def clock_library():
    library = BUILD / "faults" / "libclock_faults.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    return library


class Clocks:
    """The file that the preloaded library maps."""

    def __init__(self, path, wall_s=0.0, boot_s=0.0):
        self.path = path
        self.path.write_bytes(bytes(32))
        self.set(wall_s, boot_s)

    def set(self, wall_s=0.0, boot_s=0.0, ppb=0):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=4q", round(wall_s * 1e9), round(boot_s * 1e9), ppb, time.monotonic_ns()))


class Scene:
    def __init__(self, tool, libraries, name, start=(0.0, 0.0), move=None, epochs=EPOCHS):
        clock_library, nvml_library = libraries
        self.name = name
        folder = tool.tmp / name.replace(" ", "-")
        folder.mkdir()
        self.tool = Tool(folder)
        clocks = Clocks(folder / "clocks", *start)
        script = folder / "gpus.json"
        script.write_text(json.dumps(GPUS))
        self.t0_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
        env = self.tool.env(LD_PRELOAD=str(clock_library), EPOCHMETER_CLOCK_FAULTS=str(clocks.path), EPOCHMETER_REPLAY=str(script),
                            EPOCHMETER_NVML_LIBRARY=str(nvml_library), EPOCHMETER_REPLAY_T0_NS=str(self.t0_ns))
        process = self.tool.start(python(), PROGRAMS / "paced.py", self.t0_ns, epochs, EPOCH_S, flags=["-q", "-i", "200ms", "--cpu-budget", "off"], env=env)
        try:
            time.sleep(max(0.0, (self.t0_ns - time.monotonic_ns()) / 1e9 + MOVE_AT_S))
            if move:
                move(clocks)
        finally:
            out, err = process.communicate(timeout=400)
        assert (process.returncode, out, err) == (0, b"done\n", b""), name
        self.report = self.tool.report()
        self.rows = self.tool.export_jsonl()
        self.check_unharmed(epochs)

    def check_unharmed(self, epochs):
        """Durations, order and number of everything are those of the monotonic clock."""
        rows = self.report["epochs"]
        assert [(e["epoch"], e["steps"]) for e in rows] == [(n, 5) for n in range(epochs)], self.name
        for row in rows:
            assert row["duration_s"] == pytest.approx(EPOCH_S, abs=0.3), f"{self.name}: {row['duration_s']}"
            gpus = [g["utilization_ratio"] for g in row["gpus"]]
            assert len(gpus) == 2 and all(g["mean"] == pytest.approx(0.4) and g["count"] >= 2 for g in gpus), f"{self.name}: {gpus}"
        assert self.report["run"]["duration_s"] == pytest.approx(epochs * EPOCH_S + LEAD_S, abs=LEAD_S), self.name
        steps = [r["step"] for r in self.rows if r.get("event") == "step"]
        assert steps == sorted(steps) and len(steps) == 5 * epochs, f"{self.name}: {steps}"
        csv = self.tool.call("export", self.tool.run_file, "-f", "csv")
        lines = csv.stdout.decode().splitlines()[1:]
        self.csv_says = csv.stderr.decode()
        elapsed = [float(line.split(",")[1]) for line in lines]
        assert all(0 < b - a <= SLACK_S for a, b in zip(elapsed, elapsed[1:])), f"{self.name}: rows in order and no hole"

    def events(self, name):
        return [r["fields"] for r in self.rows if r.get("name") == name]

    def incidents(self, kind):
        return [i["text"] for i in self.report["incidents"] if i["kind"] == kind]

    def wall_of_step(self, number):
        return next(seconds(r["@timestamp"]) for r in self.rows if r.get("event") == "step" and r["step"] == number)

    def backward(self):
        """Places in the export where the time of day falls, without the clock having been said to be set before."""
        found, told = [], False
        times = [(seconds(r["@timestamp"]), r) for r in self.rows if "@timestamp" in r]
        for (before, _), (after, row) in zip(times, times[1:]):
            if after < before - 0.001:
                found.append((before - after, row))
        return found


def set_by(seconds_moved, words):
    def scenario(tool, libraries):
        scene = Scene(tool, libraries, f"set by {seconds_moved}", move=lambda clocks: clocks.set(seconds_moved))
        told = scene.events("clock.jumped")
        assert len(told) == 1 and told[0]["by_s"] == pytest.approx(seconds_moved, abs=0.01), told
        assert len(scene.incidents("clock.jumped")) == 1 and words in scene.incidents("clock.jumped")[0]
        assert not scene.events("clock.suspended") and "the wall clock was set 1 time in this run" in scene.csv_says
        # The times of day before and after follow the clock.
        first, last = scene.wall_of_step(1), scene.wall_of_step(5 * EPOCHS)
        assert last - first == pytest.approx((5 * EPOCHS - 1) * EPOCH_S / 5 + seconds_moved, abs=0.3)
        falls = scene.backward()
        assert len(falls) == (1 if seconds_moved < 0 else 0), falls
    scenario.__name__ = f"set_by_{seconds_moved}"
    return scenario


def to_1970(tool, libraries):
    scene = Scene(tool, libraries, "to 1970", move=lambda clocks: clocks.set(-time.time() + 10))
    assert scene.wall_of_step(1) > 1.7e9 and 0 < scene.wall_of_step(5 * EPOCHS) < 100
    assert len(scene.events("clock.jumped")) == 1 and len(scene.incidents("clock.jumped")) == 1


def without_a_battery(tool, libraries):
    """1970 at the start, set right when the network is there."""
    scene = Scene(tool, libraries, "without battery", start=(-time.time() + 10, 0.0), move=lambda clocks: clocks.set(0))
    assert 0 < scene.wall_of_step(1) < 100 and scene.wall_of_step(5 * EPOCHS) > 1.7e9
    assert scene.report["run"]["started"].startswith("1970-01-01T00:00:") if "started" in scene.report["run"] else True
    assert len(scene.events("clock.jumped")) == 1 and "the wall clock was set by +" in scene.incidents("clock.jumped")[0]


def there_and_back(tool, libraries):
    def move(clocks):
        clocks.set(-25 * HOUR)
        time.sleep(1.2)
        clocks.set(0)

    scene = Scene(tool, libraries, "there and back", move=move)
    assert [round(e["by_s"]) for e in scene.events("clock.jumped")] == [-25 * HOUR, 25 * HOUR]


def smeared(tool, libraries):
    """A second in five minutes, six times as fast in the short form: followed, and not called a jump."""
    epochs, ppb = (230, 3_333_333) if LONG else (EPOCHS, 20_000_000)
    scene = Scene(tool, libraries, "smeared", move=lambda clocks: clocks.set(ppb=ppb), epochs=epochs)
    assert not scene.events("clock.jumped") and not scene.incidents("clock.jumped")
    passed_s = (5 * epochs - 1) * EPOCH_S / 5
    smeared_s = (epochs * EPOCH_S - MOVE_AT_S) * ppb * 1e-9
    assert scene.wall_of_step(5 * epochs) - scene.wall_of_step(1) == pytest.approx(passed_s + smeared_s, abs=0.05 if LONG else 0.3)
    assert len(scene.backward()) == 0
    anchors = scene.tool.call("dump", scene.tool.run_file).stdout.decode().count("anchor mono_ns=")
    assert anchors >= (50 if LONG else 1), anchors


def suspended(tool, libraries):
    scene = Scene(tool, libraries, "suspended", move=lambda clocks: clocks.set(2 * HOUR, 2 * HOUR))
    told = scene.events("clock.suspended")
    assert len(told) == 1 and told[0]["for_s"] == pytest.approx(2 * HOUR, abs=0.01)
    assert not scene.events("clock.jumped"), "the wall clock went on in the sleep and was not set"
    assert "the machine was suspended for 2 h 00 min" in scene.incidents("clock.suspended")[0]
    assert [n for n in scene.report["not_measured"] if n["subject"].startswith("2 h 00 min") and "suspended" in n["reason"]]
    assert scene.wall_of_step(5 * EPOCHS) - scene.wall_of_step(1) > 2 * HOUR


SCENARIOS = [set_by(HOUR, "+1 h 00 min"), set_by(-HOUR, "-1 h 00 min"), set_by(25 * HOUR, "+25 h 00 min"),
             set_by(-25 * HOUR, "-25 h 00 min"), to_1970, without_a_battery, there_and_back, smeared, suspended]


def test_clocks_that_move(tool, clock_library, replay_library):
    failures = []
    with concurrent.futures.ThreadPoolExecutor(len(SCENARIOS)) as pool:
        futures = {s.__name__: pool.submit(s, tool, (clock_library, replay_library)) for s in SCENARIOS}
        for name, future in futures.items():
            try:
                future.result()
            except Exception as problem:  # noqa: BLE001 - told together
                failures.append(f"{name}: {type(problem).__name__}: {problem}")
    assert not failures, "\n".join(failures)
