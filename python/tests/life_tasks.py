# SPDX-License-Identifier: MIT
"""What test_aio.py and test_life.py run in workers."""

from __future__ import annotations

import os
import time
from typing import Any

import gpudispatch


def same(value: Any) -> Any:
    return value


def fail(text: str) -> None:
    raise ValueError(text)


def pid() -> int:
    return os.getpid()


def hold(started: str, fifo: str) -> str:
    """Says that it runs, then waits until somebody opens the pipe to write."""
    with open(started, "a") as out:
        out.write(f"{os.getpid()}\n")
    with open(fifo) as words:
        return words.read()


def hold_anyway(started: str, fifo: str) -> str:
    """As hold(): no exception ends it."""
    while True:
        try:
            return hold(started, fifo)
        except BaseException:
            continue


def hold_until_stopped(started: str) -> bool:
    with open(started, "a") as out:
        out.write(f"{os.getpid()}\n")
    task = gpudispatch.current_task()
    assert task is not None
    while not task.cancelled():
        time.sleep(0.001)
    return True


def kill_self() -> None:
    os.kill(os.getpid(), 9)
