#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How commands end: outcomes, outputs, limits, retries, stamps, cancels and stops of the agent.

usage: ends.py BUILD_DIRECTORY [CASE...]
"""
import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
from agent import until, words  # noqa: E402
from cases import equal, run  # noqa: E402


def ends(agent):
    """Q2: each end of a command is an outcome, which is shown after its commit."""
    c = agent.start().client()
    c.submit(["exit 0", "exit 3", "kill -9 $$", ["/no/such/program"]])
    c.ask("wait", batch="1")
    equal(c.outcomes(1), ["ok", "error", "crashed", "error"])
    equal(c.ask("tasks", batch="1", states=["ready", "running", "held"])["tasks"], [])


def shell_reports(agent):
    """A shell that waits for its last program reports its signal as 128 + N: a line has crashed,
    and a command behind -- has not."""
    agent.start()
    c = agent.client()
    last = ["sh -c 'kill -SEGV $$'; exit $?", "exit 134", "exit 143", "exit 128", "exit 200"]
    c.submit(last, shell=True, retries={"crash": 1})
    c.submit(["exit 139", ["sh", "-c", "exit 134"]], retries={"crash": 1}, batch="own")
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal([(t["outcome"], t["attempt"]) for t in c.tasks(1)],
          [("crashed", 2)] * 2 + [("error", 1)] * 3)
    equal([(t["outcome"], t["attempt"]) for t in c.tasks(2)], [("error", 1)] * 2)
    last = c.ask("attempts", task="1.1")["attempts"][1]
    equal((last["status"], last["text"]),
          (-11, "killed by signal 11 (SIGSEGV), by the shell's status 139"))
    # The same by an agent that did not see the end.
    gate = os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    c.submit([f"read x < {gate}; exit 139"], shell=True, batch="later")
    until(lambda: c.tasks(3)[0]["state"] == "running" and agent.processes("sh"), "a command")
    c.close()
    agent.stop()
    with open(gate, "w") as f:
        f.write("go\n")
    until(lambda: not agent.processes(), "its end")
    agent.start()
    c = agent.client()
    c.ask("wait", batch="3")
    equal(c.outcomes(3), ["crashed"])


def outputs(agent):
    """Q5: files of a success are in out/ID, and those of a failure are not."""
    c = agent.start().client()
    c.submit(["echo one > $GPUDISPATCH_OUT/x", "echo two > $GPUDISPATCH_OUT/x; exit 1",
              "env | sort > $GPUDISPATCH_OUT/env; pwd; echo said >&2"], cwd="/tmp")
    c.ask("wait", batch="1")
    out = pathlib.Path(agent.state, "out")
    equal((out / "1.1/x").read_text(), "one\n")
    equal(sorted(p.name for p in out.iterdir()), ["1.1", "1.3"])
    equal(list(pathlib.Path(agent.state, "work").iterdir()), [])
    equal(list(pathlib.Path(agent.state, "run").iterdir()), [])
    env = dict(line.split("=", 1) for line in (out / "1.3/env").read_text().splitlines())
    equal((env["GPUDISPATCH_TASK"], env["GPUDISPATCH_ATTEMPT"]), ("1.3", "1"))
    equal(env["GPUDISPATCH_GPUS"].split(":")[0], "fake")
    equal(pathlib.Path(agent.state, "logs/1.3.1").read_text(), "/tmp\nsaid\n")


def limits(agent):
    """A task that exceeds its limit is TIMEOUT, and a cancelled one CANCELLED."""
    c = agent.start().client()
    c.submit(["sleep 600"], limit=200 * 10**6)
    c.submit(["sleep 600", "sleep 600"], batch="other")
    until(lambda: len(c.ask("tasks", batch="2", states=["running"])["tasks"]) == 2, "two that run")
    equal(c.ask("cancel", tasks=["2.1"])["running"], 1)
    c.ask("wait", batch="1")
    c.ask("wait", tasks=["2.1"])
    equal(c.outcomes(1) + c.outcomes(2), ["timeout", "cancelled", None])


def retries(agent):
    """Q7: a task that is tried again keeps its place, and each attempt is recorded."""
    c = agent.start().client()
    c.submit(["test $GPUDISPATCH_ATTEMPT = 3"], retries={"error": 2})
    c.ask("wait", batch="1")
    equal(c.outcomes(1), ["ok"])
    equal(c.tasks(1)[0]["attempt"], 3)


def out_of_memory(agent):
    """A command without memory on its GPU gets it alone at the retry, with twice the memory."""
    agent.start()
    gate = agent.gate()
    door = os.open(gate, os.O_RDWR)  # an open for writing waits for a reader
    c = agent.client()
    gib = 1 << 30
    oom = "echo CUDA out of memory.; exit 1"
    last = f"test $GPUDISPATCH_ATTEMPT -gt 2 || {{ {oom}; }}"

    def submit(batch, script, memory, **retries):
        c.submit([script], batch=batch, retries=retries,
                 needs={"gpus": 1, "share": 5000, "memory": memory})

    def grants(batch):
        rows = c.ask("attempts", task=f"{batch}.1")["attempts"]
        return [(a["outcome"], a["devices"]["share"], a["devices"]["memory"]) for a in rows]

    submit("doubled", last, 3 * gib, oom=2)
    submit("device", last, 12 * gib, oom=1)
    submit("other", "echo out of paper; exit 1", gib, oom=2)
    submit("same", last, gib, error=2)
    submit("adopted", f"read x < {gate}; {oom}", gib, oom=1)
    for batch in range(1, 5):
        c.ask("wait", batch=str(batch))
    equal(grants(1), [("error", 5000, 3 * gib), ("error", 10000, 6 * gib),
                      ("ok", 10000, 12 * gib)])
    first, second = grants(2)
    equal(first, ("error", 5000, 12 * gib))
    assert second[:2] == ("error", 10000) and 12 * gib < second[2] <= 16 * gib, second
    equal(grants(3), [("error", 5000, gib)])
    equal(grants(4), [("error", 5000, gib)] * 2 + [("ok", 5000, gib)])
    equal(c.ask("attempts", task="1.1")["attempts"][0]["text"],
          "exited with status 1: a GPU was out of memory")
    c.ask("retry", batch="2")
    c.ask("wait", batch="2")
    equal(grants(2)[2:], [("ok", 5000, 12 * gib)])
    agent.kill()
    os.write(door, b"go\n")
    until(lambda: not agent.processes("gpud-runner"), "the end of the runner")
    c = agent.start().client()
    os.write(door, b"go\n")
    c.ask("wait", batch="5")
    os.close(door)
    equal(grants(5), [("error", 5000, gib), ("error", 10000, 2 * gib)])


def stamp(*names):
    """As a client makes it (docs/reference/queue-protocol.md)."""
    stats = [(n, os.stat(n)) for n in names]
    return "stamp=1\n" + "".join(f"{s.st_size} {s.st_mtime_ns} {n}\n" for n, s in stats)


def changed_files(agent):
    """Q6: a line whose files have changed since its success is not joined, which is said."""
    script = os.path.join(agent.directory, "train.sh")
    plain = os.path.join(agent.directory, "x")
    for name in (script, plain):
        pathlib.Path(name).write_text("true\n")
    gate = agent.gate()
    c = agent.start().client()
    tasks = [{"argv": ["/bin/sh", script]}, {"argv": ["true"]},
             {"argv": ["/bin/sh", "-c", f". {plain}; read x < {gate}"]}]

    def submit(**how):
        for t, names in zip(tasks, (["/bin/sh", script], [], [plain])):
            t["stamp"] = stamp(*names)
        spec = {"cwd": "/", "environment": [f"PATH={os.environ['PATH']}"]}
        return c.ask("submit", batch={"name": "a"}, join=True, list=True, specs=[spec],
                     tasks=tasks, **how)

    submit()
    until(lambda: [t["state"] for t in c.tasks(1)] == ["done", "done", "running"], "two ends")
    until(lambda: agent.processes("sh"), "the last command")
    agent.kill()
    gate.open()
    until(lambda: not agent.processes("gpud-runner"), "the end of the runner")
    pathlib.Path(plain).write_text("true # edited before an agent booked the end\n")
    c = agent.start().client()
    c.ask("wait", batch="1")
    equal(c.outcomes(1), ["ok"] * 3)
    equal(list(pathlib.Path(agent.state, "run").iterdir()), [])
    equal([p["how"] for p in submit(**{"try": True})["placed"]], ["joined", "joined", "changed"])
    pathlib.Path(script).write_text("true # edited\n")
    equal([(p["how"], p.get("file")) for p in submit(**{"try": True})["placed"]],
          [("changed", script), ("joined", None), ("changed", plain)])
    reply = submit(join_anyway=True)
    equal((reply["joined"], reply["changed"]), (3, 0))


def attached(agent):
    """Attached commands end with their connection, also where the agent has ended first."""
    agent.start()
    c, other = agent.client(), agent.client()
    other.submit(["sleep 600"], batch="other")
    for batch in (2, 3):
        c.submit(["sleep 600"] * 12, batch=f"attached{batch}", attached=True,
                 needs={"gpus": 0, "cpus": 5})
        until(lambda: len(agent.processes("sleep")) == 13, "twelve commands and another one")
        if batch == 2:
            c.close()
        else:
            agent.kill()
            equal(len(agent.processes("sleep")), 13)
            agent.start()
            other = agent.client()
        other.ask("wait", batch=str(batch))
        equal(other.outcomes(batch), ["cancelled"] * 12)
        until(lambda: len(agent.processes("sleep")) == 1, "the ends")
        c = agent.client()
    equal([t["state"] for t in other.tasks(1)], ["running"])


def orders_are_no_stops(agent):
    """A command that a person ends has crashed.  A limit and a cancel keep their outcomes, also
    after a stop."""
    c = agent.start().client()
    c.submit(["exec sleep 600"])
    until(lambda: agent.processes("sleep"), "a command")
    os.kill(agent.processes("sleep")[0], signal.SIGTERM)
    c.submit(["sleep 600"] * 2, batch="limit", limit=200 * 10**6)
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal([c.outcomes(1), c.outcomes(2)], [["crashed"], ["timeout"] * 2])
    second = "trap 'trap - TERM' TERM; while :; do sleep 600; done"  # ended by a second SIGTERM

    def stop_one():
        until(lambda: agent.processes("sleep"), "a command")
        os.kill(agent.processes("gpud-runner")[0], signal.SIGTERM)
    c.submit([second], batch="stop and limit", limit=300 * 10**6)
    stop_one()
    c.ask("wait", batch="3")
    c.submit([second], batch="stop and cancel")
    stop_one()
    c.ask("cancel", tasks=["4.1"])
    c.ask("wait", batch="4")
    equal([c.outcomes(3), c.outcomes(4)], [["timeout"], ["cancelled"]])


def evicted(agent):
    """Q4: a device that is drained at once loses its task, which runs elsewhere, uncharged."""
    c = agent.start().client()
    c.submit(["echo $GPUDISPATCH_GPUS >> $F; test $(wc -l < $F) -gt 1 || sleep 600"],
             environment=[f"PATH={os.environ['PATH']}", f"F={agent.directory}/ran"])
    until(lambda: words(f"{agent.directory}/ran"), "a command")
    first = words(f"{agent.directory}/ran")[0]
    c.ask("drain", device=first, reason="ECC", now=True)
    c.ask("wait", batch="1")
    second = words(f"{agent.directory}/ran")[1]
    assert second != first, (first, second)
    task = c.tasks(1)[0]
    equal((task["outcome"], task["attempt"], task["charged"]), ("ok", 2, 1))
    c.ask("undrain", device=first)


def cancelled_and_killed(agent):
    """Q10: a wish to cancel outlives the agent that had it."""
    c = agent.start().client()
    c.submit(["trap '' TERM; sleep 600 & wait; sleep 600"])
    until(lambda: agent.processes("sleep"), "a command")
    c.ask("cancel", tasks=["1.1"])
    agent.kill()
    c = agent.start().client()
    c.ask("wait", batch="1")
    equal(c.outcomes(1), ["cancelled"])
    until(lambda: not agent.processes(), "the end of the command")


def stop_drain(agent):
    """`stop` with "drain": what runs ends, and what waits stays."""
    agent.start()
    gate = agent.gate()
    c = agent.client()
    c.submit([f"read x < {gate}"] * 8 + ["true"] * 20)
    until(lambda: len(agent.processes("sh")) == 8, "eight commands")
    c.ask("stop", how="drain")
    with gate.opened(8):
        equal(agent.process.wait(60), 0)
    c = agent.start().client()
    c.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"]) for t in c.tasks(1)], [("ok", 1)] * 28)


def stop_cancel(agent):
    """`stop` with "cancel" ends what runs, also what the dispatcher does not have."""
    c = agent.start().client()
    c.submit(["sleep 600"] * 8)
    until(lambda: len(agent.processes("sleep")) == 8, "eight commands")
    agent.kill()
    agent.devices = "fake:2"
    c = agent.start().client()
    c.ask("stop", how="cancel")
    equal(agent.process.wait(60), 0)
    equal(agent.processes(), [])
    agent.start()
    equal(set(agent.client().outcomes(1)), {"cancelled"})


CASES = [ends, shell_reports, outputs, limits, retries, out_of_memory, changed_files, attached,
         orders_are_no_stops, evicted, cancelled_and_killed, stop_drain, stop_cancel]

if __name__ == "__main__":
    sys.exit(run("queue-ends", CASES))
