# SPDX-License-Identifier: Apache-2.0
"""Real PaddlePaddle: what is recorded of `Model.fit` is what Paddle itself reports."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any, Dict, List

import pytest

from client_support import FakeRecorder, run_python

for needed in ("paddle", "sklearn"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

pytestmark = pytest.mark.slow

# Writes what Paddle's own callbacks are told to a file: the truth of these tests.
TRAIN = """
import json, os, sys
import paddle
from paddle.io import DataLoader, Dataset
from sklearn.datasets import load_digits

x, y = load_digits(return_X_y=True)
x, y = (x / 16.0).astype("float32"), y.astype("int64")[:, None]

class Digits(Dataset):
    def __init__(self, first, last):
        self.first, self.last = first, last
    def __getitem__(self, i):
        return x[self.first + i], y[self.first + i]
    def __len__(self):
        return self.last - self.first

class Truth(paddle.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = {"epochs": [], "steps": [], "evals": [], "ends": []}
    def note(self, where, logs):
        self.seen[where].append({k: v[0] if isinstance(v, list) else v for k, v in logs.items()})
    def on_epoch_begin(self, epoch, logs=None): self.seen["epochs"].append(epoch)
    def on_train_batch_end(self, step, logs=None): self.note("steps", logs)
    def on_epoch_end(self, epoch, logs=None): self.note("ends", logs)
    def on_eval_end(self, logs=None): self.note("evals", logs)

paddle.seed(1)
net = paddle.nn.Sequential(paddle.nn.Linear(64, 32), paddle.nn.ReLU(), paddle.nn.Linear(32, 10))
model = paddle.Model(net)
model.prepare(
    paddle.optimizer.Adam(0.01, parameters=net.parameters()),
    paddle.nn.CrossEntropyLoss(), paddle.metric.Accuracy(topk=TOPK),
)
truth = Truth()
callbacks = [truth]
EXTRA
kept = list(callbacks)
model.fit(Digits(0, 1000), Digits(1000, 1797), batch_size=64, epochs=3, verbose=0,
          callbacks=callbacks, num_workers=WORKERS)
assert callbacks == kept
AFTER
print(json.dumps(truth.seen, default=float))
"""


def train(
    recorder: FakeRecorder, extra: str = "", after: str = "", topk: str = "(1,)", workers: int = 0,
    **run: Any,
) -> Dict[str, List[Any]]:  # fmt: skip
    script = (
        TRAIN.replace("EXTRA", extra).replace("AFTER", after)
        .replace("TOPK", topk).replace("WORKERS", str(workers))
    )  # fmt: skip
    done = run_python(script, recorder.path, **run)
    assert done.returncode == 0, done.stderr
    assert "epochmeter" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check_equal(recorder: FakeRecorder, truth: Dict[str, List[Any]], names: List[str]) -> None:
    """Epochs, steps, losses and evaluations are Paddle's own, no more and no fewer."""
    steps = recorder.events("step")
    per_epoch = len(truth["steps"]) // 3
    assert len(steps) == len(truth["steps"]) == 48
    assert [step["step"] for step in steps] == list(range(1, 49))
    assert [step["epoch"] for step in steps] == sorted(truth["epochs"] * per_epoch)
    for step, said in zip(steps, truth["steps"]):
        assert step["scalars"] == {name: pytest.approx(said[name], rel=0, abs=0) for name in names}
        assert step["batch_size"] == said["batch_size"]
        assert step["step_in_epoch"] == said["step"] + 1
        assert 0 < step["data_wait_s"] < step["duration_s"]
    begins, ends = recorder.events("epoch_begin"), recorder.events("epoch_end")
    assert [begin["epoch"] for begin in begins] == truth["epochs"] == [0, 1, 2]
    assert {(b["epoch_base"], b["epoch_from"]) for b in begins} == {(0, "framework")}
    assert [end["steps"] for end in ends] == [per_epoch] * 3
    assert [end["scalars"] for end in ends] == [{n: s[n] for n in names} for s in truth["ends"]]
    evals = recorder.events("phase_end")
    assert [(e["phase"], e["epoch"]) for e in evals] == [("eval", epoch) for epoch in range(3)]
    assert [e["scalars"] for e in evals] == [{n: s[n] for n in names} for s in truth["evals"]]
    for end, evaluation in zip(ends, recorder.events("phase_begin")):
        assert end["t_ns"] <= evaluation["t_ns"]
    begin, end = recorder.events("train_begin", "train_end")
    assert (begin["epochs"], begin["steps_per_epoch"], begin["epoch_base"]) == (3, per_epoch, 0)
    assert end["status"] == "completed"
    assert {event["dropped"] for event in recorder.events()} == {0}


def test_fit_is_recorded_without_a_line_in_the_script(recorder: FakeRecorder) -> None:
    truth = train(recorder, bootstrap=True)
    check_equal(recorder, truth, ["loss", "acc"])
    hello = recorder.events("hello")[0]
    assert hello["versions"]["paddle"].startswith(("2.", "3."))


def test_fit_with_data_workers_speaks_with_one_voice(recorder: FakeRecorder) -> None:
    truth = train(recorder, bootstrap=True, workers=2)
    check_equal(recorder, truth, ["loss", "acc"])
    assert len({event["pid"] for event in recorder.events()}) == 1


def test_several_metrics_keep_paddles_names(recorder: FakeRecorder) -> None:
    truth = train(recorder, bootstrap=True, topk="(1, 5)")
    check_equal(recorder, truth, ["loss", "acc_top1", "acc_top5"])


CALLBACK = "import epochmeter; callbacks.append(epochmeter.PaddleCallback())"


def test_callback_in_the_script_records_the_same(recorder: FakeRecorder) -> None:
    check_equal(recorder, train(recorder, CALLBACK), ["loss", "acc"])


def test_callback_and_hook_together_record_once(recorder: FakeRecorder) -> None:
    check_equal(recorder, train(recorder, CALLBACK, bootstrap=True), ["loss", "acc"])


def test_switched_off_emits_nothing(recorder: FakeRecorder) -> None:
    truth = train(recorder, CALLBACK, bootstrap=False, EPOCHMETER="0")
    assert len(truth["steps"]) == 48
    train(recorder, bootstrap=True, EPOCHMETER="0")
    assert recorder.events() == []


def test_results_are_the_same_with_and_without_us(recorder: FakeRecorder) -> None:
    alone = train(recorder, EPOCHMETER="0")
    assert train(recorder, bootstrap=True) == alone


def test_evaluate_on_its_own_is_a_phase_of_no_epoch(recorder: FakeRecorder) -> None:
    truth = train(
        recorder,
        after="result = model.evaluate(Digits(1000, 1797), batch_size=64, verbose=0)\n"
        "truth.seen['alone'] = [result['loss'][0], result['acc']]",
        bootstrap=True,
    )
    last = recorder.events("phase_end")[-1]
    assert "epoch" not in last
    assert [last["scalars"]["loss"], last["scalars"]["acc"]] == truth["alone"]


def test_second_fit_is_a_training_of_its_own(recorder: FakeRecorder) -> None:
    train(
        recorder,
        after="model.fit(Digits(0, 128), batch_size=64, epochs=1, verbose=0)",
        bootstrap=True,
    )
    assert [e["epochs"] for e in recorder.events("train_begin")] == [3, 1]
    assert [step["step"] for step in recorder.events("step")][-2:] == [1, 2]


def test_failing_fit_is_a_failed_training_with_paddles_own_error(recorder: FakeRecorder) -> None:
    broken = "class Broken(paddle.callbacks.Callback):\n" \
        "    def on_train_batch_end(self, step, logs=None):\n" \
        "        if step == 5: raise RuntimeError('boom')\n" \
        "callbacks.append(Broken())"  # fmt: skip
    script = TRAIN.replace("EXTRA", broken).replace("AFTER", "")
    script = script.replace("TOPK", "(1,)").replace("WORKERS", "0")
    done = run_python(script, recorder.path, bootstrap=True)
    assert done.returncode == 1 and "RuntimeError: boom" in done.stderr
    assert "epochmeter" not in done.stderr.split("Traceback")[0]
    assert recorder.events("exception")[0]["message"] == "boom"
    assert recorder.events("epoch_end")[0]["partial"] is True
    assert recorder.events("train_end")[0]["status"] == "failed"
    # The step that raised had not ended for us, who come last.
    assert len(recorder.events("step")) == 5


def test_plain_loop_with_paddle_sends_no_allocator_on_a_cpu(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    script = (
        "import paddle, epochmeter\n"
        "for _ in epochmeter.steps([1, 2], epoch=0): paddle.ones([2]) * 2\n"
        "print(paddle.base.framework._global_expected_place_)"
    )
    done = run_python(script, recorder.path)
    assert done.returncode == 0 and "epochmeter" not in done.stderr
    assert recorder.events("memory") == []
    assert not any("memory" in step for step in recorder.events("step"))
