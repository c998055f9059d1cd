#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a part of CPython's own tests of concurrent.futures with this package's Executor.

usage: cpython.py PART      the names of PARTS; prints one line of JSON for each test

Nothing is copied: the mixins come from the interpreter's package `test`, and each is joined to
PoolMixin as CPython joins it to its own executors.  What is different here:
  * BrokenProcessPool, with which CPython loses a whole pool, is in each test the exception of the
    one task at fault (BROKEN): this pool goes on;
  * no multiprocessing context is given;
  * the scripts that a test starts import their executor from gpudispatch, and give it the option
    output="inherit", as their tasks print;
  * class Executor below has the attributes of CPython's that tests look at, and ends a pool no
    sooner than it has begun a task: test_cancel_futures wants one that has.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import threading
import time
import unittest
from concurrent.futures import Future
from pickle import UnpicklingError
from typing import Any

import gpudispatch

# Where a mixin lives since 3.12, when the module became a package.
PARTS = {
    "executor": ("executor", "ExecutorTest"),
    "wait": ("test_wait", "WaitTests"),
    "as_completed": ("test_as_completed", "AsCompletedTests"),
    "shutdown": ("test_shutdown", "ExecutorShutdownTest"),
    "initializer": ("test_init", "InitializerMixin"),
    "failing_initializer": ("test_init", "FailingInitializerMixin"),
    "deadlock": ("test_deadlock", "ExecutorDeadlockTest"),
}

BROKEN: dict[str, type[BaseException]] = {
    "test_exit_at_task_unpickle": SystemExit,
    "test_error_at_task_unpickle": UnpicklingError,
    "test_crash_at_task_unpickle": gpudispatch.WorkerCrashed,
    "test_crash_during_func_exec_on_worker": gpudispatch.WorkerCrashed,
    "test_crash_during_result_pickle_on_worker": gpudispatch.WorkerCrashed,
    "test_error_during_result_unpickle_in_result_handler": UnpicklingError,
    "test_exit_during_result_unpickle_in_result_handler": SystemExit,
    "test_shutdown_deadlock": gpudispatch.WorkerCrashed,
    "test_crash_big_data": gpudispatch.WorkerCrashed,
}

PACKAGE = "test.test_concurrent_futures"


def module(name: str) -> Any:
    """A module of CPython's tests; in 3.11 all are one."""
    whole = importlib.import_module(PACKAGE)
    return importlib.import_module(f"{PACKAGE}.{name}") if hasattr(whole, "__path__") else whole


def joined(part: str) -> type[unittest.TestCase]:
    home, mixin = PARTS[part]
    tests, util = module(home), module("util")

    class PoolMixin(util.ExecutorMixin):  # type: ignore[misc]
        executor_type = Executor

        def get_context(self) -> None:
            """The tests give it as mp_context: without one there is no warning."""

        def setUp(self) -> None:
            tests.BrokenProcessPool = BROKEN.get(self._testMethodName)
            super().setUp()

    given = getattr(tests, "assert_python_ok", None)

    def assert_python_ok(*arguments: str, **environment: str) -> Any:
        script = [a.replace("from concurrent.futures import", "from cpython import Printing as")
                  for a in arguments]
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
        return given(*script, **environment)  # type: ignore[misc]

    if given is not None:
        tests.assert_python_ok = assert_python_ok
    bases = (getattr(tests, mixin), PoolMixin, util.BaseTestCase)
    return type(mixin, bases, {})


class Executor(gpudispatch.Executor):
    """The class that the tests use."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        while cancel_futures and not self.stats()["first_start"]:
            time.sleep(0.001)
        super().shutdown(wait, cancel_futures=cancel_futures)

    @property
    def _executor_manager_thread(self) -> threading.Thread | None:
        return self._pool.thread

    @property
    def _broken(self) -> bool:
        stats = self.stats()
        return bool(stats["slots_failed"] == stats["slots"])


Printing = functools.partial(gpudispatch.Executor, output="inherit")  # for scripts of the tests


class Report(unittest.TestResult):
    """A line for each test: its name, what became of it, and the end of a traceback."""

    def line(self, test: unittest.TestCase, verdict: str, text: str = "") -> None:
        name = test.id().rpartition(".")[2]
        print(json.dumps({"test": name, "verdict": verdict, "text": text}), flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.line(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        text = self._exc_info_to_string(err, test)  # type: ignore[attr-defined]
        self.line(test, "deviating", text)

    addError = addFailure

    def stopTest(self, test: unittest.TestCase) -> None:
        from test import support

        if support.environment_altered:
            self.line(test, "deviating", "the test has left a thread behind")
            support.environment_altered = False

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.line(test, "skipped", reason)


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in PARTS:
        print(__doc__, file=sys.stderr)
        return 2
    from test import support

    support.verbose = 0
    assert issubclass(gpudispatch.Future, Future)
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(joined(sys.argv[1]))
    tests.run(Report())
    return 0


if __name__ == "__main__":
    sys.exit(main())
