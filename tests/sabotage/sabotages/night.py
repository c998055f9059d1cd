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
        "    int code = l->n != 0 ? o->begin(a->store, e) : 0;\n",
        "    int code = l->n > 1000 ? o->begin(a->store, e) : 0;\n",
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
]
