# SPDX-License-Identifier: Apache-2.0
"""Captures become scripts, and the library shows what the capture says."""
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import from_capture  # noqa: E402  (needs the path above)
import smi_text  # noqa: E402

CAPTURES = HERE.parent / "fixtures" / "nvml_captures"
NOT_SUPPORTED, NO_SUCH, LOST = 3, 6, 15


def script_of(name, load_at_s=5.0):
    return from_capture.convert(CAPTURES / name, load_at_s)


def read_device(nvml, index):
    """Everything the tests look at, by the calls that any client makes."""
    u32, out = ctypes.c_uint, {}
    handle = ctypes.c_void_p()
    if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
        return None
    for key, call in {"pstate": "nvmlDeviceGetPerformanceState",
                      "pcie_gen": "nvmlDeviceGetCurrPcieLinkGeneration",
                      "power_mw": "nvmlDeviceGetPowerUsage", "minor": "nvmlDeviceGetMinorNumber",
                      "fan": "nvmlDeviceGetFanSpeed",
                      "mig_slots": "nvmlDeviceGetMaxMigDeviceCount"}.items():
        value = u32()
        code = getattr(nvml, call)(handle, ctypes.byref(value))
        out[key] = value.value if code == 0 else {"code": code}
    use = (u32 * 2)()
    code = nvml.nvmlDeviceGetUtilizationRates(handle, use)
    out["util_gpu"] = use[0] if code == 0 else {"code": code}
    mask = ctypes.c_ulonglong()
    nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle, ctypes.byref(mask))
    out["reasons"] = mask.value
    memory = (ctypes.c_ulonglong * 3)()
    nvml.nvmlDeviceGetMemoryInfo(handle, memory)
    out["memory_total"], out["memory_used_v1"] = memory[0], memory[2]
    text = ctypes.create_string_buffer(96)
    nvml.nvmlDeviceGetUUID(handle, text, 96)
    out["uuid"] = text.value.decode()
    out["mig"] = []
    for slot in range(3):
        part = ctypes.c_void_p()
        code = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot, ctypes.byref(part))
        if code == 0:
            nvml.nvmlDeviceGetUUID(part, text, 96)
            nvml.nvmlDeviceGetMemoryInfo(part, memory)
            out["mig"].append([text.value.decode(), memory[0], memory[2]])
        else:
            out["mig"].append(code)
    return out


def played(script, tmp_path, at_s=0.0):
    """What the library shows of a script, read in a process of its own."""
    build = os.environ.get("EPOCHMETER_BUILD_DIR", str(HERE.parents[1] / "build" / "dev"))
    library = pathlib.Path(build) / "nvml-replay" / "libnvidia-ml.so.1"
    if not library.exists():
        pytest.skip("no replay library at %s; build it or set EPOCHMETER_BUILD_DIR" % library)
    path = tmp_path / "script.json"
    path.write_text(json.dumps(script))
    code = ("import ctypes, json, sys; sys.path.insert(0, %r); import test_from_capture as t\n"
            "nvml = ctypes.CDLL(%r)\n"
            "assert nvml.nvmlInit_v2() == 0\n"
            "count = ctypes.c_uint(); nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))\n"
            "print(json.dumps([t.read_device(nvml, i) for i in range(count.value)]))\n"
            % (str(HERE), str(library)))
    start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - int(at_s * 1e9)
    env = {**os.environ, "EPOCHMETER_REPLAY": str(path), "EPOCHMETER_REPLAY_T0_NS": str(start_ns)}
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_mig_capture_gives_instances_with_their_holes_and_no_utilisation(tmp_path):
    script = script_of("mig_board.txt")
    assert script["driver"] == "550.12.34"
    gpu = played(script, tmp_path)[0]
    assert gpu["util_gpu"] == {"code": NOT_SUPPORTED}
    assert gpu["uuid"] == "GPU-11111111-2222-3333-4444-555555555555"
    assert gpu["power_mw"] == 90060
    assert gpu["minor"] == 3
    assert gpu["memory_used_v1"] == 900 * 2**20
    assert gpu["mig"] == [
        ["MIG-aaaaaaaa-0000-0000-0000-000000000001", 20000 * 2**20, 100 * 2**20], NO_SUCH,
        ["MIG-aaaaaaaa-0000-0000-0000-000000000002", 40000 * 2**20, 200 * 2**20]]
    device = script["devices"][0]
    assert [(p["pid"], p["gi"], p["ci"]) for p in device["processes"]] == [(700, 3, 0), (701, 4, 1)]
    assert device["values"]["tlimit_slowdown_c"] == -2
    assert device["mig"]["instances"][0]["values"]["attribute_sm_count"] == 30


def test_capture_with_load_changes_when_the_load_comes(tmp_path):
    script = script_of("idle_and_load.txt", load_at_s=10)
    idle = played(script, tmp_path, at_s=1)[0]
    load = played(script, tmp_path, at_s=11)[0]
    assert (idle["util_gpu"], load["util_gpu"]) == (0, 98)
    assert (idle["pstate"], load["pstate"]) == (8, 0)
    assert (idle["reasons"], load["reasons"]) == (0x1, 0x4 | 0x8 | 0x40)
    assert load["memory_used_v1"] == (32362 + 616) * 2**20
    assert idle["fan"] == {"code": NOT_SUPPORTED}
    assert idle["pcie_gen"] == 1
    assert load["pcie_gen"] == {"code": NOT_SUPPORTED}, "the load part does not say"
    device = script["devices"][0]
    assert device["process_utilization"] == [{"pid": 4100, "sm": 97, "mem": 41, "from_s": 10}]
    assert device["processes"] == [
        {"pid": 4100, "memory": 28234 * 2**20, "kind": "compute", "from_s": 10}]
    assert device["values"]["ecc_corrected_volatile"] == [[0, 5], [10, None]]
    assert device["values"]["ecc_uncorrected_volatile"] == [[0, 10], [10, None]]
    assert device["values"]["remapped_pending"] == [[0, 1], [10, None]]
    assert device["values"]["clocks_supported_reasons"] == [[0, 0x1FF], [10, None]]
    assert device["values"]["compute_capability"] == [[0, 90], [10, None]]
    assert device["values"]["perf_policy_power_ns"] == [[0, 12000], [10, None]]


def test_profile_gives_each_device_its_own_values_and_failures(tmp_path):
    script = script_of("two_boards.yaml")
    first, second = played(script, tmp_path, at_s=1)
    assert first["uuid"] == "GPU-12345678-0000-0000-0000-000000000000"
    assert first["memory_total"] == 51539607552
    assert first["reasons"] == 0x1 | 0x40
    assert first["util_gpu"] == 87, "first half of a burst"
    assert second is None or second["uuid"] == "", "lost after three calls"
    values = script["devices"][1]["values"]
    assert values["nvlink_links"] == 2 and values["compute_capability"] == 89
    assert script["faults"] == [{"function": "*", "device": 1, "after": 3, "return": LOST}]
    assert script["devices"][0]["processes"] == [
        {"pid": 900, "memory": 300 * 2**20, "kind": "compute"}]


def test_command_writes_a_script_or_says_what_is_wrong(tmp_path, capsys):
    out = tmp_path / "out.json"
    assert from_capture.main([str(CAPTURES / "mig_board.txt"), "-o", str(out)]) == 0
    assert json.loads(out.read_text())["name"] == "mig_board"
    (tmp_path / "other.txt").write_text("nothing of use\n")
    assert from_capture.main([str(tmp_path / "other.txt")]) == 1
    assert "no GPU found" in capsys.readouterr().err
    (tmp_path / "other.yaml").write_text("a: 1\n")
    assert from_capture.main([str(tmp_path / "other.yaml")]) == 1
    assert "no mocknvml profile" in capsys.readouterr().err


def exported(branch):
    """What symbols.txt gives to a driver of this branch."""
    lines = [line.split() for line in (HERE / "symbols.txt").read_text().splitlines()
             if line.startswith("nvml")]
    return {name for name, since in lines if int(since) <= branch}, {name for name, _ in lines}


@pytest.mark.parametrize("folder", [os.environ.get("EPOCHMETER_CAPTURES", "")])
def test_exports_agree_with_the_real_libraries_of_the_captures(folder):
    compared = 0
    for path in sorted(pathlib.Path(folder).glob("linux*.txt")) if folder else []:
        real = smi_text.sections(path.read_text()).get("capabilities :: nvml-symbols", "").split()
        driver = re.search(r"__(\d+)\.", path.name)
        if real and driver:
            ours, known = exported(int(driver.group(1)))
            assert ours == known & set(real), path.name
            compared += 1
    if compared == 0:
        pytest.skip("EPOCHMETER_CAPTURES names no folder with captures that list symbols")


@pytest.mark.parametrize("folder", [os.environ.get("EPOCHMETER_CAPTURES", "")])
def test_captures_that_were_given_can_be_played(folder, tmp_path):
    if not folder:
        pytest.skip("EPOCHMETER_CAPTURES names no folder with public captures")
    paths = sorted(path for path in pathlib.Path(folder).iterdir()
                   if path.suffix in (".txt", ".yaml") and not path.name.endswith(".mig.yaml"))
    assert paths, "no capture in " + folder
    for path in paths:
        script = from_capture.convert(path, 5.0)
        assert all(played(script, tmp_path)), path.name
