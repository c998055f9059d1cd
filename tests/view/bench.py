#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs gpudispatch-bench --view with small nights, and checks the figures that hold at any speed.

usage: bench.py PROGRAM SANITIZER
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from checks import Checks

PROGRAM, SANITIZER = os.path.abspath(sys.argv[1]), sys.argv[2]
check = Checks("view bench")


def run(*args, folder=None):
    env = dict(os.environ, **({"TMPDIR": folder} if folder else {}))
    r = subprocess.run([PROGRAM, "--view", *args], capture_output=True, text=True, env=env,
                       timeout=500)
    return r.returncode, r.stdout, r.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        status, text, errors = run("--quick", "--json", folder=folder)
        check("runs", status == 0 and errors == "", (status, errors))
        check("leaves_nothing", os.listdir(folder) == [], os.listdir(folder))
    d = json.loads(text)
    check("quick", d["quick"] is True and d["few"] < d["many"] < 100000, d)
    missing = [k for k in d["units"] if not isinstance(d[k], (int, float))]
    check("all_figures", len(d["units"]) >= 15 and not missing, missing)
    check("cpu_within_time", 0 < d["report_1m_cpu_s"] <= d["report_1m_s"] * 1.5, d)
    check("trace_keeps_nothing", d["trace_beyond_csv_mib"] < 1, d["trace_beyond_csv_mib"])
    # 48 bytes for an attempt, and the program itself; a sanitizer needs more.
    if SANITIZER == "none":
        check("memory", d["report_1m_peak_mib"] < 16, d["report_1m_peak_mib"])
    check("snapshot_size", 1 < d["snapshot_kib"] <= 16, d["snapshot_kib"])
    check("metrics_size", 16 < d["metrics_kib"] <= 64, d["metrics_kib"])
    for args in ["--tasks"], ["--only", "report_1m_s"], ["x"]:
        status, _, errors = run(*args)
        check(f"usage_{args[0]}", status == 2 and "usage:" in errors, (args, status, errors))
    return 1 if check.failed else 0


sys.exit(main())
