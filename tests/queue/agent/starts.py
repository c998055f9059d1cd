#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What commands start with, and when: values, ports, descriptors, windows, devices to come.

usage: starts.py BUILD_DIRECTORY [CASE...]
"""
import contextlib
import os
import pathlib
import resource
import socket
import sys

sys.dont_write_bytecode = True
from agent import Agent, Refused, until, words  # noqa: E402
from cases import equal, run  # noqa: E402


def names_of_the_start(agent):
    """Names in braces are the attempt's values, and a port is that of one command at a time."""
    agent.start()
    gate = agent.gate()
    c = agent.client()
    script = "echo {task} {gpus} {gpu} ${HOME} {{gpu}} {out}/x > {out}/x; " \
             "test \"$GPUDISPATCH_GPUS\" = fake:$(echo {gpu} | sed s/,/,fake:/)"
    c.submit([script], needs={"gpus": 2}, replace=True)
    c.submit(["test {gpu} = '{gpu}' && test -z \"$GPUDISPATCH_PORT\""], batch="plain")
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal(c.outcomes(1) + c.outcomes(2), ["ok", "ok"])
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
    gate = agent.gate()
    started = f"{agent.directory}/started"
    line = f"test {{port}} = $GPUDISPATCH_PORT && echo {{port}} >> {started} && read x < {gate}"
    c = agent.client()
    c.submit([line] * 2, replace=True)
    until(lambda: len(words(started)) == 2, "two commands")
    agent.kill()
    c = agent.start().client()
    c.submit([line] * 3, batch="more", replace=True)
    until(lambda: len(words(started)) > 4 or "no TCP port" in agent.said(), "a port too many")
    until(lambda: len(words(started)) >= 4, "four commands")
    equal(sorted(int(p) for p in words(started)), list(range(first, first + 4)))
    with gate.opened(5):
        c.ask("wait", batch="1")
        c.ask("wait", batch="2")
    equal(c.outcomes(1) + c.outcomes(2), ["ok"] * 5)


def long_lines(agent):
    """A line of a shell that is too long for an argument runs from a file."""
    c = agent.start().client()
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
    equal(c.outcomes(4), ["error"])


def descriptors(agent):
    """The soft limit of open files is that of the commands, and not the agent's own."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < 2000:
        print("skipped: the hard limit of open files is too low")
        return
    agent.options = ["--cpus", "120"]
    agent.popen["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (800, hard))
    agent.start()
    gate, started = agent.gate(), f"{agent.directory}/started"
    c = agent.client()
    c.submit([f"ulimit -Sn >> {started}; read x < {gate}"] * 110, needs={"gpus": 0, "cpus": 1})
    until(lambda: len(words(started)) == 110, "110 commands at a time")
    equal(set(words(started)), {"800"})
    with gate.opened(110):
        c.ask("wait", batch="1")
    equal(set(c.outcomes(1)), {"ok"})


def many(agent):
    """More tasks than a window has, of two shapes, on more devices than one."""
    c = agent.start().client()
    c.submit(["true"] * 300)
    c.submit(["true"] * 100, batch="cpu", needs={"gpus": 0, "cpus": 1})
    c.ask("wait", batch="1")
    c.ask("wait", batch="2")
    equal(set(c.outcomes(1)) | set(c.outcomes(2)), {"ok"})


def many_requests(agent):
    """More different requests than a dispatcher takes at a time."""
    c = agent.start().client()
    specs = [{"cwd": "/", "priority": i, "needs": {"gpus": 1, "memory": (i % 40 + 1) << 20}}
             for i in range(1200)]
    c.ask("submit", batch={"name": "all"}, specs=specs,
          tasks=[{"spec": i, "argv": ["true"]} for i in range(1200)])
    c.ask("wait", batch="1")
    equal(set(c.outcomes(1)), {"ok"})


def order_of_many_needs(agent):
    """Q7: tasks of more different needs than the dispatcher has at a time start in one order, also
    those that come later and go first.  The commands run one at a time."""
    agent.program += "-points"
    agent.environment["GPQ_TEST_SHAPES"] = "2"
    c = agent.start().client()
    gate, started = agent.gate(), f"{agent.directory}/started"
    c.submit([f"read x < {gate}"], needs={"gpus": 0, "cpus": 64})
    until(lambda: agent.processes("sh"), "the first command")

    def submit(names, priority=0):
        """The needs are by the letter of the name."""
        specs = [{"cwd": "/", "priority": priority, "environment": [f"PATH={os.environ['PATH']}"],
                  "needs": {"gpus": 1, "cpus": 64, "memory": ord(name[0]) << 20}}
                 for name in names]
        tasks = [{"spec": i, "argv": ["/bin/sh", "-c", f"echo {name} >> {started}"]}
                 for i, name in enumerate(names)]
        return c.ask("submit", batch={"name": names[0]}, specs=specs, tasks=tasks)["batch"]

    order = [f"{letter}{i}" for i in range(3) for letter in "abcdef"]
    submit(order)
    batch = submit(["a9", "g9"])
    submit(["h1", "b9"], priority=5)
    c.ask("pause")
    submit(["i1"], priority=9)
    c.ask("set", tasks=[f"{batch}.2"], front=True)
    c.ask("resume")
    c.ask("cancel", tasks=["2.8"])
    with gate.opened(1):
        for i in range(1, 6):
            c.ask("wait", batch=str(i))
    order.remove("b1")
    equal(words(started), ["i1", "h1", "b9", "g9", *order, "a9"])


def set_needs(agent):
    """Q7: tasks that get other needs while they wait run, more than a window has."""
    c = agent.start().client()
    c.ask("pause")
    c.submit(["true"] * 300)
    c.ask("set", batch="1", needs={"gpus": 1, "memory": 1 << 30})
    c.ask("resume")
    c.ask("wait", batch="1")
    equal(set(c.outcomes(1)), {"ok"})
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


def devices_to_come(agent):
    """A task for devices that are not here waits, and costs no other task its turn."""
    c = agent.start().client()
    reply = c.ask("submit", batch={"name": "big"}, tasks=[{"spec": 0, "argv": ["true"]}],
                  specs=[{"cwd": "/", "needs": {"gpus": 9}}], allow_wait=True)
    equal(reply["added"], 1)
    c.submit(["true"] * 100)
    c.ask("wait", batch="2")
    equal(set(c.outcomes(2)), {"ok"})
    equal([t["state"] for t in c.tasks(1)], ["ready"])


def broken_runner(agent):
    """A runner that cannot run costs no task an attempt: they wait until it can."""
    good, agent.runner = agent.runner, "/bin/false"
    c = agent.start().client()
    c.submit(["true"] * 10)
    until(lambda: "nothing starts" in agent.said() or c.tasks(1)[0]["attempt"] > 0, "a start")
    agent.kill()
    agent.runner = good
    c = agent.start().client()
    c.ask("wait", batch="1")
    equal({(t["outcome"], t["charged"]) for t in c.tasks(1)}, {("ok", 1)})


def reserve(agent):
    """Q9: an agent that opens without space for the reserve starts nothing until there is some.
    Here a directory is in its place."""
    place = pathlib.Path(agent.state, "reserve")
    agent.start()
    equal(agent.stop(), 0)
    size = place.stat().st_size
    place.unlink()
    place.mkdir()
    c = agent.start().client()
    c.submit(["true"])
    status = c.ask("status")
    equal((status["starts_wait"], status["wait_text"]),
          (True, "the disk has no space for the reserve"))
    equal([t["state"] for t in c.tasks(1)], ["ready"])
    place.rmdir()
    c.ask("wait", batch="1")
    equal((c.outcomes(1), place.stat().st_size), (["ok"], size))


def settings(agent):
    """The agent reads its config file, and the command line comes first; a fault has its line."""
    config = pathlib.Path(agent.directory, "config")
    config.write_text("devices = fake:3\nlog-limit = 64K\n")
    agent.options = ["--config", str(config)]
    c = agent.start().client()
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


def paused(agent):
    """Q7: a pause and a drain outlive the agent."""
    c = agent.start().client()
    c.ask("pause")
    c.submit(["true"])
    agent.kill()
    c = agent.start().client()
    equal([t["state"] for t in c.tasks(1)], ["ready"])
    c.ask("resume")
    c.ask("wait", batch="1")
    equal(c.outcomes(1), ["ok"])


CASES = [names_of_the_start, ports, long_lines, descriptors, many, many_requests,
         order_of_many_needs, set_needs, drained_meanwhile, devices_to_come, broken_runner, reserve,
         settings, two_agents, many_clients, paused]

if __name__ == "__main__":
    sys.exit(run("queue-starts", CASES))
