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

# How many functions by value a worker keeps, and how large they may be: a notebook makes a new one
# with each run of a cell, and one may carry an array.
_KEPT = 64
_KEPT_SIZE = 1 << 20

# What to tell somebody whose main file starts a pool when it is imported.
GUARD = (
    "a worker imports the main file to find its functions, and this one makes an Executor at "
    'import: put that part under `if __name__ == "__main__":`'
)

IN_WORKER = (
    "a worker process cannot make an Executor: make it in the program that submits the tasks, or in "
    "a program that the task starts with subprocess"
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
    if _has_a_name(fn):
        return _by_name(fn)
    return _FRESH + _packed(fn)


def _has_a_name(fn: Any) -> bool:
    """Whether pickle writes it as a module and a name, and so the worker may keep it."""
    if isinstance(fn, (types.FunctionType, type)):
        return True
    owner = getattr(fn, "__self__", None)
    if isinstance(fn, types.BuiltinFunctionType):
        return owner is None or isinstance(owner, types.ModuleType)
    if owner is not None:
        return False
    try:  # what functools.lru_cache returns, for one
        return isinstance(fn.__reduce_ex__(5), str)
    except Exception:
        return False


def _by_name(fn: Any) -> bytes:
    try:
        pickled = dumps(fn, 5)
    except (PicklingError, AttributeError, TypeError) as error:
        return _CODE + _by_value(fn, error)
    if _lives_in_main(fn) and not _is_in_main_file(fn):
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
    try:
        data = bytes(codec.join(codec.encode(codec.VALUE, fn, cuda="error")))
    except codec.CudaError:
        raise
    except (PicklingError, AttributeError, TypeError) as error:
        raise _refused(fn, error) from error
    if codec.main_by_value and b"__main__" in data and not codec.can_by_value():
        raise _refused(fn, None)
    return data


def _by_value(fn: Any, error: Exception | None) -> bytes:
    try:
        import cloudpickle  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        raise _refused(fn, error) from error
    try:
        return bytes(cloudpickle.dumps(fn, protocol=5))
    except Exception as failed:
        raise PicklingError(
            f"cannot send {_described(fn)} by value: {type(failed).__name__}: {failed}"
        ) from failed


def _refused(fn: Any, error: Exception | None) -> PicklingError:
    reason = f": {error}" if error is not None else ""
    where = ""
    if _lives_in_main(fn) and not _is_in_main_file(fn):
        where = " (its __main__ is no file that a worker can import)"
    return PicklingError(f"cannot send {_described(fn)}{where}{reason}; {_BOTH_WAYS}")


def _described(fn: Any) -> str:
    name = getattr(fn, "__qualname__", None)
    if name is None:
        return f"an object of type {codec.type_name(type(fn))}"
    return f"{getattr(fn, '__module__', None) or ''}.{name}".lstrip(".")


def _lives_in_main(fn: Any) -> bool:
    return getattr(fn, "__module__", None) in ("__main__", "__mp_main__")


def _is_in_main_file(fn: Any) -> bool:
    """Whether a worker that imports the main file finds it there, as far as can be seen."""
    if host_main()["kind"] == "none":
        return False
    code = getattr(fn, "__code__", None)
    # Typed at a prompt, which may run after a file (python -i).
    return code is None or not code.co_filename.startswith("<")


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
        code = spec.loader.get_code(value)  # type: ignore[attr-defined]
        if code is None:
            raise ImportError(f"the host's __main__, {value!r}, has no code that can be run again")
        return code
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
    if kind not in (_REFERENCE, _CODE):
        raise ValueError(f"no key of a callable: {key[:20]!r}")
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
    if kind == _REFERENCE or len(data) <= _KEPT_SIZE:
        _made[key] = fn
    if kind == _CODE and key in _made:
        _by_value_keys.append(key)
        if len(_by_value_keys) > _KEPT:
            _made.pop(_by_value_keys.pop(0), None)
    if len(_filters_set) < len(_filters):
        _set_filters()
    found: Callable[..., Any] = fn
    return found
