# SPDX-License-Identifier: MIT
"""kill -9 of the host at random points: the rerun gives each item once and runs the rest."""

from __future__ import annotations

import os
import random
import select
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from gpudispatch.journal import read_journal

pytest.importorskip("gpudispatch._core")

ITEMS = 2000
FEWER = 500  # twice the queue, where each takes a while
WORKERS = 2
QUEUE = 256
SENT_AHEAD = 64  # what the core keeps at a worker of tiny tasks; 2 from 0.5 ms on

# Each run of an item is a line in a pipe: it ends when the last worker has ended.
HOST = """
import os
import sys
import time

from gpudispatch import Executor

runs = None
run_ns = int(sys.argv[3])
take_ns = int(sys.argv[4])
items = range(int(sys.argv[5]))

def begin(path):
    global runs
    runs = os.open(path, os.O_WRONLY)

def spend(ns):
    end = time.perf_counter_ns() + ns
    while time.perf_counter_ns() < end:
        pass

def work(item):
    os.write(runs, b"%d\\n" % item)
    spend(run_ns)
    return item * item

if __name__ == "__main__":
    with Executor(2, queue_size=256, initializer=begin, initargs=(sys.argv[2],)) as ex:
        for r in ex.outcomes(items, fn=work, journal=sys.argv[1]):
            assert r.ok and r.value == r.item**2 and r.index == r.item, r
            os.write(1, b"%d %d\\n" % (r.item, r.replayed))
            spend(take_ns)
    os.write(1, b"end\\n")
"""


class Alarm:
    """Kills a host at a time after its start, or after the moment when a file is there."""

    def __init__(self, after: float, file: Path | None) -> None:
        self.after = after
        self.file = file
        self.over = threading.Event()

    def start(self, host: subprocess.Popen[bytes]) -> None:
        self.thread = threading.Thread(target=self.run, args=(host,))
        self.thread.start()

    def run(self, host: subprocess.Popen[bytes]) -> None:
        while self.file is not None and not self.file.exists() and not self.over.is_set():
            pass
        if not self.over.wait(self.after):
            host.kill()

    def stop(self) -> None:
        self.over.set()
        self.thread.join()


class Night:
    """A journal, and runs of the host that are killed or not."""

    def __init__(self, folder: Path, items: int, run_ns: int) -> None:
        self.folder = folder
        self.items = items
        self.run_ns = run_ns
        self.journal = folder / "night.gdj"
        self.script = folder / "host.py"
        self.script.write_text(HOST)
        self.pipes = 0

    def run(
        self, kill_after: int | None, take_ns: int = 0, alarm: Alarm | None = None
    ) -> tuple[list[str], list[int]]:
        """Runs the host, kills it after so many lines or by an alarm; returns its lines and the
        items run."""
        self.pipes += 1
        pipe = self.folder / f"runs{self.pipes}"
        os.mkfifo(pipe)
        runs = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer = os.open(pipe, os.O_WRONLY)  # a pipe that never had one does not report its end
        arguments = self.script, self.journal, pipe, self.run_ns, take_ns, self.items
        try:
            with subprocess.Popen(
                [sys.executable, *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as host:
                assert host.stdout is not None
                assert host.stderr is not None
                if alarm is not None:
                    alarm.start(host)
                lines: list[bytes] = []
                while kill_after is None or len(lines) < kill_after:
                    line = host.stdout.readline()
                    if not line:
                        break
                    lines.append(line)
                if kill_after is not None:
                    host.kill()
                lines += host.stdout.readlines()
                errors = host.stderr.read().decode()
                code = host.wait(60)
            if alarm is not None:
                alarm.stop()
            os.close(writer)
            killed = kill_after is not None or alarm is not None and code != 0
            assert code == (-signal.SIGKILL if killed else 0), errors
            if lines and not lines[-1].endswith(b"\n"):
                lines.pop()
            return [line.decode().strip() for line in lines], self.drain(runs)
        finally:
            os.close(runs)

    def drain(self, runs: int) -> list[int]:
        data = b""
        while True:
            ready = select.select([runs], [], [], 30)[0]
            assert ready, "a worker outlives its host"
            part = os.read(runs, 1 << 16)
            if not part:
                return [int(item) for item in data.split()]
            data += part

    def recorded(self) -> list[int]:
        if not self.journal.exists():
            return []
        records = list(read_journal(self.journal, history=True))
        assert all(record.value == record.index**2 for record in records)
        return [record.index for record in records]


def check_point(folder: Path, items: int, point: int, run_ns: int, take_ns: int) -> int:
    """Kills at a point, runs again; returns how many items ran twice."""
    folder.mkdir()
    night = Night(folder, items, run_ns)
    return check_rerun(night, *night.run(point, take_ns))


def check_rerun(night: Night, lines: list[str], before: list[int]) -> int:
    """The rerun after a kill; returns how many items ran twice."""
    items = night.items
    recorded = night.recorded()
    assert len(set(recorded)) == len(recorded)
    yielded = {int(line.split()[0]) for line in lines if line != "end"}
    assert yielded <= set(recorded) <= set(before)
    assert max(Counter(before).values(), default=1) == 1

    lines, after = night.run(None)
    assert lines.pop() == "end"
    outcomes = [tuple(map(int, line.split())) for line in lines]
    assert sorted(item for item, _ in outcomes) == list(range(items))
    assert sorted(item for item, replayed in outcomes if replayed) == sorted(recorded)
    assert sorted(after) == sorted(set(range(items)) - set(recorded))
    return len(set(before) & set(after))


def seeded() -> random.Random:
    seed = int(os.environ.get("GPUDISPATCH_TEST_SEED", "0")) or random.randrange(1 << 32)
    print(f"GPUDISPATCH_TEST_SEED={seed}")
    return random.Random(seed)


def check_points(
    folder: Path,
    count: int,
    usual: int,
    *,
    items: int = ITEMS,
    last: int | None = None,
    run_ns: int = 0,
    take_ns: int = 0,
) -> None:
    """Kills at random points; `usual` bounds the median of how many items ran twice.

    An item runs twice if the host dies between its start and its record.  Usually the worker had
    it: it was running, or sent ahead and done before the worker noticed the end of its host.  If
    the host's Python thread was waiting for a CPU, the library thread went on without it; so only
    queue_size bounds each single case.
    """
    generator = seeded()
    twice = []
    for number in range(count):
        point = generator.randrange((last or items) + 1)
        twice.append(check_point(folder / f"{number}", items, point, run_ns, take_ns))
    print(f"{count} kills; items that ran twice: {sorted(twice)}")
    assert max(twice) <= QUEUE
    assert statistics.median(twice) <= usual


def test_kill_9_with_tiny_items(tmp_path: Path) -> None:
    check_points(tmp_path, 9, WORKERS * SENT_AHEAD)


def test_kill_9_with_items_of_a_millisecond(tmp_path: Path) -> None:
    check_points(tmp_path, 3, WORKERS * 4, items=FEWER, run_ns=1_000_000)


def test_kill_9_with_a_caller_that_takes_its_time(tmp_path: Path) -> None:
    """What ended while the caller had an outcome is recorded before it gets the next one.

    About six items end meanwhile; without that rule the whole queue does.
    """
    check_points(
        tmp_path, 3, QUEUE // 4, items=FEWER, last=200, run_ns=1_000_000, take_ns=3_000_000
    )


@pytest.mark.parametrize("journal", [False, True], ids=["host", "journal"])
def test_kill_9_at_random_times(tmp_path: Path, journal: bool) -> None:
    """After the start of the host, or after that of the journal, which is being opened then."""
    generator = seeded()
    longest, run_ns = 0.003, 0
    if not journal:
        (tmp_path / "usual").mkdir()
        run_ns = 1_000_000
        began = time.monotonic()
        assert Night(tmp_path / "usual", FEWER, run_ns).run(None)[0][-1] == "end"
        longest = time.monotonic() - began
    for number in range(4 if journal else 5):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        night = Night(folder, FEWER, run_ns)
        after = generator.uniform(0.0, longest)
        check_rerun(night, *night.run(None, alarm=Alarm(after, night.journal if journal else None)))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kill_9_at_200_points(tmp_path: Path) -> None:
    check_points(tmp_path, 200, WORKERS * SENT_AHEAD)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_kill_9_at_200_points_with_items_of_a_millisecond(tmp_path: Path) -> None:
    check_points(tmp_path, 200, WORKERS * 4, run_ns=1_000_000)
