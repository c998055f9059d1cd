# SPDX-License-Identifier: MIT
"""The places of workers: the slot that each entry of gpu_ids gets.

plan() returns the device list of the pool, and one Place per slot in the order of the slots.  An
entry that names no usable GPU gets a CPU slot.
"""

from __future__ import annotations

import operator
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from gpudispatch import _core
from gpudispatch.news import logger


class Place(NamedTuple):
    """What a slot stands for: `slot` of the core is its place in the list."""

    gpu_id: int
    worker_id: int
    seed: int
    is_gpu: bool


def check_ids(gpu_ids: Sequence[int]) -> list[int]:
    if isinstance(gpu_ids, (str, bytes)) or not isinstance(gpu_ids, Iterable):
        raise TypeError(f"gpu_ids must be a list of int, not {type(gpu_ids).__name__}")
    ids: list[int] = []
    for given in gpu_ids:
        if isinstance(given, bool) or not hasattr(given, "__index__"):
            raise TypeError(f"gpu_ids has {given!r}, expected int")
        number = operator.index(given)
        if not 0 <= number < 2**31:
            raise ValueError(f"gpu_ids has {number}, expected 0 or more")
        ids.append(number)
    if not ids:
        raise ValueError("gpu_ids cannot be empty")
    if len(ids) > 1024:
        raise ValueError(f"gpu_ids has {len(ids)} entries, the maximum is 1024")
    return ids


def worker_ids(gpu_ids: Sequence[int]) -> list[int]:
    """The number of the GPU; for each further worker of the same GPU the next one above all."""
    above = max(gpu_ids) + 1
    out: list[int] = []
    for number in gpu_ids:
        if number in out:
            number, above = above, above + 1
        out.append(number)
    return out


def usable_gpus(count: int, visible: str | None) -> int:
    """How many GPUs the numbers 0, 1... name: those that CUDA_VISIBLE_DEVICES allows, which is a
    list that ends at an empty entry or a negative number."""
    if visible is None or not count:
        return count
    entries = (entry.strip() for entry in visible.split(","))
    return len(list(takewhile(lambda entry: entry and not entry.startswith("-"), entries)))


def gpus_there() -> int:
    if os.environ.get("GPUDISPATCH_DEVICES", "").startswith("cpu"):
        return 0
    count = sum(1 for row in _core.machine() if row["kind"] == "GPU")
    return usable_gpus(count, os.environ.get("CUDA_VISIBLE_DEVICES"))


def plan(
    gpu_ids: Sequence[int], base_seed: int, there: int | None = None
) -> tuple[str, list[Place]]:
    """The device list, and the place of each slot that it makes.  Slots have the list's order."""
    if there is None:
        there = gpus_there()
    counts = Counter(gpu_ids)
    rows = [
        Place(number, worker, base_seed + worker, number < there)
        for number, worker in zip(gpu_ids, worker_ids(gpu_ids), strict=True)
    ]
    devices: list[str] = []
    places: list[Place] = []
    for place in rows:
        if not place.is_gpu:
            devices.append("cpu:1")
            places.append(place)
        elif place.worker_id == place.gpu_id:  # the first worker of its GPU brings the others along
            each = counts[place.gpu_id]
            devices.append(f"{place.gpu_id}/{each}" if each > 1 else str(place.gpu_id))
            places += [p for p in rows if p.gpu_id == place.gpu_id]
    missing = sorted({p.gpu_id for p in places if not p.is_gpu})
    if missing and there:
        logger.warning(
            "GPU %s: not there (of %d), runs on CPU slots", ", ".join(map(str, missing)), there
        )
    return ",".join(devices), places
