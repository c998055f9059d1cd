/* SPDX-License-Identifier: MIT */
/* waiting.c - why the first waiting task of each shape does not start. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "queue/agent/ahead.h"
#include "queue/agent/classes.h"
#include "queue/agent/look.h"
#include "queue/agent/needs.h"
#include "queue/agent/now.h"
#include "queue/agent/reasons.h"
#include "queue/agent/work.h"
#include "queue/agent/workers.h"

enum {
    SHAPES = 64,
    CLASSES = 64,
    BATCHES = 64, /* with at_once */
    ROWS = 256,
    NAME = GPQ_CLASS_NAME,
    TEXT = GPQ_SPAN_TEXT
};

/* The first waiting task of a shape. */
struct first {
    uint64_t task;
    uint32_t shape;
    const char *class;
    uint32_t gpus;    /* of its preferred way to run */
    bool has_workers; /* it needs a worker of its class */
};

struct waiting {
    struct gpq_look *look;
    int shapes;                        /* that were examined */
    uint32_t told[SHAPES + CLASSES + BATCHES]; /* that have a reason */
    size_t n_told;
    struct gpq_unit *claimed[CLASSES]; /* of each class: its first task that waits for a worker */
    struct gpud_reason row[ROWS];      /* of the present task */
    size_t rows;
};

/* ---- Reasons of waiting tasks ---- */

static void tell(struct waiting *w, const struct first *f, const char *reason, const char *key,
                 const char *more)
{
    char subject[16], text[TEXT];
    snprintf(subject, sizeof(subject), "%" PRIu32, f->shape);
    snprintf(text, sizeof(text), "%u.%u%s%.200s", GPQ_BATCH_OF(f->task), GPQ_NUMBER_OF(f->task),
             *more ? ": " : "", more);
    gpq_span_say(w->look->spans, "reason", subject, reason, key, text);
    w->told[w->n_told++] = f->shape;
}

static void see_reason(struct waiting *w, const struct first *f, const char *reason,
                       const char *more)
{
    tell(w, f, reason, "", more);
}

/* Whether the devices that have no reason are free for it.  Of a class that may boot no worker the
 * reasons are of the class, or of its workers, and none is of a device. */
static bool tells_of_devices(const struct waiting *w, const struct first *f)
{
    if (w->rows > ROWS)
        return false;
    for (size_t i = 0; f->has_workers && i < w->rows; i++) {
        const struct gpud_reason *r = &w->row[i];
        bool own = (r->kind == GPUD_REASON_BUSY || r->kind == GPUD_REASON_BOOTING) &&
                   strcmp(r->class_name, f->class) == 0;
        if (own || !*r->device)
            return false;
    }
    return true;
}

/* It has no task, nor a worker that comes or goes. */
static bool is_free(const struct gpud_device_info *d)
{
    return d->kind != GPUD_DEVICE_CPU && d->task_id == 0 && d->draining == 0 && d->paused == 0 &&
           (d->state == GPUD_DEVICE_STATE_IDLE || d->state == GPUD_DEVICE_STATE_READY);
}

/* The older task has it. */
static bool may_keep(const struct waiting *w, int i)
{
    return is_free(&w->look->device[i]) && !w->look->told[i].in_way &&
           w->look->told[i].kept_for == 0;
}

/* It lacks devices: those that are free stay so until it has all of them. */
static void note_kept(struct waiting *w, const struct first *f)
{
    uint32_t free = 0;
    for (int i = 0; i < w->look->n; i++)
        free += may_keep(w, i);
    if (free >= f->gpus)
        return;
    for (int i = 0; i < w->look->n; i++)
        if (may_keep(w, i)) {
            w->look->told[i].kept_for = f->task;
            w->look->told[i].kept_shape = f->shape;
            w->look->told[i].gpus = f->gpus;
        }
}

static void note_reasons(struct waiting *w, const struct first *f)
{
    for (int i = 0; i < w->look->n; i++)
        w->look->told[i].in_way = false;
    for (size_t i = 0; i < w->rows && i < ROWS; i++) {
        const struct gpud_reason *r = &w->row[i];
        int at = gpq_look_index(w->look, r->device);
        if (at < 0)
            continue;
        w->look->told[at].in_way |= r->variant == 0;
        if (r->kind == GPUD_REASON_FOREIGN)
            w->look->told[at].foreign = *r;
        if (r->kind == GPUD_REASON_UNLOADING)
            snprintf(w->look->told[at].wanted_by, NAME, "%s", f->class);
    }
    if (tells_of_devices(w, f))
        note_kept(w, f);
}

/* The first reason is the one that may end first.  None: the task starts at once. */
static void explain(struct gpq_agent *a, struct waiting *w, const struct first *f, uint64_t id,
                    const struct gpud_task_desc *desc)
{
    char text[TEXT] = "";
    w->row[0] = (struct gpud_reason)GPUD_REASON_INIT;
    if (gpud_dispatcher_explain(a->dispatcher, id, desc, w->row, ROWS, &w->rows, NULL) < 0 ||
        w->rows == 0)
        return;
    note_reasons(w, f);
    gpq_reason_text_of(a, &w->row[0], text, sizeof(text));
    see_reason(w, f, gpud_reason_name(w->row[0].kind), text);
}

/* ---- Shapes of commands ---- */

struct shape_needs {
    char class[NAME];
    uint32_t gpus;
};

static int read_needs(const struct gpq_shape *s, void *user)
{
    struct shape_needs *ret = user;
    struct gpq_needs needs;
    struct gpq_error e;
    if (gpq_needs_parse(s->request, &needs, &e) < 0)
        return 1;
    if (needs.class_name)
        snprintf(ret->class, NAME, "%s", needs.class_name);
    ret->gpus = needs.n != 0 ? needs.request[0].devices : 0;
    gpq_needs_free(&needs);
    return 1;
}

static void see_command(struct gpq_agent *a, struct waiting *w, const struct first *f)
{
    const struct gpq_unit *u = gpq_work_of(a, f->task);
    if (a->paused || a->starts_wait)
        see_reason(w, f, a->paused ? "paused" : "starts wait", a->paused ? "" : a->wait_text);
    else if (u && u->phase == GPQ_INSIDE)
        explain(a, w, f, u->id, NULL);
}

/* ---- Shapes of classes ---- */

/* Of each class the first task that is claimed, and waits for a worker. */
static void find_claimed(struct gpq_agent *a, struct gpq_unit *u, void *user)
{
    struct waiting *w = user;
    size_t at = u->class ? (size_t)(u->class - a->classes->list) : CLASSES;
    if (at < CLASSES && u->phase == GPQ_RUNS && (!w->claimed[at] || u->id < w->claimed[at]->id) &&
        !gpq_workers_run(a, u))
        w->claimed[at] = u;
}

static void see_claimed(struct gpq_agent *a, struct waiting *w)
{
    for (size_t i = 0; a->classes && i < a->classes->n && i < CLASSES; i++) {
        const struct gpq_class *class = &a->classes->list[i];
        const struct gpq_unit *u = w->claimed[i];
        if (u)
            explain(a, w, &(struct first){ u->task, u->shape, class->name, class->gpus, true },
                    u->id, NULL);
    }
}

/* A task that is claimed comes before those that are not: then the row of the shape is its. */
static bool has_claimed(const struct waiting *w, uint32_t shape)
{
    for (size_t i = 0; i < CLASSES; i++)
        if (w->claimed[i] && w->claimed[i]->shape == shape)
            return true;
    return false;
}

static void see_unclaimed(struct gpq_agent *a, struct waiting *w, struct first *f)
{
    const struct gpq_class *class = gpq_class_find(a, f->class);
    struct gpud_task_desc desc = GPUD_TASK_DESC_INIT;
    char text[TEXT];
    if (!gpq_class_usable(a, f->class, text, sizeof(text))) {
        see_reason(w, f, "CLASS", text);
    } else if (!has_claimed(w, f->shape)) {
        f->gpus = class->gpus;
        desc.class_name = f->class;
        explain(a, w, f, 0, &desc);
    }
}

/* ---- Shapes ---- */

static int first_task(const struct gpq_task *t, void *user)
{
    *(uint64_t *)user = t->id;
    return 1;
}

static void see_shape(struct gpq_agent *a, uint32_t shape, void *user)
{
    const struct gpq_engine *o = a->store->engine;
    struct waiting *w = user;
    struct shape_needs needs = { .class = GPQ_COMMANDS };
    struct first f = { .shape = shape, .class = needs.class };
    struct gpq_error e;
    if (w->shapes++ >= SHAPES ||
        o->ready(a->store, shape, INT32_MAX, INT64_MIN, 1, first_task, &f.task, &e) < 0 ||
        f.task == 0 || o->shape(a->store, shape, read_needs, &needs, &e) < 0)
        return;
    f.gpus = needs.gpus;
    f.has_workers = strcmp(f.class, GPQ_COMMANDS) != 0;
    if (f.has_workers)
        see_unclaimed(a, w, &f);
    else
        see_command(a, w, &f);
}

/* ---- Turns ---- */

/* Its batch has as many tasks at once as it may have.  A READY task of the shape comes first, but
 * if that starts at once, this reason goes on. */
static void see_turn(struct gpq_agent *a, const struct gpq_task *t, uint32_t at_once, void *user)
{
    struct waiting *w = user;
    const struct first f = { .task = t->id, .shape = t->shape };
    char text[64], batch[16];
    struct gpq_error e;
    uint64_t ready;
    for (size_t i = 0; i < w->n_told; i++)
        if (w->told[i] == t->shape)
            return;
    if (w->shapes > SHAPES && a->store->engine->ready(a->store, t->shape, INT32_MAX, INT64_MIN, 1,
                                                      first_task, &ready, &e) != 0)
        return; /* it was not examined */
    snprintf(batch, sizeof(batch), "%" PRIu32, GPQ_BATCH_OF(t->id));
    snprintf(text, sizeof(text), "at_once %" PRIu32 " of batch %s is reached", at_once, batch);
    tell(w, &f, "at once", batch, text);
}

void gpq_waiting_look(struct gpq_agent *a, struct gpq_look *l)
{
    struct waiting w = { .look = l };
    if (a->classes && a->classes->n != 0)
        gpq_work_each(a, find_claimed, &w);
    see_claimed(a, &w);
    gpq_ahead_each(a, see_shape, &w);
    gpq_now_turns(a, BATCHES, see_turn, &w);
}
