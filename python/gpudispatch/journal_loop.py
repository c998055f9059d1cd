# SPDX-License-Identifier: MIT
"""outcomes() with a journal: what has ended is recorded, and what is recorded is not run again."""

from __future__ import annotations

import atexit
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from gpudispatch import codec
from gpudispatch.ends import decoded
from gpudispatch.events import CANCELLED, OUTCOME, REFUSED, SUCCESS
from gpudispatch.future import Times
from gpudispatch.news import logger
from gpudispatch.outcomes import Loop, Outcome
from gpudispatch.engine import Engine
from gpudispatch.settings import NEVER

if TYPE_CHECKING:
    from gpudispatch._core import Event, Template
    from gpudispatch.codec import Encoded
    from gpudispatch.journal import Journal, JournalRecord, Part
    from gpudispatch.session import Bell
    from gpudispatch.settings import TaskOptions
    from gpudispatch.work_class import WorkClass

I = TypeVar("I")  # noqa: E741
V = TypeVar("V")

RECORD_S = 0.001  # a caller this slow has the journal look for outcomes before each one
KEPT_BYTES = 64 << 20  # results that are recorded, and not taken yet


class JournalLoop(Loop[I, V]):
    """A loop whose outcomes go to a journal, and come from it where they are there.

    What the session keeps of a task is (item, place in the source, key, turn of the key)."""

    def __init__(
        self,
        engine: Engine,
        source: Iterable[I],
        encode: Callable[[I], Encoded],
        template: Template,
        *,
        journal: Journal | Part,
        key: Callable[[I], bytes],
        own_key: bool = False,
        options: TaskOptions,
        window: int,
        ordered: bool,
        keep: object,
        bell: Bell | None = None,
        home: WorkClass | None = None,
    ) -> None:
        self.journal = journal
        self.key = key
        self.own_key = own_key  # the user's: what it raises ends the loop
        self.place = 0
        self.kept = 0  # bytes of results in `replays`
        self.recorded = 0.0  # when record() has looked
        _open.add(self)
        super().__init__(
            engine, source, encode, template,
            options=options, window=window, ordered=ordered, keep=keep, bell=bell,
            home=home,
        )  # fmt: skip

    @staticmethod
    def item_of(kept: Any) -> I:
        return kept[0]  # type: ignore[no-any-return]

    def pull(self, n: int, until: int) -> None:
        kept, frames = self.waiting
        for _ in range(n):
            item = next(self.source)
            place = self.place
            self.place += 1
            try:
                name = self.key(item)
            except Exception as e:
                if self.own_key:
                    raise
                kept.append((item, place, b"", 0))
                self.unsent = e  # a worker would not get it either
                break
            turn, record = self.journal.claim(name)
            if record is not None:
                self.replays.append(replay(item, place, record))
            else:
                kept.append((item, place, name, turn))
                try:
                    frames.append(self.encode(item))
                except Exception as e:
                    self.unsent = e
                    break
                if self.only_first:
                    break
            if time.perf_counter_ns() > until:
                break

    def outcome(self, event: Event) -> Outcome[I, V]:
        r = self.ended(event)
        self.journal.flush()
        return r

    def ended(self, event: Event) -> Outcome[I, V]:
        """An outcome that the next flush of the journal writes."""
        session = self.session
        index = event.tag - session.first_tag
        item, place, name, turn = session.live.pop(index)
        session.ids.pop(index, None)
        frame: Any = None
        if event.outcome == SUCCESS:
            frame = event.take()
            if session.options.raw:  # a journal holds frames
                frame = bytes(codec.join(codec.encode(codec.VALUE, bytes(frame or b""))))
            frame = frame or b"\0"
            if type(frame) is not bytes:
                frame = memoryview(frame)
            self.kept += len(frame)
            value, failed = decoded(frame)
            kind = "success" if failed is None else "error"
            r: Outcome[I, V] = Outcome(item, place, value, failed, kind, event)
        else:
            kind, error, _ = session.failure(event)
            r = Outcome(item, place, None, error, kind, event)
        if r.error is None and type(frame) is bytes:
            self.journal.put_success(name, turn, frame, event, place)
            return r
        times = event.queued_at, event.sent_at, event.started_at, event.ended_at
        device, attempt = event.device or "", event.attempt
        if r.error is None:
            self.journal.put(name, turn, "success", frame, device, attempt, times, place)
        else:
            self.journal.put(
                name, turn, r.kind, codec.encode_exception(r.error), device, attempt, times, place,
                r.text, r.log_tail,
            )  # fmt: skip
        return r

    def record(self) -> None:
        # All that the core knows, too, not only what one poll returned: the caller may take long
        # with each outcome, and a kill meanwhile would have these items run again.
        session = self.session
        live, ready, first = session.live, session.ready, session.first_tag
        while ready and self.kept < KEPT_BYTES:
            event = ready.popleft()
            if event.kind == OUTCOME and event.tag - first in live:
                self.replays.append(self.ended(event))
            elif event.kind == REFUSED:
                self.turned_down(event)
            if not ready:
                self.journal.flush()
                session.read(0)
        self.journal.flush()
        self.recorded = time.monotonic()

    def replayed(self) -> Iterator[Outcome[I, V]]:
        replays = self.replays
        while replays:
            r = replays.popleft()
            if self.ordered:
                self.hold(r)
                continue
            yield r
            if time.monotonic() - self.recorded > RECORD_S:
                self.session.read(0)
                self.record()
        self.kept = 0

    def patience(self) -> int:
        wait = self.journal.tick()
        return NEVER if wait is None else max(1, int(wait * 1e9))

    def lost(self, kept: Any, index: int) -> Outcome[I, V]:
        return super().lost(*kept[:2])

    def refused(self, kept: Any, index: int, error: BaseException) -> Outcome[I, V]:
        item, place, name, turn = kept
        r = super().refused(item, place, error)
        if name:
            self.journal.put(
                name, turn, r.kind, codec.encode_exception(error), "", 0, (0, 0, 0, 0), place,
                r.text, r.log_tail,
            )  # fmt: skip
        return r

    def close(self) -> None:
        if self.session.live and not self.session.engine.forked:
            Rest(self)
        else:
            try:
                super().close()
            finally:
                self.journal.close()
        _open.discard(self)  # else its end calls code, where Ctrl-C would be lost


class Rest:
    """What runs when a loop with a journal is left: its outcomes are recorded, too.

    The bell of the session that was left, on whose thread an event arrives.  The journal is closed
    after the last of them, or where this process opens it again.
    """

    def __init__(self, loop: JournalLoop[Any, Any]) -> None:
        self.loop = loop
        self.lock = loop.journal.lock  # one for all loops that share a journal
        loop.keep = None
        _rests.append(self)
        engine = loop.session.engine
        try:
            if not engine.ended:
                loop.session.leave(self)
            self.set()
            if engine.ended:
                engine.join()  # its thread may be about to hand the last event over
                self.set()
                self.end()
        except BaseException:
            self.end()
            raise

    def set(self) -> None:
        """Records what has ended."""
        loop = self.loop
        live, ready, first = loop.session.live, loop.session.ready, loop.session.first_tag
        with self.lock:
            if self not in _rests:
                return
            try:
                while ready:
                    event = ready[0]  # an interrupt before its end must not lose it
                    if event.kind in (OUTCOME, REFUSED) and event.tag - first in live:
                        if event.kind == REFUSED or event.outcome == CANCELLED:
                            del live[event.tag - first]
                        else:
                            loop.ended(event)
                            loop.journal.flush()
                    ready.popleft()
            except KeyboardInterrupt:
                raise
            except BaseException:
                logger.exception("an outcome could not be recorded")
                live.clear()
            if not live:
                self.end()

    def clear(self) -> None:
        pass

    def wait(self, timeout: float) -> None:
        pass

    def end(self) -> None:
        with self.lock:
            self.loop.session.live.clear()
            self.loop.session.close(cancel=False)
            self.loop.journal.close()
            if self in _rests:  # at last: an interrupt before leaves it to end_rest()
                _rests.remove(self)


_open: weakref.WeakSet[JournalLoop[Any, Any]] = weakref.WeakSet()
_rests: list[Rest] = []


@atexit.register
def _at_exit() -> None:
    """Records what the loops that nobody has left yet ran.  The pools have ended by now."""
    for loop in list(_open):
        if loop.session.engine.ended and not loop.session.engine.forked:
            loop.close()


def end_rest(path: str | os.PathLike[str]) -> None:
    """Before a journal is opened: an earlier loop of this process records no more in it."""
    for rest in list(_rests):
        if os.path.realpath(rest.loop.journal.path) == os.path.realpath(path):
            rest.end()


def replay(item: I, place: int, record: JournalRecord) -> Outcome[I, Any]:
    """The outcome that a journal holds."""
    try:
        r: Outcome[I, Any] = Outcome(
            item, place, record.value, record.error, record.kind, None
        )
    except Exception as e:
        r = Outcome(item, place, None, e, record.kind, None)
    r.replayed = True
    times = Times(*record.times)
    r._facts = record.device, record.attempt, times, record.text, record.log_tail
    return r
