# SPDX-License-Identifier: Apache-2.0
"""Waits for a framework's module to be imported, then installs our hook into it.

Loaded at the start of every Python under `epochmeter run`, data workers too, long before anything
else of this package: it imports nothing but os and sys, and its cost per import of the training is
one look-up in a dictionary.

Only modules that hold the code itself are waited for, never a package that imports its parts on
first use: whichever way the training comes to them, the import passes through here. A module that
is half imported, or whose loader cannot be shadowed, is looked at again at later imports.
"""

from __future__ import annotations

import os
import sys

# As in typing, whose import would take more than all the rest: each Python of a job comes by here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

# One entry a hook: our file, and the modules to wait for, with each of which its install(module) is
# called. It may be called again with the same module, as after a reload: it marks what it wraps.
# What install() raises is said once on stderr, and that hook is off: but only once the package is
# imported as a whole, so it may be called with a module whose package lacks much yet.
HOOKS: Tuple[Tuple[str, Tuple[str, ...]], ...] = (
    ("paddle_hapi", ("paddle.hapi.model",)),
    ("paddle_loop", ("paddle.optimizer.optimizer", "paddle.amp.grad_scaler", "paddle.io.reader")),
    (
        "paddlenlp",
        (
            "paddlenlp.trainer.trainer_callback",
            "paddlenlp.trainer.trainer",
            "paddleformers.trainer.trainer_callback",
            "paddleformers.trainer.trainer",
        ),
    ),
    (
        "keras",
        (
            "keras.src.callbacks",
            "keras.src.backend.tensorflow.trainer",
            "keras.src.backend.jax.trainer",
            "keras.src.backend.torch.trainer",
            "keras.src.engine.training",
            "keras.callbacks",
            "keras.engine.training",
            "tf_keras.src.callbacks",
            "tf_keras.src.engine.training",
            "tensorflow.python.keras.callbacks",
            "tensorflow.python.keras.engine.training",
        ),
    ),
    (
        "tensorflow_loop",
        (
            "keras.src.optimizers.base_optimizer",
            "keras.src.optimizers.loss_scale_optimizer",
            "keras.src.optimizers.optimizer",
            "keras.src.optimizers.legacy.optimizer_v2",
            "tf_keras.src.optimizers.optimizer",
            "tf_keras.src.optimizers.legacy.optimizer_v2",
            "tensorflow.python.eager.polymorphic_function.polymorphic_function",
            "tensorflow.python.eager.backprop",
            "tensorflow.python.data.ops.dataset_ops",
            "tensorflow.python.data.ops.iterator_ops",
            "tensorflow.python.distribute.input_lib",
        ),
    ),
    (
        "torch_loop",
        (
            "torch.optim.optimizer",
            "torch.autograd",
            "torch.amp.grad_scaler",
            "torch.utils.data.dataloader",
        ),
    ),
    (
        "lightning",
        (
            "lightning.pytorch.trainer.call",
            "lightning.pytorch.trainer.trainer",
            "lightning.pytorch.trainer.connectors.logger_connector.logger_connector",
            "pytorch_lightning.trainer.call",
            "pytorch_lightning.trainer.trainer",
            "pytorch_lightning.trainer.connectors.logger_connector.logger_connector",
        ),
    ),
    ("transformers", ("transformers.trainer_callback", "transformers.trainer")),
)

# EPOCHMETER_HOOKS is what `epochmeter run --no-hooks` sets: start() installs none then either.
_SWITCH = "EPOCHMETER_HOOKS"

_complained: Dict[str, bool] = {}


def _complain(file: str, what: str, error: BaseException) -> None:
    key = f"{file} {error!r}"
    if key in _complained:
        return
    _complained[key] = True
    try:
        sys.stderr.write(
            f"epochmeter: cannot hook {what} ({type(error).__name__}: {error}); "
            "the training goes on without it\n"
        )
    except Exception:
        pass


def _install(name: str, module: Any) -> bool:
    """False when a hook did not fit, perhaps only because the package is half imported."""
    done = True
    for file, triggers in HOOKS:
        if name not in triggers:
            continue
        ours = "epochmeter._frameworks." + file
        try:
            __import__(ours)
            sys.modules[ours].install(module)
        except Exception as error:
            if _half_imported(sys.modules.get(name.partition(".")[0])):
                done = False
            else:
                _complain(file, name, error)
    return done


def _half_imported(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _whole(name: str) -> bool:
    """Whether the module and the package that it belongs to are imported, from first to last line."""
    names = (name, name.partition(".")[0])
    return not any(n not in sys.modules or _half_imported(sys.modules[n]) for n in names)


class Finder:
    """A meta path finder that finds nothing itself: asks the others, wraps one exec_module.

    It stays for good: a module may be reloaded, or imported anew after it was thrown out.
    """

    def __init__(self) -> None:
        self._names = {name for _, triggers in HOOKS for name in triggers}
        # Names to look at again, when the next import comes by.
        self._later: List[str] = []

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if self._later:
            self.look_again()
        if name not in self._names:
            return None
        spec = self._ask_others(name, path, target)
        if spec is not None and spec.loader is not None:
            try:
                self._wrap(name, spec.loader)
            except Exception:
                # A class as its own loader, or one without attributes of its own.
                self._later.append(name)
        return spec

    def look_again(self) -> None:
        """Hooks what was half imported when it came by, and by now is whole."""
        waiting, self._later = self._later, []
        for name in waiting:
            if not _whole(name) or not _install(name, sys.modules[name]):
                self._later.append(name)

    def hook_present(self) -> None:
        """Hooks what the training had imported before us."""
        self._later = [name for name in sorted(self._names) if name in sys.modules]
        self.look_again()

    def _ask_others(self, name: str, path: Any, target: Any) -> Any:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                return spec
        return None

    def _wrap(self, name: str, loader: Any) -> None:
        """Shadows exec_module on this one loader object until it has run `name` once.

        The loader may be asked for other modules too, and not at all for this one.
        """
        if isinstance(loader, type):
            raise TypeError("the loader is a class, which all modules share")
        original: Callable[[Any], Any] = loader.exec_module

        def exec_module(module: Any) -> Any:
            if getattr(module, "__name__", None) != name:
                return original(module)
            if vars(loader).get("exec_module") is exec_module:
                del loader.exec_module
            result = original(module)
            # A module may have put something else in its place.
            if not _install(name, sys.modules.get(name, module)):
                self._later.append(name)
            return result

        loader.exec_module = exec_module


class Package:
    """Finds only the package `epochmeter`, in a folder whose other contents stay out of sight."""

    def __init__(self, folder: str, find: Callable[..., Any]) -> None:
        self._folder = folder
        self._find = find

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return self._find(name, [self._folder]) if name == "epochmeter" and path is None else None


def _ours(finder: Any) -> bool:
    """By name: the start of Python loads this file apart from the package, as another module."""
    kind = type(finder)
    module = getattr(kind, "__module__", "").rpartition(".")[2]
    return module == "_watch" and kind.__name__ == "Finder"


def watch() -> Optional[Finder]:
    """Hooks what is imported already and waits for the rest. Calling it again does nothing new."""
    if os.environ.get(_SWITCH, "").strip().lower() in ("0", "off", "false", "no"):
        return None
    for finder in sys.meta_path:
        if _ours(finder):
            finder.look_again()  # type: ignore[attr-defined]
            return None
    finder = Finder()
    sys.meta_path.insert(0, finder)
    finder.hook_present()
    return finder
