#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests crash-course on a processor and on the device that it chooses: compares its output.

usage: crash-course.py PROGRAM
"""
import os
import re
import subprocess
import sys

LINE = re.compile(r"^(\d)  (.{18}) (\w+) +([\d.]+) ms  worker 0\.(\d+)  (.*)$", re.M)
CPU = [("SUCCESS", ""), ("CRASHED", "signal 11"), ("SUCCESS", ""), ("TIMEOUT", ""), ("SUCCESS", ""),
       ("CRASHED", "signal 6"), ("SUCCESS", "")]
GPU = [("SUCCESS", ""), ("ERROR", "cudaErrorIllegalAddress"), ("SUCCESS", ""), ("TIMEOUT", ""),
       ("SUCCESS", ""), ("ERROR", "cudaErrorAssert"), ("SUCCESS", "")]
LIVES = ["1", "1", "2", "2", "3", "3", "4"]


def run(*arguments, status=0):
    done = subprocess.run([sys.argv[1], *arguments], capture_output=True, text=True, timeout=100)
    if done.returncode != status:
        sys.exit(f"{arguments}: exit status {done.returncode}, not {status}\n"
                 f"{done.stdout}{done.stderr}")
    return done


def check(done, wanted):
    rows = LINE.findall(done.stdout)
    if len(rows) != 7 or "7 of 7 ended as they should" not in done.stdout:
        sys.exit(f"seven lines and a count:\n{done.stdout}{done.stderr}")
    for row, (outcome, text), life in zip(rows, wanted, LIVES):
        if row[2] != outcome or text not in row[5] or row[4] != life:
            sys.exit(f"{outcome} with \"{text}\" in life {life}, not: {row}\n{done.stdout}")
    if not 2500 <= float(rows[3][3]) < 30000:
        sys.exit(f"the endless one is killed at limit and grace, 2.5 s: {rows[3]}")


check(run("--devices", "cpu:1"), CPU)
done = run()
check(done, CPU if done.stdout.startswith("No GPU: ") else GPU)
run("--what", status=2)
run("--devices", status=2)
if "Usage" not in run("--help").stdout or "cpu:0" not in run("--devices", "cpu:0", status=1).stderr:
    sys.exit("--help helps, and a bad device is named")
if os.environ.get("GPUD_TEST_RESULTS"):
    with open(os.environ["GPUD_TEST_RESULTS"], "a") as out:
        out.write("pass examples/crash-course\n")
print("crash-course: all is right")
