#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Six evenings with gpudispatch: the commands of a night, with the real programs on fake GPUs.

usage: evenings.py BUILD_DIRECTORY [CASE...]
"""
import collections
import contextlib
import csv
import functools
import io
import json
import os
import pathlib
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from cli import PATIENCE, Queue, Skip, equal, run, until  # noqa: E402

# Takes its GPUs, each of which no other command may have now, and leaves them.
ALONE = "IFS=,; for g in $GPUDISPATCH_GPUS; do mkdir held-$g || exit 99; done"
LEAVE = "for g in $GPUDISPATCH_GPUS; do rmdir held-$g; done"

SLOW = os.environ.get("T_EFFORT") == "slow"


def line(number, then=""):
    """Of a jobs file: notes that it ran, and on which GPU."""
    return (f"{ALONE}; echo {number} >> ran; echo $GPUDISPATCH_GPUS >> gpus; {LEAVE}; "
            f"{then or 'true'}")


def hold_gpus(q, n, *options):
    """A batch of n commands, each on its GPU until the test writes to its file gate-N.  Returns
    its id once all of them run."""
    for i in range(1, n + 1):
        if not q.path(f"gate-{i}").exists():
            os.mkfifo(q.path(f"gate-{i}"))
    q.write("hold.sh", "echo $GPUDISPATCH_TASK $GPUDISPATCH_ATTEMPT $GPUDISPATCH_GPUS >> began\n"
                       "cat gate-$1\n")
    batch = q.submit(*options, "--array", f"1-{n}", "--batch", "hold", "--", "sh", "hold.sh",
                     "{}")["batch"]
    return batch


def began(q):
    """(task, attempt, GPU) of each start."""
    words = q.words("began")
    return list(zip(words[::3], words[1::3], words[2::3]))


def open_gate(q, n):
    with open(q.path(f"gate-{n}"), "w"):
        pass


# ---- 1. 500 shell commands ----

def five_hundred(q):
    """A rerun of an edited file runs only the new and the failed lines."""
    q.agent()
    lines = [line(i) for i in range(1, 501)]
    lines[43] = line(44, "exit 1")
    lines[99] = line(100, "test -e mended")
    lines[199] = line(200, "test -e mended || kill -9 $$")
    lines[10:10] = ["# a comment", "", "#another"]
    q.write("night.txt", "\n".join(lines) + "\n")
    args = ("night.txt", "--retries", "2:crash,timeout", "--limit", "30m", "--max-fails", "10%")
    said = q.run("submit", *args, "--dry-run")
    assert "500" in said, said
    first = q.submit(*args)
    equal([first[k] for k in ("batch", "added", "joined", "again", "changed")],
          ["1", 500, 0, 0, 0])
    said = q.run("wait", "1", status=3)
    assert "1.44" in said and "retry 1 --failed" in said, said
    equal(q.batch("1")["outcomes"], {"ok": 497, "error": 2, "crashed": 1})
    ran = collections.Counter(q.words("ran"))
    equal(ran, {**{str(i): 1 for i in range(1, 501)}, "200": 3})
    equal(sorted(set(q.words("gpus"))), [f"fake:{i}" for i in range(8)])
    equal([row["task"] for row in q.json("ls", "1", "--state", "failed")],
          ["1.44", "1.100", "1.200"])

    lines[46] = line("44b")
    q.write("night.txt", "\n".join(lines + [line(i) for i in (501, 502, 503)]))
    q.write("mended", "")
    second = q.submit(*args)
    equal([second[k] for k in ("batch", "added", "joined", "again", "changed")],
          ["2", 4, 497, 2, 0])
    q.run("wait", "night")
    again = collections.Counter(q.words("ran")) - ran
    equal(again, dict.fromkeys(("44b", "100", "200", "501", "502", "503"), 1))
    third = q.submit(*args)
    equal([third[k] for k in ("added", "joined", "again", "changed")], [0, 503, 0, 0])
    q.run("wait", third["batch"])
    equal(collections.Counter(q.words("ran")) - ran, again)
    fresh = q.submit(*args, "--fresh", "--hold")
    equal(fresh["added"], 503)
    (ended,) = q.json("cancel", fresh["batch"])
    equal(ended["ended"], 503)
    for args in (("ls",), ("ls", "1"), ("ls", "--all")):
        q.table(*args)


def named_again(q):
    """The name of a list means all its tasks, also those that the last submit has joined."""
    q.agent()
    q.run("pause")
    q.write("list.txt", "test -e mended; true a\ntest -e mended\n")
    equal(q.submit("list.txt")["added"], 2)
    equal(q.submit("list.txt")["joined"], 2)
    q.run("hold", "list")
    equal(len(q.json("ls", "list", "--state", "held")), 2)
    q.run("release", "list")
    equal(q.json("set", "list", "--priority", "3")[0]["count"], 2)
    equal(q.json("show", "list.2")[0]["task"], "1.2")
    q.run("show", "list.3", status=4)
    assert "there is no task 3 of a batch named \"list\"" in q.err, q.err
    q.run("resume")
    assert "retry 2 --failed" in q.run("wait", "list", status=3)
    q.write("mended", "")
    q.run("retry", "2", "--failed")
    q.run("wait", "list")
    q.run("pause")
    q.write("more.txt", "true 1\n")
    q.submit("more.txt")
    q.submit("more.txt")
    equal(q.json("cancel", "more")[0]["ended"], 1)


def changed_files(q):
    """Q6: a line whose file has changed since its success runs again, and the reply names it."""
    q.agent()
    q.write("job.sh", "echo $1 >> ran")
    q.write("list.txt", "sh job.sh a\nsh job.sh b\n")
    q.run("run", "list.txt")
    equal(q.submit("list.txt")["joined"], 2)
    q.write("job.sh", "echo $1 $1 >> ran")
    reply = q.submit("list.txt", "--dry-run")
    equal((reply["changed"], reply["placed"][1]["file"]), (2, "job.sh"))
    equal(q.submit("list.txt", "--join-anyway")["joined"], 2)
    q.write("list.txt", "sh job.sh a\nsh job.sh b\n" + "sh job.sh c\n" * 2)
    said = q.run("submit", "list.txt")
    assert "line 2: job.sh" in said and "more" not in said, said
    assert ": 1 task added, 1 joined, 2 changed and new; see: gpudispatch wait " in said, said
    q.run("wait", "list")
    equal(sorted(q.words("ran")), ["a"] * 3 + ["b"] * 3 + ["c"] * 2)
    for i in range(5):
        q.write(f"{i}.in", "")
    q.write("many.txt", "".join(f"cat {i}.in\n" for i in range(5)))
    q.run("run", "many.txt")
    for i in range(5):
        q.write(f"{i}.in", "x")
    said = q.run("submit", "many.txt").splitlines()
    equal([line.split(" has")[0] for line in said[1:]],
          ["  line 1: 0.in", "  line 2: 1.in", "  line 3: 2.in", "  and 2 more"])
    q.run("wait", "many")
    equal(q.submit("--", "sh", "job.sh", "c")["added"], 1)
    equal(q.submit("--", "sh", "job.sh", "c")["added"], 1)  # a single command is always new
    equal(q.submit("--key", "c", "--", "sh", "job.sh", "c")["added"], 1)
    q.run("wait", "sh")
    equal(q.submit("--key", "c", "--", "sh", "job.sh", "c")["joined"], 1)
    q.run("submit", "--key", "c", "--", "sh", "job.sh", "d", status=6)


def dry_run(q):
    """Each task with its line, its command, and what would happen."""
    q.agent()
    q.write("job.sh", "true\n")
    q.write("x.txt", "sh job.sh a\n\nfalse {gpu}\ntrue | cat\n")
    q.run("run", "x.txt", status=3)
    q.write("job.sh", "true \n")
    q.write("x.txt", "sh job.sh a\n\nfalse {gpu}\ntrue | cat\ntrue new\n")
    *tasks, counts, changed = q.run("submit", "--dry-run", "x.txt").splitlines()
    equal([line.split() for line in tasks],
          [["line", "1:", "changed", "sh", "job.sh", "a"],
           ["line", "3:", "again", "1.2", "false", "{gpu}"],
           ["line", "4:", "joined", "1.3", "true", "|", "cat"],
           ["line", "5:", "added", "true", "new"]])
    assert counts.startswith("nothing is submitted; it would be: 1 task added, 1 joined, "), counts
    assert "line 1: job.sh has changed" in changed, changed
    placed = q.submit("--dry-run", "x.txt")["placed"]
    equal([(p["line"], p["how"], p.get("task"), p["argv"][-1]) for p in placed],
          [(1, "changed", None, "sh job.sh a"), (3, "again", "1.2", "false {gpu}"),
           (4, "joined", "1.3", "true | cat"), (5, "added", None, "true new")])
    q.write("s.csv", 'lr,seed\n3e-4,1\n3e-4,"2 3"\n')
    said = q.run("submit", "--dry-run", "--each", "s.csv", "--name", "s{seed}", "--", "sh", "-c",
                 "train {lr} {seed}\n", "{gpus}")
    equal(said.splitlines()[:2],
          [r"line 2: added         s1: sh -c 'train 3e-4 1\n' '{gpus}'",
           r"line 3: added         s2 3: sh -c 'train 3e-4 2 3\n' '{gpus}'"])
    said = q.run("submit", "--dry-run", "--array", "1-2", "--", "echo", "{}")
    equal(said.splitlines()[:2], ["added         echo 1", "added         echo 2"])
    equal([row["batch"] for row in q.json("ls")], ["1"])


# ---- 2. A sweep, 2 GPUs each ----

def sweep(q):
    q.agent()
    rows = [(lr, seed) for lr in ("3e-4", "1e-3") for seed in range(12)]
    q.write("sweep.csv", "lr,seed,limit\n"
            + "".join(f'{lr},"{seed}",\n' for lr, seed in rows) + "9,9,0.2\n")
    q.write("train.sh", 'set -e; test "$GPUDISPATCH_PORT" = "$2" && test $GPUDISPATCH_OUT = "$5"\n'
                        f"{ALONE}; mkdir port-$2; test $3 != 9 || sleep 1000\n"
                        "echo $1 $3 $4 \"$6\" > $5/result; "
                        f"rmdir port-$2; {LEAVE}\n")
    args = ("--gpus", "2", "--name", "lr{lr}-s{seed}", "--each", "sweep.csv", "--", "sh",
            "train.sh", "{gpus}", "{port}", "{lr}", "{seed}", "{out}", "{gpu}")
    reply = q.submit(*args)
    equal((reply["batch"], reply["added"]), ("1", 25))
    said = q.run("show", "sweep.1")
    assert "2 GPUs\n" in said, said
    q.run("wait", "1", status=3)
    tasks = q.json("ls", "1")
    equal([t["name"] for t in tasks][:3], ["lr3e-4-s0", "lr3e-4-s1", "lr3e-4-s2"])
    equal([t["outcome"] for t in tasks], ["ok"] * 24 + ["timeout"])
    for (lr, seed), row in zip(rows, q.json("results", "1", "--state", "ok")):
        gpus, *rest, gpu = pathlib.Path(row["out"], "result").read_text().split()
        equal((gpus, *rest), ("2", lr, str(seed)))
        equal(len(set(gpu.split(","))), 2)
    equal(q.submit(*args)["joined"], 24)
    q.table("ls")
    q.table("ls", "sweep")
    q.run("submit", "--gpus", "9", "--", "true", status=6)
    assert "9" in q.err and "8" in q.err and "--allow-wait" in q.err, q.err
    q.run("submit", "--gpus", "9", "--allow-wait", "--", "true")


# ---- 3. 10,000 files to a loaded model ----

def loaded_model(q):
    """One worker per GPU takes the files of a class, and the agent starts with the first submit."""
    plugin = pathlib.Path(q.build, "tests/queue/queue_worker.so").resolve()
    config = q.directory / "config"
    config.write_text(f"devices = fake:8\n[class model]\nplugin = {plugin}\n"
                      f"definition = work\nsetup = {q.directory}\n")
    files = [f"{i}.wav" for i in range(10000)]
    for name in files:
        q.write(name, "")
    args = ("--config", config, "--class", "model", "--files", "-", "--batch", "rec-11")
    stdin = "".join(f"{name}\n" for name in files).encode()
    equal(q.submit(*args, stdin=stdin)["added"], 10000)
    q.run("wait", "rec-11")
    results = q.json("results", "rec-11")
    equal([pathlib.Path(r["text"]).name for r in results], files)
    setups = (q.directory / "setups").read_text().split()
    assert 1 <= len(setups) <= 8, setups
    equal(q.submit(*args, stdin=stdin)["joined"], 10000)
    q.write("7.wav", "changed")
    reply = q.submit(*args, stdin=stdin)
    equal((reply["changed"], reply["joined"]), (1, 9999))
    q.run("submit", "--class", "modell", "7.wav", status=6)
    assert "modell" in q.err, q.err
    q.table("ls", "rec-11")


# ---- 4. What is going on ----

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


def open_gate_of(q):
    with open(q.path("gate"), "w"):
        pass


# ---- 5. Why does mine wait? ----

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


# ---- 6. A sick GPU, retries, a power cut ----

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
    assert "1: drained by a person, back" in shown and "fault" not in shown, shown
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


def watch_file(q):
    """submit --watch takes the lines that come, and ends the batch with SIGINT."""
    q.agent()
    q.write("grow.txt", "echo 1 >> ran\n")
    child = q.start("submit", "--watch", "grow.txt")
    until(lambda: q.words("ran") == ["1"], "the first line")
    with open(q.path("grow.txt"), "a") as f:
        f.write("echo 2 >> ran\necho 3 >>")
        f.flush()
        until(lambda: len(q.words("ran")) == 2, "a line")
        f.write(" ran; echo half")
    equal(len(q.words("ran")), 2)
    child.send_signal(signal.SIGINT)
    equal((child.wait(PATIENCE), child.stderr.read()),
          (0, b"gpudispatch: grow.txt: line 3 has no newline yet, and is not submitted\n"))
    q.run("wait", "grow")
    equal(sorted(q.words("ran")), ["1", "2"])
    reply = q.submit("grow.txt")
    equal([reply[k] for k in ("joined", "added")], [2, 1])
    child = q.start("submit", "--watch", "grow.txt")
    with open(q.path("grow.txt"), "a") as f:
        f.write("\necho 4 >> ran\n")
    until(lambda: "4" in q.words("ran"), "a line with its newline")
    child.send_signal(signal.SIGINT)
    equal((child.wait(PATIENCE), child.stderr.read()), (0, b""))


def watched_file_changes(q):
    """submit --watch ends where a file is no longer the one that grew."""
    q.agent()
    for name, change, why in (
            ("shorter", lambda path: path.write_text("rm -r x\n"), "has become shorter"),
            ("another", lambda path: q.path("new").rename(path), "was replaced or removed"),
            ("gone", lambda path: path.unlink(), "was replaced or removed")):
        q.write("new", "echo new >> ran\n")
        q.write(name, f"echo {name} >> ran; true\necho {name} >> ran\n")
        child = q.start("submit", "--watch", name)
        until(lambda name=name: q.words("ran").count(name) == 2, "both lines")
        change(q.path(name))
        err = child.communicate(timeout=PATIENCE)[1].decode()
        equal((child.returncode, why in err), (1, True))
        q.run("wait", name)
        equal(q.batch(q.json("ls", name)[0]["task"].split(".")[0])["total"], 2)


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


def line_options(q):
    """Columns set options of their lines, variables too, and options may have names of columns."""
    q.agent()
    q.write("e.csv", "a,t,env\n1,5m,X=7\n2,6m,\n")
    q.submit("--each", "e.csv", "--env", "Y={a}", "--limit", "{t}", "--name", "n{a}", "--",
             "sh", "-c", "echo $X $Y {a} >> said")
    q.run("wait", "1")
    equal(sorted(q.path("said").read_text().splitlines()), ["2 2", "7 1 1"])
    shown = q.json("show", "1.1", "1.2")
    equal([(row["name"], row["spec"]["limit"]) for row in shown],
          [("n1", 300 * 10**9), ("n2", 360 * 10**9)])
    many = [f"--env=V{i}={{}}" for i in range(65)]
    q.submit("--array", "7-7", *many, "--", "sh", "-c", "echo $V64 {} >> many")
    q.run("wait", "2")
    equal(q.words("many"), ["7", "7"])


def attached_list(q):
    """Tasks of an attached list are new ones, equal lines as well."""
    q.agent()
    q.write("l.txt", "echo a >> said\necho a >> said\n")
    for n in (2, 4):
        q.run("run", "--attached", "l.txt")
        equal(len(q.words("said")), n)
    q.run("run", "--attached", "--key", "k", "--", "true", status=2)


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


def same_options(q):
    """An agent that a verb starts has the options of the last `agent start`, from any directory."""
    q.write("config", f"devices = fake:3\nshell = /bin/{'x' * 100}\n")
    assert f"/bin/{'x' * 100}\n" in q.run("config", "--config", "config")
    q.run("agent", "start", "--config", "config")
    q.kill()
    q.run("ls")
    equal(q.json("agent", "status")[0]["devices"], 3)
    q.run("agent", "stop")
    q.run("agent", "start", "--devices", "fake:2")
    q.kill()
    q.run("ls")
    equal(q.json("agent", "status")[0]["devices"], 2)


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


def environment(q):
    """Q12: the environment is shown only to who asks for it; commands get that of the submit."""
    q.agent()
    q.environment["SECRET"] = "5ec7e7"
    q.submit("--env", "MORE=a b", "--unset", "HOME", "--", "sh", "-c",
             'echo "$SECRET $MORE ${HOME-none} $PYTHONUNBUFFERED" > env')
    q.run("wait", "1")
    equal(q.path("env").read_text(), "5ec7e7 a b none 1\n")
    for args in (("ls", "1"), ("show", "1"), ("show", "1.1"), ("results", "1"), ("explain", "1"),
                 ("wait", "1"), ("agent", "status"), ("ls",)):
        assert "5ec7e7" not in q.run(*args) + q.run(args[0], "--json", *args[1:]), args
    assert "SECRET=5ec7e7" in q.run("show", "--env", "1.1")
    assert "SECRET=5ec7e7" in q.json("show", "--env", "1.1")[0]["spec"]["environment"]
    q.submit("--clean-env", "--env", "SECRET", "--", "sh", "-c", "env > env")
    q.run("wait", "2")
    names = {row.split("=")[0] for row in q.path("env").read_text().splitlines()}
    assert "SECRET" in names and "LD_LIBRARY_PATH" not in names, names


def many_lines(q):
    """Prints how long submits of many lines take; the goal of 10,000 lines is 0.5 s."""
    q.agent()
    q.run("pause")

    def measured(what, *args):
        began = time.monotonic()
        reply = q.submit(*args)
        took = time.monotonic() - began
        print(f"   {what}: {took:.2f} s")
        return reply

    q.write("lines.txt", "".join(f"python3 a.py --x {i}\n" for i in range(10000)))
    for _ in range(3 if SLOW else 1):
        equal(measured("10,000 lines", "--fresh", "lines.txt")["added"], 10000)
    equal(measured("10,000 lines that join", "lines.txt")["joined"], 10000)
    if not SLOW:
        return
    q.write("rows.csv", "command,limit,gpus,name\n"
            + "".join(f"python3 b.py {i},{i % 1000 + 1}s,{i % 2},n{i}\n" for i in range(100000)))
    equal(measured("100,000 rows with options", "rows.csv")["added"], 100000)
    equal(measured("100,000 rows that join", "rows.csv")["joined"], 100000)
    equal(len(q.json("ls", "rows", "--state", "ready")), 100000)


# ---- The morning after ----

def recording(q):
    """Rows of `ls`, and a recording from between two equal lists of them."""
    found = []

    def unchanged():
        before = q.json("ls", "--all")
        q.run("report", "--since", "2d", "--records", "-o", "night.lines")
        found[:] = [before, q.json("ls", "--all")]
        return rows_alone(before) == rows_alone(found[1])

    until(unchanged, "the same rows twice")
    return found[0]


def rows_alone(batches):
    """Without the time left, which changes with the time."""
    return [{k: v for k, v in b.items() if not k.startswith("left_")} for b in batches]


# The report has the counts of `ls` [V3], and each bad end in each place [V4].
def look_back(q):
    batches, night = recording(q), ("--from", "night.lines")
    seen = json.loads(q.run("report", *night, "--json"))
    rows = {b["batch"]: b for b in seen["batches"]}
    for batch in batches:
        row = rows.pop(batch["batch"])
        equal((batch["batch"], row["total"], row["joined"], row["outcomes"]),
              (batch["batch"], batch["total"], batch["joined"], batch.get("outcomes", {})))
    equal(list(rows), [])
    for gpu in seen["gpus"]:  # to the ms
        span = (seen["to"] - seen["from"]) / 1e6
        assert abs(sum(gpu["gpu_ms"].values()) - span) <= 1, gpu
    bad = sum(n for outcome, n in seen["ends"].items() if outcome not in ("ok", "running"))
    found = sum(f["count"] for f in seen["findings"] if f["kind"] == "bad")
    trace = json.loads(q.run("trace", *night, "-o", "-"))["traceEvents"]
    marks = re.search(r'data-bad="(\d+)"', q.run("report", *night, "-o", "-"))
    listed = list(csv.DictReader(io.StringIO(q.run("report", *night, "--csv"))))
    equal([found, sum(e["ph"] == "i" for e in trace), int(marks[1]),
           sum(row["outcome"] not in ("ok", "running") for row in listed)], [bad] * 4)


def and_back(case):
    @functools.wraps(case)
    def both(q):
        case(q)
        look_back(q)
    return both


if __name__ == "__main__":
    sys.exit(run("queue-evenings", [
        *map(and_back, (five_hundred, sweep, loaded_model, look, nobody_restarts, ends, again,
                        sick_gpu, running, power_cut, changes, crashing_lines)),
        named_again, changed_files, dry_run, follow_ends, run_verb, waits_are_said, interrupts, why,
        why_limits, watch_file, watched_file_changes, agent_alone, line_options, attached_list,
        same_options, notified, start_again, environment, many_lines], Queue))
