# SPDX-License-Identifier: Apache-2.0
"""The programs of tests/gpu on the CPU, under the real recorder: the report says what they say.

Each trains with a framework as it is, with no line changed and through our callback or calls, and
writes down what the framework itself reported. They need .venv-torch, which tools/setup makes.
"""
import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT

FOLDER = ROOT / "tests" / "gpu"
PYTHON = os.environ.get("EPOCHMETER_TORCH_PYTHON", str(ROOT / ".venv-torch" / "bin" / "python"))

if not os.access(PYTHON, os.X_OK):
    pytest.skip("no PyTorch: run tools/setup-torch", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# Name, the program and its words, and who must be named as the source of its steps.
CASES = [
    ("plain_auto", ["torch_plain.py", "auto"], "hook"),
    ("plain_api", ["torch_plain.py", "api"], "client"),
    ("lightning_auto", ["lightning_fit.py", "auto"], "hook"),
    ("lightning_callback", ["lightning_fit.py", "callback", "pytorch_lightning"], "hook"),
    ("transformers_auto", ["hf_trainer.py", "auto"], "hook"),
    ("transformers_callback", ["hf_trainer.py", "callback"], "hook"),
    ("accelerate_auto", ["accelerate_loop.py"], "hook"),
    ("jax_api", ["jax_loop.py"], "client"),
]
RANKS = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29517"]


def record(tool, truth, *command, flags=()):
    env = tool.env(SMALL="1", EPOCHS="2", STEPS="8", TRUTH_FILE=str(truth), HF_HUB_OFFLINE="1",
                   TOKENIZERS_PARALLELISM="false", OMP_NUM_THREADS="1")
    done = tool.record(PYTHON, *command, env=env, flags=flags, timeout=600)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    ours = [line for line in done.stderr.decode().splitlines() if line.startswith("epochmeter:")]
    assert not [line for line in ours if "failed" in line or "cannot hook" in line]
    return json.loads(tool.call("report", tool.run_file, "-f", "json").stdout)["data"]


def check(tool, name, *truths):
    """What tests/gpu/run_all.sh does with real GPUs."""
    for form, words in (("json", ["report", "-f", "json"]), ("jsonl", ["export", "-f", "jsonl"])):
        tool.call(*words, "-o", tool.tmp / f"out.{form}", tool.run_file)
    done = subprocess.run([sys.executable, str(FOLDER / "check_truth.py"), name, str(tool.tmp / "out.json"),
                           str(tool.tmp / "out.jsonl"), *map(str, truths)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name, command, source", CASES, ids=[case[0] for case in CASES])
def test_report_says_what_the_framework_says(tool, name, command, source):
    truth = tool.tmp / "truth.json"
    data = record(tool, truth, FOLDER / command[0], *command[1:])
    check(tool, name, truth)
    assert data["run"]["progress_source"] == source


@pytest.mark.parametrize("way", ["auto", "api"])
def test_two_ranks_are_told_apart(tool, way):
    truth = tool.tmp / "truth.json"
    data = record(tool, truth, *RANKS, FOLDER / "ddp_loop.py", 2, 6, way)
    check(tool, "ddp_" + way, f"{truth}.0", f"{truth}.1")
    assert sorted({row["rank"] for row in data["epochs"]}) == [0, 1]


def test_every_value_of_a_trainers_log_is_on_record(tool):
    truth = tool.tmp / "truth.json"
    record(tool, truth, FOLDER / "hf_trainer.py", "auto")
    history = json.loads(truth.read_text())["history"]
    told = {}
    for line in tool.export_jsonl():
        for key, value in line.get("fields", {}).items() if line["type"] == "event" else ():
            if key.startswith("scalar."):
                told.setdefault(key[len("scalar."):], []).append(value)
    speed = ("eval_runtime", "eval_samples_per_second", "eval_steps_per_second")
    last = [row for row in history if speed[0] in row][-1]
    for row in history:
        for key, value in row.items():
            # How fast an evaluation was is told of the last one; the others have their phases.
            if key not in ("epoch", "step") and (key not in speed or row is last):
                found = told.get(key, []) + told.get(key.removeprefix("eval_"), [])
                assert any(abs(value - one) <= 1e-6 * abs(value) for one in found), (key, value, found)


def test_no_hooks_means_no_epochs(tool):
    data = record(tool, tool.tmp / "truth.json", FOLDER / "torch_plain.py", "auto", flags=["--no-hooks"])
    assert data["run"]["progress_source"] == "none"
    assert all(row["epoch"] is None for row in data["epochs"])
