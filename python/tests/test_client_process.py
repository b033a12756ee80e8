# SPDX-License-Identifier: Apache-2.0
"""The client and the life of a process: switch, ranks, fork, exceptions, exit, start()."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any, Dict, List

import pytest

from client_support import ROOT, FakeRecorder, run_python
from epochmeter import _ranks

LOOP = """
import epochmeter
for _ in epochmeter.steps([1, 2], epoch=0):
    epochmeter.log(loss=1.5)
epochmeter.mark("end")
"""


def test_import_is_light_and_brings_no_framework() -> None:
    done = run_python(
        "import sys, time\n"
        "before = set(sys.modules)\n"
        "t = time.process_time()\n"
        "import epochmeter\n"
        "spent = time.process_time() - t\n"
        "import json\n"
        "print(json.dumps([spent, sorted(set(sys.modules) - before)]))\n"
    )
    spent, modules = json.loads(done.stdout)
    assert spent < 0.05
    assert not {"paddle", "torch", "numpy", "socket", "subprocess"} & set(modules)


def test_without_a_socket_everything_is_silent_and_does_nothing() -> None:
    done = run_python(LOOP + "print('ran')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ran\n", "")


def test_threads_that_train_at_once_make_one_recorder(recorder: FakeRecorder) -> None:
    done = run_python(
        "import sys, threading, time\n"
        "from epochmeter import _recorder, _state\n"
        "find = _recorder._ranks.find\n"
        "def slow(names): time.sleep(0.05); return find(names)\n"
        "_recorder._ranks.find = slow\n"
        "start = threading.Barrier(4)\n"
        "found = []\n"
        "def work(): start.wait(); found.append(_state.join())\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(len(found), len(set(map(id, found))), None in found)\n",
        recorder.path,
    )
    assert (done.stdout, done.stderr) == ("4 1 False\n", "")
    assert recorder.kinds() == ["hello"]


def test_child_of_a_fork_while_another_thread_joins_can_join_itself(recorder: FakeRecorder) -> None:
    done = run_python(
        "import os, threading, time\n"
        "from epochmeter import _recorder, _state\n"
        "find = _recorder._ranks.find\n"
        "inside = threading.Event()\n"
        "def slow(names): inside.set(); time.sleep(0.3); return find(names)\n"
        "_recorder._ranks.find = slow\n"
        "thread = threading.Thread(target=_state.join)\n"
        "thread.start(); inside.wait()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os._exit(7 if _state.join() is not None else 1)\n"
        "print(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))\n"
        "thread.join()\n",
        recorder.path,
    )
    assert (done.stdout, done.stderr) == ("7\n", "")


@pytest.mark.parametrize("word", ["0", "off", "FALSE", "no"])
def test_switched_off_emits_nothing(recorder: FakeRecorder, word: str) -> None:
    done = run_python(LOOP + "print(epochmeter.start())", recorder.path, EPOCHMETER=word)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")
    assert recorder.events() == []


@pytest.mark.parametrize("word", ["", "1", "on", "True", "yes"])
def test_switched_on_emits(recorder: FakeRecorder, word: str) -> None:
    assert run_python(LOOP, recorder.path, EPOCHMETER=word).stderr == ""
    assert len(recorder.events("step")) == 2


def test_word_not_understood_is_said_once_and_means_off(recorder: FakeRecorder) -> None:
    done = run_python(LOOP * 2, recorder.path, EPOCHMETER="maybe")
    assert done.returncode == 0 and recorder.events() == []
    assert done.stderr.count("\n") == 1
    assert "'maybe'" in done.stderr and "1, on, true, yes and 0, off, false, no" in done.stderr


def test_process_that_ends_closes_an_open_training(recorder: FakeRecorder) -> None:
    assert run_python(LOOP, recorder.path).returncode == 0
    events = recorder.events()
    assert events[0]["kind"] == "hello" and events[0]["versions"]["python"].startswith("3.")
    assert [(e["kind"], e.get("status")) for e in events[-1:]] == [("train_end", "exited")]
    # Nobody said when it ended, so it is the time of the last that is known.
    assert events[-1]["t_ns"] == events[-2]["t_ns"]
    assert [event["seq"] for event in events] == list(range(len(events)))


def test_uncaught_exception_is_reported_and_python_prints_it_as_ever(
    recorder: FakeRecorder,
) -> None:
    script = LOOP + "def f():\n    raise ValueError('bad \\ud800 ' + 'é' * 5000)\nf()\n"
    plain = run_python(script)
    done = run_python(script, recorder.path)
    assert (done.returncode, done.stderr, done.stdout) == (
        plain.returncode,
        plain.stderr,
        plain.stdout,
    )
    assert recorder.kinds()[-2:] == ["exception", "train_end"]
    event, end = recorder.events("exception", "train_end")
    assert event["type"] == "ValueError" and event["message"].startswith("bad ? éé")
    assert end["status"] == "failed"
    assert max(map(len, recorder.datagrams)) <= 8192


def test_exception_that_cannot_be_printed_is_reported_all_the_same(recorder: FakeRecorder) -> None:
    script = LOOP + "class Bad(Exception):\n    def __str__(self): raise OSError('x')\nraise Bad\n"
    assert run_python(script, recorder.path).returncode == 1
    event = recorder.events("exception")[0]
    assert (event["type"], event["message"]) == ("Bad", "(Bad.__str__ failed: OSError)")
    assert recorder.events("train_end")[0]["status"] == "failed"


def test_exception_inside_a_step_ends_epoch_and_training(recorder: FakeRecorder) -> None:
    run_python("import epochmeter\nfor _ in epochmeter.steps([1, 2]):\n    1/0\n", recorder.path)
    assert recorder.kinds() == [
        "hello", "train_begin", "epoch_begin", "step", "epoch_end", "exception", "train_end",
    ]  # fmt: skip
    assert recorder.events("step")[0]["partial"] and recorder.events("epoch_end")[0]["partial"]
    assert recorder.events("train_end")[0]["status"] == "failed"
    event = recorder.events("exception")[0]
    assert event["type"] == "ZeroDivisionError" and "in <module>" in event["traceback"]
    assert (event["epoch"], event["step"]) == (0, 1)


def test_exception_before_any_training_has_no_place(recorder: FakeRecorder) -> None:
    run_python("import epochmeter\nepochmeter.start()\n1/0\n", recorder.path)
    assert not {"epoch", "step"} & set(recorder.events("exception")[0])


@pytest.mark.parametrize("caught", [False, True])
def test_exception_that_left_a_frameworks_loop_tells_where(
    recorder: FakeRecorder, caught: bool
) -> None:
    script = (
        "import epochmeter\nfrom epochmeter import _state\n"
        "r = _state.join()\nr.train_begin('keras', 'framework')\nr.epoch_begin(2, 0, 'framework')\n"
        "r.step_begin(None)\nr.step_end(r.last_end_ns + 1)\nr.step_begin(None)\n"
        "try:\n    raise ValueError('boom')\n"
        "except ValueError as error:\n    r.train_end('failed', error)\n"
        + ("raise ValueError('other')\n" if caught else "    raise\n")
    )
    run_python(script, recorder.path)
    end, event = recorder.events("train_end", "exception")
    assert (end["epoch"], end["step"]) == (2, 2)
    assert (event.get("epoch"), event.get("step")) == ((None, None) if caught else (2, 2))


def test_exception_inside_epochs_is_a_failed_training(recorder: FakeRecorder) -> None:
    script = (
        "import epochmeter\n"
        "for _ in epochmeter.epochs(3):\n    list(epochmeter.steps([1]))\n    1/0\n"
    )
    run_python(script, recorder.path)
    assert recorder.kinds()[-3:] == ["epoch_end", "exception", "train_end"]
    assert recorder.events("train_end")[0]["status"] == "failed"


def test_users_own_excepthook_is_called_exactly_once_with_the_same_objects(
    recorder: FakeRecorder,
) -> None:
    script = (
        "import sys\n"
        "def hook(*a):\n"
        "    print('mine', len(a), a[0].__name__, a[1].args, a[2] is a[1].__traceback__)\n"
        "sys.excepthook = hook\n" + LOOP + "raise KeyError(7)\n"
    )
    done = run_python(script, recorder.path)
    assert (done.stdout, done.stderr) == ("mine 3 KeyError (7,) True\n", "")
    assert len(recorder.events("exception")) == 1


def test_stop_puts_the_excepthook_back(recorder: FakeRecorder) -> None:
    script = (
        "import sys\n" + LOOP + "epochmeter.stop()\nprint(sys.excepthook is sys.__excepthook__)\n"
    )
    assert run_python(script, recorder.path).stdout == "True\n"


def test_forked_worker_does_not_speak_as_its_parent(recorder: FakeRecorder) -> None:
    script = """
import os, epochmeter
for n in epochmeter.steps([1, 2, 3], epoch=0):
    if n == 2:
        pid = os.fork()
        if pid == 0:
            with epochmeter.phase("data"):
                epochmeter.log(x=1)
            epochmeter.mark("worker")
            continue
        os.waitpid(pid, 0)
print(os.getpid())
if pid == 0: raise SystemExit(0)
"""
    done = run_python(script, recorder.path)
    assert done.returncode == 0 and done.stderr == ""
    events = recorder.events()
    parent = int(done.stdout.split()[-1])
    assert {event["pid"] for event in events} == {parent}
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert len(recorder.events("step")) == 3
    assert recorder.events("mark", "phase_begin", "scalar") == []


def test_forked_child_that_trains_is_a_sender_of_its_own(recorder: FakeRecorder) -> None:
    script = """
import os, epochmeter
list(epochmeter.steps([1], epoch=0))
pid = os.fork()
if pid == 0:
    list(epochmeter.steps([1, 2], epoch=0))
    epochmeter.stop()
    os._exit(0)
os.waitpid(pid, 0)
print(os.getpid(), pid)
"""
    parent, child = map(int, run_python(script, recorder.path).stdout.split())
    by_pid: Dict[int, List[Any]] = {parent: [], child: []}
    for event in recorder.events():
        by_pid[event["pid"]].append(event)
    assert [e["kind"] for e in by_pid[child]][:3] == ["hello", "train_begin", "epoch_begin"]
    assert sum(e["kind"] == "step" for e in by_pid[child]) == 2
    for events in by_pid.values():
        assert [event["seq"] for event in events] == list(range(len(events)))


def test_fork_while_another_thread_sends_does_not_hang_the_child(recorder: FakeRecorder) -> None:
    script = """
import os, threading, epochmeter
go = True
def work():
    while go: epochmeter.mark("x")
thread = threading.Thread(target=work); thread.start()
for _ in epochmeter.steps(range(30)):
    pid = os.fork()
    if pid == 0:
        epochmeter.mark("child"); epochmeter.stop(); os._exit(0)
    os.waitpid(pid, 0)
go = False; thread.join()
print("done")
"""
    assert run_python(script, recorder.path).stdout == "done\n"


RANKS = json.loads((ROOT / "tests" / "vectors" / "ranks.json").read_text())


@pytest.mark.parametrize("case", RANKS, ids=[case["name"] for case in RANKS])
def test_rank_comes_from_the_first_launcher_that_tells(case: Dict[str, Any]) -> None:
    expected = _ranks.Ranks(*(case[name] for name in ("rank", "local_rank", "world", "source")))
    assert _ranks.find(case["environment"]) == expected


def test_rank_is_on_every_event(recorder: FakeRecorder) -> None:
    run_python(LOOP, recorder.path, RANK="3", LOCAL_RANK="1", WORLD_SIZE="8")
    events = recorder.events()
    assert {event["rank"] for event in events} == {3}
    hello = events[0]
    assert (hello["local_rank"], hello["world"], hello["rank_source"]) == (1, 8, "torchrun")


FAKE_BINARY = f"""#!{sys.executable}
import os, socket, sys, json, time
path = sys.argv[sys.argv.index("--socket") + 1]
with open(os.environ["NOTES"], "a") as notes:
    notes.write(json.dumps(sys.argv[1:]) + "\\n")
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(path)
receiver.settimeout(5)
with open(os.environ["NOTES"] + ".events", "a") as events:
    while True:
        data = receiver.recv(9000)
        events.write(data.decode() + "\\n")
        events.flush()
        if b'"train_end"' in data:
            break
os.unlink(path)
"""


@pytest.fixture
def binary(folder: Path) -> Path:
    path = folder / "bin" / "epochmeter"
    path.parent.mkdir()
    path.write_text(FAKE_BINARY)
    path.chmod(0o755)
    return path


def test_start_launches_attach_for_this_process_and_leaves_no_child(
    binary: Path, folder: Path
) -> None:
    notes = folder / "notes"
    script = """
import os, epochmeter
print(epochmeter.start(), os.getpid())
try:
    os.waitpid(-1, os.WNOHANG)
    print("a child")
except ChildProcessError:
    print("no child")
""" + LOOP
    done = run_python(
        script, EPOCHMETER_BINARY=str(binary), NOTES=str(notes), XDG_RUNTIME_DIR=str(folder)
    )
    started, pid, *rest = done.stdout.split()
    assert (done.returncode, done.stderr, started, rest) == (0, "", "True", ["no", "child"])
    verb, flag, path, attached = json.loads(notes.read_text())
    assert (verb, flag, attached) == ("attach", "--socket", pid)
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    kinds: List[str] = []
    for _ in range(100):
        kinds = [json.loads(line)["kind"] for line in Path(f"{notes}.events").open()]
        if "train_end" in kinds:
            break
        time.sleep(0.02)
    assert kinds[0] == "hello" and kinds.count("step") == 2


def test_ranks_of_one_job_start_one_recorder(binary: Path, folder: Path) -> None:
    notes = folder / "notes"
    script = """
import os, epochmeter
children = []
for rank in range(3):
    pid = os.fork()
    if pid == 0:
        os.environ["RANK"] = str(rank)
        epochmeter.start()
        epochmeter.mark("rank")
        os._exit(0)
    children.append(pid)
for pid in children: os.waitpid(pid, 0)
"""
    run_python(
        script,
        EPOCHMETER_BINARY=str(binary), NOTES=str(notes), XDG_RUNTIME_DIR=str(folder),
        MASTER_PORT="29500",
    )  # fmt: skip
    assert len(notes.read_text().splitlines()) == 1


@pytest.mark.parametrize("named", ["/nowhere/epochmeter", ""])
def test_start_without_a_program_says_so_once_and_goes_quiet(named: str, folder: Path) -> None:
    extra = {"EPOCHMETER_BINARY": named} if named else {}
    done = run_python(
        "import epochmeter\nprint(epochmeter.start(), epochmeter.start())\n" + LOOP,
        PATH="/nowhere", **extra,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "False False\n")
    assert done.stderr.count("\n") == 1 and "epochmeter run" in done.stderr


def test_start_joins_the_recorder_that_runs(recorder: FakeRecorder) -> None:
    done = run_python("import epochmeter\nprint(epochmeter.start())\n" + LOOP, recorder.path)
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert len(recorder.events("step")) == 2
