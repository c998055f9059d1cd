/* SPDX-License-Identifier: MIT */
/* row.c - reads and writes tasks. */
#include "queue/sqlite/row.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT = 16384 };

struct gpq_kept {
    struct gpq_row row[KEPT]; /* id 0: none */
    struct gpq_policy plan;   /* the last one that was read; id 0: none */
};

/* NULL without memory: then nothing is kept. */
static struct gpq_row *slot(struct gpq_db *db, uint64_t id)
{
    if (!db->kept)
        db->kept = calloc(1, sizeof(*db->kept));
    return db->kept ? &db->kept->row[(GPQ_NUMBER_OF(id) + GPQ_BATCH_OF(id) * 61) % KEPT] : NULL;
}

static struct gpq_row *kept(struct gpq_db *db, uint64_t id)
{
    struct gpq_row *r = slot(db, id);
    return r && id != 0 && r->id == id ? r : NULL;
}

static void keep(struct gpq_db *db, const struct gpq_row *r)
{
    struct gpq_row *at = slot(db, r->id);
    if (at)
        *at = *r;
}

void gpq_rows_drop(struct gpq_db *db)
{
    if (db->kept)
        memset(db->kept, 0, sizeof(*db->kept));
}

void gpq_rows_free(struct gpq_db *db)
{
    free(db->kept);
    db->kept = NULL;
}

void gpq_row_columns(sqlite3_stmt *st, struct gpq_row *r)
{
    int at = 0;
    *r = (struct gpq_row){ .id = (uint64_t)sqlite3_column_int64(st, at++) };
    uint32_t *first[] = { &r->state, &r->holds, &r->outcome, &r->shape, &r->spec };
    for (int i = 0; i < 5; i++)
        *first[i] = (uint32_t)sqlite3_column_int64(st, at++);
    r->priority = (int32_t)sqlite3_column_int64(st, at++);
    r->order = sqlite3_column_int64(st, at++);
    uint32_t *count[] = { &r->round, &r->attempt, &r->charged, &r->losses };
    for (int i = 0; i < 4; i++)
        *count[i] = (uint32_t)sqlite3_column_int64(st, at++);
    r->cancel = sqlite3_column_int64(st, at++) != 0;
    r->unmet = (uint32_t)sqlite3_column_int64(st, at++);
    r->links = (uint32_t)sqlite3_column_int64(st, at++);
    uint64_t *last[] = { &r->not_before, &r->expires, &r->ended, &r->cause, &r->ready };
    for (int i = 0; i < 5; i++)
        *last[i] = (uint64_t)sqlite3_column_int64(st, at++);
}

int gpq_row_read(struct gpq_db *db, uint64_t id, struct gpq_row *r, struct gpq_error *e)
{
    const struct gpq_row *known = kept(db, id);
    if (known) {
        *r = *known;
        return 0;
    }
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_TASK_READ);
    gpq_bind(st, 1, (int64_t)id);
    int n = gpq_db_next(db, st, e);
    if (n == 0)
        return gpq_fail(e, GPQ_ENOTFOUND, "there is no task %u.%u", GPQ_BATCH_OF(id),
                        GPQ_NUMBER_OF(id));
    if (n < 0)
        return n;
    gpq_row_columns(st, r);
    sqlite3_reset(st);
    keep(db, r);
    return 0;
}

int gpq_row_add(struct gpq_db *db, const struct gpq_row *r, uint64_t key, struct gpq_error *e)
{
    int code =
        GPQ_DB_DO(db, GPQ_SQL_TASK_ADD, e, (int64_t)r->id, r->state, r->holds, r->outcome, r->shape,
                  r->spec, r->priority, r->order, r->round, r->attempt, r->charged, r->losses,
                  r->cancel, r->unmet, r->links, (int64_t)r->not_before, (int64_t)r->expires,
                  (int64_t)r->ended, (int64_t)r->cause, (int64_t)key, (int64_t)r->ready);
    if (code == 0)
        keep(db, r);
    return code;
}

int gpq_row_write(struct gpq_db *db, const struct gpq_row *r, struct gpq_error *e)
{
    struct gpq_row *known = kept(db, r->id);
    if (known) {
        const struct gpq_row old = *known;
        *known = *r;
        known->shape = old.shape;
        known->spec = old.spec;
        known->priority = old.priority;
        known->order = old.order;
        known->expires = old.expires;
        known->links = old.links;
    }
    return GPQ_DB_DO(db, GPQ_SQL_TASK_WRITE, e, (int64_t)r->id, r->state, r->holds, r->outcome,
                     r->round, r->attempt, r->charged, r->losses, r->cancel, r->unmet,
                     (int64_t)r->not_before, (int64_t)r->ended, (int64_t)r->cause,
                     (int64_t)r->ready);
}

int gpq_row_claim(struct gpq_db *db, const struct gpq_row *r, struct gpq_error *e)
{
    struct gpq_row *known = kept(db, r->id);
    if (known)
        *known = *r;
    return GPQ_DB_DO(db, GPQ_SQL_TASK_CLAIM, e, (int64_t)r->id, r->attempt, r->charged);
}

int gpq_row_place(struct gpq_db *db, const struct gpq_row *r, struct gpq_error *e)
{
    struct gpq_row *known = kept(db, r->id);
    if (known) {
        known->shape = r->shape;
        known->spec = r->spec;
        known->priority = r->priority;
        known->order = r->order;
        known->expires = r->expires;
    }
    return GPQ_DB_DO(db, GPQ_SQL_TASK_PLACE, e, (int64_t)r->id, r->shape, r->spec, r->priority,
                     r->order, (int64_t)r->expires);
}

int gpq_row_link(struct gpq_db *db, uint64_t id, uint32_t flag, struct gpq_error *e)
{
    struct gpq_row *known = kept(db, id);
    if (known)
        known->links |= flag;
    return GPQ_DB_DO(db, GPQ_SQL_TASK_LINK, e, (int64_t)id, flag);
}

int gpq_row_forget(struct gpq_db *db, uint64_t id, struct gpq_error *e)
{
    struct gpq_row *known = kept(db, id);
    if (known)
        known->id = 0;
    return GPQ_DB_DO(db, GPQ_SQL_TASK_FORGET, e, (int64_t)id);
}

void gpq_row_task(const struct gpq_row *r, struct gpq_task *t)
{
    *t = (struct gpq_task){
        .id = r->id,
        .state = r->state,
        .holds = r->holds,
        .outcome = r->outcome,
        .shape = r->shape,
        .spec = r->spec,
        .priority = r->priority,
        .order = r->order,
        .round = r->round,
        .attempt = r->attempt,
        .charged = r->charged,
        .losses = r->losses,
        .cancel = r->cancel,
        .not_before = r->not_before,
        .expires = r->expires,
        .ended = r->ended,
        .cause = r->cause,
        .ready = r->ready,
    };
}

void gpq_attempt_columns(sqlite3_stmt *st, struct gpq_attempt *a)
{
    *a = (struct gpq_attempt){
        .task = (uint64_t)sqlite3_column_int64(st, 0),
        .number = (uint32_t)sqlite3_column_int64(st, 1),
        .round = (uint32_t)sqlite3_column_int64(st, 2),
        .outcome = (uint32_t)sqlite3_column_int64(st, 3),
        .returned = (uint32_t)sqlite3_column_int64(st, 4),
        .claimed = (uint64_t)sqlite3_column_int64(st, 5),
        .started = (uint64_t)sqlite3_column_int64(st, 6),
        .ended = (uint64_t)sqlite3_column_int64(st, 7),
        .returned_at = (uint64_t)sqlite3_column_int64(st, 8),
        .charged = sqlite3_column_int64(st, 9) != 0,
        .status = (int32_t)sqlite3_column_int64(st, 10),
        .devices = gpq_column_text(st, 11),
        .run = gpq_column_text(st, 12),
        .text = gpq_column_text(st, 13),
        .ready = (uint64_t)sqlite3_column_int64(st, 14),
        .said = gpq_column_text(st, 15),
    };
}

int gpq_policy_read(struct gpq_db *db, uint32_t spec, struct gpq_policy *plan, struct gpq_error *e)
{
    if (db->kept && db->kept->plan.id == spec) {
        *plan = db->kept->plan;
        return 0;
    }
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_SPEC_READ);
    gpq_bind(st, 1, spec);
    int n = gpq_db_next(db, st, e);
    if (n == 0)
        return gpq_db_damaged(db, e, "there is no spec %u", spec);
    if (n < 0)
        return n;
    *plan = (struct gpq_policy){ .id = spec, .shape = (uint32_t)sqlite3_column_int64(st, 1) };
    plan->priority = (int32_t)sqlite3_column_int64(st, 4);
    for (int i = 0; i < GPQ_CAUSES; i++)
        plan->retries[i] = (uint32_t)sqlite3_column_int64(st, 5 + i);
    uint64_t *time[] = { &plan->backoff, &plan->backoff_cap, &plan->begin, &plan->expires };
    for (int i = 0; i < 4; i++)
        *time[i] = (uint64_t)sqlite3_column_int64(st, 9 + i);
    plan->once = sqlite3_column_int64(st, 13) != 0;
    sqlite3_reset(st);
    if (db->kept)
        db->kept->plan = *plan;
    return 0;
}
