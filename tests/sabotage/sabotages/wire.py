# SPDX-License-Identifier: MIT
"""Faults in lib/wire/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- claims and end records ----
    Sabotage(
        "claim word without the send number", "lib/wire/page.h",
        "return number << 2 | (uint64_t)state;",
        "return (number & 0) << 2 | (uint64_t)state;",
        "unit/page.claim_races"),
    Sabotage(
        "end record of another send is taken", "lib/wire/page.h",
        "if (word >> 8 != number)",
        "if (word >> 8 == 0)",
        "proc/order.fifo_on_one_worker"),
    Sabotage(
        "result place is not checked", "lib/wire/page.c",
        "return off % GPI_GRANULE == 0 && off <= arena && size <= arena - off && size > 0;",
        "return off % GPI_GRANULE == 0 && size > 0;",
        "unit/page.look_at_the_bounds"),
    Sabotage(
        "frames with garbage are taken", "lib/wire/frame.c",
        "rest == 0 && f->what != 0",
        "f->what != 0",
        "unit/frame.every_single_bit"),
    # ---- bells ----
    Sabotage(
        "a bell is decided on without a fence", "lib/wire/page.c",
        "    atomic_thread_fence(memory_order_seq_cst); "
        "/* caller's store before this load; see page.h */\n",
        "",
        "unit/page.stores_come_before_looks"),
    # ---- workers that are programs ----
    Sabotage(
        "a program of another protocol is taken", "lib/wire/hello.c",
        "if (h.answer == GPI_ANSWER_READY && h.protocol != GPI_PROTOCOL)",
        "if (h.answer == GPI_ANSWER_READY && h.protocol == 0)",
        "proc/exec_faults.no_workers"),
    # ---- the monitor process ----
    Sabotage(
        "a reading of no device is believed", "lib/wire/reading.c",
        "m->device < devices && sample_ok(",
        "m->device < devices + 1 && sample_ok(",
        "unit/reading.devices_in_range"),
]
