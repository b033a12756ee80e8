# SPDX-License-Identifier: Apache-2.0
"""The measurements of what a step costs work, and the cost is of the size that they say."""
import re
import subprocess
import sys

from conftest import BINARY, ROOT, clean_env

AB = ROOT / "bench" / "step_time_ab.py"
COST = ROOT / "bench" / "python_step_cost.py"
# Of CPU, in the best of several rounds. At rest it is a third of it; this much also on a machine that builds meanwhile.
MOST_US = 15.0


def run(tmp_path, *words):
    done = subprocess.run([sys.executable, *map(str, words)], env=clean_env(tmp_path), capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_training_with_and_without_recorder_is_compared_step_by_step(tmp_path):
    out = run(tmp_path, AB, BINARY, "--models", "python", "--rounds", 6, "--pairs", 3, "--turn-s", 0.01, "--warm-s", 0)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("| python")]
    assert [row[1:4] for row in rows] == [
        ["turns", "recorded / plain", "6"],
        ["turns", "noise: plain / plain", "6"],
        ["fresh", "recorded / plain", "3"],
        ["fresh", "noise: plain / plain", "2"],
    ]
    for row in rows:
        for figure in row[4:6]:
            middle, low, high = map(float, re.findall(r"[-+]\d+\.\d+", figure))
            assert low <= middle <= high
    # Every step of the recorded one is in its file: else it is not this that was measured.
    kept, told = map(int, re.search(r"(\d+) of (\d+) steps in the run file", out).groups())
    assert kept == told > 6 * 20


def test_step_event_costs_microseconds_and_events_are_lost_only_where_nobody_listens(tmp_path):
    out = run(tmp_path, COST, 400, "--rounds", 5, "--no-frameworks")
    rows = {line[:46].strip(): line[46:].split() for line in out.splitlines()}
    # Of four figures the third is CPU.
    figures = {name: float(row[2 if len(row) == 4 else 0]) for name, row in rows.items() if len(row) in (1, 4)
               and row[0][-1].isdigit()}
    assert 0 < figures["steps() with log(loss=...), socket emptied"] < MOST_US, out
    assert 0 < figures["steps() with log(loss=...), nobody there"] < MOST_US, out
    assert 0 < figures["steps() with log(loss=...), receiver full"] < 2 * MOST_US, out
    assert figures["start of Python, above one without us, in ms"] < 30, out
    assert re.search(r"nobody there: lost \d+ of \d+ events, exceptions 0", out), out
