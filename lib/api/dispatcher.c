/* SPDX-License-Identifier: MIT */
/* dispatcher.c - the exported verbs of the host: validate, delegate. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "api/choose.h"
#include "api/options.h"
#include "api/process.h"
#include "api/shared.h"
#include "api/start.h"
#include "api/surroundings.h"
#include "base/versioned.h"
#include "base/failure.h"
#include "base/refused.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/slot.h"
#include "host/task.h"
#include "os/fds.h"
#include "os/message.h"
#include "wire/control.h"

_Static_assert(GPI_DEVICE_SIZE == GPI_DEVICE_NAMES && GPI_DEVICES == GPI_DEVICE_SET &&
                   GPI_DEVICE_NAME_SIZE == GPI_DEVICE_NAME && GPI_DEVICE_UUID_SIZE == GPI_UUID_SIZE,
               "one length for device names");

/* ---- create ---- */

/* Everything that a dispatcher is made of before there is one. */
struct draft {
    struct gpi_start start; /* too much for the stack of a host's thread */
    struct gpi_settings set;
    struct gpi_process *own; /* a spawner of its own */
    bool entered;            /* that of gpud_init keeps a place for it */
    uint32_t seated;         /* and so many for its slots */
    struct gpi_birth birth;
    struct gpi_choice choice;
};

/* The spawner that its workers, and its monitor, come from. */
static int find_spawner(struct draft *x, struct gpi_process *p, struct gpud_error *e)
{
    struct gpi_birth *b = &x->birth;
    int r =
        x->start.own_spawner ? gpi_process_spawn(&x->own, e) : gpi_process_enter(gpi_process(), e);

    if (r)
        return r;
    x->entered = !x->own;
    p = x->own ? x->own : p;
    b->alive = p->alive;
    b->door = p->door;
    b->spawner_pidfd = p->spawner_pidfd;
    b->own = x->own;
    b->places = &p->slots;
    return gpi_monitor_connect(&b->connection, b->door, e);
}

static int choose_devices(struct draft *x, const struct gpud_options *o, struct gpud_error *e)
{
    const bool lines = x->start.launch.stdio == GPUD_STDIO_EVENTS;
    int r = gpi_choose_devices(&x->choice, o->devices ? o->devices : "cpu:1",
                               x->set.class.devices_per_worker, x->birth.connection, NULL, e);

    if (r == 0)
        r = gpi_choice_visible(&x->choice, o->visible, e);
    if (r)
        return r;
    x->birth.chosen = &x->choice.selection;
    x->birth.gauge = x->choice.gauge;
    r = gpi_process_seat(x->birth.places, x->choice.selection.n_slots, e);
    if (r)
        return r;
    x->seated = x->choice.selection.n_slots;
    r = gpi_files_check(gpi_files_fixed(&x->birth) + gpi_files_slots(lines, x->seated), 1,
                        x->seated, e);
    return r ? r : gpi_options_share(&x->birth.set, x->seated, e);
}

/* With everything checked: the last that can fail but for resources. */
static int give_birth(gpud_dispatcher **ret_d, struct draft *x, struct gpud_error *e)
{
    int r = gpi_create(ret_d, &x->birth, e);

    x->birth.connection = -1;
    if (r)
        return r;
    x->choice.gauge = NULL;
    x->entered = false;
    x->seated = 0;
    x->own = NULL;
    return 0;
}

/* What was begun and came to nothing: the spawner ends the monitor when it hears that nobody wants
 * it. */
static void discard(struct draft *x)
{
    const struct gpi_control bye = { .kind = GPI_CTL_BYE };

    gpi_choice_fini(&x->choice);
    if (x->birth.connection >= 0)
        (void)gpi_message_send(x->birth.connection, &bye, sizeof bye, NULL, 0);
    gpi_fd_close(&x->birth.connection);
    if (x->seated)
        gpi_process_unseat(x->birth.places, x->seated);
    gpi_process_unspawn(x->own);
    if (x->entered)
        gpi_process_leave(gpi_process());
    free(x);
}

/* Sets the parts of its class, with everything read that they come from. */
static void set_class(struct draft *x, const struct gpud_options *o)
{
    x->set.class.definition = x->start.definition;
    x->birth.class = (struct gpi_class_birth){
        .set = x->set.class,
        .name = x->start.name,
        .launch = &x->start.launch,
        .program_fd = x->start.program_fd,
        .setup_data = o->setup_data,
        .setup_size = o->setup_shared ? o->setup_shared->size : o->setup_size,
        .setup_fd = o->setup_shared ? o->setup_shared->fd : -1,
    };
}

static int create(gpud_dispatcher **ret_d, const struct gpud_options *o, struct gpi_process *p,
                  struct draft *x, struct gpud_error *e)
{
    struct gpi_birth *b = &x->birth;
    int r;

    r = gpi_start_choose(&x->start, o, p, e);
    if (r == 0)
        r = gpi_options_read(&x->set, o, e);
    if (r == 0)
        r = gpi_surroundings_read(&x->start.launch, o, e);
    if (r)
        return r;
    set_class(x, o);
    b->set = x->set.pool;
    b->remark = x->start.remark;
    b->remark_level = x->start.remark_level;
    /* its words, before a process is made for it */
    r = gpi_choice_reads(o->devices ? o->devices : "cpu:1", e);
    if (r > 0)
        r = gpi_surroundings_on_gpus(o->env, e);
    r = r < 0 ? r : find_spawner(x, p, e);
    if (r == 0)
        r = choose_devices(x, o, e);
    return r ? r : give_birth(ret_d, x, e);
}

int gpud_dispatcher_create(gpud_dispatcher **ret_d, const struct gpud_options *options,
                           struct gpud_error *reterr)
{
    struct gpi_process *p = gpi_process();
    struct gpud_options o;
    struct draft *x;
    int r;

    r = gpi_check_place(reterr);
    if (r)
        return r;
    gpi_refused_forget();
    if (!ret_d || !options)
        return gpi_fail_null(reterr, ret_d ? "options" : "ret_d");
    r = gpi_versioned_read(&o, sizeof o, options, offsetof(struct gpud_options, queue_size));
    if (r)
        return gpi_fail_size(reterr, r, "options", options->struct_size, sizeof o);
    x = calloc(1, sizeof *x);
    if (!x)
        return gpi_fail(reterr, GPUD_ENOMEM, 0, "", "no memory for options");
    x->birth.connection = -1;
    r = create(ret_d, &o, p, x, reterr);
    discard(x);
    return r;
}

int gpud_dispatcher_destroy(gpud_dispatcher **d, uint64_t *ret_uncollected)
{
    struct gpi_process *p = gpi_process(), *own;
    bool ours = false;
    int r;

    if (d && *d)
        ours = gpi_check(*d, NULL) == 0;
    if (ret_uncollected && !ours)
        *ret_uncollected = 0;
    if (!d || !*d)
        return 0;
    own = (*d)->own;
    r = gpi_destroy(*d, ret_uncollected);
    if (r)
        return r;
    *d = NULL;
    if (own)
        gpi_process_unspawn(own);
    else if (ours && p)
        gpi_process_leave(p);
    return 0;
}

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
    for (size_t i = 0; i < n && i < d->n_slots; i++) {
        struct gpud_slot_stats row;
        gpi_report_slot(d, &d->slot[i], &row);
        gpi_versioned_write((char *)rows + i * stride, stride, &row, sizeof row);
    }
    r = (int)d->n_slots;
    pthread_mutex_unlock(&d->lock);
    return r;
}
