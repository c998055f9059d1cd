#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python package on GPUs; needs no other package: ctypes calls libcuda.so.1.

usage: gpu.py BUILD     the package in that build tree

Without a GPU each case is skipped with the reason; T_GPU_REQUIRED=1 makes that a failure.
T_GPU_REHEARSE=fake runs the cases on two GPUs as the fakes of NVML and libcuda show them, which
LD_LIBRARY_PATH has to name.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
REHEARSED = os.environ.get("T_GPU_REHEARSE") == "fake"
PROGRAM = "gpu_python_rehearsed" if REHEARSED else "gpu_python"
VISIBLE = os.environ.get("CUDA_VISIBLE_DEVICES")  # in a worker: before any code of this file
PATIENCE_S = 60.0  # of a result: only a fault reaches it
LIMIT_S = 0.5
KIB_256 = 256 * 1024
CUDA, NVML = "libcuda", "libnvidia-ml"


class Skipped(Exception):
    """The text is the reason."""


# ---- libcuda, in workers and in the process that counts GPUs ----


def call(name: str, *arguments: Any) -> None:
    code = getattr(ctypes.CDLL("libcuda.so.1"), name)(*arguments)
    if code:
        raise RuntimeError(f"{name} returns {code}")


def gpus() -> list[str]:
    """The UUIDs of the GPUs that this process sees, without their prefix."""
    call("cuInit", 0)
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    found = []
    for index in range(count.value):
        device, uuid = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        call("cuDeviceGet", ctypes.byref(device), index)
        call("cuDeviceGetUuid_v2", uuid, device)
        found.append(re.sub(r"(.{8})(.{4})(.{4})(.{4})", r"\1-\2-\3-\4-", bytes(uuid).hex()))
    return found


@functools.cache  # one context for each worker
def use_context() -> None:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)


def mapped(library: str, pid: int | str = "self") -> bool:
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False  # it has ended
    return re.search(rf"/{re.escape(library)}\.so", maps) is not None


# ---- tasks ----


def facts(folder: str, workers: int) -> dict[str, Any]:
    """Returns what this worker sees, once this many workers have begun."""
    import gpudispatch

    worker = gpudispatch.current_worker()
    assert worker is not None
    seen = {
        "slot": worker.slot, "uuids": worker.uuids, "visible": VISIBLE, "gpus": gpus(),
        CUDA: mapped(CUDA),
    }  # fmt: skip
    pathlib.Path(folder, str(worker.slot)).touch()
    until = time.monotonic() + PATIENCE_S
    while len(os.listdir(folder)) < workers:
        if time.monotonic() > until:
            raise TimeoutError(f"{len(os.listdir(folder))} of {workers} workers have begun")
        time.sleep(0.002)
    return seen


def where() -> tuple[int, str]:
    import gpudispatch

    worker = gpudispatch.current_worker()
    assert worker is not None
    return os.getpid(), worker.device


def round_trip(data: bytes) -> bytes:
    """The data, copied to the GPU and back; the GPU has changed the first four bytes."""
    use_context()
    at, size, back = ctypes.c_uint64(), ctypes.c_size_t(len(data)), bytearray(len(data))
    call("cuMemAlloc_v2", ctypes.byref(at), size)
    call("cuMemcpyHtoD_v2", at, data, size)
    call("cuMemsetD32_v2", at, 0x01010101, ctypes.c_size_t(1))
    call("cuMemcpyDtoH_v2", (ctypes.c_char * len(data)).from_buffer(back), at, size)
    call("cuMemFree_v2", at)
    return bytes(back)


def die() -> None:
    use_context()
    os.kill(os.getpid(), signal.SIGKILL)


def sleep() -> None:
    use_context()
    time.sleep(PATIENCE_S + 10)


def ask_torch() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def tensor(n: int) -> tuple[str, Any]:
    import torch

    made = torch.arange(n, device="cuda")
    return made.device.type, made


# ---- cases ----


def pool(**options: Any) -> Any:
    """On the first GPU unless the options say otherwise."""
    import gpudispatch

    return gpudispatch.Executor(**{"devices": "0", **options})


def check_round_trip(executor: Any) -> None:
    data = os.urandom(KIB_256)
    back = executor.submit(round_trip, data).result(PATIENCE_S)
    assert back == b"\x01\x01\x01\x01" + data[4:]


def a_worker_per_gpu() -> None:
    """Each GPU that CUDA shows has one worker, which sees that GPU only."""
    shown = subprocess.run([sys.executable, __file__, "--gpus"], stdout=subprocess.PIPE, check=True)
    wanted = json.loads(shown.stdout)
    with pool(devices=None) as executor, tempfile.TemporaryDirectory() as folder:
        workers = len(executor.slots())
        assert executor.ready(timeout=PATIENCE_S)
        futures = [executor.submit(facts, folder, workers) for _ in range(workers)]
        seen = [future.result(PATIENCE_S) for future in futures]
    own = []
    for one in seen:
        (uuid,) = one["uuids"]
        kind, _, number = uuid.partition("-")
        assert one["visible"] == uuid, one
        assert one["gpus"] == [number], one
        own.append((kind, number))
    assert len({one["slot"] for one in seen}) == workers == len(set(own)), seen
    if all(kind == "GPU" for kind, _ in own):  # CUDA shows the first MIG instance only
        assert sorted(number for _, number in own) == sorted(wanted), (own, wanted)


def memory() -> None:
    """A task makes a context, allocates and copies; the next one finds the context again."""
    with pool() as executor:
        check_round_trip(executor)
        check_round_trip(executor)


def killed() -> None:
    """A worker that dies with a context costs one task; the next result is of the same GPU."""
    import gpudispatch

    with pool() as executor:
        check_round_trip(executor)
        pid, device = executor.submit(where).result(PATIENCE_S)
        error = executor.submit(die).exception(PATIENCE_S)
        assert isinstance(error, gpudispatch.WorkerCrashed), error
        assert error.signal == signal.SIGKILL, error
        check_round_trip(executor)
        new_pid, new_device = executor.submit(where).result(PATIENCE_S)
        assert (new_pid != pid, new_device) == (True, device)


def time_limit() -> None:
    """A task that sleeps with a context ends at its limit, and the GPU goes on."""
    import gpudispatch

    with pool() as executor:
        check_round_trip(executor)
        error = executor.options(task_timeout=LIMIT_S).submit(sleep).exception(PATIENCE_S)
        assert isinstance(error, gpudispatch.TaskTimeout), error
        check_round_trip(executor)


def parent(pid: int) -> int:
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # it has ended


def has_nvml_beside(worker: int) -> bool:
    """Whether a process of the spawner that has this worker has loaded NVML."""
    spawner = parent(parent(worker))  # the keeper is between them
    pids = [int(entry.name) for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit()]
    return any(parent(pid) == spawner and mapped(NVML, pid) for pid in pids)


def clean_host() -> None:
    """Workers load libcuda, and a process of the library NVML; the host loads neither."""
    with tempfile.TemporaryDirectory() as folder, pool() as executor:
        assert executor.submit(facts, folder, 1).result(PATIENCE_S)[CUDA]
        assert has_nvml_beside(executor.submit(where).result(PATIENCE_S)[0])
        assert not mapped(CUDA)
        assert not mapped(NVML)


def tensors() -> None:
    """A CUDA tensor arrives as a CPU tensor, and as an argument it is a TypeError."""
    if importlib.util.find_spec("torch") is None:
        raise Skipped("torch is not installed")
    if REHEARSED:
        raise Skipped("torch needs a real GPU")
    with pool() as executor:
        if not executor.submit(ask_torch).result(PATIENCE_S):
            raise Skipped("torch does not support this GPU")
        made_on, arrived = executor.submit(tensor, 5000).result(PATIENCE_S)
        assert (made_on, arrived.device.type) == ("cuda", "cpu")
        assert arrived.tolist() == list(range(5000))
        error = executor.submit(len, tensor(5000)[1]).exception(PATIENCE_S)
        assert isinstance(error, TypeError), error
        assert ".cpu()" in str(error)


# Each with the host of the earlier ones: from the last one on it has libcuda.
CASES: list[Callable[[], None]] = [
    a_worker_per_gpu, memory, killed, time_limit, clean_host, tensors,
]  # fmt: skip


# ---- the program ----


def record(verdict: str, name: str, reason: str = "") -> None:
    line = f"{verdict} {PROGRAM}/{name}{': ' if reason else ''}{' '.join(reason.split())}\n"
    print(line, end="", flush=True)
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a", encoding="utf-8") as out:
            out.write(line)


def check_gpu() -> None:
    import gpudispatch

    try:
        pool().shutdown()
    except gpudispatch.DeviceError as error:
        raise Skipped(str(error)) from None


def skip_all(reason: str) -> int:
    required = os.environ.get("T_GPU_REQUIRED")
    if required:
        reason = f"T_GPU_REQUIRED is set, but there is no GPU: {reason}"
    for case in CASES:
        record("fail" if required else "skip", case.__name__, reason)
    return 1 if required else 77


def main() -> int:
    if sys.argv[1:] == ["--gpus"]:
        print(json.dumps(gpus()))
        return 0
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    sys.path.insert(0, str(pathlib.Path(sys.argv[1]).resolve() / "python"))
    if REHEARSED:
        for name in ("FAKE_SCRIPT", "CUDA_VISIBLE_DEVICES"):
            os.environ.pop(name, None)
        os.environ["FAKE_SCRIPT_TEXT"] = "gpus 2\n"
    try:
        check_gpu()
    except Skipped as reason:
        return skip_all(str(reason))
    failed = 0
    for case in CASES:
        try:
            case()
        except Skipped as reason:
            record("skip", case.__name__, str(reason))
        except Exception:
            traceback.print_exc()
            failed += 1
            record("fail", case.__name__)
        else:
            record("pass", case.__name__)
    return 1 if failed else 0


if __name__ == "__main__":  # a worker imports this file
    sys.exit(main())
