# SPDX-License-Identifier: Apache-2.0
"""Keeps torch.compile off our own functions, which cost it graphs and numbers of frames.

Where a compiled function of the training breaks, what it calls next is looked at frame by frame,
and our hooks are among that. Each code object is marked once; the mark costs a call nothing.
PyTorch's own way, torch.compiler.disable, would import the compiler and cost each call.
"""

from __future__ import annotations

import importlib
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any, Callable, Iterator, Optional

# Parts that call nothing of the training's: what they call is none of the compiler's business
# either. The others call the training's own functions, which it must still see.
_OURS_TO_THE_BOTTOM = (
    "_frameworks", "_frameworks.torch", "_pass", "_plain", "_protocol", "_recorder", "_redact",
    "_sender",
)  # fmt: skip

Skip = Callable[[CodeType, bool], None]


def _skipper(torch: Any) -> Optional[Skip]:
    """Marks a code object, and at will all that it calls; None where PyTorch has no such way."""
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        skip, default = frames._FrameAction.SKIP, frames._FrameAction.DEFAULT
        strategies = [frames._FrameExecStrategy(skip, then) for then in (default, skip)]
        return lambda code, deep: frames.set_code_exec_strategy(code, strategies[deep])
    if hasattr(frames, "skip_code"):
        return lambda code, deep: frames.skip_code(code)
    return None


def _inside(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _inside(constant)


def _codes(owner: Any, home: str) -> Iterator[CodeType]:
    """Of the functions that module `home` defines, with those inside them."""
    for value in list(vars(owner).values()):
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if getattr(value, "__module__", None) != home:
            continue
        if isinstance(value, FunctionType):
            # What a decorator put around it is another module's.
            yield from _inside(getattr(value, "__wrapped__", value).__code__)
        elif isinstance(value, type) and value is not owner:
            yield from _codes(value, home)


def keep_off(torch: Any) -> None:
    """Marks all parts of ours that are loaded."""
    skip = _skipper(torch)
    if skip is None:
        return
    # It would be loaded at the first reading of memory, in the midst of a step.
    importlib.import_module("epochmeter._frameworks.torch")
    for name, module in list(sys.modules.items()):
        if name.startswith("epochmeter.") and isinstance(module, ModuleType):
            deep = name.partition(".")[2] in _OURS_TO_THE_BOTTOM
            for code in _codes(module, name):
                skip(code, deep)
