# SPDX-License-Identifier: Apache-2.0
"""The folder that `epochmeter run` puts on PYTHONPATH must not be noticed by the training."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import List

import pytest

from client_support import BOOTSTRAP, PACKAGE_HOLDER, FakeRecorder, run_python

SHOW = """
import sys, os, json
import encodings
site = sys.modules.get("sitecustomize")
print(json.dumps({
    "path": sys.path, "site": getattr(site, "__file__", None),
    "hook": sys.excepthook is sys.__excepthook__,
    "modules": sorted(
        m for m in sys.modules if "epochmeter" in m or "sitecustomize" in m or m == "_watch"),
    "argv": sys.argv, "value": getattr(site, "VALUE", None),
}))
"""


def pythons() -> List[str]:
    found = [sys.executable]
    system = shutil.which("python3", path="/usr/bin")
    if system:
        found.append(system)
    return found


@pytest.mark.parametrize("python", pythons())
def test_the_search_path_stays_as_it_is(recorder: FakeRecorder, python: str) -> None:
    plain = run_python(SHOW, holder=False, python=python)
    done = run_python(SHOW, recorder.path, bootstrap=True, python=python)
    assert (done.stdout, done.stderr) == (plain.stdout, "")
    assert recorder.events() == []


@pytest.mark.parametrize("python", pythons())
def test_start_of_python_loads_nothing_that_takes_time(recorder: FakeRecorder, python: str) -> None:
    # Every Python of a job pays for it, also each of its data workers.
    script = "import sys; print(*sys.modules)"
    plain = set(run_python(script, holder=False, python=python).stdout.split())
    done = set(run_python(script, recorder.path, bootstrap=True, python=python).stdout.split())
    # The last is what importlib itself imports.
    ours = {"__future__", "importlib", "importlib.machinery", "importlib._bootstrap", "warnings"}
    ours.add("importlib._bootstrap_external")
    assert done - plain <= ours


HEAVY = {
    "asyncio", "concurrent.futures", "ctypes", "dataclasses", "decimal", "email", "http", "logging",
    "multiprocessing", "pathlib", "pickle", "shutil", "ssl", "tempfile", "unittest", "urllib",
}  # fmt: skip


def test_what_a_step_needs_loads_no_heavy_part_of_the_library(recorder: FakeRecorder) -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        "import epochmeter\n"
        "for _ in epochmeter.steps(range(3)): epochmeter.log(loss=0.5)\n"
        "print(*(set(sys.modules) - before))"
    )
    loaded = set(run_python(script, recorder.path).stdout.split())
    assert "epochmeter._sender" in loaded and not loaded & HEAVY


def test_users_own_sitecustomize_is_loaded_as_if_we_were_not_there(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    import json

    (tmp_path / "sitecustomize.py").write_text("VALUE = __name__\n")
    plain = json.loads(run_python(SHOW, holder=False, PYTHONPATH=str(tmp_path)).stdout)
    done = run_python(SHOW, recorder.path, bootstrap=True, PYTHONPATH=str(tmp_path))
    seen = json.loads(done.stdout)
    assert seen["value"] == plain["value"] == "sitecustomize"
    assert seen["site"] == plain["site"] == str(tmp_path / "sitecustomize.py")


@pytest.mark.parametrize("text", ["raise ValueError('theirs')", "import nowhere_at_all", "1 +"])
def test_fault_in_users_sitecustomize_stays_the_users(
    recorder: FakeRecorder, tmp_path: Path, text: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(text + "\n")
    plain = run_python("print(1)", holder=False, PYTHONPATH=str(tmp_path))
    done = run_python("print(1)", recorder.path, bootstrap=True, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (
        plain.returncode,
        plain.stdout,
        plain.stderr,
    )


@pytest.mark.parametrize("environment", [{"EPOCHMETER": "0"}, {"EPOCHMETER": "maybe"}])
def test_switched_off_leaves_not_even_a_path(recorder: FakeRecorder, environment: dict) -> None:
    plain = run_python(SHOW, holder=False)
    done = run_python(SHOW, recorder.path, bootstrap=True, **environment)
    assert (done.stdout, done.stderr) == (plain.stdout, "")


def test_without_a_recorder_nothing_happens() -> None:
    plain = run_python(SHOW, holder=False)
    done = run_python(SHOW, bootstrap=True)
    assert (done.stdout, done.stderr) == (plain.stdout, "")


def test_package_is_importable_uninstalled_and_loses_against_an_installed_one(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    show = "import epochmeter; print(epochmeter.__file__)"
    done = run_python(show, recorder.path, bootstrap=True)
    assert done.stdout.strip() == str(PACKAGE_HOLDER / "epochmeter" / "__init__.py")
    (tmp_path / "epochmeter.py").write_text("")
    done = run_python(show, recorder.path, bootstrap=True, PYTHONPATH=str(tmp_path))
    assert done.stdout.strip() == str(tmp_path / "epochmeter.py")


@pytest.mark.parametrize("kind", ["site-packages", "python"])
def test_what_lies_beside_our_package_stays_out_of_sight(
    recorder: FakeRecorder, tmp_path: Path, kind: str
) -> None:
    other = tmp_path / kind
    shutil.copytree(PACKAGE_HOLDER / "epochmeter", other / "epochmeter")
    (other / "secret_package.py").write_text("")
    script = (
        "import sys, epochmeter\nprint(epochmeter.__file__)\n"
        f"print({str(other)!r} in sys.path)\n"
        "import secret_package\n"
    )
    bootstrap = other / "epochmeter" / "_bootstrap"
    done = run_python(script, recorder.path, holder=False, PYTHONPATH=str(bootstrap))
    assert done.stdout.split() == [str(other / "epochmeter" / "__init__.py"), "False"]
    assert "No module named 'secret_package'" in done.stderr


FAKE_PADDLE = {
    "paddle/__init__.py": "",
    "paddle/hapi/__init__.py": "",
    "paddle/hapi/model.py": "def config_callbacks():\n    return 'theirs'\n"
    "class Model: pass\nVALUE = 1\n",
}


def fake_paddle(tmp_path: Path, model: str = "") -> str:
    for name, text in FAKE_PADDLE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    if model:
        (tmp_path / "paddle/hapi/model.py").write_text(model)
    return str(tmp_path)


def test_watched_module_keeps_its_loader_as_it_was(recorder: FakeRecorder, tmp_path: Path) -> None:
    script = (
        "import sys, paddle.hapi.model as m, importlib.machinery as k\n"
        "print(type(m.__loader__) is k.SourceFileLoader)\n"
        "print(vars(m.__loader__).keys() == {'name', 'path'})\n"
        "print(m.__spec__.loader is m.__loader__, m.VALUE, m.config_callbacks._epochmeter)\n"
        "print([type(f).__name__ for f in sys.meta_path if type(f).__module__ == '_watch'])\n"
    )
    done = run_python(script, recorder.path, bootstrap=True, PYTHONPATH=fake_paddle(tmp_path))
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["True", "True", "True 1 True", "['Finder', 'Package']"]


HOOKED = "print(m.VALUE, getattr(m.config_callbacks, '_epochmeter', False))\n"


def test_module_that_is_reloaded_or_thrown_out_is_hooked_again(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    script = (
        "import sys, importlib, paddle.hapi.model as m\n"
        "m.VALUE = 5; importlib.reload(m)\n" + HOOKED + "del sys.modules['paddle.hapi.model']\n"
        "m = importlib.import_module('paddle.hapi.model')\n" + HOOKED
    )
    done = run_python(script, recorder.path, bootstrap=True, PYTHONPATH=fake_paddle(tmp_path))
    assert (done.stdout, done.stderr) == ("1 True\n1 True\n", "")


def test_module_that_is_only_looked_for_is_hooked_when_it_comes(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    script = (
        "import importlib.util\n"
        "importlib.util.find_spec('paddle.hapi.model')\n"
        "import paddle.hapi.model as m\n" + HOOKED
    )
    done = run_python(script, recorder.path, bootstrap=True, PYTHONPATH=fake_paddle(tmp_path))
    assert (done.stdout, done.stderr) == ("1 True\n", "")


def test_module_behind_a_lazy_loader_is_hooked_when_it_runs(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    script = (
        "import importlib.util, sys, paddle.hapi\n"
        "spec = importlib.util.find_spec('paddle.hapi.model')\n"
        "spec.loader = importlib.util.LazyLoader(spec.loader)\n"
        "m = importlib.util.module_from_spec(spec)\n"
        "sys.modules['paddle.hapi.model'] = m\n"
        "spec.loader.exec_module(m)\n" + HOOKED
    )
    done = run_python(script, recorder.path, bootstrap=True, PYTHONPATH=fake_paddle(tmp_path))
    assert (done.stdout, done.stderr) == ("1 True\n", "")


@pytest.mark.parametrize("how", ["class", "slots"])
def test_loader_that_cannot_be_shadowed_is_left_alone_and_hooked_at_the_next_import(
    recorder: FakeRecorder, tmp_path: Path, how: str
) -> None:
    script = (
        "import sys, importlib.machinery as k\n"
        "class Plain:\n"
        "    __slots__ = ()\n"
        "    @staticmethod\n    def create_module(spec): return None\n"
        "    @staticmethod\n    def exec_module(module):\n"
        "        module.VALUE = 3; module.config_callbacks = lambda: 1; module.Model = Plain\n"
        "class Own:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'paddle.hapi.model':\n"
        f"            loader = Plain if {how == 'class'} else Plain()\n"
        "            return k.ModuleSpec(name, loader)\n"
        "sys.meta_path.insert(1, Own())\n"
        "import paddle.hapi.model as m\n"
        "import colorsys\n" + HOOKED
    )
    done = run_python(script, recorder.path, bootstrap=True, PYTHONPATH=fake_paddle(tmp_path))
    assert (done.stdout, done.stderr) == ("3 True\n", "")


def test_start_hooks_what_is_imported_and_later_what_is_half_imported(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    half = "import epochmeter; epochmeter.start()\n" + FAKE_PADDLE["paddle/hapi/model.py"]
    for text in ("", half):
        script = (
            "import paddle.hapi.model as m, epochmeter\n"
            "epochmeter.start(); import colorsys\n" + HOOKED
        )
        path = fake_paddle(tmp_path, text)
        done = run_python(script, recorder.path, PYTHONPATH=path)
        assert (done.stdout, done.stderr) == ("1 True\n", "")


def test_hooks_can_be_off_while_start_records(recorder: FakeRecorder, tmp_path: Path) -> None:
    script = (
        "import epochmeter, sys\n"
        "print(epochmeter.start())\n"
        "import paddle.hapi.model as m\n" + HOOKED
    )
    done = run_python(
        script, recorder.path, PYTHONPATH=fake_paddle(tmp_path), EPOCHMETER_HOOKS="0"
    )
    assert (done.stdout, done.stderr) == ("True\n1 False\n", "")
    assert recorder.kinds() == ["hello"]


def test_hook_that_does_not_fit_says_so_once_and_the_import_goes_on(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    done = run_python(
        "import paddle.hapi.model as m; print(m.VALUE)",
        recorder.path,
        bootstrap=True,
        PYTHONPATH=fake_paddle(tmp_path, "VALUE = 2\n"),
    )
    assert done.stdout == "2\n"
    assert done.stderr.count("\n") == 1 and "cannot hook paddle.hapi.model" in done.stderr


def test_broken_hook_costs_only_itself(recorder: FakeRecorder, tmp_path: Path) -> None:
    holder = tmp_path / "holder"
    shutil.copytree(PACKAGE_HOLDER / "epochmeter", holder / "epochmeter")
    (holder / "epochmeter/_frameworks/paddle_loop.py").write_text("nobody_made_this()\n")
    theirs = fake_paddle(tmp_path)
    for name in ("optimizer/__init__", "optimizer/optimizer", "amp/__init__", "amp/grad_scaler"):
        (tmp_path / "paddle" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "paddle" / f"{name}.py").write_text("")
    script = (
        "import paddle.optimizer.optimizer, paddle.amp.grad_scaler\n"
        "import paddle.hapi.model as m\n" + HOOKED
    )
    done = run_python(
        script,
        recorder.path,
        holder=False,
        PYTHONPATH=f"{holder / 'epochmeter/_bootstrap'}:{theirs}",
    )
    assert done.stdout == "1 True\n"
    assert done.stderr.count("\n") == 1 and "nobody_made_this" in done.stderr


@pytest.mark.parametrize("comes", [True, False])
def test_hook_that_needs_the_whole_package_is_tried_again(
    recorder: FakeRecorder, tmp_path: Path, comes: bool
) -> None:
    path = fake_paddle(tmp_path, "VALUE = 1\n")
    (tmp_path / "paddle/__init__.py").write_text(
        "import paddle.hapi.model as m\nimport colorsys\nm.Model = type('Model', (), {})\n"
        + ("m.config_callbacks = lambda: 1\n" if comes else "")
    )
    script = (
        "from paddle import m\nimport wave\n"
        "print(getattr(getattr(m, 'config_callbacks', None), '_epochmeter', False))\n"
    )
    done = run_python(script, recorder.path, bootstrap=True, PYTHONPATH=path)
    assert done.stdout == f"{comes}\n"
    assert done.stderr.count("cannot hook") == (0 if comes else 1)


def test_watched_module_that_fails_to_import_fails_as_ever(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    path = fake_paddle(tmp_path, "raise ImportError('broken wheel')\n")
    script = (
        "for _ in range(2):\n"
        "    try:\n        import paddle.hapi.model\n"
        "    except ImportError as error:\n        print(error)\n"
    )
    done = run_python(script, recorder.path, bootstrap=True, PYTHONPATH=path)
    assert (done.stdout, done.stderr) == ("broken wheel\nbroken wheel\n", "")


def test_hooks_reach_processes_that_the_training_starts(
    recorder: FakeRecorder, tmp_path: Path
) -> None:
    script = (
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'import paddle.hapi.model as m;"
        " print(m.config_callbacks._epochmeter)'], check=True)\n"
    )
    done = run_python(script, recorder.path, bootstrap=True, PYTHONPATH=fake_paddle(tmp_path))
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_bootstrap_file_stands_alone() -> None:
    # It must run in Pythons that know nothing of us, old ones too: no annotations, no f-strings.
    text = (BOOTSTRAP / "sitecustomize.py").read_text()
    assert "import epochmeter" not in text and "->" not in text and ' f"' not in text
