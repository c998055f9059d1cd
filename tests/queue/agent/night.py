#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What an agent does beside running commands.

usage: night.py BUILD_DIRECTORY [CASE...]
"""
import contextlib
import os
import pathlib
import sqlite3
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from agent import Client, until  # noqa: E402
from cases import equal, run  # noqa: E402


def submit(client, commands, **batch):
    """One batch of shell lines.  Returns its id."""
    spec = {"cwd": "/", "environment": [f"PATH={os.environ['PATH']}"]}
    return client.ask("submit", batch=batch, specs=[spec], tasks=[
        {"argv": ["/bin/sh", "-c", c]} for c in commands])["batch"]


def words(path):
    return path.read_text().split() if path.exists() else []


def is_quiet(agent):
    """No batch has an end that nobody was told of."""
    with contextlib.closing(sqlite3.connect(os.path.join(agent.state, "queue.db"))) as file:
        return not file.execute("SELECT 1 FROM mark WHERE kind = 'notify'").fetchall()


def saved_socket(agent):
    """The state directory names the socket, wherever XDG_RUNTIME_DIR has put it."""
    saved = pathlib.Path(agent.state, "socket-path")
    agent.start()
    equal(saved.read_text(), os.path.join(agent.state, "socket"))
    equal(agent.stop(), 0)
    equal(saved.exists(), False)
    runtime = os.path.join(agent.directory, "run")
    os.mkdir(runtime, 0o700)
    agent.environment["XDG_RUNTIME_DIR"] = runtime
    agent.start()
    path = saved.read_text()
    equal(os.path.dirname(path), os.path.join(runtime, "gpudispatch"))
    equal(Client(path).ask("status")["state"], agent.state)
    agent.kill()
    del agent.environment["XDG_RUNTIME_DIR"]
    agent.start()
    equal(saved.read_text(), os.path.join(agent.state, "socket"))


def notified(agent):
    """The end of a batch runs its command once, with the facts in its environment."""
    told = pathlib.Path(agent.directory, "told")
    agent.options = ["--notify", f"echo default $GPUDISPATCH_BATCH >> {told}"]
    agent.start()
    c = agent.client()
    tell = (f"env | grep ^GPUDISPATCH_ | sort > {told}.new; pwd >> {told}.new; echo said;"
            f" mv {told}.new {told}.1; exit 3")
    submit(c, ["true", "exit 7", "exit 8"], name="night", notify=tell)
    until(lambda: pathlib.Path(f"{told}.1").exists(), "a notification")
    equal(pathlib.Path(f"{told}.1").read_text().splitlines(),
          ["GPUDISPATCH_BAD=2", "GPUDISPATCH_BATCH=1",
           "GPUDISPATCH_FIRST_FAILURE=1.2 exited with status 7", "GPUDISPATCH_NAME=night",
           "GPUDISPATCH_OK=1", f"GPUDISPATCH_STATE={agent.state}", "GPUDISPATCH_TOTAL=3",
           agent.state])
    until(lambda: "batch 1 exited with status 3" in agent.said(), "its end in the log")
    equal(pathlib.Path(agent.state, "logs/notify-1").read_text(), "said\n")
    row = c.ask("batches")["batches"][0]
    equal((row["notify"], row.get("options")), (tell, None))
    submit(c, ["true"], notify="")
    submit(c, ["exit 1"], options={"x": 1})
    until(lambda: words(told) == ["default", "3"], "the default")
    equal(c.ask("retry", batch="3")["count"], 1)
    until(lambda: words(told) == ["default", "3"] * 2, "a second end")
    equal(c.ask("status")["marks"], [])
    equal(agent.stop(), 0)
    equal(is_quiet(agent), True)
    agent.start()
    agent.client().ask("pause")
    equal(words(told), ["default", "3"] * 2)


def notified_later(agent):
    """An end that is committed is told, whenever the agent is killed: those whose command had not
    started are told once, and those whose command ran, again."""
    told, gate = pathlib.Path(agent.directory, "told"), os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    agent.start()
    c = agent.client()
    tell = f"echo $GPUDISPATCH_BATCH >> {told}; read x < {gate}"
    for _ in range(6):
        submit(c, ["true"], notify=tell)
    for i in range(6):
        c.ask("wait", batch=str(i + 1))
    until(lambda: len(words(told)) == 4, "four notifications")
    c.ask("pause")
    agent.kill()
    for pid in agent.processes("sh"):
        os.kill(pid, 9)
    told.unlink()
    agent.start()
    until(lambda: len(words(told)) == 4, "four of the next agent")
    equal(agent.stop(), 0)
    agent.start()
    until(lambda: len(words(told)) == 6, "the others")
    equal(sorted(words(told)), ["1", "2", "3", "4", "5", "6"])
    equal(agent.stop(), 0)
    equal(is_quiet(agent), True)


def notified_twice(agent):
    """A batch that ends again while its command runs is told of a second time."""
    told, gate = pathlib.Path(agent.directory, "told"), os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    agent.start()
    c = agent.client()
    submit(c, ["test $GPUDISPATCH_ATTEMPT = 2"],
           notify=f"echo $GPUDISPATCH_OK >> {told}; read x < {gate}")
    until(lambda: words(told) == ["0"], "the first end")
    c.ask("retry", batch="1")
    c.ask("wait", batch="1")
    with open(gate, "w") as f:
        f.write("go\n")
    until(lambda: words(told) == ["0", "1"], "the second end")


DAY = 24 * 3600 * 10**9


def change_file(agent, *statements):
    """Changes the store of an agent that does not run."""
    with contextlib.closing(sqlite3.connect(os.path.join(agent.state, "queue.db"))) as file, file:
        for statement in statements:
            file.execute(*statement)


def age(days, *batches):
    """Statements that let the tasks of these batches have ended days ago."""
    ago = time.time_ns() - days * DAY
    for batch in batches:
        yield "UPDATE task SET ended = ? WHERE id >> 32 = ? AND state = 4", [ago, batch]
        yield "UPDATE batch SET ended = ? WHERE id = ? AND ended > 0", [ago, batch]


def last_round(days):
    return ("INSERT OR REPLACE INTO mark VALUES('retention', '', NULL, ?)",
            [time.time_ns() - days * DAY])


def names(client):
    return [b.get("name") for b in client.ask("batches")["batches"]]


def files(agent, folder):
    return sorted(p.name for p in pathlib.Path(agent.state, folder).iterdir())


def kept(agent):
    """Tasks that ended long ago are forgotten, with their files; none that waits, and none of a
    batch that goes on."""
    agent.start()
    c = agent.client()
    submit(c, ["echo x > $GPUDISPATCH_OUT/x"] * 3, name="old", notify="true")
    submit(c, ["true"] * 3, name="young")
    submit(c, ["true"], name="open", open=True)
    for batch in "12":
        c.ask("wait", batch=batch)
    c.ask("wait", tasks=["3.1"])
    until(lambda: pathlib.Path(agent.state, "logs/notify-1").exists(), "a notification")
    c.ask("pause")
    submit(c, ["true"], name="waits")
    equal(agent.stop(), 0)
    change_file(agent, *age(91, 1, 3), *age(89, 2), last_round(1))
    agent.start()
    c = agent.client()
    until(lambda: names(c) == ["young", "open", "waits"], "the end of old tasks")
    until(lambda: files(agent, "out") == ["2.1", "2.2", "2.3", "3.1"], "the end of their outputs")
    until(lambda: files(agent, "logs") == ["2.1.1", "2.2.1", "2.3.1", "3.1.1"],
          "the end of their logs")
    equal([t["state"] for t in c.ask("tasks", all=True)["tasks"]], ["done"] * 4 + ["ready"])
    equal(agent.stop(), 0)
    agent.options = ["--keep-age", "0", "--keep-tasks", "0"]
    change_file(agent, *age(900, 2), last_round(1))
    agent.start()
    c = agent.client()
    c.ask("seal", batch="3")
    equal(names(c), ["young", "open", "waits"])


def kept_number(agent):
    """More ended tasks than are kept: the first ones go, but none that ended within a day."""
    agent.options = ["--keep-tasks", "40", "--keep-age", "0"]
    agent.start()
    c = agent.client()
    for i in range(4):
        submit(c, ["true"] * 30, name=str(i + 1))
        c.ask("wait", batch=str(i + 1))
    equal(agent.stop(), 0)
    change_file(agent, *age(3, 1, 2), *age(2, 3), last_round(1))
    agent.start()
    c = agent.client()
    until(lambda: len(c.ask("tasks", all=True)["tasks"]) == 40, "the end of 80 tasks")
    equal([t["task"] for t in c.tasks(3)], [f"3.{i}" for i in range(21, 31)])
    equal(agent.stop(), 0)
    agent.options[1] = "5"
    agent.start()
    c = agent.client()
    until(lambda: len(c.ask("tasks", all=True)["tasks"]) == 30, "those of yesterday are kept")
    equal(names(c), ["4"])


def kept_clock(agent):
    """A clock that is years ahead for a while costs nothing: the round only notes its time."""
    agent.start()
    c = agent.client()
    submit(c, ["true"], name="one")
    c.ask("wait", batch="1")
    equal(agent.stop(), 0)
    for since in last_round(1000), last_round(-1000):
        change_file(agent, *age(1000, 1), since)
        agent.start()
        c = agent.client()
        c.ask("pause")
        c.ask("resume")
        equal(names(c), ["one"])
        equal(agent.stop(), 0)
    agent.start()
    c = agent.client()
    until(lambda: names(c) == [], "the end of old tasks")


def forgotten_files(agent):
    """Files of tasks that a killed agent had forgotten go when the next one starts."""
    agent.start()
    c = agent.client()
    submit(c, ["echo x > $GPUDISPATCH_OUT/x"])
    c.ask("wait", batch="1")
    equal(agent.stop(), 0)
    state = pathlib.Path(agent.state)
    (state / "out/9.9/d").mkdir(parents=True)
    others = [state / "logs" / name for name in ("9.9.1", "9.9.2", "8.7.1", "notify-9")]
    for path in others:
        path.write_text("x")
    agent.start()
    agent.client().ask("pause")
    equal((state / "out/9.9").exists(), True)
    equal(agent.stop(), 0)
    change_file(agent, ["INSERT INTO mark VALUES('forget', '', NULL, 1)"])
    agent.start()
    until(lambda: not (state / "out/9.9").exists(), "the end of outputs")
    until(lambda: not any(path.exists() for path in others), "the end of logs")
    equal(files(agent, "out"), ["1.1"])
    equal((state / "logs/1.1.1").exists(), True)


CASES = [saved_socket, notified, notified_later, notified_twice, kept, kept_number, kept_clock,
         forgotten_files]

if __name__ == "__main__":
    sys.exit(run("queue-night", CASES))
