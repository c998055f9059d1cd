/* SPDX-License-Identifier: MIT */
/*
 * soon.c - the k smallest times of a plan against a sorted copy of all.
 */
#include "harness.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sched/soon.h"

enum { PLACES = 150, RANDOM_OPS = 100000 };

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

struct model {
    uint64_t time[PLACES];
    uint32_t n;
};

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The k-th smallest of both models. */
static uint64_t model_last(const struct model *m, uint32_t k)
{
    uint64_t all[2 * PLACES];
    uint32_t n = 0;

    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t j = 0; j < m[i].n; j++)
            all[n++] = m[i].time[j];
    qsort(all, n, sizeof *all, compare);
    return k <= n ? all[k - 1] : UINT64_MAX;
}

/* Few times, so that equal ones are common; and some that never come. */
static uint64_t draw_time(uint64_t *seed)
{
    return draw(seed) % 10 == 0 ? UINT64_MAX : draw(seed) % 10 == 0 ? 0 : draw(seed) % 100;
}

static void change(struct model *m, struct gpi_soon *s, uint64_t grow, uint64_t *seed)
{
    const uint64_t time = draw_time(seed);
    const uint64_t how = draw(seed) % 100;

    if (how < grow && m->n < PLACES) {
        m->time[m->n++] = time;
        gpi_soon_push(s, time);
    } else if (how < 60 && m->n > 0) {
        m->n--;
        gpi_soon_pop(s);
    } else if (m->n > 0) {
        const uint32_t place = (uint32_t)(draw(seed) % m->n);
        m->time[place] = time;
        gpi_soon_set(s, place, time);
    }
    T_EQ(s->n, m->n);
}

T_LONG_CASE(random_ops, 120)
{
    static struct model m[2];
    struct gpi_soon s[2];
    uint64_t seed = 0x9e3779b97f4a7c15U;

    memset(m, 0, sizeof m);
    T_EQ(gpi_soon_init(&s[0], PLACES), 0);
    T_EQ(gpi_soon_init(&s[1], PLACES), 0);
    for (uint32_t i = 0; i < t_rounds(RANDOM_OPS, RANDOM_OPS / 10); i++) {
        const uint32_t k = 1 + (uint32_t)(draw(&seed) % GPI_SOON_MOST), which = draw(&seed) % 2;
        struct gpi_soonest found;
        change(&m[which], &s[which], i / 2000 % 2 ? 20 : 45, &seed);
        gpi_soonest_begin(&found, k, 0);
        gpi_soonest_among(&found, &s[0]);
        gpi_soonest_among(&found, &s[1]);
        for (uint32_t j = 1; j <= k; j++)
            T_CHECK((j <= found.n ? found.time[j - 1] : UINT64_MAX) == model_last(m, j));
        T_CHECK(gpi_soonest_last(&found) == model_last(m, k));
    }
    gpi_soon_fini(&s[0]);
    gpi_soon_fini(&s[1]);
}

T_CASE(none)
{
    struct gpi_soon s;
    struct gpi_soonest found;

    T_EQ(gpi_soon_init(&s, 0), 0);
    gpi_soonest_begin(&found, GPI_SOON_MOST, 0);
    gpi_soonest_among(&found, &s);
    T_CHECK(gpi_soonest_last(&found) == UINT64_MAX);
    gpi_soon_fini(&s);
}

/* One of several places with the smallest time of their block changes. */
T_CASE(equal_times)
{
    struct gpi_soon s;
    struct gpi_soonest found;

    T_EQ(gpi_soon_init(&s, PLACES), 0);
    for (uint32_t i = 0; i < PLACES; i++)
        gpi_soon_push(&s, 7);
    gpi_soon_set(&s, 40, 8);
    for (uint32_t k = 1; k <= GPI_SOON_MOST; k++) {
        gpi_soonest_begin(&found, k, 0);
        gpi_soonest_among(&found, &s);
        T_EQ(gpi_soonest_last(&found), 7);
    }
    for (uint32_t i = 0; i < PLACES; i++)
        gpi_soon_set(&s, i, i == 149 ? 1 : 9);
    gpi_soonest_begin(&found, 2, 0);
    gpi_soonest_among(&found, &s);
    T_EQ(found.time[0], 1);
    T_EQ(found.time[1], 9);
    gpi_soon_fini(&s);
}
