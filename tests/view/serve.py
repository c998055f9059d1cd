# SPDX-License-Identifier: MIT
"""The verb serve: who gets which reply, limits of requests and readers, and its ends."""
import contextlib
import html.parser
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import nights  # noqa: E402
from tool import PATIENCE, Skip, contains, equal, run  # noqa: E402

SERVER = str(pathlib.Path(sys.argv[1]).resolve().parents[2] / "view/serve/gpudispatch-serve")
HOST = b"Host: localhost\r\n"
READERS = 16
NOBODY = 65534
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


# ---- Replies ----


def test_replies(tool):
    with socket_page(tool) as page:
        contains(page.process.stdout.readline().decode(), "ssh -L 8080:" + page.where)
        equal(os.stat(page.where).st_mode & 0o777, 0o600)
        reply = page.get(b"/data")
        equal(status(reply), 200)
        snapshot = json.loads(body(reply))
        equal((snapshot["snapshot"], len(snapshot["gpus"]), snapshot["minutes"]), (1, 8, 240))
        reply = page.get(b"/metrics")
        contains(reply, b"application/openmetrics-text")
        made = tool.run("metrics", "--from", tool.path("night.txt"))[1]
        equal(body(reply).decode(), made)
        for path in (b"/", b"/data", b"/metrics", b"/none"):
            head = page.get(path).partition(b"\r\n\r\n")[0].lower()
            for part in (b"x-content-type-options: nosniff", b"referrer-policy: no-referrer",
                         b"cache-control: no-store", b"default-src 'none'",
                         b"frame-ancestors 'none'"):
                contains(head, part)
            assert b"access-control" not in head, head
        equal(page.end(), 0)
        assert not os.path.exists(page.where), page.where


def test_events(tool):
    with socket_page(tool) as page, page.stream() as s:
        got = read_until(s, b"\n\n\r\n")
        contains(got, b"text/event-stream")
        # Chunks of HTTP/1.1: their sizes stand between lines of their own.
        data = re.sub(rb"\r\n[0-9a-fA-F]+\r\n", b"", body(got)).rstrip()
        snapshot = json.loads(data[data.index(FRAME) + len(FRAME):])
        equal(len(snapshot["history"]), 8)


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


def test_page_without_scripts(tool):
    """The four answers, as text."""
    with socket_page(tool, night="night") as page:
        text = Text(body(page.get(b"/")).decode()).text
    for part in ("What runs", "Why the rest waits", "What went wrong", "When it is done",
                 "8 GPUs:", "bad ends in 24 hours", "Without scripts this page does not change"):
        contains(text, part)


def test_hostile_texts(tool):
    """Names of any bytes make no markup in the page, and no event in the stream.  [V5]"""
    hostile = nights.text("hostile")
    with socket_page(tool, night="hostile") as page:
        seen = Text(body(page.get(b"/")).decode())
        equal({tag for tag, _ in seen.tags} - {
            "html", "head", "meta", "title", "style", "body", "svg", "defs", "pattern", "path",
            "rect", "h1", "h2", "p", "noscript", "main", "div", "ul", "li", "code", "script"},
            set())
        equal(sum(tag == "script" for tag, _ in seen.tags), 1)
        assert not any(name.startswith("on") or name == "style" or name == "href"
                       for _, attributes in seen.tags for name in attributes), seen.tags
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", seen.text)
        assert b"<script" in hostile, "the recording has no markup"
        data = body(page.get(b"/data"))
        assert b"<" not in data and b"\n" not in data[:-1], data
        with page.stream() as s:
            got = read_until(s, b"\n\n\r\n")
        equal(got.count(FRAME), 1)


# ---- Refusals ----


def test_foreign_host(tool):
    """A name that an attacker's DNS leads here is refused, whatever else is right."""
    with Page(tool, "--port", "0") as page:
        own = [b"localhost", b"127.0.0.1", b"[::1]", b"LOCALHOST:80", b"127.0.0.1:65535",
               b"[::1]:" + page.where.encode()]
        foreign = [b"evil.example", b"localhost.evil.example", b"127.0.0.1.evil.example",
                   b"localhost:80@evil.example", b"localhost:", b"localhost:123456", b"::1",
                   b"127.0.0.2", b"0.0.0.0", b"localhost.", b"[::1", b"evil.example:80", b""]
        for host in own:
            reply = page.get(b"/data", page.bearer(), host=b"Host: " + host + b"\r\n")
            equal((host, status(reply)), (host, 200))
        for host in foreign:
            for path in (b"/", b"/data", b"/events", b"/metrics"):
                reply = page.get(path, page.bearer(), host=b"Host: " + host + b"\r\n")
                assert status(reply) in (400, 403), (host, path, reply[:100])
        assert status(page.get(b"/data", page.bearer(), host=b"")) in (400, 403)
        assert status(page.raw(b"GET /data HTTP/1.0\r\n" + page.bearer() + b"\r\n")) == 403
    with socket_page(tool) as page:
        equal(status(page.get(b"/data", host=b"Host: evil.example\r\n")), 403)
        equal(status(page.get(b"/data", host=b"Host: localhost:8080\r\n")), 200)


def test_foreign_origin(tool):
    """A page of another site gets no place, although it could not read the reply."""
    with socket_page(tool) as page:
        for origin, wanted in ((b"http://localhost", 200), (b"http://evil.example", 403),
                               (b"https://localhost", 403), (b"null", 403),
                               (b"http://localhost:1", 403)):
            reply = page.get(b"/data", b"Origin: " + origin + b"\r\n")
            equal((origin, status(reply)), (origin, wanted))


def test_token(tool):
    with Page(tool, "--port", "0") as page:
        wrong = [b"", page.bearer("0" * 32), page.bearer(page.token[:-1]),
                 page.bearer(page.token + "0"), page.bearer(page.token.swapcase() + " "),
                 b"Authorization: Basic " + page.token.encode() + b"\r\n",
                 b"Authorization: " + page.token.encode() + b"\r\n", b"Authorization:\r\n"]
        wrong += [page.bearer(page.token[:i] + ("1" if page.token[i] == "0" else "0") +
                              page.token[i + 1:]) for i in range(32)]
        for path in (b"/data", b"/events", b"/metrics"):
            for header in wrong:
                reply = page.get(path, header)
                equal((path, header, status(reply)), (path, header, 401))
                assert b"gpu" not in body(reply), reply
        for path in (b"/data?token=" + page.token.encode(), b"/data#" + page.token.encode()):
            assert status(page.get(path)) in (401, 404), path
        equal(status(page.get(b"/data", page.bearer())), 200)
        empty = body(page.get(b"/")).decode()
        equal(status(page.get(b"/")), 200)
        assert "GPU-" not in empty and "whisper" not in Text(empty).text and page.token not in empty
        equal(status(page.raw(b"GET /data HTTP/1.1\r\n" + HOST + page.bearer() + b"\r\n",
                              socket.AF_INET6)), 200)
        out, _ = page.process.communicate() if page.end() is None else (b"", b"")
        equal(out, b"")


def test_tokens_differ(tool):
    tokens = set()
    for _ in range(3):
        with Page(tool, "--port", "0") as page:
            tokens.add(page.token)
    equal(len(tokens), 3)


def test_local_addresses_alone(tool):
    with Page(tool, "--port", "0") as page:
        listens = []
        for name in ("tcp", "tcp6"):
            with open(f"/proc/net/{name}") as f:
                listens += [line.split()[1].rpartition(":")[0] for line in f.readlines()[1:]
                            if line.split()[1].endswith(f":{int(page.where):04X}")
                            and line.split()[3] == "0A"]
        equal(set(listens) - {"0100007F", "00000000000000000000000001000000"}, set())
        assert listens


def test_other_methods(tool):
    with socket_page(tool) as page:
        for method in (b"POST", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH", b"TRACE",
                       b"CONNECT", b"get", b"GETX"):
            for path in (b"/", b"/data", b"/events"):
                reply = page.get(path, method=method)
                assert status(reply) in (405, 400), (method, reply[:100])
        reply = page.get(b"/data", b"Content-Length: 5\r\n\r\nhello", method=b"POST")
        equal(status(reply), 405)
        contains(reply, b"Allow: GET")


def test_other_paths(tool):
    with socket_page(tool) as page:
        for path in (b"/data/", b"//data", b"/./data", b"/../data", b"/..%2fdata", b"/data%00",
                     b"/%2e%2e/etc/passwd", b"/events/../data", b"/DATA", b"/index.html", b"*",
                     b"/log", b"/cancel", b"/etc/passwd", b"/\xff\xfe", b"/data;a"):
            reply = page.get(path)
            assert status(reply) in (404, 400), (path, reply[:100])
            assert b"root:" not in reply, path
        equal(status(page.get(b"/data?x=%00%ff")), 200)


def test_no_requests(tool):
    """Bytes that are no request get no reply of ours, and the next reader gets his."""
    with socket_page(tool) as page:
        for text in (b"\0" * 4096, b"\r\n" * 2000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost localhost\r\n\r\n", os.urandom(4096) + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + HOST + b"A:" + b"b" * (1 << 20) + b"\r\n\r\n",
                     b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n" + HOST + b"\r\n",
                     b"GET / HTTP/1.1\r\n" + HOST + b"A: b\r\n" * 100000 + b"\r\n",
                     b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + HOST +
                     b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"):
            with page.connect() as s:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    s.sendall(text)
                    s.shutdown(socket.SHUT_WR)
                reply = read_all(s)
            assert b"GPU-" not in reply, text[:60]
            equal(status(page.get(b"/data")), 200)


# ---- Limits ----


def test_a_thousand_connections(tool):
    """Connections without a request have few places, each for some seconds."""
    with socket_page(tool) as page:
        server = server_of(page)
        before, held = memory_of(server), []
        for i in range(1000):
            s = page.connect()
            held.append(s)
            if i % 2:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    s.sendall(b"GET /data HT")
        closed = select.poll()
        for s in held:
            closed.register(s, select.POLLIN | select.POLLHUP)
        assert len(closed.poll(PATIENCE * 1000)) > 0
        if tool.sanitizer == "none":
            assert memory_of(server) - before < 16 << 20
        left = {s.fileno(): s for s in held}
        while left:  # the last ones after their seconds
            for fd, _ in closed.poll(PATIENCE * 1000):
                closed.unregister(fd)
                left.pop(fd).close()
        equal(status(page.get(b"/data")), 200)


def test_seventeenth_reader(tool):
    with socket_page(tool) as page, contextlib.ExitStack() as all_of_them:
        streams = [all_of_them.enter_context(page.stream()) for _ in range(READERS)]
        for s in streams:
            contains(read_until(s, b"\r\n\r\n"), b" 200 ")
        reply = page.get(b"/events")
        equal(status(reply), 503)
        contains(body(reply), b"16 pages are open already")
        equal(status(page.get(b"/data")), 200)


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


def test_newest_for_a_slow_reader(tool):
    """A reader gets the newest snapshot, at most one in 2 s, and not those between.  [V2]"""
    with Server(tool) as server:
        server.snapshot()
        with server.stream() as s:
            read_until(s, b'"sequence":1,')
            begin = time.monotonic()
            for _ in range(50):
                server.snapshot()
            got = read_until(s, b'"sequence":51,')
            assert time.monotonic() - begin > 1.5
            assert got.count(FRAME) == 1, got.count(FRAME)


def test_a_stopped_reader_costs_nothing(tool):
    """Its connection ends, and the memory of the server does not grow.  [V2]"""
    batch = [{"batch": i, "name": "x" * 60, "text": "y" * 190} for i in range(1, 200)]
    with Server(tool) as server:
        server.snapshot(batches=batch)
        stopped = [server.stream() for _ in range(READERS)]
        for s in stopped:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            read_until(s, FRAME)
        before = memory_of(server.process.pid)
        for _ in range(300):
            server.snapshot(batches=batch)
        if tool.sanitizer == "none":
            assert memory_of(server.process.pid) - before < 4 << 20
        for s in stopped:
            s.close()


def test_first_line_is_the_token(tool):
    with Server(tool, "0123456789abcdef" * 2) as server:
        equal(status(server.get("/data")), 401)
        bearer = b"Authorization: Bearer 0123456789abcdef0123456789abcdef\r\n"
        equal(status(server.get("/data", bearer)), 503)
        server.write("no snapshot")
        server.write('{"snapshot":1,"time":7}')
        while status(server.get("/data", bearer)) == 503:
            continue
        equal(json.loads(body(server.get("/data", bearer)))["time"], 7)


def test_another_user(tool):
    """The kernel's word for who connects counts, whatever the mode of the socket is."""
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    with Server(tool) as server:
        server.snapshot()
        os.chmod(tool.scratch.name, 0o755)
        other = os.fork()
        if other == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            got = b""
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                got = server.get("/data")
            os._exit(1 if got else 0)
        equal(os.waitpid(other, 0)[1], 0)
        equal(status(server.get("/data")), 200)


# ---- Places and ends ----


def test_place_is_taken(tool):
    with socket_page(tool) as page:
        code, out, err = tool.run("serve", "--from", tool.path("night.txt"), "--socket",
                                  page.where, env={"GPUD_SERVE_PROGRAM": SERVER})
        equal((code, out), (1, ""))
        contains(err, "a live page is served here already")
        page.process.kill()
        page.process.wait(PATIENCE)
    assert os.path.exists(page.where)  # nobody could remove it
    with socket_page(tool) as page:
        equal(status(page.get(b"/data")), 200)
    tool.write("file", "kept")
    code, _, err = tool.run("serve", "--from", tool.path("night.txt"), "--socket",
                            tool.path("file"), env={"GPUD_SERVE_PROGRAM": SERVER})
    equal(code, 1)
    contains(err, "is no socket")
    equal(pathlib.Path(tool.path("file")).read_text(), "kept")


def test_ends(tool):
    """By each signal that a terminal sends, with its parent, and after --for."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with socket_page(tool) as page, page.stream() as s:
            server = server_of(page)
            read_until(s, FRAME)
            page.process.send_signal(number)
            equal((number, page.process.wait(PATIENCE)), (number, 0))
            ended(server)
            assert not os.path.exists(page.where)
    with socket_page(tool) as page:
        server = server_of(page)
        page.process.kill()
        ended(server)
    with Page(tool, "--socket", tool.path("live"), "--for", "100ms") as page:
        equal(page.process.wait(PATIENCE), 0)


def test_ends_with_its_pipe(tool):
    with Server(tool) as server:
        server.snapshot()
        with server.stream() as s:
            read_until(s, FRAME)
            server.process.stdin.close()
            equal(server.process.wait(PATIENCE), 0)
            equal(server.process.stderr.read(), b"")
            read_all(s)


def test_ends_with_its_server(tool):
    with socket_page(tool) as page:
        os.kill(server_of(page), signal.SIGKILL)
        page.process.wait(PATIENCE)
        assert not os.path.exists(page.where)


def test_wrong_usage(tool):
    night = tool.write("night.txt", nights.text("small"))
    known = {"GPUD_SERVE_PROGRAM": SERVER}
    for args, env, wanted, text in (
            (("--port", "1", "--socket", "x"), known, 2, "exclude one another"),
            (("--port", "65536"), known, 2, "--port"), (("--for", "x"), known, 2, "--for"),
            (("--socket", "x" * 200), known, 1, "at most 107 bytes"),
            (("--port", "0"), {"GPUD_SERVE_PROGRAM": "/no/program"}, 1, "GPUD_SERVE_PROGRAM"),
            (("--socket", tool.path("none/live")), known, 1, "No such file or directory")):
        code, _, err = tool.run("serve", "--from", night, *args, env=env)
        equal((args, code), (args, wanted))
        contains(err, text)
    alone = subprocess.run([SERVER], capture_output=True, text=True)
    equal((alone.returncode, alone.stdout), (2, ""))


# ---- What it cannot do ----


def test_it_cannot_write(tool):
    """The server calls nothing that opens, connects or starts, and has nothing of the queue.  [V6]
    """
    listed = subprocess.run(["nm", "-u", SERVER], capture_output=True, text=True)
    if listed.returncode:
        raise Skip("no nm")
    undefined = {line.split()[-1].partition("@")[0] for line in listed.stdout.splitlines()}
    equal(undefined & {"connect", "socket", "socketpair", "bind", "sendmsg", "sendto", "open",
                       "open64", "openat", "openat64", "fopen", "fopen64", "creat", "unlink",
                       "rename", "fork", "vfork", "posix_spawn", "execv", "execve", "execvp",
                       "system", "popen", "dlopen", "kill"}, set())
    contains(undefined, "MHD_start_daemon")
    defined = subprocess.run(["nm", "--defined-only", SERVER], capture_output=True, text=True)
    assert not re.search(r" (gpq_|gpud_|gpi_)", defined.stdout)


def test_program_has_no_web(tool):
    """gpudispatch itself has neither libmicrohttpd nor GnuTLS."""
    listed = subprocess.run(["ldd", tool.program], capture_output=True, text=True)
    if listed.returncode:
        raise Skip("no ldd")
    assert not re.search("microhttpd|gnutls", listed.stdout), listed.stdout


run(globals(), suite="view")
