# SPDX-License-Identifier: Apache-2.0
"""What keeps our own failures away from the training: they are counted, said once, and no more."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Optional, Set, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

# After this many faults of our own the client stops calling itself, and after so many of them in
# one guarded function that function: a hook that fails at each step costs itself alone.
MAX_FAULTS = 40
MAX_FAULTS_OF_ONE = 5

_said: Set[str] = set()
_faults = 0


def say_once(key: str, text: str) -> None:
    """Writes one line to stderr the first time `key` comes by; a broken stderr is no matter."""
    if key in _said:
        return
    _said.add(key)
    try:
        sys.stderr.write("epochmeter: " + text + "\n")
    except Exception:
        pass


def fault(where: str, error: BaseException) -> None:
    """Counts a fault of ours at `where` and says the first of each place."""
    global _faults
    _faults += 1
    say_once(
        "fault:" + where,
        f"{where} failed ({type(error).__name__}: {error}); the training goes on without it",
    )


def faults() -> int:
    return _faults


def broken() -> bool:
    """True once so much went wrong that we had better do nothing at all."""
    return _faults >= MAX_FAULTS


def guarded(function: Function) -> Function:
    """Makes `function` return None instead of raising; KeyboardInterrupt and exits pass."""

    left = MAX_FAULTS_OF_ONE

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Optional[Any]:
        nonlocal left
        if not left or _faults >= MAX_FAULTS:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:
            left -= 1
            fault(function.__qualname__, error)
            return None

    return cast(Function, wrapper)
