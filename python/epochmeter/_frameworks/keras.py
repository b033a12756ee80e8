# SPDX-License-Identifier: Apache-2.0
"""Keras 3 on any backend, tf.keras and older ones: `fit` and `evaluate`, with a callback or without.

Keras calls all callbacks through one CallbackList, so that is where we listen; a KerasCallback is
only the mark that its list is to be recorded. Being no callback among the others we get the values
as the step left them: Keras need not fetch them from a device for us at each batch, nor give up
calling the others from a thread.

What Keras does, and what follows: values of a batch are means over the epoch so far, and stay on
the device until somebody reads them, so here only those on the host are; those of an epoch are
taken from History, after Keras has read them. on_epoch_end comes after the validation. One batch
call may stand for several steps (`steps_per_execution`), the last time for fewer than it says. With
the TensorFlow backend the batch is fetched inside the step, and the wait for it is not known.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Callable, Dict, Mapping, Optional, Type

from epochmeter import _frameworks, _protocol, _state
from epochmeter._frameworks.own_training import OwnTraining
from epochmeter._frameworks.wrapping import MARK, telling_failure, unseen, wrap
from epochmeter._quiet import guarded
from epochmeter._recorder import Recorder, clock

# Where the classes are, newest Keras first; also the triggers of this hook.
LISTS = (
    "keras.src.callbacks",
    "tf_keras.src.callbacks",
    "keras.callbacks",
    "tensorflow.python.keras.callbacks",
)
_TRAINERS = {
    "keras.src.backend.tensorflow.trainer": "TensorFlowTrainer",
    "keras.src.backend.jax.trainer": "JAXTrainer",
    "keras.src.backend.torch.trainer": "TorchTrainer",
    "keras.src.engine.training": "Model",
    "tf_keras.src.engine.training": "Model",
    "keras.engine.training": "Model",
    "tensorflow.python.keras.engine.training": "Model",
}

# Whether lists without a KerasCallback are recorded too: not when only that brought us here.
_unasked = False


def _on_host(logs: Any) -> Dict[str, Any]:
    """The values that can be read without waiting for a device, of a dictionary of values."""
    found: Dict[str, Any] = {}
    for name, value in (logs or {}).items():
        if isinstance(value, Mapping):
            found.update(_on_host(value))
        elif type(value) is float or not _frameworks.on_device(value) and _ready(value):
            found[str(name)] = value
    return found


def _ready(value: Any) -> bool:
    """False for an array of JAX that is still being computed, be it on the CPU."""
    ask = getattr(value, "is_ready", None)
    return ask is None or bool(ask())


def _count(value: Any) -> Optional[int]:
    return value if type(value) is int and value >= 0 else None


def _whole(variable: Any) -> Optional[int]:
    """A counter's value; reading it waits for the device, so only where all is done anyway."""
    try:
        return int(variable.numpy() if hasattr(variable, "numpy") else variable)
    except Exception:
        return None


class Watcher(OwnTraining):
    """What one CallbackList tells. Made at its first call; every method is called around Keras'."""

    def __init__(self, callbacks: Any) -> None:
        self._list = callbacks
        # Whether this epoch's validation was told, whose values come again with the epoch's end.
        self._tested = False
        self._steps: Optional[int] = None
        self._several = False
        self._iterations: Optional[int] = None
        self._first = 0
        # When the callbacks were through: what comes then is the loading of a batch.
        self._since_ns = 0
        # A batch call whose number of steps is not sure yet: its time, steps and values.
        self._held: Any = None

    @guarded
    def train_begin(self) -> None:
        self._recorder = recorder = _state.join()
        if recorder is None:
            return
        self._close_eval(failed=True)
        self._held = None
        params = getattr(self._list, "params", None) or {}
        model = getattr(self._list, "model", None)
        self._steps = _count(params.get("steps"))
        at_once = getattr(model, "steps_per_execution", None)
        at_once = getattr(model, "_steps_per_execution", None) if at_once is None else at_once
        self._several = _whole(at_once) not in (None, 1) or isinstance(at_once, str)
        recorder.train_begin(
            "keras",
            "framework",
            epochs=_count(params.get("epochs")),
            steps_per_epoch=self._steps,
            epoch_base=0,
        )
        self._token = recorder.token

    @guarded
    def train_end(self) -> None:
        recorder = self._mine()
        if recorder is not None:
            recorder.train_end("completed")

    @guarded
    def epoch_begin(self, epoch: Any) -> None:
        recorder = self._mine()
        if recorder is not None:
            self._iterations = self._done() if self._several else None
            self._tested = False
            recorder.epoch_begin(int(epoch), 0, "framework")

    @guarded
    def epoch_end(self, epoch: Any, logs: Any, t_ns: int) -> None:
        recorder = self._mine()
        if recorder is None:
            return
        self._settle(recorder)
        history = getattr(self._list, "_history", None)
        values = _on_host(logs)
        if history is not None and getattr(history, "epoch", None) and history.epoch[-1] == epoch:
            values = {name: column[-1] for name, column in history.history.items() if column}
        if self._tested:
            values = {name: v for name, v in values.items() if not name.startswith("val_")}
        recorder.epoch_end(values, t_ns=t_ns)

    # The next three run at each step: _tell guards them.

    def batch_begin(self, batch: Any) -> None:
        recorder = self._mine()
        if recorder is None:
            return
        self._first = int(batch)
        recorder.step_begin(clock() - self._since_ns if _waits_outside() else None)

    def through(self) -> None:
        self._since_ns = clock()

    def batch_end(self, batch: Any, logs: Any, t_ns: int) -> None:
        recorder = self._mine()
        if recorder is None:
            return
        steps = int(batch) + 1 - self._first
        if self._steps is not None:
            steps = min(steps, self._steps - self._first)
        self._send_held(recorder)
        if self._several and self._steps is None:
            # Not at the next begin: that comes once more when the data has run out.
            self._held = (t_ns, max(1, steps), _on_host(logs))
        else:
            recorder.step_end(t_ns, None, _on_host(logs), steps=max(1, steps))

    def _send_held(self, recorder: Recorder) -> None:
        held, self._held = self._held, None
        if held is not None:
            recorder.step_end(held[0], None, held[2], steps=held[1])

    def _done(self) -> Optional[int]:
        optimizer = getattr(getattr(self._list, "model", None), "optimizer", None)
        return _whole(getattr(optimizer, "iterations", None))

    def _settle(self, recorder: Recorder) -> None:
        """At the end of an epoch, when the device is idle: as many steps as the optimizer made."""
        if not self._several:
            return
        done = self._done()
        if done is None or self._iterations is None:
            self._send_held(recorder)
            return
        missing = done - self._iterations - recorder.step_in_epoch
        held, self._held = self._held, None
        if missing > 0:
            t_ns, _, values = held or (clock(), 0, {})
            recorder.step_end(t_ns, None, values, steps=missing)

    @guarded
    def test_begin(self) -> None:
        self._recorder = recorder = _state.join()
        if recorder is not None:
            self._close_eval(failed=True)
            if self._mine() is not None:
                # A batch that began and found no more data.
                recorder.in_step = False
            self._open_eval(recorder)

    @guarded
    def test_end(self, logs: Any) -> None:
        if self._eval is not None:
            self._eval.update(_protocol.scalars(_on_host(logs)))
            self._tested = True
        self._close_eval()


def _waits_outside() -> bool:
    """Whether Keras fetches the batch before on_train_batch_begin: all backends but one do."""
    backend: Any = sys.modules.get("keras.src.backend")
    name = getattr(backend, "backend", None)
    return name is not None and name() in ("jax", "torch")


class _Asked:
    """What marks a callback as ours, whichever Keras it belongs to."""


def _watcher(callbacks: Any) -> Optional[Watcher]:
    found: Optional[Watcher] = callbacks.__dict__.get(MARK)
    if found is None:
        if not _unasked and not any(isinstance(c, _Asked) for c in callbacks.callbacks):
            return None
        found = callbacks.__dict__[MARK] = Watcher(callbacks)
    return found


Told = Callable[[Watcher, Any, Any, int], None]

# What is told before Keras' own method runs and after it: with its first two arguments and the
# time at which it was called. A step is told in as few calls as can be.
_BEFORE: Dict[str, Told] = {
    "on_train_begin": lambda watcher, logs, _, t_ns: watcher.train_begin(),
    "on_epoch_begin": lambda watcher, epoch, logs, t_ns: watcher.epoch_begin(epoch),
    "on_train_batch_begin": lambda watcher, batch, logs, t_ns: watcher.batch_begin(batch),
    "on_train_batch_end": Watcher.batch_end,
    "on_test_begin": lambda watcher, logs, _, t_ns: watcher.test_begin(),
}
_AFTER: Dict[str, Told] = {
    "on_epoch_begin": lambda watcher, epoch, logs, t_ns: watcher.through(),
    "on_train_batch_end": lambda watcher, batch, logs, t_ns: watcher.through(),
    "on_epoch_end": Watcher.epoch_end,
    "on_test_end": lambda watcher, logs, _, t_ns: watcher.test_end(logs),
    "on_train_end": lambda watcher, logs, _, t_ns: watcher.train_end(),
}


@guarded
def _tell(told: Told, callbacks: Any, arguments: Any, t_ns: int) -> None:
    watcher = callbacks.__dict__.get(MARK) or _watcher(callbacks)
    if watcher is not None:
        told(watcher, arguments[0], arguments[1], t_ns)


def _told(name: str) -> Any:
    before, after = _BEFORE.get(name), _AFTER.get(name)

    def make(original: Any) -> Any:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            t_ns = clock()
            arguments = (*args, *kwargs.values(), None, None)
            if before is not None:
                _tell(before, self, arguments, t_ns)
            try:
                result = original(self, *args, **kwargs)
            except BaseException as error:
                unseen(error)
                raise
            if after is not None:
                _tell(after, self, arguments, t_ns)
            return result

        return method

    return make


def _listen(module: Any) -> None:
    owner = module.CallbackList
    for name in {**_BEFORE, **_AFTER}:
        wrap(owner, name, _told(name))


def install(module: Any) -> None:
    """Records each list of a module of LISTS, and tells when an exception leaves `fit`."""
    global _unasked
    trainer = _TRAINERS.get(module.__name__)
    if trainer is not None:
        wrap(getattr(module, trainer), "fit", telling_failure)
    else:
        _unasked = True
        _listen(module)


def _listen_where_loaded() -> None:
    for name in LISTS:
        module = sys.modules.get(name)
        if hasattr(module, "CallbackList"):
            _listen(module)
    for name, owner in _TRAINERS.items():
        module = sys.modules.get(name)
        if hasattr(module, owner):
            wrap(getattr(module, owner), "fit", telling_failure)


@functools.lru_cache(maxsize=None)
def callback_class() -> Type[Any]:
    """Makes the class on the Callback of the Keras in use; imports Keras if the user has not."""
    names = [f"{name}.callbacks" for name in ("keras", "tf_keras") if name in sys.modules]
    module = importlib.import_module((names or ["keras.callbacks"])[0])

    def __init__(self: Any) -> None:
        module.Callback.__init__(self)
        _listen_where_loaded()

    return type(
        "KerasCallback",
        (_Asked, module.Callback),
        {
            "__module__": "epochmeter",
            "__doc__": "Records `fit` and `evaluate` of a Keras model.",
            "__init__": __init__,
            # It asks for no values at a batch: Keras need not wait for a device because of it.
            "async_safe": True,
            "_supports_tf_logs": True,
        },
    )
