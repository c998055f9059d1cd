# SPDX-License-Identifier: MIT
"""Programs of users with the founding interface and with tables, as type checkers see them.

As in users.py, a line that has to be refused carries the comment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_type

from gpudispatch import (
    BaseWorker,
    DeviceInfo,
    Dispatcher,
    Executor,
    RichDispatcher,
    SlotStats,
    Stats,
    Times,
)
from gpudispatch.classic_board import RunStats
from gpudispatch.progress import Snapshot


class Worker(BaseWorker):
    def setup(self, gpu_id: int, seed: int, model_path: str) -> None:
        self.model = model_path

    def process(self, data: str) -> int:
        return len(data)


class Flexible(BaseWorker):
    def setup(self, gpu_id: int, seed: int, **kwargs: object) -> None: ...

    def process(self, data: str) -> int:
        return len(data)

    def cleanup(self) -> None: ...


class Unfinished(BaseWorker):
    def process(self, data: str) -> int:
        return len(data)


def items() -> Iterator[str]:
    yield "a"


def on_success(task_id: int, result: int, worker_id: int) -> None: ...
def on_error(task_id: int, text: str, worker_id: int) -> None: ...
def on_timeout(task_id: int, seconds: float, worker_id: int) -> None: ...
def on_setup_fail(gpu_id: int, text: str) -> None: ...
def on_task_start(task_id: int, worker_id: int) -> None: ...
def on_progress(task_id: int, event: str, times: Times, worker_id: int) -> None: ...
def on_exit() -> None: ...


def callbacks() -> None:
    dispatcher = Dispatcher(Worker, [0, 1], 64, suppress_worker_output=True)
    dispatcher.run(
        items(), on_success, on_error, on_timeout, on_setup_fail, on_task_start, on_exit,
        on_progress=on_progress, on_cleanup_fail=on_setup_fail, task_timeout=30.0, total_tasks=1,
        model_path="x",
    )  # fmt: skip
    assert_type(dispatcher.get_stats(), RunStats)
    assert_type(dispatcher.get_stats()["gpu_status"][0]["completed"], int)
    dispatcher.shutdown()
    dispatcher.run(items(), on_timeout=on_timeout)  # type: ignore
    dispatcher.run(items(), on_success, on_error=on_exit)  # type: ignore
    Dispatcher(int, [0])  # type: ignore
    Dispatcher(Flexible, ["0"])  # type: ignore
    Unfinished()  # type: ignore


def panels() -> None:
    stats = RichDispatcher(Flexible, [0, 1], show_ui=False, refresh_rate=4.0).run(items())
    assert_type(stats, RunStats)
    assert_type(stats["completed"], int)
    stats["complete"]  # type: ignore


def rows(executor: Executor) -> None:
    assert_type(executor.stats(), Stats)
    assert_type(executor.stats()["success"], int)
    assert_type(executor.stats()["eta_low"], int | None)
    executor.stats()["succes"]  # type: ignore
    for slot in executor.slots():
        assert_type(slot, SlotStats)
        assert slot["state"] != "BUSY" or slot["task_id"]
    for device in executor.devices():
        assert_type(device, DeviceInfo)
        assert_type(device["temperature"], int | None)


def show(snapshot: Snapshot) -> None:
    assert_type(snapshot.left, float | None)


def progress(executor: Executor) -> None:
    for _ in executor.outcomes(["a"], fn=len, progress=True):
        pass
    for _ in executor.outcomes(["a"], fn=len, progress="tqdm"):
        pass
    for _ in executor.outcomes(["a"], fn=len, progress=show):
        pass
