# SPDX-License-Identifier: MIT
"""A side of a cell: a process of its own with one pool, which does a round when it is told to.

Place "free", the default: the kernel places threads and processes, as it does for users.  With
"split" the host's threads run on the first CPU and its worker on the second.  That repeats better,
and flatters pools whose host has several threads: on one CPU they cannot contend for the
interpreter lock.  ThreadPoolExecutor is then on the first CPU alone; joblib is not pinned.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

from gpudispatch.bench.cells import CELLS, Figures
from gpudispatch.bench.jobs import pin
from gpudispatch.bench.peers import PEERS

# Installed packages have their bytecode, so a build tree may keep its own.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
CPUS = sorted(os.sched_getaffinity(0))


def serve(cell_name: str, side: str, quick: bool, place: str) -> None:
    """The main program of a side: a line on stdin is a round, its figures are a line on stdout."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a pool prints is no answer
    cell = CELLS[cell_name]
    size = cell.quick if quick and cell.quick is not None else cell.size
    kind = PEERS.get(side)
    split = place == "split" and len(CPUS) > 1 and kind is not None and side != "joblib"
    peer = None
    if split:  # threads and processes made from here on inherit it
        os.sched_setaffinity(0, {CPUS[0]})
    if not cell.fresh:
        assert kind is not None
        peer = kind()
        if split and kind.pinned:
            peer.result(peer.submit(pin, CPUS[1]))
    for _ in sys.stdin:
        gc.collect()
        figures = cell.measure(peer, side, *size) if cell.fresh else cell.measure(peer, *size)
        print(json.dumps(figures), file=answers, flush=True)
    if peer is not None:
        peer.stop()
    if cell.fresh:
        os._exit(0)  # a pool with a hung worker would wait for it
    sys.exit(0)


class Side:
    """The driver's end of such a process, which leads a process group."""

    def __init__(self, cell: str, name: str, quick: bool, place: str) -> None:
        self.name = name
        self.why: str | None = None  # no further rounds
        self.rounds: list[Figures] = []
        command = [sys.executable, "-m", "gpudispatch.bench", "--serve", name, "--cell", cell]
        command += ["--place", place, *(["--quick"] if quick else [])]
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            start_new_session=True, env=ENVIRONMENT,
        )

    def round(self, until: float, *, keep: bool = True) -> None:
        """One round, unless this side has failed; a side that is not done by then is killed."""
        if self.why is not None:
            return
        assert self.child.stdin is not None and self.child.stdout is not None
        try:
            self.child.stdin.write(b"round\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            pass
        left = max(0.0, until - time.monotonic())
        if not select.select([self.child.stdout], [], [], left)[0]:
            self.fail("no answer in time")
            return
        line = self.child.stdout.readline()
        if not line:
            self.fail(f"ended with status {self.child.wait()}: {self.last_words()}")
        elif keep:
            self.rounds.append(json.loads(line))

    def last_words(self) -> str:
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def fail(self, why: str) -> None:
        self.why = why
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)

    def close(self) -> None:
        assert self.child.stdin is not None and self.child.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        self.child.stdout.close()
        self.errors.close()


def run(cell_name: str, names: list[str], quick: bool, place: str, seconds: float) -> list[Side]:
    """All rounds of a cell: every side in turn, every other round backwards."""
    cell = CELLS[cell_name]
    began = time.monotonic()
    patience = began + max(60.0, 2 * seconds)
    sides = [Side(cell_name, name, quick, place) for name in names]
    try:
        for side in sides:  # warm-up: starts, first imports, first pages
            side.round(patience, keep=False)
        for number in range(cell.rounds[quick]):
            for side in sides[:: 1 if number % 2 else -1]:
                side.round(patience)
            if time.monotonic() - began > seconds:
                break
    finally:
        for side in sides:
            side.close()
    return sides
