/* SPDX-License-Identifier: MIT */
/*
 * split.h - a command of the config file as its words.
 */
#ifndef GPQ_CONFIG_SPLIT_H
#define GPQ_CONFIG_SPLIT_H

#include "queue/store.h"

/*
 * Splits a text at blanks as a shell does, without its expansions: quotes of both kinds keep
 * blanks together, and a backslash keeps the next character, but not in single quotes.  In
 * double quotes a backslash stays unless a double quote or a backslash follows.
 *
 * *ret is a list that ends with NULL, in one block that the caller frees.  Returns the number
 * of words, or EINVAL: a quote is left open, or a backslash is last; ENOMEM.
 */
int gpq_split_words(const char *text, char ***ret, struct gpq_error *e);

#endif
