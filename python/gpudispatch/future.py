# SPDX-License-Identifier: MIT
"""Future: the standard one, with the device, the attempt, the progress and the times of its task.

The base class stays PENDING until the outcome arrives, and running() tells what the worker told.
So stop() can end a task that runs, and set_result is legal afterwards.
"""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections import namedtuple

from gpudispatch import ends, waits
from gpudispatch.events import PROGRESS, STARTED, SUCCESS

# The longest wait for a lock.  Python does not see a signal that comes right before such a wait, or
# that another thread gets, until the wait ends.
SIGNAL_S = 0.02

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any, NamedTuple, Protocol, TypeVar

    from gpudispatch._core import Event
    from gpudispatch.settings import TaskOptions

    T = TypeVar("T")
    Failure = Callable[[Event, TaskOptions], tuple[str, BaseException, Any]]  # ends.failure()

    class Owner(Protocol):
        """The pool of a future.  Any thread calls it."""

        def attend(self, future: Future[Any], timeout: float | None) -> float | None: ...

        def cancel(self, future: Future[Any]) -> bool: ...

        def is_running(self, future: Future[Any]) -> bool: ...

        def stop(self, future: Future[Any], kill: bool) -> bool: ...

    class _Times(NamedTuple):
        queued: float
        sent: float
        started: float
        ended: float

    class _Progress(NamedTuple):
        fraction: float
        text: str

else:
    _Times = namedtuple("_Times", ("queued", "sent", "started", "ended"))
    _Progress = namedtuple("_Progress", ("fraction", "text"))


class Times(_Times):
    """Points in time of a task, in seconds of time.monotonic(); 0.0 where it did not get there."""

    __slots__ = ()


def times_of(event: Event | None) -> Times:
    if event is None:
        return Times(0.0, 0.0, 0.0, 0.0)
    return Times(
        event.queued_at / 1e9, event.sent_at / 1e9, event.started_at / 1e9, event.ended_at / 1e9
    )


class Progress(_Progress):
    """The last report of a task: the part of its work that is done, 0 to 1, and a text."""

    __slots__ = ()


class Late:
    """An attribute that is made with its first use.  From then on the future is watched: another
    thread may wait for it, or have left a callback."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, future: Any, owner: type) -> Any:
        if future is None:
            return self
        future._watched = True
        return future.__dict__.setdefault(self.name, self.make())


class _Plain(concurrent.futures.Future["T"]):
    """The base class without its __init__, which makes a lock, a queue and two lists: most futures
    of many need none of them.  It costs 1 us beside 3 for all else in submit()."""

    _state = "PENDING"
    _result = None
    _exception = None
    _condition: threading.Condition = Late(waits.Condition)  # type: ignore[assignment]
    _waiters: list[Any] = Late(list)  # type: ignore[assignment]
    _done_callbacks: list[Any] = Late(list)  # type: ignore[assignment]
    _watched: bool = False

    __init__ = object.__init__


class _Whole(concurrent.futures.Future["T"]):
    """The base class, where it has attributes that are not known here."""

    _watched: bool = True


_KNOWN = {"_condition", "_state", "_result", "_exception", "_waiters", "_done_callbacks"}
if TYPE_CHECKING or vars(concurrent.futures.Future()).keys() == _KNOWN:
    _Base = _Plain
else:
    _Base = _Whole


class Future(_Base["T"]):
    """The result of a task that Executor.submit accepted.

    Thread: any.  result(), exception(), add_done_callback() and cancel() are the standard ones.
    Callbacks run on the pool's thread, one at a time: a slow one delays others.  One may wait, by
    result(), exception(), map() or outcomes(): those of other futures follow when it has ended.
    """

    _engine: Owner
    _tag: int = 0
    _id: int = 0  # of the core; 0 while the task waits in the package
    _options: TaskOptions
    _taken: bool = False  # a thread has its outcome and is about to end it
    _recalled: bool = False  # it was cancelled while it waited in the core
    _loop: AbstractEventLoop | None = None  # that of submit()
    _started: Event | None = None
    _ended: Event | None = None
    _report: Progress | None = None

    def cancel(self) -> bool:
        """Cancels the task if it has not started: True.  False for one that runs or has ended,
        which goes on undisturbed; stop() ends one that runs."""
        if self.cancelled():
            return True
        return not self.done() and self._engine.cancel(self)

    def stop(self, kill: bool = True) -> bool:
        """Cancels the task, also if it runs: its code sees current_task().cancelled() and an
        exception.  With kill its worker is killed after the pool's grace; without, never.
        Returns False for a task that has ended."""
        if self.done():
            return False
        return self._engine.stop(self, kill)

    def result(self, timeout: float | None = None) -> T:
        """As in the base class; the caller's thread reads events meanwhile."""
        if self._state == "PENDING":
            timeout = self._wait(self._engine.attend(self, timeout))
        if self._state == "FINISHED" and self._exception is None:
            return self._result  # type: ignore[return-value]
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As in the base class; the caller's thread reads events meanwhile."""
        if self._state == "PENDING":
            timeout = self._wait(self._engine.attend(self, timeout))
        return super().exception(timeout)

    def _wait(self, timeout: float | None) -> float | None:
        """Waits for the end; what is left of the timeout."""
        until = None if timeout is None else time.monotonic() + timeout
        while self._state == "PENDING" and (timeout is None or timeout > 0):
            with self._condition:
                left = SIGNAL_S if timeout is None else min(SIGNAL_S, timeout)
                self._condition.wait_for(self.done, left)
            if until is not None:
                timeout = max(0.0, until - time.monotonic())
        return timeout

    def done(self) -> bool:
        """True once the task has ended."""
        return self._state != "PENDING"

    def running(self) -> bool:
        """True from the start of the task to its end."""
        return not self.done() and self._engine.is_running(self)

    @property
    def device(self) -> str | None:
        """The names of the devices of the worker that ran or runs the task."""
        event = self._ended or self._started
        return event.device if event else None

    @property
    def attempt(self) -> int:
        """The number of attempts that were started; 0 = the task has not started."""
        event = self._ended or self._started
        return event.attempt if event else 0

    @property
    def progress(self) -> Progress | None:
        """The last report of current_task().progress() that arrived."""
        return self._report

    @property
    def times(self) -> Times:
        """When the task was queued, sent, started and ended."""
        return times_of(self._ended or self._started)

    @property
    def log_tail(self) -> str:
        """The last output of the worker up to the end of the task."""
        return ends.log_tail(self._ended, self._options.alone) if self._ended else ""

    def _heard(self, event: Event) -> None:
        """Takes an event that comes before the outcome."""
        if event.kind == STARTED:
            self._started = event
        elif event.kind == PROGRESS:
            self._started = self._started or event
            self._report = Progress(event.progress, event.text or "")

    def _end(self, event: Event, failure: Failure) -> None:
        """Takes the outcome.  Runs the callbacks, so no lock is held."""
        self._ended = event
        if event.outcome == SUCCESS:
            value, failed = ends.value_of(event, self._options)
            if failed is not None:
                self._fail(failed)
            elif not self.done():
                self.set_result(value)
            return
        kind, error, _ = failure(event, self._options)
        if kind == "cancelled":
            self._give_up()
        else:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self.done():
            self.set_exception(error)

    def _calls_back(self) -> bool:
        """Whether its end calls code of the program."""
        return bool(self.__dict__.get("_done_callbacks"))

    def _give_up(self) -> None:
        """Makes the future cancelled, for wait() and as_completed(), too.  Called once, by the one
        who has taken the future from its pool."""
        if super().cancel():
            self.set_running_or_notify_cancel()
