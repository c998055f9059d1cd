/* SPDX-License-Identifier: MIT */
/*
 * log.h - the text form of the core's steps and effects, for logs and the scripts of tests/sched.
 *
 *     # a comment                           anywhere, on a line of its own
 *     set grace=500ms                       a setting that differs from its default; first of all
 *     device 0 kill_limit=60s
 *     slot 0 devices=0
 *     set grace=1s                          settings of a further class
 *     class 1                               it has all settings as they are now
 *     fact class 0 residence=resident ...   pooled: what the next class or device is for the plan
 *     fact plan cpus=4                      (log/fact.h); the core is pooled
 *     @1s fact foreign d=0 memory=3GiB      a reading; in OBSERVED, w= is a slot
 *
 *     @1075ms time                          a step: an input of the core, and its time
 *     ----
 *     LOOK s=0                              the effects of the step
 *
 *     running s=0 t=0 at=1095ms             a step without @ has the time of the step before
 *     ----
 *     KILL_AT s=0 t=0 at=1095ms
 *     slot 0 DOOMED
 *
 *     submit t=4 class=1 order=9 need=devices:1,memory:4GiB    a task with a request of its own
 *
 *     @1096ms send                          submit, send, end, decide: the core's direct calls
 *     ----
 *     sent s=1 t=3 c=0
 *     task 2 TIMEOUT HARD attempts=1 why=limit
 *
 *     @1097ms end t=3 outcome=ERROR phase=PROCESS run=1ms share=1ms
 *     ----
 *     task 3 ERROR PROCESS attempts=1 again      the attempt ended so, and another one follows
 *
 * Steps are in lower case and actions in upper case.  A blank line ends the effects.  Several steps
 * may form one group: the effects of all its steps follow the last step.  A time has a unit (s, ms,
 * us, ns) or is "never".  The writer omits a field that has its default, and a slot or device that
 * the action lacks.  sched/event.h defines the events, the actions, their fields and their words.
 *
 * Some comments have facts for readers, such as `gpudispatch report`, which no replay needs.  Each
 * has a noun, a number, a word, and a text up to the end of the line, in which control characters
 * and '\' are \xHH:
 *
 *     # host 0 name HOSTNAME
 *     # clock 2840172539996 wall 1764433713000000000    ns: a time of the log, and since 1970
 *     # device 0 name gpu:0          before the line of the device; also uuid, index, model, pci,
 *                                    profile and parent
 *     # class 1 name whisper         before the line of the class
 *     # task 17 label chapter 3      before the submit of the task
 *     # task 17 end killed by signal 9    below the end of an attempt: why it ended so
 *
 * The line "cut" may be the last one: the log lacks all later steps, and its last step may lack
 * effects.
 *
 * One record is one line.  sim/log_read.h turns each written line into an equal record.
 */
#ifndef GPI_LOG_LOG_H
#define GPI_LOG_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sched/sched.h"
#include "log/fact.h"

/* Comments of a dispatcher's log.  The first line has its writer's version behind the words.  The
 * last line is there if the dispatcher was destroyed, and the log was not cut. */
#define GPI_LOG_HEADING "# decision log"
#define GPI_LOG_ENDING "# end"
#define GPI_LOG_LINE_SIZE (GPI_FACT_LINE_SIZE + 8u) /* of the longest line, with its 0 byte */
#define GPI_LOG_DEVICES 16u     /* of a slot, at most */

enum gpi_log_kind {
    GPI_LOG_BLANK,
    GPI_LOG_COMMENT, /* the record does not keep its text */
    GPI_LOG_RULE,    /* ---- */
    GPI_LOG_CUT,     /* the writer has left out everything from here on */
    GPI_LOG_SET,
    /* steps; FACT, CLASS, DEVICE and SLOT have no time */
    GPI_LOG_FACT, /* of kind PLAN, CLASS or DEVICE; FOREIGN, OBSERVED, ADOPT, ...: with a time */
    GPI_LOG_CLASS,
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
        struct gpi_fact fact;
        struct {
            uint32_t class;
        } class;
        struct {
            uint32_t device;
            bool watched;
            uint64_t kill_limit;
        } device;
        struct {
            uint32_t slot, n;
            uint16_t device[GPI_LOG_DEVICES];
            uint32_t class;
        } slot;
        struct gpi_sched_event event;
        struct {
            uint32_t task;
            struct gpi_sched_task what; /* without the pointer to its requests: */
            struct gpi_request request[GPI_VARIANTS];
        } submit;
        struct gpi_sched_attempt end;
        struct gpi_sched_action action;
        struct gpi_sched_order sent;
        struct gpi_sched_end ended;
    };
};

/* Writes a line, without a line end.  Returns `to`. */
const char *gpi_log_write(char to[GPI_LOG_LINE_SIZE], const struct gpi_log_line *l);

/* Sets the values that a log without `set` lines has: the defaults of the public options, and
 * enough slots, devices and tasks for scripts. */
void gpi_log_defaults(struct gpi_sched_settings *ret);
/* Applies a line of kind SET to *set. */
void gpi_log_set(struct gpi_sched_settings *set, const struct gpi_log_line *l);
/* Returns true if the line of kind SET has a setting of a class. */
bool gpi_log_sets_class(const struct gpi_log_line *l);
/* Returns true if the step happens at a time. */
bool gpi_log_has_time(const struct gpi_log_line *l);
/* Returns the line of the next setting that *set has unlike *before.  *at is 0 before the first
 * call.  Returns false after the last such setting. */
bool gpi_log_setting(struct gpi_log_line *ret, const struct gpi_sched_settings *before,
                     const struct gpi_sched_settings *set, uint32_t *at);

#endif
