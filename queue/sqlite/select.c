/* SPDX-License-Identifier: MIT */
/* select.c - walks the selected tasks; their ids are read before the first one changes. */
#include "queue/sqlite/select.h"

bool gpq_select_fits(const struct gpq_select *which, const struct gpq_row *r)
{
    return (which->states == 0 || which->states & 1U << r->state) &&
           (which->outcomes == 0 || which->outcomes & 1U << r->outcome) &&
           (which->spec == 0 || which->spec == r->spec);
}

bool gpq_select_joined(const struct gpq_select *which)
{
    return which->batch != 0 && which->first == 0 && which->last == 0 && which->n_tasks == 0;
}

bool gpq_select_is_batch(const struct gpq_select *which)
{
    return gpq_select_joined(which) && which->states == 0 && which->outcomes == 0 &&
           which->spec == 0;
}

void gpq_select_range(const struct gpq_select *which, uint64_t *ret_first, uint64_t *ret_last)
{
    *ret_first = 0;
    *ret_last = INT64_MAX;
    if (which->batch == 0)
        return;
    *ret_first = GPQ_TASK(which->batch, which->first != 0 ? which->first : 1);
    *ret_last = GPQ_TASK(which->batch, which->last != 0 ? which->last : UINT32_MAX);
}

static int ids_of(struct gpq_db *db, const struct gpq_select *which, struct gpq_ids *ids,
                  struct gpq_error *e)
{
    uint64_t first, last;
    gpq_select_range(which, &first, &last);
    if (which->n_tasks != 0) {
        int code = 0;
        for (size_t i = 0; code == 0 && i < which->n_tasks; i++)
            if (which->tasks[i] >= first && which->tasks[i] <= last)
                code = gpq_ids_add(db, ids, which->tasks[i], e);
        return code;
    }
    if (gpq_select_joined(which))
        return GPQ_DB_IDS(db, GPQ_SQL_MEMBERS, ids, e, 0, (int64_t)first, (int64_t)last,
                          which->batch);
    return GPQ_DB_IDS(db, GPQ_SQL_TASK_IDS, ids, e, (int64_t)first, (int64_t)last);
}

int64_t gpq_select_each(struct gpq_db *db, const struct gpq_select *which, gpq_row_fn *fn,
                        void *user, struct gpq_error *e)
{
    struct gpq_ids ids = { 0 };
    int64_t count = 0;
    int code = ids_of(db, which, &ids, e);
    for (size_t i = 0; code >= 0 && i < ids.n; i++) {
        struct gpq_row r;
        code = gpq_row_read(db, ids.id[i], &r, NULL);
        if (code == GPQ_ENOTFOUND) {
            code = 0;
            continue;
        }
        if (code < 0)
            gpq_db_enter(db, true, e);
        else if (gpq_select_fits(which, &r))
            code = fn(db, &r, user, e);
        count += code > 0;
    }
    gpq_ids_free(&ids);
    return code < 0 ? code : count;
}
