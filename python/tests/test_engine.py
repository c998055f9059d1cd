# SPDX-License-Identifier: MIT
"""The pool's threads and locks: what interrupts a wait, what fails to start, and what is left."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gpudispatch._core")

import data_tasks
import executor_tasks as tasks
from conftest import gone, until
from executor_tasks import Gate

from gpudispatch import Executor, GpuDispatchError, OutOfMemory
from gpudispatch.inbox import Inbox
from gpudispatch.sessions import Sessions

LIMIT_S = 60.0


@pytest.fixture
def one() -> Iterator[Executor]:
    with Executor(1) as made:
        assert made.submit(tasks.same, 1).result(LIMIT_S) == 1
        yield made


class Interrupt(Exception):
    """Raised by a signal's handler."""


@contextmanager
def handler(function: Any) -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, function)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def interrupt_main() -> None:
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, signal.SIGUSR1)


# ---- signals ----


def test_a_signal_is_seen_while_other_tasks_end() -> None:
    """They end so fast that the thread never comes to a wait, where it looks at signals."""

    def raises(number: int, frame: FrameType | None) -> None:
        raise Interrupt

    def send(then: int) -> None:
        assert until(futures[then].done)
        interrupt_main()

    with Executor(1, queue_size=1 << 16) as pool, Gate() as gate, handler(raises):
        pool.submit(tasks.through, gate.address)
        gate.arrival()
        futures = [pool.submit(tasks.same, n) for n in range(60_000)]
        last = pool.submit(tasks.through, gate.address)
        gate.let_one_go()
        for then in range(5_000, 55_000, 10_000):
            thread = threading.Thread(target=send, args=(then,))
            with pytest.raises(Interrupt):
                thread.start()
                last.result(LIMIT_S)
            assert not futures[-100].done()
            thread.join()
        gate.open()


def test_handlers_run_with_the_signals_that_the_thread_had() -> None:
    """A process that a handler starts inherits the mask."""
    masks: list[set[int]] = []

    def look(number: int, frame: FrameType | None) -> None:
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, []))

    def send() -> None:
        for n in range(100):
            interrupt_main()
            assert until(lambda n=n: len(masks) > n)  # type: ignore[misc]
        gate.open()

    with Executor(1) as pool, Gate() as gate, handler(look):
        long = pool.submit(tasks.through, gate.address)
        gate.arrival()
        thread = threading.Thread(target=send)
        thread.start()
        long.result(LIMIT_S)
        thread.join()
    assert masks == [set()] * 100


# ---- threads ----


def test_a_thread_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task is not accepted; later the pool works."""

    def start(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with Executor(1) as pool:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            with pytest.raises(RuntimeError, match="can't start"):
                pool.submit(tasks.same, 1)
        assert pool.stats()["accepted"] == 0
        assert pool.submit(tasks.same, 2).result(LIMIT_S) == 2


@pytest.fixture
def no_second_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that replaces workers cannot start."""
    start = threading.Thread.start

    def fail(self: threading.Thread) -> None:
        if self.name == "gpudispatch-lone":
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", fail)


@pytest.mark.usefixtures("no_second_thread")
def test_no_thread_for_a_second_try(tmp_path: Any) -> None:
    """The first outcome stands."""
    with Executor(1, retry=("oom",), max_attempts=2) as pool:
        future = pool.submit(tasks.out_of_memory, str(tmp_path / "ran"), 1)
        assert isinstance(future.exception(LIMIT_S), OutOfMemory)


@pytest.mark.usefixtures("no_second_thread")
def test_no_thread_for_a_view_that_is_kept() -> None:
    """The device is not left drained."""
    with Executor(1) as pool:
        kept = pool.options(copy=False).submit(data_tasks.keep, np.zeros(50_000))
        assert type(kept.exception(LIMIT_S)) is GpuDispatchError
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


def test_the_pools_thread_survives_an_error(
    one: Executor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    deliver = Inbox.deliver_all_aside
    failed = []

    def fails_once(self: Inbox) -> None:
        if not failed:
            failed.append(1)
            raise MemoryError
        deliver(self)

    monkeypatch.setattr(Inbox, "deliver_all_aside", fails_once)
    with caplog.at_level(logging.ERROR, "gpudispatch"):
        done = threading.Event()
        for n in range(3):
            one.submit(tasks.same, n).add_done_callback(lambda _: done.set())
            assert done.wait(LIMIT_S)
            done.clear()
        assert until(lambda: failed)
    assert "goes on after an error" in caplog.text


def test_kill_workers_while_a_callback_waits(one: Executor) -> None:
    """terminate_workers() before it has asked for the same end, with more time."""
    go = threading.Event()
    pid = one.submit(tasks.pid).result(LIMIT_S)
    with Gate() as gate, Executor(1, grace=600) as pool:
        waits = pool.submit(tasks.same, 1)
        waits.add_done_callback(lambda _: go.wait(LIMIT_S))
        waits.result(LIMIT_S)
        deaf = pool.submit(tasks.deaf, gate.address)
        gate.arrival()
        (row,) = pool.slots()
        pool.terminate_workers()
        pool.kill_workers()
        try:
            assert until(lambda: gone(row["pid"]), 10)
        finally:
            go.set()
        assert wait([deaf], LIMIT_S).done
    assert one.submit(tasks.pid).result(LIMIT_S) == pid


# ---- sessions ----


class Reader:
    def __init__(self) -> None:
        self.owned: list[bool] = []
        self.engine: Any = None

    def take(self, event: Any) -> None: ...

    def make_room(self) -> None: ...

    def may_read(self) -> None:
        if self.engine is not None:
            self.owned.append(self.engine.lock._is_owned())


def test_sessions_are_opened_while_others_are_woken() -> None:
    sessions = Sessions()
    stop = threading.Event()
    errors: list[BaseException] = []

    def opens() -> None:
        while not stop.is_set():
            readers = [Reader() for _ in range(10)]
            for number in [sessions.add(reader, False) for reader in readers]:
                sessions.remove(number)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=opens) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        end = time.monotonic() + 1.0
        while time.monotonic() < end:
            sessions.let_read()
            sessions.make_room()
    except RuntimeError as error:
        errors.append(error)
    finally:
        sys.setswitchinterval(before)
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []


def test_a_session_is_woken_without_the_lock(one: Executor) -> None:
    """It may wait for a thread that wants the lock."""
    reader = Reader()
    reader.engine = one._engine
    tag = one._engine.open_session(reader)
    assert one.submit(tasks.same, 1).result(LIMIT_S) == 1
    assert until(lambda: reader.owned)
    one._engine.close_session(tag)
    assert not any(reader.owned)


def test_a_session_may_be_closed_before_it_is_left() -> None:
    """By the thread that has read its last event."""
    sessions = Sessions()
    reader = Reader()
    number = sessions.add(reader, False)
    sessions.remove(number)
    sessions.leave(number)
    assert not sessions.left


# ---- frames that are kept for a second try ----


def test_what_is_cancelled_in_the_package_keeps_no_frame() -> None:
    with Gate() as gate, Executor(1, queue_size=1, retry=("oom",), max_attempts=2) as pool:
        first = pool.submit(tasks.through, gate.address)
        gate.arrival()
        futures = [pool.submit(tasks.same, n) for n in range(20)]
        assert all([future.cancel() for future in futures])
        gate.open()
        first.result(LIMIT_S)
        assert until(lambda: not pool._engine.lone.frames)
