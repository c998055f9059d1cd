/* SPDX-License-Identifier: MIT */
/* settle.c - works off the list of what follows from ended tasks. */
#include "queue/sqlite/settle.h"

#include <stdio.h>

#include "queue/sqlite/counts.h"
#include "queue/sqlite/ops.h"
#include "queue/sqlite/states.h"

static int judged(uint32_t condition, bool all_ok)
{
    if (condition == GPQ_AFTER_ENDED)
        return GPQ_MET;
    return (condition == GPQ_AFTER_OK) == all_ok ? GPQ_MET : GPQ_IMPOSSIBLE;
}

int gpq_judge(struct gpq_db *db, uint64_t source, uint32_t condition, struct gpq_error *e)
{
    int code = 0;
    if (GPQ_NUMBER_OF(source) == 0) {
        const struct gpq_tally *t = gpq_tally(db, GPQ_BATCH_OF(source), &code, e);
        if (!t)
            return code;
        if (t->ended == 0)
            return GPQ_WAIT;
        return judged(condition, t->outcome[GPQ_OUTCOME_SUCCESS] == t->total);
    }
    struct gpq_row r;
    code = gpq_row_read(db, source, &r, e);
    if (code < 0)
        return code;
    if (r.state != GPQ_DONE)
        return GPQ_WAIT;
    return judged(condition, r.outcome == GPQ_OUTCOME_SUCCESS);
}

/* One task whose condition on an ended source was open. */
static int go_on(struct gpq_db *db, uint64_t task, uint64_t source, uint32_t condition,
                 uint64_t now, struct gpq_error *e)
{
    struct gpq_row r;
    int code = gpq_row_read(db, task, &r, e);
    if (code < 0 || r.state != GPQ_HELD)
        return code; /* cancelled, or skipped before */
    int is = gpq_judge(db, source, condition, e);
    if (is < 0 || is == GPQ_WAIT)
        return is;
    if (is == GPQ_IMPOSSIBLE) {
        code = gpq_finish(db, &r, GPQ_OUTCOME_SKIPPED, now, source, e);
    } else {
        code = GPQ_DB_DO(db, GPQ_SQL_EDGE_MET, e, (int64_t)task, (int64_t)source, condition, 1);
        if (code == 0 && --r.unmet == 0) {
            r.holds &= ~(uint32_t)GPQ_HOLD_AFTER;
            code = gpq_release(db, &r, now, e);
        }
    }
    return code < 0 ? code : gpq_row_write(db, &r, e);
}

static int source_ended(struct gpq_db *db, uint64_t source, uint64_t now, struct gpq_error *e)
{
    struct gpq_ids waiting = { 0 }; /* pairs of task and condition */
    int code = GPQ_DB_IDS(db, GPQ_SQL_EDGES_UNMET, &waiting, e, (int64_t)source);
    for (size_t i = 0; code == 0 && i < waiting.n; i += 2)
        code = go_on(db, waiting.id[i], source, (uint32_t)waiting.id[i + 1], now, e);
    gpq_ids_free(&waiting);
    return code;
}

/* Whoever notifies of the end finds the mark after the commit, or after the next start. */
static int note_end(struct gpq_db *db, uint32_t batch, uint64_t now, struct gpq_error *e)
{
    char subject[16];
    (void)snprintf(subject, sizeof(subject), "%u", batch);
    db->store.notes = true;
    return gpq_sqlite_mark(&db->store, &(struct gpq_mark){ "notify", subject, NULL, now }, e);
}

static int batch_ended(struct gpq_db *db, uint32_t batch, uint64_t now, struct gpq_error *e)
{
    int code = 0;
    struct gpq_tally *t = gpq_tally(db, batch, &code, e);
    if (!t)
        return code;
    if (t->building || t->flags & GPQ_BATCH_OPEN || t->ended != 0 || t->state[GPQ_DONE] != t->total)
        return 0;
    gpq_tally_end(t, now);
    t->ended = t->last_end;
    gpq_tally_touch(db, t);
    uint32_t flags = t->flags;
    code = flags & GPQ_BATCH_NOTIFY ? note_end(db, batch, now, e) : 0;
    if (code < 0)
        return code;
    return flags & GPQ_BATCH_FOLLOWED ? source_ended(db, GPQ_TASK(batch, 0), now, e) : 0;
}

static bool has_failed(const struct gpq_tally *t)
{
    uint64_t fails = 0;
    for (uint32_t i = 0; i < GPQ_OUTCOMES; i++)
        fails += gpq_is_failure(i) ? t->outcome[i] : 0;
    if (t->flags & GPQ_BATCH_FAILS && fails > t->max_fails)
        return true;
    return t->percent > 0 && t->percent < 100 && fails * 100 > (uint64_t)t->percent * t->total;
}

/* More failures than the batch allows: the tasks that wait end. */
static int too_many_fails(struct gpq_db *db, uint32_t batch, uint64_t now, struct gpq_error *e)
{
    int code = 0;
    const struct gpq_tally *t = gpq_tally(db, batch, &code, e);
    if (!t || !has_failed(t) || t->state[GPQ_HELD] + t->state[GPQ_READY] == 0)
        return code;
    struct gpq_ids tasks = { 0 };
    code = GPQ_DB_IDS(db, GPQ_SQL_TASK_IDS, &tasks, e, (int64_t)GPQ_TASK(batch, 1),
                      (int64_t)GPQ_TASK(batch, UINT32_MAX));
    for (size_t i = 0; code == 0 && i < tasks.n; i++) {
        struct gpq_row r;
        code = gpq_row_read(db, tasks.id[i], &r, e);
        if (code < 0 || !gpq_waits(&r))
            continue;
        code = gpq_finish(db, &r, GPQ_OUTCOME_CANCELLED, now, GPQ_TASK(batch, 0), e);
        if (code == 0)
            code = gpq_row_write(db, &r, e);
    }
    gpq_ids_free(&tasks);
    return code;
}

static int give_turns(struct gpq_db *db, uint32_t batch, uint64_t now, struct gpq_error *e)
{
    int code = 0;
    const struct gpq_tally *t = gpq_tally(db, batch, &code, e);
    if (!t)
        return code;
    while (code == 0 && t->busy < t->at_once) {
        sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_TASK_TURN);
        gpq_bind(st, 1, batch);
        code = gpq_db_next(db, st, e);
        if (code <= 0)
            break;
        struct gpq_row r;
        uint64_t task = (uint64_t)sqlite3_column_int64(st, 0);
        sqlite3_reset(st);
        code = gpq_row_read(db, task, &r, e);
        if (code < 0)
            break;
        r.holds = 0;
        code = gpq_move(db, &r, GPQ_READY, now, e);
        if (code == 0)
            code = gpq_row_write(db, &r, e);
    }
    return code;
}

/* What is left to do, and where each kind of it is. */
struct left {
    size_t next[GPQ_CHORE_KINDS];
    struct gpq_chore chore; /* the one that was taken */
};

static bool take_kind(const struct gpq_db *db, struct left *l, uint32_t kind)
{
    for (size_t *at = &l->next[kind]; *at < db->n_chores; ++*at)
        if (db->chore[*at].kind == kind) {
            l->chore = db->chore[(*at)++];
            return true;
        }
    return false;
}

/* Conditions are judged before limits are enforced, those of all batches together, and turns are
 * given last: what follows from an operation does not depend on the order of its tasks. */
static bool take(const struct gpq_db *db, struct left *l)
{
    if (l->chore.kind == GPQ_CHORE_FAILS && take_kind(db, l, GPQ_CHORE_FAILS))
        return true;
    for (uint32_t kind = 0; kind < GPQ_CHORE_KINDS; kind++)
        if (take_kind(db, l, kind))
            return true;
    return false;
}

int gpq_settle(struct gpq_db *db, uint64_t now, struct gpq_error *e)
{
    struct left left = { 0 };
    int code = db->failed;
    while (code == 0 && take(db, &left)) {
        struct gpq_chore chore = left.chore;
        switch (chore.kind) {
        case GPQ_CHORE_TASK_ENDED:
            code = source_ended(db, chore.id, now, e);
            break;
        case GPQ_CHORE_BATCH:
            code = batch_ended(db, (uint32_t)chore.id, now, e);
            break;
        case GPQ_CHORE_FAILS:
            code = too_many_fails(db, (uint32_t)chore.id, now, e);
            break;
        default:
            code = give_turns(db, (uint32_t)chore.id, now, e);
        }
        if (code == 0)
            code = db->failed;
    }
    db->n_chores = 0;
    return code;
}
