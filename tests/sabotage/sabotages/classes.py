# SPDX-License-Identifier: MIT
"""Faults in queue/agent/ about classes of workers and their tasks."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "a worker gets a task before its claim is committed", "queue/agent/turn.c",
        "    u->attempt = (uint32_t)attempt;\n    n->done = true;\n",
        "    u->attempt = (uint32_t)attempt;\n    n->done = !u->class;\n"
        "    if (u->class)\n        gpq_workers_start(a, u);\n",
        "agent/classes.claimed_first"),
    Sabotage(
        "the task of a worker that ended with its agent is lost", "queue/agent/adopt.c",
        "    if (c->is_worker) {\n",
        "    if (c->is_worker && c->known) {\n",
        "agent/classes.stopped"),
    Sabotage(
        "more tasks than workers are claimed of those that start at most once",
        "queue/agent/ahead.c",
        "    if (p.at_most_once && w->inside >=",
        "    if (p.at_most_once && w->inside - 9 >=",
        "agent/classes.at_most_once"),
    Sabotage(
        "a pause leaves claimed tasks where they are", "queue/agent/workers.c",
        "    if (paused)\n        gpq_work_each(",
        "    if (!class)\n        gpq_work_each(",
        "agent/classes.paused"),
    Sabotage(
        "a class that has failed never tries again", "queue/agent/workers.c",
        "    if (!class->failed || class->paused)\n",
        "    if (class->failed || class->paused)\n",
        "agent/classes.failed_setup"),
    Sabotage(
        "what stop cancels returns to its place", "queue/agent/workers.c",
        "    if (event->outcome == GPUD_OUTCOME_CANCELLED && !u->cancelled)\n        return event",
        "    if (event->outcome == GPUD_OUTCOME_CANCELLED)\n        return event",
        "agent/classes.cancelled"),
    Sabotage(
        "the last byte of a payload is lost", "queue/agent/submit.c",
        "    item->content.size = size + 1;\n",
        "    item->content.size = size;\n",
        "agent/classes.kinds_of_results"),
    Sabotage(
        "a failure of the library is a signal", "queue/agent/workers.c",
        "    return event->code > 0 ? event->code : 0;",
        "    return event->code;",
        "agent/classes.failed_setup"),
]
