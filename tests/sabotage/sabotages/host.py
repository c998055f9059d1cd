# SPDX-License-Identifier: MIT
"""Faults in lib/host/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- texts of deaths ----
    Sabotage(
        "a kill of the library is taken for one by the kernel", "lib/host/charge.c",
        "status == SIGKILL && !s->killed",
        "status == SIGKILL",
        "proc/batch.killed_for_one_limit"),
    Sabotage(
        "each attempt that was killed suggests to see the kernel log", "lib/host/charge.c",
        "const char *hint = again ? \"\" : gpi_exit_hint(s, kind, status);",
        "const char *hint = gpi_exit_hint(s, kind, status);",
        "proc/retry.words_of_all_attempts"),
    # ---- workers that begin nothing, submits that are away ----
    Sabotage(
        "a deaf worker is left as it is", "lib/host/watch.c",
        "            gpi_slot_retire(d, s, why);\n",
        "            s->check_at = GPI_NEVER;\n",
        "proc/hostile.goes_deaf"),
    Sabotage(
        "a bell that was lost is not rung again", "lib/host/watch.c",
        "    atomic_store(&s->ch.page->worker_sleeps, 1);\n    gpi_slot_ring(d, s);\n",
        "",
        "proc/hostile.loses_its_bell"),
    Sabotage(
        "a stopped worker is taken for a deaf one", "lib/host/watch.c",
        "return s->called_at > s->last_heard && s->called_turns == stops_and_continues(s) && "
        "!atomic_load(&s->ch.page->stopped_since);",
        "return s->called_at > s->last_heard && s->called_turns <= stops_and_continues(s);",
        "proc/hostile.stopped_is_not_deaf"),
    Sabotage(
        "destroy does not wait for who copies", "lib/host/finish.c",
        "while (d->n_away || d->waiting_for_room)",
        "while (d->waiting_for_room)",
        "proc/r_intake.destroy_while_a_task_is_copied"),
    Sabotage(
        "silence is judged before the news is heard", "lib/host/drive.c",
        "if (!heard && judges_silence(d, i)) {",
        "if (!heard && judges_silence(d, i) && d->now == 0) {",
        "proc/late.setup_was_in_time"),
    Sabotage(
        "the time for an answer begins with the turn", "lib/host/slot.c",
        "s->state_deadline = gpi_time_add(gpi_now(), limit);",
        "s->state_deadline = gpi_time_add(d->now, limit);",
        "proc/late.kill_was_told_late"),
    Sabotage(
        "what a monitor said while its owner was away is not read", "lib/host/monitor.c",
        "over = !gpi_monitor_poll(m, until);",
        "if (!gpi_monitor_poll(m, until))\n            break;",
        "unit/monitor.client_hears_what_came_while_it_was_away"),
    Sabotage(
        "a worker that is spared at its limit stays on a device that has failed",
        "lib/host/fence.c",
        "            leave(d, s); /* it may be spared */\n",
        "            gpi_slot_stays(d, s);\n",
        "proc/device_faults.fault_beside_a_kill_that_is_called_off"),
    Sabotage(
        "a stop that nobody has taken up is not answered by run", "lib/host/feed.c",
        "r->closed = must_end(d);",
        "r->closed = d->closing;",
        "proc/stop.stop_with_the_last_outcome"),
    Sabotage(
        "a submit that is refused in the end keeps its place from others", "lib/host/tasks.c",
        "        if (r != GPUD_EFULL)\n            gpi_room_made(d);",
        "        if (r == GPUD_EFULL)\n            gpi_room_made(d);",
        "proc/r_intake.place_of_a_refused_submit"),
    Sabotage(
        "run looks once more at what destroy may have freed", "lib/host/feed.c",
        "    return r->closed ? gpi_fail(",
        "    return must_end(r->d) ? gpi_fail(",
        "proc/r_intake.destroy_while_run_returns"),
    Sabotage(
        "a slot that was removed keeps its place in the spawner", "lib/host/fence.c",
        "    atomic_fetch_sub(d->places, 1);\n",
        "",
        "proc/places.slots_of_all_dispatchers"),
    # ---- death ----
    Sabotage(
        "an outcome is delivered twice", "lib/host/tasks.c",
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n",
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n"
        "    gpi_event_push(d, gpi_task_index(d, t));\n",
        "proc/hello.submit_and_poll"),
    Sabotage(
        "death is judged without reading what was written", "lib/host/death.c",
        "    gpi_drain(d, s);\n    was = s->state;\n",
        "    was = s->state;\n",
        "proc/death.neighbours_of_a_crash"),
    Sabotage(
        "tasks not claimed are charged with the death", "lib/host/charge.c",
        "d->count.returned += gpi_recall_all(d, s); /* not claimed",
        "begun = s->inflight; /* not claimed",
        "proc/death.killed_from_outside"),
    Sabotage(
        "a word about a former life is taken", "lib/host/channel.c",
        "if (c->incarnation != s->incarnation || !s->started || s->survivor) {",
        "if (!s->started) {",
        "proc/gaps.late_word_of_a_former_life"),
    Sabotage(
        "kill limit is ignored", "lib/host/slot.c",
        "    gpi_slot_await(d, s, "
        "gpi_time_add(at > d->now ? at - d->now : 0, gpi_kill_limit(d, s)));\n",
        "",
        "proc/quarantine.survivor_is_quarantined"),
    Sabotage(
        "a fault of a GPU is counted for each of its instances", "lib/host/judge.c",
        "            counts |= concern(d, k, i);\n",
        "            d->count.xids += concern(d, k, i);\n",
        "proc/device_faults.an_xid_is_counted_once"),
    # ---- time ----
    Sabotage(
        "a kill that is ordered counts as done", "lib/host/watch.c",
        "    s->late = late_ones(s, running, soft, at > d->now ? at : d->now);\n",
        "    s->late = late_ones(s, running, soft, at > d->now ? at : d->now);\n"
        "    d->count.hard_kills += why == GPI_KILL_HARD;\n",
        "proc/r_limits.late_kill_spares_the_next_task"),
    Sabotage(
        "no hard limit", "lib/host/watch.c",
        "        gpi_slot_kill_at(d, s, gpi_slot_first(d, s), at);\n"
        "    else\n        gpi_slot_kill(d, s, why);\n",
        "        (void)at;\n",
        "proc/limits.hard_limit_spinner"),
    Sabotage(
        "the keeper is told of the hard limit when it passes", "lib/host/watch.c",
        "return gpi_time_min(LEAD_NS, d->set.grace / 2);",
        "return gpi_time_min(LEAD_NS, d->set.grace / 2) & 0;",
        "proc/r_limits.hard_limit_without_the_host"),
    # ---- retries ----
    Sabotage(
        "a retry does not wait", "lib/host/attempt.c",
        "if (until > d->now && wait)",
        "if (until > d->now && !wait)",
        "proc/retry.backoff"),
    Sabotage(
        "results of failed attempts are kept", "lib/host/collect.c",
        "    gpi_result_release(d, s->index, e->result_off, e->result_size);\n    return true;",
        "    return true;",
        "proc/retry.results_of_failed_attempts_are_freed"),
    Sabotage(
        "a cancelled task is tried again", "lib/host/collect.c",
        "outcome != GPUD_OUTCOME_SUCCESS && !told && gpi_attempt_again(d, t, outcome, false);",
        "outcome != GPUD_OUTCOME_SUCCESS && gpi_attempt_again(d, t, "
        "outcome == GPUD_OUTCOME_CANCELLED ? GPUD_OUTCOME_ERROR : outcome, false);",
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
        "the host counts from the last progress after a stall", "lib/host/watch.c",
        "if (passed >= gpi_time_add(started, stall) && passed <= d->now)",
        "if (passed >= gpi_time_add(started, stall) && passed <= started)",
        "proc/stall.progress_too_late_saves_nobody"),
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
        "a kill for one limit is everybody's timeout", "lib/host/charge.c",
        "if (ladder && s->late >> cell & 1)",
        "if (ladder && s->late)",
        "proc/batch.killed_for_one_limit"),
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
        "host sleeps without looking again", "lib/host/collect.c",
        "    return !gpi_collect_all(d);\n",
        "    return true;\n",
        "unit/sleep.looks_again"),
    Sabotage(
        "a bell that is refused once is not rung", "lib/os/fds.c",
        "#define BELL_TRIES 3\n",
        "#define BELL_TRIES 1\n",
        "unit/bell.refused_once"),
    # ---- queue, places, bounds ----
    Sabotage(
        "send numbers may span more than the order ring", "lib/host/dispatch.c",
        "return span < GPI_CELLS ? GPI_CELLS - (uint32_t)span : 0;",
        "return GPI_CELLS + (uint32_t)(span & 0);",
        "proc/gaps.many_numbers_behind_a_long_task"),
    Sabotage(
        "queue limit without what nobody has collected", "lib/host/tasks.c",
        "if (d->live >= d->set.queue_size)\n        return GPUD_EFULL;\n",
        "if (d->unended >= d->set.queue_size)\n        return GPUD_EFULL;\n",
        "proc/gaps.uncollected_outcomes_fill_the_queue"),
    Sabotage(
        "what run has pulled waits for room after close too", "lib/host/tasks.c",
        "    if (in->fed && nothing_starts(d))\n",
        "    if (in->fed && nothing_starts(d) && d->live < d->set.queue_size)\n",
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
        "    if (*d->alive)\n        gpi_monitor_dismiss(&g->m);\n",
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
    # ---- kinds of hosts ----
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
        "a create that fails leaves a descriptor", "lib/host/create.c",
        "    gpi_fd_close(&d->input_ro_fd);\n",
        "    (void)0;\n",
        "hosts/rlimits.open_files"),
    Sabotage(
        "destroy leaves shared memory mapped", "lib/host/create.c",
        "    gpi_memory_unmap(d->input, d->set.input_size);\n",
        "    (void)0;\n",
        "hosts/effects.counted"),
    # ---- workers that are programs ----
    Sabotage(
        "a program that never answers has all of the setup limit's default", "lib/host/start.c",
        "    return gpi_time_min(d->set.setup_limit, ANSWER_LIMIT_NS);",
        "    return gpi_time_add(d->set.setup_limit, ANSWER_LIMIT_NS);",
        "proc/exec_faults.no_workers"),
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
        "    return waiter_of(d, id)\n",
        "    return waiter_of(d, id) && !id\n",
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
        "    if (!something)\n        gpi_bell_silence(d->news);\n",
        "",
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
        "    if (!t->awaited && outcome == GPUD_OUTCOME_CRASHED)\n"
        "        gpi_event_push(d, gpi_task_index(d, t));\n",
        "proc/field.killed_at_random_moments"),
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
        "the close limit is rounded up", "lib/host/finish.c",
        "    at = gpi_time_add(d->now, limit);\n",
        "    at = gpi_time_add(d->now, limit + 500000000);\n",
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
        "a source that blocks is not woken", "lib/host/feed.c",
        "return r->d->closing && !r->unblocked && r->cb.unblock;",
        "return false && r->cb.unblock;",
        "proc/ancestor.interrupted_while_the_source_blocks"),
    Sabotage(
        "the queue has no end", "lib/host/tasks.c",
        "    if (d->live >= d->set.queue_size)\n        return GPUD_EFULL;\n",
        "    if (d->live >= d->set.queue_size + 40)\n        return GPUD_EFULL;\n",
        "proc/ancestor.slow_callback_is_bounded"),
    Sabotage(
        "a dead worker keeps its number in the stats", "lib/host/death.c",
        "    s->pid = 0;\n",
        "",
        "proc/ancestor.stats_of_the_dead"),
    # ---- the monitor process ----
    Sabotage(
        "readings that nobody asked for are believed", "lib/host/monitor.c",
        "    if (!m->asked_at[r->device])\n        return false;\n",
        "",
        "unit/monitor.client_believes_no_nonsense"),
    # ---- where devices are read from ----
    Sabotage(
        "what befalls a GPU is told of its instances twice", "lib/host/judge.c",
        "        if (d->dev.row[k].gauge == gauge && !d->dev.row[k].removed && gpi_incident",
        "        for (int twice = 0; twice < 2; twice++)\n"
        "        if (d->dev.row[k].gauge == gauge && !d->dev.row[k].removed && gpi_incident",
        "proc/device_faults.an_xid_is_counted_once"),
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
        " && !s->leaving && ",
        " && ",
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
    Sabotage(
        "a keeper that is made at the end starts a worker", "lib/host/slot.c",
        "    if (gpi_winds_down(d))\n        return;",
        "    if (false)\n        return;",
        "proc/close.no_worker_starts_while_it_ends"),
    Sabotage(
        "a kill and its charge read the start time twice", "lib/host/watch.c",
        "    s->late = late_ones(s, running,",
        "    read_limits(d, s, running, soft);\n    s->late = late_ones(s, running,",
        "proc/hostile.start_time_changes"),
    Sabotage(
        "log lines that a worker drops are not counted", "lib/host/news.c",
        "d->count.events_dropped += atomic_exchange(&p->log_dropped, 0);",
        "(void)d;",
        "proc/bounds.log_lines_beyond_sixteen"),
    # ---- option start_events ----
    Sabotage(
        "starts are events unasked", "lib/host/collect.c",
        "    t->attempts++;\n    if (d->set.start_events)\n",
        "    t->attempts++;\n    if (e)\n",
        "proc/starts.off_by_default"),
    Sabotage(
        "start_events may be any number", "lib/api/options.c",
        "{ \"start_events\", o->start_events, 1 },",
        "{ \"start_events\", o->start_events, UINT32_MAX },",
        "proc/starts.off_by_default"),
    Sabotage(
        "an attempt that ended unseen has no start", "lib/host/collect.c",
        "        gpi_start_seen(d, s, cell, t->attempts, t->started_at);\n",
        "        (void)cell;\n",
        "proc/starts.ended_before_the_host_looks"),
    Sabotage(
        "the start comes behind the outcome", "lib/host/collect.c",
        "    if (d->set.start_events)\n"
        "        gpi_start_seen(d, s, cell, t->attempts, t->started_at);\n"
        "    learn(d, s, t, e->batch);\n",
        "    learn(d, s, t, e->batch);\n"
        "    gpi_task_end(d, t, outcome, GPUD_PHASE_PROCESS, 0);\n"
        "    if (d->set.start_events)\n"
        "        gpi_start_seen(d, s, cell, t->attempts, t->started_at);\n"
        "    return;\n",
        "proc/starts.ended_before_the_host_looks"),
    Sabotage(
        "nobody looks for starts while tasks run", "lib/host/collect.c",
        "        gpi_see_starts(d, s);\n",
        "        (void)s->sent;\n",
        "proc/starts.wakes_a_caller_that_drives"),
    Sabotage(
        "a death is charged without a start", "lib/host/charge.c",
        "    if (d->set.start_events)\n",
        "    if (d->set.start_events && !kind)\n",
        "proc/hostile.hides_its_start"),
    Sabotage(
        "the end of an attempt makes a second start", "lib/host/news.c",
        "    if (s->cell_started[cell] == s->cell_number[cell])\n        return;\n",
        "    (void)attempt;\n",
        "proc/starts.one_per_attempt"),
    Sabotage(
        "a start has the number of the attempt before", "lib/host/news.c",
        "d->task[s->cell_task[cell]].attempts + 1u, started);",
        "d->task[s->cell_task[cell]].attempts, started);",
        "proc/starts.wakes_a_thread_that_waits"),
    Sabotage(
        "progress overtakes its start", "lib/host/news.c",
        "        if (d->set.start_events)\n            see_start(d, s, cell);",
        "        if (d->set.start_events && !pending)\n            see_start(d, s, cell);",
        "proc/starts.progress_comes_after_the_start"),
    Sabotage(
        "starts take the room of events that must arrive", "lib/host/news.c",
        "gpi_note_new(d, GPUD_EVENT_STARTED, true);",
        "gpi_note_new(d, GPUD_EVENT_STARTED, false);",
        "proc/starts.dropped_ones_are_counted"),
    Sabotage(
        "the start time is lost on the way to the host's record", "lib/host/deliver.c",
        "    e->started_at = n->started_at;\n",
        "",
        "proc/starts.wakes_a_thread_that_waits"),
    Sabotage(
        "workers do not know of start_events", "lib/host/channel.c",
        "    p->start_events = d->set.start_events;\n",
        "",
        "proc/starts.wakes_a_caller_that_drives"),
    # ---- states of a slot, and their deadlines ----
    Sabotage(
        "a kill that is ordered has no deadline", "lib/host/slot.c",
        "    gpi_slot_await(d, s, gpi_kill_limit(d, s));\n    if (!s->pid)\n",
        "    if (!s->pid)\n",
        "proc/late_ready.survivor_alone"),
    Sabotage(
        "a start that is reported late puts off the end of its keeper", "lib/host/slot.c",
        "if (s->state == GPUD_SLOT_STARTING && !gpi_slot_dies(s)) {",
        "if (s->state == GPUD_SLOT_STARTING && s->kill == GPI_KILL_NO) {",
        "proc/stopped_keepers.keeper_goes_on_after_it_was_given_up"),
    Sabotage(
        "the close limit kills a survivor again", "lib/host/slot.c",
        "if (s->kill != GPI_KILL_NO || !s->started || s->survivor)",
        "if (s->kill != GPI_KILL_NO || !s->started)",
        "proc/quarantine.close_limit_beside_a_survivor"),
    Sabotage(
        "a removed slot fails without a keeper", "lib/host/channel.c",
        "    if (s->state == GPUD_SLOT_STARTING)\n        gpi_slot_unmade(d, s, what, ",
        "    gpi_slot_unmade(d, s, what, ",
        "proc/roster.removed_before_its_keeper_is_made"),
    Sabotage(
        "a slot still leaves after a start that failed", "lib/host/death.c",
        "    gpi_slot_stays(d, s);\n    s->started = s->still = s->ended = false;\n",
        "    s->started = s->still = s->ended = false;\n",
        "proc/roster.drained_during_a_start_that_fails"),
    Sabotage(
        "a kill hides that the keeper is lost", "lib/host/life.c",
        "    if (s->keeper_lost)\n",
        "    if (s->keeper_lost && s->kill == GPI_KILL_NO)\n",
        "unit/slot_life.flags_make_a_state"),
    Sabotage(
        "a deadline without a timer counts", "lib/host/life.c",
        "return s->state_deadline != GPI_NEVER && s->timer <= s->state_deadline;",
        "return s->state_deadline != GPI_NEVER;",
        "unit/slot_life.deadlines"),
]
