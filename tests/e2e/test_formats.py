# SPDX-License-Identifier: Apache-2.0
"""What other programs read: csv in pandas, JSON Lines, dump and assemble, over real recordings."""
import io
import json
import subprocess
import sys

import pytest
from conftest import BINARY, SHARED, python

pandas = pytest.importorskip("pandas")


@pytest.fixture
def healthy(tool, recordings):
    assert tool.call("import", "recording", recordings / "healthy", "-o", tool.run_file).returncode == 0
    return tool


def test_wide_csv_just_works_in_pandas(healthy):
    text = healthy.call("export", healthy.run_file, "-f", "csv").stdout.decode()
    table = pandas.read_csv(io.StringIO(text), parse_dates=["timestamp"])
    assert str(table["timestamp"].dtype).startswith("datetime64")
    assert table["gpu0_utilization_ratio"].max() <= 1
    assert table["gpu0_memory_used_bytes"].max() == 4585226240
    assert table["timestamp"].is_monotonic_increasing
    assert 300 < len(table) < 400


def test_long_csv_has_every_sample(healthy):
    text = healthy.call("export", healthy.run_file, "-f", "csv", "--long").stdout.decode()
    table = pandas.read_csv(io.StringIO(text), parse_dates=["timestamp"])
    assert list(table.columns) == ["timestamp", "metric", "unit", "host", "rank", "gpu", "value"]
    used = table[table["metric"].str.contains("gpu_utilization_ratio|gpu.utilization", regex=True)]
    assert len(used) == 328


def test_jsonl_is_one_object_a_line_with_the_time_first(healthy):
    lines = healthy.call("export", healthy.run_file, "-f", "jsonl").stdout.decode().splitlines()
    for line in lines[:2000]:
        assert next(iter(json.loads(line))) == "@timestamp"


def test_report_csv_and_jsonl_have_a_row_per_epoch(healthy):
    table = pandas.read_csv(io.StringIO(healthy.call("report", healthy.run_file, "-f", "csv").stdout.decode()))
    assert list(table["epoch"]) == [0, 1, 2, 3]
    lines = healthy.call("report", healthy.run_file, "-f", "jsonl").stdout.decode().splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["epoch"] for record in records if record["record"] == "epoch"] == [0, 1, 2, 3]


def test_several_formats_at_once(healthy):
    stem = healthy.tmp / "all"
    assert healthy.call("report", healthy.run_file, "-f", "text,json,csv,jsonl", "-o", stem).returncode == 0
    assert sorted(p.name for p in healthy.tmp.glob("all.*")) == ["all.csv", "all.json", "all.jsonl", "all.txt"]


def names():
    folder = SHARED / "recordings"
    return sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []


@pytest.mark.parametrize("name", names())
def test_dump_and_assemble_give_the_same_bytes(tool, recordings, name):
    assert tool.call("import", "recording", recordings / name, "-o", tool.run_file).returncode == 0
    text = tool.tmp / "run.txt"
    again = tool.tmp / "again.emr"
    assert tool.call("dump", tool.run_file, "-o", text).returncode == 0
    assert tool.call("assemble", text, "-o", again).returncode == 0
    assert again.read_bytes() == tool.run_file.read_bytes()


def test_every_command_takes_json(healthy):
    for words in (["report", healthy.run_file], ["summary", healthy.run_file], ["ls", healthy.tmp], ["list", "metrics"],
                  ["version"], ["recover", healthy.run_file], ["export", healthy.run_file, "-o", healthy.tmp / "x.csv"],
                  ["dump", healthy.run_file, "-o", healthy.tmp / "x.txt"],
                  ["import", "recording", SHARED / "recordings" / "oom", "-o", healthy.tmp / "oom.emr"]):
        done = healthy.call(*words, "--json")
        assert done.returncode == 0, (words, done.stderr)
        answer = json.loads(done.stdout)
        assert answer["schema_version"] == 1 and answer["tool"]["name"] == "epochmeter" and "data" in answer, words
    failed = healthy.call("report", healthy.tmp / "none.emr", "--json")
    assert failed.returncode == 3
    assert json.loads(failed.stdout)["error"]["what"]


def test_a_file_name_alone_is_the_summary(healthy):
    assert healthy.call(healthy.run_file).stdout == healthy.call("summary", healthy.run_file).stdout != b""


def test_the_newest_run_is_the_default(tool):
    for code in (1, 2):
        tool.call("run", "-q", "--", "sh", "-c", f"exit {code}")
    data = json.loads(tool.call("report", "--json").stdout)["data"]
    assert data["run"]["exit"]["exit_code"] == 2
    assert len(json.loads(tool.call("ls", "--json").stdout)["data"]["runs"]) == 2


def test_a_closed_reader_is_no_error(healthy):
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {BINARY} export {healthy.run_file} -f jsonl | head -1"],
                          capture_output=True, env=healthy.env(), timeout=60)
    assert done.stderr == b""
