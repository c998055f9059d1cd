# SPDX-License-Identifier: MIT
"""Edges D: what makes it fast, and what that could break."""

from ..entry import Sabotage

SABOTAGES = [
    Sabotage(
        "edges D5: times stay set when they are answered", "lib/host/timers.c",
        "    if (next_time(s) <= s->timer)\n        return false;\n",
        "    if (next_time(s) >= s->timer)\n        return false;\n",
        "proc/idle.from_the_start_on"),
    Sabotage(
        "edges D2: a worker looks on for as long as it likes", "lib/worker/ahead.c",
        "    } while (host_is_elsewhere(p) && gpi_now() < until);\n",
        "    } while (gpi_now() < until + 5 * GPI_MS);\n",
        "proc/idle.looks_on_for_a_moment"),
    Sabotage(
        "edges D2: the library thread drives beside a thread that fetches", "lib/host/drivers.c",
        "    return d->drive.inside || d->drive.lib_quit || d->drive.visits >= VISITS_ENOUGH;\n",
        "    return d->drive.inside || d->drive.lib_quit;\n",
        "proc/idle.a_loop_fetches"),
    Sabotage(
        "edges D3: records of an array may have any length", "lib/host/desc.c",
        "    if (size == o->stride || (o->fed && size < o->stride))\n",
        "    if (size)\n",
        "proc/many.records_of_other_versions"),
    Sabotage(
        "edges D3: nobody learns how many of an array were taken", "lib/api/dispatcher.c",
        "        *ret_accepted = taken;\n",
        "        *ret_accepted = r ? 0 : n;\n",
        "proc/many.no_room"),
    Sabotage(
        "edges D3: an array does not wait for room from its start on", "lib/host/submit.c",
        "                r = accept_in_time(d, desc, until, &in, &id, e);\n            if (r)\n",
        "                r = accept_in_time(d, desc, i < 5 ? 0 : until, &in, &id, e);\n"
        "            if (r)\n",
        "proc/many.waits_in_vain"),
    Sabotage(
        "edges D1: the bench divides medians of other states of the machine",
        "bench/report_pairs.c",
        "    f.value = f.ratio.middle;\n",
        "    f.value = f.ours / f.raw;\n",
        "unit/bench.figure_is_the_median_of_ratios"),
    Sabotage(
        "edges D1: raw always has the earlier half of a pair", "bench/pairs.c",
        "    if (p->n % 2 == 0)\n",
        "    if (p->n % 2 <= 1)\n",
        "unit/bench.every_other_pair_begins_with_ours"),
    Sabotage(
        "edges D1: nobody is told that the CPUs moved apart", "bench/machine.c",
        "    return line->high > LINE_CHANGED * line->low || "
        "loop->high > LOOP_CHANGED * loop->low;\n",
        "    return line->high < line->low || loop->high > LOOP_CHANGED * loop->low;\n",
        "unit/bench.change_of_the_machine_is_told"),
    Sabotage(
        "edges D4: a worker is ready before its keeper's word", "lib/host/slot.c",
        "if (s->passed || !s->pid || !gpi",
        "if (s->passed || !gpi",
        "proc/late_ready.before_the_keepers_word"),
    Sabotage(
        "edges D4: the keeper's word does not make ready", "lib/host/slot.c",
        "    gpi_keeper_watch_worker(d, s);\n    gpi_slot_check_ready(d, s);\n",
        "    gpi_keeper_watch_worker(d, s);\n",
        "proc/late_ready.before_the_word_of_a_keeper_that_goes_on"),
    Sabotage(
        "edges D4: no news is taken for no child", "lib/keeper/keeper.c",
        "    if (si.si_pid == 0)\n        return NO_CHANGE;\n",
        "    if (si.si_pid == 0)\n        return NO_CHILD;\n",
        "proc/death.daemon_of_a_dead_worker"),
    Sabotage(
        "edges D4: all lives have the environment of the first", "lib/keeper/surroundings.c",
        "\"GPUD_INCARNATION=%u\", incarnation);\n",
        "\"GPUD_INCARNATION=%u\", 1 + 0 * incarnation);\n",
        "proc/surroundings.next_lives"),
    Sabotage(
        "edges D4: a worker has the variables that it inherits", "lib/keeper/surroundings.c",
        "    broken = set_variables(s);",
        "    broken = NULL;",
        "proc/surroundings.handlers_of_fork"),
    Sabotage(
        "edges D4: the handlers of an executed worker do not know it yet", "lib/worker/limit.c",
        "    memset(l, 0, sizeof *l);\n    l->page = page;\n",
        "    gpi_signals_handle(SIGCONT, on_continue, SA_RESTART);\n"
        "    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ 0, GPI_MS }, NULL);\n"
        "    memset(l, 0, sizeof *l);\n    l->page = page;\n",
        "proc/exec.continued_while_born"),
    Sabotage(
        "edges D4: the keeper installs the hook of exit", "lib/worker/worker.c",
        "    gpi_exit_first(gpi_worker_leave); /* not",
        "    if (w->plan.executed)\n        gpi_exit_first(gpi_worker_leave); /* not",
        "proc/surroundings.handlers_of_fork"),
    Sabotage(
        "edges D4: a worker inherits the keeper's own page", "lib/keeper/maker.c",
        "    gpi_memory_not_inherited(m->page, size);\n",
        "",
        "proc/payload.keepers_words_are_read_only"),
    Sabotage(
        "edges D4: a worker is born with words it may write", "lib/worker/worker.c",
        "    gpi_memory_protect(&page->stopped_ns, GPI_KEEPER_WORDS);\n",
        "",
        "proc/payload.keepers_words_are_read_only"),
    Sabotage(
        "edges D4: what a dead worker wrote behind its results stays", "lib/host/death.c",
        "    gpi_results_trim(d, s, granules);",
        "    if (!s)\n        gpi_results_trim(d, s, granules);",
        "proc/hostile.granules_come_back"),
    Sabotage(
        "edges D4: a program finds its files closed", "lib/keeper/program.c",
        "    for (size_t i = 4; i < sizeof keep",
        "    for (size_t i = 5; i < sizeof keep",
        "proc/exec.same_program"),
    Sabotage(
        "edges D3: destroy does not wait for a call that goes on", "lib/host/submit.c",
        "            gpi_go_away(d);\n            gpi_come_back(d);\n",
        "            pthread_mutex_unlock(&d->lock);\n            pthread_mutex_lock(&d->lock);\n",
        "proc/many.destroyed_meanwhile"),
    Sabotage(
        "edges D3: one time for an array whose data are copied meanwhile", "lib/host/submit.c",
        "    if (d->intake.went_away != away) /* the lock was released meanwhile */\n"
        "        in->at = 0;\n",
        "",
        "proc/many.times_count_from_acceptance"),
]
