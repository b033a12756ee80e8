# SPDX-License-Identifier: Apache-2.0
"""Hugging Face Trainer: the callback, and the hooks that see its training without one.

Without a callback, the Trainer's own call of its callbacks is overheard, so that the list of them
stays as the script made it. Where the Trainer begins evaluations and checkpoints is wrapped too:
its callbacks are told only of their ends.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from typing import Any, MutableMapping, Optional, Tuple, Type

from epochmeter import _state
from epochmeter._frameworks.trainer_events import TrainerEvents
from epochmeter._frameworks.wrapping import unseen, wrap
from epochmeter._loop import Phase


class HuggingFaceEvents(TrainerEvents):
    framework = "transformers"
    loader_hook = "torch_loop"


@functools.lru_cache(maxsize=None)
def callback_class() -> Type[Any]:
    """Makes the class on Hugging Face's own. Imports transformers if the user has not."""
    base = importlib.import_module("transformers.trainer_callback").TrainerCallback
    return type(
        "TransformersCallback",
        (HuggingFaceEvents, base),
        {"__module__": "epochmeter", "__doc__": "Records the training of a `transformers.Trainer`."},
    )


# Trainer's list of callbacks -> what overhears it.
_overhearing: MutableMapping[Any, HuggingFaceEvents] = weakref.WeakKeyDictionary()


def _events_of(handler: Any) -> Tuple[Optional[HuggingFaceEvents], bool]:
    """What records the training of this list of callbacks, and whether it is in the list itself."""
    for member in handler.callbacks:
        if isinstance(member, HuggingFaceEvents):
            return member, True
    if _state.join() is None:
        return None, False
    return _overhearing.setdefault(handler, HuggingFaceEvents()), False


def _call_event(original: Any) -> Any:
    def call_event(self: Any, event: Any, args: Any, state: Any, control: Any, **more: Any) -> Any:
        events, in_list = _events_of(self)
        overheard = None if in_list else events
        told = getattr(overheard, event, None)
        if told is not None:
            told(args, state, control, **more)
        try:
            result = original(self, event, args, state, control, **more)
        except BaseException as error:
            unseen(error)
            raise
        if overheard is not None:
            overheard.callbacks_are_through()
        return result

    return call_event


def _evaluating(original: Any) -> Any:
    def evaluate(self: Any, *args: Any, **kwargs: Any) -> Any:
        events, _ = _events_of(self.callback_handler)
        if events is not None:
            events.eval_begins()
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            if events is not None:
                events.eval_ends()

    return evaluate


def _saving(original: Any) -> Any:
    def save(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            with Phase("checkpoint"):
                return original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise

    return save


def _training(original: Any) -> Any:
    def train(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            events, _ = _events_of(self.callback_handler)
            if events is not None:
                events.failed(error)
            unseen(error)
            raise

    return train


def install(module: Any) -> None:
    if module.__name__ == "transformers.trainer_callback":
        wrap(module.CallbackHandler, "call_event", _call_event)
    else:
        trainer = module.Trainer
        wrap(trainer, "train", _training)
        wrap(trainer, "evaluate", _evaluating)
        wrap(trainer, "predict", _evaluating)
        wrap(trainer, "_save_checkpoint", _saving)
