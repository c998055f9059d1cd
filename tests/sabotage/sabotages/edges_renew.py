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
    Sabotage(
        "edges A10: nobody wakes a worker when room has come back", "lib/host/collect.c",
        "memory_order_release);\n    gpi_result_room(d, s);\n",
        "memory_order_release);\n",
        "proc/result_wait.room_that_comes"),
    Sabotage(
        "edges A10: a worker waits for room beyond a close", "lib/host/room.c",
        "        atomic_store(&d->slot[i].ch.page->closing, 1);\n",
        "",
        "proc/result_wait.stop_and_close"),
    Sabotage(
        "edges A10: one of several in a call waits for room", "lib/worker/result.c",
        "w->members > 1 || !ever_fits(t, size)",
        "!ever_fits(t, size)",
        "proc/result_wait.batches"),
    Sabotage(
        "edges A10: a wait for what can never fit", "lib/worker/result.c",
        "w->members > 1 || !ever_fits(t, size)",
        "w->members > 1",
        "proc/result_wait.what_never_fits"),
]
