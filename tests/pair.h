/* SPDX-License-Identifier: MIT */
/* pair.h - two definitions, def-a and def-b, for the classes of a pooled dispatcher.  A task
 * returns what it was told: "a fake:0 data= env=-". */
#ifndef T_PAIR_H
#define T_PAIR_H

#include "pooled.h"

enum { T_BROKEN, T_UPS, T_STARTS }; /* words */
/* What a task of tag T_GATED + n waits for: word T_WORDS - 1 is n at least. */
enum { T_GATED = 1000, T_GATE = T_WORDS - 1 };

void t_pair_init(void);
/* The second word of the result is the worker's devices, as the event has them. */
void t_check_result(const struct t_log *log, uint64_t tag, const char *text);
/* What the events CLASS of a class say, one after the other. */
void t_check_changes(const struct t_log *log, const char *name, const char *wanted);

#endif
