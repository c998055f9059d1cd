/* SPDX-License-Identifier: MIT */
/*
 * log.h - the text of what the core was fed and of what it did: a log, and a script of tests/sched.
 *
 *     # a comment                           anywhere, on a line of its own
 *     set grace=500ms                       settings that are not the default, before all else
 *     device 0 kill_limit=60s
 *     slot 0 devices=0
 *
 *     @1075ms time                          a step: what the core was fed, and when
 *     ----
 *     LOOK s=0                              its effects
 *
 *     running s=0 t=0 at=1095ms             without @ it has the time of the step before
 *     ----
 *     KILL_AT s=0 t=0 at=1095ms
 *     slot 0 DOOMED
 *
 *     @1096ms send                          submit, send, end, decide: the core's direct calls
 *     ----
 *     sent s=1 t=3 c=0
 *     task 2 TIMEOUT HARD attempts=1 why=limit
 *
 * Steps are in lower case, actions in upper case, and a blank line ends the effects.  Several steps
 * may stand together: the effects of all of them follow.  Times have a unit: s, ms, us, ns, or are
 * "never".  A field that has its default is left out, and so is a slot or device that an action
 * does not have.  Events, actions, their fields and words are those of sched/event.h.
 *
 * One record is one line.  What is written is read as an equal record, and every text is either
 * read or refused with a reason: it may come from anywhere.
 */
#ifndef GPI_SIM_LOG_H
#define GPI_SIM_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/sched.h"

#define GPI_LOG_LINE_SIZE 512u  /* of the longest text, with its 0 byte */
#define GPI_LOG_ERROR_SIZE 256u
#define GPI_LOG_DEVICES 16u     /* of a slot, at most */

enum gpi_log_kind {
    GPI_LOG_BLANK,
    GPI_LOG_COMMENT, /* its text is not kept */
    GPI_LOG_RULE,    /* ---- */
    GPI_LOG_SET,
    /* steps; the first two have no time */
    GPI_LOG_DEVICE,
    GPI_LOG_SLOT,
    GPI_LOG_EVENT,
    GPI_LOG_SUBMIT,
    GPI_LOG_SEND,
    GPI_LOG_END,
    GPI_LOG_DECIDE,
    /* effects */
    GPI_LOG_ACTION,
    GPI_LOG_SENT,
    GPI_LOG_ENDED
};

struct gpi_log_line {
    uint32_t kind; /* enum gpi_log_kind */
    bool stamped;  /* a step with a time of its own */
    uint64_t now;  /* that time; also in event.now */
    union {
        struct {
            uint32_t which; /* an index of log.c */
            uint64_t value;
        } set;
        struct {
            uint32_t device;
            bool watched;
            uint64_t kill_limit;
        } device;
        struct {
            uint32_t slot, n;
            uint16_t device[GPI_LOG_DEVICES];
        } slot;
        struct gpi_sched_event event;
        struct {
            uint32_t task;
            struct gpi_sched_task what;
        } submit;
        struct {
            uint32_t task, outcome, phase;
        } end;
        struct gpi_sched_action action;
        struct {
            uint32_t slot, task, cell;
        } sent;
        struct gpi_sched_end ended;
    };
};

/* Reads a line of `size` bytes, without its line end.  False: *reterr has the reason. */
bool gpi_log_read(struct gpi_log_line *ret, const char *text, size_t size,
                  char reterr[GPI_LOG_ERROR_SIZE]);
/* Writes a line, without a line end.  Returns `to`. */
const char *gpi_log_write(char to[GPI_LOG_LINE_SIZE], const struct gpi_log_line *l);

/* What holds where a log sets nothing: the defaults of the public options, and room for scripts. */
void gpi_log_defaults(struct gpi_sched_settings *ret);
/* Does what a line of kind SET says. */
void gpi_log_set(struct gpi_sched_settings *set, const struct gpi_log_line *l);
/* The line of the next setting that has not its default; *at is 0 before the first.  False: there
 * is none left. */
bool gpi_log_setting(struct gpi_log_line *ret, const struct gpi_sched_settings *set, uint32_t *at);

#endif
