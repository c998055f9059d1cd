# SPDX-License-Identifier: MIT
"""The feeder of a run: it pulls the items of the generator and encodes them, on its own thread.

The feeder appends each encoded item to `unsent`.  The run submits these items, and calls accepted()
and ended().  The feeder waits while too many items are open, or too many bytes are unsent.
"""

from __future__ import annotations

import threading
import traceback
from _queue import SimpleQueue
from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from gpudispatch import codec
from gpudispatch.codec import frame_size, own
from gpudispatch.future import Times
from gpudispatch.session import BURST

if TYPE_CHECKING:
    from gpudispatch.codec import Encoded

ITEM = 0  # beside the kinds of events
NO_TIMES = Times(0.0, 0.0, 0.0, 0.0)
AHEAD_BYTES = 1 << 20  # of items that are pulled and not accepted, unless one is larger
FAREWELL_S = 0.2  # for a generator that is being closed early


class Item:
    """One item of the generator.  One that the core never had is an event, too: its end."""

    kind = ITEM

    def __init__(self, index: int, tag: int) -> None:
        self.index = index
        self.tag = tag
        self.frame: Encoded = b""
        self.end = "cancelled", "cancelled before it started"  # its kind and text, if it is the end
        self.attempt = 0  # the last one whose start was reported
        self.times = NO_TIMES  # so far, for on_progress

    def own(self) -> None:
        """As an event does, which may hold payload memory."""


NUDGE = Item(-1, 0)  # ends a wait, and nothing else


class Feeder:
    """Pulls the generator on a thread of its own, `most` items ahead of their ends.

    The thread is a daemon: a generator that blocks for ever does not keep the program.
    """

    def __init__(
        self,
        source: Iterable[Any],
        first_tag: int,
        most: int,
        news: Callable[[Item | None], object],
    ) -> None:
        self.source = source
        self.first_tag = first_tag
        self.most = most
        self.news = news  # called with an item that cannot be sent, and with None for other news
        self.open: dict[int, Item] = {}  # pulled, and not ended, by tag
        self.unsent: deque[Item] = deque()  # those of them that the core has not accepted
        self.bytes_in = self.bytes_out = 0  # of unsent: each is written by one thread
        self.pulled = 0
        self.done = False
        self.stopped = False
        self.waiting = False
        self.wakes: SimpleQueue[None] = SimpleQueue()  # which an interrupt cannot leave locked
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="gpudispatch-source", daemon=True)

    def join(self) -> None:
        """Waits for the end of the thread, and for a short time where the generator blocks."""
        if self.thread.ident is not None:
            self.thread.join(None if self.done else FAREWELL_S)

    def stop(self) -> None:
        """No more items."""
        self.stopped = True
        self._wake()

    def accepted(self, n: int) -> None:
        """The core has the first n of `unsent`."""
        for _ in range(n):
            item = self.unsent.popleft()
            self.bytes_out += frame_size(item.frame)
            item.frame = b""

    def ended(self, tag: int) -> None:
        self.open.pop(tag, None)
        if len(self.open) <= self.most - min(BURST, (self.most + 1) // 2):
            self._wake()

    def _wake(self) -> None:
        if self.waiting and self.wakes.empty():
            self.wakes.put(None)

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
        self.news(None)

    def _await_room(self) -> bool:
        self.waiting = True
        while not self.stopped and (
            len(self.open) >= self.most
            or len(self.unsent) >= BURST
            or self.bytes_in - self.bytes_out >= AHEAD_BYTES
        ):
            self.wakes.get()
        self.waiting = False
        return not self.stopped

    def _put(self, value: object) -> None:
        tag = self.first_tag + self.pulled
        item = self.open[tag] = Item(self.pulled, tag)
        self.pulled += 1
        try:
            # own: the generator may yield the same array again, with other contents
            item.frame = own(codec.encode(codec.ITEM, value, cuda="error"))
        except Exception as e:
            item.end = "error", "".join(traceback.format_exception(e))
            self.news(item)
            return
        self.bytes_in += frame_size(item.frame)
        self.unsent.append(item)
        self.news(None)
