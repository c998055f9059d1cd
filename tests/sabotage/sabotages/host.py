# SPDX-License-Identifier: MIT
"""Faults in lib/host/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- the log of decisions ----
    Sabotage(
        "decision_log: a forked child writes, too", "lib/host/log_file.c",
        "    if (!f->held || f->over || getpid() != f->owner)\n",
        "    if (!f->held || f->over)\n",
        "proc/decision_log.child_writes_nothing"),
    Sabotage(
        "decision_log: RLIMIT_FSIZE is no bound", "lib/host/log_file.c",
        "getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < f->most",
        "getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < 1",
        "proc/decision_log.file_size_limit"),
    Sabotage(
        "decision_log: a part stays before the line cut", "lib/host/log_file.c",
        "    if (error && ftruncate(fd, (off_t)f->size) == 0)\n",
        "    if (error)\n",
        "proc/decision_log.disk_full"),
    Sabotage(
        "decision_log: no event has the end of the log", "lib/host/log_file.c",
        "    if (!f->over || f->told)\n",
        "    if (!f->over || !f->told)\n",
        "proc/decision_log.no_space"),
    Sabotage(
        "decision_log: an existing file is used", "lib/api/create.c",
        "O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600",
        "O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600",
        "proc/decision_log.refused"),
    Sabotage(
        "decision_log: a create that fails leaves the file", "lib/api/create.c",
        "    if (x->log)\n        (void)unlink(x->log);\n",
        "",
        "proc/decision_log.nothing_left"),
    Sabotage(
        "decision_log: the log lacks the decisions of a success", "lib/host/core.c",
        "    gpi_play_success(d->play, now, task, run);\n",
        "    gpi_sched_success(d->core, now, task, run);\n",
        "proc/decision_log.plain"),

    Sabotage(
        "an older caller's event is kept without a class name", "lib/host/kept_events.c",
        "    named.class_name = as_lent.class_name;",
        "    named.class_name = e->class_name ? e->class_name : NULL;",
        "proc/classes.kept_by_an_older_caller"),
    # ---- texts of deaths ----
    Sabotage(
        "a kill of the library is taken for one by the kernel", "lib/host/texts.c",
        "status == SIGKILL && !s->killed",
        "status == SIGKILL",
        "proc/batch.killed_for_one_limit"),
    Sabotage(
        "each attempt that was killed suggests to see the kernel log", "lib/host/charge.c",
        "const char *hint = e->again ? \"\" : gpi_exit_hint(",
        "const char *hint = gpi_exit_hint(",
        "proc/retry.words_of_all_attempts"),
    # ---- workers that begin nothing, submits that are away ----
    Sabotage(
        "a deaf worker is left as it is", "lib/host/watch.c",
        "            gpi_slot_retire(d, s, why);\n",
        "            s->call_at = GPI_NEVER;\n",
        "proc/hostile.goes_deaf"),
    Sabotage(
        "a bell that was lost is not rung again", "lib/host/watch.c",
        "    atomic_store(&s->ch.page->worker_sleeps, 1);\n    gpi_slot_ring(d, s);\n",
        "",
        "proc/hostile.loses_its_bell"),
    Sabotage(
        "a stopped worker is taken for a deaf one", "lib/host/stops.c",
        "    gpi_hear_slot(d, s, GPI_EV_STILL, true);\n    (void)gpi_channel_tell",
        "    (void)gpi_channel_tell",
        "proc/hostile.stopped_is_not_deaf"),
    Sabotage(
        "destroy does not wait for who copies", "lib/host/destroy.c",
        "while (d->intake.n_away || d->intake.waiting_for_room)",
        "while (d->intake.waiting_for_room)",
        "proc/r_intake.destroy_while_a_task_is_copied"),
    Sabotage(
        "silence is judged before the news is heard", "lib/host/loop.c",
        "{\n    hear_all(d);\n    run_timers(d);",
        "{\n    if (d->now == 0)\n        hear_all(d);\n    run_timers(d);",
        "proc/late.setup_was_in_time"),
    Sabotage(
        "the time for an answer begins with the turn", "lib/host/facts.c",
        "    d->now = gpi_now();\n    gpi_hear_slot(d, s, GPI_EV_BEGUN, 0);\n",
        "    gpi_hear_slot(d, s, GPI_EV_BEGUN, 0);\n",
        "proc/late.kill_was_told_late"),
    Sabotage(
        "what a monitor said while its owner was away is not read", "lib/host/monitor.c",
        "over = !gpi_monitor_poll(m, until);",
        "if (!gpi_monitor_poll(m, until))\n            break;",
        "unit/monitor.client_hears_what_came_while_it_was_away"),
    Sabotage(
        "a stop that nobody has taken up is not answered by run", "lib/host/run.c",
        "r->closed = must_end(d);",
        "r->closed = d->close.closing;",
        "proc/stop.stop_with_the_last_outcome"),
    Sabotage(
        "a submit that is refused in the end keeps its place from others", "lib/host/submit.c",
        "        if (r != GPUD_EFULL)\n            gpi_room_made(d);",
        "        if (r == GPUD_EFULL)\n            gpi_room_made(d);",
        "proc/r_intake.place_of_a_refused_submit"),
    Sabotage(
        "run looks once more at what destroy may have freed", "lib/host/run.c",
        "    return r->closed ? gpi_fail(",
        "    return must_end(r->d) ? gpi_fail(",
        "proc/r_intake.destroy_while_run_returns"),
    Sabotage(
        "a slot that was removed keeps its place in the spawner", "lib/host/state.c",
        "    atomic_fetch_sub(d->places, 1);\n",
        "",
        "proc/places.slots_of_all_dispatchers"),
    # ---- death ----
    Sabotage(
        "an outcome is delivered twice", "lib/host/event.h",
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n",
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n"
        "    gpi_event_push(d, gpi_task_index(d, t));\n",
        "proc/hello.submit_and_poll"),
    Sabotage(
        "death is judged without reading what was written", "lib/host/keeper.c",
        "    gpi_output_end(d, s); /* first: the outcomes of the ended tasks contain it */\n"
        "    gpi_on_looks(d, s);\n    gpi_collect(d, s); /* the cells are authoritative */\n"
        "    gpi_collect_rest(d, s);\n",
        "",
        "proc/death.neighbours_of_a_crash_without_pidfds"),
    Sabotage(
        "tasks not claimed are charged with the death", "lib/host/charge.c",
        "d->stats.count.returned += gpi_recall_all(d, s); /* not claimed",
        "begun = s->inflight; /* not claimed",
        "proc/spoilt_page.one_task_is_charged"),
    Sabotage(
        "a word about a former life is taken", "lib/host/keeper.c",
        "if (c->incarnation != s->incarnation || !gpi_slot_has_worker(d, s)) {",
        "if (s->gone) {",
        "proc/gaps.late_word_of_a_former_life"),
    Sabotage(
        "a fault of a GPU is counted for each of its instances", "lib/host/judge.c",
        "            counts |= concern(d, k, i);\n",
        "            d->stats.count.xids += concern(d, k, i);\n",
        "proc/device_faults.an_xid_is_counted_once"),
    # ---- time ----
    Sabotage(
        "a kill that is ordered counts as done", "lib/host/slot.c",
        "    order_sent(d, s, gpi_channel_tell_when(s, cell, at));\n",
        "    order_sent(d, s, gpi_channel_tell_when(s, cell, at));\n"
        "    d->stats.count.hard_kills++;\n",
        "proc/r_limits.late_kill_spares_the_next_task"),
    Sabotage(
        "the keeper is told of the hard limit when it passes", "lib/host/running.c",
        "return gpi_time_min(LEAD_NS, grace / 2);",
        "return gpi_time_min(LEAD_NS, grace / 2) & 0;",
        "proc/r_limits.hard_limit_without_the_host"),
    # ---- retries ----
    Sabotage(
        "results of failed attempts are kept", "lib/host/results.c",
        "    gpi_result_release(d, s->index, e->result_off, e->result_size);\n}",
        "}",
        "proc/retry.results_of_failed_attempts_are_freed"),
    Sabotage(
        "an attempt that is tried again wakes no dispatch", "lib/host/completions.c",
        "    d->ends++;\n    t->started_at",
        "    d->ends += a.outcome == GPUD_OUTCOME_SUCCESS;\n    t->started_at",
        "proc/retry.no_retry_is_forgotten"),
    # ---- expires ----
    Sabotage(
        "one that expires wakes nobody", "lib/host/submit.c",
        "(first || d->set.pooled",
        "((first && !d->loop.sleepers) || d->set.pooled",
        "proc/expires.wakes_who_sleeps"),
    # ---- stall limit ----
    Sabotage(
        "the host counts from the last progress after a stall", "lib/host/running.c",
        "if (passed >= gpi_time_add(started, stall) && passed <= d->now)",
        "if (passed >= gpi_time_add(started, stall) && passed <= started)",
        "proc/stall.progress_too_late_saves_nobody"),
    Sabotage(
        "a worker is believed how many granules it took", "lib/host/results.c",
        "    if (n < most)\n",
        "    if (n > most)\n",
        "proc/hostile.granules_come_back"),
    # ---- bells ----
    Sabotage(
        "host sleeps without looking again", "lib/host/completions.c",
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
        "queue limit without what nobody has collected", "lib/host/submit.c",
        "if (d->intake.live >= d->set.queue_size && takes_place(in))\n        return GPUD_EFULL;",
        "if (gpi_sched_unended(d->core) >= d->set.queue_size)\n        return GPUD_EFULL;",
        "proc/gaps.uncollected_outcomes_fill_the_queue"),
    Sabotage(
        "what run has pulled waits for room after close too", "lib/host/submit.c",
        "    if (in->fed && nothing_starts(d))\n",
        "    if (in->fed && nothing_starts(d) && d->intake.live < d->set.queue_size)\n",
        "proc/r_intake.run_ends_without_room_late"),
    Sabotage(
        "more haste is not told to who waits for room", "lib/host/close.c",
        "    gpi_room_made(d); /* submits that wait",
        "    if (how < GPUD_FINISH_RUNNING)\n        gpi_room_made(d); /* submits that wait",
        "proc/r_intake.run_ends_without_room_by_limit"),
    Sabotage(
        "what never ran counts as work done", "lib/host/event.h",
        "    if (t->attempts) { /* else",
        "    if (t->id) { /* else",
        "proc/eta.cancelled_and_expired_ones_are_no_work_done"),
    Sabotage(
        "an estimate wraps around", "lib/host/stats.c",
        "return seconds * 1e9 < 1.8e19 ? (uint64_t)(seconds * 1e9) : GPUD_NEVER;",
        "return (uint64_t)(int64_t)(seconds * 1e9);",
        "proc/eta.beyond_all_measure"),
    Sabotage(
        "a monitor is left to see the end of its socket", "lib/host/monitors.c",
        "    if (*d->alive)\n        gpi_monitor_dismiss(&g->m);\n",
        "",
        "proc/devices.monitors_go_beside_a_forked_child"),
    Sabotage(
        "uncollected outcomes are not counted", "lib/host/destroy.c",
        "d->stats.count.accepted - d->stats.count.delivered - left;",
        "0;",
        "proc/close.destroy_counts_the_uncollected"),
    Sabotage(
        "result space does not come back", "lib/host/results.c",
        "atomic_fetch_add_explicit(&s->ch.page->granule[i].freed, 1, memory_order_release);",
        "atomic_fetch_add_explicit(&s->ch.page->granule[i].freed, 0, memory_order_release);",
        "proc/bounds.payload_budget"),
    # ---- kinds of hosts ----
    Sabotage(
        "the library thread takes the host's signals", "lib/host/drivers.c",
        "    sigfillset(&all);\n",
        "    sigemptyset(&all);\n",
        "hosts/signals.our_threads_take_no_signal"),
    Sabotage(
        "the feeder takes the host's signals", "lib/host/run.c",
        "    sigfillset(&all);\n",
        "    sigemptyset(&all);\n",
        "hosts/signals.our_threads_take_no_signal"),
    Sabotage(
        "a create that fails leaves a descriptor", "lib/host/create.c",
        "    gpi_fd_close(&d->arena.input_ro_fd);\n",
        "    (void)0;\n",
        "hosts/rlimits.open_files"),
    Sabotage(
        "destroy leaves shared memory mapped", "lib/host/create.c",
        "    gpi_memory_unmap(d->arena.input, d->set.input_size);\n",
        "    (void)0;\n",
        "hosts/effects.counted"),
    # ---- learning: waiting threads, the fd, kept events ----
    Sabotage(
        "the driver leaves and calls nobody", "lib/host/drivers.c",
        "        d->drive.driven = false;\n        gpi_sleepers_hand_over(d);\n",
        "        d->drive.driven = false;\n        (void)gpi_sleepers_hand_over;\n",
        "proc/wait.driving_is_handed_over"),
    Sabotage(
        "an awaited outcome calls nobody", "lib/host/sleepers.c",
        "    if (w)\n        gpi_drive_call(&w->sleeper);\n",
        "    if (w && !w->id)\n        gpi_drive_call(&w->sleeper);\n",
        "proc/wait.the_driver_calls_the_others"),
    Sabotage(
        "an event calls no poll that sleeps", "lib/host/event.h",
        "    if (d->waits.asleep || d->pollable.outer >= 0)\n",
        "    if (d->pollable.outer >= 0)\n",
        "proc/wait.poll_sleeps_beside_the_driver"),
    Sabotage(
        "an awaited outcome is among the events too", "lib/host/event.h",
        "        gpi_wait_ended(d, t);\n    else\n        gpi_event_push",
        "        gpi_wait_ended(d, t);\n    if (!t->kept)\n        gpi_event_push",
        "proc/wait.poll_does_not_deliver_it"),
    Sabotage(
        "an awaited outcome is given twice", "lib/host/wait.c",
        "    gpi_task_free(d, gpi_task_index(d, t));\n",
        "    (void)gpi_task_free;\n",
        "proc/wait.what_it_answers"),
    Sabotage(
        "two threads wait for one task", "lib/host/wait.c",
        "    return gpi_waiter_of(d, id)\n",
        "    return gpi_waiter_of(d, id) && !id\n",
        "proc/wait.two_wait_for_one"),
    Sabotage(
        "poll never ends while an awaited outcome is there", "lib/host/sleepers.c",
        "    return d->close.finished && d->intake.live == d->intake.awaited;",
        "    return d->close.finished && d->intake.live == 0;",
        "proc/wait.end_of_poll"),
    Sabotage(
        "destroy under a thread that waits", "lib/host/destroy.c",
        "    r = d->waits.waiters ? GPUD_EBUSY : 0;\n",
        "    r = 0;\n",
        "proc/wait.destroy_is_refused"),
    Sabotage(
        "no bells on behalf of the fd", "lib/host/pollable.c",
        "    if (!gpi_go_to_sleep(d))\n",
        "    if (!d->pollable.away)\n",
        "proc/fd.one_request_at_a_time"),
    Sabotage(
        "no alarm on behalf of the fd", "lib/host/pollable.c",
        "    set_alarm(d, gpi_drive_next(d));\n",
        "",
        "proc/fd.a_limit"),
    Sabotage(
        "a submit does not wake the loop", "lib/host/wakeup.c",
        "    if (d->loop.woken || (!d->loop.sleepers && !d->pollable.calls_out))\n",
        "    if (d->loop.woken || !d->loop.sleepers)\n",
        "proc/fd.a_submit_elsewhere"),
    Sabotage(
        "the fd stays readable when all is collected", "lib/host/sleepers.c",
        "    if (!something)\n        gpi_bell_silence(d->pollable.news);\n",
        "",
        "proc/fd.it_is_a_level"),
    Sabotage(
        "a past alarm beside a thread that drives", "lib/host/pollable.c",
        "    set_alarm(d, GPI_NEVER);\n    heed_epoll(d, false);\n",
        "",
        "proc/fd.a_past_alarm_does_not_spin"),
    Sabotage(
        "a kept result is given to the next task", "lib/host/kept_events.c",
        "        t->result_place = GPI_RESULT_NONE;\n    } else if (t->size) {",
        "    } else if (t->size) {",
        "proc/keep.without_a_copy"),
    Sabotage(
        "a kept small result stays in the record", "lib/host/kept_events.c",
        "        e->result = k->result;\n",
        "",
        "proc/keep.beyond_the_next_poll"),
    Sabotage(
        "a share that is kept stops its worker", "lib/host/results.c",
        "    if (room == 0 && s->held == s->kept)\n",
        "    if (room == 0 && s->held == 0)\n",
        "proc/keep.a_share_that_is_kept"),
    Sabotage(
        "kept results go with the dispatcher", "lib/host/kept_events.c",
        "        s->ch.result = NULL;\n",
        "",
        "proc/keep.beyond_the_dispatcher"),
    Sabotage(
        "what lies beside kept results stays", "lib/host/kept_events.c",
        "            punch(d, s);\n",
        "            (void)punch;\n",
        "proc/keep.beyond_the_dispatcher"),
    Sabotage(
        "the last release leaves the mapping", "lib/host/kept_events.c",
        "        gpi_memory_unmap(a->base, es->arena_size);\n",
        "        (void)0;\n",
        "proc/keep.beyond_the_dispatcher"),
    Sabotage(
        "a forked child gives the worker room", "lib/host/kept_events.c",
        "    else if (ours)\n        give_back(es->d, k);\n",
        "    else if (es->d)\n        give_back(es->d, k);\n",
        "proc/keep.forked_child"),
    Sabotage(
        "events are kept without bound", "lib/host/kept_events.c",
        "    if (gpi_keep_count(d) >= d->set.queue_size)\n        return GPUD_EFULL;\n",
        "",
        "proc/keep.no_more_than_the_queue"),
    # ---- failures in the field, and those of the ancestor ----
    Sabotage(
        "the outcome of a crash is delivered twice", "lib/host/event.h",
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n",
        "    else\n        gpi_event_push(d, gpi_task_index(d, t));\n"
        "    if (!t->awaited && outcome == GPUD_OUTCOME_CRASHED)\n"
        "        gpi_event_push(d, gpi_task_index(d, t));\n",
        "proc/field.killed_at_random_moments"),
    Sabotage(
        "the close limit is rounded up", "lib/host/close.c",
        "    at = gpi_time_add(d->now, limit);\n",
        "    at = gpi_time_add(d->now, limit + 500000000);\n",
        "proc/field.destroy_in_every_state"),
    Sabotage(
        "the driver looks round ten times a second", "lib/host/loop.c",
        "n = epoll_wait(d->loop.epoll, news, NEWS_MAX, ms);",
        "n = epoll_wait(d->loop.epoll, news, NEWS_MAX, ms < 0 || ms > 100 ? 100 : ms);",
        "proc/idle.eight_workers"),
    Sabotage(
        "a source that blocks is not woken", "lib/host/run.c",
        "return r->d->close.closing && !r->unblocked && r->cb.unblock;",
        "return false && r->cb.unblock;",
        "proc/ancestor.interrupted_while_the_source_blocks"),
    Sabotage(
        "the queue has no end", "lib/host/submit.c",
        "if (d->intake.live >= d->set.queue_size && takes_place(in))\n        return GPUD_EFULL;",
        "if (d->intake.live >= d->set.queue_size + 40)\n        return GPUD_EFULL;",
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
        "        if (d->dev.row[k].gauge == gauge && d->dev.row[k].here && gpi_incident",
        "        for (int twice = 0; twice < 2; twice++)\n"
        "        if (d->dev.row[k].gauge == gauge && d->dev.row[k].here && gpi_incident",
        "proc/device_faults.an_xid_is_counted_once"),
    # ---- devices in a dispatcher ----
    Sabotage(
        "a device's fault is charged as the task's", "lib/host/charge.c",
        "        return GPUD_EDEVICE;\n",
        "        return GPUD_ECRASHED;\n",
        "proc/device_faults.xid_of_a_contained_error"),
    Sabotage(
        "no canary after a kill", "lib/host/judge.c",
        "        gpi_health_killed(&k->health, &d->set.health, d->now);\n",
        "",
        "proc/cuda_on_gpus.an_endless_kernel_is_killed"),
    Sabotage(
        "what only a canary could bring back is given up where there are none",
        "lib/host/devices.c",
        "return gpi_health_hopes(&k->health) ? GPI_MAY_OUT",
        "return k->health.try_at != GPI_NEVER ? GPI_MAY_OUT",
        "proc/device_faults.tasks_wait_for_a_good_reading"),
    Sabotage(
        "tasks wait for a device that only a reset brings back", "lib/host/devices.c",
        "return gpi_health_hopes(&k->health) ? GPI_MAY_OUT",
        "return k->health.try_at ? GPI_MAY_OUT",
        "proc/device_faults.recovery_action"),
    Sabotage(
        "what others have taken of a device's memory is waited for", "lib/host/vacancy.c",
        "held_by_others(now, s->dead) - g->others : 0;",
        "0 : 0;",
        "proc/devices.memory_that_others_took"),
    Sabotage(
        "readings go on when nobody wants them", "lib/host/readings.c",
        "if (is_looked_at(d) || is_busy(d, device))",
        "if (!is_looked_at(d) || is_busy(d, device))",
        "proc/devices.read_while_somebody_looks"),
    Sabotage(
        "a dead monitor is left", "lib/host/monitors.c",
        "d->spawner.gone ? GPI_NEVER : d->now + wait;",
        "d->spawner.gone ? GPI_NEVER : GPI_NEVER;",
        "proc/devices.monitor_that_dies"),
    Sabotage(
        "log lines that a worker drops are not counted", "lib/host/messages.c",
        "d->stats.count.events_dropped += atomic_exchange(&p->log_dropped, 0);",
        "(void)d;",
        "proc/bounds.log_lines_beyond_sixteen"),
    # ---- option start_events ----
    Sabotage(
        "starts are events unasked", "lib/host/completions.c",
        "    t->attempts++;\n    if (gpi_slot_class(d, s)->set.start_events)\n",
        "    t->attempts++;\n    if (e.end)\n",
        "proc/starts.off_by_default"),
    Sabotage(
        "start_events may be any number", "lib/api/options.c",
        "X(start_events, class.start_events, NUMBER, 1, 0)",
        "X(start_events, class.start_events, NUMBER, UINT32_MAX, 0)",
        "proc/starts.off_by_default"),
    Sabotage(
        "an attempt that ended unseen has no start", "lib/host/completions.c",
        "        gpi_start_seen(d, s, cell, t->attempts, t->started_at);\n",
        "        (void)cell;\n",
        "proc/starts.ended_before_the_host_looks"),
    Sabotage(
        "the start comes behind the outcome", "lib/host/completions.c",
        "    if (gpi_slot_class(d, s)->set.start_events)\n"
        "        gpi_start_seen(d, s, cell, t->attempts, t->started_at);\n"
        "    learn(d, s, t, &a);\n",
        "    learn(d, s, t, &a);\n    (void)gpi_sched_end(d->core, d->now, &a);\n"
        "    gpi_task_end(d, t, a.outcome, GPUD_PHASE_PROCESS, 0);\n"
        "    if (gpi_slot_class(d, s)->set.start_events)\n"
        "        gpi_start_seen(d, s, cell, t->attempts, t->started_at);\n    return;\n",
        "proc/starts.ended_before_the_host_looks"),
    Sabotage(
        "nobody looks for starts while tasks run", "lib/host/completions.c",
        "        gpi_see_starts(d, s);\n",
        "        (void)s->sent;\n",
        "proc/starts.wakes_a_caller_that_drives"),
    Sabotage(
        "a death is charged without a start", "lib/host/charge.c",
        "    if (gpi_slot_class(d, s)->set.start_events)\n",
        "    if (gpi_slot_class(d, s)->set.start_events && !s->last.kind)\n",
        "proc/hostile.hides_its_start"),
    Sabotage(
        "the end of an attempt makes a second start", "lib/host/starts.c",
        "    if (s->cell_started[cell] == s->cell_number[cell])\n        return;\n",
        "    (void)attempt;\n",
        "proc/starts.one_per_attempt"),
    Sabotage(
        "a start has the number of the attempt before", "lib/host/starts.c",
        "d->task[s->cell_task[cell]].attempts + 1u, started);",
        "d->task[s->cell_task[cell]].attempts, started);",
        "proc/starts.wakes_a_thread_that_waits"),
    Sabotage(
        "progress overtakes its start", "lib/host/messages.c",
        "        if (gpi_slot_class(d, s)->set.start_events)\n",
        "        if (gpi_slot_class(d, s)->set.start_events && !pending)\n",
        "proc/starts.progress_comes_after_the_start"),
    Sabotage(
        "starts take the room of events that must arrive", "lib/host/notes.c",
        "gpi_note_new(d, kind, true);",
        "gpi_note_new(d, kind, false);",
        "proc/starts.dropped_ones_are_counted"),
    Sabotage(
        "the start time is lost on the way to the host's record", "lib/host/events.c",
        "    e->started_at = n->started_at;\n",
        "",
        "proc/starts.wakes_a_thread_that_waits"),
    Sabotage(
        "workers do not know of start_events", "lib/host/channel.c",
        "    p->start_events = c->set.start_events;\n",
        "",
        "proc/starts.wakes_a_caller_that_drives"),
    # ---- states of a slot, and their deadlines ----
    Sabotage(
        "a start that is reported late puts off the end of its keeper", "lib/host/keeper.c",
        "|| gpi_keeper_hangs(d, s))\n        return;\n",
        "|| gpi_keeper_hangs(d, s) || (s->keeper_dropped && s->pid))\n        return;\n",
        "proc/stopped_keepers.keeper_goes_on_after_it_was_given_up"),
    Sabotage(
        "a removed slot whose worker survives stays in the roster", "lib/host/state.c",
        "    gpi_slot_strike_off(d, s);\n",
        "",
        "proc/dying.removed_before_the_proof"),
    Sabotage(
        "the driver sleeps beside a task that could start", "lib/host/loop.c",
        "gpi_sched_queued(d->core) && gpi_sched_idles(d->core);\n",
        "gpi_sched_queued(d->core);\n",
        "proc/requests.half_free_twice_is_no_whole"),
]
