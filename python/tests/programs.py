# SPDX-License-Identifier: MIT
"""Programs of their own, for tests of how a program ends."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import textwrap

import gpudispatch

# Of the modules that a program imports.
PACKAGE = str(pathlib.Path(gpudispatch.__file__).absolute().parent.parent)
HERE = str(pathlib.Path(__file__).resolve().parent)
LIMIT_S = 60.0

HEAD = f"""
import os, signal, sys, threading, time
sys.path[:0] = [{PACKAGE!r}, {HERE!r}]
import executor_tasks as tasks
from gpudispatch import Executor, Pool
if __name__ == "__main__":
"""


def script(tmp_path: pathlib.Path, body: str) -> tuple[int, str, str]:
    """Runs the body in a main program; its status, stdout and stderr."""
    path = tmp_path / "script.py"
    path.write_text(HEAD + textwrap.indent(textwrap.dedent(body), "    "))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)], capture_output=True, text=True, timeout=LIMIT_S
    )
    return done.returncode, done.stdout, done.stderr
