/* SPDX-License-Identifier: MIT */
/*
 * explain.c - the reasons why a task does not start.                                         [S9]
 *
 * Each way to start has a row: a variant on a device, or a worker of the class.  Its reason is the
 * first one that the decision meets there: the properties of the device, its state, the use by
 * foreign processes, workers that stay, the head for which it is kept, the share, the memory.  So
 * a device that is kept for a head names the head, although it is in use: once free, it is the
 * head's.
 *
 * The rows are in the order in which the reasons may go.  A task behind an older one of its shape
 * names that task, and then the reasons of that task.  Next come reasons that stop every way: the
 * plan has no run left, or an older task comes first in STRICT mode.  Then come reasons that end
 * on their own, by their latest time, the ones without a time last.  Then come reasons that the
 * user has to change: a paused or broken device, foreign processes, pinned workers, max_workers.
 * Then come devices that workers leave for another class only, and last the reasons that never go.
 * Of equals the preferred variant is first, and of a variant the machine and the first device.
 *
 * A class that has enough workers boots another one for a task that has waited for as long as a
 * boot takes: then the boot has rows, too, and until then one row has that time.  Of a variant
 * that too few devices could hold as things are only the missing devices count.
 *
 * Nothing of the plan changes but its caches.  It takes devices x variants x runs of a device.
 */
#include "sched/plan_parts.h"

#define ENDS_MOST 16u /* runs of a device that are counted until enough is free */

struct answer {
    struct gpi_plan *p;
    uint32_t shape;
    bool supposed;               /* the task is not submitted */
    bool starts;                 /* nothing is in the way of one variant or worker */
    bool in_order;               /* STRICT mode: a row of its own names the older task */
    bool dry;                    /* no row is added */
    bool boots;                  /* the rows are for a boot: */
    bool wants;                  /* the class wants it; else it is for a late task */
    uint32_t holder[GPI_KINDS];  /* of each kind, GPI_NONE if the shape may take from it */
    uint64_t beside[GPI_KINDS];  /* of each kind: bytes that a boot leaves to the holder */
    struct gpi_plan_reason *row; /* a heap, the last one on top */
    uint32_t n, most, count;
};

/* ---- the order of rows ---- */

enum group { STOPS_ALL, ENDS, IS_CHANGED, IS_OTHERS, NEVER_ENDS };

static enum group group_of(const struct gpi_plan_reason *r)
{
    switch (r->kind) {
    case GPI_REASON_PASSED_OVER_BY:
        return STOPS_ALL;
    case GPI_REASON_SEATS:
        return r->other == GPI_NOWHERE ? STOPS_ALL : IS_CHANGED;
    case GPI_REASON_PAUSED:
    case GPI_REASON_DRAINED:
        return r->device == GPI_NOWHERE ? STOPS_ALL : IS_CHANGED;
    case GPI_REASON_FAULT:
        return r->until == GPI_NEVER ? IS_CHANGED : ENDS;
    case GPI_REASON_FOREIGN:
    case GPI_REASON_PINNED:
        return IS_CHANGED;
    case GPI_REASON_OCCUPIED:
        return IS_OTHERS;
    case GPI_REASON_NEVER:
        return NEVER_ENDS;
    default:
        return ENDS;
    }
}

/* Once the task is late, a worker boots first. */
static uint64_t ends_at(const struct gpi_plan_reason *r)
{
    return r->kind == GPI_REASON_BUSY && r->other == GPI_NOWHERE ? gpi_time_add(r->until, r->have)
                                                                 : r->until;
}

static bool precedes(const struct gpi_plan_reason *a, const struct gpi_plan_reason *b)
{
    const enum group x = group_of(a), y = group_of(b);

    if (x != y)
        return x < y;
    if (ends_at(a) != ends_at(b))
        return ends_at(a) < ends_at(b);
    if (a->variant != b->variant)
        return a->variant < b->variant;
    if (a->device != b->device)
        return a->device + 1 < b->device + 1; /* NOWHERE + 1 is 0 */
    if (a->kind != b->kind)
        return a->kind < b->kind;
    if (a->other != b->other)
        return a->other < b->other;
    return a->have != b->have ? a->have < b->have : a->need < b->need;
}

static void swap(struct gpi_plan_reason *a, struct gpi_plan_reason *b)
{
    const struct gpi_plan_reason kept = *a;

    *a = *b;
    *b = kept;
}

static void sift_down(struct gpi_plan_reason *row, uint32_t n)
{
    for (uint32_t i = 0, child = 1; child < n; i = child, child = 2 * i + 1) {
        child += child + 1 < n && precedes(&row[child], &row[child + 1]);
        if (!precedes(&row[i], &row[child]))
            return;
        swap(&row[i], &row[child]);
    }
}

static void add(struct answer *a, const struct gpi_plan_reason *r)
{
    if (a->dry)
        return;
    a->count++;
    if (a->n == a->most) {
        if (a->n == 0 || !precedes(r, &a->row[0]))
            return;
        a->row[0] = *r;
        sift_down(a->row, a->n);
        return;
    }
    a->row[a->n] = *r;
    for (uint32_t i = a->n++; i > 0 && precedes(&a->row[(i - 1) / 2], &a->row[i]); i = (i - 1) / 2)
        swap(&a->row[i], &a->row[(i - 1) / 2]);
}

static void sort(struct answer *a)
{
    for (uint32_t i = a->n; i-- > 1;) {
        swap(&a->row[0], &a->row[i]);
        sift_down(a->row, i);
    }
}

static struct gpi_plan_reason row_of(uint32_t device, uint32_t variant, enum gpi_plan_why kind)
{
    return (struct gpi_plan_reason){
        .device = device, .variant = variant, .kind = kind, .other = GPI_NOWHERE, .until = GPI_NEVER
    };
}

static void held_by(const struct answer *a, struct gpi_plan_reason *r, uint32_t head)
{
    r->other = a->p->shape[head].head;
    r->until = a->p->shape[head].promise;
}

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

/* Names the task that ends first, and the time at which enough has ended, by limits.  `lacks` may
 * be GPI_MEMORY_ALL; then, and behind many runs, that is when all have ended. */
static void find_end(const struct gpi_plan *p, struct gpi_plan_reason *r, uint64_t lacks)
{
    const enum gpi_plan_why what = (enum gpi_plan_why)r->kind;
    uint32_t run = next_end(p, r->device, what, GPI_NONE);

    if (run != GPI_NONE)
        r->other = p->run[run].task;
    r->until = p->device[r->device].end_by;
    for (uint32_t i = 0; i < ENDS_MOST && lacks != GPI_MEMORY_ALL; i++) {
        const uint64_t amount = run == GPI_NONE ? 0 : amount_of(p, run, r->device, what);
        r->until = run == GPI_NONE ? GPI_NEVER : end_of(&p->run[run], what);
        if (run == GPI_NONE || lacks <= amount)
            return;
        lacks -= amount;
        run = next_end(p, r->device, what, run);
    }
    if (lacks != GPI_MEMORY_ALL)
        r->until = p->device[r->device].end_by;
}

static void add_share(struct answer *a, uint32_t device, uint32_t variant, uint32_t share)
{
    const uint32_t have = GPI_SHARE_ALL - a->p->device[device].share;
    struct gpi_plan_reason r = row_of(device, variant, GPI_REASON_SHARE);

    r.have = have;
    r.need = share;
    find_end(a->p, &r, share - have);
    add(a, &r);
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
};

/* Returns the sort of the worker, or NULL if it has a task, or stays. */
static uint32_t *sort_of(const struct gpi_plan *p, const struct gpi_run *r, struct idlers *i)
{
    if (leaves(r))
        return &i->leaving;
    if (!is_transient(p, r) || (r->work != GPI_WORK_BOOT && r->work != GPI_WORK_IDLE))
        return NULL;
    return r->work == GPI_WORK_BOOT        ? &i->booting
           : p->class[r->class].set.pinned ? &i->pinned
                                           : &i->spare;
}

/* Returns true if the request fits without the workers that leave, and the transient ones that
 * have no task. */
static bool fits_without(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r,
                         struct idlers *ret)
{
    const struct gpi_plan_device *d = &p->device[device];
    uint64_t left = 0;
    bool alone = false, empty = true;
    const struct gpi_run *x;

    *ret = (struct idlers){ GPI_NONE, GPI_NONE, GPI_NONE, GPI_NONE };
    for (uint32_t i = d->first; i != GPI_NONE; i = x->next[i % GPI_RUN_DEVICES]) {
        uint32_t *sort;
        x = &p->run[i / GPI_RUN_DEVICES];
        if ((sort = sort_of(p, x, ret)) != NULL) {
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
    return r->work == GPI_WORK_UNLOAD ? gpi_time_add(r->since, p->class[r->class].unload.p50)
                                      : GPI_NEVER;
}

static uint64_t up_at(const struct gpi_plan *p, const struct gpi_run *r)
{
    return gpi_time_add(r->since, p->class[r->class].boot.p50);
}

/* Idle transient workers go for the head alone, and only for enough devices. */
static void add_spare(struct answer *a, uint32_t device, uint32_t variant, uint32_t class)
{
    const uint32_t kind = a->p->device[device].kind;
    const uint32_t head = gpi_reserve_boot_holder(a->p, a->shape, kind);
    struct gpi_plan_reason row = row_of(device, variant, GPI_REASON_OCCUPIED);

    row.other = class;
    if (head != GPI_NONE) {
        row.kind = GPI_REASON_HEAD_HOLDS;
        held_by(a, &row, head);
    }
    add(a, &row);
}

static void add_memory(struct answer *a, uint32_t device, uint32_t variant,
                       const struct gpi_request *r)
{
    const struct gpi_plan *p = a->p;
    const struct gpi_plan_device *d = &p->device[device];
    struct gpi_plan_reason row = row_of(device, variant, GPI_REASON_MEMORY);
    struct idlers idle;
    const bool fits = fits_without(p, device, r, &idle);

    row.have = gpi_memory_unused(d);
    row.need = r->memory == GPI_MEMORY_ALL ? d->usable : r->memory;
    if (fits && idle.leaving != GPI_NONE) {
        row.kind = GPI_REASON_UNLOADING;
        row.other = p->run[idle.leaving].class;
        row.until = gone_by(p, &p->run[idle.leaving]);
    } else if (fits && idle.booting != GPI_NONE) {
        row.kind = GPI_REASON_BOOTING;
        row.other = p->run[idle.booting].class;
        row.until = up_at(p, &p->run[idle.booting]);
    } else if (fits && idle.pinned != GPI_NONE) {
        row.kind = GPI_REASON_PINNED;
        row.other = p->run[idle.pinned].class;
    } else if (fits && idle.spare != GPI_NONE) {
        add_spare(a, device, variant, p->run[idle.spare].class);
        return;
    } else {
        find_end(p, &row, r->memory == GPI_MEMORY_ALL ? r->memory : row.need - row.have);
    }
    add(a, &row);
}

/* ---- a device ---- */

static enum gpi_plan_why state_of(const struct gpi_plan_device *d)
{
    return d->may == GPI_PLAN_PAUSED    ? GPI_REASON_PAUSED
           : d->may == GPI_PLAN_DRAINED ? GPI_REASON_DRAINED
                                        : GPI_REASON_FAULT;
}

static void add_never(struct answer *a, uint32_t device, uint32_t variant,
                      const struct gpi_request *r, enum gpi_lack lack)
{
    const struct gpi_plan_device *d = &a->p->device[device];
    struct gpi_plan_reason row = row_of(device, variant, GPI_REASON_NEVER);

    row.other = lack;
    row.have = lack == GPI_LACKS_MEMORY    ? gpi_memory_most(a->p, device)
               : lack == GPI_LACKS_COMPUTE ? d->has.compute
                                           : 0;
    row.need = lack == GPI_LACKS_MEMORY    ? r->memory
               : lack == GPI_LACKS_COMPUTE ? r->compute
                                           : r->places;
    add(a, &row);
}

/* Returns when the first worker of the class is up that boots on the device. */
static uint64_t boot_ends(const struct gpi_plan *p, uint32_t device, uint32_t class)
{
    uint64_t at = GPI_NEVER;
    const struct gpi_run *r;

    for (uint32_t i = p->device[device].first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        r = &p->run[i / GPI_RUN_DEVICES];
        if (r->class == class && r->work == GPI_WORK_BOOT)
            at = gpi_time_min(at, up_at(p, r));
    }
    return at;
}

/* Workers that stay.  Leaving ones have no row: the task waits for another device. */
static void add_stays(struct answer *a, uint32_t device, uint32_t variant)
{
    struct gpi_plan *p = a->p;
    const struct gpi_obstacle o = gpi_evict_obstacle(p, a->shape, variant, device);
    struct gpi_plan_reason row = row_of(device, variant, o.why);

    row.other = o.class;
    row.until = o.why == GPI_REASON_BOOTING ? boot_ends(p, device, o.class) : o.at;
    if (o.why == GPI_REASON_HEAD_HOLDS) {
        held_by(a, &row, o.class);
    } else if (o.at <= p->now) {
        row.kind = GPI_REASON_UNLOADING;
        row.until = gpi_time_add(p->now, p->class[o.class].unload.p50);
    }
    if (o.at > p->now || a->supposed)
        add(a, &row);
}

/* Foreign processes, or workers that stay. */
static void add_firm(struct answer *a, uint32_t device, uint32_t variant,
                     const struct gpi_request *r)
{
    struct gpi_plan_reason row = row_of(device, variant, GPI_REASON_FOREIGN);

    if (gpi_memory_disturbed(a->p, device, r, &row.have, &row.need))
        add(a, &row);
    else
        add_stays(a, device, variant);
}

/* Beside the holder of its kind a boot needs more. */
static bool has_both(const struct answer *a, uint32_t device, const struct gpi_request *r)
{
    const uint64_t beside = a->beside[a->p->device[device].kind];
    struct gpi_request both = *r;

    if (!a->boots || !a->wants || beside == GPI_MEMORY_ALL || r->memory == GPI_MEMORY_ALL)
        return false;
    both.memory += beside;
    return gpi_memory_fits(a->p, device, &both);
}

/* Returns true if nothing is in the way of the variant on the device, which could hold it. */
static bool explain_device(struct answer *a, uint32_t device, uint32_t variant,
                           const struct gpi_request *r)
{
    const struct gpi_plan_device *d = &a->p->device[device];
    struct gpi_plan_reason row = row_of(device, variant, GPI_REASON_HEAD_HOLDS);

    if (d->may != GPI_PLAN_IN) {
        row.kind = state_of(d);
        add(a, &row);
    } else if (!gpi_memory_may_hold(a->p, device, r)) {
        add_firm(a, device, variant, r);
    } else if (a->holder[d->kind] != GPI_NONE && !has_both(a, device, r)) {
        held_by(a, &row, a->holder[d->kind]);
        if (!a->in_order)
            add(a, &row);
    } else if (d->share + r->share > GPI_SHARE_ALL) {
        add_share(a, device, variant, r->share);
    } else if (!gpi_memory_fits(a->p, device, r)) {
        add_memory(a, device, variant, r);
    } else {
        return true;
    }
    return false;
}

/* ---- the machine ---- */

/* Returns true if the machine has the slots and memory of the request. */
static bool explain_host(struct answer *a, uint32_t variant, const struct gpi_request *r)
{
    struct gpi_plan *p = a->p;
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, variant, GPI_REASON_CPUS);
    uint32_t keeper, run;
    const enum gpi_lack lack = gpi_reserve_lacks(p, a->shape, r, a->boots, &keeper);
    const bool cpus = lack == GPI_LACKS_CPUS;

    if (lack == GPI_LACKS_NOTHING)
        return true;
    row.have = cpus ? p->set.cpus - p->cpus_used : p->set.host_memory - p->host_memory_used;
    row.need = cpus ? r->cpus : r->host_memory;
    if (row.need > (cpus ? p->set.cpus : p->set.host_memory)) {
        row.kind = GPI_REASON_NEVER;
        row.other = lack;
        row.have = cpus ? p->set.cpus : p->set.host_memory;
    } else if (keeper != GPI_NONE) {
        row.kind = GPI_REASON_HEAD_HOLDS;
        held_by(a, &row, keeper);
    } else if (!cpus) {
        row.kind = GPI_REASON_MEMORY;
    } else if ((run = gpi_tree_unit(&p->cpu_ends, (uint32_t)(row.need - row.have))) != GPI_NONE) {
        row.other = p->run[run].task;
        row.until = p->cpu_ends.node[run].key.major;
    }
    add(a, &row);
    return false;
}

/* ---- a variant ---- */

/* Adds a row for each device that could never hold it.  Returns the number of all other devices. */
static uint32_t count_devices(struct answer *a, uint32_t variant, const struct gpi_request *r)
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
        if (gpi_memory_stays(p, r) && r->class != class && p->class[r->class].set.pinned)
            return i / GPI_RUN_DEVICES;
    }
    return GPI_NONE;
}

/* The variant is out of reach: a row has the reason why the device could not hold it.  If no
 * worker there is pinned, those of the class have the place. */
static void explain_missing(struct answer *a, uint32_t device, uint32_t variant,
                            const struct gpi_request *r)
{
    const struct gpi_plan *p = a->p;
    const uint32_t class = p->shape[a->shape].class, pinned = pinned_on(p, device, class);
    struct gpi_plan_reason row = row_of(device, variant, state_of(&p->device[device]));

    if (p->device[device].may == GPI_PLAN_IN) {
        if (gpi_memory_may_hold(p, device, r) || gpi_memory_could_clear(p, device, r, class))
            return;
        row.kind = GPI_REASON_FOREIGN;
        if (!gpi_memory_disturbed(p, device, r, &row.have, &row.need)) {
            row.kind = pinned == GPI_NONE ? GPI_REASON_OCCUPIED : GPI_REASON_PINNED;
            row.other = pinned == GPI_NONE ? class : p->run[pinned].class;
            row.have = row.need = 0;
        }
    }
    add(a, &row);
}

/* Returns true if nothing is in the way of the variant. */
static bool explain_variant(struct answer *a, uint32_t variant, const struct gpi_request *r)
{
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, variant, GPI_REASON_NEVER);
    const uint32_t class = a->p->shape[a->shape].class;
    const uint32_t could = r->devices ? count_devices(a, variant, r) : 0;
    const bool reaches = r->devices == 0 || gpi_shape_in_reach(a->p, class, r);
    uint32_t n = 0;

    if (could < r->devices) {
        row.other = GPI_LACKS_DEVICES;
        row.have = could;
        row.need = r->devices;
        add(a, &row);
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
    return explain_host(a, variant, r) && n >= r->devices && (!a->in_order || !r->devices);
}

/* ---- a worker of the class ---- */

/* Returns the variant for which the worker does, or GPI_NONE. */
static uint32_t variant_of(const struct gpi_plan *p, const struct gpi_run *r,
                           const struct gpi_shape *s)
{
    uint32_t i = 0;

    if (!gpi_memory_serves(p, r, s))
        return GPI_NONE;
    while (i < s->n_requests && !gpi_request_same(&s->request[i], &r->need))
        i++;
    return i < s->n_requests ? i : 0;
}

/* Returns true if a device of the worker stops it.  A boot goes on while heads hold its devices. */
static bool explain_places(struct answer *a, const struct gpi_run *r, uint32_t variant)
{
    const uint64_t kinds = a->p->shape[a->shape].kinds;
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, variant, GPI_REASON_HEAD_HOLDS);
    bool stopped = false;

    for (uint32_t i = 0; i < r->n_devices && !stopped; i++) {
        const struct gpi_plan_device *d = &a->p->device[r->device[i]];
        const bool held = r->work != GPI_WORK_BOOT && kinds & GPI_BIT_KIND(d->kind) &&
                          a->holder[d->kind] != GPI_NONE;
        row.device = r->device[i];
        stopped = d->may != GPI_PLAN_IN || held;
        if (d->may != GPI_PLAN_IN)
            row.kind = state_of(d);
        else if (held)
            held_by(a, &row, a->holder[d->kind]);
        if (stopped && (row.kind != GPI_REASON_HEAD_HOLDS || !a->in_order))
            add(a, &row);
    }
    return stopped;
}

static void add_busy(struct answer *a, const struct gpi_run *r, uint32_t variant)
{
    const struct gpi_learned *c = &a->p->class[r->class];
    const bool boots = r->work == GPI_WORK_BOOT;
    struct gpi_plan_reason row = row_of(r->n_devices ? r->device[0] : GPI_NOWHERE, variant,
                                        boots ? GPI_REASON_BOOTING : GPI_REASON_BUSY);

    row.other = boots ? r->class : r->task;
    row.until = boots ? up_at(a->p, r) : gpi_time_add(r->begun, c->run.p50);
    if (!boots && row.until < a->p->now)
        row.until = r->end_by;
    add(a, &row);
}

static void explain_worker(struct answer *a, const struct gpi_run *r, uint32_t variant)
{
    const struct gpi_request host = { .cpus = r->need.cpus };
    bool has_share = true;

    if (explain_places(a, r, variant))
        return;
    if (r->work != GPI_WORK_IDLE) {
        add_busy(a, r, variant);
        return;
    }
    for (uint32_t i = 0; i < r->n_devices && has_share; i++) {
        has_share = a->p->device[r->device[i]].share + r->need.share <= GPI_SHARE_ALL;
        if (!has_share)
            add_share(a, r->device[i], variant, r->need.share);
    }
    if (has_share && explain_host(a, variant, &host) && !(a->in_order && r->n_devices))
        a->starts = true;
}

/* Returns the number of workers that do for the shape. */
static uint32_t explain_workers(struct answer *a, uint32_t class)
{
    const struct gpi_plan *p = a->p;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->set.runs; i++) {
        const struct gpi_run *r = &p->run[i];
        uint32_t variant;
        if (r->class != class || r->work < GPI_WORK_BOOT || r->work > GPI_WORK_BUSY)
            continue;
        variant = variant_of(p, r, &p->shape[a->shape]);
        if (variant != GPI_NONE)
            explain_worker(a, r, variant);
        n += variant != GPI_NONE;
    }
    return n;
}

/* ---- a boot ---- */

/* Returns true if the plan can hold one more run. */
static bool explain_runs(struct answer *a, uint32_t class)
{
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, 0, GPI_REASON_SEATS);

    row.other = class;
    row.have = a->p->set.runs;
    row.need = row.have + 1;
    if (a->p->free_run == GPI_NONE)
        add(a, &row);
    return a->p->free_run != GPI_NONE;
}

static void add_boot(struct answer *a, uint32_t class)
{
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, 0, GPI_REASON_BOOTING);

    row.other = class;
    row.until = gpi_time_add(a->p->now, a->p->class[class].boot.p50);
    add(a, &row);
}

/* Returns true if nothing is in the way of a boot.  It needs no CPU slot, and no share unless it
 * is for a late task. */
static bool explain_boots(struct answer *a, uint32_t class)
{
    const struct gpi_shape *s = &a->p->shape[a->shape];
    const bool has_run = explain_runs(a, class);
    bool boots = false;

    for (uint32_t i = 0; i < s->n_requests && !boots; i++) {
        struct gpi_request r = s->request[i];
        r.cpus = 0;
        r.share = a->wants ? 0 : r.share;
        boots = explain_variant(a, i, &r) && has_run;
    }
    return boots;
}

static uint64_t kinds_for(const struct gpi_plan *p, const struct gpi_shape *s)
{
    uint64_t kinds = 0;

    for (uint32_t i = 0; i < s->n_requests; i++)
        if (gpi_shape_in_reach(p, s->class, &s->request[i]))
            kinds |= gpi_memory_kinds(p, &s->request[i]);
    return kinds;
}

/* Because of the task that is not submitted its class would want a worker: then older shapes of
 * the class come first where one could boot. */
static void hold_for_others(struct answer *a, uint32_t class)
{
    struct gpi_plan *p = a->p;

    for (uint32_t i = gpi_shape_first(p); i != GPI_NONE && gpi_shape_precedes(p, i, a->shape);
         i = gpi_shape_next(p, i, GPI_BIT_ANY))
        for (uint64_t left = p->shape[i].class == class ? kinds_for(p, &p->shape[i]) : 0; left;
             left &= left - 1) {
            const uint32_t kind = gpi_lowest_bit(left);
            if (a->holder[kind] != GPI_NONE && gpi_shape_precedes(p, a->holder[kind], i))
                continue;
            a->holder[kind] = i;
            a->beside[kind] = GPI_MEMORY_ALL;
        }
}

/* No limit ends a worker, so it passes no head.  Of a task that is not submitted the worker would
 * boot at once, if that is possible: no other reason counts. */
static void explain_boot(struct answer *a, uint32_t class)
{
    struct gpi_plan *p = a->p;
    const struct gpi_shape *s = &p->shape[a->shape];
    enum gpi_plan_why why_not;
    bool begins;

    a->boots = true;
    a->wants =
        gpi_shape_wants(p, &p->class[class], p -> class[class].queued + a->supposed, &why_not);
    for (uint64_t left = s->kinds & GPI_BITS_KINDS; left; left &= left - 1) {
        const uint32_t i = gpi_lowest_bit(left);
        a->holder[i] = gpi_reserve_boot_holder(p, a->shape, i);
        a->beside[i] = a->holder[i] == GPI_NONE ? 0 : gpi_reserve_beside(p, a->shape, i);
    }
    if (a->supposed && !p->class[class].wants)
        hold_for_others(a, class);
    a->dry = a->supposed;
    begins = explain_boots(a, class);
    a->dry = false;
    if (begins && a->supposed)
        add_boot(a, class);
    else if (a->supposed)
        (void)explain_boots(a, class);
}

/* Returns when the first task is late. */
static uint64_t late_at(const struct answer *a, uint32_t class)
{
    const uint64_t now = a->p->now / GPI_MS * GPI_MS;

    return a->supposed ? gpi_time_add(now, a->p->class[class].boot.p50)
                       : gpi_shape_late_at(a->p, a->shape);
}

/* The workers of the class are enough.  A late task gets one of its own. */
static void add_enough(struct answer *a, uint32_t class)
{
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, 0, GPI_REASON_BUSY);

    row.until = late_at(a, class);
    row.have = a->p->class[class].boot.p50;
    add(a, &row);
}

static void add_full(struct answer *a, uint32_t class)
{
    const struct gpi_learned *c = &a->p->class[class];
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, 0, GPI_REASON_SEATS);

    row.other = class;
    row.have = c->workers - c->leaving;
    row.need = row.have + 1;
    add(a, &row);
}

static void add_fault(struct answer *a, uint32_t class)
{
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, 0, GPI_REASON_FAULT);

    row.other = class;
    row.until = a->p->class[class].again;
    add(a, &row);
}

/* Returns true if a worker boots that does for the task: it has a row of its own. */
static bool boots_for(const struct answer *a, uint32_t class)
{
    const uint32_t booting = a->p->class[class].booting;

    return booting != GPI_NONE &&
           gpi_memory_serves(a->p, &a->p->run[booting], &a->p->shape[a->shape]);
}

/* Not even for a late task does a worker boot while another one of its class does. */
static void add_booting(struct answer *a, uint32_t class)
{
    const uint32_t booting = a->p->class[class].booting;

    if (booting != GPI_NONE && !boots_for(a, class))
        add_busy(a, &a->p->run[booting], 0);
}

/* While the task is not late, no worker boots whose class has enough.  A class without a seat for
 * one has no row for that if it has workers for the task. */
static void explain_late(struct answer *a, uint32_t class, bool is_full, bool has_worker)
{
    if (boots_for(a, class))
        return;
    if (!is_full || gpi_evict_replaced(a->p, a->shape) != GPI_NONE)
        add_enough(a, class);
    else if (!has_worker)
        add_full(a, class);
}

static void explain_class(struct answer *a, uint32_t class)
{
    struct gpi_plan *p = a->p;
    const struct gpi_learned *c = &p->class[class];
    const struct gpi_shape *s = &p->shape[a->shape];
    const bool is_full = c->workers - c->leaving >= c->set.max_workers;
    const bool has_worker = explain_workers(a, class) > 0;
    enum gpi_plan_why why_not;

    (void)gpi_shape_wants(p, c, c->queued + a->supposed, &why_not);
    if (s->begins)
        explain_boot(a, class);
    else if (why_not == GPI_REASON_BUSY && !s->late)
        explain_late(a, class, is_full, has_worker);
    else if (is_full)
        add_full(a, class);
    else if (p->now < c->again)
        add_fault(a, class);
    else
        add_booting(a, class);
}

/* ---- a shape ---- */


/* Finds the holder of each kind.  In STRICT mode one shape may hold all of them. */
static void find_holders(struct answer *a)
{
    struct gpi_plan *p = a->p;
    const uint64_t kinds = p->shape[a->shape].kinds & GPI_BITS_KINDS;
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, 0, GPI_REASON_PASSED_OVER_BY);

    for (uint32_t i = 0; i < GPI_KINDS; i++)
        a->holder[i] = kinds & GPI_BIT_KIND(i) ? gpi_reserve_holder(p, a->shape, i) : GPI_NONE;
    if (p->set.mode != GPI_MODE_STRICT || !kinds || a->holder[gpi_lowest_bit(kinds)] == GPI_NONE)
        return;
    a->in_order = true;
    held_by(a, &row, a->holder[gpi_lowest_bit(kinds)]);
    add(a, &row);
}

/* Returns true if the class is paused: then nothing else counts yet. */
static bool explain_pause(struct answer *a, uint32_t class)
{
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, 0, GPI_REASON_PAUSED);

    row.other = class;
    if (a->p->class[class].paused)
        add(a, &row);
    return a->p->class[class].paused;
}

static void explain_external(struct answer *a)
{
    const struct gpi_shape *s = &a->p->shape[a->shape];
    const bool has_run = explain_runs(a, GPI_NOWHERE);

    for (uint32_t i = 0; i < s->n_requests; i++)
        a->starts |= explain_variant(a, i, &s->request[i]) && has_run;
}

static void explain_shape(struct answer *a)
{
    const struct gpi_plan *p = a->p;
    const struct gpi_shape *s = &p->shape[a->shape];

    find_holders(a);
    if (explain_pause(a, s->class))
        return;
    if (p->class[s->class].set.residence != GPI_EXTERNAL)
        explain_class(a, s->class);
    else
        explain_external(a);
    if (a->starts)
        a->n = a->count = 0;
    sort(a);
}

/* A task that is not the first of its shape waits for that one, and then for the reasons of it. */
static void add_first(struct answer *a)
{
    struct gpi_plan_reason row = row_of(GPI_NOWHERE, 0, GPI_REASON_PASSED_OVER_BY);

    held_by(a, &row, a->shape);
    if (a->most) {
        *a->row++ = row;
        a->most--;
    }
}

uint32_t gpi_plan_explain(struct gpi_plan *p, uint32_t task, const struct gpi_plan_task *what,
                          struct gpi_plan_reason *ret, uint32_t n)
{
    struct answer a = { .p = p, .row = ret, .most = n };
    struct gpi_plan_task own;
    bool is_behind;

    if (!what && !gpi_shape_waits(p, task))
        return 0;
    if (what) {
        own = gpi_plan_own(p, what);
        a.shape = gpi_shape_suppose(p, &own);
        a.supposed = p->shape[a.shape].head == GPI_NONE;
        is_behind = !a.supposed;
    } else {
        a.shape = p->task[task].holder;
        is_behind = p->shape[a.shape].head != task;
    }
    if (is_behind)
        add_first(&a);
    if (a.supposed)
        gpi_reserve_suppose(p, gpi_shape_takes(p, a.shape));
    explain_shape(&a);
    gpi_reserve_suppose(p, GPI_NEVER);
    return is_behind + a.count;
}
