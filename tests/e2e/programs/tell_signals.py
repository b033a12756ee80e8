# SPDX-License-Identifier: Apache-2.0
"""Prints the number of each signal that it gets. usage: tell_signals.py [FAREWELL_SECONDS]

SIGTERM ends it with 7 after the farewell (a checkpoint, say); without an argument it ends at once.
"""
import os
import signal
import sys
import time

farewell = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
ends = []
QUIET = (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


def got(number, _):
    os.write(1, b"got %d\n" % number)
    if number == signal.SIGTERM:
        ends.append(time.monotonic() + farewell)


for each in signal.valid_signals():
    if each not in QUIET and each not in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(each, got)
os.write(1, b"ready\n")
while not ends or time.monotonic() < ends[0]:
    time.sleep(0.02)
os.write(1, b"bye\n")
sys.exit(7)
