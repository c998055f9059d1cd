# SPDX-License-Identifier: MIT
"""Progress of Pool.outcomes(): one line for all classes.

    1:10:00-1:32:00 left, qwen 1,204/40,000 on 2, llama 310/40,000 on 1, 3 failed, 0:12:33 elapsed

The time left is the work that is left divided by the speed so far: for each class the mean time of
its tasks, for all the number of tasks that ran at a time.  The setup of workers is no slowness: the
clock starts with the first task.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gpudispatch.progress import DRAW_S, TICK_S, Line, Notebook, clock, in_notebook

if TYPE_CHECKING:
    from gpudispatch.outcomes import Outcome
    from gpudispatch.tables import ClassStats

LEAST = 5  # tasks that must have ended before a time left is shown
ROUGH = 0.1  # the least width of its range, to each side


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
    left        seconds that the rest will take, from and to; None = unknown
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
    """Counts the outcomes of one class, and how long its tasks took."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.done = 0
        self.failed = 0
        self.ran = 0
        self.spent = 0.0
        self.squares = 0.0

    def add(self, r: Outcome[Any, Any]) -> None:
        self.done += 1
        self.failed += not r.ok
        times = r.times
        if not r.replayed and times.started:
            took = times.ended - times.started
            self.ran += 1
            self.spent += took
            self.squares += took * took

    @property
    def mean(self) -> float | None:
        return self.spent / self.ran if self.ran else None

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        if self.ran < 2:
            return self.spent
        variance = max(0.0, self.squares / self.ran - (self.spent / self.ran) ** 2)
        return math.sqrt(variance / self.ran)


class PoolMeter:
    """Counts the outcomes of all classes."""

    def __init__(
        self, totals: Mapping[str, int | None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self.classes = {name: ClassMeter(total) for name, total in totals.items()}
        self.now = now
        self.began = now()
        self.first_start = 0.0
        self.replayed = 0
        self.kinds: dict[str, int] = {}

    def add(self, r: Outcome[Any, Any]) -> None:
        self.classes[r.name].add(r)
        self.kinds[r.kind] = self.kinds.get(r.kind, 0) + 1
        self.replayed += r.replayed
        started = r.times.started
        if not r.replayed and started and not 0 < self.first_start <= started:
            self.first_start = started

    def left(self) -> tuple[float, float] | None:
        """The range of the time left."""
        meters = self.classes.values()
        ran = sum(m.ran for m in meters)
        spent = sum(m.spent for m in meters)
        passed = self.now() - self.first_start
        if any(m.total is None for m in meters):
            return None
        rest = {name: (m.total or 0) - m.done for name, m in self.classes.items()}
        if not any(rest.values()):
            return 0.0, 0.0
        if ran < LEAST or spent <= 0 or passed <= 0:
            return None
        at_a_time = spent / passed
        work, doubt = 0.0, 0.0
        for name, meter in self.classes.items():
            mean = meter.mean
            if mean is None:  # as long as those of the others, or not
                work += rest[name] * spent / ran
                doubt += (rest[name] * spent / ran) ** 2
            else:
                work += rest[name] * mean
                doubt += (rest[name] * 2 * meter.error) ** 2
        width = max(ROUGH, min(1.0, math.sqrt(doubt) / work)) if work else ROUGH
        return work / at_a_time * (1 - width), work / at_a_time * (1 + width)

    def snapshot(self, rows: list[ClassStats]) -> PoolSnapshot:
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


def describe(s: PoolSnapshot, end: bool = False) -> str:
    """A snapshot as one line."""
    parts = []
    if s.left is not None and not end and s.done:  # first: a terminal may cut the line
        low, high = map(clock, s.left)
        parts.append(f"{low}-{high} left" if low != high else f"{low} left")
    for name, c in s.classes.items():
        count = f"{c.done:,}" if c.total is None else f"{c.done:,}/{c.total:,}"
        loaded = f" on {c.workers}" if c.workers and not end and c.done != c.total else ""
        parts.append(f"{name} {count}{loaded}")
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
