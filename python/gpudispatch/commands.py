# SPDX-License-Identifier: MIT
"""What Pool.run() does: its arguments in the program, and the command in a worker."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence

from gpudispatch import settings

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from collections.abc import Iterable

PR_SET_CHILD_SUBREAPER = 36


class Call:
    """A command, and how it is run."""

    def __init__(
        self,
        argv: list[str],
        env: dict[str, str | None],
        cwd: str | None,
        given: bytes | None,
        capture: bool,
        check: bool,
    ) -> None:
        self.argv = argv
        self.env = env
        self.cwd = cwd
        self.given = given
        self.capture = capture
        self.check = check


def checked(
    argv: Sequence[str | os.PathLike[str]],
    env: Mapping[str, str | None] | None,
    cwd: str | os.PathLike[str] | None,
    given: bytes | None,
    capture: bool,
    check: bool,
) -> Call:
    """The command of these arguments, each checked."""
    if isinstance(argv, (str, bytes)) or not isinstance(argv, Sequence):
        raise TypeError(f"argv must be a sequence of str, not {type(argv).__name__}")
    words = [settings.path(f"argv[{place}]", word) for place, word in enumerate(argv)]
    if not words:
        raise ValueError("argv is empty, expected a program and its arguments")
    if given is not None and not isinstance(given, (bytes, bytearray, memoryview)):
        raise TypeError(f"input must be bytes, not {type(given).__name__}")
    if env is not None:
        settings.environment(env)
    return Call(
        words,
        dict(env or {}),
        None if cwd is None else os.path.abspath(settings.path("cwd", cwd)),
        None if given is None else bytes(given),
        settings.flag("capture_output", capture),
        settings.flag("check", check),
    )


def label_of(argv: Iterable[str]) -> str:
    """A command as the label of its task: as much of it as a label holds."""
    return " ".join(argv).encode()[:63].decode(errors="ignore")


def run(call: Call) -> subprocess.CompletedProcess[bytes]:
    """In a worker: runs a command to its end, or to what interrupts the wait for it.  Then no
    process of it is left: the worker is the parent of those whose own parents have ended.

    A time limit has the output until then as its `stdout` and `stderr`, which ends.py reads."""
    from gpudispatch.worker import TaskTimeout

    process: subprocess.Popen[bytes] | None = None
    threads: list[threading.Thread] = []
    output = Output(call)
    try:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        process = _start(call)
        threads = _threads(process, call, output)
        for thread in threads:
            thread.start()
        process.wait()
        _end(process, threads, output)
        done = subprocess.CompletedProcess(
            call.argv, process.returncode, output.data.get("stdout"), output.data.get("stderr")
        )
        if call.check:
            done.check_returncode()
        return done
    except BaseException as error:
        # A limit, or stop(), interrupts a task once: it may have interrupted this end above.
        _end(process, threads, output)
        if isinstance(error, TaskTimeout):
            error.__dict__.update(output.data)
        raise


class Output:
    """What a command has written, of the streams that are captured.

    A time limit can come before a thread reads a stream: then the main thread does at the end."""

    def __init__(self, call: Call) -> None:
        self.unread = ["stdout", "stderr"] if call.capture else []
        self.data = dict.fromkeys(self.unread, b"")

    def read(self, name: str, process: subprocess.Popen[bytes]) -> None:
        try:
            self.unread.remove(name)
        except ValueError:
            return  # another thread has begun
        with getattr(process, name) as stream:
            self.data[name] = stream.read()


def _start(call: Call) -> subprocess.Popen[bytes]:
    surroundings = dict(os.environ)
    for name, value in call.env.items():
        if value is None:
            surroundings.pop(name, None)
        else:
            surroundings[name] = value
    pipe = subprocess.PIPE if call.capture else None
    given = subprocess.DEVNULL if call.given is None else subprocess.PIPE
    return subprocess.Popen(
        call.argv, env=surroundings, cwd=call.cwd, stdin=given, stdout=pipe, stderr=pipe
    )


def _threads(
    process: subprocess.Popen[bytes], call: Call, output: Output
) -> list[threading.Thread]:
    """Those that read from the command, and write to it."""
    threads = [
        threading.Thread(target=output.read, args=(name, process), daemon=True)
        for name in output.unread
    ]
    if call.given is not None:
        threads.append(threading.Thread(target=_write, args=(process, call.given), daemon=True))
    return threads


def _write(process: subprocess.Popen[bytes], given: bytes) -> None:
    assert process.stdin is not None
    try:
        with process.stdin as stream:
            stream.write(given)
    except OSError:
        pass  # the command has ended, or reads no more


def _end(
    process: subprocess.Popen[bytes] | None, threads: list[threading.Thread], output: Output
) -> None:
    """Kills what the command has left, and waits for the rest of its output."""
    _sweep(process)
    if process is not None:
        for name in list(output.unread):
            output.read(name, process)
    for thread in threads:
        if thread.is_alive():
            thread.join()


def _sweep(process: subprocess.Popen[bytes] | None) -> None:
    """Kills and reaps whatever the command has left.  Each round finds the children of those that
    the last one has killed."""
    while children := _children():
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
                if process is None or child != process.pid:
                    os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass  # it has ended
        if process is not None:
            process.wait()


def _children() -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError):
                continue  # it has ended
            if parent == os.getpid():
                found.append(int(name))
    return found
