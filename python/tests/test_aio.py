# SPDX-License-Identifier: MIT
"""Coroutines: arun() and aoutcomes() in an event loop, and futures of run_in_executor."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import pathlib
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import executor_tasks
import life_tasks as tasks

from executor_tasks import Gate, marked, through
from gpudispatch import Executor, ResultTooLarge, WorkerCrashed, pace

LIMIT_S = 60.0


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(2) as ex:
        assert ex.ready(timeout=LIMIT_S)
        yield ex


async def in_time(awaitable):  # type: ignore[no-untyped-def]
    return await asyncio.wait_for(awaitable, LIMIT_S)


async def appears(path: pathlib.Path, lines: int = 1) -> None:
    """Waits until tasks have written so many lines."""
    until = time.monotonic() + LIMIT_S
    while not path.exists() or len(path.read_text().splitlines()) < lines:
        assert time.monotonic() < until
        await asyncio.sleep(0.001)


def threads() -> set[str]:
    """The threads of Python by name, and all of this process by number."""
    return {t.name for t in threading.enumerate()} | set(os.listdir("/proc/self/task"))


def test_arun_gives_values_and_raises(pool: Executor) -> None:
    async def main() -> None:
        assert await in_time(pool.arun(tasks.same, 5)) == 5
        with pytest.raises(ValueError, match="no"):
            await in_time(pool.arun(tasks.fail, "no"))
        with pytest.raises(WorkerCrashed):
            await in_time(pool.arun(tasks.kill_self))
        assert await in_time(pool.arun(tasks.same, 6)) == 6

    asyncio.run(main())


def test_no_thread_helps() -> None:
    async def main() -> None:
        before = threads()
        with Executor(1) as ex:
            many = [ex.arun(tasks.same, n) for n in range(3000)]  # more than the core's queue
            assert await in_time(asyncio.gather(*many)) == list(range(3000))
            found = []
            async for r in ex.aoutcomes(range(10), fn=tasks.same, ordered=True):
                found.append(r.value)
                assert len(threads() - before) == 1  # the library's own
            assert found == list(range(10))

    asyncio.run(main())


def test_aoutcomes_of_plain_and_async_sources(pool: Executor) -> None:
    async def source() -> AsyncIterator[int]:
        for n in range(500):
            if n % 50 == 0:
                await asyncio.sleep(0)
            yield n

    async def main() -> None:
        for items in (range(500), source()):
            got = [r async for r in pool.aoutcomes(items, fn=tasks.same)]
            assert sorted(r.value for r in got) == list(range(500))
            assert sorted(r.index for r in got) == list(range(500))

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))


def test_aoutcomes_waits_for_a_source_that_waits_for_outcomes(pool: Executor) -> None:
    async def main() -> None:
        seen: asyncio.Queue[int] = asyncio.Queue()

        async def source() -> AsyncIterator[int]:
            yield 0
            for n in range(1, 20):
                assert await seen.get() == n - 1  # only then the next item is there
                yield n

        async for r in pool.aoutcomes(source(), fn=tasks.same):
            seen.put_nowait(r.value)

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))


def test_a_source_that_raises_ends_the_loop_behind_the_rest(pool: Executor) -> None:
    async def source() -> AsyncIterator[int]:
        for n in range(10):
            yield n
        raise OSError("the disk")

    async def main() -> None:
        got = []
        with pytest.raises(OSError, match="the disk"):
            async for r in pool.aoutcomes(source(), fn=tasks.same):
                got.append(r.value)
        assert sorted(got) == list(range(10))

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))


@pytest.mark.parametrize("on_cancel", ["leave", "ask", "kill"])
def test_cancelled_coroutine(tmp_path: pathlib.Path, on_cancel: str) -> None:
    started, fifo = tmp_path / "started", tmp_path / "fifo"
    os.mkfifo(fifo)

    async def main() -> None:
        with Executor(1, grace=30.0) as ex:
            view = ex.options(on_cancel=on_cancel)
            runs = asyncio.create_task(view.arun(tasks.hold, str(started), str(fifo)))
            await appears(started)
            waits = asyncio.create_task(view.arun(tasks.hold, str(started), str(fifo)))
            await asyncio.sleep(0)
            for task in (waits, runs):
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await in_time(task)
            if on_cancel == "leave":
                fifo.write_text("go on")
            assert await in_time(ex.arun(tasks.same, 1)) == 1
            assert ex.slots()[0]["incarnation"] == 1  # the code gets an exception before a kill
        assert len(started.read_text().splitlines()) == 1  # the one that waited never ran

    asyncio.run(main())


@pytest.mark.parametrize("first", ["arun", "aoutcomes"])
def test_two_loops_at_once_are_an_error(tmp_path: pathlib.Path, first: str) -> None:
    started, fifo = tmp_path / "started", tmp_path / "fifo"
    os.mkfifo(fifo)
    hold = functools.partial(tasks.hold, fifo=str(fifo))
    with Executor(1) as ex:

        async def held() -> Any:
            if first == "arun":
                return await ex.arun(hold, str(started))
            (outcome,) = [r async for r in ex.aoutcomes([str(started)], fn=hold)]
            return outcome.value

        async def other() -> None:
            with pytest.raises(RuntimeError, match="one loop at a time"):
                await ex.arun(tasks.same, 1)
            with pytest.raises(RuntimeError, match="one loop at a time"):
                await anext(ex.aoutcomes([1], fn=tasks.same))

        async def main() -> None:
            runs = asyncio.create_task(held())
            await appears(started)
            try:
                await asyncio.to_thread(asyncio.run, other())
            finally:
                fifo.write_text("end")
            assert await in_time(runs) == "end"

        asyncio.run(main())
        assert asyncio.run(in_time(ex.arun(tasks.same, 2))) == 2  # one after the other: fine


def test_aoutcomes_with_a_journal(pool: Executor, tmp_path: pathlib.Path) -> None:
    path, ran = tmp_path / "night.gdj", str(tmp_path / "ran")
    fn = functools.partial(executor_tasks.mark, ran)

    async def source(n: int) -> AsyncIterator[int]:
        for i in range(n):
            yield i

    async def run(n: int) -> list[tuple[int, int, bool]]:
        loop = pool.aoutcomes(source(n), fn=fn, journal=path)
        return sorted([(r.index, r.value, r.replayed) async for r in loop])

    assert asyncio.run(in_time(run(5))) == [(i, i, False) for i in range(5)]
    assert asyncio.run(in_time(run(7))) == [(i, i, i < 5) for i in range(7)]
    assert sorted(marked(ran)) == [*"0123456"]


@pytest.mark.parametrize("way", ["break", "cancel"])
@pytest.mark.parametrize("on_cancel", ["leave", "ask", "kill"])
def test_leaving_aoutcomes(tmp_path: pathlib.Path, on_cancel: str, way: str) -> None:
    """What has not started never starts; on_cancel decides about the task that runs."""
    path = str(tmp_path / "told")

    async def main() -> None:
        with Executor(1, grace=0.05 if on_cancel == "kill" else 60.0) as ex, Gate() as gate:
            tell = functools.partial(executor_tasks.tell_unless_zero, gate.address, path)
            deaf = functools.partial(executor_tasks.deaf_unless_zero, gate=gate.address)
            first = asyncio.Event()

            async def loop() -> None:
                view = ex.options(on_cancel=on_cancel)
                fn = deaf if on_cancel == "kill" else tell
                async for r in view.aoutcomes([0, *[1] * 900], fn=fn):
                    assert r.index == 0
                    first.set()
                    if way == "break":
                        gate.arrival()
                        break

            runs = asyncio.create_task(loop())
            await first.wait()
            if way == "cancel":
                gate.arrival()
                runs.cancel()
            ended = await asyncio.gather(runs, return_exceptions=True)
            assert isinstance(ended[0], asyncio.CancelledError if way == "cancel" else type(None))
            while ex._engine.sessions:  # after a break the event loop closes the generator
                await asyncio.sleep(0)
            if on_cancel == "leave":
                assert marked(path) == []
                gate.open()
            assert await ex.arun(tasks.same, 1) == 1
            assert ex.slots()[0]["incarnation"] == (2 if on_cancel == "kill" else 1)
            assert ex.stats()["cancelled"] == 899 + (on_cancel == "kill")

    asyncio.run(asyncio.wait_for(main(), LIMIT_S))
    told = {"leave": ["False", "nothing"], "ask": ["True", "Stopped"], "kill": []}
    assert marked(path) == told[on_cancel]


def test_futures_and_coroutines_at_once(pool: Executor) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        futures = [loop.run_in_executor(pool, tasks.same, n) for n in range(500)]
        many = [pool.arun(tasks.same, n) for n in range(500)]
        assert await in_time(asyncio.gather(*many)) == list(range(500))
        assert await in_time(asyncio.gather(*futures)) == list(range(500))
        assert await in_time(pool.arun(tasks.same, 1)) == 1

    asyncio.run(main())


def test_a_coroutine_that_blocks_on_a_future_ends(pool: Executor) -> None:
    async def main() -> int:
        return sum(f.result(LIMIT_S) for f in [pool.submit(tasks.same, n) for n in range(1000)])

    assert asyncio.run(main()) == sum(range(1000))


def test_a_loop_stays_responsive() -> None:
    """After the turn that submits no turn is longer than 50 ms, nor the first one."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        with Executor(2) as ex:
            await loop.run_in_executor(ex, tasks.same, 0)
            futures = [loop.run_in_executor(ex, tasks.same, n) for n in range(40_000)]
            worst, before = 0.0, time.thread_time()
            while not futures[-1].done():
                await asyncio.sleep(0)
                now = time.thread_time()  # of this thread: others on the machine do not count
                worst, before = max(worst, now - before), now
            await asyncio.gather(*futures)
        return worst

    assert asyncio.run(main()) < 0.05


def test_a_loop_that_blocks_gets_few_callbacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them wait for its next turn."""
    now = 0
    ended: list[object] = []
    monkeypatch.setattr(pace.time, "monotonic_ns", lambda: now)
    waiting = pace.Pace(lambda: None)
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        for n in range(40_000):
            waiting.add(loop, n)  # type: ignore[arg-type]
        while now < 10_000_000_000:
            waiting.deliver(ended.append)
            now += waiting.patience() or 0
        assert 0 < len(ended) < 10 * pace.BURST
        loop.run_until_complete(asyncio.sleep(0))  # it says that it has run them
        for _ in range(10):
            waiting.deliver(ended.append)
            loop.run_until_complete(asyncio.sleep(0))
        assert len(ended) > 15 * pace.BURST


def test_arguments_without_room_are_the_error_of_their_coroutine() -> None:
    """Also where they are sent later, when the core has room for a task."""

    async def main() -> None:
        with Gate() as gate, Executor(1, queue_size=2, payload_budget=16 << 20) as ex:
            running = [asyncio.create_task(ex.arun(through, gate.address)) for _ in range(5)]
            await asyncio.sleep(0)
            too_large = asyncio.create_task(ex.arun(len, bytes(32 << 20)))
            behind = [asyncio.create_task(ex.arun(tasks.same, i)) for i in range(3)]
            await asyncio.sleep(0)
            gate.open()
            with pytest.raises(ResultTooLarge):
                await in_time(too_large)
            assert await in_time(asyncio.gather(*behind)) == [0, 1, 2]
            await in_time(asyncio.gather(*running))

    asyncio.run(main())


def test_the_loop_forgets_its_own_descriptor_only() -> None:
    """The dispatcher's number may be another file's before the last coroutine has ended."""

    async def main() -> bytes:
        loop = asyncio.get_running_loop()
        seen: asyncio.Future[bytes] = loop.create_future()
        with Gate() as gate, Executor(1) as ex:
            task = asyncio.create_task(ex.arun(through, gate.address))
            await asyncio.sleep(0)
            number = ex._engine.core.fd()
            gate.arrival()
            gate.open()
            ex.shutdown()  # the loop does not run meanwhile
            ours, theirs = socket.socketpair()
            with ours, theirs, socket.socket(fileno=os.dup2(ours.fileno(), number)) as reused:
                loop.add_reader(reused, lambda: seen.set_result(reused.recv(2)))
                await in_time(task)
                theirs.send(b"hi")
                try:
                    return await in_time(seen)
                finally:
                    loop.remove_reader(reused)

    assert asyncio.run(main()) == b"hi"


def test_a_source_that_was_cancelled_ends_the_loop(pool: Executor) -> None:
    async def source() -> AsyncIterator[int]:
        yield 1
        yield 2
        raise asyncio.CancelledError("of another task")

    async def main() -> list[int]:
        found = []
        with pytest.raises(asyncio.CancelledError, match="of another task"):
            async for r in pool.aoutcomes(source(), fn=tasks.same):
                found.append(r.value)
        return sorted(found)

    assert asyncio.run(main()) == [1, 2]


def test_coroutines_behind_futures_that_fill_the_core() -> None:
    async def main() -> None:
        with Gate() as gate, Executor(1, queue_size=2) as ex:
            futures = [ex.submit(through, gate.address)]
            gate.arrival()
            futures += [ex.submit(tasks.same, i) for i in range(10)]
            coroutines = [asyncio.create_task(ex.arun(tasks.same, i)) for i in range(10)]
            await asyncio.sleep(0)
            gate.open()
            assert await in_time(asyncio.gather(*coroutines)) == list(range(10))
            assert [f.result(LIMIT_S) for f in futures[1:]] == list(range(10))

    asyncio.run(main())


def test_a_coroutine_that_waits_has_a_copy_of_its_arguments() -> None:
    """Its caller may change them meanwhile, as those of a future."""

    async def main() -> None:
        with Gate() as gate, Executor(1, queue_size=1) as ex:
            runs = asyncio.create_task(ex.arun(through, gate.address))
            await asyncio.sleep(0)
            gate.arrival()
            data = bytearray(b"a" * 300_000)
            waits = [asyncio.create_task(ex.arun(tasks.same, data)) for _ in range(3)]
            await asyncio.sleep(0)
            data[:] = b"b" * 300_000
            gate.open()
            assert [bytes(v[:1]) for v in await in_time(asyncio.gather(*waits))] == [b"a"] * 3
            await in_time(runs)

    asyncio.run(main())


@pytest.mark.parametrize("way", ["map", "futures"])
def test_coroutines_beside_others_that_fill_the_core(way: str) -> None:
    """Another thread reads the last events: the descriptor does not tell of the room."""

    async def main() -> None:
        with Executor(2, queue_size=2) as ex:

            def others() -> None:
                if way == "map":
                    assert list(ex.map(tasks.same, range(40))) == list(range(40))
                else:
                    many = [ex.submit(tasks.same, i) for i in range(40)]
                    assert [f.result(LIMIT_S) for f in many] == list(range(40))

            for n in range(100):
                beside = asyncio.get_running_loop().run_in_executor(None, others)
                for _ in range(n % 8):
                    await asyncio.sleep(0)
                assert await in_time(ex.arun(tasks.same, n)) == n
                await in_time(beside)

    asyncio.run(main())


def test_shutdown_under_coroutines(tmp_path: pathlib.Path) -> None:
    started = tmp_path / "started"

    async def main() -> None:
        ex = Executor(1, grace=0.05, queue_size=2)
        runs = asyncio.create_task(ex.arun(tasks.hold_until_stopped, str(started)))
        await appears(started)
        waits = [asyncio.create_task(ex.arun(tasks.same, i)) for i in range(10)]
        await asyncio.sleep(0)
        ex.kill_workers()
        for task in (runs, *waits):
            with pytest.raises(asyncio.CancelledError):
                await in_time(task)
        with pytest.raises(RuntimeError):
            await ex.arun(tasks.same, 1)

    asyncio.run(main())


def test_shutdown_under_more_coroutines_than_the_core_takes() -> None:
    """It finishes what the core has.  What waits in the loop is cancelled."""

    async def main() -> list[Any]:
        with Gate() as gate, Executor(1, queue_size=3) as ex:
            coroutines = [asyncio.create_task(ex.arun(through, gate.address))]
            await asyncio.sleep(0)
            gate.arrival()
            coroutines += [asyncio.create_task(ex.arun(tasks.same, i)) for i in range(10)]
            await asyncio.sleep(0)
            ex.shutdown(wait=False)
            gate.open()
            return await in_time(asyncio.gather(*coroutines, return_exceptions=True))

    ended = [type(value) for value in asyncio.run(main())]
    assert ended[1:3] == [int, int]
    assert set(ended[3:]) == {asyncio.CancelledError}


def test_a_loop_that_is_closed_over_its_tasks(pool: Executor) -> None:
    loop = asyncio.new_event_loop()
    coroutine = pool.arun(tasks.same, 1)
    task = loop.create_task(coroutine)
    loop.run_until_complete(asyncio.sleep(0))
    task.cancel()
    loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
    loop.close()
    assert asyncio.run(in_time(pool.arun(tasks.same, 2))) == 2
