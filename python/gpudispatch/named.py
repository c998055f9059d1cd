# SPDX-License-Identifier: MIT
"""get_executor() and get_pool(): what a cell of a notebook has made, when the cell runs again."""

from __future__ import annotations

import os
import threading

from gpudispatch import codec

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from gpudispatch.engine import Engine
    from gpudispatch.executor import Executor
    from gpudispatch.pool import Pool

    T = TypeVar("T", Executor, Pool)

_held: dict[tuple[Any, str], tuple[dict[str, Any], Any]] = {}
_lock = threading.RLock()  # a signal's handler may call get_pool() in the middle of it


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


def get_executor(name: str, **arguments: Any) -> Executor:
    """The living executor of this name where the arguments are equal, else a new one in its place.

    A notebook cell that is run again loads no model again."""
    from gpudispatch.executor import Executor

    return _get(Executor, name, arguments)


def get_pool(
    name: str, devices: str | int | Sequence[str | int] | None = "all", **arguments: Any
) -> Pool:
    """The living pool of this name where the arguments are equal, else a new one in its place.

    Its classes are those that it has had: `if "qwen" not in pool: pool.add("qwen", ...)`."""
    from gpudispatch.pool import Pool

    return _get(Pool, name, {"devices": devices, **arguments})


def _get(kind: Callable[..., T], name: str, arguments: dict[str, Any]) -> T:
    with _lock:
        for known, (_, ended) in list(_held.items()):
            if ended._engine.closing is not None or ended._engine.forked:
                del _held[known]
        held = _held.get((kind, name))
        if held is not None:
            before, owner = held
            if _same(before, arguments) and not _has_failed(owner._engine):
                found: T = owner
                return found
            owner.shutdown(wait=False)
        made = kind(**arguments)
        _held[kind, name] = arguments, made
        return made


def _has_failed(engine: Engine) -> bool:
    """Whether an executor will have no worker.  A pool may have one: of another class, or later."""
    return not engine.pooled and any(map(engine.classes.has_failed, engine.classes))


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal, or else would reach a worker as the same bytes."""
    if type(a) is not type(b):
        return False
    if type(a) is dict:
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    try:
        return (a == b) is True or codec.encode(codec.VALUE, a) == codec.encode(codec.VALUE, b)
    except Exception:
        return False
