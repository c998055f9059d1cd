# SPDX-License-Identifier: MIT
"""Living: the engines of this process, for its exit and for its forks.

At exit all tasks run to their end, as in concurrent.futures.  A forked child has no engine: its
calls raise.
"""

from __future__ import annotations

import os
import threading
import weakref

from gpudispatch.events import FINISH_ALL

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Protocol

    class Engine(Protocol):
        forked: bool
        caller_ends: bool  # a call that blocks ends it, not the interpreter's exit

        @property
        def ended(self) -> bool: ...

        def return_grants(self, kept: bool) -> None: ...

        def close(self, how: int) -> None: ...

        def join(self) -> None: ...

        def leave_to_parent(self) -> None: ...

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_exiting = False


def add(engine: Engine) -> None:
    _engines.add(engine)


def exiting() -> bool:
    """Whether the interpreter is about to end: no task is accepted."""
    return _exiting


def _at_exit() -> None:
    global _exiting
    _exiting = True
    for engine in list(_engines):
        if not engine.ended and not engine.forked and not engine.caller_ends:
            engine.return_grants(kept=True)
            engine.close(FINISH_ALL)
    for engine in list(_engines):
        engine.join()


def _after_fork() -> None:
    for engine in list(_engines):
        engine.leave_to_parent()


try:
    threading._register_atexit(_at_exit)  # type: ignore[attr-defined]
except (AttributeError, RuntimeError):
    import atexit

    atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
