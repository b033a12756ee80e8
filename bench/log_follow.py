# SPDX-License-Identifier: Apache-2.0
"""How `log --follow` keeps up with logs that are written fast, rotated and truncated.

usage: log_follow.py BUILD [--seconds 10] [--rate 50] [--dir FOLDER] [--json FILE] [MODE...]

BUILD is a build folder with the program (release for figures). A writer process appends lines of a training, RATE MB/s,
and notes when each block was written. Modes (all of them unless named):

plain         one file
rename        each 2 s: close, rename, create, as Python's RotatingFileHandler does
logrotate     each 2 s: rename and create; the writer goes on in the old file for 0.3 s
copytruncate  each 2 s: copied and truncated between two blocks
pipe          through stdin
idle          a file that nothing is written to, for the CPU time

Printed are lines written and seen (each line is a record), how long after its block was written a record was shown,
CPU and peak memory of the program. Ends with 1 when a line was lost or repeated, the slowest took longer than 1 s, or
more than 200 MB were taken.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

MODES = ("plain", "rename", "logrotate", "copytruncate", "pipe", "idle")
PERIOD_S = 2.0
OVERLAP_S = 0.3
MOST_LATENCY_S = 1.0
MOST_BYTES = 200e6
BLOCK_S = 0.01
PEAK_S = 0.25


def block(first, count):
    """Lines that differ in their step; made without taking the time of the program that is measured."""
    second = first // 100
    head = (f"[2026/03/01 {second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}] ppdet.engine INFO: "
            f"Epoch: [0] [")
    tail = (f"/100000000] learning_rate: 0.001000 loss: {5 - first % 40000 / 10000:.6f} batch_cost: 0.4182 "
            f"data_cost: 0.0003 ips: 4.7821 images/s\n")
    return (head + (tail + head).join(map(str, range(first, first + count))) + tail).encode()


class Target:
    """The log, as its writer has it."""

    def __init__(self, path, mode):
        self.path, self.mode, self.number, self.old, self.move = path, mode, 0, None, 0.0
        self.file = open(1 if mode == "pipe" else path, "ab", buffering=0)

    def write(self, data):
        if self.old is not None and time.monotonic() >= self.move:
            self.old.close()
            self.old = None
        out = self.old or self.file
        view = memoryview(data)
        while view:
            view = view[out.write(view):]

    def rotate(self):
        self.number += 1
        older = f"{self.path}.{self.number}"
        if self.mode == "rename":
            self.file.close()
            os.rename(self.path, older)
            self.file = open(self.path, "ab", buffering=0)
        elif self.mode == "logrotate":
            os.rename(self.path, older)
            self.old, self.file = self.file, open(self.path, "ab", buffering=0)
            self.move = time.monotonic() + OVERLAP_S
        elif self.mode == "copytruncate":
            shutil.copyfile(self.path, older)
            self.file.truncate(0)


def write(path, mode, rate, seconds, notes):
    """Each note is the number of lines and the time when they had been written."""
    target = Target(path, mode)
    size = len(block(1_000_000, 100)) / 100
    count, begin, written, rotated = max(1, round(rate * BLOCK_S / size)), time.monotonic(), 0, 1
    with open(notes, "w") as out:
        while (now := time.monotonic() - begin) < seconds:
            if now > rotated * PERIOD_S:
                target.rotate()
                rotated += 1
            due = int(rate * now / size)
            if written >= due:
                time.sleep(BLOCK_S / 4)
                continue
            target.write(block(written, count))
            written += count
            out.write(f"{written} {time.monotonic():.6f}\n")


class Reader(threading.Thread):
    """Notes when what was shown."""

    def __init__(self, process):
        super().__init__(daemon=True)
        self.process, self.chunks, self.peak = process, [], peak_bytes(process.pid)
        self.start()

    def run(self):
        looked = 0.0
        while data := os.read(self.process.stdout.fileno(), 1 << 20):
            now = time.monotonic()
            self.chunks.append((now, data))
            if now - looked > PEAK_S:
                looked, self.peak = now, max(self.peak, peak_bytes(self.process.pid))

    def steps(self):
        return [int(n) for n in re.findall(rb"Step (\d+)", b"".join(data for _, data in self.chunks))]

    def shown(self):
        """The lines that had been shown at each time."""
        sum_lines = 0
        for at, data in self.chunks:
            sum_lines += data.count(b"\n")
            yield at, sum_lines


def latencies(blocks, shown):
    """How long after a block was written its last line was shown."""
    shown, last = iter(shown), (0.0, 0)
    for lines, at in blocks:
        while last[1] < lines:
            last = next(shown, None)
            if last is None:
                return
        yield last[0] - at


def peak_bytes(pid):
    """Of the process itself; wait4 counts its parent's memory before the exec. 0: it has ended."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def measure(program, mode, rate, seconds, folder):
    path, notes = folder / "train.log", folder / "notes"
    path.touch()
    writing = [sys.executable, __file__, "--write", mode, str(path), str(rate), str(seconds), str(notes)]
    writer = subprocess.Popen(writing, stdout=subprocess.PIPE) if mode == "pipe" else None
    reader = subprocess.Popen([program, "log", "--follow", "-" if mode == "pipe" else str(path)],
                              stdin=writer.stdout if writer else subprocess.DEVNULL, stdout=subprocess.PIPE)
    seen = Reader(reader)
    if mode == "idle":
        time.sleep(seconds)
    elif not writer:
        time.sleep(0.3)
        writer = subprocess.Popen(writing)
    if writer:
        writer.wait()
        if mode != "pipe":
            time.sleep(2)
    peak = peak_bytes(reader.pid)
    if mode != "pipe":
        reader.send_signal(signal.SIGTERM)
    seen.join()
    _, status, usage = os.wait4(reader.pid, 0)
    reader.returncode = os.waitstatus_to_exitcode(status)
    blocks = [(int(n), float(t)) for n, t in (line.split() for line in notes.read_text().splitlines())] if writer else []
    written = blocks[-1][0] if blocks else 0
    steps = seen.steps()
    waits = sorted(latencies(blocks, seen.shown()))
    return {"mode": mode, "exit": reader.returncode, "written": written, "seen": len(steps),
            "all": steps == list(range(written)), "seconds": seconds,
            "mb_per_s": written * len(block(1_000_000, 1)) / seconds / 1e6,
            "median_ms": round(waits[len(waits) // 2] * 1e3, 1) if waits else None,
            "max_ms": round(waits[-1] * 1e3, 1) if waits else None,
            "cpu_percent": round((usage.ru_utime + usage.ru_stime) / seconds * 100, 2),
            "peak_mb": round(max(peak, seen.peak) / 1e6, 1)}


def main():
    if sys.argv[1:2] == ["--write"]:
        return write(sys.argv[3], sys.argv[2], float(sys.argv[4]), float(sys.argv[5]), sys.argv[6])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("modes", nargs="*", default=MODES, metavar="MODE")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--dir", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_intermixed_args()
    results = []
    for mode in given.modes:
        with tempfile.TemporaryDirectory(dir=given.dir) as folder:
            result = measure(str(given.build / "epochmeter"), mode, given.rate * 1e6, given.seconds,
                             pathlib.Path(folder))
        results.append(result)
        print(f"{mode:13s} {result['mb_per_s']:6.1f} MB/s  {result['written']:>9} lines written, {result['seen']:>9} seen"
              f"{'' if result['all'] else ' NOT THE SAME'}  shown after {result['median_ms']} ms, at most {result['max_ms']}"
              f" ms  CPU {result['cpu_percent']} %  peak {result['peak_mb']} MB", flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1) + "\n")
    bad = [r for r in results if not r["all"] or (r["max_ms"] or 0) > MOST_LATENCY_S * 1e3
           or r["peak_mb"] * 1e6 > MOST_BYTES or r["exit"] != 0]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
