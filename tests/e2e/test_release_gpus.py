# SPDX-License-Identifier: Apache-2.0
"""SIGUSR1 makes the sampler let go of the GPUs for a minute, so that one can be reset under a run."""
import json
import os
import pathlib
import signal
import time

import pytest
from conftest import find_helper, python

SCRIPT = {"name": "release", "devices": [
    {"count": 2, "name": "NVIDIA H200", "values": {
        "util_gpu": 40, "util_mem": 5, "power_mw": 300000, "memory_total": 1000, "mem_used": 300,
        "memory_reserved": 10, "gpm.sm_util": 30}}]}


def until(condition, what, timeout_s=20.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)


class Recording:
    """A training of some seconds with two replayed GPUs, and the log of what was asked of NVML."""

    def __init__(self, tool, library, seconds):
        self.tool = tool
        self.log = tool.tmp / "calls.log"
        script = tool.tmp / "gpus.json"
        script.write_text(json.dumps(SCRIPT))
        env = tool.env(EPOCHMETER_NVML_LIBRARY=str(library), EPOCHMETER_REPLAY=str(script),
                       EPOCHMETER_REPLAY_LOG=str(self.log))
        code = f"import sys, time; time.sleep({seconds}); sys.exit(7)"
        self.process = tool.start(python(), "-c", code, flags=["-q", "-i", "200ms"], env=env)
        self.sampler = find_helper(self.process.pid, "epm-sampler")
        until(lambda: self.count("nvmlDeviceGetUtilizationRates") >= 4, "readings")

    def calls(self):
        """Names of the calls so far; a line that is being written doesn't count."""
        whole = self.log.read_text().rpartition("\n")[0] if self.log.exists() else ""
        return [line.split()[1] for line in whole.splitlines()]

    def count(self, name):
        return self.calls().count(name)

    def end(self):
        out, err = self.process.communicate(timeout=120)
        assert (self.process.returncode, out, err) == (7, b"", b"")
        return self.tool.export_jsonl()


def events(records, name):
    return [r for r in records if r.get("name") == name]


def descriptors(pid):
    return sorted(os.readlink(entry) for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir())


def test_sigusr1_closes_nvml_and_the_run_says_so(tool, replay_library):
    run = Recording(tool, replay_library, 6)
    os.kill(run.sampler, signal.SIGUSR1)
    until(lambda: run.calls()[-1] == "nvmlShutdown", "nvmlShutdown as the last call")
    calls = run.calls()
    assert calls.count("nvmlEventSetFree") == calls.count("nvmlEventSetCreate") == 1
    assert not [name for name in descriptors(run.sampler) if "nvidia" in name]
    time.sleep(1.5)  # some ticks
    assert run.calls() == calls, "nothing was asked while released"
    assert find_helper(run.process.pid, "epm-sampler") == run.sampler, "the same process"
    records = run.end()
    assert len(events(records, "nvml.released")) == 1
    assert not events(records, "gpu.lost")
    text = tool.call("dump", tool.run_file).stdout.decode()
    assert 'condition=source_gone detail="NVML was released on request"' in text


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("EPOCHMETER_SLOW"), reason="waits a minute; set EPOCHMETER_SLOW=1")
def test_the_gpus_are_read_again_after_a_minute(tool, replay_library):
    run = Recording(tool, replay_library, 66)
    os.kill(run.sampler, signal.SIGUSR1)
    until(lambda: run.count("nvmlShutdown") == 1, "nvmlShutdown")
    released_s = time.monotonic()
    read = run.count("nvmlDeviceGetUtilizationRates")
    until(lambda: run.count("nvmlDeviceGetUtilizationRates") > read, "readings again", 70)
    assert 58 < time.monotonic() - released_s < 63
    records = run.end()
    assert len(events(records, "nvml.taken_up")) == 1
    assert not events(records, "gpu.lost") and not events(records, "gpu.back")
    assert not events(records, "sampler")
