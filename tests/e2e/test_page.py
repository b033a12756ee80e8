# SPDX-License-Identifier: Apache-2.0
"""The report page in a real browser: pages of recordings and of runs that never were (web/test)."""
import json
import pathlib
import shutil
import subprocess

import pytest

from conftest import BINARY, ROOT, SHARED, clean_env

WEB = ROOT / "web"
RECORDINGS = ["healthy", "oom", "straggler", "data_starved"]
KINDS = ["big", "hostile", "ranks", "empty", "one", "fine"]
CASES = ["language", "brush", "proof", "keyboard", "axes", "paper", "log", "unknown"]
AXE = [f"axe {kind} {look}" for kind in ["big", "hostile", "fine", "empty"] for look in ["light", "dark"]]
READY_LIMIT_MS = 1500
# A busy machine may be slow; thrice the limit is a page that got slow.
READY_SLACK = 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def chromium():
    return next((path for name in ["chromium", "chromium-browser", "google-chrome"]
                 if (path := shutil.which(name))), None)


def recording_page(folder: pathlib.Path, name: str) -> pathlib.Path:
    run, page = folder / f"{name}.emr", folder / f"recording-{name}.html"
    for words in (["import", "recording", SHARED / "recordings" / name, "-o", run],
                  ["report", run, "-f", "html", "-o", page]):
        done = subprocess.run([BINARY, *map(str, words)], env=clean_env(folder), cwd=folder,
                              capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
    return page


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """What the browser found, by case. All cases run in one browser, one after another."""
    if not shutil.which("node"):
        pytest.skip("node is not installed: run tools/setup")
    if not (WEB / "node_modules" / "playwright-core").is_dir():
        pytest.skip("web/node_modules is absent: run tools/setup, or npm ci in web/")
    if not chromium():
        pytest.skip("chromium is not installed: run tools/setup")
    folder = tmp_path_factory.mktemp("page")
    pages = [recording_page(folder, name) for name in RECORDINGS
             if (SHARED / "recordings" / name).is_dir()]
    env = clean_env(folder, EPOCHMETER_CHROMIUM=chromium())
    done = subprocess.run(["node", str(WEB / "test" / "run.mjs"), str(folder), *map(str, pages)], env=env,
                          capture_output=True, text=True, timeout=1100)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0 and found, done.stderr
    return {one["case"]: one for one in found}


@pytest.mark.parametrize("kind", KINDS)
def test_page_of_made_run_is_quiet_and_asks_no_network(results, kind):
    check_page(results, f"page {kind}")


@pytest.mark.parametrize("name", RECORDINGS)
def test_page_of_recording_is_quiet_and_asks_no_network(results, name):
    if not (SHARED / "recordings" / name).is_dir():
        pytest.skip(f"no recording {name} in {SHARED}")
    check_page(results, f"page recording-{name}")


def check_page(results, case):
    found = results[case]
    assert found["failures"] == []
    ratio = found["ready_ms"] / READY_LIMIT_MS
    print(f"{case}: interactive after {found['ready_ms']} ms, {ratio:.2f} of the limit")
    assert ratio <= READY_SLACK


@pytest.mark.parametrize("case", CASES)
def test_page_can_be_worked_with(results, case):
    assert results[case]["failures"] == []


@pytest.mark.parametrize("case", AXE)
def test_page_has_no_serious_accessibility_fault(results, case):
    assert results[case]["failures"] == []


def test_committed_page_is_what_its_sources_make():
    if not (WEB / "node_modules" / "esbuild").is_dir():
        pytest.skip("web/node_modules is absent: run tools/setup, or npm ci in web/")
    done = subprocess.run([str(ROOT / "tools" / "check-web")], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
