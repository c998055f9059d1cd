# SPDX-License-Identifier: MIT
"""CPython's own tests of concurrent.futures, with the Executor of this package.

The interpreters at hand that have the package `test` run them (cpython.py), part by part.  What
deviates is listed here with its reason; a test that is listed and passes is a fault of the list.
So is what passes only with an adaptation, whose reasons are in cpython.ADAPTATIONS.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
import subprocess
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

# By adaptation: the tests that meet it, whether they pass or deviate.
ADAPTED = {
    "exception": [
        "deadlock/test_crash_at_task_unpickle",
        "deadlock/test_crash_big_data",
        "deadlock/test_crash_during_func_exec_on_worker",
        "deadlock/test_crash_during_result_pickle_on_worker",
        "deadlock/test_error_at_task_unpickle",
        "deadlock/test_error_during_result_unpickle_in_result_handler",
        "deadlock/test_exit_at_task_unpickle",
        "deadlock/test_exit_during_result_unpickle_in_result_handler",
        "deadlock/test_shutdown_deadlock",
    ],
    "shutdown": ["shutdown/test_cancel_futures"],
    "script": [
        "shutdown/test_hang_gh83386",
        "shutdown/test_interpreter_shutdown",
        "shutdown/test_submit_after_interpreter_shutdown",
    ],
    "_executor_manager_thread": ["deadlock/test_shutdown_deadlock_pickle"],
    "_broken": ["failing_initializer/test_initializer"],
    "idle": ["deadlock/test_gh105829_should_not_deadlock_if_wakeup_pipe_full"],
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


class Told(NamedTuple):
    """What a test became of."""

    verdict: str
    text: str
    met: list[str]  # adaptations


def run(program: str, part: str) -> dict[str, Told]:
    """By test of a part."""
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
    surroundings["PYTHONPATH"] = f"{PACKAGE.parent}:{HERE}"
    ran = subprocess.run(
        [program, str(HERE / "cpython.py"), part],
        env=surroundings, capture_output=True, text=True, timeout=LIMIT_S,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    verdicts: dict[str, Told] = {}
    for line in ran.stdout.splitlines():
        if line.startswith("{"):
            told: dict[str, Any] = json.loads(line)
            name = f"{part}/{told['test']}"
            if name not in verdicts or verdicts[name].verdict == "passed":
                verdicts[name] = Told(told["verdict"], told["text"], told["met"])
    assert verdicts, ran.stdout + ran.stderr
    return verdicts


def note(text: str) -> None:
    """For the end of tools/test.sh."""
    print(text)
    if os.environ.get("GPUD_TEST_RESULTS"):
        with open(os.environ["GPUD_TEST_RESULTS"], "a", encoding="utf-8") as out:
            out.write(f"note {text}\n")


def show(names: dict[str, list[str]]) -> None:
    """The tests by reason."""
    for reason, tests in names.items():
        print(f"  {reason}:")
        for name in tests:
            print(f"    {name}")


def check_adapted(ran: dict[str, Told]) -> None:
    """Each test has met the adaptations for which it is listed; older versions have fewer tests."""
    assert list(ADAPTED) == list(cpython.ADAPTATIONS)
    for kind, names in ADAPTED.items():
        met = sorted(name for name, told in ran.items() if kind in told.met)
        assert met == [name for name in names if name in ran], kind


def check(version: str, verdicts: dict[str, Told]) -> None:
    ran = {name: told for name, told in verdicts.items() if told.verdict != "skipped"}
    deviating = {name: told.text for name, told in ran.items() if told.verdict == "deviating"}
    adapted = {
        reason: [name for name in ran if kind in ran[name].met and name not in deviating]
        for kind, reason in cpython.ADAPTATIONS.items()
    }
    count = sum(1 for name, told in ran.items() if told.met and name not in deviating)
    note(f"CPython {version}: {len(ran)} run, {len(ran) - len(deviating)} passed "
         f"(of them {count} adapted), {len(deviating)} deviating")  # fmt: skip
    show({"adapted: " + reason: tests for reason, tests in adapted.items() if tests})
    show({"deviating: " + (DEVIATIONS[name].reason if name in DEVIATIONS else "NOT LISTED"): [name]
          for name in deviating})  # fmt: skip
    for name, text in deviating.items():
        assert name in DEVIATIONS, f"{name}\n{text}"
        assert DEVIATIONS[name].shown_by in text, f"{name}\n{text}"
    for name in DEVIATIONS:
        assert name in deviating, f"{name} is listed and passes"
    assert len(deviating) <= MOST_DEVIATIONS * len(ran)
    assert len(ran) >= 44
    check_adapted(ran)


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
