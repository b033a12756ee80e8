# SPDX-License-Identifier: Apache-2.0
"""Which GPUs are the job's, and what part of their memory: with a replayed driver and real pid namespaces."""
import json
import os
import subprocess

import pytest
from conftest import BINARY, PROGRAMS, python

JOB = PROGRAMS / "gpu_job.py"
GB = 1_000_000_000
INITIAL = "pid:[4026531836]"
UUIDS = [f"GPU-{i}{i}{i}{i}aaaa-0000-4000-8000-000000000000" for i in range(4)]


def four_gpus(models=("NVIDIA H200",) * 4):
    return {"name": "four", "devices": [
        {"name": models[i], "uuid": UUIDS[i], "bus_id": f"00000000:{0x10 + i:02X}:00.0",
         "values": {"memory_total": 100 * GB, "mem_used": GB, "memory_reserved": 0, "util_gpu": 10 * (i + 1),
                    "util_mem": 1, "power_mw": 100000}}
        for i in range(4)]}


def replay_env(tool, library, script, **extra):
    path = tool.tmp / "gpus.json"
    path.write_text(json.dumps(script))
    return tool.env(EPOCHMETER_NVML_LIBRARY=str(library), EPOCHMETER_REPLAY=str(path), **extra)


def shown(tool, *flags):
    done = tool.call("report", tool.run_file, "-f", "json", *flags)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["data"]


FORMS = {
    "number": ({"CUDA_VISIBLE_DEVICES": "2"}, [2]),
    "list": ({"CUDA_VISIBLE_DEVICES": "3,0"}, [0, 3]),
    "uuid": ({"CUDA_VISIBLE_DEVICES": UUIDS[1]}, [1]),
    "uuid_prefix": ({"CUDA_VISIBLE_DEVICES": "GPU-3,GPU-0"}, [0, 3]),
    "ambiguous_prefix": ({"CUDA_VISIBLE_DEVICES": "GPU-"}, []),
    "ends_at_invalid": ({"CUDA_VISIBLE_DEVICES": "1,-1,2"}, [1]),
    "empty": ({"CUDA_VISIBLE_DEVICES": ""}, []),
    "minus_one": ({"CUDA_VISIBLE_DEVICES": "-1"}, []),
    "duplicate": ({"CUDA_VISIBLE_DEVICES": "0,0"}, []),
    "strtoul": ({"CUDA_VISIBLE_DEVICES": "1gpu2"}, [1]),
    "mig_of_gpu": ({"CUDA_VISIBLE_DEVICES": f"MIG-{UUIDS[2]}/1/0"}, [2]),
    "paddle": ({"CUDA_VISIBLE_DEVICES": "2,3", "FLAGS_selected_gpus": "1"}, [3]),
    "runtime": ({"NVIDIA_VISIBLE_DEVICES": "0,1"}, [0, 1]),
    "unset": ({}, [0, 1, 2, 3]),
}


def without_choice(env):
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "FLAGS_selected_gpus", "CUDA_DEVICE_ORDER"):
        env.pop(name, None)
    return env


@pytest.mark.parametrize("form", FORMS)
def test_only_the_jobs_gpus_are_recorded(tool, replay_library, form):
    variables, expected = FORMS[form]
    env = {**without_choice(replay_env(tool, replay_library, four_gpus())), **variables}
    done = tool.record(python(), JOB, "--epochs", 1, "--epoch-s", 1.2, flags=["-i", "100ms"], env=env)
    assert done.returncode == 0, done.stderr.decode()
    report = shown(tool)
    assert [g["gpu"] for g in report["gpus"]] == expected
    for gpu in report["gpus"]:
        assert gpu["utilization_ratio"]["mean"] == pytest.approx(0.1 * (gpu["gpu"] + 1))
        assert gpu["job"] is (True if variables else None)
    others = [g for g in shown(tool, "--all-gpus")["gpus"] if g["gpu"] not in expected]
    assert all(g["job"] is False and "utilization_ratio" not in g for g in others)
    assert len(others) == 4 - len(expected)


def test_all_gpus_records_the_rest_and_marks_it(tool, replay_library):
    env = {**without_choice(replay_env(tool, replay_library, four_gpus())), "CUDA_VISIBLE_DEVICES": "1"}
    done = tool.record(python(), JOB, "--epochs", 1, "--epoch-s", 1.2, flags=["-i", "100ms", "--all-gpus"], env=env)
    assert done.returncode == 0, done.stderr.decode()
    assert [g["gpu"] for g in shown(tool)["gpus"]] == [1]
    every = shown(tool, "--all-gpus")["gpus"]
    assert [(g["gpu"], g["job"]) for g in every] == [(0, False), (1, True), (2, False), (3, False)]
    assert every[3]["utilization_ratio"]["mean"] == pytest.approx(0.4)
    text = tool.call("report", tool.run_file, "--all-gpus").stdout.decode()
    assert "job's" in text


def test_numbers_among_several_models_record_all_and_say_so(tool, replay_library):
    script = four_gpus(("NVIDIA H200", "NVIDIA L40S", "NVIDIA H200", "NVIDIA H200"))
    env = {**without_choice(replay_env(tool, replay_library, script)), "CUDA_VISIBLE_DEVICES": "1"}
    assert tool.record(python(), JOB, "--epochs", 1, "--epoch-s", 1.2, flags=["-i", "100ms"], env=env).returncode == 0
    report = shown(tool)
    assert [g["gpu"] for g in report["gpus"]] == [0, 1, 2, 3]
    assert any("CUDA_DEVICE_ORDER" in m["reason"] for m in report["not_measured"] if "which GPUs" in m["subject"])
    env["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    assert tool.record(python(), JOB, "--epochs", 1, "--epoch-s", 1.2, flags=["-i", "100ms", "--force"], env=env).returncode == 0
    assert [g["gpu"] for g in shown(tool)["gpus"]] == [1]


def test_gpus_that_the_training_names_are_the_jobs_whatever_the_environment_says(tool, replay_library):
    env = {**without_choice(replay_env(tool, replay_library, four_gpus())), "CUDA_VISIBLE_DEVICES": "0"}
    named = json.dumps([{"index": 0, "uuid": UUIDS[3]}])
    done = tool.record(python(), JOB, "--gpus", named, "--epochs", 3, "--epoch-s", 1.2, flags=["-i", "100ms"], env=env)
    assert done.returncode == 0, done.stderr.decode()
    report = shown(tool)
    assert 3 in [g["gpu"] for g in report["gpus"]]
    assert report["epochs"][-1]["own_gpus"]["gpus"] == [3]
    assert report["epochs"][-1]["own_gpus"]["utilization_ratio"] == pytest.approx(0.4)


def test_without_any_word_the_gpus_that_the_ranks_name_are_shown(tool, replay_library):
    env = without_choice(replay_env(tool, replay_library, four_gpus()))
    named = json.dumps([{"index": 0, "pci_bus_id": "0000:12:00.0"}])
    assert tool.record(python(), JOB, "--gpus", named, flags=["-i", "100ms"], env=env).returncode == 0
    assert [g["gpu"] for g in shown(tool)["gpus"]] == [2]
    assert len(shown(tool, "--all-gpus")["gpus"]) == 4


# --- whose memory ---

def one_gpu(processes):
    return {"name": "one", "devices": [{"processes": processes, "values": {
        "memory_total": 100 * GB, "mem_used": 10 * GB, "memory_reserved": GB, "util_gpu": 50, "util_mem": 1}}]}


def record_in(tool, library, before, script, *job, **extra):
    """Runs `before... epochmeter run ... gpu_job.py`; the job writes the script, so that it can hold its pid."""
    fifo = tool.tmp / "script.fifo"
    os.mkfifo(fifo)
    env = without_choice(tool.env(EPOCHMETER_NVML_LIBRARY=str(library), EPOCHMETER_REPLAY=str(fifo), **extra))
    words = [*before, BINARY, "run", "-o", tool.run_file, "-i", "100ms", "--", python(), JOB,
             "--script-to", fifo, "--script", json.dumps(script).replace('"@PID@"', "@PID@"), *job]
    done = subprocess.run([str(w) for w in words], env=env, cwd=tool.tmp, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    report = shown(tool)
    assert report["gpus"], report["not_measured"]
    return report


def can_unshare():
    return subprocess.run(["unshare", "-p", "-f", "--mount-proc", "true"], capture_output=True).returncode == 0


def needs_namespaces():
    if not can_unshare():
        pytest.skip("no right to make a pid namespace (unshare -p)")


def needs_initial():
    if os.readlink("/proc/self/ns/pid") != INITIAL:
        pytest.skip("this test runs in a pid namespace of its own")


NAMESPACE = ["unshare", "-p", "-f", "--mount-proc"]


def reasons(report, field):
    return " ".join(m["reason"] for m in report["not_measured"] if field in m["subject"])


def test_in_the_initial_namespace_memory_is_split_by_pid(tool, replay_library):
    needs_initial()
    report = record_in(tool, replay_library, [], one_gpu([["@PID@", 6 * GB], [1, 3 * GB]]))
    memory = report["epochs"][-1]["own_gpus"]
    assert memory["own_memory_max_bytes"] == 6 * GB
    assert memory["others_memory_max_bytes"] == 3 * GB
    assert memory["unexplained_memory_max_bytes"] == 1 * GB
    assert memory["own_memory_source"] == "processes"


def test_in_a_pid_namespace_an_equal_pid_is_never_ours(tool, replay_library):
    needs_namespaces()
    report = record_in(tool, replay_library, NAMESPACE, one_gpu([["@PID@", 6 * GB], [4711, 3 * GB]]))
    memory = report["epochs"][-1]["own_gpus"]
    assert memory["own_memory_max_bytes"] is None
    assert memory["others_memory_max_bytes"] is None
    assert memory["unexplained_memory_max_bytes"] == 1 * GB
    assert "pid namespace" in reasons(report, "own_memory_bytes")


def test_in_a_pid_namespace_an_empty_list_is_not_zero(tool, replay_library):
    needs_namespaces()
    report = record_in(tool, replay_library, NAMESPACE, one_gpu([]))
    memory = report["epochs"][-1]["own_gpus"]
    assert [memory[f"{part}_memory_max_bytes"] for part in ("own", "others", "unexplained")] == [None] * 3
    assert "processes" not in report["gpus"][0]


def test_in_a_pid_namespace_the_allocator_is_a_lower_bound(tool, replay_library):
    needs_namespaces()
    report = record_in(tool, replay_library, NAMESPACE, one_gpu([]), "--reserved", 5 * GB)
    memory = report["epochs"][-1]["own_gpus"]
    assert memory["own_memory_max_bytes"] == 5 * GB
    assert memory["own_memory_source"] == "allocator"
    text = tool.call("report", tool.run_file).stdout.decode()
    assert ">=5" in text


def test_the_hosts_proc_tells_whose_the_pids_are(tool, replay_library):
    needs_namespaces()
    needs_initial()
    host = tool.tmp / "hostproc"
    host.mkdir()
    before = ["unshare", "-m", "sh", "-c", f'mount --bind /proc {host} && exec unshare -p -f --mount-proc "$@"', "sh"]
    report = record_in(tool, replay_library, before, one_gpu([["@PID@", 6 * GB], [1, 3 * GB]]),
                       "--pid-from", host, EPOCHMETER_HOST_PROC=str(host))
    memory = report["epochs"][-1]["own_gpus"]
    assert memory["own_memory_max_bytes"] == 6 * GB
    assert memory["others_memory_max_bytes"] == 3 * GB


def test_under_the_outer_proc_pids_are_translated(tool, replay_library):
    """A pid namespace without a /proc of its own: what /proc shows are the numbers of the host."""
    needs_namespaces()
    needs_initial()
    report = record_in(tool, replay_library, ["unshare", "-p", "-f"], one_gpu([["@PID@", 6 * GB], [1, 3 * GB]]),
                       "--pid-from", "/proc")
    memory = report["epochs"][-1]["own_gpus"]
    assert memory["own_memory_max_bytes"] == 6 * GB
