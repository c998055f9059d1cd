/* SPDX-License-Identifier: MIT */
/*
 * placeholders.h - names in the arguments of a command that get a value when an attempt starts.
 *
 *     {gpu}    the indices of its GPUs, separated by commas: 4,5; nothing without GPUs
 *     {gpus}   the number of its GPUs
 *     {port}   a TCP port of this attempt (ports.h)
 *     {task}   the id of the task: 12.44
 *     {out}    the directory of $GPUDISPATCH_OUT
 *
 * A name in doubled braces is a text: {{gpu}} becomes {gpu}.  Directly behind a dollar sign both
 * forms stay as they are, since ${gpu} is a variable of a shell.  All other bytes stay, too.
 */
#ifndef GPQ_AGENT_PLACEHOLDERS_H
#define GPQ_AGENT_PLACEHOLDERS_H

#include <stdbool.h>
#include <stddef.h>

enum gpq_placeholder {
    GPQ_PLACEHOLDER_GPU,
    GPQ_PLACEHOLDER_GPUS,
    GPQ_PLACEHOLDER_PORT,
    GPQ_PLACEHOLDER_TASK,
    GPQ_PLACEHOLDER_OUT,
    GPQ_PLACEHOLDERS
};

/* The value of each name. */
struct gpq_placeholders {
    const char *value[GPQ_PLACEHOLDERS];
};

/* Whether one of the texts, of which a NULL pointer is the last, has the name. */
bool gpq_placeholders_use(char *const *texts, enum gpq_placeholder name);

/* Returns the texts with the values in place of the names, in one block that the caller frees.
 * NULL: no memory. */
char **gpq_placeholders_replace(char *const *texts, const struct gpq_placeholders *values);

#endif
