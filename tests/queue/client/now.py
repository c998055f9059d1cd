#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The present moment of a queue that runs: metrics, and the live page beside the agent's socket.

usage: now.py BUILD_DIRECTORY [CASE...]
"""
import json
import os
import pathlib
import re
import signal
import socket
import sys
import threading

sys.dont_write_bytecode = True
from cli import PATIENCE, Queue, Skip, equal, run, until  # noqa: E402


def samples(text, family):
    """Values by their labels."""
    return {labels: float(value) for labels, value in
            re.findall(rf"^{family}\{{(.*)\}} (\S+)$", text, re.M)}


def ends(text):
    return samples(text, "gpudispatch_attempts_total")


def live(q):
    """The live page of the queue, and the path of its socket."""
    server = pathlib.Path(q.build) / "view/serve/gpudispatch-serve"
    if not server.exists():
        raise Skip("built without web")
    child = q.start("serve", env={"GPUD_SERVE_PROGRAM": str(server)})
    line = child.stdout.readline().decode()
    return child, line.removeprefix("live page: ").rstrip("\n")


def connect(path, what):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(PATIENCE)
    s.connect(path)
    s.sendall(b"GET " + what + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return s


def get(path, what):
    with connect(path, what) as s:
        got = b""
        while part := s.recv(1 << 16):
            got += part
    return got.partition(b"\r\n\r\n")[2]


# ---- metrics ----

def each_end_is_counted(q):
    """Of attempts that failed and were tried again, and of tasks that never ran.  [V4]"""
    q.agent()
    q.run("run", "--retries", "1", "--fresh", "--array", "1-6", "--", "sh", "-c",
          "exit $(($1 % 2))", "x", "{}", status=3)
    q.submit("--hold", "--", "true")
    q.run("cancel", "2")
    text = q.run("metrics")
    equal(ends(text)['class="command",outcome="ok"'], 3)
    equal(ends(text)['class="command",outcome="error"'], 6)
    equal(ends(text)['class="command",outcome="cancelled"'], 1)
    tasks = samples(text, "gpudispatch_tasks_total")
    equal(tasks, {'class="command",outcome="ok"': 3, 'class="command",outcome="error"': 3,
                  'class="command",outcome="cancelled"': 1})
    equal(samples(text, "gpudispatch_task_run_seconds_count"), {'class="command"': 9})


def a_file_again_and_again(q):
    """It is whole each time; a signal ends it, and removes the map of jobs."""
    q.devices = "fake:1"
    q.agent()
    q.path("map").mkdir()
    child = q.start("metrics", "--file", "x.prom", "--every", "1s", "--job-map", "map")
    until(q.path("x.prom").exists, "a file")
    q.submit("--gpus", "1", "--", "sh", "-c", "read x < go")
    os.mkfifo(q.path("go"))
    until(lambda: os.listdir(q.path("map")), "a map")
    equal(q.path("map/0").read_text(), "1.1\n")
    until(lambda: 'gpudispatch_gpu_state="run"} 1' in q.path("x.prom").read_text(),
          "a GPU that runs")
    assert q.path("x.prom").read_text().endswith("# EOF\n")
    child.send_signal(signal.SIGTERM)
    equal((child.wait(PATIENCE), os.listdir(q.path("map"))), (0, []))
    q.run("cancel", "1")


def without_an_agent(q):
    q.run("metrics", status=4)
    q.run("submit", "--", "true")
    q.run("agent", "stop")
    q.run("metrics", status=4)


# ---- serve ----

def a_page_follows_the_queue(q):
    q.agent()
    child, path = live(q)
    equal(pathlib.Path(path).parent, q.state)
    equal(json.loads(get(path, b"/data")).get("batches", []), [])
    with connect(path, b"/events") as s:
        q.run("run", "--", "true")
        got = b""
        while not re.search(rb'"batch":1,[^}]*"ok":1', got):
            part = s.recv(1 << 16)
            assert part, got
            got += part
    equal(ends(get(path, b"/metrics").decode())['class="command",outcome="ok"'], 1)
    child.send_signal(signal.SIGHUP)
    equal((child.wait(PATIENCE), os.path.exists(path)), (0, False))


def a_page_ends_with_its_agent(q):
    q.agent()
    child, path = live(q)
    q.run("agent", "stop")
    equal((child.wait(PATIENCE), os.path.exists(path)), (4, False))


# ---- All of them ----

READS = {"batches", "tasks", "task", "results", "attempts", "explain", "spans", "records",
         "wait", "follow", "watch", "status", "classes"}


class Listener:
    """Takes the place of the agent's socket, passes bytes on, and keeps the requests."""

    def __init__(self, q):
        self.path, self.agent, self.lines = q.state / "socket", q.state / "of-the-agent", []
        os.rename(self.path, self.agent)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(self.path))
        os.chmod(self.path, 0o600)
        self.socket.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, agent = self.socket.accept()[0], socket.socket(socket.AF_UNIX)
            agent.connect(str(self.agent))
            threading.Thread(target=self.pass_on, args=(client, agent, self.lines.append),
                             daemon=True).start()
            threading.Thread(target=self.pass_on, args=(agent, client, lambda line: None),
                             daemon=True).start()

    @staticmethod
    def pass_on(source, to, keep):
        for line in source.makefile("rb"):
            keep(line)
            to.sendall(line)
        to.shutdown(socket.SHUT_RDWR)

    def requests(self):
        return [line for line in map(json.loads, self.lines) if "hello" not in line]



def no_view_starts_an_agent(q):
    """A view whose agent was killed waits for a while, and ends.  [V6]"""
    q.agent()
    q.run("submit", "--hold", "--", "true")
    view = q.start("top", "--json")
    assert view.stdout.readline(), "no snapshot"
    q.kill()
    equal(view.wait(PATIENCE), 4)
    q.run("agent", "status", status=4)


def views_only_read(q):
    """The requests that each view sends: none of them changes anything.  Those of progress() in
    Python are in python/tests/test_queue.py.  [V6]"""
    q.agent()
    q.run("run", "--", "sh", "-c", "echo x; exit 1", status=1)
    listener = Listener(q)
    for view in (("top", "--once"), ("report", "-o", "x.html"), ("report", "--json"),
                 ("report", "--csv"), ("trace",), ("metrics",),
                 ("explain", "1.1"), ("ls",), ("show", "1.1"), ("log", "1.1")):
        before = len(listener.requests())
        q.run(*view)
        assert listener.requests()[before:], f"{view} sends nothing"
    top = q.start("top", "--json")
    assert top.stdout.readline(), "no snapshot"
    top.kill()
    metrics = q.start("metrics", "--file", "x.prom", "--job-map", ".")
    until(q.path("x.prom").exists, "a file")
    metrics.kill()
    page, path = live(q)
    get(path, b"/data")
    page.kill()
    equal({request["do"] for request in listener.requests()} - READS, set())
    q.run("submit", "--", "true")
    equal({request["do"] for request in listener.requests()} - READS, {"submit"})


if __name__ == "__main__":
    sys.exit(run("queue-now", [
        no_view_starts_an_agent, views_only_read, each_end_is_counted, a_file_again_and_again,
        without_an_agent, a_page_follows_the_queue, a_page_ends_with_its_agent], Queue))
