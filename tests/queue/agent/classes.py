#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An agent with classes of workers: how their tasks end, and what a new agent finds.

usage: classes.py BUILD_DIRECTORY [CASE...]

T_KILLS says how often case `killed_agents` kills the agent.
"""
import base64
import os
import pathlib
import random
import resource
import sys
import uuid

sys.dont_write_bytecode = True
from agent import Refused, until, words  # noqa: E402
from cases import equal, run  # noqa: E402

EFFORT = os.environ.get("T_EFFORT") == "all"
PLUGIN = os.path.join(os.path.abspath(sys.argv[1]), "tests/queue/queue_worker.so")
WORKER = os.path.join(os.path.abspath(sys.argv[1]), "lib/gpudispatch-worker")


def configure(agent, name="echo", **keys):
    """Adds a class to the config file of the agent.  A key with the value None is left out."""
    path = pathlib.Path(agent.directory, "config")
    keys = {"plugin": PLUGIN, "definition": "work", "setup": agent.directory, **keys}
    before = path.read_text() if path.exists() else ""
    path.write_text(before + f"[class {name}]\n" + "".join(
        f"{key.replace('_', '-')} = {value}\n" for key, value in keys.items()
        if value is not None))
    agent.options = ["--config", str(path)]


def submit(client, payloads, batch="files", join=False, name="echo", **spec):
    """Payloads are texts, or bytes for base64."""
    tasks = [{"line": i + 1, **({"payload": p} if isinstance(p, str) else
                                {"payload_base64": base64.b64encode(p).decode()})}
             for i, p in enumerate(payloads)]
    return client.ask("submit", request=str(uuid.uuid4()), batch={"name": batch}, join=join,
                      specs=[{"class": name, **spec}], tasks=tasks)


def rows(client, batch=1):
    """All results, over pages."""
    found, after = [], {}
    while True:
        page = client.ask("results", batch=str(batch), **after)
        found += page["results"]
        if "next" not in page:
            return found
        after = {"after": page["next"]}


def outcomes(client, batch=1):
    return [row["outcome"] for row in rows(client, batch)]


def text_of(client, task):
    return client.ask("attempts", task=task)["attempts"][-1].get("text", "")


def lines(agent, name):
    return words(os.path.join(agent.directory, name))


def results(agent):
    """1,000 payloads over eight GPUs: each result is that of its payload, and no worker starts
    without a task."""
    configure(agent)
    c = agent.start().client()
    equal(agent.client().ask("status")["running"], 0)
    equal(lines(agent, "setups"), [])
    submit(c, [f"say {i}" for i in range(1000)])
    c.ask("wait", batch="1")
    equal([row["text"] for row in rows(c)], [str(i) for i in range(1000)])
    equal(sorted(lines(agent, "started")), sorted(f"1.{i + 1}" for i in range(1000)))
    attempts = c.ask("attempts", task="1.1")["attempts"]
    equal((attempts[0]["run"], attempts[0]["text"][:5]), ("worker", "fake:"))
    assert attempts[0]["claimed"] <= attempts[0]["started"] <= attempts[0]["ended"]


def kinds_of_results(agent):
    """Bytes, a result that is a file, no result; payloads of any bytes; the log of an attempt."""
    configure(agent)
    c = agent.start().client()
    submit(c, ["bytes", "big 65536", "big 65537", "sleep 1", b"\0\xff\0", b"say p", "print hello"])
    c.ask("wait", batch="1")
    got = rows(c)
    equal([row["outcome"] for row in got], ["ok"] * 7)
    equal(got[0]["base64"], base64.b64encode(b"\0\xff").decode())
    equal((got[1]["size"], got[1]["text"]), (65536, "x" * 65536))
    equal((got[2]["size"], "text" in got[2]), (65537, False))
    equal(pathlib.Path(agent.state, got[2]["file"]).read_text(), "x" * 65537)
    equal("size" in got[3], False)
    equal(got[4]["base64"], got[4]["payload_base64"])
    equal((got[5]["payload"], got[5]["text"]), ("say p", "p"))
    equal(pathlib.Path(agent.state, "logs/1.7.1").read_text(), "hello\n")
    spec = c.ask("task", task="1.1")["task"]["spec"]
    equal((spec["class"], "needs" in spec), ("echo", False))


def no_descriptors(agent):
    """A result for which no descriptor is left is stored later; the log names what is missing."""
    configure(agent)
    agent.start()
    c, pid = agent.client(), agent.process.pid
    submit(c, ["say 1"])
    c.ask("wait", batch="1")
    used = {int(n) for n in os.listdir(f"/proc/{pid}/fd")}
    free = next(n for n in range(len(used) + 1) if n not in used)
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
    submit(c, ["big 65537"])
    until(lambda: "nothing starts" in agent.said(), "a failed commit")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    c.ask("wait", batch="2")
    equal(outcomes(c, 2), ["ok"])
    assert "Too many open files" in agent.said(), agent.said()
    assert "the disk is full" not in agent.said(), agent.said()


def failures(agent):
    """A crash, an error, a timeout and a cancel are outcomes; retries are the store's."""
    configure(agent, grace="0.1s")
    c = agent.start().client()
    submit(c, ["crash", "fail 9", "say fine"])
    submit(c, ["sleep 600000"], batch="slow", limit=100 * 10**6)
    submit(c, ["crash"], batch="again", retries={"crash": 2})
    submit(c, ["sleep 600000"], batch="cancelled")
    until(lambda: "4.1" in lines(agent, "started"), "a start")
    equal(c.ask("cancel", batch="4")["running"], 1)
    for batch in "1234":
        c.ask("wait", batch=batch)
    equal([outcomes(c, batch) for batch in "1234"],
          [["crashed", "error", "ok"], ["timeout"], ["crashed"], ["cancelled"]])
    equal(c.ask("attempts", task="1.1")["attempts"][0]["status"], -6)
    equal(text_of(c, "1.2"), "as it was told")
    equal(len(c.ask("attempts", task="3.1")["attempts"]), 3)


def class_limit(agent):
    """The limit of the class counts for a task without one; that of the task comes first."""
    configure(agent, limit="0.1s", grace="0.1s")
    c = agent.start().client()
    submit(c, ["sleep 600000"])
    submit(c, ["sleep 300"], batch="own", limit=60 * 10**9)
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal((outcomes(c, 1), outcomes(c, 2)), (["timeout"], ["ok"]))


def failed_setup(agent):
    """A class whose workers fail: its tasks end NO_WORKER with the reason, commands go on, and the
    next task tries again."""
    configure(agent, "broken", definition="broken")
    c = agent.start().client()
    submit(c, [f"say {i}" for i in range(200)], name="broken")
    c.submit(["true"], batch="commands")
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal((set(outcomes(c, 1)), outcomes(c, 2)), ({"no worker"}, ["ok"]))
    row = c.ask("classes")["classes"][0]
    equal((row["class"], row["usable"], row["fit"]), ("broken", True, 8))
    assert "no such model" in row["text"], row
    assert "no such model" in text_of(c, "1.200"), text_of(c, "1.200")
    equal(c.ask("attempts", task="1.200")["attempts"][-1].get("status", 0), 0)
    pathlib.Path(agent.directory, "mended").touch()
    equal(c.ask("retry", batch="1", outcomes=["no worker"])["count"], 200)
    c.ask("wait", batch="1")
    equal(set(outcomes(c, 1)), {"ok"})


def unknown_classes(agent):
    """A class that the config does not name, or that cannot run here, is refused with the names."""
    configure(agent)
    configure(agent, "gone", plugin="/no/such.so")
    c = agent.start().client()
    for name, parts in (("whisper", ["no such class", "config has echo, gone"]),
                        ("gone", ["cannot run here", "/no/such.so"])):
        try:
            submit(c, ["x"], name=name)
            raise AssertionError(f"{name} is accepted")
        except Refused as refused:
            equal(refused.code, "EREFUSED")
            assert all(part in str(refused) for part in parts), str(refused)
    for spec in ({"needs": {"gpus": 1}},):
        try:
            submit(c, ["x"], **spec)
            raise AssertionError("needs are accepted")
        except Refused as refused:
            assert "config file" in str(refused), str(refused)


def class_leaves_the_config(agent):
    """Tasks of a class that the next agent does not know wait, and explain says why."""
    configure(agent)
    c = agent.start().client()
    c.ask("pause")
    submit(c, ["say a"])
    agent.stop()
    os.unlink(os.path.join(agent.directory, "config"))
    configure(agent, "other")
    c = agent.start().client()
    c.ask("resume")
    submit(c, ["say b"], name="other", batch="other")
    c.ask("wait", batch="2")
    reasons = c.ask("explain", task="1.1")["reasons"]
    equal(reasons[0]["reason"], "CLASS")
    assert "has other" in reasons[0]["text"], reasons
    agent.stop()
    configure(agent)
    c = agent.start().client()
    c.ask("wait", batch="1")
    equal(outcomes(c), ["ok"])


def paused(agent):
    """A paused class starts nothing; tasks that have not started are at their places again."""
    configure(agent, max_workers=1)
    gate = agent.gate()
    c = agent.start().client()
    submit(c, ["wait"] + [f"say {i}" for i in range(20)])
    until(lambda: lines(agent, "started") == ["1.1"], "a start")
    until(lambda: len(c.ask("tasks", batch="1", states=["running"])["tasks"]) > 1, "claims")
    waiting = c.ask("tasks", batch="1", states=["running"])["tasks"][-1]["task"]
    equal(c.ask("explain", task=waiting)["reasons"] != [], True)
    c.ask("pause", **{"class": "echo"})
    until(lambda: len(c.ask("tasks", batch="1", states=["running"])["tasks"]) == 1, "returns")
    c.submit(["true"], batch="commands")
    c.ask("wait", batch="2")
    gate.open()
    c.ask("wait", tasks=["1.1"])
    row = c.ask("tasks", batch="1", states=["ready"])["tasks"][0]
    equal((row["task"], row["charged"]), ("1.2", 0))
    equal(lines(agent, "started"), ["1.1"])
    c.ask("resume", **{"class": "echo"})
    c.ask("wait", batch="1")
    equal(lines(agent, "started"), [f"1.{i + 1}" for i in range(21)])  # Q7: their order


def drained(agent):
    """stop with "drain": tasks that run end, and the others wait for the next agent."""
    configure(agent, max_workers=1)
    gate = agent.gate()
    c = agent.start().client()
    submit(c, ["wait", "say 1", "say 2"])
    until(lambda: lines(agent, "started") == ["1.1"], "a start")
    c.ask("stop", how="drain")
    gate.open()
    equal(agent.process.wait(60), 0)
    c = agent.start().client()
    c.ask("wait", batch="1")
    equal(lines(agent, "started"), ["1.1", "1.2", "1.3"])
    equal([len(c.ask("attempts", task=f"1.{i}")["attempts"]) for i in (1,)], [1])


def cancelled(agent):
    """stop with "cancel": tasks that run end, and the others wait for the next agent."""
    configure(agent, max_workers=1, grace="0.1s")
    c = agent.start().client()
    submit(c, ["sleep 600000", "say 1"])
    until(lambda: lines(agent, "started") == ["1.1"], "a start")
    c.ask("stop", how="cancel")
    equal(agent.process.wait(60), 0)
    c = agent.start().client()
    c.ask("wait", batch="1")
    equal(outcomes(c), ["cancelled", "ok"])


def evicted(agent):
    """A device that is drained at once: the task of its worker returns uncharged."""
    agent.devices = "fake:1"
    configure(agent, grace="0.1s")
    c = agent.start().client()
    submit(c, ["sleep 600000", "say 1"])
    until(lambda: lines(agent, "started") == ["1.1"], "a start")
    (row,) = c.ask("tasks", tasks=["1.1"])["tasks"]
    equal((row["devices"], row["started"] > 1e18), ("fake:0", True))
    c.ask("drain", device="fake:0", now=True)
    until(lambda: "returned" in c.ask("attempts", task="1.1")["attempts"][0], "its return")
    attempt = c.ask("attempts", task="1.1")["attempts"][0]
    equal((attempt["returned"], attempt["charged"], attempt["text"]),
          ("device fault", False, "drained by a person"))
    equal(attempt["devices"], {"names": "fake:0"})
    assert abs(attempt["started"] - row["started"]) < 10**6, (attempt, row)
    (line,) = [line.split("\t") for line in c.ask("records")["lines"].split("\n")
               if line.startswith("attempt\t")]
    equal((line[4], int(line[6]), line[8]), ("fake:0", attempt["started"], "returned"))
    c.ask("cancel", tasks=["1.1"])
    c.ask("undrain", device="fake:0")
    c.ask("wait", batch="1")
    equal(outcomes(c), ["cancelled", "ok"])


def at_most_once(agent):
    """Q4: tasks of a killed agent run again, uncharged; with at_most_once those that it had given
    to workers are LOST, and they are no more than there may be workers."""
    configure(agent, max_workers=2)
    agent.gate()
    c = agent.start().client()
    submit(c, ["wait"] * 30, at_most_once=True)
    until(lambda: len(lines(agent, "started")) == 2, "two starts")
    agent.kill()
    c = agent.start().client()
    until(lambda: len(lines(agent, "started")) == 4, "two more starts")
    equal(len([r for r in c.ask("tasks", batch="1")["tasks"] if r.get("outcome") == "lost"]), 2)
    c.ask("cancel", batch="1")
    submit(c, ["wait"] * 2, batch="again")
    c.ask("wait", batch="1")
    until(lambda: "2.2" in lines(agent, "started"), "starts")
    agent.kill()
    c = agent.start().client()
    until(lambda: lines(agent, "started").count("2.2") == 2, "starts")
    row = c.ask("tasks", batch="2")["tasks"][0]
    equal((row["attempt"], row["charged"]), (2, 1))
    c.ask("cancel", batch="2")
    c.ask("wait", batch="2")


def stopped(agent):
    """SIGTERM does not wait for the task of a worker: the next agent runs it again."""
    configure(agent, max_workers=1)
    gate = agent.gate()
    c = agent.start().client()
    submit(c, ["wait"])
    until(lambda: lines(agent, "started") == ["1.1"], "a start")
    equal(agent.stop(), 0)
    c = agent.start().client()
    until(lambda: lines(agent, "started") == ["1.1", "1.1"], "another start")
    gate.open()
    c.ask("wait", batch="1")
    equal(outcomes(c), ["ok"])
    equal([a.get("returned") for a in c.ask("attempts", task="1.1")["attempts"]],
          ["worker stopped", None])


def several_classes(agent):
    """Two classes with batches and a command share the GPUs; joins compare payloads."""
    soon = {"memory": "1G", "min_residence": 0}  # for 30 s no class would leave its GPUs
    configure(agent, "many", definition="batch", batch=8, **soon)
    configure(agent, "half", gpus="0.5", plugin=None, worker=f"'{WORKER}' '{PLUGIN}'", **soon)
    c = agent.start().client()
    submit(c, [f"say {i}" for i in range(100)], name="many")
    submit(c, [f"say {i}" for i in range(100)], name="half", batch="half")
    c.submit(["true"] * 10, batch="commands")
    for batch in "123":
        c.ask("wait", batch=batch)
    equal([r["text"] for r in rows(c, 1)], [str(i) for i in range(100)])
    equal([r["text"] for r in rows(c, 2)], [str(i) for i in range(100)])
    equal(sum(map(int, lines(agent, "batches"))), 100)
    reply = submit(c, [f"say {i}" for i in range(101)], name="many", join=True)
    equal((reply["joined"], reply["added"]), (100, 1))
    reply = submit(c, [f"say {i}" for i in range(100)], name="half", join=True)
    equal(reply["added"], 100)  # another batch


def claimed_first(agent):
    """Q2: an attempt whose first act is to kill the agent is in the store."""
    configure(agent, max_workers=1, min_workers=1)
    for _ in range(5):
        agent.start()
        c = agent.client()
        submit(c, ["say warm"], batch="warm")
        c.ask("wait", batch=c.ask("batches", name="warm")["batches"][0]["batch"])
        batch = submit(c, [f"kill {agent.process.pid}"], batch="kill")["batch"]
        agent.process.wait(60)
        agent.start()
        c = agent.client()
        c.ask("wait", batch=batch)
        attempts = c.ask("attempts", task=f"{batch}.1")["attempts"]
        equal([a.get("returned") for a in attempts], ["worker stopped", None])
        equal(lines(agent, "started").count(f"{batch}.1"), 2)
        agent.stop()


def killed_agents(agent):
    """Q3 Q4: the agent is killed while 1,000 tasks run; each ends SUCCESS once."""
    kills = int(os.environ.get("T_KILLS", 10 if EFFORT else 4))
    draw = random.Random(int(os.environ.get("T_SEED", 1)))
    configure(agent)
    c = agent.start().client()
    submit(c, [f"say {i}" for i in range(1000)])
    for _ in range(kills):
        done = len(lines(agent, "started"))
        target = done + draw.randrange(100)
        until(lambda: len(lines(agent, "started")) >= target or not c.ask(
            "tasks", batch="1", states=["ready", "running"], most=1)["tasks"], "starts")
        agent.kill()
        agent.start()
        c = agent.client()
    c.ask("wait", batch="1")
    got = rows(c)
    equal([(r["outcome"], r["text"]) for r in got], [("ok", str(i)) for i in range(1000)])
    started = lines(agent, "started")
    equal(len(set(started)), 1000)
    for row in got:
        attempts = c.ask("attempts", task=row["task"])["attempts"]
        equal([a.get("outcome") for a in attempts], [None] * (len(attempts) - 1) + ["ok"])
        equal(attempts[-1]["charged"], True)
        assert all(a.get("returned") == "worker stopped" for a in attempts[:-1]), attempts
        assert started.count(row["task"]) <= len(attempts)


CASES = [results, kinds_of_results, no_descriptors, failures, class_limit, failed_setup,
         unknown_classes, class_leaves_the_config, paused, drained, cancelled, evicted,
         at_most_once, stopped, several_classes, claimed_first, killed_agents]

if __name__ == "__main__":
    sys.exit(run("queue-classes", CASES))
