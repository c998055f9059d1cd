/* SPDX-License-Identifier: MIT */
/*
 * memory.c - devices, the machine, and the parts of them that runs hold.               [R4] [S1]
 *
 * Fit is a fact of one device, never of a sum over several.  Each kind has its devices with a free
 * share in order of their free memory, so the smallest one that fits is found without a walk over
 * the rest.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/plan_parts.h"

#define READING_PARTS 64u /* readings are rounded up to this part of the memory: few kinds */

static int make_kind(struct gpi_plan *p, struct gpi_kind *k)
{
    k->member = malloc(sizeof *k->member * p->set.devices); /* untouched until used */
    return k->member && gpi_tree_init(&k->free, &p->free_devices, false) == 0 &&
                   gpi_soon_init(&k->end, p->set.devices) == 0 &&
                   gpi_soon_init(&k->plausible, p->set.devices) == 0
               ? 0
               : -1;
}

static int make_kinds(struct gpi_plan *p)
{
    int rc = gpi_tree_pool_init(&p->free_devices, p->set.devices, GPI_KINDS);

    p->kind = calloc(GPI_KINDS, sizeof *p->kind);
    for (uint32_t i = 0; p->kind && i < GPI_KINDS; i++)
        rc |= make_kind(p, &p->kind[i]);
    return p->kind ? rc : -1;
}

static void note_host(struct gpi_plan *p)
{
    if (p->cpus_used < p->set.cpus || p->host_memory_used < p->set.host_memory)
        p->free_kinds |= GPI_BIT_HOST;
    else
        p->free_kinds &= ~GPI_BIT_HOST;
}

int gpi_memory_make(struct gpi_plan *p)
{
    p->device = calloc(p->set.devices, sizeof *p->device);
    p->place_words = (p->set.devices + 63) / 64;
    p->place_sets = calloc((size_t)p->place_words * (p->set.place_sets + 1), sizeof(uint64_t));
    note_host(p);
    return make_kinds(p) == 0 && gpi_tree_pool_init(&p->cpu_runs, p->set.runs, 1) == 0 &&
                   gpi_tree_init(&p->cpu_ends, &p->cpu_runs, false) == 0 && p->device &&
                   p->place_sets
               ? 0
               : -1;
}

void gpi_memory_free(struct gpi_plan *p)
{
    for (uint32_t i = 0; p->kind && i < GPI_KINDS; i++) {
        free(p->kind[i].member);
        gpi_tree_fini(&p->kind[i].free);
        gpi_soon_fini(&p->kind[i].end);
        gpi_soon_fini(&p->kind[i].plausible);
    }
    free(p->kind);
    free(p->device);
    gpi_tree_fini(&p->cpu_ends);
    gpi_tree_pool_fini(&p->cpu_runs);
    gpi_tree_pool_fini(&p->free_devices);
    free(p->place_sets);
}

/* ---- kinds ---- */

static bool is_in(const struct gpi_plan_device *d)
{
    return d->may == GPI_PLAN_IN;
}

bool gpi_memory_is_place(const struct gpi_plan *p, uint32_t set, uint32_t device)
{
    return set == GPI_PLACES_ANY ||
           p->place_sets[set * p->place_words + device / 64] >> device % 64 & 1;
}

static uint64_t headroom(const struct gpi_plan *p, uint64_t memory)
{
    const uint64_t part = memory / 10000 * p->set.headroom;
    const uint64_t kept = part > p->set.least_headroom ? part : p->set.least_headroom;

    return kept < memory ? kept : memory;
}

uint64_t gpi_memory_most(const struct gpi_plan *p, uint32_t device)
{
    const struct gpi_plan_device *d = &p->device[device];

    return d->has.memory - headroom(p, d->has.memory);
}

enum gpi_lack gpi_memory_lacks(const struct gpi_plan *p, uint32_t device,
                               const struct gpi_request *r)
{
    const struct gpi_plan_device *d = &p->device[device];

    if (d->has.compute < r->compute)
        return GPI_LACKS_COMPUTE;
    if (!gpi_memory_is_place(p, r->places, device))
        return GPI_LACKS_PLACE;
    return r->memory == GPI_MEMORY_ALL || r->memory <= gpi_memory_most(p, device)
               ? GPI_LACKS_NOTHING
               : GPI_LACKS_MEMORY;
}

bool gpi_memory_could(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r)
{
    return p->device[device].may != GPI_PLAN_GONE &&
           gpi_memory_lacks(p, device, r) == GPI_LACKS_NOTHING;
}

bool gpi_memory_could_hold(const struct gpi_plan *p, const struct gpi_request *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_devices && n < r->devices; i++)
        n += gpi_memory_could(p, i, r);
    return r->devices <= GPI_RUN_DEVICES && n == r->devices && r->cpus <= p->set.cpus &&
           r->host_memory <= p->set.host_memory;
}

static uint64_t holds(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r)
{
    const uint64_t by_share = GPI_SHARE_ALL / r->share;
    const uint64_t by_memory = r->memory == GPI_MEMORY_ALL ? 1
                               : r->memory                 ? gpi_memory_most(p, device) / r->memory
                                                           : by_share;

    return by_memory < by_share ? by_memory : by_share;
}

uint32_t gpi_memory_holds(const struct gpi_plan *p, const struct gpi_request *r)
{
    const uint64_t by_host = r->host_memory ? p->set.host_memory / r->host_memory : UINT32_MAX;
    uint64_t n = 0;

    for (uint32_t i = 0; i < p->n_devices && r->devices; i++)
        n += gpi_memory_could(p, i, r) ? holds(p, i, r) : 0;
    n = r->devices ? n / r->devices : UINT32_MAX;
    n = n < by_host ? n : by_host;
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static uint64_t room(const struct gpi_plan_device *d)
{
    return d->firm < d->usable ? d->usable - d->firm : 0;
}

/* A worker that stays has all of its memory.  An adopted run beside one may have that, too, but
 * ends on its own. */
static bool is_shut(const struct gpi_plan_device *d)
{
    return d->n_shut;
}

bool gpi_memory_is_quiet(const struct gpi_plan *p, const struct gpi_plan_device *d)
{
    return d->foreign <= p->set.foreign_memory &&
           (p->set.foreign_load == 0 || d->load <= p->set.foreign_load);
}

static bool is_clear(const struct gpi_plan *p, const struct gpi_plan_device *d)
{
    return gpi_memory_is_quiet(p, d) && d->n_firm == 0;
}

bool gpi_memory_disturbed(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r,
                          uint64_t *ret_have, uint64_t *ret_most)
{
    const struct gpi_plan_device *d = &p->device[device];
    const bool all = r->memory == GPI_MEMORY_ALL;
    const uint64_t most = all ? p->set.foreign_memory : gpi_memory_most(p, device) - r->memory;
    const bool loaded = all && d->foreign <= most;

    *ret_have = loaded ? d->load : d->foreign;
    *ret_most = loaded ? p->set.foreign_load : most;
    return all ? !gpi_memory_is_quiet(p, d) : d->foreign > most;
}

/* As it is now, but for runs, which end on their own. */
static bool may_hold(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r)
{
    const struct gpi_plan_device *d = &p->device[device];

    return d->has.compute >= r->compute && gpi_memory_is_place(p, r->places, device) &&
           !is_shut(d) && (r->memory == GPI_MEMORY_ALL ? is_clear(p, d) : r->memory <= room(d));
}

bool gpi_memory_may_hold(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r)
{
    return may_hold(p, device, r);
}

static bool is_kind_of(const struct gpi_plan *p, uint32_t kind, uint32_t device)
{
    const struct gpi_plan_device *d = &p->device[device];
    const struct gpi_kind *k = &p->kind[kind];

    return k->usable == room(d) && k->compute == d->has.compute && k->places == d->places &&
           k->residents == d->residents && k->workers == d->workers && k->clear == is_clear(p, d) &&
           k->shut == is_shut(d);
}

static void order_kinds(struct gpi_plan *p)
{
    for (uint32_t i = 0; i < p->n_kinds; i++) {
        uint32_t j = i;
        for (; j > 0 && p->kind[p->by_memory[j - 1]].usable > p->kind[i].usable; j--)
            p->by_memory[j] = p->by_memory[j - 1];
        p->by_memory[j] = (uint8_t)i;
    }
}

/* Returns an unused kind, or the mixed one. */
static uint32_t unused_kind(const struct gpi_plan *p)
{
    uint32_t i = 0;

    while (i < GPI_KIND_MIXED && i < p->n_kinds && p->kind[i].end.n)
        i++;
    return i;
}

static uint32_t new_kind(struct gpi_plan *p, uint32_t device)
{
    const struct gpi_plan_device *d = &p->device[device];
    const uint32_t i = unused_kind(p);
    struct gpi_kind *k = &p->kind[i];

    if (i == p->n_kinds)
        p->n_kinds++;
    if (i < GPI_KIND_MIXED) {
        k->usable = room(d);
        k->compute = d->has.compute;
        k->places = d->places;
        k->residents = d->residents;
        k->workers = d->workers;
        k->clear = is_clear(p, d);
        k->shut = is_shut(d);
    }
    order_kinds(p);
    return i;
}

static bool has_device_for(const struct gpi_plan *p, uint32_t kind, uint32_t class,
                           const struct gpi_request *r)
{
    const uint32_t device = p->kind[kind].member[0];

    return kind == GPI_KIND_MIXED ||
           (may_hold(p, device, r) &&
            !gpi_staff_is_full(p, device, class, r, (struct gpi_runs){ 0 }));
}

uint64_t gpi_memory_kinds(const struct gpi_plan *p, uint32_t class, const struct gpi_request *r)
{
    uint64_t kinds = 0;

    for (uint32_t i = 0; r->devices && i < p->n_kinds; i++)
        if (p->kind[i].n && has_device_for(p, i, class, r))
            kinds |= GPI_BIT_KIND(i);
    return kinds;
}

uint32_t gpi_memory_count(const struct gpi_plan *p, uint64_t kinds)
{
    uint32_t n = 0;

    for (uint64_t left = kinds & GPI_BITS_KINDS; left; left &= left - 1)
        n += p->kind[gpi_lowest_bit(left)].n;
    return n;
}

/* ---- the trees of a device ---- */

static void note_free(struct gpi_plan *p, uint32_t kind)
{
    p->offer = GPI_UNKNOWN;
    if (p->kind[kind].free.n)
        p->free_kinds |= GPI_BIT_KIND(kind);
    else
        p->free_kinds &= ~GPI_BIT_KIND(kind);
}

static void leave(struct gpi_plan *p, uint32_t device)
{
    struct gpi_plan_device *d = &p->device[device];
    struct gpi_kind *k = &p->kind[d->kind];

    p->gap_of = GPI_NONE;
    if (d->is_free)
        gpi_tree_remove(&k->free, device);
    d->is_free = false;
}

static void put(struct gpi_tree *t, uint32_t item, uint64_t key, uint64_t value, uint32_t weight)
{
    struct gpi_tree_node *n = &t->node[item];

    n->key = (struct gpi_tree_key){ key, 0 };
    n->mask = 1;
    n->value = value;
    n->weight = weight;
    gpi_tree_add(t, item);
}

static uint64_t free_memory(const struct gpi_plan_device *d)
{
    return d->reserved < d->usable && !d->alone ? d->usable - d->reserved : 0;
}

/* Its memory becomes free at an unknown time. */
static bool goes(const struct gpi_plan *p, const struct gpi_run *r)
{
    return r->work != GPI_WORK_TASK &&
           (r->work >= GPI_WORK_DRAIN || p->class[r->class].set.residence == GPI_TRANSIENT);
}

static void find_ends(struct gpi_plan *p, struct gpi_plan_device *d)
{
    const struct gpi_run *r;

    d->end_by = d->plausible = 0;
    for (uint32_t i = d->first; i != GPI_NONE; i = r->next[i % GPI_RUN_DEVICES]) {
        r = &p->run[i / GPI_RUN_DEVICES];
        if (goes(p, r))
            d->end_by = GPI_NEVER;
        else if (r->end_by > d->end_by)
            d->end_by = r->end_by;
        if (r->plausible > d->plausible)
            d->plausible = r->plausible;
    }
}

/* A device without a run is free at once, one that is not in is never. */
static void set_ends(struct gpi_plan *p, const struct gpi_plan_device *d)
{
    struct gpi_kind *k = &p->kind[d->kind];

    gpi_soon_set(&k->end, d->seat, is_in(d) ? d->end_by : GPI_NEVER);
    gpi_soon_set(&k->plausible, d->seat, is_in(d) ? d->plausible : GPI_NEVER);
}

static void enter(struct gpi_plan *p, uint32_t device)
{
    struct gpi_plan_device *d = &p->device[device];
    struct gpi_kind *k = &p->kind[d->kind];

    /* Beside a run a worker may boot; in the worker that has all memory a task may run. */
    d->is_free = is_in(d) && (p->has_workers || (d->share < GPI_SHARE_ALL && !d->alone));
    if (d->is_free)
        put(&k->free, device, free_memory(d), gpi_time_min(d->share, GPI_SHARE_ALL), 1);
    note_free(p, d->kind);
    set_ends(p, d);
}

/* ---- devices ---- */

static uint32_t kind_of(struct gpi_plan *p, uint32_t device)
{
    for (uint32_t i = 0; i < p->n_kinds && i < GPI_KIND_MIXED; i++)
        if (p->kind[i].end.n && is_kind_of(p, i, device))
            return i;
    return new_kind(p, device);
}

static void join_kind(struct gpi_plan *p, uint32_t device)
{
    struct gpi_plan_device *d = &p->device[device];
    const uint64_t kept = headroom(p, d->has.memory) + d->foreign;
    struct gpi_kind *k;

    d->usable = kept < d->has.memory ? d->has.memory - kept : 0;
    d->kind = kind_of(p, device);
    k = &p->kind[d->kind];
    d->seat = k->end.n;
    k->member[d->seat] = device;
    k->n += is_in(d);
    gpi_soon_push(&k->end, GPI_NEVER);
    gpi_soon_push(&k->plausible, GPI_NEVER);
    find_ends(p, d);
    enter(p, device);
}

/* The last member takes its seat. */
static void leave_kind(struct gpi_plan *p, uint32_t device)
{
    struct gpi_plan_device *d = &p->device[device];
    struct gpi_kind *k = &p->kind[d->kind];
    const uint32_t last = k->member[k->end.n - 1];

    leave(p, device);
    note_free(p, d->kind);
    k->n -= is_in(d);
    k->member[d->seat] = last;
    p->device[last].seat = d->seat;
    set_ends(p, &p->device[last]);
    gpi_soon_pop(&k->end);
    gpi_soon_pop(&k->plausible);
}

void gpi_memory_add(struct gpi_plan *p, uint32_t device, const struct gpi_plan_has *has)
{
    assert(device == p->n_devices && device < p->set.devices);
    p->device[device] = (struct gpi_plan_device){ .has = *has, .first = GPI_NONE };
    p->n_devices++;
    join_kind(p, device);
}

/* Any two collections of sets have different sums, but for one chance in 2^64. */
static uint64_t mixed(uint64_t set)
{
    set = (set ^ set >> 30) * 0xbf58476d1ce4e5b9ull;
    set = (set ^ set >> 27) * 0x94d049bb133111ebull;
    return set ^ set >> 31;
}

void gpi_memory_add_places(struct gpi_plan *p, uint32_t set, const uint16_t *device, uint32_t n)
{
    assert(set >= 1 && set <= p->set.place_sets);
    for (uint32_t i = 0; i < n; i++) {
        p->place_sets[set * p->place_words + device[i] / 64] |= 1ull << device[i] % 64;
        leave_kind(p, device[i]);
        p->device[device[i]].places ^= mixed(set);
        join_kind(p, device[i]);
    }
}

bool gpi_memory_leave_places(struct gpi_plan *p, uint32_t set, uint32_t device)
{
    if (!gpi_memory_is_place(p, set, device))
        return false;
    p->place_sets[set * p->place_words + device / 64] &= ~(1ull << device % 64);
    leave_kind(p, device);
    p->device[device].places ^= mixed(set);
    join_kind(p, device);
    return true;
}

static uint64_t rounded_up(const struct gpi_plan_device *d, uint64_t bytes)
{
    const uint64_t part = d->has.memory / READING_PARTS + 1, parts = bytes / part;

    return parts * part == bytes ? bytes : (parts + 1) * part;
}

bool gpi_memory_foreign(struct gpi_plan *p, uint32_t device, uint64_t bytes, uint32_t load)
{
    struct gpi_plan_device *d = &p->device[device];
    const uint64_t foreign = rounded_up(d, bytes);

    if (foreign == d->foreign && load == d->load)
        return false;
    leave_kind(p, device);
    d->foreign = foreign;
    d->load = load;
    join_kind(p, device);
    return true;
}

/* A worker that stays and takes more than its word makes that firm, too. */
bool gpi_memory_observed(struct gpi_plan *p, uint32_t run, uint32_t at, uint64_t bytes)
{
    struct gpi_run *r = &p->run[run];
    struct gpi_plan_device *d = &p->device[r->device[at]];
    const uint64_t has = rounded_up(d, bytes);
    const uint64_t beyond =
        r->need.memory != GPI_MEMORY_ALL && has > r->need.memory ? has - r->need.memory : 0;

    if (beyond == r->beyond[at])
        return false;
    leave_kind(p, r->device[at]);
    d->reserved += beyond - r->beyond[at];
    if (gpi_staff_stays(p, r))
        d->firm += beyond - r->beyond[at];
    r->beyond[at] = beyond;
    join_kind(p, r->device[at]);
    return true;
}

void gpi_memory_may(struct gpi_plan *p, uint32_t device, enum gpi_plan_may may)
{
    struct gpi_plan_device *d = &p->device[device];

    leave(p, device);
    p->kind[d->kind].n -= is_in(d);
    p->n_gone = p->n_gone + (may == GPI_PLAN_GONE) - (d->may == GPI_PLAN_GONE);
    d->may = (uint8_t)may;
    p->kind[d->kind].n += is_in(d);
    enter(p, device);
}

/* ---- picks ---- */

static bool fits(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r)
{
    const struct gpi_plan_device *d = &p->device[device];

    if (d->kind == GPI_KIND_MIXED && !may_hold(p, device, r))
        return false;
    return !d->alone && (r->memory == GPI_MEMORY_ALL ? d->runs == 0 : r->memory <= free_memory(d));
}

bool gpi_memory_fits(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r)
{
    return fits(p, device, r);
}

uint64_t gpi_memory_unused(const struct gpi_plan_device *d)
{
    return free_memory(d);
}

static uint32_t pick_of(const struct gpi_plan *p, const struct gpi_request *r, uint32_t kind,
                        uint32_t n, uint16_t *ret_device)
{
    const struct gpi_tree *t = &p->kind[kind].free;
    const bool all = r->memory == GPI_MEMORY_ALL;
    const uint64_t least = !all ? r->memory : kind == GPI_KIND_MIXED ? 0 : p->kind[kind].usable;
    const uint64_t most = GPI_SHARE_ALL - r->share;
    const struct gpi_tree_wanted wanted = { 1, most, UINT32_MAX };
    struct gpi_tree_walk at = gpi_tree_from(t, &(struct gpi_tree_key){ least, 0 });
    uint32_t i;

    while (n < r->devices && (i = gpi_tree_step(t, &at, &wanted)) != GPI_NONE) {
        if (fits(p, i, r))
            ret_device[n++] = (uint16_t)i;
    }
    return n;
}

uint32_t gpi_memory_pick_more(const struct gpi_plan *p, const struct gpi_request *r, uint64_t kinds,
                              uint32_t n, uint16_t *ret_device)
{
    kinds &= p->free_kinds;
    for (uint32_t i = 0; i < p->n_kinds && n < r->devices; i++)
        if (kinds & GPI_BIT_KIND(p->by_memory[i]))
            n = pick_of(p, r, p->by_memory[i], n, ret_device);
    return n;
}

/* Of several devices each must be free of runs. */
static uint32_t find_offer(const struct gpi_plan *p)
{
    uint32_t one = 0, all = 0;

    for (uint64_t left = p->free_kinds & GPI_BITS_KINDS; left; left &= left - 1) {
        const struct gpi_tree *t = &p->kind[gpi_lowest_bit(left)].free;
        const uint32_t most = GPI_SHARE_ALL - (uint32_t)gpi_tree_least(t);
        one = most > one ? most : one;
        all += t->weight;
    }
    return one < GPI_SHARE_ALL ? one : all * GPI_SHARE_ALL;
}

uint32_t gpi_memory_offer(struct gpi_plan *p)
{
    if (p->offer == GPI_UNKNOWN)
        p->offer = find_offer(p);
    return p->offer;
}

/* ---- the parts that a run holds ---- */

static void link_run(struct gpi_plan *p, uint32_t run, uint32_t at)
{
    struct gpi_run *r = &p->run[run];
    struct gpi_plan_device *d = &p->device[r->device[at]];
    const uint32_t link = run * GPI_RUN_DEVICES + at;

    r->next[at] = d->first;
    r->prev[at] = GPI_NONE;
    if (d->first != GPI_NONE)
        p->run[d->first / GPI_RUN_DEVICES].prev[d->first % GPI_RUN_DEVICES] = link;
    d->first = link;
    d->runs++;
}

static void unlink_run(struct gpi_plan *p, uint32_t run, uint32_t at)
{
    struct gpi_run *r = &p->run[run];
    struct gpi_plan_device *d = &p->device[r->device[at]];
    const uint32_t next = r->next[at], prev = r->prev[at];

    if (next != GPI_NONE)
        p->run[next / GPI_RUN_DEVICES].prev[next % GPI_RUN_DEVICES] = prev;
    if (prev != GPI_NONE)
        p->run[prev / GPI_RUN_DEVICES].next[prev % GPI_RUN_DEVICES] = next;
    else
        d->first = next;
    d->runs--;
}

static uint64_t bytes_of(const struct gpi_run *r, uint32_t at)
{
    return r->need.memory == GPI_MEMORY_ALL ? 0 : r->need.memory + r->beyond[at];
}

static void take_device(struct gpi_plan *p, uint32_t run, uint32_t at, uint32_t parts)
{
    struct gpi_run *r = &p->run[run];
    struct gpi_plan_device *d = &p->device[r->device[at]];

    leave(p, r->device[at]);
    if (parts & GPI_SHARE)
        d->share += r->need.share;
    if (parts & GPI_HOLD) {
        d->reserved += bytes_of(r, at);
        d->alone += r->need.memory == GPI_MEMORY_ALL;
        link_run(p, run, at);
    }
    find_ends(p, d);
    enter(p, r->device[at]);
}

void gpi_memory_take(struct gpi_plan *p, uint32_t run, uint32_t parts)
{
    struct gpi_run *r = &p->run[run];

    for (uint32_t i = 0; i < r->n_devices; i++)
        take_device(p, run, i, parts);
    if (parts & GPI_HOLD)
        p->host_memory_used += r->need.host_memory;
    if (parts & GPI_SHARE)
        p->cpus_used += r->need.cpus;
    note_host(p);
    if (parts & GPI_SHARE && r->need.cpus) {
        put(&p->cpu_ends, run, r->end_by, 0, r->need.cpus);
    }
}

static uint64_t release_device(struct gpi_plan *p, uint32_t run, uint32_t at, uint32_t parts)
{
    struct gpi_run *r = &p->run[run];
    struct gpi_plan_device *d = &p->device[r->device[at]];

    leave(p, r->device[at]);
    if (parts & GPI_SHARE)
        d->share -= r->need.share;
    if (parts & GPI_HOLD) {
        d->reserved -= bytes_of(r, at);
        d->alone -= r->need.memory == GPI_MEMORY_ALL;
        unlink_run(p, run, at);
    }
    find_ends(p, d);
    enter(p, r->device[at]);
    return GPI_BIT_KIND(d->kind);
}

uint64_t gpi_memory_release(struct gpi_plan *p, uint32_t run, uint32_t parts)
{
    struct gpi_run *r = &p->run[run];
    uint64_t kinds = r->need.cpus || r->need.host_memory ? GPI_BIT_HOST : 0;

    for (uint32_t i = 0; i < r->n_devices; i++)
        kinds |= release_device(p, run, i, parts);
    if (parts & GPI_HOLD)
        p->host_memory_used -= r->need.host_memory;
    if (parts & GPI_SHARE)
        p->cpus_used -= r->need.cpus;
    note_host(p);
    if (parts & GPI_SHARE && r->need.cpus)
        gpi_tree_remove(&p->cpu_ends, run);
    return kinds;
}

uint32_t gpi_memory_free_cpus(const struct gpi_plan *p)
{
    return p->cpus_used < p->set.cpus ? p->set.cpus - p->cpus_used : 0;
}

uint64_t gpi_memory_free_host(const struct gpi_plan *p)
{
    return p->host_memory_used < p->set.host_memory ? p->set.host_memory - p->host_memory_used : 0;
}

uint64_t gpi_memory_kinds_of(const struct gpi_plan *p, const struct gpi_run *r)
{
    uint64_t kinds = 0;

    for (uint32_t i = 0; i < r->n_devices; i++)
        kinds |= GPI_BIT_KIND(p->device[r->device[i]].kind);
    return kinds;
}

void gpi_memory_ends_by(struct gpi_plan *p, uint32_t run, uint64_t at)
{
    (void)gpi_memory_release(p, run, GPI_SHARE);
    p->run[run].end_by = at;
    gpi_memory_take(p, run, GPI_SHARE);
}

/* ---- workers ---- */

/* Returns the bytes that are firm on its device number `at` because of the worker. */
static uint64_t firm_bytes(const struct gpi_plan *p, const struct gpi_run *r, uint32_t at)
{
    return r->need.memory == GPI_MEMORY_ALL ? p->device[r->device[at]].has.memory : bytes_of(r, at);
}

uint64_t gpi_memory_of(const struct gpi_plan *p, const struct gpi_run *r, uint32_t device)
{
    for (uint32_t i = 0; i < r->n_devices; i++)
        if (r->device[i] == device)
            return firm_bytes(p, r, i);
    return 0;
}

/* Alike workers have the same mark. */
static uint64_t mark_of(const struct gpi_plan *p, const struct gpi_run *r)
{
    const uint64_t class = mixed(0x100000000ull + r->class);
    const struct gpi_request *n = &r->need;
    uint64_t gpu, host;

    if (p->class[r->class].set.residence == GPI_RESIDENT)
        return class;
    gpu = mixed(class ^ n->memory) + ((uint64_t)n->devices << 32 | n->share);
    host = n->host_memory ^ ((uint64_t)n->cpus << 40) ^ ((uint64_t)n->compute << 20) ^ n->places;
    return mixed(mixed(gpu) + mixed(host));
}

void gpi_memory_there(struct gpi_plan *p, uint32_t run, bool there)
{
    struct gpi_run *r = &p->run[run];
    const bool firm = p->class[r->class].set.residence == GPI_RESIDENT;
    const bool shuts = firm && r->need.memory == GPI_MEMORY_ALL;
    const uint64_t mark = mixed(mark_of(p, r) + r->need.share);

    p->n_firm = p->n_firm + (firm && there) - (firm && !there);
    for (uint32_t i = 0; i < r->n_devices; i++) {
        struct gpi_plan_device *d = &p->device[r->device[i]];
        const uint64_t bytes = firm ? firm_bytes(p, r, i) : 0;
        leave_kind(p, r->device[i]);
        d->workers = there ? d->workers + mark : d->workers - mark;
        d->firm = there ? d->firm + bytes : d->firm - bytes;
        d->n_firm = d->n_firm + (firm && there) - (firm && !there);
        d->n_shut = d->n_shut + (shuts && there) - (shuts && !there);
        join_kind(p, r->device[i]);
    }
}

void gpi_memory_warm(struct gpi_plan *p, uint32_t run, bool warm)
{
    struct gpi_run *r = &p->run[run];

    for (uint32_t i = 0; i < r->n_devices; i++) {
        struct gpi_plan_device *d = &p->device[r->device[i]];
        leave_kind(p, r->device[i]);
        d->residents = warm ? d->residents + mark_of(p, r) : d->residents - mark_of(p, r);
        join_kind(p, r->device[i]);
    }
}

bool gpi_memory_could_clear(const struct gpi_plan *p, uint32_t device, const struct gpi_request *r,
                            uint32_t class)
{
    const struct gpi_plan_device *d = &p->device[device];
    uint64_t kept = 0;
    uint32_t n = 0;

    for (uint32_t i = d->first; i != GPI_NONE;
         i = p->run[i / GPI_RUN_DEVICES].next[i % GPI_RUN_DEVICES]) {
        const struct gpi_run *w = &p->run[i / GPI_RUN_DEVICES];
        if (!gpi_staff_stays(p, w) || (w->class != class && gpi_staff_may_go(p, w->class)))
            continue;
        kept += firm_bytes(p, w, i % GPI_RUN_DEVICES);
        n++;
    }
    return d->may == GPI_PLAN_IN && gpi_memory_could(p, device, r) &&
           !gpi_staff_is_full(p, device, class, r, (struct gpi_runs){ 0 }) &&
           (r->memory == GPI_MEMORY_ALL ? n == 0 && gpi_memory_is_quiet(p, d)
                                        : kept <= d->usable && r->memory <= d->usable - kept);
}
