# SPDX-License-Identifier: MIT
"""What Pool.run() does: its arguments in the program, and the command in a worker."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from gpudispatch import settings

TYPE_CHECKING = False  # as in typing, whose import costs a worker 9 ms
if TYPE_CHECKING:
    from collections.abc import Iterable


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
    words = [settings.path("argv", word) for word in argv]
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
    """In a worker: runs a command and waits for it.  What interrupts the wait kills the command;
    the keeper of the worker, which ends after it, kills whatever that has started."""
    surroundings = dict(os.environ)
    for name, value in call.env.items():
        if value is None:
            surroundings.pop(name, None)
        else:
            surroundings[name] = value
    done: subprocess.CompletedProcess[bytes] = subprocess.run(
        call.argv,
        env=surroundings,
        cwd=call.cwd,
        input=call.given,
        stdin=subprocess.DEVNULL if call.given is None else None,
        capture_output=call.capture,
        check=call.check,
    )
    return done
