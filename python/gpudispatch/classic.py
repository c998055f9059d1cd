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

    from gpudispatch.classic_run import Calls, Place, Run, RunStats
    from gpudispatch.future import Times
    from gpudispatch.pool import Pool

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

    def __init__(self) -> None:  # noqa: B027
        pass

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

    process: Callable[[Any], Any]
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
        self.process = guest.process  # the worker's own: no detour for each item
        self.cleanup = guest.cleanup
        try:
            guest.setup(gpu_id=gpu_id, seed=seed, **arguments)
        except Exception as error:
            if _ORDINAL in str(error):
                error.add_note(_ORDINAL_NOTE)
            raise


class _Pools:
    """What both dispatchers have in common: pools of workers, one for each run."""

    def __init__(
        self,
        worker_cls: type[BaseWorker],
        gpu_ids: Sequence[int],
        queue_size: int,
        suppress_worker_output: bool,
        setup_timeout: float | None,
        grace: float,
        max_attempts: int,
    ) -> None:
        import threading

        from gpudispatch import classic_run, settings

        if not (isinstance(worker_cls, type) and issubclass(worker_cls, BaseWorker)):
            raise TypeError(f"worker_cls must inherit from BaseWorker, got {worker_cls!r}")
        self.worker_cls = worker_cls
        self.gpu_ids = classic_run.check_ids(gpu_ids)
        self.queue_size = settings.integer("queue_size", queue_size, 1, 1_048_576)
        self.suppress_worker_output = settings.flag(
            "suppress_worker_output", suppress_worker_output
        )
        settings.seconds("setup_timeout", setup_timeout)
        self.setup_timeout = setup_timeout
        settings.seconds("grace", grace, zero=True)
        self.grace = grace
        self.max_attempts = settings.integer("max_attempts", max_attempts, 1, 255)
        self._board = classic_run.Board(self.gpu_ids)
        self._run: Run | None = None
        self._free = threading.Lock()

    def shutdown(self) -> None:
        """Ends run() early: it takes no more items, cancels those that have not started, and
        returns when the running ones have ended.  For any thread, callback or signal handler."""
        run = self._run
        if run is not None:
            run.stop()

    def get_stats(self) -> RunStats:
        """How far the run is, or how far the last one came.  For any thread."""
        return self._board.snapshot()

    def _claim(self) -> None:
        if not self._free.acquire(blocking=False):
            raise RuntimeError("run() is running already")

    def _release(self) -> None:
        run, self._run = self._run, None
        try:
            if run is not None:
                run.end()  # where the run has not come to its own
        finally:
            self._free.release()

    def _start(
        self,
        generator: Iterable[Any],
        calls: Calls,
        base_seed: int,
        task_timeout: float | None,
        total_tasks: int | None,
        setup_kwargs: dict[str, Any],
    ) -> Run:
        """Makes the pool and its run; the caller goes through with it."""
        from gpudispatch import classic_run, settings

        calls.check()
        if isinstance(base_seed, bool) or not isinstance(base_seed, int):
            raise TypeError(f"base_seed must be an int, not {type(base_seed).__name__}")
        if total_tasks is not None:
            settings.integer("total_tasks", total_tasks, 0, 2**62)
        iter_of = getattr(type(generator), "__iter__", None)
        if iter_of is None and not hasattr(type(generator), "__getitem__"):
            raise TypeError(f"generator must be an iterable, not {type(generator).__name__}")
        devices, places = classic_run.plan(self.gpu_ids, base_seed)
        self._board = classic_run.Board(self.gpu_ids, total_tasks)
        pool = self._open(devices, places, task_timeout, setup_kwargs)
        run = classic_run.Run(
            pool,
            places,
            generator,
            calls,
            self._board,
            queue_size=self.queue_size,
            task_timeout=task_timeout,
        )
        self._run = run
        return run

    def _open(
        self,
        devices: str,
        places: list[Place],
        task_timeout: float | None,
        setup_kwargs: dict[str, Any],
    ) -> Pool:
        from gpudispatch import current, executor, settings, source
        from gpudispatch.errors import ReentryError

        checked = settings.check(
            max_workers=None,
            devices=devices,
            workers_per_device=1,
            devices_per_worker=1,
            max_batch=1,
            batch_wait=0.0,
            task_timeout=task_timeout,
            grace=self.grace,
            setup_timeout=self.setup_timeout,
            max_attempts=self.max_attempts,
            retry=("crash",),
            queue_size=self.queue_size,
            payload_budget=None,
            env=None,
            cwd=None,
            output="tail" if self.suppress_worker_output else "events",
            base_seed=0,
            cuda_results="cpu",
            max_tasks_per_child=None,
            mp_context=None,
        )
        if current.IN_WORKER:
            raise ReentryError(source.reentry())
        checked = checked.but(options=checked.options | {"slot_events": 1})
        setup = {
            "worker": source.reference(self.worker_cls),
            "places": [(place.gpu_id, place.seed) for place in places],
            "arguments": setup_kwargs,
        }
        return executor._open(checked, Guest, setup, None, ())


class Dispatcher(_Pools):
    """Runs a generator's items on workers, one per entry of gpu_ids.

    worker_cls              a subclass of BaseWorker
    gpu_ids                 numbers of GPUs; a number that stands there twice gets two workers
    queue_size              items that are ahead of the callbacks, at most
    suppress_worker_output  True: what workers print is not shown; it is in texts of failures
    setup_timeout, grace, max_attempts   as in Executor

    In callbacks, worker_id is the number of the GPU.  Of equal numbers, each worker after the first
    has one of its own, above all of gpu_ids; -1 stands for no worker.

    A setup that fails is tried up to three times, after 1 s and 2 s, while other workers go on.

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
        super().__init__(
            worker_cls, gpu_ids, queue_size, suppress_worker_output, setup_timeout, grace,
            max_attempts,
        )  # fmt: skip

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

        Items have the ids 0, 1, 2... in their order; results come as they end.

        on_success(task_id, result, worker_id)
        on_error(task_id, traceback_text, worker_id)     also for a worker that died; without an
                                                         on_error the log gets the text
        on_timeout(task_id, timeout_seconds, worker_id)  [on_error]
        on_setup_fail(gpu_id, traceback_text)            at the first failure; once more only if the
                                                         worker has come up in between
        on_task_start(task_id, worker_id)                each attempt
        on_progress(task_id, event, times, worker_id)    event: "queued", "started", "progress" (the
                                                         task called current_task().progress) and
                                                         the kind of its end, as Outcome.kind
        on_cleanup_fail(gpu_id, traceback_text)
        on_exit()                                        last of all, however the run ends

        Each worker gets seed = base_seed + worker_id, and setup_kwargs.

        A generator that raises, and a callback that raises, end the run: what is accepted gets its
        callbacks, then run() raises.  After a callback that raises, items that have not started are
        cancelled.  At Ctrl-C, too; running ones have `grace` to end, then KeyboardInterrupt.  A
        second Ctrl-C kills the workers.  When all workers have failed in setup: NoWorker."""
        from gpudispatch.classic_run import Calls

        calls = Calls(
            on_success, on_error, on_timeout, on_setup_fail, on_task_start, on_exit, on_progress,
            on_cleanup_fail,
        )  # fmt: skip
        self._claim()
        try:
            run = self._start(generator, calls, base_seed, task_timeout, total_tasks, setup_kwargs)
            run.go()
        finally:
            self._release()


class RichDispatcher(_Pools):
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
            worker_cls, gpu_ids, queue_size, suppress_worker_output, setup_timeout, grace,
            max_attempts,
        )  # fmt: skip
        self.show_ui = settings.flag("show_ui", show_ui)
        settings.seconds("refresh_rate", 1.0 if refresh_rate is None else refresh_rate)
        if refresh_rate is None:
            raise TypeError("refresh_rate must be a number, not NoneType")
        self.refresh_rate = refresh_rate
        self.console = console

    def run(
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
        from gpudispatch import panel
        from gpudispatch.classic_run import Calls

        calls = Calls(
            on_success, on_error, on_timeout, on_setup_fail, on_task_start, on_exit, on_progress,
            on_cleanup_fail,
        )  # fmt: skip
        self._claim()
        try:
            run = self._start(generator, calls, base_seed, task_timeout, total_tasks, setup_kwargs)
            with panel.shown(run, self.show_ui, self.refresh_rate, self.console):
                run.go()
        finally:
            self._release()
        return self.get_stats()
