#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that builds of tests/sched/plans.c make the same actions of the same facts.       [S6]

usage: same_actions.py WORLDS PLANS PLANS...
"""
import subprocess
import sys


def sum_of(program, worlds):
    """Returns the line with the sum of all actions."""
    run = subprocess.run([program, "--seeds", f"1-{worlds}", "--sum"],
                         stdout=subprocess.PIPE, text=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith("sum of all actions: ")]
    if len(lines) != 1:
        sys.exit(f"{program}: expected one sum, got {run.stdout!r}")
    return lines[0]


def main():
    sums = {program: sum_of(program, sys.argv[1]) for program in sys.argv[2:]}
    for program, line in sums.items():
        print(program, line)
    return 0 if len(sums) > 1 and len(set(sums.values())) == 1 else 1


sys.exit(main())
