# SPDX-License-Identifier: MIT
"""A plugin of pytest: a line for each test in the file that $GPUD_TEST_RESULTS names.

The lines are those of the other suites: `pass NAME`, `fail NAME`, `skip NAME: reason`.
"""

from __future__ import annotations

import os
import pathlib

import pytest


class Results:
    def __init__(self, path: str) -> None:
        self.path = path
        self.verdicts: dict[str, tuple[str, str]] = {}

    def name(self, nodeid: str) -> str:
        file, _, rest = nodeid.partition("::")
        return f"{pathlib.PurePath(file).stem}/{rest.replace('::', '.')}"

    def settle(self, name: str, verdict: str, reason: str = "") -> None:
        """A failing setup or teardown makes a test fail, whatever its call did."""
        known = self.verdicts.get(name, ("pass", ""))
        if verdict == "fail" or known[0] == "pass":
            self.verdicts[name] = (verdict, reason)

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = self.name(report.nodeid)
        if hasattr(report, "wasxfail"):
            expected = "an expected failure: " + report.wasxfail
            self.settle(name, "skip" if report.skipped else "fail", expected)
        elif report.failed:
            self.settle(name, "fail")
        elif report.skipped:
            where = report.longrepr
            text = where[2] if isinstance(where, tuple) else str(where)
            self.settle(name, "skip", text.removeprefix("Skipped: "))
        else:
            self.settle(name, "pass")
        if report.when not in ("setup", "call"):  # with xdist, "???" if the test has killed pytest
            self.write(name)

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            name = self.name(report.nodeid) + "collected"
            self.settle(name, "fail")
            self.write(name)
        elif report.skipped and isinstance(report.longrepr, tuple):
            name = self.name(report.nodeid) + "all"
            self.settle(name, "skip", report.longrepr[2].removeprefix("Skipped: "))
            self.write(name)

    def write(self, name: str) -> None:
        verdict, reason = self.verdicts.pop(name)
        tail = ": " + " ".join(reason.split()) if verdict == "skip" else ""
        with open(self.path, "a", encoding="utf-8") as out:
            out.write(f"{verdict} {' '.join(name.split())}{tail}\n")


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("GPUD_TEST_RESULTS")
    if path and not hasattr(config, "workerinput"):  # with xdist, the controller writes
        config.pluginmanager.register(Results(path), "gpudispatch-results")
