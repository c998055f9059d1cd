# SPDX-License-Identifier: MIT
"""The interpreters at hand: those of PATH, of the system and of pyenv, one for each version."""

from __future__ import annotations

import functools
import glob
import json
import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

VERSIONS = ("3.11", "3.12", "3.13", "3.13t", "3.14", "3.14t")

QUESTION = """
import json, sys, sysconfig
print(json.dumps([sys.version_info[:3], bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
                  sysconfig.get_paths()["include"], sys.prefix == sys.base_prefix]))
"""


class Interpreter(NamedTuple):
    version: str  # as in VERSIONS
    program: str
    include: str  # with Python.h, if its headers are installed


def ask(program: str) -> Interpreter | None:
    try:
        told = subprocess.run(
            [program, "-I", "-c", QUESTION], capture_output=True, text=True, timeout=30, check=True
        )
        release, free_threaded, include, genuine = json.loads(told.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    version = f"{release[0]}.{release[1]}{'t' if free_threaded else ''}"
    return Interpreter(version, program, include) if genuine else None


@functools.cache
def programs() -> list[str]:
    """All of these versions.  Shims, which start what a directory's settings name, do not count."""
    folders = [*os.environ["PATH"].split(":"), "/usr/bin", "/usr/local/bin"]
    roots = [os.environ.get("PYENV_ROOT"), pathlib.Path.home() / ".pyenv", "/opt/pyenv"]
    folders += [f for root in roots if root for f in glob.glob(f"{root}/versions/*/bin")]
    folders = [folder for folder in folders if "/shims" not in folder]
    named = [f"{folder}/python{version}" for version in VERSIONS for folder in folders]
    return [p for p in dict.fromkeys(map(os.path.realpath, [*named, sys.executable]))
            if os.path.exists(p)]


@functools.cache
def at_hand() -> dict[str, Interpreter]:
    """By version."""
    found: dict[str, Interpreter] = {}
    for interpreter in filter(None, map(ask, programs())):
        found.setdefault(interpreter.version, interpreter)
    return found
