# SPDX-License-Identifier: Apache-2.0
"""`log`: where its bytes come from. Folders, patterns, packed and rotated files, pipes, and what is no log."""
import gzip
import json
import os
import re
import select
import shutil
import subprocess
import threading

import pytest
from conftest import BINARY
from log_lines import lines

MOST_BYTES = 200e6
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20
DEADLINE_S = 30


def read_json(tool, *words, **options):
    done = tool.call("log", *words, "--json", **options)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def measured(tool, *words, stdin=None):
    """Exit code, what it said, seconds of CPU and its own peak memory."""
    process = subprocess.Popen([BINARY, "log", *map(str, words)], stdin=stdin, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=tool.env(), cwd=tool.tmp)
    out, peak = b"", 0
    while True:
        ready = select.select([process.stdout], [], [], 0.05)[0]
        peak = max(peak, peak_bytes(process.pid))
        chunk = os.read(process.stdout.fileno(), 1 << 16) if ready else None
        if chunk == b"":
            break
        out += chunk or b""
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, out.decode(), said.decode(), usage.ru_utime + usage.ru_stime, peak


def peak_bytes(pid):
    try:
        status = open(f"/proc/{pid}/status").read()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


# What is found.


def test_a_folder_is_read_with_all_below_it_and_says_what_it_left_out(tool):
    for name in ("log/workerlog.0", "log/workerlog.10", "log/workerlog.2", "log/node1/a.log"):
        path = tool.tmp / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines(0, 20))
    (tool.tmp / "log/.git").mkdir()
    (tool.tmp / "log/.git/x.log").write_text(lines(0, 20))
    (tool.tmp / "log/curve").write_bytes(PNG)
    (tool.tmp / "log/model.pdparams").write_bytes(b"\0\1" * 5000)
    (tool.tmp / "log/run.emr").write_bytes(b"\x89EMR\r\n\x1a\n")
    document = read_json(tool, "log")
    names = [file["name"] for file in document["data"]["files"]]
    assert names == ["log/node1/a.log", "log/workerlog.0", "log/workerlog.2", "log/workerlog.10"]
    assert document["data"]["records"] == 80
    assert len(document["warnings"]) == 1 and "4 files were left out" in document["warnings"][0]
    # Nothing that could be read was lost.
    assert tool.call("log", "log", "--strict").returncode == 0


def test_a_pattern_that_the_shell_did_not_expand(tool):
    for rank in range(12):
        (tool.tmp / f"workerlog.{rank}").write_text(lines(0, 20))
    data = read_json(tool, "worker*")["data"]
    assert [file["name"] for file in data["files"]] == [f"workerlog.{rank}" for rank in range(12)]
    assert data["records"] == 240
    done = tool.call("log", "none*.log")
    assert done.returncode == 3 and b"no file matches this pattern" in done.stderr


@pytest.mark.parametrize("packer", ["gzip", "zstd"])
def test_packed_logs(tool, packer):
    if shutil.which(packer) is None:
        pytest.skip(f"no {packer} here")
    (tool.tmp / "train.log").write_text(lines(0, 5000))
    packed = subprocess.run([packer, "-qc", "train.log"], cwd=tool.tmp, stdout=subprocess.PIPE, check=True).stdout
    (tool.tmp / "packed").write_bytes(packed + packed)  # several members are one text
    (tool.tmp / "torn").write_bytes(packed[: len(packed) // 2])
    assert read_json(tool, "packed")["data"]["lines"] == 10_000
    torn = read_json(tool, "torn")
    assert 0 < torn["data"]["records"] < 5000
    assert "ends too early" in torn["warnings"][0]
    assert tool.call("log", "torn", "--strict").returncode == 4
    piped = subprocess.run([BINARY, "log", "-", "--json"], input=packed, stdout=subprocess.PIPE, env=tool.env(),
                           cwd=tool.tmp, check=True)
    assert json.loads(piped.stdout)["data"]["records"] == 5000


def test_the_parts_of_a_rotated_log_are_one_log_oldest_first(tool):
    with gzip.open(tool.tmp / "train.log.10.gz", "wt") as out:
        out.write(lines(0, 100))
    with gzip.open(tool.tmp / "train.log.2.gz", "wt") as out:
        out.write(lines(100, 200))
    (tool.tmp / "train.log.1").write_text(lines(200, 300))
    (tool.tmp / "train.log").write_text(lines(300, 400))
    data = read_json(tool, "train.log", "train.log.1", "train.log.10.gz", "train.log.2.gz")["data"]
    assert len(data["files"]) == 1 and data["files"][0]["name"] == "train.log"
    assert data["records"] == 400 and data["step_goes_back"] == 0 and data["starts"] == 1
    assert data["first"]["line"] == 1 and data["last"]["line"] == 400
    assert any("train.log.10.gz from line 1, train.log.2.gz from line 101, train.log.1 from line 201, "
               "train.log from line 301" in note for note in data["notes"])


def test_what_can_not_be_read_is_said_and_the_rest_is_read(tool):
    (tool.tmp / "good.log").write_text(lines(0, 20))
    (tool.tmp / "loop").symlink_to("loop")
    (tool.tmp / "noise").write_bytes(PNG)
    for bad, why in (("none.log", "No such file"), ("good.log/x", "Not a directory"), ("loop", "symbolic links"),
                     ("/proc/self/mem", "Input/output error"), ("noise", "binary")):
        done = tool.call("log", bad)
        assert done.returncode == 3 and why in done.stderr.decode(), (bad, done.stderr)
        document = read_json(tool, bad, "good.log")
        assert document["data"]["records"] == 20 and why in " ".join(document["warnings"]), bad
        assert tool.call("log", bad, "good.log", "--strict").returncode == 4
    (tool.tmp / "empty").mkdir()
    done = tool.call("log", "empty")
    assert done.returncode == 3 and b"no log to read" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tool):
    (tool.tmp / "a.log").write_text(lines(0, 20))
    (tool.tmp / "a.log").chmod(0)
    done = tool.call("log", "a.log")
    assert done.returncode == 3 and b"Permission denied" in done.stderr


# How it is read.


def test_pipes(tool):
    text = lines(0, 200).encode()
    for words in (["-"], ["/dev/stdin"]):
        done = subprocess.run([BINARY, "log", *words, "--json"], input=text, stdout=subprocess.PIPE, env=tool.env(),
                              cwd=tool.tmp, timeout=DEADLINE_S)
        assert json.loads(done.stdout)["data"]["records"] == 200
    os.mkfifo(tool.tmp / "fifo")
    writer = threading.Thread(target=lambda: (tool.tmp / "fifo").write_bytes(text))
    writer.start()
    assert read_json(tool, "fifo", timeout=DEADLINE_S)["data"]["records"] == 200
    writer.join()


def test_a_pipe_that_is_written_in_odd_pieces(tool):
    text = lines(0, 300).encode()
    process = subprocess.Popen([BINARY, "log", "-", "-f", "jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=tool.env(), cwd=tool.tmp)
    rows = []
    reader = threading.Thread(target=lambda: rows.extend(process.stdout))
    reader.start()
    for at in range(0, len(text), 17):
        process.stdin.write(text[at:at + 17])
        process.stdin.flush()
    process.stdin.close()
    assert process.wait(DEADLINE_S) == 0
    reader.join()
    assert [json.loads(row)["line"] for row in rows] == list(range(1, 301))


def test_a_file_that_grows_while_it_is_read_ends_all_the_same(tool):
    path = tool.tmp / "train.log"
    path.write_text(lines(0, 200_000))
    stop = threading.Event()

    def write():
        with open(path, "a") as out:
            while not stop.is_set():
                out.write(lines(200_000, 201_000))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        data = read_json(tool, "train.log", timeout=DEADLINE_S)["data"]
    finally:
        stop.set()
        writer.join()
    assert data["records"] >= 200_000


def test_a_hole_in_a_log_is_left_out_and_counted(tool):
    path = tool.tmp / "train.log"
    with open(path, "wb") as file:
        file.write(lines(1, 4).encode())
        size = file.tell()
        file.seek(100 * 1024, os.SEEK_CUR)
        file.write(lines(4, 9).encode())
    assert path.stat().st_size > size + 100 * 1024
    for word in (path, tool.tmp):
        report = read_json(tool, word)["data"]
        assert report["records"] == 8 and report["bad_bytes"] == 100 * 1024
    assert tool.call("export", path).stdout.count(b"\n") == 9


def test_a_file_of_nuls_ends_with_a_clear_word(tool):
    with open(tool.tmp / "nuls", "wb") as out:
        out.truncate(1 << 30)
    code, out, said, cpu_s, peak = measured(tool, "nuls")
    print(f"\n1 GiB of NULs: {cpu_s:.2f} s of CPU, peak {peak / 1e6:.0f} MB")
    assert code == 0, said
    assert "No training progress" in out and str(1 << 30) in out and "no text" in out
    assert 0 < peak < MOST_BYTES


def test_a_line_without_an_end_is_cut_and_counted(tool):
    size = 1 << 30
    source = subprocess.Popen(["head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE)
    letters = subprocess.Popen(["tr", "\\0", "x"], stdin=source.stdout, stdout=subprocess.PIPE)
    code, out, said, cpu_s, peak = measured(tool, "-", "--json", stdin=letters.stdout)
    source.wait()
    letters.wait()
    print(f"\na line of 1 GiB: {cpu_s:.2f} s of CPU, peak {peak / 1e6:.0f} MB")
    assert code == 0, said
    data = json.loads(out)["data"]
    assert data["bytes"] == size and data["records"] == 0 and data["cut_lines"] > 0
    assert 0 < peak < MOST_BYTES
