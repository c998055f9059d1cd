/* SPDX-License-Identifier: MIT */
/*
 * recordings.h - owns the list of recordings.
 */
#ifndef TRANSCRIBE_RECORDINGS_H
#define TRANSCRIBE_RECORDINGS_H

#include <stddef.h>
#include <stdint.h>

struct recording {
    char *path;     /* the file that the worker opens */
    char *name;     /* the name in the output: relative, without ".g722" */
    uint64_t bytes; /* 0 if there is no such file: the task of this file then ends ERROR */
};

struct recordings {
    struct recording *items;
    size_t n;
    size_t room;
};

/* The functions that add return 0 or an errno value.  Earlier entries stay in any case. */

/* Adds one file under its path as name. */
int recordings_add_file(struct recordings *list, const char *path);

/* Adds the 60 fixed prompts; recordings.c has the rule that chose them. */
int recordings_add_fixed(struct recordings *list, const char *dir);

/* Adds every .g722 file below a directory, in byte order of the names. */
int recordings_add_all(struct recordings *list, const char *dir);

/* Frees the list and leaves it empty. */
void recordings_free(struct recordings *list);

#endif
