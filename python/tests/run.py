#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs one file of tests under pytest, in the environment that environment.py makes.

usage: run.py BUILD TEST [ARGUMENT...]

BUILD is a build tree with the Python package; the environment is build-python/venv beside the
sources, or $GPUD_TEST_VENV.  Results go to $GPUD_TEST_RESULTS, a line for each test.  A process
that the tests leave behind is a failure: this process adopts it.
"""

from __future__ import annotations

import compileall
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import environment  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIPPED, NO_TESTS = 77, 5
LEAVES_S = 2.0  # a pool's processes have this long to be gone after pytest's own end
PR_SET_CHILD_SUBREAPER = 36


def record(verdict: str, name: str, reason: str = "") -> None:
    line = f"{verdict} {name}{': ' if reason else ''}{' '.join(reason.split())}\n"
    print(line, end="", flush=True)
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a", encoding="utf-8") as out:
            out.write(line)


def children() -> dict[int, str]:
    """Processes whose parent is this one, but for those that have ended."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (entry / "cmdline").read_text().replace("\0", " ").strip()
        except (OSError, ValueError):
            continue  # it ended
        if int(parent) == os.getpid() and state != "Z":
            found[int(entry.name)] = command
    return found


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def left_behind() -> dict[int, str]:
    """The processes that are still there after LEAVES_S; it kills them."""
    until = time.monotonic() + LEAVES_S
    left: dict[int, str] = {}
    while found := children():
        remaining = until - time.monotonic()
        if remaining > 0:
            signal.sigtimedwait([signal.SIGCHLD], remaining)
        else:
            left |= found
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            signal.sigwait([signal.SIGCHLD])
        reap()
    return left


def unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    build, test = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    venv = os.environ.get("GPUD_TEST_VENV") or ROOT / "build-python/venv"
    try:
        python = environment.prepare(pathlib.Path(venv))
    except environment.Unavailable as reason:
        record("skip", f"{test.stem}/all", str(reason))
        return SKIPPED
    # Once for all workers and programs of the tests: none of them writes bytecode.
    compileall.compile_dir(build / "python/gpudispatch", quiet=2)
    os.environ.pop("LD_LIBRARY_PATH", None)  # of Meson; nothing of the package needs it
    surroundings = dict(
        os.environ,
        PATH=f"{python.parent}:{os.environ['PATH']}",
        PYTHONPATH=f"{build / 'python'}:{HERE}",
        PYTHONDONTWRITEBYTECODE="1",
        GPUD_TEST_BUILD=str(build),
    )
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    ran = subprocess.run(
        [
            str(python), "-m", "pytest", "-p", "results", "-p", "no:cacheprovider",
            "--rootdir", str(ROOT), *sys.argv[3:], str(test),
        ],
        cwd=ROOT, env=surroundings, preexec_fn=unblock,
    )  # fmt: skip
    left = left_behind()
    for pid, command in left.items():
        record("fail", f"{test.stem}/leaves", f"process {pid} {command}")
    if ran.returncode not in (0, 1):
        why = "finds no test" if ran.returncode == NO_TESTS else f"ends with {ran.returncode}"
        record("fail", f"{test.stem}/pytest", why)
    return 1 if left else ran.returncode


if __name__ == "__main__":
    sys.exit(main())
