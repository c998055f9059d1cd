# SPDX-License-Identifier: MIT
"""Dispatch of tasks to worker processes, one per GPU or CPU slot.

    from gpudispatch import Executor

    with Executor(devices="all") as ex:
        for r in ex.outcomes(files, fn=transcribe, journal="night.gdj", progress=True):
            print(r.item, r.value if r.ok else r.text)

The names of `__all__` are stable from 0.2 on: a change warns for one minor release.  Importing the
package imports none of its parts; each is imported with its first use.
"""

from __future__ import annotations


__version__ = "0.1.0"

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from typing import Any
    from gpudispatch.classic import BaseWorker, Dispatcher, RichDispatcher
    from gpudispatch.config import load_pool
    from gpudispatch.current import current_task, current_worker, empty
    from gpudispatch.errors import (
        DeviceError,
        ForkedError,
        GpuDispatchError,
        JournalBusy,
        JournalMismatch,
        NoWorker,
        OutOfMemory,
        RemoteError,
        RemoteTraceback,
        ResultTooLarge,
        ServerError,
        SetupError,
        TaskTimeout,
        UnsupportedPlatform,
        WorkerCrashed,
    )
    from gpudispatch.executor import Executor
    from gpudispatch.future import Future, Progress, Times
    from gpudispatch.journal import read_journal
    from gpudispatch.leases import Lease
    from gpudispatch.named import get_executor, get_pool
    from gpudispatch.outcomes import Outcome
    from gpudispatch.pool import Pool
    from gpudispatch.pool_class import PoolClass
    from gpudispatch.queue import Queue
    from gpudispatch.settings import IgnoredArgument
    from gpudispatch.tables import (
        ClassChange,
        ClassStats,
        DeviceInfo,
        Needs,
        Reason,
        SlotStats,
        Stats,
    )

__all__ = [
    "BaseWorker",
    "ClassChange",
    "ClassStats",
    "DeviceError",
    "DeviceInfo",
    "Dispatcher",
    "Executor",
    "ForkedError",
    "Future",
    "GpuDispatchError",
    "IgnoredArgument",
    "JournalBusy",
    "JournalMismatch",
    "Lease",
    "Needs",
    "NoWorker",
    "OutOfMemory",
    "Outcome",
    "Pool",
    "PoolClass",
    "Progress",
    "Queue",
    "Reason",
    "RemoteError",
    "RemoteTraceback",
    "ResultTooLarge",
    "RichDispatcher",
    "ServerError",
    "SetupError",
    "SlotStats",
    "Stats",
    "TaskTimeout",
    "Times",
    "UnsupportedPlatform",
    "WorkerCrashed",
    "current_task",
    "current_worker",
    "empty",
    "get_executor",
    "get_pool",
    "load_pool",
    "read_journal",
]

_PARTS = {
    "classic": ("BaseWorker", "Dispatcher", "RichDispatcher"),
    "config": ("load_pool",),
    "current": ("current_task", "current_worker", "empty"),
    "executor": ("Executor",),
    "future": ("Future", "Progress", "Times"),
    "journal": ("read_journal",),
    "leases": ("Lease",),
    "named": ("get_executor", "get_pool"),
    "outcomes": ("Outcome",),
    "pool": ("Pool",),
    "pool_class": ("PoolClass",),
    "queue": ("Queue",),
    "settings": ("IgnoredArgument",),
    "tables": (
        "ClassChange", "ClassStats", "DeviceInfo", "Needs", "Reason", "SlotStats",
        "Stats",
    ),
}
_WHERE = {name: part for part, names in _PARTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_WHERE.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
