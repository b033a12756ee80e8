# SPDX-License-Identifier: Apache-2.0
"""A training without a framework: N steps of T seconds in E epochs, a line for each on both streams.

usage: steps.py STEPS_PER_EPOCH SECONDS EPOCHS EXIT_CODE
Each step is written to the file STEPS_LOG (when set) with its time, after its event was sent.
"""
import os
import sys
import time

import epochmeter

steps, seconds, epochs, code = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
log = open(os.environ["STEPS_LOG"], "w", buffering=1) if "STEPS_LOG" in os.environ else None
epochmeter.start()
number = 0
for epoch in range(epochs):
    for _ in epochmeter.steps(range(steps), epoch=epoch):
        time.sleep(seconds)
        number += 1
        epochmeter.log(loss=1.0 / number)
        print(f"epoch {epoch} step {number}", flush=True)
        print(f"warning {number}", file=sys.stderr, flush=True)
        if log:
            log.write(f"{number} {time.monotonic_ns()}\n")
sys.exit(code)
