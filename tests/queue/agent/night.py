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


CASES = [saved_socket, notified, notified_later, notified_twice]

if __name__ == "__main__":
    sys.exit(run("queue-night", CASES))
