# SPDX-License-Identifier: Apache-2.0
"""Measures what one step costs the training: python3 bench/python_step_cost.py [STEPS]

The row "socket emptied" is the cost of a step event whose receiver keeps up.
Prints the cost per turn of steps(), above that of the bare loop, in microseconds: with a receiver
that keeps up, with one that is full, with none, with recording off, and the parts that are called
alone. First what passed, then the CPU time of it, which other work on the machine touches less; the
best of several rounds is what the code costs, the median what this machine made of it. Then the
hooks of the frameworks that this Python has, inside real steps (python_hook_cost.py), and what the
start of each Python costs. `epochmeter run -- python3 bench/python_step_cost.py` has the recorder
itself receive.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, List, Optional, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

RECEIVER = """
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print("ready", flush=True)
while True: receiver.recv(9000)
"""
# What float32 makes of a loss: as long in text as most are.
LOSS = 0.12345600128173828
rounds = 15

Figures = Tuple[float, float, float, float]


def measure(turn: Callable[[int], None], steps: int) -> Figures:
    """Microseconds per step of `turn`, which runs `steps` of them: best and median, twice."""
    turn(200)
    passed: List[float] = []
    computed: List[float] = []
    for _ in range(rounds):
        began, cpu_began = time.perf_counter(), time.thread_time()
        turn(steps)
        computed.append((time.thread_time() - cpu_began) / steps * 1e6)
        passed.append((time.perf_counter() - began) / steps * 1e6)
    return min(passed), statistics.median(passed), min(computed), statistics.median(computed)


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
        epochmeter.log(loss=LOSS)


def work() -> None:
    """About a millisecond of something else, which takes the caches."""
    sum(bytearray(1 << 17))


def paced() -> Figures:
    """As measure(): what is ours of single steps with work() in between."""
    import epochmeter

    ours: List[float] = []
    computed: List[float] = []
    ended = cpu_ended = 0.0
    for number in epochmeter.steps(range(60 * rounds), epoch=0):
        epochmeter.log(loss=LOSS)
        if number:
            computed.append((time.thread_time() - cpu_ended) * 1e6)
            ours.append((time.perf_counter() - ended) * 1e6)
        work()
        ended, cpu_ended = time.perf_counter(), time.thread_time()
    return (
        statistics.quantiles(ours, n=10)[0],
        statistics.median(ours),
        statistics.quantiles(computed, n=10)[0],
        statistics.median(computed),
    )


def emptied(path: str) -> Figures:
    """As measure(): steps in groups of eight, after each of which the socket is emptied, unmeasured.

    So the receiver keeps up, and takes no core, whatever else the machine does.
    """
    import epochmeter
    from epochmeter import _state

    group = 8
    receiver = full_receiver(path)
    receiver.setblocking(False)
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    os.environ["EPOCHMETER_SOCKET"] = path
    passed: List[float] = []
    computed: List[float] = []
    began = cpu_began = 0.0
    for number in epochmeter.steps(range(group * 500 * rounds), epoch=0):
        if number % group == 0:
            if number:
                computed.append((time.thread_time() - cpu_began) / group * 1e6)
                passed.append((time.perf_counter() - began) / group * 1e6)
            try:
                while True:
                    receiver.recv(9000)
            except BlockingIOError:
                pass
            began, cpu_began = time.perf_counter(), time.thread_time()
        epochmeter.log(loss=LOSS)
    _state.leave()
    receiver.close()
    os.unlink(path)
    return (
        statistics.quantiles(passed, n=10)[0],
        statistics.median(passed),
        statistics.quantiles(computed, n=10)[0],
        statistics.median(computed),
    )


def sent(steps: int) -> None:
    """The event alone: the text, the sequence, the system call."""
    from epochmeter import _state
    from epochmeter._recorder import clock

    recorder = _state.join()
    assert recorder is not None
    recorder.train_begin("loop", "client")
    recorder.epoch_begin(0, None, "user")
    values = {"loss": LOSS}
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
                self.loop.loss(LOSS)
                self.loop.stepped(self)


BATCH = Hooked.Batch()


def raw(path: str) -> Callable[[int], None]:
    """The system call alone, with a datagram of a step's size."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    channel.setblocking(False)
    channel.connect(path)
    data = b"x" * 220

    def send(steps: int) -> None:
        for _ in range(steps):
            try:
                channel.send(data)
            except OSError:
                pass

    return send


NOTHING = (0.0, 0.0, 0.0, 0.0)


def show(name: str, figures: Figures, base: Figures = NOTHING) -> None:
    print(f"{name:<46}" + "".join(f"{one - other:8.2f}" for one, other in zip(figures, base)))


def show_hooks(steps: int, base: Figures) -> None:
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
            print(f"{'hook of ' + framework + ', in a real step':<46}{best:8.2f}{median:8.2f}")
        else:
            print(f"hook of {framework}: not measured, it ended with {done.returncode}")


def show_lost(name: str, steps: int, base: Figures) -> None:
    """Steps of which some or all are lost, and whether each of them is counted."""
    from epochmeter import _quiet, _state

    recorder = _state.join()
    assert recorder is not None
    sender = recorder._sender
    dropped, made = sender.dropped, sender._seq
    show(f"steps() with log(loss=...), {name}", measure(logged, steps), base)
    lost, made = sender.dropped - dropped, sender._seq - made
    print(
        f"  {name}: lost {lost} of {made} events, exceptions {_quiet.faults()}; "
        f"{len(sender._backlog)} wait for room, the next event tells {sender.dropped} lost in all"
    )


def full_receiver(path: str) -> socket.socket:
    """A receiver that takes nothing."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(path)
    return made


def start_cost(bootstrap: bool) -> float:
    """CPU milliseconds of a Python that does nothing: the best of some."""
    environment = dict(os.environ, EPOCHMETER_SOCKET="/nobody/there")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    if bootstrap:
        package = Path(__file__).resolve().parents[1] / "python" / "epochmeter"
        environment["PYTHONPATH"] = str(package / "_bootstrap")
    found: List[float] = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", "pass"], env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return 1e3 * min(found)


IMPORT = """
import sys, time
sys.path.insert(0, sys.argv[1])
import inspect, json, socket, threading
began = time.process_time()
from epochmeter import _watch
_watch.watch()
import epochmeter._loop, epochmeter._plain, epochmeter._frameworks.wrapping
print(1e3 * (time.process_time() - began))
"""


def import_cost() -> float:
    """CPU milliseconds of all of ours, where the library's parts are there, as under a framework."""
    holder = str(Path(__file__).resolve().parents[1] / "python")
    found: List[float] = []
    for _ in range(rounds):
        done = subprocess.run(
            [sys.executable, "-c", IMPORT, holder], stdout=subprocess.PIPE, text=True, check=True
        )
        found.append(float(done.stdout))
    return min(found)


def show_starts() -> None:
    more = start_cost(True) - start_cost(False)
    print(f"{'start of Python, above one without us, in ms':<46}{'':16}{more:8.2f}")
    print(f"{'import of all of ours but a framework, in ms':<46}{'':16}{import_cost():8.2f}")


def main() -> None:
    global rounds
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", type=int, nargs="?", default=5000)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--no-frameworks", action="store_true")
    options = parser.parse_args()
    steps, rounds = options.steps, options.rounds
    folder = tempfile.mkdtemp(prefix="epm")
    path = os.environ.pop("EPOCHMETER_SOCKET", "")
    receiver: Optional[subprocess.Popen[bytes]] = None
    if not path:
        path = os.path.join(folder, "s")
        receiver = subprocess.Popen([sys.executable, "-c", RECEIVER, path], stdout=subprocess.PIPE)
        assert receiver.stdout is not None
        receiver.stdout.readline()
    base = measure(bare, steps)
    print(f"{'us per step, above the bare loop':<46}{'best':>8}{'median':>8}{'CPU':>8}{'median':>8}")
    show("steps(), recording off", measure(looped, steps), base)
    show("  the system call alone", measure(raw(path), steps), base)
    show("steps() with log(loss=...), socket emptied", emptied(os.path.join(folder, "own")))
    os.environ["EPOCHMETER_SOCKET"] = path
    from epochmeter import _state

    _state.join(again=True)
    show("steps()", measure(looped, steps), base)
    show("steps() with log(loss=...)", measure(logged, steps), base)
    show("  the step event alone", measure(sent, steps), base)
    show("  with a millisecond of work in between", paced())
    show_hooks(steps, base)
    if not options.no_frameworks:
        show_frameworks(path)
    if receiver is not None:
        receiver.kill()
        receiver.communicate()
        show_lost("receiver dead", steps, base)
        os.unlink(path)
        show_lost("nobody there", steps, base)
        with full_receiver(path):
            time.sleep(0.02)
            show_lost("receiver full", steps, base)
        os.unlink(path)
    os.rmdir(folder)
    show_starts()


if __name__ == "__main__":
    main()
