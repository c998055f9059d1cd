/* SPDX-License-Identifier: MIT */
/* slow_check.c - faults of an action, and omissions of a decision. */
#include "sim/slow_state.h"

static const char *run_breaks(struct gpi_slow *m, const struct gpi_plan_action *a, uint32_t i)
{
    const struct job *j = &m->job[a->task];
    const struct gpi_request *r = &j->request[a->what];
    const uint32_t class = j->what.class;

    if (!gpi_slow_has_run(m))
        return "S1: more runs than there are";
    if (a->n_devices != r->devices)
        return "S1: not as many devices as it needs";
    for (uint32_t k = 0; k < a->n_devices; k++) {
        if (!gpi_slow_may_use(m, class, r, a->device[k]))
            return "R4: the device may not hold it";
        if (!gpi_slow_fits(m, class, r, a->device[k]))
            return "S1: it does not fit its device";
        if (!gpi_slow_is_open(m, i, a->device[k], true))
            return "R2: it took what is kept for a head";
        for (uint32_t l = 0; l < k; l++)
            if (a->device[k] == a->device[l])
                return "S1: it has a device twice";
    }
    if (m->set.mode == GPI_MODE_STRICT && r->devices && !gpi_slow_strictly_first(m, i))
        return "R1: it passed one in STRICT mode";
    return gpi_slow_host_has(m, i, r, false) ? NULL : "S1: the machine has not what it needs";
}

static const char *work_breaks(struct gpi_slow *m, const struct gpi_plan_action *a, uint32_t i)
{
    const struct hand *h = &m->hand[a->worker];
    const struct gpi_request host = { .cpus = h->need.cpus };

    if (!gpi_slow_serves(m, h, &m->job[a->task]))
        return "S4: the worker cannot take it";
    if (!gpi_slow_may_work(m, i, h))
        return "R2: it works where a head has the device, or no share is left";
    return gpi_slow_host_has(m, i, &host, false) ? NULL : "S1: the machine has not what it needs";
}

/* Whether the boot is for this one, and good. */
static bool boots_for(struct gpi_slow *m, const struct gpi_plan_action *a, uint32_t i)
{
    const struct job *j = &m->job[m->order[i]];
    struct gpi_request r = j->request[a->what];
    bool good = j->what.class == a->class && gpi_slow_begins(m, j) &&
                a->what < j->what.n_requests && r.devices == a->n_devices &&
                (m->set.mode != GPI_MODE_STRICT || r.devices == 0 ||
                 gpi_slow_strictly_first(m, i)) &&
                !gpi_slow_is_staffed(m, a->class, &r);

    r.cpus = 0;
    for (uint32_t k = 0; k < a->n_devices && good; k++)
        good = gpi_slow_may_boot(m, i, &j->request[a->what], a->device[k]);
    return good && gpi_slow_host_has(m, i, &r, true);
}

static const char *boot_breaks(struct gpi_slow *m, const struct gpi_plan_action *a)
{
    struct hand *h = &m->hand[a->worker];
    uint32_t i = 0;

    gpi_slow_find_heads(m);
    for (uint32_t k = 0; k < m->n_order; k++)
        m->can[k] = gpi_slow_could_start(m, k);
    while (i < m->n_order && !boots_for(m, a, i))
        i++;
    *h = (struct hand){ .state = BOOTS,
                        .class = a->class,
                        .job = NONE,
                        .need = a->need,
                        .n_devices = a->n_devices,
                        .since = m->now,
                        .used = m->now,
                        .keep = m->class[a->class].set.keep_alive };
    memcpy(h->device, a->device, a->n_devices * sizeof *a->device);
    return i < m->n_order
               ? NULL
               : "R5: a worker boots that its class does not want, or where it has no place";
}

/* A cold task that has waited for max_wait. */
static bool is_pressed(const struct gpi_slow *m)
{
    for (uint32_t t = 0; t < m->n_jobs; t++) {
        const struct job *j = &m->job[t];
        if (j->state == WAITS && gpi_slow_is_cold(m, t) &&
            !m->class[j->what.class].paused &&
            m->now >=
                gpi_time_add(j->queued_at / GPI_MS * GPI_MS, m->class[j->what.class].set.max_wait))
            return true;
    }
    return false;
}

/* Whether a boot is for no task any more. */
static bool is_unneeded(const struct gpi_slow *m, uint32_t class)
{
    return (gpi_slow_queued(m, class) == 0 || m->class[class].paused) &&
           gpi_slow_hands(m, class) > gpi_slow_least_hands(&m->class[class]);
}

/* Whether it was idle for as long as it is kept. */
static bool is_kept_no_more(const struct gpi_slow *m, const struct hand *h)
{
    const struct class *c = &m->class[h->class];

    return h->state == UP && h->job == NONE && h->keep <= m->now - h->used && h->keep != NEVER &&
           (gpi_slow_queued(m, h->class) == 0 || c->paused) && !c->set.pinned &&
           gpi_slow_hands(m, h->class) > c->set.min_workers;
}

static const char *leave_breaks(struct gpi_slow *m, const struct gpi_plan_action *a)
{
    struct hand *h = &m->hand[a->worker];
    const struct class *c = &m->class[h->class];
    const bool calm = h->job == NONE && (gpi_slow_queued(m, h->class) == 0 || c->paused);
    const bool kept_no_more = is_kept_no_more(m, h), unneeded = is_unneeded(m, h->class);
    const enum hand_state before = h->state;
    const bool for_run = before == UP && gpi_slow_goes_for_run(m, a->worker);
    const bool for_place = before == UP && gpi_slow_goes_for_place(m, a->worker);

    if (h->dies)
        return "S4: a worker that goes without an order gets one";
    if (a->kind == GPI_PLAN_DRAIN && h->job != NONE) {
        struct job *j = &m->job[h->job];
        if (j->grant == GRANTED)
            gpi_slow_revoke(j);
        if (gpi_slow_is_ahead(m, h) && !h->leaves)
            return "R6: a worker goes while the caller may have older tasks of its class";
    }
    h->state = a->kind == GPI_PLAN_DRAIN ? LEAVES : UNLOADS;
    if (before == LEAVES)
        return h->job == NONE ? NULL : "S4: it is unloaded under its task";
    if (before == BOOTS)
        return h->leaves || unneeded ? NULL : "R7: a boot ends that a task waits for";
    if (before != UP || (h->job != NONE) != (a->kind == GPI_PLAN_DRAIN))
        return "S4: it cannot leave";
    if (h->leaves || kept_no_more)
        return NULL;
    if (c->set.residence == GPI_TRANSIENT)
        return h->job == NONE || for_run ? NULL : "R6: a transient worker leaves its task";
    if (c->set.pinned || m->now - h->since < c->set.min_residence)
        return "R6: it is pinned, or not ripe";
    if (gpi_slow_hands(m, h->class) + 1 <= c->set.min_workers)
        return "R6: fewer than min_workers are left";
    if (!for_place && !for_run)
        return "R6: it goes, and no task needs its place, or its run";
    return calm || is_pressed(m) ? NULL : "R6: it has work, and nobody has waited";
}

static void begin(struct gpi_slow *m, const struct gpi_plan_action *a)
{
    struct job *j = &m->job[a->task];

    j->state = RUNS;
    j->variant = a->what;
    j->n_devices = a->n_devices;
    for (uint32_t i = 0; i < a->n_devices; i++)
        j->device[i] = a->device[i];
    j->hand = a->worker;
    if (j->hand != NONE)
        m->hand[j->hand].job = a->task;
    j->begun = m->now;
    j->end_by = gpi_slow_takes(m, j) == NEVER ? NEVER : m->now + gpi_slow_takes(m, j);
    j->plausible = gpi_slow_plausible(m, j);
    j->grant = a->how == GPI_RUN_GRANT ? GRANTED : NO_GRANT;
    j->ahead = j->what.stream && j->grant == NO_GRANT;
    if (j->grant == GRANTED) {
        j->end_by = NEVER;
        j->plausible = 0;
    }
}

uint32_t gpi_slow_culprit(const struct gpi_slow *m)
{
    return m->culprit;
}

const char *gpi_slow_action(struct gpi_slow *m, const struct gpi_plan_action *a)
{
    struct job *j = &m->job[a->task == NONE ? 0 : a->task];
    uint32_t i = 0;
    const char *broken;

    m->culprit = a->task;
    if (a->kind == GPI_PLAN_BOOT || a->kind == GPI_PLAN_DRAIN || a->kind == GPI_PLAN_UNLOAD) {
        broken = a->kind == GPI_PLAN_BOOT ? boot_breaks(m, a) : leave_breaks(m, a);
        m->happened |= 1u << GPI_PROMISE_WORKERS;
        gpi_slow_count_loads(m);
        return broken;
    }
    if (a->kind == GPI_PLAN_HOPELESS) {
        j->told = true;
        return gpi_slow_is_hopeless(m, j) ? NULL : "R8: a device could hold it";
    }
    if (a->kind == GPI_PLAN_REVOKE)
        return gpi_slow_revoke_breaks(m, a);
    if (j->state != WAITS)
        return "R1: it does not wait";
    if (a->kind == GPI_PLAN_PROMISE && a->how != GPI_PROMISE_FIRST) {
        if (a->how != GPI_PROMISE_WORKERS && !(m->happened >> a->how & 1))
            return "R3: it is renewed for what has not happened";
        if (a->at == NEVER && j->promise != NEVER)
            return j->promise = NEVER, NULL;
    }
    gpi_slow_find_heads(m);
    for (uint32_t k = 0; k < m->n_order && a->kind == GPI_PLAN_RUN; k++)
        m->can[k] = gpi_slow_could_start(m, k);
    while (i < m->n_order && m->order[i] != a->task)
        i++;
    if (i == m->n_order)
        return "R1: it is not the first of its shape";
    if (a->kind == GPI_PLAN_PROMISE) {
        broken = a->at != gpi_slow_promise_of(m, i) ? "R3: the promise is another time" : NULL;
        if (a->how != GPI_PROMISE_FIRST && a->at <= j->promise)
            broken = "R3: it is renewed to an earlier time";
        j->promise = a->at;
        return broken;
    }
    broken = a->worker == NONE ? run_breaks(m, a, i) : work_breaks(m, a, i);
    if (!broken)
        broken = gpi_slow_how_breaks(m, a, i);
    begin(m, a);
    return broken;
}

/* Whether the worker does for it, or for one before it. */
static bool does_up_to(const struct gpi_slow *m, const struct hand *h, uint32_t i)
{
    for (uint32_t k = 0; k <= i; k++)
        if (gpi_slow_does(m, h, &m->job[m->order[k]]))
            return true;
    return false;
}

/* Whether the device has memory for it, without transient workers that unload, or are idle. */
static bool could_spare(const struct gpi_slow *m, uint32_t i, const struct gpi_request *r,
                        uint32_t d, bool idle)
{
    const uint32_t class = m->job[m->order[i]].what.class;
    struct used u = gpi_slow_used(m, d);

    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *h = &m->hand[w];
        if (!gpi_slow_is_on(h, d) || m->class[h->class].set.residence != GPI_TRANSIENT ||
            !(h->state == UNLOADS || (idle && h->state == UP && h->job == NONE &&
                                      !m->class[h->class].set.pinned && !does_up_to(m, h, i))))
            continue;
        u.memory -= h->need.memory == GPI_MEMORY_ALL ? 0 : h->need.memory + gpi_slow_beyond(h, d);
        u.alone -= h->need.memory == GPI_MEMORY_ALL;
        u.runs--;
    }
    return gpi_slow_may_use(m, class, r, d) && !u.alone &&
           (r->memory == GPI_MEMORY_ALL ? u.runs == 0
                                        : u.memory + r->memory <= gpi_slow_usable(m, d));
}

static bool owns(const struct gpi_slow *m, uint32_t i, uint32_t d)
{
    const struct job *j = &m->job[m->order[i]];

    return (m->class[j->what.class].set.residence == GPI_RESIDENT && m->set.mode != GPI_MODE_STRICT
                ? gpi_slow_memory_head(m, d)
                : m->head[d]) == i;
}

/* Whether idle transient workers are all that it waits for. */
static bool waits_for_spare(const struct gpi_slow *m, uint32_t i)
{
    const struct job *j = &m->job[m->order[i]];
    const uint32_t class = j->what.class;
    bool waits = false;

    for (uint32_t v = 0; v < j->what.n_requests && gpi_slow_begins(m, j); v++) {
        const struct gpi_request *r = &j->request[v];
        uint32_t has = 0, spare = 0;
        for (uint32_t d = 0; d < m->n_places; d++)
            if (!owns(m, i, d))
                continue;
            else if (gpi_slow_fits(m, class, r, d) || could_spare(m, i, r, d, false))
                has++;
            else if (gpi_slow_used(m, d).share) /* it is examined when that ends */
                return false;
            else
                spare += could_spare(m, i, r, d, true);
        if (r->devices && has >= r->devices) /* another worker goes for it already */
            return false;
        waits |= r->devices && has + spare >= r->devices;
    }
    return waits && (m->set.mode != GPI_MODE_STRICT || gpi_slow_strictly_first(m, i));
}

static const char *workers_break(struct gpi_slow *m)
{
    for (uint32_t w = 0; w < m->set.runs; w++) {
        const struct hand *h = &m->hand[w];
        m->culprit = w;
        if (h->state == BOOTS && is_unneeded(m, h->class))
            return "R7: a worker boots that no task waits for";
        if (is_kept_no_more(m, h))
            return "R6: an idle worker stays beyond its keep_alive";
        if ((h->state == BOOTS || h->state == UP) && h->leaves)
            return "R8: a worker stays that is to leave";
    }
    return NULL;
}

const char *gpi_slow_decided(struct gpi_slow *m)
{
    const char *broken = workers_break(m);

    m->happened = 0;
    if (broken)
        return broken;
    gpi_slow_find_heads(m);
    broken = gpi_slow_grants_break(m);
    for (uint32_t i = 0; i < m->n_order && !broken; i++) {
        m->culprit = m->order[i];
        if (m->order[i] < m->set.tasks &&
            gpi_slow_is_hopeless(m, &m->job[m->order[i]]) != m->job[m->order[i]].told)
            return "R8: a task is hopeless, and the caller does not know";
        if (waits_for_spare(m, i))
            return "R6: idle transient workers are in its way, and stay";
        if (gpi_slow_could_evict(m, i))
            return "R6: workers could go for it, and stay";
        if (gpi_slow_could_start(m, i) && (gpi_slow_has_run(m) || gpi_slow_could_work(m, i)))
            return "S7: it fits what is free, and did not start";
        if (gpi_slow_could_start(m, i) && gpi_slow_could_free_run(m, i))
            return "R6: it lacks a run, and a worker that could go stays";
        if (m->job[m->order[i]].promise < m->now && m->set.passing != GPI_PASS_NAIVE)
            return "S2: it has not started by its promise";
        if (gpi_slow_is_head(m, i) && !gpi_slow_needs_host(&m->job[m->order[i]]) &&
            m->job[m->order[i]].promise == NEVER && gpi_slow_promise_of(m, i) != NEVER)
            return "R3: a head has no promise";
    }
    return broken;
}
