/* SPDX-License-Identifier: MIT */
/* attempt.c - attempts: claimed, ended, given back.  The fence of Q3 is here. */
#include <string.h>

#include "queue/sqlite/ops.h"
#include "queue/sqlite/settle.h"
#include "queue/sqlite/spec.h"
#include "queue/sqlite/states.h"

enum { LOSSES = 3 }; /* in a row end a task */

static int stale(const struct gpq_row *r, uint32_t attempt, struct gpq_error *e)
{
    return gpq_fail(e, GPQ_ESTALE, "task %u.%u: attempt %u is over: the task is %s, attempt %u",
                    GPQ_BATCH_OF(r->id), GPQ_NUMBER_OF(r->id), attempt, gpq_state_text(r->state),
                    r->attempt);
}

int64_t gpq_sqlite_claim(struct gpq_store *s, uint64_t now, uint64_t task, const char *devices,
                         const char *run, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct gpq_row r;
    int code = gpq_db_enter(db, true, e);
    if (code == 0)
        code = gpq_row_read(db, task, &r, e);
    if (code < 0)
        return code;
    if (r.state != GPQ_READY)
        return gpq_fail(e, GPQ_ESTALE, "task %u.%u is not ready, but %s", GPQ_BATCH_OF(task),
                        GPQ_NUMBER_OF(task), gpq_state_text(r.state));
    r.attempt++;
    r.charged++;
    code = gpq_move(db, &r, GPQ_RUNNING, now, e);
    if (code == 0)
        code = gpq_row_claim(db, &r, e);
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_ATTEMPT_ADD);
    gpq_bind(st, 1, (int64_t)task);
    gpq_bind(st, 2, r.attempt);
    gpq_bind(st, 3, r.round);
    gpq_bind(st, 4, (int64_t)now);
    gpq_bind_text(st, 5, devices);
    gpq_bind_text(st, 6, run);
    gpq_bind(st, 7, (int64_t)r.ready);
    if (code == 0)
        code = gpq_db_run(db, st, e);
    return code < 0 ? code : (int64_t)r.attempt;
}

/* Reads the task of the attempt that runs. */
static int fenced(struct gpq_db *db, uint64_t task, uint32_t attempt, struct gpq_row *r,
                  struct gpq_error *e)
{
    int code = gpq_db_enter(db, true, e);
    if (code == 0)
        code = gpq_row_read(db, task, r, e);
    if (code < 0)
        return code;
    return r->state == GPQ_RUNNING && r->attempt == attempt ? 0 : stale(r, attempt, e);
}

static bool may_retry(const struct gpq_row *r, const struct gpq_policy *plan,
                      const struct gpq_end *end)
{
    uint32_t cause;
    switch (end->outcome) {
    case GPQ_OUTCOME_ERROR:
        cause = GPQ_CAUSE_ERROR;
        break;
    case GPQ_OUTCOME_TIMEOUT:
        cause = GPQ_CAUSE_TIMEOUT;
        break;
    case GPQ_OUTCOME_CRASHED:
        cause = GPQ_CAUSE_CRASH;
        break;
    default:
        return false;
    }
    if (end->final || r->cancel)
        return false;
    return r->charged <= plan->retries[cause] ||
           (end->oom && r->charged <= plan->retries[GPQ_CAUSE_OOM]);
}

static uint64_t backoff_of(const struct gpq_policy *plan, uint32_t charged)
{
    uint64_t wait = plan->backoff;
    for (uint32_t i = 1; i < charged && wait < (uint64_t)INT64_MAX / 4; i++)
        wait *= 2;
    return plan->backoff_cap != 0 && wait > plan->backoff_cap ? plan->backoff_cap : wait;
}

/* What has started does not expire any more. */
static int retry(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan,
                 const struct gpq_end *end, struct gpq_error *e)
{
    uint64_t wait = backoff_of(plan, r->charged);
    bool placed = end->shape.size != 0 || r->expires != 0;
    int code = 0;
    r->expires = 0;
    if (end->shape.size != 0) {
        uint32_t shape = 0;
        code = gpq_shape_of(db, end->shape, &shape, e);
        if (code == 0)
            code = gpq_reshape(db, r, shape, e);
    }
    if (code == 0 && placed)
        code = gpq_row_place(db, r, e);
    if (code < 0)
        return code;
    if (wait == 0)
        return gpq_move(db, r, GPQ_READY, end->ended, e);
    r->holds = GPQ_HOLD_TIME;
    r->not_before = end->ended < (uint64_t)INT64_MAX - wait ? end->ended + wait : INT64_MAX;
    return gpq_move(db, r, GPQ_HELD, end->ended, e);
}

static int note_end(struct gpq_db *db, const struct gpq_end *end, struct gpq_error *e)
{
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_ATTEMPT_END);
    gpq_bind(st, 1, (int64_t)end->task);
    gpq_bind(st, 2, end->attempt);
    gpq_bind(st, 3, end->outcome);
    gpq_bind(st, 4, (int64_t)end->started);
    gpq_bind(st, 5, (int64_t)end->ended);
    gpq_bind(st, 6, end->status);
    gpq_bind_text(st, 7, end->text);
    const bool ok = end->outcome == GPQ_OUTCOME_SUCCESS;
    const struct gpq_bytes none = { 0 };
    gpq_bind_some(st, 8, ok ? end->stamp : none);
    gpq_bind_text(st, 9, end->devices);
    gpq_bind_text(st, 10, ok ? NULL : end->said);
    return gpq_db_run(db, st, e);
}

static int keep_result(struct gpq_db *db, const struct gpq_end *end, struct gpq_error *e)
{
    if (end->result.size == 0 && !end->result_file)
        return 0;
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_RESULT_ADD);
    gpq_bind(st, 1, (int64_t)end->task);
    gpq_bind(st, 2, end->attempt);
    gpq_bind(st, 3, (int64_t)(end->result_file ? end->result_size : end->result.size));
    const struct gpq_bytes none = { 0 };
    gpq_bind_some(st, 4, end->result_file ? none : end->result);
    gpq_bind_text(st, 5, end->result_file);
    return gpq_db_run(db, st, e);
}

static int check_end(const struct gpq_db *db, const struct gpq_end *end, struct gpq_error *e)
{
    if (end->outcome < GPQ_OUTCOME_SUCCESS || end->outcome > GPQ_OUTCOME_NO_WORKER)
        return gpq_fail(e, GPQ_EINVAL, "end.outcome is %u, expected 1 to 6", end->outcome);
    if (end->ended == 0 || end->ended > INT64_MAX || end->started > INT64_MAX)
        return gpq_fail(e, GPQ_EINVAL, "end.ended is %llu and end.started %llu, expected times",
                        (unsigned long long)end->ended, (unsigned long long)end->started);
    if (!end->result_file && end->result.size > db->results_inline)
        return gpq_fail(e, GPQ_EINVAL,
                        "end.result has %zu bytes, the maximum is %u: give result_file",
                        end->result.size, db->results_inline);
    if (end->said && strlen(end->said) > GPQ_SAID)
        return gpq_fail(e, GPQ_EINVAL, "end.said has %zu bytes, the maximum is %d",
                        strlen(end->said), GPQ_SAID);
    return 0;
}

int gpq_sqlite_complete(struct gpq_store *s, const struct gpq_end *end, struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct gpq_row r;
    struct gpq_policy plan;
    int code = check_end(db, end, e);
    if (code == 0)
        code = fenced(db, end->task, end->attempt, &r, e);
    if (code == 0)
        code = gpq_policy_read(db, r.spec, &plan, e);
    if (code == 0)
        code = note_end(db, end, e);
    if (code < 0)
        return code;
    r.losses = 0;
    bool again = may_retry(&r, &plan, end);
    if (again)
        code = retry(db, &r, &plan, end, e);
    else
        code = gpq_finish(db, &r, end->outcome, end->ended, 0, e);
    if (code == 0 && !again)
        code = keep_result(db, end, e);
    if (code == 0)
        code = gpq_row_write(db, &r, e);
    if (code == 0)
        code = gpq_settle(db, end->ended, e);
    return code < 0 ? code : !again;
}

static int note_return(struct gpq_db *db, uint64_t now, const struct gpq_back *back,
                       struct gpq_error *e)
{
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_ATTEMPT_RETURN);
    gpq_bind(st, 1, (int64_t)back->task);
    gpq_bind(st, 2, back->attempt);
    gpq_bind(st, 3, back->why);
    gpq_bind(st, 4, (int64_t)now);
    gpq_bind_text(st, 5, back->text);
    gpq_bind_text(st, 6, back->devices);
    gpq_bind(st, 7, (int64_t)back->started);
    return gpq_db_run(db, st, e);
}

int gpq_sqlite_give_back(struct gpq_store *s, uint64_t now, const struct gpq_back *back,
                         struct gpq_error *e)
{
    struct gpq_db *db = gpq_db_of(s);
    struct gpq_row r;
    struct gpq_policy plan;
    const uint32_t why = back->why;
    if (why >= GPQ_RETURNS || back->started > INT64_MAX)
        return gpq_fail(e, GPQ_EINVAL, "back.why is %u, the maximum is %d; started is %llu", why,
                        GPQ_RETURNS - 1, (unsigned long long)back->started);
    int code = fenced(db, back->task, back->attempt, &r, e);
    if (code == 0)
        code = gpq_policy_read(db, r.spec, &plan, e);
    if (code < 0)
        return code;
    code = note_return(db, now, back, e);
    r.charged--;
    r.losses += why == GPQ_RETURN_LOST || why == GPQ_RETURN_DEVICE;
    bool once = plan.once && why != GPQ_RETURN_UNSTARTED;
    bool over = r.cancel || once || r.losses >= LOSSES;
    if (code == 0 && r.expires != 0 && why != GPQ_RETURN_UNSTARTED) {
        r.expires = 0;
        code = gpq_row_place(db, &r, e);
    }
    if (code == 0 && !over)
        code = gpq_move(db, &r, GPQ_READY, now, e);
    else if (code == 0)
        code = gpq_finish(db, &r, r.cancel ? GPQ_OUTCOME_CANCELLED : GPQ_OUTCOME_LOST, now, 0, e);
    if (code == 0)
        code = gpq_row_write(db, &r, e);
    if (code == 0)
        code = gpq_settle(db, now, e);
    return code < 0 ? code : over;
}
