/* SPDX-License-Identifier: MIT */
/* scratch.h - a directory for the files of a cell. */
#ifndef BENCH_SCRATCH_H
#define BENCH_SCRATCH_H

#define B_SCRATCH_FILES 4

struct b_scratch {
    char *folder;
    char *path[B_SCRATCH_FILES];
    int n;
};

/* Makes the directory.  0 or -1. */
int b_scratch_open(struct b_scratch *s);

/* Returns the path of a file in it that does not exist yet; NULL after a complaint. */
const char *b_scratch_path(struct b_scratch *s, const char *name);

/* Removes the directory and those files. */
void b_scratch_close(struct b_scratch *s);

#endif
