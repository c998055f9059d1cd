/* SPDX-License-Identifier: MIT */
/* facts.c - marks, which hold until they are taken away, and spans, which have an end. */
#include "queue/sqlite/db.h"
#include "queue/sqlite/ops.h"

int gpq_sqlite_mark(struct gpq_store *s, const struct gpq_mark *m, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, true, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_MARK_SET);
    gpq_bind_text(st, 1, m->kind);
    gpq_bind_text(st, 2, m->subject ? m->subject : "");
    gpq_bind_text(st, 3, m->text);
    gpq_bind(st, 4, (int64_t)m->since);
    return gpq_db_run(db, st, e);
}

int gpq_sqlite_unmark(struct gpq_store *s, const char *kind, const char *subject,
                      struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, true, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_MARK_FORGET);
    gpq_bind_text(st, 1, kind);
    gpq_bind_text(st, 2, subject ? subject : "");
    code = gpq_db_run(db, st, e);
    if (code == 0 && sqlite3_changes(db->file) == 0)
        return gpq_fail(e, GPQ_ENOTFOUND, "no %s is noted for \"%s\"", kind,
                        subject ? subject : "");
    return code;
}

int gpq_sqlite_marks(struct gpq_store *s, gpq_mark_fn fn, void *user, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, false, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_MARKS);
    while ((code = gpq_db_next(db, st, e)) > 0) {
        struct gpq_mark m = { .kind = gpq_column_text(st, 0),
                              .subject = gpq_column_text(st, 1),
                              .text = gpq_column_text(st, 2),
                              .since = (uint64_t)sqlite3_column_int64(st, 3) };
        code = fn(&m, user);
        if (code != 0) {
            sqlite3_reset(st);
            break;
        }
    }
    return code;
}

int gpq_sqlite_span_begin(struct gpq_store *s, const struct gpq_span *span, uint64_t *ret_id,
                          struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, true, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SPAN_ADD);
    gpq_bind_text(st, 1, span->kind);
    gpq_bind_text(st, 2, span->subject ? span->subject : "");
    gpq_bind_text(st, 3, span->reason);
    gpq_bind_text(st, 4, span->text);
    gpq_bind(st, 5, (int64_t)span->since);
    gpq_bind(st, 6, (int64_t)span->until);
    gpq_bind(st, 7, (int64_t)span->since_boot);
    gpq_bind(st, 8, (int64_t)span->until_boot);
    gpq_bind_text(st, 9, span->boot);
    code = gpq_db_run(db, st, e);
    *ret_id = (uint64_t)sqlite3_last_insert_rowid(db->file);
    return code;
}

int gpq_sqlite_span_end(struct gpq_store *s, uint64_t id, uint64_t until, uint64_t until_boot,
                        struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, true, e);
    if (code < 0)
        return code;
    code = GPQ_DB_DO(db, GPQ_SQL_SPAN_END, e, (int64_t)id, (int64_t)until, (int64_t)until_boot);
    if (code == 0 && sqlite3_changes(db->file) == 0)
        return gpq_fail(e, GPQ_ENOTFOUND, "span %llu has ended, or there is none",
                        (unsigned long long)id);
    return code;
}

int gpq_sqlite_spans(struct gpq_store *s, uint64_t since, uint64_t from, gpq_span_fn fn, void *user,
                     struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    int code = gpq_db_enter(db, false, e);
    if (code < 0)
        return code;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SPANS);
    gpq_bind(st, 1, (int64_t)since);
    gpq_bind(st, 2, (int64_t)from);
    while ((code = gpq_db_next(db, st, e)) > 0) {
        struct gpq_span span = { .id = (uint64_t)sqlite3_column_int64(st, 0),
                                 .kind = gpq_column_text(st, 1),
                                 .subject = gpq_column_text(st, 2),
                                 .reason = gpq_column_text(st, 3),
                                 .text = gpq_column_text(st, 4),
                                 .since = (uint64_t)sqlite3_column_int64(st, 5),
                                 .until = (uint64_t)sqlite3_column_int64(st, 6),
                                 .since_boot = (uint64_t)sqlite3_column_int64(st, 7),
                                 .until_boot = (uint64_t)sqlite3_column_int64(st, 8),
                                 .boot = gpq_column_text(st, 9) };
        code = fn(&span, user);
        if (code != 0) {
            sqlite3_reset(st);
            break;
        }
    }
    return code;
}
