/* SPDX-License-Identifier: MIT */
/*
 * classes.c - the settings of a class for the core; and the classes of a pooled dispatcher: added,
 * set, and reported.
 */
#include <stdio.h>
#include <string.h>

#include "base/chunks.h"
#include "base/clock.h"
#include "base/failure.h"
#include "gpudispatch/sched.h"
#include "host/act.h"
#include "host/class.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/slot.h"

void gpi_class_settings(const struct gpi_class *c, struct gpi_class_settings *ret)
{
    *ret = (struct gpi_class_settings){
        .ahead = c->set.sent_ahead,
        .least_ahead = c->set.least_ahead ? c->set.least_ahead : 1,
        .batch_wait = c->set.batch_wait,
        .max_tasks = c->set.max_tasks_per_worker,
        .executed = c->launch.executed,
        .boot_limit = GPI_ANSWER_LIMIT_NS,
        .setup_limit = c->set.setup_limit,
        .grace = c->set.grace,
        .cleanup_limit = c->set.cleanup_limit,
        .lead = gpi_longest_lead(c->set.grace),
        .restart = c->set.restart,
        .retry = c->set.retry,
    };
}

/* ---- add ---- */

static int find(const gpud_dispatcher *d, const char *name)
{
    for (uint32_t i = 0; i < d->n_classes; i++)
        if (strcmp(d->class[i].name, name) == 0)
            return (int)i;
    return -1;
}

/* Returns the bytes that workers may have of the largest device that is here. */
static uint64_t largest(const gpud_dispatcher *d, uint32_t *ret_devices)
{
    uint64_t most = 0;

    *ret_devices = 0;
    for (uint32_t i = 0; i < d->dev.n; i++) {
        const struct gpi_device *id = &d->dev.row[i].id;
        *ret_devices += d->dev.row[i].here;
        if (d->dev.row[i].here && id->memory_total != GPI_UNKNOWN64 && id->memory_total > most)
            most = id->memory_total;
    }
    return most - gpi_headroom_of(&d->set, most);
}

/* [R9] */
static int check_fit(const gpud_dispatcher *d, const struct gpi_class_birth *b,
                     struct gpud_error *e)
{
    const struct gpi_request *r = &b->plan.need[0];
    const uint64_t memory = r->memory == GPI_MEMORY_ALL ? 0 : r->memory;
    uint32_t devices;
    const uint64_t most = largest(d, &devices);

    if (gpi_sched_could(d->core, &b->plan))
        return 0;
    return gpi_fail(e, GPUD_EDEVICE, 0, "needs",
                    "class %.63s fits nowhere: it needs devices: %u (%llu MiB each), CPUs: %u; "
                    "there are devices: %u (up to %llu MiB beside headroom), CPUs: %u",
                    b->class_name, r->devices, (unsigned long long)(memory >> 20), r->cpus, devices,
                    (unsigned long long)(most >> 20), d->set.cpus);
}

static int check_add(const gpud_dispatcher *d, const struct gpi_class_birth *b,
                     struct gpud_error *e)
{
    if (d->close.closing || d->close.ending || atomic_load(&d->close.stop_asked))
        return gpi_fail(e, GPUD_ECLOSED, 0, "", "%s", gpud_error_text(GPUD_ECLOSED));
    if (find(d, b->class_name) >= 0)
        return gpi_fail(e, GPUD_EBUSY, 0, "name", "another class has the name \"%s\"",
                        b->class_name);
    if (d->n_classes == GPI_CLASSES_MAX)
        return gpi_fail(e, GPUD_EFULL, 0, "", "the maximum is %u classes per dispatcher",
                        GPI_CLASSES_MAX);
    return check_fit(d, b, e);
}

/* The setup data take room that task data could have. */
static int take_parts(gpud_dispatcher *d, struct gpi_class *c, const struct gpi_class_birth *b,
                      struct gpud_error *e)
{
    const uint64_t before = gpi_chunks_used(&d->arena.input_chunks);
    int r = gpi_class_copy_setup(d, c, b);

    if (r)
        return gpi_fail(e, r, 0, "setup_size",
                        "setup_size is %llu, and the half of payload_budget (%llu) for task data "
                        "has less room now",
                        (unsigned long long)b->setup_size,
                        (unsigned long long)d->set.payload_budget);
    r = gpi_class_keep_setup(c, b);
    if (r == 0)
        r = gpi_class_keep_launch(c, b);
    if (r == 0) {
        const uint64_t taken = gpi_chunks_used(&d->arena.input_chunks) - before;
        d->arena.base += taken;
        d->arena.most -= taken < d->arena.most ? taken : d->arena.most;
        return 0;
    }
    if (c->setup.size && c->setup.fd < 0)
        gpi_chunks_free(&d->arena.input_chunks, c->setup.off);
    return gpi_fail(e, r, 0, "", "%s", gpud_error_text(r));
}

static int add(gpud_dispatcher *d, const struct gpi_class_birth *b, struct gpud_error *e)
{
    struct gpi_class *c = &d->class[d->n_classes];
    struct gpi_class_settings set;
    int r = check_add(d, b, e);

    if (r)
        return r;
    gpi_class_init(c, b);
    c->plan.grace = c->set.grace;
    r = take_parts(d, c, b, e);
    if (r == 0) {
        gpi_class_settings(c, &set);
        if (gpi_core_class_add(d, &set, &c->plan))
            r = gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for a class");
    }
    if (r) {
        gpi_class_fini(c);
        return r;
    }
    d->n_classes++;
    gpi_decide(d);
    return 0;
}

int gpi_class_add(gpud_dispatcher *d, const struct gpi_class_birth *b, struct gpud_error *e)
{
    int r;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    r = add(d, b, e);
    gpi_drive_wake(d);
    pthread_mutex_unlock(&d->lock);
    return r;
}

/* ---- set ---- */

int gpi_class_set(gpud_dispatcher *d, const char *name, enum gpi_plan_class_what what,
                  struct gpud_error *e)
{
    int i;

    pthread_mutex_lock(&d->lock);
    i = find(d, name);
    if (i >= 0) {
        d->now = gpi_now();
        if (what == GPI_CLASS_PIN || what == GPI_CLASS_UNPIN)
            d->class[i].plan.pinned = what == GPI_CLASS_PIN;
        gpi_core_class_set(d, d->now, (uint32_t)i, what);
        d->act(d);
        gpi_decide(d);
        gpi_ready_changed(d);
        gpi_drive_wake(d);
    }
    pthread_mutex_unlock(&d->lock);
    return i >= 0 ? 0
                  : gpi_fail(e, GPUD_ENODEFINITION, 0, "name", "no class has the name \"%.80s\"",
                             name);
}

/* ---- report ---- */

void gpi_class_report(gpud_dispatcher *d, uint32_t i, struct gpud_class_stats *ret)
{
    const struct gpi_class *c = &d->class[i];

    *ret = (struct gpud_class_stats){
        .struct_size = sizeof *ret,
        .paused = gpi_sched_is_paused(d->core, i),
        .pinned = c->plan.pinned,
        .failed = gpi_sched_has_failed(d->core, i),
        .queued = gpi_sched_queued_of(d->core, i),
        .failures = c->failures,
    };
    (void)snprintf(ret->name, sizeof ret->name, "%s", c->name);
    (void)snprintf(ret->definition, sizeof ret->definition, "%s", c->launch.name);
    for (uint32_t k = 0; k < d->n_slots; k++) {
        const struct gpi_slot *s = &d->slot[k];
        if (s->class != i || !gpi_slot_has_worker(d, s))
            continue;
        ret->workers += gpi_slot_serves(d, s);
        ret->starting += s->state == GPUD_SLOT_STARTING;
        ret->running += s->sent;
    }
    ret->done = c->accepted - ret->queued - ret->running;
}
