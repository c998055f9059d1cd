# SPDX-License-Identifier: MIT
"""fsck: checks of a state directory whose agent was killed or stopped, and their repairs.

    python3 fsck.py BUILD [CASE...]
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys

sys.dont_write_bytecode = True
from agent import until, words  # noqa: E402
from cases import equal, read_only, run  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]


def fsck(agent, *options, before=()):
    """Returns its exit status, its lines, and its stderr."""
    done = subprocess.run([*before, agent.program, "--fsck", "--state-dir", agent.state, *options],
                          env=agent.environment, capture_output=True, text=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def findings(agent, *options):
    """Returns the exit status, and the findings as (number, place, repaired)."""
    status, lines, stderr = fsck(agent, "--json", *options)
    equal(stderr, "")
    rows = [json.loads(line) for line in lines]
    summary = rows.pop()
    equal(summary["findings"], len(rows))
    equal(summary["left"], sum(not r["repaired"] for r in rows))
    return status, [(r["finding"], r["place"], r["repaired"]) for r in rows]


def tree(top):
    """Names, kinds and bytes of all files."""
    return {str(p): p.read_bytes() if p.is_file() else p.lstat().st_mode
            for p in sorted(pathlib.Path(top).rglob("*"))}


def worked(agent):
    """A stopped agent, two successes with outputs, and a failure."""
    c = agent.start().client()
    c.submit(["echo one > $GPUDISPATCH_OUT/x", "echo two > $GPUDISPATCH_OUT/x", "exit 3"])
    c.ask("wait", batch="1")
    equal(c.outcomes(1), ["ok", "ok", "error"])
    equal(agent.stop(), 0)
    return pathlib.Path(agent.state)


def killed_while_commands_run(agent):
    """Records, outputs and logs of running commands are no findings, and the next agent adopts."""
    c = agent.start().client()
    c.submit(["echo begun; exec sleep 600"] * 3 + ["exit 0"])
    c.submit(["true"], batch="waits", after=[{"id": "1", "when": "ended"}])
    state = pathlib.Path(agent.state)
    until(lambda: len([p for p in (state / "logs").glob("*") if p.read_text()]) == 3, "3 begun")
    until(lambda: len(c.ask("tasks", batch="1", states=["done"])["tasks"]) == 1, "one has ended")
    agent.kill()
    beside = state / f"run/{sorted(p.name for p in (state / 'run').iterdir())[0]}.stamp"
    beside.write_text("of a running command")
    equal(findings(agent), (0, []))
    equal(fsck(agent), (0, [f"{agent.state}: nothing found"], ""))
    equal(findings(agent, "--repair"), (0, []))
    assert beside.exists()
    c = agent.start().client()
    equal(len(c.ask("tasks", batch="1", states=["running"])["tasks"]), 3)
    equal([t["attempt"] for t in c.tasks(1)], [1, 1, 1, 1])
    c.ask("cancel", batch="1")
    c.ask("wait", batch="2")
    equal(c.outcomes(1), ["cancelled"] * 3 + ["ok"])
    equal(c.outcomes(2), ["ok"])


def an_agent_runs(agent):
    agent.start()
    status, lines, stderr = fsck(agent, "--repair")
    equal((status, lines), (75, []))
    assert "`gpudispatch agent stop` ends it and leaves its commands running" in stderr, stderr
    equal(json.loads(fsck(agent, "--json")[1][0])["error"], "EBUSY")


def nothing_there(agent):
    for repair in [], ["--repair"]:
        status, _, stderr = fsck(agent, *repair)
        equal(status, 4)
        assert "not there" in stderr, stderr
    os.mkdir(agent.state, 0o700)
    status, _, stderr = fsck(agent, "--repair")
    equal(status, 4)
    assert "queue.db: there is none" in stderr, stderr
    os.chmod(agent.state, 0o755)
    equal(fsck(agent)[0], 75)
    for wrong in ["--repair"], ["--json"], ["--fsck", "more"]:
        equal(subprocess.run([agent.program, *wrong], capture_output=True, check=False,
                             env=agent.environment).returncode, 2)


def leftovers(agent):
    """Files without rows go, and outputs of a success are published: once, by a repair."""
    state = worked(agent)
    equal(findings(agent), (0, []))
    for directory in "work/1.3.1", "work/1.1.old", "work/other", "out/9.9", "results/9":
        (state / directory).mkdir(0o700)
    for file in ("work/1.3.1/x", "out/9.9/x", "logs/9.9.1", "logs/1.1.7", "logs/notes", "run/9.9.1",
                 "results/9/9.1", "results/9/9.1.tmp", "results/9/notes"):
        (state / file).write_text("left")
    (state / "out/1.2").rename(state / "work/1.2.1")
    (state / "reserve").unlink()
    wanted = [("F21", "run/9.9.1"), ("F24", "logs/1.1.7"), ("F24", "logs/9.9.1"),
              ("F23", "work/1.1.old"), ("F23", "work/1.2.1"), ("F23", "work/1.3.1"),
              ("F23", "out/9.9"), ("F22", "results/9/9.1"), ("F22", "results/9/9.1.tmp"),
              ("F25", "reserve")]
    before = tree(state)
    status, found = findings(agent)
    equal((status, sorted(found)), (3, sorted((*w, False) for w in wanted)))
    equal(tree(state), before)
    status, found = findings(agent, "--repair")
    equal((status, sorted(found)), (0, sorted((*w, True) for w in wanted)))
    equal(findings(agent), (0, []))
    equal((state / "out/1.2/x").read_text(), "two\n")
    equal((state / "out/1.1/x").read_text(), "one\n")
    for kept in "work/other", "logs/notes", "results/9/notes", "logs/1.3.1":
        assert (state / kept).exists(), kept
    c = agent.start().client()
    c.submit(["exit 0"])
    c.ask("wait", batch="2")


def a_runner_without_a_task(agent):
    """The record of a runner that lives is left alone, and so is the file beside it."""
    state = worked(agent)
    record, beside, other = (state / "run" / name for name in ("1.1.5", "1.1.5.sh", "notes"))
    beside.write_text("sleep 600")
    other.write_text("of no attempt")
    with open(record, "w") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        both = [("F21", "run/1.1.5", False), ("F21", "run/1.1.5.sh", False)]
        equal(sorted(findings(agent)[1]), [*both, ("F21", "run/notes", False)])
        status, found = findings(agent, "--repair")
        equal((status, sorted(found)), (3, [*both, ("F21", "run/notes", False)]))
        assert record.exists() and beside.exists()
    equal(sorted(findings(agent, "--repair")[1]),
          [("F21", "run/1.1.5", True), ("F21", "run/1.1.5.sh", True), ("F21", "run/notes", True)])
    assert not record.exists() and not beside.exists()


def a_runner_without_an_attempt(agent):
    """A command whose attempt the store has lost is not started beside itself."""
    c = agent.start().client()
    c.submit(["echo begun >> $GPUDISPATCH_OUT/../../begun; exec sleep 600"])
    begun = pathlib.Path(agent.state, "begun")
    until(lambda: words(begun), "it has begun")
    agent.kill()
    with contextlib.closing(sqlite3.connect(f"{agent.state}/queue.db", isolation_level=None)) as db:
        db.execute("DELETE FROM attempt")
    lost = [("F5", "task 1.1", False), ("F21", "run/1.1.1", False)]
    status, found = findings(agent, "--repair")
    equal(status, 3)
    assert set(lost) <= set(found) and not any(f[2] for f in found), found
    for pid in agent.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: findings(agent, "--repair")[0] == 0, "repaired after its end")
    agent.start()
    until(lambda: len(words(begun)) == 2, "it runs again")
    agent.client().ask("cancel", batch="1")
    agent.client().ask("wait", batch="1")


def folders(agent):
    """A missing folder is made, a mode is corrected, and a link stays."""
    state = worked(agent)
    os.rmdir(state / "run")
    os.chmod(state / "logs", 0o755)
    wanted = [("F20", "run/"), ("F20", "logs/")]
    equal(findings(agent), (3, [(*w, False) for w in wanted]))
    equal(findings(agent, "--repair"), (0, [(*w, True) for w in wanted]))
    equal(findings(agent), (0, []))
    equal((state / "logs").stat().st_mode & 0o7777, 0o700)
    (state / "run").rename(state / "elsewhere")
    (state / "run").symlink_to("elsewhere")
    equal(findings(agent, "--repair"), (3, [("F20", "run/", False)]))
    assert "check again for the files in them" in fsck(agent)[1][-1]


def files_of_results(agent):
    """The file of a result is there with its size."""
    state = worked(agent)
    with contextlib.closing(sqlite3.connect(state / "queue.db", isolation_level=None)) as db:
        db.execute("INSERT INTO result VALUES((1 << 32) + 1, 1, 5, NULL, '1/1.1')")
        db.execute("INSERT INTO result VALUES((1 << 32) + 2, 1, 5, NULL, '../lock')")
    (state / "results/1").mkdir(0o700)
    other = ("F22", "task 1.2", False)
    equal(findings(agent, "--repair"), (3, [("F22", "task 1.1", False), other]))
    (state / "results/1").mkdir(0o700, exist_ok=True)
    (state / "results/1/1.1").write_text("abc")
    equal(findings(agent, "--repair"), (3, [("F22", "task 1.1", False), other]))
    (state / "results/1/1.1").write_text("abcde")
    equal(findings(agent, "--repair"), (3, [other]))
    equal((state / "results/1/1.1").read_text(), "abcde")


def counts(agent):
    """Faults of the store are repaired, and the next agent goes on."""
    state = worked(agent)
    with contextlib.closing(sqlite3.connect(state / "queue.db", isolation_level=None)) as db:
        db.execute("UPDATE batch SET ready = 7, done = 0, success = 9")
        db.execute("UPDATE task SET state = 2, outcome = 0, ended = 0 WHERE id = (1 << 32) + 3")
    equal(findings(agent)[0], 3)
    status, found = findings(agent, "--repair")
    equal(status, 0)
    assert {"F11", "F14", "F15"} <= {f[0] for f in found}, found
    assert fsck(agent)[1] == [f"{agent.state}: nothing found"]
    c = agent.start().client()
    c.ask("wait", batch="1")
    equal(c.outcomes(1), ["ok", "ok", "error"])
    equal([t["attempt"] for t in c.tasks(1)], [1, 1, 2])


def cannot_be_written(agent):
    """A directory that cannot be written is checked, and a repair is refused before it begins."""
    state = worked(agent)
    with contextlib.closing(sqlite3.connect(state / "queue.db", isolation_level=None)) as db:
        db.execute("UPDATE batch SET ready = 7")
    before = read_only(agent.state)
    status, lines, stderr = fsck(agent, before=before)
    equal((status, stderr, lines[0][:3]), (3, "", "F14"))
    status, lines, stderr = fsck(agent, "--repair", before=before)
    equal((status, lines), (75, []))
    assert "cannot be written: Read-only file system; check it without --repair" in stderr, stderr


def purged(agent):
    """A purge takes outputs, logs and results of its tasks along."""
    state = worked(agent)
    with contextlib.closing(sqlite3.connect(state / "queue.db", isolation_level=None)) as db:
        db.execute("INSERT INTO result VALUES((1 << 32) + 1, 1, 4, NULL, '1/1.1')")
    (state / "results/1").mkdir(0o700)
    (state / "results/1/1.1").write_text("text")
    c = agent.start().client()
    equal(c.ask("purge", before=2**62, keep_failed=True)["count"], 2)
    until(lambda: not (state / "results/1/1.1").exists(), "the result is gone")
    until(lambda: not list((state / "out").iterdir()), "the outputs are gone")
    until(lambda: len(list((state / "logs").iterdir())) == 1, "the log of the failure stays")
    equal(agent.stop(), 0)
    equal(findings(agent), (0, []))


def stop(agent):
    """As `agent stop` does it."""
    agent.client().ask("stop")
    equal(agent.process.wait(60), 0)


def purged_before_the_end(agent):
    """`agent stop` removes the files of all purged tasks first.  SIGTERM waits for a second, and
    the next agent removes the files that it, or a killed agent, has left."""
    for batch, end in enumerate((stop, type(agent).stop, type(agent).kill), 1):
        agent.start()
        c = agent.client()
        c.submit(["echo one > $GPUDISPATCH_OUT/x; echo said"] * 100)
        c.ask("wait", batch=str(batch))
        equal(c.ask("purge", before=2**62)["count"], 100)
        end(agent)
        rest = findings(agent)[1]
        assert not rest or (end != stop and {f for f, _, _ in rest} <= {"F23", "F24"}), rest
        if end == type(agent).stop:
            equal(bool(rest), "purged tasks are left" in agent.said())
        agent.start()
        stop(agent)
        equal(findings(agent), (0, []))


def damaged(agent):
    """A damaged file keeps each byte, and the way out is named."""
    state = worked(agent)
    with contextlib.closing(sqlite3.connect(state / "queue.db")) as db:
        roots = db.execute("SELECT rootpage FROM sqlite_schema WHERE tbl_name = 'task'").fetchall()
    data = bytearray((state / "queue.db").read_bytes())
    for (root,) in roots:
        data[4096 * (root - 1):4096 * (root - 1) + 40] = b"\xff" * 40
    (state / "queue.db").write_bytes(data)
    for repair in [], ["--repair"]:
        status, lines, stderr = fsck(agent, *repair)
        equal(status, 75)
        text = "\n".join(lines)
        assert text.startswith("F1 damage: queue.db: "), text
        assert re.search(r"F1 damage: table task: \d+ rows can be read", text), text
        assert ".recover | sqlite3 NEW.db" in stderr, stderr
        equal((state / "queue.db").read_bytes(), bytes(data))
    shutil.copy(agent.program, state / "queue.db")
    equal(fsck(agent, "--repair")[0], 75)


def page(agent):
    """Each finding is on the page."""
    del agent
    header = (ROOT / "queue/findings.h").read_text()
    known = re.findall(r"X\(\w+, (\d+), \"(\w+)\"\)", header)
    rows = re.findall(r"^\| F(\d+) (\w+) \|", (ROOT / "docs/reference/fsck.md").read_text(), re.M)
    equal(rows, known)


CASES = [killed_while_commands_run, an_agent_runs, nothing_there, leftovers,
         a_runner_without_a_task, a_runner_without_an_attempt, folders, files_of_results, counts,
         cannot_be_written, purged, purged_before_the_end, damaged, page]

if __name__ == "__main__":
    sys.exit(run("queue-fsck", CASES))
