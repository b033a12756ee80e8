# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the client's tests; what they are made of is in client_support.py."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

from client_support import FakeRecorder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for a socket."""
    made = tempfile.mkdtemp(prefix="epm")
    yield Path(made)
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def recorder(folder: Path) -> Iterator[FakeRecorder]:
    made = FakeRecorder(str(folder / "s"))
    yield made
    made.close()


@pytest.fixture
def client(recorder: FakeRecorder, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRecorder]:
    """This process joined to `recorder`, with fresh state; left again afterwards."""
    from epochmeter import _state

    for name in list(os.environ):
        if name.startswith(("PADDLE_", "SLURM_", "EPOCHMETER")) or name == "RANK":
            monkeypatch.delenv(name)
    monkeypatch.setenv("EPOCHMETER_SOCKET", recorder.path)
    assert _state.join(again=True) is not None
    yield recorder
    _state.leave()
