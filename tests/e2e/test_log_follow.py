# SPDX-License-Identifier: Apache-2.0
"""`log --follow`: logs that are written, rotated, truncated and removed while they are read. No line is lost, and each
record is there soon."""
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import threading
import time

import pytest
from conftest import BINARY
from log_lines import line, lines

DEADLINE_S = 30


class Shown(threading.Thread):
    """What a pipe gives, with the time of each piece."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.pieces = pipe, []
        self.start()

    def run(self):
        while data := os.read(self.pipe.fileno(), 1 << 20):
            self.pieces.append((time.monotonic(), data))

    def rows(self):
        return b"".join(data for _, data in self.pieces).decode().splitlines()

    def steps(self):
        return [int(step) for step in re.findall(r"Step (\d+)", "\n".join(self.rows()))]


class Follower:
    def __init__(self, tool, *words, stdin=subprocess.DEVNULL):
        self.process = subprocess.Popen(
            [BINARY, "log", "--follow", *map(str, words)], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=tool.env(), cwd=tool.tmp, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        self.out, self.said = Shown(self.process.stdout), Shown(self.process.stderr)

    def wait_for(self, condition, what):
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {self.out.rows()[-3:]} {self.said.rows()}"
            assert self.process.poll() is None, f"ended: {self.said.rows()}"
            time.sleep(0.005)

    def wait_for_step(self, step):
        self.wait_for(lambda: self.out.pieces and f"Step {step}," in self.out.pieces[-1][1].decode(errors="replace")
                      or f"Step {step}," in "\n".join(self.out.rows()), f"step {step}")

    def wait_for_word(self, word):
        self.wait_for(lambda: word in "\n".join(self.said.rows()), word)

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.finish()

    def finish(self):
        code = self.process.wait(DEADLINE_S)
        self.out.join()
        self.said.join()
        return code


@pytest.fixture
def follow(tool):
    started = []

    def start(*words, **options):
        started.append(Follower(tool, *words, **options))
        return started[-1]

    yield start
    for follower in started:
        if follower.process.poll() is None:
            follower.process.kill()
            follower.process.wait()


def append(path, text):
    with open(path, "a") as out:
        out.write(text)


def test_a_record_is_shown_within_a_second(tool, follow):
    path = tool.tmp / "train.log"
    path.write_text(lines(0, 10))
    follower = follow(path)
    follower.wait_for_step(9)
    waits = []
    for step in range(10, 25):
        append(path, line(step))
        begin = time.monotonic()
        follower.wait_for_step(step)
        waits.append(time.monotonic() - begin)
        time.sleep(0.05)
    waits.sort()
    print(f"\nshown after {waits[len(waits) // 2] * 1e3:.0f} ms, at most {waits[-1] * 1e3:.0f} ms")
    assert waits[len(waits) // 2] <= 1.0
    assert follower.end() == 0
    assert follower.out.steps() == list(range(25))


def test_a_file_that_is_not_there_yet(tool, follow):
    follower = follow("train.log")
    follower.wait_for_word("train.log is not there yet")
    (tool.tmp / "train.log").write_text(lines(0, 5))
    follower.wait_for_step(4)
    assert follower.end(signal.SIGINT) == 0
    assert follower.out.steps() == list(range(5))


def test_a_line_counts_when_it_is_ended(tool, follow):
    path = tool.tmp / "train.log"
    path.write_text(lines(0, 5))
    follower = follow(path)
    follower.wait_for_step(4)
    text = line(5)
    append(path, text[:60])
    time.sleep(1)  # longer than any pause of ours
    append(path, text[60:])
    follower.wait_for_step(5)
    assert follower.end() == 0
    assert [row.split(" - ")[1].split(", Epoch")[0] for row in follower.out.rows()] == [
        f"Step {i}, Loss={5 - i / 10000:.6f}, Time=0.4182s" for i in range(6)]


def test_the_last_line_counts_at_the_end_also_without_its_own(tool, follow):
    path = tool.tmp / "train.log"
    path.write_text(lines(0, 6)[:-1])
    follower = follow(path)
    follower.wait_for_step(4)
    assert follower.end() == 0
    assert follower.out.steps() == list(range(6))


def rotate(path, how, generation):
    """Gives the file that is written next; None: the same one."""
    older = f"{path}.{generation}"
    if how == "rename":
        os.rename(path, older)
        return open(path, "a")
    if how == "remove":
        os.remove(path)
        time.sleep(0.05)
        return open(path, "a")
    shutil.copyfile(path, older)
    os.truncate(path, 0)
    return None


@pytest.mark.parametrize("how", ["rename", "remove", "copytruncate"])
def test_no_line_is_lost_when_the_file_is_rotated(tool, follow, how):
    path = tool.tmp / "train.log"
    out = open(path, "a")
    follower = follow(path)
    step = 0
    for generation in range(1, 5):
        for _ in range(40):
            out.write(lines(step, step + 250))
            out.flush()
            step += 250
            time.sleep(0.005)
        fresh = rotate(path, how, generation)
        if fresh is None:
            continue
        for _ in range(5):  # writers take their time
            out.write(lines(step, step + 10))
            out.flush()
            step += 10
            time.sleep(0.02)
        out.close()
        out = fresh
    out.write(lines(step, step + 10))
    out.close()
    step += 10
    follower.wait_for_step(step - 1)
    assert follower.end() == 0
    assert follower.out.steps() == list(range(step)), follower.said.rows()
    word = "was truncated; the rest" if how == "copytruncate" else "is a new file now"
    assert len([row for row in follower.said.rows() if word in row]) == 4


def test_a_truncated_file_without_a_copy_begins_anew(tool, follow):
    path = tool.tmp / "train.log"
    path.write_text(lines(0, 100))
    follower = follow(path, "-f", "jsonl")
    follower.wait_for(lambda: len(follower.out.rows()) >= 100, "100 records")
    path.write_text(lines(500, 520))  # what "> train.log" does
    follower.wait_for(lambda: len(follower.out.rows()) >= 120, "120 records")
    assert follower.end() == 0
    rows = [json.loads(row) for row in follower.out.rows()]
    assert [row["line"] for row in rows] == list(range(1, 121))  # lines count on
    assert any("line 1 of the new text is line 101" in row for row in follower.said.rows())


def test_a_log_begins_with_its_rotated_files(tool, follow):
    with gzip.open(tool.tmp / "train.log.2.gz", "wt") as out:
        out.write(lines(0, 10))
    (tool.tmp / "train.log.1").write_text(lines(10, 20))
    (tool.tmp / "train.log").write_text(lines(20, 30))
    follower = follow("train.log", "train.log.1", "train.log.2.gz")
    follower.wait_for_step(29)
    append(tool.tmp / "train.log", lines(30, 35))
    follower.wait_for_step(34)
    (tool.tmp / "train.log").write_text(lines(35, 37))
    follower.wait_for_step(36)
    assert follower.end() == 0
    assert follower.out.steps() == list(range(37))
    assert any("line 1 of the new text is line 36" in row for row in follower.said.rows())


def test_several_files_and_those_that_come_later(tool, follow):
    (tool.tmp / "workerlog.0").write_text(lines(0, 10))
    follower = follow("worker*", "-f", "jsonl")
    follower.wait_for(lambda: len(follower.out.rows()) >= 10, "10 records")
    append(tool.tmp / "workerlog.1", lines(0, 10))
    follower.wait_for(lambda: len(follower.out.rows()) >= 20, "20 records")
    append(tool.tmp / "workerlog.0", lines(10, 15))
    append(tool.tmp / "workerlog.1", lines(10, 15))
    follower.wait_for(lambda: len(follower.out.rows()) >= 30, "30 records")
    assert follower.end() == 0
    rows = [json.loads(row) for row in follower.out.rows()]
    for rank in (0, 1):
        assert [row["line"] for row in rows if row["file"] == f"workerlog.{rank}"] == list(range(1, 16))
        assert {row["rank"] for row in rows if row["file"] == f"workerlog.{rank}"} == {rank}


def test_stdin_is_followed_to_its_end(tool, follow):
    follower = follow("-", stdin=subprocess.PIPE)
    for step in range(5):
        follower.process.stdin.write(line(step).encode())
        follower.process.stdin.flush()
        if step > 0:
            follower.wait_for_step(step)
    follower.process.stdin.close()
    assert follower.finish() == 0
    assert follower.out.steps() == list(range(5))


def test_a_pipe_by_name_waits_for_its_writer_and_ends_with_it(tool, follow):
    os.mkfifo(tool.tmp / "fifo")
    follower = follow("fifo")
    time.sleep(0.3)
    assert follower.process.poll() is None
    with open(tool.tmp / "fifo", "w") as out:
        out.write(lines(0, 10))
    assert follower.finish() == 0
    assert follower.out.steps() == list(range(10))


def test_the_end_of_the_reader_is_the_end(tool):
    (tool.tmp / "train.log").write_text(lines(0, 10))
    process = subprocess.Popen([BINARY, "log", "--follow", "train.log"], stdout=subprocess.PIPE, env=tool.env(),
                               cwd=tool.tmp)
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize("form", ["csv", "jsonl", "ecs", "normal"])
def test_each_form_is_printed_while_the_log_grows(tool, follow, form):
    path = tool.tmp / "train.log"
    path.write_text(lines(0, 10))
    follower = follow(path, "-f", form)
    head = 1 if form == "csv" else 0
    follower.wait_for(lambda: len(follower.out.rows()) >= 10 + head, "10 rows")
    append(path, lines(10, 12))
    follower.wait_for(lambda: len(follower.out.rows()) >= 12 + head, "12 rows")
    assert follower.end() == 0
    assert len(follower.out.rows()) == 12 + head


def test_a_summary_is_printed_when_it_is_asked_to_end(tool, follow):
    path = tool.tmp / "train.log"
    path.write_text(lines(0, 10))
    follower = follow(path, "--json")
    time.sleep(0.5)
    append(path, lines(10, 30))
    time.sleep(0.3)
    assert follower.end(signal.SIGINT) == 0
    assert json.loads("\n".join(follower.out.rows()))["data"]["records"] == 30


def test_a_quiet_log_costs_nothing(tool, follow):
    path = tool.tmp / "train.log"
    path.write_text(lines(0, 10))
    follower = follow(path)
    follower.wait_for_step(9)
    before, begin = cpu_s(follower.process.pid), time.monotonic()
    time.sleep(3)
    share = (cpu_s(follower.process.pid) - before) / (time.monotonic() - begin)
    print(f"\n{share * 100:.2f} % of a core")
    assert follower.end() == 0
    assert share < 0.05  # ticks of 10 ms; far from a loop that does not wait


def cpu_s(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_more_files_than_descriptors(tool, follow):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = 300
    for rank in range(count):
        (tool.tmp / f"workerlog.{rank}").write_text(lines(0, 3))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    try:
        follower = follow("worker*")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    follower.wait_for(lambda: len(follower.out.rows()) >= 3 * count, "all records")
    assert follower.end() == 0
    assert len(follower.out.rows()) == 3 * count
