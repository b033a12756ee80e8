# SPDX-License-Identifier: Apache-2.0
"""The callback of PaddleNLP's Trainer, called in the order and with the arguments of that Trainer."""

from __future__ import annotations

import sys
import types
from typing import Any, Dict, Iterator, List

import pytest

import epochmeter
from client_support import FakeRecorder
from epochmeter import _quiet
from epochmeter._frameworks import paddlenlp


class CallbackHandler:
    """Calls each of its callbacks with everything, as PaddleNLP's does."""

    def __init__(self, callbacks: List[Any]) -> None:
        self.callbacks = list(callbacks)

    def call_event(self, event: str, *place: Any, **more: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(*place, model=None, tokenizer=None, optimizer=None, **more)

    def on_train_begin(self, *place: Any) -> None:
        self.call_event("on_train_begin", *place)


class Trainer:
    """Epochs of 4 batches, 2 of them a step, a log every step, an evaluation every epoch."""

    def __init__(self, callbacks: List[Any]) -> None:
        self.handler = CallbackHandler(callbacks)
        self.state = types.SimpleNamespace(
            epoch=0.0, global_step=0, max_steps=4, num_train_epochs=2, log_history=[]
        )
        self.args = types.SimpleNamespace(
            max_steps=-1, train_batch_size=8, gradient_accumulation_steps=2
        )
        self.fail_at = 0

    def tell(self, event: str, **more: Any) -> None:
        self.handler.call_event(event, self.args, self.state, object(), **more)

    def log(self, values: Dict[str, Any]) -> None:
        values = {**values, "global_step": self.state.global_step, "epoch": self.state.epoch}
        self.state.log_history.append(values)
        self.tell("on_log", logs=values)

    def one_step(self) -> None:
        self.tell("on_load_data_end", inputs={})
        self.tell("on_step_begin")
        self.tell("on_substep_end")
        self.tell("on_load_data_end", inputs={})
        if self.state.global_step + 1 == self.fail_at:
            raise RuntimeError("out of memory")
        self.tell("on_optimizer_begin", scaler=None)
        self.tell("on_optimizer_end", scaler=None)
        self.state.global_step += 1
        self.state.epoch += 0.5
        self.tell("on_step_end")
        self.log({"loss": 1.0 / self.state.global_step, "learning_rate": 0.1})

    def train(self) -> None:
        self.tell("on_init_end")
        self.handler.on_train_begin(self.args, self.state, object())
        for _ in range(2):
            self.tell("on_epoch_begin")
            self.one_step()
            self.one_step()
            self.tell("on_epoch_end")
            self.tell("on_prediction_step")
            metrics = {"eval_loss": self.state.epoch, "epoch": self.state.epoch}
            self.tell("on_evaluate", metrics=metrics)
            self.tell("on_save")
        self.tell("on_train_end")


@pytest.fixture
def hooked(client: FakeRecorder, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This Trainer in the place of PaddleNLP's, with our hooks in it."""
    for name, attribute in (("trainer_callback", CallbackHandler), ("trainer", Trainer)):
        module = types.ModuleType("paddlenlp.trainer." + name)
        # A class of its own for each test: the hooks stay in it.
        own = type(attribute.__name__, (attribute,), dict(vars(attribute)))
        setattr(module, attribute.__name__, own)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(globals(), attribute.__name__, own)
        paddlenlp.install(module)
    yield


def check(client: FakeRecorder, trainer: Trainer) -> None:
    steps = client.events("step")
    assert [step["step"] for step in steps] == [1, 2, 3, 4]
    assert [step["epoch"] for step in steps] == [0, 0, 1, 1]
    assert [(e["epoch"], e["steps"]) for e in client.events("epoch_end")] == [(0, 2), (1, 2)]
    begin = client.events("train_begin")[0]
    assert (begin["framework"], begin["source"]) == ("paddlenlp", "framework")
    assert (begin["epochs"], begin["steps_per_epoch"], begin["batch_size"]) == (2, 2, 16)
    logged = [event["scalars"]["loss"] for event in client.events("scalar", "step", "epoch_end")
              if "loss" in event.get("scalars", {})]  # fmt: skip
    assert logged == [entry["loss"] for entry in trainer.state.log_history]
    evaluations = [e for e in client.events("phase_end") if e["phase"] == "eval"]
    assert [e["scalars"] for e in evaluations] == [{"loss": 1.0}, {"loss": 2.0}]
    assert [end["status"] for end in client.events("train_end")] == ["completed"]


def test_callback_tells_steps_losses_and_evaluations(client: FakeRecorder) -> None:
    trainer = Trainer([epochmeter.PaddleNLPCallback()])
    trainer.train()
    check(client, trainer)


def test_training_without_a_callback_is_recorded_by_the_hook(
    client: FakeRecorder, hooked: None
) -> None:
    trainer = Trainer([])
    trainer.train()
    check(client, trainer)


def test_callback_and_hook_together_record_once(client: FakeRecorder, hooked: None) -> None:
    trainer = Trainer([epochmeter.PaddleNLPCallback()])
    trainer.train()
    check(client, trainer)


def test_figures_of_the_whole_training_belong_to_no_epoch(client: FakeRecorder) -> None:
    trainer = Trainer([epochmeter.PaddleNLPCallback()])
    callback = trainer.handler.callbacks[0]
    callback.on_train_begin(trainer.args, trainer.state, object())
    trainer.tell("on_epoch_begin")
    trainer.one_step()
    trainer.tell("on_prediction_step")
    trainer.tell("on_evaluate", metrics={"eval_loss": 1.0, "eval_runtime": 0.5})
    trainer.tell("on_epoch_end")
    trainer.log({"train_runtime": 9.0, "train_loss": 0.5, "total_flos": 7})
    trainer.tell("on_train_end")
    apart = {"eval_runtime": 0.5, "train_runtime": 9.0, "train_loss": 0.5, "total_flos": 7}
    last = client.events()[-1]
    assert (last["kind"], "epoch" in last) == ("scalar", False)
    assert last["scalars"].items() >= apart.items()
    for event in client.events()[:-1]:
        assert not set(apart) & set(event.get("scalars", {})), event


def test_broken_hook_of_the_loaders_costs_no_epoch_and_no_step(
    client: FakeRecorder, hooked: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("our bug")

    broken = types.SimpleNamespace(take_waiting=fail)
    monkeypatch.setitem(sys.modules, "epochmeter._frameworks.paddle_loop", broken)
    monkeypatch.setattr(_quiet, "_faults", 0)
    trainer = Trainer([])
    trainer.train()
    check(client, trainer)
    assert _quiet.faults() == _quiet.MAX_FAULTS_OF_ONE, "and stops being called"


def test_failure_that_leaves_train_ends_the_training(client: FakeRecorder, hooked: None) -> None:
    trainer = Trainer([])
    trainer.fail_at = 3
    with pytest.raises(RuntimeError, match="out of memory"):
        trainer.train()
    end = client.events("train_end")[0]
    assert (end["status"], end["type"], end["message"]) == ("failed", "RuntimeError", "out of memory")
    assert len(client.events("step")) == 2 and client.events("exception") == []
