/* SPDX-License-Identifier: MIT */
/*
 * check.h - names and values of keys.
 */
#ifndef GPQ_CONFIG_CHECK_H
#define GPQ_CONFIG_CHECK_H

#include "queue/config/config.h"

/* Whether a value is of the kind of its key.  EINVAL, with a text such as "'12x': expected ...". */
int gpq_key_check(enum gpq_key key, const char *value, struct gpq_error *e);

/* The key of this name in a kind of section, or GPQ_KEYS. */
enum gpq_key gpq_key_find(enum gpq_section_kind section, const char *name);

/* Writes the names of keys that are near to one that is none, ": did you mean gpus?"; or, if none
 * is near, "; the keys are ...", all of them. */
void gpq_key_suggest(enum gpq_section_kind section, const char *name, char *text, size_t size);

#endif
