# SPDX-License-Identifier: MIT
"""map(): results in the order of the arguments, lazily, in chunks."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gpudispatch.codec import own
from gpudispatch.ends import detached, value_of
from gpudispatch.errors import ClosedError, ResultTooLarge
from gpudispatch.events import OUTCOME, REFUSED, SUCCESS
from gpudispatch.engine import Engine
from gpudispatch.session import Session
from gpudispatch.settings import NEVER

if TYPE_CHECKING:
    from gpudispatch._core import Event, Template
    from gpudispatch.codec import Encoded
    from gpudispatch.settings import TaskOptions
    from gpudispatch.work_class import WorkClass

SINGLE = 1 << 32  # indices from here on are single items of a chunk that died
BURST_NS = 200_000  # how long to pull before a look for results
REFILL_NS = 10_000_000  # while the queue is full, and the backlog empty, between looks for room


class Chunk:
    """Some items, and their results up to the first failure: there the iterator ends."""

    __slots__ = ("error", "items", "left", "singles", "values")

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.values: list[Any] = []
        self.error: BaseException | None = None
        self.singles: list[tuple[Any, BaseException | None]] = []
        self.left = 0  # single items that have not ended

    def fail(self) -> BaseException:
        """Hands the error over: nothing else refers to it then."""
        error, self.error = self.error, None
        assert error is not None
        return error


class Mapping:
    """One call of map().  `one` and `many` encode an item and a list of items.

    `keep` lives as long as the loop: `for r in Executor(4).map(...)` is not the end of the pool.
    """

    def __init__(
        self,
        engine: Engine,
        items: Iterator[Any],
        one: Callable[[Any], Encoded],
        many: Callable[[list[Any]], Encoded],
        template: Template,
        chunk_template: Template,
        *,
        options: TaskOptions,
        chunksize: int,
        buffersize: int,
        timeout: float | None,
        keep: object,
        home: WorkClass,
    ) -> None:
        self.keep = keep
        self.items = items
        self.one = one
        self.many = many
        self.template = template  # of single items
        self.chunk_template = chunk_template
        self.chunksize = chunksize
        self.until = None if timeout is None else time.monotonic() + timeout
        self.session = Session(engine, buffersize, options, home=home)
        self.index = 0
        self.turn = 0
        self.waiting: tuple[Chunk, Encoded] | None = None  # pulled, and not accepted yet
        self.exhausted = False
        self.closed = False
        self.error: BaseException | None = None
        self.done: dict[int, Chunk] = {}
        self.singles: dict[int, tuple[int, Chunk, int]] = {}
        self.retries: deque[tuple[int, Encoded]] = deque()
        self.next_single = SINGLE

    def run(self) -> Iterator[Any]:
        """First None, then the results."""
        session = self.session
        used = False
        try:
            while self.fill():
                pass
            yield None
            used = True
            while True:
                while session.ready:
                    self.take(session.ready.popleft())
                while self.turn in self.done:
                    chunk = self.done.pop(self.turn)
                    self.turn += 1
                    self.fill()
                    values = chunk.values
                    values.reverse()
                    while values:  # without a name for the value: the caller's is the only one
                        yield values.pop()
                    if chunk.error is not None:
                        raise chunk.fail()
                if self.fill():
                    session.read(0)
                elif self.turn in self.done:
                    continue
                elif session.live or self.waiting or self.retries:
                    session.read(self.left())
                elif self.error is not None:
                    raise self.error
                else:
                    return
                if session.engine.ended and session.live and not session.ready:
                    raise RuntimeError("the executor was shut down")
        finally:
            session.close(cancel=used)  # map(f, items) without a loop runs its tasks, as elsewhere

    def left(self) -> int:
        """How long to wait for the next event."""
        longest = REFILL_NS if self.waiting or self.retries else NEVER
        if self.until is None:
            return longest
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return min(longest, max(1, int(left * 1e9)))

    # ---- submit ----

    def fill(self) -> bool:
        """Submits some chunks; True while there may be room and items for more."""
        session = self.session
        while self.retries:
            index, frame = self.retries[0]
            if not self.send(self.template, index, None, frame):
                return False
            self.retries.popleft()
        room = session.window - len(session.live) - len(self.done)
        until = time.perf_counter_ns() + BURST_NS
        first = self.index
        while room > 0 and (self.waiting or not self.exhausted):
            if session.is_held_up():
                break
            # each is sent before the next is pulled: the source may wait for its result
            chunk, data = self.waiting or self.pull()
            self.waiting = None
            if chunk is None:
                break
            if data is None:  # it cannot be sent
                self.done[self.index] = chunk
            elif not self.send(self.chunk_template, self.index, chunk, data):
                if not self.closed:
                    self.waiting = chunk, own(data)  # the caller may change its items now
                break
            self.index += 1
            room -= 1
            if time.perf_counter_ns() > until:
                break
        return self.index > first

    def send(self, template: Template, index: int, kept: Any, frame: Encoded) -> bool:
        """Session.submit.  After shutdown no more is sent: the results that come are the last."""
        try:
            return self.session.submit(template, index, kept, frame)
        except ClosedError:
            self.end_intake()
            return False
        except ResultTooLarge as e:
            self.too_large(index, kept, detached(e))
            return True

    def end_intake(self) -> None:
        self.error = self.session.refusal()
        self.exhausted = self.closed = True
        self.waiting = None
        untried, self.retries = self.retries, deque()
        for single, _ in untried:
            self.end_untried(single)

    def end_untried(self, single: int) -> None:
        """It fails as its chunk has."""
        _, of, place = self.singles[single]
        self.end_single(single, of.singles[place])

    def turned_down(self, task: Any) -> None:
        """A task that has waited in the backlog is not accepted."""
        index = task.tag - self.session.first_tag
        if index not in self.session.live:
            return
        chunk, error = self.session.live.pop(index), task.error
        if error is not None and not isinstance(error, ClosedError):
            self.too_large(index, chunk, error)
            return
        self.end_intake()
        if index >= SINGLE:
            self.end_untried(index)

    def too_large(self, index: int, chunk: Chunk | None, error: BaseException) -> None:
        """Ends what the library does not accept.  A chunk's items are tried one by one."""
        if chunk is None:
            self.end_single(index, (None, error))
        elif len(chunk.items) > 1:
            self.separate(index, chunk, error)
        else:
            chunk.error = error
            self.done[index] = chunk

    def pull(self) -> tuple[Chunk | None, Encoded | None]:
        """The next chunk and its frame: None, None at the end of the source."""
        part: list[Any] = []
        try:
            for item in itertools.islice(self.items, self.chunksize):
                part.append(item)
        except Exception as e:
            self.error = e
            self.exhausted = True
        if not part:
            self.exhausted = True
            return None, None
        chunk = Chunk(part)
        try:
            return chunk, self.one(part[0]) if self.chunksize == 1 else self.many(part)
        except Exception as e:
            chunk.error = detached(e)
            return chunk, None

    # ---- ends ----

    def take(self, event: Event) -> None:
        session = self.session
        index = event.tag - session.first_tag
        if event.kind == REFUSED:
            self.turned_down(event)
            return
        if event.kind != OUTCOME or index not in session.live:
            return  # an interrupt can have it delivered twice
        chunk = session.live.pop(index)
        session.ids.pop(index, None)
        if index >= SINGLE:
            self.end_single(index, self.result(event))
        elif self.chunksize == 1:
            value, chunk.error = self.result(event)
            if chunk.error is None:
                chunk.values.append(value)
            self.done[index] = chunk
        else:
            self.end_chunk(index, chunk, event)

    def result(self, event: Event) -> tuple[Any, BaseException | None]:
        if event.outcome != SUCCESS:
            return None, self.session.failure(event)[1]
        return value_of(event, self.session.options)

    def end_chunk(self, index: int, chunk: Chunk, event: Event) -> None:
        error: BaseException | None
        if event.outcome == SUCCESS:
            values, error = value_of(event, self.session.options)
            before: list[Any] | None = values if error is None else None
            kind = "error"
        else:
            kind, error, before = self.session.failure(event)
        if before is None and kind not in ("cancelled", "no_worker") and len(chunk.items) > 1:
            self.separate(index, chunk, error)
            return
        chunk.values = before or []
        chunk.error = error
        self.done[index] = chunk

    def separate(self, index: int, chunk: Chunk, error: BaseException | None) -> None:
        """Tries the items of a chunk that died one by one: the others are not charged."""
        chunk.singles = [(None, error)] * len(chunk.items)
        chunk.left = len(chunk.items)
        for place, item in enumerate(chunk.items):
            self.singles[self.next_single] = (index, chunk, place)
            self.retries.append((self.next_single, self.one(item)))
            self.next_single += 1

    def end_single(self, index: int, result: tuple[Any, BaseException | None]) -> None:
        home, chunk, place = self.singles.pop(index)
        chunk.singles[place] = result
        chunk.left -= 1
        if chunk.left:
            return
        for value, chunk.error in chunk.singles:
            if chunk.error is not None:
                break
            chunk.values.append(value)
        chunk.singles = []
        self.done[home] = chunk
