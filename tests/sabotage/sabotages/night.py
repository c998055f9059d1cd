# SPDX-License-Identifier: MIT
"""Faults in what the agent of the queue does beside running commands."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "a client speaks with a listener of another user", "queue/files/socket.c",
        "    if (peer.uid != geteuid())\n",
        "    if (0)\n",
        "queue/statedir.a_listener_of_another_user"),
    Sabotage(
        "a client does not look for the saved path of the socket", "queue/files/socket.c",
        "    if (!ret || gpq_socket_saved(real, path, &second))\n",
        "    if (1)\n",
        "queue/statedir.the_saved_path_of_the_socket"),
    # ---- Notifications ----
    Sabotage(
        "the end of a batch is not noted with it", "queue/sqlite/settle.c",
        "    code = flags & GPQ_BATCH_NOTIFY ? note_end(db, batch, now, e) : 0;\n",
        "    code = flags & GPQ_BATCH_NOTIFY && !e ? note_end(db, batch, now, e) : 0;\n",
        "queue/conformance.an_end_sets_its_mark_sqlite"),
    Sabotage(
        "a notification is forgotten when it starts", "queue/agent/notify.c",
        "    j->state = fault == 0 ? RUNS : WAITS;\n",
        "    j->state = fault == 0 ? OVER : WAITS;\n",
        "agent/night.notified_later"),
    Sabotage(
        "a stopped agent repeats its notifications", "queue/agent/notify.c",
        "    if (any && a->status == 0 &&",
        "    if (any && a->status != 0 &&",
        "agent/night.notified_later"),
    Sabotage(
        "a second end during a notification is not told", "queue/agent/notify.c",
        "    if (code <= 0 || since != j->since)\n",
        "    if (code <= 0)\n",
        "agent/night.notified_twice"),
    # ---- Retention ----
    Sabotage(
        "retention counts in the age of a clock that has jumped", "queue/agent/retention.c",
        "    return last != 0 && now >= last && now - last <= longest;\n",
        "    return last != 0 && longest != 0;\n",
        "agent/night.kept_clock"),
    Sabotage(
        "retention by number forgets what ended today", "queue/agent/retention.c",
        "forget(a, r->begun > DAY ? r->begun - DAY : 1,",
        "forget(a, r->begun,",
        "agent/night.kept_number"),
    Sabotage(
        "files of forgotten tasks are not noted", "queue/agent/forget.c",
        "    a->forget->marked = code > 0;\n    if (code <= 0)\n",
        "    a->forget->marked = code > 0;\n    if (code <= 1)\n",
        "agent/night.forgotten_files"),
    Sabotage(
        "a purge that goes on skips a task", "queue/sqlite/purge.c",
        "            p->last = ids->id[i] - 1;\n",
        "            p->last = ids->id[i];\n",
        "queue/conformance.a_purge_that_goes_on_sqlite"),
    # ---- Where the time goes ----
    Sabotage(
        "a GPU is kept for a task that waits for something else", "queue/agent/waiting.c",
        "    if (free >= f->gpus)\n        return;\n",
        "    if (free < 1)\n        return;\n",
        "agent/spans.kept_not"),
    Sabotage(
        "a GPU is kept while the class has its workers", "queue/agent/waiting.c",
        "        if (own || !*r->device)\n",
        "        if (own && !*r->device)\n",
        "agent/spans.kept_for_workers"),
    Sabotage(
        "a worker leaves for no class", "queue/agent/waiting.c",
        "        if (r->kind == GPUD_REASON_UNLOADING)\n",
        "        if (r->kind == GPUD_REASON_NONE)\n",
        "agent/spans.tenancies"),
    Sabotage(
        "the death of a worker is not noted", "queue/agent/states.c",
        "    know(d->states, device, d->class, true);\n",
        "    know(d->states, device, d->class, false);\n",
        "agent/spans.tenancies"),
    Sabotage(
        "workers that follow each other are one row", "queue/agent/states.c",
        "s->slot->slot, s->slot->incarnation);",
        "s->slot->slot, s->slot->reserved);",
        "agent/spans.tenancies"),
    Sabotage(
        "a lost GPU is quarantined", "queue/agent/states.c",
        "    if (d->health == GPUD_HEALTH_LOST)\n",
        "    if (d->health == GPUD_HEALTH_COUNT)\n",
        "agent/spans.lost"),
    Sabotage(
        "foreign processes keep no GPU from use", "queue/agent/waiting.c",
        "        if (r->kind == GPUD_REASON_FOREIGN)\n",
        "        if (r->kind == GPUD_REASON_NONE)\n",
        "agent/spans.foreign"),
    Sabotage(
        "an agent that adopts does not say so", "queue/agent/spans.c",
        "    if (a->adopted == 0)\n",
        "    if (a->adopted != 0)\n",
        "agent/spans.adopted"),
    Sabotage(
        "a row ends before it begins", "queue/agent/spans.c",
        "    if (r->until.wall < r->since.wall)\n",
        "    if (r->until.wall == 0)\n",
        "agent/night.spans_of_clock"),
    Sabotage(
        "a task waits for its turn without a reason", "queue/agent/waiting.c",
        "    tell(w, &f, \"at once\", batch, text);\n",
        "",
        "agent/spans.turns"),
    Sabotage(
        "the time left leaves out tasks that wait for their turn", "queue/agent/show.c",
        "    uint32_t turn = b->row.turn != 0 ? held : 0;\n",
        "    uint32_t turn = b->row.turn != 0 && held == 0;\n",
        "agent/watch.turns"),
    Sabotage(
        "a row of a reason ends with the first task", "queue/agent/waiting.c",
        "    gpq_span_say(w->look->spans, \"reason\", subject, reason, key, text);\n",
        "    char own[24];\n"
        "    (void)key;\n"
        "    snprintf(own, sizeof(own), \"%\" PRIu64, f->task);\n"
        "    gpq_span_say(w->look->spans, \"reason\", subject, reason, own, text);\n",
        "agent/spans.few_rows"),
    Sabotage(
        "rows of old tasks stay", "queue/sqlite/purge.c",
        "        code = GPQ_DB_DO(db, GPQ_SQL_SPAN_FORGET, e, (int64_t)before);\n",
        "        code = GPQ_DB_DO(db, GPQ_SQL_SPAN_FORGET, e, (int64_t)1);\n",
        "agent/spans.forgotten"),
    # ---- State directory, clock, disk ----
    Sabotage(
        "commits to a removed file are acknowledged", "queue/sqlite/open.c",
        "    return check_name(db, e);\n",
        "    return db->broken ? check_name(db, e) : 0;\n",
        "queue/sqlite.removed_file"),
    Sabotage(
        "an agent makes its removed directory anew", "queue/agent/turn.c",
        "    a->again = owns_directory(a);\n",
        "    a->again = owns_directory(a) || true;\n",
        "agent/night.removed_directory"),
    Sabotage(
        "an agent removes the socket of another one", "queue/agent/server.c",
        "st.st_dev != s->device || st.st_ino != s->inode)\n",
        "(st.st_dev != s->device && st.st_ino != s->inode))\n",
        "agent/night.replaced_directory"),
    # ---- Spans ----
    Sabotage(
        "spans of a killed agent go on", "queue/agent/spans.c",
        "    for (size_t i = 0; code == 0 && i < l->n; i++) {\n",
        "    for (size_t i = 1000; code == 0 && i < l->n; i++) {\n",
        "agent/night.spans"),
    Sabotage(
        "a span goes on when its state is over", "queue/agent/spans.c",
        "        if (!r->seen && r->until.wall == 0 &&",
        "        if (!r->seen && r->until.wall != 0 &&",
        "agent/night.spans"),
    Sabotage(
        "a jump of the clock is not told", "queue/agent/spans.c",
        "    if (!jumped)\n",
        "    if (jumped || !jumped)\n",
        "agent/night.spans_of_clock"),
    # ---- Records ----
    Sabotage(
        "a page of records passes over an attempt", "queue/agent/records.c",
        ".round = a->round, .number = a->number };\n",
        ".round = a->round, .number = a->number + 1 };\n",
        "agent/record_pages.sizes_of_pages"),
    Sabotage(
        "records have no reason of an end", "queue/agent/record_lines.c",
        "        shorten(a->text, cause);\n",
        "        shorten(\"\", cause);\n",
        "agent/records.all_ends"),
    Sabotage(
        "an attempt of a worker has no GPU", "queue/agent/turn.c",
        "                           .said = u->said,\n"
        "                           .devices = u->class ? u->devices : NULL,\n",
        "                           .said = u->said,\n",
        "agent/records.all_ends"),
    Sabotage(
        "records pass over the end of a waiting task", "queue/agent/record_lines.c",
        "    bool runs = a->number != 0 && a->outcome == 0",
        "    bool runs = a->number == 0 || a->outcome == 0",
        "agent/records.all_ends"),
    Sabotage(
        "the last line keeps its control characters", "queue/agent/said.c",
        "        return first >= ' ' && first != DELETE;\n",
        "        return first != DELETE;\n",
        "queue/said.control_characters"),
    # ---- Who watches ----
    Sabotage(
        "an agent wakes up for those who watch", "queue/agent/watch.c",
        "    if (w->wish.parts & PART(GPUS) && gpq_now_has_readings(a))\n",
        "    if (w->wish.parts & PART(GPUS))\n",
        "agent/watch.quiet"),
    Sabotage(
        "a reader that is stopped is never dropped", "queue/agent/watch.c",
        "        if (t->now - w->stuck_at < patience())\n",
        "        if (t->now - w->stuck_at < 1000 * patience())\n",
        "agent/watch.stopped"),
    Sabotage(
        "each change is a snapshot", "queue/agent/watch.c",
        "    if (w->shown != version)\n        return w->shown_at + w->wish.every;\n",
        "    if (w->shown != version)\n        return w->shown_at + 1;\n",
        "agent/watch.coalesced"),
    Sabotage(
        "an attempt that ended badly counts as work", "queue/agent/ended.c",
        ".kind = end->outcome == GPV_OK ? GPQ_NOW_END_OK\n",
        ".kind = end->outcome != 99 ? GPQ_NOW_END_OK\n",
        "agent/watch.as_records"),
]
