# SPDX-License-Identifier: MIT
"""Edges B: workers of an adversary, and the machine under them."""

from ..entry import Sabotage

SABOTAGES = [
    Sabotage(
        "edges B4: a stopped keeper that was to start a worker is waited for", "lib/host/slot.c",
        "    gpi_keeper_expect(d, s, gpi_kill_limit(d, s)); /* it replies",
        "    s->keeper_at = GPI_NEVER; /* it replies",
        "proc/stopped_keepers.stopped_keeper_is_to_start"),
    Sabotage(
        "edges B4: the end of a worker is awaited from its stopped keeper", "lib/host/keeper.c",
        "    s->ended = true;\n    gpi_hear_slot(",
        "    gpi_hear_slot(",
        "proc/stopped_keepers.worker_dies_under_a_stopped_keeper"),
    Sabotage(
        "edges B4: destroy waits for the keeper of a worker that has ended", "lib/host/keeper.c",
        "    s->ended = true;\n    gpi_hear_slot(",
        "    gpi_hear_slot(",
        "proc/stopped_keepers.destroy_with_a_stopped_keeper"),
    Sabotage(
        "edges B4: destroy waits for a stopped keeper", "lib/host/destroy.c",
        "        gpi_keepers_drop(d);\n",
        "        (void)d->now;\n",
        "proc/stopped_keepers.destroy_with_a_stopped_keeper_alone"),
    Sabotage(
        "edges B4: a worker that died by itself counts as killed at its limit", "lib/host/stops.c",
        "return s->ended && s->ch.keeper >= 0 &&",
        "return !s->ended && s->ch.keeper >= 0 &&",
        "proc/r_limits.death_before_the_ordered_kill"),
    Sabotage(
        "edges B4: the host looks at a stopped worker's limits again and again",
        "lib/sched/limits.c",
        "s->still ? next_cancel(s)",
        "s->leaving ? next_cancel(s)",
        "proc/stopped.nobody_wakes_for_a_stopped_worker"),
    Sabotage(
        "edges B4: a limit is forgotten while its worker is stopped", "lib/sched/life.c",
        "    gpi_limits_expect(c, s, c->now); /* anew",
        "    if (still)\n        gpi_limits_expect(c, s, c->now); /* anew",
        "sched/scripts.stopped"),
    Sabotage(
        "edges B5: nobody ends a worker that stops itself", "lib/keeper/keeper.c",
        "        if (!k.ending)\n            on_stop_step(&k);\n",
        "",
        "proc/stopped.stops_itself"),
    Sabotage(
        "edges B5: a stop in setup is told as a crash", "lib/host/death.c",
        "    if (why == GPI_WHY_STOPPED) {\n",
        "    if (why == GPI_WHY_CLOSE) {\n",
        "proc/stopped.stops_itself_in_setup"),
    Sabotage(
        "edges B5: a stop in cleanup is told as another limit", "lib/host/death.c",
        "    if (why == GPI_WHY_STOPPED)\n",
        "    if (why == GPI_WHY_CLOSE)\n",
        "proc/stopped.stops_itself_in_cleanup"),
    Sabotage(
        "edges B5: an idle worker's stop is a failure of its slot", "lib/sched/slot_end.c",
        "if (why != GPI_WHY_NO && why != GPI_WHY_PROTOCOL)",
        "if (why != GPI_WHY_NO && why != GPI_WHY_PROTOCOL && why != GPI_WHY_STOPPED)",
        "proc/stopped.idle_worker"),
    Sabotage(
        "edges B5: of a batch only one was stopped", "lib/sched/limits.c",
        "    s->doomed = s->cells & ~s->cancelled;\n",
        "    s->doomed = s->cells & -s->cells;\n",
        "sched/scripts.stopped"),
    Sabotage(
        "edges B5: a continue does not end the count", "lib/keeper/stops.c",
        "    s->counted = 0;\n",
        "",
        "proc/stopped.continued_in_time"),
    Sabotage(
        "edges B5: a step counts however late it comes", "lib/keeper/stops.c",
        "!counts || passed > LATE_NS",
        "!counts",
        "unit/stops.steps"),
    Sabotage(
        "edges B5: a late step counts for all the time since", "lib/keeper/stops.c",
        "        s->counted += gpi_time_min(passed, step_length(s));\n",
        "        s->counted += passed;\n",
        "unit/stops.steps"),
    Sabotage(
        "edges B5: the keeper's own stop counts", "lib/keeper/stops.c",
        "    s->idle = !counts || passed > LATE_NS;\n    if (!s->idle)\n"
        "        s->counted += gpi_time_min(passed, step_length(s));\n",
        "    s->idle = !counts;\n    if (counts)\n        s->counted += passed;\n",
        "proc/stopped.worker_and_keeper_are_suspended"),
    Sabotage(
        "edges B5: time during which the host is stopped counts", "lib/keeper/keeper.c",
        "           host != 'T' && host != 't';",
        "           host != 'X';",
        "proc/stopped.worker_and_host_are_suspended"),
    Sabotage(
        "edges B5: time under a debugger counts", "lib/keeper/keeper.c",
        "(worker == 'T' || worker == 'Z' /* its first thread */ || !worker)",
        "worker != 'X'",
        "proc/stopped.stopped_and_debugged"),
    Sabotage(
        "edges B5: what a stopped worker has not begun stays there", "lib/sched/life.c",
        "    if (still)\n        gpi_ring_order(c, s, GPI_ACT_HOLD);\n",
        "",
        "sched/scripts.stopped"),
    Sabotage(
        "edges B5: a stopped worker is sent tasks", "lib/sched/spread.c",
        "    return s->life == GPI_LIFE_UP && !s->still &&",
        "    return s->life == GPI_LIFE_UP &&",
        "sched/scripts.stopped"),
    Sabotage(
        "edges B5: a worker that goes on gets no task", "lib/sched/life.c",
        "    s->still = still;\n",
        "    s->still |= still;\n",
        "sched/scripts.stopped"),
    Sabotage(
        "edges B5: words about stops pile up while nobody reads", "lib/keeper/stops.c",
        "    return s->said == GPI_STOPS_AWAITED ? say_continued(s) : 0;\n",
        "    return say_continued(s);\n",
        "unit/stops.words"),
    Sabotage(
        "edges B3: a refused call is not named", "lib/base/failure.c",
        "gpi_refusal_text(why, gpi_refused_call(sys_errno), sys_errno)",
        "gpi_refusal_text(why, GPI_SYS_NONE, sys_errno)",
        "proc/denied.calls_are_named"),
    Sabotage(
        "edges B3: gpud_init does not wait for the spawner's reply", "lib/api/init.c",
        "? gpi_process_hear(p, NULL, e)",
        "? 0",
        "proc/denied.calls_are_named"),
    Sabotage(
        "edges B3: a system that answers EPERM to pidfd_open is refused", "lib/os/process.c",
        "return sys_errno == ENOSYS || sys_errno == EPERM;",
        "return sys_errno == ENOSYS;",
        "proc/denied.calls_are_named"),
    Sabotage(
        "edges B3: a keeper that cannot start says nothing", "lib/host/keeper.c",
        "        s->unfit = *c;\n",
        "",
        "proc/denied.calls_are_named_of_programs"),
    Sabotage(
        "edges B3: a worker without a timer has its exit status alone", "lib/worker/worker.c",
        "        gpi_page_setup_failed(plan->page, GPUD_ESYSTEM,\n",
        "        (void)(GPUD_ESYSTEM,\n",
        "proc/denied.calls_are_named_of_programs"),
    Sabotage(
        "edges B3: an executed spawner replies before it has tried its calls",
        "lib/keeper/spawner.c",
        "    if (rehearse(&s))\n",
        "    if (plan->host_fd < 0 && rehearse(&s))\n",
        "proc/denied.calls_are_named_without_init"),
    Sabotage(
        "edges B3: why a worker left is not read", "lib/host/texts.c",
        "if (kind == GPUD_EXIT_CODE && *why)",
        "if (kind == GPUD_EXIT_CODE && *why && s->gone)",
        "proc/denied.worker_says_why_it_left"),
    Sabotage(
        "edges B3: why a spawner left is not read", "lib/host/keeper.c",
        "        d->spawner.error = c->sys_errno;\n",
        "",
        "proc/denied.spawner_says_why_it_left"),
    Sabotage(
        "edges B3: create counts one descriptor less for each slot", "lib/host/files.c",
        "#define FILES_SLOT 8u",
        "#define FILES_SLOT 7u",
        "proc/denied.descriptors_needed"),
    Sabotage(
        "edges B3: create does not look whether descriptors are left", "lib/host/files.c",
        "    if (left >= need)\n",
        "    if (left >= need || limit)\n",
        "proc/denied.descriptors_needed"),
    Sabotage(
        "edges B2: a spoilt claim word makes each task one that has begun", "lib/host/running.c",
        "most = gpi_slot_class(d, s)->set.max_batch;",
        "most = GPI_CELLS;",
        "proc/spoilt_page.one_task_is_charged"),
    Sabotage(
        "edges B2: a batch is one task", "lib/host/running.c",
        "most = gpi_slot_class(d, s)->set.max_batch;",
        "most = 1;",
        "proc/spoilt_page.members_are_charged"),
    Sabotage(
        "edges B2: the first claim is not told", "lib/worker/worker.c",
        "    gpi_worker_note_claim(w);\n",
        "",
        "proc/spoilt_page.one_task_is_charged"),
    Sabotage(
        "edges B2: a worker that never claimed has begun the first", "lib/host/charge.c",
        "return s->claimed || believed ? begun : 0;",
        "return begun;",
        "proc/spoilt_page.nothing_was_claimed"),
    Sabotage(
        "edges B2: what a spoiler of pages gets is as many attempts as any", "lib/sched/tasks.c",
        "!cancelled && !(t->spoilt && spoils) &&",
        "!cancelled &&",
        "sched/scripts.liar"),
    Sabotage(
        "edges B2: one that dies before its page is looked at broke no protocol",
        "lib/sched/slot_end.c",
        "    if (why == GPI_WHY_NO && exited & GPI_EXITED_SPOILT)\n"
        "        why = GPI_WHY_PROTOCOL;\n",
        "",
        "sched/scripts.liar"),
    Sabotage(
        "edges B2: others stand before the spoiler again", "lib/sched/spread.c",
        "    if (c->wary)\n",
        "    if (c->wary == UINT32_MAX)\n",
        "proc/spoilt_page.ends_are_wiped_out"),
    Sabotage(
        "edges B2: one given back starts though it was cancelled", "lib/sched/tasks.c",
        "    if (cancelled) {\n",
        "    if (cancelled && !spoilt) {\n",
        "sched/scripts.wary"),
    Sabotage(
        "edges B2: a claim that cannot be is waited for", "lib/host/completions.c",
        "claim != gpi_claim_word(n, GPI_CLAIMED)) {",
        "claim == 1) {",
        "proc/spoilt_page.claims_are_spoilt"),
    Sabotage(
        "edges B7: READY after a kill clears its limit", "lib/sched/slot.c",
        "    gpi_life_setup_over(c, s);\n",
        "    gpi_life_setup_over(c, s);\n    if (s->life == GPI_LIFE_KILL)\n"
        "        gpi_life_wait_until(c, s, GPI_NEVER);\n",
        "sched/scripts.ready_after_kill"),
    Sabotage(
        "edges B7: READY after the keeper's death clears the limit", "lib/sched/slot.c",
        "    gpi_life_setup_over(c, s);\n",
        "    gpi_life_setup_over(c, s);\n    if (s->life == GPI_LIFE_LOST)\n"
        "        gpi_life_wait_until(c, s, GPI_NEVER);\n",
        "sched/worlds.oracles"),
    Sabotage(
        "edges B7: READY during the sweep clears the limit", "lib/sched/slot.c",
        "    gpi_life_setup_over(c, s);\n",
        "    gpi_life_setup_over(c, s);\n    if (s->life == GPI_LIFE_SWEEP)\n"
        "        gpi_life_wait_until(c, s, GPI_NEVER);\n",
        "sched/worlds.oracles"),
    Sabotage(
        "edges B7: a setup killed at its limit may be ready", "lib/sched/slot.c",
        "if (s->part != GPI_PART_SETUP || s->why == GPI_WHY_SETUP)",
        "if (s->part != GPI_PART_SETUP)",
        "sched/scripts.setup_limit"),
    Sabotage(
        "edges B1: the end of a traced worker is not noticed", "lib/keeper/keeper.c",
        "if (!k.ending && p[4].revents && k.phase == RUNNING)",
        "if (!k.ending && p[4].revents && k.phase == EMPTY)",
        "proc/traced.crash_with_a_tracing_child"),
    Sabotage(
        "edges B1: only children are killed, not what traces them", "lib/keeper/keeper.c",
        "    gpi_sweep_tracers(NULL, 0);\n",
        "",
        "proc/traced.traced_child_is_swept"),
    Sabotage(
        "edges B1: what a dead keeper left stays held", "lib/keeper/spawner.c",
        "    left = sweep_remains(s, gpi_lookout_due(&s->look));",
        "    left = sweep_remains(s, gpi_lookout_due(&s->look) && !s);",
        "proc/traced.keeper_dies_with_a_traced_worker"),
    Sabotage(
        "edges B1: a debugger is killed, too", "lib/os/children.c",
        "tracer == t->self || !descends(t->self, tracer)",
        "tracer == t->self",
        "proc/traced.crash_under_a_debugger"),
    Sabotage(
        "edges B6: a denied pidfd is the end of it", "lib/os/process.c",
        "    if (pidfd >= 0 && errno == ESRCH)\n",
        "    if (pidfd >= 0)\n",
        "proc/denied_kill.pidfd_denied"),
    Sabotage(
        "edges B6: a denied kill leaves what a worker had started", "lib/os/process.c",
        "    if (fd < 0 || send_signal(fd, SIGKILL))\n",
        "    if (fd < 0 || true)\n",
        "proc/denied_kill.kill_denied"),
    Sabotage(
        "edges B6: a keeper stays that can kill in no way", "lib/keeper/keeper.c",
        "    if (denied == GPI_WAYS)\n        _exit(72);\n",
        "",
        "proc/denied_kill.both_signals_denied"),
    Sabotage(
        "edges B6: the calls that failed are not named", "lib/host/texts.c",
        "    if (!s->denied || n < 0 ||",
        "    if (s->denied || n < 0 ||",
        "proc/denied_kill.all_ways_denied"),
    Sabotage(
        "edges B4: a keeper that was told to end is never late", "lib/host/keeper.c",
        "    gpi_keeper_look(d, s); /* a stopped keeper",
        "    /* a stopped keeper",
        "proc/stopped_keepers.device_comes_back"),
    Sabotage(
        "edges B4: destroy leaves a stopped keeper that has a worker", "lib/host/stops.c",
        "        if (!s->keeper_dropped && is_stopped(s))",
        "        if (!gpi_slot_has_worker(d, s) && !s->keeper_dropped && is_stopped(s))",
        "proc/stopped_keepers.destroy_ends_the_worker"),
    Sabotage(
        "edges B4: destroy waits for a start that no keeper reads", "lib/host/slot.c",
        "    if (!s->pid)\n        (void)gpi_keeper_hangs(d, s);",
        "    if (s->gone)\n        (void)gpi_keeper_hangs(d, s);",
        "proc/stopped_keepers.destroy_during_a_start"),
    Sabotage(
        "edges B4: a cleanup whose end was not told has failed", "lib/worker/worker.c",
        "    atomic_store(&plan->page->cleanup_done, 1);\n",
        "",
        "proc/stopped_keepers.cleanup_under_a_stopped_keeper"),
    Sabotage(
        "edges B6: a stopped keeper is killed by kill(2) alone", "lib/keeper/spawner.c",
        "            (void)gpi_process_kill(k->pid, -1);\n    }\n}\n",
        "            kill(k->pid, SIGKILL);\n    }\n}\n",
        "proc/denied_kill.stopped_keeper_kill_denied"),
    Sabotage(
        "edges B6: a stopped worker's text has no calls", "lib/host/charge.c",
        "s->last.kind == GPUD_EXIT_NONE || s->denied;",
        "s->last.kind == GPUD_EXIT_NONE;",
        "proc/denied_kill.stopped_with_both_signals_denied"),
    Sabotage(
        "edges B5: a step that counts as none is followed at once", "lib/keeper/stops.c",
        "    s->idle = !counts || passed > LATE_NS;\n    if (!s->idle)\n",
        "    s->idle = false;\n    if (counts && passed <= LATE_NS)\n",
        "unit/stops.looks_rarely_while_nothing_counts"),
    # ---- found by an adversary in the mends ----
    Sabotage(
        "edges: a worker is made anew after close while a source blocks", "lib/sched/close.c",
        "    return !gpi_classes_wait(c); /*",
        "    return !gpi_classes_wait(c) && !c->feeding; /*",
        "sched/worlds.oracles"),
    Sabotage(
        "edges: a cancel of one that has ended interrupts the next", "lib/host/slot.c",
        "    if (gpi_slot_running(d, s) & bit) /*",
        "    if (s->incarnation) /*",
        "proc/cancel.of_one_that_has_ended"),
    Sabotage(
        "edges: a cleanup killed at the close limit names cleanup_limit", "lib/host/death.c",
        "    else if (d->close.at <= d->now)\n",
        "    else if (d->close.at < d->now / 2)\n",
        "proc/setup.cleanup_at_the_close_limit"),
    Sabotage(
        "edges: a short backoff_cap switches failures_in_a_row off", "lib/sched/slot_end.c",
        "lived >= s->class->set.restart.cap && lived >= WELL_NS",
        "lived >= s->class->set.restart.cap",
        "sched/worlds.oracles"),
    Sabotage(
        "edges: no slots at all have all failed", "lib/host/reasons.c",
        "    else if (slots && failed == slots)\n",
        "    else if (failed == slots)\n",
        "proc/roster.remove_the_last_one"),
    Sabotage(
        "edges: a record may end in the middle of a field", "lib/base/versioned.c",
        "    return given >= least && given <= MOST && given % sizeof(uint64_t) == 0;\n",
        "    return given >= least && given <= MOST;\n",
        "proc/reasons.submit_descriptions"),
    Sabotage(
        "edges: the time of a task that expired as it was claimed is lost", "lib/host/submit.c",
        "d->expires[i] = expires;",
        "d->expires[i] = d->now ? expires + 1000000 : expires;",
        "proc/expires.number_in_the_text"),
]
