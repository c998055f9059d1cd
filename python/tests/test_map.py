# SPDX-License-Identifier: MIT
"""map(): in order, lazily, in chunks; as in Python 3.14."""

from __future__ import annotations

import itertools
import pathlib
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

import executor_tasks as tasks
from conftest import until
from executor_tasks import Gate, Source

from gpudispatch import Executor, OutOfMemory, TaskTimeout, WorkerCrashed

LIMIT_S = 60.0

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def test_order_and_arguments() -> None:
    with Executor(2) as pool:
        assert list(pool.map(pow, range(50), range(50))) == [i**i for i in range(50)]
        assert list(pool.map(pow, [2, 3, 4], [5, 6])) == [32, 729]
        assert list(pool.map(tasks.same, [])) == []
        assert list(pool.map(tasks.same)) == []
        for size in (1, 2, 7, 100, 5000):
            assert list(pool.map(tasks.same, range(1000), chunksize=size)) == list(range(1000))
        assert list(pool.map(tasks.same, range(20_000), chunksize=64)) == list(range(20_000))
        assert list(pool.map(pow, [2, 3], [3, 2], chunksize=2)) == [8, 9]


NAN = float("nan")
WRONG: list[tuple[str, Any, type[Exception]]] = [
    *[(name, value, ValueError) for name in ("chunksize", "buffersize") for value in (0, -1)],
    *[
        (name, value, TypeError)
        for name in ("chunksize", "buffersize")
        for value in (1.0, True, "1")
    ],
    ("timeout", "5", TypeError),
    ("timeout", NAN, ValueError),
]


def test_wrong_arguments() -> None:
    with Executor(1) as pool:
        for name, value, kind in WRONG:
            with pytest.raises(kind, match=name):
                pool.map(tasks.same, [1], **{name: value})
        with pytest.raises(TypeError, match="iter"):
            pool.map(tasks.same, 5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="fn"):
            pool.map(5, [1])
        assert list(pool.map(tasks.same, [1], timeout=float("inf"))) == [1]


# ---- how far ahead ----


@pytest.mark.parametrize("chunksize", [1, 3])
def test_buffersize(chunksize: int) -> None:
    """That many tasks are ahead of the caller, before the first next() as well."""
    with Executor(1) as pool:
        source = Source(itertools.count())
        run: Any = pool.map(tasks.same, source, chunksize=chunksize, buffersize=5)
        with closing(run) as results:
            assert source.pulled == 5 * chunksize
            for i in range(40):
                assert next(results) == i
                assert source.pulled <= (i // chunksize + 1 + 5) * chunksize
            assert source.pulled >= 40


def test_default_buffersize_is_the_queue() -> None:
    with Executor(1, queue_size=16) as pool:
        source = Source(itertools.count())
        results = pool.map(tasks.same, source)
        assert source.pulled == 16
        assert [next(results) for _ in range(100)] == list(range(100))
        assert source.pulled <= 100 + 16
        results.close()  # type: ignore[attr-defined]


def test_buffersize_above_the_queue() -> None:
    with Executor(1, queue_size=4) as pool:
        source = Source(range(200))
        results = pool.map(tasks.same, source, buffersize=50)
        assert list(results) == list(range(200))


def test_tasks_begin_before_the_first_next() -> None:
    with Executor(2) as pool, Gate() as gate:
        results = pool.map(tasks.through, itertools.repeat(gate.address), range(4))
        arrived = gate.arrivals(2)  # a worker that starts late gets none that were sent ahead
        assert "0" in arrived and len(set(arrived)) == 2
        gate.open()
        assert list(results) == [0, 1, 2, 3]


# ---- sources ----


def test_an_infinite_source() -> None:
    with Executor(2) as pool:
        results = pool.map(tasks.same, itertools.count())
        assert list(itertools.islice(results, 3000)) == list(range(3000))
        results.close()  # type: ignore[attr-defined]
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


@pytest.mark.parametrize("chunksize", [1, 4])
def test_a_source_that_raises(chunksize: int) -> None:
    """After the results of all that it gave."""

    def source() -> Iterator[int]:
        yield from range(10)
        raise LookupError("source")

    with Executor(1) as pool:
        got = []
        with pytest.raises(LookupError, match="source"):
            for value in pool.map(tasks.same, source(), chunksize=chunksize, buffersize=3):
                got.append(value)
        assert got == list(range(10))
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


def test_a_source_that_blocks() -> None:
    """It blocks its caller, and no results are lost; others go on."""
    go_on = threading.Event()

    def source() -> Iterator[int]:
        yield from range(3)
        assert go_on.wait(LIMIT_S)
        yield from range(3, 6)

    with Executor(1) as pool:
        out: list[int] = []
        thread = threading.Thread(
            target=lambda: out.extend(pool.map(tasks.same, source(), buffersize=2))
        )
        thread.start()
        assert [pool.submit(tasks.same, i).result(LIMIT_S) for i in range(5)] == list(range(5))
        assert list(pool.map(tasks.same, range(5))) == list(range(5))
        go_on.set()
        thread.join(LIMIT_S)
        assert out == list(range(6))


def test_a_slow_source() -> None:
    """Each task is sent before the source is asked for the next, where that takes long."""
    with Executor(1) as pool:

        def source() -> Iterator[int]:
            for i in range(30):
                assert until(lambda: pool.stats()["success"] >= i)  # noqa: B023
                yield i

        assert list(pool.map(tasks.same, source())) == list(range(30))


def test_a_source_that_uses_the_pool() -> None:
    with Executor(2) as pool:
        inner = (pool.submit(tasks.same, i).result(LIMIT_S) for i in range(50))
        assert list(pool.map(tasks.same, inner)) == list(range(50))
        nested = pool.map(tasks.same, pool.map(tasks.same, range(3000)))
        assert list(nested) == list(range(3000))


# ---- failures ----


@pytest.mark.parametrize("chunksize", [1, 4])
def test_an_error_in_its_place(chunksize: int, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Executor(1) as pool:
        got = []
        with pytest.raises(ValueError, match="6"):
            for value in pool.map(
                tasks.mark_and_raise_if,
                itertools.repeat(path),
                range(8),
                [6] * 8,
                chunksize=chunksize,
            ):
                got.append(value)
        assert got == list(range(6))
    ran = tasks.marked(path)
    assert ran[:7] == [str(i) for i in range(7)]
    assert len(ran) == len(set(ran))  # none ran again


def test_a_chunk_that_dies_charges_one(tmp_path: pathlib.Path) -> None:
    """Its items are tried one by one."""
    path = str(tmp_path / "ran")
    with Executor(1, max_attempts=3) as pool:
        results = pool.map(tasks.mark_and_kill_if, [path] * 12, range(12), [6] * 12, chunksize=4)
        got = []
        with pytest.raises(WorkerCrashed):
            for value in results:
                got.append(value)
        assert got == list(range(6))
        # the chunk once, and the item three times
        assert pool.stats()["deaths"] == 4
    ran = tasks.marked(path)
    assert ran.count("6") == 4
    assert ran.count("4") == ran.count("5") == 2
    assert {ran.count(str(i)) for i in range(4)} == {1}


def test_a_chunk_that_dies_for_an_accident(tmp_path: pathlib.Path) -> None:
    with Executor(1) as pool:
        results = pool.map(tasks.die_first, [str(tmp_path / "ran")] * 6, [1] * 6, chunksize=3)
        assert list(results) == [1] * 6


def test_arguments_that_cannot_be_pickled() -> None:
    items = [1, 2, threading.Lock(), 4]
    with Executor(1) as pool:
        results = pool.map(tasks.same, items)
        assert [next(results), next(results)] == [1, 2]
        with pytest.raises(TypeError, match="lock"):
            next(results)
        with pytest.raises(TypeError, match="lock"):
            list(pool.map(tasks.same, items, chunksize=4))
        assert list(pool.map(tasks.same, [5])) == [5]


def test_limits_hold_for_an_item_in_a_chunk() -> None:
    with Executor(1, task_timeout=1.0, initializer=tasks.same) as pool:
        # together they take longer than one limit
        assert list(pool.map(tasks.nap, [0.4] * 4, chunksize=4)) == [0.4] * 4
        with pytest.raises(TaskTimeout) as caught:
            list(pool.options(task_timeout=0.5).map(tasks.nap, [0, 0, 60], chunksize=3))
        assert caught.value.limit == 0.5


# ---- the caller's time ----


def test_timeout_is_the_callers_wait() -> None:
    with Executor(1) as pool, Gate() as gate:
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1  # the worker is there
        results = pool.map(tasks.through_if, [gate.address] * 3, [0, 0, 1], timeout=1.0)
        got = []
        with pytest.raises(TimeoutError) as caught:
            for value in results:
                got.append(value)
        assert got == [0, 0]
        assert type(caught.value) is TimeoutError
        gate.open()
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1
        assert pool.stats()["timeout"] == 0


def test_timeout_while_others_fill_the_queue() -> None:
    with Executor(1, queue_size=2) as pool, Gate() as gate:
        held = [pool.submit(tasks.through, gate.address) for _ in range(10)]
        gate.arrival()
        with pytest.raises(TimeoutError):
            list(pool.map(tasks.same, range(5), timeout=0.1))
        gate.open()
        assert [f.result(LIMIT_S) for f in held] == ["-"] * 10


def test_an_item_that_waits_for_room_is_a_copy() -> None:
    items = [bytearray(b"a" * 300_000) for _ in range(3)]
    with Executor(1, queue_size=2) as pool, Gate() as gate:
        held = [pool.submit(tasks.through, gate.address) for _ in range(5)]
        gate.arrival()
        results = pool.map(bytes, items)
        items[0][:] = b"b" * 300_000
        gate.open()
        assert [value[:1] for value in results] == [b"a"] * 3
        assert [f.result(LIMIT_S) for f in held] == ["-"] * 5


def test_no_wait_no_timeout() -> None:
    with Executor(1) as pool:
        results = pool.map(tasks.same, range(5), timeout=0.0)
        assert until(lambda: pool.stats()["success"] == 5)
        pool.submit(tasks.same).result(LIMIT_S)
        assert list(results) == list(range(5))


def test_a_timeout_cancels_what_waits(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Executor(1) as pool, Gate() as gate:
        first = pool.submit(tasks.through, gate.address)
        gate.arrival()
        with pytest.raises(TimeoutError):
            next(pool.map(tasks.mark, [path] * 50, range(50), timeout=0))
        gate.open()
        first.result(LIMIT_S)
    assert tasks.marked(path) == []


# ---- the end of the loop, and of the pool ----


def test_leaving_the_loop_cancels_what_waits(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Executor(1) as pool, Gate() as gate:
        results = pool.map(tasks.mark, [path] * 20, range(20))
        assert next(results) == 0
        blocker = pool.options(priority=9).submit(tasks.through, gate.address)
        gate.arrival()
        ran = tasks.marked(path)
        results.close()  # type: ignore[attr-defined]
        gate.open()
        blocker.result(LIMIT_S)
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1
        assert tasks.marked(path) == ran


def test_without_a_loop_the_tasks_run(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Executor(1) as pool:
        pool.map(tasks.mark, [path] * 20, range(20))
    assert tasks.marked(path) == [str(i) for i in range(20)]


def test_results_after_shutdown() -> None:
    with Executor(2) as pool:
        results = pool.map(tasks.same, range(500))
        more = pool.map(tasks.same, range(500), buffersize=50)
        chunks = pool.map(tasks.same, range(500), chunksize=10)
    assert list(results) == list(range(500))
    assert list(chunks) == list(range(500))
    got = []
    with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
        for value in more:
            got.append(value)
    assert got == list(range(50))


@pytest.mark.parametrize("chunksize", [1, 3])
def test_failures_after_shutdown(chunksize: int, tmp_path: pathlib.Path) -> None:
    """The values before a failure, and then the failure itself."""
    path = str(tmp_path / "runs")
    with Executor(1, retry="oom", max_attempts=2) as pool:
        dies = pool.map(tasks.kill_if, range(6), [3] * 6, chunksize=chunksize)
        oom = pool.map(tasks.out_of_memory, [path], [9], chunksize=chunksize)
    got = []
    with pytest.raises(WorkerCrashed):
        for value in dies:
            got.append(value)
    assert got == [0, 1, 2]
    with pytest.raises(OutOfMemory):
        next(oom)


def test_the_pool_is_killed_under_the_loop() -> None:
    with Gate() as gate:
        pool = Executor(1)
        results = pool.map(tasks.through_if, [gate.address] * 10, [0, 0, 1, *[0] * 7])
        assert [next(results), next(results)] == [0, 0]
        gate.arrival()
        pool.kill_workers()
        with pytest.raises(BaseException) as caught:
            next(results)
        assert type(caught.value).__name__ in ("CancelledError", "RuntimeError")
        pool.shutdown()


def test_no_reference_is_kept() -> None:
    with Executor(1) as pool:
        for value in pool.map(tasks.make_object, range(10)):
            gone = weakref.ref(value)
            del value
            assert gone() is None
        for value in pool.map(tasks.make_object, range(10), chunksize=3):
            gone = weakref.ref(value)
            del value
            assert gone() is None


def test_several_at_once() -> None:
    with Executor(2) as pool:
        together = zip(
            pool.map(tasks.same, range(3000)),
            pool.map(tasks.same, range(3000), chunksize=7),
            (r.index for r in pool.outcomes(range(3000), fn=tasks.same, ordered=True)),
            strict=True,
        )
        futures = []
        for i, values in enumerate(together):
            assert values == (i, i, i)
            if i % 100 == 0:
                futures.append(pool.submit(tasks.same, i))
        assert [f.result(LIMIT_S) for f in futures] == list(range(0, 3000, 100))


def test_in_several_threads() -> None:
    with Executor(2, queue_size=64) as pool:
        out: list[list[int]] = [[] for _ in range(6)]

        def work(mine: list[int], first: int) -> None:
            mine.extend(pool.map(tasks.same, range(first, first + 1000), chunksize=1 + first % 3))

        threads = [threading.Thread(target=work, args=(out[t], t * 1000)) for t in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
    assert out == [list(range(t * 1000, t * 1000 + 1000)) for t in range(6)]


def test_a_caller_that_is_slow() -> None:
    with Executor(1) as pool:
        source = Source(range(200))
        began = time.monotonic()
        for i, value in enumerate(pool.map(tasks.same, source, buffersize=3)):
            assert value == i
            assert source.pulled <= i + 1 + 3
            if i < 20:
                assert until(lambda: pool.stats()["success"] >= min(source.pulled, 200))
        assert time.monotonic() - began < LIMIT_S
