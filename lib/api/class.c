/* SPDX-License-Identifier: MIT */
/* class.c - the exported verbs about the classes of a pooled dispatcher: validate, delegate. */
#include "api/class.h"

#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "api/options.h"
#include "api/shared.h"
#include "api/surroundings.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/refused.h"
#include "base/versioned.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"

void gpi_class_birth(struct gpi_class_birth *ret, const struct gpi_start *start,
                     const struct gpi_class_set *set, const struct gpud_options *o)
{
    *ret = (struct gpi_class_birth){
        .set = *set,
        .name = start->name,
        .launch = &start->launch,
        .program_fd = start->program_fd,
        .setup_data = o->setup_data,
        .setup_size = o->setup_shared ? o->setup_shared->size : o->setup_size,
        .setup_fd = o->setup_shared ? o->setup_shared->fd : -1,
    };
    ret->set.definition = start->definition;
}

/* ---- needs ---- */

static int read_needs(struct gpi_needs *ret, const struct gpud_request *needs,
                      struct gpud_error *e)
{
    static const struct gpud_request whole = { .struct_size = sizeof whole, .devices = 1 };

    return gpi_request_read(ret, "needs", needs ? needs : &whole, e);
}

static bool needs_devices(const struct gpi_needs *needs)
{
    for (uint32_t i = 0; i < needs->n; i++)
        if (needs->request[i].devices)
            return true;
    return false;
}

/* ---- the record ---- */

static int check_times(const struct gpud_class *c, struct gpud_error *e)
{
    const struct {
        const char *field;
        uint64_t value;
        bool seed; /* it has no end, and no wait: it is the time that something takes */
    } times[] = {
        { "min_residence", c->min_residence, false },
        { "keep_alive", c->keep_alive, false },
        { "max_wait", c->max_wait, false },
        { "boot_seed", c->boot_seed, true },
        { "unload_seed", c->unload_seed, true },
        { "run_seed", c->run_seed, true },
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof times / sizeof *times; i++)
        if (times[i].seed && times[i].value == GPUD_NEVER)
            r = gpi_fail(e, GPUD_EINVAL, 0, times[i].field,
                         "class.%s is GPUD_NEVER, expected the time that it takes", times[i].field);
        else
            r = gpi_options_time("class.", times[i].field, times[i].value, !times[i].seed, e);
    return r;
}

/* Fields about workers, which the class has not. */
static int check_external(const struct gpud_class *c, struct gpud_error *e)
{
    const struct {
        const char *field;
        uint64_t value;
    } of_workers[] = {
        { "min_workers", c->min_workers },     { "max_workers", c->max_workers },
        { "pinned", c->pinned },               { "min_residence", c->min_residence },
        { "keep_alive", c->keep_alive },       { "boot_seed", c->boot_seed },
        { "unload_seed", c->unload_seed },
    };

    for (size_t i = 0; i < sizeof of_workers / sizeof *of_workers; i++)
        if (of_workers[i].value)
            return gpi_fail(e, GPUD_EINVAL, 0, of_workers[i].field,
                            "class.%s is %llu, but residence is EXTERNAL: it has no workers, "
                            "expected 0",
                            of_workers[i].field, (unsigned long long)of_workers[i].value);
    return check_times(c, e);
}

static int check_class(const struct gpud_class *c, struct gpud_error *e)
{
    if (!c->name || !*c->name)
        return gpi_fail(e, GPUD_EINVAL, 0, "name", "class.name is %s, expected 1 to %u bytes",
                        c->name ? "empty" : "NULL", GPI_NAME_SIZE - 1);
    if (strnlen(c->name, GPI_NAME_SIZE) == GPI_NAME_SIZE)
        return gpi_fail(e, GPUD_EINVAL, 0, "name",
                        "class.name \"%.*s...\" is too long, the maximum is %u bytes",
                        (int)GPI_NAME_SIZE - 1, c->name, GPI_NAME_SIZE - 1);
    if (c->residence > GPUD_EXTERNAL)
        return gpi_fail_most(e, "class.", "residence", c->residence, GPUD_EXTERNAL);
    if (c->residence == GPUD_EXTERNAL)
        return check_external(c, e);
    if (c->pinned > 1)
        return gpi_fail_most(e, "class.", "pinned", c->pinned, 1);
    if (c->pinned && c->residence == GPUD_TRANSIENT)
        return gpi_fail(e, GPUD_EINVAL, 0, "pinned",
                        "class.pinned is 1, but residence is TRANSIENT: its workers do not stay");
    if (c->max_workers && c->min_workers > c->max_workers)
        return gpi_fail(e, GPUD_EINVAL, 0, "min_workers",
                        "class.min_workers is %u, the maximum is %u (max_workers)", c->min_workers,
                        c->max_workers);
    if (c->min_workers && c->residence == GPUD_TRANSIENT)
        return gpi_fail(e, GPUD_EINVAL, 0, "min_workers",
                        "class.min_workers is %u, but residence is TRANSIENT: its workers do not "
                        "stay",
                        c->min_workers);
    return check_times(c, e);
}

static uint64_t value_or(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

static void convert_class(struct gpi_plan_class *ret, const struct gpud_class *c)
{
    static const enum gpi_residence residence[] = { [GPUD_RESIDENT] = GPI_RESIDENT,
                                                    [GPUD_TRANSIENT] = GPI_TRANSIENT,
                                                    [GPUD_EXTERNAL] = GPI_EXTERNAL };

    *ret = (struct gpi_plan_class){
        .residence = residence[c->residence],
        .min_workers = c->min_workers,
        .max_workers = c->max_workers ? c->max_workers : UINT32_MAX,
        .pinned = c->pinned == 1,
        .min_residence = value_or(c->min_residence, 30 * GPI_S),
        .max_wait = value_or(c->max_wait, 300 * GPI_S),
        .keep_alive = value_or(c->keep_alive, GPI_NEVER),
        .boot = value_or(c->boot_seed, 60 * GPI_S),
        .unload = value_or(c->unload_seed, 5 * GPI_S),
        .run = value_or(c->run_seed, GPI_S),
    };
}

/* The spawner that a dispatcher has makes the workers of all its classes.  One of its own is the
 * bundled program, which cannot fork the definitions of gpud_init. */
static int check_spawner(const struct gpi_start *s, bool own, struct gpud_error *e)
{
    if (s->own_spawner && !own)
        return gpi_fail(e, GPUD_ECREDS, 0, "start",
                        "credentials have changed since the dispatcher was created, and its "
                        "spawner has the former ones: create another dispatcher");
    if (own && s->launch.start == GPUD_START_FORK)
        return gpi_fail(e, GPUD_ECREDS, 0, "start",
                        "the dispatcher was created before gpud_init or with other credentials, so "
                        "its workers cannot be forked: set start to EXEC");
    return 0;
}

/* How its workers start, if the class has any. */
static int read_start(struct gpi_class_draft *x, const struct gpi_process *p, bool own,
                      struct gpud_error *e)
{
    const struct gpud_options *o = &x->options;
    int r = gpi_options_read_class(&x->set, o, e);

    if (r == 0)
        r = gpi_start_choose(&x->start, o, p, e);
    if (r == 0)
        r = check_spawner(&x->start, own, e);
    return r ? r : gpi_surroundings_read(&x->start.launch, o, e);
}

static int read_options(struct gpi_class_draft *x, const struct gpud_class *c,
                        const struct gpi_process *p, bool own, struct gpud_error *e)
{
    const struct gpud_options *given = c->options;
    struct gpud_options *o = &x->options;
    const size_t least = offsetof(struct gpud_options, queue_size);
    int r = given ? gpi_versioned_read(o, sizeof *o, given, least) : 0;

    if (r)
        return gpi_fail_size(e, r, "options", given->struct_size, sizeof *o);
    if (c->residence != GPUD_EXTERNAL)
        return read_start(x, p, own, e);
    x->start.program_fd = -1;
    x->start.name = "";
    return gpi_options_read_external(&x->set, o, e);
}

int gpi_class_read(struct gpi_class_draft *ret, const struct gpud_class *added,
                   const struct gpi_process *p, bool own, struct gpud_error *e)
{
    struct gpi_needs needs;
    struct gpi_plan_class plan;
    struct gpud_class c;
    int r = gpi_versioned_read(&c, sizeof c, added, offsetof(struct gpud_class, options));

    if (r)
        return gpi_fail_size(e, r, "class", added->struct_size, sizeof c);
    r = check_class(&c, e);
    if (r)
        return r;
    convert_class(&plan, &c);
    r = read_needs(&needs, c.needs, e);
    if (r == 0)
        r = read_options(ret, &c, p, own, e);
    if (r == 0 && c.residence != GPUD_EXTERNAL && needs_devices(&needs))
        r = gpi_surroundings_on_gpus(ret->options.env, e);
    if (r)
        return r;
    plan.grace = ret->set.class.grace;
    gpi_class_birth(&ret->birth, &ret->start, &ret->set.class, &ret->options);
    ret->birth.class_name = c.name;
    ret->birth.plan = plan;
    ret->birth.needs = needs;
    return 0;
}

/* ---- the verbs ---- */

static int check_named(const gpud_dispatcher *d, const char *name, struct gpud_error *e)
{
    const int r = gpi_check_pooled(d, e);

    return r || name ? r : gpi_fail_null(e, "name");
}

static void remark(gpud_dispatcher *d, const struct gpi_class_draft *x)
{
    pthread_mutex_lock(&d->lock);
    gpi_log(d, x->start.remark_level, GPUD_NO_SLOT, "class %s: %s", x->birth.class_name,
            x->start.remark);
    gpi_drive_wake(d);
    pthread_mutex_unlock(&d->lock);
}

int gpud_dispatcher_class_add(gpud_dispatcher *d, const struct gpud_class *added,
                              struct gpud_error *reterr)
{
    struct gpi_class_draft *x;
    int r = gpi_check_pooled(d, reterr);

    if (r)
        return r;
    gpi_refused_forget();
    if (!added)
        return gpi_fail_null(reterr, "added");
    x = calloc(1, sizeof *x);
    if (!x)
        return gpi_fail(reterr, GPUD_ENOMEM, 0, "", "no memory for a class");
    r = gpi_class_read(x, added, gpi_process(), d->own != NULL, reterr);
    if (r == 0)
        r = gpi_class_add(d, &x->birth, reterr);
    if (r == 0 && x->start.remark_level)
        remark(d, x);
    free(x);
    return r;
}

int gpud_dispatcher_class_set(gpud_dispatcher *d, const char *name, uint32_t what,
                              struct gpud_error *reterr)
{
    static const enum gpi_plan_class_what known[] = {
        [GPUD_CLASS_PAUSE] = GPI_CLASS_PAUSE,   [GPUD_CLASS_RESUME] = GPI_CLASS_RESUME,
        [GPUD_CLASS_DRAIN] = GPI_CLASS_DRAIN,   [GPUD_CLASS_LOAD] = GPI_CLASS_LOAD,
        [GPUD_CLASS_UNLOAD] = GPI_CLASS_UNLOAD, [GPUD_CLASS_PIN] = GPI_CLASS_PIN,
        [GPUD_CLASS_UNPIN] = GPI_CLASS_UNPIN,
    };
    const int r = check_named(d, name, reterr);

    if (r)
        return r;
    if (what > GPUD_CLASS_UNPIN)
        return gpi_fail_most(reterr, "", "what", what, GPUD_CLASS_UNPIN);
    return gpi_class_set(d, name, known[what], reterr);
}

int gpud_dispatcher_class_remove(gpud_dispatcher *d, const char *name, uint32_t how,
                                 struct gpud_error *reterr)
{
    const int r = check_named(d, name, reterr);

    if (r)
        return r;
    if (how > GPUD_FINISH_NOW)
        return gpi_fail_most(reterr, "", "how", how, GPUD_FINISH_NOW);
    return gpi_class_remove(d, name, how, reterr);
}

int gpud_dispatcher_classes(gpud_dispatcher *d, struct gpud_class_stats *rows, size_t n)
{
    uint32_t stride;
    int r = gpi_check_pooled(d, NULL);

    if (r)
        return r;
    if (n && !rows)
        return GPUD_EINVAL;
    if (n && !gpi_versioned_sized(rows[0].struct_size, offsetof(struct gpud_class_stats, queued)))
        return GPUD_ESTRUCT;
    stride = n ? rows[0].struct_size : 0;
    pthread_mutex_lock(&d->lock);
    for (uint32_t i = 0; i < d->n_classes; i++) {
        struct gpud_class_stats row = GPUD_CLASS_STATS_INIT;
        if (d->class[i].removed)
            continue;
        if ((size_t)r < n) {
            gpi_class_report(d, i, &row);
            gpi_versioned_write((char *)rows + (size_t)r * stride, stride, &row, sizeof row);
        }
        r++;
    }
    pthread_mutex_unlock(&d->lock);
    return r;
}
