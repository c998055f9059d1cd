# SPDX-License-Identifier: MIT
"""A thread inside Future.result() reads the events itself, and nobody else's outcome suffers."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gpudispatch._core")

import attend_tasks as tasks
from conftest import until
from executor_tasks import called_back

from gpudispatch import Executor
from gpudispatch.errors import ReentryError
from gpudispatch.engine import Engine
from gpudispatch.sessions import SESSION_SHIFT

LONG = 60.0


@pytest.fixture
def ex() -> Iterator[Executor]:
    with Executor(2) as made:
        assert made.submit(tasks.same, 1).result(LONG) == 1
        yield made


@pytest.fixture
def fifo(tmp_path: Path) -> str:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return str(path)


def let_go(fifo: str) -> None:
    with open(fifo, "wb") as f:
        f.write(b"go")


def attended(ex: Executor) -> None:
    """Makes this thread the one that reads."""
    for i in range(20):
        assert ex.submit(tasks.same, i).result(LONG) == i


def in_thread(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function)
    thread.start()
    return thread


@pytest.mark.parametrize("backwards", [False, True])
def test_more_than_the_queue_holds(ex: Executor, backwards: bool) -> None:
    attended(ex)
    for round in range(3):
        some = [ex.submit(tasks.same, i) for i in range(4000)]
        order = range(4000) if not backwards else range(3999, -1, -1)
        assert [some[i].result(LONG) for i in order] == list(order), round


def test_priorities_wait_in_their_order(fifo: str, tmp_path: Path) -> None:
    """The caller sends what waits in the package: the highest priority first."""
    log = str(tmp_path / "log")
    with Executor(1, queue_size=4) as ex:
        attended(ex)
        first = ex.submit(tasks.read, fifo)
        low = [ex.submit(tasks.append, log, i) for i in range(20)]
        high = [ex.options(priority=5).submit(tasks.append, log, 100 + i) for i in range(20)]
        let_go(fifo)
        assert first.result(LONG) == b"go"
        assert [f.result(LONG) for f in low] == list(range(20))
        assert all(f.done() for f in high)
    ran = [int(line) for line in Path(log).read_text().split()]
    assert sorted(ran) == [*range(20), *range(100, 120)]
    assert ran.index(119) < ran.index(19)


def test_failures_and_results_that_do_not_load(ex: Executor) -> None:
    attended(ex)
    good = [ex.submit(tasks.same, i) for i in range(50)]
    bad = ex.submit(tasks.fail, 7)
    bomb = ex.submit(tasks.bomb, os.getpid())
    more = [ex.submit(tasks.same, i) for i in range(50)]
    assert [f.result(LONG) for f in more] == list(range(50))
    assert [f.result(LONG) for f in good] == list(range(50))
    with pytest.raises(ValueError, match="^7$"):
        bad.result(LONG)
    with pytest.raises(ValueError, match="does not load here"):
        bomb.result(LONG)
    assert isinstance(ex.submit(tasks.fail, 8).exception(LONG), ValueError)


def test_the_time_of_a_wait(ex: Executor, fifo: str) -> None:
    attended(ex)
    stuck = ex.submit(tasks.read, fifo)
    for seconds in (0, -1, 0.001, 0.02):
        with pytest.raises(TimeoutError):
            stuck.result(seconds)
        with pytest.raises(TimeoutError):
            stuck.exception(seconds)
    let_go(fifo)
    assert stuck.result(LONG) == b"go"


def test_callbacks_come_while_another_thread_waits(ex: Executor, fifo: str) -> None:
    """The waiting thread meets an outcome that has a callback: it leaves that to the pool's."""
    attended(ex)
    called = threading.Event()
    names: list[str] = []

    def callback(f: futures.Future[Any]) -> None:
        names.append(threading.current_thread().name)
        called.set()

    stuck = ex.submit(tasks.read, fifo)

    def other() -> None:
        for _ in range(3):
            called.clear()
            called_back(ex, callback)
            assert called.wait(LONG)
        let_go(fifo)

    thread = in_thread(other)
    assert stuck.result(LONG) == b"go"
    thread.join()
    assert names == ["gpudispatch-pool"] * 3


def test_callbacks_come_after_a_wait(ex: Executor) -> None:
    """Nobody reads any more: the pool's thread does again."""
    for _ in range(20):
        attended(ex)
        called = threading.Event()
        ex.submit(tasks.same, 1).add_done_callback(lambda f: called.set())
        assert called.wait(LONG)


def test_wait_and_as_completed_after_a_wait(ex: Executor) -> None:
    for _ in range(20):
        attended(ex)
        some = [ex.submit(tasks.same, i) for i in range(10)]
        assert len(futures.wait(some, LONG).done) == 10
        some = [ex.submit(tasks.same, i) for i in range(10)]
        assert sorted(f.result() for f in futures.as_completed(some, LONG)) == list(range(10))


def test_threads_that_wait_at_once(ex: Executor, fifo: str) -> None:
    attended(ex)
    stuck = ex.submit(tasks.read, fifo)
    wrong: list[object] = []

    def other(seed: int) -> None:
        numbers = random.Random(seed)
        for _ in range(60):
            some = [ex.submit(tasks.same, i) for i in range(numbers.randrange(1, 30))]
            got = [f.result(LONG) for f in some]
            if got != list(range(len(some))):
                wrong.append(got)

    threads = [in_thread(lambda seed=seed: other(seed)) for seed in range(4)]  # type: ignore[misc]
    in_thread(lambda: [t.join() for t in threads] and let_go(fifo))
    assert stuck.result(LONG) == b"go"
    assert not wrong


def test_more_tasks_while_one_thread_waits(ex: Executor, fifo: str) -> None:
    """The backlog of another thread goes on, whoever reads."""
    attended(ex)
    stuck = ex.submit(tasks.read, fifo)
    got: list[object] = []

    def other() -> None:
        some = [ex.submit(tasks.same, i) for i in range(3000)]
        view = ex.options(block=True)
        some += [view.submit(tasks.same, i) for i in range(2000)]
        got.extend(f.result(LONG) for f in some)
        let_go(fifo)

    thread = in_thread(other)
    assert stuck.result(LONG) == b"go"
    thread.join()
    assert got == [*range(3000), *range(2000)]


def test_a_cancelled_task_ends_the_wait(fifo: str, tmp_path: Path) -> None:
    second = str(tmp_path / "second")
    os.mkfifo(second)
    with Executor(1) as ex:
        attended(ex)
        running = ex.submit(tasks.read, fifo)
        waiting = ex.submit(tasks.read, second)
        thread = in_thread(lambda: waiting.cancel())
        with pytest.raises(futures.CancelledError):
            waiting.result(LONG)
        thread.join()
        thread = in_thread(lambda: running.stop())
        with pytest.raises(futures.CancelledError):
            running.result(LONG)
        thread.join()


def test_sessions_and_waits_at_once(ex: Executor) -> None:
    attended(ex)
    values: list[object] = []

    def other() -> None:
        for _ in range(5):
            values.extend(r.value for r in ex.outcomes(range(500), fn=tasks.same))

    thread = in_thread(other)
    while thread.is_alive():
        attended(ex)
    thread.join()
    assert Counter(values) == Counter(list(range(500)) * 5)


def test_an_outcome_in_the_hands_of_the_pool(fifo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loop does not begin to wait before it has it."""
    deliver = Engine.deliver

    def late(self: Engine, event: Any) -> None:
        if event.tag >> SESSION_SHIFT:
            threading.Event().wait(0.3)
        deliver(self, event)

    def callback(_: object) -> None:
        inside.set()
        go_on.wait(LONG)

    monkeypatch.setattr(Engine, "deliver", late)
    inside, go_on = threading.Event(), threading.Event()
    values: list[object] = []
    with Executor(1) as ex:
        called_back(ex, callback)
        assert inside.wait(LONG)
        last = ex.submit(tasks.read, fifo)
        loop = lambda: values.extend(r.value for r in ex.outcomes([7], fn=tasks.same))  # noqa: E731
        thread = in_thread(loop)
        assert until(lambda: ex.stats()["accepted"] == 3)
        let_go(fifo)
        assert until(lambda: ex.stats()["success"] == 3)
        go_on.set()
        thread.join(LONG)
        assert values == [7]
        assert last.done()


def test_shutdown_of_another_thread(fifo: str) -> None:
    ex = Executor(1, queue_size=8)
    attended(ex)
    stuck = ex.submit(tasks.read, fifo)
    rest = [ex.submit(tasks.same, i) for i in range(100)]
    thread = in_thread(lambda: (ex.shutdown(wait=False), let_go(fifo)))
    assert stuck.result(LONG) == b"go"
    assert [f.result(LONG) for f in rest] == list(range(100))
    thread.join()
    ex.shutdown()
    with pytest.raises(RuntimeError):
        ex.submit(tasks.same, 1)


def test_a_wait_inside_of_a_wait(ex: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpickling a result waits for another task: the pool's thread does that."""
    attended(ex)
    monkeypatch.setattr(tasks, "nested", lambda: ex.submit(tasks.same, 5).result(LONG))
    for _ in range(10):
        assert ex.submit(tasks.caller).result(LONG).got == 5
        attended(ex)


@pytest.mark.parametrize("sessions", [0, 1])
def test_a_wait_inside_of_unpickling_that_nobody_waits_for(
    ex: Executor, monkeypatch: pytest.MonkeyPatch, sessions: int
) -> None:
    """The pool's thread unpickles, which waits, before it has delivered the result."""
    loops = [ex.outcomes([0], fn=tasks.same) for _ in range(sessions)]
    waits = [
        lambda: ex.submit(tasks.same, 5).result(LONG),
        lambda: next(ex.map(tasks.same, [5])),
        lambda: next(ex.outcomes([5], fn=tasks.same)).value,
    ]
    for wait in waits:
        monkeypatch.setattr(tasks, "nested", wait)
        future = ex.submit(tasks.caller)
        assert until(future.done)
        assert future.result().got == 5
    assert [r.value for loop in loops for r in loop] == [0] * sessions


CALLBACKS = {
    "result": lambda ex: ex.submit(tasks.same, 5).result(LONG),
    "error": lambda ex: type(ex.submit(tasks.fail, 5).exception(LONG)),
    "block": lambda ex: ex.options(block=True).submit(tasks.same, 5).result(LONG),
    "map": lambda ex: list(ex.map(tasks.same, range(20))),
    "outcomes": lambda ex: sorted(r.value for r in ex.outcomes(range(20), fn=tasks.same)),
}


@pytest.mark.parametrize("sessions", [0, 1])
@pytest.mark.parametrize("way", CALLBACKS)
def test_callbacks_that_wait(ex: Executor, way: str, sessions: int) -> None:
    """They wait for each other's outcomes neither in vain nor on a stack that grows."""
    loops = [ex.outcomes([0], fn=tasks.same) for _ in range(sessions)]
    depth: list[int] = []
    values: list[object] = []

    def callback(_: object) -> None:
        if "pool" in threading.current_thread().name:  # and not where it was done before
            depth.append(len(inspect.stack(0)))
        values.append(CALLBACKS[way](ex))

    many = []
    for i in range(300):
        many.append(ex.submit(tasks.same, i))
        many[-1].add_done_callback(callback)
    assert [f.result(LONG) for f in many] == list(range(300))
    assert until(lambda: len(values) == 300)
    assert all(value == values[0] for value in values)
    # One that is added at the moment of its outcome may run inside another, which costs 12 frames.
    assert max(depth, default=0) < min(depth, default=0) + 120
    assert [r.value for loop in loops for r in loop] == [0] * sessions


def test_a_callback_that_waits_too_long(ex: Executor, fifo: str) -> None:
    stuck = ex.submit(tasks.read, fifo)
    caught: list[BaseException] = []

    def callback(_: object) -> None:
        try:
            stuck.result(0.05)
        except TimeoutError as e:
            caught.append(e)

    ex.submit(tasks.same, 1).add_done_callback(callback)
    assert until(lambda: bool(caught))
    let_go(fifo)
    assert stuck.result(LONG) == b"go"


def test_a_wait_in_a_signal_handler(ex: Executor, fifo: str) -> None:
    attended(ex)
    stuck = ex.submit(tasks.read, fifo)
    also = ex.submit(tasks.same, 4)
    got: list[object] = []

    def handler(*_: object) -> None:
        got.append(ex.submit(tasks.same, 3).result(LONG))
        got.append(also.result(LONG))
        let_go(fifo)
        got.append(stuck.result(LONG))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert stuck.result(LONG) == b"go"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert got == [3, 4, b"go"]


def in_handler(ex: Executor, fifo: str, do: Callable[[futures.Future[object]], object]) -> object:
    """What `do` gives in a handler that interrupts a wait.  Its argument is a task that waits in
    the queue of the one worker."""
    stuck = ex.submit(tasks.read, fifo)
    also = ex.submit(tasks.same, 4)
    got: list[object] = []

    def handler(*_: object) -> None:
        try:
            got.append(do(also))
        except Exception as e:
            got.append(e)
        let_go(fifo)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert stuck.result(LONG) == b"go"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert until(also.done)
    return got[0]


@pytest.mark.parametrize("sessions", [0, 1])
def test_a_signal_handler_cancels(fifo: str, sessions: int) -> None:
    with Executor(1) as ex:
        attended(ex)
        loops = [ex.outcomes([0], fn=tasks.same) for _ in range(sessions)]
        got = in_handler(ex, fifo, lambda also: (also.cancel(), also.cancelled()))
        assert got == (True, True)
        assert [r.value for loop in loops for r in loop] == [0] * sessions


def test_a_wait_without_end_in_a_signal_handler(fifo: str) -> None:
    """An error in its place."""
    with Executor(1) as ex:
        attended(ex)
        got = in_handler(ex, fifo, lambda _: list(ex.map(tasks.same, [1])))
        assert isinstance(got, ReentryError)


@pytest.mark.parametrize("how", ["shutdown", "kill_workers"])
@pytest.mark.parametrize("where", ["result", "map"])
def test_a_signal_handler_ends_the_pool(fifo: str, where: str, how: str) -> None:
    """It cannot wait for the end while it interrupts a wait, which then goes on."""
    ex = Executor(1)
    attended(ex)
    inside = threading.Event()

    def handler(*_: object) -> None:
        inside.set()
        getattr(ex, how)()
        ex.shutdown()
        if how == "shutdown":
            let_go(fifo)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with contextlib.suppress(futures.CancelledError, RuntimeError):
            if where == "result":
                assert ex.submit(tasks.read, fifo).result(LONG) == b"go"
            else:
                assert list(ex.map(tasks.read, [fifo])) == [b"go"]
        assert inside.is_set()
    finally:
        signal.signal(signal.SIGALRM, before)
    ex.shutdown()


def test_siblings_cancelled_by_a_callback_of_shutdown(fifo: str) -> None:
    """Each ends, also where one cancels the others or raises what no callback should."""
    ex = Executor(1, queue_size=2)
    stuck = ex.submit(tasks.read, fifo)
    assert until(stuck.running)
    many = [ex.submit(tasks.same, i) for i in range(10)]

    def cancel(_: object) -> None:
        for future in many:
            future.cancel()

    def leave(_: object) -> None:
        raise SystemExit

    many[-2].add_done_callback(leave)
    many[-1].add_done_callback(leave)
    many[5].add_done_callback(cancel)
    with pytest.raises(SystemExit):
        ex.shutdown(wait=False, cancel_futures=True)
    let_go(fifo)
    ex.shutdown()
    assert stuck.result(LONG) == b"go"
    assert all(f.cancelled() for f in many)


def test_cancel_while_a_callback_waits(ex: Executor, fifo: str, tmp_path: Path) -> None:
    """And what has ended is known outside, but for futures with callbacks."""
    inside = threading.Event()
    stuck = [ex.submit(tasks.read, fifo)]

    def callback(_: object) -> None:
        inside.set()
        stuck[0].result(LONG)

    called_back(ex, callback)
    assert inside.wait(LONG)
    other = str(tmp_path / "other")
    os.mkfifo(other)
    stuck.append(ex.submit(tasks.read, other))  # both workers have work
    late = [ex.submit(tasks.same, i) for i in range(10)]
    late[5].add_done_callback(lambda _: None)
    assert [f.cancel() for f in late] == [True] * 10
    let_go(other)
    assert type(ex.submit(tasks.fail, 1).exception(LONG)) is ValueError
    let_go(fifo)
    assert [f.result(LONG) for f in stuck] == [b"go"] * 2


def test_futures_of_a_loop_with_callbacks_that_wait(ex: Executor) -> None:
    async def main() -> None:
        many = [ex.submit(tasks.same, i) for i in range(300)]
        for future in many:
            future.add_done_callback(lambda _: ex.submit(tasks.same, 1).result())
        assert await asyncio.gather(*map(asyncio.wrap_future, many)) == list(range(300))

    asyncio.run(asyncio.wait_for(main(), LONG))


class Interrupt(Exception):
    pass


def test_interrupts_lose_nothing(tmp_path: Path) -> None:
    """A signal's handler raises at any point of the main thread: nothing is lost or run twice."""
    log = str(tmp_path / "log")
    n = interrupts = 0
    armed = False

    def handler(*_: object) -> None:
        nonlocal interrupts
        if armed:
            interrupts += 1
            raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    numbers = random.Random(4)
    try:
        with Executor(2, queue_size=64) as ex:
            attended(ex)
            while interrupts < 300 or n < 4000:
                some = [ex.submit(tasks.append, log, n + i) for i in range(200)]
                for i, future in enumerate(some):
                    while True:
                        try:
                            armed = True
                            signal.setitimer(signal.ITIMER_REAL, numbers.uniform(1e-5, 1e-3))
                            value = future.result(LONG)
                            armed = False
                            break
                        except (Interrupt, RuntimeError):
                            # the second one where the first came inside of Condition.wait, which
                            # then releases a lock that it has not taken again
                            armed = False
                    assert value == n + i
                signal.setitimer(signal.ITIMER_REAL, 0)
                n += 200
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    ran = Counter(int(line) for line in Path(log).read_text().split())
    assert ran == Counter(range(n))
