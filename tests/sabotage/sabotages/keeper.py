# SPDX-License-Identifier: MIT
"""Faults in lib/keeper/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- death ----
    Sabotage(
        "keeper reports a death without the sweep", "lib/keeper/keeper.c",
        "    if (left == 0) {\n        gpi_lookout_end(&k->look);",
        "    if (left >= 0) {\n        gpi_lookout_end(&k->look);",
        "proc/death.daemon_of_a_dead_worker"),
    Sabotage(
        "keeper does not watch the host", "lib/keeper/keeper.c",
        "        if (!k.ending && (n == 0 || p[2].revents) && gpi_watch_gone(&k.host))\n"
        "            k.ending = true;\n",
        "",
        "proc/host_death.host_with_sibling_and_spawner_die"),
    # ---- time ----
    Sabotage(
        "keeper does not count stopped time", "lib/keeper/keeper.c",
        "atomic_fetch_add(&p->stopped_ns, now - since);\n"
        "        atomic_store(&p->stopped_since, 0);",
        "atomic_fetch_add(&p->stopped_ns, (now - since) & 0);\n"
        "        atomic_store(&p->stopped_since, 0);",
        "proc/limits.stopped_worker"),
    # ---- kinds of hosts ----
    Sabotage(
        "text of the host is written by the spawner", "lib/keeper/spawner.c",
        "    __fpurge(stdout);",
        "    (void)fflush(stdout);",
        "hosts/files.text_in_buffers"),
    # ---- workers that are programs ----
    Sabotage(
        "a program inherits the keeper's blocked signals", "lib/keeper/program.c",
        "    gpi_process_signals_unblock(); /* all are default",
        "    /* all are default",
        "proc/exec.same_program"),
    Sabotage(
        "an exec that failed is not told", "lib/keeper/program.c",
        "    (void)!write(p->call.hello, &h, sizeof h);\n",
        "    (void)h;\n",
        "proc/exec_faults.no_workers"),
    Sabotage(
        "the same program is looked up by its path", "lib/keeper/program.c",
        "(void)syscall(SYS_execveat, p->fd, \"\", argv, environ, AT_EMPTY_PATH);",
        "(void)execve(argv[0], argv, environ);",
        "proc/exec_hosts.program_without_file"),
    # ---- failures in the field, and those of the ancestor ----
    Sabotage(
        "the signal of a death is not told", "lib/keeper/keeper.c",
        "        .exit_status = si.si_status,\n",
        "        .exit_status = si.si_status & 1,\n",
        "proc/death.each_way_to_die"),
    Sabotage(
        "keepers hide what a dead one has left", "lib/keeper/sweep.c",
        "#define LISTED (GPI_SWEEP_SPARED + ROUND)",
        "#define LISTED (0 * GPI_SWEEP_SPARED + ROUND)",
        "unit/sweep.remains_behind_many_keepers"),
    # ---- the monitor process ----
    Sabotage(
        "a full spawner lets nobody in though goodbyes wait", "lib/keeper/spawner.c",
        "(!heard || has_room(&s))",
        "(!heard || n > 0)",
        "proc/places.goodbye_behind_a_request"),
    Sabotage(
        "a sweep kills monitors", "lib/keeper/spawner.c",
        "        if (s->kept[i].pid > 0)\n            alive[n++]",
        "        if (s->kept[i].pid > 0 && !s->kept[i].monitor)\n            alive[n++]",
        "proc/monitor_ends.sweeping_spares_the_monitor"),
    Sabotage(
        "a monitor outlives its connection", "lib/keeper/spawner.c",
        "            kill_monitor(&s->kept[i]);\n        }",
        "        }",
        "proc/monitor_ends.stopped_monitor_is_killed"),
    Sabotage(
        "a monitor outlives its spawner", "lib/keeper/spawner.c",
        "    if (!gpi_process_die_with(spawner))\n",
        "    if (!spawner)\n",
        "proc/monitor_ends.spawner_is_killed"),
    Sabotage(
        "gpud_fini waits for a monitor in D state", "lib/keeper/spawner.c",
        "(only_monitors(&s) || impatient++ == GIVE_UP_AFTER)",
        "(impatient++ == GIVE_UP_AFTER)",
        "proc/monitor_ends.unkillable_monitor_delays_nobody"),
    # ---- CUDA in a worker ----
    Sabotage(
        "workers see the host's GPUs", "lib/keeper/surroundings.c",
        "    show_devices(s);\n",
        "    if (!s)\n        show_devices(s);\n",
        "proc/cuda_on_gpus.who_sees_what"),
]
