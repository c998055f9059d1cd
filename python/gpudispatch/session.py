# SPDX-License-Identifier: MIT
"""Session: tasks of one loop, without futures.  The caller's thread submits, polls and decodes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gpudispatch import waits
from gpudispatch.backlog import LEFT, Waiting
from gpudispatch.engine import Engine
from gpudispatch.errors import ClosedError
from gpudispatch.sessions import SESSION_SHIFT
from gpudispatch.settings import NEVER

if TYPE_CHECKING:
    from gpudispatch._core import Event, Template
    from gpudispatch.codec import Encoded
    from gpudispatch.settings import TaskOptions
    from gpudispatch.work_class import WorkClass

BURST = 64  # tasks that one call submits
FOLLOW_S = 0.1  # a session that another thread reads for looks this often whether it may read
FOLLOW_NS = 100_000_000


class Bell(Protocol):
    """What wakes the owner of a session: an Event, or the like of an event loop."""

    def set(self) -> None: ...

    def clear(self) -> None: ...

    def wait(self, timeout: float) -> object: ...


class Session:
    """The tasks of one outcomes() or map() loop, named by an index from 0.

    Thread rule: one thread at a time calls everything but take().
    """

    def __init__(
        self,
        engine: Engine,
        window: int,
        options: TaskOptions,
        bell: Bell | None = None,
        started: bool = False,
        home: WorkClass | None = None,
    ) -> None:
        self.engine = engine
        self.home = home
        self.window = window
        self.options = options
        self.ready: deque[Event] = deque()
        self.leased = False  # results in it may lie in the payload budget
        self.bell: Bell = bell or waits.Event()
        self.group: dict[int, deque[Event]] = {}  # readies()
        self.live: dict[int, Any] = {}  # index -> what the loop keeps of the task
        self.ids: dict[int, int] = {}
        self.waiting: dict[int, Waiting] = {}  # in the backlog, or a moment ago
        self.item_of: Callable[[Any], Any] | None = None  # the item in what the loop keeps
        self.first_tag = 0
        self.__class__ = _Open
        self.first_tag = engine.open_session(self, started)
        self.number = self.first_tag >> SESSION_SHIFT

    def items(self, numbers: set[int]) -> dict[int, Any]:
        """The items of tasks with these numbers of the core.  Any thread: the loop goes on."""
        found: dict[int, Any] = {}
        if self.item_of is not None:
            sent = [(index, task._id) for index, task in list(self.waiting.items())]
            for index, number in [*list(self.ids.items()), *sent]:
                if number in numbers and (kept := self.live.get(index, self)) is not self:
                    found[number] = self.item_of(kept)
        return found

    # ---- submit ----

    def submit(self, template: Template, index: int, kept: Any, data: Encoded) -> bool:
        """Submits one task; False where the core has no room, and the backlog has no
        task of the class."""
        engine, tag = self.engine, self.first_tag + index
        self._check_class()
        self.live[index] = kept
        engine.lone.keep(tag, template, data, self.options)
        accepted = number = 0
        try:
            if not engine.backlog or not engine.backlog.has(self._number()):
                accepted = number = engine.core.submit(template, tag, data)
            if not accepted:
                accepted = self._wait(template, index, data)
        finally:
            if number:
                self.ids[index] = number
            elif not accepted:
                self._forget(range(index, index + 1))
        return accepted > 0

    def submit_many(
        self, template: Template, first: int, kept: list[Any], data: list[Encoded]
    ) -> int:
        """Submits tasks first, first + 1..., as submit(); returns how many."""
        engine = self.engine
        self._check_class()
        self.live.update(zip(range(first, first + len(data)), kept))
        if engine.lone.frames is not None:
            for index, frame in enumerate(data, first):
                engine.lone.keep(self.first_tag + index, template, frame, self.options)
        ids: list[int] = []
        n = 0
        try:
            if not engine.backlog or not engine.backlog.has(self._number()):
                ids = engine.core.submit_many(template, self.first_tag + first, data)
            n = len(ids)
            while n < len(data) and self._wait(template, first + n, data[n]):
                n += 1
        finally:
            self.ids.update(enumerate(ids, first))
            self._forget(range(first + max(n, len(ids)), first + len(data)))
        return n

    def _number(self) -> int:
        return 0 if self.home is None else self.home.number

    def _wait(self, template: Template, index: int, data: Encoded) -> bool:
        """Puts a task in the backlog, if others of its class wait there."""
        if not self.engine.backlog or self.home is None:
            return False
        task = self.waiting[index] = Waiting(self, self.first_tag + index)
        queued = False
        try:
            queued = self.engine.queue(self.home, template, self.options.priority, data, task)
        finally:
            if not queued:
                del self.waiting[index]
        return queued

    def is_held_up(self) -> bool:
        """Whether the loop pulls no further item, since enough wait in the backlog: one, if this
        thread sends the backlog, since the source may wait for its item to run."""
        if not self.waiting:
            return False
        self._look_for_ids()
        most = BURST if self.engine.reads_itself else 1
        return len(self.waiting) >= most and not self.engine.ended

    def _look_for_ids(self) -> None:
        for index, task in list(self.waiting.items()):
            if task._id > 0 and index in self.live:
                self.ids[index] = task._id
            if task._id or index not in self.live:
                del self.waiting[index]

    def _check_class(self) -> None:
        """The core knows a class by its name, which another one may have by now."""
        if self.home is not None and self.home.closing:
            raise ClosedError(f"class {self.home.name!r} is removed")

    def refusal(self) -> RuntimeError:
        """Why no task is accepted any more, after ClosedError."""
        if self.home is not None and self.home.closing and self.engine.closing is None:
            return RuntimeError(f"class {self.home.name!r} is removed")
        return RuntimeError("cannot schedule new futures after shutdown")

    def _forget(self, refused: range) -> None:
        for index in refused:
            del self.live[index]
            self.engine.lone.drop(self.first_tag + index)

    # ---- events ----

    def take(self, event: Event) -> None:
        """Gets an event that another thread has read.  Any thread."""
        self.ready.append(event)
        self.leased = True
        self.bell.set()

    def make_room(self) -> None:
        """Takes results out of the payload budget: the loop may not come for them soon, and what
        another thread waits for may need the room.  Any thread."""
        if self.leased:
            self.leased = False
            for event in list(self.ready):
                event.own()

    def may_read(self) -> None:
        self.bell.set()

    def read(self, timeout: int, others: Sequence[Session] = ()) -> None:
        """Waits until an event is ready or the time, in nanoseconds, is over.  Also until one of
        the others has an event: sessions of this thread that have the same bell."""
        engine = self.engine
        engine.check_forked()
        inside = engine.is_inside()
        until = None if timeout == NEVER else time.monotonic_ns() + timeout
        while not (self.ready or any(other.ready for other in others)):
            left = NEVER if until is None else max(0, until - time.monotonic_ns())
            if engine.backlog:  # there may be room without an event: memory of results is free
                engine.flush()
                left = min(left, FOLLOW_NS)
            foreign = None
            if inside:
                engine.turn(min(FOLLOW_S, left / 1e9))
                if engine.ended and not self.ready:
                    return
            elif not engine.reads_itself:
                foreign = engine.inbox.reads(lambda: self.poll(left, others))  # noqa: B023
            if foreign:
                engine.call_thread()
            if foreign is not None:
                if engine.ended and not self.ready:
                    engine.join()  # its thread may be about to hand the last event over
                    return
            elif left and not self.ready and not inside:
                engine.check_wait()
                if engine.gone.is_set():
                    return  # the pool's thread has handed the last event over
                self.bell.wait(FOLLOW_S if left == NEVER else min(FOLLOW_S, left / 1e9))
                self.bell.clear()
            if until is not None and time.monotonic_ns() >= until:
                return

    def poll(self, left: int, others: Sequence[Session]) -> bool:
        """Takes events, with `reading`; True where one of a future is the next."""
        engine, inbox, lone = self.engine, self.engine.inbox, self.engine.lone
        if self.ready:
            return False
        if not inbox.events and not inbox.ended:
            if lone.frames is not None:  # another thread gives the outcomes of second tries
                left = min(left, FOLLOW_NS)
            if left:
                engine.sessions.make_room(self)
            inbox.poll(left)
        self.leased = True
        if lone.frames is None:
            if not others:
                if engine.core.sort(inbox.events, self.ready, self.number):
                    return False
            elif engine.core.share(inbox.events, self.readies(others)):
                return False
        return inbox.sort(self.number, self.ready.append)

    def readies(self, others: Sequence[Session]) -> dict[int, deque[Event]]:
        """Where the events of these sessions go, by number."""
        for other in others:
            other.leased = True
        if len(self.group) <= len(others):
            self.group = {session.number: session.ready for session in (self, *others)}
        return self.group

    def failure(self, event: Event) -> tuple[str, BaseException, list[Any] | None]:
        return self.engine.classes.failure(event, self.options)

    # ---- the end ----

    def leave(self, bell: Bell) -> None:
        """Cancels as close() does.  Events still come, and ring this bell, until close()."""
        self.bell = bell
        try:
            self._cancel()
        finally:
            self.engine.leave_session(self.first_tag)

    def close(self, cancel: bool = True) -> None:
        """Cancels what has not started; `on_cancel` decides about the rest."""
        try:
            if cancel:
                self._cancel()
        finally:
            self.engine.close_session(self.first_tag)
        self.__class__ = Session

    def _cancel(self) -> None:
        if self.waiting:
            with self.engine.lock:  # which the thread that sends the backlog has
                self._look_for_ids()
                for index, task in list(self.waiting.items()):
                    task._id = LEFT
                    self._forget(range(index, index + 1))
        # The last first: the end of one that runs must not let the next one start.
        for index in reversed(list(self.live)):
            number = self.ids.get(index)
            if number is not None:
                self.engine.leave(number, self.options.on_cancel)


class _Open(Session):
    """A session until close(): an exception such as Ctrl-C can come between its making and the
    loop that closes it.  One that is closed ends without code, where Ctrl-C would be lost."""

    def __del__(self) -> None:
        self.engine.close_session(self.first_tag)
