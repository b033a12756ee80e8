# SPDX-License-Identifier: Apache-2.0
"""`log` on every log of tests/logs and, where it is there, of ../shared/logs: what it finds is what
the file beside it, NAME.expected.json, says (rules: tests/logs/README.md)."""
import json
import math
import pathlib
import subprocess

import pytest
from conftest import BINARY, ROOT, SHARED, clean_env

OWN = ROOT / "tests" / "logs"
FIELDS = ("epoch", "step", "step_in_epoch", "total_steps", "steps_per_epoch", "loss", "lr")
DERIVED = ("data_share", "median_step_time_s", "mean_step_time_s", "max_step_time_s")
# More of these than expected is extra detail, no error.
OPTIONAL_EVENTS = {"warning", "glog_warning", "run_start", "total_steps", "unix_abort_time", "exitcode"}
MOST_SECONDS = 60
# One torchrun failure prints "raise ChildFailedError(" and "...ChildFailedError:". We count it once, as
# torchrun_childfailed_wrong_root.log expects; this file's expectation counts both lines.
COUNTED_TWICE = {"openvla_slurm_cancelled.out": {"child_failed"}}


def cases():
    for folder in (OWN, SHARED / "logs"):
        for expected in sorted(folder.glob("*.expected.json")):
            log = expected.with_name(expected.name.removesuffix(".expected.json"))
            yield pytest.param(log, expected, id=f"{folder.parent.name}/{log.name}")


def same(found, wanted):
    try:
        found, wanted = float(found), float(wanted)
    except (TypeError, ValueError):
        return found is not None and str(found) == str(wanted)
    return math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-9) or (found != found and wanted != wanted)


def wrong_record(end, found, wanted):
    found = found or {}
    names = [name for name in FIELDS if name in wanted] + ["line"]
    return [f"{end} {name} {found.get(name)}, not {wanted[name]}" for name in names
            if name in wanted and not same(found.get(name), wanted[name])]


def wrong_events(found, wanted, twice):
    counts = {event["kind"]: event.get("count", 1) for event in found}
    right = {}
    for event in wanted:
        count = event["count"] // 2 if event["kind"] in twice else event["count"]
        right[event["kind"]] = right.get(event["kind"], 0) + count
    kinds = sorted((counts.keys() - OPTIONAL_EVENTS) | right.keys())
    return [f"event {kind} {counts.get(kind, 0)}, not {right.get(kind, 0)}" for kind in kinds
            if counts.get(kind, 0) != right.get(kind, 0)]


def wrong_times(found, wanted):
    return [f"{name} {found.get(name)}, not {wanted[name]}" for name in DERIVED
            if wanted.get(name) is not None
            and not (found.get(name) is not None
                     and math.isclose(found[name], wanted[name], rel_tol=0.01, abs_tol=0.002))]


@pytest.mark.parametrize("log, expected", list(cases()))
def test_a_training_log_becomes_its_records(tmp_path, log: pathlib.Path, expected: pathlib.Path):
    want = json.loads(expected.read_text())
    done = subprocess.run([BINARY, "log", str(log), "--json"], env=clean_env(tmp_path), cwd=tmp_path,
                          capture_output=True, timeout=MOST_SECONDS)
    assert done.returncode == 0, done.stderr.decode()
    got = json.loads(done.stdout)["data"]
    wrong = [] if got["records"] == want["train_records"] else [
        f"records {got['records']}, not {want['train_records']}"]
    for end in ("first", "last"):
        wrong += wrong_record(end, got.get(end), want[end]) if want.get(end) else []
    wrong += wrong_events(got["events"], want["events"], COUNTED_TWICE.get(log.name, set()))
    wrong += wrong_times(got.get("derived") or {}, want.get("derived") or {})
    assert not wrong, "; ".join(wrong)


def test_each_log_has_its_expectation_and_each_line_it_names():
    for expected in OWN.glob("*.expected.json"):
        log = expected.with_name(expected.name.removesuffix(".expected.json"))
        lines = log.read_bytes().count(b"\n") + 1
        want = json.loads(expected.read_text())
        named = [want[end]["line"] for end in ("first", "last") if end in want]
        named += [line for event in want["events"] for line in event["lines"]]
        assert all(1 <= line <= lines for line in named), log.name
        assert ("first" in want) <= (want["train_records"] > 0), log.name
    unexplained = [path.name for path in OWN.iterdir()
                   if path.suffix not in (".json", ".md") and not path.with_name(path.name + ".expected.json").exists()]
    assert unexplained == []
