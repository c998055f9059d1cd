# SPDX-License-Identifier: MIT
"""The sabotages: one-line faults in lib/, each with the case that must notice.

A sabotage names a file, the exact text (found there exactly once), what takes its place, and the
test as SUITE/PROGRAM.CASE.  run.py shows that the case passes without it and fails with it.  When
lib/ changes so that a text is no longer found, run.py says so: mend the table in the same commit.
"""

from collections import namedtuple

Sabotage = namedtuple("Sabotage", "name file old new test")

SABOTAGES = [
    # ---- claims and end records ----
    Sabotage(
        "worker runs what it could not claim", "lib/worker/worker.c",
        "if (!gpi_cell_take(c, number, GPI_CLAIMED))\n        return;",
        "if (!gpi_cell_take(c, number, GPI_CLAIMED) && !number)\n        return;",
        "proc/gaps.recalled_task_runs_once"),
    Sabotage(
        "claim word without the send number", "lib/wire/page.h",
        "return number << 2 | (uint64_t)state;",
        "return (number & 0) << 2 | (uint64_t)state;",
        "unit/page.claim_races"),
    Sabotage(
        "end record of another send is taken", "lib/wire/page.c",
        "if (word >> 8 != number)",
        "if (word >> 8 == 0)",
        "proc/order.fifo_on_one_worker"),
    Sabotage(
        "end word before its record", "lib/worker/worker.c",
        "    c->ended_at = ended_at;\n",
        "    atomic_store(&c->end, gpi_end_word(t->number, code ? GPI_END_FAILED : GPI_END_OK));\n    c->ended_at = ended_at;\n",
        "unit/worker.end_is_complete_when_told"),
    Sabotage(
        "result place is not checked", "lib/wire/page.c",
        "return off % GPI_GRANULE == 0 && off <= arena && size <= arena - off && size > 0;",
        "return off % GPI_GRANULE == 0 && size > 0;",
        "unit/page.look_at_the_bounds"),
    Sabotage(
        "frames with garbage are taken", "lib/wire/frame.c",
        "rest == 0 && f->what != 0",
        "f->what != 0",
        "unit/frame.every_single_bit"),
    # ---- death ----
    Sabotage(
        "an outcome is delivered twice", "lib/host/tasks.c",
        "    count_outcome(d, t);\n    gpi_event_push(d, gpi_task_index(d, t));\n",
        "    count_outcome(d, t);\n    gpi_event_push(d, gpi_task_index(d, t));\n    gpi_event_push(d, gpi_task_index(d, t));\n",
        "proc/hello.submit_and_poll"),
    Sabotage(
        "death is judged without reading what was written", "lib/host/slot.c",
        "    gpi_drain(d, s);\n    was = s->state;\n",
        "    was = s->state;\n",
        "proc/death.neighbours_of_a_crash"),
    Sabotage(
        "tasks not claimed are charged with the death", "lib/host/slot.c",
        "d->count.returned += gpi_recall_all(d, s); /* not claimed",
        "d->count.returned += 0; /* not claimed",
        "proc/death.killed_from_outside"),
    Sabotage(
        "returned tasks go to the end of the queue", "lib/sched/queue.c",
        "while (at != NONE && before(context, at, item))",
        "while (at != NONE && (before(context, at, item) || 1))",
        "proc/gaps.returned_tasks_keep_their_place"),
    Sabotage(
        "keeper reports a death without the sweep", "lib/keeper/keeper.c",
        "    if (gpi_sweep(NULL, 0) == 0) {\n        k->phase = EMPTY;",
        "    if (gpi_sweep(NULL, 0) >= 0) {\n        k->phase = EMPTY;",
        "proc/death.daemon_of_a_dead_worker"),
    Sabotage(
        "keeper does not watch the host", "lib/keeper/keeper.c",
        "        if (!k.ending && p[2].revents)\n            k.ending = true;\n",
        "",
        "proc/gaps.keeper_watches_the_host"),
    Sabotage(
        "a word about a former life is taken", "lib/host/channel.c",
        "if (c->incarnation != s->incarnation || !s->started || s->state == GPUD_SLOT_QUARANTINED) {",
        "if (!s->started) {",
        "proc/gaps.late_word_of_a_former_life"),
    Sabotage(
        "kill limit is ignored", "lib/host/slot.c",
        "    s->state_deadline = gpi_time_add(d->now, d->set.kill_limit);\n    gpi_slot_timer(d, s);\n    if (gpi_channel_tell(s, GPI_CTL_KILL",
        "    s->state_deadline = GPI_NEVER;\n    gpi_slot_timer(d, s);\n    if (gpi_channel_tell(s, GPI_CTL_KILL",
        "proc/quarantine.survivor_is_quarantined"),
    Sabotage(
        "restart without giving up", "lib/sched/restart.c",
        "if (r->slot_failures >= p->failures_in_a_row)",
        "if (r->slot_failures >= p->failures_in_a_row && p->failures_in_a_row == 0)",
        "unit/restart.given_up_after_so_many_in_a_row"),
    Sabotage(
        "backoff does not double", "lib/sched/restart.c",
        "        wait *= 2;\n",
        "        wait += 0;\n",
        "unit/restart.waits_double_up_to_the_cap"),
    # ---- time ----
    Sabotage(
        "verdict by the flag", "lib/sched/verdict.c",
        "if (a->ended_at >= deadline)",
        "if (a->expired)",
        "unit/verdict.table"),
    Sabotage(
        "armed is read before the deadline is stored", "lib/worker/limit.c",
        "    atomic_store_explicit(&l->deadline, deadline, memory_order_release);\n"
        "    atomic_signal_fence(memory_order_seq_cst);\n"
        "    armed = atomic_load_explicit(&l->armed, memory_order_relaxed);\n",
        "    armed = atomic_load_explicit(&l->armed, memory_order_relaxed);\n"
        "    atomic_signal_fence(memory_order_seq_cst);\n"
        "    atomic_store_explicit(&l->deadline, deadline, memory_order_release);\n",
        "unit/limit_steps.alarm_between_any_two_instructions"),
    Sabotage(
        "the alarm comes once only", "lib/worker/limit.c",
        "            set_expired(l);\n            arm(l, now + AGAIN_NS);\n",
        "            set_expired(l);\n",
        "unit/limit.comes_again"),
    Sabotage(
        "keeper does not count stopped time", "lib/keeper/keeper.c",
        "atomic_fetch_add(&p->stopped_ns, now - since);\n        atomic_store(&p->stopped_since, 0);",
        "atomic_fetch_add(&p->stopped_ns, (now - since) & 0);\n        atomic_store(&p->stopped_since, 0);",
        "proc/limits.stopped_worker"),
    Sabotage(
        "no hard limit", "lib/host/slot.c",
        "        d->count.hard_kills++;\n    gpi_slot_kill(d, s, why);\n",
        "        d->count.hard_kills++;\n",
        "proc/limits.hard_limit_spinner"),
    # ---- bells ----
    Sabotage(
        "a bell is decided on without a fence", "lib/wire/page.c",
        "    atomic_thread_fence(memory_order_seq_cst); /* our store before this look; see page.h */\n",
        "",
        "unit/page.stores_come_before_looks"),
    Sabotage(
        "worker sleeps without looking again", "lib/worker/worker.c",
        "if (atomic_load(&p->sent_number) >= w->next) {",
        "if (atomic_load(&p->sent_number) >= w->next && !w->next) {",
        "unit/worker.task_sent_as_the_worker_falls_asleep"),
    Sabotage(
        "host sleeps without looking again", "lib/host/collect.c",
        "    return !gpi_collect_all(d);\n",
        "    return true;\n",
        "unit/sleep.looks_again"),
    Sabotage(
        "ends wait behind a long task", "lib/worker/worker.c",
        "if (w->untold && (w->last_run > FLUSH_RUN_NS || started - w->oldest_end > FLUSH_AGE_NS)) {",
        "if (w->untold && !w->plan.page) {",
        "proc/gaps.end_is_told_before_a_long_task"),
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
        "send numbers may span more than the order ring", "lib/host/dispatch.c",
        "return span < GPI_CELLS ? GPI_CELLS - (uint32_t)span : 0;",
        "return GPI_CELLS + (uint32_t)(span & 0);",
        "proc/gaps.many_numbers_behind_a_long_task"),
    Sabotage(
        "priorities are ignored", "lib/sched/queue.c",
        "if (q->band[mid].priority > priority)",
        "if (q->band[mid].priority < priority)",
        "unit/queue.random_ops"),
    Sabotage(
        "queue limit without what nobody has collected", "lib/host/tasks.c",
        "if (d->live >= d->set.queue_size)",
        "if (d->unended >= d->set.queue_size)",
        "proc/gaps.uncollected_outcomes_fill_the_queue"),
    Sabotage(
        "uncollected outcomes are not counted", "lib/host/finish.c",
        "*ret_uncollected = d->count.accepted - d->count.delivered;",
        "*ret_uncollected = 0;",
        "proc/close.destroy_counts_the_uncollected"),
    Sabotage(
        "result space does not come back", "lib/host/collect.c",
        "atomic_fetch_add_explicit(&s->ch.page->granule[i].freed, 1, memory_order_release);",
        "atomic_fetch_add_explicit(&s->ch.page->granule[i].freed, 0, memory_order_release);",
        "proc/bounds.payload_budget"),
    Sabotage(
        "a granule in use is given out", "lib/worker/result.c",
        "run = granule_free(&p->granule[i]) ? run + 1 : 0;",
        "run = granule_free(&p->granule[i]) || run ? run + 1 : 0;",
        "unit/results.frees_from_the_other_side"),
]
