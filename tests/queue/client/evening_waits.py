#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Evenings with gpudispatch and the real programs on fake GPUs: what goes on, what waits and
why, and the verbs that wait.

usage: evening_waits.py BUILD_DIRECTORY [CASE...]
"""
import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys

sys.dont_write_bytecode = True
from cli import PATIENCE, Queue, equal, run, until  # noqa: E402
from evening import and_back, began, hold_gpus, open_gate, open_gate_of  # noqa: E402


def look(q):
    """wait and log -f go on while the agent is killed and started again."""
    q.agent()
    for gate in ("one", "two"):
        os.mkfifo(q.path(gate))
    q.write("job.sh", "echo begin; cat one; echo middle; cat two; printf 'a\\rb\\n'; echo end\n")
    q.submit("--name", "a name that is far too long for a column of the table " * 3, "--", "sh",
             "job.sh")
    log = q.start("log", "-f", "1.1")
    waits = q.start("wait", "1", "--json")
    equal(log.stdout.readline(), b"begin\n")
    for gate, next_line in (("one", b"middle\n"), ("two", b"b\n")):
        q.kill()
        q.agent()
        with open(q.path(gate), "w"):
            pass
        equal(log.stdout.readline(), next_line)
    equal(log.stdout.read(), b"end\n")
    equal(log.wait(PATIENCE), 0)
    out = waits.communicate(timeout=PATIENCE)[0]
    equal((waits.returncode, b'"outcome":"ok"' in out), (0, True))
    equal(q.run("log", "1.1"), "begin\nmiddle\nb\nend\n")
    (task,) = q.json("ls", "1")
    equal((task["attempt"], task["outcome"]), (1, "ok"))
    equal(q.run("log", "sh.1"), q.run("log", "1.1"))
    equal(q.json("show", "sh.1-1"), q.json("show", "1.1"))
    for args in (("ls",), ("ls", "1"), ("ls", "--state", "ok")):
        q.table(*args)


def follow_ends(q):
    """log -f ends with its reader, and wait with its --timeout: status 5."""
    q.agent()
    os.mkfifo(q.path("gate"))
    q.submit("--", "sh", "-c", "echo begin; cat gate; exit 7")
    read, write = os.pipe()
    log = q.start("log", "-f", "1", stdout=write)
    os.close(write)
    equal(os.read(read, 100), b"begin\n")
    os.close(read)
    equal(log.wait(PATIENCE), 0)
    q.run("wait", "1", "--timeout", "0.05", status=5)
    with open(q.path("gate"), "w"):
        pass
    q.run("wait", "1.1", status=3)
    q.submit(q.write("many", "".join(f"test {i} != 3\n" for i in range(1, 71))), "--hold")
    ids = ",".join(f"2.{i}-{i + 1}" for i in range(1, 70))  # more than a connection may have
    q.run("wait", ids, "--timeout", "1", status=5)
    q.run("release", "2")
    q.run("wait", ids, status=3)


def run_verb(q):
    """run has the command's own status, and the last line of standard error tells it."""
    q.agent()
    equal(q.run("run", "--status-file", "status", "--", "sh", "-c", "echo said; exit 7", status=7),
          "said\n")
    equal(q.path("status").read_text(), "7\n")
    assert "error 7" in q.err.splitlines()[-1], q.err
    q.run("run", "--", "sh", "-c", "kill -9 $$", status=128 + 9)
    q.run("run", "--", "true")
    q.run("run", "--key", "k", "--", "sh", "-c", "exit 3", status=3)
    q.run("run", q.write("two", "true\nexit 2\n"), status=3)
    os.mkfifo(q.path("gate"))
    child = q.start("run", "--", "sh", "-c", "echo begin; cat gate")
    equal(child.stdout.readline(), b"begin\n")
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=PATIENCE)
    equal((child.returncode, b"log -f 6.1" in err), (130, True))
    equal(q.states("6"), ["running"])
    open_gate_of(q)
    q.run("wait", "6")
    child = q.start("run", "--attached", "--", "sh", "-c", "echo begin; cat gate")
    equal(child.stdout.readline(), b"begin\n")
    child.kill()
    q.run("wait", "7", status=3)
    equal(q.states("7"), ["cancelled"])
    child = q.start("run", "--attached", "--", "sh", "-c", "echo begin; cat gate")
    equal(child.stdout.readline(), b"begin\n")
    child.send_signal(signal.SIGINT)
    equal((child.wait(PATIENCE), child.stderr.read()),
          (130, b"gpudispatch: the tasks are cancelled\n"))
    q.run("wait", "8", status=3)
    equal(q.states("8"), ["cancelled"])
    q.run("run", "--timeout", "0.05", "--", "sh", "-c", "cat gate", status=5)
    equal(q.json("cancel", "9")[0]["running"], 1)
    child = q.start("run", "--timeout", "1", "--", "sh", "-c", "echo begin; cat gate")
    equal(child.stdout.readline(), b"begin\n")
    q.kill()
    equal(child.wait(PATIENCE), 5)
    q.run("agent", "status", status=4)  # the time was over before another agent was started


def ends(q):
    """Reasons of failures, the end by --max-fails, and the command that runs what is not ok."""
    q.agent()
    q.write("l.txt", "exit 3\nkill -9 $$\nsleep 1000\n"
            "printf 'CUDA out of memory \\033[31m'; exit 1 # " + "x" * 60 + "\n")
    q.submit("--limit", "2", "l.txt")
    said = q.run("wait", "1", status=3)
    for part in ["1.1  error 3  exit 3\n", "1.2  crashed, signal 9  kill -9 $$\n",
                 "1.3  timeout: exceeded its time limit of 2.000 s (limit of the task)  sleep",
                 "1.4  error 1: a GPU was out of memory  printf", "xx...\n",
                 r"last line: CUDA out of memory \x1b[31m", "again: gpudispatch retry 1 --failed"]:
        assert part in said, f"no {part}: {said}"
    assert "again: gpudispatch retry 1 --failed" in said and "\x1b" not in said, said
    equal([line.split("\t")[2].split(":")[0] for line in q.run("results", "1").splitlines()],
          ["exited with status 3", "killed by signal 9 (SIGKILL)",
           "exceeded its time limit of 2.000 s (limit of the task)", "exited with status 1"])
    equal(q.json("results", "1.1")[0]["reason"], "exited with status 3")
    said = q.run("show", "1.2-3")
    assert ": crashed, started" in said and ": timeout, started" in said, said
    q.run("run", "--no-check", "--cwd", "/nosuch", "--retries", "1:timeout,crash", "--", "true",
          status=127)
    assert "2.1: error 127: not executed: cwd: No such file" in q.err.splitlines()[-1], q.err
    assert "retries       1 timeout, 1 crash\n" in q.run("show", "2.1")

    q.submit("--max-fails", "1", "--at-once", "1", q.write("n.txt", "false\n" * 2 + "true # 3\n"),
             "--fresh")
    said = q.run("wait", "3", status=3)
    assert "stopped after 2 failures (--max-fails 1): 1 task was cancelled" in said, said
    assert "again: gpudispatch retry 3\n" in said, said
    assert "batch 3 had too many failures" in q.run("show", "3.3")
    assert "3.3\tcancelled\tbatch 3 had too many failures\n" in q.run("results", "3")
    q.submit("--max-fails", "40%", "--at-once", "1", q.write("p.txt", "false\ntrue\n"))
    assert "(--max-fails 40%)" in q.run("wait", "4", status=3)
    assert "max fails     40%\n" in q.run("show", "4")

    q.submit("--after", "3", "--array", "1-5", "--", "echo", "{}")
    said = q.run("wait", "5", status=3)
    assert "  5.1 and 4 more  skipped: 3 did not end as --after requires\n" in said, said
    for verb in ("explain", "show", "results"):
        assert "3 did not end as --after requires" in q.run(verb, "5.1"), verb
    q.run("run", "--after", "3", "--", "true", status=3)
    assert "6.1: skipped: 3 did not end as" in q.err, q.err
    q.run("log", "5.1")
    assert "5.1 has no output: it is skipped" in q.err, q.err


def waits_are_said(q):
    """run tells why it waits; ls how many batches it leaves out; show where the outputs are."""
    q.agent()
    q.run("pause", "--reason", "dinner")
    q.run("run", "--timeout", "3", "--", "sh", "-c", "touch $GPUDISPATCH_OUT/x", status=5)
    equal(q.err.splitlines(),
          ["gpudispatch: 1.1 waits: paused: dinner",
           "gpudispatch: the time of --timeout 3 is over; the tasks go on, and gpudispatch log -f "
           "1.1 follows them again"])
    q.run("wait", "1", "--timeout", "0.1", status=5)
    equal(q.err, "gpudispatch: the time of --timeout 0.1 is over; the tasks go on\n")
    q.run("resume")
    q.run("wait", "1")
    (row,) = q.json("show", "1.1")
    equal(row["out"], f"{q.state}/out/1.1")
    assert f"outputs       {q.state}/out/1.1\n" in q.run("show", "1.1")
    for _ in range(2):
        q.run("run", "--", "true")
    equal(q.run("ls", "--last", "1").splitlines()[-1],
          "2 older batches are not shown; --all shows all")
    equal(len(q.run("ls").splitlines()), 4)
    assert ", 0 tasks run; state" in q.run("agent", "status")


def interrupts(q):
    """SIGINT ends run at any instant, also while it reads what a command writes."""
    q.agent()
    for i in range(20):
        child = q.start("run", "--attached", "--", "sh", "-c", "while echo x; do :; done",
                        stdout=subprocess.DEVNULL)
        log = q.state / f"logs/{i + 1}.1.1"
        until(lambda: log.exists() and log.stat().st_size > 0, "output")
        child.send_signal(signal.SIGINT)
        equal(child.wait(PATIENCE), 130)


def why(q):
    q.agent()
    batch = hold_gpus(q, 8)
    until(lambda: len(began(q)) == 8, "8 commands")
    q.submit("--gpus", "2", "--name", "wide", "--batch", "true", "--", "true")
    q.submit("--after", "true.1", "--batch", "behind", "--", "true")
    q.submit("--begin", "+2h", "--", "true")
    q.submit("--hold", "--", "true")
    equal([r["ok"] for r in q.json("drain", "4", "--reason", "ECC")], [True])
    q.run("drain", "4")  # its reason stays
    assert "gpudispatch resume --class command ends it" in q.run("pause", "--class", "command")
    q.run("resume", "--class", "command")
    (reply,) = q.json("explain", "2.1")
    equal((reply["task"]["state"], reply["place"], reply["ready"]), ("ready", 1, 1))
    assert reply["reasons"] and all(r["text"] for r in reply["reasons"]), reply
    said = q.run("explain", "2")
    assert "wide" in said and "place 1 of 1" in said, said
    (reply,) = q.json("explain", "3.1")
    equal([(a["id"], a["when"]) for a in reply["after"]], [("2.1", "ok")])
    equal([q.json("explain", f"{b}.1")[0]["task"]["holds"] for b in (4, 5)], [["time"], ["user"]])
    q.run("pause", "--reason", "dinner")
    (reply,) = q.json("explain", "2.1")
    equal([p["reason"] for p in reply["pauses"]], ["dinner"])
    q.kill()
    q.agent()
    (status,) = q.json("agent", "status")
    equal(sorted((m["kind"], m["reason"]) for m in status["marks"]),
          [("drain", "ECC"), ("pause", "dinner")])
    equal(q.json("resume")[0]["was_paused"], True)
    equal(q.json("undrain", "4")[0]["was_drained"], True)
    for i in range(8):
        open_gate(q, i + 1)
    q.run("wait", batch, "2,3")
    equal(began(q)[8:], [])


def why_limits(q):
    """A limit is the latest end, and --at-once is named."""
    q.devices = "fake:1"
    q.agent()
    hold_gpus(q, 1, "--limit", "1h")
    until(lambda: len(began(q)) == 1, "a command")
    q.submit("--", "true")
    said = q.run("explain", "2.1")
    assert "busy with 1.1, until " in said and " at the latest" in said, said
    equal([r.get("limit") for r in q.json("explain", "2.1")[0]["reasons"]], [True])
    q.submit("--array", "1-3", "--at-once", "2", "--", "echo", "{}")
    said = q.run("explain", "3.3")
    assert "the batch has its 2 tasks at once (--at-once 2)" in said, said
    open_gate(q, 1)
    q.run("wait", "1,2,3")


def again(q):
    """After a retry, wait counts from its first attempt."""
    q.agent()
    q.submit("--", "sh", "-c", "test -e flag")
    q.run("wait", "1", status=3)
    q.run("agent", "stop")
    with contextlib.closing(sqlite3.connect(q.state / "queue.db")) as file, file:
        file.execute("UPDATE batch SET made = made - ?", (10**9 * 3600,))  # an hour ago
    q.write("flag", "")
    q.run("agent", "start")
    q.run("retry", "1", "--failed")
    said = q.run("wait", "1").splitlines()[0]
    assert re.search(r": 1 ok, \d+ (ms|s) after the retry$", said), said
    for line in q.table("ls")[1:]:
        assert re.search(r" \d+ (s|min|h) ", line) and " ms " not in line, line


if __name__ == "__main__":
    sys.exit(run("queue-evening-waits", [
        *map(and_back, (look, ends, again)), follow_ends, run_verb, waits_are_said, interrupts, why,
        why_limits], Queue))
