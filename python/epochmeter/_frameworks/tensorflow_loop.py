# SPDX-License-Identifier: Apache-2.0
"""Custom TensorFlow loops, with no line of ours in them: steps by optimizer, epochs by dataset.

An optimizer that is applied eagerly is a step. Inside a tf.function Python runs only while it is
traced: then the outermost function being called is marked as one that trains, and from then on each
call of it is a step. A function may apply gradients in a loop of its own, several at each call: the
optimizer's own counter tells where it lies on the host; else such a function is not counted at all.
Epochs are passes over a tf.data dataset (or a distributed one) in Python. The loss is known where
an eager GradientTape was asked for gradients of a scalar on the host.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any, Callable, List, Optional

from epochmeter import _frameworks, _plain, _quiet
from epochmeter._frameworks.wrapping import beginning_pass, timing_pass, unseen, wrap

_loop = _plain.PlainLoop("tensorflow")

# The modules to wait for: those that define an optimizer with its method, and TensorFlow's own.
_OPTIMIZERS = {
    "keras.src.optimizers.base_optimizer": ("BaseOptimizer", "apply"),
    "keras.src.optimizers.loss_scale_optimizer": ("LossScaleOptimizer", "apply"),
    "keras.src.optimizers.optimizer": ("_BaseOptimizer", "apply_gradients"),
    "keras.src.optimizers.legacy.optimizer_v2": ("OptimizerV2", "apply_gradients"),
    "tf_keras.src.optimizers.optimizer": ("_BaseOptimizer", "apply_gradients"),
    "tf_keras.src.optimizers.legacy.optimizer_v2": ("OptimizerV2", "apply_gradients"),
}

_TRAINS = "_epochmeter_trains"


class _Local(threading.local):
    """Of this thread: wrapped calls of an optimizer, and of tf.functions, that are open."""

    applying = 0
    calling = 0


_local = _Local()
# The outermost functions being called, of all threads: replicas are traced in threads of their own.
_called: List[Any] = []


# So many calls of one step each, by the optimizer's counter, and it is not asked again.
_SURE = 3


class _Trains:
    """What tracing a function showed: the first optimizer it applies, and whether in a loop."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.looped = _in_loop()
        self.counted = _iterations(optimizer)
        self.singles = 0

    def steps(self, optimizer: Any) -> int:
        """How many steps the latest call made; 0 when nobody can tell."""
        if self.singles >= _SURE:
            return 1
        now = _iterations(optimizer)
        before, self.counted = self.counted, now
        if now is None or before is None:
            return 0 if self.looped else 1
        self.singles = self.singles + 1 if now - before == 1 else 0
        return max(0, now - before)


def _eager() -> bool:
    context: Any = sys.modules.get("tensorflow.python.eager.context")
    return context is not None and bool(context.executing_eagerly())


def _iterations(optimizer: Any) -> Optional[int]:
    """The optimizer's counter, where reading it waits for no device; also while tracing."""
    ops: Any = sys.modules.get("tensorflow.python.framework.ops")
    try:
        variable = optimizer.iterations
        variable = getattr(variable, "value", variable)
        variable = variable() if callable(variable) else variable
        if "CPU" not in variable.device:
            return None
        with ops.init_scope():
            return int(variable.numpy()) if _eager() else None
    except Exception:
        return None


def _in_loop() -> bool:
    """Whether what is being traced lies in the body of a loop."""
    ops: Any = sys.modules.get("tensorflow.python.framework.ops")
    graph = ops.get_default_graph() if ops is not None else None
    while graph is not None:
        name = getattr(graph, "name", "")
        if "while" in type(graph).__name__.lower() or "while_body" in name or "Dataset" in name:
            return True
        graph = getattr(graph, "outer_graph", None)
    return False


@_quiet.guarded
def _applied(optimizer: Any) -> None:
    if _eager():
        _loop.stepped(optimizer)
    elif _called:
        function = _called[-1]
        if not hasattr(function, _TRAINS):
            setattr(function, _TRAINS, _Trains(optimizer))


def _applying(original: Any) -> Any:
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        _local.applying += 1
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            _local.applying -= 1
        if _local.applying == 0:
            _applied(self)
        return result

    return apply


@_quiet.guarded
def _turned(trains: _Trains) -> None:
    """A function that trains was called once more."""
    optimizer = trains.optimizer()
    if optimizer is None:
        return
    steps = trains.steps(optimizer)
    if steps:
        _loop.stepped(optimizer, steps)
    elif trains.looped:
        _quiet.say_once(
            "looped",
            "a tf.function trains in a loop of its own, and its optimizer counts on a device; its "
            "steps are not recorded. Call it once per step, or use epochmeter.steps().",
        )


def _calling(original: Any) -> Any:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        inside, _local.calling = _local.calling, 1
        if not inside:
            _called.append(self)
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            if not inside:
                _local.calling = 0
                _called.remove(self)
        if inside:
            return result
        trains = self.__dict__.get(_TRAINS)
        if trains is not None and not _loop.idle() and _eager():
            _turned(trains)
        return result

    return __call__


@_quiet.guarded
def _note_loss(target: Any) -> None:
    if getattr(target, "shape", None) == () and not _frameworks.on_device(target):
        _loop.loss(float(target))


def _gradient(original: Any) -> Any:
    def gradient(self: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            result = original(self, target, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        if _eager() and not _loop.idle():
            _note_loss(target)
        return result

    return gradient


def _when_eager(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The wrapper of `make`, but what is traced goes straight to the original."""

    def both(original: Any) -> Any:
        made = make(original)

        def method(self: Any) -> Any:
            try:
                return made(self) if _eager() else original(self)
            except BaseException as error:
                unseen(error)
                raise

        return method

    return both


def install(module: Any) -> None:
    """Wraps what the module has of optimizers, functions, datasets and iterators."""
    name = module.__name__
    if name in _OPTIMIZERS:
        owner, method = _OPTIMIZERS[name]
        if hasattr(module, owner):
            wrap(getattr(module, owner), method, _applying)
    elif name == "tensorflow.python.eager.polymorphic_function.polymorphic_function":
        wrap(module.Function, "__call__", _calling)
    elif name == "tensorflow.python.eager.backprop":
        wrap(module.GradientTape, "gradient", _gradient)
    elif name == "tensorflow.python.data.ops.dataset_ops":
        wrap(module.DatasetV2, "__iter__", _when_eager(beginning_pass(_loop)))
    elif name == "tensorflow.python.data.ops.iterator_ops":
        wrap(module.OwnedIterator, "__next__", _when_eager(timing_pass))
    elif name == "tensorflow.python.distribute.input_lib":
        wrap(module.DistributedDataset, "__iter__", _when_eager(beginning_pass(_loop)))
        wrap(module.DistributedDatasetsFromFunction, "__iter__", _when_eager(beginning_pass(_loop)))
        wrap(module.DistributedIteratorBase, "__next__", _when_eager(timing_pass))
