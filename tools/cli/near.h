/* SPDX-License-Identifier: MIT */
/* near.h - names that resemble a misspelt one, for the ends of error texts. */
#ifndef CLI_NEAR_H
#define CLI_NEAR_H

#include <stddef.h>

enum { NEAR_MOST = 3 };

/*
 * The names that are nearest to a word, in the order of near_add.  A name is near if it begins with
 * the word, or if few letters must be added, removed, replaced or swapped with a neighbour.  The
 * case of letters does not count.
 */
struct near {
    const char *word;
    const char *name[NEAR_MOST];
    size_t n, changes; /* to each of them */
};

/* Keeps the name, not a copy, if none before is nearer. */
void near_add(struct near *near, const char *name);

/* Writes ": did you mean --wait or --watch?", with `dashes` before each name; "" if none is near.
 * Returns ret. */
char *near_text(const struct near *near, const char *dashes, char *ret, size_t size);

#endif
