# SPDX-License-Identifier: MIT
"""Faults in lib/sched/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- death ----
    Sabotage(
        "returned tasks go to the end of the queue", "lib/sched/queue.c",
        "    link_before(q, b, item, old_place(q, b, item, before, context));\n",
        "    (void)old_place(q, b, item, before, context);\n    link_before(q, b, item, NONE);\n",
        "proc/gaps.returned_tasks_keep_their_place"),
    Sabotage(
        "who comes back walks along all that came back before it", "lib/sched/queue.c",
        "if (q->returned != NONE && q->returned_priority == b->priority) {",
        "if (q->returned != NONE && q->returned_priority == b->priority && q->count == 1) {",
        "unit/queue.many_come_back"),
    Sabotage(
        "restart without giving up", "lib/sched/restart.c",
        "if (r->slot_failures >= p->failures_in_a_row)",
        "if (r->slot_failures >= p->failures_in_a_row && p->failures_in_a_row == 0)",
        "unit/restart.given_up_after_so_many_in_a_row"),
    Sabotage(
        "backoff does not double", "lib/sched/restart.c",
        "gpi_time_doubled(p->backoff, r->slot_failures - 1, p->cap)",
        "gpi_time_doubled(p->backoff, 0, p->cap)",
        "unit/restart.waits_double_up_to_the_cap"),
    Sabotage(
        "kill limit is ignored", "lib/sched/life.c",
        "c, s, gpi_time_add(s->deadline > c->now ? s->deadline : c->now, kill_limit));",
        "c, s, GPI_NEVER);",
        "proc/quarantine.survivor_is_quarantined"),
    # ---- time ----
    Sabotage(
        "verdict by the flag", "lib/sched/verdict.h",
        "if (a->ended_at >= deadline)",
        "if (a->expired)",
        "unit/verdict.table"),
    Sabotage(
        "no hard limit", "lib/sched/slot.c",
        "    if (why == GPI_WHY_CANCEL)\n        gpi_life_kill(c, s, why);\n    else\n"
        "        gpi_life_kill_at(c, s, cell, at);\n",
        "    (void)cell;\n",
        "proc/limits.hard_limit_spinner"),
    Sabotage(
        "a kill and its charge read the start time twice", "lib/sched/limits.c",
        "    s->doomed = late_ones(s, *ret_at);\n",
        "    s->doomed = late_ones(s, c->now);\n",
        "proc/hostile.start_time_changes"),
    # ---- retries ----
    Sabotage(
        "any cause is tried again", "lib/sched/retry.c",
        "return attempts < max_attempts && (causes & cause_of(outcome));",
        "return attempts < max_attempts && (causes & cause_of(outcome)) | (outcome > 1);",
        "proc/retry.chosen_causes"),
    Sabotage(
        "one attempt more than allowed", "lib/sched/retry.c",
        "return attempts < max_attempts && (causes & cause_of",
        "return attempts <= max_attempts && (causes & cause_of",
        "proc/retry.errors"),
    Sabotage(
        "the wait before a retry does not double", "lib/sched/retry.c",
        "gpi_time_doubled(p->backoff, attempts ? attempts - 1 : 0, p->cap)",
        "gpi_time_doubled(p->backoff, attempts > 1 ? 0 : 0, p->cap)",
        "unit/retry.waits_double_up_to_the_cap"),
    Sabotage(
        "a retry does not wait", "lib/sched/tasks.c",
        "if (wait == 0 || gpi_none_can_run(c)) {",
        "if (wait != 0 || gpi_none_can_run(c)) {",
        "proc/retry.backoff"),
    Sabotage(
        "a cancelled task is tried again", "lib/sched/stream.c",
        "!a->final && !gpi_record_is_cancelled(c, t);\n    }\n    leave(c, s, t);\n"
        "    again = again && gpi_tasks_retry(c, a->task, a->outcome);\n",
        "!a->final;\n    }\n    leave(c, s, t);\n"
        "    again = again && gpi_tasks_retry(c, a->task, a->outcome == GPUD_OUTCOME_CANCELLED ? "
        "(uint32_t)GPUD_OUTCOME_ERROR : a->outcome);\n",
        "proc/retry.cancelled_is_not_tried_again"),
    Sabotage(
        "close does not end what waits for its retry", "lib/sched/tasks.c",
        "    while ((i = gpi_heap_top_item(&c->retries)) != GPI_HEAP_NONE) {\n",
        "    while (c->now == 0 && (i = gpi_heap_top_item(&c->retries)) != GPI_HEAP_NONE) {\n",
        "proc/retry.close_while_it_waits"),
    Sabotage(
        "a task is tried again after close", "lib/sched/tasks.c",
        "    if (gpi_close_cancels(c))\n        return false; /* another",
        "    if (gpi_close_cancels(c) && !t->attempts)\n        return false; /* another",
        "proc/retry.no_retry_once_closing"),
    # ---- expires ----
    Sabotage(
        "what sits at a worker does not expire", "lib/sched/tasks.c",
        "        if (t->wish <= GPI_WISH_RETURN)\n",
        "        if (t->wish <= GPI_WISH_RETURN && t->alone)\n",
        "proc/expires.sent_behind_a_long_one"),
    Sabotage(
        "a retry expires", "lib/sched/tasks.c",
        "    if (t->expires) /* the task has started in time */\n"
        "        gpi_heap_remove(&c->expiries, i);\n    t->expires = t->lapsed = false;\n",
        "",
        "proc/expires.first_start_counts"),
    Sabotage(
        "an end brings no expiry to rest", "lib/sched/record.h",
        "    if (t->expires)\n        gpi_heap_remove(&c->expiries, i);\n    if (t->wary)",
        "    if (t->wary)",
        "proc/expires.many"),
    # ---- batches ----
    Sabotage(
        "one charged in a batch is batched again", "lib/sched/tasks.c",
        "t->alone |= batch > 1;",
        "t->alone |= batch > 64;",
        "proc/batch.poison"),
    Sabotage(
        "a kill for one limit is everybody's timeout", "lib/sched/tasks.c",
        "if (ladder && s->doomed >> cell & 1)",
        "if (ladder && s->doomed)",
        "proc/batch.killed_for_one_limit"),
    Sabotage(
        "a worker that gathers counts as stuck", "lib/sched/behind.c",
        "gpi_time_add(gpi_time_add(s->heard, c->class.set.batch_wait), GPI_PLACE_QUIET_NS)",
        "gpi_time_add(s->heard, GPI_PLACE_QUIET_NS)",
        "proc/batch.gathering_is_left_alone"),
    Sabotage(
        "too few are sent ahead for a batch", "lib/sched/spread.c",
        "if (n < c->class.set.least_ahead)",
        "if (n < c->class.set.least_ahead && n == 0)",
        "proc/batch.own_outcomes"),
    # ---- queue, places, bounds ----
    Sabotage(
        "everything goes to the first worker", "lib/sched/stream.c",
        "n += c->class.n_takes == 1 ? send_alone(",
        "n += c->class.n_takes ? send_alone(",
        "proc/order.fair_start"),
    Sabotage(
        "nothing is taken back for an idle worker", "lib/sched/behind.c",
        "n >= 2 && idle; n--)",
        "n >= 2 && idle > c->n_slots; n--)",
        "proc/order.recall_from_behind_a_long_task"),
    Sabotage(
        "priorities are ignored", "lib/sched/queue.c",
        "if (q->band[mid].priority > priority)",
        "if (q->band[mid].priority < priority)",
        "unit/queue.random_ops"),
    Sabotage(
        "send numbers may span more than the order ring", "lib/sched/spread.h",
        "return s->number + 1 - s->oldest < GPI_SLOT_CELLS;",
        "return s->number + 1 - s->oldest < UINT64_MAX;",
        "proc/gaps.many_numbers_behind_a_long_task"),
    # ---- kinds of hosts ----
    Sabotage(
        "the look decides on TIMEOUT, not the end", "lib/sched/verdict.h",
        "    if (a->ended_at >= deadline)\n",
        "    if (gpi_now() >= deadline)\n",
        "hosts/ends.host_is_stopped"),
    # ---- workers that are programs ----
    Sabotage(
        "a program that never answers has all of the setup limit's default", "lib/sched/life.c",
        "? gpi_time_min(c->class.set.boot_limit, c->class.set.setup_limit)",
        "? gpi_time_add(c->class.set.boot_limit, c->class.set.setup_limit)",
        "proc/exec_faults.no_workers"),
    # ---- failures in the field, and those of the ancestor ----
    Sabotage(
        "one attempt too many", "lib/sched/retry.c",
        "return attempts < max_attempts && (causes & cause_of",
        "return attempts <= max_attempts && (causes & cause_of",
        "proc/field.poison_runs_so_often"),
    Sabotage(
        "a tenth of a second too late is in time", "lib/sched/verdict.h",
        "    if (a->ended_at >= deadline)\n",
        "    if (a->ended_at >= deadline + 100000000)\n",
        "proc/field.ten_thousand_in_turn"),
    Sabotage(
        "limits are whole seconds", "lib/sched/verdict.h",
        "gpi_time_add(gpi_time_add(a->started_at, a->limit), a->stopped);",
        "gpi_time_add(gpi_time_add(a->started_at, "
        "(a->limit + 999999999) / 1000000000 * 1000000000), a->stopped);",
        "proc/ancestor.below_a_second"),
    Sabotage(
        "nobody is told that no slot is left", "lib/sched/sched.c",
        "if (c->n_hopeless == c->n_slots && gpi_tasks_wait(c))",
        "if (c->n_hopeless > c->n_slots && gpi_tasks_wait(c))",
        "proc/field.no_slot_is_left"),
    Sabotage(
        "the kill comes 15 ms late", "lib/sched/limits.c",
        "gpi_time_add(gpi_time_min(s->soft[cell], cancelled), c->class.set.grace);",
        "gpi_time_add(gpi_time_min(s->soft[cell], cancelled), c->class.set.grace + 15 * GPI_MS);",
        "proc/field.killed_in_time"),
    Sabotage(
        "setup has no limit", "lib/sched/life.c",
        "                               : c->class.set.setup_limit;\n",
        "                               : GPI_NEVER / 2;\n",
        "proc/ancestor.setup_that_blocks"),
    # ---- devices in a dispatcher ----
    Sabotage(
        "a worker that is spared at its limit stays on a device that has failed",
        "lib/sched/slot.c",
        "[GPI_IN_KILL] = kill_now,",
        "[GPI_IN_KILL] = nothing,",
        "proc/device_faults.fault_beside_a_kill_that_is_called_off"),
    Sabotage(
        "a device that is lost gets workers", "lib/sched/device.c",
        "return out || gpi_devices_are(c, s, GPI_MAY_DEAD) || ",
        "return out || ",
        "proc/device_faults.all_are_lost"),
    Sabotage(
        "a slot that leaves takes tasks", "lib/sched/spread.c",
        "const bool takes = s->life == GPI_LIFE_UP && !s->still;",
        "const bool takes = (s->life == GPI_LIFE_UP || s->life == GPI_LIFE_LEAVE) && !s->still;",
        "proc/roster.a_drained_one_takes_no_more"),
    Sabotage(
        "a successor does not wait for its device's memory", "lib/sched/life.c",
        "    s->owed = true;\n",
        "    s->owed = false;\n",
        "proc/devices.memory_that_comes_late"),
    # ---- states of a slot, and their deadlines ----
    Sabotage(
        "a keeper that is asked for is waited for at the end", "lib/sched/slot.c",
        "[GPI_IN_TIMER] = gpi_life_pay, [GPI_IN_UNPROVED] = stuck,\n"
        "                        [GPI_IN_WIND_DOWN] = stop },",
        "[GPI_IN_TIMER] = gpi_life_pay, [GPI_IN_UNPROVED] = stuck,\n"
        "                        [GPI_IN_WIND_DOWN] = nothing },",
        "proc/close.no_worker_starts_while_it_ends"),
    Sabotage(
        "a kill that is ordered has no deadline", "lib/sched/life.c",
        "        gpi_life_wait_until(c, s, gpi_time_add(c->now, kill_limit));\n",
        "",
        "proc/late_ready.survivor_alone"),
    Sabotage(
        "the close limit kills a survivor again", "lib/sched/sched.c",
        "            gpi_slot_input(c, &c->slot[i], GPI_IN_KILL_ALL);\n",
        "            gpi_slot_input(c, &c->slot[i], GPI_IN_KILL_ALL);\n"
        "        else if (c->slot[i].life == GPI_LIFE_STUCK)\n"
        "            gpi_life_kill(c, &c->slot[i], GPI_WHY_CLOSE);\n",
        "proc/quarantine.close_limit_beside_a_survivor"),
    Sabotage(
        "a removed slot fails without a keeper", "lib/sched/slot.c",
        "[GPI_EV_WANT] = want, [GPI_EV_KEEPER_NO] = nothing,",
        "[GPI_EV_WANT] = want, [GPI_EV_KEEPER_NO] = gpi_end_unmade,",
        "proc/roster.removed_before_its_keeper_is_made"),
    Sabotage(
        "a start that fails on a drained device is not told", "lib/sched/slot_end.c",
        "const bool wanted = refused ||",
        "const bool wanted = (refused && !s->why) ||",
        "proc/roster.drained_during_a_start_that_fails"),
]
