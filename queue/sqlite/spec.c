/* SPDX-License-Identifier: MIT */
/* spec.c - adds, counts and forgets specs, shapes and environments. */
#include "queue/sqlite/spec.h"

#include "queue/sqlite/counts.h"
#include "queue/sqlite/ops.h"

int gpq_spec_check(const struct gpq_spec *spec, uint32_t index, struct gpq_error *e)
{
    const struct {
        const char *name;
        uint64_t value;
    } time[] = { { "backoff", spec->backoff },
                 { "backoff_cap", spec->backoff_cap },
                 { "begin", spec->begin },
                 { "expires", spec->expires } };
    for (size_t i = 0; i < sizeof(time) / sizeof(time[0]); i++)
        if (time[i].value > INT64_MAX)
            return gpq_fail(e, GPQ_EINVAL, "specs[%u].%s is %llu, the maximum is %lld", index,
                            time[i].name, (unsigned long long)time[i].value, (long long)INT64_MAX);
    for (uint32_t i = 0; i < spec->n_after; i++)
        if (spec->after[i].condition >= GPQ_CONDITIONS)
            return gpq_fail(e, GPQ_EINVAL, "specs[%u].after[%u].condition is %u, the maximum is %d",
                            index, i, spec->after[i].condition, GPQ_CONDITIONS - 1);
    return 0;
}

int gpq_shape_of(struct gpq_db *db, struct gpq_bytes request, uint32_t *ret, struct gpq_error *e)
{
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SHAPE_FIND);
    gpq_bind_bytes(st, 1, request);
    int code = gpq_db_next(db, st, e);
    if (code > 0) {
        *ret = (uint32_t)sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
        return 0;
    }
    if (code < 0)
        return code;
    st = gpq_db_use(db, GPQ_SQL_SHAPE_MAKE);
    gpq_bind_bytes(st, 1, request);
    code = gpq_db_run(db, st, e);
    *ret = (uint32_t)sqlite3_last_insert_rowid(db->file);
    return code;
}

static int environment_of(struct gpq_db *db, struct gpq_bytes data, int64_t *ret,
                          struct gpq_error *e)
{
    int64_t hash = (int64_t)gpq_hash(0, data);
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_ENVIRONMENT_FIND);
    gpq_bind(st, 1, hash);
    int code;
    while ((code = gpq_db_next(db, st, e)) > 0)
        if (gpq_same(gpq_column_bytes(st, 1), data)) {
            *ret = sqlite3_column_int64(st, 0);
            sqlite3_reset(st);
            return 0;
        }
    if (code < 0)
        return code;
    st = gpq_db_use(db, GPQ_SQL_ENVIRONMENT_MAKE);
    gpq_bind(st, 1, hash);
    gpq_bind_bytes(st, 2, data);
    code = gpq_db_run(db, st, e);
    *ret = sqlite3_last_insert_rowid(db->file);
    return code;
}

int gpq_shape_use(struct gpq_db *db, uint32_t shape, int64_t n, struct gpq_error *e)
{
    int code = 0;
    struct gpq_ready *r = gpq_ready(db, shape, &code, e);
    if (!r)
        return code;
    r->uses = (uint32_t)(r->uses + n);
    if (r->uses == 0 && n < 0) {
        gpq_ready_forget(db, shape);
        return GPQ_DB_DO(db, GPQ_SQL_SHAPE_FORGET, e, shape);
    }
    gpq_ready_touch(db, r);
    return 0;
}

int gpq_spec_add(struct gpq_db *db, const struct gpq_spec *spec, struct gpq_policy *ret,
                 struct gpq_error *e)
{
    *ret = (struct gpq_policy){ .priority = spec->priority,
                                .backoff = spec->backoff,
                                .backoff_cap = spec->backoff_cap,
                                .begin = spec->begin,
                                .expires = spec->expires,
                                .once = spec->at_most_once };
    int64_t environment = 0;
    int code = gpq_shape_of(db, spec->shape, &ret->shape, e);
    if (code == 0)
        code = gpq_shape_use(db, ret->shape, 1, e);
    if (code == 0)
        code = environment_of(db, spec->environment, &environment, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SPEC_MAKE);
    gpq_bind(st, 1, 1);
    gpq_bind_bytes(st, 2, spec->content);
    gpq_bind(st, 3, ret->shape);
    gpq_bind_bytes(st, 4, spec->options);
    gpq_bind(st, 5, environment);
    gpq_bind(st, 6, spec->priority);
    for (int i = 0; i < GPQ_CAUSES; i++) {
        ret->retries[i] = spec->retries[i];
        gpq_bind(st, 7 + i, spec->retries[i]);
    }
    gpq_bind(st, 11, (int64_t)spec->backoff);
    gpq_bind(st, 12, (int64_t)spec->backoff_cap);
    gpq_bind(st, 13, (int64_t)spec->begin);
    gpq_bind(st, 14, (int64_t)spec->expires);
    gpq_bind(st, 15, spec->at_most_once);
    code = gpq_db_run(db, st, e);
    ret->id = (uint32_t)sqlite3_last_insert_rowid(db->file);
    return code;
}

static int forget(struct gpq_db *db, uint32_t spec, uint32_t shape, int64_t environment,
                  struct gpq_error *e)
{
    int code = GPQ_DB_DO(db, GPQ_SQL_SPEC_FORGET, e, spec);
    if (code == 0)
        code = GPQ_DB_DO(db, GPQ_SQL_ENVIRONMENT_FORGET, e, environment);
    return code == 0 ? gpq_shape_use(db, shape, -1, e) : code;
}

int gpq_spec_use(struct gpq_db *db, uint32_t spec, int64_t n, struct gpq_error *e)
{
    if (n >= 0)
        return GPQ_DB_DO(db, GPQ_SQL_SPEC_USES, e, spec, n);
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SPEC_READ);
    gpq_bind(st, 1, spec);
    int code = gpq_db_next(db, st, e);
    if (code <= 0)
        return code < 0 ? code : gpq_db_damaged(db, e, "there is no spec %u", spec);
    uint32_t shape = (uint32_t)sqlite3_column_int64(st, 1);
    int64_t environment = sqlite3_column_int64(st, 3), uses = sqlite3_column_int64(st, 14) + n;
    sqlite3_reset(st);
    if (uses > 0)
        return GPQ_DB_DO(db, GPQ_SQL_SPEC_USES, e, spec, n);
    return forget(db, spec, shape, environment, e);
}

int gpq_reshape(struct gpq_db *db, struct gpq_row *r, uint32_t shape, struct gpq_error *e)
{
    if (shape == r->shape)
        return 0;
    int code = 0;
    struct gpq_ready *from = gpq_ready(db, r->shape, &code, e);
    struct gpq_ready *to = from ? gpq_ready(db, shape, &code, e) : NULL;
    if (!to)
        return code;
    if (r->state == GPQ_READY) {
        from->ready--;
        to->ready++;
    }
    uint32_t old = r->shape;
    r->shape = shape;
    code = gpq_shape_use(db, shape, 1, e);
    return code == 0 ? gpq_shape_use(db, old, -1, e) : code;
}

int gpq_spec_change(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan,
                    struct gpq_error *e)
{
    int code = gpq_reshape(db, r, plan->shape, e);
    if (code == 0 && r->spec != plan->id) {
        uint32_t old = r->spec;
        code = gpq_spec_use(db, plan->id, 1, e);
        if (code == 0)
            code = gpq_spec_use(db, old, -1, e);
    }
    r->spec = plan->id;
    r->priority = plan->priority;
    r->expires = plan->expires;
    return code;
}

/* The environment is bound to another statement, so that both stay valid during the call. */
int gpq_sqlite_spec(struct gpq_store *s, uint32_t id,
                    int (*fn)(const struct gpq_spec *spec, void *user), void *user,
                    struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, false, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SPEC_READ);
    gpq_bind(st, 1, id);
    code = gpq_db_next(db, st, e);
    if (code <= 0)
        return code < 0 ? code : gpq_fail(e, GPQ_ENOTFOUND, "there is no spec %u", id);
    sqlite3_stmt *env = gpq_db_use(db, GPQ_SQL_ENVIRONMENT_READ);
    gpq_bind(env, 1, sqlite3_column_int64(st, 3));
    sqlite3_stmt *shape = gpq_db_use(db, GPQ_SQL_SHAPE_READ);
    gpq_bind(shape, 1, sqlite3_column_int64(st, 1));
    code = gpq_db_next(db, env, e);
    if (code > 0)
        code = gpq_db_next(db, shape, e);
    if (code > 0) {
        struct gpq_spec spec = {
            .content = gpq_column_bytes(st, 0),
            .shape = gpq_column_bytes(shape, 2),
            .options = gpq_column_bytes(st, 2),
            .environment = gpq_column_bytes(env, 0),
            .priority = (int32_t)sqlite3_column_int64(st, 4),
            .backoff = (uint64_t)sqlite3_column_int64(st, 9),
            .backoff_cap = (uint64_t)sqlite3_column_int64(st, 10),
            .begin = (uint64_t)sqlite3_column_int64(st, 11),
            .expires = (uint64_t)sqlite3_column_int64(st, 12),
            .at_most_once = sqlite3_column_int64(st, 13) != 0,
        };
        for (int i = 0; i < GPQ_CAUSES; i++)
            spec.retries[i] = (uint32_t)sqlite3_column_int64(st, 5 + i);
        code = fn(&spec, user);
    } else if (code == 0) {
        code = gpq_db_damaged(db, e, "spec %u names a row that is not there", id);
    }
    sqlite3_reset(st);
    sqlite3_reset(env);
    sqlite3_reset(shape);
    return code;
}
