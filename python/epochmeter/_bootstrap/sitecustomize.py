# SPDX-License-Identifier: Apache-2.0
"""Runs at the start of every Python below `epochmeter run`, which puts this folder on PYTHONPATH.

Takes its own folder out of sys.path again, sets up the watch for frameworks, and loads the
sitecustomize that Python would have loaded without us. Without EPOCHMETER_SOCKET, or with
EPOCHMETER saying no, only the first and the last happen. Any Python may come by, a version 2 too:
the syntax here is the oldest, and versions before 3.8 get no hooks.
"""

# mypy: allow-untyped-defs, allow-untyped-calls

import os
import sys


def _remove_own_folder():
    """Makes sys.path what it were without us; returns our folder's path."""
    folder = os.path.dirname(os.path.abspath(__file__))
    kept = []
    for entry in sys.path:
        if isinstance(entry, str) and os.path.abspath(entry or ".") == folder:
            sys.path_importer_cache.pop(entry, None)
        else:
            kept.append(entry)
    sys.path[:] = kept
    return folder


def _load(name, folders, register):
    """Executes the module `name` found in `folders` (None: sys.path); None when there is none."""
    if sys.version_info < (3, 5):
        return _load_old(name)
    from importlib._bootstrap import module_from_spec
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(name, folders)
    if spec is None or spec.loader is None:
        return None
    module = module_from_spec(spec)
    if register:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _load_old(name):
    import imp

    try:
        opened, path, description = imp.find_module(name)
    except ImportError:
        return None
    sys.modules.pop(name, None)
    return imp.load_module(name, opened, path, description)  # type: ignore[arg-type]


def _switched_on():
    # Words as in epochmeter/_switch.py; one that is not understood is reported by `epochmeter run`.
    word = os.environ.get("EPOCHMETER", "").strip().lower()
    allowed = word in ("", "1", "on", "true", "yes") and sys.version_info >= (3, 8)
    return allowed and bool(os.environ.get("EPOCHMETER_SOCKET"))


def _set_up(folder):
    from importlib.machinery import PathFinder

    package = os.path.dirname(folder)
    holder = os.path.dirname(package)
    watch = _load("_watch", [package], False)
    known = [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]
    if holder not in known:
        # Not on sys.path: what lies beside our package would become importable along with it.
        sys.meta_path.append(watch.Package(holder, PathFinder.find_spec))
    watch.watch()


def _main():
    folder = _remove_own_folder()
    try:
        if _switched_on():
            _set_up(folder)
    except Exception as error:
        try:
            sys.stderr.write(
                "epochmeter: automatic hooks are off (%s: %s); the training goes on without them\n"
                % (type(error).__name__, error)
            )
        except Exception:
            pass
    # What the other sitecustomize raises is its own affair and goes where it would have gone.
    if _load("sitecustomize", None, True) is None:
        # There is no other one: this is how the import of a missing sitecustomize ends.
        missing = ImportError("No module named 'sitecustomize'")
        missing.name = "sitecustomize"
        raise missing


if __name__ == "sitecustomize":
    _main()
