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
        return gpq_release(db, r, now, e);
    if (r->state != GPQ_HELD)
        code = gpq_move(db, r, GPQ_HELD, now, e);
    return code < 0 ? code : gpq_finish(db, r, GPQ_OUTCOME_SKIPPED, now, v->impossible, e);
}

/* Judges the edges of a task anew. */
static int judge_edges(struct gpq_db *db, uint64_t task, struct gpq_verdict *v, struct gpq_error *e)
{
    struct gpq_ids edges = { 0 }; /* source, condition and whether it was met */
    int code = GPQ_DB_IDS(db, GPQ_SQL_EDGES_OF, &edges, e, (int64_t)task);
    for (size_t i = 0; code == 0 && i < edges.n; i += 3) {
        int is = gpq_judge(db, edges.id[i], (uint32_t)edges.id[i + 1], e);
        if (is < 0) {
            code = is;
            break;
        }
        v->unmet += is == GPQ_WAIT;
        if (is == GPQ_IMPOSSIBLE && v->impossible == 0)
            v->impossible = edges.id[i];
        code = GPQ_DB_DO(db, GPQ_SQL_EDGE_MET, e, (int64_t)task, (int64_t)edges.id[i],
                         (int64_t)edges.id[i + 1], is == GPQ_MET);
    }
    gpq_ids_free(&edges);
    return code;
}

int gpq_round_open(struct gpq_db *db, struct gpq_row *r, const struct gpq_policy *plan,
                   uint64_t now, struct gpq_error *e)
{
    int code = GPQ_DB_DO(db, GPQ_SQL_ROUND_KEEP, e, (int64_t)r->id, r->round, r->outcome,
                         (int64_t)r->ended, (int64_t)r->cause);
    if (code == 0)
        code = GPQ_DB_DO(db, GPQ_SQL_RESULT_FORGET, e, (int64_t)r->id);
    if (code == 0)
        code = gpq_move(db, r, GPQ_HELD, now, e);
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
