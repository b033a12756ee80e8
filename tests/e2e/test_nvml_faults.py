# SPDX-License-Identifier: Apache-2.0
"""Drivers that hang, crash, lie and go away: the training and everything else go on, and the run says why not.

Each scenario is a run of its own against the replaying NVML library; they run at the same time.
EPOCHMETER_NVML_FAULTS=long adds those that take minutes: a hang of 60 s with the real patience, GPUs
that come back, a crash loop of three minutes and what it costs.
"""
import concurrent.futures
import json
import os
import re
import resource
import signal
import time

import pytest
from conftest import LEAD_S, PROGRAMS, SLACK_S, Tool, find_helper, python, seconds

LONG = os.environ.get("EPOCHMETER_NVML_FAULTS") == "long"
AT_ONCE = 10
EPOCHS, EPOCH_S = 6, 1.0
# The fault lasts over the epochs 2 and 3, whatever the machine's load does to the ticks.
FAULT = {"at_s": 1.8, "for_s": 2.4}
HIT = [2, 3]
GPU = {"name": "NVIDIA H200", "values": {
    "util_gpu": 40, "util_mem": 5, "power_mw": 300000, "power_instant_mw": 300000, "temp_c": 55, "memory_total": 150754820096,
    "mem_used": 552402944, "memory_reserved": 644939776, "gpm.sm_util": 30, "sm_mhz": 1500,
    "energy_mj": {"start": 1000000, "per_s": 300000}}}
IMPATIENT = {"EPOCHMETER_SAMPLER_SILENCE_MS": "2000"}  # instead of 30 s
RANGES = {"gpu_utilization_ratio": (0.4, 0.4), "gpu_power_watts": (300, 300), "gpu_temperature_celsius": (55, 55),
          "gpu_sm_active_ratio": (0.3, 0.3)}

# The budget of CPU time would make ticks rarer on a busy machine.
TICKS = ("-i", "200ms", "--cpu-budget", "off")
RARE_TICKS = ("-i", "500ms", "--cpu-budget", "off")


class Scene:
    """One run: `script` is what NVML plays, from T0 on; epoch e is the play time [e, e + 1] s."""

    def __init__(self, tool, library, name, script, env=None, epochs=EPOCHS, flags=TICKS, during=None):
        self.name = name
        self.slack_s = SLACK_S + (1.5 if flags is RARE_TICKS else 0)
        folder = tool.tmp / re.sub(r"\W+", "-", name)
        while folder.exists():
            folder = folder.with_name(folder.name + "-again")
        folder.mkdir()
        self.tool = Tool(folder)
        path = folder / "gpus.json"
        path.write_text(json.dumps({"devices": {"count": 2, **GPU}, **script}))
        self.t0_ns = time.monotonic_ns() + round(LEAD_S * 1e9)
        environment = {"EPOCHMETER_NVML_LIBRARY": str(library), "EPOCHMETER_REPLAY": str(path),
                       "EPOCHMETER_REPLAY_T0_NS": str(self.t0_ns), **(env or {})}
        process = self.tool.start(python(), PROGRAMS / "paced.py", self.t0_ns, epochs, EPOCH_S, flags=["-q", *flags],
                                  env=self.tool.env(**environment))
        try:
            self.found = during(self, process) if during else None
        finally:
            self.out, self.err = process.communicate(timeout=600)
        self.code = process.returncode
        self.report = self.tool.report()
        self.rows = self.tool.export_jsonl()
        self.check_unharmed()

    def check_unharmed(self):
        """Whatever happened: the training, its epochs and the rest of the machine are as ever."""
        assert (self.code, self.out, self.err) == (0, b"done\n", b""), self.name
        epochs = [e for e in self.report["epochs"] if e["epoch"] is not None]
        assert [e["steps"] for e in epochs] == [5] * len(epochs) and len(epochs) >= EPOCHS, self.name
        assert self.longest_gap_s("host_cpu_seconds_total") <= self.slack_s, f"{self.name}: the host at its tick"
        for row in self.rows:
            low, high = RANGES.get(row.get("metric"), (None, None))
            assert low is None or low - 1e-6 <= row["value"] <= high + 1e-6, f"{self.name}: a value that nobody measured: {row}"
        assert not list(self.tool.tmp.glob("core*")), self.name

    def times(self, metric, gpu=None):
        return sorted({row["@timestamp"] for row in self.rows
                       if row.get("metric") == metric and (gpu is None or str(row.get("gpu")) == str(gpu))})

    def longest_gap_s(self, metric, gpu=None):
        stamps = [seconds(t) for t in self.times(metric, gpu)]
        assert stamps, f"{self.name}: no {metric} of {gpu}"
        return max((b - a for a, b in zip(stamps, stamps[1:])), default=0.0)

    def epochs_with(self, field="utilization_ratio", gpu=0):
        return [e["epoch"] for e in self.report["epochs"] for g in e["gpus"]
                if g["gpu"] == gpu and (g.get(field) or {}).get("mean") is not None]

    def incidents(self, kind):
        return [i["text"] for i in self.report["incidents"] if i["kind"] == kind]

    def why_not(self, *words):
        """The reasons of the lines of "Not measured" that have all these words."""
        lines = [f"{n['subject']}: {n['reason']}" for n in self.report["not_measured"]]
        return [line for line in lines if all(word in line for word in words)]

    def check_gap(self, gpus=(0, 1), hit=HIT):
        for gpu in gpus:
            there = self.epochs_with(gpu=gpu)
            assert not set(there) & set(hit), f"{self.name}: gpu{gpu} has values in {there}"
            assert 0 in there and EPOCHS - 1 in there, f"{self.name}: gpu{gpu} has values in {there} only"
            assert self.why_not(f"gpu{gpu} in epoch", *map(str, hit)), f"{self.name}: {self.report['not_measured']}"

    def check_ends(self, reason, least, most):
        texts = self.incidents("sampler")
        ends = sum(int((re.search(r"after (\d+) ends", t) or [0, 1])[1]) for t in texts)
        assert least <= ends <= most and all(reason in t for t in texts), f"{self.name}: {texts}"


def hang(tool, library):
    scene = Scene(tool, library, "hang", {"faults": [{"function": "*", "hang": True, **FAULT}]}, env=IMPATIENT)
    scene.check_gap()
    scene.check_ends("the driver did not answer for 2.00 s", 1, 3)
    assert "GPUs were not read for" in scene.incidents("sampler")[0]


def hang_for_ever(tool, library):
    scene = Scene(tool, library, "hang for ever", {"faults": [{"function": "nvmlDeviceGetMemoryInfo*", "hang": True, "at_s": 1.8}]}, env=IMPATIENT)
    assert set(scene.epochs_with()) <= {0, 1, 2}, scene.epochs_with()
    assert "the driver did not answer" in " ".join(scene.incidents("sampler"))
    assert scene.why_not("gpu0", "the driver did not answer")


def hang_at_load(tool, library):
    scene = Scene(tool, library, "hang at load", {}, env={"EPOCHMETER_REPLAY_AT_LOAD": "hang", **IMPATIENT})
    scene.check_ends("the driver did not answer for 2.00 s", 2, 8)


def crash_at_load(how, reason):
    def scenario(tool, library):
        scene = Scene(tool, library, f"{how} at load", {}, env={"EPOCHMETER_REPLAY_AT_LOAD": how})
        scene.check_ends(f"the sampler process ended {reason}", 3, 8)
        assert "from then on" in scene.incidents("sampler")[0]
        assert scene.why_not("GPU", f"ended {reason}"), scene.report["not_measured"]
    scenario.__name__ = f"{how}_at_load"
    return scenario


def crash_at_init(tool, library):
    scene = Scene(tool, library, "crash at init", {"faults": [{"function": "nvmlInit*", "crash": "abort", **FAULT},
                                                              {"function": "nvmlDeviceGetTemperature*", "crash": "segv", "at_s": 1.8, "for_s": 1}]})
    scene.check_gap()
    scene.check_ends("the sampler process ended by signal 11", 2, 6)
    assert "ended by signal 6 (Aborted)" in scene.incidents("sampler")[0]


def crash_at_the_nth_call(tool, library):
    scene = Scene(tool, library, "crash at the nth call", {"faults": [{"function": "nvmlDeviceGetPowerUsage", "after": 9, "crash": "double_free"}]})
    scene.check_ends("the sampler process ended by signal 6 (Aborted)", 2, 10)
    assert "double free" in scene.tool.call("dump", scene.tool.run_file).stdout.decode(), "its last words"
    assert scene.epochs_with()


def exit_in_a_call(tool, library):
    scene = Scene(tool, library, "exit in a call", {"faults": [{"function": "nvmlDeviceGetPowerUsage", "crash": "exit", **FAULT}]})
    scene.check_gap()
    scene.check_ends("the sampler process ended with exit code 3", 2, 6)


def stopped_sampler(tool, library):
    def stop(scene, process):
        time.sleep(max(0, (scene.t0_ns - time.monotonic_ns()) / 1e9 + FAULT["at_s"]))
        pid = find_helper(process.pid, "epm-sampler")
        os.kill(pid, signal.SIGSTOP)
        return pid

    scene = Scene(tool, library, "stopped", {}, during=stop, env={"EPOCHMETER_SAMPLER_SILENCE_MS": "2300"})
    scene.check_gap(hit=[2])
    scene.check_ends("the driver did not answer for 2.30 s", 1, 1)
    assert not os.path.exists(f"/proc/{scene.found}"), "the stopped one is gone"


def garbage(tool, library):
    scene = Scene(tool, library, "garbage", {"faults": [{"function": "nvmlDeviceGetPowerUsage", "times": 8, "garbage": 3, "at_s": 1.8}]})
    losses = [loss for loss in scene.report["losses"] if loss["kind"] == "sampler.garbage"]
    assert losses and sum(loss["count"] for loss in losses) > 24 * 64
    assert scene.epochs_with() == list(range(EPOCHS)) and not scene.incidents("sampler"), "it costs nothing else"


def flood_of_garbage(tool, library):
    scene = Scene(tool, library, "flood of garbage", {"faults": [{"function": "*", "garbage": 100, **FAULT}]})
    scene.check_ends("the sampler process sent what is no record", 1, 6)
    assert EPOCHS - 1 in scene.epochs_with() and 0 in scene.epochs_with()


def lost_gpu(tool, library):
    script = {"extend": {"device": 0, "lost": {"at_s": FAULT["at_s"]}}, "devices": {"count": 3, **GPU}}
    scene = Scene(tool, library, "lost gpu", script)
    assert set(scene.epochs_with(gpu=0)) <= {0, 1}, scene.epochs_with(gpu=0)
    for other in (1, 2):
        assert scene.epochs_with(gpu=other) == list(range(EPOCHS))
        assert scene.longest_gap_s("gpu_utilization_ratio", other) <= scene.slack_s, "the others at their tick"
    assert any("lost" in text for text in scene.incidents("gpu.lost"))
    assert scene.why_not("gpu0", "gpu.lost") and not scene.incidents("sampler")


def unloaded_driver(tool, library):
    scene = Scene(tool, library, "unloaded driver", {"faults": [{"function": "*", "return": 9, **FAULT}]})
    scene.check_gap()
    assert len(scene.incidents("gpu.lost")) == len(scene.incidents("gpu.back")) == 2, scene.report["incidents"]
    assert scene.why_not("gpu0 in epoch 2, 3", "Driver Not Loaded"), scene.report["not_measured"]


def corrupt_values(tool, library):
    most = 2**32 - 1
    lies = {"util_gpu": most, "util_mem": most, "power_mw": most, "power_instant_mw": most, "temp_c": most, "gpm.sm_util": "NaN",
            "mem_used": 2**64 - 1, "sm_mhz": most, "fans": most, "nvlink_links": most}
    faults = [{"values": lies, **FAULT}, *({"function": f"nvmlDeviceGet{kind}RunningProcesses*", "corrupt": True, **FAULT} for kind in ("Compute", "Graphics", "MPSCompute"))]
    scene = Scene(tool, library, "corrupt values", {"faults": faults})
    assert not scene.incidents("sampler")
    assert scene.epochs_with()[0] == 0 and scene.epochs_with()[-1] == EPOCHS - 1
    assert not set(scene.epochs_with()) & set(HIT), "nothing believed"


def corrupt_texts(tool, library):
    faults = [{"function": name, "corrupt": True} for name in
              ("nvmlSystemGet*", "nvmlDeviceGetName", "nvmlDeviceGetSerial", "nvmlDeviceGetPciInfo*", "nvmlDeviceGetUUID")]
    scene = Scene(tool, library, "corrupt texts", {"devices": GPU, "faults": faults})
    assert not scene.incidents("sampler") and scene.epochs_with() == list(range(EPOCHS))


def counter_reset(tool, library):
    values = {**GPU["values"], "energy_mj": {"start": 9000000, "per_s": 300000, "resets_at_s": [2.5]}}
    scene = Scene(tool, library, "counter reset", {"devices": {**GPU, "values": values}})
    energies = {e["epoch"]: g.get("energy_j") for e in scene.report["epochs"] for g in e["gpus"]}
    for epoch, energy_j in energies.items():
        assert energy_j is None or energy_j == pytest.approx(300, rel=0.25), energies
        assert energy_j is not None or epoch == 2, energies


def metrics_come_and_go(tool, library):
    values = {**GPU["values"], "temp_c": [[0, 55], [2.5, None]], "power_mw": [[0, None], [2.5, 300000]],
              "power_instant_mw": None}
    scene = Scene(tool, library, "metrics come and go", {"devices": {**GPU, "values": values}})
    temperature, power = scene.epochs_with("temperature_c"), scene.epochs_with("power_w")
    assert 0 in temperature and not set(temperature) & {3, 4, 5}, temperature
    assert scene.why_not("gpu0 temperature_c") or scene.why_not("gpu0", "temperature"), scene.report["not_measured"]
    assert scene.epochs_with() == list(range(EPOCHS))
    assert not set(power) & {0, 1}, power


def from_none_to_sixteen_and_back(tool, library):
    script = {"devices": {"count": 16, **GPU, "absent": [[-1000, 0.2], [4.5, 1000]]}}
    scene = Scene(tool, library, "none to sixteen", script)
    for gpu in range(16):
        there = scene.epochs_with(gpu=gpu)
        assert 3 in there and 5 not in there, f"gpu{gpu}: {there}"
    assert len(scene.incidents("gpu.lost")) == 16 and not scene.incidents("sampler")


SHORT = [hang, hang_for_ever, hang_at_load, crash_at_load("segv", "by signal 11 (Segmentation fault)"),
         crash_at_load("abort", "by signal 6 (Aborted)"), crash_at_load("exit", "with exit code 3"),
         crash_at_load("double_free", "by signal 6 (Aborted)"), crash_at_init, crash_at_the_nth_call, exit_in_a_call, stopped_sampler,
         garbage, flood_of_garbage, lost_gpu, unloaded_driver, corrupt_values, corrupt_texts, counter_reset, metrics_come_and_go,
         from_none_to_sixteen_and_back]


def hang_of_a_minute(tool, library):
    """With the patience of 30 s that users have: noticed once, and read again when the driver answers."""
    faults = [{"function": "*", "hang": True, "at_s": 10, "for_s": 60}]
    scene = Scene(tool, library, "hang of a minute", {"faults": faults}, epochs=90, flags=RARE_TICKS)
    there = scene.epochs_with()
    assert set(range(10)) <= set(there) and not set(there) & set(range(11, 70)) and set(range(75, 90)) <= set(there), there
    scene.check_ends("the driver did not answer for 30.0 s", 1, 2)
    return f"hang of 60 s: {scene.incidents('sampler')}; the host's longest gap {scene.longest_gap_s('host_cpu_seconds_total'):.2f} s"


def crash_loop(tool, library):
    """Three minutes of a library that crashes when it is loaded: the restarts cost next to nothing."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    scene = Scene(tool, library, "crash loop", {}, env={"EPOCHMETER_REPLAY_AT_LOAD": "segv"}, epochs=180, flags=("-i", "1s"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    scene.check_ends("ended by signal 11 (Segmentation fault)", 9, 13)
    return f"crash loop of 180 s: {scene.incidents('sampler')}; all processes together " \
           f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} s of CPU"


def gpu_comes_back(tool, library):
    devices = [{**GPU, "lost": {"at_s": 5, "for_s": 20}}, {**GPU, "absent": [5, 25]}, GPU]
    scene = Scene(tool, library, "gpu comes back", {"devices": devices}, epochs=75, flags=RARE_TICKS)
    for gpu in (0, 1):
        there = scene.epochs_with(gpu=gpu)
        assert set(range(4)) <= set(there) and not set(there) & set(range(6, 25)) and set(range(70, 75)) <= set(there), (gpu, there)
    assert scene.epochs_with(gpu=2) == list(range(75)) and scene.longest_gap_s("gpu_utilization_ratio", 2) <= scene.slack_s
    assert len(scene.incidents("gpu.lost")) == len(scene.incidents("gpu.back")) == 2
    return f"2 of 3 GPUs lost at +5 s: {scene.report['incidents']}"


def more_gpus(tool, library):
    devices = [GPU, *({**GPU, "absent": [-100, 10]} for _ in range(15))]
    scene = Scene(tool, library, "more gpus", {"devices": devices}, epochs=75, flags=RARE_TICKS)
    assert all(set(range(65, 75)) <= set(scene.epochs_with(gpu=gpu)) for gpu in range(16))
    return "1 GPU, 16 from +10 s on: all read at the end"


LONG_ONES = [hang_of_a_minute, gpu_comes_back, more_gpus]


def run_all(tool, library, scenarios, at_once):
    """All at once; what fails beside others is played again alone, where no other takes its ticks' time."""
    failures, results, again = [], [], []
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        futures = [(scene, pool.submit(scene, tool, library)) for scene in scenarios]
        for scene, future in futures:
            try:
                results.append(future.result())
            except Exception:  # noqa: BLE001 - told when it fails alone, too
                again.append(scene)
    for scene in again:
        try:
            results.append(scene(tool, library))
        except Exception as problem:  # noqa: BLE001 - told together
            failures.append(f"{scene.__name__}: {type(problem).__name__}: {problem}")
    assert not failures, "\n".join(failures)
    print("", *filter(None, results), sep="\n")


def test_faults_of_the_driver(tool, replay_library):
    run_all(tool, replay_library, SHORT, AT_ONCE)


@pytest.mark.slow
@pytest.mark.skipif(not LONG, reason="takes minutes; set EPOCHMETER_NVML_FAULTS=long")
def test_faults_that_last(tool, replay_library):
    run_all(tool, replay_library, LONG_ONES, len(LONG_ONES))


@pytest.mark.slow
@pytest.mark.skipif(not LONG, reason="takes three minutes; set EPOCHMETER_NVML_FAULTS=long")
def test_a_crash_loop_costs_next_to_nothing(tool, replay_library):
    run_all(tool, replay_library, [crash_loop], 1)
