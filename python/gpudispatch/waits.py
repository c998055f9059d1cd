# SPDX-License-Identifier: MIT
"""Condition and Event as in threading, but Ctrl-C in a wait leaves no lock taken.

The __enter__ of threading.Condition is a function of Python: an exception of a signal's handler can
come after it has taken the lock and before the block of `with` begins.  Nobody releases the lock
then, and the pool's thread waits for it in notify_all() for ever.  Here the condition is its own
lock, whose __enter__ is a function of C.
"""

from __future__ import annotations

import _thread
import threading
from collections import deque


class Condition(_thread.RLock, threading.Condition):  # type: ignore[misc]
    """The methods of the lock come from the first base, all others from the second."""

    def __init__(self) -> None:
        self._waiters: deque[object] = deque()

    def wait(self, timeout: float | None = None) -> bool:
        try:
            return threading.Condition.wait(self, timeout)
        except BaseException:
            if not self._is_owned():  # type: ignore[attr-defined]
                self.acquire()  # for the end of the block of `with`
            raise

    __repr__ = object.__repr__  # that of the second base names a lock


class Event(threading.Event):
    def __init__(self) -> None:
        self._cond = Condition()
        self._flag = False
