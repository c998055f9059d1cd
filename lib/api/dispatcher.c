/* SPDX-License-Identifier: MIT */
/* dispatcher.c - the exported verbs of the host: validate, delegate. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/options.h"
#include "api/process.h"
#include "api/versioned.h"
#include "base/failure.h"
#include "device/list.h"
#include "host/dispatcher.h"

_Static_assert(GPI_DEVICE_SIZE == GPI_DEVICE_NAME, "one length for device names");

/* What each verb asks first.  0, EINVAL or EFORKED. */
static int check(const gpud_dispatcher *d)
{
    if (!d)
        return GPUD_EINVAL;
    return atomic_load_explicit(d->alive, memory_order_relaxed) ? 0 : GPUD_EFORKED;
}

/* ---- create ---- */

static int check_process(const struct gpi_process *p, struct gpud_error *e)
{
    struct gpi_credentials now;

    if (!p && gpi_process_forked())
        return gpi_fail(e, GPUD_EFORKED, 0, "", "gpud_init was called in the parent process; call it here to become a host");
    if (!p)
        return gpi_fail(e, GPUD_ENOINIT, 0, "", "call gpud_init first, early in main");
    gpi_process_credentials(&now);
    if (memcmp(&now, &p->credentials, sizeof now) != 0)
        return gpi_fail(e, GPUD_ECREDS, 0, "", "workers would run with the credentials of gpud_init; call it after dropping privileges");
    return 0;
}

static int create(gpud_dispatcher **ret_d, const struct gpud_options *o, struct gpi_process *p, char (*names)[GPI_DEVICE_SIZE], struct gpud_error *e)
{
    struct gpi_birth b = { .alive = p->alive, .door = p->door, .spawner_pidfd = p->spawner_pidfd, .device = names };
    int n, r;

    r = gpi_options_read(&b.set, o, p, e);
    if (r)
        return r;
    n = gpi_device_list(o->devices ? o->devices : "cpu:1", names, GPI_SLOTS_MAX, e);
    if (n < 0)
        return n;
    b.n_slots = (uint32_t)n;
    b.setup_data = o->setup_data;
    b.setup_size = o->setup_size;
    r = gpi_options_share(&b.set, b.n_slots, e);
    return r ? r : gpi_create(ret_d, &b, e);
}

int gpud_dispatcher_create(gpud_dispatcher **ret_d, const struct gpud_options *options, struct gpud_error *reterr)
{
    struct gpi_process *p = gpi_process();
    struct gpud_options o;
    char(*names)[GPI_DEVICE_SIZE];
    int r;

    if (!ret_d || !options)
        return gpi_fail(reterr, GPUD_EINVAL, 0, ret_d ? "options" : "ret_d", "a NULL argument");
    r = gpi_versioned_read(&o, sizeof o, options, offsetof(struct gpud_options, queue_size));
    if (r)
        return gpi_fail(reterr, r, 0, "struct_size", "options.struct_size is %u, %zu is known here", options->struct_size, sizeof o);
    r = check_process(p, reterr);
    if (r)
        return r;
    names = calloc(GPI_SLOTS_MAX, sizeof *names);
    if (!names)
        return gpi_fail(reterr, GPUD_ENOMEM, 0, "", "no memory for device names");
    r = create(ret_d, &o, p, names, reterr);
    free(names);
    if (r == 0)
        atomic_fetch_add(&p->dispatchers, 1);
    return r;
}

int gpud_dispatcher_destroy(gpud_dispatcher **d, uint64_t *ret_uncollected)
{
    struct gpi_process *p = gpi_process();
    bool ours;
    int r;

    if (!d || !*d)
        return 0;
    ours = check(*d) == 0;
    r = gpi_destroy(*d, ret_uncollected);
    if (r)
        return r;
    *d = NULL;
    if (ours && p)
        atomic_fetch_sub(&p->dispatchers, 1);
    return 0;
}

/* ---- work ---- */

int gpud_dispatcher_submit(gpud_dispatcher *d, const struct gpud_task_desc *task, uint64_t wait, uint64_t *ret_id)
{
    struct gpud_task_desc other;
    int r = check(d);

    if (r)
        return r;
    if (!task)
        return GPUD_EINVAL;
    if (task->struct_size != sizeof other) {
        r = gpi_versioned_read(&other, sizeof other, task, offsetof(struct gpud_task_desc, label));
        if (r)
            return r;
        task = &other;
    }
    r = gpi_task_check(task);
    return r ? r : gpi_task_submit(d, task, wait, ret_id);
}

int gpud_dispatcher_buffer_alloc(gpud_dispatcher *d, uint64_t size, void **ret_data)
{
    int r = check(d);

    if (r)
        return r;
    return size && ret_data ? gpi_buffer_alloc(d, size, ret_data) : GPUD_EINVAL;
}

int gpud_dispatcher_buffer_free(gpud_dispatcher *d, void *data)
{
    int r = check(d);

    return r || !data ? r : gpi_buffer_free(d, data);
}

int gpud_dispatcher_poll(gpud_dispatcher *d, struct gpud_event *events, size_t n, uint64_t wait)
{
    int r = check(d);

    if (r)
        return r;
    if (!events || n == 0 || events[0].struct_size < offsetof(struct gpud_event, label) || events[0].struct_size % 8)
        return GPUD_EINVAL;
    return gpi_poll(d, events, events[0].struct_size, n, wait);
}

int gpud_dispatcher_run(gpud_dispatcher *d, gpud_source_fn *source, const struct gpud_callbacks *callbacks, void *user, struct gpud_error *reterr)
{
    struct gpud_callbacks cb;
    int r = check(d);

    if (r)
        return gpi_fail(reterr, r, 0, "d", "%s", gpud_error_text(r));
    if (!source || !callbacks)
        return gpi_fail(reterr, GPUD_EINVAL, 0, source ? "callbacks" : "source", "a NULL argument");
    r = gpi_versioned_read(&cb, sizeof cb, callbacks, offsetof(struct gpud_callbacks, on_timeout));
    if (r)
        return gpi_fail(reterr, r, 0, "struct_size", "callbacks.struct_size is %u, %zu is known here", callbacks->struct_size, sizeof cb);
    r = gpi_run(d, source, &cb, user, reterr);
    return r;
}

int gpud_dispatcher_cancel(gpud_dispatcher *d, uint64_t task_id)
{
    int r = check(d);

    if (r)
        return r;
    pthread_mutex_lock(&d->lock);
    r = gpi_task_cancel(d, task_id);
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* ---- end ---- */

int gpud_dispatcher_stop(gpud_dispatcher *d, uint32_t how)
{
    const uint64_t one = 1;
    uint32_t before;
    int r = check(d);

    if (r)
        return r;
    if (how > GPUD_FINISH_NOW)
        return GPUD_EINVAL;
    before = atomic_load(&d->stop_asked);
    while (before < how + 1 && !atomic_compare_exchange_weak(&d->stop_asked, &before, how + 1))
        ;
    (void)!write(d->wake, &one, sizeof one); /* no lock: this may be a signal handler */
    return 0;
}

int gpud_dispatcher_close(gpud_dispatcher *d, uint32_t how, uint64_t limit)
{
    int r = check(d);

    if (r)
        return r;
    if (how > GPUD_FINISH_NOW)
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
    int r = check(d);

    if (r)
        return r;
    if (!stats || stats->struct_size < offsetof(struct gpud_stats, accepted))
        return GPUD_EINVAL;
    gpi_report_stats(d, &s);
    size = stats->struct_size < sizeof s ? stats->struct_size : (uint32_t)sizeof s;
    s.struct_size = size;
    memcpy(stats, &s, size);
    return 0;
}

int gpud_dispatcher_slots(gpud_dispatcher *d, struct gpud_slot_stats *rows, size_t n)
{
    size_t stride;
    int r = check(d);

    if (r)
        return r;
    if (n && (!rows || rows[0].struct_size < offsetof(struct gpud_slot_stats, task_id) || rows[0].struct_size % 8))
        return GPUD_EINVAL;
    stride = n ? rows[0].struct_size : 0;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < n && i < d->n_slots; i++) {
        struct gpud_slot_stats row;
        gpi_report_slot(d, &d->slot[i], &row);
        row.struct_size = (uint32_t)(stride < sizeof row ? stride : sizeof row);
        memcpy((char *)rows + i * stride, &row, row.struct_size);
    }
    r = (int)d->n_slots;
    pthread_mutex_unlock(&d->lock);
    return r;
}
