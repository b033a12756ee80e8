# SPDX-License-Identifier: Apache-2.0
"""`doctor` names cause and fix. The machine is a folder (EPOCHMETER_ROOT), the driver the replaying library."""
import json
import os
import pathlib
import subprocess
import time

import pytest
from conftest import BINARY, BUILD, ROOT
from schema import errors

SCHEMA = json.loads((ROOT / "docs" / "schema" / "doctor.schema.json").read_text())
DRIVER = "580.159.04"
MEMORY = {"memory_total": 150754820096, "mem_used": 552402944, "util_gpu": 50, "power_mw": 300000}


class Machine:
    """A root folder with a /proc and /sys of its own."""

    def __init__(self, tool):
        self.tool = tool
        self.root = tool.tmp / "root"
        self.mounts = {"/proc": ("proc", "rw"), "/sys": ("sysfs", "rw"), "/sys/fs/cgroup": ("cgroup2", "rw")}
        self.write("proc/stat", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
        self.write("proc/self/cgroup", "0::/\n")
        self.write("sys/kernel/uname", "x")
        self.write("proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
        self.namespace(4026531836)
        self.env = {"EPOCHMETER_NVML_LIBRARY": "/nowhere/libnvidia-ml.so.1"}

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def namespace(self, inode):
        link = self.root / "proc/self/ns/pid"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        os.symlink(f"pid:[{inode}]", link)

    def gpu(self, driver=DRIVER, bus_id="0000:1a:00.0"):
        """A GPU on the bus, and with `driver` its loaded kernel module."""
        device = f"sys/bus/pci/devices/{bus_id}"
        self.write(f"{device}/vendor", "0x10de\n")
        self.write(f"{device}/class", "0x030200\n")
        if driver:
            self.write("proc/driver/nvidia/version",
                       f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver}  Thu Jan  1 00:00:00 UTC 2026\n")

    def library(self, variant="nvml-replay", **script):
        folder = BUILD / variant
        if not folder.exists():
            pytest.skip(f"{folder} is not built")
        script.setdefault("driver", DRIVER)
        script.setdefault("devices", {"count": 2, "name": "NVIDIA H200", "values": MEMORY})
        self.write("script.json", json.dumps(script))
        self.env = {"EPOCHMETER_NVML_LIBRARY": str(folder), "EPOCHMETER_REPLAY": str(self.root / "script.json")}

    def doctor(self, *words, **env):
        lines = [f"{20 + i} 1 0:{i} / {point} {options} - {kind} {kind} {options}"
                 for i, (point, (kind, options)) in enumerate(self.mounts.items())]
        self.write("proc/self/mountinfo", "\n".join(lines) + "\n")
        env = self.tool.env(EPOCHMETER_ROOT=str(self.root), **self.env, **env)
        for name in ("KUBERNETES_SERVICE_HOST", "LD_PRELOAD"):
            env.pop(name, None)
        done = self.tool.call("doctor", "--json", *words, env=env)
        assert done.returncode in (0, 1), done.stderr.decode()
        answer = json.loads(done.stdout)
        assert errors(answer, SCHEMA) == []
        data = answer["data"]
        assert done.returncode == (1 if data["counts"]["fault"] else 0)
        for fact in data["checks"]:
            assert fact["status"] not in ("fault", "limited") or (fact["fix"] and fact["why"]), fact
        return data


def facts(data, check, status=None):
    return [f for f in data["checks"] if f["check"] == check and status in (None, f["status"])]


def one(data, check, status):
    found = facts(data, check, status)
    assert len(found) == 1, (check, status, facts(data, check))
    return found[0]


@pytest.fixture
def machine(tool):
    return Machine(tool)


def test_no_gpu_is_no_fault(machine):
    data = machine.doctor()
    fact = one(data, "gpu.library", "info")
    assert "no NVIDIA GPU" in fact["what"] and "without GPU" in fact["what"]
    assert data["counts"]["fault"] == 0
    metrics = [m for s in data["sources"] if s["process"] == "sampler" and s["name"].startswith("gpu.") for m in s["metrics"]]
    assert metrics and not any(m["measured"] for m in metrics)
    assert all(m["value"] is None and "libnvidia-ml" in m["reason"] for m in metrics)


def test_a_gpu_without_its_library(machine):
    machine.gpu()
    fact = one(machine.doctor(), "gpu.library", "fault")
    assert "/nowhere/libnvidia-ml.so.1" in fact["why"] and "install the NVIDIA driver" in fact["fix"]


def test_a_container_without_the_utility_capability(machine):
    machine.gpu()
    machine.write(".dockerenv", "")
    fact = one(machine.doctor(), "gpu.library", "fault")
    assert "container (docker)" in fact["what"] and "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in fact["fix"]


def test_no_driver(machine):
    machine.gpu(driver=None)
    machine.library(faults=[{"function": "nvmlInit*", "return": 9}])
    fact = one(machine.doctor(), "gpu.library", "fault")
    assert "not loaded" in fact["what"] and "modprobe nvidia" in fact["fix"]


def test_stub_library(machine):
    machine.gpu()
    machine.library(variant="nvml-replay-stub")
    fact = one(machine.doctor(), "gpu.library", "fault")
    assert "stub" in fact["what"] and "nvml-replay-stub" in fact["why"] and "LD_LIBRARY_PATH" in fact["fix"]


def test_driver_and_library_of_different_versions(machine):
    machine.gpu(driver="570.86.15")
    machine.library(faults=[{"function": "nvmlInit*", "return": 18}])
    fact = one(machine.doctor(), "gpu.library", "fault")
    assert "different versions" in fact["what"] and "570.86.15" in fact["why"] and "reboot" in fact["fix"]


def test_versions_that_differ_though_the_library_answers(machine):
    machine.gpu(driver="570.86.15")
    machine.library()
    fact = one(machine.doctor(), "gpu.library", "fault")
    assert "570.86.15" in fact["why"] and DRIVER in fact["why"]


def test_no_permission_for_one_of_two(machine):
    machine.gpu()
    machine.library(devices=[{"name": "NVIDIA H200", "values": MEMORY},
                             {"name": "NVIDIA H200", "values": MEMORY, "permitted": False}])
    data = machine.doctor()
    fact = one(data, "gpu.access", "limited")
    assert "GPU 1 is present, not permitted" == fact["what"]
    assert "device cgroup" in fact["why"] and "--gres=gpu" in fact["fix"]
    assert one(data, "gpu.access", "ok")["what"] == "1 GPU can be read"


def test_no_permission_for_any_is_a_fault(machine):
    machine.gpu()
    machine.library(devices={"count": 2, "name": "NVIDIA H200", "values": MEMORY, "permitted": False})
    data = machine.doctor()
    assert len(facts(data, "gpu.access", "fault")) == 2


def test_access_revoked_is_not_a_lost_gpu(machine):
    machine.gpu()
    machine.write(".dockerenv", "")
    machine.write("dev/nvidia0", "")
    machine.library(devices={"name": "NVIDIA H200", "values": MEMORY},
                    faults=[{"function": "nvmlDeviceGetHandleByIndex*", "return": 999}])
    fact = one(machine.doctor(), "gpu.access", "fault")
    assert "device access revoked" in fact["what"] and "daemon-reload" in fact["why"] and "restart the container" in fact["fix"]


def test_mig(machine):
    machine.gpu()
    machine.library(devices={"name": "NVIDIA H200", "values": MEMORY, "mig": {"max": 7, "instances": [
        {"gi": 1, "ci": 0, "profile": "3g.71gb", "values": {"memory_total": 76, "mem_used": 12}}, None,
        {"gi": 5, "ci": 0, "profile": "1g.18gb"}]}})
    fact = one(machine.doctor(), "gpu.mode", "limited")
    assert "split by MIG into 2 instances" in fact["what"] and "whole" in fact["why"] and fact["fix"]


def test_mig_without_instances_can_run_nothing(machine):
    machine.gpu()
    machine.library(devices={"name": "NVIDIA H200", "values": MEMORY, "mig": {"max": 7, "instances": []}})
    assert "nvidia-smi mig -cgi" in one(machine.doctor(), "gpu.mode", "fault")["fix"]


def test_wsl_without_the_windows_driver(machine):
    machine.write("dev/dxg", "")
    data = machine.doctor()
    assert "/usr/lib/wsl/lib" in one(data, "gpu.library", "limited")["why"]
    assert "on Windows" in one(data, "gpu.library", "fault")["fix"]


def test_wsl_that_works_tells_what_windows_keeps_back(machine):
    machine.write("dev/dxg", "")
    machine.library()
    data = machine.doctor()
    assert "XID" in one(data, "gpu.library", "limited")["why"]
    assert DRIVER in one(data, "gpu.library", "ok")["what"]


def test_jetson_is_named_and_no_fault(machine):
    machine.write("proc/device-tree/compatible", "nvidia,p3737-0000\0nvidia,tegra234\0")
    data = machine.doctor()
    assert "Jetson" in one(data, "gpu.library", "limited")["what"]
    assert facts(data, "gpu.library", "fault") == []


def test_unified_memory_virtual_gpu_and_persistence(machine):
    machine.gpu()
    machine.library(devices=[{"name": "NVIDIA GB10", "values": {"util_gpu": 1, "memory_total": None, "mem_used": None,
                                                                "persistence_mode": 0}},
                             {"name": "NVIDIA A100-20C", "values": {**MEMORY, "virtualization_mode": 2}}])
    data = machine.doctor()
    said = " ".join(f["what"] for f in facts(data, "gpu.mode"))
    assert "GPU 0 has no memory of its own" in said and "GPU 1 is a virtual GPU" in said
    assert "nvidia-smi -pm 1" in one(data, "gpu.mode", "info")["fix"]


def test_a_sleeping_laptop_gpu_is_told_from_sysfs(machine):
    machine.gpu()
    machine.write("sys/bus/pci/devices/0000:1a:00.0/power/runtime_status", "suspended\n")
    assert "sleeps" in one(machine.doctor("--no-gpu"), "gpu.power_state", "info")["what"]


def test_no_gpu_flag_leaves_the_library_alone(machine):
    machine.gpu()
    machine.library(faults=[{"function": "*", "crash": True}])
    data = machine.doctor("--no-gpu")
    assert data["nvml"]["asked"] is False and facts(data, "gpu.library") == []


def test_mps_and_preloaded_hooks_are_named(machine):
    machine.write("proc/4242/comm", "nvidia-cuda-mps\n")
    machine.write("etc/ld.so.preload", "/usr/local/vgpu/libvgpu.so\n")
    said = {f["what"]: f for f in facts(machine.doctor("--no-gpu"), "gpu.sharing", "limited")}
    assert "CUDA MPS runs here" in said
    assert any("virtualised by /usr/local/vgpu/libvgpu.so" in what for what in said)


def test_a_driver_that_crashes_is_reported_not_suffered(machine):
    machine.gpu()
    machine.library(faults=[{"function": "nvmlDeviceGetName", "crash": True}])
    data = machine.doctor()
    fact = one(data, "gpu.library", "fault")
    assert "signal 11" in fact["why"] and "dmesg" in fact["fix"]
    absent = [m for s in data["sources"] if s["name"] == "gpu.power" for m in s["metrics"]]
    assert absent and all(not m["measured"] and "signal 11" in m["reason"] for m in absent)


def test_a_driver_that_hangs_is_given_up(machine):
    machine.gpu()
    machine.library(faults=[{"function": "nvmlInit*", "hang_s": 300}])
    begin = time.monotonic()
    fact = one(machine.doctor(), "gpu.library", "fault")
    assert "nvmlInit" in fact["what"] and "did not answer" in fact["why"]
    assert time.monotonic() - begin < 30


def test_read_only_sys_loses_nothing(machine):
    machine.mounts["/sys"] = ("sysfs", "ro,nosuid")
    machine.write(".dockerenv", "")
    fact = one(machine.doctor("--no-gpu"), "host.sysfs", "info")
    assert "read-only" in fact["what"] and "docker" in fact["why"] and "on the host" in fact["fix"]


def test_cgroup_v1(machine):
    machine.mounts["/sys/fs/cgroup"] = ("tmpfs", "rw")
    machine.mounts["/sys/fs/cgroup/memory"] = ("cgroup", "rw,memory")
    machine.mounts["/sys/fs/cgroup/cpu"] = ("cgroup", "rw,cpu")
    machine.write("proc/self/cgroup", "4:memory:/job\n3:cpu:/job\n")
    machine.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4000000000\n")
    machine.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n")
    data = machine.doctor("--no-gpu")
    fact = one(data, "host.cgroup", "limited")
    assert fact["what"] == "cgroup v1" and "pressure" in fact["why"] and "unified_cgroup_hierarchy=1" in fact["fix"]
    assert any("4.0 GB" in f["what"] for f in facts(data, "host.cgroup", "ok"))


def test_cgroup_v2_limit_of_an_ancestor_is_named(machine):
    machine.write("proc/self/cgroup", "0::/slurm/job_7\n")
    machine.write("sys/fs/cgroup/slurm/memory.max", "8000000000\n")
    machine.write("sys/fs/cgroup/slurm/job_7/memory.max", "max\n")
    data = machine.doctor("--no-gpu")
    limit = next(f for f in facts(data, "host.cgroup", "ok") if "memory" in f["what"])
    assert "8.0 GB" in limit["what"] and "/slurm" in limit["why"]


def test_pid_namespace_with_a_gpu_limits_own_memory(machine):
    machine.gpu()
    machine.namespace(4026532999)
    fact = one(machine.doctor("--no-gpu"), "host.pid_namespace", "limited")
    assert "can't be named" in fact["what"] and "--pid=host" in fact["fix"]


def test_hidepid(machine):
    machine.mounts["/proc"] = ("proc", "rw,hidepid=2")
    fact = one(machine.doctor("--no-gpu"), "host.proc", "limited")
    assert "hidepid=2" in fact["why"] and "remount" in fact["fix"]


def test_energy_that_only_root_may_read(machine):
    machine.write("sys/class/powercap/intel-rapl:0/energy_uj", "1\n")
    (machine.root / "sys/class/powercap/intel-rapl:0/energy_uj").chmod(0)
    data = machine.doctor("--no-gpu")
    if os.geteuid() == 0:  # root reads it all the same
        assert one(data, "host.energy", "ok")
    else:
        assert "chmod a+r" in one(data, "host.energy", "limited")["fix"]


def test_frameworks_are_found_without_importing_them(machine):
    machine.write("env/bin/python3", "#!/bin/sh\ntouch imported\n")
    (machine.root / "env/bin/python3").chmod(0o755)
    machine.write("env/pyvenv.cfg", "")
    machine.write("env/lib/python3.11/site-packages/torch-2.3.0.dist-info/METADATA", "")
    machine.write("env/lib/python3.11/site-packages/paddlepaddle_gpu-3.0.0.dist-info/METADATA", "")
    data = machine.doctor("--no-gpu", PATH="/env/bin")
    assert "paddlepaddle_gpu 3.0.0, torch 2.3.0" in one(data, "recording.python", "ok")["what"]
    assert not list(machine.tool.tmp.rglob("imported"))


def test_a_pyenv_shim_is_followed(machine):
    machine.write("pyenv/shims/python3", "#!/bin/sh\n")
    (machine.root / "pyenv/shims/python3").chmod(0o755)
    machine.write("pyenv/version", "3.11.4\n")
    machine.write("pyenv/versions/3.11.4/lib/python3.11/site-packages/jax-0.4.30.dist-info/METADATA", "")
    data = machine.doctor("--no-gpu", PATH="/pyenv/shims", PYENV_VERSION="")
    assert "jax 0.4.30" in one(data, "recording.python", "ok")["what"]


def test_launcher_facts(machine):
    said = one(machine.doctor("--no-gpu", SLURM_JOB_ID="4711"), "recording.launcher", "info")["what"]
    assert "Slurm job 4711" in said


def test_a_folder_that_cannot_be_written(machine):
    fact = one(machine.doctor("--no-gpu", "--dir", "/proc/none/runs"), "recording.folder", "fault")
    assert "--dir" in fact["fix"]


def test_costs_and_values_of_every_call_and_source(machine):
    machine.gpu()
    machine.library(latency_us={"nvmlDeviceGetTotalEnergyConsumption": 3000},
                    devices={"name": "NVIDIA H200", "values": {**MEMORY, "energy_mj": {"start": 1, "per_s": 300000}}})
    data = machine.doctor()
    calls = {c["call"]: c for c in data["nvml"]["calls"]}
    assert calls["nvmlDeviceGetTotalEnergyConsumption"]["cost_us"] >= 3000
    assert calls["nvmlDeviceGetUtilizationRates"]["cost_us"] < 1000
    assert calls["nvmlDeviceGetFanSpeed"]["code"] == 3 and calls["nvmlDeviceGetFanSpeed"]["error"]
    energy = next(s for s in data["sources"] if s["name"] == "gpu.energy")
    assert energy["cost_us"] >= 3000 and energy["reads"] >= 3
    used = next(m for s in data["sources"] for m in s["metrics"] if m["field"] == "memory_used_bytes" and m["scope"] == "gpu")
    assert used["measured"] and used["value"] == MEMORY["mem_used"]


def test_on_this_machine_every_metric_is_measured_or_has_its_reason(tool):
    done = tool.call("doctor", "--json")
    answer = json.loads(done.stdout)
    assert errors(answer, SCHEMA) == []
    metrics = [m for s in answer["data"]["sources"] for m in s["metrics"]]
    assert len(metrics) > 60
    for metric in metrics:
        assert metric["measured"] == (metric["value"] is not None)
        assert metric["measured"] or metric["reason"], metric
    host = {s["name"]: s for s in answer["data"]["sources"]}["host.cpu"]
    assert host["cost_us"] > 0 and any(m["measured"] for m in host["metrics"])
    assert 0 < answer["data"]["cost_ratio"]["host"] < 0.5


def test_text_is_readable_and_leaves_nothing_behind(tool):
    env = tool.env()
    before = {p for p in tool.tmp.rglob("*") if p.name != "epochmeter"}
    done = tool.call("doctor", "--no-gpu", env=env)
    assert done.returncode in (0, 1) and done.stderr == b""
    text = done.stdout.decode()
    assert text.startswith("epochmeter doctor: ") and "Measured here" in text and "host.cpu" in text
    assert {p for p in tool.tmp.rglob("*") if p.name != "epochmeter"} == before
    assert "可以测量" in tool.call("doctor", "--no-gpu", "--lang", "zh").stdout.decode()


def test_text_names_each_metric_once_and_folds_what_has_one_reason(tool):
    env = tool.env(EPOCHMETER_NVML_LIBRARY="/nonexistent/libnvidia-ml.so.1")
    text = tool.call("doctor", env=env).stdout.decode()
    absent = text[text.index("Not measured"):]
    gpu = [line for line in absent.splitlines() if "gpu." in line]
    assert gpu and len(gpu) <= 4, gpu
    names = [word.strip(",") for word in absent.split() if word.startswith(("gpu.", "host.", "cgroup."))]
    assert len(names) == len(set(names))
    assert "recorder.self" in text and text.count("recorder.self") == 1 and text.count("sampler.self") <= 1


def test_a_process_that_is_not_there_is_all_that_is_said(tool):
    began = time.monotonic()
    done = tool.call("doctor", "4194303", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and errors(answer, SCHEMA) == []
    assert [f["check"] for f in answer["data"]["checks"]] == ["process"] and answer["data"]["sources"] == []
    assert time.monotonic() - began < 1, "nothing was read"
    text = tool.call("doctor", "4194303").stdout.decode()
    assert "there is no process 4194303" in text and "nothing else was looked at" in text and "Measured" not in text


def test_one_process(tool):
    sleeper = subprocess.Popen(["sleep", "60"], env={"CUDA_VISIBLE_DEVICES": "0,3", "PATH": os.environ["PATH"]})
    try:
        data = json.loads(tool.call("doctor", "--no-gpu", "--json", sleeper.pid).stdout)["data"]
        said = " ".join(f["what"] for f in facts(data, "process"))
        assert data["pid"] == sleeper.pid and "attach to process" in said
        assert 'CUDA_VISIBLE_DEVICES is "0,3"' in said and "epochs and steps would not be known" in said
    finally:
        sleeper.kill()
        sleeper.wait()
    done = tool.call("doctor", "--no-gpu", "--json", sleeper.pid)
    assert done.returncode == 1
    assert "no process" in one(json.loads(done.stdout)["data"], "process", "fault")["what"]
    assert tool.call("doctor", "self").returncode == 2
