# SPDX-License-Identifier: MIT
"""The statistics of a run: RunStats, and the Board that keeps them.

The run reports each start and each end of a task to the Board.  snapshot() reads the state of the
workers from the pool, as long as the pool exists.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypedDict

from gpudispatch.classic_places import worker_ids

if TYPE_CHECKING:
    from gpudispatch.classic_places import Place
    from gpudispatch.executor import Executor
    from gpudispatch.tables import SlotStats

GIVEN_UP = ("FAILED", "QUARANTINED")

WorkerState = Literal["initializing", "restarting", "idle", "processing", "finished", "error"]


class GpuStats(TypedDict):
    """One worker in RunStats.  Times are seconds of time.monotonic()."""

    gpu_id: int
    status: WorkerState
    current_task: int | None
    task_start_time: float | None
    last_duration: float | None
    completed: int
    failed: int
    timeouts: int
    restarts: int


class RunStats(TypedDict):
    """What get_stats() returns.  Times are seconds of time.monotonic()."""

    pending: int  # items that have been pulled and have not ended
    total: int  # items that have ended: completed + failed + timeouts
    completed: int
    failed: int
    timeouts: int
    setup_failures: int
    start_time: float | None
    end_time: float | None
    expected_total: int | None
    gpu_status: dict[int, GpuStats]  # by worker_id


class Observed(Protocol):
    """The part of a run that a Board reads.  Thread rule: any thread."""

    @property
    def executor(self) -> Executor: ...

    @property
    def places(self) -> Sequence[Place]:
        """One for each slot of the executor."""

    @property
    def pulled(self) -> int:
        """The items that the generator has yielded."""


class Board:
    """The stats of a run: what its callbacks were told, and what its pool knows of the workers.
    Thread rule: any thread."""

    def __init__(self, gpu_ids: Sequence[int], expected: int | None = None) -> None:
        self.lock = threading.RLock()
        self.run: Observed | None = None  # while its pool is there
        self.stats: RunStats = {
            "pending": 0,
            "total": 0,
            "completed": 0,
            "failed": 0,
            "timeouts": 0,
            "setup_failures": 0,
            "start_time": None,
            "end_time": None,
            "expected_total": expected,
            "gpu_status": {
                worker: {
                    "gpu_id": number,
                    "status": "initializing",
                    "current_task": None,
                    "task_start_time": None,
                    "last_duration": None,
                    "completed": 0,
                    "failed": 0,
                    "timeouts": 0,
                    "restarts": 0,
                }
                for number, worker in zip(gpu_ids, worker_ids(gpu_ids), strict=True)
            },
        }

    def snapshot(self) -> RunStats:
        with self.lock:
            if self.run is not None:
                self._look(self.run)
            return copy.deepcopy(self.stats)

    def begin(self, run: Observed) -> None:
        with self.lock:
            self.run = run
            self.stats["start_time"] = time.monotonic()

    def end(self) -> None:
        """Before the pool goes."""
        with self.lock:
            self.snapshot()
            self.run = None
            self.stats["end_time"] = time.monotonic()
            self.stats["pending"] = 0
            for row in self.stats["gpu_status"].values():
                row["status"] = "error" if row["status"] == "error" else "finished"
                row["current_task"] = row["task_start_time"] = None

    def started(self, worker: int, index: int, when: float) -> None:
        with self.lock:
            row = self.stats["gpu_status"].get(worker)
            if row is not None:
                row["current_task"] = index
                row["task_start_time"] = when

    def ended(self, worker: int, index: int, kind: str) -> None:
        name: Literal["completed", "failed", "timeouts"] = "failed"
        if kind == "success":
            name = "completed"
        elif kind == "timeout":
            name = "timeouts"
        with self.lock:
            self.stats[name] += 1
            self.stats["total"] += 1
            row = self.stats["gpu_status"].get(worker)  # None: it never got to one
            if row is not None:
                row[name] += 1
                if row["current_task"] == index:
                    row["current_task"] = row["task_start_time"] = None

    def _look(self, run: Observed) -> None:
        self.stats["pending"] = max(0, run.pulled - self.stats["total"])
        self.stats["setup_failures"] = run.executor.stats()["setup_failures"]
        for place, slot in zip(run.places, run.executor.slots()):
            row = self.stats["gpu_status"][place.worker_id]
            row["restarts"] = slot["restarts"]
            row["last_duration"] = slot["last_duration"] / 1e9 or None
            row["status"] = status_of(slot, row["current_task"])
            if row["status"] != "processing":
                row["current_task"] = row["task_start_time"] = None


def status_of(slot: SlotStats, task: int | None) -> WorkerState:
    state = slot["state"]
    if state in GIVEN_UP:
        return "error"
    if state == "BACKOFF" or state == "STARTING" and slot["incarnation"] > 1:
        return "restarting"
    if state == "STARTING" or not slot["incarnation"]:
        return "initializing"
    if state == "STOPPED":
        return "finished"
    return "idle" if task is None else "processing"
