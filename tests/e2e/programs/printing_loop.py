# SPDX-License-Identifier: Apache-2.0
"""A plain loop that prints its steps: STEPS EPOCHS EVERY SECONDS [tell] [fail] [block].

EVERY: of so many steps one is printed. tell: the client tells its steps, too. fail: an exception ends it in the last
epoch, in the eighth step. block: its output is buffered.
"""
import os
import sys
import time

STEPS, EPOCHS, EVERY, SECONDS = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
TELL, FAIL, BLOCK = (word in sys.argv for word in ("tell", "fail", "block"))
if TELL:
    import epochmeter
if BLOCK:
    sys.stdout = os.fdopen(1, "w", 8192)  # also where PYTHONUNBUFFERED says otherwise

number = 0
for epoch in epochmeter.epochs(EPOCHS) if TELL else range(EPOCHS):
    for step in epochmeter.steps(range(STEPS)) if TELL else range(STEPS):
        time.sleep(SECONDS)
        if FAIL and epoch == EPOCHS - 1 and step == 7:
            raise RuntimeError("broken sample")
        number += 1
        if TELL:
            epochmeter.log(loss=4.0 / number)
        if (step + 1) % EVERY == 0:
            print(f"Epoch [{epoch + 1}/{EPOCHS}] step [{step + 1}/{STEPS}] loss: {4.0 / number:.6f} lr: 0.001",
                  flush=not BLOCK)
