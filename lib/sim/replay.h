/* SPDX-License-Identifier: MIT */
/*
 * replay.h - feeds the steps of a log to a fresh core.  It compares the core's effects with the
 * effects in the log, or rewrites the log.
 *
 * A replay performs no actions.  In a script, the replies to actions are steps of their own.
 */
#ifndef GPI_SIM_REPLAY_H
#define GPI_SIM_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/log_read.h"

struct gpi_replay {
    /* Set by the caller. */
    FILE *rewritten; /* receives the text with the core's current effects, or NULL.  Comments and
                      * blank lines stay; one among effects keeps the number of effects before it */
    bool cut;        /* the process that wrote the log may have died: then a last line without its
                      * line end does not count, and the last step may lack effects */
    /* The replay calls them after it creates and before it destroys the core; may be NULL. */
    void (*begin)(struct gpi_sched *core, void *user);
    void (*end)(struct gpi_sched *core, void *user);
    void *user;
    /* Set by the replay. */
    uint32_t line;   /* from 1: the line that the replay reads, at the end the line of the result */
    uint32_t steps;
    bool was_cut;    /* the log ends with "cut" */
    bool torn;       /* its last line has no line end, and did not count */
    char wanted[GPI_LOG_LINE_SIZE], got[GPI_LOG_LINE_SIZE]; /* DIFFERS: one may be "nothing" */
    char error[GPI_LOG_ERROR_SIZE];                         /* BAD */
};

enum gpi_replay_result {
    GPI_REPLAY_EQUAL,
    GPI_REPLAY_DIFFERS, /* the first difference; a rewrite continues after it */
    GPI_REPLAY_BAD      /* not a log, or a step that no caller of the core may take */
};

enum gpi_replay_result gpi_replay(struct gpi_replay *r, const char *text, size_t size);

/* Returns the text of a file, which the caller frees; NULL with errno. */
char *gpi_replay_file(const char *path, size_t *ret_size);

#endif
