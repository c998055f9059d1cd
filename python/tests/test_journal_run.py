# SPDX-License-Identifier: MIT
"""outcomes(..., journal=PATH): the second run goes on where the first one stopped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpudispatch import errors, read_journal, records

pytest.importorskip("gpudispatch._core")

from gpudispatch import Executor, ResultTooLarge, WorkerCrashed
from executor_tasks import Gate
from journal_tasks import Scorer, work


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with Executor(2) as ex:
        yield ex


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "night.gdj"


def tasks(folder: Path, *items: Any) -> list[tuple[str, Any]]:
    return [(str(folder), item) for item in items]


def runs(folder: Path) -> list[str]:
    """What ran since the last call."""
    path = folder / "runs"
    if not path.exists():
        return []
    lines = path.read_text().split()
    path.unlink()
    return sorted(lines)


def outcomes(ex: Executor, folder: Path, *items: Any, **words: Any) -> dict[Any, Any]:
    path = folder / "night.gdj"
    found = ex.outcomes(tasks(folder, *items), fn=work, journal=path, **words)
    return {r.item[1]: r for r in found}


@pytest.mark.parametrize(
    ("key", "turn", "place", "clock", "payload"),
    [
        (b"", 0, 0, 0, b""),
        (b"\2ff", 7, 3, 1_700_000_000_123_456_789, b"\0value"),
        (b"k" * 1025, 2**32 - 1, 2**63 - 1, -(2**63), bytes(range(256)) * 300),
    ],
)
def test_two_writers_of_records(
    pool: Executor, key: bytes, turn: int, place: int, clock: int, payload: bytes
) -> None:
    """The extension lays a success out as Journal.put does."""
    (r,) = pool.outcomes([1], fn=abs)
    event = r._event
    assert event is not None and event.device is not None
    device = event.device.encode()
    made = event.record(key, turn, place, clock, payload)
    times = event.queued_at, event.sent_at, event.started_at, event.ended_at
    assert min(times) > 0 and len(set(times)) == 4
    size = records.HEAD_SIZE + len(key) + len(device) + len(payload)
    body = records.BODY.pack(
        size, records.CODES["success"], len(device), len(key), 0, 0, 1, turn, place, *times, clock
    )
    assert made == body + key + device + payload


def test_what_is_there_is_not_run(pool: Executor, tmp_path: Path) -> None:
    first = outcomes(pool, tmp_path, "a", "raise", "large", 7)
    assert runs(tmp_path) == ["7", "a", "large", "raise"]
    assert not any(r.replayed for r in first.values())

    again = outcomes(pool, tmp_path, "new", "a", "raise", "large", 7)
    assert runs(tmp_path) == ["new"]
    assert [item for item, r in again.items() if not r.replayed] == ["new"]
    assert sorted(r.index for r in again.values()) == [0, 1, 2, 3, 4]
    assert (again["a"].value, again["large"].value, again[7].value) == ("a", b"x" * (1 << 20), 7)
    error = again["raise"].error
    assert isinstance(error, ValueError)
    assert error.args == ("no cat",)
    assert isinstance(error.__cause__, errors.RemoteTraceback)
    assert 'raise ValueError("no cat")' in str(error.__cause__)
    for item, r in first.items():
        other = again[item]
        assert (other.kind, other.device, other.attempt) == (r.kind, r.device, r.attempt)
        assert other.times == r.times
        assert (other.ok, other.text) == (r.ok, r.text)
    assert {record.kind for record in read_journal(tmp_path / "night.gdj")} == {"success", "error"}


def test_what_cannot_be_sent_is_recorded(pool: Executor, tmp_path: Path) -> None:
    """An item without a key, since it cannot be pickled, is an outcome all the same."""
    path = tmp_path / "night.gdj"
    lock = threading.Lock()
    with Executor(1, payload_budget=16 << 20) as small:
        found = list(small.outcomes([b"a", bytes(32 << 20), lock, b"b"], fn=len, journal=path))
    by_index = {r.index: r for r in found}
    assert [by_index[i].kind for i in range(4)] == ["success", "error", "error", "success"]
    assert isinstance(by_index[1].error, ResultTooLarge)
    assert isinstance(by_index[2].error, TypeError)
    assert sorted(r.kind for r in read_journal(path)) == ["error", "success", "success"]

    again = list(pool.outcomes([bytes(32 << 20)], fn=len, journal=path))
    assert [(r.replayed, r.kind, str(r.error)) for r in again] == [
        (True, "error", str(by_index[1].error))
    ]

    with pytest.raises(ZeroDivisionError):  # a key function that raises ends its loop
        list(pool.outcomes([1], fn=len, journal=tmp_path / "other.gdj", key=lambda _: 1 // 0))


CHILD = """
import os, sys
from gpudispatch import Executor
from journal_tasks import work
if __name__ == "__main__":
    folder = sys.argv[1]
    with Executor(1) as pool:
        loop = pool.outcomes([(folder, n) for n in "abc"], fn=work, journal=folder + "/night.gdj",
                             ordered=True)
        first = next(loop)
        child = os.fork()
        if not child:
            loop.close()
            sys.exit()
        status = os.waitpid(child, 0)[1]
        print(status, first.value, *(r.value for r in loop))
"""


def test_a_forked_child_leaves_the_loop(tmp_path: Path) -> None:
    """It says nothing, and the loop of its parent goes on."""
    program = tmp_path / "program.py"
    program.write_text(CHILD)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), str(tmp_path)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr, ran.returncode) == ("0 a b c\n", "", 0)
    assert len(list(read_journal(tmp_path / "night.gdj"))) == 3


def test_what_redo_names_runs_again(pool: Executor, tmp_path: Path) -> None:
    first = outcomes(pool, tmp_path, "die", "raise", "a")
    assert isinstance(first["die"].error, WorkerCrashed)
    assert runs(tmp_path) == ["a", "die", "raise"]

    replayed = outcomes(pool, tmp_path, "die", "raise", "a", redo=())
    assert runs(tmp_path) == []
    error = replayed["die"].error
    assert replayed["die"].kind == "crash"
    assert isinstance(error, WorkerCrashed)
    assert error.exitcode == 7
    assert "last words" in error.log_tail
    for item in ("die", "raise"):
        assert "last words" in replayed[item].log_tail
        assert replayed[item].log_tail == first[item].log_tail
        assert replayed[item].text == first[item].text

    (tmp_path / "cured").touch()
    cured = outcomes(pool, tmp_path, "die", "raise", "a")
    assert runs(tmp_path) == ["die"]
    assert cured["die"].value == "die"
    assert outcomes(pool, tmp_path, "raise", redo=("error",))["raise"].kind == "error"
    assert runs(tmp_path) == ["raise"]
    assert all(r.replayed for r in outcomes(pool, tmp_path, "die", "raise", "a").values())


def test_equal_items_are_replayed_one_by_one(pool: Executor, tmp_path: Path, path: Path) -> None:
    for count, replayed in ((3, 0), (5, 3), (5, 5)):
        found = list(pool.outcomes(tasks(tmp_path, *["a"] * count), fn=work, journal=path))
        assert len(found) == count
        assert sum(r.replayed for r in found) == replayed
        assert len(runs(tmp_path)) == count - replayed


def test_ordered_with_replays(pool: Executor, tmp_path: Path) -> None:
    outcomes(pool, tmp_path, *range(0, 60, 3))
    found = outcomes(pool, tmp_path, *range(60), ordered=True)
    assert list(found) == list(range(60))
    assert [item for item, r in found.items() if r.replayed] == list(range(0, 60, 3))


def test_leaving_the_loop_releases_the_journal(pool: Executor, tmp_path: Path, path: Path) -> None:
    given = []
    for r in pool.outcomes(tasks(tmp_path, *range(50)), fn=work, journal=path):
        given.append(r.item[1])
        if len(given) == 10:
            break
    del r
    again = outcomes(pool, tmp_path, *range(50))
    assert sorted(again) == list(range(50))
    assert set(given) <= {item for item, r in again.items() if r.replayed}
    pool.outcomes(tasks(tmp_path, 1), fn=work, journal=path)  # not even begun
    assert len(outcomes(pool, tmp_path, *range(50))) == 50


@pytest.mark.parametrize("end", ["shutdown", "terminate_workers", "kill_workers"])
def test_a_pool_that_ends_under_the_loop(tmp_path: Path, path: Path, end: str) -> None:
    found = []
    with Executor(2) as ex:
        for r in ex.outcomes(tasks(tmp_path, *range(200)), fn=work, journal=path):
            found.append((r.item[1], r.ok))
            if len(found) == 5:
                if end == "shutdown":
                    ex.shutdown(wait=False, cancel_futures=True)
                else:
                    getattr(ex, end)()
    items = [item for item, _ in found]
    assert len(set(items)) == len(items)
    with Executor(2) as ex:
        again = outcomes(ex, tmp_path, *range(200))
    assert all(r.ok for r in again.values())
    assert len(again) == 200
    assert {item for item, ok in found if ok} <= {i for i, r in again.items() if r.replayed}


@pytest.fixture
def armed() -> Iterator[list[bool]]:
    """SIGALRM interrupts as Ctrl-C does, where the list is not empty.  A timer that is stopped in
    time is not enough: Python's handler runs later than the kernel's signal."""
    found: list[bool] = []

    def ring(number: int, frame: Any) -> None:
        if found:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, ring)
    yield found
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.timeout(method="thread")
def test_an_interrupt_of_the_loop(
    pool: Executor, tmp_path: Path, path: Path, armed: list[bool]
) -> None:
    """Ctrl-C at a random point of the loop: the journal is whole, and the pool is usable."""
    generator = random.Random(int(os.environ.get("GPUDISPATCH_TEST_SEED", "13")))
    given: set[int] = set()
    for number in range(30):
        items = range(100 * number, 100 * number + 200)
        try:
            armed.append(True)
            signal.setitimer(signal.ITIMER_REAL, generator.uniform(0.0001, 0.01))
            for r in pool.outcomes(tasks(tmp_path, *items), fn=work, journal=path):
                given.add(r.item[1])
            armed.clear()
        except KeyboardInterrupt:
            pass
        finally:
            armed.clear()
        records = list(read_journal(path)) if path.exists() else []
        assert all(record.value is not None for record in records)
        assert given <= {record.value for record in records}
    again = outcomes(pool, tmp_path, *range(3100))
    assert [again[item].value for item in range(3100)] == list(range(3100))
    assert given <= {item for item, r in again.items() if r.replayed}


def test_what_runs_as_the_loop_is_left_is_recorded(tmp_path: Path, path: Path) -> None:
    def run(ex: Executor) -> Iterator[Any]:
        items = [(str(tmp_path), "quick"), (str(tmp_path), gate.address), (str(tmp_path), "late")]
        return ex.outcomes(items, fn=work, journal=path)

    with Gate() as gate, Executor(1, queue_size=2) as pool:
        loop = run(pool)
        assert next(loop).value == "quick"
        gate.arrival()
        loop.close()  # as Ctrl-C does
        gate.open()
        pool.shutdown()
        assert [r.value for r in read_journal(path)] == ["quick", gate.address]
    assert runs(tmp_path) == sorted(["quick", str(gate.address)])
    with Executor(1) as pool:
        assert [(r.value, r.replayed) for r in run(pool)] == [
            ("quick", True), (gate.address, True), ("late", False),
        ]  # fmt: skip


def test_what_ran_before_shutdown_is_recorded_as_the_loop_is_left(
    tmp_path: Path, path: Path
) -> None:
    with Executor(1) as pool:
        loop = pool.outcomes(tasks(tmp_path, *range(10)), fn=work, journal=path)
        next(loop)
    loop.close()
    assert sorted(str(r.value) for r in read_journal(path)) == runs(tmp_path)


def test_what_ran_before_exit_is_recorded(tmp_path: Path, path: Path) -> None:
    program = """if True:
        import sys
        from gpudispatch import Executor
        from journal_tasks import work

        loop = Executor(1).outcomes(eval(sys.argv[1]), fn=work, journal=sys.argv[2])
        assert next(loop).value == "quick"
        """
    with Gate() as gate:
        items = tasks(tmp_path, "quick", gate.address, "late")
        host = subprocess.Popen([sys.executable, "-c", program, repr(items), str(path)])
        gate.arrival()
        gate.open()
        assert host.wait(60) == 0
    assert sorted(str(r.value) for r in read_journal(path)) == runs(tmp_path)


def test_a_journal_opened_again_while_tasks_of_the_last_loop_run(
    tmp_path: Path, path: Path
) -> None:
    """It is not busy: a notebook's cell is run again after Ctrl-C."""
    with Gate() as gate, Executor(2) as pool:
        items = [(str(tmp_path), gate.address), (str(tmp_path), "quick")]
        loop = pool.outcomes(items, fn=work, journal=path)
        assert next(loop).value == "quick"
        gate.arrival()
        loop.close()
        again = pool.outcomes(items[1:], fn=work, journal=path)
        assert [r.replayed for r in again] == [True]
        gate.open()


def test_a_source_that_raises_keeps_what_ended(pool: Executor, tmp_path: Path) -> None:
    def source() -> Iterator[tuple[str, Any]]:
        yield from tasks(tmp_path, 1, 2, 3)
        raise RuntimeError("the disk is gone")

    found = []
    with pytest.raises(RuntimeError, match="the disk is gone"):  # noqa: PT012
        for r in pool.outcomes(source(), fn=work, journal=tmp_path / "night.gdj"):
            found.append(r.item[1])
    assert sorted(found) == [1, 2, 3]
    assert all(r.replayed for r in outcomes(pool, tmp_path, 1, 2, 3).values())


def test_key_and_fresh(pool: Executor, tmp_path: Path, path: Path) -> None:
    def by_name(task: tuple[str, Any]) -> str:
        return str(task[1])

    outcomes(pool, tmp_path, 1, 2, key=by_name)
    moved = tmp_path / "moved"
    moved.mkdir()
    found = list(pool.outcomes(tasks(moved, 1, 2, 3), fn=work, journal=path, key=by_name))
    assert sorted(r.item[1] for r in found if r.replayed) == [1, 2]
    assert {record.key for record in read_journal(path)} == {"1", "2", "3"}
    with pytest.raises(errors.JournalMismatch) as caught:
        outcomes(pool, tmp_path, 1)
    assert caught.value.field == "key"
    assert not outcomes(pool, tmp_path, 1, fresh=True)[1].replayed
    assert {record.key for record in read_journal(tmp_path / "night.gdj.1")} == {"1", "2", "3"}


def test_another_function_or_setup_is_named(pool: Executor, tmp_path: Path, path: Path) -> None:
    outcomes(pool, tmp_path, 1)
    with pytest.raises(errors.JournalMismatch) as caught:
        pool.outcomes([1], fn=str, journal=path)
    assert caught.value.field == "function"
    assert (caught.value.was, caught.value.now) == ("journal_tasks:work", "builtins:str")

    path = tmp_path / "scorer.gdj"
    with Executor(1, worker=Scorer, setup={"factor": 2}) as ex:
        assert sorted(int(r.value or 0) for r in ex.outcomes([1, 2], journal=path)) == [2, 4]
    with Executor(1, worker=Scorer, setup={"factor": 3}) as ex:
        with pytest.raises(errors.JournalMismatch) as caught:
            ex.outcomes([1, 2], journal=path)
        assert caught.value.field == "setup"


def test_two_loops_with_one_journal(pool: Executor, tmp_path: Path, path: Path) -> None:
    first = pool.outcomes(tasks(tmp_path, *range(5)), fn=work, journal=path)
    next(iter(first))
    with pytest.raises(errors.JournalBusy) as caught:
        pool.outcomes(tasks(tmp_path, 1), fn=work, journal=path)
    assert caught.value.pid == os.getpid()
    assert len(list(first)) == 4
