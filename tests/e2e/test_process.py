# SPDX-License-Identifier: Apache-2.0
"""Exit codes, signals and output of `run`: as if we were not there."""
import os
import pathlib
import signal
import subprocess
import time

import pytest
from conftest import BINARY, BUILD, PROGRAMS, children, find_helper, python

NOISY = (
    "import sys, os\n"
    "for i in range(2000):\n"
    "    sys.stdout.write('out %d \\x00\\xff\\r' % i); sys.stderr.write('err %d\\n' % i)\n"
    "    if i % 7 == 0: sys.stdout.flush()\n"
    "sys.stdout.buffer.write(bytes(range(256)) * 50)\n"
)


@pytest.mark.parametrize("code", [0, 1, 3, 125, 255])
def test_exit_code_is_the_trainings(tool, code):
    done = tool.record("sh", "-c", f"exit {code}")
    assert done.returncode == code
    assert tool.report()["run"]["exit"]["exit_code"] == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT])
def test_death_by_signal_is_passed_on(tool, number):
    def default():  # a caller in the background may have handed down SIGINT as ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    done = tool.record("sh", "-c", f"kill -{int(number)} $$", preexec_fn=default)
    assert done.returncode == -number
    assert tool.report()["run"]["exit"]["signal"] == number


def test_an_ignored_signal_stays_ignored(tool):
    def ignore():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert tool.record("sh", "-c", "kill -2 $$; exit 6", preexec_fn=ignore).returncode == 6


def test_command_that_is_not_there_or_not_executable(tool):
    assert tool.record("no-such-command-here").returncode == 127
    plain = tool.tmp / "plain.txt"
    plain.write_text("x")
    tool.run_file = tool.tmp / "second.emr"
    assert tool.record(plain).returncode == 126


def test_wrong_use_ends_with_125_before_anything_runs(tool):
    done = tool.call("run", "--interval", "3 parsecs", "--", "touch", "ran")
    assert done.returncode == 125 and b"interval" in done.stderr
    assert not (tool.tmp / "ran").exists()


@pytest.mark.parametrize("together", [False, True])
def test_output_is_byte_identical(tool, together):
    command = [python(), "-c", NOISY]
    plain_out, plain_err = tool.tmp / "plain.out", tool.tmp / "plain.err"
    ours_out, ours_err = tool.tmp / "ours.out", tool.tmp / "ours.err"

    def run(words, out, err):
        with open(out, "wb") as o:
            if together:
                subprocess.run(words, stdout=o, stderr=subprocess.STDOUT, env=tool.env(), cwd=tool.tmp)
            else:
                with open(err, "wb") as e:
                    subprocess.run(words, stdout=o, stderr=e, env=tool.env(), cwd=tool.tmp)

    run(command, plain_out, plain_err)
    run([BINARY, "run", "-q", "-o", str(tool.run_file), "--", *command], ours_out, ours_err)
    assert ours_out.read_bytes() == plain_out.read_bytes()
    if not together:
        assert ours_err.read_bytes() == plain_err.read_bytes()


def test_says_one_line_at_the_start_and_two_at_the_end_on_stderr_only(tool):
    done = tool.record("sh", "-c", "echo hello")
    assert done.stdout == b"hello\n"
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 3 and all(line.startswith("epochmeter: ") for line in lines), lines
    assert str(tool.run_file) in lines[0] and "epochmeter report" in lines[2]


def test_large_output_into_a_pipe_that_is_closed_early_ends_as_without_us(tool):
    script = "yes | head -c 3000000; echo ${PIPESTATUS[*]}"
    plain = subprocess.run(["bash", "-c", f"bash -c '{script}' | head -c 10"], capture_output=True, timeout=60)
    ours = subprocess.run(["bash", "-c", f"{BINARY} run -q -o {tool.run_file} -- bash -c '{script}' | head -c 10"],
                          capture_output=True, env=tool.env(), timeout=60)
    assert ours.stdout == plain.stdout


def test_a_terminal_stays_a_terminal(tool):
    ours = subprocess.run(
        ["script", "-qec", f"{BINARY} run -q -o {tool.run_file} -- "
         f"{python()} -c 'import sys; print(sys.stdout.isatty(), sys.stderr.isatty())'", "/dev/null"],
        capture_output=True, env=tool.env(), timeout=60)
    assert b"True True" in ours.stdout


def test_signal_to_us_reaches_the_training_once(tool):
    script = ("import signal, sys, time\n"
              "def got(n, f):\n    print('got', n, flush=True)\n"
              "signal.signal(signal.SIGUSR1, got)\n"
              "signal.signal(signal.SIGTERM, lambda n, f: (print('term', flush=True), sys.exit(7)))\n"
              "print('ready', flush=True)\n"
              "while True: time.sleep(0.05)\n")
    process = tool.start(python(), "-c", script)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.stdout.readline() == f"got {int(signal.SIGUSR1)}\n".encode()
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert out == b"term\n" and process.returncode == 7


@pytest.mark.parametrize("word", ["0", "off", "False", "no"])
def test_switched_off_is_a_plain_exec(tool, word):
    env = tool.env(EPOCHMETER=word)
    done = tool.record("sh", "-c", "echo $PPID; env | grep -c EPOCHMETER_", env=env)
    assert done.stderr == b"" and not tool.run_file.exists()
    assert int(done.stdout.split()[0]) == os.getpid()
    assert done.stdout.split()[1] == b"0"


def test_nothing_is_left_behind(tool):
    process = tool.start("sh", "-c", "sleep 0.4; echo done")
    time.sleep(0.2)
    ours = [process.pid] + [pid for pid, _ in children(process.pid)]
    ours.append(find_helper(process.pid, "epm-sampler"))
    process.communicate(timeout=20)
    time.sleep(0.3)
    alive = [pid for pid in ours if pathlib.Path("/proc", str(pid)).exists()]
    assert alive == []
    assert list((tool.tmp / "sockets").rglob("*.sock")) == []
    assert [p.name for p in tool.tmp.glob("run.emr*")] == ["run.emr"]


def test_output_of_a_grandchild_that_outlives_the_training_still_comes(tool):
    done = tool.record("sh", "-c", "(sleep 0.7; echo late) & echo early")
    assert done.stdout == b"early\nlate\n"


def test_an_existing_file_is_not_overwritten(tool):
    assert tool.record("true").returncode == 0
    before = tool.run_file.read_bytes()
    done = tool.record("sh", "-c", "exit 5")
    assert done.returncode == 5, "the training runs all the same"
    assert b"force" in done.stderr
    assert tool.run_file.read_bytes() == before
    assert tool.record("sh", "-c", "exit 6", flags=["--force"]).returncode == 6
    assert tool.report()["run"]["exit"]["exit_code"] == 6


def test_what_a_driver_library_prints_is_kept_in_the_file_not_on_stderr(tool):
    library = BUILD / "nvml-replay-stub" / "libnvidia-ml.so.1"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    done = tool.record("sh", "-c", "sleep 1.5; echo mine >&2", flags=["-q"],
                       env=tool.env(EPOCHMETER_NVML_LIBRARY=str(library)))
    assert done.returncode == 0 and done.stderr == b"mine\n" and done.stdout == b""
    told = [e for e in tool.export_jsonl() if e.get("name") == "sampler.output"]
    assert len(told) == 1 and "WARNING" in told[0]["fields"]["detail"]


def test_the_tail_of_a_removed_run_is_kept_aside_and_the_next_run_recorded(tool):
    process = tool.start("sleep", 30, flags=["-q"])
    launcher, recorder = process.pid, find_helper(process.pid, "epm-recorder")
    time.sleep(1.5)
    os.kill(recorder, signal.SIGSTOP)
    os.kill(launcher, signal.SIGKILL)
    os.kill(recorder, signal.SIGKILL)
    process.wait()
    tail = tool.tmp / "run.emr.tail"
    old = tail.read_bytes()
    tool.run_file.unlink()
    done = tool.record("true")
    aside = tool.tmp / "run.emr.tail.old"
    lines = [line for line in done.stderr.decode().splitlines() if " kept as " in line]
    assert done.returncode == 0 and len(lines) == 1 and "run.emr.tail.old" in lines[0], done.stderr
    assert aside.read_bytes() == old and not tail.exists()
    assert tool.report()["run"]["exit"]["exit_code"] == 0
    # What the tail alone holds can be read under a name of its own.
    aside.rename(tool.tmp / "old.emr.tail")
    assert tool.report(tool.tmp / "old.emr")["run"]["attributes"]["command"] == "sleep 30"


def test_read_only_folder_the_training_goes_on(tool):
    done = tool.call("run", "-o", "/proc/none/run.emr", "--", "sh", "-c", "echo went on; exit 4")
    assert done.returncode == 4 and done.stdout == b"went on\n" and b"epochmeter:" in done.stderr


def test_secrets_are_not_stored(tool):
    env = tool.env(MY_API_TOKEN="tok-123456", HOME="/home/nobody")
    tool.record("sh", "-c", "true", "--password", "hunter2", "/home/nobody/data", env=env)
    content = tool.call("dump", tool.run_file).stdout + tool.run_file.read_bytes()
    for secret in (b"tok-123456", b"hunter2", b"/home/nobody"):
        assert secret not in content
    assert b"~/data" in content


def test_plain_loop_steps_and_epochs(tool):
    done = tool.record(python(), PROGRAMS / "steps.py", 20, 0.01, 3, 0)
    assert done.returncode == 0, done.stderr.decode()
    epochs = tool.report()["epochs"]
    assert [e["epoch"] for e in epochs] == [0, 1, 2]
    assert all(e["steps"] == 20 for e in epochs)
    assert all(0.009 < e["step_s"]["p50"] < 0.05 for e in epochs)
    assert abs(epochs[2]["scalars"]["loss"] - 1 / 60) < 1e-9


def test_start_without_the_wrapper_records_too(tool):
    env = tool.env(EPOCHMETER_BINARY=BINARY, PYTHONPATH=str(PROGRAMS.parents[2] / "python"))
    done = subprocess.run([python(), str(PROGRAMS / "steps.py"), "30", "0.02", "2", "3"], env=env, cwd=tool.tmp,
                          capture_output=True, timeout=60)
    assert done.returncode == 3
    deadline = time.monotonic() + 10
    found = []
    while time.monotonic() < deadline:
        found = list(tool.tmp.glob("epochmeter-runs/*.emr"))
        if found and not list(tool.tmp.glob("epochmeter-runs/*.tail")):
            break
        time.sleep(0.1)
    assert len(found) == 1
    epochs = tool.report(found[0])["epochs"]
    assert sum(e["steps"] for e in epochs) == 60


def test_run_inside_run_joins_the_outer_recorder(tool):
    inner = f"{BINARY} run -- {python()} {PROGRAMS / 'steps.py'} 5 0.01 1 4"
    done = tool.record("sh", "-c", inner, flags=["-q"])
    assert done.returncode == 4
    assert not (tool.tmp / "epochmeter-runs").exists()
    assert sum(e["steps"] for e in tool.report()["epochs"]) == 5


def test_signals_ignored_by_the_caller_do_not_confuse_us(tool):
    """SIGCHLD ignored, as some job managers leave it: children could not be waited for."""
    done = tool.record("sh", "-c", "exit 5", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 5


def test_the_training_gets_the_callers_dispositions_and_descriptors(tool):
    script = ("import os, signal; print(signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN, "
              "sorted(int(f) for f in os.listdir('/proc/self/fd'))[:-1], signal.pthread_sigmask(0, []))")

    def ignore():
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    plain = subprocess.run([python(), "-c", script], capture_output=True, env=tool.env(), preexec_fn=ignore)
    ours = tool.record(python(), "-c", script, preexec_fn=ignore)
    assert ours.stdout == plain.stdout


def test_closed_standard_descriptors(tool):
    script = f"{BINARY} run -q -o {tool.run_file} -- sh -c 'exit 6' <&- >&- 2>&-"
    done = subprocess.run(["bash", "-c", script], env=tool.env(), timeout=60)
    assert done.returncode == 6
    assert tool.report()["run"]["exit"]["exit_code"] == 6


def test_unusual_signals_reach_the_training(tool):
    script = ("import signal, time\n"
              "signal.signal(signal.SIGALRM, lambda n, f: exit(42))\n"
              "print('ready', flush=True)\n"
              "while True: time.sleep(0.05)\n")
    process = tool.start(python(), "-c", script)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGALRM)
    process.communicate(timeout=20)
    assert process.returncode == 42


def test_a_full_destination_costs_only_what_did_not_fit(tool):
    done = subprocess.run([BINARY, "run", "-o", str(tool.run_file), "--", "sh", "-c", "echo lost; echo told >&2; exit 7"],
                          stdout=open("/dev/full", "wb"), stderr=subprocess.PIPE, env=tool.env(), timeout=60)
    assert done.returncode == 7 and b"told" in done.stderr
    assert any(loss["kind"] == "output.not_written" for loss in tool.report()["losses"])


def test_a_stuck_reader_of_stdout_does_not_hold_stderr(tool):
    script = "import sys\nfor i in range(200): sys.stderr.write('e%d\\n' % i)\nsys.stderr.flush()\nsys.stdout.write('x' * 300000)\n"
    process = tool.start(python(), "-c", script, flags=["-q"])
    err = b""
    deadline = time.monotonic() + 20
    while err.count(b"\n") < 200 and time.monotonic() < deadline:
        err += os.read(process.stderr.fileno(), 65536)
    assert err.count(b"\n") == 200
    out, _ = process.communicate(timeout=20)
    assert out == b"x" * 300000 and process.returncode == 0


def test_a_mistyped_command_leaves_no_run(tool):
    done = tool.record("pyhton", "train.py")
    assert done.returncode == 127 and not tool.run_file.exists()


def test_devices_and_the_run_itself_are_not_overwritten(tool):
    assert tool.record("true").returncode == 0
    before = tool.run_file.read_bytes()
    for words in (["report", tool.run_file, "-o", tool.run_file], ["export", tool.run_file, "-o", tool.run_file],
                  ["dump", tool.run_file, "-o", tool.run_file]):
        done = tool.call(*words)
        assert done.returncode != 0 and b"refusing" in done.stderr, words
    assert tool.run_file.read_bytes() == before
    fifo = tool.tmp / "fifo"
    os.mkfifo(fifo)
    done = tool.call("run", "-o", fifo, "--force", "--", "sh", "-c", "exit 3")
    assert done.returncode == 3 and fifo.is_fifo()


def test_attach_ends_in_order_on_sigterm(tool):
    sleeper = subprocess.Popen(["sleep", "60"])
    process = subprocess.Popen([BINARY, "attach", "-o", str(tool.run_file), str(sleeper.pid)], env=tool.env(), cwd=tool.tmp,
                               stderr=subprocess.PIPE)
    try:
        time.sleep(1.2)
        process.terminate()
        process.communicate(timeout=20)
        assert process.returncode == 0
        assert sleeper.poll() is None
        assert not (tool.tmp / "run.emr.tail").exists()
        assert tool.report()["run"]["exit"]["reason"] == "detached"
    finally:
        sleeper.kill()
        sleeper.wait()


def test_processes_without_ranks_stay_apart(tool):
    script = ("import multiprocessing, epochmeter, time\n"
              "def work(n):\n"
              "    epochmeter.start()\n"
              "    for epoch in range(2):\n"
              "        for _ in epochmeter.steps(range(10), epoch=epoch): time.sleep(0.005)\n"
              "if __name__ == '__main__':\n"
              "    ps = [multiprocessing.get_context('fork').Process(target=work, args=(i,)) for i in range(3)]\n"
              "    [p.start() for p in ps]; [p.join() for p in ps]\n")
    path = tool.tmp / "many.py"
    path.write_text(script)
    assert tool.record(python(), path).returncode == 0
    rows = tool.report()["epochs"]
    assert sorted((r["epoch"], r["steps"]) for r in rows) == [(0, 10)] * 3 + [(1, 10)] * 3
