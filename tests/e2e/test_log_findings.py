# SPDX-License-Identifier: Apache-2.0
"""What `log` finds in trainings that go wrong in one way, and that it finds nothing of it in healthy ones. Each finding
points at lines, and these are the lines where it shows."""
import datetime
import json
import math
import random

import pytest

BEGIN = datetime.datetime(2026, 3, 1, 10, 0, 0)


class Training:
    """The log of a training of `steps` steps; functions give a figure of a step, None one that is not printed."""

    def __init__(self, steps=400, every=1, step_s=lambda i: 0.1, data_s=lambda i: 0.004, loss=None, memory_mb=None,
                 rate=None, epoch_steps=100, stamped=True):
        self.lines, self.line_of = [], {}
        noise, t_s = random.Random(5), 0.0
        for i in range(1, steps + 1):
            took = step_s(i) if step_s else 0.1
            t_s += took * (1 + 0.02 * noise.random())
            if i % every:
                continue
            words = [f"epoch: {(i - 1) // epoch_steps + 1}", f"step: {i}"]
            words.append(f"loss: {(loss or self.falling)(i):.5f}")
            if step_s:
                words.append(f"batch_cost: {took * (1 + 0.02 * noise.random()):.5f} s")
            if step_s and data_s:
                words.append(f"reader_cost: {data_s(i):.5f} s")
            if rate:
                words.append(f"ips: {rate(i):.3f} samples/s")
            if memory_mb:
                words.append(f"max_mem_allocated: {memory_mb(i):.0f} MB")
            stamp = (BEGIN + datetime.timedelta(seconds=t_s)).strftime("[%Y-%m-%d %H:%M:%S,%f")[:-3] + "] [ INFO] "
            self.add((stamp if stamped else "") + ", ".join(words))
            self.line_of[i] = len(self.lines)

    @staticmethod
    def falling(i):
        return 0.5 + 4 * math.exp(-i / 120) + 0.01 * math.sin(i * 1.7)

    def add(self, line):
        self.lines.append(line)


def summed(tool, training, *flags):
    log = tool.tmp / "train.log"
    log.write_text("\n".join(training.lines) + "\n")
    done = tool.call("log", log, *flags, env=tool.env(TZ="UTC"))
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def findings(tool, training):
    data = json.loads(summed(tool, training, "--json"))["data"]
    assert data["records"] == len(training.line_of)
    return {finding["rule"]: finding for finding in data["findings"]}


def between(finding, training, first, last):
    """The finding names lines, all of them of steps from `first` to `last`."""
    lines = [place["line"] for place in finding["lines"]]
    assert lines, finding["summary"]
    low, high = training.line_of[first], training.line_of[last]
    assert all(low <= line <= high for line in lines), (lines, low, high)


def noisy_s(i):
    return 0.1 + 0.01 * math.sin(i * 12.9)


def test_a_healthy_training_has_no_finding(tool):
    found = findings(tool, Training(step_s=noisy_s, memory_mb=lambda i: 4000 + min(i, 30)))
    assert found == {}


def test_waiting_for_data(tool):
    training = Training(step_s=lambda i: 0.2, data_s=lambda i: 0.08)
    found = findings(tool, training)["data_starvation"]
    assert found["severity"] == "warning" and "40" in found["summary"]
    between(found, training, 1, 400)


def test_single_slow_steps(tool):
    slow = {131, 240, 258, 262, 391}
    training = Training(step_s=lambda i: 2.5 if i in slow else noisy_s(i))
    found = findings(tool, training)["step_outlier"]
    assert found["severity"] == "warning"
    assert {place["line"] for place in found["lines"]} == {training.line_of[i] for i in slow}


@pytest.mark.parametrize("every", [1, 10])
def test_steps_that_become_slower(tool, every):
    training = Training(steps=400 * every, every=every, step_s=lambda i: 0.1 if i < 240 * every else 0.3)
    found = findings(tool, training)["slowing_down"]
    assert found["severity"] == "warning" and "times as long" in found["summary"]
    between(found, training, 180 * every, 300 * every)


def test_a_throughput_that_collapses(tool):
    training = Training(step_s=None, stamped=False, rate=lambda i: 640 + i % 7 if i < 250 else 90 + i % 3)
    found = findings(tool, training)["slowing_down"]
    assert found["severity"] == "warning" and " a second" in found["summary"]
    assert found["lines"]


def test_a_throughput_that_only_swings_is_none(tool):
    assert findings(tool, Training(step_s=None, stamped=False, rate=lambda i: 640 + 60 * math.sin(i))) == {}


def test_printed_memory_that_creeps(tool):
    training = Training(step_s=noisy_s, memory_mb=lambda i: 6000 + 8 * i)
    found = findings(tool, training)["printed_memory_growth"]
    assert found["severity"] == "warning"
    between(found, training, 1, 400)


def test_a_loss_that_jumps_and_stays(tool):
    training = Training(step_s=noisy_s, loss=lambda i: Training.falling(i) + (3 if i >= 300 else 0))
    found = findings(tool, training)["loss_spike"]
    assert found["severity"] == "warning"
    between(found, training, 298, 302)


def test_a_single_bad_batch_is_no_jump(tool):
    assert findings(tool, Training(step_s=noisy_s, loss=lambda i: Training.falling(i) + (3 if i == 300 else 0))) == {}


def test_a_loss_that_is_not_a_number(tool):
    training = Training(step_s=noisy_s, loss=lambda i: Training.falling(i) if i < 350 else math.nan)
    found = findings(tool, training)["loss_not_finite"]
    assert found["severity"] == "critical"
    assert training.line_of[350] in [place["line"] for place in found["lines"]]


def test_the_way_to_out_of_memory_is_on_the_page(tool):
    training = Training(steps=200, step_s=noisy_s, memory_mb=lambda i: 30000 + 40 * i)
    training.lines.insert(0, "Namespace(batch_size=64, lr=0.001, workers=4)")
    training.add("Traceback (most recent call last):")
    training.add('  File "train.py", line 80, in <module>')
    training.add("    loss.backward()")
    training.add("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 39.59 GiB total "
                 "capacity; 37.11 GiB already allocated; 1.02 GiB free; 37.90 GiB reserved in total by PyTorch)")
    data = json.loads(summed(tool, training, "--json"))["data"]
    assert data["root_cause"]["kind"] == "oom_gpu"
    numbers = next(event for event in data["events"] if event["kind"] == "oom_gpu")["numbers"]
    assert numbers["memory_growth"] == "leak" and numbers["batch_size"] == 64
    found = {finding["rule"]: finding for finding in data["findings"]}["out_of_memory"]
    assert found["severity"] == "critical"
    assert [place["line"] for place in found["lines"]][0] >= len(training.lines) - 4
    page = summed(tool, training)
    for words in ("What failed first", "asked for 2.1 GB", "batch size 64 (line 1)", "from 32.5 GB to 39.8 GB"):
        assert words in page, page


def test_a_burst_and_a_new_message_are_unusual(tool):
    training = Training(steps=600, step_s=noisy_s)
    for i in range(560, 0, -40):
        training.lines.insert(i, f"[INFO] checkpoint saved to /out/step_{i}.pt")
    storm = [f"WARNING: worker {i % 4} could not read shard {i}, trying again" for i in range(120)]
    training.lines[400:400] = storm
    training.lines.insert(300, "WARNING: learning rate scheduler was restarted")
    data = json.loads(summed(tool, training, "--json"))["data"]
    kinds = {anomaly["kind"]: anomaly for anomaly in data["anomalies"]}
    assert "could not read shard" in kinds["burst"]["text"] and kinds["burst"]["count"] == 120
    assert kinds["burst"]["line"] == 402 and kinds["burst"]["last_line"] == 521
    assert kinds["burst"]["step_before"] < kinds["burst"]["step_after"] <= kinds["burst"]["step_before"] + 1
    assert "scheduler was restarted" in kinds["new"]["text"] and kinds["new"]["line"] == 301
    templates = data["messages"]["templates"]
    assert templates[0]["count"] == 120 and sum(templates[0]["counts"]) == 120
    assert len(templates[0]["counts"]) == len(data["messages"]["stretches"])
    saved = next(row for row in templates if "checkpoint saved" in row["text"])
    assert saved["count"] == 14
    page = summed(tool, training)
    assert "Unusual messages" in page and "Messages repeated most" in page


def test_messages_that_come_all_the_time_are_usual(tool):
    training = Training(steps=600, step_s=noisy_s)
    for i in range(560, 0, -10):
        training.lines.insert(i, f"WARNING: sequence {i} is longer than 512 tokens")
    assert json.loads(summed(tool, training, "--json"))["data"]["anomalies"] == []
