/* SPDX-License-Identifier: MIT */
/*
 * stats.c - the snapshot behind stats.h.  Copies under the lock; wakes no process.            [C20]
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"

static void count_slots(gpud_dispatcher *d, struct gpud_stats *s)
{
    s->slots = d->n_slots - d->n_gone;
    s->slots_failed = 0;
    s->sent = s->slots_ready = 0;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        s->sent += d->slot[i].sent;
        s->slots_ready += gpi_slot_serves(d, &d->slot[i]);
        s->slots_failed += !d->slot[i].gone && gpi_slot_hopeless(&d->slot[i]);
    }
    for (uint32_t i = 0; i < d->outside.n; i++)
        s->sent += gpi_sched_grant(d->core, d->outside.task[i]) > 0;
}

static void count_devices(const gpud_dispatcher *d, struct gpud_stats *s)
{
    s->devices = s->devices_healthy = s->devices_out = 0;
    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_known_device *k = &d->dev.row[i];
        s->devices += k->here;
        s->devices_healthy += k->here && k->health.state == GPUD_HEALTH_HEALTHY;
        s->devices_out += k->here && !gpi_health_starts(&k->health);
    }
}

/* Returns the seconds that the remaining work takes at the mean time per cost so far, less the time
 * that running tasks have spent, divided by the number of workers. */
static double work_left(gpud_dispatcher *d, const struct gpud_stats *s)
{
    double worked = (double)d->outside.work_time, running = 0, per_cost, left;

    for (uint32_t i = 0; i < d->n_slots; i++) {
        const struct gpi_slot *sl = &d->slot[i];
        uint32_t cell = sl->sent ? gpi_slot_first(d, sl) : GPI_NONE;
        worked += (double)sl->work_time;
        if (cell != GPI_NONE) {
            uint64_t started = atomic_load(&sl->ch.page->cell[cell].started_at);
            running += started < s->taken_at ? (double)(s->taken_at - started) : 0;
        }
    }
    per_cost = worked / (double)d->stats.cost_done;
    left = (double)d->stats.cost_left * per_cost - running;
    return left > 0 ? left / 1e9 / (double)(s->slots_ready ? s->slots_ready : 1) : 0;
}

/* Returns NEVER if the nanoseconds exceed 64 bits. */
static uint64_t nanoseconds(double seconds)
{
    return seconds * 1e9 < 1.8e19 ? (uint64_t)(seconds * 1e9) : GPUD_NEVER;
}

/* Two estimates: remaining cost over the rate since the first task started (setup is not slowness),
 * and the remaining work.  They differ while long tasks run and at the very end: hence a range. */
static void estimate(gpud_dispatcher *d, struct gpud_stats *s)
{
    double seconds = d->stats.first_start && s->taken_at > d->stats.first_start
                         ? (double)(s->taken_at - d->stats.first_start) / 1e9
                         : 0;
    double by_rate, by_work;

    s->first_start = d->stats.first_start;
    s->throughput = 0;
    s->eta_low = s->eta_high = d->stats.cost_left ? GPUD_NEVER : 0;
    if (seconds <= 0 || d->stats.cost_done == 0)
        return;
    s->throughput = (double)d->stats.ran / seconds;
    by_rate = (double)d->stats.cost_left * seconds / (double)d->stats.cost_done;
    by_work = work_left(d, s);
    s->eta_low = nanoseconds(by_rate < by_work ? by_rate : by_work);
    s->eta_high = nanoseconds(by_rate < by_work ? by_work : by_rate);
}

void gpi_report_stats(gpud_dispatcher *d, struct gpud_stats *s)
{
    pthread_mutex_lock(&d->lock);
    *s = d->stats.count;
    s->taken_at = gpi_now();
    s->slot_count = d->n_slots;
    s->deferred = gpi_sched_deferred(d->core);
    s->queued = gpi_sched_queued(d->core) + s->deferred;
    s->undelivered = gpi_events_waiting(d);
    s->kept = gpi_keep_count(d);
    s->payload_used = gpi_chunks_used(&d->arena.input_chunks) - d->arena.base;
    count_slots(d, s);
    count_devices(d, s);
    s->queue_wait_p50 = gpi_hist_quantile(&d->stats.queue_wait, 0.5);
    s->queue_wait_p99 = gpi_hist_quantile(&d->stats.queue_wait, 0.99);
    s->run_p50 = gpi_hist_quantile(&d->stats.run, 0.5);
    s->run_p99 = gpi_hist_quantile(&d->stats.run, 0.99);
    s->overhead_p50 = gpi_hist_quantile(&d->stats.overhead, 0.5);
    s->overhead_p99 = gpi_hist_quantile(&d->stats.overhead, 0.99);
    estimate(d, s);
    pthread_mutex_unlock(&d->lock);
}

static void report_running(gpud_dispatcher *d, const struct gpi_slot *s, struct gpud_slot_stats *r)
{
    uint32_t cell = gpi_slot_first(d, s);
    const struct gpi_task *t;

    if (cell == GPI_NONE)
        return;
    t = &d->task[s->cell_task[cell]];
    r->task_id = t->id;
    r->task_started = atomic_load(&s->ch.page->cell[cell].started_at);
    if (s->last_progress_task == t->id) {
        r->progress = s->progress;
        memcpy(r->progress_text, s->progress_text, sizeof r->progress_text);
    }
    if (t->has_label)
        memcpy(r->label, d->arena.input + t->data_off - GPI_LABEL_SIZE, sizeof r->label);
}

/* Pooled: the slot has a class, or its last worker had one that is not removed. */
static bool has_class(const gpud_dispatcher *d, const struct gpi_slot *s)
{
    return (s->incarnation || gpi_slot_life(d, s) != GPI_LIFE_OFF) && s->class < d->n_classes &&
           !d->class[s->class].removed;
}

void gpi_report_slot(gpud_dispatcher *d, const struct gpi_slot *s, const struct gpi_forecast *f,
                     struct gpud_slot_stats *r)
{
    memset(r, 0, sizeof *r);
    r->slot = s->index;
    r->state = gpi_slot_shown(d, s);
    r->incarnation = s->incarnation;
    r->pid = s->pid;
    r->since = gpi_sched_leaves_since(d->core, s->index);
    if (!r->since)
        r->since = s->since;
    r->last_duration = s->last_duration;
    r->setup_time = s->setup_time;
    r->work_time = s->work_time;
    r->wait_time = s->wait_time + (s->state == GPUD_SLOT_READY ? gpi_now() - s->idle_since : 0);
    memcpy(r->outcomes, s->outcomes, sizeof r->outcomes);
    r->restarts = s->restarts;
    r->sent = s->sent;
    memcpy(r->devices, s->device, sizeof r->devices);
    r->device_count = s->n_devices;
    r->ready_at = gpi_slot_ready_at(d, s, f);
    if (d->set.pooled && has_class(d, s))
        (void)snprintf(r->class_name, sizeof r->class_name, "%s", d->class[s->class].name);
    memcpy(r->device, s->device, strcspn(s->device, ","));
    report_running(d, s, r);
}
