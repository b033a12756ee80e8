# SPDX-License-Identifier: Apache-2.0
"""`report -f html,svg,png`: what comes out can be read, and what can't be made says why."""
import base64
import gzip
import json
import os
import pty
import re
import shutil
import subprocess
import xml.etree.ElementTree

import pytest

from conftest import BINARY, Tool

STEPS = """
import epochmeter, time
for step in epochmeter.steps(range(5), epoch=0):
    time.sleep(0.01)
    epochmeter.log(loss=1.0 / (step + 1))
print("saved to /home/ann/model with password=hunter22")
"""


@pytest.fixture(scope="module")
def tool(tmp_path_factory):
    tool = Tool(tmp_path_factory.mktemp("pictures"))
    script = tool.tmp / "train.py"
    script.write_text(STEPS)
    done = tool.record("python3", script)
    assert done.returncode == 0, done.stderr.decode()
    return tool


def payload_of(page):
    found = re.search(r'<script id="epm-payload" type="application/octet-stream">([A-Za-z0-9+/=]+)</script>', page)
    return json.loads(gzip.decompress(base64.b64decode(found.group(1))))


def test_the_page_holds_the_run_without_secrets(tool):
    done = tool.call("report", tool.run_file, "-f", "html", "--lang", "zh")
    assert done.returncode == 0, done.stderr.decode()
    payload = payload_of(done.stdout.decode())
    assert payload["payload_version"] == 1 and payload["lang"] == "zh"
    assert payload["report"]["data"]["run"]["run_id"]
    steps = payload["ranks"][0]["steps"]
    assert steps["count"] == 5 and len(steps["scalars"]["loss"]["v"]) == 5
    assert any(line["text"].startswith("saved to ~/model") for line in payload["log"])
    assert "hunter22" not in json.dumps(payload) and "secret" in payload["redacted"]
    kept = payload_of(tool.call("report", tool.run_file, "-f", "html", "--no-redact").stdout.decode())
    assert "hunter22" in json.dumps(kept)


def test_pictures_are_valid_and_named(tool):
    for chart in ("trend", "loss", "step_time", "host_cpu"):
        done = tool.call("report", tool.run_file, "-f", "svg", "--chart", chart, "--theme", "dark")
        assert done.returncode == 0, done.stderr.decode()
        root = xml.etree.ElementTree.fromstring(done.stdout)
        assert root.tag.endswith("svg") and root.find("{*}title") is not None
    done = tool.call("report", tool.run_file, "-f", "svg", "--chart", "lost")
    assert done.returncode == 2 and b"did you mean loss" in done.stderr and b"trend" in done.stderr
    for wrong in (("--x", "miles"), ("--theme", "blue")):
        assert tool.call("report", tool.run_file, "-f", "svg", *wrong).returncode == 2
    assert tool.call("report", tool.run_file, "-f", "html", "--max-size", "3").returncode == 2


def test_a_png_needs_rsvg_convert_and_says_so(tool):
    done = tool.call("report", tool.run_file, "-f", "png", env=tool.env(PATH="/nowhere"))
    assert done.returncode == 3 and b"librsvg2-bin" in done.stderr
    if shutil.which("rsvg-convert") is None:
        pytest.skip("rsvg-convert is not installed")
    done = tool.call("report", tool.run_file, "-f", "png")
    assert done.returncode == 0 and done.stdout.startswith(b"\x89PNG\r\n")


def test_a_terminal_gets_a_hint_instead_of_a_page(tool):
    ours, theirs = pty.openpty()
    done = subprocess.run([BINARY, "report", str(tool.run_file), "-f", "html"], stdout=theirs,
                          stderr=subprocess.PIPE, env=tool.env(), timeout=60, check=False)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2 and b"-o run.html" in done.stderr
