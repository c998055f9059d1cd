# SPDX-License-Identifier: MIT
"""What test_servers.py starts: a server that misbehaves on request, and worker classes.

usage: server_tasks.py PORT [WORD...]
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

sleeps = threading.Event().wait  # for ever
inside, most, loading, hangs = 0, 0, 0, False
lock = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        global loading
        loading -= 1
        if hangs:
            sleeps()
        self.reply(503 if loading >= 0 else 200, b"{}")

    def do_POST(self) -> None:
        global inside, most, hangs
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers["Content-Type"]
        wish = json.loads(body) if kind == "application/json" else {}
        with lock:
            inside += 1
            most = max(most, inside)
        if "gate" in wish:
            from executor_tasks import through

            through(bytes.fromhex(wish["gate"]), wish.get("name", "-"))
        with lock:
            inside -= 1
        hangs = hangs or "hang all" in wish
        if "hang" in wish or hangs:
            sleeps()
        if "die" in wish:
            print("the last line", flush=True)
            os._exit(wish["die"])
        self.close_connection = "close" in wish or "bye" in wish
        if "close" in wish:
            return
        if "trickle" in wish:
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            while True:
                self.wfile.write(b" ")
                time.sleep(0.05)
        facts = {
            "path": self.path, "kind": kind, "body": body.decode(), "pid": os.getpid(),
            "worker": os.getppid(), "client": self.client_address[1], "most": most,
            "argv": sys.argv[1:],
        }  # fmt: skip
        self.reply(wish.get("status", 200), json.dumps(facts).encode(), wish.get("type"))
        if "last" in wish:
            os._exit(0)

    def reply(self, status: int, body: bytes, kind: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind or "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def main(port: str, *words: str) -> None:
    global loading
    word = words[0] if words else ""
    if word == "fails":
        print("no such model", file=sys.stderr)
        sys.exit(9)
    if word == "slow":
        from executor_tasks import through

        through(bytes.fromhex(words[1]), "starting")
    if word == "loading":
        loading = 3
    if word == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if word == "tidy":
        signal.signal(signal.SIGTERM, lambda *_: (open(words[1], "w").close(), os._exit(0)))
    ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
else:
    from gpudispatch import servers
    from gpudispatch.worker import Failed

    class Patient(servers.ServerWorker):
        """Its item "wait" waits for the end of the server."""

        def process(self, items: list[Any]) -> list[Any]:
            if items == ["wait"]:
                assert self._live is not None
                self._live.server.ended.wait()
                return [None]
            return super().process(items)

    class Picky:
        """Odd items fail alone."""

        def process(self, items: list[int]) -> list[Any]:
            return [Failed(ValueError(f"{n} is odd")) if n % 2 else n for n in items]

    class PickyAlone:
        def process(self, item: int) -> Any:
            return Failed(ValueError(f"{item} is odd")) if item % 2 else item
