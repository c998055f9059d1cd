#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts a night again, from its lines and in the plainest way: the oracle of reports, traces and
metrics.  It is written from view/line.h, view/records.h, view/night/use.h and waits.h alone.

usage: recount.py FILE > JSON

Times are ns.  The precedence of uses is the order of USES.
"""
import collections
import json
import sys

USES = ["ok", "lost", "loading", "kept", "out", "unknown", "limited", "idle"]
FIELDS = 16  # more than any line has
MOST = 65536  # bytes of a line
Attempt = collections.namedtuple("Attempt", "task number shape gpus ready started ended outcome")
Row = collections.namedtuple("Row", "what kind since until")  # what: GPUs, or a shape and a task


def text(field):
    """A field without its escapes.  Bytes that are no UTF-8 are kept as surrogates."""
    parts, i = [], 0
    while i < len(field):
        if field[i:i + 2] == b"\\x":
            parts.append(bytes([int(field[i + 2:i + 4], 16)]))
            i += 4
        elif field[i:i + 1] == b"\\":
            parts.append({b"t": b"\t", b"n": b"\n"}.get(field[i + 1:i + 2], field[i + 1:i + 2]))
            i += 2
        else:
            parts.append(field[i:i + 1])
            i += 1
    return b"".join(parts).decode("utf-8", "surrogateescape")


def number(field):
    return int(field or 0)


class Night:
    def __init__(self, lines):
        self.gpus, self.names = {}, {}  # key -> name; name -> key
        self.batches, self.attempts, self.rows = {}, [], []
        self.now, self.unknown, self.lived = None, 0, False
        read = {b"gpu": self.gpu, b"batch": self.batch, b"attempt": self.attempt,
                b"tenancy": self.tenancy, b"out": self.out, b"reason": self.reason,
                b"life": self.life, b"now": self.end}
        for line in lines.split(b"\n"):
            kind, *fields = line.split(b"\t")
            if len(line) > MOST:
                self.unknown += 1
            elif kind in read:
                read[kind](*fields, *[b""] * FIELDS)
            elif line and kind not in (b"records", b"class", b"shape", b"left"):
                self.unknown += 1
        times = [t for a in self.attempts for t in (a.ready, a.started, a.ended)]
        times += [t for r in self.rows for t in (r.since, r.until)]
        self.to = self.now or max(times, default=0)
        self.since = min((t for t in times if t), default=self.to)

    def key(self, field):
        """The key of a GPU, which is added if it is not there."""
        name = text(field)
        if name in self.gpus:
            return name
        if name not in self.names:
            self.gpus[name] = self.names[name] = name
        return self.names[name]

    def gpu(self, name, uuid, *rest):
        key = text(uuid or name)
        self.gpus[key] = text(name)
        self.names.setdefault(text(name), key)

    def batch(self, number_, name, made, ended, priority, flags, total, joined, held, ready,
              running, ends, first, shape, turn=b"", *rest):
        by = {word: int(n) for word, n in (
            item.split("=") for item in ends.decode().split(",") if item)}
        self.batches[int(number_)] = {
            "name": text(name), "made": number(made), "ready": number(ready),
            "shape": number(shape), "turn": number(turn),
            "at_once": b"turns" in flags.split(b","), "fresh": number(total) - number(joined),
            "ok": by.get("ok", 0), "ends": by,
            "bad": sum(n for word, n in by.items() if word != "ok")}

    def attempt(self, task, number_, shape, gpus, ready, started, ended, outcome, *rest):
        batch, _, task = task.partition(b".")
        started = number(started) or number(ended)
        ended = number(ended) and max(number(ended), started)
        self.attempts.append(Attempt(
            (int(batch), int(task)), number(number_), number(shape),
            sorted({self.key(g) for g in gpus.split(b",") if g}), min(number(ready), started),
            started, ended, outcome.decode()))

    def row(self, what, kind, since, until):
        since, until = number(since), number(until)
        self.rows.append(Row(what, kind, since, until and max(until, since)))

    def tenancy(self, gpu, kind, class_, since, until, *rest):
        self.row(self.key(gpu), {"boot": "loading", "unload": "loading"}.get(
            kind.decode(), kind.decode()), since, until)

    def out(self, gpu, kind, since, until, *rest):
        self.row(self.key(gpu), "out", since, until)

    def reason(self, shape, task, word, since, until, *rest):
        self.row((number(shape), task.decode(), text(word)), "reason", since, until)

    def life(self, kind, since, until, *rest):
        self.lived = True
        self.row(None, "life" if kind == b"opened" else "mark", since, until)

    def end(self, now, *rest):
        self.now = number(now)

    def stretches(self, rows):
        """The part of each row inside the span: begin, end, row."""
        for row in rows:
            begin = max(row.since, self.since)
            end = min(row.until or self.to, self.to)
            if begin < end:
                yield begin, end, row

    # ---- Uses ----

    def open_rows(self, gpu):
        """Rows that concern a GPU, each with its kind as a use."""
        for a in self.attempts:
            if gpu in a.gpus:
                vain = a.outcome not in ("ok", "running")
                yield Row(gpu, "lost" if vain else "ok", a.started, a.ended)
        for r in self.rows:
            if r.kind in ("life", "reason") or r.what == gpu:
                yield r

    def use(self, is_open):
        for use in USES[:5]:
            if is_open[use]:
                return use
        if self.lived and not is_open["life"]:
            return "unknown"
        return "limited" if is_open["reason"] else "idle"

    def uses(self, gpu):
        """ns of each use of a GPU."""
        changes = [(self.to, 0, "")]
        for begin, end, row in self.stretches(self.open_rows(gpu)):
            changes += [(begin, 1, row.kind), (end, -1, row.kind)]
        sums, is_open, last = dict.fromkeys(USES, 0), collections.Counter(), self.since
        for time, by, kind in sorted(changes):
            sums[self.use(is_open)] += time - last
            last = time
            is_open[kind] += by
        return sums

    # ---- Ends ----

    def last_rows(self):
        """The last row of each task.  One without an attempt is later than those that ended before
        it."""
        last = {}
        for a in self.attempts:
            b = last.get(a.task)
            if not b or self.is_later(a, b):
                last[a.task] = a
        return last

    @staticmethod
    def is_later(a, b):
        if a.number and b.number:
            return a.number > b.number
        ends = a.ended or float("inf"), b.ended or float("inf")
        return ends[0] > ends[1] if ends[0] != ends[1] else a.number < b.number

    # ---- Waiting ----

    def waits(self, number_):
        """Task-time by word of the reason; "" is without one."""
        batch = self.batches[number_]
        waiting = [(a.shape, a.ready, a.started) for a in self.attempts
                   if a.task[0] == number_ and a.ready]
        returned = [a for a in self.last_rows().values()
                    if a.task[0] == number_ and a.outcome == "returned"][:batch["ready"]]
        waiting += [(a.shape, a.ended, self.to) for a in returned]
        waiting += [(batch["shape"], batch["made"], self.to)] * (batch["ready"] - len(returned))
        sums, reasons = self.turns(number_), self.reasons()
        for shape, since, until in waiting:
            since, until = max(since, self.since), min(until, self.to)
            if since >= until:
                continue
            left = until - since
            for begin, end, row in reasons[shape]:
                shared = min(end, until) - max(begin, since)
                if shared > 0:
                    sums[row.what[2]] += shared
                    left -= shared
            sums[""] += left
        return {word: n for word, n in sums.items() if n}

    def turns(self, number_):
        """Task-time before the turn of tasks, of a batch that has its tasks at once."""
        batch, sums, reasons = self.batches[number_], collections.Counter(), self.reasons()
        own = [a for a in self.attempts if a.task[0] == number_]
        waiting = [(a.shape, batch["made"], a.ready if a.number else a.ended) for a in own
                   if (a.number == 1 if a.ready else a.number == 0)]
        last = [a for a in self.last_rows().values() if a.task[0] == number_]
        still = batch["ready"] - sum(a.outcome == "returned" for a in last)
        fresh = min(max(batch["fresh"] - len(last) - max(still, 0), 0), batch["turn"])
        ended = max([batch["made"], *(a.ended or 0 for a in own)])
        waiting += [(batch["shape"], batch["made"], self.to)] * fresh
        waiting += [(batch["shape"], ended, self.to)] * (batch["turn"] - fresh)
        for shape, since, until in waiting if batch["at_once"] else ():
            for begin, end, row in reasons[shape]:
                if row.what[2] == "at once":
                    sums["at once"] += max(min(end, until) - max(begin, since), 0)
        return sums

    def reasons(self):
        by = collections.defaultdict(list)
        for begin, end, row in self.stretches(r for r in self.rows if r.kind == "reason"):
            by[row.what[0]].append((begin, end, row))
        return by


def recount(lines):
    n = Night(lines)
    last = n.last_rows()
    ends = collections.Counter(a.outcome for a in n.attempts if a.ended)
    return {
        "since": n.since, "to": n.to, "unknown": n.unknown,
        "gpus": [{"name": n.gpus[g], "key": g, "uses": n.uses(g)} for g in n.gpus],
        "attempts": sum(1 for a in n.attempts if a.number), "tasks": len(last),
        "ended_by": dict(ends), "tasks_by": dict(collections.Counter(
            a.outcome for a in last.values())),
        "bad": sum(count for outcome, count in ends.items() if outcome != "ok"),
        "batches": [{
            "id": i, "turn": b["turn"], "ok": b["ok"], "bad": b["bad"], "ends": b["ends"],
            "attempts": sum(1 for a in n.attempts if a.task[0] == i and a.number),
            "waits": n.waits(i)} for i, b in sorted(n.batches.items())]}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: recount.py FILE")
    with open(sys.argv[1], "rb") as file:
        print(json.dumps(recount(file.read()), indent=1))


if __name__ == "__main__":
    main()
