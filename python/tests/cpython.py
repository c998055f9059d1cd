#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs a part of CPython's own tests of concurrent.futures with this package's Executor.

usage: cpython.py PART      the names of PARTS; prints one line of JSON for each test

Nothing is copied: the mixins come from the interpreter's package `test`, and each is joined to
PoolMixin as CPython joins it to its own executors, but without a multiprocessing context.  Each
line has the ADAPTATIONS that the test has met.
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

# What is different here from what CPython tests.
ADAPTATIONS = {
    "exception": "expects the exception of the task at fault (BROKEN) where CPython loses a whole "
    "pool with BrokenProcessPool: this pool goes on",
    "shutdown": "shutdown(cancel_futures=True) waits until a task has begun, as the test wants one "
    "that has: with this pool all may be cancelled before a worker has started",
    "script": "its script imports the Executor from gpudispatch and adds output='inherit', as its "
    "tasks print",
    "_executor_manager_thread": "reads an attribute that only CPython's executor has: here it is "
    "the thread of the pool",
    "_broken": "reads an attribute that only CPython's executor has: here it is whether all slots "
    "have failed",
    "idle": "replaces parts of ProcessPoolExecutor, which this pool does not use: what is left of "
    "it is a call of map()",
}
IDLE = ("test_gh105829_should_not_deadlock_if_wakeup_pipe_full",)

met: set[str] = set()  # names of ADAPTATIONS; by the test that runs

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
            name = self._testMethodName
            tests.BrokenProcessPool = BROKEN.get(name)
            met.update(["exception"] * (name in BROKEN) + ["idle"] * (name in IDLE))
            super().setUp()

    given = getattr(tests, "assert_python_ok", None)

    def assert_python_ok(*arguments: str, **environment: str) -> Any:
        met.add("script")
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
        if cancel_futures:
            met.add("shutdown")
            while not self.stats()["first_start"]:
                time.sleep(0.001)
        super().shutdown(wait, cancel_futures=cancel_futures)

    @property
    def _executor_manager_thread(self) -> threading.Thread | None:
        met.add("_executor_manager_thread")
        return self._engine.thread

    @property
    def _broken(self) -> bool:
        met.add("_broken")
        stats = self.stats()
        return bool(stats["slots_failed"] == stats["slots"])


Printing = functools.partial(gpudispatch.Executor, output="inherit")  # for scripts of the tests


class Report(unittest.TestResult):
    """A line for each test: its name, what became of it, a traceback, and what it met."""

    def startTest(self, test: unittest.TestCase) -> None:
        met.clear()
        super().startTest(test)

    def line(self, test: unittest.TestCase, verdict: str, text: str = "") -> None:
        name = test.id().rpartition(".")[2]
        line = {"test": name, "verdict": verdict, "text": text, "met": sorted(met)}
        print(json.dumps(line), flush=True)

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
