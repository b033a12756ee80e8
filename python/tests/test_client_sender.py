# SPDX-License-Identifier: Apache-2.0
"""What the sender does when nobody listens, when the receiver is slow, and when it comes back."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from client_support import FakeRecorder
from epochmeter import _protocol
from epochmeter._sender import BACKLOG, BACKLOG_STEPS, LOOK_PERIOD_NS, Sender

MARK = _protocol.head("mark")
STEP = _protocol.head("step")


def bound(path: Path) -> socket.socket:
    return bound_name(os.fsencode(path))


def bound_name(name: bytes) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(name)
    made.setblocking(False)
    return made


def drain(receiver: socket.socket) -> List[Dict[str, Any]]:
    found = []
    while True:
        try:
            found.append(json.loads(receiver.recv(9000)))
        except BlockingIOError:
            return found


def test_nobody_there_is_counted_and_the_next_event_says_so(folder: Path) -> None:
    back: List[int] = []
    sender = Sender(str(folder / "s"), 3, lambda: back.append(1))
    assert not sender.send(MARK, 1, "")
    assert not sender.send(MARK, 2, "")
    receiver = bound(folder / "s")
    assert sender.send(MARK, 3, "")
    assert drain(receiver) == [
        {"v": 1, "kind": "mark", "t_ns": 3, "pid": os.getpid(), "seq": 2, "dropped": 2, "rank": 3}
    ]
    assert back == [1]
    receiver.close()


def test_slow_receiver_costs_no_time_and_loses_only_what_the_backlog_cannot_hold(
    folder: Path,
) -> None:
    receiver = bound(folder / "s")
    sender = Sender(str(folder / "s"), None, lambda: None)
    began = time.monotonic()
    total = 3000
    for number in range(total):
        sender.send(MARK, number, "", step=True)
    assert time.monotonic() - began < 2.0
    assert sender.dropped == total - BACKLOG_STEPS - sender.sent > 0
    # A begin or an end still finds room.
    assert sender.send(MARK, total, "", step=False) is False or sender.dropped < total
    lost = sender.dropped
    found: List[Dict[str, Any]] = []
    while not sender.flush():
        found += drain(receiver)
    sender.send(MARK, total + 1, "")
    found += drain(receiver)
    # The queue may have been full just then.
    assert sender.flush()
    found += drain(receiver)
    assert [event["seq"] for event in found] == sorted(event["seq"] for event in found)
    assert found[-1]["dropped"] == lost
    assert len(found) == total + 2 - lost
    receiver.close()


@pytest.mark.parametrize("trouble", ["full", "gone"])
def test_usual_step_takes_part_in_order_and_counts(folder: Path, trouble: str) -> None:
    sender = Sender(str(folder / "s"), 7, lambda: None)
    form = _protocol.StepForm(2, None, ("loss",))

    def step(number: int) -> None:
        sender.send_step(form, (number, number, number, 5, 1, 0.5))

    receiver = bound(folder / "s")
    step(1)
    if trouble == "gone":
        receiver.close()
        os.unlink(folder / "s")
    total = BACKLOG_STEPS + 400
    for number in range(2, total + 1):
        step(number)
    if trouble == "gone":
        receiver = bound(folder / "s")
        time.sleep(2 * LOOK_PERIOD_NS / 1e9)
    found = drain(receiver)
    while not sender.flush():
        found += drain(receiver)
    step(total + 1)
    found += drain(receiver)
    assert found[-1]["dropped"] == sender.dropped > 300
    assert [event["seq"] + 1 for event in found] == [event["step"] for event in found]
    assert sender.sent == total + 1 - sender.dropped
    assert all(event["scalars"] == {"loss": 0.5} and event["rank"] == 7 for event in found)
    receiver.close()


def test_backlog_has_an_end(folder: Path) -> None:
    receiver = bound(folder / "s")
    sender = Sender(str(folder / "s"), None, lambda: None)
    for number in range(BACKLOG + 200):
        sender.send(MARK, number, "")
    assert sender.dropped + sender.sent + BACKLOG == BACKLOG + 200
    receiver.close()


def test_restarted_receiver_is_found_again_and_gets_a_hello(
    client: FakeRecorder, folder: Path
) -> None:
    import epochmeter

    client.events()
    client.close()
    os.unlink(client.path)
    epochmeter.mark("lost")
    again = FakeRecorder(client.path)
    epochmeter.mark("found")
    events = again.events()
    again.close()
    assert [event["kind"] for event in events] == ["mark", "hello"]
    assert [event["dropped"] for event in events] == [1, 1]


def test_too_long_event_is_lost_alone(folder: Path) -> None:
    receiver = bound(folder / "s")
    sender = Sender(str(folder / "s"), None, lambda: None)
    assert not sender.send(MARK, 1, ',"name":"' + "x" * 8192 + '"')
    assert sender.send(MARK, 2, "")
    assert [event["dropped"] for event in drain(receiver)] == [1]
    receiver.close()


def test_path_that_can_never_be_a_socket_is_counted_not_raised(folder: Path) -> None:
    sender = Sender(str(folder / ("x" * 200)), None, lambda: None)
    assert not sender.send(MARK, 1, "")
    sender = Sender(str(folder), None, lambda: None)
    assert not sender.send(MARK, 1, "")
    assert sender.dropped == 1


def test_threads_share_one_sequence_without_holes(recorder: FakeRecorder) -> None:
    sender = Sender(recorder.path, None, lambda: None)

    def work() -> None:
        for number in range(200):
            sender.send(MARK, number, "")
            time.sleep(0.0002)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sender.close(1.0)
    found = recorder.events()
    assert [event["seq"] for event in found] == list(range(1600))


def slowly(receiver: socket.socket, first_s: float, found: List[Dict[str, Any]]) -> Any:
    """Drains `receiver` every 2 ms, from `first_s` on, in a thread that stops on its stop()."""

    class Slow(threading.Thread):
        going = True

        def run(self) -> None:
            time.sleep(first_s)
            while self.going:
                found.extend(drain(receiver))
                time.sleep(0.002)

        def stop(self) -> None:
            self.going = False
            self.join()
            found.extend(drain(receiver))
            receiver.close()

    made = Slow()
    made.start()
    return made


def test_end_of_the_process_waits_for_a_busy_receiver(folder: Path) -> None:
    receiver = bound(folder / "s")
    found: List[Dict[str, Any]] = []
    sender = Sender(str(folder / "s"), None, lambda: None)
    for number in range(400):
        sender.send(STEP, number, "", step=True)
    sender.send(MARK, 400, "")
    reader = slowly(receiver, 0.1, found)
    sender.close(2.0)
    reader.stop()
    assert [event["seq"] for event in found] == list(range(401))


def test_ends_come_through_and_count_the_steps_that_made_room(folder: Path) -> None:
    receiver = bound(folder / "s")
    found: List[Dict[str, Any]] = []
    sender = Sender(str(folder / "s"), None, lambda: None)
    for number in range(600):
        sender.send(MARK if number % 150 == 149 else STEP, number, "", step=number % 150 != 149)
    reader = slowly(receiver, 0.6, found)
    sender.close(1.0)
    reader.stop()
    marks = [event["seq"] for event in found if event["kind"] == "mark"]
    assert marks == [149, 299, 449, 599]
    assert sender.dropped > 500 and found[-1]["dropped"] == sender.dropped
    for before, after in zip(found, found[1:]):
        gap = after["seq"] - before["seq"] - 1
        assert gap == after["dropped"] - before["dropped"]


def test_end_of_the_process_waits_only_so_long_and_for_nobody_who_is_gone(folder: Path) -> None:
    for patience_s, gone in ((0.3, False), (5.0, True)):
        path = folder / str(gone)
        receiver = bound(path)
        sender = Sender(str(path), None, lambda: None)
        for number in range(100):
            sender.send(STEP, number, "", step=True)
        if gone:
            receiver.close()
        began = time.monotonic()
        sender.close(patience_s)
        assert time.monotonic() - began < 1.0
        receiver.close()


def test_begins_and_ends_ring_the_bell_and_steps_do_not(client: FakeRecorder) -> None:
    import epochmeter

    bell = bound_name(b"\0" + client.path.encode())
    for number in epochmeter.epochs(2):
        for _ in epochmeter.steps(range(50)):
            pass
        epochmeter.mark("no bell")
    rings = 0
    try:
        while True:
            assert bell.recv(10) == b""
            rings += 1
    except BlockingIOError:
        pass
    bell.close()
    assert rings == len(client.events("train_begin", "train_end", "epoch_begin", "epoch_end")) == 6


def test_sending_while_sending_does_not_lock_up(recorder: FakeRecorder) -> None:
    # As a finaliser or a signal handler does it.
    sender = Sender(recorder.path, None, lambda: None)
    with sender._lock:
        assert sender.send(MARK, 1, "")


def test_steps_look_for_a_lost_receiver_only_now_and_then(folder: Path) -> None:
    sender = Sender(str(folder / "s"), None, lambda: None)
    assert not sender.send(MARK, 0, "", step=True)
    looks: List[bytes] = []
    real, sender._send = sender._send, lambda data: looks.append(data) or real(data)
    began = time.monotonic()
    lost = 1
    while time.monotonic() < began + 0.1:
        assert not sender.send(MARK, 0, "", step=True)
        lost += 1
    assert 1 <= len(looks) <= 40 and lost > 1000
    receiver = bound(folder / "s")
    time.sleep(0.02)
    assert sender.send(MARK, 1, "", step=True)
    assert drain(receiver)[0]["dropped"] == lost == sender.dropped
    receiver.close()
