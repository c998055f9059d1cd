# SPDX-License-Identifier: MIT
"""Faults in queue/runner/: a command under its runner, and how a new agent finds it (Q4, Q5)."""

from .entry import Sabotage

SABOTAGES = [
    # ---- Start ----
    Sabotage(
        "a command is released before its start is recorded", "queue/runner/life.c",
        '    gpq_point("forked");\n',
        '    (void)!write(l->released[1], "", 1);\n    gpq_point("forked");\n',
        "queue/runner_crash.killed_at_each_point"),
    Sabotage(
        "a command runs although its runner died before the release", "queue/runner/child.c",
        "    if (n != 1)\n",
        "    if (n < 0)\n",
        "queue/runner_crash.killed_at_each_point"),
    Sabotage(
        "a record can be used twice", "queue/runner/main.c",
        "&& !r.has_runner && !r.torn &&",
        "&& !r.torn &&",
        "queue/runner.what_it_was_given_is_checked"),
    Sabotage(
        "a command inherits ignored signals", "queue/runner/child.c",
        "        (void)sigaction(s, &action, NULL);",
        "        (void)s;",
        "queue/runner.surroundings_of_the_command"),
    # ---- While the command works ----
    Sabotage(
        "the runner wakes up while nothing happens", "queue/runner/life.c",
        "        await(l, -1);\n",
        "        await(l, 100);\n",
        "queue/runner.zero_wakeups"),
    Sabotage(
        "a stopped command is not continued for its SIGTERM", "queue/runner/life.c",
        "    (void)kill(-l->command, SIGCONT);\n",
        "",
        "queue/runner.soft_of_a_stopped_group"),
    Sabotage(
        "a log has no limit", "queue/runner/log.c",
        "    if (!l->limit || l->stopped",
        "    if (l->limit || l->stopped",
        "queue/runner_log.log_limit"),
    # ---- End ----
    Sabotage(
        "daemons outlive the command", "queue/runner/life.c",
        "    await_stop(l);\n    end_rest(l);\n",
        "    await_stop(l);\n",
        "queue/runner.daemons_are_killed"),
    Sabotage(
        "the runner is no subreaper", "queue/runner/main.c",
        "prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)",
        "prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)",
        "queue/runner.daemons_are_killed"),
    Sabotage(
        "a failed sync of outputs is a success", "queue/runner/life.c",
        "? GPQ_OUTPUTS_FAILED",
        "? GPQ_OUTPUTS_SYNCED",
        "queue/runner.outputs_that_are_gone"),
    Sabotage(
        "a torn or changed line counts", "queue/runner/record.c",
        "    if (memcmp(data + size, tail, TAIL))\n        return false;\n",
        "",
        "queue/record.each_changed_byte_is_damage"),
    Sabotage(
        "the name of the record is not synced", "queue/runner/life.c",
        'gpq_sync_directory(&gpq_system_files, "run")',
        "0",
        "queue/runner.the_order_of_writes_and_syncs"),
    Sabotage(
        "the end is not synced", "queue/runner/life.c",
        "    if (fsync(GPQ_RUN_RECORD))\n        return -errno;\n",
        "",
        "queue/runner.the_order_of_writes_and_syncs"),
    # ---- The new agent ----
    Sabotage(
        "the lock of a run does not count", "queue/runner/find.c",
        "    if (locked && same_boot)\n",
        "    if (locked && same_boot && !ours)\n",
        "queue/runner_crash.agent_killed"),
    Sabotage(
        "a run of an earlier boot never started", "queue/runner/find.c",
        "    if (!same_boot)\n        return GPQ_FOUND_LOST;\n",
        "",
        "queue/record.judgements"),
    Sabotage(
        "a recycled number is taken for the runner", "queue/runner/process.c",
        "    if (!ret && p.ticks == ticks && !has_ended(&p))\n",
        "    if (!ret && !has_ended(&p))\n",
        "queue/runner_crash.adopt_checks_what_it_opens"),
    Sabotage(
        "the sweep knows no environment", "queue/runner/sweep.c",
        "    return ret > 0;\n",
        "    return false;\n",
        "queue/runner_crash.sweep_finds_all"),
    Sabotage(
        "the sweep knows no session", "queue/runner/sweep.c",
        "!(s->session_is_ours && in_session(s, p))",
        "!(s->session_is_ours && is_command(s, p))",
        "queue/runner_crash.sweep_of_a_session_without_its_leader"),
    Sabotage(
        "the sweep kills the session of another process", "queue/runner/sweep.c",
        " && p->ticks == s->command->ticks;\n",
        ";\n",
        "queue/runner_crash.sweep_spares_others"),
]
