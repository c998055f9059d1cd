#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks gpudispatch-sim: worlds printed as scripts, files that pass, differ or are no scripts.

usage: simulator.py GPUDISPATCH_SIM
"""
import os
import pathlib
import subprocess
import sys
import tempfile

SIM = os.path.abspath(sys.argv[1])


def sim(*args):
    """Returns (exit status, output)."""
    r = subprocess.run([SIM, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return r.returncode, r.stdout


def check(name, wanted, got):
    record = os.environ.get("GPUD_TEST_RESULTS")
    if record:
        with open(record, "a") as out:
            out.write(f"{'pass' if wanted else 'fail'} simulator/{name}\n")
    if not wanted:
        print(f"{name}: {got}")
    return not wanted


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        script, log = pathlib.Path(scratch, "a.txt"), pathlib.Path(scratch, "a.log")

        status, text = sim("--world", "1")
        ends = text.count(" SUCCESS PROCESS ")
        failed += check("smallest_world", status == 0 and ends == 3
                        and text.rstrip().endswith("no oracle objects"), text)
        script.write_text(text)
        failed += check("is_a_script", sim(script)[0] == 0, sim(script)[1])

        status, text = sim("--world", "3", "slots=4", "devices=2", "tasks=30", "seconds=9",
                           "trouble")
        log.write_text(text)
        failed += check("trouble", status == 0 and sim(log)[0] == 0, text[-300:])
        # A log may end anywhere, a script may not lack an effect.
        half = text[:text.rindex("\n----\n") + 6]
        log.write_text(half)
        script.write_text(half)
        failed += check("log_may_end", sim(log)[0] == 0, sim(log)[1])
        failed += check("script_may_not", sim(script)[0] == 1 and "got" in sim(script)[1],
                        sim(script)[1])
        # A log of any name may end anywhere; the program reports one that has no end.
        log = script
        log.write_text("# decision log, libgpudispatch 0.1.0\n" + half)
        failed += check("log_without_end", sim(log)[0] == 0
                        and ": the log has no end" in sim(log)[1], sim(log)[1])
        log.write_text(log.read_text() + "SEN")
        failed += check("log_with_half_a_line", sim(log)[0] == 0
                        and "its last line is incomplete" in sim(log)[1], sim(log)[1])
        log.write_text("# decision log, libgpudispatch 0.1.0\n" + half + "cut\n")
        failed += check("log_was_cut", sim(log)[0] == 0
                        and f":{len(half.splitlines()) + 2}: the log was cut" in sim(log)[1],
                        sim(log)[1])
        log.write_text("# decision log, libgpudispatch 0.1.0\n"
                       + text[:text.index("\n\n# ")] + "\n# end\n")
        failed += check("log_with_end", sim(log)[0] == 0 and "end" not in sim(log)[1], sim(log)[1])
        script.write_text(half)
        status, told = sim("--rewrite", script)
        failed += check("rewrite", status == 0 and sim(script)[0] == 0, told)
        script.write_text("device x\n")
        failed += check("no_script", sim(script)[0] == 1 and f"{script}:1: " in sim(script)[1],
                        sim(script)[1])
    for args in [], ["--world"], ["--world", "x"], ["--world", "1", "slots=0"], ["--rewrite"], \
            ["--what"]:
        status, told = sim(*args)
        failed += check("usage " + " ".join(args), status == 2 and "usage:" in told, told)
    return 1 if failed else 0


sys.exit(main())
