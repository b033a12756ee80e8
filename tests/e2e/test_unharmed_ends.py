# SPDX-License-Identifier: Apache-2.0
"""Our processes end with their job, in strange surroundings too, and leave nothing behind.

EPOCHMETER_LEAK_RUNS sets the runs of the search for leaks (10 here, 1,000 in the long form).
"""
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

import pytest
from conftest import BINARY, PROGRAMS, children, find_helper, python
from unharmed import HELPERS, below, each_at_once, gone, wait_until

LEAK_RUNS = int(os.environ.get("EPOCHMETER_LEAK_RUNS", "10"))
MOST_AFTER_THE_JOB_S = 2.0


def helpers_of(process):
    return [find_helper(process.pid, name) for name in HELPERS]


def seconds_until_gone(pids, most=10.0):
    began = time.monotonic()
    wait_until(lambda: all(gone(pid) for pid in pids), most, f"{pids} to end")
    return time.monotonic() - began


def test_a_recorder_that_is_stopped_for_ever_is_replaced_and_loses_what_it_had_in_hand_only(tool):
    process = tool.start(python(), PROGRAMS / "steps.py", 250, 0.02, 1, 9, flags=["-q"],
                         env=tool.env(STEPS_LOG=str(tool.tmp / "steps.log")))
    recorder = find_helper(process.pid, "epm-recorder")
    time.sleep(1.0)
    os.kill(recorder, signal.SIGSTOP)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 9 and len(out.splitlines()) == 250 and gone(recorder)
    lines = tool.export_jsonl()
    replaced = [e for e in lines if e.get("event") == "source" and e.get("name") == "recorder"]
    assert len(replaced) == 1 and "stood still" in replaced[0]["fields"]["detail"]
    assert 0.5 < replaced[0]["fields"]["away_s"] < 8
    losses = {loss["kind"]: loss["count"] for loss in tool.report()["losses"]}
    steps = sum(1 for e in lines if e.get("event") == "step")
    missing = 250 - steps
    assert "recorder.restarted" in losses
    # Dropped by the client, or taken by the recorder before and never written.
    counted = losses.get("client.dropped", 0) + losses.get("recorder.events_lost", 0) + losses.get("client.sequence_gap", 0)
    assert missing < 200 and counted >= missing, (missing, losses)
    assert max(e["step"] for e in lines if e.get("event") == "step") == 250


def test_a_recorder_that_is_stopped_right_before_the_end_is_replaced_too(tool):
    process = tool.start("sh", "-c", "sleep 1; exit 4", flags=["-q"])
    recorder = find_helper(process.pid, "epm-recorder")
    time.sleep(0.7)
    os.kill(recorder, signal.SIGSTOP)
    process.communicate(timeout=30)
    assert process.returncode == 4
    assert seconds_until_gone([recorder]) < 1
    run = tool.report()["run"]
    assert run["exit"]["exit_code"] == 4
    assert not (tool.tmp / "run.emr.tail").exists()


def test_a_daemon_that_the_training_leaves_behind_does_not_keep_us(tool):
    for redirect in (">/dev/null 2>&1 </dev/null", ""):
        tool.run_file = tool.tmp / f"run{len(redirect)}.emr"
        with open(tool.tmp / "out", "wb") as out:
            process = tool.start("sh", "-c", f"setsid sleep 6 {redirect} & sleep 1.2; exit 5", flags=["-q"], stdout=out, stderr=out)
            helpers = helpers_of(process)
            assert process.wait(timeout=20) == 5
        relay, *others = helpers
        assert seconds_until_gone(others) < MOST_AFTER_THE_JOB_S
        if redirect:
            assert seconds_until_gone([relay]) < MOST_AFTER_THE_JOB_S
        assert tool.report(tool.run_file)["run"]["exit"]["exit_code"] == 5


@pytest.mark.parametrize("stopped", [False, True])
def test_the_launcher_killed(tool, stopped):
    process = tool.start("sleep", 30, flags=["-q"])
    helpers = helpers_of(process)
    training = find_helper(process.pid, "sleep")
    time.sleep(0.8)
    if stopped:
        for pid in helpers:
            os.kill(pid, signal.SIGSTOP)
    process.kill()
    process.wait()
    assert seconds_until_gone([training, *helpers]) < MOST_AFTER_THE_JOB_S + 0.5
    assert tool.report()["run"]["exit"]["reason"] == "lost"
    assert not list((tool.tmp / "sockets").rglob("*.sock"))


def test_a_stderr_that_nobody_reads_holds_neither_the_end_nor_the_file(tool):
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    try:
        while True:
            os.write(write_end, b"x" * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(write_end, True)
    process = tool.start("sh", "-c", "sleep 1.2; exit 6", stderr=write_end)
    helpers = helpers_of(process)
    began = time.monotonic()
    assert process.wait(timeout=20) == 6
    assert time.monotonic() - began < 1.2 + MOST_AFTER_THE_JOB_S
    assert seconds_until_gone(helpers) < MOST_AFTER_THE_JOB_S
    assert tool.report()["run"]["exit"]["exit_code"] == 6
    assert not (tool.tmp / "run.emr.tail").exists()
    os.close(read_end)
    os.close(write_end)


def can_unshare():
    return subprocess.run(["unshare", "-rpf", "--mount-proc", "true"], capture_output=True).returncode == 0


needs_namespaces = pytest.mark.skipif(not can_unshare(), reason="namespaces can't be made here")


@needs_namespaces
def test_as_the_first_process_of_a_container(tool):
    """Orphans are reaped, a death by signal is 128+S, and all output is out before the end ends everything."""
    script = "(setsid sleep 0.3 &) ; (sleep 0.1; exit 3) & sleep 1; ps -eo stat,comm | grep -c '^Z'; echo last; kill -9 $$"
    process = subprocess.Popen(["unshare", "-rpf", "--mount-proc", BINARY, "run", "-q", "-o", str(tool.run_file), "--", "sh", "-c", script],
                               env=tool.env(), cwd=tool.tmp, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + 9, err
    assert out.split() in ([b"0", b"last"], [b"1", b"last"]), out
    assert tool.report()["run"]["exit"]["signal"] == 9


@needs_namespaces
def test_sigterm_to_a_container_reaches_the_training(tool):
    """As Kubernetes does: SIGTERM to the first process, and time for a farewell."""
    process = subprocess.Popen(["unshare", "-rpf", "--kill-child", "--mount-proc", BINARY, "run", "-q", "-o", str(tool.run_file), "--",
                                python(), str(PROGRAMS / "tell_signals.py"), "1"],
                               env=tool.env(), cwd=tool.tmp, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    launcher = children(process.pid)[0][0]
    os.kill(launcher, signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert out == b"got 15\nbye\n" and process.returncode == 7
    assert tool.report()["run"]["exit"]["exit_code"] == 7


def make_root(folder):
    """A root folder with our program, a shell and their libraries, and nothing else."""
    programs = [BINARY, shutil.which("sh")]
    for program in programs:
        for word in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.split():
            if word.startswith("/"):
                target = folder / word.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists():
                    shutil.copy(word, target)
    (folder / "bin").mkdir(exist_ok=True)
    shutil.copy(BINARY, folder / "bin" / "epochmeter")
    shutil.copy(shutil.which("sh"), folder / "bin" / "sh")
    (folder / "work").mkdir()


@needs_namespaces
def test_without_proc_sys_dev_and_tmp(tool):
    root = tool.tmp / "root"
    root.mkdir()
    make_root(root)
    done = subprocess.run(["unshare", "-r", shutil.which("chroot") or "/usr/sbin/chroot", str(root), "/bin/epochmeter", "run", "-o", "/work/run.emr", "--", "/bin/sh", "-c",
                           "echo out; echo err >&2; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 3"],
                          env={"PATH": "/bin"}, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    assert (done.returncode, done.stdout) == (3, b"out\n") and b"err\n" in done.stderr, done
    if (root / "work" / "run.emr").exists():
        assert tool.report(root / "work" / "run.emr")["run"]["exit"]["exit_code"] == 3


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_with_closed_standard_descriptors(tool, closed):
    script = f"{BINARY} run -o {tool.run_file} -- sh -c 'ls -l /proc/self/fd > fds; exit 6' {closed}"
    plain = subprocess.run(["bash", "-c", f"sh -c 'ls -l /proc/self/fd > fds; exit 6' {closed}"], cwd=tool.tmp, env=tool.env(), timeout=60)
    before = [line.split()[8] for line in (tool.tmp / "fds").read_text().splitlines()[1:]]
    done = subprocess.run(["bash", "-c", script], cwd=tool.tmp, env=tool.env(), timeout=60)
    after = [line.split()[8] for line in (tool.tmp / "fds").read_text().splitlines()[1:]]
    assert done.returncode == plain.returncode == 6 and before == after
    assert tool.report()["run"]["exit"]["exit_code"] == 6


def test_with_nowhere_to_write(tool):
    """No home, no folder for temporary files or sockets, a working folder that can't be written to."""
    for extra in ({"HOME": "/nowhere", "TMPDIR": "/nowhere", "XDG_RUNTIME_DIR": "/nowhere"}, {"TMPDIR": "/proc", "XDG_RUNTIME_DIR": "/proc"}):
        env = {k: v for k, v in tool.env().items() if k != "HOME"}
        env.update(extra)
        done = subprocess.run([BINARY, "run", "--", "sh", "-c", "echo out; exit 3"], cwd="/proc", env=env, capture_output=True, timeout=60)
        assert (done.returncode, done.stdout) == (3, b"out\n") and b"epochmeter: " in done.stderr


def listing(tool):
    """What a run could leave: our files, sockets and processes."""
    ours = set()
    for folder in (tool.tmp, pathlib.Path("/dev/shm")):
        ours |= {str(path) for path in folder.rglob("*") if path.suffix != ".emr"}
    ours |= {path for path in os.listdir("/tmp") if "epochmeter" in path}
    unix = pathlib.Path("/proc/net/unix").read_text().splitlines()
    ours |= {line.split()[-1] for line in unix if str(tool.tmp) in line or "@epochmeter" in line}
    return ours


def of_this_test(tool):
    """Processes with this test's folder in their environment."""
    mark, found = str(tool.tmp).encode(), set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if mark in pathlib.Path("/proc", entry, "environ").read_bytes():
                    found.add(int(entry))
            except OSError:
                pass
    return found


def test_nothing_is_left_of_many_runs(tool):
    tool.record("true", flags=["-q"])
    before, descriptors = listing(tool), set(os.listdir("/proc/self/fd"))

    def work(number):
        words = [BINARY, "run", "-q", "-o", str(tool.tmp / f"{number}.emr"), "--", "sh", "-c", f"sleep 0.0{number % 7}; exit {number % 256}"]
        process = subprocess.Popen(words, env=tool.env(TMPDIR=str(tool.tmp)), cwd=tool.tmp)
        if number % 5 == 4:  # a killed launcher, and sometimes its recorder with it
            time.sleep(0.02 * (number % 7))
            victims = [process.pid, *(pid for pid, name in below(process.pid) if name == "epm-recorder" and number % 2)]
            for pid in victims:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        return number, process.wait(timeout=60)
    for number, code in each_at_once(work, range(LEAK_RUNS), 4):
        assert code == number % 256 or (number % 5 == 4 and code == -signal.SIGKILL)
    wait_until(lambda: not of_this_test(tool), 5, "the processes of all runs to end")
    left = listing(tool) - before
    stale = {path for path in left if path.endswith(".sock")}
    tails = {path for path in left if ".emr.tail" in path}  # what a later reader, or run, needs
    assert left - stale - tails == set()
    killed = {str(number) for number in range(LEAK_RUNS) if number % 5 == 4 and number % 2}
    assert {pathlib.Path(path).name.split(".")[0] for path in tails} <= killed, "of recorders that were killed only"
    tool.run_file = tool.tmp / "after.emr"
    assert tool.record("true", flags=["-q"]).returncode == 0
    assert {path for path in listing(tool) - before if path.endswith(".sock")} == set(), "the next run cleans up"
    assert set(os.listdir("/proc/self/fd")) == descriptors
    print(f"{LEAK_RUNS} runs: {len(stale)} stale sockets removed by the next run, {len(tails)} tails of killed recorders, nothing else")


def test_several_runs_of_one_job_on_one_node_keep_apart(tool):
    """mpirun -n 8 epochmeter run -- ...: a file for each rank, named after it."""
    def work(rank):
        env = tool.env(OMPI_COMM_WORLD_RANK=str(rank), OMPI_COMM_WORLD_LOCAL_RANK=str(rank), OMPI_COMM_WORLD_SIZE="8", SLURM_JOB_ID="77")
        return tool.call("run", "-q", "--", python(), PROGRAMS / "steps.py", 5, 0.01, 1, rank, env=env).returncode
    assert each_at_once(work, range(8), 8) == list(range(8))
    files = sorted((tool.tmp / "epochmeter-runs").glob("*.emr"))
    assert len(files) == 8 and not list((tool.tmp / "epochmeter-runs").glob("*.tail"))
    for rank in range(8):
        mine = [path for path in files if f"-rank{rank}-" in path.name]
        assert len(mine) == 1
        data = tool.report(mine[0])
        assert data["run"]["exit"]["exit_code"] == rank
        assert sum(row["steps"] for row in data["epochs"]) == 5


def test_several_runs_that_were_told_the_same_file_do_not_mix(tool):
    def work(rank):
        return tool.record(python(), PROGRAMS / "steps.py", 5, 0.01, 1, rank, flags=["-q"])
    done = each_at_once(work, range(4), 4)
    assert [each.returncode for each in done] == list(range(4))
    refused = [each for each in done if b"without recording" in each.stderr]
    assert len(refused) == 3, [each.stderr for each in done]
    data = tool.report()
    assert sum(row["steps"] for row in data["epochs"]) == 5


def test_a_run_whose_parts_are_all_killed_at_once_says_what_it_was(tool):
    process = tool.start("sleep", 5)
    recorder = find_helper(process.pid, "epm-recorder")
    wait_until(lambda: b"sleep 5" in tool.call("summary", tool.run_file).stdout, 0.4, "the run to be on disk")
    os.kill(recorder, signal.SIGKILL)
    process.kill()
    process.communicate(timeout=20)
    assert b"sleep 5" in tool.call("report", tool.run_file).stdout


def test_a_recorder_that_dies_young_leaves_the_start_of_the_run_to_its_successor(tool):
    began = time.time()
    process = tool.start("sleep", 2)
    os.kill(find_helper(process.pid, "epm-recorder"), signal.SIGKILL)
    process.communicate(timeout=20)
    assert process.returncode == 0
    assert 1.9 <= tool.report()["run"]["duration_s"] <= time.time() - began


def test_where_sockets_cannot_be_had_another_folder_is_taken(tool):
    for runtime in ("/proc", str(tool.tmp / ("x" * 120))):
        done = tool.record("true", env=tool.env(XDG_RUNTIME_DIR=runtime, TMPDIR=runtime), flags=["--force"])
        assert done.returncode == 0 and b"without recording" not in done.stderr, done.stderr


def test_a_training_that_could_not_be_started_by_us_has_no_exit_code_on_record(tool):
    done = tool.record("sh", "-c", "exit 4", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)))
    assert done.returncode == 4
    if b"running without recording" in done.stderr and tool.run_file.exists():
        assert tool.report()["run"]["exit"].get("exit_code") is None
