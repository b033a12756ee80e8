# SPDX-License-Identifier: Apache-2.0
"""A recorder's socket for tests, and ways to run a script against it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

PACKAGE_HOLDER = Path(__file__).resolve().parents[1]
ROOT = PACKAGE_HOLDER.parent
BOOTSTRAP = PACKAGE_HOLDER / "epochmeter" / "_bootstrap"

if str(PACKAGE_HOLDER) not in sys.path:
    sys.path.insert(0, str(PACKAGE_HOLDER))


class FakeRecorder:
    """Receives datagrams in a thread from construction to close()."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.datagrams: List[bytes] = []
        self._open = True
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(path)
        self._socket.settimeout(0.02)
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _receive(self) -> None:
        while True:
            try:
                self.datagrams.append(self._socket.recv(9000))
            except socket.timeout:
                if not self._open:
                    return
            except OSError:
                return

    def close(self) -> None:
        self._open = False
        self._thread.join()
        self._socket.close()

    def events(self, *kinds: str) -> List[Dict[str, Any]]:
        """All events so far after a moment without new ones, or those of the given kinds."""
        count = -1
        while count != len(self.datagrams):
            count = len(self.datagrams)
            time.sleep(0.06)
        found = [json.loads(datagram) for datagram in self.datagrams]
        return [event for event in found if not kinds or event["kind"] in kinds]

    def kinds(self) -> List[str]:
        return [event["kind"] for event in self.events()]


def run_python(
    script: str,
    socket_path: Optional[str] = None,
    bootstrap: bool = False,
    arguments: Sequence[str] = (),
    python: str = sys.executable,
    holder: bool = True,
    **environment: str,
) -> "subprocess.CompletedProcess[str]":
    """Runs `script` in a Python of its own; `bootstrap` as `epochmeter run` would start it."""
    names = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("EPOCHMETER", "PADDLE_", "SLURM_", "HOROVOD_", "TF_CONFIG"))
        and key not in ("RANK", "PYTHONPATH")
    }
    path = [environment.pop("PYTHONPATH", "")]
    if holder and not bootstrap:
        path.insert(0, str(PACKAGE_HOLDER))
    if bootstrap:
        path.insert(0, str(BOOTSTRAP))
    names["PYTHONPATH"] = os.pathsep.join(entry for entry in path if entry)
    if not names["PYTHONPATH"]:
        del names["PYTHONPATH"]
    if socket_path is not None:
        names["EPOCHMETER_SOCKET"] = socket_path
    names.update(environment)
    return subprocess.run(
        [python, "-c", script, *arguments],
        env=names,
        # Not the checkout: `-c` makes the current folder importable.
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        timeout=300,
        check=False,
    )
