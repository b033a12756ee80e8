# SPDX-License-Identifier: Apache-2.0
"""`log --threads`: what is found does not depend on how many threads read."""
import json
import subprocess

import pytest
from conftest import BINARY, ROOT, clean_env

LOGS = ROOT / "tests" / "logs"
NAMES = ["ppdet_ppyoloe.log", "custom_traceback_end.log", "custom_utf16.log", "wrap_cri_parts.log",
         "keras2_bars.log", "zero_nccl_info.log"]


def read(tmp_path, paths, threads):
    done = subprocess.run([BINARY, "log", *map(str, paths), "--json", "--threads", str(threads)],
                          capture_output=True, text=True, timeout=60, env=clean_env(tmp_path), cwd=tmp_path)
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_two_threads_tell_what_one_tells(tmp_path, name):
    code, one = read(tmp_path, [LOGS / name], 1)
    assert code == 0 and json.loads(one)["data"]["lines"] > 0
    assert read(tmp_path, [LOGS / name], 2) == (0, one)


def test_several_logs_of_one_job_are_read_alike(tmp_path):
    paths = [LOGS / name for name in NAMES]
    code, one = read(tmp_path, paths, 1)
    assert code == 0 and json.loads(one)["data"]["records"] > 0
    assert read(tmp_path, paths, 2) == (0, one)


@pytest.mark.parametrize("threads", ["0", "3", "two"])
def test_other_numbers_of_threads_are_refused(tmp_path, threads):
    code, printed = read(tmp_path, [LOGS / NAMES[0]], threads)
    assert code == 2 and "threads" in printed
