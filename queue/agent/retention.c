/* SPDX-License-Identifier: MIT */
/* retention.c - forgets tasks that ended long ago, by the store's purge. */
#include "queue/agent/retention.h"

#include <inttypes.h>
#include <stdlib.h>

#include "queue/agent/lookup.h"

#define DAY (UINT64_C(24) * 3600 * 1000000000)
#define WEEK (7 * DAY)
/* Of one turn: each forgotten task is some ten rows, and a task that stays is one. */
enum { FORGET = 256, LOOK = FORGET * GPQ_PURGE_LOOKS };

enum phase { OVER, BEGINS, BY_AGE, COUNTS, BY_NUMBER };

/* Where a round is. */
struct round {
    enum phase phase;
    uint64_t from;  /* the last task that this phase has looked at */
    uint64_t begun; /* wall time */
    uint64_t ended; /* tasks that have ended, as far as they are counted */
    uint64_t forgotten;
};

struct gpq_retention {
    struct round is, will; /* will: if the transaction in progress succeeds */
    uint64_t last;         /* the mark's time */
    uint64_t next;         /* wall time of the next round */
};

int gpq_retention_open(struct gpq_agent *a, struct gpq_error *e)
{
    if (a->keep.age == 0 && a->keep.tasks == 0)
        return 0;
    struct gpq_retention *r = calloc(1, sizeof(*r));
    if (!r)
        return gpq_fail(e, GPQ_ENOMEM, "no memory");
    a->retention = r;
    r->is.phase = BEGINS;
    int code = gpq_mark_look(a->store, "retention", "", &r->last, e);
    return code < 0 ? code : 0;
}

void gpq_retention_close(struct gpq_agent *a)
{
    free(a->retention);
    a->retention = NULL;
}

/* ---- The phases ---- */

static bool is_trusted(const struct gpq_agent *a, uint64_t now)
{
    uint64_t last = a->retention->last, longest = WEEK > a->keep.age / 4 ? WEEK : a->keep.age / 4;
    return last != 0 && now >= last && now - last <= longest;
}

static void go_to(struct round *r, enum phase phase)
{
    r->phase = phase;
    r->from = 0;
}

static int begin_round(struct gpq_agent *a, uint64_t now, struct gpq_error *e)
{
    struct round *r = &a->retention->will;
    const struct gpq_mark mark = { "retention", "", NULL, now };
    *r = (struct round){ .begun = now };
    if (is_trusted(a, now))
        go_to(r, a->keep.age != 0 ? BY_AGE : COUNTS);
    return a->store->engine->mark(a->store, &mark, e);
}

/* Returns the number of forgotten tasks. */
static int64_t forget(struct gpq_agent *a, uint64_t before, uint64_t most, struct gpq_error *e)
{
    struct round *r = &a->retention->will;
    int64_t n = a->store->engine->purge(a->store, before, false,
                                        most < FORGET ? (uint32_t)most : FORGET, &r->from, e);
    if (n > 0)
        r->forgotten += (uint64_t)n;
    return n;
}

static int by_age(struct gpq_agent *a, struct gpq_error *e)
{
    struct round *r = &a->retention->will;
    uint64_t before = r->begun > a->keep.age ? r->begun - a->keep.age : 1;
    int64_t n = forget(a, before, FORGET, e);
    if (n >= 0 && r->from == 0)
        go_to(r, a->keep.tasks != 0 ? COUNTS : OVER);
    return n < 0 ? (int)n : 0;
}

struct count {
    struct round *round;
    uint32_t looked;
};

static int count_one(const struct gpq_task *t, void *user)
{
    struct count *c = user;
    c->round->from = t->id;
    c->round->ended += t->state == GPQ_DONE;
    return ++c->looked == LOOK;
}

static int count(struct gpq_agent *a, struct gpq_error *e)
{
    struct round *r = &a->retention->will;
    struct count c = { .round = r };
    const struct gpq_select all = { 0 };
    int code = a->store->engine->tasks(a->store, &all, r->from, false, count_one, &c, e);
    if (code == 0) /* the last one was counted */
        go_to(r, r->ended > a->keep.tasks ? BY_NUMBER : OVER);
    return code < 0 ? code : 0;
}

static int by_number(struct gpq_agent *a, struct gpq_error *e)
{
    struct round *r = &a->retention->will;
    int64_t n = forget(a, r->begun > DAY ? r->begun - DAY : 1, r->ended - a->keep.tasks, e);
    if (n > 0)
        r->ended -= (uint64_t)n;
    if (n >= 0 && (r->from == 0 || r->ended <= a->keep.tasks))
        go_to(r, OVER);
    return n < 0 ? (int)n : 0;
}

int gpq_retention_store(struct gpq_agent *a, uint64_t now, struct gpq_error *e)
{
    if (!a->retention)
        return 0;
    a->retention->will = a->retention->is;
    switch (a->retention->is.phase) {
    case BEGINS:
        return begin_round(a, now, e);
    case BY_AGE:
        return by_age(a, e);
    case COUNTS:
        return count(a, e);
    case BY_NUMBER:
        return by_number(a, e);
    default:
        return 0;
    }
}

void gpq_retention_stored(struct gpq_agent *a)
{
    struct gpq_retention *r = a->retention;
    if (!r || r->is.phase == OVER)
        return;
    if (r->is.phase == BEGINS) {
        r->last = r->will.begun;
        r->next = r->will.begun + DAY;
    }
    r->is = r->will;
    if (r->is.phase == OVER && r->is.forgotten != 0)
        gpq_log("%" PRIu64 " tasks that ended long ago are forgotten (--keep-age, --keep-tasks)",
                r->is.forgotten);
}

bool gpq_retention_goes_on(const struct gpq_agent *a)
{
    return a->retention && a->retention->is.phase != OVER;
}

/* ---- Time ---- */

uint64_t gpq_retention_next(const struct gpq_agent *a)
{
    return a->retention && a->retention->is.phase == OVER ? a->retention->next : 0;
}

void gpq_retention_time(struct gpq_agent *a)
{
    struct gpq_retention *r = a->retention;
    uint64_t now = gpq_wall();
    if (!r || r->is.phase != OVER)
        return;
    if (r->next > now + DAY) /* the clock was set back */
        r->next = now + DAY;
    if (r->next <= now)
        r->is.phase = BEGINS;
}
