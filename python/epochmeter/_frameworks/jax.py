# SPDX-License-Identifier: Apache-2.0
"""Reads JAX's allocator, device identity and ranks. Nothing here initialises a backend.

Asking JAX for its devices makes it choose a backend, and before jax.distributed.initialize() that
breaks a training of several processes: everything here waits until the training has made it do so.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Tuple

from epochmeter._frameworks import cudart

# JAX's names differ by backend and version; "pool" is what was taken from the device.
_NUMBERS = (
    ("allocated_bytes", ("bytes_in_use",)),
    ("reserved_bytes", ("pool_bytes", "bytes_reserved")),
    ("max_allocated_bytes", ("peak_bytes_in_use",)),
    ("max_reserved_bytes", ("peak_pool_bytes", "peak_bytes_reserved")),
)


def _jax() -> Any:
    """jax when a backend of it is up, else None."""
    bridge: Any = sys.modules.get("jax._src.xla_bridge")
    if not getattr(bridge, "_backends", None):
        return None
    return sys.modules.get("jax")


def _gpus_in_use() -> List[Any]:
    jax = _jax()
    if jax is None:
        return []
    return [device for device in jax.local_devices() if device.platform in ("gpu", "cuda", "rocm")]


def _index(device: Any) -> int:
    """Number on this host; `id` counts over all hosts."""
    local = getattr(device, "local_hardware_id", None)
    return int(device.id if local is None else local)


def memory() -> Optional[List[Dict[str, Any]]]:
    """One entry a device in use."""
    found: List[Dict[str, Any]] = []
    for device in _gpus_in_use():
        stats = device.memory_stats()
        if not stats:
            continue
        entry: Dict[str, Any] = {"framework": "jax", "device": f"gpu:{_index(device)}"}
        for ours, theirs in _NUMBERS:
            # A name that is there with 0 is one that this backend does not count, but for the
            # first: nothing allocated is a state a training may be in.
            values = [stats[name] for name in theirs if isinstance(stats.get(name), int)]
            value = next((v for v in values if v or ours == "allocated_bytes"), None)
            if value is not None:
                entry[ours] = value
        found.append(entry)
    return found or None


def gpus() -> Optional[List[Dict[str, Any]]]:
    found = [{"index": _index(d), **cudart.identity(_index(d))} for d in _gpus_in_use()]
    return found or None


def ranks() -> Optional[Tuple[int, int]]:
    """Rank and number of processes, once there is more than one."""
    jax = _jax()
    if jax is None or jax.process_count() < 2:
        return None
    return int(jax.process_index()), int(jax.process_count())


def on_device(value: Any) -> bool:
    devices = getattr(value, "devices", None)
    return callable(devices) and any(device.platform != "cpu" for device in devices())
