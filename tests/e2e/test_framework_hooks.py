# SPDX-License-Identifier: Apache-2.0
"""Real frameworks through the real binary: epochs, steps and losses are what they say themselves."""
import importlib.util
import json
import subprocess

import pytest
from conftest import PROGRAMS, ROOT, python

TENSORFLOW = ROOT / ".venv-tf" / "bin" / "python"

pytestmark = pytest.mark.slow
needs_paddle = pytest.mark.skipif(importlib.util.find_spec("paddle") is None, reason="paddle is not installed")
needs_tensorflow = pytest.mark.skipif(not TENSORFLOW.exists(), reason=f"no {TENSORFLOW}: run tools/setup")


class Recorded:
    """What a program wrote down itself, and what was recorded of it."""

    def __init__(self, tool, interpreter, program, *words, may_hang=False):
        truth = tool.tmp / "truth.json"
        try:
            done = tool.record(interpreter, PROGRAMS / program, truth, *words, timeout=60 if may_hang else 280)
        except subprocess.TimeoutExpired:
            if not may_hang:
                raise
            done = tool.record(interpreter, PROGRAMS / program, truth, *words, flags=["--force"], timeout=200)
        assert done.returncode == 0, done.stderr.decode()
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        self.truth = json.loads(truth.read_text())
        self.report = tool.report()
        self.rows = self.report["epochs"]
        events = tool.export_jsonl()
        self.steps = [e for e in events if e.get("event") == "step"]
        self.ends = [{"type": e.get("name"), **e["fields"]} for e in events if e.get("event") == "train_end"]
        self.source = self.report["run"]["progress_source"]

    def check_epochs(self, steps):
        assert [row["epoch"] for row in self.rows] == self.truth["epochs"]
        assert [row["steps"] for row in self.rows] == [steps] * len(self.rows)
        assert all(row["complete"] for row in self.rows)

    def check_losses(self):
        losses = [step["fields"]["scalar.loss"] for step in self.steps]
        assert losses == pytest.approx(self.truth["losses"], rel=0, abs=0)

    def scalars(self, name):
        return [row["scalars"][name] for row in self.rows]

    def evaluations(self, name):
        return [phase["scalars"][name] for row in self.rows for phase in row["phases"] if phase["phase"] == "eval"]


@needs_paddle
@pytest.mark.parametrize("mode, source", [("callback", "hook"), ("none", "hook")])
def test_paddle_fit(tool, mode, source):
    recorded = Recorded(tool, python(), "paddle_fit.py", mode)
    recorded.check_epochs(3)
    recorded.check_losses()
    assert recorded.source == source
    assert recorded.evaluations("loss") == recorded.truth["val_losses"]
    assert [row["samples"] for row in recorded.rows] == [40] * 3


@needs_paddle
@pytest.mark.parametrize("mode, workers, source", [("api", 0, "client"), ("none", 0, "hook"), ("none", 2, "hook")])
def test_paddle_plain_loop(tool, mode, workers, source):
    # PaddlePaddle forks its workers while threads of its own run: a worker may wait for ever for the lock of
    # Stat<HostMemoryStatAllocated0>, which one of these held.
    recorded = Recorded(tool, python(), "paddle_plain.py", mode, workers, may_hang=workers > 0)
    recorded.check_epochs(3)
    recorded.check_losses()
    assert recorded.source == source
    assert [row["samples"] for row in recorded.rows] == [40] * 3
    assert all(0 < row["data_wait_ratio"] < 1 for row in recorded.rows)


def check_keras(recorded, steps=10, validated=True):
    truth = recorded.truth
    recorded.check_epochs(steps)
    assert truth["iterations"] == steps * len(recorded.rows)
    assert recorded.scalars("loss") == truth["history"]["loss"]
    assert recorded.scalars("accuracy") == truth["history"]["accuracy"]
    if validated:
        assert recorded.evaluations("loss") == truth["history"]["val_loss"]
        assert recorded.evaluations("accuracy") == truth["history"]["val_accuracy"]
    assert recorded.source == "hook"
    assert [end["status"] for end in recorded.ends] == ["completed"]


@needs_tensorflow
@pytest.mark.parametrize("kinds", [["none"], ["callback"], ["legacy"], ["legacy", "callback"], ["mirrored"]])
def test_keras_fit(tool, kinds):
    recorded = Recorded(tool, TENSORFLOW, "keras_fit.py", *kinds)
    check_keras(recorded)
    recorded.check_losses()


@needs_tensorflow
@pytest.mark.parametrize("kinds", [["several"], ["several", "endless"]])
def test_keras_counts_the_steps_that_ran_in_one_go(tool, kinds):
    check_keras(Recorded(tool, TENSORFLOW, "keras_fit.py", *kinds))


@needs_tensorflow
def test_keras_fit_that_is_interrupted_or_fails_and_is_called_again(tool):
    recorded = Recorded(tool, TENSORFLOW, "keras_fit.py", "stop", "twice")
    first, second = recorded.ends
    assert (first["status"], first["type"]) == ("exited", "KeyboardInterrupt")
    assert second["status"] == "completed"
    assert [row["epoch"] for row in recorded.rows] == [1, 2, 3, 0, 1]
    assert [row["steps"] for row in recorded.rows] == [10, 10, 3, 10, 10]
    assert [row["complete"] for row in recorded.rows] == [True, True, False, True, True]
    assert recorded.scalars("loss")[3:] == recorded.truth["history"]["loss"]


@needs_tensorflow
def test_exception_that_leaves_fit_and_is_caught_is_no_uncaught_one(tool):
    recorded = Recorded(tool, TENSORFLOW, "keras_fit.py", "fail")
    assert len(recorded.ends) == 1
    end = recorded.ends[0]
    assert (end["status"], end["type"], end["message"]) == ("failed", "ValueError", "caught later")
    assert not [event for event in tool.export_jsonl() if event.get("event") == "exception"]


@needs_tensorflow
@pytest.mark.parametrize("mode, kind, source", [
    ("api", "function", "client"), ("none", "eager", "hook"), ("none", "function", "hook")])
def test_custom_tensorflow_loop(tool, mode, kind, source):
    recorded = Recorded(tool, TENSORFLOW, "tensorflow_loop.py", mode, kind)
    recorded.check_epochs(3)
    assert recorded.truth["iterations"] == 9
    assert recorded.source == source
    if kind == "eager" or mode == "api":
        recorded.check_losses()
    else:
        # What a tf.function computes inside is not to be had: absent, not made up.
        assert not any("loss" in row["scalars"] for row in recorded.rows)


@needs_tensorflow
def test_custom_loop_of_legacy_keras(tool):
    recorded = Recorded(tool, TENSORFLOW, "tensorflow_loop.py", "none", "function", "legacy")
    recorded.check_epochs(3)


@needs_tensorflow
def test_loop_inside_a_function_is_counted_by_its_optimizer(tool):
    recorded = Recorded(tool, TENSORFLOW, "tensorflow_loop.py", "none", "inside")
    assert sum(int(step["fields"].get("steps", 1)) for step in recorded.steps) == recorded.truth["iterations"] == 9
