# SPDX-License-Identifier: MIT
"""Executor: the standard interface of concurrent.futures, on a pool of workers that own devices."""

from __future__ import annotations

import concurrent.futures
import os
import sys
from collections.abc import Mapping

from gpudispatch import current, settings, source
from gpudispatch.engine import Engine
from gpudispatch.errors import DeviceError, ReentryError, UnsupportedPlatform
from gpudispatch.keywords import hinted
from gpudispatch.owner import Owner
from gpudispatch.submitter import Submitter

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from gpudispatch.work_class import WorkClass, WorkerObject


class Executor(Owner, Submitter, concurrent.futures.Executor):  # type: ignore[misc]  # map
    """A pool of worker processes, each with devices of its own.

    Thread: any.  Process: the one that made it; a worker cannot make one.
    """

    @hinted
    def __init__(
        self,
        max_workers: int | None = None,
        *,
        devices: str | int | Sequence[str | int] | None = None,
        workers_per_device: int = 1,
        devices_per_worker: int = 1,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        worker: type[Any] | WorkerObject | None = None,
        setup: Mapping[str, Any] | None = None,
        max_batch: int | None = None,
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
        checked = settings.check(
            max_workers=max_workers,
            devices=devices,
            workers_per_device=workers_per_device,
            devices_per_worker=devices_per_worker,
            worker=worker,
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
        if current.IN_WORKER:
            raise ReentryError(source.reentry())
        from gpudispatch.work_class import PythonClass

        home = PythonClass(checked, worker, setup, initializer, initargs)
        self._own(_open(home))
        Submitter.__init__(self, self._engine, home, home.task_options())

    # ---- looks ----

    def ready(self, workers: int = 0, timeout: float | None = None) -> bool:
        """Waits until this many workers [all that can] have passed setup; False after the time."""
        return self._engine.ready(workers, settings.seconds("timeout", timeout, zero=True))

    def __repr__(self) -> str:
        return f"<Executor on {self._home.options['devices']}>"


def _check_platform() -> None:
    if sys.platform != "linux":
        raise UnsupportedPlatform("Linux only; use concurrent.futures here")


def _open(home: WorkClass) -> Engine:
    try:
        return Engine(home.options, home)
    except DeviceError as e:
        if not home.settings.default_devices:
            raise
        raise DeviceError(
            f'{e.message}; for workers on CPUs write Executor(4) or devices="cpu:4"',
            code=e.code,
            name=e.name,
            field="devices",
        ) from None
