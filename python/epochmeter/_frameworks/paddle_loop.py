# SPDX-License-Identifier: Apache-2.0
"""Plain PaddlePaddle loops, with no line of ours in them: steps by optimizer, epochs by loader.

Wrapped are `step` and `minimize` of each optimizer class that has its own, `step` and `minimize`
of the gradient scaler (a step that it skips counts: the loop has turned), the iterators of
`paddle.io.DataLoader`, and `backward` of a tensor on the CPU, which is the loss. Static graphs are
built once and run elsewhere: nothing is counted there.
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Optional, Type

from epochmeter import _plain, _quiet
from epochmeter._frameworks.wrapping import MARK, beginning_pass, timing_pass, unseen, wrap

_loop = _plain.PlainLoop("paddle")
# For a callback that owns the training: what the loader took since it asked last.
take_waiting = _loop.take_waiting


def _static() -> bool:
    """Whether a static graph is being built: then a call builds, and computes nothing."""
    paddle: Any = sys.modules.get("paddle")
    return paddle is not None and not paddle.in_dynamic_mode()


class _Depth(threading.local):
    """How many wrapped calls are open in this thread: the outermost is the step."""

    value = 0


_depth = _Depth()


def _stepping(the_optimizer: Callable[..., Any]) -> Callable[[Any], Any]:
    """A call is a step of the optimizer that `the_optimizer` takes from its arguments."""

    def make(original: Any) -> Any:
        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            _depth.value += 1
            try:
                result = original(self, *args, **kwargs)
            except BaseException as error:
                unseen(error)
                raise
            finally:
                _depth.value -= 1
            if _depth.value == 0 and not _static():
                _loop.stepped(the_optimizer(self, *args))
            return result

        return step

    return make


def _itself(self: Any, *_: Any) -> Any:
    return self


def _argument(self: Any, optimizer: Any = None, *_: Any) -> Any:
    return self if optimizer is None else optimizer


def _wrap_steps(owner: Type[Any], the_optimizer: Callable[..., Any]) -> None:
    wrap(owner, "step", _stepping(the_optimizer))
    wrap(owner, "minimize", _stepping(the_optimizer))


def _making(original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _wrap_backward()
        try:
            original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise

    return __init__


def _wrap_class(owner: Type[Any]) -> None:
    """Its own methods only. Its __init__ too: AdamW's, for one, does not call its base's."""
    _wrap_steps(owner, _itself)
    wrap(owner, "__init__", _making)


def _wrap_below(owner: Type[Any]) -> None:
    _wrap_class(owner)
    for below in owner.__subclasses__():
        _wrap_below(below)


def _install_optimizer(module: Any) -> None:
    """paddle.optimizer.optimizer: its class, those below it, and those made below it later."""
    base = module.Optimizer
    if hasattr(base, MARK):
        return
    setattr(base, MARK, True)
    _wrap_below(base)
    inherited = vars(base).get("__init_subclass__")

    def __init_subclass__(cls: Type[Any], **kwargs: Any) -> None:
        if inherited is None:
            super(base, cls).__init_subclass__(**kwargs)
        else:
            inherited.__get__(None, cls)(**kwargs)
        try:
            _wrap_class(cls)
        except Exception as error:
            _quiet.fault("watching an optimizer", error)

    made: Any = __init_subclass__
    base.__init_subclass__ = classmethod(made)


# id of the tensor that the scaler made last: its backward is that of a multiple of the loss. No
# reference, which would keep its graph alive.
_scaled: Optional[int] = None


def _note_loss(tensor: Any) -> None:
    """Reads a loss that is on the CPU. On a device that would make the training wait."""
    try:
        wanted = _loop.reads_losses or not _loop.idle()
        # Of the ways to ask these are the quick ones: `size` takes 8 us, `float` 19.
        if wanted and tensor.place.is_cpu_place() and max(tensor.shape, default=1) == 1:
            _loop.loss(float(tensor.item()))
    except Exception as error:
        _quiet.fault("reading a loss", error)


def _backward(original: Any) -> Any:
    def backward(self: Any, *args: Any, **kwargs: Any) -> Any:
        global _scaled
        try:
            result = original(self, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        if id(self) == _scaled:
            _scaled = None
        else:
            _note_loss(self)
        return result

    return backward


def _wrap_backward() -> None:
    """Only once an optimizer is made: Paddle gives its tensors this method late."""
    tensor: Any = getattr(sys.modules.get("paddle"), "Tensor", None)
    if tensor is not None:
        wrap(tensor, "backward", _backward)


def _scale(original: Any) -> Any:
    def scale(self: Any, var: Any) -> Any:
        global _scaled
        try:
            result = original(self, var)
        except BaseException as error:
            unseen(error)
            raise
        if result is not var:
            _scaled = id(result)
            _note_loss(var)
        return result

    return scale


def _install_scaler(module: Any) -> None:
    """paddle.amp.grad_scaler."""
    for owner in (module.AmpScaler, module.GradScaler):
        _wrap_steps(owner, _argument)
    # GradScaler's own calls this one.
    wrap(module.AmpScaler, "scale", _scale)


def _install_loader(module: Any) -> None:
    """paddle.io.reader: each `iter(loader)` begins a pass."""
    for name in ("_DataLoaderIterSingleProcess", "_DataLoaderIterMultiProcess"):
        wrap(getattr(module, name), "__next__", timing_pass)
    wrap(module.DataLoader, "__iter__", beginning_pass(_loop))


_INSTALLERS = {
    "paddle.optimizer.optimizer": _install_optimizer,
    "paddle.amp.grad_scaler": _install_scaler,
    "paddle.io.reader": _install_loader,
}


def install(module: Any) -> None:
    _INSTALLERS[module.__name__](module)
