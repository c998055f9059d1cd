# SPDX-License-Identifier: MIT
"""Faults at the edges of an API: waiting for ready workers, printing events, lists with blanks, plugins."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "edges: a thread that waits for ready workers is not called", "lib/host/slot.c",
        "    gpi_ready_changed(d);\n",
        "",
        "proc/ready.beside_poll"),
    Sabotage(
        "edges: a drained worker that still runs a task counts as one that can be ready", "lib/host/ready.c",
        "gpi_slot_settled(s) || gpi_slot_drains(d, s)",
        "gpi_slot_settled(s)",
        "proc/ready.drained_while_busy"),
    Sabotage(
        "edges: blanks behind an entry of a device list belong to it", "lib/device/list.c",
        "        to--;\n",
        "        break;\n",
        "unit/devices.blanks"),
    Sabotage(
        "edges: create takes a plugin that is no ELF file", "lib/api/lookup.c",
        "    if (n < SELFMAG || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)\n        return \"is no ELF file\";\n",
        "",
        "proc/exec_faults.plugin_is_no_object"),
    Sabotage(
        "edges: the line of an event is cut inside a character", "lib/api/format.c",
        "        at--;\n",
        "        break;\n",
        "unit/format.cut_at_every_size"),
]
