#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Records: the lines of an agent, those of its store when it is closed, and readers of them.

usage: records.py BUILD_DIRECTORY [CASE...]
"""
import collections
import contextlib
import json
import os
import pathlib
import socket
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from agent import Refused, until, words  # noqa: E402
from cases import equal, read_only, run  # noqa: E402
from classes import configure, submit as submit_payloads  # noqa: E402

TOOL = os.path.join(os.path.abspath(sys.argv[1]), "tests/queue/queue_records")
FIELDS = {
    "records": "version host", "class": "name", "now": "time",
    "gpu": "name uuid index model pci profile parent", "shape": "id class gpus text",
    "batch": "id name made ended priority flags total joined held ready running ends first shape "
             "turn",
    "attempt": "task number shape gpus ready started ended outcome status text name",
    "tenancy": "gpu kind class since until text", "out": "gpu kind since until text",
    "reason": "shape task kind since until text", "life": "kind since until text",
    "left": "batch time least most",
}


# ---- Lines ----

def rows(text, *kinds):
    """Lines as dictionaries; only those of these kinds."""
    assert text.endswith("\n"), text[-100:]
    found = []
    for line in text[:-1].split("\n"):
        kind, *fields = line.split("\t")
        names = FIELDS[kind].split()
        equal((kind, len(fields)), (kind, len(names)))
        if not kinds or kind in kinds:
            found.append({"kind_of_line": kind, **dict(zip(names, fields))})
    return found


def pages(client, **asked):
    """All lines of the agent, and how many pages they had."""
    text, n, after = "", 0, {}
    while True:
        page = client.ask("records", **asked, **after)
        text += page["lines"]
        n += 1
        if "next" not in page:
            return text, n
        after = {"after": page["next"]}


def closed(agent, *options):
    """Exit status, lines and stderr of the program that prints a closed store."""
    done = subprocess.run([agent.program, "--records", "--state-dir", agent.state, *options],
                          env=agent.environment, capture_output=True, text=True, timeout=120,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def tool(agent, *batches, since=0, names=False, enough=0):
    """The same of a verb, by tests/queue/records_tool.c."""
    environment = {**agent.environment, "GPUD_AGENT_PROGRAM": agent.program}
    done = subprocess.run([TOOL, agent.state, str(since), str(int(names)), str(enough), *batches],
                          env=environment, capture_output=True, text=True, timeout=120,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def lasting(text):
    """The rows that do not depend on whether an agent runs, as lines."""
    kept = set(text.splitlines())
    return sorted(x for x in kept if x.startswith(("class\t", "shape\t", "batch\t", "attempt\t")))


def ended_spans(text):
    """Those that an agent has written to their end."""
    return {x for x in text.splitlines() if x.split("\t")[0] in ("tenancy", "out", "reason") and
            x.split("\t")[-2]}


def gpus_of(text):
    """Name by UUID."""
    return {row["uuid"]: row["name"] for row in rows(text, "gpu")}


# ---- A night ----

def night(agent):
    """A night with each way to end.  Returns the client of its agent."""
    agent.devices = "fake:4"
    configure(agent, unload_after=0)  # an idle worker keeps no GPU from a wide command
    c = agent.start().client()
    gate, began = agent.gate(), f"{agent.directory}/began"
    c.submit(["true", "echo oh; exit 3", "echo \"KeyError: 'x5'\" >&2; exit 1",
              "printf 'engine: bad\\033[31m frame\\tx\\n'; kill -SEGV $$", ["/no/such/program"]],
             batch="ends")
    c.submit(["echo still here; exec sleep 600"], batch="limited", limit=300_000_000)
    c.submit([f"test -e {agent.directory}/twice || {{ touch {agent.directory}/twice; exit 9; }}"],
             batch="retried", retries={"error": 1})
    submit_payloads(c, ["say 1", "fail 7", "crash", "print hello"], batch="workers")
    for batch in range(1, 5):
        c.ask("wait", batch=str(batch))
    c.submit([f"echo {{task}} >> {began}; read x < {gate}"] * 2, batch="ti\tme\n", replace=True,
             needs={"gpus": 2})
    until(lambda: len(words(began)) == 2, "both wide commands")
    c.submit(["true"] * 3, batch="waits", needs={"gpus": 4, "memory": 1 << 30}, priority=7)
    c.submit(["true"], batch="after", after=[{"id": "6", "when": "ok"}])
    c.ask("drain", device="fake:3", now=True)  # one of the wide commands returns
    until(lambda: c.ask("tasks", batch="5", states=["running"])["tasks"] and
          len(c.ask("tasks", batch="5", states=["ready"])["tasks"]) == 1, "the return")
    until(lambda: len(open_spans(c)) >= 3, "a GPU out of use, and reasons of two shapes")
    return c, gate


def open_spans(client):
    """What goes on: rows in the memory of the agent are in, though no commit has followed."""
    return [r for r in rows(pages(client)[0], "out", "reason") if not r["until"]]


def end_of(c, gate):
    """Ends the night."""
    c.ask("cancel", batch="6")
    c.ask("undrain", device="fake:3")
    with gate.opened(2):
        for batch in range(5, 8):
            c.ask("wait", batch=str(batch))
    until(lambda: not open_spans(c), "the ends of the reasons")


def all_ends(agent):
    """Each attempt is one row with its end and its GPUs; counts are those of the batches; the lines
    of the agent are those of the closed store."""
    c, gate = night(agent)
    during = rows(pages(c)[0])
    waits = next(r for r in during if r["kind_of_line"] == "batch" and r["name"] == "waits")
    equal((waits["ready"], waits["first"], waits["priority"], waits["ended"]), ("3", "1", "7", ""))
    shapes = {r["id"]: r for r in during if r["kind_of_line"] == "shape"}
    (out,) = [r for r in during if r["kind_of_line"] == "out"]
    equal((gpus_of(pages(c)[0])[out["gpu"]], out["kind"], out["until"]), ("fake:3", "drained", ""))
    reasons = [r for r in during if r["kind_of_line"] == "reason" and r["shape"] == waits["shape"]]
    equal(({r["task"] for r in reasons}, sum(not r["until"] for r in reasons)), ({"6.1"}, 1))
    equal((shapes[waits["shape"]]["gpus"], shapes[waits["shape"]]["text"]),
          ("4", "4 GPUs, 1 GiB each"))
    (runs,) = [r for r in during if r["kind_of_line"] == "attempt" and r["outcome"] == "running"]
    equal((runs["task"][:2], runs["ended"], runs["gpus"].count(",")), ("5.", "", 1))
    end_of(c, gate)

    text, n = pages(c, names=True)
    equal(n, 1)
    names = gpus_of(text)
    attempts = collections.defaultdict(list)
    for row in rows(text, "attempt"):
        attempts[row["task"]].append(row)

    def end(task):
        return [(r["number"], r["outcome"], r["status"], r["text"]) for r in attempts[task]]

    equal(end("1.1"), [("1", "ok", "0", "")])
    equal(end("1.2"), [("1", "error", "3", "exit 3: oh")])
    equal(end("1.3"), [("1", "error", "1", "exit 1: KeyError: 'x5'")])
    equal(end("1.4"), [("1", "crashed", "-11", "signal 11 (SIGSEGV): engine: bad frame x")])
    equal(end("1.5")[0][:3], ("1", "error", "127"))
    equal(end("2.1")[0][::3], ("1", "limit 300 ms: still here"))
    equal(end("2.1")[0][1], "timeout")
    equal(end("3.1"), [("1", "error", "9", "exit 9"), ("2", "ok", "0", "")])
    equal([end(f"4.{i}")[0][:2] for i in (1, 2, 3, 4)],
          [("1", "ok"), ("1", "error"), ("1", "crashed"), ("1", "ok")])
    equal([end(f"4.{i}")[0][3] for i in (2, 3)], ["as it was told", "signal 6 (SIGABRT)"])
    returned = [r for t in ("5.1", "5.2") for r in attempts[t] if r["outcome"] == "returned"]
    equal([(r["text"], r["gpus"].count(",")) for r in returned], [("drained by a person", 1)])
    equal([end(f"6.{i}") for i in (1, 2, 3)], [[("0", "cancelled", "0", "")]] * 3)
    equal(end("7.1"), [("0", "skipped", "0", "")])
    for task, all_of in attempts.items():
        for r in all_of:
            gpus = [names.get(g, g) for g in r["gpus"].split(",") if g]
            equal(len(gpus), 0 if r["number"] == "0" else 2 if task[:2] == "5." else 1)
            assert set(gpus) <= {f"fake:{i}" for i in range(4)}, r
            assert int(r["ready"] or 0) <= int(r["started"] or r["ended"]) <= int(r["ended"]), r
    equal(attempts["1.2"][0]["name"], "echo oh; exit 3")
    equal(attempts["4.1"][0]["name"], "say 1")
    equal({r["class"]: r["gpus"] for r in rows(text, "shape")}.keys(), {"command", "echo"})

    equal(counts(text), counts_of(c))
    equal([r["name"] for r in rows(text, "batch")][4], "ti\\tme\\n")
    equal(pages(c, names=True)[0].split("now\t")[0], text.split("now\t")[0])
    c.close()
    equal(agent.stop(), 0)
    status, printed, error = closed(agent, "--names", "--config", f"{agent.directory}/config")
    equal((status, error), (0, ""))
    equal(lasting(printed), lasting(text))
    assert ended_spans(text) <= ended_spans(printed), (text, printed)
    equal(collections.Counter((r["task"], r["number"]) for r in rows(printed, "attempt")
                              if r["number"] != "0"), attempts_of(agent))
    equal({u: n for u, n in gpus_of(printed).items() if u in names}, gpus_of(printed))
    (life,) = rows(printed, "life")
    assert life["until"], life


def counts(text):
    """Of each batch, by its id."""
    return {r["id"]: (r["total"], r["joined"], r["held"], r["ready"], r["running"],
                      dict(end.split("=") for end in r["ends"].split(",") if end))
            for r in rows(text, "batch")}


def counts_of(client):
    """The same of `ls --json`."""
    return {r["batch"]: (str(r["total"]), str(r["joined"]),
                         *(str(r["states"].get(s, 0)) for s in ("held", "ready", "running")),
                         {k: str(n) for k, n in r["outcomes"].items()})
            for r in client.ask("batches")["batches"]}


def attempts_of(agent):
    """All attempts of the store, each once."""
    with contextlib.closing(sqlite3.connect(f"file:{agent.state}/queue.db?mode=ro",
                                            uri=True)) as db:
        return collections.Counter(
            (f"{task >> 32}.{task & 0xffffffff}", str(number))
            for task, number in db.execute("SELECT task, number FROM attempt"))


def selections(agent):
    """Of some batches, and since a time."""
    c = agent.start().client()
    for name in ("one", "two", "one"):
        c.submit(["true", "exit 1"], batch=name)
        c.ask("wait", batch=str(len(c.ask("batches")["batches"])))
    ended = {r["batch"]: r["ended"] for r in c.ask("batches")["batches"]}

    def ids(text):
        found = [r["id"] for r in rows(text, "batch")]
        equal(sorted({r["task"].split(".")[0] for r in rows(text, "attempt")}), found)
        return found

    equal(ids(pages(c)[0]), ["1", "2", "3"])
    equal(ids(pages(c, batches=["3", "1", "9"], most=1)[0]), ["1", "3"])
    equal(ids(pages(c, since=ended["2"])[0]), ["2", "3"])
    equal(ids(pages(c, since=ended["2"] + 1)[0]), ["3"])
    for wrong in ({"batches": ["x"]}, {"batches": ["1.2"]}, {"batches": [1]}, {"after": "row 1"},
                  {"after": "row 1.2.3.4.5"}, {"after": "span x"}, {"after": "batch -1"},
                  {"after": "row 1.2.3.99999999999"}, {"after": "12"}, {"most": 0},
                  {"after": "batch 9"}, {"after": "batch 9@"}, {"after": "row 1.2.3.4@4294967296"}):
        try:
            c.ask("records", **wrong)
        except Refused as e:
            equal(e.code, "EINVAL")
        else:
            raise AssertionError(wrong)
    for place in ("batch 99@0", "batch 99@4294967295"):  # of another agent
        equal(c.ask("records", after=place)["lines"].split("\t")[0], "now")

    def by_tool(*batches, **options):
        status, text, error = tool(agent, *batches, **options)
        equal((status, error), (0, ""))
        return ids(text)

    for _ in ("of an agent", "closed"):
        equal(by_tool(), ["1", "2", "3"])
        equal(by_tool("one"), ["3"])
        equal(by_tool("1,2"), ["1", "2"])
        equal(by_tool("2", "one", since=ended["2"] + 1), ["3"])
        for wrong, status, text in (("nights", 4, "nights"), ("9", 4, "no batch 9"),
                                    ("1.2", 2, "is not a batch")):
            got = tool(agent, wrong)
            assert got[:2] == (status, "") and text in got[2], got
        equal(tool(agent, enough=1)[0], 9)
        if agent.process.poll() is None:
            c.close()
            agent.stop()


def no_store(agent):
    """Without a queue there is nothing to print, and nothing is made; an agent has its store to
    itself; a store of another version stays as it is."""
    equal(tool(agent)[::2][0], 4)
    equal(closed(agent)[:2], (4, ""))
    equal(os.path.exists(agent.state), False)
    agent.start()
    status, text, error = closed(agent)
    equal((status, text), (75, ""))
    assert "an agent runs" in error, error
    agent.client().submit(["true"])
    agent.stop()
    database = pathlib.Path(agent.state, "queue.db")
    before = database.read_bytes()
    equal(closed(agent)[0], 0)
    equal(database.read_bytes(), before)
    with contextlib.closing(sqlite3.connect(database)) as db, db:
        version = db.execute("PRAGMA user_version").fetchone()[0]
        db.execute(f"PRAGMA user_version = {version + 1}")
    equal(closed(agent)[:2], (75, ""))
    for options in (("--fsck",), ("--json",), ("--since", "x"), ("--since", "-1")):
        equal(closed(agent, *options)[0], 2)


def read_only_store(agent):
    """A store that cannot be written is read, unless a killed agent has left changes beside it."""
    agent.state += " 100%?#"

    def read():
        done = subprocess.run([*before, agent.program, "--records", "--state-dir", agent.state],
                              env=agent.environment, capture_output=True, text=True, timeout=120,
                              check=False)
        return done.returncode, done.stdout, done.stderr

    c = agent.start().client()
    before = read_only(agent.state)
    c.submit(["true", "exit 1"])
    c.ask("wait", batch="1")
    status, text, error = read()
    equal((status, text), (75, ""))
    assert "an agent runs" in error, error
    agent.stop()
    status, text, error = read()
    equal((status, error, len(rows(text, "attempt"))), (0, "", 2))
    equal(lasting(text), lasting(closed(agent)[1]))
    c = agent.start().client()
    c.submit(["true"], batch="more")
    c.ask("wait", batch="2")
    agent.kill()
    status, text, error = read()
    equal((status, text), (75, ""))
    assert "queue.db-wal has changes" in error and "--state-dir" in error, error


def killed(agent):
    """After a kill of the agent its rows do not go on: a report has no agent for the time since."""
    gate = agent.gate()
    agent.devices = "fake:1"
    c = agent.start().client()
    c.submit([f"read x < {gate}"] * 2)
    until(lambda: open_spans(c), "a reason")
    c.submit(["true"])  # the row of the reason is in the store with the next commit
    agent.kill()
    until(lambda: closed(agent)[0] == 0, "the lock")
    before = time.time_ns()
    text = closed(agent)[1]
    found = rows(text, "life", "reason")
    equal(sorted(r["kind_of_line"] for r in found), ["life", "reason"])
    for row in found:
        assert row["until"] and int(row["since"]) <= int(row["until"]) < before, row
    c = agent.start().client()
    equal([r for r in rows(pages(c)[0], "life", "reason") if r in found], found)
    with gate.opened(2):
        c.ask("wait", batch="1")


def spans_as_lines(agent):
    """Each kind of span is a line; a GPU that is gone is known by the name in a text.  A row
    without an end ends when an agent was last known to run."""
    c = agent.start().client()
    c.submit(["true"], needs={"gpus": 2})
    c.ask("wait", batch="1")
    c.close()
    agent.stop()
    spans = [("device", "GPU-7", "lost", "gpu:7: fell off the bus"),
             ("device", "gpu:8", "drained", "gpu:8"),
             ("device", "GPU-7", "foreign", "gpu:7: user ben, pid 8123, 41984 MiB"),
             ("tenancy", "GPU-7", "boot", "whisper: first use"),
             ("tenancy", "GPU-7", "unload", "whisper: evicted for llama"),
             ("tenancy", "GPU-7", "kept", "1.1: held for 2 GPUs"),
             ("reason", "1", "BUSY", "1.1: GPU 3 runs 12.4\tto the end"),
             ("reason", "77", "paused", "9.1"), ("reason", "x", "paused", "9.1"),
             ("life", "", "clock", "set by +3.000 s"), ("life", "", "adopted", "2 commands"),
             ("unheard", "", "of", "such")]
    with contextlib.closing(sqlite3.connect(f"{agent.state}/queue.db")) as db, db:
        db.execute("DELETE FROM span")
        db.execute("UPDATE mark SET since = 2003 WHERE kind = 'alive'")
        for i, row in enumerate(spans):
            db.execute("INSERT INTO span(kind, subject, reason, text, since, until, since_boot,"
                       " until_boot) VALUES(?, ?, ?, ?, ?, ?, 0, 0)",
                       (*row, 1000 + i, 0 if i % 2 else 2000 + i))
    status, text, error = closed(agent)
    equal((status, error), (0, ""))
    lines = text.splitlines()
    equal([x for x in lines if x.split("\t")[0] in ("tenancy", "out", "reason", "life")],
          ["out\tGPU-7\tlost\t1000\t2000\tfell off the bus",
           "out\tgpu:8\tdrained\t1001\t2003\t",
           "out\tGPU-7\tforeign\t1002\t2002\tuser ben, pid 8123, 41984 MiB",
           "tenancy\tGPU-7\tboot\twhisper\t1003\t2003\tfirst use",
           "tenancy\tGPU-7\tunload\twhisper\t1004\t2004\tevicted for llama",
           "tenancy\tGPU-7\tkept\t\t1005\t2003\t1.1: held for 2 GPUs",
           "reason\t1\t1.1\tBUSY\t1006\t2006\tGPU 3 runs 12.4\\tto the end",
           "reason\t77\t9.1\tpaused\t1007\t2003\t",
           "life\tclock\t1009\t2003\tset by +3.000 s", "life\tadopted\t1010\t2010\t2 commands"])
    assert "gpu\tgpu:7\tGPU-7\t\t\t\t\t" in lines, text
    assert "shape\t1\tcommand\t2\t2 GPUs" in lines, text
    equal([x for x in lines if x.startswith("shape\t77")], [])
    since = closed(agent, "--since", "2003")[1].splitlines()
    equal([x.split("\t")[0] for x in since if x.split("\t")[0] in ("out", "tenancy")],
          ["out", "tenancy", "tenancy", "tenancy"])


def readers_that_leave(agent):
    """A reader that disconnects, or that reads nothing, costs the agent nothing: it goes on."""
    c = agent.start().client()
    c.submit(["true"] * 500)
    c.ask("wait", batch="1")
    whole = pages(c)[0].splitlines()[:-1]
    for _ in range(20):
        gone = agent.client()
        gone.send({"id": 1, "do": "records"})
        gone.close()
    silent = agent.client()
    for _ in range(40):  # more than the agent keeps for a client that does not read
        silent.send({"id": 1, "do": "records"})
    silent.socket.shutdown(socket.SHUT_WR)
    c.submit(["true"], batch="after")
    c.ask("wait", batch="2")
    equal(c.outcomes(2), ["ok"])
    equal([x for x in pages(c, batches=["1"])[0].splitlines() if x.startswith("attempt")],
          [x for x in whole if x.startswith("attempt")])
    silent.close()


def hostile_names(agent):
    """Names, commands, payloads and printed lines of any characters are one field of one line."""
    configure(agent)
    c = agent.start().client()
    names = ["a\tb", "c\nd", "\x1b[31mred", "<b>&amp;\"", "back\\slash", "\x7f\x01", "ü✕" * 100]
    c.ask("submit", batch={"name": names[1]}, specs=[{"cwd": "/"}], join=False,
          tasks=[{"spec": 0, "name": n[:100], "argv": ["sh", "-c", "printf 'x\\ty\\n'; exit 1"]}
                 for n in names])
    c.submit([["sh", "-c", f"exit 1 # {n}"] for n in names], batch=names[0])
    submit_payloads(c, [b"\xff\0\n", "fail\t1", "two\nlines"], batch=names[4])
    for batch in ("1", "2", "3"):
        c.ask("wait", batch=batch)
    text, _ = pages(c, names=True)

    def field(name):
        return "".join({"\t": "\\t", "\n": "\\n", "\\": "\\\\"}.get(
            x, f"\\x{ord(x):02x}" if x < " " or x == "\x7f" else x) for x in name)

    attempts = rows(text, "attempt")
    equal([r["name"] for r in attempts if r["task"].startswith("1.")],
          [field(n[:100]) for n in names])
    equal([r["name"] for r in attempts if r["task"].startswith("2.")],
          [field(f"sh -c exit 1 # {n}"[:80]) for n in names])
    equal([r["text"] for r in attempts if r["task"] == "1.1"], ["exit 1: x y"])
    equal([r["name"] for r in rows(text, "batch")], [field(names[i]) for i in (1, 0, 4)])
    equal(len([r for r in attempts if r["task"].startswith("3.")]), 3)
    c.close()
    agent.stop()
    equal(lasting(closed(agent, "--names", "--config", f"{agent.directory}/config")[1]),
          lasting(text))


if __name__ == "__main__":
    sys.exit(run("queue-records", [all_ends, selections, no_store, read_only_store, killed,
                                   spans_as_lines, readers_that_leave, hostile_names]))
