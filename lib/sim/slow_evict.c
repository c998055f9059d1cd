/* SPDX-License-Identifier: MIT */
/* slow_evict.c - which workers that stay could go for a task.                             [R6] */
#include "sim/slow_state.h"

/* Whether the worker could go now for this one. */
static bool may_go(const struct gpi_slow *m, const struct hand *h, uint32_t i)
{
    const struct job *j = &m->job[m->order[i]];
    const struct class *c = &m->class[h->class], *own = &m->class[j->what.class];
    const bool calm = h->job == NONE && (gpi_slow_queued(m, h->class) == 0 || c->paused);
    const bool cold = m->order[i] >= m->set.tasks || gpi_slow_hands(m, j->what.class) == 0;
    const bool pressed =
        cold && m->now >= gpi_time_add(j->queued_at / GPI_MS * GPI_MS, own->set.max_wait);

    return h->state == UP && h->class != j->what.class && !c->set.pinned &&
           m->now - h->since >= c->set.min_residence &&
           gpi_slow_hands(m, h->class) > c->set.min_workers && (calm || pressed);
}

static uint32_t movable(const struct gpi_slow *m, uint32_t class, uint32_t d, uint32_t i)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < m->set.runs; w++)
        n += m->hand[w].class == class && gpi_slow_is_on(&m->hand[w], d) &&
             may_go(m, &m->hand[w], i);
    return n;
}

/* Whether the device would do for it, without the workers that could go for it now. */
static bool could_clear(const struct gpi_slow *m, const struct gpi_request *r, uint32_t d,
                        uint32_t i)
{
    const struct place *p = &m->place[d];
    uint64_t firm = gpi_slow_used(m, d).firm;
    uint32_t n = gpi_slow_used(m, d).n_firm;

    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *h = &m->hand[w];
        if (!gpi_slow_stays(m, h) || !gpi_slow_is_on(h, d) || !may_go(m, h, i) ||
            movable(m, h->class, d, i) >
                gpi_slow_hands(m, h->class) - m->class[h->class].set.min_workers)
            continue;
        firm -= h->need.memory == GPI_MEMORY_ALL ? p->has.memory
                                                 : h->need.memory + gpi_slow_beyond(h, d);
        n--;
    }
    return p->may == GPI_PLAN_IN && p->has.compute >= r->compute &&
           (r->places == GPI_PLACES_ANY || p->in_set[r->places]) &&
           (r->memory == GPI_MEMORY_ALL
                ? gpi_slow_is_clear(m, p) && n == 0
                : firm <= gpi_slow_usable(m, d) && r->memory <= gpi_slow_usable(m, d) - firm);
}

/* Whether one before it could use the device, once those workers are gone. */
static bool is_preceded(const struct gpi_slow *m, uint32_t d, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++) {
        const struct job *j = &m->job[m->order[k]];
        bool begin = gpi_slow_begins(m, j);
        for (uint32_t w = 0; w < m->set.runs; w++)
            begin |= m->hand[w].state == UP && gpi_slow_is_on(&m->hand[w], d) &&
                     m->hand[w].class == j->what.class;
        for (uint32_t v = 0; v < j->what.n_requests && begin; v++)
            if (j->request[v].devices && !m->class[j->what.class].paused &&
                could_clear(m, &j->request[v], d, i))
                return true;
    }
    return gpi_slow_memory_head(m, d) < i;
}

bool gpi_slow_could_evict(const struct gpi_slow *m, uint32_t i)
{
    const struct job *j = &m->job[m->order[i]];

    for (uint32_t v = 0; v < j->what.n_requests && gpi_slow_begins(m, j); v++) {
        const struct gpi_request *r = &j->request[v];
        uint32_t has = 0, cleared = 0;
        for (uint32_t d = 0; d < m->n_places; d++)
            if (gpi_slow_may_use(m, r, d))
                has++;
            else
                cleared += could_clear(m, r, d, i) && !is_preceded(m, d, i);
        /* Of several devices one may have the worker that another needs to keep. */
        if (has + 1 == r->devices && cleared > 0)
            return true;
    }
    return false;
}
