/* SPDX-License-Identifier: MIT */
/* change.c - what people and clocks do to selected tasks. */
#include <stdlib.h>

#include "queue/sqlite/counts.h"
#include "queue/sqlite/ops.h"
#include "queue/sqlite/round.h"
#include "queue/sqlite/select.h"
#include "queue/sqlite/settle.h"
#include "queue/sqlite/spec.h"
#include "queue/sqlite/states.h"

/* Settles after a change of several tasks; returns their number. */
static int64_t settled(struct gpq_db *db, uint64_t now, int64_t count, struct gpq_error *e)
{
    if (count < 0)
        return count;
    int code = gpq_settle(db, now, e);
    return code < 0 ? code : count;
}

/* Writes a row that a function for each selected task has changed, unless that failed.  1: it
 * counts. */
static int changed(struct gpq_db *db, const struct gpq_row *r, int code, struct gpq_error *e)
{
    if (code == 0)
        code = gpq_row_write(db, r, e);
    return code < 0 ? code : 1;
}

/* ---- cancel ---- */

static int cancel_one(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e)
{
    const uint64_t *now = user;
    int code = 0;
    if (gpq_waits(r)) {
        code = gpq_finish(db, r, GPQ_OUTCOME_CANCELLED, *now, 0, e);
    } else if (r->state == GPQ_RUNNING && !r->cancel) {
        r->cancel = true;
        gpq_db_changed(db, &(struct gpq_change){ .task = r->id,
                                                 .shape = r->shape,
                                                 .from = GPQ_RUNNING,
                                                 .to = GPQ_RUNNING,
                                                 .cancel = true });
    } else {
        return 0;
    }
    return changed(db, r, code, e);
}

/* A client that was to append to it may have been killed. */
int64_t gpq_sqlite_cancel(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                          struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, true, e);
    if (code < 0)
        return code;
    int64_t count = settled(db, now, gpq_select_each(db, which, cancel_one, &now, e), e);
    if (count >= 0 && gpq_select_is_batch(which))
        code = gpq_sqlite_seal(s, now, which->batch, e);
    return code < 0 && code != GPQ_ENOTFOUND ? code : count;
}

/* ---- retry ---- */

struct retry {
    uint64_t now;
    uint32_t outcomes;
    struct gpq_ids opened;
};

static int open_one(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e)
{
    struct retry *what = user;
    struct gpq_policy plan;
    if (r->state != GPQ_DONE || (r->outcome == GPQ_OUTCOME_SUCCESS && what->outcomes == 0))
        return 0;
    int code = gpq_ids_add(db, &what->opened, r->id, e);
    if (code == 0)
        code = gpq_policy_read(db, r->spec, &plan, e);
    if (code == 0 && plan.expires <= what->now)
        plan.expires = 0;
    if (code == 0)
        code = gpq_round_open(db, r, &plan, what->now, e);
    return code < 0 ? code : 1;
}

static int place_one(struct gpq_db *db, uint64_t task, uint64_t now, struct gpq_error *e)
{
    struct gpq_row r;
    struct gpq_policy plan;
    int code = gpq_row_read(db, task, &r, e);
    if (code == 0)
        code = gpq_policy_read(db, r.spec, &plan, e);
    return code == 0 ? gpq_round_place(db, &r, &plan, false, now, e) : code;
}

/* Conditions are judged when all rounds are open: a task waits for those that run again with it. */
int64_t gpq_sqlite_retry(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                         struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct retry what = { .now = now, .outcomes = which->outcomes };
    int code = gpq_db_enter(db, true, e);
    int64_t count = code < 0 ? code : gpq_select_each(db, which, open_one, &what, e);
    for (size_t i = 0; count >= 0 && i < what.opened.n; i++) {
        code = place_one(db, what.opened.id[i], now, e);
        count = code < 0 ? code : count;
    }
    gpq_ids_free(&what.opened);
    return settled(db, now, count, e);
}

/* ---- hold ---- */

static int hold_one(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e)
{
    const uint64_t *now = user;
    if (!gpq_waits(r) || r->holds & GPQ_HOLD_USER)
        return 0;
    int code = 0;
    r->holds = (r->holds & ~(uint32_t)GPQ_HOLD_TURN) | GPQ_HOLD_USER;
    if (r->state == GPQ_READY)
        code = gpq_move(db, r, GPQ_HELD, *now, e);
    return changed(db, r, code, e);
}

static int release_one(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e)
{
    const uint64_t *now = user;
    if (r->state != GPQ_HELD || !(r->holds & GPQ_HOLD_USER))
        return 0;
    r->holds &= ~(uint32_t)GPQ_HOLD_USER;
    return changed(db, r, gpq_release(db, r, *now, e), e);
}

int64_t gpq_sqlite_hold(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                        bool held, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, true, e);
    if (code == 0 && gpq_select_is_batch(which)) {
        struct gpq_tally *t = gpq_tally(db, which->batch, &code, e);
        if (t) {
            t->flags = held ? t->flags | GPQ_BATCH_HELD : t->flags & ~(uint32_t)GPQ_BATCH_HELD;
            gpq_tally_touch(db, t);
        } else if (code == GPQ_ENOTFOUND) {
            return 0;
        }
    }
    if (code < 0)
        return code;
    return settled(db, now, gpq_select_each(db, which, held ? hold_one : release_one, &now, e), e);
}

/* ---- another spec, another place ---- */

/* Followers of a ready task see a change, since its place is another one. */
static void moved(struct gpq_db *db, const struct gpq_row *r, uint32_t from_shape)
{
    if (r->state == GPQ_READY)
        gpq_db_changed(db, &(struct gpq_change){ .task = r->id,
                                                 .shape = r->shape,
                                                 .from_shape = from_shape,
                                                 .from = GPQ_READY,
                                                 .to = GPQ_READY });
}

struct respec {
    struct gpq_bytes content;
    struct gpq_policy plan;
    uint32_t same; /* the last spec that had the content */
};

/* What a task is does not change: a later submit of its line must still join it. */
static int check_one(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e)
{
    struct respec *what = user;
    if (!gpq_waits(r) || r->spec == what->same)
        return 0;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SPEC_READ);
    gpq_bind(st, 1, r->spec);
    int code = gpq_db_next(db, st, e);
    if (code <= 0)
        return code < 0 ? code : gpq_db_damaged(db, e, "there is no spec %u", r->spec);
    bool same = gpq_same(gpq_column_bytes(st, 0), what->content);
    sqlite3_reset(st);
    if (!same)
        return gpq_fail(e, GPQ_EINVAL, "spec.content is not that of task %u.%u, which must stay",
                        GPQ_BATCH_OF(r->id), GPQ_NUMBER_OF(r->id));
    what->same = r->spec;
    return 0;
}

static int respec_one(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e)
{
    const struct respec *what = user;
    if (!gpq_waits(r))
        return 0;
    uint32_t old = r->shape;
    int code = gpq_spec_change(db, r, &what->plan, e);
    if (code == 0)
        code = gpq_row_place(db, r, e);
    moved(db, r, old);
    return code < 0 ? code : 1;
}

int64_t gpq_sqlite_respec(struct gpq_store *s, uint64_t now, const struct gpq_select *which,
                          const struct gpq_spec *spec, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct respec what = { .content = spec->content };
    int64_t count = gpq_db_enter(db, true, e);
    if (count == 0)
        count = gpq_spec_check(spec, 0, e);
    if (count == 0)
        count = gpq_select_each(db, which, check_one, &what, e);
    if (count == 0)
        count = gpq_spec_add(db, spec, &what.plan, e);
    if (count == 0)
        count = gpq_select_each(db, which, respec_one, &what, e);
    int code = count < 0 ? (int)count : gpq_spec_use(db, what.plan.id, -1, e);
    return code < 0 ? code : settled(db, now, count, e);
}

struct line_up {
    int64_t order;
    uint64_t id;
};

static int by_order(const void *left, const void *right)
{
    const struct line_up *a = left, *b = right;
    return (a->order > b->order) - (a->order < b->order);
}

/* The order is an id of a kind: int64_t as uint64_t. */
static int note_place(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e)
{
    if (!gpq_waits(r))
        return 0;
    int code = gpq_ids_add(db, user, (uint64_t)r->order, e);
    if (code == 0)
        code = gpq_ids_add(db, user, r->id, e);
    return code < 0 ? code : 1;
}

static int put_first(struct gpq_db *db, uint64_t id, int64_t order, struct gpq_error *e)
{
    struct gpq_row r;
    int code = gpq_row_read(db, id, &r, e);
    if (code < 0)
        return code;
    r.order = order;
    moved(db, &r, r.shape);
    return gpq_row_place(db, &r, e);
}

int64_t gpq_sqlite_first(struct gpq_store *s, const struct gpq_select *which, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct gpq_ids places = { 0 }; /* pairs of order and id: struct line_up */
    int64_t n = gpq_db_enter(db, true, e);
    if (n == 0)
        n = gpq_select_each(db, which, note_place, &places, e);
    struct line_up *line = (struct line_up *)(void *)places.id;
    if (n > 1)
        qsort(line, (size_t)n, sizeof(*line), by_order);
    int code = 0;
    if (n > 0)
        db->low -= n;
    for (int64_t i = 0; code == 0 && i < n; i++)
        code = put_first(db, line[i].id, db->low + i, e);
    gpq_ids_free(&places);
    return code < 0 ? code : n;
}

/* ---- time ---- */

static int time_has_come(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e)
{
    const uint64_t *now = user;
    r->not_before = 0;
    r->holds &= ~(uint32_t)GPQ_HOLD_TIME;
    return changed(db, r, gpq_release(db, r, *now, e), e);
}

static int has_expired(struct gpq_db *db, struct gpq_row *r, void *user, struct gpq_error *e)
{
    const uint64_t *now = user;
    return changed(db, r, gpq_finish(db, r, GPQ_OUTCOME_TIMEOUT, *now, 0, e), e);
}

static int64_t each_due(struct gpq_db *db, enum gpq_sql name, uint64_t now, gpq_row_fn *fn,
                        struct gpq_error *e)
{
    struct gpq_ids ids = { 0 };
    int64_t n = GPQ_DB_IDS(db, name, &ids, e, (int64_t)now);
    if (n == 0 && ids.n != 0)
        n = gpq_select_each(db, &(struct gpq_select){ .tasks = ids.id, .n_tasks = ids.n }, fn, &now,
                            e);
    gpq_ids_free(&ids);
    return n;
}

static int next_of(struct gpq_db *db, enum gpq_sql name, uint64_t *next, struct gpq_error *e)
{
    sqlite3_stmt *st = gpq_db_use(db, name);
    int code = gpq_db_next(db, st, e);
    if (code <= 0)
        return code;
    uint64_t at = (uint64_t)sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    if (at != 0 && (*next == 0 || at < *next))
        *next = at;
    return 0;
}

int64_t gpq_sqlite_due(struct gpq_store *s, uint64_t now, uint64_t *ret_next, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int64_t come = gpq_db_enter(db, true, e);
    if (come == 0)
        come = each_due(db, GPQ_SQL_TASK_DUE, now, time_has_come, e);
    if (come < 0)
        return come;
    int64_t expired = each_due(db, GPQ_SQL_TASK_EXPIRED, now, has_expired, e);
    int64_t count = settled(db, now, expired < 0 ? expired : come + expired, e);
    *ret_next = 0;
    int code = count < 0 ? (int)count : next_of(db, GPQ_SQL_TASK_NEXT_DUE, ret_next, e);
    if (code == 0)
        code = next_of(db, GPQ_SQL_TASK_NEXT_EXPIRY, ret_next, e);
    return code < 0 ? code : count;
}
