# SPDX-License-Identifier: MIT
"""Executor: how a pool is made, what it promises to submit, and how it ends."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import pathlib
import re
import signal
import threading
import time
import warnings
import weakref
from concurrent.futures import BrokenExecutor, CancelledError
from typing import Any

import pytest

import executor_tasks as tasks
from conftest import Remains, descendants, until
from executor_tasks import Gate
from programs import script

import gpudispatch
from gpudispatch import (
    DeviceError,
    Executor,
    IgnoredArgument,
    NoWorker,
    WorkerCrashed,
)

LIMIT_S = 60.0
WALL_S = 20.0  # what takes milliseconds on an idle machine, on a busy one

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def names(pool: Executor) -> list[str]:
    return [row["name"] for row in pool.devices()]


def incarnations(pool: Executor) -> list[tuple[int, int]]:
    return [(row["slot"], row["incarnation"]) for row in pool.slots()]


# ---- which workers ----


def test_a_number_means_cpus() -> None:
    with Executor(3) as pool:
        assert names(pool) == ["cpu:0", "cpu:1", "cpu:2"]
        assert pool.submit(pow, 2, 8).result(LIMIT_S) == 256
    with Executor(max_workers=2, devices="cpu") as pool:
        assert names(pool) == ["cpu:0", "cpu:1"]
    with Executor(devices="cpu") as pool:
        assert len(names(pool)) == len(os.sched_getaffinity(0))


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a GPU")
def test_neither_means_all_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUDISPATCH_DEVICES", raising=False)
    for pool in (Executor, lambda: gpudispatch.get_executor("none")):
        with pytest.raises(DeviceError, match=re.escape('"cpu:4"')) as caught:
            pool()
        assert caught.value.field == "devices"


def test_default_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUDISPATCH_DEVICES", "cpu:2")
    with Executor() as pool:
        assert names(pool) == ["cpu:0", "cpu:1"]
    with Executor(1) as pool:
        assert names(pool) == ["cpu:0"]
    with Executor(devices="cpu:3") as pool:
        assert names(pool) == ["cpu:0", "cpu:1", "cpu:2"]


def test_fake_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUDISPATCH_DEVICES", "fake:4")
    with Executor() as pool, Gate() as gate:
        futures = [pool.submit(tasks.where_through, gate.address) for _ in range(4)]
        gate.arrivals(4)
        gate.open()
        ran = [f.result(LIMIT_S) for f in futures]
        assert sorted(ran) == [(f"fake:{i}",) for i in range(4)]
        assert [(f.device,) for f in futures] == ran


@pytest.mark.parametrize(
    ("arguments", "workers"),
    [
        (
            {"devices": "cpu:2", "workers_per_device": 2},
            [("cpu:0",), ("cpu:0",), ("cpu:1",), ("cpu:1",)],
        ),
        (
            {"devices": "fake:4", "devices_per_worker": 2},
            [("fake:0", "fake:1"), ("fake:2", "fake:3")],
        ),
        ({"devices": ["cpu:1"], "workers_per_device": 2}, [("cpu:0",), ("cpu:0",)]),
        ({"devices": ["fake:2"]}, [("fake:0",), ("fake:1",)]),
    ],
)  # fmt: skip
def test_workers_and_devices(arguments: dict[str, Any], workers: list[tuple[str, ...]]) -> None:
    with Executor(**arguments) as pool, Gate() as gate:
        futures = [pool.submit(tasks.where_through, gate.address) for _ in workers]
        gate.arrivals(len(workers))
        gate.open()
        assert sorted(f.result(LIMIT_S) for f in futures) == workers


def test_mp_context_is_ignored_with_one_warning() -> None:
    assert issubclass(IgnoredArgument, UserWarning)
    assert IgnoredArgument is not UserWarning
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with Executor(1, mp_context=object()) as pool:
            assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1
    assert [w.category for w in caught] == [IgnoredArgument]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Executor(1, mp_context=None).shutdown()


# ---- submit ----


def test_forty_tasks_and_one_kill() -> None:
    with Executor(2) as pool:
        futures = [pool.submit(tasks.kill_if, i, 17) for i in range(40)]
        errors = {i: f.exception(LIMIT_S) for i, f in enumerate(futures)}
        failed = {i: e for i, e in errors.items() if e is not None}
        assert list(failed) == [17]
        assert isinstance(failed[17], WorkerCrashed)
        assert failed[17].signal == signal.SIGKILL
        assert [f.result() for i, f in enumerate(futures) if i != 17] == [
            *range(17),
            *range(18, 40),
        ]
        stats = pool.stats()
        assert (stats["success"], stats["crashed"], stats["deaths"]) == (39, 1, 1)


def test_a_worker_killed_from_outside() -> None:
    with Executor(2) as pool, Gate() as gate:
        futures = [pool.submit(tasks.through, gate.address, i) for i in range(40)]
        pid, value = gate.arrival()
        gate.arrival()
        os.kill(pid, signal.SIGKILL)
        assert isinstance(futures[int(value)].exception(LIMIT_S), WorkerCrashed)
        gate.open()
        done = [f.exception(LIMIT_S) for f in futures]
        assert [type(e) for e in done if e is not None] == [WorkerCrashed]


def test_never_broken_by_deaths() -> None:
    with Executor(1) as pool:
        for i in range(6):
            assert isinstance(pool.submit(tasks.kill_me).exception(LIMIT_S), WorkerCrashed)
            assert pool.submit(tasks.same, i).result(LIMIT_S) == i


def test_forty_thousand_submits() -> None:
    with Executor(1) as pool, Gate() as gate:
        first = pool.submit(tasks.through, gate.address)
        gate.arrival()
        opener = threading.Timer(WALL_S, gate.open)  # a submit that blocks goes on, too late
        opener.start()
        began, began_at = time.thread_time(), time.monotonic()
        futures = [pool.submit(tasks.same, i) for i in range(40_000)]
        took, took_in_all = time.thread_time() - began, time.monotonic() - began_at
        opener.cancel()
        opener.join()
        assert pool.stats()["queued"] <= 1024
        gate.open()
        assert [f.result(LIMIT_S) for f in futures] == list(range(40_000))
        assert first.done()
    assert took <= 1.0
    assert took_in_all < WALL_S


def test_order_and_priority() -> None:
    """Tasks start in order; a higher priority goes first, also where they wait in the package."""
    with Executor(1, queue_size=4) as pool, Gate() as gate:
        order: list[str] = []
        first = pool.submit(tasks.through, gate.address)
        gate.arrival()
        sent = [(p, i) for i in range(40) for p in (0, 5, -5)]
        views = {p: pool.options(priority=p) for p in (0, 5, -5)}
        futures = []
        for priority, i in sent:
            future = views[priority].submit(tasks.same, f"{priority}/{i}")
            future.add_done_callback(lambda f: order.append(f.result()))
            futures.append(future)
        gate.open()
        for future in futures:
            future.result(LIMIT_S)
        assert until(lambda: len(order) == len(sent))
        assert first.done()
    for priority in views:
        mine = [o for o in order if o.startswith(f"{priority}/")]
        assert mine == [f"{priority}/{i}" for i in range(40)]
    # the first four were in the core, and may have been sent ahead, before the others came
    ranks = [int(o.partition("/")[0]) for o in order if not o.endswith(("/0", "/1"))]
    assert ranks == sorted(ranks, reverse=True)


def test_submit_from_callbacks() -> None:
    results: list[int] = []
    done = threading.Event()

    with Executor(2) as pool:

        def again(future: gpudispatch.Future[int]) -> None:
            results.append(future.result())
            if len(results) < 500:
                pool.submit(tasks.same, len(results)).add_done_callback(again)
            else:
                done.set()

        pool.submit(tasks.same, 0).add_done_callback(again)
        assert done.wait(LIMIT_S)
        assert results == list(range(500))
        # with a full core, and with options(block=True), which cannot wait there
        burst: list[gpudispatch.Future[Any]] = []
        more = threading.Event()

        def many(_: object) -> None:
            burst.extend(pool.submit(tasks.same, i) for i in range(3000))
            burst.extend(pool.options(block=True).submit(tasks.same, i) for i in range(10))
            more.set()

        pool.submit(tasks.same).add_done_callback(many)
        assert more.wait(LIMIT_S)
        assert [f.result(LIMIT_S) for f in burst] == [*range(3000), *range(10)]


def test_a_callback_that_raises(caplog: pytest.LogCaptureFixture) -> None:
    def bad(_: object) -> None:
        raise RuntimeError("callback")

    with Executor(1) as pool:
        future = pool.submit(tasks.same, 1)
        future.add_done_callback(bad)
        assert future.result(LIMIT_S) == 1
        assert pool.submit(tasks.same, 2).result(LIMIT_S) == 2
    assert any(r.name == "concurrent.futures" for r in caplog.records)
    caplog.clear()  # it has the frames


def test_block_waits_for_room() -> None:
    with Executor(1, queue_size=2) as pool, Gate() as gate:
        view = pool.options(block=True)
        futures = [view.submit(tasks.through, gate.address, i) for i in range(2)]
        gate.arrival()
        accepted: list[Any] = []
        came = threading.Event()

        def submit() -> None:
            for i in range(2, 6):
                accepted.append(view.submit(tasks.through, gate.address, i))
            came.set()

        thread = threading.Thread(target=submit)
        thread.start()
        # the thread is inside submit(): the core has two tasks, and the third waits in the package
        assert until(lambda: bool(pool._engine.backlog))
        assert not accepted
        gate.open()
        assert came.wait(LIMIT_S)
        thread.join()
        assert [f.result(LIMIT_S) for f in futures + accepted] == list(range(6))


def test_many_threads_submit() -> None:
    with Executor(2, queue_size=64) as pool:
        out: list[list[int]] = [[] for _ in range(8)]

        def work(mine: list[int], first: int) -> None:
            futures = [pool.submit(tasks.same, first + i) for i in range(500)]
            mine.extend(f.result(LIMIT_S) for f in futures)

        threads = [threading.Thread(target=work, args=(out[t], t * 1000)) for t in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert out == [[t * 1000 + i for i in range(500)] for t in range(8)]


# ---- setup ----


def test_initializer() -> None:
    with Executor(2, initializer=tasks.keep, initargs=("model", [1, 2])) as pool:
        assert pool.submit(tasks.kept, "model").result(LIMIT_S) == [1, 2]
        assert isinstance(pool.submit(tasks.kill_me).exception(LIMIT_S), WorkerCrashed)
        assert all(
            f.result(LIMIT_S) == [1, 2]
            for f in [pool.submit(tasks.kept, "model") for _ in range(20)]
        )


def test_all_slots_failed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "gpudispatch")
    with Executor(1, initializer=tasks.fails_in_setup) as pool:
        futures = [pool.submit(tasks.same, i) for i in range(3)]
        errors = [f.exception(LIMIT_S) for f in futures]
        for error in errors:
            assert isinstance(error, NoWorker)
            assert isinstance(error, BrokenExecutor)
            for text in (error.traceback_text, str(error)):
                assert "LookupError: no model" in text
                assert "fails_in_setup" in text  # the line of the traceback
            assert "words of the setup" in error.log_tail
        with pytest.raises(NoWorker) as caught:
            pool.submit(tasks.same)
        assert "LookupError: no model" in caught.value.traceback_text
        for call in (
            lambda: pool.outcomes(range(3), fn=tasks.same),
            lambda: pool.map(tasks.same, range(3)),
            pool.ready,
        ):
            with pytest.raises(NoWorker, match="LookupError: no model"):
                call()
    assert "LookupError: no model" in caplog.text


class TestWorkerClass:
    def test_setup_and_items(self) -> None:
        with Executor(2, worker=tasks.Model, setup={"scale": 3}, base_seed=100) as pool:
            assert pool.submit(7).result(LIMIT_S) == 21
            assert list(pool.map(range(5))) == [0, 3, 6, 9, 12]
            assert list(pool.map(range(5), chunksize=2)) == [0, 3, 6, 9, 12]
            ends = {r.item: r.value for r in pool.outcomes(range(5))}
            assert ends == {i: 3 * i for i in range(5)}
            device, seed = pool.submit("facts").result(LIMIT_S)
            assert (device, seed) in (("cpu:0", 100), ("cpu:1", 101))
            for call in (
                lambda: pool.submit(tasks.same, 1),
                lambda: pool.map(tasks.same, [1]),
                lambda: pool.outcomes([1], fn=tasks.same),
                lambda: pool.submit(1, x=2),
            ):
                with pytest.raises(TypeError):
                    call()  # type: ignore[no-untyped-call]

    def test_batches(self) -> None:
        with Gate() as gate, Executor(
            1, worker=tasks.BatchModel, setup={"gate": gate.address}, max_batch=8
        ) as pool:
            futures = [pool.submit(i) for i in range(20)]
            gate.arrival()
            gate.open()
            values = [f.result(LIMIT_S) for f in futures]
            assert [v[0] for v in values] == list(range(20))
            sizes = [v[1] for v in values]
            assert max(sizes) <= 8
            assert max(sizes[1:]) > 1

    @pytest.mark.parametrize("wrong", [1, 3])
    def test_a_wrong_number_of_results(self, wrong: int) -> None:
        with Executor(1, worker=tasks.BatchModel, setup={"wrong": wrong}, max_batch=4) as pool:
            for future in [pool.submit(i) for i in range(6)]:
                error = future.exception(LIMIT_S)
                assert isinstance(error, ValueError)
                assert re.search(r"returned \d results for \d items", str(error))

    def test_refused(self) -> None:
        with pytest.raises(TypeError, match="process"):
            Executor(1, worker=int)
        with pytest.raises(TypeError, match="setup"):
            Executor(1, setup={"a": 1})
        with pytest.raises(TypeError, match="initializer"):
            Executor(1, initializer=5)  # type: ignore[arg-type]


def test_max_tasks_per_child() -> None:
    with Executor(1, max_tasks_per_child=3) as pool:
        pids = [pool.submit(tasks.pid).result(LIMIT_S) for _ in range(7)]
    assert [pids.count(p) for p in dict.fromkeys(pids)] == [3, 3, 1]
    with Executor(2, max_tasks_per_child=1) as pool:  # one slot at a time renews its worker
        futures = [pool.submit(tasks.pid) for _ in range(6)]
        assert len({f.result(LIMIT_S) for f in futures}) >= 2
        assert until(lambda: pool.stats()["restarts"])


# ---- surroundings of a worker ----


def test_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_STAYS", "stays")
    monkeypatch.setenv("TEST_GOES", "here")
    env = {"TEST_NEW": "new", "TEST_GOES": None, "OMP_NUM_THREADS": "7"}
    with Executor(1, env=env) as pool:
        seen = pool.map(
            tasks.variable, ["TEST_STAYS", "TEST_GOES", "TEST_NEW", "OMP_NUM_THREADS"]
        )
        assert list(seen) == ["stays", None, "new", "7"]


def test_threads_of_numeric_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = [f"{n}_NUM_THREADS" for n in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "RAYON")]
    for name in variables:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "5")
    each = str(max(1, len(os.sched_getaffinity(0)) // 2))
    with Executor(2) as pool:
        assert list(pool.map(tasks.variable, variables)) == [each, "5", each, each, each]


def test_cwd(tmp_path: pathlib.Path) -> None:
    for given in (tmp_path, str(tmp_path)):
        with Executor(1, cwd=given) as pool:
            assert pool.submit(tasks.directory).result(LIMIT_S) == str(tmp_path)
    with Executor(1) as pool:
        assert pool.submit(tasks.directory).result(LIMIT_S) == os.getcwd()


class TestOutput:
    def test_tail(self, capfd: pytest.CaptureFixture[str]) -> None:
        with Executor(1) as pool:
            pool.submit(tasks.say, "quiet").result(LIMIT_S)
            error = pool.submit(tasks.kill_me).exception(LIMIT_S)
        assert "last words" in str(error)
        assert capfd.readouterr() == ("", "")

    def test_inherit(self, capfd: pytest.CaptureFixture[str]) -> None:
        with Executor(1, output="inherit") as pool:
            pool.submit(tasks.say, "loud").result(LIMIT_S)
        assert capfd.readouterr() == ("loud\n", "LOUD\n")

    def test_discard(self, capfd: pytest.CaptureFixture[str]) -> None:
        with Executor(1, output="discard") as pool:
            pool.submit(tasks.say, "gone").result(LIMIT_S)
            error = pool.submit(tasks.kill_me).exception(LIMIT_S)
            assert isinstance(error, WorkerCrashed)
        assert error.log_tail == ""
        assert capfd.readouterr() == ("", "")

    def test_events(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "gpudispatch")
        with Executor(1, output="events") as pool:
            pool.submit(tasks.say, "a line").result(LIMIT_S)
        said = [r for r in caplog.records if "line" in r.getMessage().lower()]
        assert sorted(r.getMessage() for r in said) == ["worker 0: A LINE", "worker 0: a line"]
        assert {(r.slot, r.device) for r in said} == {(0, "cpu:0")}  # type: ignore[attr-defined]

    def test_path(self, tmp_path: pathlib.Path) -> None:
        for given in (str(tmp_path / "{slot}.log"), tmp_path / "{slot}.log"):
            with Executor(2, output=given, initializer=tasks.say_slot, initargs=("kept",)) as pool:
                assert pool.ready(timeout=LIMIT_S)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["0.log", "1.log"]
        for slot in "01":
            lines = (tmp_path / f"{slot}.log").read_text().splitlines()
            assert sorted(lines) == [f"KEPT {slot}"] * 2 + [f"kept {slot}"] * 2


# ---- the end ----


def test_after_shutdown() -> None:
    pool = Executor(1)
    held = pool.submit(tasks.same, 1)
    pool.shutdown()
    assert held.result(0) == 1
    for call in (
        lambda: pool.submit(tasks.same),
        lambda: pool.options(priority=1).submit(tasks.same),
        lambda: pool.map(tasks.same, [1]),
        lambda: pool.outcomes([1], fn=tasks.same),
    ):
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            call()
    assert pool.stats()["success"] == 1
    assert [(row["slot"], row["state"]) for row in pool.slots()] == [(0, "STOPPED")]
    assert [row["name"] for row in pool.devices()] == ["cpu:0"]
    pool.shutdown()
    pool.shutdown(wait=False, cancel_futures=True)
    pool.kill_workers()


def test_shutdown_waits_for_all() -> None:
    with Executor(2, queue_size=8) as pool:
        futures = [pool.submit(tasks.same, i) for i in range(3000)]
    assert [f.result(0) for f in futures] == list(range(3000))


def test_shutdown_cancels_what_has_not_started() -> None:
    with Gate() as gate:
        pool = Executor(1, queue_size=8)
        futures = [pool.submit(tasks.through, gate.address, i) for i in range(100)]
        gate.arrival()
        pool.shutdown(wait=False, cancel_futures=True)
        for future in futures[1:]:
            with pytest.raises(CancelledError):
                future.result(LIMIT_S)
        assert not futures[0].done()
        gate.open()
        pool.shutdown()
        assert futures[0].result(0) == 0


def test_shutdown_without_waiting() -> None:
    with Gate() as gate:
        pool = Executor(1)
        futures = [pool.submit(tasks.through, gate.address, i) for i in range(10)]
        gate.arrival()
        pool.shutdown(wait=False)
        with pytest.raises(RuntimeError):
            pool.submit(tasks.same)
        gate.open()
        assert [f.result(LIMIT_S) for f in futures] == list(range(10))
        pool.shutdown()


@pytest.mark.parametrize("how", ["terminate_workers", "kill_workers"])
def test_terminate_and_kill(how: str) -> None:
    """Both cancel all and close; the first leaves running tasks the grace, with an exception."""
    with Gate() as gate, Gate() as never:
        pool = Executor(2, grace=60.0 if how == "terminate_workers" else 3600.0)
        running = [
            pool.submit(tasks.through_unless_cancelled, gate.address),
            pool.submit(
                tasks.deaf if how == "kill_workers" else tasks.through_unless_cancelled,
                never.address,
            ),
        ]
        gate.arrival()
        never.arrival()  # both run: a worker that starts late would be given what comes behind them
        waiting = [pool.submit(tasks.same, i) for i in range(3000)]
        began = time.monotonic()
        getattr(pool, how)()
        pool.shutdown()
        assert time.monotonic() - began < 30
        assert all(f.cancelled() for f in waiting)
        assert all(f.cancelled() for f in running)
        with pytest.raises(RuntimeError):
            pool.submit(tasks.same)


def test_a_dropped_executor_finishes_its_tasks() -> None:
    before = descendants()
    with Gate() as gate:
        pool = Executor(1)
        gone, engine = weakref.ref(pool), weakref.ref(pool._engine)
        futures = [pool.submit(tasks.through, gate.address, i) for i in range(3000)]
        gate.arrival()
        thread = pool._engine.thread
        del pool
        assert gone() is None
        gate.open()
        assert [f.result(LIMIT_S) for f in futures] == list(range(3000))
    assert thread is not None
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert until(lambda: descendants() <= before)
    del futures
    gc.collect()
    assert engine() is None


def test_a_dropped_executor_that_was_not_used() -> None:
    before = descendants()
    pool = Executor(1)
    gone = weakref.ref(pool)
    del pool
    assert gone() is None
    assert until(lambda: descendants() <= before)


def test_loops_keep_their_executor() -> None:
    assert list(Executor(1).map(tasks.same, range(3000))) == list(range(3000))
    assert sum(r.ok for r in Executor(1).outcomes(range(3000), fn=tasks.same)) == 3000
    view = Executor(1).options(label="x")
    assert view.submit(tasks.attempt).result(LIMIT_S) == (1, "x")


def test_a_dropped_executor_in_a_cycle() -> None:
    """The garbage collector ends it, wherever it runs: it must wait for no lock."""
    before = descendants()
    pool: Any = Executor(1)
    holder = {"pool": pool}
    holder["self"] = holder  # type: ignore[assignment]
    future = pool.submit(tasks.same, 5)
    future.holder = holder
    del pool, holder
    assert future.result(LIMIT_S) == 5
    del future
    gc.collect()
    assert until(lambda: descendants() <= before)


class Mallinfo(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = [
        ("before", ctypes.c_size_t * 7),
        ("uordblks", ctypes.c_size_t),
        ("behind", ctypes.c_size_t * 2),
    ]


def held() -> int:
    """The bytes that malloc has given out, and the resident ones beside its heap: the free end of
    that comes and goes, 6 MiB at a time."""
    libc = ctypes.CDLL(None)
    found, name = 0, ""
    if hasattr(libc, "mallinfo2"):  # from 2.33 on
        libc.mallinfo2.restype = Mallinfo
        found = libc.mallinfo2().uordblks
    for line in pathlib.Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            name = words[-1]
        elif words[0] == "Rss:" and name != "[heap]":
            found += int(words[1]) << 10
    return found


def test_a_hundred_executors() -> None:
    def round_(i: int) -> None:
        pool = Executor(1)
        futures = [pool.submit(tasks.same, b"x" * 10_000) for _ in range(3)]
        assert [len(f.result(LIMIT_S)) for f in futures] == [10_000] * 3
        if i % 3 == 0:
            assert list(pool.map(tasks.same, range(10))) == list(range(10))
        elif i % 3 == 1:
            assert sum(r.ok for r in pool.outcomes(range(10), fn=tasks.same)) == 10
        if i % 4 == 3:
            del pool, futures
        else:
            pool.shutdown(wait=i % 4 != 2)

    remains = Remains()
    found = []
    for rounds in (8, 100):  # in the first, what is made once
        for i in range(rounds):
            round_(i)
        assert until(lambda: not remains.left()), remains.left()
        gc.collect()
        found.append((len(gc.get_objects()), held()))
    (objects, memory), (more_objects, more_memory) = found
    assert more_objects - objects < 50  # one per executor would be 100
    assert more_memory - memory < 400 << 10  # 8 KiB per executor would be 800


def test_exit_with_work_in_flight(tmp_path: pathlib.Path) -> None:
    """Interpreter exit waits for all that was submitted, as the standard library does."""
    done = script(
        tmp_path,
        f"""
        pool = Executor(1, queue_size=4)
        fs = [pool.submit(tasks.mark, {str(tmp_path / "marks")!r}, i) for i in range(200)]
        fs[-1].add_done_callback(lambda f: print("last", f.result()))
        """,
    )
    assert done == (0, "last 199\n", "")
    assert tasks.marked(tmp_path / "marks") == [str(i) for i in range(200)]


def test_exit_without_futures(tmp_path: pathlib.Path) -> None:
    done = script(
        tmp_path,
        """
        pool, unused = Executor(1), Executor(1)
        print(list(pool.map(tasks.same, range(5))))
        it = pool.map(tasks.same, range(5000))
        print(next(it))
        rest = pool.outcomes(range(5000), fn=tasks.same)
        print(next(rest).ok)
        """,
    )
    assert done == (0, "[0, 1, 2, 3, 4]\n0\nTrue\n", "")


# ---- looks ----


def test_ready() -> None:
    with Executor(2) as pool:
        assert pool.ready()
        assert pool.ready(1)
        assert [row["state"] for row in pool.slots()] == ["READY", "READY"]
    with Gate() as gate, Executor(1, initializer=tasks.through, initargs=(gate.address,)) as pool:
        gate.arrival()
        assert pool.ready(timeout=0) is False
        assert pool.ready(timeout=0.01) is False
        gate.open()
        assert pool.ready(timeout=LIMIT_S)


def test_repr() -> None:
    with Executor(2) as pool:
        assert repr(pool) == "<Executor on cpu:2>"


def test_a_task_cannot_make_an_executor() -> None:
    with Executor(1) as pool:
        error = pool.submit(Executor, 1).exception(LIMIT_S)
        assert isinstance(error, RuntimeError)
        assert "a worker process cannot make an Executor" in str(error)
        assert pool.submit(abs, -1).result(LIMIT_S) == 1
