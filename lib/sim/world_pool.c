/* SPDX-License-Identifier: MIT */
/* world_pool.c - a pooled world: devices with memory, classes, and seats that the core fills. */
#include "sim/world_state.h"

#define GIB (1ull << 30)

/* ---- a seed becomes a pool ---- */

void gpi_pool_draw(struct gpi_world *w)
{
    struct gpi_random *r = &w->random;
    struct gpi_pool_settings *p = &w->set.pool;

    p->pooled = true;
    p->slots += p->slots == 1; /* one is spare */
    p->classes = (uint32_t)gpi_random_from(r, 1, GPI_TRUTH_CLASSES);
    p->plan = (struct gpi_plan_settings){
        .mode = gpi_random_chance(r, 200000) ? GPI_MODE_STRICT : GPI_MODE_BACKFILL,
        .passing = gpi_random_chance(r, 500000) ? GPI_PASS_LEARNED : GPI_PASS_APART,
        .cpus = (uint32_t)gpi_random_from(r, 1, 4),
        .headroom = 1000,
        .least_headroom = GIB / 2,
        .foreign_memory = GIB,
    };
}

static uint32_t draw_share(struct gpi_world *w)
{
    static const uint32_t shares[] = { GPI_SHARE_ALL, GPI_SHARE_ALL, GPI_SHARE_ALL / 2,
                                       GPI_SHARE_ALL / 3 };

    return shares[gpi_random_below(&w->random, 4)];
}

struct gpi_request gpi_pool_draw_need(struct gpi_world *w)
{
    struct gpi_random *r = &w->random;
    uint64_t least = UINT64_MAX;

    for (uint32_t d = 0; d < w->truth.devices; d++)
        least = w->truth.usable[d] < least ? w->truth.usable[d] : least;
    if (gpi_random_chance(r, 150000))
        return (struct gpi_request){ .cpus = 1 };
    if (gpi_random_chance(r, 300000))
        return (struct gpi_request){
            .devices = (uint32_t)gpi_random_from(r, 1, w->truth.devices),
            .share = GPI_SHARE_ALL,
            .memory = gpi_random_chance(r, 500000) ? GPI_MEMORY_ALL : least };
    return (struct gpi_request){ .devices = 1,
                                 .share = draw_share(w),
                                 .memory = gpi_random_below(r, least / GIB + 1) * GIB,
                                 .cpus = (uint32_t)gpi_random_below(r, 2) };
}

static struct gpi_plan_class draw_class(struct gpi_world *w)
{
    struct gpi_random *r = &w->random;
    const struct gpi_plan_class c = {
        .residence = gpi_random_chance(r, 700000) ? GPI_RESIDENT : GPI_TRANSIENT,
        .grace = w->set.class.grace,
        .need = { gpi_pool_draw_need(w) },
        .n_needs = 1,
        .min_workers = gpi_random_chance(r, 300000),
        .max_workers = (uint32_t)gpi_random_from(r, 1, w->truth.slots),
        .pinned = gpi_random_chance(r, 50000),
        .min_residence = gpi_random_chance(r, 500000) ? 0 : gpi_world_time(w, GPI_MS, 300 * GPI_MS),
        .max_wait = gpi_world_time(w, GPI_MS, GPI_S),
        .keep_alive = gpi_random_chance(r, 600000) ? GPI_NEVER : gpi_world_time(w, GPI_MS, GPI_S),
        .boot = gpi_world_time(w, GPI_MS, GPI_S),
        .unload = gpi_world_time(w, GPI_MS, 100 * GPI_MS),
        .run = gpi_world_time(w, GPI_MS, 100 * GPI_MS),
    };

    return c;
}

/* In some classes half of the tasks have requests of their own. */
static void set_class(struct gpi_world *w, uint32_t class)
{
    w->truth.class[class] = draw_class(w);
    w->truth.own[class] = w->truth.class[class].residence == GPI_TRANSIENT &&
                          gpi_random_chance(&w->random, 600000);
    if (w->external)
        gpi_work_draw_class(w, class);
}

bool gpi_pool_begin(struct gpi_world *w)
{
    const bool watched = gpi_random_chance(&w->random, 900000);

    for (uint32_t d = 0; d < w->truth.devices; d++) {
        const struct gpi_plan_has has = { .memory = gpi_random_from(&w->random, 16, 80) * GIB };
        w->truth.usable[d] = has.memory - has.memory / 10000 * w->set.pool.plan.headroom;
        w->device[d].watched = watched;
        gpi_play_device(&w->play, d, w->device[d].watched, w->kill_limit, &has);
    }
    for (uint32_t i = 0; i < w->truth.classes; i++) {
        set_class(w, i);
        if (gpi_play_class(&w->play, i, &w->set.class, &w->truth.class[i]))
            return false;
    }
    for (uint32_t i = 0; i < w->truth.slots; i++) {
        w->truth.slot[i].kill_limit = w->kill_limit;
        gpi_play_slot(&w->play, i, 0, NULL, 0);
    }
    return true;
}

/* ---- seats ---- */

void gpi_pool_seat(struct gpi_world *w, const struct gpi_sched_action *a)
{
    struct gpi_truth_slot *t = &w->truth.slot[a->slot];

    t->class = a->class;
    t->n_devices = 0;
    t->watched = false;
}

void gpi_pool_seat_on(struct gpi_world *w, const struct gpi_sched_action *a)
{
    struct gpi_truth_slot *t = &w->truth.slot[a->slot];

    t->device[t->n_devices++] = (uint16_t)a->device;
    t->watched = w->device[t->device[0]].watched;
}

void gpi_pool_entered(struct gpi_world *w, const struct gpi_sched_action *a)
{
    if (w->truth.pooled && (a->how == GPI_LIFE_OFF || a->how == GPI_LIFE_STOPPED))
        w->truth.slot[a->slot].n_devices = 0;
}

/* ---- readings, and requests for classes ---- */

static void read_foreign(struct gpi_world *w)
{
    const uint32_t device = (uint32_t)gpi_random_below(&w->random, w->truth.devices);
    const uint64_t bytes = gpi_random_chance(&w->random, 500000)
                               ? 0
                               : gpi_random_below(&w->random, w->truth.usable[device]);

    w->truth.foreign[device] = bytes;
    gpi_play_foreign(&w->play, w->now, device, bytes, 0);
    gpi_host_perform(w);
}

static void read_worker(struct gpi_world *w)
{
    const uint32_t slot = (uint32_t)gpi_random_below(&w->random, w->truth.slots);
    const struct gpi_truth_slot *t = &w->truth.slot[slot];
    uint32_t device;

    if (!w->slot[slot].host.worker || t->n_devices == 0)
        return;
    device = t->device[gpi_random_below(&w->random, t->n_devices)];
    gpi_play_observed(&w->play, w->now, slot, device,
                      gpi_random_below(&w->random, w->truth.usable[device]));
    gpi_host_perform(w);
}

void gpi_pool_wish(struct gpi_world *w, uint32_t class, uint32_t what)
{
    if (w->oracle.class[class].ended)
        return;
    w->oracle.class[class].ended = what == GPI_CLASS_END;
    if (what == GPI_CLASS_PAUSE || what == GPI_CLASS_DRAIN || what == GPI_CLASS_RESUME ||
        what == GPI_CLASS_END)
        w->oracle.class[class].paused = what != GPI_CLASS_RESUME;
    if (what == GPI_CLASS_LOAD || what == GPI_CLASS_RESUME)
        w->oracle.class[class].given_up = false;
    if (what == GPI_CLASS_PIN || what == GPI_CLASS_UNPIN)
        w->truth.class[class].pinned = what == GPI_CLASS_PIN;
    gpi_play_class_set(&w->play, w->now, class, (enum gpi_plan_class_what)what);
    gpi_host_perform(w);
}

static bool has_tasks(const struct gpi_world *w, uint32_t class)
{
    for (uint32_t i = 0; i < w->truth.tasks; i++)
        if (w->submitted[i] && w->truth.task[i].class == class)
            return true;
    return false;
}

/* An ended class is removed, and another one gets its number. */
static void renew(struct gpi_world *w, uint32_t class)
{
    if (!w->oracle.class[class].ended || has_tasks(w, class) ||
        !gpi_sched_is_unused(w->play.core, class))
        return;
    gpi_play_class_set(&w->play, w->now, class, GPI_CLASS_REMOVE);
    gpi_host_perform(w);
    w->oracle.class[class].mean_run = 0;
    w->oracle.class[class].renewing = 0;
    w->oracle.class[class].given_up = w->oracle.class[class].paused = false;
    w->oracle.class[class].ended = false;
    set_class(w, class);
    (void)gpi_play_class(&w->play, class, &w->set.class, &w->truth.class[class]);
    gpi_host_perform(w);
}

/* A pause ends after a while. */
static void wish(struct gpi_world *w)
{
    const uint32_t class = (uint32_t)gpi_random_below(&w->random, w->truth.classes);
    const bool ends = gpi_random_chance(&w->random, 100000);
    const bool external = gpi_book_is_external(&w->oracle, class);
    const uint32_t ways = external ? GPI_CLASS_DRAIN : GPI_CLASS_UNPIN; /* the host refuses more */
    const uint32_t what =
        ends ? GPI_CLASS_END : (uint32_t)gpi_random_below(&w->random, ways + 1);

    gpi_pool_wish(w, class, what);
    if (what == GPI_CLASS_PAUSE || what == GPI_CLASS_DRAIN)
        gpi_agenda_add(w, (struct gpi_fact){ .at = w->now + gpi_world_time(w, GPI_US, 3 * GPI_S),
                                             .kind = GPI_FACT_WISH,
                                             .token = class,
                                             .word.how = GPI_CLASS_RESUME });
}

void gpi_pool_disturb(struct gpi_world *w)
{
    if (w->stopped_until > w->now)
        return;
    if (gpi_world_happens(w, GPI_TROUBLE_READINGS))
        read_foreign(w);
    if (gpi_world_happens(w, GPI_TROUBLE_READINGS))
        read_worker(w);
    if (gpi_world_happens(w, GPI_TROUBLE_WISHES))
        wish(w);
    for (uint32_t i = 0; i < w->truth.classes; i++)
        renew(w, i);
}

/* ---- reasons ---- */

#define ROWS 4u /* of an answer: there may be more */

/* Returns true if the reason names a task that has not ended, a class that loads a worker, or no
 * task. */
static bool is_sound(const struct gpi_world *w, const struct gpi_plan_reason *r)
{
    if (!gpi_sched_names_task(r->kind) || r->other == GPI_NOWHERE)
        return true;
    if (r->other >= w->truth.tasks)
        return r->other - w->truth.tasks < w->truth.classes;
    return w->oracle.task[r->other].state != GPI_BOOK_FREE &&
           w->oracle.task[r->other].state != GPI_BOOK_HELD;
}

static void check_rows(struct gpi_world *w, uint32_t task, const struct gpi_plan_reason *r,
                       uint32_t n)
{
    for (uint32_t i = 0; i < n && i < ROWS; i++)
        if (!is_sound(w, &r[i]) || (r[i].other == task && gpi_sched_names_task(r[i].kind)))
            gpi_oracle_object(&w->oracle, GPI_ORACLE_SAFETY, "a reason names no other task");
}

/* A task that is not submitted. */
static void suppose(struct gpi_world *w, uint32_t class)
{
    const struct gpi_sched_task what = { .priority = (int32_t)class - 1, .limit = GPI_NEVER,
                                         .expires = GPI_NEVER, .class = class };
    struct gpi_plan_reason r[ROWS];

    check_rows(w, GPI_NOWHERE - 1, r,
               gpi_sched_explain(w->play.core, w->now, GPI_NOWHERE, &what, r, ROWS));
}

static void explain(struct gpi_world *w, uint32_t task)
{
    const struct gpi_book_task *t = &w->oracle.task[task];
    struct gpi_plan_reason r[ROWS];
    const uint32_t n = gpi_sched_explain(w->play.core, w->now, task, NULL, r, ROWS);

    const bool later = t->state == GPI_BOOK_LATER && t->until > w->now;

    if ((t->state == GPI_BOOK_QUEUED || t->state == GPI_BOOK_LATER) && n == 0)
        gpi_oracle_object(&w->oracle, GPI_ORACLE_SAFETY, "a task waits without a reason");
    else if (later && (r[0].kind != GPI_REASON_RETRY || r[0].until != t->until))
        gpi_oracle_object(&w->oracle, GPI_ORACLE_SAFETY, "a retry has another reason");
    check_rows(w, task, r, n);
}

void gpi_pool_explain(struct gpi_world *w)
{
    const bool decided = gpi_sched_due(w->play.core) > w->now; /* time goes on while it sends */

    for (uint32_t i = 0; i < w->truth.tasks && w->truth.pooled && decided; i++)
        if (w->oracle.task[i].state != GPI_BOOK_FREE && w->oracle.task[i].state != GPI_BOOK_HELD)
            explain(w, i);
    for (uint32_t i = 0; i < w->truth.classes && w->truth.pooled && decided; i++)
        if (!gpi_book_is_external(&w->oracle, i))
            suppose(w, i);
}
