# SPDX-License-Identifier: MIT
"""get_executor() and get_pool(): a cell of a notebook runs again."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("gpudispatch._core")

import executor_tasks as tasks

from gpudispatch import Executor, NoWorker, Pool, get_executor, get_pool, named

LIMIT_S = 60.0
PACKAGE = str(pathlib.Path(os.environ.get("GPUD_TEST_BUILD", ".")) / "python")
HERE = str(pathlib.Path(__file__).resolve().parent)

pytestmark = pytest.mark.usefixtures("leaves_nothing", "forgets")


@pytest.fixture
def forgets(leaves_nothing: None) -> Iterator[None]:
    """Names that a test has used are free: the next call would forget what has ended."""
    yield
    named._held.clear()


# ---- get_executor ----


def test_get_executor() -> None:
    first = get_executor("test", max_workers=1, initializer=tasks.keep, initargs=("a", 1))
    same = get_executor("test", max_workers=1, initializer=tasks.keep, initargs=("a", 1))
    assert same is first
    pid = first.submit(tasks.pid).result(LIMIT_S)
    other = get_executor("test", max_workers=1, initializer=tasks.keep, initargs=("a", 2))
    assert other is not first
    with pytest.raises(RuntimeError):
        first.submit(tasks.same)
    assert other.submit(tasks.kept, "a").result(LIMIT_S) == 2
    assert other.submit(tasks.pid).result(LIMIT_S) != pid
    elsewhere = get_executor("test 2", max_workers=1)
    assert elsewhere is not other
    other.shutdown()
    again = get_executor("test", max_workers=1, initializer=tasks.keep, initargs=("a", 2))
    assert again is not other
    assert again.submit(tasks.kept, "a").result(LIMIT_S) == 2
    for pool in (first, again, elsewhere):
        pool.shutdown()


def test_get_executor_compares_by_value() -> None:
    """Not by the order of the words, nor by which strings are one object."""
    word = "".join(["a", "b"])
    first = get_executor("test", max_workers=1, env={"A": word, "B": word})
    again = get_executor("test", env={"B": "a" + word[1:], "A": "ab"}, max_workers=1)
    assert again is first
    assert get_executor("test", max_workers=1, env={"A": word}) is not first
    get_executor("test", max_workers=1, env={"A": word}).shutdown()


def test_get_executor_replaces_a_pool_without_workers(tmp_path: pathlib.Path) -> None:
    """A notebook's cell is run again when what its setup lacked is there."""
    path = tmp_path / "model"

    def made() -> Executor:
        return get_executor(
            "test", max_workers=1, initializer=tasks.size_of, initargs=(str(path),)
        )

    first = made()
    with pytest.raises(NoWorker):
        first.submit(tasks.same, 1).result(LIMIT_S)
    path.write_text("weights")
    second = made()
    assert second is not first
    assert second.submit(tasks.same, 1).result(LIMIT_S) == 1
    first.shutdown()
    second.shutdown()


def test_get_executor_with_what_cannot_be_pickled() -> None:
    lock = threading.Lock()
    with pytest.raises(TypeError):
        get_executor("lock", max_workers=1, initializer=tasks.keep, initargs=("a", lock))


# ---- get_pool ----


def cell(scale: int = 2, **arguments: Any) -> Pool:
    """What a notebook runs again."""
    pool = get_pool("test", None, cpus=1, **arguments)
    if "model" not in pool:
        pool.add("model", worker=tasks.Model, setup={"scale": scale}, devices=0, cpus=1)
    return pool


def test_a_pool_and_its_loaded_class() -> None:
    first = cell()
    assert first["model"].submit(1).result(LIMIT_S) == 2
    pids = [row["pid"] for row in first.slots()]
    again = cell()
    assert again is first
    assert again["model"].submit(2).result(LIMIT_S) == 4
    assert [row["pid"] for row in again.slots()] == pids
    again["model"].remove()
    assert cell(scale=5)["model"].submit(1).result(LIMIT_S) == 5
    assert cell() is first
    first.shutdown()


def test_other_arguments_make_another_pool() -> None:
    first = cell()
    waiting = first["model"].submit(1)
    second = cell(mode="strict")
    assert second is not first
    with pytest.raises(RuntimeError):
        first["model"].submit(1)
    assert waiting.result(LIMIT_S) == 2
    assert second["model"].submit(2).result(LIMIT_S) == 4
    assert cell(mode="strict") is second
    second.shutdown()
    third = cell(mode="strict")
    assert third is not second
    assert third["model"].submit(3).result(LIMIT_S) == 6
    for pool in (first, third):
        pool.shutdown()


def test_devices_of_a_pool() -> None:
    first = get_pool("test", "fake:1")
    assert get_pool("test", devices="fake:1") is first
    assert get_pool("test", ["fake:1"]) is not first
    first.shutdown()
    get_pool("test", ["fake:1"]).shutdown()
    with pytest.raises(TypeError, match="device_list"):
        get_pool("test", device_list=1)


def test_a_pool_goes_on_where_a_class_has_failed(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model"
    pool = cell()
    bad = pool.add(
        "bad", initializer=tasks.size_of, initargs=(str(path),), devices=0, cpus=1, min_residence=0
    )
    with pytest.raises(NoWorker):
        bad.submit(tasks.same, 1).result(LIMIT_S)
    assert cell() is pool
    path.write_text("weights")
    bad.load()
    assert bad.submit(tasks.same, 1).result(LIMIT_S) == 1
    pool.shutdown()


def test_names_of_executors_and_pools_are_apart() -> None:
    pool, executor = get_pool("test", None, cpus=1), get_executor("test", max_workers=1)
    assert get_pool("test", None, cpus=1) is pool
    assert get_executor("test", max_workers=1) is executor
    for owner in (pool, executor):
        owner.shutdown()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_another_thread_makes_a_pool() -> None:
    held, free = threading.Event(), threading.Event()

    def work() -> None:
        with named._lock:
            held.set()
            free.wait()

    thread = threading.Thread(target=work)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            get_pool("child", None, cpus=1).kill_workers()
            os._exit(0)
        finally:
            os._exit(1)
    free.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_a_signal_handler_makes_a_pool_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Pool] = []

    def has_failed(_: Any) -> bool:  # get_pool() calls it
        signal.raise_signal(signal.SIGUSR1)
        return False

    before = signal.signal(
        signal.SIGUSR1, lambda *_: made.append(get_pool("test 2", None, cpus=1))
    )
    first = get_pool("test", None, cpus=1)
    try:
        monkeypatch.setattr(named, "_has_failed", has_failed)
        assert get_pool("test", None, cpus=1) is first
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(made) == 1
    for pool in (first, *made):
        pool.shutdown()


def test_a_pool_that_is_left_ends_with_the_program(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        f"import sys\nsys.path[:0] = [{PACKAGE!r}, {HERE!r}]\n"
        "import executor_tasks as tasks\nfrom gpudispatch import get_pool\n"
        "if __name__ == '__main__':\n"
        "    f = get_pool('p', None, cpus=1).add('f', devices=0, cpus=1)\n"
        "    print(f.submit(tasks.same, 5).result())\n"
    )
    command = [sys.executable, "-W", "error", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "5\n", "")
