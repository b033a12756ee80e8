# SPDX-License-Identifier: Apache-2.0
"""Compares a report with what the program wrote of itself; prints one line of a table.

usage: check_truth.py NAME REPORT.json POINTS.jsonl TRUTH.json...     (one truth file per rank)
POINTS.jsonl is `epochmeter export -f jsonl`. Ends with 1 when a figure differs.
"""
import datetime
import glob
import json
import math
import sys


def wall_s(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# A scalar tensor or two of the framework's own may come or go between its reading and ours.
ALLOCATOR_SLACK = 4096


def near(ours, theirs):
    if ours is None:
        return False
    return ours == theirs or math.isclose(float(ours), theirs, rel_tol=1e-6, abs_tol=1e-9)


class Case:
    def __init__(self, report, points):
        self.rows = report["epochs"]
        self.run = report["run"]
        self.losses = report["losses"]
        self.memory = []
        for line in points:
            point = json.loads(line)
            if point.get("metric") == "framework_memory_bytes":
                self.memory.append((wall_s(point["@timestamp"]), point["labels"], point["value"]))
        self.wrong = []
        self.scalars = self.allocator = self.gpus = 0

    def fail(self, text):
        self.wrong.append(text)

    def check_scalars(self, row, wanted):
        for where, values in (("scalars", wanted["scalars"]), ("eval", wanted["eval"])):
            for name, value in values.items():
                found = [row["scalars"].get(name)]
                # Of an evaluation's names the prefix that says so is left out.
                found += [p["scalars"].get(name.removeprefix("val_").removeprefix("eval_"))
                          for p in row["phases"] if p["phase"] == "eval"]
                if any(near(f, value) for f in found):
                    self.scalars += 1
                else:
                    self.fail(f"epoch {row['epoch']} {where} {name}: {found} is not {value}")

    def check_allocator(self, row, wanted):
        """The reading at the epoch's end is the program's own; the first one that comes then."""
        end = wall_s(row["end"]) - 0.002
        for name, value in (wanted["allocator"] or {}).items():
            state = name.replace("_bytes", "")
            after = [v for t, labels, v in self.memory if labels.get("state") == state and end <= t <= end + 0.5]
            if any(abs(v - value) <= ALLOCATOR_SLACK for v in after):
                self.allocator += 1
            else:
                shown = row["framework"].get(name, {}).get("last")
                self.fail(f"epoch {row['epoch']} {name}: {after[:3]} (report {shown}) is not {value}")

    def check_gpu(self, row, uuid):
        if uuid is None:
            return
        own = row["own_gpus"]
        lacking = [k for k in ("utilization_ratio", "memory_used_max_bytes", "power_w") if own.get(k) is None]
        uuids = [g.get("uuid") for g in row["gpus"] if g["gpu"] in own["gpus"]]
        if lacking:
            self.fail(f"epoch {row['epoch']} lacks {','.join(lacking)}")
        if uuids and uuids != [uuid]:
            self.fail(f"epoch {row['epoch']} has GPU {uuids}, not {uuid}")
        if len(own["gpus"]) != 1:
            self.fail(f"epoch {row['epoch']} has own GPUs {own['gpus']}")
        self.gpus += 1

    def check_rank(self, rows, truth):
        wanted = truth["epochs"]
        if [r["epoch"] for r in rows] != [e["epoch"] for e in wanted]:
            self.fail(f"epochs {[r['epoch'] for r in rows]} are not {[e['epoch'] for e in wanted]}")
            return
        for row, epoch in zip(rows, wanted):
            if row["steps"] != epoch["steps"]:
                self.fail(f"epoch {row['epoch']}: {row['steps']} steps are not {epoch['steps']}")
            if not row["complete"]:
                self.fail(f"epoch {row['epoch']} is not complete")
            if truth.get("samples") is not None and row["samples"] not in (None, truth["samples"]):
                self.fail(f"epoch {row['epoch']}: {row['samples']} samples are not {truth['samples']}")
            self.check_scalars(row, epoch)
            self.check_allocator(row, epoch)
            self.check_gpu(row, truth.get("gpu"))


def main():
    name, report_path, points_path, *patterns = sys.argv[1:]
    with open(report_path) as file:
        report = json.load(file)["data"]
    with open(points_path) as points:
        case = Case(report, points)
    paths = sorted(path for pattern in patterns for path in glob.glob(pattern))
    if not paths:
        case.fail("the program wrote no truth")
    for rank, path in enumerate(paths):
        rows = case.rows if len(paths) == 1 else [r for r in case.rows if r["rank"] == rank]
        with open(path) as file:
            case.check_rank(rows, json.load(file))
    if case.losses:
        case.fail(f"losses {[loss.get('kind') for loss in case.losses]}")
    steps = sum(r["steps"] for r in case.rows)
    step_ms = [round(1000 * r["step_s"]["p50"], 2) for r in case.rows if r["step_s"].get("p50") is not None]
    print(f"{'FAIL' if case.wrong else 'PASS'}  {name:24} epochs {len(case.rows)} steps {steps} "
          f"scalars {case.scalars} allocator {case.allocator} gpu rows {case.gpus} "
          f"source {case.run['progress_source']} step p50 ms {step_ms}")
    for text in case.wrong:
        print(f"      {text}")
    return 1 if case.wrong else 0


sys.exit(main())
