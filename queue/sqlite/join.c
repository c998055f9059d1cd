/* SPDX-License-Identifier: MIT */
/* join.c - candidates are found by a hash, and then compared byte by byte. */
#include "queue/sqlite/join.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The upper half is the name's: keys of one name are neighbours in the index, so that the lines of
 * a list touch few of its pages however many tasks other lists have. */
uint64_t gpq_join_hash(const char *name, const struct gpq_spec *spec, const struct gpq_item *item)
{
    if (!name)
        return 0;
    uint64_t hash = gpq_hash(0, (struct gpq_bytes){ name, strlen(name) });
    uint64_t line = item->key.size != 0 ? gpq_hash(1, item->key)
                                        : gpq_hash(gpq_hash(0, spec->content), item->content);
    hash = (hash & ~(uint64_t)UINT32_MAX) | line >> 32;
    return hash != 0 ? hash : 1;
}

int gpq_join_fail(struct gpq_error *e, int code, const struct gpq_item *item, const char *format,
                  ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (item->line == 0)
        return gpq_fail(e, code, "%s", text);
    return gpq_fail(e, code, "line %u: %s", item->line, text);
}

/* 1: the task has the item's key.  EKEY: and another content. */
static int matches(struct gpq_db *db, uint64_t task, const char *name, const struct gpq_spec *spec,
                   const struct gpq_item *item, struct gpq_error *e)
{
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_JOIN_READ);
    gpq_bind(st, 1, (int64_t)task);
    int code = gpq_db_next(db, st, e);
    if (code <= 0)
        return code;
    const char *its = gpq_column_text(st, 0);
    bool equal = gpq_same(gpq_column_bytes(st, 2), item->content) &&
                 gpq_same(gpq_column_bytes(st, 3), spec->content);
    bool match = its && strcmp(its, name) == 0 && gpq_same(gpq_column_bytes(st, 1), item->key) &&
                 (item->key.size != 0 || equal);
    sqlite3_reset(st);
    if (match && !equal)
        return gpq_join_fail(e, GPQ_EKEY, item,
                             "the key belongs to task %u.%u, which has another content",
                             GPQ_BATCH_OF(task), GPQ_NUMBER_OF(task));
    return match;
}

/* 1: *ret_task is the last task with the item's key, 0: there is none. */
static int find(struct gpq_db *db, const char *name, uint64_t hash, const struct gpq_spec *spec,
                const struct gpq_item *item, uint64_t *ret_task, struct gpq_error *e)
{
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_JOIN_FIND);
    gpq_bind(st, 1, (int64_t)hash);
    int code;
    while ((code = gpq_db_next(db, st, e)) > 0) {
        *ret_task = (uint64_t)sqlite3_column_int64(st, 0);
        code = matches(db, *ret_task, name, spec, item, e);
        if (code != 0) {
            sqlite3_reset(st);
            break;
        }
    }
    return code;
}

/* 1: the files that the item names are not those of the task's success. */
static int has_changed(struct gpq_db *db, const struct gpq_item *item, const struct gpq_row *r,
                       struct gpq_error *e)
{
    if (item->stamp.size == 0)
        return 0;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_ATTEMPT_STAMP);
    gpq_bind(st, 1, (int64_t)r->id);
    gpq_bind(st, 2, r->attempt);
    int code = gpq_db_next(db, st, e);
    if (code <= 0)
        return code;
    struct gpq_bytes stamp = gpq_column_bytes(st, 0);
    code = stamp.size != 0 && !gpq_same(stamp, item->stamp);
    sqlite3_reset(st);
    return code;
}

/* The task counts in the batch from now on, too. */
static int become_member(struct gpq_db *db, struct gpq_tally *batch, struct gpq_row *r,
                         struct gpq_error *e)
{
    if (GPQ_BATCH_OF(r->id) == batch->id)
        return 0;
    int code = GPQ_DB_DO(db, GPQ_SQL_JOINED_ADD, e, batch->id, (int64_t)r->id);
    if (code < 0 || sqlite3_changes(db->file) == 0)
        return code;
    batch->total++;
    batch->joined++;
    batch->state[r->state]++;
    if (r->state == GPQ_DONE) {
        batch->outcome[r->outcome]++;
        if (r->outcome == GPQ_OUTCOME_SUCCESS) /* else a new round of it begins */
            gpq_tally_end(batch, r->ended);
    }
    gpq_tally_touch(db, batch);
    if (r->links & GPQ_LINK_JOINED)
        return 0;
    r->links |= GPQ_LINK_JOINED;
    return gpq_row_link(db, r->id, GPQ_LINK_JOINED, e);
}

int gpq_join(struct gpq_db *db, struct gpq_tally *batch, const char *name, uint64_t hash,
             const struct gpq_spec *spec, const struct gpq_item *item, bool anyway,
             struct gpq_row *r, struct gpq_error *e)
{
    uint64_t task = 0;
    int code = find(db, name, hash, spec, item, &task, e);
    if (code <= 0)
        return code < 0 ? code : GPQ_PLACED_ADDED;
    code = gpq_row_read(db, task, r, e);
    if (code < 0)
        return code;
    bool ok = r->state == GPQ_DONE && r->outcome == GPQ_OUTCOME_SUCCESS;
    if (ok && !anyway) {
        code = has_changed(db, item, r, e);
        if (code != 0)
            return code < 0 ? code : GPQ_PLACED_CHANGED;
    }
    code = r->links & GPQ_LINK_AFTER ? gpq_tally_followed(db, batch, e) : 0;
    if (code > 0) /* unless all sources of its conditions were forgotten */
        code = GPQ_DB_ANY(db, GPQ_SQL_EDGES_OF, e, (int64_t)task);
    if (code < 0)
        return code;
    if (code > 0)
        return gpq_join_fail(e, GPQ_EREFUSED, item,
                             "tasks wait for the end of batch %u, so that it cannot join task "
                             "%u.%u, which has --after",
                             batch->id, GPQ_BATCH_OF(task), GPQ_NUMBER_OF(task));
    code = become_member(db, batch, r, e);
    if (code < 0)
        return code;
    return r->state == GPQ_DONE && !ok ? GPQ_PLACED_AGAIN : GPQ_PLACED_JOINED;
}
