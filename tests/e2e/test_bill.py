# SPDX-License-Identifier: Apache-2.0
"""Bills of real recordings: exact sums, energy against the counter, formats that agree, settings."""
import csv
import gzip
import io
import json
import pathlib

import pytest
from conftest import ROOT, SHARED
from schema import errors

NAMES = sorted(p.name for p in (SHARED / "recordings").glob("*")) or ["none"]
USES = ["productive", "data_wait", "communication", "throttle", "repeated", "evaluation", "checkpoint", "compile",
        "other", "stall", "idle", "start_up", "tear_down", "unused", "unknown"]
RATES = """
[prices]
currency = "EUR"
electricity_kwh = 0.3
[[prices.gpu]]
name = "*H200*"
gpu_hour = 3.6
evaluation_gpu_hour = 1.8
[energy]
pue = 1.25
[carbon]
g_per_kwh = 400
"""


def bill_of(tool, *words):
    done = tool.call("bill", *words, "-f", "json")
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def imported(tool, recordings, name):
    done = tool.call("import", "recording", recordings / name, "-o", tool.run_file)
    assert done.returncode == 0, done.stderr.decode()
    return tool.run_file


def counter_readings(folder):
    """Readings of the energy counter of each GPU in J, in the order of time."""
    readings = {}
    with gzip.open(folder / "samples.jsonl.gz", "rt") as file:
        for line in file:
            sample = json.loads(line)
            if sample["kind"] == "gpu" and sample.get("energy_mj") is not None:
                readings.setdefault(sample["gpu"], []).append(sample["energy_mj"] / 1e3)
    return readings


def check_sums(bill):
    total = bill["total"]
    assert bill["wall_ns"] * bill["devices"] == total["total_ns"]
    assert sum(use["ns"] for use in total["uses"].values()) == total["total_ns"]
    for by in ["epochs", "phases", "ranks"] + (["gpus"] if bill["basis"] == "gpu" else []):
        assert sum(line["total_ns"] for line in bill[by]) == total["total_ns"], by
        for use in USES:
            parts = sum(line["uses"].get(use, {"ns": 0})["ns"] for line in bill[by])
            assert parts == total["uses"].get(use, {"ns": 0})["ns"], (by, use)
    for line in [total] + bill["epochs"] + bill["gpus"]:
        assert all(use["ns"] > 0 for use in line["uses"].values())
        if line["energy_j"] is not None:
            assert sum(use["energy_j"] for use in line["uses"].values()) == pytest.approx(line["energy_j"])


@pytest.mark.parametrize("name", NAMES)
def test_sums_are_exact_and_energy_is_the_counters(tool, recordings, name):
    run = imported(tool, recordings, name)
    bill = bill_of(tool, run)["data"]["bill"]
    check_sums(bill)
    assert bill["total"]["counter_coverage_ratio"] > 0.95 and bill["total"]["integral_coverage_ratio"] > 0.95
    assert bill["energy_disagreement_ratio"] < 0.05
    readings = counter_readings(recordings / name)
    grown = sum(readings[line["gpu"]][-1] - readings[line["gpu"]][0] for line in bill["gpus"])
    assert bill["total"]["counter_j"] == pytest.approx(grown, rel=0.02)
    # Of the truth the counter's growth between the samples inside the epoch: up to two samples less than the epoch.
    truth = json.loads((recordings / name / "truth.json").read_text())
    lines = {line["epoch"]: line for line in bill["epochs"]}
    for number in {e["epoch"] for rank in truth["ranks"].values() for e in rank["epochs"]}:
        told = [e for rank in truth["ranks"].values() for e in rank["epochs"] if e["epoch"] == number]
        if len(told) < len(truth["ranks"]) or any(e.get("energy_j") is None for e in told):
            continue
        least = sum(e["energy_j"] for e in told)
        most = sum(e["energy_j"] * (1 + 2.5 / (e["gpu_samples"] - 1)) for e in told)
        assert least * 0.98 < lines[number]["energy_j"] < most * 1.02, (name, number)
    assert bill["rates"]["gpus"] == [] and bill["total"]["cost"] is None and bill["total"]["carbon_g"] is None


@pytest.mark.parametrize("name", NAMES[:3])
def test_csv_and_json_and_the_report_agree(tool, recordings, name):
    run = imported(tool, recordings, name)
    whole = bill_of(tool, run)
    schema = json.loads((ROOT / "docs/schema/bill.schema.json").read_text())
    assert errors(whole, schema) == []
    bill = whole["data"]["bill"]
    assert tool.report(run)["bill"] == bill
    done = tool.call("bill", run, "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout.decode())))
    assert [row["by"] for row in rows].count("total") == 1
    total = next(row for row in rows if row["by"] == "total")
    assert int(total["total_ns"]) == bill["total"]["total_ns"]
    for use in USES:
        assert int(total[use + "_ns"]) == bill["total"]["uses"].get(use, {"ns": 0})["ns"]
    assert float(total["energy_j"]) == bill["total"]["energy_j"]
    for by, lines in (("epoch", "epochs"), ("phase", "phases"), ("rank", "ranks"), ("gpu", "gpus")):
        only = list(csv.DictReader(io.StringIO(tool.call("bill", run, "-f", "csv", "--by", by).stdout.decode())))
        assert [int(row["total_ns"]) for row in only if row["by"] == by] == [x["total_ns"] for x in bill[lines]]


def test_prices_come_from_the_rates_file_only(tool, recordings):
    run = imported(tool, recordings, "checkpoint")
    rates = tool.tmp / "rates.toml"
    rates.write_text(RATES)
    bill = bill_of(tool, run, "--rates", rates)["data"]["bill"]
    total = bill["total"]
    assert total["cost"] == pytest.approx(total["total_ns"] / 3.6e12 * 3.6)
    assert total["carbon_g"] == pytest.approx(total["energy_j"] / 3.6e6 * 1.25 * 400)
    assert total["electricity_cost"] == pytest.approx(total["energy_j"] / 3.6e6 * 1.25 * 0.3)
    text = tool.call("bill", run, "--rates", rates).stdout.decode()
    assert "EUR" in text and "CO2" in text and "No price" not in text
    assert "No price" in tool.call("bill", run).stdout.decode()


def test_a_folder_is_a_line_a_run_and_their_sum(tool, recordings):
    folder = tool.tmp / "runs"
    folder.mkdir()
    for name in ("checkpoint", "ddp_healthy"):
        assert tool.call("import", "recording", recordings / name, "-o", folder / f"{name}.emr").returncode == 0
    (folder / "broken.emr").write_bytes(b"nothing of ours")
    data = bill_of(tool, folder)["data"]
    bills = [run["bill"] for run in data["runs"] if run["bill"]]
    assert len(data["runs"]) == 3 and len(bills) == 2
    assert data["total"]["total_ns"] == sum(bill["total"]["total_ns"] for bill in bills)
    assert data["total"]["energy_j"] == pytest.approx(sum(bill["total"]["energy_j"] for bill in bills))
    schema = json.loads((ROOT / "docs/schema/bill.schema.json").read_text())
    assert errors({"schema_version": 1, "tool": {"name": "epochmeter", "version": "", "revision": ""},
                   "data": data, "warnings": []}, schema) == []
    text = tool.call("bill", folder).stdout.decode()
    assert "checkpoint" in text and "broken" in text
    rows = list(csv.DictReader(io.StringIO(tool.call("bill", folder, "-f", "csv").stdout.decode())))
    assert [row["by"] for row in rows].count("total") == 2
    assert tool.call("bill", folder, "--strict").returncode == 4
    assert tool.call("bill", folder, "-o", folder / "checkpoint.emr").returncode == 3


def test_config_prints_a_file_that_it_reads(tool):
    first = tool.call("config").stdout
    path = tool.tmp / "config.toml"
    path.write_bytes(first)
    again = tool.call("config", "--config", path)
    assert again.returncode == 0, again.stderr.decode()
    settings = [line for line in first.splitlines() if line and not line.startswith(b"#")]
    assert settings == [line for line in again.stdout.splitlines() if line and not line.startswith(b"#")]
    listed = json.loads(tool.call("config", "--json").stdout)["data"]["limits"]
    assert all(limit["value"] == limit["built_in"] and limit["source"] for limit in listed)


def test_config_with_prices_comes_back(tool):
    path = tool.tmp / "config.toml"
    path.write_text(RATES + '[limits]\ndata_starvation.warning_ratio = 0.5\n"data_starvation.info_ratio" = 0.25\n')
    second = tool.tmp / "second.toml"
    second.write_bytes(tool.call("config", "--config", path).stdout)
    one = json.loads(tool.call("config", "--json", "--config", path).stdout)["data"]
    two = json.loads(tool.call("config", "--json", "--config", second).stdout)["data"]
    assert {**one, "path": ""} == {**two, "path": ""}
    assert {x["id"]: x["value"] for x in one["limits"]}["data_starvation.warning_ratio"] == 0.5


@pytest.mark.parametrize("text, said", [
    ("[limits]\ndata_starvation.warnin_ratio = 1\n", ":2"),
    ("[limits]\n\ndata_starvation.warning_ratio = -1\n", ":3"),
    ("[limits]\ndata_starvation.warning_ratio = 'much'\n", ":2"),
    ("[limits]\ndata_starvation.warning_ratio = nan\n", ":2"),
    ("[prices]\ngpu_hour = 1e400\n", ":2"),
    ("[energy]\npue = 0.5\n", ":2"),
    ("[[prices.gpu]]\nname = 'x'\n", ":1"),
    ("[prizes]\n", ":1"),
    ("a = = 1\n", ":1"),
])
def test_a_named_file_must_be_good(tool, recordings, text, said):
    run = imported(tool, recordings, "oom")
    path = tool.tmp / "bad.toml"
    path.write_text(text)
    for words in (["bill", run], ["report", run], ["summary", run], ["export", run], ["config"]):
        done = tool.call(*words, "--config", path)
        assert done.returncode == 2, words
        message = done.stderr.decode()
        assert f"bad.toml{said}" in message and "(" in message


def test_a_file_in_its_place_only_warns_and_never_stops_a_run(tool, recordings):
    run = imported(tool, recordings, "oom")
    home = tool.tmp / "config"
    (home / "epochmeter").mkdir(parents=True)
    place = home / "epochmeter" / "config.toml"
    place.write_text("[limits]\nno.such_limit = 1\n[prices]\ncurrency = 'EUR'\ngpu_hour = 2\n")
    env = tool.env(XDG_CONFIG_HOME=str(home))
    done = tool.call("bill", run, "-f", "json", env=env)
    assert done.returncode == 0 and "warning" in done.stderr.decode() and "config.toml:2" in done.stderr.decode()
    assert json.loads(done.stdout)["data"]["bill"]["total"]["cost"] > 0
    place.write_text("{{{{ no TOML")
    assert tool.call("report", run, env=env).returncode == 0
    tool.run_file = tool.tmp / "fresh.emr"
    done = tool.record("true", env=env)
    assert done.returncode == 0 and "TOML" not in done.stderr.decode()
    tool.run_file = tool.tmp / "other.emr"
    done = tool.record("true", env=tool.env(EPOCHMETER_CONFIG=str(place)))
    assert done.returncode == 0 and b"TOML" not in done.stderr


def test_limits_of_the_config_reach_the_rules(tool, recordings):
    run = imported(tool, recordings, "data_starved")

    def severity(*words):
        done = tool.call("report", run, "-f", "json", *words)
        findings = json.loads(done.stdout)["data"]["findings"]
        return [f["severity"] for f in findings if f["rule"] == "data_starvation"]

    path = tool.tmp / "config.toml"
    path.write_text("[limits.data_starvation]\nwarning_ratio = 1\ninfo_ratio = 1\n")
    assert "warning" in severity() and "warning" not in severity("--config", path)


def test_usage_errors_name_what_there_is(tool, recordings):
    run = imported(tool, recordings, "oom")
    for words in (["--by", "month"], ["-f", "xml"], ["--rates", "no-such-file"]):
        done = tool.call("bill", run, *words)
        assert done.returncode in (2, 3) and done.stderr
    assert pathlib.Path(run).stat().st_size > 0
