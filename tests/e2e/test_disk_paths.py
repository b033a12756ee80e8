# SPDX-License-Identifier: Apache-2.0
"""Where a run file can't be, or is moved, deleted, replaced, on a network or wanted by two: training
goes on, one clear line says what is the matter, and two runs never mix."""
import errno
import os
import shutil
import subprocess
import time

import pytest
from conftest import BINARY
from disk_faults import FaultyTool, in_parallel, ours, recorded_steps, wait_until, without_ours

MAGICS = {"NFS": "6969", "Lustre": "0BD00BD0", "GPFS": "47504653", "SMB": "FE534D42", "FUSE": "65735546"}


def makes(kind):
    """Something at a path where no run file can be made."""
    def read_only(folder):
        (folder / "shut").mkdir()
        (folder / "shut").chmod(0o500)
        return folder / "shut" / "run.emr"

    def missing(folder):
        return "/proc/none/run.emr"

    def fifo(folder):
        os.mkfifo(folder / "run.emr")
        return folder / "run.emr"

    def file_as_folder(folder):
        (folder / "plain").write_text("x")
        return folder / "plain" / "run.emr"

    def device(folder):
        return "/dev/full"
    return {"read-only folder": read_only, "missing folder": missing, "FIFO": fifo, "file as folder": file_as_folder,
            "device": device}[kind]


@pytest.mark.parametrize("kind", ["read-only folder", "missing folder", "FIFO", "file as folder", "device"])
def test_where_no_file_can_be_the_training_runs_unrecorded(tmp_path, kind):
    tool = FaultyTool(tmp_path, *(["create .emr 0 * EACCES"] if kind == "read-only folder" else []))
    tool.run_file = makes(kind)(tmp_path)
    done = tool.record("sh", "-c", "echo out; echo err >&2; exit 5")
    assert done.returncode == 5 and done.stdout == b"out\n" and without_ours(done.stderr) == b"err\n"
    said = ours(done.stderr)
    assert len([line for line in said if "without recording" in line or "unrecorded" in line]) == 1, said
    assert len(said) == 1, said


def test_a_folder_as_path_gets_a_file_of_the_runs_own_name(tmp_path):
    tool = FaultyTool(tmp_path)
    (tmp_path / "runs").mkdir()
    tool.run_file = tmp_path / "runs"
    assert tool.record("sh", "-c", "exit 5").returncode == 5
    assert len(list((tmp_path / "runs").glob("*.emr"))) == 1


def test_a_read_only_mount_is_said_once(tmp_path):
    tool = FaultyTool(tmp_path, "create * 0 * EROFS")
    done = tool.record("sh", "-c", "exit 5")
    assert done.returncode == 5 and len(ours(done.stderr)) == 1
    assert "Read-only file system" in ours(done.stderr)[0] and not tool.run_file.exists()


def check_network(folder, name):
    tool = FaultyTool(folder, f"magic * 0 * magic={MAGICS[name]}")
    assert tool.record(*tool.steps(5, 0.01, 2, 3)).returncode == 3
    data = tool.report()
    assert data["run"]["attributes"]["run_folder_file_system"] == name
    assert recorded_steps(tool.export_jsonl()) == set(range(1, 11))
    doctor = tool.call("doctor", "--no-gpu", "--dir", folder)
    assert f"the folder of runs is on {name}".encode() in doctor.stdout, doctor.stdout


def test_network_file_systems_are_named_and_work(tmp_path):
    in_parallel(lambda name: check_network(tmp_path / name, name), MAGICS)


@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP"])
def test_without_locks_recording_goes_on_and_says_so(tmp_path, error):
    tool = FaultyTool(tmp_path, f"lock * 0 * {error}")
    done = tool.record(*tool.steps(5, 0.01, 2, 3))
    assert done.returncode == 3
    assert any("has no locks" in line for line in ours(done.stderr)), done.stderr
    data = tool.report()
    assert [(loss["kind"], loss["severity"]) for loss in data["losses"]] == [("recorder.no_lock", "info")]
    assert recorded_steps(tool.export_jsonl()) == set(range(1, 11))


def test_a_file_server_that_forgot_the_open_files_is_survived(tmp_path):
    """Each call on the open files is ESTALE until they are opened anew; so is a rename for a while."""
    tool = FaultyTool(tmp_path, "write .tail 4 2 ESTALE", "sync .tail 9 1 ESTALE", "rename * 0 2 ESTALE")
    done = tool.record(*tool.steps(5, 0.02, 20, 3))
    assert done.returncode == 3
    assert recorded_steps(tool.export_jsonl()) == set(range(1, 101))
    calls = tool.calls()
    stale = [c for c in calls if c.done == -errno.ESTALE]
    assert {c.kind for c in stale} == {"write", "sync", "rename"}
    reopened = [c for c in calls if c.kind == "open" and c.done > 0 and c.path.endswith(".tail")
                and c.t_ns > stale[0].t_ns]
    assert reopened, "the files were opened anew"
    assert not [loss for loss in tool.report()["losses"] if loss["severity"] != "info"]


STEPS = 30


def begin(tool):
    process = tool.start(*tool.steps(STEPS, 0.1, 1, 3), flags=["-q"])
    wait_until(lambda: any(c.wrote_all() and c.path.endswith(".tail") for c in tool.calls()))
    return process


def test_a_second_writer_is_refused_and_writes_nothing(tmp_path):
    tool = FaultyTool(tmp_path)
    process = begin(tool)
    before = tool.run_file.read_bytes()
    second = FaultyTool(tmp_path / "second")
    second.run_file = tool.run_file
    for flags, word in (([], b"--force"), (["--force"], b"written by another process")):
        done = second.record("sh", "-c", "exit 7", flags=flags)
        assert done.returncode == 7 and word in done.stderr and len(ours(done.stderr)) == 1, done.stderr
    assert [c for c in second.calls() if c.kind == "write"] == []
    recover = second.call("recover", tool.run_file, env=second.plain_env())
    assert recover.returncode != 0 and b"another process" in recover.stderr
    assert tool.run_file.read_bytes() == before
    assert process.wait(timeout=30) == 3
    assert recorded_steps(tool.export_jsonl()) == set(range(1, STEPS + 1))


def test_the_same_run_id_on_two_hosts_gives_two_files(tmp_path):
    """As with one SLURM job on two nodes and one shared folder: the paths differ or creation decides."""
    def one(host):
        tool = FaultyTool(tmp_path / host)
        tool.run_file = tmp_path / "shared.emr"
        return tool, tool.record(*tool.steps(5, 0.02, 2, 3), flags=["--name", "same"])
    results = in_parallel(one, ["a", "b"])
    assert [done.returncode for _, done in results] == [3, 3]
    refused = [done for _, done in results if b"without recording" in done.stderr]
    assert len(refused) == 1
    assert recorded_steps(results[0][0].export_jsonl()) == set(range(1, 11))
    assert not results[0][0].report()["losses"]


def check_path(tmp_path, how):
    tool = FaultyTool(tmp_path)
    (tmp_path / "in").mkdir()
    tool.run_file = tmp_path / "in" / "run.emr"
    process = begin(tool)
    if how == "folder renamed":
        (tmp_path / "in").rename(tmp_path / "to")
        tool.run_file = tmp_path / "to" / "run.emr"
        assert process.wait(timeout=30) == 3
        assert list((tmp_path / "to").glob("run.emr.*")) == []
        assert recorded_steps(tool.export_jsonl()) == set(range(1, STEPS + 1))
        return
    tool.run_file.unlink()
    other = FaultyTool(tmp_path / "other")
    other.run_file = tool.run_file
    if how == "file replaced":
        assert other.record(*other.steps(5, 0.02, 2, 8)).returncode == 8
    _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert any("no longer at its path" in line for line in ours(err)), err
    if how == "file replaced":
        assert recorded_steps(other.export_jsonl()) == set(range(1, 11)), "the new run and nothing else"
        assert not other.report()["losses"]
    else:
        steps = recorded_steps(tool.export_jsonl())
        assert steps == set(range(1, STEPS + 1)), "its tail still has all"


def test_no_path_mixes_runs(tmp_path):
    hows = ["folder renamed", "file deleted", "file replaced"]
    in_parallel(lambda item: check_path(tmp_path / str(item[0]), item[1]), list(enumerate(hows)))


def test_readers_without_rights_or_with_half_of_the_files(tmp_path):
    tool = FaultyTool(tmp_path / "live")
    process = begin(tool)
    time.sleep(1)
    for name, keep in (("both", ["run.emr", "run.emr.tail"]), ("main alone", ["run.emr"]), ("tail alone", ["run.emr.tail"])):
        copy = tmp_path / name
        copy.mkdir()
        for file in keep:
            shutil.copy(tool.tmp / file, copy / file)
            (copy / file).chmod(0o444)
        copy.chmod(0o555)
        reader = FaultyTool(tmp_path / ("reader of " + name), "create * 0 * EROFS", "write * 0 * EROFS", "lock * 0 * EROFS")
        data = reader.report(copy / "run.emr")
        kinds = {loss["kind"] for loss in data["losses"]}
        assert kinds == {"both": set(), "main alone": {"file.cut"}, "tail alone": {"file.missing_main"}}[name]
        steps = recorded_steps(reader.export_jsonl(copy / "run.emr"))
        assert (len(steps) > 3) == (name != "main alone")
    assert process.wait(timeout=30) == 3


def test_a_reader_that_stands_still_never_holds_the_writer(tmp_path):
    """It has the file open and is stopped; the writer takes no notice."""
    tool = FaultyTool(tmp_path)
    process = begin(tool)
    pinned = [open(tool.run_file, "rb"), open(tool.tmp / "run.emr.tail", "rb")]
    pinned[1].read(100)
    stopped = subprocess.Popen([BINARY, "export", str(tool.run_file), "-f", "jsonl"], stdout=subprocess.PIPE,
                               env=tool.plain_env())
    stopped.send_signal(19)
    try:
        assert process.wait(timeout=30) == 3
        calls = [c for c in tool.calls() if c.path.endswith(".tail")]
        waits = [b.t_ns - a.t_ns for a, b in zip(calls, calls[1:]) if (a.kind, b.kind) == ("write", "sync")]
        assert len(waits) > 3 and max(waits) < 1e9
        assert recorded_steps(tool.export_jsonl()) == set(range(1, STEPS + 1))
        locks = [c for c in tool.calls() if c.kind == "lock"]
        assert len(locks) == 1, "one lock at the start, which no reader takes"
    finally:
        stopped.kill()
        stopped.communicate()
        for file in pinned:
            file.close()
