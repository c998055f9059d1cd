/* SPDX-License-Identifier: MIT */
/* purge.c - forgets tasks that ended long ago, and what only they used. */
#include <stdio.h>

#include "queue/sqlite/counts.h"
#include "queue/sqlite/ops.h"
#include "queue/sqlite/spec.h"

/* 1: all batches in which the task counts have ended. */
static int batches_ended(struct gpq_db *db, const struct gpq_row *r, struct gpq_error *e)
{
    struct gpq_ids batches = { 0 };
    int code = gpq_ids_add(db, &batches, GPQ_BATCH_OF(r->id), e);
    if (code == 0 && r->links & GPQ_LINK_JOINED)
        code = GPQ_DB_IDS(db, GPQ_SQL_JOINED_BY, &batches, e, (int64_t)r->id);
    bool ended = true;
    for (size_t i = 0; code == 0 && ended && i < batches.n; i++) {
        const struct gpq_tally *t = gpq_tally(db, (uint32_t)batches.id[i], &code, e);
        ended = t && t->ended != 0;
    }
    gpq_ids_free(&batches);
    return code < 0 ? code : ended;
}

static int may_go(struct gpq_db *db, const struct gpq_row *r, bool keep_failed, struct gpq_error *e)
{
    if (keep_failed && r->outcome != GPQ_OUTCOME_SUCCESS)
        return 0;
    int code = batches_ended(db, r, e);
    if (code <= 0 || !(r->links & GPQ_LINK_SOURCE))
        return code;
    code = GPQ_DB_ANY(db, GPQ_SQL_EDGES_WAITING, e, (int64_t)r->id);
    return code < 0 ? code : code == 0;
}

static int forget(struct gpq_db *db, const struct gpq_row *r, struct gpq_error *e)
{
    static const enum gpq_sql rows[] = {
        GPQ_SQL_PAYLOAD_FORGET,      GPQ_SQL_ATTEMPTS_FORGET, GPQ_SQL_ROUNDS_FORGET,
        GPQ_SQL_RESULT_FORGET,       GPQ_SQL_JOINED_FORGET,   GPQ_SQL_EDGES_FORGET,
        GPQ_SQL_EDGES_FORGET_SOURCE,
    };
    int code = gpq_row_forget(db, r->id, e);
    for (size_t i = 0; code == 0 && i < sizeof(rows) / sizeof(rows[0]); i++)
        code = GPQ_DB_DO(db, rows[i], e, (int64_t)r->id);
    gpq_db_changed(db, &(struct gpq_change){ .task = r->id,
                                             .shape = r->shape,
                                             .from = (uint8_t)r->state,
                                             .attempt = r->attempt });
    if (code == 0)
        code = gpq_spec_use(db, r->spec, -1, e);
    return code == 0 ? gpq_shape_use(db, r->shape, -1, e) : code;
}

/* The tasks behind `from` that have ended before `before`.  *ret_last: the last one that was looked
 * at, UINT64_MAX at the end. */
static int read_ended(struct gpq_db *db, uint64_t before, uint64_t from, int64_t looks,
                      struct gpq_ids *ids, uint64_t *ret_last, struct gpq_error *e)
{
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_TASK_ENDS);
    int64_t n = 0;
    int code;
    gpq_bind(st, 1, (int64_t)from);
    gpq_bind(st, 2, looks);
    while ((code = gpq_db_next(db, st, e)) > 0) {
        n++;
        *ret_last = (uint64_t)sqlite3_column_int64(st, 0);
        if (sqlite3_column_int64(st, 1) == GPQ_DONE &&
            (uint64_t)sqlite3_column_int64(st, 2) < before &&
            gpq_ids_add(db, ids, *ret_last, e) < 0)
            break;
    }
    if (n < looks)
        *ret_last = UINT64_MAX;
    return db->failed != 0 ? db->failed : code;
}

enum { AT_ONCE = 1024 };

struct purge {
    uint64_t before;
    bool keep_failed;
    bool to_end; /* goes on behind the first looks */
    uint32_t most;
    int64_t looks;
    uint64_t from, last; /* tasks; last: UINT64_MAX at the end */
};

/* Of these tasks; *count: those that are forgotten. */
static int forget_some(struct gpq_db *db, struct purge *p, const struct gpq_ids *ids,
                       int64_t *count, struct gpq_error *e)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < ids->n; i++) {
        struct gpq_row r;
        if (*count == p->most) {
            p->last = ids->id[i] - 1;
            break;
        }
        code = gpq_row_read(db, ids->id[i], &r, e);
        if (code == 0)
            code = may_go(db, &r, p->keep_failed, e);
        if (code <= 0)
            continue;
        code = forget(db, &r, e);
        ++*count;
    }
    return code;
}

/* With `to_end` it reads the tasks that it forgets and those that stay before them: not all that
 * later calls will forget. */
static int64_t forget_tasks(struct gpq_db *db, struct purge *p, struct gpq_error *e)
{
    struct gpq_ids ids = { 0 };
    uint64_t from = p->from;
    int64_t count = 0;
    int code;
    do {
        ids.n = 0;
        code = read_ended(db, p->before, from, p->looks, &ids, &p->last, e);
        from = p->last;
        if (code == 0)
            code = forget_some(db, p, &ids, &count, e);
    } while (code == 0 && p->to_end && count < p->most && p->last != UINT64_MAX);
    gpq_ids_free(&ids);
    return code < 0 ? code : count;
}

/* A batch has no tasks left, own or joined, and no task waits for its end. */
static int is_empty(struct gpq_db *db, uint32_t batch, struct gpq_error *e)
{
    int code = GPQ_DB_ANY(db, GPQ_SQL_BATCH_HAS_TASK, e, (int64_t)GPQ_TASK(batch, 1),
                          (int64_t)GPQ_TASK(batch, UINT32_MAX));
    if (code == 0)
        code = GPQ_DB_ANY(db, GPQ_SQL_JOINED_HAS, e, batch);
    if (code == 0)
        code = GPQ_DB_ANY(db, GPQ_SQL_EDGES_WAITING, e, (int64_t)GPQ_TASK(batch, 0));
    return code < 0 ? code : code == 0;
}

/* Nobody can be told of its end any more. */
static int forget_mark(struct gpq_db *db, uint32_t batch, struct gpq_error *e)
{
    char subject[16];
    struct gpq_error none;
    (void)snprintf(subject, sizeof(subject), "%u", batch);
    int code = gpq_sqlite_unmark(&db->store, "notify", subject, &none);
    if (code == GPQ_ENOTFOUND || code == 0)
        return 0;
    return gpq_fail(e, code, "%s", none.text);
}

/* Those of the tasks that were looked at, and those without tasks between them. */
static int forget_batches(struct gpq_db *db, const struct purge *p, struct gpq_error *e)
{
    int code = gpq_counts_write(db, e); /* `ended` is read from the file */
    struct gpq_ids ids = { 0 };
    if (code == 0)
        code = GPQ_DB_IDS(db, GPQ_SQL_BATCHES_OVER, &ids, e, (int64_t)p->before,
                          GPQ_BATCH_OF(p->from), GPQ_BATCH_OF(p->last));
    for (size_t i = 0; code == 0 && i < ids.n; i++) {
        uint32_t batch = (uint32_t)ids.id[i];
        code = is_empty(db, batch, e);
        if (code <= 0)
            continue;
        gpq_tally_forget(db, batch);
        code = forget_mark(db, batch, e);
        if (code < 0)
            break;
        code = GPQ_DB_DO(db, GPQ_SQL_EDGES_FORGET_SOURCE, e, (int64_t)GPQ_TASK(batch, 0));
        if (code == 0)
            code = GPQ_DB_DO(db, GPQ_SQL_BATCH_FORGET, e, batch);
    }
    gpq_ids_free(&ids);
    return code;
}

int64_t gpq_sqlite_purge(struct gpq_store *s, uint64_t before, bool keep_failed, uint32_t most,
                         uint64_t *from, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct purge p = { .before = before,
                       .keep_failed = keep_failed,
                       .to_end = !from,
                       .most = most,
                       .looks = from ? (int64_t)most * GPQ_PURGE_LOOKS : AT_ONCE,
                       .from = from ? *from : 0,
                       .last = from ? *from : 0 };
    int64_t count = gpq_db_enter(db, true, e);
    if (count == 0)
        count = forget_tasks(db, &p, e);
    if (count < 0)
        return count;
    if (!from)
        p.last = UINT64_MAX;
    int code = forget_batches(db, &p, e);
    if (code == 0)
        code = GPQ_DB_DO(db, GPQ_SQL_REQUEST_FORGET, e, (int64_t)before);
    if (code == 0)
        code = GPQ_DB_DO(db, GPQ_SQL_SPAN_FORGET, e, (int64_t)before);
    if (code == 0 && from)
        *from = p.last == UINT64_MAX ? 0 : p.last;
    return code < 0 ? code : count;
}
