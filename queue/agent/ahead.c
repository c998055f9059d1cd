/* SPDX-License-Identifier: MIT */
/* ahead.c - a window on the queue of each shape. */
#include "queue/agent/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "queue/agent/dispatch.h"
#include "queue/agent/points.h"
#include "queue/agent/windows.h"
#include "queue/agent/workers.h"

/* Of a spec. */
struct properties {
    uint64_t limit;
    bool at_most_once, shell;
};

struct gpq_ahead {
    struct gpq_windows windows;
    size_t open;   /* windows of commands with tasks inside */
    size_t most;   /* of these */
    bool full;     /* the dispatcher has refused a task for want of room */
    uint32_t spec; /* that was read last, with its properties */
    struct properties of_spec;
};

/* Whether the shape is of a class of workers; all other needs are read when it opens. */
static void see_class(struct gpq_agent *a, struct gpq_window *w, struct gpq_bytes request)
{
    struct gpq_needs needs;
    struct gpq_error e;
    int code = GPQ_EINVAL;
    if (memmem(request.data, request.size, "\"class\"", 7))
        code = gpq_needs_parse(request, &needs, &e);
    w->seen = code != GPQ_ENOMEM;
    if (code < 0)
        return;
    if (needs.class_name)
        w->class = gpq_class_find(a, needs.class_name);
    gpq_needs_free(&needs);
}

/* To be looked at by the next gpq_ahead_fill. */
static void touch(struct gpq_agent *a, struct gpq_window *w)
{
    w->fill = true;
    w->rests = false;
    gpq_windows_change(&a->ahead->windows, w);
}

static int add_shape(const struct gpq_shape *s, void *user)
{
    struct gpq_agent *a = user;
    struct gpq_window *w = gpq_windows_get(&a->ahead->windows, s->id);
    if (!w)
        return GPQ_ENOMEM;
    see_class(a, w, s->request);
    w->ready = s->ready;
    w->priority = s->priority;
    w->order = s->order;
    w->stale = false;
    touch(a, w);
    return 0;
}

int gpq_ahead_open(struct gpq_agent *a, struct gpq_error *e)
{
    a->ahead = calloc(1, sizeof(*a->ahead));
    if (!a->ahead || gpq_windows_open(&a->ahead->windows) < 0)
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    a->ahead->most = gpq_shapes_limit(GPQ_SHAPES);
    return a->store->engine->shapes(a->store, add_shape, a, e);
}

void gpq_ahead_close(struct gpq_agent *a)
{
    if (!a->ahead)
        return;
    gpq_windows_close(&a->ahead->windows);
    free(a->ahead);
    a->ahead = NULL;
}

static void count_inside(struct gpq_agent *a, struct gpq_window *w, int by)
{
    bool was = w->inside > 0;
    w->inside += by;
    if (!w->class)
        a->ahead->open += (size_t)((w->inside > 0) - was);
}

void gpq_ahead_left(struct gpq_agent *a, uint32_t shape)
{
    struct gpq_window *w = gpq_windows_find(&a->ahead->windows, shape);
    if (!w)
        return;
    count_inside(a, w, -1);
    touch(a, w);
}

static void count_ready(struct gpq_agent *a, uint32_t shape, int by)
{
    struct gpq_windows *all = &a->ahead->windows;
    struct gpq_window *w = by > 0 ? gpq_windows_get(all, shape) : gpq_windows_find(all, shape);
    if (!w)
        return;
    w->ready += by;
    w->stale = true;
    w->fresh = w->fresh || by > 0;
    touch(a, w);
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
    struct gpq_windows *all = &a->ahead->windows;
    a->ahead->full = false;
    for (size_t i = 0; i < all->room; i++)
        for (struct gpq_window *w = all->bucket[i]; w; w = w->next)
            touch(a, w);
}

void gpq_ahead_room(struct gpq_agent *a, bool room)
{
    a->ahead->full = !room;
}

void gpq_ahead_each(struct gpq_agent *a,
                    void (*fn)(struct gpq_agent *a, uint32_t shape, void *user), void *user)
{
    const struct gpq_windows *all = &a->ahead->windows;
    for (size_t i = 0; i < all->room; i++)
        for (const struct gpq_window *w = all->bucket[i]; w; w = w->next)
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
static int64_t wanted(struct gpq_agent *a, const struct gpq_window *w)
{
    const struct gpud_request *r = &w->needs->request[0];
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
static int let_in(struct gpq_agent *a, struct gpq_window *w, const struct gpq_task *t,
                  struct gpq_error *e)
{
    const struct properties p = properties_of(a, t->spec);
    if (!w->class)
        return gpq_dispatch_submit(a, t, w->needs->request, p.limit, e);
    if (p.at_most_once && w->inside >= gpq_workers_ahead(a, w->class, true))
        return 1;
    return gpq_workers_want(a, w->class, t, p.limit, e);
}

/* Where it belongs.  The tasks of a class are bounded by its workers, so that its window, of which
 * there is one, is always open. */
static void settle(struct gpq_agent *a, struct gpq_window *w)
{
    enum gpq_window_place place = w->class || w->inside > 0              ? GPQ_OPEN
                                  : w->ready > 0 && !w->rests && !w->bad ? GPQ_CLOSED
                                                                         : GPQ_NOWHERE;
    if (place != GPQ_OPEN)
        gpq_window_forget(w);
    gpq_windows_place(&a->ahead->windows, w, place);
}

/* None of its tasks goes inside until something changes.  After a failure of the store or the
 * memory that is a second later. */
static void rest(struct gpq_agent *a, struct gpq_window *w, const struct gpq_error *e)
{
    w->rests = true;
    settle(a, w);
    if (!*e->text)
        return;
    gpq_log("shape %u: %s", w->shape, e->text);
    gpq_starts_wait(a, e->text);
}

static void note_first(struct gpq_window *w, const struct gpq_task *t)
{
    w->priority = t->priority;
    w->order = t->order;
    w->stale = false;
}

/* Reads the first tasks, and lets those in that are not inside.  Those of a command are READY as
 * long as they are inside. */
static void fill_window(struct gpq_agent *a, struct gpq_window *w)
{
    int64_t most = wanted(a, w) - (w->class ? w->inside : 0);
    struct gpq_error e = { 0 };
    if (most <= 0)
        return;
    struct first f = { calloc((size_t)most, sizeof(struct gpq_task)), 0 };
    int code = f.task ? a->store->engine->ready(a->store, w->shape, INT32_MAX, INT64_MIN,
                                                (uint32_t)most, keep_task, &f, &e)
                      : GPQ_ENOMEM;
    if (f.n != 0)
        note_first(w, &f.task[0]);
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
        w->rests = w->inside == 0;
    } else if (code == GPQ_EREFUSED) { /* this shape alone, until a device arrives */
        w->fill = w->fresh = false;
        w->rests = true;
        gpq_log("shape %u: %s", w->shape, e.text);
    } else {
        a->ahead->full = true; /* until an outcome, a device or, without memory, a second */
        if (code != GPQ_EFULL)
            gpq_starts_wait(a, e.text);
    }
    settle(a, w);
}

struct shape_call {
    struct gpq_agent *a;
    struct gpq_window *w;
    struct gpq_error *e;
    int code;
};

static int read_class(const struct gpq_shape *s, void *user)
{
    struct shape_call *call = user;
    see_class(call->a, call->w, s->request);
    return 1;
}

static int read_needs(const struct gpq_shape *s, void *user)
{
    struct shape_call *call = user;
    call->code = gpq_needs_parse(s->request, call->w->needs, call->e);
    return 1;
}

static int read_shape(struct gpq_agent *a, struct gpq_window *w, struct gpq_error *e)
{
    struct shape_call call = { a, w, e, GPQ_ENOTFOUND };
    w->needs = calloc(1, sizeof(*w->needs));
    if (!w->needs)
        return gpq_fail(e, GPQ_ENOMEM, "no memory for the needs of a task");
    int code = a->store->engine->shape(a->store, w->shape, read_needs, &call, e);
    code = code < 0 ? code : call.code;
    if (code < 0) {
        free(w->needs);
        w->needs = NULL;
    }
    return code;
}

static bool know_needs(struct gpq_agent *a, struct gpq_window *w, struct gpq_error *e)
{
    if (w->needs || w->bad)
        return !w->bad;
    int code = read_shape(a, w, e);
    w->bad = code == GPQ_EINVAL;
    if (code == 0 && w->needs->class_name)
        w->bad = !w->class || !w->class->there; /* explain says so */
    if (code == GPQ_EINVAL) {                   /* which no second look changes */
        gpq_log("shape %u: %s", w->shape, e->text);
        *e->text = 0;
    }
    return code == 0 && !w->bad;
}

/* Whether tasks of this kind may go inside. */
static bool may_enter(struct gpq_agent *a, const struct gpq_window *w)
{
    if (a->stop.now || a->ahead->full)
        return false;
    return w->class ? !w->class->paused && !a->starts_wait : !a->paused;
}

/* Whether it has few enough.  Tasks of a class are not READY any more once they are claimed. */
static bool is_low(struct gpq_agent *a, const struct gpq_window *w)
{
    int64_t more = w->class ? w->ready : w->ready - w->inside;
    return more > 0 && (w->fresh || w->inside <= wanted(a, w) / 2);
}

/* ---- Which windows are open ---- */

static int keep_first(const struct gpq_task *t, void *user)
{
    note_first(user, t);
    return 1;
}

/* False: its first task cannot be read. */
static bool know_first(struct gpq_agent *a, struct gpq_window *w, struct gpq_error *e)
{
    if (w->stale)
        (void)a->store->engine->ready(a->store, w->shape, INT32_MAX, INT64_MIN, 1, keep_first, w,
                                      e);
    return !w->stale;
}

static bool know_class(struct gpq_agent *a, struct gpq_window *w, struct gpq_error *e)
{
    struct shape_call call = { .a = a, .w = w };
    if (!w->seen)
        (void)a->store->engine->shape(a->store, w->shape, read_class, &call, e);
    return w->seen;
}

/* Puts one that has changed where it belongs. */
static void look_at(struct gpq_agent *a, struct gpq_window *w)
{
    struct gpq_error e = { 0 };
    if (w->ready == 0 && w->inside == 0) {
        if (w->class)
            gpq_workers_idle(a, w->class);
        gpq_windows_drop(&a->ahead->windows, w);
    } else if (know_class(a, w, &e) && (w->class || w->inside > 0 || know_first(a, w, &e))) {
        settle(a, w);
    } else {
        rest(a, w, &e);
    }
}

/* The open window of commands whose first task comes last. */
static struct gpq_window *last_open(struct gpq_agent *a)
{
    const struct gpq_window_array *open = &a->ahead->windows.in[GPQ_OPEN];
    struct gpq_window *last = NULL;
    struct gpq_error e;
    for (size_t i = 0; i < open->n; i++) {
        struct gpq_window *w = open->list[i];
        if (!w->class && know_first(a, w, &e) && (!last || gpq_windows_before(last, w)))
            last = w;
    }
    return last;
}

struct leaving {
    struct gpq_agent *a;
    struct gpq_window *w;
};

static int leave_one(const struct gpq_task *t, void *user)
{
    const struct leaving *l = user;
    struct gpq_unit *u = gpq_work_of(l->a, t->id);
    if (u && u->phase <= GPQ_GRANTED)
        gpq_dispatch_leave(l->a, u);
    return l->w->inside == 0;
}

/* All its tasks leave the dispatcher.  They are among the first READY ones. */
static void withdraw(struct gpq_agent *a, struct gpq_window *w)
{
    struct leaving l = { a, w };
    struct gpq_error e = { 0 };
    int code = a->store->engine->ready(a->store, w->shape, INT32_MAX, INT64_MIN, UINT32_MAX,
                                       leave_one, &l, &e);
    if (code < 0)
        gpq_log("shape %u: %s", w->shape, e.text);
    settle(a, w);
}

/* Whether a closed window may open: there are few enough, or one whose first task comes after its
 * first task closes.  So each exchange brings the open ones nearer to the order, and ends.  [Q7] */
static bool make_room(struct gpq_agent *a, const struct gpq_window *w)
{
    if (a->ahead->open < a->ahead->most)
        return true;
    struct gpq_window *last = last_open(a);
    if (!last || !gpq_windows_before(w, last))
        return false;
    withdraw(a, last);
    return a->ahead->open < a->ahead->most;
}

static void open_windows(struct gpq_agent *a)
{
    struct gpq_window *w;
    while ((w = gpq_windows_first(&a->ahead->windows)) && may_enter(a, w)) {
        struct gpq_error e = { 0 };
        if (!know_needs(a, w, &e))
            rest(a, w, &e);
        else if (make_room(a, w))
            fill_window(a, w);
        else
            break;
    }
}

/* One that cannot be read is tried again with the next event. */
static void fill_open(struct gpq_agent *a)
{
    const struct gpq_window_array *open = &a->ahead->windows.in[GPQ_OPEN];
    struct gpq_error e = { 0 };
    for (size_t i = 0; i < open->n; i++) {
        struct gpq_window *w = open->list[i];
        if (w->fill && may_enter(a, w) && know_needs(a, w, &e) && is_low(a, w))
            fill_window(a, w);
    }
    if (*e.text)
        gpq_log("needs: %s", e.text);
}

void gpq_ahead_fill(struct gpq_agent *a)
{
    for (struct gpq_window *w; (w = gpq_windows_changed(&a->ahead->windows));)
        look_at(a, w);
    fill_open(a);
    open_windows(a);
}
