/* SPDX-License-Identifier: MIT */
/* view.c - what a store shows, as text. */
#include "view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

void view_add(struct view *v, const char *format, ...)
{
    va_list list, again;
    int n;

    va_start(list, format);
    va_copy(again, list);
    n = vsnprintf(v->text ? v->text + v->size : NULL, v->room - v->size, format, list);
    va_end(list);
    T_CHECK(n >= 0);
    if (v->size + (size_t)n + 1 > v->room) {
        v->room = 2 * (v->size + (size_t)n + 1);
        v->text = realloc(v->text, v->room);
        T_CHECK(v->text);
        (void)vsnprintf(v->text + v->size, v->room - v->size, format, again);
    }
    va_end(again);
    v->size += (size_t)n;
}

void view_clear(struct view *v)
{
    v->size = 0;
    view_add(v, "%s", "");
}

void view_free(struct view *v)
{
    free(v->text);
    *v = (struct view){ 0 };
}

const char *view_id(uint64_t task)
{
    static char text[8][24];
    static unsigned next;
    char *to = text[next++ % T_LENGTH(text)];

    (void)snprintf(to, sizeof(text[0]), "%u.%u", GPQ_BATCH_OF(task), GPQ_NUMBER_OF(task));
    return to;
}

/* ---- A view being made ---- */

enum { NUMBERS = 1024 };

/* Ids of the engine, each at its number in the view. */
struct numbers {
    uint32_t id[NUMBERS];
    uint32_t n;
};

struct making {
    struct view *v;
    struct numbers shapes, specs;
    struct gpq_task *tasks; /* without texts */
    size_t n_tasks;
    struct numbers batches;
    uint64_t cause; /* of the skipped task that is checked */
    bool is_condition;
    bool done;                  /* the task whose details are added */
    uint32_t shape, last_shape; /* the number that is shown; the id before */
    struct gpq_attempt behind;  /* the last row of a history; of it rows have been seen */
    uint32_t rows, most;        /* and it stops at this many; 0 = at the end */
};

static uint32_t number_of(struct numbers *numbers, uint32_t id)
{
    uint32_t i = 0;

    while (i < numbers->n && numbers->id[i] != id)
        i++;
    if (i == numbers->n) {
        T_CMP(numbers->n, <, NUMBERS);
        numbers->id[numbers->n++] = id;
    }
    return i;
}

static const char *or_none(const char *text)
{
    return text ? text : "-";
}

static void add_bytes(struct view *v, const char *what, struct gpq_bytes bytes)
{
    if (bytes.size)
        view_add(v, " %s=%.*s", what, (int)bytes.size, (const char *)bytes.data);
}

static int add_batch(const struct gpq_batch *b, void *user)
{
    struct view *v = ((struct making *)user)->v;

    (void)number_of(&((struct making *)user)->batches, b->id);
    view_add(v, "batch %u %s made %" PRIu64 " ended %" PRIu64 " total %u joined %u states", b->id,
             or_none(b->name), b->made, b->ended, b->total, b->joined);
    for (uint32_t i = 1; i < GPQ_STATES; i++)
        view_add(v, " %u", b->state[i]);
    view_add(v, " outcomes");
    for (uint32_t i = 1; i < GPQ_OUTCOMES; i++)
        view_add(v, " %u", b->outcome[i]);
    view_add(v, " at_once %u fails %u %u%%%s%s%s%s", b->at_once, b->max_fails, b->max_fails_percent,
             b->fails_limited ? " limited" : "", b->open ? " open" : "", b->held ? " held" : "",
             b->notify ? " notify" : "");
    add_bytes(v, "options", b->options);
    view_add(v, "\n");
    return 0;
}

static int add_task(const struct gpq_task *t, void *user)
{
    struct making *making = user;
    struct view *v = making->v;

    making->tasks = realloc(making->tasks, (making->n_tasks + 1) * sizeof(*making->tasks));
    T_CHECK(making->tasks);
    making->tasks[making->n_tasks++] = *t;
    view_add(v,
             "task %s %s holds %u outcome %u shape %u spec %u priority %d order %" PRId64
             " round %u attempt %u charged %u losses %u%s not_before %" PRIu64 " expires %" PRIu64
             " ended %" PRIu64 " ready %" PRIu64 " cause %s",
             view_id(t->id), gpq_state_text(t->state), t->holds, t->outcome,
             number_of(&making->shapes, t->shape), number_of(&making->specs, t->spec), t->priority,
             t->order, t->round, t->attempt, t->charged, t->losses, t->cancel ? " cancel" : "",
             t->not_before, t->expires, t->ended, t->ready,
             view_id(t->outcome == GPQ_OUTCOME_SKIPPED ? 0 : t->cause));
    view_add(v, " line %u name %s", t->line, or_none(t->name));
    add_bytes(v, "content", t->content);
    add_bytes(v, "key", t->key);
    add_bytes(v, "stamp", t->stamp);
    view_add(v, "\n");
    return 0;
}

static int add_attempt(const struct gpq_attempt *a, void *user)
{
    struct view *v = ((struct making *)user)->v;

    view_add(v,
             "attempt %s %u round %u outcome %u returned %u at %" PRIu64 " ready %" PRIu64
             " claimed %" PRIu64 " started %" PRIu64 " ended %" PRIu64
             "%s status %d devices %s run %s text %s said %s\n",
             view_id(a->task), a->number, a->round, a->outcome, a->returned, a->returned_at,
             a->ready, a->claimed, a->started, a->ended, a->charged ? " charged" : "", a->status,
             or_none(a->devices), or_none(a->run), or_none(a->text), or_none(a->said));
    return 0;
}

static int add_history(const struct gpq_history *h, void *user)
{
    struct making *making = user;

    view_add(making->v, "shape %u spec %u name %s", number_of(&making->shapes, h->shape),
             number_of(&making->specs, h->spec), or_none(h->name));
    add_bytes(making->v, "content", h->content);
    view_add(making->v, ": ");
    making->behind = h->attempt;
    making->rows++;
    (void)add_attempt(&h->attempt, user);
    return making->rows == making->most;
}

static int add_round(const struct gpq_round *r, void *user)
{
    view_add(((struct making *)user)->v,
             "round %u outcome %u attempt %u ended %" PRIu64 " cause %s\n", r->round, r->outcome,
             r->attempt, r->ended, view_id(r->outcome == GPQ_OUTCOME_SKIPPED ? 0 : r->cause));
    return 0;
}

static int add_after(const struct gpq_after *a, bool met, void *user)
{
    struct making *making = user;

    view_add(making->v, "after %s %s%s\n", view_id(a->id), gpq_condition_text(a->condition),
             met && !making->done ? " met" : "");
    return 0;
}

static int add_result(const struct gpq_result *r, void *user)
{
    struct view *v = ((struct making *)user)->v;

    view_add(v, "result %s %u size %" PRIu64 " file %s", view_id(r->task), r->attempt, r->size,
             or_none(r->file));
    add_bytes(v, "data", r->data);
    view_add(v, "\n");
    return 0;
}

static int add_ready(const struct gpq_task *t, void *user)
{
    view_add(((struct making *)user)->v, " %s", view_id(t->id));
    return 0;
}

static int add_shape(const struct gpq_shape *s, void *user)
{
    struct making *making = user;

    if (s->id <= making->last_shape)
        view_add(making->v, "shapes are not in the order of their ids\n");
    making->last_shape = s->id;
    if (number_of(&making->shapes, s->id) != making->shape)
        return 0;
    view_add(making->v, "shape %u ready %u priority %d order %" PRId64, making->shape, s->ready,
             s->priority, s->order);
    add_bytes(making->v, "request", s->request);
    view_add(making->v, "\n");
    return 0;
}

static int add_mark(const struct gpq_mark *m, void *user)
{
    view_add(((struct making *)user)->v, "mark %s '%s' text %s since %" PRIu64 "\n", m->kind,
             m->subject, or_none(m->text), m->since);
    return 0;
}

static int add_span(const struct gpq_span *s, void *user)
{
    view_add(((struct making *)user)->v,
             "span %s %s reason %s text %s since %" PRIu64 " until %" PRIu64 " boot %" PRIu64
             " to %" PRIu64 " of %s\n",
             s->kind, or_none(s->subject), or_none(s->reason), or_none(s->text), s->since, s->until,
             s->since_boot, s->until_boot, or_none(s->boot));
    return 0;
}

static int add_spec(const struct gpq_spec *s, void *user)
{
    struct view *v = ((struct making *)user)->v;

    view_add(v, "spec");
    add_bytes(v, "content", s->content);
    add_bytes(v, "shape", s->shape);
    add_bytes(v, "options", s->options);
    add_bytes(v, "environment", s->environment);
    view_add(v,
             " priority %d retries %u %u %u %u backoff %" PRIu64 " cap %" PRIu64 " begin %" PRIu64
             " expires %" PRIu64 "%s after %u%s\n",
             s->priority, s->retries[0], s->retries[1], s->retries[2], s->retries[3], s->backoff,
             s->backoff_cap, s->begin, s->expires, s->at_most_once ? " once" : "", s->n_after,
             s->held ? " held" : "");
    return 0;
}

/* A reader that fails is a difference like any other. */
static void note(struct making *making, int code, const struct gpq_error *e)
{
    if (code)
        view_add(making->v, "reader returned %d: %s\n", code, e->text);
}

/* Whether a condition is met is a fact of a task that waits or went on: a DONE one may have ended
 * before the next one was looked at. */
static void add_details(struct making *making, struct gpq_store *s, const struct gpq_task *t)
{
    struct gpq_error e;

    making->done = t->state == GPQ_DONE;
    view_add(making->v, "details %s\n", view_id(t->id));
    note(making, s->engine->attempts(s, t->id, add_attempt, making, &e), &e);
    note(making, s->engine->rounds(s, t->id, add_round, making, &e), &e);
    note(making, s->engine->after(s, t->id, add_after, making, &e), &e);
    note(making, s->engine->result(s, t->id, add_result, making, &e), &e);
}

static int find_cause(const struct gpq_after *a, bool met, void *user)
{
    struct making *making = user;

    (void)met;
    making->is_condition |= a->id == making->cause;
    return 0;
}

static bool is_there(const struct making *making, uint64_t source)
{
    for (size_t i = 0; i < making->n_tasks; i++)
        if (making->tasks[i].id == source)
            return true;
    for (uint32_t i = 0; i < making->batches.n; i++)
        if (GPQ_TASK(making->batches.id[i], 0) == source)
            return true;
    return false;
}

/* If several conditions become impossible at once, the cause is any of them. */
static void check_cause(struct making *making, struct gpq_store *s, const struct gpq_task *t)
{
    struct gpq_error e;

    making->cause = t->cause;
    making->is_condition = false;
    note(making, s->engine->after(s, t->id, find_cause, making, &e), &e);
    if (!t->cause || (!making->is_condition && is_there(making, t->cause)))
        view_add(making->v, "%s is skipped by %s\n", view_id(t->id), view_id(t->cause));
}

/* The history of a batch.  Read in parts of two rows it is the same. */
static void add_history_of(struct making *making, struct gpq_store *s, uint32_t batch)
{
    struct view *v = making->v;
    struct gpq_error e;
    int code;

    view_add(v, "history of %u\n", batch);

    size_t begin = v->size;

    note(making, s->engine->history(s, batch, 0, 0, NULL, true, add_history, making, &e), &e);

    size_t size = v->size - begin;

    making->behind = (struct gpq_attempt){ 0 };
    making->most = 2;
    do {
        const struct gpq_attempt behind = making->behind;

        making->rows = 0;
        code = s->engine->history(s, batch, 0, 0, &behind, true, add_history, making, &e);
    } while (code == 1);
    making->most = 0;

    bool same =
        v->size == begin + 2 * size && !memcmp(v->text + begin, v->text + begin + size, size);

    v->size = begin + size;
    v->text[v->size] = '\0';
    note(making, code, &e);
    if (!same)
        view_add(v, "in parts it is another one\n");
}

/* Without the rows that ended before the last one, and without names. */
static void add_late_history(struct making *making, struct gpq_store *s, uint32_t batch)
{
    const struct gpq_attempt *last = &making->behind;
    uint64_t since = last->ended > last->returned_at ? last->ended : last->returned_at;
    struct gpq_error e;

    view_add(making->v, "history of %u since %" PRIu64 "\n", batch, since);
    note(making, s->engine->history(s, batch, 0, since, NULL, false, add_history, making, &e), &e);
    view_add(making->v, "the same up to 2\n");
    note(making, s->engine->history(s, batch, 2, since, NULL, false, add_history, making, &e), &e);
}

void view_store(struct view *v, struct gpq_store *s, bool details)
{
    const struct gpq_select all = { 0 };
    struct making making = { .v = v };
    struct gpq_error e;

    note(&making, s->engine->batches(s, 0, add_batch, &making, &e), &e);
    note(&making, s->engine->tasks(s, &all, 0, true, add_task, &making, &e), &e);
    for (size_t i = 0; i < making.n_tasks; i++)
        if (making.tasks[i].outcome == GPQ_OUTCOME_SKIPPED)
            check_cause(&making, s, &making.tasks[i]);
    for (uint32_t i = 0; i < making.shapes.n; i++) {
        making.shape = i;
        making.last_shape = 0;
        note(&making, s->engine->shapes(s, add_shape, &making, &e), &e);
        view_add(v, "ready of shape %u:", i);
        note(&making,
             s->engine->ready(s, making.shapes.id[i], INT32_MAX, INT64_MIN, UINT32_MAX, add_ready,
                              &making, &e),
             &e);
        view_add(v, "\n");
    }
    for (uint32_t i = 0; i < making.batches.n; i++) {
        view_add(v, "next turn of batch %u:", making.batches.id[i]);
        note(&making, s->engine->turn(s, making.batches.id[i], add_ready, &making, &e), &e);
        view_add(v, "\n");
    }
    note(&making, s->engine->running(s, add_attempt, &making, &e), &e);
    note(&making, s->engine->marks(s, add_mark, &making, &e), &e);
    note(&making, s->engine->spans(s, 0, 0, add_span, &making, &e), &e);
    for (uint32_t i = 0; i < making.specs.n; i++)
        note(&making, s->engine->spec(s, making.specs.id[i], add_spec, &making, &e), &e);
    for (size_t i = 0; details && i < making.n_tasks; i++)
        add_details(&making, s, &making.tasks[i]);
    for (uint32_t i = 0; details && i < making.batches.n; i++) {
        add_history_of(&making, s, making.batches.id[i]);
        add_late_history(&making, s, making.batches.id[i]);
    }
    free(making.tasks);
}

/* ---- Changes ---- */

static int by_task(const void *a, const void *b)
{
    const struct gpq_change *x = a, *y = b;

    return (x->task > y->task) - (x->task < y->task);
}

/* Adds a later change of a task to an earlier one. */
static void merge(struct gpq_change *first, const struct gpq_change *later)
{
    first->to = later->to;
    first->outcome = later->outcome;
    first->shape = later->shape;
    first->cancel |= later->cancel;
}

void view_changes(struct view *v, const struct gpq_store *s)
{
    struct gpq_change *net = calloc(s->n_changes + 1, sizeof(*net));
    size_t n = 0;

    T_CHECK(net);
    for (size_t i = 0; i < s->n_changes; i++) {
        size_t k = 0;

        while (k < n && net[k].task != s->changes[i].task)
            k++;
        if (k == n)
            net[n++] = s->changes[i];
        else
            merge(&net[k], &s->changes[i]);
    }
    qsort(net, n, sizeof(*net), by_task);
    for (size_t i = 0; i < n; i++)
        view_add(v, "change %s %s -> %s outcome %u%s\n", view_id(net[i].task),
                 net[i].from ? gpq_state_text(net[i].from) : "new",
                 net[i].to ? gpq_state_text(net[i].to) : "forgotten",
                 net[i].to == GPQ_DONE ? net[i].outcome : 0, net[i].cancel ? " cancel" : "");
    free(net);
}

void view_difference(const struct view *a, const struct view *b, const char **ret_a,
                     const char **ret_b)
{
    const char *x = a->text ? a->text : "", *y = b->text ? b->text : "";

    *ret_a = *ret_b = NULL;
    if (!strcmp(x, y))
        return;
    for (;;) {
        size_t n = strcspn(x, "\n"), k = strcspn(y, "\n");

        if (n != k || memcmp(x, y, n) || !x[n] || !y[k])
            break;
        x += n + 1;
        y += k + 1;
    }
    *ret_a = x;
    *ret_b = y;
}
