# SPDX-License-Identifier: MIT
"""Engine: one dispatcher, its futures and sessions, and who reads its events.

           submit                                 outcomes, map
             |  a Future per task                   |  a session: tags of its own, no Future
             v                                      v
        backlog (when the core is full)          core.submit_many
             |                                      |
             +------------> core (C) <--------------+
                              |  events
                              v
                            inbox      filled and emptied by the thread that holds `reading`
                              |
            the pool's thread resolves futures; a session takes its own events

The pool's thread starts with the first future.  While futures are outstanding it reads, unless a
thread inside result() does that itself (attend).  Without futures a session reads on its caller's
thread, and the pool's thread, if there is one, is parked.

A tag names a task: futures count from 1; a session's tags have its number above bit 40.  The tasks
of each class have a quota of what the core takes, so that a class with a long queue leaves room for
the others.  While tasks of futures wait in the backlog, those of sessions wait there, too.

Nothing here refers to the Executor or the Pool: one that is dropped leaves its engine to finish the
tasks.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time

from gpudispatch import ends, errors, living, waits
from gpudispatch.backlog import Backlog, Waiting
from gpudispatch.classes import Classes
from gpudispatch.errors import ClosedError, ForkedError, NoWorker, ReentryError, ResultTooLarge
from gpudispatch.events import CANCELLED, CLASS, FINISH_ALL, FINISH_NOW, OUTCOME
from gpudispatch.future import SIGNAL_S, Future
from gpudispatch.inbox import Inbox, safely
from gpudispatch.lone import Lone
from gpudispatch.news import News, logger
from gpudispatch.pace import Pace, running_loop
from gpudispatch.sessions import SESSION_SHIFT, Sessions
from gpudispatch.settings import CLOSE_NS, NEVER

try:
    from gpudispatch import _core
except ImportError:  # not on macOS and Windows, where Executor refuses to be made
    if sys.platform == "linux":
        raise

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any

    from gpudispatch._core import Event, Template
    from gpudispatch.codec import Encoded
    from gpudispatch.leases import Grant
    from gpudispatch.sessions import Reader
    from gpudispatch.work_class import WorkClass

GRACE_NS = 2_000_000  # a caller of result() that has read will soon read again
AWAY_NS = 50_000_000  # no caller reads after one that met what only the pool's thread may do
LONG_S = 1e9
FOREIGN = 1  # what attend of the core returns then
LOOK_S = 0.05
REPORT_S = 1.0  # a setup that failed has been reported by then
DROPPED_NS = 1_000_000_000  # for the cleanup of workers whose executor was dropped
RAW = 1 << 39  # in the tag of a future whose result is no frame of this package


class Engine:
    """One dispatcher and everything that waits for it.  Thread rule: any thread, any method."""

    def __init__(self, options: dict[str, object], home: WorkClass | None = None) -> None:
        """`home` is the one class of an engine that is not pooled."""
        self.options = options
        self.pooled = home is None
        self.core = _core.Dispatcher(options)
        self.pace = Pace(self.core.wake)
        self.lone = Lone(self)
        self._make_locks()
        self.inbox = Inbox(self)
        self.futures: dict[int, Future[Any]] = {}
        self.backlog = Backlog(self)
        self.sessions = Sessions()
        self.next_tag = 1
        self.thread: threading.Thread | None = None
        self.gone = waits.Event()  # the thread has ended
        self.away_until = 0  # AWAY_NS
        self.grants: set[Grant] = set()  # of leases
        self.desk = self._desk()
        self.classes = Classes(self, home)
        self.closing: int | None = None  # how, once shutdown was called
        self.close_limit = 0
        self.forked = False
        self.watch: object = None  # of aio.py: that of the event loop that has tasks here
        self.news = News()
        self.last_looks: dict[str, Any] = {}  # once the dispatcher is gone
        self.caller_ends = False  # a call that blocks ends it, not the interpreter's exit
        living.add(self)

    def _make_locks(self) -> None:
        # Of all fields but the inbox.  The end of a generator may be a garbage collection in the
        # middle of a method here: it closes a session on the same thread.
        self.lock = threading.RLock()
        self.parked = threading.Condition(self.lock)
        self.room = waits.Condition()  # for submit with block

    def try_twice(self) -> None:
        """From now on a task that runs out of memory may have a second try."""
        self.lone.keep_frames()
        self.desk = self._desk()

    def _desk(self) -> tuple[object, ...]:
        """What attend of the core works on."""
        return (
            self.lock, self.inbox.reading, self.inbox.events, self.futures, self.lone.frames,
            self.backlog.queues, self.room,
        )  # fmt: skip

    def leave_to_parent(self) -> None:
        """In a forked child: another thread of the parent may have held the locks."""
        self.forked = True
        self._make_locks()
        self.inbox.make_lock()

    # ---- futures ----

    @property
    def ended(self) -> bool:
        """Whether the core's last event was read."""
        return self.inbox.ended

    @property
    def reads_itself(self) -> bool:
        """Whether the pool's thread reads for all: what it waits for is no session's."""
        return bool(self.futures or self.classes.watched)

    def submit(
        self,
        home: WorkClass,
        template: Template,
        priority: int,
        data: Encoded,
        future: Future[Any],
    ) -> None:
        """Accepts a task: it waits here while the core has no room.  Never blocks."""
        future._loop = running_loop()
        with self.lock:
            self.check_open(home)
            if self.thread is None:
                self._start_thread()
            tag = future._tag = self.next_tag | RAW if home.raw else self.next_tag
            self.next_tag += 1
            self.futures[tag] = future
            self.lone.keep(tag, template, data, future._options)
            try:
                if not self.backlog or not self.backlog.has(home.number):
                    future._id = self.core.submit(template, tag, data)
                if not future._id:
                    self.backlog.add((priority, home.number), template, tag, data)
            except BaseException as error:
                self.futures.pop(tag, None)
                self.lone.drop(tag)
                if not isinstance(error, ResultTooLarge):
                    raise
                future.set_exception(ends.detached(error))  # as where it waits in the backlog
            if self.sessions:
                self.parked.notify_all()

    def refused(self, home: WorkClass, error: BaseException) -> Future[Any]:
        """The future of a task that cannot be accepted."""
        with self.lock:
            self.check_open(home)
        future: Future[Any] = Future()
        future._engine = self
        future.set_exception(ends.detached(error))
        return future

    def check_open(self, home: WorkClass | None = None, failed: bool = False) -> None:
        """Raises where no task is accepted; `failed`: also from a class that has failed, whose
        tasks end NO_WORKER."""
        self.check_forked()
        if self.closing is not None:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if living.exiting():
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")
        if home is not None:
            self.classes.check_open(home, failed)

    def ready(self, workers: int, timeout: int) -> bool:
        """Waits until so many workers have passed setup; False after the time."""
        try:
            return self.core.ready(workers, timeout)
        except NoWorker as error:
            text = error.message
        # The report of the setup is in the queue, unless another thread is about to deliver it.
        until = time.monotonic() + REPORT_S
        while self.news.setup_error is None and time.monotonic() < until:
            if not self.inbox.look_for(0):
                time.sleep(LOOK_S / 50)
        raise self.news.no_worker(text)

    def _start_thread(self) -> None:
        """The caller holds `lock`."""
        self.thread = threading.Thread(target=self._run, name="gpudispatch-pool")
        try:
            self.thread.start()
        except BaseException:
            self.thread = None  # one that has started all the same ends at once
            raise

    def call_thread(self) -> None:
        """Makes sure that the pool's thread reads."""
        if self.forked:
            return
        with self.lock:
            if self.thread is None:
                self._start_thread()
            self.parked.notify_all()
        self.core.wake()

    def attend(self, future: Future[Any], timeout: float | None) -> float | None:
        """Reads on the caller's thread until the future is done, or is in the hands of another
        thread.  Returns what is left of the timeout."""
        self.check_forked()
        if self.is_inside():
            return self._wait_inside(future, timeout)
        timeout = self._attend(future, timeout)
        if timeout != 0 and not future.done():
            self.check_wait()
        return timeout

    def _attend(self, future: Future[Any], timeout: float | None) -> float | None:
        """An exception may interrupt the main thread between any two lines here.  The core ends
        futures in one call, and leaves to the pool's thread what needs code of Python."""
        began = time.monotonic_ns()
        if not self._may_attend(future) or began < self.away_until:
            return timeout
        wait = NEVER
        if timeout is not None:
            if not 0 < timeout < LONG_S:
                return timeout
            wait = int(timeout * 1e9)
        why = self.core.attend(wait, future._tag, self.desk)
        now = time.monotonic_ns()
        if why == FOREIGN:
            self.away_until = now + AWAY_NS
            self.call_thread()
        return None if timeout is None else max(0.0, timeout - (now - began) / 1e9)

    def _may_attend(self, future: Future[Any]) -> bool:
        """Whether its outcome comes from the core, and nothing is between.  The events of sessions
        are for the pool's thread, so where there are some it reads for all."""
        return (
            future._id > 0
            and not future._taken
            and future._loop is None
            and not self.sessions
            and not self.forked
        )

    def wait_for_room(self, future: Future[Any]) -> None:
        """Waits until the core has accepted the task, or it has ended."""
        if self.is_inside():
            return  # nobody else would make room
        self.check_wait()
        while not (future._id or future.done()):
            with self.room:
                self.room.wait_for(lambda: future._id or future.done(), SIGNAL_S)

    def flush(self) -> None:
        """Sends what waits here while the core has room."""
        refused = self.backlog.send()
        with self.room:
            self.room.notify_all()
        for task, error in refused:
            if isinstance(task, Waiting):
                self._turn_down(task, error)
                continue
            self.lone.drop(task._tag)
            if self.futures.pop(task._tag, None) is not None:
                try:
                    task._fail(error)
                except BaseException:
                    logger.exception("a callback raised")

    def _turn_down(self, task: Waiting, error: BaseException) -> None:
        self.lone.drop(task.tag)
        task.fail(error)

    def queue(
        self, home: WorkClass, template: Template, priority: int, data: Encoded, task: Waiting
    ) -> bool:
        """Puts a session's task in the backlog, if others of its class wait there."""
        with self.lock:
            if not self.backlog.has(home.number):
                return False
            if self.closing is not None or home.closing:
                raise ClosedError("no task is accepted any more")
            self.backlog.add((priority, home.number), template, task.tag, data, task)
            return True

    def cancel(self, future: Future[Any]) -> bool:
        """Cancels a task that has not started; the future is done then.  False: it runs or ended.

        Another thread may cancel the same task: all of them return True.
        """
        self.check_forked()
        if self._withdraw(future):
            return True
        if future._started is not None:
            return False
        with self.lock:
            number = future._id
            if number and not future._recalled:
                if self.runs(number) or not self._recall(number):
                    return False
                future._recalled = True
        while not future.done():
            # the pool's thread delivers the outcome, unless it is inside a callback
            if not self.inbox.look_for(future._tag):
                with future._condition:
                    future._condition.wait_for(future.done, LOOK_S)
        return future.cancelled()

    def _withdraw(self, future: Future[Any]) -> bool:
        """Ends a task that waits in the package; False where it does not."""
        try:
            with self.lock:
                if future._id or self.futures.pop(future._tag, None) is None:
                    return False
                self.lone.drop(future._tag)
            future._give_up()
        except BaseException:  # of Ctrl-C: what has left `futures` has to end here
            if not future._id and future._tag not in self.futures and not future.done():
                future._give_up()
            raise
        return True

    def _recall(self, number: int) -> bool:
        """Whether a task in the core was waiting: it has ended then.

        One that the core calls live is not known to wait or to run.  The first soft cancel ends one
        that waits; a worker ignores it unless the stop table has the task.  So a second one finds
        no live task if it waited, or if it has ended in between: its outcome tells."""
        return self.core.cancel(number, False) and not self.core.cancel(number, False)

    def is_running(self, future: Future[Any]) -> bool:
        self.check_forked()
        number = future._id
        return future._started is not None or number != 0 and self.runs(number)

    def runs(self, number: int) -> bool:
        """Whether a task runs now, told by the workers' pages: events may be late or dropped."""
        try:
            return number in self.core.running()
        except errors.ClosedError:
            return False

    def stop(self, future: Future[Any], kill: bool) -> bool:
        self.check_forked()
        if self._withdraw(future):
            return True
        return self._stop(future._id, kill)

    def _stop(self, number: int, kill: bool) -> bool:
        """Cancels a task, also one that runs; False where it has ended."""
        if self.lone.stop(number, kill):
            return True
        self.classes.mark_stopped(number)
        return self.core.cancel(number, kill)

    def leave(self, number: int, on_cancel: str) -> None:
        """Cancels a task that its loop has left; `on_cancel` decides about one that runs."""
        try:
            if on_cancel == "leave":
                self.core.cancel(number, False)
            else:
                self._stop(number, on_cancel == "kill")
        except Exception:
            pass  # destroyed meanwhile: nothing runs any more

    def check_forked(self) -> None:
        if self.forked:
            raise ForkedError("this process was forked from the owner of the executor")

    def check_wait(self) -> None:
        """A thread that has `reading` waits for itself: it is in the middle of unpickling a result,
        or a signal's handler has interrupted its wait."""
        if self._is_reentered():
            raise ReentryError(
                "this wait would have no end: it is made while a result is unpickled, or by a"
                " signal handler that has interrupted another wait",
                name="EREENTER",
            )

    def _is_reentered(self) -> bool:
        """Whether this thread is in the middle of something that others wait for."""
        mine = self.lock._is_owned()  # type: ignore[attr-defined]
        return bool(mine or self.inbox.is_mine() or self.core.attends())

    # ---- events ----

    def deliver(self, event: Event) -> None:
        """Hands one event to whom it concerns."""
        if self.lone.intercepts(event):
            return
        tag = event.tag
        if tag >> SESSION_SHIFT:
            self.sessions.give(event)
        elif not tag:
            self.news.take(event)
            if event.kind == CLASS:
                self.classes.take(event)
        else:
            future = self.futures.get(tag)
            if future is None:
                return
            if event.kind != OUTCOME:
                future._heard(event)
            elif (
                future._loop is None
                or event.outcome == CANCELLED  # a thread may wait for it in cancel()
                or not future._calls_back()
                or threading.current_thread() is not self.thread
            ):
                self._resolve(event)
            else:
                self.pace.add(future._loop, event)

    def end_of_second_try(self, event: Event) -> None:
        """Takes the outcome of a task that ran alone on its device.  On the thread of Lone."""
        if event.tag >> SESSION_SHIFT:
            self.sessions.give(event)
            self.core.wake()  # its thread may wait for events
        else:
            self.inbox.aside[event.tag] = event
            self.call_thread()

    def _resolve(self, event: Event) -> None:
        """Ends the future of an outcome.  Runs its callbacks, so no lock is held."""
        future = self.futures.pop(event.tag, None)
        if future is None:
            return
        try:
            future._end(event, self.classes.failure)
        except BaseException as error:  # of unpickling, or for want of stack
            future._fail(error)
            raise

    # ---- the pool's thread ----

    def _run(self) -> None:
        with self.lock:
            if self.thread is not threading.current_thread():
                return
        try:
            while self._turn():
                pass
            self._end()
        finally:
            self.gone.set()

    def _turn(self) -> bool:
        """One round of the pool's thread; False after the last event."""
        try:
            if self.core.stand_by(GRACE_NS, self.pace.patience()):
                self.inbox.fill(LOOK_S, self.pace.patience)
                self.inbox.deliver_all()
            self.pace.deliver(lambda event: safely(self._resolve, event))
            if self.backlog:
                self.flush()
            self.inbox.deliver_all_aside()
            self.classes.turn()
            if self.ended and not self.inbox.events:
                patience = self.pace.patience()
                if patience == NEVER:
                    return False
                with self.parked:
                    self.parked.wait(patience / 1e9)
            if self.closing is not None and not self.backlog and not self.ended:
                self.core.close(self.closing, self.close_limit)
            if self.sessions:
                self._park()
        except Exception:  # as for want of memory: the others still need their outcomes
            logger.exception("the pool's thread goes on after an error")
            time.sleep(LOOK_S)
        return True

    # A callback, or the unpickling of a result, may wait on the pool's thread, where nobody else
    # would read.  So the thread reads there, too, but calls no callbacks of other futures: each of
    # them could wait, and the stack would grow with every one.

    def is_inside(self) -> bool:
        """Whether this is the pool's thread, inside of a callback."""
        thread = self.thread
        return thread is not None and thread.ident == threading.get_ident()

    def _wait_inside(self, future: Future[Any], timeout: float | None) -> float | None:
        """As attend()."""
        until = None if timeout is None else time.monotonic() + timeout
        while not future.done():
            left = LOOK_S if until is None else min(LOOK_S, until - time.monotonic())
            if left <= 0:
                return 0.0
            self.turn(left, future._tag)
        return timeout

    def turn(self, limit: float, tag: int = 0) -> None:
        """Reads for so many seconds, and delivers what may not be set aside, as of this tag."""
        self.check_wait()
        late = self.pace.take(tag)
        if late is not None:
            safely(self._resolve, late)
        elif self.inbox.deliver_aside(tag):
            pass
        elif self.ended:
            self.gone.wait(limit)  # another thread has the outcome
        else:
            self.inbox.fill(limit, lambda: int(limit * 1e9))
        while (event := self.inbox.next()) is not None:
            future = self.futures.get(event.tag) if event.kind == OUTCOME else None
            if future is None or event.tag == tag or not future._calls_back():
                self.inbox.deliver(event)
            else:
                event.own()
                self.inbox.aside[event.tag] = event
        if self.backlog:
            self.flush()

    def _park(self) -> None:
        """Leaves the reading to a session until a future needs it."""
        self.sessions.let_read()  # without the lock: it may call code that waits for it
        with self.parked:
            while self.sessions and not self.reads_itself and self.closing is None:
                if self.classes.has_work() or self.inbox.is_left():
                    break  # a caller of result() may have left events
                self.parked.wait()

    def _end(self) -> None:
        """After the last event: what has no outcome gets one, and the library frees everything."""
        self.lone.join()
        self.inbox.deliver_all_aside()
        with self.lock:
            self.backlog.queues.clear()
        while self.futures:
            try:
                self.futures.pop(next(iter(self.futures)))._give_up()
            except BaseException:
                logger.exception("a callback raised")
        core = self.core
        self.last_looks = {
            "stats": core.stats(), "slots": core.slots(), "devices": core.devices(),
            "classes": core.classes() if self.pooled else [],
        }  # fmt: skip
        for home in self.classes:
            home.gone.set()
        self.classes.on_class = None  # it may refer to the pool, whose finalizer has this engine
        self.destroy()

    def look(self, name: str) -> Any:
        """The stats, slots or devices of the core; the last ones once it is gone."""
        try:
            return getattr(self.core, name)()
        except errors.ClosedError:
            return self.last_looks[name]

    def destroy(self) -> None:
        """Frees the dispatcher."""
        while True:
            try:
                self.core.destroy()
                return
            except errors.GpuDispatchError as e:
                if e.name != "EBUSY":
                    raise
                time.sleep(LOOK_S / 50)  # another thread is inside a call, for some microseconds

    # ---- sessions ----

    def open_session(self, reader: Reader, started: bool = False) -> int:
        """Returns the session's first tag.  Its owner wants to read on its own thread."""
        with self.lock:
            self.check_open()
            number = self.sessions.add(reader, started)
            self.parked.notify_all()
        if self.thread is not None:
            self.core.wake()
        return number << SESSION_SHIFT

    def leave_session(self, first_tag: int) -> None:
        """The session reads no more: it takes what others read until it is closed."""
        with self.lock:
            self.sessions.leave(first_tag >> SESSION_SHIFT)
        self.call_thread()

    def close_session(self, first_tag: int) -> None:
        with self.lock:
            self.sessions.remove(first_tag >> SESSION_SHIFT)
            self.parked.notify_all()

    # ---- the end ----

    def end_here(self) -> None:
        """Kills what runs, and frees the dispatcher of an engine without a thread."""
        self.closing = FINISH_NOW
        with contextlib.suppress(errors.GpuDispatchError):
            self.core.close(FINISH_NOW, 1)
        self._end()

    def return_grants(self, kept: bool) -> None:
        """Ends the leases that nobody will close; with `kept` those of `with` blocks, too."""
        for grant in list(self.grants):
            if kept or not grant.kept:
                grant.revoke("CLOSE", hard=True)
                grant.give_back()

    def close(self, how: int, limit: int = 0) -> None:
        """Ends intake; what is accepted ends as `how` says."""
        self.check_forked()
        self.return_grants(kept=False)
        with self.lock:
            # Twice at once: kill_workers() after terminate_workers() has a shorter limit.
            hurry = self.closing is None or how > self.closing or how == FINISH_NOW
            self.closing = how if self.closing is None else max(how, self.closing)
            if how == FINISH_NOW:
                self.close_limit = limit = limit or self._patience()
            dropped = self.backlog.take_back() if how != FINISH_ALL else []
            if self.thread is None:
                self._start_thread()
            self.parked.notify_all()
        self.withdraw_all(dropped)
        try:
            self.classes.resume_all()
            if hurry and not self.backlog and not self.ended:
                if how == FINISH_NOW:
                    self.classes.stop_running()
                    self.lone.finish(limit)
                self.core.close(how, limit)
        except errors.GpuDispatchError:
            pass  # destroyed meanwhile
        self.core.wake()

    def _patience(self) -> int:
        """How long tasks that are cancelled may take, and the cleanup of workers; 0: the option
        close_limit."""
        graces = [int(str(home.options["grace"])) for home in self.classes]
        return min(max(graces, default=0) + CLOSE_NS, NEVER) if self.pooled else 0

    def withdraw_all(self, dropped: list[Future[Any] | Waiting]) -> None:
        """All of them end, whatever their callbacks raise: the first of that is raised then."""
        raised: BaseException | None = None
        for task in dropped:
            try:
                if isinstance(task, Waiting):
                    self._turn_down(task, ClosedError("its class has ended"))
                else:
                    self._withdraw(task)
            except BaseException as error:
                raised = raised or error
        if raised is not None:
            raise raised

    def join(self) -> None:
        """Waits for the end of the pool's thread, its last act."""
        thread = self.thread
        if thread is None or thread is threading.current_thread() or self.forked:
            return
        if self._is_reentered():
            return  # a signal's handler has interrupted a wait, which goes on
        while not self.gone.wait(SIGNAL_S):
            pass  # and no Thread.join(): that of 3.11 takes an interrupt for the thread's end
        thread.join()

    def abandon(self) -> None:
        """The executor was dropped.  Called by the garbage collector: takes no lock."""
        if self.closing is not None or self.forked:
            return
        self.closing = FINISH_ALL
        if self.thread is not None:
            self.core.wake()
        elif not self.sessions:  # no task is left, and the dispatcher ends with this object
            self.core.close(FINISH_NOW, DROPPED_NS)
