/* SPDX-License-Identifier: MIT */
/*
 * rows.c - the use of a device in its row: that of the slot that counts for it.  A device of a
 * pooled dispatcher may have no slot.
 */
#include <stdio.h>
#include <string.h>

#include "host/device.h"
#include "host/dispatcher.h"
#include "host/external.h"
#include "host/slot.h"

/* By the state of the slot in its row.  The slot with the smaller rank counts. */
static const struct {
    uint8_t rank, state;
} use_of[GPUD_SLOT_COUNT] = {
    [GPUD_SLOT_BUSY] = { 0, GPUD_DEVICE_STATE_BUSY },
    [GPUD_SLOT_DRAINING] = { 1, GPUD_DEVICE_STATE_DRAINING },
    [GPUD_SLOT_READY] = { 2, GPUD_DEVICE_STATE_READY },
    [GPUD_SLOT_STARTING] = { 3, GPUD_DEVICE_STATE_STARTING },
    [GPUD_SLOT_UNLOADING] = { 4, GPUD_DEVICE_STATE_UNLOADING },
    [GPUD_SLOT_COOLING] = { 5, GPUD_DEVICE_STATE_COOLING },
    [GPUD_SLOT_BACKOFF] = { 6, GPUD_DEVICE_STATE_BACKOFF },
    [GPUD_SLOT_QUARANTINED] = { 7, GPUD_DEVICE_STATE_QUARANTINED },
    [GPUD_SLOT_FAILED] = { 8, GPUD_DEVICE_STATE_FAILED },
    [GPUD_SLOT_STOPPED] = { 9, GPUD_DEVICE_STATE_STOPPED },
};

static void count(gpud_dispatcher *d, const struct gpi_slot *s, struct gpi_known_device *k)
{
    const uint32_t best = k->use.slot;

    k->use.workers += gpi_slot_has_worker(d, s);
    k->use.done += gpi_slot_done(s) - s->done_before;
    if (s->gone)
        return;
    if (best == GPI_NONE || use_of[gpi_slot_shown(d, s)].rank <
                                use_of[gpi_slot_shown(d, &d->slot[best])].rank)
        k->use.slot = s->index;
}

/* The host runs the task; or the task has its outcome, and its end is not reported yet. */
static bool has_begun(const gpud_dispatcher *d, uint32_t task)
{
    return gpi_sched_is_started(d->core, task) || gpi_sched_is_held(d->core, task);
}

static void count_outside(gpud_dispatcher *d, uint32_t task)
{
    const struct gpi_grant *g = &d->outside.of[task];

    for (uint32_t i = 0; i < g->n_devices; i++) {
        uint32_t *const best = &d->dev.row[g->device[i]].use.outside;
        if (*best == GPI_NONE || (has_begun(d, task) && !has_begun(d, *best)))
            *best = task;
    }
}

/* One pass over slots and external work, however many devices there are.  Few seats of a pooled
 * dispatcher have devices, and mostly the first ones: the pass ends behind the last of them. */
void gpi_rows_begin(gpud_dispatcher *d)
{
    uint32_t seated = 0;

    for (uint32_t i = 0; i < d->dev.n; i++) {
        struct gpi_known_device *k = &d->dev.row[i];
        seated += k->slots;
        k->use = (struct gpi_device_use){ .slot = GPI_NONE, .outside = GPI_NONE, .done = k->done };
    }
    for (uint32_t i = 0; i < d->n_slots && (seated > 0 || !d->set.pooled); i++) {
        const struct gpi_slot *s = &d->slot[i];
        for (uint32_t n = 0; n < s->n_devices; n++)
            count(d, s, &d->dev.row[s->devices[n]]);
        seated -= s->gone ? 0 : s->n_devices; /* one that is gone counts for no device */
    }
    for (uint32_t i = 0; i < d->outside.n; i++)
        count_outside(d, d->outside.task[i]);
}

/* A close that lets queued tasks run may start workers, until there are none. */
static bool is_closing(const gpud_dispatcher *d)
{
    return d->close.closing &&
           (d->close.how != GPUD_FINISH_ALL || gpi_sched_unended(d->core) == 0);
}

static uint32_t state_without_slot(const gpud_dispatcher *d, uint32_t device)
{
    const struct gpi_known_device *k = &d->dev.row[device];

    if (k->may == GPI_MAY_DEAD)
        return GPUD_DEVICE_STATE_QUARANTINED;
    if (k->may == GPI_MAY_OUT)
        return GPUD_DEVICE_STATE_BACKOFF;
    if (gpi_sched_drains(d->core, device) || gpi_sched_is_removed(d->core, device) ||
        is_closing(d))
        return GPUD_DEVICE_STATE_STOPPED;
    return GPUD_DEVICE_STATE_IDLE;
}

static void report_without_slot(const gpud_dispatcher *d, uint32_t device,
                                struct gpud_device_info *r)
{
    r->slot = GPUD_UNKNOWN32;
    r->state = state_without_slot(d, device);
    r->state_since = d->dev.row[device].unused_since;
    if (r->state == GPUD_DEVICE_STATE_IDLE && !gpi_sched_pauses(d->core, device))
        r->ready_at = r->state_since;
}

/* Its limit is all that is known of its end. */
static void report_outside(const gpud_dispatcher *d, uint32_t device, uint32_t task,
                           struct gpud_device_info *r)
{
    const struct gpi_grant *g = &d->outside.of[task];
    const struct gpi_task *t = &d->task[task];
    const bool begun = has_begun(d, task), held = gpi_sched_is_held(d->core, task);
    const uint64_t end = gpi_time_add(g->since, t->limit);

    r->slot = GPUD_UNKNOWN32;
    r->state = gpi_sched_drains(d->core, device) ? GPUD_DEVICE_STATE_DRAINING
               : begun                           ? GPUD_DEVICE_STATE_BUSY
                                                 : GPUD_DEVICE_STATE_STARTING;
    r->state_since = g->since;
    r->pid = g->pid;
    (void)snprintf(r->class_name, sizeof r->class_name, "%s", gpi_task_class(d, t)->name);
    if (held)
        return; /* it has its outcome */
    r->task_id = t->id;
    r->task_started = begun ? g->since : 0;
    if (begun && end != GPI_NEVER && r->state == GPUD_DEVICE_STATE_BUSY &&
        !gpi_sched_pauses(d->core, device))
        r->ready_at = end;
}

void gpi_report_use(gpud_dispatcher *d, uint32_t device, const struct gpi_forecast *f,
                    struct gpud_device_info *r)
{
    const struct gpi_device_use *use = &d->dev.row[device].use;
    struct gpud_slot_stats s;

    r->tasks_done = use->done;
    r->workers = use->workers;
    if (use->outside != GPI_NONE &&
        (use->slot == GPI_NONE || gpi_slot_shown(d, &d->slot[use->slot]) != GPUD_SLOT_BUSY)) {
        report_outside(d, device, use->outside, r);
        return;
    }
    if (use->slot == GPI_NONE) {
        report_without_slot(d, device, r);
        return;
    }
    gpi_report_slot(d, &d->slot[use->slot], f, &s);
    r->state = use_of[s.state].state;
    r->state_since = s.since;
    r->ready_at = s.ready_at;
    r->task_id = s.task_id;
    r->task_started = s.task_started;
    r->progress = s.progress;
    r->pid = (uint32_t)s.pid;
    r->slot = s.slot;
    memcpy(r->class_name, s.class_name, sizeof r->class_name);
}
