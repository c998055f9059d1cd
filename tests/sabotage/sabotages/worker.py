# SPDX-License-Identifier: MIT
"""Faults in lib/worker/."""

from .entry import Sabotage

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
        "end word before its record", "lib/worker/ends.c",
        "    c->ended_at = ended_at;\n",
        "    atomic_store(&c->end, gpi_end_word(t->number, code ? GPI_END_FAILED : GPI_END_OK));\n"
        "    c->ended_at = ended_at;\n",
        "unit/worker.end_is_complete_when_told"),
    # ---- time ----
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
    # ---- expires ----
    Sabotage(
        "a worker starts what has expired", "lib/worker/worker.c",
        "if (c->expires_at && started >= c->expires_at) {",
        "if (c->expires_at && started < c->expires_at && c->expires_at == 1) {",
        "proc/expires.worker_refuses"),
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
        "the end is no end of a silence", "lib/worker/ends.c",
        "        gpi_worker_note_stall(w, ended_at);\n",
        "",
        "proc/stall.soft"),
    Sabotage(
        "the time of progress is taken before the alarm is held off", "lib/worker/limit.c",
        "    atomic_store(&l->stall_at, GPI_NEVER);\n    return gpi_now();",
        "    uint64_t now = gpi_now();\n"
        "    while (gpi_now() < now + 20000)\n        ;\n"
        "    atomic_store(&l->stall_at, GPI_NEVER);\n    return now;",
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
    # ---- batches ----
    Sabotage(
        "a worker does not heed that one is to run alone", "lib/worker/batch.c",
        "if (w->members > 0 && (order & GPI_ALONE || too_late(c, started)))\n            break;",
        "if (w->members > 0 && too_late(c, started))\n            break;",
        "proc/batch.alone_behind_others"),
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
    # ---- bells ----
    Sabotage(
        "worker sleeps without looking again", "lib/worker/orders.c",
        "if (atomic_load(&p->sent_number) >= number || ",
        "if ((atomic_load(&p->sent_number) >= number && !number) || ",
        "unit/worker.task_sent_as_the_worker_falls_asleep"),
    Sabotage(
        "ends wait behind a long task", "lib/worker/worker.h",
        "    return w->untold &&\n",
        "    return w->untold && !w->plan.page &&\n",
        "proc/gaps.end_is_told_before_a_long_task"),
    # ---- queue, places, bounds ----
    Sabotage(
        "a granule in use is given out", "lib/worker/result.c",
        "run = granule_free(&p->granule[i]) ? run + 1 : 0;",
        "run = granule_free(&p->granule[i]) || run ? run + 1 : 0;",
        "unit/results.frees_from_the_other_side"),
    # ---- kinds of hosts ----
    Sabotage(
        "a worker keeps the host's buffers", "lib/worker/worker.c",
        "(void)setvbuf(stdout, line, _IOLBF, sizeof line);",
        "(void)setvbuf(stdout, NULL, _IOLBF, 0 * sizeof line);",
        "hosts/files.text_in_buffers"),
    Sabotage(
        "exit in a worker destroys what is the host's", "lib/worker/worker.c",
        "    gpi_exit_first(gpi_worker_leave);",
        "",
        "hosts/cxx.objects_and_exceptions"),
    # ---- workers that are programs ----
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
    # ---- failures in the field, and those of the ancestor ----
    Sabotage(
        "a result without room is none", "lib/worker/task.c",
        "        return GPUD_ERESULTSPACE;\n",
        "        return 0;\n",
        "proc/bounds.result_space"),
    Sabotage(
        "all workers have one seed", "lib/worker/task.c",
        "return w->plan.page->seed + w->plan.page->slot;",
        "return w->plan.page->seed;",
        "proc/ancestor.same_device_twice"),
    # ---- CUDA in a worker ----
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
        "    block_only_alarm();\n",
        "    block_only_alarm();\n    gpi_worker_block_alarm(false);\n",
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
    # ---- option start_events ----
    Sabotage(
        "a worker starts a task silently", "lib/worker/worker.c",
        "    gpi_worker_note_start(w);\n    code = ",
        "    code = ",
        "proc/starts.wakes_a_caller_that_drives"),
    Sabotage(
        "a worker starts a batch silently", "lib/worker/batch.c",
        "        gpi_worker_note_start(w);\n",
        "",
        "proc/starts.batch_wakes_the_host"),
]
