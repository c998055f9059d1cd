/* SPDX-License-Identifier: MIT */
/* dump.c - everything that a store shows, as text. */
#include "dump.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

struct dump {
    struct text *t;
    uint64_t *tasks; /* ids: a function of a reader calls no store */
    size_t n, room;
    uint32_t last_spec;
};

static void add_bytes(struct text *t, struct gpq_bytes b)
{
    const unsigned char *data = b.data;
    uint64_t hash = 0xcbf29ce484222325U;

    if (b.size <= 16 && b.size == strnlen(b.size ? b.data : "", b.size)) {
        text_add(t, " '%.*s'", (int)b.size, b.size ? (const char *)b.data : "");
        return;
    }
    for (size_t i = 0; i < b.size; i++)
        hash = (hash ^ data[i]) * 0x100000001b3U;
    text_add(t, " %zu:%016" PRIx64, b.size, hash);
}

static const char *some(const char *text)
{
    return text ? text : "-";
}

static int add_batch(const struct gpq_batch *b, void *user)
{
    struct text *t = ((struct dump *)user)->t;

    text_add(t, "batch %u %s made %" PRIu64 " ended %" PRIu64 " total %u joined %u states", b->id,
             some(b->name), b->made, b->ended, b->total, b->joined);
    for (unsigned i = 1; i < GPQ_STATES; i++)
        text_add(t, " %u", b->state[i]);
    text_add(t, " outcomes");
    for (unsigned i = 1; i < GPQ_OUTCOMES; i++)
        text_add(t, " %u", b->outcome[i]);
    text_add(t, " at once %u fails %u %u %d open %d held %d", b->at_once, b->max_fails,
             b->max_fails_percent, b->fails_limited, b->open, b->held);
    add_bytes(t, b->options);
    text_add(t, "\n");
    return 0;
}

static int add_task(const struct gpq_task *k, void *user)
{
    struct dump *d = user;

    text_add(d->t,
             "task %u.%u state %u holds %u outcome %u shape %u spec %u priority %d order %" PRId64
             " round %u attempt %u charged %u losses %u cancel %d",
             GPQ_BATCH_OF(k->id), GPQ_NUMBER_OF(k->id), k->state, k->holds, k->outcome, k->shape,
             k->spec, k->priority, k->order, k->round, k->attempt, k->charged, k->losses,
             k->cancel);
    text_add(d->t,
             " not before %" PRIu64 " expires %" PRIu64 " ended %" PRIu64 " ready %" PRIu64
             " cause %" PRIx64 " line %u %s",
             k->not_before, k->expires, k->ended, k->ready, k->cause, k->line, some(k->name));
    add_bytes(d->t, k->content);
    add_bytes(d->t, k->key);
    add_bytes(d->t, k->stamp);
    text_add(d->t, "\n");
    if (d->n == d->room) {
        d->room = d->room * 2 + 64;
        d->tasks = realloc(d->tasks, d->room * sizeof(*d->tasks));
        T_CHECK(d->tasks);
    }
    d->tasks[d->n++] = k->id;
    if (k->spec > d->last_spec)
        d->last_spec = k->spec;
    return 0;
}

static int add_attempt(const struct gpq_attempt *a, void *user)
{
    struct text *t = ((struct dump *)user)->t;

    text_add(t,
             "attempt %u.%u number %u round %u outcome %u returned %u at %" PRIu64
             " claimed %" PRIu64 " started %" PRIu64 " ended %" PRIu64,
             GPQ_BATCH_OF(a->task), GPQ_NUMBER_OF(a->task), a->number, a->round, a->outcome,
             a->returned_at ? a->returned : 0, a->returned_at, a->claimed, a->started, a->ended);
    text_add(t, " ready %" PRIu64 " charged %d status %d %s %s %s %s\n", a->ready, a->charged,
             a->status, some(a->devices), some(a->run), some(a->text), some(a->said));
    return 0;
}

static int add_round(const struct gpq_round *r, void *user)
{
    text_add(((struct dump *)user)->t,
             "round %u outcome %u attempt %u ended %" PRIu64 " cause %" PRIx64 "\n", r->round,
             r->outcome, r->attempt, r->ended, r->cause);
    return 0;
}

static int add_result(const struct gpq_result *r, void *user)
{
    struct text *t = ((struct dump *)user)->t;

    text_add(t, "result attempt %u size %" PRIu64 " %s", r->attempt, r->size, some(r->file));
    add_bytes(t, r->data);
    text_add(t, "\n");
    return 0;
}

static int add_after(const struct gpq_after *a, bool met, void *user)
{
    text_add(((struct dump *)user)->t, "after %u.%u condition %u met %d\n", GPQ_BATCH_OF(a->id),
             GPQ_NUMBER_OF(a->id), a->condition, met);
    return 0;
}

static int add_shape(const struct gpq_shape *s, void *user)
{
    struct text *t = ((struct dump *)user)->t;

    text_add(t, "shape %u ready %u priority %d order %" PRId64, s->id, s->ready, s->priority,
             s->order);
    add_bytes(t, s->request);
    text_add(t, "\n");
    return 0;
}

static int add_spec(const struct gpq_spec *s, void *user)
{
    struct text *t = ((struct dump *)user)->t;

    text_add(t, "spec");
    add_bytes(t, s->content);
    add_bytes(t, s->shape);
    add_bytes(t, s->options);
    add_bytes(t, s->environment);
    text_add(t, " priority %d retries", s->priority);
    for (unsigned i = 0; i < GPQ_CAUSES; i++)
        text_add(t, " %u", s->retries[i]);
    text_add(t, " backoff %" PRIu64 " %" PRIu64 " begin %" PRIu64 " expires %" PRIu64 " once %d\n",
             s->backoff, s->backoff_cap, s->begin, s->expires, s->at_most_once);
    return 0;
}

static int add_mark(const struct gpq_mark *m, void *user)
{
    text_add(((struct dump *)user)->t, "mark %s %s %s %" PRIu64 "\n", m->kind, m->subject,
             some(m->text), m->since);
    return 0;
}

static int add_span(const struct gpq_span *s, void *user)
{
    text_add(((struct dump *)user)->t, "span %s %s %s %s %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
             s->kind, some(s->subject), some(s->reason), some(s->text), s->since, s->until,
             s->since_boot);
    return 0;
}

static int dump_task(struct gpq_store *s, struct dump *d, uint64_t task, struct gpq_error *e)
{
    const struct gpq_engine *o = s->engine;
    int rc = o->attempts(s, task, add_attempt, d, e);

    if (rc >= 0)
        rc = o->rounds(s, task, add_round, d, e);
    if (rc >= 0)
        rc = o->after(s, task, add_after, d, e);
    if (rc >= 0)
        rc = o->result(s, task, add_result, d, e);
    return rc == GPQ_ENOTFOUND ? 0 : rc; /* no result */
}

/* Ids of specs are not reused: those that nothing uses any more are not found. */
static int dump_specs(struct gpq_store *s, struct dump *d, struct gpq_error *e)
{
    int rc = 0;

    for (uint32_t id = 1; id <= d->last_spec && rc >= 0; id++) {
        rc = s->engine->spec(s, id, add_spec, d, e);
        if (rc == GPQ_ENOTFOUND)
            rc = 0;
    }
    return rc;
}

int dump(struct gpq_store *s, struct text *t, struct gpq_error *e)
{
    const struct gpq_engine *o = s->engine;
    struct dump d = { .t = t };
    int rc = o->batches(s, 0, add_batch, &d, e);

    if (rc >= 0)
        rc = o->tasks(s, &(struct gpq_select){ 0 }, 0, true, add_task, &d, e);
    for (size_t i = 0; i < d.n && rc >= 0; i++)
        rc = dump_task(s, &d, d.tasks[i], e);
    if (rc >= 0)
        rc = dump_specs(s, &d, e);
    if (rc >= 0)
        rc = o->shapes(s, add_shape, &d, e);
    if (rc >= 0)
        rc = o->marks(s, add_mark, &d, e);
    if (rc >= 0)
        rc = o->spans(s, 0, 0, add_span, &d, e);
    free(d.tasks);
    return rc < 0 ? rc : 0;
}
