# SPDX-License-Identifier: MIT
"""outcomes(): the night's loop.  Items in, outcomes out as they end, failures as values."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from gpudispatch.codec import own
from gpudispatch.ends import detached, log_tail, value_of
from gpudispatch.errors import ClosedError, ResultTooLarge, in_python
from gpudispatch.events import OUTCOME, REFUSED, SUCCESS
from gpudispatch.future import Times, times_of
from gpudispatch.engine import Engine
from gpudispatch.session import BURST, Session
from gpudispatch.settings import NEVER

if TYPE_CHECKING:
    from gpudispatch._core import Event, Template
    from gpudispatch.codec import Encoded
    from gpudispatch.session import Bell
    from gpudispatch.settings import TaskOptions
    from gpudispatch.work_class import WorkClass

I = TypeVar("I")  # noqa: E741
V = TypeVar("V")

BURST_NS = 200_000  # how long to pull before a look for outcomes
OTHERS_NS = 10_000_000  # while tasks of others fill the queue, between looks for room


class Outcome(Generic[I, V]):
    """How one item ended.

    ok          True where there is a value
    item, index the item and its place in the source, from 0
    value       the result; None where ok is False
    error       the exception; None where ok is True
    kind        "success", "error", "timeout", "crash", "device", "oom", "cancelled", "no_worker"
    replayed    True for one that the journal had
    name        the class of a Pool that ran it; "" of an Executor
    """

    __slots__ = ("_event", "error", "index", "item", "kind", "name", "replayed", "value", "_facts")

    def __init__(
        self,
        item: I,
        index: int,
        value: V | None,
        error: BaseException | None,
        kind: str,
        event: Event | None,
    ) -> None:
        self.item = item
        self.index = index
        self.value = value
        self.error = error
        self.kind = kind
        self.name = ""
        self.replayed = False
        self._event = event
        self._facts: tuple[str | None, int, Times, str, str] | None = None  # of a journal

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def device(self) -> str | None:
        """The names of the worker's devices."""
        if self._facts is not None:
            return self._facts[0]
        return self._event.device if self._event else None

    @property
    def attempt(self) -> int:
        """How many attempts were started."""
        if self._facts is not None:
            return self._facts[1]
        return self._event.attempt if self._event else 0

    @property
    def times(self) -> Times:
        """When the task was queued, sent, started and ended."""
        return self._facts[2] if self._facts is not None else times_of(self._event)

    @property
    def text(self) -> str:
        """The reason of a failure in one line; "" for a success."""
        if self.error is None:
            return ""
        if self._facts is not None and self._facts[3]:
            return self._facts[3]
        if self._event is not None and self._event.text:
            return in_python(self._event.text)
        return f"{type(self.error).__name__}: {self.error}"

    @property
    def log_tail(self) -> str:
        """The last output of the worker up to the end of the task."""
        if self._facts is not None:
            return self._facts[4]
        e = self._event
        if e is None:
            return str(getattr(self.error, "log_tail", "") or "")
        return log_tail(e)

    def __repr__(self) -> str:
        end = f"value={self.value!r}" if self.ok else f"error={self.error!r}"
        return f"<Outcome {self.index} {self.kind} item={self.item!r} {end}>"


class NotReady(Exception):
    """A source has no item yet; its owner ends the wait of the loop when it has."""


class Display(Protocol):
    """Shows the progress of a loop."""

    def tick(self) -> None:
        """Draws what is due."""

    def patience(self) -> int:
        """How long the loop may wait until the next tick, in ns."""


class Loop(Generic[I, V]):
    """One call of outcomes(): what it pulls, keeps and yields.

    `keep` lives as long as the loop: `for r in Executor(4).outcomes(...)` is not the end of the
    pool."""

    def __init__(
        self,
        engine: Engine,
        source: Iterable[I],
        encode: Callable[[I], Encoded],
        template: Template,
        *,
        options: TaskOptions,
        window: int,
        ordered: bool,
        keep: object,
        bell: Bell | None = None,
        home: WorkClass | None = None,
    ) -> None:
        self.keep = keep
        self.name = "" if home is None else home.name  # of its outcomes
        self.source = iter(source)
        self.encode = encode
        self.template = template
        self.ordered = ordered
        self.session = Session(engine, window, options, bell, home=home)
        self.session.item_of = self.item_of
        self.index = 0  # of the next item
        # A source that knows its length does not wait for outcomes, and is pulled in bursts.  Of
        # another each item is sent before the next is pulled.
        self.sized = hasattr(source, "__len__")
        # Pulled, and not accepted yet: what the session keeps, and the frames.
        self.waiting: tuple[list[Any], list[Encoded]] = ([], [])
        self.unsent: Exception | None = None  # why the last of `waiting` has no frame
        self.exhausted = False
        self.only_first = False  # it submits its first task alone, until a pool's loop goes on
        self.error: BaseException | None = None  # of the source
        self.held: dict[int, Outcome[I, V]] = {}  # ordered: ended before their turn
        self.replays: deque[Outcome[I, V]] = deque()
        self.turn = 0
        self.watch: Display | None = None

    def run(self) -> Generator[Outcome[I, V], None, None]:
        """First None, then the outcomes; the caller's thread waits for events."""
        session = self.session
        try:
            yield None  # type: ignore[misc]
            for step in self.steps():
                if type(step) is int:
                    session.read(step)
                else:
                    step.name = self.name  # type: ignore[union-attr]
                    given = [step]
                    del step  # the caller's is the only reference
                    yield given.pop()  # type: ignore[misc]
        finally:
            self.close()

    def steps(self) -> Iterator[Outcome[I, V] | int]:
        """The outcomes, and between them for how long to wait for events, in ns: run() and aio.py
        wait in their own ways."""
        session = self.session
        live, ready, first = session.live, session.ready, session.first_tag
        while True:
            self.record()
            while ready:  # without a name for the outcome: the caller's is the only one
                event = ready.popleft()
                if event.kind != OUTCOME or event.tag - first not in live:
                    if event.kind == REFUSED:
                        self.turned_down(event)
                    continue
                if not self.ordered:
                    yield self.outcome(event)
                else:
                    self.hold(self.outcome(event))
            if self.replays:
                yield from self.replayed()
            while self.turn in self.held:
                yield self.held.pop(self.turn)
                self.turn += 1
            if self.fill():
                yield 0
            elif live:
                yield self.patience() if self.watch is None else self.watched()
            elif self.waiting[0]:
                yield OTHERS_NS
            elif self.exhausted and not self.replays:
                break
            elif not self.replays:
                yield NEVER  # until the source has more
            if session.engine.ended and not ready and live:
                self.rest()
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.session.close()

    @staticmethod
    def item_of(kept: Any) -> I:
        """The item in what the session keeps of a task."""
        return kept  # type: ignore[no-any-return]

    def patience(self) -> int:
        """How long to wait for the next event, in ns."""
        return NEVER

    def watched(self) -> int:
        """As patience(), where a display of the progress is due, too."""
        assert self.watch is not None
        self.watch.tick()
        return min(self.patience(), self.watch.patience())

    def record(self) -> None:
        """Keeps what has ended, before the first of it is yielded."""

    def hold(self, r: Outcome[I, V]) -> None:
        self.held[r.index] = r

    def replayed(self) -> Iterator[Outcome[I, V]]:
        while self.replays:
            if self.ordered:
                self.hold(self.replays.popleft())
            else:
                yield self.replays.popleft()

    def outcome(self, event: Event) -> Outcome[I, V]:
        session = self.session
        index = event.tag - session.first_tag
        item = session.live.pop(index)
        session.ids.pop(index, None)
        if event.outcome == SUCCESS:
            value, failed = value_of(event, session.options)
            kind = "success" if failed is None else "error"
            return Outcome(item, index, value, failed, kind, event)
        kind, error, _ = session.failure(event)
        return Outcome(item, index, None, error, kind, event)

    def turned_down(self, task: Any) -> None:
        """A task that has waited in the backlog is not accepted."""
        index, session = task.tag - self.session.first_tag, self.session
        if index not in session.live:
            return
        kept, error = session.live.pop(index), task.error
        if error is None or isinstance(error, ClosedError):
            self.error = session.refusal()  # as in flush()
            self.exhausted = True
        else:
            self.replays.append(self.refused(kept, index, error))

    def rest(self) -> None:
        """The pool has ended under the loop."""
        live = self.session.live
        for index in sorted(live):
            self.replays.append(self.lost(live.pop(index), index))

    def lost(self, kept: Any, index: int) -> Outcome[I, V]:
        error = CancelledError("the executor was shut down")
        return Outcome(kept, index, None, error, "cancelled", None)

    def fill(self) -> bool:
        """Pulls and submits some items; True where something came of it."""
        session = self.session
        room = session.window - len(session.live) - len(self.held)
        if room <= 0 or self.only_first and self.index:
            return False
        if self.sized and room < BURST <= len(session.live):
            return False  # a burst costs less than its items one by one
        if session.is_held_up():
            return False
        if not self.flush() or self.exhausted:
            return bool(self.replays)
        first, until = self.index, time.perf_counter_ns() + BURST_NS
        try:
            if self.sized:
                self.pull(min(BURST, room), until)
            else:
                for _ in range(min(BURST, room)):
                    self.pull(1, until)
                    if not self.flush() or time.perf_counter_ns() > until:
                        break
                    if session.is_held_up():
                        break
        except StopIteration:
            self.exhausted = True
        except NotReady:
            pass
        except Exception as e:
            self.exhausted = True
            self.error = e
        self.flush()
        return self.index > first or bool(self.replays)

    def pull(self, n: int, until: int) -> None:
        """Pulls n items, fewer where that takes long; what the source raises leaves it."""
        source, encode, clock = self.source, self.encode, time.perf_counter_ns
        items, frames = self.waiting
        for _ in range(n):
            item = next(source)
            items.append(item)
            try:
                frames.append(encode(item))
            except Exception as e:
                self.unsent = e
                break
            if self.only_first or clock() > until:
                break

    def flush(self) -> bool:
        """Submits what waits; False where there is no room for all.  After shutdown nothing more is
        sent: the outcomes that come are the last."""
        kept, frames = self.waiting
        while frames:
            try:
                if len(frames) == 1:
                    n = int(self.session.submit(self.template, self.index, kept[0], frames[0]))
                else:
                    n = self.session.submit_many(self.template, self.index, kept, frames)
            except ClosedError:
                self.error = self.session.refusal()
                self.exhausted = True
                kept.clear()
                frames.clear()
                return False
            except ResultTooLarge as e:  # of the first
                self.replays.append(self.refused(kept[0], self.index, detached(e)))
                n = 1
            self.index += n
            del kept[:n], frames[:n]
            if not n:
                frames[:] = map(own, frames)  # the caller may change its items now
                return False
        if kept and self.unsent is not None:
            self.replays.append(self.refused(kept.pop(), self.index, detached(self.unsent)))
            self.unsent = None
            self.index += 1
        return True

    def refused(self, kept: Any, index: int, error: BaseException) -> Outcome[I, V]:
        """The outcome of an item that the library does not accept."""
        return Outcome(kept, index, None, error, "error", None)
