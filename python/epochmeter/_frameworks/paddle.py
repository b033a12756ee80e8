# SPDX-License-Identifier: Apache-2.0
"""Reads PaddlePaddle's allocator and device identity. Nothing here initialises a device."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional

from epochmeter._frameworks import cudart


def _gpu() -> Optional[int]:
    """Number of the GPU this process computes on; None on a CPU or while Paddle has not decided.

    Reads the variable that Paddle decides into: asking Paddle for the place would make it decide.
    """
    framework: Any = sys.modules.get("paddle.base.framework") or sys.modules.get(
        "paddle.fluid.framework"
    )
    place = getattr(framework, "_global_expected_place_", None)
    if place is None or type(place).__name__ != "CUDAPlace":
        return None
    return int(place.get_device_id())


def memory() -> Optional[Dict[str, Any]]:
    index = _gpu()
    # Not through `paddle.device`: an attribute look-up there could import what the user did not.
    cuda: Any = sys.modules.get("paddle.device.cuda")
    if index is None or cuda is None:
        return None
    found: Dict[str, Any] = {"framework": "paddle", "device": f"gpu:{index}"}
    for ours, theirs in (
        ("allocated_bytes", "memory_allocated"),
        ("reserved_bytes", "memory_reserved"),
        ("max_allocated_bytes", "max_memory_allocated"),
        ("max_reserved_bytes", "max_memory_reserved"),
    ):
        read = getattr(cuda, theirs, None)
        if read is not None:
            found[ours] = int(read(index))
    return found


def gpus() -> Optional[List[Dict[str, Any]]]:
    index = _gpu()
    if index is None:
        return None
    found: Dict[str, Any] = {"index": index}
    address = cudart.pci_bus_id(index)
    if address is not None:
        found["pci_bus_id"] = address
    return [found]


def on_device(value: Any) -> bool:
    place = getattr(value, "place", None)
    return place is not None and not place.is_cpu_place()
