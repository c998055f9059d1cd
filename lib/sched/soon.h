/* SPDX-License-Identifier: MIT */
/*
 * soon.h - the k smallest of many times, each of a numbered place.
 *
 * The places are an array in blocks, and each block has its smallest time, which is found anew when
 * a question needs it.  A change costs a compare; a question costs a walk over the smallest times,
 * and over the few blocks that have a candidate.  Both walks are along memory.  For thousands of
 * places that is faster than a tree of nodes, which costs a cache miss per level.  One thread at a
 * time per object.
 */
#ifndef GPI_SCHED_SOON_H
#define GPI_SCHED_SOON_H

#include <stdbool.h>
#include <stdint.h>

#define GPI_SOON_MOST 16u /* the largest k */

struct gpi_soon {
    uint64_t *time;  /* of each place */
    uint64_t *least; /* of each block; if it is stale, none is smaller */
    bool *stale;     /* of each block: its smallest time has become a later one */
    uint32_t n;      /* places */
};

/* The k smallest times found so far, in order. */
struct gpi_soonest {
    uint32_t k, n; /* `n`: found so far */
    uint64_t last; /* the k-th smallest; UINT64_MAX: there are fewer */
    uint64_t enough;
    uint64_t time[GPI_SOON_MOST];
};

/* Prepares an object without places.  Returns: 0, or -1 if there is no memory for this many. */
int gpi_soon_init(struct gpi_soon *s, uint32_t most);
void gpi_soon_fini(struct gpi_soon *s);

void gpi_soon_set(struct gpi_soon *s, uint32_t place, uint64_t time);
/* Adds a place behind the last one, whose number is s->n before. */
void gpi_soon_push(struct gpi_soon *s, uint64_t time);
void gpi_soon_pop(struct gpi_soon *s); /* the last place */

/* A k-th time of at most `enough` is soon enough: it may be one that is not the smallest. */
void gpi_soonest_begin(struct gpi_soonest *found, uint32_t k, uint64_t enough);
/* Takes the places of `s` into account. */
void gpi_soonest_among(struct gpi_soonest *found, struct gpi_soon *s);
/* Returns the k-th smallest time; UINT64_MAX if there are fewer places. */
static inline uint64_t gpi_soonest_last(const struct gpi_soonest *found)
{
    return found->last;
}

#endif
