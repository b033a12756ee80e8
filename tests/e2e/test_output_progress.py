# SPDX-License-Identifier: Apache-2.0
"""A training that tells nothing has the same epochs and steps by its output alone as by the hooks."""
import importlib.util
import json
import os
import pty
import signal
import subprocess
import threading

import pytest
from conftest import BINARY, PROGRAMS, ROOT, Tool, find_helper, python

TENSORFLOW = ROOT / ".venv-tf" / "bin" / "python"
needs_paddle = pytest.mark.skipif(importlib.util.find_spec("paddle") is None, reason="paddle is not installed")
needs_tensorflow = pytest.mark.skipif(not TENSORFLOW.exists(), reason=f"no {TENSORFLOW}: run tools/setup")

LOOP = [python(), PROGRAMS / "printing_loop.py"]


class Told:
    """Where a recorded training got to."""

    def __init__(self, tool):
        report = tool.report()
        self.source = report["run"]["progress_source"]
        self.rows = report["epochs"]
        self.steps = [row["steps"] for row in self.rows]
        self.losses = [row["scalars"].get("loss") for row in self.rows]
        self.complete = [row["complete"] for row in self.rows]
        self.kinds_lost = {loss["kind"] for loss in report["losses"]}

    def same_as(self, other):
        assert len(self.rows) == len(other.rows)
        assert self.steps == other.steps
        assert self.complete == other.complete
        # The numbers of epochs from where each begins to count.
        assert [row["epoch"] - self.rows[0]["epoch"] for row in self.rows] == [
            row["epoch"] - other.rows[0]["epoch"] for row in other.rows]


def recorded(tmp_path, name, command, flags=(), **options):
    (tmp_path / name).mkdir()
    tool = Tool(tmp_path / name)
    done = tool.record(*command, flags=flags, timeout=280, **options)
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return Told(tool)


def both(tmp_path, command):
    """The same training by its hooks, while it prints, and by what it prints alone."""
    hooks = recorded(tmp_path, "hooks", command)
    output = recorded(tmp_path, "output", command, flags=["--no-hooks"])
    assert output.source == "output"
    assert hooks.source in ("hook", "client")
    output.same_as(hooks)
    return output


@pytest.mark.parametrize("steps, every", [(20, 1), (24, 10), (24, 8)])
def test_plain_loop(tmp_path, steps, every):
    told = recorded(tmp_path, "told", [*LOOP, steps, 3, every, 0.005, "tell"])
    printed = recorded(tmp_path, "printed", [*LOOP, steps, 3, every, 0.005])
    assert told.source == "client"
    assert printed.source == "output"
    printed.same_as(told)
    assert printed.steps == [steps] * 3
    if steps % every == 0:
        assert printed.losses == pytest.approx(told.losses, abs=1e-6)


def test_steps_have_the_time_at_which_they_were_printed(tmp_path):
    printed = recorded(tmp_path, "printed", [*LOOP, 20, 2, 1, 0.05])
    for row in printed.rows[1:]:
        assert row["step_s"]["p50"] == pytest.approx(0.05, abs=0.02)


def test_terminal(tool):
    ours, theirs = pty.openpty()
    command = [BINARY, "run", "-o", str(tool.run_file), "--", *map(str, LOOP), "20", "3", "1", "0.005"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=tool.env(), cwd=tool.tmp)
    os.close(theirs)
    text = bytearray()

    def read():
        try:
            while piece := os.read(ours, 65536):
                text.extend(piece)
        except OSError:
            pass

    reader = threading.Thread(target=read)
    reader.start()
    assert process.wait(timeout=60) == 0, bytes(text)
    reader.join()
    os.close(ours)
    assert Told(tool).steps == [20] * 3


def test_what_a_client_tells_is_not_told_again(tool):
    # It runs for longer than the output's steps are held back.
    done = tool.record(*LOOP, 60, 3, 1, 0.02, "tell")
    assert done.returncode == 0, done.stderr.decode()
    events = tool.export_jsonl()
    steps = [event for event in events if event.get("event") == "step"]
    assert len(steps) == 180
    assert not any("line" in step["fields"] for step in steps)
    assert sum(event.get("event") == "epoch_end" for event in events) == 3
    assert sum(event.get("event") == "train_begin" for event in events) == 1


def test_a_training_that_fails_leaves_its_epoch_open_and_says_why(tool):
    done = tool.record(*LOOP, 20, 3, 1, 0.005, "fail", flags=["--no-hooks"])
    assert done.returncode == 1
    told = Told(tool)
    assert told.steps == [20, 20, 7]
    assert told.complete == [True, True, False]
    failures = [event for event in tool.export_jsonl() if event.get("event") == "exception"]
    assert [failure["fields"]["source"] for failure in failures] == ["output"]
    assert "broken sample" in failures[0]["fields"]["message"]


def test_a_recorder_that_is_killed_costs_no_epoch(tool):
    # By then the first recorder has given up waiting for a client, and epoch 1 is on disk.
    run = tool.start(*LOOP, 60, 3, 1, 0.05, flags=["--no-hooks"])
    assert any(b"Epoch [2/3] step [30/60]" in line for line in run.stdout)
    os.kill(find_helper(run.pid, "epm-recorder"), signal.SIGKILL)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 0, said.decode()
    told = Told(tool)
    assert [row["epoch"] for row in told.rows] == [1, 2, 3]
    assert told.complete == [True] * 3
    assert told.steps[0] == told.steps[2] == 60
    assert 20 < told.steps[1] <= 60  # those that were printed while no recorder was there are not known


def test_nothing_is_looked_for_where_it_is_not_wanted(tmp_path):
    silent = recorded(tmp_path, "silent", [*LOOP, 20, 2, 1, 0.005], flags=["--no-output-progress"])
    assert silent.rows == []
    assert silent.source == "none"


def test_buffered_output_has_its_steps_and_says_that_their_times_are_rough(tool):
    done = tool.record(*LOOP, 200, 3, 1, 0.001, "block", flags=["--no-hooks"])
    assert done.returncode == 0, done.stderr.decode()
    told = Told(tool)
    assert told.steps == [200] * 3
    assert "output.in_blocks" in told.kinds_lost
    assert all(row["step_s"]["count"] == 0 for row in told.rows)


def printing(tmp_path, program, replaced, by):
    """A program of the tests that prints what it does, unlike there."""
    text = (PROGRAMS / program).read_text()
    assert replaced in text
    script = tmp_path / program
    script.write_text(text.replace(replaced, by))
    return script


@needs_paddle
@pytest.mark.slow
@pytest.mark.parametrize("verbose", [1, 2])
def test_paddle_fit(tmp_path, verbose):
    script = printing(tmp_path, "paddle_fit.py", "verbose=0", f"verbose={verbose}, log_freq=1")
    output = both(tmp_path, [python(), script, tmp_path / "truth.json", "none"])
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert output.steps == [3] * 3
    assert output.losses == pytest.approx([truth["losses"][at] for at in (2, 5, 8)], abs=1e-4)


@needs_tensorflow
@pytest.mark.slow
@pytest.mark.parametrize("verbose, kind", [(1, "none"), (2, "none"), (1, "legacy")])
def test_keras_fit(tmp_path, verbose, kind):
    script = printing(tmp_path, "keras_fit.py", "verbose=0", f"verbose={verbose}")
    output = both(tmp_path, [TENSORFLOW, script, tmp_path / "truth.json", kind])
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert output.steps == [10] * 3
    assert output.losses == pytest.approx(truth["history"]["loss"], abs=1e-3)
