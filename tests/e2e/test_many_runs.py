# SPDX-License-Identifier: Apache-2.0
"""Many run files in one table: `report FOLDER`, `report RUN RUN` and `ls --long`."""
import csv
import io
import json
import os

import pytest
import schema
from conftest import ROOT

RUNS = json.loads((ROOT / "docs/schema/runs.schema.json").read_text())
KEYS = ["name", "started", "duration", "utilization", "sm", "memory", "wait", "io", "waste", "energy", "findings"]


@pytest.fixture
def folder(tool, recordings):
    place = tool.tmp / "many"
    place.mkdir()
    for name in ("healthy", "data_starved", "straggler"):
        assert tool.call("import", "recording", recordings / name, "-o", place / f"{name}.emr").returncode == 0
    (place / "broken.emr").write_text("no run file")
    return place


def rows(tool, *words):
    done = tool.call(*words, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert schema.errors(answer, RUNS) == []
    return answer["data"]["runs"], answer["data"]["profiles"]


def test_a_row_a_run_and_the_reason_where_it_can_not_be_read(tool, folder):
    table, profiles = rows(tool, "report", folder)
    by_name = {row["name"]: row for row in table if row["error"] is None}
    assert set(by_name) == {"healthy", "data_starved", "straggler"}
    broken = [row for row in table if row["error"]]
    assert len(broken) == 1 and broken[0]["path"].endswith("broken.emr") and broken[0]["gpus"] is None
    starved = by_name["data_starved"]
    assert starved["data_wait_ratio"] > 0.5
    assert starved["worst_rule"] == "data_starvation" and starved["worst_title_zh"]
    assert by_name["straggler"]["ranks"] == by_name["straggler"]["gpus"] == 2
    assert by_name["healthy"]["epochs"] == 4 and by_name["healthy"]["worst_rule"] is None
    assert 0 < by_name["healthy"]["gpu_memory_peak_bytes"] < by_name["healthy"]["gpu_memory_total_bytes"]
    assert all(0 <= row["waste_gpu_s"] <= row["gpu_s"] for row in by_name.values())
    assert sorted(profile["name"] for profile in profiles) == sorted(by_name)


def test_the_figures_are_those_of_the_report(tool, folder):
    table, _ = rows(tool, "report", folder)
    row = next(row for row in table if row["name"] == "healthy")
    report = json.loads(tool.call("report", folder / "healthy.emr", "--json").stdout)["data"]
    assert row["utilization_ratio"] == report["gpus"][0]["utilization_ratio"]["mean"]
    assert row["energy_j"] == report["run"]["energy_j"]
    assert row["steps"] == sum(epoch["steps"] for epoch in report["epochs"])


@pytest.mark.parametrize("key", KEYS)
def test_sorting_keeps_every_run(tool, folder, key):
    table, _ = rows(tool, "ls", "--long", folder, "--sort", key)
    assert len(table) == 4 and table[-1]["error"]
    if key == "waste":
        wastes = [row["waste_gpu_s"] for row in table[:-1]]
        assert wastes == sorted(wastes, reverse=True)


def test_an_unknown_key_is_an_error_that_names_the_known_ones(tool, folder):
    done = tool.call("report", folder, "--sort", "colour")
    assert done.returncode == 2 and b"waste" in done.stderr


def test_several_files_in_their_order_and_csv(tool, folder):
    files = [folder / "straggler.emr", folder / "none.emr", folder / "healthy.emr"]
    done = tool.call("report", *files, "-f", "csv", "--sort", "duration")
    assert done.returncode == 0
    table = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert list(table[0]) == list(RUNS["$defs"]["run"]["properties"])
    assert [row["name"] for row in table] == ["straggler", "healthy", ""]
    assert table[2]["error"] and table[2]["gpus"] == ""


def test_text_and_markdown(tool, folder):
    text = tool.call("report", folder).stdout.decode()
    assert "data_starved" in text and "broken.emr" in text and "3 runs" in text
    page = tool.call("report", folder, "-f", "md").stdout.decode()
    assert "| run |" in page and "| --- |" in page
    assert tool.call("report", folder, "-f", "html").returncode == 2


def test_an_output_never_goes_over_a_run(tool, folder):
    before = (folder / "healthy.emr").read_bytes()
    assert tool.call("report", folder, "-f", "csv", "-o", folder / "healthy.emr").returncode == 3
    assert (folder / "healthy.emr").read_bytes() == before


def test_an_empty_folder_is_an_error(tool):
    assert tool.call("report", tool.tmp).returncode == 3


def test_a_thousand_runs(tool, folder):
    place = tool.tmp / "thousand"
    place.mkdir()
    for i in range(1000):
        os.link(folder / "healthy.emr", place / f"r{i:04}.emr")
    table, profiles = rows(tool, "report", place)
    assert len(table) == 1000
    figures = profiles[0]["figures"]
    assert profiles[0]["runs"] == figures["utilization_ratio"]["runs"] == 1000
    assert figures["duration_s"]["p50"] == figures["duration_s"]["max"]


def test_no_name_of_a_run_moves_the_terminals_cursor(tool):
    place = tool.tmp / "names"
    place.mkdir()
    done = tool.call("run", "-o", place / "run\x1b[2J.emr", "--", "true", "\x1b[31mred")
    assert done.returncode == 0, done.stderr
    listed = tool.call("ls", place)
    assert listed.returncode == 0 and b"red" in listed.stdout
    assert b"\x1b" not in listed.stdout


def test_a_bill_of_an_empty_folder_says_that_there_is_no_run(tool):
    place = tool.tmp / "nothing"
    place.mkdir()
    done = tool.call("bill", place)
    assert done.returncode == 3 and b"no run" in done.stderr
