# SPDX-License-Identifier: MIT
"""outcomes() of a Pool: several classes in one loop, with one journal and one progress."""

from __future__ import annotations

import functools
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("gpudispatch._core")

import executor_tasks as tasks
from conftest import Terminal, until
from executor_tasks import Gate, Source
from programs import HERE, PACKAGE

from gpudispatch import (
    JournalBusy,
    JournalMismatch,
    NoWorker,
    Outcome,
    Pool,
    PoolClass,
    read_journal,
)
from gpudispatch.pool_progress import PoolMeter, PoolSnapshot, describe
from gpudispatch.time_left import Course, Range, of_all, of_class

LIMIT_S = 60.0
NAMES = ("a", "b", "c")

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def add(pool: Pool, name: str, **more: Any) -> PoolClass:
    """A class on one CPU slot, which leaves at once for another class."""
    return pool.add(name, **{"devices": 0, "cpus": 1, "min_residence": 0.0} | more)


# A proxy: pytest keeps the value of a fixture for longer than `leaves_nothing` waits.
@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(None, cpus=6, queue_size=64) as made:
        add(made, "a")
        add(made, "b", worker=tasks.Model, setup={"scale": 2})
        add(made, "c", worker=tasks.Model, setup={"scale": 3})
        yield weakref.proxy(made)


def sources(n: int) -> dict[str, range]:
    return {name: range(n) for name in NAMES}


FN = {"a": tasks.same}
SCALE = {"a": 1, "b": 2, "c": 3}


# ---- the loop ----


def test_each_item_once(pool: Pool) -> None:
    ends = list(pool.outcomes(sources(1000), fn=FN))
    assert all(type(r) is Outcome and r.ok for r in ends)
    assert Counter((r.name, r.item) for r in ends) == Counter(
        (name, n) for name in NAMES for n in range(1000)
    )
    assert all(r.value == r.item * SCALE[r.name] and r.index == r.item for r in ends)
    assert list(pool.outcomes({})) == []
    assert list(pool.outcomes({"a": [], "b": []}, fn=FN)) == []
    assert [r.value for r in pool.outcomes({"a": [], "b": [4]}, fn=tasks.same)] == [8]


def test_ordered(pool: Pool) -> None:
    ends = list(pool.outcomes(sources(300), fn=FN, ordered=True))
    for name in NAMES:
        assert [r.index for r in ends if r.name == name] == list(range(300))


def test_functions_of_each_class(pool: Pool) -> None:
    add(pool, "d")
    ends = list(pool.outcomes({"a": [4], "d": [4]}, fn={"a": tasks.same, "d": str}))
    assert {r.name: r.value for r in ends} == {"a": 4, "d": "4"}
    ends = list(pool.outcomes({"a": [4], "b": [4], "d": [4]}, fn=str))
    assert {r.name: r.value for r in ends} == {"a": "4", "b": 8, "d": "4"}


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"sources": [1]}, TypeError, "sources must be a mapping"),
        ({"sources": {"a": 5}, "fn": FN}, TypeError, "int"),
        ({"sources": {"x": [1]}}, ValueError, "no class 'x'"),
        ({"sources": {5: [1]}}, ValueError, "no class 5"),
        ({"sources": {"a": [1]}}, TypeError, "fn is missing"),
        ({"sources": {"a": [1]}, "journal": "x.gdj"}, TypeError, "fn is missing"),
        ({"sources": {"b": [1]}, "fn": {"b": tasks.same}}, TypeError, "^fn does not .* class 'b'"),
        ({"sources": {"b": [1], "c": [1]}, "fn": tasks.same}, TypeError, "^fn is for .* b, c have"),
        ({"sources": {"b": [1]}, "fn": 5}, TypeError, "^fn is for .* b have"),
        ({"sources": {"b": [1]}, "fn": FN}, ValueError, "fn has 'a'"),
        ({"sources": {"b": [1]}, "ordered": 1}, TypeError, "ordered"),
        ({"sources": {"b": [1]}, "priority": "x"}, TypeError, "priority"),
        ({"sources": {"b": [1]}, "progress": "tqdm"}, TypeError, "progress"),
        ({"sources": {"b": [1]}, "progress": 1}, TypeError, "progress"),
        ({"sources": {"b": [1]}, "fresh": True}, TypeError, "journal="),
        ({"sources": {"b": [1]}, "key": str}, TypeError, "journal="),
        ({"sources": {"b": [1]}, "journal": 5}, TypeError, "journal"),
        ({"sources": {}, "journal": 5}, TypeError, "journal"),
    ],
)
def test_bad_arguments(
    pool: Pool,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, Any],
    kind: type[Exception],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=words):
        pool.outcomes(**arguments)
    assert not pool._engine.sessions
    assert not list(tmp_path.iterdir())


def test_generators_are_pulled_as_far_as_the_window(pool: Pool) -> None:
    with Gate() as gate:
        endless = {name: Source(itertools.count()) for name in NAMES}
        add(pool, "held", worker=tasks.Model, setup={"gate": gate.address})
        loop = pool.outcomes(endless | {"held": (n for n in range(3))}, fn=FN)
        assert all(source.pulled == 0 for source in endless.values())  # lazy
        seen: Counter[str] = Counter()
        while not all(seen[name] for name in NAMES) or seen.total() < 1000:
            seen[next(loop).name] += 1
        assert not seen["held"]
        assert all(endless[n].pulled <= seen[n] + 64 for n in NAMES)
        gate.open()
        loop.close()  # type: ignore[attr-defined]
    assert not pool._engine.sessions


def test_a_source_that_raises(pool: Pool) -> None:
    """All that was accepted, of each class, is still given out."""

    def source() -> Iterator[int]:
        yield from range(20)
        raise LookupError("source")

    got = []
    other = Source(itertools.count())
    with pytest.raises(LookupError, match="source"):
        for r in pool.outcomes({"b": source(), "c": other}):
            got.append(r)
    assert sorted(r.index for r in got if r.name == "b") == list(range(20))
    assert sorted(r.index for r in got if r.name == "c") == list(range(other.pulled))
    assert not pool._engine.sessions


def test_failures_are_values(pool: Pool) -> None:
    jobs = [(tasks.kill_me,), (tasks.raises, "value"), (tasks.same, 1)]
    ends = list(pool.outcomes({"a": jobs, "b": range(50)}, fn={"a": tasks.call}))
    assert {r.index: r.kind for r in ends if r.name == "a"} == {
        0: "crash",
        1: "error",
        2: "success",
    }
    assert {r.value for r in ends if r.name == "b"} == {*range(0, 100, 2)}


def test_a_class_without_workers(pool: Pool) -> None:
    add(pool, "bad", initializer=tasks.fails_in_setup)
    ends = list(pool.outcomes({"bad": range(20), "b": range(20)}, fn={"bad": tasks.same}))
    assert {r.kind for r in ends if r.name == "bad"} == {"no_worker"}
    assert all(r.ok for r in ends if r.name == "b")
    assert len(ends) == 40


def test_a_loop_that_is_left(pool: Pool) -> None:
    for r in pool.outcomes({n: itertools.count() for n in NAMES}, fn=FN):
        assert r.ok
        break
    loop = pool.outcomes(sources(10), fn=FN)
    assert len(pool._engine.sessions) == 3
    del loop
    assert not pool._engine.sessions
    with pytest.raises(KeyError):
        for r in pool.outcomes({n: itertools.count() for n in NAMES}, fn=FN):
            raise KeyError(r.name)
    assert not pool._engine.sessions


def test_removed_under_the_loop(pool: Pool) -> None:
    """What was accepted of all classes is given out, then the loop says why it ends."""
    got = []
    others = Source(itertools.count())
    with pytest.raises(RuntimeError, match="class 'b' is removed"):
        for r in pool.outcomes({"b": itertools.count(), "c": others}):
            got.append(r)
            if len(got) == 100:
                pool["b"].remove()
                add(pool, "b", worker=tasks.Model, setup={"scale": 100})
    assert all(r.ok and r.value == r.item * SCALE[r.name] for r in got)
    for name in "bc":
        indexes = sorted(r.index for r in got if r.name == name)
        assert indexes == list(range(len(indexes)))


def test_shutdown_under_the_loop() -> None:
    with Gate() as gate:
        pool = Pool(None, cpus=4, queue_size=8)
        for name in "ab":
            add(pool, name, worker=tasks.Model, setup={"gate": gate.address})
        loop = pool.outcomes({n: itertools.count() for n in "ab"})

        def end() -> None:
            gate.arrivals(2)
            pool.shutdown(wait=False)
            gate.open()

        thread = threading.Thread(target=end)
        thread.start()
        got = []
        with pytest.raises(RuntimeError, match="after shutdown"):
            for r in loop:
                got.append(r)
        thread.join()
        assert all(r.ok for r in got)
        assert Counter(r.name for r in got) == {"a": 8, "b": 8}
        pool.shutdown()


def test_beside_futures_and_other_loops(pool: Pool) -> None:
    out: list[list[Any]] = [[], []]

    def work(mine: list[Any]) -> None:
        mine.extend(pool.outcomes(sources(300), fn=FN))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in out]
    for thread in threads:
        thread.start()
    futures = [pool["a"].submit(tasks.same, n) for n in range(500)]
    assert [f.result(LIMIT_S) for f in futures] == list(range(500))
    for thread in threads:
        thread.join(LIMIT_S)
    for mine in out:
        assert Counter(r.name for r in mine) == {"a": 300, "b": 300, "c": 300}


def test_a_slow_class_holds_no_other(pool: Pool) -> None:
    with Gate() as gate:
        add(pool, "held", worker=tasks.Model, setup={"gate": gate.address})
        loop = pool.outcomes({"held": [5], "b": range(500)})
        fast = [next(loop) for _ in range(500)]
        assert {r.name for r in fast} == {"b"}
        gate.open()
        (last,) = loop
        assert (last.name, last.value) == ("held", 5)


# ---- the journal ----


def test_run_again(pool: Pool, tmp_path: pathlib.Path) -> None:
    """The same items in each class do not mix."""
    path = tmp_path / "n.gdj"
    first = list(pool.outcomes(sources(50), fn=FN, journal=path))
    assert not any(r.replayed for r in first)
    again = list(pool.outcomes(sources(60), fn=FN, journal=path))
    assert Counter((r.name, r.item, r.value) for r in again) == Counter(
        (name, n, n * SCALE[name]) for name in NAMES for n in range(60)
    )
    assert all(r.replayed == (r.item < 50) for r in again)
    some = list(pool.outcomes({"c": range(60)}, journal=path))  # a subset of the classes
    assert all(r.replayed and r.name == "c" and r.value == 3 * r.item for r in some)
    records = list(read_journal(path))
    assert Counter(record.name for record in records) == {"a": 60, "b": 60, "c": 60}
    assert {(r.name, r.key, r.value) for r in records} == {
        (name, n, n * SCALE[name]) for name in NAMES for n in range(60)
    }
    shown = subprocess.run(
        [sys.executable, "-m", "gpudispatch.journal", "--jsonl", str(path)],
        capture_output=True, text=True, check=True, timeout=LIMIT_S,
    ).stdout  # fmt: skip
    lines = [json.loads(line) for line in shown.splitlines()]
    assert Counter(line.get("name") for line in lines)["b"] == 60
    fresh = list(pool.outcomes({"b": [1]}, journal=path, fresh=True))
    assert not fresh[0].replayed


def test_an_own_key_and_duplicates(pool: Pool, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "n.gdj"
    items = {"b": [1, 1, 2], "c": [1, 2]}
    for replayed in (False, True):
        ends = list(pool.outcomes(items, journal=path, key=str))
        assert Counter((r.name, r.item) for r in ends) == {
            ("b", 1): 2, ("b", 2): 1, ("c", 1): 1, ("c", 2): 1,
        }  # fmt: skip
        assert {r.replayed for r in ends} == {replayed}


def test_failures_are_tried_again(pool: Pool, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "n.gdj"
    fn = functools.partial(tasks.kill_if, culprit=3)
    for _ in range(2):
        ends = {
            (r.name, r.item): r
            for r in pool.outcomes({"a": range(5), "b": range(5)}, fn=fn, journal=path)
        }
        assert len(ends) == 10
        assert ends["a", 3].kind == "crash"
        assert not ends["a", 3].replayed
        assert ends["b", 3].value == 6


def test_a_setup_that_has_changed(pool: Pool, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "n.gdj"
    list(pool.outcomes({"b": [1], "c": [1]}, journal=path))
    pool["b"].remove()
    add(pool, "b", worker=tasks.Model, setup={"scale": 7})
    with pytest.raises(JournalMismatch) as caught:
        pool.outcomes({"b": [1], "c": [1]}, journal=path)
    assert "class b" in str(caught.value)
    assert [r.replayed for r in pool.outcomes({"c": [1]}, journal=path)] == [True]
    assert not pool._engine.sessions


def test_a_class_that_has_failed_does_not_stop_the_others(pool: Pool) -> None:
    bad = add(pool, "bad", initializer=tasks.fails_in_setup)
    with pytest.raises(NoWorker):
        bad.submit(tasks.same, 1).result(LIMIT_S)
    for _ in range(2):
        loop = pool.outcomes({"bad": range(3), "b": range(3)}, fn={"bad": tasks.same})
        assert Counter((r.name, r.kind) for r in loop) == {
            ("bad", "no_worker"): 3, ("b", "success"): 3,
        }  # fmt: skip


def test_one_loop_at_a_time(pool: Pool, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "n.gdj"
    loop = pool.outcomes({"b": [1, 2], "c": [1]}, journal=path)
    next(loop)
    with pytest.raises(JournalBusy):
        pool.outcomes({"b": [1]}, journal=path)
    loop.close()  # type: ignore[attr-defined]
    assert len(list(pool.outcomes({"b": [1]}, journal=path))) == 1
    assert list(pool.outcomes({}, journal=path)) == []
    assert list(pool.outcomes({"b": []}, journal=path)) == []
    assert len(list(pool.outcomes({"b": [1]}, journal=path))) == 1
    with pytest.raises(TypeError):
        pool.outcomes({"b": [1], "c": 5}, journal=path)  # type: ignore[dict-item]
    assert len(list(pool.outcomes({"b": [1]}, journal=path))) == 1


def test_a_second_loop_is_refused_at_once_and_costs_nothing(
    pool: Pool, tmp_path: pathlib.Path
) -> None:
    path, link, items = tmp_path / "n.gdj", tmp_path / "link", iter(range(100))
    link.symlink_to(path)
    b: Any = pool["b"]
    again: list[Callable[[], Any]] = [
        lambda: pool.outcomes({"b": items, "c": items}, journal=path),
        lambda: pool.outcomes({"b": items}, journal=link, fresh=True),
        lambda: pool.outcomes({"a": items}, fn=FN, journal=path),  # which the run does not have
        lambda: b.outcomes(items, journal=path),
        lambda: b.outcomes(items, journal=path, fresh=True),
    ]
    with Gate() as gate:
        slow = pool.add("slow", worker=tasks.Model, setup={"gate": gate.address}, devices=0, cpus=1)
        first = pool.outcomes({"slow": range(2), "b": range(300)}, journal=path)
        ends = [next(first)]
        gate.arrival()  # a task of it runs
        for call in again:
            with pytest.raises(JournalBusy, match="this process has it open already; end") as busy:
                call()
            assert busy.value.pid == os.getpid()
        with ThreadPoolExecutor(1) as other:
            assert isinstance(other.submit(again[0]).exception(LIMIT_S), JournalBusy)
        assert [*items] == [*range(100)]
        assert slow.stats()["running"] >= 1
        assert pool["c"].stats()["done"] == 0
        gate.open()
        ends += first
    assert len(ends) == 302
    assert all(r.ok and not r.replayed for r in ends)
    assert sorted(os.listdir(tmp_path)) == ["link", "n.gdj"]  # none was set aside
    later = list(pool.outcomes({"slow": range(2), "b": range(300)}, journal=path))
    assert len(later) == 302
    assert all(r.replayed for r in later)


def test_a_later_run_adds_a_class(pool: Pool, tmp_path: pathlib.Path) -> None:
    """And from then on the class is known."""
    path = tmp_path / "n.gdj"
    for names, ran in (("b", {"b"}), ("bc", {"c"}), ("c", set()), ("bc", set())):
        ends = list(pool.outcomes({name: range(3) for name in names}, journal=path))
        assert {r.name for r in ends if not r.replayed} == ran
    with Pool(None, cpus=1) as other:
        add(other, "c", worker=tasks.Model, setup={"scale": 4})
        with pytest.raises(JournalMismatch, match="class c"):
            other.outcomes({"c": range(3)}, journal=path)


def test_a_loop_with_a_journal_that_is_left(pool: Pool, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "n.gdj"
    for n, _r in enumerate(pool.outcomes(sources(500), fn=FN, journal=path)):
        if n == 20:
            break
    ends = list(pool.outcomes(sources(500), fn=FN, journal=path))
    assert Counter((r.name, r.item) for r in ends) == Counter(
        (name, n) for name in NAMES for n in range(500)
    )
    assert sum(r.replayed for r in ends) >= 20


HOST = """
import os, sys, time
sys.path[:0] = [{package!r}, {here!r}]
import executor_tasks as tasks
from gpudispatch import Pool
if __name__ == "__main__":
    with Pool(None, cpus=2, queue_size=64) as pool:
        for name, scale in (("b", 2), ("c", 3)):
            pool.add(
                name, devices=0, cpus=1, min_residence=0, worker=tasks.Model,
                setup={{"scale": scale}},
            )
        for r in pool.outcomes({{"b": range(1000), "c": range(1000)}}, journal={journal!r}):
            print(r.name, r.item, r.value, r.replayed, flush=True)
    print("end", flush=True)
"""


def test_killed_and_run_again(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "n.gdj"
    program = tmp_path / "host.py"
    program.write_text(HOST.format(package=PACKAGE, here=HERE, journal=str(path)))
    done: set[tuple[str, ...]] = set()
    for lines in (300, 400, None):
        host = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True)
        assert host.stdout is not None
        with host, host.stdout:
            seen = [tuple(line.split()) for line in itertools.islice(host.stdout, lines)]
            if lines is not None:
                host.kill()
        replayed = {line[:3] for line in seen if line[-1] == "True"}
        if lines is None:
            assert seen.pop() == ("end",)
            assert host.returncode == 0
            assert done <= replayed
            assert {line[:3] for line in seen} == {
                (name, str(n), str(n * SCALE[name])) for name in "bc" for n in range(1000)
            }
            assert len(seen) == 2000
        done |= {line[:3] for line in seen}


# ---- progress ----


def test_a_line(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    jobs = [(tasks.raises, "value"), *[(tasks.same, n) for n in range(9)]]
    list(pool.outcomes({"a": jobs, "b": range(1200)}, fn={"a": tasks.call}, progress=True))
    lines = stream.lines()
    assert lines[0].startswith("a 0/10")
    assert re.fullmatch(r"a 10/10, b 1,200/1,200, 1 failed, \d:\d\d:\d\d elapsed", lines[-1])
    assert stream.getvalue().endswith("\n")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    list(pool.outcomes({"b": (n for n in range(10))}, progress=True))
    assert stream.lines()[-1].startswith("b 10, ")


def test_no_line_without_a_terminal(pool: Pool, capfd: pytest.CaptureFixture[str]) -> None:
    list(pool.outcomes({"b": range(10)}, progress=True))
    assert capfd.readouterr() == ("", "")


def test_snapshots(pool: Pool, tmp_path: pathlib.Path) -> None:
    seen: list[PoolSnapshot] = []
    list(
        pool.outcomes(
            {"b": range(10), "c": iter([1])}, progress=seen.append, journal=tmp_path / "n"
        )
    )
    last = seen[-1]
    assert (last.total, last.done, last.ok, last.failed, last.replayed) == (None, 11, 11, 0, 0)
    assert last.kinds == {"success": 11}
    assert (last.classes["b"].total, last.classes["b"].done) == (10, 10)
    assert last.classes["c"].total is None
    assert seen[0].done == 0
    list(pool.outcomes({"b": range(10)}, progress=seen.append, journal=tmp_path / "n"))
    assert (seen[-1].total, seen[-1].replayed, seen[-1].left) == (10, 10, (0.0, 0.0))
    assert "10 from the journal" in describe(seen[-1])


def test_a_display_that_fails(pool: Pool, caplog: pytest.LogCaptureFixture) -> None:
    def show(_: PoolSnapshot) -> None:
        raise ValueError("on purpose")

    assert len(list(pool.outcomes({"b": range(10)}, progress=show))) == 10
    assert caplog.text.count("ValueError: on purpose") == 1
    caplog.clear()  # its traceback holds the pool


def test_it_ticks_while_nothing_ends(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpudispatch.pool_progress.TICK_S", 0.01)
    with Gate() as gate:
        add(pool, "held", worker=tasks.Model, setup={"gate": gate.address})
        seen: list[PoolSnapshot] = []

        def show(s: PoolSnapshot) -> None:
            seen.append(s)
            if len(seen) == 5:
                gate.open()

        (r,) = pool.outcomes({"held": [1]}, progress=show)
        assert r.ok
        assert [s.done for s in seen[:5]] == [0] * 5


# A class with 100 items left, 20 tasks ended in 20 s of one worker, none of them running.
COURSE = Course(rest=100, ran=20, running=0, workers=1, served=20.0, mean=1.0, error=0.0)


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({}, (90.0, 110.0)),
        ({"workers": 4}, (22.5, 27.5)),
        ({"served": 40.0}, (180.0, 220.0)),  # a task cost more than its own time
        ({"error": 0.1}, (80.0, 120.0)),
        ({"error": 5.0}, (0.0, 200.0)),
        ({"running": 5}, (95 * 20 / 25 * 0.9, 110.0)),  # these five are nearly done, or just begun
        ({"rest": 2, "running": 5}, (0.0, 2.2)),
        ({"rest": 2, "workers": 4}, (0.45, 1.1)),  # the last task takes its second
        ({"ran": 4}, None),
        ({"ran": 0, "served": 0.0, "mean": 0.0}, None),
        ({"workers": 0}, None),
        ({"rest": 0, "ran": 0, "workers": 0}, (0.0, 0.0)),
    ],
)
def test_the_time_left_of_a_class(change: dict[str, Any], left: Range | None) -> None:
    assert of_class(COURSE._replace(**change)) == pytest.approx(left)


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ([], (0.0, 0.0)),
        ([{}], (90.0, 110.0)),
        ([{}, {"rest": 20}], (54.0, 110.0)),  # until the slowest ends, or both with even work
        ([{}, {"rest": 20, "workers": 4}], ((90 + 4 * 4.5) / 5, 110.0)),
        ([{}, {"rest": 20, "error": 5.0}], (45.0, 110.0)),
        ([{}, {"rest": 80, "error": 0.25}], ((90 + 40) / 2, 120.0)),  # the doubtful one may be last
        ([{}, {"rest": 0, "workers": 4}], (90.0, 110.0)),
        ([{}, {"rest": 0, "workers": 0, "ran": 0}], (90.0, 110.0)),
        ([{}, {"rest": 1, "workers": 0}], None),  # it waits
        ([{"rest": 1000}, {"rest": 1, "ran": 4}], None),
        ([{"rest": 0}, {"rest": 0, "ran": 0}], (0.0, 0.0)),
    ],
)
def test_the_time_left_of_all(changes: list[dict[str, Any]], left: Range | None) -> None:
    """The slowest class is the upper end."""
    courses = [COURSE._replace(**change) for change in changes]
    assert of_all(courses) == pytest.approx(left)


class Ended:
    """An outcome, as a meter sees it."""

    def __init__(self, name: str, began: float, took: float) -> None:
        self.name, self.kind, self.ok, self.replayed = name, "success", True, False
        self.times = types.SimpleNamespace(started=began, ended=began + took)


def row(name: str, workers: int, starting: int = 0, paused: int = 0) -> dict[str, Any]:
    return {
        "name": name, "workers": workers, "starting": starting, "paused": paused, "running": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("looks", "served", "workers"),
    [
        ([(10, {"workers": 2})], 0, 2),  # the loop begins later than its meter
        ([(10, {"workers": 0, "starting": 1}), (20, {"workers": 0})], 0, 0),  # setup, then a wait
        ([(0, {"workers": 2}), (10, {"workers": 2})], 20, 2),
        ([(0, {"workers": 2}), (10, {"workers": 4})], 30, 4),
        ([(0, {"workers": 2}), (10, {"workers": 2, "starting": 2})], 20, 2),  # setup of more
        ([(0, {"workers": 2}), (10, {"workers": 1, "starting": 1})], 20, 2),  # one is replaced
        ([(0, {"workers": 1}), (0, {"workers": 0}), (10, {"workers": 0})], 0, 0),
        ([(0, {"workers": 1}), (0, {"workers": 1, "paused": 1}), (9, {"workers": 1})], 4.5, 1),
    ],
)
def test_seconds_of_workers(
    looks: list[tuple[float, dict[str, int]]], served: float, workers: int
) -> None:
    now = [0.0]
    meter = PoolMeter({"a": 10}, now=lambda: now[0])
    for at, state in looks:
        now[0] = at
        meter.look([row("a", **state), row("other", 7)])  # type: ignore[list-item]
    assert (meter.classes["a"].served, meter.classes["a"].workers) == (served, workers)


def test_the_time_left() -> None:
    """2,000 and 20 items: the line has no time until both have a pace, then that of the slower."""
    now = [100.0]
    meter = PoolMeter({"fast": 2000, "slow": 20}, now=lambda: now[0])

    def line(**workers: int) -> str:
        rows: Any = [row(name, n) for name, n in workers.items()]
        return describe(meter.snapshot(rows))

    def run(name: str, n: int, took: float) -> None:
        for _ in range(n):
            meter.add(Ended(name, now[0], took))  # type: ignore[arg-type]

    assert line() == "fast 0/2,000 waits, slow 0/20 waits, 0:00:00 elapsed"
    now[0] += 60  # a minute of setup
    line(fast=0, slow=0)
    line(fast=4, slow=0)
    now[0] += 10
    run("fast", 1000, 0.04)
    assert line(fast=4, slow=0) == "fast 1,000/2,000 on 4, slow 0/20 waits, 0:01:10 elapsed"
    line(fast=4, slow=1)
    now[0] += 4
    run("fast", 400, 0.04)
    run("slow", 4, 1.0)
    assert line(fast=4, slow=1) == "fast 1,400/2,000 on 4, slow 4/20 on 1, 0:01:14 elapsed"
    now[0] += 1
    run("fast", 100, 0.04)
    run("slow", 1, 1.0)
    left = "0:00:06-0:00:17 left"
    shown = line(fast=4, slow=1)
    assert shown == f"{left}, fast 1,500/2,000 on 4, slow 5/20 on 1, 0:01:15 elapsed"
    now[0] += 14.9
    run("fast", 500, 0.04)
    run("slow", 14, 1.0)
    assert line(fast=0, slow=1).startswith("0:00:00-0:00:02 left, fast 2,000/2,000, slow 19/20 on")
    replaced: Any = [row("slow", 0, starting=1)]
    assert " left, fast 2,000/2,000, slow 19/20, " in describe(meter.snapshot(replaced))
    run("slow", 1, 1.0)
    assert meter.left() == (0.0, 0.0)


def test_no_time_left_without_a_length() -> None:
    """Such a class does not wait: its source may be at its end."""
    meter = PoolMeter({"a": None, "b": 0}, now=lambda: 0.0)
    assert describe(meter.snapshot([])) == "a 0, b 0/0, 0:00:00 elapsed"
    assert meter.left() is None


def test_in_a_notebook(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is shown once, and then changes."""
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            assert raw
            shown.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        assert not shown
        shown.append(data["text/plain"])
        return Handle()

    ipython, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    shell = types.SimpleNamespace(kernel=object())
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    ipython.display = inner  # type: ignore[attr-defined]
    inner.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    ends = list(pool.outcomes({"b": range(10)}, progress=True))
    assert len(ends) == 10
    assert shown[0].startswith("b 0/10")
    assert shown[-1].startswith("b 10/10, ")
    assert until(lambda: not pool._engine.sessions)
