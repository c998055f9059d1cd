#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks gpudispatch-bench --sched with few tasks: its output, and what holds at any speed.

usage: bench_sched.py SANITIZER PROGRAM...

Times are printed and judged by people.  The counters and the virtual time of the workloads are the
same in each build and on each machine.
"""
import json
import os
import subprocess
import sys

from checks import Checks

SANITIZER, PROGRAMS = sys.argv[1], [os.path.abspath(p) for p in sys.argv[2:]]
WAYS = ["strict", "apart", "promise", "learned", "naive"]
check = Checks("bench_sched")


def run(program, *args):
    """Returns (exit status, stdout, stderr)."""
    r = subprocess.run([program, *args], capture_output=True, text=True, timeout=300)
    return r.returncode, r.stdout, r.stderr


def is_missed(value, goal):
    how, limit = goal.split()
    if value is None:
        return False
    return value > float(limit) if how == "<=" else value < float(limit)


def check_rows(d):
    keys = set(d["units"])
    check("each_key_has_a_figure", keys and all(k in d for k in keys), keys)
    check("goals_are_of_keys", set(d["goals"]) < keys, d["goals"])
    # Both sides of a goal could be the same after rounding: then either is right.
    wrong = [k for k, goal in d["goals"].items()
             if is_missed(d[k], goal) != (k in d["missed"]) and d[k] != float(goal.split()[1])]
    check("missed_goals_are_listed", not wrong, wrong)
    times = [k for k in keys if "ns_per_decision" in k or "promise_ns" in k]
    check("decisions_are_timed", len(times) == 15 and all(d[k] > 0 for k in times), times)
    check("nothing_is_examined_while_blocked [S5]", d["scans_while_blocked"] == 0,
          d["scans_while_blocked"])
    scans = [d[k] for k in keys if k.startswith("scans_per_start")]
    check("each_start_was_examined", len(scans) == 5 and all(s >= 1 for s in scans), scans)
    check("promises_are_kept [S2]", d["late_heads"] == 0, d["late_heads"])
    check("apart_delays_no_head [S2]", d["apart_delay_s"] == 0, d["apart_delay_s"])
    if SANITIZER == "none":
        check("bytes_per_task", 32 <= d["bytes_per_task"] < 64, d["bytes_per_task"])


def check_way(name, way, w, jobs, bound):
    def expect(what, wanted):
        check(f"{name}_{what}", wanted, json.dumps(w))

    narrow, wide = w["wait_narrow_s"], w["wait_wide_s"]
    expect("all_jobs_began", narrow["n"] + wide["n"] == jobs and narrow["n"] and wide["n"])
    expect("waits_in_order", all(0 <= x["p50"] <= x["p99"] <= x["max"] for x in (narrow, wide)))
    expect("within_the_bound", 0 < w["utilisation"] <= bound * (1 + 1e-6))
    expect("ratio", abs(w["utilisation_vs_bound"] - w["utilisation"] / bound) < 1e-4)
    expect("held", 0 <= w["missed"] <= w["held_for_head"] <= 1 - w["utilisation"] + 1e-6)
    if way in ("strict", "apart"):
        # CPU tasks could, but there are none.  In models a head may wait for its own worker: with
        # APART others use the share beside that.
        expect("nothing_passes", w["passed"] == 0 or name.startswith("models_apart"))
    else:
        expect("some_pass", w["passed"] > 0)
    if way == "naive":
        # Naive skip holds nothing: what fits begins.
        expect("misses_nothing [S7]", w["missed"] == 0)
        expect("renews_promises", w["renewed"] > 0)
    else:
        expect("promises_are_kept [S2]", w["late"] == 0)
    if way == "apart":
        expect("delays_no_head [S2]", w["delay_of_heads_s"]["n"] > 0
               and w["delay_of_heads_s"]["max"] == 0)


def check_workloads(d):
    check("workloads", sorted(d["workloads"]) == ["flow", "models", "shares"], d["workloads"])
    for name, workload in d["workloads"].items():
        check(f"{name}_ways", [w for w in workload if w in WAYS] == WAYS, workload.keys())
        for way in WAYS:
            check_way(f"{name}_{way}", way, workload[way], workload["jobs"], workload["bound"])
        learned = workload["learned"]
        check(f"{name}_rows", d[f"utilisation_vs_bound_{name}"] == learned["utilisation_vs_bound"]
              and d[f"held_for_head_{name}"] == learned["held_for_head"], learned)


def steady(d):
    """What does not depend on the machine."""
    return [d["workloads"], [v for k, v in d.items() if "scans" in k]]


def check_text(program, d):
    status, text, told = run(program, "--sched", "--quick", "--tasks", "2000")
    lines = text.splitlines()
    first = [line.split()[0] for line in lines if line.strip()]
    check("text", status == 0 and told == "" and all(k in first for k in d["units"]), text)
    check("text_has_goals", any(line.startswith("scans_while_blocked ") and " yes " in line
                                for line in lines), text)
    check("text_has_tables", [first.count(w) for w in WAYS] == [3] * 5, text)


def check_usage(program):
    for args in ["--tasks"], ["--tasks", "0"], ["--tasks", "1x"], ["--passing", "all"], \
            ["--load", "-1"], ["x"]:
        status, text, told = run(program, "--sched", *args)
        check("usage " + " ".join(args), status == 2 and text == "" and "usage:" in told, told)
    status, text, told = run(program, "--sched", "--help")
    check("help", status == 0 and "--passing" in text and told == "", text)


def main():
    seen = []
    for program in PROGRAMS:
        status, text, told = run(program, "--sched", "--json", "--quick")
        check("runs", status == 0 and told == "", (status, told))
        d = json.loads(text)
        check_rows(d)
        check_workloads(d)
        check_text(program, d)
        check_usage(program)
        seen.append(d)
    again = json.loads(run(PROGRAMS[0], "--json", "--sched", "--quick")[1])
    check("same_again [S6]", all(steady(d) == steady(again) for d in seen))

    for passing in "apart", "promise", "naive":
        d = json.loads(run(PROGRAMS[0], "--sched", "--json", "--quick", "--tasks", "3000",
                           "--passing", passing)[1])
        check(f"passing_{passing}", d["passing"] == passing and d["tasks"] == 3000
              and d["scans_while_blocked"] == 0, d)
    full = json.loads(run(PROGRAMS[0], "--sched", "--json", "--quick", "--tasks", "2000", "--load",
                          "200")[1])
    bounds = [w["bound"] for w in full["workloads"].values()]
    check("bound_of_full_devices", full["load"] == 2 and all(0.95 < b <= 1 for b in bounds), bounds)
    check_workloads(full)

    alone = json.loads(run(PROGRAMS[0], "--sched", "--json", "--quick", "--tasks", "1")[1])
    check("no_decisions_no_figure", alone["ns_per_decision_8"] is None, alone)
    return 1 if check.failed else 0


sys.exit(main())
