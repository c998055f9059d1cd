# SPDX-License-Identifier: MIT
"""An evening: three classes on eight GPUs, a worker killed, a GPU quarantined, a foreign process on
two GPUs, one class that is done early; and the whole program killed, and run again."""

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
from typing import Any, NamedTuple

import pytest
from conftest import until
from gpudispatch import Future, Pool
from gpudispatch.journal import read_journal

pytest.importorskip("gpudispatch._core")

from evening_tasks import (  # noqa: E402
    FACTORS,
    FOREIGN,
    FOREIGN_PID,
    MIN_RESIDENCE_S,
    NEEDS,
    Model,
    evening,
    mark,
)

ITEMS = {"small": 52_500, "wide": 52_500, "early": 15_000}  # 3 x 40,000
QUEUE = 16_384  # so deep that the library sees: more workers are worth their boot
SAMPLE_S = 0.005
NOISE_S = 0.15  # of a machine with two CPUs, beside what the samples show of it
FOREIGN_MOST = 1 << 30  # option foreign_memory
MOMENTS = 5  # of explain
STARTS_S = 5.0  # a task that nothing is in the way of has started by then

NIGHT_ITEMS = {"small": 1600, "wide": 1600, "early": 800}
NIGHT_QUEUE = 256
SENT_AHEAD = 64  # what the core keeps at a worker of tiny tasks
WORKERS = 5  # of the night, usually


def seeded() -> random.Random:
    seed = int(os.environ.get("GPUDISPATCH_TEST_SEED", "0")) or random.randrange(1 << 32)
    print(f"GPUDISPATCH_TEST_SEED={seed}")
    return random.Random(seed)


class Device(NamedTuple):
    state: str
    name: str  # of its class
    done: int
    health: str
    foreign: int


class Rows(NamedTuple):
    """What the pool showed at a time."""

    at: float
    devices: dict[str, Device]
    classes: dict[str, Any]


def look(pool: Pool) -> Rows:
    return Rows(
        time.monotonic(),
        {
            row["name"]: Device(
                row["state"] or "", row["class_name"], row["tasks_done"], row["health"],
                row["memory_foreign"] or 0,
            )
            for row in pool.devices()
        },
        {row["name"]: row for row in pool.classes()},
    )  # fmt: skip


# ---- idleness ----


def is_in(device: Device) -> bool:
    """Whether a worker may start on it."""
    return device.health in ("HEALTHY", "UNKNOWN") and device.foreign <= FOREIGN_MOST


def unused(before: Rows, now: Rows) -> dict[str, Device]:
    """The devices that did nothing between two looks: no task ended, no worker came or went."""
    return {
        name: device
        for name, device in now.devices.items()
        if device == before.devices[name] and device.state in ("IDLE", "READY") and is_in(device)
    }


def wants(row: Any) -> bool:
    """Whether one more worker is worth its boot (R5 of docs/explain/scheduling.md)."""
    workers = row["workers"] + row["starting"]
    worth = not workers or row["queued"] * row["run_p50"] > workers * row["boot_p50"]
    return bool(worth and row["queued"] > row["starting"])


def could_use(name: str, free: dict[str, Device], classes: dict[str, Any]) -> int:
    """How many unused devices a class could have: those of idle workers of its own, or enough for
    one more worker.  Such are devices without a worker, or with one whose class has no task."""
    row = classes[name]
    if not row["queued"]:
        return 0
    own = sum(device.name == name for device in free.values())
    places = sum(not d.name or not classes[d.name]["queued"] for d in free.values())
    return own or (places if wants(row) and places >= NEEDS[name] else 0)


class Idleness(NamedTuple):
    name: str
    began: float
    lasted: float
    devices: str


def idleness(samples: list[Rows]) -> list[Idleness]:
    """The stretches in which a class could have used unused devices."""
    found = []
    since: dict[str, tuple[float, str]] = {}
    for before, now in zip(samples, samples[1:], strict=False):
        free = unused(before, now)
        for name in NEEDS:
            if could_use(name, free, now.classes):
                since.setdefault(name, (before.at, " ".join(free)))
            elif name in since:
                began, devices = since.pop(name)
                found.append(Idleness(name, began, before.at - began, devices))
    for name, (began, devices) in since.items():
        found.append(Idleness(name, began, samples[-1].at - began, devices))
    return found


class Watch:
    """A thread that samples the pool, and has it explain tasks at some moments."""

    def __init__(self, pool: Pool, moments: list[tuple[int, str, int]]) -> None:
        self.pool = pool
        self.moments = moments  # outcomes so far, class, priority
        self.samples: list[Rows] = []
        self.seen = 0  # outcomes
        self.explained: list[tuple[Future[int], int, str]] = []
        self.kinds: Counter[str] = Counter()
        self.failed: BaseException | None = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        try:
            while not self.over.wait(SAMPLE_S):
                self.samples.append(look(self.pool))
                if self.moments and self.seen >= self.moments[0][0]:
                    _, name, priority = self.moments.pop(0)
                    self.explain(name, priority)
        except BaseException as error:
            self.failed = error

    def explain(self, name: str, priority: int) -> None:
        item = ITEMS[name] + len(self.explained)
        view: Any = self.pool[name].options(priority=priority)
        future: Future[int] = view.submit(item)
        before = look(self.pool)
        reasons = self.pool.explain(future)
        after = look(self.pool)
        text = f"class {name}, priority {priority}: {[r['text'] for r in reasons]}"
        print(f"after {self.seen} outcomes, {text}")
        for reason in reasons:
            borne_out = any(is_true(reason, name, rows) for rows in (before, after))
            assert borne_out or has_left(reason, before, after), (
                f"{text}\n{reason}\n{before}\n{after}"
            )
            self.kinds[reason["kind"]] += 1
        if not reasons:
            assert until(lambda: future.running() or future.done(), STARTS_S), text
        self.explained.append((future, item * FACTORS[name], text))

    def stop(self) -> None:
        self.over.set()
        self.thread.join()
        if self.failed is not None:
            raise self.failed


def has_left(reason: Any, before: Rows, after: Rows) -> bool:
    """Whether the worker that unloads was there before, and is gone."""
    old, new = before.devices.get(reason["device"]), after.devices.get(reason["device"])
    return bool(
        reason["kind"] == "UNLOADING"
        and old and old.name == reason["class_name"]
        and new and (new.name != old.name or new.state == "STARTING")
    )  # fmt: skip


def is_true(reason: Any, name: str, rows: Rows) -> bool:
    """Whether rows bear out a reason why a task of a class does not start."""
    kind, other = reason["kind"], rows.classes.get(reason["class_name"])
    device = rows.devices.get(reason["device"])
    if kind == "BACKLOG":
        return bool(rows.classes[name]["queued"] >= QUEUE * 0.9)
    if kind == "PASSED_OVER_BY":
        return bool(reason["class_name"] == name and rows.classes[name]["queued"])
    if kind == "BUSY":
        return bool(reason["class_name"] == name and rows.classes[name]["workers"])
    if kind == "BOOTING":
        return other is not None and (
            other["starting"] > 0 or (device is not None and device.name == reason["class_name"])
        )
    if kind == "FAULT":
        if device is None:  # the class waits after a failure
            return other is not None and other["failures"] > 0
        return device.health not in ("HEALTHY", "UNKNOWN")
    if kind == "FOREIGN":
        return (
            reason["device"] in FOREIGN
            and reason["pid"] in (0, FOREIGN_PID)
            and device is not None
            and device.foreign > FOREIGN_MOST
        )
    if kind in ("MIN_RESIDENCE", "MAX_WAIT", "OCCUPIED", "SHARE", "MEMORY"):
        return device is not None and device.name == reason["class_name"] != ""
    if kind == "UNLOADING":
        return device is None or device.state in ("DRAINING", "UNLOADING", "COOLING")
    if kind == "HEAD_HOLDS":
        return other is not None and other["queued"] > 0
    return False  # nothing is pinned, paused or drained, and no limit of workers is reached


def noise(samples: list[Rows]) -> float:
    """The longest time between two looks: for so long a thread got no CPU."""
    return max(b.at - a.at for a, b in zip(samples, samples[1:], strict=False))


def test_evening(tmp_path: Path) -> None:
    generator = seeded()
    total = sum(ITEMS.values())
    dies = generator.choice(["small", "wide"]), generator.randrange(8000, 40_000)
    broken_at = generator.randrange(total // 5, total // 2)
    left_at = broken_at + generator.randrange(total // 10, total // 5)
    breaks = generator.choice(list(NEEDS))  # a worker of this class loses its device
    moments = [
        (generator.randrange(total * 9 // 10), generator.choice(list(NEEDS)), number % 2)
        for number in range(MOMENTS)
    ]
    moments.append((broken_at + 200, breaks, 0))
    pool = evening(tmp_path, dies, QUEUE)
    with pool:
        watch = Watch(pool, sorted(moments))
        try:
            check_evening(tmp_path, pool, watch, dies, (broken_at, breaks), left_at)
        finally:
            watch.stop()
        pool.shutdown()


def check_evening(
    folder: Path,
    pool: Pool,
    watch: Watch,
    dies: tuple[str, int],
    breaks: tuple[int, str],
    left_at: int,
) -> None:
    began = time.monotonic()
    seen = {name: bytearray(n) for name, n in ITEMS.items()}
    second: list[tuple[str, int]] = []
    users: dict[str, list[tuple[str, float, float]]] = {f"fake:{n}": [] for n in range(8)}
    broken, broken_at, left, ends = "", 0.0, 0.0, {}
    sources = {name: range(n) for name, n in ITEMS.items()}
    for count, r in enumerate(pool.outcomes(sources, journal=folder / "evening.gdj"), 1):
        assert r.ok and r.value == r.item * FACTORS[r.name] and r.index == r.item, r
        seen[r.name][r.item] += 1
        if r.attempt > 1:
            second.append((r.name, r.item))
        for device in str(r.device).split(","):
            users[device].append((r.name, r.times.started, r.times.ended))
        ends[r.name] = time.monotonic()
        watch.seen = count
        if watch.failed is not None:
            watch.stop()
        if count >= breaks[0] and not broken:
            devices = look(pool).devices
            # The class may just have no worker: another class's device will do.
            names = [n for n, d in devices.items() if d.name == breaks[1]] or [
                n for n, d in devices.items() if d.name
            ]
            broken, broken_at = names[-1], time.monotonic()
            mark(folder, f"broken-{broken[5:]}")
        if count == left_at:
            mark(folder, "left")
            left = time.monotonic()
    watch.stop()

    for name, n in ITEMS.items():
        assert seen[name].count(1) == n, (name, [i for i, k in enumerate(seen[name]) if k != 1])
    for future, value, text in watch.explained:
        assert future.result(60) == value, text

    # The faults took place, and cost what they must.
    assert dies in second and (folder / "died").exists()
    health = {row["name"]: row["health"] for row in pool.devices()}
    assert health.pop(broken) == "QUARANTINED"
    assert set(health.values()) <= {"HEALTHY", "UNKNOWN"}
    assert pool.stats()["devices_out"] == 1
    out = next(s.at for s in watch.samples if not is_in(s.devices[broken]) and s.at > broken_at)
    assert any(ended < out for _, _, ended in users[broken])
    assert all(started < out for _, started, _ in users[broken])
    for name in FOREIGN:
        assert name == broken or users[name], f"unused after the foreign process: {name}"
        assert all(started > left for _, started, _ in users[name])

    # The devices of the class that is done early serve others.
    assert min(ends, key=lambda name: ends[name]) == "early"
    mine = {n for n, runs in users.items() if any(name == "early" for name, _, _ in runs)}
    for name in mine - {broken}:
        assert any(c != "early" and started > ends["early"] for c, started, _ in users[name]), name

    # No devices are idle for longer than a boot while a class that could use them has work.
    gap = noise(watch.samples)
    booted = {n: max(s.classes[n]["boot_p90"] for s in watch.samples) / 1e9 for n in NEEDS}
    idle = idleness(watch.samples)
    print(
        f"{len(watch.samples)} samples in {time.monotonic() - began:.1f} s, noise {gap:.3f} s, "
        f"boots {booted}, idle {sum(i.lasted for i in idle):.3f} s in all, at most "
        f"{max((i.lasted for i in idle), default=0.0):.3f} s, "
        f"reasons {dict(watch.kinds)}"
    )
    for found in idle:
        allowed = booted[found.name] + MIN_RESIDENCE_S + gap + NOISE_S
        assert found.lasted <= allowed, f"{found} began {found.began - began:.3f} s, {allowed}"
    assert pool.stats()["idle_with_work"] == 0


def test_classes_begin_together(tmp_path: Path) -> None:
    """A class whose first items are in the journal gets devices before another one gets all."""
    journal = tmp_path / "evening.gdj"
    died = {"notes": None, "dies": -1, "died": ""}

    def run(items: dict[str, int]) -> dict[str, list[tuple[float, float]]]:
        times: dict[str, list[tuple[float, float]]] = {}
        with Pool("fake:4") as pool:
            for name in ("wide", "early"):
                pool.add(name, worker=Model, setup={"name": name, **died}, devices=2)
            sources = {name: range(n) for name, n in items.items()}
            for r in pool.outcomes(sources, journal=journal):
                if not r.replayed:
                    times.setdefault(r.name, []).append((r.times.started, r.times.ended))
        return times

    run({"wide": 500, "early": 0})
    times = run({"wide": 600, "early": 2000})
    assert len(times["wide"]) == 100
    assert len(times["early"]) == 2000
    last = max(ended for _, ended in times["early"])
    # Else the two workers of the other class would take all, and stay for 30 s.
    assert min(started for started, _ in times["wide"]) < last


# ---- the whole program is killed ----

# Its outcomes are lines in a pipe, which ends with the host; what workers ran is in another one,
# which ends with the last worker.
HOST = """
import sys
from pathlib import Path

from evening_tasks import FACTORS, evening, mark

folder, notes, queue_size = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
sources = {name: range(int(n)) for name, n in (a.split("=") for a in sys.argv[4:])}

if __name__ == "__main__":
    total = sum(map(len, sources.values()))
    with evening(folder, ("wide", len(sources["wide"]) // 3), queue_size, notes) as pool:
        outcomes = pool.outcomes(sources, journal=folder / "evening.gdj")
        for count, r in enumerate(outcomes, 1):
            assert r.ok and r.value == r.item * FACTORS[r.name] and r.index == r.item, r
            print(r.name, r.item, int(r.replayed), flush=True)
            if count == total // 4:
                mark(folder, "broken-1")
            if count == total // 2:
                mark(folder, "left")
    print("end", flush=True)
"""


class Run(NamedTuple):
    """What one run of the program did, until its end or until it was killed."""

    outcomes: list[tuple[str, int, bool]]
    ran: list[tuple[str, int]]
    ended: bool


def run_night(folder: Path, kill_after: int | None) -> Run:
    """Runs the program; kills it after so many outcomes."""
    notes = folder / "notes"
    if not notes.exists():
        os.mkfifo(notes)
    ran = os.open(notes, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(notes, os.O_WRONLY)  # a pipe that never had one does not report its end
    reader = Notes(ran)
    script = folder / "host.py"
    script.write_text(HOST)
    items = [f"{name}={n}" for name, n in NIGHT_ITEMS.items()]
    try:
        with subprocess.Popen(
            [sys.executable, str(script), str(folder), str(notes), str(NIGHT_QUEUE), *items],
            stdout=subprocess.PIPE, text=True,
        ) as host:  # fmt: skip
            assert host.stdout is not None
            lines: list[str] = []
            for line in host.stdout:
                if line.endswith("\n"):
                    lines.append(line.strip())
                if kill_after is not None and len(lines) == kill_after:
                    host.kill()
            code = host.wait(60)
        # It may be ahead of its lines here, and end before it is killed.
        assert code == 0 or kill_after is not None and code == -signal.SIGKILL
    finally:
        os.close(writer)
        reader.thread.join()
        os.close(ran)
    ended = bool(lines) and lines[-1] == "end"
    outcomes = [
        (name, int(item), replayed == "1")
        for name, item, replayed in (line.split() for line in lines if line != "end")
    ]
    return Run(outcomes, [(n, int(i)) for n, i in map(str.split, reader.lines())], ended)


class Notes:
    """Reads a pipe to its end, so that no worker waits for room in it."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.data = b""
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while select.select([self.pipe], [], [], 60)[0]:
            part = os.read(self.pipe, 1 << 16)
            if not part:
                return
            self.data += part

    def lines(self) -> list[str]:
        return self.data.decode().splitlines()


def recorded(folder: Path) -> Counter[tuple[str, int]]:
    journal = folder / "evening.gdj"
    if not journal.exists():
        return Counter()
    records = list(read_journal(journal, history=True))
    assert all(r.ok and r.value == r.index * FACTORS[r.name] for r in records)
    return Counter((r.name, r.index) for r in records)


def check_night(folder: Path, points: list[int]) -> list[int]:
    """Kills the program at each point, then lets it end; returns how many items ran twice because
    of each kill."""
    folder.mkdir()
    every = {(name, i) for name, n in NIGHT_ITEMS.items() for i in range(n)}
    dies = ("wide", NIGHT_ITEMS["wide"] // 3)
    twice: list[int] = []
    lost: set[tuple[str, int]] = set()
    for point in [*points, None]:
        before = recorded(folder)
        run = run_night(folder, point)
        after = recorded(folder)
        assert run.ended or point is not None
        assert set(after.values()) <= {1}

        yielded = Counter((name, item) for name, item, _ in run.outcomes)
        assert set(yielded.values()) <= {1}
        assert yielded.keys() <= after.keys()
        assert {(name, item) for name, item, replayed in run.outcomes if replayed} <= before.keys()

        # What was recorded does not run again.  In a run an item runs once, but for the one that
        # kills its worker, and those that were at the worker of the GPU that broke.
        ran = Counter(run.ran)
        assert not ran.keys() & before.keys()
        assert after.keys() - before.keys() <= ran.keys()
        again = {item for item, n in ran.items() if n > 1} - {dies}
        assert max(ran.values(), default=1) <= 2 and len(again) <= SENT_AHEAD, again
        twice.append(len(lost & ran.keys()))
        lost = set(ran) - set(after)
    assert set(after) == every == set(yielded)
    return twice[1:]


def check_nights(folder: Path, count: int) -> None:
    """An item runs twice if the host dies between its start and its record: it was at a worker, or
    at the host's library thread, which goes on while its Python thread waits for a CPU.  So the
    first bounds the usual case, and only the quotas of the classes each single one."""
    generator = seeded()
    twice = []
    for number in range(count):
        points = [generator.randrange(sum(NIGHT_ITEMS.values())) for _ in range(2)]
        twice += check_night(folder / f"{number}", points)
    print(f"{len(twice)} kills; items that ran twice: {sorted(twice)}")
    assert max(twice) <= NIGHT_QUEUE * len(NIGHT_ITEMS)
    assert statistics.median(twice) <= WORKERS * SENT_AHEAD


def test_killed_and_run_again(tmp_path: Path) -> None:
    check_nights(tmp_path, 2)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_killed_at_100_points(tmp_path: Path) -> None:
    check_nights(tmp_path, 50)
