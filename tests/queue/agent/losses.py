#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a new agent finds after an end of agents, runners, commands or the machine.

usage: losses.py BUILD_DIRECTORY [CASE...]

T_KILLS says how often cases `killed_agents` and `killed_anything` kill.
"""
import contextlib
import os
import pathlib
import random
import select
import signal
import sqlite3
import subprocess
import sys
import zlib

sys.dont_write_bytecode = True
from agent import until, words  # noqa: E402
from cases import equal, run  # noqa: E402

EFFORT = os.environ.get("T_EFFORT") == "all"


def stopped_agent(agent):
    """Q4: commands go on without an agent, and are adopted."""
    agent.start()
    gate = agent.gate()
    c = agent.client()
    c.submit([f"echo $GPUDISPATCH_TASK >> {agent.directory}/started; read x < {gate}"] * 8)
    until(lambda: len(words(f"{agent.directory}/started")) == 8, "eight commands")
    equal(agent.stop(), 0)
    c = agent.start().client()
    equal([t["state"] for t in c.tasks(1)], ["running"] * 8)
    with gate.opened(8):
        c.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"]) for t in c.tasks(1)], [("ok", 1)] * 8)
    equal(len(words(f"{agent.directory}/started")), 8)


def ended_meanwhile(agent):
    """Q4: what ended while no agent ran is booked, and its outputs are published."""
    agent.start()
    gate = agent.gate()
    c = agent.client()
    c.submit([f"read x < {gate}; echo $x > $GPUDISPATCH_OUT/x"])
    until(lambda: agent.processes("sh"), "a command")
    agent.kill()
    with open(gate, "w") as f:
        f.write("late\n")
    until(lambda: not agent.processes("gpud-runner"), "the end of the runner")
    c = agent.start().client()
    equal(c.outcomes(1), ["ok"])
    equal(pathlib.Path(agent.state, "out/1.1/x").read_text(), "late\n")


DEEP = """
import os, sys
os.chdir(os.environ["GPUDISPATCH_OUT"])
for i in range(2500):
    os.mkdir("dd")
    os.chdir("dd")
sys.exit(1)
"""


def odd_outputs(agent):
    """Q5: outputs that are no directory fail their task.  Directories that cannot be removed, or
    are very deep, keep no agent from its start."""
    c = agent.start().client()
    c.submit(["rmdir $GPUDISPATCH_OUT; ln -s /etc $GPUDISPATCH_OUT",
              "rmdir $GPUDISPATCH_OUT; echo x > $GPUDISPATCH_OUT",
              ["python3", "-c", DEEP]])
    c.ask("wait", batch="1")
    equal(c.outcomes(1), ["error"] * 3)
    equal(os.listdir(f"{agent.state}/work") + os.listdir(f"{agent.state}/out"), [])
    equal(agent.stop(), 0)
    busy = f"{agent.state}/work/9.9.1"
    os.mkdir(busy)
    pathlib.Path(agent.state, "work/1.1.1").write_text("of an older agent")
    agent.before = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', busy]
    if subprocess.run([*agent.before, "true"], capture_output=True).returncode != 0:
        agent.before = []
    c = agent.start().client()
    equal(f"{busy}: remove: Device or resource busy" in agent.said(), agent.before != [])
    c.submit(["true"], batch="next")
    c.ask("wait", batch="2")
    equal(os.listdir(f"{agent.state}/work"), ["9.9.1"] if agent.before else [])


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
    c = agent.start().client()
    c.submit(["setsid sleep 600 & sleep 600"])
    until(lambda: len(agent.processes("sleep")) == 2, "two processes of a command")
    os.kill(agent.processes("gpud-runner")[0], signal.SIGKILL)
    c.ask("wait", batch="1")
    equal(c.outcomes(1), ["crashed"])
    equal(agent.processes("sleep"), [])


THREAD = """
import ctypes, os, platform, sys, threading
def work():
    with open(sys.argv[1], "w") as alive:
        alive.write(f"{os.getpid()} ")
        alive.flush()
        open(sys.argv[2]).read()
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)
"""


def ended_main_thread(agent):
    """Q3: a process whose main thread has ended is swept with the rest of its command, in the
    session of the command and in another one."""
    c = agent.start().client()
    alive, gate = agent.gate("alive"), agent.gate()
    command = f"python3 -c '{THREAD}' {alive} {gate}"
    for batch, line in enumerate((f"exec {command}", f"setsid {command} & sleep 600")):
        reader = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
        c.submit([line], batch=str(batch))
        until(lambda: select.select([reader], [], [], 0)[0], "its thread")
        stat = pathlib.Path("/proc", os.read(reader, 20).decode().strip(), "stat")
        until(lambda: ") Z " in stat.read_text(), "the end of its main thread")
        os.kill(agent.processes("gpud-runner")[0], signal.SIGKILL)
        c.ask("wait", batch=str(batch + 1))
        equal(c.outcomes(batch + 1), ["crashed"])
        equal(os.read(reader, 10), b"")  # no process has the other end
        os.close(reader)


def evicted(agent):
    """Q1: an agent that is killed after it has acknowledged a drain at once loses no task by it: a
    command that the drain ends returns, uncharged, whether its runner was killed or not."""
    for batch, number in ("1", signal.SIGCONT), ("2", signal.SIGKILL):
        c = agent.start().client()
        c.submit(["test $GPUDISPATCH_ATTEMPT != 1 || exec sleep 600"], batch=batch,
                 needs={"on": "fake:0"})
        until(lambda: agent.processes("sleep"), "a command")
        runner, = agent.processes("gpud-runner")
        os.kill(runner, signal.SIGSTOP)
        c.ask("drain", device="fake:0", now=True)
        c.ask("status")  # in a later turn than the signal to the runner
        agent.kill()
        os.kill(runner, number)
        until(lambda: not agent.processes("gpud-runner"), "the end of the runner")
        c = agent.start().client()
        attempt, = c.ask("attempts", task=f"{batch}.1")["attempts"]
        equal((attempt.get("returned"), attempt["charged"]), ("device fault", False))
        c.ask("undrain", device="fake:0")
        c.ask("wait", batch=batch)
        task, = c.tasks(batch)
        equal((task["outcome"], task["attempt"], task["charged"]), ("ok", 2, 1))
        equal(agent.stop(), 0)


def power_cut(agent):
    """Q4: after another boot what ran is LOST: back at its place, uncharged."""
    c = agent.start().client()
    c.submit(["echo x >> $F; test $(wc -l < $F) -gt 1 || sleep 600"],
             environment=[f"PATH={os.environ['PATH']}", f"F={agent.directory}/ran"])
    c.submit(["sleep 600"], batch="once", at_most_once=True)
    until(lambda: len(agent.processes("sleep")) == 2, "two commands")
    agent.end()
    other_boot(agent)
    for record in pathlib.Path(agent.state, "run").iterdir():
        record.unlink()
    c = agent.start().client()
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    task = c.tasks(1)[0]
    equal((task["outcome"], task["attempt"], task["charged"]), ("ok", 2, 1))
    equal(c.outcomes(2), ["lost"])


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
    c = agent.start().client()
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
    c = agent.start().client()
    c.submit(["test $GPUDISPATCH_ATTEMPT != 1 || sleep 600"] * 4)
    until(lambda: len(agent.processes("sleep")) == 4, "four commands")
    equal(agent.stop(), 0)
    runners = agent.processes("gpud-runner")
    for pid in [pid for pid in agent.processes() if pid not in runners] + runners:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not agent.processes(), "an end of all")
    c = agent.start().client()
    c.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"], t["charged"]) for t in c.tasks(1)], [("ok", 2, 1)] * 4)
    c.submit(["sleep 600"], batch="runner")
    until(lambda: agent.processes("sleep"), "a command")
    equal(agent.stop(), 0)
    os.kill(agent.processes("gpud-runner")[0], signal.SIGKILL)
    until(lambda: not agent.processes("gpud-runner"), "the end of the runner")
    agent.start()
    equal(agent.client().outcomes(2), ["crashed"])


def stopped_runner(agent):
    """Q4: SIGTERM to a runner loses the attempt; an agent that runs starts another one."""
    c = agent.start().client()
    c.submit(["test $GPUDISPATCH_ATTEMPT != 1 || sleep 600"])
    c.submit(["sleep 600"], batch="once", at_most_once=True)
    until(lambda: len(agent.processes("sleep")) == 2, "two commands")
    for pid in agent.processes("gpud-runner"):
        os.kill(pid, signal.SIGTERM)
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal([(t["outcome"], t["attempt"], t["charged"]) for t in c.tasks(1)], [("ok", 2, 1)])
    equal(c.outcomes(2), ["lost"])
    c.submit(["exit 1"], batch="retried", at_most_once=True, retries={"error": 2})
    c.ask("wait", batch="3")
    equal([(t["outcome"], t["attempt"]) for t in c.tasks(3)], [("error", 3)])  # that is no loss


def other_devices(agent):
    """Q4: an agent that has not the device of a command that runs adopts it all the same."""
    agent.start()
    gate = agent.gate()
    c = agent.client()
    c.submit([f"read x < {gate}"] * 8)
    until(lambda: len(agent.processes("sh")) == 8, "eight commands")
    agent.kill()
    agent.devices = "fake:2"
    c = agent.start().client()
    with gate.opened(8):
        c.ask("wait", batch="1")
    equal([(t["outcome"], t["attempt"]) for t in c.tasks(1)], [("ok", 1)] * 8)


def killed_agents(agent):
    """Q4: agents are killed at any instant: no command is started twice, none is forgotten."""
    kills = int(os.environ.get("T_KILLS", 25 if EFFORT else 8))
    draw = random.Random(int(os.environ.get("T_SEED", 1)))
    tasks = kills * 8
    c = agent.start().client()
    c.submit([f"echo $GPUDISPATCH_TASK >> {agent.directory}/started;"
              f" sleep 0.0{draw.randrange(10)}" for _ in range(tasks)])
    for _ in range(kills):
        done = len(words(f"{agent.directory}/started"))
        if done < tasks:
            target = done + draw.randrange(12)
            until(lambda: len(words(f"{agent.directory}/started")) >= min(target, tasks), "starts")
        agent.kill()
        c = agent.start().client()
    c.ask("wait", batch="1")
    rows = c.tasks(1)
    equal({t["outcome"] for t in rows}, {"ok"})
    started = words(f"{agent.directory}/started")
    equal(len(started), tasks)
    equal(len(set(started)), tasks)


def killed_anything(agent):
    """Q4: agents, runners, commands and clients are killed.  Each task ends once; no attempt is
    started twice, and nothing is left running."""
    kills = int(os.environ.get("T_KILLS", 25 if EFFORT else 8))
    draw = random.Random(int(os.environ.get("T_SEED", 1)))
    tasks = kills * 8
    c = agent.start().client()
    c.submit([f"echo $GPUDISPATCH_TASK.$GPUDISPATCH_ATTEMPT >> {agent.directory}/started;"
              f" sleep 0.0{draw.randrange(10)} & wait" for _ in range(tasks)],
             retries={"crash": 2})
    for _ in range(kills):
        done = len(words(f"{agent.directory}/started"))
        until(lambda: len(words(f"{agent.directory}/started")) > done or
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
    started = words(f"{agent.directory}/started")
    equal(len(set(started)), len(started))
    assert sum(t["outcome"] == "ok" for t in rows) > tasks // 2
    for t in rows:
        known = {int(s.split(".")[2]) for s in started if s.startswith(t["task"] + ".")}
        assert known <= set(range(1, t["attempt"] + 1)), (t, known)
    equal(agent.processes(), [])


CASES = [stopped_agent, ended_meanwhile, odd_outputs, ended_before_its_start, killed_runner,
         power_cut, reboot, logout, evicted, ended_main_thread, killed_without_agent,
         stopped_runner, other_devices, killed_agents, killed_anything]

if __name__ == "__main__":
    sys.exit(run("queue-losses", CASES))
