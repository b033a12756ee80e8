# SPDX-License-Identifier: Apache-2.0
"""Where our own processes run, and what they record of themselves and of the job's workers."""
import os
import pathlib
import re
import shutil
import time

import pytest

from conftest import find_helper, python

CPUS = sorted(os.sched_getaffinity(0))
WORKERS = """
import multiprocessing, sys, time
def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
    time.sleep(30)
if __name__ == "__main__":
    workers = [multiprocessing.get_context("fork").Process(target=work, args=(0.3,), daemon=True) for _ in range(2)]
    for worker in workers: worker.start()
    time.sleep(float(sys.argv[1]))
"""


def allowed(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.M).group(1)


def expand(text):
    cpus = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


@pytest.mark.skipif(len(CPUS) < 2 or not shutil.which("taskset"), reason="needs two CPUs and taskset")
def test_a_pinned_training_has_its_cores_for_itself(tool):
    pinned, rest = CPUS[0], CPUS[1:]
    run = tool.start("taskset", "-c", str(pinned), python(), "-c", "import time; time.sleep(4)")
    helpers = [find_helper(run.pid, "epm-recorder"), find_helper(run.pid, "epm-relay")]
    deadline = time.monotonic() + 3.5
    free = set(CPUS)
    while time.monotonic() < deadline and free != set(rest):
        time.sleep(0.05)
        free = {cpu for pid in helpers for cpu in expand(allowed(pid))}
    assert free == set(rest)
    assert run.wait(timeout=60) == 0
    events = [line for line in tool.export_jsonl() if line.get("name") == "recorder.cores"]
    assert len(events) == 1
    assert events[0]["fields"]["training_cpus"] == str(pinned)


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
def test_a_training_that_is_not_pinned_shares_all_cores(tool):
    run = tool.start(python(), "-c", "import time; time.sleep(2.5)")
    recorder = find_helper(run.pid, "epm-recorder")
    time.sleep(1.8)
    assert expand(allowed(recorder)) == set(CPUS)
    assert run.wait(timeout=60) == 0
    assert not [line for line in tool.export_jsonl() if line.get("name") == "recorder.cores"]


def test_workers_of_a_rank_are_counted_apart_from_it(tool):
    done = tool.record(python(), "-c", WORKERS, "3", env=tool.env(RANK="5", LOCAL_RANK="1", WORLD_SIZE="8"))
    assert done.returncode == 0, done.stderr.decode()
    highest = {}
    for line in tool.export_jsonl():
        if line.get("rank") == 5 and "metric" in line:
            name = line["metric"]
            highest[name] = max(highest.get(name, 0), line["value"])
    assert highest["rank_workers"] == 2
    assert 0.5 <= highest["rank_worker_cpu_seconds_total"] < 2
    assert highest["rank_cpu_seconds_total"] < 0.5
    assert highest["rank_worker_resident_memory_bytes"] > 1e6


def test_the_recorder_says_what_writing_costs(tool):
    assert tool.record(python(), "-c", "import time; time.sleep(2.5)").returncode == 0
    own = {line["metric"]: line["value"] for line in tool.export_jsonl() if "metric" in line}
    assert own["recorder_written_bytes_total"] > 1000
    assert 0 < own["recorder_flush_seconds"] < 60
    assert own["recorder_disk_free_bytes"] > 0
