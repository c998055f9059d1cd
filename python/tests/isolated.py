# SPDX-License-Identifier: MIT
"""Imports the package in two isolated sub-interpreters, each with a lock of its own.

usage: isolated.py     by an interpreter from 3.12 on that has the package
"""

from __future__ import annotations

import sys
from typing import Any

CODE = """
import gpudispatch._core as core
kinds = {core.Dispatcher, core.Shared}
assert len(kinds) == 2
assert core.Dispatcher.__module__ == "gpudispatch._core", core.Dispatcher.__module__
"""


def fail(report: Any) -> None:
    if report is not None:
        raise SystemExit(f"isolated.py: {getattr(report, 'formatted', report)}")


def run() -> None:
    if sys.version_info >= (3, 14):
        from concurrent import interpreters  # type: ignore[attr-defined, unused-ignore]

        for _ in range(2):
            interpreter = interpreters.create()
            interpreter.exec(CODE)
            interpreter.close()
        return
    if sys.version_info >= (3, 13):
        import _interpreters as low  # type: ignore[import-not-found, unused-ignore]

        for _ in range(2):
            number = low.create("isolated")
            fail(low.exec(number, CODE))
            low.destroy(number)
        return
    import _xxsubinterpreters as low  # type: ignore[import-not-found, no-redef, unused-ignore]

    for _ in range(2):
        number = low.create(isolated=True)
        low.run_string(number, CODE)
        low.destroy(number)


if __name__ == "__main__":
    import gpudispatch._core  # in the main interpreter, too: three copies of the state

    run()
    assert gpudispatch._core.library_version
    print("isolated: in order")
