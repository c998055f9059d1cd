/* SPDX-License-Identifier: MIT */
/* slow.c - the facts of the slow model. */
#include "sim/slow_state.h"

struct gpi_slow *gpi_slow_create(const struct gpi_plan_settings *set)
{
    struct gpi_slow *m = calloc(1, sizeof *m);

    m->set = *set;
    m->hand = calloc(set->runs, sizeof *m->hand);
    m->place = calloc(set->devices, sizeof *m->place);
    m->n_jobs = set->tasks + set->classes;
    m->job = calloc(m->n_jobs, sizeof *m->job);
    m->class = calloc(set->classes, sizeof *m->class);
    m->order = calloc(m->n_jobs, sizeof *m->order);
    m->head = calloc(set->devices, sizeof *m->head);
    m->lacks = calloc(m->n_jobs, sizeof *m->lacks);
    m->can = calloc(m->n_jobs, sizeof *m->can);
    return m;
}

void gpi_slow_destroy(struct gpi_slow *m)
{
    free(m->place);
    free(m->job);
    free(m->class);
    free(m->order);
    free(m->head);
    free(m->lacks);
    free(m->can);
    free(m->hand);
    free(m);
}

/* ---- facts ---- */

uint32_t gpi_slow_hands(const struct gpi_slow *m, uint32_t class)
{
    uint32_t n = 0;

    for (uint32_t w = 0; w < m->set.runs; w++)
        n += m->hand[w].class == class && (m->hand[w].state == BOOTS || m->hand[w].state == UP);
    return n;
}

uint32_t gpi_slow_least_hands(const struct class *c)
{
    return c->set.min_workers > c->to_load ? c->set.min_workers : c->to_load;
}

uint64_t gpi_slow_all_usable(const struct gpi_slow *m, uint32_t d)
{
    const uint64_t all = m->place[d].has.memory, part = all / 10000 * m->set.headroom;
    const uint64_t room = part > m->set.least_headroom ? part : m->set.least_headroom;

    return room < all ? all - room : 0;
}

bool gpi_slow_could(const struct gpi_slow *m, const struct gpi_request *r)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < m->n_places; d++)
        n += m->place[d].may != GPI_PLAN_GONE && m->place[d].has.compute >= r->compute &&
             (r->places == GPI_PLACES_ANY || m->place[d].in_set[r->places]) &&
             (r->memory == GPI_MEMORY_ALL || r->memory <= gpi_slow_all_usable(m, d));
    return n >= r->devices && r->devices <= 16 && r->cpus <= m->set.cpus &&
           r->host_memory <= m->set.host_memory;
}

bool gpi_slow_is_hopeless(const struct gpi_slow *m, const struct job *j)
{
    for (uint32_t v = 0; v < j->what.n_requests; v++)
        if (gpi_slow_could(m, &j->request[v]))
            return false;
    return true;
}

/* A class that lacks workers waits for one, with a task that never runs. */
void gpi_slow_count_loads(struct gpi_slow *m)
{
    for (uint32_t i = 0; i < m->set.classes; i++) {
        const struct class *c = &m->class[i];
        struct job *j = &m->job[m->set.tasks + i];
        const bool lacks = c->set.residence == GPI_RESIDENT && !c->paused &&
                           gpi_slow_hands(m, i) < gpi_slow_least_hands(c) &&
                           !gpi_slow_is_hopeless(m, j);
        if (lacks && j->state == GONE) {
            j->queued_at = m->now;
            j->promise = NEVER;
        }
        j->state = lacks ? WAITS : GONE;
    }
}

void gpi_slow_class_add(struct gpi_slow *m, uint32_t class, const struct gpi_plan_class *set)
{
    struct job *j = &m->job[m->set.tasks + class];

    m->class[class] =
        (struct class){ .set = *set, .boot = { .p50 = set->boot }, .run = { .p50 = set->run } };
    *j = (struct job){
        .what = { .class = class, .order = class, .limit = NEVER, .n_requests = set->n_needs },
        .hand = NONE
    };
    memcpy(j->request, set->need, sizeof j->request);
    gpi_slow_count_loads(m);
}

void gpi_slow_class_set(struct gpi_slow *m, uint64_t now, uint32_t class,
                        enum gpi_plan_class_what what)
{
    struct class *c = &m->class[class];

    m->now = now;
    m->happened |= 1u << GPI_PROMISE_CLASS;
    c->set.pinned = what == GPI_CLASS_PIN || (what != GPI_CLASS_UNPIN && c->set.pinned);
    if (what == GPI_CLASS_END)
        c->set.min_workers = 0;
    if (what == GPI_CLASS_PAUSE || what == GPI_CLASS_DRAIN || what == GPI_CLASS_RESUME ||
        what == GPI_CLASS_END)
        c->paused = what != GPI_CLASS_RESUME;
    if (what == GPI_CLASS_LOAD || what == GPI_CLASS_RESUME)
        c->again = 0;
    if (what == GPI_CLASS_LOAD)
        c->to_load |= gpi_slow_hands(m, class) == 0;
    if (what == GPI_CLASS_UNLOAD || what == GPI_CLASS_END)
        c->to_load = false;
    for (uint32_t w = 0; w < m->set.runs; w++)
        if (m->hand[w].class == class && (what == GPI_CLASS_DRAIN || what == GPI_CLASS_UNLOAD ||
                                          what == GPI_CLASS_END))
            m->hand[w].leaves = true;
    gpi_slow_count_loads(m);
}

int gpi_slow_compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void learn(struct times *t, uint64_t time)
{
    const uint32_t n = t->n < 31 ? t->n + 1 : 32;
    uint64_t sorted[32] = { 0 };

    t->last[t->n++ % 32] = time;
    memcpy(sorted, t->last, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, gpi_slow_compare);
    t->p50 = sorted[(n - 1) / 2];
}

void gpi_slow_time(struct gpi_slow *m, uint64_t now)
{
    m->now = now;
}

void gpi_slow_up(struct gpi_slow *m, uint64_t now, uint32_t worker)
{
    struct hand *h = &m->hand[worker];

    m->now = now;
    if (h->state != BOOTS)
        return;
    learn(&m->class[h->class].boot, now - h->since);
    m->class[h->class].to_load = false;
    h->state = UP;
    h->since = h->used = now;
    m->happened |= 1u << GPI_PROMISE_WORKERS;
}

void gpi_slow_leaves(struct gpi_slow *m, uint64_t now, uint32_t worker)
{
    struct hand *h = &m->hand[worker];

    m->now = now;
    m->happened |= 1u << GPI_PROMISE_WORKERS;
    h->dies |= h->state != UNLOADS;
    if (h->state == BOOTS || h->state == UP)
        h->state = h->job == NONE ? UNLOADS : LEAVES;
    if (h->job != NONE && m->job[h->job].grant == GRANTED)
        gpi_slow_revoke(&m->job[h->job]);
    gpi_slow_count_loads(m);
}

void gpi_slow_gone(struct gpi_slow *m, uint64_t now, uint32_t worker, uint64_t again)
{
    m->now = now;
    m->hand[worker].state = NO_HAND;
    m->class[m->hand[worker].class].again = again;
    m->happened |= 1u << GPI_PROMISE_WORKERS;
    gpi_slow_count_loads(m);
}

void gpi_slow_warm(struct gpi_slow *m, uint32_t worker, uint32_t class, const uint16_t *device,
                   uint32_t n)
{
    const struct gpi_plan_class *c = &m->class[class].set;
    struct hand *h = &m->hand[worker];

    *h = (struct hand){ .state = UP,
                        .class = class,
                        .job = NONE,
                        .need = c->need[0],
                        .n_devices = n,
                        .keep = c->keep_alive };
    memcpy(h->device, device, n * sizeof *device);
    gpi_slow_count_loads(m);
}

/* Readings are rounded up to 1/64 of the memory. */
static uint64_t rounded_up(const struct gpi_slow *m, uint32_t device, uint64_t bytes)
{
    const uint64_t part = m->place[device].has.memory / 64 + 1;

    return (bytes + part - 1) / part * part;
}

void gpi_slow_observed(struct gpi_slow *m, uint64_t now, uint32_t worker, uint32_t device,
                       uint64_t bytes)
{
    struct hand *h = &m->hand[worker];
    const uint64_t has = rounded_up(m, device, bytes);

    m->now = now;
    m->happened |= 1u << GPI_PROMISE_DEVICE;
    for (uint32_t i = 0; i < h->n_devices && h->need.memory != GPI_MEMORY_ALL; i++)
        if (h->device[i] == device)
            h->beyond[i] = has > h->need.memory ? has - h->need.memory : 0;
}

void gpi_slow_observed_of(struct gpi_slow *m, uint64_t now, uint32_t task, uint32_t device,
                          uint64_t bytes)
{
    struct job *j = &m->job[task];
    const uint64_t has = rounded_up(m, device, bytes), word = j->request[j->variant].memory;

    m->now = now;
    m->happened |= 1u << GPI_PROMISE_DEVICE;
    for (uint32_t i = 0; i < j->n_devices && word != GPI_MEMORY_ALL; i++)
        if (j->device[i] == device)
            j->beyond[i] = has > word ? has - word : 0;
}

void gpi_slow_device_add(struct gpi_slow *m, uint32_t device, const struct gpi_plan_has *has)
{
    m->place[device] = (struct place){ .has = *has };
    m->n_places = device + 1;
    gpi_slow_count_loads(m);
}

void gpi_slow_places_add(struct gpi_slow *m, uint32_t set, const uint16_t *device, uint32_t n)
{
    for (uint32_t i = 0; i < m->n_places && n == 0; i++)
        m->place[i].in_set[set] = false;
    for (uint32_t i = 0; i < n; i++)
        m->place[device[i]].in_set[set] = true;
    gpi_slow_count_loads(m);
}

/* The earliest time at which it could end, if it began now. */
uint64_t gpi_slow_plausible(const struct gpi_slow *m, const struct job *j)
{
    const struct class *c = &m->class[j->what.class];
    uint64_t least = 65536;

    for (uint32_t i = 0; i < 32 && i < c->n; i++)
        least = c->ratio[i] < least ? c->ratio[i] : least;
    return c->n < 4 || j->what.limit == NEVER
               ? m->now
               : m->now + (uint64_t)((unsigned __int128)j->what.limit * least / 65536);
}

void gpi_slow_adopt(struct gpi_slow *m, uint64_t now, uint32_t task,
                    const struct gpi_plan_task *what, const uint16_t *device, uint64_t ends_by)
{
    struct job *j = &m->job[task];

    m->now = now;
    m->happened |= 1u << GPI_PROMISE_DEVICE;
    *j = (struct job){ .state = RUNS,
                       .what = *what,
                       .request = { what->request[0] },
                       .promise = NEVER,
                       .n_devices = what->request[0].devices,
                       .begun = now,
                       .end_by = ends_by,
                       .hand = NONE };
    memcpy(j->device, device, j->n_devices * sizeof *device);
    j->plausible = gpi_slow_plausible(m, j);
}

/* With the stream task of a class the model knows the oldest task of its queue. */
static void know_oldest(struct gpi_slow *m, const struct job *stream)
{
    for (uint32_t t = 0; t < m->set.tasks; t++)
        m->job[t].ahead &= !stream->what.stream || m->job[t].what.class != stream->what.class;
}

void gpi_slow_submit(struct gpi_slow *m, uint64_t now, uint32_t task,
                     const struct gpi_plan_task *what)
{
    struct job *j = &m->job[task];

    m->now = now;
    m->happened |= 1u << GPI_PROMISE_ORDER;
    *j = (struct job){
        .state = WAITS, .what = *what, .promise = NEVER, .queued_at = now, .hand = NONE
    };
    j->what.order += m->set.classes;
    memcpy(j->request, what->request, sizeof *j->request * what->n_requests);
    know_oldest(m, j);
}

void gpi_slow_withdraw(struct gpi_slow *m, uint64_t now, uint32_t task)
{
    m->now = now;
    m->job[task].state = GONE;
    know_oldest(m, &m->job[task]);
}

void gpi_slow_end(struct gpi_slow *m, uint64_t now, uint32_t task, bool good, uint64_t run,
                  uint64_t keep_alive)
{
    struct job *j = &m->job[task];
    struct class *c = &m->class[j->what.class];

    m->now = now;
    run = run ? run : now - j->begun;
    j->state = GONE;
    if (j->hand != NONE) {
        m->hand[j->hand].job = NONE;
        m->hand[j->hand].used = now;
        m->hand[j->hand].keep = keep_alive ? keep_alive : c->set.keep_alive;
        if (m->hand[j->hand].dies)
            m->hand[j->hand].state = UNLOADS;
    }
    if (good && c->set.residence != GPI_EXTERNAL)
        learn(&c->run, run);
    if (good && j->what.limit != NEVER && j->grant == NO_GRANT)
        c->ratio[c->n++ % 32] = run >= j->what.limit
                                    ? 65535
                                    : (uint64_t)((unsigned __int128)run * 65536 / j->what.limit);
}

void gpi_slow_ends_by(struct gpi_slow *m, uint64_t now, uint32_t task, uint64_t at)
{
    struct job *j = &m->job[task];

    m->now = now;
    if (j->hand == NONE) {
        m->happened |= (uint32_t)(at > j->end_by) << GPI_PROMISE_DEVICE;
        j->end_by = at;
        return;
    }
    if (j->grant != REVOKED)
        return;
    j->ahead = false;
    j->end_by = at < j->end_by ? at : j->end_by;
}

void gpi_slow_device(struct gpi_slow *m, uint64_t now, uint32_t device, enum gpi_plan_may may)
{
    m->now = now;
    m->place[device].may = may;
    m->happened |= 1u << GPI_PROMISE_DEVICE;
    for (uint32_t w = 0; w < m->set.runs && may == GPI_PLAN_DRAINED; w++)
        if (gpi_slow_is_on(&m->hand[w], device))
            m->hand[w].leaves = true;
    gpi_slow_count_loads(m);
}

void gpi_slow_queue(struct gpi_slow *m, uint64_t now, uint32_t class, uint32_t n, uint64_t run)
{
    m->now = now;
    m->class[class].behind = n;
    m->class[class].mean = run;
    if (run && m->class[class].run.n == 0)
        learn(&m->class[class].run, run);
}

void gpi_slow_foreign(struct gpi_slow *m, uint64_t now, uint32_t device, uint64_t bytes,
                      uint32_t load)
{
    m->now = now;
    m->place[device].foreign = rounded_up(m, device, bytes);
    m->place[device].load = load;
    m->happened |= 1u << GPI_PROMISE_DEVICE;
}
