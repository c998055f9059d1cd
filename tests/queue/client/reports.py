#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The verbs report and trace with a queue: which time and which batches they show.

The formats themselves are tested with made-up nights (tests/view/formats.py).

usage: reports.py BUILD_DIRECTORY [CASE...]
"""
import csv
import io
import json
import os
import sys
import time

sys.dont_write_bytecode = True
from cli import Queue, equal, run, until  # noqa: E402


def rows(q, *args):
    return list(csv.DictReader(io.StringIO(q.run("report", "--csv", *args))))


def numbers(q, *args):
    (seen,) = q.json("report", *args)
    return seen


def two_batches(q):
    """Batch wide, which runs while batch narrow comes and goes.  Returns the path of a pipe whose
    opening ends it."""
    q.agent()
    os.mkfifo(q.path("gate"))
    q.write("wide", "read x < gate\n")
    q.write("narrow", "true\nexit 3\n")
    q.submit("wide")
    until(lambda: q.states("wide") == ["running"], "a task that runs")
    q.submit("narrow")
    q.run("wait", "narrow", status=3)


def open_gate(q):
    q.path("gate").write_text("x\n")
    q.run("wait", "wide")


def batches(q):
    """A batch names a time, in which the tasks of other batches are part of the GPUs' work."""
    two_batches(q)
    open_gate(q)
    equal(sorted((r["batch"], r["outcome"]) for r in rows(q)),
          [("narrow", "error"), ("narrow", "ok"), ("wide", "ok")])
    equal(sorted((r["batch"], r["outcome"]) for r in rows(q, "narrow")),
          [("narrow", "error"), ("narrow", "ok")])
    equal(rows(q, "narrow"), rows(q, "2"))
    equal(len(q.run("report", "narrow", "--joblog").splitlines()), 3)
    seen = numbers(q, "narrow")
    equal([(b["name"], b["asked"]) for b in seen["batches"]], [("wide", False), ("narrow", True)])
    narrow = seen["batches"][1]
    assert seen["from"] == narrow["made"], seen
    equal(seen["to"], max(narrow["ended"], narrow["last_end"]))
    # Batch wide had a GPU for all of the time.
    assert any(g["gpu_ms"]["ok"] == sum(g["gpu_ms"].values()) for g in seen["gpus"]), seen["gpus"]
    equal(len(numbers(q, "narrow", "wide")["batches"]), 2)
    equal([b["asked"] for b in numbers(q)["batches"]], [False, False])
    pids = {e["pid"] for e in json.loads(q.run("trace", "narrow"))["traceEvents"]
            if e["ph"] == "X"}
    assert len(pids) >= 2, pids


def without_agent(q):
    """The same records, and no agent is started."""
    two_batches(q)
    open_gate(q)
    same = ("from", "over", "attempts", "tasks", "ends", "outcomes", "bad", "ended", "findings")
    lines, seen = rows(q), numbers(q, "narrow")
    q.run("agent", "stop")
    equal(rows(q), lines)
    closed = numbers(q, "narrow")
    equal({name: closed[name] for name in same}, {name: seen[name] for name in same})
    q.run("agent", "status", status=4)


def nothing_there(q):
    """No queue, or no such batch: nothing is made."""
    for verb in ("report", "trace"):
        equal(q.run(verb, status=4), "")
        assert "no queue" in q.err, q.err
    assert not q.state.exists()
    q.agent()
    q.write("one", "true\n")
    q.submit("one")
    q.run("wait", "one")
    for args in (("nope",), ("99",), ("one", "nope")):
        for verb in ("report", "trace"):
            equal(q.run(verb, *args, "-o", "file", status=4), "")
            assert args[-1] in q.err, q.err
    equal(q.run("report", "1.1", status=2), "")
    equal(sorted(os.listdir(q.work)), ["one"])


def since(q):
    """A duration ago, or a time; 22:00 is the last one.  Without it: from the first task to the
    last end."""
    q.agent()
    q.write("one", "true\n")
    before = time.time()
    q.submit("one")
    q.run("wait", "one")
    now = time.time()
    seen = numbers(q)
    assert before <= seen["from"] / 1e9 <= seen["to"] / 1e9 <= now, (before, seen, now)
    for value, ago in (("8h", 8 * 3600), ("2d", 2 * 86400), ("90", 90), ("1h30m", 5400)):
        assert abs(now - ago - numbers(q, "--since", value)["from"] / 1e9) < 60, value
    for ahead in (-3600, 3600):  # the last time that the clock showed it
        clock = time.strftime("%H:%M", time.localtime(now + ahead))
        seen = numbers(q, "--since", clock)["from"] / 1e9
        equal(time.strftime("%H:%M", time.localtime(seen)), clock)
        assert now - 90000 < seen <= now + 60, (clock, seen)
    equal(numbers(q, "--since", "2026-01-31T22:00:00+01:00")["from"],
          1769893200 * 10**9 if now > 1769893200 else 0)
    for value in ("+2h", "2100-01-01", "soon", "", "-1h"):
        equal(q.run("report", "--json", f"--since={value}", status=2), "")
        assert "--since" in q.err, q.err


def every(q):
    """The file is written until the batch has ended, and once more."""
    two_batches(q)
    child = q.start("report", "wide", "--json", "--every", "1s", "-o", "live.json")
    until(q.path("live.json").exists, "a file")
    equal(json.loads(q.path("live.json").read_text())["over"], False)
    open_gate(q)
    out, err = child.communicate(timeout=60)
    equal((child.returncode, out, err), (0, b"", b""))
    seen = json.loads(q.path("live.json").read_text())
    equal((seen["over"], [b["states"]["running"] for b in seen["batches"]]), (True, [0, 0]))
    equal(sorted(os.listdir(q.work)), ["gate", "live.json", "narrow", "wide"])
    # A batch that others outlive.
    q.write("late", "read x < gate\n")
    q.submit("late")
    until(lambda: q.states("late") == ["running"], "a task that runs")
    q.run("report", "narrow", "--every", "1s", "-o", "page.html")
    assert "<html" in q.path("page.html").read_text()


if __name__ == "__main__":
    sys.exit(run("queue-reports", [batches, without_agent, nothing_there, since, every], Queue))
