/* SPDX-License-Identifier: MIT */
/*
 * dump.h - everything that a store shows, as text: equal states have equal texts.
 *
 * Bytes longer than 16 are shown as a hash.
 */
#ifndef T_DUMP_H
#define T_DUMP_H

#include "queue/store.h"
#include "text.h"

/* Adds the whole state.  Returns 0, or the code with which a reader has failed. */
int dump(struct gpq_store *s, struct text *t, struct gpq_error *e);

#endif
