# SPDX-License-Identifier: MIT
"""Progress of Pool.outcomes(): one line for all classes.

    1:10:00-1:32:00 left, qwen 1,204/40,000 on 2, llama 310/40,000 on 1, 3 failed, 0:12:33 elapsed

While a class with items left has no pace yet, the line has no time, and a class without a worker
waits:

    qwen 1,204/40,000 on 2, llama 0/40,000 waits, 0:01:02 elapsed

time_left.py computes the range from the counts here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudispatch import time_left
from gpudispatch.progress import DRAW_S, TICK_S, Line, Notebook, clock, in_notebook

if TYPE_CHECKING:
    from gpudispatch.outcomes import Outcome
    from gpudispatch.tables import ClassStats


class ClassProgress(NamedTuple):
    """The state of one class: total is None where its source has no len()."""

    total: int | None
    done: int
    failed: int
    workers: int  # that are loaded


class PoolSnapshot(NamedTuple):
    """The state of a loop over several classes.

    classes     the state of each class
    total       items of all sources; None where one has no len()
    done        outcomes so far, replayed ones included; ok and failed are parts of it
    replayed    outcomes that came from a journal
    kinds       how many there were of each kind: {"success": 1230, "timeout": 4}
    elapsed     seconds since the loop began
    left        seconds until the last class ends, from and to; None = unknown, since a class has a
                source without len(), or items left and no worker or fewer than five tasks ended
    """

    classes: dict[str, ClassProgress]
    total: int | None
    done: int
    ok: int
    failed: int
    replayed: int
    kinds: dict[str, int]
    elapsed: float
    left: tuple[float, float] | None


class ClassMeter:
    """Counts the outcomes of one class, how long its tasks took, and how long it had workers."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.done = 0
        self.failed = 0
        self.ran = 0
        self.spent = 0.0
        self.squares = 0.0
        self.seen: float | None = None  # when look() was last called
        self.workers = 0  # at that time
        self.running = 0  # tasks, at that time
        self.most = 0  # workers that were loaded at once
        self.served = 0.0  # seconds of workers

    def add(self, r: Outcome[Any, Any]) -> None:
        self.done += 1
        self.failed += not r.ok
        times = r.times
        if not r.replayed and times.started:
            took = times.ended - times.started
            self.ran += 1
            self.spent += took
            self.squares += took * took

    def look(self, now: float, row: ClassStats) -> None:
        """Notes the present workers.  A starting worker counts if it replaces another: that setup
        is part of the pace, as it comes again.  A paused class counts as one without workers."""
        self.most = max(self.most, row["workers"])
        workers = 0 if row["paused"] else min(row["workers"] + row["starting"], self.most)
        if self.seen is not None:
            self.served += (now - self.seen) * (self.workers + workers) / 2
        self.seen, self.workers, self.running = now, workers, row["running"]

    @property
    def course(self) -> time_left.Course:
        ran = max(1, self.ran)
        mean = self.spent / ran
        error = math.sqrt(max(0.0, self.squares / ran - mean * mean) / ran)
        rest = (self.total or 0) - self.done
        return time_left.Course(
            rest, self.ran, self.running, self.workers, self.served, mean, error
        )


class PoolMeter:
    """Counts the outcomes of all classes."""

    def __init__(
        self, totals: Mapping[str, int | None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.now = now
        self.began = now()
        self.classes = {name: ClassMeter(total) for name, total in totals.items()}
        self.replayed = 0
        self.kinds: dict[str, int] = {}

    def add(self, r: Outcome[Any, Any]) -> None:
        self.classes[r.name].add(r)
        self.kinds[r.kind] = self.kinds.get(r.kind, 0) + 1
        self.replayed += r.replayed

    def look(self, rows: list[ClassStats]) -> None:
        """Notes the present workers of each class."""
        now = self.now()
        for row in rows:
            if row["name"] in self.classes:
                self.classes[row["name"]].look(now, row)

    def left(self) -> time_left.Range | None:
        """The range of the time left."""
        meters = self.classes.values()
        if any(m.total is None for m in meters):
            return None
        return time_left.of_all([m.course for m in meters])

    def snapshot(self, rows: list[ClassStats]) -> PoolSnapshot:
        self.look(rows)
        loaded = {row["name"]: row["workers"] for row in rows}
        meters = self.classes
        totals = [m.total for m in meters.values()]
        done = sum(m.done for m in meters.values())
        failed = sum(m.failed for m in meters.values())
        return PoolSnapshot(
            {
                name: ClassProgress(m.total, m.done, m.failed, loaded.get(name, 0))
                for name, m in meters.items()
            },
            None if None in totals else sum(t for t in totals if t is not None),
            done, done - failed, failed, self.replayed, dict(self.kinds),
            self.now() - self.began, self.left(),
        )  # fmt: skip


def _place(c: ClassProgress, left: time_left.Range | None) -> str:
    """On how many workers a class runs, or that it has none: then this is why no time is shown."""
    if c.workers:
        return f" on {c.workers}"
    return " waits" if left is None and c.total is not None else ""


def describe(s: PoolSnapshot, end: bool = False) -> str:
    """A snapshot as one line."""
    parts = []
    if s.left is not None and not end and s.done:  # first: a terminal may cut the line
        low, high = clock(s.left[0]), clock(math.ceil(s.left[1]))
        parts.append(f"{low}-{high} left" if low != high else f"{low} left")
    for name, c in s.classes.items():
        count = f"{c.done:,}" if c.total is None else f"{c.done:,}/{c.total:,}"
        parts.append(f"{name} {count}{'' if end or c.done == c.total else _place(c, s.left)}")
    if s.failed:
        parts.append(f"{s.failed:,} failed")
    if s.replayed:
        parts.append(f"{s.replayed:,} from the journal")
    parts.append(f"{clock(s.elapsed)} elapsed")
    return ", ".join(parts)


class PoolWatch:
    """The meter of a loop and what shows it: draws when it is time to."""

    def __init__(
        self,
        show: Callable[[PoolSnapshot, bool], object],
        totals: Mapping[str, int | None],
        rows: Callable[[], list[ClassStats]],
    ) -> None:
        self.meter = PoolMeter(totals)
        self.show: Callable[[PoolSnapshot, bool], object] | None = show
        self.rows = rows
        self.next_draw = 0.0

    def add(self, r: Outcome[Any, Any]) -> None:
        self.meter.add(r)
        self.tick(DRAW_S)

    def tick(self, every: float | None = None) -> None:
        """Draws, if the last drawing is so many seconds ago [TICK_S]."""
        now = time.monotonic()
        if now >= self.next_draw - (0.0 if every is None else TICK_S - every):
            self.next_draw = now + TICK_S
            self._call(False)

    def patience(self) -> int:
        """How long the loop may wait until tick() has something to do, in ns."""
        return max(1_000_000, int((self.next_draw - time.monotonic()) * 1e9))

    def end(self) -> None:
        self._call(True)

    def _call(self, end: bool) -> None:
        if self.show is None:
            return
        try:
            self.show(self.meter.snapshot(self.rows()), end)
        except Exception:
            from gpudispatch.news import logger

            self.show = None
            logger.warning("the progress display has failed and is given up", exc_info=True)


def watch(
    progress: bool | Callable[[PoolSnapshot], object],
    totals: Mapping[str, int | None],
    rows: Callable[[], list[ClassStats]],
) -> PoolWatch | None:
    """What shows the progress of a loop; None: nothing does."""
    if progress is False or progress is None:
        return None
    if callable(progress):
        function = progress
        return PoolWatch(lambda snapshot, end: function(snapshot), totals, rows)
    if progress is not True:
        raise TypeError(f"progress must be a bool or a function, not {type(progress).__name__}")
    line = Notebook() if in_notebook() else Line()
    if line.quiet:
        return None
    return PoolWatch(lambda s, end: line.text(describe(s, end), end), totals, rows)
