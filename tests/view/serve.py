# SPDX-License-Identifier: MIT
"""The verb serve: its replies, its places and its ends."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import nights  # noqa: E402
from serving import (  # noqa: E402
    FRAME, SERVER, Page, Server, Text, body, ended, read_all, read_until, server_of,
    socket_page, status)
from tool import PATIENCE, Skip, contains, equal, run  # noqa: E402


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
