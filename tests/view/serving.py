# SPDX-License-Identifier: MIT
"""Shared by the tests of the live page: the verb serve, its server alone, and their replies."""
import contextlib
import html.parser
import json
import os
import pathlib
import re
import select
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import nights  # noqa: E402
from tool import PATIENCE, equal  # noqa: E402

SERVER = str(pathlib.Path(sys.argv[1]).resolve().parents[2] / "view/serve/gpudispatch-serve")
HOST = b"Host: localhost\r\n"
FRAME = b"data: "


class Page:
    """A live page of a recording; `where` is a path or a port."""

    def __init__(self, tool, *args, night="small"):
        self.tool = tool
        self.process = tool.start(
            "serve", "--from", tool.write("night.txt", nights.text(night)), *args,
            env={"GPUD_SERVE_PROGRAM": SERVER}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.line = self.process.stdout.readline().decode()
        if "--port" in args:
            _, self.where, self.token = re.fullmatch(
                r"live page: (http://localhost:(\d+)/)#([0-9a-f]{32})\n", self.line).groups()
        else:
            self.where, self.token = self.line.removeprefix("live page: ").rstrip("\n"), ""

    def connect(self, family=socket.AF_INET):
        if self.token:
            s = socket.socket(family)
            s.connect(("127.0.0.1" if family == socket.AF_INET else "::1", int(self.where)))
        else:
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.where)
        s.settimeout(PATIENCE)
        return s

    def raw(self, request, family=socket.AF_INET):
        """The whole reply to some bytes; b"" where the server has only closed."""
        with self.connect(family) as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(request)
            return read_all(s)

    def get(self, path, more=b"", method=b"GET", host=HOST):
        return self.raw(method + b" " + path + b" HTTP/1.1\r\n" + host + more + b"\r\n")

    def bearer(self, token=None):
        return b"Authorization: Bearer " + (token or self.token).encode() + b"\r\n"

    def stream(self):
        s = self.connect()
        s.sendall(b"GET /events HTTP/1.1\r\n" + HOST + (self.bearer() if self.token else b"") +
                  b"\r\n")
        return s

    def end(self):
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def socket_page(tool, **more):
    return Page(tool, "--socket", tool.path("live"), **more)


def read_all(s):
    got = b""
    while True:
        try:
            part = s.recv(1 << 16)
        except ConnectionResetError:
            return got
        if not part:
            return got
        got += part


def read_until(s, wanted):
    got = b""
    while wanted not in got:
        part = s.recv(1 << 16)
        assert part, got[-500:]
        got += part
    return got


def status(reply):
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.1 ") else 0


def body(reply):
    return reply.partition(b"\r\n\r\n")[2]


def server_of(page):
    """The pid of gpudispatch-serve; the program has a spawner, too."""
    equal(status(page.get(b"/")), 200)  # it has started
    children = f"/proc/{page.process.pid}/task/{page.process.pid}/children"
    for pid in pathlib.Path(children).read_text().split():
        if pathlib.Path(f"/proc/{pid}/comm").read_text() == "gpudispatch-ser\n":
            return int(pid)
    raise AssertionError("no server")


def memory_of(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+) kB", f.read())[1]) * 1024


def ended(pid):
    """Waits for the end of a process that is no child of this one."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    assert poll.poll(PATIENCE * 1000), f"process {pid} goes on"
    os.close(fd)


class Text(html.parser.HTMLParser):
    """Text outside of style and script; tags that were seen."""

    def __init__(self, page):
        super().__init__()
        self.text, self.tags, self.inside = "", [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = [tag] if tag in ("style", "script") else self.inside

    def handle_endtag(self, tag):
        self.inside = [] if tag in self.inside else self.inside

    def handle_data(self, data):
        self.text += "" if self.inside else data


class Server:
    """gpudispatch-serve alone, with snapshots that the test writes."""

    def __init__(self, tool, token=""):
        self.path = tool.path("alone")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        os.chmod(self.path, 0o666)  # so that it is the server that refuses another user
        os.set_inheritable(self.listener.fileno(), True)
        self.process = subprocess.Popen([SERVER, "socket", str(self.listener.fileno())],
                                        stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                        close_fds=False)
        self.listener.close()
        self.write(token)
        self.number = 0

    def write(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def snapshot(self, **more):
        """Writes the next one, whose text has its number, and waits until it is served."""
        self.number += 1
        self.write(json.dumps({"snapshot": 1, "sequence": self.number,
                               "time": 1794596400 * 10**9 + self.number, **more}))
        while True:
            reply = self.get("/data")
            if f'"sequence":{self.number},'.encode() in reply:
                return

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(PATIENCE)
        s.connect(self.path)
        return s

    def get(self, path, more=b""):
        with self.connect() as s:
            s.sendall(b"GET " + path.encode() + b" HTTP/1.1\r\n" + HOST + more + b"\r\n")
            return read_all(s)

    def stream(self):
        s = self.connect()
        s.sendall(b"GET /events HTTP/1.1\r\n" + HOST + b"\r\n")
        return s

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
