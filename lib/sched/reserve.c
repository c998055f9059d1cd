/* SPDX-License-Identifier: MIT */
/*
 * reserve.c - heads, promises, and which tasks may pass.                       [R1] [R2] [R3] [S2]
 *
 * The head of a kind is the first waiting shape that may use it.  A device that becomes free is
 * kept for the head.  Another shape may take it if it passes the head: if it is back before the
 * head could start, by its limit.  CPU slots and host memory are kept for each head in the same
 * way.
 *
 * A promise is the time by which a head starts at the latest: as many of its devices as it needs
 * have ended all runs by then.  It counts on kinds where the shape is the head: elsewhere it
 * comes second.
 */
#include <stdlib.h>

#include "sched/plan_parts.h"

int gpi_reserve_make(struct gpi_plan *p)
{
    p->promised = malloc(sizeof *p->promised * p->most_shapes);
    p->gap_of = GPI_NONE;
    p->supposed_takes = GPI_NEVER;
    return p->promised ? 0 : -1;
}

void gpi_reserve_free(struct gpi_plan *p)
{
    free(p->promised);
}

/* Returns the kinds, and the host bit, of which the shape is the first. */
static uint64_t headed(struct gpi_plan *p, uint32_t shape)
{
    uint64_t kinds = 0;

    for (uint64_t left = p->order.node[shape].mask & GPI_BITS_HEADED; left; left &= left - 1)
        if (gpi_shape_head(p, gpi_lowest_bit(left)) == shape)
            kinds |= left & -left;
    return kinds;
}

/* ---- the time at which devices are free ---- */

enum ends { BY_LIMIT, PLAUSIBLE };

/* Devices of the mixed kind may not do, so none counts on them.  A time of at most `enough` may be
 * later than it is. */
static uint64_t devices_end(const struct gpi_plan *p, const struct gpi_request *r, uint64_t kinds,
                            enum ends which, uint64_t enough)
{
    struct gpi_soonest found;

    if (r->devices == 0)
        return p->now;
    gpi_soonest_begin(&found, r->devices, enough);
    for (uint64_t left = kinds & (GPI_BIT_KIND(GPI_KIND_MIXED) - 1); left; left &= left - 1) {
        struct gpi_kind *k = &p->kind[gpi_lowest_bit(left)];
        gpi_soonest_among(&found, which == BY_LIMIT ? &k->end : &k->plausible);
    }
    return gpi_soonest_last(&found) > p->now ? gpi_soonest_last(&found) : p->now;
}

/* ---- CPU slots and host memory ---- */

/* Each head before the shape that it does not pass keeps the most that a variant needs. */
struct kept {
    uint64_t cpus, memory;
    uint32_t cpus_for, memory_for; /* the first head that keeps some */
};

static void keep_first(const struct gpi_plan *p, uint32_t *first, uint32_t head, uint64_t amount)
{
    if (amount && (*first == GPI_NONE || gpi_shape_precedes(p, head, *first)))
        *first = head;
}

static void keep_for(const struct gpi_plan *p, uint32_t head, struct kept *kept)
{
    const struct gpi_shape *h = &p->shape[head];
    uint64_t cpus = 0, memory = 0;

    for (uint32_t i = 0; i < h->n_requests; i++) {
        if (h->request[i].cpus > cpus)
            cpus = h->request[i].cpus;
        if (h->request[i].host_memory > memory)
            memory = h->request[i].host_memory;
    }
    kept->cpus += cpus;
    kept->memory += memory;
    keep_first(p, &kept->cpus_for, head, cpus);
    keep_first(p, &kept->memory_for, head, memory);
}

static bool passes(struct gpi_plan *p, uint32_t shape, uint32_t head);

static bool is_among(const uint32_t *heads, uint32_t n, uint32_t head)
{
    for (uint32_t i = 0; i < n; i++)
        /* cppcheck-suppress uninitvar ; the first n are set */
        if (heads[i] == head)
            return true;
    return false;
}

/* The shape could begin with CPU slots and host memory alone, or is the head of devices.  One that
 * lacks a run could not: the worker that is to leave for it may have tasks, which need slots. */
static bool may_keep_host(struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    const bool begins = s->kinds & GPI_BIT_HOST && !s->lacks_run;

    return begins ||
           (s->lacks_host && (headed(p, shape) & GPI_BITS_KINDS || gpi_staff_has_bare(p, s)));
}

/* Returns the first shape for which CPU slots and host memory are kept: it lacks nothing else. */
static uint32_t host_head(struct gpi_plan *p)
{
    uint32_t i = gpi_shape_head(p, GPI_KINDS);

    while (i != GPI_NONE && !may_keep_host(p, i))
        i = gpi_shape_next(p, i, GPI_BIT_HOST);
    return i;
}

/* For a worker, which stays, no limit ends its use of the machine. */
static struct kept kept_before(struct gpi_plan *p, uint32_t shape, bool for_life)
{
    uint32_t heads[GPI_KINDS + 1], n = 0;
    struct kept kept = { 0, 0, GPI_NONE, GPI_NONE };

    for (uint32_t bit = 0; bit <= GPI_KINDS; bit++) {
        const uint32_t head = bit == GPI_KINDS   ? host_head(p)
                              : bit < p->n_kinds ? gpi_shape_head(p, bit)
                                                 : GPI_NONE;
        if (head == GPI_NONE || head == shape || !gpi_shape_precedes(p, head, shape) ||
            is_among(heads, n, head))
            continue;
        heads[n++] = head;
        if (for_life || !passes(p, shape, head))
            keep_for(p, head, &kept);
    }
    return kept;
}

/* Returns true if the machine has `needed`, beside the used and the kept part.  `ret_keeper`:
 * GPI_NONE if it would not do without the heads, either. */
static bool has(uint64_t all, uint64_t used, uint64_t kept, uint64_t needed, uint32_t keeper,
                uint32_t *ret_keeper)
{
    *ret_keeper = needed <= all && used <= all - needed ? keeper : GPI_NONE;
    return needed == 0 || (needed <= all && used + kept <= all - needed);
}

enum gpi_lack gpi_reserve_lacks(struct gpi_plan *p, uint32_t shape, const struct gpi_request *r,
                                bool for_life, uint32_t *ret_keeper)
{
    struct kept kept;

    *ret_keeper = GPI_NONE;
    if (r->cpus == 0 && r->host_memory == 0)
        return GPI_LACKS_NOTHING;
    kept = kept_before(p, shape, for_life);
    if (!has(p->set.cpus, p->cpus_used, kept.cpus, r->cpus, kept.cpus_for, ret_keeper))
        return GPI_LACKS_CPUS;
    return has(p->set.host_memory, p->host_memory_used, kept.memory, r->host_memory,
               kept.memory_for, ret_keeper)
               ? GPI_LACKS_NOTHING
               : GPI_LACKS_MEMORY;
}

bool gpi_reserve_host(struct gpi_plan *p, uint32_t shape, const struct gpi_request *r,
                      bool for_life)
{
    uint32_t keeper;

    return gpi_reserve_lacks(p, shape, r, for_life, &keeper) == GPI_LACKS_NOTHING;
}

/* ---- kinds that are open ---- */

void gpi_reserve_suppose(struct gpi_plan *p, uint64_t takes)
{
    p->supposed_takes = takes;
    p->gap_of = GPI_NONE;
}

/* Returns the first shape of the kind: this one, if none precedes it.  It may be a supposed one. */
static uint32_t first_of(struct gpi_plan *p, uint32_t shape, uint32_t kind)
{
    const uint32_t head = gpi_shape_head(p, kind);

    return head != GPI_NONE && gpi_shape_precedes(p, head, shape) ? head : shape;
}

/* STRICT: the first shape that does not fit stops all that could use one of its devices. */
static uint64_t open_in_order(struct gpi_plan *p, uint32_t shape, uint64_t wanted)
{
    const uint64_t kinds = p->shape[shape].kinds & GPI_BITS_KINDS;

    for (uint64_t left = kinds; left; left &= left - 1)
        if (first_of(p, shape, gpi_lowest_bit(left)) != shape)
            return 0;
    return wanted & GPI_BITS_KINDS;
}

/* Returns the variants of the head for which its devices are free. */
static uint64_t variants_of(struct gpi_plan *p, uint32_t head)
{
    const struct gpi_shape *h = &p->shape[head];
    uint16_t device[GPI_RUN_DEVICES];
    uint64_t variants = 0;

    for (uint32_t i = 0; i < h->n_requests; i++)
        if (gpi_memory_pick(p, &h->request[i], headed(p, head), device) == h->request[i].devices)
            variants |= 1ull << i;
    return variants;
}

/* A variant that lacks a device needs all that come free. */
static bool has_devices(struct gpi_plan *p, uint32_t head)
{
    return variants_of(p, head) == (1ull << p->shape[head].n_requests) - 1;
}

/* The rest that the head of a kind does not need is held for the next shape in order.  Else a task
 * that came later, with any limit, could delay that one.                                  [S3] */
static bool is_second(const struct gpi_plan *p, uint32_t shape, uint32_t head, uint32_t kind)
{
    const uint32_t next = gpi_shape_next(p, head, GPI_BIT_KIND(kind));

    return next == GPI_NONE || !gpi_shape_precedes(p, next, shape);
}

/* It waits for its worker there, up or in its boot, and needs no memory. */
static bool is_only_warm(const struct gpi_plan *p, uint32_t shape, uint32_t kind)
{
    const struct gpi_shape *s = &p->shape[shape];
    uint64_t kinds = 0;

    for (uint32_t i = 0; i < s->n_requests; i++)
        kinds |= s->kinds_of[i];
    return !(kinds & GPI_BIT_KIND(kind));
}

/* The worker that it waits for has a task, and releases the share that the head needs. */
static bool waits_for_worker(const struct gpi_plan *p, uint32_t head, uint32_t kind)
{
    const struct gpi_learned *c = &p->class[p->shape[head].class];

    return c->set.residence != GPI_EXTERNAL && c->idle == GPI_NONE && is_only_warm(p, head, kind) &&
           !(p->shape[head].coming & GPI_BIT_KIND(kind));
}

/* The head waits for a boot there, and workers that stay leave it too few devices: one more such
 * worker will go for it as these do. */
static bool waits_for_room(const struct gpi_plan *p, uint32_t head, uint32_t kind)
{
    const struct gpi_shape *h = &p->shape[head];

    return !((h->claimed | h->warm | h->coming) & GPI_BIT_KIND(kind));
}

uint64_t gpi_reserve_open(struct gpi_plan *p, uint32_t shape, uint64_t kinds, uint64_t *ret_rest)
{
    const bool stays = gpi_shape_stays(p, shape);
    uint64_t open = 0;
    uint32_t last = GPI_NONE;
    bool passed = false;

    *ret_rest = 0;
    if (p->set.mode == GPI_MODE_STRICT)
        return open_in_order(p, shape, kinds);
    for (uint64_t left = kinds & GPI_BITS_KINDS; left; left &= left - 1) {
        const uint32_t kind = gpi_lowest_bit(left), head = first_of(p, shape, kind);
        if (head != shape && head != last)
            passed = passes(p, shape, head);
        if (head != shape)
            last = head;
        if (head == shape || passed || waits_for_worker(p, head, kind) ||
            (stays && waits_for_room(p, head, kind)))
            open |= GPI_BIT_KIND(kind);
        else if (p->shape[head].lacks_host && is_second(p, shape, head, kind) &&
                 has_devices(p, head))
            *ret_rest |= GPI_BIT_KIND(kind);
    }
    return open;
}

/* ---- the order of boots ---- */

bool gpi_reserve_walk(const struct gpi_plan *p, struct gpi_walk *w, uint32_t shape, bool served)
{
    const struct gpi_shape *s = &p->shape[shape];

    if (w->head == GPI_NONE) {
        w->head = shape;
        return !served || gpi_shape_is_strict(p);
    }
    if (s->priority != p->shape[w->head].priority || !gpi_shape_stays(p, shape))
        return true;
    if (!served)
        w->head = shape;
    return !served;
}

static uint32_t next_claim(const struct gpi_plan *p, uint32_t shape, uint32_t kind)
{
    while (shape != GPI_NONE && !(p->shape[shape].claimed & GPI_BIT_KIND(kind)))
        shape = gpi_shape_next(p, shape, GPI_BIT_KIND(kind));
    return shape;
}

/* Returns the first that boots on the kind: of the shapes that claim it and this one, which may be
 * supposed, or GPI_NONE.  For a shape of another kind of class the order is that of age. */
static uint32_t claim_head(struct gpi_plan *p, uint32_t shape, uint32_t kind)
{
    const bool stays = shape == GPI_NONE || gpi_shape_stays(p, shape);
    struct gpi_walk w = { GPI_NONE };
    uint32_t i = next_claim(p, gpi_shape_head(p, kind), kind);
    bool ends = false;
    uint32_t next;

    while (!ends && (next = gpi_shape_older(p, i, &shape)) != GPI_NONE) {
        ends = gpi_reserve_walk(p, &w, next, stays && p->shape[next].served);
        if (next == i)
            i = next_claim(p, gpi_shape_next(p, i, GPI_BIT_KIND(kind)), kind);
    }
    return w.head;
}

uint32_t gpi_reserve_memory_head(struct gpi_plan *p, uint32_t kind)
{
    return claim_head(p, GPI_NONE, kind);
}

uint32_t gpi_reserve_claimant(struct gpi_plan *p, uint32_t shape, uint32_t kind)
{
    const uint32_t head = claim_head(p, shape, kind);

    return head == shape ? GPI_NONE : head;
}

/* STRICT: returns the first of all that stop the shape. */
static uint32_t first_before(struct gpi_plan *p, uint32_t shape)
{
    uint32_t first = GPI_NONE;

    for (uint64_t left = p->shape[shape].kinds & GPI_BITS_KINDS; left; left &= left - 1) {
        const uint32_t head = first_of(p, shape, gpi_lowest_bit(left));
        if (head != shape && (first == GPI_NONE || gpi_shape_precedes(p, head, first)))
            first = head;
    }
    return first;
}

uint32_t gpi_reserve_holder(struct gpi_plan *p, uint32_t shape, uint32_t kind)
{
    uint64_t rest;

    if (gpi_reserve_open(p, shape, GPI_BIT_KIND(kind), &rest))
        return GPI_NONE;
    return p->set.mode == GPI_MODE_STRICT ? first_before(p, shape) : first_of(p, shape, kind);
}

/* A worker that stays may boot where only shapes that wait for their worker come before it. */
uint32_t gpi_reserve_boot_holder(struct gpi_plan *p, uint32_t shape, uint32_t kind)
{
    uint32_t first;

    if (p->set.mode == GPI_MODE_STRICT)
        return first_before(p, shape);
    if (gpi_shape_stays(p, shape))
        return gpi_reserve_claimant(p, shape, kind);
    first = gpi_shape_head(p, kind);
    return first != GPI_NONE && gpi_shape_precedes(p, first, shape) ? first : GPI_NONE;
}

uint64_t gpi_reserve_own(struct gpi_plan *p, uint32_t shape, uint64_t kinds)
{
    uint64_t own = 0;

    if (p->set.mode == GPI_MODE_STRICT)
        return open_in_order(p, shape, kinds);
    for (uint64_t left = kinds & GPI_BITS_KINDS; left; left &= left - 1)
        if (gpi_reserve_boot_holder(p, shape, gpi_lowest_bit(left)) == GPI_NONE)
            own |= left & -left;
    return own;
}

uint64_t gpi_reserve_beside(struct gpi_plan *p, uint32_t shape, uint32_t kind)
{
    const uint32_t head = gpi_reserve_memory_head(p, kind);
    const struct gpi_shape *h = &p->shape[head];
    uint64_t most = 0;

    if (p->set.mode == GPI_MODE_STRICT || !gpi_shape_stays(p, shape) ||
        !is_second(p, shape, head, kind))
        return GPI_MEMORY_ALL;
    for (uint32_t i = 0; i < h->n_requests; i++)
        most = h->request[i].memory > most ? h->request[i].memory : most;
    return most;
}

uint64_t gpi_reserve_rest(struct gpi_plan *p, uint32_t shape, uint64_t kinds)
{
    uint64_t rest = 0;

    for (uint64_t left = kinds; left; left &= left - 1) {
        const uint32_t head = gpi_shape_head(p, gpi_lowest_bit(left));
        const bool kept = head != shape && p->shape[head].lacks_host && !passes(p, shape, head);
        rest = rest << GPI_VARIANTS | (kept ? variants_of(p, head) : 0);
    }
    return rest;
}

/* ---- promises ---- */

/* A shape that needs something of the machine has a promise only as the first of all: an older
 * shape may take CPU slots, whichever devices it waits for. */
static uint64_t host_end(struct gpi_plan *p, uint32_t shape, const struct gpi_request *r)
{
    const uint32_t unused = gpi_memory_free_cpus(p);
    uint32_t run;

    if (r->cpus == 0 && r->host_memory == 0)
        return p->now;
    if (gpi_shape_first(p) != shape || r->host_memory > gpi_memory_free_host(p))
        return GPI_NEVER;
    if (r->cpus <= unused)
        return p->now;
    run = gpi_tree_unit(&p->cpu_ends, r->cpus + p->cpus_used - p->set.cpus);
    return run == GPI_NONE ? GPI_NEVER : p->cpu_ends.node[run].key.major;
}

/* Of a class with workers only those with one device have a promise, where they are warm: a boot
 * has no limit here, and devices of several workers make no worker. */
static bool has_one_device(const struct gpi_shape *s)
{
    bool one = true;

    for (uint32_t i = 0; i < s->n_requests; i++)
        one &= s->request[i].devices == 1;
    return one;
}

static uint64_t promise_of(struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    const uint64_t kinds = headed(p, shape);
    uint64_t promise = GPI_NEVER;

    if (p->class[s->class].paused ||
        (p->set.mode == GPI_MODE_STRICT && (kinds ^ s->kinds) & GPI_BITS_KINDS))
        return GPI_NEVER;
    if (p->class[s->class].set.residence != GPI_EXTERNAL)
        return s->warm && has_one_device(s) && !s->needs_host
                   ? devices_end(p, &s->request[0], kinds & s->warm, BY_LIMIT, p->now)
                   : GPI_NEVER;
    for (uint32_t i = 0; i < s->n_requests && p->free_run != GPI_NONE; i++) {
        const struct gpi_request *r = &s->request[i];
        const uint64_t host = host_end(p, shape, r);
        uint64_t end = devices_end(p, r, kinds & s->kinds_of[i], BY_LIMIT, p->now);
        end = end > host ? end : host;
        promise = gpi_time_min(promise, end);
    }
    return promise;
}

/* Returns the earliest time at which the head could start, as far as its class is known.  No
 * waiting task is over before `enough`, so any time before it is the same. */
static uint64_t plausible_of(const struct gpi_plan *p, uint32_t shape)
{
    const struct gpi_shape *s = &p->shape[shape];
    const uint64_t least = gpi_time_min(gpi_tree_least(&p->order), p->supposed_takes);
    const uint64_t enough = gpi_time_add(p->now, least ? least - 1 : 0);
    uint64_t earliest = s->lacks_host ? p->now : GPI_NEVER;

    if (s->warm)
        earliest =
            gpi_time_min(earliest, devices_end(p, &s->request[0], s->warm, PLAUSIBLE, enough));
    for (uint32_t i = 0; i < s->n_requests && earliest > enough; i++)
        earliest = gpi_time_min(earliest,
                                devices_end(p, &s->request[i], s->kinds_of[i], PLAUSIBLE, enough));
    return earliest;
}

/* Without the earliest plausible time, which costs a walk over devices. */
static uint64_t longest_gap(const struct gpi_plan *p, uint32_t head)
{
    const uint64_t until = p->shape[head].promise;

    if (p->set.mode == GPI_MODE_STRICT)
        return 0;
    if (p->set.passing == GPI_PASS_NAIVE)
        return GPI_NEVER;
    if (p->set.passing == GPI_PASS_APART || until == GPI_NEVER)
        return 0;
    return until > p->now ? until - p->now : 0;
}

static uint64_t gap_of(const struct gpi_plan *p, uint32_t head)
{
    const uint64_t longest = longest_gap(p, head);

    if (longest == 0 || p->set.passing != GPI_PASS_LEARNED)
        return longest;
    return gpi_time_min(longest, plausible_of(p, head) - p->now);
}

/* The gap of the last head, until a run begins or ends, a shape has another task, or time goes on.
 * */
static uint64_t find_gap(struct gpi_plan *p, uint32_t head)
{
    if (p->gap_of != head) {
        p->gap_of = head;
        p->gap = gap_of(p, head);
    }
    return p->gap;
}

static bool passes(struct gpi_plan *p, uint32_t shape, uint32_t head)
{
    const uint64_t takes = gpi_shape_takes(p, shape);

    return takes <= longest_gap(p, head) && takes <= find_gap(p, head);
}

uint32_t gpi_reserve_next(struct gpi_plan *p, uint32_t head, uint32_t kind, uint32_t shape,
                          struct gpi_tree_wanted *w)
{
    const bool any = p->shape[head].lacks_host || waits_for_worker(p, head, kind) ||
                     waits_for_room(p, head, kind);

    w->most = any ? GPI_NEVER : longest_gap(p, head);
    shape = w->most ? gpi_tree_next(&p->order, shape, w) : GPI_NONE;
    if (any || shape == GPI_NONE || passes(p, shape, head))
        return shape;
    w->most = find_gap(p, head);
    return w->most ? gpi_tree_next(&p->order, shape, w) : GPI_NONE;
}

static void list_promised(struct gpi_plan *p, uint32_t shape, bool is)
{
    struct gpi_shape *s = &p->shape[shape];
    uint32_t last;

    if (is == (s->promised != 0))
        return;
    if (is) {
        p->promised[p->n_promised++] = shape;
        s->promised = p->n_promised;
        return;
    }
    last = p->promised[--p->n_promised];
    p->promised[s->promised - 1] = last;
    p->shape[last].promised = s->promised;
    s->promised = 0;
}

static void set_promise(struct gpi_plan *p, uint32_t shape, enum gpi_promise how, uint64_t at)
{
    p->shape[shape].promise = at;
    p->gap_of = GPI_NONE;
    list_promised(p, shape, at != GPI_NEVER);
    p->passable |= headed(p, shape);
    if (p->shape[shape].needs_host)
        p->changed |= GPI_BIT_HOST;
    gpi_actions_put(p, GPI_PLAN_PROMISE, p->shape[shape].head, how, at);
}

static void give_promise(struct gpi_plan *p, uint32_t shape)
{
    const uint64_t promise =
        p->shape[shape].promise == GPI_NEVER ? promise_of(p, shape) : GPI_NEVER;

    if (promise != GPI_NEVER)
        set_promise(p, shape, GPI_PROMISE_FIRST, promise);
}

static enum gpi_promise reason_of(uint32_t unsure)
{
    static const enum gpi_promise reasons[] = { GPI_PROMISE_DEVICE, GPI_PROMISE_ORDER,
                                                GPI_PROMISE_CLASS };

    for (uint32_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (unsure >> reasons[i] & 1)
            return reasons[i];
    return GPI_PROMISE_WORKERS;
}

void gpi_reserve_renew(struct gpi_plan *p)
{
    for (uint32_t i = p->n_promised; p->unsure && i-- > 0;) {
        const uint32_t shape = p->promised[i];
        const uint64_t promise = promise_of(p, shape);
        if (promise > p->shape[shape].promise)
            set_promise(p, shape, reason_of(p->unsure), promise);
    }
    for (uint64_t left = p->headless; left; left &= left - 1) {
        const uint32_t head = gpi_shape_head(p, gpi_lowest_bit(left));
        if (head != GPI_NONE)
            give_promise(p, head);
    }
    p->headless = 0;
    p->unsure = 0;
}

static void set_lacking(struct gpi_plan *p, uint32_t shape, bool lacks_host)
{
    if (p->shape[shape].lacks_host == lacks_host)
        return;
    p->n_lacking = p->n_lacking + lacks_host - !lacks_host;
    p->gap_of = GPI_NONE;
    gpi_shape_lacks_host(p, shape, lacks_host);
}

/* The shapes behind it may have been heads, and need other devices now: evict.c clears these. */
static void examine_seconds(struct gpi_plan *p, uint32_t shape, uint64_t bits)
{
    for (uint64_t left = bits & GPI_BITS_KINDS; left; left &= left - 1) {
        const uint32_t second = gpi_shape_next(p, shape, left & -left);
        if (second != GPI_NONE)
            gpi_shape_examine(p, second);
    }
}

void gpi_reserve_blocked(struct gpi_plan *p, uint32_t shape, bool lacks_host)
{
    struct gpi_shape *s = &p->shape[shape];
    const bool fresh = s->fresh;
    uint64_t bits;

    if (s->lacks_host != lacks_host && s->needs_host)
        p->changed |= GPI_BIT_HOST;
    set_lacking(p, shape, lacks_host);
    gpi_shape_examined(p, shape);
    bits = headed(p, shape);
    p->passable |= bits;
    if (!bits)
        return;
    give_promise(p, shape);
    if (fresh && p->n_spare)
        examine_seconds(p, shape, bits);
    if (fresh && gpi_shape_head(p, GPI_KINDS) != GPI_NONE)
        p->changed |= GPI_BIT_HOST; /* a head before it kept slots */
}

/* The shape takes devices that heads may use, too: the earliest plausible time of these is later
 * now, so more shapes may pass them. */
static void let_others_pass(struct gpi_plan *p, uint32_t shape, uint64_t kinds)
{
    for (uint32_t bit = 0; bit < p->n_kinds; bit++) {
        const uint32_t head = gpi_shape_head(p, bit);
        if (head != GPI_NONE && head != shape && p->order.node[head].mask & kinds)
            p->passable |= 1ull << bit;
    }
}

void gpi_reserve_leave(struct gpi_plan *p, uint32_t shape, uint64_t kinds)
{
    if (p->set.passing == GPI_PASS_LEARNED)
        let_others_pass(p, shape, kinds & GPI_BITS_KINDS);
    p->headless |= p->shape[shape].kinds | GPI_BIT_HOST;
    if (p->shape[shape].needs_host)
        p->changed |= GPI_BIT_HOST;
    p->shape[shape].promise = GPI_NEVER;
    gpi_heap_remove(&p->times, shape);
    list_promised(p, shape, false);
    set_lacking(p, shape, false);
    /* One that lacks nothing but CPU slots may lack these devices now. */
    if (p->n_lacking)
        p->changed |= kinds;
}

void gpi_reserve_displaced(struct gpi_plan *p, uint32_t shape)
{
    if (p->shape[shape].promise != GPI_NEVER)
        set_promise(p, shape, GPI_PROMISE_ORDER, GPI_NEVER);
    p->passable |= p->shape[shape].kinds & GPI_BITS_KINDS; /* it may have been the second there */
    gpi_reserve_leave(p, shape, 0);
}
