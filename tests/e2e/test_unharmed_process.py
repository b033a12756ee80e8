# SPDX-License-Identifier: Apache-2.0
"""What the training is and gets, compared with the same command without us."""
import fcntl
import json
import os
import pty
import resource
import signal
import subprocess
import termios
import time

import pytest
from conftest import BINARY, PROGRAMS, Tool, find_helper, python
from unharmed import HELPERS, below, each_at_once, gone, wait_until

EVERY_SIGNAL = os.environ.get("EPOCHMETER_EVERY_SIGNAL") == "1"
DEADLY = [n for n in range(1, 65) if n not in (signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
                                               signal.SIGTTOU, signal.SIGURG, signal.SIGWINCH)]
SOME = (1, 2, 3, 6, 8, 9, 10, 11, 13, 14, 15, 24, 25, 29, 31, 32, 34, 64)
# Ours by design: the environment that the hooks need; output through a relay.
ADDED = ("EPOCHMETER_RUN_ID", "EPOCHMETER_SOCKET", "EPOCHMETER_BINARY", "PYTHONPATH")


def describe(tool, words, preexec, stdin, **options):
    path = tool.tmp / "facts.json"
    done = subprocess.run([*words, python(), str(PROGRAMS / "describe_self.py"), str(path), "a b", "--flag", ""],
                          cwd=tool.tmp, env=tool.env(MARK="\udcff\n="), preexec_fn=preexec, timeout=60,
                          **({"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}), **options)
    assert done.returncode == 0, done
    return json.loads(path.read_text())


def settings_of_a_strict_caller():
    os.umask(0o027)
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_NOFILE, (333, 444))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, 8 << 20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGINT, 40):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [signal.SIGUSR2, signal.SIGTERM, 50])
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")


def settings_of_a_plain_caller():
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("preexec", [settings_of_a_plain_caller, settings_of_a_strict_caller])
@pytest.mark.parametrize("session", [False, True])
def test_the_training_sees_of_itself_what_it_would_without_us(tool, preexec, session):
    extra_read, extra_write = os.pipe()
    spare = os.open(os.devnull, os.O_RDWR | os.O_APPEND)
    options = {"pass_fds": (extra_read, extra_write, spare), "start_new_session": session, "stdout": subprocess.PIPE,
               "stderr": subprocess.PIPE}
    stdin = b"typed\n"
    plain = describe(tool, [], preexec, stdin, **options)
    ours = describe(tool, [BINARY, "run", "-q", "-o", str(tool.run_file), "--"], preexec, stdin, **options)
    for fd in (extra_read, extra_write, spare):
        os.close(fd)
    for name in ADDED:
        ours["environment"].pop(name, None)
        plain["environment"].pop(name, None)
    for facts in (plain, ours):
        facts["stdin"] = [facts["stdin"][0], facts["stdin"][3]]  # a pipe of this very call
        if session:
            facts["group"] = facts["session"] = 0
    assert ours == plain


def test_files_and_devices_as_stdin_and_output(tool):
    """A file's output goes through a pipe: the one kind that differs."""
    source = tool.tmp / "source"
    source.write_bytes(b"from a file")
    for target, differs in (("/dev/null", "c"), (tool.tmp / "target", "-")):
        with open(source, "rb") as stdin, open(target, "wb") as out:
            ours = describe(tool, [BINARY, "run", "-q", "-o", str(tool.run_file), "--force", "--"], None, stdin, stdout=out, stderr=out)
            stdin.seek(0)
            plain = describe(tool, [], None, stdin, stdout=out, stderr=out)
        assert ours["stdin"] == plain["stdin"]
        assert (plain["stdout"], ours["stdout"], ours["stderr"]) == (differs, "p", "p")


def on_a_terminal(tool, words, typed=b""):
    """Runs it in front on a terminal of its own; what it described, and what it printed."""
    parent, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, b"\x20\0\x60\0\0\0\0\0")
    path = tool.tmp / "facts.json"

    def take_terminal():
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    process = subprocess.Popen([*words, python(), str(PROGRAMS / "describe_self.py"), str(path)], stdin=terminal,
                               stdout=terminal, stderr=terminal, env=tool.env(), cwd=tool.tmp, start_new_session=True,
                               preexec_fn=take_terminal)
    os.close(terminal)
    os.write(parent, typed + b"\x04")
    assert process.wait(timeout=60) == 0
    os.close(parent)
    return json.loads(path.read_text())


def test_a_terminal_is_controlled_and_typed_at_as_without_us(tool):
    plain = on_a_terminal(tool, [], b"yes\n")
    ours = on_a_terminal(tool, [BINARY, "run", "-q", "-o", str(tool.run_file), "--"], b"yes\n")
    assert plain["stdin"][3] == "yes\n" and plain["window"] == [32, 96, 0, 0]
    for name in ("terminal", "window", "stdout", "stderr", "group is the session's"):
        assert ours[name] == plain[name], name
    assert ours["stdin"][0] == plain["stdin"][0] and ours["stdin"][3] == plain["stdin"][3]


def test_it_is_stopped_and_goes_on_with_the_terminal(tool):
    """Ctrl-Z stops training and launcher; SIGCONT to the group, as of fg, continues both."""
    process = tool.start(python(), "-c", "import time\nfor i in range(30): print(i, flush=True); time.sleep(0.05)",
                         flags=["-q"], start_new_session=True)
    training = find_helper(process.pid, os.path.basename(python()))
    helpers = [find_helper(process.pid, name) for name in HELPERS[:2]]
    # An orphaned group, as this one is, would not stop by SIGTSTP: the kernel's rule.
    for pid in (training, process.pid):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(1.6)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGCONT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and out.split() == [b"%d" % i for i in range(30)]
    assert all(gone(pid) for pid in helpers)
    assert not any(e.get("name") in ("relay", "recorder") for e in tool.export_jsonl() if e.get("event") == "source")


def test_every_deadly_signal_ends_us_the_same_way(tool):
    def work(number):
        sub = Tool(tool.tmp / str(number))
        sub.tmp.mkdir()
        words = [python(), "-c", f"import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.kill(os.getpid(), {number})"]

        def default():
            for each in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(each, signal.SIG_DFL)
        plain = subprocess.run(words, env=sub.env(), preexec_fn=default, capture_output=True, timeout=60)
        ours = sub.record(*words, flags=["-q"], preexec_fn=default)
        return number, plain.returncode, ours.returncode
    for number, plain, ours in each_at_once(work, DEADLY if EVERY_SIGNAL else SOME):
        assert ours == plain, (number, plain, ours)


def test_every_exit_code(tool):
    def work(code):
        sub = Tool(tool.tmp / str(code))
        sub.tmp.mkdir()
        return code, sub.record("sh", "-c", f"exit {code}", flags=["-q"]).returncode
    codes = range(256) if EVERY_SIGNAL else (0, 1, 2, 124, 125, 126, 127, 128, 130, 137, 143, 254, 255)
    assert all(code == ended for code, ended in each_at_once(work, codes))


FORWARDED = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT, signal.SIGCONT, signal.SIGWINCH,
             signal.SIGALRM, signal.SIGPROF, signal.SIGIO, signal.SIGURG, signal.SIGXCPU, 34, 64)


def listening(tool, *words, **options):
    process = tool.start(python(), PROGRAMS / "tell_signals.py", *words, flags=["-q"], start_new_session=True, **options)
    assert process.stdout.readline() == b"ready\n"
    find_helper(process.pid, "epm-relay")
    return process


def test_each_signal_to_the_launcher_alone_comes_once(tool):
    process = listening(tool)
    for number in FORWARDED:
        process.send_signal(number)
        assert process.stdout.readline() == b"got %d\n" % number
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert out == b"got 15\nbye\n" and process.returncode == 7


def test_a_signal_to_the_whole_group_comes_once(tool):
    """Of a shell's kill, of timeout, of a runner that ends a group."""
    process = listening(tool)
    for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGUSR2):
        os.killpg(process.pid, number)
        assert process.stdout.readline() == b"got %d\n" % number
        time.sleep(0.3)
    os.killpg(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert out == b"got 15\nbye\n" and process.returncode == 7


def signal_step(process, number):
    """As Slurm does: every process of the step, one after the other."""
    for pid in [process.pid, *(pid for pid, _ in below(process.pid))]:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def test_the_kill_sequence_of_slurm(tool):
    """--signal=USR1@..., then SIGCONT and SIGTERM to all; the checkpoint is written undisturbed and recorded."""
    process = listening(tool, 1.5)
    signal_step(process, signal.SIGUSR1)
    assert process.stdout.readline() == b"got 10\n"
    time.sleep(0.2)
    for number in (signal.SIGCONT, signal.SIGTERM):
        signal_step(process, number)
    began = time.monotonic()
    out, _ = process.communicate(timeout=30)
    assert [line for line in out.splitlines() if line != b"got 18"] == [b"got 15", b"bye"]
    assert process.returncode == 7 and 1.3 < time.monotonic() - began < 6
    assert not (tool.tmp / "run.emr.tail").exists()
    run = tool.report()["run"]
    assert run["exit"]["exit_code"] == 7 and run["duration_s"] > 1.5


def test_a_training_that_ignores_sigterm_is_ended_by_sigkill_to_all(tool):
    process = tool.start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done", flags=["-q"], start_new_session=True)
    assert process.stdout.readline() == b"ready\n"
    find_helper(process.pid, "epm-sampler")
    time.sleep(0.8)
    signal_step(process, signal.SIGTERM)
    time.sleep(0.8)
    assert process.poll() is None
    everybody = [process.pid, *(pid for pid, _ in below(process.pid))]
    signal_step(process, signal.SIGKILL)
    assert process.wait(timeout=10) == -signal.SIGKILL
    wait_until(lambda: all(gone(pid) for pid in everybody), 2)
    assert tool.report()["run"]["duration_s"] > 0.2


@pytest.mark.parametrize("wrapper", [["nohup"], ["setsid", "-w"], ["timeout", "60"], ["nice", "-n", "3"], ["env", "-i"], ["stdbuf", "-o0"]])
def test_under_other_wrappers(tool, wrapper):
    done = subprocess.run([*wrapper, BINARY, "run", "-q", "-o", str(tool.run_file), "--", "/bin/sh", "-c", "echo out; exit 3"],
                          env=tool.env(), cwd=tool.tmp, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode == 3 and done.stdout == b"out\n"
    assert tool.report()["run"]["exit"]["exit_code"] == 3


def test_timeout_ends_it_as_without_us(tool):
    words = ["timeout", "1", BINARY, "run", "-q", "-o", str(tool.run_file), "--", python(), str(PROGRAMS / "tell_signals.py")]
    done = subprocess.run(words, env=tool.env(), cwd=tool.tmp, capture_output=True, timeout=60)
    assert done.returncode == 124
    assert [line for line in done.stdout.splitlines() if line != b"got 18"] == [b"ready", b"got 15", b"bye"]
