# SPDX-License-Identifier: MIT
"""What needs a worker replaced: a task that ran out of memory, and one that kept a view.

A task that met the end of its device's memory runs once more in a fresh worker that has the device
to itself: the device is drained, a pool of one worker on it runs the task, then the device returns.
All of it happens on one thread, one device at a time; the pool itself goes on with its others.
"""

from __future__ import annotations

import threading
import time
from _queue import SimpleQueue  # queue has others, which cost an import of heapq

from gpudispatch.errors import GpuDispatchError
from gpudispatch.events import OUTCOME
from gpudispatch.news import logger
from gpudispatch.settings import NEVER

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Protocol

    from gpudispatch._core import Dispatcher, Event, Template
    from gpudispatch.codec import Encoded

    class Owner(Protocol):
        """The pool whose workers are replaced."""

        core: Dispatcher
        options: dict[str, object]
        ended: bool

        def end_of_second_try(self, event: Event) -> None: ...

DRAINED = ("STOPPED", "FAILED", "QUARANTINED")
FINISH_NOW = 2
LOOK_S = 0.02  # between looks whether a drained device's workers are gone


class Lone:
    """The thread that replaces workers.  It starts with its first job and ends when idle."""

    def __init__(self, pool: Owner) -> None:
        self.pool = pool
        self.jobs: SimpleQueue[tuple[Event, Template | None, Encoded | None]]
        self.jobs = SimpleQueue()
        self.lock = threading.Lock()
        self.waiting = 0
        self.thread: threading.Thread | None = None
        self.inner: Dispatcher | None = None  # of the task that runs alone
        self.limit: int | None = None  # for its end, once the pool kills its workers

    def run_again(self, event: Event, template: Template, frame: Encoded) -> None:
        """Runs the task of an outcome once more; the pool gets the second outcome."""
        self._add((event, template, frame))

    def replace_worker(self, event: Event) -> None:
        """Replaces the workers of the devices on which the task ran."""
        self._add((event, None, None))

    def join(self) -> None:
        """Waits for the jobs that are there."""
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def finish(self, limit: int) -> None:
        """Ends the task that runs, and those that come."""
        self.limit = limit
        inner = self.inner
        if inner is not None:
            try:
                inner.close(FINISH_NOW, limit)
            except GpuDispatchError:
                pass  # it has ended

    def _add(self, job: tuple[Event, Template | None, Encoded | None]) -> None:
        with self.lock:
            self.waiting += 1
            self.jobs.put(job)
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="gpudispatch-lone")
                self.thread.start()

    def _run(self) -> None:
        while True:
            event, template, frame = self.jobs.get()
            second = event
            try:
                second = self._with_device(event, template, frame) or event
            except Exception:
                logger.exception("a worker of %s could not be replaced", event.device)
            if template is not None:
                self.pool.end_of_second_try(second)
            with self.lock:
                self.waiting -= 1
                if not self.waiting:
                    self.thread = None
                    return

    def _with_device(
        self, event: Event, template: Template | None, frame: Encoded | None
    ) -> Event | None:
        core, names = self.pool.core, (event.device or "").split(",")
        drained = []
        try:
            for name in names:
                core.device_drain(name)
                drained.append(name)
            self._await_drained(set(names))
            if template is None or frame is None:
                return None
            return self._alone(event, template, frame, names)
        finally:
            for name in drained:
                try:
                    core.device_return(name)
                except GpuDispatchError:
                    pass  # the pool has ended, or the device was removed

    def _await_drained(self, names: set[str]) -> None:
        while not self.pool.ended:
            rows = [r for r in self.pool.core.slots() if names & set(r["devices"].split(","))]
            if all(row["state"] in DRAINED for row in rows):
                return
            time.sleep(LOOK_S)

    def _alone(
        self, event: Event, template: Template, frame: Encoded, names: list[str]
    ) -> Event | None:
        """The outcome of the task in a pool of one worker on these devices."""
        from gpudispatch import _core

        inbox: list[Event] = []
        options = dict(self.pool.options)
        rows = {row["name"]: row["uuid"] for row in self.pool.core.devices()}
        uuids = [rows[name] for name in names]
        options |= {"devices": as_list(names, uuids, str(options["devices"])), "queue_size": 1}
        core = self.inner = _core.Dispatcher(options)
        try:
            if self.limit is not None:
                return None
            if not core.submit(template, event.tag, frame):
                return None
            while core.poll(NEVER, inbox) is not None:
                for second in inbox:
                    if second.kind == OUTCOME:
                        return second
                inbox.clear()
            return None
        finally:
            self.inner = None
            core.close(FINISH_NOW)
            core.destroy()


def as_list(names: list[str], uuids: list[str], devices: str) -> str:
    """A device list for the devices of one worker.  GPUs are there by UUID: the entry gpu:2 means
    the third one of CUDA_VISIBLE_DEVICES.  CPU slots and fakes cannot be named singly."""
    kind = names[0].partition(":")[0]
    if kind == "cpu":
        return f"cpu:{len(names)}"
    if kind == "fake":
        head, comma, script = devices.partition(",script=")
        return f"fake:{len(names)}" + (f"{comma}{script}" if head.startswith("fake") else "")
    return ",".join(uuids)
