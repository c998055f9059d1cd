# SPDX-License-Identifier: MIT
"""options() and the arguments of Executor: what each does, and what is refused by name."""

from __future__ import annotations

import functools
import inspect
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import wait
from typing import Any

import pytest

import executor_tasks as tasks
from conftest import until
from executor_tasks import Gate

from gpudispatch import (
    DeviceError,
    Executor,
    OutOfMemory,
    TaskTimeout,
    WorkerCrashed,
    settings,
)

LIMIT_S = 60.0
NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(1) as pool:
        pool.submit(tasks.same).result(LIMIT_S)  # the module of the tasks is loaded
        yield pool


# ---- what is refused ----

INTEGERS = {
    "max_workers": (0, -1, 5000),
    "workers_per_device": (0, -1, 5000),
    "devices_per_worker": (0, -1, 17),
    "max_batch": (0, -1, 65),
    "max_attempts": (0, -1, 256),
    "queue_size": (0, -1, 1 << 21),
    "payload_budget": (0, -1),
    "base_seed": (-1, 1 << 64),
    "max_tasks_per_child": (0, -1, 1 << 33),
}
SECONDS = ("batch_wait", "task_timeout", "grace", "setup_timeout")
ZERO = ("batch_wait", "grace")  # may be 0
TYPES: dict[str, tuple[Any, ...]] = {
    "devices": (1.5, True, b"cpu:1", [1.5], [True], {"cpu:1"}, [None]),
    "initializer": (5, "f"),
    "initargs": (5, None),
    "worker": (5, int, object, tasks.Model()),
    "setup": (5, [1]),
    "retry": (5, [5], True),
    "env": (5, "A=1", [("A", 5)], {"A": 5}, {5: "A"}),
    "cwd": (5, b"x"),
    "output": (5, None, b"tail"),
    "cuda_results": (5, None),
}
VALUES: dict[str, tuple[Any, ...]] = {
    "devices": ("", [], "cpu:0", "cpu:x", "nonsense", [-1], "cpu:2,,cpu:1", "cpu:1\0"),
    "retry": ("death", ["crash", "death"], ("",)),
    "env": ({"": "x"}, {"A=B": "x"}, {"A": "x\0y"}, {"A\0B": "x"}),
    "output": ("stdout", "", "nul\0.log", "/nowhere/x-{slot}.log", "/nowhere/{slot}/x.log"),
    "cuda_results": ("gpu", ""),
    "cwd": ("/nowhere/at/all", "nul\0"),
}

REFUSED: list[tuple[str, Any, type[Exception]]] = []
for _name, _wrong in INTEGERS.items():
    REFUSED += [(_name, value, ValueError) for value in _wrong]
    REFUSED += [(_name, value, TypeError) for value in (True, 1.0, "1", NAN, [1])]
for _name in SECONDS:
    REFUSED += [(_name, value, ValueError) for value in (-1, -0.5, NAN, -INF)]
    REFUSED += [(_name, value, TypeError) for value in (True, "1", [1])]
    REFUSED += [] if _name in ZERO else [(_name, 0, ValueError), (_name, 0.0, ValueError)]
REFUSED += [(name, value, TypeError) for name, wrong in TYPES.items() for value in wrong]
REFUSED += [(name, value, ValueError) for name, wrong in VALUES.items() for value in wrong]


def make(name: str, value: Any) -> Executor:
    arguments: dict[str, Any] = {"devices": "cpu:1"} if name != "max_workers" else {}
    if name == "batch_wait":
        arguments |= {"worker": tasks.BatchModel, "max_batch": 2}
    if name == "setup":
        arguments["worker"] = tasks.Model
    if name == "initargs":
        arguments["initializer"] = tasks.same
    return Executor(**arguments | {name: value})


@pytest.mark.parametrize(("name", "value", "kind"), REFUSED)
def test_refused(name: str, value: Any, kind: type[Exception]) -> None:
    """By TypeError or ValueError, with the name; the pool is not made."""
    with pytest.raises(kind, match=f"^[^:]*{name}"):
        make(name, value).kill_workers()


def test_refused_together() -> None:
    for arguments in (
        {"max_workers": 2, "devices": "cpu:2"},
        {"max_workers": 2, "devices": "fake:2"},
        {"max_workers": 2, "devices": [0]},
        {"devices": "cpu:2/2", "workers_per_device": 2},
        {"devices": "cpu:1", "batch_wait": 0.5},
    ):
        with pytest.raises(ValueError, match="|".join(arguments)):
            Executor(**arguments).kill_workers()  # type: ignore[arg-type]
    with pytest.raises(DeviceError, match="devices_per_worker"):
        Executor(devices="cpu:3", devices_per_worker=2)
    with pytest.raises(TypeError, match="max_batch goes with worker="):
        Executor(1, max_batch=2)
    with pytest.raises(TypeError, match="max_worker"):
        Executor(max_worker=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Executor(1, 2)  # type: ignore[misc]


def test_every_argument_is_checked() -> None:
    names = set(inspect.signature(Executor.__init__).parameters) - {"self", "mp_context"}
    assert names <= {name for name, _, _ in REFUSED}


VIEW_REFUSED: list[tuple[str, Any, type[Exception]]] = [
    *[
        (name, value, kind)
        for name in ("task_timeout", "expires", "stall_timeout")
        for values, kind in (((0, -1, NAN), ValueError), ((True, "1", [1]), TypeError))
        for value in values
    ],
    *[("priority", value, TypeError) for value in (True, 1.0, "1", None, NAN)],
    *[("priority", value, ValueError) for value in (1 << 31, -(1 << 31) - 1)],
    *[("label", value, TypeError) for value in (5, b"x", True)],
    *[("label", value, ValueError) for value in ("x" * 64, "ü" * 32, "nul\0")],
    *[("max_attempts", value, ValueError) for value in (0, -1, 256)],
    *[("max_attempts", value, TypeError) for value in (True, 1.0, "1", None)],
    *[("retry", value, TypeError) for value in (5, [5], True, None)],
    *[("retry", value, ValueError) for value in ("death", ["crash", "x"], "oom", ["oom", "crash"])],
    *[("copy", value, TypeError) for value in (1, 0, "yes", None)],
    *[("block", value, TypeError) for value in (1, 0, "yes", None)],
    *[("on_cancel", value, TypeError) for value in (5, None, True)],
    *[("on_cancel", value, ValueError) for value in ("die", "")],
]


@pytest.mark.parametrize(("name", "value", "kind"), VIEW_REFUSED)
def test_refused_by_a_view(pool: Executor, name: str, value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=name):
        pool.options(**{name: value})


def test_every_option_is_checked(pool: Executor) -> None:
    names = set(inspect.signature(pool.options).parameters)
    assert names == {name for name, _, _ in VIEW_REFUSED}
    with pytest.raises(TypeError, match="prio"):
        pool.options(prio=1)  # type: ignore[call-arg]


def test_what_outcomes_refuses(pool: Executor) -> None:
    for name, value, kind in (
        ("label", 5, TypeError),
        ("label", "x" * 64, ValueError),
        ("priority", 1.0, TypeError),
        ("priority", True, TypeError),
        ("ordered", 1, TypeError),
        ("fn", None, TypeError),
        ("fn", 5, TypeError),
        ("key", len, TypeError),
        ("fresh", True, TypeError),
    ):
        arguments: dict[str, Any] = {"fn": tasks.same, name: value}
        with pytest.raises(kind, match=name if name != "fresh" else "fresh|journal"):
            pool.outcomes([1], **arguments)


# ---- what is accepted ----


def test_accepted() -> None:
    for arguments in (
        {"task_timeout": None},
        {"task_timeout": 5},
        {"task_timeout": 1e-9},
        {"task_timeout": INF},
        {"setup_timeout": None},
        {"grace": 0},
        {"retry": "crash"},
        {"retry": ()},
        {"retry": {"crash", "error", "timeout", "device", "oom"}, "max_attempts": 255},
        {"env": {}},
        {"devices": ("cpu:1",)},
        {"output": "discard"},
        {"payload_budget": 64 << 20},
        {"base_seed": 0},
        {"initargs": [1], "initializer": tasks.same},
    ):
        with Executor(**{"devices": "cpu:1"} | arguments) as pool:  # type: ignore[arg-type]
            if arguments.get("task_timeout") != 1e-9:
                assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


# ---- what each does ----


def test_views_are_independent(pool: Executor) -> None:
    labelled = pool.options(label="first")
    both = labelled.options(priority=5)
    assert labelled.submit(tasks.attempt).result(LIMIT_S) == (1, "first")
    assert both.submit(tasks.attempt).result(LIMIT_S) == (1, "first")
    assert both.options(label=None).submit(tasks.attempt).result(LIMIT_S) == (1, "")
    assert pool.submit(tasks.attempt).result(LIMIT_S) == (1, "")
    assert list(labelled.map(tasks.attempt, [0, 0])) == [(1, "first")] * 2
    assert [r.value for r in labelled.outcomes([0], fn=tasks.attempt)] == [(1, "first")]
    assert [r.value for r in labelled.outcomes([0], fn=tasks.attempt, label="x")] == [(1, "x")]
    assert [r.value for r in both.outcomes([0], fn=tasks.attempt, priority=1)] == [(1, "first")]


def test_label_is_seen_from_outside(pool: Executor) -> None:
    with Gate() as gate:
        future = pool.options(label="ü" * 31).submit(tasks.through, gate.address)
        gate.arrival()
        assert pool.slots()[0]["label"] == "ü" * 31
        gate.open()
        future.result(LIMIT_S)


def test_task_timeout(pool: Executor) -> None:
    error = pool.options(task_timeout=0.25).submit(tasks.spin).exception(LIMIT_S)
    assert isinstance(error, TaskTimeout)
    assert isinstance(error, TimeoutError)
    assert (error.limit, error.field) == (0.25, "task_timeout")
    assert "spin" in error.stack
    assert "0.250 s" in str(error)
    with Executor(1, task_timeout=0.5, initializer=tasks.same) as limited, Gate() as gate:
        assert limited.submit(tasks.same, 1).result(LIMIT_S) == 1
        began = time.monotonic()
        assert isinstance(limited.submit(tasks.spin).exception(LIMIT_S), TaskTimeout)
        assert time.monotonic() - began >= 0.5
        free = limited.options(task_timeout=None).submit(tasks.through, gate.address)
        gate.arrival()
        runs = time.monotonic()
        assert until(lambda: time.monotonic() - runs > 0.6)
        gate.open()
        assert free.result(LIMIT_S) == "-"


def test_grace() -> None:
    """A task that ignores its limit is killed after limit and grace."""
    with Executor(1, grace=0.05) as pool, Gate() as gate:
        pid = pool.submit(tasks.pid).result(LIMIT_S)
        future = pool.options(task_timeout=0.05).submit(tasks.deaf, gate.address)
        error = future.exception(LIMIT_S)
        assert isinstance(error, TaskTimeout)
        assert error.phase == "hard"
        assert pool.submit(tasks.pid).result(LIMIT_S) != pid


@pytest.mark.parametrize("grace", [0, 2.0, 40, 10**6, None])
def test_close_limit(grace: float | None) -> None:
    """terminate_workers() kills what has not ended after the grace, and nothing before."""
    made = Executor(1, grace=grace)  # type: ignore[arg-type]
    limit, patience = (made._home.options[name] for name in ("close_limit", "grace"))
    made.kill_workers()
    assert limit == settings.NEVER if patience == settings.NEVER else limit > patience + 10**9


def test_expires(pool: Executor, tmp_path: pathlib.Path) -> None:
    """A task that has not started by then does not start."""
    path = str(tmp_path / "ran")
    with Gate() as gate:
        blocker = pool.submit(tasks.through, gate.address)
        gate.arrival()
        future = pool.options(expires=0.02).submit(tasks.mark, path, 1)
        late = pool.options(expires=3600.0).submit(tasks.mark, path, 2)
        error = future.exception(LIMIT_S)
        assert isinstance(error, TaskTimeout)
        assert (error.phase, error.field, error.limit) == ("queued", "expires", 0.02)
        assert future.attempt == 0
        gate.open()
        assert late.result(LIMIT_S) == 2
        blocker.result(LIMIT_S)
    assert tasks.marked(path) == ["2"]


def test_expires_in_the_package(tmp_path: pathlib.Path) -> None:
    """Time in the package, before the core has room, counts."""
    path = str(tmp_path / "ran")
    with Executor(1, queue_size=1) as pool, Gate() as gate:
        blocker = pool.submit(tasks.through, gate.address)
        gate.arrival()
        view = pool.options(expires=0.05)
        futures = [view.submit(tasks.mark, path, i) for i in range(3)]
        end = time.monotonic() + 0.06
        assert until(lambda: time.monotonic() > end)
        gate.open()
        for future in futures:
            error = future.exception(LIMIT_S)
            assert isinstance(error, TaskTimeout)
            assert error.message == "not started within 0.050 s (expires)"
            assert error.limit == 0.05
        blocker.result(LIMIT_S)
    assert tasks.marked(path) == []


def test_stall_timeout(pool: Executor) -> None:
    view = pool.options(stall_timeout=0.3, task_timeout=LIMIT_S)
    assert view.submit(tasks.progress_for, 0.6).result(LIMIT_S) >= 0.6
    for tried in (view, view.options(retry="timeout", max_attempts=2)):
        error = tried.submit(tasks.spin).exception(LIMIT_S)
        assert isinstance(error, TaskTimeout)
        assert (error.phase, error.field, error.limit) == ("process", "stall_timeout", 0.3)
        assert "no progress for 0.300 s" in error.message


CAUSES = {"crash": WorkerCrashed, "error": ValueError, "timeout": TaskTimeout}


@pytest.mark.parametrize("cause", CAUSES)
def test_retry(cause: str, tmp_path: pathlib.Path) -> None:
    """Only named causes are tried again, and only max_attempts times."""
    paths = (str(tmp_path / str(i)) for i in range(100))
    limit = 0.4 if cause == "timeout" else None
    with Executor(1, task_timeout=limit, initializer=tasks.same) as pool:
        view = pool.options(max_attempts=3, retry=cause)
        future = view.submit(tasks.die_first, next(paths), 2, cause)
        assert future.result(LIMIT_S) == 3
        assert future.attempt == 3
        path = next(paths)
        future = view.submit(tasks.die_first, path, 3, cause)
        assert isinstance(future.exception(LIMIT_S), CAUSES[cause])
        assert future.attempt == 3
        assert len(tasks.marked(path)) == 3
        for other in (
            pool.options(max_attempts=3, retry=[c for c in settings.RETRY_BITS if c != cause]),
            pool.options(max_attempts=3, retry=()),
            pool.options(max_attempts=1, retry=cause),
        ):
            path = next(paths)
            future = other.submit(tasks.die_first, path, 1, cause)
            assert isinstance(future.exception(LIMIT_S), CAUSES[cause])
            assert len(tasks.marked(path)) == 1
        ends = list(
            view.outcomes([next(paths)], fn=functools.partial(tasks.die_first, times=1, how=cause))
        )
        assert (ends[0].value, ends[0].attempt) == (2, 2)


def test_retry_on_another_device(tmp_path: pathlib.Path) -> None:
    gpus = tasks.FakeGpus(tmp_path)
    with Executor(devices=gpus.devices) as pool, Gate() as gate:
        view = pool.options(max_attempts=2, retry=("device",))
        future = view.submit(tasks.say_where_through, gate.address)
        _, first = gate.arrival()
        gpus.lose(first)
        _, second = gate.arrival()
        assert {first, second} == {"fake:0", "fake:1"}
        gate.open()
        assert future.result(LIMIT_S) == second
        assert (future.attempt, future.device) == (2, second)


def test_a_lost_device_is_no_other_cause(tmp_path: pathlib.Path) -> None:
    gpus = tasks.FakeGpus(tmp_path)
    with Executor(devices=gpus.devices) as pool, Gate() as gate:
        view = pool.options(max_attempts=2, retry=("crash", "error", "timeout"))
        future = view.submit(tasks.say_where_through, gate.address)
        _, first = gate.arrival()
        gpus.lose(first)
        assert isinstance(future.exception(LIMIT_S), DeviceError)
        assert (future.attempt, future.device) == (1, first)


def test_retry_of_the_pool(tmp_path: pathlib.Path) -> None:
    with Executor(1, max_attempts=2) as pool:  # "crash" unless told otherwise
        assert pool.submit(tasks.die_first, str(tmp_path / "a"), 1).result(LIMIT_S) == 2
        future = pool.submit(tasks.die_first, str(tmp_path / "b"), 1, "error")
        assert isinstance(future.exception(LIMIT_S), ValueError)
        once = pool.options(max_attempts=1).submit(tasks.die_first, str(tmp_path / "c"), 1)
        assert isinstance(once.exception(LIMIT_S), WorkerCrashed)
        never = pool.options(retry=()).submit(tasks.die_first, str(tmp_path / "d"), 1)
        assert isinstance(never.exception(LIMIT_S), WorkerCrashed)
    with Executor(1, max_attempts=2, retry=()) as pool:
        future = pool.submit(tasks.die_first, str(tmp_path / "e"), 1)
        assert isinstance(future.exception(LIMIT_S), WorkerCrashed)
        again = pool.options(retry=("crash", "error"))
        assert again.submit(tasks.die_first, str(tmp_path / "f"), 1, "error").result(LIMIT_S) == 2


def test_oom_is_tried_again_alone(tmp_path: pathlib.Path) -> None:
    with Executor(2, retry=("oom",), max_attempts=2) as pool:
        for view in (pool, pool.options(retry=("oom", "crash"))):
            path = str(tmp_path / f"once {id(view)}")
            first, second = view.submit(tasks.out_of_memory, path, 1).result(LIMIT_S)
            assert first != second  # in a fresh worker
        for view in (pool.options(retry="crash"), pool.options(max_attempts=1)):
            paths = [str(tmp_path / f"{kind} {id(view)}") for kind in ("task", "item")]
            one = view.submit(tasks.out_of_memory, paths[0], 1)
            assert isinstance(one.exception(LIMIT_S), OutOfMemory)
            (two,) = view.outcomes(paths[1:], fn=functools.partial(tasks.out_of_memory, times=1))
            assert two.kind == "oom"
        error = pool.submit(tasks.out_of_memory, str(tmp_path / "twice"), 2).exception(LIMIT_S)
        assert isinstance(error, OutOfMemory)
        assert isinstance(error, MemoryError)
        assert isinstance(error.__cause__, MemoryError)
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


def test_out_of_memory_tells_who_has_it(tmp_path: pathlib.Path) -> None:
    """Of a device that the worker cannot ask, the host knows it."""
    script = tmp_path / "gpu.txt"
    script.write_text("gpu 0 memory=10GiB foreign 4321 3GiB\n")
    with Executor(devices=f"fake:1,script={script}", retry="oom", max_attempts=2) as pool:
        error = pool.submit(tasks.say_and, "run out").exception(LIMIT_S)
        assert isinstance(error, OutOfMemory)
        assert error.device == "fake:0"
        assert (error.free_mib, error.own_mib, error.foreign_mib) == (7 << 10, 0, 3 << 10)


def test_a_callback_of_a_second_try_waits_for_another(tmp_path: pathlib.Path) -> None:
    """It runs where all callbacks run, and the second tries go on meanwhile."""
    threads: list[str] = []
    found: list[object] = []
    paths = [str(tmp_path / name) for name in "ab"]
    with Executor(2, retry=("oom",), max_attempts=2) as pool:

        def callback(_: object) -> None:
            threads.append(threading.current_thread().name)
            found.append(pool.submit(tasks.out_of_memory, paths[1], 1).result(LIMIT_S))

        with Gate() as gate:
            first = [pool.submit(tasks.through, gate.address) for _ in range(2)]
            pool.submit(tasks.out_of_memory, paths[0], 1).add_done_callback(callback)
        assert [f.result(LIMIT_S) for f in first] == ["-"] * 2
        assert until(lambda: bool(found))
    assert threads == ["gpudispatch-pool"]


def test_kill_workers_ends_a_second_try(tmp_path: pathlib.Path) -> None:
    pool = Executor(1, retry=("oom",), max_attempts=2)
    path = tmp_path / "ran"
    future = pool.submit(tasks.out_of_memory_then_sleep, str(path))
    assert until(lambda: path.exists() and len(path.read_text().splitlines()) == 2)
    pool.kill_workers()
    pool.shutdown()
    assert future.cancelled() or isinstance(future.exception(), OutOfMemory)


@pytest.mark.parametrize("end", ["stop", "terminate"])
def test_a_second_try_is_stopped(tmp_path: pathlib.Path, end: str) -> None:
    """Its code gets the exception, as in a first try: nothing waits for the grace."""
    path = str(tmp_path / "ran")
    with Executor(1, retry=("oom",), max_attempts=2, grace=600) as pool:
        future = pool.submit(tasks.out_of_memory_then_sleep, path)
        assert until(lambda: future.progress is not None)  # the host knows that it runs again
        if end == "terminate":
            pool.terminate_workers()
        else:
            assert future.stop()
        assert wait([future], LIMIT_S).done
        assert future.cancelled()
    assert tasks.marked(path)[2:] == ["ended"]


def test_a_second_try_is_stopped_with_its_loop(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Executor(2, retry=("oom",), max_attempts=2, grace=600) as pool:
        view = pool.options(on_cancel="ask")
        loop = view.outcomes(["", path], fn=functools.partial(tasks.out_of_memory_beside, path))
        assert next(loop).item == ""
        loop.close()  # type: ignore[attr-defined]
    assert tasks.marked(path)[2:] == ["ended"]


def run_on_fakes(program: pathlib.Path, text: str, *arguments: str, **variables: str) -> list[str]:
    """The words that a program prints where the GPUs are the tests' fakes of the driver."""
    fakes = pathlib.Path(os.environ.get("GPUD_TEST_BUILD", ".")) / "tests/programs"
    if not (fakes / "libnvidia-ml.so.1").exists():
        pytest.skip("the build has no fakes of the driver (ninja test-programs)")
    program.write_text(text)
    ran = subprocess.run(
        [sys.executable, str(program), *arguments],
        env=dict(os.environ, LD_LIBRARY_PATH=str(fakes), **variables),
        stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT_S,
    )  # fmt: skip
    return ran.stdout.split()


TWICE_ALONE = """
import sys
import executor_tasks as tasks
from gpudispatch import Executor
if __name__ == "__main__":
    with Executor(devices=[0], retry="oom", max_attempts=2) as pool:
        again = pool.submit(tasks.out_of_memory_at, sys.argv[1], 1).result()
        print(*again, pool.devices()[0]["uuid"])
"""


def test_oom_is_tried_again_on_the_same_gpu(tmp_path: pathlib.Path) -> None:
    """An entry gpu:1 of a device list means the second of the visible ones, which is not the device
    gpu:1."""
    first, second, own = run_on_fakes(
        tmp_path / "program.py", TWICE_ALONE, str(tmp_path / "ran"),
        FAKE_SCRIPT_TEXT="gpus 3\n", CUDA_VISIBLE_DEVICES="1,0",
    )  # fmt: skip
    assert first == second == own


READS_AT_IMPORT = """
import os

seen = os.environ.get("CUDA_VISIBLE_DEVICES")


def tell(_=None):
    return seen


class Model:
    process = staticmethod(tell)
"""

TOLD = """
import at_import
from gpudispatch import Executor
if __name__ == "__main__":
    print(at_import.seen)
    with Executor(devices=[0]) as pool:
        print(pool.devices()[0]["uuid"], pool.submit(at_import.tell).result())
        print(pool.submit(tell).result())
    with Executor(devices=[0], initializer=at_import.tell) as pool:
        print(pool.submit(at_import.tell).result())
    with Executor(devices=[0], worker=at_import.Model) as pool:
        print(pool.submit(1).result())
"""


def test_a_worker_has_its_device_before_it_imports(tmp_path: pathlib.Path) -> None:
    """Code of the user that reads CUDA_VISIBLE_DEVICES as it is imported finds the worker's."""
    (tmp_path / "at_import.py").write_text(READS_AT_IMPORT)
    host, own, *seen = run_on_fakes(
        tmp_path / "program.py", READS_AT_IMPORT + TOLD,
        FAKE_SCRIPT_TEXT="gpus 3\n", CUDA_VISIBLE_DEVICES="1,0",
    )  # fmt: skip
    assert host == "1,0"
    assert seen == [own] * 4


def test_priority() -> None:
    """In a pool of its own: a worker that has run short tasks gets more of them ahead."""
    order: list[int] = []
    with Executor(1) as pool, Gate() as gate:
        blocker = pool.submit(tasks.through, gate.address)
        gate.arrival()
        pool.submit(tasks.same), pool.submit(tasks.same)
        assert until(lambda: pool.slots()[0]["sent"] == 2)  # the first of them is sent ahead
        futures = []
        for priority in (0, -5, 7, 3, 7, -(2**31), 2**31 - 1):
            future = pool.options(priority=priority).submit(tasks.same, priority)
            future.add_done_callback(lambda f: order.append(f.result()))
            futures.append(future)
        gate.open()
        for future in futures:
            future.result(LIMIT_S)
        blocker.result(LIMIT_S)
        assert until(lambda: len(order) == 7)
    assert order == sorted(order, reverse=True)


def test_copy(pool: Executor) -> None:
    np = pytest.importorskip("numpy")
    array = np.arange(100_000)
    assert pool.submit(tasks.writable, array).result(LIMIT_S) is True
    assert pool.options(copy=False).submit(tasks.writable, array).result(LIMIT_S) is False
    views = pool.options(copy=False)
    for size in (9, 100_000):
        assert views.submit(tasks.writable, bytearray(size)).result(LIMIT_S) is True  # a copy
        assert views.submit(tasks.writable, memoryview(bytearray(size))).result(LIMIT_S) is False


def test_on_cancel(tmp_path: pathlib.Path) -> None:
    """What leaving a loop does to the task that runs; those that wait do not start meanwhile."""
    for on_cancel, ends in (
        ("leave", "False nothing"),
        ("ask", "True Stopped"),
        ("kill", "True Stopped"),
    ):
        path = tmp_path / on_cancel
        with Executor(1, grace=60.0) as pool, Gate() as gate:
            view = pool.options(on_cancel=on_cancel)
            loop = view.outcomes(
                [0, *[1] * 900],
                fn=functools.partial(tasks.tell_unless_zero, gate.address, str(path)),
            )
            assert next(loop).ok
            gate.arrival()
            loop.close()  # type: ignore[attr-defined]
            if on_cancel == "leave":
                gate.open()
            assert until(lambda p=path: tasks.marked(p))
            assert " ".join(tasks.marked(path)) == ends
            assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1
            assert pool.stats()["deaths"] == 0


def test_on_cancel_kills() -> None:
    with Executor(1, grace=0.05) as pool, Gate() as gate:
        results = pool.options(on_cancel="kill").map(
            tasks.deaf_unless_zero, [0, 1], [gate.address] * 2
        )
        assert next(results) == 0
        pid, _ = gate.arrival()
        results.close()  # type: ignore[attr-defined]
        assert pool.submit(tasks.pid).result(LIMIT_S) != pid
