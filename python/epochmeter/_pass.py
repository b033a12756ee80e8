# SPDX-License-Identifier: Apache-2.0
"""A pass over a data loader, as a plain loop makes it: its batches, and the waiting for them."""

from __future__ import annotations

import weakref
from typing import Any, Optional, Tuple

from epochmeter import _quiet
from epochmeter._loop import batch_samples, length_of
from epochmeter._recorder import clock

# The attribute of a loader's iterator that holds its pass.
MARK = "_epochmeter"

# Batches, nanoseconds of wait for them, and their samples (None: not known).
Tally = Tuple[int, int, Optional[int]]


def less(one: Tally, other: Tally) -> Tally:
    samples = None if one[2] is None or other[2] is None else one[2] - other[2]
    return one[0] - other[0], one[1] - other[1], samples


class Loop:
    """Whom a pass tells: see _plain.PlainLoop."""

    # All that the loaders did since take_waiting(), whoever trains.
    waited_ns = 0
    batches = 0

    def delivered(self, source: "Pass") -> None:
        """The first batch of `source` since the latest step."""

    def exhausted(self, source: "Pass") -> None:
        """`source` has no more batches."""


class Pass:
    """One pass over a loader. Tell got() each batch, and end() when there are no more."""

    __slots__ = (
        "_loop", "began_ns", "ended_ns", "last_ns", "length", "nominal", "first", "gap", "steps",
        "fresh", "wait_ns", "samples", "_iterator",
    )  # fmt: skip

    def __init__(self, loop: Loop, loader: Any) -> None:
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

    def tally(self) -> Tally:
        """What came since the latest step."""
        return self.fresh, self.wait_ns, self.samples

    def settle(self, tally: Tally = (0, 0, 0)) -> None:
        self.fresh, self.wait_ns, self.samples = tally

    def more_steps(self) -> bool:
        """Whether steps may come after the last batch: left over, or fetched ahead of its step."""
        return self.fresh > 0 or self.steps > 1 and self.first > self.gap
