# SPDX-License-Identifier: Apache-2.0
"""PaddlePaddle's high-level loop (`paddle.Model`): the callback, and the hook that adds it unasked.

What hapi does, and what follows for us: `fit` calls on_epoch_end before that epoch's evaluation;
the same dictionary is handed to all calls, so values are read at once; losses in it are Python
floats already, so reading them waits for nothing; `batch_size` in it counts the samples of all
ranks.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, Dict, Mapping, Optional, Type

from epochmeter import _protocol, _state
from epochmeter._frameworks.own_training import OwnTraining
from epochmeter._frameworks.wrapping import telling_failure, unseen, wrap
from epochmeter._quiet import guarded
from epochmeter._recorder import clock

_NOT_SCALARS = ("step", "batch_size", "steps", "metrics")


def _numbers(logs: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """hapi's logs as names and numbers; a list of one is its member, a longer one is numbered."""
    found: Dict[str, Any] = {}
    for key, value in (logs or {}).items():
        if key in _NOT_SCALARS:
            continue
        if isinstance(value, (list, tuple)):
            if len(value) == 1:
                found[key] = value[0]
            else:
                found.update({f"{key}[{i}]": member for i, member in enumerate(value)})
        else:
            found[key] = value
    return found


def _count(value: Any) -> Optional[int]:
    return value if type(value) is int and value >= 0 else None


class HapiMethods(OwnTraining):
    """The callback's methods; mixed with Paddle's own Callback class, which is known only late."""

    params: Dict[str, Any]
    _ranks = 1

    @guarded
    def on_train_begin(self, logs: Any = None) -> None:
        self._recorder = recorder = _state.join()
        if recorder is None:
            return
        self._close_eval(failed=True)
        parallel = importlib.import_module("paddle.distributed").ParallelEnv
        self._ranks = max(1, int(parallel().nranks))
        recorder.train_begin(
            "paddle",
            "framework",
            epochs=_count(self.params.get("epochs")),
            steps_per_epoch=_count(self.params.get("steps")),
            batch_size=_count(self.params.get("batch_size")),
            epoch_base=0,
        )
        self._token = recorder.token

    @guarded
    def on_train_end(self, logs: Any = None) -> None:
        recorder = self._mine()
        if recorder is not None:
            recorder.train_end("completed")

    @guarded
    def on_epoch_begin(self, epoch: Any = None, logs: Any = None) -> None:
        recorder = self._mine()
        if recorder is not None:
            recorder.epoch_begin(int(epoch), 0, "framework")

    @guarded
    def on_epoch_end(self, epoch: Any = None, logs: Any = None) -> None:
        recorder = self._mine()
        if recorder is not None:
            recorder.epoch_end(_numbers(logs))

    @guarded
    def on_train_batch_begin(self, step: Any = None, logs: Any = None) -> None:
        recorder = self._mine()
        if recorder is not None:
            recorder.step_begin(clock() - recorder.last_end_ns)

    @guarded
    def on_train_batch_end(self, step: Any = None, logs: Any = None) -> None:
        t_ns = clock()
        recorder = self._mine()
        if recorder is None:
            return
        size = _count((logs or {}).get("batch_size"))
        if size is not None:
            size = size // self._ranks if size % self._ranks == 0 else None
        recorder.step_end(t_ns, size, _numbers(logs))

    @guarded
    def on_eval_begin(self, logs: Any = None) -> None:
        self._recorder = recorder = _state.join()
        if recorder is not None:
            self._close_eval(failed=True)
            self._open_eval(recorder)

    @guarded
    def on_eval_end(self, logs: Any = None) -> None:
        if self._eval is not None:
            self._eval.update(_protocol.scalars(_numbers(logs)))
        self._close_eval()


@functools.lru_cache(maxsize=None)
def callback_class() -> Type[Any]:
    """Makes the class on Paddle's own. Imports Paddle if the user has not."""
    base = importlib.import_module("paddle.hapi.callbacks").Callback
    return type(
        "PaddleCallback",
        (HapiMethods, base),
        {"__module__": "epochmeter", "__doc__": "Records `paddle.Model.fit` and `evaluate`."},
    )


@guarded
def _add(callbacks: Any) -> None:
    """Adds our callback to hapi's list, unless the user's own list has one."""
    members = callbacks.callbacks
    if any(isinstance(member, HapiMethods) for member in members) or _state.join() is None:
        return
    ours = callback_class()()
    # hapi always ends its list with a scheduler callback that has what all callbacks got.
    ours.set_params(members[-1].params)
    ours.set_model(members[-1].model)
    callbacks.append(ours)


def _with_callback(original: Any) -> Any:
    def config_callbacks(*args: Any, **kwargs: Any) -> Any:
        try:
            callbacks = original(*args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        _add(callbacks)
        return callbacks

    return config_callbacks


def install(model_module: Any) -> None:
    """Makes `fit` and `evaluate` of paddle.hapi.model, just imported, use our callback."""
    if not hasattr(model_module, "config_callbacks"):
        raise AttributeError("paddle.hapi.model has no config_callbacks")
    wrap(model_module, "config_callbacks", _with_callback)
    wrap(model_module.Model, "fit", telling_failure)
