# SPDX-License-Identifier: MIT
"""Executor: the standard interface of concurrent.futures, on a pool of workers that own devices."""

from __future__ import annotations

import concurrent.futures
import os
import sys
import threading
import weakref
from collections.abc import Mapping

from gpudispatch import codec, current, settings, source
from gpudispatch.errors import DeviceError, ReentryError, UnsupportedPlatform
from gpudispatch.future import Future
from gpudispatch.engine import FINISH_ALL, FINISH_NOW, FINISH_RUNNING, Engine
from gpudispatch.settings import NEVER, TaskOptions

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterable,
        AsyncIterator,
        Callable,
        Iterable,
        Iterator,
        Sequence,
    )
    from typing import Any, ParamSpec, TypeVar, overload

    from gpudispatch._core import Template
    from gpudispatch.codec import Encoded
    from gpudispatch.outcomes import Loop, Outcome
    from gpudispatch.progress import ProgressArgument, Watch
    from gpudispatch.session import Bell
    from gpudispatch.settings import Settings
    from gpudispatch.tables import DeviceInfo, SlotStats, Stats

    P = ParamSpec("P")
    T = TypeVar("T")
    A = TypeVar("A")
else:

    def overload(function):
        return function


class Submitter:
    """What an Executor and its views have in common: ways to run tasks with some options."""

    def __init__(self, options: TaskOptions, pool: Settings) -> None:
        self._options = options
        self._template = options.template(pool)

    @property
    def _owner(self) -> Executor:
        raise NotImplementedError

    # ---- submit ----

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Runs fn(*args, **kwargs) in a worker.  Never blocks, unless options(block=True).

        A function that no worker can find is an error at once.  Arguments that cannot be pickled
        are one of the future, as in the standard library.  In a pool with `worker=` the one
        argument is the item: submit(item)."""
        engine, frame = self._owner._engine, self._call(fn, args, kwargs)
        if isinstance(frame, Exception):
            return engine.refused(frame)
        if self._options.block:
            engine.check_wait()
        future: Future[T] = Future()
        future._engine = engine
        future._options = self._options
        engine.submit(self._template, self._options.priority, frame, future)
        if self._options.block:
            engine.wait_for_room(future)
        return future

    def _call(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Encoded | Exception:
        """The frame of a task, or why its arguments cannot be sent."""
        op, value = codec.ITEM, fn
        if self._owner._worker is None:
            op, value = codec.CALL, (source.reference(fn), args, kwargs)
        elif args or kwargs:
            raise TypeError("a pool with worker= takes one item")
        try:
            return codec.encode(op, value, cuda="error", views=not self._options.copy)
        except Exception as error:
            return error

    def _called(self, fn: Callable[..., Any] | None) -> Any:
        """The function as frames name it; None in a pool with worker=, whose frames name none."""
        if self._owner._worker is not None:
            if fn is not None:
                raise TypeError("fn does not go with worker=: its process() is the function")
            return None
        if fn is None:
            raise TypeError("fn is missing: only a pool with worker= needs none")
        return source.reference(fn)

    def _encoders(
        self, fn: Callable[..., Any] | None
    ) -> tuple[Callable[[Any], Encoded], Callable[[list[Any]], Encoded]]:
        """How a session encodes the arguments of one call, and those of a chunk of calls."""
        encode, views, key = codec.encode, not self._options.copy, self._called(fn)
        if key is None:
            return (
                lambda a: encode(codec.ITEM, a[0], cuda="error", views=views),
                lambda many: encode(
                    codec.ITEMS, [a[0] for a in many], cuda="error", views=views
                ),
            )
        return (
            lambda a: encode(codec.CALL, (key, a, {}), cuda="error", views=views),
            lambda many: encode(codec.CHUNK, (key, [*zip(*many)]), cuda="error", views=views),
        )

    def _chunk_template(self, size: int) -> Template:
        """Of chunks: one attempt, since the items of one that dies are tried again one by one."""
        limit = self._options.limit or self._owner._settings.task_timeout
        limit = NEVER if limit == NEVER else min(limit * size, NEVER - 1)
        chunk = self._options.but(max_attempts=1, limit=limit)
        return chunk.template(self._owner._settings)

    # ---- map and outcomes ----

    @overload
    def map(
        self,
        fn: Callable[[A], T],
        iterable: Iterable[A],
        /,
        *,
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]: ...

    @overload
    def map(
        self,
        fn: Callable[..., T],
        first: Iterable[Any],
        second: Iterable[Any],
        /,
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]: ...

    @overload
    def map(
        self,
        items: Iterable[Any],
        /,
        *,
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]: ...

    def map(
        self,
        fn: Any,
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """fn over the items, results in their order, lazily: at most buffersize [queue_size] tasks
        (chunks of items) are ahead of the caller, who waits `timeout` seconds in all.

        In a pool with `worker=`: map(items)."""
        from gpudispatch.mapping import Mapping as Map

        owner = self._owner
        settings.integer("chunksize", chunksize, 1)
        if buffersize is None:
            buffersize = owner._settings.queue_size
        else:
            settings.integer("buffersize", buffersize, 1)
        if owner._worker is not None:
            iterables, fn = (fn, *iterables), None
            if len(iterables) != 1:
                raise TypeError("map() of a pool with worker= takes one iterable of items")
        elif not iterables:
            return iter(())
        one, many = self._encoders(fn)
        run = Map(
            owner._engine,
            zip(*iterables),
            one,
            many,
            self._template,
            self._template if chunksize == 1 else self._chunk_template(chunksize),
            options=self._options,
            chunksize=chunksize,
            buffersize=buffersize,
            timeout=settings.patience("timeout", timeout),
            keep=owner,
        ).run()
        next(run)  # as in outcomes()
        return run

    @overload
    def outcomes(
        self,
        iterable: Iterable[A],
        *,
        fn: Callable[[A], T],
        label: str | None = None,
        progress: ProgressArgument = False,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> Iterator[Outcome[A, T]]: ...

    @overload
    def outcomes(
        self,
        iterable: Iterable[A],
        *,
        fn: None = None,
        label: str | None = None,
        progress: ProgressArgument = False,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> Iterator[Outcome[A, Any]]: ...

    def outcomes(
        self,
        iterable: Iterable[Any],
        *,
        fn: Callable[[Any], Any] | None = None,
        label: str | None = None,
        progress: ProgressArgument = False,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> Iterator[Outcome[Any, Any]]:
        """Runs each item and yields its outcome as it ends: failures are values.

        Lazy: at most queue_size items ahead.  A source that raises ends the loop with that
        exception once all accepted is given out; leaving the loop cancels the rest.

        progress=True shows one line on stderr, where that is a terminal; "tqdm" and "rich" name
        bars of these packages; a bar of theirs or a function(snapshot) will do, too."""
        view = self._relabelled(label, priority)
        make = view._loops(fn, ordered, journal, key, redo, fresh)
        shown: Watch | None = None
        if progress is not False:
            from gpudispatch.progress import watch

            shown = watch(progress, iterable, view._options.label)
        loop = make(iterable, None)
        run = loop.run() if shown is None else shown.over(loop)
        next(run)  # from here on its end closes the session, also where it is never iterated
        return run

    @overload
    def aoutcomes(
        self,
        source: Iterable[A] | AsyncIterable[A],
        *,
        fn: Callable[[A], T],
        label: str | None = None,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> AsyncIterator[Outcome[A, T]]: ...

    @overload
    def aoutcomes(
        self,
        source: Iterable[A] | AsyncIterable[A],
        *,
        fn: None = None,
        label: str | None = None,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> AsyncIterator[Outcome[A, Any]]: ...

    def aoutcomes(
        self,
        source: Iterable[Any] | AsyncIterable[Any],
        *,
        fn: Callable[[Any], Any] | None = None,
        label: str | None = None,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> AsyncIterator[Outcome[Any, Any]]:
        """outcomes() for `async for`: the source may be an async one.  No thread helps."""
        from gpudispatch.aio import aoutcomes

        view = self._relabelled(label, priority)
        make = view._loops(fn, ordered, journal, key, redo, fresh)
        return aoutcomes(self._owner._engine, source, make)

    async def arun(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The value of fn(*args, **kwargs), run in a worker; what it raises is raised here.

        In a pool with `worker=`: await arun(item).  Cancelling the coroutine cancels a task that
        has not started; on_cancel decides about one that runs."""
        from gpudispatch.aio import arun

        frame = self._call(fn, args, kwargs)
        if isinstance(frame, Exception):
            raise frame
        value: T = await arun(self._owner._engine, self._template, frame, self._options)
        return value

    def _relabelled(self, label: str | None, priority: int | None) -> Submitter:
        changes: dict[str, Any] = {}
        if label is not None:
            changes["label"] = label
        if priority is not None:
            changes["priority"] = priority
        return self.options(**changes) if changes else self

    def _loops(
        self,
        fn: Callable[[Any], Any] | None,
        ordered: bool,
        journal: str | os.PathLike[str] | None,
        key: Callable[[Any], bytes | str | int] | None,
        redo: Sequence[str],
        fresh: bool,
    ) -> Callable[[Iterable[Any], Bell | None], Loop[Any, Any]]:
        """Makes loops over sources."""
        from gpudispatch.outcomes import Loop

        owner, template = self._owner, self._template
        engine = owner._engine
        one = self._item_encoder(fn)
        common: dict[str, Any] = {
            "options": self._options,
            "window": owner._settings.queue_size,
            "ordered": settings.flag("ordered", ordered),
            "keep": owner,
        }
        if journal is None:
            if key is not None or fresh:
                raise TypeError("key and fresh go with journal=")
            return lambda source, bell: Loop(engine, source, one, template, bell=bell, **common)
        from gpudispatch.journal import Journal, header_of, key_function
        from gpudispatch.journal_loop import JournalLoop, end_rest

        header = header_of(owner._worker or fn, owner._setup, key)
        named = key_function(key)

        def make(source: Iterable[Any], bell: Bell | None) -> Loop[Any, Any]:
            end_rest(settings.path("journal", journal))
            book = Journal.open(journal, header=header, redo=redo, fresh=fresh)
            try:
                return JournalLoop(
                    engine, source, one, template, bell=bell, journal=book, key=named, **common
                )
            except BaseException:
                book.close()
                raise

        return make

    def _item_encoder(self, fn: Callable[[Any], Any] | None) -> Callable[[Any], Encoded]:
        """How outcomes() encodes an item."""
        encode, views, key = codec.encode, not self._options.copy, self._called(fn)
        if key is None:
            return lambda item: encode(codec.ITEM, item, cuda="error", views=views)
        return lambda item: encode(codec.CALL, (key, (item,), {}), cuda="error", views=views)

    def options(
        self,
        *,
        task_timeout: Any = ...,
        priority: Any = ...,
        label: Any = ...,
        max_attempts: Any = ...,
        retry: Any = ...,
        expires: Any = ...,
        stall_timeout: Any = ...,
        copy: Any = ...,
        block: Any = ...,
        on_cancel: Any = ...,
    ) -> View:
        """A view of the same pool with other options for its tasks."""
        o = self._options
        if task_timeout is not ...:
            o = o.but(limit=settings.seconds("task_timeout", task_timeout))
        if priority is not ...:
            o = o.but(priority=settings.integer("priority", priority, -(2**31), 2**31 - 1))
        if label is not ...:
            o = o.but(label=None if label is None else settings.label_text(label))
        if max_attempts is not ...:
            o = o.but(max_attempts=settings.integer("max_attempts", max_attempts, 1, 255))
        if retry is not ...:
            named = settings.causes(retry)
            o = o.but(retry=named)
            if "oom" in named and not self._owner._settings.oom:
                raise ValueError(
                    "retry has 'oom', which the pool was made without: "
                    "Executor(retry=('oom',), max_attempts=2) prepares its workers"
                )
        if expires is not ...:
            o = o.but(expires=settings.seconds("expires", expires))
        if stall_timeout is not ...:
            o = o.but(stall=settings.seconds("stall_timeout", stall_timeout))
        if copy is not ...:
            o = o.but(copy=settings.flag("copy", copy))
        if block is not ...:
            o = o.but(block=settings.flag("block", block))
        if on_cancel is not ...:
            o = o.but(on_cancel=settings.choice("on_cancel", on_cancel, settings.ON_CANCEL))
        return View(self._owner, o)


class View(Submitter):
    """An Executor with other options: executor.options(...).  It keeps its executor alive."""

    def __init__(self, executor: Executor, options: TaskOptions) -> None:
        self._executor = executor
        super().__init__(options, executor._settings)

    @property
    def _owner(self) -> Executor:
        return self._executor


class Executor(Submitter, concurrent.futures.Executor):  # type: ignore[misc]  # map's overloads
    """A pool of worker processes, each with devices of its own.

    Thread: any.  Process: the one that made it; a worker cannot make one.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        devices: str | int | Sequence[str | int] | None = None,
        workers_per_device: int = 1,
        devices_per_worker: int = 1,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        worker: type[Any] | None = None,
        setup: Mapping[str, Any] | None = None,
        max_batch: int = 1,
        batch_wait: float = 0.0,
        task_timeout: float | None = None,
        grace: float = 2.0,
        setup_timeout: float | None = 900.0,
        max_attempts: int = 1,
        retry: Sequence[str] | str | None = None,
        queue_size: int = 1024,
        payload_budget: int | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        output: str | os.PathLike[str] = "tail",
        base_seed: int = 42,
        cuda_results: str = "cpu",
        max_tasks_per_child: int | None = None,
        mp_context: object = None,
    ) -> None:
        _check_platform()
        if retry is None:
            retry = ("crash", "oom") if isinstance(max_batch, int) and max_batch > 1 else ("crash",)
        checked = settings.check(
            max_workers=max_workers,
            devices=devices,
            workers_per_device=workers_per_device,
            devices_per_worker=devices_per_worker,
            max_batch=max_batch,
            batch_wait=batch_wait,
            task_timeout=task_timeout,
            grace=grace,
            setup_timeout=setup_timeout,
            max_attempts=max_attempts,
            retry=retry,
            queue_size=queue_size,
            payload_budget=payload_budget,
            env=env,
            cwd=cwd,
            output=output,
            base_seed=base_seed,
            cuda_results=cuda_results,
            max_tasks_per_child=max_tasks_per_child,
            mp_context=mp_context,
        )
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        if not isinstance(initargs, (tuple, list)):
            raise TypeError(f"initargs must be a tuple, not {type(initargs).__name__}")
        if setup is not None and not isinstance(setup, Mapping):
            raise TypeError(f"setup must be a mapping, not {type(setup).__name__}")
        if setup is not None and worker is None:
            raise TypeError("setup goes with worker=: its setup() gets these arguments")
        if worker is not None and not callable(getattr(worker, "process", None)):
            raise TypeError(f"worker has no process(): {worker!r}")
        if worker is not None and not isinstance(getattr(worker, "__origin__", worker), type):
            kind = type(worker).__name__
            raise TypeError(f"worker must be a class, not an object: write {kind}, not {kind}(...)")
        if checked.max_batch > 1 and worker is None:
            raise TypeError("max_batch goes with worker=: its process() gets a list of items")
        if current.IN_WORKER:
            raise ReentryError(source.reentry())
        self._worker = worker
        self._setup = setup
        self._settings = checked
        self._engine = _open(checked, worker, setup, initializer, initargs)
        self._finalizer = weakref.finalize(self, Engine.abandon, self._engine)
        self._finalizer.atexit = False
        Submitter.__init__(self, TaskOptions(), checked)

    @property
    def _owner(self) -> Executor:
        return self

    # ---- looks ----

    def ready(self, workers: int = 0, timeout: float | None = None) -> bool:
        """Waits until this many workers [all that can] have passed setup; False after the time."""
        return self._engine.ready(workers, settings.seconds("timeout", timeout, zero=True))

    def stats(self) -> Stats:
        """The counters: tasks by outcome, workers, memory, times in ns (gpudispatch.tables).  After
        shutdown the last ones."""
        counters: Stats = self._engine.look("stats")
        return counters

    def slots(self) -> list[SlotStats]:
        """One row per slot: its worker, its state, the task that runs there now.  After shutdown
        the last ones."""
        rows: list[SlotStats] = self._engine.look("slots")
        return rows

    def devices(self) -> list[DeviceInfo]:
        """One row per device: its name, its health, its readings.  After shutdown the last ones."""
        rows: list[DeviceInfo] = self._engine.look("devices")
        return rows

    # ---- the end ----

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool | None:
        """Waits for all tasks.  After Ctrl-C what has not started is cancelled, and a second Ctrl-C
        kills the workers."""
        if self._engine.forked:
            return None
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            self.shutdown()
            return None
        try:
            self.shutdown(cancel_futures=True)
        except KeyboardInterrupt:
            self.kill_workers()
            self.shutdown()
            raise
        return None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends intake; with wait returns when all tasks and workers have ended."""
        self._engine.close(FINISH_RUNNING if cancel_futures else FINISH_ALL)
        if wait:
            self._engine.join()

    def terminate_workers(self) -> None:
        """Cancels all tasks and closes: running ones have the pool's grace."""
        self._engine.close(FINISH_NOW)

    def kill_workers(self) -> None:
        """Cancels all tasks, kills the workers and closes."""
        self._engine.close(FINISH_NOW, 1)

    def __repr__(self) -> str:
        return f"<Executor on {self._settings.options['devices']}>"


def _check_platform() -> None:
    if sys.platform != "linux":
        raise UnsupportedPlatform("Linux only; use concurrent.futures here")


def _open(
    checked: Settings,
    worker: type[Any] | None,
    setup: Mapping[str, Any] | None,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
) -> Engine:
    host = source.host_state(directory="cwd" not in checked.options)
    blob = {
        "host": current.Arrival(host),  # first: it is taken over as it is read
        "worker": None if worker is None else source.reference(worker),
        "setup": None if worker is None else dict(setup or {}),
        "initializer": None if initializer is None else source.reference(initializer),
        "initargs": tuple(initargs),
        "max_batch": checked.max_batch,
        "cuda_results": checked.cuda_results,
        "oom": checked.oom,
    }
    frame = codec.encode(codec.VALUE, blob, cuda="error", views=True)
    try:
        return Engine(
            checked.options, _worker_argv(), frame, checked.task_timeout, second_try=checked.oom
        )
    except DeviceError as e:
        if not checked.default_devices:
            raise
        raise DeviceError(
            f'{e.message}; for workers on CPUs write Executor(4) or devices="cpu:4"',
            code=e.code,
            name=e.name,
            field="devices",
        ) from None


def _worker_argv() -> list[str]:
    """The command of a worker: this interpreter, and this package where it lies."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    argv = [sys.executable, *_interpreter_flags(), "-P", "-u"]
    site = None if sys.flags.no_site else sys.modules.get("site")
    if site is not None and home in site.getsitepackages():
        return [*argv, "-m", "gpudispatch.worker"]
    start = f"import sys; sys.path.insert(0, {home!r}); import gpudispatch.worker as w; w.main()"
    return [*argv, "-c", start]


def _interpreter_flags() -> list[str]:
    """The options with which this interpreter was started; mostly none, without an import."""
    f = sys.flags
    usual = not (
        f.debug or f.no_site or f.verbose or f.bytes_warning or f.quiet or f.optimize or f.isolated
        or f.ignore_environment or f.no_user_site or f.safe_path or f.dev_mode or f.utf8_mode
    )
    if usual and not sys.warnoptions and not sys._xoptions:
        return ["-B"] if f.dont_write_bytecode else []
    import subprocess

    found: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return found


_named: dict[str, tuple[dict[str, Any], Executor]] = {}
_named_lock = threading.Lock()


def get_executor(name: str, **arguments: Any) -> Executor:
    """The living pool of this name where the arguments are equal, else a new one in its place.

    A notebook cell that is run again loads no model again."""
    with _named_lock:
        for known, (_, ended) in list(_named.items()):
            if ended._engine.closing is not None or ended._engine.forked:
                del _named[known]
        held = _named.get(name)
        if held is not None:
            before, executor = held
            if _same(before, arguments) and not executor._engine.has_failed():
                return executor
            executor.shutdown(wait=False)
        made = Executor(**arguments)
        _named[name] = (arguments, made)
        return made


def _same(a: Any, b: Any) -> bool:
    """Whether two values are equal, or else would reach a worker as the same bytes."""
    if type(a) is not type(b):
        return False
    if type(a) is dict:
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if type(a) in (list, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    try:
        return (a == b) is True or codec.encode(codec.VALUE, a) == codec.encode(codec.VALUE, b)
    except Exception:
        return False
