/* SPDX-License-Identifier: MIT */
/*
 * removals.c - classes that are removed.  Intake of the class ends at once.  Then its tasks end as
 * those of a dispatcher that is closed, and its workers leave.  Last, its number is free.
 */
#include "base/clock.h"
#include "base/failure.h"
#include "gpudispatch/sched.h"
#include "host/act.h"
#include "host/class.h"
#include "host/core.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/external.h"
#include "host/slot.h"
#include "host/task.h"

static bool has_tasks(gpud_dispatcher *d, uint32_t class)
{
    bool has = gpi_sched_queued_of(d->core, class) > 0;

    for (uint32_t i = 0; i < d->n_slots && !has; i++)
        has = d->slot[i].class == class && d->slot[i].sent;
    return has || gpi_grants_of(d, class) > 0;
}

/* A worker that survives SIGKILL never leaves its seat. */
static bool has_seats(gpud_dispatcher *d, uint32_t class)
{
    bool has = false;

    for (uint32_t i = 0; i < d->n_slots && !has; i++) {
        const enum gpi_life life = gpi_slot_life(d, &d->slot[i]);
        has = d->slot[i].class == class && life != GPI_LIFE_OFF && life != GPI_LIFE_STOPPED &&
              life != GPI_LIFE_STUCK;
    }
    return has;
}

/* The tasks that have not begun end, and its workers leave. */
static void end_class(gpud_dispatcher *d, uint32_t class)
{
    struct gpi_class *c = &d->class[class];

    c->ended = true;
    gpi_core_class_set(d, d->now, class, GPI_CLASS_END);
    d->act(d);
}

static void cancel_running(gpud_dispatcher *d, uint32_t class)
{
    for (uint32_t i = 0; i < d->never_used; i++)
        if (d->task[i].class == class &&
            (d->task[i].state == GPI_TASK_SENT || gpi_sched_grant(d->core, i)))
            gpi_hear_task(d, &d->task[i], GPI_EV_CANCEL, GPI_CANCEL_HARD);
}

/* Keepers have the files of the class as those of number `class`. */
static void forget(gpud_dispatcher *d, uint32_t class)
{
    struct gpi_class *c = &d->class[class];

    for (uint32_t i = 0; i < d->n_slots; i++)
        if (d->slot[i].ch.class == class)
            d->slot[i].ch.class = GPI_NONE;
    c->unused = gpi_sched_is_unused(d->core, class);
    if (c->unused)
        gpi_core_class_set(d, d->now, class, GPI_CLASS_REMOVE);
    gpi_class_tell(d, class, GPUD_CHANGE_REMOVED, "");
    gpi_class_free_setup(d, c);
    gpi_class_fini(c);
    c->removed = true;
    d->n_removing--;
    gpi_drive_wake(d);
}

void gpi_removals_step(gpud_dispatcher *d)
{
    for (uint32_t i = 0; i < d->n_classes && d->n_removing; i++) {
        struct gpi_class *c = &d->class[i];
        if (!c->removing || c->removed || has_tasks(d, i))
            continue;
        if (!c->ended) {
            end_class(d, i);
            gpi_decide(d);
        }
        if (!has_seats(d, i))
            forget(d, i);
    }
}

/* Intake ends.  A class that is paused goes on, since its tasks are to end. */
static void begin(gpud_dispatcher *d, uint32_t class)
{
    struct gpi_class *c = &d->class[class];

    c->removing = true;
    d->n_removing++;
    c->plan.min_workers = c->loads = 0;
    if (!gpi_sched_is_paused(d->core, class))
        return;
    gpi_core_class_set(d, d->now, class, GPI_CLASS_RESUME);
    gpi_class_tell(d, class, GPUD_CHANGE_RESUMED, "");
}

static void remove_class(gpud_dispatcher *d, uint32_t class, uint32_t how)
{
    struct gpi_class *c = &d->class[class];

    if (!c->removing)
        begin(d, class);
    if (how >= GPUD_FINISH_RUNNING && !c->ended)
        end_class(d, class);
    if (how == GPUD_FINISH_NOW)
        cancel_running(d, class);
    d->act(d);
    gpi_decide(d);
    gpi_removals_step(d);
    gpi_ready_changed(d);
    gpi_drive_wake(d);
}

int gpi_class_remove(gpud_dispatcher *d, const char *name, uint32_t how, struct gpud_error *e)
{
    int i;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    i = gpi_class_find(d, name);
    if (i >= 0)
        remove_class(d, (uint32_t)i, how);
    pthread_mutex_unlock(&d->lock);
    return i >= 0 ? 0 : gpi_class_unknown(name, e);
}
