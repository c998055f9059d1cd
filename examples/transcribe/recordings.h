/* SPDX-License-Identifier: MIT */
/*
 * recordings.h - owns the list of what is transcribed.
 */
#ifndef TRANSCRIBE_RECORDINGS_H
#define TRANSCRIBE_RECORDINGS_H

#include <stddef.h>
#include <stdint.h>

struct recording {
    char *path;     /* what the worker opens */
    char *name;     /* what people see: relative, without ".g722" */
    uint64_t bytes; /* 0 when there is no such file: the worker will say so */
};

struct recordings {
    struct recording *items;
    size_t n;
    size_t room;
};

/* Each function that adds: returns 0, or an errno value; what was added before stays. */

/* Adds one file under the name it was given by. */
int recordings_add_file(struct recordings *list, const char *path);

/* Adds the 60 fixed prompts (recordings.c says how they were chosen). */
int recordings_add_fixed(struct recordings *list, const char *dir);

/* Adds every .g722 file below a directory, in byte order of the names. */
int recordings_add_all(struct recordings *list, const char *dir);

/* Frees the list and leaves it empty. */
void recordings_free(struct recordings *list);

#endif
