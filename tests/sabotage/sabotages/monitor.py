# SPDX-License-Identifier: MIT
"""Faults in lib/monitor/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- the monitor process ----
    Sabotage(
        "an incident is dropped when nobody reads", "lib/monitor/monitor.c",
        "            (void)poll(&room, 1, -1);\n",
        "            return;\n",
        "proc/monitor.incidents_are_not_lost"),
    Sabotage(
        "a monitor that hangs does not see its host go", "lib/monitor/monitor.c",
        "struct pollfd end = { .fd = socket,",
        "struct pollfd end = { .fd = -1,",
        "unit/monitor.process_ends_while_it_hangs"),
]
