/* SPDX-License-Identifier: MIT */
/* source.h - where snapshots come from: an agent, or a recording. */
#ifndef SOURCE_H
#define SOURCE_H

#include "tools/cli/verb.h"
#include "view/now/snapshot.h"

/* What a source can do. */
struct source {
    /* Waits for the next snapshot: 1 with *ret, which the caller frees; 0: there is none yet, if
     * `wait` is false; -1: there will be none, with the reason in `end`. */
    int (*next)(struct source *s, bool wait, struct gpv_snapshot *ret);
    void (*close)(struct source *s);
    int fd;     /* readable: `next` may have one; -1: none */
    bool still; /* a recording: its time stands still, and no agent can be asked */
    bool seeks; /* set by the caller: an agent that goes is `lost`.  Without a wait, calls return 0
                   until there is another one; else one of them waits for it */
    bool lost;
    char end[160];
    void *user;
};

/*
 * That which --from, or else --state-dir, names.  what: the parts of the snapshots of an agent, up
 * to a NULL; NULL: all but metrics (docs/reference/queue-protocol.md, watch).  every: ns between
 * two of them, at least; 0: as often as the agent sends them.  0, or the exit status after saying
 * why.  The caller closes in both cases.
 */
int source_open(struct source *s, const struct call *call, const char *const *what, uint64_t every);

#endif
