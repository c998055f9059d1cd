/* SPDX-License-Identifier: MIT */
/* grant.c - starts and ends: the first task of a shape gets devices, and returns them.  [S1] [S7]
 * */
#include <stdlib.h>

#include "sched/plan_parts.h"

int gpi_grant_make(struct gpi_plan *p)
{
    p->run = malloc(sizeof *p->run * (p->set.runs + 1));
    p->granted = p->ahead = GPI_NONE;
    if (!p->run)
        return -1;
    for (uint32_t i = 0; i < p->set.runs; i++) {
        p->run[i].task = i + 1 < p->set.runs ? i + 1 : GPI_NONE;
        p->run[i].work = GPI_WORK_NONE;
    }
    return 0;
}

void gpi_grant_free(struct gpi_plan *p)
{
    free(p->run);
}

/* ---- a start ---- */

/* The parts that a run lacks which could begin otherwise.  Behind a variant that lacks nothing but
 * a free run no other one counts. */
struct lack {
    bool host; /* CPU slots, or memory of the machine */
    bool run;  /* a free run */
};

/* Returns the next run to begin, or a record that is never used. */
static struct gpi_run *next_run(struct gpi_plan *p)
{
    return &p->run[p->free_run == GPI_NONE ? p->set.runs : p->free_run];
}

static uint32_t make_run(struct gpi_plan *p, uint32_t shape, uint32_t variant)
{
    const struct gpi_shape *s = &p->shape[shape];
    const uint32_t run = p->free_run;
    struct gpi_run *r = &p->run[run];

    gpi_tenancy_take_run(p, run);
    r->class = s->class;
    r->variant = variant;
    r->need = s->request[variant];
    r->n_devices = r->need.devices;
    r->end_by = r->plausible = 0;
    for (uint32_t i = 0; i < r->n_devices; i++)
        r->beyond[i] = 0;
    r->since = r->used = p->now;
    r->work = GPI_WORK_TASK;
    r->grant = GPI_GRANT_NONE;
    r->leaves = r->ahead = r->awaited = false;
    return run;
}

/* The run gets the first task of the shape. */
static void give_task(struct gpi_plan *p, uint32_t run, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    struct gpi_run *r = &p->run[run];

    r->task = s->head;
    r->begun = p->now;
    r->limit = p->task[s->head].limit;
    r->end_by = gpi_time_add(p->now, gpi_shape_takes(p, shape));
    r->plausible = gpi_learn_plausible(&p->class[s->class], p->now, r->limit);
    if (p->task[r->task].stream)
        gpi_revoke_start(p, run, gpi_revoke_may_grant(p, r, shape) && !gpi_evict_is_due(p, run));
}

/* The devices that were kept for the shape are for other shapes now. */
static void offer_rest(struct gpi_plan *p, uint64_t headed)
{
    p->changed |= p->set.mode == GPI_MODE_STRICT ? headed : headed & p->free_kinds;
}

/* The run takes a part of the machine, which a shape that lacked nothing but a run may lack now. */
static void examine_runless(struct gpi_plan *p, const struct gpi_request *r)
{
    const struct gpi_tree_wanted w = { GPI_BIT_SHORT, UINT64_MAX, UINT32_MAX };
    const bool takes = p->n_runless && (r->cpus || r->host_memory);

    for (uint32_t i = takes ? gpi_tree_first(&p->order, &w) : GPI_NONE; i != GPI_NONE;
         i = gpi_tree_next(&p->order, i, &w))
        if (p->shape[i].lacks_run && p->shape[i].needs_host)
            gpi_shape_examine(p, i);
}

static void start(struct gpi_plan *p, uint32_t shape, uint32_t run, uint64_t kinds)
{
    const uint32_t task = p->run[run].task;
    const uint64_t bits = p->shape[shape].kinds;
    const bool stops = p->shape[shape].stops;
    const bool granted = p->run[run].grant == GPI_GRANT_LASTS;
    bool is_head = false;

    for (uint64_t left = bits; left && !is_head; left &= left - 1)
        is_head = gpi_shape_head(p, gpi_lowest_bit(left)) == shape;
    p->shape[shape].stops = false;
    gpi_reserve_leave(p, shape, kinds | GPI_BIT_HOST);
    gpi_shape_take(p, task);
    p->task[task].holder = run;
    if (is_head)
        offer_rest(p, bits);
    if (p->n_lacking || p->has_workers)
        p->passable |= bits & GPI_BITS_KINDS; /* it may have been the second there */
    if (stops)
        gpi_shape_evict_again(p);
    examine_runless(p, &p->run[run].need);
    gpi_tenancy_offer(p, p->run[run].class);
    p->stats.starts++;
    p->stats.passed += !is_head;
    gpi_actions_put(p, GPI_PLAN_RUN, task, granted ? GPI_RUN_GRANT : GPI_RUN_ONE, p->now);
}

/* Picks devices of open kinds, else also the rest that heads leave of theirs. */
static bool pick(struct gpi_plan *p, uint32_t shape, uint32_t variant, uint16_t *ret_device)
{
    const struct gpi_request *r = &p->shape[shape].request[variant];
    const uint64_t kinds = p->shape[shape].kinds_of[variant] & p->free_kinds;
    uint64_t rest, open;

    if (r->devices == 0)
        return true;
    if (kinds == 0)
        return false;
    open = gpi_reserve_open(p, shape, kinds, &rest);
    return (open && gpi_memory_pick(p, r, open, ret_device) == r->devices) ||
           (rest && gpi_memory_pick(p, r, open | rest, ret_device) == r->devices);
}

/* Returns true if all devices are open to the shape, without the rest that heads leave. */
static bool is_open(struct gpi_plan *p, uint32_t shape, const uint16_t *device, uint32_t n)
{
    const uint64_t open = gpi_reserve_open(p, shape, p->shape[shape].kinds, &(uint64_t){ 0 });

    for (uint32_t i = 0; i < n; i++)
        if (!(open & GPI_BIT_KIND(p->device[device[i]].kind)))
            return false;
    return true;
}

/* Returns true if the variant has started. */
static bool try_variant(struct gpi_plan *p, uint32_t shape, uint32_t variant, struct lack *ret)
{
    struct gpi_run *run = next_run(p);
    uint32_t number;
    uint64_t kinds, rest;

    if (!pick(p, shape, variant, run->device))
        return false;
    if (!gpi_reserve_host(p, shape, &p->shape[shape].request[variant], false)) {
        ret->host = true;
        return false;
    }
    if (p->free_run == GPI_NONE) {
        ret->run |= is_open(p, shape, run->device, p->shape[shape].request[variant].devices);
        return false;
    }
    number = make_run(p, shape, variant);
    kinds = gpi_memory_kinds_of(p, run);
    rest = p->n_lacking ? gpi_reserve_rest(p, shape, kinds) : 0;
    give_task(p, number, shape);
    gpi_memory_take(p, number, GPI_HOLD | GPI_SHARE);
    if (rest && gpi_reserve_rest(p, shape, kinds) != rest) {
        gpi_memory_release(p, number, GPI_HOLD | GPI_SHARE);
        gpi_tenancy_free_run(p, number);
        return false;
    }
    start(p, shape, number, kinds);
    return true;
}

/* ---- workers ---- */

/* Returns true if the idle worker does for the shape, and its devices are open with a share. */
static bool can_work(struct gpi_plan *p, const struct gpi_run *r, uint32_t shape, uint64_t open)
{
    bool can = gpi_staff_serves(p, r, &p->shape[shape]);

    for (uint32_t i = 0; i < r->n_devices && can; i++) {
        const struct gpi_plan_device *d = &p->device[r->device[i]];
        can = d->may == GPI_PLAN_IN && open & GPI_BIT_KIND(d->kind) &&
              d->share + r->need.share <= GPI_SHARE_ALL;
    }
    return can;
}

/* Heads of the class wait for a worker with a task now, so other shapes may use the share there. */
static void open_heads(struct gpi_plan *p, uint32_t class)
{
    for (uint32_t kind = 0; kind < p->n_kinds; kind++) {
        const uint32_t head = gpi_shape_head(p, kind);
        if (head != GPI_NONE && p->shape[head].class == class)
            p->passable |= GPI_BIT_KIND(kind);
    }
}

/* Returns the idle worker that may have the first task of the shape now, or GPI_NONE. */
static uint32_t find_idle(struct gpi_plan *p, uint32_t shape, struct lack *ret)
{
    const struct gpi_shape *s = &p->shape[shape];
    const struct gpi_learned *c = &p->class[s->class];
    uint64_t rest, open;

    if (c->idle == GPI_NONE || c->paused || s->loads)
        return GPI_NONE;
    open = gpi_reserve_open(p, shape, s->kinds, &rest);
    for (uint32_t run = c->idle; run != GPI_NONE; run = p->run[run].list_next) {
        const struct gpi_run *r = &p->run[run];
        const struct gpi_request host = { .cpus = r->need.cpus };
        if (!can_work(p, r, shape, open))
            continue;
        if (gpi_reserve_host(p, shape, &host, false))
            return run;
        ret->host = true;
    }
    return GPI_NONE;
}

static bool try_idle(struct gpi_plan *p, uint32_t shape, struct lack *ret)
{
    const struct gpi_learned *c = &p->class[p->shape[shape].class];
    const uint32_t run = find_idle(p, shape, ret);
    struct gpi_run *r = &p->run[run];

    if (run == GPI_NONE)
        return false;
    gpi_leave_unlist(p, run);
    p->n_spare -= c->set.residence == GPI_TRANSIENT;
    r->work = GPI_WORK_BUSY;
    give_task(p, run, shape);
    gpi_memory_take(p, run, GPI_SHARE);
    start(p, shape, run, gpi_memory_kinds_of(p, r));
    gpi_leave_boots(p, r->class);
    if (c->queued && c->idle == GPI_NONE)
        open_heads(p, r->class);
    if (c->queued == 0 && c->idle != GPI_NONE)
        gpi_tenancy_calm(p, r->class);
    return true;
}

static void note_late(struct gpi_plan *p, uint32_t class)
{
    uint16_t *const oldest = &p->late[p->n_late++ % GPI_LATE];

    if (p->n_late > GPI_LATE)
        p->class[*oldest].late--;
    *oldest = (uint16_t) class;
    p->class[class].late++;
}

uint32_t gpi_grant_late(const struct gpi_plan *p, uint32_t class)
{
    uint32_t late = 0;

    for (uint32_t i = 0; i < GPI_LATE && i < p->n_late; i++)
        late += p->late[i] == class;
    return late;
}

static void boot(struct gpi_plan *p, uint32_t shape, uint32_t run)
{
    struct gpi_run *r = &p->run[run];
    struct gpi_learned *c = &p->class[r->class];

    r->work = GPI_WORK_BOOT;
    r->keep = c->set.keep_alive;
    gpi_leave_list(p, run, &c->booting);
    c->workers++;
    p->stats.boots++;
    note_late(p, r->class);
    gpi_memory_take(p, run, GPI_HOLD);
    gpi_memory_there(p, run, true);
    gpi_actions_put(p, GPI_PLAN_BOOT, run, 0, p->now);
    for (uint32_t i = 0; i < r->n_devices; i++)
        gpi_shape_sort(p, r->device[i]);
    gpi_shape_class(p, r->class);
    gpi_shape_examine(p, shape);
    gpi_tenancy_load(p, r->class);
    gpi_leave_keep(p, r->class);
    gpi_shape_evict_again(p); /* above min_workers another one of its class may go */
    examine_runless(p, &r->need);
}

/* Picks devices of which the shape is the head, and such where the head keeps its memory.  [R5] */
static bool pick_for_boot(struct gpi_plan *p, uint32_t shape, const struct gpi_request *r,
                          uint64_t kinds, uint16_t *ret_device)
{
    const uint64_t own = gpi_reserve_own(p, shape, kinds);
    uint32_t n = gpi_memory_pick(p, r, own, ret_device);

    if (!p->class[p->shape[shape].class].wants)
        return n == r->devices;
    for (uint64_t left = kinds & ~own & GPI_BITS_KINDS; left && n < r->devices; left &= left - 1) {
        const uint64_t beside = gpi_reserve_beside(p, shape, gpi_lowest_bit(left));
        struct gpi_request both = *r;
        if (beside == GPI_MEMORY_ALL || r->memory == GPI_MEMORY_ALL)
            continue;
        both.memory += beside;
        n = gpi_memory_pick_more(p, &both, left & -left, n, ret_device);
    }
    return n == r->devices;
}

/* A boot needs memory, and no share: other workers of its devices go on. */
static bool try_boot(struct gpi_plan *p, uint32_t shape, uint32_t variant, struct lack *ret)
{
    struct gpi_request r = p->shape[shape].request[variant];
    struct gpi_run *run = next_run(p);
    const uint64_t kinds = p->shape[shape].kinds_of[variant];

    if (!kinds)
        return false;
    r.cpus = 0;
    if (r.devices && !pick_for_boot(p, shape, &r, kinds, run->device)) {
        /* A device without a free share does, too, but not for a task that only lacks a share. */
        r.share = 0;
        if (!p->class[p->shape[shape].class].wants ||
            !pick_for_boot(p, shape, &r, kinds, run->device))
            return false;
    }
    if (!gpi_reserve_host(p, shape, &r, true)) {
        ret->host = true;
        return false;
    }
    if (p->free_run == GPI_NONE) {
        ret->run = true;
        return false;
    }
    boot(p, shape, make_run(p, shape, variant));
    return true;
}

static bool try_worker(struct gpi_plan *p, uint32_t shape, struct lack *ret)
{
    const struct gpi_shape *s = &p->shape[shape];

    if (try_idle(p, shape, ret))
        return true;
    for (uint32_t i = 0; i < s->n_requests && s->begins && !ret->run; i++)
        if (try_boot(p, shape, i, ret))
            return true;
    return false;
}

static bool try_task(struct gpi_plan *p, uint32_t shape, struct lack *ret)
{
    const uint32_t n = p->shape[shape].n_requests;

    if (p->order.node[shape].weight > gpi_memory_offer(p))
        return false;
    for (uint32_t i = 0; i < n && !ret->run; i++)
        if (try_variant(p, shape, i, ret))
            return true;
    return false;
}

static bool try_shape(struct gpi_plan *p, uint32_t shape, struct lack *ret)
{
    const struct gpi_learned *c = &p->class[p->shape[shape].class];

    if (c->paused)
        return false;
    if (c->set.residence == GPI_EXTERNAL)
        return try_task(p, shape, ret);
    return try_worker(p, shape, ret);
}

bool gpi_grant_try(struct gpi_plan *p, uint32_t shape)
{
    struct lack lack = { false, false };

    p->stats.examined++;
    gpi_shape_on_time(p, shape);
    if (p->shape[shape].hopeless && !p->shape[shape].told) {
        p->shape[shape].told = true;
        gpi_actions_put(p, GPI_PLAN_HOPELESS, p->shape[shape].head, 0, p->now);
    }
    if (try_shape(p, shape, &lack))
        return true;
    gpi_shape_lacks_run(p, shape, lack.run);
    gpi_reserve_blocked(p, shape, lack.host);
    if (p->has_workers)
        gpi_evict_for(p, shape);
    return false;
}

/* Returns true if a variant could start now, without a worker.  Beside a head that lacks only CPU
 * slots, the device may be kept for that. */
static bool could_run(struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    bool could = false;

    for (uint32_t i = 0; i < s->n_requests && p->n_lacking == 0 && !could; i++)
        could = pick(p, shape, i, next_run(p)->device) &&
                gpi_reserve_host(p, shape, &s->request[i], false);
    return could && p->free_run != GPI_NONE;
}

bool gpi_grant_could(struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_learned *c = &p->class[p->shape[shape].class];
    struct lack lack = { false, false };

    if (c->paused)
        return false;
    return c->set.residence == GPI_EXTERNAL ? could_run(p, shape)
                                            : find_idle(p, shape, &lack) != GPI_NONE;
}

/* ---- the queue of the caller ---- */

/* A grant may last for long, and would teach nothing until its end. */
void gpi_grant_queue(struct gpi_plan *p, uint32_t class, uint32_t n, uint64_t run)
{
    struct gpi_learned *c = &p->class[class];
    const bool was_calm = c->queued == 0;

    assert(n <= GPI_QUEUE_MOST);
    c->queued += n - c->behind;
    c->behind = n;
    c->mean = run;
    if (run && c->run.n == 0)
        gpi_learn_spell(&c->run, run);
    if (n == 0)
        gpi_revoke_class_empty(p, class);
    gpi_shape_class(p, class);
    if (c->queued == 0 && !was_calm)
        gpi_tenancy_calm(p, class);
}

/* ---- an end ---- */

static void end_in_worker(struct gpi_plan *p, uint32_t run)
{
    struct gpi_run *r = &p->run[run];

    r->end_by = r->plausible = 0;
    p->changed |= gpi_memory_release(p, run, GPI_SHARE);
    r->task = GPI_NONE;
    r->used = p->now;
    if (r->work == GPI_WORK_BUSY) {
        gpi_tenancy_idle(p, run);
        if (r->n_devices == 0 || gpi_spare_may_replace(p, r->class)) /* no kind leads to it */
            gpi_shape_examine_class(p, r->class);
        return;
    }
    r->work = GPI_WORK_UNLOAD;
    r->since = p->now;
    if (!r->leaves)
        gpi_actions_put(p, GPI_PLAN_UNLOAD, run, 0, p->now);
}

void gpi_grant_end(struct gpi_plan *p, uint32_t task, bool good, uint64_t took, uint64_t keep_alive)
{
    const uint32_t run = p->task[task].holder;
    struct gpi_run *r = &p->run[run];
    struct gpi_learned *c = &p->class[r->class];

    took = took ? took : p->now - r->begun;
    if (good) {
        if (r->grant == GPI_GRANT_NONE) /* else the limit was that of the first task */
            gpi_learn_run(c, took, r->limit);
        if (c->set.residence != GPI_EXTERNAL)
            gpi_learn_spell(&c->run, took);
        gpi_shape_class(p, r->class);
    }
    gpi_revoke_end(p, run);
    if (r->work != GPI_WORK_TASK) {
        r->keep = keep_alive ? keep_alive : c->set.keep_alive;
        end_in_worker(p, run);
        return;
    }
    p->changed |= gpi_memory_release(p, run, GPI_HOLD | GPI_SHARE);
    gpi_tenancy_end_run(p, run);
    if (p->has_workers)
        gpi_shape_evict_again(p);
}

void gpi_grant_ends_by(struct gpi_plan *p, uint32_t task, uint64_t at)
{
    const uint32_t run = p->task[task].holder;
    const struct gpi_run *r = &p->run[run];

    if (r->grant != GPI_GRANT_REVOKED && r->work != GPI_WORK_TASK)
        return;
    gpi_revoke_known(p, run);
    if (at == r->end_by || (at > r->end_by && r->work != GPI_WORK_TASK))
        return;
    if (at > r->end_by)
        p->unsure |= 1u << GPI_PROMISE_DEVICE;
    gpi_memory_ends_by(p, run, at);
    /* Heads may have a promise now.  CPU slots are part of that of any head. */
    p->headless |= r->need.cpus ? GPI_BITS_HEADED : gpi_memory_kinds_of(p, r);
}

/* Heads may have to wait longer, and other shapes may pass them.  One that lacked nothing but
 * CPU slots, or a worker that goes for it already, may lack these devices now. */
static void unsettle(struct gpi_plan *p, const struct gpi_run *r)
{
    p->unsure |= 1u << GPI_PROMISE_DEVICE;
    p->passable |= GPI_BITS_HEADED;
    p->changed |= gpi_memory_kinds_of(p, r) | GPI_BIT_HOST;
}

uint32_t gpi_grant_adopt(struct gpi_plan *p, uint32_t task, const struct gpi_plan_adoption *a)
{
    const uint32_t run = p->free_run;
    struct gpi_run *r = &p->run[run];

    assert(run != GPI_NONE && a->has.devices <= GPI_RUN_DEVICES);
    gpi_tenancy_take_run(p, run);
    *r = (struct gpi_run){ .task = task,
                           .class = a->class,
                           .need = a->has,
                           .n_devices = a->has.devices,
                           .since = p->now,
                           .used = p->now,
                           .begun = p->now,
                           .limit = a->limit,
                           .end_by = a->ends_by,
                           .plausible =
                               gpi_learn_plausible(&p->class[a->class], p->now, a->limit),
                           .work = GPI_WORK_TASK,
                           .grant = GPI_GRANT_NONE };
    for (uint32_t i = 0; i < r->n_devices; i++)
        r->device[i] = a->device[i];
    /* As each task that runs it is behind no other one. */
    p->task[task] = (struct gpi_plan_record){
        .limit = a->limit, .next = GPI_NONE, .prev = GPI_NONE, .holder = run
    };
    gpi_memory_take(p, run, GPI_HOLD | GPI_SHARE);
    unsettle(p, r);
    return run;
}
