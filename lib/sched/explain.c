/* SPDX-License-Identifier: MIT */
/*
 * explain.c - the reasons why a task does not start.                                         [S9]
 *
 * Each way to start has a row: a variant on a device, or a worker of the class.  Its reason is the
 * first one that the decision meets there: the properties of the device, its state, the use by
 * foreign processes, workers that stay, the head for which it is kept, the share, the memory.  So
 * a device that is kept for a head names the head, although it is in use: once free, it is the
 * head's.  explain_rows.c has the order of the rows.
 *
 * A class that has enough workers boots another one for a task that has waited for as long as a
 * boot takes: then the boot has rows, too, and until then one row has that time.  Of a variant
 * that too few devices could hold as things are only the missing devices count.
 *
 * Nothing of the plan changes but its caches.  It takes devices x variants x runs of a device.
 */
#include "sched/explain_parts.h"

/* ---- a worker of the class ---- */

/* Returns the variant for which the worker does, or GPI_NONE. */
static uint32_t variant_of(const struct gpi_plan *p, const struct gpi_run *r,
                           const struct gpi_shape *s)
{
    uint32_t i = 0;

    if (!gpi_staff_serves(p, r, s))
        return GPI_NONE;
    while (i < s->n_requests && !gpi_request_same(&s->request[i], &r->need))
        i++;
    return i < s->n_requests ? i : 0;
}

/* Returns true if a device of the worker stops it.  A boot goes on while heads hold its devices. */
static bool explain_places(struct gpi_answer *a, const struct gpi_run *r, uint32_t variant)
{
    const uint64_t kinds = a->p->shape[a->shape].kinds;
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, variant, GPI_REASON_HEAD_HOLDS);
    bool stopped = false;

    for (uint32_t i = 0; i < r->n_devices && !stopped; i++) {
        const struct gpi_plan_device *d = &a->p->device[r->device[i]];
        const bool held = r->work != GPI_WORK_BOOT && kinds & GPI_BIT_KIND(d->kind) &&
                          a->holder[d->kind] != GPI_NONE;
        row.device = r->device[i];
        stopped = d->may != GPI_PLAN_IN || held;
        if (d->may != GPI_PLAN_IN)
            row.kind = gpi_explain_state(d);
        else if (held)
            gpi_explain_held_by(a, &row, a->holder[d->kind]);
        if (stopped && (row.kind != GPI_REASON_HEAD_HOLDS || !a->in_order))
            gpi_explain_add(a, &row);
    }
    return stopped;
}

static void add_busy(struct gpi_answer *a, const struct gpi_run *r, uint32_t variant)
{
    const struct gpi_learned *c = &a->p->class[r->class];
    const bool boots = r->work == GPI_WORK_BOOT;
    struct gpi_plan_reason row = gpi_explain_row(r->n_devices ? r->device[0] : GPI_NOWHERE, variant,
                                                 boots ? GPI_REASON_BOOTING : GPI_REASON_BUSY);

    row.other = boots ? r->class : r->task;
    row.until = boots ? gpi_explain_up_at(a->p, r) : gpi_time_add(r->begun, c->run.p50);
    if (!boots && (row.until < a->p->now || r->grant != GPI_GRANT_NONE))
        row.until = r->end_by;
    gpi_explain_add(a, &row);
}

static void explain_worker(struct gpi_answer *a, const struct gpi_run *r, uint32_t variant)
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
            gpi_explain_share(a, r->device[i], variant, r->need.share);
    }
    if (has_share && gpi_explain_host(a, variant, &host) && !(a->in_order && r->n_devices))
        a->starts = true;
}

/* Returns the number of workers that do for the shape. */
static uint32_t explain_workers(struct gpi_answer *a, uint32_t class)
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
static bool explain_runs(struct gpi_answer *a, uint32_t class)
{
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, 0, GPI_REASON_SEATS);

    row.other = class;
    row.have = a->p->set.runs;
    row.need = row.have + 1;
    if (a->p->free_run == GPI_NONE)
        gpi_explain_add(a, &row);
    return a->p->free_run != GPI_NONE;
}

static void add_boot(struct gpi_answer *a, uint32_t class)
{
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, 0, GPI_REASON_BOOTING);

    row.other = class;
    row.until = gpi_time_add(a->p->now, a->p->class[class].boot.p50);
    gpi_explain_add(a, &row);
}

/* Returns true if nothing is in the way of a boot.  It needs no CPU slot, and no share unless it
 * is for a late task. */
static bool explain_boots(struct gpi_answer *a, uint32_t class)
{
    const struct gpi_shape *s = &a->p->shape[a->shape];
    const bool has_run = explain_runs(a, class);
    bool boots = false;

    for (uint32_t i = 0; i < s->n_requests && !boots; i++) {
        struct gpi_request r = s->request[i];
        r.cpus = 0;
        r.share = a->wants ? 0 : r.share;
        boots = gpi_explain_variant(a, i, &r) && has_run;
    }
    return boots;
}

static uint64_t kinds_for(const struct gpi_plan *p, const struct gpi_shape *s)
{
    uint64_t kinds = 0;

    for (uint32_t i = 0; i < s->n_requests; i++)
        if (gpi_kinds_in_reach(p, s->class, &s->request[i]))
            kinds |= gpi_memory_kinds(p, s->class, &s->request[i]);
    return kinds;
}

/* Because of the task that is not submitted its class would want a worker: then older shapes of
 * the class come first where one could boot. */
static void hold_for_others(struct gpi_answer *a, uint32_t class)
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
static void explain_boot(struct gpi_answer *a, uint32_t class)
{
    struct gpi_plan *p = a->p;
    const struct gpi_learned *c = &p->class[class];
    const struct gpi_shape *s = &p->shape[a->shape];
    enum gpi_plan_why why_not;
    bool begins;

    a->boots = true;
    a->wants = gpi_shape_wants(p, c, c->queued + a->supposed, &why_not);
    for (uint64_t left = s->kinds & GPI_BITS_KINDS; left; left &= left - 1) {
        const uint32_t i = gpi_lowest_bit(left);
        a->holder[i] = gpi_reserve_boot_holder(p, a->shape, i);
        a->beside[i] = a->holder[i] == GPI_NONE ? 0 : gpi_reserve_beside(p, a->shape, i);
    }
    if (a->wants && a->supposed && !c->wants)
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
static uint64_t late_at(const struct gpi_answer *a, uint32_t class)
{
    const uint64_t now = a->p->now / GPI_MS * GPI_MS;

    return a->supposed ? gpi_time_add(now, a->p->class[class].boot.p50)
                       : gpi_kinds_late_at(a->p, a->shape);
}

/* The workers of the class are enough.  A late task gets one of its own. */
static void add_enough(struct gpi_answer *a, uint32_t class)
{
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, 0, GPI_REASON_BUSY);

    row.until = late_at(a, class);
    row.have = a->p->class[class].boot.p50;
    gpi_explain_add(a, &row);
}

static void add_full(struct gpi_answer *a, uint32_t class)
{
    const struct gpi_learned *c = &a->p->class[class];
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, 0, GPI_REASON_SEATS);

    row.other = class;
    row.have = c->workers - c->leaving;
    row.need = row.have + 1;
    gpi_explain_add(a, &row);
}

static void add_fault(struct gpi_answer *a, uint32_t class)
{
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, 0, GPI_REASON_FAULT);

    row.other = class;
    row.until = a->p->class[class].again;
    gpi_explain_add(a, &row);
}

/* Returns true if a worker boots that does for the task: it has a row of its own. */
static bool boots_for(const struct gpi_answer *a, uint32_t class)
{
    const uint32_t booting = a->p->class[class].booting;

    return booting != GPI_NONE &&
           gpi_staff_serves(a->p, &a->p->run[booting], &a->p->shape[a->shape]);
}

/* Not even for a late task does a worker boot while another one of its class does. */
static void add_booting(struct gpi_answer *a, uint32_t class)
{
    const uint32_t booting = a->p->class[class].booting;

    if (booting != GPI_NONE && !boots_for(a, class))
        add_busy(a, &a->p->run[booting], 0);
}

/* While the task is not late, no worker boots whose class has enough.  A class without a seat for
 * one has no row for that if it has workers for the task. */
static void explain_late(struct gpi_answer *a, uint32_t class, bool is_full, bool has_worker)
{
    if (boots_for(a, class))
        return;
    if (!is_full || gpi_spare_replaced(a->p, a->shape) != GPI_NONE)
        add_enough(a, class);
    else if (!has_worker)
        add_full(a, class);
}

static void explain_class(struct gpi_answer *a, uint32_t class)
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
    else if (why_not == GPI_REASON_BUSY && !s->late && (is_full || !s->cold))
        explain_late(a, class, is_full, has_worker);
    else if (is_full)
        add_full(a, class);
    else if (p->now < c->again)
        add_fault(a, class);
    else
        add_booting(a, class);
}

/* ---- a shape ---- */

/* Returns the first older shape of the class that could boot a worker, if the class wants one only
 * because of the task that is not submitted; or GPI_NONE. */
static uint32_t first_of_class(const struct gpi_answer *a)
{
    const struct gpi_plan *p = a->p;
    const struct gpi_shape *s = &p->shape[a->shape];
    const struct gpi_learned *c = &p->class[s->class];
    enum gpi_plan_why why_not;

    if (!a->supposed || c->set.residence == GPI_EXTERNAL || c->wants ||
        !gpi_shape_wants(p, c, c->queued + 1, &why_not))
        return GPI_NONE;
    for (uint32_t i = gpi_shape_first(p); i != GPI_NONE && gpi_shape_precedes(p, i, a->shape);
         i = gpi_shape_next(p, i, GPI_BIT_ANY))
        if (p->shape[i].class == s->class && kinds_for(p, &p->shape[i]) & s->kinds)
            return i;
    return GPI_NONE;
}

/* STRICT mode: returns the older shape that stops this one, or GPI_NONE. */
static uint32_t stopped_by(const struct gpi_answer *a, uint64_t kinds)
{
    const uint32_t head = kinds ? a->holder[gpi_lowest_bit(kinds)] : GPI_NONE;
    const uint32_t own = first_of_class(a);

    if (own == GPI_NONE || head == GPI_NONE)
        return own == GPI_NONE ? head : own;
    return gpi_shape_precedes(a->p, own, head) ? own : head;
}

/* Finds the holder of each kind.  In STRICT mode one shape may hold all of them. */
static void find_holders(struct gpi_answer *a)
{
    struct gpi_plan *p = a->p;
    const uint64_t kinds = p->shape[a->shape].kinds & GPI_BITS_KINDS;
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, 0, GPI_REASON_PASSED_OVER_BY);
    uint32_t first;

    for (uint32_t i = 0; i < GPI_KINDS; i++)
        a->holder[i] = kinds & GPI_BIT_KIND(i) ? gpi_reserve_holder(p, a->shape, i) : GPI_NONE;
    first = p->set.mode == GPI_MODE_STRICT ? stopped_by(a, kinds) : GPI_NONE;
    if (first == GPI_NONE)
        return;
    a->in_order = true;
    gpi_explain_held_by(a, &row, first);
    gpi_explain_add(a, &row);
}

/* Returns true if the class is paused: then nothing else counts yet. */
static bool explain_pause(struct gpi_answer *a, uint32_t class)
{
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, 0, GPI_REASON_PAUSED);

    row.other = class;
    if (a->p->class[class].paused)
        gpi_explain_add(a, &row);
    return a->p->class[class].paused;
}

static void explain_external(struct gpi_answer *a)
{
    const struct gpi_shape *s = &a->p->shape[a->shape];
    const bool has_run = explain_runs(a, GPI_NOWHERE);

    for (uint32_t i = 0; i < s->n_requests; i++)
        a->starts |= gpi_explain_variant(a, i, &s->request[i]) && has_run;
}

static void explain_shape(struct gpi_answer *a)
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
    gpi_explain_sort(a);
}

/* A task that is not the first of its shape waits for that one, and then for the reasons of it. */
static void add_first(struct gpi_answer *a)
{
    struct gpi_plan_reason row = gpi_explain_row(GPI_NOWHERE, 0, GPI_REASON_PASSED_OVER_BY);

    gpi_explain_held_by(a, &row, a->shape);
    if (a->most) {
        *a->row++ = row;
        a->most--;
    }
}

static uint32_t explain(struct gpi_plan *p, uint32_t task, const struct gpi_plan_task *what,
                        struct gpi_plan_reason *ret, uint32_t n)
{
    struct gpi_answer a = { .p = p, .row = ret, .most = n };
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

/* Each fact has a time of its own, so the plan does not keep this one. */
uint32_t gpi_plan_explain(struct gpi_plan *p, uint64_t now, uint32_t task,
                          const struct gpi_plan_task *what, struct gpi_plan_reason *ret, uint32_t n)
{
    const uint64_t last = p->now;
    uint32_t count;

    assert(now == 0 || now >= last);
    p->now = now ? now : last;
    p->gap_of = GPI_NONE;
    count = explain(p, task, what, ret, n);
    p->now = last;
    return count;
}
