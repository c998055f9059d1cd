# SPDX-License-Identifier: MIT
"""The sabotages: one-line faults in lib/, each with the case that must notice.

A sabotage names a file, the exact text (found there exactly once), what takes its place, and the
test as SUITE/PROGRAM.CASE.  run.py shows that the case passes without it and fails with it.  When
lib/ changes so that a text is no longer found, run.py says so: mend the table in the same commit.
"""

from collections import namedtuple

Sabotage = namedtuple("Sabotage", "name file old new test")

SABOTAGES = [
    # ---- children of workers ----
    Sabotage(
        "forked children keep the worker's handlers", "lib/worker/signals.c",
        "            (void)sigaction(ours[i].signo, &dfl, NULL);",
        "            (void)dfl;",
        "proc/children.ended_by_signals"),
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
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n",
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n    gpi_event_push(d, gpi_task_index(d, t));\n",
        "proc/hello.submit_and_poll"),
    Sabotage(
        "death is judged without reading what was written", "lib/host/death.c",
        "    gpi_drain(d, s);\n    was = s->state;\n",
        "    was = s->state;\n",
        "proc/death.neighbours_of_a_crash"),
    Sabotage(
        "tasks not claimed are charged with the death", "lib/host/charge.c",
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
        "    if (left == 0) {\n        k->phase = EMPTY;",
        "    if (left >= 0) {\n        k->phase = EMPTY;",
        "proc/death.daemon_of_a_dead_worker"),
    Sabotage(
        "keeper does not watch the host", "lib/keeper/keeper.c",
        "        if (!k.ending && (n == 0 || p[2].revents) && gpi_watch_gone(&k.host))\n            k.ending = true;\n",
        "",
        "proc/gaps.keeper_watches_the_host"),
    Sabotage(
        "a word about a former life is taken", "lib/host/channel.c",
        "if (c->incarnation != s->incarnation || !s->started || s->survivor) {",
        "if (!s->started) {",
        "proc/gaps.late_word_of_a_former_life"),
    Sabotage(
        "kill limit is ignored", "lib/host/slot.c",
        "    s->state_deadline = gpi_time_add(at, gpi_kill_limit(d, s));",
        "    s->state_deadline = GPI_NEVER;",
        "proc/quarantine.survivor_is_quarantined"),
    Sabotage(
        "restart without giving up", "lib/sched/restart.c",
        "if (r->slot_failures >= p->failures_in_a_row)",
        "if (r->slot_failures >= p->failures_in_a_row && p->failures_in_a_row == 0)",
        "unit/restart.given_up_after_so_many_in_a_row"),
    Sabotage(
        "doubling wraps around", "lib/base/clock.h",
        "        wait = wait > cap / 2 ? cap : wait * 2;\n",
        "        wait *= 2;\n",
        "unit/restart.doubling_ends"),
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
        "    if (!l->once)\n        arm(l, now + AGAIN_NS);\n",
        "    (void)now;\n",
        "unit/limit.comes_again"),
    Sabotage(
        "keeper does not count stopped time", "lib/keeper/keeper.c",
        "atomic_fetch_add(&p->stopped_ns, now - since);\n        atomic_store(&p->stopped_since, 0);",
        "atomic_fetch_add(&p->stopped_ns, (now - since) & 0);\n        atomic_store(&p->stopped_since, 0);",
        "proc/limits.stopped_worker"),
    Sabotage(
        "no hard limit", "lib/host/watch.c",
        "        gpi_slot_kill_at(d, s, gpi_slot_first(s), at);\n    else\n        gpi_slot_kill(d, s, why);\n",
        "        (void)at;\n",
        "proc/limits.hard_limit_spinner"),
    Sabotage(
        "the keeper is told of the hard limit when it passes", "lib/host/watch.c",
        "return gpi_time_min(LEAD_NS, d->set.grace / 2);",
        "return gpi_time_min(LEAD_NS, d->set.grace / 2) & 0;",
        "proc/r_limits.hard_limit_without_the_host"),
    Sabotage(
        "memory is taken without asking for it", "lib/os/headroom.c",
        "return room > RESERVE && size <= room - RESERVE;",
        "return room > 0 || size > 0;",
        "hosts/memory.more_than_the_cgroup_has"),
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
        "a retry does not wait", "lib/host/attempt.c",
        "if (until > d->now && wait)",
        "if (until > d->now && !wait)",
        "proc/retry.backoff"),
    Sabotage(
        "the wait before a retry does not double", "lib/sched/retry.c",
        "gpi_time_doubled(p->backoff, attempts ? attempts - 1 : 0, p->cap)",
        "gpi_time_doubled(p->backoff, attempts > 1 ? 0 : 0, p->cap)",
        "unit/retry.waits_double_up_to_the_cap"),
    Sabotage(
        "results of failed attempts are kept", "lib/host/collect.c",
        "    gpi_result_release(d, s->index, e->result_off, e->result_size);\n    return true;",
        "    return true;",
        "proc/retry.results_of_failed_attempts_are_freed"),
    Sabotage(
        "a cancelled task is tried again", "lib/host/collect.c",
        "outcome != GPUD_OUTCOME_SUCCESS && a.cancelled_at == GPI_NEVER && gpi_attempt_again(d, t, outcome, false);",
        "outcome != GPUD_OUTCOME_SUCCESS && gpi_attempt_again(d, t, outcome == GPUD_OUTCOME_CANCELLED ? GPUD_OUTCOME_ERROR : outcome, false);",
        "proc/retry.cancelled_is_not_tried_again"),
    Sabotage(
        "close does not end what waits for its retry", "lib/host/tasks.c",
        "    gpi_defer_end_all(d, outcome, code);\n",
        "",
        "proc/retry.close_while_it_waits"),
    Sabotage(
        "a task is tried again after close", "lib/host/attempt.c",
        "if (d->closing && d->finish >= GPUD_FINISH_RUNNING)",
        "if (d->closing && d->finish > GPUD_FINISH_NOW)",
        "proc/retry.no_retry_once_closing"),
    Sabotage(
        "an attempt that is tried again wakes no dispatch", "lib/host/collect.c",
        "    d->ends++;\n    t->started_at",
        "    d->ends += outcome == GPUD_OUTCOME_SUCCESS;\n    t->started_at",
        "proc/retry.no_retry_is_forgotten"),
    # ---- expires ----
    Sabotage(
        "what sits at a worker does not expire", "lib/host/defer.c",
        "if (t->state == GPI_TASK_SENT && !gpi_take_back(d, t))",
        "if (t->state == GPI_TASK_SENT)",
        "proc/expires.sent_behind_a_long_one"),
    Sabotage(
        "a worker starts what has expired", "lib/worker/worker.c",
        "if (c->expires_at && started >= c->expires_at) {",
        "if (c->expires_at && started < c->expires_at && c->expires_at == 1) {",
        "proc/expires.worker_refuses"),
    Sabotage(
        "one that expires wakes nobody", "lib/host/defer.c",
        "    if (gpi_heap_top_item(&d->expiries) == i)\n        gpi_drive_wake(d);",
        "    if (gpi_heap_top_item(&d->expiries) == i && !d->sleepers)\n        gpi_drive_wake(d);",
        "proc/expires.wakes_who_sleeps"),
    Sabotage(
        "a retry expires", "lib/host/attempt.c",
        "    gpi_expiry_clear(d, t); /* it has started in time */\n",
        "",
        "proc/expires.first_start_counts"),
    Sabotage(
        "an end brings no expiry to rest", "lib/host/tasks.c",
        "    gpi_expiry_clear(d, t);\n",
        "",
        "proc/expires.many"),
    # ---- stall limit ----
    Sabotage(
        "progress is no sign of life", "lib/worker/task.c",
        "        gpi_limit_progress(&t->worker->limit, now);\n",
        "",
        "proc/stall.progress_keeps_alive"),
    Sabotage(
        "a stall is forgotten when progress comes", "lib/worker/task.c",
        "        gpi_worker_note_stall(t->worker, now);\n",
        "",
        "proc/stall.verdict_is_exact"),
    Sabotage(
        "the end is no end of a silence", "lib/worker/worker.c",
        "        gpi_worker_note_stall(w, ended_at);\n",
        "",
        "proc/stall.soft"),
    Sabotage(
        "the host counts from the last progress after a stall", "lib/host/watch.c",
        "if (passed >= gpi_time_add(started, stall) && passed <= d->now)",
        "if (passed >= gpi_time_add(started, stall) && passed <= started)",
        "proc/stall.progress_too_late_saves_nobody"),
    Sabotage(
        "the time of progress is taken before the alarm is held off", "lib/worker/limit.c",
        "    atomic_store(&l->stall_at, GPI_NEVER);\n    return gpi_now();",
        "    uint64_t now = gpi_now();\n    while (gpi_now() < now + 20000)\n        ;\n    atomic_store(&l->stall_at, GPI_NEVER);\n    return now;",
        "proc/stall.verdict_is_exact"),
    Sabotage(
        "stopped time counts for the stall limit", "lib/worker/limit.c",
        "stall_at = gpi_time_add(stall_at, stopped_since_progress(l));",
        "stall_at = gpi_time_add(stall_at, 0 * stopped_since_progress(l));",
        "proc/stall.stopped_worker"),
    Sabotage(
        "each progress leaves the timer alone", "lib/worker/limit.c",
        "armed > soft || armed < soft - l->stall / 2))",
        "armed > soft))",
        "proc/stall.progress_keeps_alive"),
    Sabotage(
        "a worker is believed how many granules it took", "lib/host/collect.c",
        "    if (n < most)\n",
        "    if (n > most)\n",
        "proc/hostile.granules_come_back"),
    # ---- batches ----
    Sabotage(
        "one charged in a batch is batched again", "lib/host/charge.c",
        "t->alone |= batch > 1;",
        "t->alone |= batch > 64;",
        "proc/batch.poison"),
    Sabotage(
        "a worker does not heed that one is to run alone", "lib/worker/batch.c",
        "if (w->members > 0 && (order & GPI_ALONE || too_late(c, started)))\n            break;",
        "if (w->members > 0 && too_late(c, started))\n            break;",
        "proc/batch.alone_behind_others"),
    Sabotage(
        "a kill for one limit is everybody's timeout", "lib/host/charge.c",
        "if (ladder && s->late >> cell & 1)",
        "if (ladder && s->late)",
        "proc/batch.killed_for_one_limit"),
    Sabotage(
        "cancel of one is seen by all", "lib/worker/task.c",
        "memory_order_relaxed) >> t->index & 1);",
        "memory_order_relaxed) != 0);",
        "proc/batch.cancel_one"),
    Sabotage(
        "the limit of a call is the last member's", "lib/worker/batch.c",
        "limit = gpi_time_min(limit, member[i]->cell->limit);",
        "limit = member[i]->cell->limit > limit || !i ? member[i]->cell->limit : limit;",
        "proc/batch.earliest_limit"),
    Sabotage(
        "no wait for more", "lib/worker/batch.c",
        "uint64_t until = p->batch_wait ? gpi_time_add(gpi_now(), p->batch_wait) : 0, n;",
        "uint64_t until = 0, n;",
        "proc/batch.waits_for_more"),
    Sabotage(
        "a worker that gathers counts as stuck", "lib/host/dispatch.c",
        "quiet > d->set.batch_wait ? quiet - d->set.batch_wait : 0))",
        "quiet))",
        "proc/batch.gathering_is_left_alone"),
    Sabotage(
        "too few are sent ahead for a batch", "lib/host/dispatch.c",
        "if (n < d->set.least_ahead)",
        "if (n < d->set.least_ahead && n == 0)",
        "proc/batch.own_outcomes"),
    # ---- bells ----
    Sabotage(
        "a bell is decided on without a fence", "lib/wire/page.c",
        "    atomic_thread_fence(memory_order_seq_cst); /* our store before this look; see page.h */\n",
        "",
        "unit/page.stores_come_before_looks"),
    Sabotage(
        "worker sleeps without looking again", "lib/worker/worker.c",
        "if (atomic_load(&p->sent_number) >= number || ",
        "if ((atomic_load(&p->sent_number) >= number && !number) || ",
        "unit/worker.task_sent_as_the_worker_falls_asleep"),
    Sabotage(
        "host sleeps without looking again", "lib/host/collect.c",
        "    return !gpi_collect_all(d);\n",
        "    return true;\n",
        "unit/sleep.looks_again"),
    Sabotage(
        "ends wait behind a long task", "lib/worker/worker.c",
        "return w->untold && (w->last_run > FLUSH_RUN_NS || now - w->oldest_end > FLUSH_AGE_NS);",
        "return w->untold && !w->plan.page && now;",
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
        "what run has pulled waits for room after close too", "lib/host/tasks.c",
        "    if (fed && nothing_starts(d))\n",
        "    if (fed && nothing_starts(d) && d->live < d->set.queue_size)\n",
        "proc/r_intake.run_ends_without_room_late"),
    Sabotage(
        "more haste is not told to who waits for room", "lib/host/finish.c",
        "    gpi_room_made(d); /* who waits",
        "    if (how < GPUD_FINISH_RUNNING)\n        gpi_room_made(d); /* who waits",
        "proc/r_intake.run_ends_without_room_by_limit"),
    Sabotage(
        "what never ran counts as work done", "lib/host/tasks.c",
        "    if (t->attempts) { /* else",
        "    if (t->id) { /* else",
        "proc/eta.cancelled_and_expired_ones_are_no_work_done"),
    Sabotage(
        "an estimate wraps around", "lib/host/report.c",
        "return seconds * 1e9 < 1.8e19 ? (uint64_t)(seconds * 1e9) : GPUD_NEVER;",
        "return (uint64_t)(int64_t)(seconds * 1e9);",
        "proc/eta.beyond_all_measure"),
    Sabotage(
        "a monitor is left to see the end of its socket", "lib/host/gauge.c",
        "    if (*d->alive)\n        gpi_monitor_dismiss(m);\n",
        "",
        "proc/devices.monitors_go_beside_a_forked_child"),
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
    # ---- kinds of hosts ----
    Sabotage(
        "the host's wait meets the spawner", "lib/os/process.c",
        "return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL);",
        "return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);",
        "hosts/signals.wait_for_all"),
    Sabotage(
        "the host's dispositions are inherited", "lib/os/process.c",
        "(void)sigaction(s, &dfl, NULL); /* KILL,",
        "(void)dfl; /* KILL,",
        "hosts/signals.all_signals_ignored"),
    Sabotage(
        "gpud_fini waits for ever for a spawner that was reaped", "lib/api/spawner.c",
        "while (waitpid(p->spawner, NULL, __WALL) < 0 && errno == EINTR)",
        "while (waitpid(p->spawner, NULL, __WALL) < 0)",
        "hosts/signals.all_signals_ignored_with_a_thread"),
    Sabotage(
        "the library thread takes the host's signals", "lib/host/drive.c",
        "    sigfillset(&all);\n",
        "    sigemptyset(&all);\n",
        "hosts/signals.our_threads_take_no_signal"),
    Sabotage(
        "the feeder takes the host's signals", "lib/host/feed.c",
        "    sigfillset(&all);\n",
        "    sigemptyset(&all);\n",
        "hosts/signals.our_threads_take_no_signal"),
    Sabotage(
        "descriptors at low numbers", "lib/os/fds.c",
        "up = fcntl(fd, F_DUPFD_CLOEXEC, fd_floor());",
        "up = fcntl(fd, F_DUPFD_CLOEXEC, 3 + 0 * fd_floor());",
        "hosts/files.closes_3_to_699"),
    Sabotage(
        "text of the host is written by a worker", "lib/keeper/spawner.c",
        "    __fpurge(stdout);",
        "    (void)0;",
        "hosts/files.text_in_buffers"),
    Sabotage(
        "a worker keeps the host's buffers", "lib/worker/worker.c",
        "(void)setvbuf(stdout, line, _IOLBF, sizeof line);",
        "(void)setvbuf(stdout, NULL, _IOLBF, 0 * sizeof line);",
        "hosts/files.text_in_buffers"),
    Sabotage(
        "what a forked child inherited stays open", "lib/api/init.c",
        "    if (the_process.alive) /*",
        "    if (the_process.alive && !made.alive) /*",
        "hosts/children.forked_hosts"),
    Sabotage(
        "a create that fails leaves a descriptor", "lib/host/create.c",
        "    gpi_fd_close(&d->input_ro_fd);\n",
        "    (void)0;\n",
        "hosts/rlimits.open_files"),
    Sabotage(
        "the limit on files is not looked at", "lib/os/memory.c",
        "if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY)",
        "if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur >= 1)",
        "hosts/rlimits.file_size"),
    Sabotage(
        "destroy leaves shared memory mapped", "lib/host/create.c",
        "    gpi_memory_unmap(d->input, d->set.input_size);\n",
        "    (void)0;\n",
        "hosts/effects.counted"),
    Sabotage(
        "the look decides on TIMEOUT, not the end", "lib/sched/verdict.h",
        "    if (a->ended_at >= deadline)\n",
        "    if (gpi_now() >= deadline)\n",
        "hosts/ends.host_is_stopped"),
    Sabotage(
        "exit in a worker destroys what is the host's", "lib/worker/worker.c",
        "    gpi_exit_first(on_user_exit);\n",
        "    (void)on_user_exit;\n",
        "hosts/cxx.objects_and_exceptions"),
    Sabotage(
        "a host that locks its memory gets all of it", "lib/os/memory.c",
        "void *p = mmap(NULL, (size_t)size, PROT_NONE, flags | MAP_NORESERVE, fd, 0);",
        "void *p = mmap(NULL, (size_t)size, access, flags | MAP_NORESERVE, fd, 0);",
        "hosts/memory.locked_memory"),
    # ---- workers that are programs ----
    Sabotage(
        "a program inherits the keeper's blocked signals", "lib/keeper/program.c",
        "    gpi_process_signals_unblock(); /* all are default",
        "    /* all are default",
        "proc/exec.same_program"),
    Sabotage(
        "the call stays in the environment", "lib/worker/birth.c",
        "    (void)unsetenv(GPI_CALL_VARIABLE);\n",
        "",
        "proc/exec.same_program"),
    Sabotage(
        "the call's files stay open across an exec", "lib/worker/birth.c",
        "(void)fcntl(fds[i], F_SETFD, FD_CLOEXEC);",
        "(void)fcntl(fds[i], F_GETFD);",
        "proc/exec.programs_of_workers"),
    Sabotage(
        "a program of another protocol is taken", "lib/wire/hello.c",
        "if (h.answer == GPI_ANSWER_READY && h.protocol != GPI_PROTOCOL)",
        "if (h.answer == GPI_ANSWER_READY && h.protocol == 0)",
        "proc/exec_faults.no_workers"),
    Sabotage(
        "an exec that failed is not told", "lib/keeper/program.c",
        "    (void)!write(p->call.hello, &h, sizeof h);\n",
        "    (void)h;\n",
        "proc/exec_faults.no_workers"),
    Sabotage(
        "a wrapper's child becomes a host", "lib/api/init.c",
        "        return gpi_fail(reterr, GPUD_EPROTOCOL, 0, \"\", \"this process was started by",
        "        (void)gpi_fail(reterr, GPUD_EPROTOCOL, 0, \"\", \"this process was started by",
        "proc/exec_faults.call_for_another"),
    Sabotage(
        "a program that never answers has all of the setup limit's default", "lib/host/start.c",
        "    return gpi_time_min(d->set.setup_limit, ANSWER_LIMIT_NS);",
        "    return gpi_time_add(d->set.setup_limit, ANSWER_LIMIT_NS);",
        "proc/exec_faults.no_workers"),
    Sabotage(
        "the same program is looked up by its path", "lib/keeper/program.c",
        "(void)syscall(SYS_execveat, p->fd, \"\", argv, environ, AT_EMPTY_PATH);",
        "(void)execve(argv[0], argv, environ);",
        "proc/exec_hosts.program_without_file"),
    Sabotage(
        "AUTO forks where CUDA is in use", "lib/api/start.c",
        "(changed || p->cuda)",
        "changed",
        "proc/exec_hosts.cuda_in_workers"),
    Sabotage(
        "a stub of CUDA counts as in use", "lib/os/cuda.c",
        "return r != NOT_INITIALIZED && r != STUB_LIBRARY;",
        "return r != NOT_INITIALIZED;",
        "proc/exec_hosts.auto_looks_at_cuda"),
    Sabotage(
        "programs run with the rights of gpud_init", "lib/api/start.c",
        "ret->own_spawner = !p || changed;",
        "ret->own_spawner = !p;",
        "proc/exec_hosts.dropped_privileges"),
    Sabotage(
        "the spawner program is an ordinary child", "lib/os/orphan.c",
        "    first = clone(start_second, stacks + STACK, CLONE_VM | CLONE_VFORK | CLONE_FILES, o);",
        "    first = clone(execute, stacks + STACK, CLONE_VM | CLONE_VFORK | CLONE_PIDFD, o, &o->pidfd), o->pid = first;\n    (void)start_second;\n    if (first > 0)\n        return o->err;",
        "proc/exec_hosts.no_children"),
    Sabotage(
        "the spawner program outlives its dispatcher", "lib/api/dispatcher.c",
        "    if (own)\n        gpi_process_unspawn(own);\n    else if (ours && p)",
        "    if (own)\n        (void)0;\n    else if (ours && p)",
        "proc/exec_hosts.two_dispatchers"),
    Sabotage(
        "a spawner program that never answers is left", "lib/api/spawner.c",
        "    if (p->spawner_pidfd >= 0)\n        gpi_process_kill(p->spawner, p->spawner_pidfd);\n    gpi_process_unspawn(p);",
        "    p->spawner = 0;\n    gpi_process_unspawn(p);",
        "proc/exec_faults.bundled_program"),
    Sabotage(
        "a plugin of another ABI is taken", "lib/api/program.c",
        "if (p->abi != GPUD_PLUGIN_ABI)",
        "if (p->abi == 0)",
        "proc/exec_faults.plugins"),
    # ---- learning: waiting threads, the fd, kept events ----
    Sabotage(
        "the driver leaves and calls nobody", "lib/host/drive.c",
        "        d->driven = false;\n        hand_over(d);\n",
        "        d->driven = false;\n        (void)hand_over;\n",
        "proc/wait.driving_is_handed_over"),
    Sabotage(
        "an awaited outcome calls nobody", "lib/host/wait.c",
        "    if (w)\n        gpi_drive_call(&w->sleeper);\n",
        "    if (w && !w->id)\n        gpi_drive_call(&w->sleeper);\n",
        "proc/wait.the_driver_calls_the_others"),
    Sabotage(
        "an event calls no poll that sleeps", "lib/host/event.h",
        "    if (d->asleep || d->outer >= 0)\n",
        "    if (d->outer >= 0)\n",
        "proc/wait.poll_sleeps_beside_the_driver"),
    Sabotage(
        "an awaited outcome is among the events too", "lib/host/tasks.c",
        "        gpi_wait_ended(d, t);\n    else\n        gpi_event_push",
        "        gpi_wait_ended(d, t);\n    if (!t->kept)\n        gpi_event_push",
        "proc/wait.poll_does_not_deliver_it"),
    Sabotage(
        "an awaited outcome is given twice", "lib/host/wait.c",
        "    gpi_task_free(d, t);\n",
        "    (void)gpi_task_free;\n",
        "proc/wait.what_it_answers"),
    Sabotage(
        "two threads wait for one task", "lib/host/wait.c",
        "return waiter_of(d, id) ? GPUD_EBUSY : 0;",
        "return 0;",
        "proc/wait.two_wait_for_one"),
    Sabotage(
        "poll never ends while an awaited outcome is there", "lib/host/drive.c",
        "    return d->finished && d->live == d->awaited;",
        "    return d->finished && d->live == 0;",
        "proc/wait.end_of_poll"),
    Sabotage(
        "destroy under a thread that waits", "lib/host/finish.c",
        "    r = d->waiters ? GPUD_EBUSY : 0;\n",
        "    r = 0;\n",
        "proc/wait.destroy_is_refused"),
    Sabotage(
        "no bells on behalf of the fd", "lib/host/pollable.c",
        "    if (!gpi_go_to_sleep(d))\n",
        "    if (!d->away)\n",
        "proc/fd.one_request_at_a_time"),
    Sabotage(
        "no alarm on behalf of the fd", "lib/host/pollable.c",
        "    set_alarm(d, gpi_drive_next(d));\n",
        "",
        "proc/fd.a_limit"),
    Sabotage(
        "a submit does not wake the loop", "lib/host/drive.c",
        "    if (d->woken || (!d->sleepers && !d->calls_out))\n",
        "    if (d->woken || !d->sleepers)\n",
        "proc/fd.a_submit_elsewhere"),
    Sabotage(
        "the fd stays readable when all is collected", "lib/host/pollable.c",
        "        (void)!read(d->news, &n, sizeof n);\n",
        "        (void)n;\n",
        "proc/fd.it_is_a_level"),
    Sabotage(
        "a past alarm beside a thread that drives", "lib/host/pollable.c",
        "    set_alarm(d, GPI_NEVER);\n    heed_epoll(d, false);\n",
        "",
        "proc/fd.a_past_alarm_does_not_spin"),
    Sabotage(
        "a kept result is given to the next task", "lib/host/keep.c",
        "        t->result_place = GPI_RESULT_NONE;\n    } else if (t->size) {",
        "    } else if (t->size) {",
        "proc/keep.without_a_copy"),
    Sabotage(
        "a kept small result stays in the record", "lib/host/keep.c",
        "        e->result = k->result;\n",
        "",
        "proc/keep.beyond_the_next_poll"),
    Sabotage(
        "a share that is kept stops its worker", "lib/host/dispatch.c",
        "    if (n == 0 && s->held == s->kept)\n",
        "    if (n == 0 && s->held == 0)\n",
        "proc/keep.a_share_that_is_kept"),
    Sabotage(
        "kept results go with the dispatcher", "lib/host/keep.c",
        "        s->ch.result = NULL;\n",
        "",
        "proc/keep.beyond_the_dispatcher"),
    Sabotage(
        "what lies beside kept results stays", "lib/host/keep.c",
        "            punch(d, s);\n",
        "            (void)punch;\n",
        "proc/keep.beyond_the_dispatcher"),
    Sabotage(
        "the last release leaves the mapping", "lib/host/keep.c",
        "        gpi_memory_unmap(a->base, es->arena_size);\n",
        "        (void)0;\n",
        "proc/keep.beyond_the_dispatcher"),
    Sabotage(
        "a forked child gives the worker room", "lib/host/keep.c",
        "    else if (ours)\n        give_back(es->d, k);\n",
        "    else if (es->d)\n        give_back(es->d, k);\n",
        "proc/keep.forked_child"),
    Sabotage(
        "events are kept without bound", "lib/host/keep.c",
        "    if (gpi_keep_count(d) >= d->set.queue_size)\n        return GPUD_EFULL;\n",
        "",
        "proc/keep.no_more_than_the_queue"),
    # ---- failures in the field, and those of the ancestor ----
    Sabotage(
        "the outcome of a crash is delivered twice", "lib/host/tasks.c",
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n",
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n"
        "    if (!t->awaited && outcome == GPUD_OUTCOME_CRASHED)\n        gpi_event_push(d, gpi_task_index(d, t));\n",
        "proc/field.killed_at_random_moments"),
    Sabotage(
        "the signal of a death is not told", "lib/keeper/keeper.c",
        "        .exit_status = si.si_status,\n",
        "        .exit_status = si.si_status & 1,\n",
        "proc/field.one_bad_task"),
    Sabotage(
        "one attempt too many", "lib/sched/retry.c",
        "return attempts < max_attempts && (causes & cause_of",
        "return attempts <= max_attempts && (causes & cause_of",
        "proc/field.poison_runs_so_often"),
    Sabotage(
        "nobody is told that no slot is left", "lib/host/death.c",
        "    if (d->n_useless < d->n_slots)\n        return;\n",
        "    if (d->n_useless <= d->n_slots)\n        return;\n",
        "proc/field.no_slot_is_left"),
    Sabotage(
        "the kill comes 15 ms late", "lib/host/watch.c",
        "        at = gpi_time_add(first, d->set.grace);\n        *ret_why",
        "        at = gpi_time_add(first, d->set.grace + 15 * 1000000);\n        *ret_why",
        "proc/field.killed_in_time"),
    Sabotage(
        "a tenth of a second too late is in time", "lib/sched/verdict.h",
        "    if (a->ended_at >= deadline)\n",
        "    if (a->ended_at >= deadline + 100000000)\n",
        "proc/field.ten_thousand_in_turn"),
    Sabotage(
        "limits are whole seconds", "lib/sched/verdict.h",
        "gpi_time_add(gpi_time_add(a->started_at, a->limit), a->stopped);",
        "gpi_time_add(gpi_time_add(a->started_at, (a->limit + 999999999) / 1000000000 * 1000000000), a->stopped);",
        "proc/ancestor.below_a_second"),
    Sabotage(
        "the close limit is rounded up", "lib/host/finish.c",
        "gpi_time_add(gpi_now(), limit ? limit : d->set.close_limit);",
        "gpi_time_add(gpi_now(), (limit ? limit : d->set.close_limit) + 500000000);",
        "proc/field.destroy_in_every_state"),
    Sabotage(
        "the driver looks round ten times a second", "lib/host/drive.c",
        "n = epoll_wait(d->epoll, news, NEWS_MAX, ms);",
        "n = epoll_wait(d->epoll, news, NEWS_MAX, ms < 0 || ms > 100 ? 100 : ms);",
        "proc/idle.eight_workers"),
    Sabotage(
        "setup has no limit", "lib/host/start.c",
        "s->answered ? d->set.setup_limit : answer_limit(d);",
        "s->answered ? GPI_NEVER / 2 : answer_limit(d);",
        "proc/ancestor.setup_that_blocks"),
    Sabotage(
        "a result without room is none", "lib/worker/task.c",
        "        return GPUD_ERESULTSPACE;\n",
        "        return 0;\n",
        "proc/ancestor.result_that_cannot_be_made"),
    Sabotage(
        "all workers have one seed", "lib/worker/task.c",
        "return w->plan.page->seed + w->plan.page->slot;",
        "return w->plan.page->seed;",
        "proc/ancestor.same_device_twice"),
    Sabotage(
        "a source that blocks is not woken", "lib/host/feed.c",
        "return r->d->closing && !r->unblocked && r->cb.unblock;",
        "return false && r->cb.unblock;",
        "proc/ancestor.interrupted_while_the_source_blocks"),
    Sabotage(
        "the queue has no end", "lib/host/tasks.c",
        "    if (d->live >= d->set.queue_size)\n",
        "    if (d->live >= d->set.queue_size + 40)\n",
        "proc/ancestor.slow_callback_is_bounded"),
    Sabotage(
        "a dead worker keeps its number in the stats", "lib/host/death.c",
        "    s->pid = 0;\n",
        "",
        "proc/ancestor.stats_of_the_dead"),
    Sabotage(
        "a worker to be makes a dispatcher of its own", "lib/api/start.c",
        "if (!p && gpi_birth_awaited())",
        "if (!p && gpi_birth_awaited() && !o)",
        "proc/exec_faults.host_that_names_itself"),
    Sabotage(
        "keepers hide what a dead one has left", "lib/keeper/sweep.c",
        "#define LISTED (GPI_SWEEP_SPARED + ROUND)",
        "#define LISTED (0 * GPI_SWEEP_SPARED + ROUND)",
        "unit/sweep.remains_behind_many_keepers"),
    Sabotage(
        "the loader's words are read in the host's language", "lib/device/nvml.c",
        "before = uselocale(plain);",
        "before = uselocale((locale_t)0);",
        "unit/nvml.no_library_in_another_language"),
    # ---- the monitor process ----
    Sabotage(
        "a sweep kills monitors", "lib/keeper/spawner.c",
        "        if (s->kept[i].pid > 0)\n            alive[n++]",
        "        if (s->kept[i].pid > 0 && !s->kept[i].monitor)\n            alive[n++]",
        "proc/monitor_ends.sweeping_spares_the_monitor"),
    Sabotage(
        "a monitor outlives its connection", "lib/keeper/spawner.c",
        "            kill_monitor(&s->kept[i]);\n        }",
        "        }",
        "proc/monitor_ends.stopped_monitor_is_killed"),
    Sabotage(
        "a monitor outlives its spawner", "lib/keeper/spawner.c",
        "    if (!gpi_process_die_with(spawner))\n",
        "    if (!spawner)\n",
        "proc/monitor_ends.spawner_is_killed"),
    Sabotage(
        "gpud_fini waits for a monitor in D state", "lib/keeper/spawner.c",
        "(only_monitors(&s) || impatient++ == GIVE_UP_AFTER)",
        "(impatient++ == GIVE_UP_AFTER)",
        "proc/monitor_ends.unkillable_monitor_delays_nobody"),
    Sabotage(
        "an incident is dropped when nobody reads", "lib/monitor/monitor.c",
        "            (void)poll(&room, 1, -1);\n",
        "            return;\n",
        "proc/monitor.incidents_are_not_lost"),
    Sabotage(
        "a monitor that hangs does not see its host go", "lib/monitor/monitor.c",
        "struct pollfd end = { .fd = socket,",
        "struct pollfd end = { .fd = -1,",
        "unit/monitor.process_ends_while_it_hangs"),
    Sabotage(
        "a reading of no device is believed", "lib/wire/reading.c",
        "m->device < devices && sample_ok(",
        "m->device < devices + 1 && sample_ok(",
        "unit/reading.devices_in_range"),
    Sabotage(
        "readings that nobody asked for are believed", "lib/host/monitor.c",
        "    if (!m->asked_at[r->device])\n        return false;\n",
        "",
        "unit/monitor.client_believes_no_nonsense"),
    Sabotage(
        "silence is healthy", "lib/api/monitor.c",
        "        if (m->m.asked_at[i])\n",
        "        if (!m->m.asked_at[i])\n",
        "proc/monitor.silent_device_is_unknown"),
    Sabotage(
        "a forked child uses its parent's monitor", "lib/api/monitor.c",
        "atomic_load_explicit(m->alive, memory_order_relaxed) ? 0 : GPUD_EFORKED",
        "atomic_load_explicit(m->alive, memory_order_relaxed) ? 0 : 0",
        "proc/monitor_ends.forked_child_with_init"),
    # ---- devices: choice and judgement ----
    Sabotage(
        "the list of visible devices is not cut", "lib/device/visible.c",
        "            break; /* the list is cut here, as CUDA does */\n",
        "            continue;\n",
        "unit/select.visible"),
    Sabotage(
        "visible numbers count in the order of the enumeration", "lib/device/visible.c",
        "strcasecmp(row[places[at - 1]].pci, row[i].pci) > 0",
        "strcasecmp(row[places[at - 1]].pci, row[i].pci) > 1000",
        "unit/select.visible_in_pci_order"),
    Sabotage(
        "a GPU is taken twice", "lib/device/select.c",
        "    else if (c->owner[place])\n",
        "    else if (c->owner[place] > 1000)\n",
        "unit/select.twice"),
    Sabotage(
        "a GPU in MIG mode is taken as a whole", "lib/device/select.c",
        "    return !gpi_device_is_instance(d) && d->mig_parts != 0;\n",
        "    return false && d->mig_parts != 0;\n",
        "unit/select.instances"),
    Sabotage(
        "hidden devices are chosen by UUID", "lib/device/select.c",
        "        if (visible_number(c, places[i]) != GPI_NO_ROW)\n",
        "        if (visible_number(c, places[i]) != 77)\n",
        "unit/select.visible"),
    Sabotage(
        "what cannot be read is healthy", "lib/device/health_state.c",
        "    gpi_health_enter(h, h->readable ? GPUD_HEALTH_HEALTHY : GPUD_HEALTH_UNKNOWN, now);\n",
        "    gpi_health_enter(h, GPUD_HEALTH_HEALTHY, now);\n",
        "unit/health_walks.random_walks"),
    Sabotage(
        "one canary brings a device back", "lib/device/health.c",
        "    } else if (h->passes < p->passes) {\n",
        "    } else if (h->passes < 1) {\n",
        "unit/health.back_by_canaries"),
    Sabotage(
        "canaries outrank the driver's word", "lib/device/health.c",
        "    if (h->speaks_against) { /* which stays what is to be told */\n",
        "    if (h->speaks_against && h->passes < p->passes) {\n",
        "unit/health.word_forbids"),
    Sabotage(
        "a reading from before the fault clears it", "lib/device/health.c",
        "if (is_cpu(h) || (h->fault_at && s->at <= h->fault_at))",
        "if (is_cpu(h))",
        "unit/health.old_readings"),
    Sabotage(
        "an incident that is still to come makes every reading an old one", "lib/device/health.c",
        "if (at > gpi_time_add(now, p->stale))",
        "if (at > gpi_time_add(now, p->stale) && at < now)",
        "unit/health.an_incident_that_is_still_to_come"),
    Sabotage(
        "a canary is owed where there are none", "lib/device/health_state.c",
        "h->canary_due = p->passes > 0;",
        "h->canary_due = true;",
        "unit/health_walks.a_way_back_without_canaries"),
    Sabotage(
        "our own kill is a fault of the device", "lib/device/health.c",
        "    return (xid == 43 || xid == 45) && h->killed_at && now - h->killed_at < p->own_kill;\n",
        "    return xid == 0 && h->killed_at && now - h->killed_at < p->own_kill;\n",
        "unit/health.our_own_kills"),
    Sabotage(
        "the waits for a device do not double", "lib/device/health_state.c",
        "wait = wait > p->backoff_cap / 2 ? p->backoff_cap : wait * 2;",
        "wait = wait > p->backoff_cap / 2 ? p->backoff_cap : wait + 1;",
        "unit/health.waits_double"),
    Sabotage(
        "a lost device is never looked at again", "lib/device/health_state.c",
        "    h->look_at = canary ? GPI_NEVER : at;\n",
        "    h->look_at = GPI_NEVER;\n",
        "unit/health_walks.a_way_back_from_anywhere"),
    Sabotage(
        "a lost GPU leaves its instances in use", "lib/device/kin.c",
        "    if (!gpi_device_is_instance(at) || i->kind != GPI_INCIDENT_XID)\n        return true;\n",
        "    if (!gpi_device_is_instance(at) && i->kind != GPI_INCIDENT_XID)\n        return true;\n",
        "unit/kin.concerns"),
    Sabotage(
        "a context switch that timed out is ignored", "lib/device/xid.c",
        "X(109, 109, RESET,",
        "X(109, 109, IGNORE,",
        "unit/xid.against_common_lists"),
    # ---- CUDA in a worker ----
    Sabotage(
        "workers see the host's GPUs", "lib/keeper/surroundings.c",
        "    show_devices(s);\n",
        "    if (!s)\n        show_devices(s);\n",
        "proc/cuda.who_sees_what"),
    Sabotage(
        "env may name the devices", "lib/api/dispatcher.c",
        "    if (r > 0)\n        r = gpi_surroundings_on_gpus(o->env, e);\n",
        "",
        "proc/cuda.env_names_what_is_ours"),
    Sabotage(
        "a task ends before its kernels", "lib/worker/worker.c",
        "    sick = w->cuda && gpi_worker_look(w, code);\n    ended = gpi_now();\n",
        "    ended = gpi_now();\n    sick = w->cuda && gpi_worker_look(w, code);\n",
        "unit/cuda_fault.task_lasts_as_long_as_its_kernel"),
    Sabotage(
        "a large result lies across two pinned pieces", "lib/worker/result.c",
        "        if (i % barrier == 0)\n            run = 0;\n",
        "",
        "unit/results.pinned_in_pieces"),
    Sabotage(
        "nobody looks for a fault after a task", "lib/worker/worker.c",
        "    sick = w->cuda && gpi_worker_look(w, code);\n",
        "    sick = false;\n",
        "unit/cuda_fault.sticky_errors"),
    Sabotage(
        "a worker goes on after a sticky error", "lib/worker/cuda.c",
        "return gpi_cuda_is_sticky(r) || sync_all(c) ? GPI_CUDA_STICKY : GPI_CUDA_ERROR;",
        "return GPI_CUDA_ERROR;",
        "unit/cuda_fault.sticky_errors"),
    Sabotage(
        "an error that passes ends the worker", "lib/worker/cuda.c",
        "return gpi_cuda_is_sticky(r) || sync_all(c) ? GPI_CUDA_STICKY : GPI_CUDA_ERROR;",
        "return GPI_CUDA_STICKY;",
        "unit/cuda_fault.errors_that_pass"),
    Sabotage(
        "a pending error is left to the next task", "lib/worker/cuda.c",
        "    r = sync_all(c);\n    gpi_cuda_drain(c);\n",
        "    r = sync_all(c);\n",
        "unit/cuda_fault.pending_errors_are_taken"),
    Sabotage(
        "only the first device is looked at", "lib/worker/cuda.c",
        "    for (uint32_t i = 0; i < c->n; i++) {\n        one = sync_device(",
        "    for (uint32_t i = 0; i < 1; i++) {\n        one = sync_device(",
        "unit/cuda_fault.fault_on_another_device"),
    Sabotage(
        "a worker takes any device", "lib/worker/cuda.c",
        "if (!strncasecmp(digits_of(given), seen, UUID_TEXT - 1))",
        "if (given[0])",
        "unit/cuda.other_devices_than_given"),
    Sabotage(
        "workers spin", "lib/worker/cuda.c",
        "GPI_CU_SCHED_SPIN : GPI_CU_SCHED_BLOCKING_SYNC",
        "GPI_CU_SCHED_SPIN : GPI_CU_SCHED_SPIN",
        "unit/cuda.devices_as_given"),
    Sabotage(
        "CUDA is called on CPU slots", "lib/worker/cuda.c",
        "    if (!c.fake && !gpi_cuda_on_gpu(page))\n",
        "    if (0)\n",
        "unit/cuda.cpu_slots_call_nothing"),
    Sabotage(
        "signals come while devices are opened", "lib/worker/worker.c",
        "    gpi_worker_block_alarm(true);\n    drop_old_bells(plan->orders);\n",
        "    drop_old_bells(plan->orders);\n",
        "unit/cuda.signals_while_devices_are_opened"),
    Sabotage(
        "the alarm is repeated on GPUs", "lib/worker/limit.c",
        "    if (!l->once)\n",
        "    if (l)\n",
        "unit/cuda_stream.one_alarm_on_gpus"),
    Sabotage(
        "nobody compares the canary's result", "lib/worker/canary.c",
        "        if (seen[i] == right)\n",
        "        if (right || !right)\n",
        "unit/cuda_canary.canary_comes_before_setup"),
    Sabotage(
        "a stream is awaited beyond the limit", "lib/worker/stream.c",
        "        if (gpud_task_expired(t))\n",
        "        if (!p)\n",
        "unit/cuda_stream.stream_sync_ends_at_the_limit"),
    Sabotage(
        "an arena stays pinned in part", "lib/worker/cuda.c",
        "        unpin(c, at, done); /*",
        "        (void)unpin; /*",
        "unit/cuda.pinning_falls_back"),
    # ---- where devices are read from ----
    Sabotage(
        "a question is asked before the XID is told", "lib/device/nvml_await.c",
        "            ear->look[i] = true;\n",
        "            look(s, i);\n",
        "unit/nvml_await.xid_of_a_device_that_hangs"),
    Sabotage(
        "no state is read behind registration", "lib/device/nvml_await.c",
        "    ear->look[row] = true;\n",
        "    ear->look[row] = false;\n",
        "unit/nvml_await.state_behind_registration"),
    Sabotage(
        "one failed wait makes deaf", "lib/device/nvml_await.c",
        "if (!found && ear->failed_before) {",
        "if (!found) {",
        "unit/nvml_await.waits_that_fail"),
    Sabotage(
        "while one GPU is lost all are registered every second", "lib/device/nvml_await.c",
        "else if (some_is_back(s))",
        "else if (some_is_back(s) || ear->missed)",
        "unit/nvml_await.a_lost_device_costs_little"),
    Sabotage(
        "an index that cannot be opened ends the enumeration", "lib/device/nvml.c",
        "        d->unreadable++;\n",
        "        d->unreadable++;\n        break;\n",
        "unit/nvml.indices_that_cannot_be_opened"),
    Sabotage(
        "early 535 drivers are asked for what they write wrongly", "lib/device/nvml.c",
        "s->second_process_list = major == 535 && minor < 104;",
        "s->second_process_list = major == 535 && minor < 4;",
        "unit/nvml_sample.processes_of_535"),
    Sabotage(
        "all process entries have 24 bytes", "lib/device/nvml_sample.c",
        "return wide > narrow ? 32 : 24;",
        "return wide > narrow ? 24 : 24;",
        "unit/nvml_sample.processes_in_32_bytes"),
    Sabotage(
        "the driver's reserve counts for nobody", "lib/device/nvml_sample.c",
        "x->memory_used = two.used + two.reserved;",
        "x->memory_used = two.used;",
        "unit/nvml_sample.values_of_a_sample"),
    Sabotage(
        "a field that is not available is zero", "lib/device/nvml_sample.c",
        "ret[i] = value < GPI_UNKNOWN32 ? (uint32_t)value : GPI_UNKNOWN32;",
        "ret[i] = value < GPI_UNKNOWN32 ? (uint32_t)value : 0;",
        "unit/nvml_sample.values_of_a_sample"),
    Sabotage(
        "a lost GPU is one that cannot be read", "lib/device/driver.c",
        "    case GPI_NVML_GPU_IS_LOST:\n",
        "",
        "unit/nvml_sample.what_codes_mean"),
    Sabotage(
        "of two lines of a script the upper one counts", "lib/device/script.c",
        "(time == l->time && e > l->line)",
        "(time == l->time && e < l->line)",
        "unit/script.the_later_line_counts"),
    Sabotage(
        "a file of a script is seen again and again", "lib/device/script.c",
        "if (fired[i] == GPI_NEVER && !access(",
        "if (!access(",
        "unit/script.files_are_waited_for"),
    Sabotage(
        "what befalls a GPU is told of its instances twice", "lib/host/judge.c",
        "        if (d->dev.row[k].gauge == gauge && !d->dev.row[k].removed && gpi_incident",
        "        for (int twice = 0; twice < 2; twice++)\n        if (d->dev.row[k].gauge == gauge && !d->dev.row[k].removed && gpi_incident",
        "proc/device_faults.an_xid_is_counted_once"),
    Sabotage(
        "instances hear nothing of their GPU", "lib/device/kin.c",
        "    if (!are_on_one_gpu(at, d))\n",
        "    if (!are_on_one_gpu(at, d) || gpi_device_is_part_of(d, at))\n",
        "unit/kin.concerns"),
    Sabotage(
        "the script of a fake begins when it is opened", "lib/device/fake.c",
        "    f->zero = zero;\n",
        "    f->zero = gpi_now();\n",
        "unit/fake.counts_from_its_zero"),
    Sabotage(
        "a GPU in MIG mode without instances is a whole one", "lib/device/nvml.c",
        "    parent->mig_parts = GPI_UNKNOWN32; /* until it has some it runs nothing */\n",
        "",
        "unit/nvml.mig_mode_without_instances"),
    # ---- devices in a dispatcher ----
    Sabotage(
        "a device's fault is charged as the task's", "lib/host/charge.c",
        "        return GPUD_EDEVICE;\n",
        "        return GPUD_ECRASHED;\n",
        "proc/device_faults.no_retry_for_a_crash"),
    Sabotage(
        "a device that is lost gets workers", "lib/host/fence.c",
        "(!s->trying && !gpi_health_starts(&device_of(d, s, i)->health))",
        "(!s->trying && s->survivor)",
        "proc/device_faults.all_are_lost"),
    Sabotage(
        "no canary after a kill", "lib/host/judge.c",
        "s->watched && i < s->n_devices; i++)\n        gpi_health_killed",
        "!s->watched && i < s->n_devices; i++)\n        gpi_health_killed",
        "proc/device_faults.canary_after_a_kill"),
    Sabotage(
        "what only a canary could bring back is given up where there are none", "lib/host/fence.c",
        "return !gpi_health_starts(&k->health) && !gpi_health_hopes(&k->health);",
        "return !gpi_health_starts(&k->health) && k->health.try_at == GPI_NEVER;",
        "proc/device_faults.tasks_wait_for_a_good_reading"),
    Sabotage(
        "tasks wait for a device that only a reset brings back", "lib/host/fence.c",
        "return !gpi_health_starts(&k->health) && !gpi_health_hopes(&k->health);",
        "return !gpi_health_starts(&k->health) && k->health.try_at == 0;",
        "proc/device_faults.recovery_action"),
    Sabotage(
        "a slot that leaves takes tasks", "lib/host/dispatch.c",
        " && !s->leaving;",
        ";",
        "proc/roster.a_drained_one_takes_no_more"),
    Sabotage(
        "a successor does not wait for its device's memory", "lib/host/slot.c",
        "!s->started && !s->vacating && s->keeper_pid",
        "!s->started && s->keeper_pid",
        "proc/devices.memory_that_comes_late"),
    Sabotage(
        "what others have taken of a device's memory is waited for", "lib/host/vacancy.c",
        "held_by_others(now, s->dead) - g->others : 0;",
        "0 : 0;",
        "proc/devices.memory_that_others_took"),
    Sabotage(
        "readings go on when nobody wants them", "lib/host/gauge.c",
        "if (looked || is_busy(d, device))",
        "if (!looked || is_busy(d, device))",
        "proc/devices.read_while_somebody_looks"),
    Sabotage(
        "a dead monitor is left", "lib/host/gauge.c",
        "d->spawner_gone ? GPI_NEVER : d->now + wait;",
        "d->spawner_gone ? GPI_NEVER : GPI_NEVER;",
        "proc/devices.monitor_that_dies"),
]
