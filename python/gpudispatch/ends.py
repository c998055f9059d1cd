# SPDX-License-Identifier: MIT
"""From an outcome of the library to a kind and an exception."""

from __future__ import annotations

import re
from concurrent.futures import CancelledError

from gpudispatch import codec
from gpudispatch.errors import (
    DeviceError,
    GpuDispatchError,
    NoWorker,
    OutOfMemory,
    RemoteError,
    RemoteTraceback,
    ResultTooLarge,
    TaskTimeout,
    WorkerCrashed,
    in_python,
)
from gpudispatch.events import CANCELLED, CRASHED, ERROR, TIMEOUT
from gpudispatch.settings import NEVER

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any

    from gpudispatch._core import Event
    from gpudispatch.codec import Buffer
    from gpudispatch.settings import TaskOptions

PHASES = ("none", "queued", "process", "hard", "kill", "setup", "idle", "cleanup")
EXIT_CODE, EXIT_SIGNAL = 1, 2
EDEVICE, ERESULTSPACE, ECANCELLED = -12, -18, -24
# codes with which a worker fails a task
FAIL_OOM, FAIL_TOO_LARGE, FAIL_KEPT_VIEW, FAIL_STOPPED = 2, 4, 5, 6
STALLED, EXCEEDED = "no progress for ", "exceeded its time limit of "  # in texts of the library


def log_tail(event: Event, alone: bool = False) -> str:
    """The last output of the worker, up to the end of the task; `alone`: that of a command, from
    its start and without what the worker writes at a limit."""
    if alone:
        return re.sub(
            rf"gpudispatch: task {event.task_id} (exceeded its time limit|was stopped)\n"
            r"(Stack \(most recent call first\):\n(  .*\n?)*)?",
            "",
            (event.output or b"").decode(errors="replace"),
        )
    return ((event.output_before or b"") + (event.output or b"")).decode(errors="replace")


def stack_in(log: str) -> str:
    """The last Python stack that the worker wrote when its limit expired."""
    lines = log.splitlines()
    for first in range(len(lines) - 1, -1, -1):
        if "(most recent call first)" in lines[first]:
            last = first + 1
            while last < len(lines) and lines[last].startswith("  "):
                last += 1
            return "\n".join(lines[first:last])
    return ""


def decoded(frame: Buffer | None) -> tuple[Any, BaseException | None]:
    """The value of a result, or what its unpickling raised: even SystemExit is that task's."""
    try:
        return codec.load(frame), None
    except KeyboardInterrupt:
        raise
    except BaseException as e:
        return None, detached(e)


def value_of(event: Event, options: TaskOptions) -> tuple[Any, BaseException | None]:
    """As decoded(), of a SUCCESS.  Hands its result over: the memory is free after that."""
    frame = event.take()
    return (bytes(frame or b""), None) if options.raw else decoded(frame)


def detached(error: BaseException) -> BaseException:
    """An exception that the package keeps, with its traceback as a text: the frames would lead to
    those of the callers, and keep futures and executors alive in cycles."""
    import traceback

    text = "".join(traceback.format_exception(error))
    error.__context__ = None
    error.__cause__ = RemoteTraceback(text)
    return error.with_traceback(None)


def failure(
    event: Event, options: TaskOptions, pool_limit: int
) -> tuple[str, BaseException, list[Any] | None]:
    """The kind and the exception of an outcome other than SUCCESS, and the values of a chunk's
    items before the one that failed; None where the worker tells of none, as it died or the chunk
    was too large."""
    text = in_python(event.text or "")
    log = log_tail(event, options.alone)
    if event.outcome == ERROR:
        return _error(event, text, log, options.raw)
    if event.outcome == TIMEOUT:
        return "timeout", _timeout(event, text, log, options, pool_limit), None
    return *_end(event, text, log), None


def add_memory(error: OutOfMemory, devices: list[dict[str, Any]]) -> None:
    """Adds what the host knows of the memory of its device, from the rows of the devices."""
    for row in devices:
        if row["name"] == error.device.split(",")[0] and row["memory_total"] is not None:
            for name, value in (
                ("free_mib", row["memory_free"]),
                ("own_mib", row["memory_ours"]),
                ("foreign_mib", row["memory_foreign"]),
            ):
                if getattr(error, name) is None and value is not None:
                    setattr(error, name, value >> 20)


def _timeout(
    event: Event, text: str, log: str, options: TaskOptions, pool_limit: int
) -> TaskTimeout:
    """Names the limit that has ended the task.  The library's text tells of a stall."""
    phase = PHASES[event.phase]
    if phase == "queued":
        field, limit = "expires", options.expires
    elif text.rfind(STALLED) > text.rfind(EXCEEDED):
        field, limit = "stall_timeout", options.stall
    else:
        field, limit = "task_timeout", options.limit or pool_limit
        if options.alone:
            field, text = "timeout", text.replace("(task_timeout)", "(timeout)")
    seconds = limit / 1e9 if 0 < limit < NEVER else None
    if phase == "queued" and seconds is not None:
        # The library knows the rest of the time only, where the task has waited in the package.
        text = f"not started within {seconds:.3f} s (expires)"
    return TaskTimeout(
        text, limit=seconds, phase=phase, stack=stack_in(log_tail(event)), log_tail=log,
        code=event.code, field=field, **(written(event) if options.alone else {}),
    )  # fmt: skip


def written(event: Event) -> dict[str, bytes]:
    """What a command had written at its limit: the result of a late task is its end, or what has
    interrupted it; both have stdout and stderr."""
    frame = event.take()
    if frame is None:
        return {}
    try:
        op, value = codec.decode(frame)
        end = value if op == codec.VALUE else codec.decode_exception(value)
    except Exception:
        return {}
    found = {name: getattr(end, name, None) for name in ("stdout", "stderr")}
    return {name: data for name, data in found.items() if data is not None}


def _end(event: Event, text: str, log: str) -> tuple[str, BaseException]:
    if event.outcome == CRASHED and event.code == EDEVICE:
        return "device", DeviceError(text, device=event.device or "", log_tail=log)
    if event.outcome == CRASHED:
        status = event.exit_status
        return "crash", WorkerCrashed(
            text,
            exitcode=status if event.exit_kind == EXIT_CODE else None,
            signal=status if event.exit_kind == EXIT_SIGNAL else None,
            device=event.device or "",
            log_tail=log,
            code=event.code,
        )
    if event.outcome == CANCELLED:
        return "cancelled", CancelledError(text)
    return "no_worker", NoWorker(text)


def _error(
    event: Event, text: str, log: str, raw: bool
) -> tuple[str, BaseException, list[Any] | None]:
    frame = event.take()
    if event.code == ECANCELLED or event.code == FAIL_STOPPED and not raw:
        return "cancelled", CancelledError(text), None
    if frame is None or raw:
        return *_without_frame(event, text, log), None
    before: list[Any] | None = None
    try:
        op, value = codec.decode(frame)
        if op == codec.PART:
            before, value = value
        error = codec.decode_exception(value)
        extra = value[4]
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # whatever the code of its class raises
        unread = RemoteError(f"{text} (its exception cannot be read: {e})", log_tail=log)
        return "error", unread, before
    if event.code == FAIL_OOM:
        known = {k: v for k, v in extra.items() if k in ("free_mib", "own_mib", "foreign_mib")}
        oom = OutOfMemory(text, device=event.device or "", log_tail=log, **known)
        oom.__cause__ = error
        return "oom", oom, before
    if isinstance(error, GpuDispatchError) and not error.log_tail:
        error.log_tail = log
    return ("device" if event.code == EDEVICE else "error"), error, before


def _without_frame(event: Event, text: str, log: str) -> tuple[str, BaseException]:
    if event.code == EDEVICE:
        return "device", DeviceError(text, device=event.device or "", log_tail=log)
    if event.code == ERESULTSPACE:
        return "error", ResultTooLarge(f"{text}: raise payload_budget", log_tail=log)
    return "error", GpuDispatchError(text, code=event.code, log_tail=log)
