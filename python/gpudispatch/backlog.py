# SPDX-License-Identifier: MIT
"""The backlog of an engine: tasks that the core has no room for yet.

The core takes a quota of each class.  So a class that waits here is full, and the others go on.
"""

from __future__ import annotations

import time
import weakref
from collections import deque

from gpudispatch import ends
from gpudispatch.codec import own

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any, Protocol

    from gpudispatch._core import Dispatcher, Template
    from gpudispatch.codec import Encoded
    from gpudispatch.future import Future

    Key = tuple[int, int]  # priority, and number of the class

    class Owner(Protocol):
        """The engine: its lock guards the backlog."""

        core: Dispatcher
        futures: dict[int, Future[Any]]
        lock: Any


class Backlog:
    """Queues of (template, tag, frame, time of the submit), by priority and class."""

    def __init__(self, engine: Owner) -> None:
        self.engine: Owner = weakref.proxy(engine)
        self.queues: dict[Key, deque[tuple[Template, int, Encoded, int]]] = {}

    def __len__(self) -> int:
        return len(self.queues)

    def has(self, number: int) -> bool:
        """Whether a task of a class waits."""
        return any(key[1] == number for key in list(self.queues))

    def add(self, key: Key, template: Template, tag: int, data: Encoded) -> None:
        """Adds a task that the core has refused for want of room.  The caller holds the lock."""
        first = not self.has(key[1])
        queue = self.queues.get(key)
        if queue is None:
            queue = self.queues[key] = deque()
        queue.append((template, tag, own(data), time.monotonic_ns()))
        # There may be room by now, and the thread that made it has found no task here.
        if first and self.engine.core.send(queue, self.engine.futures):
            del self.queues[key]

    def send(self) -> list[tuple[Future[Any], BaseException]]:
        """Sends what the core has room for, of each class highest priority first; returns those
        that it refuses for good."""
        refused: list[tuple[Future[Any], BaseException]] = []
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
        waiting: deque[tuple[Template, int, Encoded, int]],
        refused: list[tuple[Future[Any], BaseException]],
    ) -> bool:
        """Sends what there is room for; False where the first one was refused."""
        try:
            self.engine.core.send(waiting, self.engine.futures)
        except Exception as error:
            future = self.engine.futures.get(waiting.popleft()[1])
            if future is not None:
                refused.append((future, ends.detached(error)))
            return False
        return True

    def take_back(self, number: int | None = None) -> list[Future[Any]]:
        """Empties it [of one class]; returns the futures.  The caller holds the lock."""
        futures = self.engine.futures
        dropped: list[Future[Any]] = []
        for key in [key for key in self.queues if number in (None, key[1])]:
            tags = [task[1] for task in self.queues.pop(key)]
            dropped += [futures[tag] for tag in tags if tag in futures]
        return dropped
