# SPDX-License-Identifier: Apache-2.0
"""Reads the YAML profiles of mocknvml: defaults for all devices, then what each one changes."""
import copy
from typing import Any, Dict, List, Optional

import yaml

WORDS = {"enabled": 1, "disabled": 0, "default": 0, "exclusive_process": 3, "prohibited": 2,
         "none": 0, "passthrough": 1, "vgpu": 2, "kepler": 2, "maxwell": 3, "pascal": 4,
         "volta": 5, "turing": 6, "ampere": 7, "ada": 8, "ada_lovelace": 8, "hopper": 9,
         "blackwell": 10}

PATHS = [
    ("architecture", "architecture"),
    ("memory.total_bytes", "memory_total"),
    ("memory.reserved_bytes", "memory_reserved"),
    ("memory.used_bytes", "mem_used"),
    ("bar1_memory.total_bytes", "bar1_total"),
    ("bar1_memory.used_bytes", "bar1_used"),
    ("pcie.max_link_gen", "pcie_gen_max pcie_gpu_gen_max"),
    ("pcie.current_link_gen", "pcie_gen"),
    ("pcie.max_link_width", "pcie_width_max"),
    ("pcie.current_link_width", "pcie_width"),
    ("pcie.replay_counter", "pcie_replay"),
    ("power.default_limit_mw", "power_default_limit_mw"),
    ("power.enforced_limit_mw",
     "power_limit_mw power_management_limit_mw power_requested_limit_mw"),
    ("power.min_limit_mw", "power_min_limit_mw"),
    ("power.max_limit_mw", "power_max_limit_mw"),
    ("power.current_draw_mw", "power_mw power_average_mw power_instant_mw"),
    ("power.total_energy_consumption_mj", "energy_mj"),
    ("thermal.temperature_gpu_c", "temp_c"),
    ("thermal.temperature_memory_c", "memory_temp_c"),
    ("thermal.shutdown_threshold_c", "temp_shutdown_c"),
    ("thermal.slowdown_threshold_c", "temp_slowdown_c"),
    ("thermal.max_operating_c", "temp_gpu_max_c"),
    ("fan.count", "fans"),
    ("fan.speed_percent", "fan_percent"),
    ("clocks.graphics_current", "graphics_mhz"),
    ("clocks.graphics_max", "max_graphics_mhz"),
    ("clocks.sm_current", "sm_mhz"),
    ("clocks.sm_max", "max_sm_mhz"),
    ("clocks.memory_current", "mem_mhz"),
    ("clocks.memory_max", "max_mem_mhz"),
    ("clocks.video_current", "video_mhz"),
    ("clocks.video_max", "max_video_mhz"),
    ("utilization.gpu", "util_gpu"),
    ("utilization.memory", "util_mem"),
    ("utilization.encoder", "encoder_util"),
    ("utilization.decoder", "decoder_util"),
    ("utilization.jpeg", "jpg_util"),
    ("utilization.ofa", "ofa_util"),
    ("ecc.mode_current", "ecc_mode"),
    ("ecc.mode_pending", "ecc_pending"),
    ("ecc.errors.volatile.single_bit.total", "ecc_corrected_volatile"),
    ("ecc.errors.volatile.double_bit.total", "ecc_uncorrected_volatile"),
    ("ecc.errors.aggregate.single_bit.total", "ecc_corrected_aggregate"),
    ("ecc.errors.aggregate.double_bit.total", "ecc_uncorrected_aggregate"),
    ("retired_pages.single_bit_retirement.count", "retired_pages_sbe"),
    ("retired_pages.double_bit_retirement.count", "retired_pages_dbe"),
    ("retired_pages.pending_retirement", "retired_pages_pending"),
    ("gpm.supported", "gpm_supported"),
    ("remapped_rows.correctable", "remapped_corrected"),
    ("remapped_rows.uncorrectable", "remapped_uncorrected"),
    ("remapped_rows.pending", "remapped_pending"),
    ("remapped_rows.failure_occurred", "remapped_failure"),
    ("persistence_mode", "persistence_mode"),
    ("compute_mode", "compute_mode"),
    ("mig.mode_current", "mig_mode"),
    ("mig.mode_pending", "mig_pending"),
    ("accounting.mode", "accounting_mode"),
    ("virtualization.mode", "virtualization_mode"),
    ("minor_number", "minor"),
]

REASONS = ["gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost",
           "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown",
           "display_clocks_setting"]


def merge(base: Any, over: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(over, dict):
        return copy.deepcopy(over)
    out = dict(base)
    for key, value in over.items():
        out[key] = merge(base[key], value) if key in base else copy.deepcopy(value)
    return out


def at(node: Any, path: str) -> Any:
    for key in path.split("."):
        if not isinstance(node, dict) or key not in node:
            return None
        node = node[key]
    return node


def number(value: Any) -> Optional[float]:
    """None for what is not a number, as "N/A"."""
    if isinstance(value, str):
        return WORDS.get(value.lower())
    if isinstance(value, bool):
        return int(value)
    return value if isinstance(value, (int, float)) else None


def pstate(text: Any) -> Optional[int]:
    name = str(text)
    return int(name[1:]) if name[:1] == "P" and name[1:].isdigit() else None


def dynamic(profile: Dict[str, Any]) -> Dict[str, Any]:
    """Waves in place of the noise of dynamic_metrics: the same levels and the same period."""
    moving = profile.get("dynamic_metrics") or {}
    out: Dict[str, Any] = {}
    use = moving.get("utilization")
    if use:
        period_s = 2.0 * use.get("burst_period_sec", 30)
        shares = {"idle": (0.0, 0.25), "busy": (0.75, 1.0), "burst": (0.125, 0.875)}
        low, high = shares.get(use.get("pattern"), (0.0, 1.0))
        for key, name in (("gpu", "util_gpu"), ("memory", "util_mem")):
            least, most = use.get(key + "_min", 0), use.get(key + "_max", 100)
            span = most - least
            out[name] = {"low": least + low * span, "high": least + high * span,
                         "period_s": period_s}
    for key, name, unit in (("temperature", "temp_c", "c"), ("power", "power_mw", "mw")):
        part = moving.get(key)
        if not part:
            continue
        base, swing = part.get("base_" + unit, 0), part.get("variance_" + unit, 0)
        out[name] = {"low": base - swing, "high": base + swing + part.get("ramp_" + unit, 0),
                     "period_s": part.get("ramp_period_sec", 60)}
    return out


def links(document: Dict[str, Any]) -> Dict[str, float]:
    fabric = document.get("nvlink") or {}
    count = fabric.get("links_per_gpu", 0)
    if not count:
        return {}
    return {"nvlink_links": count, "nvlink_version": fabric.get("version", 4), "nvlink_state": 1,
            "nvlink_speed_mbps": fabric.get("bandwidth_per_link_mbps", 0)}


def values(profile: Dict[str, Any]) -> Dict[str, Any]:
    out: Dict[str, Any] = {}
    for path, names in PATHS:
        value = number(at(profile, path))
        if value is not None:
            out.update({name: value for name in names.split()})
    capability = profile.get("compute_capability")
    if capability:
        out["compute_capability"] = 10 * capability["major"] + capability["minor"]
    state = pstate(profile.get("performance_state"))
    if state is not None:
        out["pstate"] = state
    given = profile.get("clocks_throttle_reasons")
    if given:
        out["clocks_event_reasons"] = sum(1 << bit for bit, name in enumerate(REASONS)
                                          if given.get(name))
    return {**out, **dynamic(profile)}


def failures(profile: Dict[str, Any], index: int, script: Dict[str, Any]) -> Dict[str, Any]:
    """Adds faults and events to the script; gives the values that a failing device shows."""
    failure = profile.get("failure") or {}
    mode = failure.get("mode", "healthy")
    if mode in ("lost", "fallen_off_bus"):
        script.setdefault("faults", []).append(
            {"function": "*", "device": index, "after": failure.get("after_calls", 0),
             "return": 15})
    if mode != "ecc_uncorrectable":
        return {}
    code = (failure.get("xid") or {}).get("code")
    if code is not None:
        script.setdefault("events", []).append({"at_s": 1, "device": index, "data": code})
    count = {"start": 1, "per_s": 1}
    return {"ecc_uncorrected_volatile": count, "ecc_uncorrected_aggregate": count}


def processes(profile: Dict[str, Any]) -> List[Dict[str, Any]]:
    out = []
    for entry in profile.get("processes") or []:
        memory = entry.get("used_memory_bytes", entry.get("used_memory_mib", 0) * 2**20)
        out.append({"pid": entry["pid"], "memory": memory,
                    "kind": "graphics" if entry.get("type") in ("G", "graphics") else "compute"})
    return out


def nvml_bus_id(sysfs: str) -> str:
    """0000:1A:00.0 as NVML prints it, with eight digits of domain."""
    return "0000" + sysfs if sysfs[4:5] == ":" else sysfs


def convert(text: str) -> Dict[str, Any]:
    document = yaml.safe_load(text)
    if not isinstance(document, dict) or "devices" not in document:
        raise ValueError("is no mocknvml profile")
    system = document.get("system") or {}
    script: Dict[str, Any] = {"devices": []}
    for key, name in (("driver_version", "driver"), ("nvml_version", "nvml")):
        if key in system:
            script[name] = str(system[key])
    for index, own in enumerate(document["devices"] or []):
        profile = merge(document.get("device_defaults") or {}, own)
        device: Dict[str, Any] = {
            "name": str(profile.get("name", "unknown")),
            "values": {**values(profile), **links(document)}, "processes": processes(profile)}
        device["values"].update(failures(profile, index, script))
        for key in ("uuid", "serial"):
            if key in profile:
                device[key] = str(profile[key])
        bus_id = at(profile, "pci.bus_id")
        if bus_id:
            device["bus_id"] = nvml_bus_id(str(bus_id))
        if isinstance(at(profile, "pci.device_id"), int):
            device["pci_device_id"] = at(profile, "pci.device_id")
        script["devices"].append(device)
    return script
