# SPDX-License-Identifier: MIT
"""Faults in the rows of devices and slots: the slot that counts, its tasks, and `ready_at`."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "row of a device: an idle worker counts before a busy one",
        "lib/host/rows.c",
        "[GPUD_SLOT_BUSY] = { 0,",
        "[GPUD_SLOT_BUSY] = { 12,",
        "proc/device_rows.two_slots"),
    Sabotage(
        "row of a device: a worker that starts counts before a ready one",
        "lib/host/rows.c",
        "[GPUD_SLOT_READY] = { 2,",
        "[GPUD_SLOT_READY] = { 12,",
        "proc/device_rows.side_by_side"),
    Sabotage(
        "row of a device: a slot without a worker counts as one",
        "lib/host/rows.c",
        "k->use.workers += gpi_slot_has_worker(d, s);",
        "k->use.workers++;",
        "proc/device_rows.backoff"),
    Sabotage(
        "row of a device: the tasks of a seat leave with it",
        "lib/host/pool.c",
        "k->done += gpi_slot_done(s) - s->done_before;",
        "",
        "proc/device_rows.life_in_a_pool"),
    Sabotage(
        "row of a device: tasks from before its removal count",
        "lib/host/slots.c",
        "    s->done_before = gpi_slot_done(s); /* the device begins anew */\n",
        "",
        "proc/device_rows.drained_returned_and_added_anew"),
    Sabotage(
        "pooled: a worker that is to go is BUSY",
        "lib/sched/query.c",
        "return s->evicted ? s->evicted_at :",
        "return",
        "proc/device_rows.draining_in_a_pool"),
    Sabotage(
        "ready_at: no median run time",
        "lib/host/forecast.c",
        "d->set.pooled ? 0 : gpi_hist_quantile(&d->stats.run, 0.5)",
        "0",
        "proc/device_rows.busy_by_the_median"),
    Sabotage(
        "ready_at: no limit takes the place of the median",
        "lib/host/forecast.c",
        "return at ? at : in_future(f, limit);",
        "return at;",
        "proc/device_rows.ready_and_busy"),
    Sabotage(
        "ready_at: boots of a dispatcher that is not pooled are unknown",
        "lib/host/slot.c",
        "    gpi_slot_class(d, s)->last_boot = s->setup_time;\n",
        "",
        "proc/device_rows.backoff"),
    Sabotage(
        "ready_at: a paused device is ready",
        "lib/host/forecast.c",
        "        if (gpi_sched_pauses(d->core, s->devices[i]))\n"
        "            return true;",
        "        if (0)\n"
        "            return true;",
        "proc/device_rows.drained_returned_and_added_anew"),
    Sabotage(
        "ready_at: that of a worker that is being killed is its limit",
        "lib/host/forecast.c",
        "if (is_dying(life) ||",
        "if (",
        "proc/device_rows.while_a_worker_is_killed"),
    Sabotage(
        "ready_at: a worker that is to go takes no time to unload",
        "lib/host/forecast.c",
        "return at ? gpi_time_add(at, usual->unload) : 0;",
        "return at;",
        "proc/device_rows.draining_in_a_pool"),
    Sabotage(
        "row of a device: its state is older than its fault",
        "lib/host/judge.c",
        "        k->unused_since = d->now;",
        "        ;",
        "proc/device_rows.out_without_a_worker"),
]
