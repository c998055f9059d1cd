# SPDX-License-Identifier: MIT
"""What workers run.  A worker imports nothing else of the benchmark."""

from __future__ import annotations

import os
import signal
from typing import TypeVar

T = TypeVar("T")


def tiny(x: T) -> T:
    return x


def pin(cpu: int) -> int:
    """Moves the thread that runs tasks to one CPU; returns its process."""
    if cpu >= 0:
        os.sched_setaffinity(0, {cpu})
    return os.getpid()


def die(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Echo:
    """A class for worker=.  An int is a CPU: the first task moves the worker there."""

    def process(self, item: bytes | int) -> bytes | int:
        return pin(item) if isinstance(item, int) else item
