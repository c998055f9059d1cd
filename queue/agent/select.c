/* SPDX-License-Identifier: MIT */
/* select.c - which tasks a request means. */
#include <stdlib.h>

#include "queue/agent/lookup.h"
#include "queue/agent/requests.h"

/* ---- Listed tasks ---- */

struct listed {
    const uint64_t *id;
    size_t n, seen;
};

/* The rows come in the order of the list: the first one that differs is missing. */
static int one_listed(const struct gpq_task *t, void *user)
{
    struct listed *l = user;
    if (l->id[l->seen] != t->id)
        return 1;
    l->seen++;
    return 0;
}

static int check_listed(struct gpq_call *c, const uint64_t *id, size_t n)
{
    const struct gpq_select all = { .tasks = id, .n_tasks = n };
    struct listed l = { id, n, 0 };
    int code = c->a->store->engine->tasks(c->a->store, &all, 0, false, one_listed, &l, c->e);
    if (code < 0 || l.seen == l.n)
        return code < 0 ? code : 0;
    return gpq_fail(c->e, GPQ_ENOTFOUND, "there is no task %u.%u: it was purged, or never was",
                    GPQ_BATCH_OF(l.id[l.seen]), GPQ_NUMBER_OF(l.id[l.seen]));
}

int gpq_task_exists(struct gpq_call *c, uint64_t task)
{
    if (task == 0)
        return gpq_fail(c->e, GPQ_EINVAL, "the request has no member \"task\"");
    return check_listed(c, &task, 1);
}

/* ---- Selections ---- */

static int read_words(struct gpq_call *c, struct gpq_which *which)
{
    const struct gpq_at states = { NULL, "states", GPQ_NO_INDEX };
    const struct gpq_at outcomes = { NULL, "outcomes", GPQ_NO_INDEX };
    int code =
        gpq_words_read(which->states, &states, &gpq_state_words, &which->select.states, c->e);
    return code < 0 ? code
                    : gpq_words_read(which->outcomes, &outcomes, &gpq_outcome_words,
                                     &which->select.outcomes, c->e);
}

static int check_which(struct gpq_call *c, const struct gpq_which *which)
{
    int named = (which->batch != 0) + (which->tasks != NULL) + which->all;
    if (named != 1)
        return gpq_fail(c->e, GPQ_EINVAL,
                        "the request names %s of batch, tasks and all, expected one of them",
                        named == 0 ? "none" : "several");
    if ((which->first != 0 || which->last != 0) && which->batch == 0)
        return gpq_fail(c->e, GPQ_EINVAL,
                        "first and last are numbers in a batch: batch is missing");
    if (which->last != 0 && which->first > which->last)
        return gpq_fail(c->e, GPQ_EINVAL, "first is %u, and last is %u", which->first, which->last);
    return 0;
}

static int note_joined(const struct gpq_batch *b, void *user)
{
    *(uint32_t *)user = b->joined;
    return 1;
}

int gpq_which_read(struct gpq_call *c, struct gpq_which *which)
{
    const struct gpq_at tasks = { NULL, "tasks", GPQ_NO_INDEX };
    int code = check_which(c, which);
    which->select =
        (struct gpq_select){ .batch = which->batch, .first = which->first, .last = which->last };
    if (code == 0)
        code = read_words(c, which);
    if (code == 0 && which->batch != 0)
        code = gpq_batch_read(c->a->store, which->batch, note_joined, &which->joined, c->e);
    if (code < 0 || !which->tasks)
        return code;
    code = gpq_ids_of(which->tasks, &tasks, &which->id, &which->select.n_tasks, c->e);
    which->select.tasks = which->id;
    return code < 0 ? code : check_listed(c, which->id, which->select.n_tasks);
}

int gpq_which_read_rows(struct gpq_call *c, struct gpq_which *which)
{
    int code = gpq_which_read(c, which);
    if (which->batch != 0 && which->last == 0 && which->joined == 0 && which->first == 0)
        which->select.first = 1;
    return code;
}

void gpq_which_free(struct gpq_which *which)
{
    free(which->id);
    which->id = NULL;
}
