# SPDX-License-Identifier: MIT
"""What user code may know of the task and the worker in which it runs."""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from typing import Any

    from . import _core

__all__ = ["CurrentTask", "CurrentWorker", "current_task", "current_worker", "empty"]

# True in a worker from before its first import of user code, and in what user code forks there.
IN_WORKER = False

# Smaller arrays are copied into the result: that costs less than memory made in place.
_IN_PLACE = 64 * 1024

_worker: _core.Worker | None = None


class Arrival:
    """The host's state in the setup blob: a worker takes it over while it reads the blob.

    What follows in the blob, such as the arguments of `setup`, may need the host's `sys.path`.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def __reduce__(self) -> tuple[Any, ...]:
        from . import source

        return source.adopt, (self.state,)


class CurrentTask:
    """The task that runs.

    Thread rule: any thread of the worker. After the task has ended the methods raise RuntimeError.
    """

    __slots__ = ("_task", "attempt", "deadline", "device", "id", "label")

    def __init__(self, task: _core.Task) -> None:
        self._task = task
        self.id: int = task.id
        self.label: str = task.label
        self.attempt: int = task.attempt
        deadline = task.deadline
        #: When the limit expires, in seconds of time.monotonic(); None where there is no limit.
        self.deadline: float | None = None if deadline is None else deadline / 1e9
        self.device: str = _worker.device if _worker is not None else ""

    def __repr__(self) -> str:
        return f"<task {self.id} {self.label!r} on {self.device}, attempt {self.attempt}>"

    def cancelled(self) -> bool:
        """Whether Future.stop() or the end of the pool wants the task to return.

        Future.cancel(), which leaves a task that runs undisturbed, does not count."""
        return self._task.stop_asked()

    def progress(self, fraction: float, text: str | None = None) -> None:
        """Report how far the task is: 0 to 1, with up to 95 bytes of text.

        A call also resets the task's `stall_timeout`.
        """
        self._task.progress(fraction, text)


class CurrentWorker:
    """The worker process: one per slot, and replaced when it dies."""

    __slots__ = ("_worker", "device", "devices", "incarnation", "seed", "slot", "uuids")

    def __init__(self, worker: _core.Worker) -> None:
        self._worker = worker
        self.slot: int = worker.slot
        self.incarnation: int = worker.incarnation
        self.devices: tuple[str, ...] = worker.devices
        self.uuids: tuple[str, ...] = worker.uuids
        self.device: str = worker.device
        self.seed: int = worker.seed

    def __repr__(self) -> str:
        return f"<worker {self.incarnation} of slot {self.slot} on {self.device}>"

    def log(self, text: str, level: int = 3) -> None:
        """Send a line to the host's log: level 1 error, 2 warning, 3 info, 4 debug."""
        self._worker.log(level, text)


def current_task() -> CurrentTask | None:
    """The task that runs in this process, in a batch the first of it; None outside of one."""
    if not IN_WORKER:
        return None
    from . import _core

    task = _core.current()
    return None if task is None else CurrentTask(task)


def current_worker() -> CurrentWorker | None:
    """The worker that this process is; None in a process that is none."""
    return None if _worker is None else CurrentWorker(_worker)


def empty(shape: int | tuple[int, ...], dtype: Any = float) -> Any:
    """A numpy array like `numpy.empty`, in the memory of the task's result.

    If the task returns this array, the worker copies nothing. A task makes one such array; further
    ones, small ones and those in a batch are ordinary arrays. Do not keep it: an array that lives
    longer than its task makes the task an error.
    """
    import numpy

    array = _in_place(shape, dtype, numpy) if IN_WORKER else None
    return numpy.empty(shape, dtype) if array is None else array


def _in_place(shape: int | tuple[int, ...], dtype: Any, numpy: Any) -> Any:
    from . import _core

    kind = numpy.dtype(dtype)
    counts = (shape,) if isinstance(shape, int) else tuple(shape)
    size = kind.itemsize
    for count in counts:
        size *= int(count)
    task = _core.current()
    if task is None or kind.hasobject or size < _IN_PLACE:
        return None
    try:
        memory = task.alloc(size)
    except (RuntimeError, MemoryError):
        return None  # it is lent, or there is no room: packing the result says so
    return numpy.frombuffer(memory, dtype=kind).reshape(counts)
