# SPDX-License-Identifier: Apache-2.0
"""Runs whose recorder meets a disk that fails, stalls or is full: a library preloaded into it
(tests/faults) does what a control file says, which may change while the run is on."""
import concurrent.futures
import datetime
import os
import re
import time

import pytest
from conftest import BUILD, PROGRAMS, Tool, python

LIBRARY = BUILD / "faults" / "libio_faults.so"
SOAK = int(os.environ.get("EPOCHMETER_SOAK", "1"))
LONG = SOAK > 1


class FaultyTool(Tool):
    """A tool whose recorder has the library; `rules` in force when a run starts."""

    def __init__(self, folder, *rules):
        if not LIBRARY.exists():
            pytest.skip(f"{LIBRARY} is not built")
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder)
        self.control = folder / "faults"
        self.set(*rules)

    def set(self, *rules):
        """At once and as a whole: the recorder reads the file at each call."""
        fresh = self.control.with_suffix(".fresh")
        fresh.write_text("".join(rule + "\n" for rule in rules))
        fresh.rename(self.control)

    def env(self, **extra):
        return super().env(LD_PRELOAD=str(LIBRARY), EPOCHMETER_TEST_FAULTS=str(self.control),
                           STEPS_LOG=str(self.tmp / "steps.log"), **extra)

    def plain_env(self):
        return Tool.env(self)

    def steps(self, count, seconds, epochs, code=9):
        """The words of a training that says each of its steps on both streams."""
        return [python(), PROGRAMS / "steps.py", count, seconds, epochs, code]

    def calls(self):
        """What the recorder asked of the disk so far."""
        log = self.control.with_suffix(".log")
        return [Call(line) for line in log.read_text().splitlines()] if log.exists() else []

    def sent(self):
        """Step number -> when it was sent, as the training noted it."""
        return dict(map(int, line.split()) for line in (self.tmp / "steps.log").read_text().splitlines())


class Call:
    """`hit`: a rule made it fail, come up short or wait; `done`: bytes, 0, or -errno."""

    def __init__(self, line):
        t_ns, _, self.kind, _, hit, asked, done, self.path = line.split(" ", 7)
        self.t_ns, self.hit, self.asked, self.done = int(t_ns), hit == "1", int(asked), int(done)

    def wrote_all(self):
        return self.kind == "write" and self.done == self.asked


def expected_output(steps, epochs):
    """What steps.py writes to stdout and to stderr."""
    numbers = [(e, e * steps + s + 1) for e in range(epochs) for s in range(steps)]
    out = "".join(f"epoch {e} step {n}\n" for e, n in numbers)
    return out.encode(), "".join(f"warning {n}\n" for _, n in numbers).encode()


# Our processes say whole lines, but the training may be in the middle of one of its own.
OURS = re.compile(rb"epochmeter: [^\n]*\n")


def without_ours(err):
    return OURS.sub(b"", err)


def ours(err):
    return [line.decode() for line in OURS.findall(err)]


def recorded_steps(rows):
    return {row["step"] for row in rows if row.get("event") == "step"}


def seconds_of(row):
    return datetime.datetime.fromisoformat(row["@timestamp"].replace("Z", "+00:00")).timestamp()


def values(rows, metric):
    """(time, value) of a metric, one for each row of an export, in order."""
    return sorted((seconds_of(row), row["value"]) for row in rows if row.get("metric") == metric and "value" in row)


def longest_gap_s(times):
    times = sorted(set(times))
    return max((b - a for a, b in zip(times, times[1:])), default=0.0)


def longest_loss_s(sent, recorded):
    """The longest time between two recorded steps, or the last one and the end, in which steps were lost."""
    longest_ns = 0
    before_ns, lost = min(sent.values()), False
    for number, t_ns in sorted(sent.items()):
        if number in recorded:
            longest_ns = max(longest_ns, t_ns - before_ns if lost else 0)
            before_ns, lost = t_ns, False
        else:
            lost = True
    return max(longest_ns, max(sent.values()) - before_ns if lost else 0) / 1e9


def in_parallel(work, items, at_once=16):
    """All results; the first failure is raised when all have ended."""
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        return [done.result() for done in [pool.submit(work, item) for item in items]]


def wait_until(condition, timeout_s=20.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that in time"
        time.sleep(0.02)
