# SPDX-License-Identifier: MIT
"""Checks of a Python test: each is a line of the file GPUD_TEST_RESULTS."""
import os


class Checks:
    def __init__(self, suite):
        self.suite, self.failed = suite, 0

    def note(self, line):
        record = os.environ.get("GPUD_TEST_RESULTS")
        if record:
            with open(record, "a") as out:
                out.write(line + "\n")

    def __call__(self, name, wanted, got=""):
        self.note(f"{'pass' if wanted else 'fail'} {self.suite}/{name}")
        if not wanted:
            print(f"{name}: {got}")
            self.failed += 1

    def skip(self, name, why):
        print(f"skip {name}: {why}", flush=True)
        self.note(f"skip {self.suite}/{name}: {why}")
