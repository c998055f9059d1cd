# SPDX-License-Identifier: MIT
"""Pace: futures that were submitted in an event loop end in bursts that the loop keeps up with.

A loop runs all callbacks that are ready before it looks at anything else.  Tasks end faster than a
loop runs the callbacks of their futures: 40,000 submitted in one turn would end as thousands of
callbacks in one other turn.  So a burst ends, the loop says that it has run it, and then the next
one ends.  A loop that blocks says nothing: the next burst then ends after a while all the same, and
each further one after twice that time, since all of them are callbacks of one turn.
"""

from __future__ import annotations

import sys
import time
from collections import deque

from gpudispatch.settings import NEVER

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any

    from gpudispatch._core import Event

BURST = 256
SILENT_NS = 100_000_000  # a loop that has said nothing for so long gets the next burst
SILENT_MOST_NS = 3_200_000_000


def running_loop() -> AbstractEventLoop | None:
    """The event loop that runs on this thread; asyncio is not imported for the answer."""
    events = sys.modules.get("asyncio.events")
    return None if events is None else events._get_running_loop()


class Pace:
    """The outcomes that wait for their burst.  The pool's thread calls all but heard()."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self.wake = wake  # ends the poll of the pool's thread
        self.waiting: deque[tuple[AbstractEventLoop, Event]] = deque()
        self.left = BURST  # of this burst
        self.silent = False  # the loop has not said that it has run the last burst
        self.since = 0
        self.silence = SILENT_NS  # how long to wait for the loop this time

    def add(self, loop: AbstractEventLoop, event: Event) -> None:
        self.waiting.append((loop, event))

    def patience(self) -> int:
        """In how many ns deliver() has something to do; NEVER: not before another event."""
        if not self.waiting:
            return NEVER
        return max(1, self.since + self.silence - time.monotonic_ns()) if self.silent else 0

    def deliver(self, resolve: Callable[[Event], Any]) -> None:
        """Ends what may end now."""
        if self.silent and time.monotonic_ns() - self.since < self.silence:
            return
        if self.silent:
            self.silent, self.left = False, BURST
            self.silence = min(2 * self.silence, SILENT_MOST_NS)
        while self.waiting and not self.silent:
            loop, event = self.waiting.popleft()
            resolve(event)
            self.left -= 1
            if self.left == 0:
                self.silent, self.since = True, time.monotonic_ns()
                try:
                    loop.call_soon_threadsafe(self.heard)
                except RuntimeError:  # it was closed
                    self.silent, self.left = False, BURST

    def take(self, tag: int) -> Event | None:
        """Takes the outcome of a future that somebody waits for."""
        for pair in self.waiting:
            if pair[1].tag == tag:
                self.waiting.remove(pair)
                return pair[1]
        return None

    def heard(self) -> None:
        """In the loop's thread, behind the callbacks of the burst."""
        self.left = BURST
        self.silent = False
        self.silence = SILENT_NS
        self.wake()
