#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Made-up nights as lines of records (view/line.h), the same for each seed.

usage: nights.py NAME [--seed N] [--tasks N] > FILE
       nights.py --list
"""
import argparse
import io
import random
import sys

from lines import HOUR, MINUTE, SECOND, Night
from world import Lanes, Work, World

SEGFAULT = ("crashed", 6, -11, "killed by signal 11 (SIGSEGV): engine: bad frame header")
NO_MEMORY = ("error", 95, 1, "exit status 1: torch.OutOfMemoryError: CUDA out of memory. "
             "Tried to allocate 12.00 GiB")
XID = "XID 48 (double-bit ECC error), canary failed 2 of 2"


def ok_mostly(rng, mean, mishaps=0.05):
    """A verdict (world.Lanes.run)."""
    def verdict(task, attempt):
        seconds = rng.lognormvariate(0, 0.4) * mean
        if rng.random() < mishaps:
            return rng.choice([("error", seconds, 1, f"exit status 1: KeyError: 'x{task % 7}'"),
                               ("timeout", 2 * mean, -9, f"exceeded its time limit of {mean} s"),
                               SEGFAULT, ("lost", seconds, 0, "the agent does not know its end")])
        return "ok", seconds, 0, ""
    return verdict


def lanes_night(rng, tasks, gpus, name="sweep", begin=-20 * SECOND, jumps=(), boots=True):
    """A night with one class, one shape and one batch.  Returns the night and its GPUs."""
    night = Night(jumps=jumps)
    names = night.machine(gpus, rng)
    night.class_("engine")
    night.shape(1, "engine", 1, "1 GPU")
    night.batch(1, name, tasks, 0, 1)
    for gpu in names if boots else []:
        night.tenancy(gpu, "boot", "engine", 0, rng.randrange(20, 60) * SECOND, "first use")
    if begin is not None:
        night.life("opened", begin, None)
    return night, names


def the_night(rng, tasks, mishaps=True):
    """8 GPUs, three classes: a crash burst, a quarantined GPU, evictions, wide tasks, and a foreign
    process.  More tasks than 1,200 are shorter by as much."""
    factor = max(1, tasks // 1200)
    night = Night()
    night.life("opened", -40 * SECOND, None)
    works = [
        Work(12, "night", "shell", 1, 96 * factor, 0, 1, 0, 300 / factor, 0.55, 1800),
        Work(15, "rec-11", "whisper", 1, 900 * factor, 300, 3, 0, 80 / factor, 0.35, 600),
        Work(14, "sweep", "train", 2, 24 * factor, 600, 2, 0, 2300 / factor, 0.25, 14400),
        Work(16, "judge", "judge", 2, 180 * factor, 9000, 1, 1, 84 / factor, 0.4, 900)]
    cursed = {(15, 610 * factor + i): SEGFAULT for i in range(22)}
    cursed.update({(14, 9 * factor): NO_MEMORY, (14, 17 * factor): NO_MEMORY})
    world = World(night, rng, 8, works, {"whisper": 38, "judge": 140, "shell": 0, "train": 0},
                  cursed)
    if mishaps:
        world.later(4210 * SECOND, world.foreign, 6, "ben's python (pid 8123), 41 GiB",
                    6700 * SECOND)
        world.later(18720 * SECOND, world.fail, 5, "quarantined", XID)
    return night, world


def night_(rng, tasks):
    night, world = the_night(rng, tasks or 1200)
    return night, world.run() + 90 * SECOND


def large(rng, tasks):
    return night_(rng, tasks or 100000)


def running(rng, tasks):
    """The night at 02:17 or so."""
    night, world = the_night(rng, tasks or 1200)
    return night, world.run(22620 * SECOND + rng.randrange(HOUR))


def small(rng, tasks):
    """The night of a short file."""
    night, world = the_night(rng, 1200)
    return night, world.run(rng.randrange(5, 15) * MINUTE)


def empty(rng, tasks):
    return Night(), 0


def nothing(rng, tasks):
    """24 h without a task."""
    night = Night()
    night.machine(8, rng)
    night.life("opened", 0, None)
    return night, 24 * HOUR


def one(rng, tasks):
    night, gpus = lanes_night(rng, 1, 1)
    night.attempt(1, 1, 1, 1, gpus, 0, 61 * SECOND, 73 * SECOND + 5, "ok", name="hello")
    return night, 80 * SECOND


def all_failed(rng, tasks):
    night, gpus = lanes_night(rng, tasks or 60, 4)
    kinds = [("error", 3, 2, "exit status 2: No such file or directory: /data/a b"), SEGFAULT,
             NO_MEMORY, ("timeout", 30, -9, "exceeded its time limit of 30.000 s (limit)")]
    kind = rng.sample(kinds, len(kinds))
    last = Lanes(night, rng, [[g] for g in gpus], 60).run(
        1, 1, range(1, (tasks or 60) + 1), 0, lambda task, attempt: kind[task % 4])
    return night, last + MINUTE


def one_gpu(rng, tasks):
    """Two classes take turns on a GPU, and a wide task never starts."""
    night = Night()
    night.life("opened", -SECOND, None)
    works = [Work(1, "a", "whisper", 1, tasks or 30, 0), Work(2, "b", "judge", 1, tasks or 30, 600),
             Work(3, "wide", "shell", 2, 1, 900)]
    world = World(night, rng, 1, works, {"whisper": 38, "judge": 140, "shell": 0})
    return night, world.run(3 * HOUR)


def gpus64(rng, tasks):
    night = Night()
    count = tasks or 600
    night.life("opened", -SECOND, None)
    works = [Work(1, "a", "whisper", 1, count, 0), Work(2, "b", "shell", 8, count // 15, 300),
             Work(3, "c", "judge", 4, count // 10, 900, 4, 1)]
    world = World(night, rng, 64, works, {"whisper": 38, "judge": 140, "shell": 0})
    world.later(1000 * SECOND, world.fail, rng.randrange(64), "failed", "its worker failed 3 times")
    return night, world.run() + MINUTE


def mig(rng, tasks):
    """Two GPUs, one of which is divided."""
    night = Night()
    whole = night.machine(2, rng)
    parts = []
    for i in range(4):
        parts.append(f"gpu:1:{i}")
        night.gpu(parts[-1], f"MIG-{rng.getrandbits(64):016x}", 1, "NVIDIA H200 MIG 1g.18gb",
                  "00000000:2C:00.0", "1g.18gb", night.gpus[whole[1]])
    night.class_("shell")
    night.shape(1, "shell", 1, "1 GPU, 12 GiB")
    night.batch(1, "parts", tasks or 80, 0, 1)
    night.life("opened", -SECOND, None)
    last = Lanes(night, rng, [[g] for g in [whole[0], *parts]]).run(
        1, 1, range(1, (tasks or 80) + 1), 0, ok_mostly(rng, 60))
    return night, last + MINUTE


def crash_burst(rng, tasks):
    night = Night()
    night.life("opened", -SECOND, None)
    count = tasks or 200
    first = rng.randrange(1, count // 2)
    world = World(night, rng, 4, [Work(7, "rec", "whisper", 1, count, 10)], {"whisper": 38},
                  {(7, first + i): SEGFAULT for i in range(min(44, count // 4))}, tries=3)
    return night, world.run() + MINUTE


def quarantine(rng, tasks):
    night = Night()
    night.life("opened", -SECOND, None)
    world = World(night, rng, 3, [Work(1, "a", "whisper", 1, tasks or 80, 0),
                                  Work(2, "b", "shell", 2, 9, 60, 1)], {"whisper": 38, "shell": 0})
    world.later(rng.randrange(100, 900) * SECOND, world.fail, 1, "quarantined", XID)
    world.later(rng.randrange(100, 900) * SECOND, world.fail, 2, "backoff", "2 workers failed",
                1500 * SECOND)
    return night, world.run(HOUR)


def eviction(rng, tasks):
    """Classes that want the same two GPUs."""
    night = Night()
    night.life("opened", -SECOND, None)
    works = [Work(i + 1, name, name, 1, tasks or 40, 200 * i, 1, 0, 45)
             for i, name in enumerate(["whisper", "judge", "ocr"])]
    world = World(night, rng, 2, works, {"whisper": 38, "judge": 140, "ocr": 12})
    return night, world.run() + MINUTE


def adoption(rng, tasks):
    """The agent is killed; a later one adopts the commands that still run."""
    night, gpus = lanes_night(rng, tasks or 80, 4, begin=None)
    killed, opened = 20 * MINUTE + rng.randrange(MINUTE), 27 * MINUTE
    night.life("opened", -SECOND, killed)
    night.life("opened", opened, None)
    night.life("adopted", opened, opened, "4 commands still ran")
    last = Lanes(night, rng, [[g] for g in gpus], 60, away=(killed, opened)).run(
        1, 1, range(1, (tasks or 80) + 1), 0, ok_mostly(rng, 100, 0.2))
    return night, last + MINUTE


def clock(rng, tasks, at, by, text):
    night, gpus = lanes_night(rng, tasks or 120, 2, jumps=[(at, by)])
    night.life("clock", at, at, text)
    last = Lanes(night, rng, [[g] for g in gpus], 60).run(
        1, 1, range(1, (tasks or 120) + 1), 0, ok_mostly(rng, 100))
    return night, last + max(0, -by) + MINUTE


def clock_forward(rng, tasks):
    return clock(rng, tasks, 30 * MINUTE + rng.randrange(MINUTE), HOUR, "set forward by 1 h")


def clock_back(rng, tasks):
    return clock(rng, tasks, 40 * MINUTE + rng.randrange(MINUTE), -20 * MINUTE,
                 "set back by 20 min")


def shares(rng, tasks):
    """Four tasks at a time share a GPU, two the other one."""
    night, gpus = lanes_night(rng, tasks or 100, 2)
    last = Lanes(night, rng, [[gpus[0]]] * 4 + [[gpus[1]]] * 2, 60).run(
        1, 1, range(1, (tasks or 100) + 1), 0, ok_mostly(rng, 40, 0.3))
    return night, last + MINUTE


def no_gpus(rng, tasks):
    """Tasks on CPUs beside two GPUs, which stay idle while they wait."""
    night, _ = lanes_night(rng, tasks or 100, 2, boots=False)
    night.class_("cpu")
    night.shape(2, "cpu", 0, "no GPU")
    night.batch(2, "unpack", tasks or 100, 5 * SECOND, 2)
    night.batches[1].total = 0
    last = Lanes(night, rng, [[]] * 8).run(2, 2, range(1, (tasks or 100) + 1), 5,
                                           ok_mostly(rng, 30))
    return night, last + 5 * MINUTE


def retries(rng, tasks):
    """Attempts in vain and tasks without one, in a batch that another one joins."""
    count = tasks or 60
    night, gpus = lanes_night(rng, count + 5, 2)
    last = Lanes(night, rng, [[g] for g in gpus], 60, tries=3).run(
        1, 1, range(1, count + 1), 0, ok_mostly(rng, 30, 0.4), lambda task: f"part {task}")
    for i, (outcome, text) in enumerate([
            ("cancelled", "cancelled by ada"), ("cancelled", "cancelled by ada"),
            ("no worker", "class engine has failed: setup exited with status 1"),
            ("skipped", "task 1.3 did not end well"), ("cancelled", "")]):
        night.attempt(1, count + 1 + i, 0, 1, [], 0, None, last // 2 + i, outcome, 0, text)
    night.batch(2, "join", 6, 30 * SECOND, 1, joined=[(1, task) for task in range(1, 5)])
    night.attempt(2, 5, 1, 1, gpus[:1], last, last, last + 9 * SECOND, "returned", 0, "gpu:0 left")
    night.attempt(2, 5, 2, 1, gpus, last + 9 * SECOND, last + 10 * SECOND, last + 30 * SECOND, "ok")
    night.attempt(2, 6, 1, 1, gpus[:1], last + 30 * SECOND, last + 31 * SECOND, last + MINUTE,
                  "error", 1, "exit status 1")
    night.attempt(2, 6, 0, 1, [], last + MINUTE, None, last + MINUTE, "cancelled", 0,
                  "cancelled as it ended")
    return night, last + 3 * MINUTE


def waiting(rng, tasks):
    """Nothing starts: the only GPU is drained, and a batch is held."""
    night, gpus = lanes_night(rng, tasks or 40, 1, boots=False)
    night.batch(2, "later", 7, 20 * SECOND, 1, held=7, is_held=True)
    night.batch(3, "too", 3, 40 * SECOND, 1, open=True)
    night.out(gpus[0], "drained", 10 * SECOND, None, "drained by ada")
    night.reason(1, "1.1", "DRAINED", 10 * SECOND, None, "gpu:0 is drained")
    return night, rng.randrange(1, 12) * HOUR


def at_once(rng, tasks):
    """A batch whose tasks run two at a time: two of four GPUs stand free, though tasks wait."""
    tasks = tasks or 24
    night, gpus = lanes_night(rng, tasks, 4, "few", boots=False)
    free, ended = [0, 0], 0
    while ended < tasks * 2 // 3:
        lane = free.index(min(free))
        until = free[lane] + rng.randrange(300, 400) * SECOND
        night.attempt(1, ended + 1, 1, 1, [gpus[lane]], free[lane], free[lane] + SECOND // 4, until,
                      "ok")
        free[lane] = until
        ended += 1
    for lane in range(2):
        night.attempt(1, ended + lane + 1, 1, 1, [gpus[lane]], free[lane], free[lane] + SECOND // 4,
                      None, "running")
    batch = night.batches[1]
    batch.held = batch.turn = tasks - ended - 2
    batch.at_once = True
    night.reason(1, "1.3", "at once", SECOND, None, "at_once 2 of batch 1 is reached")
    return night, max(free) + MINUTE


def gone(rng, tasks):
    """A GPU and a class that no line lists, and a GPU that is lost."""
    night, gpus = lanes_night(rng, 3, 2, boots=False)
    night.attempt(1, 1, 1, 1, ["gpu:7"], 0, SECOND, 90 * SECOND, "ok")
    night.attempt(1, 2, 1, 1, [gpus[1]], 0, SECOND, 80 * SECOND, "returned", 0, "gpu:1 is lost")
    night.attempt(1, 2, 2, 1, [gpus[0]], 80 * SECOND, 81 * SECOND, 99 * SECOND, "ok")
    night.attempt(1, 3, 1, 9, [gpus[0], "gpu:8"], 0, 100 * SECOND, 130 * SECOND, "ok")
    night.tenancy("gpu:7", "boot", "removed", 0, SECOND, "first use")
    night.out(gpus[1], "lost", 80 * SECOND, None, "the driver does not list it any more")
    return night, 3 * MINUTE


TEXTS = [
    "<script>alert(1)</script>", "</title><b onmouseover='x()'>", "a&amp;b &lt; \" ' `", "]]><!--",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07", "\x9b2J", "\r\nHTTP/1.1 200", "line\nline\ttab\\n\\",
    "\u202egnp.exe\u2066", "\u200b\u200d\ufeff", "e\u0301\u0301\u0301", "\u65e5\u672c \U0001f600",
    'a{b="c"} 1\n# EOF', "%s%n%d", "${HOME} $(id) `id`", "'; DROP TABLE task; --", "\x01\x02\x7f",
    "\u2028\u2029", "..\\/..//etc", "=cmd()|'x'!A1", ",;|=", "null", "x" * 600, "\u00e4" * 300]
BROKEN = [b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"cut \xe2\x82", b"\xf8\x88\x80\x80\x80",
          b"a\x00b"]


def hostile(rng, tasks):
    """Texts that other formats give a meaning."""
    texts = rng.sample(TEXTS, len(TEXTS))
    night = Night(texts[0])
    gpus = [f"{text[:60]}:{i}" for i, text in enumerate(texts[:6])]
    for i, gpu in enumerate(gpus):
        night.gpu(gpu, f"GPU-{i}", i, texts[i], texts[i + 1][:60], texts[i + 2][:60], "")
    for i, text in enumerate(texts):
        night.class_(text)
        night.shape(i + 1, text, 1, text)
        night.batch(i + 1, text, 4, 0, i + 1)
    night.life("opened", -SECOND, None, texts[1])
    at = 0
    for i, text in enumerate(texts + BROKEN):
        batch, gpu = i % len(texts) + 1, gpus[i % len(gpus)]
        for task, outcome in enumerate(["ok", "error"], 1 if i < len(texts) else 3):
            night.attempt(batch, task, 1, batch, [gpu], at, at + SECOND, at + 9 * SECOND, outcome,
                          int(outcome == "error"), text, text)
        night.tenancy(gpu, "boot", texts[batch - 1], at, at + SECOND, text)
        night.out(gpu, "foreign", at + 5 * SECOND, at + 12 * SECOND, text)
        night.reason(batch, f"{batch}.1", "BUSY" if i % 2 else text[:60], at, at + 2 * SECOND, text)
        at += 15 * SECOND
    night.life("adopted", at, at, texts[2])
    return night, at


def long(rng, tasks):
    """Lines that are nearly as long as one may be."""
    night, gpus = lanes_night(rng, 3, 1)
    for task, size in enumerate([65000, 60000, 30000], 1):
        night.attempt(1, task, 1, 1, gpus, 0, task * SECOND, task * 2 * SECOND, "error", 1,
                      "x" * size, "\u00e4")
    return night, MINUTE


def later(rng, tasks):
    """A later version: further fields, and lines of 3 unknown kinds, 5 in all."""
    night, world = the_night(rng, 1200)
    now = world.run(10 * MINUTE)
    night.more = b"\tmore\t12"
    night.extra += [b"power\tgpu:0\t412\t%d" % now, b"power\tgpu:1\t398\t%d" % now,
                    b"weather\train", b"", b"\t".join([b"limit"] + [b"%d" % i for i in range(20)])]
    return night, now


def any_rows(rng, tasks):
    """Rows at random, which overlap in each way; some end before they begin."""
    night = Night()
    night.class_("c")
    night.shape(1, "c", 1, "")
    night.shape(2, "c", 2, "")
    gpus = night.machine(rng.randrange(1, 5), rng)
    count, span = tasks or rng.randrange(1, 40), 1000 * SECOND
    for batch in 1, 2:
        night.batch(batch, "b", count, rng.randrange(span), batch)

    def stretch(long):
        since = rng.randrange(span)
        until = since + rng.choice([0, 1, -5, 999999, rng.randrange(long), rng.randrange(span)])
        return since, None if rng.random() < 0.05 else min(until, span)

    for task in range(1, count + 1):
        for number in range(1, rng.randrange(1, 4)):
            since, until = stretch(200 * SECOND)
            on = rng.sample(gpus, rng.randrange(len(gpus) + 1))
            outcome = rng.choice(["ok", "ok", "error", "crashed", "returned", "timeout", "lost"])
            batch = rng.randrange(1, 3)
            ready = rng.choice([None, max(0, since - rng.randrange(99 * SECOND))])
            night.attempt(batch, task, number, batch, on, ready, since, until,
                          "running" if until is None else outcome)
    for _ in range(rng.randrange(30)):
        kind, gpu = rng.choice(["boot", "unload", "kept"]), rng.choice(gpus)
        night.tenancy(gpu, kind, "" if kind == "kept" else "c", *stretch(50 * SECOND), "")
    for _ in range(rng.randrange(10)):
        kind = rng.choice(["quarantined", "failed", "drained", "backoff", "lost", "foreign"])
        night.out(rng.choice(gpus), kind, *stretch(300 * SECOND), "")
    for shape in 1, 2:
        at = 0
        while at < span and rng.random() < 0.9:
            since = at + rng.randrange(100 * SECOND)
            at = since + rng.randrange(200 * SECOND)
            night.reason(shape, f"{shape}.1", rng.choice(["BUSY", "SEATS", "FAULT"]), since, at, "")
    for _ in range(rng.randrange(4)):
        night.life("opened", *stretch(500 * SECOND))
    return night, 2 * span


NIGHTS = {
    "night": night_, "large": large, "running": running, "small": small, "empty": empty,
    "nothing": nothing, "one": one, "failed": all_failed, "one-gpu": one_gpu, "64-gpus": gpus64,
    "mig": mig, "crash-burst": crash_burst, "quarantine": quarantine, "eviction": eviction,
    "adoption": adoption, "clock-forward": clock_forward, "clock-back": clock_back,
    "shares": shares, "no-gpus": no_gpus, "retries": retries, "waiting": waiting, "gone": gone,
    "at-once": at_once,
    "hostile": hostile, "long": long, "later": later, "any": any_rows}


def write(name, out, seed=11, tasks=None):
    night, now = NIGHTS[name](random.Random(f"{name} {seed}"), tasks)
    night.write(out, now)


def text(name, seed=11, tasks=None):
    out = io.BytesIO()
    write(name, out, seed, tasks)
    return out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", choices=NIGHTS, nargs="?")
    parser.add_argument("--list", action="store_true", help="print the names")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--tasks", type=int, help="how many, where the night has no fixed number")
    options = parser.parse_args()
    if options.list:
        print("\n".join(NIGHTS))
    elif options.name:
        write(options.name, sys.stdout.buffer, options.seed, options.tasks)
    else:
        parser.error("a NAME is missing; --list prints them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
