# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a training on GPUs that a replay script plays. No framework: it speaks the protocol.

gpu_job.py [--script-to FIFO --script JSON] [--pid-from PROC] [--gpus JSON] [--reserved BYTES]
           [--epochs N] [--epoch-s S]
The script's @PID@ becomes this process's pid (as PROC/self shows it, with --pid-from).
"""
import argparse
import json
import os
import socket
import time

parser = argparse.ArgumentParser()
parser.add_argument("--script-to")
parser.add_argument("--script", default="{}")
parser.add_argument("--pid-from")
parser.add_argument("--gpus")
parser.add_argument("--reserved", type=int)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--epoch-s", type=float, default=0.6)
args = parser.parse_args()

if args.script_to:
    pid = os.readlink(args.pid_from + "/self") if args.pid_from else str(os.getpid())
    with open(args.script_to, "w") as fifo:  # waits for the sampler to read it
        fifo.write(args.script.replace("@PID@", pid))
    time.sleep(0.5)  # its first reading

sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sender.connect(os.environ["EPOCHMETER_SOCKET"])
seq = 0


def send(kind, **fields):
    global seq
    message = {"v": 1, "kind": kind, "t_ns": time.monotonic_ns(), "pid": os.getpid(), "seq": seq, "rank": 0}
    sender.send(json.dumps({**message, **fields}).encode())
    seq += 1


send("hello", wall_ns=time.time_ns(), framework="loop", **({"gpus": json.loads(args.gpus)} if args.gpus else {}))
send("train_begin", epochs=args.epochs)
for epoch in range(args.epochs):
    send("epoch_begin", epoch=epoch)
    if args.reserved:
        send("memory", framework="torch", device="gpu:0", allocated_bytes=args.reserved // 2, reserved_bytes=args.reserved)
    time.sleep(args.epoch_s)
    send("step", step=epoch + 1, epoch=epoch, duration_s=args.epoch_s)
    send("epoch_end", epoch=epoch)
send("train_end", status="completed")
