#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks gpudispatch-bench --queue with few tasks: its output, and what holds at any speed.

usage: bench_queue.py PROGRAM...

People judge times.  The rows that an operation writes, and that no statement scans a table or
sorts, are the same on each machine.
"""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from checks import Checks  # noqa: E402

PROGRAMS = [os.path.abspath(p) for p in sys.argv[1:]]
OPS = ["submit", "claim", "complete"]
SIZES = [1, 64, 1024]
check = Checks("bench_queue")


def run(program, *args, **env):
    """Returns (exit status, stdout, stderr)."""
    r = subprocess.run([program, "--queue", *args], capture_output=True, text=True, timeout=500,
                       env={**os.environ, **env})
    return r.returncode, r.stdout, r.stderr


def is_missed(value, goal):
    how, limit = goal.split()
    return value > float(limit) if how == "<=" else value < float(limit)


def check_rows(d):
    keys = set(d["units"])
    absent = [name for name in ("xargs", "tsp", "parallel") if not shutil.which(name)]
    check("absent_programs_are_named", [text.split()[0] for text in d["not_installed"]] == absent,
          d["not_installed"])
    without = {k for k in keys if not isinstance(d.get(k), (int, float))}
    check("each_key_has_a_figure", keys and without ==
          {k for k in keys for name in absent if name in k.split("_")}, without)
    check("goals_are_of_keys", set(d["goals"]) < keys, d["goals"])
    # Both sides of a goal could be the same after rounding: then either is right.
    wrong = [k for k, goal in d["goals"].items()
             if is_missed(d[k], goal) != (k in d["missed"]) and d[k] != float(goal.split()[1])]
    check("missed_goals_are_listed", not wrong, wrong)
    for op in OPS:
        for n in SIZES:
            key = f"{op}_{n}"
            check(f"{key}_sides_were_measured",
                  all(d[key + side] > 0 for side in ("", "_bare", "_table")), d[key])
            for side in "bare", "table":
                check(f"{key}_vs_{side}", d[f"{key}_vs_{side}"] > 0, d[f"{key}_vs_{side}"])
            check(f"{key}_rows", 1 <= d[f"{key}_rows"] <= 20, d[f"{key}_rows"])
    s = d["settings"]
    check("settings", s["journal_mode"] == "wal" and s["synchronous"] == "2", s)


def check_agent_rows(d):
    check("start", d["start_us"] > 0 and d["start_reply_us"] > 0 and d["start_commits_us"] > 0, d)
    check("adopted", d["adopt_64_ms"] > 0 and d["adopt_0_ms"] > 0 and d["adopt_64_cpu_ms"] > 0, d)
    check("commands", d["commands_us"] > 0, d)
    check("memory", 1 < d["agent_rss_mib"] <= d["agent_peak_mib"] < 1000, d)


def processes_of(scratch):
    """Agents, runners and commands that are left."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if scratch.encode() in (path / "cmdline").read_bytes() or \
                    f"GPUDISPATCH_OUT={scratch}".encode() in (path / "environ").read_bytes():
                found.append((path.name, (path / "cmdline").read_bytes()))
    return found


def check_no_agent(program, scratch):
    """A cell that fails says why, and the others' figures are printed."""
    status, text, told = run(program, "--quick", "--json", "--only", "adopt",
                             GPUD_AGENT_PROGRAM="/no/agent")
    check("agent_is_missing", status == 1 and "/no/agent" in told and "cell adopt: failed" in told,
          told)
    check("no_figure_of_it", json.loads(text)["adopt_64_ms"] is None, text)
    check("leaves_no_process", not processes_of(scratch), processes_of(scratch))


def check_text(program, d):
    status, text, told = run(program, "--quick", "--only", "lists")
    lines = text.splitlines()
    first = [line.split()[0] for line in lines if line.strip()]
    check("text", status == 0 and told == "" and all(k in first for k in d["units"]), (told, text))
    check("text_names_the_file_system", d["file_system"] in lines[0], lines[0])
    check("only_that_cell", any(line.startswith("submit_1 ") and " - " in line for line in lines),
          text)


def check_statements(program):
    status, text, told = run(program, "--statements", "--quick")
    lines = [line.split(None, 5) for line in text.splitlines()]
    check("statements", status == 0 and told == "" and
          [line[0] for line in lines if len(line) == 6 and line[1] == "64"] ==
          [op + "," for op in OPS], (told, text))
    rows = [line for line in lines if len(line) == 6 and line[0][0].isdigit()]
    bad = [line for line in rows if line[3:5] != ["0", "0"]]
    check("no_statement_scans_or_sorts [Q11]", len(rows) > 10 and not bad, bad or text)


def check_refusals(program):
    for args in ["--tasks"], ["--tasks", "0"], ["--tasks", "1x"], ["--dir"], ["x"]:
        status, text, told = run(program, *args)
        check("usage " + " ".join(args), status == 2 and text == "" and "usage:" in told, told)
    status, text, told = run(program, "--help")
    check("help", status == 0 and "--statements" in text and told == "", text)
    status, text, told = run(program, "--quick", "--dir", "/nowhere/at/all")
    check("no_directory", status == 1 and text == "" and "/nowhere/at/all" in told, told)
    if not os.access("/dev/shm", os.W_OK) or \
            subprocess.run(["stat", "-f", "-c", "%T", "/dev/shm"], capture_output=True,
                           text=True).stdout.strip() != "tmpfs":
        return
    status, text, told = run(program, "--dir", "/dev/shm")
    check("memory_is_refused", status == 1 and text == "" and "tmpfs" in told, told)
    status, text, told = run(program, "--quick", "--json", "--only", "lists", "--dir", "/dev/shm")
    d = json.loads(text)
    check("memory_is_marked", status == 0 and d["in_memory"] and d["file_system"] == "tmpfs", d)


def main():
    written = []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TMPDIR"] = scratch
        for program in PROGRAMS:
            status, text, told = run(program, "--json", "--quick", "--tasks", "3000")
            check("runs", status == 0 and told == "", (status, told))
            d = json.loads(text)
            check("says_what_it_is", d["quick"] and d["tasks"] == 3000, d)
            check_rows(d)
            check_agent_rows(d)
            check_text(program, d)
            check_statements(program)
            check_refusals(program)
            check_no_agent(program, scratch)
            written.append({k: v for k, v in d.items() if k.endswith("_rows")})
            check("leaves_no_file", not os.listdir(scratch), os.listdir(scratch))
        again = json.loads(run(PROGRAMS[0], "--quick", "--json", "--only", "rates")[1])
    check("same_rows_again", all(again[k] == v for w in written for k, v in w.items()), again)
    return 1 if check.failed else 0


sys.exit(main())
