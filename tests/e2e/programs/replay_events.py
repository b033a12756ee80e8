# SPDX-License-Identifier: Apache-2.0
"""Sends the events of a recording at their own pace, by the client protocol, as the training did.

usage: replay_events.py RECORDING T0_NS SPEED
T0_NS is the CLOCK_MONOTONIC at which the recording's first GPU sample plays.
"""
import gzip
import json
import os
import pathlib
import socket
import sys
import time

folder, t0_ns, speed = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
ALLOCATOR = {"alloc": "allocated_bytes", "reserved": "reserved_bytes", "max_alloc": "max_allocated_bytes"}


def first_sample_ns():
    with gzip.open(folder / "samples.jsonl.gz", "rt") as lines:
        for line in lines:
            row = json.loads(line)
            if row["kind"] == "gpu":
                return row["mono_ns"]


def load():
    events = []
    for path in sorted(folder.glob("events.rank*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            events += [json.loads(line) for line in lines]
    return sorted(events, key=lambda e: e["mono_ns"])


def memory_of(e):
    found = {ours: e[theirs] for theirs, ours in ALLOCATOR.items() if theirs in e}
    return dict(found, framework="torch") if found else None


def translate(e):
    kind, fields = e["event"], {}
    if kind == "train_begin":
        fields = {"epochs": e["epochs"]}
    elif kind == "step":
        fields = {"step": e["step"], "epoch": e["epoch"], "duration_s": e["step_s"] / speed,
                  "data_wait_s": e["data_s"] / speed, "batch_size": e["batch"], "scalars": {"loss": e["loss"]}}
        fields["memory"] = memory_of(e)
    elif kind in ("epoch_begin", "epoch_end"):
        fields = {"epoch": e["epoch"]}
    elif kind.endswith(("_begin", "_end")) and kind != "train_end":
        phase, kind = kind.rsplit("_", 1)
        kind = "phase_" + kind
        fields = {"phase": phase, "epoch": e.get("epoch")}
    elif kind == "exception":
        fields = {"type": e["type"], "message": e["message"][:2000]}
    return kind, fields


def main():
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    path, sequence, origin = os.environ["EPOCHMETER_SOCKET"], {}, first_sample_ns()

    def send(kind, t_ns, rank, fields):
        seq = sequence.get(rank, 0)
        sequence[rank] = seq + 1
        event = {"v": 1, "kind": kind, "t_ns": t_ns, "pid": os.getpid() + rank, "seq": seq, "rank": rank}
        event.update((k, v) for k, v in fields.items() if v is not None)
        sender.sendto(json.dumps(event).encode(), path)

    for e in load():
        t_ns = t0_ns + int((e["mono_ns"] - origin) / speed)
        wait_s = (t_ns - time.monotonic_ns()) / 1e9
        if wait_s > 0:
            time.sleep(wait_s)
        kind, fields = translate(e)
        send(kind, t_ns, e["rank"], fields)
        memory = memory_of(e)
        if memory and e["event"] in ("epoch_begin", "epoch_end", "train_end", "exception"):
            send("memory", t_ns, e["rank"], memory)


main()
