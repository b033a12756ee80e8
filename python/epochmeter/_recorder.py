# SPDX-License-Identifier: Apache-2.0
"""What this process tells about its training: one Recorder per process, driven by loops and hooks.

All methods may be called from any thread and cost no more than a datagram. Those that the
training's code reaches are guarded by their callers (see _quiet.guarded).
"""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type

from epochmeter import _frameworks, _protocol, _ranks, _redact
from epochmeter._sender import Sender

# Reading an allocator costs about 70 us: by time, not by step.
MEMORY_PERIOD_NS = 1_000_000_000
# A phase shorter than this does not pay for a reading of its own at its end.
MEMORY_PHASE_NS = 50_000_000

# Their time is taken out of the steps.
ASIDES = ("eval", "checkpoint")

# The recorder reads its sensors at these.
PROMPT = ("train_begin", "train_end", "epoch_begin", "epoch_end", "exception")

clock = time.monotonic_ns


class Recorder:
    """Keeps the place in the training (epoch, step, open phases) and sends the events."""

    def __init__(self, path: str, version: str) -> None:
        self.alive = True
        self._version = version
        self._ranks = _ranks.find(os.environ)
        self._sender = Sender(path, self._ranks.rank, self.hello)
        self._step_head = _protocol.head("step")
        self._gpus: Optional[_frameworks.Gpus] = None
        self._memory_due_ns = 0
        self._last_ns = 0
        self.framework: Optional[str] = None
        self.training = False
        # Who drives the open training: "client" (the script's own calls), "framework" (a callback
        # in its loop) or "hook" (the optimizer of a plain loop, which gives way to the other two).
        self.origin: Optional[str] = None
        # Called before that training ends, to close an epoch that is over.
        self.before_end: Optional[Callable[[], None]] = None
        # Another object from each begin to each end: who began an earlier one sees that it is over.
        self.token = object()
        self.epoch: Optional[int] = None
        self.epoch_open = False
        self.epoch_left_early = False
        self.step = 0
        self.step_in_epoch = 0
        self.passes = 0
        self.in_step = False
        self.wait_ns: Optional[int] = None
        self._epoch_began_ns = 0
        # Where the next step begins; 0 when nobody saw it, and then it has no duration.
        self.last_end_ns = 0
        # Logged in the open step; `_plain` while all of it came through collect_plain().
        self.pending: Dict[str, _protocol.Real] = {}
        self._plain = True
        self._form: Optional[_protocol.StepForm] = None
        self.phases: List[Dict[str, _protocol.Real]] = []
        self.evals = 0
        # Where an exception ended the last training; its id, as itself it holds on to much memory.
        self._left_at: Tuple[Tuple[int, str], Dict[str, Optional[int]]] = ((0, ""), {})
        # Open phases that are no part of a step, whether inside its turn of the loop or after it.
        self._asides = 0
        self.hello()

    # Life of the process.

    def hello(self) -> None:
        versions = {"python": sys.version.split()[0], "epochmeter": self._version}
        versions.update(_frameworks.versions())
        t_ns = clock()
        last_ns = self._last_ns
        self._emit(
            "hello",
            t_ns,
            wall_ns=time.time_ns(),
            framework=self.framework,
            versions={key: _protocol.text(value, 100) for key, value in versions.items()},
            argv0=_protocol.text(os.path.basename((getattr(sys, "argv", None) or [""])[0]), 200)
            or None,
            local_rank=self._ranks.local_rank,
            world=self._ranks.world,
            rank_source=self._ranks.source,
            gpus=self._gpus,
        )
        # It tells nothing of the training, whose events may have happened before it.
        self._last_ns = last_ns

    def close(self, patience_s: float) -> None:
        """An open training ends without saying how. A receiver that is busy is waited for."""
        self.train_end("exited")
        self.alive = False
        self._sender.close(patience_s)

    def disown(self) -> None:
        """In a forked child: nothing more comes from here, whoever still holds this object."""
        self.alive = self._sender.alive = self.training = False
        self.token = object()

    # Training and epochs.

    def train_begin(
        self, framework: str, origin: str, t_ns: Optional[int] = None, **fields: Optional[int]
    ) -> None:
        """fields: epochs, steps_per_epoch, batch_size, epoch_base, those that are known.

        `t_ns` is when it began, if that was noticed only later.
        """
        self.train_end("exited")
        self.framework = framework
        self.origin = origin
        self.training = True
        self.token = object()
        self.step, self.passes, self.epoch = 0, 0, None
        self.last_end_ns = t_ns = self._not_before(t_ns)
        self._find_ranks()
        self._gpus = self._find_gpus() or self._gpus
        self._emit(
            "train_begin", t_ns, framework=framework, source=origin, **fields, gpus=self._gpus
        )

    def train_end(self, status: str, error: Optional[BaseException] = None) -> None:
        """status: completed, failed, or exited (left without a word). `error` is what left it."""
        if not self.training:
            return
        place = self._place() if error is not None else {}
        if self.before_end is not None:
            self.before_end()
            self.before_end = None
        if self.epoch_open:
            self.epoch_end(partial=True)
        said = None if error is None else _redact.message(error)
        self._left_at = ((id(error), said or ""), place)
        self.training = False
        self.token = object()
        self.in_step = False
        self.pending.clear()
        # Nobody said when it ended: the last that is known of it.
        known = error is not None or status != "exited"
        self._emit(
            "train_end",
            clock() if known else self._last_ns,
            status=status,
            type=None if error is None else _protocol.name(type(error).__name__),
            message=said,
            **place,
        )

    def epoch_begin(
        self, epoch: int, base: Optional[int], origin: str, t_ns: Optional[int] = None
    ) -> None:
        """`t_ns` is when it began, if that was noticed only later."""
        if self.epoch_open:
            self.epoch_end(partial=True)
        self.epoch = epoch
        self.epoch_open = True
        self.epoch_left_early = False
        self.step_in_epoch, self._form, self.in_step = 0, None, False
        self._epoch_began_ns = self.last_end_ns = t_ns = self._not_before(t_ns)
        self._emit("epoch_begin", t_ns, epoch=epoch, epoch_base=base, epoch_from=origin)

    def epoch_end(
        self,
        scalars: Optional[Mapping[str, Any]] = None,
        partial: Optional[bool] = None,
        t_ns: Optional[int] = None,
    ) -> None:
        """`t_ns` is when it ended, if that was noticed only later."""
        if not self.epoch_open:
            return
        self.epoch_open = False
        self.in_step = False
        t_ns = self._not_before(t_ns)
        values = dict(self.pending)
        values.update(_protocol.scalars(scalars or {}))
        self.pending.clear()
        self._emit(
            "epoch_end",
            t_ns,
            epoch=self.epoch,
            duration_s=(t_ns - self._epoch_began_ns) / 1e9,
            steps=self.step_in_epoch,
            partial=partial or None,
            scalars=values or None,
        )
        self.memory()

    def framework_trains(self) -> bool:
        """Whether a framework's own loop is being recorded."""
        return self.training and self.origin == "framework"

    def lacks_steps(self) -> bool:
        """Whether the script tells its epochs, but has not told of its steps."""
        return self.training and self.origin == "client" and self.epoch_open and not self.passes

    # Steps.

    def step_begin(self, wait_ns: Optional[int]) -> None:
        """The batch is there; `wait_ns` was spent to get it."""
        self.in_step = True
        self.wait_ns = wait_ns

    def step_end(
        self,
        t_ns: int,
        batch_size: Optional[int] = None,
        scalars: Optional[Mapping[str, Any]] = None,
        partial: bool = False,
        steps: int = 1,
    ) -> None:
        """The step that began last ended at `t_ns`; the values logged in it go with it.

        `steps` is how many the framework ran in one go.
        """
        self.in_step = False
        self.step = step = self.step + steps
        last_ns, wait_ns, values = self.last_end_ns, self.wait_ns, self.pending
        self.last_end_ns = self._last_ns = t_ns
        if scalars and not _protocol.collect_plain(values, scalars):
            self.collect(scalars)
        plain = self._plain and not partial and t_ns < self._memory_due_ns
        self._plain, self.pending = True, {} if values else values
        if plain and steps == 1 and last_ns and wait_ns is not None and self.epoch_open:
            self.step_in_epoch = inside = self.step_in_epoch + 1
            form, names = self._form, tuple(values)
            if form is None or form.batch_size != batch_size or form.names != names:
                form = self._form = _protocol.StepForm(self.epoch, batch_size, names)
            numbers = (t_ns, step, inside, t_ns - last_ns, wait_ns, *values.values())
            self._sender.send_step(form, numbers)
            return
        text = self._step_text(steps, last_ns, batch_size)
        if partial:
            text += ',"partial":true'
        if values:
            text += _protocol.scalars_fragment(values)
        memory = self._read_memory(t_ns) if t_ns >= self._memory_due_ns else []
        if memory:
            text += _protocol.fragment({"memory": memory[0]})
        self._sender.send(self._step_head, t_ns, text, True)
        for further_device in memory[1:]:
            self._emit("memory", t_ns, **further_device)

    def _step_text(self, steps: int, last_ns: int, batch_size: Optional[int]) -> str:
        """What every step says, as far as it is known."""
        text = f',"step":{self.step}'
        if self.epoch_open:
            self.step_in_epoch += steps
            text += f',"epoch":{self.epoch},"step_in_epoch":{self.step_in_epoch}'
        if steps != 1:
            text += f',"steps":{steps}'
        if last_ns:
            text += f',"duration_s":{self.last_end_ns - last_ns}e-9'
        if self.wait_ns is not None:
            text += f',"data_wait_s":{self.wait_ns}e-9'
        return text if batch_size is None else text + f',"batch_size":{batch_size}'

    def collect(self, values: Mapping[str, Any]) -> None:
        """Keeps for the open step what is a number among `values`."""
        self._plain = False
        _protocol.collect(self.pending, values)

    # Phases, values, marks.

    def phase_begin(self, phase: str) -> Dict[str, _protocol.Real]:
        """Returns the box that collects the values logged in this phase; give it to phase_end."""
        values: Dict[str, _protocol.Real] = {}
        self.phases.append(values)
        self.evals += phase == "eval"
        self._asides += phase in ASIDES
        self._emit("phase_begin", clock(), phase=phase, **self._place())
        return values

    def phase_end(
        self, phase: str, values: Dict[str, _protocol.Real], began_ns: int, failed: bool = False
    ) -> None:
        t_ns = clock()
        # By identity: two open phases may hold equal values.
        self.phases = [box for box in self.phases if box is not values]
        self.evals -= phase == "eval"
        if phase in ASIDES:
            self._asides -= 1
            # One inside another is in the other's time.
            if self.last_end_ns and not self._asides:
                self.last_end_ns += t_ns - max(began_ns, self.last_end_ns)
        self._emit(
            "phase_end",
            t_ns,
            phase=phase,
            duration_s=(t_ns - began_ns) / 1e9,
            **self._place(),
            failed=failed or None,
            scalars=values or None,
        )
        if t_ns - began_ns >= MEMORY_PHASE_NS or t_ns >= self._memory_due_ns:
            self.memory()

    def log(self, values: Mapping[str, Any]) -> None:
        """To the open evaluation, else the open step, else the open phase, else on their own."""
        if self.phases and (self.evals or not self.in_step):
            _protocol.collect(self.phases[-1], values)
        elif self.in_step:
            self.collect(values)
        else:
            numbers = _protocol.scalars(values)
            if numbers:
                self._emit("scalar", clock(), scalars=numbers, **self._place())

    def log_apart(self, values: Mapping[str, Any]) -> None:
        """Values of the whole training, or of its speed: they belong to no epoch and no step."""
        numbers = _protocol.scalars(values)
        if numbers:
            self._emit("scalar", clock(), scalars=numbers)

    def mark(self, name: str) -> None:
        self._emit("mark", clock(), name=_protocol.name(name), **self._place())

    def exception(
        self,
        kind: Type[BaseException],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """An exception nobody caught: the training has failed."""
        message, tail = _redact.told(value, trace)
        left_by, left_at = self._left_at
        same = not self.training and left_by == (id(value), _redact.message(value))
        self._emit(
            "exception",
            clock(),
            type=_protocol.name(kind.__name__),
            message=message,
            traceback=tail or None,
            **(left_at if same else self._place()),
        )
        self.train_end("failed")

    # Memory.

    def memory(self) -> None:
        """Reads the allocator now and sends it, when there is one to read."""
        t_ns = clock()
        for found in self._read_memory(t_ns):
            self._emit("memory", t_ns, **found)

    def _read_memory(self, t_ns: int) -> List[_frameworks.Memory]:
        self._memory_due_ns = t_ns + MEMORY_PERIOD_NS
        if self._gpus is None:
            self._gpus = self._find_gpus()
            if self._gpus is not None:
                self.hello()
        for reader in _frameworks.loaded():
            found = reader.memory()
            if found:
                return found
        return []

    def _find_ranks(self) -> None:
        """Takes the rank from the framework where the environment told none."""
        found = _frameworks.ranks() if self._ranks.rank is None else None
        if found is not None:
            framework, rank, world = found
            self._ranks = _ranks.Ranks(rank, self._ranks.local_rank, world, framework)
            self._sender.set_rank(rank)
            self.hello()

    def _find_gpus(self) -> Optional[_frameworks.Gpus]:
        for reader in _frameworks.loaded():
            found = reader.gpus()
            if found is not None:
                return found
        return None

    def _place(self) -> Dict[str, Optional[int]]:
        """Where something belongs: the epoch, and the open step, else the last that ended."""
        if not self.training:
            return {}
        return {"epoch": self.epoch, "step": self.step + 1 if self.in_step else self.step}

    def _not_before(self, t_ns: Optional[int]) -> int:
        """The given time, but not before what has been told already; now when there is none."""
        return clock() if t_ns is None else max(t_ns, self._last_ns)

    def _emit(self, kind: str, t_ns: int, **fields: Any) -> None:
        self._last_ns = t_ns
        self._sender.send(_protocol.head(kind), t_ns, _protocol.fragment(fields))
        if kind in PROMPT:
            self._sender.ring()

