# SPDX-License-Identifier: Apache-2.0
"""Asks the CUDA libraries that the training has already loaded which GPU it uses."""

from __future__ import annotations

import ctypes
import os
import uuid
from typing import Any, Dict, Optional

_RTLD_NOLOAD = 4


def _loaded_path(name: str) -> Optional[str]:
    """Path of a library in this process whose file name begins with `name`."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            # 7f0000000000-7f0000001000 r-xp 00000000 08:01 4711    /usr/lib/libcudart.so.12
            path = line.rstrip("\n").partition("/")[2]
            if path and os.path.basename(path).startswith(name):
                return "/" + path
    return None


def pci_bus_id(index: int) -> Optional[str]:
    """PCI address of the runtime's device `index`, lower case; None when no runtime is loaded.

    cudaDeviceGetPCIBusId creates no context, and RTLD_NOLOAD makes sure that nothing gets loaded.
    """
    path = _loaded_path("libcudart.so")
    if path is None:
        return None
    try:
        runtime = ctypes.CDLL(path, mode=os.RTLD_NOW | _RTLD_NOLOAD)
        call = runtime.cudaDeviceGetPCIBusId
    except (OSError, AttributeError):
        return None
    call.restype = ctypes.c_int
    call.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int]
    buffer = ctypes.create_string_buffer(32)
    if call(buffer, len(buffer), index) != 0:
        return None
    return buffer.value.decode("ascii").lower()


def identity(index: int) -> Dict[str, Any]:
    """`uuid` and `pci_bus_id` of the CUDA device `index` of this process, those that can be had.

    Both are questions that need no context. A driver that the training has not initialised yet
    answers none.
    """
    found: Dict[str, Any] = {}
    path = _loaded_path("libcuda.so")
    if path is not None:
        driver = ctypes.CDLL(path, mode=os.RTLD_NOW | _RTLD_NOLOAD)
        device = ctypes.c_int()
        if driver.cuDeviceGet(ctypes.byref(device), index) == 0:
            raw = ctypes.create_string_buffer(16)
            ask = getattr(driver, "cuDeviceGetUuid_v2", None) or driver.cuDeviceGetUuid
            if ask(raw, device) == 0:
                found["uuid"] = "GPU-" + str(uuid.UUID(bytes=raw.raw))
            text = ctypes.create_string_buffer(32)
            if driver.cuDeviceGetPCIBusId(text, len(text), device) == 0:
                found["pci_bus_id"] = text.value.decode("ascii").lower()
    if "pci_bus_id" not in found:
        address = pci_bus_id(index)
        if address is not None:
            found["pci_bus_id"] = address
    return found
