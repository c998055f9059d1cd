# SPDX-License-Identifier: MIT
"""The backlog of an engine: tasks that the core has no room for yet.

The core takes a quota of each class.  So a class that waits here is full, and the others go on.

While a task of a future waits here, those that a session submits to the class wait here, too: by
their priority and age, not behind all of the others.
"""

from __future__ import annotations

import time
import weakref
from collections import deque

from gpudispatch import ends
from gpudispatch.codec import own
from gpudispatch.events import REFUSED

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any, Protocol

    from gpudispatch._core import Dispatcher, Template
    from gpudispatch.codec import Encoded
    from gpudispatch.future import Future
    from gpudispatch.sessions import Reader

    Key = tuple[int, int]  # priority, and number of the class
    # template, tag, frame, time of the submit, and of a session's task what gets its number
    Entry = tuple[Template, int, Encoded, int] | tuple[Template, int, Encoded, int, "Waiting"]

    class Owner(Protocol):
        """The engine: its lock guards the backlog."""

        core: Dispatcher
        futures: dict[int, Future[Any]]
        lock: Any


LEFT = -1  # the number of a task whose session was left: it is not sent


class Waiting:
    """A task of a session in the backlog, in place of a future.  It is an event of its session
    where the core refuses it, or its class ends."""

    __slots__ = ("_id", "error", "kind", "reader", "tag")

    def __init__(self, reader: Reader, tag: int) -> None:
        self._id = 0  # as of a future: set once the core has the task; LEFT
        self.reader = reader
        self.tag = tag
        self.kind = REFUSED
        self.error: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        self.error = error
        self.reader.take(self)  # type: ignore[arg-type]  # it is read as an event

    def own(self) -> None:
        """As of an event: it has no memory of the library."""


class Backlog:
    """Queues of tasks, by priority and class."""

    def __init__(self, engine: Owner) -> None:
        self.engine: Owner = weakref.proxy(engine)
        self.queues: dict[Key, deque[Entry]] = {}

    def __len__(self) -> int:
        return len(self.queues)

    def has(self, number: int) -> bool:
        """Whether a task of a class waits."""
        return any(key[1] == number for key in list(self.queues))

    def add(
        self, key: Key, template: Template, tag: int, data: Encoded, task: Waiting | None = None
    ) -> None:
        """Adds a task that the core has refused for want of room.  The caller holds the lock."""
        first = not self.has(key[1])
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = deque()
        entry = template, tag, own(data), time.monotonic_ns()
        queue.append(entry if task is None else (*entry, task))
        # There may be room by now, and the thread that made it has found no task here.
        if first and self.engine.core.send(queue, self.engine.futures):
            del self.queues[key]

    def send(self) -> list[tuple[Future[Any] | Waiting, BaseException]]:
        """Sends what the core has room for, of each class highest priority first; returns those
        that it refuses for good."""
        refused: list[tuple[Future[Any] | Waiting, BaseException]] = []
        with self.engine.lock:
            full: set[int] = set()
            for key in sorted(self.queues, reverse=True):
                if key[1] in full:
                    continue
                waiting = self.queues[key]
                while not self._send(waiting, refused):
                    pass
                if waiting:
                    full.add(key[1])
                else:
                    del self.queues[key]
        return refused

    def _send(
        self,
        waiting: deque[Entry],
        refused: list[tuple[Future[Any] | Waiting, BaseException]],
    ) -> bool:
        """Sends what there is room for; False where the first one was refused."""
        try:
            self.engine.core.send(waiting, self.engine.futures)
        except Exception as error:
            task = self._owner(waiting.popleft())
            if task is not None:
                refused.append((task, ends.detached(error)))
            return False
        return True

    def _owner(self, entry: Entry) -> Future[Any] | Waiting | None:
        """None of a task whose future was cancelled."""
        return entry[4] if len(entry) > 4 else self.engine.futures.get(entry[1])

    def take_back(self, number: int | None = None) -> list[Future[Any] | Waiting]:
        """Empties it [of one class]; returns what waited.  The caller holds the lock."""
        dropped: list[Future[Any] | Waiting] = []
        for key in [key for key in self.queues if number in (None, key[1])]:
            owners = map(self._owner, self.queues.pop(key))
            dropped += [task for task in owners if task is not None]
        return dropped
