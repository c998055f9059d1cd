/* SPDX-License-Identifier: MIT */
/* recount.c - the counters of a store against a count of its tasks. */
#include "recount.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness.h"

enum { SHAPES = 64, BATCHES = 1024, SPECS = 4096 };

struct shapes {
    struct gpq_shape of[SHAPES];
    size_t n;
};

static int keep_batch(const struct gpq_batch *b, void *user)
{
    struct gpq_batch *batches = user;
    size_t n = 0;

    while (batches[n].id)
        n++;
    T_CMP(n, <, BATCHES - 1);
    batches[n] = *b;
    return 0;
}

static int count_task(const struct gpq_task *t, void *user)
{
    struct gpq_batch *b = user;

    b->total++;
    b->state[t->state]++;
    b->outcome[t->outcome]++;
    b->joined += GPQ_BATCH_OF(t->id) != b->id;
    return 0;
}

/* A count of the store is right: equal, or larger where ended tasks may have been forgotten. */
static int differs(uint32_t batch, const char *what, uint32_t counted, uint32_t there, bool more)
{
    if (counted == there || (more && counted > there))
        return 0;
    (void)printf("batch %u: counts %u %s, %u are there\n", batch, counted, what, there);
    return 1;
}

static int compare_batch(const struct gpq_batch *b, const struct gpq_batch *there, bool purged)
{
    int wrong = differs(b->id, "in all", b->total, there->total, purged) +
                differs(b->id, "joined", b->joined, there->joined, purged);

    for (uint32_t i = 1; i < GPQ_STATES; i++)
        wrong += differs(b->id, gpq_state_text(i), b->state[i], there->state[i],
                         purged && i == GPQ_DONE);
    for (uint32_t i = 1; i < GPQ_OUTCOMES; i++)
        wrong += differs(b->id, gpq_outcome_text(i), b->outcome[i], there->outcome[i], purged);
    return wrong + differs(b->id, "in all, not the sum of the states", b->total,
                           b->state[GPQ_HELD] + b->state[GPQ_READY] + b->state[GPQ_RUNNING] +
                               b->state[GPQ_DONE],
                           false);
}

static int recount_batches(struct gpq_store *s, bool purged, struct gpq_error *e)
{
    struct gpq_batch *batches = calloc(BATCHES, sizeof(*batches));
    int rc, wrong = 0;

    T_CHECK(batches);
    rc = s->engine->batches(s, 0, keep_batch, batches, e);
    for (size_t i = 0; rc >= 0 && batches[i].id; i++) {
        struct gpq_batch there = { .id = batches[i].id };
        rc = s->engine->tasks(s, &(struct gpq_select){ .batch = there.id }, 0, false, count_task,
                              &there, e);
        wrong += compare_batch(&batches[i], &there, purged);
    }
    free(batches);
    return rc < 0 ? rc : wrong > 0;
}

static bool before(const struct gpq_task *t, const struct gpq_shape *s)
{
    return t->priority > s->priority || (t->priority == s->priority && t->order < s->order);
}

static int count_ready(const struct gpq_task *t, void *user)
{
    struct shapes *all = user;
    size_t i = 0;

    while (i < all->n && all->of[i].id != t->shape)
        i++;
    T_CMP(i, <, SHAPES);
    if (i == all->n)
        all->of[all->n++] =
            (struct gpq_shape){ .id = t->shape, .priority = t->priority, .order = t->order };
    all->of[i].ready++;
    if (before(t, &all->of[i])) {
        all->of[i].priority = t->priority;
        all->of[i].order = t->order;
    }
    return 0;
}

/* Takes what was counted of a shape off the list. */
static int compare_shape(const struct gpq_shape *s, void *user)
{
    struct shapes *all = user;
    size_t i = 0;

    while (i < all->n && all->of[i].id != s->id)
        i++;
    if (i == all->n || all->of[i].ready != s->ready || all->of[i].priority != s->priority ||
        all->of[i].order != s->order) {
        (void)printf("shape %u: counts %u ready, %u are there\n", s->id, s->ready,
                     i < all->n ? all->of[i].ready : 0);
        return 1;
    }
    all->of[i] = all->of[--all->n];
    return 0;
}

static int recount_shapes(struct gpq_store *s, struct gpq_error *e)
{
    struct shapes all = { .n = 0 };
    int rc = s->engine->tasks(s, &(struct gpq_select){ .states = 1U << GPQ_READY }, 0, false,
                              count_ready, &all, e);

    if (rc >= 0)
        rc = s->engine->shapes(s, compare_shape, &all, e);
    if (rc == 0 && all.n > 0) {
        (void)printf("shape %u: not listed, %u are ready\n", all.of[0].id, all.of[0].ready);
        return 1;
    }
    return rc;
}

/* The spec that each task names, in a list of flags. */
static int keep_spec(const struct gpq_task *t, void *user)
{
    T_CMP(t->spec, <, SPECS);
    ((bool *)user)[t->spec] = true;
    return 0;
}

static int spec_is_there(const struct gpq_spec *spec, void *user)
{
    (void)spec;
    (void)user;
    return 0;
}

static int find_specs(struct gpq_store *s, struct gpq_error *e)
{
    bool *named = calloc(SPECS, sizeof(*named));
    int rc;

    T_CHECK(named);
    rc = s->engine->tasks(s, &(struct gpq_select){ 0 }, 0, false, keep_spec, named, e);
    for (uint32_t i = 0; i < SPECS && rc == 0; i++)
        if (named[i])
            rc = s->engine->spec(s, i, spec_is_there, NULL, e);
    free(named);
    if (rc != GPQ_ENOTFOUND)
        return rc;
    (void)printf("a task names a spec: %s\n", e->text);
    return 1;
}

static int print_finding(const struct gpq_finding *f, void *user)
{
    (void)user;
    (void)printf("F%u %s: %s\n", f->kind, f->place, f->text);
    return 0;
}

static int find_faults(struct gpq_store *s, struct gpq_error *e)
{
    int64_t n = s->engine->check(s, 1, false, print_finding, NULL, e);

    return n < 0 ? (int)n : n > 0;
}

int recount(struct gpq_store *s, bool purged, struct gpq_error *e)
{
    int rc = recount_batches(s, purged, e);

    if (rc == 0)
        rc = recount_shapes(s, e);
    if (rc == 0)
        rc = find_specs(s, e);
    return rc != 0 ? rc : find_faults(s, e);
}
