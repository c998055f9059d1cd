# SPDX-License-Identifier: MIT
"""The worker process: `python -u -m gpudispatch.worker`, which the library starts for each slot.

It imports nothing that it does not need, and nothing of the user's before `setup`: until then the
setup limit is not running, and an error would have no name. `_core.run_worker` calls the methods of
Handler on the main thread; between the calls that thread holds no GIL.
"""

from __future__ import annotations

import os
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

# Values that libraries read once, as they are loaded.
_THREADS = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "RAYON")

# What an EXC frame may weigh where there is no room: the page always has 4 KiB.
_SMALL_TEXT, _SMALL_TRACEBACK = 400, 1200


class TaskTimeout(BaseException):
    """Raised in a task at its time limit, once. Past `grace` the worker is killed."""


class Stopped(BaseException):
    """Raised in a task that `Future.stop()` ends, once."""


class Handler:
    """What a worker does: one object, whose methods `_core.run_worker` calls."""

    TaskTimeout = TaskTimeout
    Stopped = Stopped

    def __init__(self) -> None:
        self.oom = False
        self.cuda = "cpu"
        self.batched = False
        self.max_batch = 1
        self.instance: Any = None
        self.process_item: Callable[..., Any] = _no_class

    # --- setup ---

    def setup(self, worker: _core.Worker) -> None:
        _line_buffered()
        from . import _core, codec, current, source

        current._worker = worker
        self.call = _core.call
        self.no_room = _core.NoRoom
        self.decode = codec.decode
        self.encode = codec.encode
        self.codec = codec
        self.resolve = source.resolve
        data = worker.setup_data[_STOP_TABLE:]
        blob: dict[str, Any] = {}
        if data:
            value = codec.decode(data, copy=False)[1]
            assert isinstance(value, dict)
            blob = value
        _set_threads(blob.get("threads"))
        if blob.get("host") is not None:
            source.adopt(blob["host"])
        self.oom = bool(blob.get("oom", False))
        self.cuda = blob.get("cuda_results", "cpu")
        self.max_batch = int(blob.get("max_batch", 1))
        if blob.get("initializer") is not None:
            initializer = source.resolve(blob["initializer"])
            initializer(*self._late(blob.get("initargs", ())))
        if blob.get("worker") is not None:
            self._make(source.resolve(blob["worker"]), worker, self._late(blob.get("setup")) or {})

    def _late(self, value: Any) -> Any:
        """A value of the blob that may be a frame of its own: it needs the host's `sys.path`."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            return self.codec.decode(value, copy=False)[1]
        return value

    def _make(self, kind: Any, worker: _core.Worker, setup: dict[str, Any]) -> None:
        self.instance = kind()
        method = getattr(self.instance, "setup", None)
        if method is not None:
            method(worker.devices[0], worker.seed, **setup)
        self.process_item = self.instance.process
        self.batched = self.max_batch > 1

    # --- tasks ---

    def process(self, task: _core.Task) -> None:
        try:
            self._process(task)
        except BaseException as error:
            self._failed(task, error)
        if task.views():
            self._kept(task)

    def process_batch(self, tasks: list[_core.Task]) -> None:
        if self.batched:
            self._process_items(tasks)
        else:
            for task in tasks:
                try:
                    self._process(task)
                except BaseException as error:
                    self._failed(task, error)
        for task in tasks:
            if task.views():
                self._kept(task)

    def _process(self, task: _core.Task) -> None:
        op, value = self.decode(task.data)
        if op == 1:  # CALL
            key, args, kwargs = value
            value = self.call(self.resolve(key), args, kwargs)
        elif op == 2:  # ITEM
            value = self._items([value])[0] if self.batched else self.call(
                self.process_item, (value,)
            )
        elif op == 3:  # CHUNK
            key, calls = value
            return self._chunk(task, self.resolve(key), calls)
        elif op == 4:  # ITEMS
            if self.batched:
                return self._batched_chunk(task, value)
            return self._chunk(task, self.process_item, [(item,) for item in value])
        else:
            raise ValueError(f"a task of kind {op}")
        self._put(task, value)
        return None

    def _put(self, task: _core.Task, value: object, op: int = 0) -> None:
        """Pack a value as the task's result. No limit interrupts it."""
        try:
            task.result(self.encode(op, value, cuda=self.cuda))
        except MemoryError as error:
            if isinstance(error, self.no_room):
                raise _TooLarge(error) from None
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
                    self.encode(0, value, cuda=self.cuda)
                except BaseException as culprit:
                    self._part(task, values[:index], _Unpicklable(culprit))
                    return
            raise error from None

    def _part(self, task: _core.Task, values: list[Any], error: BaseException) -> None:
        code, error, extra = self._judge(error)
        frame = self.codec.encode_exception(error, extra)
        try:
            task.result(self.encode(6, (values, self.codec.decode(frame)[1]), cuda=self.cuda))
        except BaseException:
            self._put_exception(task, error, extra)
        self._fail(task, code, error)

    # --- batches: several tasks in one call ---

    def _process_items(self, tasks: list[_core.Task]) -> None:
        members: list[_core.Task] = []
        items: list[Any] = []
        for task in tasks:
            try:
                op, value = self.decode(task.data)
                if op == 2:
                    items.append(value)
                    members.append(task)
                else:
                    self._process(task)
            except BaseException as error:
                self._failed(task, error)
        value = None
        if members:
            self._batch(members, items)

    def _batch(self, members: list[_core.Task], items: list[Any]) -> None:
        try:
            values = self._items(items)
        except BaseException as error:
            if not (self.oom and len(items) > 1 and _is_oom(error)):
                for task in members:
                    self._failed(task, error)
                return
        else:
            for task, value in zip(members, values, strict=True):
                try:
                    self._put(task, value)
                except BaseException as error:
                    self._failed(task, error)
            return
        # Out of memory: the exception is gone by now, and with it the frames that held tensors.
        values = []
        _empty_caches()
        half = len(items) // 2
        self._batch(members[:half], items[:half])
        self._batch(members[half:], items[half:])

    # --- errors ---

    def _judge(
        self, error: BaseException
    ) -> tuple[int, BaseException, dict[str, Any] | None]:
        """The fail code, the exception to send, and what the host should know beside it."""
        if isinstance(error, _Unpicklable):
            return UNPICKLABLE, error.cause, None
        if isinstance(error, _TooLarge):
            from .errors import ResultTooLarge

            return TOO_LARGE, ResultTooLarge(str(error)), None
        if isinstance(error, Stopped):
            return STOPPED, error, None
        if self.oom and _is_oom(error):
            return OOM, error, _memory()
        return ERROR, error, None

    def _failed(self, task: _core.Task, error: BaseException) -> None:
        code, error, extra = self._judge(error)
        self._put_exception(task, error, extra)
        self._fail(task, code, error)
        if code == OOM:
            error.__traceback__ = None
            _empty_caches()

    def _put_exception(
        self, task: _core.Task, error: BaseException, extra: dict[str, Any] | None
    ) -> None:
        frame = self.codec.encode_exception(error, extra)
        try:
            task.result(frame)
        except MemoryError:
            name, text, trace, _, extra = self.codec.decode(frame)[1]  # type: ignore[misc]
            small = (name, text[:_SMALL_TEXT], trace[-_SMALL_TRACEBACK:], None, extra)
            frame = self.codec.encode(5, small)  # type: ignore[assignment]
            if len(frame) <= 4096:
                task.result(frame)

    def _fail(self, task: _core.Task, code: int, error: BaseException) -> None:
        try:
            text = f"{type(error).__name__}: {error}"
        except BaseException:
            text = type(error).__name__
        task.fail(code, text.replace("\0", "?").encode("utf-8", "replace").decode())
        _flush()

    def _kept(self, task: _core.Task) -> None:
        """Views of the task's memory are left; cycles of garbage may hold them."""
        import gc

        gc.collect()
        if not task.views():
            return
        from .errors import GpuDispatchError

        error = GpuDispatchError(
            f"the task has kept {task.views()} view(s) of its data: with copy=False arguments are "
            "views for the time of the call, copy what has to live longer"
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
    def __init__(self, cause: BaseException) -> None:
        super().__init__(f"the result needs {cause} (payload_budget)")


def _no_class(item: object) -> object:
    raise TypeError("this pool has no worker= class that takes items")


# --- streams and environment ------------------------------------------------------------------


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
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass


def _set_threads(count: int | None) -> None:
    if count:
        for name in _THREADS:
            os.environ.setdefault(name + "_NUM_THREADS", str(count))


# --- memory of devices ------------------------------------------------------------------------


def _is_oom(error: BaseException) -> bool:
    """Whether the device, or the process, has run out of memory. Imports nothing for it."""
    if isinstance(error, MemoryError):
        return True
    for kind in type(error).__mro__:
        if kind.__name__ == "OutOfMemoryError":  # torch, cupy
            return True
        if kind.__name__ in ("XlaRuntimeError", "JaxRuntimeError"):
            return "RESOURCE_EXHAUSTED" in str(error)
    return isinstance(error, RuntimeError) and "CUDA out of memory" in str(error)


def _empty_caches() -> None:
    import gc

    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None:
        try:
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()
        except Exception:
            pass
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        try:
            cupy.get_default_memory_pool().free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()
        except Exception:
            pass


def _memory() -> dict[str, int]:
    """Free, own and foreign memory of the device in MiB; of the machine on a CPU slot."""
    return {}


def main() -> NoReturn:
    from . import _core, current

    current.IN_WORKER = True
    try:
        _core.run_worker(Handler())
    except RuntimeError as error:
        current.IN_WORKER = False
        text = f"gpudispatch.worker: {error}; programs use gpudispatch.Executor"
        raise SystemExit(text) from None


if __name__ == "__main__":
    # The module under its own name: exceptions of it must have one class.
    from gpudispatch.worker import main as _main

    _main()
