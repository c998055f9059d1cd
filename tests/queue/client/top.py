#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The verb top with an agent: what it prints, and what its screen shows while tasks run.

The screen itself is tested with made-up nights (tests/view/screens.py, tests/view/terminal.py).

usage: top.py BUILD_DIRECTORY [CASE...]
"""
import contextlib
import json
import os
import pathlib
import re
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "view"))
from cli import Queue, Skip, equal, run, until  # noqa: E402
from pty_program import Terminal  # noqa: E402

# Seconds without a wakeup, which are measured: no event can end them earlier.
IDLE = int(os.environ.get("T_IDLE_S", "2"))
STEADY = 4096  # bytes a second to the terminal, at most


@contextlib.contextmanager
def screen(q, *args):
    """The program on a terminal."""
    terminal = Terminal([f"{q.build}/tools/gpudispatch/gpudispatch", "top", *args],
                        q.environment)
    try:
        terminal.read(lambda: b"read o" in terminal.seen or b"built without" in terminal.seen)
        if b"built without top" in terminal.seen:
            raise Skip("built without ncursesw")
        yield terminal
        terminal.press(b"q")
        equal(terminal.status(), 0)
    finally:
        terminal.close()


def submit_wide(q, tasks=1):
    """A batch whose tasks say hello and then wait for the end of a pipe."""
    os.mkfifo(q.path("gate"))
    q.write("wide", "".join(f"echo hello of {i}; cat gate\n" for i in range(1, tasks + 1)))
    q.submit("--gpus", 1, "wide")


def open_gate(q):
    """Also for tasks that start later."""
    gate = os.open(q.path("gate"), os.O_RDWR)
    q.path(q.write("open", "")).replace(q.path("gate"))
    os.close(gate)
    q.run("wait", "wide")


def once(q):
    """Counts are those of ls, and a GPU runs the task."""
    q.agent()
    q.write("narrow", "true 1\ntrue 2\nexit 3\n")
    q.submit("narrow")
    q.run("wait", "narrow", status=3)
    submit_wide(q)
    until(lambda: q.states("wide") == ["running"], "a task that runs")
    seen = q.run("top", "--once")
    assert re.search(r"^4 tasks: 2 ok  1 BAD  1 run  0 wait", seen, re.M), seen
    assert re.search(r"^\S+ +run +command +2\.1 wide", seen, re.M), seen
    assert re.search(r"^1 narrow +2 +1 +0 +0 ", seen, re.M), seen
    assert "1 task ERROR " in seen and ": exit 3 " in seen, seen
    snapshot, = q.json("top", "--once")
    equal({b["batch"]: b["total"] for b in snapshot["batches"]},
          {int(b["batch"]): b["total"] for b in q.json("ls")})
    open_gate(q)
    assert "\n4 tasks: 3 ok" in q.run("top")  # its output is no terminal


def stream(q):
    """--json prints a line whenever something has changed."""
    q.agent()
    child = q.start("top", "--json", "--at-most-every", "250ms")
    first = json.loads(child.stdout.readline())
    equal(first["batches"], [])
    q.write("narrow", "true\n")
    q.submit("narrow")
    q.run("wait", "narrow")
    last = first
    while not (last["batches"] and last["batches"][0].get("ended")):
        later = json.loads(child.stdout.readline())
        assert later["sequence"] > last["sequence"], (last, later)
        last = later
    child.kill()


def no_agent(q):
    q.run("top", "--once", status=4)
    q.agent()
    q.run("agent", "stop")
    q.run("top", "--once", status=4)
    assert "no agent runs" in q.err, q.err
    for args in ("--at-most-every", "1ms"), ("--at", "02:17"):
        q.run("top", *args, status=2)


def shows_what_happens(q):
    """A task appears on the screen; Enter explains it, and l has its output."""
    q.devices = "fake:1"
    q.agent()
    with screen(q) as terminal:
        at = len(terminal.seen)
        submit_wide(q, 2)
        terminal.read(lambda: b"1.1 wide" in terminal.seen[at:])
        terminal.press(b"l")
        terminal.wait(b"hello of 1")
        terminal.press(b"q")
        terminal.wait(b"GPU")
        terminal.press(b"\t\r")
        terminal.wait(b"gpudispatch explain 1.2")
        terminal.read(lambda: b"1.2 echo hello" in terminal.seen)
        terminal.press(b"q")
        terminal.wait(b"GPU")
        at = len(terminal.seen)
        open_gate(q)
        terminal.read(lambda: b"all done" in terminal.seen[at:])


def an_agent_that_goes_and_comes(q):
    q.agent()
    with screen(q) as terminal:
        q.kill()
        terminal.wait(b"no agent runs")
        at = len(terminal.seen)
        q.agent()
        q.write("narrow", "true\n")
        q.submit("narrow")
        terminal.read(lambda: b"1 narrow" in terminal.seen[at:])


def switches(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.M).group(1))


def sleeps_while_nothing_runs(q):
    """The agent does not wake up, and top at most once a minute, for its clock.  [V1]"""
    q.agent()
    with screen(q) as terminal:
        pids = q.pid(), terminal.pid

        def is_quiet():
            before = [switches(pid) for pid in pids]
            time.sleep(IDLE)
            agent, top = (switches(pid) - n for pid, n in zip(pids, before))
            return agent == 0 and top <= IDLE // 60

        until(is_quiet, f"{IDLE} s without a wakeup")


def writes_little_while_tasks_run(q):
    q.agent()
    submit_wide(q, 8)
    until(lambda: q.states("wide") == ["running"] * 8, "tasks that run")
    with screen(q) as terminal:
        begin, at = time.monotonic(), len(terminal.seen)
        terminal.read(lambda: time.monotonic() > begin + 3)
        rate = (len(terminal.seen) - at) / (time.monotonic() - begin)
        assert 0 < rate <= STEADY, rate
    open_gate(q)


if __name__ == "__main__":
    sys.exit(run("queue-top", [
        once, stream, no_agent, shows_what_happens, an_agent_that_goes_and_comes,
        sleeps_while_nothing_runs, writes_little_while_tasks_run], Queue))
