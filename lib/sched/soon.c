/* SPDX-License-Identifier: MIT */
#include "sched/soon.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#define BLOCK 32u

int gpi_soon_init(struct gpi_soon *s, uint32_t most)
{
    const uint32_t blocks = most / BLOCK + 1;

    s->n = 0;
    s->time = malloc(sizeof *s->time * (most + BLOCK)); /* untouched until used */
    s->least = malloc(sizeof *s->least * blocks);
    s->stale = malloc(sizeof *s->stale * blocks);
    return s->time && s->least && s->stale ? 0 : -1;
}

void gpi_soon_fini(struct gpi_soon *s)
{
    free(s->time);
    free(s->least);
    free(s->stale);
}

/* Returns the number of places in the block. */
static uint32_t places_of(const struct gpi_soon *s, uint32_t block)
{
    const uint32_t rest = s->n - block * BLOCK;

    return rest < BLOCK ? rest : BLOCK;
}

static void find_least(struct gpi_soon *s, uint32_t block)
{
    const uint64_t *time = &s->time[block * BLOCK];
    const uint32_t n = places_of(s, block);
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < n; i++)
        least = time[i] < least ? time[i] : least;
    s->least[block] = least;
    s->stale[block] = false;
}

void gpi_soon_set(struct gpi_soon *s, uint32_t place, uint64_t time)
{
    const uint32_t block = place / BLOCK;
    const bool was_least = s->time[place] == s->least[block];

    assert(place < s->n);
    s->time[place] = time;
    if (time <= s->least[block]) {
        s->least[block] = time;
        s->stale[block] = false;
    } else if (was_least) {
        s->stale[block] = true;
    }
}

void gpi_soon_push(struct gpi_soon *s, uint64_t time)
{
    const uint32_t place = s->n++;

    s->time[place] = UINT64_MAX;
    if (place % BLOCK == 0)
        s->least[place / BLOCK] = UINT64_MAX;
    gpi_soon_set(s, place, time);
}

void gpi_soon_pop(struct gpi_soon *s)
{
    gpi_soon_set(s, s->n - 1, UINT64_MAX);
    s->n--;
}

void gpi_soonest_begin(struct gpi_soonest *found, uint32_t k, uint64_t enough)
{
    assert(k >= 1 && k <= GPI_SOON_MOST);
    found->k = k;
    found->n = 0;
    found->last = UINT64_MAX;
    found->enough = enough;
}

/* The time is smaller than the last one. */
static void put(struct gpi_soonest *found, uint64_t time)
{
    uint32_t i = found->n < found->k ? found->n++ : found->k - 1;

    for (; i > 0 && found->time[i - 1] > time; i--)
        found->time[i] = found->time[i - 1];
    found->time[i] = time;
    if (found->n == found->k)
        found->last = found->time[found->k - 1];
}

/* The smallest time of the block is among them already. */
static void put_others(struct gpi_soonest *found, const uint64_t *time, uint32_t n, uint64_t least)
{
    bool skipped = false;

    for (uint32_t i = 0; i < n; i++) {
        if (time[i] >= found->last)
            continue;
        if (time[i] == least && !skipped)
            skipped = true;
        else
            put(found, time[i]);
    }
}

/* First the smallest time of each block: then only a block that begins before the k-th of these can
 * have another one. */
void gpi_soonest_among(struct gpi_soonest *found, struct gpi_soon *s)
{
    const uint32_t blocks = (s->n + BLOCK - 1) / BLOCK;

    for (uint32_t b = 0; b < blocks; b++) {
        if (s->least[b] >= found->last)
            continue;
        if (found->last <= found->enough)
            return;
        if (s->stale[b])
            find_least(s, b);
        if (s->least[b] < found->last)
            put(found, s->least[b]);
    }
    for (uint32_t b = 0; b < blocks && found->k > 1; b++) {
        if (s->least[b] >= found->last)
            continue;
        if (found->last <= found->enough)
            return;
        put_others(found, &s->time[b * BLOCK], places_of(s, b), s->least[b]);
    }
}
