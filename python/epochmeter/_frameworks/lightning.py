# SPDX-License-Identifier: Apache-2.0
"""Lightning, as `lightning.pytorch` and as `pytorch_lightning`: the callback, and the hooks without.

Without a callback, the Trainer's own call of its callbacks is overheard, so that the list of them
stays as the script made it.

Metrics are taken from what Lightning has computed, never asked for: asking makes metrics compute,
and that may be a collective operation of all ranks. It has computed them only after the end of a
batch or an epoch was told, so a step or an epoch is sent a moment after it ended, with the time of
its end. A metric on a GPU is read only where Lightning itself has just waited for it, and at the
end of epochs and evaluations.
"""

from __future__ import annotations

import functools
import importlib
import sys
import weakref
from typing import Any, Dict, MutableMapping, Optional, Tuple, Type

from epochmeter import _frameworks, _protocol, _state
from epochmeter._frameworks.own_training import OwnTraining
from epochmeter._frameworks.wrapping import unseen, wrap
from epochmeter._loop import Phase, batch_samples
from epochmeter._quiet import guarded
from epochmeter._recorder import clock

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _connector(trainer: Any) -> Any:
    return getattr(trainer, "_logger_connector", None)


def _computed(trainer: Any) -> Dict[str, Any]:
    """The callback metrics that Lightning has computed so far, of any age."""
    found = getattr(_connector(trainer), "_callback_metrics", None)
    return dict(found) if isinstance(found, dict) else {}


def _unforked(name: str, computed: Dict[str, Any]) -> str:
    """`x` for `x_step` and `x_epoch`, which Lightning makes of one that is logged as both."""
    base = name[: -len("_step")] if name.endswith("_step") else name
    base = name[: -len("_epoch")] if name.endswith("_epoch") else base
    return base if base in computed else name


def _counts(trainer: Any) -> Dict[str, Optional[int]]:
    """What train_begin can say of the length of the training."""
    epochs, batches = trainer.max_epochs, trainer.num_training_batches
    together = trainer.accumulate_grad_batches
    steps = None
    if type(batches) is int and type(together) is int and together > 0 and batches > 0:
        steps = -(-batches // together)
    size = getattr(trainer.train_dataloader, "batch_size", None)
    return {
        "epochs": epochs if type(epochs) is int and epochs > 0 else None,
        "steps_per_epoch": steps,
        "batch_size": size if type(size) is int else None,
    }


class LightningEvents(OwnTraining):
    """The callback's methods, for one Trainer."""

    # When the last thing that is no loading of data was over, and the last that is part of no step.
    _since_ns = 0
    _apart_ns = 0
    # Of the step that goes on: batches, the wait for them, their samples (None: not known).
    _batches = 0
    _wait_ns = 0
    _samples: Optional[int] = 0
    _optimizer_steps = 0
    _nominal: Optional[int] = None
    # Ends that are not sent yet.
    _step_ended_ns: Optional[int] = None
    _epoch_ended: Optional[Tuple[int, bool]] = None

    def __init__(self) -> None:
        super().__init__()
        # The metrics that were told, by what they belong to: an old tensor is no news.
        self._seen: Dict[str, Dict[str, Any]] = {"step": {}, "epoch": {}, "eval": {}}
        # What evaluations told last. Lightning computes it anew at later epochs, as another tensor.
        self._told: Dict[str, _protocol.Real] = {}

    def _news(self, trainer: Any, what: str, wait: bool) -> Dict[str, Any]:
        """Metrics that came since the last call with `what`; those on a GPU only if `wait`."""
        seen, computed = self._seen[what], _computed(trainer)
        self._seen[what] = computed
        return {
            name: value
            for name, value in computed.items()
            if seen.get(name) is not value
            and _unforked(name, computed) == name
            and (wait or not _frameworks.on_device(value))
            and (what == "eval" or self._told.get(name) != _protocol.real(value))
        }

    def _forget_waiting(self) -> None:
        """What the loader did so far is not the training's."""
        _frameworks.take_waiting("torch_loop")
        self._since_ns = clock()

    def callbacks_are_through(self) -> None:
        """What comes now until the next batch is loading of data."""
        self._since_ns = clock()

    @guarded
    def apart(self) -> None:
        """Something that is part of no step, as a checkpoint, has ended."""
        self._apart_ns = self._since_ns = clock()

    @guarded
    def flush(self, trainer: Any) -> None:
        """Sends the ends of a step and of an epoch that wait for their metrics."""
        recorder = self._mine()
        ended_ns, self._step_ended_ns = self._step_ended_ns, None
        epoch_ended, self._epoch_ended = self._epoch_ended, None
        if recorder is None:
            return
        if ended_ns is not None:
            recorder.step_end(ended_ns, self._samples, self._news(trainer, "step", wait=False))
            recorder.last_end_ns = max(ended_ns, self._apart_ns)
            self._batches = self._wait_ns = 0
            self._samples = 0
        if epoch_ended is not None:
            t_ns, partial = epoch_ended
            recorder.epoch_end(self._news(trainer, "epoch", wait=True), partial, t_ns)

    @guarded
    def logged(self, trainer: Any, metrics: Any) -> None:
        """Lightning gave these to its loggers, and has waited for their values."""
        recorder = self._mine()
        if recorder is None or self._eval is not None or self._epoch_ended is not None:
            return
        computed = _computed(trainer)
        on_device = {
            _unforked(name, computed): value
            for name, value in metrics.items()
            if _frameworks.on_device(value)
        }
        if on_device:
            recorder.log(on_device)

    # Lightning's own names from here.

    @guarded
    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self._recorder = recorder = _state.join()
        if recorder is None:
            return
        self._close_eval(failed=True)
        counts = _counts(trainer)
        recorder.train_begin("lightning", "framework", epoch_base=0, **counts)
        self._token = recorder.token
        self._nominal = counts["batch_size"]
        # A training that goes on from a checkpoint counts on.
        recorder.step = self._optimizer_steps = int(trainer.global_step)
        self._step_ended_ns = self._epoch_ended = None
        self._batches = self._wait_ns = 0
        self._samples = 0
        for what in self._seen:
            self._seen[what] = _computed(trainer)
        self._forget_waiting()

    @guarded
    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.flush(trainer)
        recorder = self._mine()
        if recorder is not None:
            recorder.train_end("completed")

    @guarded
    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.flush(trainer)
        self._close_eval(failed=True)
        recorder = self._mine()
        if recorder is not None:
            recorder.train_end("failed", exception)

    @guarded
    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self.flush(trainer)
        recorder = self._mine()
        if recorder is not None:
            self._forget_waiting()
            recorder.epoch_begin(int(trainer.current_epoch), 0, "framework")

    @guarded
    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.flush(trainer)
        if self._mine() is not None:
            batches = trainer.num_training_batches
            loop = getattr(getattr(trainer, "fit_loop", None), "epoch_loop", None)
            whole = loop is None or int(loop.batch_idx) + 1 >= batches or batches == float("inf")
            self._epoch_ended = (clock(), not whole)

    @guarded
    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, *_: Any) -> None:
        now_ns = clock()
        self.flush(trainer)
        recorder = self._mine()
        if recorder is None:
            return
        wait_ns, batches = _frameworks.take_waiting("torch_loop")
        self._wait_ns += wait_ns if batches else now_ns - self._since_ns
        self._batches += 1
        size = None if self._nominal is None else batch_samples(batch, self._nominal)
        self._samples = None if size is None or self._samples is None else self._samples + size
        recorder.step_begin(self._wait_ns)

    @guarded
    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        t_ns = clock()
        if self._mine() is not None:
            steps = int(trainer.global_step)
            # More than one is several optimizers that took turns, which is one step.
            if steps > self._optimizer_steps:
                self._step_ended_ns = t_ns
            self._optimizer_steps = steps
            self._since_ns = t_ns

    @guarded
    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self.flush(trainer)
        if trainer.sanity_checking:
            return
        self._recorder = recorder = _state.join()
        if recorder is not None:
            self._close_eval(failed=True)
            self._seen["eval"] = _computed(trainer)
            self._open_eval(recorder)

    @guarded
    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._eval is not None:
            news = self._news(trainer, "eval", wait=True)
            # Told with the evaluation, they are no news at the end of the epoch.
            self._seen["epoch"].update(news)
            self._told.update(_protocol.scalars(news))
            named = {_frameworks.evaluation_name(name): value for name, value in news.items()}
            self._eval.update(_protocol.scalars(named))
        self._close_eval()

    on_test_start = on_validation_start
    on_test_end = on_validation_end

    def _close_eval(self, failed: bool = False) -> None:
        super()._close_eval(failed)
        recorder = self._recorder
        self._apart_ns = clock()
        if recorder is not None and not recorder.in_step:
            recorder.last_end_ns = max(recorder.last_end_ns, self._apart_ns)
        self._forget_waiting()


@functools.lru_cache(maxsize=None)
def _class_for(packages: Tuple[str, ...]) -> Type[Any]:
    bases = tuple(importlib.import_module(f"{name}.callbacks").Callback for name in packages)
    return type(
        "LightningCallback",
        (LightningEvents, *bases),
        {"__module__": "epochmeter", "__doc__": "Records the training of a Lightning `Trainer`."},
    )


def callback_class() -> Type[Any]:
    """Makes the class on those of Lightning's packages that are imported, else on one that is there.

    A script that uses both gets a callback that fits both.
    """
    present = tuple(name for name in _PACKAGES if name in sys.modules)
    if present:
        return _class_for(present)
    try:
        return _class_for(_PACKAGES[:1])
    except ImportError:
        return _class_for(_PACKAGES[1:])


# Trainer -> what overhears it.
_overhearing: MutableMapping[Any, LightningEvents] = weakref.WeakKeyDictionary()


def _events_of(trainer: Any) -> Tuple[Optional[LightningEvents], bool]:
    """What records this Trainer, and whether it is among its callbacks itself."""
    for member in getattr(trainer, "callbacks", None) or ():
        if isinstance(member, LightningEvents):
            return member, True
    found = _overhearing.get(trainer)
    if found is None and _state.join() is not None:
        found = _overhearing[trainer] = LightningEvents()
    return found, False


def _call_callback_hooks(original: Any) -> Any:
    def call(trainer: Any, hook_name: str, *args: Any, **kwargs: Any) -> Any:
        told = getattr(LightningEvents, hook_name, None)
        events, in_list = _events_of(trainer) if told is not None else (None, False)
        overheard = None if in_list else events
        # The end of an epoch is told in two goes; the first is without monitoring callbacks.
        if told is not None and overheard is not None and not kwargs.get("monitoring_callbacks"):
            told(overheard, trainer, trainer.lightning_module, *args)
        try:
            result = original(trainer, hook_name, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        if overheard is not None:
            overheard.callbacks_are_through()
        return result

    return call


def _flushing(original: Any) -> Any:
    def update(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        events, _ = _events_of(self.trainer)
        if events is not None:
            events.flush(self.trainer)
        return result

    return update


def _log_metrics(original: Any) -> Any:
    def log_metrics(self: Any, metrics: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = original(self, metrics, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        if metrics and self.trainer.loggers:
            events, _ = _events_of(self.trainer)
            if events is not None:
                events.logged(self.trainer, metrics)
        return result

    return log_metrics


def _saving(original: Any) -> Any:
    def save_checkpoint(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            with Phase("checkpoint"):
                result = original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        events, _ = _events_of(self)
        if events is not None:
            events.apart()
        return result

    return save_checkpoint


def install(module: Any) -> None:
    last = module.__name__.rpartition(".")[2]
    if last == "call":
        wrap(module, "_call_callback_hooks", _call_callback_hooks)
    elif last == "logger_connector":
        connector = getattr(module, "_LoggerConnector", None) or module.LoggerConnector
        wrap(connector, "on_batch_end", _flushing)
        wrap(connector, "on_epoch_end", _flushing)
        wrap(connector, "log_metrics", _log_metrics)
    else:
        wrap(module.Trainer, "save_checkpoint", _saving)
