# SPDX-License-Identifier: MIT
"""Faults at the edges of the API: times, the words of outcomes, start order."""

from .entry import Sabotage

SABOTAGES = [
    Sabotage(
        "edges: an option's number of seconds is taken for nanoseconds", "lib/api/options.c",
        "(time >= SHORTEST_NS && time <= LONGEST_NS)",
        "(time > GPUD_AT_ONCE && time <= LONGEST_NS)",
        "proc/times.options_refuse_another_unit"),
    Sabotage(
        "edges: an ERROR by return value has an empty text", "lib/host/words.c",
        "    if ((!expired && t->outcome != GPUD_OUTCOME_ERROR) || has_words(t))\n",
        "    if (!expired || has_words(t))\n",
        "proc/words.returned_values"),
    Sabotage(
        "edges: with sent_ahead = 1 a task is sent ahead all the same", "lib/host/dispatch.c",
        "n = d->set.sent_ahead ? d->set.sent_ahead : gpi_place_depth",
        "n = d->set.sent_ahead > 1 ? d->set.sent_ahead : gpi_place_depth",
        "proc/order.strict_with_one_sent_ahead"),
]
