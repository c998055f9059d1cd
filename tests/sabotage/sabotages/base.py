# SPDX-License-Identifier: MIT
"""Faults in lib/base/."""

from .entry import Sabotage

SABOTAGES = [
    # ---- death ----
    Sabotage(
        "doubling wraps around", "lib/base/clock.h",
        "        wait = wait > cap / 2 ? cap : wait * 2;\n",
        "        wait *= 2;\n",
        "unit/restart.doubling_ends"),
]
