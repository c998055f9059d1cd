# SPDX-License-Identifier: MIT
"""Runs the cases of a script, each with an agent in a scratch directory of its own."""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from agent import Agent  # noqa: E402
from checks import Checks  # noqa: E402


class Skip(Exception):
    """This machine cannot run the case; the text says why."""


def equal(got, wanted):
    assert got == wanted, f"{got!r}, not {wanted!r}"


def read_only(directory):
    """The words before a command that cannot write the directory."""
    mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    words = ["unshare", "-rm", "sh", "-c", mount, directory]
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        raise Skip("this machine allows no mount in a user namespace")
    return words


def run_case(case, agent, check):
    why = ""
    try:
        case(agent)
    except Skip as skip:
        check.skip(case.__name__, skip)
        return
    except (AssertionError, Exception):
        why = traceback.format_exc()
        with contextlib.suppress(OSError):
            why += "\nthe agent's log:\n" + agent.said()
    finally:
        agent.end()
    check(case.__name__, not why, why)
    if not why:
        print(f"ok {case.__name__}", flush=True)


def scratch():
    """Where the directories of the cases are.  In memory, since no case cuts a power: a sync, of
    which each command has several, takes no time there."""
    with contextlib.suppress(OSError):
        memory = os.statvfs("/dev/shm")
        if ("TMPDIR" not in os.environ and os.access("/dev/shm", os.W_OK)
                and memory.f_bavail * memory.f_frsize >= 2 << 30
                and not memory.f_flag & os.ST_NOEXEC):
            return "/dev/shm"
    return None


def run(suite, cases, make=Agent):
    """usage: SCRIPT BUILD_DIRECTORY [CASE...].  Returns the exit status."""
    check = Checks(suite)
    for case in cases:
        if not sys.argv[2:] or case.__name__ in sys.argv[2:]:
            with tempfile.TemporaryDirectory(dir=scratch()) as directory:
                run_case(case, make(os.path.abspath(sys.argv[1]), directory), check)
    return 1 if check.failed else 0
