# SPDX-License-Identifier: Apache-2.0
"""What the callbacks of all frameworks keep: whose training is on, and its open evaluation."""

from __future__ import annotations

from typing import Dict, Optional

from epochmeter import _protocol, _state
from epochmeter._recorder import Recorder, clock


class OwnTraining:
    """Base of a framework's callback. One thread, that of the training."""

    _recorder: Optional[Recorder] = None
    # Of the training that this callback has begun; another token is another's training.
    _token: Optional[object] = None
    _eval: Optional[Dict[str, _protocol.Real]] = None
    _eval_began_ns = 0

    def _mine(self) -> Optional[Recorder]:
        """The recorder while this callback's own training is on."""
        recorder = self._recorder
        if recorder is None or recorder is not _state.current() or not recorder.training:
            return None
        return recorder if recorder.token is self._token else None

    def _open_eval(self, recorder: Recorder) -> None:
        self._eval_began_ns = clock()
        self._eval = recorder.phase_begin("eval")

    def _close_eval(self, failed: bool = False) -> None:
        """Ends the open evaluation; one still open at a later begin was left by an exception."""
        values, self._eval = self._eval, None
        recorder = self._recorder
        if values is not None and recorder is not None and recorder is _state.current():
            recorder.phase_end("eval", values, self._eval_began_ns, failed)
