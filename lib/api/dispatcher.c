/* SPDX-License-Identifier: MIT */
/* dispatcher.c - the exported verbs of the host: validate, delegate. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/options.h"
#include "api/process.h"
#include "api/shared.h"
#include "api/start.h"
#include "api/surroundings.h"
#include "api/versioned.h"
#include "base/failure.h"
#include "device/select.h"
#include "host/dispatcher.h"
#include "os/fds.h"

_Static_assert(GPI_DEVICE_SIZE == GPI_DEVICE_NAMES && GPI_DEVICES == GPI_DEVICE_SET && GPI_DEVICE_NAME_SIZE == GPI_DEVICE_NAME, "one length for device names");

#define EVENT_MOST 4096u /* no version's record of an event is longer: such a struct_size was never set */

/* What each verb asks first.  0, EINVAL or EFORKED. */
static int check(const gpud_dispatcher *d)
{
    if (!d)
        return GPUD_EINVAL;
    return atomic_load_explicit(d->alive, memory_order_relaxed) ? 0 : GPUD_EFORKED;
}

/* ---- create ---- */

/* Room that is too much for the stack of a host's thread. */
struct scratch {
    struct gpi_start start;
    char name[GPI_SLOTS_MAX][GPI_DEVICE_SIZE];
};

/* With everything checked: the last that can fail but for resources. */
static int give_birth(gpud_dispatcher **ret_d, struct gpi_birth *b, const struct gpi_start *start, struct gpi_process *p, struct gpud_error *e)
{
    struct gpi_process *own = NULL;
    int r = start->own_spawner ? gpi_process_spawn(&own, e) : 0;

    if (r)
        return r;
    p = own ? own : p;
    b->alive = p->alive;
    b->door = p->door;
    b->spawner_pidfd = p->spawner_pidfd;
    b->own = own;
    r = gpi_create(ret_d, b, e);
    if (r)
        gpi_process_unspawn(own);
    else if (!own)
        atomic_fetch_add(&p->dispatchers, 1);
    return r;
}

static int check_env(const char *const *env, const struct scratch *s, uint32_t n_slots, struct gpud_error *e)
{
    int r = 0;

    for (uint32_t i = 0; i < n_slots && r == 0; i++)
        if (strncmp(s->name[i], "cpu:", 4) != 0)
            r = gpi_surroundings_on_gpus(env, s->name[i], e);
    return r;
}

static int create(gpud_dispatcher **ret_d, const struct gpud_options *o, struct gpi_process *p, struct scratch *s, struct gpud_error *e)
{
    struct gpi_birth b = { .device = s->name, .launch = &s->start.launch, .setup_data = o->setup_data, .setup_size = o->setup_size, .setup_fd = -1 };
    int n, r;

    r = gpi_start_choose(&s->start, o, p, e);
    if (r == 0)
        r = gpi_options_read(&b.set, o, e);
    if (r == 0)
        r = gpi_surroundings_read(&s->start.launch, o, e);
    if (r)
        return r;
    b.set.definition = s->start.definition;
    b.name = s->start.name;
    b.remark = s->start.remark;
    b.remark_level = s->start.remark_level;
    b.program_fd = s->start.program_fd;
    if (o->setup_shared) {
        b.setup_fd = o->setup_shared->fd;
        b.setup_size = o->setup_shared->size;
    }
    n = gpi_device_list(o->devices ? o->devices : "cpu:1", b.set.devices_per_worker, s->name, GPI_SLOTS_MAX, e);
    if (n < 0)
        return n;
    b.n_slots = (uint32_t)n;
    r = check_env(o->env, s, b.n_slots, e);
    if (r == 0)
        r = gpi_options_share(&b.set, b.n_slots, e);
    return r ? r : give_birth(ret_d, &b, &s->start, p, e);
}

int gpud_dispatcher_create(gpud_dispatcher **ret_d, const struct gpud_options *options, struct gpud_error *reterr)
{
    struct gpi_process *p = gpi_process();
    struct gpud_options o;
    struct scratch *s;
    int r;

    if (!ret_d || !options)
        return gpi_fail(reterr, GPUD_EINVAL, 0, ret_d ? "options" : "ret_d", "a NULL argument");
    r = gpi_versioned_read(&o, sizeof o, options, offsetof(struct gpud_options, queue_size));
    if (r)
        return gpi_fail(reterr, r, 0, "struct_size", "options.struct_size is %u, %zu is known here", options->struct_size, sizeof o);
    s = calloc(1, sizeof *s);
    if (!s)
        return gpi_fail(reterr, GPUD_ENOMEM, 0, "", "no memory for options");
    r = create(ret_d, &o, p, s, reterr);
    free(s);
    return r;
}

int gpud_dispatcher_destroy(gpud_dispatcher **d, uint64_t *ret_uncollected)
{
    struct gpi_process *p = gpi_process(), *own;
    bool ours;
    int r;

    if (!d || !*d)
        return 0;
    ours = check(*d) == 0;
    own = (*d)->own;
    r = gpi_destroy(*d, ret_uncollected);
    if (r)
        return r;
    *d = NULL;
    if (own)
        gpi_process_unspawn(own);
    else if (ours && p)
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
    if (!events || n == 0 || events[0].struct_size < offsetof(struct gpud_event, label) || events[0].struct_size > EVENT_MOST ||
        events[0].struct_size % 8)
        return GPUD_EINVAL;
    return gpi_poll(d, events, events[0].struct_size, n, wait);
}

/* Up to `kept`, which says what there is to release: all that wait, keep and release ask of a caller's
 * record, whatever is appended behind it. */
static bool can_be_kept(const struct gpud_event *event)
{
    return event->struct_size >= offsetof(struct gpud_event, kept) + sizeof event->kept && event->struct_size <= EVENT_MOST;
}

int gpud_dispatcher_wait(gpud_dispatcher *d, uint64_t task_id, struct gpud_event *event, uint64_t timeout)
{
    struct gpud_event known;
    int r = check(d);

    if (r)
        return r;
    if (!event || !can_be_kept(event))
        return GPUD_EINVAL;
    r = gpi_wait(d, task_id, &known, timeout);
    if (r == 0)
        gpi_versioned_write(event, event->struct_size, &known, sizeof known);
    return r;
}

int gpud_dispatcher_fd(gpud_dispatcher *d)
{
    int r = check(d);

    return r ? r : gpi_pollable(d);
}

int gpud_event_keep(gpud_dispatcher *d, struct gpud_event *event)
{
    struct gpud_event known;
    int r = check(d);

    if (r)
        return r;
    if (!event || !can_be_kept(event))
        return GPUD_EINVAL;
    gpi_versioned_write(&known, sizeof known, event, event->struct_size);
    r = gpi_keep_lent(d, &known);
    if (r == 0)
        gpi_versioned_write(event, event->struct_size, &known, sizeof known);
    return r;
}

int gpud_event_release(struct gpud_event *event)
{
    struct gpud_event known;

    if (!event || !can_be_kept(event))
        return GPUD_EINVAL;
    if (!event->kept)
        return 0;
    gpi_versioned_write(&known, sizeof known, event, event->struct_size);
    gpi_keep_release(&known);
    gpi_versioned_write(event, event->struct_size, &known, sizeof known);
    return 0;
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
    int r = check(d), err = errno;

    if (r)
        return r;
    if (how > GPUD_FINISH_NOW)
        return GPUD_EINVAL;
    before = atomic_load(&d->stop_asked);
    while (before < how + 1 && !atomic_compare_exchange_weak(&d->stop_asked, &before, how + 1))
        ;
    (void)gpi_fd_write(d->wake, &one, sizeof one); /* no lock: this may be a signal handler */
    errno = err; /* what it interrupted may be about to look at it */
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
    uint32_t stride;
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
        gpi_versioned_write((char *)rows + i * stride, stride, &row, sizeof row);
    }
    r = (int)d->n_slots;
    pthread_mutex_unlock(&d->lock);
    return r;
}
