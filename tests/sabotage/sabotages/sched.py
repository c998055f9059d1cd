# SPDX-License-Identifier: MIT
"""Faults in lib/sched/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- death ----
    Sabotage(
        "returned tasks go to the end of the queue", "lib/sched/queue.c",
        "    link_before(q, b, item, old_place(q, b, item, before, context));\n",
        "    (void)old_place(q, b, item, before, context);\n    link_before(q, b, item, NONE);\n",
        "sched/scripts.stuck"),
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
        "sched/scripts.start_time_changes"),
    Sabotage(
        "a cancel beside a kill for the limit hides the timeout", "lib/sched/tasks.c",
        "if (ladder && s->doomed >> cell & 1)",
        "if (ladder && s->doomed >> cell & 1 && !asked)",
        "sched/scripts.doomed_cancelled"),
    Sabotage(
        "an idle worker that breaks the protocol is no failure of its slot",
        "lib/sched/slot_end.c",
        "if (why != GPI_WHY_NO && why != GPI_WHY_PROTOCOL)",
        "if (why != GPI_WHY_NO)",
        "sched/scripts.liar"),
    Sabotage(
        "only the first task of a worker has a limit", "lib/sched/stream.c",
        "    if (s->sent == 1 || at < s->check_at)\n",
        "    if (s->sent == 1)\n",
        "sched/worlds.oracles"),
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
        "if (wait == 0 || gpi_none_can_run(gpi_record_class(c, t))) {",
        "if (wait != 0 || gpi_none_can_run(gpi_record_class(c, t))) {",
        "sched/scripts.retry"),
    Sabotage(
        "a cancelled task is tried again", "lib/sched/stream.c",
        "!a->final && !gpi_record_is_cancelled(c, t);\n    }\n    leave(c, s, t);\n"
        "    again = again && gpi_tasks_retry(c, a->task, a->outcome);\n",
        "!a->final;\n    }\n    leave(c, s, t);\n"
        "    again = again && gpi_tasks_retry(c, a->task, a->outcome == GPUD_OUTCOME_CANCELLED ? "
        "(uint32_t)GPUD_OUTCOME_ERROR : a->outcome);\n",
        "sched/worlds.oracles"),
    Sabotage(
        "close does not end what waits for its retry", "lib/sched/tasks.c",
        "(k->deferred || (all",
        "((k->deferred && outcome != GPUD_OUTCOME_CANCELLED) || (all",
        "sched/scripts.deferred_close"),
    Sabotage(
        "a task that waits for its retry outlives the last slot", "lib/sched/tasks.c",
        "(k->deferred || (all",
        "((k->deferred && outcome != GPUD_OUTCOME_NO_WORKER) || (all",
        "sched/scripts.deferred"),
    Sabotage(
        "a cancel does not find a task that waits for its retry", "lib/sched/tasks.c",
        "    case GPI_RECORD_QUEUED:\n    case GPI_RECORD_LATER:\n",
        "    case GPI_RECORD_LATER:\n        break;\n    case GPI_RECORD_QUEUED:\n",
        "sched/scripts.deferred"),
    Sabotage(
        "a killed task has no other attempt", "lib/sched/tasks.c",
        "again = !survived && !cancelled &&",
        "again = !survived && !cancelled && s->why != GPI_WHY_LIMIT &&",
        "sched/worlds.oracles"),
    Sabotage(
        "a task is tried again after close", "lib/sched/tasks.c",
        "    if (gpi_class_cancels(c, gpi_record_class(c, t)))\n        return false; /* another",
        "    if (gpi_class_cancels(c, gpi_record_class(c, t)) && !t->attempts)\n"
        "        return false; /* another",
        "sched/scripts.deferred_close"),
    Sabotage(
        "a task that waits for its retry stops all others", "lib/sched/stream.c",
        "    while (n < most && k->queue.count) {\n        const uint32_t shelf",
        "    while (n < most && k->queue.count && !c->retries.count) {\n"
        "        const uint32_t shelf",
        "sched/scripts.retry"),
    # ---- replacement after max_tasks ----
    Sabotage(
        "attempts that fail do not count for max_tasks_per_worker", "lib/sched/stream.c",
        "    t->attempts++;\n    s->served++;\n",
        "    t->attempts++;\n    s->served += good;\n",
        "sched/scripts.renew"),
    Sabotage(
        "a slot that has failed keeps its turn", "lib/sched/life.c",
        "const bool over = s->life == GPI_LIFE_UP || s->life == GPI_LIFE_PARKED ||\n"
        "                      gpi_life_is_settled(c, s);",
        "const bool over = s->life == GPI_LIFE_UP;",
        "sched/worlds.oracles"),
    # ---- expires ----
    Sabotage(
        "what sits at a worker does not expire", "lib/sched/tasks.c",
        "        if (t->wish <= GPI_WISH_RETURN)\n",
        "        if (t->wish <= GPI_WISH_RETURN && t->alone)\n",
        "sched/scripts.expires"),
    Sabotage(
        "a retry expires", "lib/sched/tasks.c",
        "    if (t->expires) /* the task has started in time */\n"
        "        gpi_heap_remove(&c->expiries, i);\n    t->expires = t->lapsed = false;\n",
        "",
        "sched/scripts.expires_started"),
    Sabotage(
        "an end brings no expiry to rest", "lib/sched/record.h",
        "    if (t->expires)\n        gpi_heap_remove(&c->expiries, i);\n    if (t->wary)",
        "    if (t->wary)",
        "sched/scripts.expires_started"),
    # ---- batches ----
    Sabotage(
        "one charged in a batch is batched again", "lib/sched/tasks.c",
        "t->alone |= batch > 1;",
        "t->alone |= batch > 64;",
        "sched/scripts.batch_death"),
    Sabotage(
        "a kill for one limit is everybody's timeout", "lib/sched/tasks.c",
        "if (ladder && s->doomed >> cell & 1)",
        "if (ladder && s->doomed)",
        "sched/scripts.batch_kill"),
    Sabotage(
        "a worker that gathers counts as stuck", "lib/sched/behind.c",
        "gpi_time_add(gpi_time_add(s->heard, s->class->set.batch_wait), GPI_PLACE_QUIET_NS)",
        "gpi_time_add(s->heard, GPI_PLACE_QUIET_NS)",
        "sched/scripts.gathering"),
    Sabotage(
        "too few are sent ahead for a batch", "lib/sched/spread.c",
        "    if (n < least)",
        "    if (n < least && n == 0)",
        "proc/batch.own_outcomes"),
    # ---- seats of a pooled core ----
    Sabotage(
        "the plan does not hear how long the first runs of a class take", "lib/sched/pool.c",
        "    if (k->mean_run || k->waiting == GPI_NOWHERE)\n",
        "    if (c->now != GPI_NEVER || k->waiting == GPI_NOWHERE)\n",
        "sched/scripts.pool_long_runs"),
    Sabotage(
        "a worker of a pool gets long tasks ahead", "lib/sched/place.c",
        "    if (pooled && (mean_run == 0 || mean_run >= LONG_RUN_NS))",
        "    if (pooled && mean_run == UINT64_MAX)",
        "sched/scripts.pool_ahead"),
    Sabotage(
        "a second batch waits behind a long one in a pool", "lib/sched/spread.c",
        "!set->ahead && ahead > 1 ?",
        "!set->ahead ?",
        "sched/scripts.pool_batch"),
    Sabotage(
        "tasks stay behind a long one while all workers of a pool are stuck", "lib/sched/behind.c",
        "(c->plan || k->n_takes > k->n_stuck))",
        "k->n_takes > k->n_stuck)",
        "sched/scripts.pool_ahead"),
    Sabotage(
        "tasks stay behind a long one in a pool while none is queued", "lib/sched/behind.c",
        "    if (k->queue.count == 0 && !c->plan) {",
        "    if (k->queue.count == 0) {",
        "sched/scripts.pool_ahead"),
    Sabotage(
        "a stuck worker of a pool gets a task back", "lib/sched/spread.h",
        "c->plan || k->n_takes > k->n_stuck ? 0",
        "k->n_takes > k->n_stuck ? 0",
        "sched/scripts.pool_ahead"),
    Sabotage(
        "a worker without a grant takes tasks", "lib/sched/spread.c",
        "may_take(c, s) && ((granted && !s->chosen) || !c->plan);",
        "may_take(c, s) && !s->chosen;",
        "sched/scripts.pool_grant"),
    Sabotage(
        "the place of a cancelled task of its own stays taken", "lib/sched/own.c",
        "    if (t->is_bound)\n        release(c, task);\n",
        "    (void)release;\n",
        "sched/scripts.pool_own_bound"),
    Sabotage(
        "a task of its own waits for a stopped worker", "lib/sched/pool.c",
        "    if (s->chosen && s->fresh && s->still && s->known == GPI_KNOWN_UP)\n",
        "    if (s->chosen && s->fresh && s->still && !s->known)\n",
        "sched/scripts.pool_own_bound"),
    Sabotage(
        "a task of its own that no device could hold waits for good", "lib/sched/pool.c",
        "        if (gpi_own_is_hopeless(c, i))\n",
        "        if (gpi_own_is_hopeless(c, i) && c->closing)\n",
        "sched/scripts.pool_own_bound"),
    Sabotage(
        "a task with an order is behind all that are there", "lib/sched/tasks.c",
        "    if (t->number == c->submitted)\n",
        "    if (t->number <= c->submitted)\n",
        "sched/scripts.ages"),
    Sabotage(
        "a revoked grant takes no task back", "lib/sched/pool.c",
        "    take_back(c, s);\n",
        "    (void)take_back;\n",
        "sched/scripts.pool_grant"),
    Sabotage(
        "a class boots before the memory of the last worker is back", "lib/sched/slot_end.c",
        "    } else if (s->owed) {\n        gpi_life_enter(c, s, GPI_LIFE_COOL);",
        "    } else if (s->owed && c->now == 0) {\n        gpi_life_enter(c, s, GPI_LIFE_COOL);",
        "sched/scripts.pool_two_models"),
    Sabotage(
        "a class that fails for ever is never given up", "lib/sched/slot_end.c",
        "    if (k->failures >= k->set.restart.failures_in_a_row && !has_other(c, s))",
        "    if (k->failures > k->set.restart.failures_in_a_row + 100 && !has_other(c, s))",
        "sched/scripts.pool_fails"),
    Sabotage(
        "the plan uses a device whose canary has not ended", "lib/sched/pool.c",
        "v->may >= GPI_MAY_OUT || has_canary(c, device);",
        "v->may >= GPI_MAY_OUT || (has_canary(c, device) && c->now);",
        "sched/scripts.pool_canary"),
    Sabotage(
        "a worker that the plan has evicted stays", "lib/sched/pool.c",
        "    s->evicted = s->to_evict = true;\n",
        "    s->evicted = true;\n",
        "sched/scripts.pool_evict_doomed"),
    Sabotage(
        "a worker on a paused device takes tasks", "lib/sched/spread.c",
        "!s->class->paused && !gpi_devices_pause(c, s);",
        "!s->class->paused;",
        "sched/worlds.oracles"),
    Sabotage(
        "a grant that has no task left is kept", "lib/sched/pool.c",
        "    for (uint32_t i = 0; any && i < c->n_slots; i++)",
        "    for (uint32_t i = 0; any && c->now == 0 && i < c->n_slots; i++)",
        "sched/scripts.pool_unused_grant"),
    Sabotage(
        "an idle worker keeps its grant when another one takes the last task", "lib/sched/pool.c",
        "any |= k->n_fresh || gpi_spread_has_idle(k);",
        "any |= k->n_fresh;",
        "sched/scripts.pool_idle_grant"),
    Sabotage(
        "a class that waited after a failure never says again from when it wants a worker",
        "lib/sched/pool.c",
        "        if (c->class[i].waiting != GPI_NOWHERE)",
        "        if (c->class[i].waiting != GPI_NOWHERE && c->class[i].wants_from != UINT32_MAX)",
        "sched/scripts.pool_wants_again"),
    Sabotage(
        "a class is given up while another worker of it is in setup", "lib/sched/slot_end.c",
        "o->life == GPI_LIFE_SETUP || o->life == GPI_LIFE_UP ||",
        "o->life == GPI_LIFE_UP ||",
        "sched/scripts.pool_late_worker"),
    Sabotage(
        "a stream stands for a task that another grant is about to take", "lib/sched/pool.c",
        "gpi_queue_at(&k->queue, k->unused)",
        "gpi_queue_at(&k->queue, 0)",
        "sched/scripts.pool_order"),
    Sabotage(
        "the plan does not learn of a more urgent first task", "lib/sched/pool.c",
        "k->queue.band[0].priority > k->waits_with ||",
        "k->queue.band[0].priority > k->waits_with + 1000 ||",
        "sched/scripts.pool_urgent"),
    Sabotage(
        "the plan may grant a worker that is due for renewal", "lib/sched/sched.c",
        "        gpi_gates_renew(c); /* else the plan may grant a worker that takes nothing "
        "more */\n",
        "",
        "sched/scripts.pool_renew"),
    Sabotage(
        "the grant of a stopped worker binds a task", "lib/sched/spread.c",
        "s->fresh && s->takes && s->depth;",
        "s->fresh;",
        "sched/scripts.pool_stopped"),
    Sabotage(
        "without a spawner a class is given up although it has a worker", "lib/sched/slot_end.c",
        "c->plan && (has_other(c, s) || has_keeper(c))",
        "c->plan && c->now == 0",
        "sched/scripts.pool_no_spawner"),
    # ---- classes ----
    Sabotage(
        "a task is queued for the first class, whatever its own is", "lib/sched/stream.c",
        "        .class = what->class & 255,\n",
        "        .class = what->class & 0,\n",
        "sched/scripts.two_classes"),
    Sabotage(
        "the tasks of a class wait while another class has a slot", "lib/sched/core.h",
        "    return k->n_hopeless == k->n_slots;",
        "    return k->n_hopeless == k->n_slots && k->set.grace == 0;",
        "sched/scripts.two_classes"),
    # ---- queue, places, bounds ----
    Sabotage(
        "everything goes to the first worker", "lib/sched/stream.c",
        "n += k->n_takes == 1 ? send_alone(",
        "n += k->n_takes ? send_alone(",
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
        "sched/scripts.numbers"),
    # ---- kinds of hosts ----
    Sabotage(
        "the look decides on TIMEOUT, not the end", "lib/sched/verdict.h",
        "    if (a->ended_at >= deadline)\n",
        "    if (gpi_now() >= deadline)\n",
        "hosts/ends.host_is_stopped"),
    # ---- workers that are programs ----
    Sabotage(
        "a program that never answers has all of the setup limit's default", "lib/sched/life.c",
        "gpi_time_min(s->start_limit, s->class->set.boot_limit)",
        "gpi_time_add(s->start_limit, s->class->set.boot_limit)",
        "proc/exec_faults.no_workers"),
    # ---- failures in the field, and those of the ancestor ----
    Sabotage(
        "a tenth of a second too late is in time", "lib/sched/verdict.h",
        "    if (a->ended_at >= deadline)\n",
        "    if (a->ended_at >= deadline + 100000000)\n",
        "unit/verdict.table"),
    Sabotage(
        "limits are whole seconds", "lib/sched/verdict.h",
        "gpi_time_add(gpi_time_add(a->started_at, a->limit), a->stopped);",
        "gpi_time_add(gpi_time_add(a->started_at, "
        "(a->limit + 999999999) / 1000000000 * 1000000000), a->stopped);",
        "unit/verdict.table"),
    Sabotage(
        "nobody is told that no slot is left", "lib/sched/sched.c",
        "if (gpi_none_can_run(k) && (k->queue.count || k->deferred || k->n_own))",
        "if (!gpi_none_can_run(k) && k->n_slots == 0)",
        "sched/scripts.no_worker"),
    Sabotage(
        "the kill comes 15 ms late", "lib/sched/limits.c",
        "gpi_time_add(gpi_time_min(s->soft[cell], cancelled), s->class->set.grace);",
        "gpi_time_add(gpi_time_min(s->soft[cell], cancelled), s->class->set.grace + 15 * GPI_MS);",
        "proc/field.killed_in_time"),
    Sabotage(
        "setup has no limit", "lib/sched/life.c",
        "    s->start_limit = s->class->set.setup_limit;\n",
        "    s->start_limit = GPI_NEVER / 2;\n",
        "sched/scripts.setup_limit"),
    # ---- devices in a dispatcher ----
    Sabotage(
        "a worker that is spared at its limit stays on a device that has failed",
        "lib/sched/slot.c",
        "[GPI_IN_KILL] = kill_now,",
        "[GPI_IN_KILL] = nothing,",
        "sched/scripts.fence_while_doomed"),
    Sabotage(
        "a device that is lost gets workers", "lib/sched/device.c",
        "return out || gpi_devices_are(c, s, GPI_MAY_DEAD) || ",
        "return out || ",
        "sched/scripts.no_worker"),
    Sabotage(
        "a slot that leaves takes tasks", "lib/sched/spread.c",
        "    return s->life == GPI_LIFE_UP && !s->still &&",
        "    return (s->life == GPI_LIFE_UP || s->life == GPI_LIFE_LEAVE) && !s->still &&",
        "sched/worlds.oracles"),
    Sabotage(
        "a successor does not wait for its device's memory", "lib/sched/life.c",
        "    s->owed = true;\n",
        "    s->owed = false;\n",
        "sched/scripts.memory"),
    # ---- states of a slot, and their deadlines ----
    Sabotage(
        "a keeper that is asked for is waited for at the end", "lib/sched/slot.c",
        "[GPI_IN_TIMER] = gpi_life_pay, [GPI_IN_UNPROVED] = unproved,\n"
        "                        [GPI_IN_WIND_DOWN] = stop, [GPI_IN_EVICT]",
        "[GPI_IN_TIMER] = gpi_life_pay, [GPI_IN_UNPROVED] = unproved,\n"
        "                        [GPI_IN_WIND_DOWN] = nothing, [GPI_IN_EVICT]",
        "sched/scripts.close_during_setup"),
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
        "sched/worlds.oracles"),
    Sabotage(
        "a removed slot fails without a keeper", "lib/sched/slot.c",
        "[GPI_LIFE_REMOVED] = { [GPI_EV_WANT] = want, [GPI_EV_KEEPER_NO] = nothing,",
        "[GPI_LIFE_REMOVED] = { [GPI_EV_WANT] = want, [GPI_EV_KEEPER_NO] = gpi_end_unmade,",
        "sched/scripts.removed_unmade"),
    Sabotage(
        "a start that fails on a drained device is not told", "lib/sched/slot_end.c",
        "const bool wanted = refused ||",
        "const bool wanted = (refused && !s->why) ||",
        "sched/scripts.leave_during_setup"),
    # ---- outcomes, states and orders that a script shows ----
    Sabotage(
        "the close limit spares a doomed worker", "lib/sched/slot.c",
        "[GPI_IN_KILL_ALL] = kill_now },",
        "[GPI_IN_KILL_ALL] = nothing },",
        "sched/scripts.close_limit_while_doomed"),
    Sabotage(
        "the close limit kills a dying worker", "lib/sched/slot.c",
        "[GPI_IN_TIMER] = give_up, [GPI_IN_KILL_ALL] = nothing\n",
        "[GPI_IN_TIMER] = give_up, [GPI_IN_KILL_ALL] = kill_for_close\n",
        "sched/scripts.close_limit_during_sweep"),
    Sabotage(
        "a device kills a dying worker", "lib/sched/slot.c",
        "[GPI_IN_KILL] = nothing, [GPI_IN_LEAVE] = nothing, [GPI_IN_CHANGED]",
        "[GPI_IN_KILL] = kill_for_device, [GPI_IN_LEAVE] = nothing, [GPI_IN_CHANGED]",
        "sched/scripts.sweep"),
    Sabotage(
        "a worker that no process can reap is dead", "lib/sched/slot.c",
        "c->spawner_gone && !gpi_devices_watched(c, s))",
        "c->spawner_gone)",
        "sched/scripts.spawner_dies"),
    Sabotage(
        "a host that was stopped gives its workers up", "lib/sched/life.c",
        "    if (!replies || s->extended || c->now",
        "    if (!replies || c->now || s->extended || c->now",
        "sched/scripts.host_stopped"),
    Sabotage(
        "no attempt follows the failure of a device", "lib/sched/retry.c",
        "(causes & GPUD_RETRY_DEVICE)",
        "(causes & GPUD_RETRY_DEVICE) && !attempts",
        "sched/scripts.device_fails"),
    Sabotage(
        "the failure of a device is a crash", "lib/sched/tasks.c",
        "if (device && outcome == GPUD_OUTCOME_CRASHED)",
        "if (device && outcome != GPUD_OUTCOME_CRASHED)",
        "sched/scripts.device_fails"),
    Sabotage(
        "a task that had not begun is charged", "lib/sched/tasks.c",
        "            gpi_record_be_wary(c, t);\n"
        "        gpi_tasks_requeue(c, i);\n",
        "            gpi_record_be_wary(c, t);\n"
        "        gpi_tasks_finish(c, i, GPUD_OUTCOME_CRASHED, GPUD_PHASE_PROCESS, GPI_WHY_NO);\n",
        "sched/scripts.device_fails"),
    Sabotage(
        "deaths in a row make no device suspect", "lib/sched/restart.c",
        "TASK_DEATHS_SUSPECT 8 ",
        "TASK_DEATHS_SUSPECT 80 ",
        "sched/scripts.task_deaths"),
    Sabotage(
        "the device of a survivor is not judged", "lib/sched/slot_end.c",
        "    gpi_life_judge(c, s, GPI_JUDGE_SURVIVED);\n",
        "",
        "sched/scripts.survivor"),
    Sabotage(
        "a task that has started expires", "lib/sched/tasks.c",
        "    if (wish >= GPI_WISH_SOFT)\n"
        "        tell(c, s, t->cell, wish == GPI_WISH_HARD);",
        "    if (wish >= GPI_WISH_EXPIRE)\n"
        "        tell(c, s, t->cell, wish != GPI_WISH_SOFT);",
        "sched/scripts.expires_started"),
    Sabotage(
        "no hard cancel follows a soft one", "lib/sched/tasks.c",
        "if (s->cancelled & bit || (s->told & bit && !hard))",
        "if (s->told & bit)",
        "sched/scripts.cancel"),
    Sabotage(
        "a close RUNNING ends no queued task", "lib/sched/close.c",
        "    if (how == GPI_CLOSE_ALL)\n"
        "        return;\n"
        "    for (uint32_t i = 0; i < c->n_classes; i++)\n        gpi_tasks_end",
        "    if (how <= GPI_CLOSE_RUNNING)\n"
        "        return;\n"
        "    for (uint32_t i = 0; i < c->n_classes; i++)\n        gpi_tasks_end",
        "sched/scripts.close_starts_nothing"),
    Sabotage(
        "a close NOW cancels no running task", "lib/sched/sched.c",
        "if (c->closing && c->how == GPI_CLOSE_NOW && ",
        "if (!c->closing && c->how == GPI_CLOSE_NOW && ",
        "sched/scripts.close_now"),
    Sabotage(
        "a later close cannot ask for more haste", "lib/sched/close.c",
        "if (c->closing && how <= c->how)",
        "if (c->closing)",
        "sched/scripts.close_limit"),
    Sabotage(
        "the close limit waits for a running task", "lib/sched/slot.c",
        "    hold(c, s);\n"
        "    gpi_life_kill(c, s, GPI_WHY_CLOSE);\n",
        "    if (!s->sent)\n"
        "        gpi_life_kill(c, s, GPI_WHY_CLOSE);\n",
        "sched/scripts.close_limit"),
    Sabotage(
        "the turn of a setup ends at the kill of its worker", "lib/sched/life.c",
        " ||\n"
        "           (gpi_slot_is_dying(s) && s->part == GPI_PART_SETUP);",
        ";",
        "sched/scripts.turns"),
    Sabotage(
        "a kill for one cancel is everybody's", "lib/sched/tasks.c",
        "if ((ladder && asked) || s->why",
        "if (ladder || s->why",
        "sched/scripts.batch_kill"),
    Sabotage(
        "a success ends no row of failures", "lib/sched/stream.c",
        "gpi_restart_good(s->restart);",
        "(void)s;",
        "sched/scripts.success_between"),
    # ---- external work ----
    Sabotage(
        "a crash before the device failed is its failure", "lib/sched/external.c",
        "how == GPI_ENDED_CRASHED && at >= l->killed_at;",
        "how == GPI_ENDED_CRASHED && l->is_killed;",
        "sched/scripts.external_verdicts"),
    Sabotage(
        "an error before a soft cancel counts as cancelled", "lib/sched/external.c",
        "if (at >= l->asked_at && how",
        "if (l->asked_at != GPI_NEVER && how",
        "sched/scripts.external_verdicts"),
    Sabotage(
        "the time of the report decides on external work", "lib/sched/external.c",
        "judge(l, how, at);",
        "judge(l, how, c->now);",
        "sched/scripts.external_verdicts"),
    Sabotage(
        "external work that succeeds late is in time", "lib/sched/external.c",
        "if (at >= soft_at(l))",
        "if (at >= soft_at(l) && how != GPI_ENDED_SUCCESS)",
        "sched/worlds.oracles"),
    Sabotage(
        "the limit of external work counts from the report of its start", "lib/sched/external.c",
        "l->limit_at = gpi_time_add(at, ",
        "l->limit_at = gpi_time_add(c->now, ",
        "sched/worlds.oracles"),
    Sabotage(
        "the grace of external work counts from the REVOKE", "lib/sched/external.c",
        "gpi_time_add(at, settings_of(c, l)->grace));",
        "gpi_time_add(c->now, settings_of(c, l)->grace));",
        "sched/worlds.oracles"),
    Sabotage(
        "late progress revives external work", "lib/sched/external.c",
        "l->is_late || soft_at(l) <= c->now)",
        "l->is_late)",
        "sched/scripts.external_grants"),
    Sabotage(
        "external work is cancelled hard twice", "lib/sched/external.c",
        "    if (l->cancel_at != GPI_NEVER)\n        return;\n",
        "",
        "sched/scripts.external_grants"),
    Sabotage(
        "a declined grant counts as one in vain", "lib/sched/external.c",
        "    c->external.task[task].in_vain = 0;\n    give_back(c, l);\n",
        "    give_back(c, l);\n",
        "sched/scripts.external_grants"),
    Sabotage(
        "an attempt ends no row of grants in vain", "lib/sched/external.c",
        "    c->external.task[task].in_vain = 0;\n    c->task[task].expires = false;\n",
        "    c->task[task].expires = false;\n",
        "sched/scripts.external_grants"),
    Sabotage(
        "the plan does not know by when adopted work ends", "lib/sched/external.c",
        "gpi_time_add(gpi_time_add(l->limit_at, set->grace), kill_limit(c, l)));",
        "gpi_time_add(gpi_time_add(GPI_NEVER, set->grace), kill_limit(c, l)));",
        "sched/scripts.external_promise"),
    Sabotage(
        "an adoption renews no promise", "lib/sched/grant.c",
        "    unsettle(p, r);\n    return run;\n",
        "    return run;\n",
        "sched/scripts.external_promise"),
    Sabotage(
        "a declined task does not expire any more", "lib/sched/external.c",
        "        gpi_heap_set(&c->expiries, l->task, l->expires);\n",
        "        c->task[l->task].expires = false;\n",
        "sched/scripts.external_grants"),
    Sabotage(
        "a fourth grant in vain", "lib/sched/external.c",
        "#define IN_VAIN_MOST 3u",
        "#define IN_VAIN_MOST 4u",
        "sched/scripts.external"),
    Sabotage(
        "a grant stays on a device that is paused", "lib/sched/external.c",
        "is_out || v->paused || v->draining",
        "is_out || v->draining",
        "sched/scripts.external_grants"),
    Sabotage(
        "a pause takes the grants of every class", "lib/sched/external.c",
        "if (l->state == GPI_LEASE_GRANTED && &c->class[c->task[l->task].class] == k)",
        "if (l->state == GPI_LEASE_GRANTED && k)",
        "sched/scripts.external_grants"),
    Sabotage(
        "the devices of work that is given up are free", "lib/sched/external.c",
        "    gpi_plan_ends_by(c->plan, c->now, gpi_own_number(c, l->task), GPI_NEVER);\n",
        "    gpi_plan_end(c->plan, c->now, gpi_own_number(c, l->task), false, 0, 0);\n",
        "sched/scripts.external_promise"),
    Sabotage(
        "work that is given up is no attempt", "lib/sched/external.c",
        "    c->task[l->task].attempts++;\n",
        "",
        "sched/scripts.external"),
    Sabotage(
        "adopted work goes on on a device that is out of use", "lib/sched/external.c",
        "    if (is_out)\n        harden",
        "    if (is_out && a->given_up)\n        harden",
        "sched/scripts.external_adopt"),
    Sabotage(
        "the close limit spares external work", "lib/sched/sched.c",
        "    gpi_external_kill_all(c);\n",
        "",
        "sched/scripts.external_adopt"),
    Sabotage(
        "a drained device waits for work that a close left", "lib/sched/external.c",
        "    l->state = GPI_LEASE_LEFT;\n    arm(c, l);\n    note_end(c, l);\n",
        "    l->state = GPI_LEASE_LEFT;\n    arm(c, l);\n",
        "sched/scripts.external_leave"),
    Sabotage(
        "a device is drained beside external work", "lib/sched/device.c",
        " && !has_lease(c, device))",
        ")",
        "sched/scripts.external_leave"),
    Sabotage(
        "the end of external work lets no idle worker go", "lib/sched/grant.c",
        "    if (p->has_workers)\n        gpi_shape_evict_again(p);\n}\n",
        "}\n",
        "sched/scripts.pool_external"),
    Sabotage(
        "adopted work shuts its device", "lib/sched/memory.c",
        "return d->n_shut;",
        "return d->alone && d->n_firm;",
        "sched/scripts.pool_adopted"),
    Sabotage(
        "a promise beside external work knows the shortest kill limit", "lib/sched/pool.c",
        "                                     gpi_devices_longest_kill(c));\n",
        "                                     c->set.kill_limit);\n",
        "sched/scripts.external_kill_limit"),
]
