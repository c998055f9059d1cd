/* SPDX-License-Identifier: MIT */
/*
 * memstore.h - an engine of the store in memory: the model that other engines are compared with.
 *
 * It is written to be read: whole tables, searched from their first row to their last; a
 * transaction copies them all, and a rollback puts the copy back.  Nothing reaches a disk.
 */
#ifndef T_MEMSTORE_H
#define T_MEMSTORE_H

#include "queue/store.h"

/* Opens a new, empty store.  Like gpq_sqlite_open, except that the directory is not used. */
int mem_open(const struct gpq_options *options, struct gpq_store **ret, struct gpq_error *e);

#endif
