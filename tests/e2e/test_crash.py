# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of each process at random moments: at most one second is lost, the training never notices.

EPOCHMETER_CRASH_ROUNDS sets the rounds of each kind (5 here; the long form has 1000, of which the
sampler, the relay and the training get 100 each), EPOCHMETER_CRASH_AT_ONCE how many run at once.
The file of a killed recorder is read all the while by a reader of its own.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

import pytest
from conftest import PROGRAMS, Tool, children, find_helper, python, seconds

ROUNDS = int(os.environ.get("EPOCHMETER_CRASH_ROUNDS", "5"))
OTHER_ROUNDS = 3 if ROUNDS < 20 else min(ROUNDS, 100)
AT_ONCE = int(os.environ.get("EPOCHMETER_CRASH_AT_ONCE", "3" if ROUNDS < 20 else "12"))
READ_EACH_S = 0.1 if ROUNDS < 20 else 0.4
STEPS, STEP_S, EPOCHS = 60, 0.02, 2
ONE_SECOND_NS = 1_000_000_000


def expected_out(steps=STEPS, epochs=EPOCHS):
    return b"".join(f"epoch {e} step {e * steps + s + 1}\n".encode() for e in range(epochs) for s in range(steps))


def expected_err(steps=STEPS, epochs=EPOCHS):
    return b"".join(f"warning {n + 1}\n".encode() for n in range(epochs * steps))


def all_rounds(tool, count, one_round):
    """one_round(tool, number) for each number, several at once, each in a folder of its own."""
    def run(number):
        folder = tool.tmp / f"round-{number}"
        folder.mkdir()
        return one_round(Tool(folder), number)

    failures, results = [], []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for number, future in enumerate([pool.submit(run, n) for n in range(count)]):
            try:
                results.append(future.result())
            except Exception as problem:  # noqa: BLE001 - told together at the end
                failures.append(f"round {number}: {type(problem).__name__}: {problem}")
    assert not failures, f"{len(failures)} of {count} rounds:\n" + "\n".join(failures[:40])
    return results


def run_with_kill(tool, victim, moment_s, env=None, flags=(), quiet=True):
    """Starts the steps program, kills `victim` after `moment_s`; the process, output, steps sent."""
    log = tool.tmp / "steps.log"
    env = dict(env or tool.env(), STEPS_LOG=str(log))
    words = ["-q"] if quiet else []
    process = tool.start(python(), PROGRAMS / "steps.py", STEPS, STEP_S, EPOCHS, 9, env=env, flags=[*words, *flags])
    pid = find_helper(process.pid, victim)
    time.sleep(moment_s)
    os.kill(pid, signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    return process, out, err, sent_steps(log)


def sent_steps(log):
    """Step number -> CLOCK_MONOTONIC ns at which its event had been sent."""
    return dict(map(int, line.split()) for line in log.read_text().splitlines()) if log.exists() else {}


def alive(pid):
    """Neither gone nor a zombie that nobody has waited for yet."""
    try:
        stat = pathlib.Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] != "Z"


def checked_steps(records):
    """The numbers of the steps in an export: each once, with the loss that was sent."""
    steps = [r for r in records if r.get("event") == "step"]
    numbers = [r["step"] for r in steps]
    assert len(set(numbers)) == len(numbers), "a step is there twice"
    for row in steps:
        assert row["fields"]["scalar.loss"] == 1.0 / row["step"], f"a wrong value: {row}"
    return set(numbers)


class Reader(threading.Thread):
    """Reads the growing file again and again; whatever it saw once must stay."""

    def __init__(self, tool):
        super().__init__()
        self.tool = tool
        self.seen, self.problem = set(), None
        self.reads = self.retries = 0
        self.stopping = threading.Event()

    def run(self):
        try:
            while not self.stopping.wait(READ_EACH_S):
                if self.tool.run_file.exists():
                    self.read()
        except Exception as problem:  # noqa: BLE001 - raised again by end()
            self.problem = problem

    def read(self):
        done = self.export()
        if done.returncode != 0 and not self.seen and (b"it is empty" in done.stderr or b"No such file" in done.stderr):
            return  # being made, perhaps anew after a recorder that died over it
        if done.returncode != 0:
            self.retries += 1
            done = self.export()
        assert done.returncode == 0, f"a reader failed twice: {done.stderr.decode()}"
        steps = checked_steps(map(json.loads, done.stdout.decode().splitlines()))
        assert self.seen <= steps, f"steps that were on the disk are gone: {sorted(self.seen - steps)}"
        self.seen |= steps
        self.reads += 1

    def export(self):
        return self.tool.call("export", self.tool.run_file, "-f", "jsonl")

    def end(self):
        self.stopping.set()
        self.join()
        if self.problem:
            raise self.problem


class Machine:
    """What this machine gives to a process of the recorder's priority: when a small sync took its time.

    On a machine that is busy with other things the recorder's second lasts longer by as much.
    """

    PROBE = """if True:
        import os, sys, time
        os.nice(max(0, 10 - os.nice(0)))
        fd = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        while os.getppid() == int(sys.argv[2]):
            due_ns = time.monotonic_ns() + 20_000_000
            time.sleep(0.02)
            os.write(fd, bytes(4096))
            os.fdatasync(fd)
            os.ftruncate(fd, 0)
            print(due_ns, time.monotonic_ns(), flush=True)
    """

    def __init__(self, folder):
        self.log = folder / "probe.log"
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen([python(), "-c", self.PROBE, str(folder / "probe"), str(os.getpid())], stdout=out)

    def end(self):
        self.process.kill()
        self.process.wait()
        self.stalls = [(int(a), int(b)) for a, b in (line.split() for line in self.log.read_text().splitlines() if line.count(" ") == 1)]

    def stalled_ns(self, begin_ns, end_ns):
        """How much of the interval went by in syncs and waits of more than 20 ms."""
        return sum(max(0, min(b, end_ns) - max(a, begin_ns)) for a, b in self.stalls if b - a > 20_000_000)


class KilledRecorder:
    """One run whose recorder is killed in the way that `kind` names, with a reader beside it."""

    KINDS = ["working", "working twice", "as it starts", "as it finishes", "as it resumes"]
    STEPS, EPOCHS = 40, 2

    def __init__(self, tool, number):
        self.tool = tool
        self.kind = self.KINDS[number % len(self.KINDS)]
        self.random = random.Random(number)
        self.kills = []  # CLOCK_MONOTONIC ns
        self.log = tool.tmp / "steps.log"
        env = tool.env(STEPS_LOG=str(self.log), EPOCHMETER_SEAL_TICKS=str(self.random.choice([1, 3, 600])))
        self.process = tool.start(python(), PROGRAMS / "steps.py", self.STEPS, STEP_S, self.EPOCHS, 9, env=env,
                                  flags=["-q", "-i", "100ms"])

    def recorder(self, not_pid=None):
        """The recorder's pid; None when the launcher has ended."""
        while self.process.poll() is None:
            for pid, name in children(self.process.pid):
                if name == "epm-recorder" and pid != not_pid:
                    return pid
            time.sleep(0.002)
        return None

    def kill(self, pid):
        if pid is None:
            return
        try:
            os.kill(pid, signal.SIGKILL)
            self.kills.append(time.monotonic_ns())
        except ProcessLookupError:
            pass  # it ended in order just before

    def strike(self):
        pid = self.recorder()
        if self.kind == "as it finishes":
            training = None
            while training is None and self.process.poll() is None:
                training = next((p for p, n in children(self.process.pid) if not n.startswith("epm-")), None)
            while training and alive(training):
                time.sleep(0.002)
            time.sleep(self.random.uniform(0, 0.05))
            self.kill(pid)
        elif self.kind == "as it starts":
            time.sleep(self.random.uniform(0, 0.15))
            self.kill(pid)
        else:
            time.sleep(self.random.uniform(0.05, 1.6))
            self.kill(pid)
        if self.kind == "as it resumes":
            successor = self.recorder(not_pid=pid)
            time.sleep(self.random.uniform(0, 0.06))
            self.kill(successor)
        elif self.kind == "working twice":
            time.sleep(self.random.uniform(0.1, 0.8))
            self.kill(self.recorder(not_pid=pid))

    def run(self):
        reader = Reader(self.tool)
        reader.start()
        try:
            self.strike()
            out, err = self.process.communicate(timeout=120)
            ended_ns = time.monotonic_ns()
        finally:
            reader.stopping.set()
        reader.end()
        assert self.process.returncode == 9
        assert out == expected_out(self.STEPS, self.EPOCHS)
        ours = [line for line in err.splitlines(True) if line.startswith(b"epochmeter:")]
        assert b"".join(l for l in err.splitlines(True) if l not in ours) == expected_err(self.STEPS, self.EPOCHS)
        recorded = checked_steps(self.tool.export_jsonl())
        assert reader.seen <= recorded, f"{self.kind}: steps that were on the disk are gone"
        # A machine may be too busy for the second recorder to end the file within the launcher's two seconds.
        in_time = not any(b"did not answer" in line for line in ours)
        if not in_time:
            self.kills.append(ended_ns)
        data = self.tool.report()
        self.find_lost(recorded, sum(loss["count"] for loss in data["losses"] if loss["kind"] == "client.dropped"))
        if not in_time:
            done = self.tool.call("recover", self.tool.run_file)
            assert done.returncode == 0 and checked_steps(self.tool.export_jsonl()) == recorded, done.stderr
            return self, reader, 1
        assert all(b"does not answer" in line or b"takes records again" in line for line in ours), ours
        assert data["run"]["exit"]["exit_code"] == 9, self.kind
        kinds = collections.Counter(loss["kind"] for loss in data["losses"])
        assert not [kind for kind in kinds if kind.startswith("file.") and kind != "file.torn_tail"], kinds
        left = sorted(p.name for p in self.tool.tmp.iterdir())
        assert "run.emr.tail" not in left, left
        return self, reader, 0

    def find_lost(self, recorded, dropped):
        """Each step that is missing, as the time it was sent and the kill that cost it.

        The client drops, and counts, what finds its socket full while no recorder is there.
        """
        self.lost = []
        for number, sent_ns in sent_steps(self.log).items():
            if number in recorded:
                continue
            before = [kill_ns - sent_ns for kill_ns in self.kills if kill_ns >= sent_ns - int(STEP_S * 1e9)]
            if not before:
                dropped -= 1
                assert dropped >= 0, f"{self.kind}: step {number} is missing, no kill came after it, and nobody counted it"
                continue
            self.lost.append((number, sent_ns, sent_ns + min(before)))


def test_recorder_killed(tool):
    begin_s = time.monotonic()
    machine = Machine(tool.tmp)
    try:
        results = all_rounds(tool, ROUNDS, lambda own, number: KilledRecorder(own, number).run())
    finally:
        machine.end()
    kills, reads = sum(len(run.kills) for run, _, _ in results), sum(reader.reads for _, reader, _ in results)
    not_ended = sum(late for _, _, late in results)
    lost_ns, too_much = [0], []
    for run, _, _ in results:
        for number, sent_ns, kill_ns in run.lost:
            served_ns = kill_ns - sent_ns - machine.stalled_ns(sent_ns, kill_ns)
            lost_ns.append(served_ns)
            if served_ns > ONE_SECOND_NS:
                too_much.append(f"{run.tool.tmp}: {run.kind}: step {number}: {(kill_ns - sent_ns) / 1e9} s, {served_ns / 1e9} s of it served")
    print(f"\n{ROUNDS} rounds, {kills} kills, {reads} reads beside them, {sum(r.retries for _, r, _ in results)} of them again; "
          f"lost: at most {max(lost_ns) / 1e9:.3f} s, in {sum(bool(run.lost) for run, _, _ in results)} rounds; "
          f"{not_ended} files not ended in time; {time.monotonic() - begin_s:.0f} s")
    assert not too_much, f"lost more than a second: {too_much}"
    assert kills >= ROUNDS * 0.9 and reads >= ROUNDS and not_ended <= ROUNDS / 2


def test_the_last_line_counts_the_epochs_of_the_recorder_before(tool):
    process, _, err, _ = run_with_kill(tool, "epm-recorder", 1.5, quiet=False)
    assert process.returncode == 9
    last = [line for line in err.decode().splitlines() if "epochmeter: recorded " in line]
    assert len(last) == 1 and f", {EPOCHS} epochs" in last[0], err
    losses = tool.report()["losses"]
    assert any(loss["kind"] == "recorder.restarted" for loss in losses), losses


def test_recorders_that_stand_still_at_the_end_are_ended_or_say_the_end(tool):
    """One that is stopped is replaced; here each of its successors is stopped as well."""
    process = tool.start("sleep", 1)
    find_helper(process.pid, "epm-recorder")
    stopped, began = set(), time.monotonic()
    time.sleep(0.5)
    while process.poll() is None and time.monotonic() - began < 30:
        for pid in (pid for pid, name in children(process.pid) if name == "epm-recorder"):
            stopped.add(pid)
            try:
                os.kill(pid, signal.SIGSTOP)
            except ProcessLookupError:
                pass
        time.sleep(0.001)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0 and time.monotonic() - began < 6
    if b"the recorder did not answer for 2" not in err:  # one of them was quicker than we
        assert tool.report()["run"]["exit"]["exit_code"] == 0, err
    deadline = time.monotonic() + 2  # the kernel may take a moment over a killed process
    while any(alive(pid) for pid in stopped) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(alive(pid) for pid in stopped)


def test_sampler_killed(tool, recordings, replay_library):
    def one_round(own, number):
        moment = random.Random(100 + number).uniform(0.05, 2.0)
        env = own.env(EPOCHMETER_NVML_LIBRARY=str(replay_library), EPOCHMETER_REPLAY=str(recordings / "healthy"))
        process, out, err, sent = run_with_kill(own, "epm-sampler", moment, env=env, flags=["-i", "100ms"])
        assert process.returncode == 9 and out == expected_out() and err == expected_err()
        records = own.export_jsonl()
        assert len(checked_steps(records)) == len(sent)
        times = sorted({seconds(row["@timestamp"]) for row in records if "gpu_utilization_ratio" in str(row.get("metric"))})
        assert times, "GPU samples are there"
        assert max((b - a for a, b in zip(times, times[1:])), default=0) <= 1.0
        told = [r for r in records if r.get("name") == "sampler" and r["fields"]["state"] == "gone"]
        assert told and told[0]["fields"]["signal"] == signal.SIGKILL, "the run says how the sampler ended"

    all_rounds(tool, OTHER_ROUNDS, one_round)


def test_training_killed(tool):
    def one_round(own, number):
        process = own.start(python(), PROGRAMS / "steps.py", STEPS, STEP_S, EPOCHS, 9, flags=["-q"],
                            env=own.env(STEPS_LOG=str(own.tmp / "steps.log")))
        pid = find_helper(process.pid, os.path.basename(python()))
        time.sleep(random.Random(200 + number).uniform(0.3, 2.0))
        os.kill(pid, signal.SIGKILL)
        out, _ = process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL
        assert expected_out().startswith(out)
        sent = sent_steps(own.tmp / "steps.log")
        recorded = checked_steps(own.export_jsonl()) if sent else set()
        assert len(recorded) >= len(sent) - 1
        assert own.report()["run"]["exit"]["signal"] == signal.SIGKILL

    all_rounds(tool, OTHER_ROUNDS, one_round)


def test_relay_killed_the_training_goes_on(tool):
    def one_round(own, number):
        moment = random.Random(300 + number).uniform(0.05, 2.0)
        process, out, err, _ = run_with_kill(own, "epm-relay", moment)
        assert process.returncode == 9
        assert out == expected_out() and err == expected_err()
        told = [i["text"] for i in own.report()["incidents"] if i["kind"] == "relay"]
        assert len(told) == 1 and "was away for" in told[0] and "signal 9" in told[0], told

    all_rounds(tool, OTHER_ROUNDS, one_round)


def test_launcher_killed_ends_the_training_as_without_us_and_the_file_in_order(tool):
    process = tool.start(python(), PROGRAMS / "steps.py", 500, 0.02, 1, 0, flags=["-q"])
    find_helper(process.pid, "epm-recorder")
    training = find_helper(process.pid, os.path.basename(python()))
    time.sleep(1.0)
    process.kill()
    process.communicate(timeout=60)
    deadline = time.monotonic() + 10
    while (tool.tmp / "run.emr.tail").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(training)
    data = tool.report()
    assert data["run"]["exit"]["reason"] == "lost"
    assert 10 <= sum(e["steps"] for e in data["epochs"]) < 500
    assert list((tool.tmp / "sockets").rglob("*.sock")) == []


def test_file_of_a_killed_run_is_readable_and_recoverable(tool):
    """Everything of ours is killed at once: the tail still has all but the last second."""
    process = tool.start(python(), PROGRAMS / "steps.py", 100, 0.02, 1, 0, flags=["-q"], env=tool.env(STEPS_LOG=str(tool.tmp / "steps.log")))
    recorder = find_helper(process.pid, "epm-recorder")
    time.sleep(1.5)
    process.kill()
    os.kill(recorder, signal.SIGKILL)
    process.communicate(timeout=60)
    before = tool.report()
    steps = sum(e["steps"] for e in before["epochs"])
    assert steps >= 20
    done = tool.call("recover", tool.run_file)
    assert done.returncode == 0, done.stderr
    assert not (tool.tmp / "run.emr.tail").exists()
    after = tool.report()
    assert sum(e["steps"] for e in after["epochs"]) == steps
