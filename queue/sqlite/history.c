/* SPDX-License-Identifier: MIT */
/*
 * history.c - the attempts of a batch, and the ends of rounds without one.
 *
 * One statement goes through the tasks with their attempts, another one through the rounds before
 * the present one, both in the order of their keys.  They are merged, so that no row is searched
 * for, and none is sorted.
 */
#include "queue/sqlite/ops.h"
#include "queue/sqlite/row.h"

/* Columns of GPQ_SQL_HISTORY, behind those of the attempt. */
enum { TASK = 16, STATE, OUTCOME, ROUND, ATTEMPT, ENDED, READY, SHAPE, SPEC, NAME, CONTENT };

struct history {
    struct gpq_db *db;
    uint64_t since;
    const struct gpq_attempt *behind;
    gpq_history_fn fn;
    void *user;
    struct gpq_error *e;
    sqlite3_stmt *rounds;
    struct gpq_attempt round; /* the next of them; task UINT64_MAX: none is left */
    uint32_t round_last;      /* number of its last attempt */
    struct gpq_attempt last;  /* the attempt that was read last */
};

/* Number 0, the end of a round, is behind all its attempts. */
static bool is_behind(const struct gpq_attempt *a, const struct gpq_attempt *b)
{
    if (!b || a->task != b->task)
        return !b || a->task > b->task;
    return a->round != b->round ? a->round > b->round : a->number - 1 > b->number - 1;
}

static int show(const struct history *h, sqlite3_stmt *st, const struct gpq_attempt *a)
{
    const uint64_t ended = a->returned_at != 0 ? a->returned_at : a->ended;
    if ((ended != 0 && ended < h->since) || !is_behind(a, h->behind))
        return 0;
    return h->fn(&(struct gpq_history){ .attempt = *a,
                                        .shape = (uint32_t)sqlite3_column_int64(st, SHAPE),
                                        .spec = (uint32_t)sqlite3_column_int64(st, SPEC),
                                        .name = gpq_column_text(st, NAME),
                                        .content = gpq_column_bytes(st, CONTENT) },
                 h->user);
}

/* A round is over: by its last attempt, or it has a row of its own. */
static int end_round(const struct history *h, sqlite3_stmt *st, const struct gpq_attempt *end)
{
    const struct gpq_attempt *last = &h->last;
    const bool by_attempt =
        last->task == end->task && last->round == end->round && last->outcome == end->outcome;
    return by_attempt ? 0 : show(h, st, end);
}

static int next_round(struct history *h)
{
    h->round = (struct gpq_attempt){ .task = UINT64_MAX };
    int code = gpq_db_next(h->db, h->rounds, h->e);
    if (code <= 0)
        return code;
    h->round.task = (uint64_t)sqlite3_column_int64(h->rounds, 0);
    h->round.round = (uint32_t)sqlite3_column_int64(h->rounds, 1);
    h->round.outcome = (uint32_t)sqlite3_column_int64(h->rounds, 2);
    h->round.ended = (uint64_t)sqlite3_column_int64(h->rounds, 3);
    h->round_last = (uint32_t)sqlite3_column_int64(h->rounds, 4);
    return 0;
}

/* The rounds of the task before this one. */
static int end_rounds(struct history *h, sqlite3_stmt *st, uint64_t task, uint32_t before)
{
    int code = 0;
    while (code == 0 &&
           (h->round.task < task || (h->round.task == task && h->round.round < before))) {
        if (h->round.task == task)
            code = end_round(h, st, &h->round);
        if (code == 0)
            code = next_round(h);
    }
    return code;
}

/* The last row of a task: its present round may be over, too. */
static int end_task(struct history *h, sqlite3_stmt *st, uint64_t task)
{
    const struct gpq_attempt end = { .task = task,
                                     .round = (uint32_t)sqlite3_column_int64(st, ROUND),
                                     .outcome = (uint32_t)sqlite3_column_int64(st, OUTCOME),
                                     .ended = (uint64_t)sqlite3_column_int64(st, ENDED),
                                     .ready = (uint64_t)sqlite3_column_int64(st, READY) };
    int code = end_rounds(h, st, task, end.round);
    if (code == 0 && sqlite3_column_int64(st, STATE) == GPQ_DONE)
        code = end_round(h, st, &end);
    return code;
}

/* An attempt whose return ended its round has the outcome of the round. */
static void end_by_return(const struct history *h, sqlite3_stmt *st, struct gpq_attempt *a)
{
    const bool last = a->number == sqlite3_column_int64(st, ATTEMPT);
    if (a->returned_at == 0)
        return;
    if (h->round.task == a->task && h->round.round == a->round) {
        if (h->round_last == a->number && h->round.ended == a->returned_at)
            a->outcome = h->round.outcome;
    } else if (last && sqlite3_column_int64(st, STATE) == GPQ_DONE &&
               (uint64_t)sqlite3_column_int64(st, ENDED) == a->returned_at) {
        a->outcome = (uint32_t)sqlite3_column_int64(st, OUTCOME);
    }
}

/* A task with one of its attempts, or without any. */
static int each_row(sqlite3_stmt *st, void *user)
{
    struct history *h = user;
    const uint64_t task = (uint64_t)sqlite3_column_int64(st, TASK);
    int code = 0;
    struct gpq_attempt a;
    gpq_attempt_columns(st, &a);
    if (a.number != 0) {
        code = end_rounds(h, st, task, a.round);
        end_by_return(h, st, &a);
        h->last = a;
        if (code == 0)
            code = show(h, st, &a);
    }
    if (code == 0 && (a.number == 0 || a.number >= sqlite3_column_int64(st, ATTEMPT)))
        code = end_task(h, st, task);
    return code;
}

static sqlite3_stmt *between(struct gpq_db *db, enum gpq_sql name, uint64_t first, uint64_t last)
{
    sqlite3_stmt *st = gpq_db_use(db, name);
    gpq_bind(st, 1, (int64_t)first);
    gpq_bind(st, 2, (int64_t)last);
    return st;
}

int gpq_sqlite_history(struct gpq_store *s, uint32_t batch, uint32_t until, uint64_t since,
                       const struct gpq_attempt *behind, bool names, gpq_history_fn fn, void *user,
                       struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    uint64_t first = GPQ_TASK(batch, 1), last = GPQ_TASK(batch, until != 0 ? until : UINT32_MAX);
    int code = gpq_db_enter(db, false, e);
    if (behind && behind->task > first)
        first = behind->task;
    if (code < 0 || first > last)
        return code;
    struct history h = { db, since, behind, fn, user, e, .round = { 0 } };
    h.rounds = between(db, GPQ_SQL_HISTORY_ROUNDS, first, last);
    sqlite3_stmt *st = between(db, GPQ_SQL_HISTORY, first, last);
    gpq_bind(st, 3, names);
    code = next_round(&h);
    if (code == 0)
        code = gpq_db_rows(db, st, each_row, &h, e);
    sqlite3_reset(h.rounds);
    return code;
}
