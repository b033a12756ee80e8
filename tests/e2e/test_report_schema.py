# SPDX-License-Identifier: Apache-2.0
"""`report --format json` is what docs/schema/report.schema.json says, over recordings and live runs."""
import csv
import io
import json

import pytest
import schema
from conftest import ROOT, SHARED

REPORT = json.loads((ROOT / "docs/schema/report.schema.json").read_text())


def names():
    folder = SHARED / "recordings"
    return sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []


def report(tool):
    done = tool.call("report", tool.run_file, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def records(tool):
    return [json.loads(line) for line in tool.call("report", tool.run_file, "-f", "jsonl").stdout.splitlines()]


@pytest.mark.parametrize("name", names())
def test_a_recording(tool, recordings, name):
    assert tool.call("import", "recording", recordings / name, "-o", tool.run_file).returncode == 0
    answer = report(tool)
    assert schema.errors(answer, REPORT) == []
    findings = answer["data"]["findings"]
    ids = [finding["rule"] for finding in findings]
    assert ids and all(finding["title"] and finding["title_zh"] for finding in findings)
    judged = [finding for finding in findings if finding["severity"] != "not_applicable"]
    order = ["critical", "warning", "info"]
    assert [order.index(f["severity"]) for f in judged] == sorted(order.index(f["severity"]) for f in judged)
    lines = [record for record in records(tool) if record["record"] == "finding"]
    assert [line["rule"] for line in lines] == [finding["rule"] for finding in judged]
    table = list(csv.DictReader(io.StringIO(tool.call("report", tool.run_file, "-f", "findings").stdout.decode())))
    assert [row["rule"] for row in table] == [finding["rule"] for finding in judged]
    assert [row["summary"] for row in table] == [finding["summary"] for finding in judged]


def test_a_run_with_nothing_in_it(tool):
    assert tool.call("run", "-q", "-o", tool.run_file, "--", "true").returncode == 0
    assert schema.errors(report(tool), REPORT) == []


def test_a_run_that_failed(tool):
    assert tool.call("run", "-q", "-o", tool.run_file, "--", "sh", "-c", "exit 3").returncode == 3
    answer = report(tool)
    assert schema.errors(answer, REPORT) == []
    assert answer["data"]["run"]["exit"]["exit_code"] == 3


def test_the_validator_sees_what_is_wrong(tool):
    assert tool.call("run", "-q", "-o", tool.run_file, "--", "true").returncode == 0
    answer = report(tool)
    answer["data"]["run"]["more"] = 1
    answer["data"]["findings"].append({"rule": "x"})
    answer["data"]["host"]["cpu_ratio"] = {"count": -1, "total": 1}
    found = "\n".join(schema.errors(answer, REPORT))
    assert "$.data.run.more is not in the schema" in found
    assert "severity is missing" in found
    assert "$.data.host.cpu_ratio fits 0 of oneOf" in found
