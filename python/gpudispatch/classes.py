# SPDX-License-Identifier: MIT
"""The classes of an engine: those that share the devices of a Pool, or the one of an Executor."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator

from gpudispatch import ends, errors
from gpudispatch.errors import NoWorker, OutOfMemory
from gpudispatch.events import CLASS_REMOVED, FINISH_ALL, FINISH_NOW, RESUME
from gpudispatch.inbox import safely
from gpudispatch.news import CHANGES
from gpudispatch.settings import NEVER

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gpudispatch._core import Event
    from gpudispatch.engine import Engine
    from gpudispatch.settings import TaskOptions
    from gpudispatch.tables import ClassChange, ClassStats
    from gpudispatch.work_class import WorkClass

MOST = 255


class Classes:
    """The table.  Thread: any; the engine's lock guards what changes it."""

    def __init__(self, engine: Engine, only: WorkClass | None) -> None:
        self.engine: Engine = weakref.proxy(engine)  # no cycle: the last owner ends it
        self.by_number: dict[int, WorkClass] = {}
        self.next_number = 1
        self.leaving: dict[int, tuple[int, str]] = {}  # to be removed: how, and the name
        self.watched: set[object] = set()  # a key of each that waits for a change, as on_class
        self.told: deque[Event] = deque()  # for on_class
        self.on_class: Callable[[ClassChange], object] | None = None
        self.change_of: type[ClassChange] | None = None
        if only is not None:
            self._take_in(only, 0)

    def __iter__(self) -> Iterator[WorkClass]:
        return iter(list(self.by_number.values()))

    def _take_in(self, home: WorkClass, number: int) -> None:
        home.number = number
        self.by_number[number] = home
        if home.settings.oom:
            self.engine.try_twice()

    def add(self, home: WorkClass, fields: dict[str, int], needs: list[dict[str, object]]) -> None:
        """Adds a class to a pooled engine."""
        with self.engine.lock:
            self.engine.check_open()
            if self.named(home.name) is not None:
                raise ValueError(
                    f"name is {home.name!r}: the pool has a class of this name, "
                    f'pool["{home.name}"]; use it, or remove() it first'
                )
            number = self._free_number()
            try:
                self.engine.core.class_add(home.name, fields, home.options, needs)
                self._take_in(home, number)
            except BaseException:
                if self.row(home) is not None:  # Ctrl-C came once the core had it
                    self._take_in(home, number)
                raise

    def _free_number(self) -> int:
        """The one that is longest unused: outcomes of a removed class may not be taken yet."""
        for _ in range(MOST):
            number = self.next_number
            self.next_number = number % MOST + 1
            if number not in self.by_number:
                return number
        raise errors.GpuDispatchError(f"a pool has up to {MOST} classes", name="EFULL")

    # ---- looks ----

    def of(self, event: Event) -> WorkClass | None:
        """The class that an event is about."""
        if not self.engine.pooled:
            return self.by_number[0]
        if event.tag:
            return self.by_number.get(event.number)
        return self.named(event.class_name or "")

    def named(self, name: str) -> WorkClass | None:
        return next((home for home in self if home.name == name), None)

    def row(self, home: WorkClass) -> ClassStats | None:
        """The core's row of a class; None once it is removed."""
        rows: list[ClassStats] = self.engine.look("classes")
        return next((row for row in rows if row["name"] == home.name), None)

    def has_failed(self, home: WorkClass) -> bool:
        """Whether a class will have no worker, unless a device is returned."""
        if self.engine.pooled:
            row = self.row(home)
            return row is not None and bool(row["failed"])
        stats = self.engine.look("stats")
        return bool(stats["slots_failed"] == stats["slots"])

    def check_open(self, home: WorkClass, failed: bool) -> None:
        """Raises where a class accepts no task; `failed`: not because it has failed."""
        if home.closing:
            raise RuntimeError(f"class {home.name!r} is removed")
        if home.broken is not None and not failed:
            if self.has_failed(home):
                raise self.engine.news.no_worker(home.broken, home.name)
            home.broken = None  # a device was returned

    # ---- the end of a task ----

    def failure(
        self, event: Event, options: TaskOptions
    ) -> tuple[str, BaseException, list[Any] | None]:
        """As ends.failure(), with what its class and its device show."""
        home = self.of(event)
        limit = NEVER if home is None else home.settings.task_timeout
        kind, error, before = ends.failure(event, options, limit)
        if isinstance(error, OutOfMemory):
            ends.add_memory(error, self.engine.look("devices"))
        if isinstance(error, NoWorker):
            if home is not None:
                home.broken = error.message
            error = self.engine.news.no_worker(error.message, "" if home is None else home.name)
        return kind, error, before

    def mark_stopped(self, number: int, stopped: bool = True) -> None:
        """The code of a running task gets an exception once it is cancelled."""
        for home in self:  # no other class has this task
            home.mark_stopped(number, stopped)

    def stop_running(self, home: WorkClass | None = None) -> None:
        """The code of running tasks [of a class] gets an exception, as by Future.stop()."""
        for row in self.engine.core.slots():
            # The number of no task, 0, would take the place of one in the stop table.
            if row["task_id"] and (home is None or row["class_name"] == home.name):
                self.mark_stopped(row["task_id"])

    # ---- the end of a class ----

    def remove(self, home: WorkClass, how: int) -> None:
        """Ends the intake of a class; the core removes it once no task of it is in the backlog."""
        engine = self.engine
        engine.check_forked()
        with engine.lock:
            before = self.leaving.get(home.number, (-1, ""))[0]
            self.leaving[home.number] = max(how, before), home.name
            home.closing = True
            dropped = engine.backlog.take_back(home.number) if how != FINISH_ALL else []
        engine.withdraw_all(dropped)
        if how == FINISH_NOW:
            self.stop_running(home)
        engine.call_thread()

    def forget(self, home: WorkClass) -> None:
        """The core has removed a class: its name is free."""
        with self.engine.lock:
            self.by_number.pop(home.number, None)
        home.gone.set()

    def call(self, on_class: Callable[[ClassChange], object]) -> None:
        """Has changes reported, for good: the pool's thread reads all events from now on."""
        from gpudispatch.tables import ClassChange  # not above: it needs typing, which costs 3 ms

        self.change_of = ClassChange
        self.on_class = on_class
        self.watch(self)

    def resume_all(self) -> None:
        """Before the end of the engine: tasks of a paused class would wait for ever."""
        if self.engine.pooled:
            for row in self.engine.look("classes"):
                if row["paused"] and not row["removing"]:
                    self.engine.core.class_set(row["name"], RESUME)

    def watch(self, key: object) -> None:
        """The caller waits for a change: the pool's thread reads until the caller discards its key
        from `watched`.  That is a function of C, which Ctrl-C does not interrupt.  It takes a key
        that is not there, too, so the caller can make this call inside of its `try`."""
        self.watched.add(key)
        self.engine.call_thread()

    # ---- events ----

    def take(self, event: Event) -> None:
        """Takes an event CLASS.  Any thread."""
        home = self.named(event.class_name or "")
        if event.change == CLASS_REMOVED and home is not None:
            self.forget(home)
        if self.on_class is not None:
            self.told.append(event)
            self.engine.call_thread()

    def _tell(self, event: Event) -> None:
        if self.on_class is not None and self.change_of is not None:
            text = event.text or ""
            self.on_class(self.change_of(event.class_name or "", CHANGES[event.change], text))

    def has_work(self) -> bool:
        """Whether turn() has something to do."""
        return bool(self.told or self.leaving)

    def turn(self) -> None:
        """On the pool's thread: calls on_class, which may do anything, and removes classes."""
        while self.told:
            safely(self._tell, self.told.popleft())
        for number, (how, name) in list(self.leaving.items()):
            if self.engine.backlog.has(number):
                continue
            try:
                self.engine.core.class_remove(name, how)
            except errors.GpuDispatchError:
                pass  # it is removed, or the dispatcher is closed
            with self.engine.lock:
                if self.leaving.get(number) == (how, name):
                    del self.leaving[number]
