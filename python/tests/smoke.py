#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The shortest test of the Python package; needs no other package, and no virtual environment.

usage: smoke.py [BUILD]     with BUILD, the package in that build tree; else the installed one
"""

from __future__ import annotations

import importlib
import os
import pathlib
import re
import sys
import traceback
from collections.abc import Callable

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
SOURCES = HERE.parent
BEFORE = set(sys.modules)  # site-packages may have files that import more at each start


def version() -> None:
    """The package and the library that is linked in are of one version."""
    import gpudispatch
    from gpudispatch import _core

    assert _core.library_version == gpudispatch.__version__, _core.library_version


def no_needs() -> None:
    """To import the package takes nothing that is not in the standard library."""
    import gpudispatch

    home = pathlib.Path(gpudispatch.__file__).parent
    modules = [f.stem for f in home.glob("*.py") if f.stem not in ("__init__", "__main__")]
    for name in modules:
        importlib.import_module(f"gpudispatch.{name}")
    loaded = set(sys.modules) - BEFORE
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    foreign = {name for name in foreign if "site-packages" in (origin(name) or "")}
    assert foreign <= {"gpudispatch"}, foreign


def origin(name: str) -> str | None:
    return getattr(sys.modules.get(name), "__file__", None)


def tasks() -> None:
    """A worker computes, and a task that fails is told from one that does not."""
    import gpudispatch

    with gpudispatch.Executor(1) as executor:
        assert executor.submit(pow, 2, 5).result(timeout=60) == 32
        assert list(executor.map(abs, [-1, 2, -3])) == [1, 2, 3]
        assert isinstance(executor.submit(int, "x").exception(timeout=60), ValueError)


def listed() -> None:
    """Each file of the package, of the extension and of the tests has its name in meson.build."""
    package = (SOURCES / "meson.build").read_text()
    tests = (HERE / "meson.build").read_text()
    wanted = [(f.relative_to(SOURCES / "gpudispatch").as_posix(), package)
              for f in (SOURCES / "gpudispatch").rglob("*")
              if f.suffix in (".py", ".pyi", ".typed")]
    wanted += [(f.stem, package) for f in (SOURCES / "src").glob("*.c")]
    wanted += [(f.stem, tests) for f in HERE.glob("test_*.py")]
    missing = [name for name, text in wanted if not re.search(f"'{re.escape(name)}'", text)]
    assert not missing, f"not in meson.build: {missing}"


def record(verdict: str, name: str) -> None:
    line = f"{verdict} python_smoke/{name}\n"
    print(line, end="", flush=True)
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a", encoding="utf-8") as out:
            out.write(line)


def main() -> int:
    cases: list[Callable[[], None]] = [no_needs, version, tasks]
    if len(sys.argv) > 1:
        sys.path.insert(0, str(pathlib.Path(sys.argv[1]).resolve() / "python"))
        cases.append(listed)
    failed = 0
    for case in cases:
        try:
            case()
        except Exception:
            traceback.print_exc()
            failed += 1
            record("fail", case.__name__)
        else:
            record("pass", case.__name__)
    return 1 if failed else 0


if __name__ == "__main__":  # a worker imports this file
    sys.exit(main())
