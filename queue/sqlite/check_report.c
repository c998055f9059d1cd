/* SPDX-License-Identifier: MIT */
/* check_report.c - findings of a check, and the transactions of its repairs. */
#include "queue/sqlite/check.h"
#include "queue/sqlite/counts.h"
#include "queue/sqlite/ops.h"
#include "queue/sqlite/row.h"

int gpq_check_report(struct gpq_check *c, const struct gpq_finding *f)
{
    c->left += !f->repaired;
    c->repaired += f->repaired;
    if (c->repair && !f->repaired) /* the last pass reports it */
        return 0;
    c->stopped = c->fn(f, c->user);
    return c->stopped;
}

int gpq_check_begin(struct gpq_check *c)
{
    gpq_counts_drop(c->db); /* of the rows before the repairs */
    gpq_rows_drop(c->db);
    return c->db->store.engine->begin(&c->db->store, c->e);
}

int gpq_check_end(struct gpq_check *c, int code)
{
    struct gpq_store *s = &c->db->store;
    if (code == 0)
        code = s->engine->commit(s, c->e);
    else
        s->engine->rollback(s);
    gpq_counts_drop(c->db);
    gpq_rows_drop(c->db);
    return code;
}
