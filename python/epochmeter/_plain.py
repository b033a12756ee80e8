# SPDX-License-Identifier: Apache-2.0
"""Plain loops that call nothing of ours: epochs and steps from what optimizer and loader show.

A framework's hook makes one PlainLoop and tells it two things: stepped() when an optimizer has
stepped, and, through a Pass, each batch that a loader gave. From these follow:

- a step ends when the optimizer that leads has stepped; the batches since the step before are its
  own, and the time spent waiting for them is its data wait;
- an epoch is a pass over the loader whose batches are consumed with steps in between. A pass
  without steps is none (an evaluation, a look at the data);
- of several optimizers the first to step leads, until it is gone or has rested long.

Whatever says more goes first: while the script's own steps() or a framework's callback drives a
training, nothing is told from here. Into the epochs of epochs() without steps() go the steps.
"""

from __future__ import annotations

import weakref
from typing import Any, List, Optional, Tuple

from epochmeter import _quiet, _state
from epochmeter._loop import batch_samples, length_of
from epochmeter._recorder import Recorder, clock

# After so many steps of others without one of the leader's, the next to step leads.
LEADER_RESTS = 64


# The attribute of a loader's iterator that holds its pass.
MARK = "_epochmeter"


class Pass:
    """One pass over a loader. Tell got() each batch, and end() when there are no more."""

    __slots__ = (
        "_loop", "began_ns", "ended_ns", "last_ns", "length", "nominal", "first", "gap", "steps",
        "fresh", "wait_ns", "samples", "_iterator",
    )  # fmt: skip

    def __init__(self, loop: "PlainLoop", loader: Any) -> None:
        self._loop = loop
        self.began_ns = clock()
        # Of the end and of the latest batch; 0 before.
        self.ended_ns = self.last_ns = 0
        self.length = length_of(loader)
        nominal = getattr(loader, "batch_size", None)
        self.nominal = nominal if type(nominal) is int else None
        # Steps, the batches before the first one, and the most between two later ones.
        self.steps = self.first = self.gap = 0
        # Since the latest step: batches, the wait for them, their samples (None: not known).
        self.fresh = 0
        self.wait_ns = 0
        self.samples: Optional[int] = 0
        self._iterator: Optional["weakref.ReferenceType[Any]"] = None

    def bind(self, iterator: Any) -> None:
        """This pass is what `iterator` makes from now on; it can be found on it under MARK."""
        try:
            vars(iterator)[MARK] = self
            self._iterator = weakref.ref(iterator)
        except TypeError:
            # A loader of somebody's own, whose iterator is a generator: its batches are unseen.
            pass

    def given_up(self) -> bool:
        """Whether the loop was left: nobody holds the iterator, or it makes another pass."""
        iterator = None if self._iterator is None else self._iterator()
        return self._iterator is not None and (
            iterator is None or vars(iterator).get(MARK) is not self
        )

    def got(self, began_ns: int, batch: Any) -> None:
        """A batch came that was asked for at `began_ns`. It is looked at, not kept."""
        try:
            loop = self._loop
            self.last_ns = now_ns = clock()
            wait_ns = now_ns - began_ns
            loop.waited_ns += wait_ns
            loop.batches += 1
            if self.fresh == 0:
                loop.delivered(self)
            self.fresh += 1
            self.wait_ns += wait_ns
            if self.samples is not None:
                size = None if self.nominal is None else batch_samples(batch, self.nominal)
                self.samples = None if size is None else self.samples + size
        except Exception as error:
            _quiet.fault("watching a data loader", error)

    def end(self) -> None:
        """The loader has no more batches."""
        self.ended_ns = clock()
        try:
            self._loop.exhausted(self)
        except Exception as error:
            _quiet.fault("watching a data loader", error)

    def takes_step(self) -> None:
        """The batches since the step before have become a step."""
        if self.steps == 0:
            self.first = self.fresh
        elif self.fresh > self.gap:
            self.gap = self.fresh
        self.steps += 1
        if self.ended_ns:
            # A remainder was the last; of those fetched ahead there is one less.
            self.first = self.gap if self.fresh else self.first - 1
        self.fresh = self.wait_ns = self.samples = 0

    def settle(self) -> None:
        self.fresh = 0
        self.wait_ns = 0
        self.samples = 0

    def more_steps(self) -> bool:
        """Whether steps may come after the last batch: left over, or fetched ahead of its step."""
        return self.fresh > 0 or self.steps > 1 and self.first > self.gap


class PlainLoop:
    """The plain loop of this process, as one framework's hooks see it. Tells the Recorder."""

    def __init__(self, framework: str) -> None:
        self._framework = framework
        # The recorder told last, and the token of our training there: another one, or None, means
        # that it is over.
        self._recorder: Optional[Recorder] = None
        self._token: Optional[object] = None
        self._leader: Any = None
        self._others = 0
        self._feeding: Optional[Pass] = None
        self._fresh: List[Pass] = []
        self._losses = 0
        self._loss = 0.0
        # True while a loss is wanted for sure; else idle() knows.
        self.reads_losses = False
        # All that the loaders did since take_waiting(), whoever trains.
        self.waited_ns = self.batches = 0

    # What hooks call. Neither raises.

    def stepped(self, optimizer: Any, steps: int = 1) -> None:
        """`optimizer` (any object that stays the same) has stepped."""
        if _quiet.broken():
            return
        try:
            recorder = self._recorder
            if recorder is not None and recorder.token is self._token:
                # Our training goes on: nobody else's began, and this is no child of a fork.
                leader = self._leader
                if leader is not None and leader() is optimizer:
                    self._others = 0
                    self._step(recorder, steps, False)
                elif self._leads(optimizer):
                    self._step(recorder, steps, False)
                return
            recorder = _state.current() or _state.join()
            foreign = recorder is None or recorder.training and recorder.token is not self._token
            if recorder is None or foreign and not recorder.lacks_steps():
                self._forget()
            elif self._leads(optimizer):
                self._step(recorder, steps, foreign)
        except Exception as error:
            _quiet.fault("watching an optimizer", error)

    def loss(self, value: float) -> None:
        """A loss that gradients were taken of; told with the step when it was the step's only one.

        `value` is a number already: reading it here must not make the training wait.
        """
        self._losses += 1
        self._loss = value

    def take_waiting(self) -> Tuple[int, int]:
        """Nanoseconds inside the loaders and batches from them since the last call; for callbacks,
        which see only that something took time.
        """
        taken = self.waited_ns, self.batches
        self.waited_ns = self.batches = 0
        return taken

    def idle(self) -> bool:
        """Whether somebody else's training is on, so that nothing is told from here."""
        recorder = _state.current()
        if recorder is None or not recorder.training or recorder.token is self._token:
            return False
        return not recorder.lacks_steps()

    # What a Pass calls.

    def delivered(self, source: Pass) -> None:
        """The first batch of `source` since the latest step."""
        fresh = self._fresh
        if not fresh or source not in fresh:
            fresh.append(source)
        feeding = self._feeding
        if feeding is source:
            recorder = self._recorder
            if recorder is not None and recorder.token is self._token:
                recorder.in_step = True
        elif feeding is not None and feeding.ended_ns:
            self._close_epoch()

    def exhausted(self, source: Pass) -> None:
        if source is self._feeding and not source.more_steps():
            self._close_epoch()
        elif source is not self._feeding and source in self._fresh:
            # All its batches came without a step: it feeds no training.
            self._fresh.remove(source)

    # The rest is ours.

    def _own(self) -> Optional[Recorder]:
        recorder = self._recorder
        return recorder if recorder is not None and recorder.token is self._token else None

    def _forget(self) -> None:
        """Somebody else's training: what was seen of it is not ours to tell."""
        for source in self._fresh:
            source.settle()
        self._fresh.clear()
        self._losses = 0
        self.reads_losses = False

    def _leads(self, optimizer: Any) -> bool:
        leader = self._leader() if self._leader is not None else None
        if leader is optimizer:
            self._others = 0
            return True
        self._others += 1
        if leader is not None and self._others <= LEADER_RESTS:
            return False
        self._others = 0
        try:
            self._leader = weakref.ref(optimizer)
        except TypeError:
            self._leader = lambda: optimizer
        return True

    def _feeder(self) -> Optional[Pass]:
        """The pass whose batches this step used: the present one if it gave any, else the first.

        Of those that gave any, one that was quiet since another began was given up by its reader.
        """
        feeding = self._feeding
        if feeding is not None and feeding in self._fresh:
            if len(self._fresh) == 1 or not feeding.given_up():
                return feeding
            # A batch of it was left over when its loop was left.
            self._fresh.remove(feeding)
        newest_ns = max((source.began_ns for source in self._fresh), default=0)
        for source in self._fresh:
            if source.last_ns >= newest_ns:
                return source
        # A batch fetched ahead, of a pass that is through with its loader.
        return feeding if feeding is not None and feeding.more_steps() else None

    def _step(self, recorder: Recorder, steps: int, foreign: bool) -> None:
        """`foreign`: epochs() tells the epochs, and only the step is ours to tell."""
        t_ns = clock()
        fresh = self._fresh
        source = self._feeding
        if len(fresh) != 1 or fresh[0] is not source:
            source = self._feeder()
        if not recorder.training:
            self._begin(recorder, source)
        if source is not self._feeding and source is not None and not foreign:
            self._open_epoch(recorder, source)
        scalars = {"loss": self._loss} if self._losses == 1 else None
        self._losses = 0
        self.reads_losses = True
        wait_ns: Optional[int] = None
        samples: Optional[int] = None
        # A batch fetched ahead was waited for in an earlier step.
        if source is not None and source.fresh:
            wait_ns, samples = source.wait_ns, source.samples
        recorder.wait_ns = wait_ns
        recorder.step_end(t_ns, samples, scalars, False, steps)
        for other in fresh:
            if other is not source:
                other.settle()
        fresh.clear()
        if source is not None:
            source.takes_step()
            if source.ended_ns and not source.more_steps():
                self._close_epoch()

    def _begin(self, recorder: Recorder, source: Optional[Pass]) -> None:
        recorder.train_begin(
            self._framework,
            "hook",
            None if source is None else source.began_ns,
            steps_per_epoch=None if source is None else source.length,
            batch_size=None if source is None else source.nominal,
        )
        self._recorder, self._token = recorder, recorder.token
        self._feeding = None
        recorder.before_end = self._close_epoch
        if source is None:
            # Nobody saw where the first step began.
            recorder.last_end_ns = 0

    def _open_epoch(self, recorder: Recorder, source: Pass) -> None:
        self._close_epoch()
        self._feeding = source
        recorder.epoch_begin(recorder.passes, 0, "counted", source.began_ns)
        recorder.passes += 1

    def _close_epoch(self) -> None:
        """The pass is over: at its last batch, or, left early, at its last step."""
        feeding, recorder = self._feeding, self._own()
        self._feeding = None
        if feeding is None:
            return
        if feeding in self._fresh:
            feeding.settle()
            self._fresh.remove(feeding)
        if recorder is not None and recorder.epoch_open:
            ended_ns = max(feeding.ended_ns, recorder.last_end_ns)
            recorder.epoch_end(partial=not feeding.ended_ns, t_ns=ended_ns)
