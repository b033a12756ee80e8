# SPDX-License-Identifier: Apache-2.0
"""The socket: sends datagrams without ever waiting, and counts what it loses."""

from __future__ import annotations

import errno
import os
import re
import socket
import threading
import time
from collections import deque
from typing import Callable, Deque, Optional, Tuple

from epochmeter import _protocol

# A datagram queue of Linux may hold as few as 10; what does not fit waits here for the next event.
# Steps and memory readings stop at the first bound, begins and ends may go on to the second.
BACKLOG_STEPS = 512
BACKLOG = 1024

# Once such a begin or end waits, a thread looks after it this often and this long: the next event
# may be minutes away. It is there only then, and steps, which come often, never start it.
FLUSH_PERIOD_S = 0.01
FLUSH_TRIES = 200

# How often a step looks whether a receiver that was gone is back.
LOOK_PERIOD_NS = 10_000_000

_MAX_BYTES = _protocol.MAX_BYTES
_FULL = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)

# How a step begins, and where an event says what was lost before it: no text comes earlier in it.
_STEP = _protocol.head("step").encode()
_DROPPED = re.compile(rb',"dropped":(\d+)')


def _recounted(data: bytes, lost: int) -> bytes:
    """`data` with as many more events lost before it."""
    return _DROPPED.sub(lambda found: b',"dropped":%d' % (int(found[1]) + lost), data, count=1)


class Sender:
    """One per process; any thread may send. `on_back` is called once a lost receiver is back."""

    def __init__(self, path: str, rank: Optional[int], on_back: Callable[[], None]) -> None:
        self.path = path
        self.pid = os.getpid()
        # False in a forked child (see _state): neither the sequence nor the lock is the child's.
        self.alive = True
        self.dropped = 0
        self._seq = 0
        self._on_back = on_back
        self._gone = False
        self._flusher: Optional[threading.Thread] = None
        self._backlog: Deque[bytes] = deque()
        # Re-entrant: a finaliser or a signal handler may send while this thread is sending.
        self._lock = threading.RLock()
        self._pid_part = f',"pid":{self.pid},"seq":'
        self._rank_part = "" if rank is None else f',"rank":{rank}'
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._send = self._socket.send
        # The receiver's bell: an abstract address of the same name.
        self._bell = b"\0" + os.fsencode(path)
        self._look_again_ns = 0

    @property
    def sent(self) -> int:
        """Events that the socket took."""
        return self._seq - self.dropped - len(self._backlog)

    def set_rank(self, rank: int) -> None:
        """From the next event on."""
        self._rank_part = f',"rank":{rank}'

    def send(self, head: str, t_ns: int, fragment: str, step: bool = False) -> bool:
        """Sends head + t_ns + the common fields + `fragment`; False when it was lost.

        `step` says that more like it will come soon.
        """
        if not self.alive:
            return False
        with self._lock:
            seq = self._seq
            self._seq = seq + 1
            if self._gone and step and time.monotonic_ns() < self._look_again_ns:
                self.dropped += 1
                return False
            data = (
                f'{head}{t_ns}{self._pid_part}{seq},"dropped":{self.dropped}'
                f"{self._rank_part}{fragment}}}"
            ).encode()
            return self._deliver(data, step)

    def send_step(
        self,
        form: _protocol.StepForm,
        numbers: Tuple[_protocol.Real, ...],
    ) -> None:
        """As send(): the way of most steps, which each of them pays. `numbers` are all but `seq`."""
        if not self.alive:
            return
        with self._lock:
            seq = self._seq
            self._seq = seq + 1
            if self._gone and time.monotonic_ns() < self._look_again_ns:
                self.dropped += 1
                return
            if form.dropped != self.dropped:
                form.fill(self.pid, self.dropped, self._rank_part)
            data = form.text % (numbers + (seq,))
            if self._gone or self._backlog or len(data) > _MAX_BYTES:
                self._deliver(data, True)
                return
            try:
                self._send(data)
            except OSError as error:
                self._refused(error, data, True)

    def _deliver(self, data: bytes, step: bool) -> bool:
        """After what waits; under the lock."""
        if len(data) > _MAX_BYTES:
            self.dropped += 1
            return False
        if self._backlog and not self.flush():
            return self._keep(data, step)
        try:
            self._send(data)
        except OSError as error:
            if not self._refused(error, data, step):
                return False
        if self._gone:
            self._gone = False
            self._on_back()
        return True

    def _refused(self, error: OSError, data: bytes, step: bool) -> bool:
        """What could not be sent at once is kept for later, sent to whoever is there now, or lost."""
        if error.errno in _FULL:
            return self._keep(data, step)
        if not self._again(data, step):
            self._lose()
            return False
        return True

    def ring(self) -> None:
        """Has the receiver look now at what was sent; it may rest for some milliseconds else."""
        if self.alive and not self._gone:
            try:
                self._socket.sendto(b"", self._bell)
            except OSError:
                # A path too long for a bell, or a receiver that has none.
                pass

    def flush(self) -> bool:
        """Sends what waits, as far as it goes; True when nothing waits any more. Not in a child."""
        with self._lock:
            while self._backlog:
                try:
                    self._send(self._backlog[0])
                except OSError as error:
                    if error.errno in _FULL:
                        return False
                    if not self._again(self._backlog[0]):
                        self._lose(len(self._backlog))
                        self._backlog.clear()
                        return True
                self._backlog.popleft()
            return True

    def close(self, patience_s: float = 0.02) -> None:
        """Gives what waits a last chance, then closes; the only place that may sleep.

        A receiver that is gone is not waited for. Steps give up their place, and are counted, once
        the first half of the time is over: the ends matter more.
        """
        if self.alive:
            began = time.monotonic()
            while not self.flush() and time.monotonic() < began + patience_s:
                if time.monotonic() > began + patience_s / 2:
                    self._drop_steps()
                time.sleep(0.001)
        self._socket.close()

    def _drop_steps(self) -> None:
        """Of what waits keeps the rest, with the count of what is lost before each."""
        with self._lock:
            kept: Deque[bytes] = deque()
            lost = 0
            for data in self._backlog:
                if data.startswith(_STEP):
                    lost += 1
                else:
                    kept.append(_recounted(data, lost))
            if kept:
                self.dropped += lost
                self._backlog = kept

    def _again(self, data: bytes, step: bool = False) -> bool:
        """Connects to whoever is on the path now and sends there: the first time, and after a
        restart.

        A connected socket saves the look-up of the path at each event. Steps look for a receiver
        that is gone only so often; begins and ends always do.
        """
        if step:
            self._look_again_ns = time.monotonic_ns() + LOOK_PERIOD_NS
        try:
            self._socket.connect(self.path)
            self._send(data)
            return True
        except OSError:
            return False

    def _keep(self, data: bytes, step: bool) -> bool:
        if len(self._backlog) >= (BACKLOG_STEPS if step else BACKLOG):
            self.dropped += 1
            return False
        self._backlog.append(data)
        if not step and self._flusher is None:
            try:
                self._flusher = threading.Thread(
                    target=self._flush_soon, name="epochmeter-flush", daemon=True
                )
                self._flusher.start()
            except RuntimeError:
                # No more threads, or the interpreter is shutting down: close() is the next chance.
                self._flusher = None
        return True

    def _flush_soon(self) -> None:
        try:
            for _ in range(FLUSH_TRIES):
                time.sleep(FLUSH_PERIOD_S)
                with self._lock:
                    if self.flush():
                        # Under the lock: what is kept from now on starts a thread of its own.
                        self._flusher = None
                        return
        except Exception:
            # The interpreter is going down around this thread.
            pass
        self._flusher = None

    def _lose(self, events: int = 1) -> None:
        self.dropped += events
        self._gone = True
