# SPDX-License-Identifier: Apache-2.0
"""Reads TensorFlow's allocator of the GPU in use. Nothing here initialises a device."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional

from epochmeter._frameworks import cudart


def _context() -> Any:
    """TensorFlow's eager context once the training has initialised its devices, else None."""
    module: Any = sys.modules.get("tensorflow.python.eager.context")
    context = getattr(module, "_context", None)
    return context if getattr(context, "_initialized", False) else None


def _devices() -> List[str]:
    """Names of the GPUs that the context has opened, like "GPU:0"."""
    context = _context()
    logical = getattr(context, "_logical_devices", None) or []
    return ["GPU:" + str(d.name).rpartition(":")[2] for d in logical if d.device_type == "GPU"]


def memory() -> Optional[Dict[str, Any]]:
    """Of the first GPU; TensorFlow tells what is in use and its peak, not what it has reserved."""
    devices = _devices()
    if not devices:
        return None
    found = _context().get_memory_info(devices[0])
    values = {"framework": "tensorflow", "device": devices[0].lower()}
    return {
        **values,
        "allocated_bytes": int(found["current"]),
        "max_allocated_bytes": int(found["peak"]),
    }


def gpus() -> Optional[List[Dict[str, Any]]]:
    found: List[Dict[str, Any]] = []
    for name in _devices():
        index = int(name.rpartition(":")[2])
        address = cudart.pci_bus_id(index)
        found.append({"index": index} if address is None else {"index": index, "pci_bus_id": address})
    return found or None


def on_device(value: Any) -> bool:
    """True on an accelerator, and for what has no value at all yet (a symbolic tensor)."""
    device = getattr(value, "device", None)
    return isinstance(device, str) and "CPU" not in device
