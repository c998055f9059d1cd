# SPDX-License-Identifier: MIT
"""News: the events that concern no task, such as a setup that failed or a line of a worker.

They go to the logger "gpudispatch".  The last setup that failed is kept: it is the cause of the
error of tasks that have no worker.
"""

from __future__ import annotations

import logging

from gpudispatch.errors import NoWorker, SetupError, in_python
from gpudispatch.events import CLASS, CLASS_FAILED, CLEANUP_FAILURE, LOG, SETUP_FAILURE

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable

    from gpudispatch._core import Event
    from gpudispatch.tables import ChangeName

LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.INFO, 4: logging.DEBUG}

# Of a class, by number, as in sched.h.
CHANGES: tuple[ChangeName, ...] = (
    "NONE", "LOADED", "UNLOADED", "FAILED", "PAUSED", "RESUMED", "REMOVED",
)  # fmt: skip

logger = logging.getLogger("gpudispatch")
logger.addHandler(logging.NullHandler())  # silent, unless the program wants to hear


class News:
    """What a pool has heard.  Thread: one at a time calls take(), any reads the fields."""

    def __init__(self) -> None:
        self.setup_error: SetupError | None = None  # of the last setup that failed
        self.setup_errors: dict[str, SetupError] = {}  # the same of each class
        # takes events first; those for which it returns True are not logged
        self.listener: Callable[[Event], bool] | None = None

    def take(self, event: Event) -> None:
        text = in_python(event.text or "")
        if event.kind == SETUP_FAILURE:
            report = report_of(event)
            self.setup_error = SetupError(
                text, device=event.device or "", traceback_text=report, log_tail=report
            )
            self.setup_errors[event.class_name or ""] = self.setup_error
        if self.listener is not None and self.listener(event):
            return
        name = event.class_name or ""
        worker = f"worker {event.slot} of {name}" if name else f"worker {event.slot}"
        where = {"slot": event.slot, "device": event.device or "", "class_name": name}
        if event.kind == LOG and event.stream:
            logger.info("%s: %s", worker, event.text or "", extra=where)
        elif event.kind == LOG:
            logger.log(LEVELS.get(event.level, logging.INFO), "%s", text)
        elif event.kind == SETUP_FAILURE:
            logger.warning("%s: setup failed: %s", worker, text, extra=where)
        elif event.kind == CLEANUP_FAILURE:
            logger.warning("%s: cleanup failed: %s", worker, text, extra=where)
        elif event.kind == CLASS:
            level = logging.WARNING if event.change == CLASS_FAILED else logging.INFO
            logger.log(level, "class %s: %s", name, text or CHANGES[event.change], extra=where)

    def no_worker(self, text: str, name: str = "") -> NoWorker:
        """A class has no worker: the error, with its last setup that failed as its cause."""
        why = self.setup_errors.get(name)
        if why is None:
            return NoWorker(text)
        error = NoWorker(text, log_tail=why.log_tail, traceback_text=why.traceback_text)
        error.__cause__ = why
        return error


def report_of(event: Event) -> str:
    """What a worker wrote before its setup or cleanup failed, such as a traceback, and why."""
    output = (event.output or b"").decode(errors="replace")
    return (output + "\n" + in_python(event.text or "")).strip()
