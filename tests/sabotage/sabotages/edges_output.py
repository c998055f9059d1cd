# SPDX-License-Identifier: MIT
"""Faults in what becomes of workers' output."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "edges: the end of a task is taken before its output is read", "lib/host/collect.c",
        "            gpi_output_look(d, s);\n",
        "            last = s->number;\n",
        "proc/output.end_found_without_a_bell"),
    Sabotage(
        "edges: the output of earlier tasks is a task's own", "lib/host/output.c",
        "        s->out.start[cell].from = s->out.read;\n",
        "        s->out.start[cell].from = 0;\n",
        "proc/output.earlier_tasks_are_before"),
    Sabotage(
        "edges: a silent worker is read from", "lib/host/output.c",
        "    if (poll(p, sizeof p / sizeof *p, 0) <= 0)\n        return;\n    if (p[0].revents)\n",
        "    if (poll(p, sizeof p / sizeof *p, 0) >= 0)\n",
        "proc/output.silence_costs_nothing"),
]
