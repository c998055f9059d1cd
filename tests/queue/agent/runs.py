#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An agent with commands: how they end, and what a new agent finds.

usage: runs.py BUILD_DIRECTORY [CASE...]

T_KILLS says how often case `killed_agents` kills the agent.
"""
import contextlib
import os
import pathlib
import random
import resource
import signal
import socket
import sqlite3
import sys
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from agent import Agent, Refused, until  # noqa: E402
from cases import equal, run  # noqa: E402

EFFORT = os.environ.get("T_EFFORT") == "all"


def outcomes(client, batch):
    return [t.get("outcome") for t in client.tasks(batch)]


def lines(path):
    with contextlib.suppress(FileNotFoundError), open(path) as f:
        return f.read().split()
    return []


def ends(agent):
    """Q2: each end of a command is an outcome, which is shown after its commit."""
    agent.start()
    c = agent.client()
    c.submit(["exit 0", "exit 3", "kill -9 $$", ["/no/such/program"]])
    c.ask("wait", batch="1")
    equal(outcomes(c, 1), ["ok", "error", "crashed", "error"])
    equal(c.ask("tasks", batch="1", states=["ready", "running", "held"])["tasks"], [])


def outputs(agent):
    """Q5: files of a success are in out/ID, and those of a failure are not."""
    agent.start()
    c = agent.client()
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


def names_of_the_start(agent):
    """Names in braces are the attempt's values, and a port is that of one command at a time."""
    agent.start()
    gate = os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    c = agent.client()
    script = "echo {task} {gpus} {gpu} ${HOME} {{gpu}} {out}/x > {out}/x; " \
             "test \"$GPUDISPATCH_GPUS\" = fake:$(echo {gpu} | sed s/,/,fake:/)"
    c.submit([script], needs={"gpus": 2}, replace=True)
    c.submit(["test {gpu} = '{gpu}' && test -z \"$GPUDISPATCH_PORT\""], batch="plain")
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal(outcomes(c, 1) + outcomes(c, 2), ["ok", "ok"])
    words = pathlib.Path(agent.state, "out/1.1/x").read_text().split()
    equal(words[:2] + words[4:], ["1.1", "2", f"{agent.state}/work/1.1.1/x"])
    equal(words[3], "{gpu}")
    equal(len(words[2].split(",")), 2)


def free_ports(n):
    """The first of n ports in a row that can be bound."""
    for first in range(23000 + os.getpid() % 5000, 30000):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + n):
                    stack.enter_context(socket.socket()).bind(("", port))
                return first
            except OSError:
                continue
    raise RuntimeError("no free ports")


def ports(agent):
    """No two commands that run have a port, also where another agent has started one of them."""
    first = free_ports(4)
    agent.options = ["--ports", f"{first}-{first + 3}"]
    agent.start()
    gate = os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    started = f"{agent.directory}/started"
    line = f"test {{port}} = $GPUDISPATCH_PORT && echo {{port}} >> {started} && read x < {gate}"
    c = agent.client()
    c.submit([line] * 2, replace=True)
    until(lambda: len(lines(started)) == 2, "two commands")
    agent.kill()
    agent.start()
    c = agent.client()
    c.submit([line] * 3, batch="more", replace=True)
    until(lambda: len(lines(started)) > 4 or "no TCP port" in agent.said(), "a port too many")
    until(lambda: len(lines(started)) >= 4, "four commands")
    equal(sorted(int(p) for p in lines(started)), list(range(first, first + 4)))
    with open(gate, "w") as f:
        f.write("go\n" * 5)
        f.flush()
        c.ask("wait", batch="1")
        c.ask("wait", batch="2")
    equal(outcomes(c, 1) + outcomes(c, 2), ["ok"] * 5)


def long_lines(agent):
    """A line of a shell that is too long for an argument runs from a file."""
    agent.start()
    c = agent.client()
    limit = 131071
    start = "echo {task} $0 > {out}/x; test $GPUDISPATCH_ATTEMPT = 2; exit $? #"
    for n in (limit - 1000, limit - 1, 16 << 20):  # the values make the second one too long
        c.submit([start.ljust(n, "x")], replace=True, retries={"error": 1})
    for i in range(3):
        c.ask("wait", batch=str(i + 1))
        equal([(t["outcome"], t["attempt"]) for t in c.tasks(i + 1)], [("ok", 2)])
    for i, text in enumerate(["1.1 /bin/sh", f"2.1 {agent.state}/run/2.1.2.sh",
                              f"3.1 {agent.state}/run/3.1.2.sh"]):
        equal(pathlib.Path(agent.state, f"out/{i + 1}.1/x").read_text(), text + "\n")
    equal(list(pathlib.Path(agent.state, "run").iterdir()), [])
    for argv in (["/bin/sh", "-c", "x" * ((16 << 20) + 1)], ["echo", "x" * (limit + 1)],
                 ["/bin/sh", "-c", "x", "x" * (limit + 1)], ["/bin/sh", "-c", "{out}" * 40000]):
        try:
            c.submit([argv], batch="refused", replace=True)
        except Refused as e:
            assert "the maximum is" in str(e), e
        else:
            equal(argv[2][:5], "{out}")
    c.ask("wait", batch="4")
    equal(outcomes(c, 4), ["error"])


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
        equal(outcomes(other, batch), ["cancelled"] * 12)
        until(lambda: len(agent.processes("sleep")) == 1, "the ends")
        c = agent.client()
    equal([t["state"] for t in other.tasks(1)], ["running"])


def descriptors(agent):
    """The soft limit of open files is that of the commands, and not the agent's own."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 2000:
        print("skipped: the hard limit of open files is too low")
        return
    agent.options = ["--cpus", "120"]
    agent.popen["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (800, hard))
    agent.start()
    gate, started = os.path.join(agent.directory, "gate"), f"{agent.directory}/started"
    os.mkfifo(gate)
    c = agent.client()
    c.submit([f"ulimit -Sn >> {started}; read x < {gate}"] * 110, needs={"gpus": 0, "cpus": 1})
    until(lambda: len(lines(started)) == 110, "110 commands at a time")
    equal(set(lines(started)), {"800"})
    with open(gate, "w") as f:
        f.write("go\n" * 110)
        f.flush()
        c.ask("wait", batch="1")
    equal(set(outcomes(c, 1)), {"ok"})


def out_of_memory(agent):
    """A command without memory on its GPU gets it alone at the retry, with twice the memory."""
    agent.start()
    gate = os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
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
    agent.start()
    c = agent.client()
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
    gate = os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    agent.start()
    c = agent.client()
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
    with open(gate, "w") as f:
        f.write("go\n")
    until(lambda: not agent.processes("gpud-runner"), "the end of the runner")
    pathlib.Path(plain).write_text("true # edited before an agent booked the end\n")
    agent.start()
    c = agent.client()
    c.ask("wait", batch="1")
    equal(outcomes(c, 1), ["ok"] * 3)
    equal(list(pathlib.Path(agent.state, "run").iterdir()), [])
    equal([p["how"] for p in submit(**{"try": True})["placed"]], ["joined", "joined", "changed"])
    pathlib.Path(script).write_text("true # edited\n")
    equal([(p["how"], p.get("file")) for p in submit(**{"try": True})["placed"]],
          [("changed", script), ("joined", None), ("changed", plain)])
    reply = submit(join_anyway=True)
    equal((reply["joined"], reply["changed"]), (3, 0))


def limits(agent):
    """A task that exceeds its limit is TIMEOUT, and a cancelled one CANCELLED."""
    agent.start()
    c = agent.client()
    c.submit(["sleep 600"], limit=200 * 10**6)
    c.submit(["sleep 600", "sleep 600"], batch="other")
    until(lambda: len(c.ask("tasks", batch="2", states=["running"])["tasks"]) == 2, "two that run")
    equal(c.ask("cancel", tasks=["2.1"])["running"], 1)
    c.ask("wait", batch="1")
    c.ask("wait", tasks=["2.1"])
    equal(outcomes(c, 1) + outcomes(c, 2), ["timeout", "cancelled", None])


def retries(agent):
    """Q7: a task that is tried again keeps its place, and each attempt is recorded."""
    agent.start()
    c = agent.client()
    c.submit(["test $GPUDISPATCH_ATTEMPT = 3"], retries={"error": 2})
    c.ask("wait", batch="1")
    equal(outcomes(c, 1), ["ok"])
    equal(c.tasks(1)[0]["attempt"], 3)


def many(agent):
    """More tasks than a window has, of two shapes, on more devices than one."""
    agent.start()
    c = agent.client()
    c.submit(["true"] * 300)
    c.submit(["true"] * 100, batch="cpu", needs={"gpus": 0, "cpus": 1})
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal(set(outcomes(c, 1)) | set(outcomes(c, 2)), {"ok"})


def stopped_agent(agent):
    """Q4: commands go on without an agent, and are adopted."""
    agent.start()
    gate = os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    c = agent.client()
    c.submit([f"echo $GPUDISPATCH_TASK >> {agent.directory}/started; read x < {gate}"] * 8)
    until(lambda: len(lines(f"{agent.directory}/started")) == 8, "eight commands")
    equal(agent.stop(), 0)
    agent.start()
    c = agent.client()
    equal([t["state"] for t in c.tasks(1)], ["running"] * 8)
    with open(gate, "w") as f:
        f.write("go\n" * 8)
        f.flush()
        c.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"]) for t in c.tasks(1)], [("ok", 1)] * 8)
    equal(len(lines(f"{agent.directory}/started")), 8)


def ended_meanwhile(agent):
    """Q4: what ended while no agent ran is booked, and its outputs are published."""
    agent.start()
    gate = os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    c = agent.client()
    c.submit([f"read x < {gate}; echo $x > $GPUDISPATCH_OUT/x"])
    until(lambda: agent.processes("sh"), "a command")
    agent.kill()
    with open(gate, "w") as f:
        f.write("late\n")
    until(lambda: not agent.processes("gpud-runner"), "the end of the runner")
    agent.start()
    c = agent.client()
    equal(outcomes(c, 1), ["ok"])
    equal(pathlib.Path(agent.state, "out/1.1/x").read_text(), "late\n")


def ended_before_its_start(agent):
    """Q4: a runner that could not start its command has an end without a start: it returns."""
    agent.start()
    agent.client().submit(["sleep 600"])
    until(lambda: agent.processes("sleep"), "a command")
    agent.kill()
    agent.end()
    until(lambda: not agent.processes(), "the end of all")
    record = pathlib.Path(agent.state, "run/1.1.1")
    end = "end how=failed step=runner outputs=none status=24" + "".join(
        f" {name}={n}" for name, n in (
            ("core", 0), ("soft", 0), ("hard", 0), ("monotonic", 1), ("wall", 1), ("log_bytes", 0),
            ("log_freed", 0), ("log_lost", 0), ("log_error", 0), ("swept", 0), ("left", 0)))
    head, runner = record.read_text().splitlines(keepends=True)[:2]
    record.write_text(f"{head}{runner}{end} sum={zlib.crc32(end.encode()):08x}\n")
    agent.start()
    assert "1 tasks were running: 0 go on, 0 have ended, 1 returned" in agent.said(), agent.said()


def killed_runner(agent):
    """Q4: the command of a killed runner is swept, and only then its task is CRASHED."""
    agent.start()
    c = agent.client()
    c.submit(["setsid sleep 600 & sleep 600"])
    until(lambda: len(agent.processes("sleep")) == 2, "two processes of a command")
    os.kill(agent.processes("gpud-runner")[0], signal.SIGKILL)
    c.ask("wait", batch="1")
    equal(outcomes(c, 1), ["crashed"])
    equal(agent.processes("sleep"), [])


def power_cut(agent):
    """Q4: after another boot what ran is LOST: back at its place, uncharged."""
    agent.start()
    c = agent.client()
    c.submit(["echo x >> $F; test $(wc -l < $F) -gt 1 || sleep 600"],
             environment=[f"PATH={os.environ['PATH']}", f"F={agent.directory}/ran"])
    c.submit(["sleep 600"], batch="once", at_most_once=True)
    until(lambda: len(agent.processes("sleep")) == 2, "two commands")
    agent.end()
    other_boot(agent)
    for record in pathlib.Path(agent.state, "run").iterdir():
        record.unlink()
    agent.start()
    c = agent.client()
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    task = c.tasks(1)[0]
    equal((task["outcome"], task["attempt"], task["charged"]), ("ok", 2, 1))
    equal(outcomes(c, 2), ["lost"])


STOPPABLE = [  # commands, which end with `ok` at the first attempt that is not stopped
    "sleep 600",  # ended by SIGTERM
    "sleep 600; exit 1",
    "trap 'exit 3' TERM; sleep 600 & wait $!",
    "trap '' TERM HUP; sleep 600; sleep 600",  # ended by SIGKILL
    "setsid sleep 600 & sleep 600",
    "trap 'kill -9 $$' TERM; sleep 600 & wait $!",
]


def submit_stoppable(agent, rounds):
    """Each command stays for this number of attempts."""
    c = agent.client()
    more = "echo x >> $F.$GPUDISPATCH_TASK; test $(wc -l < $F.$GPUDISPATCH_TASK) -le $N || exit 0; "
    where = {"environment": [f"PATH={os.environ['PATH']}", f"F={agent.directory}/ran",
                             f"N={rounds}"]}
    c.submit([more + command for command in STOPPABLE], **where)
    c.submit([more + "sleep 600"], batch="once", at_most_once=True, **where)
    c.submit([more + "trap 'exit 0' TERM; sleep 600 & wait"], batch="saves", **where)


def await_stoppable(agent, wanted):
    until(lambda: len(set(agent.processes("sleep"))) == wanted, f"{wanted} commands")


def stop_all(agent, order):
    """As a reboot and a logout do it: the agent, SIGTERM to the rest, and SIGKILL at last."""
    equal(agent.stop(), 0)
    runners = agent.processes("gpud-runner")
    commands = [pid for pid in agent.processes() if pid not in runners]
    for pid in order(runners, commands):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    stubborn = STOPPABLE.index("trap '' TERM HUP; sleep 600; sleep 600")
    records = pathlib.Path(agent.state, "run")

    def settled():
        """All but the stubborn command have an end, and that one has a stop."""
        texts = {r.name: r.read_text() for r in records.iterdir() if r.name.count(".") == 2}
        return all("\nend " in text or "\nstop " in text and
                   name.startswith(f"1.{stubborn + 1}.") for name, text in texts.items())
    until(settled, "the ends")
    for pid in agent.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not agent.processes(), "an end of all")


def other_boot(agent):
    with contextlib.closing(sqlite3.connect(os.path.join(agent.state, "queue.db"))) as file, file:
        boot = "00000000-0000-4000-8000-000000000000"
        file.execute("UPDATE attempt SET run = substr(run, 1, 33) || ?", [boot])


def stopped_machine(agent, between):
    """Two stops: no task is charged."""
    def shuffled(runners, commands):
        everything = runners + commands
        random.Random(os.environ.get("T_SEED")).shuffle(everything)
        return everything
    agent.start()
    submit_stoppable(agent, 2)
    await_stoppable(agent, len(STOPPABLE) + 3)
    stop_all(agent, lambda runners, commands: commands + runners)
    between(agent)
    agent.start()
    await_stoppable(agent, len(STOPPABLE) + 1)
    equal([agent.client().tasks(batch)[0]["outcome"] for batch in (2, 3)], ["lost", "ok"])
    stop_all(agent, shuffled)
    between(agent)
    agent.start()
    c = agent.client()
    c.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"], t["charged"]) for t in c.tasks(1)],
          [("ok", 3, 1)] * len(STOPPABLE))


def reboot(agent):
    """Q4: after a clean reboot what ran is LOST: back at its place, uncharged."""
    stopped_machine(agent, other_boot)


def logout(agent):
    """Q4: a logout that ends all processes is no failure of a task."""
    stopped_machine(agent, lambda agent: None)


def killed_without_agent(agent):
    """Q4: a logout may end all processes with SIGKILL alone: what ran is LOST.  If a runner alone
    was killed, its command has crashed."""
    agent.start()
    c = agent.client()
    c.submit(["test $GPUDISPATCH_ATTEMPT != 1 || sleep 600"] * 4)
    until(lambda: len(agent.processes("sleep")) == 4, "four commands")
    equal(agent.stop(), 0)
    runners = agent.processes("gpud-runner")
    for pid in [pid for pid in agent.processes() if pid not in runners] + runners:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not agent.processes(), "an end of all")
    agent.start()
    c = agent.client()
    c.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"], t["charged"]) for t in c.tasks(1)], [("ok", 2, 1)] * 4)
    c.submit(["sleep 600"], batch="runner")
    until(lambda: agent.processes("sleep"), "a command")
    equal(agent.stop(), 0)
    os.kill(agent.processes("gpud-runner")[0], signal.SIGKILL)
    until(lambda: not agent.processes("gpud-runner"), "the end of the runner")
    agent.start()
    equal(outcomes(agent.client(), 2), ["crashed"])


def stopped_runner(agent):
    """Q4: SIGTERM to a runner loses the attempt; an agent that runs starts another one."""
    agent.start()
    c = agent.client()
    c.submit(["test $GPUDISPATCH_ATTEMPT != 1 || sleep 600"])
    c.submit(["sleep 600"], batch="once", at_most_once=True)
    until(lambda: len(agent.processes("sleep")) == 2, "two commands")
    for pid in agent.processes("gpud-runner"):
        os.kill(pid, signal.SIGTERM)
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal([(t["outcome"], t["attempt"], t["charged"]) for t in c.tasks(1)], [("ok", 2, 1)])
    equal(outcomes(c, 2), ["lost"])


def orders_are_no_stops(agent):
    """A command that a person ends has crashed.  A limit and a cancel keep their outcomes, also
    after a stop."""
    agent.start()
    c = agent.client()
    c.submit(["exec sleep 600"])
    until(lambda: agent.processes("sleep"), "a command")
    os.kill(agent.processes("sleep")[0], signal.SIGTERM)
    c.submit(["sleep 600"] * 2, batch="limit", limit=200 * 10**6)
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal([outcomes(c, 1), outcomes(c, 2)], [["crashed"], ["timeout"] * 2])
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
    equal([outcomes(c, 3), outcomes(c, 4)], [["timeout"], ["cancelled"]])


def paused(agent):
    """Q7: a pause and a drain outlive the agent."""
    agent.start()
    c = agent.client()
    c.ask("pause")
    c.submit(["true"])
    agent.kill()
    agent.start()
    c = agent.client()
    equal([t["state"] for t in c.tasks(1)], ["ready"])
    c.ask("resume")
    c.ask("wait", batch="1")
    equal(outcomes(c, 1), ["ok"])


def evicted(agent):
    """Q4: a device that is drained at once loses its task, which runs elsewhere, uncharged."""
    agent.start()
    c = agent.client()
    c.submit(["echo $GPUDISPATCH_GPUS >> $F; test $(wc -l < $F) -gt 1 || sleep 600"],
             environment=[f"PATH={os.environ['PATH']}", f"F={agent.directory}/ran"])
    until(lambda: lines(f"{agent.directory}/ran"), "a command")
    first = lines(f"{agent.directory}/ran")[0]
    c.ask("drain", device=first, reason="ECC", now=True)
    c.ask("wait", batch="1")
    second = lines(f"{agent.directory}/ran")[1]
    assert second != first, (first, second)
    task = c.tasks(1)[0]
    equal((task["outcome"], task["attempt"], task["charged"]), ("ok", 2, 1))
    c.ask("undrain", device=first)


def stop_drain(agent):
    """`stop` with "drain": what runs ends, and what waits stays."""
    agent.start()
    gate = os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    c = agent.client()
    c.submit([f"read x < {gate}"] * 8 + ["true"] * 20)
    until(lambda: len(agent.processes("sh")) == 8, "eight commands")
    c.ask("stop", how="drain")
    with open(gate, "w") as f:
        f.write("go\n" * 8)
        f.flush()
        equal(agent.process.wait(60), 0)
    agent.start()
    c = agent.client()
    c.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"]) for t in c.tasks(1)], [("ok", 1)] * 28)


def cancelled_and_killed(agent):
    """Q10: a wish to cancel outlives the agent that had it."""
    agent.start()
    c = agent.client()
    c.submit(["trap '' TERM; sleep 600 & wait; sleep 600"])
    until(lambda: agent.processes("sleep"), "a command")
    c.ask("cancel", tasks=["1.1"])
    agent.kill()
    agent.start()
    c = agent.client()
    c.ask("wait", batch="1")
    equal(outcomes(c, 1), ["cancelled"])
    until(lambda: not agent.processes(), "the end of the command")


def other_devices(agent):
    """Q4: an agent that has not the device of a command that runs adopts it all the same."""
    agent.start()
    gate = os.path.join(agent.directory, "gate")
    os.mkfifo(gate)
    c = agent.client()
    c.submit([f"read x < {gate}"] * 8)
    until(lambda: len(agent.processes("sh")) == 8, "eight commands")
    agent.kill()
    agent.devices = "fake:2"
    agent.start()
    c = agent.client()
    with open(gate, "w") as f:
        f.write("go\n" * 8)
        f.flush()
        c.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"]) for t in c.tasks(1)], [("ok", 1)] * 8)


def set_needs(agent):
    """Q7: tasks that get other needs while they wait run, more than a window has."""
    agent.start()
    c = agent.client()
    c.ask("pause")
    c.submit(["true"] * 300)
    c.ask("set", batch="1", needs={"gpus": 1, "memory": 1 << 30})
    c.ask("resume")
    c.ask("wait", batch="1")
    equal(set(outcomes(c, 1)), {"ok"})
    c.submit(["true"] * 3, batch="more")
    c.ask("wait", batch="2")


def drained_meanwhile(agent):
    """A device that is drained and returned again and again costs no task its end."""
    agent.start()
    c, other = agent.client(), agent.client()
    c.submit(["true"] * 400)
    c.send({"id": 1, "do": "wait", "batch": "1"})
    for i in range(40):
        other.ask("drain", device=f"fake:{i % 8}", now=i % 3 == 0)
        other.ask("undrain", device=f"fake:{i % 8}")
    equal(c.receive()["ok"], True)
    equal({t["state"] for t in other.tasks(1)}, {"done"})


def many_clients(agent):
    """More clients than the agent takes at a time: the others wait for their turn."""
    agent.start()
    clients = [agent.client() for _ in range(256)]
    waiting = socket.socket(socket.AF_UNIX)
    waiting.settimeout(60)
    waiting.connect(os.path.join(agent.state, "socket"))
    waiting.sendall(b'{"hello":"gpudispatch-queue","version":1}\n')
    for c in clients:
        c.close()
    equal(b"agent" in waiting.recv(1000), True)
    waiting.close()
    equal(agent.client().ask("batches")["batches"], [])


def devices_to_come(agent):
    """A task for devices that are not here waits, and costs no other task its turn."""
    agent.start()
    c = agent.client()
    reply = c.ask("submit", batch={"name": "big"}, tasks=[{"spec": 0, "argv": ["true"]}],
                  specs=[{"cwd": "/", "needs": {"gpus": 9}}], allow_wait=True)
    equal(reply["added"], 1)
    c.submit(["true"] * 100)
    c.ask("wait", batch="2")
    equal(set(outcomes(c, 2)), {"ok"})
    equal([t["state"] for t in c.tasks(1)], ["ready"])


def many_requests(agent):
    """More different requests than a dispatcher takes at a time."""
    agent.start()
    c = agent.client()
    specs = [{"cwd": "/", "priority": i, "needs": {"gpus": 1, "memory": (i % 40 + 1) << 20}}
             for i in range(1200)]
    c.ask("submit", batch={"name": "all"}, specs=specs,
          tasks=[{"spec": i, "argv": ["true"]} for i in range(1200)])
    c.ask("wait", batch="1")
    equal(set(outcomes(c, 1)), {"ok"})


def broken_runner(agent):
    """A runner that cannot run costs no task an attempt: they wait until it can."""
    good, agent.runner = agent.runner, "/bin/false"
    agent.start()
    c = agent.client()
    c.submit(["true"] * 10)
    until(lambda: "nothing starts" in agent.said() or c.tasks(1)[0]["attempt"] > 0, "a start")
    agent.kill()
    agent.runner = good
    agent.start()
    c = agent.client()
    c.ask("wait", batch="1")
    equal({(t["outcome"], t["charged"]) for t in c.tasks(1)}, {("ok", 1)})


def stop_cancel(agent):
    """`stop` with "cancel" ends what runs, also what the dispatcher does not have."""
    agent.start()
    c = agent.client()
    c.submit(["sleep 600"] * 8)
    until(lambda: len(agent.processes("sleep")) == 8, "eight commands")
    agent.kill()
    agent.devices = "fake:2"
    agent.start()
    c = agent.client()
    c.ask("stop", how="cancel")
    equal(agent.process.wait(60), 0)
    equal(agent.processes(), [])
    agent.start()
    equal(set(outcomes(agent.client(), 1)), {"cancelled"})


def two_agents(agent):
    """Q12: the second agent of a state directory is refused."""
    agent.start()
    other = Agent(sys.argv[1], agent.directory)
    try:
        other.start()
        raise AssertionError("it started")
    except RuntimeError:
        equal(other.process.wait(), 75)
    equal(agent.client().hello["version"], 1)


def killed_agents(agent):
    """Q4: agents are killed at any instant: no command is started twice, none is forgotten."""
    kills = int(os.environ.get("T_KILLS", 25 if EFFORT else 8))
    draw = random.Random(int(os.environ.get("T_SEED", 1)))
    tasks = kills * 8
    agent.start()
    c = agent.client()
    c.submit([f"echo $GPUDISPATCH_TASK >> {agent.directory}/started;"
              f" sleep 0.0{draw.randrange(10)}" for _ in range(tasks)])
    for _ in range(kills):
        done = len(lines(f"{agent.directory}/started"))
        if done < tasks:
            target = done + draw.randrange(12)
            until(lambda: len(lines(f"{agent.directory}/started")) >= min(target, tasks), "starts")
        agent.kill()
        agent.start()
    c = agent.client()
    c.ask("wait", batch="1")
    rows = c.tasks(1)
    equal({t["outcome"] for t in rows}, {"ok"})
    started = lines(f"{agent.directory}/started")
    equal(len(started), tasks)
    equal(len(set(started)), tasks)


def killed_anything(agent):
    """Q4: agents, runners, commands and clients are killed.  Each task ends once; no attempt is
    started twice, and nothing is left running."""
    kills = int(os.environ.get("T_KILLS", 25 if EFFORT else 8))
    draw = random.Random(int(os.environ.get("T_SEED", 1)))
    tasks = kills * 8
    agent.start()
    c = agent.client()
    c.submit([f"echo $GPUDISPATCH_TASK.$GPUDISPATCH_ATTEMPT >> {agent.directory}/started;"
              f" sleep 0.0{draw.randrange(10)} & wait" for _ in range(tasks)],
             retries={"crash": 2})
    for _ in range(kills):
        done = len(lines(f"{agent.directory}/started"))
        until(lambda: len(lines(f"{agent.directory}/started")) > done or
              not agent.client().ask("tasks", batch="1", states=["ready", "running"])["tasks"],
              "a start")
        what = draw.choice(["agent", "gpud-runner", "sh", "sleep", "client"])
        if what == "agent":
            agent.kill()
            agent.start()
        elif what == "client":
            agent.client().send({"id": 1, "do": "wait", "batch": "1"})
        else:
            for pid in agent.processes(what)[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    c = agent.client()
    c.ask("wait", batch="1")
    rows = c.tasks(1)
    equal({t["outcome"] for t in rows} <= {"ok", "crashed", "error"}, True)
    started = lines(f"{agent.directory}/started")
    equal(len(set(started)), len(started))
    assert sum(t["outcome"] == "ok" for t in rows) > tasks // 2
    for t in rows:
        known = {int(s.split(".")[2]) for s in started if s.startswith(t["task"] + ".")}
        assert known <= set(range(1, t["attempt"] + 1)), (t, known)
    equal(agent.processes(), [])


def settings(agent):
    """The agent reads its config file, and the command line comes first; a fault has its line."""
    config = pathlib.Path(agent.directory, "config")
    config.write_text("devices = fake:3\nlog-limit = 64K\n")
    agent.options = ["--config", str(config)]
    agent.start()
    c = agent.client()
    equal(c.ask("status")["devices"], 8)
    c.submit(["yes | head -c 8000000"])
    c.ask("wait", batch="1")
    kept = os.stat(os.path.join(agent.state, "logs/1.1.1")).st_blocks * 512
    assert 1 << 20 <= kept < 2 << 20, kept
    agent.stop()
    for text, fault in (("device = 3\n", "config:1: 'device' is no key"),
                        ("cpus = 4\n[class a]\n", "config:2: [class a] has neither plugin")):
        config.write_text(text)
        try:
            agent.start()
            raise AssertionError("a wrong config is accepted")
        except RuntimeError as error:
            assert fault in str(error), str(error)
        equal(agent.process.wait(60), 2)


CASES = [ends, outputs, out_of_memory, names_of_the_start, ports, changed_files, long_lines,
         attached, descriptors, limits, retries, many, stopped_agent, ended_meanwhile,
         ended_before_its_start, killed_runner, power_cut, reboot, logout, killed_without_agent,
         stopped_runner, orders_are_no_stops, paused, evicted, stop_drain, cancelled_and_killed,
         other_devices, set_needs, drained_meanwhile, many_clients, devices_to_come, settings,
         many_requests, broken_runner, stop_cancel, two_agents, killed_agents, killed_anything]

if __name__ == "__main__":
    sys.exit(run("queue-agent", CASES))
