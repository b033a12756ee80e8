# SPDX-License-Identifier: Apache-2.0
"""`attach PID`: a recorder beside a process that was there before it."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BINARY, PROGRAMS, ROOT, clean_env, find_helper, python

SOURCES = str(ROOT / "python")


def default_sigint():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def sleeper(seconds=60, **options):
    return subprocess.Popen([python(), "-c", f"import time; time.sleep({seconds})"], **options)


def attach(tool, pid, *flags, **options):
    options.setdefault("env", tool.env())
    return subprocess.Popen([BINARY, "attach", "--no-gpu", "-o", str(tool.run_file), *map(str, flags), str(pid)],
                            cwd=tool.tmp, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=default_sigint,
                            **options)


def wait_until_recording(process, patience_s=10):
    """The lines on stderr up to the one that names the run."""
    lines = []
    while True:
        line = process.stderr.readline().decode()
        assert line, lines
        lines.append(line)
        if "recording" in line and " to " in line:
            return lines


def stop(process):
    if process.poll() is None:
        process.kill()
    process.wait()


@pytest.fixture
def target():
    process = sleeper()
    yield process
    stop(process)


def test_ends_within_a_second_of_the_process_and_the_exit_code_is_unknown(tool):
    process = sleeper(1.5)
    recorder = attach(tool, process.pid)
    wait_until_recording(recorder)
    process.wait()
    ended = time.monotonic()
    _, err = recorder.communicate(timeout=20)
    assert time.monotonic() - ended < 1.0
    assert recorder.returncode == 0, err.decode()
    end = tool.report()["run"]["exit"]
    assert end["reason"] == "exited" and end["exit_code"] is None and end["signal"] is None
    assert not (tool.tmp / "run.emr.tail").exists()


def test_a_process_that_nobody_waits_for_ends_the_recording_too(tool):
    """Its parent does not reap it: the pid stays taken, the process is over."""
    parent = subprocess.Popen([python(), "-c", "import subprocess, time\n"
                               "child = subprocess.Popen(['sleep', '1'])\nprint(child.pid, flush=True)\ntime.sleep(60)"],
                              stdout=subprocess.PIPE)
    try:
        recorder = attach(tool, int(parent.stdout.readline()))
        wait_until_recording(recorder)
        recorder.communicate(timeout=10)
        assert recorder.returncode == 0 and tool.report()["run"]["exit"]["reason"] == "exited"
    finally:
        stop(parent)


def test_ctrl_c_leaves_the_process_alone(tool, target):
    recorder = attach(tool, target.pid)
    wait_until_recording(recorder)
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=10)
    assert recorder.returncode == 0 and target.poll() is None
    assert tool.report()["run"]["exit"]["reason"] == "detached"


def test_for_a_while(tool, target):
    begin = time.monotonic()
    recorder = attach(tool, target.pid, "--for", "1500ms")
    recorder.communicate(timeout=20)
    assert recorder.returncode == 0 and 1.4 < time.monotonic() - begin < 5 and target.poll() is None
    data = tool.report()["run"]
    assert data["exit"]["reason"] == "detached" and 1.4 < data["duration_s"] < 3
    assert tool.call("attach", "--for", "soon", target.pid).returncode == 2


def test_tells_at_the_start_that_steps_are_not_known_and_reports_without(tool, target):
    recorder = attach(tool, target.pid, "--for", "1200ms")
    _, err = recorder.communicate(timeout=20)
    assert b"no epochs and steps" in err
    assert tool.report()["epochs"] == []
    assert b"no epochs" in tool.call("report", tool.run_file).stdout.lower()


def test_events_arrive_when_the_environment_names_a_socket_nobody_listens_to(tool):
    folder = tool.tmp / "sockets" / "epochmeter"
    env = tool.env(EPOCHMETER_SOCKET=str(folder / "left.sock"), EPOCHMETER_RUN_ID="left", PYTHONPATH=SOURCES)
    folder.mkdir(mode=0o700)
    training = subprocess.Popen([python(), str(PROGRAMS / "steps.py"), "100", "0.05", "1", "0"], env=env, cwd=tool.tmp,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        recorder = attach(tool, training.pid)
        lines = wait_until_recording(recorder)
        assert not any("no epochs" in line for line in lines)
        training.wait()
        recorder.communicate(timeout=20)
        assert sum(e["steps"] for e in tool.report()["epochs"]) > 20
        assert not (folder / "left.sock").exists()
    finally:
        stop(training)


def test_facts_are_those_of_the_process_not_ours(tool):
    env = {"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES": "2", "RANK": "5"}
    elsewhere = tool.tmp / "elsewhere"
    elsewhere.mkdir()
    process = sleeper(env=env, cwd=elsewhere)
    try:
        recorder = attach(tool, process.pid, "--for", "1s", env=tool.env(CUDA_VISIBLE_DEVICES="7", WORLD_SIZE="9"))
        recorder.communicate(timeout=20)
        text = tool.call("dump", tool.run_file).stdout.decode()
        assert "env.CUDA_VISIBLE_DEVICES" in text and "elsewhere" in text and "WORLD_SIZE" not in text
        assert "time.sleep" in text and "training_attached" in text
    finally:
        stop(process)


def test_what_is_recorded_already_is_not_recorded_twice(tool):
    training = tool.start("sh", "-c", "sleep 30; true")
    try:
        find_helper(training.pid, "epm-recorder")
        deadline = time.monotonic() + 10
        child = None
        while child is None and time.monotonic() < deadline:
            try:
                child = find_helper(training.pid, "sleep", 0.2)
            except AssertionError:
                pass
        second = tool.tmp / "second.emr"
        for _ in range(50):
            done = tool.call("attach", "-o", second, child)
            if done.returncode == 1 and b"run.emr" in done.stderr:  # a young recorder has no file yet
                break
            time.sleep(0.1)
        assert done.returncode == 1, done.stderr
        assert b"recorded already" in done.stderr and str(tool.run_file).encode() in done.stderr
        assert not second.exists()
    finally:
        if child:
            os.kill(child, signal.SIGKILL)
        training.communicate(timeout=20)


def test_a_second_attach_names_the_file_of_the_first(tool, target):
    recorder = attach(tool, target.pid)
    wait_until_recording(recorder)
    time.sleep(0.3)
    done = tool.call("attach", "-o", tool.tmp / "second.emr", target.pid)
    assert done.returncode == 1 and str(tool.run_file).encode() in done.stderr
    as_json = json.loads(tool.call("attach", "--json", target.pid).stdout)
    assert as_json["error"]["where"] == str(tool.run_file)
    recorder.terminate()
    recorder.communicate(timeout=10)


def test_a_process_that_called_start_is_recorded_by_its_own_recorder(tool):
    env = tool.env(EPOCHMETER_BINARY=BINARY, PYTHONPATH=SOURCES)
    training = subprocess.Popen([python(), str(PROGRAMS / "steps.py"), "200", "0.05", "1", "0"], env=env, cwd=tool.tmp,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 15
        while not list(tool.tmp.glob("epochmeter-runs/*.tail")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        done = tool.call("attach", "-o", tool.tmp / "second.emr", training.pid)
        assert done.returncode == 1 and b"epochmeter-runs/" in done.stderr, done.stderr
    finally:
        stop(training)
        time.sleep(1.5)  # its recorder ends by itself


def test_start_in_a_process_that_is_attached_already_joins_that_recorder(tool):
    env = tool.env(EPOCHMETER_BINARY=BINARY, PYTHONPATH=SOURCES)
    script = ("import runpy, sys, time\ntime.sleep(4)\nsys.argv = ['steps.py', '60', '0.02', '1', '0']\n"
              f"runpy.run_path({str(PROGRAMS / 'steps.py')!r}, run_name='__main__')")
    training = subprocess.Popen([python(), "-c", script], env=env, cwd=tool.tmp, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
    try:
        recorder = attach(tool, training.pid)
        wait_until_recording(recorder)
        training.wait()
        recorder.communicate(timeout=20)
        assert sum(e["steps"] for e in tool.report()["epochs"]) == 60
        assert list(tool.tmp.glob("epochmeter-runs/*.emr")) == []
    finally:
        stop(training)


def test_no_such_process_a_thread_and_one_that_has_ended(tool):
    zombie = subprocess.Popen(["true"])
    time.sleep(0.3)
    done = tool.call("attach", zombie.pid)
    assert done.returncode == 3 and b"it has ended" in done.stderr
    zombie.wait()
    assert tool.call("attach", zombie.pid).returncode == 3
    threads = subprocess.Popen([python(), "-c", "import threading, time\n"
                                "threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
                                "print(threading.enumerate()[1].native_id, flush=True)\ntime.sleep(30)"],
                               stdout=subprocess.PIPE)
    try:
        done = tool.call("attach", int(threads.stdout.readline()))
        assert done.returncode == 3 and f"attach to {threads.pid}".encode() in done.stderr
    finally:
        stop(threads)
    assert tool.call("attach", "train.py").returncode == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_a_process_of_another_user_is_recorded_as_far_as_it_may(tool):
    binary = pathlib.Path("/tmp") / f"epochmeter-{os.getpid()}"
    folder = pathlib.Path("/tmp") / f"epochmeter-attach-{os.getpid()}"
    shutil.copy(BINARY, binary)
    folder.mkdir()
    binary.chmod(0o755)
    os.chown(folder, 65534, 65534)
    process = sleeper(8)

    def other_user():
        os.setgid(65534)
        os.setuid(65534)
    try:
        env = clean_env(folder)
        os.chown(folder / "sockets", 65534, 65534)
        done = subprocess.run([binary, "attach", "--no-gpu", "--for", "2s", "-o", folder / "run.emr", str(process.pid)],
                              env=env, cwd=folder, capture_output=True, preexec_fn=other_user, timeout=60)
        assert done.returncode == 0, done.stderr
        assert b"belongs to user 0" in done.stderr and b"are not (attach as that user" in done.stderr
        tool.run_file = folder / "run.emr"
        cpu = tool.report()["process"]
        assert cpu["cpu_cores"]["count"] > 0
    finally:
        stop(process)
        binary.unlink()
        shutil.rmtree(folder)


def test_a_process_in_another_pid_namespace(tool):
    words = ["unshare", "--pid", "--fork", "--mount-proc", "sleep", "30"]
    probe = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True)
    if probe.returncode != 0:
        pytest.skip("no pid namespaces here: " + probe.stderr.decode())
    outer = subprocess.Popen(words)
    try:
        inner = find_helper(outer.pid, "sleep")
        recorder = attach(tool, inner, "--for", "1s")
        _, err = recorder.communicate(timeout=20)
        assert recorder.returncode == 0 and b"another pid namespace" in err
    finally:
        subprocess.run(["pkill", "-KILL", "-P", str(outer.pid)], check=False)
        stop(outer)
