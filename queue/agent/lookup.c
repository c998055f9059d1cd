/* SPDX-License-Identifier: MIT */
/* lookup.c - one row of the store: a task, a batch, a mark. */
#include "queue/agent/lookup.h"

#include <string.h>

static int keep_task(const struct gpq_task *t, void *user)
{
    *(struct gpq_task *)user = *t;
    return 1;
}

int gpq_task_look(struct gpq_store *s, uint64_t task, struct gpq_task *ret, struct gpq_error *e)
{
    const struct gpq_select one = { .tasks = &task, .n_tasks = 1 };
    *ret = (struct gpq_task){ 0 };
    return s->engine->tasks(s, &one, 0, false, keep_task, ret, e);
}

int gpq_task_turn(struct gpq_store *s, uint32_t batch, struct gpq_task *ret, struct gpq_error *e)
{
    *ret = (struct gpq_task){ 0 };
    return s->engine->turn(s, batch, keep_task, ret, e);
}

int gpq_task_read(struct gpq_store *s, uint64_t task, gpq_task_fn fn, void *user,
                  struct gpq_error *e)
{
    const struct gpq_select one = { .tasks = &task, .n_tasks = 1 };
    return s->engine->tasks(s, &one, 0, true, fn, user, e);
}

struct batch_call {
    uint32_t batch;
    gpq_batch_fn fn;
    void *user;
    bool found;
};

static int one_batch(const struct gpq_batch *b, void *user)
{
    struct batch_call *call = user;
    call->found = b->id == call->batch;
    if (call->found && call->fn)
        (void)call->fn(b, call->user);
    return 1;
}

int gpq_batch_read(struct gpq_store *s, uint32_t batch, gpq_batch_fn fn, void *user,
                   struct gpq_error *e)
{
    struct batch_call call = { batch, fn, user, false };
    int code = s->engine->batches(s, batch, one_batch, &call, e);
    if (code < 0)
        return code;
    return call.found ? 0 : gpq_fail(e, GPQ_ENOTFOUND, "there is no batch %u", batch);
}

struct mark_call {
    const char *kind, *subject;
    uint64_t *since;
};

static int see_mark(const struct gpq_mark *m, void *user)
{
    struct mark_call *call = user;
    if (strcmp(m->kind, call->kind) != 0 || strcmp(m->subject, call->subject) != 0)
        return 0;
    *call->since = m->since;
    return 1;
}

int gpq_mark_look(struct gpq_store *s, const char *kind, const char *subject, uint64_t *ret_since,
                  struct gpq_error *e)
{
    struct mark_call call = { kind, subject, ret_since };
    return s->engine->marks(s, see_mark, &call, e);
}
