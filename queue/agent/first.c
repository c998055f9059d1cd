/* SPDX-License-Identifier: MIT */
/* first.c - finds the first waiting task of a batch. */
#include "queue/agent/first.h"

#include "queue/agent/lookup.h"

/* Tasks that are looked at, since a reader of the store cannot be stopped between its rows. */
enum { LOOKS = 1024 };

struct search {
    struct gpq_task task; /* id 0: none */
    uint32_t looks;
    bool held; /* a HELD one will do, since none is READY */
};

static int keep_first(const struct gpq_task *t, void *user)
{
    ((struct search *)user)->task = *t;
    return 1;
}

static int look_at(const struct gpq_task *t, void *user)
{
    struct search *f = user;
    bool waits = t->state == GPQ_READY || (t->state == GPQ_HELD && f->held);
    if (waits)
        f->task = *t;
    return ++f->looks >= LOOKS || waits;
}

/*
 * Mostly the tasks of a batch have one shape and one priority, and their places are in the order of
 * their numbers: then the first READY one is found from the place of the first of all.  Otherwise
 * the first tasks of the batch are looked at, up to LOOKS, one by one.
 */
static int find(struct gpq_store *s, const struct gpq_batch *b, struct gpq_waiting *ret,
                struct gpq_error *e)
{
    const struct gpq_select own = { .batch = b->id, .first = 1, .last = INT32_MAX };
    struct search head = { 0 }, found = { .held = b->state[GPQ_READY] == 0 };
    int code = s->engine->tasks(s, &own, 0, false, keep_first, &head, e);
    if (code < 0 || head.task.id == 0)
        return code < 0 ? code : 0;
    if (!found.held)
        code = s->engine->ready(s, head.task.shape, head.task.priority, head.task.order - 1, 1,
                                keep_first, &found, e);
    if (code >= 0 && GPQ_BATCH_OF(found.task.id) != b->id) {
        found.task.id = 0;
        code = s->engine->tasks(s, &own, 0, false, look_at, &found, e);
    }
    ret->looks = found.looks;
    if (found.task.id != 0)
        ret->first = found.task;
    return code < 0 ? code : 0;
}

int gpq_first_waiting(struct gpq_store *s, const struct gpq_batch *b, struct gpq_waiting *ret,
                      struct gpq_error *e)
{
    int code = 0;
    *ret = (struct gpq_waiting){ 0 };
    if (b->at_once != 0 && b->state[GPQ_HELD] != 0)
        code = gpq_task_turn(s, b->id, &ret->first, e);
    ret->turn = ret->first.id != 0 ? b->state[GPQ_HELD] : 0;
    bool known = ret->turn != 0 && b->state[GPQ_READY] == 0;
    bool waits = b->state[GPQ_READY] + b->state[GPQ_HELD] != 0;
    return code < 0 ? code : waits && !known ? find(s, b, ret, e) : 0;
}
