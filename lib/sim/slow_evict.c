/* SPDX-License-Identifier: MIT */
/* slow_evict.c - which workers that stay could go for a task.                             [R6] */
#include "sim/slow_state.h"

bool gpi_slow_is_cold(const struct gpi_slow *m, uint32_t task)
{
    bool cold = true;

    for (uint32_t w = 0; w < m->set.runs && task < m->set.tasks; w++)
        cold &= m->hand[w].class != m->job[task].what.class ||
                (m->hand[w].state != BOOTS && m->hand[w].state != UP) ||
                !gpi_slow_suits(m, &m->hand[w], &m->job[task]);
    return cold;
}

bool gpi_slow_is_served(const struct gpi_slow *m, uint32_t task)
{
    return m->class[m->job[task].what.class].set.residence != GPI_EXTERNAL &&
           !gpi_slow_is_cold(m, task);
}

bool gpi_slow_is_pressed(const struct gpi_slow *m, uint32_t task)
{
    const struct job *j = &m->job[task];
    const struct class *c = &m->class[j->what.class];

    return gpi_slow_is_cold(m, task) &&
           m->now >= gpi_time_add(j->queued_at / GPI_MS * GPI_MS, c->set.max_wait);
}

/* Whether the worker could go now for this one, or when the oldest task of its class is known. */
static bool may_go(const struct gpi_slow *m, const struct hand *h, uint32_t i)
{
    const uint32_t class = m->job[m->order[i]].what.class;
    const struct class *c = &m->class[h->class];
    const bool calm = h->job == NONE && (gpi_slow_queued(m, h->class) == 0 || c->paused);

    return h->state == UP && h->class != class && !c->set.pinned &&
           m->now - h->since >= c->set.min_residence &&
           gpi_slow_hands(m, h->class) > c->set.min_workers &&
           (calm || gpi_slow_is_pressed(m, m->order[i]));
}

bool gpi_slow_is_ahead(const struct gpi_slow *m, const struct hand *h)
{
    const struct class *c = &m->class[h->class];
    bool is = h->job != NONE && m->job[h->job].ahead;

    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *other = &m->hand[w];
        is |= other->state != NO_HAND && other->class == h->class && other->job != NONE &&
              m->job[other->job].ahead && (c->behind || m->job[other->job].grant == REVOKED);
    }
    return is;
}

static uint32_t movable(const struct gpi_slow *m, uint32_t class, uint32_t d, uint32_t i)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < m->set.runs; w++)
        n += m->hand[w].class == class && gpi_slow_is_on(&m->hand[w], d) &&
             may_go(m, &m->hand[w], i);
    return n;
}

/* Workers that go: if `all`, each one that could go alone, else only all that can; never `but`. */
struct going {
    bool all;
    const struct hand *but;
};

/* Whether the device would do for a task of the class, without workers that could go for this one
 * now. */
static bool could_clear(const struct gpi_slow *m, uint32_t class, const struct gpi_request *r,
                        uint32_t d, uint32_t i, struct going going)
{
    const struct place *p = &m->place[d];
    struct used u = gpi_slow_used(m, d);
    uint64_t share = r->share;

    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *h = &m->hand[w];
        share += gpi_slow_share_of(m, h, class, r, d);
        if (!gpi_slow_stays(m, h) || !gpi_slow_is_on(h, d) || !may_go(m, h, i) || h == going.but ||
            (!going.all && movable(m, h->class, d, i) >
                               gpi_slow_hands(m, h->class) - m->class[h->class].set.min_workers))
            continue;
        share -= gpi_slow_share_of(m, h, class, r, d);
        u.firm -= h->need.memory == GPI_MEMORY_ALL ? p->has.memory
                                                   : h->need.memory + gpi_slow_beyond(h, d);
        u.n_firm--;
    }
    return p->may == GPI_PLAN_IN && share <= GPI_SHARE_ALL && p->has.compute >= r->compute &&
           !gpi_slow_is_staffed(m, class, r) &&
           (r->places == GPI_PLACES_ANY || p->in_set[r->places]) &&
           (r->memory == GPI_MEMORY_ALL
                ? gpi_slow_is_clear(m, p) && u.n_firm == 0
                : u.firm <= gpi_slow_usable(m, d) && r->memory <= gpi_slow_usable(m, d) - u.firm);
}

/* The most devices that have room for one before it, once workers of this one are gone. */
static uint32_t cleared_by(const struct gpi_slow *m, uint32_t d, uint32_t i)
{
    const uint32_t class = m->job[m->order[i]].what.class;
    uint32_t n = 0;

    for (uint32_t w = 0; w < m->set.runs; w++)
        n += gpi_slow_is_on(&m->hand[w], d) && may_go(m, &m->hand[w], i) ? m->hand[w].n_devices : 0;
    return m->class[class].set.residence == GPI_RESIDENT ? n : 16;
}

/* Whether number `k` could use the device, once those workers are gone.  `ret_served`: by a worker
 * that does not go. */
static bool could_follow(const struct gpi_slow *m, uint32_t k, uint32_t d, uint32_t i,
                         bool *ret_served)
{
    const struct job *j = &m->job[m->order[k]];
    const uint32_t class = j->what.class, more = cleared_by(m, d, i);
    const bool begins = gpi_slow_begins(m, j);
    uint32_t up = 0;

    for (uint32_t w = 0; w < m->set.runs; w++)
        up += m->hand[w].state == UP && gpi_slow_is_on(&m->hand[w], d) && m->hand[w].class == class;
    *ret_served = gpi_slow_is_served(m, m->order[k]) && gpi_slow_hands(m, class) > up;
    for (uint32_t v = 0; v < j->what.n_requests && (begins || up); v++)
        if (j->request[v].devices && (up || gpi_slow_in_reach(m, j, &j->request[v])) &&
            (up || gpi_slow_claims(m, j, v, more)) && !m->class[class].paused &&
            could_clear(m, class, &j->request[v], d, i, (struct going){ 0 }))
            return true;
    return false;
}

/* Whether another one may have the device, once those workers are gone. */
static bool is_preceded(const struct gpi_slow *m, uint32_t d, uint32_t i)
{
    const bool stays = m->class[m->job[m->order[i]].what.class].set.residence == GPI_RESIDENT;
    uint32_t head = NONE;
    bool served = false;

    for (uint32_t k = 0; k < m->n_order; k++) {
        if (k == i)
            served = gpi_slow_is_served(m, m->order[i]);
        else if (!could_follow(m, k, d, i, &served))
            continue;
        if (gpi_slow_walk(m, &head, k, stays && served))
            break;
    }
    return head != i || (gpi_slow_memory_head(m, d) != NONE && gpi_slow_memory_head(m, d) != i);
}

/* Whether a worker may be in its way there that does not go yet. */
static bool is_awaited(const struct gpi_slow *m, const struct gpi_request *r, uint32_t d,
                       uint32_t i)
{
    const uint32_t class = m->job[m->order[i]].what.class;

    for (uint32_t w = 0; w < m->set.runs; w++)
        if (gpi_slow_is_on(&m->hand[w], d) && gpi_slow_is_ahead(m, &m->hand[w]) &&
            may_go(m, &m->hand[w], i))
            return could_clear(m, class, r, d, i, (struct going){ .all = true });
    return false;
}

bool gpi_slow_could_evict(const struct gpi_slow *m, uint32_t i)
{
    const struct job *j = &m->job[m->order[i]];
    bool could = false;

    for (uint32_t v = 0; v < j->what.n_requests && gpi_slow_begins(m, j); v++) {
        const struct gpi_request *r = &j->request[v];
        uint32_t has = 0, cleared = 0;
        for (uint32_t d = 0; d < m->n_places; d++)
            if (gpi_slow_may_use(m, j->what.class, r, d))
                has++;
            else if (is_awaited(m, r, d, i))
                return false;
            else
                cleared += could_clear(m, j->what.class, r, d, i, (struct going){ 0 }) &&
                           !is_preceded(m, d, i);
        /* Of several devices one may have the worker that another needs to keep. */
        could |= has + 1 == r->devices && cleared > 0;
    }
    return could;
}

/* ---- granted runs in the way ---- */

/* Whether the class has a share of the device for one more such worker, once this one is gone. */
static bool has_share(const struct gpi_slow *m, const struct hand *h, uint32_t class,
                      const struct gpi_request *r, uint32_t d)
{
    uint32_t share = r->share;

    for (uint32_t w = 0; w < m->set.runs; w++)
        share += &m->hand[w] == h ? 0 : gpi_slow_share_of(m, &m->hand[w], class, r, d);
    return share <= GPI_SHARE_ALL && !gpi_slow_is_staffed(m, class, r);
}

/* Whether one before it surely takes the device once the worker is gone. */
static bool is_surely_preceded(const struct gpi_slow *m, const struct hand *h,
                               const struct gpi_request *r, uint32_t d, uint32_t i)
{
    const bool stays = m->class[m->job[m->order[i]].what.class].set.residence == GPI_RESIDENT;
    const struct place *p = &m->place[d];

    for (uint32_t k = 0; k < i; k++) {
        const struct job *j = &m->job[m->order[k]];
        const bool again = j->what.class == h->class, begins = again || gpi_slow_begins(m, j);
        if (stays && gpi_slow_is_served(m, m->order[k]) &&
            gpi_slow_hands(m, j->what.class) > again && !gpi_slow_is_served(m, m->order[i]))
            continue; /* it wants a further worker, and another one its first */
        for (uint32_t v = 0; v < j->what.n_requests && begins; v++) {
            const struct gpi_request *own = &j->request[v];
            const bool all = own->memory == GPI_MEMORY_ALL;
            if (own->devices && (again || gpi_slow_in_reach(m, j, own)) &&
                (again || gpi_slow_claims(m, j, v, 0)) && !m->class[j->what.class].paused &&
                p->has.compute >= own->compute &&
                (own->places == GPI_PLACES_ANY || p->in_set[own->places]) &&
                (all ? gpi_slow_is_clear(m, p) : own->memory <= gpi_slow_usable(m, d)) &&
                own->memory <= r->memory && has_share(m, h, j->what.class, own, d))
                return true;
        }
    }
    return !stays && gpi_slow_memory_head(m, d) < i;
}

/* Whether the variant has ways for as many devices as it needs. */
static bool has_ways(const struct gpi_slow *m, const struct gpi_request *r, uint32_t i,
                     struct going going)
{
    const uint32_t class = m->job[m->order[i]].what.class;
    uint32_t has = 0, cleared = 0;

    for (uint32_t d = 0; d < m->n_places; d++)
        if (gpi_slow_may_use(m, class, r, d))
            has++;
        else
            cleared += could_clear(m, class, r, d, i, going);
    return has < r->devices && has + cleared >= r->devices;
}

/* Whether the worker is in the way of the variant on a device: perhaps, or surely. */
static bool is_in_way(const struct gpi_slow *m, const struct hand *h, const struct gpi_request *r,
                      uint32_t i, bool heads, bool surely)
{
    const struct going others = { .all = true, .but = h }, going = { .all = !surely };
    const uint32_t class = m->job[m->order[i]].what.class;

    if (!may_go(m, h, i) || !has_ways(m, r, i, going))
        return false;
    for (uint32_t k = 0; k < h->n_devices; k++) {
        const uint32_t d = h->device[k];
        if (gpi_slow_may_use(m, class, r, d) || (heads && is_surely_preceded(m, h, r, d, i)))
            continue;
        if (could_clear(m, class, r, d, i, going) &&
            !(surely && could_clear(m, class, r, d, i, others)))
            return true;
    }
    return false;
}

static bool is_due(const struct gpi_slow *m, uint32_t hand, bool heads, bool surely)
{
    for (uint32_t i = 0; i < m->n_order; i++) {
        const struct job *j = &m->job[m->order[i]];
        for (uint32_t v = 0;
             v < j->what.n_requests && gpi_slow_is_pressed(m, m->order[i]) && gpi_slow_begins(m, j);
             v++)
            if (is_in_way(m, &m->hand[hand], &j->request[v], i, heads, surely))
                return true;
    }
    return false;
}

bool gpi_slow_is_due(const struct gpi_slow *m, uint32_t hand, bool heads)
{
    return is_due(m, hand, heads, false);
}

bool gpi_slow_must_be_due(const struct gpi_slow *m, uint32_t hand)
{
    return is_due(m, hand, false, true);
}

/* ---- tasks that lack a run ---- */

static uint32_t count(const struct gpi_slow *m, enum hand_state state)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < m->set.runs; w++)
        n += m->hand[w].state == state;
    return n;
}

/* Whether a worker of its class does for the task, or could boot for it as things are. */
static bool is_possible(const struct gpi_slow *m, const struct job *j)
{
    bool could = m->class[j->what.class].set.residence == GPI_RESIDENT;

    for (uint32_t w = 0; w < m->set.runs && !could; w++) {
        const struct hand *h = &m->hand[w];
        could = h->class == j->what.class && (h->state == BOOTS || h->state == UP) &&
                gpi_slow_suits(m, h, j);
    }
    for (uint32_t v = 0; v < j->what.n_requests && !could; v++)
        could = gpi_slow_in_reach(m, j, &j->request[v]);
    return could;
}

/* Whether one before it is of the class, or, if `any`, may lack a run, too. */
static bool is_behind(const struct gpi_slow *m, uint32_t class, uint32_t i, bool any)
{
    for (uint32_t k = 0; k < i; k++) {
        const struct job *j = &m->job[m->order[k]];
        if (!m->class[j->what.class].paused &&
            ((j->what.class == class && is_possible(m, j)) || (any && gpi_slow_begins(m, j))))
            return true;
    }
    return false;
}

static bool is_calm(const struct gpi_slow *m, const struct hand *h)
{
    return h->job == NONE && (gpi_slow_queued(m, h->class) == 0 || m->class[h->class].paused);
}

bool gpi_slow_could_free_run(const struct gpi_slow *m, uint32_t i)
{
    bool could = false;

    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *h = &m->hand[w];
        if (!may_go(m, h, i))
            continue;
        if (gpi_slow_is_ahead(m, h) && !is_calm(m, h))
            return false;
        could |= is_calm(m, h) || (count(m, LEAVES) == 0 && !is_behind(m, h->class, i, true));
    }
    return could && count(m, UNLOADS) == 0;
}

/* Whether it goes for the task, which could start in a run of its own. */
static bool goes_for(const struct gpi_slow *m, const struct hand *h, uint32_t i)
{
    return may_go(m, h, i) &&
           (is_calm(m, h) || (count(m, LEAVES) == 0 && !is_behind(m, h->class, i, false)));
}

bool gpi_slow_goes_for_run(struct gpi_slow *m, uint32_t hand)
{
    const struct hand *h = &m->hand[hand];
    bool goes = false;

    if (gpi_slow_has_run(m) || count(m, UNLOADS))
        return false;
    gpi_slow_find_heads(m);
    for (uint32_t i = 0; i < m->n_order; i++) {
        m->can[i] = gpi_slow_could_start(m, i);
        goes |= m->can[i] && goes_for(m, h, i);
    }
    return goes;
}

bool gpi_slow_run_is_due(const struct gpi_slow *m, uint32_t hand)
{
    bool is_due = false;

    for (uint32_t i = 0; i < m->n_order && !gpi_slow_has_run(m); i++)
        is_due |= gpi_slow_is_pressed(m, m->order[i]) && may_go(m, &m->hand[hand], i) &&
                  gpi_slow_begins(m, &m->job[m->order[i]]);
    return is_due;
}

/* ---- workers that go ---- */

bool gpi_slow_goes_for_place(struct gpi_slow *m, uint32_t hand)
{
    gpi_slow_find_heads(m);
    for (uint32_t i = 0; i < m->n_order; i++) {
        const struct job *j = &m->job[m->order[i]];
        for (uint32_t v = 0; v < j->what.n_requests && gpi_slow_begins(m, j); v++)
            if (is_in_way(m, &m->hand[hand], &j->request[v], i, false, false))
                return true;
    }
    return false;
}
