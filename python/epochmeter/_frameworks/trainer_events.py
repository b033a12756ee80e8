# SPDX-License-Identifier: Apache-2.0
"""What a Trainer of the Hugging Face shape tells its callbacks, told to the recorder.

Hugging Face's and PaddleNLP's Trainer call the same methods with (args, state, control, **more):
a step is one of the optimizer (`on_substep_end` is a batch before it), `state.epoch` is fractional,
losses come by `on_log` as Python numbers, so reading them waits for nothing, and an evaluation
shows itself only by its batches and by `on_evaluate` at its end.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Mapping, Optional

from epochmeter import _frameworks, _protocol, _state
from epochmeter._frameworks.own_training import OwnTraining
from epochmeter._quiet import guarded
from epochmeter._recorder import clock

# In the logs beside the values, and told by the event itself.
_NOT_SCALARS = ("epoch", "step")
# In the log that a Trainer makes at the end of the whole training.
_SUMMARY = "train_runtime"
# How fast an evaluation was, which is no metric of the model.
_SPEED = ("_runtime", "_samples_per_second", "_steps_per_second", "_preparation_time")


def _count(value: Any) -> Optional[int]:
    return value if type(value) is int and value > 0 else None


def _epoch_of(state: Any) -> int:
    """The epoch that begins or goes on: 0.9999999 is 1, as floats go."""
    return math.floor(float(getattr(state, "epoch", None) or 0.0) + 1e-6)


class TrainerEvents(OwnTraining):
    """The methods of a callback; `framework` names the library in the recording.

    `loader_hook` is the hook that watches the loaders of its training.
    """

    framework = ""
    loader_hook = ""
    # When the last thing that is no loading of data was over.
    _since_ns = 0

    def __init__(self) -> None:
        super().__init__()
        # Of the training as a whole, and how fast its latest evaluation was: told after its end,
        # as they belong to no epoch.
        self._apart: Dict[str, Any] = {}

    def _end_training(self, status: str, error: Optional[BaseException] = None) -> None:
        apart, self._apart = self._apart, {}
        recorder = self._mine()
        if recorder is not None:
            recorder.train_end(status, error)
            recorder.log_apart(apart)

    def callbacks_are_through(self) -> None:
        """What comes now until the next step is loading of data."""
        self._since_ns = clock()

    def _forget_waiting(self) -> None:
        """What the loader did so far is not the training's."""
        _frameworks.take_waiting(self.loader_hook)
        self.callbacks_are_through()

    def _waited_ns(self) -> int:
        wait_ns, batches = _frameworks.take_waiting(self.loader_hook)
        return wait_ns if batches else clock() - self._since_ns

    @guarded
    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._recorder = recorder = _state.join()
        if recorder is None:
            return
        self._close_eval(failed=True)
        by_steps = _count(getattr(args, "max_steps", None)) is not None
        epochs = None if by_steps else _count(getattr(state, "num_train_epochs", None))
        steps = _count(getattr(state, "max_steps", None))
        whole = epochs is not None and steps is not None and steps % epochs == 0
        size = _count(getattr(args, "train_batch_size", None))
        batches = _count(getattr(args, "gradient_accumulation_steps", None))
        recorder.train_begin(
            self.framework,
            "framework",
            epochs=epochs,
            steps_per_epoch=steps // epochs if whole and steps and epochs else None,
            batch_size=size * batches if size and batches else None,
            epoch_base=0,
        )
        # A training that goes on from a checkpoint counts on.
        recorder.step = _count(getattr(state, "global_step", None)) or 0
        self._token = recorder.token
        self._apart = {}
        self._forget_waiting()

    @guarded
    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._end_training("completed")

    @guarded
    def failed(self, error: BaseException) -> None:
        """An exception left the training."""
        self._close_eval(failed=True)
        self._end_training("failed", error)

    @guarded
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        recorder = self._mine()
        if recorder is not None:
            self._forget_waiting()
            recorder.epoch_begin(_epoch_of(state), 0, "framework")

    @guarded
    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        recorder = self._mine()
        if recorder is not None:
            # An epoch that was stopped inside ends at a fraction.
            epoch = float(getattr(state, "epoch", None) or 0.0)
            whole = recorder.epoch is None or epoch > recorder.epoch + 1 - 1e-6
            recorder.epoch_end(partial=not whole)

    @guarded
    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        recorder = self._mine()
        if recorder is not None:
            recorder.step_begin(self._waited_ns())

    @guarded
    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        t_ns = clock()
        recorder = self._mine()
        if recorder is not None and recorder.in_step:
            recorder.step_end(t_ns)
            self.callbacks_are_through()

    @guarded
    def on_log(
        self, args: Any, state: Any, control: Any, logs: Optional[Mapping[str, Any]] = None, **_: Any
    ) -> None:
        recorder = self._mine()
        if recorder is None or self._eval is not None:
            # What an evaluation logs comes again with its end.
            return
        values = {k: v for k, v in (logs or {}).items() if k not in _NOT_SCALARS}
        if _SUMMARY in values:
            self._apart.update(values)
        else:
            recorder.log(values)
        self.callbacks_are_through()

    @guarded
    def on_prediction_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.eval_begins()

    @guarded
    def on_evaluate(
        self,
        args: Any,
        state: Any,
        control: Any,
        metrics: Optional[Mapping[str, Any]] = None,
        **_: Any,
    ) -> None:
        if self._eval is not None:
            values = {k: v for k, v in (metrics or {}).items() if k not in _NOT_SCALARS}
            speed = {k: v for k, v in values.items() if k.endswith(_SPEED)}
            named = {_frameworks.evaluation_name(k): v for k, v in values.items() if k not in speed}
            self._eval.update(_protocol.scalars(named))
            if self._mine() is not None:
                self._apart.update(speed)
            elif speed and self._recorder is not None:
                self._recorder.log_apart(speed)
        self._close_eval()

    @guarded
    def on_predict(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **more: Any
    ) -> None:
        self.on_evaluate(args, state, control, metrics, **more)

    @guarded
    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.callbacks_are_through()

    @guarded
    def eval_begins(self) -> None:
        """Opens the evaluation unless it is open: its first batch may be the first to say so."""
        if self._eval is not None:
            return
        self._recorder = recorder = _state.join()
        if recorder is not None:
            self._open_eval(recorder)

    @guarded
    def eval_ends(self) -> None:
        """Closes the evaluation if it is open still: then an exception has left it."""
        self._close_eval(failed=True)

    def _close_eval(self, failed: bool = False) -> None:
        super()._close_eval(failed)
        self._forget_waiting()
