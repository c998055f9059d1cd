# SPDX-License-Identifier: MIT
"""Pool: classes of work that share devices, from add() to the end."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import itertools
import logging
import os
import pathlib
import re
import signal
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gpudispatch._core")

import data_tasks
import executor_tasks as tasks
from conftest import Remains, descendants, until
from executor_tasks import Gate
from programs import script

from gpudispatch import (
    ClassChange,
    DeviceError,
    Executor,
    ForkedError,
    Future,
    GpuDispatchError,
    NoWorker,
    Pool,
    PoolClass,
    ResultTooLarge,
    SetupError,
    WorkerCrashed,
    settings,
)
from gpudispatch.session import Session
from gpudispatch.settings import NEVER

LIMIT_S = 60.0

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def functions(pool: Pool, name: str = "f", **more: Any) -> PoolClass:
    """A class of functions on one CPU slot, which leaves at once for another class."""
    return pool.add(name, **{"devices": 0, "cpus": 1, "min_residence": 0.0} | more)


# ---- the arguments of Pool ----


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"devices": 1.5}, TypeError, "devices"),
        ({"devices": "fake:x"}, ValueError, "devices"),
        ({"devices": []}, ValueError, "devices"),
        ({"devices": "cpu:2"}, ValueError, "cpus="),
        ({"devices": "cpu"}, ValueError, "cpus="),
        ({"devices": "fake:2/2"}, ValueError, "several workers"),
        ({"mode": "fast"}, ValueError, "mode"),
        ({"mode": 1}, TypeError, "mode"),
        ({"passing": "x"}, ValueError, "passing"),
        ({"cpus": 0}, ValueError, "cpus"),
        ({"cpus": "2"}, TypeError, "cpus"),
        ({"host_memory": "2 x"}, ValueError, "host_memory"),
        ({"host_memory": 64}, ValueError, 'host_memory is 64 bytes, .*write "18GiB"'),
        ({"headroom": 2}, ValueError, "headroom"),
        ({"headroom": "a"}, TypeError, "headroom"),
        ({"max_workers": 0}, ValueError, "max_workers"),
        ({"max_workers": 5000}, ValueError, "max_workers"),
        ({"foreign_load": -1}, ValueError, "foreign_load"),
        ({"foreign_memory": 0}, ValueError, "foreign_memory"),
        ({"foreign_memory": b"1"}, TypeError, "foreign_memory"),
        ({"setup_concurrency": 0}, ValueError, "setup_concurrency"),
        ({"queue_size": 0}, ValueError, "queue_size"),
        ({"queue_size": 1.0}, TypeError, "queue_size"),
        ({"payload_budget": True}, TypeError, "payload_budget"),
        ({"decision_log": 5}, TypeError, "decision_log"),
        ({"on_class": 5}, TypeError, "on_class"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Pool(**{"devices": "fake:1"} | arguments)


def test_good_arguments(tmp_path: pathlib.Path) -> None:
    with Pool(
        ["fake:2"], mode="strict", passing="apart", cpus=3, host_memory="8GiB", headroom=0.1,
        max_workers=4, foreign_load=0.5, foreign_memory=1, setup_concurrency=1, queue_size=8,
        payload_budget=64 << 20, decision_log=tmp_path / "log",
    ) as pool:  # fmt: skip
        assert pool.add("a").submit(tasks.where).result(LIMIT_S) in (("fake:0",), ("fake:1",))
        assert repr(pool) == "<Pool on fake:2>"
    assert (tmp_path / "log").stat().st_size > 0


def test_default_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUDISPATCH_DEVICES", "fake:3")
    with Pool() as pool:
        assert [row["name"] for row in pool.devices()] == ["fake:0", "fake:1", "fake:2"]
    with Pool("fake:1") as pool:
        assert len(pool.devices()) == 1
    monkeypatch.setenv("GPUDISPATCH_DEVICES", "cpu:3")
    with pytest.raises(ValueError, match="cpus="):
        Pool()
    with Pool(None, cpus=1) as pool:
        assert pool.devices() == []
        assert repr(pool) == "<Pool on no devices>"


def test_all_where_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPUDISPATCH_DEVICES", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(DeviceError, match=r"Pool\(\"fake:8\"\)") as caught:
        Pool()
    assert caught.value.field == "devices"
    with pytest.raises(DeviceError, match=r'Pool\("fake:12"\).* Pool\(None, cpus=12\).*\[0, 1\]'):
        Pool(12)
    for devices in ("12", [12]):
        with pytest.raises(DeviceError) as caught:
            Pool(devices)
        assert "fake:12" not in str(caught.value)


# ---- the arguments of add() ----


class Plain:
    def process(self, item: Any) -> Any:
        return item


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"name": ""}, ValueError, "name"),
        ({"name": 5}, TypeError, "name"),
        ({"name": "x" * 64}, ValueError, "name"),
        ({"name": "ä" * 32}, ValueError, "name"),
        ({"name": "a\0b"}, ValueError, "name"),
        ({"name": "(run)"}, ValueError, "name"),
        ({"worker": 5}, TypeError, "worker"),
        ({"worker": Plain()}, TypeError, "worker must be a class"),
        ({"setup": {"a": 1}}, TypeError, "setup"),
        ({"worker": Plain, "setup": 5}, TypeError, "setup"),
        ({"initializer": 5}, TypeError, "initializer"),
        ({"initargs": 5}, TypeError, "initargs"),
        ({"devices": -1}, ValueError, "devices"),
        ({"devices": 17}, ValueError, "devices"),
        ({"devices": "2"}, TypeError, "devices"),
        ({"devices": 0}, ValueError, "devices is 0"),
        ({"memory": "60 apples"}, ValueError, "memory"),
        ({"memory": 0}, ValueError, "memory"),
        ({"memory": 18}, ValueError, 'memory is 18 bytes, .*write "18GiB"'),
        ({"host_memory": (1 << 20) - 1}, ValueError, "host_memory is 1048575 bytes"),
        ({"variants": [{"memory": "64kB"}]}, ValueError, r"variants\[0\] memory is 64000 bytes"),
        ({"memory": 1.5}, TypeError, "memory"),
        ({"share": 0}, ValueError, "share"),
        ({"share": 1.1}, ValueError, "share"),
        ({"share": "1"}, TypeError, "share"),
        ({"devices": 2, "share": 0.5}, ValueError, "share"),
        ({"cpus": -1}, ValueError, "cpus"),
        ({"host_memory": "x"}, ValueError, "host_memory"),
        ({"compute": "new"}, ValueError, "compute"),
        ({"compute": True}, ValueError, "compute"),
        ({"on": 5}, TypeError, "on"),
        ({"not_on": [5]}, TypeError, "not_on"),
        ({"variants": "x"}, TypeError, "variants"),
        ({"variants": [5]}, TypeError, "variants"),
        ({"variants": [{"devises": 1}]}, TypeError, "devises"),
        ({"variants": [{"memory": "x"}]}, ValueError, r"variants\[0\] memory"),
        ({"variants": [{"devices": n} for n in (1, 2, 3, 4)]}, ValueError, "variants"),
        ({"residence": "forever"}, ValueError, "residence"),
        ({"min_workers": -1}, ValueError, "min_workers"),
        ({"min_workers": 2, "max_workers": 1}, ValueError, "min_workers"),
        ({"max_workers": 0}, ValueError, "max_workers"),
        ({"keep_alive": -1}, ValueError, "keep_alive"),
        ({"keep_alive": "x"}, TypeError, "keep_alive"),
        ({"min_residence": -1}, ValueError, "min_residence"),
        ({"max_wait": -1}, ValueError, "max_wait"),
        ({"pinned": 1}, TypeError, "pinned"),
        ({"pinned": True, "residence": "transient"}, ValueError, "pinned"),
        ({"boot_seed": 0}, ValueError, "boot_seed"),
        ({"unload_seed": 0}, ValueError, "unload_seed"),
        ({"run_seed": "x"}, TypeError, "run_seed"),
        ({"max_batch": 0, "worker": Plain}, ValueError, "max_batch"),
        ({"max_batch": 2}, TypeError, "max_batch"),
        ({"batch_wait": 1}, ValueError, "batch_wait"),
        ({"task_timeout": 0}, ValueError, "task_timeout"),
        ({"grace": -1}, ValueError, "grace"),
        ({"setup_timeout": 0}, ValueError, "setup_timeout"),
        ({"max_attempts": 0}, ValueError, "max_attempts"),
        ({"retry": "hope"}, ValueError, "retry"),
        ({"env": {"A=": "1"}}, ValueError, "env"),
        ({"env": {"A": 1}}, TypeError, "env"),
        ({"cwd": "/no/such"}, ValueError, "cwd"),
        ({"output": "nowhere"}, ValueError, "output"),
        ({"base_seed": -1}, ValueError, "base_seed"),
        ({"cuda_results": "gpu"}, ValueError, "cuda_results"),
        ({"max_tasks_per_child": 0}, ValueError, "max_tasks_per_child"),
    ],
)
def test_bad_arguments_of_add(
    pool: Pool, arguments: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        pool.add(**{"name": "a"} | arguments)
    assert pool.classes() == []


@pytest.mark.parametrize(
    ("needs", "numbers"),
    [
        ({"memory": "17GiB"}, r"17408 MiB.*up to \d+ MiB beside headroom"),
        ({"devices": 3}, "3.*2|2.*3"),
        ({"compute": 9.5}, r"9\.5|905"),
        ({"on": "fake:7"}, "fake:7"),
        ({"on": "fake:0", "not_on": "fake:0"}, "fits nowhere"),
        ({"cpus": 100_000}, "100000|100,000"),
        ({"min_workers": 3}, "3"),
    ],
)
def test_needs_that_no_device_meets(pool: Pool, needs: dict[str, Any], numbers: str) -> None:
    with pytest.raises(DeviceError, match=numbers):
        pool.add("a", **needs)
    assert pool.classes() == []


def test_names(pool: Pool) -> None:
    a = pool.add("a")
    assert (a.name, pool["a"].name, repr(a)) == ("a", "a", "<class a of <Pool on fake:2>>")
    with pytest.raises(ValueError, match=r"""^name is 'a': .* pool\["a"\]; use it, or remove"""):
        pool.add("a")
    long = pool.add("ä" * 31)
    assert long.submit(tasks.same, 1).result(LIMIT_S) == 1
    pool.run(["true"]).result(LIMIT_S)
    assert list(pool) == ["a", "ä" * 31]
    assert "a" in pool
    assert "(run)" not in pool
    for name in ("b", "(run)", 5):
        with pytest.raises(KeyError):
            pool[name]  # type: ignore[index]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda pool: pool.add("a", devises=1), r"^Pool\.add\(\) .*'devises'; did .* devices"),
        (lambda pool: pool.add("a", gpus=2), "'gpus'; did you mean devices"),
        (lambda pool: pool.add("a", timeout=2), "did you mean task_timeout"),
        (lambda pool: pool.add("a", Plain), r"add\(\) .*'name' by name only: write worker=Plain,"),
        (lambda pool: pool.lease(vram=2), r"^Pool\.lease\(\) .*did you mean memory"),
        (lambda pool: pool.lease(1, 2**30, 0.5), r"write share=\.\.\."),
        (lambda pool: pool.run(["true"], zzzzzz=2), r"^Pool\.run\(\) .* some of argv, capture"),
        (lambda _: Pool("fake:1", gpus=2), r"^Pool\(\) .*did you mean devices"),
        (lambda _: Pool("fake:1", "strict"), r"^Pool\(\) .*write mode=\.\.\."),
        (lambda _: Executor(1, num_gpus=2), r"^Executor\(\) .*did you mean devices"),
        (lambda pool: pool.add("a", variants=[{"gpus": 2}]), r"variants\[0\] .*mean devices"),
    ],
)
def test_arguments_that_are_not_there(pool: Pool, call: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        call(pool)
    assert pool.classes() == []


def test_signatures_are_those_of_the_sources() -> None:
    """Of methods that a decorator has wrapped."""
    assert str(inspect.signature(Pool)).startswith("(devices: ")
    assert [*inspect.signature(Pool.add).parameters][:3] == ["self", "name", "worker"]


@pytest.mark.parametrize("name", ["submit", "map", "options", "ready", "pause"])
def test_a_pool_has_no_methods_of_its_classes(pool: Pool, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"""'{name}': use .*, pool\["name"\]\.{name}$"""):
        getattr(pool, name)
    for missing in ("summit", "_home"):
        with pytest.raises(AttributeError, match=f"^a Pool has no '{missing}'$"):
            getattr(pool, missing)
    assert not hasattr(pool, name)


def test_a_need_in_each_way() -> None:
    with Pool("fake:4") as pool:
        pair = pool.add("pair", devices=2, memory=1 << 30)
        on = pool.add("on", on=["fake:3"], compute="9.0")
        variants = pool.add("v", memory="20 GiB", variants=[{"devices": 2, "memory": "10GiB"}])
        assert len(pair.submit(tasks.where).result(LIMIT_S)) == 2
        assert on.submit(tasks.where).result(LIMIT_S) == ("fake:3",)
        pair.unload()
        on.unload()
        assert len(variants.submit(tasks.where).result(LIMIT_S)) == 2


def test_shares_of_a_device() -> None:
    with Pool("fake:1") as pool, Gate() as gate:
        half = pool.add("half", share=0.5, memory="4GiB", boot_seed=0.001, run_seed=1000.0)
        futures = [half.submit(tasks.through, gate.address, n) for n in range(3)]
        gate.arrivals(2)
        assert not gate.has_news()
        gate.open()
        assert [f.result(LIMIT_S) for f in futures] == [0, 1, 2]


def test_min_workers_and_max_tasks(slots: Pool) -> None:
    one = functions(slots, min_workers=1, max_tasks_per_child=1, env={"A_WORD": "b"})
    assert one.ready(timeout=LIMIT_S)
    pids = {one.submit(tasks.pid).result(LIMIT_S) for _ in range(3)}
    assert len(pids) == 3
    assert one.submit(tasks.variable, "A_WORD").result(LIMIT_S) == "b"


# ---- the ways to run ----


def test_functions(slots: Pool) -> None:
    f = functions(slots, initializer=tasks.keep, initargs=("a", 5))
    assert f.submit(tasks.kept, "a").result(LIMIT_S) == 5
    assert list(f.map(tasks.same, range(100), chunksize=7)) == list(range(100))
    ends = list(f.outcomes(range(100), fn=tasks.same, ordered=True))
    assert [r.value for r in ends] == list(range(100))
    assert {r.name for r in ends} == {"f"}
    labelled = f.options(label="x", priority=3, max_attempts=1)
    assert labelled.submit(tasks.attempt).result(LIMIT_S) == (1, "x")
    error = f.submit(tasks.raises, "value").exception(LIMIT_S)
    assert isinstance(error, ValueError)
    assert isinstance(f.submit(tasks.kill_me).exception(LIMIT_S), WorkerCrashed)
    with pytest.raises(TypeError, match="fn is missing"):
        f.outcomes([1])


def test_no_argument_is_dropped_where_a_worker_class_has_no_use_for_it(pool: Pool) -> None:
    model: Any = pool.add("model", worker=tasks.Model, setup={"scale": 3})
    for call in (lambda: model.submit(5, fn=tasks.same), lambda: model.options().submit(5, fn=1)):
        with pytest.raises(TypeError, match="^worker= of class 'model' takes one item, but no fn$"):
            call()
    with pytest.raises(TypeError, match="takes one item, not 3$"):
        model.submit(tasks.same, 1, 2, a=3)
    with pytest.raises(TypeError, match="with worker= of class 'model' .* of items, not 2$"):
        model.map(tasks.same, [1])
    for loop in (model.outcomes, model.aoutcomes):
        with pytest.raises(TypeError, match="^fn does not go with worker= of class 'model'"):
            loop([1], fn=tasks.same)
    with pytest.raises(TypeError, match="fn"):
        pool.add("other", worker=tasks.Model, fn=tasks.same)  # type: ignore[call-arg]
    assert model.submit(5).result(LIMIT_S) == 15


def test_worker_classes(pool: Pool) -> None:
    model: Any = pool.add("model", worker=tasks.Model, setup={"scale": 3})
    assert model.submit(5).result(LIMIT_S) == 15
    assert model.submit("facts").result(LIMIT_S)[0] in ("0", "1", "fake:0", "fake:1")
    assert list(model.map([1, 2])) == [3, 6]
    assert sorted(r.value for r in model.outcomes(range(50))) == list(range(0, 150, 3))
    with pytest.raises(TypeError):
        model.submit(1, 2)
    with pytest.raises(TypeError):
        model.outcomes([1], fn=tasks.same)


def test_batches(pool: Pool) -> None:
    with Gate() as gate:
        batch: Any = pool.add(
            "batch",
            worker=tasks.BatchModel,
            setup={"gate": gate.address},
            max_batch=8,
            max_workers=1,
        )
        futures = [batch.submit(n) for n in range(20)]
        gate.arrival()
        gate.open()
        ends = [f.result(LIMIT_S) for f in futures]
        assert [n for n, _ in ends] == list(range(20))
        assert max(size for _, size in ends) > 1


def test_coroutines(slots: Pool) -> None:
    a, b = functions(slots, "a"), functions(slots, "b")

    async def main() -> None:
        assert await asyncio.gather(*(c.arun(tasks.same, n) for n in range(50) for c in (a, b)))
        got = [r.value async for r in a.aoutcomes(range(50), fn=tasks.same)]
        assert {*got} == {*range(50)}
        with pytest.raises(ValueError, match="value"):
            await b.arun(tasks.raises, "value")

    asyncio.run(main())


# ---- two classes ----


def test_two_that_do_not_fit_at_a_time() -> None:
    with Pool("fake:1") as pool:
        a = pool.add(
            "a", memory="10GiB", min_residence=0, initializer=tasks.keep, initargs=("n", "a")
        )
        b = pool.add(
            "b", memory="10GiB", min_residence=0, initializer=tasks.keep, initargs=("n", "b")
        )
        for _ in range(2):
            assert a.submit(tasks.kept, "n").result(LIMIT_S) == "a"
            assert (a.stats()["workers"], b.stats()["workers"]) == (1, 0)
            assert b.submit(tasks.kept, "n").result(LIMIT_S) == "b"
            assert (a.stats()["workers"], b.stats()["workers"]) == (0, 1)
        futures = [c.submit(tasks.kept, "n") for _ in range(20) for c in (a, b)]
        assert [f.result(LIMIT_S) for f in futures] == ["a", "b"] * 20


def test_no_task_waits_behind_a_long_one_beside_a_free_device() -> None:
    with Pool("fake:2") as pool, Gate() as gate:
        f = pool.add("f", boot_seed=0.01)
        futures = [f.submit(tasks.through, gate.address, "long")]
        assert gate.arrivals(1) == ["long"]
        futures.append(f.submit(tasks.through, gate.address, "next"))
        assert gate.arrivals(1) == ["next"]  # on the other device
        gate.open()
        wait(futures, LIMIT_S)


def test_no_task_waits_behind_a_long_one_beside_an_idle_worker() -> None:
    with Pool("fake:2") as pool, Gate() as gate:
        f = pool.add("f", boot_seed=0.01)
        both = [f.submit(tasks.through, gate.address, str(n)) for n in range(2)]
        assert sorted(gate.arrivals(2)) == ["0", "1"]  # a worker on each device
        gate.let_one_go()
        gate.let_one_go()
        wait(both, LIMIT_S)
        list(f.map(tasks.same, range(1000)))  # short: so some are sent ahead
        long = f.submit(tasks.through, gate.address, "long")
        short = [f.submit(tasks.same, n) for n in range(100)]
        assert gate.arrivals(1) == ["long"]
        assert [future.result(LIMIT_S) for future in short] == list(range(100))
        assert not long.done()
        gate.open()
        wait([long], LIMIT_S)


def test_load_unload_and_ready(pool: Pool) -> None:
    a = pool.add("a", memory="10GiB")
    assert a.ready(timeout=0) is False
    assert a.ready(timeout=0.01) is False
    a.load()
    assert a.ready(timeout=LIMIT_S)
    assert a.stats()["workers"] == 1
    a.unload()
    assert until(lambda: a.stats()["workers"] == 0)
    assert a.submit(tasks.same, 1).result(LIMIT_S) == 1
    with pytest.raises(TypeError, match="workers"):
        a.ready("1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="timeout"):
        a.ready(timeout="1")  # type: ignore[arg-type]


def test_ready_ends_with_its_class(pool: Pool) -> None:
    a = pool.add("a")
    seen: list[BaseException] = []

    def waits() -> None:
        try:
            a.ready()
        except RuntimeError as error:
            seen.append(error)

    thread = threading.Thread(target=waits)
    thread.start()
    assert until(lambda: pool._engine.classes.watched)
    a.remove()
    thread.join(LIMIT_S)
    assert "'a' is removed" in str(seen[0])


def test_the_end_of_a_pool_resumes_its_classes() -> None:
    with Pool(None, cpus=1) as pool:
        a = functions(pool, "a")
        a.pause()
        futures = [a.submit(tasks.same, n) for n in range(3)]
        threading.Thread(target=pool.shutdown).start()
        assert [f.result(LIMIT_S) for f in futures] == [0, 1, 2]


def test_pause_and_resume(slots: Pool) -> None:
    a, b = functions(slots, "a"), functions(slots, "b")
    assert a.submit(tasks.same, 1).result(LIMIT_S) == 1
    a.pause()
    waiting = a.submit(tasks.same, 2)
    assert b.submit(tasks.same, 3).result(LIMIT_S) == 3
    assert a.stats()["paused"]
    assert {r["kind"] for r in slots.explain(waiting)} == {"PAUSED"}
    assert not waiting.done()
    a.resume()
    assert waiting.result(LIMIT_S) == 2


def test_pinned() -> None:
    with Pool("fake:1") as pool:
        a = pool.add("a", memory="10GiB", min_residence=0, pinned=True)
        b = pool.add("b", memory="10GiB", min_residence=0)
        a.submit(tasks.same).result(LIMIT_S)
        waiting = b.submit(tasks.same, 1)
        assert "PINNED" in {r["kind"] for r in pool.explain(waiting)}
        assert a.stats()["pinned"]
        a.unpin()
        assert waiting.result(LIMIT_S) == 1
        a.pin()
        assert a.stats()["pinned"]


def test_devices_are_drained_and_return(pool: Pool) -> None:
    a = pool.add("a", on="fake:0")
    a.submit(tasks.same).result(LIMIT_S)
    pool.device_drain("fake:0")
    assert until(lambda: a.stats()["workers"] == 0)
    waiting = a.submit(tasks.same, 1)
    assert {(r["kind"], r["device"]) for r in pool.explain(waiting)} == {
        ("DRAINED", "fake:0"), ("NEVER", "fake:1"),
    }  # fmt: skip
    assert "drained" in str(pool)
    pool.device_return("fake:0")
    assert waiting.result(LIMIT_S) == 1
    pool.device_pause("fake:0")
    assert "paused" in str(pool)
    pool.device_return("fake:0")
    for change in (pool.device_drain, pool.device_pause, pool.device_return):
        with pytest.raises(GpuDispatchError, match="'gpu:0', .*: fake:0, fake:1$") as caught:
            change("gpu:0")
        assert (caught.value.name, caught.value.field) == ("ENOTFOUND", "name")
    with Pool(None, cpus=1) as slots, pytest.raises(GpuDispatchError, match=": none$"):
        slots.device_drain("gpu:0")


# ---- remove() ----


def test_remove_lets_tasks_end() -> None:
    """Also those that wait in the package."""
    with Pool(None, cpus=1, queue_size=4) as pool, Gate() as gate:
        a = functions(pool, "a")
        held = a.submit(tasks.through, gate.address)
        gate.arrival()
        futures = [a.submit(tasks.same, n) for n in range(50)]
        remover = threading.Thread(target=a.remove)
        remover.start()
        assert until(lambda: a._home.closing)
        with pytest.raises(RuntimeError, match="'a' is removed"):
            a.submit(tasks.same)
        with pytest.raises(ValueError, match="a class of this name"):
            functions(pool, "a")
        assert not any(f.done() for f in futures)
        gate.open()
        remover.join(LIMIT_S)
        assert [f.result(0) for f in futures] == list(range(50))
        assert held.result(0) == "-"
        assert a.stats()["name"] == "a"
        assert pool.classes() == []
        with pytest.raises(KeyError):
            pool["a"]
        again = functions(pool, "a")
        assert again.submit(tasks.same, 1).result(LIMIT_S) == 1


def test_remove_without_drain() -> None:
    with Pool(None, cpus=2, queue_size=4) as pool, Gate() as gate:
        a, b = functions(pool, "a"), functions(pool, "b")
        held = a.submit(tasks.through_unless_cancelled, gate.address)
        gate.arrival()
        futures = [a.submit(tasks.same, n) for n in range(50)]
        other = [b.submit(tasks.same, n) for n in range(50)]
        a.remove(drain=False)
        assert all(f.cancelled() for f in [held, *futures])
        assert [f.result(LIMIT_S) for f in other] == list(range(50))
        assert functions(pool, "a").submit(tasks.same, 1).result(LIMIT_S) == 1


def test_shutdown_of_a_class() -> None:
    with Pool(None, cpus=1, queue_size=4) as pool, Gate() as gate:
        with functions(pool, "a") as a:
            assert a.submit(tasks.same, 1).result(LIMIT_S) == 1
        b = functions(pool, "b")
        held = b.submit(tasks.through, gate.address)
        gate.arrival()
        futures = [b.submit(tasks.same, n) for n in range(20)]
        b.shutdown(wait=False, cancel_futures=True)
        assert all(f.cancelled() for f in futures[4:])
        gate.open()
        assert held.result(LIMIT_S) == "-"
        b.shutdown()
        assert [row["name"] for row in pool.classes()] == []


def test_a_removed_class_does_nothing_to_its_successor(slots: Pool) -> None:
    """The name is free, and another class has it."""
    old = functions(slots, "a")
    view = old.options(label="x")
    old.remove()
    new = functions(slots, "a")
    assert new.submit(tasks.same, 1).result(LIMIT_S) == 1
    for change in (old.pause, old.unload, old.load, old.resume, old.pin):
        with pytest.raises(RuntimeError, match="'a' is removed"):
            change()
    old.remove()
    old.remove(drain=False)
    calls: list[Any] = [view.submit, old.submit, old.map]
    calls.append(lambda fn, items: next(old.outcomes(items, fn=fn)))
    for call in calls:
        with pytest.raises(RuntimeError, match="'a' is removed"):
            call(tasks.same, [1])
    assert old.stats()["done"] == 0
    assert new.submit(tasks.same, 2).result(LIMIT_S) == 2
    assert not new.stats()["paused"]


def test_a_removed_name_is_free(slots: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the core has removed the class, and the pool's thread has not heard of it yet."""
    monkeypatch.setattr("gpudispatch.pool_class.SIGNAL_S", 0.0001)
    for _ in range(40):
        a = functions(slots, "a")
        assert a.submit(int, "7").result(LIMIT_S) == 7
        a.remove()


def test_removed_under_a_loop(slots: Pool) -> None:
    """Its loop gives all that was accepted; nothing goes to the class that has the name now."""
    for kind in ("map", "outcomes"):
        a = functions(slots, "a", initializer=tasks.keep, initargs=("n", "old"))
        loop: Iterator[Any]
        if kind == "map":
            loop = a.map(tasks.kept, itertools.repeat("n"), buffersize=8)
        else:
            loop = a.outcomes(itertools.repeat("n"), fn=tasks.kept)
        got = [next(loop)]
        a.remove()
        b = functions(slots, "a", initializer=tasks.keep, initargs=("n", "new"))
        with pytest.raises(RuntimeError, match="'a' is removed"):
            got.extend(loop)
        assert {r if kind == "map" else r.value for r in got} == {"old"}
        b.remove()


def test_removed_under_coroutines() -> None:
    async def main(pool: Pool, gate: Gate) -> None:
        a = functions(pool, "a")
        held = asyncio.create_task(a.arun(tasks.through, gate.address))
        rest = [asyncio.create_task(a.arun(tasks.same, n)) for n in range(20)]
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, gate.arrival)
        a.remove(wait=False)
        gate.open()
        ends = await asyncio.gather(held, *rest, return_exceptions=True)
        assert ends[0] == "-"
        assert all(e == n or isinstance(e, asyncio.CancelledError) for n, e in enumerate(ends[1:]))
        await loop.run_in_executor(None, a.remove)
        with pytest.raises(RuntimeError, match="'a' is removed"):
            await a.arun(tasks.same, 1)

    with Pool(None, cpus=1, queue_size=4) as pool, Gate() as gate:
        asyncio.run(main(pool, gate))


def test_three_hundred_adds_and_removes() -> None:
    """Numbers of classes are used again."""
    with Pool(None, cpus=1) as pool:
        kept = functions(pool, "kept")
        assert kept.submit(tasks.same, 1).result(LIMIT_S) == 1
        for n in range(300):
            a = functions(pool, f"a{n % 3}")
            if n % 100 == 99:
                assert a.submit(tasks.same, n).result(LIMIT_S) == n
            a.remove(drain=n % 2 == 0)
        assert [row["name"] for row in pool.classes()] == ["kept"]
        assert kept.submit(tasks.same, 2).result(LIMIT_S) == 2
        assert len(pool._engine.classes.by_number) == 1


def test_more_classes_than_cpu_slots() -> None:
    """A loaded worker takes no slot, so the other class needs no place of it."""
    with Pool(None, cpus=1) as pool:
        a, b = (functions(pool, name) for name in "ab")
        futures = [made.submit(tasks.same, n) for n in range(10) for made in (a, b)]
        assert [f.result(LIMIT_S) for f in futures] == [n for n in range(10) for _ in "ab"]


def test_as_many_classes_as_there_are_numbers() -> None:
    with Pool(None, cpus=1) as pool:
        many = [functions(pool, str(n)) for n in range(255)]
        with pytest.raises(GpuDispatchError) as caught:
            functions(pool, "more")
        assert caught.value.name == "EFULL"
        many[7].remove()
        assert functions(pool, "more").submit(tasks.same, 1).result(LIMIT_S) == 1
        assert many[254].submit(tasks.same, 2).result(LIMIT_S) == 2


# ---- a class whose setup fails ----


def test_a_setup_that_fails(
    slots: Pool, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "model"
    good = functions(slots, "good")
    bad = functions(slots, "bad", initializer=tasks.size_of, initargs=(str(path),))
    futures = [bad.submit(tasks.same, n) for n in range(20)]
    for future in futures:
        error = future.exception(LIMIT_S)
        assert isinstance(error, NoWorker)
        assert "FileNotFoundError" in error.traceback_text
        assert isinstance(error.__cause__, SetupError)
    assert bad.stats()["failed"]
    assert bad.stats()["failures"] > 0
    told = 'it starts no worker any more, until pool["bad"].resume() or pool["bad"].load()'
    assert until(lambda: told in caplog.text)
    assert "failed" in str(slots)
    with pytest.raises(NoWorker):
        bad.submit(tasks.same)
    with pytest.raises(NoWorker, match="class bad has failed"):
        bad.ready()
    assert good.submit(tasks.same, 1).result(LIMIT_S) == 1
    assert not good.stats()["failed"]
    bad.resume()
    assert isinstance(bad.submit(tasks.same).exception(LIMIT_S), NoWorker)
    path.write_text("weights")
    for again in (bad.resume, bad.load):
        again()
        assert bad.submit(tasks.same, 5).result(LIMIT_S) == 5
        assert bad.ready(timeout=LIMIT_S)
        path.unlink()
        bad.unload()
        assert until(lambda: not bad.stats()["workers"])
        assert isinstance(bad.submit(tasks.same).exception(LIMIT_S), NoWorker)
        path.write_text("weights")
    with pytest.raises(NoWorker):
        list(bad.map(tasks.same, [1]))


class Interrupted:
    """The core of a pool, with Ctrl-C as it has added a class."""

    def __init__(self, core: Any) -> None:
        self.core = core

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def class_add(self, *arguments: Any) -> None:
        self.core.class_add(*arguments)
        raise KeyboardInterrupt


@pytest.mark.parametrize("how", ["add", "run", "lease"])
def test_an_interrupted_add_leaves_a_class_that_works(pool: Pool, how: str) -> None:
    calls = {
        "add": lambda: functions(pool, "a"),
        "run": lambda: pool.run(["true"]),
        "lease": lambda: pool.lease(),
    }
    core = pool._engine.core
    pool._engine.core = Interrupted(core)  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        calls[how]()
    pool._engine.core = core
    if how == "add":
        assert "a" in pool
        assert pool["a"].submit(tasks.same, 1).result(LIMIT_S) == 1
        with pytest.raises(ValueError, match="the pool has a class of this name"):
            calls[how]()
        pool["a"].remove()
    calls[how]()


@pytest.mark.parametrize("how", ["ready", "remove"])
def test_an_interrupted_wait_for_a_class(
    pool: Pool, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is watched after it: a loop reads on its own thread again."""
    a = functions(pool, "a")
    engine = pool._engine
    call_thread = engine.call_thread

    def interrupted() -> None:
        if engine.classes.watched:
            raise KeyboardInterrupt
        call_thread()

    monkeypatch.setattr(engine, "call_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(a, how)()
    assert not engine.classes.watched
    assert not engine.reads_itself


@pytest.mark.parametrize("arguments", [{}, {"on_class": print}])
def test_a_session_reads_nothing_after_the_end(arguments: Any) -> None:
    """Also where the pool's thread has read for all."""
    pool = Pool(None, cpus=1, **arguments)
    functions(pool, "a").submit(tasks.same, 1).result(LIMIT_S)
    session = Session(pool._engine, 1, settings.TaskOptions())
    pool.shutdown()
    session.read(NEVER)
    session.close()


# ---- fairness ----


def test_a_long_queue_leaves_room_for_others(pool: Pool) -> None:
    with Gate() as gate:
        a = pool.add("a", on="fake:0")
        b = pool.add("b", on="fake:1")
        held = a.submit(tasks.through, gate.address)
        gate.arrival()
        many = [a.submit(tasks.same, n) for n in range(40_000)]
        assert [b.submit(tasks.same, n).result(LIMIT_S) for n in range(10)] == list(range(10))
        assert list(b.map(tasks.same, range(3000))) == list(range(3000))
        assert not many[0].done()
        (why,) = {r["kind"] for r in pool.explain(many[-1])}
        assert why == "BACKLOG"
        row = a.stats()
        assert row["queued"] <= 1024
        gate.open()
        assert held.result(LIMIT_S) == "-"
        assert [f.result(LIMIT_S) for f in many] == list(range(40_000))


def test_a_long_queue_of_coroutines_leaves_room_for_others() -> None:
    async def main(pool: Pool, gate: Gate) -> None:
        a, b = pool.add("a", on="fake:0"), pool.add("b", on="fake:1")
        loop = asyncio.get_running_loop()
        held = asyncio.create_task(a.arun(tasks.through, gate.address))
        await loop.run_in_executor(None, gate.arrival)
        many = [asyncio.create_task(a.arun(tasks.same, n)) for n in range(2000)]
        for n in range(10):
            assert await b.arun(tasks.same, n) == n
        assert not any(t.done() for t in many)
        gate.open()
        assert await asyncio.gather(held, *many) == ["-", *range(2000)]

    with Pool("fake:2", queue_size=64) as pool, Gate() as gate:
        asyncio.run(main(pool, gate))


def test_priorities_within_a_class_and_the_backlog(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Pool(None, cpus=1, queue_size=1) as pool, Gate() as gate:
        a = functions(pool, "a")
        held = a.submit(tasks.through, gate.address)
        gate.arrival()
        a.submit(tasks.same)
        futures = [
            a.options(priority=p).submit(tasks.mark, path, p) for p in (-1, 0, 5) for _ in range(5)
        ]
        gate.open()
        held.result(LIMIT_S)
        wait(futures, LIMIT_S)
    assert tasks.marked(path) == ["5"] * 5 + ["0"] * 5 + ["-1"] * 5


def behind_a_gate(pool: Pool, gate: Gate) -> tuple[PoolClass, Any]:
    """A class whose one place is taken: further tasks wait in the package."""
    a = functions(pool, "a")
    held = a.submit(tasks.through, gate.address)
    gate.arrival()
    return a, held


def waiting(pool: Pool) -> int:
    return sum(map(len, pool._engine.backlog.queues.values()))


def opens(pool: Pool, gate: Gate, many: int) -> threading.Thread:
    """Opens the gate once so many tasks wait in the package."""

    def work() -> None:
        assert until(lambda: waiting(pool) == many)
        gate.open()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("sized", [True, False])
def test_loops_have_their_turn_among_tasks_that_wait(tmp_path: pathlib.Path, sized: bool) -> None:
    path = str(tmp_path / "ran")
    with Pool(None, cpus=1, queue_size=3) as pool, Gate() as gate:
        a, held = behind_a_gate(pool, gate)
        many = [a.submit(tasks.mark, path, "before") for _ in range(5)]  # three wait
        mapped = a.map(tasks.mark, 3 * [path], 3 * ["map"], buffersize=2)
        many += [a.submit(tasks.mark, path, "behind") for _ in range(3)]
        items: Any = 2 * [(path, "urgent")]
        loop = a.outcomes(items if sized else iter(items), fn=tasks.mark_pair, priority=9)
        thread = opens(pool, gate, 3 + 2 + 3 + 2)
        assert [r.kind for r in loop] == 2 * ["success"]
        assert list(mapped) == 3 * ["map"]
        wait([held, *many], LIMIT_S)
        thread.join()
    # Two of those before have the last places in the library.  One map item is pulled at last.
    expected = [*2 * ["urgent"], *5 * ["before"], *2 * ["map"], *3 * ["behind"]]
    assert sorted(tasks.marked(path)) == sorted([*expected, "map"])
    assert [m for m in tasks.marked(path)[:12] if m != "urgent"] == expected[2:]
    assert "behind" not in tasks.marked(path)[: tasks.marked(path).index("urgent") + 2]


@pytest.mark.parametrize("drain", [True, False])
def test_a_class_ends_while_items_of_loops_wait(drain: bool) -> None:
    with Pool(None, cpus=1, queue_size=1) as pool, Gate() as gate:
        a, held = behind_a_gate(pool, gate)
        future = a.submit(tasks.same)
        mapped = a.map(tasks.same, range(3), buffersize=3)
        loop = a.outcomes(iter(range(3)), fn=tasks.same)
        ended: list[Any] = []

        def work() -> None:
            assert until(lambda: waiting(pool) == 1 + 3 + 1)  # a window is queue_size
            a.remove(drain, wait=False)
            gate.open()

        thread = threading.Thread(target=work)
        thread.start()
        with pytest.raises(RuntimeError, match="'a' is removed"):
            for r in loop:  # of three items one was accepted
                ended.append(r.value)
        with pytest.raises(RuntimeError, match="'a' is removed") if not drain else nullcontext():
            for value in mapped:
                ended.append(value)
        thread.join()
        assert ended == ([0, 0, 1, 2] if drain else [])
        assert future.cancelled() is not drain
        wait([held], LIMIT_S)


def test_a_loop_is_left_while_its_items_wait(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "ran")
    with Pool(None, cpus=1, queue_size=1) as pool, Gate() as gate:
        a, held = behind_a_gate(pool, gate)
        many = [a.submit(tasks.mark, path, "future")]
        mapped = a.map(tasks.mark, 2 * [path], ["first", "second"], timeout=0.01, buffersize=2)
        with pytest.raises(TimeoutError):
            next(mapped)
        many += [a.submit(tasks.mark, path, "last")]
        gate.open()
        wait([held, *many], LIMIT_S)
    assert tasks.marked(path) == ["future", "last"]


def test_an_item_without_room_for_its_data_waits_like_others() -> None:
    """The library refuses it once its turn comes."""
    with Pool(None, cpus=1, queue_size=1, payload_budget=16 << 20) as pool, Gate() as gate:
        a, held = behind_a_gate(pool, gate)
        future = a.submit(tasks.same)
        items = [b"1", bytes(16 << 20), b"3"]
        mapped = a.map(tasks.same, items, buffersize=3)
        loop = a.outcomes(items, fn=tasks.same)
        thread = opens(pool, gate, 1 + 3 + 1)
        ends = [(r.index, r.kind) for r in loop]
        assert sorted(ends) == [(0, "success"), (1, "error"), (2, "success")]
        assert next(mapped) == b"1"
        with pytest.raises(ResultTooLarge):
            next(mapped)
        wait([held, future], LIMIT_S)
        thread.join()


# ---- looks ----


def test_rows(pool: Pool) -> None:
    with Gate() as gate:
        a = pool.add("a", max_workers=1)
        future = a.submit(tasks.through, gate.address)
        gate.arrival()
        waiting = a.submit(tasks.same)
        row = a.stats()
        assert row["running"] + row["queued"] == 2  # one may be sent ahead
        (device,) = [r for r in pool.devices() if r["class_name"]]
        assert (device["class_name"], device["state"], device["workers"]) == ("a", "BUSY", 1)
        assert [r["class_name"] for r in pool.slots() if r["task_id"]] == ["a"]
        assert pool.stats()["accepted"] == 2
        assert pool.explain(future) == []
        assert pool.explain(waiting)[0]["kind"] == "BUSY"
        gate.open()
        waiting.result(LIMIT_S)
        assert pool.explain(waiting) == pool.explain(future) == []
    with Pool(None, cpus=1) as other, pytest.raises(ValueError, match="not of this pool"):
        other.explain(future)
    for wrong in (3, None):
        with pytest.raises(TypeError, match="^future must be a Future, a Lease or a class"):
            pool.explain(wrong)  # type: ignore[arg-type]
    pool.shutdown()
    assert [(r["name"], r["done"]) for r in pool.classes()] == [("a", 2)]
    assert pool.stats()["success"] == 2
    assert pool.explain(waiting) == []


def test_reasons_of_a_class() -> None:
    """Those of its first task that waits, whoever has submitted it."""
    with Pool("fake:1", queue_size=2) as pool, Gate() as gate:
        a, b = (pool.add(name, memory="10GiB", min_residence=0) for name in "ab")
        assert pool.explain("b") == pool.explain(b) == []
        running = a.submit(tasks.through, gate.address)
        gate.arrival()
        low = b.options(priority=-(2**31)).submit(tasks.same, 1)
        assert facts(pool.explain("b")) == facts(pool.explain(low))
        high = b.options(priority=7).submit(tasks.same, 2)
        third = b.submit(tasks.same, 3)
        for of_b in (b, "b", b.options(priority=9)):
            rows = pool.explain(of_b)
            assert facts(rows) == facts(pool.explain(high)) != facts(pool.explain(low))
        assert [row["kind"] for row in pool.explain(third)] == ["BACKLOG"]
        with pytest.raises(KeyError, match="none"):
            pool.explain("none")
        gate.open()
        assert [f.result(LIMIT_S) for f in (running, low, high, third)] == ["-", 1, 2, 3]
        with Pool(None, cpus=1) as other, pytest.raises(ValueError, match="not of this pool"):
            pool.explain(functions(other))
    assert pool.explain(a) == []


def test_reasons_of_a_class_that_ends(pool: Pool) -> None:
    with Gate() as gate:
        a = pool.add("a", max_workers=1)
        running = a.submit(tasks.through, gate.address)
        gate.arrival()
        a.remove(wait=False)
        assert until(lambda: pool.classes()[0]["removing"])
        with pytest.raises(RuntimeError, match="class 'a' accepts no more tasks"):
            pool.explain(a)
        gate.open()
        assert running.result(LIMIT_S) == "-"
    a.remove()
    again = pool.add("a")
    again.pause()
    waiting = again.submit(tasks.same, 1)
    assert (pool.explain(a), len(pool.explain(again))) == ([], 1)
    again.resume()
    assert waiting.result(LIMIT_S) == 1


def facts(rows: list[Any]) -> list[tuple[Any, ...]]:
    """What the reasons say, without times."""
    return [(row["kind"], row["device"], row["class_name"], row["task_id"]) for row in rows]


def test_reasons_of_a_class_whose_tasks_wait_in_the_package() -> None:
    with Pool("fake:1", queue_size=1) as pool, Gate() as gate:
        a = pool.add("a")
        running = a.submit(tasks.through, gate.address)
        gate.arrival()
        waiting = a.submit(tasks.same, 1)
        assert [row["kind"] for row in pool.explain(a)] == ["BACKLOG"]
        gate.open()
        assert (running.result(LIMIT_S), waiting.result(LIMIT_S)) == ("-", 1)


def test_reasons_of_a_class_whose_tasks_are_of_a_loop(pool: Pool) -> None:
    a = pool.add("a")
    a.pause()
    with ThreadPoolExecutor(1) as thread:
        loop = thread.submit(lambda: [r.value for r in a.outcomes(range(3), fn=tasks.same)])
        assert until(lambda: a.stats()["queued"])
        assert {row["kind"] for row in pool.explain(a)} == {"PAUSED"}
        a.resume()
        assert sorted(loop.result(LIMIT_S)) == [0, 1, 2]


def in_the_way(pool: Pool, waiting: Any) -> list[tuple[Any, Any]]:
    """The future and the item of each task that the reasons name."""
    rows = pool.explain(waiting)
    assert {(r["future"], r["item"]) for r in rows if not r["task_id"]} <= {(None, None)}
    return list({r["task_id"]: (r["future"], r["item"]) for r in rows if r["task_id"]}.values())


def test_a_reason_has_the_future_in_the_way(pool: Pool) -> None:
    with Gate() as gate:
        a = pool.add("a", devices=2, max_workers=1)
        running = a.submit(tasks.through, gate.address)
        gate.arrival()
        first, second = a.submit(tasks.same, 1), a.submit(tasks.same, 2)
        assert in_the_way(pool, first) == [(running, None)]
        found = in_the_way(pool, second)
        assert found and set(found) <= {(running, None), (first, None)}
        gate.open()
        assert (first.result(LIMIT_S), second.result(LIMIT_S)) == (1, 2)
        running.result(LIMIT_S)


def test_a_reason_has_the_lease_in_the_way(pool: Pool) -> None:
    a = pool.add("a", devices=2, min_residence=0)
    with pool.lease(devices=2) as g:
        waiting = a.submit(tasks.same, 1)
        assert in_the_way(pool, waiting) == [(g, None)]
        next_one = pool.lease(devices=2)
        thread = threading.Thread(target=lambda: next_one.open().close())
        thread.start()
        assert until(lambda: next_one._grant._id > 0)
        found = in_the_way(pool, next_one)
        assert found and set(found) <= {(g, None), (waiting, None)}
    thread.join()
    assert waiting.result(LIMIT_S) == 1


@pytest.mark.parametrize("way", ["outcomes", "journal", "journal, left", "left", "map"])
def test_a_reason_has_the_item_in_the_way(pool: Pool, tmp_path: pathlib.Path, way: str) -> None:
    """Of a loop, and of one with a journal that was left while its item runs."""
    with Gate() as gate:
        a = pool.add("a", devices=2, max_workers=1)
        fn = functools.partial(tasks.through_if, gate.address)
        loop: Any
        if way == "map":
            loop = a.map(fn, [0, 5])
        else:
            journal = tmp_path / "night.gdj" if "journal" in way else None
            loop = pool.outcomes({"a": [0, 5]}, fn=fn, journal=journal)
        next(loop)
        gate.arrival()
        waiting = a.submit(tasks.same, 1)
        if "left" in way:
            loop.close()
        known = way in ("outcomes", "journal", "journal, left")
        assert in_the_way(pool, waiting) == [(None, 5 if known else None)]
        gate.open()
        assert waiting.result(LIMIT_S) == 1
        loop.close()


@pytest.mark.parametrize("name", ["x" * 63, "ä" * 31, "名" * 20])
def test_as_a_table(name: str) -> None:
    import unicodedata

    def width(line: str) -> int:
        return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in line)

    with Pool("fake:8", cpus=4) as pool:
        assert max(map(width, str(pool).splitlines())) <= 80
        big = [pool.add(f"{n}{name}"[: len(name)], memory="10GiB") for n in range(4)]
        for each in big:
            each.submit(tasks.same).result(LIMIT_S)
        functions(pool, "small").submit(tasks.same).result(LIMIT_S)
        big[0].pause()
        lines = str(pool).splitlines()
        assert max(map(width, lines)) <= 80
        assert lines[0].split()[:3] == ["device", "state", "class"]
        assert [line.split()[0] for line in lines[1:9]] == [f"fake:{n}" for n in range(8)]
        assert sum("paused" in line for line in lines) == 1
        assert all(any(line.startswith(f"{n}{name[:5]}") for line in lines) for n in range(4))
        assert "small" in lines[-1]
        waiting = big[0].submit(tasks.same, 1)
        big[0].unload()
        assert until(lambda: not big[0].stats()["workers"])
        lines = str(pool).splitlines()
        assert max(map(width, lines)) <= 80
        assert lines[-2] == ""
        assert re.match(rf"0{name[:3]}\S+… waits: PAUSED", lines[-1])
        big[0].resume()
        assert waiting.result(LIMIT_S) == 1


def test_the_table_has_why_a_class_waits(pool: Pool) -> None:
    """Of each class without a worker, and of no other."""
    with Gate() as gate:
        a, b, c = (pool.add(name, memory="10GiB", devices=2, max_workers=1) for name in "abc")
        running = a.submit(tasks.through, gate.address)
        gate.arrival()
        waiting = [each.submit(tasks.same, n) for n in range(2) for each in (a, b)]
        (why, *_) = pool.explain(b)
        line = str(pool).splitlines()[-1]
        assert line.startswith(f"b waits: {why['kind']} on ")
        assert (len(line), line[-1]) == (80, "…")
        assert "a waits" not in str(pool)
        assert c.stats()["queued"] == 0
        pool.kill_workers()
        assert " waits: " not in str(pool)
        gate.open()
        wait([running, *waiting], LIMIT_S)


# ---- changes ----


def test_on_class(caplog: pytest.LogCaptureFixture) -> None:
    told: list[ClassChange] = []
    with (
        caplog.at_level(logging.INFO, "gpudispatch"),
        Pool(None, cpus=1, on_class=told.append) as pool,
    ):
        a = functions(pool, "a")
        a.load()
        assert until(lambda: ("a", "LOADED") in [c[:2] for c in told])
        a.pause()
        a.resume()
        assert until(lambda: ("a", "RESUMED") in [c[:2] for c in told])
        bad = functions(pool, "bad", initializer=tasks.fails_in_setup)
        bad.load()
        assert until(lambda: ("bad", "FAILED") in [c[:2] for c in told])
        bad.remove()
        a.remove()
        assert until(lambda: len([c for c in told if c.change == "REMOVED"]) == 2)
    assert all(type(c) is ClassChange for c in told)
    assert [c.change for c in told if c.name == "a"] == [
        "LOADED", "PAUSED", "RESUMED", "UNLOADED", "REMOVED",
    ]  # fmt: skip
    records = [r for r in caplog.records if r.name == "gpudispatch"]
    assert {r.class_name for r in records if hasattr(r, "class_name")} >= {"a", "bad"}
    failed = [r for r in records if "setup failed" in r.message]
    assert failed
    assert {(r.levelname, vars(r)["class_name"]) for r in failed} == {("WARNING", "bad")}
    (change,) = [
        r for r in records if r.message.startswith("class bad:") and r.levelname == "WARNING"
    ]
    assert change.class_name == "bad"  # type: ignore[attr-defined]


def test_on_class_may_do_anything(caplog: pytest.LogCaptureFixture) -> None:
    """Also raise, submit, add and remove."""
    values: list[Any] = []
    done = threading.Event()

    def changed(change: ClassChange) -> None:
        if change[:2] == ("a", "LOADED"):
            values.append(pool["a"].submit(tasks.same, 5).result(LIMIT_S))
            other = functions(pool, "b")
            values.append(other.submit(tasks.same, 6).result(LIMIT_S))
            other.remove()
            values.append(len(list(pool["a"].outcomes(range(10), fn=tasks.same))))
            done.set()
            raise ValueError("on purpose")

    with (
        caplog.at_level(logging.ERROR, "gpudispatch"),
        Pool(None, cpus=2, on_class=changed) as pool,
    ):
        a = functions(pool, "a")
        a.load()
        assert done.wait(LIMIT_S)
        assert a.submit(tasks.same, 7).result(LIMIT_S) == 7
    assert values == [5, 6, 10]
    assert "on purpose" in caplog.text
    caplog.clear()  # its traceback holds the pool


def test_output_as_events(slots: Pool, caplog: pytest.LogCaptureFixture) -> None:
    a = functions(slots, "a", output="events")
    with caplog.at_level(logging.INFO, "gpudispatch"):
        a.submit(tasks.say, "words").result(LIMIT_S)
        assert until(lambda: "words" in caplog.text)
    (record,) = [r for r in caplog.records if r.message.endswith(": words")]
    assert record.class_name == "a"  # type: ignore[attr-defined]
    assert "of a" in record.message


# ---- leaving ----


def test_a_loop_that_is_left(slots: Pool) -> None:
    a, b = functions(slots, "a"), functions(slots, "b")
    for r in a.outcomes(itertools.count(), fn=tasks.same):
        assert r.ok
        break
    for n in b.map(tasks.same, itertools.count()):
        assert n == 0
        break
    for r in slots.outcomes({"a": itertools.count(), "b": itertools.count()}, fn=tasks.same):
        assert r.ok
        break
    assert not slots._engine.sessions
    assert b.submit(tasks.same, 1).result(LIMIT_S) == 1
    assert a.submit(tasks.same, 1).result(LIMIT_S) == 1


def test_shutdown_waits_for_all() -> None:
    with Pool("fake:1", cpus=2, queue_size=16) as pool:
        a, b = pool.add("a"), functions(pool, "b")
        futures = [c.submit(tasks.same, n) for n in range(100) for c in (a, b)]
    assert [f.result(0) for f in futures] == [n for n in range(100) for _ in range(2)]
    for call in (a.submit, b.submit):
        with pytest.raises(RuntimeError, match="after shutdown"):
            call(tasks.same)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.add("c")
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.outcomes({"a": [1]}, fn=tasks.same)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.lease().open()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.run(["true"])
    a.remove()
    pool.shutdown()
    assert str(pool)


def test_shutdown_has_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of terminate_workers() is for tasks that were cancelled."""
    monkeypatch.setattr("gpudispatch.engine.CLOSE_NS", 1_000_000)
    with Gate() as gate, Pool(None, cpus=1) as pool:
        held = functions(pool, "a", grace=0.0).submit(tasks.through, gate.address)
        gate.arrival()
        pool.shutdown(wait=False)
        assert wait([held], 0.2).not_done
        gate.open()
        assert held.result(LIMIT_S) == "-"


def test_shutdown_cancels_what_has_not_started() -> None:
    with Pool(None, cpus=1, queue_size=4) as pool, Gate() as gate:
        a, b = functions(pool, "a"), functions(pool, "b")
        held = a.submit(tasks.through, gate.address)
        gate.arrival()
        futures = [c.submit(tasks.same, n) for n in range(50) for c in (a, b)]
        pool.shutdown(wait=False, cancel_futures=True)
        gate.open()
        pool.shutdown()
        assert held.result(0) == "-"
        assert all(f.cancelled() for f in futures[10:])


@pytest.mark.parametrize("how", ["terminate_workers", "kill_workers"])
def test_terminate_and_kill(how: str) -> None:
    with Gate() as gate:
        pool = Pool(None, cpus=2)
        a, b = functions(pool, "a", grace=600.0), functions(pool, "b", grace=600.0)
        one = tasks.deaf if how == "kill_workers" else tasks.through_unless_cancelled
        running = [c.submit(one, gate.address) for c in (a, b)]
        gate.arrivals(2)
        waiting = [c.submit(tasks.same, n) for n in range(2000) for c in (a, b)]
        getattr(pool, how)()
        pool.shutdown()
        assert all(f.cancelled() for f in running + waiting)


def test_ctrl_c(tmp_path: pathlib.Path) -> None:
    """What has not started is cancelled, what runs ends."""
    done = script(
        tmp_path,
        """
        try:
            with tasks.Gate() as gate, Pool(None, cpus=1) as pool:
                a = pool.add("a", devices=0, cpus=1, min_residence=0)
                b = pool.add("b", devices=0, cpus=1, min_residence=0)
                held = a.submit(tasks.through, gate.address, "held")
                gate.arrival()
                rest = [c.submit(tasks.same, n) for n in range(2000) for c in (a, b)]
                def interrupt():
                    os.kill(os.getpid(), signal.SIGINT)
                    while not rest[-1].cancelled():
                        time.sleep(0.001)
                    gate.open()
                threading.Thread(target=interrupt).start()
                held.result()
        except KeyboardInterrupt:
            print("interrupted", held.result(0), all(f.cancelled() for f in rest[2:]))
        """,
    )
    assert done == (0, "interrupted held True\n", "")


def test_exit_with_work_in_flight(tmp_path: pathlib.Path) -> None:
    done = script(
        tmp_path,
        f"""
        pool, unused = Pool(None, cpus=2, queue_size=4), Pool("fake:1")
        unused.add("x")
        a = pool.add("a", devices=0, cpus=1, min_residence=0)
        b = pool.add("b", devices=0, cpus=1, min_residence=0)
        marks = {str(tmp_path / "marks")!r}
        fs = [c.submit(tasks.mark, marks, n) for n in range(50) for c in (a, b)]
        loop = pool.outcomes({{"a": range(5000), "b": range(5000)}}, fn=tasks.same)
        print(next(loop).ok)
        """,
    )
    assert done == (0, "True\n", "")
    assert len(tasks.marked(tmp_path / "marks")) == 100


def test_a_dropped_pool_ends() -> None:
    before = descendants()
    gc.collect()
    gc.disable()
    try:
        with Gate() as gate:
            pool = Pool(None, cpus=1)
            a = functions(pool, "a")
            gone = weakref.ref(pool)
            futures = [a.submit(tasks.through, gate.address, n) for n in range(100)]
            gate.arrival()
            thread = pool._engine.thread
            del pool
            assert gone() is not None  # its class keeps it
            del a
            assert gone() is None
            gate.open()
            assert [f.result(LIMIT_S) for f in futures] == list(range(100))
        assert thread is not None
        thread.join(LIMIT_S)
        assert until(lambda: descendants() <= before)
        for use in (lambda p: None, lambda p: p.add("x"), str, lambda p: p.add("y").load()):
            unused = Pool("fake:1")
            gone = weakref.ref(unused)
            use(unused)
            del unused
            assert gone() is None
            assert until(lambda: descendants() <= before)
    finally:
        gc.enable()


def test_loops_keep_their_pool() -> None:
    assert list(functions(Pool(None, cpus=1)).map(tasks.same, range(1000))) == list(range(1000))

    def made() -> Iterator[Any]:
        pool = Pool(None, cpus=1)
        functions(pool, "a")
        return pool.outcomes({"a": range(1000)}, fn=tasks.same)

    assert sum(r.ok for r in made()) == 1000


def test_many_pools() -> None:
    remains = Remains()
    for n in range(20):
        pool = Pool("fake:1", cpus=1)
        a = functions(pool, "a")
        if n % 2:
            assert a.submit(tasks.same, 1).result(LIMIT_S) == 1
        if n % 3 == 0:
            pool.shutdown(wait=n % 2 == 0)
    del pool, a
    assert until(lambda: not remains.left()), remains.left()


def test_fork(slots: Pool) -> None:
    a = functions(slots, "a")
    future = a.submit(tasks.same, 1)
    assert future.result(LIMIT_S) == 1

    def refuses() -> None:
        calls: list[Any] = [
            lambda: a.submit(tasks.same), lambda: slots.add("b"), a.remove, a.pause,
            slots.shutdown, lambda: slots.outcomes({"a": [1]}, fn=tasks.same),
            lambda: slots.explain(future), lambda: slots.lease(0, cpus=1).open(),
        ]  # fmt: skip
        for call in calls:
            try:
                call()
            except ForkedError:
                continue
            raise AssertionError(call)

    child = os.fork()
    if not child:
        try:
            refuses()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert a.submit(tasks.same, 2).result(LIMIT_S) == 2


def test_a_forked_child_imports_nothing(tmp_path: pathlib.Path) -> None:
    """Another thread of the parent may have been inside of an import, whose lock it holds."""
    done = script(
        tmp_path,
        """
        import asyncio, warnings
        from gpudispatch import ForkedError
        warnings.simplefilter("ignore")
        pool = Pool(None, cpus=1)
        a = pool.add("a", devices=0, cpus=1)
        future = a.submit(tasks.same, 1)
        future.result()
        calls = [
            lambda: pool.outcomes({"a": [1]}, fn=tasks.same), lambda: pool.lease(0, cpus=1),
            lambda: pool.run(["true"]), lambda: pool.explain(future),
            lambda: a.map(tasks.same, [1]), lambda: a.outcomes([1], fn=tasks.same, progress=True),
            lambda: a.aoutcomes([1], fn=tasks.same), lambda: asyncio.run(a.arun(tasks.same, 1)),
        ]
        asyncio.run(asyncio.sleep(0))
        child = os.fork()
        if not child:
            for number, call in enumerate(calls):
                before = set(sys.modules)
                try:
                    call()
                except ForkedError:
                    print(number, *sorted(set(sys.modules) - before), flush=True)
            os._exit(0)
        os.waitpid(child, 0)
        pool.shutdown()
        """,
    )
    assert done == (0, "".join(f"{n}\n" for n in range(8)), "")


@pytest.mark.parametrize("told", [True, False])
def test_the_pools_thread_imports_no_tables(tmp_path: pathlib.Path, told: bool) -> None:
    """Those of on_class are there before; without it the package needs none."""
    done = script(
        tmp_path,
        f"""
        pool = Pool(None, cpus=1{", on_class=str" if told else ""})
        print("gpudispatch.tables" in sys.modules)
        pool.shutdown()
        """,
    )
    assert done == (0, f"{told}\n", "")


def make_a_pool() -> None:
    Pool("fake:1")


def test_a_task_cannot_make_a_pool(slots: Pool) -> None:
    a = functions(slots, "a")
    error = a.submit(make_a_pool).exception(LIMIT_S)
    assert isinstance(error, RuntimeError)
    assert "a worker process cannot make" in str(error)


# ---- workers that are replaced ----


KINDS = pytest.mark.parametrize("where", ["device", "slot"])


def made(where: str) -> Pool:
    return Pool("fake:2", cpus=2) if where == "device" else Pool(None, cpus=2)


def of(pool: Pool, where: str, name: str = "a", **more: Any) -> PoolClass:
    if where == "device":
        return pool.add(name, memory="4GiB", on="fake:0", **more)
    return functions(pool, name, **more)


@KINDS
def test_a_second_try_after_out_of_memory(where: str, tmp_path: pathlib.Path) -> None:
    with made(where) as pool:
        a = of(pool, where, retry=("oom",), max_attempts=2)
        b = of(pool, where, "b")
        assert b.submit(tasks.same, 1).result(LIMIT_S) == 1
        first, second = a.submit(tasks.out_of_memory, str(tmp_path / "f"), 1).result(LIMIT_S)
        assert first != second
        assert isinstance(
            a.submit(tasks.out_of_memory, str(tmp_path / "g"), 2).exception(LIMIT_S), MemoryError
        )
        (r,) = a.outcomes([str(tmp_path / "h")], fn=functools.partial(tasks.out_of_memory, times=1))
        assert r.ok, r.text
        pids = asyncio.run(a.arun(tasks.out_of_memory, str(tmp_path / "i"), 1))
        assert pids[0] != pids[1]
        assert b.submit(tasks.same, 1).result(LIMIT_S) == 1
        assert a.submit(tasks.same, 1).result(LIMIT_S) == 1
        with pytest.raises(ValueError, match="oom"):
            b.options(retry=("oom",))


@KINDS
def test_a_view_that_is_kept(where: str) -> None:
    with made(where) as pool:
        a = of(pool, where, max_workers=1)
        pid = a.submit(tasks.pid).result(LIMIT_S)
        kept = a.options(copy=False).submit(data_tasks.keep, np.zeros(50_000))
        assert type(kept.exception(LIMIT_S)) is GpuDispatchError
        assert a.submit(tasks.pid).result(LIMIT_S) != pid
        assert not any(row["draining"] for row in pool.devices()) or until(
            lambda: not any(row["draining"] for row in pool.devices())
        )


def test_a_worker_that_is_killed(pool: Pool) -> None:
    a = pool.add("a", max_workers=1, max_attempts=2)
    with Gate() as gate:
        future: Future[Any] = a.submit(tasks.through, gate.address, 5)
        pid, _ = gate.arrival()
        os.kill(pid, signal.SIGKILL)
        again, _ = gate.arrival()
        assert again != pid
        gate.open()
        assert future.result(LIMIT_S) == 5
        assert future.attempt == 2


def test_cancel_and_stop(pool: Pool) -> None:
    a = pool.add("a", max_workers=1)
    with Gate() as gate:
        running = a.submit(tasks.through_unless_cancelled, gate.address)
        gate.arrival()
        waiting = a.submit(tasks.same)
        assert waiting.cancel()
        assert not running.cancel()
        assert running.stop(kill=False)
        assert running.result(LIMIT_S).startswith("True ")  # it has caught the exception
    assert a.submit(tasks.same, 1).result(LIMIT_S) == 1
