/* SPDX-License-Identifier: MIT */
/*
 * replay.h - feeds the steps of a log to a fresh core, and compares what it does now with what is
 * written there, or writes that anew.
 *
 * In a script the answers to actions are steps, too: nothing is performed here.
 */
#ifndef GPI_SIM_REPLAY_H
#define GPI_SIM_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/log.h"

struct gpi_replay {
    /* Set by the caller. */
    FILE *rewritten; /* receives the text with the effects of now, or NULL.  Comments and blank
                      * lines stay, those between effects behind as many of them as before */
    bool cut;        /* whoever wrote the log may have died meanwhile: a last line without its end
                      * does not count, and the last step may lack effects */
    /* Filled. */
    uint32_t line;   /* during the replay the line that is read; then that of the result, from 1 */
    uint32_t steps;
    char wanted[GPI_LOG_LINE_SIZE], got[GPI_LOG_LINE_SIZE]; /* DIFFERS: one may be "nothing" */
    char error[GPI_LOG_ERROR_SIZE];                         /* BAD */
};

enum gpi_replay_result {
    GPI_REPLAY_EQUAL,
    GPI_REPLAY_DIFFERS, /* the first difference; a rewriting goes on behind it */
    GPI_REPLAY_BAD      /* no log, or no steps that a caller of the core may take */
};

enum gpi_replay_result gpi_replay(struct gpi_replay *r, const char *text, size_t size);

#endif
