#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The request watch: snapshots of the present moment.

usage: watch.py BUILD_DIRECTORY [CASE...]
"""
import contextlib
import json
import os
import random
import select
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
from agent import Refused, until  # noqa: E402
from cases import equal, run  # noqa: E402


class Watch:
    """A connection that watches."""

    def __init__(self, agent, **fields):
        self.client = agent.client()
        self.client.send({"id": 7, "do": "watch", **fields})

    def next(self):
        line = self.client.receive()
        if not line["ok"]:
            raise Refused(line)
        equal((line["id"], line["event"]), (7, "snapshot"))
        return line["snapshot"]

    def until(self, condition):
        """The first snapshot for which it holds."""
        while True:
            snapshot = self.next()
            if condition(snapshot):
                return snapshot

    def close(self):
        self.client.close()


def batch_of(snapshot, number):
    return next((b for b in snapshot["batches"] if b["batch"] == number), {})


def is_over(number):
    return lambda snapshot: batch_of(snapshot, number).get("ended")


def switches(process):
    with open(f"/proc/{process.pid}/status") as f:
        return next(int(line.split()[1]) for line in f
                    if line.startswith("voluntary_ctxt_switches"))


# ---- What a snapshot has ----

def first(agent):
    """The first snapshot has the history of each GPU, later ones have none.  Parts that are not
    asked for are empty."""
    agent.devices = "fake:2"
    c = agent.start().client()
    watch, some = Watch(agent), Watch(agent, what=["batches", "metrics"])
    s = watch.next()
    equal([g["does"] for g in s["gpus"]], ["idle"] * 2)
    equal((s["minutes"], len(s["history"]), "notice" in s), (240, 2, False))
    equal({len(minutes) for g in s["history"] for minutes in g.values()}, {240})
    for g in s["gpus"]:
        equal(sum(g["uses"].values()), s["time"] - s["since"])
    equal(some.next()["gpus"], [])
    c.submit(["exit 3", "true"], batch="one")
    s = watch.until(is_over(1))
    equal(("history" in s, [f["what"] for f in s["findings"]], s["bad_24h"]),
          (False, ["1 task ERROR exit 3"], 1))
    equal(sorted((e["task"], e["batch"], e["outcome"]) for e in s["ends"]),
          [("1.1", "one", "error"), ("1.2", "one", "ok")])
    command, = s["classes"]
    equal((command["ended"], command["tasks"], "run" in command),
          ({"ok": 1, "error": 1}, {"ok": 1, "error": 1}, False))
    s = some.until(is_over(1))
    equal((s["classes"][0]["run"]["count"], s["findings"], s["ends"]), (2, [], []))
    for fields in {"what": ["x"]}, {"what": []}, {"what": [1]}, {"at_most_every": -1}:
        try:
            Watch(agent, **fields).next()
            raise AssertionError(f"{fields} was not refused")
        except Refused as refused:
            equal(refused.code, "EINVAL")


def waits(agent):
    """Why the first task of a batch waits, with the text of explain; and why nothing starts."""
    gate = agent.gate()
    agent.devices = "fake:1"
    c = agent.start().client()
    watch = Watch(agent)
    c.submit([f"read x < {gate}"] * 2, batch="wait")
    s = watch.until(lambda s: batch_of(s, 1).get("reason"))
    b = batch_of(s, 1)
    equal((b["first"], b["running"], b["ready"]), ("1.2", 1, 1))
    why = c.ask("explain", task="1.2")["reasons"][0]
    equal((b["reason"], b["why"], b["text"]), (why["reason"], "busy", why["text"]))
    assert b["text"].endswith("; task 1.1"), b
    equal(s["classes"][0]["waiting"], {"busy": 1})
    g, = s["gpus"]
    equal((g["does"], g["task"], g["attempt"], g["tasks"]), ("run", "1.1", 1, 1))
    c.ask("pause")
    watch.until(lambda s: s.get("notice") == "paused")
    c.ask("resume")
    watch.until(lambda s: "notice" not in s)
    with gate.opened(2):
        watch.until(is_over(1))


def present_reason(agent):
    """The text of a reason that goes on is the present one of explain; the row of the store keeps
    that of its begin.  It ends with the start of the last task."""
    gates = agent.gate("a"), agent.gate("b"), agent.gate("c")
    agent.devices = "fake:1"
    c = agent.start().client()
    watch = Watch(agent)
    c.submit([f"read x < {gate}" for gate in gates], batch="wait")

    def waits_for(task):
        return watch.until(lambda s: batch_of(s, 1).get("text", "").endswith(f"; task {task}"))

    began = batch_of(waits_for("1.1"), 1)
    with gates[0].opened(1):
        now = batch_of(waits_for("1.2"), 1)
    equal((now["first"], now["since"]), ("1.3", began["since"]))
    equal(c.ask("explain", task="1.3")["reasons"][0]["text"], now["text"])
    row, = [line.split("\t") for line in records(c).splitlines() if line.startswith("reason\t")]
    equal((row[2], row[-1]), ("1.3", now["text"]))
    with gates[1].opened(1):
        start = watch.until(lambda s: s["gpus"][0].get("task") == "1.3")["gpus"][0]["since"]

    def row():
        c.ask("cancel", batch=c.submit(["true"], batch="x", hold=True)["batch"])  # a commit
        return c.ask("spans", kinds=["reason"])["spans"]

    until(lambda: row() and "until" in row()[0], "the end of the row")
    equal([(r["text"], r["until"]) for r in row()], [("1.2: " + began["text"], start)])
    with gates[2].opened(1):
        watch.until(is_over(1))


# ---- As the records tell it ----

def records(client):
    lines, after = "", {}
    while True:
        page = client.ask("records", **after)
        lines += page["lines"]
        if "next" not in page:
            return lines
        after = {"after": page["next"]}


def moment(lines, at):
    program = os.path.join(sys.argv[1], "tests/view/moment_of")
    return json.loads(subprocess.run([program, str(at)], input=lines.encode(), check=True,
                                     capture_output=True).stdout)


def members(rows, *names):
    return [{n: row[n] for n in names if n in row} for row in rows]


BATCH = ("batch", "name", "priority", "made", "ended", "total", "ok", "bad", "running", "ready",
         "held", "turn", "first", "why", "reason", "text", "since", "gpus")
GPU = "gpu", "uuid", "does", "class", "task", "attempt", "tasks", "with", "text", "kept_for"
CLASS = ("class", "workers", "ready", "loading", "evicted", "restarts", "waiting", "held", "ended",
         "run_p50")
NEAR = 10**9  # the agent sees each start a little before the runner writes it


def compare(snapshot, night):
    equal(members(snapshot["gpus"], *GPU), members(night["gpus"], *GPU))
    equal(members(snapshot["batches"], *BATCH), members(night["batches"], *BATCH))
    equal(members(snapshot["classes"], *CLASS), members(night["classes"], *CLASS))
    equal(snapshot["findings"], night["findings"])
    for name in "bad_24h", "bad_tasks_24h":
        equal(snapshot.get(name), night.get(name))
    equal(snapshot["ends"], night["ends"])
    began = snapshot["since"] - night["since"]
    assert abs(began) < 10**9, began
    for ours, theirs in zip(snapshot["gpus"], night["gpus"]):
        equal(sum(ours["uses"].values()), snapshot["time"] - snapshot["since"])
        for use in {*ours["uses"], *theirs["uses"]}:
            off = ours["uses"].get(use, 0) - theirs["uses"].get(use, 0)
            assert abs(off) < NEAR + abs(began), (ours, theirs)


def as_records(agent):
    """V3: a snapshot is what the records tell of its time: after ends of all kinds, a drain, a
    retry, and while tasks run and wait."""
    draw = random.Random(18)
    gate = agent.gate()
    agent.devices = "fake:4"
    c = agent.start().client()
    watch = Watch(agent, what=["gpus", "classes", "batches", "findings", "ends", "metrics"])
    for name in "abc":
        c.submit([draw.choice(["true", "exit 1", "exit 2", "kill -11 $$", "sleep 0.02"])
                  for _ in range(30)], batch=name, retries={"error": 1})
    c.ask("drain", device="fake:3", reason="ECC")
    for i in range(3):
        c.ask("wait", batch=str(i + 1))
    c.ask("retry", batch="2")
    c.ask("wait", batch="2")
    c.submit(["true"] * 20, batch="held", hold=True)
    c.ask("cancel", tasks=[f"4.{i}" for i in range(3, 9)])
    c.submit(["sleep 2; exit 1"] * 3, batch="long")
    c.ask("wait", batch="5")
    c.submit([f"read x < {gate}"] * 5, batch="runs")

    def is_seen(s):
        return (batch_of(s, 6).get("reason") and [g["does"] for g in s["gpus"]].count("run") == 3
                and s["gpus"][3]["does"] == "out" and len(s["findings"]) > 4)

    snapshot = watch.until(is_seen)
    compare(snapshot, moment(records(c), snapshot["time"]))
    with gate.opened(5):
        c.ask("undrain", device="fake:3")
        c.ask("wait", batch="6")
    snapshot = watch.until(lambda s: batch_of(s, 6).get("ended") and
                           {g["does"] for g in s["gpus"]} == {"idle"})
    compare(snapshot, moment(records(c), snapshot["time"]))


def gathers(agent):
    """A GPU that is kept names the task, and the batch of this says how many it needs; held tasks
    are those of their class."""
    gate = agent.gate()
    agent.devices = "fake:4"
    c = agent.start().client()
    watch = Watch(agent)
    c.submit([f"read x < {gate}"] * 2, batch="narrow")
    watch.until(lambda s: [g["does"] for g in s["gpus"]].count("run") == 2)
    c.submit(["true"] * 2, batch="wide", needs={"gpus": 3})
    c.submit(["true"] * 5, batch="later", hold=True)
    s = watch.until(lambda s: batch_of(s, 3).get("held") and
                    batch_of(s, 2).get("why") == "gathering")
    equal([(g["does"], g.get("kept_for")) for g in s["gpus"]].count(("kept", "2.1")), 2)
    equal([b.get("gpus") for b in s["batches"]], [None, 3, None])
    equal(s["classes"][0]["held"], 5)
    compare(s, moment(records(c), s["time"]))
    with gate.opened(2):
        c.ask("wait", batch="2")


def turns(agent):
    """Tasks that wait for their turn wait for a limit of their batch, and the time left counts
    them.  Those that a person holds are held."""
    gate = agent.gate()
    agent.devices = "fake:4"
    c = agent.start().client()
    watch = Watch(agent)
    c.submit(["true"] * 6 + [f"read x < {gate}"] * 6, batch="few", at_once=2)
    s = watch.until(lambda s: batch_of(s, 1).get("reason") and batch_of(s, 1).get("ok") == 6 and
                    [g["does"] for g in s["gpus"]].count("run") == 2 and
                    batch_of(s, 1)["text"].startswith("at_once"))
    b = batch_of(s, 1)
    equal([b.get(n) for n in ("held", "turn", "ready", "first", "why", "reason", "text")],
          [4, 4, None, "1.9", "limit", "at once", "at_once 2 of batch 1 is reached"])
    assert 0 <= b["least"] <= b["most"], b
    equal((s["classes"][0]["waiting"], s["classes"][0].get("held")), ({"limit": 4}, None))
    compare(s, moment(records(c), s["time"]))
    c.ask("set", tasks=["1.11"], priority=5)
    s = watch.until(lambda s: batch_of(s, 1).get("first") == "1.11")
    compare(s, moment(records(c), s["time"]))
    c.ask("hold", tasks=["1.11"])
    s = watch.until(lambda s: batch_of(s, 1).get("first") == "1.9")
    compare(s, moment(records(c), s["time"]))
    c.ask("hold", batch="1")
    s = watch.until(lambda s: not batch_of(s, 1).get("first"))
    b = batch_of(s, 1)
    equal([b.get(n) for n in ("held", "turn", "first", "why", "most")], [4] + [None] * 4)
    equal((s["classes"][0].get("waiting"), s["classes"][0]["held"]), (None, 4))
    with gate.opened(6):
        c.ask("release", batch="1")
        c.ask("wait", batch="1")
    s = watch.until(lambda s: batch_of(s, 1).get("ended"))
    assert all(g["uses"].get("limited") for g in s["gpus"][2:]), s["gpus"]


def behind_many(agent):
    """Of a batch with several needs the first READY task is not found behind 1,024 that have ended.
    Then the one that gets the next turn stands for it, in snapshots and in records."""
    gate = agent.gate()
    agent.devices = "fake:1"
    c = agent.start().client()
    watch = Watch(agent)
    env = [f"PATH={os.environ['PATH']}"]
    tasks = [{"spec": 0, "argv": ["true"]} for _ in range(1100)]
    tasks += [{"spec": 1, "argv": ["/bin/sh", "-c", f"read x < {gate}"]} for _ in range(6)]
    specs = [{"cwd": "/", "environment": env, "needs": {"gpus": 1, "cpus": cpus}}
             for cpus in (1, 2)]
    c.ask("submit", request="many", batch={"name": "many", "at_once": 2}, specs=specs, tasks=tasks)
    c.ask("cancel", tasks=[f"1.{i + 1}" for i in range(1100)])
    s = watch.until(lambda s: batch_of(s, 1).get("running") == 1 and
                    batch_of(s, 1).get("ready") == 1 and batch_of(s, 1).get("reason"))
    b = batch_of(s, 1)
    equal([b.get(n) for n in ("held", "turn", "first")], [4, 4, "1.1103"])
    compare(s, moment(records(c), s["time"]))
    c.ask("cancel", batch="1")


def after_restart(agent):
    """The next agent knows the history, findings and ends of those before it; totals begin anew,
    and commands that go on do so."""
    gate = agent.gate()
    agent.devices = "fake:2"
    c = agent.start().client()
    c.submit(["exit 1", "true", "kill -11 $$"] * 5, batch="a")
    c.ask("wait", batch="1")
    c.submit([f"read x < {gate}"], batch="b")
    watch = Watch(agent)
    before = watch.until(lambda s: batch_of(s, 2).get("running") and s["bad_24h"] == 10)
    agent.kill()
    c = agent.start().client()
    watch = Watch(agent)
    s = watch.next()
    equal([f["what"] for f in s["findings"] if f["kind"] == "unknown"], ["no agent ran"])
    equal([f for f in s["findings"] if f["kind"] == "bad"], before["findings"])
    equal(s["ends"], before["ends"])
    equal((s["bad_24h"], "ended" in s["classes"][0]), (10, False))
    equal([(g["does"], g.get("task")) for g in s["gpus"]],
          [(g["does"], g.get("task")) for g in before["gpus"]])
    for g, history in zip(s["gpus"], s["history"]):
        equal(sum(g["uses"].values()), s["time"] - s["since"])
        worked = sum(history.get("ok", [])) + sum(history.get("lost", []))
        assert worked > 0, history
    gate.open()
    s = watch.until(is_over(2))
    equal((s["ends"][0]["task"], s["classes"][0]["ended"]), ("2.1", {"ok": 1}))


def left(agent):
    """V8: time left of a batch as a range, in rows and snapshots, and in the records as it was
    then.  The next agent knows it, too."""
    gate = agent.gate()
    agent.devices = "fake:2"
    c = agent.start().client()
    watch = Watch(agent)
    c.submit(["sleep 0.05"] * 20 + [f"read x < {gate}"] * 2 + ["true"] * 20, batch="a")

    def row():
        return c.ask("batches")["batches"][0]

    s = watch.until(lambda s: "most" in batch_of(s, 1))
    b = batch_of(s, 1)
    assert 0 <= b["least"] <= b["most"] < 60 * 10**9, b
    equal((s["least"], s["most"]), (b["least"], b["most"]))
    until(lambda: row()["states"].get("running") == 2 and row()["outcomes"]["ok"] == 20, "a stop")
    agent.kill()
    c = agent.start().client()
    watch = Watch(agent)
    watch.next()
    with gate.opened(2):
        until(lambda: "left_most" in row() or "ended" in row(), "time left")
        c.ask("wait", batch="1")
    equal("left_most" in row(), False)
    told = [line.split("\t") for line in records(c).splitlines() if line.startswith("left\t")]
    equal({line[1] for line in told}, {"1"})
    assert len(told) > 4, told
    for _, _, at, least, most in told:
        assert not most or int(least) <= int(most), told
        assert not most or int(at) > 10**18, told


def joined(agent):
    """A batch that has only joined tasks of others is there, too, from its submit on."""
    gate = agent.gate()
    agent.devices = "fake:2"
    c = agent.start().client()
    watch = Watch(agent)
    commands = [f"read x < {gate}", "exit 3"]
    c.submit(commands[:1])
    c.ask("submit", request="open", batch={"name": "night", "open": True}, specs=[], tasks=[])
    watch.until(lambda s: batch_of(s, 2).get("total", 0) == 0 and "made" in batch_of(s, 2))
    equal(c.submit(commands[:1], append="2", join=True)["joined"], 1)
    watch.until(lambda s: batch_of(s, 2).get("running") == 1)
    c.ask("seal", batch="2")
    equal(c.submit(commands[:1], join=True)["joined"], 1)
    s = watch.until(lambda s: batch_of(s, 3))
    equal([(batch_of(s, i)["total"], batch_of(s, i)["running"]) for i in (1, 2, 3)], [(1, 1)] * 3)
    with gate.opened(1):
        s = watch.until(is_over(3))
    equal([batch_of(s, i)["ok"] for i in (1, 2, 3)], [1] * 3)


def forgotten(agent):
    """A purge takes along what findings and ends tell of its tasks, also of many."""
    agent.devices = "fake:2"
    c = agent.start().client()
    watch = Watch(agent)
    c.submit(["exit 3", "true"], batch="old")
    c.ask("wait", batch="1")
    before = time.time_ns()
    c.submit(["exit 4", "true"], batch="new")
    watch.until(lambda s: s.get("bad_24h") == 2 and is_over(2)(s))
    equal(c.ask("purge", before=before)["count"], 2)
    s = watch.until(lambda s: not batch_of(s, 1))
    equal((s["bad_24h"], [f["what"] for f in s["findings"]], sorted(e["task"] for e in s["ends"])),
          (1, ["1 task ERROR exit 4"], ["2.1", "2.2"]))
    c.submit(["true"] * 5000, batch="many", hold=True)
    c.ask("cancel", batch="3")
    watch.until(lambda s: s["bad_24h"] == 5001)
    for _ in range(2):  # the second one finds none
        while c.ask("purge", before=2**62)["count"]:
            pass
    s = watch.until(lambda s: not s["batches"])
    equal((s.get("bad_24h", 0), s["findings"], s["ends"]), (0, [], []))


# ---- What it costs ----

IDLE = 3  # seconds without a wakeup, which is measured: no event can end them earlier


def quiet(agent):
    """V1: a client that watches an idle queue costs the agent no wakeup, and gets no byte."""
    agent.devices = "fake:8"
    c = agent.start().client()
    c.submit(["true"] * 20)
    watch = Watch(agent)
    watch.until(is_over(1))
    c.ask("wait", batch="1")

    def is_quiet():
        before = switches(agent.process)
        time.sleep(IDLE)
        return switches(agent.process) == before

    until(is_quiet, f"{IDLE} s without a wakeup")
    watch.client.socket.settimeout(0.1)
    with contextlib.suppress(TimeoutError):
        raise AssertionError(watch.next())


def coalesced(agent):
    """Snapshots come at most four times a second, or more rarely; the last one has everything."""
    c = agent.start().client()
    often, rarely = Watch(agent), Watch(agent, at_most_every=10**9)
    for watch in often, rarely:
        watch.next()
    begin = time.monotonic()
    for i in range(10):
        c.submit(["true"] * 10, batch=str(i))
        c.ask("wait", batch=str(i + 1))

    def count(watch):
        n = 1
        while not is_over(10)(watch.next()):
            n += 1
        return n

    counts = count(often), count(rarely)
    span = time.monotonic() - begin
    assert counts[0] <= span / 0.25 + 1 and counts[1] <= span + 1, (counts, span)


def stopped(agent):
    """V2: a reader that is stopped costs one snapshot, and is dropped; tasks go on."""
    agent.program += "-points"
    agent.environment["GPQ_TEST_WATCH_MS"] = "1000"
    agent.devices = "fake:8"
    c = agent.start().client()
    watch = Watch(agent)
    mine = Watch(agent)
    mine.next()
    number = 0

    def is_dropped():
        nonlocal number
        number += 1
        c.submit(["exit 1"] * 8, batch="x" * 200)
        c.ask("wait", batch=str(number))
        mine.next()
        return "dropped" in agent.said()

    until(is_dropped, "a reader is dropped")
    c.submit(["true"])
    mine.until(is_over(number + 1))
    sent = 0
    with contextlib.suppress(ConnectionError):
        while True:
            sent += len(json.dumps(watch.next()))
    assert sent < 2 << 20, sent  # what the kernel keeps, and one snapshot


def latencies(client, n):
    """From a submit to the start of its command, in ns, sorted."""
    found = []
    for _ in range(n):
        begin = time.time_ns()
        batch = client.submit(["true"], batch="x")["batch"]
        client.ask("wait", batch=batch)
        attempt, = client.ask("attempts", task=f"{batch}.1")["attempts"]
        found.append(attempt["started"] - begin)
    return sorted(found)


def readers(agent):
    """V2: ten clients that watch, of which five are stopped, make no task start later."""
    agent.devices = "fake:8"
    c = agent.start().client()
    latencies(c, 20)
    alone = latencies(c, 200)
    watchers = [Watch(agent) for _ in range(10)]
    stop = threading.Event()

    def read():
        while not stop.is_set():
            for client in select.select([w.client.socket for w in watchers[:5]], [], [], 0.1)[0]:
                client.recv(1 << 20)

    reader = threading.Thread(target=read)
    reader.start()
    watched = latencies(c, 200)
    stop.set()
    reader.join()
    for name, sample in ("alone", alone), ("with ten clients that watch", watched):
        print(f"submit to start {name}: median {sample[100] / 1e6:.2f} ms,"
              f" p99 {sample[197] / 1e6:.2f} ms")
    assert watched[100] < 2 * alone[100] + 5 * 10**6, (alone[100], watched[100])


def small(agent):
    """64 batches and 8 GPUs have 16 KiB; what has no place is counted."""
    agent.devices = "fake:8"
    c = agent.start().client()
    for i in range(70):
        c.submit([f"exit {i + 1}"] * 2 + ["true"], batch="night" * 8 + str(i), hold=i >= 60)
    for i in range(60):
        c.ask("wait", batch=str(i + 1))
    watch = Watch(agent, what=["gpus", "classes", "batches", "findings", "ends"])
    c.submit(["true"], batch="last", hold=True)
    line = watch.until(lambda s: len(s["batches"]) + s["more"].get("batches", 0) == 71)
    size = len(json.dumps(line, separators=(",", ":")))
    assert size <= 16384, size
    more = line["more"]
    equal(len(line["batches"]) + more["batches"], 71)
    equal(len(line["findings"]) + more["findings"], 60)
    equal(sum(b["total"] for b in line["batches"]) + more["total"], 70 * 3 + 1)
    equal(line["bad_24h"], 120)


CASES = [first, waits, present_reason, as_records, gathers, turns, behind_many, joined, forgotten,
         after_restart, left, quiet, coalesced, stopped, readers, small]

if __name__ == "__main__":
    sys.exit(run("watch", CASES))
