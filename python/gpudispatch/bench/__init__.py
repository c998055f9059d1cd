# SPDX-License-Identifier: MIT
"""Times Executor beside other pools: `python -m gpudispatch.bench [--quick] [--json]`.

jobs.py     the functions that workers run, the same for all
peers.py    the pools, each as its users would make it, with one worker
cells.py    what is timed, and the goals
sides.py    the process in which one pool is timed, and the driver's end of it
report.py   medians, ratios, the table and the JSON

Each pool of a cell lives in a process of its own, so that none has another's threads or modules.
The driver asks one after the other for a round: all see the same minutes of the machine.
"""
