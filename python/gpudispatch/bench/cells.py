# SPDX-License-Identifier: MIT
"""What is timed: each function is one round of one pool, and returns figures by name.

A round's first figure is the one of the table.  Times are in the cell's unit.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpudispatch.bench.jobs import die, tiny
from gpudispatch.bench.peers import PEERS, Ours, OursWithClass, Peer

clock = time.perf_counter
Figures = dict[str, float | str]
WINDOW = 8  # tasks behind the one whose worker is killed
PATIENCE = 3.0  # seconds until a task without an answer counts as hung
ARRAY = 64 << 20


def per_item(seconds: float, n: int) -> float:
    return seconds / n * 1e6


def pipelined(peer: Peer, n: int) -> Figures:
    submit, result = peer.submit, peer.result
    start = clock()
    handles = [submit(tiny, i) for i in range(n)]
    total = sum([result(h) for h in handles])
    took = clock() - start
    assert total == n * (n - 1) // 2
    return {"us": per_item(took, n)}


def trip(peer: Peer, n: int) -> Figures:
    submit, result, took = peer.submit, peer.result, []
    for i in range(n):
        start = clock()
        got = result(submit(tiny, i))
        took.append(clock() - start)
        assert got == i
    return {"us": statistics.median(took) * 1e6, "mean": per_item(sum(took), n)}


def loop(peer: Peer, n: int) -> Figures:
    """Items in, results out, one task each: outcomes(), and the iterator of the others."""
    raw = isinstance(peer, OursWithClass)  # bytes in, bytes out, without a pickle
    items = [b"%d" % i if raw else i for i in range(n)]
    got = 0
    cpu, start = time.process_time(), clock()
    if isinstance(peer, Ours):
        for outcome in peer.loop(items):
            got += outcome.value is not None
    else:
        for value in peer.imap(tiny, items, 1):
            got += value is not None
    took, used = clock() - start, time.process_time() - cpu
    assert got == n
    return {"us": per_item(took, n), "parent CPU": per_item(used, n)}


def journal(peer: Ours, n: int) -> Figures:
    """What a journal adds to the loop: CPU of the host for each item."""
    used = []
    with tempfile.TemporaryDirectory() as folder:
        for path in (None, f"{folder}/night.gdj"):
            cpu, start = time.process_time(), clock()
            got = sum(outcome.ok for outcome in peer.loop(range(n), path))
            took = clock() - start
            used.append(time.process_time() - cpu)
            assert got == n
    return {"us": per_item(took, n), "added CPU": per_item(used[1] - used[0], n)}


def chunks(peer: Peer, n: int) -> Figures:
    start = clock()
    total = 0
    for value in peer.imap(tiny, range(n), 64):
        total += value
    took = clock() - start
    assert total == n * (n - 1) // 2
    return {"us": per_item(took, n)}


def array(peer: Peer, size: int) -> Figures:
    """A numpy array there and back; a bytearray where numpy is missing."""
    try:
        import numpy
    except ImportError:
        there: Any = bytearray(b"0123456789abcdef") * (size // 16)
    else:
        there = numpy.arange(size // 8)
    start = clock()
    back = peer.result(peer.submit(tiny, there))
    took = clock() - start
    assert type(back) in (type(there), bytes)  # Ray returns a bytearray as bytes
    assert len(back) == len(there)
    assert back[0] == there[0] and back[-1] == there[-1]
    return {"ms": took * 1e3}


def killed(_: Peer | None, name: str) -> Figures:
    """From submit of a task that kills its worker to the next result; tasks wait behind it."""
    start = clock()
    peer = PEERS[name]()
    peer.result(peer.submit(tiny, 0))
    started = clock() - start
    start, words, failed = clock(), "next result", 0
    handles = []
    try:
        victim = peer.submit(die, 0)
        handles = [peer.submit(tiny, i) for i in range(WINDOW)]
        peer.result(handles[0], PATIENCE)
        took = clock() - start
    except Exception as e:
        took, words = float("nan"), f"broken: {type(e).__name__}"
    for handle in (victim, *handles):
        try:
            peer.result(handle, PATIENCE if words == "next result" else 0.1)
        except Exception as e:
            failed += 1
            if handle is victim and words == "next result":
                words = "future hangs" if "Timeout" in type(e).__name__ else type(e).__name__
    peer.stop()
    return {"ms": took * 1e3, "start": started * 1e3, "failed": failed, "words": words}


class Model:
    """Takes some time to load."""

    def setup(self, device: str, seed: int) -> None:
        time.sleep(0.1)

    def process(self, item: int) -> float:
        return time.monotonic()


def switch(_: Peer | None, name: str) -> Figures:
    """From the end of a class's last item to the start of another's first, on the one device;
    "parts" is what the library has measured for the end of one worker and the start of the other.
    """
    from gpudispatch import Pool

    took = []
    with Pool("fake:1") as pool:
        made = [pool.add(n, worker=Model, memory="10GiB", min_residence=0) for n in ("a", "b")]
        last = made[0].submit(0).result()
        for n in range(1, 9):
            future = made[n % 2].submit(n)
            future.result()
            took.append(future.times.started - last)
            last = future.times.ended
        rows = pool.classes()
        parts = max(row["boot_p50"] + row["unload_p50"] for row in rows) / 1e6
    return {"ms": statistics.median(took) * 1e3, "parts": parts}


def submits(_: Peer | None, name: str, n: int) -> Figures:
    """n submits in one turn; the tasks are cancelled afterwards."""
    peer = PEERS[name]()
    peer.result(peer.submit(tiny, 0))
    gc.collect()
    submit, longest = peer.submit, 0.0
    start = before = clock()
    handles = []
    for i in range(n):
        handles.append(submit(tiny, i))
        now = clock()
        if now - before > longest:
            longest = now - before
        before = now
    took = before - start
    peer.stop()
    return {"s": took, "longest ms": longest * 1e3}


FIRST = """import time
start = time.perf_counter()
from gpudispatch import Executor
with Executor(devices="cpu:1") as ex:
    assert ex.submit(abs, -1).result() == 1
    print(time.perf_counter() - start)
"""
PROGRAMS = {
    "python -c pass": "pass",
    "import concurrent.futures": "import concurrent.futures",
    "import gpudispatch": "import gpudispatch",
    "from gpudispatch import Executor": "from gpudispatch import Executor",
    "first result": FIRST,
}


def programs(_: Peer | None, name: str) -> Figures:
    """A whole program; "inside" is what it has measured itself."""
    command = [sys.executable, "-c", PROGRAMS[name]]
    start = clock()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    figures: Figures = {"ms": (clock() - start) * 1e3}
    if done.stdout:
        figures["inside"] = float(done.stdout) * 1e3
    return figures


@dataclass(frozen=True)
class Goal:
    """A bound of a figure, or of its ratio to another side's figure."""

    side: str
    figure: str
    most: float
    over: tuple[str, str] | None = None  # side and figure of the denominator
    plus: float = 0.0  # with over: the figure may be most * the other + plus


@dataclass(frozen=True)
class Cell:
    title: str
    unit: str
    measure: Callable[..., Figures]
    sides: tuple[str, ...]
    size: tuple[Any, ...]
    goals: tuple[Goal, ...]
    quick: tuple[Any, ...] | None = None
    fresh: bool = False  # each round makes its own pool
    rounds: tuple[int, int] = (11, 3)


def at_most(side: str, figure: str, most: float, over: str | None = None) -> Goal:
    return Goal(side, figure, most, None if over is None else (over, figure))


_ALL = ("ours", "threads", "fork", "forkserver", "Pool", "loky", "pebble", "ray")
CELLS: dict[str, Cell] = {
    "pipelined": Cell(
        "futures, pipelined", "us", pipelined, _ALL, (2000,), quick=(500,),
        goals=(at_most("ours", "us", 1.0, "threads"), at_most("ours", "us", 0.12, "fork")),
    ),
    "trip": Cell(
        "round trip of submit().result()", "us", trip, _ALL, (300,), quick=(100,),
        goals=(at_most("ours", "us", 0.25, "fork"),),
    ),
    "outcomes": Cell(
        "outcomes(), one item a task", "us", loop,
        ("ours", "ours worker=", "Pool", "fork", "joblib", "pebble"), (4000,), quick=(1000,),
        goals=(
            at_most("ours", "us", 0.2, "Pool"),
            at_most("ours", "parent CPU", 5.0),
            at_most("ours worker=", "parent CPU", 3.0),
        ),
    ),
    "journal": Cell(
        "outcomes(journal=), one item a task", "us", journal, ("ours",), (4000,), quick=(1000,),
        goals=(at_most("ours", "added CPU", 5.0),),
    ),
    "pool": Cell(
        "a Pool of one class", "us", loop, ("ours", "ours pool"), (4000,), quick=(1000,),
        rounds=(31, 3), goals=(at_most("ours pool", "us", 1.03, "ours"),),
    ),
    "classes": Cell(
        "eight workers: of one class, of eight", "us", loop, ("ours eight", "ours classes"),
        (8000,), quick=(1600,), rounds=(21, 3),
        goals=(at_most("ours classes", "us", 1 / 0.9, "ours eight"),),
    ),
    "switch": Cell(
        "from one class to another on a device", "ms", switch, ("ours switch",), (), fresh=True,
        rounds=(7, 1), goals=(Goal("ours switch", "ms", 1.0, ("ours switch", "parts"), plus=5.0),),
    ),
    "map": Cell(
        "map(chunksize=64)", "us", chunks, ("ours", "Pool", "fork", "joblib", "pebble"),
        (64_000,), quick=(12_800,), goals=(at_most("ours", "us", 1.0, "Pool"),),
    ),
    "array": Cell(
        "64 MiB array there and back", "ms", array,
        ("ours", "ours copy=False", "Pool", "fork", "forkserver", "loky", "pebble", "ray"),
        (ARRAY,), rounds=(7, 2),
        goals=(
            at_most("ours", "ms", 1 / 6, "Pool"),
            at_most("ours copy=False", "ms", 1 / 8, "Pool"),
        ),
    ),
    "killed": Cell(
        "worker killed, next result", "ms", killed,
        ("ours", "fork", "Pool", "loky", "pebble", "ray"), (), fresh=True, rounds=(7, 2),
        goals=(
            Goal("ours", "ms", 1.0, ("ours", "start"), plus=50.0),
            at_most("ours", "failed", 1.0),
        ),
    ),
    "start": Cell(
        "import, first result on cpu:1", "ms", programs, tuple(PROGRAMS), (), fresh=True,
        rounds=(15, 4),
        goals=(
            Goal("import gpudispatch", "ms", 1.0, ("import concurrent.futures", "ms"), plus=5.0),
            Goal("first result", "inside", 1.5, ("python -c pass", "ms"), plus=30.0),
        ),
    ),
    "submits": Cell(
        "40,000 submits", "s", submits, ("ours", "threads", "fork", "loky", "pebble"), (40_000,),
        fresh=True, rounds=(5, 1), goals=(at_most("ours", "s", 1.0),),
    ),
}
