# SPDX-License-Identifier: Apache-2.0
"""Plain PaddlePaddle loops, with no line of ours in them: steps by optimizer, epochs by loader.

Wrapped are `step` and `minimize` of each optimizer class that has its own, `step` and `minimize`
of the gradient scaler (a step that it skips counts: the loop has turned), the iterators of
`paddle.io.DataLoader`, and `backward` of a tensor on the CPU, which is the loss. Static graphs are
built once and run elsewhere: nothing is counted there.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import Any, Callable, Optional, Type

from epochmeter import _plain, _quiet
from epochmeter._recorder import clock

_loop = _plain.PlainLoop("paddle")

_MARK = "_epochmeter"


def _static() -> bool:
    """Whether a static graph is being built: then a call builds, and computes nothing."""
    paddle: Any = sys.modules.get("paddle")
    return paddle is not None and not paddle.in_dynamic_mode()


class _Depth(threading.local):
    """How many wrapped calls are open in this thread: the outermost is the step."""

    value = 0


_depth = _Depth()


def _stepping(original: Callable[..., Any], the_optimizer: Callable[..., Any]) -> Any:
    """`original` as a step of the optimizer that the second function takes from its arguments."""

    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        _depth.value += 1
        try:
            result = original(self, *args, **kwargs)
        finally:
            _depth.value -= 1
        if _depth.value == 0 and not _static():
            _loop.stepped(the_optimizer(self, *args))
        return result

    setattr(step, _MARK, True)
    return step


def _wrap(owner: Type[Any], name: str, the_optimizer: Callable[..., Any]) -> None:
    original = vars(owner).get(name)
    if original is not None and not hasattr(original, _MARK):
        setattr(owner, name, _stepping(original, the_optimizer))


def _itself(self: Any, *_: Any) -> Any:
    return self


def _argument(self: Any, optimizer: Any = None, *_: Any) -> Any:
    return self if optimizer is None else optimizer


def _wrap_optimizer(owner: Type[Any]) -> None:
    _wrap(owner, "step", _itself)
    _wrap(owner, "minimize", _itself)
    for below in owner.__subclasses__():
        _wrap_optimizer(below)


# The tensor that the scaler made last: its backward is that of a multiple of the loss.
_scaled: Any = None


def _note_loss(tensor: Any) -> None:
    """Reads a loss that is on the CPU. On a device that would make the training wait."""
    try:
        if not _loop.idle() and tensor.place.is_cpu_place() and tensor.size == 1:
            _loop.loss(float(tensor))
    except Exception as error:
        _quiet.fault("reading a loss", error)


def _wrap_backward() -> None:
    tensor: Any = getattr(sys.modules.get("paddle"), "Tensor", None)
    original = getattr(tensor, "backward", None)
    if original is None or hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _scaled
        result = original(self, *args, **kwargs)
        if self is _scaled:
            _scaled = None
        else:
            _note_loss(self)
        return result

    setattr(backward, _MARK, True)
    tensor.backward = backward


def _wrap_scale(owner: Type[Any]) -> None:
    original = vars(owner).get("scale")
    if original is None or hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def scale(self: Any, var: Any) -> Any:
        global _scaled
        result = original(self, var)
        if result is not var:
            _scaled = result
            _note_loss(var)
        return result

    setattr(scale, _MARK, True)
    setattr(owner, "scale", scale)


def _install_optimizer(module: Any) -> None:
    """paddle.optimizer.optimizer: its class, and those made below it from now on."""
    base = module.Optimizer
    _wrap_optimizer(base)
    original = base.__init__
    if hasattr(original, _MARK):
        return

    # An optimizer class of its own calls this, whenever and wherever it was defined.
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _wrap_backward()
        for owner in type(self).__mro__:
            if owner is base:
                break
            _wrap(owner, "step", _itself)
            _wrap(owner, "minimize", _itself)
        original(self, *args, **kwargs)

    setattr(__init__, _MARK, True)
    base.__init__ = __init__


def _install_scaler(module: Any) -> None:
    """paddle.amp.grad_scaler."""
    for owner in (module.AmpScaler, module.GradScaler):
        _wrap(owner, "step", _argument)
        _wrap(owner, "minimize", _argument)
        _wrap_scale(owner)


def _wrap_next(owner: Type[Any]) -> None:
    original = vars(owner).get("__next__")
    if original is None or hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        this: Optional[_plain.Pass] = self.__dict__.get(_MARK)
        if this is None:
            return original(self)
        began_ns = clock()
        try:
            batch = original(self)
        except StopIteration:
            this.end()
            raise
        this.got(clock() - began_ns, batch)
        return batch

    setattr(__next__, _MARK, True)
    setattr(owner, "__next__", __next__)


def _install_loader(module: Any) -> None:
    """paddle.io.reader: each `iter(loader)` begins a pass."""
    for name in ("_DataLoaderIterSingleProcess", "_DataLoaderIterMultiProcess"):
        _wrap_next(getattr(module, name))
    loader = module.DataLoader
    original = loader.__iter__
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        this = _plain.Pass(_loop, self)
        iterator = original(self)
        # Persistent workers give the same iterator again: it carries the new pass.
        iterator.__dict__[_MARK] = this
        return iterator

    setattr(__iter__, _MARK, True)
    loader.__iter__ = __iter__


_INSTALLERS = {
    "paddle.optimizer.optimizer": _install_optimizer,
    "paddle.amp.grad_scaler": _install_scaler,
    "paddle.io.reader": _install_loader,
}


def install(module: Any) -> None:
    _INSTALLERS[module.__name__](module)
