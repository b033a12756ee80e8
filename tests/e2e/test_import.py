# SPDX-License-Identifier: Apache-2.0
"""`import`: large files, files that are being written, and what --force may replace."""
import gzip
import os
import subprocess
import time

import pytest
from conftest import BINARY

HEADER = "timestamp, index, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W]\n"


def rows(samples, gpus=8):
    for sample in range(samples):
        minute, second = divmod(sample, 60)
        hour, minute = divmod(minute, 60)
        for gpu in range(gpus):
            yield (f"2026/08/24 {hour:02d}:{minute:02d}:{second:02d}.{gpu:03d}, {gpu}, GPU-{gpu}, "
                   f"{sample % 100} %, {sample} MiB, {100 + sample % 7}.25 W\n")


def test_a_day_of_a_node_comes_in_order_and_within_bounded_memory(tool):
    path = tool.tmp / "gpu.csv.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(HEADER)
        file.writelines(rows(12_000))
    begin = time.monotonic()
    process = subprocess.Popen([BINARY, "import", str(path), "-o", str(tool.run_file)], env=tool.env(),
                               cwd=tool.tmp, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)  # what this one process took
    process.returncode = os.waitstatus_to_exitcode(status)
    took_s = time.monotonic() - begin
    assert process.returncode == 0, said.decode()
    peak_mib = usage.ru_maxrss / 1024
    print(f"\n96,000 lines in {took_s:.2f} s, peak {peak_mib:.0f} MiB, {tool.run_file.stat().st_size} bytes")
    assert b"96000 sample instants" in said and b" 0 bad lines" in said
    gpus = tool.report()["gpus"]
    assert len(gpus) == 8
    assert peak_mib < 200


def test_the_last_line_may_be_half_written(tool):
    path = tool.tmp / "gpu.csv"
    path.write_text(HEADER + "".join(rows(3, 1)) + "2026/08/24 00:00:0")
    done = tool.call("import", path, "-o", tool.run_file)
    assert done.returncode == 0 and b"3 sample instants" in done.stderr and b"1 bad lines" in done.stderr


@pytest.mark.parametrize("words", [["-"], ["/dev/stdin"], ["nvidia-smi-csv", "-"]])
def test_a_pipe_is_read_like_a_file_and_leaves_nothing(tool, words):
    text = HEADER + "".join(rows(3, 1))
    temporary = tool.tmp / "temporary"
    temporary.mkdir()
    done = subprocess.run([BINARY, "import", *words, "-o", tool.run_file], input=text.encode(), capture_output=True,
                          env=tool.env(TMPDIR=str(temporary)), cwd=tool.tmp, timeout=60)
    assert done.returncode == 0 and b"3 sample instants" in done.stderr, done.stderr
    assert list(temporary.iterdir()) == []
    (tool.tmp / "gpu.csv").write_text(text)
    assert tool.call("import", tool.tmp / "gpu.csv", "-o", tool.tmp / "file.emr").returncode == 0
    lines = [[(e["@timestamp"], e["type"]) for e in tool.export_jsonl(path)]
             for path in (tool.run_file, tool.tmp / "file.emr")]
    assert lines[0] == lines[1] and len(lines[0]) > 6


def test_a_process_substitution_is_read_too(tool):
    (tool.tmp / "gpu.csv").write_text(HEADER + "".join(rows(3, 1)))
    done = subprocess.run(["bash", "-c", f"{BINARY} import <(cat gpu.csv) -o {tool.run_file}"], capture_output=True,
                          env=tool.env(), cwd=tool.tmp, timeout=60)
    assert done.returncode == 0 and b"3 sample instants" in done.stderr, done.stderr


def test_what_is_wrong_with_a_pipe_names_the_pipe(tool):
    done = subprocess.run([BINARY, "import", "-"], input=gzip.compress(b"no tool writes this\n"), capture_output=True,
                          env=tool.env(), cwd=tool.tmp, timeout=60)
    assert done.returncode == 3 and b"stdin" in done.stderr and b"gzip" in done.stderr, done.stderr
    assert b"/tmp" not in done.stderr


def test_force_keeps_the_old_run_until_the_source_was_read(tool):
    good, bad = tool.tmp / "good.csv", tool.tmp / "bad.csv"
    good.write_text(HEADER + "".join(rows(3, 1)))
    bad.write_text("nothing of use\n")
    assert tool.call("import", good, "-o", tool.run_file).returncode == 0
    before = tool.run_file.read_bytes()
    for words in ([good], ["--force", "nvidia-smi-csv", bad], ["--force", tool.tmp / "none.csv"]):
        assert tool.call("import", "-o", tool.run_file, *words).returncode == 3, words
        assert tool.run_file.read_bytes() == before
    assert tool.call("import", "--force", good, "-o", tool.run_file).returncode == 0
    assert sorted(p.name for p in tool.tmp.glob("run.emr*")) == ["run.emr"]


def test_force_does_not_take_the_file_of_a_run_that_goes_on(tool):
    good = tool.tmp / "good.csv"
    good.write_text(HEADER + "".join(rows(3, 1)))
    process = tool.start("sleep", "2", flags=["-q"])
    deadline = time.monotonic() + 10
    while not tool.run_file.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    done = tool.call("import", "--force", good, "-o", tool.run_file)
    assert done.returncode == 3, done.stderr.decode()
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert tool.report()["run"]["exit"]["exit_code"] == 0
    assert not list(tool.tmp.glob("*.importing-*"))


@pytest.mark.parametrize("zone, hour", [("UTC", 10), ("+08:00", 2), ("-03:30", 13), ("Asia/Shanghai", 2)])
def test_zone_of_times_without_one(tool, zone, hour):
    path = tool.tmp / "gpu.csv"
    path.write_text(HEADER + "2026/08/24 10:00:00.000, 0, GPU-0, 1 %, 1 MiB, 1.00 W\n")
    done = tool.call("import", "--tz", zone, path, "-o", tool.run_file)
    assert done.returncode == 0, done.stderr.decode()
    begin = tool.call("export", tool.run_file, "-f", "csv", "--long").stdout.decode().splitlines()[1]
    assert begin.startswith(f"2026-08-24T{hour:02d}:"), begin
