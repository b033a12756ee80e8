# SPDX-License-Identifier: Apache-2.0
"""Plain PyTorch loops, with no line of ours in them: steps by optimizer, epochs by loader.

Used are PyTorch's own hook after each optimizer step, the gradient scaler's `step` (a step that it
skips counts: the loop has turned), the iterators of `DataLoader`, and the backward of a loss that
is on the CPU. A loss on a GPU is never read: that would make the training wait.

Code that torch.compile traces leaves before any of ours: the graph stays whole, and an optimizer
step that is compiled itself is not seen.
"""

from __future__ import annotations

import sys
import weakref
from types import FrameType
from typing import Any, Callable, Optional, Tuple, Type

from epochmeter import _plain, _quiet
from epochmeter._frameworks import dynamo
from epochmeter._frameworks.wrapping import MARK, beginning_pass, timing_pass, unseen, wrap

_loop = _plain.PlainLoop("torch")

# The module, for names that are looked up while torch.compile may be looking on.
torch: Any = None


def _find_is_compiling() -> bool:
    """Stands for PyTorch's function until PyTorch is imported whole; before 2.1 there is none."""
    global is_compiling
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", bool)
    return bool(is_compiling())


is_compiling: Callable[[], bool] = _find_is_compiling

# Optimizer steps so far, whoever trains: tells the gradient scaler's that skipped theirs.
_steps = 0


def take_waiting() -> Tuple[int, int]:
    """Nanoseconds inside DataLoaders and batches from them since the last call."""
    return _loop.take_waiting()


# Optimizer class -> how many classes of its line have a step() of their own.
_own_steps: "weakref.WeakKeyDictionary[Type[Any], int]" = weakref.WeakKeyDictionary()


def _inside_own_step(optimizer: Any) -> bool:
    """Whether this is a step() that a class above calls by super(): PyTorch tells of each.

    From the frames, so that an exception can leave nothing behind.
    """
    kind = type(optimizer)
    count = _own_steps.get(kind)
    if count is None:
        count = _own_steps[kind] = sum("step" in vars(owner) for owner in kind.__mro__) - 1
    if count < 2:
        return False
    # Ours is called by _stepped(), that by PyTorch's wrapper around step().
    frame: Optional[FrameType] = sys._getframe(2)
    wrapper = None if frame is None else frame.f_code
    while frame is not None:
        frame = frame.f_back
        if frame is not None and frame.f_code is wrapper:
            arguments = frame.f_locals.get("args")
            if arguments and arguments[0] is optimizer:
                return True
    return False


def _stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
    global _steps
    if is_compiling() or _inside_own_step(optimizer):
        return
    _steps += 1
    _loop.stepped(optimizer)


def _install_optimizer(module: Any) -> None:
    """torch.optim.optimizer."""
    if hasattr(module, MARK):
        return
    module.register_optimizer_step_post_hook(_stepped)
    setattr(module, MARK, True)


# The tensor that the scaler made last: its backward is that of a multiple of the loss. Weak: the
# graph behind it, with all its memory, is the training's to drop.
_scaled: Optional["weakref.ReferenceType[Any]"] = None


def _readable(tensor: Any) -> bool:
    """Whether reading is free of waiting and seen by nobody.

    A subclass, like the tensors of FakeTensorMode, may have no value; a dispatch mode of the
    script would see the reading, and count it.
    """
    return (
        type(tensor) is torch.Tensor
        and tensor.is_cpu
        and tensor.numel() == 1
        and not getattr(torch._C, "_len_torch_dispatch_stack", int)()
    )


def _note_loss(tensor: Any) -> None:
    try:
        if (_loop.reads_losses or not _loop.idle()) and _readable(tensor):
            _loop.loss(float(tensor.item()))
    except Exception as error:
        _quiet.fault("reading a loss", error)


def _backward(original: Any) -> Any:
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        global _scaled
        try:
            result = original(tensors, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        if is_compiling():
            return result
        if _scaled is not None and tensors is _scaled():
            _scaled = None
        elif isinstance(tensors, torch.Tensor):
            _note_loss(tensors)
        return result

    return backward


def _install_autograd(module: Any) -> None:
    """torch.autograd: Tensor.backward() goes through its backward()."""
    wrap(module, "backward", _backward)


def _scaler_step(original: Any) -> Any:
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        before = _steps
        try:
            result = original(self, optimizer, *args, **kwargs)
        except BaseException as error:
            unseen(error)
            raise
        if _steps == before and not is_compiling():
            _loop.stepped(optimizer)
        return result

    return step


def _scaler_scale(original: Any) -> Any:
    def scale(self: Any, outputs: Any) -> Any:
        global _scaled
        try:
            result = original(self, outputs)
        except BaseException as error:
            unseen(error)
            raise
        if result is not outputs and isinstance(outputs, torch.Tensor):
            _scaled = weakref.ref(result)
            _note_loss(outputs)
        return result

    return scale


def _install_scaler(module: Any) -> None:
    """torch.amp.grad_scaler."""
    wrap(module.GradScaler, "step", _scaler_step)
    wrap(module.GradScaler, "scale", _scaler_scale)


def _install_loader(module: Any) -> None:
    """torch.utils.data.dataloader: each `iter(loader)` begins a pass."""
    wrap(module._BaseDataLoaderIter, "__next__", timing_pass)
    wrap(module.DataLoader, "__iter__", beginning_pass(_loop))


_INSTALLERS = {
    "torch.optim.optimizer": _install_optimizer,
    "torch.autograd": _install_autograd,
    "torch.amp.grad_scaler": _install_scaler,
    "torch.utils.data.dataloader": _install_loader,
}


def install(module: Any) -> None:
    global torch
    if torch is None:
        torch = sys.modules["torch"]
        dynamo.keep_off(torch)
    _INSTALLERS[module.__name__](module)
