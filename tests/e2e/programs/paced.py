# SPDX-License-Identifier: Apache-2.0
"""A training whose epochs begin and end at instants that the caller knows.

usage: paced.py T0_NS EPOCHS SECONDS_PER_EPOCH
Epoch e lasts from T0 + e * SECONDS to T0 + (e + 1) * SECONDS on CLOCK_MONOTONIC, in five steps.
"""
import sys
import time

import epochmeter

t0_ns, epochs, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
STEPS = 5


def wait_until(after_s):
    time.sleep(max(0.0, (t0_ns - time.monotonic_ns()) / 1e9 + after_s))


epochmeter.start()
wait_until(0)
for epoch in range(epochs):
    for step in epochmeter.steps(range(STEPS), epoch=epoch):
        wait_until((epoch + (step + 1) / STEPS) * seconds)
print("done", flush=True)
