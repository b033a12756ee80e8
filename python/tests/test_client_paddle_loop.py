# SPDX-License-Identifier: Apache-2.0
"""Real PaddlePaddle: plain loops of each kind, with no line of ours but the marks between them."""

from __future__ import annotations

import importlib.util
from typing import Any, Dict, List

import pytest

from client_support import FakeRecorder, run_python

if importlib.util.find_spec("paddle") is None:
    pytest.skip("paddle is not installed", allow_module_level=True)

pytestmark = pytest.mark.slow

LOOPS = """
import gc, json
import numpy as np, paddle
from paddle.io import DataLoader, Dataset, IterableDataset
import epochmeter

class Points(Dataset):
    def __getitem__(self, i): return np.full(4, i / 32, "float32")
    def __len__(self): return 32

class Stream(IterableDataset):
    def __iter__(self):
        for i in range(10): yield np.ones(4, "float32")

class Own(paddle.optimizer.SGD):
    def step(self): return super().step()

class Bare(paddle.optimizer.Optimizer):
    def __init__(self, learning_rate, parameters): self.used = list(parameters)
    def step(self): pass
    def clear_grad(self): [p.clear_grad() for p in self.used]

paddle.seed(1)
net = paddle.nn.Linear(4, 1)
other = paddle.nn.Linear(4, 1)
data = DataLoader(Points(), batch_size=8)
scaler = paddle.amp.GradScaler(init_loss_scaling=1024.0)
truth = {}

def optimizer(kind=paddle.optimizer.SGD, parameters=None, **more):
    gc.collect()
    return kind(parameters=parameters or net.parameters(), **more)

def loss_of(x):
    loss = (net(x) ** 2).mean()
    truth[name].append(float(loss))
    return loss

def begin(which):
    global name
    name = which
    truth[name] = []
    epochmeter.mark(which)

begin("plain"); o = optimizer()
for x in data: loss_of(x).backward(); o.step(); o.clear_grad()
begin("minimize")
for x in data: loss = loss_of(x); loss.backward(); o.minimize(loss); o.clear_grad()
o = None
begin("accumulated"); o = optimizer()
for i, x in enumerate(data):
    loss_of(x).backward()
    if i % 2: o.step(); o.clear_grad()
o = None
begin("scaled"); o = optimizer()
for x in data:
    scaler.scale(loss_of(x)).backward(); scaler.step(o); scaler.update(); o.clear_grad()
begin("scaled_minimize")
for x in data:
    scaled = scaler.scale(loss_of(x)); scaled.backward(); scaler.minimize(o, scaled); o.clear_grad()
o = None
begin("own_class"); o = optimizer(Own, learning_rate=0.1)
for x in data: loss_of(x).backward(); o.step(); o.clear_grad()
o = None
begin("adamw"); o = optimizer(paddle.optimizer.AdamW)
for x in data: loss_of(x).backward(); o.step(); o.clear_grad()
o = None
begin("bare_class"); o = optimizer(Bare, learning_rate=0.1)
for x in data: loss_of(x).backward(); o.step(); o.clear_grad()
o = None
begin("closure"); o = optimizer(paddle.optimizer.LBFGS, max_iter=3)
for x in data:
    def closure():
        o.clear_grad(); loss = loss_of(x); loss.backward(); return loss
    o.step(closure)
o = None; closure = None
begin("stream"); o = optimizer()
for x in DataLoader(Stream(), batch_size=4): loss_of(x).backward(); o.step(); o.clear_grad()
o = None
begin("two_optimizers"); o = optimizer(); second = optimizer(parameters=other.parameters())
for x in data:
    loss_of(x).backward(); o.step(); o.clear_grad()
    (other(x) ** 2).mean().backward(); second.step(); second.clear_grad()
o = second = None
kept = DataLoader(Points(), batch_size=8, num_workers=1, persistent_workers=True)
for turn in ("workers", "workers_again"):
    begin(turn); o = o or optimizer()
    for x in kept: loss_of(x).backward(); o.step(); o.clear_grad()
begin("static")
paddle.enable_static()
program = paddle.static.Program()
with paddle.static.program_guard(program):
    x = paddle.static.data("x", [None, 4])
    paddle.optimizer.SGD(0.1).minimize(paddle.mean(paddle.static.nn.fc(x, 1)))
print(json.dumps(truth))
"""

# Steps and samples of each loop.
EXPECTED: Dict[str, Any] = {
    "plain": (4, [8] * 4),
    "minimize": (4, [8] * 4),
    "accumulated": (2, [16] * 2),
    "scaled": (4, [8] * 4),
    "scaled_minimize": (4, [8] * 4),
    "own_class": (4, [8] * 4),
    "adamw": (4, [8] * 4),
    "bare_class": (4, [8] * 4),
    "closure": (4, [8] * 4),
    "stream": (3, [4, 4, 2]),
    "two_optimizers": (4, [8] * 4),
    "workers": (4, [8] * 4),
    "workers_again": (4, [8] * 4),
    "static": (0, []),
}


def test_each_kind_of_plain_loop_is_counted_as_it_is(recorder: FakeRecorder) -> None:
    import json

    done = run_python(LOOPS, recorder.path, bootstrap=True)
    assert done.returncode == 0, done.stderr
    assert "epochmeter" not in done.stderr
    truth = json.loads(done.stdout.splitlines()[-1])
    loops: Dict[str, List[Dict[str, Any]]] = {}
    for event in recorder.events():
        if event["kind"] == "mark":
            loops[event["name"]] = steps = []
        elif event["kind"] == "step":
            steps.append(event)
    assert {name: (len(s), [step["batch_size"] for step in s]) for name, s in loops.items()} == (
        EXPECTED
    )
    ends = recorder.events("epoch_end")
    assert [end["steps"] for end in ends] == [count for count, _ in EXPECTED.values() if count]
    assert not any("partial" in end for end in ends)
    for name in ("plain", "minimize", "scaled", "own_class", "stream", "workers_again"):
        # Bit for bit: read as float() of the same tensor.
        assert [step["scalars"]["loss"] for step in loops[name]] == truth[name], name
    for name in ("accumulated", "closure", "two_optimizers"):
        # Several losses to a step: which one is the step's is not known, so none is told.
        several = [step for step in loops[name] if "scalars" in step]
        assert len(several) <= 1, name


def test_results_are_the_same_with_and_without_hooks(recorder: FakeRecorder) -> None:
    alone = run_python(LOOPS, recorder.path, EPOCHMETER="0", PYTHONPATH="").stdout
    hooked = run_python(LOOPS, recorder.path, bootstrap=True).stdout
    assert alone.splitlines()[-1] == hooked.splitlines()[-1] != ""
