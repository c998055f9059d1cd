/* SPDX-License-Identifier: MIT */
/*
 * world.h - two stores to which the same random operations are applied, one after the other.
 *
 * Operation number n of a world depends on the seed, on n and on the tasks that the model has.  So
 * a world without one operation has the other ones unchanged, as far as that can be.
 */
#ifndef T_QUEUE_WORLD_H
#define T_QUEUE_WORLD_H

#include "engines.h"
#include "view.h"

enum { MODEL, TESTED, STORES, SPANS = 64 };

struct world {
    struct gpq_store *store[STORES];
    uint64_t lot; /* state of the random numbers of this operation */
    uint64_t now;
    uint64_t span[SPANS][STORES]; /* the ids that span_begin returned */
    uint32_t n_spans, kept_spans; /* kept: at the last commit */
    struct view said;             /* the operation, for a person */
    struct view got[STORES];      /* its result */
};

uint64_t world_below(struct world *w, uint64_t n);
bool world_once_in(struct world *w, uint64_t n);

/* Applies an operation to both stores, within a transaction. */
void world_operate(struct world *w);

#endif
