# SPDX-License-Identifier: MIT
"""The live page: requests that are refused.  [V6]"""
import contextlib
import json
import os
import pathlib
import select
import socket
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from serving import (  # noqa: E402
    HOST, Page, Server, Text, body, memory_of, read_all, server_of, socket_page, status)
from tool import PATIENCE, Skip, contains, equal, run  # noqa: E402

NOBODY = 65534


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


def test_two_hosts(tool):
    """A proxy before the server may have judged the other one."""
    with socket_page(tool) as page:
        for second in (HOST, b"host: evil.example\r\n", b"HOST:\r\n"):
            for path in (b"/", b"/data", b"/events", b"/none"):
                for more in (HOST + second, second + HOST):
                    equal((path, more, status(page.get(path, host=more))), (path, more, 400))


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


run(globals(), suite="view")
