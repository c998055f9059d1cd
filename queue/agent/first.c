/* SPDX-License-Identifier: MIT */
/* first.c - finds the first waiting task of a batch. */
#include "queue/agent/first.h"

/* Tasks that are looked at, since a reader of the store cannot be stopped between its rows. */
enum { LOOKS = 1024 };

static int keep_first(const struct gpq_task *t, void *user)
{
    ((struct gpq_waiting *)user)->first = *t;
    return 1;
}

static int look_at(const struct gpq_task *t, void *user)
{
    struct gpq_waiting *w = user;
    bool waits = t->state == GPQ_READY || (t->state == GPQ_HELD && w->any);
    if (waits)
        w->first = *t;
    return ++w->looks >= LOOKS || waits;
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
    struct gpq_waiting head = { 0 }, found = { .any = b->state[GPQ_READY] == 0 };
    int code = s->engine->tasks(s, &own, 0, false, keep_first, &head, e);
    if (code < 0 || head.first.id == 0)
        return code < 0 ? code : 0;
    if (!found.any)
        code = s->engine->ready(s, head.first.shape, head.first.priority, head.first.order - 1, 1,
                                keep_first, &found, e);
    if (code >= 0 && GPQ_BATCH_OF(found.first.id) != b->id) {
        found.first.id = 0;
        code = s->engine->tasks(s, &own, 0, false, look_at, &found, e);
    }
    ret->looks = found.looks;
    if (found.first.id != 0)
        ret->first = found.first;
    return code < 0 ? code : 0;
}

int gpq_first_waiting(struct gpq_store *s, const struct gpq_batch *b, struct gpq_waiting *ret,
                      struct gpq_error *e)
{
    int code = 0;
    *ret = (struct gpq_waiting){ 0 };
    if (b->at_once != 0 && b->state[GPQ_HELD] != 0)
        code = s->engine->turn(s, b->id, keep_first, ret, e);
    ret->turn = ret->first.id != 0 ? b->state[GPQ_HELD] : 0;
    bool known = ret->turn != 0 && b->state[GPQ_READY] == 0;
    bool waits = b->state[GPQ_READY] + b->state[GPQ_HELD] != 0;
    return code < 0 ? code : waits && !known ? find(s, b, ret, e) : 0;
}
