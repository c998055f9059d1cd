/* SPDX-License-Identifier: MIT */
/* report.c - the snapshot behind stats.h.  Copies under the lock; wakes nobody.       [C20] */
#include <string.h>

#include "host/dispatcher.h"

static void count_slots(gpud_dispatcher *d, struct gpud_stats *s)
{
    s->slots = d->n_slots;
    s->slots_failed = d->n_useless;
    s->sent = s->slots_ready = 0;
    for (uint32_t i = 0; i < d->n_slots; i++) {
        s->sent += d->slot[i].sent;
        s->slots_ready += d->slot[i].state == GPUD_SLOT_READY || d->slot[i].state == GPUD_SLOT_BUSY;
    }
}

/* Remaining cost over the rate since the first task started: setup is not slowness.  The upper
 * end allows for one long task at the very end. */
static void estimate(const gpud_dispatcher *d, struct gpud_stats *s)
{
    double seconds = d->first_start && s->taken_at > d->first_start ? (double)(s->taken_at - d->first_start) / 1e9 : 0;

    s->first_start = d->first_start;
    s->throughput = 0;
    s->eta_low = s->eta_high = d->cost_left ? GPUD_NEVER : 0;
    if (seconds <= 0 || d->cost_done == 0)
        return;
    s->throughput = (double)(d->count.accepted - d->unended) / seconds;
    s->eta_low = (uint64_t)((double)d->cost_left * seconds / (double)d->cost_done * 1e9);
    s->eta_high = d->cost_left ? s->eta_low + s->run_p99 : 0;
}

void gpi_report_stats(gpud_dispatcher *d, struct gpud_stats *s)
{
    pthread_mutex_lock(&d->lock);
    *s = d->count;
    s->taken_at = gpi_now();
    s->slot_count = d->n_slots;
    s->queued = d->queue.count;
    s->undelivered = gpi_events_waiting(d);
    s->payload_used = gpi_chunks_used(&d->input_chunks) - d->payload_base;
    count_slots(d, s);
    s->queue_wait_p50 = gpi_hist_quantile(&d->queue_wait, 0.5);
    s->queue_wait_p99 = gpi_hist_quantile(&d->queue_wait, 0.99);
    s->run_p50 = gpi_hist_quantile(&d->run, 0.5);
    s->run_p99 = gpi_hist_quantile(&d->run, 0.99);
    s->overhead_p50 = gpi_hist_quantile(&d->overhead, 0.5);
    s->overhead_p99 = gpi_hist_quantile(&d->overhead, 0.99);
    estimate(d, s);
    pthread_mutex_unlock(&d->lock);
}

static void report_running(gpud_dispatcher *d, const struct gpi_slot *s, struct gpud_slot_stats *r)
{
    uint32_t cell = gpi_slot_running(s);
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
        memcpy(r->label, d->input + t->data_off - GPI_LABEL_SIZE, sizeof r->label);
}

void gpi_report_slot(gpud_dispatcher *d, const struct gpi_slot *s, struct gpud_slot_stats *r)
{
    memset(r, 0, sizeof *r);
    r->slot = s->index;
    r->state = s->state;
    r->incarnation = s->incarnation;
    r->pid = s->pid;
    r->since = s->since;
    r->last_duration = s->last_duration;
    r->setup_time = s->setup_time;
    r->work_time = s->work_time;
    r->wait_time = s->wait_time + (s->state == GPUD_SLOT_READY ? gpi_now() - s->idle_since : 0);
    memcpy(r->outcomes, s->outcomes, sizeof r->outcomes);
    r->restarts = s->restarts;
    r->sent = s->sent;
    memcpy(r->device, s->device, sizeof r->device);
    report_running(d, s, r);
}
