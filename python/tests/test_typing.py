# SPDX-License-Identifier: MIT
"""The package is fully typed: for mypy, for pyright, and its stubs agree with the extension."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAMS = pathlib.Path(sys.executable).parent
TYPING = HERE / "typing"  # programs of users: each line with a wrong type is expected to be one


def run(*command: str | os.PathLike[str]) -> None:
    ran = subprocess.run(
        [str(word) for word in command], cwd=ROOT, text=True,
        env=dict(os.environ, MYPYPATH="python", NO_COLOR="1"),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    print(ran.stdout)
    assert ran.returncode == 0, ran.stdout


def cache() -> str:
    return f"--cache-dir={ROOT / 'build-python/mypy'}"


def test_mypy() -> None:
    run(sys.executable, "-m", "mypy", "--strict", cache(), "-p", "gpudispatch")


def test_mypy_of_users() -> None:
    files = sorted(TYPING.glob("*.py"))
    assert files
    run(sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", cache(), *files)


def test_pyright_of_users() -> None:
    run(PROGRAMS / "basedpyright", "--project", TYPING)


def test_complete() -> None:
    """Users see no unknown type."""
    build = os.environ["GPUD_TEST_BUILD"]
    ran = subprocess.run(
        [str(PROGRAMS / "basedpyright"), "--verifytypes", "gpudispatch", "--ignoreexternal",
         "--outputjson"],
        env=dict(os.environ, PYTHONPATH=f"{build}/python"), stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    told = json.loads(ran.stdout)["typeCompleteness"]
    assert told["exportedSymbolCounts"]["withKnownType"] > 0
    unknown = [s["name"] for s in told["symbols"] if s["isExported"] and not s["isTypeKnown"]
               and not s["isTypeAmbiguous"]]  # fmt: skip
    assert not unknown


def test_stubs(tmp_path: pathlib.Path) -> None:
    """The stub against the extension, in a package that has nothing else."""
    build = pathlib.Path(os.environ["GPUD_TEST_BUILD"])
    package = tmp_path / "site/gpudispatch"
    package.mkdir(parents=True)
    shutil.copy(build / "python/gpudispatch/_core.abi3.so", package)
    for name in ("_core.pyi", "tables.py", "py.typed"):  # the stub names types of tables.py
        shutil.copy(ROOT / "python/gpudispatch" / name, package)
    (package / "__init__.py").touch()
    allowed = tmp_path / "allowed.txt"  # before 3.12, buffers have no method that Python sees
    allowed.write_text("gpudispatch\\._core\\.\\w+\\.__buffer__\n")
    site = str(tmp_path / "site")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--allowlist", str(allowed),
         "--ignore-unused-allowlist", "gpudispatch._core"],
        env=dict(os.environ, MYPYPATH=site, PYTHONPATH=site), cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
