/* SPDX-License-Identifier: MIT */
/* slow_order.c - the order of tasks, heads, promises, and the tasks that could start. */
#include "sim/slow_state.h"

/* ---- order and heads ---- */

static bool same_shape(const struct job *a, const struct job *b)
{
    bool same = a->what.class == b->what.class && a->what.priority == b->what.priority &&
                a->what.n_requests == b->what.n_requests;

    for (uint32_t i = 0; same && i < a->what.n_requests; i++)
        same = gpi_request_same(&a->request[i], &b->request[i]);
    return same;
}

static bool is_first(const struct gpi_slow *m, uint32_t task)
{
    for (uint32_t t = 0; t < m->n_jobs; t++)
        if (m->job[t].state == WAITS && m->job[t].what.order < m->job[task].what.order &&
            t < m->set.tasks && task < m->set.tasks && same_shape(&m->job[t], &m->job[task]))
            return false;
    return m->job[task].state == WAITS;
}

static bool precedes(const struct gpi_slow *m, uint32_t a, uint32_t b)
{
    const struct gpi_plan_task *x = &m->job[a].what, *y = &m->job[b].what;

    return x->priority != y->priority ? x->priority > y->priority : x->order < y->order;
}

static void find_order(struct gpi_slow *m)
{
    m->n_order = 0;
    for (uint32_t t = 0; t < m->n_jobs; t++) {
        uint32_t i = m->n_order;
        if (!is_first(m, t))
            continue;
        for (; i > 0 && precedes(m, t, m->order[i - 1]); i--)
            m->order[i] = m->order[i - 1];
        m->order[i] = t;
        m->n_order++;
    }
}

/* Whether the device would do without the workers that may ever go. */
static bool could_ever(const struct gpi_slow *m, const struct job *j, const struct gpi_request *r,
                       uint32_t d)
{
    const struct place *p = &m->place[d];
    uint64_t kept = 0, share = r->share;
    uint32_t n = 0;

    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *h = &m->hand[w];
        share += gpi_slow_share_of(m, h, j->what.class, r, d);
        if (!gpi_slow_stays(m, h) || !gpi_slow_is_on(h, d) ||
            (h->class != j->what.class && !m->class[h->class].set.pinned &&
             gpi_slow_hands(m, h->class) > m->class[h->class].set.min_workers))
            continue;
        kept += h->need.memory == GPI_MEMORY_ALL ? p->has.memory
                                                 : h->need.memory + gpi_slow_beyond(h, d);
        n++;
    }
    return p->may == GPI_PLAN_IN && share <= GPI_SHARE_ALL && p->has.compute >= r->compute &&
           !gpi_slow_is_staffed(m, j->what.class, r) &&
           (r->places == GPI_PLACES_ANY || p->in_set[r->places]) &&
           (r->memory == GPI_MEMORY_ALL
                ? n == 0 && gpi_slow_is_clear(m, p)
                : kept <= gpi_slow_usable(m, d) && r->memory <= gpi_slow_usable(m, d) - kept);
}

/* Whether enough devices could ever do. */
bool gpi_slow_in_reach(const struct gpi_slow *m, const struct job *j, const struct gpi_request *r)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < m->n_places; d++)
        n += gpi_slow_may_use(m, j->what.class, r, d) || could_ever(m, j, r, d);
    return n >= r->devices;
}

static bool begins_on(const struct gpi_slow *m, const struct job *j, uint32_t d)
{
    for (uint32_t v = 0; v < j->what.n_requests && gpi_slow_begins(m, j); v++)
        if (gpi_slow_may_use(m, j->what.class, &j->request[v], d) &&
            gpi_slow_in_reach(m, j, &j->request[v]))
            return true;
    return false;
}

/* Whether devices are held for as long as there is a reason. */
static bool holds_all(const struct gpi_slow *m)
{
    return m->set.mode == GPI_MODE_STRICT || m->set.passing == GPI_PASS_APART;
}

bool gpi_slow_claims(const struct gpi_slow *m, const struct job *j, uint32_t variant, uint32_t more)
{
    const struct gpi_request *r = &j->request[variant];
    uint32_t n = more;

    for (uint32_t d = 0; d < m->n_places; d++)
        n += gpi_slow_may_use(m, j->what.class, r, d);
    return n >= r->devices || holds_all(m) || gpi_slow_is_pressed(m, (uint32_t)(j - m->job));
}

/* Whether it waits for a boot there, and keeps the device from workers that stay. */
static bool claims_on(const struct gpi_slow *m, const struct job *j, uint32_t d)
{
    for (uint32_t v = 0; v < j->what.n_requests && gpi_slow_begins(m, j); v++)
        if (gpi_slow_may_use(m, j->what.class, &j->request[v], d) &&
            gpi_slow_in_reach(m, j, &j->request[v]) && gpi_slow_claims(m, j, v, 0))
            return true;
    return false;
}

/* Whether a worker for it boots there, and the device is held for it meanwhile. */
static bool is_coming(const struct gpi_slow *m, const struct job *j, uint32_t d)
{
    if (!holds_all(m))
        return false;
    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *h = &m->hand[w];
        if (h->state == BOOTS && h->class == j->what.class && !m->class[h->class].paused &&
            j < m->job + m->set.tasks && gpi_slow_suits(m, h, j) && gpi_slow_is_on(h, d))
            return true;
    }
    return false;
}

bool gpi_slow_uses(const struct gpi_slow *m, uint32_t task, uint32_t d)
{
    if (gpi_slow_is_served(m, task) ? claims_on(m, &m->job[task], d)
                                    : begins_on(m, &m->job[task], d))
        return true;
    return m->place[d].may == GPI_PLAN_IN &&
           (gpi_slow_is_warm(m, &m->job[task], d) || is_coming(m, &m->job[task], d));
}

void gpi_slow_find_heads(struct gpi_slow *m)
{
    find_order(m);
    for (uint32_t d = 0; d < m->n_places; d++) {
        m->head[d] = NONE;
        for (uint32_t i = 0; i < m->n_order && m->head[d] == NONE; i++)
            if (gpi_slow_uses(m, m->order[i], d))
                m->head[d] = i;
    }
}

/* Whether a task without a worker, or a worker, could begin. */
bool gpi_slow_has_run(const struct gpi_slow *m)
{
    uint32_t n = 0;

    for (uint32_t t = 0; t < m->set.tasks; t++)
        n += m->job[t].state == RUNS && m->job[t].hand == NONE;
    for (uint32_t w = 0; w < m->set.runs; w++)
        n += m->hand[w].state != NO_HAND;
    return n < m->set.runs;
}

/* ---- promises and passing ---- */

/* When k devices are free: of all that it may use, or of those whose head it is. */
static uint64_t kth(const struct gpi_slow *m, const struct job *j, uint32_t variant, uint32_t head,
                    bool plausible)
{
    const struct gpi_request *r = &j->request[variant];
    uint64_t end[4096];
    uint32_t n = 0;

    for (uint32_t d = 0; d < m->n_places; d++) {
        const struct used u = gpi_slow_used(m, d);
        if (!gpi_slow_may_use(m, j->what.class, r, d) || (!plausible && m->head[d] != head))
            continue;
        end[n++] = u.runs == 0 ? m->now : plausible ? u.plausible : u.end;
    }
    /* cppcheck-suppress uninitvar ; the first n are set */
    qsort(end, n, sizeof *end, gpi_slow_compare);
    return r->devices == 0 ? m->now : n < r->devices ? NEVER : end[r->devices - 1];
}

/* The CPU slots of the tasks that run, without the tasks that end by a time. */
static uint64_t cpus_after(const struct gpi_slow *m, const uint64_t *by)
{
    uint64_t cpus = 0;

    for (uint32_t t = 0; t < m->n_jobs; t++)
        if (m->job[t].state == RUNS && (!by || m->job[t].end_by > *by))
            cpus += m->job[t].hand == NONE ? m->job[t].request[m->job[t].variant].cpus
                                           : m->hand[m->job[t].hand].need.cpus;
    return cpus;
}

static uint64_t memory_used(const struct gpi_slow *m)
{
    uint64_t bytes = 0;

    for (uint32_t t = 0; t < m->n_jobs; t++)
        if (m->job[t].state == RUNS && m->job[t].hand == NONE)
            bytes += m->job[t].request[m->job[t].variant].host_memory;
    for (uint32_t w = 0; w < m->set.runs; w++)
        bytes += m->hand[w].state == NO_HAND ? 0 : m->hand[w].need.host_memory;
    return bytes;
}

static uint64_t host_end(const struct gpi_slow *m, const struct gpi_request *r, uint32_t head)
{
    uint64_t at = NEVER;

    if (r->cpus == 0 && r->host_memory == 0)
        return m->now;
    if (head != 0 || (r->host_memory && memory_used(m) + r->host_memory > m->set.host_memory))
        return NEVER;
    if (r->cpus == 0 || cpus_after(m, NULL) + r->cpus <= m->set.cpus)
        return m->now;
    for (uint32_t t = 0; t < m->n_jobs; t++)
        if (m->job[t].state == RUNS && m->job[t].end_by < at &&
            cpus_after(m, &m->job[t].end_by) + r->cpus <= m->set.cpus)
            at = m->job[t].end_by;
    return at;
}

bool gpi_slow_strictly_first(const struct gpi_slow *m, uint32_t i)
{
    for (uint32_t d = 0; d < m->n_places; d++)
        if (gpi_slow_uses(m, m->order[i], d) && m->head[d] != i)
            return false;
    return true;
}

bool gpi_slow_needs_host(const struct job *j)
{
    bool needs = false;

    for (uint32_t v = 0; v < j->what.n_requests; v++)
        needs |= j->request[v].cpus || j->request[v].host_memory;
    return needs;
}

/* Of a class with workers: when one of its devices is free. */
static uint64_t warm_end(const struct gpi_slow *m, const struct job *j, uint32_t head)
{
    uint64_t end = NEVER;

    for (uint32_t d = 0; d < m->n_places; d++)
        if (m->head[d] == head && m->place[d].may == GPI_PLAN_IN && gpi_slow_is_warm(m, j, d)) {
            const uint64_t at = gpi_slow_used(m, d).end;
            end = at < end ? at : end;
        }
    for (uint32_t v = 0; v < j->what.n_requests; v++)
        end = j->request[v].devices == 1 ? end : NEVER;
    return gpi_slow_needs_host(j) ? NEVER : end > m->now ? end : m->now;
}

uint64_t gpi_slow_promise_of(const struct gpi_slow *m, uint32_t head)
{
    const struct job *j = &m->job[m->order[head]];
    uint64_t promise = NEVER;

    if (m->class[j->what.class].paused ||
        (m->set.mode == GPI_MODE_STRICT && !gpi_slow_strictly_first(m, head)))
        return NEVER;
    if (m->class[j->what.class].set.residence != GPI_EXTERNAL)
        return warm_end(m, j, head);
    if (!gpi_slow_has_run(m))
        return NEVER;
    for (uint32_t v = 0; v < j->what.n_requests; v++) {
        const uint64_t end = kth(m, j, v, head, false);
        const uint64_t host = host_end(m, &j->request[v], head);
        const uint64_t both = end > host ? end : host;
        promise = both < promise ? both : promise;
    }
    return promise;
}

static uint64_t warm_plausible(const struct gpi_slow *m, const struct job *j)
{
    uint64_t end[4096];
    uint32_t n = 0;

    for (uint32_t d = 0; d < m->n_places; d++)
        if (m->place[d].may == GPI_PLAN_IN && gpi_slow_is_warm(m, j, d)) {
            const uint64_t at = gpi_slow_used(m, d).plausible;
            end[n++] = at > m->now ? at : m->now;
        }
    /* cppcheck-suppress uninitvar ; the first n are set */
    qsort(end, n, sizeof *end, gpi_slow_compare);
    return n < j->request[0].devices || n == 0 ? NEVER : end[j->request[0].devices - 1];
}

/* The earliest time at which it could start. */
static uint64_t plausible_of(const struct gpi_slow *m, const struct job *j, uint32_t head)
{
    const bool external = m->class[j->what.class].set.residence == GPI_EXTERNAL;
    uint64_t earliest = external ? NEVER : warm_plausible(m, j), end;

    for (uint32_t v = 0; v < j->what.n_requests && gpi_slow_begins(m, j); v++) {
        end = gpi_slow_in_reach(m, j, &j->request[v]) ? kth(m, j, v, head, true) : NEVER;
        earliest = end < earliest ? end : earliest;
    }
    return earliest;
}

static uint64_t gap(const struct gpi_slow *m, uint32_t head)
{
    const struct job *j = &m->job[m->order[head]];
    uint64_t until = j->promise, end;

    if (m->set.mode == GPI_MODE_STRICT)
        return 0;
    if (m->set.passing == GPI_PASS_NAIVE)
        return NEVER;
    if (m->set.passing == GPI_PASS_APART || until == NEVER)
        return 0;
    if (m->set.passing == GPI_PASS_LEARNED) {
        end = m->lacks[head] ? m->now : plausible_of(m, j, head);
        until = end < until ? end : until;
    }
    return until > m->now ? until - m->now : 0;
}

uint64_t gpi_slow_takes(const struct gpi_slow *m, const struct job *j)
{
    const uint64_t grace = m->class[j->what.class].set.grace;

    return j->what.limit > NEVER - grace ? NEVER : j->what.limit + grace;
}

static bool passes(const struct gpi_slow *m, uint32_t i, uint32_t head)
{
    return gpi_slow_takes(m, &m->job[m->order[i]]) <= gap(m, head);
}

bool gpi_slow_is_head(const struct gpi_slow *m, uint32_t i)
{
    for (uint32_t d = 0; d < m->n_places; d++)
        if (m->head[d] == i)
            return true;
    return false;
}

/* Whether its worker, which has no device, is idle. */
static bool has_bare(const struct gpi_slow *m, const struct job *j)
{
    for (uint32_t w = 0; w < m->set.runs; w++)
        if (m->hand[w].n_devices == 0 && gpi_slow_serves(m, &m->hand[w], j))
            return true;
    return false;
}

/* Whether it is the first that waits for CPU slots or host memory. */
static bool is_host_head(const struct gpi_slow *m, uint32_t i)
{
    for (uint32_t k = 0; k <= i; k++) {
        const struct job *j = &m->job[m->order[k]];
        bool waits = m->lacks[k] && (gpi_slow_is_head(m, k) || has_bare(m, j));
        for (uint32_t v = 0; v < j->what.n_requests && gpi_slow_begins(m, j); v++)
            waits |= j->request[v].devices == 0 && (gpi_slow_has_run(m) || !m->can[k]) &&
                     !gpi_slow_is_staffed(m, j->what.class, &j->request[v]);
        if (waits)
            return k == i;
    }
    return false;
}

/* Whether the machine has its slots and memory, beside the part that it keeps for heads. */
bool gpi_slow_host_has(const struct gpi_slow *m, uint32_t i, const struct gpi_request *r,
                       bool for_life)
{
    uint64_t cpus = cpus_after(m, NULL) + r->cpus, bytes = memory_used(m) + r->host_memory;

    for (uint32_t k = 0; k < i && (r->cpus || r->host_memory); k++) {
        const struct job *j = &m->job[m->order[k]];
        uint64_t most = 0, most_bytes = 0;
        if (!(gpi_slow_is_head(m, k) || is_host_head(m, k)) || (!for_life && passes(m, i, k)))
            continue;
        for (uint32_t v = 0; v < j->what.n_requests; v++) {
            most = j->request[v].cpus > most ? j->request[v].cpus : most;
            most_bytes =
                j->request[v].host_memory > most_bytes ? j->request[v].host_memory : most_bytes;
        }
        cpus += most;
        bytes += most_bytes;
    }
    return (cpus <= m->set.cpus || !r->cpus) && (bytes <= m->set.host_memory || !r->host_memory);
}

/* Whether it waits for its worker there, which has a task. */
static bool waits_for_worker(const struct gpi_slow *m, uint32_t i, uint32_t d)
{
    const struct job *j = &m->job[m->order[i]];

    for (uint32_t w = 0; w < m->set.runs; w++)
        if (m->hand[w].state == UP && m->hand[w].class == j->what.class && m->hand[w].job == NONE)
            return false;
    return m->class[j->what.class].set.residence != GPI_EXTERNAL && !begins_on(m, j, d) &&
           !is_coming(m, j, d);
}

/* Whether it only waits for a boot there, and does not keep the device from workers that stay. */
static bool waits_for_room(const struct gpi_slow *m, uint32_t head, uint32_t d)
{
    const struct job *j = &m->job[m->order[head]];

    return !gpi_slow_is_warm(m, j, d) && !is_coming(m, j, d) && !claims_on(m, j, d);
}

bool gpi_slow_walk(const struct gpi_slow *m, uint32_t *head, uint32_t k, bool served)
{
    const struct gpi_plan_task *what = &m->job[m->order[k]].what;

    if (*head == NONE) {
        *head = k;
        return !served || holds_all(m);
    }
    if (what->priority != m->job[m->order[*head]].what.priority ||
        m->class[what->class].set.residence != GPI_RESIDENT)
        return true;
    *head = served ? *head : k;
    return !served;
}

uint32_t gpi_slow_memory_head(const struct gpi_slow *m, uint32_t d)
{
    uint32_t head = NONE;

    for (uint32_t k = m->head[d]; k < m->n_order; k++)
        if (claims_on(m, &m->job[m->order[k]], d) &&
            gpi_slow_walk(m, &head, k, gpi_slow_is_served(m, m->order[k])))
            break;
    return head;
}

/* Whether only this one comes before it there. */
static bool is_second(const struct gpi_slow *m, uint32_t i, uint32_t d, uint32_t head)
{
    for (uint32_t k = head + 1; k < i; k++)
        if (gpi_slow_uses(m, m->order[k], d))
            return false;
    return true;
}

/* Whether the device is open to it: it is the head, or passes it.  `rest`: or the head lacks no
 * device, and finds another one. */
bool gpi_slow_is_open(const struct gpi_slow *m, uint32_t i, uint32_t d, bool rest)
{
    const uint32_t head = m->head[d];
    const bool stays = m->class[m->job[m->order[i]].what.class].set.residence == GPI_RESIDENT;

    if (head == i || head == NONE || passes(m, i, head) ||
        (m->set.mode != GPI_MODE_STRICT &&
         (waits_for_worker(m, head, d) || (stays && waits_for_room(m, head, d)))))
        return true;
    return rest && is_second(m, i, d, head) && (m->lacks[head] || m->can[head]);
}

bool gpi_slow_serves(const struct gpi_slow *m, const struct hand *h, const struct job *j)
{
    return gpi_slow_does(m, h, j) && h->job == NONE;
}

bool gpi_slow_may_work(const struct gpi_slow *m, uint32_t i, const struct hand *h)
{
    bool may = m->set.mode != GPI_MODE_STRICT || h->n_devices == 0 || gpi_slow_strictly_first(m, i);

    for (uint32_t k = 0; k < h->n_devices; k++)
        may &= m->place[h->device[k]].may == GPI_PLAN_IN &&
               gpi_slow_is_open(m, i, h->device[k], false) &&
               gpi_slow_used(m, h->device[k]).share + h->need.share <= GPI_SHARE_ALL;
    return may;
}

/* Whether a worker for it may boot there: it is the head, or leaves the head enough memory. */
bool gpi_slow_may_boot(const struct gpi_slow *m, uint32_t i, const struct gpi_request *r,
                       uint32_t d)
{
    const struct job *j = &m->job[m->order[i]], *h;
    const bool stays = m->class[j->what.class].set.residence == GPI_RESIDENT;
    const uint32_t head =
        stays && m->set.mode != GPI_MODE_STRICT ? gpi_slow_memory_head(m, d) : m->head[d];
    struct gpi_request both = *r;
    uint64_t most = 0;

    if (head == NONE || head == i)
        return gpi_slow_wants(m, j->what.class) ? gpi_slow_has_memory(m, j->what.class, r, d)
                                                : gpi_slow_fits(m, j->what.class, r, d);
    h = &m->job[m->order[head]];
    if (m->set.mode == GPI_MODE_STRICT || !is_second(m, i, d, head) || !stays ||
        !gpi_slow_wants(m, j->what.class))
        return false;
    for (uint32_t v = 0; v < h->what.n_requests; v++)
        most = h->request[v].memory > most ? h->request[v].memory : most;
    both.memory += most;
    return most != GPI_MEMORY_ALL && r->memory != GPI_MEMORY_ALL &&
           gpi_slow_has_memory(m, j->what.class, &both, d);
}

/* Whether a worker of its class could take it. */
bool gpi_slow_could_work(const struct gpi_slow *m, uint32_t i)
{
    const struct job *j = &m->job[m->order[i]];

    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct gpi_request host = { .cpus = m->hand[w].need.cpus };
        if (gpi_slow_serves(m, &m->hand[w], j) && gpi_slow_may_work(m, i, &m->hand[w]) &&
            gpi_slow_host_has(m, i, &host, false))
            return true;
    }
    return false;
}

/* Whether a worker of its class could take it, or another one could boot. */
static bool could_work(struct gpi_slow *m, uint32_t i)
{
    const struct job *j = &m->job[m->order[i]];

    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct gpi_request host = { .cpus = m->hand[w].need.cpus };
        if (!gpi_slow_serves(m, &m->hand[w], j) || !gpi_slow_may_work(m, i, &m->hand[w]))
            continue;
        if (gpi_slow_host_has(m, i, &host, false))
            return true;
        m->lacks[i] = true;
    }
    for (uint32_t v = 0; v < j->what.n_requests && gpi_slow_begins(m, j); v++) {
        struct gpi_request r = j->request[v];
        uint32_t n = 0;
        if (gpi_slow_is_staffed(m, j->what.class, &r))
            continue;
        r.cpus = 0;
        for (uint32_t d = 0; d < m->n_places; d++)
            n += gpi_slow_may_boot(m, i, &j->request[v], d);
        if (n < r.devices ||
            (m->set.mode == GPI_MODE_STRICT && r.devices && !gpi_slow_strictly_first(m, i)))
            continue;
        if (gpi_slow_host_has(m, i, &r, true))
            return true;
        m->lacks[i] = true;
    }
    return false;
}

static bool could_start(struct gpi_slow *m, uint32_t i)
{
    const struct job *j = &m->job[m->order[i]];

    m->lacks[i] = false;
    if (m->class[j->what.class].paused)
        return false;
    if (m->class[j->what.class].set.residence != GPI_EXTERNAL)
        return could_work(m, i);
    for (uint32_t v = 0; v < j->what.n_requests; v++) {
        const struct gpi_request *r = &j->request[v];
        uint32_t n = 0;
        for (uint32_t d = 0; d < m->n_places; d++)
            n += r->devices && gpi_slow_is_open(m, i, d, false) &&
                 gpi_slow_fits(m, j->what.class, r, d);
        if (n < r->devices ||
            (m->set.mode == GPI_MODE_STRICT && r->devices && !gpi_slow_strictly_first(m, i)))
            continue;
        if (gpi_slow_host_has(m, i, r, false))
            return true;
        m->lacks[i] = true;
    }
    return false;
}

/* Whether a variant of it could start if a run is free; sets `lacks` and `can`. */
bool gpi_slow_could_start(struct gpi_slow *m, uint32_t i)
{
    m->can[i] = could_start(m, i);
    return m->can[i];
}
