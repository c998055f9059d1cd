# SPDX-License-Identifier: MIT
"""The live page: readers of its events."""
import contextlib
import json
import pathlib
import re
import socket
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from serving import (  # noqa: E402
    FRAME, Page, Server, body, memory_of, read_until, socket_page, status)
from tool import contains, equal, run  # noqa: E402

READERS = 16


def test_events(tool):
    with socket_page(tool) as page, page.stream() as s:
        got = read_until(s, b"\n\n\r\n")
        contains(got, b"text/event-stream")
        # Chunks of HTTP/1.1: their sizes stand between lines of their own.
        data = re.sub(rb"\r\n[0-9a-fA-F]+\r\n", b"", body(got)).rstrip()
        snapshot = json.loads(data[data.index(FRAME) + len(FRAME):])
        equal(len(snapshot["history"]), 8)


def test_seventeenth_reader(tool):
    with socket_page(tool) as page, contextlib.ExitStack() as all_of_them:
        streams = [all_of_them.enter_context(page.stream()) for _ in range(READERS)]
        for s in streams:
            contains(read_until(s, b"\r\n\r\n"), b" 200 ")
        reply = page.get(b"/events")
        equal(status(reply), 503)
        contains(body(reply), b"16 pages are open already")
        equal(status(page.get(b"/data")), 200)


def test_places_of_readers_that_left(tool):
    """Also while nothing is sent, as a browser does that loads the page again."""
    for where in ("--socket", tool.path("live")), ("--port", "0"):
        with Page(tool, *where) as page:
            for _ in range(2 * READERS):
                with page.stream() as s:
                    contains(read_until(s, b"\n\n\r\n"), b" 200 ")
            streams = [page.stream() for _ in range(READERS)]
            for s in streams:
                contains(read_until(s, b"\n\n\r\n"), b" 200 ")
            equal(status(page.get(b"/events", page.bearer())), 503)
            streams.pop(READERS // 2).close()
            with page.stream() as s:
                contains(read_until(s, FRAME), b" 200 ")
            for s in streams:
                s.close()


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


run(globals(), suite="view")
