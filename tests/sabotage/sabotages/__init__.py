# SPDX-License-Identifier: MIT
"""The sabotages: small faults, each with the case that must notice it.

The files here are named after the folders of lib/, after queue/ and some of its folders, and after
view/.  night has faults of what the agent of the queue does beside running commands, classes those
of its workers.
edges has faults of the tools and the benchmark, too, rows those of the rows of devices and slots,
and pool those of pooled dispatchers.  A sabotage names a file, the exact text (which occurs there
exactly once), its replacement, and the test as SUITE/PROGRAM.CASE.  run.py shows that the case
passes without the fault and fails with it.  If a text no longer occurs, run.py names it: mend the
table in the commit that changes it.
"""

from . import (api, base, classes, config, device, edges, host, jobs, keeper, monitor, night, os,
               plan, pool, queue, rows, runner, sched, view, wire, worker)

AREAS = (api, base, classes, config, device, edges, host, jobs, keeper, monitor, night, os, plan,
         pool, queue, rows, runner, sched, view, wire, worker)
SABOTAGES = [sabotage for area in AREAS for sabotage in area.SABOTAGES]
