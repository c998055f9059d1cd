# SPDX-License-Identifier: MIT
"""Faults in what max_tasks_per_worker and result_wait promise."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "edges A10: workers are replaced all at once", "lib/host/renew.c",
        "d->renewing || gpi_nothing_to_come(d) ? NULL",
        "gpi_nothing_to_come(d) ? NULL",
        "proc/renew.one_at_a_time"),
    Sabotage(
        "edges A10: tasks wait for the replacement beside an idle worker", "lib/host/renew.c",
        "    if (most == 0 || d->renewing)\n",
        "    if (most == 0)\n",
        "proc/renew.nothing_waits_while_another_is_idle"),
    Sabotage(
        "edges A10: a worker gets more than its number", "lib/host/renew.c",
        "    return had < most ? (uint32_t)(most - had) : 0;\n",
        "    return had < most ? UINT32_MAX : 0;\n",
        "proc/renew.exact_with_one_slot"),
]
