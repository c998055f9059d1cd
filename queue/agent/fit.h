/* SPDX-License-Identifier: MIT */
/* fit.h - which of its needs keeps a task from ever starting here. */
#ifndef GPQ_AGENT_FIT_H
#define GPQ_AGENT_FIT_H

#include "queue/agent/needs.h"

/* Whether a command with this variant alone could ever start.  Without a dispatcher it could. */
bool gpq_fits(struct gpq_agent *a, const struct gpud_request *r);

/* The first need that cannot be met, and what there is. */
struct gpq_misfit {
    const char *member; /* of the JSON of the needs; NULL: each alone can be met */
    char value[160];    /* as its option has it: 9, 900G, 10.0; or all of them, as options */
    char why[256];
};

/* Whether no command with these needs could ever start, and why: the first variant counts. */
bool gpq_misfit(struct gpq_agent *a, const struct gpq_needs *n, struct gpq_misfit *ret);

#endif
