# SPDX-License-Identifier: Apache-2.0
"""The one recorder of this process: made on demand, never inherited over a fork."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from types import TracebackType
from typing import Any, Callable, Optional, Type

from epochmeter import _quiet, _switch
from epochmeter._recorder import Recorder
from epochmeter._version import VERSION

_recorder: Optional[Recorder] = None
_stopped = False
_watching_forks = False
_previous_hook: Optional[Callable[..., Any]] = None

# Held while the recorder is made: threads that train at once share one. Re-entrant, for a finaliser
# or a signal handler that joins meanwhile; it finds no recorder.
_making = threading.RLock()
_is_made = False

# How long the end of the process waits for a recorder that lives and is slow to take what is left.
EXIT_PATIENCE_S = 0.5


def current() -> Optional[Recorder]:
    """The recorder of this very process, None when there is none (as in a forked data worker)."""
    if _recorder is None or not _recorder.alive or _quiet.broken():
        return None
    return _recorder


def near() -> Optional[Recorder]:
    """For calls by the way: joins too, but not in a forked child that trains nothing."""
    if _recorder is None:
        return join()
    return _recorder if _recorder.alive else None


@_quiet.guarded
def join(again: bool = False) -> Optional[Recorder]:
    """Like current(), but joins the recording that EPOCHMETER_SOCKET names when there is one.

    `again` joins also after stop(). A forked child that trains itself gets a recorder of its own.
    """
    global _watching_forks
    found = current()
    if found is not None:
        return found
    path = os.environ.get("EPOCHMETER_SOCKET", "")
    if not path or (_stopped and not again) or _quiet.broken() or not _switch.enabled():
        return None
    if not _watching_forks:
        _watching_forks = True
        os.register_at_fork(after_in_child=_forked)
    with _making:
        return current() or _make(path)


def _make(path: str) -> Optional[Recorder]:
    """Under the lock."""
    global _recorder, _stopped, _is_made
    if _is_made:
        return None
    _is_made = True
    try:
        _stopped = False
        _recorder = Recorder(path, VERSION)
    finally:
        _is_made = False
    _hook_exceptions()
    atexit.unregister(_at_exit)
    atexit.register(_at_exit)
    return _recorder


def leave() -> None:
    """Ends the recording of this process; only join(again=True) begins another."""
    global _recorder, _stopped
    _stopped = True
    _close()
    _recorder = None
    _unhook_exceptions()
    atexit.unregister(_at_exit)


@_quiet.guarded
def _close(patience_s: float = 0.02) -> None:
    found = current()
    if found is not None:
        found.close(patience_s)


def _at_exit() -> None:
    _close(EXIT_PATIENCE_S)


def _forked() -> None:
    """In a child just forked: what it inherited is its parent's to use."""
    global _making, _is_made
    # Another thread of the parent may have held it.
    _making, _is_made = threading.RLock(), False
    if _recorder is not None:
        _recorder.disown()


def _excepthook(
    kind: Type[BaseException], value: BaseException, trace: Optional[TracebackType]
) -> Any:
    _report(kind, value, trace)
    return (_previous_hook or sys.__excepthook__)(kind, value, trace)


@_quiet.guarded
def _report(
    kind: Type[BaseException], value: BaseException, trace: Optional[TracebackType]
) -> None:
    found = current()
    if found is not None:
        found.exception(kind, value, trace)


def _hook_exceptions() -> None:
    global _previous_hook
    if sys.excepthook is not _excepthook and _previous_hook is None:
        _previous_hook = sys.excepthook
        sys.excepthook = _excepthook


def _unhook_exceptions() -> None:
    """Takes our hook out when it is on top; under somebody else's it stays, and only passes on."""
    global _previous_hook
    if sys.excepthook is _excepthook and _previous_hook is not None:
        sys.excepthook = _previous_hook
        _previous_hook = None
