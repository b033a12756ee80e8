# SPDX-License-Identifier: Apache-2.0
"""What we can learn from the frameworks that the training itself has imported.

A reader is a module of this folder with the functions of `Reader`. It is loaded only once its
framework is in sys.modules, never imports a framework itself, and never initialises a device.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from epochmeter import _quiet

# Name in sys.modules -> our file. The first with a device in use wins.
NAMES: Tuple[str, ...] = ("paddle", "torch", "tensorflow", "jax")

# Package that a framework's tensors come from -> the framework, where the names differ.
_HOMES = {"jaxlib": "jax"}

# How long a function that failed is left alone.
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0

Memory = Dict[str, Any]
Gpus = List[Dict[str, Any]]


class Reader:
    """One framework's reader; a function that fails is left alone for a while, longer each time."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        self._module: Any = importlib.import_module(f"epochmeter._frameworks.{framework}")
        # Function that failed -> when to try again, and the pause after that.
        self._resting: Dict[str, Tuple[float, float]] = {}

    def version(self) -> Optional[str]:
        module = sys.modules.get(self.framework)
        found = getattr(module, "__version__", None)
        return str(found) if found is not None else None

    def memory(self) -> List[Memory]:
        """The allocator's counters now, an entry a device; none while there are none to read."""
        found = self._call("memory")
        if isinstance(found, dict):
            return [found]
        return found if isinstance(found, list) else []

    def ranks(self) -> Optional[Tuple[int, int]]:
        """Rank and world as the framework's own communication has them; None without any."""
        found = self._call("ranks")
        return found if isinstance(found, tuple) else None

    def gpus(self) -> Optional[Gpus]:
        """The GPUs in use, None while this is not known."""
        found = self._call("gpus")
        return found if isinstance(found, list) and found else None

    def on_device(self, value: Any) -> bool:
        """True for a tensor whose reading would wait for a device."""
        return self._call("on_device", value) is True

    def _call(self, what: str, *arguments: Any) -> Any:
        again, pause = self._resting.get(what, (0.0, FIRST_PAUSE_S))
        if again and time.monotonic() < again:
            return None
        try:
            function = getattr(self._module, what, None)
            return None if function is None else function(*arguments)
        except Exception as error:
            self._resting[what] = (time.monotonic() + pause, min(2 * pause, LONGEST_PAUSE_S))
            if not again:
                _quiet.fault(f"reading {what} of {self.framework}", error)
            return None


_readers: Dict[str, Reader] = {}


def loaded() -> List[Reader]:
    """Readers of the frameworks imported so far. Half-imported ones are left for later."""
    found: List[Reader] = []
    for name in NAMES:
        module = sys.modules.get(name)
        if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
            continue
        if name not in _readers:
            _readers[name] = Reader(name)
        found.append(_readers[name])
    return found


def versions() -> Dict[str, str]:
    """Framework name -> version, of those that are imported."""
    return {r.framework: v for r in loaded() for v in [r.version()] if v is not None}


def ranks() -> Optional[Tuple[str, int, int]]:
    """Framework, rank and world, from the first framework whose ranks are connected."""
    for reader in loaded():
        found = reader.ranks()
        if found is not None:
            return (reader.framework, *found)
    return None


# Type of a value -> the reader of the framework that it belongs to, None for no framework's.
_by_type: Dict[type, Optional[Reader]] = {}


def _reader_of(kind: type) -> Optional[Reader]:
    root = kind.__module__.partition(".")[0]
    root = _HOMES.get(root, root)
    found = next((reader for reader in loaded() if reader.framework == root), None)
    # Types can be made at run time without end; and a framework half imported is known later.
    if len(_by_type) < 64 and (found is not None or root not in NAMES):
        _by_type[kind] = found
    return found


def on_device(value: Any) -> bool:
    """Whether `value` is a tensor that lives on a device."""
    kind = type(value)
    reader = _by_type[kind] if kind in _by_type else _reader_of(kind)
    return reader is not None and reader.on_device(value)


@_quiet.guarded
def _taken(hook: str) -> Tuple[int, int]:
    module: Any = sys.modules.get("epochmeter._frameworks." + hook)
    found: Tuple[int, int] = module.take_waiting() if module is not None else (0, 0)
    return found


def take_waiting(hook: str) -> Tuple[int, int]:
    """Nanoseconds inside loaders and batches from them since the last call, as `hook` saw them.

    None of either where that hook is not there or fails: who asks can time the wait without it.
    """
    return _taken(hook) or (0, 0)


# What frameworks put before the names of an evaluation's metrics, which are told as an evaluation's.
_EVALUATION = ("val_", "eval_", "test_", "validation_")


def evaluation_name(name: str) -> str:
    """`val_loss` is the loss of an evaluation."""
    for prefix in _EVALUATION:
        if name.startswith(prefix) and name != prefix:
            return name[len(prefix) :]
    return name
