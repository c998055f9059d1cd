# SPDX-License-Identifier: MIT
"""Progress of a loop: what `outcomes(..., progress=...)` shows while it runs.

    progress=True       one line on stderr, nothing where that is no terminal; in the cell of a
                        notebook a line that changes
    progress="tqdm"     a bar of tqdm, where it is installed
    progress="rich"     a bar of rich, where it is installed
    progress=bar        a tqdm bar, or a rich.progress.Progress, that the caller made
    progress=function   function(snapshot), at most ten times a second and once at the end

All of it runs on the thread of the loop.  A display that fails is given up; the loop goes on.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TextIO, TypeVar

if TYPE_CHECKING:
    from gpudispatch.outcomes import Loop, Outcome

I = TypeVar("I")  # noqa: E741
V = TypeVar("V")

DRAW_S = 0.1  # a display changes at most this often
TICK_S = 1.0  # and at least this often, for the times in it
NAMES = ("tqdm", "rich")


class Snapshot(NamedTuple):
    """The state of a loop.

    total       items of the source; None where it has no len()
    done        outcomes so far, replayed ones included; ok and failed are parts of it
    replayed    outcomes that came from a journal
    kinds       how many there were of each kind: {"success": 1230, "timeout": 4}
    elapsed     seconds since the loop began
    rate        tasks per second since the first one started; 0.0 = none has ended
    left        seconds that the rest will take at this rate; None = unknown
    """

    total: int | None
    done: int
    ok: int
    failed: int
    replayed: int
    kinds: dict[str, int]
    elapsed: float
    rate: float
    left: float | None


# True, "tqdm", "rich", a bar of one of these, or a function
ProgressArgument = bool | str | Callable[[Snapshot], object] | Any


class Meter:
    """Counts the outcomes of a loop.  The time of setup does not count as slowness."""

    def __init__(self, total: int | None, now: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.now = now
        self.began = now()
        self.first_start = 0.0
        self.done = 0
        self.replayed = 0
        self.kinds: dict[str, int] = {}

    def add(self, kind: str, started: float = 0.0, replayed: bool = False) -> None:
        """Counts one outcome; `started` is when its task did, 0.0 = it did not."""
        self.done += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if replayed:
            self.replayed += 1
        elif started and (not self.first_start or started < self.first_start):
            self.first_start = started

    @property
    def failed(self) -> int:
        return self.done - self.kinds.get("success", 0)

    def snapshot(self) -> Snapshot:
        now = self.now()
        ran = self.done - self.replayed
        spent = now - self.first_start if self.first_start else 0.0
        rate = ran / spent if spent > 0 else 0.0
        left = None
        if self.total is not None and self.done >= self.total:
            left = 0.0
        elif self.total is not None and rate:
            left = (self.total - self.done) / rate
        return Snapshot(
            self.total, self.done, self.done - self.failed, self.failed, self.replayed,
            dict(self.kinds), now - self.began, rate, left,
        )  # fmt: skip


def clock(seconds: float) -> str:
    """75.3 -> "0:01:15"."""
    minutes, s = divmod(int(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}"


def pace(rate: float) -> str:
    """Tasks per second, or per minute or hour where that is less than one."""
    for unit, length in (("s", 1), ("min", 60), ("h", 3600)):
        value = rate * length
        if value >= 1:
            break
    return f"{value:,.0f}/{unit}" if value >= 100 else f"{value:.1f}/{unit}"


def describe(s: Snapshot, label: str | None = None, end: bool = False) -> str:
    """A snapshot as one line."""
    if s.total is None:
        parts = [f"{s.done:,} done"]
    else:
        percent = f" ({100 * s.done // s.total}%)" if s.total else ""
        parts = [f"{s.done:,}/{s.total:,}{percent}"]
    if s.failed:
        kinds = sorted(
            (k for k in s.kinds.items() if k[0] != "success"), key=lambda k: (-k[1], k[0])
        )
        shown = ", ".join(f"{n:,} {kind.replace('_', ' ')}" for kind, n in kinds)
        parts.append(f"{s.failed:,} failed ({shown})")
    if s.replayed:
        parts.append(f"{s.replayed:,} from the journal")
    if s.rate:
        parts.append(pace(s.rate))
    elif not s.done and not end:
        parts.append("no task has ended yet")
    parts.append(f"{clock(s.elapsed)} elapsed")
    if s.left is not None and not end and s.done:
        parts.append(f"{clock(s.left)} left")
    return (f"{label}: " if label else "") + ", ".join(parts)


# ---- displays ----


class Display(Protocol):
    """Shows snapshots."""

    def show(self, meter: Meter) -> None:
        """Shows the state; called at most ten times a second."""

    def end(self, meter: Meter) -> None:
        """Shows the last state."""


class Line:
    """One line on a terminal, drawn over again; two at once draw in turn, not one into another."""

    owner: Line | None = None

    def __init__(self, label: str | None = None, stream: TextIO | None = None) -> None:
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.width = 0  # of what is drawn
        self.quiet = not is_terminal(self.stream)

    def show(self, meter: Meter) -> None:
        self.text(describe(meter.snapshot(), self.label))

    def end(self, meter: Meter) -> None:
        self.text(describe(meter.snapshot(), self.label, end=True), end=True)

    def text(self, text: str, end: bool = False) -> None:
        """Shows a text; the last one stays."""
        if self.quiet:
            return
        if end:
            try:
                self._draw(text, "\n")
            finally:
                if Line.owner is self:
                    Line.owner = None
        elif Line.owner is None or Line.owner is self:
            Line.owner = self
            self._draw(text)

    def _draw(self, text: str, after: str = "") -> None:
        columns = self._columns()
        if len(text) >= columns:
            text = text[: max(0, columns - 2)] + "…"
        # blanks and no escape codes: they do on every terminal
        self.stream.write("\r" + text.ljust(min(self.width, columns - 1)) + after)
        self.stream.flush()
        self.width = len(text)

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self.stream.fileno()).columns or 80
        except (OSError, ValueError, AttributeError):
            return shutil.get_terminal_size().columns


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which shows output that changes."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class Notebook:
    """A line in the output of a notebook's cell, drawn over again."""

    quiet = False

    def __init__(self, label: str | None = None) -> None:
        self.label = label
        self.handle: Any = None

    def show(self, meter: Meter) -> None:
        self.text(describe(meter.snapshot(), self.label))

    def end(self, meter: Meter) -> None:
        self.text(describe(meter.snapshot(), self.label, end=True), end=True)

    def text(self, text: str, end: bool = False) -> None:
        """Shows a text in place of the last one."""
        shown = {"text/plain": text}
        if self.handle is None:
            from IPython.display import display

            self.handle = display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)


def is_terminal(stream: Any) -> bool:
    try:
        return stream is not None and bool(stream.isatty())
    except (AttributeError, ValueError, OSError):
        return False


class TqdmBar:
    """A bar of tqdm.  One that the caller made stays open."""

    def __init__(self, bar: Any, own: bool) -> None:
        self.bar = bar
        self.own = own
        self.shown = 0

    def show(self, meter: Meter) -> None:
        if meter.failed:
            self.bar.set_postfix(failed=meter.failed, refresh=False)
        self.bar.update(meter.done - self.shown)
        self.shown = meter.done

    def end(self, meter: Meter) -> None:
        self.show(meter)
        self.bar.refresh()
        if self.own:
            self.bar.close()


class RichBar:
    """A task of a rich.progress.Progress.  One that the caller made is neither started nor stopped
    here."""

    def __init__(self, bars: Any, own: bool, total: int | None, label: str | None) -> None:
        self.bars = bars
        self.own = own
        self.label = label or "tasks"
        self.task = bars.add_task(self.label, total=total)
        if own:
            bars.start()

    def show(self, meter: Meter) -> None:
        text = f"{self.label} ({meter.failed:,} failed)" if meter.failed else self.label
        self.bars.update(self.task, completed=meter.done, description=text)

    def end(self, meter: Meter) -> None:
        self.show(meter)
        if self.own:
            self.bars.stop()


class Function:
    """A function of the caller's."""

    def __init__(self, function: Callable[[Snapshot], object]) -> None:
        self.function = function

    def show(self, meter: Meter) -> None:
        if meter.done != meter.total:  # with the last outcome comes the end
            self.end(meter)

    def end(self, meter: Meter) -> None:
        self.function(meter.snapshot())


def _tqdm(kind: Any, total: int | None, label: str | None) -> TqdmBar:
    # disable=None: quiet without a terminal
    return TqdmBar(kind(total=total, desc=label, unit="task", disable=None), own=True)


def _rich(total: int | None, label: str | None) -> RichBar:
    from rich import progress as r
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        r.TextColumn("{task.description}"), r.BarColumn(), r.MofNCompleteColumn(),
        r.TimeElapsedColumn(), r.TimeRemainingColumn(),
    )  # fmt: skip
    quiet = not (console.is_terminal or console.is_jupyter)
    return RichBar(r.Progress(*columns, console=console, disable=quiet), True, total, label)


def _named(name: str, total: int | None, label: str | None) -> Display:
    if name not in NAMES:
        raise ValueError(f"progress is {name!r}, expected True, {' or '.join(map(repr, NAMES))}")
    try:
        if name == "rich":
            return _rich(total, label)
        from tqdm.auto import tqdm
    except ImportError as e:
        raise ImportError(f"progress={name!r} needs {name}: pip install {name}") from e
    return _tqdm(tqdm, total, label)


def display_of(progress: ProgressArgument, total: int | None, label: str | None) -> Display | None:
    """The display that an argument `progress` names; None: there is nothing to show."""

    def has(*methods: str) -> bool:
        return all(callable(getattr(progress, method, None)) for method in methods)

    if progress is False or progress is None:
        return None
    if progress is True:
        line = Notebook(label) if in_notebook() else Line(label)
        return None if line.quiet else line
    if isinstance(progress, str):
        return _named(progress, total, label)
    if has("add_task", "update"):
        return RichBar(progress, False, total, label)
    if has("set_postfix", "update"):
        if isinstance(progress, type):  # tqdm itself, not a bar of it
            return _tqdm(progress, total, label)
        bar: Any = progress
        if bar.total is None:
            bar.total = total
        return TqdmBar(bar, own=False)
    if callable(progress):
        return Function(progress)
    raise TypeError(
        f"progress must be a bool, {' or '.join(map(repr, NAMES))}, a bar of one of these or a "
        f"function, not {type(progress).__name__}"
    )


class Watch:
    """A meter and its display: draws when it is time to, and gives up a display that fails."""

    def __init__(self, display: Display, total: int | None) -> None:
        self.meter = Meter(total)
        self.display: Display | None = display
        self.next_draw = 0.0

    def add(self, kind: str, started: float = 0.0, replayed: bool = False) -> None:
        self.meter.add(kind, started, replayed)
        self.tick(DRAW_S)

    def tick(self, every: float | None = None) -> None:
        """Draws, if the last drawing is so many seconds ago [TICK_S]."""
        now = time.monotonic()
        if now >= self.next_draw - (0.0 if every is None else TICK_S - every):
            self.next_draw = now + TICK_S
            self._call("show")

    def patience(self) -> int:
        """How long the loop may wait until tick() has something to do, in ns."""
        return max(1_000_000, int((self.next_draw - time.monotonic()) * 1e9))

    def end(self) -> None:
        self._call("end")

    def over(self, loop: Loop[I, V]) -> Generator[Outcome[I, V], None, None]:
        """loop.run(), its None first, with the display."""
        loop.watch = self
        run = loop.run()
        try:
            yield next(run)
            self.tick()
            for r in run:
                self.add(r.kind, r.times.started, r.replayed)
                given = [r]
                del r  # the caller's is the only reference
                yield given.pop()
        finally:
            run.close()
            self.end()

    def _call(self, method: str) -> None:
        if self.display is None:
            return
        try:
            getattr(self.display, method)(self.meter)
        except Exception:
            from gpudispatch.news import logger

            self.display = None
            logger.warning("the progress display has failed and is given up", exc_info=True)


def size_of(source: Any) -> int | None:
    """len(source) where it has one."""
    try:
        return len(source)
    except TypeError:
        return None


def watch(progress: ProgressArgument, source: object, label: str | None) -> Watch | None:
    """What shows the progress of a loop over `source`; None: nothing does."""
    total = size_of(source)
    display = display_of(progress, total, label)
    return None if display is None else Watch(display, total)
