# SPDX-License-Identifier: MIT
"""The picture of a moment: a lane for each device, as `gpudispatch report` draws it.

It is one SVG element without script and style sheet: colours stand in attributes, so an exported
notebook has them, too, and a viewer that strips style sheets.  Its background is white in a dark
notebook as well.  Each texture is told from the others without its colour, and each way to end has
a glyph and a word.
"""

from __future__ import annotations

import time
from collections import Counter
from html import escape
from typing import NamedTuple

from gpudispatch.moment import GLYPHS, SECONDS, Lane, Moment, bad_of, lines, plain, worked


class Texture(NamedTuple):
    """As in view/report/textures.h."""

    colour: str  # "": the page shows through
    turn: int
    size: int
    path: str  # of its lines; "" = plain
    width: str  # of these
    text: str = ""


TEXTURES = {
    "CLASS_0": Texture("#0072b2", 0, 6, "", "1"),
    "CLASS_1": Texture("#a85a00", 45, 5, "M.7 0V5", "1.3"),
    "CLASS_2": Texture("#00795c", 0, 5, "M0 .5H5", "1"),
    "CLASS_3": Texture("#7b4ba6", 135, 6, "M1 0V6", "2"),
    "CLASS_4": Texture("#007a87", 0, 5, "M1.5 1.5h1.6", "1.6"),
    "CLASS_5": Texture("#8c5a3c", 0, 5, "M.5 0V5", "1"),
    "CLASS_6": Texture("#a83279", 0, 6, "M0 .5H6M.5 0V6", "1"),
    "CLASS_7": Texture("#6b6b00", 45, 6, "M0 .5H6M.5 0V6", "1"),
    "CLASS_OTHER": Texture("#5a626c", 0, 8, "M0 6L4 2L8 6", "1.2"),
    "WORKED": Texture("#2f4b7c", 0, 6, "", "1", "worked"),
    "BAD": Texture("#c40026", 0, 4, "M0 4L4 0", ".8", "ended badly"),
    "LOADING": Texture("", 135, 4, "M.8 0V4", "1.6", "loading models"),
    "KEPT": Texture("", 0, 5, "M1 1.5h1.6", "1.6", "kept free for a wide task"),
    "OUT": Texture("", 0, 6, "M0 0L6 6M6 0L0 6", ".9", "out of use"),
    "UNKNOWN": Texture("", 0, 8, "M0 2h4M4 6h4", "1", "not known"),
}

TOP = 24  # dots: the axis
ABOVE, BELOW = 11, 5  # in a lane, over its bar: marks
HIGH, LOW, MANY = 20, 12, 16  # a bar; one of more than so many lanes
RIGHT = 56
LETTER = 7
LEFT_LEAST, LEFT_MOST = 62, 160
GLYPH, APART = 12, 4
TEXT, DIM, LINE, MARK = "#1a1d21", "#565e68", "#d5d9de", "#c40026"


def mimebundle(m: Moment, name: str) -> dict[str, str]:
    """A moment as a notebook shows it.  `name`: of the picture, among those of a page."""
    return {"text/plain": "\n".join(lines(m)), "text/html": html(m, name)}


def html(m: Moment, name: str) -> str:
    """The picture, and the facts in words below it."""
    words = "\n".join(f"<div>{escape(line)}</div>" for line in lines(m))
    return f"<div>{svg(m, name)}\n{words}\n</div>"


def svg(m: Moment, name: str) -> str:
    wanted = max((len(plain(lane.name, 24)) for lane in m.lanes), default=0) * LETTER + 14
    left = min(LEFT_MOST, max(LEFT_LEAST, wanted))
    bar = LOW if len(m.lanes) > MANY else HIGH
    bottom = TOP + len(m.lanes) * (ABOVE + bar + BELOW)
    width = left + SECONDS + RIGHT
    legend, height = _legend(m, name, width, bottom + 14)
    drawn = [
        _lane(lane, name, left, TOP + i * (ABOVE + bar + BELOW), bar, m.at)
        for i, lane in enumerate(m.lanes)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{_sentence(m)}" '
            f'width="100%" viewBox="0 0 {width} {height}" style="max-width:{width}px" '
            f'font-family="sans-serif" font-size="11" fill="{TEXT}">',
            *_patterns(m, name),
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            *_axis(m.at, left, bottom),
            *drawn,
            *legend,
            "</svg>",
        ]
    )


def _sentence(m: Moment) -> str:
    bad = sum(sum(bad_of(lane).values()) for lane in m.lanes)
    return escape(
        f"{plain(m.title)}: the last 10 minutes, with a lane for each of {len(m.lanes)} devices; "
        f"{bad:,} bad ends are marked.  The lines below have the same in words."
    )


# ---- the lanes ----


def _used(m: Moment) -> list[str]:
    """The textures of a moment, in the order of the table."""
    there = {texture for lane in m.lanes for s in lane.seconds for texture, _ in s.parts}
    return [texture for texture in TEXTURES if texture in there]


def _patterns(m: Moment, name: str) -> list[str]:
    found = ["<defs>"]
    for key in _used(m):
        t = TEXTURES[key]
        if not t.path:
            continue
        turn = f' patternTransform="rotate({t.turn})"' if t.turn else ""
        ground = (
            f'<rect fill="{t.colour}" width="{t.size}" height="{t.size}"/>' if t.colour else ""
        )
        ink = 'stroke="#fff" stroke-opacity=".6"' if t.colour else 'stroke="#3f464e"'
        found.append(
            f'<pattern id="{name}-{key}" width="{t.size}" height="{t.size}" '
            f'patternUnits="userSpaceOnUse"{turn}>{ground}'
            f'<path {ink} stroke-width="{t.width}" fill="none" d="{t.path}"/></pattern>'
        )
    return [*found, "</defs>"]


def _fill(key: str, name: str) -> str:
    return f"url(#{name}-{key})" if TEXTURES[key].path else TEXTURES[key].colour


def _axis(at: float, left: int, bottom: int) -> list[str]:
    """A line each two minutes of the clock."""
    first, found = int(at) - SECONDS + 1, []
    for second in range(first + -first % 120, int(at) + 1, 120):
        x = left + second - first
        word = time.strftime("%H:%M", time.localtime(second))
        found.append(
            f'<path stroke="{LINE}" d="M{x} {TOP - 4}V{bottom}"/>'
            f'<text x="{x}" y="12" fill="{DIM}" text-anchor="middle">{word}</text>'
        )
    return found


Box = tuple[str, int, int]  # texture, bottom and top


def _boxes(lane: Lane, bar: int) -> dict[str, list[tuple[int, int, int, int]]]:
    """By texture: first second, width, bottom, top.  Equal neighbours are one box."""
    found: dict[str, list[tuple[int, int, int, int]]] = {}
    since: dict[Box, int] = {}
    for i in range(SECONDS + 1):
        now = _stack(lane.seconds[i].parts, bar) if i < SECONDS else []
        for box in [box for box in since if box not in now]:
            begin = since.pop(box)
            found.setdefault(box[0], []).append((begin, i - begin, box[1], box[2]))
        for box in now:
            since.setdefault(box, i)
    return found


def _stack(parts: tuple[tuple[str, float], ...], bar: int) -> list[Box]:
    """Parts of a second above each other, each as high as its share, but a dot at least."""
    found, below = [], 0
    for texture, share in parts:
        top = min(bar, below + max(1, round(share * bar)))
        if top > below:
            found.append((texture, below, top))
        below = top
    return found


def _lane(lane: Lane, name: str, left: int, y: int, bar: int, at: float) -> str:
    base = y + ABOVE + bar
    label = escape(plain(lane.name, 24) or "no device")
    share = worked(lane)
    found = [
        f"<g><title>{label}: {escape(plain(lane.does))}</title>",
        f'<path stroke="{LINE}" d="M{left} {base}.5H{left + SECONDS}"/>',
        f'<text x="0" y="{base - bar // 2 + 4}">{label}</text>',
    ]
    if share is not None:
        found.append(
            f'<text x="{left + SECONDS + RIGHT}" y="{base - bar // 2 + 4}" '
            f'text-anchor="end">{share:.0%}</text>'
        )
    for texture, boxes in _boxes(lane, bar).items():
        path = "".join(
            f"M{left + x} {base - top}h{w}v{top - low}h-{w}z" for x, w, low, top in boxes
        )
        found.append(f'<path fill="{_fill(texture, name)}" d="{path}"/>')
    if lane.runs:  # it goes on
        x = left + SECONDS + 1
        found.append(f'<path d="M{x} {base - bar // 2 - 5}l6 5l-6 5z"/>')
    return "\n".join([*found, *_marks(lane, left, y, at), "</g>"])


# ---- bad ends ----


class _Group:
    """Neighbours with one text."""

    def __init__(self, first: int, n: dict[str, int]) -> None:
        self.first = self.last = first
        self.n = Counter(n)

    @property
    def words(self) -> str:
        some = [(GLYPHS[kind], self.n[kind]) for kind in GLYPHS if self.n[kind]]
        return " ".join(glyph + (f"{n:,}" if n > 1 else "") for glyph, n in some)

    @property
    def middle(self) -> float:
        return (self.first + self.last + 1) / 2

    def half(self) -> float:
        return (GLYPH * sum(map(bool, self.n.values())) + LETTER * _digits(self.n)) / 2

    def overlaps(self, right: _Group) -> bool:
        return self.middle + self.half() + APART > right.middle - right.half()

    def join(self, right: _Group) -> None:
        self.last = right.last
        self.n += right.n


def _digits(counts: Counter[str]) -> int:
    return sum(len(f"{n:,}") for n in counts.values() if n > 1)


def _marks(lane: Lane, left: int, y: int, at: float) -> list[str]:
    """A tick at each second with bad ends, and above it a glyph for each way with its number: none
    is left out, neighbours whose texts would overlap have one together."""
    groups: list[_Group] = []
    ticks = ""
    for i, second in enumerate(lane.seconds):
        if not second.bad:
            continue
        ticks += f"M{left + i} {y + 6}h1.5v5h-1.5z"
        groups.append(_Group(i, dict(second.bad)))
        while len(groups) > 1 and groups[-2].overlaps(groups[-1]):
            last = groups.pop()
            groups[-1].join(last)
    found = [f'<path fill="{MARK}" d="{ticks}"/>'] if ticks else []
    first = int(at) - SECONDS + 1
    for group in groups:
        title = ", ".join(f"{n:,} {kind}" for kind, n in group.n.items())
        when = time.strftime("%H:%M:%S", time.localtime(first + group.first))
        found.append(
            f'<text fill="{MARK}" font-weight="700" x="{left + group.middle:g}" y="{y + 5}" '
            f'text-anchor="middle" data-n="{sum(group.n.values())}">'
            f"<title>{title}, {when}</title>{group.words}</text>"
        )
    return found


# ---- the legend ----


def _legend(m: Moment, name: str, width: int, y: int) -> tuple[list[str], int]:
    """Its elements, and the height of the whole picture."""
    bad = sum((bad_of(lane) for lane in m.lanes), Counter())
    entries = [(key, m.classes.get(key) or TEXTURES[key].text) for key in _used(m)]
    entries += [("", f"{GLYPHS[kind]} {kind}") for kind in GLYPHS if bad[kind]]
    found, x = [], 0
    for key, text in entries:
        text = plain(text, 40)
        wide = 28 + len(text) * LETTER
        if x and x + wide > width:
            x, y = 0, y + 18
        if key:
            place = f'x="{x}" y="{y}" width="22" height="12"'
            found.append(f'<rect {place} fill="{_fill(key, name)}"/>')
        at, colour = (x + 27, TEXT) if key else (x, MARK)
        found.append(f'<text x="{at}" y="{y + 10}" fill="{colour}">{escape(text)}</text>')
        x += wide + 16 if key else wide
    return found, y + (18 if entries else 0)
