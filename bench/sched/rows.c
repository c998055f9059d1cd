/* SPDX-License-Identifier: MIT */
/* rows.c - the list of the figures of --sched. */
#include "rows.h"

#define ROW_X(name, unit, judge, goal, text) { #name, unit, judge, goal, text },
static const struct b_key_info rows[] = { B_SCHED_ROWS(ROW_X) };
#undef ROW_X

const struct b_goals b_sched_rows = { rows, B_SCHED_ROW_COUNT };
