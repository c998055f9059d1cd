# SPDX-License-Identifier: MIT
"""One run of a Dispatcher: it submits the items and calls the callbacks.

     generator                          the thread that called run()
         |                                    callbacks
    thread "gpudispatch-source":                  ^
    pulls, encodes  -->  Feeder.unsent -->  Run: submits, decodes  <-->  Session, Executor

Ctrl-C may raise KeyboardInterrupt between any two instructions of the calling thread.  So each
event stays in the queue until all that it causes is done, and all of that may be done twice (but
for the callback, see Run._call).  An item is in Feeder.open until its callback was called: what is
there at the end is cancelled.  After an interrupt nothing more is submitted.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudispatch import _core, ends
from gpudispatch.classic_board import GIVEN_UP
from gpudispatch.classic_feeder import ITEM, NO_TIMES, NUDGE, Feeder, Item
from gpudispatch.errors import ClosedError, ForkedError, GpuDispatchError, RemoteTraceback
from gpudispatch.events import (
    CLEANUP_FAILURE,
    LOG,
    OUTCOME,
    PROGRESS,
    SETUP_FAILURE,
    STARTED,
    SUCCESS,
)
from gpudispatch.future import Times, times_of
from gpudispatch.news import logger, report_of
from gpudispatch.events import FINISH_ALL, FINISH_NOW, FINISH_RUNNING
from gpudispatch.session import BURST, Session
from gpudispatch.settings import NEVER, TaskOptions

if TYPE_CHECKING:
    from gpudispatch._core import Event
    from gpudispatch.classic_board import Board
    from gpudispatch.classic_places import Place
    from gpudispatch.executor import Executor
    from gpudispatch.progress import Watch

NO_WORKER_ID = -1
FULL_NS = 10_000_000  # between two tries while the core has no room and nothing runs


# ---- callbacks ----


class Calls(NamedTuple):
    on_success: Callable[[int, Any, int], object] | None = None
    on_error: Callable[[int, str, int], object] | None = None
    on_timeout: Callable[[int, float, int], object] | None = None
    on_setup_fail: Callable[[int, str], object] | None = None
    on_task_start: Callable[[int, int], object] | None = None
    on_exit: Callable[[], object] | None = None
    on_progress: Callable[[int, str, Times, int], object] | None = None
    on_cleanup_fail: Callable[[int, str], object] | None = None

    def check(self) -> None:
        for name, function in self._asdict().items():
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable, not {type(function).__name__}")


def text_of(error: BaseException) -> str:
    """The traceback in the worker where there is one, else what is known."""
    if isinstance(error.__cause__, RemoteTraceback):
        return error.__cause__.text
    return str(error) or type(error).__name__


# ---- the run ----


class Run:
    """From the first item to the last callback.  One thread calls all but stop()."""

    def __init__(
        self,
        executor: Executor,
        places: list[Place],
        source: Iterable[Any],
        calls: Calls,
        board: Board,
        task_timeout: float | None,
    ) -> None:
        self.executor = executor
        self.engine = executor._engine
        self.places = places
        self.calls = calls
        self.board = board
        self.task_timeout = task_timeout
        self.engine.caller_ends = True
        self.engine.news.listener = self._take_news
        queue_size = executor._home.settings.queue_size
        self.session = Session(self.engine, queue_size, TaskOptions(), started=True)
        self.ready: deque[Any] = self.session.ready  # of Event and Item
        self.feeder = Feeder(source, self.session.first_tag, queue_size, self._nudge)
        self.template = _core.Template()
        self.idle = False  # waits for events, or is about to
        self.full = False  # the core had no room for the last item
        self.stop_asked = False
        self.interrupts = 0
        self.how: int | None = None  # how the pool was closed
        self.begun: Event | Item | None = None  # the one whose callback was called
        self.setups: dict[int, int] = {}  # slot -> its last incarnation whose setup has failed
        self.unheard = 0  # failures without an on_error
        self.error: BaseException | None = None
        self.watch: Watch | None = None  # what shows the progress
        self.gone = False  # nothing runs any more

    # ---- for other threads ----

    @property
    def pulled(self) -> int:
        """The items that the generator has yielded."""
        return self.feeder.pulled

    def stop(self) -> None:
        """shutdown(): no lock, for signal handlers."""
        self.stop_asked = True
        self._nudge(None)

    def _nudge(self, item: Item | None) -> None:
        """Ends the wait of the run's thread; `item` is one that cannot be sent."""
        if item is not None or (self.idle and not self.ready):
            self.ready.append(item or NUDGE)
        if self.idle:
            self.engine.core.wake()

    # ---- life ----

    def go(self) -> None:
        """Runs everything, and raises what ended it early."""
        self.board.begin(self)
        try:
            while self.interrupts < 3:
                try:
                    if self.interrupts:
                        self._hurry()
                    else:
                        self.feeder.thread.start()
                    self._work()
                    break
                except KeyboardInterrupt as interrupt:
                    self.error = interrupt
                    self.interrupts += 1
            self.error, self.feeder.error = self.error or self.feeder.error, None
        except BaseException as e:
            self.error = e
        finally:
            try:
                self.end()
            finally:
                self._call(self.calls.on_exit, ())
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame, and so the pool

    def end(self) -> None:
        """Frees the pool.  What still runs is killed."""
        if self.gone:
            return
        self.gone = True
        self.feeder.stop()
        self.board.end()
        engine = self.engine
        self.session.close(cancel=False)
        engine.end_here()
        self.feeder.join()
        # no cycles: the descriptors go with the last reference, not with the next collection
        engine.news.listener = None
        self.feeder.news = lambda _: None

    def _work(self) -> None:
        """Until the last event of the pool."""
        while not self.engine.ended:
            self._deliver()
            if self.how is None and self.stop_asked:
                self._close(FINISH_RUNNING)
            elif self.how is None and self._all_in():
                self._close(FINISH_ALL)
            self._submit()
            self._wait()
        self._deliver()
        self.feeder.join()  # for its last item
        self.ready.extend(list(self.feeder.open.values()))  # what the core never had, or gave back
        self._deliver()
        if self.unheard > 1:
            logger.warning("%d tasks failed, and there was no on_error", self.unheard)
            self.unheard = 0

    def _all_in(self) -> bool:
        return self.feeder.done and not self.feeder.open

    def _close(self, how: int, limit: int = 0) -> None:
        self.feeder.stop()
        self.engine.core.close(how, limit)
        self.how = how

    def _hurry(self) -> None:
        """After Ctrl-C: the code of running tasks gets an exception, as with Future.stop()."""
        self.engine.classes.stop_running()
        self._close(FINISH_NOW, 0 if self.interrupts == 1 else 1)

    # ---- items ----

    def _submit(self) -> None:
        unsent = self.feeder.unsent
        self.full = False
        while unsent and not self.full and self.how is None:
            head = [unsent[place] for place in range(min(BURST, len(unsent)))]
            # their numbers have gaps where an item could not be encoded
            batch = [item for i, item in enumerate(head, head[0].index) if item.index == i]
            try:
                n = self._send(batch)
            except (ClosedError, ForkedError):
                raise
            except GpuDispatchError as e:  # of the first item: it is too large
                batch[0].end = "error", text_of(e)
                self.ready.append(batch[0])
                self.feeder.accepted(1)
                continue
            self.full = n < len(batch)

    def _send(self, batch: list[Item]) -> int:
        """Submits some items; returns how many the core had room for."""
        frames = [item.frame for item in batch]
        times = Times(time.monotonic(), 0.0, 0.0, 0.0)
        n = self.session.submit_many(self.template, batch[0].index, [None] * len(batch), frames)
        self.feeder.accepted(n)
        for item in batch[:n]:
            item.times = times
            self._call(self.calls.on_progress, (item.index, "queued", times, NO_WORKER_ID))
        return n

    # ---- events ----

    def _take_news(self, event: Event) -> bool:
        """Takes an event of the workers; those that are not for the callbacks are logged, too."""
        self.ready.append(event)
        return event.kind != LOG or event.stream != 0

    def _wait(self) -> None:
        timeout = FULL_NS if self.full and not self.session.live else NEVER
        if self.watch is not None:
            self.watch.tick()
            timeout = min(timeout, self.watch.patience())
        self.idle = True  # from here on the feeder and stop() end the wait
        try:
            self.session.read(0 if self._has_work() else timeout)
        finally:
            self.idle = False

    def _has_work(self) -> bool:
        fresh = bool(self.feeder.unsent) and not self.full
        return self.how is None and (fresh or self.stop_asked or self._all_in())

    def _deliver(self) -> None:
        """Takes the events.  A callback is called once: `begun` is set right before (_call)."""
        ready, session = self.ready, self.session
        while ready:
            event = ready[0]
            if event is not self.begun:
                self._take(event)
            if event.kind in (ITEM, OUTCOME):
                session.live.pop(event.tag - session.first_tag, None)
                session.ids.pop(event.tag - session.first_tag, None)
                self.feeder.ended(event.tag)
            ready.popleft()
            self.begun = None

    def _take(self, event: Any) -> None:
        kind = event.kind
        if kind == OUTCOME:
            self._outcome(event)
        elif kind == STARTED:
            self._started(event)
        elif kind == PROGRESS:
            self._progress(event, "progress", event)
        elif kind == SETUP_FAILURE:
            self._setup_failure(event)
        elif kind == CLEANUP_FAILURE:
            self._worker_failure(event, "cleanup", self.calls.on_cleanup_fail)
        elif kind == LOG and event.stream:
            self._print(event)
        elif kind == ITEM:
            if event.tag in self.feeder.open:
                kind, text = event.end
                self._end_of(event, kind, text, NO_WORKER_ID, NO_TIMES, event)
        else:
            self._check_workers()

    def _worker_of(self, event: Event) -> int:
        slot = event.slot
        return self.places[slot].worker_id if slot < len(self.places) else NO_WORKER_ID

    def _started(self, event: Event) -> None:
        """Reports the start of an attempt, once: its event may have been dropped, and the outcome
        proves it then."""
        item = self.feeder.open.get(event.tag)
        if item is None or item.attempt >= event.attempt:
            return
        worker = self._worker_of(event)
        self.board.started(worker, item.index, event.started_at / 1e9)
        item.attempt = event.attempt
        self._call(self.calls.on_task_start, (item.index, worker))
        self._progress(event, "started")

    def _progress(self, event: Event, name: str, done: Event | None = None) -> None:
        item = self.feeder.open.get(event.tag)
        if item is not None:
            if event.started_at:  # such an event carries no other times
                sent, started = event.sent_at / 1e9, event.started_at / 1e9
                item.times = item.times._replace(sent=sent, started=started)
            arguments = item.index, name, item.times, self._worker_of(event)
            self._call(self.calls.on_progress, arguments, done)

    def _outcome(self, event: Event) -> None:
        item = self.feeder.open.get(event.tag)
        if item is None:
            return
        if event.started_at and event.attempt:
            self._started(event)
        value, error, kind = None, None, "error"
        if event.outcome == SUCCESS:
            value, error = ends.decoded(event.result)  # which stays there for a second time
        else:
            kind, error = self.session.failure(event)[:2]
        if error is None:
            kind = "success"
        else:
            value = text_of(error)
        if kind == "no_worker":
            self._check_workers(error)
        self._end_of(item, kind, value, self._worker_of(event), times_of(event), event)

    def _end_of(
        self,
        item: Item,
        kind: str,
        value: Any,
        worker: int,
        times: Times,
        event: Event | Item,
    ) -> None:
        calls, index = self.calls, item.index
        self.board.ended(worker, index, kind)
        if self.watch is not None:
            self.watch.add(kind, times.started)
        if kind == "success":
            self._call(calls.on_success, (index, value, worker), event)
        elif kind == "timeout" and self.task_timeout is not None and calls.on_timeout is not None:
            self._call(calls.on_timeout, (index, self.task_timeout, worker), event)
        else:
            self._call(calls.on_error or self._log_failure, (index, value, worker), event)
        self._call(calls.on_progress, (index, kind, times, worker))

    def _call(
        self,
        function: Callable[..., object] | None,
        arguments: tuple[Any, ...],
        event: Event | Item | None = None,
    ) -> None:
        """Calls a callback, which is what `event` is about.  One that raises ends the run."""
        if function is None:
            return
        try:
            # An interrupt that comes between these lines is raised in the callback, as its first
            # act: neither an assignment nor a test lets it in.
            if event is not None:
                self.begun = event
            function(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            if self.error is None:
                self.error = e
                self.stop_asked = True
            else:
                logger.exception("a callback has raised after the first that did")

    def _log_failure(self, index: int, text: str, _worker: int) -> None:
        self.unheard += 1
        if self.unheard == 1:
            logger.warning(
                "task %d failed, and there is no on_error; further ones are counted\n%s",
                index, text,
            )  # fmt: skip

    # ---- events of workers ----

    def _setup_failure(self, event: Event) -> None:
        slot = event.slot
        if event.incarnation > self.setups.get(slot, -2) + 1:  # a worker came up in between
            self._worker_failure(event, "setup", self.calls.on_setup_fail)
        else:
            worker = self.places[slot].worker_id
            logger.info("worker %d: setup failed again: %s", worker, event.text)
        self.setups[slot] = event.incarnation
        self._check_workers()

    def _worker_failure(
        self, event: Event, what: str, function: Callable[[int, str], object] | None
    ) -> None:
        place, report = self.places[event.slot], report_of(event)
        if function is None:
            logger.warning("worker %d: %s failed: %s", place.worker_id, what, report)
        else:
            self._call(function, (place.gpu_id, report), event)

    def _check_workers(self, lost: BaseException | None = None) -> None:
        """Ends the run where all slots are given up: what is accepted ends NO_WORKER.  `lost` is
        the proof, if there is one."""
        if self.error is not None:
            return
        slots = self.executor.slots()
        if lost is None and any(slot["state"] not in GIVEN_UP for slot in slots):
            return
        # from the slots: the report of the last failure may be in the queue yet
        if all(slot["state"] == "FAILED" and not slot["setup_time"] for slot in slots):
            why = self.engine.news.setup_error
            text = "All workers failed during setup" + ("" if why is None else f": {why.message}")
        else:
            text = "No worker is left" + ("" if lost is None else f": {lost}")
        self.error = self.engine.news.no_worker(text)
        self.stop_asked = True

    @staticmethod
    def _print(event: Event) -> None:
        """A line that a worker has printed."""
        stream = sys.stderr if event.stream == 2 else sys.stdout
        # closed, or the other side of the pipe is gone
        with contextlib.suppress(OSError, ValueError):
            if stream is not None:
                stream.write((event.text or "") + "\n")
