# SPDX-License-Identifier: MIT
"""Owner: what an Executor and a Pool have in common: one engine, its rows, and its end."""

from __future__ import annotations

import weakref

from gpudispatch.engine import Engine
from gpudispatch.events import FINISH_ALL, FINISH_NOW, FINISH_RUNNING

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any

    from gpudispatch.tables import DeviceInfo, SlotStats, Stats


class Owner:
    """Whoever drops it leaves its engine to finish the tasks."""

    _engine: Engine

    def _own(self, engine: Engine) -> None:
        self._engine = engine
        self._finalizer = weakref.finalize(self, Engine.abandon, engine)
        self._finalizer.atexit = False

    # ---- looks ----

    def stats(self) -> Stats:
        """The counters: tasks by outcome, workers, memory, times in ns (gpudispatch.tables).  After
        shutdown the last ones."""
        counters: Stats = self._engine.look("stats")
        return counters

    def slots(self) -> list[SlotStats]:
        """One row per slot: its worker, its state, the task that runs there now.  After shutdown
        the last ones."""
        rows: list[SlotStats] = self._engine.look("slots")
        return rows

    def devices(self) -> list[DeviceInfo]:
        """One row per device: its name, its health, its readings.  After shutdown the last ones."""
        rows: list[DeviceInfo] = self._engine.look("devices")
        return rows

    # ---- the end ----

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        """Waits for all tasks.  After Ctrl-C what has not started is cancelled, and a second Ctrl-C
        kills the workers."""
        if self._engine.forked:
            return None
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            self.shutdown()
            return None
        try:
            self.shutdown(cancel_futures=True)
        except KeyboardInterrupt:
            self.kill_workers()
            self.shutdown()
            raise
        return None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends intake; with wait returns when all tasks and workers have ended."""
        self._engine.close(FINISH_RUNNING if cancel_futures else FINISH_ALL)
        if wait:
            self._engine.join()

    def terminate_workers(self) -> None:
        """Cancels all tasks and closes: running ones have the grace of their class."""
        self._engine.close(FINISH_NOW)

    def kill_workers(self) -> None:
        """Cancels all tasks, kills the workers and closes."""
        self._engine.close(FINISH_NOW, 1)
