# SPDX-License-Identifier: MIT
"""classic.py: the founding interface, and one test for each fault that its first version had.

Those tests have the number of the fault in their docstring: a worker that dies, limits that round,
callbacks that raise... (G1 to G20).
"""

from __future__ import annotations

import gc
import io
import os
import pathlib
import queue
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import classic_workers as w
import pytest
from conftest import Terminal

from gpudispatch import (
    BaseWorker,
    Dispatcher,
    NoWorker,
    RichDispatcher,
    Times,
    UnsupportedPlatform,
    classic_board,
    classic_feeder,
    classic_places,
    classic_run,
    executor,
)


class Log:
    """All callbacks of a run, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.threads: set[threading.Thread] = set()

    def note(self, name: str) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            self.threads.add(threading.current_thread())
            self.calls.append((name, *arguments))

        return call

    def callbacks(self) -> dict[str, Any]:
        names = classic_run.Calls._fields
        return {name: self.note(name) for name in names}

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [call[1:] for call in self.calls if call[0] == name]

    def ends(self) -> dict[int, tuple[Any, ...]]:
        """The one end of each task."""
        names = ("on_success", "on_error", "on_timeout")
        ends = [call for call in self.calls if call[0] in names]
        by_id = {call[1]: (call[0], *call[2:]) for call in ends}
        assert len(by_id) == len(ends), "a task has ended twice"
        return by_id


def run(
    items: Iterable[Any],
    gpu_ids: list[int] | None = None,
    worker: type[BaseWorker] = w.Worker,
    dispatcher: dict[str, Any] | None = None,
    **kwargs: Any,
) -> Log:
    log = Log()
    kwargs = {**log.callbacks(), **kwargs}
    Dispatcher(worker, gpu_ids or [0], **dispatcher or {}).run(items, **kwargs)
    return log


@pytest.fixture
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed setup is tried again at once."""
    opened = executor._open

    def open_quickly(checked: Any, *rest: Any) -> Any:
        checked.options["backoff"] = 1
        return opened(checked, *rest)

    monkeypatch.setattr(executor, "_open", open_quickly)


@pytest.fixture
def gate(tmp_path: pathlib.Path) -> str:
    path = str(tmp_path / "gate")
    os.mkfifo(path)
    return path


# ---- the interface ----


def test_items_and_ids() -> None:
    log = run(("double", x) for x in range(100))
    assert {i: end[:2] for i, end in log.ends().items()} == {
        i: ("on_success", 2 * i) for i in range(100)
    }
    assert {end[2] for end in log.ends().values()} == {0}
    assert log.of("on_exit") == [()]
    assert log.calls[-1] == ("on_exit",)
    assert log.threads == {threading.current_thread()}


def test_positional_arguments() -> None:
    log = Log()
    c = log.callbacks()
    Dispatcher(w.Worker, [0], 16, True).run(
        iter([("whoami",)]), c["on_success"], c["on_error"], c["on_timeout"], c["on_setup_fail"],
        c["on_task_start"], c["on_exit"], 7, 30.0, 1, path="x",
    )  # fmt: skip
    ((_, value, _),) = log.of("on_success")
    assert (value["seed"], value["kwargs"]) == (7, {"path": "x"})
    assert log.of("on_task_start") == [(0, 0)]


def test_workers_differ() -> None:
    """Each worker gets its number and its seed; setup keywords go to all."""
    log = run([("whoami",)] * 60, [3, 1], base_seed=100, model="m")
    for _, value, worker in log.of("on_success"):
        assert value["gpu_id"] == worker
        assert value["seed"] == 100 + worker
        assert value["kwargs"] == {"model": "m"}
        assert value["device"].startswith("cpu:")
    assert {worker for _, _, worker in log.of("on_success")} <= {1, 3}


def test_start_comes_before_the_end() -> None:
    log = run([("double", 1), ("fail", "no"), ("double", 3)] * 20, [0, 1])
    order = [call[:2] for call in log.calls if call[0] != "on_progress"]
    for i, (end, *_) in log.ends().items():
        assert order.count(("on_task_start", i)) == 1
        assert order.index(("on_task_start", i)) < order.index((end, i))


def test_progress(gate: str) -> None:
    log = Log()
    callbacks = log.callbacks()
    note = callbacks["on_progress"]

    def progress(i: int, name: str, times: Times, worker: int) -> None:
        note(i, name, times, worker)
        if name == "progress":
            open(gate, "wb").close()

    callbacks["on_progress"] = progress
    Dispatcher(w.Worker, [0]).run([("tell", gate), ("fail", "no")], **callbacks)
    events = [(i, name, worker) for i, name, _, worker in log.of("on_progress")]
    assert [e for e in events if e[0] == 0] == [
        (0, "queued", -1), (0, "started", 0), (0, "progress", 0), (0, "success", 0),
    ]  # fmt: skip
    assert [name for i, name, _ in events if i == 1] == ["queued", "started", "error"]
    for _, name, times, _ in log.of("on_progress"):
        assert isinstance(times, Times)
        assert 0 < times.queued <= time.monotonic()
        if name != "queued":
            assert times.queued <= times.started
        if name in ("success", "error"):
            assert times.started <= times.ended <= time.monotonic()


@pytest.mark.parametrize(("items", "calls"), [([], []), ([7], [("on_success", 0, 7, 0)])])
def test_a_class_without_cleanup(items: list[int], calls: list[Any]) -> None:
    log = run(items, worker=w.Frugal, on_progress=None, on_task_start=None)
    assert log.calls == [*calls, ("on_exit",)]


def test_the_generator_may_wait_for_results() -> None:
    """It has a thread of its own: an item may depend on the result of another."""
    results: queue.Queue[int] = queue.Queue()
    log = Log()

    def items() -> Iterator[Any]:
        yield ("double", 1)
        for _ in range(5):
            yield ("double", results.get(timeout=30))

    def succeed(i: int, value: int, worker: int) -> None:
        log.note("on_success")(i, value, worker)
        results.put(value)

    Dispatcher(w.Worker, [0]).run(items(), succeed)
    assert [value for _, value, _ in log.of("on_success")] == [2, 4, 8, 16, 32, 64]


def test_arrays_in_setup_and_items() -> None:
    numpy = pytest.importorskip("numpy")
    table = numpy.arange(100_000, dtype="float32")
    log = run([numpy.ones(70_000), ("whoami",)], table=table)
    assert log.ends()[0][1].sum() == 70_000
    assert (log.ends()[1][1]["kwargs"]["table"] == table).all()


def test_an_array_that_the_generator_uses_again() -> None:
    numpy = pytest.importorskip("numpy")

    def items() -> Iterator[Any]:
        array = numpy.zeros(50_000)
        for i in range(20):
            array[:] = i
            yield array

    log = run(items())
    assert [log.ends()[i][1][0] for i in range(20)] == list(range(20))


def test_max_attempts() -> None:
    log = run([("die",)], dispatcher={"max_attempts": 2})
    assert log.of("on_task_start") == [(0, 0), (0, 0)]
    assert [end[0] for end in log.ends().values()] == ["on_error"]


def test_output_of_workers(capfd: pytest.CaptureFixture[str]) -> None:
    for suppress, shown in ((False, True), (True, False)):
        run([("say", "to stdout", "to stderr")], dispatcher={"suppress_worker_output": suppress})
        out, err = capfd.readouterr()
        assert ("to stdout\n" in out, "to stderr\n" in err) == (shown, shown)


def test_failures_without_on_error_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    run([("fail", "first"), ("fail", "second")], on_error=None)
    assert len(caplog.records) == 2
    assert "ValueError: " in caplog.text
    assert "2 tasks failed" in caplog.text


def test_on_exit_that_raises() -> None:
    def leave() -> None:
        raise KeyError("exit")

    with pytest.raises(KeyError, match="exit"):
        run([1], on_exit=leave)


def test_one_run_at_a_time() -> None:
    dispatcher = Dispatcher(w.Worker, [0])
    refused: list[str] = []

    def again(*_: Any) -> None:
        with pytest.raises(RuntimeError, match="running already"):
            dispatcher.run([], None)
        refused.append("yes")

    for _ in range(2):
        dispatcher.shutdown()  # of no run
        dispatcher.run([1], again)
    assert refused == ["yes", "yes"]


# ---- arguments ----


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ((int, [0]), TypeError, "BaseWorker"),
        ((w.Worker(), [0]), TypeError, "BaseWorker"),
        ((w.Worker, []), ValueError, "gpu_ids cannot be empty"),
        ((w.Worker, "01"), TypeError, "gpu_ids"),
        ((w.Worker, 0), TypeError, "gpu_ids"),
        ((w.Worker, [0, True]), TypeError, "gpu_ids has True"),
        ((w.Worker, [0, 1.0]), TypeError, "gpu_ids has 1.0"),
        ((w.Worker, [-1]), ValueError, "gpu_ids has -1"),
        ((w.Worker, ["0"]), TypeError, "gpu_ids has '0'"),
        ((w.Worker, range(1025)), ValueError, "1025"),
        ((w.Worker, [0], 0), ValueError, "queue_size"),
        ((w.Worker, [0], 1.5), TypeError, "queue_size"),
        ((w.Worker, [0], 8, 1), TypeError, "suppress_worker_output"),
    ],
)
def test_wrong_arguments(arguments: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Dispatcher(*arguments)


@pytest.mark.parametrize(
    ("rate", "kind"), [(0, ValueError), (-1.0, ValueError), (float("nan"), ValueError),
                       (None, TypeError), ("2", TypeError)],
)  # fmt: skip
def test_wrong_refresh_rate(rate: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="refresh_rate"):
        RichDispatcher(w.Worker, [0], refresh_rate=rate)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"on_success": 3}, TypeError, "on_success"),
        ({"on_error": "x"}, TypeError, "on_error"),
        ({"base_seed": 1.5}, TypeError, "base_seed"),
        ({"task_timeout": 0}, ValueError, "task_timeout"),
        ({"task_timeout": "1"}, TypeError, "task_timeout"),
        ({"task_timeout": float("nan")}, ValueError, "task_timeout"),
        ({"total_tasks": -1}, ValueError, "total_tasks"),
        ({"generator": 3}, TypeError, "generator"),
    ],
)
def test_wrong_arguments_of_run(
    arguments: dict[str, Any], kind: type[Exception], words: str
) -> None:
    dispatcher = Dispatcher(w.Worker, [0])
    given: dict[str, Any] = {"generator": [1], "on_success": None, **arguments}
    with pytest.raises(kind, match=words):
        dispatcher.run(**given)
    dispatcher.run([1], None)  # it is free again


def test_other_platforms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UnsupportedPlatform, match="Linux only"):
        Dispatcher(w.Worker, [0])


def test_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        BaseWorker()  # type: ignore[abstract]


# ---- places ----


@pytest.mark.parametrize(
    ("gpu_ids", "there", "devices", "places"),
    [
        ([0, 1, 2], 4, "0,1,2", [(0, 0, 42, True), (1, 1, 43, True), (2, 2, 44, True)]),
        ([5, 0], 0, "cpu:1,cpu:1", [(5, 5, 47, False), (0, 0, 42, False)]),
        ([2, 0, 3], 1, "cpu:1,0,cpu:1",
         [(2, 2, 44, False), (0, 0, 42, True), (3, 3, 45, False)]),
        ([0, 1, 0, 0], 2, "0/3,1",
         [(0, 0, 42, True), (0, 2, 44, True), (0, 3, 45, True), (1, 1, 43, True)]),
        ([7, 7], 0, "cpu:1,cpu:1", [(7, 7, 49, False), (7, 8, 50, False)]),
    ],
)  # fmt: skip
def test_plan(
    gpu_ids: list[int], there: int, devices: str, places: list[Any],
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """The first worker of a GPU has its number; slots of one GPU are neighbours."""
    assert classic_places.plan(gpu_ids, 42, there) == (devices, places)
    assert ("GPU 2, 3: not there (of 1)" in caplog.text) == (there == 1)


@pytest.mark.parametrize(
    ("count", "visible", "usable"),
    [(4, None, 4), (0, "0,1", 0), (4, "2,0", 2), (4, "", 0), (4, "1, 3 ,-1,2", 2),
     (4, "GPU-5c,,1", 1)],
)  # fmt: skip
def test_usable_gpus(count: int, visible: str | None, usable: int) -> None:
    assert classic_places.usable_gpus(count, visible) == usable


ON_FAKES = """
import classic_workers as w
from gpudispatch import Dispatcher
if __name__ == "__main__":
    seen = {}
    for _ in range(20):
        Dispatcher(w.Worker, [1, 0, 7]).run(
            [("whoami",)] * 30, lambda i, value, worker: seen.setdefault(worker, value))
        if len(seen) == 3:
            break
    facts = {k: (v["gpu_id"], v["seed"], v["device"]) for k, v in seen.items()}
    assert facts == {0: (0, 42, "gpu:0"), 1: (1, 43, "gpu:1"), 7: (7, 49, "cpu:0")}, facts
"""


def test_gpus_of_a_driver(tmp_path: pathlib.Path) -> None:
    """On a machine with two GPUs, which are the tests' fakes of the driver."""
    fakes = pathlib.Path(os.environ.get("GPUD_TEST_BUILD", ".")) / "tests/programs"
    if not (fakes / "libnvidia-ml.so.1").exists():
        pytest.skip("the build has no fakes of the driver (ninja test-programs)")
    program = tmp_path / "program.py"
    program.write_text(ON_FAKES)
    surroundings = dict(os.environ, LD_LIBRARY_PATH=str(fakes), FAKE_SCRIPT_TEXT="gpus 2\n")
    surroundings.pop("CUDA_VISIBLE_DEVICES", None)
    subprocess.run([sys.executable, str(program)], env=surroundings, check=True, timeout=120)


def test_environment_may_name_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUDISPATCH_DEVICES", "cpu:4")
    monkeypatch.setattr("gpudispatch._core.machine", lambda: 1 / 0)
    assert classic_places.gpus_there() == 0


# ---- G1 to G20 ----


@pytest.mark.parametrize(
    ("item", "words", "worker", "limit"),
    [
        (("die",), ["SIGKILL"], 0, None),  # G1
        (("leave", 1), ["last words", "status 1"], 0, None),  # G2
        (("leave_softly", 1), ["SystemExit"], 0, None),
        (("unpicklable",), ["pickle"], 0, None),  # G3
        (("time_out",), ["TimeoutError: my own"], 0, None),  # G9
        (("time_out",), ["TimeoutError: my own"], 0, 30.0),
        (threading.Lock(), ["pickle"], -1, None),
        (("fail", "the reason"), ["Traceback (most recent call last):", "classic_workers.py"], 0,
         None),
    ],
    ids=str,
)  # fmt: skip
def test_fault_of_one_item(item: Any, words: list[str], worker: int, limit: float | None) -> None:
    """G1, G2, G3: the run went on for ever, a result was dropped in silence.  G9: a TimeoutError of
    the task was reported as the limit's, of None seconds."""
    ends = run([("double", 1), item, ("double", 2)] * 3, task_timeout=limit).ends()
    assert [ends.pop(i)[0] for i in (0, 2, 3, 5, 6, 8)] == ["on_success"] * 6
    for name, text, who in ends.values():
        assert (name, who) == ("on_error", worker)
        assert all(word in text for word in words), text
        if item == ("fail", "the reason"):
            assert text.startswith(words[0])
            assert text.endswith("ValueError: the reason\n")


def test_restarts_are_counted() -> None:
    dispatcher = Dispatcher(w.Worker, [0])
    dispatcher.run([("die",), ("double", 1)], **Log().callbacks())
    assert dispatcher.get_stats()["gpu_status"][0]["restarts"] == 1


def test_one_of_two_workers_killed() -> None:
    """G1, with a worker that goes on."""
    ends = run([("double", 1)] * 10 + [("die",)] + [("double", 2)] * 10, [0, 1]).ends()
    assert len(ends) == 21
    assert [i for i, end in ends.items() if end[0] == "on_error"] == [10]


def test_setup_that_hangs() -> None:
    """G4: there was no limit for setup."""
    failed = threading.Event()

    def items() -> Iterator[Any]:
        yield ("double", 1)
        assert failed.wait(60)
        yield ("double", 2)

    seen: list[tuple[int, str]] = []

    def fail(gpu_id: int, text: str) -> None:
        seen.append((gpu_id, text))
        failed.set()

    log = run(
        items(), [0, 1], w.BadSetup, {"setup_timeout": 3.0}, on_setup_fail=fail, bad=(1,),
        how="hang",
    )  # fmt: skip
    assert [gpu_id for gpu_id, _ in seen] == [1]
    assert "setup_timeout" in seen[0][1]
    assert [end[0] for end in log.ends().values()] == ["on_success"] * 2


LIMIT = 0.4


def test_limits_are_exact() -> None:
    """G5, G6, G18: limits were rounded to whole seconds, early or late, and a task that ended just
    before its limit could be a timeout."""
    log = run(
        [("nap", LIMIT * part) for part in (0.1, 0.9, 0.95, 0.99, 1.01, 1.05, 1.5, 2.0)] * 2,
        [0, 1],
        task_timeout=LIMIT,
    )
    ends = log.ends()
    times = {i: t for i, name, t, _ in log.of("on_progress") if name in ("success", "timeout")}
    for i, end in ends.items():
        spent = times[i].ended - times[i].started
        assert end[0] == ("on_success" if spent <= LIMIT else "on_timeout"), spent
        if end[0] == "on_timeout":
            assert end[1:] == (LIMIT, 0) or end[1:] == (LIMIT, 1)
    assert [ends[i][0] for i in (6, 7, 14, 15)] == ["on_timeout"] * 4


@pytest.mark.parametrize(
    ("item", "dispatcher"), [(("swallow", 0.3), {}), (("native",), {"grace": 0.1})]
)
def test_a_task_that_ignores_its_limit(item: Any, dispatcher: dict[str, Any]) -> None:
    """G7: a task that caught the exception was a success, four times too late.  G8: in native code
    the limit came when the call had returned."""
    log = run([item, ("double", 2)], dispatcher=dispatcher, task_timeout=0.8)
    assert log.ends() == {0: ("on_timeout", 0.8, 0), 1: ("on_success", 4, 0)}
    (t,) = [t for i, name, t, _ in log.of("on_progress") if (i, name) == (0, "timeout")]
    assert t.ended - t.started < 30


def test_no_on_timeout() -> None:
    """What has no callback of its own goes to on_error."""
    ((name, text, _),) = run([("nap", 60)], task_timeout=0.1, on_timeout=None).ends().values()
    assert name == "on_error"
    assert "0.1" in text


def test_generator_raises() -> None:
    """G10: one line was printed, and run() returned."""

    def items() -> Iterator[Any]:
        yield ("double", 1)
        yield ("double", 2)
        raise LookupError("no more files")

    log = Log()
    with pytest.raises(LookupError, match="no more files"):
        Dispatcher(w.Worker, [0]).run(items(), **log.callbacks())
    assert [end[0] for end in log.ends().values()] == ["on_success"] * 2
    assert log.of("on_exit") == [()]


@pytest.mark.parametrize(
    "name", ["on_success", "on_error", "on_timeout", "on_task_start", "on_progress"]
)
def test_callback_raises(name: str) -> None:
    """G11: the other results were lost.  The first exception of several is that of the run."""
    log = Log()
    callbacks = log.callbacks()
    pulled = 0

    def items() -> Iterator[Any]:
        nonlocal pulled
        for i in range(100_000):
            pulled += 1
            yield [("double", i), ("fail", "x"), ("nap", 60)][i % 3]

    def call(i: int, *rest: Any) -> None:
        log.note(name)(i, *rest)
        raise ArithmeticError(f"number {len(log.of(name))}")

    callbacks[name] = call
    with pytest.raises(ArithmeticError, match=r"number 1$"):
        Dispatcher(w.Worker, [0, 1], 32).run(items(), **callbacks, task_timeout=0.2)
    assert sorted(log.ends()) == list(range(pulled))
    assert pulled < 100_000
    assert log.of("on_exit") == [()]


@pytest.mark.parametrize(
    ("name", "worker", "setup", "count"),
    [
        ("on_setup_fail", w.BadSetup, {"bad": (1,)}, 100_000),
        ("on_cleanup_fail", w.BadCleanup, {}, 5),
    ],
)
def test_callback_of_a_worker_raises(
    name: str, worker: type[BaseWorker], setup: dict[str, Any], count: int, no_backoff: None
) -> None:
    """G11, with what is told of workers: the one of the setup ends the generator, too."""
    log = Log()
    callbacks = log.callbacks()
    told = threading.Event()
    pulled = 0

    def items() -> Iterator[Any]:
        nonlocal pulled
        pulled += 1
        yield 7
        if name == "on_setup_fail":
            assert told.wait(60)
        while pulled < count:
            pulled += 1
            yield 7

    def call(*arguments: Any) -> None:
        log.note(name)(*arguments)
        told.set()
        raise ArithmeticError(f"number {len(log.of(name))}")

    callbacks[name] = call
    with pytest.raises(ArithmeticError, match=r"number 1$"):
        Dispatcher(worker, [0, 1], 32).run(items(), **callbacks, **setup)
    assert sorted(log.ends()) == list(range(pulled))
    assert pulled < count if name == "on_setup_fail" else pulled == count
    assert log.calls[-1] == ("on_exit",)


def test_cleanup_fails() -> None:
    """G12: it was never told."""
    log = run([1, 2], [0, 4], w.BadCleanup)
    failed = dict(log.of("on_cleanup_fail"))
    for worker in {call[2] for call in log.of("on_success")}:
        assert f"RuntimeError: cannot put GPU {worker} away" in failed[worker]
        assert "Traceback" in failed[worker]
    assert log.calls[-1] == ("on_exit",)


def test_equal_ids(tmp_path: pathlib.Path) -> None:
    """G13: both workers had the seed 42 and the number 0."""
    gates = [str(tmp_path / f"gate{i}") for i in range(3)]
    for path in gates:
        os.mkfifo(path)
    seen: dict[int, dict[str, Any]] = {}

    def hold() -> None:
        """Opens the gates once all three workers are behind them."""
        for fd in [os.open(path, os.O_WRONLY) for path in gates]:
            os.close(fd)

    holder = threading.Thread(target=hold, daemon=True)
    holder.start()

    def items() -> Iterator[Any]:
        for path in gates:
            yield ("whoami_behind", path)
        holder.join(60)
        for _ in range(200):
            yield ("whoami",)

    def succeed(i: int, value: Any, worker: int) -> None:
        assert seen.setdefault(worker, value) == value

    Dispatcher(w.Worker, [0, 0, 1]).run(items(), succeed)
    facts = {worker: (v["gpu_id"], v["seed"]) for worker, v in seen.items()}
    assert facts == {0: (0, 42), 1: (1, 43), 2: (0, 44)}


def test_slow_callback() -> None:
    """G19: results piled up without limit."""
    pulled = 0
    most = 0
    ended = 0

    def items() -> Iterator[Any]:
        nonlocal pulled
        for _ in range(300):
            pulled += 1
            yield b"x" * 10_000

    def succeed(*_: Any) -> None:
        nonlocal ended, most
        until = time.monotonic() + 0.001
        while time.monotonic() < until:
            pass
        ended += 1
        most = max(most, pulled - ended)

    Dispatcher(w.Worker, [0, 1], 16).run(items(), succeed)
    assert ended == 300
    assert most <= 16


def test_bytes_ahead_are_counted_by_two_threads() -> None:
    """One count that both changed lost some changes, and at 1 MiB the generator would stop."""
    feeder = classic_feeder.Feeder(range(20_000), 0, 1024, lambda _: None)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        feeder.thread.start()
        while not feeder.done or feeder.unsent:
            if feeder.unsent:
                tag = feeder.unsent[0].tag
                feeder.accepted(1)
                feeder.ended(tag)
    finally:
        sys.setswitchinterval(interval)
    assert feeder.pulled == 20_000
    assert feeder.bytes_in == feeder.bytes_out > 20_000


def test_stats_tell_of_dead_workers() -> None:
    """G20: a worker that had died was "processing" for ever."""
    dispatcher = Dispatcher(w.Worker, [0, 1])
    seen: list[Any] = []

    def items() -> Iterator[Any]:
        yield ("die",)
        assert gone.wait(60)
        yield ("double", 1)

    gone = threading.Event()

    def fail(i: int, text: str, worker: int) -> None:
        seen.append((dispatcher.get_stats()["gpu_status"][worker]["status"], worker))
        gone.set()

    dispatcher.run(items(), None, fail)
    assert [status for status, _ in seen] == ["restarting"]
    stats = dispatcher.get_stats()
    row = stats["gpu_status"][seen[0][1]]
    assert (row["status"], row["failed"], row["current_task"]) == ("finished", 1, None)


# ---- setup failures ----


@pytest.mark.parametrize("kind", [Dispatcher, RichDispatcher])
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raise", ["Traceback", "OSError: no model for {}"]),
        ("exit", ["status 3"]),
        ("cuda", ["invalid device ordinal", 'write "cuda" or "cuda:0"']),
    ],
)
def test_all_setups_fail(
    how: str, words: list[str], kind: type[Dispatcher], no_backoff: None
) -> None:
    log = Log()
    dispatcher = kind(w.BadSetup, [0, 1])
    with pytest.raises(RuntimeError, match="All workers failed during setup") as raised:
        dispatcher.run(range(5), **log.callbacks(), bad=(0, 1), how=how)
    assert isinstance(raised.value, NoWorker)
    reports = dict(log.of("on_setup_fail"))
    assert len(log.of("on_setup_fail")) == len(reports) == 2
    for gpu_id, text in reports.items():
        assert all(word.format(gpu_id) in text for word in words), text
    assert raised.value.traceback_text in reports.values()
    why = raised.value.message.removeprefix("All workers failed during setup: ")
    assert any(report.endswith(why) for report in reports.values()), why
    assert all(end[0] == "on_error" for end in log.ends().values())
    assert log.of("on_exit") == [()]
    stats = dispatcher.get_stats()
    assert stats["setup_failures"] == 6
    assert [row["status"] for row in stats["gpu_status"].values()] == ["error", "error"]


def test_all_setups_fail_while_the_generator_waits(no_backoff: None) -> None:
    never = threading.Event()

    def items() -> Iterator[Any]:
        never.wait(600)
        yield 1

    with pytest.raises(NoWorker):
        Dispatcher(w.BadSetup, [0]).run(items(), None, bad=(0,))
    never.set()


def test_one_setup_fails(no_backoff: None) -> None:
    log = run(range(50), [0, 1], w.BadSetup, bad=(1,))
    assert {end[0] for end in log.ends().values()} == {"on_success"}
    assert {end[2] for end in log.ends().values()} == {0}


def test_a_setup_that_works_at_the_second_try(no_backoff: None, tmp_path: pathlib.Path) -> None:
    log = run([1, 2], worker=w.SecondTry, flag=str(tmp_path / "flag"))
    assert [gpu_id for gpu_id, _ in log.of("on_setup_fail")] == [0]
    assert [end[0] for end in log.ends().values()] == ["on_success"] * 2


# ---- stats and shutdown ----


@pytest.mark.parametrize("kind", [Dispatcher, RichDispatcher])
def test_stats(kind: type[Dispatcher]) -> None:
    dispatcher = kind(w.Worker, [0, 1], 8)
    assert dispatcher.get_stats()["total"] == 0
    seen: list[Any] = []
    returned: Any = dispatcher.run(  # type: ignore[func-returns-value]
        [("double", 1), ("fail", "x"), ("nap", 60)] * 4,
        lambda *_: seen.append(dispatcher.get_stats()),
        on_error=lambda *_: None,
        task_timeout=1.0,
        total_tasks=12,
    )
    stats = dispatcher.get_stats()
    assert returned == (stats if kind is RichDispatcher else None)
    assert (stats["completed"], stats["failed"], stats["timeouts"]) == (4, 4, 4)
    assert (stats["total"], stats["pending"], stats["expected_total"]) == (12, 0, 12)
    assert stats["start_time"] is not None
    assert stats["end_time"] is not None
    assert stats["start_time"] < stats["end_time"] <= time.monotonic()
    rows = stats["gpu_status"].values()
    assert sum(row["completed"] + row["failed"] + row["timeouts"] for row in rows) == 12
    assert {row["status"] for row in rows} == {"finished"}
    assert [s["completed"] for s in seen] == [1, 2, 3, 4]
    assert all(0 <= s["pending"] <= 16 for s in seen)
    seen[0]["gpu_status"].clear()  # a copy
    assert len(dispatcher.get_stats()["gpu_status"]) == 2


def test_shutdown_in_a_callback() -> None:
    """The generator is closed, and what it has given ends."""
    dispatcher = Dispatcher(w.Worker, [0, 1], 64)
    log = Log()
    closed = threading.Event()
    pulled = 0

    def items() -> Iterator[Any]:
        nonlocal pulled
        try:
            for i in range(1_000_000):
                pulled += 1
                yield ("double", i)
        finally:
            closed.set()

    def succeed(*arguments: Any) -> None:
        log.note("on_success")(*arguments)
        dispatcher.shutdown()

    dispatcher.run(items(), succeed, log.note("on_error"))
    assert closed.wait(30)
    ends = log.ends()
    assert sorted(ends) == list(range(pulled))
    assert pulled < 1_000_000
    assert all("cancelled" in end[1] for end in ends.values() if end[0] == "on_error")


def test_shutdown_of_another_thread(gate: str) -> None:
    """It waits for what runs, and a generator that blocks does not hold it up."""
    dispatcher = Dispatcher(w.Worker, [0])
    never = threading.Event()
    log = Log()

    def items() -> Iterator[Any]:
        yield ("mark", gate, 0.2)
        never.wait(600)

    def stop() -> None:
        with open(gate, "rb") as file:
            file.read()
        dispatcher.shutdown()

    stopper = threading.Thread(target=stop)
    stopper.start()
    dispatcher.run(items(), **log.callbacks())
    stopper.join()
    never.set()
    assert log.ends() == {0: ("on_success", "marked", 0)}


def test_interrupts_at_random_points() -> None:
    """Ctrl-C between any two instructions: each item that was pulled has one end, or none if its
    callback was the one that was interrupted."""
    luck = random.Random(20)
    at_callback = pulled = 0

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    def items() -> Iterator[Any]:
        nonlocal pulled
        for i in range(10_000_000):
            pulled += 1
            yield i

    def later(main: int, seconds: float, over: threading.Event) -> None:
        if not over.wait(seconds):
            signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        for _ in range(12):
            ended: list[int] = []
            pulled = 0

            def end(i: int, *_: Any, ended: list[int] = ended) -> None:
                ended.append(i)

            dispatcher = Dispatcher(w.Frugal, [0, 1], 64)
            over = threading.Event()
            arguments = (threading.get_ident(), luck.uniform(0.15, 0.5), over)
            timer = threading.Thread(target=later, args=arguments)
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                dispatcher.run(items(), end, end)
            over.set()
            timer.join()
            assert len(set(ended)) == len(ended)
            missing = set(range(pulled)) - set(ended)
            assert len(missing) <= 1, missing
            at_callback += len(missing)
            assert dispatcher.get_stats()["pending"] == 0
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert at_callback <= 6


def test_nothing_is_left() -> None:
    """Nor does it wait for a garbage collection."""

    def facts() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), threading.active_count()

    def items() -> Iterator[Any]:
        yield 1
        raise LookupError

    run([1])
    gc.collect()
    gc.disable()
    try:
        before = facts()
        for _ in range(3):
            run([1, ("fail", "x")], [0, 1])
            with pytest.raises(LookupError):
                run(items(), [0, 1])
            RichDispatcher(w.Worker, [0], show_ui=False).run([1])
        assert facts() == before
    finally:
        gc.enable()


# ---- programs: Ctrl-C, the end of the host ----

HEAD = """
import os, signal, sys, threading, time
import classic_workers as w
from gpudispatch import Dispatcher, RichDispatcher
log = []
def note(name):
    return lambda *a: log.append((name, *a))
"""

INTERRUPTED = HEAD + """
def items():
    for i in range(40):
        yield ("mark", sys.argv[1], float(sys.argv[2])) if i == 0 else ("nap", 30.0)
    if sys.argv[3] == "block":
        threading.Event().wait(600)

def error(*a):
    log.append(("error", *a))
    if len(sys.argv) > 5 and dispatcher.get_stats()["pending"] == 1:
        open(sys.argv[5], "wb").close()

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" has it ignored
    dispatcher = Dispatcher(w.Worker, [0], 16, grace=float(sys.argv[4]))
    try:
        dispatcher.run(items(), note("ok"), error, note("timeout"), on_exit=note("exit"))
    except KeyboardInterrupt:
        log.append(("interrupted",))
    ids = [entry[1] for entry in log if entry[0] in ("ok", "error", "timeout")]
    assert sorted(ids) == list(range(len(ids))), ids
    assert log[-2:] == [("exit",), ("interrupted",)], log[-3:]
    print(len(ids), *(entry[0] for entry in sorted(log[:-2], key=lambda e: e[1])[:2]), flush=True)
"""


def start(program: str, tmp_path: pathlib.Path, *arguments: str) -> subprocess.Popen[str]:
    path = tmp_path / "program.py"
    path.write_text(program)
    return subprocess.Popen(
        [sys.executable, str(path), *arguments], stdout=subprocess.PIPE, text=True
    )


def first_pid(gate: str) -> int:
    """Waits until the first task runs; returns its worker's number."""
    with open(gate, "rb") as file:
        return int(file.read())


def stopped_for(gate: str, pid: int) -> float:
    """Waits for the end of a process; returns how long that took."""
    began = time.monotonic()
    fd = os.pidfd_open(pid)
    try:
        assert select.select([fd], [], [], 60)[0], f"process {pid} is still there"
    finally:
        os.close(fd)
    return time.monotonic() - began


@pytest.mark.parametrize("source", ["end", "block"])
def test_ctrl_c(source: str, gate: str, tmp_path: pathlib.Path) -> None:
    """G14, G16: what ran and what waited got no callback."""
    with start(INTERRUPTED, tmp_path, gate, "30", source, "2.0") as child:
        first_pid(gate)
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        out = child.communicate(timeout=60)[0]
        took = time.monotonic() - began
        assert child.returncode == 0
    count, first, second = out.split()
    assert (first, second) == ("error", "error")
    assert int(count) >= 1
    assert took < 20


def test_ctrl_c_twice(gate: str, tmp_path: pathlib.Path) -> None:
    """The second one does not wait for the grace.  It comes when only one task is left: a callback
    that it interrupts is not called again."""
    left = str(tmp_path / "left")
    os.mkfifo(left)
    program = INTERRUPTED.replace('"mark", sys.argv[1]', '"stubborn", sys.argv[1]').replace(
        "import classic_workers as w\n", "import stubborn as w\n"
    )
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    with start(program, tmp_path, gate, "30", "end", "600", left) as child:
        pid = first_pid(gate)
        child.send_signal(signal.SIGINT)
        with open(gate, "rb") as file:  # the task has seen the first one
            assert file.read() == b"again"
        with open(left, "rb") as file:
            assert file.read() == b""
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        out = child.communicate(timeout=60)[0]
        took = time.monotonic() - began
        assert child.returncode == 0
    assert out.split()[1] == "error"
    assert took < 20
    assert not pathlib.Path(f"/proc/{pid}").exists()


STUBBORN = """
import os, time
import classic_workers
class Worker(classic_workers.Worker):
    def stubborn(self, gate, seconds):
        try:
            with open(gate, "wb") as file:
                file.write(b"%d" % os.getpid())
            time.sleep(600)
        except BaseException:
            pass
        with open(gate, "wb") as file:
            file.write(b"again")
        while True:
            try:
                time.sleep(600)
            except BaseException:
                pass
"""

KILLED = HEAD + """
if __name__ == "__main__":
    Dispatcher(w.Worker, [0, 1]).run(
        [("mark", sys.argv[1], 600.0), ("mark", sys.argv[2], 600.0)], None)
"""


def test_host_killed(tmp_path: pathlib.Path) -> None:
    """G15: the workers lived on."""
    gates = [str(tmp_path / "gate0"), str(tmp_path / "gate1")]
    for path in gates:
        os.mkfifo(path)
    with start(KILLED, tmp_path, *gates) as child:
        pids = [first_pid(path) for path in gates]
        fds = [os.pidfd_open(pid) for pid in pids]
        child.kill()
        child.wait(60)
        began = time.monotonic()
        for fd in fds:
            assert select.select([fd], [], [], 10)[0], "a worker outlives its host"
            os.close(fd)
        assert time.monotonic() - began < 5


SCRIPT = HEAD + """
from gpudispatch import BaseWorker

class Mine(BaseWorker):
    def setup(self, gpu_id, seed, config):
        self.config = config

    def process(self, data):
        return self.config.scale * data

class Config:
    scale = 3

if __name__ == "__main__":
    config = Config()
    Dispatcher(Mine, [0]).run([1, 2], note("ok"), config=config)
    print(sum(entry[2] for entry in log) - 4)
"""

AT_EXIT = HEAD + """
def later():
    time.sleep(0.1)
    Dispatcher(w.Worker, [0]).run([("nap", 0.1)] * 5, note("ok"))
    print(len(log), flush=True)

if __name__ == "__main__":
    threading.Thread(target=later).start()
"""


@pytest.mark.parametrize("program", [SCRIPT, AT_EXIT], ids=["script", "at_exit"])
def test_programs(program: str, tmp_path: pathlib.Path) -> None:
    """Classes of the main file; a thread that outlives the main one."""
    with start(program, tmp_path) as child:
        assert child.communicate(timeout=60) == ("5\n", None)
        assert child.returncode == 0


# ---- RichDispatcher ----


def console(terminal: bool = True) -> Any:
    rich = pytest.importorskip("rich.console")
    return rich.Console(file=io.StringIO(), force_terminal=terminal, width=100, _environ={})


def test_rich_draws_a_panel_for_each_gpu(gate: str) -> None:
    screen = console()
    dispatcher = RichDispatcher(w.Worker, [0, 3], refresh_rate=50.0, console=screen)

    def items() -> Iterator[Any]:
        yield ("wait", gate)
        with open(gate, "wb"):
            pass
        yield ("fail", "x")

    dispatcher.run(items(), on_error=lambda *_: None, total_tasks=2)
    text = screen.file.getvalue()
    assert "Overall Progress" in text
    assert "GPU 0 (CPU slot)" in text
    assert "GPU 3 (CPU slot)" in text
    assert "/2 (" in text


def test_rich_is_quiet_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    screen = console(terminal=False)
    RichDispatcher(w.Worker, [0], console=screen).run([1])
    RichDispatcher(w.Worker, [0]).run([1])
    assert screen.file.getvalue() == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("rich", [False, True])
def test_off_the_main_thread(rich: bool) -> None:
    """G17: it installed signal handlers, which only the main thread may."""
    log = Log()
    dispatcher = Dispatcher(w.Worker, [0])
    if rich:
        dispatcher = RichDispatcher(w.Worker, [0], console=console())
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=lambda: dispatcher.run([1, 2, 3], **log.callbacks()))
    thread.start()
    thread.join(60)
    assert dispatcher.get_stats()["completed"] == len(log.ends()) == 3
    assert log.threads == {thread}
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_rich_beside_another_live(capfd: pytest.CaptureFixture[str]) -> None:
    screen = console()
    from rich.live import Live

    with Live(console=screen):
        stats = RichDispatcher(w.Worker, [0], console=screen).run([1])
    assert stats["completed"] == 1


def test_rich_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("rich.console", "rich.live", "rich.errors"):
        monkeypatch.setitem(sys.modules, name, None)

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    stats = RichDispatcher(w.Worker, [0]).run([1, 2], total_tasks=2)
    assert stats["completed"] == 2
    assert "2/2 (100%)" in terminal.getvalue()


def test_panel_lines() -> None:
    from gpudispatch import panel

    board = classic_board.Board([0], 200)
    for i in range(50):
        board.ended(0, i, "success")
    board.stats["start_time"] = time.monotonic()
    stats = board.snapshot()
    row = stats["gpu_status"][0]
    row |= {  # type: ignore[misc]
        "status": "processing", "current_task": 50, "task_start_time": time.monotonic() - 2.0,
        "last_duration": 0.25,
    }  # fmt: skip
    first, second = panel.run_lines(stats)
    assert first == "Progress: 50/200 (25.0%)  ✓ 50  ✗ 0  ⏱ 0"
    assert second.startswith("Elapsed: 0:00:00  ETA: ")
    device: Any = {
        "memory_used": 62 << 30, "memory_total": 80 << 30, "utilization": 97, "temperature": 71,
        "power": 650_000, "health": "SUSPECT", "evidence": "XID 79",
    }  # fmt: skip
    slot: Any = {"task_id": 9, "progress": 0.5, "progress_text": "half [of] it"}
    lines = panel.gpu_lines(row, slot, device)
    assert lines[0].startswith("[yellow]Processing[/]  #50  2.")
    assert lines[1] == "━" * 10 + "╌" * 10 + " half \\[of] it"
    assert lines[2:] == [
        "✓ 50  ✗ 0  ⏱ 0", "last task 250 ms", "62.0 of 80 GiB, 97%, 71 °C, 650 W",
        "[bold red]SUSPECT[/] XID 79",
    ]  # fmt: skip
    assert panel.duration(75.34) == "75.3 s"
