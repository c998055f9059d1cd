# SPDX-License-Identifier: MIT
"""The sabotages: one-line faults in lib/, each with the case that must notice; a file for each folder of lib/.

A sabotage names a file, the exact text (found there exactly once), what takes its place, and the
test as SUITE/PROGRAM.CASE.  run.py shows that the case passes without it and fails with it.  When
lib/ changes so that a text is no longer found, run.py says so: mend the table in the same commit.
"""

from . import api, base, device, edges, host, keeper, monitor, os, sched, wire, worker

SABOTAGES = [sabotage for area in (api, base, device, edges, host, keeper, monitor, os, sched, wire, worker) for sabotage in area.SABOTAGES]
