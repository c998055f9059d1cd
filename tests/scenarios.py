#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists the scenarios of the scheduler: where each one is simulated, and where it is live.

usage: scenarios.py ROOT

Each has a case of its name in tests/proc, and a trace in tests/sched/traces with a function in
tests/sched/traces.py, or a script in tests/sched.  Fails if one of them is missing.
"""
import pathlib
import re
import sys

SCENARIOS = """
    busy_client_keeps_draining_alive
    blocked_load_blocks_no_other_device
    foreign_memory_falls_during_evict
    endless_narrow_one_wide
    endless_narrow_one_wide_without
    endless_narrow_one_wide_24h
    hundred_thousand_blocked_in_front
    burst_128_on_unused_memory
    sixteen_halves_on_eight_at_once
    half_free_twice_is_no_whole
    ten_tenths_return_to_full
    five_batches_same_cost
    sixteen_gpu_twelve_cpu
    two_models_abab_max_wait
    third_model_does_not_fit
    pinned_all_refused_with_numbers
    device_lost_under_promise
    boot_fails_three_times
    seat_reused_by_other_class
    cancel_during_boot
    no_gpu_machine
    limit_ends_early_head_not_later
    two_wide_heads_no_hold_deadlock
    restart_with_blocked_queue
    idle_unloads_after_keep_alive
    keep_alive_races_new_task
    external_adopted_before_grants
    external_host_never_answers
    external_and_resident_share_a_device
""".split()


def live_cases(root):
    """Returns the file of each case of the process tests."""
    return {name: path for path in sorted((root / "tests/proc").glob("*.c"))
            for name in re.findall(r"^T_(?:LONG_)?CASE\((\w+)", path.read_text(), re.M)}


def simulated(root, name):
    """Returns the script; or the trace, if it is there with the check of its name."""
    script = root / "tests/sched" / (name + ".txt")
    if script.exists():
        return script
    path = root / "tests/sched/traces" / (name + ".jsonl")
    checks = (root / "tests/sched/traces.py").read_text()
    return path if path.exists() and f"\ndef {name}(" in checks else None


def main():
    root = pathlib.Path(sys.argv[1])
    live = live_cases(root)
    missing = 0
    for name in SCENARIOS:
        places = [simulated(root, name), live.get(name)]
        missing += places.count(None)
        sim, case = [str(p.relative_to(root)) if p else "MISSING" for p in places]
        print(f"{name:36} {sim:62} {case}")
    print(f"{len(SCENARIOS)} scenarios, {missing} traces or live cases are missing")
    return 1 if missing else 0


sys.exit(main())
