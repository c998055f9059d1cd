# SPDX-License-Identifier: MIT
"""Moment: the work of a pool or a queue, now and on each device in the last ten minutes.

pool_moment.py makes one of a pool, queue.py of a queue; here it becomes text, and picture.py draws
it.  Names and texts are those of programs, and may have any character: `plain` makes them harmless
in a line, and picture.py in markup.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import NamedTuple

SECONDS = 600  # of each lane
SHOWN_ENDS = 5

# Ways to end badly, and their glyphs, as in view/records.h.
GLYPHS = {
    "error": "✕", "timeout": "◆", "crashed": "▲", "cancelled": "–", "no worker": "□",
    "skipped": "»", "lost": "?", "returned": "○",
}  # fmt: skip


class Second(NamedTuple):
    """A second of a lane."""

    parts: tuple[tuple[str, float], ...] = ()  # a name of picture.TEXTURES, and its share of it
    bad: tuple[tuple[str, int], ...] = ()  # an outcome, and how many tasks ended so


class Lane(NamedTuple):
    """A device."""

    name: str  # "": of tasks that had none
    does: str  # its work now, in words
    runs: bool
    seconds: tuple[Second, ...]  # SECONDS, oldest first; the last one is that of the moment


class End(NamedTuple):
    """A bad end."""

    number: int  # that of a later one is higher
    at: float  # seconds since 1970
    outcome: str
    place: str  # its devices; "" = none
    whose: str
    text: str


class Moment(NamedTuple):
    at: float  # seconds since 1970
    title: str
    line: str
    lanes: tuple[Lane, ...]
    classes: dict[str, str]  # the names of the textures CLASS_0 to CLASS_OTHER that are in use
    ends: tuple[End, ...]  # the last bad ones, oldest first
    bad: int  # how many there were so far, also those that `ends` has not; -1 = not known
    notes: tuple[str, ...]  # further lines
    works: bool  # a task runs or waits, or a worker loads
    over: bool  # nothing will change any more


def plain(text: str, most: int = 160) -> str:
    """A text as one line without control characters, cut to so many characters."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[: most + 1])
    return text if len(text) <= most else text[: most - 1] + "…"


def wall(at: float) -> str:
    """Local time: 02:17:05."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def span(seconds: float) -> str:
    """75 -> "1:15"."""
    s = max(0, int(seconds))
    if s < 3600:
        return f"{s // 60}:{s % 60:02d}"
    return f"{s // 3600}:{s // 60 % 60:02d}:{s % 60:02d}"


def count(n: int, one: str, many: str = "") -> str:
    """3, "task" -> "3 tasks"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def badly(outcomes: dict[str, int]) -> str:
    """ "4 ended badly (3 crashed, 1 timeout)"; "" if none did."""
    some = sorted((k for k in outcomes.items() if k[1]), key=lambda k: (-k[1], k[0]))
    if not some:
        return ""
    kinds = ", ".join(f"{n:,} {name}" for name, n in some)
    return f"{sum(n for _, n in some):,} ended badly ({kinds})"


def left(low: float | None, high: float | None) -> str:
    """ "0:12:00-0:14:00 left"; "" if that is not known."""
    if low is None or high is None:
        return ""
    a, b = span(low), span(high)
    return f"{a} left" if a == b else f"{a}-{b} left"


def worked(lane: Lane) -> float | None:
    """The share of the known time in which tasks ran that did not end badly."""
    useful = unknown = 0.0
    for second in lane.seconds:
        for texture, share in second.parts:
            unknown += share if texture == "UNKNOWN" else 0.0
            useful += share if texture == "WORKED" or texture.startswith("CLASS_") else 0.0
    known = len(lane.seconds) - unknown
    return useful / known if known > 1e-6 else None


def bad_of(lane: Lane) -> Counter[str]:
    """The bad ends of a lane."""
    found: Counter[str] = Counter()
    for second in lane.seconds:
        for outcome, n in second.bad:
            found[outcome] += n
    return found


def end_line(end: End) -> str:
    """A bad end as one line."""
    words = [wall(end.at), end.outcome]
    words += [f"on {plain(end.place, 40)}"] if end.place else []
    whose = plain(end.whose, 60)
    return " ".join(words) + (f": {whose}" if whose else "") + (
        f": {plain(end.text)}" if end.text else ""
    )


def lines(m: Moment) -> list[str]:
    """All of a moment but its picture: the first line is that of the whole."""
    found = [m.line]
    names = [plain(lane.name, 24) or "no device" for lane in m.lanes]
    wide = max(map(len, names), default=0)
    for name, lane in zip(names, m.lanes, strict=True):
        share = worked(lane)
        parts = [f"{name.ljust(wide)}  {plain(lane.does, 60)}"]
        parts += [] if share is None else [f"{share:.0%} worked"]
        parts += [f"{GLYPHS[kind]} {n:,} {kind}" for kind, n in sorted(bad_of(lane).items())]
        found.append(", ".join(parts))
    found += [plain(note) for note in m.notes]
    ends = m.ends[-SHOWN_ENDS:]
    if m.bad > len(ends) and ends:
        found.append(f"The last {len(ends)} of {m.bad:,} bad ends:")
    return found + [f"{GLYPHS[end.outcome]} {end_line(end)}" for end in ends]
