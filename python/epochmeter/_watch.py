# SPDX-License-Identifier: Apache-2.0
"""Waits for a framework's module to be imported, then installs our hook into it.

Loaded at the start of every Python under `epochmeter run`, long before anything else of this
package: it imports nothing but sys, and its cost per import of the training is one look-up in a
dictionary.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Optional, Tuple

# Module to wait for -> our module with install(module).
HOOKS: Dict[str, str] = {
    "paddle.hapi.model": "epochmeter._frameworks.paddle_hapi",
}


def _complain(what: str, error: BaseException) -> None:
    try:
        sys.stderr.write(
            f"epochmeter: cannot hook {what} ({type(error).__name__}: {error}); "
            "the training goes on without it\n"
        )
    except Exception:
        pass


def _install(name: str, module: Any) -> None:
    try:
        __import__(HOOKS[name])
        sys.modules[HOOKS[name]].install(module)
    except Exception as error:
        _complain(name, error)


class Finder:
    """A meta path finder that finds nothing itself: asks the others, wraps one exec_module."""

    def __init__(self) -> None:
        self._waiting: Dict[str, bool] = {name: True for name in HOOKS if name not in sys.modules}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._waiting:
            return None
        spec = self._ask_others(name, path, target)
        if spec is not None and spec.loader is not None:
            try:
                self._wrap(name, spec.loader)
            except Exception as error:
                self._done(name)
                _complain(name, error)
        return spec

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
        """Shadows exec_module on this one loader object until it has run once."""
        original: Callable[[Any], Any] = loader.exec_module

        def exec_module(module: Any) -> Any:
            del loader.exec_module
            result = original(module)
            self._done(name)
            _install(name, module)
            return result

        loader.exec_module = exec_module

    def _done(self, name: str) -> None:
        """`name` needs no more watching; with nothing left the finder goes away."""
        self._waiting.pop(name, None)
        if not self._waiting and self in sys.meta_path:
            sys.meta_path.remove(self)


class Package:
    """Finds only the package `epochmeter`, in a folder whose other contents stay out of sight."""

    def __init__(self, folder: str, find: Callable[..., Any]) -> None:
        self._folder = folder
        self._find = find

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return self._find(name, [self._folder]) if name == "epochmeter" and path is None else None


def _present() -> Tuple[str, ...]:
    return tuple(type(finder).__name__ for finder in sys.meta_path if _ours(finder))


def _ours(finder: Any) -> bool:
    return getattr(type(finder), "__module__", "").rpartition(".")[2] == "_watch"


def watch() -> Optional[Finder]:
    """Hooks what is imported already and waits for the rest. Calling it again does nothing new."""
    for name in HOOKS:
        module = sys.modules.get(name)
        if module is not None and hasattr(module, "config_callbacks"):
            _install(name, module)
    if "Finder" in _present():
        return None
    finder = Finder()
    if finder._waiting:
        sys.meta_path.insert(0, finder)
    return finder
