/* SPDX-License-Identifier: MIT */
/* query.c - the state of the core, for its caller.  Nothing here changes it. */
#include "sched/core.h"
#include "sched/place.h"
#include "sched/plan.h"
#include "sched/sched.h"

bool gpi_sched_is_accepted(const struct gpi_sched *c, uint32_t task)
{
    return c->task[task].state != GPI_RECORD_FREE;
}

uint32_t gpi_sched_grant(const struct gpi_sched *c, uint32_t task)
{
    return c->task[task].state == GPI_RECORD_GRANTED ? c->external.task[task].grants : 0;
}

bool gpi_sched_is_started(const struct gpi_sched *c, uint32_t task)
{
    return c->task[task].state == GPI_RECORD_GRANTED &&
           c->external.lease[c->task[task].slot].state == GPI_LEASE_STARTED;
}

bool gpi_sched_is_held(const struct gpi_sched *c, uint32_t task)
{
    return c->task[task].state == GPI_RECORD_HELD;
}

void gpi_sched_mark_places(const struct gpi_sched *c, bool *used)
{
    for (uint32_t i = 0; i < c->n_classes; i++)
        for (uint32_t j = 0; !c->class[i].removed && j < c->class[i].plan.n_needs; j++)
            used[c->class[i].plan.need[j].places] = true;
    gpi_own_mark_places(c, used);
    gpi_plan_mark_places(c->plan, used);
}

uint64_t gpi_sched_memory(const struct gpi_sched *c, uint32_t task)
{
    return gpi_external_has(c, task) ? gpi_plan_memory(c->plan, c->task[task].slot) : 0;
}

uint64_t gpi_sched_slot_memory(const struct gpi_sched *c, uint32_t slot)
{
    const struct gpi_sched_slot *s = &c->slot[slot];

    return s->known ? gpi_plan_memory(c->plan, s->run) : 0;
}

struct gpi_request gpi_sched_request(const struct gpi_sched *c, uint32_t task, uint32_t i)
{
    return c->own.shape[c->own.task[task].shape].request[i];
}

enum gpi_life gpi_sched_life(const struct gpi_sched *c, uint32_t slot)
{
    return (enum gpi_life)c->slot[slot].life;
}

uint32_t gpi_sched_incarnation(const struct gpi_sched *c, uint32_t slot)
{
    return c->slot[slot].incarnation;
}

uint64_t gpi_sched_start_limit(const struct gpi_sched *c, uint32_t slot)
{
    return c->slot[slot].start_limit;
}

uint64_t gpi_sched_deadline(const struct gpi_sched *c, uint32_t slot)
{
    return c->slot[slot].deadline;
}

bool gpi_sched_has_keeper(const struct gpi_sched *c, uint32_t slot)
{
    return c->slot[slot].seat.keeper == GPI_KEEPER_UP;
}

uint64_t gpi_sched_leaves_since(const struct gpi_sched *c, uint32_t slot)
{
    const struct gpi_sched_slot *s = &c->slot[slot];

    if (s->life != GPI_LIFE_UP && s->life != GPI_LIFE_LEAVE)
        return 0;
    return s->evicted ? s->evicted_at : s->life == GPI_LIFE_LEAVE ? s->since : 0;
}

bool gpi_sched_owes(const struct gpi_sched *c, uint32_t slot)
{
    return c->slot[slot].owed;
}

uint32_t gpi_sched_failures(const struct gpi_sched *c, uint32_t slot)
{
    const struct gpi_sched_slot *s = &c->slot[slot];

    return c->plan ? s->class->failures : s->restart->slot_failures;
}

uint32_t gpi_sched_task_deaths(const struct gpi_sched *c, uint32_t slot)
{
    return c->slot[slot].restart->task_deaths;
}

uint32_t gpi_sched_served(const struct gpi_sched *c, uint32_t slot)
{
    return c->slot[slot].served;
}

uint32_t gpi_sched_hopeless(const struct gpi_sched *c)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n_classes; i++)
        n += c->class[i].n_hopeless;
    return n;
}

bool gpi_sched_has_failed(const struct gpi_sched *c, uint32_t class)
{
    return gpi_none_can_run(&c->class[class]);
}

bool gpi_sched_is_paused(const struct gpi_sched *c, uint32_t class)
{
    return c->class[class].paused;
}

bool gpi_sched_is_place(const struct gpi_sched *c, uint32_t set, uint32_t device)
{
    return gpi_plan_is_place(c->plan, set, device);
}

bool gpi_sched_has_room(const struct gpi_sched *c, const struct gpi_sched_task *what)
{
    return what ? what->n_requests == 0 || gpi_own_has_room(c, what)
                : c->own.free_shape != GPI_NOWHERE;
}

bool gpi_sched_is_unused(const struct gpi_sched *c, uint32_t class)
{
    return gpi_pool_is_unused(c, &c->class[class]);
}

uint32_t gpi_sched_holds(const struct gpi_sched *c, const struct gpi_request *request, uint32_t n)
{
    uint64_t workers = 0;

    for (uint32_t i = 0; i < n; i++)
        if (gpi_plan_could(c->plan, &request[i]))
            workers += gpi_plan_holds(c->plan, &request[i]);
    return workers < UINT32_MAX ? (uint32_t)workers : UINT32_MAX;
}

void gpi_sched_times(const struct gpi_sched *c, uint32_t class, struct gpi_plan_times *ret)
{
    gpi_plan_times(c->plan, class, ret);
}

void gpi_sched_usual(const struct gpi_sched *c, uint32_t class, struct gpi_plan_usual *ret)
{
    gpi_plan_usual(c->plan, class, ret);
}

/* Each band has its tasks in the order of their numbers. */
uint32_t gpi_sched_oldest(const struct gpi_sched *c, uint32_t class)
{
    const struct gpi_queue *q = &c->class[class].queue;
    uint32_t oldest = GPI_NOWHERE;

    for (uint32_t i = 0; i < q->n_bands; i++) {
        const uint32_t first = q->band[i].head;
        if (oldest == GPI_NOWHERE || c->task[first].number < c->task[oldest].number)
            oldest = first;
    }
    return oldest;
}

uint32_t gpi_sched_queued_of(const struct gpi_sched *c, uint32_t class)
{
    const struct gpi_sched_class *k = &c->class[class];

    return k->queue.count + k->n_own + k->deferred;
}

bool gpi_sched_pauses(const struct gpi_sched *c, uint32_t device)
{
    return c->device[device].paused;
}

bool gpi_sched_drains(const struct gpi_sched *c, uint32_t device)
{
    return c->device[device].draining;
}

bool gpi_sched_is_removed(const struct gpi_sched *c, uint32_t device)
{
    return c->device[device].removing;
}

uint32_t gpi_sched_queued(const struct gpi_sched *c)
{
    const struct gpi_sched_class *k = c->class;
    uint32_t n = k->queue.count + k->n_own;

    for (uint32_t i = 1; i < c->n_classes; i++)
        n += k[i].queue.count + k[i].n_own;
    return n;
}

uint32_t gpi_sched_deferred(const struct gpi_sched *c)
{
    return c->retries.count;
}

bool gpi_sched_is_deferred(const struct gpi_sched *c, uint32_t task)
{
    return c->task[task].state == GPI_RECORD_LATER;
}

uint32_t gpi_sched_unended(const struct gpi_sched *c)
{
    return c->unended;
}

uint64_t gpi_sched_stuck_at(const struct gpi_sched *c, uint32_t slot)
{
    const struct gpi_sched_slot *s = &c->slot[slot];

    return gpi_place_stuck_at(gpi_time_add(s->heard, s->class->set.batch_wait),
                              s->class->mean_run);
}

uint32_t gpi_sched_attempts(const struct gpi_sched *c, uint32_t task)
{
    return c->task[task].attempts;
}

uint64_t gpi_sched_dropped(const struct gpi_sched *c)
{
    return c->late + c->impossible;
}

bool gpi_sched_finished(const struct gpi_sched *c)
{
    uint32_t n = 0;

    while (c->winding && n < c->n_slots && gpi_life_is_settled(c, &c->slot[n]))
        n++;
    return c->winding && n == c->n_slots;
}
