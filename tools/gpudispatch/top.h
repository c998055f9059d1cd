/* SPDX-License-Identifier: MIT */
/* top.h - the verb top. */
#ifndef TOP_H
#define TOP_H

#include "source.h"
#include "view/top/top.h"

int top_run(const struct call *call);

/* top_screen.c: shows the snapshots on the terminal until a key or a signal ends it.  Returns the
 * exit status; -1: there is no entry for the terminal, which was said. */
int top_screen(const struct call *call, struct source *source, bool ascii);

/* The time that a screen of this snapshot shows. */
int64_t top_now(const struct source *source, const struct gpv_snapshot *s);

#endif
