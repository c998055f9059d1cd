/* SPDX-License-Identifier: MIT */
/* slow_devices.c - the rest of each device, and the wants of classes, counted anew. */
#include "sim/slow_state.h"

uint64_t gpi_slow_usable(const struct gpi_slow *m, uint32_t d)
{
    const uint64_t all = gpi_slow_all_usable(m, d), foreign = m->place[d].foreign;

    return foreign < all ? all - foreign : 0;
}

/* Returns the index of the device among those of the task, or NONE. */
static uint32_t index_of(const struct job *j, uint32_t d)
{
    for (uint32_t i = 0; i < j->n_devices; i++)
        if (j->device[i] == d)
            return i;
    return NONE;
}

static void use_memory(struct used *u, const struct gpi_request *r)
{
    u->runs++;
    u->alone += r->memory == GPI_MEMORY_ALL;
    u->memory += r->memory == GPI_MEMORY_ALL ? 0 : r->memory;
}

uint64_t gpi_slow_beyond(const struct hand *h, uint32_t d)
{
    for (uint32_t i = 0; i < h->n_devices; i++)
        if (h->device[i] == d)
            return h->beyond[i];
    return 0;
}

bool gpi_slow_stays(const struct gpi_slow *m, const struct hand *h)
{
    return m->class[h->class].set.residence == GPI_RESIDENT &&
           (h->state == BOOTS || h->state == UP);
}

struct used gpi_slow_used(const struct gpi_slow *m, uint32_t d)
{
    struct used u = { 0 };

    for (uint32_t t = 0; t < m->n_jobs; t++) {
        const struct job *j = &m->job[t];
        const struct gpi_request *r = &j->request[j->variant];
        const uint32_t at = j->state == RUNS ? index_of(j, d) : NONE;
        if (at == NONE)
            continue;
        if (j->hand == NONE) {
            use_memory(&u, r);
            u.memory += j->beyond[at];
        }
        u.share += j->hand == NONE ? r->share : m->hand[j->hand].need.share;
        u.end = j->end_by > u.end ? j->end_by : u.end;
        u.plausible = j->plausible > u.plausible ? j->plausible : u.plausible;
    }
    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *h = &m->hand[w];
        if (!gpi_slow_is_on(h, d))
            continue;
        use_memory(&u, &h->need);
        u.memory += gpi_slow_beyond(h, d);
        if (!gpi_slow_stays(m, h))
            u.end = NEVER;
        u.n_firm += gpi_slow_stays(m, h);
        u.firm_alone += gpi_slow_stays(m, h) && h->need.memory == GPI_MEMORY_ALL;
        if (gpi_slow_stays(m, h))
            u.firm += h->need.memory == GPI_MEMORY_ALL ? m->place[d].has.memory
                                                       : h->need.memory + gpi_slow_beyond(h, d);
    }
    return u;
}

bool gpi_slow_is_clear(const struct gpi_slow *m, const struct place *p)
{
    return p->foreign <= m->set.foreign_memory &&
           (m->set.foreign_load == 0 || p->load <= m->set.foreign_load);
}

uint32_t gpi_slow_share_of(const struct gpi_slow *m, const struct hand *h, uint32_t class,
                           const struct gpi_request *r, uint32_t d)
{
    const bool alike =
        m->class[class].set.residence == GPI_RESIDENT || gpi_request_same(&h->need, r);

    return (h->state == BOOTS || h->state == UP) && h->class == class && alike &&
                   gpi_slow_is_on(h, d)
               ? h->need.share
               : 0;
}

bool gpi_slow_is_staffed(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r)
{
    uint32_t cpus = r->cpus;

    if (cpus == 0 || m->class[class].set.residence != GPI_TRANSIENT)
        return false;
    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *h = &m->hand[w];
        if (h->class == class && (h->state == BOOTS || h->state == UP) &&
            gpi_request_same(&h->need, r))
            cpus += h->need.cpus;
    }
    return cpus > m->set.cpus;
}

static bool is_full(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r,
                    uint32_t d)
{
    uint32_t share = r->share;

    for (uint32_t w = 0; w < m->set.runs; w++)
        share += gpi_slow_share_of(m, &m->hand[w], class, r, d);
    return share > GPI_SHARE_ALL || gpi_slow_is_staffed(m, class, r);
}

/* Whether the device would do, without runs, which end on their own. */
bool gpi_slow_may_use(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r,
                      uint32_t d)
{
    const struct place *p = &m->place[d];
    struct used u;
    uint64_t room;

    if (r->devices == 0 || p->may != GPI_PLAN_IN || p->has.compute < r->compute ||
        (r->places != GPI_PLACES_ANY && !p->in_set[r->places]) || is_full(m, class, r, d))
        return false;
    u = gpi_slow_used(m, d);
    room = u.firm < gpi_slow_usable(m, d) ? gpi_slow_usable(m, d) - u.firm : 0;
    return !u.firm_alone &&
           (r->memory == GPI_MEMORY_ALL ? gpi_slow_is_clear(m, p) && u.n_firm == 0
                                        : r->memory <= room);
}

bool gpi_slow_has_memory(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r,
                         uint32_t d)
{
    const struct used u = gpi_slow_used(m, d);

    return gpi_slow_may_use(m, class, r, d) && !u.alone &&
           (r->memory == GPI_MEMORY_ALL
                ? u.runs == 0
                : r->memory == 0 || u.memory + r->memory <= gpi_slow_usable(m, d));
}

bool gpi_slow_fits(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r,
                   uint32_t d)
{
    return gpi_slow_used(m, d).share + r->share <= GPI_SHARE_ALL &&
           gpi_slow_has_memory(m, class, r, d);
}

/* ---- classes ---- */

uint32_t gpi_slow_queued(const struct gpi_slow *m, uint32_t class)
{
    uint32_t n = 0;

    for (uint32_t t = 0; t < m->set.tasks; t++)
        n += m->job[t].state == WAITS && m->job[t].what.class == class;
    return n + m->class[class].behind;
}

static uint64_t usual(const struct class *c)
{
    return c->mean ? c->mean : c->run.p50;
}

static bool wants_with(const struct gpi_slow *m, uint32_t class, uint32_t q)
{
    const struct class *c = &m->class[class];
    const uint32_t n = gpi_slow_hands(m, class);
    const bool lacks = n < gpi_slow_least_hands(c);
    uint32_t boots = 0;

    for (uint32_t w = 0; w < m->set.runs; w++)
        boots += m->hand[w].class == class && m->hand[w].state == BOOTS;
    return !c->paused && (q > boots || lacks) && n < c->set.max_workers && m->now >= c->again &&
           (n == 0 || lacks || q * (usual(c) / 1024) > n * (c->boot.p50 / 1024));
}

bool gpi_slow_wants(const struct gpi_slow *m, uint32_t class)
{
    return wants_with(m, class, gpi_slow_queued(m, class));
}

bool gpi_slow_wants_from(const struct gpi_slow *m, uint32_t class, uint32_t n)
{
    const uint32_t own = gpi_slow_queued(m, class) - m->class[class].behind;

    if (m->class[class].set.residence == GPI_EXTERNAL || n == UINT32_MAX)
        return n == UINT32_MAX && (m->class[class].set.residence == GPI_EXTERNAL ||
                                   !wants_with(m, class, own + (1u << 31)));
    return wants_with(m, class, own + n) && (n == 0 || !wants_with(m, class, own + n - 1));
}

/* Whether no worker of its class, which is transient, does for it. */
static bool is_strange(const struct gpi_slow *m, const struct job *j)
{
    return m->class[j->what.class].set.residence == GPI_TRANSIENT &&
           gpi_slow_is_cold(m, (uint32_t)(j - m->job));
}

static bool is_late(const struct gpi_slow *m, const struct job *j)
{
    return j < m->job + m->set.tasks &&
           m->now >= j->queued_at / 1000000 * 1000000 + m->class[j->what.class].boot.p50;
}

/* Whether it may boot a worker beside those of its class, which may be free sooner. */
static bool may_add(const struct gpi_slow *m, const struct job *j)
{
    const uint32_t class = j->what.class;
    const struct class *c = &m->class[class];
    bool boots = !is_late(m, j);

    for (uint32_t w = 0; w < m->set.runs; w++)
        boots |= m->hand[w].class == class && m->hand[w].state == BOOTS;
    return !c->paused && (!boots || is_strange(m, j)) && m->now >= c->again &&
           gpi_slow_hands(m, class) < c->set.max_workers;
}

/* Whether it begins something without an idle worker. */
bool gpi_slow_begins(const struct gpi_slow *m, const struct job *j)
{
    const struct class *c = &m->class[j->what.class];

    if (c->set.residence == GPI_EXTERNAL)
        return !c->paused;
    return gpi_slow_wants(m, j->what.class) || may_add(m, j);
}

bool gpi_slow_suits(const struct gpi_slow *m, const struct hand *h, const struct job *j)
{
    bool good = m->class[h->class].set.residence == GPI_RESIDENT;

    for (uint32_t v = 0; v < j->what.n_requests; v++)
        good |= gpi_request_same(&j->request[v], &h->need);
    return good;
}

bool gpi_slow_does(const struct gpi_slow *m, const struct hand *h, const struct job *j)
{
    return gpi_slow_suits(m, h, j) && h->class == j->what.class && h->state == UP &&
           !m->class[h->class].paused && j < m->job + m->set.tasks;
}

bool gpi_slow_is_warm(const struct gpi_slow *m, const struct job *j, uint32_t d)
{
    for (uint32_t w = 0; w < m->set.runs; w++)
        if (gpi_slow_does(m, &m->hand[w], j) && gpi_slow_is_on(&m->hand[w], d))
            return true;
    return false;
}
