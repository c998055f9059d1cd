# SPDX-License-Identifier: MIT
"""outcomes() without a journal, and what errors say."""

from __future__ import annotations

import functools
import itertools
import os
import pathlib
import pickle
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

import executor_tasks as tasks
from conftest import threads, until
from executor_tasks import Gate, Source

from gpudispatch import (
    DeviceError,
    Executor,
    GpuDispatchError,
    NoWorker,
    Outcome,
    OutOfMemory,
    RemoteError,
    RemoteTraceback,
    ResultTooLarge,
    SetupError,
    TaskTimeout,
    WorkerCrashed,
)
from gpudispatch.engine import Engine

LIMIT_S = 60.0

pytestmark = pytest.mark.usefixtures("leaves_nothing")


# ---- the loop ----


def test_each_item_once() -> None:
    with Executor(2) as pool:
        ends = list(pool.outcomes(range(5000), fn=tasks.same))
        assert all(type(r) is Outcome for r in ends)
        assert sorted(r.item for r in ends) == list(range(5000))
        assert all(r.ok and r.value == r.item == r.index and r.kind == "success" for r in ends)
        assert all(r.error is None and r.text == "" and not r.replayed for r in ends)
        assert all(r.attempt == 1 and r.device in ("cpu:0", "cpu:1") for r in ends)
        for r in ends:
            assert 0 < r.times.queued <= r.times.sent <= r.times.started <= r.times.ended
        assert list(pool.outcomes([], fn=tasks.same)) == []


def test_as_they_end_and_ordered() -> None:
    with Executor(2) as pool, Gate() as gate:
        loop = pool.outcomes(range(10), fn=functools.partial(tasks.first_waits, gate.address))
        first = next(loop)
        assert first.index != 0
        gate.open()
        assert sorted([first.index, *(r.index for r in loop)]) == list(range(10))
        with Gate() as other:
            fn = functools.partial(tasks.first_waits, other.address)
            ordered = pool.outcomes(range(3000), fn=fn, ordered=True)
            opener = threading.Thread(target=lambda: (other.arrival(), other.open()))
            opener.start()
            assert [r.index for r in ordered] == list(range(3000))
            opener.join()


def test_failures_are_values(tmp_path: pathlib.Path) -> None:
    jobs: list[tuple[Any, ...]] = [
        (tasks.same, 1),
        (tasks.raises, "value"),
        (tasks.kill_me,),
        (tasks.exit_now, 7),
        (tasks.spin,),
        (tasks.returns_what_fails_to_pack, "raise"),
        (tasks.same, 2),
    ]
    with Executor(2, task_timeout=1.0, grace=0.5, initializer=tasks.same) as pool:
        ends = {r.index: r for r in pool.outcomes(jobs, fn=tasks.call)}
    kinds = [ends[i].kind for i in range(len(jobs))]
    assert kinds == ["success", "error", "crash", "crash", "timeout", "error", "success"]
    assert [ends[i].ok for i in range(7)] == [True, False, False, False, False, False, True]
    assert isinstance(ends[1].error, ValueError)
    assert ends[1].text == "ValueError: value"
    assert isinstance(ends[2].error, WorkerCrashed)
    assert "signal 9" in ends[2].text
    assert ends[2].log_tail.startswith("last words of")
    assert isinstance(ends[3].error, WorkerCrashed)
    assert ends[3].error.exitcode == 7
    assert isinstance(ends[4].error, TaskTimeout)
    assert "spin" in ends[4].error.stack
    assert "error=" in repr(ends[1])
    assert "value=1" in repr(ends[0])
    assert all(r.value is None for r in ends.values() if not r.ok)


@pytest.mark.parametrize("ordered", [False, True])
def test_items_that_cannot_be_sent(ordered: bool) -> None:
    items = [0, threading.Lock(), 2, 3, threading.Lock(), threading.Lock(), 6]
    with Executor(1) as pool:
        ends = list(pool.outcomes(items, fn=tasks.same, ordered=ordered))
        if ordered:
            assert [r.index for r in ends] == list(range(7))
        ends.sort(key=lambda r: r.index)
        assert [r.index for r in ends] == list(range(7))
        assert [r.ok for r in ends] == [True, False, True, True, False, False, True]
        assert ends[1].kind == "error"
        assert isinstance(ends[1].error, TypeError)
        assert "lock" in ends[1].text
        assert ends[1].item is items[1]
        assert [r.value for r in ends if r.ok] == [0, 2, 3, 6]


# ---- how far ahead ----


def test_bounded() -> None:
    with Executor(1, queue_size=16) as pool, Gate() as gate:
        source = Source(itertools.count())
        loop = pool.outcomes(source, fn=functools.partial(tasks.first_waits, gate.address))
        assert source.pulled == 0  # lazy
        opener = threading.Thread(target=lambda: (gate.arrival(), gate.open()))
        opener.start()
        for i, r in enumerate(itertools.islice(loop, 200)):
            assert r.ok
            assert source.pulled <= i + 1 + 16
        opener.join()
        loop.close()  # type: ignore[attr-defined]


def test_bounded_when_ordered() -> None:
    """An item that takes long holds the others back: they are not kept without a bound."""
    with Executor(2, queue_size=8) as pool, Gate() as gate:
        source = Source(range(100))
        fn = functools.partial(tasks.first_waits, gate.address)
        loop = pool.outcomes(source, fn=fn, ordered=True)
        seen: list[int] = []
        thread = threading.Thread(target=lambda: seen.extend(r.index for r in loop))
        thread.start()
        gate.arrival()
        # the others of the window end
        with Executor(1) as other:
            other.submit(tasks.same).result(LIMIT_S)
        assert source.pulled <= 8
        assert not seen
        gate.open()
        thread.join(LIMIT_S)
        assert seen == list(range(100))


def test_a_slow_source() -> None:
    """Each item is sent before the source is asked for the next, where that takes long, and what
    has ended is given out in between."""
    with Executor(1) as pool:
        given: list[int] = []

        def source() -> Iterator[int]:
            for i in range(50):
                assert len(given) >= i - 1
                began = time.monotonic()
                assert until(lambda: pool.stats()["success"] >= i)  # noqa: B023
                assert until(lambda: time.monotonic() > began + 0.001)  # noqa: B023
                yield i

        for r in pool.outcomes(source(), fn=tasks.same):
            given.append(r.index)
        assert sorted(given) == list(range(50))


# ---- sources ----


def test_an_infinite_source() -> None:
    with Executor(2) as pool:
        loop = pool.outcomes(itertools.count(), fn=tasks.same)
        assert sum(r.ok for r in itertools.islice(loop, 3000)) == 3000
        loop.close()  # type: ignore[attr-defined]
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


@pytest.mark.parametrize("ordered", [False, True])
def test_a_source_that_raises(ordered: bool) -> None:
    """Its exception ends the loop once all that was accepted is given out."""

    def source() -> Iterator[int]:
        yield from range(100)
        raise LookupError("source")

    with Executor(2) as pool:
        got = []
        with pytest.raises(LookupError, match="source"):
            for r in pool.outcomes(source(), fn=tasks.same, ordered=ordered):
                got.append(r.index)
        assert sorted(got) == list(range(100))
        with pytest.raises(TypeError):
            next(pool.outcomes(5, fn=tasks.same))  # type: ignore[arg-type]
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


def test_a_source_that_blocks() -> None:
    go_on = threading.Event()

    def source() -> Iterator[int]:
        yield from range(3)
        assert go_on.wait(LIMIT_S)
        yield from range(3, 6)

    with Executor(1) as pool:
        got: list[int] = []
        thread = threading.Thread(
            target=lambda: got.extend(r.index for r in pool.outcomes(source(), fn=tasks.same))
        )
        thread.start()
        assert [pool.submit(tasks.same, i).result(LIMIT_S) for i in range(5)] == list(range(5))
        go_on.set()
        thread.join(LIMIT_S)
        assert sorted(got) == list(range(6))


def test_a_source_of_another_loop() -> None:
    with Executor(2) as pool:
        first = pool.outcomes(range(2000), fn=tasks.same)
        second = pool.outcomes((r.value for r in first), fn=tasks.same)
        assert sorted(r.value for r in second) == list(range(2000))


# ---- leaving ----


def test_leaving_cancels_the_rest(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Executor(1) as pool, Gate() as gate:
        for r in pool.outcomes(
            range(1000), fn=functools.partial(tasks.mark_through, path, gate.address)
        ):
            assert r.ok
            break
        else:
            raise AssertionError
        ran = len(tasks.marked(path))
        gate.open()
        pool.submit(tasks.same).result(LIMIT_S)
        assert len(tasks.marked(path)) <= ran + 1


def test_the_body_raises() -> None:
    with Executor(1) as pool:
        with pytest.raises(KeyError):
            for r in pool.outcomes(range(1000), fn=tasks.same):
                raise KeyError(r.index)
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


def test_an_iterator_nobody_begins() -> None:
    source = Source(range(10))
    with Executor(1) as pool:
        pool.outcomes(source, fn=tasks.same)
        kept = pool.outcomes(source, fn=tasks.same)
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1
        assert len(pool._engine.sessions) == 1
        del kept
        assert not pool._engine.sessions
    assert source.pulled == 0


@pytest.mark.parametrize("at", ["open_session", "close_session"])
def test_an_interrupted_loop_leaves_no_session(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """Ctrl-C right after the session was made, and right before it is closed."""
    with Executor(1) as pool:
        function, left = getattr(Engine, at), [1]

        def interrupted(*args: Any) -> Any:
            done = function(*args) if at == "open_session" else None
            if left:
                left.pop()
                raise KeyboardInterrupt
            return done or function(*args)

        monkeypatch.setattr(Engine, at, interrupted)
        for loop in (lambda: pool.map(tasks.same, [1]), lambda: pool.outcomes([1], fn=tasks.same)):
            left[:] = [1]
            try:
                list(loop())
            except KeyboardInterrupt:
                pass
            assert not left
            assert not pool._engine.sessions
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


def test_shutdown_under_the_loop() -> None:
    """All that was accepted is given out; then the loop says why it ends."""
    with Gate() as gate:
        pool = Executor(1, queue_size=8)
        loop = pool.outcomes(
            itertools.count(), fn=functools.partial(tasks.first_waits, gate.address)
        )
        got = []
        thread = threading.Thread(
            target=lambda: (gate.arrival(), pool.shutdown(wait=False), gate.open())
        )
        thread.start()
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            for r in loop:
                got.append(r)
        thread.join()
        assert sorted(r.index for r in got) == list(range(len(got)))
        assert all(r.ok for r in got)
        assert len(got) >= 8
        pool.shutdown()


def test_kill_under_the_loop() -> None:
    with Gate() as gate:
        pool = Executor(1, queue_size=8)
        loop = pool.outcomes(range(20), fn=functools.partial(tasks.first_waits, gate.address))
        thread = threading.Thread(target=lambda: (gate.arrival(), pool.kill_workers()))
        thread.start()
        got = []
        with pytest.raises(RuntimeError):
            for r in loop:
                got.append(r)
        thread.join()
        assert {r.kind for r in got} == {"cancelled"}
        assert sorted(r.index for r in got) == list(range(len(got)))
        assert all(isinstance(r.error, CancelledError) for r in got)
        pool.shutdown()


def test_no_reference_is_kept() -> None:
    with Executor(1) as pool:
        for r in pool.outcomes(range(20), fn=tasks.make_object):
            gone = weakref.ref(r.value)
            outcome = weakref.ref(r) if hasattr(r, "__weakref__") else None
            del r
            assert gone() is None
            assert outcome is None or outcome() is None


def test_label_and_priority() -> None:
    with Executor(1) as pool:
        ends = list(pool.outcomes([0], fn=tasks.attempt, label="night", priority=3))
        assert ends[0].value == (1, "night")


def test_the_highest_priority_first(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Executor(1) as pool, Gate() as gate:
        held = pool.submit(tasks.through, gate.address)
        gate.arrival()
        pool.submit(tasks.same), pool.submit(tasks.same)  # may be sent ahead
        loops = []
        for n, priority in enumerate((-1, None, 5), 1):
            loop = pool.outcomes(
                [priority] * 20, fn=functools.partial(tasks.mark, path), priority=priority
            )
            loops.append(threading.Thread(target=list, args=(loop,)))
            loops[-1].start()
            assert until(lambda: pool.stats()["accepted"] == 3 + 20 * n)  # noqa: B023
        gate.open()
        for thread in loops:
            thread.join(LIMIT_S)
        held.result(LIMIT_S)
    assert tasks.marked(path) == ["5"] * 20 + ["None"] * 20 + ["-1"] * 20


def test_no_thread_but_the_callers() -> None:
    """Of the package, in the middle of a loop: of the library there is one."""
    numbers, names = threads(), threading.enumerate()
    with Executor(2) as pool:
        for r in pool.outcomes(range(100), fn=tasks.same):
            assert r.ok
            assert threading.enumerate() == names
            assert len(threads() - numbers) == 1


def test_in_several_threads_beside_futures() -> None:
    with Executor(2, queue_size=64) as pool:
        out: list[list[int]] = [[] for _ in range(4)]

        def work(mine: list[int]) -> None:
            mine.extend(r.value for r in pool.outcomes(range(1000), fn=tasks.same))

        threads = [threading.Thread(target=work, args=(mine,)) for mine in out]
        for thread in threads:
            thread.start()
        futures = [pool.submit(tasks.same, i) for i in range(2000)]
        assert [f.result(LIMIT_S) for f in futures] == list(range(2000))
        for thread in threads:
            thread.join(LIMIT_S)
    assert [sorted(mine) for mine in out] == [list(range(1000))] * 4


# ---- errors ----


def last_line(error: BaseException) -> str:
    return str(error).splitlines()[-1]


def test_errors_end_with_the_last_lines_of_the_log() -> None:
    """str() of each error that has to do with a worker."""
    with Executor(
        1, task_timeout=1.0, grace=0.1, initializer=tasks.same, retry="oom", max_attempts=2,
        payload_budget=16 << 20,
    ) as pool:  # fmt: skip
        for call, kind in (
            ((tasks.kill_me,), WorkerCrashed),
            ((tasks.kill_me, signal.SIGSEGV), WorkerCrashed),
            ((tasks.exit_now,), WorkerCrashed),
            ((tasks.say_and, "spin"), TaskTimeout),
            ((tasks.say_and, "raise"), RemoteError),
            ((tasks.say_and, "return much"), ResultTooLarge),
            ((tasks.say_and, "run out"), OutOfMemory),
        ):
            error = pool.submit(*call).exception(LIMIT_S)
            assert type(error) is kind, repr(error)
            assert isinstance(error, GpuDispatchError)
            assert error.log_tail
            assert "last lines of the worker's log:" in str(error)
            assert error.message == str(error).splitlines()[0]
            assert last_line(error) == error.log_tail.rstrip().splitlines()[-1]
            assert "last words" in error.log_tail
            if call[-1] not in (signal.SIGSEGV, "spin"):  # these end with a stack
                assert last_line(error).startswith("last words")
            again = pickle.loads(pickle.dumps(error))
            assert str(again) == str(error)
            assert vars(again) == vars(error)


def test_worker_crashed() -> None:
    with Executor(1) as pool:
        for number in (signal.SIGKILL, signal.SIGUSR1, signal.SIGABRT):
            error = pool.submit(tasks.kill_me, number).exception(LIMIT_S)
            assert isinstance(error, WorkerCrashed)
            assert (error.exitcode, error.signal, error.device) == (None, number, "cpu:0")
            assert str(int(number)) in error.message
        for status in (0, 1, 77):
            error = pool.submit(tasks.exit_now, status).exception(LIMIT_S)
            assert isinstance(error, WorkerCrashed)
            assert (error.exitcode, error.signal) == (status, None)
            assert f"status {status}" in error.message


def test_task_timeout() -> None:
    with Executor(1, task_timeout=0.3, initializer=tasks.same) as pool:
        error = pool.submit(tasks.spin).exception(LIMIT_S)
        assert isinstance(error, TaskTimeout)
        assert isinstance(error, TimeoutError)
        assert (error.limit, error.phase) == (0.3, "process")
        assert error.message == "exceeded its time limit of 0.300 s (task_timeout)"
        assert "in spin" in error.stack
    with Executor(1, task_timeout=0.3, grace=0.1, initializer=tasks.same) as pool, Gate() as gate:
        error = pool.submit(tasks.deaf, gate.address).exception(LIMIT_S)
        assert isinstance(error, TaskTimeout)
        assert (error.limit, error.phase) == (0.3, "hard")
        assert "in deaf" in error.stack


def test_exceptions_of_user_code() -> None:
    """As themselves, with the remote traceback; else as RemoteError with type name and text."""
    with Executor(1) as pool:
        kept = pool.submit(tasks.raises, "kept").exception(LIMIT_S)
        assert type(kept) is tasks.Kept
        assert kept.more == "text"
        for kind, name, text in (
            ("unpicklable", "executor_tasks.Unpicklable", "words of it"),
            ("two", "executor_tasks.TwoArguments", "3"),
            ("local", "executor_tasks.raises.<locals>.Local", "made here"),
        ):
            error = pool.submit(tasks.raises, kind).exception(LIMIT_S)
            if type(error).__name__ == "Local":
                continue  # cloudpickle carries even this one
            assert isinstance(error, RemoteError), repr(error)
            assert (error.type_name, error.text) == (name, text)
            assert error.reason
            assert str(error).startswith(f"{name}: {text} (it cannot be ")
            assert error.reason.splitlines()[0] in str(error)
            assert isinstance(error.__cause__, RemoteTraceback)
            assert "in raises" in str(error.__cause__)


def test_an_exception_that_ends_the_process_where_it_is_loaded() -> None:
    with Executor(1) as pool:
        kind = "exits when loaded"
        error = pool.submit(tasks.raises, kind).exception(LIMIT_S)
        assert isinstance(error, RemoteError), repr(error)
        assert str(error) == "ExitsWhenLoaded: words of it (its exception cannot be read: 7)"
        ended = list(pool.outcomes([kind, "kept"], fn=tasks.raises))
        assert sorted(type(r.error).__name__ for r in ended) == ["Kept", "RemoteError"]


def test_results_that_cannot_travel() -> None:
    with Executor(1) as pool:
        error = pool.submit(tasks.make_lock).exception(LIMIT_S)
        assert isinstance(error, TypeError)
        assert "lock" in str(error)
        error = pool.submit(tasks.returns_what_fails_to_load, "raise").exception(LIMIT_S)
        assert isinstance(error, pickle.UnpicklingError)
        assert isinstance(error.__cause__, RemoteTraceback)
        assert "on purpose" in str(error)


def test_result_too_large() -> None:
    with Executor(1, payload_budget=16 << 20) as pool:
        error = pool.submit(tasks.big, 64 << 20).exception(LIMIT_S)
        assert isinstance(error, ResultTooLarge)
        assert error.field == "payload_budget"
        assert error.size > 64 << 20
        assert "payload_budget" in str(error)
        assert len(pool.submit(tasks.big, 1 << 20).result(LIMIT_S)) == 1 << 20
        too_large = pool.submit(len, b"x" * (64 << 20)).exception(LIMIT_S)
        assert isinstance(too_large, ResultTooLarge)
        assert "payload_budget" in str(too_large)
        with Gate() as gate:  # also where it has waited
            held = [pool.submit(tasks.through, gate.address) for _ in range(2000)]
            waited = pool.submit(len, b"x" * (64 << 20))
            gate.open()
            assert isinstance(waited.exception(LIMIT_S), ResultTooLarge)
            assert held[-1].result(LIMIT_S) == "-"
        ends = [r.kind for r in pool.outcomes([1, 64 << 20, 2], fn=tasks.big)]
        assert sorted(ends) == ["error", "success", "success"]


@pytest.mark.skipif(os.path.exists("/dev/nvidiactl"), reason="there is a GPU")
def test_device_error() -> None:
    with pytest.raises(DeviceError) as caught:
        Executor(devices="GPU-0123")
    assert caught.value.field == "devices"
    assert caught.value.code < 0
    assert caught.value.name == "EDEVICE"


def test_a_device_that_fails_under_a_task(tmp_path: pathlib.Path) -> None:
    gpus = tasks.FakeGpus(tmp_path)
    lost: list[str] = []
    with Executor(devices=gpus.devices) as pool, Gate() as gate:

        def lose_next() -> None:
            lost.append(gate.arrival()[1])
            gpus.lose(lost[-1])

        future = pool.submit(tasks.say_where_through, gate.address)
        lose_next()
        loser = threading.Thread(target=lose_next)  # as the loop waits
        loser.start()
        first = future.exception(LIMIT_S)
        (end,) = pool.outcomes([gate.address], fn=tasks.say_where_through)
        loser.join(LIMIT_S)
        assert (end.kind, end.device, end.attempt) == ("device", lost[1], 1)
        for error, device in zip((first, end.error), lost, strict=True):
            assert type(error) is DeviceError
            assert error.device == device
            assert device in error.message
            assert last_line(error) == "last words"
            again = pickle.loads(pickle.dumps(error))
            assert vars(again) == vars(error)


def test_a_setup_that_takes_too_long() -> None:
    with Gate() as gate, Executor(
        1, setup_timeout=2.0, initializer=tasks.through, initargs=(gate.address,)
    ) as pool:
        error = pool.submit(tasks.same).exception(LIMIT_S)
        assert isinstance(error, NoWorker)
        why = error.__cause__
        assert isinstance(why, SetupError)
        assert why.device == "cpu:0"
        assert why.message == "setup exceeded its time limit of 2.000 s (setup_timeout)"
        assert why.message in error.message


@pytest.mark.parametrize("first", ["ready", "result"])
def test_a_setup_that_fails(first: str) -> None:
    """It is the cause of NoWorker, wherever that is raised first."""
    with Executor(1, worker=tasks.Model, setup={"nonsense": 1}) as pool:
        with pytest.raises(NoWorker) as caught:
            pool.ready() if first == "ready" else pool.submit(1).result(LIMIT_S)
    why = caught.value.__cause__
    assert isinstance(why, SetupError)
    assert why.device == "cpu:0"
    assert why.message.startswith("TypeError")
    for error in (caught.value, why):
        assert "nonsense" in error.traceback_text
        assert "Traceback" in error.traceback_text
        assert "TypeError" in last_line(error)
        again = pickle.loads(pickle.dumps(error))
        assert vars(again) == vars(error)
