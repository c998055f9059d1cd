# SPDX-License-Identifier: MIT
"""Workers that are servers: a worker starts a server such as llama-server and sends it its items.

    from gpudispatch import Executor
    from gpudispatch.servers import ServerWorker

    llm = ServerWorker(["llama-server", "-m", "model.gguf", "--port", "{port}", "--parallel", "8"])
    with Executor(devices="all", worker=llm) as ex:
        for r in ex.outcomes({"prompt": text} for text in texts): ...

In the worker, the main thread waits in poll(), which a time limit interrupts on GPUs, too.  One
thread waits for the end of the server, and `concurrency` threads send requests.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from .server_process import Server, ended, is_taken
from .server_requests import Batch, Link, Request

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    import select
    from collections.abc import Sequence
    from _queue import SimpleQueue
    from typing import Any, NoReturn, Self

__all__ = ["ServerWorker"]

MOST_AT_A_TIME = 64  # items in a batch
START_TRIES = 5  # for a port that another program takes before the server has it
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0  # between two requests to `ready`
READY_S = 5.0  # for one request to `ready` in setup
LONGEST_SLEEP_S = 0.5  # a signal just before poll() does not interrupt it; on GPUs none follows
HEALTH_S = 1.0  # for one after a limit or a failure: below the default of grace
LAST_REPLIES_S = 1.0  # for the replies that a dead server has sent
IDLE_S = 0.1  # without a call: the outcomes of the last call are with the host
TERMINATE_S = 5.0  # from SIGTERM to SIGKILL: below the 10 s that a worker has for cleanup
KILLED_S = 10.0  # at most: the host kills a worker `grace` after its limit
EXIT_STATUS = 70  # of a worker whose server is of no use any more: EX_SOFTWARE


class ServerWorker:
    """A worker that is a server: `Executor(worker=ServerWorker([...]))`.

    command      the server and its arguments; "{port}" in them becomes a free port
    ready        URL of a GET that returns 200 to 299 once the server is ready
    post         path to which items are sent
    timeout      longest time of one request, in seconds; None: no limit
    concurrency  requests at a time, 1 to 64; it is the `max_batch` of the executor

    An item is a dict, which is sent as JSON, or str or bytes, or a pair (path, body).  Its result
    is the value of a JSON reply, else bytes.  A reply of 300 or above fails its item alone, with a
    ServerError: no request is sent twice.
    """

    _live: Live | None = None  # in the worker, from setup to cleanup

    def __init__(
        self,
        command: Sequence[str],
        *,
        ready: str = "http://127.0.0.1:{port}/health",
        post: str = "/v1/completions",
        timeout: float | None = 600.0,
        concurrency: int = 8,
    ) -> None:
        from . import settings

        if isinstance(command, (str, bytes)):
            raise TypeError('command must be a list of str, such as ["llama-server", "-m", ...]')
        self.command: list[str] = [settings.text("command", word) for word in command]
        if not any("{port}" in word for word in self.command):
            raise ValueError('command has no "{port}", which becomes the port of the server')
        self.ready: str = settings.text("ready", ready)
        address(self.ready)
        self.post: str = settings.text("post", post)
        if not self.post.startswith("/"):
            raise ValueError(f"post is {post!r}, expected a path that begins with /")
        settings.seconds("timeout", timeout)
        self.timeout: float | None = timeout
        self.concurrency: int = settings.integer("concurrency", concurrency, 1, MOST_AT_A_TIME)
        self.max_batch: int = self.concurrency

    @property
    def journal_state(self) -> object:
        """What the results of a journal depend on."""
        return self.command, self.post

    def __repr__(self) -> str:
        return f"ServerWorker({self.command!r})"

    def __call__(self) -> Self:
        """In the worker process: the object that serves."""
        return self

    def setup(self, gpu_id: str, seed: int) -> None:
        """Start the server and wait until it is ready."""
        live = Live(self)
        live.begin()
        self._live = live

    def process(self, items: list[Any]) -> list[Any]:
        """Send the items of a batch, `concurrency` at a time."""
        if self._live is None:
            raise RuntimeError("process() before setup()")
        return self._live.process(items)

    def cleanup(self) -> None:
        """End the server: SIGTERM to its process group, SIGKILL after 5 s."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def address(ready: str) -> tuple[str, str]:
    """Host and path of the URL `ready`."""
    from urllib.parse import urlsplit

    parts = urlsplit(ready)
    host = parts.netloc.removesuffix(":{port}")
    if parts.scheme != "http" or not host or host == parts.netloc:
        raise ValueError(f'ready is {ready!r}, expected "http://127.0.0.1:{{port}}/PATH"')
    path = parts.path or "/"
    return host.strip("[]"), f"{path}?{parts.query}" if parts.query else path


class Live:
    """The part of a ServerWorker that lives in the worker process."""

    server: Server

    def __init__(self, config: ServerWorker) -> None:
        import select
        from _queue import SimpleQueue

        self.config = config
        self.post, self.timeout = config.post, config.timeout
        self.host, self.ready_path = address(config.ready)
        self.calls = 0
        self.is_ready = False  # setup has passed
        self.event: int = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.poll: select.poll = select.poll()
        self.poll.register(self.event, select.POLLIN)
        self.queue: SimpleQueue[Request | None] = SimpleQueue()
        self.links: list[Link] = []  # idle ones

    def begin(self) -> None:
        """In setup: start the server, then the threads that send requests."""
        self.start()
        for number in range(self.config.concurrency):
            self._thread(self._send, f"gpudispatch-request-{number}")

    def _thread(self, target: Any, name: str, *args: Any) -> None:
        threading.Thread(target=target, args=args, name=name, daemon=True).start()

    # ---- between the threads ----

    def wake(self) -> None:
        os.eventfd_write(self.event, 1)

    def _sleep(self, seconds: float | None) -> None:
        """On the main thread: until wake(), or the end of the time.  A limit interrupts it."""
        seconds = LONGEST_SLEEP_S if seconds is None else min(seconds, LONGEST_SLEEP_S)
        self.poll.poll(max(0, round(seconds * 1000) + 1))
        try:
            os.eventfd_read(self.event)
        except BlockingIOError:
            pass

    def _send(self) -> None:
        """A thread that sends requests."""
        while (request := self.queue.get()) is not None:
            request.run()

    def take_link(self) -> Link:
        """The connection that was used last, or a new one."""
        try:
            return self.links.pop()
        except IndexError:
            return Link(self.host, self.timeout)

    def put_link(self, link: Link) -> None:
        self.links.append(link)
        if self.server.stopping:
            self._close_links()

    def _watch(self, server: Server) -> None:
        """The thread that waits for the end of a server.

        If a call of process() runs then, or begins soon, that call decides.  Otherwise the worker
        exits: so the host starts a new one, and no task is lost.
        """
        from .current import current_task

        status = server.process.wait()
        server.ended.set()
        self.wake()
        while self.is_ready and self.server is server and not server.stopping:
            calls = self.calls
            time.sleep(IDLE_S)
            if calls == self.calls and current_task() is None and not server.stopping:
                self._leave(f"the server {ended(status)} between two tasks")

    def _leave(self, text: str) -> NoReturn:
        """End the worker.  The keeper kills the rest, and the host starts a new worker."""
        try:
            print(f"gpudispatch.servers: {text}; the worker exits", file=sys.stderr, flush=True)
        finally:
            os._exit(EXIT_STATUS)

    def _leave_after(self, error: BaseException, text: str) -> NoReturn:
        """End the worker after an exception that broke off a call.

        A worker that exits after its time limit has crashed, and its task may run again.  One that
        the host kills at the end of `grace` was late, as it should be.
        """
        from .worker import TaskTimeout

        if isinstance(error, TaskTimeout):
            import signal

            print(f"gpudispatch.servers: {text}", file=sys.stderr, flush=True)
            self.server.kill(signal.SIGKILL)
            until = time.monotonic() + KILLED_S
            while time.monotonic() < until:
                time.sleep(LONGEST_SLEEP_S)
        self._leave(text)

    # ---- the server ----

    def start(self) -> None:
        """Start a server, and wait until it is ready."""
        since = time.monotonic()
        for left in reversed(range(START_TRIES)):
            self.server = server = Server(self.config.command)
            self._thread(self._watch, "gpudispatch-server", server)
            self._wait_until_ready()
            if server.status is None:
                break
            server.forget()
            if not left or not is_taken(server.port):
                if not self.is_ready:
                    # This process ends: the server's output is worth more than this stack.
                    sys.tracebacklimit = 0
                raise RuntimeError(
                    f"the server {ended(server.status)} before {self._url()} was ready: "
                    f"{' '.join(self.config.command)}"
                )
        self.is_ready = True
        from .current import current_worker

        worker = current_worker()
        if worker is not None:
            seconds = time.monotonic() - since
            worker.log(f"the server on port {self.server.port} was ready after {seconds:.1f} s")

    def _url(self) -> str:
        return self.config.ready.replace("{port}", str(self.server.port))

    def _wait_until_ready(self) -> None:
        """Return once the server is ready, or has ended."""
        pause = FIRST_PAUSE_S
        while self.server.status is None:
            status = self._health(READY_S)
            if status is not None and 200 <= status < 300:
                return
            until = time.monotonic() + pause
            while self.server.status is None and (left := until - time.monotonic()) > 0:
                self._sleep(left)
            pause = min(2 * pause, LONGEST_PAUSE_S)

    def _health(self, limit: float) -> int | None:
        """The status that `ready` returns; None without a reply."""
        from http.client import HTTPConnection, HTTPException

        connection = HTTPConnection(self.host, self.server.port, timeout=limit)
        try:
            connection.request("GET", self.ready_path)
            return connection.getresponse().status
        except (OSError, HTTPException):
            return None
        finally:
            connection.close()

    def stop(self) -> None:
        import signal

        server = self.server
        server.stopping = True
        for _ in range(self.config.concurrency):
            self.queue.put(None)
        if server.status is None:
            server.kill(signal.SIGTERM)
            if not server.ended.wait(TERMINATE_S):
                server.kill(signal.SIGKILL)
                server.ended.wait(TERMINATE_S / 2)
        server.forget()
        self._close_links()

    def _close_links(self) -> None:
        while True:
            try:
                self.links.pop().close()
            except IndexError:
                return

    # ---- calls ----

    def process(self, items: list[Any]) -> list[Any]:
        self.calls += 1
        if self.server.status is not None:
            self._start_again()
        batch = Batch(self, items)
        try:
            self._wait_for(batch)
        except BaseException as error:  # a limit, or Future.stop()
            batch.abandon()
            if self._health(HEALTH_S) is None:
                self._leave_after(
                    error, f"{self._url()} sends no reply within {HEALTH_S:g} s after a task ended"
                )
            raise
        self._check(batch)
        return batch.take()

    def _start_again(self) -> None:
        """The server has ended between two calls, and the worker has not left yet."""
        old = self.server
        print(
            f"gpudispatch.servers: the server {ended(old.status or 0)} between two tasks and "
            "starts again",
            file=sys.stderr,
            flush=True,
        )
        try:
            old.forget()
            self.start()
        except BaseException as error:  # the next worker's setup has a limit of its own
            self._leave_after(error, f"the server did not start again: {type(error).__name__}")

    def _wait_for(self, batch: Batch) -> None:
        """Return when all requests have ended, or soon after the end of the server."""
        for request in batch.requests:
            self.queue.put(request)
        until: float | None = None
        while batch.left:
            now = time.monotonic()
            if until is None and self.server.status is not None:
                until = now + LAST_REPLIES_S
            batch.expire(now)
            limits = [t for t in (batch.next_limit(now), until) if t is not None]
            if until is not None and until <= now:
                return
            self._sleep(min(limits) - now if limits else None)

    def _check(self, batch: Batch) -> None:
        """After the last reply: is the server of further use?"""
        broken = sum(r.broken for r in batch.requests) + batch.left
        expired = any(r.expired for r in batch.requests)
        if not broken and not expired:
            return
        status = self.server.status
        if status is None and self._health(HEALTH_S) is not None:
            return
        if broken:  # a large process takes a while to end
            self.server.ended.wait(LAST_REPLIES_S)
            status = self.server.status
            how = "sends no reply" if status is None else ended(status)
            self._leave(f"the server {how} during {broken} of {len(batch.requests)} requests")
        if status is None:
            import signal

            print(
                f"gpudispatch.servers: {self._url()} sends no reply within {HEALTH_S:g} s after the "
                "timeout of a request: the server is killed",
                file=sys.stderr,
                flush=True,
            )
            self.server.kill(signal.SIGKILL)
            self.server.ended.wait(TERMINATE_S)
