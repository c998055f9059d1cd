# SPDX-License-Identifier: MIT
"""Where functions come from: the key by which the host names one, and how a worker finds it.

A function travels by reference, as module and name. The main file of a script is imported by the
worker under the name `__mp_main__`, as multiprocessing's spawn does, so that its functions can be
found and its `if __name__ == "__main__":` part does not run. What has no name that a worker can
import (lambdas, nested functions, all of a notebook) travels by value where cloudpickle is
installed. Workers import this module, so it imports as little as it can.
"""

from __future__ import annotations

import os
import sys
import types
import warnings
import weakref
from _pickle import PicklingError

from . import codec

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The first byte of a key: may the worker keep what it has made of it?
_REFERENCE = b"R"  # a module and a name: yes
_CODE = b"C"  # a function by value: yes, within _KEPT
_FRESH = b"F"  # an object with state of its own: made anew for each task

# How a pickle ends that is a module and a name, and nothing else.
_IS_NAME = b"\x93\x94."

# How many functions by value a worker keeps, and how large they may be: a notebook makes a new one
# with each run of a cell, and one may carry an array.
_KEPT = 64
_KEPT_SIZE = 1 << 20

# What to tell somebody whose main file starts a pool when it is imported.
GUARD = (
    'put the part that makes an Executor or a Pool under `if __name__ == "__main__":`: a worker '
    "imports the main file to find its functions"
)

IN_WORKER = (
    "a worker process cannot make an Executor or a Pool: make it in the program that submits the "
    "tasks, or in a program that the task starts with subprocess"
)

_BOTH_WAYS = (
    "gpudispatch sends functions by reference: define it with `def` at the top level of a module "
    "or script that a worker can import, or `pip install cloudpickle`, with which lambdas, nested "
    "functions and those of notebooks are sent by value"
)

# --- host: from a callable to its key -----------------------------------------------------------

# By identity, and without keeping a function alive: the weak reference takes its entry along.
_keys: dict[int, tuple[bytes, weakref.ref[Any]]] = {}


def reference(fn: Callable[..., Any]) -> bytes:
    """The key of a callable, by which a worker finds it. Raises PicklingError where it cannot."""
    entry = _keys.get(id(fn))
    if entry is not None and entry[1]() is fn:
        return entry[0]
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    frame = _frame(fn)
    if frame[0] == codec.PICKLE and frame.endswith(_IS_NAME):
        key = _REFERENCE + frame
        _remember(fn, key)
        return key
    return (_CODE if isinstance(fn, (types.FunctionType, type)) else _FRESH) + frame


def _frame(fn: Any) -> bytes:
    try:
        if _is_typed_in(fn):
            frame = codec.encode_by_value(fn)
        else:
            frame = bytes(codec.join(codec.encode(codec.VALUE, fn, cuda="error")))
            if codec.main_by_value and b"__main__" in frame and not codec.can_by_value():
                frame = None
    except codec.CudaError:
        raise
    except (PicklingError, AttributeError, TypeError) as error:
        raise _refused(fn, error) from error
    if frame is None:
        raise _refused(fn, None)
    return frame


def _remember(fn: Any, key: bytes) -> None:
    number = id(fn)

    def forget(_: object, number: int = number, keys: Any = _keys) -> None:
        keys.pop(number, None)

    try:
        _keys[number] = key, weakref.ref(fn, forget)
    except TypeError:
        pass


def _is_typed_in(fn: Any) -> bool:
    """Whether it was typed at a prompt, which may run after a file (python -i)."""
    in_main = getattr(fn, "__module__", None) in ("__main__", "__mp_main__")
    code = getattr(fn, "__code__", None)
    return in_main and code is not None and code.co_filename.startswith("<")


def _refused(fn: Any, error: Exception | None) -> PicklingError:
    what = f"cannot send {_described(fn)}"
    if error is None or _is_typed_in(fn):
        what += " (its __main__ is no file that a worker can import)"
    if error is not None and codec.can_by_value():
        return PicklingError(f"{what} by value: {type(error).__name__}: {error}")
    return PicklingError(f"{what}: {error}; {_BOTH_WAYS}" if error else f"{what}; {_BOTH_WAYS}")


def _described(fn: Any) -> str:
    name = getattr(fn, "__qualname__", None)
    if name is None:
        return f"an object of type {codec.type_name(type(fn))}"
    return f"{getattr(fn, '__module__', None) or ''}.{name}".lstrip(".")


# --- host: what workers take over ---------------------------------------------------------------


def host_main() -> dict[str, str]:
    """How a worker can import this process's `__main__`: kind "name", "path", "zip" or "none"."""
    main = sys.modules.get("__main__")
    facts = _main_facts(main)
    codec.main_by_value = facts["kind"] == "none"
    return facts


def _main_facts(main: Any) -> dict[str, str]:
    if main is None:
        return {"kind": "none", "value": ""}
    spec = getattr(main, "__spec__", None)
    file = getattr(main, "__file__", None)
    name = getattr(spec, "name", None)
    if name == "__main__" and file and os.path.basename(file) == "__main__.py":
        # `python folder` and `python app.zip`
        return {"kind": "zip", "value": os.path.abspath(os.path.dirname(file))}
    if name is not None and name != "__main__":  # `python -m name`
        return {"kind": "name", "value": name}
    # A program read from stdin has a `__file__` too: "<stdin>".
    if file is None or not os.path.isfile(file):
        return {"kind": "none", "value": ""}
    return {"kind": "path", "value": os.path.abspath(file)}


def host_state(*, directory: bool = True) -> dict[str, Any]:
    """What a worker takes over from this process: for `adopt`.

    Without `directory` a worker stays in the one it was started in: option `cwd`.
    """
    # Objects of classes that a worker knows as `__mp_main__.Name` are found here by that name.
    if "__main__" in sys.modules:
        sys.modules.setdefault("__mp_main__", sys.modules["__main__"])
    here: str | None
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        here = None
    return {
        "path": [_fixed(entry, here) for entry in sys.path if isinstance(entry, str)],
        "argv": list(getattr(sys, "argv", [])),
        "directory": here if directory else None,
        "filters": _host_filters(),
        "main": host_main(),
        "authkey": _authkey(),
    }


def _authkey() -> bytes | None:
    """The key of this process's managers, without which a worker cannot use their proxies."""
    process = sys.modules.get("multiprocessing.process")
    return None if process is None else bytes(process.current_process().authkey)


def _fixed(entry: str, here: str | None) -> str:
    """An entry of `sys.path` that means the same in another directory."""
    if here is None or os.path.isabs(entry):
        return entry
    fixed = os.path.join(here, entry) if entry else here
    # Some are no files, but names that a hook knows.
    return fixed if os.path.exists(fixed) else entry


# "__main__" in a filter.  The word would have the frame packed again by cloudpickle, whose import
# takes 15 ms, since it looks like one with classes of the main file.
_MAIN = 0


def _host_filters() -> list[tuple[Any, ...]]:
    """The warnings filters in words: a worker must not import numpy for a class of warnings."""
    entries: list[Any] = list(warnings.filters)
    return [
        (
            action,
            _pattern(message),
            (category.__module__, category.__qualname__),
            _pattern(module),
            line,
        )
        for action, message, category, module, line in entries
        if isinstance(category, type)
    ]


def _pattern(pattern: Any) -> Any:
    if pattern == "__main__":  # of a default filter
        return _MAIN
    if pattern is None or isinstance(pattern, str):
        return pattern
    return pattern.pattern, pattern.flags


# --- worker -------------------------------------------------------------------------------------

# What keys have been made into; `_core` looks here before it calls `resolve`.
_made: dict[bytes, Callable[..., Any]] = {}
# The keys in it that are functions by value, the oldest first.
_by_value_keys: list[bytes] = []
# The host's warnings filters, and those of them that stand in warnings.filters.
_filters: list[tuple[Any, ...]] = []
_filters_set: list[tuple[Any, ...]] = []
# Modules that were __main__ before: functions of theirs may be running.
_earlier_mains: list[Any] = []


def adopt(state: dict[str, Any]) -> None:
    """Take over the host's import path, directory, warnings filters and main file."""
    sys.path[:] = state["path"]
    sys.argv[:] = state["argv"]
    directory = state["directory"]
    if directory is not None:
        try:
            os.chdir(directory)
        except OSError as error:
            warnings.warn(f"the worker cannot enter {directory!r}: {error}", stacklevel=2)
    _filters[:] = state["filters"]
    _filters_set[:] = warnings.filters  # the worker's own make room
    _set_filters()
    if state["authkey"] is not None:
        from multiprocessing.process import current_process

        current_process().authkey = state["authkey"]
    main = state["main"]
    if main["kind"] == "none":
        return
    if _is_for_setup(main):
        _import_main(main)
        _set_filters()
    else:
        _earlier_mains.append(sys.modules.get("__main__"))
        sys.modules["__main__"] = sys.modules["__mp_main__"] = _LazyMain(main)


def _is_for_setup(main: dict[str, str]) -> bool:
    """Whether the main file is imported in setup, where its time belongs.

    A package's `__main__.py` and a command such as /usr/bin/pytest hold no functions of the user's
    in most cases, and often lack the guard: they are imported when something names them.
    """
    if main["kind"] == "path":
        return main["value"].endswith((".py", ".pyc", ".pyw"))
    return main["kind"] == "name" and main["value"].rpartition(".")[2] != "__main__"


class _LazyMain(types.ModuleType):
    """Stands for the main module until something looks a name up in it."""

    def __init__(self, main: dict[str, str]) -> None:
        super().__init__("__mp_main__")
        self.__dict__["__gpud_main__"] = main
        self.__dict__["__gpud_failed__"] = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module '__mp_main__' has no attribute {name!r}")
        failed = self.__dict__["__gpud_failed__"]
        if failed is not None:  # not twice: the first half of it may have had effects
            raise RuntimeError(failed)
        try:
            return getattr(_import_main(self.__dict__["__gpud_main__"]), name)
        except AttributeError:
            raise
        except BaseException as error:
            self.__dict__["__gpud_failed__"] = (
                f"the main file could not be imported: {type(error).__name__}: {error}"
            )
            raise


_importing_main = False


def reentry() -> str:
    """Why this worker cannot make an Executor."""
    return GUARD if _importing_main else IN_WORKER


def _import_main(main: dict[str, str]) -> types.ModuleType:
    global _importing_main
    before = sys.modules.get("__main__")
    module = types.ModuleType("__mp_main__")
    try:
        code = _main_code(main, module.__dict__)
        _earlier_mains.append(before)
        sys.modules["__main__"] = sys.modules["__mp_main__"] = module
        _importing_main = True
        exec(code, module.__dict__)
    except SystemExit as error:
        _put_back(before)
        raise RuntimeError(
            f"the main file ended with SystemExit({error.code!r}) when the worker imported it "
            f'({main["value"]}): put what it runs under `if __name__ == "__main__":`'
        ) from error
    except BaseException as error:
        _put_back(before)
        error.add_note(f"raised while the worker imported the main file, {main['value']}")
        raise
    finally:
        _importing_main = False
    return module


def _put_back(before: Any) -> None:
    if before is not None:
        sys.modules["__main__"] = before
    if isinstance(before, _LazyMain):
        sys.modules["__mp_main__"] = before
    else:
        sys.modules.pop("__mp_main__", None)


def _main_code(main: dict[str, str], names: dict[str, Any]) -> Any:
    """The code of the main file; sets in `names` what a module knows about itself."""
    import importlib.machinery as machinery

    kind, value = main["kind"], main["value"]
    loader: Any
    if kind == "path":
        kinds = machinery.SourceFileLoader, machinery.SourcelessFileLoader
        loader = kinds[value.endswith(".pyc")]("__mp_main__", value)
        names.update(__package__="", __file__=value, __loader__=loader)
        if value.endswith(".pyc"):
            return loader.get_code("__mp_main__")
        # Compiled here and not by the loader: no __pycache__ beside a script.
        return loader.source_to_code(loader.get_data(value), value)
    if kind == "zip":
        name = "__main__"
        spec = machinery.PathFinder.find_spec(name, [value])
    else:
        import importlib.util

        name = value
        spec = importlib.util.find_spec(name)
    loader = None if spec is None else spec.loader
    code = None if loader is None else loader.get_code(name)
    if spec is None or code is None:
        raise ImportError(f"the worker finds no code of the host's __main__, {value!r}")
    names.update(
        __spec__=spec,
        __package__=spec.parent,
        __file__=spec.origin,
        __cached__=spec.cached,
        __loader__=loader,
    )
    return code


def _set_filters() -> None:
    """Set the host's warnings filters, as far as the modules of their classes are imported here.

    Those that user code has added here since stay in front.
    """
    ready: list[tuple[Any, ...]] = []
    for action, message, (module_name, name), where, line in _filters:
        category: Any = sys.modules.get(module_name)
        for part in name.split("."):
            category = getattr(category, part, None)
        if isinstance(category, type) and issubclass(category, Warning):
            ready.append((action, _compiled(message), category, _compiled(where), line))
    if ready == _filters_set:
        return
    current: Any = warnings.filters
    added = [each for each in current if each not in _filters_set]
    warnings.resetwarnings()  # also tells the C part that they have changed
    current = warnings.filters
    current[:] = [*added, *ready]
    _filters_set[:] = ready


def _compiled(pattern: Any) -> Any:
    if pattern == _MAIN:
        return "__main__"
    if pattern is None or isinstance(pattern, str):
        return pattern
    import re

    return re.compile(*pattern)


def resolve(key: bytes) -> Callable[..., Any]:
    """The callable of a key."""
    known = _made.get(key)
    if known is not None:
        return known
    kind, frame = key[:1], key[1:]
    if kind not in (_REFERENCE, _CODE, _FRESH):
        raise ValueError(f"no key of a callable: {key[:20]!r}")
    try:
        made = codec.decode(frame)[1]
    except (AttributeError, ImportError) as error:
        if kind == _REFERENCE:
            error.add_note(
                "the worker cannot find this function by its name: is it defined at the top level, "
                'not under `if __name__ == "__main__":`, and can its module be imported?'
            )
        raise
    if not callable(made):
        raise TypeError(f"a key that names {type(made).__name__}, which is not callable")
    fn: Callable[..., Any] = made
    if kind == _REFERENCE:
        _made[key] = fn
    elif kind == _CODE and len(frame) <= _KEPT_SIZE:
        _made[key] = fn
        _by_value_keys.append(key)
        if len(_by_value_keys) > _KEPT:
            _made.pop(_by_value_keys.pop(0), None)
    if len(_filters_set) < len(_filters):
        _set_filters()
    return fn
