# SPDX-License-Identifier: Apache-2.0
"""The user's own training loops: steps(), epochs(), phase()."""

from __future__ import annotations

from types import TracebackType
from typing import (
    Any,
    Dict,
    Generic,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Tuple,
    Type,
    TypeVar,
    Union,
)

from epochmeter import _frameworks, _protocol, _quiet, _state
from epochmeter._quiet import guarded
from epochmeter._recorder import Recorder, clock

T = TypeVar("T")


def length_of(iterable: Any) -> Optional[int]:
    # PyTorch remembers that a loader of a stream was asked for its length, and warns by it later.
    if getattr(iterable, "_dataset_kind", 0) == 1:
        return None
    try:
        return len(iterable)
    except Exception:
        return None


def batch_samples(batch: Any, most: int) -> Optional[int]:
    """First dimension of a batch's first array, if it can be the number of samples (<= `most`)."""
    if type(batch) in (list, tuple) and batch:
        batch = batch[0]
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
    """One pass over a loader: where it stands in the recording, and its beginning and end."""

    def __init__(
        self, recorder: Recorder, iterable: Any, epoch: Optional[int], batch_size: Optional[int]
    ) -> None:
        self._recorder = recorder
        self._own_epoch = False
        # Samples of a step: told, or read from each batch where the loader's own number bounds it.
        self.size = batch_size
        self.most: Optional[int] = None
        # That of the training while the steps of this pass are told; no other one is ever it.
        self.token = object()
        self._begin(iterable, epoch)

    @guarded
    def _begin(self, iterable: Any, epoch: Optional[int]) -> None:
        recorder = self._recorder
        nominal = getattr(iterable, "batch_size", None)
        nominal = nominal if type(nominal) is int else None
        if self.size is None:
            self.most = nominal
        if not recorder.training or recorder.origin == "hook":
            recorder.train_begin(
                "loop",
                "client",
                steps_per_epoch=length_of(iterable),
                batch_size=self.size or nominal,
            )
        if not recorder.epoch_open or epoch is not None and epoch != recorder.epoch:
            self._own_epoch = True
            if epoch is None:
                recorder.epoch_begin(recorder.passes, 0, "counted")
            else:
                recorder.epoch_begin(int(epoch), 0 if epoch == 0 else None, "user")
        recorder.passes += 1
        self.token = recorder.token

    def look_at(self, batch: Any) -> None:
        """Takes the number of samples from the batch."""
        try:
            self.size = None
            self.size = batch_samples(batch, self.most or 0)
        except Exception as error:
            self.failed(error)

    def failed(self, error: Exception) -> None:
        _quiet.fault("steps()", error)
        if _quiet.broken():
            self.token = object()

    @guarded
    def end(self, finished: bool) -> None:
        recorder = self._recorder
        if recorder.token is not self.token:
            return
        if not finished and recorder.in_step:
            try:
                recorder.step_end(clock(), self.size, None, True)
            except Exception as error:
                self.failed(error)
        if self._own_epoch:
            recorder.epoch_end(partial=not finished)
        elif not finished:
            recorder.epoch_left_early = True


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
        # A loop inside an evaluation, or inside a framework's own training, has no steps of its
        # own.
        if recorder is None or recorder.evals or recorder.framework_trains():
            return iter(self._iterable)
        return self._timed(recorder)

    def _timed(self, recorder: Recorder) -> Iterator[T]:
        this = _Pass(recorder, self._iterable, self._epoch, self._batch_size)
        finished = False
        began_ns = clock()
        # The batch is handed over by pop: a local name would keep it alive while the next one
        # loads.
        box: List[T] = []
        try:
            batches = iter(self._iterable)
            while True:
                try:
                    box.append(next(batches))
                except StopIteration:
                    finished = True
                    return
                # In place what could be two methods: calls are a good part of a step's cost.
                if recorder.token is this.token:
                    recorder.in_step, recorder.wait_ns = True, clock() - began_ns
                    if this.most is not None:
                        this.look_at(box[0])
                yield box.pop()
                t_ns = clock()
                if recorder.token is this.token and recorder.in_step:
                    try:
                        recorder.step_end(t_ns, this.size)
                    except Exception as error:
                        this.failed(error)
                    began_ns = clock()
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
    token = _training_begin(recorder, length_of(sequence), base)
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
    recorder.train_begin("loop", "client", epochs=count, epoch_base=base)
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
    # Else an exception may be on its way, which nobody can see from here: the training stays open
    # until the exception hook, the next training or the end of the process says more.


def log(values: Optional[Mapping[str, Any]], scalars: Dict[str, Any]) -> None:
    """See epochmeter.log()."""
    # As near(), in place: calls are a good part of a step's cost.
    recorder = _state._recorder or _state.join()
    if recorder is None or not recorder.alive:
        return
    try:
        if values:
            scalars = {**values, **scalars}
        in_step = recorder.in_step and not recorder.phases
        if in_step and _protocol.collect_plain(recorder.pending, scalars):
            return
        for name, value in scalars.items():
            if type(value) is not float and type(value) is not int and _frameworks.on_device(value):
                scalars = _without_devices(scalars)
                break
        recorder.log(scalars)
    except Exception as error:
        _quiet.fault("log()", error)


def _without_devices(scalars: Dict[str, Any]) -> Dict[str, Any]:
    """The values that can be read without waiting for a device; says once what was left out."""
    left = [name for name, value in scalars.items() if _frameworks.on_device(value)]
    _quiet.say_once(
        "tensor",
        f"log({left[0]}=...) got a tensor on a device; reading it would make the training wait, so "
        "it is left out. Pass a number, as from .item().",
    )
    return {name: value for name, value in scalars.items() if name not in left}


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
