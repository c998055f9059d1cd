#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Evenings with gpudispatch and the real programs on fake GPUs: files of jobs and their lines.

usage: evening_jobs.py BUILD_DIRECTORY [CASE...]
"""
import collections
import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True
from cli import PATIENCE, Queue, equal, run, until  # noqa: E402
from evening import ALONE, LEAVE, SLOW, and_back, line  # noqa: E402


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
        assert child.returncode == 1 and why in err, (child.returncode, err)
        q.run("wait", name)
        equal(q.batch(q.json("ls", name)[0]["task"].split(".")[0])["total"], 2)


if __name__ == "__main__":
    sys.exit(run("queue-evening-jobs", [
        *map(and_back, (five_hundred, sweep, loaded_model)), named_again, changed_files, dry_run,
        line_options, attached_list, same_options, environment, many_lines, watch_file,
        watched_file_changes], Queue))
