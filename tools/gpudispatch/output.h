/* SPDX-License-Identifier: MIT */
/*
 * output.h - standard output, or a file that is written whole or not at all.
 *
 * The file is written beside its name and renamed.  If that fails, or a signal ends the program,
 * the file of before is unchanged, and nothing else is left.  What is no regular file, such as
 * /dev/stdout or a pipe, is written as it is.
 */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <stdio.h>

#include "tools/cli/verb.h"

struct output {
    FILE *f;
    const char *name; /* as the user has it; NULL: standard output */
    char *path;       /* of a regular file, beyond links; NULL: it is written as it is */
    int fd, error;    /* error: errno of the first write that failed */
};

/* The value of --output.  Without it `file`, a document that is not for terminals, if standard
 * output is one; else NULL. */
const char *output_name(const struct call *call, const char *file);
/* Prints the name of a file that the user did not name. */
void output_say(const struct call *call, const char *name);

/* NULL and "-" are standard output.  0, or EXIT_FAILED after saying why. */
int output_open(struct output *o, const char *name);
/* With a status other than 0 nothing is kept.  Returns the status, or EXIT_FAILED after saying why
 * the file could not be written. */
int output_close(struct output *o, int status);

#endif
