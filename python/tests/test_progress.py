# SPDX-License-Identifier: MIT
"""progress.py: one line on a terminal and nothing elsewhere, bars of tqdm and rich, functions."""

from __future__ import annotations

import io
import math
import os
import pathlib
import pty
import re
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import Terminal

from gpudispatch import Executor, progress
from gpudispatch.progress import Line, Meter, Snapshot, Watch, clock, describe, pace


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with Executor(2) as ex:
        yield ex


# ---- numbers and text ----


@pytest.mark.parametrize(
    ("total", "replayed", "ended", "rate", "left"),
    [
        (100, 0, 10, 1.0, 90.0),  # a minute of setup does not count
        (1000, 900, 0, 0.0, None),
        (1000, 900, 5, 0.5, 190.0),
        (905, 900, 5, 0.5, 0.0),
        (None, 0, 10, 1.0, None),
    ],
)
def test_meter(
    total: int | None, replayed: int, ended: int, rate: float, left: float | None
) -> None:
    """Ten seconds of work after a minute of setup."""
    now = Clock()
    meter = Meter(total, now)
    now.now += 70.0
    for _ in range(replayed):
        meter.add("success", started=1.0, replayed=True)
    for i in range(ended):
        meter.add("timeout" if i == 0 else "success", started=160.0)
    s = meter.snapshot()
    failed = min(1, ended)
    assert (s.total, s.done, s.replayed) == (total, replayed + ended, replayed)
    assert (s.ok, s.failed) == (replayed + ended - failed, failed)
    assert s.kinds == {k: n for k, n in (("success", s.ok), ("timeout", failed)) if n}
    assert (s.elapsed, s.rate, s.left) == (70.0, rate, left)


@pytest.mark.parametrize(
    ("rate", "text"),
    [(1234.5, "1,234/s"), (8.33, "8.3/s"), (1.0, "1.0/s"), (0.5, "30.0/min"), (0.01, "36.0/h"),
     (0.0001, "0.4/h")],
)  # fmt: skip
def test_pace(rate: float, text: str) -> None:
    assert pace(rate) == text


def test_clock() -> None:
    assert [clock(s) for s in (0, 59.9, 75, 3600, 100_000)] == [
        "0:00:00", "0:00:59", "0:01:15", "1:00:00", "27:46:40",
    ]  # fmt: skip


def test_describe() -> None:
    kinds = {"success": 1230, "timeout": 1, "crash": 3, "no_worker": 0}
    s = Snapshot(10_000, 1234, 1230, 4, 34, kinds, 148.0, 8.3, 1060.0)
    assert describe(s, "night") == (
        "night: 1,234/10,000 (12%), 4 failed (3 crash, 1 timeout, 0 no worker), "
        "34 from the journal, 8.3/s, 0:02:28 elapsed, 0:17:40 left"
    )
    nothing = Snapshot(None, 0, 0, 0, 0, {}, 3.0, 0.0, None)
    assert describe(nothing) == "0 done, no task has ended yet, 0:00:03 elapsed"
    empty = Snapshot(0, 0, 0, 0, 0, {}, 3.0, 0.0, 0.0)
    assert describe(empty, end=True) == "0/0, 0:00:03 elapsed"


# ---- the line ----


def test_line_draws_over_itself() -> None:
    stream = Terminal()
    line = Line("night", stream)
    meter = Meter(3, Clock())
    line.show(meter)
    meter.add("success")
    line.show(meter)
    line.end(meter)
    text = stream.getvalue()
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert stream.lines() == [
        "night: 0/3 (0%), no task has ended yet, 0:00:00 elapsed",
        "night: 1/3 (33%), 0:00:00 elapsed",
        "night: 1/3 (33%), 0:00:00 elapsed",
    ]
    first, second = text.split("\r")[1:3]
    assert len(second) >= len(first)  # blanks over what was there


def test_line_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    stream = Terminal()
    meter = Meter(1_000_000)
    Line("a long label for a loop", stream).show(meter)
    assert len(stream.getvalue()) < 1 + 30
    assert stream.getvalue().endswith("…")


class Broken(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize(
    "stream",
    [io.StringIO(), None, types.SimpleNamespace(), types.SimpleNamespace(isatty=lambda: False)],
)
def test_line_is_quiet_without_a_terminal(
    stream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert progress.display_of(True, 3, None) is None


def test_line_of_a_closed_stream() -> None:
    stream = io.StringIO()
    stream.close()
    assert Line(None, stream).quiet


def test_a_display_that_fails_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(Line(None, Broken()), 3)
    watch.add("success")
    watch.add("success")
    watch.end()
    assert watch.display is None
    assert len(caplog.records) == 1
    assert Line.owner is not None
    Line.owner = None


def test_two_lines_do_not_mix() -> None:
    stream = Terminal()
    one, two = Line("one", stream), Line("two", stream)
    meter = Meter(3)
    for line in (one, two, one):
        line.show(meter)
    one.end(meter)
    two.show(meter)
    two.end(meter)
    assert [text.split(":")[0] for text in stream.lines()] == ["one", "one", "one", "two", "two"]


def test_watch_draws_at_most_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Clock()
    monkeypatch.setattr(time, "monotonic", now)
    shown: list[int] = []
    display = types.SimpleNamespace(
        show=lambda meter: shown.append(meter.done), end=lambda meter: shown.append(-1)
    )
    watch = Watch(display, None)
    for _ in range(1000):
        watch.add("success")
        now.now += 0.001
    assert 9 <= len(shown) <= 11
    assert 800_000_000 <= watch.patience() <= 1_000_000_000
    now.now += 0.5
    watch.tick()
    assert len(shown) <= 11
    now.now += 0.6
    watch.tick()
    assert shown[-1] == 1000
    watch.end()
    assert shown[-1] == -1


# ---- the argument ----


def test_nothing_to_show() -> None:
    assert progress.display_of(False, 3, None) is None
    assert progress.watch(False, [1], None) is None


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [("bar", ValueError, "'tqdm' or 'rich'"), (3, TypeError, "not int"), ([], TypeError, "list")],
)
def test_wrong_arguments(
    value: object, kind: type[Exception], words: str, executor: Executor
) -> None:
    with pytest.raises(kind, match=words):
        executor.outcomes([1], fn=abs, progress=value)
    assert [r.value for r in executor.outcomes([-1], fn=abs)] == [1]


@pytest.mark.parametrize("name", progress.NAMES)
def test_a_bar_that_is_not_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("tqdm", "tqdm.auto", "rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"pip install {name}"):
        progress.display_of(name, 3, None)


def test_size_of() -> None:
    class Bad:
        def __len__(self) -> int:
            raise TypeError("len() of unsized object")

    assert progress.size_of(range(7)) == 7
    assert progress.size_of(iter([1])) is None
    assert progress.size_of(Bad()) is None


def test_function(executor: Executor) -> None:
    seen: list[Snapshot] = []
    threads: list[threading.Thread] = []

    def show(s: Snapshot) -> None:
        seen.append(s)
        threads.append(threading.current_thread())

    n = sum(1 for _ in executor.outcomes(range(-5, 500), fn=math.sqrt, progress=show))
    assert n == 505
    assert seen[0].done == 0
    last = seen[-1]
    assert (last.total, last.done, last.ok, last.failed) == (505, 505, 500, 5)
    assert last.kinds == {"error": 5, "success": 500}
    assert last.left == 0.0
    assert set(threads) == {threading.current_thread()}


@pytest.mark.parametrize(("total", "seen"), [(2, [0, 1, 2]), (0, [0]), (None, [0, 1, 2, 2])])
def test_a_function_sees_the_end_once(
    total: int | None, seen: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Clock()
    monkeypatch.setattr(time, "monotonic", now)
    done: list[int] = []
    shown = progress.watch(lambda s: done.append(s.done), iter(()), None)
    assert shown is not None
    shown.meter.total = total
    shown.tick()
    for _ in range(0 if total == 0 else 2):
        now.now += 0.5
        shown.add("success")
    shown.end()
    assert done == seen


def test_a_function_that_fails_ends_no_loop(
    executor: Executor, caplog: pytest.LogCaptureFixture
) -> None:
    def show(s: Snapshot) -> None:
        raise ValueError("no")

    assert sum(1 for _ in executor.outcomes(range(50), fn=math.sqrt, progress=show)) == 50
    assert "given up" in caplog.text


def test_leaving_the_loop_ends_the_display(executor: Executor) -> None:
    seen: list[Snapshot] = []
    loop = executor.outcomes(range(500), fn=math.sqrt, progress=seen.append)
    next(loop)
    loop.close()  # type: ignore[attr-defined]
    assert seen[-1].done == 1
    assert next(executor.outcomes([4], fn=math.sqrt)).value == 2.0


def test_it_ticks_while_nothing_ends(
    executor: Executor, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """The task ends only when the display has been drawn five times."""
    monkeypatch.setattr(progress, "TICK_S", 0.01)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    seen: list[Snapshot] = []

    def show(s: Snapshot) -> None:
        seen.append(s)
        if len(seen) == 5:
            gate.write_bytes(b"open")

    (r,) = executor.outcomes([gate], fn=pathlib.Path.read_bytes, progress=show)
    assert r.value == b"open"
    assert [s.done for s in seen[:5]] == [0] * 5


def test_ordered_and_labelled(executor: Executor) -> None:
    stream = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        rs = list(
            executor.outcomes(range(30), fn=math.sqrt, progress=True, label="roots", ordered=True)
        )
    assert [r.index for r in rs] == list(range(30))
    assert stream.lines()[-1].startswith("roots: 30/30 (100%)")


def test_with_a_journal(executor: Executor, tmp_path: pathlib.Path) -> None:
    seen: list[Snapshot] = []
    for _ in range(2):
        for _r in executor.outcomes(
            range(20), fn=math.sqrt, journal=tmp_path / "n.gdj", progress=seen.append
        ):
            pass
    assert (seen[-1].done, seen[-1].replayed, seen[-1].rate) == (20, 20, 0.0)


# ---- tqdm and rich ----


def test_tqdm(executor: Executor) -> None:
    tqdm = pytest.importorskip("tqdm")
    stream = Terminal()
    with tqdm.tqdm(file=stream, ncols=80) as bar:
        for _ in executor.outcomes(range(-5, 100), fn=math.sqrt, progress=bar):
            pass
        assert (bar.n, bar.total) == (105, 105)
        assert not bar.disable
        bar.refresh()
    assert "failed=5" in stream.getvalue()


@pytest.mark.parametrize("given", ["tqdm.tqdm", *progress.NAMES])
def test_bars_by_class_and_by_name(
    given: str, executor: Executor, capfd: pytest.CaptureFixture[str]
) -> None:
    module = pytest.importorskip(given.partition(".")[0])
    bar = module.tqdm if "." in given else given
    assert sum(r.ok for r in executor.outcomes(range(100), fn=math.sqrt, progress=bar)) == 100
    assert capfd.readouterr().err == ""  # no terminal


def test_rich(executor: Executor) -> None:
    console = pytest.importorskip("rich.console")
    from rich.progress import Progress

    with Progress(console=console.Console(file=Terminal())) as bars:
        for _ in executor.outcomes(range(-5, 100), fn=math.sqrt, progress=bars, label="roots"):
            pass
        (task,) = bars.tasks
        assert (task.completed, task.total) == (105, 105)
        assert task.description == "roots (5 failed)"
        assert bars.live.is_started


# ---- a real terminal ----

PROGRAM = """
import sys, time
from gpudispatch import Executor
if __name__ == "__main__":
    with Executor(2) as ex:
        for r in ex.outcomes([0.02] * 20, fn=time.sleep, progress={}, label="naps"):
            pass
"""


def on_terminal(tmp_path: pathlib.Path, given: str) -> str:
    """What a program writes to a terminal of 80 columns."""
    import fcntl
    import struct
    import termios

    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(given))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    child = subprocess.Popen([sys.executable, str(program)], stderr=theirs, stdin=theirs)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 4096):
            parts.append(part)
    except OSError:  # EIO: the other side is closed
        pass
    os.close(ours)
    assert child.wait(60) == 0
    return b"".join(parts).decode()


@pytest.mark.parametrize("given", ["True", *map(repr, progress.NAMES)])
def test_a_terminal(tmp_path: pathlib.Path, given: str) -> None:
    if given != "True":
        pytest.importorskip(given.strip("'"))
        assert "20/20" in on_terminal(tmp_path, given)
        return
    text = on_terminal(tmp_path, given)
    lines = [part.rstrip() for part in re.split(r"[\r\n]+", text) if part.strip()]
    assert lines[0].startswith("naps: 0/20 (0%)")
    assert lines[-1].startswith("naps: 20/20 (100%), ")
    assert max(map(len, lines)) < 80
    assert text.endswith("\r\n")
