# SPDX-License-Identifier: MIT
"""Reasons why a task waits: the core's rows, with the task in the way as the program knows it."""

from __future__ import annotations

import contextlib

from gpudispatch.errors import GpuDispatchError
from gpudispatch.leases import Grant
from gpudispatch.session import Session

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from gpudispatch.engine import Engine
    from gpudispatch.future import Future
    from gpudispatch.tables import ClassStats, Reason
    from gpudispatch.work_class import WorkClass

LEAST = -(2**31)  # the lowest priority


def of_task(engine: Engine, task: Future[Any], quota: int) -> list[Reason]:
    """Those of one task; [] if it runs or has ended."""
    if task.done():
        return []
    if not task._id:
        return [in_backlog(quota)]
    return _of_number(engine, task._id) or []


def of_class(engine: Engine, home: WorkClass) -> list[Reason]:
    """Those of the task of a class that comes first of all that wait; [] if none waits."""
    while first := _first(engine, home):
        rows = _of_number(engine, first)
        if rows is not None:
            return rows
    waits = not home.gone.is_set() and engine.backlog.has(home.number)
    return [in_backlog(home.settings.queue_size)] if waits else []


def without_worker(engine: Engine, rows: Sequence[ClassStats]) -> dict[str, str]:
    """The first reason of each class whose tasks wait while it has no worker."""
    found: dict[str, str] = {}
    for row in rows:
        home = engine.classes.named(row["name"])
        if home is not None and row["queued"] and not row["workers"]:
            with contextlib.suppress(RuntimeError):  # the class, or the pool, ends
                found |= {row["name"]: reason["text"] for reason in of_class(engine, home)[:1]}
    return found


def _first(engine: Engine, home: WorkClass) -> int:
    """The core's number of the first task of a class, which is in the way of a task behind all
    others; 0 if none waits."""
    last = home.template(home.task_options().but(priority=LEAST))
    try:
        rows = [] if home.gone.is_set() else engine.core.explain(0, last)
    except GpuDispatchError as error:
        if engine.ended or error.name == "ENODEFINITION":
            return 0  # its end has not been read yet
        if error.name != "ECLOSED":
            raise
        raise RuntimeError(
            f"class {home.name!r} accepts no more tasks: explain the future of a task"
        ) from None
    for row in rows:
        if row["kind"] == "PASSED_OVER_BY" and row["class_name"] == home.name:
            return row["task_id"]
    return 0


def _of_number(engine: Engine, number: int) -> list[Reason] | None:
    """Those of a task with the core's number; None if it has ended."""
    try:
        return known(engine, engine.core.explain(number, None))
    except GpuDispatchError as error:
        if error.name != "ENOTFOUND":
            raise
        return None


def in_backlog(quota: int) -> Reason:
    """The one of a task that waits in the package."""
    return {
        "kind": "BACKLOG", "variant": 0, "unit": "", "device": "", "class_name": "", "task_id": 0,
        "have": 0, "need": 0, "until": 0, "pid": 0, "future": None, "item": None,
        "text": f"BACKLOG: {quota} tasks of its class are in the library (queue_size)",
    }  # fmt: skip


def known(engine: Engine, rows: list[Reason]) -> list[Reason]:
    """The core's rows, with the future or the item of each task that they name."""
    numbers = {row["task_id"] for row in rows} - {0}
    futures = _futures(engine, numbers)
    items = _items(engine, numbers - futures.keys())
    for row in rows:
        row["future"] = futures.get(row["task_id"])
        row["item"] = items.get(row["task_id"])
    return rows


def _futures(engine: Engine, numbers: set[int]) -> dict[int, Any]:
    """Those of submit() and run(), and leases."""
    found: dict[int, Any] = {}
    if numbers:
        for future in list(engine.futures.values()):  # a copy: other threads change it
            if future._id in numbers:
                found[future._id] = future.lease() if isinstance(future, Grant) else future
    return found


def _items(engine: Engine, numbers: set[int]) -> dict[int, Any]:
    """Those of loops."""
    found: dict[int, Any] = {}
    if numbers:
        for reader in (*engine.sessions.all(), *list(engine.sessions.left.values())):
            if isinstance(reader, Session):
                found |= reader.items(numbers)
    return found
