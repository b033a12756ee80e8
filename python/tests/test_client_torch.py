# SPDX-License-Identifier: Apache-2.0
"""Real PyTorch on the CPU: what is recorded of plain loops is what they counted themselves."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from client_support import ROOT, FakeRecorder, run_python

PYTHON = os.environ.get("EPOCHMETER_TORCH_PYTHON", str(ROOT / ".venv-torch" / "bin" / "python"))
PROGRAM = Path(__file__).with_name("torch_scenarios.py")

if not os.access(PYTHON, os.X_OK):
    pytest.skip("no PyTorch: run tools/setup-torch", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NAMES = [
    line[4:-3]
    for before, line in zip(["", *PROGRAM.read_text().splitlines()], PROGRAM.read_text().splitlines())
    if before == "@scenario" and line.startswith("def ")
]


class Trainings:
    """All scenarios, run once: what they said, and the events that came of each."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory(prefix="epm") as folder:
            recorder = FakeRecorder(os.path.join(folder, "s"))
            try:
                done = run_python(
                    f"import runpy, sys\nsys.argv = ['scenarios']\n"
                    f"runpy.run_path({str(PROGRAM)!r}, run_name='__main__')\n",
                    recorder.path, bootstrap=True, python=PYTHON,
                )  # fmt: skip
                self.events = recorder.events()
            finally:
                recorder.close()
        assert done.returncode == 0, done.stderr
        self.stderr = done.stderr
        self.told: Dict[str, Dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])

    def of(self, name: str, *kinds: str) -> List[Dict[str, Any]]:
        pid = self.told[name]["pid"]
        return [e for e in self.events if e["pid"] == pid and (not kinds or e["kind"] in kinds)]


@pytest.fixture(scope="module")
def trainings() -> Iterator[Trainings]:
    yield Trainings()


@pytest.mark.parametrize("name", NAMES)
def test_epochs_and_steps_are_those_of_the_loop(trainings: Trainings, name: str) -> None:
    told = trainings.told[name]
    assert "error" not in told, told.get("error")
    begins, ends = trainings.of(name, "epoch_begin"), trainings.of(name, "epoch_end")
    steps = trainings.of(name, "step")
    numbers = told.get("epochs", list(range(len(told["steps"]))))
    assert [e["epoch"] for e in begins] == numbers and [e["epoch"] for e in ends] == numbers
    assert [e["steps"] for e in ends] == told["steps"]
    assert len(steps) == told.get("all_steps", sum(told["steps"]))
    assert [e["step"] for e in steps] == list(range(1, len(steps) + 1))
    if "complete" in told:
        assert [not e.get("partial", False) for e in ends] == told["complete"]
    if "samples" in told:
        by_epoch: List[Any] = []
        for number in numbers:
            sizes = [e.get("batch_size") for e in steps if e["epoch"] == number]
            by_epoch.append(None if None in sizes else sum(sizes))
        assert by_epoch == told["samples"]
    if "losses" in told:
        wanted = [loss for epoch in told["losses"] for loss in epoch]
        assert [e["scalars"]["loss"] for e in steps] == pytest.approx(wanted, rel=1e-6)


def test_one_training_and_one_source_for_each(trainings: Trainings) -> None:
    for name in NAMES:
        begins = trainings.of(name, "train_begin")
        if not trainings.of(name, "step"):
            assert begins == []
            continue
        assert len(begins) == 1, name
        source = "client" if name == "steps_of_the_script_go_first" else "hook"
        assert begins[0]["source"] == source


def test_waiting_for_data_is_part_of_the_step(trainings: Trainings) -> None:
    steps = trainings.of("workers_that_stay", "step")
    assert all(0 <= e["data_wait_s"] <= e["duration_s"] for e in steps)
    assert steps[0]["data_wait_s"] > 0.001, "the first batch waits for the worker to start"
    assert all("data_wait_s" not in e for e in trainings.of("no_loader", "step"))


def test_exception_is_told_with_its_type(trainings: Trainings) -> None:
    exceptions = trainings.of("exception_passes", "exception")
    assert [e["type"] for e in exceptions] == ["OutOfMemoryError"]
    assert "Tried to allocate" in exceptions[0]["message"]
    assert trainings.of("exception_passes", "train_end")[0]["status"] == "failed"


def test_hooks_say_nothing_into_the_training(trainings: Trainings) -> None:
    assert "epochmeter" not in trainings.stderr.replace(str(ROOT), "")


@pytest.mark.parametrize("off", [{"EPOCHMETER": "0"}, {"EPOCHMETER_HOOKS": "0"}])
def test_switched_off_nothing_is_wrapped(recorder: FakeRecorder, off: Dict[str, str]) -> None:
    done = run_python(
        "import torch\n"
        "from torch.optim import optimizer\nfrom torch.utils.data import dataloader\n"
        "print(len(optimizer._global_optimizer_post_hooks),\n"
        "      hasattr(dataloader.DataLoader.__iter__, '_epochmeter'))\n",
        recorder.path, bootstrap=True, python=PYTHON, **off,
    )  # fmt: skip
    assert done.stdout.split() == ["0", "False"], done.stderr
    assert recorder.events() == []
