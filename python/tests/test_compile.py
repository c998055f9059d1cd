# SPDX-License-Identifier: MIT
"""The extension's sources compile with the headers of each interpreter at hand, in three ways.

With the limited API of 3.11, as in the wheel; without it, as in a free-threaded build; and with the
headers' own switch for such a build, where no such interpreter is at hand to import the result.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import interpreters
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SOURCES = sorted((ROOT / "python/src").glob("*.c"))
WARNINGS = [
    "-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wvla",
    "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wno-missing-field-initializers", "-Werror",
]  # fmt: skip
LIMITED = ["-DPy_LIMITED_API=0x030b0000"]
FULL: list[str] = []
FREE_THREADED = ["-DPy_GIL_DISABLED=1"]
WAYS = {
    "3.11": [FULL],  # with the limited API the build itself compiles them
    "3.12": [FULL],
    "3.13": [LIMITED, FULL, FREE_THREADED],
    "3.14": [LIMITED, FULL, FREE_THREADED],
    "3.13t": [FULL],
    "3.14t": [FULL],
}


@pytest.mark.parametrize("version", interpreters.VERSIONS)
def test_compiles(version: str) -> None:
    interpreter = interpreters.at_hand().get(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} at hand")
    if not os.path.exists(f"{interpreter.include}/Python.h"):
        pytest.skip(f"Python {version} has no headers here")
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler
    for options in WAYS[version]:
        subprocess.run(
            [
                compiler, *WARNINGS, *options, "-D_GNU_SOURCE", "-fsyntax-only",
                f"-I{ROOT / 'include'}", "-isystem", interpreter.include, *map(str, SOURCES),
            ],
            check=True,
        )  # fmt: skip
