# SPDX-License-Identifier: Apache-2.0
"""Plain loops as hooks see them: what counts as a step, an epoch and its data wait."""

from __future__ import annotations

import contextlib
import gc
import time
from typing import Any, Iterator, List, Optional

import pytest

import epochmeter
from client_support import FakeRecorder
from epochmeter import _plain, _quiet, _state
from epochmeter._frameworks.wrapping import beginning_pass, timing_pass, wrap


class Optimizer:
    """Anything that can be held weakly."""


class Batch:
    def __init__(self, size: int) -> None:
        self.shape = (size, 2)


def loader_class(loop: _plain.PlainLoop) -> Any:
    class Batches:
        def __init__(self, loader: Any) -> None:
            self.left = list(loader.sizes)
            self.wait_s = loader.wait_s

        def __iter__(self) -> "Batches":
            return self

        def __next__(self) -> Batch:
            time.sleep(self.wait_s)
            if not self.left:
                raise StopIteration
            return Batch(self.left.pop(0))

    class Loader:
        def __init__(self, sizes: List[int], wait_s: float = 0.0) -> None:
            self.sizes, self.wait_s, self.batch_size = sizes, wait_s, max(sizes)

        def __len__(self) -> int:
            return len(self.sizes)

        def __iter__(self) -> Batches:
            return Batches(self)

    wrap(Loader, "__iter__", beginning_pass(loop))
    wrap(Batches, "__next__", timing_pass)
    return Loader


class World:
    """A framework with a loader and optimizers, hooked."""

    def __init__(self, client: FakeRecorder) -> None:
        self.client = client
        self.loop = _plain.PlainLoop("test")
        self.loader = loader_class(self.loop)
        self.optimizer = Optimizer()

    def step(self, optimizer: Optional[Optimizer] = None) -> None:
        self.loop.stepped(optimizer or self.optimizer)

    def sent(self) -> None:
        """Waits until all that was told has left; a burst waits for the next event."""
        recorder = _state.current()
        while recorder is not None and not recorder._sender.flush():
            time.sleep(0.001)

    def steps(self, name: str) -> List[Any]:
        self.sent()
        return [step.get(name) for step in self.client.events("step")]

    def ends(self) -> List[Any]:
        self.sent()
        return [(e["epoch"], e["steps"], "partial" in e) for e in self.client.events("epoch_end")]


@pytest.fixture
def world(client: FakeRecorder) -> Iterator[World]:
    yield World(client)


def test_epochs_are_the_passes_that_steps_consume(world: World) -> None:
    train, held_out = world.loader([8, 8, 5]), world.loader([4, 4])
    for _ in range(2):
        for _ in train:
            world.step()
        for _ in held_out:
            pass
    assert world.steps("step") == [1, 2, 3, 4, 5, 6]
    assert world.steps("epoch") == [0, 0, 0, 1, 1, 1]
    assert world.steps("batch_size") == [8, 8, 5] * 2
    assert world.ends() == [(0, 3, False), (1, 3, False)]
    begin = world.client.events("train_begin")[0]
    assert (begin["source"], begin["framework"], begin["steps_per_epoch"]) == ("hook", "test", 3)
    assert world.client.events("epoch_begin")[0]["epoch_from"] == "counted"


def test_wait_for_data_is_the_time_inside_the_loader(world: World) -> None:
    for _ in world.loader([1, 1, 1], wait_s=0.03):
        time.sleep(0.02)
        world.step()
    for wait, duration in zip(world.steps("data_wait_s"), world.steps("duration_s")):
        assert wait >= 0.03 and duration >= wait + 0.02


def test_accumulated_batches_are_one_step_and_what_is_left_over_is_none(world: World) -> None:
    train = world.loader([4, 4, 4, 4, 4])
    for _ in range(2):
        for number, _ in enumerate(train, 1):
            if number % 2 == 0:
                world.step()
    assert world.steps("batch_size") == [8, 8] * 2
    world.loop._close_epoch()
    assert world.ends() == [(0, 2, False), (1, 2, False)]


def test_step_after_the_last_batch_belongs_to_the_epoch(world: World) -> None:
    for _ in range(2):
        for number, _ in enumerate(world.loader([4, 4, 4]), 1):
            if number % 2 == 0:
                world.step()
        world.step()
    assert world.steps("epoch") == [0, 0, 1, 1]
    assert world.steps("batch_size") == [8, 4] * 2
    assert world.ends() == [(0, 2, False), (1, 2, False)]


def test_batches_fetched_ahead_stay_in_their_epoch(world: World) -> None:
    for _ in range(2):
        batches = iter(world.loader([4, 4, 4, 4]))
        ahead: Any = next(batches)
        while ahead is not None:
            ahead = next(batches, None)
            world.step()
    assert world.steps("epoch") == [0, 0, 0, 0, 1, 1, 1, 1]
    assert world.ends() == [(0, 4, False), (1, 4, False)]


def test_validation_inside_an_epoch_ends_no_epoch(world: World) -> None:
    held_out = world.loader([4, 4, 4])
    for _ in world.loader([8] * 4):
        world.step()
        for number, _ in enumerate(held_out):
            if number == 1:
                break
    assert world.ends() == [(0, 4, False)]
    assert world.steps("batch_size") == [8] * 4


def test_validation_before_training_is_no_epoch(world: World) -> None:
    for _ in world.loader([4, 4]):
        break
    for _ in world.loader([8, 8]):
        world.step()
    assert world.steps("batch_size") == [8, 8] and world.ends() == [(0, 2, False)]


def test_two_loaders_side_by_side_are_one_epoch(world: World) -> None:
    first, second = world.loader([8, 8, 8]), world.loader([4, 4])
    others = iter(second)
    for _ in first:
        if next(others, None) is None:
            others = iter(second)
            next(others)
        world.step()
    assert world.steps("epoch") == [0, 0, 0] and world.ends() == [(0, 3, False)]


def test_loop_left_early_is_a_partial_epoch_that_ends_at_its_last_step(world: World) -> None:
    for _ in range(2):
        for number, _ in enumerate(world.loader([4] * 5)):
            if number == 2:
                break
            world.step()
        time.sleep(0.03)
    world.loop._close_epoch()
    assert world.ends() == [(0, 2, True), (1, 2, True)]
    ends = world.client.events("epoch_end")
    steps = world.client.events("step")
    assert ends[0]["t_ns"] == steps[1]["t_ns"]


def test_of_several_optimizers_the_first_counts(world: World) -> None:
    other = Optimizer()
    for _ in world.loader([4, 4, 4]):
        world.step()
        world.step(other)
        world.step(other)
    assert world.steps("step") == [1, 2, 3]


def test_next_optimizer_leads_when_the_first_is_gone(world: World) -> None:
    for _ in range(2):
        one: Optional[Optimizer] = Optimizer()
        for _ in world.loader([4, 4]):
            world.step(one)
        one = None
        gc.collect()
    assert world.steps("step") == [1, 2, 3, 4]


def test_optimizer_that_rests_long_no_longer_leads(world: World) -> None:
    other = Optimizer()
    world.step()
    for _ in range(_plain.LEADER_RESTS + 5):
        world.step(other)
    assert world.steps("step")[-1] == 1 + _plain.LEADER_RESTS + 5


def test_training_after_another_is_told_although_the_first_optimizer_lives(world: World) -> None:
    other = Optimizer()
    for optimizer, size in ((world.optimizer, 8), (other, 4), (world.optimizer, 8)):
        for _ in range(2):
            for _ in world.loader([size] * 5, wait_s=0.002):
                world.loop.loss(size / 2)
                world.step(optimizer)
    assert world.steps("step") == list(range(1, 31))
    assert world.steps("epoch") == [epoch for epoch in range(6) for _ in range(5)]
    assert world.steps("batch_size") == [8] * 10 + [4] * 10 + [8] * 10
    assert world.steps("scalars") == [{"loss": s / 2} for s in world.steps("batch_size")]
    assert world.ends() == [(epoch, 5, False) for epoch in range(6)]
    for step in world.client.events("step"):
        assert 0.002 <= step["data_wait_s"] <= step["duration_s"] < 0.1
    times = world.steps("t_ns")
    assert times == sorted(times)


def test_training_after_another_that_is_left_early_is_told_at_the_end(world: World) -> None:
    other = Optimizer()
    for _ in world.loader([8] * 3):
        world.step()
    for number, _ in enumerate(world.loader([4] * 9)):
        if number == 5:
            break
        world.step(other)
    epochmeter.stop()
    assert world.ends() == [(0, 3, False), (1, 5, True)]


def test_second_optimizer_inside_an_epoch_of_the_first_takes_over_nothing(world: World) -> None:
    other = Optimizer()
    for _ in range(2):
        for _ in world.loader([8] * 3):
            world.step()
            for _ in world.loader([2] * 4):
                world.step(other)
    epochmeter.stop()
    assert world.steps("batch_size") == [8] * 6
    assert world.ends() == [(0, 3, False), (1, 3, False)]


def test_each_of_three_trainings_is_told_when_two_optimizers_made_the_first(world: World) -> None:
    second, third = Optimizer(), Optimizer()
    for _ in world.loader([8] * 3):
        world.step()
        world.step(second)
    for _ in world.loader([4] * 3):
        world.loop.loss(0.5)
        world.step(third)
    epochmeter.stop()
    assert world.steps("batch_size") == [8] * 3 + [4] * 3
    assert world.ends() == [(0, 3, False), (1, 3, False)]


def test_long_rest_of_the_leader_loses_no_step(world: World) -> None:
    other = Optimizer()
    for number, _ in enumerate(world.loader([4] * 200)):
        world.step(world.optimizer if number < 10 else other)
    assert world.steps("step") == list(range(1, 201))
    assert world.steps("batch_size") == [4] * 200
    assert world.ends() == [(0, 200, False)]


def test_loop_without_a_loader_has_steps_and_claims_nothing_more(world: World) -> None:
    world.step()
    world.step()
    first, second = world.client.events("step")
    assert "duration_s" not in first and second["duration_s"] > 0
    assert not {"epoch", "data_wait_s", "batch_size"} & {*first, *second}
    assert world.client.events("epoch_begin") == []


def test_data_read_into_memory_beforehand_is_no_epoch(world: World) -> None:
    batches = list(world.loader([4, 4, 4]))
    for _ in batches:
        world.step()
    assert world.client.events("epoch_begin") == [] and len(world.client.events("step")) == 3


def test_loss_is_told_when_it_is_the_only_one_of_its_step(world: World) -> None:
    for number, _ in enumerate(world.loader([4, 4, 4])):
        for _ in range(number):
            world.loop.loss(0.5 + number)
        world.step()
    assert world.steps("scalars") == [None, {"loss": 1.5}, None]


def test_loss_of_a_remainder_of_accumulated_ones_is_a_part_and_not_told(world: World) -> None:
    for _ in range(2):
        for number, _ in enumerate(world.loader([4] * 5), 1):
            world.loop.loss(0.25)
            if number % 2 == 0 or number == 5:
                world.step()
    assert world.steps("scalars") == [None] * 6


def test_the_scripts_own_steps_go_before_hooks(world: World) -> None:
    for _ in epochmeter.steps(world.loader([4, 4]), epoch=7):
        world.step()
    assert world.steps("step") == [1, 2] and world.steps("epoch") == [7, 7]
    assert [e["source"] for e in world.client.events("train_begin")] == ["client"]


def test_epochs_of_the_script_get_the_steps_of_the_hooks(world: World) -> None:
    for _ in epochmeter.epochs(2):
        for _ in world.loader([4, 4]):
            world.step()
        with epochmeter.phase("eval"):
            for _ in world.loader([2, 2, 2]):
                pass
    assert world.steps("epoch") == [0, 0, 1, 1]
    assert world.steps("batch_size") == [4, 4] * 2
    assert world.ends() == [(0, 2, False), (1, 2, False)]
    assert [e["source"] for e in world.client.events("train_begin")] == ["client"]


def test_evaluation_between_two_steps_is_no_part_of_the_next(world: World) -> None:
    for number, _ in enumerate(world.loader([4, 4, 4])):
        world.step()
        if number == 1:
            with epochmeter.phase("eval"):
                time.sleep(0.3)
    assert max(world.steps("duration_s")) < 0.3


@pytest.mark.parametrize("phases", [["eval"], ["checkpoint"], ["eval", "checkpoint"]])
def test_evaluation_inside_a_turn_of_steps_is_no_part_of_the_step(
    world: World, phases: List[str]
) -> None:
    for number, _ in enumerate(epochmeter.steps(range(3), epoch=0)):
        time.sleep(0.02)
        if number == 1:
            with contextlib.ExitStack() as stack:
                for phase in phases:
                    stack.enter_context(epochmeter.phase(phase))
                time.sleep(0.3)
            time.sleep(0.02)
    durations = world.steps("duration_s")
    assert max(durations) < 0.3 and durations[1] >= 0.04
    assert world.client.events("phase_end")[0]["duration_s"] >= 0.3


def test_own_steps_that_come_later_take_over(world: World) -> None:
    for _ in world.loader([4]):
        world.step()
    for _ in epochmeter.steps(world.loader([4, 4]), epoch=1):
        world.step()
    assert [e["source"] for e in world.client.events("train_begin")] == ["hook", "client"]
    assert world.steps("step") == [1, 1, 2]


def test_frameworks_own_training_silences_plain_hooks(world: World) -> None:
    recorder = _state.current()
    assert recorder is not None
    recorder.train_begin("keras", "framework")
    for _ in world.loader([4, 4]):
        world.step()
    assert world.client.events("step") == []
    recorder.train_end("completed")
    for _ in world.loader([4, 4]):
        world.step()
    assert world.steps("batch_size") == [4, 4]


def test_values_logged_in_a_hooked_step_belong_to_it(world: World) -> None:
    for number, _ in enumerate(world.loader([4, 4, 4])):
        epochmeter.log(loss=number)
        world.step()
    # Before the first step there is no training yet that a value could belong to.
    assert world.steps("scalars") == [None, {"loss": 1}, {"loss": 2}]
    assert world.client.events("scalar")[0]["scalars"] == {"loss": 0}


def test_exit_after_left_over_batches_leaves_a_whole_epoch(world: World) -> None:
    for number, _ in enumerate(world.loader([4] * 3), 1):
        if number == 2:
            world.step()
    epochmeter.stop()
    assert world.ends() == [(0, 1, False)]
    assert world.client.events("train_end")[0]["status"] == "exited"


def test_exception_of_the_loader_passes_and_ends_no_epoch_as_whole(world: World) -> None:
    def broken(self: Any) -> Any:
        raise OSError("disk")

    train = world.loader([4, 4])
    batches = iter(train)
    next(batches)
    world.step()
    type(batches).__next__ = broken  # type: ignore[method-assign]
    with pytest.raises(OSError, match="disk"):
        next(batches)
    epochmeter.stop()
    assert world.ends() == [(0, 1, True)]


def test_fault_of_a_hook_is_said_once_and_never_raised(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("our bug")

    monkeypatch.setattr(_quiet, "_faults", 0)
    monkeypatch.setattr(world.loop, "_step", fail)
    for _ in world.loader([4] * 5):
        world.step()
    assert capsys.readouterr().err.count("our bug") == 1
