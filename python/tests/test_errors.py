# SPDX-License-Identifier: MIT
"""errors.py: each class can be made from a text alone, pickled, and says what the log said."""

from __future__ import annotations

import pickle
from concurrent.futures import BrokenExecutor

import pytest

from gpudispatch import errors

CLASSES = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.GpuDispatchError)
]
VALUES = {
    "exitcode": 9,
    "status": 500,
    "body": b"why",
    "signal": 11,
    "device": "cpu:0",
    "limit": 1.5,
    "phase": "run",
    "stack": "File x",
    "stdout": b"out",
    "stderr": b"err",
    "size": 5,
    "traceback_text": "Traceback",
    "free_mib": 1,
    "own_mib": 2,
    "foreign_mib": 3,
    "type_name": "m.E",
    "text": "t",
    "reason": "r",
    "was": "a",
    "now": "b",
    "pid": 77,
    "code": -5,
    "name": "EBUSY",
    "field": "f",
}


@pytest.mark.parametrize("kind", CLASSES)
def test_pickles_with_its_attributes(kind: type[errors.GpuDispatchError]) -> None:
    names = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", {})}
    given = {name: VALUES[name] for name in names - {"log_tail"}}
    made = kind("what happened", log_tail="line 1\nlast words\n", **given)  # type: ignore[arg-type]
    for copy in (made, pickle.loads(pickle.dumps(made))):
        assert type(copy) is kind
        assert str(copy) == (
            "what happened\nlast lines of the worker's log:\nline 1\nlast words"
        )
        assert copy.message == "what happened"
        for name, value in given.items():
            assert getattr(copy, name) == value
    assert str(kind("plain")) == "plain"
    with pytest.raises(TypeError, match="nonsense"):
        kind("plain", nonsense=1)
    assert kind.__doc__


def test_the_tail_that_is_shown_is_a_screen() -> None:
    tail = "".join(f"line {i}\n" for i in range(1000))
    shown = str(errors.WorkerCrashed("died", log_tail=tail)).splitlines()
    assert shown[-1] == "line 999"
    assert len(shown) == 12
    assert errors.WorkerCrashed("died", log_tail=tail).log_tail == tail


def test_what_else_they_are() -> None:
    assert issubclass(errors.TaskTimeout, TimeoutError)
    assert issubclass(errors.NoWorker, BrokenExecutor)
    assert issubclass(errors.OutOfMemory, MemoryError)
    assert issubclass(errors.ForkedError, RuntimeError)
    assert sorted(errors.__all__) == sorted(
        [kind.__name__ for kind in CLASSES] + ["RemoteTraceback"]
    )


def test_from_code() -> None:
    made = errors.from_code(-12, "GPUD_EDEVICE", "devices", "no such device")
    assert type(made) is errors.DeviceError
    assert (made.code, made.name, made.field) == (-12, "GPUD_EDEVICE", "devices")
    assert str(made) == "devices: no such device"
    assert type(errors.from_code(-99, "GPUD_EWHAT", "", "x")) is errors.GpuDispatchError


@pytest.mark.parametrize(
    ("text", "here"),
    [
        (
            "exceeded its time limit of 1.000 s (task_limit): "
            "TaskTimeout: task 77 exceeded its time limit",
            "exceeded its time limit of 1.000 s (task_timeout)",
        ),
        (
            "exceeded its time limit of 1.000 s (limit of the task): ValueError: 3",
            "exceeded its time limit of 1.000 s (task_timeout): ValueError: 3",
        ),
        (
            "attempt 1: failed with 1: ValueError: x; attempt 12: failed with 3: x",
            "attempt 1: ValueError: x; attempt 12: x",
        ),
        ("OSError: it failed with 1: x", "OSError: it failed with 1: x"),
        ("no progress for 1.000 s (stall_limit of the task)",
         "no progress for 1.000 s (stall_timeout)"),
        ("setup exceeded its time limit of 0.500 s (setup_limit)",
         "setup exceeded its time limit of 0.500 s (setup_timeout)"),
        ('stdio_path "/x/0.log": No such file', 'output "/x/0.log": No such file'),
        ("class a b failed 3 times in a row; it starts no worker any more, until it is resumed "
         "(failures_in_a_row)",
         "class a b failed 3 times in a row; it starts no worker any more, until "
         'pool["a b"].resume() or pool["a b"].load()'),
        ("slot 7 failed 3 times in a row; it starts no worker any more, other slots run its tasks "
         "(failures_in_a_row)",
         "slot 7 failed 3 times in a row; it starts no worker any more, other slots run its tasks"),
    ],
)  # fmt: skip
def test_texts_name_the_options_of_this_package(text: str, here: str) -> None:
    assert errors.in_python(text) == here
    assert str(errors.from_code(-99, "GPUD_EWHAT", "", text)) == here


def test_remote_traceback_pickles() -> None:
    made = pickle.loads(pickle.dumps(errors.RemoteTraceback("Traceback\n  x\n")))
    assert made.text == "Traceback\n  x\n"
    assert str(made) == '\n"""\nTraceback\n  x\n"""'
