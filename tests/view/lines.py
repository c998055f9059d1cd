# SPDX-License-Identifier: MIT
"""Writes the rows of a made-up night as lines (view/line.h).

A Night keeps the rows until all of them are known, since the line of a batch, which stands before
the attempts, has the counts of its tasks.  Times are ns since the night began; the lines have ns
since 1970.  Texts are str or bytes.
"""
import datetime

SECOND = 10**9
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
VERSION = 1
EVENING = datetime.datetime(2026, 11, 13, 20, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
BEGIN = int(EVENING.timestamp()) * SECOND
NAMED = {9: "\\t", 10: "\\n", 92: "\\\\"}


def escaped(text):
    """The bytes of a text as a field of a line."""
    if isinstance(text, str):
        if text.isprintable() and "\\" not in text:
            return text.encode()
        text = text.encode("utf-8", "surrogateescape")
    parts = []
    for byte in text:
        if byte in NAMED:
            parts.append(NAMED[byte].encode())
        elif byte < 32 or byte == 127:
            parts.append(b"\\x%02x" % byte)
        else:
            parts.append(bytes([byte]))
    return b"".join(parts)


def field(value):
    if value is None:
        return b""
    return b"%d" % value if isinstance(value, int) else escaped(value)


class Batch:
    """The tasks of one batch, and how they ended: task -> outcome of its last row."""

    def __init__(self, number, name, total, made, shape, priority=0, joined=(), held=0, open=False,
                 is_held=False, turn=0, at_once=False):
        self.number, self.name, self.total, self.made = number, name, total, made
        self.shape, self.priority, self.joined = shape, priority, joined
        self.held, self.open, self.is_held, self.turn = held, open, is_held, turn
        self.at_once = at_once
        self.last = {}   # of its own tasks
        self.end = made

    def counts(self, batches):
        """Tasks that run, and tasks by outcome, with those of joined batches."""
        running, ends = 0, {}
        for outcome in list(self.last.values()) + [
                batches[batch].last.get(task) for batch, task in self.joined]:
            if outcome == "running":
                running += 1
            elif outcome not in (None, "returned", "waits"):
                ends[outcome] = ends.get(outcome, 0) + 1
        return running, ends


class Night:
    def __init__(self, host="box", jumps=()):
        self.host = host
        self.jumps = jumps   # (time, by how much the clock is set then)
        self.gpus, self.batches = {}, {}
        self.rows = {kind: [] for kind in ("gpu", "class", "shape", "attempt", "tenancy", "out",
                                           "reason", "life")}
        self.extra = []   # whole lines, of which a reader may know nothing
        self.more = b""   # behind the fields of each line

    def time(self, at):
        """What the clock shows at a time; of None, nothing."""
        if at is None:
            return b""
        for when, by in self.jumps:
            if at >= when:
                at += by
        return b"%d" % (BEGIN + at)

    def add(self, kind, *fields):
        self.rows[kind].append(b"\t".join([kind.encode(), *map(field, fields)]))

    def add_timed(self, kind, before, since, until, text):
        self.rows[kind].append(b"\t".join([kind.encode(), *map(field, before), self.time(since),
                                           self.time(until), field(text)]))

    def gpu(self, name, uuid, index, model="NVIDIA H200", pci="", profile="", parent=""):
        self.gpus[name] = escaped(uuid or name)
        self.add("gpu", name, uuid, index, model, pci, profile, parent)

    def machine(self, count, rng, model="NVIDIA H200"):
        """GPUs gpu:0, gpu:1, ...  Returns their names."""
        names = [f"gpu:{i}" for i in range(count)]
        for i, name in enumerate(names):
            uuid = f"GPU-{rng.getrandbits(32):08x}-d1c4-4a51-9c3e-7b0f1e2d{i:04x}"
            self.gpu(name, uuid, i, model, f"00000000:{(0x1b + i * 0x11) % 256:02X}:00.0")
        return names

    def class_(self, name):
        self.add("class", name)

    def shape(self, number, class_, gpus, text):
        self.add("shape", number, class_, gpus, text)

    def batch(self, number, name, total, made, shape, **more):
        self.batches[number] = batch = Batch(number, name, total, made, shape, **more)
        return batch

    def attempt(self, batch, task, number, shape, gpus, ready, started, ended, outcome, status=0,
                text="", name=""):
        """Rows of one task are added in the order in which they end."""
        owner = self.batches.get(batch)
        if owner:
            owner.last[task] = outcome
            owner.end = max(owner.end, ended or 0)
        self.rows["attempt"].append(b"attempt\t%d.%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s" % (
            batch, task, number, shape, b",".join([self.gpus.get(g) or escaped(g) for g in gpus]),
            self.time(ready), self.time(started), self.time(ended), outcome.encode(), status,
            escaped(text), escaped(name)))

    def waits(self, batch, task):
        """The task has ended in vain, and waits for its next attempt."""
        self.batches[batch].last[task] = "waits"

    def tenancy(self, gpu, kind, class_, since, until, text):
        self.add_timed("tenancy", [self.gpus.get(gpu, gpu), kind, class_], since, until, text)

    def out(self, gpu, kind, since, until, text):
        self.add_timed("out", [self.gpus.get(gpu, gpu), kind], since, until, text)

    def reason(self, shape, task, word, since, until, text):
        self.add_timed("reason", [shape, task, word], since, until, text)

    def life(self, kind, since, until, text=""):
        self.add_timed("life", [kind], since, until, text)

    def batch_line(self, b):
        running, ends = b.counts(self.batches)
        ready = b.total - b.held - running - sum(ends.values())
        started = {task for task, outcome in b.last.items() if outcome not in ("returned", "waits")}
        joined = {task for batch, task in b.joined}
        first = next((i for i in range(1, b.total + 1)
                      if i not in started and i not in joined), 0) if ready + b.turn else 0
        over = ready + running + b.held == 0 and not b.open
        flags = ",".join(["open"] * b.open + ["held"] * b.is_held + ["turns"] * b.at_once)
        return b"\t".join([b"batch", *map(field, [b.number, b.name]), self.time(b.made),
                           self.time(b.end if over else None), *map(field, [
                               b.priority, flags, b.total, len(b.joined), b.held, ready, running,
                               ",".join(f"{word}={n}" for word, n in sorted(ends.items())),
                               first or None, b.shape if first else None, b.turn])])

    def write(self, out, now):
        lines = [b"\t".join([b"records", field(VERSION), field(self.host)])]
        for kind in ("gpu", "class", "shape"):
            lines += self.rows[kind]
        lines += [self.batch_line(b) for b in self.batches.values()]
        for kind in ("attempt", "tenancy", "out", "reason", "life"):
            lines += self.rows[kind]
        lines += self.extra
        lines.append(b"now\t" + self.time(now))
        end = self.more + b"\n"
        out.write(end.join(lines) + end)
