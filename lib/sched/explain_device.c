/* SPDX-License-Identifier: MIT */
/* explain_device.c - why a variant does not begin on devices and the machine.             [S9] */
#include "sched/explain_parts.h"

#define ENDS_MOST 16u /* runs of a device that are counted until enough is free */

/* ---- the parts of a device that runs have ---- */

/* The parts that the run releases at its end.  A run without memory still has the device. */
static uint64_t amount_of(const struct gpi_plan *p, uint32_t run, uint32_t device,
                          enum gpi_plan_why what)
{
    const struct gpi_run *r = &p->run[run];
    const uint64_t bytes = gpi_memory_of(p, r, device);

    if (what == GPI_REASON_SHARE)
        return r->task == GPI_NONE ? 0 : r->need.share;
    return r->need.memory == GPI_MEMORY_ALL ? GPI_MEMORY_ALL : bytes ? bytes : 1;
}

/* A task in a worker releases its share alone. */
static uint64_t end_of(const struct gpi_run *r, enum gpi_plan_why what)
{
    return r->task != GPI_NONE && (what == GPI_REASON_SHARE || r->work == GPI_WORK_TASK)
               ? r->end_by
               : GPI_NEVER;
}

/* Returns the next run, by its end, behind the last one. */
static uint32_t next_end(const struct gpi_plan *p, uint32_t device, enum gpi_plan_why what,
                         uint32_t last)
{
    const uint64_t from = last == GPI_NONE ? 0 : end_of(&p->run[last], what);
    uint32_t best = GPI_NONE;

    for (uint32_t i = p->device[device].first; i != GPI_NONE;
         i = p->run[i / GPI_RUN_DEVICES].next[i % GPI_RUN_DEVICES]) {
        const uint32_t run = i / GPI_RUN_DEVICES;
        const uint64_t end = end_of(&p->run[run], what);
        if (amount_of(p, run, device, what) == 0 || end < from ||
            (last != GPI_NONE && end == from && run <= last))
            continue;
        if (best == GPI_NONE || end < end_of(&p->run[best], what) ||
            (end == end_of(&p->run[best], what) && run < best))
            best = run;
    }
    return best;
}

/* At the same time, one without a worker is first: such a worker stays. */
static bool ends_before(const struct gpi_plan *p, uint32_t a, uint32_t b, enum gpi_plan_why what)
{
    const uint64_t end = end_of(&p->run[a], what), other = end_of(&p->run[b], what);
    const bool goes = p->run[a].work == GPI_WORK_TASK, other_goes = p->run[b].work == GPI_WORK_TASK;

    if (end != other)
        return end < other;
    return goes != other_goes ? goes : a < b;
}

/* Returns the run with a task that ends first. */
static uint32_t first_task(const struct gpi_plan *p, uint32_t device, enum gpi_plan_why what)
{
    uint32_t best = GPI_NONE;

    for (uint32_t i = p->device[device].first; i != GPI_NONE;
         i = p->run[i / GPI_RUN_DEVICES].next[i % GPI_RUN_DEVICES]) {
        const uint32_t run = i / GPI_RUN_DEVICES;
        if (p->run[run].task != GPI_NONE && amount_of(p, run, device, what) &&
            (best == GPI_NONE || ends_before(p, run, best, what)))
            best = run;
    }
    return best;
}

/* Names the task that ends first, and the time at which enough has ended, by limits: `lacks` of
 * the parts, and `alone` runs with all memory.  `lacks` may be GPI_MEMORY_ALL; then, and behind
 * many runs, that is when all have ended. */
static void find_end(const struct gpi_plan *p, struct gpi_plan_reason *r, uint64_t lacks,
                     uint32_t alone)
{
    const enum gpi_plan_why what = (enum gpi_plan_why)r->kind;
    const uint32_t first = first_task(p, r->device, what);
    uint32_t run = next_end(p, r->device, what, GPI_NONE);

    if (first != GPI_NONE)
        r->other = p->run[first].task;
    r->until = p->device[r->device].end_by;
    for (uint32_t i = 0; i < ENDS_MOST && lacks != GPI_MEMORY_ALL; i++) {
        const uint64_t amount = run == GPI_NONE ? 0 : amount_of(p, run, r->device, what);
        r->until = run == GPI_NONE ? GPI_NEVER : end_of(&p->run[run], what);
        if (amount == GPI_MEMORY_ALL)
            alone--;
        else
            lacks -= gpi_time_min(lacks, amount);
        if (run == GPI_NONE || (lacks == 0 && alone == 0))
            return;
        run = next_end(p, r->device, what, run);
    }
    if (lacks != GPI_MEMORY_ALL)
        r->until = p->device[r->device].end_by;
}

void gpi_explain_share(struct gpi_answer *a, uint32_t device, uint32_t variant, uint32_t share)
{
    const uint32_t used = a->p->device[device].share;
    const uint32_t have = used < GPI_SHARE_ALL ? GPI_SHARE_ALL - used : 0;
    struct gpi_plan_reason r = gpi_explain_row(device, variant, GPI_REASON_SHARE);

    r.have = have;
    r.need = share;
    find_end(a->p, &r, share + used - GPI_SHARE_ALL, 0);
    gpi_explain_add(a, &r);
}

/* ---- the memory of a device ---- */

static bool leaves(const struct gpi_run *r)
{
    return r->work >= GPI_WORK_DRAIN;
}

static bool is_transient(const struct gpi_plan *p, const struct gpi_run *r)
{
    return p->class[r->class].set.residence == GPI_TRANSIENT;
}

/* Workers without a task, one of each sort, or GPI_NONE. */
struct idlers {
    uint32_t leaving, booting, pinned, spare;
    uint32_t kept; /* it serves an older shape, so it stays */
};

/* Returns the older shape for which the idle worker stays, or GPI_NONE. */
static uint32_t kept_for(const struct gpi_answer *a, uint32_t run)
{
    const uint32_t served = gpi_spare_served(a->p, run, a->shape);

    return served == a->shape ? GPI_NONE : served;
}

/* Returns the sort of the worker, or NULL if it has a task, or stays. */
static uint32_t *sort_of(const struct gpi_answer *a, uint32_t run, struct idlers *i)
{
    const struct gpi_plan *p = a->p;
    const struct gpi_run *r = &p->run[run];

    if (leaves(r))
        return &i->leaving;
    if (!is_transient(p, r) || (r->work != GPI_WORK_BOOT && r->work != GPI_WORK_IDLE))
        return NULL;
    if (r->work == GPI_WORK_BOOT)
        return &i->booting;
    if (p->class[r->class].set.pinned)
        return &i->pinned;
    return kept_for(a, run) == GPI_NONE ? &i->spare : &i->kept;
}

/* Returns true if the request fits without the workers that leave, and the transient ones that
 * have no task. */
static bool fits_without(const struct gpi_answer *a, uint32_t device, const struct gpi_request *r,
                         struct idlers *ret)
{
    const struct gpi_plan *p = a->p;
    const struct gpi_plan_device *d = &p->device[device];
    uint64_t left = 0;
    bool alone = false, empty = true;
    const struct gpi_run *x;

    *ret = (struct idlers){ GPI_NONE, GPI_NONE, GPI_NONE, GPI_NONE, GPI_NONE };
    for (uint32_t i = d->first; i != GPI_NONE; i = x->next[i % GPI_RUN_DEVICES]) {
        uint32_t *sort;
        x = &p->run[i / GPI_RUN_DEVICES];
        if ((sort = sort_of(a, i / GPI_RUN_DEVICES, ret)) != NULL) {
            *sort = i / GPI_RUN_DEVICES;
        } else {
            alone |= x->need.memory == GPI_MEMORY_ALL;
            left += x->need.memory == GPI_MEMORY_ALL ? 0 : gpi_memory_of(p, x, device);
            empty = false;
        }
    }
    if (r->memory == GPI_MEMORY_ALL)
        return empty;
    return !alone && left <= d->usable && r->memory <= d->usable - left;
}

static uint64_t gone_by(const struct gpi_plan *p, const struct gpi_run *r)
{
    return r->work == GPI_WORK_UNLOAD && !r->leaves
               ? gpi_time_add(r->since, p->class[r->class].unload.p50)
               : GPI_NEVER;
}

uint64_t gpi_explain_up_at(const struct gpi_plan *p, const struct gpi_run *r)
{
    return gpi_time_add(r->since, p->class[r->class].boot.p50);
}

/* An idle transient worker goes for the head alone, and only for enough devices.  It stays for an
 * older shape that it serves. */
static void add_idle(struct gpi_answer *a, uint32_t device, uint32_t variant, uint32_t run)
{
    const uint32_t kind = a->p->device[device].kind;
    const uint32_t kept = kept_for(a, run);
    const uint32_t head = kept == GPI_NONE ? gpi_reserve_boot_holder(a->p, a->shape, kind) : kept;
    struct gpi_plan_reason row = gpi_explain_row(device, variant, GPI_REASON_OCCUPIED);

    row.other = a->p->run[run].class;
    if (head != GPI_NONE) {
        row.kind = GPI_REASON_HEAD_HOLDS;
        gpi_explain_held_by(a, &row, head);
    }
    gpi_explain_add(a, &row);
}

/* Returns the bytes that the device lacks for the request.  Runs may have more than there is. */
static uint64_t lacking(const struct gpi_plan_device *d, uint64_t need)
{
    return need + d->reserved > d->usable ? need + d->reserved - d->usable : 0;
}

static void add_memory(struct gpi_answer *a, uint32_t device, uint32_t variant,
                       const struct gpi_request *r)
{
    const struct gpi_plan *p = a->p;
    const struct gpi_plan_device *d = &p->device[device];
    struct gpi_plan_reason row = gpi_explain_row(device, variant, GPI_REASON_MEMORY);
    struct idlers idle;
    const bool fits = fits_without(a, device, r, &idle);

    row.have = gpi_memory_unused(d);
    row.need = r->memory == GPI_MEMORY_ALL ? d->usable : r->memory;
    if (fits && idle.leaving != GPI_NONE) {
        row.kind = GPI_REASON_UNLOADING;
        row.other = p->run[idle.leaving].class;
        row.until = gone_by(p, &p->run[idle.leaving]);
    } else if (fits && idle.booting != GPI_NONE) {
        row.kind = GPI_REASON_BOOTING;
        row.other = p->run[idle.booting].class;
        row.until = gpi_explain_up_at(p, &p->run[idle.booting]);
    } else if (fits && idle.pinned != GPI_NONE) {
        row.kind = GPI_REASON_PINNED;
        row.other = p->run[idle.pinned].class;
    } else if (fits && (idle.kept != GPI_NONE || idle.spare != GPI_NONE)) {
        add_idle(a, device, variant, idle.kept != GPI_NONE ? idle.kept : idle.spare);
        return;
    } else {
        find_end(p, &row, r->memory == GPI_MEMORY_ALL ? r->memory : lacking(d, r->memory),
                 d->alone);
    }
    gpi_explain_add(a, &row);
}

/* ---- a device ---- */

enum gpi_plan_why gpi_explain_state(const struct gpi_plan_device *d)
{
    return d->may == GPI_PLAN_PAUSED    ? GPI_REASON_PAUSED
           : d->may == GPI_PLAN_DRAINED ? GPI_REASON_DRAINED
                                        : GPI_REASON_FAULT;
}

static void add_never(struct gpi_answer *a, uint32_t device, uint32_t variant,
                      const struct gpi_request *r, enum gpi_lack lack)
{
    const struct gpi_plan_device *d = &a->p->device[device];
    struct gpi_plan_reason row = gpi_explain_row(device, variant, GPI_REASON_NEVER);

    row.other = lack;
    row.have = lack == GPI_LACKS_MEMORY    ? gpi_memory_most(a->p, device)
               : lack == GPI_LACKS_COMPUTE ? d->has.compute
                                           : 0;
    row.need = lack == GPI_LACKS_MEMORY    ? r->memory
               : lack == GPI_LACKS_COMPUTE ? r->compute
                                           : r->places;
    gpi_explain_add(a, &row);
}

/* Returns when the first worker of the class is up that boots on the device. */
static uint64_t boot_ends(const struct gpi_plan *p, uint32_t device, uint32_t class)
{
    uint64_t at = GPI_NEVER;
    const struct gpi_run *r;

    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        r = &p->run[i / GPI_RUN_DEVICES];
        if (r->class == class && r->work == GPI_WORK_BOOT)
            at = gpi_time_min(at, gpi_explain_up_at(p, r));
    }
    return at;
}

/* Workers that stay.  Leaving ones have no row: the task waits for another device. */
static void add_stays(struct gpi_answer *a, uint32_t device, uint32_t variant)
{
    struct gpi_plan *p = a->p;
    const struct gpi_obstacle o = gpi_evict_obstacle(p, a->shape, variant, device);
    struct gpi_plan_reason row = gpi_explain_row(device, variant, o.why);

    row.other = o.class;
    row.until = o.why == GPI_REASON_BOOTING ? boot_ends(p, device, o.class) : o.at;
    if (o.why == GPI_REASON_HEAD_HOLDS) {
        gpi_explain_held_by(a, &row, o.class);
    } else if (o.at <= p->now) {
        row.kind = GPI_REASON_UNLOADING;
        row.until = gpi_time_add(p->now, p->class[o.class].unload.p50);
    }
    if (o.at > p->now || (a->supposed && gpi_evict_is_ripe(p, a->shape, variant)))
        gpi_explain_add(a, &row);
}

/* Foreign processes, or workers that stay. */
static void add_firm(struct gpi_answer *a, uint32_t device, uint32_t variant,
                     const struct gpi_request *r)
{
    struct gpi_plan_reason row = gpi_explain_row(device, variant, GPI_REASON_FOREIGN);

    if (gpi_memory_disturbed(a->p, device, r, &row.have, &row.need))
        gpi_explain_add(a, &row);
    else
        add_stays(a, device, variant);
}

/* Beside the holder of its kind a boot needs more. */
static bool has_both(const struct gpi_answer *a, uint32_t device, const struct gpi_request *r)
{
    const uint64_t beside = a->beside[a->p->device[device].kind];
    struct gpi_request both = *r;

    if (!a->boots || !a->wants || beside == GPI_MEMORY_ALL || r->memory == GPI_MEMORY_ALL)
        return false;
    both.memory += beside;
    return gpi_memory_fits(a->p, device, &both);
}

/* Returns true if workers of the class would use all shares of the device, or all CPU slots. */
static bool is_full(const struct gpi_answer *a, uint32_t device, uint32_t variant)
{
    const struct gpi_shape *s = &a->p->shape[a->shape];

    return gpi_staff_is_enough(a->p, s->class, &s->request[variant]) ||
           gpi_staff_is_full(a->p, device, s->class, &s->request[variant], (struct gpi_runs){ 0 });
}

static void add_full(struct gpi_answer *a, uint32_t device, uint32_t variant)
{
    struct gpi_plan_reason row = gpi_explain_row(device, variant, GPI_REASON_OCCUPIED);

    row.other = a->p->shape[a->shape].class;
    gpi_explain_add(a, &row);
}

/* Returns true if nothing is in the way of the variant on the device, which could hold it. */
static bool explain_device(struct gpi_answer *a, uint32_t device, uint32_t variant,
                           const struct gpi_request *r)
{
    const struct gpi_plan_device *d = &a->p->device[device];
    struct gpi_plan_reason row = gpi_explain_row(device, variant, GPI_REASON_HEAD_HOLDS);

    if (d->may != GPI_PLAN_IN) {
        row.kind = gpi_explain_state(d);
        gpi_explain_add(a, &row);
    } else if (is_full(a, device, variant)) {
        add_full(a, device, variant);
    } else if (!gpi_memory_may_hold(a->p, device, r)) {
        add_firm(a, device, variant, r);
    } else if (a->holder[d->kind] != GPI_NONE && !has_both(a, device, r)) {
        gpi_explain_held_by(a, &row, a->holder[d->kind]);
        if (!a->in_order)
            gpi_explain_add(a, &row);
    } else if (d->share + r->share > GPI_SHARE_ALL) {
        gpi_explain_share(a, device, variant, r->share);
    } else if (!gpi_memory_fits(a->p, device, r)) {
        add_memory(a, device, variant, r);
    } else {
        return true;
    }
    return false;
}

/* ---- the machine ---- */

bool gpi_explain_host(struct gpi_answer *a, uint32_t variant, const struct gpi_request *r)
{
    struct gpi_plan *p = a->p;
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, variant, GPI_REASON_CPUS);
    uint32_t keeper, run;
    const enum gpi_lack lack = gpi_reserve_lacks(p, a->shape, r, a->boots, &keeper);
    const bool cpus = lack == GPI_LACKS_CPUS;

    if (lack == GPI_LACKS_NOTHING)
        return true;
    row.have = cpus ? gpi_memory_free_cpus(p) : gpi_memory_free_host(p);
    row.need = cpus ? r->cpus : r->host_memory;
    if (row.need > (cpus ? p->set.cpus : p->set.host_memory)) {
        row.kind = GPI_REASON_NEVER;
        row.other = lack;
        row.have = cpus ? p->set.cpus : p->set.host_memory;
    } else if (keeper != GPI_NONE) {
        row.kind = GPI_REASON_HEAD_HOLDS;
        gpi_explain_held_by(a, &row, keeper);
    } else if (!cpus) {
        row.kind = GPI_REASON_MEMORY;
    } else if ((run = gpi_tree_unit(&p->cpu_ends, r->cpus + p->cpus_used - p->set.cpus)) !=
               GPI_NONE) {
        row.other = p->run[run].task;
        row.until = p->cpu_ends.node[run].key.major;
    }
    gpi_explain_add(a, &row);
    return false;
}

/* ---- a variant ---- */

/* Adds a row for each device that could never hold it.  Returns the number of all other devices. */
static uint32_t count_devices(struct gpi_answer *a, uint32_t variant, const struct gpi_request *r)
{
    uint32_t n = 0;

    for (uint32_t d = 0; d < a->p->n_devices; d++) {
        const enum gpi_lack lack = gpi_memory_lacks(a->p, d, r);
        if (a->p->device[d].may == GPI_PLAN_GONE)
            continue;
        if (lack != GPI_LACKS_NOTHING)
            add_never(a, d, variant, r, lack);
        n += lack == GPI_LACKS_NOTHING;
    }
    return n;
}

/* Returns a pinned worker of another class that stays on the device, or GPI_NONE. */
static uint32_t pinned_on(const struct gpi_plan *p, uint32_t device, uint32_t class)
{
    const struct gpi_run *r;

    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        r = &p->run[i / GPI_RUN_DEVICES];
        if (gpi_staff_stays(p, r) && r->class != class && !gpi_staff_may_go(p, r->class))
            return i / GPI_RUN_DEVICES;
    }
    return GPI_NONE;
}

/* The variant is out of reach: a row has the reason why the device could not hold it.  If no
 * worker there is pinned, those of the class have the place. */
static void explain_missing(struct gpi_answer *a, uint32_t device, uint32_t variant,
                            const struct gpi_request *r)
{
    const struct gpi_plan *p = a->p;
    const uint32_t class = p->shape[a->shape].class, pinned = pinned_on(p, device, class);
    struct gpi_plan_reason row =
        gpi_explain_row(device, variant, gpi_explain_state(&p->device[device]));

    if (p->device[device].may == GPI_PLAN_IN && is_full(a, device, variant)) {
        add_full(a, device, variant);
        return;
    }
    if (p->device[device].may == GPI_PLAN_IN) {
        if (gpi_memory_may_hold(p, device, r) ||
            gpi_memory_could_clear(p, device, &p->shape[a->shape].request[variant], class))
            return;
        row.kind = GPI_REASON_FOREIGN;
        if (!gpi_memory_disturbed(p, device, r, &row.have, &row.need)) {
            row.kind = pinned == GPI_NONE ? GPI_REASON_OCCUPIED : GPI_REASON_PINNED;
            row.other = pinned == GPI_NONE ? class : p->run[pinned].class;
            row.have = row.need = 0;
        }
    }
    gpi_explain_add(a, &row);
}

/* Returns true if the machine can have no worker for the variant, or no further one.  On devices
 * that is a row of each device. */
static bool explain_staff(struct gpi_answer *a, uint32_t variant)
{
    const struct gpi_shape *s = &a->p->shape[a->shape];
    const struct gpi_request *r = &s->request[variant];
    const bool ever = r->cpus <= a->p->set.cpus;

    if (!gpi_staff_is_enough(a->p, s->class, r) || (ever && r->devices))
        return false;
    if (ever)
        add_full(a, GPI_NOWHERE, variant);
    else
        (void)gpi_explain_host(a, variant, r);
    return true;
}

bool gpi_explain_variant(struct gpi_answer *a, uint32_t variant, const struct gpi_request *r)
{
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, variant, GPI_REASON_NEVER);
    const uint32_t class = a->p->shape[a->shape].class;
    const uint32_t could = r->devices ? count_devices(a, variant, r) : 0;
    const bool reaches =
        r->devices == 0 || gpi_kinds_in_reach(a->p, class, &a->p->shape[a->shape].request[variant]);
    uint32_t n = 0;

    if (explain_staff(a, variant))
        return false;
    if (could < r->devices) {
        row.other = GPI_LACKS_DEVICES;
        row.have = could;
        row.need = r->devices;
        gpi_explain_add(a, &row);
        return false;
    }
    for (uint32_t d = 0; d < a->p->n_devices && r->devices; d++) {
        if (a->p->device[d].may == GPI_PLAN_GONE || !gpi_memory_could(a->p, d, r))
            continue;
        if (reaches)
            n += explain_device(a, d, variant, r);
        else
            explain_missing(a, d, variant, r);
    }
    return gpi_explain_host(a, variant, r) && n >= r->devices && (!a->in_order || !r->devices);
}
