# SPDX-License-Identifier: MIT
"""The founding interface: a worker class, a generator and callbacks.

    class Upscaler(BaseWorker):
        def setup(self, gpu_id, seed, model_path):
            self.model = load(model_path).to("cuda")

        def process(self, image):
            return self.model(image)

    if __name__ == "__main__":
        Dispatcher(Upscaler, gpu_ids=[0, 1, 2, 3]).run(
            images(), on_success=save, on_error=report, model_path="./model.pth"
        )

A worker process owns one GPU and sees no other: CUDA's device 0 ("cuda", "cuda:0") is that GPU,
whatever its number is.  gpu_id is for names and logs.  A GPU that is not there runs on a CPU slot.

Every item of the generator ends in exactly one callback, whatever its worker does: on_success,
on_timeout, else on_error.  All callbacks run on the thread that called run(); the generator runs on
a thread of its own, so that one that waits holds up no result.

New programs have Executor.outcomes(): a loop in place of callbacks, and a journal.
"""

from __future__ import annotations

import abc

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from contextlib import AbstractContextManager

    from gpudispatch.classic_board import RunStats
    from gpudispatch.classic_run import Calls, Run
    from gpudispatch.future import Times

__all__ = ["BaseWorker", "Dispatcher", "RichDispatcher"]

_ORDINAL = "invalid device ordinal"
_ORDINAL_NOTE = (
    "a worker sees its own GPU only, as CUDA's device 0: write \"cuda\" or \"cuda:0\" in place of "
    'f"cuda:{gpu_id}"'
)


class BaseWorker(abc.ABC):
    """What runs in each worker process: a subclass says how.

    An object of it is made in the worker process, without arguments; keep __init__ light.
    """

    @abc.abstractmethod
    def setup(self, gpu_id: int, seed: int, *args: Any, **kwargs: Any) -> None:
        """Runs once, before the first item: loads the model.  The keywords are those of run()."""

    @abc.abstractmethod
    def process(self, data: Any) -> Any:
        """Runs for each item and returns its result."""

    def cleanup(self) -> None:  # noqa: B027
        """Runs once, when the worker ends in peace."""


class Guest:
    """The worker= class of a Dispatcher's pool: makes the user's worker, in the worker process."""

    process: Callable[..., Any] = BaseWorker.process
    cleanup: Callable[[], None]

    def setup(
        self,
        device: str,
        seed: int,
        *,
        worker: bytes,
        places: list[tuple[int, int]],
        arguments: dict[str, Any],
    ) -> None:
        from gpudispatch import current, source

        known = current.current_worker()
        assert known is not None
        gpu_id, seed = places[known.slot]
        guest = source.resolve(worker)()
        self.process = guest.process  # in place of the abstract one: no detour for each item
        self.cleanup = guest.cleanup
        try:
            guest.setup(gpu_id=gpu_id, seed=seed, **arguments)
        except Exception as error:
            if _ORDINAL in str(error):
                error.add_note(_ORDINAL_NOTE)
            raise


class Dispatcher:
    """Runs a generator's items on workers, one per entry of gpu_ids.

    queue_size              items that are ahead of the callbacks, at most
    suppress_worker_output  True: what workers print is not shown; it is in texts of failures
    setup_timeout, grace, max_attempts   as in Executor

    In callbacks, worker_id is the number of the GPU.  Of equal numbers, each worker after the first
    has one of its own, above all of gpu_ids; -1 stands for no worker.

    Thread rule: run() on one thread at a time, shutdown() and get_stats() on any.
    """

    def __init__(
        self,
        worker_cls: type[BaseWorker],
        gpu_ids: Sequence[int],
        queue_size: int = 1024,
        suppress_worker_output: bool = False,
        *,
        setup_timeout: float | None = 900.0,
        grace: float = 2.0,
        max_attempts: int = 1,
    ) -> None:
        import threading

        from gpudispatch import executor

        executor._check_platform()
        from gpudispatch import classic_board, classic_places, settings

        if not (isinstance(worker_cls, type) and issubclass(worker_cls, BaseWorker)):
            raise TypeError(f"worker_cls must inherit from BaseWorker, got {worker_cls!r}")
        self.worker_cls = worker_cls
        self.gpu_ids = classic_places.check_ids(gpu_ids)
        self.queue_size = settings.integer("queue_size", queue_size, 1, 1_048_576)
        self.suppress_worker_output = settings.flag(
            "suppress_worker_output", suppress_worker_output
        )
        settings.seconds("setup_timeout", setup_timeout)
        self.setup_timeout = setup_timeout
        settings.seconds("grace", grace, zero=True)
        self.grace = grace
        self.max_attempts = settings.integer("max_attempts", max_attempts, 1, 255)
        self._board = classic_board.Board(self.gpu_ids)
        self._current: Run | None = None
        self._free = threading.Lock()

    def run(
        self,
        generator: Iterable[Any],
        on_success: Callable[[int, Any, int], object] | None,
        on_error: Callable[[int, str, int], object] | None = None,
        on_timeout: Callable[[int, float, int], object] | None = None,
        on_setup_fail: Callable[[int, str], object] | None = None,
        on_task_start: Callable[[int, int], object] | None = None,
        on_exit: Callable[[], object] | None = None,
        base_seed: int = 42,
        task_timeout: float | None = None,
        total_tasks: int | None = None,
        *,
        on_progress: Callable[[int, str, Times, int], object] | None = None,
        on_cleanup_fail: Callable[[int, str], object] | None = None,
        **setup_kwargs: Any,
    ) -> None:
        """Runs all items; returns when the last callback has and the workers have ended.

        on_success(task_id, result, worker_id)
        on_error(task_id, traceback_text, worker_id)     [the log]
        on_timeout(task_id, timeout_seconds, worker_id)  [on_error]
        on_setup_fail(gpu_id, traceback_text)            once per row of failures
        on_task_start(task_id, worker_id)                each attempt
        on_progress(task_id, event, times, worker_id)    "queued", "started", "progress", the end
        on_cleanup_fail(gpu_id, traceback_text)
        on_exit()                                        last of all, however the run ends

        Items have the ids 0, 1, 2... in their order.  Each worker's setup gets gpu_id, seed =
        base_seed + worker_id, and setup_kwargs.  A generator and a callback that raise, and Ctrl-C,
        end the run after the callbacks of what is accepted.  When all setups fail: NoWorker."""
        from gpudispatch.classic_run import Calls

        calls = Calls(
            on_success, on_error, on_timeout, on_setup_fail, on_task_start, on_exit, on_progress,
            on_cleanup_fail,
        )  # fmt: skip
        if not self._free.acquire(blocking=False):
            raise RuntimeError("run() is running already")
        try:
            self._current = self._open(
                generator, calls, base_seed, task_timeout, total_tasks, setup_kwargs
            )
            with self._shown(self._current):
                self._current.go()
        finally:
            run, self._current = self._current, None
            try:
                if run is not None:
                    run.end()  # where the run has not come to its own
            finally:
                self._free.release()

    def shutdown(self) -> None:
        """Ends run() early: it takes no more items, cancels those that have not started, and
        returns when the running ones have ended.  For any thread, callback or signal handler."""
        run = self._current
        if run is not None:
            run.stop()

    def get_stats(self) -> RunStats:
        """How far the run is, or how far the last one came.  For any thread."""
        return self._board.snapshot()

    def _open(
        self,
        generator: Iterable[Any],
        calls: Calls,
        base_seed: int,
        task_timeout: float | None,
        total_tasks: int | None,
        setup_kwargs: dict[str, Any],
    ) -> Run:
        """Checks the arguments, and makes the pool of one run."""
        from gpudispatch import classic_board, classic_places, classic_run, settings, source
        from gpudispatch.executor import Executor

        calls.check()
        if isinstance(base_seed, bool) or not isinstance(base_seed, int):
            raise TypeError(f"base_seed must be an int, not {type(base_seed).__name__}")
        if total_tasks is not None:
            settings.integer("total_tasks", total_tasks, 0, 2**62)
        if not (hasattr(generator, "__iter__") or hasattr(generator, "__getitem__")):
            raise TypeError(f"generator must be an iterable, not {type(generator).__name__}")
        devices, places = classic_places.plan(self.gpu_ids, base_seed)
        self._board = classic_board.Board(self.gpu_ids, total_tasks)
        executor = Executor(
            devices=devices,
            worker=Guest,
            setup={
                "worker": source.reference(self.worker_cls),
                "places": [(place.gpu_id, place.seed) for place in places],
                "arguments": setup_kwargs,
            },
            task_timeout=task_timeout,
            grace=self.grace,
            setup_timeout=self.setup_timeout,
            max_attempts=self.max_attempts,
            queue_size=self.queue_size,
            output="tail" if self.suppress_worker_output else "events",
        )
        return classic_run.Run(executor, places, generator, calls, self._board, task_timeout)

    def _shown(self, run: Run) -> AbstractContextManager[None]:
        import contextlib

        return contextlib.nullcontext()


class RichDispatcher(Dispatcher):
    """A Dispatcher that shows what it does: a panel per GPU where rich is installed, else a line.

    show_ui       False: nothing is shown, the stats are kept all the same
    refresh_rate  changes per second
    console       a rich.console.Console; without one it is that of stdout

    Nothing is shown where the console is no terminal.  Any thread may call run().
    """

    def __init__(
        self,
        worker_cls: type[BaseWorker],
        gpu_ids: Sequence[int],
        queue_size: int = 1024,
        show_ui: bool = True,
        refresh_rate: float = 2.0,
        console: Any = None,
        suppress_worker_output: bool = True,
        *,
        setup_timeout: float | None = 900.0,
        grace: float = 2.0,
        max_attempts: int = 1,
    ) -> None:
        from gpudispatch import settings

        super().__init__(
            worker_cls, gpu_ids, queue_size, suppress_worker_output,
            setup_timeout=setup_timeout, grace=grace, max_attempts=max_attempts,
        )  # fmt: skip
        self.show_ui = settings.flag("show_ui", show_ui)
        if refresh_rate is None:
            raise TypeError("refresh_rate must be a number, not NoneType")
        settings.seconds("refresh_rate", refresh_rate)
        self.refresh_rate = refresh_rate
        self.console = console

    def run(  # type: ignore[override]  # where the other returns None
        self,
        generator: Iterable[Any],
        on_success: Callable[[int, Any, int], object] | None = None,
        on_error: Callable[[int, str, int], object] | None = None,
        on_timeout: Callable[[int, float, int], object] | None = None,
        on_setup_fail: Callable[[int, str], object] | None = None,
        on_task_start: Callable[[int, int], object] | None = None,
        on_exit: Callable[[], object] | None = None,
        base_seed: int = 42,
        task_timeout: float | None = None,
        total_tasks: int | None = None,
        *,
        on_progress: Callable[[int, str, Times, int], object] | None = None,
        on_cleanup_fail: Callable[[int, str], object] | None = None,
        **setup_kwargs: Any,
    ) -> RunStats:
        """As Dispatcher.run(), and returns the stats."""
        super().run(
            generator, on_success, on_error, on_timeout, on_setup_fail, on_task_start, on_exit,
            base_seed, task_timeout, total_tasks,
            on_progress=on_progress, on_cleanup_fail=on_cleanup_fail, **setup_kwargs,
        )  # fmt: skip
        return self.get_stats()

    def _shown(self, run: Run) -> AbstractContextManager[None]:
        from gpudispatch import panel

        return panel.shown(run, self.show_ui, self.refresh_rate, self.console)
