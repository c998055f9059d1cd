# SPDX-License-Identifier: MIT
"""The worker process, seen from the host."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from types import SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import worker_tasks as tasks
from executor_tasks import Gate

import gpudispatch
from gpudispatch import Executor, _core, ends, errors, oom
from gpudispatch.engine import Engine

numpy = pytest.importorskip("numpy")

LIMIT_S = 30.0  # of anything that should take milliseconds


@pytest.fixture(scope="module")
def shared_pool() -> Iterator[Executor]:
    with Executor(1) as pool:
        yield pool


@pytest.fixture
def pool(shared_pool: Executor) -> Executor:
    shared_pool.submit(tasks.read_seen).result(LIMIT_S)
    return shared_pool


# The initializer imports the module of the tasks: in the first task that would take its time.
@pytest.fixture(scope="module")
def shared_limited() -> Iterator[Executor]:
    with Executor(1, task_timeout=0.15, grace=20.0, initializer=tasks.pid) as pool:
        yield pool


@pytest.fixture
def limited(shared_limited: Executor) -> Executor:
    shared_limited.submit(tasks.read_seen).result(LIMIT_S)
    return shared_limited


def failure(pool: Any, *call: Any) -> BaseException:
    error = pool.submit(*call).exception(LIMIT_S)
    assert error is not None
    return error


# --- values ---


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -7,
        10**400,
        1.5,
        "text",
        "long" * 5000,
        b"",
        b"bytes",
        b"b" * 4095,
        b"b" * 4096,
        b"b" * 200_000,
        (),
        (1, "a", None),
        tuple(range(40)),
        (1, b"x" * 9000),
        [1, [2, {3: (4,)}]],
        bytearray(b"array" * 3000),
        "surrogate \udc80",
    ],
    ids=lambda value: f"{type(value).__name__}-{len(repr(value))}",
)
def test_values_come_back(pool: Executor, value: Any) -> None:
    for _ in range(2):  # the first finds the function, the second knows it
        found = pool.submit(tasks.same, value).result(LIMIT_S)
        assert found == value
        assert type(found) is type(value)


def test_keyword_arguments(pool: Executor) -> None:
    assert pool.submit(tasks.same, 1, a=2).result(LIMIT_S) == ((1,), {"a": 2})


def test_chunks(pool: Executor) -> None:
    assert list(pool.map(tasks.same, range(100), chunksize=7)) == list(range(100))


CHUNKS: list[tuple[list[Any], int, type[Exception], list[Any]]] = [
    ([0, 1, "raise", 3], 2, KeyError, [0, 1, "raise"]),
    ([0, 1, "lock", 3], 2, TypeError, [0, 1, "lock", 3]),
    (["lock", 1], 0, TypeError, ["lock", 1]),
    ([0, "lock", 2, "raise", 4], 1, TypeError, [0, "lock", 2, "raise"]),
    # Which one it is shows only when the items are run one by one.
    ([0, 1, "load", 3], 2, LookupError, [0, 1, "load", 3] * 2),
]


@pytest.mark.parametrize(("items", "before", "error", "ran"), CHUNKS)
def test_chunk_keeps_the_values_before_a_failure(
    pool: Executor, items: list[Any], before: int, error: type[Exception], ran: list[Any]
) -> None:
    results = pool.map(tasks.odd_one, items, chunksize=len(items))
    assert [next(results) for _ in range(before)] == [0, 2, 4][:before]
    with pytest.raises(error):
        next(results)
    assert pool.submit(tasks.read_seen).result(LIMIT_S) == ran


@pytest.mark.parametrize("max_batch", [1, 2])
def test_chunk_of_items_keeps_the_values_before_a_failure(max_batch: int) -> None:
    worker = tasks.OddOne if max_batch == 1 else tasks.OddOnes
    with Executor(1, worker=worker, max_batch=max_batch) as pool:
        for items, before, error, _ in CHUNKS:
            results = pool.map(items, chunksize=len(items))
            assert [next(results) for _ in range(before)] == [0, 2, 4][:before]
            with pytest.raises(error):
                next(results)


# --- errors ---


@pytest.mark.parametrize(
    ("kind", "expected", "text"),
    [
        ("plain", ValueError, "plain"),
        ("group", ExceptionGroup, "several (2 sub-exceptions)"),
        ("exit", SystemExit, "3"),
        ("nul", ValueError, "a\0b"),
        ("bad text", tasks.BadText, None),
        ("two", errors.RemoteError, "file:3"),
        ("locked", errors.RemoteError, "file:3"),
    ],
)
def test_exceptions(
    pool: Executor, kind: str, expected: type[BaseException], text: str | None
) -> None:
    error = failure(pool, tasks.fail, kind)
    assert type(error) is expected
    assert text is None or text in str(error)
    assert error.__notes__ == ["a note"]
    assert isinstance(error.__cause__, errors.RemoteTraceback)
    assert "worker_tasks.py" in error.__cause__.text and "a note" in error.__cause__.text
    if isinstance(error, errors.RemoteError):
        assert error.type_name == f"worker_tasks.{type(tasks.RAISED[kind]).__name__}"
    assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


@pytest.mark.parametrize(
    ("kind", "expected", "text"),
    [
        ("lock", TypeError, "lock"),
        ("generator", TypeError, "generator"),
        ("bad dump", ZeroDivisionError, "in reduce"),
    ],
)
def test_results_that_cannot_be_pickled(
    pool: Executor, kind: str, expected: type[BaseException], text: str
) -> None:
    before = pool.submit(tasks.whoami).result(LIMIT_S)
    error = failure(pool, tasks.fail, kind)
    assert type(error) is expected and text in str(error)
    assert isinstance(error.__cause__, errors.RemoteTraceback)
    assert pool.submit(tasks.whoami).result(LIMIT_S) == before


def test_traceback_begins_with_user_code(pool: Executor) -> None:
    cause = str(failure(pool, tasks.fail, "plain").__cause__)
    assert "in fail" in cause
    assert "gpudispatch/worker.py" not in cause


def test_an_error_too_large_for_its_share() -> None:
    budget = 8 * 2**20 + 128 * 1024
    with Executor(1, payload_budget=budget) as pool:
        error = failure(pool, tasks.fail, "huge")
        assert isinstance(error, (ValueError, errors.RemoteError))
        assert "xxx" in str(error)


def test_a_result_too_large_for_its_share() -> None:
    with Executor(1, payload_budget=16 * 2**20) as pool:
        error = failure(pool, bytes, 60 * 2**20)
        assert isinstance(error, errors.ResultTooLarge)
        assert "payload_budget" in str(error)
        assert re.search(r"a result of 6291\d{4} bytes", str(error))
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1


def test_last_words(pool: Executor) -> None:
    error = failure(pool, tasks.last_words, 5)
    assert isinstance(error, errors.WorkerCrashed)
    assert [f"word {n}" for n in range(5)] == error.log_tail.splitlines()[-5:]
    error = failure(pool, tasks.leave, 7)
    assert isinstance(error, errors.WorkerCrashed)
    assert error.exitcode == 7
    assert error.log_tail.endswith("leaving\n")


def test_crash_in_native_code_leaves_the_python_stack(pool: Executor) -> None:
    error = failure(pool, tasks.crash_in_native_code)
    assert isinstance(error, errors.WorkerCrashed)
    assert error.signal == signal.SIGSEGV
    assert "in crash_in_native_code" in error.log_tail


# --- limits ---


def test_limit_in_python(limited: Executor) -> None:
    error = failure(limited, tasks.spin)
    assert isinstance(error, errors.TaskTimeout)
    assert isinstance(error, TimeoutError)
    assert error.phase == "process"
    assert "in spin" in error.stack
    assert limited.submit(tasks.whoami).result(LIMIT_S)[1] == 1


@pytest.mark.parametrize("function", [tasks.usleep_loop, tasks.spin_in_finally, tasks.slow_finally])
def test_limit_in_native_calls_and_finally(limited: Executor, function: Any) -> None:
    error = failure(limited, function)
    assert isinstance(error, errors.TaskTimeout)
    assert error.phase == "process"
    assert f"in {function.__name__}" in error.stack
    expected = ["cleaned up"] if function is tasks.slow_finally else []
    assert limited.submit(tasks.read_seen).result(LIMIT_S) == expected
    assert limited.submit(tasks.whoami).result(LIMIT_S)[1] == 1


def test_limit_is_raised_once(limited: Executor) -> None:
    error = failure(limited, tasks.swallow_once, False)
    assert isinstance(error, errors.TaskTimeout)
    assert limited.submit(tasks.read_seen).result(LIMIT_S) == [1]
    assert error.log_tail.count("most recent call first") <= 8


@pytest.mark.parametrize(
    ("function", "args"), [(tasks.deadlock, ()), (tasks.swallow_once, (True,))]
)
def test_past_grace_the_worker_is_killed(function: Any, args: tuple[Any, ...]) -> None:
    with Executor(1, task_timeout=0.1, grace=0.1, initializer=tasks.pid) as pool:
        error = failure(pool, function, *args)
        assert isinstance(error, errors.TaskTimeout)
        assert error.phase == "hard"
        assert f"in {function.__name__}" in error.stack
        assert f"in {function.__name__}" in error.log_tail
        assert pool.submit(tasks.whoami).result(LIMIT_S)[1] == 2


def test_packing_is_not_interrupted(limited: Executor) -> None:
    error = failure(limited, tasks.same, tasks.SlowToUnpack(0.3))
    assert isinstance(error, errors.TaskTimeout)
    assert limited.submit(tasks.read_seen).result(LIMIT_S) == ["unpacked"]
    error = failure(limited, tasks.SlowToPack, 0.3)
    assert isinstance(error, errors.TaskTimeout)
    assert limited.submit(tasks.read_seen).result(LIMIT_S) == ["packed"]


def test_limit_in_asyncio(limited: Executor) -> None:
    assert limited.submit(tasks.run_asyncio, 0.0).result(LIMIT_S) == "slept"
    assert isinstance(failure(limited, tasks.run_asyncio, 60.0), errors.TaskTimeout)
    assert limited.submit(tasks.interrupt_me).result(LIMIT_S) == "alive"
    assert limited.submit(tasks.run_asyncio, 0.0).result(LIMIT_S) == "slept"
    assert limited.submit(tasks.interrupt_me).result(LIMIT_S) == "alive"


def test_user_code_may_use_the_alarm(limited: Executor) -> None:
    assert limited.submit(tasks.own_alarm).result(LIMIT_S) == "rang 1"
    assert isinstance(failure(limited, tasks.spin), errors.TaskTimeout)
    limited.submit(tasks.leave_handler).result(LIMIT_S)
    assert isinstance(failure(limited, tasks.spin), errors.TaskTimeout)
    limited.submit(tasks.read_seen).result(LIMIT_S)
    assert limited.submit(tasks.ring_own).result(LIMIT_S) == ["theirs"]
    assert isinstance(failure(limited, tasks.spin), errors.TaskTimeout)
    assert limited.submit(tasks.whoami).result(LIMIT_S)[1] == 1


@pytest.mark.parametrize("function", [tasks.near_limit, tasks.busy])
def test_tasks_that_end_near_their_limit(function: Any) -> None:
    """Wherever a limit meets Python code, the worker lives on."""
    chance = random.Random(5)
    with Executor(1, grace=20.0, initializer=tasks.pid) as pool:
        view = pool.options(task_timeout=0.003)
        ends = {"success": 0, "timeout": 0}
        times = [chance.uniform(0.0, 0.006) for _ in range(300)]
        for outcome in view.outcomes(times, fn=function):
            ends[outcome.kind] += 1
            if outcome.ok:
                assert outcome.value == outcome.item
        assert pool.submit(tasks.whoami).result(LIMIT_S)[1] == 1
        assert ends["timeout"] > 20


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_limit_in_a_destructor(limited: Executor) -> None:
    """There 3.13 has a frame that faulthandler cannot read."""
    error = failure(limited, tasks.hang_in_a_destructor)
    assert isinstance(error, errors.TaskTimeout)
    assert error.phase == "process"
    assert "most recent call first" in error.log_tail
    limited.submit(tasks.forget_seen).result(LIMIT_S)
    assert limited.submit(tasks.whoami).result(LIMIT_S)[1] == 1


def test_stack_of_a_long_call_in_python_itself() -> None:
    with Executor(1, task_timeout=0.1, grace=1.0, initializer=tasks.pid) as pool:
        error = failure(pool, tasks.largest)
        assert isinstance(error, errors.TaskTimeout)
        assert "in largest" in error.stack


def on_fakes(gpus: int, *program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program on so many GPUs, for which the fakes of the driver stand in."""
    fakes = pathlib.Path(os.environ.get("GPUD_TEST_BUILD", "")) / "tests/programs"
    if not (fakes / "libcuda.so.1").exists():
        pytest.skip("the fake libcuda is not built: GPUD_TEST_BUILD names no build with tests")
    surroundings = os.environ | {
        "LD_LIBRARY_PATH": str(fakes),
        "FAKE_SCRIPT_TEXT": f"gpus {gpus}\n",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    surroundings.pop("CUDA_VISIBLE_DEVICES", None)
    done = subprocess.run(
        [sys.executable, *program], env=surroundings, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done


def test_limits_on_a_gpu() -> None:
    """One signal, and calls continue."""
    done = on_fakes(1, str(pathlib.Path(__file__).with_name("gpu_limits.py")))
    assert done.stdout.splitlines() == [
        "('gpu:0', True)",
        "spin process True",
        "usleep_loop process True",
        "deadlock hard True",
        "wait_for_a_lock hard True",
    ]


# --- stops ---


def wait_for_progress(future: Any) -> None:
    until = time.monotonic() + LIMIT_S
    while future.progress is None and time.monotonic() < until:
        threading.Event().wait(0.001)


def test_stop_raises_in_user_code(pool: Executor) -> None:
    before = pool.submit(tasks.whoami).result(LIMIT_S)
    future = pool.submit(tasks.until_stopped)
    wait_for_progress(future)
    assert future.stop()
    with pytest.raises(CancelledError):
        future.result(LIMIT_S)
    text, cancelled = pool.submit(tasks.read_seen).result(LIMIT_S)
    assert text.startswith("stopped: task ")
    assert cancelled is True
    assert pool.submit(tasks.whoami).result(LIMIT_S) == before


def test_stop_is_seen_by_code_that_asks(pool: Executor) -> None:
    future = pool.submit(tasks.until_cancelled)
    wait_for_progress(future)
    assert future.stop(kill=False)
    with contextlib.suppress(CancelledError):  # the exception may come first
        assert future.result(LIMIT_S) == "cancelled"


def test_stop_without_kill_lets_it_go_on(pool: Executor) -> None:
    before = pool.submit(tasks.whoami).result(LIMIT_S)
    future = pool.submit(tasks.ignore_stops)
    wait_for_progress(future)
    assert future.stop(kill=False)
    with contextlib.suppress(CancelledError):
        assert future.result(LIMIT_S) == "went on"
    assert pool.submit(tasks.whoami).result(LIMIT_S) == before


# --- what a task knows ---


def test_current_task_and_worker(pool: Executor) -> None:
    found = pool.options(label="mine", task_timeout=50.0).submit(tasks.facts).result(LIMIT_S)
    assert found["id"] > 0
    assert found["label"] == "mine"
    assert found["attempt"] == 1
    assert 40.0 < found["left"] <= 50.0
    assert found["device"] == "cpu:0"
    assert found["devices"] == ("cpu:0",)
    assert found["cancelled"] is False
    assert pool.submit(tasks.facts).result(LIMIT_S)["left"] is None
    assert gpudispatch.current_task() is None
    assert gpudispatch.current_worker() is None


def test_task_object_after_its_task(pool: Executor) -> None:
    pool.submit(tasks.keep_task).result(LIMIT_S)
    assert pool.submit(tasks.use_kept_task).result(LIMIT_S) == "the task has ended"
    assert pool.submit(tasks.from_thread).result(LIMIT_S) == 0


def test_seeds_and_first_device() -> None:
    with Executor(3, base_seed=1000) as pool:
        pool.ready()
        slots = {pool.submit(tasks.whoami).result(LIMIT_S) for _ in range(50)}
        assert {seed - slot for slot, _, seed in slots} == {1000}
    with Executor(1, worker=tasks.Echo, setup={"a": 1}, base_seed=7) as pool:
        assert pool.submit("facts").result(LIMIT_S) == ("cpu:0", 7, {"a": 1})
    with Executor(devices="fake:4", devices_per_worker=2, worker=tasks.Echo) as pool:
        pool.ready()
        for _ in range(10):
            future = pool.submit("facts")
            first, seed, _ = future.result(LIMIT_S)
            devices = ["fake:0,fake:1", "fake:2,fake:3"]
            assert (first, future.device) == (f"fake:{2 * (seed - 42)}", devices[seed - 42])


# --- classes and batches ---


def test_class(pool: Executor) -> None:
    with Executor(1, worker=tasks.Echo) as echo:
        for item in (b"bytes", 5, "text", (1, 2), numpy.arange(5000)):
            assert numpy.array_equal(echo.submit(item).result(LIMIT_S), item)
        with pytest.raises(KeyError):
            echo.submit("raise").result(LIMIT_S)
        assert list(echo.map(range(20), chunksize=6)) == list(range(20))


def test_setup_data_is_shared_and_read_only() -> None:
    table = numpy.arange(300_000)
    setup = {"table": table, "point": tasks.Point(5)}
    with Executor(1, worker=tasks.Echo, setup=setup) as pool:
        found = pool.submit("facts").result(LIMIT_S)[2]
        assert numpy.array_equal(found["table"], table)
        assert found["point"].x == 5


def test_workers_map_one_memory_of_setup_data() -> None:
    with Gate() as gate:
        setup = {"table": numpy.arange(300_000), "gate": gate.address}
        with Executor(2, worker=tasks.SetupArray, setup=setup) as pool:
            futures = [pool.submit(0) for _ in range(2)]
            (one, here), (other, there) = gate.arrival(), gate.arrival()
            gate.open()
            assert [f.result(LIMIT_S) for f in futures] == [False, False]
    assert one != other
    assert here == there
    mode, _, inode, _ = here.split()
    assert mode == "r--s"
    assert int(inode) > 0


def test_batches() -> None:
    with Executor(1, worker=tasks.Batch, max_batch=8, batch_wait=0.01) as pool:
        assert list(pool.map(range(20))) == [2 * n for n in range(20)]
        assert list(pool.map(range(20), chunksize=20)) == [2 * n for n in range(20)]
        assert max(pool.submit("calls").result(LIMIT_S)) <= 8


def run_batch(pool: Executor, items: list[Any]) -> list[Any]:
    """Items that arrive while the worker is busy come in one call."""
    outcomes = list(pool.outcomes(items, ordered=True))
    return [outcome.value if outcome.ok else outcome.error for outcome in outcomes]


def test_batch_that_raises_or_returns_nonsense() -> None:
    with Executor(1, worker=tasks.Batch, max_batch=4, batch_wait=1.5, retry="crash") as pool:
        for word, kind in (("short", ValueError), ("none", TypeError), ("raise", KeyError)):
            found = run_batch(pool, ["a", word, "b", "c"])
            assert [type(error) for error in found] == [kind] * 4
        found = run_batch(pool, ["a", "lock", "b", "c"])
        assert found[0] == "a"
        assert isinstance(found[1], TypeError)
        assert found[2:] == ["b", "c"]


def test_batch_with_a_result_too_large() -> None:
    """That one item fails, wherever it is."""
    with Executor(
        1, worker=tasks.Sized, max_batch=4, batch_wait=LIMIT_S, payload_budget=16 * 2**20
    ) as pool:
        for at in range(4):
            items = [1, 2, 3]
            items.insert(at, 60 * 2**20)
            found = run_batch(pool, items)
            error = found.pop(at)
            assert isinstance(error, errors.ResultTooLarge)
            assert error.size > 60 * 2**20
            assert found == [(4, bytes(n)) for n in (1, 2, 3)]


def test_batch_out_of_memory_is_tried_in_halves() -> None:
    with Executor(1, worker=tasks.Batch, max_batch=8, batch_wait=1.5) as pool:
        assert run_batch(pool, [30] * 8) == [60] * 8
        assert pool.submit("calls").result(LIMIT_S)[:-1] in ([8, 4, 2, 2, 4, 2, 2],)
        found = run_batch(pool, [1, 2, -3, 4, 5, 6, 7, 8])
        assert found[:2] + found[3:] == [2, 4, 8, 10, 12, 14, 16]
        error = found[2]
        assert isinstance(error, errors.OutOfMemory)
        assert isinstance(error, MemoryError)
        assert error.free_mib > 0
        assert error.own_mib > 0
        assert error.foreign_mib >= 0


def test_the_outcome_of_a_second_try_wakes_its_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes from another thread, after the last event of the core."""
    with Executor(1, worker=tasks.Batch, max_batch=2) as pool:
        give = Engine.end_of_second_try

        def late(self: Engine, event: Any) -> None:
            until = time.monotonic() + LIMIT_S
            while pool.slots()[0]["state"] != "READY" and time.monotonic() < until:
                threading.Event().wait(0.001)
            threading.Event().wait(0.2)  # the loop takes what the core has said of it
            give(self, event)

        monkeypatch.setattr(Engine, "end_of_second_try", late)
        assert isinstance(run_batch(pool, [-3])[0], errors.OutOfMemory)


# --- out of memory ---


def named(kind: str, text: str, base: type[Exception] = RuntimeError) -> Exception:
    """An exception of a class of this name, as frameworks have them."""
    made: type[Exception] = type(kind, (base,), {})
    return made(text)


RAN_OUT: list[tuple[BaseException, bool]] = [
    (MemoryError(), True),
    (named("Own", "no memory", MemoryError), True),
    (errors.OutOfMemory("no memory"), True),
    (named("OutOfMemoryError", "HIP out of memory. Tried to allocate 2.00 GiB"), True),
    (named("OutOfMemoryError", "Out of memory allocating 2,048 bytes", MemoryError), True),
    (named("Own", "no memory", type(named("OutOfMemoryError", ""))), True),
    (named("XlaRuntimeError", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate"), True),
    (named("JaxRuntimeError", "RESOURCE_EXHAUSTED: Failed to allocate 2.0GiB"), True),
    (named("XlaRuntimeError", "INTERNAL: the kernel has failed"), False),
    (named("JaxRuntimeError", "INVALID_ARGUMENT: shapes differ"), False),
    (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), True),
    (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
    (RuntimeError("RESOURCE_EXHAUSTED"), False),
    (ValueError("CUDA out of memory"), False),
    (named("OutOfMemory", "no memory"), False),
    (OSError(12, "Cannot allocate memory"), False),
    (KeyboardInterrupt(), False),
]


@pytest.mark.parametrize(("error", "ran_out"), RAN_OUT, ids=lambda value: repr(value)[:40])
def test_which_exceptions_mean_out_of_memory(error: BaseException, ran_out: bool) -> None:
    assert oom.is_oom(error) is ran_out


class Frameworks:
    """Stand-ins for torch and cupy, that note what is freed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.freed: list[str] = []
        self.initialized, self.broken = True, False
        torch = SimpleNamespace(
            is_initialized=lambda: self.initialized,
            empty_cache=lambda: self.free("torch"),
            memory_reserved=lambda: 300 << 20,
        )
        device, pinned = (
            SimpleNamespace(free_all_blocks=functools.partial(self.free, name), total_bytes=total)
            for name, total in (("cupy", lambda: 20 << 20), ("cupy, pinned", lambda: 1 << 20))
        )
        cupy = SimpleNamespace(
            get_default_memory_pool=lambda: device, get_default_pinned_memory_pool=lambda: pinned
        )
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=torch))
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.setattr(_core, "device_memory", lambda: (4000 << 20, 8000 << 20))

    def free(self, name: str) -> None:
        self.freed.append(name)
        if self.broken:
            raise RuntimeError("the context is gone")


@pytest.fixture
def frameworks(monkeypatch: pytest.MonkeyPatch) -> Frameworks:
    return Frameworks(monkeypatch)


def test_caches_of_frameworks_are_emptied(frameworks: Frameworks) -> None:
    oom.empty_caches()
    assert frameworks.freed == ["torch", "cupy", "cupy, pinned"]


def test_a_framework_that_is_broken_or_unused(frameworks: Frameworks) -> None:
    frameworks.broken = True
    oom.empty_caches()
    assert frameworks.freed[:2] == ["torch", "cupy"]
    frameworks.initialized, frameworks.broken = False, False
    frameworks.freed.clear()
    oom.empty_caches()  # it does not initialize CUDA
    assert frameworks.freed == ["cupy", "cupy, pinned"]


def test_a_batch_is_halved_with_empty_caches() -> None:
    with Executor(1, worker=tasks.Cached, max_batch=4, batch_wait=LIMIT_S) as pool:
        assert run_batch(pool, [0] * 4) == [2] * 4


def test_memory_of_a_gpu(frameworks: Frameworks, monkeypatch: pytest.MonkeyPatch) -> None:
    assert oom.memory("gpu:0") == {"free_mib": 4000, "own_mib": 320}
    frameworks.initialized = False
    assert oom.memory("gpu:0") == {"free_mib": 4000, "own_mib": 20}
    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.delitem(sys.modules, "torch")
    assert oom.memory("gpu:0") == {"free_mib": 4000, "own_mib": 0}


def test_what_the_host_knows_of_memory() -> None:
    """It adds what the worker does not know, from the row of the first device."""
    names = ("name", "memory_total", "memory_free", "memory_ours", "memory_foreign")
    rows = [
        dict(zip(names, row, strict=True))
        for row in (
            ("gpu:0", 1 << 40, 1 << 30, 2 << 30, 3 << 30),
            ("gpu:1", 1 << 40, 4 << 30, (5 << 30) + 1, None),
            ("gpu:2", None, 6 << 30, 7 << 30, 8 << 30),
        )
    ]
    for device, known, found in (
        ("gpu:0", {}, (1024, 2048, 3072)),
        ("gpu:1,gpu:0", {}, (4096, 5120, None)),
        ("gpu:0", {"free_mib": 0, "own_mib": 7}, (0, 7, 3072)),
        ("gpu:2", {}, (None, None, None)),
        ("gpu:3", {}, (None, None, None)),
    ):
        error = errors.OutOfMemory("no memory", device=device, **known)
        ends.add_memory(error, rows)
        assert (error.free_mib, error.own_mib, error.foreign_mib) == found


# --- setup ---


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"worker": tasks.BadSetup, "setup": {"how": "raise"}}, ["ValueError: no model", "setup"]),
        ({"worker": tasks.BadSetup, "setup": {"how": "exit"}}, ["SystemExit: 4"]),
        ({"worker": tasks.BadSetup}, ["TypeError", "how"]),
        ({"initializer": tasks.bad_initializer}, ["ValueError: initializer broke"]),
    ],
    ids=["raises", "exits", "arguments", "initializer"],
)
def test_setup_that_fails(options: dict[str, Any], words: list[str]) -> None:
    failed = threading.Event()
    with Executor(1, **options) as pool:
        pool._engine.news.listener = lambda event: failed.set() if event.kind == 3 else None
        future: Any = pool.submit(abs) if "worker" in options else pool.submit(abs, 1)
        assert failed.wait(LIMIT_S)
        assert pool._engine.news.setup_error is not None
        text = pool._engine.news.setup_error.traceback_text
        pool.kill_workers()
        with pytest.raises(CancelledError):
            future.result(LIMIT_S)
    for word in words:
        assert word in text
    assert "Traceback" in text
    if "setup" in options:
        assert "about to fail" in text


def test_what_a_worker_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this package, and of the standard library beyond what an interpreter has."""
    # Where the host has it, a worker takes over its key; see source.py.
    monkeypatch.delitem(sys.modules, "multiprocessing.process", raising=False)
    program = "import sys; print(sorted(sys.modules))"
    bare = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=True)
    known = set(eval(bare.stdout))
    with Executor(1) as fresh:
        found = set(fresh.submit(eval, "sorted(__import__('sys').modules)").result(LIMIT_S))
    own = {name for name in found if name.startswith("gpudispatch")}
    assert own <= {
        "gpudispatch",
        "gpudispatch._core",
        "gpudispatch.codec",
        "gpudispatch.current",
        "gpudispatch.source",
        "gpudispatch.worker",
    }
    heavy = {"typing", "re", "threading", "traceback", "pickle", "subprocess", "logging", "enum"}
    assert not (found - known) & (heavy | {"numpy", "concurrent.futures", "multiprocessing"})


def test_program_that_is_no_worker() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-u", "-m", "gpudispatch.worker"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "was not started as a worker" in done.stderr


def test_thread_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "RAYON"):
        monkeypatch.delenv(name + "_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "77")
    each = str(max(1, len(os.sched_getaffinity(0)) // 2))
    with Executor(2, env={"RAYON_NUM_THREADS": "5", "OPENBLAS_NUM_THREADS": None}) as pool:
        assert pool.submit(tasks.thread_variables).result(LIMIT_S) == [each, "77", None, each, "5"]


# --- threads and ends ---


def test_threads_run_between_tasks(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ticks"
    os.mkfifo(path)
    with Executor(1, initializer=tasks.start_ticker, initargs=(str(path),)) as pool:
        pool.ready()
        with open(path) as ticks:
            for _ in range(20):  # the worker has no task
                assert ticks.readline() == "tick\n"


def test_peaceful_end(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lines"
    log = tmp_path / "log"
    with Executor(
        1, worker=tasks.Tidy, setup={"path": str(path)}, output=str(log)
    ) as pool:
        assert pool.submit(1).result(LIMIT_S) == 1
        assert not path.exists()
    assert path.read_text().split() == ["cleanup", "thread", "multiprocessing", "atexit"]
    assert log.read_text() == "no newline at the end"


def test_end_after_some_tasks(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "lines"
    with Executor(
        1,
        max_tasks_per_child=2,
        initializer=tasks.arrange_end,
        initargs=(str(path),),
    ) as pool:
        for _ in range(5):
            pool.submit(tasks.same, 1).result(LIMIT_S)
    assert path.read_text().split() == ["thread", "multiprocessing", "atexit"] * 3


@pytest.mark.parametrize("how", ["atexit", "thread"])
def test_an_end_that_hangs(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library kills the worker at its limit for cleanup, which is 10 s."""
    from gpudispatch import settings

    check = settings.check

    def in_short(**arguments: Any) -> Any:
        made = check(**arguments)
        made.options["cleanup_limit"] = 300_000_000
        return made

    monkeypatch.setattr(settings, "check", in_short)
    news: list[Any] = []
    with Executor(1, initializer=tasks.hang_at_the_end, initargs=(how,)) as pool:
        pool._engine.news.listener = news.append
        assert pool.submit(tasks.same, 1).result(LIMIT_S) == 1
        began = time.monotonic()
    assert time.monotonic() - began < 8.0
    (event,) = [event for event in news if event.kind == 5]
    assert "cleanup_limit" in event.text


def test_cleanup_that_raises() -> None:
    news: list[Any] = []
    with Executor(1, worker=tasks.BadCleanup) as pool:
        pool._engine.news.listener = news.append
        assert pool.submit(1).result(LIMIT_S) == 1
    (event,) = [event for event in news if event.kind == 5]
    assert "exited with status 1" in event.text
    assert "cleanup broke" in (event.output or b"").decode()


# --- processes that user code starts ---


@pytest.mark.parametrize("how", ["subprocess", "spawn", "forkserver", "fork"])
def test_children_see_the_devices(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpudispatch import settings

    check = settings.check

    def with_numbers(**arguments: Any) -> Any:
        made = check(**arguments)
        made.options["visible"] = 2  # fakes have numbers only on request
        return made

    monkeypatch.setattr(settings, "check", with_numbers)
    with Executor(devices="fake:4", devices_per_worker=2) as pool:
        for _ in range(2):
            future = pool.submit(tasks.facts)
            found = future.result(LIMIT_S)
            assert found["device"] == future.device == ",".join(found["devices"])
            assert len(found["devices"]) == 2
            found = pool.submit(tasks.child_devices, how).result(LIMIT_S)
            assert re.fullmatch(r"\(\[(0, 1|2, 3)\], True, True\)", found), found


@pytest.mark.parametrize("how", ["spawn", "forkserver", "fork"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_process_pools_in_a_worker(pool: Executor, how: str) -> None:
    assert pool.submit(tasks.pool_in_child, how).result(LIMIT_S) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("how", "status"), [("return", 0), ("exit", 7), ("raise", 1), ("report", 1)]
)
def test_a_fork_that_comes_back(pool: Executor, how: str, status: int) -> None:
    before = pool.submit(tasks.whoami).result(LIMIT_S)
    future = pool.submit(tasks.bare_fork, how)
    assert future.result(LIMIT_S) == status
    assert future.progress is None
    assert pool.submit(tasks.whoami).result(LIMIT_S) == before


def test_executor_in_a_worker(pool: Executor) -> None:
    assert "subprocess" in pool.submit(tasks.make_executor).result(LIMIT_S)
    assert "subprocess" in pool.submit(tasks.make_executor_in_fork).result(LIMIT_S)
    assert pool.submit(tasks.executor_in_program).result(LIMIT_S) == "9.0"


ON_MY_DEVICES = """
import worker_tasks as tasks
from executor_tasks import Gate
from gpudispatch import Executor
if __name__ == "__main__":
    with Gate() as gate, Executor(devices="all", devices_per_worker=2) as pool:
        futures = [pool.submit(tasks.executor_on_my_devices, gate.address) for _ in range(2)]
        gate.arrivals(2)  # one at each worker
        gate.open()
        print([row["uuid"] for row in pool.devices()])
        for mine, seen in sorted(future.result() for future in futures):
            print(mine, seen, sep=chr(10))
"""


def test_executor_of_a_program_has_the_workers_devices(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ON_MY_DEVICES)
    every, *rest = on_fakes(4, str(program)).stdout.splitlines()
    uuids = ast.literal_eval(every)
    assert len(set(uuids)) == 4
    first, last = f"{uuids[:2]}", f"{uuids[2:]}"
    assert rest == [first, f"{first} 9", last, f"{last} 9"]
