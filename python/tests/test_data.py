# SPDX-License-Identifier: MIT
"""Data through a real pool: what goes in comes out, in memory of its own."""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib.util
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

np = pytest.importorskip("numpy")

import data_tasks as tasks  # noqa: E402
from conftest import until  # noqa: E402
from programs import PACKAGE  # noqa: E402

import gpudispatch  # noqa: E402
from gpudispatch import Executor, codec, errors  # noqa: E402

LIMIT_S = 60.0  # of anything that should take milliseconds
MIB = 1 << 20


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(1) as pool:
        pool.submit(tasks.pid).result(LIMIT_S)
        yield pool


def done(pool: Any, *call: Any) -> Any:
    return pool.submit(*call).result(LIMIT_S)


def arrays() -> Iterator[Any]:
    rows = np.arange(24_000, dtype=float).reshape(100, 240)
    yield rows
    yield rows.T
    yield rows[::2, ::3]
    yield np.arange(10)
    yield np.zeros((0, 5))
    yield np.array(5.5)
    yield np.array([("a", 1)] * 3000, dtype=[("s", "U4"), ("n", "i4")])
    yield np.array(["2024-01-01"] * 2000, dtype="datetime64[D]")
    yield np.array([1, "a", None], dtype=object)
    yield np.arange(3 * MIB, dtype=np.uint8)
    locked = np.arange(5000.0)
    locked.flags.writeable = False
    yield locked


# --- arrays there and back ------------------------------------------------------------------------


@pytest.mark.parametrize("array", list(arrays()), ids=lambda a: f"{a.dtype}{a.shape}"[:30])
@pytest.mark.parametrize("copy", [True, False])
def test_there_and_back(pool: Executor, array: Any, copy: bool) -> None:
    view = pool.options(copy=copy)
    values, dtype, shape, writeable = done(view, tasks.look, array)
    assert values == array.tolist() and (dtype, shape) == (str(array.dtype), array.shape)
    if copy:
        assert writeable
    elif array.nbytes and not array.dtype.hasobject:
        assert not writeable
    back = done(view, tasks.same, array)
    assert back.tolist() == array.tolist() and back.dtype == array.dtype
    assert back.flags.writeable  # results own their memory either way


@pytest.mark.parametrize("size", [100, 10_000, 5 * MIB])
def test_a_task_writes_to_a_copy(pool: Executor, size: int) -> None:
    array = np.arange(size, dtype=float)
    before = array.copy()
    back = done(pool, tasks.in_place, array)
    assert (array == before).all() and (back == before + 1).all()
    again = done(pool, tasks.in_place, array)
    back += 1  # the results are apart, too
    assert (again == before + 1).all()


@pytest.mark.parametrize("size", [100, 10_000, 5 * MIB])
def test_views_are_read_only(pool: Executor, size: int) -> None:
    array = np.arange(size, dtype=float)
    with pytest.raises(ValueError, match="read-only"):
        done(pool.options(copy=False), tasks.in_place, array)
    assert done(pool.options(copy=False), tasks.address, array) == (0, False)
    assert done(pool.options(copy=False), tasks.total, array) == array.sum()


def test_a_write_to_a_view_past_its_flag(pool: Executor) -> None:
    """The memory is mapped read-only: a crash, and no task sees other data than it was sent."""
    array = np.arange(100_000)
    error = pool.options(copy=False).submit(tasks.write_anyway, array).exception(LIMIT_S)
    assert isinstance(error, errors.WorkerCrashed) and error.signal == signal.SIGSEGV
    assert "in write_anyway" in error.log_tail
    assert done(pool.options(copy=False), tasks.total, array) == array.sum()


def test_what_is_sent_is_what_was_there_at_submit() -> None:
    """Also of tasks that wait in the package, since the queue is full."""
    with Executor(1, queue_size=2) as pool:
        array = np.zeros(50_000)
        futures = []
        for n in range(20):
            array[:] = n
            futures.append(pool.submit(tasks.total, array))
        array[:] = -1
        assert [f.result(LIMIT_S) for f in futures] == [50_000.0 * n for n in range(20)]


def test_many_kinds_of_data(pool: Executor) -> None:
    values: list[Any] = [
        b"", b"x" * 100, b"x" * (5 * MIB), bytearray(b"y" * 100_000), ["a", b"z" * 100_000],
        {"blob": bytearray(100_000), "deep": [np.arange(5000)]}, (b"q" * 100_000, 3),
    ]  # fmt: skip
    for value in values:
        back = done(pool, tasks.same, value)
        assert type(back) is type(value)
        if isinstance(value, dict):
            assert back["deep"][0].tolist() == value["deep"][0].tolist()
        else:
            assert back == value
    view = done(pool, tasks.same, memoryview(bytearray(b"m" * 100_000)))
    assert type(view) is memoryview and view == b"m" * 100_000 and not view.readonly


def test_map_and_outcomes_of_arrays(pool: Executor) -> None:
    items = [np.full(n, n, dtype=float) for n in range(0, 60_000, 7_000)]
    assert list(pool.map(tasks.total, items)) == [item.sum() for item in items]
    back = list(pool.map(tasks.in_place, items, chunksize=3))
    assert all((one == two + 1).all() for one, two in zip(back, items, strict=True))
    ended = list(pool.outcomes(items, fn=tasks.in_place, ordered=True))
    assert all((r.value == r.item + 1).all() for r in ended) and len(ended) == len(items)
    views = pool.options(copy=False)
    assert list(views.map(tasks.total, items)) == [item.sum() for item in items]


# --- views that are kept --------------------------------------------------------------------------


@pytest.mark.parametrize("task", [tasks.keep, tasks.keep_part])
def test_a_view_kept_past_its_task(task: Any) -> None:
    with Executor(1) as pool:
        first = done(pool, tasks.pid)
        error = pool.options(copy=False).submit(task, np.arange(50_000)).exception(LIMIT_S)
        assert isinstance(error, errors.GpuDispatchError)
        assert "has kept 1 view" in str(error) and "copy=False" in str(error)
        second = done(pool, tasks.pid)
        assert second != first  # its memory may still be looked at: a new worker
        assert done(pool, tasks.keep, np.arange(50_000)) == second  # a copy may be kept
        assert done(pool, tasks.pid) == second


def test_a_view_kept_in_outcomes() -> None:
    with Executor(1) as pool:
        first = done(pool, tasks.pid)
        items = [np.full(50_000, n) for n in range(4)]
        ended = list(pool.options(copy=False).outcomes(items, fn=tasks.keep_twos, ordered=True))
        assert [r.value for r in ended] == [0, 1, None, 3]
        assert ended[2].kind == "error" and "has kept 1 view" in ended[2].text
        assert type(ended[2].error) is errors.GpuDispatchError
        assert until(lambda: done(pool, tasks.pid) != first)


def test_a_view_kept_in_a_chunk() -> None:
    with Executor(1) as pool:
        first = done(pool, tasks.pid)
        items = [np.full(50_000, n) for n in range(4)]
        loop = pool.options(copy=False).map(tasks.keep_twos, items, chunksize=4)
        assert [next(loop), next(loop)] == [0, 1]
        with pytest.raises(errors.GpuDispatchError, match="has kept 1 view"):
            next(loop)
        assert until(lambda: done(pool, tasks.pid) != first)


def test_a_view_kept_in_a_batch() -> None:
    """That one item fails."""
    with Executor(1, worker=tasks.Keeper, max_batch=4, batch_wait=LIMIT_S) as pool:
        views = pool.options(copy=False)

        def run(*numbers: int) -> list[Any]:
            items = [np.full(50_000, n) for n in numbers]
            return list(views.outcomes(items, ordered=True))

        ended = run(0, 1, 2, 3)
        first = ended[0].value[0]
        assert [r.value for r in ended] == [(first, 4, 0), (first, 4, 1), None, (first, 4, 3)]
        assert type(ended[2].error) is errors.GpuDispatchError
        assert "has kept 1 view" in ended[2].text
        assert until(lambda: run(0, 0, 0, 0)[0].value[0] != first)


def test_a_view_in_a_cycle_is_not_kept(pool: Executor) -> None:
    before = done(pool, tasks.pid)
    assert done(pool.options(copy=False), functools.partial(_cycle), np.arange(50_000)) == 3
    assert done(pool, tasks.pid) == before


def test_a_view_in_an_exception_is_not_kept(pool: Executor) -> None:
    before = done(pool, tasks.pid)
    with pytest.raises(ValueError, match="with 49999"):
        done(pool.options(copy=False), tasks.raise_with, np.arange(50_000))
    assert done(pool, tasks.pid) == before


def _cycle(array: Any) -> int:
    ring: list[Any] = [array]
    ring.append(ring)
    return 3


# --- how much -------------------------------------------------------------------------------------


def test_results_that_are_kept() -> None:
    """1,000 of 1 MiB, then 20 of 16 MiB, through a budget of 64 MiB."""
    with Executor(1, payload_budget=64 * MIB) as pool:
        futures = [pool.submit(tasks.filled, MIB, n % 251) for n in range(1000)]
        results = [f.result(LIMIT_S) for f in futures]
        del futures
        for n, array in enumerate(results):
            assert array.nbytes == MIB and array[0] == n % 251 and array[-1] == n % 251
        del results
        futures = [pool.submit(tasks.filled, 16 * MIB, n) for n in range(20)]
        results = [f.result(LIMIT_S) for f in futures]
        del futures
        for n, array in enumerate(results):
            assert array.nbytes == 16 * MIB and array[0] == n and array[-1] == n
        blobs = list(pool.map(tasks.blob, [MIB] * 100, range(100)))
        assert all(blob == bytes([n]) * MIB for n, blob in enumerate(blobs))


def test_large_results_of_a_slow_consumer() -> None:
    with Executor(2, payload_budget=64 * MIB) as pool:
        fn = functools.partial(tasks.filled, 4 * MIB)
        loops: Any = [pool.outcomes(range(60), fn=fn, ordered=True) for _ in range(2)]
        # One at a time: the results of the other fill the room meanwhile.
        for loop in loops:
            first = next(loop)
            assert first.ok and first.value[0] == 0
        for loop in loops:
            assert [r.value[0] for r in loop] == list(range(1, 60))


def test_a_task_inside_a_loop_over_large_results() -> None:
    """The results that the loop has not come to fill the budget: it must not wait for itself."""
    with Executor(2, payload_budget=64 * MIB) as pool:
        seen = 0
        loop: Any = pool.outcomes(range(60), fn=functools.partial(tasks.filled, 4 * MIB))
        for ended in loop:
            assert ended.ok and ended.value[0] == ended.item
            seen += 1
            if seen % 20 == 1:
                assert pool.submit(tasks.pid).result(LIMIT_S)
        assert seen == 60


def test_large_arguments_with_a_small_budget() -> None:
    with Executor(1, payload_budget=64 * MIB) as pool:
        array = np.ones(2 * MIB)  # 16 MiB, and many of them
        futures = [pool.submit(tasks.total, array) for _ in range(20)]
        assert [f.result(LIMIT_S) for f in futures] == [2.0 * MIB] * 20


def test_a_result_that_never_fits() -> None:
    with Executor(1, payload_budget=16 * MIB) as pool:
        error = pool.submit(tasks.filled, 200 * MIB, 1).exception(LIMIT_S)
        assert isinstance(error, errors.ResultTooLarge) and "payload_budget" in str(error)
        assert error.size > 200 * MIB
        assert done(pool, tasks.filled, 1000, 3)[0] == 3


def test_arguments_that_never_fit() -> None:
    """Larger than the half of the budget for arguments: a failure of that item alone."""
    large, small = np.ones(2 * MIB), np.ones(4)  # 16 MiB
    with Executor(1, payload_budget=16 * MIB) as pool:
        with pytest.raises(errors.ResultTooLarge, match="payload_budget"):
            pool.submit(tasks.total, large).result(LIMIT_S)
        for ordered in (False, True):
            items = [small, large, small, large, large, small]
            ends = list(pool.outcomes(items, fn=tasks.total, ordered=ordered))
            assert sorted(r.index for r in ends if r.ok) == [0, 2, 5]
            for r in ends:
                assert r.item is items[r.index]
                assert r.ok or (r.kind == "error" and "payload_budget" in r.text)
                assert r.ok or isinstance(r.error, errors.ResultTooLarge)
        for size in (1, 2, 4):
            loop = pool.map(tasks.total, [small, small, large, small], chunksize=size)
            assert [next(loop), next(loop)] == [4.0, 4.0]
            with pytest.raises(errors.ResultTooLarge):
                next(loop)
        assert list(pool.map(tasks.total, [np.ones(MIB // 2)] * 6, chunksize=6)) == [MIB / 2] * 6
        assert list(pool.map(tasks.total, [small] * 3, chunksize=3)) == [4.0] * 3


def test_arguments_that_never_fit_and_a_journal(tmp_path: pathlib.Path) -> None:
    items = [np.ones(4), np.ones(2 * MIB), np.ones(5)]
    for replayed in (False, True):
        with Executor(1, payload_budget=16 * MIB) as pool:
            loop = pool.outcomes(items, fn=tasks.total, journal=tmp_path / "j", ordered=True)
            ends = [(r.kind, r.value, r.replayed) for r in loop]
        assert ends == [
            ("success", 4.0, replayed), ("error", None, replayed), ("success", 5.0, replayed)
        ]  # fmt: skip


def test_memory_does_not_grow(pool: Executor) -> None:
    array = np.ones(MIB)  # 8 MiB
    pids = done(pool, tasks.pid)
    for _ in range(5):
        done(pool, tasks.in_place, array)
    host, worker = tasks.rss(), done(pool, tasks.rss)
    gc.disable()  # nothing waits for the collector
    try:
        for _ in range(40):
            done(pool, tasks.in_place, array)
            done(pool.options(copy=False), tasks.total, array)
    finally:
        gc.enable()
    assert done(pool, tasks.pid) == pids
    assert tasks.rss() - host < 100 * MIB
    assert done(pool, tasks.rss) - worker < 100 * MIB


# --- empty() --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [3, (5000,), (300, 500), 4 * MIB, 0, ()])
@pytest.mark.parametrize("dtype", ["f8", "u1"])
def test_results_made_in_place(pool: Executor, shape: Any, dtype: str) -> None:
    back = done(pool, tasks.made_in_place, shape, dtype, 7)
    assert back.shape == np.empty(shape).shape and back.dtype == np.dtype(dtype)
    assert (back == 7).all() and back.flags.writeable


def test_the_worker_copies_nothing_that_was_made_in_place(
    pool: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads: list[int] = []
    decode = codec.decode

    def look(frame: Any, **options: Any) -> Any:
        heads.append(int.from_bytes(bytes(frame[8:16]), "little"))
        return decode(frame, **options)

    monkeypatch.setattr(codec, "decode", look)
    done(pool, tasks.made_in_place, 100_000, "u4", 7)
    done(pool, tasks.filled, 400_000, 7)
    in_place, copied = heads
    assert 24 + in_place == 1024  # the room in front of the array is filled
    assert copied < 500


def test_two_arrays_made_in_place(pool: Executor) -> None:
    for _ in range(3):
        found = done(pool, tasks.two_in_place, 50_000)
        assert found["text"] == "both"
        assert (found["one"] == 1).all() and (found["two"] == 2).all()


def test_made_in_place_and_then_not_returned(pool: Executor) -> None:
    n = 100_000
    assert (done(pool, tasks.made_in_place_unused, n) == 2).all()
    with pytest.raises(LookupError, match="after empty"):
        done(pool, tasks.made_in_place_raises, n)
    back = done(pool, tasks.made_in_place_part, n)
    assert back["n"] == n and (back["half"] == np.arange(n // 2)).all()
    assert gpudispatch.empty((2, 3), "i4").shape == (2, 3)  # in the host: an ordinary array


def test_made_in_place_and_kept() -> None:
    with Executor(1) as pool:
        error = pool.submit(tasks.made_in_place_kept, 100_000).exception(LIMIT_S)
        assert isinstance(error, errors.GpuDispatchError) and "has kept 1 view" in str(error)
        assert done(pool, tasks.made_in_place, 100_000, "f8", 1).sum() == 100_000


# --- what cannot be pickled -----------------------------------------------------------------------


def test_arguments_that_cannot_be_pickled(pool: Any) -> None:
    nothing: list[int] = []
    for value, kind in (
        (threading.Lock(), TypeError),
        ((i for i in nothing), TypeError),
        (tasks.BadDump(), ZeroDivisionError),
    ):
        with pytest.raises(kind):
            pool.submit(tasks.same, value).result(LIMIT_S)
        with pytest.raises(kind):
            pool.submit(tasks.same, np.arange(9000), deep=[value]).result(LIMIT_S)
        with pytest.raises(kind):
            list(pool.map(tasks.same, [1, value]))
    assert done(pool, tasks.same, 3) == 3


def test_what_fails_to_unpickle(pool: Any) -> None:
    before = done(pool, tasks.pid)
    with pytest.raises(LookupError, match="cannot load here") as caught:
        done(pool, tasks.bad_load)
    assert "in decode" in str(caught.value.__cause__)  # it was in the host
    error = pool.submit(tasks.same, tasks.BadLoad()).exception(LIMIT_S)
    assert isinstance(error, LookupError) and "cannot load here" in str(error)
    assert isinstance(error.__cause__, errors.RemoteTraceback)
    error = pool.submit(tasks.same, np.arange(9000), [tasks.BadLoad()]).exception(LIMIT_S)
    assert isinstance(error, LookupError)
    # None of this holds room: as many large ones as fill the budget many times.
    for _ in range(10):
        with pytest.raises(LookupError):
            done(pool, tasks.bad_load)
    ended = list(pool.outcomes([1, 2], fn=_bad_for_2))
    assert sorted(r.ok for r in ended) == [False, True]
    assert done(pool, tasks.pid) == before


def _bad_for_2(n: int) -> Any:
    return tasks.BadLoad() if n == 2 else n


# --- callables ------------------------------------------------------------------------------------


def test_callables(pool: Executor) -> None:
    adder = tasks.Adder(10)
    for fn, of_3 in (
        (adder.add, 13),
        (adder.add, 13),  # each task has its own object
        (adder, 13),
        (tasks.Adder.double, 6),
        (functools.partial(tasks.Adder.add, adder), 13),
        (functools.partial(tasks.same), 3),
        (abs, 3),
        (int, 3),
        ([5, 6, 7, 8].__getitem__, 8),
    ):
        assert done(pool, fn, 3) == of_3
    assert done(pool, tasks.Adder.make, 3).n == 3
    assert adder.n == 10


def test_lambdas(pool: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cloudpickle")
    n = 30
    assert done(pool, lambda x: x + n, 3) == 33
    assert list(pool.map(lambda x: x * n, range(3))) == [0, 30, 60]
    assert pool.submit(sorted, [1, 3, 2], key=lambda x: -x).result(LIMIT_S) == [3, 2, 1]
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    monkeypatch.setattr(codec, "_cloud_picklers", {})
    with pytest.raises(pickle.PicklingError, match="pip install cloudpickle"):
        pool.submit(lambda: 3).result(LIMIT_S)
    assert done(pool, tasks.same, 4) == 4


SCRIPT = """
import sys
import numpy as np
from gpudispatch import Executor

offset = 100

class Own:
    def __init__(self, n): self.n = n
    def add(self, x): return self.n + x

def fn(x):
    return x + offset

def give(x):
    return Own(x)

def main():
    with Executor(2) as pool:
        assert pool.submit(fn, 1).result(60) == 101
        assert list(pool.map(fn, range(5))) == [100, 101, 102, 103, 104]
        assert type(pool.submit(give, 2).result(60)) is Own
        assert pool.submit(Own(5).add, 3).result(60) == 8
        assert pool.submit(Own.add, Own(1), 3).result(60) == 4
        assert (pool.submit(fn, np.arange(9000)).result(60) == np.arange(9000) + 100).all()
    print("fine", flush=True)
"""


def run(*argv: str, cwd: pathlib.Path, text: str | None = None) -> tuple[int, str]:
    ran = subprocess.run(
        [sys.executable, *argv],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": PACKAGE},
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return ran.returncode, ran.stdout


def test_callables_of_main(tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + '\nif __name__ == "__main__":\n    main()\n')
    assert run("script.py", cwd=tmp_path) == (0, "fine\n")
    assert run("-m", "script", cwd=tmp_path) == (0, "fine\n")


def test_a_missing_guard(tmp_path: pathlib.Path) -> None:
    """An error that says so, in bounded time, and no processes that make processes."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + "\nmain()\n")
    code, out = run("script.py", cwd=tmp_path)
    assert code != 0 and "NoWorker" in out
    assert 'if __name__ == "__main__":' in out
    assert "fine" not in out


def test_notebooks(tmp_path: pathlib.Path) -> None:
    """No file: -c and stdin are like a notebook. With cloudpickle by value, else an error."""
    pytest.importorskip("cloudpickle")
    assert run("-c", SCRIPT + "\nmain()\n", cwd=tmp_path) == (0, "fine\n")
    assert run("-", cwd=tmp_path, text=SCRIPT + "\nmain()\n") == (0, "fine\n")
    without = "import sys; sys.modules['cloudpickle'] = None\n" + SCRIPT + "\nmain()\n"
    code, out = run("-c", without, cwd=tmp_path)
    assert code != 0 and "PicklingError" in out and "pip install cloudpickle" in out


def test_a_cell_that_is_run_again(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("cloudpickle")
    cells = textwrap.dedent("""
        from gpudispatch import Executor
        pool = Executor(1)
        factor = 2
        exec("def cell(x): return x * factor")
        assert pool.submit(cell, 3).result(60) == 6
        factor = 5
        assert pool.submit(cell, 3).result(60) == 15
        exec("def cell(x): return x - factor")
        assert pool.submit(cell, 3).result(60) == -2
        pool.shutdown()
        print("fine")
    """)
    assert run("-c", cells, cwd=tmp_path) == (0, "fine\n")


# --- a GPU ----------------------------------------------------------------------------------------


@pytest.fixture
def cuda_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """A stand-in for torch, and the calls of libcuda that this process has made."""
    build = os.environ.get("GPUD_TEST_BUILD", "")
    fake = pathlib.Path(build) / "tests/programs/libcuda.so.1"
    if not build or not fake.is_file():
        pytest.skip("the fake libcuda is not built: GPUD_TEST_BUILD names no build with tests")
    monkeypatch.setenv("FAKE_LIBCUDA", str(fake))
    monkeypatch.syspath_prepend(HERE / "standins")
    if "torch" in sys.modules:
        pytest.skip("torch is imported")
    count = ctypes.c_uint.in_dll(ctypes.CDLL(str(fake)), "fake_cuda_calls")
    yield lambda: count.value
    sys.modules.pop("torch", None)
    codec._forget_kinds()


def test_the_host_never_calls_cuda(cuda_calls: Callable[[], int]) -> None:
    with Executor(1) as pool:
        for size in (10, 50_000):
            made = done(pool, tasks.logits, size, "cuda")["logits"]
            assert made.device.type == "cpu" and made.array.sum() == sum(range(size))
            assert made.array.flags.writeable
        for ended in pool.outcomes(["cuda", "cpu"], fn=functools.partial(tasks.logits, 30_000)):
            assert ended.ok and ended.value["logits"].device.type == "cpu"  # type: ignore[index]
        assert cuda_calls() == 0
        # In arguments it is an error at once, which names the way.
        tensor = sys.modules["torch"].Tensor(np.arange(5.0), "cuda")
        for value in (tensor, {"deep": [tensor]}):
            with pytest.raises(TypeError, match=r"\.cpu\(\)"):
                done(pool, tasks.same, value)
        assert done(pool, tasks.same, tensor.cpu()).array.tolist() == [0, 1, 2, 3, 4]
        assert cuda_calls() == 0
        pickle.loads(pickle.dumps(tensor))  # what it does without the package's pickler
        assert cuda_calls() == 1
    with Executor(1, cuda_results="error") as pool:
        error = pool.submit(tasks.logits, 10, "cuda").exception(LIMIT_S)
        assert isinstance(error, TypeError) and ".cpu()" in str(error)
        assert done(pool, tasks.logits, 10, "cpu")["n"] == 10
    assert cuda_calls() == 1


# --- a host that has torch ------------------------------------------------------------------------

TORCH_HOST = """
import os
import torch
from gpudispatch import Executor, WorkerCrashed


def model(rows, layer):
    with torch.no_grad():
        return layer(rows)


def die(rows):
    os.abort()


if __name__ == "__main__":
    square = torch.ones(512, 512)
    square @ square  # the threads of torch run
    layer = torch.nn.Linear(64, 8)
    small, large = torch.rand(4, 64), torch.rand(20_000, 64)
    with Executor(2) as pool:
        for rows in [small] * 20 + [large]:
            made = pool.submit(model, rows, layer).result(60)
            assert type(made) is torch.Tensor and torch.allclose(made, layer(rows), atol=1e-5)
            made += 1
        assert isinstance(pool.submit(die, large).exception(60), WorkerCrashed)
        ended = list(pool.outcomes([small, large, None], fn=torch.sum, ordered=True))
        assert [r.kind for r in ended] == ["success", "success", "error"]
        assert torch.isclose(ended[1].value, large.sum(), rtol=1e-3)
    assert not torch.cuda.is_initialized()
    print("fine")
"""


def test_torch_in_the_host(tmp_path: pathlib.Path) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the Python package torch")
    (tmp_path / "program.py").write_text(TORCH_HOST)
    assert run("-W", "error", "program.py", cwd=tmp_path) == (0, "fine\n")


# --- setup ----------------------------------------------------------------------------------------


def test_arrays_of_setup_are_one_read_only_mapping() -> None:
    weights = np.arange(MIB, dtype=float)
    setup = {"weights": weights, "factor": 3}
    pool: Any
    with Executor(2, worker=tasks.Model, setup=setup) as pool:
        assert pool.submit(4).result(LIMIT_S) == 12
        writeable, total, _ = pool.submit("look").result(LIMIT_S)
        assert not writeable and total == weights.sum()
        assert isinstance(pool.submit("write").exception(LIMIT_S), ValueError)
        items = [np.full(5000, n) for n in range(10)]
        back = list(pool.map(items))
        assert all((one == two * 3).all() for one, two in zip(back, items, strict=True))
