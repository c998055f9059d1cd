#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the virtual environment in which the tests of the Python package run.

usage: environment.py DIRECTORY

It holds requirements.txt beside this file, or the list there that $GPUD_TEST_REQUIREMENTS names,
and is kept until that list or the interpreter changes.  Where it cannot be made, the exit status is
77 and the last line has the reason.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import time

SKIPPED = 77
AGAIN_S = 600  # pip is not tried again for each file of tests when the index is out of reach
HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / os.environ.get("GPUD_TEST_REQUIREMENTS", "requirements.txt")


class Unavailable(Exception):
    """No such environment can be made here; the text is the reason for the skipped tests."""


def fingerprint() -> str:
    lists = sorted({REQUIREMENTS, HERE / "requirements.txt"})  # one may name the other
    parts = [*(file.read_text() for file in lists), sys.version, sys.base_prefix]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def fill(directory: pathlib.Path) -> None:
    if importlib.util.find_spec("ensurepip") is None:
        raise Unavailable("needs the package python3-venv")
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    installed = subprocess.run(
        [
            str(directory / "bin/python"), "-m", "pip", "install", "--quiet", "--no-input",
            "--disable-pip-version-check", "--requirement", str(REQUIREMENTS),
        ],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if installed.returncode:
        print(installed.stdout)
        last = (installed.stdout.strip().splitlines() or ["it prints nothing"])[-1]
        raise Unavailable(f"needs the Python index (pip: {last})")


def prepare(directory: pathlib.Path) -> pathlib.Path:
    """Returns the interpreter of the environment, which is made first where needed."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    stamp = directory / "made-for.txt"
    with open(directory.with_name(directory.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != fingerprint():
            failed = directory.with_name(directory.name + ".failed")
            if failed.exists() and time.time() - failed.stat().st_mtime < AGAIN_S:
                raise Unavailable(failed.read_text())
            try:
                fill(directory)
            except Unavailable as reason:
                failed.write_text(str(reason))
                raise
            failed.unlink(missing_ok=True)
            stamp.write_text(fingerprint())
    return directory / "bin/python"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(prepare(pathlib.Path(sys.argv[1]).resolve()))
    except Unavailable as reason:
        print(reason)
        return SKIPPED
    return 0


if __name__ == "__main__":
    sys.exit(main())
