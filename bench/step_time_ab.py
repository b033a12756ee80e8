# SPDX-License-Identifier: Apache-2.0
"""What recording costs a step: the same training with and without it, in turns.

    step_time_ab.py EPOCHMETER [--device cuda|cpu] [--models NAMES] [--minutes M] ...

Needs torch for its two models, and nothing else. Two ways, each with the noise of the same
measurement beside it:

turns   Three resident processes, all loaded and warm, train in turns of about a second: one under
        `epochmeter run` with each step recorded and its loss logged, and two that know nothing of
        it. Who waits sleeps at a socket. Drift of clocks and neighbours hits all of them alike. A
        round is one turn of each, in changing order; its figure is recorded / plain - 1, and as the
        noise plain again / plain - 1. Recorder and sampler run all the time, in the plain turns
        too, so this is the cost of what happens inside the training.
fresh   Pairs of processes that begin, warm up, train and end one after the other, in changing
        order: with all that runs beside a recorded training, and with all noise from outside. The
        noise is plain / the plain one before - 1.

Printed are the medians over rounds or pairs, with the 95 % interval of the median by bootstrap: once
of the turns' median steps, once of the means of their steps without the slowest and the fastest
tenth (a cost that not every step pays does not show in a median).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

PACKAGE_HOLDER = str(Path(__file__).resolve().parents[1] / "python")
# Of a turn, left out: caches and clocks come back.
WARM_SHARE = 0.1
TRIM = 0.1
RESAMPLES = 4000
VARIANTS = ("plain", "again", "recorded")


class Turn(NamedTuple):
    """Seconds of a step in one turn."""

    median: float
    mean: float


# The trainings.


def torch_step(name: str, device: str) -> Callable[[], float]:
    import torch
    from torch import nn

    small = device == "cpu"
    if small:
        torch.set_num_threads(1)
    if name == "launch_bound":
        width, depth, rows = (16, 4, 4) if small else (64, 60, 64)
    else:
        width, depth, rows = (256, 2, 128) if small else (8192, 2, 8192)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(width, 1)).to(device)
    batch = torch.randn(rows, width, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=not small):
            loss = model(batch).float().square().mean()
        loss.backward()
        optimizer.step()
        # Waits for the GPU, as a training that prints its loss does.
        return float(loss.item())

    return step


def python_step() -> float:
    """No framework at all: for a look at this program itself."""
    return sum(number * 0.5 for number in range(5000))


def make_step(name: str, device: str) -> Callable[[], float]:
    return python_step if name == "python" else torch_step(name, device)


def summary(times: List[float]) -> Turn:
    ordered = sorted(times)
    cut = int(len(ordered) * TRIM)
    return Turn(statistics.median(ordered), statistics.fmean(ordered[cut : len(ordered) - cut]))


def train(options: argparse.Namespace) -> None:
    """The child: trains as many steps as each line from the socket says, and answers with a Turn."""
    if options.cores:
        os.sched_setaffinity(0, options.cores)
    step = make_step(options.model, options.device)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    channel.connect(options.channel)
    lines = channel.makefile("rw")
    marks: List[float] = []

    def numbers() -> Iterator[int]:
        for line in lines:
            marks.clear()
            yield from range(int(line))
            marks.append(time.perf_counter())
            times = [after - before for before, after in zip(marks, marks[1:])]
            json.dump(summary(times[int(len(times) * WARM_SHARE) :]), lines)
            lines.write("\n")
            lines.flush()

    if options.variant == "recorded":
        import epochmeter

        # From the begin of one turn of the loop to the next, with all that ours does between.
        for _ in epochmeter.steps(numbers(), epoch=0):
            marks.append(time.perf_counter())
            epochmeter.log(loss=step())
    else:
        for _ in numbers():
            marks.append(time.perf_counter())
            step()


class Training:
    """One child. It begins to load at once; wait() returns when it waits for its turn."""

    def __init__(self, options: argparse.Namespace, model: str, variant: str, folder: str) -> None:
        self.run_file = os.path.join(folder, f"{model}-{variant}.emr")
        self.variant = variant
        self.steps = 0
        path = os.path.join(folder, f"{variant}.channel")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(1)
        self._listener.settimeout(120)
        command = [sys.executable, os.path.abspath(__file__), options.epochmeter]
        command += ["--device", options.device, "--model", model, "--variant", variant]
        command += ["--channel", path, "--cores", ",".join(map(str, options.cores))]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("EPOCHMETER")}
        if variant == "recorded":
            out = ["-q", "--force", "-o", self.run_file]
            command = [options.epochmeter, "run", *out, "--", *command]
            # Here is the loop; the hooks of the framework would give way to it anyway.
            environment["PYTHONPATH"] = PACKAGE_HOLDER
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)

    def wait(self) -> None:
        try:
            self._channel, _ = self._listener.accept()
        except socket.timeout:
            self._process.kill()
            sys.exit(f"step_time_ab: the {self.variant} training did not begin within 120 s")
        self._listener.close()
        self._lines = self._channel.makefile("rw")

    def turn(self, steps: int) -> Turn:
        self._lines.write(f"{steps}\n")
        self._lines.flush()
        self.steps += steps
        answer = self._lines.readline()
        if not answer:
            sys.exit(f"step_time_ab: the {self.variant} training ended: {self._process.wait()}")
        return Turn(*json.loads(answer))

    def warm_up(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.turn(20)

    def end(self) -> None:
        self._lines.close()
        self._channel.close()
        code = self._process.wait()
        if code != 0:
            sys.exit(f"step_time_ab: the {self.variant} training ended with {code}")


def recorded_steps(binary: str, run_file: str) -> int:
    """Steps in the run file."""
    done = subprocess.run(
        [binary, "export", run_file, "-f", "jsonl"], stdout=subprocess.PIPE, check=True, text=True
    )
    lines = (json.loads(line) for line in done.stdout.splitlines() if '"step"' in line)
    return sum(line.get("event") == "step" for line in lines)


# The figures.


def interval(values: List[float]) -> Tuple[float, float, float]:
    """The median, and its 95 % interval by bootstrap."""
    chance = random.Random(1)
    medians = sorted(
        statistics.median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    return (
        statistics.median(values),
        medians[int(RESAMPLES * 0.025)],
        medians[int(RESAMPLES * 0.975) - 1],
    )


def cell(ratios: List[float]) -> str:
    middle, low, high = interval(ratios)
    return f"{100 * middle:+7.3f} % [{100 * low:+.3f}, {100 * high:+.3f}]"


def row(model: str, way: str, what: str, pairs: List[Tuple[Turn, Turn]]) -> str:
    """`pairs`: with and without."""
    if len(pairs) < 2:
        return f"| {model} | {way} | {what} | {len(pairs)} | too few | too few | unknown |"
    medians = [one.median / other.median - 1 for one, other in pairs]
    means = [one.mean / other.mean - 1 for one, other in pairs]
    step_us = statistics.median(other.median for _, other in pairs) * 1e6
    more_us = statistics.median(medians) * step_us
    return (
        f"| {model} | {way} | {what} | {len(pairs)} | {cell(medians)} | {cell(means)} "
        f"| {more_us:+.1f} of {step_us:.0f} us |"
    )


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._rows: List[str] = []

    def turns(self, model: str, until: float) -> None:
        options = self._options
        with tempfile.TemporaryDirectory(prefix="epmab") as folder:
            all_of_it = {v: Training(options, model, v, folder) for v in VARIANTS}
            for training in all_of_it.values():
                training.wait()
            for training in all_of_it.values():
                training.warm_up(options.warm_s)
            steps = self._steps_a_turn(all_of_it["plain"])
            found: Dict[str, List[Turn]] = {variant: [] for variant in VARIANTS}
            orders = itertools.cycle(itertools.permutations(VARIANTS))
            while len(found["plain"]) < options.rounds and time.monotonic() < until:
                for variant in next(orders):
                    found[variant].append(all_of_it[variant].turn(steps))
            for training in all_of_it.values():
                training.end()
            recorded = all_of_it["recorded"]
            kept = recorded_steps(options.epochmeter, recorded.run_file)
        for variant, what in (("recorded", "recorded / plain"), ("again", "noise: plain / plain")):
            self._tell(row(model, "turns", what, list(zip(found[variant], found["plain"]))))
        print(f"# {model}: {kept} of {recorded.steps} steps in the run file", flush=True)

    def fresh(self, model: str, until: float) -> None:
        options = self._options
        pairs: List[Tuple[Turn, Turn]] = []
        steps, longest = 0, 0.0
        while len(pairs) < options.pairs and time.monotonic() + longest < until:
            began = time.monotonic()
            turn: Dict[str, Turn] = {}
            order = ("plain", "recorded") if len(pairs) % 2 else ("recorded", "plain")
            for variant in order:
                with tempfile.TemporaryDirectory(prefix="epmab") as folder:
                    training = Training(options, model, variant, folder)
                    training.wait()
                    training.warm_up(options.warm_s)
                    steps = steps or 2 * self._steps_a_turn(training)
                    turn[variant] = training.turn(steps)
                    training.end()
            pairs.append((turn["recorded"], turn["plain"]))
            longest = max(longest, time.monotonic() - began)
        plain = [plain for _, plain in pairs]
        self._tell(row(model, "fresh", "recorded / plain", pairs))
        self._tell(row(model, "fresh", "noise: plain / plain", list(zip(plain[1:], plain))))

    def _steps_a_turn(self, training: Training) -> int:
        return max(20, round(self._options.turn_s / training.turn(20).median))

    def _tell(self, line: str) -> None:
        self._rows.append(line)
        print(line, flush=True)


def cores(text: Optional[str]) -> List[int]:
    if text is not None:
        return [int(core) for core in text.split(",") if core]
    allowed = sorted(os.sched_getaffinity(0))
    # Enough for the loop, the backward thread and the driver's; the helpers get the others.
    return allowed[:4] if len(allowed) >= 8 else []


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("epochmeter", help="the program")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--models", default="launch_bound,compute_bound", help="or: python")
    parser.add_argument("--ways", default="turns,fresh")
    parser.add_argument("--minutes", type=float, default=9.0, help="for all of it, begun pairs apart")
    parser.add_argument("--rounds", type=int, default=40, help="of turns, at most")
    parser.add_argument("--pairs", type=int, default=10, help="of fresh processes, at most")
    parser.add_argument("--turn-s", type=float, default=1.0)
    parser.add_argument("--warm-s", type=float, default=1.5)
    parser.add_argument("--cores", help="for the trainings: 0,1,2 [the first four of eight or more]")
    for name in ("--model", "--variant", "--channel"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.cores = cores(options.cores)
    return options


def main() -> None:
    options = parse()
    if options.channel:
        train(options)
        return
    bench = Bench(options)
    parts = [(m, w) for m in options.models.split(",") for w in options.ways.split(",")]
    end = time.monotonic() + 60 * options.minutes
    print("| model | way | what | n | of medians [95 %] | of trimmed means [95 %] | a step |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for number, (model, way) in enumerate(parts):
        # Fresh processes load anew each time: they get two shares of what is left, turns get one.
        shares = [2.0 if w == "fresh" else 1.0 for _, w in parts[number:]]
        until = time.monotonic() + (end - time.monotonic()) * shares[0] / sum(shares)
        run: Any = bench.turns if way == "turns" else bench.fresh
        run(model, until)


if __name__ == "__main__":
    main()
