# SPDX-License-Identifier: Apache-2.0
"""steps(), epochs(), phase(), log() and mark() as a receiver sees them."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any, Iterator, List

import pytest

import epochmeter
from client_support import FakeRecorder


class Loader:
    """Gives arrays of a shape after a wait, like a data loader."""

    def __init__(self, sizes: List[int], batch_size: int, wait_s: float = 0.0) -> None:
        self.sizes, self.batch_size, self.wait_s = sizes, batch_size, wait_s

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Any]:
        for size in self.sizes:
            time.sleep(self.wait_s)
            yield (Array(size), Array(size))


class Array:
    def __init__(self, size: int) -> None:
        self.shape = (size, 3)


def test_step_times_the_wait_for_data_and_the_whole_step(client: FakeRecorder) -> None:
    for _ in epochmeter.steps(Loader([8, 8, 5], 8, wait_s=0.03), epoch=0):
        time.sleep(0.02)
    steps = client.events("step")
    assert [step["step"] for step in steps] == [1, 2, 3]
    assert [step["step_in_epoch"] for step in steps] == [1, 2, 3]
    assert [step["batch_size"] for step in steps] == [8, 8, 5]
    for step in steps:
        assert 0.03 <= step["data_wait_s"] < 0.05
        assert step["data_wait_s"] + 0.02 <= step["duration_s"] < 0.08
    begin, end = client.events("epoch_begin", "epoch_end")
    total = sum(step["duration_s"] for step in steps)
    assert total <= end["duration_s"] < total + 0.04
    assert begin["epoch"] == 0 and end["steps"] == 3
    assert client.events("train_begin")[0]["steps_per_epoch"] == 3


def test_values_of_each_step_are_its_own_however_they_are_named(client: FakeRecorder) -> None:
    odd = {'a%d %% "b"\\': 0.5, "损失": 12345.678, "n": 3}
    logged: List[Any] = [
        {"loss": 0.12345600128173828},
        {"loss": -1e-300},
        {"loss": float("nan"), "lr": 0.1},
        {"loss": float("-inf")},
        {},
        odd,
        {key: -value for key, value in odd.items()},
        {"n": 2**63, "loss": True},
        {"n": -(2**63), "loss": 1},
        {"text": "no number"},
        {"loss": 0.25},
    ]
    for values in epochmeter.steps(logged, epoch=3):
        epochmeter.log(values)
    expected = [dict(values) for values in logged]
    expected[2]["loss"], expected[3]["loss"] = "NaN", "-Infinity"
    expected[7] = {"n": float(2**63), "loss": 1.0}
    expected[9] = {}
    steps = client.events("step")
    assert [step.get("scalars", {}) for step in steps] == expected
    assert [list(step.get("scalars", {})) for step in steps] == [list(v) for v in expected]
    assert [step["step_in_epoch"] for step in steps] == list(range(1, len(logged) + 1))
    assert all(step["epoch"] == 3 and step["data_wait_s"] < step["duration_s"] for step in steps)


def test_values_are_told_once_and_only_the_last_of_a_name(client: FakeRecorder) -> None:
    for number in epochmeter.steps(range(4), epoch=0):
        epochmeter.log(loss=0.5, lr=0.1)
        if number % 2:
            epochmeter.log({"lr": float("inf")}, loss=float(number))
    first, second = {"loss": 0.5, "lr": 0.1}, {"loss": 1.0, "lr": "Infinity"}
    found = [step["scalars"] for step in client.events("step")]
    assert found == [first, second, first, {**second, "loss": 3.0}]


def test_step_takes_256_values_and_no_more(client: FakeRecorder) -> None:
    for _ in epochmeter.steps(range(3), epoch=0):
        epochmeter.log({str(number): 0.5 for number in range(200)})
        epochmeter.log({str(number): 1.5 for number in range(100, 300)})
    found = [step["scalars"] for step in client.events("step")]
    assert [len(values) for values in found] == [256] * 3
    assert all(values["99"] == 0.5 and values["255"] == 1.5 for values in found)


def test_passes_are_counted_when_no_epoch_is_told_and_steps_go_on(client: FakeRecorder) -> None:
    for _ in range(2):
        list(epochmeter.steps([1, 2]))
    assert [(e["epoch"], e["epoch_from"]) for e in client.events("epoch_begin")] == [
        (0, "counted"),
        (1, "counted"),
    ]
    assert [step["step"] for step in client.events("step")] == [1, 2, 3, 4]
    assert "batch_size" not in client.events("step")[0]


def test_users_epoch_number_is_kept_and_its_base_only_claimed_when_seen(
    client: FakeRecorder,
) -> None:
    list(epochmeter.steps([1], epoch=57))
    begin = client.events("epoch_begin")[0]
    assert begin["epoch"] == 57 and begin["epoch_from"] == "user" and "epoch_base" not in begin


def test_epochs_steps_and_evaluation_belong_together(client: FakeRecorder) -> None:
    for epoch in epochmeter.epochs(2):
        for value in epochmeter.steps([1.0, 2.0]):
            epochmeter.log(loss=value)
        with epochmeter.phase("eval"):
            for _ in epochmeter.steps([1, 2, 3]):
                epochmeter.log(ignored_steps=1)
            epochmeter.log({"val/acc": 0.5 + epoch})
    assert [k for k in client.kinds() if k != "memory"] == ["hello", "train_begin"] + [
        "epoch_begin", "step", "step", "phase_begin", "phase_end", "epoch_end",
    ] * 2 + ["train_end"]  # fmt: skip
    assert [step["scalars"] for step in client.events("step")] == [{"loss": 1.0}, {"loss": 2.0}] * 2
    assert [(end["epoch"], end["scalars"]["val/acc"]) for end in client.events("phase_end")] == [
        (0, 0.5),
        (1, 1.5),
    ]
    assert client.events("train_end")[0]["status"] == "completed"
    assert not any("partial" in end for end in client.events("epoch_end"))


def test_loop_left_by_break_marks_the_last_step_and_the_epoch(client: FakeRecorder) -> None:
    for value in epochmeter.steps([1, 2, 3]):
        if value == 2:
            break
    assert ["partial" in step for step in client.events("step")] == [False, True]
    assert client.events("epoch_end")[0]["partial"] is True


def test_early_stopping_after_a_whole_epoch_is_not_partial(client: FakeRecorder) -> None:
    for _ in epochmeter.epochs(5):
        list(epochmeter.steps([1, 2]))
        break
    assert len(client.events("epoch_end")) == 1
    assert "partial" not in client.events("epoch_end")[0]
    epochmeter.stop()
    assert client.events("train_end")[0]["status"] == "exited"


def test_exceptions_of_loader_and_body_pass_unchanged(client: FakeRecorder) -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise LookupError("data")

    with pytest.raises(LookupError, match="data"):
        list(epochmeter.steps(broken()))
    with pytest.raises(ZeroDivisionError):
        for _ in epochmeter.steps([1, 2]):
            1 / 0
    with pytest.raises(KeyError):
        with epochmeter.phase("checkpoint"):
            raise KeyError("x")
    gc.collect()
    assert client.events("phase_end")[0]["failed"] is True
    assert [end["partial"] for end in client.events("epoch_end")] == [True, True]


def test_batch_is_not_kept_alive_while_the_next_one_loads(client: FakeRecorder) -> None:
    alive: List[int] = []
    seen: List[Any] = []

    def loader() -> Iterator[Array]:
        for _ in range(3):
            alive.append(sum(reference() is not None for reference in seen))
            array = Array(1)
            seen.append(weakref.ref(array))
            box = [array]
            del array
            yield box.pop()

    for batch in epochmeter.steps(loader()):
        del batch
    assert alive == [0, 0, 0]


def test_iterable_keeps_its_length_and_its_lack_of_one() -> None:
    assert len(epochmeter.steps([1, 2, 3])) == 3
    with pytest.raises(TypeError):
        len(epochmeter.steps(iter([1])))


def test_log_outside_a_step_is_an_event_with_its_place(client: FakeRecorder) -> None:
    list(epochmeter.steps([1, 2], epoch=4))
    epochmeter.log(acc=0.25)
    epochmeter.mark("half")
    scalar, mark = client.events("scalar", "mark")
    assert (scalar["epoch"], scalar["step"], scalar["scalars"]) == (4, 2, {"acc": 0.25})
    assert (mark["epoch"], mark["step"], mark["name"]) == (4, 2, "half")


def test_phase_inside_a_step_names_it_and_leaves_values_to_the_step(client: FakeRecorder) -> None:
    for _ in epochmeter.steps([1]):
        with epochmeter.phase("forward"):
            epochmeter.log(loss=2)
    end = client.events("phase_end")[0]
    assert end["step"] == 1 and end["phase"] == "forward" and "scalars" not in end
    assert client.events("step")[0]["scalars"] == {"loss": 2}


def test_stop_and_start_again_within_a_loop_do_not_mix(client: FakeRecorder) -> None:
    for value in epochmeter.steps([1, 2, 3]):
        if value == 1:
            epochmeter.stop()
    assert [k for k in client.kinds()] == [
        "hello",
        "train_begin",
        "epoch_begin",
        "epoch_end",
        "train_end",
    ]
    epochmeter.mark("nobody")
    assert len(client.events()) == 5
    assert epochmeter.start()
    assert client.kinds()[5:] == ["hello"]


def test_our_own_fault_is_said_once_and_never_raised(
    client: FakeRecorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from epochmeter import _quiet, _recorder

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("our bug")

    monkeypatch.setattr(_recorder.Recorder, "step_end", fail)
    monkeypatch.setattr(_quiet, "_faults", 0)
    assert list(epochmeter.steps(range(50))) == list(range(50))
    assert capsys.readouterr().err.count("our bug") == 1
    assert _quiet.broken()
