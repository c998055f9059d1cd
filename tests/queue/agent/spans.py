#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where the time of GPUs and tasks went: the rows that an agent writes.

usage: spans.py BUILD_DIRECTORY [CASE...]
"""
import contextlib
import os
import pathlib
import pwd
import sqlite3
import sys
import time

sys.dont_write_bytecode = True
import classes  # noqa: E402
from agent import until  # noqa: E402
from cases import equal, run  # noqa: E402

DAY = 24 * 3600 * 10**9
LIMITED = 64  # batches with at_once that are examined


def rows(client, kind):
    return client.ask("spans", kinds=[kind])["spans"]


def brief(client, kind):
    """Of each row its reason, text, and whether it has ended."""
    return [(r["reason"], r["text"], "until" in r) for r in rows(client, kind)]


def written(client, holds, what):
    """Waits for rows, which are written with changes of tasks."""
    def holds_now():
        batch = client.submit(["true"], batch="x", hold=True)["batch"]
        client.ask("cancel", tasks=[batch + ".1"])
        return holds()

    until(holds_now, what)


def script(agent, *lines):
    path = pathlib.Path(agent.directory, "script")
    path.write_text("\n".join(lines) + "\n")
    return path


def kept(agent):
    """GPUs that stay free for a wide task are kept for it, while it gathers them."""
    gate = agent.gate()
    uuid = {f"fake:{i}": f"GPU-{i:08}-0000-0000-0000-000000000000" for i in range(4)}
    path = script(agent, *(f"gpu {name[5:]} uuid={u}" for name, u in uuid.items()))
    agent.devices = f"fake:4,script={path}"
    c = agent.start().client()
    c.submit([f"read x < {gate}"] * 2)
    until(lambda: len(agent.processes("sh")) == 2, "two commands")
    equal(rows(c, "tenancy"), [])
    wide = c.submit(["true", "true"], batch="wide", needs={"gpus": 3})["batch"] + ".1"
    written(c, lambda: len(rows(c, "tenancy")) == 2, "GPUs that are kept")
    equal(brief(c, "tenancy"), [("kept", f"{wide}: held for 3 GPUs", False)] * 2)
    busy = {uuid[t["devices"]] for t in c.tasks(1)}
    equal({r["subject"] for r in rows(c, "tenancy")} | busy, set(uuid.values()))
    equal(len(busy), 2)
    with gate.opened(2):
        c.ask("wait", tasks=[wide])
    written(c, lambda: all("until" in r for r in rows(c, "tenancy")), "their ends")
    for r in rows(c, "tenancy"):
        assert 0 < r["until_boot"] - r["since_boot"], r


def kept_for_workers(agent):
    """A GPU is kept for a worker of several GPUs, too; and not while the class has its workers."""
    gate = agent.gate()
    agent.devices = "fake:3"
    classes.configure(agent, "judge", gpus=2, max_workers=1)
    c = agent.start().client()
    c.submit([f"read x < {gate}"] * 2)
    until(lambda: len(agent.processes("sh")) == 2, "two commands")
    judge = classes.submit(c, ["say 1"] * 2, name="judge")["batch"]
    written(c, lambda: rows(c, "tenancy"), "a GPU that is kept")
    equal(brief(c, "tenancy"), [("kept", f"{judge}.1: held for 2 GPUs", False)])
    with gate.opened(2):
        c.ask("wait", batch=judge)
    written(c, lambda: all("until" in r for r in rows(c, "tenancy")), "its end")
    classes.submit(c, ["wait"] * 9, name="judge")
    until(lambda: len(classes.lines(agent, "started")) == 3, "a task at the worker")
    written(c, lambda: any(r["reason"] == "BUSY" for r in rows(c, "reason")), "tasks behind it")
    equal([r for r in brief(c, "tenancy") if r[0] == "kept"][1:], [])


def kept_not(agent):
    """GPUs are not kept for a wide task that waits for something else: they are idle."""
    gate = agent.gate()
    agent.devices = "fake:4"
    c = agent.start().client()
    c.submit([f"read x < {gate}"], needs={"gpus": 1, "cpus": 60})
    until(lambda: len(agent.processes("sh")) == 1, "a command")
    c.submit(["true"], batch="wide", needs={"gpus": 2, "cpus": 8})
    written(c, lambda: rows(c, "reason"), "its reason")
    equal(rows(c, "reason")[0]["reason"], "CPUS")
    equal(rows(c, "tenancy"), [])
    gate.open()


def tenancies(agent):
    """Workers load for a first use, again, and after a crash; and leave for another class."""
    agent.devices = "fake:1"
    for name in ("echo", "judge"):
        classes.configure(agent, name, min_residence="0s")
    gates = {name: agent.gate(name) for name in ("loads", "leaves")}
    c = agent.start().client()
    expected = []

    def passes(gate, reason, text):
        """A worker waits there, and goes on."""
        written(c, lambda: brief(c, "tenancy")[-1:] == [(reason, text, False)], text)
        expected.append((reason, text, True))
        gates[gate].open()

    def submit(name, payload="say 1"):
        return classes.submit(c, [payload], name=name)["batch"]

    batch = submit("echo")
    passes("loads", "boot", "echo: first use")
    c.ask("wait", batch=batch)
    c.ask("wait", batch=submit("echo", "crash"))
    batch = submit("echo")
    passes("loads", "boot", "echo: restart")
    c.ask("wait", batch=batch)
    batch = submit("judge")
    passes("leaves", "unload", "echo: evicted for judge")
    passes("loads", "boot", "judge: first use")
    c.ask("wait", batch=batch)
    batch = submit("echo")
    passes("leaves", "unload", "judge: evicted for echo")
    passes("loads", "boot", "echo: again")
    c.ask("wait", batch=batch)
    written(c, lambda: all("until" in r for r in rows(c, "tenancy")), "their ends")
    equal([r for r in brief(c, "tenancy") if r[1] != "echo: it died"], expected)
    reasons = {(r["reason"], r["text"].split(":")[0]) for r in rows(c, "reason")}
    assert ("UNLOADING", f"{batch}.1") in reasons, reasons
    os.unlink(gates["leaves"])


def lost(agent):
    """A GPU that falls off the bus is out of use as lost."""
    falls = pathlib.Path(agent.directory, "falls")
    agent.devices = f"fake:2,script={script(agent, f'when {falls} gpu 1 xid 79 lost')}"
    c = agent.start().client()
    written(c, lambda: rows(c, "life"), "a look")
    equal(rows(c, "device"), [])
    falls.touch()
    written(c, lambda: rows(c, "device"), "a row of the device")
    out, = rows(c, "device")
    equal((out["reason"], out["text"].split(": ")[0], "until" in out), ("lost", "fake:1", False))


def foreign(agent):
    """A GPU that a process of others keeps from a task is out of use as foreign: with its user,
    its number and its memory, until it has gone."""
    gone, pid = pathlib.Path(agent.directory, "gone"), os.getpid()
    path = script(agent, f"gpu 0 foreign {pid} 10GiB", f"when {gone} gpu 0 gone {pid}")
    agent.devices = f"fake:1,script={path}"
    c = agent.start().client()
    c.submit(["true"])
    written(c, lambda: rows(c, "device"), "a row of the device")
    user = pwd.getpwuid(os.getuid()).pw_name
    equal(brief(c, "device"), [("foreign", f"fake:0: user {user}, pid {pid}, 10240 MiB", False)])
    gone.touch()
    c.ask("wait", batch="1")
    written(c, lambda: "until" in rows(c, "device")[0], "its end")


def adopted(agent):
    """An agent that takes over commands of one before has a row of that, from its start on."""
    gate = agent.gate()
    c = agent.start().client()
    c.submit([f"read x < {gate}"] * 2)
    until(lambda: len(agent.processes("sh")) == 2, "two commands")
    agent.kill()
    c = agent.start().client()
    equal(brief(c, "life"),
          [("opened", "", True), ("opened", "", False), ("adopted", "2 commands", True)])
    life = rows(c, "life")
    equal(life[2]["since"], life[2]["until"])
    with gate.opened(2):
        c.ask("wait", batch="1")
    equal(agent.stop(), 0)
    equal(len(rows(agent.start().client(), "life")), 4)


def killed(agent):
    """The rows of a killed agent end less than a second before its last commit."""
    c = agent.start().client()
    c.submit(["true"])
    c.ask("wait", batch="1")
    later = c.ask("task", task="1.1")["task"]["ended"] + 15 * 10**8
    written(c, lambda: time.time_ns() > later, "a second of commits")
    agent.kill()
    life = rows(agent.start().client(), "life")
    assert later - 10**9 <= life[0]["until"] <= life[1]["since"], (later, life)


def few_rows(agent):
    """A row of a reason goes on while one task after the other waits for the same."""
    gate = agent.gate()
    agent.devices = "fake:1"
    c = agent.start().client()
    c.submit([f"read x < {gate}"] * 4)
    until(lambda: agent.processes("sh"), "a command")
    written(c, lambda: rows(c, "reason"), "a row")
    before = rows(c, "reason")
    for task in ("1.1", "1.2"):
        gate.open()
        c.ask("wait", tasks=[task])
        written(c, lambda t=task: time.time_ns() > c.ask("task", task=t)["task"]["ended"] + 10**9,
                "another look")
    equal(rows(c, "reason"), before)
    equal(before[0]["text"].split(":")[0], "1.2")


def turns(agent):
    """Tasks that wait for their turn in a batch have a reason, which goes on from task to task.
    That of a READY task with the same needs comes first."""
    gate = agent.gate()
    agent.devices = "fake:3"
    c = agent.start().client()
    for i in range(LIMITED):  # they have ended, and take no place in a look
        c.submit(["true"], batch="before", hold=True, at_once=1)
        c.ask("cancel", batch=str(i + 1))
    few = c.submit([f"read x < {gate}"] * 5, batch="few", at_once=2)["batch"]

    def own():  # the batches before may have rows, too
        return [r for r in rows(c, "reason") if int(r["text"].split(".")[0]) > LIMITED]

    def seen():
        return [(r["reason"], r["text"], "until" in r) for r in own()]

    until(lambda: len(agent.processes("sh")) == 2, "two commands")
    written(c, own, "a row")
    wanted = ("at once", f"{few}.3: at_once 2 of batch {few} is reached")
    equal(seen(), [(*wanted, False)])
    gate.open()
    c.ask("wait", tasks=[few + ".1"])
    written(c, lambda: time.time_ns() > c.ask("task", task=few + ".1")["task"]["ended"] + 10**9,
            "another look")
    equal(seen(), [(*wanted, False)])
    other = c.submit([f"read x < {gate}"] * 2, batch="other")["batch"]
    written(c, lambda: len(own()) == 2, "a task that waits for a GPU")
    equal(seen()[0], (*wanted, True))
    assert seen()[1][0] in ("BUSY", "SHARE"), seen()
    equal(seen()[1][1].split(":")[0], f"{other}.2")
    with gate.opened(6):
        c.ask("wait", batch=few)
        c.ask("wait", batch=other)
    written(c, lambda: "until" in own()[-1], "the end of the last row")
    equal(c.ask("retry", batch=few, outcomes=["ok", "error"])["count"], 5)
    written(c, lambda: len(own()) == 3, "a row of the new round")
    equal(seen()[2], (*wanted, False))
    gate.open()
    until(lambda: c.ask("task", task=few + ".3")["task"]["state"] == "running", "a third start")
    began = time.time_ns()
    written(c, lambda: time.time_ns() > began + 10**9, "another look")
    before = time.time_ns()
    c.ask("cancel", tasks=[f"{few}.{i}" for i in (4, 5)])
    written(c, lambda: "until" in own()[2], "the end of the row")
    assert own()[2]["until"] > before, (before, own())
    c.ask("cancel", batch=few)


def forgotten(agent):
    """Rows are forgotten with the tasks of their time, and younger ones stay."""
    c = agent.start().client()
    c.submit(["true"])
    c.ask("wait", batch="1")
    equal(agent.stop(), 0)
    agent.start()
    equal(agent.stop(), 0)
    old, new = ([time.time_ns() - days * DAY] * 2 for days in (91, 89))
    path = os.path.join(agent.state, "queue.db")
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE span SET since = ?, until = ? WHERE id = 1", old)
        file.execute("UPDATE span SET since = ?, until = ? WHERE id = 2", new)
        file.execute("INSERT OR REPLACE INTO mark VALUES('retention', '', NULL, ?)",
                     [time.time_ns() - DAY])
    c = agent.start().client()
    until(lambda: [r["span"] for r in rows(c, "life")] == [2, 3], "the end of an old row")


CASES = [kept, kept_for_workers, kept_not, tenancies, lost, foreign, adopted, killed, few_rows,
         turns, forgotten]

if __name__ == "__main__":
    sys.exit(run("queue-spans", CASES))
