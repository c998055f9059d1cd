# SPDX-License-Identifier: MIT
"""The requests of a ServerWorker: the items of one call of process(), and the connections."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    import socket
    from http.client import HTTPConnection
    from typing import Any, Protocol

    from .server_process import Server

    class Owner(Protocol):
        """What has the server and its connections."""

        server: Server
        timeout: float | None
        post: str

        def wake(self) -> None: ...

        def take_link(self) -> Link: ...

        def put_link(self, link: Link) -> None: ...


REUSE_S = 2.0  # of an idle connection: servers close theirs after 5 s and more
SHOWN_BODY = 200  # characters of a body in a text
KEPT_BODY = 64 * 1024  # bytes of a body in an exception


class Abandoned(Exception):
    """The batch of a request has ended without it."""


class Request:
    """An item on its way."""

    def __init__(self, batch: Batch, path: str, body: bytes, kind: str) -> None:
        self.batch = batch
        self.path = path
        self.body = body
        self.kind = kind  # content type
        self.result: Any = None
        self.until: float | None = None  # from the start of its time to its end
        self.socket: socket.socket | None = None  # while a thread waits for it
        self.expired = False
        self.broken = False  # no reply, but no limit either

    def run(self) -> None:
        """On a thread of `Live`."""
        from .worker import Failed

        live = self.batch.live
        link = live.take_link()
        try:
            self.begin()
            result = link.exchange(self)
        except Abandoned:
            result = None
        except Exception as error:
            result = Failed(self.judged(error))
        live.put_link(link)  # before the end: the next request should find it
        self.batch.end(self, result)

    def begin(self) -> None:
        limit = self.batch.live.timeout
        if limit is not None:
            self.until = time.monotonic() + limit

    def judged(self, error: Exception) -> Exception:
        """The exception of the item."""
        from http.client import HTTPException

        limit = self.batch.live.timeout
        if limit is not None and (self.expired or isinstance(error, TimeoutError)):
            self.expired = True
            return TimeoutError(f"POST {self.path}: no reply within {limit:g} s (timeout)")
        if isinstance(error, (OSError, HTTPException)):
            self.broken = True
            why = f"{type(error).__name__}: {error}"
            return ConnectionError(f"POST {self.path}: the connection to the server broke: {why}")
        return error


class Batch:
    """The requests of one call of process()."""

    def __init__(self, live: Owner, items: list[Any]) -> None:
        from .worker import Failed

        self.live = live
        self.port = live.server.port
        self.lock = threading.Lock()
        self.closed = False
        self.results: list[Any] = []
        self.requests: list[Request] = []
        for item in items:
            try:
                request = Request(self, *encoded(item, live.post))
            except Exception as error:
                self.results.append(Failed(error))
            else:
                self.results.append(request)
                self.requests.append(request)
        self.left = len(self.requests)

    def take(self) -> list[Any]:
        """The results, in the order of the items."""
        return [r.result if isinstance(r, Request) else r for r in self.results]

    def attach(self, request: Request, sock: socket.socket | None) -> None:
        """From now on the end of the batch, or of the request's time, ends the wait for `sock`."""
        with self.lock:
            if self.closed:
                raise Abandoned
            if request.expired:
                raise TimeoutError
            request.socket = sock

    def detach(self, request: Request) -> None:
        with self.lock:
            request.socket = None

    def end(self, request: Request, result: Any) -> None:
        with self.lock:
            if self.closed:
                return
            request.result = result
            request.until = None
            self.left -= 1
            last = self.left == 0
        if last:
            self.live.wake()

    def next_limit(self, now: float) -> float | None:
        """When to call expire(): a request that begins later ends later."""
        if self.live.timeout is None:
            return None
        until = [r.until for r in self.requests]
        return min(u for u in (*until, now + self.live.timeout) if u is not None)

    def expire(self, now: float) -> None:
        with self.lock:
            for request in self.requests:
                if request.until is not None and request.until <= now:
                    request.expired = True
                    request.until = None
                    hang_up(request.socket)

    def abandon(self) -> None:
        """No thread waits for the server any more, and no request is sent."""
        with self.lock:
            self.closed = True
            for request in self.requests:
                hang_up(request.socket)


def hang_up(sock: socket.socket | None) -> None:
    """End the wait of the thread that uses this socket, and which closes it."""
    import socket

    if sock is not None:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the server has closed it


def encoded(item: Any, post: str) -> tuple[str, bytes, str]:
    """Path, body and content type of an item."""
    path, body = post, item
    if isinstance(item, tuple) and len(item) == 2:
        path, body = item
        if not isinstance(path, str) or not path.startswith("/"):
            raise ValueError(f"the path of an item is {path!r}, expected a str that begins with /")
    if isinstance(body, dict):
        import json

        return path, json.dumps(body).encode(), "application/json"
    if isinstance(body, str):
        return path, body.encode(), "text/plain; charset=utf-8"
    if isinstance(body, (bytes, bytearray, memoryview)):
        return path, bytes(body), "application/octet-stream"
    raise TypeError(
        f"an item must be a dict, str, bytes or a pair (path, body) of these, "
        f"not {type(body).__name__}"
    )


class Link:
    """A connection.  It outlives a request as far as the server permits."""

    def __init__(self, host: str, timeout: float | None) -> None:
        self.host = host
        self.timeout = timeout
        self.connection: HTTPConnection | None = None
        self.port = 0
        self.used = 0.0

    def exchange(self, request: Request) -> Any:
        """Send a request; the value of the reply."""
        connection = self._connected(request.batch.port)
        keep = False
        try:
            request.batch.attach(request, connection.sock)
            headers = {"Content-Type": request.kind}
            connection.request("POST", request.path, request.body, headers)
            response = connection.getresponse()
            data = response.read()
            keep = not response.will_close
        finally:
            request.batch.detach(request)
            self.used = time.monotonic()
            if not keep:
                self.close()
        kind = response.headers.get_content_type()
        if not 200 <= response.status < 300:
            raise server_error(request.path, response.status, response.reason, data)
        if kind == "application/json" or kind.endswith("+json"):
            import json

            return json.loads(data)
        return data

    def _connected(self, port: int) -> HTTPConnection:
        connection = self.connection
        if connection is not None and (self.port != port or not self._is_fresh(connection)):
            self.close()
            connection = None
        if connection is None:
            from http.client import HTTPConnection

            connection = HTTPConnection(self.host, port, timeout=self.timeout)
            self.connection, self.port = connection, port
            try:
                connection.connect()
            except BaseException:
                self.close()
                raise
        return connection

    def _is_fresh(self, connection: HTTPConnection) -> bool:
        """Whether the server has not closed it, and will not while the request is on its way."""
        import select

        if connection.sock is None or time.monotonic() - self.used > REUSE_S:
            return False
        poll = select.poll()
        poll.register(connection.sock, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


def server_error(path: str, status: int, reason: str, data: bytes) -> Exception:
    from .errors import ServerError

    body = " ".join(data[: 4 * SHOWN_BODY].decode(errors="replace").split())[:SHOWN_BODY]
    text = f"POST {path}: status {status} {reason}".rstrip() + (f": {body}" if body else "")
    return ServerError(text, status=status, body=data[:KEPT_BODY])
