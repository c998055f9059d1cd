# SPDX-License-Identifier: MIT
"""The worker process: `python -u -m gpudispatch.worker`, which the library starts for each slot.

It imports nothing that it does not need, and nothing of the user's before `setup`: until then the
setup limit is not running, and an error would have no name. `_core.run_worker` calls the methods of
Handler on the main thread; between the calls that thread holds no GIL.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from . import _core

__all__ = ["Stopped", "TaskTimeout"]

# The setup data begins with the stop table; see alarm.c.
_STOP_TABLE = 65536

# Codes of Task.fail, which the host turns into kinds and exceptions.
ERROR, OOM, UNPICKLABLE, TOO_LARGE, KEPT_VIEW, STOPPED = range(1, 7)

# What a task or a result is: as in codec.py, which a worker imports later.
VALUE, CALL, ITEM, CHUNK, ITEMS, EXC, PART = range(7)

# What an EXC frame may weigh where there is no room: the page always has 4 KiB.
_CELL, _SMALL_TEXT, _SMALL_TRACEBACK = 4096, 300, 600


class TaskTimeout(BaseException):
    """Raised in a task at its time limit, once. Past `grace` the worker is killed."""


class Stopped(BaseException):
    """Raised in a task that `Future.stop()` ends, once."""


class Handler:
    """What a worker does: one object, whose methods `_core.run_worker` calls.

    `process` decodes a task and serves it. Tasks and results without buffers pass it by: C
    unpickles the call, finds the function in `functions` or calls `item`, and packs a plain result.
    """

    TaskTimeout = TaskTimeout
    Stopped = Stopped

    def __init__(self) -> None:
        self.functions: dict[bytes, Callable[..., Any]] = {}
        self.item: Callable[[Any], Any] | None = None
        self.oom = False
        self.cuda = "cpu"
        self.batched = False
        self.max_batch = 1
        self.device = ""
        self.instance: Any = None
        self.process_item: Callable[..., Any] = _no_class

    # --- setup ---

    def setup(self, worker: _core.Worker) -> None:
        _line_buffered()
        from . import _core, codec, current, source

        current._worker = worker
        self.device = worker.devices[0]
        self.call = _core.call
        self.no_room = _core.NoRoom
        self.codec = codec
        self.decode = codec.decode
        self.encode = codec.encode
        self.resolve = source.resolve
        self.functions = source._made
        data = worker.setup_data[_STOP_TABLE:]
        blob: dict[str, Any] = {}
        if data:
            value = codec.decode(data)[1]  # a frame of views; `Arrival` in it calls source.adopt
            assert isinstance(value, dict)
            blob = value
        self.oom = bool(blob.get("oom", False))
        self.cuda = blob.get("cuda_results", "cpu")
        self.max_batch = int(blob.get("max_batch", 1))
        if blob.get("initializer") is not None:
            initializer = source.resolve(blob["initializer"])
            initializer(*blob.get("initargs", ()))
        if blob.get("worker") is not None:
            self._make(source.resolve(blob["worker"]), worker.seed, blob.get("setup") or {})

    def _make(self, kind: Any, seed: int, setup: dict[str, Any]) -> None:
        self.instance = kind()
        method = getattr(self.instance, "setup", None)
        if method is not None:
            method(self.device, seed, **setup)
        self.process_item = self.instance.process
        self.batched = self.max_batch > 1
        if not self.batched:
            self.item = self.process_item

    # --- tasks ---

    def process(self, task: _core.Task) -> None:
        try:
            op, value = self.decode(task.data)
            self._serve(task, op, value)
        except BaseException as error:
            self.failed(task, error)

    def serve(self, task: _core.Task, op: int, value: Any) -> None:
        try:
            self._serve(task, op, value)
        except BaseException as error:
            self.failed(task, error)

    def process_batch(self, tasks: list[_core.Task]) -> None:
        members: list[_core.Task] = []
        items: list[Any] = []
        for task in tasks:
            try:
                op, value = self.decode(task.data)
                if op == ITEM and self.batched:
                    items.append(value)
                    members.append(task)
                else:
                    self._serve(task, op, value)
            except BaseException as error:
                self.failed(task, error)
        value = None
        if members:
            self._batch(members, items)

    def _serve(self, task: _core.Task, op: int, value: Any) -> None:
        if op == CALL:
            key, args, kwargs = value
            value = self.call(self.resolve(key), args, kwargs)
        elif op == ITEM:
            if self.batched:
                value = self._items([value])[0]
            else:
                value = self.call(self.process_item, (value,))
        elif op == CHUNK:
            key, calls = value
            self._chunk(task, self.resolve(key), calls)
            return
        elif op == ITEMS:
            if self.batched:
                self._batched_chunk(task, value)
            else:
                self._chunk(task, self.process_item, [(item,) for item in value])
            return
        else:
            raise ValueError(f"a task of kind {op}")
        self._put(task, value)

    def put(self, task: _core.Task, value: object) -> None:
        try:
            self._put(task, value)
        except BaseException as error:
            self.failed(task, error)

    def _put(self, task: _core.Task, value: object) -> None:
        """Pack a value as the task's result. No limit interrupts it."""
        try:
            task.result(self.encode(VALUE, value, cuda=self.cuda))
        except self.no_room as error:
            raise _TooLarge(*error.args) from None
        except MemoryError:
            raise
        except BaseException as error:
            raise _Unpicklable(error) from None

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

    def _chunk(self, task: _core.Task, function: Any, calls: list[tuple[Any, ...]]) -> None:
        values: list[Any] = []
        call = self.call
        try:
            for args in calls:
                values.append(call(function, args))
        except BaseException as error:
            self._part(task, values, error)
        else:
            self._put_all(task, values)

    def _batched_chunk(self, task: _core.Task, items: list[Any]) -> None:
        values: list[Any] = []
        try:
            for at in range(0, len(items), self.max_batch):
                values.extend(self._items(items[at : at + self.max_batch]))
        except BaseException as error:
            self._part(task, values, error)
        else:
            self._put_all(task, values)

    def _put_all(self, task: _core.Task, values: list[Any]) -> None:
        """Pack the results of a chunk; if one cannot be packed, those before it are a part."""
        try:
            self._put(task, values)
        except _Unpicklable as error:
            for index, value in enumerate(values):
                try:
                    self.encode(VALUE, value, cuda=self.cuda)
                except BaseException as culprit:
                    self._part(task, values[:index], _Unpicklable(culprit))
                    return
            raise error from None

    def _part(self, task: _core.Task, values: list[Any], error: BaseException) -> None:
        code, error, extra = self._judge(error)
        _without_worker(error)
        frame = self.codec.encode_exception(error, extra)
        try:
            value = values, self.codec.decode(frame)[1]
            task.result(self.encode(PART, value, cuda=self.cuda))
        except BaseException:
            self._put_exception(task, error, extra)
        self._fail(task, code, error)

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
        from . import oom

        oom.empty_caches()
        half = len(items) // 2
        self._batch(members[:half], items[:half])
        self._batch(members[half:], items[half:])

    # --- errors ---

    def _is_oom(self, error: BaseException) -> bool:
        if not self.oom:
            return False
        from . import oom

        return oom.is_oom(error)

    def _judge(self, error: BaseException) -> tuple[int, BaseException, dict[str, Any] | None]:
        """The fail code, the exception to send, and what the host should know beside it."""
        if isinstance(error, _Unpicklable):
            return UNPICKLABLE, error.cause, None
        if isinstance(error, _TooLarge):
            from .errors import ResultTooLarge

            return TOO_LARGE, ResultTooLarge(str(error), size=error.size), None
        if isinstance(error, Stopped):
            return STOPPED, error, None
        if self._is_oom(error):
            from . import oom

            return OOM, error, oom.memory(self.device)
        return ERROR, error, None

    def failed(self, task: _core.Task, error: BaseException) -> None:
        """Report an exception as the outcome of a task."""
        code, error, extra = self._judge(error)
        _without_worker(error)
        self._put_exception(task, error, extra)
        self._fail(task, code, error)
        if code == OOM:
            from . import oom

            oom.forget(error)
            oom.empty_caches()

    def _put_exception(
        self, task: _core.Task, error: BaseException, extra: dict[str, Any] | None
    ) -> None:
        frame: Any = self.codec.encode_exception(error, extra)
        try:
            task.result(frame)
        except MemoryError:
            name, text, trace, _, extra = self.codec.decode(frame)[1]
            small: Any = (name, text[:_SMALL_TEXT], trace[-_SMALL_TRACEBACK:], None, {})
            frame = self.encode(EXC, small)
            if len(frame) <= _CELL:
                task.result(frame)

    def _fail(self, task: _core.Task, code: int, error: BaseException) -> None:
        try:
            text = f"{type(error).__name__}: {error}"
        except BaseException:
            text = type(error).__name__
        task.fail(code, text[:255].replace("\0", "?").encode("utf-8", "replace").decode())
        _flush()

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
        self._put_exception(task, error, None)
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


class _Unpicklable(Exception):
    """The result of a task cannot be packed."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _TooLarge(Exception):
    """The result of a task has no room."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"a result of {size} bytes has no room in the worker's share of payload_budget"
        )
        self.size = size


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
