# SPDX-License-Identifier: Apache-2.0
"""Lines of a training, each of which is a record."""


def line(i):
    return (f"[2026-03-01 {i // 3600 % 24:02d}:{i // 60 % 60:02d}:{i % 60:02d}] Epoch: [0] [{i}/1000000] "
            f"loss: {5 - i % 40000 / 10000:.6f} lr: 0.001000 batch_cost: 0.4182 ips: 32.0000\n")


def lines(first, last):
    return "".join(map(line, range(first, last)))
