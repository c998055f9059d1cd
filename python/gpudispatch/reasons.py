# SPDX-License-Identifier: MIT
"""Reasons why a task waits: the core's rows, with the task in the way as the program knows it."""

from __future__ import annotations

from gpudispatch.leases import Grant
from gpudispatch.session import Session

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any

    from gpudispatch.engine import Engine
    from gpudispatch.tables import Reason


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
