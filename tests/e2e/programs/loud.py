# SPDX-License-Identifier: Apache-2.0
"""Writes much output whose every byte can be foreseen, in pieces of changing size.

usage: loud.py BYTES STREAMS [SECONDS]    STREAMS: out, err or both; SECONDS: takes so long at least
"""
import os
import random
import sys
import time

PERIOD = b"".join(b"%d," % (number * number) for number in range(40000))


def content(size):
    return (PERIOD * (size // len(PERIOD) + 1))[:size]


def main():
    size, streams = int(sys.argv[1]), sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
    fds = {"out": [1], "err": [2], "both": [1, 2]}[streams]
    data = memoryview(content(size))
    pieces = random.Random(5)
    began, at = time.monotonic(), 0
    while at < size:
        piece = data[at:at + pieces.choice((1, 70, 300, 5000, 70000))]
        for fd in fds:
            rest = piece
            while rest:
                rest = rest[os.write(fd, rest):]
        at += len(piece)
        ahead = seconds * at / size - (time.monotonic() - began)
        if ahead > 0.01:
            time.sleep(ahead)
    sys.exit(9)


if __name__ == "__main__":
    main()
