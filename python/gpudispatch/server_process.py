# SPDX-License-Identifier: MIT
"""The process of a ServerWorker: its port, its start and its end."""

from __future__ import annotations

import os
import threading

TYPE_CHECKING = False  # as in typing, whose import costs 3 ms
if TYPE_CHECKING:
    import socket
    from subprocess import Popen


def ended(status: int) -> str:
    """How a process ended, from Popen.returncode."""
    if status >= 0:
        return f"exited with status {status}"
    import signal

    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = "unknown"
    return f"was killed by signal {-status} ({name})"


def free_port() -> tuple[int, socket.socket]:
    """A free port, and a socket that keeps other workers of this package away from it.

    Between the choice of a port and the server's bind another worker could choose the same: its
    requests would reach this server.  An abstract socket with the port's number prevents that.
    """
    import errno
    import socket

    while True:
        with socket.socket() as probe:
            probe.bind(("", 0))
            port: int = probe.getsockname()[1]
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0gpudispatch-port-{port}")
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                claim.close()
                continue
        return port, claim


def is_taken(port: int) -> bool:
    """Whether a program has the port, which no server of this worker has."""
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return True
    return False


class Server:
    """A server process and its port."""

    def __init__(self, command: list[str]) -> None:
        import subprocess

        self.port, self.claim = free_port()
        argv = [word.replace("{port}", str(self.port)) for word in command]
        self.stopping = False
        self.ended = threading.Event()
        # Standard output and error are the worker's: log_tail has the server's lines.
        try:
            self.process: Popen[bytes] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, start_new_session=True
            )
        except BaseException:
            self.claim.close()
            raise

    @property
    def status(self) -> int | None:
        """The return code; None while the server runs."""
        return self.process.returncode

    def kill(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def forget(self) -> None:
        """After its end: kill the rest of its group, which the library would do only later."""
        import signal

        self.kill(signal.SIGKILL)
        self.claim.close()
