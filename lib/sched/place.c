/* SPDX-License-Identifier: MIT */
#include "sched/place.h"

#define DEPTH_MIN 2u
#define DEPTH_MAX 64u
#define SHORT_RUN_NS 500000u  /* below this, more than 2 are sent ahead */
#define AHEAD_NS 1000000u     /* about this much work */
#define STUCK_RUNS 4u         /* so many mean runs without a word: this one is not like the others */
#define QUIET_NS 1000000u     /* a worker silent for this long runs a long task: what waits behind it may be had */

void gpi_placer_begin(struct gpi_placer *p, struct gpi_load *load, uint32_t n)
{
    *p = (struct gpi_placer){ .load = load, .n = n, .level = UINT32_MAX };
    for (uint32_t i = 0; i < n; i++)
        if (load[i].sent < p->level)
            p->level = load[i].sent;
}

uint32_t gpi_placer_next(struct gpi_placer *p)
{
    while (p->n > 0) {
        struct gpi_load *l;
        if (p->cursor >= p->n) {
            p->cursor = 0;
            p->level++;
        }
        l = &p->load[p->cursor];
        if (l->sent > p->level) {
            p->cursor++;
            continue;
        }
        l->sent++;
        if (--l->room > 0) {
            p->cursor++;
            return l->slot;
        }
        uint32_t slot = l->slot; /* full: the others close up, order kept */
        p->n--;
        for (uint32_t i = p->cursor; i < p->n; i++)
            p->load[i] = p->load[i + 1];
        return slot;
    }
    return GPI_PLACER_FULL;
}

uint32_t gpi_place_depth(uint64_t mean_run)
{
    uint64_t depth;

    if (mean_run == 0 || mean_run >= SHORT_RUN_NS)
        return DEPTH_MIN;
    depth = AHEAD_NS / mean_run;
    return depth < DEPTH_MIN ? DEPTH_MIN : depth > DEPTH_MAX ? DEPTH_MAX : (uint32_t)depth;
}

uint64_t gpi_place_stuck_at(uint64_t last_heard, uint64_t mean_run)
{
    uint64_t patience = mean_run > UINT64_MAX / 8 ? UINT64_MAX / 2 : mean_run * STUCK_RUNS;

    return last_heard + (patience > QUIET_NS ? patience : QUIET_NS);
}

int gpi_place_recall(uint32_t sent, uint64_t quiet)
{
    return sent >= 2 && quiet >= QUIET_NS;
}
