# SPDX-License-Identifier: MIT
"""Faults in lib/base/."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "a run behind a barrier is passed over", "lib/base/chunks.c",
        "    return (at / c->barrier + 1) * c->barrier;\n",
        "    return at + c->barrier;\n",
        "unit/chunks.what_was_freed_can_be_had_again"),
    # ---- death ----
    Sabotage(
        "doubling wraps around", "lib/base/clock.h",
        "        wait = wait > cap / 2 ? cap : wait * 2;\n",
        "        wait *= 2;\n",
        "unit/restart.doubling_ends"),
]
