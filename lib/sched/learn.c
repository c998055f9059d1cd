/* SPDX-License-Identifier: MIT */
/* learn.c - how long the last runs and boots of a class took. */
#include "sched/plan_parts.h"

#define ENOUGH 4u /* runs, before an estimate follows from them */
#define ONE 65536u

static uint16_t least_of(const struct gpi_learned *l)
{
    uint16_t least = UINT16_MAX;

    for (uint32_t i = 0; i < l->n; i++)
        if (l->ratio[i] < least)
            least = l->ratio[i];
    return least;
}

/* Rounded down, so that no end is plausible later than it was. */
static uint16_t ratio_of(uint64_t run, uint64_t limit)
{
    while (run > UINT64_MAX / ONE) {
        run /= 2;
        limit = limit / 2 + 1;
    }
    return (uint16_t)(run >= limit ? UINT16_MAX : run * ONE / limit);
}

void gpi_learn_run(struct gpi_learned *l, uint64_t run, uint64_t limit)
{
    uint16_t *ratio, before;

    if (limit == GPI_NEVER || limit == 0)
        return;
    ratio = &l->ratio[l->at];
    l->at = (l->at + 1) % GPI_LEARN;
    l->n = l->n < GPI_LEARN ? l->n + 1 : GPI_LEARN;
    before = *ratio;
    *ratio = ratio_of(run, limit);
    if (*ratio <= l->least && l->n > 1)
        l->least = *ratio;
    else if (before == l->least || l->n == 1)
        l->least = least_of(l);
}

uint64_t gpi_learn_plausible(const struct gpi_learned *l, uint64_t begun, uint64_t limit)
{
    if (l->n < ENOUGH || limit == GPI_NEVER)
        return begun;
    return gpi_time_add(begun, limit / ONE * l->least + limit % ONE * l->least / ONE);
}

/* By insertion: they are few. */
static void sort(const struct gpi_spell *s, uint64_t *ret)
{
    for (uint32_t i = 0, j; i < s->n; i++) {
        for (j = i; j > 0 && ret[j - 1] > s->last[i]; j--)
            ret[j] = ret[j - 1];
        ret[j] = s->last[i];
    }
}

/* The place of the percentile among `n` sorted times. */
static uint32_t rank(uint32_t n, uint32_t percent)
{
    return (n * percent + 99) / 100 - 1;
}

uint64_t gpi_learn_usual(const struct gpi_learned *l)
{
    return l->mean ? l->mean : l->run.p50;
}

void gpi_learn_spell(struct gpi_spell *s, uint64_t time)
{
    uint64_t sorted[GPI_LEARN] = { 0 };

    s->last[s->at] = time;
    s->at = (s->at + 1) % GPI_LEARN;
    s->n = s->n < GPI_LEARN ? s->n + 1 : GPI_LEARN;
    sort(s, sorted);
    s->p50 = sorted[rank(s->n, 50)];
}

struct gpi_plan_spell gpi_learn_times(const struct gpi_spell *s)
{
    uint64_t sorted[GPI_LEARN] = { 0 };

    if (s->n == 0)
        return (struct gpi_plan_spell){ 0, 0, 0 };
    sort(s, sorted);
    return (struct gpi_plan_spell){ sorted[rank(s->n, 10)], sorted[rank(s->n, 50)],
                                    sorted[rank(s->n, 90)] };
}
