/* SPDX-License-Identifier: MIT */
/*
 * world_external.c - external work: a host that runs the tasks of external classes itself.
 *
 * The work is outside of the host.  It ends by its own time, and the host learns that later.
 */
#include "sim/world_state.h"

#define GIB (1ull << 30)

static struct gpi_world_work *work_of(struct gpi_world *w, uint32_t task)
{
    return &w->work[task];
}

/* ---- a seed becomes external classes and tasks ---- */

void gpi_work_draw(struct gpi_world *w)
{
    const uint32_t often = (uint32_t)gpi_random_below(&w->random, 1000000);

    w->external = true;
    w->set.pool.plan.host_memory = 64 * GIB;
    if (gpi_random_chance(&w->random, 300000))
        w->set.class.setup_limit = gpi_world_time(w, 2 * GPI_MS, 300 * GPI_MS);
    for (uint32_t i = GPI_TROUBLE_DECLINES; i < GPI_TROUBLES; i++)
        w->chance[i] = gpi_random_chance(&w->random, often)
                           ? (uint32_t)gpi_world_time(w, 5000, 400000)
                           : 0;
    if (gpi_random_chance(&w->random, 100000)) /* a host that is slow to start anything */
        w->chance[GPI_TROUBLE_UNSTARTED] = w->chance[GPI_TROUBLE_DECLINES] =
            w->chance[GPI_TROUBLE_IDLE_ENDS] = 300000;
}

void gpi_work_draw_class(struct gpi_world *w, uint32_t class)
{
    struct gpi_plan_class *k = &w->truth.class[class];
    const bool external = w->seed % 30 == 9 || gpi_random_chance(&w->random, 500000);

    if (external) {
        k->residence = GPI_EXTERNAL;
        k->min_workers = 0;
        k->pinned = false;
    }
    w->truth.own[class] |= external;
    w->truth.all_external = w->seed % 30 == 9;
}

static struct gpi_request draw_request(struct gpi_world *w)
{
    struct gpi_request r = gpi_pool_draw_need(w);

    if (gpi_random_chance(&w->random, 200000))
        r.host_memory = gpi_random_from(&w->random, 1, 64) * GIB;
    return r;
}

void gpi_work_draw_task(struct gpi_world *w, struct gpi_truth_task *t)
{
    t->stall = gpi_random_chance(&w->random, 400000) ? gpi_world_time(w, GPI_MS, GPI_S) : 0;
    t->n_requests = (uint32_t)gpi_random_from(&w->random, 1, gpi_random_chance(&w->random, 900000)
                                                                 ? 2
                                                                 : GPI_VARIANTS);
    for (uint32_t i = 0; i < t->n_requests; i++)
        t->request[i] = draw_request(w);
}

/* ---- facts about work ---- */

static void plan(struct gpi_world *w, enum gpi_fact_kind kind, uint32_t task, uint32_t token,
                 uint64_t wait)
{
    if (wait != GPI_NEVER)
        gpi_agenda_add(w, (struct gpi_fact){ .at = gpi_time_add(w->now, wait),
                                             .kind = kind,
                                             .task = task,
                                             .token = token });
}

static void feed(struct gpi_world *w, uint32_t kind, uint32_t task, uint32_t how, uint64_t at)
{
    gpi_host_feed(w, (struct gpi_sched_event){
                         .kind = kind, .task = task, .how = how, .at = at });
}

static void forget(struct gpi_world_work *k)
{
    k->granted = k->started = false;
    k->life++;
    k->step++;
}

/* The work ends after a while, unless something else ends it. */
static void end_in(struct gpi_world *w, uint32_t task, uint64_t wait, uint32_t how)
{
    struct gpi_world_work *k = work_of(w, task);

    k->how = how;
    plan(w, GPI_FACT_WORK_ENDS, task, ++k->step, wait);
}

static uint32_t draw_how(struct gpi_world *w)
{
    return gpi_world_happens(w, GPI_TROUBLE_TASK_CRASHES) ? GPI_ENDED_CRASHED
           : gpi_world_happens(w, GPI_TROUBLE_TASK_FAILS) ? GPI_ENDED_ERROR
                                                          : GPI_ENDED_SUCCESS;
}

/* Some work takes as long as its limit, a little less, or more. */
static uint64_t draw_length(struct gpi_world *w, uint32_t task)
{
    const uint64_t limit = w->truth.task[task].limit;

    if (gpi_world_happens(w, GPI_TROUBLE_TASK_HANGS))
        return GPI_NEVER;
    if (limit != GPI_NEVER && gpi_world_happens(w, GPI_TROUBLE_TASK_LATE))
        return limit - limit / 100 + gpi_world_time(w, GPI_US, limit / 10 + GPI_MS);
    return gpi_world_time(w, GPI_US, 4 * w->task_time);
}

static uint64_t next_progress(struct gpi_world *w, uint32_t task)
{
    const uint64_t stall = w->truth.task[task].stall;

    if (stall == 0)
        return gpi_random_chance(&w->random, 900000) ? GPI_NEVER : w->task_time;
    return stall / 2 + gpi_random_below(&w->random, stall / 2 + stall / 50 + 1);
}

static void run(struct gpi_world *w, uint32_t task)
{
    struct gpi_world_work *k = work_of(w, task);

    k->started = true;
    k->over = false;
    k->obeys = !gpi_world_happens(w, GPI_TROUBLE_TASK_HANGS);
    k->stalls = gpi_world_happens(w, GPI_TROUBLE_STALLS);
    end_in(w, task, draw_length(w, task), draw_how(w));
    plan(w, GPI_FACT_PROGRESS, task, k->life, next_progress(w, task));
}

/* ---- the host ---- */

static void start(struct gpi_world *w, uint32_t task)
{
    struct gpi_world_work *k = work_of(w, task);
    const uint64_t since = w->now - k->granted_at;

    k->started_at = gpi_random_chance(&w->random, 500000)
                        ? w->now
                        : w->now - gpi_random_below(&w->random, since + 1);
    w->truth.task[task].starts++;
    run(w, task);
    feed(w, GPI_EV_STARTED, task, 0, k->started_at);
}

static void decline(struct gpi_world *w, uint32_t task)
{
    const bool waits = gpi_random_chance(&w->random, 500000);

    forget(work_of(w, task));
    feed(w, GPI_EV_DECLINED, task, 0,
         waits ? w->now + gpi_world_time(w, GPI_US, 2 * GPI_S) : gpi_random_below(&w->random, 2));
}

static void end_unstarted(struct gpi_world *w, uint32_t task)
{
    forget(work_of(w, task));
    w->truth.task[task].starts++;
    feed(w, GPI_EV_ENDED, task, draw_how(w), w->now);
}

/* It has the grant, and acts on it now. */
static void granted(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_work *k = work_of(w, f->task);

    if (f->token != k->life || !k->granted || k->started)
        return;
    if (k->plan == GPI_WORK_STARTS)
        start(w, f->task);
    else if (k->plan == GPI_WORK_DECLINES)
        decline(w, f->task);
    else if (k->plan == GPI_WORK_ENDS)
        end_unstarted(w, f->task);
}

static void progressed(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_work *k = work_of(w, f->task);

    if (f->token != k->life || !k->started || k->over)
        return;
    if (k->stalls && gpi_random_chance(&w->random, 300000))
        return;
    feed(w, GPI_EV_PROGRESS, f->task, 0, 0);
    if (f->token == k->life)
        plan(w, GPI_FACT_PROGRESS, f->task, k->life, next_progress(w, f->task));
}

static void ended(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_work *k = work_of(w, f->task);
    const bool held = w->oracle.task[f->task].state == GPI_BOOK_HELD;

    if (f->token != k->life || !k->started)
        return;
    forget(k);
    feed(w, GPI_EV_ENDED, f->task, k->how, k->over_at);
    if (held)
        w->submitted[f->task] = false;
}

/* Outside of the host. */
static void work_ends(struct gpi_world *w, const struct gpi_fact *f)
{
    struct gpi_world_work *k = work_of(w, f->task);
    uint64_t wait = gpi_random_below(&w->random, w->latency + 1);

    if (f->token != k->step || !k->started || k->over)
        return;
    k->over = true;
    k->over_at = w->now;
    if (gpi_world_happens(w, GPI_TROUBLE_LATE_WORDS))
        wait = gpi_world_time(w, GPI_MS, 2 * GPI_S);
    plan(w, GPI_FACT_ENDED, f->task, k->life, wait);
}

void gpi_work_fact(struct gpi_world *w, const struct gpi_fact *f)
{
    switch (f->kind) {
    case GPI_FACT_WORK_ENDS: work_ends(w, f); break;
    case GPI_FACT_GRANTED: granted(w, f); break;
    case GPI_FACT_PROGRESS: progressed(w, f); break;
    default: ended(w, f); break;
    }
}

/* ---- orders ---- */

static uint32_t draw_plan(struct gpi_world *w)
{
    if (gpi_world_happens(w, GPI_TROUBLE_DECLINES))
        return GPI_WORK_DECLINES;
    if (gpi_world_happens(w, GPI_TROUBLE_UNSTARTED))
        return GPI_WORK_NOTHING;
    return gpi_world_happens(w, GPI_TROUBLE_IDLE_ENDS) ? GPI_WORK_ENDS : GPI_WORK_STARTS;
}

static void take_grant(struct gpi_world *w, uint32_t task)
{
    struct gpi_world_work *k = work_of(w, task);
    const uint64_t limit = w->set.class.setup_limit;
    const bool now = gpi_random_chance(&w->random, 200000);
    uint64_t wait = now ? 0 : gpi_world_time(w, GPI_US, 20 * GPI_MS);

    if (gpi_world_happens(w, GPI_TROUBLE_STARTS_LATE))
        wait = limit / 2 + gpi_random_below(&w->random, limit / 2 + limit / 10);
    forget(k);
    k->granted = true;
    k->granted_at = w->now;
    k->unkillable = gpi_world_happens(w, GPI_TROUBLE_SURVIVES);
    k->plan = draw_plan(w);
    plan(w, GPI_FACT_GRANTED, task, k->life, wait);
}

static void soft_end(struct gpi_world *w, uint32_t task)
{
    struct gpi_world_work *k = work_of(w, task);
    const uint32_t how = (uint32_t)gpi_random_below(&w->random, GPI_ENDED_CRASHED + 1);

    if (k->obeys && !k->over)
        end_in(w, task, gpi_world_time(w, 20 * GPI_US, 2 * w->set.class.grace), how);
}

/* A kill takes effect soon; or late; or never. */
static void hard_end(struct gpi_world *w, uint32_t task)
{
    struct gpi_world_work *k = work_of(w, task);
    uint64_t wait = gpi_world_time(w, 20 * GPI_US, 3 * GPI_MS);

    if (k->over)
        return;
    if (gpi_world_happens(w, GPI_TROUBLE_SLOW_DEATH))
        wait = gpi_world_time(w, GPI_MS, w->kill_limit);
    if (k->unkillable)
        wait = gpi_random_chance(&w->random, 500000) ? GPI_NEVER : 2 * w->kill_limit;
    end_in(w, task, wait, gpi_random_chance(&w->random, 900000) ? GPI_ENDED_CRASHED : draw_how(w));
}

void gpi_work_ordered(struct gpi_world *w, const struct gpi_sched_action *a)
{
    if (a->task >= w->truth.tasks)
        return;
    if (a->kind == GPI_ACT_GRANT)
        take_grant(w, a->task);
    else if (a->how == GPI_REVOKE_BACK)
        forget(work_of(w, a->task));
    else if (a->how == GPI_REVOKE_SOFT)
        soft_end(w, a->task);
    else
        hard_end(w, a->task);
}

void gpi_work_left(struct gpi_world *w)
{
    for (uint32_t i = 0; i < w->truth.tasks; i++) {
        if (!w->work[i].started)
            continue;
        forget(work_of(w, i));
        w->submitted[i] = false;
    }
}

/* ---- adoption ---- */

static struct gpi_request draw_parts(struct gpi_world *w)
{
    struct gpi_random *r = &w->random;
    struct gpi_request has = {
        .devices = (uint32_t)gpi_random_below(r, w->truth.devices + 1),
        .share = (uint32_t)gpi_random_from(r, 1, GPI_SHARE_ALL),
        .memory = gpi_random_chance(r, 100000) ? GPI_MEMORY_ALL : gpi_random_below(r, 60) * GIB,
        .cpus = (uint32_t)gpi_random_below(r, 4),
        .host_memory = gpi_random_chance(r, 800000) ? 0 : gpi_random_below(r, 100) * GIB,
    };

    if (has.devices > 1)
        has.share = GPI_SHARE_ALL;
    if (has.devices == 0)
        has.share = 0, has.memory = 0;
    return has;
}

static void draw_adoption(struct gpi_world *w, struct gpi_truth_adoption *a)
{
    struct gpi_random *r = &w->random;
    const uint64_t before = gpi_random_chance(r, 500000) ? 0 : gpi_world_time(w, GPI_US, GPI_S);
    const uint32_t first = (uint32_t)gpi_random_below(r, w->truth.devices);

    *a = (struct gpi_truth_adoption){ .has = draw_parts(w),
                                      .grant = (uint32_t)gpi_random_from(r, 1, 5),
                                      .attempts = (uint32_t)gpi_random_below(r, 3),
                                      .started_at = w->now - gpi_time_min(before, w->now),
                                      .given_up = gpi_random_chance(r, 200000) };
    for (uint32_t i = 0; i < a->has.devices; i++)
        a->device[i] = (uint16_t)((first + i) % w->truth.devices);
}

static void adopt(struct gpi_world *w)
{
    const uint32_t task = gpi_user_submit(w);
    struct gpi_truth_adoption a;
    struct gpi_world_work *k;

    if (task == GPI_NOWHERE || !w->submitted[task] || w->oracle.objected ||
        !gpi_book_is_external(&w->oracle, w->truth.task[task].class) ||
        !gpi_sched_has_run(w->play.core))
        return;
    if (!gpi_sched_can_adopt(w->play.core, task)) { /* a worker may have had its record before */
        if (w->truth.all_external)
            gpi_oracle_object(&w->oracle, GPI_ORACLE_SAFETY, "a new task cannot be adopted");
        return;
    }
    k = work_of(w, task);
    draw_adoption(w, &a);
    w->truth.task[task].starts = a.attempts + 1;
    forget(k);
    k->granted = true;
    k->granted_at = k->started_at = a.started_at;
    k->unkillable = gpi_world_happens(w, GPI_TROUBLE_SURVIVES);
    run(w, task);
    gpi_host_adopt(w, task, &a);
}

void gpi_work_begin(struct gpi_world *w)
{
    for (uint32_t i = 0; i < 3 && w->external; i++)
        if (gpi_world_happens(w, GPI_TROUBLE_ADOPTS))
            adopt(w);
}

/* ---- out of the blue ---- */

static void read_work(struct gpi_world *w)
{
    const struct gpi_book_lease *l =
        &w->oracle.lease[gpi_random_below(&w->random, w->truth.slots)];
    uint32_t device;

    if (l->state != GPI_BOOK_STARTED || l->n_devices == 0)
        return;
    device = l->device[gpi_random_below(&w->random, l->n_devices)];
    gpi_host_observed_of(w, l->task, device,
                         gpi_random_below(&w->random, w->truth.usable[device]));
}

/* A word of the host about a grant that is over changes nothing. */
static void stray(struct gpi_world *w)
{
    static const uint32_t kinds[] = { GPI_EV_STARTED, GPI_EV_DECLINED, GPI_EV_PROGRESS,
                                      GPI_EV_ENDED };
    const uint32_t task = (uint32_t)gpi_random_below(&w->random, w->truth.tasks);

    if (!w->work[task].granted)
        feed(w, kinds[gpi_random_below(&w->random, 4)], task,
             (uint32_t)gpi_random_below(&w->random, 3), w->now);
}

void gpi_work_disturb(struct gpi_world *w)
{
    if (w->stopped_until > w->now)
        return;
    if (gpi_world_happens(w, GPI_TROUBLE_READINGS))
        read_work(w);
    if (gpi_world_happens(w, GPI_TROUBLE_LATE_WORDS))
        stray(w);
    if (gpi_world_happens(w, GPI_TROUBLE_ADOPTS))
        adopt(w);
}

/* ---- queries ---- */

static void check(struct gpi_world *w, uint32_t task)
{
    const struct gpi_sched *c = w->play.core;
    const uint32_t state = w->oracle.task[task].state;
    uint32_t grant = 0;
    bool started = false;

    for (uint32_t i = 0; i < GPI_TRUTH_SLOTS; i++) {
        const struct gpi_book_lease *l = &w->oracle.lease[i];
        if (l->task != task || (l->state != GPI_BOOK_UNSTARTED && l->state != GPI_BOOK_STARTED))
            continue;
        grant = l->grant;
        started = l->state == GPI_BOOK_STARTED;
    }
    if (gpi_sched_is_accepted(c, task) != w->submitted[task] ||
        gpi_sched_is_held(c, task) != (state == GPI_BOOK_HELD) ||
        gpi_sched_grant(c, task) != grant || gpi_sched_is_started(c, task) != started)
        gpi_oracle_object(&w->oracle, GPI_ORACLE_SAFETY, "a query about external work is wrong");
}

void gpi_work_check(struct gpi_world *w)
{
    for (uint32_t i = 0; w->external && i < w->truth.tasks; i++)
        check(w, i);
}
