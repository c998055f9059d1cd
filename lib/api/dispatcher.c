/* SPDX-License-Identifier: MIT */
/* dispatcher.c - the exported verbs of the host: validate, delegate. */
#include <errno.h>
#include <string.h>

#include "api/check.h"
#include "base/versioned.h"
#include "base/failure.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/fds.h"

int gpud_dispatcher_ready(gpud_dispatcher *d, uint32_t slots, uint64_t wait,
                          struct gpud_error *reterr)
{
    int r = gpi_check(d, reterr);

    return r ? r : gpi_ready(d, slots, wait, reterr);
}

/* ---- work ---- */

int gpud_dispatcher_submit(gpud_dispatcher *d, const struct gpud_task_desc *task, uint64_t wait,
                           uint64_t *ret_id, struct gpud_error *reterr)
{
    struct gpud_task_desc other;
    int r = gpi_check(d, reterr);

    if (r)
        return r;
    if (!task)
        return gpi_fail_null(reterr, "task");
    if (task->struct_size == sizeof other) {
        r = gpi_desc_check(task, reterr);
    } else {
        r = gpi_desc_read(&other, task, reterr);
        task = &other;
    }
    return r ? r : gpi_task_submit(d, task, wait, ret_id, reterr);
}

/* The first that was refused, and why. */
static int refused(int code, size_t i, size_t n, const struct gpud_error *why, struct gpud_error *e)
{
    return gpi_fail(e, code, 0, why->field, "task %zu of %zu, counted from 0: %s", i, n, why->text);
}

int gpud_dispatcher_submit_many(gpud_dispatcher *d, const struct gpud_task_desc *tasks, size_t n,
                                uint64_t wait, uint64_t *ret_ids, size_t *ret_accepted,
                                struct gpud_error *reterr)
{
    struct gpi_offer offer = { .tasks = tasks, .n = n };
    struct gpud_error why = GPUD_ERROR_INIT;
    size_t taken = 0;
    int r = gpi_check(d, reterr);

    if (ret_accepted)
        *ret_accepted = 0;
    if (r || n == 0)
        return r;
    if (!tasks)
        return gpi_fail(reterr, GPUD_EINVAL, 0, "tasks", "tasks is NULL, but n is %zu", n);
    offer.stride = tasks[0].struct_size;
    if (!gpi_versioned_sized(offer.stride, GPI_DESC_LEAST))
        return gpi_fail_size(reterr, GPUD_ESTRUCT, "tasks[0]", offer.stride, sizeof *tasks);
    r = gpi_tasks_submit(d, &offer, wait, ret_ids, &taken, &why);
    if (ret_accepted)
        *ret_accepted = taken;
    return r ? refused(r, taken, n, &why, reterr) : 0;
}

int gpud_dispatcher_buffer_alloc(gpud_dispatcher *d, uint64_t size, void **ret_data)
{
    int r = gpi_check(d, NULL);

    if (r)
        return r;
    return size && ret_data ? gpi_buffer_alloc(d, size, ret_data) : GPUD_EINVAL;
}

int gpud_dispatcher_buffer_free(gpud_dispatcher *d, void *data)
{
    int r = gpi_check(d, NULL);

    return r || !data ? r : gpi_buffer_free(d, data);
}

int gpud_dispatcher_poll(gpud_dispatcher *d, struct gpud_event *events, size_t n, uint64_t wait)
{
    int r = gpi_check(d, NULL);

    if (r)
        return r;
    if (!events || n == 0)
        return GPUD_EINVAL;
    if (!gpi_versioned_sized(events[0].struct_size, offsetof(struct gpud_event, label)))
        return GPUD_ESTRUCT;
    return gpi_poll(d, events, events[0].struct_size, n, wait);
}

/* Up to `kept`, which says what there is to release: all that wait, keep and release ask of a
 * caller's record, whatever is appended behind it. */
#define KEPT_LEAST (offsetof(struct gpud_event, kept) + sizeof(void *))

static bool can_be_kept(const struct gpud_event *event)
{
    return gpi_versioned_sized(event->struct_size, KEPT_LEAST);
}

int gpud_dispatcher_wait(gpud_dispatcher *d, uint64_t task_id, struct gpud_event *event,
                         uint64_t timeout, struct gpud_error *reterr)
{
    struct gpud_event known;
    int r = gpi_check(d, reterr);

    if (r)
        return r;
    if (!event)
        return gpi_fail_null(reterr, "event");
    if (!can_be_kept(event))
        return gpi_fail(reterr, GPUD_ESTRUCT, 0, "struct_size",
                        "event.struct_size is %u, the minimum is %zu", event->struct_size,
                        KEPT_LEAST);
    r = gpi_wait(d, task_id, &known, timeout, reterr);
    if (r == 0)
        gpi_versioned_write(event, event->struct_size, &known, sizeof known);
    return r;
}

int gpud_dispatcher_fd(gpud_dispatcher *d)
{
    int r = gpi_check(d, NULL);

    return r ? r : gpi_pollable(d);
}

int gpud_event_keep(gpud_dispatcher *d, struct gpud_event *event)
{
    struct gpud_event known;
    int r = gpi_check(d, NULL);

    if (r)
        return r;
    if (!event)
        return GPUD_EINVAL;
    if (!can_be_kept(event))
        return GPUD_ESTRUCT;
    gpi_versioned_write(&known, sizeof known, event, event->struct_size);
    r = gpi_keep_lent(d, &known);
    if (r == 0)
        gpi_versioned_write(event, event->struct_size, &known, sizeof known);
    return r;
}

int gpud_event_release(struct gpud_event *event)
{
    struct gpud_event known;

    if (!event)
        return GPUD_EINVAL;
    if (!can_be_kept(event))
        return GPUD_ESTRUCT;
    if (!event->kept)
        return 0;
    gpi_versioned_write(&known, sizeof known, event, event->struct_size);
    gpi_keep_release(&known);
    gpi_versioned_write(event, event->struct_size, &known, sizeof known);
    return 0;
}

int gpud_dispatcher_run(gpud_dispatcher *d, gpud_source_fn *source,
                        const struct gpud_callbacks *callbacks, void *user,
                        struct gpud_error *reterr)
{
    struct gpud_callbacks cb;
    int r = gpi_check(d, reterr);

    if (r)
        return r;
    if (!source || !callbacks)
        return gpi_fail_null(reterr, source ? "callbacks" : "source");
    r = gpi_versioned_read(&cb, sizeof cb, callbacks, offsetof(struct gpud_callbacks, on_timeout));
    if (r)
        return gpi_fail_size(reterr, r, "callbacks", callbacks->struct_size, sizeof cb);
    return gpi_run(d, source, &cb, user, reterr);
}

int gpud_dispatcher_cancel(gpud_dispatcher *d, uint64_t task_id, uint32_t how)
{
    int r = gpi_check(d, NULL);

    if (r)
        return r;
    if (how > GPUD_CANCEL_HARD)
        return GPUD_EINVAL;
    pthread_mutex_lock(&d->lock);
    r = gpi_task_cancel(d, task_id, how);
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* ---- end ---- */

int gpud_dispatcher_stop(gpud_dispatcher *d, uint32_t how)
{
    uint32_t before;
    int r = gpi_check(d, NULL), err = errno;

    if (r)
        return r;
    if (how > GPUD_FINISH_NOW)
        return GPUD_EINVAL;
    before = atomic_load(&d->close.stop_asked);
    while (before < how + 1 &&
           !atomic_compare_exchange_weak(&d->close.stop_asked, &before, how + 1))
        ;
    (void)gpi_bell_ring(d->loop.wake); /* no lock: this may be a signal handler */
    errno = err; /* what it interrupted may be about to look at it */
    return 0;
}

int gpud_dispatcher_close(gpud_dispatcher *d, uint32_t how, uint64_t limit)
{
    int r = gpi_check(d, NULL);

    if (r)
        return r;
    if (how > GPUD_FINISH_LEAVE)
        return GPUD_EINVAL;
    pthread_mutex_lock(&d->lock);
    gpi_close(d, how, limit);
    pthread_mutex_unlock(&d->lock);
    return 0;
}

/* ---- stats ---- */

int gpud_dispatcher_stats(gpud_dispatcher *d, struct gpud_stats *stats)
{
    struct gpud_stats s;
    uint32_t size;
    int r = gpi_check(d, NULL);

    if (r)
        return r;
    if (!stats)
        return GPUD_EINVAL;
    if (stats->struct_size < offsetof(struct gpud_stats, accepted))
        return GPUD_ESTRUCT;
    gpi_report_stats(d, &s);
    size = stats->struct_size < sizeof s ? stats->struct_size : (uint32_t)sizeof s;
    s.struct_size = size;
    memcpy(stats, &s, size);
    return 0;
}

int gpud_dispatcher_slots(gpud_dispatcher *d, struct gpud_slot_stats *rows, size_t n)
{
    struct gpi_forecast f;
    uint32_t stride;
    int r = gpi_check(d, NULL);

    if (r)
        return r;
    if (n && !rows)
        return GPUD_EINVAL;
    if (n && !gpi_versioned_sized(rows[0].struct_size, offsetof(struct gpud_slot_stats, task_id)))
        return GPUD_ESTRUCT;
    stride = n ? rows[0].struct_size : 0;
    pthread_mutex_lock(&d->lock);
    gpi_forecast_begin(d, &f);
    for (size_t i = 0; i < n && i < d->n_slots; i++) {
        struct gpud_slot_stats row;
        gpi_report_slot(d, &d->slot[i], &f, &row);
        gpi_versioned_write((char *)rows + i * stride, stride, &row, sizeof row);
    }
    r = (int)d->n_slots;
    pthread_mutex_unlock(&d->lock);
    return r;
}
