# SPDX-License-Identifier: Apache-2.0
"""A recorder that gets malformed datagrams by the hundred thousand, while a training goes on.

Short by default; EPOCHMETER_FLOOD=1000000 sends that many."""
import json
import os
import pathlib
import random
import re
import socket
import threading
import time

from conftest import PROGRAMS, find_helper, python

COUNT = int(os.environ.get("EPOCHMETER_FLOOD", "20000"))
SENDERS = 4
EPOCHS, STEPS = 3, 100


def valid(seq):
    return {"v": 1, "kind": "step", "t_ns": time.monotonic_ns(), "pid": 1, "seq": seq, "rank": 0, "step": seq}


def malformed(number, rng):
    """Ten ways to be wrong, in turn. None of them is a datagram that may be taken."""
    good = json.dumps(valid(number)).encode()
    return [
        lambda: rng.randbytes(rng.randint(1, 400)),
        lambda: good[:rng.randint(1, len(good) - 1)],
        lambda: good + b"}garbage\x00",
        lambda: b'{"v":1,"kind":"step","t_ns":1e999,"pid":1,"seq":1,"step":9e400}',
        lambda: b"[" * 4000,
        lambda: b'{"v":1,"kind":"scalar","a":' + b'{"a":' * 1000 + b"1" + b"}" * 1001,
        lambda: b'{"v":"one","kind":7,"t_ns":[],"pid":{},"seq":null}',
        lambda: b'{"v":1,"kind":"step","x":"\xff\xfe\xc0"}',
        lambda: b'{"v":1,"kind":"step","t_ns":1,"pid":99999999999999999999,"seq":-1,"rank":1e300,"epoch":-1e300}',
        lambda: b"\x00" * rng.choice([8192, 8193, 60000, 200000]),
    ][number % 10]()


class Sender(threading.Thread):
    """Sends its part without waiting; what finds the socket full is tried again and counted."""

    def __init__(self, path, seed, count):
        super().__init__()
        self.path, self.rng, self.count = path, random.Random(seed), count
        self.sent = self.full = self.too_large = 0

    def run(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.connect(self.path)
            sock.setblocking(False)
            for number in range(self.count):
                self.send(sock, malformed(number, self.rng))

    def send(self, sock, datagram):
        while True:
            try:
                sock.send(datagram)
                self.sent += 1
                return
            except BlockingIOError:
                self.full += 1
                time.sleep(0.0005)
            except OSError as error:
                if error.errno != 90:  # EMSGSIZE: the kernel refuses it, nobody gets it
                    raise
                self.too_large += 1
                return


def rss_kib(pid):
    status = pathlib.Path("/proc", str(pid), "status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status).group(1))


def cpu_s(pid):
    fields = pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_malformed_datagrams_are_counted_and_harm_nothing(tool):
    """The training waits in its last step until the flood is over."""
    script = tool.tmp / "train.py"
    gate = tool.tmp / "flood.done"
    script.write_text(
        "import epochmeter, os, sys, time\n"
        "epochmeter.start()\n"
        f"for epoch in range({EPOCHS}):\n"
        f"    for step in epochmeter.steps(range({STEPS}), epoch=epoch):\n"
        "        time.sleep(0.01)\n"
        f"        while epoch == {EPOCHS - 1} and step == {STEPS - 1} and not os.path.exists({str(gate)!r}):\n"
        "            time.sleep(0.05)\n"
        "sys.exit(7)\n")
    env = tool.env(PYTHONPATH=str(PROGRAMS.parents[2] / "python"))
    process = tool.start(python(), script, flags=["-q"], env=env)
    recorder = find_helper(process.pid, "epm-recorder")
    deadline = time.monotonic() + 10
    while not list((tool.tmp / "sockets").rglob("*.sock")) and time.monotonic() < deadline:
        time.sleep(0.02)
    path = str(next((tool.tmp / "sockets").rglob("*.sock")))
    before_s, begin = cpu_s(recorder), time.monotonic()
    senders = [Sender(path, seed, COUNT // SENDERS) for seed in range(SENDERS)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    took_s = time.monotonic() - begin
    used_s, peak_kib = cpu_s(recorder) - before_s, rss_kib(recorder)
    gate.write_text("")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 7, err.decode()
    sent = sum(sender.sent for sender in senders)
    assert sent + sum(sender.too_large for sender in senders) == COUNT // SENDERS * SENDERS
    report = tool.report()
    losses = {}
    for loss in report["losses"]:
        losses[loss["kind"]] = losses.get(loss["kind"], 0) + loss["count"]
    # What the receiver could not keep for the recorder is told as such, the rest as refused.
    refused = ("too_long", "not_utf8", "not_json", "not_object", "too_deep", "bad_version", "bad_kind",
               "missing_field", "unknown_kind")
    counted = sum(losses.get(f"client.{kind}", 0) for kind in refused)
    missed = losses.get("recorder.events_dropped", 0)
    steps = sum(row["steps"] for row in report["epochs"])
    print(f"\nsent {sent} in {took_s:.1f} s, socket full {sum(s.full for s in senders)} times, recorder: "
          f"{used_s:.2f} s CPU, peak {peak_kib / 1024:.1f} MiB; steps {steps} of {EPOCHS * STEPS}; losses {losses}")
    # The good client's own events may be among those that the receiver had no room for.
    assert sent <= counted + missed <= sent + EPOCHS * STEPS, losses
    assert steps + losses.get("client.dropped", 0) + missed >= EPOCHS * STEPS, losses
    assert peak_kib < 150 * 1024
    assert report["run"]["exit"]["exit_code"] == 7
