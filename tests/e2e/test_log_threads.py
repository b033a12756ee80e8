# SPDX-License-Identifier: Apache-2.0
"""`log --threads`: what is found does not depend on how many threads read."""
import json
import subprocess

import pytest
from conftest import BINARY, ROOT, clean_env

LOGS = ROOT / "tests" / "logs"
NAMES = ["ppdet_ppyoloe.log", "custom_traceback_end.log", "custom_utf16.log", "wrap_cri_parts.log",
         "keras2_bars.log", "zero_nccl_info.log"]


def read(paths, threads):
    done = subprocess.run([BINARY, "log", *map(str, paths), "--json", "--threads", str(threads)],
                          capture_output=True, text=True, timeout=60, env=clean_env())
    return done.returncode, done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_two_threads_tell_what_one_tells(name):
    code, one = read([LOGS / name], 1)
    assert code == 0 and json.loads(one)["data"]["lines"] > 0
    assert read([LOGS / name], 2) == (0, one)


def test_several_logs_of_one_job_are_read_alike():
    paths = [LOGS / name for name in NAMES]
    code, one = read(paths, 1)
    assert code == 0 and json.loads(one)["data"]["records"] > 0
    assert read(paths, 2) == (0, one)


@pytest.mark.parametrize("threads", ["0", "3", "two"])
def test_other_numbers_of_threads_are_refused(threads):
    code, printed = read([LOGS / NAMES[0]], threads)
    assert code == 2 and "threads" in printed
