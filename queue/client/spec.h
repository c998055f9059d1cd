/* SPDX-License-Identifier: MIT */
/*
 * spec.h - options of the command line, and of a line of a jobs file, as members of the protocol.
 */
#ifndef GPQ_CLIENT_SPEC_H
#define GPQ_CLIENT_SPEC_H

#include <jansson.h>

#include "queue/config/config.h"
#include "queue/store.h"
#include "tools/cli/verb.h"

/* Where options are put. */
struct gpq_members {
    const struct gpq_config *config; /* its sections [needs NAME] */
    uint64_t now;                    /* ns since 1970, for times such as +2h */
    json_t *spec, *task;             /* objects; NULL: its options are refused */
};

/*
 * Sets the members of one option; a later one counts.  Options that are no property of tasks
 * (--json) are left out.  0, or a negative GPQ_E code with *e filled: `--limit: '12x': ...`.
 */
int gpq_member_set(struct gpq_members *m, enum option_id option, const char *value,
                   struct gpq_error *e);

/* Sets those of all options of a call. */
int gpq_members_of_call(struct gpq_members *m, const struct call *call, struct gpq_error *e);

#endif
