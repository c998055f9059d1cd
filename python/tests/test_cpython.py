# SPDX-License-Identifier: MIT
"""CPython's own tests of concurrent.futures, with the Executor of this package.

The interpreters at hand that have the package `test` run them (cpython.py), part by part.  What
deviates is listed here with its reason; a test that is listed and passes is a fault of the list.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import cpython
import interpreters
import pytest

import gpudispatch

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = pathlib.Path(gpudispatch.__file__).absolute().parent
AT_ONCE = 4  # parts that run at the same time: most of their time is waiting
LIMIT_S = 150
MOST_DEVIATIONS = 0.05


class Deviation(NamedTuple):
    reason: str
    shown_by: str  # is in the text of the failure


DEVIATIONS = {
    "failing_initializer/test_initializer": Deviation(
        "the traceback of a failed initializer is in NoWorker and in the log of `gpudispatch`, and "
        "not in that of `concurrent.futures`",
        "no logs of level CRITICAL or higher triggered on concurrent.futures",
    ),
}

QUESTION = """
import importlib.util, sys
for name in ("test.test_concurrent_futures", "test.support"):
    if importlib.util.find_spec(name) is None:
        raise SystemExit(1)
if sys.prefix != sys.base_prefix:
    raise SystemExit(1)
print("%d.%d" % sys.version_info[:2])
"""


@functools.cache
def with_tests() -> dict[str, str]:
    """By version: the interpreters that have CPython's tests."""
    found: dict[str, str] = {}
    for program in interpreters.programs():
        told = subprocess.run(
            [program, "-I", "-c", QUESTION], capture_output=True, text=True, timeout=30
        )
        if told.returncode == 0:
            found.setdefault(told.stdout.strip(), program)
    return found


def run(program: str, part: str) -> dict[str, tuple[str, str]]:
    """By test of a part: the verdict and the text."""
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    surroundings["PYTHONPATH"] = f"{PACKAGE.parent}:{HERE}"
    ran = subprocess.run(
        [program, str(HERE / "cpython.py"), part],
        env=surroundings, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    verdicts: dict[str, tuple[str, str]] = {}
    for line in ran.stdout.splitlines():
        if line.startswith("{"):
            told: dict[str, Any] = json.loads(line)
            name = f"{part}/{told['test']}"
            if verdicts.get(name, ("passed", ""))[0] == "passed":
                verdicts[name] = told["verdict"], told["text"]
    assert verdicts, ran.stdout + ran.stderr
    return verdicts


def check(version: str, verdicts: dict[str, tuple[str, str]]) -> None:
    ran = {name: v for name, v in verdicts.items() if v[0] != "skipped"}
    deviating = {name: text for name, (verdict, text) in ran.items() if verdict == "deviating"}
    print(f"CPython {version}: {len(ran)} run, {len(ran) - len(deviating)} passed, "
          f"{len(deviating)} deviating")  # fmt: skip
    for name in deviating:
        reason = DEVIATIONS[name].reason if name in DEVIATIONS else "NOT LISTED"
        print(f"  {name}: {reason}")
    for name, text in deviating.items():
        assert name in DEVIATIONS, f"{name}\n{text}"
        assert DEVIATIONS[name].shown_by in text, f"{name}\n{text}"
    for name in DEVIATIONS:
        assert name in deviating, f"{name} is listed and passes"
    assert len(deviating) <= MOST_DEVIATIONS * len(ran)
    assert len(ran) >= 44


def conclude(versions: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    if not versions:
        pytest.skip("needs the package libpython3.11-testsuite")
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for version, program in versions.items():
            parts = list(threads.map(functools.partial(run, program), cpython.PARTS))
            with capsys.disabled():
                print()
                check(version, {k: v for part in parts for k, v in part.items()})


def test_first_interpreter(capsys: pytest.CaptureFixture[str]) -> None:
    conclude(dict(list(with_tests().items())[:1]), capsys)


@pytest.mark.slow
def test_other_interpreters(capsys: pytest.CaptureFixture[str]) -> None:
    conclude(dict(list(with_tests().items())[1:]), capsys)
