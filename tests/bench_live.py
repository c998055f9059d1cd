#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the cells of gpudispatch-bench that need classes, with few rounds, and checks their figures.

usage: bench_live.py PROGRAM JANSSON

People judge the speed, on a machine that does nothing else.  The bounds here are so wide that a
figure beyond them is not the one that its key names.
"""
import json
import os
import subprocess
import sys

from checks import Checks

PROGRAM, JANSSON = os.path.abspath(sys.argv[1]), sys.argv[2] == "true"
CLASSES = [f"{name}_{cell}" for cell in ("w8_1cpu", "w64_1cpu", "w8", "w64")
           for name in ("classes8_vs_one", "one_class_vs_plain", "classes8_vs_plain")]
PARTS = ["evict_order_us_p99", "evict_gone_us_p99", "evict_start_us_p99"]
EVICTIONS = ["evict_beyond_unload_us_p50", "evict_beyond_unload_us_p99",
             *PARTS, "evict_setup_us_p99"]
ONE_CPU = ["evict_beyond_unload_us_1cpu"]
SIMULATED = ["makespan_live_vs_sim", "wait_live_vs_sim"]
check = Checks("bench_live")


def measure(keys):
    """Returns the figures of the keys, and checks that the cells ran."""
    args = [x for key in keys for x in ("--only", key)]
    r = subprocess.run([PROGRAM, "--quick", "--json", *args], capture_output=True, text=True,
                       timeout=500)
    check(f"runs {keys[0]}", r.returncode == 0 and r.stderr == "", (r.returncode, r.stderr))
    d = json.loads(r.stdout)
    check(f"keys {keys[0]}", list(d["units"]) and set(d["units"]) == set(keys), d["units"])
    return d


def within(name, value, low, high):
    check(name, isinstance(value, (int, float)) and low <= value <= high, value)


def check_classes(keys):
    d = measure(keys)
    for key in keys:
        within(key, d[key], 0.02, 50)
        within("raw_" + key, d["raw_" + key], 1e-4, 1e3)  # million tasks per second


def check_evictions():
    d = measure(EVICTIONS)
    p50, p99 = d["evict_beyond_unload_us_p50"], d["evict_beyond_unload_us_p99"]
    within("median of evictions", p50, 20, 1e6)
    within("p99 of evictions", p99, p50, 1e7)
    check("medians of evictions", d["raw_evict_beyond_unload_us_p99"] == p50, d)
    for key in PARTS:
        within(key, d[key], 1, p99)
        within("raw_" + key, d["raw_" + key], 1, d[key])
    # Medians do not add up exactly.
    within("parts of the median", sum(d["raw_" + k] for k in PARTS) / p50, 0.3, 1.5)


def check_simulated():
    d = measure(SIMULATED)
    if not JANSSON:
        check("no simulator", all(d[k] is None for k in SIMULATED), d)
        return
    within("makespan of the simulator", d["raw_makespan_live_vs_sim"], 300, 700)
    within("makespan", d["makespan_live_vs_sim"], 0.6, 3)
    within("wait", d["wait_live_vs_sim"], 0.01, 100)


def main():
    one = [k for k in CLASSES if k.endswith("_1cpu")]
    check_classes(one)
    within("evictions on one CPU", measure(ONE_CPU)[ONE_CPU[0]], 20, 1e7)
    check_simulated()
    if len(os.sched_getaffinity(0)) > 1:
        check_classes([k for k in CLASSES if k not in one])
        check_evictions()
    return 1 if check.failed else 0


sys.exit(main())
