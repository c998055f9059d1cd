# SPDX-License-Identifier: MIT
"""Faults in queue/config/: the config file, and texts of options and settings."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "the file comes before the environment", "queue/config/config.c",
        "        [GPQ_ORIGIN_ENVIRONMENT] = by_variable,\n        [GPQ_ORIGIN_FILE] = c->n",
        "        [GPQ_ORIGIN_FILE] = by_variable,\n        [GPQ_ORIGIN_ENVIRONMENT] = c->n",
        "queue/config.a_flag_comes_before_the_environment_and_the_file"),
    Sabotage(
        "the second value of a key counts", "queue/config/parse.c",
        "    if (entry->value)\n        return fail",
        "    if (!entry)\n        return fail",
        "queue/config.each_fault_has_its_line"),
    Sabotage(
        "an overlong character is UTF-8", "queue/utf8.c",
        "    if (first < 0xc2 ||",
        "    if (first < 0xc0 ||",
        "queue/config.each_fault_has_its_line"),
    Sabotage(
        "a small size without a unit is bytes", "queue/config/values.c",
        "    if (!*name && bytes != 0 && bytes < MIB)\n",
        "    if (!*name && bytes != 0 && bytes < 1)\n",
        "queue/values.sizes"),
    Sabotage(
        "a number alone is for retries out of memory, too", "queue/config/values.c",
        "1 << GPQ_CAUSE_TIMEOUT | 1 << GPQ_CAUSE_CRASH };",
        "1 << GPQ_CAUSE_TIMEOUT | 1 << GPQ_CAUSE_CRASH | 8 };",
        "queue/values.retries"),
]
