#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the runner and the harness catch what they are there to catch.

usage: check_runner.py RUNNER FAULTS

FAULTS has a case that passes, one that skips, and one for each way to misbehave (fail_...).
"""
import os
import subprocess
import sys
import tempfile


def main():
    runner, faults = sys.argv[1:3]
    record = os.environ.get("GPUD_TEST_RESULTS")
    listed = subprocess.check_output([faults, "--list"], text=True)
    names = [line.split()[0] for line in listed.splitlines()]
    with tempfile.NamedTemporaryFile("r") as results:
        env = dict(os.environ, GPUD_TEST_RESULTS=results.name)
        run = subprocess.run([runner, "--deadline", "5", faults], env=env, text=True,
                             stdout=subprocess.PIPE)
        seen = dict(reversed(line.strip().split(" ", 1)) for line in results)
    wrong = []
    for name in names:
        wanted = {"pass": "pass", "skip": "skip"}.get(name, "fail")
        told = seen.get(f"faults/{name}" + ": no such device here" * (name == "skip"))
        if told != wanted:
            wrong.append(f"{name}: {told}, not {wanted}")
    if "skip skip: no such device here" not in run.stdout:
        wrong.append("the reason of a skip is not shown")
    if run.returncode != 1:
        wrong.append(f"the runner's exit status is {run.returncode}, not 1")
    if record:
        with open(record, "a") as out:
            out.write(f"{'fail' if wrong else 'pass'} check/runner\n")
    if wrong:
        print(run.stdout)
        print("\n".join(wrong))
    return 1 if wrong else 0


sys.exit(main())
