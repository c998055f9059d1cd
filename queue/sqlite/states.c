/* SPDX-License-Identifier: MIT */
/* states.c - the table of changes, and what each does to the counts. */
#include "queue/sqlite/states.h"

#include "queue/sqlite/counts.h"

static const bool may[GPQ_STATES][GPQ_STATES] = {
    [0] = { [GPQ_HELD] = true, [GPQ_READY] = true },
    [GPQ_HELD] = { [GPQ_READY] = true, [GPQ_DONE] = true },
    [GPQ_READY] = { [GPQ_RUNNING] = true, [GPQ_HELD] = true, [GPQ_DONE] = true },
    [GPQ_RUNNING] = { [GPQ_READY] = true, [GPQ_HELD] = true, [GPQ_DONE] = true },
    [GPQ_DONE] = { [GPQ_HELD] = true },
};

static bool is_busy(uint32_t state)
{
    return state == GPQ_READY || state == GPQ_RUNNING;
}

/* A task of batch t, own or joined, goes from r->state to `to`. */
static void count(struct gpq_db *db, struct gpq_tally *t, const struct gpq_row *r, uint32_t to)
{
    if (r->state == 0)
        t->total++;
    else
        t->state[r->state]--;
    t->state[to]++;
    if (r->state == GPQ_DONE) {
        t->outcome[r->outcome]--;
        t->ended = 0;
    }
    if (to == GPQ_DONE) {
        t->outcome[r->outcome]++;
        gpq_tally_end(t, r->ended);
        gpq_db_chore(db, GPQ_CHORE_BATCH, t->id);
        if (gpq_is_failure(r->outcome))
            gpq_db_chore(db, GPQ_CHORE_FAILS, t->id);
    }
    gpq_tally_touch(db, t);
}

static int count_own(struct gpq_db *db, const struct gpq_row *r, uint32_t to, struct gpq_error *e)
{
    int code = 0;
    struct gpq_tally *t = gpq_tally(db, GPQ_BATCH_OF(r->id), &code, e);
    if (!t)
        return code;
    if (is_busy(to) && !is_busy(r->state))
        t->busy++;
    if (!is_busy(to) && is_busy(r->state)) {
        t->busy--;
        if (t->at_once != 0)
            gpq_db_chore(db, GPQ_CHORE_TURN, t->id);
    }
    count(db, t, r, to);
    return 0;
}

static int count_joined(struct gpq_db *db, const struct gpq_row *r, uint32_t to,
                        struct gpq_error *e)
{
    struct gpq_ids batches = { 0 };
    int code = GPQ_DB_IDS(db, GPQ_SQL_JOINED_BY, &batches, e, (int64_t)r->id);
    for (size_t i = 0; code == 0 && i < batches.n; i++) {
        struct gpq_tally *t = gpq_tally(db, (uint32_t)batches.id[i], &code, e);
        if (t)
            count(db, t, r, to);
    }
    gpq_ids_free(&batches);
    return code;
}

static int count_shape(struct gpq_db *db, uint32_t shape, int by, struct gpq_error *e)
{
    int code = 0;
    struct gpq_ready *ready = gpq_ready(db, shape, &code, e);
    if (!ready)
        return code;
    ready->ready += (uint32_t)by;
    gpq_ready_touch(db, ready);
    return 0;
}

/* While it runs, the time stays: the row has the same size then, and is cheap to write. */
static uint64_t ready_time(const struct gpq_row *r, uint32_t to, uint64_t now)
{
    if (to == GPQ_READY)
        return now;
    return to == GPQ_HELD || r->state == GPQ_RUNNING ? 0 : r->ready;
}

int gpq_move(struct gpq_db *db, struct gpq_row *r, uint32_t to, uint64_t now, struct gpq_error *e)
{
    if (r->state >= GPQ_STATES || to >= GPQ_STATES || !may[r->state][to])
        return gpq_db_damaged(db, e, "task %u.%u cannot go from state %u to %u",
                              GPQ_BATCH_OF(r->id), GPQ_NUMBER_OF(r->id), r->state, to);
    int code = count_own(db, r, to, e);
    if (code == 0 && r->links & GPQ_LINK_JOINED)
        code = count_joined(db, r, to, e);
    if (code == 0 && r->state == GPQ_READY)
        code = count_shape(db, r->shape, -1, e);
    if (code == 0 && to == GPQ_READY)
        code = count_shape(db, r->shape, 1, e);
    if (code < 0)
        return code;
    gpq_db_changed(db, &(struct gpq_change){ .task = r->id,
                                             .shape = r->shape,
                                             .from = (uint8_t)r->state,
                                             .to = (uint8_t)to,
                                             .outcome = to == GPQ_DONE ? (uint8_t)r->outcome : 0 });
    if (to == GPQ_DONE && r->links & GPQ_LINK_SOURCE)
        gpq_db_chore(db, GPQ_CHORE_TASK_ENDED, r->id);
    r->ready = ready_time(r, to, now);
    r->state = to;
    return db->failed;
}

int gpq_release(struct gpq_db *db, struct gpq_row *r, uint64_t now, struct gpq_error *e)
{
    if (r->holds == 0) {
        int code = 0;
        struct gpq_tally *t = gpq_tally(db, GPQ_BATCH_OF(r->id), &code, e);
        if (!t)
            return code;
        if (t->at_once == 0)
            return gpq_move(db, r, GPQ_READY, now, e);
        r->holds = GPQ_HOLD_TURN;
        gpq_db_chore(db, GPQ_CHORE_TURN, t->id);
    }
    return r->state == GPQ_HELD ? 0 : gpq_move(db, r, GPQ_HELD, now, e);
}

int gpq_finish(struct gpq_db *db, struct gpq_row *r, uint32_t outcome, uint64_t now, uint64_t cause,
               struct gpq_error *e)
{
    r->outcome = outcome;
    r->ended = now;
    r->cause = cause;
    r->holds = 0;
    r->not_before = 0;
    return gpq_move(db, r, GPQ_DONE, now, e);
}
