# SPDX-License-Identifier: Apache-2.0
"""Plain loops that call nothing of ours: epochs and steps from what optimizer and loader show.

A framework's hook makes one PlainLoop and tells it two things: stepped() when an optimizer has
stepped, and, through a Pass, each batch that a loader gave. From these follow:

- a step ends when the optimizer that leads has stepped; the batches since the step before are its
  own, and the time spent waiting for them is its data wait;
- an epoch is a pass over the loader whose batches are consumed with steps in between. A pass
  without steps is none (an evaluation, a look at the data);
- of several optimizers the first to step leads, until it is gone or rests: for long, or for a whole
  pass that another one used. Steps of others are held back, and told when their optimizer leads.

Whatever says more goes first: while the script's own steps() or a framework's callback drives a
training, nothing is told from here. Into the epochs of epochs() without steps() go the steps.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from epochmeter import _quiet, _state
from epochmeter._pass import MARK as MARK
from epochmeter._pass import Loop, Tally, less
from epochmeter._pass import Pass as Pass
from epochmeter._recorder import Recorder, clock

# After so many steps of others without one of the leader's, the next to step leads.
LEADER_RESTS = 64


def _reference(thing: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


class _Held(NamedTuple):
    """A step that another optimizer than the leader made; counts are since the leader's latest."""

    t_ns: int
    source: Optional[Pass]
    tally: Tally
    losses: int
    loss: float


class PlainLoop(Loop):
    """The plain loop of this process, as one framework's hooks see it. Tells the Recorder."""

    def __init__(self, framework: str) -> None:
        self._framework = framework
        # The recorder told last, and the token of our training there: another one, or None, means
        # that it is over.
        self._recorder: Optional[Recorder] = None
        self._token: Optional[object] = None
        self._leader: Optional[Callable[[], Any]] = None
        self._others = 0
        # Steps since the leader's latest, and the one of the others that made them.
        self._held: List[_Held] = []
        self._candidate: Optional[Callable[[], Any]] = None
        self._feeding: Optional[Pass] = None
        # When the loader of the latest epoch had no more.
        self._fed_ns = 0
        self._fresh: List[Pass] = []
        self._losses = 0
        self._loss = 0.0
        # Those before the latest step of another since the leader's.
        self._foreign_losses = 0
        # A step of the leader had several: each is a part, also where a later step has only one.
        self._parts = False
        # True while a loss is wanted for sure; else idle() knows.
        self.reads_losses = False
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
                    if self._held:
                        self._held.clear()
                    self._step(recorder, steps, False)
                elif self._leads(optimizer):
                    self._catch_up(recorder, optimizer)
                    self._step(recorder, steps, False)
                else:
                    self._hold(optimizer)
                return
            recorder = _state.current() or _state.join()
            foreign = recorder is None or recorder.training and recorder.token is not self._token
            if recorder is None or foreign and not recorder.lacks_steps():
                self._forget()
            elif self._leads(optimizer) or not recorder.training:
                self._follow(_reference(optimizer))
                self._held.clear()
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
            if self._leader_rested(source):
                self._take_over()
            else:
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
        self._held.clear()
        self._losses = self._foreign_losses = 0
        self.reads_losses = False

    def _leads(self, optimizer: Any) -> bool:
        leader = self._leader() if self._leader is not None else None
        if leader is optimizer:
            self._others = 0
            return True
        self._others += 1
        if leader is not None and self._others <= LEADER_RESTS:
            return False
        self._follow(_reference(optimizer))
        return True

    def _follow(self, leader: Optional[Callable[[], Any]]) -> None:
        self._leader, self._others = leader, 0
        self._parts = False

    def _hold(self, optimizer: Any) -> None:
        self._foreign_losses = self._losses
        source, held = self._feeder(), self._held
        if self._candidate is None or self._candidate() is not optimizer:
            if held and held[-1].source is source:
                return
            # In another pass another one is the first.
            held.clear()
            self._candidate = _reference(optimizer)
        tally = (0, 0, 0) if source is None else source.tally()
        held.append(_Held(clock(), source, tally, self._losses, self._loss))

    def _leader_rested(self, source: Optional[Pass]) -> bool:
        """Whether `source` fed the held steps, and began after the leader's pass and last step."""
        feeding, recorder = self._feeding, self._own()
        if not self._held or source is None or recorder is None:
            return False
        if feeding is not None and not feeding.ended_ns and not feeding.given_up():
            return False
        led_ns = max(recorder.last_end_ns, self._fed_ns)
        return self._held[-1].source is source and source.began_ns > led_ns

    def _take_over(self) -> None:
        recorder, optimizer = self._own(), None if self._candidate is None else self._candidate()
        if recorder is not None and optimizer is not None:
            self._follow(self._candidate)
            self._catch_up(recorder, optimizer)
            if self._feeding is not None and self._feeding.ended_ns:
                self.exhausted(self._feeding)

    def _catch_up(self, recorder: Recorder, optimizer: Any) -> None:
        """Tells the held steps of `optimizer`, which leads now, each as of its own time."""
        held, self._held = self._held, []
        if self._candidate is None or self._candidate() is not optimizer:
            self._losses -= self._foreign_losses
            return
        left = {source: source.tally() for source in self._fresh}
        told: Dict[Optional[Pass], Tally] = {}
        losses, seen, last_ns = (self._losses, self._loss), 0, recorder.last_end_ns
        for step in held:
            source, ended_ns = step.source, 0
            tally = less(step.tally, told.get(source, (0, 0, 0)))
            told[source] = step.tally
            if step.t_ns <= last_ns:
                continue
            self._fresh = []
            if source is not None:
                source.settle(tally)
                self._fresh = [source] if source.fresh else []
                ended_ns, source.ended_ns = source.ended_ns, 0
            self._losses, self._loss, seen = step.losses - seen, step.loss, step.losses
            # However much of later was told; and memory is as it is now, so none is read for then.
            recorder._last_ns = last_ns
            recorder._memory_due_ns = max(recorder._memory_due_ns, step.t_ns + 1)
            last_ns = step.t_ns
            self._step(recorder, 1, False, step.t_ns)
            if source is not None:
                source.ended_ns = ended_ns
        for source, tally in left.items():
            source.settle(less(tally, told.get(source, (0, 0, 0))))
        self._fresh = [source for source in left if source.fresh]
        self._losses, self._loss = losses[0] - seen, losses[1]

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

    def _step(
        self, recorder: Recorder, steps: int, foreign: bool, t_ns: Optional[int] = None
    ) -> None:
        """`foreign`: epochs() tells the epochs, and only the step is ours to tell. Without `t_ns`
        it ends now.
        """
        if t_ns is None:
            t_ns = clock()
        fresh = self._fresh
        source = self._feeding
        if len(fresh) != 1 or fresh[0] is not source:
            source = self._feeder()
        if not recorder.training:
            self._begin(recorder, source)
        if source is not self._feeding and source is not None and not foreign:
            self._open_epoch(recorder, source)
        scalars = None
        if self._losses > 1:
            self._parts = True
        elif self._losses and not self._parts:
            scalars = {"loss": self._loss}
        self._losses = self._foreign_losses = 0
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
        self._parts = False
        recorder.before_end = self._finish
        if source is None:
            # Nobody saw where the first step began.
            recorder.last_end_ns = 0

    def _open_epoch(self, recorder: Recorder, source: Pass) -> None:
        self._close_epoch()
        self._feeding = source
        recorder.epoch_begin(recorder.passes, 0, "counted", source.began_ns)
        recorder.passes += 1

    def _finish(self) -> None:
        """The training ends."""
        if len(self._held) > 1 and self._leader_rested(self._held[-1].source):
            self._take_over()
        self._close_epoch()

    def _close_epoch(self) -> None:
        """The pass is over: at its last batch, or, left early, at its last step."""
        feeding, recorder = self._feeding, self._own()
        self._feeding = None
        if feeding is None:
            return
        self._fed_ns = feeding.ended_ns
        if feeding in self._fresh:
            feeding.settle()
            self._fresh.remove(feeding)
        if recorder is not None and recorder.epoch_open:
            ended_ns = max(feeding.ended_ns, recorder.last_end_ns)
            recorder.epoch_end(partial=not feeding.ended_ns, t_ns=ended_ns)
