/* SPDX-License-Identifier: MIT */
/* rows.c - the list of the figures of --queue. */
#include "rows.h"

#define ROW_X(name, unit, judge, goal, text) { #name, unit, judge, goal, text },
static const struct b_key_info rows[] = { BQ_ROWS(ROW_X) };
#undef ROW_X

const struct b_goals bq_rows = { rows, BQ_ROW_COUNT };
