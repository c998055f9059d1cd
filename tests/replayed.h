/* SPDX-License-Identifier: MIT */
/*
 * replayed.h - option decision_log in tests: the log of a live dispatcher replays to the same
 * actions.                                                                                  [S6]
 *
 *     d = T_CREATE(.pooled = 1, .devices = "fake:2", .decision_log = T_DECISIONS);
 *     ...
 *     t_end_replayed(&d, &log);
 */
#ifndef T_REPLAYED_H
#define T_REPLAYED_H

#include "fixture.h"

#include "sched/plan.h"
#include "sim/replay.h"

#define T_DECISIONS "decisions"

/* Returns its text, which the caller frees: a log that replays to the same actions. */
char *t_replayed(const char *path, struct gpi_replay *ret);
/* t_end, for a pooled dispatcher with T_DECISIONS: its log is whole, and replays to the same
 * actions.  Returns what the plan has done.  Removes the log. */
struct gpi_plan_stats t_end_replayed(gpud_dispatcher **d, struct t_log *log);

#endif
