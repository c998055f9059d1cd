# SPDX-License-Identifier: MIT
"""Checks the arguments of Executor and options(), and turns them into options of the library.

Each check names the argument.  A wrong type is a TypeError, a wrong value a ValueError.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    from typing import Any

NEVER = 2**64 - 1
AT_ONCE = 1
SECOND = 1_000_000_000
CLOSE_NS = 30 * SECOND  # beyond grace, for the cleanup of workers
LONG_S = 9_000_000_000.0  # seconds; more does not fit

RETRY_BITS = {"crash": 1, "error": 2, "timeout": 4, "device": 8}
RETRY_CAUSES = (*RETRY_BITS, "oom")
STDIO = {"tail": 0, "inherit": 1, "discard": 3, "events": 4}
STDIO_FILE = 2
# An entry of a device list; the library checks the rest.
DEVICE = (
    r"(all|(gpu:)?\d+(:\d+)?|(?i:GPU|MIG)-[\w/-]*|cpu:[1-9]\d*|fake:[1-9]\d*)(/[1-9]\d*)?"
    r"(,script=[^\0]+)?"
)
ON_CANCEL = ("leave", "ask", "kill")
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)


class IgnoredArgument(UserWarning):
    """An argument that other executors have, and this one accepts and ignores."""


# ---- single values ----


def integer(name: str, value: object, least: int, most: int = 2**32 - 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}")
    if not least <= value <= most:
        raise ValueError(f"{name} is {value}, expected {least} to {most}")
    return value


def _number(name: str, value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, type(None))):
        raise TypeError(f"{name} must be a number of seconds or None, not {type(value).__name__}")
    return value


def seconds(name: str, value: object, *, zero: bool = False) -> int:
    """Nanoseconds of a time in seconds; None is NEVER."""
    number = _number(name, value)
    if number is None:
        return NEVER
    if zero and number == 0:
        return AT_ONCE
    if math.isnan(number) or number <= 0:
        raise ValueError(f"{name} is {value}, expected {'0 or ' if zero else ''}more than 0 s")
    if number > LONG_S:
        return NEVER
    return max(1000, round(number * SECOND))


def patience(name: str, value: object) -> float | None:
    """How long a caller waits, in seconds; 0 and less: not at all, None: without a limit."""
    number = _number(name, value)
    if number is None:
        return None
    if math.isnan(number):
        raise ValueError(f"{name} is {value}, expected a number of seconds")
    return float(number) if number < LONG_S else None


def text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{name} is {value!r}, expected text without a null character")
    return value


def path(name: str, value: object) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a str or path, not {type(value).__name__}")
    return text(name, os.fspath(value))


def choice(name: str, value: object, choices: Sequence[str]) -> str:
    if text(name, value) not in choices:
        raise ValueError(f"{name} is {value!r}, expected one of {', '.join(choices)}")
    return str(value)


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    return value


def label_text(value: object) -> str:
    if len(text("label", value).encode()) > 63:
        raise ValueError(f"label is {value!r}, expected at most 63 bytes")
    return str(value)


def causes(value: object) -> frozenset[str]:
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Iterable):
        raise TypeError(f"retry must be names of causes, not {type(value).__name__}")
    names = frozenset(text("retry", v) for v in value)
    for name in sorted(names.difference(RETRY_CAUSES)):
        raise ValueError(f"retry has {name!r}, expected some of {', '.join(RETRY_CAUSES)}")
    return names


# ---- devices ----


def _entries(devices: str) -> list[str]:
    """The entries of a device list; "script=FILE" belongs to the one before it."""
    out: list[str] = []
    for part in (p.strip() for p in devices.split(",")):
        if part.startswith("script=") and out:
            out[-1] += "," + part
        else:
            out.append(part)
    return out


def device_list(
    max_workers: object, devices: object, workers_per_device: int
) -> tuple[str, bool]:
    """The library's device list, and whether it is the default."""
    default = False
    if devices is None and max_workers is None:
        devices = os.environ.get("GPUDISPATCH_DEVICES") or "all"
        default = True
    elif devices is None:
        devices = f"cpu:{_workers(max_workers)}"
    elif devices == "cpu":
        count = len(os.sched_getaffinity(0)) if max_workers is None else max_workers
        devices = f"cpu:{_workers(count)}"
    elif max_workers is not None:
        raise ValueError(
            f"max_workers beside devices={devices!r}: the list has the number of workers; "
            'max_workers goes with devices="cpu" or without devices'
        )
    if isinstance(devices, str):
        entries = _entries(devices)
    elif isinstance(devices, Sequence) and not isinstance(devices, (bytes, bytearray)):
        entries = [e for d in devices for e in _one_device(d)]
    elif isinstance(devices, int) and not isinstance(devices, bool):
        entries = [str(devices)]
    else:
        raise TypeError(
            f"devices must be a str or a sequence of str and int, not {type(devices).__name__}"
        )
    for entry in entries or [""]:
        if not re.fullmatch(DEVICE, entry):
            raise ValueError(
                f"devices is {devices!r}, expected names such as 'all', 0, 'GPU-...' or 'cpu:4'"
            )
    if workers_per_device > 1:
        entries = [_with_workers(e, workers_per_device) for e in entries]
    return ",".join(entries), default


def _workers(count: object) -> int:
    if isinstance(count, int) and not isinstance(count, bool) and count <= 0:
        raise ValueError(f"max_workers must be greater than 0, not {count}")  # as elsewhere
    return integer("max_workers", count, 1, 1024)


def _one_device(device: object) -> list[str]:
    if isinstance(device, bool) or not isinstance(device, (str, int)):
        raise TypeError(f"devices has {device!r}, expected str and int")
    if isinstance(device, int) and device < 0:
        raise ValueError(f"devices has {device}, expected 0 or more")
    return _entries(device) if isinstance(device, str) else [str(device)]


def _with_workers(entry: str, count: int) -> str:
    head, comma, tail = entry.partition(",")
    if "/" in head:
        raise ValueError(f"devices has {entry!r} beside workers_per_device={count}: give one")
    return f"{head}/{count}{comma}{tail}"


def _gpu_count() -> int | None:
    """About how many GPUs "all" means: for the number of threads, which is no promise."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return sum(1 for entry in visible.split(",") if entry.strip()) or None
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus")) or None
    except OSError:
        return None


def worker_count(devices: str, devices_per_worker: int) -> int | None:
    """How many workers a device list makes; None where only the driver knows."""
    total = 0
    for entry in _entries(devices):
        head, _, each = entry.partition(",")[0].partition("/")
        kind, _, count = head.partition(":")
        if kind == "all":
            n = _gpu_count()
            if n is None:
                return None
        else:
            n = int(count) if kind in ("cpu", "fake") and count.isdigit() else 1
        total += n * (int(each) if each.isdigit() else 1)
    return max(1, total // devices_per_worker)


# ---- the whole ----


class Settings:
    """What an Executor, or a class of a Pool, was made with, checked.  No dataclass: that imports
    inspect, for 5 ms."""

    options: dict[str, object]
    default_devices: bool
    max_batch: int
    cuda_results: str
    retry: frozenset[str]
    max_attempts: int
    queue_size: int
    task_timeout: int
    oom: bool  # a task that runs out of memory has a second try

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class TaskOptions:
    """The options of a view; 0 and None mean those of its class."""

    limit: int = 0
    priority: int = 0
    label: str | None = None
    max_attempts: int = 0
    retry: frozenset[str] | None = None
    expires: int = 0
    stall: int = 0
    copy: bool = True
    block: bool = False
    on_cancel: str = "leave"
    request: list[dict[str, object]] | None = None  # needs of its own, in place of its class's
    oom: bool = False  # the class has cause oom
    alone: bool = False  # a command: its output is without what the worker wrote before
    raw: bool = False  # items and results are bytes, without frames

    def but(self, **changes: Any) -> TaskOptions:
        """These, with some others."""
        made = TaskOptions()
        made.__dict__.update(self.__dict__, **changes)
        return made

    @property
    def second_try(self) -> bool:
        """Whether a task that runs out of memory runs once more."""
        return self.oom and self.max_attempts != 1 and (self.retry is None or "oom" in self.retry)


def environment(env: object) -> list[str]:
    if not isinstance(env, Mapping):
        raise TypeError(f"env must be a mapping, not {type(env).__name__}")
    out = []
    for name, value in env.items():
        if not re.fullmatch(r"[^=]+", text("a name in env", name)):
            raise ValueError(f"env has the name {name!r}")
        out.append(name if value is None else f"{name}={text(f'env[{name!r}]', value)}")
    return out


def _threads(env: list[str], workers: int | None) -> list[str]:
    """The variables that bound the threads of numeric libraries, where the user set none."""
    if workers is None:
        return env
    each = max(1, len(os.sched_getaffinity(0)) // workers)
    named = {e.partition("=")[0] for e in env}
    return env + [
        f"{name}={each}"
        for name in THREAD_VARIABLES
        if name not in named and name not in os.environ
    ]


def is_class(worker: object) -> bool:
    """Whether a worker= is a class, also one with arguments in brackets."""
    return isinstance(getattr(worker, "__origin__", worker), type)


def of_class(
    *,
    max_batch: object = None,
    batch_wait: object = 0.0,
    task_timeout: object = None,
    grace: object = 2.0,
    setup_timeout: object = 900.0,
    max_attempts: object = 1,
    retry: object = None,
    queue_size: object,
    env: object = None,
    cwd: object = None,
    output: object = "tail",
    base_seed: object = 42,
    cuda_results: object = "cpu",
    max_tasks_per_child: object = None,
    worker: object = None,
    workers: int | None = None,
) -> Settings:
    """Settings of the arguments that an Executor and a class of a Pool have in common; `workers` is
    how many of them the machine's CPUs are divided by, None where that is unknown."""
    if max_batch is None:
        max_batch = 1 if is_class(worker) else getattr(worker, "max_batch", 1)
    if retry is None:
        retry = ("crash", "oom") if isinstance(max_batch, int) and max_batch > 1 else ("crash",)
    tries = integer("max_attempts", max_attempts, 1, 255)
    retried = causes(retry)
    batch = integer("max_batch", max_batch, 1, 64)
    wait = seconds("batch_wait", batch_wait, zero=True)
    options: dict[str, Any] = {
        "max_batch": batch,
        "task_limit": seconds("task_timeout", task_timeout),
        "grace": seconds("grace", grace, zero=True),
        "setup_limit": seconds("setup_timeout", setup_timeout),
        "max_attempts": tries,
        "retry_causes": sum(RETRY_BITS.get(name, 0) for name in retried) or RETRY_BITS["crash"],
        "seed": integer("base_seed", base_seed, 0, 2**63),
        "result_wait": NEVER,
        "start_events": 1,
        "env": _threads(environment(env) if env is not None else [], workers),
    }
    if not retried & RETRY_BITS.keys():
        options["max_attempts"] = 1
    if wait != AT_ONCE:
        if batch == 1:
            raise ValueError("batch_wait needs max_batch above 1")
        options["batch_wait"] = wait
    if cwd is not None:
        options["cwd"] = path("cwd", cwd)
        if not os.path.isdir(options["cwd"]):
            raise ValueError(f"cwd is {cwd!r}, expected a directory")
    options |= _output(output)
    if max_tasks_per_child is not None:
        options["max_tasks_per_worker"] = integer("max_tasks_per_child", max_tasks_per_child, 1)
    return Settings(
        options=options,
        default_devices=False,
        max_batch=batch,
        cuda_results=choice("cuda_results", cuda_results, ("cpu", "error")),
        retry=retried,
        max_attempts=tries,
        queue_size=integer("queue_size", queue_size, 1, 1_048_576),
        task_timeout=options["task_limit"],
        oom="oom" in retried and (tries > 1 or batch > 1),
    )


def _output(output: object) -> dict[str, object]:
    """The library's options about the standard output of workers."""
    where = path("output", output)
    if where in STDIO:
        return {"stdio": STDIO[where]}
    if not is_file(where):
        raise ValueError(
            f"output is {where!r}, expected {', '.join(STDIO)} or a path such as 'logs/{{slot}}.log'"
        )
    file = os.path.abspath(where)
    folder = os.path.dirname(file.partition("{slot}")[0])
    if not os.path.isdir(folder):
        raise ValueError(f"output is {where!r}, but there is no directory {folder!r}")
    return {"stdio": STDIO_FILE, "stdio_path": file}


def is_file(output: object) -> bool:
    """Whether the option `output` is a path, and no word."""
    return isinstance(output, str) and any(mark in output for mark in (os.sep, "{slot}", "."))


def check(
    *,
    max_workers: object,
    devices: object,
    workers_per_device: object,
    devices_per_worker: object,
    payload_budget: object,
    mp_context: object,
    **of_the_class: object,
) -> Settings:
    """Settings of the arguments of Executor: those of its class, and those of its dispatcher."""
    per_device = integer("workers_per_device", workers_per_device, 1, 1024)
    per_worker = integer("devices_per_worker", devices_per_worker, 1, 16)
    names, default = device_list(max_workers, devices, per_device)
    made = of_class(**of_the_class, workers=worker_count(names, per_worker))
    patient = int(str(made.options["grace"]))
    made.default_devices = default
    made.options |= {
        "devices": names,
        "devices_per_worker": per_worker,
        "close_limit": min(patient + CLOSE_NS, NEVER),  # terminate_workers() leaves tasks the grace
        "queue_size": made.queue_size,
    }
    if payload_budget is not None:
        made.options["payload_budget"] = integer("payload_budget", payload_budget, 1, 2**62)
    if mp_context is not None:
        warnings.warn(
            "mp_context is ignored: workers are always started anew, never forked from this "
            "program",
            IgnoredArgument,
            stacklevel=4,  # settings, Executor, keywords.hinted, and the caller
        )
    return made
