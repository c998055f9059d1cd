# SPDX-License-Identifier: MIT
"""Checks the arguments of Pool and Pool.add(), and turns them into options of the library.

As in settings.py, which has what a class of a Pool and an Executor have in common.
"""

from __future__ import annotations

import os

from gpudispatch import needs, settings
from gpudispatch.settings import NEVER

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any

MODES = {"backfill": 0, "strict": 1}
PASSING = {"learned": 0, "apart": 1}
RESIDENCE = {"resident": 0, "transient": 1}
TRANSIENT, EXTERNAL = 1, 2
# Workers for each CPU slot where the pool has no devices: loaded ones take no slot.  The library
# has four for each device.
SEATS_EACH, SEATS_MOST = 4, 64
# The library's queue has room for the quotas of this many classes that are full at a time.
FULL_CLASSES = 64
QUEUE_MOST = 1 << 20
BUDGET_EACH = 512  # bytes of payload_budget for a place in the queue: 64 are its cost
NAME_MOST = 63
INTERNAL = "("  # how the names of the package's own classes begin


def of_pool(
    devices: object,
    *,
    mode: object,
    passing: object,
    cpus: object,
    host_memory: object,
    headroom: object,
    max_workers: object,
    foreign_load: object,
    foreign_memory: object,
    setup_concurrency: object,
    queue_size: object,
    payload_budget: object,
    decision_log: object,
) -> tuple[dict[str, object], int]:
    """The library's options of a pool, and the quota of each class."""
    options: dict[str, object] = {
        "pooled": 1,
        "mode": MODES[settings.choice("mode", mode, tuple(MODES))],
        "passing": PASSING[settings.choice("passing", passing, tuple(PASSING))],
        "close_limit": NEVER,
        "slot_events": 1,  # loads in Pool.progress()
    }
    names = _device_list(devices)
    if names:
        options["devices"] = names
    for name, value, most in (
        ("cpus", cpus, 2**32 - 1),
        ("max_workers", max_workers, 1023),
        ("setup_concurrency", setup_concurrency, 1024),
        ("payload_budget", payload_budget, 2**62),
    ):
        if value is not None:
            options[name] = settings.integer(name, value, 1, most)
    if host_memory is not None:
        options["host_memory"] = needs.size("host_memory", host_memory)
    if foreign_memory is not None:  # 1: not even little
        options["foreign_memory"] = needs.size("foreign_memory", foreign_memory, 1)
    for name, value in (("headroom", headroom), ("foreign_load", foreign_load)):
        if value is not None:
            options[name] = needs.part(name, value)
    if not names and max_workers is None:
        slots = int(str(options.get("cpus", 0))) or len(os.sched_getaffinity(0))
        options["max_workers"] = min(SEATS_MOST, SEATS_EACH * slots)
    if decision_log is not None:
        options["decision_log"] = settings.path("decision_log", decision_log)
    quota = settings.integer("queue_size", queue_size, 1, QUEUE_MOST)
    room = quota * FULL_CLASSES
    if isinstance(payload_budget, int):  # which has the queue, too
        room = min(room, max(quota, payload_budget // BUDGET_EACH))
    options["queue_size"] = min(QUEUE_MOST, room)
    return options, quota


def _device_list(devices: object) -> str:
    """The library's list; "" where the pool has no devices."""
    if devices is None or devices == "":
        return ""
    if devices == "all":
        devices = os.environ.get("GPUDISPATCH_DEVICES") or "all"
    names, _ = settings.device_list(None, devices, 1)
    for entry in names.split(","):
        if entry.startswith("cpu:") or "/" in entry.partition("=")[0]:
            raise ValueError(
                f"devices has {entry!r}: a pool has CPU slots by cpus=, and several workers on a "
                "device by the memory or share of their class"
            )
    return names


def of_class(
    *, residence: str, pinned: bool, min_workers: int, max_workers: int | None, **times: Any
) -> dict[str, int]:
    """The library's fields of a class; what is None has the library's default."""
    fields = {
        "residence": RESIDENCE[settings.choice("residence", residence, tuple(RESIDENCE))],
        "pinned": int(settings.flag("pinned", pinned)),
        "min_workers": settings.integer("min_workers", min_workers, 0),
        # None is "never" here, as the time of an option always is.
        "keep_alive": settings.seconds("keep_alive", times.pop("keep_alive"), zero=True),
    }
    if max_workers is not None:
        fields["max_workers"] = settings.integer("max_workers", max_workers, 1)
    for name, value in times.items():
        if value is not None:
            fields[name] = settings.seconds(name, value, zero=not name.endswith("_seed"))
    return fields


def class_name(name: object) -> str:
    if not settings.text("name", name) or len(str(name).encode()) > NAME_MOST:
        raise ValueError(f"name is {name!r}, expected 1 to {NAME_MOST} bytes")
    if str(name).startswith(INTERNAL):
        raise ValueError(f"name is {name!r}: names with '{INTERNAL}' are the package's own")
    return str(name)


def setup_bytes(setup: object) -> bytes:
    """What a plugin's setup() gets: a text ends with a null character, as in C."""
    if setup is None:
        return b""
    if isinstance(setup, str):
        return setup.encode() + b"\0"
    if not isinstance(setup, bytes):
        raise TypeError(f"setup of a plugin must be bytes or a str, not {type(setup).__name__}")
    return setup
