# SPDX-License-Identifier: Apache-2.0
"""A disk that stands still, is slow or is full for some time: sampling keeps its tick, memory stays
bounded, nothing is lost, and the report says what the disk did.

EPOCHMETER_SOAK=2 or more: a sync stands still for 30 s and the disk is full for 10 minutes.
"""
import concurrent.futures
import pathlib
import subprocess
import time

import pytest
from conftest import BINARY, find_helper, python
from disk_faults import LONG, FaultyTool, longest_gap_s, ours, recorded_steps, values, wait_until

pytestmark = pytest.mark.timeout(1800 if LONG else 120)
STALL_S = 30 if LONG else 2
FULL_S = 600 if LONG else 2
AFTER_S = 3.0
MAX_RSS_BYTES = 64e6
MAX_JITTER_S = 0.02
# Output and events, so that there is always something to write.
TALKER = ("import epochmeter, sys, time\n"
          "epochmeter.start()\n"
          "end, n = time.monotonic() + float(sys.argv[1]), 0\n"
          "def steps():\n"
          "    while time.monotonic() < end: yield 0\n"
          "for _ in epochmeter.steps(steps(), epoch=0):\n"
          "    time.sleep(0.02); n += 1; print('x' * 400, flush=True)\n"
          "print(n)\n")


def peak_memory(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


class Outcome:
    def __init__(self, tool, seconds, rules):
        process = tool.start(python(), "-c", TALKER, seconds + AFTER_S + 1, flags=["-i", "100ms"])
        recorder = find_helper(process.pid, "epm-recorder")
        wait_until(lambda: any(c.wrote_all() and c.path.endswith(".tail") for c in tool.calls()))
        tool.set(*rules)
        time.sleep(seconds)
        tool.set()
        time.sleep(AFTER_S - 1)
        self.peak_bytes = peak_memory(recorder)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        self.said = ours(err)
        self.calls = tool.calls()
        rows = tool.export_jsonl()
        self.missing = set(range(1, int(out.split()[-1]) + 1)) - recorded_steps(rows)
        late = [value for _, value in values(rows, "sample_lag_seconds")]
        self.jitter_s = sorted(late)[int(len(late) * 0.99)]
        self.ticks = len(late)
        self.gap_s = longest_gap_s([t for t, _ in values(rows, "sample_lag_seconds")])
        self.data = tool.report()

    def line(self, name):
        return (f"{name}: {self.ticks} ticks, p99 of lateness {self.jitter_s * 1e3:.1f} ms, longest gap "
                f"{self.gap_s:.2f} s, peak memory {self.peak_bytes / 1e6:.1f} MB, {len(self.missing)} steps missing")


def test_sampling_goes_on_and_nothing_is_lost(tmp_path):
    cases = {"untroubled": (STALL_S, []),
             "sync stalled": (STALL_S, [f"sync .tail 0 1 delay={STALL_S * 1000}"]),
             "1 MB/s": (STALL_S, ["write * 0 * rate=1000000"]),
             "full": (FULL_S, ["write * 0 * ENOSPC"])}
    with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
        started = {name: pool.submit(Outcome, FaultyTool(tmp_path / str(i)), *case)
                   for i, (name, case) in enumerate(cases.items())}
    outcomes = {name: done.result() for name, done in started.items()}
    for name, outcome in outcomes.items():
        print(outcome.line(name))
    # The machine's own lateness is not the disk's: where a run without faults beside them has it too,
    # they show only that no tick waits for the disk.
    quiet = outcomes["untroubled"].jitter_s < MAX_JITTER_S / 2
    for name, outcome in outcomes.items():
        assert not outcome.missing, name
        assert outcome.jitter_s < MAX_JITTER_S or not quiet, name
        assert outcome.gap_s < 1.9, name
        assert outcome.peak_bytes < MAX_RSS_BYTES, name
        assert not [loss for loss in outcome.data["losses"] if loss["severity"] != "info"], name
    full = outcomes["full"]
    last_failed = max(c.t_ns for c in full.calls if c.hit)
    assert min(c.t_ns for c in full.calls if c.wrote_all() and c.t_ns > last_failed) - last_failed < 2e9
    assert sum("recording goes on in memory" in line for line in full.said) == 1
    told = [incident for incident in full.data["incidents"] if incident["kind"] == "recorder.disk"]
    assert len(told) == 1 and "No space left on device" in told[0]["text"]


def test_a_disk_that_does_not_answer_at_the_start_holds_nothing_up(tmp_path):
    tool = FaultyTool(tmp_path, "create .emr 0 1 delay=2500")
    began = time.monotonic()
    done = tool.record("sh", "-c", "echo begun; sleep 3; exit 4")
    assert done.returncode == 4 and time.monotonic() - began < 5.5
    assert any("does not answer" in line for line in ours(done.stderr)), done.stderr
    data = tool.report()
    assert data["run"]["exit"]["exit_code"] == 4
    assert not data["losses"]


def test_a_really_full_disk_costs_the_training_nothing(tool):
    """A tmpfs of 1 MiB, filled, emptied again while the run is on."""
    script = (f"mount -t tmpfs -o size=1m none {tool.tmp} && cd {tool.tmp} && mkdir sockets && "
              "head -c 900000 /dev/zero > ballast && "
              f"{{ (sleep 2; rm ballast) & {BINARY} run -q -o run.emr -- {python()} -c 'import sys, time\n"
              "for i in range(35): sys.stdout.write(str(i) * 3000); time.sleep(0.1)\n"
              "sys.exit(6)' | wc -c; echo ${PIPESTATUS[0]}; } && "
              f"{BINARY} report run.emr -f json")
    probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    if probe.returncode != 0:
        pytest.skip(f"no mounts of one's own here: {probe.stderr.decode().strip()}")
    done = subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, env=tool.env(), timeout=60)
    lines = done.stdout.decode().splitlines()
    assert lines[0] == str(3000 * (10 + 2 * 25)) and lines[1] == "6", done.stdout[:500] + done.stderr
    assert b'"exit_code":6' in done.stdout.replace(b" ", b""), done.stdout[:3000]


FLOOD = ("import epochmeter, sys, time\n"
         "epochmeter.start()\n"
         "end, n = time.monotonic() + 92, 0\n"
         "def steps():\n"
         "    while time.monotonic() < end: yield 0\n"
         "for _ in epochmeter.steps(steps(), epoch=0):\n"
         "    n += 1; epochmeter.log(**{f'v{i}': n * 1.1 + i for i in range(30)}); time.sleep(0.0001)\n")


@pytest.mark.skipif(not LONG, reason="a minute and a half; EPOCHMETER_SOAK=2 runs it")
def test_beyond_its_memory_the_recorder_drops_counts_and_says_of_when(tmp_path):
    tool = FaultyTool(tmp_path, "write .tail 3 * ENOSPC")
    process = tool.start(python(), "-c", FLOOD)
    recorder = find_helper(process.pid, "epm-recorder")
    time.sleep(90)
    tool.set()
    time.sleep(1)
    peak_bytes = peak_memory(recorder)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    dropped = [loss for loss in tool.report()["losses"] if loss["kind"] == "recorder.dropped_records"]
    print(f"{sum(loss['count'] for loss in dropped)} records dropped, peak memory {peak_bytes / 1e6:.1f} MB")
    assert len(dropped) == 1 and "after the start" in dropped[0]["detail"], dropped
    assert peak_bytes < MAX_RSS_BYTES
