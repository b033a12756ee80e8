# SPDX-License-Identifier: Apache-2.0
"""The user's own training loops: steps(), epochs(), phase()."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Dict, Generic, Iterable, Iterator, List, Optional, Tuple, Type, TypeVar, Union

from epochmeter import _protocol, _state
from epochmeter._quiet import guarded
from epochmeter._recorder import Recorder, clock

T = TypeVar("T")


def _length(iterable: Any) -> Optional[int]:
    try:
        return len(iterable)
    except Exception:
        return None


def _samples(batch: Any, most: int) -> Optional[int]:
    """First dimension of a batch's first array, if it can be the number of samples (<= `most`)."""
    for _ in range(3):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            size = int(shape[0]) if len(shape) else 0
            return size if 0 < size <= most else None
        if isinstance(batch, dict) and batch:
            batch = next(iter(batch.values()))
        elif isinstance(batch, (list, tuple)) and batch:
            batch = batch[0]
        else:
            return None
    return None


class _Pass:
    """One pass over a loader: its bookkeeping. Every method is safe to call at any time."""

    def __init__(self, recorder: Recorder, iterable: Any, epoch: Optional[int]) -> None:
        self._recorder = recorder
        self._own_epoch = False
        self._most = getattr(iterable, "batch_size", None)
        self._size: Optional[int] = None
        self._began = False
        self._begin(iterable, epoch)
        self._token = recorder.token
        self._waiting_ns = clock()

    @guarded
    def _begin(self, iterable: Any, epoch: Optional[int]) -> None:
        recorder = self._recorder
        if not recorder.training:
            batch_size = self._most if type(self._most) is int else None
            recorder.train_begin(
                "loop", steps_per_epoch=_length(iterable), batch_size=batch_size
            )
        if not recorder.epoch_open or epoch is not None and epoch != recorder.epoch:
            self._own_epoch = True
            if epoch is None:
                recorder.epoch_begin(recorder.passes, 0, "counted")
            else:
                recorder.epoch_begin(int(epoch), 0 if epoch == 0 else None, "user")
        recorder.passes += 1
        self._began = True

    def _alive(self) -> bool:
        return self._began and self._recorder.training and self._recorder.token is self._token

    @guarded
    def got(self, batch: Any, batch_size: Optional[int]) -> None:
        """The loader gave a batch."""
        t_ns = clock()
        if not self._alive():
            return
        if batch_size is not None:
            self._size = batch_size
        else:
            self._size = _samples(batch, self._most) if type(self._most) is int else None
        self._recorder.step_begin(t_ns, t_ns - self._waiting_ns)

    @guarded
    def done(self, partial: bool = False) -> None:
        """The loop's body is through with the batch."""
        t_ns = clock()
        if self._alive() and self._recorder.in_step:
            self._recorder.step_end(t_ns, self._size, partial=partial)
        self._waiting_ns = clock()

    @guarded
    def end(self, finished: bool) -> None:
        if not finished:
            self.done(partial=True)
        if not self._alive():
            return
        if self._own_epoch:
            self._recorder.epoch_end(partial=not finished)
        elif not finished:
            self._recorder.epoch_left_early = True


class Steps(Generic[T]):
    """An iterable like the one it wraps, that times each step. See epochmeter.steps()."""

    def __init__(
        self, iterable: Iterable[T], epoch: Optional[int], batch_size: Optional[int]
    ) -> None:
        self._iterable = iterable
        self._epoch = epoch
        self._batch_size = batch_size

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[T]:
        recorder = _state.join()
        # A loop inside an evaluation, or inside a framework's own training, has no steps of its own.
        if recorder is None or recorder.evals or recorder.framework_trains():
            return iter(self._iterable)
        return self._timed(recorder)

    def _timed(self, recorder: Recorder) -> Iterator[T]:
        this = _Pass(recorder, self._iterable, self._epoch)
        finished = False
        # The batch is handed over by pop: a local name would keep it alive while the next one loads.
        box: List[T] = []
        try:
            batches = iter(self._iterable)
            while True:
                try:
                    box.append(next(batches))
                except StopIteration:
                    finished = True
                    return
                this.got(box[0], self._batch_size)
                yield box.pop()
                this.done()
        finally:
            this.end(finished)


def epochs(numbers: Union[int, Iterable[int]]) -> Iterator[int]:
    """See epochmeter.epochs()."""
    sequence: Iterable[int] = range(numbers) if isinstance(numbers, int) else numbers
    recorder = _state.join()
    if recorder is None or recorder.framework_trains():
        yield from sequence
        return
    base = 0 if isinstance(numbers, int) else None
    token = _training_begin(recorder, _length(sequence), base)
    completed = False
    try:
        for epoch in sequence:
            _epoch_begin(recorder, token, epoch, base)
            yield epoch
            _epoch_end(recorder, token)
        completed = True
    finally:
        _training_end(recorder, token, completed)


@guarded
def _training_begin(recorder: Recorder, count: Optional[int], base: Optional[int]) -> object:
    recorder.train_begin("loop", epochs=count, epoch_base=base)
    return recorder.token


@guarded
def _epoch_begin(recorder: Recorder, token: object, epoch: int, base: Optional[int]) -> None:
    if recorder.training and recorder.token is token:
        recorder.epoch_begin(int(epoch), base, "user")


@guarded
def _epoch_end(recorder: Recorder, token: object) -> None:
    if recorder.training and recorder.token is token:
        recorder.epoch_end(partial=recorder.epoch_left_early)


@guarded
def _training_end(recorder: Recorder, token: object, completed: bool) -> None:
    if not recorder.training or recorder.token is not token:
        return
    if recorder.epoch_open:
        # The body was left by break or return; whole when its steps had come to their end.
        recorder.epoch_end(partial=recorder.epoch_left_early or recorder.in_step)
    if completed:
        recorder.train_end("completed")
    # Else an exception may be on its way, which nobody can see from here: the training stays open until
    # the exception hook, the next training or the end of the process says more.


class Phase:
    """See epochmeter.phase(). May be entered again, also while it is open."""

    def __init__(self, name: str) -> None:
        self._name = _protocol.name(str(name)) or "phase"
        self._open: List[Tuple[Optional[Recorder], Optional[Dict[str, _protocol.Real]], int]] = []

    def __enter__(self) -> "Phase":
        recorder = _state.near()
        values = self._begin(recorder) if recorder is not None else None
        self._open.append((recorder, values, clock()))
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        recorder, values, began_ns = self._open.pop()
        if recorder is not None and values is not None:
            self._end(recorder, values, began_ns, kind is not None)

    @guarded
    def _begin(self, recorder: Recorder) -> Dict[str, _protocol.Real]:
        return recorder.phase_begin(self._name)

    @guarded
    def _end(
        self,
        recorder: Recorder,
        values: Dict[str, _protocol.Real],
        began_ns: int,
        failed: bool,
    ) -> None:
        recorder.phase_end(self._name, values, began_ns, failed)
