# SPDX-License-Identifier: MIT
"""Stands in for torch: tensors that are numpy arrays, on a CPU or on a GPU that is none.

By itself a tensor pickles as torch's do, in this respect: one that was on a GPU is put there when
it is unpickled, which takes a call of libcuda (FAKE_LIBCUDA: the file of a fake that counts calls).
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

strided, uint8 = object(), "uint8"


class device:
    def __init__(self, name: str) -> None:
        self.type = name.split(":")[0]

    def __str__(self) -> str:
        return self.type if self.type == "cpu" else self.type + ":0"


class Tensor:
    __slots__ = ("__dict__", "_parts")

    is_quantized = False
    layout = strided

    def __init__(self, array: Any, device: str = "cpu", requires_grad: bool = False) -> None:
        self._parts = (array, device, requires_grad)

    array = property(lambda self: self._parts[0])
    device = property(lambda self: device(self._parts[1]))
    requires_grad = property(lambda self: self._parts[2])
    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: str(self.array.dtype))

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def numel(self) -> int:
        return int(self.array.size)

    def is_contiguous(self) -> bool:
        return bool(self.array.flags.c_contiguous)

    def data_ptr(self) -> int:
        return int(self.array.ctypes.data)

    def _like(self, array: Any) -> Tensor:
        return Tensor(array, self._parts[1])

    def detach(self) -> Tensor:
        return self._like(self.array)

    def cpu(self) -> Tensor:
        return Tensor(self.array)

    def resolve_conj(self) -> Tensor:
        return self

    resolve_neg = resolve_conj

    def contiguous(self) -> Tensor:
        return self._like(np.ascontiguousarray(self.array))

    def as_strided(self, size: Any, stride: Any) -> Tensor:
        strides = [step * self.array.itemsize for step in stride]
        return self._like(np.lib.stride_tricks.as_strided(self.array, size, strides))

    def view(self, dtype: str) -> Tensor:
        return self._like(self.array.view(dtype))

    def numpy(self) -> Any:
        if self._parts[1] != "cpu":
            raise TypeError("can't convert a tensor on a GPU to numpy")
        return self.array

    def as_subclass(self, kind: Any) -> Any:
        return kind(self.array, self._parts[1], self.requires_grad)

    def requires_grad_(self, flag: bool) -> None:
        self._parts = (self.array, self._parts[1], flag)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _put_back, (self.array, self._parts[1])


def _put_back(array: Any, device: str) -> Tensor:
    if device != "cpu":
        ctypes.CDLL(os.environ["FAKE_LIBCUDA"]).cuInit(0)
    return Tensor(array, device)


def frombuffer(buffer: Any, dtype: str) -> Tensor:
    return Tensor(np.frombuffer(buffer, dtype=dtype))


def empty_strided(size: Any, stride: Any, dtype: str) -> Tensor:
    return Tensor(np.empty(size, dtype))
