# SPDX-License-Identifier: Apache-2.0
"""How hooks put their own functions in the place of a framework's."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Optional

from epochmeter import _plain, _quiet, _state
from epochmeter._recorder import clock

# On what is wrapped, so that it is wrapped once; on an iterator, the pass that it makes.
MARK = _plain.MARK


def wrap(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Puts make(original) in the place of `owner.name`, if `owner` has it itself; once."""
    original = vars(owner).get(name)
    if original is None or hasattr(original, MARK):
        return
    made = functools.wraps(original)(make(original))
    try:
        # For those who ask for the arguments without regard to __wrapped__, as getfullargspec().
        setattr(made, "__signature__", inspect.signature(original))
    except Exception:
        pass
    setattr(made, MARK, True)
    setattr(owner, name, made)


def unseen(error: BaseException) -> None:
    """Takes the frame that catches `error` out of its traceback; a bare `raise` is to follow.

    What the training prints of an exception is then what it would print without us. Before
    Python 3.11 `raise` puts the frame back.
    """
    trace = error.__traceback__
    if trace is not None:
        error.__traceback__ = trace.tb_next


def beginning_pass(loop: _plain.PlainLoop) -> Callable[[Any], Any]:
    """For a loader's __iter__: each call begins a pass."""

    def make(original: Any) -> Any:
        def __iter__(self: Any) -> Any:
            this = _plain.Pass(loop, self)
            try:
                iterator = original(self)
            except BaseException as error:
                unseen(error)
                raise
            # Persistent workers give the same iterator again: it carries the new pass.
            this.bind(iterator)
            return iterator

        return __iter__

    return make


def timing_pass(original: Any) -> Any:
    """For the __next__ of what such a loader gives."""

    def __next__(self: Any) -> Any:
        this: Optional[_plain.Pass] = self.__dict__.get(MARK)
        began_ns = clock()
        try:
            batch = original(self)
        except StopIteration:
            if this is not None:
                this.end()
            raise
        except BaseException as error:
            unseen(error)
            raise
        if this is not None:
            this.got(began_ns, batch)
        return batch

    return __next__


@_quiet.guarded
def _failed(before: Optional[object], error: BaseException) -> None:
    recorder = _state.current()
    if recorder is not None and recorder.framework_trains() and recorder.token is not before:
        wanted = not isinstance(error, Exception)
        recorder.train_end("exited" if wanted else "failed", error)


def telling_failure(original: Any) -> Any:
    """For a framework's own loop: an exception that leaves it ends the training that it began.

    Somebody may catch it later, so it is no uncaught exception yet. What is no Exception, like
    KeyboardInterrupt, is the user's wish and no failure.
    """

    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = _state.current()
        before = None if recorder is None else recorder.token
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            _failed(before, error)
            unseen(error)
            raise

    return fit
