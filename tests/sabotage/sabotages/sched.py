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
    # ---- time ----
    Sabotage(
        "verdict by the flag", "lib/sched/verdict.h",
        "if (a->ended_at >= deadline)",
        "if (a->expired)",
        "unit/verdict.table"),
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
    # ---- queue, places, bounds ----
    Sabotage(
        "everything goes to the first worker", "lib/sched/place.c",
        "        if (--l->room > 0) {\n            p->cursor++;\n",
        "        if (--l->room > 0) {\n            p->level++;\n",
        "unit/place.level_by_level"),
    Sabotage(
        "nothing is taken back for an idle worker", "lib/sched/place.c",
        "return sent >= 2 && quiet >= QUIET_NS;",
        "return sent >= 2 && quiet == UINT64_MAX;",
        "unit/place.recall"),
    Sabotage(
        "priorities are ignored", "lib/sched/queue.c",
        "if (q->band[mid].priority > priority)",
        "if (q->band[mid].priority < priority)",
        "unit/queue.random_ops"),
    # ---- kinds of hosts ----
    Sabotage(
        "the look decides on TIMEOUT, not the end", "lib/sched/verdict.h",
        "    if (a->ended_at >= deadline)\n",
        "    if (gpi_now() >= deadline)\n",
        "hosts/ends.host_is_stopped"),
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
]
