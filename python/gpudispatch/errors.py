# SPDX-License-Identifier: MIT
"""Exceptions of the package, in one place.

Each class takes its text as the only positional argument and everything else by keyword, so that it
can be pickled, and `str()` ends with the last lines of the worker's log where there is one: a
traceback that is read in the morning must say by itself what the worker said last.
"""

from __future__ import annotations

import re
from concurrent.futures import BrokenExecutor

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ClosedError",
    "DeviceError",
    "ForkedError",
    "GpuDispatchError",
    "InvalidOption",
    "JournalBusy",
    "JournalMismatch",
    "NoWorker",
    "OutOfMemory",
    "ReentryError",
    "RemoteError",
    "RemoteTraceback",
    "ResultTooLarge",
    "ServerError",
    "SetupError",
    "TaskTimeout",
    "UnsupportedPlatform",
    "WorkerCrashed",
]

# How much of a log `str()` shows: a screen at most, the attribute holds all of it.
_SHOWN_LINES = 10
_SHOWN_CHARACTERS = 2000

# What the library's texts call by names of C, and what it is called here.
_NAMES_HERE = (
    ("(task_limit)", "(task_timeout)"),
    ("(limit of the task)", "(task_timeout)"),
    ("(stall_limit of the task)", "(stall_timeout)"),
    ("(expires of the task)", "(expires)"),
    ("(setup_limit)", "(setup_timeout)"),
    ("(stdio)", "(output)"),
    ('stdio_path "', 'output "'),
    (" (failures_in_a_row)", ""),
)
# The code with which a worker fails a task, and the core's number of a task that was interrupted.
_OF_THE_CORE = re.compile(
    r"((?:^|; )attempt \d+: )failed with \d+: "
    r"|(?<=\)): TaskTimeout: task \d+ exceeded its time limit"
)
# Of a class that starts no worker any more.
_RESUMED = re.compile(r"^(class (.+) failed \d+ times in a row; .*), until it is resumed$")


def in_python(text: str) -> str:
    """A text of the library with the names of options and methods that the package has."""
    for name, here in _NAMES_HERE:
        text = text.replace(name, here)
    text = _RESUMED.sub(r'\1, until pool["\2"].resume() or pool["\2"].load()', text)
    return _OF_THE_CORE.sub(r"\1", text)


class GpuDispatchError(Exception):
    """Base of all errors of this package.

    `code` and `name` are those of the C library (0 and "" where the package itself found the
    fault), `field` names the option or argument, `log_tail` is the end of the worker's output.
    """

    code: int = 0
    name: str = ""
    field: str = ""
    log_tail: str = ""

    def __init__(self, message: str = "", **attributes: Any) -> None:
        super().__init__(message)
        for name, value in attributes.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no attribute {name!r}")
            setattr(self, name, value)

    @property
    def message(self) -> str:
        """The text alone, without the lines of the log."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        tail = self.log_tail.rstrip()
        if not tail:
            return self.message
        lines = tail[-_SHOWN_CHARACTERS:].splitlines()[-_SHOWN_LINES:]
        return "\n".join((self.message, "last lines of the worker's log:", *lines))


class WorkerCrashed(GpuDispatchError):
    """The worker died while it ran the task.

    Exactly one of `exitcode` and `signal` is set; `device` is where it ran.
    """

    exitcode: int | None = None
    signal: int | None = None
    device: str = ""


class TaskTimeout(GpuDispatchError, TimeoutError):
    """The task exceeded a limit: the text names it.

    `field` is "task_timeout", "expires" or "stall_timeout", or "timeout" of Pool.run(), and `limit`
    its seconds.  `phase` is "queued" (not started in time), "process" (its code was interrupted) or
    "hard" (the worker was killed after the grace).  `stack` is the Python stack of the worker at
    that moment where it could be had.  `stdout` and `stderr` are what a command of
    Pool.run(capture_output=True) had written, None where the worker could not send it.
    """

    limit: float | None = None
    phase: str = ""
    stack: str = ""
    stdout: bytes | None = None
    stderr: bytes | None = None


class SetupError(GpuDispatchError):
    """The setup of a worker failed: `setup()`, the initializer or the import of the main file.

    `traceback_text` is the traceback in the worker, `device` the one it was to serve.
    """

    device: str = ""
    traceback_text: str = ""


class NoWorker(GpuDispatchError, BrokenExecutor):
    """No slot of the pool can run the task: all have failed.

    `traceback_text` is that of the last setup that failed.
    """

    traceback_text: str = ""


class DeviceError(GpuDispatchError):
    """A device is not there, cannot be used, or failed under a task. `device` names it."""

    device: str = ""


class ResultTooLarge(GpuDispatchError):
    """A result does not fit into its worker's share of `payload_budget`, or a task's arguments do
    not fit into the half for them.

    `size` is the size of a result in bytes, 0 where unknown.
    """

    field = "payload_budget"
    size: int = 0


class OutOfMemory(GpuDispatchError, MemoryError):
    """A task met the end of memory, alone on its device and in a fresh worker too.

    `free_mib`, `own_mib` and `foreign_mib` are the memory of the device that was free, held by the
    worker and held by others (None where unknown).
    """

    device: str = ""
    free_mib: int | None = None
    own_mib: int | None = None
    foreign_mib: int | None = None


class RemoteError(GpuDispatchError):
    """Stands for an exception of user code that cannot be pickled, or not be rebuilt here.

    `type_name` is the class's full name, `text` its `str()`, `reason` why it could not travel.
    """

    type_name: str = ""
    text: str = ""
    reason: str = ""

    def __init__(self, message: str = "", **attributes: Any) -> None:
        super().__init__(message, **attributes)
        if not message:
            made = f"{self.type_name}: {self.text}" if self.text else self.type_name
            why = self.reason.partition("\n")[0]
            self.args = (f"{made} ({why})" if why else made,)


class ServerError(GpuDispatchError):
    """The server of a ServerWorker replied with a status other than 200 to 299.

    `status` is this number, `body` the first 64 KiB of the reply.
    """

    status: int = 0
    body: bytes = b""


class RemoteTraceback(Exception):
    """The traceback of a worker as text: the `__cause__` of an exception that came from one."""

    text: str

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        # The empty first line sets the worker's traceback off from "RemoteTraceback:".
        return f'\n"""\n{self.text.rstrip()}\n"""'


class ForkedError(GpuDispatchError, RuntimeError):
    """An object of this package was used in a forked child of the process that made it."""


class UnsupportedPlatform(GpuDispatchError, RuntimeError):
    """This platform has no dispatcher: Linux only; use `concurrent.futures` here."""


class JournalMismatch(GpuDispatchError, ValueError):
    """A journal was written for another function, setup or version. `field` names what differs.

    `was` is what the journal holds, `now` what the caller has.
    """

    was: str = ""
    now: str = ""


class JournalBusy(GpuDispatchError):
    """Another process writes this journal: `pid` is that process, where known."""

    pid: int | None = None


class InvalidOption(GpuDispatchError, ValueError):
    """An option or argument has a value that cannot be used. `field` names it."""


class ClosedError(GpuDispatchError, RuntimeError):
    """The pool takes no more tasks: it was shut down."""


class ReentryError(GpuDispatchError, RuntimeError):
    """A call from a place where it cannot be made: a pool made in a worker process, for one."""


# By the name of the library's code; the others are the base class.
_CLASSES: dict[str, type[GpuDispatchError]] = {
    "EINVAL": InvalidOption,
    "ENOMEM": OutOfMemory,
    "EFORKED": ForkedError,
    "ECLOSED": ClosedError,
    "EEND": ClosedError,
    "ENODEFINITION": InvalidOption,
    "EDEVICE": DeviceError,
    "ETOOBIG": ResultTooLarge,
    "EREENTER": ReentryError,
    "ERESULTSPACE": ResultTooLarge,
    "ENOTSUP": DeviceError,
    "ETIMEOUT": TaskTimeout,
    "ECRASHED": WorkerCrashed,
    "ENOWORKER": NoWorker,
    "ELABEL": InvalidOption,
}


def from_code(code: int, name: str, field: str, text: str) -> GpuDispatchError:
    """The exception for a code of the library: `_core` raises what this returns."""
    kind = _CLASSES.get(name.removeprefix("GPUD_"), GpuDispatchError)
    message = in_python(f"{field}: {text}" if field and field not in text else text)
    if kind is ResultTooLarge and "payload_budget" not in message:
        message, field = f"{message}: raise payload_budget", "payload_budget"
    return kind(message, code=code, name=name, field=field)
