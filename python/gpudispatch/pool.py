# SPDX-License-Identifier: MIT
"""Pool: several classes of work, such as models, on the same devices.

    with Pool() as pool:  # all GPUs
        qwen = pool.add("qwen", worker=Model, setup={"path": "qwen"}, devices=2, memory="60GiB")
        llama = pool.add("llama", worker=Model, setup={"path": "llama"}, memory="18GiB")
        for r in pool.outcomes({"qwen": prompts, "llama": prompts}, journal="night.gdj"):
            print(r.name, r.item, r.value if r.ok else r.text)

The library decides which class has a worker on which device, and when an idle worker leaves for
another class (docs/explain/scheduling.md).  The package gives each class its own quota of the
library's queue, so that a class with a long queue leaves the others theirs.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Mapping

from gpudispatch import current, needs, pool_settings, settings, source
from gpudispatch.engine import Engine
from gpudispatch.errors import (
    DeviceError,
    GpuDispatchError,
    ReentryError,
    UnsupportedPlatform,
)
from gpudispatch.future import Future
from gpudispatch.keywords import hinted
from gpudispatch.owner import Owner
from gpudispatch.pool_class import PoolClass
from gpudispatch.pool_settings import EXTERNAL, INTERNAL, TRANSIENT, class_name, setup_bytes
from gpudispatch.submitter import Submitter
from gpudispatch.work_class import ExternalClass, PluginClass, PythonClass

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from subprocess import CompletedProcess
    from typing import Any

    from gpudispatch.leases import Lease
    from gpudispatch.outcomes import Outcome
    from gpudispatch.pool_progress import PoolSnapshot
    from gpudispatch.tables import ClassChange, ClassStats, Needs, Reason
    from gpudispatch.watching import Progress
    from gpudispatch.work_class import WorkClass, WorkerObject

START_S = 10.0  # from the grant of a lease to its report, which the pool's thread makes at once
RETURN_S = 30.0  # from the request to return a lease to the demand


class Pool(Owner):
    """Classes of work that share devices.

    Thread: any.  Process: the one that made it; a worker cannot make one.
    """

    @hinted
    def __init__(
        self,
        devices: str | int | Sequence[str | int] | None = "all",
        *,
        mode: str = "backfill",
        passing: str = "learned",
        cpus: int | None = None,
        host_memory: int | str | None = None,
        headroom: float | None = None,
        max_workers: int | None = None,
        foreign_load: float | None = None,
        foreign_memory: int | str | None = None,
        setup_concurrency: int | None = None,
        queue_size: int = 1024,
        payload_budget: int | None = None,
        decision_log: str | os.PathLike[str] | None = None,
        on_class: Callable[[ClassChange], object] | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise UnsupportedPlatform("Linux only")
        options, self._quota = pool_settings.of_pool(
            devices,
            mode=mode,
            passing=passing,
            cpus=cpus,
            host_memory=host_memory,
            headroom=headroom,
            max_workers=max_workers,
            foreign_load=foreign_load,
            foreign_memory=foreign_memory,
            setup_concurrency=setup_concurrency,
            queue_size=queue_size,
            payload_budget=payload_budget,
            decision_log=decision_log,
        )
        if on_class is not None and not callable(on_class):
            raise TypeError("on_class must be a callable")
        if current.IN_WORKER:
            raise ReentryError(source.reentry())
        self._devices = str(options.get("devices", ""))
        self._progress: Progress | None = None
        self._own(_open(options, devices))
        if on_class is not None:
            self._engine.classes.call(on_class)

    # ---- classes ----

    @hinted
    def add(
        self,
        name: str,
        *,
        worker: type[Any] | WorkerObject | None = None,
        plugin: str | os.PathLike[str] | None = None,
        definition: str | None = None,
        setup: Mapping[str, Any] | bytes | str | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        devices: int = 1,
        memory: int | str | None = None,
        share: float | None = None,
        cpus: int | None = None,
        host_memory: int | str | None = None,
        compute: str | float | None = None,
        on: str | Sequence[str] | None = None,
        not_on: str | Sequence[str] | None = None,
        variants: Sequence[Needs] = (),
        residence: str = "resident",
        min_workers: int = 0,
        max_workers: int | None = None,
        keep_alive: float | None = 300.0,
        min_residence: float | None = None,
        max_wait: float | None = None,
        pinned: bool = False,
        boot_seed: float | None = None,
        unload_seed: float | None = None,
        run_seed: float | None = None,
        max_batch: int | None = None,
        batch_wait: float = 0.0,
        task_timeout: float | None = None,
        grace: float = 2.0,
        setup_timeout: float | None = 900.0,
        max_attempts: int = 1,
        retry: Sequence[str] | str | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        output: str | os.PathLike[str] = "tail",
        base_seed: int = 42,
        cuda_results: str = "cpu",
        max_tasks_per_child: int | None = None,
    ) -> PoolClass:
        """Adds a class: what its workers are and need.  It starts none, unless min_workers is set:
        the first one starts when a task waits, or by load()."""
        wanted = needs.of(
            devices, memory, share, cpus, host_memory, compute, on, not_on, variants
        )
        fields = pool_settings.of_class(
            residence=residence,
            min_workers=min_workers,
            max_workers=max_workers,
            pinned=pinned,
            keep_alive=keep_alive,
            min_residence=min_residence,
            max_wait=max_wait,
            boot_seed=boot_seed,
            unload_seed=unload_seed,
            run_seed=run_seed,
        )
        checked = settings.of_class(
            max_batch=max_batch,
            batch_wait=batch_wait,
            task_timeout=task_timeout,
            grace=grace,
            setup_timeout=setup_timeout,
            max_attempts=max_attempts,
            retry=retry,
            queue_size=self._quota,
            env=env,
            cwd=cwd,
            output=output,
            base_seed=base_seed,
            cuda_results=cuda_results,
            max_tasks_per_child=max_tasks_per_child,
            worker=worker,
            workers=self._workers_beside(wanted[0]),
        )
        home: WorkClass
        if plugin is not None:
            if worker is not None or initializer is not None:
                raise TypeError("plugin goes without worker and initializer")
            home = PluginClass(
                checked,
                settings.path("plugin", plugin),
                None if definition is None else settings.text("definition", definition),
                setup_bytes(setup),
                class_name(name),
            )
        elif definition is not None or isinstance(setup, (bytes, str)):
            raise TypeError("definition, and setup as bytes, go with plugin=")
        else:
            home = PythonClass(checked, worker, setup, initializer, initargs, class_name(name))
        return self._add(home, fields, wanted)

    def _add(
        self, home: WorkClass, fields: dict[str, int], wanted: list[needs.Request]
    ) -> PoolClass:
        self._engine.classes.add(home, fields, wanted)
        return PoolClass(self, home)

    def _workers_beside(self, request: needs.Request) -> int | None:
        """By how many workers the machine's CPUs are divided, for threads of numeric libraries."""
        usable = len(os.sched_getaffinity(0))
        if request.get("cpus"):
            return max(1, usable // int(str(request["cpus"])))
        each = int(str(request["devices"])) if request.get("devices") else 0
        return max(1, len(self._engine.look("devices")) // each) if each else None

    def __getitem__(self, name: str) -> PoolClass:
        """The class of this name."""
        home = self._engine.classes.named(name)
        if home is None or name.startswith(INTERNAL):
            raise KeyError(name)
        return PoolClass(self, home)

    # ---- loops ----

    def outcomes(
        self,
        sources: Mapping[str, Iterable[Any]],
        *,
        fn: Callable[[Any], Any] | Mapping[str, Callable[[Any], Any]] | None = None,
        progress: bool | Callable[[PoolSnapshot], object] = False,
        ordered: bool = False,
        priority: int | None = None,
        journal: str | os.PathLike[str] | None = None,
        key: Callable[[Any], bytes | str | int] | None = None,
        redo: Sequence[str] = ("crash", "timeout", "device"),
        fresh: bool = False,
    ) -> Iterator[Outcome[Any, Any]]:
        """Runs the items of several classes, {"class": items}, and yields each outcome as it ends;
        r.name is its class.  Each class has a window of its own, one journal is for all.

        As PoolClass.outcomes(), of which it is one for each class: lazy, failures are values."""
        self._engine.check_forked()  # before imports, whose locks may be held for ever
        from gpudispatch.pool_outcomes import PoolLoop, loops_of, parts_of
        from gpudispatch.pool_progress import watch
        from gpudispatch.progress import size_of

        parts = parts_of(self, sources, fn, priority)
        settings.flag("ordered", ordered)
        shown = watch(progress, {n: size_of(s) for n, s in sources.items()}, self.classes)
        loops = loops_of(sources, parts, ordered, journal, key, redo, fresh)
        run = PoolLoop(loops, shown).run()
        next(run)  # from here on its end closes the sessions, also where it is never iterated
        return run

    # ---- work of the program's own ----

    @hinted
    def lease(
        self,
        devices: int = 1,
        memory: int | str | None = None,
        *,
        share: float | None = None,
        cpus: int | None = None,
        host_memory: int | str | None = None,
        compute: str | float | None = None,
        on: str | Sequence[str] | None = None,
        not_on: str | Sequence[str] | None = None,
        variants: Sequence[Needs] = (),
        timeout: float | None = None,
        priority: int = 0,
        max_wait: float | None = None,
        label: str | None = None,
        visible: str = "auto",
    ) -> Lease:
        """Devices for a thread, a notebook cell or a subprocess: `with pool.lease() as g:`, `async
        with`, or open() and close().  `timeout` bounds the wait for them: TimeoutError.

        After `max_wait` [5 min] busy workers leave, whose class has no task that comes first."""
        self._engine.check_forked()
        from gpudispatch.leases import Grant, Lease

        wanted = needs.of(
            devices, memory, share, cpus, host_memory, compute, on, not_on, variants
        )
        settings.choice("visible", visible, ("auto", "uuid", "index"))
        patience = settings.patience("timeout", timeout)
        home = self._inner("lease", _lease_class, EXTERNAL, max_wait)
        options = home.task_options().but(
            request=wanted,
            priority=settings.integer("priority", priority, -(2**31), 2**31 - 1),
            label=None if label is None else settings.label_text(label),
        )
        grant = Grant()
        submit = functools.partial(
            grant.submit, self._engine, home, home.template(options), options
        )
        return Lease(self, grant, submit, visible, patience)

    @hinted
    def run(
        self,
        argv: Sequence[str | os.PathLike[str]],
        *,
        devices: int = 1,
        memory: int | str | None = None,
        share: float | None = None,
        cpus: int | None = None,
        host_memory: int | str | None = None,
        compute: str | float | None = None,
        on: str | Sequence[str] | None = None,
        not_on: str | Sequence[str] | None = None,
        variants: Sequence[Needs] = (),
        timeout: float | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        input: bytes | None = None,
        capture_output: bool = False,
        check: bool = False,
        max_attempts: int = 1,
        retry: Sequence[str] | str = ("crash",),
        priority: int = 0,
        max_wait: float | None = None,
        label: str | None = None,
    ) -> Future[CompletedProcess[bytes]]:
        """Runs a command once it has devices, in a worker of its own: all that the command has
        started is killed with it.  The arguments are those of subprocess.run(), and of lease()."""
        self._engine.check_forked()
        from gpudispatch import commands

        wanted = needs.of(
            devices, memory, share, cpus, host_memory, compute, on, not_on, variants
        )
        call = commands.checked(argv, env, cwd, input, capture_output, check)
        home = self._inner("run", _run_class, TRANSIENT, max_wait)
        limit = settings.seconds("timeout", timeout)
        view = PoolClass(self, home).options(
            priority=priority, label=label or commands.label_of(call.argv),
            max_attempts=max_attempts, retry=retry,
        )  # fmt: skip
        return view._but(request=wanted, limit=limit, alone=True).submit(commands.run, call)

    def _inner(
        self,
        kind: str,
        make: Callable[[int], WorkClass],
        residence: int,
        max_wait: float | None,
    ) -> WorkClass:
        """A class of the package's own, made with its first use; one for each max_wait."""
        name, fields = f"({kind})", {"residence": residence}
        if max_wait is not None:
            fields["max_wait"] = settings.seconds("max_wait", max_wait, zero=True)
            name = f"({kind}, max_wait {max_wait:g} s)"
        with self._engine.lock:
            home = self._engine.classes.named(name)
            if home is None:
                home = make(self._quota)
                home.name = name
                self._engine.classes.add(home, fields, [])
            return home

    def __contains__(self, name: object) -> bool:
        """Whether the pool has a class of this name."""
        return name in list(self)

    def __iter__(self) -> Iterator[str]:
        """The names of the classes, in the order of their add()."""
        names = [row["name"] for row in self.classes()]
        return iter([name for name in names if not name.startswith(INTERNAL)])

    # ---- looks ----

    def classes(self) -> list[ClassStats]:
        """One row per class: its tasks, its workers, how long they took.  After shutdown the last
        ones."""
        rows: list[ClassStats] = self._engine.look("classes")
        return rows

    def progress(self) -> Progress:
        """The work of the pool, now and on each device in the last ten minutes: as text, as a
        picture that changes in a notebook, or `with` a block as lines.  Each call returns the
        same object, so that a picture shown again moves to its new place."""
        engine = self._engine
        engine.check_forked()
        with engine.lock:
            if self._progress is None:
                from gpudispatch import pool_moment
                from gpudispatch.watching import Progress

                title = repr(self).strip("<>")
                self._progress = Progress(functools.partial(pool_moment.look, engine, title))
            return self._progress

    def explain(self, future: Future[Any] | Lease | Submitter | str) -> list[Reason]:
        """Why a task does not start, the reason that may end first in front; [] for one that runs
        or has ended.  A task in the way that is of this pool has its future or item in the row.

        Of a class, or the name of one: why none of its tasks that wait starts; [] if none waits."""
        engine = self._engine
        engine.check_forked()
        from gpudispatch import reasons
        from gpudispatch.leases import Lease

        subject = self[future] if isinstance(future, str) else future
        task: Any = subject._grant if isinstance(subject, Lease) else subject
        if not isinstance(task, (Future, Submitter)):
            raise TypeError(
                f"future must be a Future, a Lease or a class, not {type(future).__name__}"
            )
        asked = getattr(task, "_engine", None)
        if asked is None and isinstance(subject, Lease):
            raise ValueError("the lease is not open: open(), or with, has it wait for its devices")
        if asked is not engine:
            raise ValueError("the future is not of this pool")
        if isinstance(task, Submitter):
            return reasons.of_class(engine, task._home)
        return reasons.of_task(engine, task, self._quota)

    def device_drain(self, name: str) -> None:
        """Ends the workers of a device, busy ones after their task, and starts none there until
        device_return()."""
        self._change(self._engine.core.device_drain, name)

    def device_pause(self, name: str) -> None:
        """Starts nothing on a device until device_return(); its workers stay."""
        self._change(self._engine.core.device_pause, name)

    def device_return(self, name: str) -> None:
        """Ends device_drain() and device_pause()."""
        self._change(self._engine.core.device_return, name)

    def _change(self, change: Callable[[str], None], name: str) -> None:
        try:
            change(name)
        except GpuDispatchError as e:
            if e.name != "ENOTFOUND":
                raise
            there = ", ".join(row["name"] for row in self.devices()) or "none"
            raise GpuDispatchError(
                f"name is {name!r}, expected one of the pool's devices: {there}",
                code=e.code,
                name=e.name,
                field="name",
            ) from None

    if not TYPE_CHECKING:  # a type checker would take any name for one of Pool

        def __getattr__(self, name: str) -> Any:
            of_class = not name.startswith("_") and hasattr(PoolClass, name)
            hint = f': use that of a class, pool["name"].{name}' if of_class else ""
            raise AttributeError(f"a Pool has no {name!r}{hint}", name=name, obj=self)

    def __str__(self) -> str:
        from gpudispatch import reasons
        from gpudispatch.pool_text import table

        rows = self.classes()
        return table(self.devices(), rows, reasons.without_worker(self._engine, rows))

    def __repr__(self) -> str:
        return f"<Pool on {self._devices or 'no devices'}>"

    def __enter__(self) -> Pool:
        return self


def _lease_class(quota: int) -> WorkClass:
    checked = settings.of_class(queue_size=quota, setup_timeout=START_S, grace=RETURN_S)
    return ExternalClass("", checked)


def _run_class(quota: int) -> WorkClass:
    """Of workers that are replaced after a command, if none of the others is just then."""
    checked = settings.of_class(queue_size=quota, max_tasks_per_child=1)
    return PythonClass(checked)


def _open(options: dict[str, object], devices: object) -> Engine:
    try:
        return Engine(options)
    except DeviceError as e:
        if options.get("devices") == "all":
            hint = 'Pool("fake:8") has simulated GPUs, Pool(None, cpus=4) only CPU slots'
        elif isinstance(devices, int) and devices > 0:
            hint = (
                f'Pool({devices}) is the GPU of this number; Pool("fake:{devices}") has so many '
                f"simulated GPUs, Pool(None, cpus={devices}) CPU slots, and Pool([0, 1]) two GPUs"
            )
        else:
            raise
        raise DeviceError(
            f"{e.message}; {hint}", code=e.code, name=e.name, field="devices"
        ) from None
