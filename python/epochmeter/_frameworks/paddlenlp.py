# SPDX-License-Identifier: Apache-2.0
"""PaddleNLP's Trainer: the callback, and the hook that adds it unasked.

It calls its callbacks as Hugging Face's does, and some more. The class needs no PaddleNLP: any
Trainer that calls these methods will do.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Tuple, Type

from epochmeter import _state
from epochmeter._frameworks.trainer_events import TrainerEvents
from epochmeter._frameworks.wrapping import telling_failure, unseen, wrap
from epochmeter._quiet import guarded


class PaddleNlpEvents(TrainerEvents):
    framework = "paddlenlp"
    loader_hook = "paddle_loop"

    def on_init_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Nothing to tell; the Trainer calls every one of its events."""

    on_substep_end = on_load_data_end = on_optimizer_begin = on_optimizer_end = on_init_end
    on_save_end = on_init_end


@functools.lru_cache(maxsize=None)
def callback_class() -> Type[Any]:
    """Makes the class, on the Trainer's own where that is imported already."""
    bases: Tuple[Any, ...] = (PaddleNlpEvents,)
    for name in ("paddlenlp.trainer.trainer_callback", "paddleformers.trainer.trainer_callback"):
        base = getattr(sys.modules.get(name), "TrainerCallback", None)
        if base is not None:
            bases = (PaddleNlpEvents, base)
            break
    return type(
        "PaddleNLPCallback",
        bases,
        {"__module__": "epochmeter", "__doc__": "Records the training of a `paddlenlp.Trainer`."},
    )


@guarded
def _add(handler: Any) -> None:
    """Adds our callback to the Trainer's list, unless the user's own list has one."""
    if any(isinstance(member, PaddleNlpEvents) for member in handler.callbacks):
        return
    if _state.join() is not None:
        handler.callbacks.append(callback_class()())


def _adding(original: Any) -> Any:
    # At the first event: the script may add one of its own after the Trainer was made.
    def on_train_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        _add(self)
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise

    return on_train_begin


def install(module: Any) -> None:
    if hasattr(module, "CallbackHandler") and module.__name__.endswith(".trainer_callback"):
        wrap(module.CallbackHandler, "on_train_begin", _adding)
    else:
        wrap(module.Trainer, "train", telling_failure)
