/* SPDX-License-Identifier: MIT */
/*
 * make.h - one job in the making: its arguments and options are collected, and then a job.
 *
 * With a command of the command line, a job is made of values for the names in its templates: one
 * value for each occurrence, a slot.  Without, the caller adds the arguments.  Errors are EINVAL
 * and ENOMEM; their texts have no line number.
 */
#ifndef GPQ_JOBS_MAKE_H
#define GPQ_JOBS_MAKE_H

#include "queue/jobs/jobs.h"
#include "queue/jobs/texts.h"

struct gpq_make {
    const struct gpq_jobs_how *how;
    struct gpq_texts *templates; /* of the arguments, then of how->texts, in parts */
    size_t n_command, n_templates;
    size_t n_slots;
    const char **slots;  /* the name of each */
    const char **values; /* lent by the caller; NULL: left to the start of the attempt */

    struct gpq_texts argv, scratch;
    struct gpq_texts kept; /* texts of values */
    struct gpq_texts option_values;
    const char **option_names;
    size_t n_options, options_room;
    bool is_line, replace;

    /* Of the last job. */
    const char **arguments;
    struct gpq_job_option *options;
    size_t arguments_room, options_listed;
};

int gpq_make_open(struct gpq_make *m, const struct gpq_jobs_how *how, struct gpq_error *e);
void gpq_make_free(struct gpq_make *m);
/* Returns the option of how->known with this name, or NULL. */
const char *gpq_make_known(const struct gpq_make *m, const char *name);
size_t gpq_make_known_count(const struct gpq_make *m);

/* The names in the templates are {} and those of the start; with must, {} occurs. */
int gpq_make_has_one(const struct gpq_make *m, const char *what, bool must, struct gpq_error *e);
/* Fails since a name has no value: `{lrr}: why; {{lrr}} is the text itself`. */
int gpq_make_unknown(const char *name, const char *why, struct gpq_error *e);

/* Begins a job. */
void gpq_make_clear(struct gpq_make *m);
/* Its command is made of the values of the slots. */
int gpq_make_fill(struct gpq_make *m, struct gpq_error *e);
/* The same, with one value, that of {}. */
int gpq_make_one(struct gpq_make *m, const char *text, size_t size, struct gpq_error *e);
/* Its command is a line for the shell. */
int gpq_make_line(struct gpq_make *m, const char *text, size_t size, struct gpq_error *e);
/* Its command has one argument more. */
int gpq_make_argument(struct gpq_make *m, const char *text, size_t size, struct gpq_error *e);
/* Sets an option, whose name is lent. */
int gpq_make_option(struct gpq_make *m, const char *name, const char *value, struct gpq_error *e);
/* Names of the start in arguments that gpq_make_line and gpq_make_argument have added count. */
int gpq_make_starts(struct gpq_make *m, struct gpq_error *e);
/* Ends the job, which lives until the next one begins.  Its line is 0. */
int gpq_make_job(struct gpq_make *m, struct gpq_job *ret, struct gpq_error *e);

#endif
