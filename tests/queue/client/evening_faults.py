#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Evenings with gpudispatch and the real programs on fake GPUs: agents that restart or die, and
GPUs and commands that fail.

usage: evening_faults.py BUILD_DIRECTORY [CASE...]
"""
import contextlib
import os
import re
import select
import sqlite3
import sys
import time

sys.dont_write_bytecode = True
from cli import PATIENCE, Queue, Skip, equal, run, until  # noqa: E402
from evening import SLOW, and_back, began, hold_gpus, open_gate, open_gate_of  # noqa: E402


def nobody_restarts(q):
    """After the end of its agent, wait starts another one, with the devices of the config file."""
    if not SLOW:
        raise Skip("it takes 15 s: suite slow")
    config = q.directory / ".config/gpudispatch/config"
    config.parent.mkdir(parents=True)
    config.write_text("devices = fake:8\ncpus = 64\n")
    os.mkfifo(q.path("gate"))
    q.submit("--gpus", "8", "--", "sh", "-c", "echo begin; cat gate")
    q.submit("--gpus", "8", "--", "true")
    log = q.start("log", "-f", "1.1")
    waits = q.start("wait", "1", "2")
    equal(log.stdout.readline(), b"begin\n")
    before = q.pid()
    q.kill()
    until(lambda: q.said().count("go on") == 1, "another agent")
    open_gate_of(q)
    equal((waits.wait(PATIENCE), log.wait(PATIENCE)), (0, 0))
    assert q.pid() != before
    equal(q.json("ls", "1")[0]["attempt"], 1)


def sick_gpu(q):
    """drain --now: the work goes elsewhere, and is not charged."""
    q.agent()
    batch = hold_gpus(q, 8)
    until(lambda: len(began(q)) == 8, "8 commands")
    (sick,) = [task for task, _, gpu in began(q) if gpu == "fake:4"]
    q.run("drain", "4", "--reason", "ECC", "--now")
    until(lambda: "running" not in q.json("ls", sick)[0]["state"], "its end there")
    other = next(task for task, _, gpu in began(q) if gpu != "fake:4")
    open_gate(q, other.split(".")[1])
    until(lambda: len(began(q)) == 9, "a start elsewhere")
    task, attempt, gpu = began(q)[8]
    equal((task, attempt, gpu != "fake:4"), (sick, "2", True))
    (row,) = q.json("show", sick)
    equal((row["attempt"], row["charged"]), (2, 1))
    equal([a.get("returned") for a in row["attempts"]], ["device fault", None])
    shown = q.run("show", sick)
    kept = r"1: drained by a person, started \S+, for .*s, back at its place\n"
    assert re.search(kept, shown), shown
    assert "fault" not in shown, shown
    for i in range(1, 9):
        if f"{batch}.{i}" != other:
            open_gate(q, i)
    q.run("wait", batch)
    q.run("undrain", "4")
    assert "not drained" in q.run("undrain", "4")


def running(q):
    """Where a task runs, and since when; a new agent knows it, too."""
    q.agent()
    hold_gpus(q, 2, "--gpus", "3")
    until(lambda: len(began(q)) == 2, "2 commands")
    for restart in (lambda: None, q.kill):
        restart()
        for row in q.json("ls", "1") + q.json("show", "1.1", "1.2"):
            gpus = row["devices"].split(",")
            equal((len(gpus), gpus[0][:5]), (3, "fake:"))
            assert time.time() - 600 < row["started"] / 1e9 < time.time() + 1, row
        table = q.table("ls", "1")
        short = [row["devices"].replace(",fake:", ",") for row in q.json("ls", "1")]
        for line, gpus in zip(table[1:], short):
            assert f"on {gpus}" in line, table
        assert "attempt       1: runs, started " in q.run("show", "1.1")
    for i in (1, 2):
        open_gate(q, i)
    q.run("wait", "1")
    equal([row.get("devices") for row in q.json("ls", "1")], [None, None])


def power_cut(q):
    """Q4: what ran is LOST, and goes back to its place unless --at-most-once."""
    q.agent()
    batch = hold_gpus(q, 4)
    once = q.submit("--at-most-once", "--", "sh", "-c", "echo once >> began; exec sleep 1000")
    q.submit(q.write("rest", "".join(f"echo {i} >> ran\n" for i in range(100))), "--hold")
    until(lambda: len(q.words("began")) == 4 * 3 + 1, "5 commands")
    q.run("drain", "7", "--reason", "ECC")
    q.power_cut()
    with contextlib.closing(sqlite3.connect(q.state / "queue.db")) as file:
        file.execute("UPDATE attempt SET run = substr(run, 1, 33) || ?",
                     ["00000000-0000-4000-8000-000000000000"])  # another boot
        file.commit()
    q.path("began").unlink()
    q.agent()
    until(lambda: len(began(q)) == 4, "4 second attempts")
    equal(sorted(began(q))[0][:2], (f"{batch}.1", "2"))
    equal(q.states(once["batch"]), ["lost"])
    equal([m["reason"] for m in q.json("agent", "status")[0]["marks"]], ["ECC"])
    for i in range(4):
        open_gate(q, i + 1)
    q.run("wait", batch)
    (reply,) = q.json("release", "rest")
    equal(reply["count"], 100)
    q.run("wait", "rest")
    equal(sorted(q.words("ran"), key=int), [str(i) for i in range(100)])
    (reply,) = q.json("retry", once["batch"], "--failed", "--lost")
    equal(reply["count"], 1)
    until(lambda: "once" in q.words("began"), "a second round")
    equal(q.json("cancel", once["batch"])[0]["running"], 1)
    q.run("wait", once["batch"], status=3)
    (row,) = q.json("show", once["batch"] + ".1")
    equal((row["round"], row["outcome"]), (2, "cancelled"))


def changes(q):
    """retry, set, hold and release change what they name, and refuse what they cannot."""
    q.agent()
    batch = hold_gpus(q, 8)
    until(lambda: len(began(q)) == 8, "8 commands")
    q.write("order", "".join(f"echo {i} >> ran\n" for i in range(1, 5)))
    waiting = q.submit("order")["batch"]
    equal(q.json("hold", f"{waiting}.2")[0]["count"], 1)
    q.run("set", f"{waiting}.4", "--first")
    q.run("set", f"{waiting}.3", "--priority", "-1")
    q.run("set", f"{batch}.1", "--first", status=6)
    q.run("set", waiting, status=2)
    q.run("set", f"{waiting}.1", "--gpus", "9", status=6)
    assert q.err.startswith("gpudispatch: --gpus 9: the agent has 8"), q.err
    q.run("cancel", "99", status=4)
    q.run("retry", f"{waiting}.9", status=4)
    for i in (1, 2, 3, 4, 5, 6, 7):  # one GPU: one at a time
        q.run("drain", i)
    gpu = {gpu: task.split(".")[1] for task, _, gpu in began(q)}
    open_gate(q, gpu["fake:0"])
    q.run("wait", f"{waiting}.1,{waiting}.3,{waiting}.4")
    equal(q.words("ran"), ["4", "1", "3"])
    q.run("release", waiting)
    q.run("wait", waiting)
    equal(q.words("ran"), ["4", "1", "3", "2"])
    equal(q.json("retry", waiting)[0]["count"], 0)  # none has failed
    equal(q.json("retry", waiting, "--state", "ok")[0]["count"], 4)
    q.run("wait", waiting)
    equal(len(q.words("ran")), 8)
    equal(q.json("purge", "--older", "0")[0]["count"], 4)  # hold still runs
    q.run("show", f"{waiting}.1", status=4)
    pid = q.pid()
    (status,) = q.json("agent")
    equal((status["started"], status["pid"], status["devices"]), (False, pid, 8))
    equal(q.json("agent", "stop", "--cancel")[0]["pid"], pid)
    q.run("ls", status=4)
    q.agent()
    equal(set(q.states(batch)), {"ok", "cancelled"})


def agent_alone(q):
    """A started agent keeps none of its caller's files, such as the lock of a shell."""
    read, write = os.pipe()
    child = q.start("submit", "--", "true", pass_fds=[write])
    out, err = child.communicate(timeout=PATIENCE)
    equal((child.returncode, b"agent started" in out), (0, True))
    assert b"a logout" in out and b"reboot" in out, out
    os.close(write)
    ended = select.select([read], [], [], PATIENCE)[0]
    os.close(read)
    assert ended, "a process has the other end"


def crashing_lines(q):
    """A line whose last program dies of a signal has crashed, whatever its shell does."""
    q.agent()
    q.write("c.txt", "sh -c 'kill -ABRT $$'; exit $?\n")
    q.write("c.csv", "command,name\nexit 137,nine\n")
    q.write("c.jsonl", '{"argv": ["sh", "-c", "exit 139"]}\n{"command": "exit 139"}\n')
    for file in ("c.txt", "c.csv", "c.jsonl"):
        q.submit(file, "--retries", "1:crash", "--batch", file)
    q.submit("--retries", "1:crash", "--", "sh", "-c", "exit 134")
    q.run("wait", "1", "2", "3", "4", status=3)
    rows = [(r["outcome"], r["attempt"]) for b in (1, 2, 3, 4) for r in q.json("ls", b)]
    equal(rows, [("crashed", 2), ("crashed", 2), ("error", 1), ("crashed", 2), ("error", 1)])
    assert "signal 6 (SIGABRT), by the shell's status 134" in q.run("show", "1.1")


def notified(q):
    """--notify runs where the submit was, and each line of agent.log begins with the time."""
    q.agent()
    tell = "pwd; echo $GPUDISPATCH_BATCH; exit 3"
    q.path("gone").mkdir()
    q.submit("--notify", tell, "--", "true")
    q.start("submit", "--cwd", "/", "--notify", tell, "--hold", "--", "true",
            cwd=q.path("gone")).wait(PATIENCE)
    q.path("gone").rmdir()
    q.run("release", "2")
    for batch, directory in ((1, q.work), (2, q.state)):
        log = q.state / f"logs/notify-{batch}"
        q.run("wait", batch)
        until(lambda: log.exists() and log.read_text().endswith(f"{batch}\n"), "a notification")
        equal(log.read_text(), f"{directory.resolve()}\n{batch}\n")
    until(lambda: q.said().count("exited with status 3: see logs/notify-") == 2, "its ends")
    when = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d"
    for said in q.said().splitlines():
        assert re.match(f"{when} gpudispatch-agent: ", said), said
    q.run("agent", "stop")
    q.run("agent", "start", "--devices", "fake:0x", status=6)
    equal(q.err.splitlines()[0].split(": ")[0], "gpudispatch-agent")


def start_again(q):
    """`agent start` without options has those of the last one, and refuses others while it runs."""
    q.run("agent", "start", "--devices", "fake:3", "--cpus", "16")
    last = "with the options of the last start: --devices fake:3 --cpus 16;"
    for args in ([], ["--devices", "fake:3", "--cpus", "16"]):
        out = q.run("agent", "start", *args)
        assert "runs already (3 GPUs" in out and last not in out, out
    for args in (["--devices", "fake:2", "--cpus", "16"], ["--devices", "fake:3"],
                 ["--cpus", "17", "--devices", "fake:3"]):
        q.run("agent", "start", *args, status=6)
        assert "runs with --devices fake:3 --cpus 16, not with " + " ".join(sorted(
            args, key=lambda a: a in ("--cpus", "16", "17"))) in q.err, q.err
    q.write("config", "devices = fake:3\n")
    q.run("agent", "start", "--config", "config", status=6)
    assert f"not with --config {q.path('config')}" in q.err, q.err
    q.run("agent", "start", "--cpus", "many", status=2)
    q.run("agent", "start", "--config", "none", status=2)
    for stop in (q.kill, lambda: q.run("agent", "stop")):
        stop()
        out = q.run("agent", "start")
        assert f"agent started (3 GPUs" in out and last in out, out
    status = q.json("agent", "status")[0]
    equal(status["settings"]["cpus"], {"value": "16", "origin": "--cpus"})
    equal({r["key"]: (r["value"], r["origin"]) for r in q.json("config")}["devices"],
          ("fake:3", "agent: --devices"))
    q.run("agent", "stop")
    out = q.run("agent", "start", "--devices", "fake:2")  # and no other of the last ones
    assert "(2 GPUs" in out and "last start" not in out, out
    equal(q.json("agent", "status")[0]["settings"]["cpus"]["value"], None)


if __name__ == "__main__":
    sys.exit(run("queue-evening-faults", [
        *map(and_back, (nobody_restarts, sick_gpu, running, power_cut, changes, crashing_lines)),
        agent_alone, notified, start_again], Queue))
