# SPDX-License-Identifier: Apache-2.0
"""Asks a CUDA runtime that the training has already loaded for a GPU's PCI address."""

from __future__ import annotations

import ctypes
import os
from typing import Optional

_RTLD_NOLOAD = 4


def _loaded_path() -> Optional[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            # 7f0000000000-7f0000001000 r-xp 00000000 08:01 4711    /usr/lib/libcudart.so.12
            path = line.rstrip("\n").partition("/")[2]
            if path and os.path.basename(path).startswith("libcudart.so"):
                return "/" + path
    return None


def pci_bus_id(index: int) -> Optional[str]:
    """PCI address of the runtime's device `index`, lower case; None when no runtime is loaded.

    cudaDeviceGetPCIBusId creates no context, and RTLD_NOLOAD makes sure that nothing gets loaded.
    """
    path = _loaded_path()
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
