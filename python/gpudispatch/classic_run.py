# SPDX-License-Identifier: MIT
"""One run of a Dispatcher: places for workers, the thread of the generator, events to callbacks.

     generator                          the thread that called run()
         |                                    callbacks
    thread "gpudispatch-source":                  ^
    pulls, encodes  -->  Feeder.items  -->  Run: submits, polls, decodes  <-->  core (C)

Ctrl-C may raise KeyboardInterrupt between any two instructions of the calling thread.  So each
event stays in the queue until all that it causes is done, all of that may be done twice (but for
the callback, see Run._call), and after an interrupt nothing more is submitted: the outcomes tell
which of the items of that last call the core has accepted.
"""

from __future__ import annotations

import contextlib
import copy
import operator
import os
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

from gpudispatch import _core, codec
from gpudispatch.errors import ClosedError, ForkedError, GpuDispatchError, RemoteTraceback
from gpudispatch.future import Times, times_of
from gpudispatch.pool import (
    CLEANUP_FAILURE,
    FINISH_ALL,
    FINISH_NOW,
    FINISH_RUNNING,
    LOG,
    NEVER,
    OUTCOME,
    PROGRESS,
    SETUP_FAILURE,
    STARTED,
    STOP_WORDS,
    SUCCESS,
    frame_size,
    logger,
    own,
    report_of,
)
from gpudispatch.session import BURST, Session
from gpudispatch.settings import TaskOptions

if TYPE_CHECKING:
    from gpudispatch._core import Event
    from gpudispatch.codec import Encoded
    from gpudispatch.pool import Pool
    from gpudispatch.progress import Watch
    from gpudispatch.tables import DeviceInfo, SlotStats

SLOT = 4
STATES = ("STOPPED", "STARTING", "READY", "BUSY", "DRAINING", "BACKOFF", "FAILED", "QUARANTINED")
NO_WORKER_ID = -1
NO_TIMES = Times(0.0, 0.0, 0.0, 0.0)
AHEAD_BYTES = 1 << 20  # of items that are pulled and not accepted, unless one is larger
FULL_NS = 10_000_000  # between two tries while the core has no room and nothing runs
FAREWELL_S = 0.2  # for a generator that is being closed early

WorkerState = Literal["initializing", "restarting", "idle", "processing", "finished", "error"]


class GpuStats(TypedDict):
    """One worker in RunStats.  Times are seconds of time.monotonic()."""

    gpu_id: int
    status: WorkerState
    current_task: int | None
    task_start_time: float | None
    last_duration: float | None
    completed: int
    failed: int
    timeouts: int
    restarts: int


class RunStats(TypedDict):
    """What get_stats() returns.  Times are seconds of time.monotonic()."""

    pending: int  # items that have been pulled and have not ended
    total: int  # items that have ended: completed + failed + timeouts
    completed: int
    failed: int
    timeouts: int
    setup_failures: int
    start_time: float | None
    end_time: float | None
    expected_total: int | None
    gpu_status: dict[int, GpuStats]  # by worker_id


# ---- places ----


class Place(NamedTuple):
    """What a slot stands for: `slot` of the core is its place in the list."""

    gpu_id: int
    worker_id: int
    seed: int
    is_gpu: bool


def check_ids(gpu_ids: Sequence[int]) -> list[int]:
    if isinstance(gpu_ids, (str, bytes)) or not isinstance(gpu_ids, Iterable):
        raise TypeError(f"gpu_ids must be a list of int, not {type(gpu_ids).__name__}")
    ids: list[int] = []
    for given in gpu_ids:
        try:
            number = -1 if isinstance(given, bool) else operator.index(given)
        except TypeError:
            number = -1
        if number == -1 and given != -1:
            raise TypeError(f"gpu_ids has {given!r}, expected int")
        if not 0 <= number < 2**31:
            raise ValueError(f"gpu_ids has {number}, expected 0 or more")
        ids.append(number)
    if not ids:
        raise ValueError("gpu_ids cannot be empty")
    if len(ids) > 1024:
        raise ValueError(f"gpu_ids has {len(ids)} entries, the maximum is 1024")
    return ids


def worker_ids(gpu_ids: Sequence[int]) -> list[int]:
    """The number of the GPU; for each further worker of the same GPU the next one above all."""
    above = max(gpu_ids) + 1
    out: list[int] = []
    for number in gpu_ids:
        if number in out:
            number, above = above, above + 1
        out.append(number)
    return out


def usable_gpus(count: int, visible: str | None) -> int:
    """How many GPUs the numbers 0, 1... name: those that CUDA_VISIBLE_DEVICES allows, which is a
    list that ends at an empty entry or a negative number."""
    if visible is None or not count:
        return count
    allowed = 0
    for entry in visible.split(","):
        entry = entry.strip()
        if not entry or entry.startswith("-"):
            break
        allowed += 1
    return allowed


def gpus_there() -> int:
    if os.environ.get("GPUDISPATCH_DEVICES", "").startswith("cpu"):
        return 0
    count = sum(1 for row in _core.machine() if row["kind"] == "GPU")
    return usable_gpus(count, os.environ.get("CUDA_VISIBLE_DEVICES"))


def plan(
    gpu_ids: Sequence[int], base_seed: int, there: int | None = None
) -> tuple[str, list[Place]]:
    """The device list, and the place of each slot that it makes.  Slots have the list's order."""
    if there is None:
        there = gpus_there()
    counts = Counter(gpu_ids)
    rows = [
        Place(number, worker, base_seed + worker, number < there)
        for number, worker in zip(gpu_ids, worker_ids(gpu_ids), strict=True)
    ]
    devices: list[str] = []
    places: list[Place] = []
    for place in rows:
        if not place.is_gpu:
            devices.append("cpu:1")
            places.append(place)
        elif place.worker_id == place.gpu_id:  # the first worker of its GPU brings the others along
            each = counts[place.gpu_id]
            devices.append(f"{place.gpu_id}/{each}" if each > 1 else str(place.gpu_id))
            places += [p for p in rows if p.gpu_id == place.gpu_id]
    missing = sorted({p.gpu_id for p in places if not p.is_gpu})
    if missing and there:
        logger.warning(
            "GPU %s: not there (of %d), runs on CPU slots", ", ".join(map(str, missing)), there
        )
    return ",".join(devices), places


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


# ---- stats ----


class Board:
    """The stats of a run.  Thread rule: any thread."""

    def __init__(self, gpu_ids: Sequence[int], expected: int | None = None) -> None:
        self.lock = threading.Lock()
        self.stats: RunStats = {
            "pending": 0,
            "total": 0,
            "completed": 0,
            "failed": 0,
            "timeouts": 0,
            "setup_failures": 0,
            "start_time": None,
            "end_time": None,
            "expected_total": expected,
            "gpu_status": {
                worker: {
                    "gpu_id": number,
                    "status": "initializing",
                    "current_task": None,
                    "task_start_time": None,
                    "last_duration": None,
                    "completed": 0,
                    "failed": 0,
                    "timeouts": 0,
                    "restarts": 0,
                }
                for number, worker in zip(gpu_ids, worker_ids(gpu_ids), strict=True)
            },
        }

    def snapshot(self) -> RunStats:
        with self.lock:
            return copy.deepcopy(self.stats)

    def begin(self) -> None:
        with self.lock:
            self.stats["start_time"] = time.monotonic()

    def end(self) -> None:
        with self.lock:
            self.stats["end_time"] = time.monotonic()
            self.stats["pending"] = 0
            for row in self.stats["gpu_status"].values():
                self._rest(row, "error" if row["status"] == "error" else "finished")

    def pulled(self, pulled: int) -> None:
        with self.lock:
            self.stats["pending"] = max(0, pulled - self.stats["total"])

    def started(self, worker: int, index: int, when: float) -> None:
        with self.lock:
            row = self.stats["gpu_status"].get(worker)
            if row is not None:
                row["status"] = "processing"
                row["current_task"] = index
                row["task_start_time"] = when

    def ended(self, worker: int, index: int, kind: str, duration: float | None) -> None:
        name: Literal["completed", "failed", "timeouts"] = "failed"
        if kind == "success":
            name = "completed"
        elif kind == "timeout":
            name = "timeouts"
        with self.lock:
            self.stats[name] += 1
            self.stats["total"] += 1
            row = self.stats["gpu_status"].get(worker)
            if row is None:
                return
            row[name] += 1
            if duration is not None:
                row["last_duration"] = duration
            if kind == "crash":
                self._rest(row, "restarting")
            elif row["current_task"] == index and row["status"] == "processing":
                self._rest(row, "idle")

    def setup_failed(self) -> None:
        with self.lock:
            self.stats["setup_failures"] += 1

    def slot(self, worker: int, state: str, incarnation: int) -> None:
        with self.lock:
            row = self.stats["gpu_status"].get(worker)
            if row is None:
                return
            if state in ("STARTING", "BACKOFF"):
                again = incarnation > 1 or state == "BACKOFF" or row["restarts"]
                self._rest(row, "restarting" if again else "initializing")
                row["restarts"] = max(row["restarts"], incarnation - 1)
            elif state in ("FAILED", "QUARANTINED"):
                self._rest(row, "error")
            elif state == "STOPPED":
                self._rest(row, "finished")
            elif state == "READY" and row["status"] != "processing":
                self._rest(row, "idle")

    @staticmethod
    def _rest(row: GpuStats, status: WorkerState) -> None:
        row["status"] = status
        row["current_task"] = None
        row["task_start_time"] = None


# ---- the generator ----


@dataclass
class Fed:
    """One item of the generator: its frame, or why it has none.  One that the core never had is an
    event, too: its end."""

    index: int
    frame: Encoded
    error: Exception | None = None
    verdict: tuple[str, str] = ("cancelled", "cancelled before it started")
    kind = 0

    def own(self) -> None:
        """As an event does, which may hold payload memory."""


class Feeder:
    """Pulls the generator on a thread of its own.

    `room` says whether one more item may be pulled; `news` is called when there is an item, and at
    the end.  The thread is a daemon: a generator that blocks for ever does not keep the program.
    """

    def __init__(
        self, source: Iterable[Any], room: Callable[[], bool], news: Callable[[], None]
    ) -> None:
        self.source = source
        self.room = room
        self.news = news
        self.items: deque[Fed] = deque()
        self.size = 0  # bytes in items
        self.pulled = 0
        self.done = False
        self.stopped = False
        self.waiting = False
        self.launched = False
        self.error: BaseException | None = None
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._run, name="gpudispatch-source", daemon=True)

    def start(self) -> None:
        """Starts the thread, once, and not after stop()."""
        if not self.launched and not self.stopped:
            self.launched = True
            self.thread.start()

    def join(self) -> None:
        """Waits for the end of the thread, and for a short time where the generator blocks."""
        if self.thread.ident is not None:
            self.thread.join(None if self.done else FAREWELL_S)

    def stop(self) -> None:
        """No more items."""
        self.stopped = True
        self.wake()

    def wake(self) -> None:
        """There may be room."""
        if self.waiting:
            with self.changed:
                self.changed.notify()

    def take(self, n: int) -> None:
        """The first n items have been accepted."""
        for _ in range(n):
            fed = self.items.popleft()
            self.size -= frame_size(fed.frame)

    def _run(self) -> None:
        source = None
        try:
            source = iter(self.source)
            while self._await_room():
                try:
                    item = next(source)
                except StopIteration:
                    break
                self._put(item)
                del item
        except BaseException as e:  # SystemExit, too: it is the generator's, not this thread's
            self.error = e
        if isinstance(source, Generator):
            try:
                source.close()
            except BaseException as e:
                self.error = self.error or e
        self.done = True
        self.news()

    def _await_room(self) -> bool:
        if not self.stopped and not self._has_room():
            with self.changed:
                self.waiting = True
                while not self.stopped and not self._has_room():
                    self.changed.wait()
                self.waiting = False
        return not self.stopped

    def _has_room(self) -> bool:
        return len(self.items) < BURST and self.size < AHEAD_BYTES and self.room()

    def _put(self, item: object) -> None:
        fed = Fed(self.pulled, b"")
        try:
            # own: the generator may yield the same array again, with other contents
            fed.frame = own(codec.encode(codec.ITEM, item, cuda="error"))
        except Exception as e:
            fed.error = e
        self.pulled += 1
        self.size += frame_size(fed.frame)
        self.items.append(fed)
        self.news()


def _never() -> bool:
    return False


def _nothing() -> None:
    pass


# ---- the run ----


class Run:
    """From the first item to the last callback.  One thread calls all but stop()."""

    def __init__(
        self,
        pool: Pool,
        places: list[Place],
        source: Iterable[Any],
        calls: Calls,
        board: Board,
        *,
        queue_size: int,
        task_timeout: float | None,
    ) -> None:
        self.pool = pool
        self.places = places
        self.calls = calls
        self.board = board
        self.queue_size = queue_size
        self.task_timeout = task_timeout
        pool.caller_ends = True
        pool.on_news = self._take_news
        self.session = Session(pool, queue_size, TaskOptions().but(on_cancel="kill"), started=True)
        self.live: dict[int, int] = self.session.live  # index -> the core's id; 0 = not known
        self.ready: deque[Any] = self.session.ready  # of Event and Fed
        self.starts: dict[int, int] = {}  # index -> the last attempt that was reported
        self.times: dict[int, Times] = {}  # of live ones so far, for on_progress
        self.feeder = Feeder(source, self._room, self._feeder_news)
        self.template = TaskOptions().template()
        self.idle = False  # inside a poll
        self.full = False  # the core had no room for the last item
        self.stop_asked = False
        self.interrupts = 0
        self.how: int | None = None  # how the pool was closed
        self.begun: Event | Fed | None = None  # the one whose callback was called
        self.failing: set[int] = set()  # slots whose setup has failed since they last worked
        self.dead: set[int] = set()  # slots that are given up
        self.unheard = 0  # failures without an on_error
        self.error: BaseException | None = None
        self.ended = False
        self.watch: Watch | None = None  # what shows the progress
        self.gone = False  # nothing runs any more

    # ---- for other threads ----

    def stop(self) -> None:
        """shutdown(): no lock, for signal handlers."""
        self.stop_asked = True
        self.pool.core.wake()

    def _room(self) -> bool:
        return len(self.live) + len(self.feeder.items) < self.queue_size

    def _feeder_news(self) -> None:
        if self.idle:
            self.pool.core.wake()

    def rows(self) -> tuple[list[SlotStats], dict[str, DeviceInfo]]:
        """The slots, and the devices by name."""
        core = self.pool.core
        return core.slots(), {row["name"]: row for row in core.devices()}

    # ---- life ----

    def go(self) -> None:
        """Runs everything, and raises what ended it early."""
        self.board.begin()
        try:
            while not self.ended:
                try:
                    if self.interrupts:
                        self._hurry()
                    self.feeder.start()
                    self._work()
                    self.ended = True
                except KeyboardInterrupt as interrupt:
                    self.error = interrupt
                    self.interrupts += 1
                    if self.interrupts > 2:
                        break
            self._blame_source()
        except BaseException as e:
            self.error = e
        finally:
            try:
                self.end()
            finally:
                self._call_on_exit()
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame, and so the pool

    def _call_on_exit(self) -> None:
        self.board.end()
        try:
            if self.calls.on_exit is not None:
                self.calls.on_exit()
        except BaseException as e:
            if self.error is None:
                self.error = e
            else:
                logger.exception("on_exit has raised")

    def end(self) -> None:
        """Frees the pool.  What still runs is killed."""
        if self.gone:
            return
        self.gone = True
        self.feeder.stop()
        pool = self.pool
        pool.close_session(self.session.first_tag)
        pool.closing = FINISH_NOW
        if not pool.ended:
            with contextlib.suppress(GpuDispatchError):
                pool.core.close(FINISH_NOW, 1)
        pool.ended = True
        if pool.lone is not None:
            pool.lone.join()
        pool.last_stats = pool.core.stats()
        pool.destroy()
        self.feeder.join()
        # no cycles: the descriptors go with the last reference, not with the next collection
        pool.on_news = None
        self.feeder.room = _never
        self.feeder.news = _nothing

    def _blame_source(self) -> None:
        error, self.feeder.error = self.feeder.error, None
        self.error = self.error or error

    def _work(self) -> None:
        """Until the last event of the pool."""
        while not self.pool.ended:
            self._deliver()
            if self.stop_asked and self.how is None:
                self._close(FINISH_RUNNING)
            self._submit()
            if self.how is None and self._all_in():
                self._close(FINISH_ALL)
            self._wait()
        self._deliver()
        self.feeder.join()  # for its last item
        self._cancel_rest()
        self._report_unheard()

    def _all_in(self) -> bool:
        # done is set after the last item is in the queue
        return self.feeder.done and not self.feeder.items and not self.live

    def _close(self, how: int, limit: int = 0) -> None:
        self.feeder.stop()
        self.pool.core.close(how, limit)
        self.how = how

    def _hurry(self) -> None:
        """After Ctrl-C.  What the core may have is known by its outcomes from now on; the other
        items end in _cancel_rest."""
        items = self.feeder.items
        while items and items[0].index in self.live:
            items.popleft()
        for number in self.live.values():  # their code gets an exception, as with Future.stop()
            if number:
                self.pool.shared.store(number % STOP_WORDS, number)
        if self.interrupts == 1:
            self._close(FINISH_NOW)
        else:
            self._close(FINISH_NOW, 1)

    # ---- items ----

    def _submit(self) -> None:
        feeder = self.feeder
        while feeder.items and self.how is None:
            first = feeder.items[0]
            if first.error is not None:
                self._refuse(first, "".join(traceback.format_exception(first.error)))
                continue
            room = self.queue_size - len(self.live)
            batch = []
            for place in range(min(room, BURST, len(feeder.items))):
                fed = feeder.items[place]
                if fed.error is not None:
                    break
                batch.append(fed)
            n = self._send(first.index, batch) if batch else 0
            self.full = n < len(batch) or not batch
            if self.full:
                return

    def _send(self, first: int, batch: list[Fed]) -> int:
        """Submits some items; returns how many the core had room for."""
        live, times = self.live, Times(time.monotonic(), 0.0, 0.0, 0.0)
        live.update(dict.fromkeys(range(first, first + len(batch)), 0))
        try:
            ids = self.pool.core.submit_many(
                self.template, self.session.first_tag + first, [fed.frame for fed in batch]
            )
        except (ClosedError, ForkedError):
            raise
        except GpuDispatchError as e:  # of the first item: it is too large
            for fed in batch:
                live.pop(fed.index, None)
            self._refuse(batch[0], text_of(e))
            return len(batch)  # the caller tries the others
        n = len(ids)
        live.update(enumerate(ids, first))
        for fed in batch[n:]:
            live.pop(fed.index, None)
        self.feeder.take(n)
        self.board.pulled(self.feeder.pulled)
        if self.calls.on_progress is not None:
            for fed in batch[:n]:
                self.times[fed.index] = times
                self._call(self.calls.on_progress, (fed.index, "queued", times, NO_WORKER_ID))
        return n

    def _refuse(self, fed: Fed, text: str) -> None:
        """An item that never gets to a worker."""
        fed.verdict = "error", text
        self.live[fed.index] = 0
        self.ready.append(fed)
        self.feeder.take(1)

    def _cancel_rest(self) -> None:
        """What the core never had, or never gave back."""
        self.live.update(dict.fromkeys((fed.index for fed in list(self.feeder.items)), 0))
        self.feeder.items.clear()
        self.ready.extend(Fed(index, b"") for index in sorted(self.live))
        self._deliver()

    # ---- events ----

    def _take_news(self, event: Event) -> bool:
        if event.kind in (SETUP_FAILURE, CLEANUP_FAILURE, SLOT) or (
            event.kind == LOG and event.stream
        ):
            self.session.take(event)
            return True
        return False

    def _wait(self) -> None:
        pool, timeout = self.pool, NEVER
        if self.full and not self.live:
            timeout = FULL_NS
        if self.watch is not None:
            self.watch.tick()
            timeout = min(timeout, self.watch.patience())
        self.idle = True  # from here on the feeder and stop() end the poll
        try:
            if self.ready or (self.how is None and self._has_work()):
                timeout = 0
            with pool.reading:
                if not pool.inbox and not pool.ended:
                    pool._poll(timeout)
                self.session._sort()
        finally:
            self.idle = False

    def _has_work(self) -> bool:
        fresh = bool(self.feeder.items) and not self.full and len(self.live) < self.queue_size
        return fresh or self.stop_asked or self._all_in()

    def _deliver(self) -> None:
        """Takes the events.  A callback is called once: `begun` is set right before (_call)."""
        ready = self.ready
        while ready:
            event = ready[0]
            if event is not self.begun:
                self._take(event)
            if isinstance(event, Fed):
                self._forget(event.index)
            elif event.kind == OUTCOME:
                self._forget(event.tag - self.session.first_tag)
            ready.popleft()
            self.begun = None

    def _forget(self, index: int) -> None:
        self.live.pop(index, None)
        self.starts.pop(index, None)
        self.times.pop(index, None)
        if len(self.live) + len(self.feeder.items) <= self.queue_size - min(
            BURST, (self.queue_size + 1) // 2
        ):
            self.feeder.wake()

    def _take(self, event: Event | Fed) -> None:
        kind = event.kind
        if isinstance(event, Fed):
            if event.index in self.live:
                self._end_of(event.index, *event.verdict, NO_WORKER_ID, NO_TIMES, event)
        elif kind == OUTCOME:
            self._outcome(event)
        elif kind == STARTED:
            self._started(event, event.attempt)
        elif kind == PROGRESS:
            self._progress(event, "progress", event)
        elif kind == SETUP_FAILURE:
            self._setup_failure(event)
        elif kind == CLEANUP_FAILURE:
            self._cleanup_failure(event)
        elif kind == SLOT:
            self._slot(event)
        else:
            self._print(event)

    def _worker_of(self, event: Event) -> int:
        slot = event.slot
        return self.places[slot].worker_id if slot < len(self.places) else NO_WORKER_ID

    def _started(self, event: Event, attempt: int) -> None:
        """Reports the start of an attempt, once: its event may have been dropped."""
        index = event.tag - self.session.first_tag
        if index not in self.live or self.starts.get(index, 0) >= attempt:
            return
        worker = self._worker_of(event)
        self.failing.discard(event.slot)
        self.board.started(worker, index, event.started_at / 1e9)
        self.starts[index] = attempt
        self.live[index] = event.task_id
        self._call(self.calls.on_task_start, (index, worker))
        self._progress(event, "started")

    def _outcome(self, event: Event) -> None:
        index = event.tag - self.session.first_tag
        if index not in self.live:
            return
        if event.started_at and event.attempt:
            self._started(event, event.attempt)
        kind, value = self._verdict(event)
        self._end_of(index, kind, value, self._worker_of(event), times_of(event), event)

    def _verdict(self, event: Event) -> tuple[str, Any]:
        """The kind of an outcome and the argument for its callback.  May be called twice: the event
        keeps its result."""
        error: BaseException
        if event.outcome == SUCCESS:
            try:
                return "success", codec.decode(event.result or b"\0")[1]
            except Exception as e:
                return "error", "".join(traceback.format_exception(e))
        kind, error = self.session.failure(event)[:2]
        if kind == "no_worker":
            self._no_worker(error)
        if kind == "timeout" and self.task_timeout is not None:
            return kind, text_of(error)
        if isinstance(error, CancelledError):
            return kind, str(error) or "cancelled"
        return kind, text_of(error)

    def _end_of(
        self,
        index: int,
        kind: str,
        value: Any,
        worker: int,
        times: Times,
        event: Event | Fed,
    ) -> None:
        calls = self.calls
        duration = times.ended - times.started if times.started and times.ended else None
        self.board.ended(worker, index, kind, duration)
        self.board.pulled(self.feeder.pulled)
        if self.watch is not None:
            self.watch.add(kind, times.started)
        timeout = kind == "timeout" and self.task_timeout is not None
        if kind == "success":
            self._call(calls.on_success, (index, value, worker), event)
        elif timeout and calls.on_timeout is not None:
            self._call(calls.on_timeout, (index, self.task_timeout, worker), event)
        elif calls.on_error is not None:
            self._call(calls.on_error, (index, value, worker), event)
        else:
            self._log_failure(index, value)
        self._call(calls.on_progress, (index, kind, times, worker))

    def _progress(self, event: Event, name: str, done: Event | None = None) -> None:
        if self.calls.on_progress is not None:
            index = event.tag - self.session.first_tag
            times = self.times.get(index, NO_TIMES)
            if event.started_at:  # such an event carries no other times
                times = times._replace(sent=event.sent_at / 1e9, started=event.started_at / 1e9)
                self.times[index] = times
            arguments = (index, name, times, self._worker_of(event))
            self._call(self.calls.on_progress, arguments, done)

    def _call(
        self,
        function: Callable[..., object] | None,
        arguments: tuple[Any, ...],
        event: Event | Fed | None = None,
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

    def _log_failure(self, index: int, text: str) -> None:
        self.unheard += 1
        if self.unheard == 1:
            logger.warning(
                "task %d failed, and there is no on_error; further ones are counted\n%s",
                index, text,
            )  # fmt: skip

    def _report_unheard(self) -> None:
        if self.unheard > 1:
            logger.warning("%d tasks failed, and there was no on_error", self.unheard)
            self.unheard = 0

    # ---- events of workers ----

    def _setup_failure(self, event: Event) -> None:
        self.board.setup_failed()
        place = self.places[event.slot]
        if event.slot in self.failing:  # it is known
            logger.info("worker %d: setup failed again: %s", place.worker_id, event.text)
            return
        if self.calls.on_setup_fail is None:
            logger.warning("worker %d: setup failed: %s", place.worker_id, event.text)
        else:
            self._call(self.calls.on_setup_fail, (place.gpu_id, report_of(event)), event)
        self.failing.add(event.slot)

    def _cleanup_failure(self, event: Event) -> None:
        place = self.places[event.slot]
        if self.calls.on_cleanup_fail is None:
            logger.warning("worker %d: cleanup failed: %s", place.worker_id, report_of(event))
        else:
            self._call(self.calls.on_cleanup_fail, (place.gpu_id, report_of(event)), event)

    def _slot(self, event: Event) -> None:
        state = STATES[event.slot_state] if event.slot_state < len(STATES) else "?"
        if state in ("FAILED", "QUARANTINED"):
            self.dead.add(event.slot)
        else:
            self.dead.discard(event.slot)
            if state == "READY":
                self.failing.discard(event.slot)
        self.board.slot(self._worker_of(event), state, event.incarnation)
        if len(self.dead) == len(self.places):
            self._no_worker(None)

    def _no_worker(self, error: BaseException | None) -> None:
        """All slots are given up: what is accepted ends NO_WORKER, and no more is taken."""
        self.stop_asked = True
        if self.error is not None:
            return
        if self.pool.setup_error is not None and self.dead <= self.failing:
            text = "All workers failed during setup"
        else:
            text = f"No worker is left: {error}" if error is not None else "No worker is left"
        self.error = self.pool.no_worker(text)

    @staticmethod
    def _print(event: Event) -> None:
        """A line that a worker has printed."""
        stream = sys.stderr if event.stream == 2 else sys.stdout
        try:
            if stream is not None:
                stream.write((event.text or "") + "\n")
        except (OSError, ValueError):
            pass  # closed, or the other side of the pipe is gone
