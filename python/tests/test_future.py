# SPDX-License-Identifier: MIT
"""Future: cancel and stop against each state, running(), progress, times."""

from __future__ import annotations

import asyncio
import concurrent.futures
import pathlib
import pickle
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, as_completed, wait
from typing import Any

import pytest

import executor_tasks as tasks
from conftest import until
from executor_tasks import Gate

from gpudispatch import Executor, Future, RemoteTraceback, WorkerCrashed
from gpudispatch.engine import Engine
from gpudispatch.inbox import Inbox

LIMIT_S = 60.0


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(2) as pool:
        yield pool


@pytest.fixture(scope="module")
def one() -> Iterator[Executor]:
    with Executor(1, grace=0.2) as pool:
        yield pool


def incarnations(pool: Executor) -> list[int]:
    return [row["incarnation"] for row in pool.slots()]


def ended(future: Future[Any]) -> bool:
    wait([future], LIMIT_S)
    return future.done()


# ---- the standard interface ----


def test_is_the_standard_one(pool: Executor) -> None:
    future = pool.submit(pow, 2, 5)
    assert isinstance(future, concurrent.futures.Future)
    assert isinstance(future, Future)
    assert future.result(LIMIT_S) == 32
    assert (future.done(), future.running(), future.cancelled()) == (True, False, False)
    assert future.exception() is None
    assert "finished returned int" in repr(future)
    with pytest.raises(TimeoutError), Gate() as gate:
        pool.submit(tasks.through, gate.address).result(0.01)


def test_wait_and_as_completed(pool: Executor) -> None:
    with Gate() as gate:
        slow = pool.submit(tasks.through, gate.address, "slow")
        quick = [pool.submit(tasks.same, i) for i in range(5)]
        done, not_done = wait([slow, *quick], LIMIT_S, FIRST_COMPLETED)
        assert slow in not_done
        assert done
        first = as_completed([slow, *quick], LIMIT_S)
        assert {next(first).result() for _ in range(5)} == set(range(5))
        gate.open()
        assert next(first) is slow


def test_cancelled_futures_wake_waiters(one: Executor) -> None:
    with Gate() as gate:
        running = one.submit(tasks.through, gate.address)
        gate.arrival()
        waiting = [one.submit(tasks.same, i) for i in range(3)]
        seen: list[Future[Any]] = []
        waiting[0].add_done_callback(seen.append)
        waiter = threading.Thread(target=wait, args=(waiting, LIMIT_S))
        waiter.start()
        assert [f.cancel() for f in waiting] == [True] * 3
        waiter.join(LIMIT_S)
        assert not waiter.is_alive()
        assert set(as_completed(waiting, LIMIT_S)) == set(waiting)
        assert seen == waiting[:1]
        for future in waiting:
            assert future.cancelled()
            assert future.done()
            assert not future.running()
            assert future.cancel()
            with pytest.raises(CancelledError):
                future.result(0)
        gate.open()
        assert running.result(LIMIT_S) == "-"


def test_asyncio(pool: Executor) -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        wrapped = [asyncio.wrap_future(pool.submit(tasks.same, i)) for i in range(10)]
        run = [loop.run_in_executor(pool, tasks.same, i) for i in range(10, 20)]
        return await asyncio.gather(*wrapped, *run)

    assert asyncio.run(main()) == list(range(20))


def test_pickling_a_future_is_refused(pool: Executor) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(pool.submit(tasks.same))
    assert isinstance(
        pool.submit(tasks.same, pool.submit(tasks.same)).exception(LIMIT_S), TypeError
    )


# ---- running() and what a future knows ----


def test_running(one: Executor) -> None:
    with Gate() as gate:
        first = one.submit(tasks.through, gate.address)
        second = one.submit(tasks.same)
        gate.arrival()
        assert first.running()
        assert not second.running()
        assert until(first.running)
        assert not first.done()
        gate.open()
        first.result(LIMIT_S)
        assert not first.running()
        second.result(LIMIT_S)
        assert not second.running()


def test_running_without_the_event(one: Executor) -> None:
    """STARTED events can be dropped: running() knows all the same."""
    with Gate() as gate:
        future = one.submit(tasks.through, gate.address)
        gate.arrival()
        assert until(lambda: future._started)
        future._started = None  # as if it had been
        assert future.running()
        assert future.cancel() is False
        gate.open()
        assert future.result(LIMIT_S) == "-"
        assert not future.running()
        assert future.attempt == 1


def test_started_events_are_dropped_when_too_many_wait() -> None:
    """While nobody reads, they are dropped; no outcome is, and nothing hangs."""
    with Executor(2, queue_size=4096) as pool:
        stands, stop = threading.Event(), threading.Event()
        tasks.called_back(pool, lambda _: (stands.set(), stop.wait(LIMIT_S)))
        assert stands.wait(LIMIT_S)  # the pool's thread: it reads no more
        futures = [pool.submit(tasks.same, i) for i in range(4000)]
        assert until(lambda: pool.stats()["success"] == 4001)
        assert pool.stats()["events_dropped"]
        stop.set()
        assert [f.result(LIMIT_S) for f in futures] == list(range(4000))
        assert not any(f.running() for f in futures)
        assert all(f.attempt == 1 for f in futures)


def test_log_tail(one: Executor) -> None:
    future = one.submit(tasks.say_and, "raise")
    assert isinstance(future.exception(LIMIT_S), Exception)
    assert "last words" in future.log_tail
    assert Future[int]().log_tail == ""


def test_times_device_and_attempt(one: Executor) -> None:
    with Gate() as gate:
        before = time.monotonic()
        future = one.submit(tasks.through, gate.address)
        assert future.times == (0.0, 0.0, 0.0, 0.0) or future.times.started
        gate.arrival()
        assert until(lambda: future._started)
        assert future.device == "cpu:0"
        assert future.attempt == 1
        running = future.times
        assert running.ended == 0.0
        gate.open()
        future.result(LIMIT_S)
        times = future.times
        assert before <= times.queued <= times.sent <= times.started <= times.ended
        assert times.ended <= time.monotonic()
        assert times.started == running.started
        assert times._fields == ("queued", "sent", "started", "ended")
    waiting = Future[int]()
    assert (waiting.device, waiting.attempt, waiting.progress) == (None, 0, None)


def test_progress(one: Executor) -> None:
    with Gate() as gate:
        future = one.submit(tasks.report, gate.address, 0.25, "a quarter")
        gate.arrival()
        assert until(lambda: future.progress)
        assert future.progress == (0.25, "a quarter")
        assert future.progress is not None
        assert future.progress.fraction == 0.25
        assert future.running()
        gate.open()
        future.result(LIMIT_S)
        assert future.progress == (0.25, "a quarter")


# ---- cancel ----


def test_cancel_changes_no_incarnation(pool: Executor, tmp_path: pathlib.Path) -> None:
    """What runs goes on undisturbed, what has ended stays, what waits never runs."""
    done = [pool.submit(tasks.same, i) for i in range(5)]
    assert ended(done[-1])
    wait(done)
    before = incarnations(pool)
    with Gate() as gate:
        running = [pool.submit(tasks.through_unless_cancelled, gate.address) for _ in range(2)]
        gate.arrivals(2)
        path = str(tmp_path / "ran")
        waiting = [pool.submit(tasks.mark, path, i) for i in range(3000)]
        futures = done + running + waiting
        assert [f.cancel() for f in futures] == [False] * 7 + [True] * 3000
        assert [f.cancel() for f in futures] == [False] * 7 + [True] * 3000
        gate.open()
        assert [f.result(LIMIT_S) for f in running] == ["False nothing"] * 2
        assert [f.result(0) for f in done] == list(range(5))
        assert all(f.cancelled() for f in waiting)
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1
    assert tasks.marked(path) == []
    assert incarnations(pool) == before
    assert all(not f.running() for f in futures)


def race(pool: Executor, tmp_path: pathlib.Path, rounds: int) -> dict[str, int]:
    """Cancels tasks at all points of their lives: True must mean that it never ran, and False that
    it ended undisturbed."""
    path = str(tmp_path / "ran")
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    counts = {"cancelled": 0, "not": 0}
    held: list[tuple[int, Future[Any], bool]] = []
    for i in range(rounds):
        future = pool.submit(tasks.mark, path, i)
        way = rng.randrange(6)
        if way == 0:
            pass
        elif way == 1:
            end = time.perf_counter() + rng.random() * 0.0004
            while time.perf_counter() < end:
                pass
        elif way == 2:
            while not (future._id and (future.running() or future.done())):
                pass
        elif way == 3:
            wait([future], rng.random() * 0.001)
        elif way == 4:
            pool.submit(tasks.same)
        else:
            future.add_done_callback(lambda f: f.cancel())
        said = future.cancel()
        held.append((i, future, said))
        counts["cancelled" if said else "not"] += 1
        if said:
            assert future.cancelled()
    for i, future, said in held:
        if said:
            assert future.cancelled()
        else:
            assert future.result(LIMIT_S) == i
    ran = tasks.marked(path)
    assert len(ran) == len(set(ran))
    assert {int(n) for n in ran} == {i for i, _, said in held if not said}
    return counts


def test_cancel_races_each_state(pool: Executor, tmp_path: pathlib.Path) -> None:
    before = incarnations(pool)
    counts = race(pool, tmp_path, 1_000)
    assert min(counts.values()) > 50
    assert incarnations(pool) == before


@pytest.mark.slow
def test_cancel_races_each_state_at_length(pool: Executor, tmp_path: pathlib.Path) -> None:
    race(pool, tmp_path, 10_000)


def test_cancel_from_several_threads(pool: Executor) -> None:
    with Gate() as gate:
        running = [pool.submit(tasks.through, gate.address) for _ in range(2)]
        gate.arrivals(2)
        futures = [pool.submit(tasks.same, i) for i in range(500)]
        said: list[list[bool]] = []
        threads = [
            threading.Thread(target=lambda: said.append([f.cancel() for f in futures]))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert said == [[True] * 500] * 4
        gate.open()
        wait(running)


def test_cancel_from_a_callback(one: Executor) -> None:
    """The pool's own thread cancels what waits in the core: it cannot wait for itself."""
    with Gate() as gate:
        said: list[bool] = []
        first = one.submit(tasks.through, gate.address)
        gate.arrival()
        rest = [one.submit(tasks.through, gate.address, i) for i in range(2000)]
        first.add_done_callback(lambda _: said.extend(f.cancel() for f in reversed(rest)))
        gate.let_one_go()
        assert until(lambda: len(said) == len(rest))
        gate.open()
        wait(rest, LIMIT_S)
        assert [f.cancelled() for f in reversed(rest)] == said
        assert said.count(False) <= 2


INTERRUPTED = {"deliver": Engine, "_take_of": Inbox, "_give_up": Future}


@pytest.mark.parametrize("at", INTERRUPTED)
def test_an_interrupted_cancel_loses_nothing(
    one: Executor, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Ctrl-C between two lines of the main thread, while a callback holds the pool's thread."""
    held, goes = threading.Event(), threading.Event()
    where = INTERRUPTED[at]
    function, left = getattr(where, at), [1]

    def interrupted(*args: Any) -> Any:
        here = threading.current_thread() is threading.main_thread()
        if here and left and at != "_take_of":
            left.pop()
            raise KeyboardInterrupt
        done = function(*args)
        if here and left:
            left.pop()
            raise KeyboardInterrupt
        return done

    with Gate() as gate:
        first = one.submit(tasks.through, gate.address)
        first.add_done_callback(lambda _: (held.set(), goes.wait(LIMIT_S)))
        gate.arrival()
        rest = [one.submit(tasks.through, gate.address, i) for i in range(2000)]
        gate.let_one_go()
        assert held.wait(LIMIT_S)
        waits = rest[-1] if at == "_give_up" else rest[900]  # in the package, in the core
        monkeypatch.setattr(where, at, interrupted)
        try:
            waits.cancel()
        except KeyboardInterrupt:
            pass
        goes.set()
        assert ended(waits)
        assert waits.cancelled()
        gate.open()
        wait(rest, LIMIT_S)


def test_a_cancelled_future_never_stops_the_thread(one: Executor) -> None:
    """set_result of one that its owner has cancelled by the base class."""
    with Gate() as gate:
        future = one.submit(tasks.through, gate.address)
        gate.arrival()
        assert concurrent.futures.Future.cancel(future)
        gate.open()
        assert one.submit(tasks.same, 3).result(LIMIT_S) == 3
        assert future.cancelled()


def test_cancel_and_retries(tmp_path: pathlib.Path) -> None:
    """A cancel() that says False costs a running task nothing, its further attempts included."""
    with Executor(1, max_attempts=3) as pool, Gate() as gate:
        future = pool.submit(tasks.through_then_die_once, gate.address, str(tmp_path / "runs"))
        gate.arrival()
        assert future.cancel() is False
        gate.open()
        assert future.result(LIMIT_S) == 2


# ---- stop ----


def test_stop_what_waits(one: Executor, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Gate() as gate:
        running = one.submit(tasks.through, gate.address)
        gate.arrival()
        waiting = [one.submit(tasks.mark, path, i) for i in range(2000)]
        assert all(f.stop(kill=bool(i % 2)) for i, f in enumerate(waiting))
        assert all(ended(f) and f.cancelled() for f in waiting)
        assert running.running()
        gate.open()
        assert running.result(LIMIT_S) == "-"
    assert tasks.marked(path) == []
    assert not waiting[0].stop()
    assert not running.stop()


@pytest.mark.parametrize("kill", [True, False])
def test_stop_what_runs(kill: bool, tmp_path: pathlib.Path) -> None:
    """Its code sees cancelled() and an exception; the worker lives if it heeds that."""
    path = str(tmp_path / "saw")
    with Executor(1, grace=60.0) as pool, Gate() as gate:
        future = pool.submit(tasks.tell_what_stops_me, gate.address, path)
        gate.arrival()
        before = incarnations(pool)
        assert future.stop(kill=kill)
        assert ended(future)
        assert future.cancelled()
        with pytest.raises(CancelledError):
            future.result(0)
        assert tasks.marked(path) == ["True", "Stopped"]
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1
        assert incarnations(pool) == before
        assert pool.stats()["deaths"] == 0


def test_stop_kills_after_the_grace() -> None:
    with Executor(1, grace=0.05) as pool, Gate() as gate:
        future = pool.submit(tasks.deaf, gate.address)
        pid, _ = gate.arrival()
        assert future.stop()
        assert ended(future)
        assert future.cancelled()
        assert pool.submit(tasks.pid).result(LIMIT_S) != pid


def test_stop_without_kill_never_kills() -> None:
    with Executor(1, grace=0.02) as pool, Gate() as gate:
        future = pool.submit(tasks.deaf, gate.address)
        pid, _ = gate.arrival()
        assert future.stop(kill=False)
        gate.arrival()  # it has seen the exception and comes again
        # longer than the grace, for the pool of another pid
        with Executor(1, grace=0.02) as other:
            assert other.submit(tasks.deaf, gate.address)
            _, _ = gate.arrival()
            assert not future.done()
            gate.open()
            assert ended(future)
        assert pool.submit(tasks.pid).result(LIMIT_S) == pid


def test_stop_after_stop(one: Executor) -> None:
    with Gate() as gate:
        future = one.submit(tasks.deaf, gate.address)
        gate.arrival()
        assert future.stop(kill=False)
        gate.arrival()
        assert future.stop(kill=True)
        assert ended(future)
        assert future.cancelled()


def test_stop_races_the_end(one: Executor) -> None:
    results = {"done": 0, "cancelled": 0}
    rng = random.Random(7)
    for i in range(300):
        future = one.submit(tasks.same, i)
        end = time.perf_counter() + rng.random() * 0.0004
        while time.perf_counter() < end:
            pass
        future.stop(kill=bool(i % 2))
        assert ended(future)
        if future.cancelled():
            results["cancelled"] += 1
        else:
            assert future.result(0) == i
            results["done"] += 1
    assert one.submit(tasks.same, 1).result(LIMIT_S) == 1
    print(results)


# ---- results ----


def test_exceptions_arrive_as_themselves(pool: Executor) -> None:
    error = pool.submit(tasks.raises, "kept").exception(LIMIT_S)
    assert isinstance(error, tasks.Kept)
    assert (error.args, error.more) == ((5,), "text")
    assert isinstance(error.__cause__, RemoteTraceback)
    assert "raise Kept(5" in str(error.__cause__)
    assert "in raises" in str(error.__cause__)
    chained = pool.submit(tasks.raises, "chained").exception(LIMIT_S)
    assert isinstance(chained, ValueError)
    assert "KeyError: 'first'" in str(chained.__cause__)
    for kind, base in (("exit", SystemExit), ("interrupt", KeyboardInterrupt)):
        assert type(pool.submit(tasks.raises, kind).exception(LIMIT_S)) is base


def test_dead_workers(pool: Executor) -> None:
    futures = [pool.submit(tasks.kill_if, i, 3) for i in range(10)]
    for i, future in enumerate(futures):
        error = future.exception(LIMIT_S)
        assert isinstance(error, WorkerCrashed) if i == 3 else error is None
    assert futures[3].device in ("cpu:0", "cpu:1")
    assert futures[3].attempt == 1
