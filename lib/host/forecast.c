/* SPDX-License-Identifier: MIT */
/* forecast.c - when a slot is expected to take its next task.  stats.h has the rules. */
#include "base/clock.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/slot.h"
#include "host/task.h"
#include "sched/plan.h"

void gpi_forecast_begin(const gpud_dispatcher *d, struct gpi_forecast *f)
{
    f->now = gpi_now();
    f->run = d->set.pooled ? 0 : gpi_hist_quantile(&d->stats.run, 0.5);
}

static struct gpi_plan_usual usual_times(const gpud_dispatcher *d, const struct gpi_slot *s,
                                         const struct gpi_forecast *f)
{
    struct gpi_plan_usual usual = { .boot = gpi_slot_class(d, s)->last_boot, .run = f->run };

    if (d->set.pooled)
        gpi_sched_usual(d->core, s->class, &usual);
    return usual;
}

static uint64_t in_future(const struct gpi_forecast *f, uint64_t at)
{
    return at > f->now && at != GPI_NEVER ? at : 0;
}

/* `usual`: 0 = unknown. */
static uint64_t expect(const struct gpi_forecast *f, uint64_t from, uint64_t usual, uint64_t limit)
{
    const uint64_t at = usual ? in_future(f, gpi_time_add(from, usual)) : 0;

    return at ? at : in_future(f, limit);
}

static uint64_t task_ends(const gpud_dispatcher *d, const struct gpi_slot *s,
                          const struct gpi_forecast *f, uint64_t usual)
{
    const uint32_t cell = gpi_slot_first(d, s);
    const struct gpi_task *t;
    uint64_t started;

    if (cell == GPI_NONE)
        return 0;
    t = &d->task[s->cell_task[cell]];
    started = atomic_load(&s->ch.page->cell[cell].started_at);
    if (started < t->sent_at || started > f->now) /* not written yet, or impossible */
        started = t->sent_at;
    return expect(f, started, usual, gpi_time_add(started, t->limit));
}

static uint64_t boots(const gpud_dispatcher *d, const struct gpi_slot *s,
                      const struct gpi_forecast *f, uint64_t usual)
{
    const bool started = gpi_slot_has_worker(d, s);
    const uint64_t limit = started ? gpi_sched_deadline(d->core, s->index) : GPI_NEVER;

    if (d->set.pooled) /* the plan measures from its decision, too */
        return expect(f, s->since, usual, limit);
    return started ? expect(f, s->started_at, usual, limit) : 0;
}

/* A class or device that is paused starts no task. */
static bool is_held(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    for (uint32_t i = 0; i < s->n_devices; i++)
        if (gpi_sched_pauses(d->core, s->devices[i]))
            return true;
    return gpi_slot_drains(d, s) || (s->state == GPUD_SLOT_READY && d->set.pooled &&
                                     gpi_sched_is_paused(d->core, s->class));
}

/* The worker is being killed, or is dead, and the user sees the state before. */
static bool is_dying(enum gpi_life life)
{
    return life >= GPI_LIFE_DOOMED && life <= GPI_LIFE_LOST;
}

/* It ends the tasks that it has, and in a pool another worker may follow. */
static uint64_t leaves(const gpud_dispatcher *d, const struct gpi_slot *s,
                       const struct gpi_forecast *f, const struct gpi_plan_usual *usual)
{
    const uint64_t at = d->set.pooled ? task_ends(d, s, f, usual->run) : 0;

    return at ? gpi_time_add(at, usual->unload) : 0;
}

uint64_t gpi_slot_ready_at(const gpud_dispatcher *d, const struct gpi_slot *s,
                           const struct gpi_forecast *f)
{
    const enum gpi_life life = gpi_slot_life(d, s);
    const uint64_t deadline = gpi_sched_deadline(d->core, s->index);
    struct gpi_plan_usual usual;
    uint64_t at;

    if (is_dying(life) || gpi_slot_settled(s) || is_held(d, s))
        return 0;
    usual = usual_times(d, s, f);
    switch (gpi_slot_shown(d, s)) {
    case GPUD_SLOT_STARTING:
        return boots(d, s, f, usual.boot);
    case GPUD_SLOT_READY:
        return s->since;
    case GPUD_SLOT_BUSY:
        return task_ends(d, s, f, usual.run);
    case GPUD_SLOT_DRAINING:
        return leaves(d, s, f, &usual);
    case GPUD_SLOT_UNLOADING:
        return expect(f, s->since, usual.unload, deadline);
    case GPUD_SLOT_COOLING:
        return in_future(f, deadline);
    case GPUD_SLOT_BACKOFF:
        at = life == GPI_LIFE_BACKOFF ? in_future(f, deadline) : 0;
        return at ? gpi_time_add(at, usual.boot) : 0;
    default:
        return 0;
    }
}
