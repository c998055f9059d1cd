# SPDX-License-Identifier: MIT
"""Inbox: the events of an engine that were read and not delivered, and the thread that reads.

Events lie in `events`, in their order.  The thread that holds `reading` fills and empties it: the
pool's thread, that of a session, or one inside result().  An outcome that came while a callback
waited, or from a second try, lies in `aside`: the pool's thread or cancel() delivers it.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque

from gpudispatch.events import OUTCOME
from gpudispatch.news import logger
from gpudispatch.sessions import SESSION_SHIFT

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol, TypeVar

    from gpudispatch._core import Dispatcher, Event
    from gpudispatch.future import Future
    from gpudispatch.lone import Lone
    from gpudispatch.sessions import Sessions

    R = TypeVar("R")

    class Owner(Protocol):
        """The engine, to which the events go."""

        core: Dispatcher
        futures: dict[int, Future[Any]]
        lone: Lone
        sessions: Sessions

        def deliver(self, event: Event) -> None: ...


class Inbox:
    """Thread rule: any thread, any method but poll(), which needs `reading`."""

    def __init__(self, engine: Owner) -> None:
        self.engine: Owner = weakref.proxy(engine)  # no cycle: the last owner ends it
        self.events: deque[Event] = deque()
        self.aside: dict[int, Event] = {}  # by tag
        self.ended = False  # the core's last event was read
        self.make_lock()

    def make_lock(self) -> None:
        # It knows its owner, so that an interrupt of a thread cannot leave it taken; no thread
        # takes it twice.
        self.reading: Any = threading.RLock()

    # ---- who reads ----

    def is_mine(self) -> bool:
        """Whether this thread is in the middle of reading."""
        mine: bool = self.reading._is_owned()
        return mine

    def is_left(self) -> bool:
        """Whether there are events, and no thread that reads."""
        if self.events and self.reading.acquire(blocking=False):
            self.reading.release()
            return True
        return False

    def reads(self, work: Callable[[], R]) -> R | None:
        """Calls work() with `reading`; None where another thread has it, or this one already."""
        reading = self.reading
        if reading._is_owned():
            return None
        try:
            if not reading.acquire(blocking=False):
                return None
            done = work()
            reading.release()
            return done
        except BaseException:
            # Ctrl-C can arrive between the lock's two ends and the next line of either.
            if reading._is_owned():
                reading.release()
            raise

    def poll(self, timeout: int) -> None:
        """Adds the next events, once there are some.  The caller holds `reading`."""
        if self.engine.core.poll(timeout, self.events) is None:
            self.ended = True

    def fill(self, limit: float, wait: Callable[[], int]) -> None:
        """Waits for events if there are none, as long as wait() says.  Another thread may read for
        `limit` seconds."""
        if not self.reading.acquire(timeout=limit):
            return
        try:
            if not self.ended and not self.events:
                self.engine.sessions.make_room()
                self.poll(wait())
        finally:
            self.reading.release()

    # ---- who takes ----

    def next(self) -> Event | None:
        """The next event that the core does not settle, if no other thread reads."""
        return self.reads(self._settle)

    def _settle(self) -> Event | None:
        engine = self.engine
        while engine.core.settle(self.events, engine.futures, engine.lone.frames):
            if self.events[0].tag >> SESSION_SHIFT not in engine.sessions.readers:
                return self._take()
            # Here, while its session cannot begin to wait for events.
            self.deliver(self.events.popleft())
        return None

    def _take(self) -> Event:
        """Takes the first event.  The caller holds `reading`, and will deliver it: nobody else
        waits at the core for this outcome."""
        event = self.events.popleft()
        if event.kind == OUTCOME:
            future = self.engine.futures.get(event.tag)
            if future is not None:
                future._taken = True
        return event

    def sort(self, number: int, take: Callable[[Event], object]) -> bool:
        """Takes a session's events; True where a future's is the next.  That one stays: an
        exception here, as of Ctrl-C, must not lose it.  The caller holds `reading`."""
        events, lone = self.events, self.engine.lone
        while events:
            event = events[0]
            session = event.tag >> SESSION_SHIFT
            if session == number:
                if not lone.intercepts(event):
                    take(event)
            elif session or not event.tag:
                self.engine.deliver(event)
            else:
                return True
            events.popleft()
        return False

    def look_for(self, tag: int) -> bool:
        """Delivers the events of a tag, if no other thread reads and some are there."""
        if tag in self.aside:
            elsewhere(self.deliver_aside, tag)
            return True
        if self.is_mine():
            return self._look_in_handler(tag)
        if threading.current_thread() is not threading.main_thread():
            mine = self.reads(lambda: self._take_of(tag)) or []
            for event in mine:
                self.engine.deliver(event)
            return bool(mine)
        # An interrupt of the main thread would lose what it has taken.
        found: list[bool] = []
        if self.reads(lambda: True):
            elsewhere(lambda: found.append(self.look_for(tag)))
        return any(found)

    def _look_in_handler(self, tag: int) -> bool:
        """A signal's handler has interrupted this thread while it reads.  The first event may be in
        its hands, so others go only, and after their delivery: see above."""
        mine = self._find(tag)
        for event in mine:
            elsewhere(self.engine.deliver, event)
            self.events.remove(event)
        return bool(mine)

    def _take_of(self, tag: int) -> list[Event]:
        mine = self._find(tag)
        for event in mine:
            self.events.remove(event)
        if mine and tag in self.engine.futures:
            self.engine.futures[tag]._taken = True
        return mine

    def _find(self, tag: int) -> list[Event]:
        if not self.ended:
            self.poll(0)
        return [e for e in self.events if e.tag == tag]

    # ---- delivery on the pool's thread ----

    def deliver(self, event: Event) -> None:
        safely(self.engine.deliver, event)

    def deliver_all(self) -> None:
        """All events that are there, and those that were set aside."""
        while (event := self.next()) is not None:
            self.deliver(event)
            self.deliver_all_aside()

    def deliver_all_aside(self) -> None:
        while self.aside:
            self.deliver_aside(next(iter(self.aside)))

    def deliver_aside(self, tag: int) -> bool:
        """Delivers what was set aside.  Any thread: cancel() may take it first."""
        event = self.aside.pop(tag, None)
        if event is not None:
            self.deliver(event)
        return event is not None


def safely(deliver: Callable[[Event], None], event: Event) -> None:
    try:
        deliver(event)
    except BaseException:  # only what a callback or logging raises past its own guard
        logger.exception("an event could not be delivered")


def elsewhere(work: Callable[..., object], *args: Any) -> None:
    """Calls work() on a thread of its own, where no signal interrupts it."""
    helper = threading.Thread(target=work, args=args)
    helper.start()
    helper.join()
