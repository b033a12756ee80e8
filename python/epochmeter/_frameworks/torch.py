# SPDX-License-Identifier: Apache-2.0
"""Reads PyTorch's caching allocator, device identity and ranks. Nothing here initialises CUDA."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional, Tuple

from epochmeter._frameworks import cudart

# A rank usually sees all GPUs and uses one; the others are looked at each so many readings.
_LOOK_AROUND = 16
_readings = 0
_in_use: List[int] = []


def _cuda() -> Any:
    """torch.cuda when the training has initialised it, else None."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return cuda


def _devices(cuda: Any) -> List[int]:
    """The present device first, then others on which the allocator holds memory."""
    global _readings, _in_use
    present = cuda.current_device()
    if _readings % _LOOK_AROUND == 0:
        others = (index for index in range(cuda.device_count()) if index != present)
        _in_use = [index for index in others if _number(_stats(cuda, index), "reserved_bytes")]
    _readings += 1
    return [present, *(index for index in _in_use if index != present)]


def _stats(cuda: Any, index: int) -> Dict[str, Any]:
    # The nested form costs one call; memory_allocated() and its like flatten and sort it each time.
    found = cuda.memory_stats_as_nested_dict(index)
    return found if isinstance(found, dict) else {}


def _number(stats: Dict[str, Any], group: str, value: str = "current") -> Optional[int]:
    number = stats.get(group, {}).get("all", {}).get(value)
    return number if isinstance(number, int) else None


def _memory_of(cuda: Any, index: int, counts_retries: bool) -> Optional[Dict[str, Any]]:
    stats = _stats(cuda, index)
    if not stats:
        return None
    found: Dict[str, Any] = {"framework": "torch", "device": f"gpu:{index}"}
    for ours, group, value in (
        ("allocated_bytes", "allocated_bytes", "current"),
        ("reserved_bytes", "reserved_bytes", "current"),
        ("max_allocated_bytes", "allocated_bytes", "peak"),
        ("max_reserved_bytes", "reserved_bytes", "peak"),
    ):
        number = _number(stats, group, value)
        if number is not None:
            found[ours] = number
    for ours, theirs in (("alloc_retries", "num_alloc_retries"), ("ooms", "num_ooms")):
        if counts_retries and isinstance(stats.get(theirs), int):
            found[ours] = stats[theirs]
    return found


def memory() -> Optional[List[Dict[str, Any]]]:
    """One entry a device in use."""
    cuda = _cuda()
    if cuda is None:
        return None
    backend = getattr(cuda, "get_allocator_backend", None)
    # The driver's own pools (cudaMallocAsync) leave these counters at 0, which is no count.
    counts_retries = backend is None or backend() == "native"
    found = (_memory_of(cuda, index, counts_retries) for index in _devices(cuda))
    return [entry for entry in found if entry is not None] or None


def _gpu(cuda: Any, index: int) -> Dict[str, Any]:
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
    # Older versions know neither.
    return found if len(found) > 1 else {**cudart.identity(index), **found}


def gpus() -> Optional[List[Dict[str, Any]]]:
    cuda = _cuda()
    if cuda is None:
        return None
    return [_gpu(cuda, index) for index in _devices(cuda)]


def ranks() -> Optional[Tuple[int, int]]:
    """Rank and world of torch.distributed, which knows them also where no launcher told."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def on_device(value: Any) -> bool:
    device = getattr(value, "device", None)
    return device is not None and getattr(device, "type", "cpu") != "cpu"
