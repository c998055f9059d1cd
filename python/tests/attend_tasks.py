# SPDX-License-Identifier: MIT
"""What the workers of test_attend.py run."""

from __future__ import annotations

import os
from collections.abc import Callable

nested: Callable[[], object] | None = None  # of the test


def same(x: object) -> object:
    return x


def fail(x: object) -> object:
    raise ValueError(x)


def read(path: str) -> bytes:
    """Ends when the test writes to the FIFO."""
    with open(path, "rb") as f:
        return f.read()


def append(path: str, x: int) -> int:
    """Leaves a mark for each time that it runs."""
    with open(path, "ab", buffering=0) as f:
        f.write(b"%d\n" % x)
    return x


class Bomb:
    """A result that cannot be unpickled in the host."""

    def __init__(self, host: int) -> None:
        self.host = host

    def __setstate__(self, state: dict[str, int]) -> None:
        if os.getpid() == state["host"]:
            raise ValueError("does not load here")


def bomb(host: int) -> Bomb:
    return Bomb(host)


class Caller:
    """A result that waits for another task while it is unpickled."""

    def __setstate__(self, state: object) -> None:
        if nested is not None:
            self.got = nested()

    def __getstate__(self) -> object:
        return 1


def caller() -> Caller:
    return Caller()
