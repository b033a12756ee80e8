# SPDX-License-Identifier: Apache-2.0
"""Reads PaddlePaddle's allocator and device identity. Nothing here initialises a device."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Tuple

from epochmeter._frameworks import cudart


def _device() -> Tuple[str, int]:
    """Kind ("gpu", "xpu", "npu" ...) and number of the device this process computes on.

    ("", 0) on a CPU or while Paddle has not decided. Reads the variable that Paddle decides into:
    asking Paddle for the place would make it decide.
    """
    framework: Any = sys.modules.get("paddle.base.framework") or sys.modules.get(
        "paddle.fluid.framework"
    )
    place: Any = getattr(framework, "_global_expected_place_", None)
    kind = {"CUDAPlace": "gpu", "XPUPlace": "xpu"}.get(type(place).__name__, "")
    if type(place).__name__ == "CustomPlace":
        kind = str(place.get_device_type())
    return (kind, int(place.get_device_id())) if kind else ("", 0)


def memory() -> Optional[Dict[str, Any]]:
    kind, index = _device()
    # Not through `paddle.device`: an attribute look-up there could import what the user did not.
    name = {"gpu": "cuda", "xpu": "xpu"}.get(kind, "custom_device")
    counters: Any = sys.modules.get("paddle.device." + name)
    if not kind or counters is None:
        return None
    device: Any = f"{kind}:{index}" if name == "custom_device" else index
    found: Dict[str, Any] = {"framework": "paddle", "device": f"{kind}:{index}"}
    for ours, theirs in (
        ("allocated_bytes", "memory_allocated"),
        ("reserved_bytes", "memory_reserved"),
        ("max_allocated_bytes", "max_memory_allocated"),
        ("max_reserved_bytes", "max_memory_reserved"),
    ):
        read = getattr(counters, theirs, None)
        if read is not None:
            found[ours] = int(read(device))
    return found


def gpus() -> Optional[List[Dict[str, Any]]]:
    kind, index = _device()
    if kind != "gpu":
        return None
    found: Dict[str, Any] = {"index": index}
    address = cudart.pci_bus_id(index)
    if address is not None:
        found["pci_bus_id"] = address
    return [found]


def on_device(value: Any) -> bool:
    place = getattr(value, "place", None)
    return place is not None and not place.is_cpu_place()
