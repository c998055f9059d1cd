/* SPDX-License-Identifier: MIT */
/*
 * template.h - names in braces, which values replace: the one grammar of submit and start.
 *
 * A place is a run of `{`, a NAME ([A-Za-z_][A-Za-z0-9_-]*, or nothing), and a run of `}`.  n is
 * the shorter run's length; further braces of the longer run are text.
 *
 *     {NAME}       its value
 *     {{NAME}}     the text {NAME}
 *     {{{NAME}}}   its value in braces, and so on: pairs of braces are one as text, and the brace
 *                  that is left over stands for the value
 *     ${NAME}      untouched: a variable of a shell
 *     ${{NAME}}    a dollar and the value
 *
 * All else is untouched: {a,b}, {"x":1}, {print $1}.  So is a place whose NAME is not known.
 *
 * Each sequence of text and values has exactly one spelling in this grammar.  Therefore a submit,
 * which replaces columns, can write any text in such a way that the agent, which replaces the names
 * below at the start of an attempt, makes exactly that text of it.
 */
#ifndef GPQ_JOBS_TEMPLATE_H
#define GPQ_JOBS_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "queue/jobs/texts.h"

/* The names of the start, whose values only the agent knows. */
enum gpq_start {
    GPQ_START_GPU,  /* {gpu}: the GPUs of the task */
    GPQ_START_GPUS, /* {gpus}: how many */
    GPQ_START_PORT, /* {port}: a free TCP port, kept for the task */
    GPQ_START_TASK, /* {task}: its id, 12.44 */
    GPQ_START_OUT,  /* {out}: the directory of its outputs */
    GPQ_STARTS,
};

/* Returns GPQ_STARTS if the name is none of them. */
enum gpq_start gpq_start_named(const char *name, size_t size);

/* ---- The start ---- */

/* Returns the names of the start that occur in the text and stand for their values: a mask of
 * 1 << enum gpq_start. */
uint32_t gpq_template_starts(const char *text);
/* Returns the text with these values, to be freed; NULL: no memory.  A value that is NULL leaves
 * its places as they are. */
char *gpq_template_start(const char *text, const char *const values[GPQ_STARTS]);

/* ---- The submit ---- */

/*
 * Takes a text apart: texts 0, 2, ... are text, and 1, 3, ... the names between them, in order.
 * With any_name each place has a known name, the empty one included; else those of the start do.
 * false: no memory.
 */
bool gpq_template_read(const char *text, bool any_name, struct gpq_texts *ret_parts);

/*
 * Adds the parts to `out` as one more text.  values has an entry for each name; NULL leaves a name
 * of the start to the agent, and is allowed for no other name.  In `out` such a name is a single
 * byte that is no UTF-8, until gpq_template_write spells it.  *ret_starts is set if there is one.
 * Returns 0, GPQ_ENOMEM, or GPQ_EINVAL if the text has more than `most` bytes.
 */
int gpq_template_fill(const struct gpq_texts *parts, const char *const *values, size_t most,
                      struct gpq_texts *out, bool *ret_starts);
/* Adds such a text to `out` as the agent reads it; false: no memory. */
bool gpq_template_write(const char *filled, struct gpq_texts *out);

#endif
