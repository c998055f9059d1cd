# SPDX-License-Identifier: MIT
"""Faults of pooled dispatchers: classes, requests, answers about tasks, and external work."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "pooled: a submit wakes the dispatcher only if no other task waits", "lib/host/submit.c",
        "(first || d->set.pooled || gpi_sched_queued(d->core) == 1)",
        "(first || gpi_sched_queued(d->core) == 1)",
        "proc/classes.submit_beside_waiting_tasks"),
    Sabotage(
        "pooled: an event has the devices that its seat has by then", "lib/host/events.c",
        "    return t->has_slot && on->n == 0 ? \"cpu\" : gpi_set_names(d, on, room);",
        "    return d->slot[t->slot].device;",
        "proc/classes.event_keeps_devices"),
    Sabotage(
        "pooled: a keeper keeps the environment of its last class", "lib/keeper/surroundings.c",
        "    environ = copy;\n    free(s->reset);\n",
        "    free(s->reset);\n",
        "proc/classes.seat_reused_by_other_class"),
    Sabotage(
        "pooled: a keeper stays with its first class", "lib/host/channel.c",
        "const bool knows = s->ch.class == s->class;",
        "const bool knows = s->ch.class != GPI_NONE;",
        "proc/classes.seat_reused_by_other_class"),
    Sabotage(
        "pooled: foreign memory is no news for the core", "lib/host/pool.c",
        "gpi_core_foreign(d, d->now, device, gpi_time_add(k->others, k->held), k->load);",
        "gpi_core_foreign(d, d->now, device, k->others / 64 + k->held, k->load);",
        "proc/class_devices.foreign_memory"),
    Sabotage(
        "pooled: no reading follows while a task waits for foreign memory", "lib/host/readings.c",
        "    if (d->dev.row[device].foreign && gpi_pool_waits(d))\n",
        "    if (d->dev.row[device].foreign && !d->core)\n",
        "proc/class_devices.foreign_memory"),
    Sabotage(
        "pooled: a class that fits nowhere is accepted", "lib/host/request.c",
        "    if (gpi_sched_holds(d->core, r, n))\n",
        "    if (gpi_sched_holds(d->core, r, n) || most)\n",
        "proc/classes.refused"),
    Sabotage(
        "explain: a task behind another one of its class has the reasons of that one alone",
        "lib/sched/reason.c",
        "    if (gpi_pool_first(k) == task)\n",
        "    if (gpi_pool_first(k) != GPI_NOWHERE)\n",
        "proc/explain.passed_over_by"),
    Sabotage(
        "explain: a task that was sent ahead has no reason", "lib/sched/reason.c",
        "    if (first == task)\n        return 0;\n",
        "    if (first != GPI_NOWHERE)\n        return 0;\n",
        "proc/explain.sent_ahead"),
    Sabotage(
        "explain: an answer is about the time of the last fact", "lib/sched/explain.c",
        "    p->now = now ? now : last;\n",
        "    p->now = last;\n",
        "proc/explain.booting"),
    Sabotage(
        "explain: a full dispatcher counts as a full class", "lib/host/explain.c",
        "    if (r->kind == GPI_REASON_NEVER || is_of_pool(d, r))\n",
        "    if (r->kind == GPI_REASON_NEVER || (is_of_pool(d, r) && class > 255))\n",
        "proc/explain.seats"),
    Sabotage(
        "check: a class that fits nowhere is accepted", "lib/host/explain.c",
        "    if (r == 0 && d->set.pooled && !desc->request)\n",
        "    if (r == 0 && d->set.pooled && own.n > 255)\n",
        "proc/explain.check"),
    Sabotage(
        "pooled: a submit is not told that a request has room", "lib/host/submit.c",
        "    if (!d->intake.awaits_request || !gpi_sched_has_room(d->core, NULL))\n",
        "    if (!d->intake.awaits_request || !d->close.closing)\n",
        "proc/requests.room_for_a_request"),
    Sabotage(
        "pooled: another submit ends the wait for a request", "lib/host/submit.c",
        "        r = check_room(d, &what, in);\n",
        "        r = check_room(d, &what, in), d->intake.awaits_request &= in->unlike;\n",
        "proc/requests.room_for_a_request"),
    Sabotage(
        "pooled: a task is accepted in a class that was removed meanwhile", "lib/host/submit.c",
        "    if (r == 0 && (d->class[class].removing || d->class[class].name != name))\n",
        "    if (r == 0 && d->class[class].removing && !name)\n",
        "proc/requests.submit_beside_a_removal"),
    Sabotage(
        "pooled: a promise is not told", "lib/host/act.c",
        "        gpi_promise_tell(d, task_of(d, a), a->how, a->at);\n",
        "        gpi_promise_tell(d, task_of(d, a), a->how, GPI_NEVER);\n",
        "proc/requests.promise"),
    Sabotage(
        "pooled: a resident class takes requests of tasks", "lib/host/submit.c",
        "    if (c->plan.residence == GPI_RESIDENT)\n",
        "    if (c->plan.residence == GPI_RESIDENT && d->n_classes > 2)\n",
        "proc/requests.requests_refused"),
    Sabotage(
        "pooled: a task has no request but the needs of its class", "lib/host/submit.c",
        "        .n_requests = own->n,\n",
        "        .n_requests = 0 * own->n,\n",
        "proc/requests.wide_among_narrow"),
    Sabotage(
        "the order of a task is forgotten", "lib/host/submit.c",
        "        .order = desc->order,\n",
        "        .order = 0 * desc->order,\n",
        "proc/requests.order_over_refills"),
    Sabotage(
        "pooled: one request too many is accepted", "lib/host/submit.c",
        "    return in->unlike || in->no_run ? GPUD_EFULL : 0;\n",
        "    return in->unlike ? GPUD_EINVAL : in->no_run ? GPUD_EFULL : 0;\n",
        "proc/requests.too_many_requests"),
    Sabotage(
        "pooled: a class with a survivor is never removed", "lib/host/removals.c",
        " && life != GPI_LIFE_STOPPED &&\n              life != GPI_LIFE_STUCK;\n",
        " && life != GPI_LIFE_STOPPED;\n",
        "proc/denied_kill.class_of_a_survivor_removed"),
    Sabotage(
        "pooled: the keep_alive of a task is ignored", "lib/sched/pool.c",
        "s->last_run != 0, run, s->keep);\n", "s->last_run != 0, run, 0);\n",
        "proc/classes.keep_alive_of_a_task"),
    Sabotage(
        "pooled: a keeper takes a removed class for the next one", "lib/host/removals.c",
        "            d->slot[i].ch.class = GPI_NONE;\n",
        "            d->slot[i].ch.class = class;\n",
        "proc/class_removal.removed_numbers"),
    Sabotage(
        "pooled: a task that comes back to an ended class waits", "lib/sched/tasks.c",
        "    if (gpi_class_cancels(c, gpi_record_class(c, t))) {\n",
        "    if (gpi_close_cancels(c)) {\n",
        "proc/class_removal.remove_running"),
    Sabotage(
        "pooled: the number of a class is used again for its events", "lib/host/classes.c",
        "        if (d->class[i].removed && d->class[i].unused && !named[i])\n",
        "        if (d->class[i].removed && d->class[i].unused)\n",
        "proc/class_removal.removed_and_unread"),
    Sabotage(
        "pooled: ready does not count min_workers", "lib/host/ready.c",
        "        t->lacks += least > c->up ? least - c->up : 0;\n",
        "",
        "proc/classes.ready"),
    Sabotage(
        "pooled: the outcome of a failed class has no reason", "lib/host/state.c",
        "    gpi_class_failed(d, s);\n",
        "    gpi_slot_class(d, s)->failed = true;\n",
        "proc/classes.boot_fails_three_times"),
    Sabotage(
        "pooled: a device that comes again has its old number", "lib/host/devices.c",
        "        k->past = d->set.pooled;",
        "        k->past = false;",
        "proc/external_mixed.held_on_a_device_that_returns"),
    Sabotage(
        "pooled: min_workers wait for no reading", "lib/host/pool.c",
        "        waits |= c->up < least",
        "        waits |= c->up > least",
        "proc/class_devices.foreign_memory_and_min_workers"),
    Sabotage(
        "pooled: run gives the reason of the first class", "lib/host/run.c",
        "if (events[i].outcome == GPUD_OUTCOME_NO_WORKER && r->d->set.pooled",
        "if (events[i].outcome == GPUD_OUTCOME_NO_WORKER && !r->d->set.pooled",
        "proc/classes.run_says_why"),
    Sabotage(
        "pooled: a later failure changes the reason of an outcome", "lib/host/tasks.c",
        "        gpi_task_note_why(d, t);\n",
        "        (void)0;\n",
        "proc/classes.reason_before_a_failure"),
    Sabotage(
        "pooled: the outcome of a failure has the reason before", "lib/host/reasons.c",
        "return !d->class[class].failed && gpi_sched_has_failed(d->core, class);",
        "return d->class[class].failed && gpi_sched_has_failed(d->core, class);",
        "proc/classes.boot_fails_three_times"),
    Sabotage(
        "a paused device is returned without an effect", "lib/sched/device.c",
        "(v->paused && event != GPI_EV_RETURN)",
        "v->paused",
        "proc/class_devices.paused_device"),
    # ---- external work ----
    Sabotage(
        "external: destroy leaves the work before the workers have ended", "lib/host/destroy.c",
        "    return d->close.finished || gpi_sched_unended(d->core) == started_outside(d);",
        "    return d->close.finished || gpi_sched_unended(d->core) >= started_outside(d);",
        "proc/external_ends.destroyed_beside_workers"),
    Sabotage(
        "external: held work is free on a device that returns", "lib/host/pool.c",
        "        if (is_held_by(d, g->device, g->n_devices, device))\n",
        "        if (!is_held_by(d, g->device, g->n_devices, device) && !d)\n",
        "proc/external_mixed.held_on_a_device_that_returns"),
    Sabotage(
        "the end of a survivor is not heard of", "lib/host/death.c",
        "    if (!d->set.pooled) /* else its end",
        "    if (d) /* else its end",
        "proc/denied_kill.device_returns_without_readings"),
    Sabotage(
        "a set of devices that is used again keeps its members", "lib/host/places.c",
        "        gpi_core_places_empty(d, i + 1);\n",
        "",
        "proc/external_mixed.more_sets_than_places"),
    Sabotage(
        "external: a grant that was not read is revoked", "lib/host/grants.c",
        "    if (unread && a->how == GPI_REVOKE_BACK) {\n",
        "    if (unread && a->how == GPI_REVOKE_BACK && a->at == 1) {\n",
        "proc/external.grants_that_nobody_reads"),
    Sabotage(
        "external: events that are skipped count as waiting", "lib/host/event.h",
        "    return gpi_ring_length(d) - d->events.n_skipped;\n",
        "    return gpi_ring_length(d);\n",
        "proc/external.grants_that_nobody_reads"),
    Sabotage(
        "external: the events of an ended task are delivered", "lib/host/external.c",
        "    gpi_grant_silence(d, e->task);\n    if (e->phase",
        "    if (e->phase",
        "proc/external.grants_that_nobody_reads"),
    Sabotage(
        "external: entries that are skipped stay in the ring", "lib/host/grants.c",
        "    if (d->events.n_skipped >= d->n_tasks)\n", "    if (d->n_tasks == 0)\n",
        "proc/external.many_grants_that_nobody_reads"),
    Sabotage(
        "external: a call with any number is accepted", "lib/host/external.c",
        "d->outside.of[i].number == attempt && state_of",
        "d->outside.of[i].number && state_of",
        "proc/external.stale_attempt"),
    Sabotage(
        "external: the time of the call decides", "lib/host/external.c",
        "    x->ended_at = at ? at : d->now;\n", "    x->ended_at = at ? d->now : d->now;\n",
        "proc/external_ends.verdict_of_late_success"),
    Sabotage(
        "external: the record of held work is free with its outcome", "lib/host/task.h",
        "    if (t->held && t->plain != GPI_PLAIN_ENDED) {",
        "    if (t->held && t->plain == GPI_PLAIN_ENDED) {",
        "proc/external_ends.ended_after_kill_limit"),
    Sabotage(
        "external: a close leaves nothing alone", "lib/host/close.c",
        "    hear_close(d, GPI_CLOSE_LEAVE, GPI_NEVER);\n",
        "    hear_close(d, GPI_CLOSE_RUNNING, GPI_NEVER);\n",
        "proc/external_ends.left_at_close"),
    Sabotage(
        "external: given up work takes a place in the queue", "lib/host/submit.c",
        "    return !in->adopted || !in->adopted->core.given_up;\n",
        "    return !in->adopted || in->adopted;\n",
        "proc/external_ends.adopted_given_up"),
    Sabotage(
        "external: given up work is a task", "lib/host/external.c",
        "        if (a->core.given_up)\n            disown(d, t);\n",
        "        if (a->core.given_up && !t)\n            disown(d, t);\n",
        "proc/external_ends.adopted_given_up"),
    Sabotage(
        "external: only the process itself is the task's", "lib/host/families.c",
        "        pid = parent;\n", "        pid = 0;\n",
        "proc/external_mixed.memory_of_grandchildren"),
    Sabotage(
        "external: sessions are no families", "lib/host/families.c",
        " || (g->session && g->session == session))\n", ")\n",
        "proc/external_mixed.memory_of_a_session"),
    Sabotage(
        "external: the memory of work is foreign, too", "lib/host/pool.c",
        "        bool ours = of[i].task != GPI_NONE;\n", "        bool ours = false;\n",
        "proc/external_mixed.memory_of_grandchildren"),
    Sabotage(
        "external: options of workers are accepted", "lib/api/options.c",
        "    const int r = check_unset(o, GPI_OPTION_CLASS, \"the class is EXTERNAL, and has no "
        "workers\", e);\n",
        "    const int r = 0;\n",
        "proc/external.fields_refused"),
    Sabotage(
        "external: a task may have data", "lib/host/submit.c",
        "        r = check_external(d, desc, (uint32_t)class, e);\n", "        r = 0;\n",
        "proc/external.fields_refused"),
    Sabotage(
        "external: a class goes under its work", "lib/host/removals.c",
        "    return has || gpi_grants_of(d, class) > 0;\n", "    return has;\n",
        "proc/external_mixed.class_removed"),
    Sabotage(
        "external: a retry keeps the result", "lib/host/external.c",
        "    if (e->again) {\n        gpi_attempt_retry(d, t);\n        return;\n    }\n"
        "    keep_result(t, x);\n",
        "    keep_result(t, x);\n"
        "    if (e->again) {\n        gpi_attempt_retry(d, t);\n        return;\n    }\n",
        "proc/external.retried"),
]
