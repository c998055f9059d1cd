# SPDX-License-Identifier: MIT
"""The moment of a pool: its history, which _core keeps, and the present work of its workers."""

from __future__ import annotations

import struct
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from gpudispatch.moment import SECONDS, End, Lane, Moment, Second, badly, count, left, span

if TYPE_CHECKING:
    from gpudispatch.engine import Engine
    from gpudispatch.tables import ClassStats, DeviceInfo, SlotStats, Stats

SECOND = struct.Struct("<IIIII5IB3x")  # struct second of src/history.c
BAD = ("error", "timeout", "crashed", "cancelled", "no worker")  # outcomes from 2 on
OWN_CLASSES = 8  # with a texture of their own
WORKS = ("BUSY", "DRAINING")
LOADS = {"STARTING": "load", "UNLOADING": "leave", "COOLING": "leave"}
OUT = ("QUARANTINED", "LOST", "REVOKED")
NS = 1_000_000_000


class Doing(NamedTuple):
    """The present work of a worker."""

    texture: str
    since: int
    words: str


def texture_of(index: int) -> str:
    """The one of the class with this index."""
    return f"CLASS_{index}" if index < OWN_CLASSES else "CLASS_OTHER"


def look(engine: Engine, title: str) -> Moment:
    """The present moment.  Any thread."""
    now, at = time.monotonic_ns(), time.time()
    began, classes, lanes, ends, bad = engine.core.history()
    stats: Stats = engine.look("stats")
    devices: list[DeviceInfo] = engine.look("devices")
    rows: list[ClassStats] = engine.look("classes")
    slots: list[SlotStats] = engine.look("slots")
    classes = list(dict.fromkeys([*classes, *(row["class_name"] for row in slots if row["pid"])]))
    doing = _doing(slots, classes)
    drawn = {name: _Drawn(now, began, data) for name, data in lanes}
    names = [row["name"] for row in devices]
    names += sorted(name for name in {*drawn, *doing} if name and name not in names)
    outs = {row["name"]: _out(row, now) for row in devices}
    made = [
        _lane(name, drawn.get(name) or _Drawn(now, began, b""), doing.get(name, []), outs.get(name))
        for name in names
    ]
    if "" in drawn and drawn[""].bad:  # tasks that never had a device
        made.append(Lane("", "", False, drawn[""].seconds()))
    ran = [Counter(_textures(lane)) for lane in made]
    used = {key: _named(key, classes) for key in sorted(sum(ran, Counter())) if "CLASS_" in key}
    return Moment(
        at, title, _line(stats, rows), tuple(made), used,
        tuple(_end(e, classes, at - now / NS) for e in ends), bad, (),
        bool(stats["queued"] or stats["sent"] or doing) and not engine.ended, engine.ended,
    )  # fmt: skip


def _textures(lane: Lane) -> list[str]:
    return [texture for second in lane.seconds for texture, _ in second.parts]


def _named(key: str, classes: list[str]) -> str:
    return "other classes" if key == "CLASS_OTHER" else classes[int(key.removeprefix("CLASS_"))]


def _line(stats: Stats, rows: list[ClassStats]) -> str:
    bad = {
        "error": stats["error"], "timeout": stats["timeout"], "crashed": stats["crashed"],
        "cancelled": stats["cancelled"], "no worker": stats["no_worker"],
    }  # fmt: skip
    running, queued = sum(r["running"] for r in rows), sum(r["queued"] for r in rows)
    parts = [f"{running:,} running", f"{queued:,} waiting", f"{stats['success']:,} ended well"]
    parts.append(badly(bad))
    if stats["retried"]:
        parts.append(f"{stats['retried']:,} tried again")
    if running or queued:
        low, high = stats["eta_low"], stats["eta_high"]
        parts.append(left(None if low is None else low / NS, None if high is None else high / NS))
    return ", ".join(part for part in parts if part)


def _end(row: tuple[int, int, int, int, str, str, str], classes: list[str], offset: float) -> End:
    number, at, outcome, index, device, label, text = row
    whose = " ".join(word for word in (classes[index], label) if word)
    return End(number, at / NS + offset, BAD[outcome - 2], device, whose, text)


# ---- lanes ----


class _Drawn:
    """The seconds of a device, from the last SECONDS."""

    def __init__(self, now: int, began: int, data: bytes) -> None:
        self.now, self.first = now, now // NS - SECONDS + 1
        self.shares: list[dict[str, float]] = [{} for _ in range(SECONDS)]
        self.bad: dict[int, tuple[tuple[str, int], ...]] = {}
        for i in range(min(SECONDS, max(0, began // NS - self.first))):
            self.shares[i]["UNKNOWN"] = 1.0  # before the pool was made
        for at, busy, _, lost, loading, *bad, index in SECOND.iter_unpack(data):
            i = at - self.first
            if not 0 <= i < SECONDS:
                continue
            self._add(i, texture_of(index), busy / 1e6)
            self._add(i, "BAD", lost / 1e6)
            self._add(i, "LOADING", loading / 1e6)
            if any(bad):
                self.bad[i] = tuple((k, n) for k, n in zip(BAD, bad, strict=True) if n)

    def _add(self, i: int, texture: str, share: float) -> None:
        if share:
            self.shares[i][texture] = self.shares[i].get(texture, 0.0) + share

    def goes_on(self, texture: str, since: int) -> None:
        """Adds work that has not ended, which is in no history."""
        since = max(since, self.first * NS)
        while since < self.now:
            until = min(self.now, (since // NS + 1) * NS)
            self._add(since // NS - self.first, texture, (until - since) / NS)
            since = until

    def seconds(self) -> tuple[Second, ...]:
        return tuple(
            Second(_fitted(shares), self.bad.get(i, ())) for i, shares in enumerate(self.shares)
        )


def _fitted(shares: dict[str, float]) -> tuple[tuple[str, float], ...]:
    """As parts of one second, first those of tasks: several may have run at a time."""
    tasks = [(t, n) for t, n in shares.items() if t.startswith("CLASS_") or t == "BAD"]
    sum_ = max(1.0, sum(n for _, n in tasks))
    parts = [(t, n / sum_) for t, n in sorted(tasks, key=lambda p: p[0] == "BAD")]
    room = 1.0 - sum(n for _, n in parts)
    for texture in ("LOADING", "OUT", "UNKNOWN"):
        share = min(room, shares.get(texture, 0.0))
        if share > 1e-6:
            parts.append((texture, share))
            room -= share
    return tuple(parts)


def _doing(slots: list[SlotStats], classes: list[str]) -> dict[str, list[Doing]]:
    """By device: the present work of its workers."""
    found: dict[str, list[Doing]] = {}
    for row in slots:
        name = row["class_name"]
        if row["task_id"] and row["state"] in WORKS:
            texture = texture_of(classes.index(name)) if name in classes else "CLASS_OTHER"
            does = Doing(texture, row["task_started"], f"run {name}")
        elif row["state"] in LOADS:
            does = Doing("LOADING", row["since"], f"{LOADS[row['state']]} {name}")
        else:
            continue
        for device in row["devices"].split(","):
            found.setdefault(device, []).append(does)
    return found


def _out(row: DeviceInfo, now: int) -> Doing | None:
    """Why a device is out of use."""
    if row["health"] in OUT:
        return Doing("OUT", row["since"], f"{row['health'].lower()}: {row['evidence']}")
    if row["draining"]:
        return Doing("OUT", row["state_since"] or now, "drained")
    return None


def _lane(name: str, drawn: _Drawn, doing: list[Doing], out: Doing | None) -> Lane:
    for does in doing:
        drawn.goes_on(does.texture, does.since)
    if out is not None:
        drawn.goes_on(out.texture, out.since)
    words = [f"{d.words} {span((drawn.now - d.since) / NS)}" for d in doing[:1]]
    words += [count(len(doing) - 1, "further worker")] if len(doing) > 1 else []
    words += [out.words] if out is not None else []
    runs = any(d.texture != "LOADING" for d in doing)
    return Lane(name, ", ".join(words) or "idle", runs, drawn.seconds())
