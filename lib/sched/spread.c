/* SPDX-License-Identifier: MIT */
/*
 * spread.c - which worker gets the next task, and how many tasks a worker may have.        [C5]
 *
 * Each worker has n tasks before any has n + 1.  A worker that may get a task is on a shelf: a set
 * of slots with equally many tasks.  The first slot on the lowest shelf is next, and no task costs
 * a walk over all slots.
 *
 * A rank has a shelf for each number of tasks.  Of workers with equally many tasks, one that is due
 * for replacement is last.  A stuck worker gets a task only if every worker is stuck.
 */
#include <stdlib.h>

#include "sched/place.h"
#include "sched/spread.h"

int gpi_spread_make(const struct gpi_sched *c, struct gpi_sched_class *k)
{
    assert(c->set.slots <= GPI_SLOTS_MOST);
    k->words = (c->n_slots + 63) / 64;
    k->shelf = calloc((size_t)GPI_SHELVES * ((c->set.slots + 63) / 64), sizeof *k->shelf);
    return k->shelf ? 0 : -1;
}

void gpi_spread_free(struct gpi_sched_class *k)
{
    free(k->shelf);
}

/* ---- how many tasks a worker may have ---- */

/* The next batch is there when one ends, unless no task is to wait. */
static uint32_t least_depth(const struct gpi_class_settings *set, uint32_t ahead)
{
    return set->batch > 1 && !set->ahead && ahead > 1 ? 2 * set->batch : set->batch;
}

static void set_depth(const struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const struct gpi_class_settings *set = &s->class->set;
    const uint32_t least = least_depth(set, s->ahead);
    uint32_t n = set->ahead ? set->ahead : s->ahead;

    if (n < least)
        n = least;
    if (s->granted == GPI_GRANTED_ONE)
        n = 1;
    if (c->wary)
        n = 1; /* a worker that overwrites its page can destroy the ends of other tasks there */
    s->depth = (uint8_t)(n < s->room ? n : s->room);
}

void gpi_spread_add(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    for (uint32_t i = 0; i < c->n_classes; i++)
        c->class[i].words = gpi_slot_number(c, s) / 64 + 1;
    s->shelf = GPI_SHELF_NONE;
    s->room = GPI_SLOT_CELLS;
    s->ahead = (uint8_t)gpi_place_depth(0, c->plan);
    set_depth(c, s);
}

/* The grant of a worker that is stopped, or has no room, binds no task to it. */
static void count_unused(struct gpi_sched_slot *s)
{
    const bool counts = s->fresh && s->takes && s->depth;

    s->class->unused = s->class->unused + counts - s->counts;
    s->counts = counts;
}

/* The slot begins anew, for a worker of this class. */
void gpi_spread_seat(struct gpi_sched *c, struct gpi_sched_slot *s, struct gpi_sched_class *k)
{
    gpi_spread_move(c, s->class); /* it leaves the list of moved slots */
    s->class = k;
    s->mean_run = 0;
    s->ahead = (uint8_t)gpi_place_depth(0, c->plan);
    set_depth(c, s);
}

void gpi_spread_room(struct gpi_sched *c, struct gpi_sched_slot *s, uint32_t room)
{
    s->room = (uint8_t)(room < GPI_SLOT_CELLS ? room : GPI_SLOT_CELLS);
    set_depth(c, s);
    count_unused(s);
    gpi_spread_put(c, s);
    c->undecided |= (s->takes && s->class->queue.count) || s->chosen;
}

/* The depth by the time that the tasks take.  Costs no division as long as it stays. */
static void adapt(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    if (s->class->set.ahead || s->mean_run == 0 || gpi_place_fits(s->ahead, s->mean_run, c->plan))
        return;
    s->ahead = (uint8_t)gpi_place_depth(s->mean_run, c->plan);
    set_depth(c, s);
}

/* A long task, with tasks sent and taken back behind it, can hold the numbers apart. */
static bool has_number(struct gpi_sched_slot *s)
{
    if (s->sent == 0 || gpi_spread_has_number(s))
        return true;
    while (!gpi_slot_has_number(s, s->oldest))
        s->oldest++;
    return gpi_spread_has_number(s);
}

/* ---- shelves ---- */

static uint32_t shelf_of(const struct gpi_sched_slot *s)
{
    const uint32_t most = s->class->set.max_tasks;
    const bool due = most && s->served >= most;

    return ((due ? GPI_RANK_DUE : 0) + (s->stuck ? GPI_RANK_STUCK : 0)) * GPI_LEVELS + s->sent;
}

void gpi_spread_put(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    struct gpi_sched_class *k = s->class;
    const bool gets =
        s->takes && s->sent < s->depth && gpi_spread_has_life(k, s) && has_number(s);
    const uint32_t shelf = gets ? shelf_of(s) : GPI_SHELF_NONE, i = gpi_slot_number(c, s);

    if (shelf == s->shelf)
        return;
    if (s->shelf != GPI_SHELF_NONE)
        gpi_spread_take_off(k, gpi_spread_word(k, i, s->shelf), i, s->shelf);
    if (gets)
        gpi_spread_put_on(k, gpi_spread_word(k, i, shelf), i, shelf);
    s->shelf = (uint16_t)shelf;
}

void gpi_spread_move(struct gpi_sched *c, struct gpi_sched_class *k)
{
    uint32_t i;

    while ((i = k->moved) != 0) {
        struct gpi_sched_slot *s = &c->slot[i - 1];
        k->moved = s->next_moved == i ? 0 : s->next_moved;
        s->next_moved = 0;
        adapt(c, s);
        gpi_spread_put(c, s);
    }
}

static bool may_take(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    return s->life == GPI_LIFE_UP && !s->still && !s->class->paused && !gpi_devices_pause(c, s);
}

bool gpi_spread_takes_chosen(const struct gpi_sched *c, const struct gpi_sched_slot *s)
{
    return may_take(c, s) && s->sent < s->depth && gpi_spread_has_life(s->class, s);
}

void gpi_spread_refresh(struct gpi_sched *c, struct gpi_sched_slot *s)
{
    const bool granted = s->granted == GPI_GRANTED_ONE || s->granted == GPI_GRANTED_MANY;
    const bool takes = may_take(c, s) && ((granted && !s->chosen) || !c->plan);
    struct gpi_sched_class *k = s->class;

    k->n_takes = k->n_takes + takes - s->takes;
    k->n_stuck = k->n_stuck + (takes && s->stuck) - (s->takes && s->stuck);
    if (takes && !s->takes)
        k->stuck_at = k->recall_at = 0;
    s->takes = takes;
    set_depth(c, s);
    count_unused(s);
    gpi_spread_put(c, s);
    c->undecided |= (takes && k->queue.count) || s->chosen;
}

void gpi_spread_refresh_all(struct gpi_sched *c)
{
    for (uint32_t i = 0; i < c->n_slots; i++)
        gpi_spread_refresh(c, &c->slot[i]);
}

void gpi_spread_refresh_class(struct gpi_sched *c, const struct gpi_sched_class *k)
{
    for (uint32_t i = 0; i < c->n_slots; i++)
        if (c->slot[i].class == k)
            gpi_spread_refresh(c, &c->slot[i]);
}

uint32_t gpi_spread_idle(struct gpi_sched *c, struct gpi_sched_class *k)
{
    uint32_t n = 0;

    gpi_spread_move(c, k);
    for (uint32_t i = 0; i < c->n_slots; i += 64)
        for (uint32_t rank = 0; rank <= GPI_RANK_DUE; rank++)
            for (uint64_t left = *gpi_spread_word(k, i, rank * GPI_LEVELS); left; left &= left - 1)
                n++;
    return n;
}

/* ---- stuck in a long task ---- */

void gpi_spread_stuck(struct gpi_sched *c, struct gpi_sched_slot *s, bool stuck)
{
    s->class->n_stuck = s->class->n_stuck + (s->takes && stuck) - (s->takes && s->stuck);
    s->stuck = stuck;
    gpi_spread_put(c, s);
}
