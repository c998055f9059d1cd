# SPDX-License-Identifier: MIT
"""The page of the verb report: its markup, its marks and its numbers, for made-up nights.

Numbers are compared with recount.py, which counts the lines of a night in its own way.
"""
import base64
import collections
import hashlib
import html.parser
import itertools
import json
import pathlib
import re
import sys
import time
import unicodedata
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import nights  # noqa: E402
import recount  # noqa: E402
from tool import contains, equal, run  # noqa: E402

NAMES = [name for name in nights.NIGHTS if name != "large"]  # "large" is for the benchmark
VOID = {"meta", "br"}
TAGS = VOID | set("""html head title style body h1 h2 p b div span section figure table thead tbody
    tfoot tr th td code script svg defs pattern rect path text g ol ul li
    details summary""".split())
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "id", "class", "tabindex", "role",
              "scope", "colspan", "type", "width", "height", "viewbox", "x", "y", "d", "fill",
              "stroke", "stroke-width", "stroke-linejoin", "stroke-dasharray", "paint-order",
              "font-family", "font-size", "font-weight", "text-anchor", "patternunits",
              "patterntransform", "aria-hidden", "aria-label"}
READABLE = 4.5  # least contrast of a text
MOST = 200000  # attempts, of which the page has a table without --all
MANY = 20000  # tasks: more attempts on a lane than it has dots


class Node:
    def __init__(self, tag, attributes, parent):
        self.tag, self.attributes, self.parent, self.children = tag, attributes, parent, []

    def get(self, name):
        return self.attributes.get(name)

    def all(self, tag, **wanted):
        """The elements below it, in order."""
        for child in self.children:
            if isinstance(child, str):
                continue
            if child.tag == tag and all(child.get(k.rstrip("_").replace("_", "-")) == v
                                        for k, v in wanted.items()):
                yield child
            yield from child.all(tag, **wanted)

    def one(self, tag, **wanted):
        found = list(self.all(tag, **wanted))
        equal((tag, wanted, len(found)), (tag, wanted, 1))
        return found[0]

    def text(self, without=()):
        return "".join(c if isinstance(c, str) else c.text(without) for c in self.children
                       if isinstance(c, str) or c.tag not in without)


class Page(html.parser.HTMLParser):
    """A page as a tree.  It must be well formed, with known elements and attributes only."""

    def __init__(self, source):
        super().__init__()
        self.source, self.root = source, Node("", {}, None)
        self.at = self.root
        self.feed(source)
        self.close()
        equal(self.at, self.root)

    def handle_starttag(self, tag, pairs):
        assert tag in TAGS, f"an element {tag}"
        names = [name for name, _ in pairs]
        equal(len(names), len(set(names)))
        for name, value in pairs:
            assert name in ATTRIBUTES or name.startswith("data-"), f"an attribute {tag} {name}"
            assert value is not None, f"{tag} {name} has no value"
        node = Node(tag, dict(pairs), self.at)
        self.at.children.append(node)
        if tag not in VOID:
            self.at = node

    def handle_startendtag(self, tag, pairs):
        self.handle_starttag(tag, pairs)
        self.at = self.at.parent

    def handle_endtag(self, tag):
        equal(tag, self.at.tag)
        self.at = self.at.parent

    def handle_data(self, data):
        self.at.children.append(data)

    def handle_decl(self, decl):
        equal(decl, "doctype html")

    def handle_comment(self, data):
        assert False, f"a comment {data}"

    def handle_pi(self, data):
        assert False, f"an instruction {data}"


def source(tool, lines):
    status, out, err = tool.run("report", "-o", "-", "--from", tool.write("night.txt", lines))
    equal((status, err), (0, ""))
    return out


def page(tool, name, tasks=None):
    lines = nights.text(name, tasks=tasks)
    return Page(source(tool, lines)), recount.Night(lines)


def lanes(tree):
    return list(tree.one("figure", id="timeline").all("g"))


def check_markup(tree):
    """[V5]"""
    equal([s.get("type") for s in tree.root.all("script")], ["application/json", None])
    ids = [node.get("id") for tag in TAGS for node in tree.root.all(tag) if node.get("id")]
    equal(len(ids), len(set(ids)))
    for picture in re.findall("<svg.*?</svg>", tree.source, re.S):
        xml.etree.ElementTree.fromstring(picture)
    shown = tree.root.text(without=("style", "script"))
    for tag in TAGS:
        shown += "".join(node.get("aria-label") or "" for node in tree.root.all(tag))
    hidden = {c for c in shown if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert hidden <= {"\n"}, f"characters that nobody sees: {hidden}"


def check_policy(tree):
    """The file needs nothing else, and the policy allows the style sheet and the script in it."""
    metas = [m.get("content") for m in tree.root.all("meta")
             if m.get("http-equiv") == "Content-Security-Policy"]
    digests = [base64.b64encode(hashlib.sha256(node.text().encode()).digest()).decode()
               for node in (tree.root.one("style"), list(tree.root.all("script"))[1])]
    equal(metas, ["default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; "
                  "base-uri 'none'; form-action 'none'".format(*digests)])
    style = tree.root.one("style").text()
    assert not re.search(r"url\(|@import|@font-face", style), "the style sheet loads a file"
    for tag in TAGS:
        for node in tree.root.all(tag):
            assert re.fullmatch(r"(?!url)[^(]*|url\(#t\d+\)", node.get("fill") or ""), tag


def bad_ends(night):
    return [a for a in night.attempts if a.outcome not in ("ok", "running")]


def numbers_of(text):
    """What a reader adds up: a glyph without a number is one."""
    return sum(int(part[:-1].rstrip("x").replace(",", "") or 1) for part in text.split(" "))


def check_marks(tree, night):
    """Each bad end is a tick, and is in the number of a mark and in a finding.  [V4]"""
    figure = tree.root.one("figure", id="timeline")
    chart = figure.one("svg")
    left, dots = int(chart.get("data-left")), int(chart.get("data-dots"))
    order = {key: i for i, key in enumerate(night.gpus)}
    wanted = collections.defaultdict(lambda: [0, set()])
    for a in bad_ends(night):
        lane = wanted[str(min(order[g] for g in a.gpus)) if a.gpus else ""]
        share = (min(max(a.ended, night.since), night.to) - night.since) / max(
            night.to - night.since, 1)
        lane[0] += 1
        lane[1].add(left + min(int(left + share * dots - left), dots - 1))
    for lane in lanes(tree.root):
        marks = [t for t in lane.all("text") if t.get("data-n")]
        for mark in marks:
            equal(numbers_of(mark.text(without=("title",))), int(mark.get("data-n")))
        ticks = {int(x) for path in lane.all("path", class_="tick")
                 for x in re.findall(r"M(\d+)", path.get("d"))}
        equal((sum(int(m.get("data-n")) for m in marks), ticks),
              tuple(wanted.pop(lane.get("data-gpu"), (0, set()))))
    equal(dict(wanted), {})
    bad = len(bad_ends(night))
    equal(int(figure.get("data-bad")), bad)
    found = [int(row.get("data-n")) for row in tree.root.one("section", id="wrong").all("tr")
             if row.get("data-n")]
    equal(sum(found), bad)


def check_lanes(tree, night):
    wanted = [str(i) for i in range(len(night.gpus))]
    wanted += [""] * any(not a.gpus for a in night.attempts)
    equal([lane.get("data-gpu") for lane in lanes(tree.root)], wanted)
    for lane in lanes(tree.root):
        runs = any(not a.ended for a in night.attempts if lane.get("data-gpu") in (
            [str(list(night.gpus).index(g)) for g in a.gpus] or [""]))
        equal(len(list(lane.all("path", class_="runs"))), int(runs))


def check_uses(tree, night):
    """[V3]"""
    rows = [row for row in tree.root.one("section", id="time").all("tr") if list(row.all("td"))]
    equal(len(rows), len(night.gpus) + bool(night.gpus))
    seen = [[int(cell.get("data-ns")) for cell in row.all("td") if cell.get("data-ns")]
            for row in rows]
    wanted = [list(night.uses(gpu).values()) for gpu in night.gpus]
    equal(seen[:len(wanted)], wanted)
    for row in wanted:
        equal(sum(row), night.to - night.since)
    equal(seen[len(wanted):], [[sum(use) for use in zip(*wanted)]] if wanted else [])


def check_readable(tree):
    """Figures have a sentence, tables have heads, the answers are text.  [V7]"""
    for figure in tree.root.all("figure"):
        equal(figure.one("svg").get("role"), "img")
        assert figure.one("svg").get("aria-label").endswith("."), "a figure without a sentence"
    for head in tree.root.all("th"):
        assert head.get("scope") in ("col", "row"), "a head without scope"
        assert head.text(), "an empty head"
    for table in tree.root.all("table"):
        columns = len(list(table.one("thead").all("th")))
        for row in itertools.chain(table.one("tbody").all("tr")):
            cells = [c for c in row.children if not isinstance(c, str)]
            equal(sum(int(c.get("colspan") or 1) for c in cells), columns)
    answers = [node for node in tree.root.all("div", class_="answers")][0]
    equal(len(list(answers.all("h2"))), 3)
    for answer in answers.all("p", class_="big"):
        assert answer.text().strip(), "an answer is missing"


def columns(data, *names):
    """Rows of the table of the script: differences, and [difference, times]."""
    decoded = []
    for name in names:
        steps = [[s, 1] if isinstance(s, int) else s for s in data["columns"][name]]
        decoded.append(list(itertools.accumulate(
            step for step, times in steps for _ in range(times))))
    return list(zip(*decoded))


def check_data(tree, night):
    """The script has each attempt of the night, and each bad end.  [V4]"""
    data = json.loads(tree.root.one("script", id="data").text())
    order = {key: i for i, key in enumerate(night.gpus)}
    wanted = []
    for a in night.attempts:
        start, end = ((t - night.since) // 10**6 for t in (a.started or a.ended, max(
            a.ended, a.started or a.ended)))
        wanted.append((a.task, a.number, sorted(order[g] for g in a.gpus), start,
                       end - start if a.ended else -1, a.outcome))
    seen = [((batch, number), attempt, data["sets"][place], start, length,
             data["outcomes"][outcome].replace("put back", "returned"))
            for batch, number, attempt, place, start, length, outcome in columns(
                data, "batch", "number", "attempt", "set", "start", "length", "outcome")]
    equal(len(seen), data["attempts"] + data["bars"])
    del seen[data["attempts"]:]
    for row, other in zip(sorted(seen), sorted(wanted)):
        equal(row, other)
    equal((len(seen), data["attempts"]), (len(wanted), len(wanted)))
    equal(data["span"], (night.to - night.since) // 10**6)


def test_each_night(tool):
    for name in NAMES:
        tree, night = page(tool, name)
        try:
            check_markup(tree)
            check_policy(tree)
            check_marks(tree, night)
            check_lanes(tree, night)
            check_uses(tree, night)
            check_readable(tree)
            check_data(tree, night)
        except Exception as e:
            raise AssertionError(f"night {name}") from e


def test_more_attempts_than_dots(tool):
    """A lane shows the uses of each dot, and still marks each bad end."""
    tree, night = page(tool, "night", MANY)
    check_markup(tree)
    check_marks(tree, night)
    check_uses(tree, night)
    check_data(tree, night)
    assert len(bad_ends(night)) > 100
    assert len(tree.source) < 400000, len(tree.source)


def visible(text):
    """A text as the page shows it."""
    shown = ""
    for c in text:
        if c in "\n\t":
            shown += {"\n": "\\n", "\t": "\\t"}[c]
        elif unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp"):
            shown += f"\\x{ord(c):02x}" if ord(c) < 0x100 else f"\\u{{{ord(c):x}}}"
        else:
            shown += c
    return shown


def test_hostile_texts(tool):
    """Names of any bytes read as they are.  [V5]"""
    tree, night = page(tool, "hostile")
    names = [visible(b["name"]) for b in night.batches.values()]
    assert any("<script>" in name for name in names)
    assert any("\\x1b" in name for name in names)
    heads = [head.text() for head in tree.root.one("section", id="batches").all("th", scope="row")]
    for head, (number, name) in zip(heads, zip(night.batches, names)):
        wanted = f"{number} " + (name if len(name) <= 60 else name[:59] + "…")
        equal(head, wanted)
    equal(len(heads), len(names))


def test_texts_of_the_data(tool):
    """A text in the data reads as it does on the page, and does not end the data.  [V5]"""
    tree, night = page(tool, "hostile")
    data = tree.root.one("script", id="data").text()
    assert not re.search("[<>&]", data), "markup in the data"
    names = dict(json.loads(data)["batches"])
    for number, batch in night.batches.items():
        wanted = visible(batch["name"])
        equal(names[int(number)], wanted if len(wanted) <= 160 else wanted[:159] + "…")


def test_too_many_attempts(tool):
    """The page has their table with --all only, and tells what it leaves out."""
    lines = nights.text("one").rstrip(b"\n").split(b"\n")
    attempt = next(line for line in lines if line.startswith(b"attempt"))
    more = [attempt.replace(b"1.1", b"1.%d" % i) for i in range(2, MOST + 2)]
    path = tool.write("many.txt", b"\n".join(lines[:-1] + more + lines[-1:]) + b"\n")
    for option, whole in ([], False), (["--all"], True):
        status, out, err = tool.run("report", "-o", "-", "--from", path, *option)
        equal((status, err), (0, ""))
        tree = Page(out)
        data = json.loads(tree.root.one("script", id="data").text())
        equal(data["whole"], whole)
        equal(data["attempts"], (MOST + 1) * whole)
        equal("leaves out" in tree.root.one("section", id="search").text(), not whole)
        contains(tree.root.text(), f"{MOST + 1:,} attempts")


def test_nothing_ran(tool):
    tree, _ = page(tool, "empty")
    contains(tree.root.text(), "No task ran.")
    equal([s.get("id") for s in tree.root.all("section")],
          ["where", "waited", "wrong", "time", "batches", "search"])
    check_markup(tree)


def test_a_night_that_goes_on(tool):
    tree, night = page(tool, "running")
    verdict = tree.root.one("p", class_="verdict").text()
    run_now = sum(1 for a in night.attempts if not a.ended)
    waiting = sum(b["ready"] for b in night.batches.values())
    assert run_now and waiting
    contains(verdict, f" {run_now:,} run and {waiting:,} wait.")
    status, then = tool.json("top", "--once", "--from", tool.path("night.txt"))
    equal(status, 0)
    clocks = [time.strftime("%H:%M", time.localtime((then["time"] + then[end]) // 10**9))
              for end in ("least", "most")]
    contains(tree.root.one("div", class_="answers").text(),
             f"When will it be done?{clocks[0]}–{clocks[1]}Estimated from")


def test_shares_have_rows_of_their_own(tool):
    """Tasks that run at the same time on a GPU do not hide one another."""
    tree, night = page(tool, "shares")
    for lane in lanes(tree.root):
        boxes = [tuple(map(float, box)) for path in lane.all("path") if path.get("fill")
                 and path.get("class") not in ("tick", "runs") for box in re.findall(
                     r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h", path.get("d"))]
        assert len({y for _, y, _, _ in boxes}) > 2
        on_lane = [a for a in night.attempts
                   if list(night.gpus).index(a.gpus[0]) == int(lane.get("data-gpu"))]
        assert len(boxes) >= len(on_lane)
        for (x1, y1, w1, h1), (x2, y2, w2, h2) in itertools.combinations(boxes, 2):
            across = min(x1 + w1, x2 + w2) - max(x1, x2)
            assert across < 1 or y1 + h1 <= y2 or y2 + h2 <= y1, (x1, y1, x2, y2)


def test_names_of_gpus(tool):
    """An instance has the name of its GPU."""
    tree, night = page(tool, "mig")
    names = [list(lane.all("text"))[0].text() for lane in lanes(tree.root)]
    equal(len(names), len(night.gpus))
    contains(names, "GPU 0")
    contains(names, "GPU 1:0 1g.18gb")


def test_many_classes(tool):
    """Eight have a texture of their own; the legend names the other ones together."""
    tree, _ = page(tool, "hostile")
    legend = list(tree.root.all("div", class_="legend"))[0]
    keys = [key.text().strip() for key in legend.all("span")]
    equal(keys.count("other classes"), 1)
    equal(keys.index("other classes"), 8)


def test_textures_without_style(tool):
    """Without a style sheet classes still differ: by colour, and by pattern but for one.  [V7]"""
    tree, _ = page(tool, "one")
    seen = {}
    for pattern in tree.root.one("defs").all("pattern"):
        ground = [rect.get("fill") for rect in pattern.all("rect")]
        lines = pattern.one("path")
        seen[pattern.get("id")] = (ground, (lines.get("d"), pattern.get("patterntransform"),
                                            pattern.get("width"), lines.get("stroke-width")))
    classes = [seen.pop(f"t{i}") for i in range(1, 9)]
    equal(len({ground[0] for ground, _ in classes}), 8)
    equal(len({lines for _, lines in classes}), 8)
    equal(len({lines for _, lines in seen.values()}), len(seen))


def luminance(colour):
    if len(colour) == 4:
        colour = "#" + "".join(c * 2 for c in colour[1:])
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_contrast(tool):
    """Texts and marks, light and dark.  [V7]"""
    tree, _ = page(tool, "one")
    light, dark = re.findall(r":root \{(.*?)\}", tree.root.one("style").text(), re.S)
    light = dict(re.findall(r"--([\w]+): (#[0-9a-f]+)", light))
    dark = {**light, **dict(re.findall(r"--([\w]+): (#[0-9a-f]+)", dark))}
    for mode in light, dark:
        for text in "text", "dim", "bad":
            for ground in "page", "card":
                assert contrast(mode[text], mode[ground]) >= READABLE, (text, ground)
    assert light["page"] != dark["page"]
    for colour in re.findall(r'<text class="mark" fill="(#\w+)"', source(tool, nights.text("one"))):
        assert contrast(colour, "#fff") >= READABLE, colour


def test_the_same_page_twice(tool):
    lines = nights.text("night")
    equal(source(tool, lines), source(tool, lines))


def test_only_one_function_writes(tool):
    """Text reaches a page through html.c.  [V5]"""
    folder = pathlib.Path(tool.root) / "view/report"
    writers = re.compile(r"\b(?:f?puts|f?putc|putchar|v?fprintf|printf|fwrite|write)\s*\(")
    parts = [f for f in folder.glob("*.c") if f.name not in ("html.c", "json.c", "rows.c")]
    assert len(parts) > 5, parts
    for part in parts:
        equal((part.name, writers.findall(part.read_text())), (part.name, []))


run(globals(), "view")
