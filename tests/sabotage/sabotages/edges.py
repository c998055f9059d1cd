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
        "edges A1: destroy waits for room that nobody makes", "lib/host/collect.c",
        "again || d->ending ? !drop_result(",
        "again ? !drop_result(",
        "proc/close.destroy_needs_no_room_for_results"),
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
        "edges A2: one record to spare for what a source gives at the end", "lib/host/create.c",
        "GPI_EVENTS_MAX + GPI_FED_AT_ONCE;",
        "GPI_EVENTS_MAX + 1;",
        "proc/run.pulled_when_nothing_starts"),
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
        "edges A2: records of a source lie as the library knows them", "lib/host/desc.c",
        "    const char *at = (const char *)o->tasks + i * o->stride;\n",
        "    const char *at = (const char *)o->tasks + i * sizeof(struct gpud_task_desc);\n",
        "abi/old.run"),
    Sabotage(
        "edges A3: an option's number of seconds is taken for nanoseconds", "lib/api/options.c",
        "(time >= SHORTEST_NS && time <= LONGEST_NS)",
        "(time > GPUD_AT_ONCE && time <= LONGEST_NS)",
        "proc/times.options_refuse_another_unit"),
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
        "edges A5: the end of a task is taken before its output is read", "lib/host/collect.c",
        "            gpi_output_look(d, s);\n",
        "            last = s->number;\n",
        "proc/output.end_found_without_a_bell"),
    Sabotage(
        "edges A5: the output of earlier tasks is a task's own", "lib/host/output.c",
        "        s->out.start[cell].from = s->out.read;\n",
        "        s->out.start[cell].from = 0;\n",
        "proc/output.earlier_tasks_are_before"),
    Sabotage(
        "edges A5: a silent worker is read from", "lib/host/output.c",
        "    if (poll(p, sizeof p / sizeof *p, 0) <= 0)\n        return;\n    if (p[0].revents)\n",
        "    if (poll(p, sizeof p / sizeof *p, 0) >= 0)\n",
        "proc/output.silence_costs_nothing"),
    Sabotage(
        "edges A6: an ERROR by return value has an empty text", "lib/host/words.c",
        "    if ((!expired && t->outcome != GPUD_OUTCOME_ERROR) || has_words(t))\n",
        "    if (!expired || has_words(t))\n",
        "proc/words.returned_values"),
    Sabotage(
        "edges A7: with sent_ahead = 1 a task is sent ahead all the same", "lib/host/dispatch.c",
        "n = d->set.sent_ahead ? d->set.sent_ahead : gpi_place_depth",
        "n = d->set.sent_ahead > 1 ? d->set.sent_ahead : gpi_place_depth",
        "proc/order.strict_with_one_sent_ahead"),
    Sabotage(
        "edges A8: a thread that waits for ready workers is not called", "lib/host/slot.c",
        "    gpi_ready_changed(d);\n",
        "",
        "proc/ready.beside_poll"),
    Sabotage(
        "edges A8: a drained worker that still runs a task counts as one that can be ready", "lib/host/ready.c",
        "gpi_slot_settled(s) || gpi_slot_drains(d, s)",
        "gpi_slot_settled(s)",
        "proc/ready.drained_while_busy"),
    Sabotage(
        "edges A8: blanks behind an entry of a device list belong to it", "lib/device/list.c",
        "        to--;\n",
        "        break;\n",
        "unit/devices.blanks"),
    Sabotage(
        "edges A8: create takes a plugin that is no ELF file", "lib/api/lookup.c",
        "    if (n < SELFMAG || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)\n        return \"is no ELF file\";\n",
        "",
        "proc/exec_faults.plugin_is_no_object"),
    Sabotage(
        "edges A8: the line of an event is cut inside a character", "lib/api/format.c",
        "        at--;\n",
        "        break;\n",
        "unit/format.cut_at_every_size"),
    Sabotage(
        "edges A9: a soft cancel kills", "lib/host/slot.c",
        "    if (how == GPUD_CANCEL_HARD) {\n",
        "    if (how <= GPUD_CANCEL_HARD) {\n",
        "proc/cancel.soft"),
    Sabotage(
        "edges A9: what was cancelled softly is tried again", "lib/host/collect.c",
        "    const bool told = s->told >> cell & 1;\n",
        "    const bool told = s->cancelled >> cell & 1;\n",
        "proc/cancel.soft"),
    Sabotage(
        "edges A10: workers are replaced all at once", "lib/host/renew.c",
        "d->renewing || gpi_nothing_to_come(d) ? NULL",
        "gpi_nothing_to_come(d) ? NULL",
        "proc/renew.one_at_a_time"),
    Sabotage(
        "edges A10: tasks wait for the replacement beside an idle worker", "lib/host/renew.c",
        "    if (most == 0 || d->renewing)\n",
        "    if (most == 0)\n",
        "proc/renew.nothing_waits_while_another_is_idle"),
    Sabotage(
        "edges A10: a worker gets more than its number", "lib/host/renew.c",
        "    return had < most ? (uint32_t)(most - had) : 0;\n",
        "    return had < most ? UINT32_MAX : 0;\n",
        "proc/renew.exact_with_one_slot"),
    Sabotage(
        "edges A10: nobody wakes a worker when room has come back", "lib/host/collect.c",
        "memory_order_release);\n    gpi_result_room(d, s);\n",
        "memory_order_release);\n",
        "proc/result_wait.long_wait"),
    Sabotage(
        "edges A10: a worker waits for room beyond a close", "lib/host/room.c",
        "        atomic_store(&d->slot[i].ch.page->closing, 1);\n",
        "",
        "proc/result_wait.stop_and_close"),
    Sabotage(
        "edges A10: one of several in a call waits for room", "lib/worker/result.c",
        "w->members > 1 || !ever_fits(t, size)",
        "!ever_fits(t, size)",
        "proc/result_wait.batches"),
    Sabotage(
        "edges A10: a wait for what can never fit", "lib/worker/result.c",
        "w->members > 1 || !ever_fits(t, size)",
        "w->members > 1",
        "proc/result_wait.what_never_fits"),
    Sabotage(
        "edges C4: a GPU with the machine's memory cannot be read", "lib/device/nvml_sample.c",
        "gpi_nvml_verdict(&s->call, row->gpu, memory(s, row->handle, ret));",
        "memory(s, row->handle, ret);",
        "proc/monitor_nvml.nvml_memory_of_the_machine"),
    Sabotage(
        "edges C4: a call that is refused judges the GPU", "lib/device/nvml_sample.c",
        "    return decides(code) ? code : call->uuid(gpu, uuid, sizeof(uuid));\n",
        "    (void)uuid;\n    return code;\n",
        "unit/nvml_sample.memory_of_the_machine"),
    Sabotage(
        "edges C4: who has the machine's memory is never found lost", "lib/device/nvml_await.c",
        "gpi_nvml_verdict(&s->call, gpu, s->call.memory(gpu, &memory))",
        "s->call.memory(gpu, &memory)",
        "unit/nvml_await.lost_with_the_memory_of_the_machine"),
    Sabotage(
        "edges C4: NVML is asked for the NUMA node", "lib/device/nvml.c",
        "    d->numa_node = gpi_numa_node(\"\", d->pci);\n",
        "    ((int (*)(void *, uint32_t *))dlsym(dlopen(\"libnvidia-ml.so.1\", RTLD_NOW), \"nvmlDeviceGetNumaNodeId\"))"
        "(handle, &d->numa_node);\n",
        "unit/nvml.node_of_its_own_memory"),
    Sabotage(
        "edges C4: a long PCI domain is cut", "lib/device/numa.c",
        "                   domain, bus, device, function);",
        "                   domain & 0xffff, bus, device, function);",
        "unit/numa.node_beside_a_gpu"),
    Sabotage(
        "edges C6: a monitor clears what a canary would have to", "lib/device/health.c",
        "    if (!spoke && p->looks_only && h->by_xid)\n        return GPI_MEASURE_NONE;\n",
        "",
        "proc/monitor.looker_clears_no_xid"),
    Sabotage(
        "edges C6: workers are processes like any other", "lib/api/monitor.c",
        "    r.worker = gpi_process_is_worker(name);\n",
        "    r.worker = 0;\n",
        "proc/gpus.monitor_knows_workers"),
    Sabotage(
        "edges C6: only one GPU that cannot be opened is named", "lib/device/driver.c",
        "    if (u->n < GPI_UNOPENED_NAMED) {\n",
        "    if (!u->n) {\n",
        "unit/nvml.indices_that_cannot_be_opened"),
    Sabotage(
        "edges C6: gpus ends well where a GPU is lost", "tools/gpudispatch/gpus.c",
        "        if (row_is_out(&l->row[i]))\n",
        "        if (row_is_out(&l->row[i]) && l->driver.lost)\n",
        "tools/gpus.lost_and_reset_are_named"),
    Sabotage(
        "edges C6: gpus ends well where a GPU could not be opened", "tools/gpudispatch/gpus.c",
        "    if (l->driver.lost)\n",
        "    if (l->driver.lost && !l->driver.gpus)\n",
        "tools/gpus.lost_and_reset_are_named"),
    Sabotage(
        "edges C6: heat of a HEALTHY row is not shown", "tools/gpudispatch/gpus.c",
        "        if (row_fact(r, (enum fact)i, text, sizeof text))\n",
        "        if (r->health != GPUD_HEALTH_HEALTHY && row_fact(r, (enum fact)i, text, sizeof text))\n",
        "tools/gpus.facts_of_healthy_rows"),
    Sabotage(
        "edges C6: who else uses a GPU is not listed", "tools/gpudispatch/gpus.c",
        "        if (!u->user[i].worker)\n",
        "        if (u->user[i].worker)\n",
        "tools/gpus.processes"),
    Sabotage(
        "edges C6: the versions do not stand on top", "tools/gpudispatch/gpus.c",
        "    put_versions(&l->driver);\n",
        "    if (!l->n)\n        put_versions(&l->driver);\n",
        "tools/gpus.table"),
    Sabotage(
        "edges C6: doctor --gpu is content with a lost one", "tools/gpudispatch/doctor_devices.c",
        "    if (d->gpu && !usable(&d->look))\n",
        "    if (d->gpu && !usable(&d->look) && !d->look.n)\n",
        "tools/doctor.gpu_must_be_usable"),
    Sabotage(
        "edges C6: exclusive mode is noted without its effect", "tools/gpudispatch/doctor_devices.c",
        ", so a canary and \"\n                \"a worker exclude each other\");",
        "\");",
        "tools/doctor.each_fault"),
    Sabotage(
        "edges B4: a stopped keeper that was to start a worker is waited for", "lib/host/slot.c",
        "    else if (!s->survivor && (s->started || s->keeper_lost) && gpi_keeper_hangs(d, s))\n"
        "        return;\n",
        "",
        "proc/stopped_keepers.stopped_keeper_is_to_start"),
    Sabotage(
        "edges B4: the end of a worker is awaited from its stopped keeper", "lib/host/stops.c",
        "    s->ended = s->still = true;\n    gpi_keeper_look(d, s);\n",
        "    s->still = true;\n",
        "proc/stopped_keepers.worker_dies_under_a_stopped_keeper"),
    Sabotage(
        "edges B4: destroy waits for the keeper of a worker that has ended", "lib/host/stops.c",
        "    s->ended = s->still = true;\n    gpi_keeper_look(d, s);\n",
        "    s->still = true;\n",
        "proc/stopped_keepers.destroy_with_a_stopped_keeper"),
    Sabotage(
        "edges B4: destroy waits for a stopped keeper", "lib/host/finish.c",
        "        gpi_keepers_drop(d);\n",
        "        (void)d->now;\n",
        "proc/stopped_keepers.destroy_with_a_stopped_keeper_alone"),
    Sabotage(
        "edges B4: a worker that died by itself counts as killed at its limit", "lib/host/stops.c",
        "s->kill == GPI_KILL_HARD && order_unread(s)",
        "s->kill == GPI_KILL_NO && order_unread(s)",
        "proc/r_limits.death_before_the_ordered_kill"),
    Sabotage(
        "edges B4: the host looks at a stopped worker's limits again and again", "lib/host/watch.c",
        "s->still ? next_cancel(d, s, running) : at - early",
        "at - early",
        "proc/stopped.nobody_wakes_for_a_stopped_worker"),
    Sabotage(
        "edges B4: a limit is forgotten while its worker is stopped", "lib/host/stops.c",
        "    s->still = false;\n    s->check_at = d->now;\n",
        "    s->still = false;\n",
        "proc/stopped.limit_after_a_long_stop"),
    Sabotage(
        "edges B5: nobody ends a worker that stops itself", "lib/keeper/keeper.c",
        "        if (!k.ending)\n            on_stop_step(&k);\n",
        "",
        "proc/stopped.stops_itself"),
    Sabotage(
        "edges B5: a stop in setup is told as a crash", "lib/host/death.c",
        "    if (why == GPI_KILL_STOPPED) {\n",
        "    if (why == GPI_KILL_CLOSE) {\n",
        "proc/stopped.stops_itself_in_setup"),
    Sabotage(
        "edges B5: a stop in cleanup is told as another limit", "lib/host/death.c",
        "        if (why == GPI_KILL_STOPPED)\n",
        "        if (why == GPI_KILL_CLOSE)\n",
        "proc/stopped.stops_itself_in_cleanup"),
    Sabotage(
        "edges B5: an idle worker's stop is a failure of its slot", "lib/host/death.c",
        "why == GPI_KILL_DEVICE || why == GPI_KILL_STOPPED)",
        "why == GPI_KILL_DEVICE)",
        "proc/stopped.idle_worker"),
    Sabotage(
        "edges B5: of a batch only one was stopped", "lib/host/stops.c",
        "    s->late = gpi_slot_running(d, s) & ~s->cancelled;\n",
        "    s->late = 1ull << gpi_slot_first(d, s);\n",
        "proc/stopped.a_batch_stops_itself"),
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
        "edges B5: what a stopped worker has not begun stays there", "lib/host/stops.c",
        "    d->count.recalled += gpi_recall_all(d, s);\n",
        "",
        "proc/stopped.stopped_before_it_began"),
    Sabotage(
        "edges B5: a stopped worker is sent tasks", "lib/host/dispatch.c",
        " && !s->still;",
        ";",
        "proc/stopped.stopped_before_it_began"),
    Sabotage(
        "edges B5: a worker that goes on gets no task", "lib/host/stops.c",
        "    s->still = false;\n    s->check_at = d->now;\n",
        "    s->check_at = d->now;\n",
        "proc/stopped.the_only_worker_is_stopped"),
    Sabotage(
        "edges B5: words about stops pile up while nobody reads", "lib/keeper/stops.c",
        "    return s->said == GPI_STOPS_AWAITED ? say_continued(s) : 0;\n",
        "    return say_continued(s);\n",
        "unit/stops.words"),
    # ---- found by an adversary in the mends above ----
    Sabotage(
        "edges: a worker is made anew after close while a source blocks", "lib/host/death.c",
        "    return d->queue.count == 0; /* what a source still brings does not start */\n",
        "    return d->queue.count == 0 && !d->feeding;\n",
        "proc/run.no_new_worker_beside_a_blocked_source"),
    Sabotage(
        "edges: a cancel of one that has ended interrupts the next", "lib/host/slot.c",
        "    if (gpi_slot_running(d, s) & bit) /*",
        "    if (s->started) /*",
        "proc/cancel.of_one_that_has_ended"),
    Sabotage(
        "edges: a cleanup killed at the close limit names cleanup_limit", "lib/host/death.c",
        "        else if (d->close_at <= d->now)\n",
        "        else if (d->close_at < d->now / 2)\n",
        "proc/setup.cleanup_at_the_close_limit"),
    Sabotage(
        "edges: a short backoff_cap switches failures_in_a_row off", "lib/host/death.c",
        "worked >= d->set.restart.cap && worked >= WELL_NS",
        "worked >= d->set.restart.cap",
        "proc/setup.given_up_without_backoff"),
    Sabotage(
        "edges: no slots at all have all failed", "lib/host/death.c",
        "    else if (failed == slots && slots)\n",
        "    else if (failed == slots)\n",
        "proc/roster.remove_the_last_one"),
    Sabotage(
        "edges: a record may end in the middle of a field", "lib/base/versioned.c",
        "    return given >= least && given <= MOST && given % sizeof(uint64_t) == 0;\n",
        "    return given >= least && given <= MOST;\n",
        "proc/reasons.submit_descriptions"),
    Sabotage(
        "edges: the time of a task that expired as it was claimed is lost", "lib/host/defer.c",
        "    d->expires[i] = expires;\n",
        "    d->expires[i] = d->now ? expires + 1000000 : expires;\n",
        "proc/expires.number_in_the_text"),
    Sabotage(
        "edges A2: run does not hear that it waits for nothing", "lib/host/tasks.c",
        "d->went_away != away &&",
        "d->went_away == away &&",
        "proc/r_intake.run_ends_beside_an_awaited_copy"),
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
        "edges B3: a keeper that cannot start says nothing", "lib/host/channel.c",
        "        s->unfit = *c;\n",
        "",
        "proc/denied.calls_are_named_of_programs"),
    Sabotage(
        "edges B3: a worker without a timer has its exit status alone", "lib/worker/worker.c",
        "        gpi_page_setup_failed(plan->page, GPUD_ESYSTEM,\n",
        "        (void)(GPUD_ESYSTEM,\n",
        "proc/denied.calls_are_named_of_programs"),
    Sabotage(
        "edges B3: an executed spawner replies before it has tried its calls", "lib/keeper/spawner.c",
        "    if (rehearse(&s))\n",
        "    if (plan->host_fd < 0 && rehearse(&s))\n",
        "proc/denied.calls_are_named_without_init"),
    Sabotage(
        "edges B3: why a worker left is not read", "lib/host/charge.c",
        "if (kind == GPUD_EXIT_CODE && *why)",
        "if (kind == GPUD_EXIT_CODE && *why && s->survivor)",
        "proc/denied.worker_says_why_it_left"),
    Sabotage(
        "edges B3: why a spawner left is not read", "lib/host/channel.c",
        "        d->spawner_errno = c->sys_errno;\n",
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
        "edges B2: a spoilt claim word makes each task one that has begun", "lib/host/watch.c",
        "n < d->set.max_batch; i++",
        "n < GPI_CELLS; i++",
        "proc/spoilt_page.one_task_is_charged"),
    Sabotage(
        "edges B2: a batch is one task", "lib/host/watch.c",
        "n < d->set.max_batch; i++",
        "n < 1; i++",
        "proc/spoilt_page.members_are_charged"),
    Sabotage(
        "edges B2: the first claim is not told", "lib/worker/worker.c",
        "    gpi_worker_note_claim(w);\n",
        "",
        "proc/spoilt_page.one_task_is_charged"),
    Sabotage(
        "edges B2: a worker that never claimed has begun the first", "lib/host/charge.c",
        "return s->claimed || s->served || believed ? begun : 0;",
        "return begun;",
        "proc/spoilt_page.nothing_was_claimed"),
    Sabotage(
        "edges B2: what a spoiler of pages gets is as many attempts as any", "lib/host/charge.c",
        "            !(t->spoilt && spoils(s, outcome)) &&\n",
        "",
        "proc/spoilt_page.second_time_is_the_last"),
    Sabotage(
        "edges B2: one that dies before its page is looked at broke no protocol", "lib/host/charge.c",
        "        s->kill = GPI_KILL_PROTOCOL;\n",
        "",
        "proc/spoilt_page.one_task_is_charged"),
    Sabotage(
        "edges B2: others stand before the spoiler again", "lib/host/dispatch.c",
        "    if (d->wary)\n",
        "    if (d->wary == GPI_NONE)\n",
        "proc/spoilt_page.ends_are_wiped_out"),
    Sabotage(
        "edges B2: one given back starts though it was cancelled", "lib/host/charge.c",
        "    if (s->told >> cell & 1) {\n",
        "    if (0) {\n",
        "proc/spoilt_page.cancelled_behind"),
    Sabotage(
        "edges B2: a claim that cannot be is waited for", "lib/host/collect.c",
        "claim != gpi_claim_word(n, GPI_CLAIMED)) {",
        "claim == 1) {",
        "proc/spoilt_page.claims_are_spoilt"),
    Sabotage(
        "edges B7: READY after a kill clears its limit", "lib/host/slot.c",
        "    if (s->kill == GPI_KILL_NO && !s->keeper_lost && !s->sweeping)\n",
        "    if (!s->keeper_lost && !s->sweeping)\n",
        "proc/late_ready.close_kills"),
    Sabotage(
        "edges B7: READY after the keeper's death clears the limit", "lib/host/slot.c",
        "    if (s->kill == GPI_KILL_NO && !s->keeper_lost && !s->sweeping)\n",
        "    if (s->kill == GPI_KILL_NO && !s->sweeping)\n",
        "proc/late_ready.keeper_is_lost"),
    Sabotage(
        "edges B7: READY during the sweep clears the limit", "lib/host/slot.c",
        "    if (s->kill == GPI_KILL_NO && !s->keeper_lost && !s->sweeping)\n",
        "    if (s->kill == GPI_KILL_NO && !s->keeper_lost)\n",
        "proc/late_ready.sweep_lasts"),
    Sabotage(
        "edges B7: a setup killed at its limit may be ready", "lib/host/slot.c",
        "s->kill != GPI_KILL_SETUP &&\n",
        "s->started &&\n",
        "proc/late_ready.keeper_goes_on"),
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
        "edges B6: the calls that failed are not named", "lib/host/charge.c",
        "    if (!s->denied || n < 0 ||",
        "    if (s->denied || n < 0 ||",
        "proc/denied_kill.all_ways_denied"),
    Sabotage(
        "edges B4: a keeper that was told to end is never late", "lib/host/slot.c",
        "        gpi_slot_await(d, s, gpi_kill_limit(d, s)); /* it may be stopped */\n",
        "        s->peek_at = s->peek_at;\n",
        "proc/stopped_keepers.device_comes_back"),
    Sabotage(
        "edges B4: destroy leaves a stopped keeper that has a worker", "lib/host/stops.c",
        "        if (!s->keeper_dropped && is_stopped(s))",
        "        if (!s->started && !s->keeper_dropped && is_stopped(s))",
        "proc/stopped_keepers.destroy_ends_the_worker"),
    Sabotage(
        "edges B4: destroy waits for a start that no keeper reads", "lib/host/slot.c",
        "    if (!s->pid)\n        (void)gpi_keeper_hangs(d, s);",
        "    if (s->survivor)\n        (void)gpi_keeper_hangs(d, s);",
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
        "kind == GPUD_EXIT_NONE || s->denied, exit",
        "kind == GPUD_EXIT_NONE, exit",
        "proc/denied_kill.stopped_with_both_signals_denied"),
    Sabotage(
        "edges B5: a step that counts as none is followed at once", "lib/keeper/stops.c",
        "    s->idle = !counts || passed > LATE_NS;\n    if (!s->idle)\n",
        "    s->idle = false;\n    if (counts && passed <= LATE_NS)\n",
        "unit/stops.looks_rarely_while_nothing_counts"),
    Sabotage(
        "edges C7: numbers are certain where the driver lists others", "lib/device/numbers.c",
        "count_before(address(gpu->pci), directory) == number;",
        "count_before(address(gpu->pci), directory) != UINT32_MAX;",
        "proc/visible.driver_lists_others"),
    Sabotage(
        "edges C7: NVML's own numbers are CUDA's", "lib/device/numbers.c",
        " && gpu->index == number &&\n",
        " &&\n",
        "proc/visible.machine_in_another_order"),
    Sabotage(
        "edges C7: the first start decides for all", "lib/host/numbers.c",
        "    p->visible = GPUD_VISIBLE_UUID;\n",
        "    if (s->incarnation)\n        return;\n    p->visible = GPUD_VISIBLE_UUID;\n",
        "proc/visible.each_start_decides"),
    Sabotage(
        "edges C7: numbers are certain beside a lost GPU", "lib/host/numbers.c",
        "health.state == GPUD_HEALTH_LOST",
        "health.state == GPUD_HEALTH_COUNT",
        "proc/visible.gpu_that_is_lost"),
    Sabotage(
        "edges C7: a lost GPU with a monitor of its own does not count", "lib/host/numbers.c",
        "        if (!k->removed && k->health.state",
        "        if (!k->removed && !d->dev.gauge[k->gauge]->single && k->health.state",
        "proc/visible.gpu_that_is_lost_and_let_go"),
    Sabotage(
        "edges C7: another monitor forgets a wrong number", "lib/host/reset.c",
        "        k->silent = false;\n        k->health.deaf",
        "        k->silent = k->doubted = false;\n        k->health.deaf",
        "proc/visible.wrong_number_is_remembered_by_the_next_monitor"),
    Sabotage(
        "edges C7: an MPS daemon counts as the machine does", "lib/keeper/surroundings.c",
        "has_mps() ? GPUD_VISIBLE_UUID",
        "has_mps() ? GPUD_VISIBLE_INDEX",
        "proc/visible.mps_has_numbers_of_its_own"),
    Sabotage(
        "edges C7: a wrong number is tried again and again", "lib/worker/cuda.c",
        "    else if (c.others && by_number(&c))\n        atomic_store(&page->miscounted, 1);\n",
        "",
        "proc/visible.wrong_number_is_not_tried_again"),
    Sabotage(
        "edges C7: a worker on another GPU goes on", "lib/worker/cuda.c",
        "    if (!strncasecmp(digits_of(given), seen, UUID_TEXT - 1))\n",
        "    if (by_number(c) || !strncasecmp(digits_of(given), seen, UUID_TEXT - 1))\n",
        "proc/visible.wrong_number_runs_nothing"),
    Sabotage(
        "edges C7: an instance gets the number of a GPU", "lib/api/devices.c",
        "        r = gpi_choice_visible(&c, d->set.visible, e);\n",
        "        r = 0;\n",
        "proc/visible.instances_have_no_number"),
    Sabotage(
        "edges C7: numbers lose the order of the set", "lib/host/numbers.c",
        "        p->number[i] = d->dev.row[s->devices[i]].number;\n",
        "        p->number[s->n_devices - 1 - i] = d->dev.row[s->devices[i]].number;\n",
        "proc/visible.numbers_where_all_agree"),
    Sabotage(
        "edges C1: a sticky error goes by the driver's name", "lib/worker/cuda_calls.c",
        '{ code, sticky, "cudaError" #name, advice }',
        '{ code, sticky, "CUDA_ERROR_" #name, advice }',
        "gpu/gpu_faults_rehearsed.illegal_address"),
    Sabotage(
        "edges C1: a sticky error does not end the worker", "lib/worker/fault.c",
        "    if (found == GPI_CUDA_ERROR)\n        return false;\n    snprintf(p->fault_text",
        "    if (found != GPI_CUDA_FINE)\n        return false;\n    snprintf(p->fault_text",
        "gpu/gpu_faults_rehearsed.device_assert"),
    Sabotage(
        "edges C8: a row has no XIDs", "lib/device/row.c",
        "    ret->xids = h->xids;\n",
        "",
        "gpu/gpu_nvml_rehearsed.xid_is_heard"),
    Sabotage(
        "edges C8: the memory of workers is not added up", "lib/host/device.c",
        "            r->memory_ours += memory;",
        "            r->memory_ours = memory;",
        "gpu/gpu_nvml_rehearsed.workers_are_listed"),
    Sabotage(
        "edges C2: a recovery action that is not known is harmless", "lib/device/health.c",
        " && recovery != GPUD_RECOVERY_IMEX &&\n           recovery != GPI_UNKNOWN32;\n",
        " && recovery < GPUD_RECOVERY_IMEX;\n",
        "proc/device_faults.unknown_recovery_action"),
    Sabotage(
        "edges C2: a recovery action without a name does not reach the host", "lib/wire/reading.c",
        "        return i->number < GPI_UNKNOWN32;",
        "        return i->number <= GPUD_RECOVERY_IMEX;",
        "unit/reading.only_words_with_a_meaning"),
    Sabotage(
        "edges C3: what cannot be opened any more is not judged", "lib/host/gauge.c",
        "    if (g->single && g->m.driver.unopened) {\n",
        "    if (false) {\n",
        "proc/resets.lost_while_it_waits"),
    Sabotage(
        "edges C7: a wrong number fails a canary", "lib/host/canary.c",
        "    if (atomic_load(&s->ch.page->miscounted))\n",
        "    if (false)\n",
        "proc/visible.wrong_number_is_no_failed_canary"),
    Sabotage(
        "edges C3: the monitor keeps a GPU that waits for a reset", "lib/host/reset.c",
        "            return !may_go(d, pci);\n",
        "            return true;\n",
        "proc/resets.open_nowhere_while_it_waits"),
    Sabotage(
        "edges C3: a GPU that nobody uses here stays open", "lib/host/reset.c",
        "            return !may_go(d, pci);\n    return false;\n",
        "            return !may_go(d, pci);\n    return true;\n",
        "proc/resets.open_only_where_used"),
    Sabotage(
        "edges C3: a look at a GPU that waits does not end", "lib/host/reset.c",
        "    if (may_go(d, g->script)) {\n",
        "    if (g->m.fd < 0 && may_go(d, g->script)) {\n",
        "proc/resets.a_look_at_each_step"),
    Sabotage(
        "edges C3: the heir opens all GPUs", "lib/device/nvml.c",
        "        if (s->only)\n            list_only(&l);\n        else\n",
        "",
        "proc/resets.open_nowhere_while_it_waits"),
    Sabotage(
        "edges C3: nobody hears of the other GPUs", "lib/host/gauge.c",
        "if (incident.kind == GPI_INCIDENT_DEAF || !gpi_reset_waits(d, gauge))\n",
        "if (incident.kind == GPI_INCIDENT_DEAF || !g->script)\n",
        "proc/resets.open_nowhere_while_it_waits"),
    Sabotage(
        "edges C3: a GPU is let go of under its task", "lib/host/reset.c",
        "        if (!gpi_health_waits(&k->health) || !is_settled(d, k) || has_workers(d, i))\n",
        "        if (!gpi_health_waits(&k->health) || !is_settled(d, k) || (has_workers(d, i) && !k->id.pci[0]))\n",
        "proc/resets.the_only_one_after_its_task"),
    Sabotage(
        "edges C3: an XID that asks for a reset keeps the GPU open", "lib/device/health.c",
        "    return gpi_health_is_out(h) && (h->speaks_against || h->by_xid);\n",
        "    return gpi_health_is_out(h) && h->speaks_against;\n",
        "proc/resets.by_the_xid_alone"),
    Sabotage(
        "edges C5: a kind of events that is refused takes the XIDs with it", "lib/device/nvml_await.c",
        "        if (!code || code == GPI_NVML_UNKNOWN || says_out(code))\n            return code;\n",
        "        return code;\n",
        "unit/nvml_await.xids_alone"),
    Sabotage(
        "edges C5: events that were refused are never asked for again", "lib/device/nvml_await.c",
        "    if (code && !is_final(code))\n        ear->again_at",
        "    if (code && is_final(code))\n        ear->again_at",
        "unit/nvml_await.refused_and_allowed"),
    Sabotage(
        "edges C5: a set of events is kept after code 999", "lib/device/nvml_await.c",
        "        ear->spoilt = true;\n",
        "        ear->spoilt = false;\n",
        "unit/nvml_await.a_set_that_is_spoilt"),
    Sabotage(
        "edges C5: MPS errors have no advice", "lib/worker/cuda_abi.h",
        "    X(805, MpsConnectionFailed, 0, \"no MPS server answers: start nvidia-cuda-mps-control -d as this user, or unset CUDA_MPS_PIPE_DIRECTORY\") \\\n",
        "",
        "unit/cuda.drivers_that_do_not_start"),
    Sabotage(
        "edges C5: WSL2 and Tegra get the texts of a common machine", "lib/device/driver.c",
        "    if (is_there(root, \"/dev/dxg\"))\n",
        "    if (is_there(root, \"/dev/dxg0\"))\n",
        "unit/nvml.no_common_machine"),
    Sabotage(
        "edges C3: an heir that dies takes the others with it", "lib/host/reset.c",
        "    d->dev.gauge[heir]->takes_over = GPI_NO_GAUGE;\n}\n",
        "    gpi_reset_heir_listens(d, heir);\n}\n",
        "proc/resets.the_heir_dies"),
    Sabotage(
        "edges C3: a parting loses the reading that a start waits for", "lib/host/reset.c",
        "        if (place != GPI_UNKNOWN32) /* a reading",
        "        if (false) /* a reading",
        "proc/resets.a_wait_for_memory_outlives_the_old_one"),
    Sabotage(
        "edges C3: a GPU without an address is never let go of", "lib/host/reset.c",
        "const char *pci = address_of(d, &m->device[x]);",
        "const char *pci = m->device[x].pci;",
        "proc/resets.the_heir_does_not_know_where"),
    Sabotage(
        "edges C5: the deafness of the old monitor stays", "lib/host/reset.c",
        "        k->health.deaf = false; /* the next",
        "        k->silent = false; /* the next",
        "proc/resets.the_heir_hears_more"),
    Sabotage(
        "edges C5: what is heard during create is dropped", "lib/api/choose.c",
        "c->gauge->early[c->gauge->n_early++] = incident;",
        "c->gauge->early[c->gauge->n_early] = incident;",
        "proc/resets.deaf_from_the_start"),
    Sabotage(
        "edges C5: waits that have failed twice are the end of it", "lib/device/nvml_await.c",
        "        ear->heard = 0;\n        refused_all(s, code);\n",
        "        give_up(s, code);\n",
        "unit/nvml_await.waits_that_fail"),
    Sabotage(
        "edges C6: a GPU of which nothing is known counts as usable", "tools/gpudispatch/doctor_devices.c",
        "(r->health == GPUD_HEALTH_HEALTHY || r->health == GPUD_HEALTH_SUSPECT)",
        "(!row_is_out(r) && r->health != GPUD_HEALTH_REVOKED)",
        "tools/doctor.gpu_must_be_usable"),
    Sabotage(
        "edges D5: times stay set when they are answered", "lib/host/slot.c",
        "    if (next_time(s) <= s->timer)\n        return false;\n",
        "    if (next_time(s) >= s->timer)\n        return false;\n",
        "proc/idle.from_the_start_on"),
    Sabotage(
        "edges D2: a worker looks on for as long as it likes", "lib/worker/ahead.c",
        "    } while (host_is_elsewhere(p) && gpi_now() < until);\n",
        "    } while (gpi_now() < until + 5 * GPI_MS);\n",
        "proc/idle.looks_on_for_a_moment"),
    Sabotage(
        "edges D2: the library thread drives beside a thread that fetches", "lib/host/drive.c",
        "    return d->inside || d->lib_quit || d->visits >= VISITS_ENOUGH;\n",
        "    return d->inside || d->lib_quit;\n",
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
        "edges D3: an array does not wait for room from its start on", "lib/host/tasks.c",
        "            r = accept_in_time(d, desc, until, &in, &id, e);\n        if (r)\n            break;",
        "            r = accept_in_time(d, desc, i < 5 ? 0 : until, &in, &id, e);\n        if (r)\n            break;",
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
        "    return line->high > LINE_CHANGED * line->low || loop->high > LOOP_CHANGED * loop->low;\n",
        "    return line->high < line->low || loop->high > LOOP_CHANGED * loop->low;\n",
        "unit/bench.change_of_the_machine_is_told"),
    Sabotage(
        "edges D4: a worker is ready before its keeper's word", "lib/host/slot.c",
        "if (s->state == GPUD_SLOT_STARTING && s->pid && s->kill",
        "if (s->state == GPUD_SLOT_STARTING && s->kill",
        "proc/late_ready.before_the_keepers_word"),
    Sabotage(
        "edges D4: the keeper's word does not make ready", "lib/host/slot.c",
        "        gpi_slot_timer(d, s);\n    }\n    gpi_slot_check_ready(d, s);\n",
        "        gpi_slot_timer(d, s);\n    }\n",
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
        "    broken = set_variables(s); /* those",
        "    broken = NULL; /* those",
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
        "    gpi_exit_first(on_user_exit); /* not",
        "    if (w->plan.executed)\n        gpi_exit_first(on_user_exit); /* not",
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
        "edges D4: a program finds its files closed", "lib/keeper/maker.c",
        "        inherit_files(plan->fds);\n",
        "        inherit_files(m ? &(const int[GPI_MAKE_FDS]){ 0 }[0] : plan->fds);\n",
        "proc/exec.same_program"),
    Sabotage(
        "edges D3: destroy does not wait for a call that goes on", "lib/host/tasks.c",
        "            gpi_go_away(d);\n            gpi_come_back(d);\n",
        "            pthread_mutex_unlock(&d->lock);\n            pthread_mutex_lock(&d->lock);\n",
        "proc/many.destroyed_meanwhile"),
    Sabotage(
        "edges D3: one time for an array whose data are copied meanwhile", "lib/host/tasks.c",
        "    if (d->went_away != away) /* the lock was dropped meanwhile */\n        in->at = 0;\n",
        "",
        "proc/many.times_count_from_acceptance"),
]
