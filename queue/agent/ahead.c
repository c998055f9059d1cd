/* SPDX-License-Identifier: MIT */
/* ahead.c - a window on the queue of each shape. */
#include "queue/agent/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "queue/agent/dispatch.h"
#include "queue/agent/needs.h"
#include "queue/agent/workers.h"

/* One shape that has READY tasks. */
struct window {
    uint32_t shape;
    int64_t ready;  /* tasks, those inside included */
    int64_t inside; /* of them, at the dispatcher */
    bool fill;      /* it has changed */
    bool fresh;     /* a task became READY, which may come before those inside */
    bool bad;       /* its bytes are no needs, or of no class: its tasks stay where they are */
    bool known;     /* needs is read */
    struct gpq_class *class; /* of workers; NULL: commands, or there is no such class */
    struct gpq_needs needs;
    struct window *next;
};

/* Of a spec. */
struct properties {
    uint64_t limit;
    bool at_most_once, shell;
};

struct gpq_ahead {
    struct window **bucket;
    size_t room;   /* a power of two */
    size_t open;   /* windows with tasks inside */
    bool full;     /* the dispatcher has refused a task for want of room */
    uint32_t spec; /* that was read last, with its properties */
    struct properties of_spec;
};

static struct window *find(struct gpq_agent *a, uint32_t shape)
{
    struct window *w = a->ahead->bucket[shape & (a->ahead->room - 1)];
    while (w && w->shape != shape)
        w = w->next;
    return w;
}

static struct window *window_of(struct gpq_agent *a, uint32_t shape)
{
    struct window *w = find(a, shape);
    if (w)
        return w;
    w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    struct window **at = &a->ahead->bucket[shape & (a->ahead->room - 1)];
    *w = (struct window){ .shape = shape, .next = *at };
    *at = w;
    return w;
}

static void drop(struct gpq_agent *a, struct window *w)
{
    struct window **at = &a->ahead->bucket[w->shape & (a->ahead->room - 1)];
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (w->known)
        gpq_needs_free(&w->needs);
    free(w);
}

static int add_shape(const struct gpq_shape *s, void *user)
{
    struct gpq_agent *a = user;
    struct window *w = window_of(a, s->id);
    if (!w)
        return GPQ_ENOMEM;
    w->ready = s->ready;
    w->fill = true;
    return 0;
}

int gpq_ahead_open(struct gpq_agent *a, struct gpq_error *e)
{
    a->ahead = calloc(1, sizeof(*a->ahead));
    if (!a->ahead)
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    a->ahead->room = 4096;
    a->ahead->bucket = calloc(a->ahead->room, sizeof(struct window *));
    if (!a->ahead->bucket)
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    return a->store->engine->shapes(a->store, add_shape, a, e);
}

void gpq_ahead_close(struct gpq_agent *a)
{
    if (!a->ahead)
        return;
    for (size_t i = 0; a->ahead->bucket && i < a->ahead->room; i++)
        while (a->ahead->bucket[i])
            drop(a, a->ahead->bucket[i]);
    free(a->ahead->bucket);
    free(a->ahead);
    a->ahead = NULL;
}

static void count_inside(struct gpq_agent *a, struct window *w, int by)
{
    bool was = w->inside > 0;
    w->inside += by;
    a->ahead->open += (size_t)((w->inside > 0) - was);
    w->fill = true;
}

void gpq_ahead_left(struct gpq_agent *a, uint32_t shape)
{
    struct window *w = find(a, shape);
    if (w)
        count_inside(a, w, -1);
}

static void count_ready(struct gpq_agent *a, uint32_t shape, int by)
{
    struct window *w = by > 0 ? window_of(a, shape) : find(a, shape);
    if (!w)
        return;
    w->ready += by;
    w->fill = true;
    w->fresh = w->fresh || by > 0;
}

void gpq_ahead_change(struct gpq_agent *a, const struct gpq_change *c)
{
    struct gpq_unit *u = gpq_work_of(a, c->task);
    if (c->from == GPQ_READY)
        count_ready(a, c->from_shape, -1);
    if (c->to == GPQ_READY)
        count_ready(a, c->shape, 1);
    /* RUNNING follows from a grant of this unit; from READY to READY it has another place */
    if (u && c->from == GPQ_READY && c->to != GPQ_RUNNING && u->phase <= GPQ_GRANTED) {
        gpq_dispatch_leave(a, u);
    }
}

void gpq_ahead_again(struct gpq_agent *a)
{
    a->ahead->full = false;
    for (size_t i = 0; i < a->ahead->room; i++)
        for (struct window *w = a->ahead->bucket[i]; w; w = w->next)
            w->fill = true;
}

void gpq_ahead_room(struct gpq_agent *a, bool room)
{
    a->ahead->full = !room;
}

void gpq_ahead_each(struct gpq_agent *a,
                    void (*fn)(struct gpq_agent *a, uint32_t shape, void *user), void *user)
{
    for (size_t i = 0; i < a->ahead->room; i++)
        for (const struct window *w = a->ahead->bucket[i]; w; w = w->next)
            if (w->ready > 0)
                fn(a, w->shape, user);
}

/* ---- Filling ---- */

static int read_properties(const struct gpq_spec *spec, void *user)
{
    struct properties *ret = user;
    json_t *json = json_loadb(spec->options.data, spec->options.size, 0, NULL);
    json_t *limit = json_object_get(json, "limit");
    if (json_is_integer(limit) && json_integer_value(limit) > 0)
        ret->limit = (uint64_t)json_integer_value(limit);
    ret->shell = json_is_true(json_object_get(json, "shell"));
    ret->at_most_once = spec->at_most_once;
    json_decref(json);
    return 0;
}

static struct properties properties_of(struct gpq_agent *a, uint32_t spec)
{
    struct properties p = { .limit = GPUD_NEVER };
    struct gpq_error e;
    if (a->ahead && a->ahead->spec == spec)
        return a->ahead->of_spec;
    int code = a->store->engine->spec(a->store, spec, read_properties, &p, &e);
    if (code < 0)
        gpq_log("spec %u: %s", spec, e.text);
    if (a->ahead && code == 0) {
        a->ahead->spec = spec;
        a->ahead->of_spec = p;
    }
    return p;
}

uint64_t gpq_limit_of(struct gpq_agent *a, uint32_t spec)
{
    return properties_of(a, spec).limit;
}

bool gpq_shell_of(struct gpq_agent *a, uint32_t spec)
{
    return properties_of(a, spec).shell;
}

/* How many tasks of a shape the dispatcher shall have. */
static int64_t wanted(struct gpq_agent *a, const struct window *w)
{
    const struct gpud_request *r = &w->needs.request[0];
    if (w->class)
        return gpq_workers_ahead(a, w->class, false);
    uint64_t fit = r->devices == 0 ? 0 : a->devices / r->devices;
    if (r->share != 0 && r->share < 10000)
        fit = fit * 10000 / r->share;
    return fit * 2 > GPQ_AHEAD ? (int64_t)(fit * 2) : GPQ_AHEAD;
}

struct first {
    struct gpq_task *task;
    size_t n;
};

static int keep_task(const struct gpq_task *t, void *user)
{
    struct first *f = user;
    f->task[f->n++] = *t;
    return 0;
}

/* Submits a task, or notes it for its claim.  1: it is not inside, and no later one shall be. */
static int let_in(struct gpq_agent *a, struct window *w, const struct gpq_task *t,
                  struct gpq_error *e)
{
    const struct properties p = properties_of(a, t->spec);
    if (!w->class)
        return gpq_dispatch_submit(a, t, w->needs.request, p.limit, e);
    if (p.at_most_once && w->inside >= gpq_workers_ahead(a, w->class, true))
        return 1;
    return gpq_workers_want(a, w->class, t, p.limit, e);
}

/* Reads the first tasks, and lets those in that are not inside.  Those of a command are READY as
 * long as they are inside. */
static void fill_window(struct gpq_agent *a, struct window *w)
{
    int64_t most = wanted(a, w) - (w->class ? w->inside : 0);
    struct gpq_error e = { 0 };
    if (most <= 0)
        return;
    struct first f = { calloc((size_t)most, sizeof(struct gpq_task)), 0 };
    int code = f.task ? a->store->engine->ready(a->store, w->shape, INT32_MAX, INT64_MIN,
                                                (uint32_t)most, keep_task, &f, &e)
                      : GPQ_ENOMEM;
    for (size_t i = 0; code == 0 && i < f.n; i++) {
        if (gpq_work_of(a, f.task[i].id))
            continue;
        code = let_in(a, w, &f.task[i], &e);
        if (code == 0)
            count_inside(a, w, 1);
    }
    free(f.task);
    if (code >= 0) {
        w->fill = w->fresh = false;
    } else if (code == GPQ_EREFUSED) { /* this shape alone, until a device arrives */
        w->fill = w->fresh = false;
        gpq_log("shape %u: %s", w->shape, e.text);
    } else {
        a->ahead->full = true; /* until an outcome, a device or, without memory, a second */
        if (code != GPQ_EFULL)
            gpq_starts_wait(a, e.text);
    }
}

struct shape_call {
    struct window *w;
    struct gpq_error *e;
    int code;
};

static int read_needs(const struct gpq_shape *s, void *user)
{
    struct shape_call *call = user;
    call->code = gpq_needs_parse(s->request, &call->w->needs, call->e);
    return 1;
}

static bool know_needs(struct gpq_agent *a, struct window *w)
{
    struct gpq_error e = { 0 };
    struct shape_call call = { w, &e, GPQ_ENOTFOUND };
    if (w->known || w->bad)
        return !w->bad;
    int code = a->store->engine->shape(a->store, w->shape, read_needs, &call, &e);
    w->known = code == 1 && call.code == 0;
    w->bad = code == 1 && call.code == GPQ_EINVAL;
    if (w->known && w->needs.class_name) {
        w->class = gpq_class_find(a, w->needs.class_name);
        w->bad = !w->class || !w->class->there; /* explain says so */
    }
    if (!w->known)
        gpq_log("shape %u: %s", w->shape, e.text);
    return w->known && !w->bad;
}

/* Whether the window may let tasks in. */
static bool is_open(struct gpq_agent *a, struct window *w)
{
    if (!w->fill || a->ahead->full || (w->inside == 0 && a->ahead->open >= GPQ_SHAPES) ||
        !know_needs(a, w))
        return false;
    return w->class ? !w->class->paused && !a->starts_wait : !a->paused;
}

/* Whether it has few enough.  Tasks of a class are not READY any more once they are claimed. */
static bool is_low(struct gpq_agent *a, const struct window *w)
{
    int64_t more = w->class ? w->ready : w->ready - w->inside;
    return more > 0 && (w->fresh || w->inside <= wanted(a, w) / 2);
}

void gpq_ahead_fill(struct gpq_agent *a)
{
    for (size_t i = 0; i < a->ahead->room && !a->stop.now && !a->ahead->full; i++)
        for (struct window *w = a->ahead->bucket[i], *next; w; w = next) {
            next = w->next;
            if (w->ready == 0 && w->inside == 0) {
                if (w->class)
                    gpq_workers_idle(a, w->class);
                drop(a, w);
            } else if (is_open(a, w) && is_low(a, w)) {
                fill_window(a, w);
            }
        }
}
