# SPDX-License-Identifier: MIT
"""PoolClass: one class of a Pool, with the interface of an Executor."""

from __future__ import annotations

import concurrent.futures
import time

from gpudispatch import settings
from gpudispatch.events import (
    FINISH_ALL,
    FINISH_NOW,
    FINISH_RUNNING,
    LOAD,
    PAUSE,
    PIN,
    RESUME,
    UNLOAD,
    UNPIN,
)
from gpudispatch.future import SIGNAL_S
from gpudispatch.submitter import Submitter

DROPPED_S = 5.0  # after which an event that tells of a removed class was dropped

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar, overload

    from gpudispatch.future import Future
    from gpudispatch.pool import Pool
    from gpudispatch.tables import ClassStats
    from gpudispatch.work_class import WorkClass

    P = ParamSpec("P")
    T = TypeVar("T")


class PoolClass(Submitter, concurrent.futures.Executor):  # type: ignore[misc]  # map's overloads
    """A class of work that Pool.add() returned.  It keeps its pool alive.

    Thread: any.  Its methods are those of an Executor; its end is remove().
    """

    def __init__(self, pool: Pool, home: WorkClass) -> None:
        self._pool = pool
        Submitter.__init__(self, pool._engine, home, home.task_options())
        self._last = self._engine.classes.row(home)

    @property
    def name(self) -> str:
        """The name of the class."""
        return self._home.name

    if TYPE_CHECKING:  # the methods of Submitter, with an item in place of a function, too

        @overload
        def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...

        @overload
        def submit(self, item: Any, /) -> Future[Any]: ...

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]: ...

        @overload
        async def arun(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...

        @overload
        async def arun(self, item: Any, /) -> Any: ...

        async def arun(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any: ...

    # ---- looks ----

    def stats(self) -> ClassStats:
        """The row of the class: tasks, workers, and how long they took.  After its end the last
        one."""
        row = None if self._home.gone.is_set() else self._engine.classes.row(self._home)
        if row is not None:
            self._last = row
        assert self._last is not None
        return self._last

    def ready(self, workers: int = 1, timeout: float | None = None) -> bool:
        """Waits until this many workers have passed setup; False after the time.  It starts none:
        load(), min_workers and tasks do."""
        settings.integer("workers", workers, 1)
        patience = settings.patience("timeout", timeout)
        until = None if patience is None else time.monotonic() + patience
        classes, key = self._engine.classes, object()
        try:
            classes.watch(key)
            while (row := self.stats())["workers"] < workers:
                if row["failed"]:
                    text = f"class {self.name} has failed, after {row['failures']} failures"
                    raise self._engine.news.no_worker(text, self.name)
                if self._home.closing or self._engine.closing is not None:
                    raise RuntimeError(f"class {self.name!r} is removed")
                if until is not None and time.monotonic() >= until:
                    return False
                self._home.gone.wait(SIGNAL_S)
            return True
        finally:
            classes.watched.discard(key)

    # ---- changes ----

    def _set(self, what: int) -> None:
        self._engine.check_forked()
        if self._home.closing:  # its name may be that of another class by now
            raise RuntimeError(f"class {self.name!r} is removed")
        self._engine.core.class_set(self.name, what)

    def pause(self) -> None:
        """Starts none of its tasks until resume(); running ones go on."""
        self._set(PAUSE)

    def resume(self) -> None:
        """Ends pause(), and forgets failures: a class that has failed starts workers again."""
        self._set(RESUME)
        self._home.broken = None

    def load(self) -> None:
        """Starts a worker if it has none, before the first task needs it; ready() waits for it."""
        self._set(LOAD)
        self._home.broken = None

    def unload(self) -> None:
        """Its workers leave, busy ones after their task.  A task that waits starts one again."""
        self._set(UNLOAD)

    def pin(self) -> None:
        """Its workers never leave for another class, until unpin()."""
        self._set(PIN)

    def unpin(self) -> None:
        """Ends pin()."""
        self._set(UNPIN)

    # ---- the end ----

    def remove(self, drain: bool = True, *, wait: bool = True) -> None:
        """Ends intake.  Its tasks run to their end, without `drain` they are cancelled; then its
        workers leave.  With `wait` returns when the name is free for another class."""
        self._remove(FINISH_ALL if drain else FINISH_NOW, wait)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As remove(): the pool goes on with its other classes."""
        self._remove(FINISH_RUNNING if cancel_futures else FINISH_ALL, wait)

    def _remove(self, how: int, wait: bool) -> None:
        classes, key = self._engine.classes, object()
        self._engine.check_forked()
        if self._home.gone.is_set():  # its name may be that of another class by now
            return
        self.stats()
        classes.remove(self._home, how)
        if not wait or self._engine.is_inside():
            return
        try:
            classes.watch(key)
            while not self._home.gone.wait(SIGNAL_S):
                row = classes.row(self._home)
                if row is None:  # the event is on its way, or was dropped
                    if not self._home.gone.wait(DROPPED_S):
                        classes.forget(self._home)
                    break
                self._last = row
        finally:
            classes.watched.discard(key)

    def __repr__(self) -> str:
        return f"<class {self.name} of {self._pool!r}>"
