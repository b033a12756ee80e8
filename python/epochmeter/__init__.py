# SPDX-License-Identifier: Apache-2.0
"""The Python client of the epochmeter flight recorder.

    import epochmeter
    for epoch in epochmeter.epochs(10):
        for batch in epochmeter.steps(loader):
            ...
            epochmeter.log(loss=loss.item())
        with epochmeter.phase("eval"):
            epochmeter.log(accuracy=evaluate(model))

Under `epochmeter run -- python train.py` these join the running recording; `paddle.Model.fit` is
recorded without a line of this. Without it, `epochmeter.start()` starts a recorder beside the
process. Where nobody records, all of it does nothing. Nothing here raises, waits or prints into the
training.

Importing this package imports no framework and nothing heavy: the parts load when first used.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    TypeVar,
    Union,
)

from epochmeter._version import VERSION as __version__

if TYPE_CHECKING:
    from epochmeter._loop import Phase, Steps

    KerasCallback: Any
    LightningCallback: Any
    PaddleCallback: Any
    PaddleNLPCallback: Any
    TransformersCallback: Any

__all__ = ["epochs", "log", "mark", "phase", "start", "steps", "stop"]

_T = TypeVar("_T")

_log: Optional[Callable[[Optional[Mapping[str, Any]], Dict[str, Any]], None]] = None


def start() -> bool:
    """Begins recording this process; True when a recorder is there or on its way.

    Joins the recorder that EPOCHMETER_SOCKET names, else starts `epochmeter attach` for this
    process (found through EPOCHMETER_BINARY or PATH) and waits at most half a second for it.
    EPOCHMETER=0 makes it do nothing.
    """
    import os

    from epochmeter import _launch, _quiet, _state, _switch, _watch

    if not _switch.enabled():
        return False
    if not os.environ.get("EPOCHMETER_SOCKET"):
        try:
            path = _launch.launch()
        except Exception as error:
            _quiet.fault("starting the recorder", error)
            return False
        if path is None:
            return False
        # Processes that this one starts join the same recording.
        os.environ["EPOCHMETER_SOCKET"] = path
    _watch.watch()
    return _state.join(again=True) is not None


def stop() -> None:
    """Ends recording of this process; a training still open is reported as left."""
    from epochmeter import _state

    _state.leave()


def steps(
    iterable: Iterable[_T], epoch: Optional[int] = None, batch_size: Optional[int] = None
) -> "Steps[_T]":
    """Wraps a loader: each turn of the loop is a step, with the time spent waiting for its batch.

    `epoch` is the loop's own number; without it the epoch of epochs() is taken, or passes are
    counted from 0. `batch_size` is the number of samples of a step; without it, it is taken from
    the batch where the loader has a `batch_size` that agrees. Inside phase("eval") nothing is
    counted.
    """
    from epochmeter._loop import Steps

    return Steps(iterable, epoch, batch_size)


def epochs(numbers: Union[int, Iterable[int]]) -> Iterator[int]:
    """Yields the epochs' numbers, 0 to numbers-1 or those of an iterable; each turn is an epoch."""
    from epochmeter import _loop

    return _loop.epochs(numbers)


def phase(name: str) -> "Phase":
    """A context manager that times a part of the training.

    Known names are data, forward, backward, optimizer, eval, checkpoint, compile and comm; any
    other is kept.
    """
    from epochmeter._loop import Phase

    return Phase(name)


def log(values: Optional[Mapping[str, Any]] = None, **scalars: Any) -> None:
    """Records numbers. Inside a step they belong to it, inside phase("eval") to the evaluation.

    A tensor on a GPU is not read, because that would make the training wait: pass its `.item()`.
    """
    global _log
    if _log is None:
        # Once: an import inside a function costs half a microsecond at each step.
        from epochmeter import _loop

        _log = _loop.log
    _log(values, scalars)


def mark(name: str) -> None:
    """Records that something happened now."""
    from epochmeter import _quiet, _state

    recorder = _state.near()
    if recorder is not None:
        try:
            recorder.mark(str(name))
        except Exception as error:
            _quiet.fault("mark", error)


# The name of a callback class -> our file that makes it on the framework's own.
_CALLBACKS = {
    "KerasCallback": "keras",
    "LightningCallback": "lightning",
    "PaddleCallback": "paddle_hapi",
    "PaddleNLPCallback": "paddlenlp",
    "TransformersCallback": "transformers",
}


def __getattr__(name: str) -> Any:
    file = _CALLBACKS.get(name)
    if file is not None:
        from importlib import import_module

        return import_module("epochmeter._frameworks." + file).callback_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted([*__all__, *_CALLBACKS, "__version__", "__doc__", "__name__"])
