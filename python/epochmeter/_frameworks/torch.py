# SPDX-License-Identifier: Apache-2.0
"""Reads PyTorch's caching allocator and device identity. Nothing here initialises CUDA."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional


def _cuda() -> Any:
    """torch.cuda when the training has initialised it, else None."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return cuda


def memory() -> Optional[Dict[str, Any]]:
    cuda = _cuda()
    if cuda is None:
        return None
    device = cuda.current_device()
    # The nested form costs one call; memory_allocated() and its like flatten and sort it each time.
    stats = cuda.memory_stats_as_nested_dict(device)
    if not stats:
        return None
    found: Dict[str, Any] = {"framework": "torch", "device": f"gpu:{device}"}
    for ours, group, value in (
        ("allocated_bytes", "allocated_bytes", "current"),
        ("reserved_bytes", "reserved_bytes", "current"),
        ("max_allocated_bytes", "allocated_bytes", "peak"),
        ("max_reserved_bytes", "reserved_bytes", "peak"),
    ):
        number = stats.get(group, {}).get("all", {}).get(value)
        if isinstance(number, int):
            found[ours] = number
    for ours, theirs in (("alloc_retries", "num_alloc_retries"), ("ooms", "num_ooms")):
        if isinstance(stats.get(theirs), int):
            found[ours] = stats[theirs]
    return found


def gpus() -> Optional[List[Dict[str, Any]]]:
    cuda = _cuda()
    if cuda is None:
        return None
    index = cuda.current_device()
    properties = cuda.get_device_properties(index)
    found: Dict[str, Any] = {"index": index}
    uuid = getattr(properties, "uuid", None)
    if uuid is not None:
        uuid = str(uuid)
        found["uuid"] = uuid if uuid.startswith(("GPU-", "MIG-")) else "GPU-" + uuid
    bus = getattr(properties, "pci_bus_id", None)
    device = getattr(properties, "pci_device_id", None)
    domain = getattr(properties, "pci_domain_id", None)
    if isinstance(bus, int) and isinstance(device, int) and isinstance(domain, int):
        found["pci_bus_id"] = f"{domain:04x}:{bus:02x}:{device:02x}.0"
    return [found]


def on_device(value: Any) -> bool:
    device = getattr(value, "device", None)
    return device is not None and getattr(device, "type", "cpu") != "cpu"
