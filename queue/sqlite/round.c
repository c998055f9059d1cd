/* SPDX-License-Identifier: MIT */
/* round.c - begins rounds. */
#include "queue/sqlite/round.h"

#include "queue/sqlite/counts.h"
#include "queue/sqlite/settle.h"
#include "queue/sqlite/spec.h"
#include "queue/sqlite/states.h"

int gpq_round_begin(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan, bool held,
                    const struct gpq_verdict *v, uint64_t now, struct gpq_error *e)
{
    int code = 0;
    const struct gpq_tally *t = gpq_tally(db, GPQ_BATCH_OF(r->id), &code, e);
    if (!t)
        return code;
    r->unmet = v->unmet;
    r->holds = v->unmet != 0 ? GPQ_HOLD_AFTER : 0;
    if (held || t->flags & GPQ_BATCH_HELD)
        r->holds |= GPQ_HOLD_USER;
    if (plan->begin > now) {
        r->holds |= GPQ_HOLD_TIME;
        r->not_before = plan->begin;
    }
    if (v->impossible == 0)
        return gpq_release(db, r, e);
    if (r->state != GPQ_HELD)
        code = gpq_move(db, r, GPQ_HELD, e);
    return code < 0 ? code : gpq_finish(db, r, GPQ_OUTCOME_SKIPPED, now, v->impossible, e);
}

/* Judges the edges of a task anew. */
static int judge_edges(struct gpq_db *db, uint64_t task, struct gpq_verdict *v, struct gpq_error *e)
{
    struct gpq_ids edges = { 0 }; /* pairs of source and condition */
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_EDGES_OF);
    gpq_bind(st, 1, (int64_t)task);
    int code;
    while ((code = gpq_db_next(db, st, e)) > 0)
        if (gpq_ids_add(db, &edges, (uint64_t)sqlite3_column_int64(st, 0), e) < 0 ||
            gpq_ids_add(db, &edges, (uint64_t)sqlite3_column_int64(st, 1), e) < 0)
            break;
    if (db->failed != 0)
        code = db->failed;
    for (size_t i = 0; code == 0 && i < edges.n; i += 2) {
        int is = gpq_judge(db, edges.id[i], (uint32_t)edges.id[i + 1], e);
        if (is < 0) {
            code = is;
            break;
        }
        v->unmet += is == GPQ_WAIT;
        if (is == GPQ_IMPOSSIBLE && v->impossible == 0)
            v->impossible = edges.id[i];
        st = gpq_db_use(db, GPQ_SQL_EDGE_MET);
        gpq_bind(st, 1, (int64_t)task);
        gpq_bind(st, 2, (int64_t)edges.id[i]);
        gpq_bind(st, 3, (int64_t)edges.id[i + 1]);
        gpq_bind(st, 4, is == GPQ_MET);
        code = gpq_db_run(db, st, e);
    }
    gpq_ids_free(&edges);
    return code;
}

int gpq_round_open(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan,
                   struct gpq_error *e)
{
    sqlite3_stmt *st = gpq_db_use(db, GPQ_SQL_ROUND_KEEP);
    const int64_t value[] = { (int64_t)r->id, r->round, r->outcome, (int64_t)r->ended,
                              (int64_t)r->cause };
    for (int at = 1; at <= 5; at++)
        gpq_bind(st, at, value[at - 1]);
    int code = gpq_db_run(db, st, e);
    if (code == 0)
        code = gpq_db_do1(db, GPQ_SQL_RESULT_FORGET, (int64_t)r->id, e);
    if (code == 0)
        code = gpq_move(db, r, GPQ_HELD, e);
    if (code < 0)
        return code;
    r->round++;
    r->charged = 0;
    r->losses = 0;
    r->cancel = false;
    r->outcome = 0;
    r->ended = 0;
    r->cause = 0;
    code = gpq_spec_change(db, r, plan, e);
    if (code == 0)
        code = gpq_row_place(db, r, e);
    return code == 0 ? gpq_row_write(db, r, e) : code;
}

int gpq_round_place(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan, bool held,
                    uint64_t now, struct gpq_error *e)
{
    struct gpq_verdict v = { 0 };
    int code = r->links & GPQ_LINK_AFTER ? judge_edges(db, r->id, &v, e) : 0;
    if (code == 0)
        code = gpq_round_begin(db, r, plan, held, &v, now, e);
    return code == 0 ? gpq_row_write(db, r, e) : code;
}
