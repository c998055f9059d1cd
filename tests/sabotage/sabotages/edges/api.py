# SPDX-License-Identifier: MIT
"""Edges A: what a new user of the API meets."""

from ..entry import Sabotage

SABOTAGES = [
    Sabotage(
        "edges A1: destroy throws away what close left", "lib/host/destroy.c",
        "close_by(d, gpi_finish_asked(d), d->set.close_limit",
        "close_by(d, GPUD_FINISH_NOW, d->set.close_limit",
        "proc/close.destroy_finishes_what_close_left"),
    Sabotage(
        "edges A1: destroy waits for room that nobody makes", "lib/host/completions.c",
        "    if (!a->final && (again || d->close.ending))\n",
        "    if (!a->final && again)\n",
        "proc/close.destroy_needs_no_room_for_results"),
    Sabotage(
        "edges A1: a close without a limit has close_limit", "lib/host/close.c",
        "    else if (how == GPUD_FINISH_NOW)\n        gpi_close_by",
        "    else if (how <= GPUD_FINISH_NOW)\n        gpi_close_by",
        "proc/close.close_without_a_limit"),
    Sabotage(
        "edges A1: the close limit is not named", "lib/host/charge.c",
        "e->outcome == GPUD_OUTCOME_CANCELLED && why == GPI_WHY_CLOSE)\n",
        "e->outcome == GPUD_OUTCOME_CANCELLED && why == GPI_WHY_NO)\n",
        "proc/close.close_limit_is_named"),
    Sabotage(
        "edges A2: one record to spare for what a source gives at the end", "lib/host/create.c",
        "GPI_EVENTS_MAX + GPI_FED_AT_ONCE;",
        "GPI_EVENTS_MAX + 1;",
        "proc/run.pulled_when_nothing_starts"),
    Sabotage(
        "edges A2: run answers 0 when no worker was left", "lib/host/run.c",
        "    if (r->counts.no_worker)\n",
        "    if (r->counts.no_worker && r->closed)\n",
        "proc/run.enoworker"),
    Sabotage(
        "edges A2: run answers with a callback's value", "lib/host/run.c",
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
        "edges A4: submit does not say which bound is reached", "lib/host/submit.c",
        "return r == GPUD_EFULL ? full(d, desc, in, e) : r;",
        "return r;",
        "proc/reasons.submit_full"),
    Sabotage(
        "edges A4: a worker is taken for a forked child", "lib/api/check.c",
        "return gpi_worker_here() ? gpi_fail(",
        "return gpi_worker_here() && !e ? gpi_fail(",
        "proc/reasons.in_a_worker"),
    Sabotage(
        "edges A5: the end of a task is taken before its output is read", "lib/host/completions.c",
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
        "edges A6: an ERROR by return value has an empty text", "lib/host/texts.c",
        "    if ((!expired && t->outcome != GPUD_OUTCOME_ERROR) || has_words(t))\n",
        "    if (!expired || has_words(t))\n",
        "proc/words.returned_values"),
    Sabotage(
        "edges A7: with sent_ahead = 1 a task is sent ahead all the same", "lib/sched/spread.c",
        "n = set->ahead ? set->ahead : s->ahead;",
        "n = set->ahead > 1 ? set->ahead : s->ahead;",
        "sched/scripts.birth"),
    Sabotage(
        "edges A8: a thread that waits for ready workers is not called", "lib/host/state.c",
        "    gpi_ready_changed(d);\n",
        "",
        "proc/ready.beside_poll"),
    Sabotage(
        "edges A8: a drained worker that still runs a task counts as one that can be ready",
        "lib/host/ready.c",
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
        "    if (n < SELFMAG || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)\n"
        "        return \"is not an ELF file\";\n",
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
        "edges A9: what was cancelled softly is tried again", "lib/sched/record.h",
        "return c->slot[t->slot].told >> t->cell & 1 ||",
        "return c->slot[t->slot].cancelled >> t->cell & 1 ||",
        "proc/cancel.soft"),
    Sabotage(
        "edges A10: workers are replaced all at once", "lib/sched/gates.c",
        "if (c->class[i].set.max_tasks && !c->class[i].renewing)",
        "if (c->class[i].set.max_tasks)",
        "sched/scripts.renew"),
    Sabotage(
        "edges A10: tasks wait for the replacement beside an idle worker", "lib/sched/spread.h",
        "return k->set.max_tasks == 0 || k->renewing ||\n",
        "return k->set.max_tasks == 0 ||\n",
        "sched/scripts.renew"),
    Sabotage(
        "edges A10: a worker gets more than its number", "lib/sched/spread.h",
        "(uint64_t)s->served + s->sent < k->set.max_tasks;",
        "s->served < k->set.max_tasks;",
        "proc/renew.exact_with_one_slot"),
    Sabotage(
        "edges A10: nobody wakes a worker when room has come back", "lib/host/results.c",
        "    gpi_results_room(d, s);\n    gpi_result_room(d, s);\n",
        "    gpi_results_room(d, s);\n",
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
        "edges A2: run does not hear that it waits for nothing", "lib/host/submit.c",
        "d->intake.went_away != away &&",
        "d->intake.went_away == away &&",
        "proc/r_intake.run_ends_beside_an_awaited_copy"),
]
