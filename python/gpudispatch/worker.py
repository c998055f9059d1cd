# SPDX-License-Identifier: MIT
"""The worker process: `python -u -m gpudispatch.worker`, which the library starts for each slot.

It imports nothing that it does not need, and nothing of the user's before `setup`: until then the
setup limit is not running, and an error would have no name. `_core.run_worker` calls the methods of
Handler on the main thread; between the calls that thread holds no GIL.
"""

from __future__ import annotations

import sys

from . import codec, current, source
from .codec import CALL, CHUNK, EXC, ITEM, ITEMS, PART, VALUE

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from . import _core

__all__ = ["Failed", "Stopped", "TaskTimeout"]

# The setup data begins with the stop table; see alarm.c.
_STOP_TABLE = 65536

# Codes of Task.fail, which the host turns into kinds and exceptions.
ERROR, OOM, UNPICKLABLE, TOO_LARGE, KEPT_VIEW, STOPPED = range(1, 7)

# What an EXC frame may weigh where there is no room: the page always has 4 KiB.
_CELL, _SMALL_TEXT, _SMALL_TRACEBACK = 4096, 300, 600


class TaskTimeout(BaseException):
    """Raised in a task at its time limit, once. Past `grace` the worker is killed."""


class Stopped(BaseException):
    """Raised in a task that `Future.stop()` ends, once."""


class Failed:
    """In the list that process(items) returns: this item fails with `error`, and no other does.

    In a chunk it ends the chunk, as an exception of this item would.
    """

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Handler:
    """What a worker does: one object, whose methods `_core.run_worker` calls.

    `process` decodes a task and serves it. Tasks and results without buffers pass it by: C
    unpickles the call, finds the function in `functions` or calls `item`, and packs a plain result.
    """

    TaskTimeout = TaskTimeout
    Stopped = Stopped

    def __init__(self) -> None:
        self.functions = source._made
        self.item: Callable[[Any], Any] | None = None
        self.oom: Any = None  # the module, in a pool that looks for it
        self.batched = False
        self.instance: Any = None
        self.process_item: Callable[..., Any] = _no_class

    # --- setup ---

    def setup(self, worker: _core.Worker) -> None:
        _line_buffered()
        from . import _core

        current._worker = worker
        self.call = _core.call
        self.no_room = _core.NoRoom
        self.device = worker.devices[0]
        # A frame of views; to read it calls source.adopt.
        blob: dict[str, Any] = codec.decode(worker.setup_data[_STOP_TABLE:])[1]
        self.cuda: str = blob["cuda_results"]
        self.max_batch: int = blob["max_batch"]
        if blob["oom"]:
            from . import oom

            self.oom = oom
        if blob["initializer"] is not None:
            source.resolve(blob["initializer"])(*blob["initargs"])
        if blob["worker"] is not None:
            self._make(source.resolve(blob["worker"]), worker.seed, blob["setup"])

    def _make(self, kind: Any, seed: int, setup: dict[str, Any]) -> None:
        self.instance = kind()
        method = getattr(self.instance, "setup", None)
        if method is not None:
            method(self.device, seed, **setup)
        self.process_item = self.instance.process
        # An object in place of a class takes lists in every pool.
        self.batched = self.max_batch > 1 or not isinstance(getattr(kind, "__origin__", kind), type)
        if not self.batched:
            self.item = self.process_item

    # --- tasks ---

    def process(self, task: _core.Task) -> None:
        try:
            op, value = codec.decode(task.data)
        except BaseException as error:
            self.failed(task, error)
        else:
            self.serve(task, op, value)

    def process_batch(self, tasks: list[_core.Task]) -> None:
        members: list[_core.Task] = []
        items: list[Any] = []
        for task in tasks:
            try:
                op, value = codec.decode(task.data)
            except BaseException as error:
                self.failed(task, error)
                continue
            if op == ITEM and self.batched:
                items.append(value)
                members.append(task)
            else:
                self.serve(task, op, value)
        value = None
        if members:
            self._batch(members, items)

    def serve(self, task: _core.Task, op: int, value: Any) -> None:
        try:
            if op == CHUNK or op == ITEMS:
                self._chunk(task, op, value)
                return
            if op == CALL:
                key, args, kwargs = value
                value = self.call(source.resolve(key), args, kwargs)
            elif op != ITEM:
                raise ValueError(f"a task of kind {op}")
            elif self.batched:
                value = self._items([value])[0]
            else:
                value = self.call(self.process_item, (value,))
            self._put(task, value)
        except BaseException as error:
            self.failed(task, error)

    def put(self, task: _core.Task, value: object) -> None:
        try:
            self._put(task, value)
        except BaseException as error:
            self.failed(task, error)

    def _put(self, task: _core.Task, value: object, op: int = VALUE) -> None:
        """Pack a value as the task's result. No limit interrupts it."""
        if isinstance(value, Failed):
            raise value.error
        try:
            task.result(codec.encode(op, value, cuda=self.cuda))
        except self.no_room as error:
            from .errors import ResultTooLarge

            (size,) = error.args
            text = f"a result of {size} bytes has no room in the worker's share of payload_budget"
            raise _NotSent(TOO_LARGE, ResultTooLarge(text, size=size)) from None
        except MemoryError:
            raise
        except BaseException as error:
            raise _NotSent(UNPICKLABLE, error) from None

    def _items(self, items: list[Any]) -> Sequence[Any]:
        """The results of process(items), which are as many."""
        values = self.call(self.process_item, (items[:],))
        if not isinstance(values, (list, tuple)):
            raise TypeError(
                f"process returned {type(values).__name__}, expected a list of {len(items)} results"
            )
        if len(values) != len(items):
            raise ValueError(f"process returned {len(values)} results for {len(items)} items")
        return values

    # --- chunks: several items in one task ---

    def _chunk(self, task: _core.Task, op: int, chunk: Any) -> None:
        values: list[Any] = []
        try:
            if op == CHUNK:
                key, columns = chunk
                self.call(_each, (source.resolve(key), columns, values))
            elif self.batched:
                for at in range(0, len(chunk), self.max_batch):
                    for value in self._items(chunk[at : at + self.max_batch]):
                        if isinstance(value, Failed):
                            raise value.error
                        values.append(value)
            else:
                self.call(_each, (self.process_item, (chunk,), values))
        except BaseException as error:
            self._part(task, values, error)
            return
        try:
            self._put(task, values)
        except _NotSent as error:
            self._first_unpicklable(task, values, error)

    def _part(self, task: _core.Task, values: list[Any], error: BaseException) -> None:
        """End a chunk with the error of an item, and the values of those before it."""
        code, cause, extra = self._judge(error)
        _without_worker(cause)
        try:
            self._put(task, (values, codec.exception_value(cause, extra)), PART)
        except _NotSent as failed:
            if failed.code == UNPICKLABLE:
                self._first_unpicklable(task, values, failed)
                return
            self._put_exception(task, cause, extra)
        self._fail(task, code, cause)

    def _first_unpicklable(
        self, task: _core.Task, values: list[Any], error: _NotSent
    ) -> None:
        """End a chunk with the error of the first value that cannot be packed."""
        if error.code == UNPICKLABLE:
            for index, value in enumerate(values):
                try:
                    codec.encode(VALUE, value, cuda=self.cuda)
                except BaseException as culprit:
                    self._part(task, values[:index], _NotSent(UNPICKLABLE, culprit))
                    return
        self.failed(task, error)

    # --- batches: several tasks in one call ---

    def _batch(self, members: list[_core.Task], items: list[Any]) -> None:
        try:
            values = self._items(items)
        except BaseException as error:
            if len(items) == 1 or not self._is_oom(error):
                for task in members:
                    self.failed(task, error)
                return
        else:
            for task, result in zip(members, values, strict=True):
                self.put(task, result)
            return
        # Out of memory: the exception is gone by now, and with it the frames that held tensors.
        self.oom.empty_caches()
        half = len(items) // 2
        self._batch(members[:half], items[:half])
        self._batch(members[half:], items[half:])

    # --- errors ---

    def _is_oom(self, error: BaseException) -> bool:
        return self.oom is not None and self.oom.is_oom(error)

    def _judge(self, error: BaseException) -> tuple[int, BaseException, dict[str, int]]:
        """The fail code, the exception to send, and what the host should know beside it."""
        if isinstance(error, _NotSent):
            return error.code, error.cause, {}
        if isinstance(error, Stopped):
            return STOPPED, error, {}
        if self._is_oom(error):
            return OOM, error, self.oom.memory(self.device)
        return ERROR, error, {}

    def failed(self, task: _core.Task, error: BaseException) -> None:
        """Report an exception as the outcome of a task."""
        code, error, extra = self._judge(error)
        _without_worker(error)
        self._put_exception(task, error, extra)
        self._fail(task, code, error)

    def _put_exception(
        self, task: _core.Task, error: BaseException, extra: dict[str, int]
    ) -> None:
        value = codec.exception_value(error, extra)
        try:
            task.result(codec.encode(EXC, value))
        except MemoryError:
            name, text, trace, _, _ = value
            small: Any = (name, text[:_SMALL_TEXT], trace[-_SMALL_TRACEBACK:], None, {})
            frame = codec.encode(EXC, small)
            if len(frame) <= _CELL:
                task.result(frame)

    def _fail(self, task: _core.Task, code: int, error: BaseException) -> None:
        try:
            text = f"{type(error).__name__}: {error}"
        except BaseException:
            text = type(error).__name__
        task.fail(code, text[:255].replace("\0", "?").encode("utf-8", "replace").decode())
        _flush()
        if code == OOM:
            self.oom.forget(error)
            self.oom.empty_caches()

    def kept(self, task: _core.Task) -> None:
        """Views of the task's memory are left; cycles of garbage may hold them."""
        import gc

        gc.collect()
        count = task.views()
        if not count:
            return
        from .errors import GpuDispatchError

        error = GpuDispatchError(
            f"the task has kept {count} view(s) of its memory: arguments with copy=False and "
            "arrays of gpudispatch.empty() end with their task; copy what has to live longer"
        )
        self._put_exception(task, error, {})
        self._fail(task, KEPT_VIEW, error)

    # --- end ---

    def cleanup(self) -> None:
        """What a Python process does at its end, within option cleanup_limit."""
        try:
            method = getattr(self.instance, "cleanup", None)
            if method is not None:
                method()
        finally:
            threading = sys.modules.get("threading")
            if threading is not None:
                threading._shutdown()
            import atexit

            atexit._run_exitfuncs()
            _flush()


class _NotSent(Exception):
    """The result of a task cannot be sent: the fail code, and the exception to send instead."""

    def __init__(self, code: int, cause: BaseException) -> None:
        super().__init__(code)
        self.code = code
        self.cause = cause


def _each(function: Callable[..., Any], columns: Sequence[list[Any]], values: list[Any]) -> None:
    """Call a function for each item of a chunk. A limit may end this loop, too."""
    for value in map(function, *columns):
        values.append(value)


def _no_class(item: object) -> object:
    raise TypeError("this pool has no worker= class that takes items")


def _without_worker(error: BaseException) -> None:
    """Let the traceback begin with user code, where it has some."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    if trace is not None:
        error.__traceback__ = trace


# --- streams ----------------------------------------------------------------------------------


def _line_buffered() -> None:
    """One write for each line: the last words before a crash are not lost, and lines stay whole.

    With -u there is no buffer below the text layer, so this is the only one.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True, write_through=False)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:  # noqa: SIM105  contextlib is not imported for this
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass


def main() -> NoReturn:
    from . import _core, current

    current.IN_WORKER = True
    text = ""
    try:
        _core.run_worker(Handler())
    except RuntimeError as error:
        text = str(error)
    current.IN_WORKER = False
    raise SystemExit(f"gpudispatch.worker: {text}; programs use gpudispatch.Executor")


if __name__ == "__main__":
    # The module under its own name: exceptions of it must have one class.
    from gpudispatch.worker import main as _main

    _main()
