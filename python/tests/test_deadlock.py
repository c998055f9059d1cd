# SPDX-License-Identifier: MIT
"""Each way to fail at each step of a task: the promised outcome, and the pool goes on."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator
from pickle import UnpicklingError
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import executor_tasks as tasks  # noqa: E402

from gpudispatch import Executor, WorkerCrashed  # noqa: E402

LIMIT_S = 60.0

STEPS: dict[str, Any] = {
    "load item": lambda way: (tasks.same, tasks.FailsAsItLoads(way)),
    "load function": lambda way: (tasks.CallableThatFailsToLoad(way),),
    "run": lambda way: (tasks.fail, way),
    "pack": lambda way: (tasks.returns_what_fails_to_pack, way),
    "load result": lambda way: (tasks.returns_what_fails_to_load, way),
}
# Of the result, which the host loads, "exit" and "kill" end the host: no pool survives that.
CELLS = [
    (step, way)
    for step in STEPS
    for way in tasks.WAYS
    if step != "load result" or way in ("raise", "sys.exit")
]
ERRORS: dict[str, type[BaseException]] = {
    "raise": UnpicklingError,
    "sys.exit": SystemExit,
    "exit": WorkerCrashed,
    "kill": WorkerCrashed,
}
KINDS = {"raise": "error", "sys.exit": "error", "exit": "crash", "kill": "crash"}


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(2) as pool:
        yield pool


def check(error: BaseException | None, way: str) -> None:
    assert type(error) is ERRORS[way], repr(error)
    if isinstance(error, WorkerCrashed):
        assert (error.exitcode, error.signal) == ((3, None) if way == "exit" else (None, 9))
        assert str(error).splitlines()[-1].startswith("last words")
        assert error.device in ("cpu:0", "cpu:1")
    elif isinstance(error, SystemExit):
        assert error.code == 3


@pytest.mark.parametrize(("step", "way"), CELLS)
def test_future(pool: Executor, step: str, way: str) -> None:
    before = [pool.submit(tasks.same, i) for i in range(3)]
    future = pool.submit(*STEPS[step](way))
    after = [pool.submit(tasks.same, i) for i in range(3, 6)]
    check(future.exception(LIMIT_S), way)
    assert [f.result(LIMIT_S) for f in before + after] == list(range(6))
    assert future.attempt == 1


@pytest.mark.parametrize(("step", "way"), [c for c in CELLS if c[0] != "load function"])
def test_outcome(pool: Executor, step: str, way: str) -> None:
    fn = STEPS[step](way)[0]
    items = [STEPS[step](way)[1] if i == 2 else i for i in range(5)]
    ends = {r.index: r for r in pool.outcomes(items, fn=Judge(fn))}
    assert sorted(ends) == list(range(5))
    for index, r in ends.items():
        assert r.ok is (index != 2)
        assert r.kind == ("success" if r.ok else KINDS[way])
    check(ends[2].error, way)


class Judge:
    """Numbers are returned, anything else goes to the function."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __call__(self, item: Any) -> Any:
        return item if isinstance(item, int) else self.fn(item)


@pytest.mark.parametrize("chunksize", [1, 3])
@pytest.mark.parametrize(("step", "way"), [c for c in CELLS if c[0] != "load function"])
def test_map(pool: Executor, step: str, way: str, chunksize: int) -> None:
    fn = STEPS[step](way)[0]
    items = [STEPS[step](way)[1] if i == 4 else i for i in range(8)]
    results = pool.map(Judge(fn), items, chunksize=chunksize)
    got = []
    with pytest.raises(ERRORS[way]) as caught:
        for value in results:
            got.append(value)
    assert got == [0, 1, 2, 3]
    check(caught.value, way)


def test_all_at_once(pool: Executor) -> None:
    futures = [(pool.submit(*STEPS[step](way)), way) for step, way in CELLS]
    values = [pool.submit(tasks.same, i) for i in range(20)]
    for future, way in futures:
        check(future.exception(LIMIT_S), way)
    assert [f.result(LIMIT_S) for f in values] == list(range(20))


def test_after_shutdown() -> None:
    """A worker that dies once the pool was shut down does not stop its end."""
    pool = Executor(1)
    futures = [pool.submit(tasks.fail, way) for way in tasks.WAYS]
    last = pool.submit(tasks.same, 7)
    pool.shutdown()
    for future, way in zip(futures, tasks.WAYS, strict=True):
        check(future.exception(0), way)
    assert last.result(0) == 7
