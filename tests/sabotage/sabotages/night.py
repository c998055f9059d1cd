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
        "    s->is = m->since == s->job->since;\n",
        "    s->is = true;\n",
        "agent/night.notified_twice"),
]
