#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs test programs that measure time: N at a time, and Meson runs no other test meanwhile.

usage: measuring.py N RUNNER PROGRAM...

Such a program waits most of its time, so a few of them hardly delay one another.
"""
import concurrent.futures
import pathlib
import subprocess
import sys


def main():
    at_a_time, runner, programs = int(sys.argv[1]), sys.argv[2], sys.argv[3:]

    def run(program):
        return subprocess.run([runner, program], text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    failed = False
    with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
        for program, ran in zip(programs, pool.map(run, programs)):
            print(f"== {pathlib.Path(program).name}\n{ran.stdout}", end="", flush=True)
            failed |= ran.returncode != 0
    return 1 if failed else 0


sys.exit(main())
