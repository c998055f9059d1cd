# SPDX-License-Identifier: MIT
"""What test_data.py runs in workers: by reference, so that a worker imports this module."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

import gpudispatch

kept: list[Any] = []


def same(value: Any) -> Any:
    return value


def look(array: Any) -> tuple[Any, ...]:
    """What a task sees of an array."""
    return array.tolist(), str(array.dtype), array.shape, array.flags.writeable


def in_place(array: Any) -> Any:
    array += 1
    return array


def total(array: Any) -> Any:
    return array.sum()


def address(array: Any) -> tuple[int, bool]:
    return array.ctypes.data % 64, array.flags.writeable


def keep(array: Any) -> int:
    kept.append(array)
    return os.getpid()


def keep_part(array: Any) -> int:
    kept.append(memoryview(array)[1:3])
    return os.getpid()


def keep_twos(array: Any) -> int:
    """Keeps an array that begins with 2."""
    if array[0] == 2:
        kept.append(array)
    return int(array[0])


class Keeper:
    """With max_batch: its process, the number of items in the batch, and what is in them."""

    def process(self, items: list[Any]) -> list[tuple[int, int, int]]:
        return [(os.getpid(), len(items), keep_twos(item)) for item in items]


def pid(*ignored: Any) -> int:
    return os.getpid()


def filled(n: int, value: int) -> Any:
    return np.full(n, value, dtype=np.uint8)


def blob(n: int, value: int) -> bytes:
    return bytes([value]) * n


def made_in_place(shape: Any, dtype: str, value: float) -> Any:
    array = gpudispatch.empty(shape, dtype)
    array[...] = value
    return array


def made_in_place_kept(n: int) -> Any:
    kept.append(gpudispatch.empty(n))
    return kept[-1]


def made_in_place_unused(n: int) -> Any:
    gpudispatch.empty(n)[:] = 1
    return np.full(n, 2.0)


def made_in_place_raises(n: int) -> Any:
    gpudispatch.empty(n)[:] = 1
    raise LookupError("after empty")


def made_in_place_part(n: int) -> Any:
    array = gpudispatch.empty(n)
    array[:] = np.arange(n)
    return {"half": array[: n // 2], "n": n}


def two_in_place(n: int) -> Any:
    one, two = gpudispatch.empty((n, 2)), gpudispatch.empty((n, 2))
    one[:], two[:] = 1.0, 2.0
    return {"one": one, "two": two, "text": "both"}


def write_anyway(array: Any) -> None:
    """As torch does, which has no read-only tensors."""
    ctypes.memset(array.ctypes.data, 1, 8)


def raise_with(array: Any) -> None:
    held = array[1:]
    raise ValueError(f"with {len(held)} elements")


class BadLoad:
    """Pickles, and raises where it is unpickled."""

    def __reduce__(self) -> Any:
        return cannot_load, ("here",)


def cannot_load(where: str) -> Any:
    raise LookupError(f"cannot load {where}")


def bad_load() -> Any:
    return [BadLoad(), b"x" * 100_000]


class BadDump:
    def __reduce__(self) -> Any:
        raise ZeroDivisionError("in reduce")


class Adder:
    def __init__(self, n: int) -> None:
        self.n = n

    def add(self, x: int) -> int:
        self.n += x  # of this task's own copy
        return self.n

    def __call__(self, x: int) -> int:
        return self.n + x

    @classmethod
    def make(cls, n: int) -> Adder:
        return cls(n)

    @staticmethod
    def double(x: int) -> int:
        return 2 * x


class Model:
    """A worker class whose weights come by setup."""

    def setup(self, gpu_id: str, seed: int, weights: Any, factor: int) -> None:
        self.weights = weights
        self.factor = factor

    def process(self, item: Any) -> Any:
        if isinstance(item, str):
            if item == "write":
                self.weights[0] = 1
            return self.weights.flags.writeable, self.weights.sum(), os.getpid()
        return item * self.factor


def logits(n: int, device: str) -> Any:
    """A tensor of a model: standins/torch."""
    import torch

    return {"logits": torch.Tensor(np.arange(float(n)), device), "n": n}


def rss() -> int:
    """Resident bytes of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def put(queue: Any, value: Any) -> None:
    queue.put(value)
