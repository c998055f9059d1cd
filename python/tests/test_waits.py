# SPDX-License-Identifier: MIT
"""Waits on the main thread: a signal's handler raises wherever the interpreter looks for one."""

from __future__ import annotations

import dis
import gc
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("gpudispatch._core")

from gpudispatch import Executor, Future
from gpudispatch.engine import Engine
from gpudispatch.session import Session
from gpudispatch.waits import Condition, Event

LIMIT_S = 10.0


class Interrupt(Exception):
    """Raised as by a signal's handler."""


# After these the interpreter looks for signals.
LOOKS = {"CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD", "RESUME"}


def interrupted(function: Callable[[], object], at: int) -> bool:
    """Calls the function; the interpreter's look of this number meets a handler that raises.  False
    where it looks less often."""
    looks = 0
    last: dict[FrameType, str] = {}

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal looks
        frame.f_trace_opcodes = True
        if event == "opcode":
            looks += last.get(frame) in LOOKS
            if looks == at:
                raise Interrupt
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        return trace

    before = sys.gettrace()
    gc.disable()  # what it frees of an earlier call has looks of its own
    sys.settrace(trace)
    try:
        function()
    except Interrupt:
        pass
    finally:
        sys.settrace(before)
        gc.enable()
    return looks >= at


def on_another_thread(function: Callable[[], object]) -> bool:
    """Whether it comes to its end there."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    return not thread.is_alive()


def notify(condition: threading.Condition) -> None:
    with condition:
        condition.notify_all()


def wait_in(condition: threading.Condition) -> None:
    with condition:
        condition.wait_for(lambda: False, 0.0001)


def everywhere(attempt: Callable[[int], bool]) -> int:
    """Calls it with 1, 2, 3... while an exception came; how often."""
    at = 1
    while attempt(at):
        at += 1
    return at


@pytest.mark.parametrize("act", [wait_in, notify])
def test_condition(act: Callable[[threading.Condition], None]) -> None:
    def attempt(at: int) -> bool:
        condition = Condition()
        came = interrupted(lambda: act(condition), at)
        assert on_another_thread(lambda: notify(condition)), at
        return came

    assert everywhere(attempt) > 5


@pytest.mark.parametrize("act", [lambda e: e.wait(0.0001), lambda e: e.set(), lambda e: e.clear()])
def test_event(act: Callable[[Event], None]) -> None:
    def attempt(at: int) -> bool:
        event = Event()
        came = interrupted(lambda: act(event), at)
        assert on_another_thread(event.set), at
        assert event.is_set()
        return came

    assert everywhere(attempt) > 3


def result_of(future: Future[int]) -> None:
    with suppress(TimeoutError):
        future.result(0.0001)


def watch(future: Future[int]) -> None:
    future.add_done_callback(lambda future: None)


@pytest.mark.parametrize("act", [result_of, watch])
def test_future(act: Callable[[Future[int]], None]) -> None:
    """The pool's thread can end it."""

    def attempt(at: int) -> bool:
        future: Future[int] = Future()
        future._engine = cast(Engine, SimpleNamespace(attend=lambda future, timeout: timeout))
        came = interrupted(lambda: act(future), at)
        assert on_another_thread(lambda: future.set_result(1)), at
        assert future.result(0) == 1
        return came

    assert everywhere(attempt) > 5


def test_wait_for_room() -> None:
    """submit() with block: the pool's thread can send what waits."""

    def attempt(at: int) -> bool:
        room = Condition()
        looks = iter([False] * 3 + [True] * 3)
        pool = SimpleNamespace(room=room, is_inside=lambda: False, check_wait=lambda: None)
        future = SimpleNamespace(_id=0, done=lambda: next(looks))
        came = interrupted(lambda: Engine.wait_for_room(cast(Engine, pool), cast(Any, future)), at)
        assert on_another_thread(lambda: notify(room)), at
        return came

    assert everywhere(attempt) > 5


def test_session() -> None:
    """outcomes() and map(): the pool's thread can hand events over."""

    def attempt(at: int) -> bool:
        pool = SimpleNamespace(
            open_session=lambda session, started: 1 << 40, close_session=lambda tag: None,
            reads_itself=True, is_inside=lambda: False, check_wait=lambda: None,
            check_forked=lambda: None, core=None, frames=None, backlog=None, gone=Event(),
        )  # fmt: skip
        session = Session(cast(Engine, pool), 1, cast(Any, None))
        came = interrupted(lambda: session.read(100_000), at)
        assert on_another_thread(session.may_read), at
        return came

    assert everywhere(attempt) > 5


def test_the_pool_has_these() -> None:
    with Executor(1) as made:
        assert isinstance(made._engine.gone, Event)
        assert isinstance(made._engine.room, Condition)
