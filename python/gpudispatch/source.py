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
from _pickle import PicklingError, dumps, loads

from . import codec

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The first byte of a key: may the worker keep what it has made of it?
_REFERENCE = b"R"  # a module and a name: yes
_CODE = b"C"  # a function by value: yes, within _KEPT
_FRESH = b"F"  # an object with state of its own: made anew for each task

# How many functions by value a worker keeps; a notebook makes a new one with each run of a cell.
_KEPT = 64

# What to tell somebody whose main file starts a pool when it is imported.
GUARD = (
    "a worker imports the main file to find its functions, and this one makes an Executor at "
    'import: put that part under `if __name__ == "__main__":`'
)

_BOTH_WAYS = (
    "gpudispatch sends functions by reference: define it with `def` at the top level of a module "
    "or script that a worker can import, or `pip install cloudpickle`, with which lambdas, nested "
    "functions and those of notebooks are sent by value"
)

# --- host: from a callable to its key -----------------------------------------------------------

# By identity, and without keeping a function alive: the weak reference takes its entry along.
_keys: dict[int, tuple[bytes, weakref.ref[Any]]] = {}

_BY_REFERENCE = (types.FunctionType, types.BuiltinFunctionType, type)


def reference(fn: Callable[..., Any]) -> bytes:
    """The key of a callable, by which a worker finds it. Raises PicklingError where it cannot."""
    entry = _keys.get(id(fn))
    if entry is not None and entry[1]() is fn:
        return entry[0]
    if not callable(fn):
        raise TypeError(f"fn must be callable, not {type(fn).__name__}")
    if isinstance(fn, _BY_REFERENCE) and _has_no_self(fn):
        return _reference_by_name(fn)
    return _FRESH + _packed(fn)


def _has_no_self(fn: Any) -> bool:
    owner = getattr(fn, "__self__", None)
    return isinstance(fn, type) or owner is None or isinstance(owner, (type, types.ModuleType))


def _reference_by_name(fn: Any) -> bytes:
    try:
        pickled = dumps(fn, 5)
    except (PicklingError, AttributeError, TypeError) as error:
        return _CODE + _by_value(fn, error)
    if _lives_in_main(fn) and not _main_can_be_imported():
        return _CODE + _by_value(fn, None)
    key = _REFERENCE + pickled
    number = id(fn)

    def forget(_: object, number: int = number, keys: Any = _keys) -> None:
        keys.pop(number, None)

    try:
        _keys[number] = key, weakref.ref(fn, forget)
    except TypeError:
        pass
    return key


def _packed(fn: Any) -> bytes:
    """A callable that is an object: a partial, a bound method, an instance with `__call__`."""
    host_main()
    try:
        data = codec.encode(codec.VALUE, fn, cuda="error")
    except codec.CudaError:
        raise
    except (PicklingError, AttributeError, TypeError) as error:
        raise _refused(fn, error) from error
    data = bytes(codec.join(data))
    if codec.main_by_value and b"__main__" in data and "cloudpickle" not in sys.modules:
        raise _refused(fn, None)
    return data


def _by_value(fn: Any, error: Exception | None) -> bytes:
    try:
        import cloudpickle  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise _refused(fn, error) from error
    host_main()
    try:
        return bytes(cloudpickle.dumps(fn, protocol=5))
    except Exception as failed:
        raise PicklingError(
            f"cannot send {_described(fn)} by value: {type(failed).__name__}: {failed}"
        ) from failed


def _refused(fn: Any, error: Exception | None) -> PicklingError:
    reason = f": {error}" if error is not None else ""
    where = ""
    if _lives_in_main(fn) and not _main_can_be_imported():
        where = " (its __main__ is no file that a worker can import)"
    return PicklingError(f"cannot send {_described(fn)}{where}{reason}; {_BOTH_WAYS}")


def _described(fn: Any) -> str:
    name = getattr(fn, "__qualname__", None)
    if name is None:
        return f"an object of type {codec.type_name(type(fn))}"
    return f"{getattr(fn, '__module__', None) or ''}.{name}".lstrip(".")


def _lives_in_main(fn: Any) -> bool:
    return getattr(fn, "__module__", None) in ("__main__", "__mp_main__")


def _main_can_be_imported() -> bool:
    return host_main()["kind"] != "none"


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
    if name == "__main__":  # `python folder` and `python app.zip`
        return {"kind": "zip", "value": os.path.abspath(os.path.dirname(file or sys.path[0]))}
    if name is not None:  # `python -m name`
        return {"kind": "name", "value": name}
    # A program read from stdin has a `__file__` too: "<stdin>".
    if file is None or not os.path.isfile(file):
        return {"kind": "none", "value": ""}
    return {"kind": "path", "value": os.path.abspath(file)}


def host_state() -> dict[str, Any]:
    """What a worker takes over from this process: for `adopt`."""
    # Objects of classes that a worker knows as `__mp_main__.Name` are found here by that name.
    if "__main__" in sys.modules:
        sys.modules.setdefault("__mp_main__", sys.modules["__main__"])
    try:
        directory = os.getcwd()
    except OSError:  # it was removed
        directory = None
    return {
        "path": [os.path.abspath(entry) if entry == "" else entry for entry in sys.path],
        "argv": list(getattr(sys, "argv", [])),
        "directory": directory,
        "filters": _host_filters(),
        "main": host_main(),
    }


def _host_filters() -> list[tuple[Any, ...]]:
    """The warnings filters in words: their classes are imported by the worker when it needs them."""
    filters = []
    entries: list[Any] = list(warnings.filters)
    for action, message, category, module, line in entries:
        filters.append(
            (
                action,
                _pattern(message),
                (category.__module__, category.__qualname__),
                _pattern(module),
                line,
            )
        )
    return filters


def _pattern(pattern: Any) -> Any:
    return pattern if pattern is None or isinstance(pattern, str) else (
        pattern.pattern,
        pattern.flags,
    )


# --- worker -------------------------------------------------------------------------------------

_made: dict[bytes, Callable[..., Any]] = {}
_pending_filters: list[tuple[Any, ...]] = []
_kept_mains: list[Any] = []


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
    _pending_filters[:] = state["filters"]
    _apply_filters()
    main = state["main"]
    if main["kind"] == "none":
        return
    if _is_import_at_once(main):
        _import_main(main)
        _apply_filters()
    else:
        module = _LazyMain(main)
        _kept_mains.append(sys.modules.get("__main__"))
        sys.modules["__main__"] = sys.modules["__mp_main__"] = module


def _is_import_at_once(main: dict[str, str]) -> bool:
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

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(f"module '__mp_main__' has no attribute {name!r}")
        return getattr(_import_main(self.__dict__["__gpud_main__"]), name)


def _import_main(main: dict[str, str]) -> types.ModuleType:
    before = sys.modules.get("__main__")
    module = types.ModuleType("__mp_main__")
    names = module.__dict__
    try:
        code = _main_code(main, names)
        _kept_mains.append(before)
        sys.modules["__main__"] = sys.modules["__mp_main__"] = module
        exec(code, names)
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
    return module


def _put_back(before: Any) -> None:
    if before is not None:
        sys.modules["__main__"] = before
    sys.modules.pop("__mp_main__", None)


def _main_code(main: dict[str, str], names: dict[str, Any]) -> Any:
    """The code of the main file; sets in `names` what a module knows about itself."""
    kind, value = main["kind"], main["value"]
    if kind == "name":
        import importlib.util

        spec = importlib.util.find_spec(value)
        if spec is None or spec.loader is None:
            raise ImportError(f"the worker finds no module {value!r}, the host's __main__")
        names["__spec__"] = spec
        names["__file__"] = spec.origin
        names["__cached__"] = spec.cached
        names["__package__"] = spec.parent
        names["__loader__"] = spec.loader
        return spec.loader.get_code(value)  # type: ignore[attr-defined]
    names["__package__"] = ""
    if kind == "zip":
        if not os.path.isdir(value):
            import zipimport

            archive = zipimport.zipimporter(value)
            names["__file__"] = os.path.join(value, "__main__.py")
            names["__loader__"] = archive
            return archive.get_code("__main__")
        value = os.path.join(value, "__main__.py")
    names["__file__"] = value
    import importlib.machinery as machinery

    loader: Any
    if value.endswith(".pyc"):
        loader = machinery.SourcelessFileLoader("__mp_main__", value)
        return loader.get_code("__mp_main__")
    # Compiled here and not by the loader: no __pycache__ beside a script.
    loader = machinery.SourceFileLoader("__mp_main__", value)
    names["__loader__"] = loader
    return loader.source_to_code(loader.get_data(value), value)


def _apply_filters() -> None:
    """Set the host's warnings filters, as far as their classes are imported here."""
    if not _pending_filters:
        return
    waiting, ready = [], []
    for entry in _pending_filters:
        module = sys.modules.get(entry[2][0])
        if module is None:
            waiting.append(entry)
            continue
        category: Any = module
        for part in entry[2][1].split("."):
            category = getattr(category, part, None)
        if isinstance(category, type) and issubclass(category, Warning):
            action, message, _, where, line = entry
            ready.append((action, _compiled(message), category, _compiled(where), line))
    if ready:
        known = set(warnings.filters)
        # What came later in the host comes first in the list.
        mine = [each for each in ready if each not in known]
        current: Any = warnings.filters
        current[:] = [*mine, *warnings.filters] if waiting or known - set(ready) else ready
        getattr(warnings, "_filters_mutated", lambda: None)()
    _pending_filters[:] = waiting


def _compiled(pattern: Any) -> Any:
    if pattern is None or isinstance(pattern, str):
        return pattern
    import re

    return re.compile(*pattern)


def resolve(key: bytes) -> Callable[..., Any]:
    """The callable of a key."""
    fn = _made.get(key)
    if fn is not None:
        return fn
    kind, data = key[:1], key[1:]
    if kind == _FRESH:
        made: Callable[..., Any] = codec.decode(data)[1]
        return made
    try:
        fn = loads(data)
    except (AttributeError, ImportError) as error:
        error.add_note(
            "the worker cannot find this function by its name: is it defined at the top level, "
            'not under `if __name__ == "__main__":`, and can its module be imported?'
        )
        raise
    if not callable(fn):
        raise TypeError(f"a key that names {type(fn).__name__}, which is not callable")
    if kind == _CODE:
        for old in [each for each in _made if each[:1] == _CODE][: 1 - _KEPT or None]:
            if sum(1 for each in _made if each[:1] == _CODE) < _KEPT:
                break
            del _made[old]
    _made[key] = fn
    _apply_filters()
    found: Callable[..., Any] = fn
    return found
