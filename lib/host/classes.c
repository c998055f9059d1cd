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
#include "device/kin.h"
#include "gpudispatch/sched.h"
#include "host/act.h"
#include "host/class.h"
#include "host/core.h"
#include "host/device.h"
#include "host/dispatcher.h"
#include "host/drive.h"
#include "host/event.h"
#include "host/external.h"
#include "host/slot.h"
#include "host/task.h"
#include "sched/plan.h"

void gpi_class_settings(const struct gpi_class *c, struct gpi_class_settings *ret)
{
    *ret = (struct gpi_class_settings){
        .ahead = c->set.sent_ahead,
        .batch = c->set.max_batch,
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

/* Returns a number for a new class: one that was never used, or one of a removed class of which no
 * event is left; -1: there is none. */
static int free_number(const gpud_dispatcher *d)
{
    bool named[GPI_CLASSES_MAX] = { false };

    if (d->n_classes < GPI_CLASSES_MAX)
        return (int)d->n_classes;
    for (uint32_t i = 0; i < d->never_used; i++)
        named[d->task[i].class] |= d->task[i].state != GPI_TASK_FREE;
    gpi_notes_name(d, named);
    for (uint32_t i = 0; i < d->n_classes; i++)
        if (d->class[i].removed && d->class[i].unused && !named[i])
            return (int)i;
    return -1;
}

int gpi_class_unknown(const char *name, struct gpud_error *e)
{
    return gpi_fail(e, GPUD_ENODEFINITION, 0, "name", "no class has the name \"%.80s\"", name);
}

/* [R9] */
static int check_fit(const gpud_dispatcher *d, const struct gpi_class_birth *b,
                     struct gpud_error *e)
{
    const struct gpi_plan_class *p = &b->plan;
    const uint32_t holds = gpi_sched_holds(d->core, p->need, p->n_needs);
    const int r = gpi_request_fits(d, b->class_name, "needs", p->need, p->n_needs, e);

    if (r || b->plan.min_workers <= holds)
        return r;
    return gpi_fail(e, GPUD_EDEVICE, 0, "min_workers",
                    "class %.63s: min_workers is %u, but at most %u workers fit beside each other "
                    "with their shares and memory",
                    b->class_name, b->plan.min_workers, holds);
}

/* `name`: the class, NULL if it is being added. */
static int check_visible(const struct gpi_device *id, uint32_t visible, const char *name,
                         struct gpud_error *e)
{
    if (visible != GPUD_VISIBLE_INDEX || !gpi_device_is_instance(id))
        return 0;
    return gpi_fail(e, GPUD_EINVAL, 0, "visible",
                    "visible is INDEX%s%.63s, but %s is a MIG instance and has no number: use "
                    "AUTO or UUID",
                    name ? " for class " : "", name ? name : "", id->name);
}

static int check_all_visible(const gpud_dispatcher *d, const struct gpi_class_birth *b,
                             struct gpud_error *e)
{
    int r = 0;

    for (uint32_t i = 0; i < d->dev.n && r == 0; i++)
        if (d->dev.row[i].here)
            r = check_visible(&d->dev.row[i].id, b->set.visible, NULL, e);
    return r;
}

int gpi_classes_check_visible(const gpud_dispatcher *d, const struct gpi_device *id,
                              struct gpud_error *e)
{
    int r = 0;

    for (uint32_t i = 0; i < d->n_classes && r == 0; i++)
        if (!d->class[i].removed)
            r = check_visible(id, d->class[i].set.visible, d->class[i].name, e);
    return r;
}

static int find_places(gpud_dispatcher *d, struct gpi_class_birth *b, struct gpud_error *e)
{
    const int r = gpi_request_find_places(d, &b->needs, e);

    b->plan.n_needs = b->needs.n;
    memcpy(b->plan.need, b->needs.request, sizeof b->plan.need);
    return r;
}

/* Returns a number for the class, or a code. */
static int check_add(gpud_dispatcher *d, struct gpi_class_birth *b, struct gpud_error *e)
{
    const int number = free_number(d);
    int r;

    if (d->close.closing || d->close.ending || atomic_load(&d->close.stop_asked))
        return gpi_fail(e, GPUD_ECLOSED, 0, "", "%s", gpud_error_text(GPUD_ECLOSED));
    if (gpi_class_find(d, b->class_name) >= 0)
        return gpi_fail(e, GPUD_EBUSY, 0, "name", "another class has the name \"%s\"",
                        b->class_name);
    if (number < 0)
        return gpi_fail(e, GPUD_EFULL, 0, "",
                        "the maximum is %u classes per dispatcher, removed ones with events "
                        "included",
                        GPI_CLASSES_MAX);
    if (b->plan.min_workers > d->set.max_workers)
        return gpi_fail(e, GPUD_EINVAL, 0, "min_workers",
                        "class.min_workers is %u, the dispatcher's max_workers is %u",
                        b->plan.min_workers, d->set.max_workers);
    r = check_all_visible(d, b, e);
    if (r == 0)
        r = find_places(d, b, e);
    if (r == 0)
        r = check_fit(d, b, e);
    return r ? r : number;
}

static int take_parts(gpud_dispatcher *d, struct gpi_class *c, const struct gpi_class_birth *b,
                      struct gpud_error *e)
{
    const char *name = gpi_keep_name(d, b->class_name);
    int r;

    if (!name || (b->plan.residence == GPI_EXTERNAL && gpi_grants_init(d)))
        return gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for a class");
    c->name = name;
    if (b->plan.residence == GPI_EXTERNAL) /* without workers */
        return 0;
    r = gpi_class_copy_setup(d, c, b);
    if (r)
        return gpi_fail(e, r, 0, "setup_size",
                        "setup_size is %llu, and the half of payload_budget (%llu) for task data "
                        "has less room now",
                        (unsigned long long)b->setup_size,
                        (unsigned long long)d->set.payload_budget);
    r = gpi_class_keep_setup(c, b);
    if (r == 0)
        r = gpi_class_keep_launch(c, b);
    return r ? gpi_fail(e, r, 0, "", "%s", gpud_error_text(r)) : 0;
}

static void drop_parts(gpud_dispatcher *d, struct gpi_class *c, const struct gpi_class_birth *b)
{
    if (c->setup.size && b->setup_fd < 0)
        gpi_chunks_free(&d->arena.input_chunks, c->setup.off);
    gpi_class_fini(c);
}

/* Returns how many tasks of the resident class may run at a time for their CPU slots.  More
 * workers would only hold memory, and seats. */
static uint32_t most_at_once(const gpud_dispatcher *d, const struct gpi_plan_class *plan)
{
    uint32_t most = 0;

    for (uint32_t i = 0; i < plan->n_needs; i++) {
        const uint32_t cpus = plan->need[i].cpus;
        const uint32_t n = cpus ? d->set.cpus / cpus : UINT32_MAX;
        most = n > most ? n : most;
    }
    return most > plan->min_workers ? most : plan->min_workers;
}

/* The setup data take room that task data could have. */
static void account(gpud_dispatcher *d, struct gpi_class *c, uint64_t taken)
{
    c->taken = taken;
    c->lost = taken < d->arena.most ? taken : d->arena.most;
    d->arena.base += taken;
    d->arena.most -= c->lost;
}

void gpi_class_free_setup(gpud_dispatcher *d, const struct gpi_class *c)
{
    if (c->taken == 0)
        return;
    gpi_chunks_free(&d->arena.input_chunks, c->setup.off);
    d->arena.base -= c->taken;
    d->arena.most += c->lost;
    gpi_room_made(d);
}

static int add(gpud_dispatcher *d, struct gpi_class_birth *b, struct gpud_error *e)
{
    const uint64_t used = gpi_chunks_used(&d->arena.input_chunks);
    const int number = check_add(d, b, e);
    struct gpi_class_settings set;
    struct gpi_class *c;
    int r;

    if (number < 0)
        return number;
    c = &d->class[number];
    gpi_class_init(c, b);
    c->plan.grace = c->set.grace;
    /* In a transient class tasks may have requests of their own. */
    if (c->plan.residence == GPI_RESIDENT && c->plan.max_workers > most_at_once(d, &c->plan))
        c->plan.max_workers = most_at_once(d, &c->plan);
    r = take_parts(d, c, b, e);
    if (r == 0) {
        gpi_class_settings(c, &set);
        gpi_core_note(d, "class", (uint32_t)number, "name", c->name);
        if (gpi_core_class_add(d, (uint32_t)number, &set, &c->plan))
            r = gpi_fail(e, GPUD_ENOMEM, 0, "", "no memory for a class");
    }
    if (r) {
        drop_parts(d, c, b);
        c->removed = c->unused = true;
        return r;
    }
    account(d, c, gpi_chunks_used(&d->arena.input_chunks) - used);
    d->n_classes += (uint32_t)number == d->n_classes;
    gpi_devices_rouse(d);
    gpi_decide(d);
    return 0;
}

int gpi_class_add(gpud_dispatcher *d, struct gpi_class_birth *b, struct gpud_error *e)
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

static void set(gpud_dispatcher *d, uint32_t i, enum gpi_plan_class_what what)
{
    struct gpi_class *c = &d->class[i];
    const bool paused = gpi_sched_is_paused(d->core, i), failed = c->failed;

    if (what == GPI_CLASS_PIN || what == GPI_CLASS_UNPIN)
        c->plan.pinned = what == GPI_CLASS_PIN;
    if (what == GPI_CLASS_RESUME || what == GPI_CLASS_LOAD) {
        c->failed = false;
        c->why = NULL;
    }
    c->loads = what == GPI_CLASS_LOAD ? c->up == 0
               : what == GPI_CLASS_UNLOAD || what == GPI_CLASS_DRAIN ? 0 : c->loads;
    gpi_devices_rouse(d);
    gpi_core_class_set(d, d->now, i, what);
    d->act(d);
    if (!paused && gpi_sched_is_paused(d->core, i))
        gpi_class_tell(d, i, GPUD_CHANGE_PAUSED, "");
    else if ((paused && !gpi_sched_is_paused(d->core, i)) || failed != c->failed)
        gpi_class_tell(d, i, GPUD_CHANGE_RESUMED, "");
    gpi_decide(d);
    gpi_ready_changed(d);
    gpi_drive_wake(d);
}

static bool may_set(const struct gpi_class *c, enum gpi_plan_class_what what)
{
    if (c->plan.residence == GPI_EXTERNAL)
        return what == GPI_CLASS_PAUSE || what == GPI_CLASS_RESUME || what == GPI_CLASS_DRAIN;
    return (what != GPI_CLASS_LOAD && what != GPI_CLASS_PIN) || c->plan.residence == GPI_RESIDENT;
}

static int refuse_set(const char *name, bool external, struct gpud_error *e)
{
    if (external)
        return gpi_fail(e, GPUD_EINVAL, 0, "what",
                        "class %.63s is EXTERNAL: it has no workers: no LOAD, UNLOAD, PIN, UNPIN",
                        name);
    return gpi_fail(e, GPUD_EINVAL, 0, "what",
                    "class %.63s is TRANSIENT: its workers start for a task, and do not stay: no "
                    "LOAD, no PIN",
                    name);
}

int gpi_class_set(gpud_dispatcher *d, const char *name, enum gpi_plan_class_what what,
                  struct gpud_error *e)
{
    bool may, removing, external = false;
    int i;

    pthread_mutex_lock(&d->lock);
    d->now = gpi_now();
    i = gpi_class_find(d, name);
    removing = i >= 0 && d->class[i].removing;
    may = i >= 0 && !removing && may_set(&d->class[i], what);
    external = i >= 0 && d->class[i].plan.residence == GPI_EXTERNAL;
    if (may)
        set(d, (uint32_t)i, what);
    pthread_mutex_unlock(&d->lock);
    if (i < 0)
        return gpi_class_unknown(name, e);
    if (removing)
        return gpi_fail(e, GPUD_ECLOSED, 0, "name", "class %.63s is being removed", name);
    return may ? 0 : refuse_set(name, external, e);
}

/* ---- report ---- */

static uint64_t oldest_wait(const gpud_dispatcher *d, uint32_t class)
{
    const uint64_t now = gpi_now();
    const uint32_t oldest = gpi_sched_oldest(d->core, class);
    const uint64_t since = oldest == GPI_NOWHERE ? now : d->task[oldest].queued_at;

    return now > since ? now - since : 0;
}

static void report_times(const gpud_dispatcher *d, uint32_t class, struct gpud_class_stats *ret)
{
    struct gpi_plan_times t;

    gpi_sched_times(d->core, class, &t);
    ret->boot_p10 = t.boot.p10;
    ret->boot_p50 = t.boot.p50;
    ret->boot_p90 = t.boot.p90;
    ret->unload_p10 = t.unload.p10;
    ret->unload_p50 = t.unload.p50;
    ret->unload_p90 = t.unload.p90;
    ret->run_p10 = t.run.p10;
    ret->run_p50 = t.run.p50;
    ret->run_p90 = t.run.p90;
}

void gpi_class_report(gpud_dispatcher *d, uint32_t i, struct gpud_class_stats *ret)
{
    const struct gpi_class *c = &d->class[i];

    *ret = (struct gpud_class_stats){
        .struct_size = sizeof *ret,
        .paused = gpi_sched_is_paused(d->core, i),
        .pinned = c->plan.pinned,
        .removing = c->removing,
        .failed = gpi_sched_has_failed(d->core, i),
        .queued = gpi_sched_queued_of(d->core, i),
        .failures = c->failures,
        .oldest_wait = oldest_wait(d, i),
    };
    report_times(d, i, ret);
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
    ret->running += gpi_grants_of(d, i);
    ret->done = c->accepted - ret->queued - ret->running;
}
