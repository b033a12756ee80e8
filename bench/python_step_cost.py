# SPDX-License-Identifier: Apache-2.0
"""Measures what one step costs the training: python3 bench/python_step_cost.py [STEPS]

Prints the cost per turn of steps(), above that of the bare loop, in microseconds: with a receiver
that keeps up, with one that is gone, with recording off, and the parts that are called alone. The
best of several rounds is what the code costs; the median is what this machine made of it. Then the
hooks of the frameworks that this Python has, inside real steps (python_hook_cost.py).
"""

from __future__ import annotations

import importlib.util
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, List

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

RECEIVER = """
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print("ready", flush=True)
while True: receiver.recv(9000)
"""
ROUNDS = 15


def measure(turn: Callable[[int], None], steps: int) -> Dict[str, float]:
    """Microseconds per step of `turn`, which runs `steps` of them: best and median round."""
    turn(200)
    rounds: List[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        turn(steps)
        rounds.append((time.perf_counter() - began) / steps * 1e6)
    return {"best": min(rounds), "median": statistics.median(rounds)}


def bare(steps: int) -> None:
    for _ in range(steps):
        pass


def looped(steps: int) -> None:
    import epochmeter

    for _ in epochmeter.steps(range(steps), epoch=0):
        pass


def logged(steps: int) -> None:
    import epochmeter

    for _ in epochmeter.steps(range(steps), epoch=0):
        epochmeter.log(loss=0.123456)


def sent(steps: int) -> None:
    """The event alone: the text, the sequence, the system call."""
    from epochmeter import _state
    from epochmeter._recorder import clock

    recorder = _state.join()
    assert recorder is not None
    recorder.train_begin("loop", "client")
    recorder.epoch_begin(0, None, "user")
    values = {"loss": 0.123456}
    for _ in range(steps):
        recorder.step_begin(1000)
        recorder.step_end(clock(), 128, values)


class Hooked:
    """A plain loop over a loader with an optimizer, both of which do nothing, hooks around them."""

    class Batch:
        shape = (8, 3)

    class Batches:
        def __init__(self, left: int) -> None:
            self.left = left

        def __iter__(self) -> "Hooked.Batches":
            return self

        def __next__(self) -> "Hooked.Batch":
            if self.left == 0:
                raise StopIteration
            self.left -= 1
            return BATCH

    def __init__(self, hooked: bool) -> None:
        from epochmeter import _plain
        from epochmeter._frameworks.wrapping import beginning_pass, timing_pass, wrap

        self.loop = _plain.PlainLoop("bench")
        self.hooked = hooked

        class Batches(Hooked.Batches):
            def __next__(self) -> "Hooked.Batch":
                return Hooked.Batches.__next__(self)

        class Loader:
            batch_size = 8
            steps = 0

            def __iter__(self) -> Batches:
                return Batches(self.steps)

        if hooked:
            wrap(Loader, "__iter__", beginning_pass(self.loop))
            wrap(Batches, "__next__", timing_pass)
        self.loader = Loader()

    def __call__(self, steps: int) -> None:
        self.loader.steps = steps
        for _ in self.loader:
            if self.hooked:
                self.loop.loss(0.123456)
                self.loop.stepped(self)


BATCH = Hooked.Batch()


def raw(path: str) -> Callable[[int], None]:
    """The system call alone, with a datagram of a step's size."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    channel.setblocking(False)
    data = b"x" * 220

    def send(steps: int) -> None:
        for _ in range(steps):
            try:
                channel.sendto(data, path)
            except OSError:
                pass

    return send


def show(name: str, figures: Dict[str, float], base: Dict[str, float]) -> None:
    print(
        f"{name:<44}{figures['best'] - base['best']:8.2f}{figures['median'] - base['median']:8.2f}"
    )


def show_hooks(steps: int, base: Dict[str, float]) -> None:
    from epochmeter import _state

    recorder = _state.join()
    assert recorder is not None
    recorder.train_end("completed")
    plain = measure(Hooked(False), steps)
    show("plain loop, hooked (loader, loss, optimizer)", measure(Hooked(True), steps), plain)
    recorder.train_begin("keras", "framework")
    show("  the same inside a framework's training", measure(Hooked(True), steps), plain)
    recorder.train_end("completed")


def show_frameworks(path: str) -> None:
    program = str(Path(__file__).with_name("python_hook_cost.py"))
    for framework in ("torch", "paddle", "keras", "tensorflow"):
        if importlib.util.find_spec(framework) is None:
            continue
        done = subprocess.run(
            [sys.executable, program, path, framework], stdout=subprocess.PIPE, text=True
        )
        words = done.stdout.split()
        if done.returncode == 0 and len(words) >= 2:
            best, median = float(words[-2]), float(words[-1])
            print(f"{'hook of ' + framework + ', in a real step':<44}{best:8.2f}{median:8.2f}")
        else:
            print(f"hook of {framework}: not measured, it ended with {done.returncode}")


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    folder = tempfile.mkdtemp(prefix="epm")
    path = os.path.join(folder, "s")
    receiver = subprocess.Popen([sys.executable, "-c", RECEIVER, path], stdout=subprocess.PIPE)
    assert receiver.stdout is not None
    receiver.stdout.readline()
    base = measure(bare, steps)
    print(f"{'us per step, above the bare loop':<44}{'best':>8}{'median':>8}")
    show("steps(), recording off", measure(looped, steps), base)
    show("  the system call alone", measure(raw(path), steps), base)
    os.environ["EPOCHMETER_SOCKET"] = path
    show("steps()", measure(looped, steps), base)
    show("steps() with log(loss=...)", measure(logged, steps), base)
    show("  the step event alone", measure(sent, steps), base)
    show_hooks(steps, base)
    show_frameworks(path)
    receiver.kill()
    receiver.wait()
    receiver.stdout.close()
    show("steps() with log(loss=...), receiver dead", measure(logged, steps), base)
    os.unlink(path)
    show("steps() with log(loss=...), no socket", measure(logged, steps), base)
    from epochmeter import _state

    recorder = _state.join()
    print(f"events lost while nobody listened: {recorder._sender.dropped if recorder else 'unknown'}")
    os.rmdir(folder)


if __name__ == "__main__":
    main()
