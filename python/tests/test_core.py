# SPDX-License-Identifier: MIT
"""_core: a pooled dispatcher, with several classes of work, without the package around it."""

from __future__ import annotations

import operator
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("gpudispatch._core")

import executor_tasks as tasks
from executor_tasks import Gate

from gpudispatch import GpuDispatchError, _core, codec, current, ends, source, waits
from gpudispatch._core import Event, Template
from gpudispatch.engine import RAW
from gpudispatch.events import (
    CLASS,
    CLASS_REMOVED,
    ERROR,
    FINISH_NOW,
    GRANTED,
    OUTCOME,
    PROGRESS,
    REVOKED,
    STARTED,
    SUCCESS,
    UNLOAD,
)
from gpudispatch.future import Future
from gpudispatch.leases import SOFT
from gpudispatch.pool_settings import EXTERNAL
from gpudispatch.sessions import SESSION_SHIFT
from gpudispatch.settings import AT_ONCE, NEVER
from gpudispatch.work_class import SETUP_AT, worker_argv

PROMISE = 10  # a kind of event that the package does not ask for
UNLOADED = 2  # a change of a class
CANCEL = 3  # a reason to end a lease
DONE = 0  # of attend
GIB = 1 << 30
LIMIT_S = 60.0
SESSION = 1 << SESSION_SHIFT

pytestmark = pytest.mark.usefixtures("leaves_nothing")


def setup() -> codec.Encoded:
    """What the workers of an Executor without a class are set up with."""
    blob = {
        "host": current.Arrival(source.host_state()), "worker": None, "setup": None,
        "initializer": None, "initargs": (), "max_batch": 1, "cuda_results": "cpu", "oom": False,
    }  # fmt: skip
    return codec.encode(codec.VALUE, blob, cuda="error")


def frame(function: Callable[..., Any], *args: Any) -> codec.Encoded:
    return codec.own(codec.encode(codec.CALL, (source.reference(function), args, {}), cuda="error"))


class Pool:
    """A pooled dispatcher, with the events that no test has taken yet."""

    def __init__(self, devices: str = "fake:2", **options: object) -> None:
        self.core = _core.Dispatcher({"pooled": 1, "devices": devices, **options})
        self.inbox: deque[Event] = deque()

    def add(self, name: str, needs: list[dict[str, object]] | None = None, **fields: int) -> None:
        """A class whose workers run functions; each gets a device of its own unless told so."""
        encoded = setup()
        shared = _core.Shared(SETUP_AT + codec.frame_size(encoded))
        shared.write(SETUP_AT, encoded)
        self.core.class_add(
            name,
            {"min_residence": AT_ONCE} | fields,
            {"argv": worker_argv(), "setup_shared": shared, "start_events": 1},
            needs or [],
        )

    def add_external(self, name: str = "jobs") -> None:
        self.core.class_add(name, {"residence": EXTERNAL}, {"setup_limit": 600 * 10**9}, [])

    def event(self, kind: int, **wanted: object) -> Event:
        """Waits for an event with these fields, and takes it."""
        until = time.monotonic() + LIMIT_S
        while True:
            for event in self.inbox:
                if event.kind == kind and all(getattr(event, n) == v for n, v in wanted.items()):
                    self.inbox.remove(event)
                    return event
            left = until - time.monotonic()
            assert left > 0, f"no event {kind} {wanted} in {self.inbox}"
            assert self.core.poll(int(left * 1e9), self.inbox) is not None

    def values(self, n: int) -> list[Any]:
        """What the next n tasks to end have returned."""
        found = []
        for _ in range(n):
            event = self.event(OUTCOME)
            assert event.outcome == SUCCESS, event.text
            found.append(ends.decoded(event.take())[0])
        return found

    def close(self) -> None:
        if not hasattr(self, "core"):
            return
        self.core.close(FINISH_NOW)
        while self.core.poll(NEVER, self.inbox) is not None:
            pass
        self.core.destroy()
        del self.core  # which has descriptors and the memory of the setup


@pytest.fixture
def pool() -> Iterator[Pool]:
    made = Pool()
    yield made
    made.close()


@pytest.fixture
def gate() -> Iterator[Gate]:
    with Gate() as made:
        yield made


# ---- numbers in tags ----


@pytest.mark.parametrize("tag", [1, RAW | 5, 3 * SESSION + 7, (1 << 56) - 1])
def test_outcomes_have_their_tags_and_numbers(pool: Pool, tag: int) -> None:
    for name in "a", "b":
        pool.add(name)
    for name, number in ("a", 3), ("b", 255):
        assert pool.core.submit(Template(class_name=name, number=number), tag, frame(tasks.own_tag))
        event = pool.event(OUTCOME, number=number)
        assert (event.tag, event.outcome) == (tag, SUCCESS)
        assert ends.decoded(event.take()) == (tag, None)
        assert event.class_name is None  # of a kind of which there are many
    done = {row["name"]: row["done"] for row in pool.core.classes()}
    assert done == {"a": 1, "b": 1}


def test_lists_and_queues_have_them(pool: Pool) -> None:
    pool.add("a")
    template = Template(class_name="a", number=9)
    assert len(pool.core.submit_many(template, 10, [frame(tasks.same, n) for n in range(3)])) == 3
    future: Future[Any] = Future()
    queue = deque([(template, 13, frame(tasks.same, 3), time.monotonic_ns())])
    assert pool.core.send(queue, {13: future})
    assert future._id
    for n in range(4):
        event = pool.event(OUTCOME, tag=10 + n)
        assert (event.number, ends.decoded(event.take())) == (9, (n, None))


def test_starts_of_sessions(pool: Pool, gate: Gate) -> None:
    """Sessions that do not want them get none, whatever the number."""
    pool.add("a", max_workers=1)
    template = Template(class_name="a", number=255)
    for tag in SESSION + 1, (1 << 55) + SESSION + 2, 3:
        pool.core.submit(template, tag, frame(tasks.through, gate.address))
    for tag in (1 << 55) + SESSION + 2, 3:
        gate.arrival()
        gate.let_one_go()
        assert pool.event(STARTED, tag=tag).number == 255
    gate.open()
    pool.values(3)
    assert not [e for e in pool.inbox if e.kind == STARTED]


def settles(pool: Pool, tag: int) -> tuple[Future[Any], bool]:
    future: Future[Any] = Future()
    pool.core.submit(Template(class_name="a", number=4), tag, frame(tasks.same, 8))
    pool.inbox.append(pool.event(OUTCOME))
    return future, pool.core.settle(pool.inbox, {tag: future}, None)


def test_results_that_are_no_frames_are_not_settled(pool: Pool) -> None:
    pool.add("a")
    future, foreign = settles(pool, 5)
    assert future.done() or foreign  # a build without the GIL leaves it to the pool's thread
    pool.inbox.clear()
    future, foreign = settles(pool, RAW | 5)
    assert foreign
    assert not future.done()
    assert pool.event(OUTCOME, tag=RAW | 5)


# ---- quotas ----


def test_a_quota_bounds_what_is_in_the_library(pool: Pool, gate: Gate) -> None:
    pool.add("a")
    pool.add("b")
    core, data = pool.core, frame(tasks.through, gate.address)
    template = Template(class_name="a", number=1, quota=3)
    assert core.submit(template, 1, data)
    assert len(core.submit_many(template, 2, [data] * 5)) == 2
    assert core.submit_many(template, 9, [data]) == []
    assert core.submit(template, 9, data) == 0
    future: Future[Any] = Future()
    queue = deque([(template, 9, data, time.monotonic_ns())])
    assert not core.send(queue, {9: future})
    assert core.submit(Template(class_name="b", number=2, quota=1), 4, frame(tasks.same, 1))
    pool.event(OUTCOME, number=2)
    gate.arrival()
    gate.let_one_go()
    pool.event(OUTCOME, number=1)
    assert core.send(queue, {9: future})
    assert core.submit(template, 10, data) == 0
    gate.open()
    pool.values(3)
    assert len(core.submit_many(template, 20, [data] * 5)) == 3
    pool.values(3)


def test_what_the_library_refuses_does_not_count(pool: Pool) -> None:
    pool.add("a")
    unknown = Template(class_name="nobody", number=1, quota=1)
    for _ in range(3):
        with pytest.raises(GpuDispatchError, match="nobody"):
            pool.core.submit(unknown, 1, b"")
        with pytest.raises(GpuDispatchError, match="nobody"):
            pool.core.submit_many(unknown, 1, [b"", b""])
        with pytest.raises(TypeError):
            pool.core.submit(unknown, 1, 17)  # type: ignore[arg-type]
    assert pool.core.submit(Template(class_name="a", number=1, quota=1), 1, frame(tasks.same))
    pool.values(1)


def test_a_quota_with_many_threads(pool: Pool, gate: Gate) -> None:
    pool.add("a")
    template = Template(class_name="a", number=1, quota=100)
    data = frame(tasks.through, gate.address)
    accepted = []

    def submits(first: int) -> None:
        for n in range(20):
            accepted.append(pool.core.submit(template, first + n, data) > 0)
            accepted.extend([True] * len(pool.core.submit_many(template, first + n, [data] * 3)))

    threads = [threading.Thread(target=submits, args=(1 + 100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(accepted) == 100
    gate.open()
    pool.values(100)


# ---- the backlog ----


def test_a_class_without_room_does_not_stop_others(pool: Pool, gate: Gate) -> None:
    pool.add("a")
    pool.add("b")
    data = frame(tasks.through, gate.address)
    a = Template(class_name="a", number=1, quota=1)
    has_room = Template(class_name="a", number=1, quota=2)
    b = Template(class_name="b", number=2)
    futures: dict[int, Future[Any]] = {tag: Future() for tag in range(1, 5)}
    now = time.monotonic_ns()
    backlog = {
        (5, 1): deque([(a, 2, frame(tasks.same, 2), now)]),
        (3, 1): deque([(has_room, 3, frame(tasks.same, 3), now)]),
        (0, 2): deque([(b, 4, frame(tasks.same, 4), now)]),
    }
    desk = (
        threading.RLock(), threading.RLock(), pool.inbox, futures, None, backlog, waits.Condition()
    )  # fmt: skip

    def attend(tag: int) -> None:
        while pool.core.attend(NEVER, tag, desk) != DONE:
            assert pool.inbox.popleft().kind == CLASS  # which only the pool's thread takes

    futures[1]._id = pool.core.submit(a, 1, data)
    last = futures[4]
    attend(4)
    assert last.result() == 4
    assert list(backlog) == [(5, 1), (3, 1)]
    gate.open()
    last = futures[3]
    attend(3)
    assert (last.result(), futures, backlog) == (3, {}, {})


def test_what_waited_in_the_package_keeps_its_place(pool: Pool, gate: Gate) -> None:
    pool.add("a", max_workers=1)
    template = Template(class_name="a")
    before = time.monotonic_ns()
    pool.core.submit(template, 1, frame(tasks.through, gate.address, 1))
    gate.arrival()
    # more than are sent ahead to the worker
    pool.core.submit_many(template, 2, [frame(tasks.same, n) for n in range(2, 200)])
    queue = deque([(template, 999, frame(tasks.same, 999), before)])
    pool.core.send(queue, {999: Future()})
    gate.open()
    values = pool.values(200)
    assert values.index(999) < values.index(199)
    assert [n for n in values if n != 999] == list(range(1, 200))


# ---- classes ----


def test_the_memory_of_a_setup_lives_as_long_as_its_dispatcher(pool: Pool) -> None:
    shared = _core.Shared(SETUP_AT)
    before = sys.getrefcount(shared)
    options: dict[str, object] = {"argv": worker_argv(), "setup_shared": shared}
    pool.core.class_add("a", {}, options, [])
    options.clear()
    assert sys.getrefcount(shared) == before + 1
    pool.core.class_remove("a", FINISH_NOW)
    pool.event(CLASS, change=CLASS_REMOVED)
    assert sys.getrefcount(shared) == before + 1
    with pytest.raises(GpuDispatchError):
        pool.core.class_set("a", UNLOAD)
    pool.close()
    assert sys.getrefcount(shared) == before


def test_setup_data_of_any_buffer(pool: Pool) -> None:
    data = bytes(SETUP_AT) + bytes(codec.join(setup()))
    for name, buffer in ("a", data), ("b", bytearray(data)), ("c", memoryview(data)):
        options: dict[str, object] = {"argv": worker_argv(), "setup_data": buffer}
        pool.core.class_add(name, {"min_residence": AT_ONCE}, options, [])
        pool.core.submit(Template(class_name=name), 1, frame(tasks.same, name))
    assert sorted(pool.values(3)) == ["a", "b", "c"]
    with pytest.raises(TypeError, match="setup_data"):
        pool.core.class_add("d", {}, {"setup_data": "text"}, [])


def test_a_worker_leaves_after_the_keep_alive_of_its_task(pool: Pool) -> None:
    pool.add("a")
    pool.core.submit(Template(class_name="a", keep_alive=1000), 1, frame(tasks.same))
    assert pool.event(CLASS, change=UNLOADED)


@pytest.mark.parametrize(
    ("fields", "options", "needs", "error"),
    [
        ({"priority": 1}, {}, [], TypeError),
        ({"pinned": 1 << 32}, {}, [], OverflowError),
        ({"residence": 3}, {}, [], ValueError),
        ({}, {"colour": 1}, [], TypeError),
        ({}, {}, [{"device": 1}], TypeError),
        ({}, {}, [{"on": 1}], TypeError),
        ({}, {}, [{"on": "fake:0\0"}], ValueError),
        ({}, {}, [1], TypeError),
        ({}, {}, [{"devices": 1}] * 5, ValueError),
        ({}, {}, [{"devices": 3}], GpuDispatchError),
    ],
)
def test_classes_that_are_refused(
    pool: Pool, fields: Any, options: Any, needs: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        pool.core.class_add("a", fields, {"argv": ["true"], **options}, needs)
    assert pool.core.classes() == []


def test_templates_that_are_refused() -> None:
    with pytest.raises(ValueError, match="number is 256"):
        Template(number=256)
    with pytest.raises(ValueError, match="class_name has more than 63 bytes"):
        Template(class_name="x" * 64)
    with pytest.raises(TypeError, match="'devise'"):
        Template(request=[{"devise": 1}])
    with pytest.raises(TypeError):
        Template(request={"devices": 1})  # type: ignore[arg-type]
    assert Template(class_name="x" * 63, label="y" * 63, number=255, request=[])


def test_a_dispatcher_that_is_not_pooled_has_none() -> None:
    core = _core.Dispatcher({"devices": "cpu:1", "argv": worker_argv()})
    try:
        with pytest.raises(ValueError, match="pooled"):
            core.class_add("a", {}, {}, [])
        with pytest.raises(ValueError, match="pooled"):
            core.explain(1, None)
        with pytest.raises(ValueError, match="out of range"):
            core.classes()
    finally:
        core.destroy()
        del core


# ---- reasons ----


def test_why_a_task_waits(pool: Pool, gate: Gate) -> None:
    pool.add("a", [{"devices": 1, "memory": 10 * GIB}], max_workers=1)
    pool.add_external()
    running = pool.core.submit(Template(class_name="a"), 1, frame(tasks.through, gate.address))
    gate.arrival()
    assert pool.core.explain(running, None) == []
    big = Template(class_name="jobs", request=[{"devices": 2, "memory": 10 * GIB}])
    waiting = pool.core.submit(big, 2, b"")
    (why,) = pool.core.explain(waiting, None)
    assert (why["kind"], why["class_name"], why["unit"]) == ("MAX_WAIT", "a", "")
    rows = pool.core.explain(0, Template(class_name="jobs", request=[{"devices": 2}]))
    assert waiting in {row["task_id"] for row in rows}
    with pytest.raises(GpuDispatchError):
        pool.core.explain(12345, None)
    with pytest.raises(TypeError):
        pool.core.explain(0, 17)  # type: ignore[arg-type]
    gate.open()
    pool.event(OUTCOME)
    assert pool.event(GRANTED).task_id == waiting


def test_reasons_have_units(pool: Pool) -> None:
    pool.add_external()
    half: dict[str, object] = {"devices": 1, "share": 6000, "memory": 9 * GIB, "on": "fake:0"}
    granted(pool, request=[half])
    for more, unit, need in ({"memory": GIB}, "share", 6000), ({"share": 1}, "bytes", 9 * GIB):
        why, never = pool.core.explain(0, Template(class_name="jobs", request=[half | more]))
        assert (never["kind"], never["unit"], never["device"]) == ("NEVER", "", "fake:1")
        assert why["unit"] == unit
        assert why["need"] == need > why["have"]
        assert (why["device"], why["variant"]) == ("fake:0", 0)
    second = Template(class_name="jobs", request=[half, half | {"on": "fake:1"}])
    assert pool.core.explain(0, second) == []  # it would start there at once


def test_more_reasons_than_expected() -> None:
    pool = Pool("fake:40", max_workers=1)
    try:
        for n in range(40):
            pool.core.device_pause(f"fake:{n}")
        pool.add_external()
        rows = pool.core.explain(0, Template(class_name="jobs"))
        assert {row["device"] for row in rows if row["kind"] == "PAUSED"} == {
            f"fake:{n}" for n in range(40)
        }
    finally:
        pool.close()


# ---- work that the host runs ----


def granted(
    pool: Pool, tag: int = 1, request: list[dict[str, object]] | None = None, limit: int = 0
) -> tuple[int, Event]:
    template = Template(class_name="jobs", number=7, quota=1, request=request, limit=limit)
    id_ = pool.core.submit(template, tag, b"")
    assert id_
    return id_, pool.event(GRANTED, task_id=id_)


def test_a_task_that_the_host_runs(pool: Pool) -> None:
    pool.add_external()
    request: list[dict[str, object]] = [
        {"devices": 1, "share": 2500, "memory": 4 * GIB, "not_on": "fake:0"},
        {"devices": 2, "host_memory": GIB},
    ]
    id_, event = granted(pool, RAW | 3, request=request)
    (uuid,) = [row["uuid"] for row in pool.core.devices() if row["name"] == "fake:1"]
    assert (event.device, event.device_uuid, event.class_name) == ("fake:1", uuid, "jobs")
    assert (event.share, event.memory) == (2500, 4 * GIB)
    assert (event.tag, event.number, event.attempt) == (RAW | 3, 7, 1)
    with pytest.raises(GpuDispatchError):
        pool.core.started(id_, 2)
    pool.core.started(id_, event.attempt, pid=0, session=0)
    pool.core.progress(id_, 1, 0.25, "a quarter")
    report = pool.event(PROGRESS)
    assert (report.progress, report.text, report.number) == (0.25, "a quarter", 7)
    pool.core.ended(id_, 1, SUCCESS, text="well", result=b"no frame")
    end = pool.event(OUTCOME)
    assert (end.tag, end.number, end.outcome) == (RAW | 3, 7, SUCCESS)
    assert (end.take(), end.text, end.device) == (b"no frame", "well", "fake:1")
    with pytest.raises(GpuDispatchError):
        pool.core.ended(id_, 1, SUCCESS)
    granted(pool)  # there is room again


def test_a_grant_that_is_declined(pool: Pool) -> None:
    pool.add_external()
    id_, event = granted(pool)
    pool.core.decline(id_, event.attempt)
    again = pool.event(GRANTED, task_id=id_)
    assert again.attempt == event.attempt + 1
    pool.core.decline(id_, again.attempt, not_before=time.monotonic_ns() + 1000)
    last = pool.event(GRANTED, task_id=id_)
    pool.core.started(id_, last.attempt)
    pool.core.ended(id_, last.attempt, ERROR, 17, "no such file")
    end = pool.event(OUTCOME)
    assert (end.outcome, end.code, end.text) == (ERROR, 17, "no such file")
    assert end.result is None


def test_a_large_result(pool: Pool) -> None:
    pool.add_external()
    id_, event = granted(pool)
    pool.core.ended(id_, event.attempt, SUCCESS, result=bytes(1 << 20))
    assert bytes(pool.event(OUTCOME).take() or b"") == bytes(1 << 20)


def test_work_that_is_cancelled(pool: Pool) -> None:
    pool.add_external()
    before = time.monotonic_ns()
    id_, event = granted(pool, request=[{"devices": 2}])
    pool.core.started(id_, event.attempt)
    assert pool.core.cancel(id_, True)
    asked = pool.event(REVOKED)
    assert (asked.revoked, asked.revoke, asked.device) == (CANCEL, SOFT, "fake:0,fake:1")
    assert asked.device_uuid
    assert asked.revoke_by > before
    assert (asked.class_name, asked.number, asked.tag) == ("jobs", 7, 1)
    pool.core.ended(id_, event.attempt, ERROR, 1)
    pool.event(OUTCOME)


def test_a_promise(pool: Pool) -> None:
    """The time by which a task starts that waits for tasks with limits."""
    pool.add_external()
    now = time.monotonic_ns()
    long, event = granted(pool, request=[{"devices": 2}], limit=100 * 10**9)
    pool.core.started(long, event.attempt)
    short = Template(class_name="jobs", number=2, request=[{"devices": 1}])
    next_ = pool.core.submit(short, 5, b"")
    told = pool.event(PROMISE)
    assert (told.task_id, told.tag, told.number) == (next_, 5, 2)
    assert told.promise
    assert told.starts_by > now + 100 * 10**9
    pool.core.ended(long, event.attempt, SUCCESS)


def test_members_of_an_event_are_numbers_or_none(pool: Pool) -> None:
    pool.add_external()
    _, event = granted(pool)
    members = operator.attrgetter("change", "promise", "starts_by", "revoked", "revoke")
    assert members(event) == (0, 0, 0, 0, 0)
    assert event.output is None
