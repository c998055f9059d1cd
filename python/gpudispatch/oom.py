# SPDX-License-Identifier: MIT
"""Out of memory in a worker: whether an exception means it, what can be freed, and who has it.

Frameworks are looked up in `sys.modules`: one that is not imported has allocated nothing.
"""

from __future__ import annotations

import sys

from . import codec

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from typing import Any

_MIB = 1 << 20


def is_oom(error: BaseException) -> bool:
    """Whether the device, or the process, has run out of memory."""
    if isinstance(error, MemoryError):
        return True
    for kind in type(error).__mro__:
        if kind.__name__ == "OutOfMemoryError":  # torch, cupy
            return True
        if kind.__name__ in ("XlaRuntimeError", "JaxRuntimeError"):
            return "RESOURCE_EXHAUSTED" in str(error)
    return isinstance(error, RuntimeError) and "CUDA out of memory" in str(error)


def forget(error: BaseException) -> None:
    """Drop the frames of an exception, which hold the arguments and tensors of its functions."""
    for each in codec.chain(error):
        each.__traceback__ = None


def empty_caches() -> None:
    """Give memory that frameworks keep for later back to the device."""
    import gc

    from . import _core

    gc.collect()
    _core.memory_trim()
    torch = sys.modules.get("torch")
    if torch is not None:
        try:
            if torch.cuda.is_initialized():
                torch.cuda.empty_cache()
        except Exception:
            pass  # half imported, or its context is gone: nothing to free
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        try:
            cupy.get_default_memory_pool().free_all_blocks()
            cupy.get_default_pinned_memory_pool().free_all_blocks()
        except Exception:
            pass


def memory(device: str) -> dict[str, int]:
    """Free and own memory in MiB: of the GPU, as its frameworks know it, on a CPU slot of the
    machine, there with foreign memory, too. Of GPUs the host knows what others hold."""
    try:
        return _of_machine() if device.startswith("cpu:") else _of_gpu()
    except Exception:
        return {}


def _of_gpu() -> dict[str, int]:
    from . import _core

    free, _ = _core.device_memory()
    own = 0
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        own += torch.cuda.memory_reserved()
    cupy: Any = sys.modules.get("cupy")
    if cupy is not None:
        own += cupy.get_default_memory_pool().total_bytes()
    return {"free_mib": free // _MIB, "own_mib": own // _MIB}


def _of_machine() -> dict[str, int]:
    import os

    sizes: dict[str, int] = {}
    with open("/proc/meminfo") as file:
        for line in file:
            name, _, rest = line.partition(":")
            sizes[name] = int(rest.split()[0]) << 10
    with open("/proc/self/statm") as file:
        own = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    free, total = sizes["MemAvailable"], sizes["MemTotal"]
    return {
        "free_mib": free // _MIB,
        "own_mib": own // _MIB,
        "foreign_mib": max(0, total - free - own) // _MIB,
    }
