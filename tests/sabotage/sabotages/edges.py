# SPDX-License-Identifier: MIT
"""Faults that new users, adversaries and real drivers met, one of each: the mend is undone."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "edges A1: destroy throws away what close left", "lib/host/finish.c",
        "close_by(d, gpi_finish_asked(d), d->set.close_limit",
        "close_by(d, GPUD_FINISH_NOW, d->set.close_limit",
        "proc/close.destroy_finishes_what_close_left"),
    Sabotage(
        "edges A1: a close without a limit has close_limit", "lib/host/finish.c",
        "    else if (how == GPUD_FINISH_NOW)\n        close_by",
        "    else if (how <= GPUD_FINISH_NOW)\n        close_by",
        "proc/close.close_without_a_limit"),
    Sabotage(
        "edges A1: the close limit is not named", "lib/host/charge.c",
        "outcome == GPUD_OUTCOME_CANCELLED && s->kill == GPI_KILL_CLOSE)\n",
        "outcome == GPUD_OUTCOME_CANCELLED && s->kill == GPI_KILL_NO)\n",
        "proc/close.close_limit_is_named"),
    Sabotage(
        "edges A2: run answers 0 when no worker was left", "lib/host/feed.c",
        "    if (r->counts.no_worker)\n",
        "    if (r->counts.no_worker && r->closed)\n",
        "proc/run.enoworker"),
    Sabotage(
        "edges A2: run answers with a callback's value", "lib/host/feed.c",
        "return gpi_fail(e, GPUD_ECALLBACK,",
        "return gpi_fail(e, r->stop_value,",
        "proc/run.ecallback"),
    Sabotage(
        "edges A2: records of a source lie as the library knows them", "lib/host/feed.c",
        "const unsigned char *at = r->tasks + i * r->cb.task_size;",
        "const unsigned char *at = r->tasks + i * sizeof(struct gpud_task_desc);",
        "abi/old.run"),
    Sabotage(
        "edges A4: submit does not say which bound is reached", "lib/host/tasks.c",
        "return r == GPUD_EFULL ? full(d, desc, e) : r;",
        "return r;",
        "proc/reasons.submit_full"),
    Sabotage(
        "edges A4: a worker is taken for a forked child", "lib/api/check.c",
        "return gpi_worker_here() ? gpi_fail(",
        "return gpi_worker_here() && !e ? gpi_fail(",
        "proc/reasons.in_a_worker"),
    Sabotage(
        "edges A9: a soft cancel kills", "lib/host/slot.c",
        "    if (how == GPUD_CANCEL_HARD) {\n",
        "    if (how <= GPUD_CANCEL_HARD) {\n",
        "proc/close.cancel_soft"),
    Sabotage(
        "edges A9: what was cancelled softly is tried again", "lib/host/collect.c",
        "    const bool told = s->told >> cell & 1;\n",
        "    const bool told = s->cancelled >> cell & 1;\n",
        "proc/close.cancel_soft"),
]
