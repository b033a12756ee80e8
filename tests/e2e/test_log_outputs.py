# SPDX-License-Identifier: Apache-2.0
"""What `log` writes for other programs: its document against the schema, rows, patterns, one fixed structure, a run
file, a recording joined with the log, and several files of one job."""
import csv
import datetime
import io
import json
import re
import sys
import textwrap

import pytest
import schema
from conftest import ROOT

LOG = json.loads((ROOT / "docs/schema/log.schema.json").read_text())
OWN = ROOT / "tests" / "logs"
LOGS = sorted(path.name.removesuffix(".expected.json") for path in OWN.glob("*.expected.json"))
NORMAL = re.compile(r"\[(INFO|WARNING|ERROR)\]( \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)? -"
                    r"(?: Step [-+.\de]+)?(?:,? Loss=\S+?)?(?:,? Time=[-+.\de]+s)?(?:,? GPU_Mem=\d+\.\d{3}GB)?$")


def text(tool, *words, code=0):
    done = tool.call(*words, env=tool.env(TZ="UTC"))
    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode()


def data(tool, *words):
    return json.loads(text(tool, "log", *words, "--json"))["data"]


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))
    return path


def job(tool, name, rank, stamped=True, steps=40, step_s=0.5):
    """A log of one rank; rank r writes its lines r * 10 ms later than rank 0."""
    begin = datetime.datetime(2026, 3, 1, 10) + datetime.timedelta(milliseconds=10 * rank)
    lines = []
    for i in range(1, steps + 1):
        stamp = (begin + datetime.timedelta(seconds=i * step_s)).strftime("[%Y-%m-%d %H:%M:%S,%f")[:-3] + "] "
        lines.append((stamp if stamped else "") + f"epoch: {(i - 1) // 20 + 1}, step: {i}, loss: {5 / i + rank:.4f}, "
                     f"batch_cost: {step_s + 0.05 * (rank == 5):.3f} s, max_mem_allocated: 2048 MB")
    return write(tool.tmp / name, lines)


def test_every_document_is_as_the_schema_says(tool):
    wrong = {}
    for name in LOGS:
        errors = schema.errors(json.loads(text(tool, "log", OWN / name, "--json")), LOG)
        if errors:
            wrong[name] = errors[:3]
    assert LOGS and wrong == {}


def test_the_schema_sees_what_is_wrong(tool):
    answer = json.loads(text(tool, "log", job(tool, "train.log", 0), "--json"))
    answer["data"]["messages"]["more"] = 1
    answer["data"]["records"] = "40"
    assert len(schema.errors(answer, LOG)) == 2


def test_csv_has_a_row_for_each_record(tool):
    log = job(tool, "train.log", 0)
    rows = list(csv.DictReader(io.StringIO(text(tool, "log", log, "-f", "csv"))))
    assert [int(row["step"]) for row in rows] == list(range(1, 41))
    assert rows[0]["timestamp"] == "2026-03-01T10:00:00.500Z"
    assert float(rows[7]["loss"]) == 0.625 and float(rows[7]["memory_bytes"]) == 2048 * 2**20
    assert {row["record"] for row in rows} == {"train"}


def test_export_of_a_log_gives_the_same_rows(tool):
    log = job(tool, "train.log", 0)
    assert text(tool, "export", log) == text(tool, "log", log, "-f", "csv")
    assert text(tool, "export", log, "-f", "jsonl") == text(tool, "log", log, "-f", "jsonl")
    assert b"is for runs" in tool.call("export", log, "--long").stderr


def test_export_with_json_tells_where_the_rows_are_and_gives_no_rows(tool):
    log = job(tool, "train.log", 0)
    done = tool.call("export", log, "--json")
    assert done.returncode == 2 and "-f jsonl" in json.loads(done.stdout)["error"]["what_to_do"]
    answer = json.loads(text(tool, "export", log, "--json", "-o", tool.tmp / "rows.csv"))["data"]
    assert answer == {"log": str(log), "output": str(tool.tmp / "rows.csv"), "format": "csv"}
    assert (tool.tmp / "rows.csv").read_text() == text(tool, "log", log, "-f", "csv")


def test_the_name_of_the_output_says_the_format(tool):
    log = job(tool, "train.log", 0)
    for name in ("out.csv", "out.jsonl", "out.JSON", "out.txt", "out"):
        text(tool, "log", log, "-o", tool.tmp / name)
    for name in ("csv", "jsonl", "json"):
        made = (tool.tmp / ("out." + (name if name != "json" else "JSON"))).read_text()
        assert made == text(tool, "log", log, "-f", name)
    assert (tool.tmp / "out.txt").read_text() == (tool.tmp / "out").read_text() == text(tool, "log", log)
    text(tool, "log", log, "-f", "text", "-o", tool.tmp / "chosen.html")
    for name in ("html", "png", "svg", "md"):
        done = tool.call("log", log, "-o", tool.tmp / f"out.{name}")
        assert done.returncode == 2 and f"epochmeter report NAME.emr -f {name}".encode() in done.stderr
        assert not (tool.tmp / f"out.{name}").exists()


def test_lines_on_the_page_are_without_secrets(tool):
    log = write(tool.tmp / "train.log", [
        "epoch: 1, step: 1, loss: 2.5", "Traceback (most recent call last):",
        '  File "/home/ann/train.py", line 3, in <module>',
        "OSError: cannot open /home/ann/data with AccountKey=Zm9vYmFyYmF6cXV4; "
        "https://s.blob.core.windows.net/c?sv=1&sig=abcd%2Fef"])
    page = text(tool, "log", log)
    assert "cannot open ~/data with AccountKey=***" in page and "sig=***" in page and "/home" not in page
    assert "/home/ann/data" in text(tool, "log", log, "--no-redact")
    assert "/home/ann/data" in text(tool, "log", log, "--json")


@pytest.mark.parametrize("name", LOGS)
def test_rows_of_every_log_are_the_records_of_its_document(tool, name):
    document = data(tool, OWN / name)
    lines = [json.loads(line) for line in text(tool, "log", OWN / name, "-f", "jsonl").splitlines()]
    trained = [line for line in lines if line["record"] == "train"]
    assert len(trained) == document["records"]
    assert sum(line["record"] == "event" for line in lines) == sum(event["count"] for event in document["events"])
    if trained:
        assert trained[0]["line"] == document["first"]["line"] and trained[-1]["line"] == document["last"]["line"]
    for line in text(tool, "log", OWN / name, "--ecs").splitlines():
        entry = json.loads(line, parse_constant=pytest.fail)
        assert entry["ecs.version"] and isinstance(entry["epochmeter"]["line"], int)
        assert all(isinstance(value, (float, str)) for key, value in entry["epochmeter"].items()
                   if key != "line" and entry["event.kind"] == "metric"), line


def test_lines_in_one_fixed_structure(tool):
    log = job(tool, "train.log", 0)
    lines = text(tool, "log", log, "--normalize").splitlines()
    assert lines[7] == "[INFO] 2026-03-01T10:00:04.000Z - Step 8, Loss=0.6250, Time=0.5s, GPU_Mem=2.147GB"
    for name in LOGS:
        trained = [json.loads(line) for line in text(tool, "log", OWN / name, "-f", "jsonl").splitlines()]
        normal = text(tool, "log", OWN / name, "--normalize").splitlines()
        assert len(normal) == len(trained)
        wrong = [line for line, row in zip(normal, trained) if row["record"] == "train"
                 and not NORMAL.match(line) and row.get("timestamp")]
        assert wrong == [], name


def test_patterns_find_the_values_in_the_log_itself(tool):
    seen = 0
    for name in LOGS:
        document = data(tool, OWN / name)
        if document["records"] == 0 or any(word in name for word in ("utf16", "gbk", "wrap_")):
            continue
        patterns = json.loads(text(tool, "log", OWN / name, "--emit-regex"))
        lines = (OWN / name).read_bytes().decode(errors="replace").split("\n")
        for shape in patterns["python"]:
            pattern, line = re.compile(shape["python"]), lines[shape["line"] - 1]
            if not shape["python"] or set("\x1b\b\r") & set(line.rstrip("\r")):
                continue  # no values, or colours and states of bars between them
            # Of a record of several lines each pattern is of one of them.
            found = next(filter(None, map(pattern.search, [line, *lines])), None)
            assert found, (name, shape["python"], line[:200])
            assert all(value for value in found.groupdict().values())
            seen += 1
        for metric in patterns["MetricDefinitions"]:
            assert len(metric["Regex"]) <= 500 and re.compile(metric["Regex"]).groups == 1, name
        for katib in patterns["katib"]["source"]["filter"]["metricsFormat"]:
            assert re.compile(katib).groups == 2, name
    assert seen > 100


def test_a_pattern_gives_the_loss_of_each_record(tool):
    log = job(tool, "train.log", 0)
    metrics = {m["Name"]: m["Regex"] for m in json.loads(text(tool, "log", log, "--emit-regex"))["MetricDefinitions"]}
    losses = [float(re.search(metrics["train:loss"], line).group(1)) for line in log.read_text().splitlines()]
    assert losses == [round(5 / i, 4) for i in range(1, 41)]


def test_patterns_tell_two_totals_of_a_line_apart(tool):
    log = tool.tmp / "pairs.log"
    log.write_text("".join(f"Epoch [1/7] Step [{step}/90] loss {9 / step}\n" for step in range(1, 9)))
    patterns = json.loads(text(tool, "log", log, "--emit-regex"))
    found = {m["Name"]: re.search(m["Regex"], "Epoch [2/7] Step [5/90] loss 0.5").group(1)
             for m in patterns["MetricDefinitions"]}
    assert found == {"train:epoch": "2", "train:epochs": "7", "train:step_in_epoch": "5",
                     "train:steps_per_epoch": "90", "train:loss": "0.5"}
    whole = re.search(patterns["python"][0]["python"], "Epoch [2/7] Step [5/90] loss 0.5").groupdict()
    assert {"train:" + name: value for name, value in whole.items()} == found


def test_a_run_file_of_a_log_is_read_by_the_other_commands(tool):
    log = job(tool, "train.log", 0)
    text(tool, "log", log, "-o", tool.run_file)
    report = tool.report()
    assert [(row["epoch"], row["steps"]) for row in report["epochs"]] == [(1, 20), (2, 20)]
    steps = [row for row in tool.export_jsonl() if row.get("event") == "step"]
    assert [row["step"] for row in steps] == list(range(1, 41))
    page = tool.tmp / "run.html"
    text(tool, "report", tool.run_file, "-f", "html", "-o", page)
    assert page.stat().st_size > 10_000
    assert tool.call("log", log, "-o", tool.run_file).returncode != 0  # it is there
    text(tool, "log", log, "-o", tool.run_file, "--force")


@pytest.mark.parametrize("lines, rows", [
    # Each tenth step of 100: the first line stands for ten, and the last one ends its epoch.
    ([f"epoch {epoch} step {step}/100 loss 0.{step}" for epoch in (1, 2) for step in range(10, 101, 10)],
     [(1, 100, True), (2, 100, True)]),
    ([f"epoch {epoch} step {step}/100 loss 0.{step}" for epoch in (1, 2) for step in range(0, 100, 10)],
     [(1, 100, True), (2, 91, False)]),
    ([f"step {step} loss 0.{step}" for step in range(5010, 5101, 10)], [(None, 91, False)]),
    ([f"Epoch {epoch}/3 Loss 0.5 Time: 12.5s" for epoch in (1, 2, 3)], [(1, None, True), (2, None, True), (3, None, True)]),
    ([f"{{'loss': 0.5, 'learning_rate': 1e-05, 'epoch': {k / 4}}}" for k in range(1, 9)], [(0, None, True), (1, None, True)]),
    ([f"Train Epoch: {epoch} [{n}/2560 ({n * 100 // 2560}%)]\tLoss: 0.5" for epoch in (1, 2) for n in range(0, 2560, 640)],
     [(1, None, True), (2, None, False)]),
])
def test_epochs_of_a_log_have_the_steps_that_it_counts(tool, lines, rows):
    text(tool, "log", write(tool.tmp / "train.log", lines), "-o", tool.run_file)
    epochs = tool.report()["epochs"]
    assert [(row["epoch"], row["steps"], row["complete"]) for row in epochs] == rows
    timed = "Time:" in lines[0]
    assert [row["duration_s"] for row in epochs] == [12.5 if timed else None] * len(rows)
    found = data(tool, "log", tool.tmp / "train.log")
    assert "step_time_s" not in found["last"] and found["derived"].get("median_step_time_s") is None


SCRIPT = textwrap.dedent("""
    import datetime, sys, time
    log = open(sys.argv[1], "w")
    for step in range(1, 31):
        time.sleep(0.05)
        now = datetime.datetime.utcnow().strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
        log.write(f"[{now}] epoch: {(step - 1) // 10 + 1}, step: {step}, loss: {3 / step:.4f}, batch_cost: 0.050 s\\n")
    """)


def test_a_log_is_joined_with_a_recording_on_the_clock(tool):
    script, log = tool.tmp / "train.py", tool.tmp / "train.log"
    script.write_text(SCRIPT)
    done = tool.record(sys.executable, script, log, env=tool.env(TZ="UTC"))
    assert done.returncode == 0, done.stderr.decode()
    assert tool.report()["epochs"] == [] or all(row["steps"] == 0 for row in tool.report()["epochs"])
    joined = tool.tmp / "joined.emr"
    text(tool, "log", log, "-o", joined, "--join", tool.run_file)
    alone, both = tool.report(), tool.report(joined)
    assert both["run"]["exit"] == alone["run"]["exit"] and both["host"] == alone["host"]
    rows = [row for row in both["epochs"] if row["epoch"] is not None]
    assert [(row["epoch"], row["steps"]) for row in rows] == [(1, 10), (2, 10), (3, 10)]
    begin = datetime.datetime.fromisoformat(both["run"]["begin"].replace("Z", "+00:00"))
    first = datetime.datetime.fromisoformat(rows[0]["end"].replace("Z", "+00:00"))
    assert 0 < (first - begin).total_seconds() < 10
    again = tool.call("log", log, "-o", joined, "--join", joined, "--force")
    assert b"would replace the recording" in again.stderr


def test_a_log_of_another_time_or_without_times_is_not_joined(tool):
    assert tool.record("true").returncode == 0
    other = tool.call("log", job(tool, "old.log", 0), "-o", tool.tmp / "x.emr", "--join", tool.run_file)
    assert other.returncode != 0 and b"2026-03-01T10:00" in other.stderr
    plain = tool.call("log", job(tool, "plain.log", 0, stamped=False), "-o", tool.tmp / "x.emr", "--join",
                      tool.run_file)
    assert plain.returncode != 0 and b"have no times" in plain.stderr
    assert not (tool.tmp / "x.emr").exists()


@pytest.fixture
def eight(tool):
    return [job(tool, f"log/workerlog.{rank}", rank) for rank in range(8)]


def test_eight_files_of_a_job_are_merged_by_rank_and_time(tool, eight):
    answer = json.loads(text(tool, "log", *eight, "--json"))
    assert schema.errors(answer, LOG) == []
    found = answer["data"]
    assert found["records"] == 320 and found["starts"] == 1 and found["progress"]["epochs_seen"] == 2
    assert found["first"]["rank"] == 0 and found["first"]["step"] == 1
    assert found["last"]["rank"] == 7 and found["last"]["step"] == 40
    assert [(row["rank"], row["records"], row["last_step"]) for row in found["ranks"]] == [(r, 40, 40) for r in range(8)]
    assert found["slowest_rank"] == 5
    rows = [json.loads(line) for line in text(tool, "log", *eight, "-f", "jsonl").splitlines()]
    assert [row["timestamp"] for row in rows] == sorted(row["timestamp"] for row in rows)
    assert [row["rank"] for row in rows] == list(range(8)) * 40
    table = list(csv.DictReader(io.StringIO(text(tool, "log", tool.tmp / "log", "-f", "csv"))))
    assert [(row["rank"], row["step"]) for row in table[:9]] == [(str(r), "1") for r in range(8)] + [("0", "2")]
    page = text(tool, "log", *eight)
    assert "slowest: rank 5" in page and "workerlog.7" in page


def test_files_without_times_come_one_after_the_other(tool):
    files = [job(tool, f"log/workerlog.{rank}", rank, stamped=rank > 0) for rank in range(3)]
    rows = [json.loads(line) for line in text(tool, "log", *files, "-f", "jsonl").splitlines()]
    assert [row["rank"] for row in rows] == [0] * 40 + [1] * 40 + [2] * 40
    found = data(tool, *files)
    assert (found["first"]["rank"], found["last"]["rank"]) == (0, 2)


@pytest.mark.parametrize("names, ranks", [
    (["rank_0/train.log", "rank_1/train.log"], [0, 1]),
    (["node0/workerlog.0", "node0/workerlog.1", "node1/workerlog.0", "node1/workerlog.1"], [0, 1, 2, 3]),
    (["log.txt", "log.txt.rank1"], [None, 1]),
])
def test_ranks_are_in_names_of_files_and_folders(tool, names, ranks):
    files = [job(tool, name, i) for i, name in enumerate(names)]
    assert [row["rank"] for row in data(tool, *files)["files"]] == ranks


def test_a_rank_that_the_lines_name_counts_more_than_the_file(tool):
    lines = [f"[rank{rank}]: step: {i} loss: {1 / i:.4f}" for i in range(1, 30) for rank in (0, 1)]
    found = data(tool, write(tool.tmp / "workerlog.7", lines))
    assert [(row["rank"], row["records"]) for row in found["ranks"]] == [(0, 29), (1, 29)]
    lines = [f"TRAIN step {i} loss {1 / i:.4f} rank {rank}" for i in range(1, 30) for rank in (4, 5)]
    found = data(tool, write(tool.tmp / "workerlog.1", lines))
    assert [(row["rank"], row["last_step"]) for row in found["ranks"]] == [(4, 29), (5, 29)]


@pytest.mark.parametrize("language, words", [("en", ["Training", "got to", "Not known"]),
                                             ("zh", ["训练", "进行到", "未知"])])
def test_the_page_in_both_languages_fits_eighty_columns(tool, eight, language, words):
    page = text(tool, "log", *eight, "--lang", language, "--color", "never")
    for word in words:
        assert word in page
    narrow = tool.call("log", *eight, "--lang", language, "--color", "never", env=tool.env(TZ="UTC", COLUMNS="80"))
    wide = [line for line in narrow.stdout.decode().splitlines() if sum(2 if ord(c) > 0x2e80 else 1 for c in line) > 80]
    assert wide == []
