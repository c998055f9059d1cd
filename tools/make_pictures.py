#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the pictures of the documents: docs/pictures/NAME.txt becomes docs/pictures/NAME.svg.

usage: make_pictures.py [--check] [ROOT]    --check writes nothing, reports stale pictures, status 1

A source has one statement per line, '#' begins a comment:

    title TEXT
    desc TEXT                              more than one: they are joined
    size WIDTH HEIGHT
    states MAP                             the boxes are exactly the names of that X-macro of
    states MAP but NAME...                 types.h, and those after "but"
    transitions FILE                       the plain arrows are exactly those of its table
                                           "state | meaning | leaves to | when"
    box NAME X Y WIDTH HEIGHT KIND [: LINE | LINE ...]
                                           KIND: plain, good, wait, bad, area (behind the others)
    bar X Y WIDTH HEIGHT KIND [: LINE | LINE ...]
                                           a stretch of time: a box without a name
    line X1 Y1 X2 Y2 [dashed]
    arrow FROM TO [x=N|y=N ...] [dashed] [: LINE | LINE ... at X Y [start|middle|end]]
    text X Y [start|middle|end] : LINE | LINE ...

FROM and TO are X,Y or BOX.SIDE@C: SIDE is l, r, t or b, and C the x on t and b, the y on l and r.
An arrow follows its x= and y= in turn, and then goes to its end.  A box shows its name (with '_'
for blanks), and the lines below it.
"""
import html
import pathlib
import re
import sys

LINE = 15        # pixels from line to line
CHARACTER = 6.3  # mean width of one
STYLE = """\
    .back { fill: #ffffff } .area { fill: #f4f5f7; stroke: #9aa3ad; stroke-dasharray: 2 3 }
    .plain { fill: #e8eef7; stroke: #44618a } .good { fill: #e2f2e4; stroke: #2f7a3d }
    .wait { fill: #fbf1d6; stroke: #93701a } .bad { fill: #f9e1de; stroke: #a33c31 }
    .rule { stroke: #9aa3ad } .arrow { fill: none; stroke: #4a5560; stroke-width: 1.3 } \
.dashed { stroke-dasharray: 5 4 } .head { fill: #4a5560 }
    text { font: 12px sans-serif; fill: #1d2329 } .name { font-weight: bold; font-size: 13px } \
.label { fill: #3b454e }
    @media (prefers-color-scheme: dark) {
      .back { fill: #0f1419 } .area { fill: #171d24; stroke: #66717c }
      .plain { fill: #1d2b3f; stroke: #7fa3d4 } .good { fill: #16301c; stroke: #6cbf7c }
      .wait { fill: #3a2f10; stroke: #d6ad4b } .bad { fill: #3d1c18; stroke: #e0857a }
      .rule { stroke: #66717c } .arrow { stroke: #aeb9c4 } .head { fill: #aeb9c4 } \
text { fill: #e6ebf0 } .label { fill: #c2ccd6 }
    }
"""


class Wrong(Exception):
    pass


class Picture:
    """What a source says."""

    def __init__(self, path):
        self.path, self.title, self.desc, self.size = path, "", [], (0, 0)
        self.states, self.transitions, self.boxes, self.arrows, self.texts = None, None, {}, [], []
        self.bars, self.rules = [], []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            line = re.sub(r"(^|\s)#.*", "", line).strip()
            try:
                if line:
                    self.statement(*line.split(maxsplit=1))
            except (Wrong, ValueError, AttributeError, KeyError) as reason:
                raise Wrong(f"{path.name}:{number}: {line}: {reason}") from None

    def statement(self, word, rest):
        if word == "title":
            self.title = rest
        elif word == "desc":
            self.desc.append(rest)
        elif word == "size":
            self.size = tuple(int(n) for n in rest.split())
        elif word == "states":
            name, _, more = rest.partition(" but ")
            self.states = (name, more.split())
        elif word == "transitions":
            self.transitions = rest
        elif word == "box":
            self.box(*halves(rest))
        elif word == "arrow":
            self.arrow(*halves(rest))
        elif word == "bar":
            self.bar(*halves(rest))
        elif word == "line":
            self.rule(*rest.split())
        elif word == "text":
            where, lines = halves(rest)
            self.texts.append((place(where), lines))
        else:
            raise Wrong("what is that?")

    def box(self, what, lines):
        name, x, y, width, height, kind = what.split()
        x, y, width, height = (int(n) for n in (x, y, width, height))
        for line in [name, *lines]:
            if len(line) * CHARACTER > width:
                raise Wrong(f"the box is too narrow for {line}")
        if LINE * (len(lines) + 1) + 6 > height:
            raise Wrong("the box is too low")
        self.inside(x, y)
        self.inside(x + width, y + height)
        self.boxes[name] = (x, y, width, height, kind, lines)

    def bar(self, what, lines):
        x, y, width, height, kind = what.split()
        x, y, width, height = (int(n) for n in (x, y, width, height))
        if any(len(line) * CHARACTER > width for line in lines) or LINE * len(lines) + 2 > height:
            raise Wrong("the bar is too small for its text")
        self.inside(x, y)
        self.inside(x + width, y + height)
        self.bars.append((x, y, width, height, kind, lines))

    def rule(self, x1, y1, x2, y2, dashed=None):
        if dashed not in (None, "dashed"):
            raise Wrong(f"{dashed} is not dashed")
        ends = [int(n) for n in (x1, y1, x2, y2)]
        self.inside(*ends[:2])
        self.inside(*ends[2:])
        self.rules.append((*ends, bool(dashed)))

    def arrow(self, what, lines):
        begin, end, *way = what.split()
        dashed = "dashed" in way
        points = [self.end(begin)]
        for step in way:
            if step != "dashed":
                axis, at = step.split("=")
                points.append((int(at), points[-1][1]) if axis == "x" else (points[-1][0], int(at)))
        last, (x, y) = points[-1], self.end(end)
        if last[0] != x and last[1] != y:
            points.append((x, last[1]) if end.split("@")[0][-1] in "tb" else (last[0], y))
        points.append((x, y))
        where = None
        if lines:
            lines[-1], where = lines[-1].rsplit(" at ", 1)
            where = place(where)
        for point in points:
            self.inside(*point)
        self.arrows.append((begin.split(".")[0], end.split(".")[0], dashed, points, lines, where))

    def end(self, text):
        if "," in text:
            return tuple(int(n) for n in text.split(","))
        name, side, at = re.fullmatch(r"(\w+)\.([lrtb])@(\d+)", text).groups()
        x, y, width, height = self.boxes[name][:4]
        at = int(at)
        if not (x <= at <= x + width if side in "tb" else y <= at <= y + height):
            raise Wrong(f"{text} is not on the box")
        return {"l": (x, at), "r": (x + width, at), "t": (at, y), "b": (at, y + height)}[side]

    def inside(self, x, y):
        if not (0 <= x <= self.size[0] and 0 <= y <= self.size[1]):
            raise Wrong(f"{x},{y} is outside")

    def labels(self):
        return [(where, lines) for *_, lines, where in self.arrows if lines] + self.texts

    def check(self, root):
        """The picture against the tables it shows."""
        for (x, y, anchor), lines in self.labels():
            left, width = extent(x, anchor, lines)
            bottom = y + LINE * (len(lines) - 1)
            if left < 0 or left + width > self.size[0] or bottom > self.size[1]:
                raise Wrong(f"{self.path.name}: the text leaves the picture: {lines[0]}")
        names = set(self.boxes)
        if self.states:
            name, more = self.states
            types = (root / "include/gpudispatch/types.h").read_text()
            body = re.search(rf"#define {name}\(X\)((?:.*\\\n)*.*\n)", types).group(1)
            wanted = set(re.findall(r"X\((\w+),", body)) | set(more)
            if names != wanted:
                odd = " ".join(sorted(names ^ wanted))
                raise Wrong(f"{self.path.name}: boxes and {name} differ: {odd}")
        if self.transitions:
            wanted = table(root / self.transitions)
            drawn = {(begin, end) for begin, end, dashed, *_ in self.arrows if not dashed}
            if drawn != wanted:
                odd = ", ".join(f"{a} to {b}" for a, b in sorted(drawn ^ wanted))
                raise Wrong(f"{self.path.name}: arrows and the table of {self.transitions} differ:"
                            f" {odd}")


def halves(text):
    """What stands before " : ", and the lines behind it."""
    what, _, lines = text.partition(" : ")
    return what, [line.strip() for line in lines.split("|")] if lines else []


def place(text):
    x, y, *anchor = text.split()
    return int(x), int(y), anchor[0] if anchor else "middle"


def table(path):
    """From and to of each row of the table of states; a row without a state belongs to the one
    above."""
    found, state = set(), ""
    body = re.search(r"^\| state \| meaning \| leaves to \| when \|\n\|[-|]+\n((?:\|.*\n)+)",
                     path.read_text(), flags=re.M).group(1)
    for row in body.splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        state = cells[0] or state
        found |= {(state, to) for to in cells[2].split(", ") if to != "-"}
    return found


def words(x, y, anchor, lines, kind):
    """One text of several lines."""
    spans = "".join(f'<tspan x="{x}" y="{y + i * LINE}">{html.escape(line)}</tspan>'
                    for i, line in enumerate(lines))
    return f'  <text class="{kind}" text-anchor="{anchor}">{spans}</text>'


def extent(x, anchor, lines):
    """Left end and width of a text."""
    width = round(max(len(line) for line in lines) * CHARACTER)
    return x - {"start": 0, "middle": width // 2, "end": width}[anchor], width


def ground(x, y, anchor, lines):
    """A background that keeps arrows away from a label."""
    left, width = extent(x, anchor, lines)
    height = LINE * len(lines)
    return f'  <rect class="back" x="{left}" y="{y - 11}" width="{width}" height="{height}"/>'


def draw_box(name, box):
    x, y, width, height, kind, lines = box
    rect = f'  <rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>'
    top = y + 17 if kind == "area" else y + (height - LINE * len(lines)) // 2 + 5
    title = [name.replace("_", " ")]
    if kind == "area":
        return [rect, words(x + 10, top, "start", title, "name"),
                words(x + 10, top + LINE, "start", lines, "label")]
    shown = [rect, words(x + width // 2, top, "middle", title, "name")]
    return shown + ([words(x + width // 2, top + LINE, "middle", lines, "label")] if lines else [])


def draw_bar(x, y, width, height, kind, lines):
    shown = [f'  <rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="3"/>']
    top = y + (height - LINE * len(lines)) // 2 + 12
    return shown + ([words(x + width // 2, top, "middle", lines, "label")] if lines else [])


def draw_rule(x1, y1, x2, y2, dashed):
    kind = "rule dashed" if dashed else "rule"
    return f'  <line class="{kind}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def draw_arrow(dashed, points):
    way = " ".join(f"{x},{y}" for x, y in points)
    (ax, ay), (bx, by) = points[-2:]
    dx, dy = (bx > ax) - (bx < ax), (by > ay) - (by < ay)
    head = (f"{bx},{by} {bx - 8 * dx - 4 * dy},{by - 8 * dy - 4 * dx}"
            f" {bx - 8 * dx + 4 * dy},{by - 8 * dy + 4 * dx}")
    shown = [f'  <polyline class="arrow{" dashed" if dashed else ""}" points="{way}"/>',
             f'  <polygon class="head" points="{head}"/>']
    return shown


def draw(picture):
    width, height = picture.size
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
           f' height="{height}" role="img" aria-labelledby="title desc">',
           f"  <!-- made by tools/make_pictures.py from {picture.path.name} -->",
           f'  <title id="title">{html.escape(picture.title)}</title>',
           f'  <desc id="desc">{html.escape(" ".join(picture.desc))}</desc>',
           f"  <style>\n{STYLE}  </style>",
           f'  <rect class="back" width="{width}" height="{height}"/>']
    labels = picture.labels()
    for name, box in picture.boxes.items():
        out += draw_box(name, box) if box[4] == "area" else []
    out += [draw_rule(*rule) for rule in picture.rules]
    for bar in picture.bars:
        out += draw_bar(*bar)
    for _begin, _end, dashed, points, _lines, _where in picture.arrows:
        out += draw_arrow(dashed, points)
    out += [ground(*where, lines) for where, lines in labels]
    for name, box in picture.boxes.items():
        out += draw_box(name, box) if box[4] != "area" else []
    out += [words(*where, lines, "label") for where, lines in labels]
    return "\n".join([*out, "</svg>", ""])


def main():
    args = [a for a in sys.argv[1:] if a != "--check"]
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    sources, faults = sorted((root / "docs/pictures").glob("*.txt")), []
    for path in sources:
        try:
            picture = Picture(path)
            picture.check(root)
        except Wrong as reason:
            faults.append(str(reason))
            continue
        target, drawn = path.with_suffix(".svg"), draw(picture)
        if "--check" not in sys.argv:
            target.write_text(drawn)
        elif not target.exists() or target.read_text() != drawn:
            faults.append(f"docs/pictures/{target.name} is stale: run tools/make_pictures.py")
    for target in sorted((root / "docs/pictures").glob("*.svg")):
        if not target.with_suffix(".txt").exists():
            faults.append(f"docs/pictures/{target.name} has no source")
    if not sources:
        faults.append("there are no pictures")
    print("\n".join(faults) if faults else f"{len(sources)} pictures are in order")
    return 1 if faults else 0


sys.exit(main())
