# SPDX-License-Identifier: MIT
"""Faults in lib/api/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- kinds of hosts ----
    Sabotage(
        "gpud_fini waits for ever for a spawner that was reaped", "lib/api/spawner.c",
        "while (waitpid(p->spawner, NULL, __WALL) < 0 && errno == EINTR)",
        "while (waitpid(p->spawner, NULL, __WALL) < 0)",
        "hosts/signals.all_signals_ignored_with_a_thread"),
    Sabotage(
        "what a forked child inherited stays open", "lib/api/init.c",
        "    if (gpi_process_here()->alive) /*",
        "    if (gpi_process_here()->alive && !made.alive) /*",
        "hosts/children.forked_hosts"),
    # ---- workers that are programs ----
    Sabotage(
        "a wrapper's child becomes a host", "lib/api/init.c",
        "        return gpi_fail(reterr, GPUD_EPROTOCOL, 0, \"\",\n"
        "                        \"the worker program is process",
        "        (void)gpi_fail(reterr, GPUD_EPROTOCOL, 0, \"\",\n"
        "                        \"the worker program is process",
        "proc/exec_faults.call_for_another"),
    Sabotage(
        "AUTO forks where CUDA is in use", "lib/api/start.c",
        "(changed || p->cuda)",
        "changed",
        "proc/exec_hosts.cuda_in_workers"),
    Sabotage(
        "programs run with the rights of gpud_init", "lib/api/start.c",
        "return !p || gpi_process_changed(p);",
        "return !p;",
        "proc/exec_hosts.dropped_privileges"),
    Sabotage(
        "the spawner program outlives its dispatcher", "lib/api/create.c",
        "    if (own)\n        gpi_process_unspawn(own);\n    else if (ours && p)",
        "    if (own)\n        (void)0;\n    else if (ours && p)",
        "proc/exec_hosts.two_dispatchers"),
    Sabotage(
        "a spawner program that never answers is left", "lib/api/spawner.c",
        "    if (p->spawner_pidfd >= 0)\n"
        "        (void)gpi_process_kill(p->spawner, p->spawner_pidfd);\n"
        "    gpi_process_unspawn(p);",
        "    p->spawner = 0;\n    gpi_process_unspawn(p);",
        "proc/silence.spawner_program_that_hangs"),
    Sabotage(
        "a plugin of another ABI is taken", "lib/api/program.c",
        "if (p->abi != GPUD_PLUGIN_ABI)",
        "if (p->abi == 0)",
        "proc/exec_faults.plugins"),
    # ---- failures in the field, and those of the ancestor ----
    Sabotage(
        "a worker to be makes a dispatcher of its own", "lib/api/start.c",
        "if (!p && gpi_birth_awaited())",
        "if (!p && gpi_birth_awaited() && !field)",
        "proc/exec_faults.host_that_names_itself"),
    # ---- the monitor process ----
    Sabotage(
        "silence is healthy", "lib/api/monitor.c",
        "        if (m->m.asked_at[i])\n",
        "        if (!m->m.asked_at[i])\n",
        "proc/monitor.silent_device_is_unknown"),
    Sabotage(
        "a forked child uses its parent's monitor", "lib/api/monitor.c",
        ": gpi_check_refuse(m != NULL, \"m\", NULL);",
        ": 0;",
        "proc/monitor_ends.forked_child_with_init"),
    # ---- CUDA in a worker ----
    Sabotage(
        "env may name the devices", "lib/api/create.c",
        "    if (r > 0)\n        r = gpi_surroundings_on_gpus(o->env, e);\n",
        "",
        "proc/cuda_on_gpus.env_names_what_is_ours"),
    # ---- classes of a pooled dispatcher ----
    Sabotage(
        "a class takes the options of its dispatcher", "lib/api/options.c",
        "options[i].kind == kind && options[i].set)",
        "options[i].kind == kind && options[i].set && kind == GPI_OPTION_CLASS)",
        "unit/class.kinds"),
    Sabotage(
        "a worker without a number of bytes needs none", "lib/host/request.c",
        "ret->memory = q->memory ? q->memory : GPI_MEMORY_ALL;",
        "ret->memory = q->memory;",
        "unit/class.defaults"),
    Sabotage(
        "a fifth variant is left out", "lib/host/request.c",
        "at = first; at; at = q.next) {\n",
        "at = first; at && ret->n < GPI_VARIANTS; at = q.next) {\n",
        "unit/class.variants"),
    Sabotage(
        "a spawner that is a program forks workers", "lib/api/class.c",
        "if (own && s->launch.start == GPUD_START_FORK)",
        "if (own && s->launch.start > GPUD_START_EXEC)",
        "unit/class.spawners"),
    Sabotage(
        "a worker on a GPU may have the devices of env", "lib/api/class.c",
        "        if (needs->request[i].devices)\n",
        "        if (needs->request[i].devices && i == 0)\n",
        "unit/class.environment"),
]
