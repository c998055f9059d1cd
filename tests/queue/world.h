/* SPDX-License-Identifier: MIT */
/*
 * world.h - two stores to which the same random operations are applied, one after the other.
 *
 * What operation number n of a world does depends on the seed, on n and on the tasks that the model
 * has, so that leaving out an operation leaves the others what they were, as far as that can be.
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
    uint64_t span[SPANS][STORES]; /* what span_begin has returned */
    uint32_t n_spans, kept_spans; /* kept: at the last commit */
    struct view said;             /* the operation, for a person */
    struct view got[STORES];      /* what it returned */
};

uint64_t world_below(struct world *w, uint64_t n);
bool world_once_in(struct world *w, uint64_t n);

/* Applies an operation to both stores, within a transaction. */
void world_operate(struct world *w);

#endif
