/* SPDX-License-Identifier: MIT */
/* explain_world.c - a random world around a plan, as facts that a fresh plan can be told again. */
#include "explain_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define GIB (1ull << 30)
#define US 1000u /* times are several ms, in which waits are counted */
#define GRACE (2000u * US)
#define NOBODY UINT32_MAX

static void tell(struct t_world *w, const struct t_fact *f);

static uint64_t below(struct t_world *w, uint64_t n)
{
    return gpi_random_below(&w->rng, n);
}

static uint32_t number(struct t_world *w, uint32_t n)
{
    return (uint32_t)below(w, n);
}

static bool chance(struct t_world *w, uint32_t percent)
{
    return below(w, 100) < percent;
}

/* ---- the beginning ---- */

static struct gpi_request invent_request(struct t_world *w)
{
    const uint32_t most = w->set.devices < 4 ? w->set.devices : 4;
    struct gpi_request r = { .cpus = chance(w, 20) ? 1 + number(w, 4) : 0,
                             .host_memory = chance(w, 10) ? GIB * below(w, 8) : 0 };

    if (chance(w, 12)) { /* CPU slots alone */
        r.cpus = 1 + number(w, 4);
        return r;
    }
    r.devices = chance(w, 60) ? 1 : 1 + number(w, most);
    r.share = r.devices == 1 && chance(w, 50) ? 1000 * (1 + number(w, 10)) : GPI_SHARE_ALL;
    r.memory = chance(w, 30) ? GPI_MEMORY_ALL : GIB * below(w, 40);
    r.compute = chance(w, 15) ? 900 : 0;
    r.places = w->set.place_sets && chance(w, 15) ? 1 + number(w, w->set.place_sets) : 0;
    return r;
}

static void invent_class(struct t_world *w, uint32_t i)
{
    struct gpi_plan_class *c = &w->class[i];

    *c = (struct gpi_plan_class){ .grace = GRACE,
                                  .n_needs = w->n_made[i],
                                  .max_workers = 1 + number(w, 4),
                                  .min_workers = chance(w, 20),
                                  .pinned = chance(w, 10),
                                  .min_residence = below(w, 20000) * US,
                                  .max_wait = below(w, 40) * GPI_MS,
                                  .keep_alive = chance(w, 70) ? GPI_NEVER : below(w, 60000) * US,
                                  .boot = 20000 * US,
                                  .unload = 1000 * US,
                                  .run = 5000 * US };
    memcpy(c->need, w->made[i], sizeof c->need);
    c->residence = !w->workers || chance(w, 35) ? GPI_EXTERNAL
                   : chance(w, 60)              ? GPI_RESIDENT
                                                : GPI_TRANSIENT;
}

static void invent_places(struct t_world *w)
{
    for (uint32_t i = 0; i < w->set.place_sets; i++)
        for (uint16_t d = 0; d < w->set.devices; d++)
            if (chance(w, 50))
                w->place[i][w->n_place[i]++] = d;
}

static void invent(struct t_world *w)
{
    w->workers = chance(w, 60);
    w->set =
        (struct gpi_plan_settings){ .tasks = T_TASKS,
                                    .shapes = T_TASKS,
                                    .classes = T_CLASSES,
                                    .devices = 1 + number(w, T_DEVICES),
                                    .runs =
                                        !w->workers && chance(w, 25) ? 2 + number(w, 8) : T_RUNS,
                                    .place_sets = chance(w, 40) ? 1 + number(w, 3) : 0,
                                    .mode = chance(w, 25) ? GPI_MODE_STRICT : GPI_MODE_BACKFILL,
                                    .passing = (enum gpi_passing)below(w, 4),
                                    .cpus = number(w, 12),
                                    .host_memory = 16 * GIB,
                                    .headroom = 1000,
                                    .least_headroom = GIB / 2,
                                    .foreign_memory = GIB };
    for (uint32_t i = 0; i < w->set.devices; i++)
        w->has[i] = (struct gpi_plan_has){ .memory = chance(w, 50) ? 24 * GIB : 80 * GIB,
                                           .compute = chance(w, 50) ? 900 : 806 };
    invent_places(w);
    for (uint32_t i = 0; i < T_MADE; i++) {
        w->n_made[i] = chance(w, 75) ? 1 : 1 + number(w, GPI_VARIANTS);
        for (uint32_t j = 0; j < w->n_made[i]; j++)
            w->made[i][j] = invent_request(w);
    }
    for (uint32_t i = 0; i < T_CLASSES; i++)
        invent_class(w, i);
}

static struct gpi_plan *make_plan(const struct t_world *w)
{
    struct gpi_plan *p = gpi_plan_create(&w->set);

    if (!p)
        abort();
    for (uint32_t i = 0; i < w->set.devices; i++)
        gpi_plan_device_add(p, i, &w->has[i]);
    for (uint32_t i = 0; i < w->set.place_sets; i++)
        gpi_plan_places_add(p, i + 1, w->place[i], w->n_place[i]);
    for (uint32_t i = 0; i < T_CLASSES; i++)
        gpi_plan_class_add(p, i, &w->class[i]);
    return p;
}

void t_world_begin(struct t_world *w, uint64_t seed, bool mixed, bool adopts)
{
    memset(w, 0, sizeof *w);
    w->mixed = mixed;
    w->adopts = adopts;
    w->rng.state = seed;
    invent(w);
    w->p = make_plan(w);
}

void t_world_end(struct t_world *w)
{
    gpi_plan_destroy(w->p);
}

/* ---- facts ---- */

static uint32_t feed_adopt(struct gpi_plan *p, const struct t_fact *f)
{
    const struct gpi_plan_adoption a = { .class = f->what.class,
                                         .has = f->has,
                                         .device = f->device,
                                         .limit = f->what.limit,
                                         .ends_by = f->at };

    return gpi_plan_adopt(p, f->now, f->who, &a);
}

uint32_t t_fact_feed(struct gpi_plan *p, const struct t_fact *f)
{
    switch (f->kind) {
    case T_SUBMIT:
        if (!gpi_plan_submit(p, f->now, f->who, &f->what))
            abort();
        break;
    case T_WITHDRAW:
        gpi_plan_withdraw(p, f->now, f->who);
        break;
    case T_END:
        gpi_plan_end(p, f->now, f->who, f->how, 0, f->at);
        break;
    case T_UP:
        gpi_plan_up(p, f->now, f->who);
        break;
    case T_DYING:
        gpi_plan_leaves(p, f->now, f->who);
        break;
    case T_GONE:
        gpi_plan_gone(p, f->now, f->who, f->at);
        break;
    case T_DEVICE:
        gpi_plan_device(p, f->now, f->who, (enum gpi_plan_may)f->how);
        break;
    case T_FOREIGN:
        gpi_plan_foreign(p, f->now, f->who, f->at, 0);
        break;
    case T_OBSERVED:
        gpi_plan_observed(p, f->now, f->who, f->how, f->at);
        break;
    case T_ADOPT:
        return feed_adopt(p, f);
    case T_ENDS_BY:
        gpi_plan_ends_by(p, f->now, f->who, f->at);
        break;
    case T_CLASS:
        gpi_plan_class_set(p, f->now, f->who, (enum gpi_plan_class_what)f->how);
        break;
    case T_DECIDE:
        gpi_plan_decide(p, f->now);
    }
    return GPI_NOWHERE;
}

static void add_up(uint64_t *sum, const struct gpi_plan_action *a)
{
    *sum = (*sum ^ a->kind ^ (uint64_t)a->task << 8 ^ (uint64_t)a->worker << 32 ^ a->at) *
           0x9e3779b97f4a7c15ull;
    for (uint32_t i = 0; i < a->n_devices; i++)
        *sum = (*sum ^ a->device[i]) * 0x9e3779b97f4a7c15ull;
}

struct gpi_plan *t_world_replay(const struct t_world *w, uint64_t *ret_actions)
{
    struct gpi_plan *p = make_plan(w);
    struct gpi_plan_action a;

    *ret_actions = 0;
    for (uint32_t i = 0; i < w->n_facts; i++) {
        (void)t_fact_feed(p, &w->fact[i]);
        while (gpi_plan_next(p, &a))
            add_up(ret_actions, &a);
    }
    return p;
}

/* ---- actions ---- */

static void run(struct t_world *w, const struct gpi_plan_action *a)
{
    struct t_task *t = &w->task[a->task];

    t->state = T_RUNS_NOW;
    t->worker = a->worker;
    t->run = a->run;
    t->ends = w->now + t->takes;
    t->n_devices = a->n_devices;
    memcpy(t->device, a->device, sizeof *a->device * a->n_devices);
    if (a->worker != GPI_NOWHERE)
        w->worker[a->worker].task = a->task;
}

/* No device is left that could hold the task. */
static void drop(struct t_world *w)
{
    for (uint32_t i = 0; i < T_TASKS; i++)
        if (w->task[i].state == T_HOPELESS) {
            w->task[i].state = T_NOT;
            tell(w, &(struct t_fact){ .kind = T_WITHDRAW, .who = i });
        }
}

static void act(struct t_world *w)
{
    struct gpi_plan_action a;

    while (gpi_plan_next(w->p, &a)) {
        struct t_worker *h = a.worker == GPI_NOWHERE ? NULL : &w->worker[a.worker];
        add_up(&w->actions, &a);
        if (a.kind == GPI_PLAN_RUN)
            run(w, &a);
        if (a.kind == GPI_PLAN_HOPELESS)
            w->task[a.task].state = T_HOPELESS;
        if (a.kind == GPI_PLAN_BOOT) {
            *h = (struct t_worker){ .work = T_BOOTS,
                                    .task = NOBODY,
                                    .n_devices = a.n_devices,
                                    .at = w->now + (1000 + below(w, 40000)) * US };
            memcpy(h->device, a.device, sizeof *a.device * a.n_devices);
        }
        if (a.kind == GPI_PLAN_UNLOAD) {
            h->work = T_LEAVES;
            h->at = w->now + below(w, 3000) * US;
        }
    }
}

static void tell(struct t_world *w, const struct t_fact *f)
{
    struct t_fact *kept = &w->fact[w->n_facts++];
    uint32_t run;

    *kept = *f;
    kept->now = w->now;
    run = t_fact_feed(w->p, kept);
    if (f->kind == T_ADOPT)
        w->task[f->who].run = run;
    act(w);
    drop(w);
}

/* ---- what happens ---- */

bool t_world_invent(struct t_world *w, struct gpi_plan_task *ret)
{
    const uint32_t kind = number(w, T_MADE), class = kind % T_CLASSES;
    const enum gpi_residence residence = w->class[class].residence;
    const bool own = residence == GPI_RESIDENT || (residence == GPI_TRANSIENT && !w->mixed);
    const uint32_t from = own ? class : kind;

    w->order++;
    *ret = (struct gpi_plan_task){ .class = class,
                                   .request = w->made[from],
                                   .n_requests = w->n_made[from],
                                   .priority = chance(w, 80) ? 0 : (int32_t)below(w, 5) - 2,
                                   .order = w->order * 8 };
    ret->stream = residence != GPI_EXTERNAL && w->order % 2;
    ret->order -= chance(w, 10) ? below(w, w->order * 7) : 0;
    ret->limit = chance(w, 15) ? GPI_NEVER : (100 + gpi_random_scale(&w->rng, 1, 50000)) * US;
    for (uint32_t i = 0; i < T_TASKS; i++)
        if (w->task[i].what.order == ret->order)
            return false;
    for (uint32_t i = 0; i < ret->n_requests; i++)
        if (!gpi_plan_could(w->p, &ret->request[i]))
            return false;
    return true;
}

static uint32_t unused_task(const struct t_world *w)
{
    uint32_t i = 0;

    while (i < T_TASKS && w->task[i].state != T_NOT)
        i++;
    return i;
}

static void submit(struct t_world *w)
{
    struct t_fact f = { .kind = T_SUBMIT, .who = unused_task(w) };
    struct t_task *t;

    if (f.who == T_TASKS || !t_world_invent(w, &f.what))
        return;
    t = &w->task[f.who];
    *t = (struct t_task){ .state = T_WAITS, .what = f.what };
    t->takes = f.what.limit == GPI_NEVER
                   ? below(w, 100000) * US
                   : f.what.limit * (20 + below(w, 80)) / 100 + below(w, 2) * below(w, GRACE);
    tell(w, &f);
}

static void end(struct t_world *w, uint32_t task, bool good)
{
    struct t_task *t = &w->task[task];

    t->state = T_NOT;
    if (t->worker != GPI_NOWHERE)
        w->worker[t->worker].task = NOBODY;
    tell(w, &(struct t_fact){ .kind = T_END,
                              .who = task,
                              .how = good,
                              .at = chance(w, 10) ? (1 + below(w, 20000)) * US : 0 });
}

static void gone(struct t_world *w, uint32_t worker, uint64_t again)
{
    if (w->worker[worker].task != NOBODY)
        end(w, w->worker[worker].task, false);
    w->worker[worker].work = T_NO_WORKER;
    tell(w, &(struct t_fact){ .kind = T_GONE, .who = worker, .at = again });
}

static bool has(const uint16_t *device, uint32_t n, uint32_t d)
{
    for (uint32_t i = 0; i < n; i++)
        if (device[i] == d)
            return true;
    return false;
}

/* What a device had that is out ends. */
static void change_device(struct t_world *w)
{
    const uint32_t d = number(w, w->set.devices);
    const enum gpi_plan_may may = chance(w, 60)   ? GPI_PLAN_IN
                                  : chance(w, 40) ? GPI_PLAN_PAUSED
                                  : chance(w, 30) ? GPI_PLAN_DRAINED
                                  : chance(w, 90) ? GPI_PLAN_OUT
                                                  : GPI_PLAN_GONE;

    if (w->gone[d])
        return;
    w->gone[d] = may == GPI_PLAN_GONE;
    tell(w, &(struct t_fact){ .kind = T_DEVICE, .who = d, .how = may });
    if (may != GPI_PLAN_OUT && may != GPI_PLAN_GONE)
        return;
    for (uint32_t i = 0; i < T_TASKS; i++)
        if (w->task[i].state == T_RUNS_NOW && w->task[i].worker == GPI_NOWHERE &&
            has(w->task[i].device, w->task[i].n_devices, d))
            end(w, i, false);
    for (uint32_t i = 0; i < T_RUNS; i++)
        if (w->worker[i].work != T_NO_WORKER && has(w->worker[i].device, w->worker[i].n_devices, d))
            gone(w, i, w->now);
}

static uint32_t next_worker(const struct t_world *w)
{
    uint32_t best = NOBODY;

    for (uint32_t i = 0; i < T_RUNS; i++)
        if ((w->worker[i].work == T_BOOTS || w->worker[i].work == T_LEAVES) &&
            (best == NOBODY || w->worker[i].at < w->worker[best].at))
            best = i;
    return best;
}

static uint32_t next_end(const struct t_world *w)
{
    uint32_t best = NOBODY;

    for (uint32_t i = 0; i < T_TASKS; i++)
        if (w->task[i].state == T_RUNS_NOW &&
            (best == NOBODY || w->task[i].ends < w->task[best].ends))
            best = i;
    return best;
}

static void go_on(struct t_world *w, uint64_t time)
{
    w->now = time > w->now ? time : w->now;
}

static void change_worker(struct t_world *w, uint32_t i)
{
    go_on(w, w->worker[i].at);
    if (w->worker[i].work == T_LEAVES || chance(w, 10)) {
        gone(w, i, w->worker[i].work == T_LEAVES ? w->now : w->now + below(w, 20000) * US);
        return;
    }
    w->worker[i].work = T_IS_UP;
    tell(w, &(struct t_fact){ .kind = T_UP, .who = i });
}

static void withdraw(struct t_world *w)
{
    const uint32_t i = number(w, T_TASKS);

    if (w->task[i].state != T_WAITS)
        return;
    w->task[i].state = T_NOT;
    tell(w, &(struct t_fact){ .kind = T_WITHDRAW, .who = i });
}

static void change_class(struct t_world *w)
{
    static const enum gpi_plan_class_what whats[] = { GPI_CLASS_PAUSE,  GPI_CLASS_RESUME,
                                                      GPI_CLASS_RESUME, GPI_CLASS_DRAIN,
                                                      GPI_CLASS_LOAD,   GPI_CLASS_UNLOAD,
                                                      GPI_CLASS_PIN,    GPI_CLASS_UNPIN };
    const uint32_t class = number(w, T_CLASSES);
    const uint32_t n = w->class[class].residence == GPI_EXTERNAL ? 3 : 8;

    tell(w, &(struct t_fact){ .kind = T_CLASS, .who = class, .how = whats[number(w, n)] });
}

static void observe(struct t_world *w)
{
    const uint32_t i = number(w, T_RUNS);
    const struct t_worker *h = &w->worker[i];

    if (h->work == T_IS_UP && h->n_devices)
        tell(w, &(struct t_fact){ .kind = T_OBSERVED,
                                  .who = i,
                                  .how = h->device[number(w, h->n_devices)],
                                  .at = below(w, 12 * GIB) });
}

static void change_foreign(struct t_world *w)
{
    tell(w, &(struct t_fact){ .kind = T_FOREIGN,
                              .who = number(w, w->set.devices),
                              .at = chance(w, 50) ? 0 : below(w, 10 * GIB) });
}

/* Often the task ends as late as it may. */
static uint64_t end_by(struct t_world *w, struct t_task *t)
{
    const uint64_t most = chance(w, 10) ? 0 : gpi_random_scale(&w->rng, 1, 50000) * US;

    t->ends = w->now + (chance(w, 50) ? most : below(w, most + 1));
    return chance(w, 75) ? w->now + most : GPI_NEVER;
}

/* Often it has more than its devices have. */
static void adopt(struct t_world *w)
{
    struct t_fact f = { .kind = T_ADOPT,
                        .who = unused_task(w),
                        .what.class = number(w, T_CLASSES) };
    const uint32_t most = w->set.devices < 3 ? w->set.devices : 3;
    const uint32_t first = chance(w, 40) ? 0 : number(w, w->set.devices);
    struct t_task *t;

    if (f.who == T_TASKS || w->class[f.what.class].residence != GPI_EXTERNAL ||
        !gpi_plan_has_run(w->p))
        return;
    f.has = (struct gpi_request){ .devices = chance(w, 70) ? 1 : number(w, most + 1),
                                  .share = 1000 * number(w, 11),
                                  .memory = chance(w, 25) ? GPI_MEMORY_ALL : GIB * below(w, 60),
                                  .cpus = chance(w, 40) ? number(w, 10) : 0,
                                  .host_memory = chance(w, 20) ? GIB * below(w, 20) : 0 };
    f.what.limit = chance(w, 30) ? GPI_NEVER : (100 + gpi_random_scale(&w->rng, 1, 50000)) * US;
    t = &w->task[f.who];
    *t = (struct t_task){ .state = T_RUNS_NOW,
                          .what.class = f.what.class,
                          .worker = GPI_NOWHERE,
                          .n_devices = f.has.devices };
    f.at = end_by(w, t);
    for (uint32_t i = 0; i < f.has.devices; i++)
        f.device[i] = t->device[i] = (uint16_t)((first + i) % w->set.devices);
    tell(w, &f);
}

/* The end of a run without a worker moves, or a reading of it is above its word. */
static void change_run(struct t_world *w)
{
    const uint32_t i = number(w, T_TASKS);
    struct t_task *t = &w->task[i];

    if (t->state != T_RUNS_NOW || t->worker != GPI_NOWHERE)
        return;
    if (t->n_devices && chance(w, 50))
        tell(w, &(struct t_fact){ .kind = T_OBSERVED,
                                  .who = t->run,
                                  .how = t->device[number(w, t->n_devices)],
                                  .at = below(w, 60 * GIB) });
    else
        tell(w, &(struct t_fact){ .kind = T_ENDS_BY, .who = i, .at = end_by(w, t) });
}

/* A worker dies, at once or soon. */
static void crash(struct t_world *w)
{
    const uint32_t i = number(w, T_RUNS);

    if (w->worker[i].work == T_IS_UP && w->order % 2) {
        w->worker[i].work = T_LEAVES;
        w->worker[i].at = w->now + 2000 * US;
        tell(w, &(struct t_fact){ .kind = T_DYING, .who = i });
    } else if (w->worker[i].work == T_IS_UP)
        gone(w, i, w->now + below(w, 2) * below(w, 20000) * US);
}

static void happen(struct t_world *w)
{
    const uint32_t t = next_end(w), h = next_worker(w), x = number(w, 100);
    const uint64_t due = gpi_plan_due(w->p);
    const uint64_t ends = t == NOBODY ? GPI_NEVER : w->task[t].ends;
    const uint64_t changes = h == NOBODY ? GPI_NEVER : w->worker[h].at;

    if (due < ends && due < changes && chance(w, 20))
        go_on(w, due);
    else if (changes < ends && chance(w, 30))
        change_worker(w, h);
    else if (x < 2)
        crash(w);
    else if (x < 52)
        submit(w);
    else if (x < 90 && t != NOBODY) {
        go_on(w, ends);
        end(w, t, chance(w, 80));
    } else if (x < 93)
        withdraw(w);
    else if (x < 95)
        change_device(w);
    else if (x < 97)
        change_class(w);
    else if (x < 98)
        observe(w);
    else
        change_foreign(w);
}

bool t_world_step(struct t_world *w)
{
    if (w->adopts && chance(w, 6))
        adopt(w);
    else if (w->adopts && chance(w, 12))
        change_run(w);
    else
        happen(w);
    if (!chance(w, 70))
        return false;
    do /* tasks that are found hopeless are withdrawn, and that is a fact again */
        tell(w, &(struct t_fact){ .kind = T_DECIDE });
    while (w->fact[w->n_facts - 1].kind != T_DECIDE);
    return true;
}
