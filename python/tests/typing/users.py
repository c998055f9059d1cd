# SPDX-License-Identifier: MIT
"""Programs of users, as type checkers see them; nothing runs this file (test_typing.py).

A line that has to be refused carries the comment that mypy and pyright both understand: without an
error there they report the comment.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type

import gpudispatch
from gpudispatch import Executor, Future, Pool, PoolClass, Queue
from gpudispatch.servers import ServerWorker
from gpudispatch.watching import Progress


def word(text: str, times: int = 1, *, upper: bool = False) -> bytes:
    return (text.upper() if upper else text).encode() * times


def submit(executor: Executor) -> None:
    future = executor.submit(word, "a", 2, upper=True)
    assert_type(future, Future[bytes])
    assert_type(future.result(timeout=1), bytes)
    assert_type(future.device, str | None)
    assert_type(future.stop(kill=False), bool)
    executor.submit(word, 1)  # type: ignore
    executor.submit(word, "a", lower=True)  # type: ignore
    executor.submit(word)  # type: ignore


def views(executor: Executor) -> None:
    view = executor.options(task_timeout=5, priority=1, label="x", retry=["crash"], block=True)
    assert_type(view.submit(word, "a"), Future[bytes])
    executor.options(task_limit=5)  # type: ignore


def standard(executor: concurrent.futures.Executor) -> None:
    future = executor.submit(word, "a")
    assert_type(future.result(), bytes)


def as_standard(executor: Executor) -> None:
    standard(executor)
    done, _ = concurrent.futures.wait([executor.submit(word, "a")])
    for future in done:
        assert_type(future.result(), bytes)
    for future in concurrent.futures.as_completed({executor.submit(word, "a")}):
        assert_type(future.result(), bytes)


async def in_a_loop(executor: Executor) -> None:
    assert_type(await asyncio.wrap_future(executor.submit(word, "a")), bytes)
    loop = asyncio.get_running_loop()
    assert_type(await loop.run_in_executor(executor, word, "a"), bytes)


def length(text: str) -> int:
    return len(text)


def mapped(executor: Executor) -> None:
    assert_type(executor.map(length, ["a"], chunksize=4), Iterator[int])
    executor.map(length, [1])  # type: ignore


def night(executor: Executor) -> None:
    for r in executor.outcomes(["a", "b"], fn=length, journal="night.gdj"):
        assert_type(r.item, str)
        assert_type(r.ok, bool)
        assert_type(r.index, int)
        if r.ok:
            assert_type(r.value, int | None)
        else:
            assert_type(r.text, str)


async def coroutines(executor: Executor) -> None:
    assert_type(await executor.arun(word, "a", 2, upper=True), bytes)
    assert_type(await executor.options(priority=1).arun(length, "a"), int)
    await executor.arun(length, 1)  # type: ignore
    await executor.arun(word, "a", lower=True)  # type: ignore


async def lines() -> AsyncIterator[str]:
    yield "a"


async def night_in_a_loop(executor: Executor) -> None:
    async for r in executor.aoutcomes(["a", "b"], fn=length, journal="night.gdj", ordered=True):
        assert_type(r.item, str)
        assert_type(r.value, int | None)
    async for r in executor.options(on_cancel="ask").aoutcomes(lines(), fn=length):
        assert_type(r.item, str)
        assert_type(r.value, int | None)
    executor.aoutcomes([1], fn=length)  # type: ignore
    executor.aoutcomes(["a"], fn=length, progress=True)  # type: ignore
    for r in executor.aoutcomes(["a"], fn=length):  # type: ignore
        pass


def ends(executor: Executor) -> None:
    with executor as same:
        assert_type(same, Executor)
    executor.shutdown(wait=True, cancel_futures=True)
    try:
        executor.submit(length, "a").result()
    except gpudispatch.WorkerCrashed as error:
        assert_type(error.signal, int | None)
        assert_type(error.log_tail, str)
    except gpudispatch.TaskTimeout as error:
        assert_type(error.limit, float | None)


def making() -> None:
    Executor(8)
    Executor(devices="all", task_timeout=2.5, env={"A": "b", "C": None}, retry=("crash", "oom"))
    Executor(devices=["cpu:2", 0])
    Executor("8")  # type: ignore
    Executor(worker=ServerWorker(["llama-server", "--port", "{port}"], concurrency=4))
    Executor(workers=8)  # type: ignore


class Eval:
    def setup(self, device: str, seed: int, path: str) -> None: ...

    def process(self, item: str) -> int:
        return len(item)


def pools() -> None:
    with Pool("fake:8", mode="strict", cpus=4) as pool:
        assert_type(pool, Pool)
        model = pool.add("qwen", worker=Eval, setup={"path": "qwen"}, devices=2, memory="60GiB")
        assert_type(model, PoolClass)
        future = model.submit("a prompt")
        assert_type(future, Future[Any])
        assert_type(model.submit(word, "a"), Future[bytes])
        assert_type(pool.explain(future), list[gpudispatch.Reason])
        for r in pool.outcomes({"qwen": ["a", "b"]}, journal="night.gdj", progress=True):
            assert_type(r.name, str)
        assert_type(model.stats()["queued"], int)
        model.remove(drain=False)
        pool.add("llama", worker=Eval, gpus=2)  # type: ignore
        with pool.lease(memory="20GiB", timeout=5) as granted:
            assert_type(granted.env, dict[str, str])
            assert_type(granted.revoked.reason, str | None)
        assert_type(pool.run(["true"], devices=2).result().returncode, int)
        standard(model)
    needs: gpudispatch.Needs = {"devices": 2, "memory": "40GiB"}
    gpudispatch.load_pool("pool.toml", devices="fake:8").add("a", worker=Eval, variants=[needs])


async def leases(pool: Pool) -> None:
    async with pool.lease(devices=2) as granted:
        assert_type(granted.devices, tuple[str, ...])


def watching(pool: Pool) -> None:
    with pool.progress() as shown:
        assert_type(shown, Progress)
    assert_type(Queue("state").progress(12), Progress)
    assert_type(Queue().progress("night"), Progress)
    assert_type(str(Queue().progress()), str)
    Queue().progress(1.5)  # type: ignore
    Queue(state="x")  # type: ignore
