#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Judges the time left (view/night/left.h) by traces whose ends are known.              [V8]

usage: left.py FEED SIMULATOR TRACES [--tune]

A day is a trace in the simulator of the scheduler (lib/sim/trace.h), or a made-up night.  Each
minute of a batch between 10 and 90 % of the time from its first start to its last end has a range,
or the time left is unknown.  The queue is judged in the same way: by the last end of the batches
that are there.  The constants of left.c were chosen with --tune, which has other seeds.

Of some days nothing can tell the end: GPUs drop out, batches of a higher priority arrive, tasks
grow, and classes evict one another.  They are judged like all others.
"""
import argparse
import bisect
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import nights  # noqa: E402
from checks import Checks  # noqa: E402

SECOND = 10**9
MINUTE = 60 * SECOND
ENOUGH = 50  # minutes of a day that tell something

# ---- Traces ----


def lognormal(mean, spread):
    return lambda rng: mean * rng.lognormvariate(-spread * spread / 2, spread)


def scale(least, most):
    return lambda rng: least * (most / least) ** rng.random()


def two(short, long, part):
    return lambda rng: rng.gauss(1, 0.1) * (long if rng.random() < part else short)


class Trace:
    """A day of batches on GPUs."""

    def __init__(self, rng, devices=8, classes=None, memory=80):
        self.rng, self.batches = rng, 0
        self.lines = [{"devices": [{"name": f"g{i}", "memory_gib": memory} for i in range(devices)],
                       "classes": classes or {}, "write": ["tasks"]}]

    def batch(self, at, tasks, run, every=0, **request):
        self.batches += 1
        for i in range(tasks):
            seconds = round(max(1, run(self.rng)), 3)
            self.lines.append({"at": round(at + i * every, 3), "task": f"{self.batches}.{i}",
                               "run_s": seconds, "limit_s": round(seconds * 1.3 + 1, 3), **request})

    def device(self, at, number, state):
        self.lines.append({"at": at, "device": f"g{number}", "state": state})

    def text(self):
        head, *rest = self.lines
        rest.sort(key=lambda x: x["at"])
        return "\n".join(json.dumps(x) for x in [head, *rest])


def one_batch(rng):
    t = Trace(rng)
    run = lognormal(rng.choice([20, 60, 200]), rng.uniform(0.1, 0.8))
    t.batch(0, rng.randrange(100, 2000), run)
    return t


def alike(rng):
    """Run times that hardly differ."""
    t = Trace(rng)
    t.batch(0, rng.randrange(40, 200), lognormal(rng.uniform(200, 900), 0.02))
    return t


def few_wide(rng):
    t = Trace(rng)
    t.batch(0, rng.randrange(16, 40), lognormal(rng.uniform(900, 3000), 0.3), devices=2)
    return t


def widest(rng):
    """One task at a time."""
    t = Trace(rng)
    t.batch(0, rng.randrange(10, 30), lognormal(rng.uniform(300, 1800), 0.4), devices=8)
    return t


def heavy(rng):
    """Some take 30 times as long."""
    t = Trace(rng)
    t.batch(0, rng.randrange(200, 900), two(30, rng.uniform(300, 900), 0.1))
    return t


def behind(rng):
    """Batches one behind the other."""
    t = Trace(rng)
    for _ in range(rng.randrange(3, 6)):
        t.batch(0, rng.randrange(50, 400), lognormal(rng.uniform(20, 300), 0.5))
    return t


def arrive(rng):
    """Batches of all kinds arrive during a night."""
    t, at = Trace(rng), 0
    for _ in range(rng.randrange(6, 14)):
        t.batch(at, rng.randrange(20, 200), lognormal(rng.uniform(60, 400), 0.6),
                devices=rng.choice([1, 1, 1, 2, 4]))
        at += rng.expovariate(1 / 2500)
    return t


def urgent(rng):
    """Short batches of a higher priority cut in."""
    t = Trace(rng)
    t.batch(0, rng.randrange(300, 900), lognormal(rng.uniform(100, 300), 0.5))
    for _ in range(rng.randrange(2, 6)):
        t.batch(rng.uniform(600, 12000), rng.randrange(10, 60), lognormal(60, 0.5), priority=1)
    return t


def wide_and_narrow(rng):
    t = Trace(rng)
    t.batch(0, rng.randrange(300, 800), scale(60, 1200))
    t.batch(300, rng.randrange(10, 40), scale(300, 3600), devices=2)
    t.batch(900, rng.randrange(4, 20), scale(300, 3600), devices=4)
    return t


def shares(rng):
    t = Trace(rng, 4)
    t.batch(0, rng.randrange(200, 600), scale(30, 900), share=0.25, memory_gib=10)
    t.batch(200, rng.randrange(100, 300), scale(30, 900), share=0.5, memory_gib=20)
    t.batch(400, rng.randrange(20, 80), scale(30, 900), memory_gib=60)
    return t


def models(rng):
    """Workers that evict one another."""
    transient = {"unload_s": 5, "memory_gib": 60, "max_wait_s": 300}
    classes = {name: dict(transient, boot_s=rng.randrange(20, 150)) for name in "abc"}
    t = Trace(rng, rng.randrange(2, 9), classes)
    for i, name in enumerate("abc"):
        t.batch(rng.uniform(0, 900) * i, rng.randrange(100, 600),
                lognormal(rng.uniform(10, 90), 0.4), **{"class": name})
    return t


def capped(rng):
    """A class of few workers beside others."""
    t = Trace(rng, 8, {"m": {"resident": True, "boot_s": 60, "memory_gib": 40, "max_workers": 3}})
    t.batch(0, rng.randrange(200, 900), lognormal(rng.uniform(20, 120), 0.4), **{"class": "m"})
    t.batch(100, rng.randrange(60, 200), lognormal(rng.uniform(100, 400), 0.5))
    return t


def drops_out(rng):
    """GPUs drop out, and some return."""
    t = Trace(rng)
    t.batch(0, rng.randrange(400, 900), lognormal(rng.uniform(100, 300), 0.4))
    for i in rng.sample(range(8), 3):
        at = rng.uniform(600, 9000)
        t.device(round(at), i, "drained")
        if rng.random() < 0.6:
            t.device(round(at + rng.uniform(900, 5000)), i, "resumed")
    return t


def pauses(rng):
    """All GPUs pause for a while."""
    t = Trace(rng)
    t.batch(0, rng.randrange(400, 900), lognormal(rng.uniform(100, 300), 0.4))
    at = round(rng.uniform(2000, 6000))
    for i in range(8):
        t.device(at, i, "paused")
        t.device(at + 1800, i, "resumed")
    return t


def slower(rng):
    """Files in order of size: the last ones take twice as long as the first ones."""
    t, n = Trace(rng), rng.randrange(200, 600)
    sizes = iter(range(n))
    t.batch(0, n, lambda rng: 100 * 2 ** (next(sizes) / n) * lognormal(1, 0.3)(rng))
    return t


def one_gpu(rng):
    t = Trace(rng, 1)
    for _ in range(2):
        t.batch(rng.uniform(0, 600), rng.randrange(20, 100), lognormal(rng.uniform(30, 200), 0.5))
    return t


def cpus(rng):
    t = Trace(rng)
    t.lines[0]["policy"] = {"cpus": 100}
    t.batch(0, rng.randrange(800, 3000), lognormal(rng.uniform(60, 300), 0.6), devices=0)
    return t


KINDS = [one_batch, alike, few_wide, widest, heavy, behind, arrive, urgent, wide_and_narrow, shares,
         models, capped, drops_out, pauses, slower, one_gpu, cpus]
NIGHTS = ["night", "one-gpu", "64-gpus", "crash-burst", "quarantine", "eviction", "adoption",
          "shares", "no-gpus", "mig"]


# ---- Batches: id -> list of attempts: (ready, start, end) in ns ----


def simulated(simulator, text):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as f:
        f.write(text)
        f.flush()
        out = subprocess.run([simulator, f.name], stdout=subprocess.PIPE, check=True).stdout
    batches = {}
    for line in out.splitlines():
        x = json.loads(line)
        if "outcome" in x and x.get("start") is not None and "end" in x:
            batches.setdefault(x["task"].split(".")[0], []).append(
                tuple(int(x[k] * SECOND) for k in ("queued", "start", "end")))
    return batches


def recorded(text):
    batches = {}
    for line in text.decode("utf-8", "replace").splitlines():
        f = line.split("\t")
        if f[0] == "attempt" and f[2] != "0":
            batches.setdefault(f[1].split(".")[0], []).append(
                tuple(int(x or 0) for x in f[5:8]))
    return {b: a for b, a in batches.items() if all(x[2] for x in a)}


# ---- The judgement ----


class Row:
    """How the true ends lay to the ranges: minutes."""

    def __init__(self):
        self.inside = self.sooner = self.later = self.unknown = 0
        self.ratios = []

    def answer(self, least, most, left):
        if most < 0:
            self.unknown += 1
            return
        self.inside += least <= left <= most
        self.sooner += left < least
        self.later += left > most
        self.ratios.append(most / max(least, SECOND))

    def add(self, other):
        for name in "inside", "sooner", "later", "unknown":
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.ratios += other.ratios

    @property
    def known(self):
        return self.inside + self.sooner + self.later

    @property
    def share(self):
        """Per cent."""
        return 100 * self.inside / self.known if self.known else 100

    @property
    def ratio(self):
        return statistics.median(self.ratios) if self.ratios else 1

    def text(self):
        asked = self.known + self.unknown
        return (f"{asked:7} {self.unknown:7} {self.share:6.0f} % {self.sooner:6} {self.later:6}"
                f" {self.ratio:10.2f}")


HEAD = f"{'':32} minutes unknown   inside sooner  later most/least"


class Batch:
    def __init__(self, number, attempts):
        self.number, self.attempts = number, attempts
        self.ready, self.starts = (sorted(a[i] for a in attempts) for i in (0, 1))
        self.begin, self.end = self.starts[0], max(a[2] for a in attempts)

    def question(self, at):
        waiting = bisect.bisect(self.ready, at) - bisect.bisect(self.starts, at)
        return f"? {self.number} {at} {waiting}\n"


def minutes(begin, end):
    """Those between 10 and 90 % of a time."""
    return range(begin + (end - begin) // 10, begin + (end - begin) * 9 // 10, MINUTE)


def judge(feed, batches):
    """Returns the rows of the batches, each alone, and of the whole queue."""
    batches = [Batch(i, attempts) for i, attempts in enumerate(batches.values())]
    lines, rows = [], [Row(), Row()]
    for b in batches:
        lines += [(a[2], 0, f"- {b.number} {a[1]} {a[2]}\n") for a in b.attempts]
        lines += [(a[1], 1, f"+ {b.number} {a[1]}\n") for a in b.attempts]
        lines += [(at, 2, b.question(at) + "=\n", rows[0], b.end - at)
                  for at in minutes(b.begin, b.end)]
    begin = min((b.begin for b in batches), default=0)
    for at in minutes(begin, max((b.end for b in batches), default=0)):
        there = [b for b in batches if b.ready[0] <= at < b.end]
        if there:
            lines.append((at, 3, "".join(b.question(at) for b in there) + "=\n", rows[1],
                          max(b.end for b in there) - at))
    lines.sort(key=lambda x: x[:3])
    out = subprocess.run([feed], input="".join(x[2] for x in lines), text=True,
                         stdout=subprocess.PIPE, check=True).stdout.splitlines()
    asked = [x for x in lines if len(x) > 3]
    for answer, (_, _, _, row, left) in zip(out, asked, strict=True):
        row.answer(*map(int, answer.split()), left)
    return rows


def days(args):
    """Yields kind, name and batches."""
    for kind in KINDS:
        for seed in range(100, 106) if args.tune else range(4):
            rng = random.Random(f"{kind.__name__} {seed}")
            yield kind.__name__, seed, simulated(args.simulator, kind(rng).text())
    for name in NIGHTS:
        for seed in range(100, 102) if args.tune else range(11, 13):
            yield "nights", f"{name} {seed}", recorded(nights.text(name, seed))
    for path in sorted(pathlib.Path(args.traces).glob("*.jsonl")):
        yield "traces", path.stem, simulated(args.simulator, path.read_text())


def table(args):
    """Prints a row for each day, each kind, and for all.  Returns the rows by their names."""
    days_, kinds, rows = {}, {}, {"all": Row(), "the queue": Row()}
    print(HEAD)
    for kind, name, batches in days(args):
        row, queue = judge(args.feed, batches)
        days_[f"{kind} {name}"] = row
        if row.known:
            print(f"{kind} {name}"[:32].ljust(32), row.text())
        kinds.setdefault(kind, Row()).add(row)
        rows["all"].add(row)
        rows["the queue"].add(queue)
    print(HEAD)
    for name, row in (kinds | rows).items():
        print(name.ljust(32), row.text())
    return days_, kinds, rows["all"], rows["the queue"]


def low(rows):
    """Names of those below 60 %, of all that were asked often enough; and how many these are."""
    asked = {name: row for name, row in rows.items() if row.known >= ENOUGH}
    return [name for name, row in asked.items() if row.share < 60], len(asked)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("feed")
    parser.add_argument("simulator")
    parser.add_argument("traces")
    parser.add_argument("--tune", action="store_true", help="other seeds")
    args = parser.parse_args()
    days_, kinds, total, queue = table(args)
    check = Checks("left")
    check("inside_in_80_of_100", total.share >= 80, total.share)
    check("narrow", total.ratio <= 1.6, total.ratio)
    check("mostly_known", total.unknown <= 0.1 * (total.known + total.unknown), total.unknown)
    check("each_kind", not low(kinds)[0], low(kinds))
    check("most_days", len(low(days_)[0]) <= 0.1 * low(days_)[1], low(days_))
    check("the_queue_inside", queue.share >= 80, queue.share)
    check("the_queue_narrow", queue.ratio <= 1.6, queue.ratio)
    check("the_queue_known", queue.unknown <= 0.6 * (queue.known + queue.unknown), queue.unknown)
    return 1 if check.failed else 0


sys.exit(main())
