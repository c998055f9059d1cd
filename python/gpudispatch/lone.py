# SPDX-License-Identifier: MIT
"""What needs a worker replaced: a task that ran out of memory, and one that kept a view.

A task that met the end of its device's memory runs once more in a fresh worker that has the device
to itself: the device is drained, a pool of one worker on it runs the task, then the device returns.
All of it happens on one thread, one device at a time; the pool itself goes on with its others.
"""

from __future__ import annotations

import threading
import time
import weakref
from _queue import SimpleQueue  # queue has others, which cost an import of heapq
from contextlib import suppress

from gpudispatch import ends
from gpudispatch.codec import own
from gpudispatch.errors import GpuDispatchError
from gpudispatch.events import ERROR, FINISH_NOW, OUTCOME, PROGRESS, UNLOAD
from gpudispatch.news import logger
from gpudispatch.settings import NEVER

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Protocol

    from gpudispatch._core import Dispatcher, Event, Template
    from gpudispatch.classes import Classes
    from gpudispatch.codec import Encoded
    from gpudispatch.settings import TaskOptions

    class Owner(Protocol):
        """The pool whose workers are replaced."""

        core: Dispatcher
        options: dict[str, object]
        pooled: bool
        classes: Classes

        @property
        def ended(self) -> bool: ...

        def deliver(self, event: Event) -> None: ...

        def end_of_second_try(self, event: Event) -> None: ...

DRAINED = ("STOPPED", "FAILED", "QUARANTINED")
CPU = "cpu"
LOOK_S = 0.02  # between looks whether a drained device's workers are gone


class Job:
    """A worker to replace.  With a template and a frame, their task runs once more."""

    def __init__(self, event: Event, template: Template | None, frame: Encoded | None) -> None:
        self.event = event
        self.template = template
        self.frame = frame
        self.stopped = False
        self.inner: Dispatcher | None = None  # while its task runs alone
        self.number = 0  # of the task in there


class Lone:
    """The thread that replaces workers.  It starts with its first job and ends when idle."""

    def __init__(self, engine: Owner) -> None:
        self.owner = weakref.ref(engine)  # no cycle: the last owner ends it, or the thread here
        # of live tasks, where one that runs out of memory gets a second try
        self.frames: dict[int, tuple[Template, Encoded]] | None = None
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        self.lock = threading.RLock()  # a garbage collection here may close a loop, which stops
        self.live: list[Job] = []  # those in `jobs`, and the one that runs
        self.thread: threading.Thread | None = None
        self.limit: int | None = None  # for the end of tasks, once the pool kills its workers

    @property
    def engine(self) -> Owner:
        engine = self.owner()
        assert engine is not None  # who calls, or the thread here, has it
        return engine

    # ---- frames ----

    def keep_frames(self) -> None:
        """From now on a task that runs out of memory may have a second try."""
        if self.frames is None:
            self.frames = {}

    def keep(self, tag: int, template: Template, data: Encoded, options: TaskOptions) -> None:
        """Keeps the frame of a task that may have a second try."""
        if self.frames is not None and options.second_try:
            self.frames[tag] = template, own(data)

    def drop(self, tag: int) -> None:
        """The task was not accepted."""
        if self.frames is not None:
            self.frames.pop(tag, None)

    # ---- jobs ----

    def intercepts(self, event: Event) -> bool:
        """Whether an event is an outcome that is not the last: its task, whose frame is kept, runs
        once more."""
        if event.kind != OUTCOME:
            return False
        known = None if self.frames is None else self.frames.pop(event.tag, None)
        home = self.engine.classes.of(event) if event.outcome == ERROR else None
        if home is None or home.raw:
            return False
        if event.code == ends.FAIL_KEPT_VIEW:
            self._replace_worker(event)
        elif event.code == ends.FAIL_OOM and known is not None:
            self._add(Job(event, *known))
            return True
        return False

    def _replace_worker(self, event: Event) -> None:
        """Replaces the workers of the devices on which the task ran.  They take no task from now
        on: who has the outcome may submit the next one at once."""
        home = self.engine.classes.of(event)
        with suppress(GpuDispatchError):  # as in _return()
            self._drain(event)
            if home is not None and not self._devices(event):
                self.engine.core.class_set(home.name, UNLOAD)
        self._add(Job(event, None, None))

    def join(self) -> None:
        """Waits for the jobs that are there."""
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def stop(self, number: int, kill: bool) -> bool:
        """Stops a task as Future.stop() does; False where it has no second try here.  One that has
        not begun its second try keeps its first outcome."""
        with self.lock:
            for job in self.live:
                if job.template is not None and job.event.task_id == number:
                    job.stopped = True
                    if job.inner is not None:
                        self.engine.classes.mark_stopped(job.number)
                        job.inner.cancel(job.number, kill)
                    return True
            return False

    def finish(self, limit: int) -> None:
        """Ends the task that runs, and those that come."""
        with self.lock:
            self.limit = limit
            for job in self.live:
                job.stopped = True
                if job.inner is not None:
                    self.engine.classes.mark_stopped(job.number)
                    job.inner.close(FINISH_NOW, limit)

    def _add(self, job: Job) -> None:
        thread = threading.Thread(target=self._run, args=(self.engine,), name="gpudispatch-lone")
        try:
            with self.lock:
                self.live.append(job)
                if self.thread is None:
                    thread.start()
                    self.thread = thread
                self.jobs.put(job)
        except RuntimeError:  # no thread can be started: the first outcome stands
            logger.exception("a worker of %s cannot be replaced", job.event.device)
            self._return(job.event)
            self._end(job, job.event)

    def _end(self, job: Job, outcome: Event) -> bool:
        """Returns whether there are more."""
        if job.template is not None:
            self.engine.end_of_second_try(outcome)
        with self.lock:
            self.live.remove(job)
            if not self.live:
                self.thread = None
            return bool(self.live)

    def _run(self, _: Owner) -> None:
        """The pool lives until this thread has ended."""
        more = True
        while more:
            job = self.jobs.get()
            second = job.event
            try:
                second = self._with_device(job) or second
            except Exception:
                logger.exception("a worker of %s could not be replaced", job.event.device)
            more = self._end(job, second)

    def _with_device(self, job: Job) -> Event | None:
        try:
            self._drain(job.event)
            names = devices_of(job.event)
            self._await_drained(set(self._devices(job.event)))
            if job.template is None or job.frame is None:
                return None
            return self._alone(job, job.template, job.frame, names)
        finally:
            self._return(job.event)

    def _drain(self, event: Event) -> None:
        for name in self._devices(event):
            self.engine.core.device_drain(name)

    def _devices(self, event: Event) -> list[str]:
        """What can be drained.  A worker of a pool that has no device is on "cpu"."""
        return [] if self.engine.pooled and event.device == CPU else devices_of(event)

    def _return(self, event: Event) -> None:
        for name in self._devices(event):
            with suppress(GpuDispatchError):  # the pool has ended, or the device was removed
                self.engine.core.device_return(name)

    def _await_drained(self, names: set[str]) -> None:
        while not self.engine.ended:
            rows = [r for r in self.engine.core.slots() if names & set(r["devices"].split(","))]
            if all(row["state"] in DRAINED for row in rows):
                return
            time.sleep(LOOK_S)

    def _alone(
        self, job: Job, template: Template, frame: Encoded, names: list[str]
    ) -> Event | None:
        """The outcome of the task in a pool of one worker on these devices."""
        from gpudispatch import _core

        home = self.engine.classes.of(job.event)
        if home is None:
            return None  # the class was removed meanwhile
        rows = {row["name"]: row["uuid"] for row in self.engine.core.devices()}
        uuids = [rows.get(name, name) for name in names]
        options = home.options | {
            "devices": as_list(names, uuids, str(self.engine.options.get("devices", ""))),
            "devices_per_worker": len(names),
            "queue_size": 1,
        }
        core = _core.Dispatcher(options)
        try:
            with self.lock:
                if job.stopped or self.limit is not None:
                    return None
                job.number = core.submit(template, job.event.tag, frame)
                if not job.number:
                    return None
                job.inner = core
            return self._outcome(core)
        finally:
            with self.lock:
                job.inner = None
            if job.stopped:  # a task of the pool may have the same number
                self.engine.classes.mark_stopped(job.number, False)
            core.close(FINISH_NOW)
            core.destroy()

    def _outcome(self, core: Dispatcher) -> Event | None:
        """That of the one task of a dispatcher; its progress goes to the pool."""
        inbox: list[Event] = []
        while core.poll(NEVER, inbox) is not None:
            for event in inbox:
                if event.kind == OUTCOME:
                    return event
                if event.kind == PROGRESS:
                    self.engine.deliver(event)
            inbox.clear()
        return None


def devices_of(event: Event) -> list[str]:
    return (event.device or "").split(",")


def as_list(names: list[str], uuids: list[str], devices: str) -> str:
    """A device list for the devices of one worker.  GPUs are there by UUID: the entry gpu:2 means
    the third one of CUDA_VISIBLE_DEVICES.  CPU slots and fakes cannot be named singly."""
    kind = names[0].partition(":")[0]  # of a pool, a worker without devices is on "cpu"
    if kind == "cpu":
        return f"cpu:{len(names)}"
    if kind == "fake":
        head, comma, script = devices.partition(",script=")
        return f"fake:{len(names)}" + (f"{comma}{script}" if head.startswith("fake") else "")
    return ",".join(uuids)
