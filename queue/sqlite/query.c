/* SPDX-License-Identifier: MIT */
/* query.c - the readers of batches, tasks, attempts and results. */
#include "queue/sqlite/counts.h"
#include "queue/sqlite/ops.h"
#include "queue/sqlite/select.h"

/* Counts that a transaction has changed are in memory until the commit. */
static int enter(struct gpq_db *db, struct gpq_error *e)
{
    int code = gpq_db_enter(db, false, e);
    return code == 0 && db->inside ? gpq_counts_write(db, e) : code;
}

/* The function of a reader, which its rows are for. */
struct call {
    union {
        gpq_batch_fn batch;
        gpq_attempt_fn attempt;
        gpq_round_fn round;
        int (*after)(const struct gpq_after *a, bool met, void *user);
        gpq_result_fn result;
    } fn;
    void *user;
};

/* Reads all rows of a statement, of which `id` is the parameter, if it has one. */
static int read_rows(struct gpq_store *s, enum gpq_sql name, uint64_t id,
                     int (*each)(sqlite3_stmt *st, void *user), struct call call,
                     struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = enter(db, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, name);
    if (sqlite3_bind_parameter_count(st) != 0)
        gpq_bind(st, 1, (int64_t)id);
    return gpq_db_rows(db, st, each, &call, e);
}

/* ---- Batches ---- */

static int each_batch(sqlite3_stmt *st, void *user)
{
    const struct call *call = user;
    struct gpq_tally t;
    gpq_tally_read(st, &t);
    struct gpq_batch b = {
        .id = t.id,
        .name = gpq_column_text(st, 1),
        .made = (uint64_t)sqlite3_column_int64(st, 2),
        .ended = t.ended,
        .total = t.total,
        .joined = t.joined,
        .at_once = t.at_once,
        .max_fails = t.max_fails,
        .max_fails_percent = t.percent,
        .fails_limited = (t.flags & GPQ_BATCH_FAILS) != 0,
        .open = (t.flags & GPQ_BATCH_OPEN) != 0,
        .held = (t.flags & GPQ_BATCH_HELD) != 0,
        .notify = (t.flags & GPQ_BATCH_NOTIFY) != 0,
        .options = gpq_column_bytes(st, 24),
    };
    for (int i = 0; i < GPQ_STATES; i++)
        b.state[i] = t.state[i];
    for (int i = 0; i < GPQ_OUTCOMES; i++)
        b.outcome[i] = t.outcome[i];
    return call->fn.batch(&b, call->user);
}

int gpq_sqlite_batches(struct gpq_store *s, uint32_t from, gpq_batch_fn fn, void *user,
                       struct gpq_error *e)
{
    return read_rows(s, GPQ_SQL_BATCHES, from, each_batch, (struct call){ { .batch = fn }, user },
                     e);
}

int gpq_sqlite_batch_named(struct gpq_store *s, const char *name, uint32_t number,
                           uint32_t *ret_batch, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = enter(db, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_BATCH_NAMED);
    gpq_bind_text(st, 1, name);
    gpq_bind(st, 2, number);
    code = gpq_db_next(db, st, e);
    if (code == 0 && number == 0)
        return gpq_fail(e, GPQ_ENOTFOUND, "there is no batch named \"%s\"", name);
    if (code == 0)
        return gpq_fail(e, GPQ_ENOTFOUND, "there is no task %u of a batch named \"%s\"", number,
                        name);
    if (code < 0)
        return code;
    *ret_batch = (uint32_t)sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return 0;
}

/* ---- Tasks ---- */

struct task_call {
    const struct gpq_select *which;
    bool whole;
    gpq_task_fn fn;
    void *user;
};

static int each_task(sqlite3_stmt *st, void *user)
{
    const struct task_call *call = user;
    struct gpq_row r;
    struct gpq_task t;
    gpq_row_columns(st, &r);
    if (call->which && !gpq_select_fits(call->which, &r))
        return 0;
    gpq_row_task(&r, &t);
    if (call->whole) {
        t.line = (uint32_t)sqlite3_column_int64(st, 20);
        t.name = gpq_column_text(st, 21);
        t.content = gpq_column_bytes(st, 22);
        t.key = gpq_column_bytes(st, 23);
        t.stamp = gpq_column_bytes(st, 24);
    }
    return call->fn(&t, call->user);
}

static int between(struct gpq_db *db, uint64_t first, uint64_t last, struct task_call *call,
                   struct gpq_error *e)
{
    if (first > last || first > INT64_MAX)
        return 0;
    sqlite3_stmt *st = gpq_db_use(db, call->whole ? GPQ_SQL_TASKS_WHOLE : GPQ_SQL_TASKS);
    gpq_bind(st, 1, (int64_t)first);
    gpq_bind(st, 2, (int64_t)last);
    return gpq_db_rows(db, st, each_task, call, e);
}

/* A list in the order of its ids, which the caller has sorted, or the members of a batch. */
static int each_of(struct gpq_db *db, const uint64_t *id, size_t n, uint64_t after,
                   struct task_call *call, struct gpq_error *e)
{
    int code = 0;
    for (size_t i = 0; code == 0 && i < n; i++)
        if (id[i] > after)
            code = between(db, id[i], id[i], call, e);
    return code;
}

static int members(struct gpq_db *db, uint64_t after, struct task_call *call, struct gpq_error *e)
{
    uint64_t first, last;
    struct gpq_ids ids = { 0 };
    gpq_select_range(call->which, &first, &last);
    int code = GPQ_DB_IDS(db, GPQ_SQL_MEMBERS, &ids, e, (int64_t)after, (int64_t)first,
                          (int64_t)last, call->which->batch);
    if (code == 0)
        code = each_of(db, ids.id, ids.n, after, call, e);
    gpq_ids_free(&ids);
    return code;
}

int gpq_sqlite_tasks(struct gpq_store *s, const struct gpq_select *which, uint64_t after,
                     bool whole, gpq_task_fn fn, void *user, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct task_call call = { which, whole, fn, user };
    uint64_t first, last;
    int code = enter(db, e);
    if (code < 0)
        return code;
    gpq_select_range(which, &first, &last);
    if (which->n_tasks != 0)
        return each_of(db, which->tasks, which->n_tasks, after, &call, e);
    if (gpq_select_joined(which))
        return members(db, after, &call, e);
    return between(db, first > after ? first : after + 1, last, &call, e);
}

struct limited {
    struct task_call call;
    uint32_t left;
};

static int each_ready(sqlite3_stmt *st, void *user)
{
    struct limited *l = user;
    l->left--;
    return each_task(st, &l->call);
}

int gpq_sqlite_ready(struct gpq_store *s, uint32_t shape, int32_t priority, int64_t order,
                     uint32_t most, gpq_task_fn fn, void *user, struct gpq_error *e)
{
    static const enum gpq_sql part[] = { GPQ_SQL_READY_SAME, GPQ_SQL_READY_LESS };
    struct gpq_db *db = gpq_db_of(s);
    struct limited l = { .call = { .fn = fn, .user = user }, .left = most };
    int code = enter(db, e);
    for (int i = 0; code == 0 && i < 2 && l.left != 0; i++) {
        sqlite3_stmt *st = gpq_db_use(db, part[i]);
        gpq_bind(st, 1, shape);
        gpq_bind(st, 2, priority);
        gpq_bind(st, 3, order);
        gpq_bind(st, 4, l.left);
        code = gpq_db_rows(db, st, each_ready, &l, e);
    }
    return code;
}

int gpq_sqlite_turn(struct gpq_store *s, uint32_t batch, gpq_task_fn fn, void *user,
                    struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct task_call call = { .fn = fn, .user = user };
    int code = enter(db, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_TASK_TURN);
    gpq_bind(st, 1, batch);
    return gpq_db_rows(db, st, each_task, &call, e);
}

/* ---- Shapes ---- */

struct shape_call {
    struct gpq_db *db;
    gpq_shape_fn fn;
    void *user;
    struct gpq_error *e;
};

/* The first ready task of a shape: by another statement than the one that is read. */
static int first_of(struct shape_call *call, struct gpq_shape *shape)
{
    sqlite3_stmt *st = gpq_db_use(call->db, GPQ_SQL_READY_LESS);
    gpq_bind(st, 1, shape->id);
    gpq_bind(st, 2, (int64_t)INT32_MAX + 1);
    gpq_bind(st, 4, 1);
    int code = gpq_db_next(call->db, st, call->e);
    if (code <= 0)
        return code < 0
                   ? code
                   : gpq_db_damaged(call->db, call->e, "shape %u has no ready task", shape->id);
    struct gpq_row r;
    gpq_row_columns(st, &r);
    sqlite3_reset(st);
    shape->priority = r.priority;
    shape->order = r.order;
    return 0;
}

static int each_shape(sqlite3_stmt *st, void *user)
{
    struct shape_call *call = user;
    struct gpq_shape shape = { .id = (uint32_t)sqlite3_column_int64(st, 0),
                               .ready = (uint32_t)sqlite3_column_int64(st, 1),
                               .request = gpq_column_bytes(st, 2) };
    int code = first_of(call, &shape);
    return code != 0 ? code : call->fn(&shape, call->user);
}

int gpq_sqlite_shapes(struct gpq_store *s, gpq_shape_fn fn, void *user, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = enter(db, e);
    if (code < 0)
        return code;
    return gpq_db_rows(db, gpq_db_use(db, GPQ_SQL_SHAPES), each_shape,
                       &(struct shape_call){ db, fn, user, e }, e);
}

int gpq_sqlite_shape(struct gpq_store *s, uint32_t id, gpq_shape_fn fn, void *user,
                     struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = enter(db, e);
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SHAPE_READ);
    gpq_bind(st, 1, id);
    if (code == 0)
        code = gpq_db_next(db, st, e);
    if (code <= 0)
        return code < 0 ? code : gpq_fail(e, GPQ_ENOTFOUND, "there is no shape %u", id);
    const struct gpq_shape shape = { .id = id, .request = gpq_column_bytes(st, 2) };
    code = fn(&shape, user);
    sqlite3_reset(st);
    return code;
}

/* ---- Attempts, rounds, conditions, results ---- */

static int each_attempt(sqlite3_stmt *st, void *user)
{
    const struct call *call = user;
    struct gpq_attempt a;
    gpq_attempt_columns(st, &a);
    return call->fn.attempt(&a, call->user);
}

int gpq_sqlite_running(struct gpq_store *s, gpq_attempt_fn fn, void *user, struct gpq_error *e)
{
    return read_rows(s, GPQ_SQL_ATTEMPTS_RUNNING, 0, each_attempt,
                     (struct call){ { .attempt = fn }, user }, e);
}

int gpq_sqlite_attempts(struct gpq_store *s, uint64_t task, gpq_attempt_fn fn, void *user,
                        struct gpq_error *e)
{
    return read_rows(s, GPQ_SQL_ATTEMPTS, task, each_attempt,
                     (struct call){ { .attempt = fn }, user }, e);
}

static int each_round(sqlite3_stmt *st, void *user)
{
    const struct call *call = user;
    struct gpq_round r = { .round = (uint32_t)sqlite3_column_int64(st, 0),
                           .outcome = (uint32_t)sqlite3_column_int64(st, 1),
                           .attempt = (uint32_t)sqlite3_column_int64(st, 2),
                           .ended = (uint64_t)sqlite3_column_int64(st, 3),
                           .cause = (uint64_t)sqlite3_column_int64(st, 4) };
    return call->fn.round(&r, call->user);
}

int gpq_sqlite_rounds(struct gpq_store *s, uint64_t task, gpq_round_fn fn, void *user,
                      struct gpq_error *e)
{
    return read_rows(s, GPQ_SQL_ROUNDS, task, each_round, (struct call){ { .round = fn }, user },
                     e);
}

static int each_edge(sqlite3_stmt *st, void *user)
{
    const struct call *call = user;
    struct gpq_after a = { (uint64_t)sqlite3_column_int64(st, 0),
                           (uint32_t)sqlite3_column_int64(st, 1) };
    return call->fn.after(&a, sqlite3_column_int64(st, 2) != 0, call->user);
}

int gpq_sqlite_after(struct gpq_store *s, uint64_t task,
                     int (*fn)(const struct gpq_after *a, bool met, void *user), void *user,
                     struct gpq_error *e)
{
    return read_rows(s, GPQ_SQL_EDGES_OF, task, each_edge, (struct call){ { .after = fn }, user },
                     e);
}

static int each_result(sqlite3_stmt *st, void *user)
{
    const struct call *call = user;
    struct gpq_result r = { .task = (uint64_t)sqlite3_column_int64(st, 0),
                            .attempt = (uint32_t)sqlite3_column_int64(st, 1),
                            .size = (uint64_t)sqlite3_column_int64(st, 2),
                            .data = gpq_column_bytes(st, 3),
                            .file = gpq_column_text(st, 4) };
    return call->fn.result(&r, call->user);
}

int gpq_sqlite_result(struct gpq_store *s, uint64_t task, gpq_result_fn fn, void *user,
                      struct gpq_error *e)
{
    return read_rows(s, GPQ_SQL_RESULT_READ, task, each_result,
                     (struct call){ { .result = fn }, user }, e);
}

int gpq_sqlite_result_files(struct gpq_store *s, gpq_result_fn fn, void *user, struct gpq_error *e)
{
    return read_rows(s, GPQ_SQL_RESULT_FILES, 0, each_result,
                     (struct call){ { .result = fn }, user }, e);
}

int gpq_sqlite_names_file(struct gpq_store *s, uint64_t task, uint32_t attempt, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = enter(db, e);
    return code < 0 ? code : GPQ_DB_ANY(db, GPQ_SQL_RESULT_IS_FILE, e, (int64_t)task, attempt);
}
