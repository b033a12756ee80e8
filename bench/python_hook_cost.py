# SPDX-License-Identifier: Apache-2.0
"""Measures what the hooks take of a real step: python_hook_cost.py SOCKET FRAMEWORK

Trains a small model of an installed FRAMEWORK (torch, paddle, keras, tensorflow) under its hook, and
times each of our wrappers from outside and the framework's function in it from inside: the
difference is ours. Unlike a loop of nothing but our code it runs as cold as in a training. Prints
microseconds a step: what a tenth of the steps stays below, and the median; the timers are in them,
about 0.5 us for each wrapped call.
"""

from __future__ import annotations

import importlib
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

STEPS = 200
EPOCHS = 12
clock = time.perf_counter_ns
# `spent` at the end of each step.
marks: List[int] = []
# Nanoseconds in our part of wrapped calls so far; and of each open one, in the framework's part.
spent = 0
inside: List[int] = []


def counted(ours: Callable[..., Any]) -> Callable[..., Any]:
    def outer(*args: Any, **kwargs: Any) -> Any:
        global spent
        inside.append(0)
        began = clock()
        try:
            return ours(*args, **kwargs)
        finally:
            spent += clock() - began - inside.pop()

    return outer


def excepted(theirs: Callable[..., Any]) -> Callable[..., Any]:
    def inner(*args: Any, **kwargs: Any) -> Any:
        began = clock()
        try:
            return theirs(*args, **kwargs)
        finally:
            inside[-1] += clock() - began

    return inner


def measure_wrappers() -> None:
    """Puts the timers around all that the hooks will wrap from now on."""
    from epochmeter._frameworks import wrapping

    wrap = wrapping.wrap

    def timed(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        wrap(owner, name, lambda original: counted(make(excepted(original))))

    wrapping.wrap = timed


def mark_steps() -> None:
    from epochmeter._recorder import Recorder

    original = Recorder.step_end

    def step_end(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        marks.append(spent)

    Recorder.step_end = step_end  # type: ignore[method-assign]


def install(framework: str) -> None:
    """The hooks of one framework, as the watch for imports would install them."""
    from epochmeter import _watch

    measure_wrappers()
    mark_steps()
    if framework == "torch":
        from epochmeter._frameworks import torch_loop

        torch_loop._stepped = counted(torch_loop._stepped)
    _watch.watch()


def torch_epoch() -> Callable[[], None]:
    torch = importlib.import_module("torch")
    data = importlib.import_module("torch.utils.data")
    torch.set_num_threads(1)
    inputs, wanted = torch.randn(STEPS * 8, 8), torch.randn(STEPS * 8, 1)
    loader = data.DataLoader(data.TensorDataset(inputs, wanted), batch_size=8)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def epoch() -> None:
        for batch, target in loader:
            optimizer.zero_grad()
            ((model(batch) - target) ** 2).mean().backward()
            optimizer.step()

    return epoch


def paddle_epoch() -> Callable[[], None]:
    paddle = importlib.import_module("paddle")
    inputs, wanted = paddle.randn([STEPS * 8, 8]), paddle.randn([STEPS * 8, 1])
    loader = paddle.io.DataLoader(paddle.io.TensorDataset([inputs, wanted]), batch_size=8)
    model = paddle.nn.Linear(8, 1)
    optimizer = paddle.optimizer.SGD(1e-3, parameters=model.parameters())

    def epoch() -> None:
        for batch, target in loader():
            ((model(batch) - target) ** 2).mean().backward()
            optimizer.step()
            optimizer.clear_grad()

    return epoch


def keras_epoch() -> Callable[[], None]:
    keras = importlib.import_module("keras")
    numpy = importlib.import_module("numpy")
    inputs, wanted = numpy.random.rand(STEPS * 8, 8), numpy.random.rand(STEPS * 8, 1)
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return lambda: model.fit(inputs, wanted, batch_size=8, verbose=0)


def tensorflow_epoch() -> Callable[[], None]:
    tf = importlib.import_module("tensorflow")
    weight = tf.Variable(tf.zeros((8, 1)))
    optimizer = tf.keras.optimizers.SGD(1e-3)
    inputs, wanted = tf.random.normal((STEPS * 8, 8)), tf.random.normal((STEPS * 8, 1))
    dataset = tf.data.Dataset.from_tensor_slices((inputs, wanted)).batch(8)

    @tf.function
    def turn(batch: Any, target: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.matmul(batch, weight) - target) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    def epoch() -> None:
        for batch, target in dataset:
            turn(batch, target)

    return epoch


FRAMEWORKS: Dict[str, Callable[[], Callable[[], None]]] = {
    "torch": torch_epoch,
    "paddle": paddle_epoch,
    "keras": keras_epoch,
    "tensorflow": tensorflow_epoch,
}


def main() -> None:
    os.environ["EPOCHMETER_SOCKET"] = sys.argv[1]
    install(sys.argv[2])
    epoch = FRAMEWORKS[sys.argv[2]]()
    for _ in range(EPOCHS):
        epoch()
    # The first epoch also builds, traces and warms up.
    if len(marks) < STEPS * (EPOCHS - 1):
        sys.exit(f"the hook of {sys.argv[2]} told only {len(marks)} steps")
    taken = [(after - before) / 1e3 for before, after in zip(marks[STEPS:], marks[STEPS + 1 :])]
    print(statistics.quantiles(taken, n=10)[0], statistics.median(taken))


if __name__ == "__main__":
    main()
