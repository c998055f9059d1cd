# SPDX-License-Identifier: MIT
"""watching.py, moment.py, picture.py, pool_moment.py: a pool at work, in a notebook and a log."""

from __future__ import annotations

import io
import os
import pathlib
import random
import re
import signal
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from conftest import Terminal, until

from gpudispatch import Pool, moment, picture, watching
from gpudispatch.moment import SECONDS, End, Lane, Moment, Second
from gpudispatch.watching import Progress

VIEW = pathlib.Path(__file__).resolve().parents[2] / "view"
HOSTILE = [
    "<script>alert(1)</script>", '"onload="x', "'&lt;b>&amp;", "]]><!--", "\x1b[31m\r\n\x07",
    "\u202e", "\ud800", "\0", "a" * 10_000, "</svg></div>", "${x}", "\u2028",
]  # fmt: skip
BUSY = (("CLASS_0", 1.0),)


def lane(name: str, seconds: dict[int, Second], does: str = "idle") -> Lane:
    return Lane(name, does, False, tuple(seconds.get(i, Second()) for i in range(SECONDS)))


def made(lanes: list[Lane], **fields: Any) -> Moment:
    whole = Moment(
        1_800_000_000.0, "Pool", "3 running", tuple(lanes), {"CLASS_0": "qwen"}, (), 0, (), True,
        False,
    )  # fmt: skip
    return whole._replace(**fields)


def parsed(m: Moment) -> ElementTree.Element:
    return ElementTree.fromstring(picture.html(m, "n"))


def tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def marked(root: ElementTree.Element) -> int:
    return sum(int(element.get("data-n", "0")) for element in root.iter())


# ---- the picture ----


def rows(file: str, table: str) -> list[list[str]]:
    """The rows of an X macro, as texts."""
    if not VIEW.is_dir():
        pytest.skip("the views are not beside the tests")
    text = re.sub(r"/\*.*?\*/", "", (VIEW / file).read_text(), flags=re.DOTALL)
    (body,) = re.findall(rf"#define {table}\(X\)((?:.*\\\n)*.*)", text)
    return [
        [part.strip().strip('"') for part in row.split(", ")]
        for row in re.findall(r"X\((.*?)\)(?=\s|\\|$)", body)
    ]


def test_textures_are_those_of_the_report() -> None:
    of_report = {row[0]: row[1:] for row in rows("report/textures.h", "GPV_TEXTURE_MAP")}
    for name, t in picture.TEXTURES.items():
        assert of_report[name] == [t.colour, str(t.turn), str(t.size), t.path, t.width]


def test_glyphs_are_those_of_the_report() -> None:
    of_report = {row[2]: row[3] for row in rows("records.h", "GPV_OUTCOME_MAP")}
    assert {kind: glyph for kind, glyph in of_report.items() if glyph} == moment.GLYPHS


def test_words_of_uses_are_those_of_the_report() -> None:
    of_report = {row[0]: row[2] for row in rows("night/use.h", "GPV_USE_MAP")}
    assert picture.TEXTURES["WORKED"].text == of_report["OK"]
    for use in ("LOADING", "KEPT", "OUT"):
        assert picture.TEXTURES[use].text == of_report[use]


def test_no_two_textures_differ_by_colour_alone() -> None:
    """A plain one is a class or that of tasks of any class, which no picture has together."""
    shapes = Counter((t.turn, t.size, t.path) for t in picture.TEXTURES.values())
    assert [shape for shape, n in shapes.items() if n > 1] == [(0, 6, "")]
    assert [name for name, t in picture.TEXTURES.items() if not t.path] == ["CLASS_0", "WORKED"]


def test_colours_stand_in_attributes() -> None:
    """A viewer that strips style sheets shows the same."""
    root = parsed(made([lane("gpu:0", dict.fromkeys(range(5), Second(BUSY, (("error", 2),))))]))
    assert not [e for e in root.iter() if tag(e) in ("style", "script", "image", "foreignObject")]
    assert {e.get("style") for e in root.iter()} <= {None, "max-width:718px"}
    assert not [e for e in root.iter() if e.get("class")]
    assert [e for e in root.iter() if e.get("fill") == picture.TEXTURES["CLASS_0"].colour]


def contrast(a: str, b: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_texts() -> None:
    """The picture has its own ground, so a dark page changes nothing."""
    m = made([lane("gpu:0", {3: Second(BUSY, (("crashed", 1),))})])
    root = parsed(m)
    (svg,) = [e for e in root.iter() if tag(e) == "svg"]
    ground = next(e for e in svg.iter() if tag(e) == "rect" and e.get("width") == "718")
    colours = {e.get("fill", svg.get("fill")) for e in svg.iter() if tag(e) == "text"}
    assert ground.get("fill") == "#fff"
    assert len(colours) == 3
    assert min(contrast(str(c), "#ffffff") for c in colours) >= 4.5


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_text(text: str) -> None:
    """[V5] Names of a program make no markup and no control character."""
    end = End(1, 1_800_000_000.0, "error", text, text, text)
    plain = made([lane("x", {3: Second(BUSY, (("error", 1),))}, "x")], ends=(end,), notes=("x",))
    m = plain._replace(
        title=text, classes={"CLASS_0": text}, notes=(text,), bad=1,
        lanes=(plain.lanes[0]._replace(name=text, does=text),),
    )  # fmt: skip
    before, root = parsed(plain), parsed(m)
    assert [tag(e) for e in root.iter()] == [tag(e) for e in before.iter()]
    assert [sorted(e.keys()) for e in root.iter()] == [sorted(e.keys()) for e in before.iter()]
    for line in moment.lines(m):
        assert line.isprintable()
        assert len(line) < 400
    line = picture.html(m, "n").replace("\n", "")
    assert line.isprintable()
    picture.html(m, "n").encode()


def test_no_failure_is_merged_away() -> None:
    """[V4] Of any moment: the numbers in the picture, and those in the lines, are those of the
    lanes."""
    chosen = random.Random(4)
    for _ in range(200):
        bad: Counter[str] = Counter()
        lanes = []
        for name in range(chosen.randint(1, 20)):
            seconds = {}
            for _ in range(chosen.choice([0, 1, 3, 50, 600])):
                kind, n = chosen.choice(list(moment.GLYPHS)), chosen.choice([1, 1, 2, 5000])
                seconds[chosen.randrange(SECONDS)] = Second(BUSY, ((kind, n),))
            lanes.append(lane(f"gpu:{name}", seconds))
            bad += moment.bad_of(lanes[-1])
        m = made(lanes)
        root = parsed(m)
        assert marked(root) == sum(bad.values())
        ticks = [
            e.get("d", "").count("M") for e in root.iter()
            if tag(e) == "path" and e.get("fill") == picture.MARK
        ]  # fmt: skip
        assert sum(ticks) == sum(1 for x in lanes for second in x.seconds if second.bad)
        in_words = re.findall(r"\S ([\d,]+) (?:" + "|".join(moment.GLYPHS) + ")", "\n".join(
            moment.lines(m)))  # fmt: skip
        assert sum(int(n.replace(",", "")) for n in in_words) == sum(bad.values())
        for group in [e for e in root.iter() if e.get("data-n")]:
            (title,) = group
            words = (title.tail or "").split()  # ["✕", "▲5,000"]
            shown = sum(int(word[1:].replace(",", "") or 1) for word in words)
            assert shown == int(group.get("data-n", ""))


def test_heights() -> None:
    """A part of a second is as high as its share, a short one has a dot, and all fit in."""
    m = made([
        lane("gpu:0", {
            0: Second((("CLASS_0", 0.5), ("BAD", 0.25))), 1: Second((("CLASS_0", 0.001),)),
            2: Second((("CLASS_0", 1.0), ("BAD", 0.5))),
        })
    ])  # fmt: skip
    boxes = picture._boxes(m.lanes[0], 20)
    tasks = [(0, 1, 0, 10), (1, 1, 0, 1), (2, 1, 0, 20)]
    assert boxes == {"CLASS_0": tasks, "BAD": [(0, 1, 10, 15)]}


def test_equal_seconds_are_one_box() -> None:
    boxes = picture._boxes(lane("x", dict.fromkeys(range(100, 400), Second(BUSY))), 20)
    assert boxes == {"CLASS_0": [(100, 300, 0, 20)]}


def test_the_share_that_worked() -> None:
    unknown = Second((("UNKNOWN", 1.0),))
    seconds = dict.fromkeys(range(500), unknown) | dict.fromkeys(range(575, 600), Second(BUSY))
    assert moment.worked(lane("x", seconds)) == 0.25
    assert moment.worked(lane("x", dict.fromkeys(range(SECONDS), unknown))) is None
    half = Second((("WORKED", 0.1), ("UNKNOWN", 0.5)))
    assert moment.worked(lane("x", dict.fromkeys(range(SECONDS), half))) == pytest.approx(0.2)


# ---- the moment of a pool ----


def seconds_of(m: Moment, name: str, texture: str) -> float:
    (found,) = [x for x in m.lanes if x.name == name]
    return sum(share for s in found.seconds for t, share in s.parts if t == texture)


def bad_in(m: Moment) -> Counter[str]:
    return sum((moment.bad_of(x) for x in m.lanes), Counter())


def fail(how: str) -> float:
    if how == "error":
        raise ValueError("no <b>\x1b[31m")
    if how == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "long":
        time.sleep(60)
    began = time.monotonic()
    time.sleep(0.2)
    return time.monotonic() - began


def look(pool: Pool) -> Moment:
    found: Moment = pool.progress()._look()
    return found


def test_it_has_what_ran_before_it_was_called(pool: Pool) -> None:
    """[V1] No thread, and the picture is whole all the same."""
    a = pool.add("a")
    done = [a.submit(fail, "ok") for _ in range(5)]
    assert all(f.result() for f in done)
    times = [f.times for f in done]
    ran = sum(t.ended - t.started for t in times)
    short = a.options(task_timeout=0.3)
    ends = [a.submit(fail, "error"), a.submit(fail, "crash"), short.submit(fail, "long")]
    assert all(f.exception() for f in ends)
    assert "gpudispatch-progress" not in {t.name for t in threading.enumerate()}
    m = look(pool)
    worked = sum(seconds_of(m, name, "CLASS_0") for name in ("fake:0", "fake:1"))
    assert worked == pytest.approx(ran, abs=0.001)
    assert bad_in(m) == {"error": 1, "crashed": 1, "timeout": 1}
    assert m.bad == 3
    assert {end.outcome for end in m.ends} == {"error", "crashed", "timeout"}
    assert m.classes == {"CLASS_0": "a"}
    assert sum(seconds_of(m, name, "LOADING") for name in ("fake:0", "fake:1")) > 0
    lost = [f.times.ended - f.times.started for f in ends]
    shown = sum(seconds_of(m, name, "BAD") for name in ("fake:0", "fake:1"))
    assert shown == pytest.approx(sum(lost), abs=0.001)
    assert "3 ended badly (1 crashed, 1 error, 1 timeout)" in m.line
    assert "5 ended well" in m.line
    first = m.lanes[0].seconds[0]
    assert first.parts == (("UNKNOWN", 1.0),)  # there was no pool
    assert marked(parsed(m)) == 3


def test_a_task_of_two_devices_fails_once(pool: Pool) -> None:
    wide = pool.add("wide", devices=2)
    assert wide.submit(fail, "error").exception()
    wide.submit(fail, "ok").result()
    m = look(pool)
    assert bad_in(m) == {"error": 1}
    assert moment.bad_of(m.lanes[0]) == {"error": 1}
    assert all(seconds_of(m, name, "CLASS_0") >= 0.2 for name in ("fake:0", "fake:1"))


def test_tasks_without_a_device(pool: Pool) -> None:
    """One that is cancelled while it waits has a lane of its own."""
    a = pool.add("a", max_workers=1)
    running = a.submit(fail, "long")
    waiting = a.submit(fail, "ok")
    assert until(running.running)
    assert waiting.cancel()
    assert until(lambda: bad_in(look(pool)) == {"cancelled": 1})
    last = look(pool).lanes[-1]
    assert last.name == ""
    assert moment.bad_of(last) == {"cancelled": 1}
    assert "no device  " in str(pool.progress())
    assert running.stop()


def test_what_runs_now(pool: Pool) -> None:
    a = pool.add("a")
    running = a.submit(fail, "long")
    assert until(lambda: sum(x.runs for x in look(pool).lanes) == 1)
    (runs,) = [x for x in look(pool).lanes if x.runs]
    assert runs.does.startswith("run a 0:0")
    assert until(lambda: seconds_of(look(pool), runs.name, "CLASS_0") > 0.3)
    m = look(pool)
    assert m.works
    assert not m.over
    assert running.stop()
    pool.shutdown()
    last = look(pool)
    assert last.over
    assert not last.works
    assert bad_in(last) == {"cancelled": 1}


def test_loads_now(pool: Pool, tmp_path: pathlib.Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    a = pool.add("slow", initializer=pathlib.Path.read_bytes, initargs=(gate,))
    future = a.submit(fail, "ok")
    assert until(lambda: any("load slow" in x.does for x in look(pool).lanes))
    (loads,) = [x for x in look(pool).lanes if "load slow" in x.does]
    assert not loads.runs
    assert until(lambda: seconds_of(look(pool), loads.name, "LOADING") > 0.3)
    gate.write_bytes(b"open")
    future.result()
    m = look(pool)
    assert seconds_of(m, loads.name, "LOADING") > 0.2  # its end may be earlier than the last look
    assert not [x for x in m.lanes if "load" in x.does]


def test_out_of_use(pool: Pool) -> None:
    pool.device_drain("fake:1")
    assert until(lambda: "drained" in look(pool).lanes[1].does)
    assert until(lambda: seconds_of(look(pool), "fake:1", "OUT") > 0)
    pool.device_return("fake:1")
    assert until(lambda: look(pool).lanes[1].does == "idle")


def test_cpu_slots_and_many_classes(slots: Pool) -> None:
    """Memory is bounded: from the 64th name on, classes are one."""
    n = 66
    for i in range(n):
        home = slots.add(f"c{i}", devices=0, cpus=1, keep_alive=0)
        assert home.submit(fail, "error").exception()
        home.remove()
    m = look(slots)
    assert sum(bad_in(m).values()) == n == m.bad
    names = slots._engine.core.history()[1]
    assert len(names) == 64
    assert names[:2] == ["c0", "c1"]
    assert names[-1] == "others"
    assert m.ends[-1].whose == "others"
    assert len(m.ends) == 64
    assert m.ends[0].number == 3
    assert m.classes.keys() <= {f"CLASS_{i}" for i in range(8)} | {"CLASS_OTHER"}


def test_names_from_a_pool_are_text(pool: Pool) -> None:
    """[V5]"""
    name = '<img src=x onerror="alert(1)">\x1b[0m'
    a = pool.add(name).options(label='</svg><script>"&')
    assert a.submit(fail, "error").exception()
    m = look(pool)
    shown = picture.html(m, "n")
    ElementTree.fromstring(shown)
    assert "<img" not in shown
    assert "<script" not in shown
    assert "\x1b" not in shown + str(pool.progress())


def test_after_a_fork(pool: Pool) -> None:
    from gpudispatch import ForkedError

    pool._engine.forked = True
    try:
        with pytest.raises(ForkedError):
            pool.progress()
    finally:
        pool._engine.forked = False


# ---- in a notebook ----


class Frontend:
    """Outputs of cells, as a notebook has them: each display has a place, which updates change."""

    def __init__(self) -> None:
        self.outputs: list[list[dict[str, str]]] = []
        self.broken = False

    def display(
        self, data: dict[str, str], *, raw: bool, display_id: bool = False
    ) -> types.SimpleNamespace:
        assert raw
        self.outputs.append([data])
        place = self.outputs[-1]

        def update(data: dict[str, str], *, raw: bool) -> None:
            assert raw
            if self.broken:
                raise OSError("the socket is closed")
            place.append(data)

        return types.SimpleNamespace(update=update)


@pytest.fixture
def frontend(monkeypatch: pytest.MonkeyPatch) -> Iterator[Frontend]:
    made = Frontend()
    ipython, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shell = types.SimpleNamespace(kernel=object())
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    ipython.display = inner  # type: ignore[attr-defined]
    inner.display = made.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    monkeypatch.setattr(watching._Picture, "every", 0.02)
    return made


def followers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "gpudispatch-progress"]


def test_a_picture_changes_in_its_place(leaves_nothing: None, frontend: Frontend) -> None:
    with Pool("fake:2") as pool:
        a = pool.add("a")
        pool.progress()._ipython_display_()
        assert followers() == ["gpudispatch-progress"]
        a.submit(fail, "ok").result()
        (place,) = frontend.outputs
        assert until(lambda: "1 ended well" in place[-1]["text/plain"])
        assert "1 ended well" not in place[0]["text/plain"]
        assert set(place[-1]) == {"text/plain", "text/html"}
        assert "<svg" in place[-1]["text/html"]
    assert until(lambda: not followers())
    assert "1 ended well" in place[-1]["text/html"]  # it stays
    assert len(frontend.outputs) == 1


def test_shown_again_it_moves(pool: Pool, frontend: Frontend) -> None:
    """The cell is run again: one thread, and the new place has the state."""
    pool.add("a").submit(fail, "ok").result()
    for _ in range(3):
        pool.progress()._ipython_display_()
    assert len(followers()) == 1
    first, _, last = frontend.outputs
    assert "1 ended well" in last[0]["text/plain"]
    n = len(first)
    seen = len(last)
    assert until(lambda: len(last) > seen + 2)
    assert len(first) == n
    assert pool.progress() is pool.progress()
    pool.progress()._follow(None)
    assert not followers()


def test_it_ends_when_nothing_has_run_for_long(
    pool: Pool, frontend: Frontend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "SECONDS", 0.1)
    pool.progress()._ipython_display_()
    assert until(lambda: not followers())
    assert "0 running" in frontend.outputs[0][-1]["text/plain"]


def test_a_front_end_that_fails(
    pool: Pool, frontend: Frontend, caplog: pytest.LogCaptureFixture
) -> None:
    frontend.broken = True
    pool.progress()._ipython_display_()
    assert until(lambda: not followers())
    assert "given up" in caplog.text
    assert pool.add("a").submit(fail, "ok").result() >= 0.2


def test_a_block_in_a_notebook(pool: Pool, frontend: Frontend) -> None:
    a = pool.add("a")
    with pool.progress():
        a.submit(fail, "ok").result()
    assert not followers()
    (place,) = frontend.outputs
    assert "1 ended well" in place[-1]["text/plain"]


def test_ipython_in_a_terminal(
    pool: Pool, frontend: Frontend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "in_notebook", lambda: False)
    pool.progress()._ipython_display_()
    assert not followers()
    assert len(frontend.outputs) == 1


def test_textures_of_two_pictures_do_not_meet(pool: Pool, slots: Pool) -> None:
    """In a page a name of a texture stands once: a hidden picture may have the other one."""
    assert slots.add("a", devices=0, cpus=1).submit(fail, "error").exception()
    names = [set(re.findall(r'id="(\S+)"', p.progress()._repr_html_())) for p in (pool, slots)]
    assert all(names)
    assert not names[0] & names[1]


def test_other_front_ends(pool: Pool) -> None:
    bundle = pool.progress()._repr_mimebundle_(include=None, exclude=None)
    assert bundle["text/plain"].startswith("0 running, 0 waiting, 0 ended well\nfake:0  idle")
    ElementTree.fromstring(pool.progress()._repr_html_())
    assert repr(pool.progress()).startswith("0 running")


def test_in_a_real_kernel(tmp_path: pathlib.Path) -> None:
    """Executed and exported: one place with the last picture."""
    nbclient = pytest.importorskip("nbclient")
    nbconvert = pytest.importorskip("nbconvert")
    pytest.importorskip("ipykernel")
    import nbformat

    book = nbformat.v4.new_notebook()
    book.cells = [
        nbformat.v4.new_code_cell(source)
        for source in (
            "import math, threading\n"
            "from gpudispatch import Pool, watching\n"
            "watching._Picture.every = 0.05\n"
            'pool = Pool("fake:2"); a = pool.add("a<b>")',
            "pool.progress()",
            "[f.result() for f in [a.submit(math.sqrt, i) for i in range(20)]]\n"
            "a.submit(math.sqrt, -1).exception()\n"
            "pool.shutdown()\n"
            "for t in threading.enumerate():\n"
            "    if t.name == 'gpudispatch-progress':\n"
            "        t.join()",
        )
    ]
    client = nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    (output,) = book.cells[1].outputs
    assert output.output_type == "display_data"
    assert "20 ended well, 1 ended badly (1 error)" in output.data["text/plain"]
    assert "a&lt;b&gt;" in output.data["text/html"]
    page, _ = nbconvert.HTMLExporter().from_notebook_node(book)
    assert page.count('aria-label="Pool on fake:2') == 1
    assert picture.TEXTURES["CLASS_0"].colour in page
    assert "✕ error" in page


# ---- in a log ----


def test_a_log_has_a_line_in_thirty_seconds_and_each_bad_end() -> None:
    now = [0.0]
    stream = io.StringIO()
    log = watching._Log(stream, now=lambda: now[0])
    m = made([])
    for second in range(61):
        now[0] = float(second)
        ends = tuple(
            End(i, m.at + 10 * i, "crashed", "gpu:3", "qwen x", "signal 11")
            for i in range(1, second // 10 + 1)
        )
        log.show(m._replace(at=m.at + second, line=f"{second} done", ends=ends, bad=len(ends)))
    text = stream.getvalue().splitlines()
    assert [line.split(" ", 1)[1] for line in text if "done" in line] == [
        "0 done", "30 done", "60 done",
    ]  # fmt: skip
    crashes = [line.split(" ", 1)[1] for line in text if "crashed" in line]
    assert crashes == ["crashed on gpu:3: qwen x: signal 11"] * 6
    assert len(text) == 9


def test_a_log_counts_what_is_not_listed() -> None:
    stream = io.StringIO()
    log = watching._Log(stream)
    m = made([])
    log.show(m)
    ends = tuple(End(i, m.at, "error", "", "", "") for i in range(937, 1001))
    log.show(m._replace(ends=ends, bad=1000))
    log.show(m._replace(ends=(), bad=-1))  # no agent answers
    log.show(m._replace(ends=ends, bad=1000))
    text = stream.getvalue().splitlines()[1:]
    assert text[0].endswith("936 bad ends that are not listed")
    assert len(text) == 1 + 64


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_log_has_no_control_characters(encoding: str) -> None:
    data = io.BytesIO()
    log = watching._Log(io.TextIOWrapper(data, encoding=encoding))
    m = made([])
    log.show(m)
    for i, text in enumerate(HOSTILE):
        end = End(i + 1, m.at, "error", text, text, text)
        log.show(m._replace(ends=(end,), bad=i + 1))
    text = data.getvalue().decode(encoding)
    assert all(c.isprintable() or c == "\n" for c in text)
    assert text.count("\n") == 1 + len(HOSTILE)


def test_a_block_without_a_terminal(
    leaves_nothing: None, capfd: pytest.CaptureFixture[str]
) -> None:
    with Pool("fake:2") as pool:
        a = pool.add("a")
        with pool.progress():
            assert a.submit(fail, "error").exception()
            assert a.submit(fail, "ok").result()
    lines = capfd.readouterr().err.splitlines()
    assert re.fullmatch(r"[\d:]{8} 0 running, 0 waiting, 0 ended well", lines[0])
    assert re.fullmatch(r"[\d:]{8} error on fake:\d: a: ValueError: no <b>.\[31m", lines[1])
    assert re.fullmatch(
        r"[\d:]{8} 0 running, 0 waiting, 1 ended well, 1 ended badly \(1 error\)", lines[2]
    )
    assert len(lines) == 3


def test_a_block_on_a_terminal(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    a = pool.add("a")
    with pool.progress():
        a.submit(fail, "ok").result()
    assert stream.lines()[0] == "0 running, 0 waiting, 0 ended well"
    assert stream.lines()[-1] == "0 running, 0 waiting, 1 ended well"
    assert stream.getvalue().endswith("\n")


def test_a_block_without_stderr(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with pool.progress() as shown:
        assert isinstance(shown, Progress)
        assert not followers()
